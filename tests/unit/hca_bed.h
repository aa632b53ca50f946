/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A multiplexer whose MADs return to it, as with two programs of one host: what is sent waits in a queue until the test
 * moves it, or loses it. What programs are given is kept.
 */
#ifndef HCA_BED_H
#define HCA_BED_H

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "umad/mux.h"
#include "wire/bytes.h"

#define MS		 1000000ull
#define BED_LID		 7
#define BED_WIRE	 4096
#define BED_GIVEN	 512
#define BED_CLASS	 0x03 /* subnet administration */
#define METHOD_GET	 0x01
#define METHOD_GET_TABLE 0x12

struct bed_given {
	void *program;
	struct ur_umad_mad head;
	uint8_t *mad;
};

struct bed {
	struct mux mux;
	uint64_t now;
	uint8_t wire[BED_WIRE][256];
	unsigned wire_head, wire_tail;
	struct bed_given given[BED_GIVEN];
	unsigned given_cnt;
};

static inline void bed_send(void *arg, const uint8_t *mad, const struct ib_mad_addr *to)
{
	struct bed *b = arg;

	cr_assert_eq(to->lid, htons(BED_LID));
	cr_assert_lt(b->wire_tail, BED_WIRE);
	memcpy(b->wire[b->wire_tail++], mad, 256);
}

static inline void bed_deliver(void *arg, void *program, const struct ur_umad_mad *head,
			       const uint8_t *mad)
{
	struct bed *b = arg;
	struct bed_given *g = &b->given[b->given_cnt++];

	cr_assert_leq(b->given_cnt, BED_GIVEN);
	g->program = program;
	memcpy(&g->head, head, sizeof(*head));
	g->mad = malloc(head->length);
	memcpy(g->mad, mad, head->length);
}

static const struct mux_ops bed_ops = {.send = bed_send, .deliver = bed_deliver};

static inline struct bed *bed_new(void)
{
	struct bed *b = calloc(1, sizeof(*b));

	mux_init(&b->mux, &bed_ops, b, 1);
	return b;
}

static inline void bed_free(struct bed *b)
{
	for (unsigned i = 0; i < b->given_cnt; i++)
		free(b->given[i].mad);
	mux_fini(&b->mux);
	free(b);
}

/* Moves the next MAD from the wire; false if there is none. */
static inline bool bed_move(struct bed *b, bool lose)
{
	const struct ib_mad_addr from = {.lid = htons(BED_LID), .qpn = htonl(1)};

	if (b->wire_head == b->wire_tail)
		return false;
	if (!lose)
		mux_input(&b->mux, b->wire[b->wire_head], &from, b->now);
	b->wire_head++;
	return true;
}

static inline void bed_settle(struct bed *b)
{
	while (bed_move(b, false))
		;
}

/* Goes on to the next deadline and serves it; false if there is none. */
static inline bool bed_wait(struct bed *b)
{
	uint64_t at = mux_deadline(&b->mux);

	if (at == MUX_NEVER)
		return false;
	b->now = at;
	mux_expire(&b->mux, at);
	return true;
}

static inline void bed_submit(struct bed *b, struct mux_program *p, int agent, const uint8_t *mad,
			      uint32_t length, uint32_t timeout_ms, uint32_t retries)
{
	struct ur_umad_mad head = {.kind = UR_UMAD_MAD, .length = length};

	head.umad.agent_id = (uint32_t)agent;
	head.umad.timeout_ms = timeout_ms;
	head.umad.retries = retries;
	head.umad.addr.lid = htons(BED_LID);
	head.umad.addr.qpn = htonl(1);
	mux_submit(&b->mux, p, &head, mad, b->now);
}

static inline void bed_request(uint8_t mad[256], unsigned mgmt_class, unsigned method, uint64_t tid)
{
	memset(mad, 0, 256);
	mad[0] = 1;
	mad[1] = (uint8_t)mgmt_class;
	mad[2] = 2;
	mad[3] = (uint8_t)method;
	ur_store64(mad + 8, tid);
}

/* An agent for requests of one method, or for none with method 0. */
static inline int bed_register(struct bed *b, struct mux_program *p, unsigned mgmt_class,
			       unsigned method, unsigned rmpp)
{
	struct ur_umad_register r = {.mgmt_class = (uint8_t)mgmt_class,
				     .class_version = 2,
				     .rmpp_version = (uint8_t)rmpp,
				     .oui = 0x1405};

	if (method != 0)
		r.methods[method / 64] = 1ull << method % 64;
	return mux_register(&b->mux, p, &r);
}

#endif
