/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_XDP_PROG_H
#define UR_DPDK_XDP_PROG_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The XDP program for a shared interface (xdp_roce.bpf.c), in the form that DPDK's af_xdp driver
 * needs: an ELF object in a memory file. Thread class: any.
 */

/* Whether this build has the program, which only clang can compile. */
bool ur_xdp_prog_exists(void);

/*
 * Writes the path of the object to buf and returns its descriptor, which has to stay open until the port
 * is open; or a negative errno, -ENOTSUP if this build lacks the program.
 */
int ur_xdp_prog_open(char *buf, size_t cap);

/* Whether the interface has an XDP program of another program. */
bool ur_xdp_prog_is_foreign(unsigned ifindex);

/*
 * Detaches our program from an interface if a killed process has left it there. No endpoint may have the
 * interface. 0, also if there is none or another program; or a negative errno.
 */
int ur_xdp_prog_reap(unsigned ifindex);

#endif
