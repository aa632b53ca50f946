/* SPDX-License-Identifier: BSD-3-Clause */
#include "oracle.h"

#include <stdlib.h>

#include "exhausted.h"
#include "transport/qp.h"

#define SOURCE_SLOTS 2
#define IDLE_NS                                                                                    \
	SIM_MS(20000) /* time after which all timers have expired and the network is silent */

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_write(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

static bool takes_receive(enum ibv_wr_opcode op)
{
	return is_send(op) || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_reliable(const struct sim_flow *f)
{
	return f->req->attr.type == IBV_QPT_RC;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- creating ---- */

void sim_oracle_init(struct sim_oracle *o, struct sim *s)
{
	*o = (struct sim_oracle){.s = s};
	for (unsigned i = 0; i < s->attr.eps; i++)
		sim_mr_init(&o->shared_word[i], &s->ep[i], 8, SIM_ACCESS_ALL);
}

void sim_oracle_add_cq(struct sim_oracle *o, struct sim_cq *cq)
{
	o->cq[o->cq_cnt++] = cq;
}

void sim_oracle_add_recvq(struct sim_oracle *o, struct sim_recvq *q)
{
	o->rq[o->rq_cnt++] = q;
}

struct sim_flow *sim_flow_new(struct sim_oracle *o, struct sim_qp *req, struct sim_qp *rsp,
			      struct sim_recvq *rq, unsigned depth, uint32_t max_len,
			      unsigned max_sge)
{
	struct sim_flow *f = must(calloc(1, sizeof(*f)));
	size_t slot = SIM_SLOT_BYTES(max_len < 8 ? 8 : max_len), bytes;

	*f = (struct sim_flow){.o = o,
			       .id = o->flow_cnt,
			       .req = req,
			       .rsp = rsp,
			       .rq = rq,
			       .depth = depth,
			       .max_len = max_len,
			       .max_sge = max_sge,
			       .slots = 2 * depth + 2};
	f->rng.state = sim_rand(&o->s->rng);
	f->source_off = f->slots * slot;
	f->words_off = (f->source_off + SOURCE_SLOTS * slot + 7) / 8 * 8;
	bytes = f->words_off + SIM_WORDS * 8;
	sim_mr_init(&f->local, req->ep, f->slots * slot, IBV_ACCESS_LOCAL_WRITE);
	sim_mr_init(&f->target, rsp->ep, bytes, SIM_ACCESS_ALL);
	sim_pattern(f->target.p, bytes, sim_rand(&f->rng));
	f->want = must(malloc(bytes));
	memcpy(f->want, f->target.p, bytes);
	f->scratch = must(malloc(slot));
	o->flow[o->flow_cnt++] = f;
	return f;
}

void sim_flow_add(struct sim_flow *f, struct sim_op op)
{
	SIM_CHECK(f->o->s, f->op_cnt < SIM_OPS_MAX && op.len <= f->max_len + 8, "test too large");
	f->ops[f->op_cnt++] = op;
}

/* ---- posting ---- */

static size_t slot_bytes(const struct sim_flow *f)
{
	return SIM_SLOT_BYTES(f->max_len < 8 ? 8 : f->max_len);
}

static size_t local_off(const struct sim_flow *f, const struct sim_op *op)
{
	return op->local_slot * slot_bytes(f);
}

/* The last WRITE before `op` to a target that is not overwritten until `op` has completed. */
static const struct sim_op *last_write(const struct sim_flow *f, unsigned idx)
{
	for (unsigned i = idx; i-- > 0 && idx - i <= f->depth;)
		if (is_write(f->ops[i].opcode))
			return &f->ops[i];
	return NULL;
}

static void prepare_write(struct sim_flow *f, struct sim_op *op, unsigned idx)
{
	size_t room = slot_bytes(f) - op->len;

	op->target_off = (uint32_t)((f->overlap ? 0 : idx % f->slots) * slot_bytes(f) +
				    sim_below(&f->rng, (uint32_t)room + 1));
	memcpy(f->want + op->target_off, op->payload, op->len);
}

static void prepare_read(struct sim_flow *f, struct sim_op *op, unsigned idx)
{
	const struct sim_op *back = op->read_back && !f->overlap ? last_write(f, idx) : NULL;

	if (back) {
		op->len = back->len;
		op->target_off = back->target_off;
	} else {
		size_t room = SOURCE_SLOTS * slot_bytes(f) - op->len;

		op->target_off = (uint32_t)(f->source_off + sim_below(&f->rng, (uint32_t)room + 1));
	}
	op->payload = must(malloc(op->len + 1));
	memcpy(op->payload, f->want + op->target_off, op->len);
}

static void prepare_atomic(struct sim_flow *f, struct sim_op *op)
{
	unsigned peer = f->rsp->ep->idx;
	uint64_t now;

	op->len = 8;
	op->swap_add = op->shared_word ? 1 : sim_rand(&f->rng);
	if (op->shared_word) {
		f->o->shared_sum[peer]++;
		return;
	}
	op->target_off = (uint32_t)(f->words_off + (op->word % SIM_WORDS) * 8);
	memcpy(&op->original, f->want + op->target_off, 8);
	/* Half of the compares fail. */
	op->compare = op->original ^ sim_below(&f->rng, 2);
	now = op->original;
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		now += op->swap_add;
	else if (op->compare == op->original)
		now = op->swap_add;
	memcpy(f->want + op->target_off, &now, 8);
}

static void prepare(struct sim_flow *f, unsigned idx)
{
	struct sim_op *op = &f->ops[idx];
	struct sim_op *prev = idx ? &f->ops[idx - 1] : NULL;
	unsigned pieces = f->max_sge;

	op->echo = op->echo && prev && prev->opcode == IBV_WR_RDMA_READ &&
		   (is_send(op->opcode) || is_write(op->opcode));
	op->local_slot = idx % f->slots;
	op->seed = sim_rand(&f->rng);
	op->imm = (uint32_t)op->seed;
	memset(f->local.p + local_off(f, op), SIM_SEND_FILL, slot_bytes(f));
	if (op->opcode == IBV_WR_RDMA_READ) {
		prepare_read(f, op, idx);
	} else if (is_atomic(op->opcode)) {
		prepare_atomic(f, op);
		pieces = 1;
	} else if (op->opcode == IBV_WR_SEND_WITH_INV) {
		sim_mr_init(&op->inv, f->rsp->ep, 16,
			    SIM_ACCESS_ALL | (int)UR_ACCESS_REMOTE_INVALIDATE);
	} else if (op->opcode == IBV_WR_LOCAL_INV) {
		sim_mr_init(&op->inv, f->req->ep, 16, SIM_ACCESS_ALL);
	}
	if (is_send(op->opcode) || is_write(op->opcode)) {
		if (op->echo) {
			op->len = prev->len;
			op->flags = (op->flags & ~(unsigned)IBV_SEND_INLINE) | IBV_SEND_FENCE;
		}
		op->payload = must(malloc(op->len + 8));
		if (op->echo)
			memcpy(op->payload, prev->payload, op->len);
		else
			sim_pattern(op->payload, op->len, op->seed);
	}
	if (is_write(op->opcode))
		prepare_write(f, op, idx);
	if (op->echo) {
		op->cut = prev->cut;
		op->local_slot = prev->local_slot;
		return;
	}
	sim_pieces_cut(&op->cut, &f->rng, op->len, pieces);
	if (op->payload && op->opcode != IBV_WR_RDMA_READ)
		sim_pieces_put(&op->cut, f->local.p + local_off(f, op), op->payload, op->len);
}

static void fill_remote(const struct sim_flow *f, const struct sim_op *op, struct ibv_send_wr *wr)
{
	const struct sim_mr *mr =
		op->shared_word ? &f->o->shared_word[f->rsp->ep->idx] : &f->target;
	uint64_t addr = (uintptr_t)mr->p + op->target_off;

	if (is_atomic(op->opcode)) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = mr->key;
		wr->wr.atomic.compare_add =
			op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? op->swap_add : op->compare;
		wr->wr.atomic.swap = op->swap_add;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = mr->key;
	}
}

static int post(struct sim_flow *f, unsigned idx)
{
	struct sim_op *op = &f->ops[idx];
	struct ibv_sge sge[SIM_PIECES_MAX];
	struct ibv_send_wr wr = {.wr_id = (uint64_t)f->id << 32 | idx,
				 .sg_list = sge,
				 .opcode = op->opcode,
				 .send_flags = op->flags};
	int err;

	if (op->opcode == IBV_WR_SEND_WITH_INV || op->opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = op->inv.key;
	else if (op->opcode != IBV_WR_RDMA_READ)
		wr.imm_data = op->imm;
	if (!is_send(op->opcode) && op->opcode != IBV_WR_LOCAL_INV)
		fill_remote(f, op, &wr);
	wr.num_sge = sim_pieces_sges(&op->cut, &f->local, local_off(f, op), sge);
	err = sim_post_send(f->req, &wr);
	/* Inline data now belongs to the queue. */
	if (err == 0 && (op->flags & IBV_SEND_INLINE))
		memset(f->local.p + local_off(f, op), SIM_SEND_FILL, slot_bytes(f));
	return err;
}

static void post_more(struct sim_flow *f)
{
	while (!f->died && f->posted < f->op_cnt && f->posted - f->done < f->depth) {
		struct sim_op *op = &f->ops[f->posted];
		int err;

		/* The queue must not fill up with unsignaled requests. */
		if (f->unsignaled + 1 >= (f->depth + 1) / 2 || f->posted + 1 == f->op_cnt)
			op->flags |= IBV_SEND_SIGNALED;
		f->unsignaled = op->flags & IBV_SEND_SIGNALED ? 0 : f->unsignaled + 1;
		prepare(f, f->posted);
		err = post(f, f->posted);
		SIM_CHECK(f->o->s, err == 0, "flow %u: posting request %u: %d", f->id, f->posted,
			  err);
		f->posted++;
	}
}

/* ---- completions of requests ---- */

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

/* Checks all effects of a completed request. */
static void check_done(struct sim_flow *f, unsigned idx)
{
	const struct sim_op *op = &f->ops[idx];
	const uint8_t *mem = f->local.p + local_off(f, op);
	struct sim *s = f->o->s;

	if (op->opcode == IBV_WR_LOCAL_INV) {
		SIM_CHECK(s, !sim_mr_valid(&op->inv), "request %u: the key is still in force", idx);
	} else if (op->opcode == IBV_WR_RDMA_READ) {
		memset(f->scratch, SIM_SEND_FILL, slot_bytes(f));
		sim_pieces_put(&op->cut, f->scratch, op->payload, op->len);
		SIM_CHECK(s, memcmp(f->scratch, mem, slot_bytes(f)) == 0,
			  "flow %u: READ %u of %u bytes brought the wrong bytes", f->id, idx,
			  op->len);
	} else if (is_atomic(op->opcode) && !op->shared_word) {
		SIM_CHECK(s, memcmp(mem, &op->original, 8) == 0,
			  "flow %u: atomic %u brought the wrong value", f->id, idx);
	} else if (is_write(op->opcode) && is_reliable(f) && !f->overlap) {
		SIM_CHECK(s, memcmp(f->target.p + op->target_off, op->payload, op->len) == 0,
			  "flow %u: WRITE %u of %u bytes is not at its target", f->id, idx,
			  op->len);
	}
}

/* True if the peer has run out of retries; requests that it leaves unfinished may fail as well. */
static bool peer_died(const struct sim_oracle *o, const struct sim_qp *qp)
{
	for (unsigned i = 0; i < o->flow_cnt; i++)
		if (o->flow[i]->died && o->flow[i]->rsp == qp)
			return true;
	return false;
}

/* A request has failed: the network lost too much, or the queue pair has died before. */
static void on_failed(struct sim_flow *f, unsigned idx, enum ibv_wc_status status)
{
	struct sim *s = f->o->s;

	if (f->died) {
		SIM_CHECK(s, status == IBV_WC_WR_FLUSH_ERR && idx == f->done,
			  "flow %u: request %u has status %d after an error, %u is next", f->id,
			  idx, status, f->done);
		return;
	}
	SIM_CHECK(s,
		  (status == IBV_WC_RETRY_EXC_ERR &&
		   sim_exhausted_rightly(s, f->req, f->rsp, f->una)) ||
			  (status == IBV_WC_WR_FLUSH_ERR && peer_died(f->o, f->req)),
		  "flow %u: request %u fails with status %d", f->id, idx, status);
	f->died = true;
	f->o->died++;
}

static void on_sent(struct sim_oracle *o, const struct ibv_wc *wc)
{
	unsigned id = (unsigned)(wc->wr_id >> 32), idx = (unsigned)wc->wr_id;
	bool good = wc->status == IBV_WC_SUCCESS;
	struct sim_flow *f;

	SIM_CHECK(o->s, id < o->flow_cnt, "a completion of no flow: %llx",
		  (unsigned long long)wc->wr_id);
	f = o->flow[id];
	SIM_CHECK(o->s, wc->qp_num == f->req->qpn.v, "flow %u: completion names QP %x", id,
		  wc->qp_num);
	SIM_CHECK(o->s, idx >= f->done && idx < f->posted,
		  "flow %u: request %u completes, but [%u, %u) are under way", id, idx, f->done,
		  f->posted);
	if (!good || f->died)
		on_failed(f, idx, wc->status);
	SIM_CHECK(o->s, !good || wc->opcode == wc_opcode(f->ops[idx].opcode),
		  "request %u: opcode %d", idx, wc->opcode);
	SIM_CHECK(o->s,
		  !good ||
			  !(f->ops[idx].opcode == IBV_WR_RDMA_READ ||
			    is_atomic(f->ops[idx].opcode)) ||
			  wc->byte_len == f->ops[idx].len,
		  "request %u: byte_len %u", idx, wc->byte_len);
	SIM_CHECK(o->s, !good || f->req->attr.sig_all || (f->ops[idx].flags & IBV_SEND_SIGNALED),
		  "request %u was not signalled", idx);
	for (unsigned i = f->done; i <= idx; i++) {
		bool told = f->req->attr.sig_all || (f->ops[i].flags & IBV_SEND_SIGNALED);

		SIM_CHECK(o->s, i == idx || !told, "flow %u: the completion of %u was lost", id, i);
		if (good || i < idx)
			check_done(f, i);
	}
	f->done = idx + 1;
}

/* ---- completions of receives ---- */

/* True if the completion can be that of `op`. */
static bool fits(struct sim_flow *f, const struct sim_op *op, const struct ibv_wc *wc)
{
	bool imm = op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool inv = op->opcode == IBV_WR_SEND_WITH_INV;
	unsigned flags = (imm ? IBV_WC_WITH_IMM : 0u) | (inv ? IBV_WC_WITH_INV : 0u);
	enum ibv_wc_opcode code = is_write(op->opcode) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;

	return wc->opcode == code && wc->byte_len == op->len &&
	       (wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) == flags &&
	       (!imm || wc->imm_data == op->imm) && (!inv || wc->invalidated_rkey == op->inv.key);
}

static bool holds(struct sim_flow *f, const struct sim_op *op, const struct ibv_wc *wc)
{
	if (is_send(op->opcode))
		return sim_recvq_holds(f->rq, wc->wr_id, op->payload, op->len);
	if (!f->overlap && memcmp(f->target.p + op->target_off, op->payload, op->len) != 0)
		return false;
	return sim_recvq_holds(f->rq, wc->wr_id, op->payload, 0);
}

static bool same_endpoint(const struct sim_flow *f, const struct sim_cq *cq)
{
	return f->rsp->attr.recv_cq == cq;
}

/* The receive queue of a queue pair is flushed if the queue pair or its peer has died. */
static bool is_flushed(struct sim_oracle *o, struct sim_cq *cq, const struct ibv_wc *wc)
{
	for (unsigned i = 0; i < o->flow_cnt; i++) {
		const struct sim_flow *f = o->flow[i];

		if (f->died && ((f->req->qpn.v == wc->qp_num && f->req->attr.recv_cq == cq) ||
				(f->rsp->qpn.v == wc->qp_num && f->rsp->attr.recv_cq == cq)))
			return wc->status == IBV_WC_WR_FLUSH_ERR;
	}
	return false;
}

static void take_flushed(struct sim_oracle *o, const struct ibv_wc *wc)
{
	for (unsigned i = 0; i < o->rq_cnt; i++)
		if (o->rq[i]->id == (wc->wr_id & ~SIM_RECV_TAG) >> 32)
			sim_recvq_take(o->rq[i], wc->wr_id);
}

static void on_received(struct sim_oracle *o, struct sim_cq *cq, const struct ibv_wc *wc)
{
	struct sim_flow *f = NULL;
	unsigned idx;

	if (is_flushed(o, cq, wc)) {
		take_flushed(o, wc);
		return;
	}
	for (unsigned i = 0; i < o->flow_cnt && !f; i++)
		if (o->flow[i]->rq && o->flow[i]->rsp->qpn.v == wc->qp_num &&
		    same_endpoint(o->flow[i], cq))
			f = o->flow[i];
	SIM_CHECK(o->s, f, "a message for QP %x, and no flow leads there", wc->qp_num);
	SIM_CHECK(o->s, wc->status == IBV_WC_SUCCESS, "receive %llx fails with status %d",
		  (unsigned long long)wc->wr_id, wc->status);
	for (idx = f->recv_next; idx < f->posted; idx++) {
		const struct sim_op *op = &f->ops[idx];

		if (!takes_receive(op->opcode))
			continue;
		if (is_reliable(f) || (fits(f, op, wc) && holds(f, op, wc)))
			break;
	}
	SIM_CHECK(o->s, idx < f->posted, "flow %u: a message that was not sent: %u bytes", f->id,
		  wc->byte_len);
	SIM_CHECK(o->s, fits(f, &f->ops[idx], wc),
		  "flow %u: message %u of %u bytes is announced as %u bytes, opcode %d, flags %x",
		  f->id, idx, f->ops[idx].len, wc->byte_len, wc->opcode, wc->wc_flags);
	SIM_CHECK(o->s, holds(f, &f->ops[idx], wc),
		  "flow %u: message %u of %u bytes holds the wrong bytes", f->id, idx,
		  f->ops[idx].len);
	SIM_CHECK(o->s,
		  f->ops[idx].opcode != IBV_WR_SEND_WITH_INV || !sim_mr_valid(&f->ops[idx].inv),
		  "flow %u: the key of message %u is still in force", f->id, idx);
	f->ops[idx].received = true;
	f->recv_next = idx + 1;
	sim_recvq_take(f->rq, wc->wr_id);
	sim_recvq_refill(f->rq);
}

/* ---- after every event ---- */

/* A queue pair in state ERR no longer has a una. */
static void record_una(struct sim_flow *f)
{
	if (is_reliable(f) && f->req->qp && f->req->qp->state == IBV_QPS_RTS)
		f->una = f->req->qp->ops->numbers(f->req->qp).una;
}

static void poll_all(struct sim *s, void *arg)
{
	struct sim_oracle *o = arg;
	struct ibv_wc wc[4];
	unsigned n;

	(void)s;
	for (unsigned i = 0; i < o->cq_cnt; i++) {
		while ((n = ur_cq_poll(&o->cq[i]->cq, 4, wc)) != 0) {
			for (unsigned k = 0; k < n; k++) {
				if (wc[k].wr_id & SIM_RECV_TAG)
					on_received(o, o->cq[i], &wc[k]);
				else
					on_sent(o, &wc[k]);
			}
		}
	}
	for (unsigned i = 0; i < o->flow_cnt; i++) {
		post_more(o->flow[i]);
		record_una(o->flow[i]);
	}
}

static bool all_done(void *arg)
{
	const struct sim_oracle *o = arg;

	for (unsigned i = 0; i < o->flow_cnt; i++)
		if (o->flow[i]->done < (o->flow[i]->died ? o->flow[i]->posted : o->flow[i]->op_cnt))
			return false;
	return true;
}

/* ---- the end ---- */

/*
 * For UC, and for a flow that died: each byte of the target has its old value or one that a WRITE
 * would have given it. Atomics may have been executed or not.
 */
static void check_mixture(struct sim_flow *f, uint8_t *was)
{
	size_t len = f->died ? f->words_off : f->target.len;

	for (unsigned i = 0; i < f->posted; i++) {
		const struct sim_op *op = &f->ops[i];

		for (uint32_t k = 0; is_write(op->opcode) && k < op->len; k++)
			if (f->target.p[op->target_off + k] == op->payload[k])
				was[op->target_off + k] = op->payload[k];
	}
	SIM_CHECK(f->o->s, memcmp(was, f->target.p, len) == 0,
		  "flow %u: bytes of the target are neither old nor new", f->id);
}

static void check_memory(struct sim_flow *f)
{
	size_t at = 0;

	sim_mr_check_guards(f->o->s, &f->target);
	sim_mr_check_guards(f->o->s, &f->local);
	if (!is_reliable(f) || f->died)
		return;
	while (at < f->target.len && f->target.p[at] == f->want[at])
		at++;
	SIM_CHECK(f->o->s, at == f->target.len, "flow %u: byte %zu of the target is wrong", f->id,
		  at);
	for (unsigned i = 0; i < f->op_cnt; i++)
		SIM_CHECK(f->o->s, !takes_receive(f->ops[i].opcode) || f->ops[i].received,
			  "flow %u: message %u was never received", f->id, i);
}

static uint64_t probes_of(const struct sim *s)
{
	uint64_t cnt = 0;

	for (unsigned i = 0; i < s->attr.eps; i++)
		cnt += sim_counters(&s->ep[i])->probes_sent;
	return cnt;
}

static void check_counters(struct sim_oracle *o, const struct sim_ep *ep)
{
	const struct ur_counters *c = sim_counters(ep);
	struct sim *s = o->s;

	SIM_CHECK(s, c->tx_packets == ep->tx_frames, "endpoint %u counts %llu packets, sent %llu",
		  ep->idx, (unsigned long long)c->tx_packets, (unsigned long long)ep->tx_frames);
	SIM_CHECK(s,
		  !o->clean || (c->retransmitted_packets == 0 && c->local_ack_timeout_err == 0 &&
				c->duplicate_request == 0 && c->out_of_sequence == 0 &&
				c->seq_nak_sent == 0 && c->rnr_nak_sent == 0 && c->rto == 0 &&
				c->retransmitted_responses == 0),
		  "endpoint %u: recovery on a clean link", ep->idx);
	/* State for gaps is not even touched. */
	SIM_CHECK(s,
		  !o->clean || (c->ooo_contexts == 0 && c->rtx_contexts == 0 &&
				c->early_packets == 0 && c->early_dropped == 0 &&
				c->early_responses == 0 && (c->probes_sent == 0 || !o->alone)),
		  "endpoint %u: the slow path on a clean link: contexts %llu and %llu, early %llu, "
		  "%llu and %llu, probes %llu",
		  ep->idx, (unsigned long long)c->ooo_contexts, (unsigned long long)c->rtx_contexts,
		  (unsigned long long)c->early_packets, (unsigned long long)c->early_dropped,
		  (unsigned long long)c->early_responses, (unsigned long long)c->probes_sent);
	/* The answer to a probe may overtake the request in question: at most one retransmission per probe.
	 */
	SIM_CHECK(s,
		  !o->lossless ||
			  c->retransmitted_packets + c->retransmitted_responses <= probes_of(s),
		  "endpoint %u sent again what was late: %llu requests, %llu responses", ep->idx,
		  (unsigned long long)c->retransmitted_packets,
		  (unsigned long long)c->retransmitted_responses);
	SIM_CHECK(s,
		  c->cq_overflow == 0 &&
			  (o->died || (c->req_cqe_error == 0 && c->resp_cqe_error == 0)),
		  "endpoint %u counts errors", ep->idx);
}

void sim_oracle_run(struct sim_oracle *o, uint64_t limit_ns)
{
	struct sim *s = o->s;
	uint8_t *was[SIM_FLOW_MAX] = {NULL};

	for (unsigned i = 0; i < o->flow_cnt; i++) {
		was[i] = must(malloc(o->flow[i]->target.len));
		memcpy(was[i], o->flow[i]->target.p, o->flow[i]->target.len);
	}
	for (unsigned i = 0; i < o->rq_cnt; i++)
		sim_recvq_fill(o->rq[i]);
	s->after = poll_all;
	s->after_arg = o;
	poll_all(s, o);
	sim_must_run(s, all_done, o, limit_ns);
	SIM_CHECK(s, sim_run(s, NULL, NULL, IDLE_NS), "the network does not fall silent");
	for (unsigned i = 0; i < o->flow_cnt; i++) {
		check_memory(o->flow[i]);
		if (!is_reliable(o->flow[i]) || o->flow[i]->died)
			check_mixture(o->flow[i], was[i]);
		free(was[i]);
	}
	for (unsigned i = 0; i < s->attr.eps; i++) {
		uint64_t sum;

		check_counters(o, &s->ep[i]);
		memcpy(&sum, o->shared_word[i].p, 8);
		SIM_CHECK(s, sum == o->shared_sum[i] || (o->died && sum < o->shared_sum[i]),
			  "endpoint %u: the sum of the additions is wrong", i);
	}
	s->after = NULL;
}

static void flow_free(struct sim_flow *f)
{
	for (unsigned i = 0; i < f->op_cnt; i++) {
		free(f->ops[i].payload);
		sim_mr_free(&f->ops[i].inv);
	}
	sim_mr_free(&f->local);
	sim_mr_free(&f->target);
	free(f->want);
	free(f->scratch);
	free(f);
}

void sim_oracle_free(struct sim_oracle *o)
{
	for (unsigned i = 0; i < o->flow_cnt; i++)
		flow_free(o->flow[i]);
	for (unsigned i = 0; i < o->rq_cnt; i++)
		sim_recvq_free(o->rq[i]);
	for (unsigned i = 0; i < o->s->attr.eps; i++)
		sim_mr_free(&o->shared_word[i]);
}
