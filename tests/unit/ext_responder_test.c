/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss_memory.h"
#include "ext_peer.h"

#define FLUSHED IBV_WC_WR_FLUSH_ERR

/* ---- in order ---- */

/* EXT-RESP-SEQ-01 */
Test(ext_responder, messages_in_order_need_no_context)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 5000, 600), *s = peer_send(x, 300);

	end_post_recv(x->e, 1, 0, 300);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
	cr_assert_eq(end_expect_wc(x->e, 1, IBV_WC_SUCCESS).byte_len, 300);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(peer_is_at(x, &w[i], 5000 + i * PEER_MTU));
	cr_assert(peer_is_at(x, &s[1], 256));
	cr_assert_eq(x->qp->rsp.msn.v, 2);
	cr_assert_eq(peer_contexts(x), 0);
	peer_expect_silence(x);
	peer_free(x);
}

Test(ext_responder, in_order_request_with_ackreq_owes_an_ack)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 600);

	w[2].bth.ackreq = true;
	for (unsigned i = 0; i < 3; i++)
		peer_in(x, &w[i]);
	cr_assert_eq(peer_expect_ack(x, 103)->aeth.msn, 1);
	peer_expect_silence(x);
	peer_free(x);
}

Test(ext_responder, standard_request_is_of_another_mode)
{
	struct peer *x = PEER();
	struct ur_packet p = *peer_write(x, 0, 4);

	p.bth.opcode = UR_RC_WRITE_ONLY;
	p.op = ur_op_flags(p.bth.opcode);
	cr_assert_eq(peer_in(x, &p), UR_DROP_MODE);
	cr_assert_eq(x->qp->rsp.epsn.v, 100);
	peer_free(x);
}

/* ---- any order ---- */

static void any_order(bool send, enum end_kind end)
{
	unsigned idx[4] = {0, 1, 2, 3};

	do {
		struct peer *x = PEER();
		struct ur_packet *p = peer_data(x, send, 4000, 900, end, 0xabcd);

		if (send || end == IMM)
			end_post_recv(x->e, 9, 4000, 900);
		for (unsigned i = 0; i < 4; i++) {
			end_expect_no_wc(x->e);
			cr_assert_eq(peer_in(x, &p[idx[i]]), UR_DROP_NONE);
			cr_assert(peer_is_at(x, &p[idx[i]], 4000 + idx[i] * PEER_MTU));
		}
		for (unsigned i = 0; i < 4; i++)
			cr_assert(peer_is_at(x, &p[i], 4000 + i * PEER_MTU));
		if (send || end == IMM) {
			struct ibv_wc wc = end_expect_wc(x->e, 9, IBV_WC_SUCCESS);

			cr_assert_eq(wc.byte_len, 900);
			cr_assert_eq(wc.opcode, send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
			if (end == IMM)
				cr_assert_eq(wc.imm_data, __builtin_bswap32(0xabcd));
		}
		end_expect_no_wc(x->e);
		cr_assert_eq(x->qp->rsp.epsn.v, 104);
		cr_assert_eq(x->qp->rsp.msn.v, 1);
		cr_assert_eq(peer_contexts(x), 0);
		peer_free(x);
	} while (next_permutation(idx, 4));
}

/* EXT-RESP-TURN-01 */
Test(ext_responder, packets_of_a_send_may_come_in_any_order)
{
	any_order(true, PLAIN);
	any_order(true, IMM);
}

/* EXT-RESP-TURN-01 */
Test(ext_responder, packets_of_a_write_may_come_in_any_order)
{
	any_order(false, PLAIN);
	any_order(false, IMM);
}

/* EXT-RESP-PLACE-01: memory ends as after in-order execution. */
Test(ext_responder, overlapping_writes_end_as_in_order)
{
	unsigned idx[4] = {0, 1, 2, 3};

	do {
		struct peer *x = PEER();
		uint8_t want[1024] = {0};
		static const uint32_t at[4][2] = {{0, 256}, {100, 256}, {50, 100}, {0, 200}};

		for (unsigned i = 0; i < 4; i++) {
			struct ur_packet *p = peer_write(x, at[i][0], at[i][1]);

			memcpy(want + at[i][0], p->payload, p->payload_len);
		}
		for (unsigned i = 0; i < 4; i++)
			peer_in(x, &x->p[idx[i]]);
		cr_assert_eq(memcmp(x->e->buf, want, sizeof(want)), 0, "order %u %u %u %u", idx[0],
			     idx[1], idx[2], idx[3]);
		peer_free(x);
	} while (next_permutation(idx, 4));
}

/* EXT-RESP-TURN-01 */
Test(ext_responder, completions_wait_for_their_turn)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 4);
	uint32_t key;
	struct ibv_wc wc;

	cr_assert_eq(ur_mem_register(x->e->mem, END_PD, x->e->buf + 9000, 100, 0,
				     UR_ACCESS_REMOTE_INVALIDATE, 77, &key),
		     0);
	peer_data(x, true, 0, 10, IMM, 5)->bth.solicited = true;
	peer_data(x, true, 0, 20, INV, key);
	peer_data(x, false, 300, 30, IMM, 6);
	for (unsigned i = 0; i < 3; i++)
		end_post_recv(x->e, 1 + i, 100 * i, 100);
	ur_cq_arm(&x->e->cq, true);
	for (unsigned i = 3; i > 0; i--)
		peer_in(x, &x->p[i]);
	end_expect_no_wc(x->e);
	cr_assert_eq(x->e->notified, 0);
	cr_assert_not_null(ur_mem_check(x->e->mem, key, END_PD, 0, 1, 0));
	peer_in(x, w);
	cr_assert_eq(x->e->notified, 1);
	cr_assert_null(ur_mem_check(x->e->mem, key, END_PD, 0, 1, 0));
	cr_assert_eq(end_expect_wc(x->e, 1, IBV_WC_SUCCESS).imm_data, __builtin_bswap32(5));
	wc = end_expect_wc(x->e, 2, IBV_WC_SUCCESS);
	cr_assert(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == key);
	wc = end_expect_wc(x->e, 3, IBV_WC_SUCCESS);
	cr_assert(wc.byte_len == 30 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
	peer_free(x);
}

/* EXT-RESP-ATOMIC-01 */
Test(ext_responder, early_atomic_executes_once_in_its_turn)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 4), *a = peer_fetch_add(x, 64, 5);
	uint64_t value = 10;

	memcpy(x->e->buf + 64, &value, 8);
	for (unsigned i = 0; i < 3; i++)
		peer_in(x, a);
	memcpy(&value, x->e->buf + 64, 8);
	cr_assert_eq(value, 10);
	peer_drain(x);
	peer_in(x, w);
	peer_expect_ack(x, 102);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101)->atomic_ack, 10);
		memcpy(&value, x->e->buf + 64, 8);
		cr_assert_eq(value, 15);
		if (!i)
			peer_in(x, a);
	}
	peer_expect_silence(x);
	peer_free(x);
}

Test(ext_responder, early_read_is_executed_in_its_turn)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 4), *r = peer_read(x, 0, 4, 0, true);
	const struct ur_packet *p;

	peer_in(x, r);
	peer_expect_nak(x, 100, 0x60);
	peer_expect_silence(x);
	peer_in(x, w);
	peer_expect_ack(x, 102);
	p = peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 101);
	cr_assert_eq(memcmp(p->payload, w->payload, 4), 0);
	peer_free(x);
}

Test(ext_responder, early_read_whose_region_went_is_refused_in_its_turn)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 4), *r = peer_read(x, 0, 4, 0, true);
	uint32_t key;

	cr_assert_eq(ur_mem_register(x->e->mem, END_PD, x->e->buf, 4096, (uintptr_t)x->e->buf,
				     IBV_ACCESS_REMOTE_READ, 77, &key),
		     0);
	r->reth.rkey = key;
	cr_assert_eq(peer_in(x, r), UR_DROP_NONE);
	ur_mem_invalidate(x->e->mem, key, END_PD, false);
	peer_in(x, w);
	cr_assert_eq(x->qp->state, IBV_QPS_ERR);
	peer_expect_nak(x, 101, 0x62);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-HELD-01 */
Test(ext_responder, early_reads_and_atomics_are_kept_as_many_as_agreed)
{
	struct peer *x = PEER(.dest_rd_atomic = 2);
	struct ur_packet *w = peer_write(x, 0, 4);

	peer_read(x, 0, 4, 0, true);
	peer_fetch_add(x, 8, 1);
	peer_read(x, 0, 4, 0, true);
	cr_assert_eq(peer_in(x, &x->p[1]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[2]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[3]), UR_DROP_RESOURCES);
	cr_assert(!ur_ooo_is_deferred(x->qp->xrsp.ooo, ur_psn(103)));
	peer_in(x, w);
	cr_assert_eq(x->qp->rsp.epsn.v, 103);
	peer_free(x);
}

/* The window wraps inside a gap. */
Test(ext_responder, psn_wraps_inside_a_gap)
{
	struct peer *x = PEER(.rq_psn = UR_PSN_MASK - 1);
	struct ur_packet *p = peer_send(x, 4 * PEER_MTU);

	end_post_recv(x->e, 1, 0, 4096);
	for (unsigned i = 4; i > 0; i--)
		cr_assert_eq(peer_in(x, &p[i - 1]), UR_DROP_NONE);
	end_expect_wc(x->e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(x->qp->rsp.epsn.v, 2);
	peer_expect_ack(x, 2);
	peer_free(x);
}

Test(ext_responder, packet_beyond_the_window_is_dropped_in_silence)
{
	struct peer *x = PEER();
	struct ur_packet p = *peer_write(x, 0, 4);

	p.bth.psn = ur_psn(100 + UR_EXT_WINDOW);
	cr_assert_eq(peer_in(x, &p), UR_DROP_PSN_GAP);
	p.bth.psn = ur_psn(100 + (1 << 23) - 1);
	cr_assert_eq(peer_in(x, &p), UR_DROP_PSN_GAP);
	peer_expect_silence(x);
	p.bth.psn = ur_psn(100 + UR_EXT_WINDOW - 1);
	p.xth.ssn = UR_EXT_WINDOW; /* each packet a message */
	cr_assert_eq(peer_in(x, &p), UR_DROP_NONE);
	cr_assert_eq(peer_expect_nak(x, 100, 0x60)->payload_len, UR_SACK_BYTES);
	peer_free(x);
}

/* EXT-WINDOW-01, EXT-RESP-PART-01 */
Test(ext_responder, a_wide_window_is_told_in_parts_and_a_probe_gets_the_lowest)
{
	struct peer *x = PEER(.window = UR_EXT_WINDOW / 2, .agreed = {.wide = 1});
	struct ur_packet p = *peer_write(x, 0, 4), probe = {.op = ur_op_flags(UR_EXT_PROBE)};
	const uint32_t most = 2 * UR_EXT_WINDOW;
	const struct ur_packet *ack;

	p.bth.psn = ur_psn(100 + most);
	cr_assert_eq(peer_in(x, &p), UR_DROP_PSN_GAP);
	peer_expect_silence(x);
	p.bth.psn = ur_psn(100 + most - 1);
	p.xth.ssn = most;
	cr_assert_eq(peer_in(x, &p), UR_DROP_NONE);
	ack = peer_expect(x, UR_EXT_ACKNOWLEDGE_PART, 100);
	cr_assert_eq(ack->bpth.offset, most - 1 - UR_SACK_BITS);
	cr_assert_eq(ack->bpth.flags, 0);
	cr_assert_eq(ack->payload_len, UR_SACK_BYTES);
	cr_assert(ur_sack_bit(ack->payload, UR_SACK_BITS - 1));
	for (unsigned i = 0; i < 3; i++) {
		probe.bth.opcode = UR_EXT_PROBE;
		peer_in(x, &probe);
		ack = peer_expect(x, UR_EXT_ACKNOWLEDGE_PART, 100);
		cr_assert_eq(ack->bpth.offset, 0);
		cr_assert_eq(ack->bpth.flags, UR_BPTH_MORE);
	}
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-WINDOW-03. The peer has a smaller window, or has announced none; then a part means nothing to it. */
Test(ext_responder, nothing_is_taken_in_beyond_the_window_of_the_peer)
{
	for (uint8_t wide = 0; wide < 3; wide++) {
		struct peer *x = PEER(.window = UR_EXT_WINDOW / 2, .agreed = {.wide = wide});
		uint32_t most = wide ? 2 * UR_EXT_WINDOW : UR_EXT_WINDOW;
		struct ur_packet p = *peer_write(x, 0, 4);

		p.bth.psn = ur_psn(100 + most);
		p.xth.ssn = 2; /* it may be the next message */
		cr_assert_eq(peer_in(x, &p), UR_DROP_PSN_GAP, "%u", wide);
		cr_assert_eq(peer_contexts(x), 0);
		peer_expect_silence(x);
		p.bth.psn = ur_psn(100 + most - 1);
		cr_assert_eq(peer_in(x, &p), UR_DROP_NONE, "%u", wide);
		if (wide)
			peer_expect(x, UR_EXT_ACKNOWLEDGE_PART, 100);
		else
			peer_expect_nak(x, 100, 0x60);
		peer_free(x);
	}
}

/* EXT-WINDOW-02 */
Test(ext_responder, the_window_of_the_last_peer_is_forgotten)
{
	struct peer *x = PEER(.window = UR_EXT_WINDOW / 2, .agreed = {.wide = 1});

	ur_qp_reset(x->qp);
	cr_assert_eq(x->qp->agreed.wide, 0);
	cr_assert_eq(x->qp->xreq.psn.most, UR_EXT_WINDOW);
	peer_free(x);
}

/* ---- contexts ---- */

/* LOSS-OWN-01 */
Test(ext_responder, gap_without_slabs_is_kept_in_memory_of_its_own)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 512);
	struct ur_slabs *memory = &x->qp->core->loss;
	void **all = hog(memory);
	uint32_t objects = memory->object_cnt;

	for (unsigned i = 0; i < 63; i++)
		peer_write(x, 512 + i * 8, 4);
	cr_assert_eq(peer_in(x, &w[1]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[63]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[64]), UR_DROP_NO_CONTEXT, "it spans 64");
	cr_assert_eq(memory->object_cnt, objects);
	cr_assert_eq(peer_in(x, &w[0]), UR_DROP_NONE);
	cr_assert_eq(x->qp->rsp.epsn.v, 102);
	for (unsigned i = 2; i < 65; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), i == 63 ? UR_DROP_PSN_DUPLICATE : UR_DROP_NONE);
	cr_assert_eq(x->qp->rsp.epsn.v, 165);
	cr_assert_not(x->qp->xrsp.has_gap);
	cr_assert_eq(x->qp->core->cnt.ooo_exhausted, 0);
	give_all_back(memory, all);
	peer_free(x);
}

/* LOSS-OWN-01: where memory comes, the gap moves to it, and takes its own again next time. */
Test(ext_responder, gap_leaves_memory_of_its_own_for_slabs)
{
	struct peer *x = PEER();
	struct ur_slabs *memory = &x->qp->core->loss;
	void **all = hog(memory);

	for (unsigned i = 0; i < 70; i++)
		peer_write(x, i * 8, 4);
	cr_assert_eq(peer_in(x, &x->p[2]), UR_DROP_NONE);
	give_all_back(memory, all);
	cr_assert_eq(peer_in(x, &x->p[66]), UR_DROP_NONE);
	all = hog(memory);
	cr_assert_eq(peer_in(x, &x->p[0]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[1]), UR_DROP_NONE);
	cr_assert_eq(x->qp->rsp.epsn.v, 103);
	for (unsigned i = 3; i < 66; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
	cr_assert_not(x->qp->xrsp.has_gap);
	give_all_back(memory, all);
	all = hog(memory);
	cr_assert_eq(peer_in(x, &x->p[69]), UR_DROP_NONE);
	for (unsigned i = 67; i < 69; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
	cr_assert_eq(x->qp->rsp.epsn.v, 170);
	for (unsigned i = 0; i < 70; i++)
		cr_assert_eq(memcmp(x->e->buf + i * 8, x->p[i].payload, 4), 0);
	give_all_back(memory, all);
	peer_free(x);
}

/* EXT-RESP-CONTEXT-01 */
Test(ext_responder, gap_without_a_context_drops_what_is_early_and_says_so)
{
	struct peer *x = PEER();
	struct ur_slabs *memory = &x->qp->core->loss;
	void **all = hog(memory);

	for (unsigned i = 0; i < 65; i++)
		peer_write(x, i * 8, 4);
	cr_assert_eq(peer_in(x, &x->p[64]), UR_DROP_NO_CONTEXT);
	cr_assert_eq(peer_in(x, &x->p[64]), UR_DROP_NO_CONTEXT);
	cr_assert_eq(x->qp->core->cnt.ooo_exhausted, 1);
	cr_assert_eq(x->qp->core->cnt.early_dropped, 2);
	cr_assert_eq(x->e->buf[512], 0);
	cr_assert_eq(peer_expect_ack(x, 100)->xaeth.echo, x->p[64].xth.stamp);
	give_all_back(memory, all);
	cr_assert_eq(peer_in(x, &x->p[64]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[0]), UR_DROP_NONE);
	cr_assert_eq(x->qp->rsp.epsn.v, 101);
	peer_free(x);
}

/* EXT-OOO-RANGE-02 */
Test(ext_responder, full_list_of_ranges_drops_the_early_packet)
{
	struct peer *x = PEER();
	struct ur_slabs *memory = &x->qp->core->loss;
	uint16_t cap;
	void **all;

	for (unsigned i = 0; i < 64; i++)
		peer_write(x, i * 8, 4);
	/* The context spans them all. */
	cr_assert_eq(peer_in(x, &x->p[63]), UR_DROP_NONE);
	for (unsigned i = 1; i <= 10; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
	cap = x->qp->xrsp.ooo->range_cap;
	cr_assert_leq(cap, 62);
	all = hog(memory);
	for (unsigned i = 11; i < cap; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &x->p[cap]), UR_DROP_NO_CONTEXT);
	cr_assert_eq(x->e->buf[cap * 8], 0);
	cr_assert_eq(peer_in(x, &x->p[0]), UR_DROP_NONE);
	cr_assert_eq(x->qp->rsp.epsn.v, 100u + cap);
	for (unsigned i = cap; i < 63; i++)
		cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
	give_all_back(memory, all);
	cr_assert_eq(peer_contexts(x), 0);
	peer_free(x);
}

/* EXT-RESP-EARLY-01 */
Test(ext_responder, early_packet_that_fails_a_check_leaves_no_context_behind)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 512);

	w[1].reth.rkey ^= 1;
	cr_assert_eq(peer_in(x, &w[1]), UR_DROP_EARLY);
	cr_assert_eq(peer_contexts(x), 0);
	cr_assert_eq(x->qp->state, IBV_QPS_RTS);
	/* In its turn it is refused. */
	peer_in(x, &w[0]);
	peer_drain(x);
	cr_assert_eq(peer_in(x, &w[1]), UR_DROP_ACCESS);
	peer_expect_nak(x, 101, 0x62);
	cr_assert_eq(x->qp->state, IBV_QPS_ERR);
	peer_free(x);
}

/* ---- receives ---- */

/* EXT-RESP-RNR-01 */
Test(ext_responder, receive_missing_inside_a_gap_is_reported_in_its_turn)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 4), *s = peer_send(x, 10), *t = peer_send(x, 10);

	end_post_recv(x->e, 1, 0, 100);
	cr_assert_eq(peer_in(x, t), UR_DROP_RNR);
	cr_assert_eq(peer_in(x, s), UR_DROP_NONE);
	peer_drain(x);
	peer_in(x, w);
	end_expect_wc(x->e, 1, IBV_WC_SUCCESS);
	peer_drain(x);
	cr_assert_eq(peer_in(x, t), UR_DROP_RNR);
	peer_expect_nak(x, 102, UR_SYNDROME_RNR_NAK | 12);
	peer_expect_silence(x);
	end_post_recv(x->e, 2, 0, 100);
	cr_assert_eq(peer_in(x, t), UR_DROP_NONE);
	end_expect_wc(x->e, 2, IBV_WC_SUCCESS);
	peer_free(x);
}

/* EXT-RESP-RNR-01 */
Test(ext_responder, rnr_nak_that_has_not_left_becomes_an_ack)
{
	struct peer *x = PEER();
	struct ur_packet *s = peer_send(x, 10);

	cr_assert_eq(peer_in(x, s), UR_DROP_RNR);
	end_post_recv(x->e, 1, 0, 100);
	cr_assert_eq(peer_in(x, s), UR_DROP_NONE);
	peer_expect_ack(x, 101);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-RECV-01: the second packet also binds the first receive. */
Test(ext_responder, early_send_binds_the_receives_before_its_own)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet *s, *t;

	srq_new(&srq, 8);
	x = PEER(.srq = &srq);
	s = peer_send(x, 600);
	t = peer_send(x, 10);
	end_post_recv(x->e, 1, 0, 1000);
	end_post_recv(x->e, 2, 1000, 1000);
	end_post_recv(x->e, 3, 2000, 1000);
	peer_in(x, t);
	cr_assert_eq(ur_wq_head(&srq.rq), 2);
	cr_assert(peer_is_at(x, t, 1000));
	for (unsigned i = 0; i < 3; i++)
		peer_in(x, &s[2 - i]);
	end_expect_wc(x->e, 1, IBV_WC_SUCCESS);
	end_expect_wc(x->e, 2, IBV_WC_SUCCESS);
	cr_assert(peer_is_at(x, &s[2], 512));
	cr_assert_eq(ur_wq_head(&srq.rq), 2);
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-RECV-01 */
Test(ext_responder, srq_that_runs_dry_gives_nothing_rather_than_half)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet *s, *t;

	srq_new(&srq, 8);
	x = PEER(.srq = &srq);
	s = peer_send(x, 10);
	t = peer_send(x, 10);
	end_post_recv(x->e, 1, 0, 100);
	cr_assert_eq(peer_in(x, t), UR_DROP_RNR);
	cr_assert_eq(ur_wq_head(&srq.rq), 0);
	cr_assert_eq(peer_contexts(x), 0);
	/* Another queue pair takes some in between; the rest is for this one. */
	cr_assert_eq(peer_in(x, s), UR_DROP_NONE);
	end_post_recv(x->e, 2, 0, 100);
	cr_assert_eq(peer_in(x, t), UR_DROP_NONE);
	end_expect_wc(x->e, 1, IBV_WC_SUCCESS);
	end_expect_wc(x->e, 2, IBV_WC_SUCCESS);
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-RECV-01 */
Test(ext_responder, two_queue_pairs_share_an_srq_that_runs_dry)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_qp *one, *two;
	struct ur_ext_answer ans[4];
	struct ur_packet *s, *t;

	srq_new(&srq, 8);
	x = PEER(.srq = &srq);
	one = x->qp;
	two = aligned_alloc(64, (sizeof(*two) + 63) & ~63ul);
	memcpy(two, one, sizeof(*two));
	two->qpn = ur_qpn(one->qpn.v ^ 0x100);
	two->rsp.srq_wqe = calloc(1, srq.rq.stride);
	two->rsp.ans = ans;
	s = peer_send(x, 300);
	t = peer_send(x, 4);
	for (unsigned i = 0; i < 3; i++)
		end_post_recv(x->e, 1 + i, 1000 * i, 1000);
	/* The first queue pair binds two receives early, the second one; then nothing is left. */
	peer_in(x, t);
	x->qp = two;
	cr_assert_eq(peer_in(x, t), UR_DROP_RNR);
	cr_assert_eq(peer_in(x, &s[1]), UR_DROP_NONE);
	cr_assert_eq(ur_wq_head(&srq.rq), 3);
	cr_assert(peer_is_at(x, &s[1], 2000 + 256));
	cr_assert_eq(peer_in(x, &s[0]), UR_DROP_NONE);
	cr_assert_eq(ur_cq_pending(&x->e->cq), 1);
	cr_assert_eq(peer_in(x, t), UR_DROP_RNR);
	x->qp = one;
	peer_in(x, &s[1]);
	peer_in(x, &s[0]);
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t id[] = {3, 1, 2};
		struct ibv_wc wc;

		cr_assert_eq(ur_cq_poll(&x->e->cq, 1, &wc), 1);
		cr_assert_eq(wc.wr_id, id[i]);
		cr_assert_eq(wc.qp_num, i ? one->qpn.v : two->qpn.v);
	}
	cr_assert_eq(peer_contexts(x), 0);
	free(two->rsp.srq_wqe);
	free(two);
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-RECV-01: a message in progress keeps its receive when the gap after it closes. */
Test(ext_responder, bound_receive_outlives_the_context)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet *s;

	srq_new(&srq, 8);
	x = PEER(.srq = &srq);
	s = peer_send(x, 700);
	end_post_recv(x->e, 1, 0, 1000);
	peer_in(x, &s[1]);
	peer_in(x, &s[0]);
	cr_assert_eq(peer_contexts(x), 0);
	peer_in(x, &s[2]);
	cr_assert_eq(end_expect_wc(x->e, 1, IBV_WC_SUCCESS).byte_len, 700);
	cr_assert(peer_is_at(x, &s[1], 256) && peer_is_at(x, &s[2], 512));
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-FLUSH-01 */
Test(ext_responder, dying_queue_pair_flushes_what_it_bound)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet *s;

	srq_new(&srq, 8);
	x = PEER(.srq = &srq);
	s = peer_send(x, 600);
	peer_send(x, 4);
	peer_send(x, 4);
	for (unsigned i = 0; i < 4; i++)
		end_post_recv(x->e, 1 + i, 1000 * i, 1000);
	peer_in(x, &s[0]);
	peer_in(x, &x->p[4]);
	cr_assert_eq(peer_contexts(x), 1);
	ur_ext_responder_stop(x->qp, IBV_WC_WR_FLUSH_ERR);
	for (unsigned i = 0; i < 3; i++)
		end_expect_wc(x->e, 1 + i, FLUSHED);
	end_expect_no_wc(x->e);
	cr_assert_eq(ur_wq_head(&srq.rq), 3);
	cr_assert_eq(peer_contexts(x), 0);
	cr_assert_eq(x->qp->core->cnt.flushed_wqe, 3);
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-FLUSH-01 */
Test(ext_responder, refusal_in_its_turn_flushes_what_was_bound_beyond)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet *w, *s;

	srq_new(&srq, 8);
	x = PEER(.srq = &srq);
	w = peer_write(x, 0, 4);
	s = peer_data(x, true, 0, 4, INV, 0x12345678);
	peer_send(x, 4);
	end_post_recv(x->e, 1, 0, 1000);
	end_post_recv(x->e, 2, 0, 1000);
	end_post_recv(x->e, 3, 0, 1000);
	peer_in(x, &s[1]);
	peer_in(x, &s[0]);
	end_expect_no_wc(x->e);
	peer_drain(x);
	cr_assert_eq(peer_in(x, w), UR_DROP_NONE);
	end_expect_wc(x->e, 1, IBV_WC_LOC_ACCESS_ERR);
	end_expect_wc(x->e, 2, FLUSHED);
	cr_assert_eq(x->qp->state, IBV_QPS_ERR);
	cr_assert_eq(peer_contexts(x), 0);
	cr_assert_eq(peer_expect_nak(x, 101, 0x62)->aeth.msn, 1);
	peer_expect_silence(x);
	peer_free(x);
	free(srq.rq.ring);
}

Test(ext_responder, reset_gives_the_context_back_and_completes_nothing)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 512);

	peer_in(x, &w[1]);
	ur_qp_reset(x->qp);
	cr_assert_eq(peer_contexts(x), 0);
	end_expect_no_wc(x->e);
	cr_assert_eq(x->qp->rsp.ans, x->ans);
	peer_free(x);
}
