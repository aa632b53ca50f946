/* SPDX-License-Identifier: BSD-3-Clause */
#include "rxe_peer.h"

#include <stdlib.h>

#include "wire/icrc.h"

#define FRAME_MAX 4400

static uint32_t mtu_of(const struct rxe_peer *x)
{
	return 1u << x->mtu_shift;
}

/* a - b of two PSNs. */
static int32_t diff(uint32_t a, uint32_t b)
{
	return ur_psn_diff(ur_psn(a), ur_psn(b));
}

static uint32_t next_psn(uint32_t psn, uint32_t n)
{
	return (psn + n) & UR_PSN_MASK;
}

/* ---- answers ---- */

/* `original`: the original value for the answer to an atomic. */
static void answer(struct rxe_peer *x, uint8_t opcode, uint32_t psn, uint8_t syndrome,
		   uint64_t original, const uint8_t *payload, uint32_t len)
{
	static uint8_t frame[FRAME_MAX];
	const struct ur_opcode_info *info = &ur_opcodes[opcode];
	unsigned pad = -len & 3, bytes = UR_BTH_BYTES + info->ext_bytes + len + pad + UR_ICRC_BYTES;
	unsigned l3 = x->path.l3_off, n = ur_path_write(&x->path, frame, bytes);
	struct ur_cursor c = {.p = frame + n, .end = frame + sizeof(frame)};
	struct ur_bth bth = {
		.opcode = opcode,
		.pad = (uint8_t)pad,
		.pkey = 0xffff,
		.dqpn = x->dqpn,
		.psn = ur_psn(psn),
	};
	struct ur_aeth aeth = {.syndrome = syndrome, .msn = x->msn & 0xffffff};

	ur_put_bth(&c, &bth);
	if (info->flags & UR_OP_AETH)
		ur_put_aeth(&c, &aeth);
	if (info->flags & UR_OP_ATOMICACKETH)
		ur_put64(&c, original);
	ur_put_bytes(&c, payload, len);
	ur_put_zero(&c, pad);
	ur_icrc_append(frame + l3, (size_t)(c.p - frame) - l3, x->path.v6);
	sim_send(x->ep, frame, (uint32_t)(c.p - frame) + UR_ICRC_BYTES);
}

static void acknowledge(struct rxe_peer *x, uint32_t psn, uint8_t syndrome)
{
	answer(x, UR_RC_ACKNOWLEDGE, psn, syndrome, 0, NULL, 0);
}

static void atomic_acknowledge(struct rxe_peer *x, const struct rxe_res *res)
{
	answer(x, UR_RC_ATOMIC_ACKNOWLEDGE, res->first, UR_CREDITS_NONE, res->original, NULL, 0);
}

/* ---- memory ---- */

static uint8_t *at(struct rxe_peer *x, uint64_t va, uint32_t rkey, uint32_t len)
{
	uint64_t off = va - (uintptr_t)x->mr.p;

	if (!len)
		return x->mr.p;
	SIM_CHECK(x->ep->sim, rkey == x->mr.key && off <= x->mr.len && len <= x->mr.len - off,
		  "a request for other memory");
	return x->mr.p + off;
}

/* ---- remembered READs and atomics ---- */

static struct rxe_res *remember(struct rxe_peer *x, uint32_t psn, uint32_t psns)
{
	struct rxe_res *res = &x->res[x->res_head];

	x->res_head = (x->res_head + 1) % x->attr.dest_rd_atomic;
	*res = (struct rxe_res){
		.used = true, .first = psn, .cur = psn, .last = next_psn(psn, psns - 1)};
	return res;
}

static struct rxe_res *find(struct rxe_peer *x, uint32_t psn)
{
	for (unsigned i = 0; i < x->attr.dest_rd_atomic; i++) {
		struct rxe_res *res = &x->res[i];

		if (res->used && diff(psn, res->first) >= 0 && diff(psn, res->last) <= 0)
			return res;
	}
	return NULL;
}

/* Sends the next packet of the READ's response. */
static void reply(struct rxe_peer *x)
{
	struct rxe_res *res = x->replying;
	uint32_t mtu = mtu_of(x), len = res->resid < mtu ? res->resid : mtu;
	uint8_t opcode;

	if (!res->begun)
		opcode = res->resid <= mtu ? UR_RC_READ_RESPONSE_ONLY : UR_RC_READ_RESPONSE_FIRST;
	else
		opcode = res->resid <= mtu ? UR_RC_READ_RESPONSE_LAST : UR_RC_READ_RESPONSE_MIDDLE;
	res->begun = true;
	answer(x, opcode, res->cur, UR_CREDITS_NONE, 0, x->mr.p + (res->va - (uintptr_t)x->mr.p),
	       len);
	res->va += len;
	res->resid -= len;
	res->cur = next_psn(res->cur, 1);
	if (res->resid)
		return;
	x->replying = NULL;
	if (!res->replay)
		x->opcode = -1;
	if (diff(res->cur, x->psn) >= 0)
		x->psn = res->cur;
}

static void read_again(struct rxe_peer *x, const struct ur_packet *p)
{
	struct rxe_res *res = find(x, p->bth.psn.v);
	uint64_t va = p->reth.va;
	uint32_t len = p->reth.length;

	if (!res || res->atomic || va < res->va_org || len > res->length ||
	    va + len > res->va_org + res->length) {
		x->ignored_reads++;
		return;
	}
	res->cur = p->bth.psn.v;
	res->begun = res->cur != res->first;
	res->replay = true;
	res->va_org = res->va = va;
	res->resid = len;
	x->replying = res;
}

static void duplicate(struct rxe_peer *x, const struct ur_packet *p)
{
	const struct rxe_res *res;

	x->duplicates++;
	if (p->op & UR_OP_READ_REQ) {
		read_again(x, p);
	} else if (p->op & UR_OP_ATOMIC) {
		res = find(x, p->bth.psn.v);
		if (res && res->atomic)
			atomic_acknowledge(x, res);
	} else {
		acknowledge(x, next_psn(x->ack_psn, UR_PSN_MASK), UR_CREDITS_NONE);
	}
}

/* ---- requests in order ---- */

static void executed(struct rxe_peer *x, const struct ur_packet *p)
{
	x->psn = x->ack_psn = next_psn(p->bth.psn.v, 1);
	x->opcode = p->bth.opcode;
}

static void read_request(struct rxe_peer *x, const struct ur_packet *p)
{
	uint32_t len = p->reth.length, psns = (len + mtu_of(x) - 1) >> x->mtu_shift;
	struct rxe_res *res = remember(x, p->bth.psn.v, psns ? psns : 1);

	at(x, p->reth.va, p->reth.rkey, len);
	x->msn++;
	res->va_org = res->va = p->reth.va;
	res->length = res->resid = len;
	x->replying = res;
}

static void atomic(struct rxe_peer *x, const struct ur_packet *p)
{
	struct rxe_res *res = remember(x, p->bth.psn.v, 1);
	uint8_t *word = at(x, p->atomiceth.va, p->atomiceth.rkey, 8);
	uint64_t value;

	memcpy(&value, word, 8);
	res->atomic = true;
	res->original = value;
	if (p->bth.opcode == UR_RC_FETCH_ADD)
		value += p->atomiceth.swap_add;
	else if (value == p->atomiceth.compare)
		value = p->atomiceth.swap_add;
	memcpy(word, &value, 8);
	x->msn++;
	executed(x, p);
	atomic_acknowledge(x, res);
}

/* True if the opcode may follow that of the previous packet. */
static bool fits(const struct rxe_peer *x, const struct ur_packet *p)
{
	uint32_t before = x->opcode < 0 ? UR_OP_LAST : ur_op_flags((uint8_t)x->opcode);
	const uint32_t kinds = UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_REQ | UR_OP_ATOMIC;

	if (before & UR_OP_LAST)
		return p->op & UR_OP_FIRST;
	return !(p->op & UR_OP_FIRST) && (p->op & kinds) == (before & kinds);
}

static void write_request(struct rxe_peer *x, const struct ur_packet *p)
{
	if (p->op & UR_OP_FIRST) {
		at(x, p->reth.va, p->reth.rkey, p->reth.length);
		x->va = p->reth.va;
		x->resid = p->reth.length;
	}
	SIM_CHECK(x->ep->sim,
		  p->op & UR_OP_LAST ? p->payload_len == x->resid
				     : p->payload_len == mtu_of(x) && x->resid > mtu_of(x),
		  "a WRITE of another length than its first packet said");
	memcpy(x->mr.p + (x->va - (uintptr_t)x->mr.p), p->payload, p->payload_len);
	x->va += p->payload_len;
	x->resid -= p->payload_len;
}

/* Executes a SEND. Returns false if no receive is posted. */
static bool send_request(struct rxe_peer *x, const struct ur_packet *p)
{
	struct rxe_recv *r = &x->recv[x->recv_head % 1024];

	if (x->recv_head == x->recv_tail) {
		acknowledge(x, p->bth.psn.v, UR_SYNDROME_RNR_NAK | x->attr.min_rnr_timer);
		return false;
	}
	if (p->op & UR_OP_FIRST)
		x->placed = 0;
	SIM_CHECK(x->ep->sim, x->placed + p->payload_len <= r->len, "a SEND that is too long");
	memcpy(r->p + x->placed, p->payload, p->payload_len);
	x->placed += p->payload_len;
	return true;
}

static void in_order(struct rxe_peer *x, const struct ur_packet *p)
{
	x->nak_sent = false;
	SIM_CHECK(x->ep->sim, fits(x, p), "opcode %#x after %#x", p->bth.opcode,
		  (unsigned)x->opcode);
	if (p->op & UR_OP_READ_REQ) {
		read_request(x, p);
		return;
	}
	if (p->op & UR_OP_ATOMIC) {
		atomic(x, p);
		return;
	}
	if (p->op & UR_OP_WRITE)
		write_request(x, p);
	else if (!send_request(x, p))
		return;
	x->msn += !!(p->op & UR_OP_LAST);
	executed(x, p);
	if ((p->op & UR_OP_SEND) && (p->op & UR_OP_LAST))
		x->received(x->arg, x->recv[x->recv_head++ % 1024], x->placed);
	if (p->bth.ackreq)
		acknowledge(x, p->bth.psn.v, UR_CREDITS_NONE);
}

static void request(struct rxe_peer *x, const struct ur_packet *p)
{
	int32_t ahead = diff(p->bth.psn.v, x->psn);

	if (ahead < 0) {
		duplicate(x, p);
	} else if (ahead == 0) {
		in_order(x, p);
	} else {
		x->out_of_sequence++;
		if (x->nak_sent)
			return;
		x->nak_sent = true;
		x->sequence_naks++;
		acknowledge(x, x->psn, UR_SYNDROME_NAK | UR_NAK_PSN_SEQ);
	}
}

/* ---- one packet after the other ---- */

static void serve(struct sim *s, void *arg);

static void serve_later(struct rxe_peer *x)
{
	struct sim *s = x->ep->sim;
	uint64_t ns = x->attr.service_ns;

	if (sim_chance(&s->rng, x->attr.stall))
		ns += sim_rand(&s->rng) % x->attr.stall_ns;
	x->serving = true;
	sim_call_at(s, s->now_ns + ns, serve, x);
}

static void serve(struct sim *s, void *arg)
{
	struct rxe_peer *x = arg;
	struct ur_packet p;

	(void)s;
	if (x->replying) {
		reply(x);
	} else {
		unsigned i = x->q_head++ % RXE_QUEUE_MAX;

		SIM_CHECK(s,
			  ur_packet_decode(x->queue[i].frame, x->queue[i].len, &p) == UR_DROP_NONE,
			  "a frame that cannot be read");
		request(x, &p);
		free(x->queue[i].frame);
	}
	x->serving = false;
	if (x->replying || x->q_head != x->q_tail)
		serve_later(x);
}

static void input(struct sim_ep *ep, const struct ur_packet *p, const uint8_t *frame, uint32_t len)
{
	struct rxe_peer *x = ep->foreign_arg;
	unsigned i = x->q_tail % RXE_QUEUE_MAX;

	if (p->bth.dqpn.v != x->attr.qpn.v || !(p->op & UR_OP_REQUEST) ||
	    x->q_tail - x->q_head == RXE_QUEUE_MAX)
		return;
	x->queue[i].frame = malloc(len);
	if (!x->queue[i].frame)
		abort();
	memcpy(x->queue[i].frame, frame, len);
	x->queue[i].len = len;
	x->q_tail++;
	if (!x->serving)
		serve_later(x);
}

/* ---- life ---- */

void rxe_peer_init(struct rxe_peer *x, struct sim_ep *ep, const struct rxe_peer_attr *attr,
		   size_t bytes)
{
	*x = (struct rxe_peer){.attr = *attr, .ep = ep, .opcode = -1};
	x->addr = (struct sim_qp){.ep = ep, .qpn = attr->qpn};
	x->addr.attr.psn = attr->psn;
	sim_mr_init(&x->mr, ep, bytes, SIM_ACCESS_ALL);
	ep->intercept = input;
	ep->foreign_arg = x;
}

void rxe_peer_connect(struct rxe_peer *x, struct sim_qp *qp)
{
	struct ur_path_attr path;

	x->dqpn = qp->qpn;
	x->psn = x->ack_psn = qp->attr.psn;
	x->mtu_shift = (unsigned)qp->attr.mtu + 7;
	path = sim_path_attr(&x->addr, qp->ep, qp->qpn);
	ur_path_init(&x->path, &path);
	sim_qp_to_init(qp);
	sim_qp_to_rtr(qp, &x->addr);
	sim_qp_to_rts(qp);
}

void rxe_peer_post_recv(struct rxe_peer *x, uint8_t *p, uint32_t len)
{
	SIM_CHECK(x->ep->sim, x->recv_tail - x->recv_head < 1024, "too many receives");
	x->recv[x->recv_tail++ % 1024] = (struct rxe_recv){p, len};
}

void rxe_peer_free(struct rxe_peer *x)
{
	while (x->q_head != x->q_tail)
		free(x->queue[x->q_head++ % RXE_QUEUE_MAX].frame);
	x->ep->intercept = NULL;
	sim_mr_free(&x->mr);
}
