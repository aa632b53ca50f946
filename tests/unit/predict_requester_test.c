/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "engine/query.h"
#include "twins.h"
#include "wire/bytes.h"

/* Header prediction at the requester: what it sends, and the answers. */
#define HEADERS	   42 /* Ethernet, IPv4, UDP */
#define STREAM	   400
#define STREAM_MTU 256u
#define STEP_NS	   777

static const enum ur_mode modes[] = {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED};
#define FOR_EACH_MODE(m)                                                                           \
	for (const enum ur_mode *m = modes; m < modes + sizeof(modes) / sizeof(modes[0]); m++)
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

	/* Those that are not answered stop the queue. */
	if (wr.opcode == IBV_WR_RDMA_READ && t.on->attr.mode == UR_MODE_EXTENDED && rand() % 4)
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

/* The syndrome of a positive answer. */
static uint8_t credits(void)
{
	return rand() % 3 ? UR_CREDITS_NONE : (uint8_t)(rand() % 16);
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

	p.aeth.syndrome = credits();
	if (rand() % 24 == 0)
		p.aeth.syndrome = syndromes[rand() % (rand() % 8 ? 2 : 3)];
	p.aeth.msn = peer->msn++ & UR_PSN_MASK;
	p.xaeth = (struct ur_xaeth){
		.echo = peer->newest.xth.stamp,
		.residence = 10,
		.epsn = (p.aeth.syndrome & UR_SYNDROME_KIND_MASK) ? psn : ur_psn_add(psn, 1)};
	frame_make(&f, &p);
	twins_in(t, &f);
}

static uint32_t responses_to(const struct ur_packet *request)
{
	return request->reth.length ? (request->reth.length + STREAM_MTU - 1) / STREAM_MTU : 1;
}

/* Response `at` of those to the READ request. */
static struct ur_packet response_to(struct twins t, const struct ur_packet *request, uint32_t at)
{
	static const uint8_t opcode[2][2] = {
		{UR_RC_READ_RESPONSE_MIDDLE, UR_RC_READ_RESPONSE_LAST},
		{UR_RC_READ_RESPONSE_FIRST, UR_RC_READ_RESPONSE_ONLY},
	};
	bool ext = t.on->attr.mode == UR_MODE_EXTENDED, last = at + 1 == responses_to(request);
	uint32_t len = last ? request->reth.length - at * STREAM_MTU : STREAM_MTU;
	struct ur_packet p = end_packet(
		t.on, opcode[at == 0][last] | (ext ? UR_TRANSPORT_EXT : UR_TRANSPORT_RC),
		ext ? request->bth.psn.v : ur_psn_add(request->bth.psn, at).v, (uint16_t)len);

	p.xaeth = (struct ur_xaeth){.echo = request->xth.stamp,
				    .residence = 10,
				    .epsn = ur_psn_add(request->bth.psn, 1)};
	p.xrth = (struct ur_xrth){.ssn = request->xth.ssn, .offset = request->xth.offset + at};
	return p;
}

/* All of them, but for some that are lost, or come twice. */
static void respond_same(struct twins t, struct peer *peer, const struct ur_packet *request)
{
	for (uint32_t at = 0; at < responses_to(request); at++) {
		struct ur_packet p = response_to(t, request, at);
		struct frame f;

		p.aeth = (struct ur_aeth){credits(), peer->msn++ & UR_PSN_MASK};
		frame_make(&f, &p);
		if (rand() % 16)
			twins_in(t, &f);
		if (rand() % 16 == 0)
			twins_in(t, &f);
	}
}

static void hear_same(struct twins t, struct peer *peer, const struct ur_packet *p)
{
	if ((p->op & UR_OP_READ_REQ) && rand() % 8)
		respond_same(t, peer, p);
	if (p->op & (UR_OP_SEND | UR_OP_WRITE)) {
		peer->newest = *p;
		peer->heard = true;
	}
}

Test(predict_requester, each_packet_of_a_longer_message_is_predicted)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND};

	FOR_EACH_MODE(mode)
	for (unsigned i = 0; i < 2; i++) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});

		end_send(t.on, 1, opcodes[i], 3 * STREAM_MTU + 61);
		end_send(t.off, 1, opcodes[i], 3 * STREAM_MTU + 61);
		/* The turn may end in the middle of a message. */
		cr_assert_eq(twins_expect_same_burst(t, 1), 1);
		cr_assert_eq(twins_expect_same_burst(t, 2), 2);
		cr_assert_eq(twins_expect_same_burst(t, TWINS_BURST), 1);
		cr_assert_eq(end_counters(t.on)->tx_predicted, 4, "mode %d", *mode);
		twins_expect_same_state(t);
		twins_free(t);
	}
}

/* ---- PREDICT-DECODE-01: answers ---- */

static bool both_in_from_peer(struct twins t, const struct frame *f)
{
	uint64_t before = end_counters(t.on)->rx_path_predicted;

	twins_in(t, f);
	return end_counters(t.on)->rx_path_predicted != before;
}

enum answer { ACK, ONLY, MIDDLE, ANSWERS };

/* A request, and the answer to it that comes next. */
static struct ur_packet ask(struct twins t, enum answer answer)
{
	bool ext = t.on->attr.mode == UR_MODE_EXTENDED;
	enum ibv_wr_opcode opcode = answer == ACK ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	uint32_t len = answer == MIDDLE ? 2 * STREAM_MTU + 61 : 61;
	struct ur_packet p;
	struct frame f;

	end_send(t.on, 1, opcode, len);
	end_send(t.off, 1, opcode, len);
	cr_assert(twins_expect_same_packet(t));
	if (answer == MIDDLE) {
		p = response_to(t, &twins_sent[0], 0);
		frame_make(&f, &p);
		twins_in(t, &f);
		return response_to(t, &twins_sent[0], 1);
	}
	if (answer == ONLY)
		return response_to(t, &twins_sent[0], 0);
	p = end_packet(t.on, ext ? UR_EXT_ACKNOWLEDGE : UR_RC_ACKNOWLEDGE, twins_sent[0].bth.psn.v,
		       0);
	p.xaeth = (struct ur_xaeth){.echo = twins_sent[0].xth.stamp,
				    .residence = 10,
				    .epsn = ur_psn_add(twins_sent[0].bth.psn, 1)};
	return p;
}

Test(predict_requester, an_answer_is_decoded_behind_its_udp_header_only)
{
	FOR_EACH_MODE(mode)
	for (enum answer answer = ACK; answer < ANSWERS; answer++) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet p = ask(t, answer);
		struct frame f;

		frame_make(&f, &p);
		cr_assert(both_in_from_peer(t, &f));
		cr_assert_eq(t.on->qp->ops->is_idle(t.on->qp), answer != MIDDLE,
			     "mode %d, answer %d", *mode, answer);
		twins_expect_same_state(t);
		twins_free(t);
	}
}

static void check_answer_flipped(enum ur_mode mode, enum answer answer, unsigned bit, bool fixed)
{
	struct twins t = twins_new((struct end_attr){.mode = mode});
	struct ur_packet p = ask(t, answer);
	struct frame f;

	frame_make(&f, &p);
	f.b[bit / 8] ^= (uint8_t)(1u << bit % 8);
	if (fixed)
		frame_fix_sums(&f);
	twins_in(t, &f);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	/* The answer itself follows, and is judged alike as well. */
	frame_make(&f, &p);
	twins_in(t, &f);
	twins_expect_same_state(t);
	twins_sleep(t, END_TIMEOUT_NS);
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	twins_free(t);
}

static void check_each_answer(enum ur_mode mode)
{
	unsigned ext = mode == UR_MODE_EXTENDED ? 12 + 8 : 0;

	for (enum answer answer = ACK; answer < ANSWERS; answer++)
		for (unsigned bit = 0; bit < 8 * (HEADERS + 12 + 4 + ext + 4); bit++) {
			check_answer_flipped(mode, answer, bit, true);
			check_answer_flipped(mode, answer, bit, false);
		}
}

Test(predict_requester, one_bit_of_an_answer_that_differs_gbn, .timeout = 400)
{
	check_each_answer(UR_MODE_GBN);
}

Test(predict_requester, one_bit_of_an_answer_that_differs_extended, .timeout = 400)
{
	check_each_answer(UR_MODE_EXTENDED);
}

/* A frame of this opcode that ends `rest` bytes behind the BTH, all zero, its lengths and sums right. */
static void pass_short(struct twins t, const struct frame *whole, uint8_t opcode, unsigned rest)
{
	struct frame f = *whole;

	f.b[HEADERS] = opcode;
	f.len = HEADERS + 12 + rest + 4;
	memset(f.b + HEADERS + 12, 0, rest);
	ur_store16(f.b + 14 + 2, (uint16_t)(f.len - 14));
	ur_store16(f.b + 34 + 4, (uint16_t)(f.len - 34));
	frame_fix_sums(&f);
	twins_in(t, &f);
	twins_expect_same_state(t);
}

Test(predict_requester, headers_that_end_early_are_dropped_alike, .timeout = 400)
{
	FOR_EACH_MODE(mode)
	for (unsigned opcode = 0; opcode < 256; opcode += 1 + !ur_opcodes[opcode].flags) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet p = ask(t, ACK);
		struct frame f;

		frame_make(&f, &p);
		for (unsigned rest = 0; rest < 72 && t.on->qp->state == IBV_QPS_RTS; rest++)
			pass_short(t, &f, (uint8_t)opcode, rest);
		twins_free(t);
	}
}

/* ---- PREDICT-ACK-01: ACKs ---- */

static bool both_in_as_ack(struct twins t, struct ur_packet *p)
{
	uint64_t before = end_counters(t.on)->rx_acks_predicted;
	struct frame f;

	frame_make(&f, p);
	twins_in(t, &f);
	twins_expect_same_state(t);
	return end_counters(t.on)->rx_acks_predicted != before;
}

Test(predict_requester, an_ack_of_what_is_in_flight_is_not_decoded)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode});

		for (unsigned i = 0; i < 5; i++) {
			struct ur_packet p = ask(t, ACK);

			cr_assert(both_in_as_ack(t, &p), "mode %d", *mode);
			cr_assert(t.on->qp->ops->is_idle(t.on->qp));
			cr_assert_eq(t.on->qp->timer.armed, t.on->qp->req.keeps_timer);
			/* What it acknowledges is not in flight any more. */
			cr_assert(!both_in_as_ack(t, &p));
			twins_sleep(t, STEP_NS);
		}
		twins_free(t);
	}
}

/* ---- PREDICT-RSP-01: the response to a READ ---- */

Test(predict_requester, the_response_to_the_oldest_read_is_not_decoded)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode});

		for (unsigned i = 1; i < 5; i++) {
			struct ur_packet p = ask(t, ONLY);
			struct frame f;

			frame_make(&f, &p);
			twins_in(t, &f);
			cr_assert_eq(end_counters(t.on)->rx_responses_predicted, i, "mode %d",
				     *mode);
			cr_assert(t.on->qp->ops->is_idle(t.on->qp));
			/* A duplicate. */
			twins_in(t, &f);
			cr_assert_eq(end_counters(t.on)->rx_responses_predicted, i);
			twins_expect_same_state(t);
			twins_sleep(t, STEP_NS);
		}
		twins_free(t);
	}
}

/* ---- PREDICT-RSP-02: responses in between ---- */

Test(predict_requester, responses_between_the_first_and_the_last_are_not_decoded)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet request;

		end_send(t.on, 1, IBV_WR_RDMA_READ, 4 * STREAM_MTU + 61);
		end_send(t.off, 1, IBV_WR_RDMA_READ, 4 * STREAM_MTU + 61);
		cr_assert(twins_expect_same_packet(t));
		request = twins_sent[0];
		for (uint32_t at = 0; at < 5; at++) {
			struct ur_packet p = response_to(t, &request, at);
			struct frame f;

			frame_make(&f, &p);
			twins_in(t, &f);
			cr_assert_eq(end_counters(t.on)->rx_responses_predicted, at < 4 ? at : 3,
				     "mode %d, response %u", *mode, at);
			/* A duplicate. */
			twins_in(t, &f);
			twins_expect_same_state(t);
			twins_sleep(t, STEP_NS);
		}
		cr_assert(t.on->qp->ops->is_idle(t.on->qp));
		twins_free(t);
	}
}

Test(predict_requester, the_timer_starts_afresh_with_each_response)
{
	FOR_EACH_MODE(mode)
	{
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet request;

		end_send(t.on, 1, IBV_WR_RDMA_READ, 7 * STREAM_MTU);
		end_send(t.off, 1, IBV_WR_RDMA_READ, 7 * STREAM_MTU);
		cr_assert(twins_expect_same_packet(t));
		request = twins_sent[0];
		for (uint32_t at = 0; at < 5; at++) {
			struct ur_packet p = response_to(t, &request, at);
			struct frame f;

			twins_sleep(t, STEP_NS);
			frame_make(&f, &p);
			twins_in(t, &f);
		}
		cr_assert_gt(end_counters(t.on)->rx_responses_predicted, 2, "mode %d", *mode);
		/* Silence, until a little before the timeout, and beyond. */
		twins_sleep(t, END_TIMEOUT_NS - 3 * STEP_NS);
		for (unsigned i = 0; i < 6; i++) {
			while (twins_expect_same_packet(t))
				;
			twins_expect_same_state(t);
			twins_sleep(t, STEP_NS);
		}
		twins_free(t);
	}
}

/* A peer that takes no notice of where the answer to a request begins and ends, and of where the READ does. */
Test(predict_requester, responses_that_all_say_middle_are_judged_alike)
{
	FOR_EACH_MODE(mode)
	for (unsigned seed = 0; seed < 20; seed++) {
		struct twins t = twins_new((struct end_attr){.mode = *mode});
		struct ur_packet requests[TWINS_BURST];
		unsigned n = 0;

		srand(seed);
		for (unsigned i = 0; i < 3; i++) {
			end_send(t.on, i, IBV_WR_RDMA_READ, 100 * STREAM_MTU);
			end_send(t.off, i, IBV_WR_RDMA_READ, 100 * STREAM_MTU);
		}
		for (unsigned round = 0; round < 12; round++) {
			n = twins_expect_same_burst(t, TWINS_BURST);
			memcpy(requests, twins_sent, n * sizeof(requests[0]));
			for (unsigned i = 0; i < n; i++)
				for (uint32_t at = 0; at < responses_to(&requests[i]); at++) {
					struct ur_packet p = response_to(t, &requests[i], at);
					struct frame f;

					if (rand() % 8)
						p.bth.opcode = *mode == UR_MODE_EXTENDED
								       ? UR_EXT_READ_RESPONSE_MIDDLE
								       : UR_RC_READ_RESPONSE_MIDDLE;
					frame_make(&f, &p);
					twins_in(t, &f);
					twins_expect_same_state(t);
				}
			twins_sleep(t, n ? STEP_NS : END_TIMEOUT_NS);
		}
		twins_free(t);
	}
}

/* ---- PREDICT-SEND-01, PREDICT-ACK-01, PREDICT-RSP-01, PREDICT-RSP-02: streams ---- */

struct predicted {
	uint64_t sent, acks, responses;
};

/* Random requests, and a peer that answers some of them in time. Returns how many packets were predicted. */
static struct predicted requests(enum ur_mode mode, unsigned seed)
{
	struct twins t = twins_new((struct end_attr){
		.mode = mode, .window = seed % 2 ? 64 : 8, .ackreq_every = seed % 3 ? 0 : 4});
	struct peer peer = {.msn = 1};
	struct predicted predicted;

	srand(seed);
	for (unsigned i = 0; i < STREAM && t.on->qp->state == IBV_QPS_RTS; i++) {
		for (unsigned n = (unsigned)rand() % 4; n; n--)
			post_same(t, i);
		for (unsigned n = twins_expect_same_burst(t, 1 + (unsigned)rand() % TWINS_BURST),
			      k = 0;
		     k < n; k++)
			hear_same(t, &peer, &twins_sent[k]);
		if (peer.heard && rand() % 2)
			answer_same(t, &peer);
		twins_expect_same_state(t);
		twins_sleep(t, rand() % 50 ? STEP_NS : END_TIMEOUT_NS);
	}
	if (rand() % 2 && t.on->qp->state == IBV_QPS_RTS) {
		cr_assert_eq(end_modify(t.on, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
		cr_assert_eq(end_modify(t.off, IBV_QPS_SQD, (struct ibv_qp_attr){0}, 0), 0);
	}
	while (twins_expect_same_packet(t))
		;
	twins_expect_same_state(t);
	predicted = (struct predicted){end_counters(t.on)->tx_predicted,
				       end_counters(t.on)->rx_acks_predicted,
				       end_counters(t.on)->rx_responses_predicted};
	twins_free(t);
	return predicted;
}

static void check_requests(enum ur_mode mode)
{
	struct predicted all = {0};

	for (unsigned seed = 0; seed < 300; seed++) {
		struct predicted some = requests(mode, seed);

		all.sent += some.sent;
		all.acks += some.acks;
		all.responses += some.responses;
	}
	cr_assert_gt(all.sent, 2000, "%u packets were predicted", (unsigned)all.sent);
	cr_assert_gt(all.acks, 500, "%u ACKs were predicted", (unsigned)all.acks);
	cr_assert_gt(all.responses, 20, "%u responses were predicted", (unsigned)all.responses);
}

Test(predict_requester, requests_gbn, .timeout = 400)
{
	check_requests(UR_MODE_GBN);
}

Test(predict_requester, requests_reorder, .timeout = 400)
{
	check_requests(UR_MODE_REORDER);
}

Test(predict_requester, requests_extended, .timeout = 400)
{
	check_requests(UR_MODE_EXTENDED);
}
