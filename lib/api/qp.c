/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/wait.h"
#include "api/follow.h"
#include "api/mcast.h"
#include "api/qp_ex.h"
#include "edge/random.h"
#include "engine/query.h"
#include "engine/verbs.h"

#define WR_MAX 32768

/* ---- create ---- */

struct create_qp {
	struct ur_engine *engine;
	struct ur_qp_create attr;
	struct ur_qp *qp;
	int rc;
};

static void create_on_worker(void *arg, uint64_t now_ns)
{
	struct create_qp *c = arg;

	c->rc = ur_engine_create_qp(c->engine, &c->attr, now_ns, &c->qp);
}

static bool is_of(const struct ibv_context *ctx, const struct ibv_qp_init_attr *a)
{
	return a->send_cq && a->send_cq->context == ctx && a->recv_cq &&
	       a->recv_cq->context == ctx && (!a->srq || a->srq->context == ctx);
}

static bool is_supported(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

static bool caps_fit(const struct ibv_context *ctx, const struct ibv_qp_init_attr *a)
{
	const struct ur_device *dev = ur_device(ctx);
	const struct ibv_qp_cap *cap = &a->cap;

	return is_of(ctx, a) && cap->max_send_wr <= WR_MAX &&
	       (a->srq || cap->max_recv_wr <= WR_MAX) &&
	       cap->max_send_sge <= dev->cfg.transport.max_sge &&
	       (a->srq || cap->max_recv_sge <= dev->cfg.transport.max_sge) &&
	       cap->max_inline_data <= dev->cfg.transport.max_inline;
}

/*
 * Raises the requested capacities to the minimum of a ring. A WQE has room for the scatter list or for inline data, so
 * that much may be inline without cost, as with Linux's rxe. Some programs rely on it.
 */
static void grant(const struct ur_device *dev, struct ibv_qp_init_attr *a)
{
	struct ibv_qp_cap *cap = &a->cap;
	uint32_t room;

	cap->max_send_wr += !cap->max_send_wr;
	cap->max_recv_wr += !cap->max_recv_wr;
	cap->max_send_sge += !cap->max_send_sge;
	cap->max_recv_sge += !cap->max_recv_sge;
	room = cap->max_send_sge * (uint32_t)sizeof(struct ibv_sge);
	if (room > dev->cfg.transport.max_inline)
		room = dev->cfg.transport.max_inline;
	if (cap->max_inline_data < room)
		cap->max_inline_data = room;
}

/* Takes references to the CQs and the SRQ. An SRQ belongs to the worker of its first QP. */
static int take_refs(struct ur_device *dev, struct ibv_pd *pd, const struct ibv_qp_init_attr *a,
		     uint16_t worker)
{
	struct ur_api_srq *srq = UR_API(srq, a->srq);
	int rc = 0;

	pthread_mutex_lock(&dev->lock);
	if (srq && srq->refs && srq->worker != worker) {
		rc = EINVAL;
	} else {
		if (srq) {
			srq->worker = worker;
			srq->refs++;
		}
		UR_API(cq, a->send_cq)->refs++;
		UR_API(cq, a->recv_cq)->refs++;
		UR_API(pd, pd)->refs++;
		ur_context_count_locked(pd->context, &dev->objects.qps, 1);
	}
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

static void drop_refs(struct ur_device *dev, struct ibv_pd *pd, const struct ibv_qp_init_attr *a)
{
	pthread_mutex_lock(&dev->lock);
	if (a->srq)
		UR_API(srq, a->srq)->refs--;
	UR_API(cq, a->send_cq)->refs--;
	UR_API(cq, a->recv_cq)->refs--;
	UR_API(pd, pd)->refs--;
	ur_context_count_locked(pd->context, &dev->objects.qps, -1);
	pthread_mutex_unlock(&dev->lock);
}

static void free_qp(struct ur_device *dev, struct ur_api_qp *qp)
{
	ur_slab_free(&dev->slab, qp->rings, qp->rings_bytes);
	ur_slab_free(&dev->slab, qp, qp->bytes);
}

static struct ibv_qp *fail_create(struct ur_device *dev, struct ur_api_qp *qp, int err)
{
	if (qp)
		free_qp(dev, qp);
	errno = err;
	return NULL;
}

static struct ur_api_qp *new_qp(struct ur_device *dev, const struct ibv_qp_cap *cap, bool extended)
{
	size_t bytes = ur_api_qp_bytes(cap, extended);
	struct ur_api_qp *qp = ur_slab_alloc(&dev->slab, bytes);

	if (!qp)
		return NULL;
	qp->bytes = bytes;
	if (extended)
		ur_api_qp_extend(qp, cap);
	return qp;
}

struct ibv_qp *ur_api_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, bool extended)
{
	struct ur_device *dev = ur_device(pd->context);
	struct ur_api_qp *qp;
	struct create_qp c = {.rc = -EIO};
	uint32_t qpn;
	int rc;

	if (!is_supported(attr->qp_type))
		return fail_create(dev, NULL, EOPNOTSUPP);
	if (!caps_fit(pd->context, attr))
		return fail_create(dev, NULL, EINVAL);
	grant(dev, attr);
	qp = new_qp(dev, &attr->cap, extended);
	if (!qp)
		return fail_create(dev, NULL, ENOMEM);
	qp->worker = UR_API(cq, attr->recv_cq)->worker;
	c.engine = ur_worker_engine(qp->worker);
	c.attr = (struct ur_qp_create){
		.type = attr->qp_type,
		.pd = pd->handle,
		.send_cq = UR_API(cq, attr->send_cq)->cq,
		.recv_cq = UR_API(cq, attr->recv_cq)->cq,
		.srq = attr->srq ? UR_API(srq, attr->srq)->srq : NULL,
		.cap = attr->cap,
		.sig_all = attr->sq_sig_all,
		.max_dest_rd_atomic =
			attr->qp_type == IBV_QPT_RC ? (uint8_t)dev->cfg.transport.max_rd_atomic : 0,
		.random = ur_random64(),
		.user = &qp->qp,
	};
	qp->rings_bytes = ur_qp_rings_bytes(&c.attr);
	qp->rings = ur_slab_alloc(&dev->slab, qp->rings_bytes);
	if (!qp->rings)
		return fail_create(dev, qp, ENOMEM);
	c.attr.rings = qp->rings;
	rc = take_refs(dev, pd, attr, ur_engine_cq_worker(UR_API(cq, attr->recv_cq)->cq));
	if (rc)
		return fail_create(dev, qp, rc);
	ur_worker_call(qp->worker, create_on_worker, &c);
	if (c.rc) {
		drop_refs(dev, pd, attr);
		return fail_create(dev, qp, -c.rc);
	}
	if (attr->qp_type == IBV_QPT_RC && attr->send_cq == attr->recv_cq)
		ur_api_cq_note_use(UR_API(cq, attr->recv_cq), UR_CQ_USE_SEND_AND_RECV);
	qp->qp = c.qp;
	qp->init = *attr;
	qp->want = (struct ur_mode_want){
		.mode = (enum uroce_qp_mode)dev->cfg.transport.mode,
		.strict = dev->cfg.transport.strict,
		.spray = (uint8_t)dev->cfg.transport.spray,
	};
	qp->reason =
		attr->qp_type == IBV_QPT_RC ? UROCE_MODE_REASON_OPEN : UROCE_MODE_REASON_SERVICE;
	qp->thread_safe = ur_api_is_thread_safe(dev, UR_API(pd, pd));
	pthread_mutex_init(&qp->sq_lock, NULL);
	pthread_mutex_init(&qp->rq_lock, NULL);
	qpn = ur_engine_qpn(qp->qp).v;
	qp->base = (struct ibv_qp){.context = pd->context,
				   .qp_context = attr->qp_context,
				   .pd = pd,
				   .send_cq = attr->send_cq,
				   .recv_cq = attr->recv_cq,
				   .srq = attr->srq,
				   .handle = qpn,
				   .qp_num = qpn,
				   .state = IBV_QPS_RESET,
				   .qp_type = attr->qp_type};
	pthread_mutex_init(&qp->base.mutex, NULL);
	pthread_cond_init(&qp->base.cond, NULL);
	pthread_mutex_lock(&dev->lock);
	LIST_INSERT_HEAD(&ur_context(pd->context)->qps, qp, link);
	pthread_mutex_unlock(&dev->lock);
	return &qp->base;
}

struct ibv_qp *uroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return ur_api_create_qp(pd, attr, false);
}

/* ---- modify, query, destroy ---- */

struct modify_qp {
	struct ur_device *dev;
	struct ur_worker *worker;
	struct ur_engine *engine;
	struct ur_qp *qp;
	const struct ibv_qp_attr *attr;
	struct ur_path_attr *path;
	const struct ur_qp_mode *mode; /* for an RC queue pair on its way to RTR, else NULL */
	int mask, rc;
};

/* QP-TIMEOUT-01. An invalid value stays invalid, and 0 means that there is none. */
static void raise_timeout(const struct ur_device *dev, struct ibv_qp_attr *a, int mask)
{
	if (mask & IBV_QP_TIMEOUT && a->timeout && a->timeout < dev->cfg.transport.min_timeout)
		a->timeout = (uint8_t)dev->cfg.transport.min_timeout;
}

static void modify_on_worker(void *arg, uint64_t now_ns)
{
	struct modify_qp *m = arg;
	struct ibv_qp_attr attr = *m->attr;

	/* EDGE-OWED-01: otherwise a program may end before its last ACK is sent, and its peer fails. */
	if (m->mask & IBV_QP_STATE &&
	    (m->attr->qp_state == IBV_QPS_ERR || m->attr->qp_state == IBV_QPS_RESET)) {
		ur_engine_flush_qp_acks(m->qp);
		ur_worker_flush(m->worker);
	}
	/* In a wrong state this fails, and so will the modify. */
	if (m->mode)
		ur_engine_set_mode(m->qp, m->mode);
	/* The DSCP/PCP map may have changed since the path was resolved. */
	if (m->path)
		ur_dscp_map_set_attr(m->dev, &m->attr->ah_attr, m->path);
	raise_timeout(m->dev, &attr, m->mask);
	m->rc = ur_engine_modify_qp(m->engine, m->qp, &attr, m->mask, m->path, now_ns);
}

/* CQ-RESET-01 */
static void forget_completions(struct ur_device *dev, struct ur_api_qp *qp)
{
	struct ur_api_cq *send = UR_API(cq, qp->base.send_cq), *recv = UR_API(cq, qp->base.recv_cq);

	/* Some may still be in transit between workers. */
	if (send->worker != qp->worker) {
		ur_device_quiesce(dev);
		ur_device_quiesce(dev);
	}
	ur_api_cq_forget(send, ur_qpn(qp->base.qp_num));
	if (recv != send)
		ur_api_cq_forget(recv, ur_qpn(qp->base.qp_num));
}

/* The mode of a queue pair that is connected without the CM. */
static struct ur_mode_verdict mode_by_hand(const struct ur_mode_want *want)
{
	struct ur_mode_case c = {.rc = true, .want = want->mode};

	return ur_mode_decide(&c);
}

int uroce_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	return ur_api_modify_qp(base, attr, mask, NULL, NULL);
}

int ur_api_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
		     const struct ur_mode_verdict *verdict, const uint8_t *dmac)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_qp *qp = UR_API(qp, base);
	struct ur_path_attr path;
	struct modify_qp m = {.dev = dev,
			      .worker = qp->worker,
			      .engine = ur_worker_engine(qp->worker),
			      .qp = qp->qp,
			      .attr = attr,
			      .mask = mask,
			      .rc = -EIO};
	struct ur_mode_want want = ur_api_qp_want(qp);
	struct ur_mode_verdict by_hand = mode_by_hand(&want);
	struct ur_qp_mode mode;
	uint32_t generation = ur_follow_generation(dev);
	int rc;

	if (mask & IBV_QP_AV) {
		uint32_t rqpn = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : 0;

		rc = ur_device_resolve(dev, &attr->ah_attr, dmac, ur_qpn(base->qp_num),
				       ur_qpn(rqpn), &path);
		if (rc)
			return rc;
		m.path = &path;
	}
	if (base->qp_type == IBV_QPT_RC && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR) {
		verdict = verdict ? verdict : &by_hand;
		mode = (struct ur_qp_mode){
			.mode = verdict->mode,
			.strict = want.strict,
			.paths = want.spray < UR_SPRAY_MAX ? want.spray : UR_SPRAY_MAX,
			.agreed = verdict->agreed,
		};
		m.mode = &mode;
	}
	ur_worker_call(qp->worker, modify_on_worker, &m);
	if (m.rc)
		return -m.rc;
	if (m.path)
		ur_follow_since(dev, generation);
	if (mask & IBV_QP_TIMEOUT)
		qp->timeout = attr->timeout;
	if (mask & IBV_QP_STATE)
		base->state = attr->qp_state;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		forget_completions(dev, qp);
	if (mask & IBV_QP_AV)
		atomic_store_explicit(&qp->sl, attr->ah_attr.sl, memory_order_relaxed);
	if (m.mode)
		ur_api_record_qp_mode(qp, verdict->reason);
	else if (base->qp_type == IBV_QPT_RC && mask & IBV_QP_STATE &&
		 attr->qp_state == IBV_QPS_RESET)
		ur_api_record_qp_mode(qp, UROCE_MODE_REASON_OPEN);
	return 0;
}

static void query_on_worker(void *arg, uint64_t now_ns)
{
	struct modify_qp *m = arg;

	ur_engine_query_qp(m->qp, (struct ibv_qp_attr *)(uintptr_t)m->attr);
	m->rc = 0;
}

int uroce_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ur_api_qp *qp = UR_API(qp, base);
	struct modify_qp m = {.qp = qp->qp, .attr = attr, .rc = -EIO};

	ur_worker_call(qp->worker, query_on_worker, &m);
	if (m.rc)
		return -m.rc;
	base->state = attr->qp_state;
	if (attr->timeout) /* it has not been reset */
		attr->timeout = qp->timeout;
	attr->cap = qp->init.cap;
	if (init)
		*init = qp->init;
	return 0;
}

static void destroy_on_worker(void *arg, uint64_t now_ns)
{
	struct modify_qp *m = arg;

	ur_engine_flush_qp_acks(m->qp);
	ur_worker_flush(m->worker);
	ur_engine_destroy_qp(m->engine, m->qp, now_ns);
}

int uroce_destroy_qp(struct ibv_qp *base)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_qp *qp = UR_API(qp, base);
	struct modify_qp m = {
		.worker = qp->worker, .engine = ur_worker_engine(qp->worker), .qp = qp->qp};
	bool attached;

	pthread_mutex_lock(&dev->lock);
	attached = ur_mcast_is_attached(qp);
	if (!attached)
		LIST_REMOVE(qp, link);
	pthread_mutex_unlock(&dev->lock);
	if (attached)
		return EBUSY;
	ur_cm_api_qp_gone(dev, base);
	ur_worker_call(qp->worker, destroy_on_worker, &m);
	drop_refs(dev, base->pd, &qp->init);
	ur_device_wait_acks(&base->mutex, &base->cond, &base->events_completed,
			    ur_async_purge(base->context, &qp->async));
	pthread_mutex_destroy(&base->mutex);
	pthread_cond_destroy(&base->cond);
	pthread_mutex_destroy(&qp->sq_lock);
	pthread_mutex_destroy(&qp->rq_lock);
	free_qp(dev, qp);
	return 0;
}

/* ---- post ---- */

static inline bool has_service(const struct ur_device *dev, const struct ur_api_qp *qp,
			       const struct ibv_send_wr *wr)
{
	unsigned sl = atomic_load_explicit(&qp->sl, memory_order_relaxed);

	if (qp->base.qp_type == IBV_QPT_UD)
		sl = wr->wr.ud.ah ? ((const struct ur_ah *)(const void *)wr->wr.ud.ah)->sl : 0;
	return ur_device_serves(dev, sl);
}

bool ur_api_has_service(const struct ur_api_qp *qp, const struct ibv_send_wr *wr)
{
	return has_service(ur_device(qp->base.context), qp, wr);
}

int uroce_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	const struct ur_device *dev = ur_device(base->context);
	struct ur_api_qp *qp = UR_API(qp, base);
	unsigned posted = 0;
	int rc = 0;

	ur_api_lock(qp->thread_safe, &qp->sq_lock);
	for (; wr; wr = wr->next, posted++) {
		rc = has_service(dev, qp, wr) ? ur_engine_post_send(qp->qp, wr) : EINVAL;
		if (rc) {
			*bad_wr = wr;
			break;
		}
	}
	ur_api_unlock(qp->thread_safe, &qp->sq_lock);
	if (posted)
		ur_worker_doorbell(qp->worker, qp->qp, posted);
	return rc;
}

int uroce_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ur_api_qp *qp = UR_API(qp, base);
	bool flushes;
	int rc;

	ur_api_lock(qp->thread_safe, &qp->rq_lock);
	rc = ur_engine_post_recv(qp->qp, wr, bad_wr, &flushes);
	ur_api_unlock(qp->thread_safe, &qp->rq_lock);
	if (flushes)
		ur_worker_doorbell(qp->worker, qp->qp, 1);
	return rc;
}
