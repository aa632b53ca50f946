/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CONFORMANCE_DUT_H
#define UR_CONFORMANCE_DUT_H

/*
 * The device under test, controlled line by line (docs/conformance.md lists the commands). dut.c
 * uses verbs; V(name) is the function of uroce or of libibverbs. The functions below cover what
 * verbs do not have; each of the two has its own implementation.
 */
#include <stdbool.h>
#include <stddef.h>

#include <infiniband/verbs.h>

#ifdef DUT_VERBS
#define V(name)	 ibv_##name
#define DUT_IMPL "verbs"
#else
#include "uroce/uroce.h"
#define V(name)	 uroce_##name
#define DUT_IMPL "uroce"
#endif

struct dut_options {
	const char *device;  /* configuration file, or name of a verbs device */
	const char *set[32]; /* overrides of the configuration, NULL at the end */
	unsigned set_cnt;
	int frames_fd;	  /* socket to which the other end of a ring is relayed; -1: none */
	const char *ring; /* the name of that ring */
};

/* Opens the device, or prints one sentence and exits. */
struct ibv_context *dut_open(const struct dut_options *o);
void dut_close(struct ibv_context *ctx);

/* Runs the worker of an inline device. Returns true if there was something to do. */
bool dut_progress(struct ibv_context *ctx);

/* Counters as a JSON object without a newline; the caller frees it. */
char *dut_counters(struct ibv_context *ctx);

/* Sets the loss recovery of an RC queue pair, "gbn" or "reorder". Returns 0 or an errno value. */
int dut_set_mode(struct ibv_qp *qp, const char *mode);

#ifndef DUT_VERBS
/* The other end of a ring. Its frames are exchanged with a packet socket of the tester. */
void dut_relay_open(const char *ring, int fd);
bool dut_relay(void);
#endif

#endif
