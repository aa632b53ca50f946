/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* preadv2 */
#endif
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rdmacm/cm.h"
#include "thread/cancelled.h"
#include "thread/thread.h"

#define LOOKS	 200 /* before a thread that waits for an event sleeps */
#define KEPT_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

int ur_cm_enter(void)
{
	int state = ur_cancel_off();

	pthread_mutex_lock(&lock);
	return state;
}

void ur_cm_leave(int cancel_state)
{
	pthread_mutex_unlock(&lock);
	ur_cancel_restore(cancel_state);
}

void ur_cm_renew_lock(void)
{
	pthread_mutex_init(&lock, NULL);
}

void ur_cm_wait_acked(struct ur_cm_id *id)
{
	while (id->got)
		pthread_cond_wait(&acked, &lock);
}

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

/*
 * Some programs destroy a channel while a thread of theirs is about to wait on it again. So the last few are kept, for
 * such a thread to see that it has nothing to wait for.
 */
static TAILQ_HEAD(, ur_cm_channel) kept = TAILQ_HEAD_INITIALIZER(kept);
static unsigned kept_cnt;

static void keep(struct ur_cm_channel *ch)
{
	TAILQ_INSERT_TAIL(&kept, ch, kept);
	if (kept_cnt++ < KEPT_MAX)
		return;
	ch = TAILQ_FIRST(&kept);
	TAILQ_REMOVE(&kept, ch, kept);
	kept_cnt--;
	free(ch);
}

/* Under the lock. */
static void free_unused(struct ur_cm_channel *ch)
{
	if (!ch->closed || ch->waiters)
		return;
	if (ch->base.fd >= 0)
		close(ch->base.fd);
	ch->base.fd = -1;
	if (!ch->ids)
		keep(ch);
}

void ur_cm_use_channel(struct ur_cm_channel *ch, int by)
{
	ch->ids += (unsigned)by;
	if (by < 0)
		free_unused(ch);
}

/* As in the kernel, ids of the channel end, and a thread that waits for an event of it sleeps on. */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct ur_cm_channel *ch = ur_cm_channel(channel);
	int state;

	if (ur_cm_is_child()) {
		close(channel->fd);
		return;
	}
	state = ur_cm_enter();
	if (ch->ids)
		ur_cm_abandon_ids(ch);
	ch->closed = true;
	free_unused(ch);
	ur_cm_leave(state);
}

/* ---- events in ---- */

static void count(struct ur_cm_event *e, int by)
{
	if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		e->owner->pending += (unsigned)by;
}

void ur_cm_put(struct ur_cm_event *e)
{
	struct ur_cm_channel *ch = ur_cm_channel(e->owner->id.channel);
	uint64_t one = 1;

	if (ch->closed) {
		if (e->ev.id != &e->owner->id)
			ur_cm_drop_id(ur_cm_id(e->ev.id));
		free(e);
		return;
	}
	TAILQ_INSERT_TAIL(&ch->queue, e, link);
	count(e, 1);
	/* It fails only if the program has closed the descriptor. */
	if (write(ch->base.fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- events out ---- */

static bool take_count(int fd)
{
	uint64_t one;
	struct iovec to = {&one, sizeof(one)};

	return preadv2(fd, &to, 1, -1, RWF_NOWAIT) == sizeof(one);
}

static void pull(struct ur_cm_channel *ch, struct ur_cm_event *e)
{
	TAILQ_REMOVE(&ch->queue, e, link);
	count(e, -1);
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

bool ur_cm_has_event(const struct ur_cm_id *id)
{
	return find(ur_cm_channel(id->id.channel), id);
}

/* Drops an event of `id`, and with it the id that it brings, unless that is `id` itself. */
static void drop_event(struct ur_cm_channel *ch, struct ur_cm_event *e, const struct ur_cm_id *id)
{
	pull(ch, e);
	take_count(ch->base.fd);
	if (e->ev.id != &id->id)
		ur_cm_drop_id(ur_cm_id(e->ev.id));
	free(e);
}

void ur_cm_purge(struct ur_cm_id *id)
{
	struct ur_cm_channel *ch = ur_cm_channel(id->id.channel);
	struct ur_cm_event *e;

	while ((e = find(ch, id)))
		drop_event(ch, e, id);
}

void ur_cm_purge_join(struct ur_cm_id *id, const struct ur_cm_join *join)
{
	struct ur_cm_channel *ch = ur_cm_channel(id->id.channel);
	struct ur_cm_event *e;

	TAILQ_FOREACH(e, &ch->queue, link)
	if (e->join == join) {
		drop_event(ch, e, id);
		return;
	}
}

static struct ur_cm_event *pop(struct ur_cm_channel *ch)
{
	int state = ur_cm_enter();
	struct ur_cm_event *e = TAILQ_FIRST(&ch->queue);

	if (e) {
		pull(ch, e);
		e->owner->got++;
	}
	ur_cm_leave(state);
	return e;
}

static bool is_empty(struct ur_cm_channel *ch)
{
	int state = ur_cm_enter();
	bool empty = TAILQ_EMPTY(&ch->queue);

	ur_cm_leave(state);
	return empty;
}

/* False: the program has destroyed the channel. */
static bool enter(struct ur_cm_channel *ch)
{
	int state = ur_cm_enter();
	bool open = !ch->closed;

	if (open)
		ch->waiters++;
	ur_cm_leave(state);
	return open;
}

static void leave(void *arg)
{
	struct ur_cm_channel *ch = arg;
	int state;

	ur_cancelled();
	state = ur_cm_enter();
	ch->waiters--;
	free_unused(ch);
	ur_cm_leave(state);
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

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	/* Like a thread that was already waiting. Only a signal or cancellation ends that. */
	if (!enter(ch))
		return poll(NULL, 0, -1);
	pthread_cleanup_push(leave, ch);
	rc = wait_for_event(ch, &e);
	pthread_cleanup_pop(1);
	if (!rc)
		*event = &e->ev;
	return rc;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct ur_cm_event *e = (struct ur_cm_event *)event;
	int state;

	if (!event)
		return ur_cm_fail(EINVAL);
	if (ur_cm_is_child())
		return 0;
	state = ur_cm_enter();
	e->owner->got--;
	pthread_cond_broadcast(&acked);
	ur_cm_leave(state);
	free(e);
	return 0;
}

static void ack_own(struct rdma_cm_id *id)
{
	if (id->event)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
}

int ur_cm_complete(struct ur_cm_id *id)
{
	struct rdma_cm_event *e;
	int rc;

	if (!id->sync)
		return 0;
	ack_own(&id->id);
	rc = rdma_get_cm_event(id->id.channel, &e);
	if (rc)
		return rc;
	id->id.event = e;
	if (e->event == RDMA_CM_EVENT_REJECTED)
		return ur_cm_fail(ECONNREFUSED);
	return ur_cm_fail(e->status < 0 ? -e->status : e->status);
}

/* Events that have brought an id of a listener's move with the listener, and the id's own with the id. */
static bool moves(const struct ur_cm_event *e, const struct ur_cm_id *id,
		  const struct ur_cm_events *brought)
{
	const struct ur_cm_event *b;

	if (e->owner == id)
		return true;
	TAILQ_FOREACH(b, brought, link)
	if (b->ev.id == &e->owner->id)
		return true;
	return false;
}

static void move_id(struct ur_cm_id *id, struct rdma_event_channel *to)
{
	struct ur_cm_channel *from = ur_cm_channel(id->id.channel);

	ur_cm_use_channel(ur_cm_channel(to), 1);
	id->id.channel = to;
	ur_cm_use_channel(from, -1);
}

/* In order. `from` stays: the ids that move still count. */
static void move_events(struct ur_cm_channel *from, struct ur_cm_id *id,
			struct rdma_event_channel *to)
{
	struct ur_cm_events moved = TAILQ_HEAD_INITIALIZER(moved);
	struct ur_cm_event *e, *next;

	for (e = TAILQ_FIRST(&from->queue); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (!moves(e, id, &moved))
			continue;
		pull(from, e);
		take_count(from->base.fd);
		TAILQ_INSERT_TAIL(&moved, e, link);
	}
	TAILQ_FOREACH(e, &moved, link)
	if (e->ev.id != &e->owner->id)
		move_id(ur_cm_id(e->ev.id), to);
	move_id(id, to);
	while ((e = TAILQ_FIRST(&moved))) {
		TAILQ_REMOVE(&moved, e, link);
		ur_cm_put(e);
	}
}

/*
 * Events that were not fetched move along. An id without a channel gets one of its own and is synchronous from now on.
 */
int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct rdma_event_channel *own = id->sync ? base->channel : NULL;
	bool sync = !channel;
	int state;

	if (ur_cm_is_child())
		return ur_cm_fail(EIO);
	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	if (id->sync)
		ack_own(base);
	state = ur_cm_enter();
	ur_cm_wait_acked(id);
	move_events(ur_cm_channel(base->channel), id, channel);
	id->sync = sync;
	ur_cm_leave(state);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}

/* Events of the id that the program still has keep it alive. */
int rdma_destroy_id(struct rdma_cm_id *base)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct rdma_event_channel *own = id->sync ? base->channel : NULL;
	int state;

	if (ur_cm_is_child())
		return 0;
	ack_own(base);
	state = ur_cm_enter();
	ur_cm_wait_acked(id);
	ur_cm_drop_id(id);
	ur_cm_leave(state);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}
