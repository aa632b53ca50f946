/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_GOLDEN_H
#define UR_TEST_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/*
 * The captures of tests/golden. The environment variable UROCE_GOLDEN names the directory. If a
 * file cannot be read, the program ends with a message, because a test without its data must not
 * pass.
 */
struct golden_packet {
	uint8_t *b; /* an allocation of exactly len bytes */
	size_t len;
	uint64_t time_ns; /* since the epoch */
};

struct golden_file {
	char name[64]; /* "rc_loss5_v4_mtu1024.pcap" */
	struct golden_packet *packets;
	size_t cnt;
};

/* Reads one capture. The caller frees it with golden_free(). */
struct golden_file golden_load(const char *name);
void golden_free(struct golden_file *file);

/* Calls `fn` for every *.pcap file, in order of names; returns their number. */
size_t golden_each(void (*fn)(const struct golden_file *file, void *arg), void *arg);

#endif
