/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "end.h"
#include "transport/admission.h"

/*
 * ADM-EARLY-01 with two queue pairs on one SRQ: the receives that early packets may take, and that
 * they leave those reserved for the other queue pair.
 */
#define MS UINT64_C(1000000)

static const struct ur_adm_attr attr = {
	.mode = UR_ADM_INTELLIGENT,
	.fallback_ns = 10 * MS,
	.grant_life_ns = MS,
	.refusal_life_ns = 100 * MS,
	.status_ns = 40 * MS,
};

struct pair {
	struct ur_srq srq;
	struct end *e;
	struct ur_qp *a, *b;
	void *ring;
	uint32_t stamp;
};

static struct pair *pair_new(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	cr_assert_not_null(p);
	p->ring = aligned_alloc(64, (ur_rq_ring_bytes(8, 1) + 63) & ~63ul);
	ur_srq_init(&p->srq, p->ring, 8, 1, END_PD, NULL);
	p->e = END(.mode = UR_MODE_EXTENDED, .srq = &p->srq, .admission = &attr,
		   .agreed = {.sends_status = true});
	p->a = p->e->qp;
	p->b = end_add_qp(p->e);
	return p;
}

static void pair_free(struct pair *p)
{
	end_free(p->e);
	free(p->ring);
	free(p);
}

static void post(struct pair *p, unsigned cnt)
{
	struct ibv_sge sge = {(uintptr_t)p->e->buf, 64, p->e->key};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	while (cnt--)
		cr_assert_eq(ur_rq_post(&p->srq.rq, &wr), 0);
	end_drain(p->e); /* queue pairs that wait get a grant */
}

/* Message `n`, from 0, of one packet arrives. */
static enum ur_drop arrives(struct pair *p, struct ur_qp *qp, uint32_t n)
{
	struct ur_packet x = end_packet(p->e, UR_EXT_SEND_ONLY, END_RQ_PSN + n, 16);
	enum ur_drop drop;

	x.bth.dqpn = qp->qpn;
	x.xth = (struct ur_xth){.stamp = ++p->stamp,
				.ssn = (ur_first_ssn(ur_psn(END_RQ_PSN)).v + n) & UR_PSN_MASK,
				.flags = UR_XTH_RECV,
				.rwqen = n};
	drop = end_in(p->e, x);
	ur_qp_validate(qp);
	ur_adm_pool_validate(&p->srq.adm);
	end_drain(p->e);
	return drop;
}

static void expect_left(struct pair *p, uint32_t posted, uint32_t early_a, uint32_t early_b)
{
	cr_assert_eq(ur_wq_cnt(&p->srq.rq), posted, "%u are left", ur_wq_cnt(&p->srq.rq));
	cr_assert_eq(ur_admission_early_room(p->a), early_a, "a: %u",
		     ur_admission_early_room(p->a));
	cr_assert_eq(ur_admission_early_room(p->b), early_b, "b: %u",
		     ur_admission_early_room(p->b));
}

static unsigned completed(struct pair *p)
{
	struct ibv_wc wc;
	unsigned n = 0;

	while (ur_cq_poll(&p->e->cq, 1, &wc) == 1) {
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		n++;
	}
	return n;
}

/* No queue pair waits: receives are taken in order of arrival, up to the last one. */
Test(admission_early, in_an_open_pool_early_messages_take_what_is_there)
{
	struct pair *p = pair_new();

	post(p, 4);
	expect_left(p, 4, 4, 4);
	cr_assert_eq(arrives(p, p->b, 4), UR_DROP_RNR, "which takes five");
	expect_left(p, 4, 4, 4);
	cr_assert_eq(arrives(p, p->b, 1), UR_DROP_NONE, "with the one before it");
	expect_left(p, 2, 2, 2);
	cr_assert_eq(arrives(p, p->a, 0), UR_DROP_NONE);
	expect_left(p, 1, 1, 1);
	cr_assert_eq(arrives(p, p->b, 3), UR_DROP_RNR, "which takes two more");
	cr_assert_eq(arrives(p, p->b, 2), UR_DROP_NONE);
	expect_left(p, 0, 0, 0);
	cr_assert_eq(arrives(p, p->a, 1), UR_DROP_RNR);
	cr_assert_eq(arrives(p, p->b, 0), UR_DROP_NONE);
	cr_assert_eq(completed(p), 4);
	cr_assert_eq(end_counters(p->e)->adm_accepted, 4);
	cr_assert_eq(end_counters(p->e)->adm_refused, 1);
	pair_free(p);
}

/* In status A, and for a queue pair with a queue class, none: they must wait for their turn. */
Test(admission_early, while_a_queue_pair_waits_early_messages_take_nothing)
{
	struct pair *p = pair_new();

	cr_assert_eq(arrives(p, p->a, 0), UR_DROP_RNR);
	cr_assert_eq(p->srq.adm.status, UR_ADM_A);
	post(p, 5);
	cr_assert_eq(p->srq.adm.granted_cnt, 1);
	expect_left(p, 5, 0, 0);
	for (uint32_t n = 1; n < 4; n++) {
		cr_assert_eq(arrives(p, p->a, n), UR_DROP_RNR);
		cr_assert_eq(arrives(p, p->b, n), UR_DROP_RNR);
	}
	expect_left(p, 5, 0, 0);
	cr_assert_eq(end_counters(p->e)->adm_refused, 1, "they are not judged");
	cr_assert_eq(arrives(p, p->a, 0), UR_DROP_NONE);
	cr_assert_eq(p->srq.adm.status, UR_ADM_NB);
	expect_left(p, 4, 4, 4);
	cr_assert_eq(arrives(p, p->b, 3), UR_DROP_NONE);
	expect_left(p, 0, 0, 0);
	pair_free(p);
}

/* In NB, a queue pair that got class B in A has a grant: an early packet must not take its receive. */
Test(admission_early, what_was_promised_to_another_is_left)
{
	struct pair *p = pair_new();

	cr_assert_eq(arrives(p, p->a, 0), UR_DROP_RNR);
	cr_assert_eq(arrives(p, p->b, 0), UR_DROP_RNR);
	post(p, 1);
	cr_assert_eq(arrives(p, p->a, 0), UR_DROP_NONE);
	cr_assert_eq(p->srq.adm.status, UR_ADM_NB);
	cr_assert_eq(p->b->adm.refusal.queue_class, UR_ADM_CLASS_B);
	post(p, 3);
	cr_assert(p->b->adm.refusal.granted);
	expect_left(p, 3, 2, 0);
	cr_assert_eq(arrives(p, p->a, 3), UR_DROP_RNR, "it would take three");
	expect_left(p, 3, 2, 0);
	cr_assert_eq(arrives(p, p->a, 2), UR_DROP_NONE);
	expect_left(p, 1, 0, 0);
	cr_assert_eq(arrives(p, p->a, 3), UR_DROP_RNR);
	expect_left(p, 1, 0, 0);
	cr_assert_eq(arrives(p, p->b, 0), UR_DROP_NONE);
	cr_assert_eq(arrives(p, p->a, 1), UR_DROP_NONE);
	expect_left(p, 0, 0, 0);
	cr_assert_eq(completed(p), 4);
	cr_assert_eq(end_counters(p->e)->adm_accepted, 4);
	cr_assert_eq(end_counters(p->e)->adm_refused, 2);
	pair_free(p);
}
