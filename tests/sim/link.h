/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_LINK_H
#define UR_SIM_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"
#include "wire/packet.h"

/*
 * One direction between two endpoints: decides what happens to a frame. Chances are in units of
 * 1/65536. Loss follows the Gilbert-Elliott model, as in lib/edge/impair.h: the chance is `loss`
 * outside bursts and `burst_loss` in bursts. A frame begins a burst with chance `burst`, and ends
 * it with chance `burst_end`. A packet may be lost any number of times.
 */
struct sim_link_attr {
	uint64_t bits_per_s; /* 0: no limit */
	uint64_t delay_ns;
	uint64_t jitter_ns;  /* maximum random delay; the order is preserved */
	uint64_t reorder_ns; /* time for which a reordered frame is held back */
	uint32_t loss, reorder, corrupt, ecn;
	uint32_t burst, burst_end, burst_loss;
	uint32_t dup; /* chance of a second copy, and then of a third */
};

struct sim_link {
	struct sim_link_attr attr;
	uint64_t busy_until_ns; /* time at which the last frame has left */
	uint64_t last_ns;	/* latest arrival so far, so that jitter preserves the order */
	bool in_burst;		/* the last frame was in a burst */
};

/* What happens to a frame. */
#define SIM_COPIES_MAX 3
struct sim_fate {
	unsigned copies; /* 0: lost */
	uint64_t at_ns[SIM_COPIES_MAX];
	bool corrupt[SIM_COPIES_MAX];
	bool ecn;
};

/* Decides the fate of a frame of `len` bytes that is sent at now_ns. */
struct sim_fate sim_link_send(struct sim_link *link, struct sim_rng *rng, unsigned len,
			      uint64_t now_ns);

/* Flips one to three bits of the frame. */
void sim_corrupt(struct sim_rng *rng, uint8_t *frame, unsigned len);

/* Sets CE in the frame's IP header, as a router does. */
void sim_mark_ecn(uint8_t *frame, const struct ur_packet *p);

#endif
