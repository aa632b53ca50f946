/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "end.h"

static int post_flags(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len,
		      unsigned flags)
{
	struct ibv_send_wr wr = end_wr(e, id, opcode);

	wr.send_flags = flags;
	return end_post(e, wr, 0, len);
}

static int post_invalidate(struct end *e, uint64_t id, uint32_t key)
{
	struct ibv_send_wr wr = end_wr(e, id, IBV_WR_LOCAL_INV);

	wr.invalidate_rkey = key;
	return end_post(e, wr, 0, 0);
}

Test(requester, message_is_cut_into_packets_of_a_pmtu)
{
	struct end *e = END();

	for (unsigned i = 0; i < 600; i++)
		e->buf[i] = (uint8_t)(i * 3 + i / 256);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 600);
	end_expect(e, UR_RC_WRITE_FIRST, 1000);
	cr_assert_eq(e->out.reth.va, 0x7000);
	cr_assert_eq(e->out.reth.rkey, 0x8000);
	cr_assert_eq(e->out.reth.length, 600);
	cr_assert_eq(e->out.payload_len, 256);
	cr_assert(!e->out.bth.ackreq);
	end_expect(e, UR_RC_WRITE_MIDDLE, 1001);
	end_expect(e, UR_RC_WRITE_LAST, 1002);
	cr_assert_eq(e->out.payload_len, 88);
	cr_assert_eq(memcmp(e->out.payload, e->buf + 512, 88), 0);
	cr_assert(e->out.bth.ackreq);
	end_expect_silence(e);
	end_free(e);
}

Test(requester, opcode_tells_operation_place_and_what_follows)
{
	static const struct {
		enum ibv_wr_opcode wr;
		uint32_t len;
		uint8_t opcode[2];
	} cases[] = {
		{IBV_WR_SEND, 0, {UR_RC_SEND_ONLY}},
		{IBV_WR_SEND, 257, {UR_RC_SEND_FIRST, UR_RC_SEND_LAST}},
		{IBV_WR_SEND_WITH_IMM, 256, {UR_RC_SEND_ONLY_IMM}},
		{IBV_WR_SEND_WITH_IMM, 512, {UR_RC_SEND_FIRST, UR_RC_SEND_LAST_IMM}},
		{IBV_WR_SEND_WITH_INV, 1, {UR_RC_SEND_ONLY_INV}},
		{IBV_WR_SEND_WITH_INV, 257, {UR_RC_SEND_FIRST, UR_RC_SEND_LAST_INV}},
		{IBV_WR_RDMA_WRITE, 0, {UR_RC_WRITE_ONLY}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 1, {UR_RC_WRITE_ONLY_IMM}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 257, {UR_RC_WRITE_FIRST, UR_RC_WRITE_LAST_IMM}},
		{IBV_WR_RDMA_READ, 0, {UR_RC_READ_REQUEST}},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 8, {UR_RC_COMPARE_SWAP}},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, {UR_RC_FETCH_ADD}},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end *e = END();

		end_send(e, 1, cases[i].wr, cases[i].len);
		end_expect(e, cases[i].opcode[0], 1000);
		if (cases[i].len > 256)
			end_expect(e, cases[i].opcode[1], 1001);
		end_expect_silence(e);
		end_free(e);
	}
}

Test(requester, atomic_request_carries_its_operands)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	end_send(e, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_expect(e, UR_RC_COMPARE_SWAP, 1000);
	cr_assert_eq(e->out.atomiceth.va, 0x7000);
	cr_assert_eq(e->out.atomiceth.compare, 5);
	cr_assert_eq(e->out.atomiceth.swap_add, 6);
	end_expect(e, UR_RC_FETCH_ADD, 1001);
	cr_assert_eq(e->out.atomiceth.swap_add, 5);
	end_free(e);
}

/* RC-REQ-WINDOW-01 */
Test(requester, no_more_than_the_window_is_in_flight)
{
	struct end *e = END(.window = 4);

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 6);
	for (uint32_t psn = 1000; psn < 1004; psn++)
		cr_assert_eq(end_out(e)->bth.psn.v, psn);
	/* RC-REQ-ACK-01: the window does not close without an AckReq. */
	cr_assert(e->out.bth.ackreq);
	end_expect_silence(e);
	cr_assert_eq(end_ack(e, 1001, 0x1f, 0), UR_DROP_NONE);
	end_expect(e, UR_RC_WRITE_MIDDLE, 1004);
	end_expect(e, UR_RC_WRITE_LAST, 1005);
	end_expect_silence(e);
	end_free(e);
}

/* RC-REQ-ACK-01 */
Test(requester, ack_is_requested_when_a_completion_depends_on_it)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_NONE);
	post_flags(e, 2, IBV_WR_SEND, 4, 0);
	post_flags(e, 3, IBV_WR_SEND, 4, IBV_SEND_SIGNALED);
	post_flags(e, 4, IBV_WR_SEND, 4, 0);
	post_flags(e, 5, IBV_WR_SEND, 4, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert(!e->out.bth.ackreq);
	end_expect(e, UR_RC_SEND_ONLY, 1002);
	cr_assert(e->out.bth.ackreq, "signalled");
	end_expect(e, UR_RC_SEND_ONLY, 1003);
	cr_assert(!e->out.bth.ackreq);
	end_expect(e, UR_RC_SEND_ONLY, 1004);
	cr_assert(e->out.bth.ackreq, "nothing follows");
	end_free(e);
}

/* RC-REQ-ACK-01 */
Test(requester, until_credits_are_known_every_message_asks)
{
	struct end *e = END();

	post_flags(e, 1, IBV_WR_SEND, 4, 0);
	post_flags(e, 2, IBV_WR_SEND, 4, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert(e->out.bth.ackreq);
	end_free(e);
}

/* RC-REQ-ACK-01 */
Test(requester, ack_is_asked_for_every_so_many_packets)
{
	struct end *e = END(.ackreq_every = 3);

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 8);
	for (unsigned i = 1; i <= 8; i++)
		cr_assert_eq(end_out(e)->bth.ackreq, i == 3 || i == 6 || i == 8, "packet %u", i);
	end_free(e);
}

/* Informs the requester that there is no flow control. */
static void say_hello(struct end *e)
{
	end_send(e, 0, IBV_WR_SEND, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_NONE);
	end_expect_wc(e, 0, IBV_WC_SUCCESS);
}

static void post_unreadable(struct end *e, uint64_t id)
{
	struct ibv_send_wr wr = end_wr(e, id, IBV_WR_SEND);
	struct ibv_sge sge = {(uintptr_t)e->buf, 4, 0x5555};

	wr.sg_list = &sge;
	wr.num_sge = 1;
	cr_assert_eq(ur_sq_post(&e->qp->sq, e->qp->posted_state, &wr, false), 0);
	ur_engine_doorbell(e->engine, e->qp, e->now_ns);
}

/* RC-REQ-ERR-01, RC-REQ-ACK-02 */
Test(requester, request_that_cannot_be_read_fails_after_what_came_before)
{
	struct end *e = END();

	say_hello(e);
	post_flags(e, 1, IBV_WR_SEND, 4, 0);
	post_unreadable(e, 2);
	end_send(e, 3, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert(!e->out.bth.ackreq);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert(e->out.bth.ackreq, "the ACK had not been requested");
	end_expect_silence(e);
	end_expect_no_wc(e);
	cr_assert_eq(end_ack(e, 1001, 0x1f, 2), UR_DROP_NONE);
	end_expect_wc(e, 2, IBV_WC_LOC_PROT_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_expect_silence(e);
	end_free(e);
}

/* RC-REQ-ERR-01 */
Test(requester, request_that_fails_first_fails_at_once)
{
	struct end *e = END();

	post_unreadable(e, 1);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_LOC_PROT_ERR);
	end_free(e);
}

/* RC-REQ-LEN-01 */
Test(requester, message_of_2_to_the_23_packets_is_refused)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 1u << 31);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_LOC_LEN_ERR);
	end_free(e);
}

/* RC-REQ-READ-01 */
Test(requester, long_read_is_asked_for_in_parts)
{
	struct end *e = END(.window = 16, .rd_atomic = 2); /* 4 PSNs a request */

	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 9 + 1);
	end_expect(e, UR_RC_READ_REQUEST, 1000);
	cr_assert_eq(e->out.reth.va, 0x7000);
	cr_assert_eq(e->out.reth.length, 1024);
	end_expect(e, UR_RC_READ_REQUEST, 1004);
	cr_assert_eq(e->out.reth.va, 0x7400);
	end_expect_silence(e);
	for (uint32_t psn = 1000; psn < 1004; psn++)
		cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_MIDDLE, psn, 256), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_REQUEST, 1008);
	cr_assert_eq(e->out.reth.length, 257);
	end_expect_silence(e);
	end_free(e);
}

/* RC-REQ-READ-01 */
Test(requester, window_of_4_and_one_read_at_a_time_still_make_progress)
{
	struct end *e = END(.window = 4, .rd_atomic = 1);

	end_send(e, 1, IBV_WR_RDMA_READ, 600);
	for (uint32_t i = 0; i < 3; i++) {
		end_expect(e, UR_RC_READ_REQUEST, 1000 + i);
		cr_assert_eq(e->out.reth.length, i < 2 ? 256 : 88);
		end_expect_silence(e);
		cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000 + i, i < 2 ? 256 : 88),
			     UR_DROP_NONE);
	}
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_free(e);
}

/* RC-REQ-READ-01 */
Test(requester, without_read_resources_a_read_fails)
{
	struct end *e = END(.no_rd = true);

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_LOC_QP_OP_ERR);
	end_free(e);
}

/* RC-REQ-FENCE-01 */
Test(requester, fenced_request_waits_for_reads_before_it)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	post_flags(e, 2, IBV_WR_SEND, 4, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	end_expect(e, UR_RC_READ_REQUEST, 1000);
	end_expect_silence(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 4), UR_DROP_NONE);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	end_free(e);
}

/* RC-REQ-LOCAL-01 */
Test(requester, local_invalidate_waits_until_what_came_before_need_not_be_sent_again)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 4);
	cr_assert_eq(post_invalidate(e, 2, e->key), 0);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	end_expect_silence(e);
	cr_assert_not_null(ur_mem_check(e->mem, e->key, END_PD, (uintptr_t)e->buf, 1, 0));
	end_sleep(e, END_TIMEOUT_NS + 2000);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_NONE);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	cr_assert_null(ur_mem_check(e->mem, e->key, END_PD, (uintptr_t)e->buf, 1, 0));
	end_free(e);
}

Test(requester, local_invalidate_of_a_stranger_fails)
{
	struct end *e = END();

	cr_assert_eq(post_invalidate(e, 1, 0x5555), 0);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_MW_BIND_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_free(e);
}

/* RC-REQ-CREDIT-01 */
Test(requester, without_credit_one_packet_goes_and_asks)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_ack(e, 1000, 0, 1), UR_DROP_NONE);
	end_send(e, 2, IBV_WR_SEND, 257);
	end_expect(e, UR_RC_SEND_FIRST, 1001);
	cr_assert(e->out.bth.ackreq);
	end_expect_silence(e);
	/* The responder has executed it, so there is a receive. */
	cr_assert_eq(end_ack(e, 1001, 1, 1), UR_DROP_NONE);
	end_expect(e, UR_RC_SEND_LAST, 1002);
	end_free(e);
}

/* RC-REQ-CREDIT-01 */
Test(requester, sends_go_as_far_as_the_credits_and_writes_further)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_ack(e, 1000, 2, 1), UR_DROP_NONE);
	for (unsigned i = 2; i < 4; i++)
		post_flags(e, i, IBV_WR_SEND, 4, 0);
	post_flags(e, 4, IBV_WR_RDMA_WRITE, 4, 0);
	post_flags(e, 5, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert(!e->out.bth.ackreq);
	end_expect(e, UR_RC_SEND_ONLY, 1002);
	cr_assert(e->out.bth.ackreq, "the last credit");
	end_expect(e, UR_RC_WRITE_ONLY, 1003);
	end_expect_silence(e);
	/* A repeated ACK brings credits: 3 messages completed, 5 receives in total. */
	cr_assert_eq(end_ack(e, 1000, 4, 1), UR_DROP_NONE);
	end_expect(e, UR_RC_WRITE_ONLY_IMM, 1004);
	end_free(e);
}

/* RC-REQ-DRAIN-01 */
Test(requester, draining_queue_ends_its_message_and_begins_no_other)
{
	struct end *e = END(.window = 4);

	end_send(e, 1, IBV_WR_SEND, 256 * 5);
	end_send(e, 2, IBV_WR_SEND, 4);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(end_modify(e, IBV_QPS_SQD, (struct ibv_qp_attr){.en_sqd_async_notify = 1},
				IBV_QP_EN_SQD_ASYNC_NOTIFY),
		     0);
	cr_assert_eq(end_ack(e, 1003, 0x1f, 0), UR_DROP_NONE);
	end_expect(e, UR_RC_SEND_LAST, 1004);
	cr_assert(e->out.bth.ackreq);
	cr_assert_eq(end_async(e, IBV_EVENT_SQ_DRAINED), 0);
	cr_assert_eq(end_ack(e, 1004, 0x1f, 1), UR_DROP_NONE);
	cr_assert_eq(end_async(e, IBV_EVENT_SQ_DRAINED), 1);
	end_expect_silence(e);
	cr_assert_eq(end_modify(e, IBV_QPS_RTS, (struct ibv_qp_attr){0}, 0), 0);
	end_expect(e, UR_RC_SEND_ONLY, 1005);
	end_free(e);
}

/* RC-REQ-DRAIN-01, RC-REQ-ACK-02 */
Test(requester, draining_queue_requests_the_ack_that_was_not_requested)
{
	struct end *e = END(.no_timeout = true);

	say_hello(e);
	post_flags(e, 1, IBV_WR_SEND, 4, 0);
	post_flags(e, 2, IBV_WR_SEND, 4, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert(!e->out.bth.ackreq);
	cr_assert_eq(end_modify(e, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert(e->out.bth.ackreq);
	end_expect_silence(e);
	cr_assert_eq(end_ack(e, 1001, 0x1f, 2), UR_DROP_NONE);
	cr_assert(e->qp->drained);
	end_free(e);
}

/* QP-FLUSH-01 */
Test(requester, what_is_posted_after_an_error_is_flushed)
{
	struct end *e = END();

	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	end_send(e, 1, IBV_WR_SEND, 4);
	end_post_recv(e, 2, 0, 64);
	end_expect_wc(e, 1, IBV_WC_WR_FLUSH_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	end_expect_silence(e);
	end_free(e);
}

/* QP-FLUSH-01 */
Test(requester, flush_completes_in_order_what_was_posted_and_what_was_sent)
{
	struct end *e = END();

	for (unsigned i = 1; i < 4; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	for (unsigned i = 1; i < 4; i++)
		end_expect_wc(e, i, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_QP_STATE);
	end_expect_silence(e);
	end_free(e);
}

/* UC-REQ-DONE-01 */
Test(requester, uc_request_completes_when_its_packets_have_been_taken_away)
{
	struct end *e = END(.type = IBV_QPT_UC);

	end_send(e, 1, IBV_WR_SEND, 257);
	end_expect(e, UR_UC_SEND_FIRST, 1000);
	end_expect(e, UR_UC_SEND_LAST, 1001);
	cr_assert(!e->out.bth.ackreq);
	end_expect_no_wc(e);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(ur_engine_next_deadline(e->engine), UR_NEVER);
	end_free(e);
}
