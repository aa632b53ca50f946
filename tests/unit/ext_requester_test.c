/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "ext_end.h"

/* PMTU 256. With a window of 64, READs are requested in parts of 16 packets; with 16, in parts of 4. */

static struct ur_selective_env env_of(struct end *e)
{
	struct ur_ext_requester *x = &e->qp->xreq;

	return (struct ur_selective_env){&ur_engine_core(e->engine)->rtx, &x->rtt, &x->tx_times};
}

static int post_flags(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len,
		      unsigned flags)
{
	struct ibv_send_wr wr = end_wr(e, id, opcode);

	wr.send_flags = flags;
	wr.imm_data = 0x04030201; /* or the key to invalidate */
	return end_post(e, wr, 0, len);
}

static void fill(struct end *e, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		e->buf[i] = (uint8_t)(i * 3 + i / 256);
}

/* ---- packets ---- */

/* EXT-REQ-HDR-01 */
Test(ext_requester, every_packet_of_a_write_says_where_all_of_it_goes)
{
	struct end *e = XEND();

	fill(e, 600);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 600);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint8_t op[] = {UR_EXT_WRITE_FIRST, UR_EXT_WRITE_MIDDLE,
					     UR_EXT_WRITE_LAST};

		xend_expect(e, op[i], 1000 + i);
		cr_assert_eq(e->out.reth.va, 0x7000);
		cr_assert_eq(e->out.reth.rkey, 0x8000);
		cr_assert_eq(e->out.reth.length, 600);
		cr_assert_eq(e->out.xth.ssn, 1);
		cr_assert_eq(e->out.xth.offset, i);
		cr_assert_eq(e->out.xth.flags, 0);
		cr_assert_eq(e->out.xth.path, 0);
		cr_assert_eq(e->out.xth.rwqen, 0);
		cr_assert_eq(e->out.payload_len, i < 2 ? 256 : 88);
		cr_assert_eq(memcmp(e->out.payload, e->buf + 256 * i, e->out.payload_len), 0);
		cr_assert_eq(e->out.bth.ackreq, i == 2);
	}
	xend_expect_silence(e);
	xend_free(e);
}

/* EXT-REQ-HDR-01 */
Test(ext_requester, opcode_tells_operation_place_and_what_follows)
{
	static const struct {
		enum ibv_wr_opcode wr;
		uint32_t len;
		uint8_t opcode[2];
	} cases[] = {
		{IBV_WR_SEND, 0, {UR_EXT_SEND_ONLY}},
		{IBV_WR_SEND, 257, {UR_EXT_SEND_FIRST, UR_EXT_SEND_LAST}},
		{IBV_WR_SEND_WITH_IMM, 256, {UR_EXT_SEND_ONLY_IMM}},
		{IBV_WR_SEND_WITH_IMM, 512, {UR_EXT_SEND_FIRST, UR_EXT_SEND_LAST_IMM}},
		{IBV_WR_SEND_WITH_INV, 1, {UR_EXT_SEND_ONLY_INV}},
		{IBV_WR_SEND_WITH_INV, 257, {UR_EXT_SEND_FIRST, UR_EXT_SEND_LAST_INV}},
		{IBV_WR_RDMA_WRITE, 0, {UR_EXT_WRITE_ONLY}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 1, {UR_EXT_WRITE_ONLY_IMM}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 257, {UR_EXT_WRITE_FIRST, UR_EXT_WRITE_LAST_IMM}},
		{IBV_WR_RDMA_READ, 0, {UR_EXT_READ_REQUEST}},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 8, {UR_EXT_COMPARE_SWAP}},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, {UR_EXT_FETCH_ADD}},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end *e = XEND();

		post_flags(e, 1, cases[i].wr, cases[i].len, IBV_SEND_SIGNALED);
		xend_expect(e, cases[i].opcode[0], 1000);
		if (cases[i].len > 256)
			xend_expect(e, cases[i].opcode[1], 1001);
		if (e->out.op & UR_OP_IMM)
			cr_assert_eq(e->out.imm, 0x01020304);
		if (e->out.op & UR_OP_IETH)
			cr_assert_eq(e->out.ieth, 0x04030201);
		xend_expect_silence(e);
		xend_free(e);
	}
}

/* EXT-REQ-HDR-01 */
Test(ext_requester, messages_that_consume_a_receive_are_numbered_in_all_their_packets)
{
	static const struct {
		enum ibv_wr_opcode wr;
		uint32_t len, rwqen;
		bool recv;
	} posts[] = {
		{IBV_WR_SEND, 300, 0, true},
		{IBV_WR_RDMA_WRITE, 300, 0, false},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 300, 1, true},
		{IBV_WR_RDMA_READ, 4, 0, false},
		{IBV_WR_SEND_WITH_INV, 0, 2, true},
	};
	struct end *e = XEND();

	for (uint32_t i = 0; i < 5; i++) {
		post_flags(e, i, posts[i].wr, posts[i].len, IBV_SEND_SIGNALED);
		for (uint32_t at = 0; at < (posts[i].len > 256 ? 2 : 1); at++) {
			cr_assert_not_null(xend_out(e));
			cr_assert_eq(e->out.xth.ssn, i + 1);
			cr_assert_eq(e->out.xth.offset, at);
			cr_assert_eq(!!(e->out.xth.flags & UR_XTH_RECV), posts[i].recv);
			cr_assert_eq(e->out.xth.rwqen, posts[i].rwqen);
		}
	}
	xend_free(e);
}

/* EXT-REQ-HDR-01 */
Test(ext_requester, inline_data_and_solicited_events_go_out)
{
	struct end *e = XEND();

	memcpy(e->buf, "inline", 6);
	post_flags(e, 1, IBV_WR_SEND, 6, IBV_SEND_INLINE | IBV_SEND_SOLICITED);
	memset(e->buf, 0, 6);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert(e->out.bth.solicited);
	cr_assert_eq(memcmp(e->out.payload, "inline", 6), 0);
	xend_free(e);
}

/* EXT-REQ-HDR-01 */
Test(ext_requester, atomic_carries_its_operands)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	end_send(e, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	xend_expect(e, UR_EXT_COMPARE_SWAP, 1000);
	cr_assert_eq(e->out.atomiceth.va, 0x7000);
	cr_assert_eq(e->out.atomiceth.rkey, 0x8000);
	cr_assert_eq(e->out.atomiceth.compare, 5);
	cr_assert_eq(e->out.atomiceth.swap_add, 6);
	xend_expect(e, UR_EXT_FETCH_ADD, 1001);
	cr_assert_eq(e->out.atomiceth.swap_add, 5);
	cr_assert_eq(e->out.xth.ssn, 2);
	xend_free(e);
}

/* EXT-REQ-PSN-01 */
Test(ext_requester, each_part_of_a_read_takes_one_psn)
{
	struct end *e = XEND(.window = 16, .rd_atomic = 3);

	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 9 + 1);
	end_send(e, 2, IBV_WR_SEND, 4);
	for (uint32_t i = 0; i < 3; i++) {
		xend_expect(e, UR_EXT_READ_REQUEST, 1000 + i);
		cr_assert_eq(e->out.reth.va, 0x7000 + 1024 * i);
		cr_assert_eq(e->out.reth.length, i < 2 ? 1024 : 257);
		cr_assert_eq(e->out.xth.ssn, 1);
		cr_assert_eq(e->out.xth.offset, 4 * i);
		cr_assert_eq(e->out.xth.flags, i < 2 ? 0 : UR_XTH_LAST_READ);
	}
	xend_expect(e, UR_EXT_SEND_ONLY, 1003);
	cr_assert_eq(e->out.xth.ssn, 2);
	xend_free(e);
}

/* ---- when ---- */

/* EXT-REQ-WINDOW-01 */
Test(ext_requester, no_more_than_the_window_is_in_flight)
{
	struct end *e = XEND(.window = 4);

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 6);
	for (uint32_t psn = 1000; psn < 1004; psn++)
		cr_assert_eq(xend_out(e)->bth.psn.v, psn);
	cr_assert(e->out.bth.ackreq, "it does not close without an ACK on its way");
	xend_expect_silence(e);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 0, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_WRITE_MIDDLE, 1004);
	xend_expect(e, UR_EXT_WRITE_LAST, 1005);
	xend_expect_silence(e);
	xend_free(e);
}

/* EXT-REQ-WINDOW-01 */
Test(ext_requester, read_waits_until_its_responses_have_room)
{
	struct end *e = XEND(.window = 8, .rd_atomic = 16); /* 2 packets a part */

	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 12);
	cr_assert_eq(xend_drain(e), 4);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 256, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 1, 1, 1000, 256, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1004);
	xend_expect_silence(e);
	xend_free(e);
}

/* EXT-REQ-ACK-01 */
Test(ext_requester, ack_is_requested_when_a_completion_depends_on_it)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert(e->out.bth.ackreq, "whether there is flow control is not known");
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	post_flags(e, 2, IBV_WR_SEND, 4, 0);
	post_flags(e, 3, IBV_WR_SEND, 4, IBV_SEND_SIGNALED);
	post_flags(e, 4, IBV_WR_SEND, 4, 0);
	post_flags(e, 5, IBV_WR_SEND, 4, 0);
	for (uint32_t i = 0; i < 4; i++) {
		xend_expect(e, UR_EXT_SEND_ONLY, 1001 + i);
		cr_assert_eq(e->out.bth.ackreq, i & 1);
	}
	xend_free(e);
}

/* EXT-REQ-ACK-01 */
Test(ext_requester, ack_is_asked_for_every_so_many_packets)
{
	struct end *e = XEND(.ackreq_every = 3);

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 8);
	for (unsigned i = 1; i <= 8; i++)
		cr_assert_eq(xend_out(e)->bth.ackreq, i == 3 || i == 6 || i == 8, "packet %u", i);
	xend_free(e);
}

/* EXT-REQ-CREDIT-01 */
Test(ext_requester, without_credit_one_packet_goes_and_asks)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert_eq(xend_ack(e, 1001, 0, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_send(e, 2, IBV_WR_SEND, 257);
	xend_expect(e, UR_EXT_SEND_FIRST, 1001);
	cr_assert(e->out.bth.ackreq);
	xend_expect_silence(e);
	/* MSN 1 and one receive: message 2 may be sent. */
	cr_assert_eq(xend_ack(e, 1002, 1, 1, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_SEND_LAST, 1002);
	/* A WRITE needs none. */
	end_send(e, 3, IBV_WR_SEND, 4);
	xend_expect_silence(e);
	end_free(e);
	e = XEND();
	end_send(e, 1, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert_eq(xend_ack(e, 1001, 0, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_send(e, 2, IBV_WR_RDMA_WRITE, 4);
	end_send(e, 3, IBV_WR_RDMA_WRITE, 4);
	cr_assert_eq(xend_drain(e), 2);
	xend_free(e);
}

/* EXT-REQ-READ-01 */
Test(ext_requester, no_more_reads_and_atomics_than_allowed_wait_for_the_peer)
{
	struct end *e = XEND(.rd_atomic = 2);

	end_send(e, 1, IBV_WR_RDMA_READ, 300);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	end_send(e, 3, IBV_WR_RDMA_READ, 4);
	end_send(e, 4, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 2);
	/* Its second response has not been sent yet. */
	cr_assert_eq(xend_read(e, 1, 0, 1000, 256, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 1, 1, 1000, 44, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1002);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 2, 0, 1001, 4, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1003);
	xend_free(e);
}

/* EXT-COMP-PASS-01 */
Test(ext_requester, lost_responses_take_no_place_at_the_peer)
{
	struct end *e = XEND(.rd_atomic = 2);

	end_send(e, 1, IBV_WR_RDMA_READ, 300);
	end_send(e, 2, IBV_WR_RDMA_READ, 300);
	end_send(e, 3, IBV_WR_RDMA_READ, 4);
	end_send(e, 4, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 2);
	/* Both responses of the first are lost, because they were sent before this one. */
	cr_assert_eq(xend_read(e, 2, 0, 1001, 256, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1002);
	xend_expect_silence(e);
	/* The last response of the second shows that it has been answered completely. */
	cr_assert_eq(xend_read(e, 2, 1, 1001, 44, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1003);
	/* A late response has no effect. */
	cr_assert_eq(xend_read(e, 1, 1, 1000, 44, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_eq(ur_ext_reads_out(&e->qp->xreq), 2);
	xend_free(e);
}

/* EXT-COMP-PASS-01 */
Test(ext_requester, a_part_of_a_read_is_passed_with_its_last_response)
{
	struct end *e = XEND(.rd_atomic = 2);

	/* A window of 64 makes parts of 8. */
	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 24);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	xend_expect(e, UR_EXT_READ_REQUEST, 1001);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 1, 6, 1000, 256, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 1, 7, 1000, 256, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1002);
	cr_assert_eq(xend_read(e, 1, 23, 1002, 256, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_eq(ur_ext_reads_out(&e->qp->xreq), 0);
	xend_free(e);
}

/* EXT-REQ-ATOMIC-01 */
Test(ext_requester, result_of_an_atomic_is_not_pushed_out_of_the_peers_memory)
{
	struct end *e = XEND(.rd_atomic = 2);

	end_send(e, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	end_send(e, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_send(e, 4, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 2);
	cr_assert_eq(xend_read(e, 2, 0, 1001, 4, e->out.xth.stamp), UR_DROP_NONE);
	cr_assert_eq(ur_ext_reads_out(&e->qp->xreq), 0);
	xend_expect_silence(e);
	cr_assert_eq(xend_atomic(e, 1, 1000, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_FETCH_ADD, 1002);
	xend_expect(e, UR_EXT_READ_REQUEST, 1003);
	cr_assert_eq(xend_read(e, 4, 0, 1003, 4, e->out.xth.stamp), UR_DROP_NONE);
	end_send(e, 5, IBV_WR_RDMA_READ, 4);
	xend_expect_silence(e);
	cr_assert_eq(xend_atomic(e, 3, 1002, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1004);
	xend_free(e);
}

/* EXT-REQ-FENCE-01 */
Test(ext_requester, fenced_request_waits_for_the_answers_before_it)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	post_flags(e, 2, IBV_WR_SEND, 4, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 1, 0, 1000, 4, e->out.xth.stamp), UR_DROP_NONE);
	xend_expect(e, UR_EXT_SEND_ONLY, 1001);
	xend_free(e);
}

/* EXT-REQ-LOCAL-01 */
Test(ext_requester, local_invalidate_waits_for_what_may_be_sent_again)
{
	struct end *e = XEND();
	struct ibv_send_wr wr = end_wr(e, 2, IBV_WR_LOCAL_INV);

	end_send(e, 1, IBV_WR_SEND, 4);
	wr.invalidate_rkey = e->key;
	cr_assert_eq(end_post(e, wr, 0, 0), 0);
	end_send(e, 3, IBV_WR_SEND, 0);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert(e->out.bth.ackreq);
	xend_expect_silence(e);
	cr_assert_not_null(ur_mem_check(e->mem, e->key, END_PD, (uintptr_t)e->buf, 1, 0));
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	xend_expect(e, UR_EXT_SEND_ONLY, 1001);
	cr_assert_eq(e->out.xth.ssn, 2, "a local operation takes no SSN");
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	cr_assert_null(ur_mem_check(e->mem, e->key, END_PD, (uintptr_t)e->buf, 1, 0));
	xend_free(e);
}

/* ---- local failures ---- */

static void post_unreadable(struct end *e, uint64_t id)
{
	struct ibv_send_wr wr = end_wr(e, id, IBV_WR_SEND);
	struct ibv_sge sge = {(uintptr_t)e->buf, 4, 0x5555};

	wr.sg_list = &sge;
	wr.num_sge = 1;
	cr_assert_eq(ur_sq_post(&e->qp->sq, e->qp->posted_state, &wr, false), 0);
}

/* EXT-REQ-ERR-01 */
Test(ext_requester, request_that_cannot_be_read_fails_after_what_came_before)
{
	struct end *e = XEND();

	end_send(e, 0, IBV_WR_SEND, 0);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 0, IBV_WC_SUCCESS);
	post_flags(e, 1, IBV_WR_SEND, 4, 0);
	post_unreadable(e, 2);
	end_send(e, 3, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1001);
	cr_assert(!e->out.bth.ackreq);
	xend_expect(e, UR_EXT_PROBE, 1002);
	cr_assert(e->out.bth.ackreq, "the ACK had not been requested");
	xend_expect_silence(e);
	end_expect_no_wc(e);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 2, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 2, IBV_WC_LOC_PROT_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	xend_expect_silence(e);
	xend_free(e);
}

/* EXT-REQ-ERR-01 */
Test(ext_requester, what_can_no_longer_be_read_when_it_is_sent_again_fails_in_its_turn)
{
	struct end *e = XEND();
	struct ur_selective_env env;
	uint32_t first, last;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_SEND, 4);
	end_send(e, 3, IBV_WR_RDMA_READ, 4);
	cr_assert_not_null(xend_out(e));
	first = e->out.xth.stamp;
	cr_assert_eq(xend_drain(e), 2);
	last = e->out.xth.stamp;
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, first), UR_DROP_NONE);
	env = env_of(e);
	ur_selective_lose_una(&e->qp->xreq.psn, &env);
	xend_expect_silence(e);
	end_expect_no_wc(e);
	cr_assert_eq(xend_read(e, 3, 0, 1002, 4, last), UR_DROP_PSN_STALE,
		     "it is behind what fails");
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	xend_wait(e);
	xend_free(e);
}

/* RC-REQ-LEN-01 */
Test(ext_requester, message_of_2_to_the_23_packets_is_refused)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_RDMA_READ, 1u << 31);
	xend_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_LOC_LEN_ERR);
	xend_free(e);
}

/* EXT-REQ-ERR-01 */
Test(ext_requester, without_read_resources_a_read_fails)
{
	struct end *e = XEND(.no_rd = true);

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	xend_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_LOC_QP_OP_ERR);
	xend_free(e);
}

/* EXT-REQ-DRAIN-01 */
Test(ext_requester, drained_queue_finishes_its_message_and_begins_no_other)
{
	struct end *e = XEND();

	post_flags(e, 1, IBV_WR_RDMA_WRITE, 600, 0);
	post_flags(e, 2, IBV_WR_RDMA_WRITE, 4, 0);
	xend_expect(e, UR_EXT_WRITE_FIRST, 1000);
	e->qp->state = IBV_QPS_SQD;
	xend_expect(e, UR_EXT_WRITE_MIDDLE, 1001);
	xend_expect(e, UR_EXT_WRITE_LAST, 1002);
	cr_assert(e->out.bth.ackreq);
	xend_expect_silence(e);
	xend_free(e);
}

/* EXT-REQ-DRAIN-01 */
Test(ext_requester, drained_queue_requests_the_ack_that_was_not_requested)
{
	struct end *e = XEND();

	end_send(e, 0, IBV_WR_SEND, 0);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	post_flags(e, 1, IBV_WR_SEND, 4, 0);
	post_flags(e, 2, IBV_WR_SEND, 4, 0);
	xend_expect(e, UR_EXT_SEND_ONLY, 1001);
	ur_ext_requester_drain(e->qp);
	e->qp->state = IBV_QPS_SQD;
	xend_expect(e, UR_EXT_PROBE, 1002);
	xend_expect_silence(e);
	xend_free(e);
}

/* ---- retransmission ---- */

/* Posts requests for every opcode, READs in two parts. Returns the number of packets. */
static unsigned post_of_everything(struct end *e)
{
	fill(e, 4096);
	post_flags(e, 1, IBV_WR_SEND, 600, IBV_SEND_SIGNALED);
	post_flags(e, 2, IBV_WR_RDMA_READ, 1500, IBV_SEND_SIGNALED);
	post_flags(e, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 300, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	post_flags(e, 4, IBV_WR_ATOMIC_CMP_AND_SWP, 8, IBV_SEND_SIGNALED);
	post_flags(e, 5, IBV_WR_SEND_WITH_INV, 257, 0);
	post_flags(e, 6, IBV_WR_SEND, 5, IBV_SEND_INLINE);
	post_flags(e, 7, IBV_WR_RDMA_WRITE, 0, 0);
	return 12;
}

/* Loses each PSN in turn, from the first on. The retransmission must equal the original. */
static void lose_each(uint32_t first_psn, uint32_t first_ssn)
{
	struct end *e = XEND(.window = 16, .rd_atomic = 4, .sq_psn = first_psn);
	static struct frame frame[16];
	uint32_t stamp[16];
	unsigned cnt;

	e->qp->req.ssn = ur_msn(first_ssn);
	cnt = post_of_everything(e);
	for (unsigned i = 0; i < cnt; i++) {
		cr_assert_not_null(xend_out(e));
		cr_assert_eq(e->out.bth.psn.v, (first_psn + i) & UR_PSN_MASK);
		frame[i] = e->out_frame;
		stamp[i] = e->out.xth.stamp;
	}
	xend_expect_silence(e);
	for (unsigned i = 0; i < cnt; i++) {
		struct ur_selective_env env = env_of(e);
		struct ur_packet was;

		if (i)
			cr_assert_eq(xend_ack(e, first_psn + i, 0x1f, 0, stamp[i - 1]),
				     UR_DROP_NONE);
		cr_assert(!ur_ext_requester_ready(e->qp));
		ur_selective_lose_una(&e->qp->xreq.psn, &env);
		cr_assert_not_null(xend_out(e));
		cr_assert_eq(ur_packet_decode(frame[i].b, frame[i].len, &was), UR_DROP_NONE);
		cr_assert_eq(e->out.xth.flags, was.xth.flags | UR_XTH_RETRY);
		cr_assert_eq(e->out_frame.len, frame[i].len);
		/* Stamp, RETRY and AckReq differ, and so the ICRC; nothing else does. */
		memcpy(frame[i].b + was.bth_off + UR_BTH_BYTES,
		       e->out_frame.b + was.bth_off + UR_BTH_BYTES, 4);
		frame[i].b[was.bth_off + UR_BTH_BYTES + 8] |= UR_XTH_RETRY;
		frame[i].b[was.bth_off + 8] = e->out_frame.b[was.bth_off + 8];
		cr_assert_eq(memcmp(frame[i].b, e->out_frame.b, frame[i].len - UR_ICRC_BYTES), 0,
			     "packet %u", i);
		if (!(was.op & (UR_OP_READ_REQ | UR_OP_ATOMIC)))
			cr_assert(e->out.bth.ackreq);
		xend_expect_silence(e);
	}
	cr_assert_eq(end_counters(e)->retransmitted_packets, cnt);
	xend_free(e);
}

/* EXT-REQ-RESEND-01 */
Test(ext_requester, any_packet_comes_again_as_it_was)
{
	lose_each(1000, 1);
}

/* EXT-REQ-RESEND-01 */
Test(ext_requester, any_packet_comes_again_as_it_was_where_numbers_wrap)
{
	for (uint32_t i = 1; i < 12; i++)
		lose_each(UR_PSN_MASK + 1 - i, UR_PSN_MASK - i % 6);
}

/* EXT-REQ-RESEND-01 */
Test(ext_requester, only_what_is_missing_is_sent_again)
{
	struct end *e = XEND(.window = 256);
	uint8_t map[32];
	struct ur_packet p;

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 250);
	cr_assert_eq(xend_drain(e), 250);
	/* 1001 and 1004 have not arrived. */
	memset(map, 0xff, sizeof(map));
	map[0] &= (uint8_t) ~(1u << 2);
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1001, 1001, e->out.xth.stamp, map, 32);
	p.aeth.syndrome = 0x60;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	xend_expect(e, UR_EXT_WRITE_MIDDLE, 1001);
	cr_assert_eq(e->out.xth.offset, 1);
	xend_expect(e, UR_EXT_WRITE_MIDDLE, 1004);
	cr_assert_eq(e->out.xth.offset, 4);
	xend_expect_silence(e);
	cr_assert_eq(end_counters(e)->packet_seq_err, 1);
	end_expect_no_wc(e);
	cr_assert_eq(xend_ack(e, 1250, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(ur_ext_deadline(e->qp), UR_NEVER);
	xend_free(e);
}

/* Answers the probe, after all responses that the peer has sent. */
static void probe_came_back(struct end *e, uint32_t epsn)
{
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, epsn);
	cr_assert_eq(xend_ack(e, epsn, 0x1f, 0, e->out.xth.stamp), UR_DROP_NONE);
}

/* EXT-REQ-PROBE-01 */
Test(ext_requester, silence_is_answered_with_one_probe_that_takes_nothing)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1001);
	cr_assert(e->out.bth.ackreq);
	cr_assert_eq(e->out.payload_len, 0);
	cr_assert_eq(e->out.xth.ssn, 0);
	cr_assert_eq(e->out.xth.flags, 0);
	xend_expect_silence(e);
	cr_assert_eq(end_counters(e)->probes_sent, 1);
	cr_assert_eq(e->qp->xreq.psn.max.v, 1001);
	xend_free(e);
}

/* EXT-REQ-RSP-01 */
Test(ext_requester, lost_responses_are_asked_for_by_one_request_a_run_and_part)
{
	struct end *e = XEND(.window = 32, .rd_atomic = 4); /* 8 packets a part */
	static const uint8_t here[] = {0, 1, 4, 9, 17};	    /* of 19 */
	uint32_t stamp;

	end_send(e, 9, IBV_WR_SEND, 4);
	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 18 + 10);
	cr_assert_eq(xend_drain(e), 4);
	stamp = e->out.xth.stamp;
	for (unsigned i = 0; i < sizeof(here); i++)
		cr_assert_eq(xend_read(e, 2, here[i], 1001 + here[i] / 8u, 256, stamp),
			     UR_DROP_NONE);
	end_expect_wc(e, 9, IBV_WC_SUCCESS);
	xend_expect_silence(e);
	probe_came_back(e, 1004);

	static const struct {
		uint32_t psn, offset, length, flags;
	} again[] = {
		{1001, 2, 512, UR_XTH_RETRY},
		{1001, 5, 768, UR_XTH_RETRY},
		{1002, 8, 256, UR_XTH_RETRY},
		{1002, 10, 256 * 6, UR_XTH_RETRY},
		{1003, 16, 256, UR_XTH_RETRY | UR_XTH_LAST_READ},
		{1003, 18, 10, UR_XTH_RETRY | UR_XTH_LAST_READ},
	};

	for (unsigned i = 0; i < 6; i++) {
		xend_expect(e, UR_EXT_READ_REQUEST, again[i].psn);
		cr_assert_eq(e->out.xth.offset, again[i].offset);
		cr_assert_eq(e->out.xth.ssn, 2);
		cr_assert_eq(e->out.xth.flags, again[i].flags);
		cr_assert_eq(e->out.reth.va, 0x7000 + 256 * again[i].offset);
		cr_assert_eq(e->out.reth.rkey, 0x8000);
		cr_assert_eq(e->out.reth.length, again[i].length);
		/* EXT-REQ-TWICE-01 */
		xend_expect(e, UR_EXT_READ_REQUEST, again[i].psn);
		cr_assert_eq(e->out.xth.offset, again[i].offset);
		cr_assert_eq(e->out.xth.flags, again[i].flags);
		cr_assert_eq(e->out.reth.length, again[i].length);
	}
	xend_expect_silence(e);
	cr_assert_eq(e->qp->xreq.psn.max.v, 1004, "no new PSN");
	stamp = e->out.xth.stamp;
	for (uint32_t at = 0; at < 19; at++)
		if (at != 0 && at != 1 && at != 4 && at != 9 && at != 17)
			cr_assert_eq(xend_read(e, 2, at, 1001 + at / 8, at < 18 ? 256 : 10, stamp),
				     UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 256 * 18 + 10; i++)
		cr_assert_eq(e->buf[i], i / 256 + 1);
	cr_assert_eq(ur_ext_reads_out(&e->qp->xreq), 0);
	cr_assert_eq(ur_ext_deadline(e->qp), UR_NEVER);
	xend_free(e);
}

/* EXT-REQ-RSP-01 */
Test(ext_requester, atomic_whose_answer_was_lost_is_sent_again_under_its_psn)
{
	struct end *e = XEND();

	end_send(e, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	xend_expect(e, UR_EXT_FETCH_ADD, 1000);
	probe_came_back(e, 1001);
	xend_expect(e, UR_EXT_FETCH_ADD, 1000);
	cr_assert_eq(e->out.xth.flags, UR_XTH_RETRY);
	cr_assert_eq(e->out.atomiceth.swap_add, 5);
	xend_expect_silence(e);
	cr_assert_eq(xend_atomic(e, 1, 1000, e->out.xth.stamp), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	xend_free(e);
}

/* EXT-REQ-RSP-02 */
Test(ext_requester, response_is_not_asked_for_again_while_its_request_is_missing)
{
	struct end *e = XEND();
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	cr_assert_eq(xend_drain(e), 2);
	/* By the probe's answer the second request waits for the first. */
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1002);
	cr_assert_eq(xend_sack(e, 1000, 1, e->out.xth.stamp), UR_DROP_NONE);
	while (!ur_ext_requester_ready(e->qp))
		xend_wait(e);
	e->qp->xreq.probe = false;
	xend_expect(e, UR_EXT_READ_REQUEST, 1000);
	cr_assert_eq(e->out.reth.length, 4);
	xend_expect_silence(e);
	stamp = e->out.xth.stamp;
	cr_assert_eq(xend_read(e, 1, 0, 1000, 4, stamp), UR_DROP_NONE);
	/* The second answer is late because of the first and must not be deemed lost. */
	xend_expect_silence(e);
	cr_assert_eq(xend_read(e, 2, 0, 1001, 4, stamp - 1000), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	cr_assert_eq(end_counters(e)->retransmitted_packets, 1);
	xend_free(e);
}
