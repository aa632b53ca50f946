/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include "uroce/counters.h"

/* EDGE-GATHER-01: [worker] gather over a ring. The rules of a burst are in gather_test.c. */

#define QPS 8

static struct ibv_qp *qa[QPS], *qb[QPS];

static void open_with(const char *gather)
{
	const char *const set[] = {gather, "worker.mode=inline", NULL};

	open_side(A, set);
	open_side(B, set);
	for (unsigned i = 0; i < QPS; i++) {
		qa[i] = make_qp(A, IBV_QPT_RC);
		qb[i] = make_qp(B, IBV_QPT_RC);
		join(qa[i], qb[i], (struct join){0});
	}
}

static void open_yes(void)
{
	open_with("worker.gather=yes");
}

static void open_no(void)
{
	open_with("worker.gather=no");
}

static void open_auto(void)
{
	open_with("worker.gather=auto");
}

static void close_all(void)
{
	for (unsigned i = 0; i < QPS; i++) {
		cr_expect(!qa[i] || uroce_destroy_qp(qa[i]) == 0);
		cr_expect(!qb[i] || uroce_destroy_qp(qb[i]) == 0);
	}
	close_both();
}

static int find_gathered(void *arg, const struct uroce_metric *m)
{
	if (!strcmp(m->name, "gathered"))
		*(uint64_t *)arg += m->value;
	return 0;
}

static uint64_t gathered(void)
{
	uint64_t sum = 0;

	cr_assert_eq(uroce_visit_metrics(A->ctx, find_gathered, &sum), 0);
	return sum;
}

static uint64_t sent(void)
{
	struct uroce_counters c;

	cr_assert_eq(uroce_query_counters(A->ctx, &c), 0);
	return c.tx_packets;
}

static void post_to_each(void)
{
	for (unsigned i = 0; i < QPS; i++)
		post(A, qa[i], i, IBV_WR_RDMA_WRITE, 64 * i, 64);
}

static void expect_each(void)
{
	for (unsigned i = 0; i < QPS; i++)
		cr_assert_eq(next_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(A->buf, B->buf, 64 * QPS), 0);
}

/* One turn is enough, unless a progress thread makes rounds between the posts. */
PAIR_TEST(api_gather, posts_wait_for_a_poll, open_yes, close_all)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	for (uint8_t turn = 3; gathered() == 0; turn++) {
		fill(A, 0, 64 * QPS, turn);
		post_to_each();
		do {
			uroce_progress(A->ctx);
			uroce_progress(B->ctx);
			cr_assert_lt(now_ms(), until, "posts wait for ever");
		} while (memcmp(A->buf, B->buf, 64 * QPS) != 0);
		expect_each();
	}
}

/* That it waits for nothing is shown in gather_test.c: here the progress thread may have the worker just then. */
PAIR_TEST(api_gather, a_full_burst_leaves_without_a_poll, open_yes, close_all)
{
	uint64_t before = sent(), until = now_ms() + PATIENCE_MS;

	for (unsigned i = 0; i < 32; i++)
		post(A, qa[i % QPS], i, IBV_WR_RDMA_WRITE, 0, 64);
	while (sent() - before < 32)
		cr_assert_lt(now_ms(), until, "a full burst waits for ever");
	for (unsigned i = 0; i < 32; i++)
		cr_assert_eq(next_wc(A).status, IBV_WC_SUCCESS);
}

/* The application does something else; the progress threads of both ends send and receive. */
PAIR_TEST(api_gather, posts_leave_without_a_further_call, open_yes, close_all)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	fill(A, 0, 64 * QPS, 7);
	post_to_each();
	while (__atomic_load_n(&B->buf[64 * QPS - 1], __ATOMIC_ACQUIRE) != A->buf[64 * QPS - 1])
		cr_assert_lt(now_ms(), until, "posts wait for ever");
	expect_each();
}

PAIR_TEST(api_gather, posts_leave_before_their_queue_pair_is_destroyed, open_yes, close_all)
{
	uint64_t before = sent();

	post(A, qa[0], 1, IBV_WR_RDMA_WRITE, 0, 64);
	cr_assert_eq(uroce_destroy_qp(qa[0]), 0);
	qa[0] = NULL;
	cr_assert_geq(sent() - before, 1u);
}

PAIR_TEST(api_gather, without_it_each_post_leaves_at_once, open_no, close_all)
{
	fill(A, 0, 64 * QPS, 4);
	post_to_each();
	cr_assert_eq(gathered(), 0u);
	expect_each();
}

PAIR_TEST(api_gather, auto_carries_every_byte, open_auto, close_all)
{
	for (uint8_t turn = 0; turn < 100; turn++) {
		fill(A, 0, 64 * QPS, turn);
		post_to_each();
		expect_each();
	}
}

/* An application that sleeps until an event comes makes no call after its last post. */
PAIR_TEST(api_gather, auto_ends_when_completion_events_are_asked_for, open_auto, close_all)
{
	struct ibv_comp_channel *channel = uroce_create_comp_channel(A->ctx);
	struct ibv_cq *cq = uroce_create_cq(A->ctx, 16, NULL, channel, 0);
	uint64_t before;

	cr_assert(channel && cq);
	fill(A, 0, 64 * QPS, 5);
	post_to_each();
	cr_assert_eq(uroce_req_notify_cq(cq, 0), 0);
	before = gathered();
	expect_each();
	for (unsigned turn = 0; turn < 10; turn++) {
		post_to_each();
		cr_assert_eq(gathered(), before);
		expect_each();
	}
	cr_expect_eq(uroce_destroy_cq(cq), 0);
	cr_expect_eq(uroce_destroy_comp_channel(channel), 0);
}
