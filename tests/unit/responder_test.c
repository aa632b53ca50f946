/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "end.h"

/* The packet must be refused with this NAK, which ends the connection. */
static void expect_refusal(struct end *e, struct ur_packet p, uint8_t nak, enum ur_drop drop)
{
	uint32_t psn = p.bth.psn.v;

	cr_assert_eq(end_in(e, p), drop);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_expect_nak(e, psn, UR_SYNDROME_NAK | nak);
	end_expect_silence(e);
}

/* ---- PSN: RC-RESP-PSN-01 ---- */

/* RC-RESP-ACK-01 */
Test(responder, request_with_ackreq_is_acknowledged)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 16);

	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_silence(e);
	p.bth.psn = ur_psn(101);
	p.bth.ackreq = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, 101);
	cr_assert_eq(e->out.aeth.msn, 2);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-01 */
Test(responder, acks_coalesce)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 0);

	p.bth.ackreq = true;
	for (uint32_t psn = 100; psn < 105; psn++) {
		p.bth.psn = ur_psn(psn);
		cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	}
	end_expect_ack(e, 104);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-DUP-01 */
Test(responder, duplicate_write_is_acknowledged_and_not_executed)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 16), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 101, 16), UR_DROP_NONE);
	memset(e->buf, 0xee, 16);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 16), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(e->buf[0], 0xee);
	end_expect_ack(e, 101);
	cr_assert_eq(end_counters(e)->duplicate_request, 1);
	end_free(e);
}

/* RC-RESP-DUP-01 */
Test(responder, duplicate_send_takes_no_receive)
{
	struct end *e = END();

	end_post_recv(e, 1, 0, 64);
	end_post_recv(e, 2, 0, 64);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 100, 16), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 100, 16), UR_DROP_PSN_DUPLICATE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	end_free(e);
}

/* RC-RESP-PSN-01 */
Test(responder, the_window_of_duplicates_ends_2_to_the_23_before_the_expected_psn)
{
	struct end *e = END(.rq_psn = 0x800000);

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 0, 4), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 0xffffff, 4), UR_DROP_PSN_GAP);
	end_free(e);
}

Test(responder, psns_wrap_in_the_middle_of_a_message)
{
	struct end *e = END(.rq_psn = 0xffffff);
	struct ur_packet p = end_packet(e, UR_RC_WRITE_FIRST, 0xffffff, 256);

	p.reth.length = 260;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	p = end_packet(e, UR_RC_WRITE_LAST, 0, 4);
	p.bth.ackreq = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, 0);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 0xffffff, 4), UR_DROP_PSN_DUPLICATE);
	end_expect_ack(e, 0);
	end_free(e);
}

/* RC-RESP-GAP-01 */
Test(responder, gap_is_reported_with_the_expected_psn)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 103, 16), UR_DROP_PSN_GAP);
	end_expect_nak(e, 100, 0x60);
	cr_assert_eq(e->out.aeth.msn, 0);
	cr_assert_eq(e->buf[1], 0);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

/* RC-RESP-GAP-01 */
Test(responder, second_gap_sends_no_second_nak)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 101, 16), UR_DROP_PSN_GAP);
	end_expect_nak(e, 100, 0x60);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 102, 16), UR_DROP_PSN_GAP);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->out_of_sequence, 2);
	cr_assert_eq(end_counters(e)->seq_nak_sent, 1);
	end_free(e);
}

/* RC-RESP-GAP-01 */
Test(responder, a_new_gap_after_a_filled_one_is_reported)
{
	struct end *e = END();

	end_recv(e, UR_RC_WRITE_ONLY, 101, 16);
	end_expect_nak(e, 100, 0x60);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 16), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 102, 16), UR_DROP_PSN_GAP);
	end_expect_ack(e, 100);
	end_expect_nak(e, 101, 0x60);
	end_free(e);
}

/* RC-RESP-ACK-05: rxe spends a retry for each NAK, and only an ACK restores them. */
Test(responder, ack_of_what_has_come_goes_before_a_sequence_nak)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 102, 0);

	for (uint32_t psn = 100; psn < 102; psn++)
		cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, psn, 16), UR_DROP_NONE);
	end_expect_silence(e);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 103, 16), UR_DROP_PSN_GAP);
	end_expect_ack(e, 101);
	end_expect_nak(e, 102, 0x60);
	/* A requested ACK has the same effect. */
	p.bth.ackreq = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, 102);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 104, 16), UR_DROP_PSN_GAP);
	end_expect_nak(e, 103, 0x60);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-04 */
Test(responder, every_32nd_packet_is_acknowledged_unasked)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_FIRST, 100, 256);

	p.reth.length = 100 * 256;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	for (uint32_t psn = 101; psn < 199; psn++) {
		cr_assert_eq(end_recv(e, UR_RC_WRITE_MIDDLE, psn, 256), UR_DROP_NONE);
		if ((psn - 99) % 32 == 0)
			end_expect_ack(e, psn);
		end_expect_silence(e);
	}
	cr_assert_eq(end_counters(e)->acks_sent, 3);
	end_free(e);
}

/* RC-RESP-ACK-04 */
Test(responder, uc_packets_are_never_acknowledged)
{
	struct end *e = END(.type = IBV_QPT_UC);

	for (uint32_t psn = 100; psn < 200; psn++)
		cr_assert_eq(end_recv(e, UR_UC_WRITE_ONLY, psn, 16), UR_DROP_NONE);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-GAP-02 */
Test(responder, nak_still_owed_when_its_hole_is_filled_asks_for_the_next)
{
	struct end *e = END();

	end_recv(e, UR_RC_WRITE_ONLY, 101, 16);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 16), UR_DROP_NONE);
	end_expect_ack(e, 100);
	end_expect_nak(e, 101, 0x60);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-GAP-02 */
Test(responder, nak_still_owed_becomes_an_ack_when_nothing_is_missing)
{
	struct end *e = END();

	end_recv(e, UR_RC_WRITE_ONLY, 101, 16);
	end_recv(e, UR_RC_WRITE_ONLY, 100, 16);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 101, 16), UR_DROP_NONE);
	end_expect_ack(e, 101);
	end_expect_silence(e);
	end_free(e);
}

Test(responder, duplicate_does_not_hide_a_nak_that_is_owed)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 16), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 102, 16), UR_DROP_PSN_GAP);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 16), UR_DROP_PSN_DUPLICATE);
	end_expect_ack(e, 100);
	end_expect_nak(e, 101, 0x60);
	end_expect_silence(e);
	end_free(e);
}

/* ---- sequence: RC-RESP-SEQ-01 ---- */

static void refuses_after(uint8_t first, uint8_t second)
{
	struct end *e = END();
	struct ur_packet p;
	uint32_t psn = 100;

	end_post_recv(e, 1, 0, 4096);
	if (first) {
		p = end_packet(e, first == 0xff ? UR_RC_SEND_FIRST : first, psn++, 256);
		p.reth.length = 4096;
		cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	}
	p = end_packet(e, second, psn, ur_opcodes[second].flags & UR_OP_PAYLOAD ? 256 : 0);
	expect_refusal(e, p, 1, UR_DROP_OP_SEQUENCE);
	cr_assert_eq(end_counters(e)->resp_invalid_requests, 1);
	end_expect_wc(e, 1, IBV_WC_WR_FLUSH_ERR);
	end_free(e);
}

/* RC-RESP-SEQ-01, RC-RESP-NAK-01 */
Test(responder, message_out_of_sequence_is_an_invalid_request)
{
	refuses_after(0, UR_RC_SEND_MIDDLE);
	refuses_after(0, UR_RC_SEND_LAST);
	refuses_after(0, UR_RC_SEND_LAST_INV);
	refuses_after(0, UR_RC_WRITE_MIDDLE);
	refuses_after(0, UR_RC_WRITE_LAST_IMM);
	refuses_after(0xff, UR_RC_SEND_FIRST);
	refuses_after(0xff, UR_RC_SEND_ONLY);
	refuses_after(0xff, UR_RC_WRITE_LAST);
	refuses_after(0xff, UR_RC_WRITE_ONLY);
	refuses_after(0xff, UR_RC_READ_REQUEST);
	refuses_after(0xff, UR_RC_FETCH_ADD);
	refuses_after(UR_RC_WRITE_FIRST, UR_RC_SEND_LAST);
	refuses_after(UR_RC_WRITE_FIRST, UR_RC_WRITE_FIRST);
	refuses_after(UR_RC_WRITE_FIRST, UR_RC_COMPARE_SWAP);
}

/* RC-RESP-SEQ-01 */
Test(responder, the_psn_is_looked_at_before_the_sequence)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_SEND_MIDDLE, 101, 256), UR_DROP_PSN_GAP);
	cr_assert_eq(end_recv(e, UR_RC_SEND_MIDDLE, 99, 256), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

/* ---- rights: RC-RESP-RIGHTS-01 ---- */

/* RC-RESP-RIGHTS-01 */
Test(responder, what_the_queue_pair_does_not_permit_is_an_invalid_request)
{
	static const struct {
		int right;
		uint8_t opcode;
		uint16_t len;
	} cases[] = {
		{IBV_ACCESS_REMOTE_WRITE, UR_RC_WRITE_ONLY, 16},
		{IBV_ACCESS_REMOTE_READ, UR_RC_READ_REQUEST, 0},
		{IBV_ACCESS_REMOTE_ATOMIC, UR_RC_FETCH_ADD, 0},
		{IBV_ACCESS_REMOTE_ATOMIC, UR_RC_COMPARE_SWAP, 0},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end *e = END(.no_access = cases[i].right);

		expect_refusal(e, end_packet(e, cases[i].opcode, 100, cases[i].len), 1,
			       UR_DROP_ACCESS);
		cr_assert_eq(end_async(e, IBV_EVENT_QP_REQ_ERR), 1);
		end_free(e);
	}
}

/* ---- lengths: RC-RESP-LEN-01 ---- */

static void refuses_length(uint8_t opcode, uint16_t len, uint32_t reth_len)
{
	struct end *e = END();
	struct ur_packet p;
	uint32_t psn = 100;

	end_post_recv(e, 1, 0, 4096);
	if (!(ur_opcodes[opcode].flags & UR_OP_FIRST)) {
		uint8_t before = ur_opcodes[opcode].flags & UR_OP_SEND ? UR_RC_SEND_FIRST
								       : UR_RC_WRITE_FIRST;

		p = end_packet(e, before, psn++, 256);
		p.reth.length = 256 + reth_len;
		cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	}
	p = end_packet(e, opcode, psn, len);
	p.reth.length = reth_len;
	expect_refusal(e, p, 1, UR_DROP_MSG_LENGTH);
	end_free(e);
}

/* RC-RESP-LEN-01 */
Test(responder, payload_that_fits_neither_place_nor_total_is_an_invalid_request)
{
	refuses_length(UR_RC_SEND_FIRST, 255, 0);
	refuses_length(UR_RC_SEND_FIRST, 260, 0);
	refuses_length(UR_RC_SEND_MIDDLE, 255, 500);
	refuses_length(UR_RC_SEND_LAST, 0, 500);
	refuses_length(UR_RC_SEND_LAST, 257, 500);
	refuses_length(UR_RC_SEND_ONLY, 257, 0);
	refuses_length(UR_RC_WRITE_FIRST, 256, 256);
	refuses_length(UR_RC_WRITE_FIRST, 256, (1u << 31) + 1);
	refuses_length(UR_RC_WRITE_MIDDLE, 256, 256);
	refuses_length(UR_RC_WRITE_LAST, 0, 16);
	refuses_length(UR_RC_WRITE_LAST, 15, 16);
	refuses_length(UR_RC_WRITE_LAST, 17, 16);
	refuses_length(UR_RC_WRITE_ONLY, 16, 15);
	refuses_length(UR_RC_WRITE_ONLY, 16, 17);
	refuses_length(UR_RC_READ_REQUEST, 0, (1u << 31) + 1);
}

/* RC-RESP-LEN-01 */
Test(responder, read_of_2_to_the_23_packets_is_an_invalid_request)
{
	refuses_length(UR_RC_READ_REQUEST, 0, 1u << 31);
}

/* RC-RESP-LEN-01 */
Test(responder, empty_messages_are_messages)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 101, 0);

	end_post_recv(e, 1, 0, 0);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 100, 0), UR_DROP_NONE);
	cr_assert_eq(end_expect_wc(e, 1, IBV_WC_SUCCESS).byte_len, 0);
	/* RC-RESP-ACC-01: without a byte, no key is needed. */
	p.reth.rkey = 0x5555;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	p = end_packet(e, UR_RC_READ_REQUEST, 102, 0);
	p.reth.rkey = 0x5555;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 102);
	cr_assert_eq(e->out.payload_len, 0);
	end_free(e);
}

/* RC-RESP-ATOMIC-01 */
Test(responder, atomic_at_an_odd_address_is_an_invalid_request)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_FETCH_ADD, 100, 0);

	p.atomiceth.va += 4;
	expect_refusal(e, p, 1, UR_DROP_MSG_LENGTH);
	end_free(e);
}

/* RC-RESP-ATOMIC-01 */
Test(responder, atomic_at_an_even_address_of_an_odd_region_is_an_invalid_request)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_FETCH_ADD, 100, 0);

	p.atomiceth.rkey = e->unaligned_key;
	p.atomiceth.va = 8;
	expect_refusal(e, p, 1, UR_DROP_MSG_LENGTH);
	end_free(e);
}

/* ---- resources: RC-RESP-RES-01 ---- */

/* RC-RESP-RNR-01 */
Test(responder, send_without_receive_is_answered_with_rnr)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 100, 16), UR_DROP_RNR);
	end_expect_nak(e, 100, 0x20 | 12);
	end_post_recv(e, 1, 0, 64);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 100, 16), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(end_counters(e)->rnr_nak_sent, 1);
	end_free(e);
}

/* RC-RESP-RNR-01 */
Test(responder, rnr_nak_is_followed_by_silence)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 100, 16), UR_DROP_RNR);
	end_expect_nak(e, 100, 0x2c);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 101, 16), UR_DROP_PSN_GAP);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 102, 16), UR_DROP_PSN_GAP);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-RNR-01 */
Test(responder, long_send_takes_its_receive_at_the_first_packet)
{
	struct end *e = END();

	end_post_recv(e, 1, 0, 512);
	cr_assert_eq(end_recv(e, UR_RC_SEND_FIRST, 100, 256), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_SEND_LAST, 101, 256), UR_DROP_NONE);
	cr_assert_eq(end_expect_wc(e, 1, IBV_WC_SUCCESS).byte_len, 512);
	cr_assert_eq(end_recv(e, UR_RC_SEND_FIRST, 102, 256), UR_DROP_RNR);
	end_expect_nak(e, 102, 0x2c);
	end_free(e);
}

/* RC-RESP-RNR-01 */
Test(responder, write_with_immediate_needs_its_receive_at_the_last_packet)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_FIRST, 100, 256);

	p.reth.length = 260;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_LAST_IMM, 101, 4), UR_DROP_RNR);
	end_expect_nak(e, 101, 0x2c);
	end_post_recv(e, 1, 0, 0);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_LAST_IMM, 101, 4), UR_DROP_NONE);
	/* RC-RESP-RECV-01 */
	struct ibv_wc wc = end_expect_wc(e, 1, IBV_WC_SUCCESS);

	cr_assert_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	cr_assert_eq(wc.byte_len, 260);
	cr_assert_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	cr_assert_eq(memcmp(&wc.imm_data, "\xca\xfe\xf0\x0d", 4), 0);
	end_free(e);
}

/* RC-RESP-RES-01 */
Test(responder, more_reads_at_once_than_agreed_are_an_invalid_request)
{
	struct end *e = END(.dest_rd_atomic = 2);
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);

	p.reth.length = 16;
	for (uint32_t psn = 100; psn < 102; psn++) {
		p.bth.psn = ur_psn(psn);
		cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	}
	p.bth.psn = ur_psn(102);
	cr_assert_eq(end_in(e, p), UR_DROP_RESOURCES);
	/* RC-RESP-NAK-02 */
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 100);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 101);
	end_expect_nak(e, 102, 0x61);
	end_expect_silence(e);
	end_free(e);
}

/* ---- access: RC-RESP-ACC-01 ---- */

static void refuses_access(uint8_t opcode, uint64_t off, uint32_t len, bool bad_key)
{
	struct end *e = END();
	uint16_t payload = ur_opcodes[opcode].flags & UR_OP_PAYLOAD ? (uint16_t)len : 0;
	struct ur_packet p = end_packet(e, opcode, 100, payload);

	p.reth.va += off;
	p.reth.length = len;
	p.atomiceth.va += off;
	if (bad_key) {
		p.reth.rkey ^= 0x80000000;
		p.atomiceth.rkey ^= 0x80000000;
	}
	expect_refusal(e, p, 2, UR_DROP_ACCESS);
	cr_assert_eq(end_counters(e)->resp_remote_access_errors, 1);
	cr_assert_eq(end_async(e, IBV_EVENT_QP_ACCESS_ERR), 1);
	end_free(e);
}

/* RC-RESP-ACC-01, RC-RESP-NAK-01 */
Test(responder, key_or_range_that_is_not_granted_is_an_access_error)
{
	refuses_access(UR_RC_WRITE_ONLY, 0, 16, true);
	refuses_access(UR_RC_WRITE_ONLY, END_BUF_BYTES - 15, 16, false);
	refuses_access(UR_RC_WRITE_ONLY, (uint64_t)-1, 16, false);
	refuses_access(UR_RC_READ_REQUEST, 0, 16, true);
	refuses_access(UR_RC_READ_REQUEST, 1, END_BUF_BYTES, false);
	refuses_access(UR_RC_READ_REQUEST, END_BUF_BYTES, 1, false);
	refuses_access(UR_RC_FETCH_ADD, 0, 0, true);
	refuses_access(UR_RC_COMPARE_SWAP, END_BUF_BYTES, 0, false);
}

/* RC-RESP-ACC-01 */
Test(responder, the_whole_write_is_checked_at_its_first_packet)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_FIRST, 100, 256);

	p.reth.length = END_BUF_BYTES + 1;
	memset(e->buf, 0xee, 256);
	expect_refusal(e, p, 2, UR_DROP_ACCESS);
	cr_assert_eq(e->buf[0], 0xee);
	end_free(e);
}

/* RC-RESP-ACC-01 */
Test(responder, region_that_goes_in_the_middle_of_a_write_is_not_touched)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_FIRST, 100, 256);

	p.reth.length = 512;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	memset(e->buf, 0xee, 512);
	expect_refusal(e, end_packet(e, UR_RC_WRITE_LAST, 101, 256), 2, UR_DROP_ACCESS);
	cr_assert_eq(e->buf[256], 0xee);
	end_free(e);
}

/* RC-RESP-NAK-01 */
Test(responder, message_longer_than_its_receive_is_an_invalid_request)
{
	struct end *e = END();

	end_post_recv(e, 1, 0, 300);
	end_post_recv(e, 2, 0, 300);
	cr_assert_eq(end_recv(e, UR_RC_SEND_FIRST, 100, 256), UR_DROP_NONE);
	expect_refusal(e, end_packet(e, UR_RC_SEND_LAST, 101, 45), 1, UR_DROP_RECV_BUFFER);
	end_expect_wc(e, 1, IBV_WC_LOC_LEN_ERR);
	/* QP-FLUSH-01 */
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	end_free(e);
}

/* RC-RESP-NAK-01 */
Test(responder, receive_that_may_not_be_written_is_an_operational_error)
{
	struct end *e = END();
	struct ibv_sge sge = {(uintptr_t)e->buf, 64, 0x5555};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	cr_assert_eq(ur_rq_post(&e->qp->rq, &wr), 0);
	expect_refusal(e, end_packet(e, UR_RC_SEND_ONLY, 100, 16), 3, UR_DROP_RECV_BUFFER);
	end_expect_wc(e, 1, IBV_WC_LOC_PROT_ERR);
	end_free(e);
}

/* RC-RESP-RECV-01 */
Test(responder, send_with_invalidate_takes_the_key_out_of_force)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_SEND_ONLY_INV, 100, 16);

	end_post_recv(e, 1, 64, 64);
	p.ieth = e->unaligned_key;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	struct ibv_wc wc = end_expect_wc(e, 1, IBV_WC_SUCCESS);

	cr_assert_eq(wc.wc_flags, IBV_WC_WITH_INV);
	cr_assert_eq(wc.invalidated_rkey, e->unaligned_key);
	cr_assert_null(ur_mem_check(e->mem, e->unaligned_key, END_PD, 0, 1, 0));
	end_free(e);
}

/* RC-RESP-NAK-01, MEM-INV-02 */
Test(responder, send_that_invalidates_what_is_not_there_or_not_its_own_is_an_access_error)
{
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = END();
		struct ur_packet p = end_packet(e, UR_RC_SEND_ONLY_INV, 100, 16);

		end_post_recv(e, 1, 64, 64);
		p.ieth = i ? e->key : 0x5555;
		expect_refusal(e, p, 2, UR_DROP_ACCESS);
		end_expect_wc(e, 1, IBV_WC_LOC_ACCESS_ERR);
		cr_assert_not_null(ur_mem_check(e->mem, e->key, END_PD, (uintptr_t)e->buf, 1, 0));
		end_free(e);
	}
}

/* RC-RESP-RECV-01 */
Test(responder, solicited_event_wakes_a_cq_armed_for_solicited_completions)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_SEND_ONLY, 100, 16);

	end_post_recv(e, 1, 0, 64);
	end_post_recv(e, 2, 0, 64);
	cr_assert(!ur_cq_arm(&e->cq, true));
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(e->notified, 0);
	p.bth.psn = ur_psn(101);
	p.bth.solicited = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(e->notified, 1);
	end_free(e);
}

/* RC-IN-01 */
Test(responder, queue_pair_in_rtr_takes_requests_and_says_so_once)
{
	struct end *e = END(.rtr = true);
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 100, 16);

	p.bth.ackreq = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, 100);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 101, 16), UR_DROP_NONE);
	cr_assert_eq(end_async(e, IBV_EVENT_COMM_EST), 1);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 0), UR_DROP_QP_STATE);
	end_free(e);
}

/* ---- UC ---- */

/* UC-RESP-SEQ-01 */
Test(responder, uc_message_with_a_gap_is_lost_and_its_receive_used_again)
{
	struct end *e = END(.type = IBV_QPT_UC);

	end_post_recv(e, 1, 0, 1024);
	cr_assert_eq(end_recv(e, UR_UC_SEND_FIRST, 100, 256), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_UC_SEND_LAST, 102, 256), UR_DROP_OP_SEQUENCE);
	end_expect_no_wc(e);
	cr_assert_eq(end_recv(e, UR_UC_SEND_ONLY, 103, 16), UR_DROP_NONE);
	cr_assert_eq(end_expect_wc(e, 1, IBV_WC_SUCCESS).byte_len, 16);
	end_expect_silence(e);
	end_free(e);
}

/* UC-RESP-SEQ-01 */
Test(responder, uc_message_starts_at_any_psn_even_an_older_one)
{
	struct end *e = END(.type = IBV_QPT_UC);

	cr_assert_eq(end_recv(e, UR_UC_WRITE_ONLY, 500, 16), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_UC_WRITE_ONLY, 7, 16), UR_DROP_NONE);
	cr_assert_eq(e->qp->rsp.epsn.v, 8);
	end_free(e);
}

/* UC-RESP-SEQ-01 */
Test(responder, uc_first_packet_ends_the_message_before_it)
{
	struct end *e = END(.type = IBV_QPT_UC);

	end_post_recv(e, 1, 0, 1024);
	cr_assert_eq(end_recv(e, UR_UC_SEND_FIRST, 100, 256), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_UC_SEND_FIRST, 101, 256), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_UC_SEND_LAST, 102, 4), UR_DROP_NONE);
	cr_assert_eq(end_expect_wc(e, 1, IBV_WC_SUCCESS).byte_len, 260);
	end_free(e);
}

/* UC-RESP-SILENT-01 */
Test(responder, uc_refuses_without_a_word)
{
	struct end *e = END(.type = IBV_QPT_UC);
	struct ur_packet p = end_packet(e, UR_UC_WRITE_ONLY, 101, 16);

	cr_assert_eq(end_recv(e, UR_UC_SEND_ONLY, 100, 16), UR_DROP_RNR);
	p.reth.rkey ^= 1u << 31;
	cr_assert_eq(end_in(e, p), UR_DROP_ACCESS);
	cr_assert_eq(end_recv(e, UR_UC_SEND_FIRST, 102, 200), UR_DROP_MSG_LENGTH);
	end_expect_silence(e);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

/* UC-RESP-LOCAL-01 */
Test(responder, uc_receive_that_may_not_be_written_stops_the_queue_pair)
{
	struct end *e = END(.type = IBV_QPT_UC);
	struct ibv_sge sge = {(uintptr_t)e->buf, 64, 0x5555};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	cr_assert_eq(ur_rq_post(&e->qp->rq, &wr), 0);
	end_post_recv(e, 2, 0, 64);
	cr_assert_eq(end_recv(e, UR_UC_SEND_ONLY, 100, 16), UR_DROP_RECV_BUFFER);
	end_expect_wc(e, 1, IBV_WC_LOC_PROT_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_expect_silence(e);
	end_free(e);
}
