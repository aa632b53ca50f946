/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_EAL_ARGS_H
#define UR_DPDK_EAL_ARGS_H

#include <sys/types.h>

#include "dpdk/eal.h"

/* Internal to eal.c and eal_args.c. */

/* Whether the configuration asks for workers on lcores; mode = auto: with more than two CPUs. */
bool ur_eal_wants_dedicated(const struct ur_config *cfg);

/* The sink of DPDK's log: keeps the first line of each step, and shows everything if [eal] extra has
 * --log-level. */
ssize_t ur_eal_log_write(void *cookie, const char *buf, size_t len);

#endif
