/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/device.h"
#include "api/progress.h"
#include "api/wait.h"
#include "thread/cancelled.h"
#include "wire/assert.h"

#define CQE_MAX (1 << 20)

struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_api_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->base.context = ctx;
	ch->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->base.fd < 0) {
		free(ch);
		return NULL;
	}
	ur_wait_forget(ch->base.fd);
	pthread_mutex_init(&ch->lock, NULL);
	pthread_cond_init(&ch->waiters.left, NULL);
	TAILQ_INIT(&ch->events);
	ur_context_count(ctx, &dev->objects.channels, 1);
	return &ch->base;
}

int uroce_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ur_device *dev = ur_device(channel->context);
	struct ur_api_channel *ch = UR_API(channel, channel);
	bool busy;

	pthread_mutex_lock(&dev->lock);
	busy = channel->refcnt != 0;
	if (!busy)
		ur_context_count_locked(channel->context, &dev->objects.channels, -1);
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return EBUSY;
	ur_device_waiters_close(&ch->waiters, &ch->lock, channel->fd);
	close(channel->fd);
	pthread_mutex_destroy(&ch->lock);
	pthread_cond_destroy(&ch->waiters.left);
	free(ch);
	return 0;
}

struct ibv_cq *uroce_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ur_device *dev = ur_device(ctx);
	size_t own = (sizeof(struct ur_api_cq) + 63) & ~(size_t)63;
	struct ur_api_cq *cq;
	uint16_t worker;
	size_t bytes;

	if (cqe < 1 || cqe > CQE_MAX || comp_vector < 0 || comp_vector >= ctx->num_comp_vectors ||
	    (channel && channel->context != ctx)) {
		errno = EINVAL;
		return NULL;
	}
	/* The application's object, and behind it the engine's. */
	bytes = (own + ur_engine_cq_size((uint32_t)cqe) + 63) & ~(size_t)63;
	cq = aligned_alloc(64, bytes);
	if (!cq)
		return NULL;
	memset(cq, 0, bytes);
	pthread_mutex_lock(&dev->lock);
	if (dev->objects.cqs >= dev->cfg.transport.max_cq) {
		pthread_mutex_unlock(&dev->lock);
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	ur_context_count_locked(ctx, &dev->objects.cqs, 1);
	if (channel)
		channel->refcnt++;
	pthread_mutex_unlock(&dev->lock);
	cq->base = (struct ibv_cq){
		.context = ctx, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	pthread_mutex_init(&cq->base.mutex, NULL);
	pthread_cond_init(&cq->base.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	cq->thread_safe = ur_api_is_thread_safe(dev, NULL);
	worker = (uint16_t)(comp_vector % dev->worker_cnt);
	cq->worker = dev->workers[worker];
	cq->cq = ur_engine_create_cq(
		(uint8_t *)cq + own,
		&(struct ur_cq_create){
			.cqe = (uint32_t)cqe, .worker = worker, .unarmed = !channel, .user = cq});
	return &cq->base;
}

struct resize_cq {
	struct ur_cq *cq;
	void *ring;
	uint32_t cqe;
	int rc;
};

static void resize_on_worker(void *arg, uint64_t now_ns)
{
	struct resize_cq *r = arg;

	r->rc = ur_engine_resize_cq(r->cq, r->ring, r->cqe);
}

int uroce_resize_cq(struct ibv_cq *base, int cqe)
{
	struct ur_api_cq *cq = UR_API(cq, base);
	struct resize_cq r = {.cq = cq->cq, .cqe = (uint32_t)cqe, .rc = -EIO};

	if (cqe < 1 || cqe > CQE_MAX)
		return EINVAL;
	r.ring = aligned_alloc(64, ur_engine_cq_ring_bytes(r.cqe));
	if (!r.ring)
		return ENOMEM;
	pthread_mutex_lock(&cq->lock);
	ur_worker_call(cq->worker, resize_on_worker, &r);
	if (!r.rc) {
		void *old = cq->ring;

		cq->ring = r.ring;
		r.ring = old;
		base->cqe = cqe;
	}
	pthread_mutex_unlock(&cq->lock);
	free(r.ring);
	return -r.rc;
}

struct forget_qp {
	struct ur_cq *cq;
	struct ur_qpn qpn;
};

static void forget_on_worker(void *arg, uint64_t now_ns)
{
	struct forget_qp *f = arg;

	ur_engine_forget_completions(f->cq, f->qpn);
}

void ur_api_cq_forget(struct ur_api_cq *cq, struct ur_qpn qpn)
{
	struct forget_qp f = {cq->cq, qpn};

	pthread_mutex_lock(&cq->lock);
	ur_worker_call(cq->worker, forget_on_worker, &f);
	pthread_mutex_unlock(&cq->lock);
}

/* Removes pending events. Returns the number of events that the application has received. */
static uint32_t forget_events(struct ur_api_cq *cq)
{
	struct ur_api_channel *ch = UR_API(channel, cq->base.channel);
	uint32_t got;

	if (!ch)
		return 0;
	pthread_mutex_lock(&ch->lock);
	if (cq->events_ready)
		TAILQ_REMOVE(&ch->events, cq, link);
	ur_device_take_counts(ch->base.fd, cq->events_ready);
	cq->events_ready = 0;
	got = cq->events_got;
	pthread_mutex_unlock(&ch->lock);
	return got;
}

int uroce_destroy_cq(struct ibv_cq *base)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_cq *cq = UR_API(cq, base);

	pthread_mutex_lock(&dev->lock);
	if (cq->refs) {
		pthread_mutex_unlock(&dev->lock);
		return EBUSY;
	}
	ur_context_count_locked(base->context, &dev->objects.cqs, -1);
	pthread_mutex_unlock(&dev->lock);
	/* Completions of destroyed QPs may still be in transit between workers. */
	ur_device_quiesce(dev);
	ur_device_quiesce(dev);
	ur_device_wait_acks(&base->mutex, &base->cond, &base->comp_events_completed,
			    forget_events(cq));
	ur_device_wait_acks(&base->mutex, &base->cond, &base->async_events_completed,
			    ur_async_purge(base->context, &cq->async));
	pthread_mutex_lock(&dev->lock);
	if (base->channel)
		base->channel->refcnt--;
	if (cq->parent)
		cq->parent->refs--;
	pthread_mutex_unlock(&dev->lock);
	pthread_mutex_destroy(&base->mutex);
	pthread_cond_destroy(&base->cond);
	pthread_mutex_destroy(&cq->lock);
	free(cq->ring);
	free(cq);
	return 0;
}

int uroce_poll_cq(struct ibv_cq *base, int num_entries, struct ibv_wc *wc)
{
	struct ur_device *dev = ur_device(base->context);
	struct ur_api_cq *cq = UR_API(cq, base);
	unsigned n;

	if (num_entries <= 0)
		return num_entries ? -EINVAL : 0;
	ur_device_close_bursts(dev);
	ur_api_lock(cq->thread_safe, &cq->lock);
	n = ur_engine_poll_cq(cq->cq, (unsigned)num_entries, wc);
	if (!n && !dev->dedicated) {
		ur_device_progress(dev);
		n = ur_engine_poll_cq(cq->cq, (unsigned)num_entries, wc);
	}
	ur_api_unlock(cq->thread_safe, &cq->lock);
	return (int)n;
}

static void post_event(struct ur_api_cq *cq)
{
	struct ur_api_channel *ch = UR_API(channel, cq->base.channel);
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (!cq->events_ready++)
		TAILQ_INSERT_TAIL(&ch->events, cq, link);
	/* Under the lock, because removing events also takes their counts. */
	ur_device_add_counts(ch->base.fd, 1);
	pthread_mutex_unlock(&ch->lock);
}

void ur_api_cq_note_use(struct ur_api_cq *cq, unsigned use)
{
	if (atomic_load_explicit(&cq->uses, memory_order_relaxed) & use)
		return;
	if ((atomic_fetch_or(&cq->uses, use) | use) == (UR_CQ_USE_SEND_AND_RECV | UR_CQ_USE_EVENTS))
		ur_worker_put_acks_first(cq->worker);
}

int uroce_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct ur_api_cq *cq = UR_API(cq, base);

	/* Without a channel there are no events. */
	if (!base->channel)
		return 0;
	ur_api_cq_note_use(cq, UR_CQ_USE_EVENTS);
	/* The application is about to sleep: no post may wait for its next call. */
	ur_device_stop_gathering(ur_device(base->context));
	/* Completions that have come since the last event raise one at once. */
	if (ur_engine_arm_cq(cq->cq, solicited_only))
		post_event(cq);
	else if (!ur_wait_has_been_for(ur_device(base->context), base->channel->fd))
		ur_progress_call(ur_device(base->context));
	return 0;
}

void ur_api_cq_notify(struct ur_api_cq *cq)
{
	post_event(cq);
}

/* The CQ of the next event; CQs take turns. */
static struct ur_api_cq *take_event(struct ur_api_channel *ch)
{
	struct ur_api_cq *first;

	pthread_mutex_lock(&ch->lock);
	first = TAILQ_FIRST(&ch->events);
	if (first) {
		TAILQ_REMOVE(&ch->events, first, link);
		if (--first->events_ready)
			TAILQ_INSERT_TAIL(&ch->events, first, link);
		first->events_got++;
	}
	pthread_mutex_unlock(&ch->lock);
	return first;
}

static void leave(void *channel)
{
	struct ur_api_channel *ch = channel;

	ur_cancelled();
	ur_device_waiter_leave(&ch->waiters, &ch->lock);
}

/* Without an event, its CQ was destroyed meanwhile. Not in the frame of the clean-up handler. */
static __attribute__((noinline)) int wait_for_event(struct ur_api_channel *ch,
						    struct ur_api_cq **cq)
{
	int rc;

	do
		rc = ur_device_wait_count(ur_device(ch->base.context), ch->base.fd);
	while (!rc && !(*cq = take_event(ch)) && !(rc = atomic_load(&ch->waiters.closing)));
	return rc;
}

/* CHANNEL-END-01 */
int uroce_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct ur_api_channel *ch = UR_API(channel, channel);
	struct ur_api_cq *first;
	int rc;

	if (!ur_device_waiter_enter(&ch->waiters, &ch->lock)) {
		errno = ECANCELED;
		return -1;
	}
	pthread_cleanup_push(leave, ch);
	rc = wait_for_event(ch, &first);
	pthread_cleanup_pop(0);
	if (ur_device_waiter_leave(&ch->waiters, &ch->lock) && rc)
		errno = ECANCELED;
	if (rc)
		return -1;
	*cq = &first->base;
	*cq_context = first->base.cq_context;
	return 0;
}

void uroce_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
