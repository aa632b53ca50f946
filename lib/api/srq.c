/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "api/device.h"
#include "api/wait.h"

#define WR_MAX 32768

static void *new_memory(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

struct ibv_srq *uroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ur_device *dev = ur_device(pd->context);
	struct ibv_srq_attr *a = &attr->attr;
	size_t own = (sizeof(struct ur_api_srq) + 63) & ~(size_t)63;
	struct ur_api_srq *srq;
	uint32_t pool;

	if (a->max_wr < 1 || a->max_wr > WR_MAX || a->max_sge > dev->cfg.transport.max_sge) {
		errno = EINVAL;
		return NULL;
	}
	/* The application's object, and behind it the engine's. */
	srq = new_memory(own + ur_engine_srq_size());
	if (!srq)
		return NULL;
	if (!a->max_sge)
		a->max_sge = 1;
	srq->ring = new_memory(ur_engine_srq_ring_bytes(a->max_wr, a->max_sge));
	pthread_mutex_lock(&dev->lock);
	if (!srq->ring || dev->objects.srqs >= dev->cfg.transport.max_srq) {
		pthread_mutex_unlock(&dev->lock);
		free(srq->ring);
		free(srq);
		errno = ENOMEM;
		return NULL;
	}
	ur_context_count_locked(pd->context, &dev->objects.srqs, 1);
	pool = ++dev->last_pool;
	UR_API(pd, pd)->refs++;
	pthread_mutex_unlock(&dev->lock);
	srq->base = (struct ibv_srq){
		.context = pd->context, .srq_context = attr->srq_context, .pd = pd};
	pthread_mutex_init(&srq->base.mutex, NULL);
	pthread_cond_init(&srq->base.cond, NULL);
	pthread_mutex_init(&srq->lock, NULL);
	srq->thread_safe = ur_api_is_thread_safe(dev, UR_API(pd, pd));
	srq->pool = pool;
	srq->max_wr = a->max_wr;
	srq->max_sge = a->max_sge;
	srq->srq = ur_engine_create_srq((uint8_t *)srq + own,
					&(struct ur_srq_create){.entries = a->max_wr,
								.max_sge = a->max_sge,
								.pd = pd->handle,
								.pool = pool,
								.ring = srq->ring,
								.user = srq});
	return &srq->base;
}

struct modify_srq {
	struct ur_srq *srq;
	void *ring; /* NULL: no resize */
	uint32_t entries, limit;
	int mask, rc;
	bool reached;
};

static void modify_on_worker(void *arg, uint64_t now_ns)
{
	struct modify_srq *m = arg;

	if (m->ring)
		m->rc = ur_engine_resize_srq(m->srq, m->ring, m->entries);
	if (!m->rc && m->mask & IBV_SRQ_LIMIT)
		m->reached = ur_engine_set_srq_limit(m->srq, m->limit);
}

int uroce_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *attr, int mask)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_srq *srq = UR_API(srq, base);
	struct modify_srq m = {
		.srq = srq->srq, .entries = attr->max_wr, .limit = attr->srq_limit, .mask = mask};

	if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) ||
	    ((mask & IBV_SRQ_MAX_WR) && (attr->max_wr < 1 || attr->max_wr > WR_MAX)))
		return EINVAL;
	/* The device's lock: the first QP of an SRQ decides which worker it belongs to. */
	pthread_mutex_lock(&dev->lock);
	pthread_mutex_lock(&srq->lock);
	if ((mask & IBV_SRQ_LIMIT) &&
	    attr->srq_limit > (mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr))
		m.rc = -EINVAL;
	if (!m.rc && (mask & IBV_SRQ_MAX_WR)) {
		m.ring = new_memory(ur_engine_srq_ring_bytes(attr->max_wr, srq->max_sge));
		m.rc = m.ring ? 0 : -ENOMEM;
	}
	if (!m.rc)
		ur_worker_call(dev->workers[srq->worker], modify_on_worker, &m);
	if (m.ring) {
		free(m.rc ? m.ring : srq->ring);
		srq->ring = m.rc ? srq->ring : m.ring;
		srq->max_wr = m.rc ? srq->max_wr : attr->max_wr;
	}
	pthread_mutex_unlock(&srq->lock);
	pthread_mutex_unlock(&dev->lock);
	/* Below the limit already: the event would wait for a receive to be taken. */
	if (m.reached)
		ur_async_raise(dev, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->base);
	return -m.rc;
}

struct query_srq {
	const struct ur_srq *srq;
	struct ibv_srq_attr *attr;
};

static void query_on_worker(void *arg, uint64_t now_ns)
{
	struct query_srq *q = arg;

	ur_engine_query_srq(q->srq, q->attr);
}

int uroce_query_srq(struct ibv_srq *base, struct ibv_srq_attr *attr)
{
	struct ur_device *dev = ur_device(base->context);
	struct query_srq q = {UR_API(srq, base)->srq, attr};

	pthread_mutex_lock(&dev->lock);
	ur_worker_call(dev->workers[UR_API(srq, base)->worker], query_on_worker, &q);
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int uroce_destroy_srq(struct ibv_srq *base)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_srq *srq = UR_API(srq, base);

	pthread_mutex_lock(&dev->lock);
	if (srq->refs) {
		pthread_mutex_unlock(&dev->lock);
		return EBUSY;
	}
	ur_context_count_locked(base->context, &dev->objects.srqs, -1);
	UR_API(pd, base->pd)->refs--;
	pthread_mutex_unlock(&dev->lock);
	ur_device_wait_acks(&base->mutex, &base->cond, &base->events_completed,
			    ur_async_purge(base->context, &srq->async));
	pthread_mutex_destroy(&base->mutex);
	pthread_cond_destroy(&base->cond);
	pthread_mutex_destroy(&srq->lock);
	free(srq->ring);
	free(srq);
	return 0;
}

int uroce_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ur_api_srq *srq = UR_API(srq, base);
	int rc = 0;

	ur_api_lock(srq->thread_safe, &srq->lock);
	for (; wr; wr = wr->next) {
		rc = ur_engine_post_srq_recv(srq->srq, wr);
		if (rc) {
			*bad_wr = wr;
			break;
		}
	}
	ur_api_unlock(srq->thread_safe, &srq->lock);
	return rc;
}
