/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_LINK_H
#define UR_SIM_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"
#include "wire/packet.h"

/*
 * One direction between two endpoints: decides what happens to a frame. Chances are in 65536ths.
 * Loss is Gilbert's and Elliott's, as in lib/edge/impair.h: `loss` outside of bursts, `burst_loss`
 * within; the first frame of a burst comes with chance `burst`, the first one after it with
 * `burst_end`. The same packet may be lost any number of times.
 */
struct sim_link_attr {
	uint64_t bits_per_s; /* 0: no limit */
	uint64_t delay_ns;
	uint64_t jitter_ns;  /* added at random, order is kept */
	uint64_t reorder_ns; /* how long a reordered frame is held back */
	uint32_t loss, reorder, corrupt, ecn;
	uint32_t burst, burst_end, burst_loss;
	uint32_t dup; /* a second copy, and after that a third */
};

struct sim_link {
	struct sim_link_attr attr;
	uint64_t busy_until_ns; /* when the last frame has left */
	uint64_t last_ns;	/* the latest arrival so far, for jitter that keeps order */
	bool in_burst;		/* the last frame was */
};

/* What becomes of a frame. */
#define SIM_COPIES_MAX 3
struct sim_fate {
	unsigned copies; /* 0: lost */
	uint64_t at_ns[SIM_COPIES_MAX];
	bool corrupt[SIM_COPIES_MAX];
	bool ecn;
};

/* Decides about a frame of `len` bytes that leaves at now_ns. */
struct sim_fate sim_link_send(struct sim_link *link, struct sim_rng *rng, unsigned len,
			      uint64_t now_ns);

/* Flips one to three bits of the frame. */
void sim_corrupt(struct sim_rng *rng, uint8_t *frame, unsigned len);

/* Marks the frame as having met congestion (IP ECN field 3), as a router does. */
void sim_mark_ecn(uint8_t *frame, const struct ur_packet *p);

#endif
