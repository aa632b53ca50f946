/* SPDX-License-Identifier: BSD-3-Clause */
#include "srq.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define QKEY 0x11110000u
#define REMOTE_ACCESS                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define ERRORS_PRINTED 20

static void note(struct perf_session *s, const char *fmt, va_list ap)
{
	char text[PERF_TEXT_BYTES];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (s->text[0] == '\0')
		memcpy(s->text, text, sizeof(text));
	if (++s->errors <= ERRORS_PRINTED)
		fprintf(stderr, "uroce-perf: %s\n", text);
	else if (s->errors == ERRORS_PRINTED + 1)
		fprintf(stderr, "uroce-perf: more errors are counted, not printed\n");
}

void perf_session_error(struct perf_session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(s, fmt, ap);
	va_end(ap);
}

void perf_session_fail(struct perf_session *s, const char *fmt, ...)
{
	va_list ap;

	s->failed = true;
	s->sending = false;
	va_start(ap, fmt);
	note(s, fmt, ap);
	va_end(ap);
}

static bool make_memory(struct perf_session *s)
{
	uint64_t total = s->layout.total;

	s->mem = mmap(NULL, total, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->mem == MAP_FAILED) {
		s->mem = NULL;
		perf_session_fail(s, "cannot allocate %llu bytes of memory: %s",
				  (unsigned long long)total, strerror(errno));
		return false;
	}
	s->mr = uroce_reg_mr(s->ep->pd, s->mem, total, REMOTE_ACCESS);
	if (s->mr == NULL)
		perf_session_fail(s, "cannot register %llu bytes of memory: %s",
				  (unsigned long long)total, strerror(errno));
	return s->mr != NULL;
}

/* No more than needed: a queue uses all of its memory in turn, however little is outstanding. */
static uint64_t send_entries(const struct perf_session *s)
{
	/* Acknowledgement words need entries of their own, and the ping-pong does not count depth. */
	bool more =
		s->notify || s->params.op == PERF_OP_SEND_INV || s->params.mode == PERF_MODE_LAT;

	return s->params.depth + (more ? 2 * PERF_ACKS_MAX + PERF_BATCH : 0);
}

static bool make_cqs(struct perf_session *s)
{
	uint64_t per_qp =
		send_entries(s) + (perf_params_receives(&s->params) ? s->params.rq_depth : 0);
	uint64_t entries;
	int vectors = s->ep->ctx->num_comp_vectors;

	/* An SRQ lives on one worker, and so do its queue pairs. */
	s->cq_cnt = vectors < 1 || s->params.srq ? 1 : (unsigned)vectors;
	if (s->cq_cnt > PERF_CQS_MAX)
		s->cq_cnt = PERF_CQS_MAX;
	if (s->cq_cnt > s->params.qps)
		s->cq_cnt = (unsigned)s->params.qps;
	entries = (s->params.qps + s->cq_cnt - 1) / s->cq_cnt * per_qp;
	if (s->ep->device.max_cqe > 0 && entries > (uint64_t)s->ep->device.max_cqe)
		entries = (uint64_t)s->ep->device.max_cqe;
	if (s->params.events) {
		s->channel = uroce_create_comp_channel(s->ep->ctx);
		if (s->channel == NULL) {
			perf_session_fail(s, "cannot create a completion channel: %s",
					  strerror(errno));
			return false;
		}
	}
	for (unsigned i = 0; i < s->cq_cnt; i++) {
		s->cq[i] = uroce_create_cq(s->ep->ctx, (int)entries, NULL, s->channel, (int)i);
		if (s->cq[i] == NULL) {
			perf_session_fail(s, "cannot create a completion queue of %llu entries: %s",
					  (unsigned long long)entries, strerror(errno));
			return false;
		}
	}
	return true;
}

static uint32_t power_at_least(uint64_t v)
{
	uint32_t p = 1;

	while (p < v)
		p *= 2;
	return p;
}

static bool make_tables(struct perf_session *s)
{
	uint32_t stamps = power_at_least(s->params.depth);
	uint32_t hash = power_at_least(4 * s->params.qps);
	uint64_t qps = s->params.qps;

	s->stamp_mask = stamps - 1;
	s->qpn_hash_mask = hash - 1;
	s->ready_mask = power_at_least(qps) - 1;
	s->qps = aligned_alloc(_Alignof(struct perf_qp), qps * sizeof(*s->qps));
	if (s->qps != NULL)
		memset(s->qps, 0, qps * sizeof(*s->qps));
	s->sges = calloc(qps * s->params.sge, sizeof(*s->sges));
	s->stamps = s->hist != NULL ? calloc(qps * stamps, sizeof(*s->stamps)) : NULL;
	s->ready = calloc(s->ready_mask + 1ul, sizeof(*s->ready));
	s->qpn_hash = calloc(hash, sizeof(*s->qpn_hash));
	s->thoughts = calloc(s->ready_mask + 1ul, sizeof(*s->thoughts));
	if (s->qps == NULL || s->sges == NULL || s->ready == NULL || s->qpn_hash == NULL ||
	    s->thoughts == NULL || (s->hist != NULL && s->stamps == NULL)) {
		perf_session_fail(s, "out of memory");
		return false;
	}
	return true;
}

bool perf_session_create(struct perf_session *s, struct perf_endpoint *ep,
			 const struct perf_params *params, bool server, struct perf_srq **shared)
{
	struct perf_histogram *hist = s->hist, *ping_hist = s->ping_hist;

	memset(s, 0, sizeof(*s));
	s->hist = hist;
	s->ping_hist = ping_hist;
	s->ping = ping_hist != NULL ? (uint32_t)params->qps - 1 : PERF_NO_PING;
	s->ep = ep;
	s->params = *params;
	s->server = server;
	s->traits = perf_op_traits((enum perf_op)params->op);
	s->lossy = params->type != PERF_TYPE_RC;
	s->notify = params->verify && (s->traits & PERF_T_WRITE) != 0;
	s->planner = (struct perf_planner){
		.op = (enum perf_op)params->op,
		.window = params->slots >= 4 ? (uint32_t)params->slots / 4 : 1,
		.size = params->size,
		.notify = s->notify,
		.lossy = s->lossy,
	};
	s->rq_shift = (unsigned)__builtin_ctzll(params->rq_depth);
	perf_layout_compute(&s->layout, params);
	if (!make_tables(s))
		return false;
	if (params->mode == PERF_MODE_CONNECT)
		return make_cqs(s);
	return make_memory(s) && make_cqs(s) &&
	       (!params->srq || !server || perf_srq_take(s, shared));
}

/*
 * The receives in our completion queues. No more come: a queue pair went to ERR with its id, so
 * that what it held was flushed.
 */
static void return_receives(struct perf_session *s)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < s->cq_cnt; i++) {
		while (s->cq[i] != NULL && uroce_poll_cq(s->cq[i], 1, &wc) > 0) {
			if (perf_wr_kind_of(wc.wr_id) == PERF_WR_RX)
				perf_srq_give_back(s->srq, (uint32_t)wc.wr_id);
		}
	}
}

void perf_session_destroy(struct perf_session *s)
{
	for (uint32_t i = 0; s->qps != NULL && i < s->params.qps; i++)
		perf_session_close_qp(s, i);
	if (s->srq != NULL && s->srq->home != NULL)
		return_receives(s);
	perf_srq_put(s->srq);
	for (unsigned i = 0; i < s->cq_cnt; i++) {
		if (s->cq[i] != NULL)
			uroce_destroy_cq(s->cq[i]);
	}
	if (s->channel != NULL)
		uroce_destroy_comp_channel(s->channel);
	if (s->mr != NULL)
		uroce_dereg_mr(s->mr);
	if (s->mem != NULL)
		munmap(s->mem, s->layout.total);
	free(s->qps);
	free(s->sges);
	free(s->stamps);
	free(s->ready);
	free(s->qpn_hash);
	free(s->thoughts);
	s->qps = NULL;
	s->thoughts = NULL;
	s->sges = NULL;
	s->stamps = NULL;
	s->ready = NULL;
	s->qpn_hash = NULL;
	s->mem = NULL;
	s->mr = NULL;
	s->srq = NULL;
	s->channel = NULL;
	s->cq_cnt = 0;
}

/* Linear probing; entries of closed queue pairs stay until the table is rebuilt. */
static void hash_rebuild(struct perf_session *s)
{
	memset(s->qpn_hash, 0, (s->qpn_hash_mask + 1ul) * sizeof(*s->qpn_hash));
	for (uint32_t i = 0; i < s->params.qps; i++) {
		uint32_t at;

		if (s->qps[i].qp == NULL)
			continue;
		at = (uint32_t)perf_mix64(s->qps[i].qp->qp_num) & s->qpn_hash_mask;
		while (s->qpn_hash[at] != 0)
			at = (at + 1) & s->qpn_hash_mask;
		s->qpn_hash[at] = i + 1;
	}
}

static void hash_insert(struct perf_session *s, uint32_t idx)
{
	uint32_t at = (uint32_t)perf_mix64(s->qps[idx].qp->qp_num) & s->qpn_hash_mask;

	while (s->qpn_hash[at] != 0)
		at = (at + 1) & s->qpn_hash_mask;
	s->qpn_hash[at] = idx + 1;
}

struct perf_qp *perf_session_by_qpn(struct perf_session *s, uint32_t qpn)
{
	uint32_t at = (uint32_t)perf_mix64(qpn) & s->qpn_hash_mask;

	for (; s->qpn_hash[at] != 0; at = (at + 1) & s->qpn_hash_mask) {
		struct perf_qp *q = &s->qps[s->qpn_hash[at] - 1];

		if (q->qp != NULL && q->qp->qp_num == qpn)
			return q;
	}
	return NULL;
}

/* The pieces of slot 0, of equal length as far as possible; the last one takes the remainder. */
static void cut_pieces(struct perf_session *s, struct perf_qp *q)
{
	uint64_t at = (uintptr_t)q->mem + s->layout.tx, size = perf_size(s, q), left = size;
	struct ibv_sge *piece = perf_pieces(s, q);

	for (uint64_t i = 0; s->mr != NULL && i < s->params.sge; i++) {
		uint64_t bytes = i + 1 == s->params.sge ? left : size / s->params.sge;

		piece[i] = (struct ibv_sge){at, (uint32_t)bytes, s->mr->lkey};
		at += bytes;
		left -= bytes;
	}
}

static void reset_memory(struct perf_session *s, struct perf_qp *q)
{
	bool read = s->params.op == PERF_OP_READ || s->params.op == PERF_OP_MIXED;
	uint64_t key = perf_key(s->params.seed, q->idx, q->gen, s->server ? 3 : 2);

	memset(q->mem, 0, PERF_AT_RINGS);
	for (uint64_t i = 0; read && s->params.verify && i < s->params.slots; i++)
		perf_pattern_fill(q->mem + s->layout.rd + i * s->layout.slot_bytes, s->params.size,
				  perf_base(key, i));
}

static bool make_victims(struct perf_session *s, struct perf_qp *q)
{
	if (s->params.op != PERF_OP_SEND_INV || !s->server)
		return true;
	q->victims = calloc(PERF_GRANTS, sizeof(struct ibv_mr *));
	for (; q->victims != NULL && q->victims_cnt < PERF_GRANTS; q->victims_cnt++) {
		/* The memory of these regions is never accessed: any memory of ours will do. */
		q->victims[q->victims_cnt] =
			uroce_reg_mr(s->ep->pd, q->mem, PERF_AT_RINGS,
				     REMOTE_ACCESS | UROCE_ACCESS_REMOTE_INVALIDATE);
		if (q->victims[q->victims_cnt] == NULL)
			break;
	}
	if (q->victims_cnt == PERF_GRANTS)
		return true;
	perf_session_fail(s, "cannot register memory to be invalidated: %s", strerror(errno));
	return false;
}

static bool choose_mode(struct perf_session *s, struct perf_qp *q)
{
	/* Polling memory for a WRITE works only if its last byte is written last. */
	bool polls = s->params.mode == PERF_MODE_LAT &&
		     (s->traits & (PERF_T_WRITE | PERF_T_RECV)) == PERF_T_WRITE;
	struct uroce_qp_mode_attr attr = {.strict = true};
	int mask = polls ? UROCE_QP_STRICT : 0;
	int rc = 0;

	if (s->params.transport != 0) {
		attr.mode = (enum uroce_qp_mode)(s->params.transport - 1);
		mask |= UROCE_QP_MODE;
	}
	if (s->params.type == PERF_TYPE_RC && mask != 0)
		rc = uroce_set_qp_mode(q->qp, &attr, mask);
	if (rc != 0)
		perf_session_fail(s, "cannot choose the mode of queue pair %u: %s", q->idx,
				  strerror(rc));
	return rc == 0;
}

const char *perf_session_why(int rc, struct ibv_qp *qp)
{
	struct uroce_qp_mode_attr attr;

	if (rc != EPROTONOSUPPORT || qp == NULL || uroce_query_qp_mode(qp, &attr) != 0)
		return strerror(rc);
	return uroce_qp_mode_reason_str(attr.reason);
}

void perf_session_mode(const struct perf_session *s, const char **mode, const char **reason)
{
	struct uroce_qp_mode_attr first, other;

	*mode = NULL;
	*reason = NULL;
	if (s->params.type != PERF_TYPE_RC || s->params.mode == PERF_MODE_CONNECT ||
	    s->qps[0].qp == NULL || uroce_query_qp_mode(s->qps[0].qp, &first) != 0)
		return;
	*mode = uroce_qp_mode_str(first.mode);
	*reason = uroce_qp_mode_reason_str(first.reason);
	for (uint32_t i = 1; i < s->params.qps; i++) {
		if (s->qps[i].qp != NULL && uroce_query_qp_mode(s->qps[i].qp, &other) == 0 &&
		    other.mode != first.mode)
			*mode = "mixed";
	}
}

static bool take_share(struct perf_session *s, struct perf_qp *q, const struct perf_share *share)
{
	int rc = uroce_set_qp_share(q->qp, share->priority, share->weight);

	q->share = *share;
	if (rc != 0)
		perf_session_fail(s, "queue pair %u: priority %u, weight %u: %s", q->idx,
				  share->priority, share->weight, strerror(rc));
	return rc == 0;
}

bool perf_session_open_qp(struct perf_session *s, uint32_t idx, uint32_t gen,
			  const struct perf_share *share)
{
	bool receives = perf_params_receives(&s->params) && s->srq == NULL;
	struct perf_qp *q = &s->qps[idx];
	struct ibv_cq *cq = s->cq[idx % s->cq_cnt];
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = s->srq != NULL ? s->srq->srq : NULL,
		.qp_type = perf_type_qpt((enum perf_type)s->params.type),
		.cap = {.max_send_wr = (uint32_t)send_entries(s),
			.max_recv_wr = receives ? (uint32_t)s->params.rq_depth : 1,
			.max_send_sge = (uint32_t)s->params.sge,
			.max_recv_sge = 1,
			.max_inline_data = (uint32_t)s->params.inline_bytes},
	};

	memset(q, 0, sizeof(*q));
	q->idx = idx;
	q->gen = gen;
	q->tx_limit = PERF_LIMITLESS;
	if (s->mem != NULL)
		q->mem = s->mem + perf_layout_stride(&s->layout, &s->params, idx);
	q->remote = s->remote_addr + perf_layout_stride(&s->layout, &s->params, idx);
	q->tx_key = perf_key(s->params.seed, idx, gen, s->server);
	q->rx_key = perf_key(s->params.seed, idx, gen, !s->server);
	cut_pieces(s, q);
	if (s->mem != NULL)
		reset_memory(s, q);
	q->qp = uroce_create_qp(s->ep->pd, &attr);
	if (q->qp == NULL) {
		perf_session_fail(s, "cannot create queue pair %u: %s", idx, strerror(errno));
		return false;
	}
	if (s->srq != NULL)
		hash_insert(s, idx);
	return take_share(s, q, share) && choose_mode(s, q) && make_victims(s, q);
}

uint8_t *perf_session_rx_buffer(struct perf_session *s, uint32_t idx, uint32_t slot)
{
	return s->mem + perf_layout_stride(&s->layout, &s->params, idx) + s->layout.rx +
	       slot * s->layout.rx_step;
}

void perf_session_close_qp(struct perf_session *s, uint32_t idx)
{
	struct perf_qp *q = &s->qps[idx];
	bool existed = q->qp != NULL;

	q->up = false;
	q->closing = true;
	s->in_flight -= q->tx_next - q->tx_done;
	q->tx_done = q->tx_next;
	if (q->id != NULL)
		uroce_cm_destroy_id(q->id);
	if (q->ah != NULL)
		uroce_destroy_ah(q->ah);
	if (q->qp != NULL)
		uroce_destroy_qp(q->qp);
	for (uint32_t i = 0; i < q->victims_cnt; i++)
		uroce_dereg_mr(q->victims[i]);
	free(q->victims);
	q->victims = NULL;
	q->victims_cnt = 0;
	q->id = NULL;
	q->ah = NULL;
	q->qp = NULL;
	if (existed && s->srq != NULL)
		hash_rebuild(s);
}

bool perf_session_pair_local(struct perf_session *s, uint32_t idx, struct perf_pair *pair,
			     const struct sockaddr_storage *local)
{
	struct perf_qp *q = &s->qps[idx];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	union ibv_gid gid;
	int rc;

	perf_endpoint_gid_index(s->ep, local, &gid);
	rc = uroce_modify_qp(q->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	if (rc == 0) {
		if (!perf_session_arm_qp(s, idx))
			return false;
		attr.qp_state = IBV_QPS_RTR;
		rc = uroce_modify_qp(q->qp, &attr, IBV_QP_STATE);
	}
	if (rc == 0) {
		attr.qp_state = IBV_QPS_RTS;
		rc = uroce_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	}
	if (rc != 0) {
		perf_session_fail(s, "cannot bring UD queue pair %u up: %s", idx, strerror(rc));
		return false;
	}
	*pair = (struct perf_pair){
		.idx = idx,
		.sl = q->share.sl,
		.priority = q->share.priority,
		.weight = q->share.weight,
		.qpn = q->qp->qp_num,
		.qkey = QKEY,
		.gid_high = be64toh(gid.global.subnet_prefix),
		.gid_low = be64toh(gid.global.interface_id),
	};
	return true;
}

bool perf_session_pair_remote(struct perf_session *s, const struct perf_pair *pair,
			      const struct sockaddr_storage *local)
{
	struct perf_qp *q = &s->qps[pair->idx];
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .sl = q->share.sl};
	union ibv_gid gid;

	attr.grh.hop_limit = 64;
	attr.grh.sgid_index = (uint8_t)perf_endpoint_gid_index(s->ep, local, &gid);
	attr.grh.dgid.global.subnet_prefix = htobe64(pair->gid_high);
	attr.grh.dgid.global.interface_id = htobe64(pair->gid_low);
	q->ah = uroce_create_ah(s->ep->pd, &attr);
	if (q->ah == NULL) {
		perf_session_fail(s, "cannot create an address handle of SL %u to the peer: %s",
				  q->share.sl, strerror(errno));
		return false;
	}
	q->remote_qpn = (uint32_t)pair->qpn;
	q->remote_qkey = (uint32_t)pair->qkey;
	q->up = true;
	return true;
}

void perf_session_mark(struct perf_session *s)
{
	memset(&s->stats, 0, sizeof(s->stats));
	s->stats.in_flight_least = UINT64_MAX;
	uroce_query_counters(s->ep->ctx, &s->stats.start_counters);
	s->stats.start_cpu_ns = perf_cpu_ns();
	s->stats.step_ns = s->stats.start_ns = perf_now_ns();
	for (uint32_t i = 0; i < s->params.qps; i++)
		s->qps[i].mark_done = s->qps[i].tx_done;
	if (s->hist != NULL)
		perf_histogram_reset(s->hist);
	if (s->ping_hist != NULL)
		perf_histogram_reset(s->ping_hist);
}

void perf_session_end(struct perf_session *s)
{
	if (s->stats.end_ns != 0)
		return;
	s->stats.end_ns = perf_now_ns();
	s->stats.end_cpu_ns = perf_cpu_ns();
	uroce_query_counters(s->ep->ctx, &s->stats.end_counters);
	s->stats.end_ops = s->stats.ops;
	s->stats.end_bytes = s->stats.bytes;
	s->stats.end_rx_messages = s->stats.rx_messages;
	s->stats.end_rx_bytes = s->stats.rx_bytes;
	memcpy(s->stats.end_sl, s->stats.sl, sizeof(s->stats.end_sl));
	for (uint32_t i = 0; i < s->params.qps; i++)
		s->qps[i].end_done = s->qps[i].tx_done;
}

void perf_fairness_add(struct perf_fairness *f, const struct perf_fairness *other)
{
	f->least = other->least < f->least ? other->least : f->least;
	f->most = other->most > f->most ? other->most : f->most;
	f->qps += other->qps;
	f->sum += other->sum;
	f->squares += other->squares;
	f->jain = f->squares > 0 ? f->sum * f->sum / ((double)f->qps * f->squares) : 0;
}

struct perf_fairness perf_session_fairness(const struct perf_session *s)
{
	struct perf_fairness f = {.least = UINT64_MAX};

	for (uint32_t i = 0; i < s->params.qps; i++) {
		uint64_t n = s->qps[i].end_done - s->qps[i].mark_done;

		if (i == s->ping)
			continue;
		perf_fairness_add(&f, &(struct perf_fairness){.least = n,
							      .most = n,
							      .qps = 1,
							      .sum = (double)n,
							      .squares = (double)n * (double)n});
	}
	return f;
}

struct perf_in_flight perf_session_in_flight(const struct perf_session *s)
{
	const struct perf_stats *t = &s->stats;

	if (t->steps == 0)
		return (struct perf_in_flight){0};
	return (struct perf_in_flight){t->in_flight_least,
				       (double)t->in_flight_sum / (double)t->steps};
}

void perf_session_result(const struct perf_session *s, struct perf_result *r)
{
	const struct perf_stats *t = &s->stats;
	struct uroce_counters now = t->end_counters;

	memset(r, 0, sizeof(*r));
	r->ops = t->end_ops;
	r->bytes = t->end_bytes;
	r->rx_messages = t->end_rx_messages;
	r->rx_bytes = t->end_rx_bytes;
	r->errors = s->errors;
	r->missing = t->missing;
	r->reordered = t->reordered;
	r->checked = t->checked;
	r->duration_ns = t->end_ns - t->start_ns;
	r->pause_ns = t->pause_ns;
	r->paused_ms = t->paused_ms;
	r->cpu_ns = t->end_cpu_ns - t->start_cpu_ns;
	if (s->mem != NULL)
		r->fetch_adds = *(volatile uint64_t *)s->mem;
#define X(name, unit, help) r->counters.name = now.name - t->start_counters.name;
	UROCE_COUNTERS(X)
#undef X
	memcpy(r->text, s->text, sizeof(r->text));
}
