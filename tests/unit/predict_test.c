/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "engine/query.h"
#include "twins.h"

/* Header prediction of requests that come. */
#define HEADERS	      42 /* Ethernet, IPv4, UDP */
#define REGION_OFF    1	 /* of the region that starts at address 0, in the buffer */
#define STREAM	      400
#define STREAM_MTU    256u
#define STEP_NS	      777
#define EARLY_OR_LATE 6

/* ---- packets ---- */

struct sender {
	uint32_t psn, ssn, rwqen; /* of the next packet; ssn, rwqen: mode extended */
	uint32_t at, packets;	  /* the next packet is number `at` of `packets` of its message */
	bool send, read;
	uint16_t tail; /* bytes of the last packet */
};

static struct sender sender_of(const struct end *e)
{
	return (struct sender){.psn = e->qp->rsp.epsn.v,
			       .ssn = (e->qp->rsp.msn.v + 1) & UR_PSN_MASK};
}

/* The packet has addresses that mean the same to both ends. */
static struct ur_packet data_packet(struct twins t, const struct sender *s, uint8_t opcode,
				    uint16_t len)
{
	bool ext = t.on->attr.mode == UR_MODE_EXTENDED;
	struct ur_packet p =
		end_packet(t.on, opcode | (ext ? UR_TRANSPORT_EXT : UR_TRANSPORT_RC), s->psn, len);

	p.reth = (struct ur_reth){0, t.on->unaligned_key, (s->packets - 1) * STREAM_MTU + s->tail};
	p.xth = (struct ur_xth){.stamp = s->psn * 16,
				.ssn = s->ssn,
				.offset = s->at,
				.flags = s->send   ? UR_XTH_RECV
					 : s->read ? UR_XTH_LAST_READ
						   : 0,
				.rwqen = s->send ? s->rwqen : 0};
	return p;
}

static struct ur_packet only_packet(struct twins t, bool send)
{
	struct sender s = sender_of(t.on);

	s.packets = 1;
	s.tail = 61;
	s.send = send;
	return data_packet(t, &s, send ? UR_RC_SEND_ONLY : UR_RC_WRITE_ONLY, s.tail);
}

/* A READ that one response answers. */
static struct ur_packet read_packet(struct twins t)
{
	struct sender s = sender_of(t.on);

	s.packets = 1;
	s.tail = 61;
	s.read = true;
	return data_packet(t, &s, UR_RC_READ_REQUEST, 0);
}

static uint8_t opcode_of(const struct sender *s)
{
	static const uint8_t op[2][2][2] = {
		/* [send][first][last] */
		{{UR_RC_WRITE_MIDDLE, UR_RC_WRITE_LAST}, {UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY}},
		{{UR_RC_SEND_MIDDLE, UR_RC_SEND_LAST}, {UR_RC_SEND_FIRST, UR_RC_SEND_ONLY}}};

	if (s->read)
		return UR_RC_READ_REQUEST;
	return op[s->send][s->at == 0][s->at + 1 == s->packets];
}

/* The next packet in order; most messages have one packet. */
static struct ur_packet next_packet(struct twins t, struct sender *s)
{
	struct ur_packet p;

	if (!s->at) {
		s->send = rand() % 3 == 0;
		s->read = !s->send && rand() % 12 == 0;
		s->packets = s->read || rand() % 4 ? 1 : 2 + (unsigned)rand() % 3;
		s->tail = (uint16_t)(1 + rand() % STREAM_MTU);
	}
	p = data_packet(t, s, opcode_of(s),
			s->read			  ? 0
			: s->at + 1 == s->packets ? s->tail
						  : STREAM_MTU);
	p.bth.ackreq = rand() % 4 == 0;
	p.bth.solicited = rand() % 4 == 0;
	s->psn = (s->psn + 1) & UR_PSN_MASK;
	if (++s->at == s->packets) {
		s->at = 0;
		s->ssn = (s->ssn + 1) & UR_PSN_MASK;
		s->rwqen += s->send;
	}
	return p;
}
/* ---- PREDICT-REQ-01, PREDICT-ACK-02: the packet expected is predicted, and its ACK made like any other ---- */

static const enum ur_mode modes[] = {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED};
#define FOR_EACH_MODE(m)                                                                           \
	for (const enum ur_mode *m = modes; m < modes + sizeof(modes) / sizeof(modes[0]); m++)

Test(predict, the_next_message_of_one_packet_is_taken_without_decoding)
{
	FOR_EACH_MODE(mode)
	for (int send = 0; send < 2; send++) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet p = only_packet(t, send);
		struct frame f;

		twins_post_recv(t, 7, 100);
		p.bth.ackreq = true;
		frame_make(&f, &p);
		cr_assert(twins_in(t, &f));
		twins_expect_same_state(t);
		cr_assert_arr_eq(t.on->buf + (send ? 4096 : REGION_OFF), p.payload, 61);
		cr_assert(twins_expect_same_packet(t), "an ACK is owed");
		cr_assert_not(twins_in(t, &f), "a duplicate");
		twins_expect_same_state(t);
		twins_free(t);
	}
}

/* A SEND or WRITE of four packets. */
static struct sender long_message(const struct end *e, bool send)
{
	struct sender s = sender_of(e);

	s.packets = 4;
	s.tail = 61;
	s.send = send;
	return s;
}

static struct ur_packet part_packet(struct twins t, struct sender *s)
{
	struct ur_packet p =
		data_packet(t, s, opcode_of(s), s->at + 1 == s->packets ? s->tail : STREAM_MTU);

	s->psn = (s->psn + 1) & UR_PSN_MASK;
	s->at++;
	return p;
}

Test(predict, each_packet_of_a_longer_message_is_taken_without_decoding)
{
	FOR_EACH_MODE(mode)
	for (int send = 0; send < 2; send++) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct sender s = long_message(t.on, send);

		twins_post_recv(t, 7, 1024);
		while (s.at < s.packets) {
			struct ur_packet p = part_packet(t, &s);
			struct frame f;

			p.bth.ackreq = s.at == s.packets;
			frame_make(&f, &p);
			cr_assert(twins_in(t, &f), "mode %d, send %d, packet %u", *mode, send,
				  s.at);
			twins_expect_same_state(t);
			cr_assert_not(twins_in(t, &f), "a duplicate");
		}
		cr_assert_eq(t.on->qp->rsp.kind, UR_MSG_NONE);
		cr_assert(twins_expect_same_packet(t), "an ACK is owed");
		twins_free(t);
	}
}

/* Packet `at` comes with a bit that differs, then as it is, then the rest of the message. */
static void check_part_flipped(enum ur_mode mode, bool send, unsigned at, unsigned bit)
{
	struct twins t = twins_new((struct end_attr){.mode = mode});
	struct sender s = long_message(t.on, send);

	twins_post_recv(t, 7, 1024);
	while (s.at < s.packets) {
		bool differs = s.at == at;
		struct ur_packet p = part_packet(t, &s);
		struct frame f;

		frame_make(&f, &p);
		if (differs) {
			f.b[bit / 8] ^= (uint8_t)(1u << bit % 8);
			frame_fix_sums(&f);
			twins_in(t, &f);
			twins_expect_same_state(t);
			frame_make(&f, &p);
		}
		twins_in(t, &f);
		twins_expect_same_state(t);
	}
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	twins_free(t);
}

/* The headers before the BTH are judged as those of a message of one packet are. */
static void check_each_bit_of_a_part(enum ur_mode mode)
{
	bool ext = mode == UR_MODE_EXTENDED;

	for (int send = 0; send < 2; send++)
		for (unsigned at = 0; at < 4; at++) {
			bool reth = !send && (ext || !at);
			unsigned end = HEADERS + 12 + (ext ? 16 : 0) + (reth ? 16 : 0);

			for (unsigned bit = 8 * HEADERS; bit < 8 * end; bit++)
				check_part_flipped(mode, send, at, bit);
		}
}

Test(predict, one_bit_of_a_part_that_differs_gbn, .timeout = 400)
{
	check_each_bit_of_a_part(UR_MODE_GBN);
}

Test(predict, one_bit_of_a_part_that_differs_extended, .timeout = 400)
{
	check_each_bit_of_a_part(UR_MODE_EXTENDED);
}

Test(predict, the_next_read_of_one_response_is_taken_without_decoding)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet p = read_packet(t);
		struct frame f;

		frame_make(&f, &p);
		cr_assert(twins_in(t, &f));
		twins_expect_same_state(t);
		cr_assert(twins_expect_same_packet(t));
		cr_assert(twins_sent[0].op & UR_OP_READ_RESP);
		cr_assert_eq(twins_sent[0].payload_len, 61);
		cr_assert_not(twins_in(t, &f), "a duplicate");
		while (twins_expect_same_packet(t))
			;
		twins_expect_same_state(t);
		twins_free(t);
	}
}

static void check_read_flipped(enum ur_mode mode, unsigned bit)
{
	struct twins t = twins_new((struct end_attr){.mode = mode});
	struct ur_packet p = read_packet(t);
	struct frame f;

	frame_make(&f, &p);
	f.b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	frame_fix_sums(&f);
	twins_in(t, &f);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	/* The READ itself follows, and is judged alike as well. */
	frame_make(&f, &p);
	twins_in(t, &f);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	twins_free(t);
}

/* The headers before the BTH are judged as those of a WRITE are. */
static void check_each_bit_of_a_read(enum ur_mode mode)
{
	unsigned end = HEADERS + 12 + 16 + (mode == UR_MODE_EXTENDED ? 16 : 0);

	for (unsigned bit = 8 * HEADERS; bit < 8 * end; bit++)
		check_read_flipped(mode, bit);
}

Test(predict, one_bit_of_a_read_that_differs_gbn, .timeout = 400)
{
	check_each_bit_of_a_read(UR_MODE_GBN);
}

Test(predict, one_bit_of_a_read_that_differs_extended, .timeout = 400)
{
	check_each_bit_of_a_read(UR_MODE_EXTENDED);
}

/* ---- PREDICT-PATH-01: what differs in one field is not, or is judged alike ---- */

/* Bits that say nothing of which packet it is, so that any value is as expected. */
static bool is_free(unsigned byte, unsigned bit, bool ext, bool send)
{
	if (byte < 12) /* MAC addresses, but for the group bit */
		return bit || byte % 6;
	if (byte == 15) /* DSCP, ECN of 0x02: not both bits */
		return bit != 0;
	if (byte == 18 || byte == 19 || byte == 22) /* id, TTL */
		return true;
	if (byte == 20) /* reserved flag, DF */
		return bit >= 6;
	if (byte == 34 || byte == 35 || byte == 40 || byte == 41) /* source port, checksum */
		return true;
	if (byte == HEADERS + 1) /* solicited, MigReq; pad: a SEND has any length */
		return bit >= (send ? 4 : 6);
	if (byte == HEADERS + 4 || byte == HEADERS + 8) /* FECN, BECN, AckReq, reserved */
		return true;
	if (byte == HEADERS + 12 + 8 && ext) /* flags that matter to READs and admission */
		return bit != 0;
	if (byte >= HEADERS + 12 && byte < HEADERS + 12 + 5 && ext) /* stamp, path */
		return true;
	if (byte >= HEADERS + 12 + 12 && byte < HEADERS + 12 + 16 && ext) /* RWQEN */
		return !send || byte == HEADERS + 12 + 12;
	return false;
}

/* An address in the region is as good as any. */
static bool is_address(unsigned byte, bool ext, bool send)
{
	unsigned reth = HEADERS + 12 + (ext ? 16 : 0);

	return !send && byte >= reth && byte < reth + 8;
}

static void check_flipped(enum ur_mode mode, bool send, unsigned byte, unsigned bit, bool fixed)
{
	bool ext = mode == UR_MODE_EXTENDED, predicted;
	struct twins t = twins_new((struct end_attr){.mode = mode});
	struct ur_packet p = only_packet(t, send);
	struct frame f;

	twins_post_recv(t, 7, 100);
	frame_make(&f, &p);
	f.b[byte] ^= (uint8_t)(1u << bit);
	if (fixed)
		frame_fix_sums(&f);
	predicted = twins_in(t, &f);
	if (fixed && !is_address(byte, ext, send) && byte != 24 && byte != 25)
		cr_assert_eq(predicted, is_free(byte, bit, ext, send),
			     "mode %d, send %d: bit %u of byte %u: %d", mode, send, bit, byte,
			     predicted);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	/* What follows is judged alike as well. */
	p = only_packet(t, !send);
	frame_make(&f, &p);
	twins_in(t, &f);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	twins_free(t);
}

static void check_each_bit(enum ur_mode mode, bool fixed)
{
	unsigned ext = mode == UR_MODE_EXTENDED ? 16 : 0;

	for (int send = 0; send < 2; send++)
		for (unsigned byte = 0; byte < HEADERS + 12 + ext + (send ? 0 : 16); byte++)
			for (unsigned bit = 0; bit < 8; bit++)
				check_flipped(mode, send, byte, bit, fixed);
}

Test(predict, one_bit_that_differs_gbn, .timeout = 400)
{
	check_each_bit(UR_MODE_GBN, true);
}

Test(predict, one_bit_that_differs_extended, .timeout = 400)
{
	check_each_bit(UR_MODE_EXTENDED, true);
}

/* Then a sum is wrong: the header's or the ICRC. */
Test(predict, one_bit_corrupted, .timeout = 400)
{
	check_each_bit(UR_MODE_GBN, false);
}

Test(predict, a_wrong_icrc_is_never_taken)
{
	FOR_EACH_MODE(mode)
	for (unsigned bit = 0; bit < 32; bit++) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet p = only_packet(t, false);
		struct frame f;

		frame_make(&f, &p);
		f.b[f.len - 4 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_not(twins_in(t, &f));
		twins_expect_same_state(t);
		cr_assert_eq(end_counters(t.on)->drops[UR_DROP_ICRC], 1);
		twins_free(t);
	}
}

Test(predict, every_truncation_is_dropped_alike)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet p = only_packet(t, false);
		struct frame f;

		frame_make(&f, &p);
		for (size_t whole = f.len; f.len--;) {
			/* Nothing behind the end is read: a sanitizer would tell. */
			struct frame *part = malloc(offsetof(struct frame, b) + f.len + 1);
			enum ur_drop drop;

			cr_assert_not_null(part);
			memcpy(part->b, f.b, f.len);
			cr_assert_not(ur_engine_input_predicted(t.on->engine, part->b, f.len,
								t.on->now_ns, &drop));
			drop = end_in_decoded(t.off, &f);
			cr_assert_neq(drop, UR_DROP_NONE, "%zu of %zu bytes", f.len, whole);
			free(part);
		}
		cr_assert_eq(t.on->qp->rsp.epsn.v, END_RQ_PSN);
		twins_free(t);
	}
}

/* Padding of Ethernet behind the ICRC belongs to no header. */
Test(predict, what_follows_the_icrc_is_ignored)
{
	struct twins t = twins_new((struct end_attr){0});
	struct ur_packet p = only_packet(t, false);
	struct frame f;

	frame_make(&f, &p);
	memset(f.b + f.len, 0xaa, 7);
	f.len += 7;
	cr_assert(twins_in(t, &f));
	twins_expect_same_state(t);
	twins_free(t);
}

/* ---- state that the packet does not show ---- */

static bool next_is_predicted(struct twins t, bool send)
{
	struct ur_packet p = only_packet(t, send);
	struct frame f;
	bool predicted;

	frame_make(&f, &p);
	predicted = twins_in(t, &f);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	return predicted;
}

Test(predict, a_queue_pair_that_is_not_in_rts_is_not_predicted)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode, .rtr = true});

		cr_assert_not(next_is_predicted(t, false));
		cr_assert_eq(end_async(t.on, IBV_EVENT_COMM_EST), 1);
		twins_free(t);
	}
}

Test(predict, rights_keys_receives_and_strictness_are_checked)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new(
			(struct end_attr){.mode = *mode, .no_access = IBV_ACCESS_REMOTE_WRITE});

		cr_assert_not(next_is_predicted(t, false));
		cr_assert_eq(t.on->qp->state, IBV_QPS_ERR);
		twins_free(t);

		t = twins_new((struct end_attr){.mode = *mode});
		ur_mem_invalidate(t.on->mem, t.on->unaligned_key, END_PD, true);
		ur_mem_invalidate(t.off->mem, t.off->unaligned_key, END_PD, true);
		cr_assert_not(next_is_predicted(t, false));
		cr_assert_eq(t.on->qp->state, IBV_QPS_ERR);
		twins_free(t);

		t = twins_new((struct end_attr){.mode = *mode});
		cr_assert_not(next_is_predicted(t, true), "no receive");
		cr_assert_eq(end_counters(t.on)->rnr_nak_sent, 1);
		twins_free(t);

		t = twins_new((struct end_attr){.mode = *mode});
		twins_post_recv(t, 7, 60);
		cr_assert_not(next_is_predicted(t, true), "too short a receive");
		cr_assert_eq(t.on->qp->state, IBV_QPS_ERR);
		twins_free(t);

		t = twins_new((struct end_attr){.mode = *mode, .strict = true});
		cr_assert_eq(next_is_predicted(t, false), *mode == UR_MODE_GBN,
			     "END sets strict with a mode");
		twins_free(t);
	}
}

/* ---- streams ---- */

static void maybe_damage(struct frame *f)
{
	unsigned byte = (unsigned)rand() % (HEADERS + 32);

	switch (rand() % 12) {
	case 0: /* of the header, with right sums */
		f->b[byte] ^= (uint8_t)(1 << rand() % 8);
		frame_fix_sums(f);
		break;
	case 1:
		f->b[(size_t)rand() % f->len] ^= (uint8_t)(1 << rand() % 8);
		break;
	case 2:
		f->b[15] |= 3; /* congestion experienced */
		frame_fix_sums(f);
		break;
	default:
		break;
	}
}

/* Packets in order, with some lost, late, twice, damaged, of other kinds. Returns how many were predicted. */
static unsigned stream(enum ur_mode mode, unsigned seed)
{
	struct twins t = twins_new((struct end_attr){.mode = mode, .dest_rd_atomic = 4});
	struct sender s = sender_of(t.on);
	struct frame late[EARLY_OR_LATE], f;
	unsigned predicted = 0, lates = 0;

	srand(seed);
	for (unsigned i = 0; i < STREAM && t.on->qp->state == IBV_QPS_RTS; i++) {
		struct sender before = s;
		struct ur_packet p = next_packet(t, &s);

		if (rand() % 4 && ur_wq_cnt(&t.on->qp->rq) < 8)
			twins_post_recv(t, i, rand() % 40 ? 1024 : 8);
		frame_make(&f, &p);
		if (rand() % 16 == 0 && lates < EARLY_OR_LATE)
			late[lates++] = f;
		if (rand() % 64 == 0) {
			maybe_damage(&f);
			predicted += twins_in(t, &f);
			s = rand() % 2 ? before : s; /* again, or lost */
		} else {
			predicted += twins_in(t, &f);
		}
		if (lates && rand() % 16 == 0)
			predicted += twins_in(t, &late[--lates]);
		while (rand() % 3 && twins_expect_same_packet(t))
			;
		twins_expect_same_state(t);
		/* The peer goes back to what is expected, as it would after a NAK. */
		if (s.psn != t.on->qp->rsp.epsn.v && rand() % 3 == 0 && !s.at &&
		    t.on->qp->rsp.kind == UR_MSG_NONE) {
			uint32_t rwqen = mode == UR_MODE_EXTENDED ? t.on->qp->xrsp.rwqen : 0;

			s = sender_of(t.on);
			s.rwqen = rwqen;
		}
		twins_sleep(t, STEP_NS);
	}
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	twins_free(t);
	return predicted;
}

static void check_streams(enum ur_mode mode)
{
	unsigned predicted = 0;

	for (unsigned seed = 0; seed < 300; seed++)
		predicted += stream(mode, seed);
	cr_assert_gt(predicted, 3000, "%u of the packets were predicted", predicted);
}

Test(predict, streams_gbn, .timeout = 400)
{
	check_streams(UR_MODE_GBN);
}

Test(predict, streams_reorder, .timeout = 400)
{
	check_streams(UR_MODE_REORDER);
}

Test(predict, streams_extended, .timeout = 400)
{
	check_streams(UR_MODE_EXTENDED);
}
