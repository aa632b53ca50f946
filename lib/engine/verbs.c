/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/verbs.h"

#include <errno.h>

#include "engine/engine_priv.h"
#include "engine/prefetch.h"
#include "mem/window.h"
#include "transport/admission.h"
#include "transport/dest.h"
#include "transport/qp.h"
#include "wire/assert.h"
#include "wire/bits.h"

/* ---- completion queues ---- */

size_t ur_engine_cq_size(uint32_t cqe)
{
	return ur_align64(sizeof(struct ur_cq)) + ur_cq_ring_bytes(cqe);
}

struct ur_cq *ur_engine_create_cq(void *memory, const struct ur_cq_create *attr)
{
	struct ur_cq *cq = memory;

	UR_ASSERT(((uintptr_t)memory & 63) == 0);
	ur_cq_init(cq, (uint8_t *)memory + ur_align64(sizeof(*cq)), attr->cqe, attr->worker,
		   attr->user);
	cq->unarmed = attr->unarmed;
	return cq;
}

unsigned ur_engine_poll_cq(struct ur_cq *cq, unsigned n, struct ibv_wc *wc)
{
	return ur_cq_poll(cq, n, wc);
}

bool ur_engine_arm_cq(struct ur_cq *cq, bool solicited_only)
{
	return ur_cq_arm(cq, solicited_only) && ur_cq_disarm(cq);
}

size_t ur_engine_cq_ring_bytes(uint32_t cqe)
{
	return ur_align64(ur_cq_ring_bytes(cqe));
}

int ur_engine_resize_cq(struct ur_cq *cq, void *ring, uint32_t cqe)
{
	return ur_cq_resize(cq, ring, cqe) ? 0 : -EINVAL;
}

void ur_engine_forget_completions(struct ur_cq *cq, struct ur_qpn qpn)
{
	ur_cq_forget_qp(cq, qpn.v);
}

uint16_t ur_engine_cq_worker(const struct ur_cq *cq)
{
	return cq->worker;
}

void *ur_engine_cq_user(const struct ur_cq *cq)
{
	return cq->user;
}

/* ---- shared receive queues ---- */

size_t ur_engine_srq_size(void)
{
	return ur_align64(sizeof(struct ur_srq));
}

size_t ur_engine_srq_ring_bytes(uint32_t entries, uint32_t max_sge)
{
	return ur_align64(ur_rq_ring_bytes(entries, max_sge));
}

struct ur_srq *ur_engine_create_srq(void *memory, const struct ur_srq_create *attr)
{
	struct ur_srq *srq = memory;

	UR_ASSERT(((uintptr_t)memory & 63) == 0);
	memset(srq, 0, sizeof(*srq));
	ur_srq_init(srq, attr->ring, attr->entries, attr->max_sge, attr->pd, attr->user);
	srq->pool = attr->pool;
	return srq;
}

int ur_engine_post_srq_recv(struct ur_srq *srq, const struct ibv_recv_wr *wr)
{
	return ur_rq_post(&srq->rq, wr);
}

int ur_engine_resize_srq(struct ur_srq *srq, void *ring, uint32_t entries)
{
	return ur_srq_resize(srq, ring, entries);
}

bool ur_engine_set_srq_limit(struct ur_srq *srq, uint32_t limit)
{
	bool reached = ur_wq_cnt(&srq->rq) < limit;

	srq->limit = reached ? 0 : limit;
	return reached;
}

void ur_engine_query_srq(const struct ur_srq *srq, struct ibv_srq_attr *out)
{
	*out = (struct ibv_srq_attr){
		.max_wr = srq->rq.entries, .max_sge = srq->rq.max_sge, .srq_limit = srq->limit};
}

/* ---- queue pairs ---- */

struct rings {
	size_t sq, rq, srq_wqe, res, ans, total;
};

static bool is_reliable(const struct ur_qp_create *a)
{
	const struct ur_qp_ops *ops = ur_qp_ops_of(a->type, UR_MODE_GBN);

	return ops && ops->reliable;
}

/* READs and atomics that can be remembered: what is not reliable answers none. */
static uint8_t resources_of(const struct ur_qp_create *a)
{
	return is_reliable(a) ? a->max_dest_rd_atomic : 0;
}

/* Extended mode: READs and atomics being answered, for the first time or again. */
static uint16_t answers_of(const struct ur_qp_create *a)
{
	return (uint16_t)(2 * resources_of(a));
}

static struct rings rings_of(const struct ur_qp_create *a)
{
	struct rings r = {0};

	r.sq = 0;
	r.rq = r.sq + ur_align64(ur_sq_ring_bytes(a->cap.max_send_wr, a->cap.max_send_sge,
						  a->cap.max_inline_data));
	r.srq_wqe =
		r.rq +
		(a->srq ? 0
			: ur_align64(ur_rq_ring_bytes(a->cap.max_recv_wr, a->cap.max_recv_sge)));
	r.res = r.srq_wqe + (a->srq ? ur_align64(a->srq->rq.stride) : 0);
	r.ans = r.res + ur_align64(resources_of(a) * sizeof(struct ur_rd_res));
	/* ur_ext_own() */
	r.total = r.ans + ur_align64(answers_of(a) * sizeof(struct ur_ext_answer) +
				     (is_reliable(a) ? sizeof(struct ur_ext_own) : 0));
	return r;
}

static bool has_queues(const struct ur_qp_create *a)
{
	return a->cap.max_send_wr && a->cap.max_send_wr <= UR_WQ_ENTRIES_MAX &&
	       (a->srq || (a->cap.max_recv_wr && a->cap.max_recv_wr <= UR_WQ_ENTRIES_MAX));
}

size_t ur_qp_rings_bytes(const struct ur_qp_create *a)
{
	return has_queues(a) ? rings_of(a).total : 0;
}

/* QP-CREATE-01 */
int ur_engine_create_qp(struct ur_engine *e, const struct ur_qp_create *a, uint64_t now_ns,
			struct ur_qp **out)
{
	const struct ur_qp_ops *ops = ur_qp_ops_of(a->type, UR_MODE_GBN);
	uint8_t *mem = a->rings;
	struct rings r;
	struct ur_qp *qp;

	if (!ops || !has_queues(a) || !a->send_cq || !a->recv_cq ||
	    a->max_dest_rd_atomic > UR_RD_ATOMIC_MAX || a->recv_cq->worker != e->core.worker ||
	    (a->srq && a->srq->pd != a->pd) || ((uintptr_t)mem & 63))
		return -EINVAL;
	r = rings_of(a);
	qp = ur_slots_take(&e->slots, now_ns, a->random);
	if (!qp)
		return -ENOMEM;
	qp->core = &e->core;
	qp->ops = ops;
	qp->pd = a->pd;
	qp->pkey = 0xffff;
	qp->sig_all = a->sig_all;
	qp->send_cq = a->send_cq;
	qp->recv_cq = a->recv_cq;
	qp->srq = a->srq;
	qp->has_srq = a->srq != NULL;
	qp->user = a->user;
	qp->path = &ur_path_none;
	qp->window = e->window;
	qp->req.ackreq_every =
		e->ackreq_every < UINT16_MAX ? (uint16_t)e->ackreq_every : UINT16_MAX;
	qp->port_mtu_shift = e->mtu_shift;
	qp->res_max = resources_of(a);
	ur_emux_queue_init(&e->core.emux, &qp->sq_queue, NODE_SQ, 0);
	qp->sq_queue.may_lead = true;
	ur_emux_queue_init(&e->core.emux, &qp->rsp_queue, NODE_RSP, 0);
	if (ops->reliable)
		qp->ack_node.kind = NODE_ACK;
	else
		qp->settle_node.kind = NODE_SETTLE;
	qp->timer.kind = UR_TIMER_QP;
	ur_sq_init(&qp->sq, ops, mem + r.sq, a->cap.max_send_wr, a->cap.max_send_sge,
		   a->cap.max_inline_data);
	if (a->srq) {
		if (!a->srq->qp_cnt++)
			ur_admission_join(&e->core, a->srq);
		qp->rsp.srq_wqe = (struct ur_rwqe *)(void *)(mem + r.srq_wqe);
	} else {
		ur_rq_init(&qp->rq, mem + r.rq, a->cap.max_recv_wr, a->cap.max_recv_sge);
	}
	qp->rsp.res = (struct ur_rd_res *)(void *)(mem + r.res);
	qp->rsp.ans = (struct ur_ext_answer *)(void *)(mem + r.ans);
	qp->rsp.ans_cap = answers_of(a);
	ur_qp_reset(qp);
	*out = qp;
	return 0;
}

int ur_engine_modify_qp(struct ur_engine *e, struct ur_qp *qp, const struct ibv_qp_attr *attr,
			int mask, const struct ur_path_attr *path, uint64_t now_ns)
{
	int rc = ur_qp_modify_check(qp, attr, mask, path);

	if (rc)
		return rc;
	ur_qp_modify(qp, attr, mask, path);
	if ((mask & IBV_QP_AV) && qp->ops->connected && e->core.dests &&
	    qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_ERR)
		ur_dest_attach(qp, now_ns);
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTR && qp->ops->connect)
		qp->ops->connect(qp, now_ns);
	return 0;
}

/* QP-DESTROY-01 */
void ur_engine_destroy_qp(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns)
{
	ur_qp_reset(qp);
	/* MW-QP-01 */
	if (qp->has_bound)
		ur_windows_forget_qp(e->core.mem, qp->qpn.v);
	if (qp->srq && !--qp->srq->qp_cnt)
		ur_admission_leave(qp->srq);
	ur_path_pool_give(&e->core.paths, &qp->path);
	ur_slots_give(&e->slots, qp, now_ns + e->time_wait_ns);
}

int ur_engine_set_mode(struct ur_qp *qp, const struct ur_qp_mode *mode)
{
	int rc = ur_qp_set_mode(qp, mode->mode, mode->strict);

	if (!rc)
		rc = ur_qp_set_paths(qp, mode->paths);
	if (!rc)
		rc = ur_qp_set_agreed(qp, &mode->agreed);
	return rc;
}

/* To the next state, with the attributes that it requires. */
static int go_to(struct ur_engine *e, struct ur_qp *qp, enum ibv_qp_state next,
		 struct ibv_qp_attr *a, const struct ur_path_attr *path, uint64_t now_ns)
{
	int mask = ur_qp_state_required(qp->ops->service, qp->state, next);

	a->qp_state = next;
	return ur_engine_modify_qp(e, qp, a, mask | IBV_QP_STATE, path, now_ns);
}

int ur_engine_connect_qp(struct ur_engine *e, struct ur_qp *qp, const struct ur_qp_connection *c,
			 uint64_t now_ns)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = c->access,
		.path_mtu = c->path_mtu,
		.dest_qp_num = c->dest_qpn.v,
		.rq_psn = c->rq_psn.v,
		.sq_psn = c->sq_psn.v,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = qp->res_max,
		.max_dest_rd_atomic = qp->res_max,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	int err;

	if (qp->state != IBV_QPS_RESET || !qp->ops->connected ||
	    ur_gid_is_ipv4(&c->path.src) != ur_gid_is_ipv4(&c->path.dst))
		return -EINVAL;
	err = qp->ops->reliable ? ur_engine_set_mode(qp, &c->mode) : 0;
	if (!err)
		err = go_to(e, qp, IBV_QPS_INIT, &a, NULL, now_ns);
	if (!err)
		err = go_to(e, qp, IBV_QPS_RTR, &a, &c->path, now_ns);
	if (!err)
		err = go_to(e, qp, IBV_QPS_RTS, &a, NULL, now_ns);
	a.qp_state = IBV_QPS_RESET;
	if (err)
		ur_engine_modify_qp(e, qp, &a, IBV_QP_STATE, NULL, now_ns);
	return err;
}

void ur_engine_flush_qp_acks(struct ur_qp *qp)
{
	qp->ops->ack_all(qp);
}

void ur_engine_set_share(struct ur_qp *qp, uint8_t priority, uint8_t weight)
{
	struct ur_emux *x = &qp->core->emux;

	ur_emux_set_share(x, &qp->sq_queue, priority, weight);
	ur_emux_set_share(x, &qp->rsp_queue, priority, weight);
}

struct ur_qp *ur_engine_find_qp(struct ur_engine *e, struct ur_qpn qpn)
{
	return ur_slots_find(&e->slots, qpn);
}

struct ur_qpn ur_engine_qpn(const struct ur_qp *qp)
{
	return qp->qpn;
}

void ur_engine_for_each_qp(struct ur_engine *e, void (*fn)(struct ur_qp *qp, void *ctx), void *ctx)
{
	for (uint32_t i = 0; i < e->slots.slot_cnt; i++)
		if (e->slots.qps[i].core)
			fn(&e->slots.qps[i], ctx);
}

void ur_engine_for_each_path(struct ur_engine *e,
			     void (*fn)(struct ur_path *path, const struct ibv_ah_attr *av,
					void *ctx),
			     void *ctx)
{
	for (uint32_t i = 0; i < e->slots.slot_cnt; i++) {
		struct ur_qp *qp = &e->slots.qps[i];
		struct ur_path path;

		if (!qp->core || qp->path == &ur_path_none)
			continue;
		/* What others share may be another one's no longer: its address vector differs. */
		path = *qp->path;
		fn(&path, &qp->attr.ah_attr, ctx);
		ur_path_pool_replace(&e->core.paths, &qp->path, &path);
	}
}

static void forget_ah_in_qp(struct ur_qp *qp, void *ctx)
{
	static const struct ur_ah gone; /* of no protection domain */
	const struct ur_ah *ah = ctx;

	if (qp->ops->connected)
		return;
	for (uint32_t i = qp->req.cur; i != ur_wq_tail(&qp->sq); i++) {
		struct ur_wqe_ext *ext =
			(struct ur_wqe_ext *)(uintptr_t)ur_wqe_ext(ur_sq_at(&qp->sq, i));

		if (ext->ud.ah == ah)
			ext->ud.ah = &gone;
	}
}

void ur_engine_forget_ah(struct ur_engine *e, const struct ur_ah *ah)
{
	ur_engine_for_each_qp(e, forget_ah_in_qp, (void *)(uintptr_t)ah);
}

/* ---- multicast groups ---- */

static bool is_attached(const struct ur_groups *g, const struct ur_gid *group, struct ur_qpn qpn)
{
	const struct ur_group_entry *a = ur_groups_first(g, group);

	while (a && a->qpn.v != qpn.v)
		a = ur_groups_next(g, a);
	return a;
}

/* MCAST-ATTACH-01 */
int ur_engine_attach(struct ur_engine *e, const struct ur_gid *group, struct ur_qpn qpn,
		     bool skip_own)
{
	bool ours = ur_qpn_worker(qpn, (uint16_t)(1u << e->slots.worker_bits)) == e->core.worker;
	struct ur_qp *qp = ours ? ur_slots_find(&e->slots, qpn) : NULL;

	if (!ur_gid_is_multicast(group) || (ours && (!qp || qp->ops->transport != UR_TRANSPORT_UD)))
		return -EINVAL;
	if (is_attached(&e->groups, group, qpn))
		return -EALREADY;
	return ur_groups_add(&e->groups, group, qpn, qp, skip_own) ? 0 : -ENOMEM;
}

int ur_engine_detach(struct ur_engine *e, const struct ur_gid *group, struct ur_qpn qpn)
{
	return ur_groups_remove(&e->groups, group, qpn) ? 0 : -EINVAL;
}

/* ---- posting ---- */

static enum ibv_qp_state posted_state(const struct ur_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->posted_state, memory_order_acquire);
}

int ur_engine_post_send(struct ur_qp *qp, const struct ibv_send_wr *wr)
{
	return ur_sq_post(&qp->sq, posted_state(qp), wr, qp->sig_all);
}

int ur_engine_stage_send(struct ur_qp *qp, uint32_t ahead, const struct ibv_send_wr *wr)
{
	return ur_sq_stage(&qp->sq, posted_state(qp), ahead, wr, qp->sig_all);
}

int ur_engine_publish_sends(struct ur_qp *qp, uint32_t cnt)
{
	return ur_sq_publish(&qp->sq, posted_state(qp), cnt);
}

uint32_t ur_engine_opcodes(enum ibv_qp_type type)
{
	const struct ur_qp_ops *ops = ur_qp_ops_of(type, UR_MODE_GBN);

	return ops ? ops->opcodes : 0;
}

int ur_engine_post_recv(struct ur_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
			bool *flushes)
{
	int rc = qp->srq || posted_state(qp) == IBV_QPS_RESET ? EINVAL : 0;

	for (; wr && !rc; wr = wr->next) {
		rc = ur_rq_post(&qp->rq, wr);
		if (rc)
			break;
	}
	*bad = wr;
	/*
	 * Against the worker's move to ERR, which stores the state and then reads the tail: one of
	 * the two flushes.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	*flushes = atomic_load(&qp->posted_state) == IBV_QPS_ERR;
	return rc;
}

/* Posts between a prefetch and the one that it is for: one alone takes less time than a line from memory. */
#define POSTS_AHEAD 3

/*
 * SCHED-PREFETCH-01. An application with thousands of queue pairs uses them in turn, so the next
 * doorbell is likely to be the one that followed last time. If this prediction was right for this queue
 * pair, the state of the third one from here is prefetched while this one sends, and so are the pointers of the one
 * after it. The memory of a slot stays valid without a queue pair.
 */
static void predict_next(struct ur_engine *e, struct ur_qp *qp)
{
	uint16_t slot = (uint16_t)(qp - e->slots.qps);
	struct ur_qp *last = e->last_doorbell;

	e->last_doorbell = qp;
	if (last->next_doorbell == slot && last != qp) {
		const struct ur_qp *next = qp;

		for (unsigned i = 0; i < POSTS_AHEAD; i++)
			next = &e->slots.qps[next->next_doorbell];
		ur_prefetch_identity(&e->slots.qps[next->next_doorbell]);
		ur_prefetch_poster(next);
	}
	last->next_doorbell = slot;
}

void ur_engine_doorbell(struct ur_engine *e, struct ur_qp *qp, uint64_t now_ns)
{
	predict_next(e, qp);
	/* What is posted behind something that can be sent changes nothing. */
	if (ur_emux_is_active(&qp->sq_queue) && !qp->admission)
		return;
	ur_qp_flush(qp);
	ur_qp_posted(qp);
}

bool ur_engine_mark_doorbell(struct ur_qp *qp)
{
	return atomic_exchange(&qp->pending, 1) == 0;
}

void ur_engine_take_doorbell(struct ur_qp *qp)
{
	/* Before the tail is read. */
	atomic_store(&qp->pending, 0);
}
