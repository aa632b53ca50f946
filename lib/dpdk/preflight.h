/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_PREFLIGHT_H
#define UR_DPDK_PREFLIGHT_H

#include <stdbool.h>

#include "edge/config.h"

/*
 * Finds obstacles to opening the port of a configuration before DPDK is started, each with the
 * command that removes it. Reads /sys and /proc and changes nothing. Any thread.
 */
struct ur_preflight_item {
	bool fatal;	     /* the port will not work; false: it works, but less well */
	const char *what;    /* one sentence without a full stop */
	const char *command; /* for a shell, or "" when none helps */
};

/* Called for each finding; the texts are valid during the call. */
typedef void (*ur_preflight_fn)(void *arg, const struct ur_preflight_item *item);

/*
 * `cfg` has passed ur_config_check(). Returns the number of fatal findings. With 0 opening the port may
 * still fail, because the driver checks more.
 */
int ur_preflight(const struct ur_config *cfg, ur_preflight_fn report, void *arg);

/* The same with /sys, /proc and /dev below the directory `root`, for tests; "" is the machine. */
int ur_preflight_at(const char *root, const struct ur_config *cfg, ur_preflight_fn report,
		    void *arg);

/* A ur_preflight_fn that prints "error: WHAT" or "warning: WHAT" and "  fix: COMMAND" to a FILE. */
void ur_preflight_print(void *file, const struct ur_preflight_item *item);

#endif
