/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "end.h"

static enum ur_drop read_request(struct end *e, uint32_t psn, uint32_t off, uint32_t len)
{
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, psn, 0);

	p.reth.va += off;
	p.reth.length = len;
	return end_in(e, p);
}

static enum ur_drop fetch_add(struct end *e, uint32_t psn, uint64_t add)
{
	struct ur_packet p = end_packet(e, UR_RC_FETCH_ADD, psn, 0);

	p.atomiceth.swap_add = add;
	return end_in(e, p);
}

static void expect_response(struct end *e, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	end_expect(e, opcode, psn);
	cr_assert_eq(e->out.payload_len, len);
	cr_assert_eq(memcmp(e->out.payload, e->buf + off, len), 0);
}

/* RC-RESP-READ-01 */
Test(response, read_is_answered_with_one_packet_a_pmtu)
{
	struct end *e = END();

	for (unsigned i = 0; i < 1024; i++)
		e->buf[i] = (uint8_t)(i * 7 + i / 256);
	cr_assert_eq(read_request(e, 100, 3, 600), UR_DROP_NONE);
	expect_response(e, UR_RC_READ_RESPONSE_FIRST, 100, 3, 256);
	cr_assert_eq(e->out.aeth.msn, 1);
	expect_response(e, UR_RC_READ_RESPONSE_MIDDLE, 101, 259, 256);
	expect_response(e, UR_RC_READ_RESPONSE_LAST, 102, 515, 88);
	end_expect_silence(e);
	cr_assert_eq(e->qp->rsp.epsn.v, 103);
	end_free(e);
}

/* RC-RESP-MSN-01 */
Test(response, read_counts_as_a_message_when_it_is_accepted)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 101, 4);

	p.bth.ackreq = true;
	cr_assert_eq(read_request(e, 100, 0, 4), UR_DROP_NONE);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 100);
	end_expect_ack(e, 101);
	cr_assert_eq(e->out.aeth.msn, 2);
	end_free(e);
}

/* RC-RESP-ACK-02 */
Test(response, ack_waits_for_the_responses_before_it)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 102, 4);

	p.bth.ackreq = true;
	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 101);
	end_expect_ack(e, 102);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-02 */
Test(response, sequence_nak_waits_for_the_responses_before_it)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 4), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 105, 4), UR_DROP_PSN_GAP);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 100);
	end_expect_nak(e, 101, 0x60);
	end_free(e);
}

static enum ur_drop write_asking(struct end *e, uint32_t psn)
{
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, psn, 4);

	p.bth.ackreq = true;
	return end_in(e, p);
}

/* RC-RESP-ACK-03 */
Test(response, ack_of_a_write_goes_before_the_response_behind_it_and_names_the_write)
{
	struct end *e = END();

	cr_assert_eq(write_asking(e, 100), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 101, 0, 256), UR_DROP_NONE);
	end_expect_ack(e, 100);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 101);
	end_expect_silence(e);
	cr_assert_eq(write_asking(e, 102), UR_DROP_NONE);
	cr_assert_eq(fetch_add(e, 103, 1), UR_DROP_NONE);
	end_expect_ack(e, 102);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 103);
	end_expect_silence(e);
	end_free(e);
}

/*
 * RC-RESP-ACK-06: the network might move a separate ACK into the middle of the response, whose
 * packets acknowledge the same.
 */
Test(response, an_answer_of_several_packets_acknowledges_the_write_before_it)
{
	struct end *e = END();

	cr_assert_eq(write_asking(e, 100), UR_DROP_NONE);
	cr_assert_eq(fetch_add(e, 101, 1), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 102, 0, 512), UR_DROP_NONE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 101);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 102);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 103);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-03 */
Test(response, write_between_two_reads_is_acknowledged_between_their_responses)
{
	struct end *e = END(.dest_rd_atomic = 4);

	cr_assert_eq(read_request(e, 100, 0, 4), UR_DROP_NONE);
	cr_assert_eq(write_asking(e, 101), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 102, 0, 4), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 100);
	end_expect_ack(e, 101);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 102);
	end_expect_silence(e);
	end_free(e);
}

/*
 * RC-RESP-ACK-07: a READ was executed after the WRITE. A peer with go-back-N also repeats the READ;
 * a peer that does not gets its ACK after four repetitions.
 */
static void write_four_times(struct end *e, uint32_t psn)
{
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(write_asking(e, psn), UR_DROP_PSN_DUPLICATE);
		end_expect_silence(e);
	}
	cr_assert_eq(write_asking(e, psn), UR_DROP_PSN_DUPLICATE);
	end_expect_ack(e, psn);
}

/* RC-RESP-ACK-03, RC-RESP-ACK-07, RC-RESP-DUP-01 */
Test(response, duplicate_of_a_write_before_a_read_is_acknowledged_without_the_read)
{
	struct end *e = END();

	cr_assert_eq(write_asking(e, 100), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 101, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 2);
	write_four_times(e, 100);
	end_expect_silence(e);
	/* Both are repeated: the response acknowledges both. */
	cr_assert_eq(read_request(e, 101, 0, 512), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 101);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 102);
	end_expect_silence(e);
	end_free(e);
}

static void write_each(struct end *e, uint32_t first, uint32_t last)
{
	for (uint32_t psn = first; psn <= last; psn++)
		cr_assert_eq(write_asking(e, psn), UR_DROP_PSN_DUPLICATE);
}

static void expect_answer_of_three(struct end *e, uint32_t psn)
{
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, psn);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, psn + 1);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, psn + 2);
	end_expect_silence(e);
}

/*
 * RC-RESP-ACK-07: found with rxe of Linux 6.12. Its pass repeated ten messages, a READ, a message and another READ.
 * An ACK of the message behind the first READ, for the fourth of the ten, came while rxe still missed a response to
 * the second one, whose answer was to be repeated.
 */
Test(response, a_pass_over_many_messages_is_one_repetition)
{
	struct end *e = END(.dest_rd_atomic = 4);

	for (uint32_t psn = 100; psn < 110; psn++)
		cr_assert_eq(write_asking(e, psn), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 110, 0, 768), UR_DROP_NONE);
	cr_assert_eq(write_asking(e, 113), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 114, 0, 768), UR_DROP_NONE);
	end_drain(e);
	for (unsigned pass = 0; pass < 8; pass++) {
		write_each(e, 100, 109);
		cr_assert_eq(read_request(e, 110, 0, 768), UR_DROP_PSN_DUPLICATE);
		expect_answer_of_three(e, 110);
		cr_assert_eq(write_asking(e, 113), UR_DROP_PSN_DUPLICATE);
		cr_assert_eq(read_request(e, 114, 0, 768), UR_DROP_PSN_DUPLICATE);
		expect_answer_of_three(e, 114);
	}
	end_free(e);
}

/* RC-RESP-ACK-07: the READ is lost in each of three passes, or the peer does not repeat it. */
Test(response, the_fourth_pass_without_the_read_is_answered)
{
	struct end *e = END();

	for (uint32_t psn = 100; psn < 110; psn++)
		cr_assert_eq(write_asking(e, psn), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 110, 0, 768), UR_DROP_NONE);
	end_drain(e);
	for (unsigned pass = 0; pass < 3; pass++) {
		write_each(e, 100, 109);
		end_expect_silence(e);
	}
	write_each(e, 100, 101);
	end_expect_ack(e, 109);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-07: a late response has moved the peer on; then it repeats another message alone. */
Test(response, a_message_repeated_alone_is_answered_the_fourth_time_wherever_a_pass_began)
{
	struct end *e = END();

	for (uint32_t psn = 100; psn < 110; psn++)
		cr_assert_eq(write_asking(e, psn), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 110, 0, 768), UR_DROP_NONE);
	end_drain(e);
	cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	for (unsigned i = 0; i < 3; i++) {
		end_expect_silence(e);
		cr_assert_eq(write_asking(e, 104), UR_DROP_PSN_DUPLICATE);
	}
	end_expect_silence(e);
	cr_assert_eq(write_asking(e, 104), UR_DROP_PSN_DUPLICATE);
	end_expect_ack(e, 109);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-07: the same of the newest message, which is not taken for a part of that pass. */
Test(response, the_newest_message_repeated_alone_is_answered_wherever_a_pass_began)
{
	struct end *e = END();

	for (uint32_t psn = 100; psn < 110; psn++)
		cr_assert_eq(write_asking(e, psn), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 110, 0, 768), UR_DROP_NONE);
	end_drain(e);
	cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(write_asking(e, 109), UR_DROP_PSN_DUPLICATE);
		end_expect_silence(e);
	}
	cr_assert_eq(write_asking(e, 109), UR_DROP_PSN_DUPLICATE);
	end_expect_ack(e, 109);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-02: the peer lacks the responses; an ACK beyond them would be an implied NAK. */
Test(response, ack_of_a_duplicate_waits_for_responses_asked_for_again_before_it)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(write_asking(e, 102), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 3);
	cr_assert_eq(write_asking(e, 102), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 101);
	end_expect_ack(e, 102);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-03: no WRITE was executed at that PSN. */
Test(response, write_with_the_psn_of_a_read_is_not_acknowledged)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 2);
	cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(write_asking(e, 101), UR_DROP_PSN_DUPLICATE);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-03: its PSN would soon be one of the future. */
Test(response, write_that_is_4_million_psns_old_is_no_longer_named)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_WRITE_ONLY, 0, 4);
	uint32_t psn = END_RQ_PSN + 1;

	p.bth.psn = ur_psn(END_RQ_PSN);
	p.bth.ackreq = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 1);
	for (unsigned i = 0; i < 1024; i++, psn += 4096) {
		cr_assert_eq(read_request(e, psn, 0, END_BUF_BYTES), UR_DROP_NONE);
		cr_assert_eq(end_drain(e), 4096);
		p.bth.psn = ur_psn(END_RQ_PSN);
		for (unsigned k = 0; k < 4; k++)
			cr_assert_eq(end_in(e, p), UR_DROP_PSN_DUPLICATE);
		if (i < 1022)
			end_expect_ack(e, END_RQ_PSN);
	}
	end_expect_silence(e);
	p.bth.psn = ur_psn(psn);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_ack(e, psn);
	end_free(e);
}

/* RC-RESP-ACK-06: found with rxe of Linux 6.12. The end of the response acknowledges late duplicates. */
Test(response, ack_of_an_older_duplicate_does_not_interrupt_an_answer)
{
	struct end *e = END();

	cr_assert_eq(write_asking(e, 100), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 101, 0, 768), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 101);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, 102);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 103);
	end_expect_silence(e);
	cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	end_expect_ack(e, 100);
	end_free(e);
}

/*
 * RC-RESP-ACK-06. A READ is repeated in the middle of its response: the response goes back and is
 * not complete.
 */
Test(response, ack_of_an_older_duplicate_waits_for_an_answer_that_goes_back_too)
{
	struct end *e = END();

	cr_assert_eq(write_asking(e, 100), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 101, 0, 768), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 101);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(write_asking(e, 100), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(read_request(e, 101, 0, 768), UR_DROP_PSN_DUPLICATE);
	ur_qp_validate(e->qp);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 101);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, 102);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 103);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-05, RC-RESP-ACK-02 */
Test(response, ack_before_a_nak_does_not_wait_for_the_response_that_the_nak_waits_for)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 4), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 101, 0, 256), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 103, 4), UR_DROP_PSN_GAP);
	end_expect_ack(e, 100);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 101);
	end_expect_nak(e, 102, 0x60);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-05: the response has already acknowledged everything. */
Test(response, nak_behind_a_response_needs_no_ack)
{
	struct end *e = END();

	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100, 4), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 101, 0, 4), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 101);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 103, 4), UR_DROP_PSN_GAP);
	end_expect_nak(e, 102, 0x60);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-ACK-02 */
Test(response, rnr_nak_waits_for_the_responses_before_it)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 102, 4), UR_DROP_RNR);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 101);
	end_expect(e, UR_RC_ACKNOWLEDGE, 102);
	cr_assert_eq(e->out.aeth.syndrome & UR_SYNDROME_KIND_MASK, UR_SYNDROME_RNR_NAK);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-DUP-02 */
Test(response, read_duplicate_may_ask_for_a_part)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 1000), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(read_request(e, 102, 512, 488), UR_DROP_PSN_DUPLICATE);
	expect_response(e, UR_RC_READ_RESPONSE_FIRST, 102, 512, 256);
	expect_response(e, UR_RC_READ_RESPONSE_LAST, 103, 768, 232);
	end_expect_silence(e);
	cr_assert_eq(read_request(e, 101, 256, 256), UR_DROP_PSN_DUPLICATE);
	expect_response(e, UR_RC_READ_RESPONSE_ONLY, 101, 256, 256);
	end_expect_silence(e);
	cr_assert_eq(e->qp->rsp.epsn.v, 104);
	end_free(e);
}

/* RC-RESP-DUP-02 */
Test(response, read_duplicate_reads_the_memory_again)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 16), UR_DROP_NONE);
	end_drain(e);
	memset(e->buf, 0x42, 16);
	cr_assert_eq(read_request(e, 100, 0, 16), UR_DROP_PSN_DUPLICATE);
	expect_response(e, UR_RC_READ_RESPONSE_ONLY, 100, 0, 16);
	cr_assert_eq(e->out.payload[0], 0x42);
	end_free(e);
}

/* RC-RESP-DUP-02 */
Test(response, read_duplicate_that_asks_for_something_else_is_not_answered)
{
	struct end *e = END();
	struct ur_packet p;

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	end_drain(e);
	cr_assert_eq(read_request(e, 101, 0, 256), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(read_request(e, 101, 256, 257), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(read_request(e, 99, 0, 4), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(fetch_add(e, 100, 1), UR_DROP_DUP_UNKNOWN);
	p = end_packet(e, UR_RC_READ_REQUEST, 100, 0);
	p.reth.length = 512;
	p.reth.rkey = e->unaligned_key;
	cr_assert_eq(end_in(e, p), UR_DROP_DUP_UNKNOWN);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-DUP-02 */
Test(response, answer_under_way_goes_back_to_what_the_duplicate_asks_for)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 1024), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, 101);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, 102);
	cr_assert_eq(read_request(e, 101, 256, 768), UR_DROP_PSN_DUPLICATE);
	expect_response(e, UR_RC_READ_RESPONSE_FIRST, 101, 256, 256);
	end_expect(e, UR_RC_READ_RESPONSE_MIDDLE, 102);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 103);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-DUP-03, RC-RESP-ATOMIC-02 */
Test(response, atomic_duplicate_gets_the_first_answer_and_adds_nothing)
{
	struct end *e = END();
	uint64_t value = 40;

	memcpy(e->buf, &value, 8);
	cr_assert_eq(fetch_add(e, 100, 2), UR_DROP_NONE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 100);
	cr_assert_eq(e->out.atomic_ack, 40);
	cr_assert_eq(fetch_add(e, 101, 2), UR_DROP_NONE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 101);
	cr_assert_eq(e->out.atomic_ack, 42);
	cr_assert_eq(fetch_add(e, 100, 2), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 100);
	cr_assert_eq(e->out.atomic_ack, 40);
	memcpy(&value, e->buf, 8);
	cr_assert_eq(value, 44);
	end_free(e);
}

/* RC-RESP-ATOMIC-02 */
Test(response, compare_and_swap_swaps_only_what_is_equal)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_COMPARE_SWAP, 100, 0);
	uint64_t value = 7;

	memcpy(e->buf, &value, 8);
	p.atomiceth.compare = 8;
	p.atomiceth.swap_add = 9;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 100);
	cr_assert_eq(e->out.atomic_ack, 7);
	memcpy(&value, e->buf, 8);
	cr_assert_eq(value, 7);
	p.bth.psn = ur_psn(101);
	p.atomiceth.compare = 7;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	memcpy(&value, e->buf, 8);
	cr_assert_eq(value, 9);
	end_free(e);
}

/* RC-RESP-DUP-03 */
Test(response, only_as_many_are_remembered_as_was_agreed)
{
	struct end *e = END(.dest_rd_atomic = 2);

	for (uint32_t psn = 100; psn < 103; psn++) {
		cr_assert_eq(fetch_add(e, psn, 1), UR_DROP_NONE);
		end_drain(e);
	}
	cr_assert_eq(fetch_add(e, 100, 1), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(fetch_add(e, 101, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(fetch_add(e, 102, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(end_drain(e), 2);
	end_free(e);
}

/* RC-RESP-DUP-03 */
Test(response, when_psns_come_round_again_the_newest_answer_counts)
{
	struct end *e = END(.dest_rd_atomic = 2);

	cr_assert_eq(fetch_add(e, 100, 5), UR_DROP_NONE);
	end_drain(e);
	/* The state after 2^24 PSNs, without sending them all. */
	e->qp->rsp.epsn = ur_psn(100);
	cr_assert_eq(fetch_add(e, 100, 5), UR_DROP_NONE);
	end_drain(e);
	cr_assert_eq(fetch_add(e, 100, 5), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 100);
	cr_assert_eq(e->out.atomic_ack, 5);
	end_free(e);
}

/* RC-RESP-RES-01 */
Test(response, replay_gives_way_to_a_new_request)
{
	struct end *e = END(.dest_rd_atomic = 1);

	cr_assert_eq(read_request(e, 100, 0, 1024), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(read_request(e, 100, 0, 1024), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	cr_assert_eq(read_request(e, 104, 0, 4), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 104);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-READ-02 */
Test(response, region_that_goes_in_the_middle_of_an_answer_is_not_read)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	end_expect_nak(e, 101, 0x62);
	end_expect_silence(e);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	cr_assert_eq(end_async(e, IBV_EVENT_QP_ACCESS_ERR), 1);
	end_free(e);
}

/* RC-RESP-READ-02: the peer may have everything, and the region may since have been released. */
Test(response, region_that_has_gone_only_drops_an_answer_given_once_more)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 2);
	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	end_expect_silence(e);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_PSN_DUPLICATE);
	end_expect_silence(e);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	cr_assert_eq(end_async(e, IBV_EVENT_QP_ACCESS_ERR), 0);
	/* A new request is refused as usual. */
	cr_assert_eq(read_request(e, 102, 0, 4), UR_DROP_ACCESS);
	end_expect_nak(e, 102, 0x62);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-NAK-02 */
Test(response, fatal_nak_follows_the_answers_to_what_came_before)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_SEND_MIDDLE, 102, 256), UR_DROP_OP_SEQUENCE);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 100);
	end_expect(e, UR_RC_READ_RESPONSE_LAST, 101);
	end_expect_nak(e, 102, 0x61);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-NAK-02 */
Test(response, fatal_nak_follows_what_older_requests_ask_for_again)
{
	struct end *e = END(.dest_rd_atomic = 4);
	struct ur_packet p = end_packet(e, UR_RC_READ_REQUEST, 102, 0);

	cr_assert_eq(ur_mem_register(e->mem, END_PD, e->buf, 4096, (uintptr_t)e->buf,
				     IBV_ACCESS_REMOTE_READ, 77, &p.reth.rkey),
		     0);
	p.reth.length = 512;
	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_drain(e), 2);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	cr_assert_eq(read_request(e, 104, 0, 4), UR_DROP_NONE);
	end_expect(e, UR_RC_READ_RESPONSE_FIRST, 102);
	cr_assert_eq(read_request(e, 101, 256, 256), UR_DROP_PSN_DUPLICATE);
	ur_mem_invalidate(e->mem, p.reth.rkey, END_PD, false);
	end_expect(e, UR_RC_READ_RESPONSE_ONLY, 101);
	end_expect_nak(e, 103, 0x62);
	end_expect_silence(e);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* RC-RESP-NAK-02 */
Test(response, queue_pair_that_its_owner_stops_answers_nothing)
{
	struct end *e = END();

	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_SEND_ONLY, 102, 4), UR_DROP_RNR);
	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	end_expect_silence(e);
	end_free(e);
}

/* RC-RESP-CREDIT-01 */
Test(response, ack_promises_as_many_receives_as_are_posted)
{
	struct end *e = END();
	struct ur_packet p = end_packet(e, UR_RC_SEND_ONLY, 100, 4);

	p.bth.ackreq = true;
	for (unsigned i = 0; i < 6; i++)
		end_post_recv(e, i, 0, 64);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_ACKNOWLEDGE, 100);
	cr_assert_eq(e->out.aeth.syndrome, 4, "5 receives: code 4 stands for 4, code 5 for 6");
	/* The receive of the message in progress is not consumed yet, nor is the message counted. */
	p = end_packet(e, UR_RC_SEND_FIRST, 101, 256);
	p.bth.ackreq = true;
	cr_assert_eq(e->out.aeth.msn, 1);
	end_post_recv(e, 7, 0, 512);
	for (uint64_t id = 1; id < 6; id++) {
		struct ur_packet q = end_packet(e, UR_RC_SEND_ONLY, 100 + (uint32_t)id, 4);

		cr_assert_eq(end_in(e, q), UR_DROP_NONE);
	}
	p.bth.psn = ur_psn(106);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect(e, UR_RC_ACKNOWLEDGE, 106);
	cr_assert_eq(e->out.aeth.syndrome, 1);
	cr_assert_eq(e->out.aeth.msn, 6);
	end_free(e);
}

/* RC-RESP-CREDIT-01 */
Test(response, receives_of_an_srq_are_not_promised)
{
	struct ur_srq srq;
	static _Alignas(64) uint8_t ring[4096];
	struct end *e;
	struct ur_packet p;

	ur_srq_init(&srq, ring, 8, 4, END_PD, NULL);
	e = END(.srq = &srq);
	end_post_recv(e, 1, 0, 64);
	p = end_packet(e, UR_RC_SEND_ONLY, 100, 4);
	p.bth.ackreq = true;
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect(e, UR_RC_ACKNOWLEDGE, 100);
	cr_assert_eq(e->out.aeth.syndrome, 0x1f);
	end_free(e);
}

static int resize(struct end *e, uint8_t cnt)
{
	return end_modify(e, IBV_QPS_SQD, (struct ibv_qp_attr){.max_dest_rd_atomic = cnt},
			  IBV_QP_MAX_DEST_RD_ATOMIC);
}

/* RC-RESP-RES-02, RC-RESP-ORDER-01 */
Test(response, newest_answers_survive_a_change_of_their_number)
{
	struct end *e = END(.dest_rd_atomic = 3);

	for (uint32_t psn = 100; psn < 104; psn++) {
		cr_assert_eq(fetch_add(e, psn, 1), UR_DROP_NONE);
		end_drain(e);
	}
	cr_assert_eq(end_modify(e, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(resize(e, 2), 0);
	cr_assert_eq(fetch_add(e, 101, 1), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(fetch_add(e, 102, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(fetch_add(e, 103, 1), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 102);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 103);
	cr_assert_eq(resize(e, 4), 0);
	cr_assert_eq(fetch_add(e, 104, 1), UR_DROP_NONE);
	cr_assert_eq(fetch_add(e, 102, 1), UR_DROP_PSN_DUPLICATE);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 102);
	cr_assert_eq(e->out.atomic_ack, 2);
	end_expect(e, UR_RC_ATOMIC_ACKNOWLEDGE, 104);
	end_free(e);
}

/* RC-RESP-RES-02 */
Test(response, their_number_does_not_change_while_one_is_answered)
{
	struct end *e = END(.dest_rd_atomic = 3);

	cr_assert_eq(end_modify(e, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(read_request(e, 100, 0, 512), UR_DROP_NONE);
	cr_assert_lt(resize(e, 1), 0);
	cr_assert_eq(end_drain(e), 2);
	cr_assert_eq(resize(e, 1), 0);
	end_free(e);
}
