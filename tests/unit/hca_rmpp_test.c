/* SPDX-License-Identifier: BSD-3-Clause */
/* RMPP between two programs of a host: one asks for a table, the other answers with many segments. */
#include <errno.h>

#include "hca_bed.h"

#define HEADER	56
#define ROOM	200
#define ACTIVE	1
#define TYPE	25
#define FLAGS	26
#define SEGMENT 28
#define LENGTH	32

static char sm, tool; /* the programs */

struct exchange {
	struct bed *bed;
	struct mux_program *server, *client;
	int server_agent, client_agent;
	uint8_t *answer;
	uint32_t bytes;
};

/* The tool asks; the answer of `data` bytes is made, but not sent. */
static void start(struct exchange *x, uint32_t data)
{
	struct bed *b = x->bed = bed_new();
	uint8_t mad[256];

	x->server = mux_open(&b->mux, &sm);
	x->client = mux_open(&b->mux, &tool);
	x->server_agent = bed_register(b, x->server, BED_CLASS, METHOD_GET_TABLE, 1);
	x->client_agent = bed_register(b, x->client, BED_CLASS, 0, 1);
	bed_request(mad, BED_CLASS, METHOD_GET_TABLE, 99);
	bed_submit(b, x->client, x->client_agent, mad, 256, 60000, 0);
	bed_settle(b);
	cr_assert_eq(b->given_cnt, 1);
	x->bytes = HEADER + data;
	x->answer = malloc(x->bytes);
	memcpy(x->answer, b->given[0].mad, HEADER);
	x->answer[3] |= 0x80;
	x->answer[TYPE] = 1;
	x->answer[FLAGS] = 0x70 | ACTIVE;
	for (uint32_t i = 0; i < data; i++)
		x->answer[HEADER + i] = (uint8_t)(i * 7 + i / 251);
}

static void reply(struct exchange *x)
{
	bed_submit(x->bed, x->server, x->server_agent, x->answer, x->bytes, 0, 3);
}

static void expect_answer(const struct exchange *x)
{
	const struct bed_given *g = &x->bed->given[1];

	cr_assert_eq(x->bed->given_cnt, 2);
	cr_assert_eq(g->program, &tool);
	cr_assert_eq(g->head.umad.status, 0);
	cr_assert_eq(g->head.length, x->bytes);
	cr_assert_eq(memcmp(g->mad, x->answer, 24), 0);
	cr_assert_eq(memcmp(g->mad + HEADER, x->answer + HEADER, x->bytes - HEADER), 0);
}

static void finish(struct exchange *x)
{
	while (bed_wait(x->bed))
		bed_settle(x->bed);
	cr_assert(TAILQ_EMPTY(&x->bed->mux.transfers));
	cr_assert(TAILQ_EMPTY(&x->bed->mux.assemblies));
	free(x->answer);
	bed_free(x->bed);
}

/* UMAD-RMPP-01 */
Test(hca_rmpp, messages_of_any_length_arrive)
{
	static const uint32_t sizes[] = {0,   1,    199,  200,	201,	399,
					 400, 3399, 3400, 3401, 100000, 700000};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct exchange x;

		start(&x, sizes[i]);
		reply(&x);
		bed_settle(x.bed);
		expect_answer(&x);
		cr_assert_eq(x.bed->mux.counters.rmpp_invalid, 0);
		finish(&x);
	}
}

Test(hca_rmpp, segments_have_the_lengths_of_the_iba)
{
	struct exchange x;
	unsigned at;

	start(&x, 2 * ROOM + 10);
	at = x.bed->wire_tail;
	reply(&x);
	bed_settle(x.bed);
	/* First: everything, and the class header of each segment. Last: what is in it. */
	cr_assert_eq(x.bed->wire[at][FLAGS] & 7, 3);
	cr_assert_eq(ur_load32(x.bed->wire[at] + SEGMENT), 1);
	cr_assert_eq(ur_load32(x.bed->wire[at] + LENGTH), 3 * 20 + 2 * ROOM + 10);
	/* The ACK of the first opens the window. */
	cr_assert_eq(x.bed->wire[at + 1][TYPE], 2);
	cr_assert_eq(x.bed->wire[at + 1][3], METHOD_GET_TABLE);
	cr_assert_eq(ur_load32(x.bed->wire[at + 1] + SEGMENT), 1);
	cr_assert_gt(ur_load32(x.bed->wire[at + 1] + LENGTH), 3);
	cr_assert_eq(x.bed->wire[at + 2][FLAGS] & 7, 1);
	cr_assert_eq(ur_load32(x.bed->wire[at + 2] + LENGTH), 0);
	cr_assert_eq(x.bed->wire[at + 3][FLAGS] & 7, 5);
	cr_assert_eq(ur_load32(x.bed->wire[at + 3] + SEGMENT), 3);
	cr_assert_eq(ur_load32(x.bed->wire[at + 3] + LENGTH), 20 + 10);
	finish(&x);
}

/* Each subset of the first twelve packets is lost: the message arrives once, whole. */
Test(hca_rmpp, losses_are_repaired)
{
	for (unsigned mask = 0; mask < 1u << 12; mask++) {
		struct exchange x;
		unsigned moved = 0;

		start(&x, 6 * ROOM + 3);
		reply(&x);
		for (unsigned i = 0; x.bed->given_cnt < 2 || moved < 12; i++) {
			cr_assert_lt(i, 1000, "mask 0x%x", mask);
			while (bed_move(x.bed, moved < 12 && (mask >> moved & 1) != 0))
				moved++;
			if (!bed_wait(x.bed))
				break;
		}
		bed_settle(x.bed);
		/* A server that has repeated something in vain four times gives up, as the client does. */
		if (x.bed->mux.counters.timed_out == 0 && x.bed->mux.counters.rmpp_aborted == 0)
			expect_answer(&x);
		else
			cr_assert_geq(__builtin_popcount(mask), 4, "mask 0x%x", mask);
		finish(&x);
	}
}

Test(hca_rmpp, an_abort_ends_the_transfer)
{
	struct exchange x;
	uint8_t abort_mad[256] = {0};

	start(&x, 50 * ROOM);
	reply(&x);
	memcpy(abort_mad, x.answer, HEADER);
	abort_mad[3] &= 0x7f;
	abort_mad[TYPE] = 4;
	abort_mad[FLAGS] = ACTIVE;
	memcpy(x.bed->wire[x.bed->wire_tail++], abort_mad, 256);
	bed_settle(x.bed);
	cr_assert_eq(x.bed->mux.counters.rmpp_aborted, 1);
	cr_assert_eq(x.bed->given_cnt, 1);
	finish(&x);
}

/* Segments of a transfer that nothing asked for, beyond the window, after the last: counted, not kept. */
Test(hca_rmpp, hostile_segments_change_nothing)
{
	struct exchange x;
	uint8_t mad[256];
	uint32_t seed = 1;

	start(&x, 4 * ROOM);
	for (unsigned i = 0; i < 200000; i++) {
		memcpy(mad, x.answer, 256);
		for (unsigned k = TYPE; k < 36; k++) {
			seed = seed * 1664525 + 1013904223;
			if ((seed >> 24 & 3) == 0)
				mad[k] = (uint8_t)(seed >> 16 & (k > 27 && k % 4 != 3 ? 0 : 0xff));
		}
		mad[FLAGS] |= ACTIVE;
		if (x.bed->wire_tail > BED_WIRE - 100)
			x.bed->wire_head = x.bed->wire_tail = 0;
		if (x.bed->given_cnt > 400) {
			while (x.bed->given_cnt > 1)
				free(x.bed->given[--x.bed->given_cnt].mad);
		}
		memcpy(x.bed->wire[x.bed->wire_tail++], mad, 256);
		bed_settle(x.bed);
		x.bed->now += MS;
	}
	/* What was given in the end is at most one message, no longer than the window. */
	cr_assert_leq(x.bed->given_cnt, 2);
	finish(&x);
}
