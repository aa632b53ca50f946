/* SPDX-License-Identifier: BSD-3-Clause */
#include "ext_peer.h"

/* ---- duplicates ---- */

/* EXT-RESP-DUP-01 */
Test(ext_responder, duplicate_of_data_is_acknowledged_and_not_placed)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 4), *s = peer_send(x, 4);

	end_post_recv(x->e, 1, 100, 4);
	peer_in(x, w);
	peer_in(x, s);
	end_expect_wc(x->e, 1, IBV_WC_SUCCESS);
	peer_expect_silence(x);
	memset(x->e->buf, 0xee, 200);
	cr_assert_eq(peer_in(x, w), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_in(x, s), UR_DROP_PSN_DUPLICATE);
	cr_assert(x->e->buf[0] == 0xee && x->e->buf[100] == 0xee);
	end_expect_no_wc(x->e);
	cr_assert_eq(peer_expect_ack(x, 102)->xaeth.echo, s->xth.stamp);
	peer_expect_silence(x);
	cr_assert_eq(x->qp->core->cnt.duplicate_request, 2);
	peer_free(x);
}

/* EXT-RESP-DUP-01 */
Test(ext_responder, duplicate_of_an_early_packet_is_not_placed_again)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 512);

	peer_in(x, &w[1]);
	peer_drain(x);
	memset(x->e->buf, 0xee, 512);
	cr_assert_eq(peer_in(x, &w[1]), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(x->e->buf[256], 0xee);
	peer_expect_nak(x, 100, 0x60);
	peer_free(x);
}

/* EXT-RESP-DUP-02 */
Test(ext_responder, duplicate_read_is_checked_as_the_first_one_was)
{
	struct peer *x = PEER();
	struct ur_packet *r = peer_read(x, 0, 1024, 0, true), again = *r;

	peer_in(x, r);
	cr_assert_eq(peer_drain(x), 4);
	again.reth.va += 256;
	again.reth.length = 300;
	again.xth.offset = 1;
	cr_assert_eq(peer_in(x, &again), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100)->xrth.offset, 1);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100)->xrth.offset, 2);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 2);
	again.reth.va = (uintptr_t)x->e->buf + END_BUF_BYTES - 299;
	cr_assert_eq(peer_in(x, &again), UR_DROP_DUP_UNKNOWN);
	again.reth.va = (uintptr_t)x->e->buf;
	again.reth.rkey ^= 1;
	cr_assert_eq(peer_in(x, &again), UR_DROP_DUP_UNKNOWN);
	peer_expect_silence(x);
	cr_assert_eq(x->qp->state, IBV_QPS_RTS);
	peer_free(x);
}

/* EXT-RESP-DUP-03 */
Test(ext_responder, duplicate_atomic_gets_the_value_found_first)
{
	struct peer *x = PEER(.dest_rd_atomic = 2);
	struct ur_packet *a = peer_fetch_add(x, 64, 1);

	for (unsigned i = 0; i < 2; i++)
		peer_fetch_add(x, 64, 1);
	for (unsigned i = 0; i < 3; i++) {
		peer_in(x, &a[i]);
		cr_assert_eq(peer_drain(x), 1);
	}
	for (unsigned i = 1; i < 3; i++) {
		cr_assert_eq(peer_in(x, &a[i]), UR_DROP_PSN_DUPLICATE);
		cr_assert_eq(peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 100 + i)->atomic_ack, i);
	}
	/* Not remembered; and another request with a PSN that is. */
	cr_assert_eq(peer_in(x, &a[0]), UR_DROP_DUP_UNKNOWN);
	a[2].atomiceth.va += 8;
	cr_assert_eq(peer_in(x, &a[2]), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(x->e->buf[64], 3);
	peer_free(x);
}

/* ---- refusals in turn: as in standard mode ---- */

static void refused(struct peer *x, struct ur_packet *p, enum ur_drop drop, uint8_t syndrome)
{
	uint32_t epsn = x->qp->rsp.epsn.v;

	cr_assert_eq(peer_in(x, p), drop, "packet %u", p->bth.psn.v);
	peer_expect_nak(x, epsn, syndrome);
	cr_assert_eq(x->qp->state, IBV_QPS_ERR);
	cr_assert_eq(peer_contexts(x), 0);
	peer_free(x);
}

/*
 * One spoilt field at a time. X(packet, drop, NAK, what spoils it): packets 0 to 2 are a WRITE, 3
 * is a SEND, 4 a READ, 5 an atomic, 6 and 7 a WRITE with immediate.
 */
#define SPOILT(X)                                                                                  \
	X(0, OP_SEQUENCE, 0x61, p->xth.ssn++)                                                      \
	X(0, OP_SEQUENCE, 0x61, p->xth.offset = 1)                                                 \
	X(0, OP_SEQUENCE, 0x61, set_op(p, UR_EXT_WRITE_MIDDLE))                                    \
	X(0, MSG_LENGTH, 0x61, p->payload_len = 255)                                               \
	X(0, MSG_LENGTH, 0x61, p->reth.length = 256)                                               \
	X(0, MSG_LENGTH, 0x61, p->reth.length = (1u << 31) + 1)                                    \
	X(0, ACCESS, 0x62, p->reth.rkey ^= 1)                                                      \
	X(0, ACCESS, 0x62, p->reth.va += END_BUF_BYTES - 599)                                      \
	X(0, ACCESS, 0x62, p->reth.va = UINT64_MAX - 100)                                          \
	X(0, ACCESS, 0x62, p->reth.length = 1u << 31)                                              \
	X(1, OP_SEQUENCE, 0x61, p->xth.ssn--)                                                      \
	X(1, OP_SEQUENCE, 0x61, p->xth.offset = 2)                                                 \
	X(1, OP_SEQUENCE, 0x61, p->xth.offset = 0xffffff)                                          \
	X(1, OP_SEQUENCE, 0x61, set_op(p, UR_EXT_SEND_MIDDLE))                                     \
	X(1, OP_SEQUENCE, 0x61, set_op(p, UR_EXT_WRITE_FIRST))                                     \
	X(1, OP_SEQUENCE, 0x61, set_op(p, UR_EXT_READ_REQUEST))                                    \
	X(1, MSG_LENGTH, 0x61, p->payload_len = 0)                                                 \
	X(1, MSG_LENGTH, 0x61, p->reth.length = 512)                                               \
	X(2, MSG_LENGTH, 0x61, p->reth.length = 601)                                               \
	X(2, MSG_LENGTH, 0x61, p->payload_len = 0)                                                 \
	X(2, MSG_LENGTH, 0x61, p->payload_len = 257)                                               \
	X(2, OP_SEQUENCE, 0x61, p->xth.flags = UR_XTH_RECV)                                        \
	X(3, OP_SEQUENCE, 0x61, p->xth.rwqen++)                                                    \
	X(3, OP_SEQUENCE, 0x61, p->xth.flags = 0)                                                  \
	X(3, MSG_LENGTH, 0x61, p->payload_len = 257)                                               \
	X(4, MSG_LENGTH, 0x61, p->reth.length = UR_EXT_WINDOW * PEER_MTU + 1)                      \
	X(4, MSG_LENGTH, 0x61, p->reth.length = UINT32_MAX)                                        \
	X(4, OP_SEQUENCE, 0x61, p->xth.flags = UR_XTH_RECV | UR_XTH_LAST_READ)                     \
	X(4, MSG_LENGTH, 0x61, (p->xth.flags = UR_XTH_RECV | UR_XTH_LAST_READ, p->xth.rwqen = 1))  \
	X(4, MSG_LENGTH, 0x61, p->xth.flags = 0)                                                   \
	X(4, OP_SEQUENCE, 0x61, p->xth.offset = 1)                                                 \
	X(4, ACCESS, 0x62, p->reth.va--)                                                           \
	X(5, MSG_LENGTH, 0x61, p->atomiceth.va++)                                                  \
	X(5, OP_SEQUENCE, 0x61, p->xth.offset = 1)                                                 \
	X(5, ACCESS, 0x62, p->atomiceth.va -= 64 + 8)                                              \
	X(7, OP_SEQUENCE, 0x61, p->xth.flags = 0)                                                  \
	X(7, OP_SEQUENCE, 0x61, p->xth.rwqen--)

static void set_op(struct ur_packet *p, uint8_t opcode)
{
	p->bth.opcode = opcode;
	p->op = ur_op_flags(opcode);
}

static void spoil(unsigned n, struct ur_packet *p)
{
	unsigned i = 0;

#define X(which, drop, nak, what)                                                                  \
	if (i++ == n)                                                                              \
		what;
	SPOILT(X)
#undef X
}

static const struct {
	uint8_t which, syndrome;
	enum ur_drop drop;
} spoilt[] = {
#define X(which, drop, nak, what) {which, nak, UR_DROP_##drop},
	SPOILT(X)
#undef X
};
#define SPOILT_CNT (sizeof(spoilt) / sizeof(spoilt[0]))

/* A packet of each kind, in the middle of the buffer. */
static struct peer *all_kinds(void)
{
	struct peer *x = PEER();

	peer_write(x, 0, 600);
	peer_send(x, 100);
	peer_read(x, 0, 700, 0, true);
	peer_fetch_add(x, 64, 1);
	peer_data(x, false, 0, 300, IMM, 1);
	end_post_recv(x->e, 1, 0, 1000);
	end_post_recv(x->e, 2, 0, 1000);
	return x;
}

/* EXT-RESP-FORM-01, EXT-RESP-SEQ-01 */
Test(ext_responder, packet_that_does_not_fit_is_refused_in_its_turn)
{
	for (unsigned n = 0; n < SPOILT_CNT; n++) {
		struct peer *x = all_kinds();
		struct ur_packet *p = &x->p[spoilt[n].which];

		for (unsigned i = 0; i < spoilt[n].which; i++)
			cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
		peer_drain(x);
		spoil(n, p);
		refused(x, p, spoilt[n].drop, spoilt[n].syndrome);
	}
}

/* EXT-RESP-EARLY-01: early, the same packets are dropped or judged when their turn comes. */
Test(ext_responder, packet_that_does_not_fit_is_refused_in_its_turn_when_it_came_early)
{
	for (unsigned n = 0; n < SPOILT_CNT; n++) {
		struct peer *x = all_kinds();
		struct ur_packet *p = &x->p[spoilt[n].which];
		enum ur_drop drop;

		if (spoilt[n].which == 0) {
			peer_free(x);
			continue;
		}
		spoil(n, p);
		drop = peer_in(x, p);
		cr_assert(drop == UR_DROP_NONE || drop == UR_DROP_EARLY || drop == UR_DROP_RNR,
			  "case %u: %d", n, drop);
		for (unsigned i = 0; i < spoilt[n].which; i++)
			cr_assert_eq(peer_in(x, &x->p[i]), UR_DROP_NONE);
		if (drop != UR_DROP_NONE)
			peer_in(x, p);
		cr_assert_eq(x->qp->state, IBV_QPS_ERR, "case %u", n);
		cr_assert_eq(peer_contexts(x), 0);
		peer_free(x);
	}
}

/* EXT-RESP-RECV-02 */
Test(ext_responder, send_longer_than_its_receive_is_refused)
{
	struct peer *x = PEER();
	struct ur_packet *s = peer_send(x, 600);

	end_post_recv(x->e, 1, 0, 599);
	cr_assert_eq(peer_in(x, &s[2]), UR_DROP_EARLY);
	peer_in(x, &s[0]);
	peer_in(x, &s[1]);
	peer_drain(x);
	cr_assert_eq(peer_in(x, &s[2]), UR_DROP_RECV_BUFFER);
	peer_expect_nak(x, 102, 0x61);
	end_expect_wc(x->e, 1, IBV_WC_LOC_LEN_ERR);
	peer_free(x);
}

/* EXT-RESP-RECV-02: in one piece of memory, in two, and with a region that has gone. */
Test(ext_responder, receive_that_may_not_be_written_is_not)
{
	for (unsigned i = 0; i < 3; i++) {
		struct peer *x = PEER();
		struct ur_packet *s = peer_send(x, 100);
		uint8_t *to = x->e->buf + 4096;
		struct ibv_sge sge[2];
		struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = i == 1 ? 2 : 1};
		uint32_t key;

		memset(to, 0xee, 100);
		cr_assert_eq(
			ur_mem_register(x->e->mem, END_PD, to, 100, (uintptr_t)to,
					i == 2 ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ
					       : IBV_ACCESS_REMOTE_READ,
					77, &key),
			0);
		sge[0] = (struct ibv_sge){(uintptr_t)to, i == 1 ? 60 : 100, key};
		sge[1] = (struct ibv_sge){(uintptr_t)to + 60, 40, key};
		cr_assert_eq(ur_rq_post(&x->qp->rq, &wr), 0);
		if (i == 2)
			ur_mem_invalidate(x->e->mem, key, END_PD, false);
		cr_assert_eq(peer_in(x, s), UR_DROP_RECV_BUFFER);
		peer_expect_nak(x, 100, 0x63);
		end_expect_wc(x->e, 1, IBV_WC_LOC_PROT_ERR);
		for (unsigned at = 0; at < 100; at++)
			cr_assert_eq(to[at], 0xee);
		peer_free(x);
	}
}

/* EXT-RESP-RECV-01: no peer takes more of an SRQ than it has sent messages. */
Test(ext_responder, receive_number_from_far_away_binds_nothing)
{
	static const uint32_t far[] = {3, 16, 63, 64, 65, 1 << 20, 0x7fffff, 0x800000, 0xffffff};
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet s;

	srq_new(&srq, 128);
	x = PEER(.srq = &srq);
	for (unsigned i = 0; i < 127; i++)
		end_post_recv(x->e, i, 0, 100);
	s = *peer_send(x, 4);
	s.bth.psn = ur_psn(102);
	s.xth.ssn = 3;
	for (unsigned i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		s.xth.rwqen = far[i];
		cr_assert_eq(peer_in(x, &s), UR_DROP_EARLY, "%u", far[i]);
		cr_assert_eq(ur_wq_head(&srq.rq), 0);
	}
	s.bth.psn = ur_psn(100 + 200);
	s.xth.ssn = 1 + UR_OOO_BOUND;
	s.xth.rwqen = UR_OOO_BOUND;
	cr_assert_eq(peer_in(x, &s), UR_DROP_RNR);
	s.xth.rwqen = UR_OOO_BOUND - 1;
	cr_assert_eq(peer_in(x, &s), UR_DROP_NONE);
	cr_assert_eq(ur_wq_head(&srq.rq), UR_OOO_BOUND);
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-SHARE-01: what is left for others is as much as one has taken early. */
Test(ext_responder, early_message_leaves_half_of_an_srq_to_others)
{
	for (unsigned posted = 1; posted <= 16; posted++) {
		struct ur_packet *s[16];
		struct ur_srq srq;
		struct peer *x;
		uint32_t taken;

		srq_new(&srq, 16);
		x = PEER(.srq = &srq);
		for (unsigned i = 0; i < posted; i++)
			end_post_recv(x->e, i, 0, 100);
		for (unsigned i = 0; i < 16; i++)
			s[i] = peer_send(x, 4);
		for (unsigned i = 1; i < 16; i++)
			peer_in(x, s[i]);
		taken = ur_wq_head(&srq.rq);
		/* The message at ePSN has a right to its receive: it is not counted. */
		cr_assert_eq(taken, posted < 3 ? 0 : (posted + 1) / 2, "%u of %u", taken, posted);
		/* What was refused comes again, and all that was posted is used. */
		for (unsigned i = 0; i < posted; i++)
			peer_in(x, s[i]);
		for (unsigned i = 0; i < posted; i++)
			end_expect_wc(x->e, i, IBV_WC_SUCCESS);
		peer_free(x);
		free(srq.rq.ring);
	}
}

/* EXT-RESP-NUMBERS-01 */
Test(ext_responder, early_packet_whose_numbers_do_not_fit_is_not_recorded)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 3 * PEER_MTU), p;
	uint32_t ssn = x->ssn;

	/* The message under way must continue at the right offset, */
	peer_in(x, &w[0]);
	p = w[2];
	p.xth.offset = 1;
	p.reth.length = 2 * PEER_MTU;
	cr_assert_eq(peer_in(x, &p), UR_DROP_EARLY);
	p = w[2];
	p.bth.opcode = UR_EXT_SEND_LAST;
	p.op = ur_op_flags(p.bth.opcode);
	p.xth.flags = UR_XTH_RECV;
	end_post_recv(x->e, 1, 0, 4096);
	cr_assert_eq(peer_in(x, &p), UR_DROP_EARLY);
	/* and others take a PSN at least, and their parts. */
	p = *peer_write(x, 0, 4);
	for (uint32_t ahead = 1; ahead < UR_EXT_WINDOW; ahead = 2 * ahead + 1)
		for (uint32_t i = 0; i < 6; i++) {
			const uint32_t wrong[] = {0,	       ssn - 2,		ssn - 1,
						  ssn + ahead, ssn + (1 << 23), UR_PSN_MASK};

			p.bth.psn = ur_psn(101 + ahead);
			p.xth.ssn = wrong[i];
			cr_assert_eq(peer_in(x, &p), UR_DROP_EARLY, "%u ahead, SSN %u", ahead,
				     wrong[i]);
		}
	p = *(peer_write(x, 0, 3 * PEER_MTU) + 1);
	p.bth.psn = ur_psn(103);
	p.xth.ssn = ssn + 1;
	cr_assert_eq(peer_in(x, &p), UR_DROP_EARLY);
	cr_assert_eq(peer_contexts(x), 0);
	cr_assert_eq(x->qp->state, IBV_QPS_RTS);
	/* The genuine packets are recorded. */
	cr_assert_eq(peer_in(x, &w[2]), UR_DROP_NONE);
	p.xth.ssn = ssn;
	cr_assert_eq(peer_in(x, &p), UR_DROP_NONE);
	peer_free(x);
}

/* EXT-RESP-RECV-01 */
Test(ext_responder, receive_with_more_segments_than_a_context_holds_waits_for_its_turn)
{
	struct ur_srq srq;
	struct peer *x;
	struct ur_packet *s;

	ur_srq_init(&srq, aligned_alloc(64, (ur_rq_ring_bytes(8, 5) + 63) & ~63ul), 8, 5, END_PD,
		    NULL);
	x = PEER(.srq = &srq);
	s = peer_send(x, 300);
	end_post_recv(x->e, 1, 0, 1000);
	cr_assert_eq(peer_in(x, &s[1]), UR_DROP_RNR);
	peer_in(x, &s[0]);
	peer_in(x, &s[1]);
	end_expect_wc(x->e, 1, IBV_WC_SUCCESS);
	peer_free(x);
	free(srq.rq.ring);
}

/* EXT-RESP-FORM-01 */
Test(ext_responder, message_is_at_most_two_gigabytes)
{
	struct peer *x = PEER();
	struct ur_packet s = *(peer_send(x, 300) + 1);
	struct ibv_sge sge[2] = {{0, 1u << 31, 1}, {(uintptr_t)x->e->buf, 1000, x->e->key}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2};

	ur_rq_post(&x->qp->rq, &wr);
	s.xth.offset = (1u << 31) / PEER_MTU;
	cr_assert_eq(peer_in(x, &s), UR_DROP_EARLY);
	cr_assert_eq(x->e->buf[0], 0);
	peer_free(x);
}

/* EXT-RESP-STRICT-01 */
Test(ext_responder, strict_queue_pair_shows_the_end_of_a_write_last)
{
	struct peer *x = PEER(.strict = true);
	struct ur_packet *w = peer_write(x, 0, 600), *v = peer_write(x, 1000, 8);
	uint32_t slots = x->qp->core->reorder.slots_free;

	peer_in(x, v);
	peer_in(x, &w[1]);
	cr_assert(peer_is_at(x, &w[1], 256));
	peer_in(x, &w[2]);
	cr_assert_eq(x->qp->core->reorder.slots_free, slots - 2);
	cr_assert_eq(x->e->buf[512], 0);
	cr_assert_eq(x->e->buf[599], 0);
	cr_assert_eq(x->e->buf[1000], 0);
	peer_in(x, &w[0]);
	cr_assert(peer_is_at(x, &w[2], 512) && peer_is_at(x, v, 1000));
	cr_assert_eq(x->qp->rsp.epsn.v, 104);
	cr_assert_eq(x->qp->core->reorder.slots_free, slots);
	peer_free(x);
}

/* EXT-RESP-STRICT-01 */
Test(ext_responder, strict_end_without_a_slot_is_dropped)
{
	struct peer *x = PEER(.strict = true, .reorder_slots = 1);
	struct ur_packet *w = peer_write(x, 0, 8);

	peer_write(x, 8, 8);
	peer_write(x, 16, 8);
	cr_assert_eq(peer_in(x, &w[2]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &w[1]), UR_DROP_NO_CONTEXT);
	peer_in(x, &w[0]);
	peer_in(x, &w[1]);
	cr_assert_eq(x->qp->rsp.epsn.v, 103);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(peer_is_at(x, &w[i], 8 * i));
	peer_free(x);
}

/* EXT-RESP-STRICT-01 */
Test(ext_responder, strict_end_whose_region_went_is_refused_in_its_turn)
{
	struct peer *x = PEER(.strict = true);
	struct ur_packet *w = peer_write(x, 0, 8), *v = peer_write(x, 8, 8);
	uint32_t key;

	cr_assert_eq(ur_mem_register(x->e->mem, END_PD, x->e->buf, 4096, (uintptr_t)x->e->buf,
				     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE, 77, &key),
		     0);
	v->reth.rkey = key;
	cr_assert_eq(peer_in(x, v), UR_DROP_NONE);
	ur_mem_invalidate(x->e->mem, key, END_PD, false);
	peer_drain(x);
	peer_in(x, w);
	peer_expect_nak(x, 101, 0x62);
	cr_assert_eq(x->e->buf[8], 0);
	cr_assert_eq(x->qp->core->reorder.slots_free, x->qp->core->reorder.slot_cnt);
	peer_free(x);
}

/* Whatever a peer writes into the headers, no byte outside the region changes. */
Test(ext_responder, hostile_headers_write_nothing_outside_the_region)
{
	static const uint8_t opcodes[] = {0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8,
					  0xc9, 0xca, 0xcb, 0xcc, 0xd3, 0xd4, 0xd6, 0xd7, 0xd8};
	static const uint32_t odd[] = {0,	   1,	       255,	   256,
				       4096,	   65536,      0x7fffffff, 0x80000000,
				       0x80000001, 0xfffffffe, 0xffffffff};
	static uint8_t payload[4096];
	uint32_t key, at = 1 << 16, len = 2000;

	memset(payload, 0xee, sizeof(payload));
	srand(7);
	for (unsigned round = 0; round < 200; round++) {
		struct peer *x = PEER();

		cr_assert_eq(ur_mem_register(x->e->mem, END_PD, x->e->buf + at, len, at,
					     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						     IBV_ACCESS_REMOTE_ATOMIC |
						     IBV_ACCESS_LOCAL_WRITE,
					     99, &key),
			     0);
		for (unsigned i = 0; i < 8; i++) {
			struct ibv_sge sge = {at + 100 * i, 150, key};

			ur_rq_post(&x->qp->rq,
				   &(struct ibv_recv_wr){.sg_list = &sge, .num_sge = 1});
		}
		for (unsigned i = 0; i < 100 && x->qp->state == IBV_QPS_RTS; i++) {
			uint8_t opcode = opcodes[(unsigned)rand() % sizeof(opcodes)];
			struct ur_packet p = {.op = ur_op_flags(opcode), .payload = payload};
			bool sane = rand() % 4;

			p.bth.opcode = opcode;
			p.bth.psn = ur_psn(x->qp->rsp.epsn.v + (unsigned)rand() % 12 - 1);
			if (rand() % 8 == 0)
				p.bth.psn = ur_psn((unsigned)rand());
			p.payload_len =
				(uint16_t)(p.op & UR_OP_PAYLOAD ? sane ? 256 : rand() % 4097 : 0);
			p.xth.ssn = (x->qp->rsp.msn.v + 1 + (unsigned)rand() % 3) & UR_PSN_MASK;
			p.xth.offset = p.op & UR_OP_FIRST ? 0 : (unsigned)rand() % 8;
			if (!sane)
				p.xth.offset = odd[(unsigned)rand() % 11] & UR_PSN_MASK;
			p.xth.flags = p.op & UR_OP_SEND ? 1 : (uint8_t)rand();
			p.xth.rwqen = sane ? x->qp->xrsp.rwqen + (unsigned)rand() % 3
					   : odd[(unsigned)rand() % 11] & UR_PSN_MASK;
			p.reth = (struct ur_reth){at + (unsigned)rand() % 2000, key,
						  p.xth.offset * 256 + p.payload_len};
			if (!sane)
				p.reth.length = odd[(unsigned)rand() % 11];
			if (rand() % 8 == 0)
				p.reth.va = (uint64_t)odd[(unsigned)rand() % 11] << (rand() % 33);
			p.atomiceth = (struct ur_atomiceth){p.reth.va & ~7ull, key, ~0ull, 0};
			p.imm = (unsigned)rand();
			p.ieth = rand() % 4 ? 0 : key;
			peer_in(x, &p);
			if (rand() % 3 == 0)
				peer_drain(x);
		}
		for (uint32_t i = 0; i < END_BUF_BYTES; i++)
			if (i < at || i >= at + len)
				cr_assert_eq(x->e->buf[i], 0, "round %u: byte %u", round, i);
		peer_free(x);
	}
}
