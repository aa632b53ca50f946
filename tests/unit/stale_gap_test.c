/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "end.h"
#include "transport/rc/ext.h"

/* A gap that the peer does not close. The responder is extended; ePSN is 100, PMTU 256. */
#define SECOND UINT64_C(1000000000)

static struct ur_srq srq;

static void start_srq(unsigned receives)
{
	ur_srq_init(&srq, aligned_alloc(64, (ur_rq_ring_bytes(256, 4) + 63) & ~63ul), 256, 4,
		    END_PD, NULL);
	for (unsigned i = 0; i < receives; i++) {
		struct ibv_recv_wr wr = {.wr_id = i};

		cr_assert_eq(ur_rq_post(&srq.rq, &wr), 0);
	}
}

/* Message `n` of the peer, from 0: a SEND of one packet, without payload. */
static enum ur_drop arrives(struct end *e, uint32_t n)
{
	struct ur_packet p = end_packet(e, UR_EXT_SEND_ONLY, END_RQ_PSN + n, 0);

	p.xth = (struct ur_xth){.stamp = n + 1,
				.ssn = (ur_first_ssn(ur_psn(END_RQ_PSN)).v + n) & UR_PSN_MASK,
				.flags = UR_XTH_RECV,
				.rwqen = n};
	return end_in(e, p);
}

static unsigned contexts(const struct end *e)
{
	return e->qp->core->ooo.held_cnt;
}

/* EXT-RESP-STALE-01 */
Test(stale_gap, queue_pair_ends_and_gives_back_what_it_held)
{
	struct end *e;

	start_srq(200);
	e = END(.mode = UR_MODE_EXTENDED, .srq = &srq);
	cr_assert_eq(arrives(e, 63), UR_DROP_NONE);
	cr_assert_eq(ur_wq_cnt(&srq.rq), 200 - 64);
	cr_assert_eq(contexts(e), 1);
	end_drain(e);
	end_sleep(e, 10 * SECOND - 1000000);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_expect_silence(e);
	end_sleep(e, 2000000);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	cr_assert_eq(contexts(e), 0);
	/* The peer gets a NAK, and the receives are flushed. */
	cr_assert_eq(end_expect(e, UR_EXT_ACKNOWLEDGE, END_RQ_PSN)->aeth.syndrome,
		     UR_SYNDROME_NAK | UR_NAK_INV_REQ);
	for (unsigned i = 0; i < 64; i++)
		end_expect_wc(e, i, IBV_WC_WR_FLUSH_ERR);
	end_expect_no_wc(e);
	cr_assert_eq(end_async(e, IBV_EVENT_QP_REQ_ERR), 1);
	cr_assert_eq(end_counters(e)->stale_gap_err, 1);
	end_free(e);
	free(srq.rq.ring);
}

/* EXT-RESP-STALE-01: a peer that keeps retransmitting without a receive is not at fault. */
Test(stale_gap, peer_that_makes_progress_does_not_fail)
{
	struct end *e;

	start_srq(3);
	e = END(.mode = UR_MODE_EXTENDED, .srq = &srq, .timeout = 19, .retry_cnt = 7);
	/* 8 * 8 * 2.1 s */
	cr_assert_eq(arrives(e, 1), UR_DROP_NONE);
	for (unsigned i = 0; i < 3; i++) {
		end_drain(e);
		end_sleep(e, 134 * SECOND);
		cr_assert_eq(e->qp->state, IBV_QPS_RTS);
		/* A packet beyond the window is not progress, */
		cr_assert_neq(arrives(e, 2 + UR_EXT_WINDOW), UR_DROP_NONE);
		if (i < 2) {
			/* but one that fills the gap is, although there is a new gap at once. */
			cr_assert_eq(arrives(e, 2 * i), UR_DROP_NONE);
			end_expect_wc(e, 2 * i, IBV_WC_SUCCESS);
			end_expect_wc(e, 2 * i + 1, IBV_WC_SUCCESS);
			for (unsigned r = 0; r < 4; r++) {
				struct ibv_recv_wr wr = {.wr_id = 3 + 4 * i + r};

				cr_assert_eq(ur_rq_post(&srq.rq, &wr), 0);
			}
			cr_assert_eq(arrives(e, 2 * i + 3), UR_DROP_NONE);
		}
	}
	end_sleep(e, 4 * SECOND);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_free(e);
	free(srq.rq.ring);
}

/* EXT-RESP-STALE-01 */
Test(stale_gap, gap_behind_a_message_without_a_receive_is_patient)
{
	struct ibv_recv_wr wr = {.wr_id = 7};
	struct ur_packet w;
	struct end *e = END(.mode = UR_MODE_EXTENDED);

	w = end_packet(e, UR_EXT_WRITE_ONLY, END_RQ_PSN + 1, 0);
	w.xth = (struct ur_xth){.ssn = (ur_first_ssn(ur_psn(END_RQ_PSN)).v + 1) & UR_PSN_MASK};
	cr_assert_eq(end_in(e, w), UR_DROP_NONE);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(arrives(e, 0), UR_DROP_RNR);
		end_drain(e);
		end_sleep(e, SECOND);
	}
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	cr_assert_eq(ur_rq_post(&e->qp->rq, &wr), 0);
	cr_assert_eq(arrives(e, 0), UR_DROP_NONE);
	end_expect_wc(e, 7, IBV_WC_SUCCESS);
	cr_assert_eq(contexts(e), 0);
	end_sleep(e, 100 * SECOND);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

/* EXT-RESP-STALE-01 */
Test(stale_gap, limit_follows_the_timeout)
{
	static const struct {
		uint8_t timeout, retry_cnt;
		uint64_t s;
	} want[] = {{14, 7, 10},  {18, 7, 68},	{20, 7, 274},
		    {31, 7, 600}, {31, 0, 600}, {0, 7, 600}};

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct ur_qp qp = {
			.attr = {.timeout = want[i].timeout, .retry_cnt = want[i].retry_cnt}};

		cr_assert_eq(ur_ext_gap_limit_ns(&qp) / SECOND, want[i].s, "case %u", i);
	}
}

/* REORDER-SHARE-01 */
Test(stale_gap, queue_pair_leaves_slots_to_others)
{
	struct end *e = END(.mode = UR_MODE_REORDER, .reorder_slots = 100, .contexts = 2);
	const struct ur_reorder_pool *pool = &e->qp->core->reorder;
	struct ur_qp *other = end_add_qp(e);
	uint32_t held[2] = {0, 0};

	/* One after the other, so that the first one has taken all contexts that it can get. */
	for (unsigned q = 0; q < 2; q++)
		for (uint32_t i = 1; i < 100; i++) {
			struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, END_RQ_PSN + i, 0);

			p.bth.dqpn = (q ? other : e->qp)->qpn;
			held[q] += end_in(e, p) == UR_DROP_NONE;
		}
	cr_assert_eq(held[0], 80);
	cr_assert_eq(held[1], 16);
	cr_assert_eq(pool->slots_free, 4);
	end_free(e);
}
