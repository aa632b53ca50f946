/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "end.h"

/* `cnt` SENDs of one packet each, with ids from 1 and PSNs from 1000, all in flight. */
static struct end *end_with_sends(unsigned cnt)
{
	struct end *e = END();

	for (unsigned i = 1; i <= cnt; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	cr_assert_eq(end_drain(e), cnt);
	return e;
}

/* RC-COMP-ACK-01 */
Test(completer, one_ack_completes_everything_before_it)
{
	struct end *e = end_with_sends(3);

	cr_assert_eq(end_ack(e, 1001, 0x1f, 2), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->gbn.rec.una.v, 1002);
	end_free(e);
}

/* RC-COMP-PSN-01 */
Test(completer, response_outside_of_what_was_sent_is_stale)
{
	struct end *e = end_with_sends(2);

	cr_assert_eq(end_ack(e, 1002, 0x1f, 1), UR_DROP_PSN_STALE);
	cr_assert_eq(end_ack(e, 998, 0x1f, 1), UR_DROP_PSN_STALE);
	cr_assert_eq(end_ack(e, 1002, 0x61, 1), UR_DROP_PSN_STALE);
	end_expect_no_wc(e);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

/* RC-COMP-PSN-01: 2^23 PSNs beyond una, where older and newer meet. */
Test(completer, answer_half_of_all_psns_away_is_stale)
{
	static const uint8_t syndromes[] = {0x00, 0x20, 0x60, 0x62};

	for (unsigned cnt = 0; cnt < 3; cnt++)
		for (unsigned i = 0; i < sizeof(syndromes); i++) {
			struct end *e = end_with_sends(cnt);

			cr_assert_eq(end_ack(e, 1000 + (1 << 23), syndromes[i], 0),
				     UR_DROP_PSN_STALE);
			cr_assert_eq(e->qp->gbn.rec.una.v, 1000);
			cr_assert_eq(e->qp->state, IBV_QPS_RTS);
			end_expect_no_wc(e);
			end_free(e);
		}
}

/* RC-COMP-PSN-01 */
Test(completer, response_that_no_request_asked_for_is_dropped)
{
	struct end *e = end_with_sends(2);

	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 4), UR_DROP_UNEXPECTED);
	cr_assert_eq(end_recv(e, UR_RC_ATOMIC_ACKNOWLEDGE, 1000, 0), UR_DROP_UNEXPECTED);
	cr_assert_eq(end_ack(e, 1000, 0x40, 1), UR_DROP_UNEXPECTED);
	cr_assert_eq(end_ack(e, 1000, 0x65, 1), UR_DROP_UNEXPECTED);
	end_expect_no_wc(e);
	end_free(e);
}

/* RC-COMP-NAK-01 */
Test(completer, nak_fails_its_request_and_completes_those_before)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} cases[] = {
		{0x61, IBV_WC_REM_INV_REQ_ERR},
		{0x62, IBV_WC_REM_ACCESS_ERR},
		{0x63, IBV_WC_REM_OP_ERR},
		{0x64, IBV_WC_REM_INV_RD_REQ_ERR},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end *e = end_with_sends(3);

		cr_assert_eq(end_ack(e, 1001, cases[i].syndrome, 1), UR_DROP_NONE);
		end_expect_wc(e, 1, IBV_WC_SUCCESS);
		end_expect_wc(e, 2, cases[i].status);
		end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
		cr_assert_eq(e->qp->state, IBV_QPS_ERR);
		end_expect_silence(e);
		end_free(e);
	}
}

/* RC-COMP-NAK-02 */
Test(completer, access_error_of_a_read_counts_from_where_it_was_answered_before)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 600);
	end_send(e, 3, IBV_WR_RDMA_WRITE, 4);
	cr_assert_eq(end_drain(e), 3);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1001, 256), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(end_ack(e, 1000, 0x62, 1), UR_DROP_PSN_STALE,
		     "of a request that has completed");
	cr_assert_eq(end_ack(e, 1001, 0x61, 1), UR_DROP_PSN_STALE);
	cr_assert_eq(end_ack(e, 1001, 0x60, 1), UR_DROP_PSN_STALE);
	end_expect_no_wc(e);
	cr_assert_eq(end_ack(e, 1001, 0x62, 1), UR_DROP_NONE);
	end_expect_wc(e, 2, IBV_WC_REM_ACCESS_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_ERR);
	end_free(e);
}

/* RC-COMP-NAK-02 */
Test(completer, access_error_before_what_is_no_read_is_stale)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 600);
	cr_assert_eq(end_drain(e), 3);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 0), UR_DROP_NONE);
	cr_assert_eq(end_ack(e, 1000, 0x62, 0), UR_DROP_PSN_STALE);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

/* RC-RETRY-GAP-01 */
Test(completer, sequence_nak_sends_again_from_its_psn_once)
{
	struct end *e = end_with_sends(3);

	cr_assert_eq(end_ack(e, 1001, 0x60, 1), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert_eq(end_ack(e, 1001, 0x60, 1), UR_DROP_NONE);
	end_expect(e, UR_RC_SEND_ONLY, 1002);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->packet_seq_err, 2);
	cr_assert_eq(end_counters(e)->retransmitted_packets, 2);
	end_free(e);
}

Test(completer, sequence_nak_in_the_middle_of_a_message_sends_its_rest)
{
	struct end *e = END();

	for (unsigned i = 0; i < 1024; i++)
		e->buf[i] = (uint8_t)(i / 256);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 1024);
	cr_assert_eq(end_drain(e), 4);
	cr_assert_eq(end_ack(e, 1002, 0x60, 0), UR_DROP_NONE);
	end_expect(e, UR_RC_WRITE_MIDDLE, 1002);
	cr_assert_eq(e->out.payload[0], 2);
	end_expect(e, UR_RC_WRITE_LAST, 1003);
	end_free(e);
}

/* RC-RNR-LIMIT-01 */
Test(completer, rnr_nak_stops_sending_for_its_time)
{
	struct end *e = end_with_sends(2);

	cr_assert_eq(end_ack(e, 1000, 0x20 | 12, 0), UR_DROP_NONE); /* 0.64 ms */
	end_expect_silence(e);
	end_sleep(e, 639000);
	end_expect_silence(e);
	end_sleep(e, 3000);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	end_free(e);
}

/* RC-RNR-LIMIT-01 */
Test(completer, third_rnr_nak_is_one_too_many)
{
	struct end *e = end_with_sends(2);

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(end_ack(e, 1000, 0x21, 0), UR_DROP_NONE);
		end_sleep(e, 20000);
		cr_assert_eq(end_drain(e), 2);
	}
	end_expect_no_wc(e);
	cr_assert_eq(end_ack(e, 1000, 0x21, 0), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(end_counters(e)->rnr_retry_exceeded_err, 1);
	end_free(e);
}

/* RC-TIMER-ACK-02, RC-RETRY-LIMIT-01 */
Test(completer, silence_is_answered_with_three_retries_and_then_given_up)
{
	struct end *e = end_with_sends(2);

	for (unsigned i = 0; i < 3; i++) {
		end_sleep(e, END_TIMEOUT_NS + 2000);
		end_expect(e, UR_RC_SEND_ONLY, 1000);
		end_expect(e, UR_RC_SEND_ONLY, 1001);
		end_expect_silence(e);
	}
	end_sleep(e, END_TIMEOUT_NS + 2000);
	end_expect_wc(e, 1, IBV_WC_RETRY_EXC_ERR);
	end_expect_wc(e, 2, IBV_WC_WR_FLUSH_ERR);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->local_ack_timeout_err, 4);
	end_free(e);
}

/* RC-COMP-READ-01 */
Test(completer, read_responses_land_where_the_request_says)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 300);
	end_drain(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1000, 256), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_LAST, 1001, 44), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(e->buf[0], (uint8_t)1000);
	cr_assert_eq(e->buf[255], (uint8_t)(1000 + 255));
	cr_assert_eq(e->buf[256], (uint8_t)1001);
	cr_assert_eq(e->buf[299], (uint8_t)(1001 + 43));
	cr_assert_eq(e->buf[300], 0);
	end_free(e);
}

/* RC-COMP-READ-01 */
Test(completer, read_response_of_another_length_is_a_bad_response)
{
	for (unsigned len = 255; len <= 257; len += 2) {
		struct end *e = END();

		end_send(e, 1, IBV_WR_RDMA_READ, 300);
		end_drain(e);
		cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1000, (uint16_t)len),
			     UR_DROP_MSG_LENGTH);
		end_expect_wc(e, 1, IBV_WC_BAD_RESP_ERR);
		cr_assert_eq(e->buf[0], 0);
		end_free(e);
	}
}

/* RC-COMP-READ-01 */
Test(completer, read_ends_with_a_last_or_only_response)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 300);
	end_drain(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1000, 256), UR_DROP_NONE);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_MIDDLE, 1001, 44), UR_DROP_OP_SEQUENCE);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1001, 44), UR_DROP_OP_SEQUENCE);
	end_expect_no_wc(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1001, 44), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_free(e);
}

/* RC-COMP-PSN-01 */
Test(completer, read_response_that_says_nak_is_dropped)
{
	struct end *e = END();
	struct ur_packet p;

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_drain(e);
	p = end_packet(e, UR_RC_READ_RESPONSE_ONLY, 1000, 4);
	p.aeth.syndrome = 0x61;
	cr_assert_eq(end_in(e, p), UR_DROP_UNEXPECTED);
	end_expect_no_wc(e);
	end_free(e);
}

/* RC-COMP-READ-02 */
Test(completer, read_whose_target_went_is_a_protection_error)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 4);
	end_drain(e);
	cr_assert_eq(ur_mem_suspend(e->mem, e->key), 0);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1000, 4), UR_DROP_RECV_BUFFER);
	cr_assert_eq(e->buf[0], 0);
	end_expect_wc(e, 1, IBV_WC_LOC_PROT_ERR);
	end_free(e);
}

/* RC-COMP-READ-02 */
Test(completer, atomic_answer_lands_in_host_order)
{
	struct end *e = END();
	uint64_t got;

	end_send(e, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_drain(e);
	cr_assert_eq(end_recv(e, UR_RC_ATOMIC_ACKNOWLEDGE, 1000, 0), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	memcpy(&got, e->buf, 8);
	cr_assert_eq(got, 0x0123456789abcdef);
	end_free(e);
}

/* RC-COMP-ACK-02 */
Test(completer, response_acknowledges_what_was_sent_before_its_request)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 4);
	end_drain(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1001, 4), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_free(e);
}

/* RC-COMP-IMPLIED-01 */
Test(completer, ack_beyond_an_unanswered_read_implies_a_nak)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_SEND, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 600);
	end_send(e, 3, IBV_WR_SEND, 4);
	end_drain(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1001, 256), UR_DROP_NONE);
	cr_assert_eq(end_ack(e, 1004, 0x1f, 3), UR_DROP_PSN_GAP);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	cr_assert_eq(end_counters(e)->implied_nak_seq_err, 1);
	end_expect(e, UR_RC_READ_REQUEST, 1002);
	cr_assert_eq(e->out.reth.va, 0x7100);
	cr_assert_eq(e->out.reth.length, 344);
	end_expect(e, UR_RC_SEND_ONLY, 1004);
	end_expect_silence(e);
	end_free(e);
}

/* RC-COMP-IMPLIED-01: an ACK of a PSN of the READ itself, as sent by rxe, brings no data either. */
Test(completer, ack_with_a_psn_of_an_unanswered_read_does_not_complete_it)
{
	for (uint32_t named = 1001; named <= 1003; named++) {
		struct end *e = END();

		end_send(e, 1, IBV_WR_SEND, 4);
		end_send(e, 2, IBV_WR_RDMA_READ, 600);
		end_drain(e);
		cr_assert_eq(end_ack(e, named, 0x1f, 2), UR_DROP_PSN_GAP);
		end_expect_wc(e, 1, IBV_WC_SUCCESS);
		end_expect_no_wc(e);
		end_expect(e, UR_RC_READ_REQUEST, 1001);
		cr_assert_eq(e->out.reth.length, 600);
		end_recv(e, UR_RC_READ_RESPONSE_FIRST, 1001, 256);
		end_recv(e, UR_RC_READ_RESPONSE_MIDDLE, 1002, 256);
		/* The last response is still missing, so the READ is incomplete. */
		cr_assert_eq(end_ack(e, 1003, 0x1f, 2), UR_DROP_PSN_GAP);
		end_expect_no_wc(e);
		end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1003, 88);
		end_expect_wc(e, 2, IBV_WC_SUCCESS);
		cr_assert_eq(e->buf[599], (uint8_t)(1003 + 87));
		end_free(e);
	}
}

/* RC-COMP-IMPLIED-01 */
Test(completer, ack_with_the_psn_of_an_unanswered_atomic_does_not_complete_it)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_drain(e);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_PSN_GAP);
	end_expect_no_wc(e);
	end_expect(e, UR_RC_FETCH_ADD, 1000);
	end_recv(e, UR_RC_ATOMIC_ACKNOWLEDGE, 1000, 0);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_free(e);
}

/*
 * RC-COMP-EMPTY-01: found with rxe of Linux 6.12, which does not answer a READ of no bytes again. Places for READs
 * are free again: with one at a time the next READ goes out.
 */
static void expect_empty_read_passed(bool reorder)
{
	struct end *e = END(.rd_atomic = 1, .mode = reorder ? UR_MODE_REORDER : UR_MODE_GBN);

	end_send(e, 1, IBV_WR_SEND, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 0);
	end_send(e, 3, IBV_WR_SEND, 4);
	end_send(e, 4, IBV_WR_RDMA_READ, 0);
	end_drain(e);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	end_expect_silence(e);
	cr_assert_eq(end_ack(e, 1002, 0x1f, 3), UR_DROP_NONE);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_wc(e, 3, IBV_WC_SUCCESS);
	end_expect(e, UR_RC_READ_REQUEST, 1003);
	cr_assert_eq(end_counters(e)->implied_nak_seq_err, 0);
	/* The answer was late only. */
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1001, 0), UR_DROP_PSN_STALE);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_ONLY, 1003, 0), UR_DROP_NONE);
	end_expect_wc(e, 4, IBV_WC_SUCCESS);
	end_expect_silence(e);
	ur_qp_validate(e->qp);
	end_free(e);
}

Test(completer, read_of_no_bytes_is_done_when_what_follows_is_acknowledged)
{
	expect_empty_read_passed(false);
	expect_empty_read_passed(true);
}

/* RC-COMP-EMPTY-01: a NAK for the READ itself is no acknowledgement of it. */
Test(completer, read_of_no_bytes_may_be_refused)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 0);
	end_drain(e);
	cr_assert_eq(end_ack(e, 1000, 0x62, 0), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_REM_ACCESS_ERR);
	end_free(e);
}

/* RC-COMP-IMPLIED-01 */
Test(completer, read_response_beyond_a_lost_one_implies_a_nak)
{
	struct end *e = END();

	end_send(e, 1, IBV_WR_RDMA_READ, 600);
	end_drain(e);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_MIDDLE, 1001, 256), UR_DROP_PSN_GAP);
	cr_assert_eq(e->buf[256], 0);
	end_expect(e, UR_RC_READ_REQUEST, 1000);
	cr_assert_eq(e->out.reth.length, 600);
	cr_assert_eq(end_recv(e, UR_RC_READ_RESPONSE_LAST, 1002, 88), UR_DROP_PSN_GAP);
	end_expect_silence(e);
	end_free(e);
}

/* A late answer arrives before the request is repeated. */
Test(completer, ack_of_what_is_about_to_be_sent_again_spares_it)
{
	struct end *e = end_with_sends(4);

	cr_assert_eq(end_ack(e, 1000, 0x60, 0), UR_DROP_NONE);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(end_ack(e, 1002, 0x1f, 3), UR_DROP_NONE);
	for (unsigned i = 1; i < 4; i++)
		end_expect_wc(e, i, IBV_WC_SUCCESS);
	end_expect(e, UR_RC_SEND_ONLY, 1003);
	end_expect_silence(e);
	end_free(e);
}

Test(completer, unsignalled_request_completes_in_silence_and_fails_aloud)
{
	struct end *e = END();
	struct ibv_send_wr wr = end_wr(e, 1, IBV_WR_SEND);

	wr.send_flags = 0;
	end_post(e, wr, 0, 4);
	wr.wr_id = 2;
	end_post(e, wr, 0, 4);
	end_drain(e);
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_NONE);
	end_expect_no_wc(e);
	cr_assert_eq(end_ack(e, 1001, 0x63, 1), UR_DROP_NONE);
	end_expect_wc(e, 2, IBV_WC_REM_OP_ERR);
	end_free(e);
}

/* CQ-OVERFLOW-01 */
Test(completer, full_completion_queue_is_reported_once_and_the_queue_pair_lives_on)
{
	struct end *e = END(.cqe = 1);

	for (unsigned i = 1; i < 4; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	end_drain(e);
	cr_assert_eq(end_ack(e, 1002, 0x1f, 3), UR_DROP_NONE);
	cr_assert_eq(end_async(e, IBV_EVENT_CQ_ERR), 1);
	cr_assert_eq(end_counters(e)->cq_overflow, 2);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(e->qp->state, IBV_QPS_RTS);
	end_free(e);
}

Test(completer, psns_wrap_while_requests_are_in_flight)
{
	struct end *e = END(.sq_psn = 0xfffffe);

	for (unsigned i = 1; i < 5; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 0xfffffe);
	end_expect(e, UR_RC_SEND_ONLY, 0xffffff);
	end_expect(e, UR_RC_SEND_ONLY, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1);
	cr_assert_eq(end_ack(e, 0, 0x60, 2), UR_DROP_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect(e, UR_RC_SEND_ONLY, 0);
	end_expect(e, UR_RC_SEND_ONLY, 1);
	end_free(e);
}
