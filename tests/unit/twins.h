/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_TWINS_H
#define TEST_TWINS_H

#include "end.h"

/*
 * Header prediction is invisible: an engine that predicts and one to which every frame is passed decoded do the same with
 * the same frames: verdicts, packets sent, completions, counters, memory. A function fails its test if they do not.
 */
struct twins {
	struct end *on, *off; /* with prediction, without */
};

#define TWINS_BURST 8
#define TWINS_COMPARED                                                                             \
	8192u /* bytes of the buffers that packets can reach; each end's own addresses are elsewhere */

struct twins twins_new(struct end_attr attr);
void twins_free(struct twins t);

/* Polls the completions of both, too. */
void twins_expect_same_state(struct twins t);

/* What was sent last. */
extern struct ur_packet twins_sent[TWINS_BURST];
/* One call of each engine, which may send `cap` packets, at most TWINS_BURST. Returns how many each has sent. */
unsigned twins_expect_same_burst(struct twins t, unsigned cap);
bool twins_expect_same_packet(struct twins t);

/* Passes the frame to both. Returns whether it was the request that was predicted. */
bool twins_in(struct twins t, const struct frame *f);
void twins_sleep(struct twins t, uint64_t ns);
/* A receive of `len` bytes at byte 4096 of the buffer. */
void twins_post_recv(struct twins t, uint64_t id, uint32_t len);

/* Passes the frame in as one that is not predicted. */
enum ur_drop end_in_decoded(struct end *e, const struct frame *f);

/* Makes the sum of the IPv4 header and the ICRC right. */
void frame_fix_sums(struct frame *f);

#endif
