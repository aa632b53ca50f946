/* SPDX-License-Identifier: BSD-3-Clause */
#include "rxe_requester.h"

#include "wire/icrc.h"

#define FRAME_MAX   4400
#define WINDOW	    128
#define UNASKED_MAX 64
#define FOR_EVER    7	/* retries */
#define PACKET_NS   500 /* time between two packets */

static uint32_t mtu_of(const struct rxe_requester *x)
{
	return 1u << x->mtu_shift;
}

static uint32_t psns_of(const struct rxe_requester *x, uint32_t bytes)
{
	return bytes ? (bytes + mtu_of(x) - 1) >> x->mtu_shift : 1;
}

static struct ur_psn add(struct ur_psn psn, int32_t n)
{
	return ur_psn_add(psn, (uint32_t)n & UR_PSN_MASK);
}

static struct rxe_wqe *wqe_at(struct rxe_requester *x, unsigned i)
{
	return &x->wqe[i % RXE_WQES];
}

/* ---- sending: packet by packet, as far as the window goes ---- */

static void send_packet(struct rxe_requester *x, uint8_t opcode, bool ackreq,
			const struct ur_reth *reth, const uint8_t *payload, uint32_t len)
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
		.ackreq = ackreq,
		.psn = x->psn,
	};

	ur_put_bth(&c, &bth);
	if (info->flags & UR_OP_RETH)
		ur_put_reth(&c, reth);
	ur_put_bytes(&c, payload, len);
	ur_put_zero(&c, pad);
	ur_icrc_append(frame + l3, (size_t)(c.p - frame) - l3, x->path.v6);
	sim_send(x->ep, frame, (uint32_t)(c.p - frame) + UR_ICRC_BYTES);
}

static void send_read(struct rxe_requester *x, struct rxe_wqe *w)
{
	struct ur_reth reth = {
		.va = w->va + w->done, .rkey = x->rkey, .length = w->length - w->done};
	uint32_t psns = psns_of(x, reth.length);

	/* From now on the READ consists only of the part that is requested again. */
	w->first = x->psn;
	w->last = add(x->psn, (int32_t)psns - 1);
	send_packet(x, UR_RC_READ_REQUEST, true, &reth, NULL, 0);
	x->psn = add(w->last, 1);
	w->state = RXE_PENDING;
	x->cur++;
}

static void send_write(struct rxe_requester *x, struct rxe_wqe *w)
{
	static const uint8_t opcode[2][2] = {
		{UR_RC_WRITE_MIDDLE, UR_RC_WRITE_LAST},
		{UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY},
	};
	uint32_t left = w->length - w->done, len = left < mtu_of(x) ? left : mtu_of(x);
	struct ur_reth reth = {.va = w->va, .rkey = x->rkey, .length = left};
	bool nothing_left = w->length && !left; /* counts as a separate message */
	bool first = !w->done || nothing_left, last = len == left;
	bool ask = last || x->unasked++ > UNASKED_MAX;

	if (nothing_left) {
		w->first = w->last = x->psn;
	} else if (first) {
		w->first = x->psn;
		w->last = add(x->psn, (int32_t)psns_of(x, w->length) - 1);
	}
	if (ask)
		x->unasked = 0;
	send_packet(x, opcode[first][last], ask, &reth, w->local + w->done, len);
	w->state = last ? RXE_PENDING : RXE_SENDING;
	w->done += len;
	x->psn = add(x->psn, 1);
	x->cur += last;
}

static void arm(struct rxe_requester *x);
static void pump(struct sim *s, void *arg);

static void wake(struct rxe_requester *x)
{
	if (x->sending || x->failed)
		return;
	x->sending = true;
	sim_call_at(x->ep->sim, x->ep->sim->now_ns + PACKET_NS, pump, x);
}

static void pump(struct sim *s, void *arg)
{
	struct rxe_requester *x = arg;
	struct rxe_wqe *w = wqe_at(x, x->cur);

	(void)s;
	x->sending = false;
	if (x->failed || x->cur == x->tail || ur_psn_diff(x->psn, x->expected) > WINDOW)
		return;
	if (w->read)
		send_read(x, w);
	else
		send_write(x, w);
	if (x->deadline_ns == UR_NEVER)
		arm(x);
	wake(x);
}

/* ---- going back ---- */

static uint32_t bytes_before(const struct rxe_requester *x, const struct rxe_wqe *w,
			     struct ur_psn psn)
{
	uint32_t bytes = (uint32_t)ur_psn_diff(psn, w->first) << x->mtu_shift;

	return bytes < w->length ? bytes : w->length;
}

/* Goes back: everything from the next expected response on is sent again. */
static void go_back(struct rxe_requester *x)
{
	x->psn = x->expected;
	x->cur = x->head;
	for (unsigned i = x->head; i != x->tail && wqe_at(x, i)->state != RXE_POSTED; i++) {
		struct rxe_wqe *w = wqe_at(x, i);

		if (i != x->head)
			w->done = 0;
		else if (!w->read)
			w->done = bytes_before(x, w, x->expected);
		w->state = RXE_POSTED;
	}
	x->retried++;
	wake(x);
}

static void fail(struct rxe_requester *x, const char *why)
{
	x->failed = true;
	x->why = why;
}

static void retry(struct rxe_requester *x, bool timeout)
{
	if (x->head == x->tail || wqe_at(x, x->head)->state == RXE_POSTED ||
	    (x->started_retry && !timeout))
		return;
	if (!x->retries) {
		fail(x, "retries exceeded");
		return;
	}
	x->retries -= x->retries != FOR_EVER;
	if (ur_psn_lt(x->expected, x->psn)) {
		x->started_retry = true;
		go_back(x);
	}
}

static void on_timer(struct sim *s, void *arg)
{
	struct rxe_requester *x = arg;

	if (x->failed || s->now_ns < x->deadline_ns)
		return;
	x->deadline_ns = UR_NEVER;
	if (x->head == x->tail)
		return;
	x->timeouts++;
	retry(x, true);
	if (ur_psn_lt(x->expected, x->psn))
		arm(x);
}

static void arm(struct rxe_requester *x)
{
	x->deadline_ns = x->ep->sim->now_ns + x->timeout_ns;
	sim_call_at(x->ep->sim, x->deadline_ns, on_timer, x);
}

/* ---- responses ---- */

static void refill(struct rxe_requester *x)
{
	x->retries = x->retry_cnt;
	x->started_retry = false;
}

/* A retransmission in progress continues. */
static void complete(struct rxe_requester *x)
{
	x->completed(x, x->head++ % RXE_WQES);
}

static void advance(struct rxe_requester *x, struct ur_psn psn, bool ends)
{
	x->in_read = !ends;
	if (ur_psn_le(x->expected, psn))
		x->expected = add(psn, 1);
}

/* Handles the expected response, of the READ at the head. */
static void read_response(struct rxe_requester *x, struct rxe_wqe *w, const struct ur_packet *p)
{
	refill(x);
	if (p->payload_len > w->length - w->done) {
		fail(x, "more data than asked for");
		return;
	}
	memcpy(w->local + w->done, p->payload, p->payload_len);
	w->done += p->payload_len;
	advance(x, p->bth.psn, p->op & UR_OP_LAST);
	if (w->done == w->length && (p->op & UR_OP_LAST))
		complete(x);
}

static bool continues(const struct rxe_requester *x, const struct rxe_wqe *w,
		      const struct ur_packet *p)
{
	bool again = ur_psn_eq(p->bth.psn, w->first) &&
		     (p->bth.opcode == UR_RC_READ_RESPONSE_FIRST ||
		      (p->bth.opcode == UR_RC_READ_RESPONSE_ONLY && ur_psn_eq(w->first, w->last)));

	if (!x->in_read)
		return p->op & UR_OP_FIRST;
	return again || p->bth.opcode == UR_RC_READ_RESPONSE_MIDDLE ||
	       p->bth.opcode == UR_RC_READ_RESPONSE_LAST;
}

/* Handles a packet that belongs to the oldest request. */
static void take(struct rxe_requester *x, struct rxe_wqe *w, const struct ur_packet *p)
{
	if (!continues(x, w, p)) {
		complete(x);
		fail(x, "a response out of sequence");
	} else if (p->op & UR_OP_READ_RESP) {
		if (w->read)
			read_response(x, w, p);
		else
			fail(x, "a READ response for a WRITE");
	} else if ((p->aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK) {
		refill(x);
		advance(x, p->bth.psn, true);
		if (w->state == RXE_PENDING && ur_psn_eq(w->last, p->bth.psn))
			complete(x);
	} else if (p->aeth.syndrome == (UR_SYNDROME_NAK | UR_NAK_PSN_SEQ)) {
		if (ur_psn_lt(x->expected, p->bth.psn))
			x->expected = p->bth.psn;
		retry(x, false);
	} else {
		fail(x, "a NAK that nothing calls for");
	}
}

static void respond(struct rxe_requester *x, const struct ur_packet *p)
{
	while (x->head != x->tail && !x->failed) {
		struct rxe_wqe *w = wqe_at(x, x->head);
		struct ur_psn psn = p->bth.psn;

		if (w->state == RXE_POSTED)
			return;
		if (ur_psn_lt(w->last, psn)) { /* beyond the oldest request */
			if (w->state != RXE_PENDING)
				return;
			if (w->read) {
				retry(x, false);
				return;
			}
			refill(x);
			advance(x, w->last, true);
			complete(x);
			continue;
		}
		if (ur_psn_lt(psn, x->expected)) {
			if (ur_psn_eq(psn, w->last))
				complete(x);
			return;
		}
		if (!w->read || ur_psn_eq(psn, x->expected))
			take(x, w, p);
		return;
	}
}

static void on_frame(struct sim_ep *ep, const struct ur_packet *p, const uint8_t *frame,
		     uint32_t len)
{
	struct rxe_requester *x = ep->foreign_arg;

	(void)frame, (void)len;
	if (x->failed)
		return;
	respond(x, p);
	if (x->head != x->tail && ur_psn_lt(x->expected, x->psn))
		arm(x);
	wake(x);
}

/* ---- set-up ---- */

void rxe_requester_init(struct rxe_requester *x, struct sim_ep *ep, uint32_t psn, uint8_t retry_cnt,
			uint64_t timeout_ns)
{
	*x = (struct rxe_requester){
		.ep = ep,
		.addr = {.ep = ep, .qpn = ur_qpn(0x11)},
		.psn = ur_psn(psn),
		.expected = ur_psn(psn),
		.retry_cnt = retry_cnt,
		.retries = retry_cnt,
		.timeout_ns = timeout_ns,
		.deadline_ns = UR_NEVER,
	};
	ep->intercept = on_frame;
	ep->foreign_arg = x;
}

void rxe_requester_connect(struct rxe_requester *x, struct sim_qp *qp, uint32_t rkey)
{
	struct ur_path_attr path;

	x->addr.attr = qp->attr;
	x->addr.attr.psn = x->psn.v;
	x->mtu_shift = 7 + (unsigned)qp->attr.mtu;
	x->rkey = rkey;
	x->dqpn = qp->qpn;
	path = sim_path_attr(&x->addr, qp->ep, qp->qpn);
	ur_path_init(&x->path, &path);
	sim_qp_to_init(qp);
	sim_qp_to_rtr(qp, &x->addr);
	sim_qp_to_rts(qp);
}

unsigned rxe_requester_post(struct rxe_requester *x, bool read, uint8_t *local, uint64_t va,
			    uint32_t length)
{
	SIM_CHECK(x->ep->sim, x->tail - x->head < RXE_WQES, "too many requests are posted");
	*wqe_at(x, x->tail) =
		(struct rxe_wqe){.read = read, .va = va, .length = length, .local = local};
	wake(x);
	return x->tail++ % RXE_WQES;
}
