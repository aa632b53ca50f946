/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "end.h"

/* The responder of a queue pair of mode reorder; ePSN is 100, PMTU 256, reordering window 3 packets or 100 us.
 */
#define REORDER_NS UINT64_C(100000)
#define SEQ_NAK	   (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ)

static struct end *e;

static void start(void)
{
	e = END(.mode = UR_MODE_REORDER);
}

static void stop(void)
{
	end_free(e);
}

TestSuite(reorder, .init = start, .fini = stop);

/* A WRITE of one packet, which fills 16 bytes at 16 * psn with the PSN's low byte + 1. */
static enum ur_drop write_at(uint32_t psn, bool ackreq)
{
	static uint8_t bytes[16];
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, psn, sizeof(bytes));

	memset(bytes, (int)(psn + 1) & 0xff, sizeof(bytes));
	p.payload = bytes;
	p.reth.va += 16 * (psn & 0xff);
	p.bth.ackreq = ackreq;
	return end_in(e, p);
}

static bool is_placed(uint32_t psn)
{
	const uint8_t *at = e->buf + 16 * (psn & 0xff);

	return at[0] == ((psn + 1) & 0xff) && at[15] == at[0];
}

static uint32_t free_slots(void)
{
	return ur_engine_core(e->engine)->reorder.slots_free;
}

/* REORDER-KEEP-01, REORDER-REPLAY-01 */
Test(reorder, an_early_packet_waits_and_then_is_executed)
{
	cr_assert_eq(write_at(101, true), UR_DROP_NONE);
	cr_assert_not(is_placed(101));
	cr_assert_eq(free_slots(), 63);
	end_expect_silence(e);
	cr_assert_eq(write_at(100, false), UR_DROP_NONE);
	cr_assert(is_placed(100) && is_placed(101));
	cr_assert_eq(free_slots(), 64);
	cr_assert_null(e->qp->gbn_rsp.reorder.ctx);
	end_expect_ack(e, 101);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->early_packets, 1);
	cr_assert_eq(end_counters(e)->seq_nak_sent, 0);
	cr_assert_eq(end_counters(e)->reordered, 1);
}

Test(reorder, any_order_of_a_message_is_one_receive)
{
	static const uint32_t order[] = {102, 101, 103};

	end_post_recv(e, 1, 0, 4096);
	for (unsigned i = 0; i < 3; i++)
		end_recv(e, order[i] == 103 ? UR_RC_SEND_LAST : UR_RC_SEND_MIDDLE, order[i], 256);
	end_expect_no_wc(e);
	end_recv(e, UR_RC_SEND_FIRST, 100, 256);
	cr_assert_eq(end_expect_wc(e, 1, IBV_WC_SUCCESS).byte_len, 1024);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(e->buf[256 * i], 100 + i);
}

Test(reorder, what_is_kept_survives_the_wrap_of_psns)
{
	end_free(e);
	e = END(.mode = UR_MODE_REORDER, .rq_psn = 0xfffffe);
	write_at(0x000001, true);
	write_at(0xffffff, false);
	write_at(0x000000, false);
	cr_assert_not(is_placed(0x000000));
	write_at(0xfffffe, false);
	cr_assert(is_placed(0xffffff) && is_placed(0x000000) && is_placed(0x000001));
	end_expect_ack(e, 0x000001);
}

Test(reorder, a_copy_of_what_is_kept_is_dropped)
{
	write_at(101, true);
	cr_assert_eq(write_at(101, true), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(free_slots(), 63);
	end_expect_silence(e);
	cr_assert_eq(write_at(100, false), UR_DROP_NONE);
	end_expect_ack(e, 101);
}

/* REORDER-CONFLICT-01: neither of the two is accepted, whatever differs. */
Test(reorder, packets_that_claim_one_psn_and_differ_are_both_dropped)
{
	static uint8_t bytes[16];

	for (unsigned i = 0; i < 9; i++) {
		struct ur_packet p = end_packet(e, i < 7 ? UR_RC_WRITE_ONLY_IMM : UR_RC_FETCH_ADD,
						102, i < 7 ? 16 : 0);
		uint32_t before = free_slots();

		p.payload = bytes;
		cr_assert_eq(write_at(101, false), i ? UR_DROP_PSN_DUPLICATE : UR_DROP_NONE);
		cr_assert_eq(end_in(e, p), UR_DROP_NONE);
		switch (i) {
		case 0:
			p.imm++;
			break;
		case 1:
			p.reth.va++;
			break;
		case 2:
			p.reth.rkey++;
			break;
		case 3:
			p.reth.length++;
			break;
		case 4:
			p.bth.solicited = !p.bth.solicited;
			break;
		case 5:
			p.payload_len = 12;
			break;
		case 6:
			bytes[15]++;
			break;
		case 7:
			p.atomiceth.swap_add++;
			break;
		case 8:
			p.atomiceth.compare++;
			break;
		}
		cr_assert_eq(end_in(e, p), UR_DROP_CONFLICT, "case %u", i);
		cr_assert_eq(free_slots(), before - !i);
		cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	}
	end_drain(e);
	/* The packet that arrived for 102 was dropped and is requested again. */
	write_at(100, false);
	cr_assert(is_placed(101));
	end_expect_ack(e, 101);
	end_expect_nak(e, 102, SEQ_NAK);
	cr_assert_eq(e->qp->rsp.epsn.v, 102);
}

/* REORDER-CONFLICT-01 */
Test(reorder, forged_packet_that_was_alone_leaves_nothing_behind)
{
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 101, 0);

	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(write_at(101, false), UR_DROP_CONFLICT);
	cr_assert_null(e->qp->gbn_rsp.reorder.ctx);
	cr_assert_eq(free_slots(), 64);
	end_expect_nak(e, 100, SEQ_NAK);
	write_at(100, false);
	write_at(101, true);
	cr_assert(is_placed(100) && is_placed(101));
	end_expect_ack(e, 101);
}

/* A retransmission has AckReq although the first transmission did not. */
Test(reorder, copy_of_what_is_kept_may_ask_for_an_ack)
{
	write_at(101, false);
	cr_assert_eq(write_at(101, true), UR_DROP_PSN_DUPLICATE);
	write_at(100, false);
	end_expect_ack(e, 101);
}

/* REORDER-BELIEF-01: the peer continues in order, and the forged packet has no effect. */
Test(reorder, packet_far_from_all_others_is_not_executed)
{
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100 + UR_REORDER_NEAR, 0);

	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	for (uint32_t psn = 100; psn < 120; psn++) {
		cr_assert_eq(write_at(psn, psn == 119), UR_DROP_NONE);
		cr_assert(is_placed(psn), "PSN %u", psn);
	}
	cr_assert_eq(free_slots(), 64);
	cr_assert_null(e->qp->gbn_rsp.reorder.ctx);
	cr_assert_eq(end_counters(e)->early_disbelieved, 1);
}

/* REORDER-BELIEF-01 */
Test(reorder, packets_close_to_one_another_are_executed)
{
	static const uint32_t order[] = {107, 114, 121, 128, 101};
	bool came[32] = {0};

	for (unsigned i = 0; i < 5; i++) {
		cr_assert_eq(write_at(order[i], false), UR_DROP_NONE);
		came[order[i] - 100] = true;
	}
	for (uint32_t psn = 100; psn < 129; psn++)
		if (!came[psn - 100])
			cr_assert_eq(write_at(psn, false), UR_DROP_NONE);
	cr_assert_eq(e->qp->rsp.epsn.v, 129);
	cr_assert_eq(end_counters(e)->early_disbelieved, 0);
}

/* REORDER-BELIEF-01: a burst of losses, and the packets that follow it. */
Test(reorder, packets_beyond_a_burst_of_losses_are_executed_when_there_are_many)
{
	end_free(e);
	e = END(.mode = UR_MODE_REORDER, .reorder_slots = 1024);
	for (unsigned many = UR_REORDER_MANY - 1; many <= UR_REORDER_MANY; many++) {
		uint32_t epsn = e->qp->rsp.epsn.v;

		for (uint32_t i = 0; i < many; i++)
			cr_assert_eq(write_at(epsn + 50 + i, false), UR_DROP_NONE);
		for (uint32_t i = 0; i < 50; i++)
			cr_assert_eq(write_at(epsn + i, false), UR_DROP_NONE);
		cr_assert_eq(e->qp->rsp.epsn.v, epsn + 50 + (many == UR_REORDER_MANY ? many : 0));
		cr_assert_eq(end_counters(e)->early_disbelieved, UR_REORDER_MANY - 1);
		cr_assert_null(e->qp->gbn_rsp.reorder.ctx);
	}
}

Test(reorder, the_window_ends_1024_packets_beyond)
{
	cr_assert_eq(write_at(100 + 1023, false), UR_DROP_NONE);
	cr_assert_eq(write_at(100 + 1024, false), UR_DROP_NO_CONTEXT);
	cr_assert_eq(free_slots(), 63);
	cr_assert_eq(end_counters(e)->early_dropped, 1);
}

/* REORDER-KEEP-01: the context is small whatever it keeps. */
Test(reorder, a_whole_window_is_kept_in_less_than_a_kilobyte_beside_its_slots)
{
	end_free(e);
	e = END(.mode = UR_MODE_REORDER, .reorder_slots = 1280);
	cr_assert_leq(ur_reorder_pool_size(0, 4096, 2) - ur_reorder_pool_size(0, 4096, 1), 768);
	/* Each pair in the wrong order. */
	for (uint32_t i = 1; i < UR_REORDER_WINDOW - 1; i += 2) {
		cr_assert_eq(write_at(100 + i + 1, false), UR_DROP_NONE, "%u", i);
		cr_assert_eq(write_at(100 + i, false), UR_DROP_NONE, "%u", i);
	}
	for (uint32_t i = 1; i < UR_REORDER_WINDOW - 1; i += 63)
		cr_assert_eq(write_at(100 + i, false), UR_DROP_PSN_DUPLICATE);
	ur_reorder_validate(e->qp);
	cr_assert_eq(write_at(100, false), UR_DROP_NONE);
	cr_assert_eq(e->qp->rsp.epsn.v, 100 + UR_REORDER_WINDOW - 1);
	cr_assert_null(e->qp->gbn_rsp.reorder.ctx);
	cr_assert_eq(free_slots(), 1280);
}

/* REORDER-NAK-01 */
Test(reorder, three_later_packets_make_a_hole_a_loss)
{
	write_at(101, false);
	write_at(102, false);
	end_expect_silence(e);
	write_at(103, false);
	end_expect_nak(e, 100, SEQ_NAK);
	write_at(104, false);
	end_expect_silence(e);
	write_at(100, true);
	end_expect_ack(e, 104);
	cr_assert_eq(end_counters(e)->seq_nak_sent, 1);
}

Test(reorder, a_hole_that_stays_open_for_long_is_a_loss)
{
	write_at(101, false);
	end_sleep(e, REORDER_NS - 10000);
	end_expect_silence(e);
	end_sleep(e, 20000);
	end_expect_nak(e, 100, SEQ_NAK);
}

/* REORDER-NAK-02 */
Test(reorder, a_nak_that_brings_nothing_is_repeated_after_ever_longer_times)
{
	write_at(101, false);
	end_sleep(e, 110000);
	end_expect_nak(e, 100, SEQ_NAK);
	for (uint64_t wait = 200000; wait < 10000000; wait *= 2) {
		end_sleep(e, wait - 10000);
		end_expect_silence(e);
		end_sleep(e, 20000);
		end_expect_nak(e, 100, SEQ_NAK);
	}
	end_sleep(e, 10020000);
	end_expect_nak(e, 100, SEQ_NAK);
}

/* RC-RESP-ACK-05 */
Test(reorder, the_next_hole_is_reported_as_soon_as_the_first_is_filled)
{
	write_at(101, false);
	for (uint32_t psn = 103; psn < 106; psn++)
		write_at(psn, false);
	end_expect_nak(e, 100, SEQ_NAK);
	write_at(100, true);
	end_expect_ack(e, 101);
	end_expect_nak(e, 102, SEQ_NAK);
	end_expect_silence(e);
	write_at(102, true);
	end_expect_ack(e, 105);
}

Test(reorder, a_nak_that_has_not_left_when_its_hole_is_filled_is_an_ack)
{
	for (uint32_t psn = 101; psn < 104; psn++)
		write_at(psn, false);
	write_at(100, false);
	end_expect_ack(e, 103);
	end_expect_silence(e);
}

/* REORDER-WINDOW-01 */
Test(reorder, a_needless_nak_widens_the_reordering_window)
{
	for (uint32_t psn = 101; psn < 104; psn++)
		write_at(psn, false);
	end_expect_nak(e, 100, SEQ_NAK);
	write_at(100, false); /* the original, late */
	write_at(100, true);  /* the retransmission caused by the NAK */
	end_drain(e);
	for (uint32_t psn = 105; psn < 110; psn++)
		write_at(psn, false);
	end_expect_silence(e);
	end_sleep(e, 150000);
	end_expect_silence(e);
	write_at(110, false);
	end_expect_nak(e, 104, SEQ_NAK);
}

Test(reorder, patience_covers_what_was_late_before)
{
	write_at(101, false);
	write_at(102, false);
	write_at(100, false);
	write_at(104, false);
	write_at(105, false);
	write_at(106, false);
	end_expect_silence(e);
	write_at(107, false);
	end_expect_ack(e, 102);
	end_expect_nak(e, 103, SEQ_NAK);
}

/* REORDER-NAK-03 */
Test(reorder, without_a_free_slot_early_packets_are_dropped_and_asked_for)
{
	end_free(e);
	e = END(.mode = UR_MODE_REORDER, .reorder_slots = 2);
	write_at(101, false);
	write_at(102, false);
	cr_assert_eq(write_at(103, false), UR_DROP_NO_CONTEXT);
	end_expect_nak(e, 100, SEQ_NAK);
	write_at(100, true);
	end_expect_ack(e, 102);
	end_expect_nak(e, 103, SEQ_NAK);
	end_expect_silence(e);
	cr_assert_null(e->qp->gbn_rsp.reorder.ctx);
	write_at(103, true);
	end_expect_ack(e, 103);
}

Test(reorder, without_a_context_the_gap_is_handled_as_in_go_back_n)
{
	end_free(e);
	e = END(.mode = UR_MODE_REORDER, .no_contexts = true);
	cr_assert_eq(write_at(101, false), UR_DROP_NO_CONTEXT);
	end_expect_nak(e, 100, SEQ_NAK);
	cr_assert_eq(write_at(102, false), UR_DROP_NO_CONTEXT);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->early_dropped, 2);
	cr_assert_eq(end_counters(e)->ooo_exhausted, 2);
	cr_assert_eq(write_at(100, true), UR_DROP_NONE);
	end_expect_ack(e, 100);
}

Test(reorder, go_back_n_keeps_nothing)
{
	end_free(e);
	e = END(.mode = UR_MODE_GBN);
	cr_assert_eq(write_at(101, false), UR_DROP_PSN_GAP);
	end_expect_nak(e, 100, SEQ_NAK);
	cr_assert_eq(free_slots(), 64);
}

Test(reorder, a_read_kept_takes_the_psns_of_its_answer_when_its_turn_comes)
{
	struct ur_packet read = end_packet(e, UR_RC_READ_REQUEST, 101, 0);

	read.reth.length = 600;
	end_in(e, read);
	write_at(104, true);
	end_expect_silence(e);
	write_at(100, false);
	cr_assert_eq(e->qp->rsp.epsn.v, 105);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 101);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, 102);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 103);
	end_expect_ack(e, 104);
}

Test(reorder, packets_with_the_psns_of_a_read_are_forgotten)
{
	struct ur_packet read = end_packet(e, UR_RC_READ_REQUEST, 100, 0);

	read.reth.length = 600;
	write_at(101, false);
	write_at(102, false);
	end_in(e, read);
	cr_assert_eq(e->qp->rsp.epsn.v, 103);
	cr_assert_eq(free_slots(), 64);
	cr_assert_not(is_placed(101) || is_placed(102));
}

Test(reorder, an_atomic_kept_executes_once)
{
	struct ur_packet add = end_packet(e, UR_RC_FETCH_ADD, 101, 0);

	add.atomiceth.swap_add = 7;
	end_in(e, add);
	end_in(e, add);
	cr_assert_eq(e->buf[0], 0);
	end_recv(e, UR_RC_WRITE_ONLY, 100, 0);
	end_in(e, add);
	cr_assert_eq(e->buf[0], 7);
}

Test(reorder, an_immediate_kept_reaches_the_receive)
{
	struct ur_packet p = end_packet(e, UR_RC_SEND_ONLY_IMM, 101, 8);
	struct ibv_wc wc;

	p.imm = 0x01020304;
	end_post_recv(e, 1, 0, 64);
	end_post_recv(e, 2, 64, 64);
	end_in(e, p);
	end_recv(e, UR_RC_SEND_ONLY, 100, 8);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	wc = end_expect_wc(e, 2, IBV_WC_SUCCESS);
	cr_assert_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	cr_assert_eq(wc.imm_data, __builtin_bswap32(0x01020304));
}

/* REORDER-RNR-02 */
Test(reorder, a_replayed_packet_without_a_receive_gets_an_rnr_nak_and_the_rest_waits)
{
	end_recv(e, UR_RC_SEND_ONLY, 101, 8);
	for (uint32_t psn = 102; psn < 106; psn++)
		write_at(psn, psn == 105);
	end_expect_nak(e, 100, SEQ_NAK);
	write_at(100, true);
	end_expect_nak(e, 101, UR_SYNDROME_RNR_NAK | 12);
	end_sleep(e, 1000000);
	end_expect_silence(e);
	cr_assert_eq(free_slots(), 60);
	end_post_recv(e, 1, 0, 64);
	end_recv(e, UR_RC_SEND_ONLY, 101, 8);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_ack(e, 105);
	cr_assert(is_placed(105));
	cr_assert_eq(free_slots(), 64);
}

Test(reorder, a_peer_that_does_not_come_back_from_an_rnr_wait_is_asked)
{
	end_recv(e, UR_RC_SEND_ONLY, 100, 8);
	end_expect_nak(e, 100, UR_SYNDROME_RNR_NAK | 12);
	write_at(101, false);
	end_sleep(e, 11000000);
	end_expect_silence(e);
	end_sleep(e, 1000000);
	end_expect_nak(e, 100, SEQ_NAK);
}

Test(reorder, a_replayed_packet_is_refused_like_one_in_order)
{
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 101, 16);

	p.reth.rkey ^= 0x100;
	end_in(e, p);
	write_at(102, false);
	write_at(100, false);
	end_expect_nak(e, 101, UR_SYNDROME_NAK | UR_NAK_REM_ACCESS);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	cr_assert(is_placed(100));
	cr_assert_not(is_placed(102));
	cr_assert_eq(free_slots(), 64);
	cr_assert_eq(ur_engine_core(e->engine)->reorder.contexts_free, 1);
}

/* REORDER-STOP-01 */
Test(reorder, error_and_reset_forget_what_is_kept)
{
	write_at(101, false);
	write_at(103, false);
	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(free_slots(), 64);
	end_expect_silence(e);
	stop();
	start();
	write_at(101, false);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(free_slots(), 64);
	cr_assert_eq(ur_engine_core(e->engine)->reorder.contexts_free, 1);
	end_sleep(e, 1000000);
}

/* QP-MODE-01 */
Test(reorder, the_mode_is_set_before_the_connection_and_stays)
{
	cr_assert_eq(ur_qp_set_mode(e->qp, UR_MODE_GBN, false), -EINVAL);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(e->qp->ops->mode, UR_MODE_REORDER);
	cr_assert_eq(ur_qp_set_mode(e->qp, UR_MODE_EXTENDED, true), 0);
	cr_assert(e->qp->strict);
	cr_assert_eq(ur_qp_set_mode(e->qp, (enum ur_mode)(UR_MODE_EXTENDED + 1), false), -EINVAL);
	stop();
	e = END(.type = IBV_QPT_UC);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(ur_qp_set_mode(e->qp, UR_MODE_REORDER, false), -EINVAL);
}
