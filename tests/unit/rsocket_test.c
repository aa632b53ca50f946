/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <sys/wait.h>

#include "rsocket_pair.h"

/* What a program of TCP expects of its sockets. */

TestSuite(rsocket, .init = setup, .timeout = 60);

/* ---- connecting ---- */

Test(rsocket, both_ends_know_both_addresses)
{
	int listener = serve(IP_B), fd[SIDES];
	union addr a[SIDES], peer[SIDES];
	socklen_t len = sizeof(a[A]);

	link_up(listener, fd);
	for (int s = A; s < SIDES; s++) {
		cr_assert_eq(rgetsockname(fd[s], &a[s].sa, &len), 0);
		cr_assert_eq(rgetpeername(fd[s], &peer[s].sa, &len), 0);
	}
	cr_expect_eq(len, sizeof(struct sockaddr_in));
	cr_expect_eq(a[A].in.sin_addr.s_addr, peer[B].in.sin_addr.s_addr);
	cr_expect_eq(a[B].in.sin_addr.s_addr, peer[A].in.sin_addr.s_addr);
	cr_expect_eq(a[B].in.sin_port, htons(PORT));
	cr_expect_eq(a[A].in.sin_port, peer[B].in.sin_port);
	cr_expect_eq(errno_of(rgetpeername(listener, &peer[A].sa, &len)), ENOTCONN);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, connects_over_ipv6)
{
	int listener = serve(IP6_B), fd[SIDES];

	link_up_by(listener, new_socket(IP6_B), IP6_B, fd);
	put(fd[A], "six", 3);
	want(fd[B], "six");
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, without_a_listener_it_is_refused_and_may_try_again)
{
	int fd = new_socket(IP_B), listener, both[SIDES];
	union addr to = addr(IP_B, PORT);

	cr_expect_eq(try_connect(fd, IP_B), ECONNREFUSED);
	cr_expect_eq(error_of(fd), 0, "it was reported");
	set_nonblocking(fd, true);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EINPROGRESS);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EALREADY);
	cr_expect(await(fd, POLLOUT) & POLLERR);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), ECONNREFUSED);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EINPROGRESS, "told once");
	cr_expect(await(fd, POLLOUT) & POLLERR);
	cr_expect_eq(error_of(fd), ECONNREFUSED);
	listener = serve(IP_B);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EINPROGRESS);
	both[B] = accept_from(listener, fd);
	cr_assert(await(fd, POLLOUT) & POLLOUT);
	cr_expect_eq(errno_of(rconnect(fd, &to.sa, sizeof(to.in))), EISCONN);
	put(fd, "at last", 7);
	want(both[B], "at last");
	rclose(fd);
	rclose(both[B]);
	rclose(listener);
}

Test(rsocket, a_listener_that_does_not_block_has_nothing_to_accept)
{
	int listener = serve(IP_B), other = new_socket(IP_B);
	struct pollfd p = {.fd = listener, .events = POLLIN};
	union addr a = addr(IP_B, PORT);

	set_nonblocking(listener, true);
	cr_expect_eq(errno_of(raccept(listener, NULL, NULL)), EAGAIN);
	cr_expect_eq(rpoll(&p, 1, 0), 0);
	cr_expect_eq(errno_of(rbind(other, &a.sa, sizeof(a.in))), EADDRINUSE);
	rclose(other);
	rclose(listener);
	expect_others_work(serve(IP_B));
}

Test(rsocket, what_is_no_rsocket_is_refused)
{
	char c;

	cr_expect_eq(errno_of(rsocket(AF_UNIX, SOCK_STREAM, 0)), EAFNOSUPPORT);
	cr_expect_eq(errno_of(rsocket(AF_INET, SOCK_RAW, 0)), EPROTONOSUPPORT);
	cr_expect_eq(errno_of(rrecv(0, &c, 1, 0)), EBADF);
	cr_expect_eq(errno_of(rclose(-1)), EBADF);
	cr_expect_eq(errno_of(rclose(1 << 30)), EBADF);
}

/* ---- data ---- */

Test(rsocket, peek_waitall_and_dontwait)
{
	int listener = serve(IP_B), fd[SIDES];
	char got[8] = "";

	link_up(listener, fd);
	cr_expect_eq(errno_of(rrecv(fd[B], got, 4, MSG_DONTWAIT)), EAGAIN);
	put(fd[A], "abcd", 4);
	cr_expect(await(fd[B], POLLIN) & POLLIN);
	cr_expect_eq(rrecv(fd[B], got, 8, MSG_PEEK), 4);
	cr_expect_arr_eq(got, "abcd", 4);
	cr_expect_eq(rrecv(fd[B], got, 3, 0), 3);
	put(fd[A], "efg", 3);
	cr_expect_eq(rrecv(fd[B], got, 4, MSG_WAITALL), 4);
	cr_expect_arr_eq(got, "defg", 4);
	cr_expect_eq(rrecv(fd[B], got, 0, 0), 0);
	cr_expect_eq(rsend(fd[A], got, 0, 0), 0);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, vectors_are_gathered_and_scattered)
{
	int listener = serve(IP_B), fd[SIDES];
	char x[3] = "ab", y[3] = "", one[2] = "", four[5] = "";
	struct iovec out[3] = {{x, 2}, {y, 0}, {(char[]){"cde"}, 3}}, in[2] = {{one, 1}, {four, 4}};
	struct msghdr msg = {.msg_iov = in, .msg_iovlen = 2};

	link_up(listener, fd);
	cr_expect_eq(rwritev(fd[A], out, 3), 5);
	cr_expect_eq(rrecvmsg(fd[B], &msg, MSG_WAITALL), 5);
	cr_expect_str_eq(one, "a");
	cr_expect_str_eq(four, "bcde");
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

#define MUCH 3000000

static uint8_t byte_at(size_t i, int side)
{
	return (uint8_t)(i * 7 + i / 251 + (size_t)side);
}

struct stream {
	int fd;
	int side; /* whose data */
};

static void *send_much(void *arg)
{
	const struct stream *s = arg;
	uint8_t *data = malloc(MUCH);

	for (size_t i = 0; i < MUCH; i++)
		data[i] = byte_at(i, s->side);
	for (size_t at = 0, n = 1; at < MUCH; at += n) {
		n = n * 3 % 200000;
		if (n > MUCH - at)
			n = MUCH - at;
		put(s->fd, data + at, n);
	}
	cr_expect_eq(rshutdown(s->fd, SHUT_WR), 0);
	free(data);
	return NULL;
}

static void *receive_much(void *arg)
{
	const struct stream *s = arg;
	uint8_t data[70000];
	size_t at = 0, wrong = 0;
	ssize_t n;

	while ((n = rrecv(s->fd, data, 1 + at % sizeof(data), 0)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			wrong += data[i] != byte_at(at, s->side);
	cr_expect_eq(n, 0, "%s", strerror(errno));
	cr_expect_eq(at, MUCH);
	cr_expect_eq(wrong, 0);
	return NULL;
}

/* RSOCKET-GRANT-01, RSOCKET-TARGET-01, RSOCKET-CLOSE-01 */
Test(rsocket, streams_in_both_directions_by_four_threads)
{
	int listener = serve(IP_B), fd[SIDES];
	struct stream s[4];
	pthread_t t[4];

	link_up(listener, fd);
	for (int i = 0; i < 4; i++) {
		s[i] = (struct stream){fd[i & 1], i < 2 ? i & 1 : !(i & 1)};
		cr_assert_eq(pthread_create(&t[i], NULL, i < 2 ? send_much : receive_much, &s[i]),
			     0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, small_queues_and_buffers_carry_as_much)
{
	int listener = new_socket(IP_B), fd[SIDES], small = 1, depth = 16, none = 0;
	struct stream to, from;
	pthread_t t;

	bind_to(listener, IP_B, PORT);
	rsetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	rsetsockopt(listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	rsetsockopt(listener, SOL_RDMA, RDMA_SQSIZE, &depth, sizeof(depth));
	rsetsockopt(listener, SOL_RDMA, RDMA_RQSIZE, &depth, sizeof(depth));
	rsetsockopt(listener, SOL_RDMA, RDMA_INLINE, &none, sizeof(none));
	cr_assert_eq(rlisten(listener, 1), 0);
	link_up(listener, fd);
	to = (struct stream){fd[B], B};
	from = (struct stream){fd[A], B};
	pthread_create(&t, NULL, send_much, &to);
	receive_much(&from);
	pthread_join(t, NULL);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, a_full_peer_stops_a_sender_that_does_not_block)
{
	int listener = serve(IP_B), fd[SIDES];
	uint8_t data[50000], got[50000];
	size_t sent = 0, read_cnt = 0;
	ssize_t n;

	link_up(listener, fd);
	set_nonblocking(fd[A], true);
	memset(data, 7, sizeof(data));
	while ((n = rsend(fd[A], data, sizeof(data), 0)) > 0)
		sent += (size_t)n;
	cr_expect_eq(errno, EAGAIN);
	cr_expect_gt(sent, 60000);
	while (read_cnt < sent) {
		n = rrecv(fd[B], got, sizeof(got), 0);
		cr_assert_gt(n, 0);
		read_cnt += (size_t)n;
	}
	cr_expect_eq(read_cnt, sent);
	cr_expect(await(fd[A], POLLOUT) & POLLOUT);
	cr_expect_gt(rsend(fd[A], data, sizeof(data), 0), 0);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

/* ---- the end ---- */

/* RSOCKET-CLOSE-01 */
Test(rsocket, all_data_comes_before_the_end)
{
	int listener = serve(IP_B), fd[SIDES];
	char c;

	link_up(listener, fd);
	put(fd[A], "last words", 10);
	rclose(fd[A]);
	want(fd[B], "last words");
	cr_expect_eq(rrecv(fd[B], &c, 1, 0), 0);
	cr_expect(await(fd[B], POLLIN) & POLLHUP);
	cr_expect_eq(errno_of(rsend(fd[B], "x", 1, 0)), ECONNRESET);
	cr_expect_eq(errno_of(rsend(fd[B], "x", 1, 0)), EPIPE);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, one_direction_may_end_before_the_other)
{
	int listener = serve(IP_B), fd[SIDES];
	char c;

	link_up(listener, fd);
	cr_expect_eq(rshutdown(fd[A], SHUT_WR), 0);
	cr_expect_eq(errno_of(rsend(fd[A], "x", 1, 0)), EPIPE);
	cr_expect_eq(rrecv(fd[B], &c, 1, 0), 0);
	put(fd[B], "reply", 5);
	cr_expect_eq(rshutdown(fd[B], SHUT_WR), 0);
	want(fd[A], "reply");
	cr_expect_eq(rrecv(fd[A], &c, 1, 0), 0);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

static void *read_and_close(void *arg)
{
	want(*(int *)arg, "enough");
	rclose(*(int *)arg);
	return NULL;
}

/* A shutdown may find the peer gone, which has said that it goes. */
Test(rsocket, an_end_in_order_is_no_reset_whoever_is_first)
{
	int listener = serve(IP_B), fd[SIDES];
	pthread_t t;
	char c;

	for (int i = 0; i < 100; i++) {
		link_up(listener, fd);
		pthread_create(&t, NULL, read_and_close, &fd[A]);
		put(fd[B], "enough", 6);
		cr_expect_eq(rshutdown(fd[B], SHUT_WR), 0);
		cr_assert_eq(rrecv(fd[B], &c, 1, 0), 0, "%d: %s", i, strerror(errno));
		pthread_join(t, NULL);
		rclose(fd[B]);
	}
	rclose(listener);
}

#define SOME 60000

static void *write_and_close(void *arg)
{
	static const uint8_t data[SOME];

	put(*(int *)arg, data, sizeof(data));
	rclose(*(int *)arg);
	return NULL;
}

/* RSOCKET-CLOSE-01. The peer's shutdown comes while the last data is under way. */
Test(rsocket, a_peers_shutdown_does_not_stop_what_was_sent)
{
	int listener = serve(IP_B), fd[SIDES];
	uint8_t got[SOME];
	pthread_t t;

	for (int i = 0; i < 100; i++) {
		link_up(listener, fd);
		pthread_create(&t, NULL, write_and_close, &fd[A]);
		cr_expect_eq(rshutdown(fd[B], SHUT_WR), 0);
		cr_assert_eq(rrecv(fd[B], got, sizeof(got), MSG_WAITALL), SOME, "%d: %s", i,
			     strerror(errno));
		cr_assert_eq(rrecv(fd[B], got, 1, 0), 0);
		pthread_join(t, NULL);
		rclose(fd[B]);
	}
	rclose(listener);
}

/* As in Linux: it keeps no call waiting, and takes nothing away. */
Test(rsocket, what_comes_after_shut_rd_can_be_read)
{
	int listener = serve(IP_B), fd[SIDES];
	char c;

	link_up(listener, fd);
	put(fd[A], "old", 3);
	cr_expect(await(fd[B], POLLIN) & POLLIN);
	cr_expect_eq(rshutdown(fd[B], SHUT_RD), 0);
	want(fd[B], "o");
	put(fd[A], "new", 3);
	rclose(fd[A]);
	want(fd[B], "ldnew");
	cr_expect_eq(rrecv(fd[B], &c, 1, 0), 0);
	rclose(fd[B]);
	rclose(listener);
}

Test(rsocket, only_a_linger_of_zero_resets)
{
	static const struct linger some[] = {{1, 86400}, {1, -1}, {1, INT_MAX}};
	int listener = serve(IP_B), fd[SIDES];
	char c;

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		link_up(listener, fd);
		rsetsockopt(fd[A], SOL_SOCKET, SO_LINGER, &some[i], sizeof(some[i]));
		rclose(fd[A]);
		cr_expect_eq(rrecv(fd[B], &c, 1, 0), 0, "%d s", some[i].l_linger);
		rclose(fd[B]);
	}
	rclose(listener);
}

Test(rsocket, a_reset_is_reported_once)
{
	int listener = serve(IP_B), fd[SIDES];
	struct linger now = {.l_onoff = 1};
	char c;

	link_up(listener, fd);
	rsetsockopt(fd[A], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	rclose(fd[A]);
	cr_expect_eq(errno_of(rrecv(fd[B], &c, 1, 0)), ECONNRESET);
	cr_expect_eq(rrecv(fd[B], &c, 1, 0), 0);
	rclose(fd[B]);
	rclose(listener);
}

static void *read_one(void *arg)
{
	char c;

	return (void *)(uintptr_t)(rrecv(*(int *)arg, &c, 1, 0) < 0 ? errno : 0);
}

Test(rsocket, close_wakes_a_thread_that_reads)
{
	int listener = serve(IP_B), fd[SIDES];
	pthread_t t;
	void *why;

	link_up(listener, fd);
	pthread_create(&t, NULL, read_one, &fd[B]);
	await_reader(fd[B]);
	rclose(fd[B]);
	pthread_join(t, &why);
	cr_expect_eq((uintptr_t)why, EBADF);
	rclose(fd[A]);
	rclose(listener);
}

Test(rsocket, a_thread_may_be_cancelled_while_it_reads)
{
	int listener = serve(IP_B), fd[SIDES];
	pthread_t t;
	void *end;

	link_up(listener, fd);
	pthread_create(&t, NULL, read_one, &fd[B]);
	await_reader(fd[B]);
	pthread_cancel(t);
	pthread_join(t, &end);
	cr_expect_eq(end, PTHREAD_CANCELED);
	put(fd[A], "on", 2);
	want(fd[B], "on");
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

/* EDGE-FORK-03 */
Test(rsocket, a_child_of_fork_has_no_sockets)
{
	int listener = serve(IP_B), fd[SIDES], status = -1;
	pid_t child;
	char c;

	link_up(listener, fd);
	child = fork();
	if (!child)
		_exit(rrecv(fd[B], &c, 1, 0) == -1 && errno == EIO && !rclose(fd[B]) ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	put(fd[A], "parent", 6);
	want(fd[B], "parent");
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

/* ---- waiting ---- */

Test(rsocket, poll_watches_sockets_and_pipes_together)
{
	int listener = serve(IP_B), fd[SIDES], ends[2];
	struct pollfd p[3];
	fd_set r;

	link_up(listener, fd);
	cr_assert_eq(pipe(ends), 0);
	p[0] = (struct pollfd){.fd = fd[B], .events = POLLIN};
	p[1] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	p[2] = (struct pollfd){.fd = -1, .revents = 5};
	cr_expect_eq(rpoll(p, 3, 20), 0);
	cr_expect_eq(p[2].revents, 0);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	cr_expect_eq(rpoll(p, 3, PATIENCE_MS), 1);
	cr_expect_eq(p[1].revents, POLLIN);
	put(fd[A], "y", 1);
	cr_expect_eq(rpoll(p, 1, PATIENCE_MS), 1);
	cr_expect_eq(rpoll(p, 3, 0), 2);
	FD_ZERO(&r);
	FD_SET(fd[A], &r);
	FD_SET(fd[B], &r);
	FD_SET(ends[0], &r);
	cr_expect_eq(rselect(FD_SETSIZE, &r, NULL, NULL, NULL), 2);
	cr_expect(!FD_ISSET(fd[A], &r) && FD_ISSET(fd[B], &r) && FD_ISSET(ends[0], &r));
	cr_expect_eq(errno_of(rselect(1, NULL, NULL, NULL, &(struct timeval){-1, 0})), EINVAL);
	cr_expect_eq(errno_of(rselect(1, NULL, NULL, NULL, &(struct timeval){0, -1})), EINVAL);
	close(ends[0]);
	close(ends[1]);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

static void *write_to_sleeper(void *arg)
{
	const int *fd = arg;

	await_reader(fd[B]);
	put(fd[A], "z", 1);
	return NULL;
}

Test(rsocket, poll_sleeps_until_data_comes)
{
	int listener = serve(IP_B), fd[SIDES];
	pthread_t t;

	link_up(listener, fd);
	pthread_create(&t, NULL, write_to_sleeper, fd);
	cr_expect(await(fd[B], POLLIN) & POLLIN);
	want(fd[B], "z");
	pthread_join(t, NULL);
	pthread_create(&t, NULL, write_to_sleeper, fd);
	want(fd[B], "z");
	pthread_join(t, NULL);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}

/* ---- options ---- */

static int option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	cr_expect_eq(rgetsockopt(fd, level, name, &value, &len), 0, "%d %d: %s", level, name,
		     strerror(errno));
	cr_expect_eq(len, sizeof(value));
	return value;
}

static int set_option(int fd, int level, int name, int value)
{
	return rsetsockopt(fd, level, name, &value, sizeof(value)) ? errno : 0;
}

Test(rsocket, options_are_kept)
{
	int fd = new_socket(IP_B), caller;
	struct timeval brief = {0, 20000};
	char c;

	cr_expect_eq(set_option(fd, SOL_SOCKET, SO_RCVBUF, 50000), 0);
	cr_expect_eq(option_of(fd, SOL_SOCKET, SO_RCVBUF), 100000);
	cr_expect_eq(set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1), 0);
	cr_expect_eq(option_of(fd, SOL_SOCKET, SO_REUSEADDR), 1);
	cr_expect_eq(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
	cr_expect_eq(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	cr_expect_eq(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1), 0);
	cr_expect_eq(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	cr_expect_eq(set_option(fd, SOL_RDMA, RDMA_RQSIZE, 100), 0);
	cr_expect_eq(option_of(fd, SOL_RDMA, RDMA_RQSIZE), 100);
	cr_expect_eq(set_option(fd, SOL_RDMA, RDMA_IOMAPSIZE, 300), 0);
	cr_expect_eq(option_of(fd, SOL_RDMA, RDMA_IOMAPSIZE), 256);
	cr_expect_eq(option_of(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	cr_expect_eq(set_option(fd, SOL_SOCKET, SO_MARK, 1), ENOPROTOOPT);
	cr_expect_eq(rfcntl(fd, F_GETFL), O_RDWR);
	set_nonblocking(fd, true);
	cr_expect_eq(rfcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	cr_expect_eq(errno_of(rrecv(fd, &c, 1, 0)), ENOTCONN);
	rclose(fd);
	fd = serve(IP_B);
	rsetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief));
	cr_expect_eq(errno_of(raccept(fd, NULL, NULL)), EAGAIN);
	caller = new_socket(IP_B);
	rsetsockopt(caller, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof(brief));
	cr_expect_eq(try_connect(caller, IP_B), EINPROGRESS, "nobody accepts");
	rclose(caller);
	rclose(fd);
}

/* ---- mapped buffers ---- */

/* RSOCKET-MAP-01 */
Test(rsocket, writes_to_a_mapped_buffer_come_before_later_data)
{
	int listener = serve(IP_B), client = new_socket(IP_B), fd[SIDES];
	static uint8_t there[100000], here[100000];

	cr_assert_eq(set_option(client, SOL_RDMA, RDMA_IOMAPSIZE, 1), 0);
	link_up_by(listener, client, IP_B, fd);
	memset(here, 5, sizeof(here));
	cr_expect_eq(riowrite(fd[A], here, 1, 4096, 0), (size_t)-1, "nothing is mapped");
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(errno_of(riomap(fd[A], here, 10, PROT_WRITE, 0, 0)), ENOMEM, "B has no table");
	cr_assert_eq(riomap(fd[B], there, sizeof(there), PROT_WRITE, 0, 4096), 4096);
	cr_expect_eq(errno_of(riomap(fd[B], there, 10, PROT_WRITE, 0, 0)), ENOMEM, "one entry");
	put(fd[B], "mapped", 6);
	want(fd[A], "mapped");
	cr_assert_eq(riowrite(fd[A], here, sizeof(here) - 10, 4096 + 10, 0), sizeof(here) - 10);
	cr_expect_eq(riowrite(fd[A], here, 20, 4096 + sizeof(here) - 5, 0), 5, "up to its end");
	put(fd[A], "done", 4);
	want(fd[B], "done");
	cr_expect_eq(there[9], 0);
	cr_expect_arr_eq(there + 10, here, sizeof(here) - 10);
	cr_expect_eq(riounmap(fd[B], there, sizeof(there)), 0);
	cr_expect_eq(errno_of(riounmap(fd[B], there, sizeof(there))), EINVAL);
	rclose(fd[A]);
	rclose(fd[B]);
	rclose(listener);
}
