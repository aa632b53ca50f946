/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "rxe_requester.h"
#include "script.h"

/*
 * Our responder and a model of the requester of Linux. Our answers must not make it complete a READ
 * without its data, or run out of retries while messages make progress. The network loses,
 * duplicates and reorders packets in both directions. Numbers are seeds.
 */
#define PERCENT(n) ((n)*65536u / 100)
#define RUNS	   40
#define MR_BYTES   (2u << 20)

struct table {
	struct sim *s;
	struct rxe_requester rxe;
	struct sim_cq cq;
	struct sim_qp qp;
	struct sim_mr mr;
	uint8_t *local;
	uint32_t len; /* of each request */
	unsigned completed;
};

/* The target of a READ was zero before; the data of a WRITE is in place when it completes. */
static void check_completion(struct rxe_requester *x, unsigned i)
{
	struct table *t = x->arg;
	const struct rxe_wqe *w = &x->wqe[i];
	const uint8_t *remote = t->mr.p + (w->va - (uintptr_t)t->mr.p);

	SIM_CHECK(t->s, memcmp(w->local, remote, w->length) == 0,
		  "%s %u completes with success, and its bytes are wrong",
		  w->read ? "READ" : "WRITE", t->completed);
	t->completed++;
}

static bool is_over(void *arg)
{
	const struct table *t = arg;

	return t->rxe.failed || t->rxe.head == t->rxe.tail;
}

static void start_table(struct table *t, enum ur_mode mode, const char *name, uint64_t seed,
			uint8_t retry_cnt)
{
	struct sim_attr sa = sim_defaults(sim_mode_case(mode, name), seed);
	struct sim_qp_attr qa;

	sa.seed = seed + 1;
	sa.reorder_slots = 1024;
	sa.turn_delay_ns = 10000;
	sa.link = (struct sim_link_attr){
		.bits_per_s = 10000000000u,
		.delay_ns = 5000,
		.loss = PERCENT(1),
		.dup = PERCENT(1),
		.reorder = PERCENT(2),
		.reorder_ns = 20000,
	};
	*t = (struct table){.s = sim_new(&sa)};
	sim_cq_init(&t->cq, 64);
	qa = sim_qp_defaults(&t->cq, &t->cq);
	qa.mode = mode;
	sim_qp_create(&t->qp, &t->s->ep[1], &qa);
	sim_mr_init(&t->mr, &t->s->ep[1], MR_BYTES, SIM_ACCESS_ALL);
	sim_pattern(t->mr.p, MR_BYTES, seed);
	t->local = calloc(2, MR_BYTES);
	cr_assert(t->local);
	rxe_requester_init(&t->rxe, &t->s->ep[0], 0xffff00, retry_cnt, SIM_MS(67));
	t->rxe.completed = check_completion;
	t->rxe.arg = t;
	rxe_requester_connect(&t->rxe, &t->qp, t->mr.key);
}

static void end_table(struct table *t)
{
	sim_must_run(t->s, is_over, t, SIM_MS(60000));
	SIM_CHECK(t->s, !t->rxe.failed, "the connection ends after %u requests: %s", t->completed,
		  t->rxe.why);
	sim_qp_destroy(&t->qp);
	sim_mr_free(&t->mr);
	sim_cq_free(&t->cq);
	sim_free(t->s);
	free(t->local);
}

/* Repeated bursts of a WRITE of 64 KB, followed by READs of one packet and of many. */
static void write_and_read(enum ur_mode mode, const char *name, uint64_t seed)
{
	static const uint32_t reads[] = {8, 65536, 1000, 5000};
	struct table t;

	start_table(&t, mode, name, seed, 6);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t va = (uintptr_t)t.mr.p;
		uint32_t len = reads[i % 4];
		uint8_t *from = t.local, *to = t.local + MR_BYTES;

		sim_pattern(from, 65536, seed * 1000 + i);
		memset(to, 0, len);
		rxe_requester_post(&t.rxe, false, from, va, 65536);
		rxe_requester_post(&t.rxe, true, to, va + 131072, len);
		sim_must_run(t.s, is_over, &t, SIM_MS(60000));
		sim_sleep(t.s, SIM_US(100));
	}
	end_table(&t);
}

static void long_writes(enum ur_mode mode, const char *name, uint64_t seed)
{
	struct table t;

	start_table(&t, mode, name, seed, 6);
	sim_pattern(t.local, 1u << 20, seed + 5);
	for (unsigned i = 0; i < 4; i++)
		rxe_requester_post(&t.rxe, false, t.local, (uintptr_t)t.mr.p, 1u << 20);
	end_table(&t);
}

/*
 * A few messages of several packets at a time, and many lost ACKs, so that each ACK that arrives
 * may be the one that matters.
 */
static void short_writes(enum ur_mode mode, const char *name, uint64_t seed)
{
	static const uint32_t lengths[] = {2048, 50000, 100, 20000, 0, 9000, 30000};
	struct table t;

	start_table(&t, mode, name, seed, 7);
	t.s->ep[1].link[0].attr.loss = PERCENT(40);
	for (unsigned i = 0; i < 200; i++) {
		uint32_t at = i % 16 * 32768;

		sim_pattern(t.local + at, 32768, seed * 1000 + i);
		rxe_requester_post(&t.rxe, false, t.local + at, (uintptr_t)t.mr.p + at,
				   lengths[i % 7]);
		if (i % 3 == 2)
			sim_must_run(t.s, is_over, &t, SIM_MS(60000));
	}
	end_table(&t);
}

static void run_seeds(enum ur_mode mode, const char *name,
		      void (*run)(enum ur_mode mode, const char *name, uint64_t seed))
{
	uint64_t only;

	if (sim_replay(sim_mode_case(mode, name), &only)) {
		run(mode, name, only);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t seed = 0; seed < RUNS; seed += sim_short_stride())
		run(mode, name, seed);
}

/* RC-RESP-ACK-03 */
Test(rxe_requester, a_read_behind_a_write_is_not_done_without_its_data_in_gbn)
{
	run_seeds(UR_MODE_GBN, "rxe_read", write_and_read);
}

/* RC-RESP-ACK-03 */
Test(rxe_requester, a_read_behind_a_write_is_not_done_without_its_data_in_reorder)
{
	run_seeds(UR_MODE_REORDER, "rxe_read", write_and_read);
}

/* RC-RESP-ACK-04, RC-RESP-ACK-05 */
Test(rxe_requester, a_long_write_that_makes_progress_does_not_run_out_of_retries_in_gbn)
{
	run_seeds(UR_MODE_GBN, "rxe_write", long_writes);
}

/* RC-RESP-ACK-04, RC-RESP-ACK-05 */
Test(rxe_requester, a_long_write_that_makes_progress_does_not_run_out_of_retries_in_reorder)
{
	run_seeds(UR_MODE_REORDER, "rxe_write", long_writes);
}

/* RC-RESP-ACK-08 */
Test(rxe_requester, messages_of_some_packets_get_through_in_gbn)
{
	run_seeds(UR_MODE_GBN, "rxe_short", short_writes);
}

/* RC-RESP-ACK-08 */
Test(rxe_requester, messages_of_some_packets_get_through_in_reorder)
{
	run_seeds(UR_MODE_REORDER, "rxe_short", short_writes);
}
