/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include "rsocket/dgram.h"
#include "thread/busy.h"
#include "thread/cancelled.h"
#include "thread/thread.h"
#include "uroce/uroce.h"

uint64_t ur_rs_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t ur_rs_deadline_ns(int timeout_ms)
{
	return timeout_ms < 0 ? 0 : ur_rs_now_ns() + (uint64_t)timeout_ms * 1000000;
}

int ur_rs_left_ms(uint64_t deadline_ns)
{
	uint64_t now;

	if (!deadline_ns)
		return -1;
	now = ur_rs_now_ns();
	return now >= deadline_ns ? 0 : (int)((deadline_ns - now + 999999) / 1000000);
}

static _Thread_local struct ur_busy busy = {UINT64_MAX};

struct ur_rs_busy ur_rs_busy_begin(void)
{
	uint64_t now_ns = ur_rs_now_ns();

	return (struct ur_rs_busy){now_ns, now_ns + ur_busy_for(&busy, ur_rs_busy_ns())};
}

void ur_rs_busy_end(const struct ur_rs_busy *b)
{
	ur_busy_after(&busy, ur_rs_busy_ns(), ur_rs_now_ns() - b->from_ns);
}

/* A connection that is up reports its end by completions; before, events tell. */
unsigned ur_rs_fds(const struct ur_rs *rs, struct pollfd fds[UR_RS_FDS_MAX])
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){.fd = rs->fd, .events = POLLIN};
	if (rs->udp)
		fds[n++] =
			(struct pollfd){.fd = rs->udp->fd, .events = ur_rs_udp_kernel_events(rs)};
	if (rs->udp && rs->udp->comp)
		fds[n++] = (struct pollfd){.fd = rs->udp->comp->fd, .events = POLLIN};
	if (rs->state == UR_RS_LISTENING || ur_rs_is_opening(rs))
		fds[n++] = (struct pollfd){.fd = rs->channel->fd, .events = POLLIN};
	if (ur_rs_is_up(rs))
		fds[n++] = (struct pollfd){.fd = rs->link.comp->fd, .events = POLLIN};
	return n;
}

struct ibv_context *ur_rs_context(const struct ur_rs *rs)
{
	if (rs->link.comp)
		return rs->link.comp->context;
	if (rs->udp)
		return rs->udp->comp ? rs->udp->comp->context : NULL;
	return rs->id ? rs->id->verbs : NULL;
}

int ur_rs_poll(struct ibv_context *ctx, struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	int n = ctx ? uroce_wait(ctx, fds, cnt, timeout_ms) : poll(fds, cnt, timeout_ms);

	return n < 0 ? errno : 0;
}

/* The thread was cancelled in its sleep. */
static void give_up(void *arg)
{
	struct ur_rs_call *c = arg;

	ur_cancelled();
	c->cancel = ur_cancel_off();
	pthread_mutex_lock(&c->rs->lock);
	ur_rs_end_sleep(c->rs, c->want, c->wakes);
	ur_rs_leave(c, 0);
}

static int poll_unlocked(struct ur_rs_call *c, struct ibv_context *ctx, struct pollfd *fds,
			 unsigned n, int timeout_ms)
{
	int rc;

	pthread_cleanup_push(give_up, c);
	ur_cancel_restore(c->cancel);
	rc = ur_rs_poll(ctx, fds, n, timeout_ms);
	ur_cancel_off();
	pthread_cleanup_pop(0);
	return rc;
}

static int sleep_once(struct ur_rs_call *c, unsigned want, int timeout_ms)
{
	struct ur_rs *rs = c->rs;
	struct pollfd fds[UR_RS_FDS_MAX];
	unsigned n = ur_rs_fds(rs, fds);
	struct ibv_context *ctx = ur_rs_context(rs);
	int rc;

	c->want = want;
	c->wakes = ur_rs_begin_sleep(rs, want);
	pthread_mutex_unlock(&rs->lock);
	rc = poll_unlocked(c, ctx, fds, n, timeout_ms);
	pthread_mutex_lock(&rs->lock);
	ur_rs_end_sleep(rs, want, c->wakes);
	return rc;
}

static bool is_settled(const struct ur_rs_call *c, ur_rs_test ready)
{
	return (c->rs->closed && !c->closing) || ready(c->rs);
}

/* Other threads may have the lock in between. */
static bool spin(struct ur_rs_call *c, unsigned want, ur_rs_test ready, uint64_t until_ns)
{
	while (ur_rs_now_ns() < until_ns) {
		pthread_mutex_unlock(&c->rs->lock);
		pthread_mutex_lock(&c->rs->lock);
		ur_rs_progress(c->rs, want);
		if (is_settled(c, ready))
			return true;
	}
	return false;
}

static int sleep_until(struct ur_rs_call *c, unsigned want, ur_rs_test ready, uint64_t until_ns)
{
	int rc = 0, left;
	bool more;

	for (;;) {
		ur_rs_arm(c->rs, want);
		more = ur_rs_progress(c->rs, want);
		if (is_settled(c, ready))
			return 0;
		left = ur_rs_left_ms(until_ns);
		if (rc || !left)
			return rc ? rc : EAGAIN;
		rc = sleep_once(c, want, more ? 0 : left);
	}
}

int ur_rs_wait(struct ur_rs_call *c, unsigned want, ur_rs_test ready, bool nonblock, int timeout_ms)
{
	uint64_t until_ns = ur_rs_deadline_ns(timeout_ms);
	struct ur_rs_busy look;
	int rc = 0;

	ur_rs_progress(c->rs, want);
	if (!is_settled(c, ready)) {
		if (nonblock)
			return EAGAIN;
		look = ur_rs_busy_begin();
		if (!spin(c, want, ready, look.until_ns))
			rc = sleep_until(c, want, ready, until_ns);
		ur_rs_busy_end(&look);
	}
	return !rc && c->rs->closed && !c->closing ? EBADF : rc;
}
