/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds: both ends fill their memory and post receives, synchronize, post requests, wait for all
 * completions, synchronize, and compare all of their memory with the plan.
 */
#include "traffic.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct round {
	unsigned number;
	struct plan out, in;	     /* what we request of the peer, what it requests of us */
	unsigned sent, received;     /* messages of each that have completed */
	unsigned long long last_ms;  /* time of the last completion */
	unsigned arrived[MAX_DEPTH]; /* lossy: the message that each receive got */
};

static unsigned cut(const struct ibv_mr *mr, uint8_t *base, unsigned front, unsigned len,
		    unsigned pieces, struct ibv_sge *sge)
{
	unsigned n = 0, off, bytes;

	if (front > 0)
		sge[n++] = (struct ibv_sge){(uintptr_t)base, front, mr->lkey};
	for (unsigned i = 0; i < pieces; i++) {
		plan_piece(len, pieces, i, &off, &bytes);
		if (bytes > 0)
			sge[n++] =
				(struct ibv_sge){(uintptr_t)(base + front + off), bytes, mr->lkey};
	}
	return n;
}

bool post_receive(struct session *s, uint64_t id, size_t offset, unsigned bytes, unsigned pieces)
{
	unsigned front = s->spec.type == IBV_QPT_UD ? GRH_BYTES : 0;
	struct ibv_sge sge[10];
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge}, *bad;
	int rc;

	wr.num_sge = (int)cut(s->mr[REGION_RECEIVE], s->mem[REGION_RECEIVE] + offset, front, bytes,
			      pieces, sge);
	rc = s->srq != NULL ? V(post_srq_recv)(s->srq, &wr, &bad) : V(post_recv)(s->qp, &wr, &bad);
	return rc == 0 || failed(s, "post_recv: %s", strerror(rc));
}

static enum ibv_wr_opcode wr_opcode(enum op op)
{
	switch (op) {
	case OP_SEND:
	case OP_RELAY:
		return IBV_WR_SEND;
	case OP_SEND_IMM:
		return IBV_WR_SEND_WITH_IMM;
	case OP_WRITE:
		return IBV_WR_RDMA_WRITE;
	case OP_WRITE_IMM:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case OP_READ:
		return IBV_WR_RDMA_READ;
	case OP_CAS:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case OP_FADD:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	}
	return IBV_WR_SEND;
}

static enum ibv_wc_opcode wc_opcode(enum op op)
{
	switch (op) {
	case OP_WRITE:
	case OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case OP_READ:
		return IBV_WC_RDMA_READ;
	case OP_CAS:
		return IBV_WC_COMP_SWAP;
	case OP_FADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

bool post_message(struct session *s, const struct message *m, uint64_t id)
{
	struct ibv_sge sge[10];
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = sge, .opcode = wr_opcode(m->op)}, *bad;
	uint64_t raddr = s->remote.addr + m->remote;
	int rc;

	wr.num_sge = (int)cut(s->mr[REGION_LOCAL], s->mem[REGION_LOCAL] + m->local, 0, m->len,
			      m->local_pieces, sge);
	wr.send_flags = (m->signaled ? IBV_SEND_SIGNALED : 0u) |
			(m->solicited ? IBV_SEND_SOLICITED : 0u) |
			(m->fenced ? IBV_SEND_FENCE : 0u) | (m->in_line ? IBV_SEND_INLINE : 0u);
	if (m->op == OP_SEND_IMM || m->op == OP_WRITE_IMM)
		wr.imm_data = htobe32(m->imm);
	if (s->spec.type == IBV_QPT_UD) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->remote.qpn;
		wr.wr.ud.remote_qkey = s->qkey;
	} else if (op_is_atomic(m->op)) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = s->remote.rkey;
		wr.wr.atomic.compare_add = m->compare;
		wr.wr.atomic.swap = m->operand;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = s->remote.rkey;
	}
	rc = V(post_send)(s->qp, &wr, &bad);
	return rc == 0 ||
	       failed(s, "post_send of a %s of %u bytes: %s", op_word(m->op), m->len, strerror(rc));
}

/* The message that consumes receive `nr` of the plan. */
static const struct message *receive_nr(const struct plan *plan, unsigned nr)
{
	for (unsigned i = 0; i < plan->cnt; i++)
		if (op_takes_receive(plan->m[i].op) && nr-- == 0)
			return &plan->m[i];
	return NULL;
}

/* With losses any message may arrive in any receive, so all receives have the same size. */
static unsigned receive_bytes(const struct session *s, const struct message *m)
{
	return s->spec.lossy != 0 ? s->spec.size_max : m->len;
}

static bool post_receives(struct session *s, const struct round *r)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < r->in.cnt; i++) {
		const struct message *m = &r->in.m[i];

		if (op_takes_receive(m->op) &&
		    !post_receive(s, nr++, m->receive, receive_bytes(s, m), m->receive_pieces))
			return false;
	}
	return true;
}

/* Posts receives late, after the peer has sent for a while and has got RNR NAKs. */
static bool post_late(struct session *s, const struct round *r)
{
	unsigned long long end = now_ms() + (r->in.receives > 0 ? s->spec.late_ms : 0);

	while (now_ms() < end)
		if (device_progress(s->dev) == 0)
			usleep(100);
	return post_receives(s, r);
}

static bool begin(struct session *s, struct round *r)
{
	bool out_of_uroce = strcmp(OUR_NAME, "uroce") == 0;

	r->out.cnt = r->out.receives = r->in.cnt = r->in.receives = 0;
	r->out.bytes = r->in.bytes = 0;
	r->sent = r->received = 0;
	if (is_us(s->spec.from))
		plan_round(&s->spec, out_of_uroce, r->number, &r->out);
	if (is_peer(s->spec.from))
		plan_round(&s->spec, !out_of_uroce, r->number, &r->in);
	plan_fill(&s->spec, out_of_uroce, r->number, REGION_LOCAL, s->mem[REGION_LOCAL],
		  s->region_bytes);
	plan_fill(&s->spec, !out_of_uroce, r->number, REGION_REMOTE, s->mem[REGION_REMOTE],
		  s->region_bytes);
	plan_fill(&s->spec, !out_of_uroce, r->number, REGION_RECEIVE, s->mem[REGION_RECEIVE],
		  s->region_bytes);
	if (s->spec.late_ms == 0 && !post_receives(s, r))
		return false;
	if (V(req_notify_cq)(s->recv_cq, s->spec.solicited != 0) != 0)
		return failed(s, "req_notify_cq");
	return meet(s, "round") && (s->spec.late_ms == 0 || post_late(s, r));
}

static bool check_sent(struct session *s, struct round *r, const struct ibv_wc *wc)
{
	const struct message *m;

	while (r->sent < r->out.cnt && !r->out.m[r->sent].signaled)
		r->sent++;
	if (r->sent == r->out.cnt)
		return failed(s, "a completion too many, of request %llu",
			      (unsigned long long)wc->wr_id);
	m = &r->out.m[r->sent];
	if (wc->status != IBV_WC_SUCCESS)
		return failed(s, "round %u: request %llu, a %s of %u bytes: %s", r->number,
			      (unsigned long long)wc->wr_id,
			      op_word(r->out.m[wc->wr_id % MAX_DEPTH].op),
			      r->out.m[wc->wr_id % MAX_DEPTH].len, V(wc_status_str)(wc->status));
	if (wc->wr_id != r->sent || wc->opcode != wc_opcode(m->op) || wc->qp_num != s->qp->qp_num)
		return failed(
			s, "round %u: completion of request %llu, opcode %d, where %u, %d is due",
			r->number, (unsigned long long)wc->wr_id, (int)wc->opcode, r->sent,
			(int)wc_opcode(m->op));
	if ((m->op == OP_READ || op_is_atomic(m->op)) && wc->byte_len != m->len)
		return failed(s, "round %u: a %s of %u bytes says it has %u", r->number,
			      op_word(m->op), m->len, wc->byte_len);
	r->sent++;
	return true;
}

/*
 * Finds a message that may be lost by its immediate. Datagrams, and messages of one packet on an
 * unreliable connection, may also arrive late or twice.
 */
static const struct message *lossy_message(struct round *r, const struct ibv_wc *wc)
{
	for (unsigned i = 0; i < r->in.cnt; i++)
		if (r->in.m[i].imm == be32toh(wc->imm_data)) {
			r->arrived[r->received] = i;
			return &r->in.m[i];
		}
	return NULL;
}

static bool check_received(struct session *s, struct round *r, const struct ibv_wc *wc)
{
	unsigned front = s->spec.type == IBV_QPT_UD ? GRH_BYTES : 0;
	const struct message *m =
		s->spec.lossy != 0 ? lossy_message(r, wc) : receive_nr(&r->in, r->received);
	bool imm, write;

	if (wc->status != IBV_WC_SUCCESS)
		return failed(s, "round %u: receive %llu: %s", r->number,
			      (unsigned long long)wc->wr_id, V(wc_status_str)(wc->status));
	if (m == NULL)
		return failed(s, "round %u: a receive completed for which nothing was sent",
			      r->number);
	imm = m->op == OP_SEND_IMM || m->op == OP_WRITE_IMM;
	write = m->op == OP_WRITE_IMM;
	if (wc->wr_id != r->received || wc->qp_num != s->qp->qp_num ||
	    wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return failed(s, "round %u: receive %llu completed as %d, %u is due", r->number,
			      (unsigned long long)wc->wr_id, (int)wc->opcode, r->received);
	if (wc->byte_len != m->len + (write ? 0 : front))
		return failed(s, "round %u: receive %u has %u bytes of %u", r->number, r->received,
			      wc->byte_len, m->len);
	if (((wc->wc_flags & IBV_WC_WITH_IMM) != 0) != imm ||
	    (imm && be32toh(wc->imm_data) != m->imm))
		return failed(s, "round %u: receive %u has immediate %08x, not %08x", r->number,
			      r->received, be32toh(wc->imm_data), m->imm);
	if (front != 0 && ((wc->wc_flags & IBV_WC_GRH) == 0 || wc->src_qp != s->remote.qpn))
		return failed(s, "round %u: receive %u is of queue pair %06x", r->number,
			      r->received, wc->src_qp);
	r->received++;
	return true;
}

static bool drain(struct session *s, struct round *r, struct ibv_cq *cq, bool *any)
{
	struct ibv_wc wc[16];
	int n;

	if (!poll_cq(s, cq, wc, 16, &n))
		return false;
	for (int i = 0; i < n; i++)
		if (!(cq == s->send_cq ? check_sent(s, r, &wc[i]) : check_received(s, r, &wc[i])))
			return false;
	if (n > 0) {
		*any = true;
		r->last_ms = now_ms();
	}
	return true;
}

static bool all_here(const struct session *s, const struct round *r)
{
	if (r->sent < r->out.cnt)
		return false;
	if (s->spec.lossy != 0) /* whatever is missing by now is lost */
		return r->received == r->in.receives || now_ms() - r->last_ms > 700;
	return r->received == r->in.receives;
}

static bool see_completions(struct session *s, struct round *r)
{
	const char *reason;
	bool any;

	r->last_ms = now_ms();
	while (!all_here(s, r)) {
		any = false;
		if (!drain(s, r, s->send_cq, &any) || !drain(s, r, s->recv_cq, &any))
			return false;
		if (any || device_progress(s->dev) != 0)
			continue;
		if ((reason = link_peer_failure(s->link)) != NULL)
			return failed(s, PEER_NAME ": %s", reason);
		if (now_ms() - r->last_ms > s->spec.stall * 1000ull)
			return failed(s,
				      "round %u: no completion for %u s: %u of %u requests, %u of "
				      "%u receives",
				      r->number, s->spec.stall, r->sent, r->out.cnt, r->received,
				      r->in.receives);
		usleep(20);
	}
	return true;
}

/* A CQ armed for solicited events raises an event if and only if a solicited message arrived. */
static bool check_event(struct session *s, const struct round *r)
{
	struct pollfd pfd = {.fd = s->channel->fd, .events = POLLIN};
	bool due = s->spec.solicited == 0 ? r->in.receives > 0
					  : r->in.receives > 0 && r->number % 2 == 1;
	bool came = poll(&pfd, 1, due && s->spec.lossy == 0 ? 5000 : 0) == 1;
	struct ibv_cq *cq;
	void *context;

	if (came) {
		if (V(get_cq_event)(s->channel, &cq, &context) != 0 || cq != s->recv_cq)
			return failed(s, "get_cq_event");
		V(ack_cq_events)(cq, 1);
	}
	return came == due || s->spec.lossy != 0 ||
	       failed(s, "round %u: %s completion event", r->number, due ? "no" : "an unasked");
}

static bool compare(struct session *s, const struct round *r, enum region region, const char *what)
{
	const uint8_t *mem = s->mem[region], *image = s->image[region];
	size_t i = 0;

	if (memcmp(mem, image, s->region_bytes) == 0)
		return true;
	while (mem[i] == image[i])
		i++;
	return failed(s, "round %u: byte %zu of %s is %02x, not %02x", r->number, i, what, mem[i],
		      image[i]);
}

/* The images of the three regions of a direction, before and after its messages. */
static void make_images(struct session *s, bool from_uroce, const struct round *r,
			const struct plan *plan)
{
	for (unsigned i = 0; i < REGIONS; i++)
		plan_fill(&s->spec, from_uroce, r->number, (enum region)i, s->image[i],
			  s->region_bytes);
	plan_apply(&s->spec, plan, s->image);
}

/* Checks source and destination of a datagram's GRH. The rest of its 40 bytes is not specified. */
static bool check_grh(struct session *s, const struct round *r)
{
	union ibv_gid own;

	device_gid(s->dev, s->spec.gid, &own);
	for (unsigned i = 0; i < r->in.cnt && s->spec.lossy == 0; i++) {
		uint8_t *grh = s->mem[REGION_RECEIVE] + r->in.m[i].receive;
		bool v4 = strcmp(s->spec.gid, "4") == 0;
		const uint8_t *src = v4 ? grh + 32 : grh + 8, *dst = v4 ? grh + 36 : grh + 24;
		unsigned skip = v4 ? 12 : 0;

		if (memcmp(src, s->remote.gid.raw + skip, 16 - skip) != 0 ||
		    memcmp(dst, own.raw + skip, 16 - skip) != 0)
			return failed(s, "round %u: datagram %u has the wrong addresses", r->number,
				      i);
		memcpy(s->image[REGION_RECEIVE] + r->in.m[i].receive, grh, GRH_BYTES);
	}
	return true;
}

/* With losses, the messages that arrived must be complete. */
static bool verify_lossy(struct session *s, const struct round *r, bool from_uroce)
{
	static struct plan one;
	struct message *m = &one.m[0];
	unsigned least;
	size_t at;

	for (unsigned i = 0; i < REGIONS; i++)
		plan_fill(&s->spec, from_uroce, r->number, (enum region)i, s->image[i],
			  s->region_bytes);
	one.cnt = 1;
	for (unsigned k = 0; k < r->received; k++) {
		enum region region = REGION_RECEIVE;

		*m = r->in.m[r->arrived[k]];
		m->receive = receive_nr(&r->in, k)->receive;
		plan_apply(&s->spec, &one, s->image);
		at = m->receive + (s->spec.type == IBV_QPT_UD ? GRH_BYTES : 0);
		if (m->op == OP_WRITE_IMM) {
			region = REGION_REMOTE;
			at = m->remote;
		}
		if (memcmp(s->mem[region] + at, s->image[region] + at, m->len) != 0)
			return failed(s, "message %u of %u bytes came with wrong bytes",
				      r->arrived[k], m->len);
	}
	/* After an unreliable connection has lost the end of a message, rxe drops packets for a while. */
	least = strcmp(OUR_NAME, "rxe") == 0 ? 1 : r->in.receives / 4;
	return r->in.receives == 0 || r->received >= least ||
	       failed(s, "%u of %u messages came", r->received, r->in.receives);
}

static bool verify(struct session *s, struct round *r)
{
	bool out_of_uroce = strcmp(OUR_NAME, "uroce") == 0, any;
	unsigned sent = r->sent, received = r->received;

	if (!drain(s, r, s->send_cq, &any) || !drain(s, r, s->recv_cq, &any))
		return false;
	if (r->sent != sent || (r->received != received && s->spec.lossy == 0))
		return failed(s, "round %u: completions after all had come", r->number);
	if (!check_event(s, r))
		return false;
	make_images(s, out_of_uroce, r, &r->out);
	if (!compare(s, r, REGION_LOCAL, "what is sent from and read into"))
		return false;
	if (s->spec.lossy != 0)
		return verify_lossy(s, r, !out_of_uroce);
	make_images(s, !out_of_uroce, r, &r->in);
	if (s->spec.type == IBV_QPT_UD && !check_grh(s, r))
		return false;
	return compare(s, r, REGION_REMOTE, "what the peer writes and reads") &&
	       compare(s, r, REGION_RECEIVE, "the receives");
}

static bool one_round(struct session *s, struct round *r, struct totals *totals)
{
	if (!begin(s, r))
		return false;
	for (unsigned i = 0; i < r->out.cnt; i++)
		if (!post_message(s, &r->out.m[i], i))
			return false;
	if (!see_completions(s, r) || !meet(s, "done") || !verify(s, r))
		return false;
	totals->messages += r->out.cnt + r->in.cnt;
	totals->bytes += r->out.bytes + r->in.bytes;
	totals->received += r->received;
	totals->missing += r->in.receives - r->received;
	return true;
}

static bool more(const struct spec *spec, unsigned round, const struct totals *totals)
{
	unsigned directions = strcmp(spec->from, "both") == 0 ? 2 : 1;

	if (spec->megabytes != 0)
		return totals->bytes / directions < spec->megabytes * 1000000ull;
	return round * spec->depth < spec->count;
}

bool run_traffic(struct session *s, struct totals *totals)
{
	static struct round r;

	memset(totals, 0, sizeof(*totals));
	for (r.number = 0; more(&s->spec, r.number, totals); r.number++)
		if (!one_round(s, &r, totals))
			return false;
	return true;
}
