/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"

/*
 * RC-RESP-ACK-08: the PSNs in the ACKs of a standard responder while its peer may be repeating
 * executed requests. ePSN is 100, PMTU 256.
 */
#define SEQ_NAK (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ)

static struct end *e;

static void stop(void)
{
	end_free(e);
}

TestSuite(pass, .fini = stop);

static void start(enum ur_mode mode)
{
	e = END(.mode = mode);
}

/* A packet of a WRITE with the PSNs [first, last]. The last one requests an ACK. */
static void write_packet(uint32_t psn, uint32_t first, uint32_t last)
{
	static const uint8_t opcode[2][2] = {
		{UR_RC_WRITE_MIDDLE, UR_RC_WRITE_LAST},
		{UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY},
	};
	struct ur_packet p = end_packet(e, opcode[psn == first][psn == last], psn, END_MTU);

	p.reth.length = (last - first + 1) * END_MTU;
	p.bth.ackreq = psn == last;
	end_in(e, p);
}

static void write_packets(uint32_t from, uint32_t to, uint32_t first, uint32_t last)
{
	for (uint32_t psn = from; psn <= to; psn++)
		write_packet(psn, first, last);
}

/* The first of six is missing and has been reported. The peer sends it again first. */
static void fill_a_hole(void)
{
	start(UR_MODE_REORDER);
	write_packets(101, 105, 100, 105);
	end_expect_nak(e, 100, SEQ_NAK);
	write_packet(100, 100, 105);
}

Test(pass, the_end_of_what_was_kept_is_named_when_the_peer_has_repeated_it)
{
	fill_a_hole();
	end_expect_ack(e, 104);
	end_expect_silence(e);
	write_packets(101, 103, 100, 105);
	end_expect_ack(e, 104);
	write_packets(104, 105, 100, 105);
	end_expect_ack(e, 105);
	end_expect_silence(e);
}

Test(pass, something_new_ends_it)
{
	fill_a_hole();
	end_expect_ack(e, 104);
	write_packets(101, 102, 100, 105);
	end_expect_ack(e, 104);
	write_packets(106, 108, 106, 108);
	end_expect_ack(e, 108);
}

Test(pass, what_was_sent_before_the_nak_came_does_not_end_it)
{
	fill_a_hole();
	write_packets(106, 108, 106, 108);
	end_expect_ack(e, 107);
	write_packets(101, 105, 100, 105);
	end_expect_ack(e, 107);
	write_packets(106, 108, 106, 108);
	end_expect_ack(e, 108);
}

Test(pass, the_networks_duplicate_of_the_end_is_not_the_peers)
{
	fill_a_hole();
	write_packet(105, 100, 105);
	end_expect_ack(e, 104);
	write_packet(105, 100, 105);
	end_expect_ack(e, 105);
}

Test(pass, the_next_hole_may_be_filled_by_the_same_pass)
{
	start(UR_MODE_REORDER);
	write_packets(101, 102, 100, 107);
	write_packets(104, 107, 100, 107);
	end_expect_nak(e, 100, SEQ_NAK);
	write_packets(100, 103, 100, 107);
	end_expect_ack(e, 106);
	write_packets(104, 107, 100, 107);
	end_expect_ack(e, 107);
}

/* The gap is filled without a NAK, so nothing will be repeated. */
Test(pass, a_late_packet_begins_none)
{
	start(UR_MODE_REORDER);
	write_packets(101, 102, 100, 102);
	write_packet(100, 100, 102);
	end_expect_ack(e, 102);
}

Test(pass, a_message_of_one_packet_is_named_at_once)
{
	start(UR_MODE_REORDER);
	for (uint32_t psn = 101; psn < 104; psn++)
		write_packet(psn, psn, psn);
	end_expect_nak(e, 100, SEQ_NAK);
	write_packet(100, 100, 100);
	end_expect_ack(e, 103);
}

/* An ACK was lost, and the peer retransmits after a timeout. */
Test(pass, a_timeout_of_the_peer_begins_one)
{
	start(UR_MODE_GBN);
	write_packets(100, 105, 100, 105);
	end_expect_ack(e, 105);
	write_packets(100, 102, 100, 105);
	end_expect_ack(e, 104);
	write_packets(103, 105, 100, 105);
	end_expect_ack(e, 105);
}

Test(pass, a_duplicate_before_the_first_ack_begins_none)
{
	start(UR_MODE_GBN);
	write_packets(100, 105, 100, 105);
	write_packet(101, 100, 105);
	end_expect_ack(e, 105);
}

Test(pass, a_peer_that_repeats_one_packet_gets_a_full_ack_from_the_fourth_time_on)
{
	start(UR_MODE_GBN);
	write_packets(100, 105, 100, 105);
	end_expect_ack(e, 105);
	for (unsigned i = 0; i < 3; i++) {
		write_packet(100, 100, 105);
		end_expect_ack(e, 104);
		write_packet(105, 100, 105);
		end_expect_ack(e, 105);
	}
	write_packet(100, 100, 105);
	end_expect_ack(e, 105);
	/* And less again if it repeats more. */
	write_packets(101, 103, 100, 105);
	end_expect_ack(e, 104);
}

/* EDGE-OWED-01 */
Test(pass, a_delayed_ack_is_sent_before_the_queue_pair_ends)
{
	fill_a_hole();
	end_expect_ack(e, 104);
	ur_engine_flush_acks(e->engine);
	end_expect_ack(e, 105);
	ur_engine_flush_acks(e->engine);
	end_expect_silence(e);
}

Test(pass, an_error_ends_it)
{
	fill_a_hole();
	end_expect_ack(e, 104);
	end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0);
	ur_engine_flush_acks(e->engine);
	end_expect_silence(e);
}
