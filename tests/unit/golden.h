/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_GOLDEN_H
#define UR_TEST_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/*
 * The captures of tests/golden, found through the environment variable UROCE_GOLDEN. A file that
 * cannot be read ends the program with a message: a test without its data must not pass.
 */
struct golden_packet {
	uint8_t *b; /* its own allocation of exactly len bytes */
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

/* Calls `fn` with every *.pcap file in turn, by name; returns how many there were. */
size_t golden_each(void (*fn)(const struct golden_file *file, void *arg), void *arg);

#endif
