/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "closer.h"
#include "dpdk/fd_msg.h"

/*
 * UROCED-CLOSE-01. A thread that closes the descriptor of lingering() stays there for an hour, and the test with it. So what is tested here
 * either returns, or runs into its time limit.
 */
#define LINGER_S 3600

TestSuite(uroced_closer, .timeout = 60);

static int ours, theirs; /* a connection of a client */

static void connect_client(void)
{
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	ours = fd[0];
	theirs = fd[1];
}

/* A TCP socket with data that nobody reads. */
static int lingering(void)
{
	struct linger linger = {1, LINGER_S};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char data[1 << 16];

	cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &(socklen_t){sizeof(at)}), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

static void give(int fd, unsigned cnt)
{
	int fds[UR_FD_MSG_MAX];

	for (unsigned i = 0; i < cnt; i++)
		fds[i] = fd;
	cr_assert(ur_fd_msg_send(theirs, "x", 1, fds, cnt));
	close(fd);
}

static ssize_t receive(uid_t uid, int *fd)
{
	char msg[2];

	return closer_receive(ours, msg, sizeof(msg), uid, fd);
}

Test(uroced_closer, the_caller_waits_for_no_descriptor)
{
	connect_client();
	give(lingering(), 1);
	cr_expect_eq(receive(1, NULL), 1);
	give(lingering(), UR_FD_MSG_MAX);
	cr_expect_eq(receive(1, NULL), 1);
	cr_expect_eq(receive(1, NULL), -1);
	cr_expect_eq(errno, EAGAIN, "nothing is there");
}

Test(uroced_closer, a_user_with_all_threads_at_work_waits_and_no_other)
{
	connect_client();
	for (unsigned i = 0; i < CLOSER_PER_USER; i++) {
		give(lingering(), 1);
		cr_assert_eq(receive(1, NULL), 1);
	}
	give(lingering(), 1);
	cr_expect_eq(receive(1, NULL), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(receive(2, NULL), 1, "the message is still there, for another user");
}

Test(uroced_closer, what_has_no_descriptors_needs_no_thread)
{
	connect_client();
	for (unsigned i = 0; i < CLOSER_PER_USER; i++) {
		give(lingering(), 1);
		cr_assert_eq(receive(1, NULL), 1);
	}
	cr_assert_eq(send(theirs, "x", 1, 0), 1);
	cr_expect_eq(receive(1, NULL), 1);
	cr_assert_eq(send(theirs, "", 0, 0), 0);
	cr_assert_eq(send(theirs, "x", 1, 0), 1);
	closer_close(ours, 1);
	cr_expect_lt(fcntl(ours, F_GETFD), 0, "closed at once");
	/* An empty message looks like the end. */
	connect_client();
	cr_assert_eq(send(theirs, "", 0, 0), 0);
	give(lingering(), 1);
	closer_close(ours, 1);
	cr_expect_geq(fcntl(ours, F_GETFD), 0, "it waits");
}

Test(uroced_closer, the_caller_may_have_the_first)
{
	struct stat want, got;
	int pair[2], fd;

	connect_client();
	cr_assert_eq(pipe(pair), 0);
	cr_assert_eq(fstat(pair[0], &want), 0);
	cr_assert(ur_fd_msg_send(theirs, "x", 1, (int[]){pair[0], lingering()}, 2));
	cr_assert_eq(receive(1, &fd), 1);
	cr_assert_eq(fstat(fd, &got), 0);
	cr_expect_eq(got.st_ino, want.st_ino);
	cr_assert_eq(send(theirs, "x", 1, 0), 1);
	cr_assert_eq(receive(1, &fd), 1);
	cr_expect_eq(fd, -1);
}

Test(uroced_closer, a_socket_with_descriptors_in_it_is_closed_elsewhere)
{
	unsigned more = 2 * CLOSER_PER_USER;

	for (unsigned i = 0; i < more; i++) {
		connect_client();
		give(lingering(), 1);
		closer_close(ours, 1);
		closer_poll();
		cr_expect_leq(recv(theirs, &(char){0}, 1, 0), 0, "the client is told at once");
		close(theirs);
	}
	cr_expect(closer_has_room());
	/* Those of another user are closed meanwhile. */
	connect_client();
	closer_close(ours, 2);
	while (fcntl(ours, F_GETFD) >= 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

Test(uroced_closer, sockets_that_wait_leave_no_room_for_connections)
{
	unsigned i;

	for (i = 0; i < 1000 && closer_has_room(); i++) {
		connect_client();
		give(eventfd(0, EFD_CLOEXEC), 1);
		if (i < CLOSER_PER_USER)
			give(lingering(), 1);
		close(theirs);
		closer_close(ours, 1);
	}
	cr_expect_eq(i, 256 + CLOSER_PER_USER);
}
