/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_TRAFFIC_H
#define INTEROP_TRAFFIC_H

#include "session.h"

/* Totals for the summary. */
struct totals {
	uint64_t messages, bytes, received, missing;
};

/* Runs all rounds of the scenario over a connected session. */
bool run_traffic(struct session *s, struct totals *totals);

/* Posts a receive of `bytes` at an offset of REGION_RECEIVE, in the pieces of plan_piece(). */
bool post_receive(struct session *s, uint64_t id, size_t offset, unsigned bytes, unsigned pieces);
bool post_message(struct session *s, const struct message *m, uint64_t id);

#endif
