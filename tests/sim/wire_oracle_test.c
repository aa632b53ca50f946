/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "bench.h"
#include "wire_oracle.h"

/*
 * Whether the watcher of the wire notices: it is shown packets made by hand, and each test breaks
 * one rule with the last of them. The requester is (0, 0x11), the responder (1, 0x22), PSNs count
 * from 100, the PMTU is 256.
 */
#define REQUESTER 0x11u
#define RESPONDER 0x22u
#define UNLIMITED UR_CREDITS_NONE

static struct sim_wire *w;
static const char *verdict; /* of the answer that was shown last */
static enum ur_mode mode;

static void begin(enum ur_mode m)
{
	struct sim_wire_end end = {
		.ep = 1,
		.peer_ep = 0,
		.qpn = ur_qpn(RESPONDER),
		.peer_qpn = ur_qpn(REQUESTER),
		.type = IBV_QPT_RC,
		.mode = m,
		.first = ur_psn(100),
		.mtu_shift = 8,
	};

	if (w)
		sim_wire_free(w);
	w = sim_wire_new();
	mode = m;
	sim_wire_connect(w, &end);
}

static void start(void)
{
	begin(UR_MODE_GBN);
}

static void stop(void)
{
	sim_wire_free(w);
	w = NULL;
}

TestSuite(wire_oracle, .init = start, .fini = stop);

static struct ur_packet packet(uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	return (struct ur_packet){
		.op = ur_op_flags(opcode),
		.bth = {.opcode = opcode, .dqpn = ur_qpn(qpn), .psn = ur_psn(psn)},
	};
}

static const char *send_request(const struct ur_packet *p)
{
	return sim_wire_sent(w, 0, 1, p);
}

/* A request that is sent and arrives; a READ requests 512 bytes. */
static void request(uint8_t opcode, uint32_t psn)
{
	struct ur_packet p = packet(opcode, RESPONDER, psn);

	p.reth.length = 512;
	cr_assert_null(send_request(&p));
	sim_wire_arrived(w, 1, &p);
}

/* One that is lost. */
static void lost(uint8_t opcode, uint32_t psn)
{
	struct ur_packet p = packet(opcode, RESPONDER, psn);

	p.reth.length = 512;
	cr_assert_null(send_request(&p));
}

static void answer(uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct ur_packet p = packet(opcode, REQUESTER, psn);

	p.aeth = (struct ur_aeth){.syndrome = syndrome, .msn = msn};
	p.payload_len = 256;
	verdict = sim_wire_sent(w, 1, 0, &p);
}

static void ack(uint32_t psn, uint32_t msn)
{
	answer(UR_RC_ACKNOWLEDGE, psn, UNLIMITED, msn);
}

static void seq_nak(uint32_t psn, uint32_t msn)
{
	answer(UR_RC_ACKNOWLEDGE, psn, UR_SYNDROME_NAK | UR_NAK_PSN_SEQ, msn);
}

static void fine(void)
{
	cr_assert_null(verdict, "%s", verdict);
}

static void breaks(const char *rule)
{
	cr_assert_not_null(verdict, "nothing noticed");
	cr_assert_str_eq(verdict, rule);
}

/* ---- standard mode ---- */

Test(wire_oracle, is_content_with_an_honest_exchange)
{
	request(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_READ_REQUEST, 101);
	ack(100, 2);
	fine();
	answer(UR_RC_READ_RESPONSE_FIRST, 101, UNLIMITED, 2);
	fine();
	answer(UR_RC_READ_RESPONSE_LAST, 102, UNLIMITED, 2);
	fine();
	request(UR_RC_FETCH_ADD, 103);
	answer(UR_RC_ATOMIC_ACKNOWLEDGE, 103, UNLIMITED, 3);
	fine();
	request(UR_RC_SEND_FIRST, 104);
	lost(UR_RC_SEND_LAST, 105);
	request(UR_RC_SEND_ONLY, 106);
	ack(104, 3);
	fine();
	seq_nak(105, 3);
	fine();
	request(UR_RC_SEND_LAST, 105);
	answer(UR_RC_ACKNOWLEDGE, 105, UR_SYNDROME_RNR_NAK | 1, 3);
	fine();
	request(UR_RC_SEND_LAST, 105);
	request(UR_RC_SEND_ONLY, 106);
	ack(106, 5);
	fine();
	cr_assert_eq(sim_wire_watched(w), 8);
}

Test(wire_oracle, an_ack_of_a_write_may_come_after_the_response_behind_it)
{
	request(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_READ_REQUEST, 101);
	answer(UR_RC_READ_RESPONSE_FIRST, 101, UNLIMITED, 2);
	answer(UR_RC_READ_RESPONSE_LAST, 102, UNLIMITED, 2);
	ack(100, 2);
	fine();
}

Test(wire_oracle, notices_an_ack_that_names_a_read_or_atomic)
{
	request(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_READ_REQUEST, 101);
	request(UR_RC_FETCH_ADD, 103);
	for (uint32_t psn = 101; psn < 104; psn++) {
		ack(psn, 3);
		breaks("an ACK names a PSN of a READ or atomic");
	}
	/* Answered or not. */
	answer(UR_RC_READ_RESPONSE_FIRST, 101, UNLIMITED, 3);
	answer(UR_RC_READ_RESPONSE_LAST, 102, UNLIMITED, 3);
	fine();
	ack(102, 3);
	breaks("an ACK names a PSN of a READ or atomic");
}

Test(wire_oracle, notices_an_ack_of_what_has_not_come)
{
	request(UR_RC_WRITE_ONLY, 100);
	lost(UR_RC_WRITE_ONLY, 101);
	ack(101, 1);
	breaks("an ACK of what has not come");
	/* A go-back-N responder has dropped the early packets. */
	request(UR_RC_WRITE_ONLY, 102);
	ack(102, 1);
	breaks("an ACK of what has not come");
	request(UR_RC_WRITE_ONLY, 101);
	ack(102, 1);
	breaks("an ACK of what has not come");
	ack(101, 2);
	fine();
}

Test(wire_oracle, a_responder_that_keeps_early_packets_may_acknowledge_them)
{
	begin(UR_MODE_REORDER);
	lost(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_WRITE_ONLY, 101);
	ack(101, 0);
	breaks("an ACK of what has not come");
	request(UR_RC_WRITE_ONLY, 100);
	ack(101, 2);
	fine();
}

Test(wire_oracle, notices_an_ack_of_what_got_an_rnr_nak)
{
	request(UR_RC_SEND_ONLY, 100);
	request(UR_RC_WRITE_ONLY, 101);
	answer(UR_RC_ACKNOWLEDGE, 100, UR_SYNDROME_RNR_NAK | 1, 0);
	fine();
	ack(100, 0);
	breaks("an ACK of what has not come");
	request(UR_RC_SEND_ONLY, 100);
	ack(101, 1);
	breaks("an ACK of what has not come");
}

Test(wire_oracle, notices_acknowledgements_that_overtake_a_response)
{
	request(UR_RC_READ_REQUEST, 100);
	request(UR_RC_WRITE_ONLY, 102);
	answer(UR_RC_READ_RESPONSE_FIRST, 100, UNLIMITED, 2);
	ack(102, 2);
	breaks("an ACK overtakes a response");
	lost(UR_RC_WRITE_ONLY, 103);
	request(UR_RC_WRITE_ONLY, 104);
	seq_nak(103, 2);
	breaks("a NAK overtakes a response");
	answer(UR_RC_ACKNOWLEDGE, 103, UR_SYNDROME_RNR_NAK | 1, 2);
	breaks("a NAK overtakes a response");
	answer(UR_RC_READ_RESPONSE_LAST, 101, UNLIMITED, 2);
	ack(102, 2);
	fine();
}

Test(wire_oracle, notices_an_ack_between_the_packets_of_an_answer)
{
	request(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_READ_REQUEST, 101);
	answer(UR_RC_READ_RESPONSE_FIRST, 101, UNLIMITED, 2);
	ack(100, 2);
	breaks("an ACK between the packets of an answer");
	answer(UR_RC_READ_RESPONSE_LAST, 102, UNLIMITED, 2);
	ack(100, 2);
	fine();
}

Test(wire_oracle, notices_a_response_that_overtakes_another)
{
	request(UR_RC_READ_REQUEST, 100);
	request(UR_RC_FETCH_ADD, 102);
	answer(UR_RC_READ_RESPONSE_FIRST, 100, UNLIMITED, 2);
	answer(UR_RC_ATOMIC_ACKNOWLEDGE, 102, UNLIMITED, 2);
	breaks("a response overtakes another");
}

Test(wire_oracle, notices_an_msn_that_decreases_or_runs_ahead)
{
	request(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_WRITE_ONLY, 101);
	ack(101, 3);
	breaks("the MSN counts a message that has not come");
	ack(101, 2);
	fine();
	ack(101, 1);
	breaks("the MSN goes back");
	request(UR_RC_WRITE_FIRST, 102);
	ack(102, 3);
	breaks("the MSN counts a message that has not come");
}

Test(wire_oracle, notices_credits_that_are_taken_back)
{
	request(UR_RC_SEND_ONLY, 100);
	answer(UR_RC_ACKNOWLEDGE, 100, 8, 1); /* 16 */
	fine();
	request(UR_RC_SEND_ONLY, 101);
	answer(UR_RC_ACKNOWLEDGE, 101, 7, 2); /* 12 to 15 */
	fine();
	answer(UR_RC_ACKNOWLEDGE, 101, 6, 2); /* 11 at most */
	breaks("credits are taken back");
}

Test(wire_oracle, notices_a_needless_or_repeated_sequence_nak)
{
	request(UR_RC_WRITE_ONLY, 100);
	ack(100, 1);
	seq_nak(101, 1);
	breaks("a sequence NAK without a gap");
	lost(UR_RC_WRITE_ONLY, 101);
	request(UR_RC_WRITE_ONLY, 102);
	seq_nak(101, 1);
	fine();
	seq_nak(101, 1);
	breaks("a second sequence NAK for the same gap");
	seq_nak(102, 1);
	breaks("a NAK acknowledges what has not come");
}

/* A peer that keeps early packets may repeat its NAK after some time: REORDER-NAK-02. */
Test(wire_oracle, a_responder_that_keeps_early_packets_may_repeat_its_nak)
{
	begin(UR_MODE_REORDER);
	lost(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_WRITE_ONLY, 101);
	seq_nak(100, 0);
	fine();
	seq_nak(100, 0);
	fine();
}

Test(wire_oracle, notices_a_sequence_nak_without_the_ack_before_it)
{
	request(UR_RC_WRITE_ONLY, 100);
	request(UR_RC_WRITE_ONLY, 101);
	lost(UR_RC_WRITE_ONLY, 102);
	request(UR_RC_WRITE_ONLY, 103);
	ack(100, 2);
	seq_nak(102, 2);
	breaks("a sequence NAK before the ACK of what has come");
	ack(101, 2);
	seq_nak(102, 2);
	fine();
}

Test(wire_oracle, notices_unsolicited_responses)
{
	request(UR_RC_WRITE_ONLY, 100);
	answer(UR_RC_READ_RESPONSE_ONLY, 100, UNLIMITED, 1);
	breaks("a response to a request of another kind");
	answer(UR_RC_READ_RESPONSE_ONLY, 101, UNLIMITED, 1);
	breaks("a response to a request that has not come");
	request(UR_RC_READ_REQUEST, 101);
	answer(UR_RC_ATOMIC_ACKNOWLEDGE, 101, UNLIMITED, 2);
	breaks("a response to a request of another kind");
}

Test(wire_oracle, notices_a_short_response_before_the_last)
{
	struct ur_packet p = packet(UR_RC_READ_RESPONSE_FIRST, REQUESTER, 100);

	request(UR_RC_READ_REQUEST, 100);
	p.aeth = (struct ur_aeth){.syndrome = UNLIMITED, .msn = 1};
	p.payload_len = 255;
	verdict = sim_wire_sent(w, 1, 0, &p);
	breaks("a response before the last is shorter than the PMTU");
}

Test(wire_oracle, notices_an_atomic_that_was_executed_twice)
{
	struct ur_packet p = packet(UR_RC_ATOMIC_ACKNOWLEDGE, REQUESTER, 100);

	request(UR_RC_FETCH_ADD, 100);
	p.aeth = (struct ur_aeth){.syndrome = UNLIMITED, .msn = 1};
	p.atomic_ack = 7;
	cr_assert_null(sim_wire_sent(w, 1, 0, &p));
	cr_assert_null(sim_wire_sent(w, 1, 0, &p));
	p.atomic_ack = 8;
	verdict = sim_wire_sent(w, 1, 0, &p);
	breaks("an atomic is answered with another value");
}

Test(wire_oracle, notices_requests_that_skip_or_reuse_a_psn)
{
	struct ur_packet p = packet(UR_RC_WRITE_ONLY, RESPONDER, 101);

	cr_assert_str_eq(send_request(&p), "a request skips a PSN");
	request(UR_RC_READ_REQUEST, 100);
	cr_assert_str_eq(send_request(&p), "a PSN is used again for a request of another kind");
	p.bth.psn = ur_psn(102);
	cr_assert_null(send_request(&p));
}

Test(wire_oracle, notices_an_answer_to_uc)
{
	struct sim_wire_end end = {
		.ep = 1,
		.peer_ep = 0,
		.qpn = ur_qpn(RESPONDER),
		.peer_qpn = ur_qpn(REQUESTER),
		.type = IBV_QPT_UC,
		.first = ur_psn(100),
		.mtu_shift = 8,
	};

	sim_wire_connect(w, &end);
	ack(99, 0);
	breaks("an answer of a queue pair that is not RC");
}

/* ---- extended mode ---- */

static void ext_request(uint8_t opcode, uint32_t psn, uint32_t ssn)
{
	struct ur_packet p = packet(opcode, RESPONDER, psn);

	p.xth = (struct ur_xth){.ssn = ssn, .flags = UR_XTH_LAST_READ};
	p.reth.length = 512;
	cr_assert_null(send_request(&p));
	sim_wire_arrived(w, 1, &p);
}

static void ext_lost(uint8_t opcode, uint32_t psn)
{
	struct ur_packet p = packet(opcode, RESPONDER, psn);

	cr_assert_null(send_request(&p));
}

static void ext_answer(uint8_t opcode, uint32_t psn, uint32_t epsn, uint32_t msn)
{
	struct ur_packet p = packet(opcode, REQUESTER, psn);

	p.aeth = (struct ur_aeth){.syndrome = UNLIMITED, .msn = msn};
	p.xaeth.epsn = ur_psn(epsn);
	p.payload_len = p.op & UR_OP_READ_RESP ? 256 : 0;
	verdict = sim_wire_sent(w, 1, 0, &p);
}

static void ext_nak(uint32_t epsn, const uint8_t *bitmap)
{
	struct ur_packet p = packet(UR_EXT_ACKNOWLEDGE, REQUESTER, epsn);

	p.aeth.syndrome = UR_SYNDROME_NAK | UR_NAK_PSN_SEQ;
	p.xaeth.epsn = ur_psn(epsn);
	p.payload = bitmap;
	p.payload_len = 4;
	verdict = sim_wire_sent(w, 1, 0, &p);
}

/* There a READ request is a packet as any other, and its responses have numbers of their own. */
Test(wire_oracle, an_extended_ack_acknowledges_read_requests_that_have_arrived)
{
	begin(UR_MODE_EXTENDED);
	ext_request(UR_EXT_WRITE_ONLY, 100, 1);
	ext_request(UR_EXT_READ_REQUEST, 101, 2);
	ext_answer(UR_EXT_ACKNOWLEDGE, 101, 102, 2);
	fine();
	ext_answer(UR_EXT_READ_RESPONSE_FIRST, 101, 102, 2);
	fine();
	ext_answer(UR_EXT_ACKNOWLEDGE, 102, 103, 2);
	breaks("an ePSN beyond what has come");
}

Test(wire_oracle, notices_an_epsn_that_decreases_or_disagrees)
{
	begin(UR_MODE_EXTENDED);
	ext_request(UR_EXT_WRITE_ONLY, 100, 1);
	ext_request(UR_EXT_WRITE_ONLY, 101, 2);
	ext_answer(UR_EXT_ACKNOWLEDGE, 101, 101, 1);
	breaks("PSN and ePSN of an acknowledgement do not agree");
	ext_answer(UR_EXT_ACKNOWLEDGE, 101, 102, 2);
	fine();
	ext_answer(UR_EXT_ACKNOWLEDGE, 100, 101, 2);
	breaks("the ePSN goes back");
}

Test(wire_oracle, notices_a_bitmap_with_packets_that_have_not_arrived)
{
	static const uint8_t second[4] = {2}, third[4] = {4};

	begin(UR_MODE_EXTENDED);
	ext_lost(UR_EXT_WRITE_ONLY, 100);
	ext_lost(UR_EXT_WRITE_ONLY, 101);
	ext_request(UR_EXT_WRITE_ONLY, 102, 3);
	ext_lost(UR_EXT_WRITE_ONLY, 103);
	ext_nak(100, second);
	fine();
	ext_nak(100, third);
	breaks("a bitmap has a packet that has not arrived");
}

Test(wire_oracle, notices_unsolicited_extended_responses)
{
	begin(UR_MODE_EXTENDED);
	ext_request(UR_EXT_READ_REQUEST, 100, 1);
	ext_answer(UR_EXT_READ_RESPONSE_ONLY, 100, 100, 0);
	breaks("a response to a request that has not come");
	ext_answer(UR_EXT_ATOMIC_ACKNOWLEDGE, 100, 101, 1);
	breaks("a response to a request of another kind");
	ext_answer(UR_EXT_READ_RESPONSE_ONLY, 100, 101, 2);
	breaks("the MSN counts a message that has not come");
}

Test(wire_oracle, notices_an_answer_of_the_other_mode)
{
	begin(UR_MODE_EXTENDED);
	ext_request(UR_EXT_WRITE_ONLY, 100, 1);
	ack(100, 1);
	breaks("an answer of the other mode");
}

/* ---- in the simulator ---- */

/* A responder that forgets which packet was the newest of a SEND or WRITE. */
static void forget_data(struct sim *s, void *arg)
{
	struct ur_qp *qp = ((struct bench *)arg)->qp[1].qp;

	(void)s;
	qp->gbn_rsp.data = ur_psn_add(qp->rsp.epsn, UR_PSN_MASK);
}

static void write_and_read(enum ur_mode m, void (*after)(struct sim *s, void *arg))
{
	struct bench *b = bench_new(m, "watched", NULL);
	struct ibv_send_wr write = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 100);
	struct ibv_send_wr read = bench_rdma(b, IBV_WR_RDMA_READ, 0, 100);

	b->s->after = after;
	b->s->after_arg = b;
	cr_assert_eq(sim_post_send(&b->qp[0], &write), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &read), 0);
	for (unsigned i = 0; i < 2; i++)
		sim_expect(b->s, &b->cq[0], 0, IBV_WC_SUCCESS, SIM_MS(10));
	cr_assert_gt(sim_wire_watched(b->s->wire), 0);
	b->s->after = NULL;
	bench_free(b);
}

Test(wire_oracle, watches_every_simulation)
{
	write_and_read(UR_MODE_GBN, NULL);
	write_and_read(UR_MODE_REORDER, NULL);
	write_and_read(UR_MODE_EXTENDED, NULL);
}

Test(wire_oracle, fails_a_simulation_that_breaks_a_rule, .signal = SIGABRT)
{
	write_and_read(UR_MODE_GBN, forget_data);
}
