/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_CC_SIM_H
#define UR_TEST_CC_SIM_H

#include <stdint.h>

#include "cc/cc.h"

/*
 * A network of senders, each with a link of its own, and destinations, each behind a queue without
 * bound that drains at a rate of its own. Every sender always has something for every destination,
 * as far as windows and pacing let it, and serves destinations in turn. All is deterministic.
 */
#define PSIM_SENDERS 16
#define PSIM_DESTS   4
#define PSIM_PACKET  4096
#define PSIM_STEPS   4

struct psim_step {
	uint64_t from_ns, value;
};

struct psim_attr {
	struct ur_cc_attr pacing;
	unsigned senders, dests;
	uint32_t window;   /* packets in flight to a destination; 0: 64 flows of 256 */
	uint64_t link_bps; /* of each sender */
	/* Steps in time, the first from 0; unused ones are zero. */
	struct psim_step drain_bps[PSIM_DESTS][PSIM_STEPS];
	struct psim_step base_ns[PSIM_STEPS]; /* round trip without queues and transmission */
	struct psim_step back_ns[2]; /* queue on the way back, of all: at first, and later, */
	uint64_t grow_ns;	     /* for which it takes so long */
	bool stamped;	     /* switches tell the delay on the way there to packets that ask */
	uint32_t jitter_ns;  /* of a returned delay, evenly in [0, jitter_ns) */
	unsigned coalesce;   /* packets for one answer; 0: 1 */
	uint64_t stagger_ns; /* sender i begins i times later */
	uint32_t mark_bytes; /* queue beyond which packets are marked; 0: none is */
};

struct psim_result {
	double gbps[PSIM_DESTS];     /* delivered in [from, until) */
	double queue_us[PSIM_DESTS]; /* mean queueing delay */
	double queue_max_us[PSIM_DESTS];
	double share_gbps[PSIM_SENDERS]; /* delivered for a sender, to all */
	uint64_t throttles[PSIM_DESTS], reseeds, cnps;
	double throttled[PSIM_DESTS]; /* part of the packets that left while throttled */
};

struct psim;

struct psim *psim_new(const struct psim_attr *attr);
void psim_free(struct psim *s);
/* Goes on to `until`; the result is of that time alone. */
struct psim_result psim_run(struct psim *s, uint64_t until_ns);

#endif
