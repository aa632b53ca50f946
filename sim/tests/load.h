/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_LOAD_H
#define UR_NS3_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/verbs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Two hosts and one switch, in both simulators: the case, the load on the two engines, and the run in
 * tests/sim. The load is the same code in both runs, so that only what lies between the engines differs.
 */
enum load_op { LOAD_WRITE, LOAD_READ, LOAD_SEND, LOAD_MIXED };

struct load_case {
	const char *name;
	uint64_t seed;
	enum ur_mode mode;
	enum load_op op;
	unsigned messages[2]; /* that each host sends, at most LOAD_DEPTH */
	uint32_t message_bytes;
	uint64_t host_bps, port_bps, delay_ns; /* links of the hosts, ports of the switch */
	uint64_t queue_bytes, ecn_bytes;       /* of a port of the switch; 0: never */
	uint64_t drop_mask;		       /* the n-th frame is lost if bit n is set */
	const struct ur_cc_attr *pacing;
	bool stamps; /* the switch stamps delays, and both ends understand them */
};

#define LOAD_DEPTH  64
#define LOAD_WINDOW 128
#define LOAD_ACKREQ 16
#define LOAD_MAX_QP 8
#define LOAD_MAX_MR 8

/* An endpoint that the load uses. */
struct load_end {
	struct ur_engine *engine;
	struct ur_mem *mem;
	struct ur_gid gid;
	uint8_t mac[6];
};

struct load;

/* Creates and connects a queue pair at each end, posts everything and rings the doorbells. */
struct load *load_start(const struct load_case *c, const struct load_end end[2], uint64_t now_ns);
/* Polls. Returns how many requests have completed, all of them with success; -1: one has not. */
int load_done(struct load *l);
/* Whether both memories are what the requests make of them. */
bool load_right(const struct load *l);
void load_end(struct load *l, uint64_t now_ns);

/* The run in tests/sim. */
struct reference;
struct reference_frame {
	uint64_t at_ns;
	const uint8_t *bytes;
	uint32_t len;
};

struct reference *reference_run(const struct load_case *c);
uint64_t reference_start_ns(const struct reference *r); /* when the load was started */
int reference_done(struct reference *r);		/* as load_done() */
uint64_t reference_dropped(const struct reference *r);	/* frames, by the ports of the switch */
uint64_t reference_marked(const struct reference *r);
/* The next frame that a host has sent. False: there are no more. */
bool reference_next(struct reference *r, struct reference_frame *f);
void reference_free(struct reference *r);

#ifdef __cplusplus
}
#endif

#endif
