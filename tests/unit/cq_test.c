/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "transport/core.h"
#include "transport/cq.h"

static struct ur_cq *cq_new(uint32_t cqe)
{
	struct ur_cq *cq = aligned_alloc(64, (sizeof(*cq) + 63) & ~(size_t)63);

	cr_assert_not_null(cq);
	ur_cq_init(cq, malloc(ur_cq_ring_bytes(cqe)), cqe, 0, NULL);
	cr_assert_not_null(cq->ring);
	return cq;
}

static void cq_free(struct ur_cq *cq)
{
	free(cq->ring);
	free(cq);
}

static enum ur_cq_push push(struct ur_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
			    bool solicited)
{
	struct ibv_wc wc = {.wr_id = wr_id, .status = status};

	return ur_cq_push(cq, &wc, solicited);
}

static enum ur_cq_push push_ok(struct ur_cq *cq, uint64_t wr_id)
{
	return push(cq, wr_id, IBV_WC_SUCCESS, false);
}

Test(cq, ring_memory_is_a_power_of_two_of_completions)
{
	cr_assert_eq(ur_cq_ring_bytes(1), sizeof(struct ibv_wc));
	cr_assert_eq(ur_cq_ring_bytes(5), 8 * sizeof(struct ibv_wc));
	cr_assert_eq(ur_cq_ring_bytes(4096), 4096 * sizeof(struct ibv_wc));
}

Test(cq, completions_come_out_whole_and_in_order)
{
	struct ur_cq *cq = cq_new(4);
	struct ibv_wc in = {.wr_id = UINT64_C(0x1122334455667788),
			    .status = IBV_WC_SUCCESS,
			    .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
			    .byte_len = 77,
			    .imm_data = 0x01020304,
			    .qp_num = 0xabcdef,
			    .src_qp = 0x123456,
			    .wc_flags = IBV_WC_WITH_IMM},
		      out[4];

	cr_assert_eq(ur_cq_push(cq, &in, false), UR_CQ_PUSHED);
	push_ok(cq, 2);
	cr_assert_eq(ur_cq_pending(cq), 2);
	cr_assert_eq(ur_cq_poll(cq, 4, out), 2);
	cr_assert_eq(memcmp(&in, &out[0], sizeof(in)), 0);
	cr_assert_eq(out[1].wr_id, 2);
	cr_assert_eq(ur_cq_poll(cq, 4, out), 0);
	cr_assert_eq(ur_cq_pending(cq), 0);
	cq_free(cq);
}

Test(cq, polling_takes_no_more_than_asked)
{
	struct ur_cq *cq = cq_new(8);
	struct ibv_wc wc[8];

	for (unsigned i = 0; i < 5; i++)
		push_ok(cq, i);
	cr_assert_eq(ur_cq_poll(cq, 0, wc), 0);
	cr_assert_eq(ur_cq_poll(cq, 2, wc), 2);
	push_ok(cq, 5);
	cr_assert_eq(ur_cq_poll(cq, 8, wc), 4, "entries pushed since the last look are seen");
	cr_assert_eq(wc[0].wr_id, 2);
	cr_assert_eq(wc[3].wr_id, 5);
	cq_free(cq);
}

Test(cq, indices_wrap_at_2_to_the_32)
{
	struct ur_cq *cq = cq_new(3);
	struct ibv_wc wc[4];

	atomic_store(&cq->head, UINT32_MAX - 1);
	atomic_store(&cq->tail, UINT32_MAX - 1);
	cq->head_seen = cq->tail_seen = UINT32_MAX - 1;
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(push_ok(cq, round * 3 + i), UR_CQ_PUSHED);
		cr_assert_eq(ur_cq_poll(cq, 4, wc), 3);
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(wc[i].wr_id, round * 3 + i);
	}
	cq_free(cq);
}

/* CQ-OVERFLOW-01 */
Test(cq, the_first_completion_too_many_is_an_overflow_and_the_end)
{
	struct ur_cq *cq = cq_new(3);
	struct ibv_wc wc[4];

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(push_ok(cq, i), UR_CQ_PUSHED);
	cr_assert_eq(push_ok(cq, 3), UR_CQ_OVERFLOW);
	cr_assert_eq(push_ok(cq, 4), UR_CQ_DEAD);
	cr_assert_eq(ur_cq_poll(cq, 4, wc), 3);
	cr_assert_eq(wc[2].wr_id, 2);
	cr_assert_eq(push_ok(cq, 5), UR_CQ_DEAD, "room does not revive it");
	cr_assert_eq(ur_cq_poll(cq, 4, wc), 0);
	cq_free(cq);
}

Test(cq, an_armed_cq_notifies_once)
{
	struct ur_cq *cq = cq_new(8);

	cr_assert_eq(push_ok(cq, 0), UR_CQ_PUSHED);
	ur_cq_poll(cq, 1, &(struct ibv_wc){0});
	cr_assert_not(ur_cq_arm(cq, false));
	cr_assert_eq(push_ok(cq, 1), UR_CQ_NOTIFY);
	cr_assert_eq(push_ok(cq, 2), UR_CQ_PUSHED);
	cq_free(cq);
}

/* CQ-ARM-01 */
Test(cq, a_solicited_arm_sleeps_through_ordinary_completions)
{
	struct ur_cq *cq = cq_new(8);

	ur_cq_arm(cq, true);
	cr_assert_eq(push_ok(cq, 0), UR_CQ_PUSHED);
	cr_assert_eq(push(cq, 1, IBV_WC_SUCCESS, true), UR_CQ_NOTIFY);
	cr_assert_eq(push(cq, 2, IBV_WC_SUCCESS, true), UR_CQ_PUSHED);
	cq_free(cq);
}

Test(cq, an_error_wakes_a_solicited_arm)
{
	struct ur_cq *cq = cq_new(8);

	ur_cq_arm(cq, true);
	cr_assert_eq(push(cq, 0, IBV_WC_WR_FLUSH_ERR, false), UR_CQ_NOTIFY);
	cq_free(cq);
}

Test(cq, arming_for_solicited_does_not_undo_arming_for_any)
{
	struct ur_cq *cq = cq_new(8);

	ur_cq_arm(cq, false);
	ur_cq_arm(cq, true);
	cr_assert_eq(push_ok(cq, 0), UR_CQ_NOTIFY);
	ur_cq_arm(cq, true);
	ur_cq_arm(cq, false);
	cr_assert_eq(push_ok(cq, 1), UR_CQ_NOTIFY);
	cq_free(cq);
}

/* CQ-ARM-02 */
Test(cq, arming_with_an_entry_present_reports_it_and_stays_armed)
{
	struct ur_cq *cq = cq_new(8);

	push_ok(cq, 0);
	cr_assert(ur_cq_arm(cq, false));
	cr_assert_eq(push_ok(cq, 1), UR_CQ_NOTIFY);
	cq_free(cq);
}

/* A CQ of which `polled` completions were polled without an event. */
static struct ur_cq *cq_after(uint32_t polled)
{
	struct ur_cq *cq = cq_new(8);

	atomic_store(&cq->tail, polled);
	atomic_store(&cq->head, polled);
	cq->head_seen = cq->tail_seen = polled;
	return cq;
}

static bool raises(struct ur_cq *cq)
{
	return ur_cq_arm(cq, false) && ur_cq_disarm(cq);
}

static void poll(struct ur_cq *cq, unsigned n)
{
	struct ibv_wc wc[8];

	cr_assert_eq(ur_cq_poll(cq, n, wc), n);
}

/* CQ-ARM-03, also where the counts wrap */
Test(cq, each_entry_that_is_not_polled_raises_one_event)
{
	static const uint32_t polled[] = {
		0, 5, INT32_MAX - 1, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - 2};

	for (unsigned i = 0; i < sizeof(polled) / sizeof(*polled); i++) {
		struct ur_cq *cq = cq_after(polled[i]);

		push_ok(cq, 0);
		cr_assert(raises(cq), "after %u", (unsigned)polled[i]);
		cr_assert_not(raises(cq), "it has raised its event");
		poll(cq, 1);
		cr_assert_eq(push_ok(cq, 1), UR_CQ_NOTIFY);
		cr_assert_not(raises(cq), "it has raised its event");
		cr_assert_eq(push_ok(cq, 2), UR_CQ_NOTIFY);
		cr_assert_eq(push_ok(cq, 3), UR_CQ_PUSHED);
		poll(cq, 1);
		cr_assert(raises(cq));
		poll(cq, 1);
		cr_assert_not(raises(cq));
		poll(cq, 1);
		cr_assert_eq(push_ok(cq, 4), UR_CQ_NOTIFY);
		cr_assert_eq(push_ok(cq, 5), UR_CQ_PUSHED);
		poll(cq, 2);
		cr_assert_not(raises(cq), "both are polled");
		cq_free(cq);
	}
}

/* CQ-ARM-03. With a count that stayed behind for ever, 2^32 - 1 completions would look like one that has been reported. */
Test(cq, polling_without_events_for_long_leaves_nothing_unreported)
{
	for (uint32_t from = 0; from < 16; from++) {
		struct ur_cq *cq = cq_after(UINT32_MAX - from - 16);

		atomic_store(&cq->reported, UINT32_C(1) << 31);
		for (unsigned i = 0; i < 16 + from; i++) {
			push_ok(cq, i);
			poll(cq, 1);
		}
		cr_assert_leq(atomic_load(&cq->head) - atomic_load(&cq->reported), cq->cqe);
		cr_assert_not(raises(cq));
		cr_assert_eq(push_ok(cq, 0), UR_CQ_NOTIFY);
		poll(cq, 1);
		push_ok(cq, 1);
		cr_assert(raises(cq));
		cq_free(cq);
	}
}

Test(cq, an_unarmed_cq_still_delivers_and_overflows)
{
	struct ur_cq *cq = cq_new(2);
	struct ibv_wc wc[2];

	cq->unarmed = true;
	cr_assert_eq(push_ok(cq, 7), UR_CQ_PUSHED);
	cr_assert_eq(push_ok(cq, 8), UR_CQ_PUSHED);
	cr_assert_eq(push_ok(cq, 9), UR_CQ_OVERFLOW);
	cr_assert_eq(ur_cq_poll(cq, 2, wc), 2);
	cr_assert_eq(wc[1].wr_id, 8);
	cq_free(cq);
}

/* Two threads: each completion arrives once, in order, and wakes a consumer that waits for it. */
#define RACE_CNT 200000u

struct race {
	struct ur_cq *cq;
	bool events;
	sem_t event;
	_Atomic uint32_t polled;
};

static void *produce(void *arg)
{
	struct race *race = arg;

	for (uint32_t i = 0; i < RACE_CNT; i++) {
		struct ibv_wc wc = {.wr_id = i, .byte_len = ~i};

		/* A CQ must be large enough never to be full. */
		for (unsigned spin = 1; i - atomic_load(&race->polled) >= race->cq->cqe; spin++)
			if (spin % 1024 == 0)
				sched_yield();
		if (ur_cq_push(race->cq, &wc, false) == UR_CQ_NOTIFY)
			sem_post(&race->event);
	}
	return NULL;
}

static void run_race(bool events, uint32_t cqe)
{
	struct race race = {.cq = cq_new(cqe), .events = events};
	pthread_t producer;
	struct ibv_wc wc[5];
	uint32_t next = 0;

	sem_init(&race.event, 0, 0);
	cr_assert_eq(pthread_create(&producer, NULL, produce, &race), 0);
	while (next < RACE_CNT) {
		unsigned n = ur_cq_poll(race.cq, 5, wc);

		for (unsigned i = 0; i < n; i++, next++) {
			cr_assert_eq(wc[i].wr_id, next);
			cr_assert_eq(wc[i].byte_len, ~next);
		}
		atomic_store(&race.polled, next);
		if (n)
			continue;
		if (!events)
			sched_yield();
		else if (!ur_cq_arm(race.cq, false))
			sem_wait(&race.event); /* a lost wake-up hangs here: the test times out */
	}
	pthread_join(producer, NULL);
	cr_assert_eq(ur_cq_pending(race.cq), 0);
	sem_destroy(&race.event);
	cq_free(race.cq);
}

Test(cq, a_poller_and_the_producer_may_run_at_once, .timeout = 60)
{
	run_race(false, 7);
}

Test(cq, an_armed_consumer_is_never_left_asleep, .timeout = 60)
{
	/* With one entry, no later completion can hide a lost wake-up. */
	run_race(true, 1);
}

/* CQ-ARM-03, however the two race. A program that takes an event, arms the CQ, and polls once finds a completion each time. */
Test(cq, there_are_as_many_events_as_completions, .timeout = 60)
{
	struct race race = {.cq = cq_new(7), .events = true};
	pthread_t producer;
	struct ibv_wc wc;

	sem_init(&race.event, 0, 0);
	cr_assert_not(ur_cq_arm(race.cq, false));
	cr_assert_eq(pthread_create(&producer, NULL, produce, &race), 0);
	for (uint32_t next = 0; next < RACE_CNT; next++) {
		sem_wait(&race.event);
		if (raises(race.cq))
			sem_post(&race.event);
		cr_assert_eq(ur_cq_poll(race.cq, 1, &wc), 1, "event %u", (unsigned)next);
		cr_assert_eq(wc.wr_id, next);
		atomic_store(&race.polled, next + 1);
	}
	pthread_join(producer, NULL);
	cr_assert_neq(sem_trywait(&race.event), 0, "an event without a completion");
	sem_destroy(&race.event);
	cq_free(race.cq);
}

/* ur_core_complete(): effect of the verdicts of a push. */
struct sink {
	unsigned completions, asyncs, cross_cqes;
	enum ibv_event_type type;
	void *user;
	bool solicited;
	uint64_t wr_id;
};

static void on_completion(void *ctx, struct ur_cq *cq)
{
	((struct sink *)ctx)->completions++;
}

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	struct sink *s = ctx;

	s->asyncs++;
	s->type = type;
	s->user = user;
}

static void on_cross_worker(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct sink *s = ctx;

	s->cross_cqes++;
	s->wr_id = wc->wr_id;
	s->solicited = solicited;
}

static struct ur_core *core_new(struct sink *s)
{
	struct ur_core *core = calloc(1, sizeof(*core));

	cr_assert_not_null(core);
	core->sink = (struct ur_sink){
		.ctx = s,
		.completion = on_completion,
		.async = on_async,
		.cross_worker = on_cross_worker,
	};
	return core;
}

Test(cq, completing_wakes_an_armed_cq_only)
{
	struct sink s = {0};
	struct ur_core *core = core_new(&s);
	struct ur_cq *cq = cq_new(4);
	struct ibv_wc wc = {.wr_id = 1};

	ur_core_complete(core, cq, &wc, false);
	cr_assert_eq(s.completions, 0);
	ur_cq_arm(cq, false);
	ur_core_complete(core, cq, &wc, false);
	cr_assert_eq(s.completions, 1);
	cr_assert_eq(ur_cq_pending(cq), 2);
	cr_assert_eq(s.asyncs + s.cross_cqes, 0);
	cq_free(cq);
	free(core);
}

Test(cq, completing_into_a_full_cq_raises_its_error_once_and_counts_each_loss)
{
	struct sink s = {0};
	struct ur_core *core = core_new(&s);
	struct ur_cq *cq = cq_new(1);
	struct ibv_wc wc = {.wr_id = 1};

	cq->user = &wc;
	for (unsigned i = 0; i < 4; i++)
		ur_core_complete(core, cq, &wc, false);
	cr_assert_eq(s.asyncs, 1);
	cr_assert_eq(s.type, IBV_EVENT_CQ_ERR);
	cr_assert_eq(s.user, (void *)&wc);
	cr_assert_eq(core->cnt.cq_overflow, 3);
	cq_free(cq);
	free(core);
}

Test(cq, completing_into_another_workers_cq_hands_it_over)
{
	struct sink s = {0};
	struct ur_core *core = core_new(&s);
	struct ur_cq *cq = cq_new(4);
	struct ibv_wc wc = {.wr_id = 42};

	core->worker = 1;
	ur_core_complete(core, cq, &wc, true);
	cr_assert_eq(s.cross_cqes, 1);
	cr_assert_eq(s.wr_id, 42);
	cr_assert(s.solicited);
	cr_assert_eq(ur_cq_pending(cq), 0);
	cq_free(cq);
	free(core);
}

/* CQ-RESIZE-01 */
Test(cq, a_resized_queue_keeps_what_waits_and_has_its_new_size)
{
	for (uint32_t before = 0; before < 9; before++)
		for (uint32_t waiting = 0; waiting <= 4; waiting++)
			for (uint32_t cqe = 1; cqe <= 9; cqe++) {
				struct ur_cq *cq = cq_new(4);
				void *ring = malloc(ur_cq_ring_bytes(cqe)), *old = cq->ring;
				struct ibv_wc wc[16];
				uint32_t room;

				for (uint32_t i = 0; i < before; i++) {
					push_ok(cq, i);
					cr_assert_eq(ur_cq_poll(cq, 1, wc), 1);
				}
				for (uint32_t i = 0; i < waiting; i++)
					push_ok(cq, 100 + i);
				cr_assert_eq(ur_cq_resize(cq, ring, cqe), waiting <= cqe);
				room = waiting > cqe ? 4 : cqe;
				for (uint32_t i = waiting; i < room; i++)
					cr_assert_eq(push_ok(cq, 100 + i), UR_CQ_PUSHED);
				cr_assert_eq(push_ok(cq, 1), UR_CQ_OVERFLOW, "%u entries", room);
				cr_assert_eq(ur_cq_poll(cq, 16, wc), room);
				for (uint32_t i = 0; i < room; i++)
					cr_assert_eq(wc[i].wr_id, 100 + i);
				free(cq->ring == old ? ring : old);
				cq_free(cq);
			}
}

/* CQ-RESET-01 */
Test(cq, forgetting_a_queue_pair_keeps_the_others_in_order)
{
	for (uint32_t before = 0; before < 5; before++)
		for (uint32_t mine = 0; mine < 1u << 6; mine++)
			for (uint32_t seen = 0; seen <= 1; seen++) {
				struct ur_cq *cq = cq_new(7);
				struct ibv_wc wc[8];
				unsigned kept = 0, n;

				for (uint32_t i = 0; i < before; i++) {
					push_ok(cq, i);
					ur_cq_poll(cq, 1, wc);
				}
				for (uint32_t i = 0; i < 6; i++) {
					struct ibv_wc in = {.wr_id = i, .qp_num = mine >> i & 1};

					ur_cq_push(cq, &in, false);
					/* The consumer has seen a part. */
					if (seen && i == 2)
						cr_assert_eq(ur_cq_poll(cq, 1, wc), 1);
				}
				ur_cq_forget_qp(cq, 1);
				n = ur_cq_poll(cq, 8, wc);
				for (uint32_t i = seen; i < 6; i++)
					if (!(mine >> i & 1))
						cr_assert_eq(wc[kept++].wr_id, i);
				cr_assert_eq(n, kept);
				for (uint32_t i = 0; i < 7; i++)
					cr_assert_eq(push_ok(cq, i), UR_CQ_PUSHED);
				cr_assert_eq(push_ok(cq, 7), UR_CQ_OVERFLOW);
				cr_assert_eq(ur_cq_poll(cq, 8, wc), 7);
				cq_free(cq);
			}
}
