/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* preadv2 */
#endif
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rdmacm/cm.h"

#define LOOKS 200 /* before a thread that waits for an event sleeps */

pthread_mutex_t ur_cm_lock = PTHREAD_MUTEX_INITIALIZER;

int ur_cm_fail(int rc)
{
	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

/* ---- channels ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct ur_cm_channel *ch;

	if (!ur_cm_open_devices())
		return NULL;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	TAILQ_INIT(&ch->queue);
	ch->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->base.fd >= 0)
		return &ch->base;
	free(ch);
	return NULL;
}

/* As in the kernel, a thread that waits for an event of the channel sleeps on. */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct ur_cm_channel *ch = ur_cm_channel(channel);
	bool unused;

	pthread_mutex_lock(&ur_cm_lock);
	ch->closed = true;
	unused = !ch->waiters;
	pthread_mutex_unlock(&ur_cm_lock);
	close(ch->base.fd);
	if (unused)
		free(ch);
}

/* ---- events in ---- */

/* Under the lock. */
static void put(struct ur_cm_channel *ch, struct ur_cm_event *e)
{
	uint64_t one = 1;

	TAILQ_INSERT_TAIL(&ch->queue, e, link);
	if (write(ch->base.fd, &one, sizeof(one)) < 0)
		abort(); /* only a count of 2^64 - 1, or a descriptor that the program has closed */
}

/* An event of a request belongs to the listener's channel. */
static void queue_one(const struct uroce_cm_event *from)
{
	struct ur_cm_event *e = ur_cm_translate(from);

	if (e)
		put(ur_cm_channel(e->owner->id.channel), e);
}

/* The lock keeps an id of an event alive until the event is in a queue. */
void ur_cm_pump(void)
{
	struct uroce_cm_event *e;
	unsigned cnt;
	struct ur_cm_device *d = ur_cm_devices(&cnt);
	int old;

	/* A thread may be cancelled while it waits, but not here. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&ur_cm_lock);
	for (unsigned i = 0; i < cnt; i++)
		while (!uroce_get_cm_event(d[i].channel, 0, &e)) {
			queue_one(e);
			uroce_ack_cm_event(e);
		}
	pthread_mutex_unlock(&ur_cm_lock);
	pthread_setcancelstate(old, NULL);
}

static void *pump(void *arg)
{
	struct pollfd p[UR_CM_DEVICES_MAX];
	unsigned cnt;
	struct ur_cm_device *d = ur_cm_devices(&cnt);

	for (unsigned i = 0; i < cnt; i++)
		p[i] = (struct pollfd){.fd = uroce_event_channel_fd(d[i].channel),
				       .events = POLLIN};
	for (;;)
		if (poll(p, cnt, -1) > 0)
			ur_cm_pump();
	return NULL;
}

int ur_cm_start_pump(void)
{
	pthread_t thread;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, pump, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		pthread_detach(thread);
	return rc;
}

int ur_cm_raise(struct ur_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct ur_cm_event *e = calloc(1, sizeof(*e));

	if (!e)
		return ENOMEM;
	e->owner = id;
	e->ev.id = &id->id;
	e->ev.event = type;
	e->ev.status = status;
	pthread_mutex_lock(&ur_cm_lock);
	put(ur_cm_channel(id->id.channel), e);
	pthread_mutex_unlock(&ur_cm_lock);
	return 0;
}

/* ---- events out ---- */

static bool take_count(int fd)
{
	uint64_t one;
	struct iovec to = {&one, sizeof(one)};

	return preadv2(fd, &to, 1, -1, RWF_NOWAIT) == sizeof(one);
}

/* One that the id owns, or that has brought it. */
static struct ur_cm_event *find(struct ur_cm_channel *ch, const struct ur_cm_id *id)
{
	struct ur_cm_event *e;

	TAILQ_FOREACH(e, &ch->queue, link)
	if (e->owner == id || e->ev.id == &id->id)
		return e;
	return NULL;
}

void ur_cm_purge(struct ur_cm_id *id)
{
	struct ur_cm_channel *ch = ur_cm_channel(id->id.channel);
	struct ur_cm_event *e;

	while ((e = find(ch, id))) {
		TAILQ_REMOVE(&ch->queue, e, link);
		take_count(ch->base.fd);
		if (e->ev.id != &id->id)
			ur_cm_drop_id(ur_cm_id(e->ev.id));
		free(e);
	}
}

static struct ur_cm_event *pop(struct ur_cm_channel *ch)
{
	struct ur_cm_event *e;

	pthread_mutex_lock(&ur_cm_lock);
	e = TAILQ_FIRST(&ch->queue);
	if (e) {
		TAILQ_REMOVE(&ch->queue, e, link);
		e->owner->got++;
	}
	pthread_mutex_unlock(&ur_cm_lock);
	return e;
}

static bool is_empty(struct ur_cm_channel *ch)
{
	bool empty;

	pthread_mutex_lock(&ur_cm_lock);
	empty = TAILQ_EMPTY(&ch->queue);
	pthread_mutex_unlock(&ur_cm_lock);
	return empty;
}

static void wait_on(struct ur_cm_channel *ch, int by)
{
	bool gone;

	pthread_mutex_lock(&ur_cm_lock);
	ch->waiters += (unsigned)by;
	gone = ch->closed && !ch->waiters;
	pthread_mutex_unlock(&ur_cm_lock);
	if (gone)
		free(ch);
}

static void leave(void *ch)
{
	wait_on(ch, -1);
}

/* A count may be for an event that was dropped. */
static int wait_for_event(struct ur_cm_channel *ch, struct ur_cm_event **e)
{
	uint64_t one;

	for (unsigned i = 0; i < LOOKS && is_empty(ch); i++)
		ur_cm_pump();
	do {
		if (read(ch->base.fd, &one, sizeof(one)) < 0)
			return -1;
		*e = pop(ch);
	} while (!*e);
	return 0;
}

/* The wait is a read(): signals, cancellation and O_NONBLOCK do what they do with the kernel's channel. */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct ur_cm_channel *ch = ur_cm_channel(channel);
	struct ur_cm_event *e = NULL;
	int rc;

	wait_on(ch, 1);
	pthread_cleanup_push(leave, ch);
	rc = wait_for_event(ch, &e);
	pthread_cleanup_pop(1);
	if (!rc)
		*event = &e->ev;
	return rc;
}

static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct ur_cm_event *e = (struct ur_cm_event *)event;

	if (!event)
		return ur_cm_fail(EINVAL);
	pthread_mutex_lock(&ur_cm_lock);
	e->owner->got--;
	pthread_cond_broadcast(&acked);
	pthread_mutex_unlock(&ur_cm_lock);
	free(e);
	return 0;
}

/* Events of the id that the program still has keep it alive. */
int rdma_destroy_id(struct rdma_cm_id *base)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct rdma_event_channel *own = id->sync ? base->channel : NULL;

	if (base->event) {
		rdma_ack_cm_event(base->event);
		base->event = NULL;
	}
	pthread_mutex_lock(&ur_cm_lock);
	while (id->got)
		pthread_cond_wait(&acked, &ur_cm_lock);
	ur_cm_drop_id(id);
	pthread_mutex_unlock(&ur_cm_lock);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}

int ur_cm_complete(struct ur_cm_id *id)
{
	struct rdma_cm_event *e;
	int rc;

	if (!id->sync)
		return 0;
	if (id->id.event) {
		rdma_ack_cm_event(id->id.event);
		id->id.event = NULL;
	}
	rc = rdma_get_cm_event(id->id.channel, &e);
	if (rc)
		return rc;
	id->id.event = e;
	if (e->event == RDMA_CM_EVENT_REJECTED)
		return ur_cm_fail(ECONNREFUSED);
	return ur_cm_fail(e->status < 0 ? -e->status : e->status);
}

/*
 * Events that were not fetched move along. An id without a channel gets one of its own and is synchronous from now on.
 */
int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct rdma_event_channel *own = id->sync ? base->channel : NULL;
	struct ur_cm_channel *from = ur_cm_channel(base->channel);
	struct ur_cm_event *e, *next;
	bool sync = !channel;

	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	if (id->sync && base->event) {
		rdma_ack_cm_event(base->event);
		base->event = NULL;
	}
	pthread_mutex_lock(&ur_cm_lock);
	while (id->got)
		pthread_cond_wait(&acked, &ur_cm_lock);
	base->channel = channel;
	id->sync = sync;
	for (e = TAILQ_FIRST(&from->queue); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->owner != id)
			continue;
		TAILQ_REMOVE(&from->queue, e, link);
		take_count(from->base.fd);
		put(ur_cm_channel(channel), e);
	}
	pthread_mutex_unlock(&ur_cm_lock);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}
