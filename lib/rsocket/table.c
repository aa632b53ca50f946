/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rsocket/dgram.h"
#include "thread/thread.h"

/* Numbers to sockets: pages of pointers, made when they are needed, so that a small process has a small table. */

#define PAGE_FDS  1024
#define PAGES_MAX 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ur_rs **pages[PAGES_MAX];
static atomic_bool is_child;

/* EDGE-FORK-03. A thread that a child does not have may hold the lock. */
static void note_fork(void)
{
	is_child = true;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, note_fork);
}

/* Under the lock. NULL: no such number, or no memory. */
static struct ur_rs **slot_of(int fd, bool make)
{
	unsigned page = (unsigned)fd / PAGE_FDS;

	if (fd < 0 || page >= PAGES_MAX)
		return NULL;
	if (!pages[page] && make)
		pages[page] = calloc(PAGE_FDS, sizeof(struct ur_rs *));
	return pages[page] ? &pages[page][(unsigned)fd % PAGE_FDS] : NULL;
}

struct ur_rs *ur_rs_new(int domain, int type)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ur_rs *rs;

	pthread_once(&once, watch_forks);
	rs = calloc(1, sizeof(*rs));
	if (!rs)
		return NULL;
	rs->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (rs->fd < 0) {
		free(rs);
		return NULL;
	}
	rs->refs = 1;
	rs->domain = domain;
	rs->type = type;
	rs->opt = *ur_rs_defaults();
	TAILQ_INIT(&rs->mappings);
	pthread_mutex_init(&rs->send_lock, NULL);
	pthread_mutex_init(&rs->recv_lock, NULL);
	pthread_mutex_init(&rs->lock, NULL);
	return rs;
}

int ur_rs_publish(struct ur_rs *rs)
{
	struct ur_rs **slot;

	pthread_mutex_lock(&lock);
	slot = slot_of(rs->fd, true);
	if (slot)
		*slot = rs;
	pthread_mutex_unlock(&lock);
	return slot ? 0 : EMFILE;
}

bool ur_rs_forget(int fd)
{
	struct ur_rs **slot = is_child ? slot_of(fd, false) : NULL;

	if (!slot || !*slot)
		return false;
	*slot = NULL;
	close(fd);
	return true;
}

struct ur_rs *ur_rs_withdraw(int fd)
{
	struct ur_rs **slot, *rs = NULL;

	pthread_mutex_lock(&lock);
	slot = slot_of(fd, false);
	if (slot) {
		rs = *slot;
		*slot = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (!rs)
		errno = EBADF;
	return rs;
}

struct ur_rs *ur_rs_hold(int fd)
{
	struct ur_rs **slot, *rs = NULL;

	if (is_child)
		return NULL;
	pthread_mutex_lock(&lock);
	slot = slot_of(fd, false);
	if (slot && *slot) {
		rs = *slot;
		rs->refs++;
	}
	pthread_mutex_unlock(&lock);
	return rs;
}

/* Nobody else has it. */
static void free_socket(struct ur_rs *rs)
{
	ur_rs_drop_mappings(rs);
	if (rs->request) {
		struct rdma_cm_id *id = rs->request->id;

		rdma_ack_cm_event(rs->request);
		ur_rs_refuse(id);
	}
	ur_rs_close_link(rs);
	if (rs->udp)
		ur_rs_udp_free(rs->udp);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	close(rs->fd);
	pthread_mutex_destroy(&rs->lock);
	pthread_mutex_destroy(&rs->recv_lock);
	pthread_mutex_destroy(&rs->send_lock);
	free(rs);
}

void ur_rs_release(struct ur_rs *rs)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--rs->refs;
	pthread_mutex_unlock(&lock);
	if (last)
		free_socket(rs);
}

bool ur_rs_enter(struct ur_rs_call *c, int fd)
{
	*c = (struct ur_rs_call){0};
	c->cancel = ur_cancel_off();
	c->rs = ur_rs_hold(fd);
	if (!c->rs) {
		ur_cancel_restore(c->cancel);
		errno = is_child ? EIO : EBADF;
		return false;
	}
	pthread_mutex_lock(&c->rs->lock);
	return true;
}

int ur_rs_take_direction(struct ur_rs_call *c, pthread_mutex_t *direction, bool nonblock)
{
	if (pthread_mutex_trylock(direction)) {
		if (nonblock)
			return EAGAIN;
		pthread_mutex_unlock(&c->rs->lock);
		pthread_mutex_lock(direction);
		pthread_mutex_lock(&c->rs->lock);
	}
	c->direction = direction;
	return c->rs->closed ? EBADF : 0;
}

int ur_rs_leave(struct ur_rs_call *c, int rc)
{
	pthread_mutex_unlock(&c->rs->lock);
	if (c->direction)
		pthread_mutex_unlock(c->direction);
	ur_rs_release(c->rs);
	ur_cancel_restore(c->cancel);
	return ur_rs_fail(rc);
}

ssize_t ur_rs_leave_with(struct ur_rs_call *c, int rc, size_t done)
{
	return ur_rs_leave(c, done ? 0 : rc) ? -1 : (ssize_t)done;
}
