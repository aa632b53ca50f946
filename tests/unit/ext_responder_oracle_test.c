/* SPDX-License-Identifier: BSD-3-Clause */
#include "ext_peer.h"

/* ---- against an oracle that executes in order ---- */

#define ARENA	 6000u /* WRITEs and receives overlap in [0, ARENA) */
#define COUNTERS 8192u /* atomics */
#define MESSAGES 60u
#define RECVS	 64u

struct oracle {
	uint8_t mem[COUNTERS + 64];
	uint32_t recv[RECVS]; /* address of receive i; 1000 bytes in two segments */
	struct {
		uint64_t id;
		uint32_t len;
	} wc[RECVS];
	unsigned wc_cnt;
	uint64_t found[PEER_PACKETS]; /* by an atomic */
};

static void oracle_receive(struct oracle *o, uint32_t n, const struct ur_packet *p, uint32_t off)
{
	uint32_t to = o->recv[n];

	for (uint32_t i = 0; i < p->payload_len; i++, off++)
		o->mem[off < 300 ? to + off : (to + 2000 + off - 300) % ARENA] = p->payload[i];
}

static void script(struct peer *x, struct oracle *o)
{
	for (unsigned m = 0; m < MESSAGES; m++) {
		uint32_t off = (unsigned)rand() % 4000, len = (unsigned)rand() % 1000;
		unsigned from = x->cnt, kind = (unsigned)rand() % 8;

		if (kind == 0) {
			uint64_t v;
			uint32_t at = COUNTERS + 8 * ((unsigned)rand() % 4);

			memcpy(&v, o->mem + at, 8);
			o->found[x->cnt] = v;
			v += m + 1;
			memcpy(o->mem + at, &v, 8);
			peer_fetch_add(x, at, m + 1);
			continue;
		}
		if (kind < 5) {
			peer_data(x, false, off, len, kind == 1 ? IMM : PLAIN, m);
			for (unsigned i = from; i < x->cnt; i++)
				memcpy(o->mem + off + (i - from) * PEER_MTU, x->p[i].payload,
				       x->p[i].payload_len);
		} else {
			peer_data(x, true, 0, len, kind == 5 ? IMM : PLAIN, m);
			for (unsigned i = from; i < x->cnt; i++)
				oracle_receive(o, x->rwqen - 1, &x->p[i], (i - from) * PEER_MTU);
		}
		if (kind == 1 || kind >= 5) {
			o->wc[o->wc_cnt].id = x->rwqen - 1;
			o->wc[o->wc_cnt++].len = len;
		}
	}
}

static void post_receives(struct peer *x, struct oracle *o, struct ur_wq *rq)
{
	for (unsigned i = 0; i < RECVS; i++) {
		uint32_t to = o->recv[i] = (unsigned)rand() % 3000;
		uintptr_t buf = (uintptr_t)x->e->buf;
		struct ibv_sge sge[2] = {{buf + to, 300, x->e->key},
					 {buf + to + 2000, 700, x->e->key}};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = sge, .num_sge = 2};

		cr_assert_eq(ur_rq_post(rq, &wr), 0);
	}
}

/* Takes what the responder sends; values of atomics must be those of the oracle. */
static void check_answers(struct peer *x, const struct oracle *o)
{
	const struct ur_ooo *c = x->qp->xrsp.ooo;
	const struct ur_packet *p;

	while ((p = peer_out(x))) {
		if (p->bth.opcode == UR_EXT_ATOMIC_ACKNOWLEDGE)
			cr_assert_eq(p->atomic_ack,
				     o->found[(p->bth.psn.v - x->first) & UR_PSN_MASK]);
		if (p->bth.opcode != UR_EXT_ACKNOWLEDGE)
			continue;
		for (uint32_t i = 0; i < p->payload_len * 8u; i++)
			cr_assert_eq(
				ur_sack_bit(p->payload, i),
				i + 1 < c->span &&
					ur_ooo_is_deferred(c, ur_psn_add(p->xaeth.epsn, i + 1)));
	}
}

/* A requester has no more atomics on their way than was agreed. */
static bool may_be_under_way(const struct peer *x, unsigned done, unsigned which)
{
	unsigned atomics = 0;

	for (unsigned i = done; i <= which; i++)
		atomics += !!(x->p[i].op & UR_OP_ATOMIC);
	return atomics <= 4;
}

static void play(unsigned seed, bool shared, bool strict)
{
	struct oracle *o = calloc(1, sizeof(*o));
	struct ur_srq srq;
	struct peer *x;

	srand(seed);
	srq_new(&srq, RECVS);
	x = PEER(.recv_wr = RECVS, .cqe = 128, .dest_rd_atomic = 4, .srq = shared ? &srq : NULL,
		 .strict = strict, .rq_psn = seed & 1 ? UR_PSN_MASK - 50 : 7);
	post_receives(x, o, shared ? &srq.rq : &x->qp->rq);
	script(x, o);
	for (unsigned step = 0; x->qp->rsp.epsn.v != x->psn; step++) {
		unsigned done = (x->qp->rsp.epsn.v - x->first) & UR_PSN_MASK;
		unsigned ahead = (unsigned)rand() % 40, back = (unsigned)rand() % 8;

		cr_assert_lt(step, 100000, "seed %u: stuck at packet %u", seed, done);
		if (rand() % 10 == 0) /* an old one once more */
			peer_in(x, &x->p[done > back ? done - back : 0]);
		else if (done + ahead < x->cnt && may_be_under_way(x, done, done + ahead))
			peer_in(x, &x->p[done + ahead]);
		cr_assert_eq(x->qp->state, IBV_QPS_RTS, "seed %u", seed);
		check_answers(x, o);
	}
	cr_assert_eq(memcmp(x->e->buf, o->mem, sizeof(o->mem)), 0, "seed %u: memory", seed);
	for (unsigned i = 0; i < o->wc_cnt; i++)
		cr_assert_eq(end_expect_wc(x->e, o->wc[i].id, IBV_WC_SUCCESS).byte_len,
			     o->wc[i].len, "seed %u: completion %u", seed, i);
	end_expect_no_wc(x->e);
	cr_assert_eq(peer_contexts(x), 0);
	cr_assert_eq(x->qp->rsp.msn.v, MESSAGES);
	cr_assert_eq(x->qp->core->reorder.slots_free, x->qp->core->reorder.slot_cnt);
	peer_free(x);
	free(srq.rq.ring);
	free(o);
}

/* EXT-RESP-TURN-01, EXT-RESP-PLACE-01 */
Test(ext_responder, any_script_in_any_order_ends_as_in_order, .timeout = 120)
{
	for (unsigned seed = 1; seed <= 150; seed++)
		play(seed, seed % 3 == 0, seed % 5 == 0);
}
