/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"

/* Requester and completer of mode reorder: PSNs from 1000, PMTU 256, local ACK timeout 67 ms. */
#define SEQ_NAK	   (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ)
#define TRIP_NS	   UINT64_C(20000)
#define TIMEOUT_NS (UINT64_C(4096) << 14)

static struct end *e;

static void start(void)
{
	e = END(.mode = UR_MODE_REORDER, .timeout = 14, .rd_atomic = 4);
}

static void stop(void)
{
	end_free(e);
}

TestSuite(reorder_requester, .init = start, .fini = stop);

/* Sends WRITEs of one packet each, with their PSNs as ids. */
static void writes(uint32_t first, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		end_send(e, first + i, IBV_WR_RDMA_WRITE, 4);
		end_expect(e, UR_RC_WRITE_ONLY, first + i);
	}
}

static void expect_completions(uint32_t first, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		end_expect_wc(e, first + i, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
}

/* Measures a round trip, so that the queue pair has the delay of an answer. Acknowledges 1000. */
static void measure(void)
{
	writes(1000, 1);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1000, 0x1f, 1);
	expect_completions(1000, 1);
}

static void expect_repeat(uint32_t psn)
{
	cr_assert(end_expect(e, UR_RC_WRITE_ONLY, psn)->bth.ackreq);
}

/* Lets the requester detect the peer's mode: 1001 is lost, 1002 and 1003 arrive. */
static void find_out(bool buffers)
{
	measure();
	writes(1001, 3);
	end_ack(e, 1001, SEQ_NAK, 1);
	expect_repeat(1001);
	end_sleep(e, TRIP_NS);
	if (buffers) {
		end_ack(e, 1003, 0x1f, 4);
	} else {
		end_ack(e, 1001, 0x1f, 2);
		expect_repeat(1002);
		end_sleep(e, TRIP_NS);
		end_ack(e, 1002, 0x1f, 3);
		end_expect(e, UR_RC_WRITE_ONLY, 1003);
		end_sleep(e, TRIP_NS);
		end_ack(e, 1003, 0x1f, 4);
	}
	end_expect_silence(e);
	expect_completions(1001, 3);
	cr_assert_eq(e->qp->gbn.rec.peer, buffers ? UR_PEER_BUFFERS : UR_PEER_GBN);
}

/* REORDER-REPEAT-01, REORDER-PEER-01 */
Test(reorder_requester, a_nak_is_answered_by_one_packet_and_nothing_new_before_its_answer)
{
	measure();
	writes(1001, 3);
	end_ack(e, 1001, SEQ_NAK, 1);
	end_send(e, 9, IBV_WR_RDMA_WRITE, 4);
	expect_repeat(1001);
	end_expect_silence(e);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1003, 0x1f, 4);
	end_expect(e, UR_RC_WRITE_ONLY, 1004);
	cr_assert_eq(end_counters(e)->retransmitted_packets, 1);
}

/* REORDER-PEER-02 */
Test(reorder_requester, to_a_peer_that_buffers_new_packets_go_on_during_a_repair)
{
	find_out(true);
	writes(1004, 4);
	end_ack(e, 1005, SEQ_NAK, 5);
	expect_completions(1004, 1);
	expect_repeat(1005);
	writes(1008, 2);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1009, 0x1f, 10);
	expect_completions(1005, 5);
	end_expect_silence(e);
}

/* REORDER-PEER-03 */
Test(reorder_requester, to_a_peer_that_goes_back_n_everything_goes_again_at_once)
{
	find_out(false);
	writes(1004, 3);
	end_ack(e, 1004, SEQ_NAK, 4);
	for (uint32_t psn = 1004; psn < 1007; psn++)
		end_expect(e, UR_RC_WRITE_ONLY, psn);
	end_expect_silence(e);
}

/*
 * REORDER-PEER-02. 1001 is only late: a peer with go-back-N accepts it and the following packets in
 * order, and has dropped the packet that revealed the gap.
 */
Test(reorder_requester, a_late_packet_does_not_show_that_the_peer_buffers)
{
	measure();
	writes(1001, 4);
	end_ack(e, 1001, SEQ_NAK, 1);
	expect_repeat(1001);
	end_ack(e, 1003, SEQ_NAK, 3);
	cr_assert_eq(e->qp->gbn.rec.peer, UR_PEER_UNKNOWN);
}

/* REORDER-NAK-04 */
Test(reorder_requester, a_nak_beyond_a_missing_response_is_remembered)
{
	find_out(false);
	end_send(e, 1004, IBV_WR_RDMA_READ, 256);
	end_expect(e, UR_RC_READ_REQUEST, 1004);
	writes(1005, 2);
	end_sleep(e, TRIP_NS);
	cr_assert_eq(end_ack(e, 1006, SEQ_NAK, 6), UR_DROP_PSN_GAP);
	end_send(e, 1007, IBV_WR_RDMA_WRITE, 4);
	end_expect_silence(e);
	end_sleep(e, 200000);
	end_expect(e, UR_RC_READ_REQUEST, 1004);
	end_expect_silence(e);
	end_sleep(e, TRIP_NS);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1004, 256);
	expect_completions(1004, 2);
	for (uint32_t psn = 1006; psn < 1008; psn++)
		end_expect(e, UR_RC_WRITE_ONLY, psn);
	end_ack(e, 1007, 0x1f, 8);
	expect_completions(1006, 2);
}

/* A repeated READ request is answered and nothing follows: the next one was dropped as well. */
Test(reorder_requester, a_read_that_goes_back_n_dropped_is_asked_for_behind_the_answer_before)
{
	find_out(false);
	for (uint32_t psn = 1004; psn < 1006; psn++) {
		end_send(e, psn, IBV_WR_RDMA_READ, 256);
		end_expect(e, UR_RC_READ_REQUEST, psn);
	}
	end_sleep(e, 1100000);
	end_expect(e, UR_RC_READ_REQUEST, 1004);
	end_sleep(e, TRIP_NS);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1004, 256);
	end_expect(e, UR_RC_READ_REQUEST, 1005);
	cr_assert_eq(end_counters(e)->probes_sent, 1);
	cr_assert_eq(end_counters(e)->rto, 0);
}

Test(reorder_requester, a_peer_that_goes_back_n_is_looked_at_again_after_some_gaps)
{
	uint32_t psn = 1004;

	find_out(false);
	for (unsigned i = 0; i < 31; i++, psn += 2) {
		writes(psn, 2);
		end_sleep(e, TRIP_NS);
		end_ack(e, psn, SEQ_NAK, 4);
		cr_assert_eq(end_drain(e), 2);
		end_ack(e, psn + 1, 0x1f, 4);
		expect_completions(psn, 2);
	}
	writes(psn, 3);
	end_sleep(e, TRIP_NS);
	end_ack(e, psn, SEQ_NAK, 4);
	expect_repeat(psn);
	end_expect_silence(e);
	cr_assert_eq(e->qp->gbn.rec.peer, UR_PEER_UNKNOWN);
}

Test(reorder_requester, two_losses_in_a_row_do_not_make_a_peer_that_buffers_another)
{
	find_out(true);
	writes(1004, 4);
	end_ack(e, 1004, SEQ_NAK, 4);
	expect_repeat(1004);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1005, SEQ_NAK, 5);
	expect_repeat(1005);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1007, 0x1f, 8);
	end_expect_silence(e);
	cr_assert_eq(e->qp->gbn.rec.peer, UR_PEER_BUFFERS);
}

Test(reorder_requester, a_second_nak_before_a_round_trip_is_over_says_nothing)
{
	find_out(true);
	writes(1004, 2);
	end_ack(e, 1004, SEQ_NAK, 4);
	expect_repeat(1004);
	end_sleep(e, TRIP_NS / 2);
	end_ack(e, 1004, SEQ_NAK, 4);
	end_expect_silence(e);
	end_sleep(e, TRIP_NS / 2);
	end_ack(e, 1004, SEQ_NAK, 4);
	expect_repeat(1004);
}

Test(reorder_requester, a_repair_that_an_ack_makes_moot_is_not_sent)
{
	find_out(true);
	writes(1004, 2);
	end_ack(e, 1004, SEQ_NAK, 4);
	end_ack(e, 1005, 0x1f, 6);
	end_expect_silence(e);
	expect_completions(1004, 2);
}

/* A NAK after a probe ends the wait for the probe, even if its own repair is no longer needed. */
Test(reorder_requester, the_wait_for_a_probe_ends_with_the_probe)
{
	measure();
	writes(1001, 4);
	end_ack(e, 1001, SEQ_NAK, 1);
	expect_repeat(1001);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1002, SEQ_NAK, 2);
	end_ack(e, 1004, 0x1f, 5);
	expect_completions(1001, 4);
	writes(1005, 1);
}

/* REORDER-RNR-01 */
Test(reorder_requester, after_an_rnr_wait_the_refused_packet_goes_alone)
{
	find_out(true);
	writes(1004, 3);
	end_ack(e, 1004, UR_SYNDROME_RNR_NAK | 12, 4);
	end_expect_silence(e);
	end_sleep(e, 700000);
	expect_repeat(1004);
	end_expect_silence(e);
	end_ack(e, 1006, 0x1f, 7);
	expect_completions(1004, 3);
}

/* RC-RETRY-RTO-01, RC-RETRY-RTO-04 */
Test(reorder_requester, silence_brings_the_oldest_packet_again_for_nothing)
{
	unsigned repeats = 0;

	find_out(true);
	writes(1004, 2);
	for (uint64_t at = 0; at < TIMEOUT_NS - 1000000; at += 500000) {
		end_sleep(e, 500000);
		for (const struct ur_packet *p; (p = end_out(e)); repeats++)
			cr_assert_eq(p->bth.psn.v, 1004);
	}
	cr_assert_eq(repeats, 12, "%u: after 1, 3, 5, 7, 9, 13, 21, 29, 38, 46, 54 and 63 ms",
		     repeats);
	cr_assert_eq(ur_retry_left(&e->qp->retry), 3);
	cr_assert_eq(end_counters(e)->probes_sent, 1);
	cr_assert_eq(end_counters(e)->rto, 11);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 0);
	end_sleep(e, 2000000);
	cr_assert_eq(ur_retry_left(&e->qp->retry), 2);
	expect_repeat(1004);
}

/* RC-RETRY-LIMIT-01 */
Test(reorder_requester, a_dead_peer_is_given_up_after_retry_cnt_and_one_timeouts)
{
	writes(1000, 1);
	for (unsigned i = 0; i < 3; i++) {
		end_sleep(e, TIMEOUT_NS + 1000000);
		end_drain(e);
		end_expect_no_wc(e);
	}
	end_sleep(e, TIMEOUT_NS + 1000000);
	end_expect_wc(e, 1000, IBV_WC_RETRY_EXC_ERR);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 4);
}

Test(reorder_requester, go_back_n_also_asks_before_the_ack_timeout)
{
	stop();
	e = END(.timeout = 14);
	measure();
	writes(1001, 3);
	end_sleep(e, 4100000);
	expect_repeat(1001);
	end_expect_silence(e);
	end_sleep(e, TRIP_NS);
	end_ack(e, 1001, 0x1f, 2);
	end_expect(e, UR_RC_WRITE_ONLY, 1002);
	end_expect(e, UR_RC_WRITE_ONLY, 1003);
	end_expect_silence(e);
}

/*
 * RC-COMP-EMPTY-02: the response to a READ of no bytes was lost, and the request behind it as well. rxe of Linux 6.12
 * ignores the READ when it comes again.
 */
Test(reorder_requester, what_follows_a_read_of_no_bytes_is_sent_again_after_silence)
{
	unsigned reads = 0;

	find_out(true);
	end_send(e, 1004, IBV_WR_RDMA_READ, 0);
	end_expect(e, UR_RC_READ_REQUEST, 1004);
	writes(1005, 2);
	for (const struct ur_packet *p = NULL; !p || p->bth.opcode == UR_RC_READ_REQUEST;) {
		cr_assert_lt(reads, 4);
		end_sleep(e, 500000);
		p = end_out(e);
		reads += p && p->bth.opcode == UR_RC_READ_REQUEST;
	}
	cr_assert_eq(reads, 2, "%u: alone, then with what follows", reads);
	cr_assert_eq(ur_retry_left(&e->qp->retry), 3);
	end_expect(e, UR_RC_WRITE_ONLY, 1006);
	end_expect_silence(e);
	cr_assert_eq(end_ack(e, 1006, 0x1f, 9), UR_DROP_NONE);
	expect_completions(1004, 3);
	ur_qp_validate(e->qp);
}

/* ---- READs ---- */

/* A READ of `psns` responses into the buffer from byte 0; the request was sent. */
static void post_read(uint32_t psn, uint32_t psns)
{
	end_send(e, psn, IBV_WR_RDMA_READ, psns * 256);
	end_expect(e, UR_RC_READ_REQUEST, psn);
}

/* The response `psn` of the READ [first, end). */
static enum ur_drop respond(uint32_t psn, uint32_t first, uint32_t end)
{
	uint8_t op = psn + 1 == end
			     ? (psn == first ? UR_RC_READ_RESPONSE_ONLY : UR_RC_READ_RESPONSE_LAST)
		     : psn == first ? UR_RC_READ_RESPONSE_FIRST
				    : UR_RC_READ_RESPONSE_MIDDLE;

	return end_recv(e, op, psn, 256);
}

static bool is_there(uint32_t psn, uint32_t first)
{
	return e->buf[(psn - first) * 256] == (psn & 0xff);
}

static void expect_read(uint32_t psn, uint32_t psns, uint64_t off)
{
	const struct ur_packet *p = end_expect(e, UR_RC_READ_REQUEST, psn);

	cr_assert_eq(p->reth.length, psns * 256);
	cr_assert_eq(p->reth.va, 0x7000 + off);
}

/* REORDER-READ-01, REORDER-READ-02 */
Test(reorder_requester, responses_beyond_a_hole_are_placed_and_only_the_hole_is_read_again)
{
	post_read(1000, 8);
	cr_assert_eq(respond(1000, 1000, 8), UR_DROP_NONE);
	for (uint32_t psn = 1003; psn < 1008; psn++)
		cr_assert_eq(respond(psn, 1000, 1008), UR_DROP_NONE);
	for (uint32_t psn = 1003; psn < 1008; psn++)
		cr_assert(is_there(psn, 1000));
	expect_read(1001, 2, 256);
	end_expect_silence(e);
	end_expect_no_wc(e);
	end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1001, 256);
	end_recv(e, UR_RC_READ_RESPONSE_LAST, 1002, 256);
	cr_assert(is_there(1001, 1000) && is_there(1002, 1000));
	expect_completions(1000, 1);
	cr_assert_null(e->qp->gbn.gap);
	cr_assert_eq(e->qp->gbn.rd_out, 0);
	cr_assert_eq(end_counters(e)->early_responses, 5);
}

Test(reorder_requester, responses_in_any_order_need_no_second_request)
{
	static const uint32_t order[] = {1002, 1000, 1003, 1001};

	post_read(1000, 4);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(respond(order[i], 1000, 1004), UR_DROP_NONE);
	end_expect_silence(e);
	expect_completions(1000, 1);
	for (uint32_t psn = 1000; psn < 1004; psn++)
		cr_assert(is_there(psn, 1000));
}

Test(reorder_requester, holes_are_asked_for_one_after_the_other)
{
	post_read(1000, 8);
	for (uint32_t psn = 1001; psn < 1008; psn++)
		if (psn != 1003)
			respond(psn, 1000, 1008);
	expect_read(1000, 1, 0);
	end_expect_silence(e);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 256);
	expect_read(1003, 1, 3 * 256);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1003, 256);
	expect_completions(1000, 1);
}

Test(reorder_requester, a_response_acknowledges_what_was_sent_before_its_read)
{
	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 256);
	end_send(e, 3, IBV_WR_RDMA_WRITE, 4);
	end_send(e, 4, IBV_WR_RDMA_READ, 256);
	cr_assert_eq(end_drain(e), 4);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1003, 256);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1001, 256);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_wc(e, 3, IBV_WC_SUCCESS);
	end_expect_wc(e, 4, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->gbn.rd_out, 0);
}

Test(reorder_requester, an_ack_beyond_a_missing_response_is_not_forgotten)
{
	post_read(1000, 1);
	writes(1001, 2);
	cr_assert_eq(end_ack(e, 1002, 0x1f, 3), UR_DROP_PSN_GAP);
	end_expect_silence(e);
	end_sleep(e, 110000);
	expect_read(1000, 1, 0);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 256);
	expect_completions(1000, 3);
}

/* RC-COMP-IMPLIED-01, REORDER-READ-02: the response may only be late. */
Test(reorder_requester, an_ack_with_a_psn_of_a_read_does_not_complete_it)
{
	post_read(1000, 2);
	cr_assert_eq(end_ack(e, 1001, 0x1f, 1), UR_DROP_PSN_GAP);
	end_expect_no_wc(e);
	end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1000, 256);
	cr_assert_eq(end_ack(e, 1001, 0x1f, 1), UR_DROP_PSN_GAP);
	end_expect_no_wc(e);
	end_sleep(e, 110000);
	expect_read(1001, 1, 256);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1001, 256);
	expect_completions(1000, 1);
}

Test(reorder_requester, an_early_answer_of_an_atomic_waits_for_its_turn)
{
	struct ur_packet p = end_packet(e, UR_RC_ATOMIC_ACKNOWLEDGE, 1001, 0);

	p.atomic_ack = 0x1122334455667788;
	post_read(1000, 1);
	end_send(e, 1001, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_expect(e, UR_RC_FETCH_ADD, 1001);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(end_in(e, p), UR_DROP_PSN_STALE, "a copy");
	end_expect_no_wc(e);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 256);
	expect_completions(1000, 2);
}

Test(reorder_requester, the_repetition_of_a_lost_answer_does_not_change_the_atomic)
{
	end_send(e, 1000, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_send(e, 1001, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	cr_assert_eq(end_drain(e), 2);
	end_recv(e, UR_RC_ATOMIC_ACKNOWLEDGE, 1001, 0);
	end_sleep(e, 110000);
	end_expect(e, UR_RC_FETCH_ADD, 1000);
	end_expect_silence(e);
	end_recv(e, UR_RC_ATOMIC_ACKNOWLEDGE, 1000, 0);
	expect_completions(1000, 2);
}

Test(reorder_requester, an_early_response_of_a_wrong_length_ends_the_connection)
{
	post_read(1000, 4);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_MIDDLE, 1002, 128), UR_DROP_MSG_LENGTH);
	end_expect_wc(e, 1000, IBV_WC_BAD_RESP_ERR);
	cr_assert_eq(e->buf[512], 0);
	cr_assert_eq(ur_engine_core(e->engine)->read_gaps.free_cnt, 1);
}

Test(reorder_requester, an_early_response_that_no_read_asked_for_writes_nothing)
{
	post_read(1000, 1);
	writes(1001, 2);
	memset(e->buf, 0xee, 256);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1002, 256), UR_DROP_UNEXPECTED);
	cr_assert_eq(e->buf[0], 0xee);
	cr_assert_null(e->qp->gbn.gap);
}

/* REORDER-BELIEF-02: many packets may be lost in a row, but a single forged packet is not accepted. */
Test(reorder_requester, a_response_far_beyond_all_others_is_believed_with_seven_more)
{
	end_send(e, 1000, IBV_WR_RDMA_READ, 32 * 256);
	cr_assert_eq(end_drain(e), 4, "parts of eight responses");
	memset(e->buf, 0xee, 32 * 256);
	for (uint32_t psn = 1010; psn < 1017; psn++) {
		cr_assert_eq(respond(psn, 1000, 1032), UR_DROP_PSN_GAP);
		cr_assert_eq(e->buf[(psn - 1000) * 256], 0xee);
	}
	cr_assert_eq(respond(1017, 1000, 1032), UR_DROP_NONE);
	cr_assert(is_there(1017, 1000));
	cr_assert_eq(respond(1009, 1000, 1032), UR_DROP_NONE, "before what is believed");
	cr_assert_eq(respond(1025, 1000, 1032), UR_DROP_NONE, "eight further");
	cr_assert_eq(respond(1031, 1000, 1032), UR_DROP_NONE);
	cr_assert_eq(end_counters(e)->early_disbelieved, 7);
	cr_assert_eq(end_counters(e)->early_responses, 4);
}

Test(reorder_requester, guesses_that_are_far_from_one_another_are_not_believed)
{
	end_send(e, 1000, IBV_WR_RDMA_READ, 32 * 256);
	cr_assert_eq(end_drain(e), 4, "parts of eight responses");
	memset(e->buf, 0xee, 32 * 256);
	for (unsigned i = 0; i < 30; i++)
		cr_assert_eq(respond(i % 2 ? 1030 : 1012, 1000, 1032), UR_DROP_PSN_GAP);
	for (unsigned i = 0; i < 32 * 256; i++)
		cr_assert_eq(e->buf[i], 0xee);
}

Test(reorder_requester, requests_without_an_answer_do_not_come_between_two_responses)
{
	post_read(1000, 1);
	writes(1001, 10);
	post_read(1011, 2);
	cr_assert_eq(respond(1012, 1011, 1013), UR_DROP_NONE);
	cr_assert_eq(end_counters(e)->early_responses, 1);
}

Test(reorder_requester, without_a_context_everything_is_read_again)
{
	stop();
	e = END(.mode = UR_MODE_REORDER, .no_contexts = true);
	post_read(1000, 4);
	respond(1002, 1000, 1004);
	cr_assert_eq(end_counters(e)->rtx_exhausted, 1);
	end_expect(e, UR_RC_READ_REQUEST, 1000);
	for (uint32_t psn = 1000; psn < 1004; psn++)
		respond(psn, 1000, 1004);
	expect_completions(1000, 1);
}

Test(reorder_requester, a_lost_read_request_is_repeated_whole)
{
	post_read(1000, 4);
	writes(1004, 1);
	end_ack(e, 1000, SEQ_NAK, 0);
	expect_read(1000, 4, 0);
	for (uint32_t psn = 1000; psn < 1004; psn++)
		respond(psn, 1000, 1004);
	end_ack(e, 1004, 0x1f, 2);
	end_expect_wc(e, 1000, IBV_WC_SUCCESS);
	end_expect_wc(e, 1004, IBV_WC_SUCCESS);
}

Test(reorder_requester, parts_of_a_long_read_count_as_answered_when_all_before_them_came)
{
	/* RC-REQ-PART-01: a window of 64 makes parts of 8 responses. */
	end_send(e, 1000, IBV_WR_RDMA_READ, 28 * 256);
	for (uint32_t psn = 1000; psn < 1028; psn += 8)
		end_expect(e, UR_RC_READ_REQUEST, psn);
	cr_assert_eq(e->qp->gbn.rd_out, 4);
	for (uint32_t psn = 1001; psn < 1026; psn++)
		respond(psn, 1000, 1028);
	cr_assert_eq(e->qp->gbn.rd_out, 4);
	expect_read(1000, 1, 0);
	end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 256);
	cr_assert_eq(e->qp->gbn.rd_out, 1);
	for (uint32_t psn = 1026; psn < 1028; psn++)
		respond(psn, 1000, 1028);
	cr_assert_eq(e->qp->gbn.rd_out, 0);
	expect_completions(1000, 1);
}

/* REORDER-STOP-01 */
Test(reorder_requester, error_and_reset_give_the_context_back)
{
	post_read(1000, 4);
	respond(1002, 1000, 1004);
	cr_assert_eq(ur_engine_core(e->engine)->read_gaps.free_cnt, 0);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(ur_engine_core(e->engine)->read_gaps.free_cnt, 1);
	end_sleep(e, TIMEOUT_NS);
}
