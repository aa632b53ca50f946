/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_RSOCKET_PAIR_H
#define TESTS_RSOCKET_PAIR_H

#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>

#include <rdma/rsocket.h>

#include "rdmacm_pair.h"
#include "rsocket/socket.h"

/* Rsockets over the two endpoints of rdmacm_pair.h: a listener at B, and connections from A. */

static inline int new_socket(const char *ip)
{
	int fd = rsocket(strchr(ip, ':') ? AF_INET6 : AF_INET, SOCK_STREAM, 0);

	cr_assert_geq(fd, 0, "%s", strerror(errno));
	return fd;
}

static inline socklen_t bytes_of(const union addr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->in) : sizeof(a->in6);
}

static inline void bind_to(int fd, const char *ip, uint16_t port)
{
	union addr a = addr(ip, port);

	cr_assert_eq(rbind(fd, &a.sa, bytes_of(&a)), 0, "%s", strerror(errno));
}

static inline int serve(const char *ip)
{
	int fd = new_socket(ip);

	bind_to(fd, ip, PORT);
	cr_assert_eq(rlisten(fd, 8), 0, "%s", strerror(errno));
	return fd;
}

/* Begins a connection from A. Returns what rconnect() did. */
static inline int try_connect(int fd, const char *ip)
{
	union addr a = addr(ip, PORT);

	bind_to(fd, strchr(ip, ':') ? IP6_A : IP_A, 0);
	return rconnect(fd, &a.sa, bytes_of(&a)) ? errno : 0;
}

static inline void set_nonblocking(int fd, bool on)
{
	cr_assert_eq(rfcntl(fd, F_SETFL, on ? O_NONBLOCK : 0), 0);
}

static inline short await(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	cr_assert_eq(rpoll(&p, 1, PATIENCE_MS), 1, "nothing happens");
	return p.revents;
}

/* Until a thread sleeps in a call that reads from the socket. */
static inline void await_reader(int fd)
{
	struct ur_rs *rs = ur_rs_hold(fd);
	bool asleep = false;

	cr_assert_not_null(rs);
	while (!asleep) {
		pthread_mutex_lock(&rs->lock);
		asleep = rs->waiting_rx;
		pthread_mutex_unlock(&rs->lock);
	}
	ur_rs_release(rs);
}

static inline int error_of(int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	cr_assert_eq(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* One thread is both ends, so it waits for both: a connection makes progress only in calls that have its socket. */
static inline int accept_from(int listener, int client)
{
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN},
			      {.fd = client, .events = POLLOUT}};
	int fd;

	do
		cr_assert_gt(rpoll(p, 2, PATIENCE_MS), 0, "nobody calls");
	while (!(p[0].revents & POLLIN) && !p[1].revents);
	fd = raccept(listener, NULL, NULL);
	cr_assert_geq(fd, 0, "%s", strerror(errno));
	return fd;
}

/* A connection: fd[A] and fd[B], blocking. */
static inline void link_up_by(int listener, int client, const char *ip, int fd[SIDES])
{
	fd[A] = client;
	set_nonblocking(fd[A], true);
	cr_assert_eq(try_connect(fd[A], ip), EINPROGRESS);
	fd[B] = accept_from(listener, fd[A]);
	cr_assert(await(fd[A], POLLOUT) & POLLOUT);
	cr_assert_eq(error_of(fd[A]), 0);
	set_nonblocking(fd[A], false);
}

static inline void link_up(int listener, int fd[SIDES])
{
	link_up_by(listener, new_socket(IP_B), IP_B, fd);
}

static inline void put(int fd, const void *data, size_t len)
{
	cr_assert_eq(rsend(fd, data, len, 0), (ssize_t)len, "%s", strerror(errno));
}

static inline void want(int fd, const char *text)
{
	char got[64] = "";
	size_t len = strlen(text);

	cr_assert_eq(rrecv(fd, got, len, MSG_WAITALL), (ssize_t)len, "%s", strerror(errno));
	cr_expect_arr_eq(got, text, len);
}

/* The errno of a call that must fail. */
static inline int errno_of(ssize_t rc)
{
	int why = errno;

	cr_expect_eq(rc, -1, "%zd", rc);
	return why;
}

/* Another connection works, whatever has happened to one. */
static inline void expect_others_work(int listener)
{
	int fd[SIDES];

	link_up(listener, fd);
	put(fd[A], "still", 5);
	want(fd[B], "still");
	cr_expect_eq(rclose(fd[A]), 0);
	cr_expect_eq(rclose(fd[B]), 0);
}

#endif
