/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_XDP_PROG_H
#define UR_DPDK_XDP_PROG_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The XDP program for a shared interface (xdp_roce.bpf.c), as the file that DPDK's af_xdp driver
 * wants: an ELF object in memory. Thread class: any.
 */

/* Whether this build has the program: it is compiled by clang. */
bool ur_xdp_prog_exists(void);

/*
 * Writes the path of the object into buf and returns the descriptor behind it, which has to stay open
 * until the port is; or a negative errno, -ENOTSUP when this build lacks the program.
 */
int ur_xdp_prog_open(char *buf, size_t cap);

/* Whether an XDP program is on the interface that is not ours. */
bool ur_xdp_prog_is_foreign(unsigned ifindex);

/*
 * Takes the program off an interface if it is there, left by a process that was killed: no endpoint
 * may have the interface. 0, also when there is none or another one; or a negative errno.
 */
int ur_xdp_prog_reap(unsigned ifindex);

#endif
