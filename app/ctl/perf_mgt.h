/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_PERF_MGT_H
#define CTL_PERF_MGT_H

#include "output.h"

/*
 * Performance management (IBA 16.1): what other tools see of a node's counters, by GMPs to QP1. They have no directed route:
 * both ends have LIDs, or it is this program's own node.
 */

/*
 * PortCounters and PortCountersExtended of a port, or of all ports (0): an array. NULL: they cannot be asked for; `why` has
 * the reason.
 */
json_t *ctl_perf_mgt_read(struct ctl_session *s, uint32_t node, uint8_t port, char *why,
			  size_t why_bytes);

/* Prints what was read. */
void ctl_perf_mgt_print(json_t *ports);

#endif
