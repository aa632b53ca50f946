/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "end.h"
#include "engine/query.h"
#include "wire/icrc.h"

/*
 * Header prediction is invisible: an engine that predicts and one to which every frame is passed decoded do the same with
 * the same frames: verdicts, packets sent, completions, counters, memory.
 */
#define HEADERS	      42 /* Ethernet, IPv4, UDP */
#define REGION_OFF    1	 /* of the region that starts at address 0, in the buffer */
#define STREAM	      400
#define STREAM_MTU    256u
#define COMPARED      8192u /* bytes of the buffer that packets can reach */
#define STEP_NS	      777
#define EARLY_OR_LATE 6
#define BURST	      8

struct twins {
	struct end *on, *off; /* with prediction, without */
};

static struct twins twins(struct end_attr attr)
{
	struct twins t;

	attr.recv_wr = 64;
	attr.cqe = 1024;
	t.on = end_new(attr);
	attr.no_prediction = true;
	t.off = end_new(attr);
	return t;
}

static void free_twins(struct twins t)
{
	end_free(t.on);
	end_free(t.off);
}

#define WC_BYTES (offsetof(struct ibv_wc, dlid_path_bits) + 1) /* padding follows, of any value */

/* Each end's own addresses are elsewhere. */
static void expect_same_state(struct twins t)
{
	struct ur_counters on = *end_counters(t.on), off = *end_counters(t.off);
	struct ibv_wc a[8], b[8];
	unsigned n;

	cr_assert_eq(off.rx_predicted, 0);
	cr_assert_eq(off.tx_predicted, 0);
	on.rx_predicted = on.tx_predicted = 0;
	cr_assert_arr_eq(&on, &off, sizeof(on));
	do {
		n = ur_cq_poll(&t.on->cq, 8, a);
		cr_assert_eq(ur_cq_poll(&t.off->cq, 8, b), n);
		for (unsigned i = 0; i < n; i++)
			cr_assert_arr_eq(&a[i], &b[i], WC_BYTES);
	} while (n);
	cr_assert_arr_eq(t.on->buf, t.off->buf, COMPARED);
	cr_assert_eq(t.on->async_cnt, t.off->async_cnt);
	cr_assert_eq(t.on->notified, t.off->notified);
	cr_assert_eq(ur_engine_next_deadline(t.on->engine), ur_engine_next_deadline(t.off->engine));
	cr_assert_eq(t.on->qp->state, t.off->qp->state);
	cr_assert_eq(t.on->qp->req.ssn.v, t.off->qp->req.ssn.v);
	cr_assert_eq(t.on->qp->req.since_ackreq, t.off->qp->req.since_ackreq);
	cr_assert_eq(t.on->qp->rsp.epsn.v, t.off->qp->rsp.epsn.v);
	cr_assert_eq(t.on->qp->rsp.msn.v, t.off->qp->rsp.msn.v);
}

/* What the end that predicts has sent last. */
static struct frame sent[BURST];
static struct ur_packet sent_packet[BURST];

/* One call of each engine, which may send `cap` packets. Returns how many each has sent. */
static unsigned expect_same_burst(struct twins t, unsigned cap)
{
	static uint8_t headers[BURST][UR_HDR_MAX];
	static struct frame other;
	struct ur_tx tx[BURST];
	unsigned n;

	for (unsigned i = 0; i < BURST; i++)
		tx[i].hdr = headers[i];
	n = ur_engine_output(t.on->engine, tx, cap, t.on->now_ns);
	for (unsigned i = 0; i < n; i++) {
		sent[i].len = ur_tx_write(&tx[i], sent[i].b);
		cr_assert_eq(ur_packet_decode(sent[i].b, sent[i].len, &sent_packet[i]),
			     UR_DROP_NONE);
	}
	cr_assert_eq(ur_engine_output(t.off->engine, tx, cap, t.off->now_ns), n);
	for (unsigned i = 0; i < n; i++) {
		other.len = ur_tx_write(&tx[i], other.b);
		cr_assert_eq(sent[i].len, other.len);
		cr_assert_arr_eq(sent[i].b, other.b, other.len);
	}
	ur_qp_validate(t.on->qp);
	ur_qp_validate(t.off->qp);
	return n;
}

static bool expect_same_packet(struct twins t)
{
	return expect_same_burst(t, 1);
}

static enum ur_drop in_decoded(struct end *e, const struct frame *f)
{
	struct ur_packet p;
	enum ur_drop drop = ur_packet_decode(f->b, f->len, &p);

	if (drop == UR_DROP_NONE && !ur_icrc_ok(f->b, &p))
		drop = UR_DROP_ICRC;
	if (drop == UR_DROP_NONE)
		return ur_engine_input(e->engine, &p, e->now_ns);
	ur_engine_core(e->engine)->cnt.drops[drop]++;
	return drop;
}

/* Passes the frame to both. Returns whether it was predicted. */
static bool both_in(struct twins t, const struct frame *f)
{
	uint64_t before = end_counters(t.on)->rx_predicted;
	enum ur_drop on = ur_engine_input_frame(t.on->engine, f->b, f->len, t.on->now_ns);

	cr_assert_eq(on, in_decoded(t.off, f));
	ur_qp_validate(t.on->qp);
	ur_qp_validate(t.off->qp);
	return end_counters(t.on)->rx_predicted != before;
}

static void both_sleep(struct twins t, uint64_t ns)
{
	end_sleep(t.on, ns);
	end_sleep(t.off, ns);
}

static void both_post_recv(struct twins t, uint64_t id, uint32_t len)
{
	end_post_recv(t.on, id, 4096, len);
	end_post_recv(t.off, id, 4096, len);
}

/* ---- packets ---- */

struct sender {
	uint32_t psn, ssn, rwqen; /* of the next packet; ssn, rwqen: mode extended */
	uint32_t at, packets;	  /* the next packet is number `at` of `packets` of its message */
	bool send;
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
				.flags = s->send ? UR_XTH_RECV : 0,
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

static uint8_t opcode_of(const struct sender *s)
{
	static const uint8_t op[2][2][2] = {
		/* [send][first][last] */
		{{UR_RC_WRITE_MIDDLE, UR_RC_WRITE_LAST}, {UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY}},
		{{UR_RC_SEND_MIDDLE, UR_RC_SEND_LAST}, {UR_RC_SEND_FIRST, UR_RC_SEND_ONLY}}};

	return op[s->send][s->at == 0][s->at + 1 == s->packets];
}

/* The next packet in order; most messages have one packet. */
static struct ur_packet next_packet(struct twins t, struct sender *s)
{
	struct ur_packet p;

	if (!s->at) {
		s->send = rand() % 3 == 0;
		s->packets = rand() % 4 ? 1 : 2 + (unsigned)rand() % 3;
		s->tail = (uint16_t)(1 + rand() % STREAM_MTU);
	}
	p = data_packet(t, s, opcode_of(s), s->at + 1 == s->packets ? s->tail : STREAM_MTU);
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

static void fix_sums(struct frame *f)
{
	uint32_t crc;

	frame_fix_ipv4_csum(f->b + 14);
	crc = frame_icrc(f->b + 14, f->len - 14 - 4, false);
	for (unsigned i = 0; i < 4; i++)
		f->b[f->len - 4 + i] = (uint8_t)(crc >> 8 * i);
}

/* ---- PREDICT-REQ-01: the packet expected is predicted ---- */

static const enum ur_mode modes[] = {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED};
#define FOR_EACH_MODE(m)                                                                           \
	for (const enum ur_mode *m = modes; m < modes + sizeof(modes) / sizeof(modes[0]); m++)

Test(predict, the_next_message_of_one_packet_is_taken_without_decoding)
{
	FOR_EACH_MODE(mode)
	for (int send = 0; send < 2; send++) {
		struct twins t = twins((struct end_attr){.mode = *mode});
		struct ur_packet p = only_packet(t, send);
		struct frame f;

		both_post_recv(t, 7, 100);
		p.bth.ackreq = true;
		frame_make(&f, &p);
		cr_assert(both_in(t, &f));
		expect_same_state(t);
		cr_assert_arr_eq(t.on->buf + (send ? 4096 : REGION_OFF), p.payload, 61);
		cr_assert(expect_same_packet(t), "an ACK is owed");
		cr_assert_not(both_in(t, &f), "a duplicate");
		expect_same_state(t);
		free_twins(t);
	}
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
	struct twins t = twins((struct end_attr){.mode = mode});
	struct ur_packet p = only_packet(t, send);
	struct frame f;

	both_post_recv(t, 7, 100);
	frame_make(&f, &p);
	f.b[byte] ^= (uint8_t)(1u << bit);
	if (fixed)
		fix_sums(&f);
	predicted = both_in(t, &f);
	if (fixed && !is_address(byte, ext, send) && byte != 24 && byte != 25)
		cr_assert_eq(predicted, is_free(byte, bit, ext, send),
			     "mode %d, send %d: bit %u of byte %u: %d", mode, send, bit, byte,
			     predicted);
	while (expect_same_packet(t))
		;
	expect_same_state(t);
	/* What follows is judged alike as well. */
	p = only_packet(t, !send);
	frame_make(&f, &p);
	both_in(t, &f);
	while (expect_same_packet(t))
		;
	expect_same_state(t);
	free_twins(t);
}

static void check_each_bit(enum ur_mode mode, bool fixed)
{
	unsigned ext = mode == UR_MODE_EXTENDED ? 16 : 0;

	for (int send = 0; send < 2; send++)
		for (unsigned byte = 0; byte < HEADERS + 12 + ext + (send ? 0 : 16); byte++)
			for (unsigned bit = 0; bit < 8; bit++)
				check_flipped(mode, send, byte, bit, fixed);
}

Test(predict, one_bit_that_differs_gbn, .timeout = 100)
{
	check_each_bit(UR_MODE_GBN, true);
}

Test(predict, one_bit_that_differs_extended, .timeout = 100)
{
	check_each_bit(UR_MODE_EXTENDED, true);
}

/* Then a sum is wrong: the header's or the ICRC. */
Test(predict, one_bit_corrupted, .timeout = 100)
{
	check_each_bit(UR_MODE_GBN, false);
}

Test(predict, a_wrong_icrc_is_never_taken)
{
	FOR_EACH_MODE(mode)
	for (unsigned bit = 0; bit < 32; bit++) {
		struct twins t = twins((struct end_attr){.mode = *mode});
		struct ur_packet p = only_packet(t, false);
		struct frame f;

		frame_make(&f, &p);
		f.b[f.len - 4 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_not(both_in(t, &f));
		expect_same_state(t);
		cr_assert_eq(end_counters(t.on)->drops[UR_DROP_ICRC], 1);
		free_twins(t);
	}
}

Test(predict, every_truncation_is_dropped_alike)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins((struct end_attr){.mode = *mode});
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
								t.on->now_ns));
			drop = in_decoded(t.off, &f);
			cr_assert_neq(drop, UR_DROP_NONE, "%zu of %zu bytes", f.len, whole);
			free(part);
		}
		cr_assert_eq(t.on->qp->rsp.epsn.v, END_RQ_PSN);
		free_twins(t);
	}
}

/* Padding of Ethernet behind the ICRC belongs to no header. */
Test(predict, what_follows_the_icrc_is_ignored)
{
	struct twins t = twins((struct end_attr){0});
	struct ur_packet p = only_packet(t, false);
	struct frame f;

	frame_make(&f, &p);
	memset(f.b + f.len, 0xaa, 7);
	f.len += 7;
	cr_assert(both_in(t, &f));
	expect_same_state(t);
	free_twins(t);
}

/* ---- state that the packet does not show ---- */

static bool next_is_predicted(struct twins t, bool send)
{
	struct ur_packet p = only_packet(t, send);
	struct frame f;
	bool predicted;

	frame_make(&f, &p);
	predicted = both_in(t, &f);
	while (expect_same_packet(t))
		;
	expect_same_state(t);
	return predicted;
}

Test(predict, a_queue_pair_that_is_not_in_rts_is_not_predicted)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins((struct end_attr){.mode = *mode, .rtr = true});

		cr_assert_not(next_is_predicted(t, false));
		cr_assert_eq(end_async(t.on, IBV_EVENT_COMM_EST), 1);
		free_twins(t);
	}
}

Test(predict, rights_keys_receives_and_strictness_are_checked)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins(
			(struct end_attr){.mode = *mode, .no_access = IBV_ACCESS_REMOTE_WRITE});

		cr_assert_not(next_is_predicted(t, false));
		cr_assert_eq(t.on->qp->state, IBV_QPS_ERR);
		free_twins(t);

		t = twins((struct end_attr){.mode = *mode});
		ur_mem_invalidate(t.on->mem, t.on->unaligned_key, END_PD, true);
		ur_mem_invalidate(t.off->mem, t.off->unaligned_key, END_PD, true);
		cr_assert_not(next_is_predicted(t, false));
		cr_assert_eq(t.on->qp->state, IBV_QPS_ERR);
		free_twins(t);

		t = twins((struct end_attr){.mode = *mode});
		cr_assert_not(next_is_predicted(t, true), "no receive");
		cr_assert_eq(end_counters(t.on)->rnr_nak_sent, 1);
		free_twins(t);

		t = twins((struct end_attr){.mode = *mode});
		both_post_recv(t, 7, 60);
		cr_assert_not(next_is_predicted(t, true), "too short a receive");
		cr_assert_eq(t.on->qp->state, IBV_QPS_ERR);
		free_twins(t);

		t = twins((struct end_attr){.mode = *mode, .strict = true});
		cr_assert_eq(next_is_predicted(t, false), *mode == UR_MODE_GBN,
			     "END sets strict with a mode");
		free_twins(t);
	}
}

/* ---- streams ---- */

static void maybe_damage(struct frame *f)
{
	unsigned byte = (unsigned)rand() % (HEADERS + 32);

	switch (rand() % 12) {
	case 0: /* of the header, with right sums */
		f->b[byte] ^= (uint8_t)(1 << rand() % 8);
		fix_sums(f);
		break;
	case 1:
		f->b[(size_t)rand() % f->len] ^= (uint8_t)(1 << rand() % 8);
		break;
	case 2:
		f->b[15] |= 3; /* congestion experienced */
		fix_sums(f);
		break;
	default:
		break;
	}
}

/* Packets in order, with some lost, late, twice, damaged, of other kinds. Returns how many were predicted. */
static unsigned stream(enum ur_mode mode, unsigned seed)
{
	struct twins t = twins((struct end_attr){.mode = mode, .dest_rd_atomic = 4});
	struct sender s = sender_of(t.on);
	struct frame late[EARLY_OR_LATE], f;
	unsigned predicted = 0, lates = 0;

	srand(seed);
	for (unsigned i = 0; i < STREAM && t.on->qp->state == IBV_QPS_RTS; i++) {
		struct sender before = s;
		struct ur_packet p = next_packet(t, &s);

		if (rand() % 4 && ur_wq_cnt(&t.on->qp->rq) < 8)
			both_post_recv(t, i, rand() % 40 ? 1024 : 8);
		frame_make(&f, &p);
		if (rand() % 16 == 0 && lates < EARLY_OR_LATE)
			late[lates++] = f;
		if (rand() % 64 == 0) {
			maybe_damage(&f);
			predicted += both_in(t, &f);
			s = rand() % 2 ? before : s; /* again, or lost */
		} else {
			predicted += both_in(t, &f);
		}
		if (lates && rand() % 16 == 0)
			predicted += both_in(t, &late[--lates]);
		while (rand() % 3 && expect_same_packet(t))
			;
		expect_same_state(t);
		/* The peer goes back to what is expected, as it would after a NAK. */
		if (s.psn != t.on->qp->rsp.epsn.v && rand() % 3 == 0 && !s.at &&
		    t.on->qp->rsp.kind == UR_MSG_NONE) {
			uint32_t rwqen = mode == UR_MODE_EXTENDED ? t.on->qp->xrsp.rwqen : 0;

			s = sender_of(t.on);
			s.rwqen = rwqen;
		}
		both_sleep(t, STEP_NS);
	}
	while (expect_same_packet(t))
		;
	expect_same_state(t);
	free_twins(t);
	return predicted;
}

static void check_streams(enum ur_mode mode)
{
	unsigned predicted = 0;

	for (unsigned seed = 0; seed < 300; seed++)
		predicted += stream(mode, seed);
	cr_assert_gt(predicted, 3000, "%u of the packets were predicted", predicted);
}

Test(predict, streams_gbn, .timeout = 100)
{
	check_streams(UR_MODE_GBN);
}

Test(predict, streams_reorder, .timeout = 100)
{
	check_streams(UR_MODE_REORDER);
}

Test(predict, streams_extended, .timeout = 100)
{
	check_streams(UR_MODE_EXTENDED);
}

/* ---- PREDICT-SEND-01: what is sent ---- */

/* The receiver of a stream of requests: what it has been sent. */
struct peer {
	struct ur_packet newest; /* the last request packet that asks for an answer */
	bool heard;
	uint32_t msn;
};

static struct ibv_send_wr random_wr(struct twins t, unsigned id)
{
	static const enum ibv_wr_opcode op[] = {
		IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE,
		IBV_WR_SEND,	      IBV_WR_SEND,	    IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
	};
	struct ibv_send_wr wr = end_wr(t.on, id, op[(size_t)rand() % (sizeof(op) / sizeof(op[0]))]);

	/* Nothing here answers it in mode extended: it stops the queue. */
	if (wr.opcode == IBV_WR_RDMA_READ && t.on->attr.mode == UR_MODE_EXTENDED && rand() % 20)
		wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = (rand() % 2 ? IBV_SEND_SIGNALED : 0) |
			(rand() % 3 ? 0 : IBV_SEND_SOLICITED) | (rand() % 12 ? 0 : IBV_SEND_FENCE);
	return wr;
}

/* The same request to both, with one segment or two, inline, or with a key that is not valid. */
static void post_same(struct twins t, unsigned id)
{
	struct ibv_send_wr wr = random_wr(t, id);
	uint32_t len = rand() % 4 ? (uint32_t)rand() % 300 : (uint32_t)rand() % 900;
	unsigned split = rand() % 5 ? 0 : (unsigned)rand() % (len + 1);
	bool bad = rand() % 200 == 0;
	int rc[2];

	if (wr.opcode != IBV_WR_RDMA_READ && len <= 32 && rand() % 2)
		wr.send_flags |= IBV_SEND_INLINE;
	for (int i = 0; i < 2; i++) {
		struct end *e = i ? t.off : t.on;
		struct ibv_sge sge[2] = {
			{(uintptr_t)e->buf, split ? split : len, bad ? ~e->key : e->key},
			{(uintptr_t)e->buf + 2000, split ? len - split : 0, e->key}};

		wr.sg_list = sge;
		wr.num_sge = split ? 2 : 1;
		rc[i] = ur_sq_post(&e->qp->sq, e->qp->posted_state, &wr, false);
		ur_engine_doorbell(e->engine, e->qp, e->now_ns);
		ur_qp_validate(e->qp);
	}
	cr_assert_eq(rc[0], rc[1]);
}

/* An ACK or NAK of what was sent up to the packet, or up to one before it. */
static void answer_same(struct twins t, struct peer *peer)
{
	bool ext = t.on->attr.mode == UR_MODE_EXTENDED;
	static const uint8_t syndromes[] = {
		UR_SYNDROME_NAK | UR_NAK_PSN_SEQ,
		UR_SYNDROME_RNR_NAK | 1,
		UR_SYNDROME_NAK | UR_NAK_REM_ACCESS,
	};
	struct ur_psn psn =
		ur_psn_add(peer->newest.bth.psn, UR_PSN_MASK + 1u - (unsigned)rand() % 3 / 2);
	struct ur_packet p =
		end_packet(t.on, ext ? UR_EXT_ACKNOWLEDGE : UR_RC_ACKNOWLEDGE, psn.v, 0);
	struct frame f;

	p.aeth.syndrome = rand() % 3 ? UR_CREDITS_NONE : (uint8_t)(rand() % 16);
	if (rand() % 24 == 0)
		p.aeth.syndrome = syndromes[rand() % (rand() % 8 ? 2 : 3)];
	p.aeth.msn = peer->msn++ & UR_PSN_MASK;
	p.xaeth = (struct ur_xaeth){
		.echo = peer->newest.xth.stamp,
		.residence = 10,
		.epsn = (p.aeth.syndrome & UR_SYNDROME_KIND_MASK) ? psn : ur_psn_add(psn, 1)};
	frame_make(&f, &p);
	both_in(t, &f);
}

/* Answers a READ of one packet. */
static void respond_same(struct twins t, const struct ur_packet *request)
{
	struct ur_packet p = end_packet(t.on, UR_RC_READ_RESPONSE_ONLY, request->bth.psn.v,
					(uint16_t)request->reth.length);
	struct frame f;

	frame_make(&f, &p);
	both_in(t, &f);
}

static void hear_same(struct twins t, struct peer *peer, const struct ur_packet *p)
{
	if ((p->op & UR_OP_READ_REQ) && p->reth.length <= STREAM_MTU &&
	    t.on->attr.mode != UR_MODE_EXTENDED && rand() % 8)
		respond_same(t, p);
	if (p->op & (UR_OP_SEND | UR_OP_WRITE)) {
		peer->newest = *p;
		peer->heard = true;
	}
}

/* Random requests, and a peer that answers some of them in time. Returns how many packets were predicted. */
static uint64_t requests(enum ur_mode mode, unsigned seed)
{
	struct twins t = twins((struct end_attr){
		.mode = mode, .window = seed % 2 ? 64 : 8, .ackreq_every = seed % 3 ? 0 : 4});
	struct peer peer = {.msn = 1};
	uint64_t predicted;

	srand(seed);
	for (unsigned i = 0; i < STREAM && t.on->qp->state == IBV_QPS_RTS; i++) {
		for (unsigned n = (unsigned)rand() % 4; n; n--)
			post_same(t, i);
		for (unsigned n = expect_same_burst(t, 1 + (unsigned)rand() % BURST), k = 0; k < n;
		     k++)
			hear_same(t, &peer, &sent_packet[k]);
		if (peer.heard && rand() % 2)
			answer_same(t, &peer);
		expect_same_state(t);
		both_sleep(t, rand() % 50 ? STEP_NS : END_TIMEOUT_NS);
	}
	if (rand() % 2 && t.on->qp->state == IBV_QPS_RTS) {
		cr_assert_eq(end_modify(t.on, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
		cr_assert_eq(end_modify(t.off, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
	}
	while (expect_same_packet(t))
		;
	expect_same_state(t);
	predicted = end_counters(t.on)->tx_predicted;
	free_twins(t);
	return predicted;
}

static void check_requests(enum ur_mode mode)
{
	uint64_t predicted = 0;

	for (unsigned seed = 0; seed < 300; seed++)
		predicted += requests(mode, seed);
	cr_assert_gt(predicted, 2000, "%u packets were predicted", (unsigned)predicted);
}

Test(predict, requests_gbn, .timeout = 100)
{
	check_requests(UR_MODE_GBN);
}

Test(predict, requests_reorder, .timeout = 100)
{
	check_requests(UR_MODE_REORDER);
}

Test(predict, requests_extended, .timeout = 100)
{
	check_requests(UR_MODE_EXTENDED);
}
