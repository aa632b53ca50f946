/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_DESCRIPTORS_H
#define UR_DPDK_DESCRIPTORS_H

#include <stdbool.h>

/*
 * The open descriptors of this process. DPDK's drivers do not expose their sockets, so they are looked for among all.
 *
 * Thread class: any thread; what other threads open or close meanwhile may be missed.
 */

/*
 * Calls visit(fd, arg) for each descriptor until it returns false. They come from /proc/self/fd; without /proc each number below the
 * limit is tried, so that visit() has to tell an open descriptor from a free number.
 */
void ur_descriptors_visit(bool (*visit)(int fd, void *arg), void *arg);

#endif
