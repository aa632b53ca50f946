/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/srq.h"

#define MAX_SGE 2
#define PD	7

static void *ring_new(uint32_t entries)
{
	void *ring = aligned_alloc(64, (ur_rq_ring_bytes(entries, MAX_SGE) + 63) & ~(size_t)63);

	cr_assert_not_null(ring);
	return ring;
}

static struct ur_srq *srq_new(uint32_t entries)
{
	struct ur_srq *srq = aligned_alloc(64, (sizeof(*srq) + 63) & ~(size_t)63);

	cr_assert_not_null(srq);
	ur_srq_init(srq, ring_new(entries), entries, MAX_SGE, PD, srq);
	return srq;
}

static void srq_free(struct ur_srq *srq)
{
	free(srq->rq.ring);
	free(srq);
}

/* Posts a receive. All its fields are computed from its id. */
static int post(struct ur_srq *srq, uint64_t id)
{
	struct ibv_sge sg[MAX_SGE] = {{0x1000 * id, 100, 5}, {0x2000 * id, 20, 6}};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sg, .num_sge = MAX_SGE};

	return ur_rq_post(&srq->rq, &wr);
}

/* Takes a receive, which must have this id. Returns true if the limit was reached. */
static bool take(struct ur_srq *srq, uint64_t id)
{
	union {
		struct ur_rwqe rwqe;
		uint8_t bytes[sizeof(struct ur_rwqe) + MAX_SGE * sizeof(struct ur_sge)];
	} dst;
	bool limit = false;

	cr_assert(ur_srq_take(srq, &dst.rwqe, &limit));
	cr_assert_eq(dst.rwqe.wr_id, id);
	cr_assert_eq(dst.rwqe.num_sge, MAX_SGE);
	cr_assert_eq(dst.rwqe.length, 120);
	cr_assert_eq(dst.rwqe.sge[0].addr, 0x1000 * id);
	cr_assert_eq(dst.rwqe.sge[1].addr, 0x2000 * id);
	cr_assert_eq(dst.rwqe.sge[1].lkey, 6);
	return limit;
}

static void expect_empty(struct ur_srq *srq)
{
	bool limit = true;

	cr_assert_not(ur_srq_take(srq, NULL, &limit));
	cr_assert_not(limit);
}

/* SRQ-PREFETCH-01 */
Test(srq, looks_ahead_at_what_is_posted)
{
	struct ur_srq *srq = srq_new(8);

	cr_assert_null(ur_srq_ahead(srq));
	for (uint64_t id = 0; id < UR_SRQ_AHEAD; id++)
		cr_assert_eq(post(srq, id), 0);
	cr_assert_null(ur_srq_ahead(srq), "the poster writes this one next");
	/* Around the end of the ring. */
	for (uint64_t id = 0; id < 20; id++) {
		cr_assert_eq(post(srq, id + UR_SRQ_AHEAD), 0);
		cr_assert_eq(ur_srq_ahead(srq)->wr_id, id + UR_SRQ_AHEAD);
		take(srq, id);
	}
	cr_assert_null(ur_srq_ahead(srq));
	srq_free(srq);
}

Test(srq, starts_empty_and_disarmed)
{
	struct ur_srq *srq = srq_new(4);

	cr_assert_eq(srq->pd, PD);
	cr_assert_eq(srq->user, srq);
	cr_assert_eq(srq->limit, 0);
	cr_assert_eq(srq->qp_cnt, 0);
	expect_empty(srq);
	srq_free(srq);
}

Test(srq, elements_are_taken_in_order_and_free_their_place_at_once)
{
	struct ur_srq *srq = srq_new(2);

	cr_assert_eq(post(srq, 1), 0);
	cr_assert_eq(post(srq, 2), 0);
	cr_assert_eq(post(srq, 3), ENOMEM);
	take(srq, 1);
	cr_assert_eq(post(srq, 3), 0);
	take(srq, 2);
	take(srq, 3);
	expect_empty(srq);
	srq_free(srq);
}

/* SRQ-LIMIT-01 */
Test(srq, the_limit_is_reached_once)
{
	struct ur_srq *srq = srq_new(8);

	for (uint64_t i = 1; i <= 6; i++)
		post(srq, i);
	srq->limit = 4;
	cr_assert_not(take(srq, 1), "5 left");
	cr_assert_not(take(srq, 2), "4 left are not fewer than 4");
	cr_assert(take(srq, 3), "3 left");
	cr_assert_eq(srq->limit, 0);
	cr_assert_not(take(srq, 4));
	srq->limit = 3;
	cr_assert(take(srq, 5), "armed again below the limit");
	srq_free(srq);
}

Test(srq, without_a_limit_nothing_is_reached)
{
	struct ur_srq *srq = srq_new(2);

	post(srq, 1);
	cr_assert_not(take(srq, 1));
	srq_free(srq);
}

/* Posts and takes until the indices are in the middle of the ring, with `cnt` elements left. */
static uint64_t churn(struct ur_srq *srq, unsigned cnt)
{
	uint64_t id = 1;

	for (; id <= 5; id++) {
		post(srq, id);
		take(srq, id);
	}
	for (unsigned i = 0; i < cnt; i++)
		cr_assert_eq(post(srq, id + i), 0);
	return id;
}

static void resize(uint32_t from, uint32_t to, unsigned cnt)
{
	struct ur_srq *srq = srq_new(from);
	uint64_t id = churn(srq, cnt);
	void *old = srq->rq.ring, *ring = ring_new(to);

	cr_assert_eq(ur_srq_resize(srq, ring, to), 0);
	free(old);
	for (unsigned i = cnt; i < to; i++)
		cr_assert_eq(post(srq, id + i), 0, "%u of %u", i, to);
	cr_assert_eq(post(srq, 0), ENOMEM);
	for (unsigned i = 0; i < to; i++)
		take(srq, id + i);
	expect_empty(srq);
	srq_free(srq);
}

Test(srq, grows_with_what_is_posted)
{
	resize(4, 16, 4);
	resize(4, 5, 3);
}

Test(srq, shrinks_to_what_is_posted)
{
	resize(16, 4, 4);
	resize(16, 1, 0);
}

Test(srq, does_not_shrink_below_what_is_posted)
{
	struct ur_srq *srq = srq_new(8);
	uint64_t id = churn(srq, 5);
	void *ring = ring_new(4);

	cr_assert_eq(ur_srq_resize(srq, ring, 4), -EINVAL);
	cr_assert_eq(ur_srq_resize(srq, ring, 0), -EINVAL);
	for (unsigned i = 0; i < 5; i++)
		take(srq, id + i);
	free(ring);
	srq_free(srq);
}
