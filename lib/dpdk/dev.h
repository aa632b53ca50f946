/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_DEV_H
#define UR_DPDK_DEV_H

#include <stdbool.h>
#include <stddef.h>

#include "edge/config.h"

/*
 * Chooses the driver for the interface of [port] dev if the configuration names none: af_xdp, which is
 * about twice as fast, where it can be expected to work, else af_packet. Changes nothing. Any thread.
 */

/* `cfg` has passed ur_config_check(). False with the reason, a sentence without a full stop, in `why`. */
bool ur_dev_suits_af_xdp(const struct ur_config *cfg, char *why, size_t cap);

#endif
