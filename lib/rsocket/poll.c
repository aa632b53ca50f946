/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket/dgram.h"
#include "thread/cancelled.h"
#include "thread/thread.h"

#define NEAR 32 /* descriptors for which the stack has room */

/* One of the program's descriptors. */
struct watch {
	struct ur_rs *rs; /* held; NULL: not a socket of ours */
	unsigned want;
	uint32_t wakes;
	bool asleep;
	unsigned at; /* among those to sleep on */
};

struct poll_call {
	struct pollfd *fds; /* the program's */
	nfds_t cnt;
	struct watch *watches;
	struct pollfd *kernel; /* those to sleep on: room for UR_RS_FDS_MAX each */
	unsigned kernel_cnt;
	struct ibv_context *ctx; /* of one of the sockets to sleep on, or NULL */
	int cancel;
};

/* ---- what has happened ---- */

static short connected_events(const struct ur_rs *rs)
{
	short got = 0;

	if (ur_rs_may_read(rs))
		got |= POLLIN | POLLRDNORM;
	if (ur_rs_may_write(rs))
		got |= POLLOUT | POLLWRNORM;
	if (rs->eof || rs->state == UR_RS_ENDED)
		got |= POLLRDHUP;
	/* Some programs take it for an error, whatever else there is. */
	if ((rs->state == UR_RS_ENDED || (rs->eof && rs->shut_wr)) &&
	    !ur_rs_rx_unread(&rs->link.rx))
		got |= POLLHUP;
	return got;
}

/* As Linux reports them for TCP. */
static short events_of(const struct ur_rs *rs)
{
	short got = rs->error ? POLLERR : 0;

	if (rs->closed)
		return POLLNVAL;
	if (rs->udp)
		return ur_rs_udp_events(rs);
	switch (rs->state) {
	case UR_RS_LISTENING:
		return rs->request ? POLLIN | POLLRDNORM : 0;
	case UR_RS_RESOLVING:
	case UR_RS_CONNECTING:
	case UR_RS_ACCEPTING:
		return got;
	case UR_RS_FRESH:
	case UR_RS_BOUND:
		return (short)(got | POLLOUT | POLLWRNORM | POLLHUP);
	case UR_RS_FAILED:
		return (short)(got | POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLHUP);
	default:
		return (short)(got | connected_events(rs));
	}
}

static short wanted(const struct ur_rs *rs, short events)
{
	return (short)(events_of(rs) & (events | POLLERR | POLLHUP | POLLNVAL));
}

static void check_sockets(struct poll_call *p)
{
	for (nfds_t i = 0; i < p->cnt; i++) {
		struct ur_rs *rs = p->watches[i].rs;

		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		ur_rs_progress(rs, p->watches[i].want);
		p->fds[i].revents = wanted(rs, p->fds[i].events);
		pthread_mutex_unlock(&rs->lock);
	}
}

/* ---- sleeping ---- */

static void add_fds(struct poll_call *p, struct watch *w, const struct pollfd *fd)
{
	w->at = p->kernel_cnt;
	if (w->rs)
		p->kernel_cnt += ur_rs_fds(w->rs, &p->kernel[p->kernel_cnt]);
	else
		p->kernel[p->kernel_cnt++] = (struct pollfd){.fd = fd->fd, .events = fd->events};
}

/* Before a thread sleeps. True: it must look again, because something has happened already, or may have. */
static bool arm_socket(struct poll_call *p, nfds_t i)
{
	struct watch *w = &p->watches[i];
	bool again;

	pthread_mutex_lock(&w->rs->lock);
	ur_rs_arm(w->rs, w->want);
	again = ur_rs_progress(w->rs, w->want) || wanted(w->rs, p->fds[i].events);
	if (!again) {
		add_fds(p, w, &p->fds[i]);
		if (!p->ctx)
			p->ctx = ur_rs_context(w->rs);
		w->wakes = ur_rs_begin_sleep(w->rs, w->want);
		w->asleep = true;
	}
	pthread_mutex_unlock(&w->rs->lock);
	return again;
}

static bool arm_all(struct poll_call *p)
{
	p->kernel_cnt = 0;
	p->ctx = NULL;
	for (nfds_t i = 0; i < p->cnt; i++) {
		if (!p->watches[i].rs)
			add_fds(p, &p->watches[i], &p->fds[i]);
		else if (arm_socket(p, i))
			return false;
	}
	return true;
}

static void end_sleep(struct poll_call *p)
{
	for (nfds_t i = 0; i < p->cnt; i++) {
		struct watch *w = &p->watches[i];

		if (!w->asleep)
			continue;
		pthread_mutex_lock(&w->rs->lock);
		ur_rs_end_sleep(w->rs, w->want, w->wakes);
		pthread_mutex_unlock(&w->rs->lock);
		w->asleep = false;
	}
}

static void end_call(void *arg)
{
	struct poll_call *p = arg;

	end_sleep(p);
	for (nfds_t i = 0; i < p->cnt; i++)
		if (p->watches[i].rs)
			ur_rs_release(p->watches[i].rs);
	if (p->cnt > NEAR) {
		free(p->watches);
		free(p->kernel);
	}
}

/* The thread was cancelled in its sleep. */
static void give_up(void *arg)
{
	ur_cancelled();
	ur_cancel_off();
	end_call(arg);
}

static int poll_kernel(struct poll_call *p, int timeout_ms)
{
	int rc;

	pthread_cleanup_push(give_up, p);
	ur_cancel_restore(p->cancel);
	rc = ur_rs_poll(p->ctx, p->kernel, p->kernel_cnt, timeout_ms);
	ur_cancel_off();
	pthread_cleanup_pop(0);
	return rc;
}

/* What the kernel says of descriptors that are not ours. */
static void copy_others(struct poll_call *p)
{
	for (nfds_t i = 0; i < p->cnt; i++)
		if (!p->watches[i].rs)
			p->fds[i].revents = p->kernel[p->watches[i].at].revents;
}

static void check_others(struct poll_call *p)
{
	p->kernel_cnt = 0;
	for (nfds_t i = 0; i < p->cnt; i++)
		if (!p->watches[i].rs)
			add_fds(p, &p->watches[i], &p->fds[i]);
	if (p->kernel_cnt && poll(p->kernel, p->kernel_cnt, 0) >= 0)
		copy_others(p);
}

/* ---- the calls ---- */

static int count(const struct poll_call *p)
{
	int n = 0;

	for (nfds_t i = 0; i < p->cnt; i++)
		n += p->fds[i].revents != 0;
	return n;
}

static int look(struct poll_call *p)
{
	check_sockets(p);
	check_others(p);
	return count(p);
}

/* Returns an errno value; p->fds has what happened. */
static int sleep_once(struct poll_call *p, int timeout_ms)
{
	int rc = 0;

	if (arm_all(p)) {
		rc = poll_kernel(p, timeout_ms);
		if (!rc)
			copy_others(p);
	}
	end_sleep(p);
	return rc;
}

static int sleep_until(struct poll_call *p, uint64_t until_ns, int *n)
{
	int left, rc;

	do {
		left = ur_rs_left_ms(until_ns);
		rc = sleep_once(p, left);
		if (rc)
			return rc;
		*n = look(p);
	} while (!*n && left);
	return 0;
}

static int wait_for_any(struct poll_call *p, int timeout_ms)
{
	uint64_t until_ns = ur_rs_deadline_ns(timeout_ms);
	struct ur_rs_busy busy;
	int n = look(p), rc = 0;

	if (n || !timeout_ms)
		return n;
	busy = ur_rs_busy_begin();
	while (!n && ur_rs_now_ns() < busy.until_ns)
		n = look(p);
	if (!n)
		rc = sleep_until(p, until_ns, &n);
	ur_rs_busy_end(&busy);
	return rc ? ur_rs_fail(rc) : n;
}

static void hold_all(struct poll_call *p)
{
	for (nfds_t i = 0; i < p->cnt; i++) {
		struct watch *w = &p->watches[i];

		w->rs = p->fds[i].fd < 0 ? NULL : ur_rs_hold(p->fds[i].fd);
		w->want = UR_RS_WANT_RX |
			  (p->fds[i].events & (POLLOUT | POLLWRNORM) ? UR_RS_WANT_TX : 0);
		p->fds[i].revents = 0;
	}
}

int rpoll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	struct watch watches[NEAR] = {0};
	struct pollfd kernel[NEAR * UR_RS_FDS_MAX];
	struct poll_call p = {.fds = fds, .cnt = cnt, .watches = watches, .kernel = kernel};
	int n;

	if (cnt > INT_MAX)
		return ur_rs_fail(EINVAL);
	p.cancel = ur_cancel_off();
	if (cnt > NEAR) {
		p.watches = calloc(cnt, sizeof(*p.watches));
		p.kernel = calloc(cnt, UR_RS_FDS_MAX * sizeof(*p.kernel));
	}
	if (!p.watches || !p.kernel) {
		p.cnt = 0;
		free(p.watches);
		free(p.kernel);
		n = ur_rs_fail(ENOMEM);
	} else {
		hold_all(&p);
		n = wait_for_any(&p, timeout_ms);
	}
	end_call(&p);
	ur_cancel_restore(p.cancel);
	return n;
}

/* ---- select ---- */

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t to_poll(int cnt, const fd_set *r, const fd_set *w, const fd_set *x,
		      struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < cnt; fd++) {
		short events = (short)((is_in(fd, r) ? POLLIN : 0) | (is_in(fd, w) ? POLLOUT : 0) |
				       (is_in(fd, x) ? POLLPRI : 0));

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	return n;
}

static int note(int fd, fd_set *set, bool on)
{
	if (!is_in(fd, set))
		return 0;
	if (!on)
		FD_CLR(fd, set);
	return on;
}

/* As Linux maps the events of poll(2) to the sets. */
static int from_poll(const struct pollfd *fds, nfds_t cnt, fd_set *r, fd_set *w, fd_set *x)
{
	int n = 0;

	for (nfds_t i = 0; i < cnt; i++) {
		short got = fds[i].revents;

		n += note(fds[i].fd, r, got & (POLLIN | POLLHUP | POLLERR));
		n += note(fds[i].fd, w, got & (POLLOUT | POLLERR));
		n += note(fds[i].fd, x, got & POLLPRI);
	}
	return n;
}

static int to_ms(const struct timeval *t)
{
	if (!t)
		return -1;
	if (t->tv_sec >= INT_MAX / 1000)
		return INT_MAX;
	return (int)(t->tv_sec * 1000 + (t->tv_usec + 999) / 1000);
}

int rselect(int cnt, fd_set *r, fd_set *w, fd_set *x, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t n;
	int rc;

	if (cnt < 0 || cnt > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return ur_rs_fail(EINVAL);
	n = to_poll(cnt, r, w, x, fds);
	rc = rpoll(fds, n, to_ms(timeout));
	if (rc < 0)
		return rc;
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents & POLLNVAL)
			return ur_rs_fail(EBADF);
	return from_poll(fds, n, r, w, x);
}
