/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* program_invocation_short_name */
#endif
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "dpdk/fd_msg.h"
#include "dpdk/lease.h"
#include "descriptors.h"

/* The client of a daemon that does what the test wants. */

static struct daemon {
	char dir[32];
	int listener;
	int fd; /* of the connection */
	struct ur_lease_request request;
	pthread_t thread;
} d;

static struct ur_lease_grant grant = {
	.address = 0x0a4d0001,
	.prefix = 24,
	.slots_shift = 8,
	.mtu = 4200,
	.mac = {2, 0x75, 10, 77, 0, 1},
	.qpns = {UR_LEASE_PREFIX_BITS, 5},
	.memif_id = 5,
	.secret = "0123456789abcdef012345",
	.memif = "x.memif",
};

static struct ur_config cfg;
static char err[512];
static struct ur_lease *lease;

static void set_up(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(d.dir, "/tmp/lease-XXXXXX");
	cr_assert_not_null(mkdtemp(d.dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", d.dir);
	d.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert(d.listener >= 0);
	cr_assert_eq(bind(d.listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(d.listener, 8), 0);
	d.fd = -1;
	ur_config_init(&cfg);
	snprintf(cfg.port.dev, sizeof(cfg.port.dev), "uroced:%s/s", d.dir);
}

static void tear_down(void)
{
	char path[64];

	ur_lease_close(lease);
	lease = NULL;
	if (d.fd >= 0)
		close(d.fd);
	close(d.listener);
	snprintf(path, sizeof(path), "%s/s", d.dir);
	unlink(path);
	rmdir(d.dir);
}

TestSuite(lease, .init = set_up, .fini = tear_down, .timeout = 60);

/* ---- the daemon ---- */

static bool take_request(void)
{
	uint8_t msg[UR_LEASE_REQUEST_BYTES + 1];
	ssize_t len;

	d.fd = accept(d.listener, NULL, NULL);
	len = recv(d.fd, msg, sizeof(msg), 0);
	return len > 0 && ur_lease_get_request(msg, (size_t)len, &d.request);
}

static void send_grant(int fd)
{
	uint8_t msg[UR_LEASE_GRANT_BYTES];

	ur_lease_put_grant(&grant, msg);
	(void)ur_fd_msg_send(d.fd, msg, sizeof(msg), &fd, fd >= 0);
}

static void *grant_one(void *arg)
{
	if (take_request())
		send_grant(-1);
	return NULL;
}

static pthread_t opener;

static void *grant_after_signals(void *arg)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	if (!take_request())
		return NULL;
	for (int i = 0; i < 20; i++) {
		pthread_kill(opener, SIGUSR1);
		nanosleep(&nap, NULL);
	}
	send_grant(-1);
	return NULL;
}

static void *answer_nonsense(void *arg)
{
	if (take_request())
		(void)!send(d.fd, "nonsense", 8, 0);
	return NULL;
}

static int open_lease(void *(*daemon)(void *arg))
{
	int rc;

	cr_assert_eq(pthread_create(&d.thread, NULL, daemon, NULL), 0);
	rc = ur_lease_open(&cfg, &lease, err, sizeof(err));
	pthread_join(d.thread, NULL);
	return rc;
}

/* ---- tests ---- */

/* UROCED-CLIENT-01, UROCED-MSG-01 */
Test(lease, a_program_of_any_name_gets_one)
{
	char name[] = "t\xc3\xa9st\n";

	program_invocation_short_name = name;
	cr_assert_eq(open_lease(grant_one), 0, "%s", err);
	cr_assert_str_eq(d.request.program, "t??st?");
	cr_assert_eq(ur_lease_prefix(lease).value, 5);
	cr_assert_eq(cfg.port.mtu, 4200);
}

static void on_signal(int number)
{
}

Test(lease, signals_do_not_end_the_wait)
{
	struct sigaction a = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &a, NULL);
	opener = pthread_self();
	cr_assert_eq(open_lease(grant_after_signals), 0, "%s", err);
}

Test(lease, nonsense_is_refused)
{
	cr_assert_eq(open_lease(answer_nonsense), -EPROTO);
	cr_assert_not_null(strstr(err, "does not answer as a uroced"), "%s", err);
	cr_assert_null(lease);
}

static void *bind_one(void *arg)
{
	uint8_t msg[UR_LEASE_PORT_BYTES + 1], out[UR_LEASE_PORT_BYTES];
	struct ur_lease_bound b = {.status = UR_LEASE_BOUND};
	struct ur_lease_port p;
	ssize_t len = recv(d.fd, msg, sizeof(msg), 0);

	if (len <= 0 || !ur_lease_get_port(msg, (size_t)len, &p))
		return NULL;
	/* What it was not asked comes first. */
	b.space = p.space;
	b.asked = b.port = (uint16_t)(p.port + 1);
	ur_lease_put_bound(&b, out);
	(void)!send(d.fd, out, sizeof(out), 0);
	b.asked = b.port = p.port;
	ur_lease_put_bound(&b, out);
	(void)!send(d.fd, out, sizeof(out), 0);
	return NULL;
}

/* UROCED-PORTS-01: the daemon is asked once, however often the process binds the port. */
Test(lease, binds_of_a_port_are_counted_and_limited)
{
	uint16_t port = 7471;
	uint8_t msg[UR_LEASE_PORT_BYTES + 1];
	struct ur_lease_port p;

	cr_assert_eq(open_lease(grant_one), 0, "%s", err);
	cr_assert_eq(pthread_create(&d.thread, NULL, bind_one, NULL), 0);
	cr_assert_eq(ur_lease_bind(lease, UR_LEASE_TCP, &port), 0);
	pthread_join(d.thread, NULL);
	for (unsigned i = 1; i < UINT16_MAX; i++)
		cr_assert_eq(ur_lease_bind(lease, UR_LEASE_TCP, &port), 0);
	cr_assert_eq(ur_lease_bind(lease, UR_LEASE_TCP, &port), -ENOBUFS);
	for (unsigned i = 0; i < UINT16_MAX; i++)
		ur_lease_unbind(lease, UR_LEASE_TCP, port);
	cr_assert_eq(recv(d.fd, msg, sizeof(msg), MSG_DONTWAIT), UR_LEASE_PORT_BYTES);
	cr_assert(ur_lease_get_port(msg, UR_LEASE_PORT_BYTES, &p) && p.release && p.port == port);
	cr_assert_lt(recv(d.fd, msg, sizeof(msg), MSG_DONTWAIT), 0, "released once");
}

/* ---- descriptors ---- */

static int interrupt_fd;

static void *grant_with_descriptors(void *arg)
{
	uint8_t msg[UR_LEASE_GRANT_BYTES];
	int fd[2] = {open("/dev/null", O_RDWR), interrupt_fd};

	if (!take_request())
		return NULL;
	ur_lease_put_grant(&grant, msg);
	(void)ur_fd_msg_send(d.fd, msg, sizeof(msg), fd, 2);
	close(fd[0]);
	return NULL;
}

Test(lease, descriptors_of_a_grant_end_with_it)
{
	unsigned before;

	interrupt_fd = eventfd(0, EFD_NONBLOCK);
	before = descriptors();
	cr_assert_eq(open_lease(grant_with_descriptors), 0, "%s", err);
	cr_assert_geq(ur_lease_wake_fd(lease), 0);
	close(d.fd);
	d.fd = -1;
	ur_lease_close(lease);
	lease = NULL;
	cr_expect_eq(descriptors(), before);
	close(interrupt_fd);
}

Test(lease, one_descriptor_comes_with_a_message_and_others_do_not)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = {.bytes = {0}};
	char byte = 1, got;
	struct iovec from = {&byte, 1};
	struct msghdr h = {.msg_iov = &from,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int pair[2], three[3], fd;
	unsigned before;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = descriptors();
	for (unsigned i = 0; i < 3; i++)
		three[i] = open("/dev/null", O_RDONLY);
	control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(three)),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.align), three, sizeof(three));
	cr_assert_eq(sendmsg(pair[0], &h, 0), 1);
	for (unsigned i = 0; i < 3; i++)
		close(three[i]);
	cr_assert_eq(ur_fd_msg_receive(pair[1], &got, 1, &fd, 1), 1);
	cr_assert(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	cr_assert_eq(descriptors(), before + 1);
	close(fd);
	/* Without one, and of a message without one. */
	cr_assert(ur_fd_msg_send(pair[0], &byte, 1, NULL, 0));
	cr_assert_eq(ur_fd_msg_receive(pair[1], &got, 1, &fd, 1), 1);
	cr_assert_eq(fd, -1);
	cr_assert_lt(ur_fd_msg_receive(pair[1], &got, 1, &fd, 1), 0);
	cr_assert(errno == EAGAIN && fd == -1);
	close(pair[0]);
	close(pair[1]);
}

/* ---- direct rings ---- */

#define HELD 64 /* messages that wait */

/* Tells of a ring to this address; `fds` descriptors, of which the client gets copies. */
static void tell(uint32_t address, uint16_t frame_max, unsigned fds)
{
	struct ur_lease_direct ring = {address, frame_max, address & frame_max & 1};
	uint8_t msg[UR_LEASE_DIRECT_BYTES];
	int fd[2] = {interrupt_fd, interrupt_fd};

	ur_lease_put_direct(&ring, msg);
	cr_assert(ur_fd_msg_send(d.fd, msg, sizeof(msg), fd, fds));
}

static void open_direct(void)
{
	interrupt_fd = eventfd(0, EFD_NONBLOCK);
	cr_assert_eq(open_lease(grant_one), 0, "%s", err);
	cr_assert(d.request.direct && ur_lease_takes_direct(lease));
}

/* The next message, whose descriptor is a copy of the daemon's. */
static void expect_next(uint32_t address, uint16_t frame_max, unsigned fds)
{
	struct ur_lease_direct ring = {0};
	uint64_t value = 0;
	int fd = -2;

	cr_assert(ur_lease_next_direct(lease, &ring, &fd), "%u", address);
	cr_assert_eq(ring.client, address);
	cr_assert_eq(ring.frame_max, frame_max);
	cr_assert_eq(ring.second, address & frame_max & 1);
	if (!fds) {
		cr_assert_eq(fd, -1, "%u", address);
		return;
	}
	cr_assert_geq(fd, 0, "%u", address);
	cr_assert_eq(eventfd_write(fd, 7), 0);
	cr_assert_eq(eventfd_read(interrupt_fd, &value), 0);
	cr_assert_eq(value, 7);
	close(fd);
}

static void expect_none(void)
{
	struct ur_lease_direct ring;
	int fd;

	cr_assert_not(ur_lease_next_direct(lease, &ring, &fd));
}

/* UROCED-DIRECT-01 */
Test(lease, messages_about_direct_rings_are_found_in_order)
{
	unsigned before;

	open_direct();
	before = descriptors();
	expect_none();
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
	expect_none();
	for (uint32_t i = 0; i < 3 * HELD; i += 3) {
		tell(1 + i, 4219, 1);
		tell(1 + i, 0, 0);
		tell(2 + i, 1519, 1);
		for (unsigned k = 0; k < 3; k++)
			cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
		expect_next(1 + i, 4219, 1);
		expect_next(1 + i, 0, 0);
		expect_next(2 + i, 1519, 1);
		expect_none();
	}
	cr_assert_eq(descriptors(), before);
	close(interrupt_fd);
}

/* The end of a ring has none; what came with it is nobody's. */
Test(lease, descriptors_of_a_ring_that_has_ended_are_closed)
{
	unsigned before;

	open_direct();
	before = descriptors();
	tell(1, 0, 1);
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
	expect_next(1, 0, 0);
	cr_assert_eq(descriptors(), before);
	close(interrupt_fd);
}

/* More descriptors than one is in no message about ports. */
Test(lease, descriptors_of_other_messages_are_closed)
{
	struct ur_lease_bound b = {UR_LEASE_BOUND, UR_LEASE_TCP, 7, 7};
	uint8_t msg[UR_LEASE_PORT_BYTES];
	unsigned before;
	int fd[2];

	open_direct();
	fd[0] = fd[1] = interrupt_fd;
	before = descriptors();
	ur_lease_put_bound(&b, msg);
	cr_assert(ur_fd_msg_send(d.fd, msg, sizeof(msg), fd, 2));
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
	cr_assert_eq(descriptors(), before);
	expect_none();
	close(interrupt_fd);
}

static void *tell_and_bind(void *arg)
{
	tell(1, 4219, 1);
	tell(2, 0, 0);
	bind_one(NULL);
	tell(3, 4219, 1);
	return NULL;
}

/* UROCED-DIRECT-01: what arrives while a thread waits for something else is not lost. */
Test(lease, messages_about_direct_rings_may_arrive_before_an_answer)
{
	uint16_t port = 7471;

	open_direct();
	cr_assert_eq(pthread_create(&d.thread, NULL, tell_and_bind, NULL), 0);
	cr_assert_eq(ur_lease_bind(lease, UR_LEASE_TCP, &port), 0);
	pthread_join(d.thread, NULL);
	expect_next(1, 4219, 1);
	expect_next(2, 0, 0);
	expect_none();
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
	expect_next(3, 4219, 1);
	close(interrupt_fd);
}

Test(lease, descriptors_that_nobody_took_end_with_the_lease)
{
	unsigned before, open;

	open_direct();
	before = descriptors();
	for (unsigned lost = 0; lost < 2; lost++) {
		for (uint32_t i = 1; i <= 5; i++)
			tell(i, 4219, 1);
		for (unsigned i = 0; i < 5; i++)
			cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
		open = descriptors();
		cr_assert_eq(open, before + 5);
		expect_next(1, 4219, 1);
		if (!lost) {
			for (uint32_t i = 2; i <= 5; i++)
				expect_next(i, 4219, 1);
			continue;
		}
		close(d.fd);
		d.fd = -1;
		cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_LOST);
		expect_none();
		cr_assert_eq(descriptors(), before - 2, "both ends of the connection, too");
	}
	close(interrupt_fd);
}

Test(lease, descriptors_that_nobody_took_are_closed_with_it)
{
	unsigned before;

	interrupt_fd = eventfd(0, EFD_NONBLOCK);
	before = descriptors();
	open_direct();
	close(interrupt_fd);
	interrupt_fd = eventfd(0, EFD_NONBLOCK);
	for (uint32_t i = 1; i <= 5; i++) {
		tell(i, 4219, 1);
		cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME);
	}
	ur_lease_close(lease);
	lease = NULL;
	close(d.fd);
	d.fd = -1;
	close(interrupt_fd);
	cr_assert_eq(descriptors(), before);
}

/* A daemon that sends so many is none that can be followed. */
Test(lease, a_daemon_that_sends_too_many_messages_is_left)
{
	unsigned before;

	open_direct();
	before = descriptors();
	for (uint32_t i = 0; i < HELD; i++) {
		tell(1 + i, 4219, 1);
		cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_SAME, "%u", i);
	}
	tell(1000, 4219, 1);
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_LOST);
	expect_none();
	cr_assert_eq(descriptors(), before - 1, "its end of the connection, too");
	close(interrupt_fd);
}

static void *tell_too_much(void *arg)
{
	for (uint32_t i = 0; i <= HELD; i++)
		tell(1 + i, 4219, 1);
	bind_one(NULL);
	return NULL;
}

/* The message that had no place is not missed: without the connection there are no rings. */
Test(lease, a_daemon_that_sends_too_many_messages_before_an_answer_is_left)
{
	uint16_t port = 7471;
	unsigned before;

	signal(SIGPIPE, SIG_IGN);
	open_direct();
	before = descriptors();
	cr_assert_eq(pthread_create(&d.thread, NULL, tell_too_much, NULL), 0);
	cr_assert_eq(ur_lease_bind(lease, UR_LEASE_TCP, &port), -ENETDOWN);
	pthread_join(d.thread, NULL);
	for (uint32_t i = 0; i < HELD; i++)
		expect_next(1 + i, 4219, 1);
	expect_none();
	for (unsigned i = 0; i < 4; i++)
		if (ur_lease_poll(lease, 0) == UR_LEASE_LOST) {
			cr_assert_eq(descriptors(), before - 1);
			close(interrupt_fd);
			return;
		}
	cr_assert_fail("the lease is still there");
}

/* UROCED-DIRECT-01 */
Test(lease, a_ring_request_is_sent_while_there_is_a_connection)
{
	uint8_t msg[UR_LEASE_PORT_BYTES + 1];
	uint32_t address = 0;

	open_direct();
	ur_lease_request_ring(lease, 0x0a4d0003);
	cr_assert_eq(recv(d.fd, msg, sizeof(msg), MSG_DONTWAIT), UR_LEASE_RING_REQUEST_BYTES);
	cr_assert(ur_lease_get_ring_request(msg, UR_LEASE_RING_REQUEST_BYTES, &address));
	cr_assert_eq(address, 0x0a4d0003);
	close(d.fd);
	d.fd = -1;
	ur_lease_request_ring(lease, 0x0a4d0003); /* raises no signal */
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_LOST);
	ur_lease_request_ring(lease, 0x0a4d0003);
	close(interrupt_fd);
}

/* After the connection was lost, and until the lease is back, there is nobody to send to. */
Test(lease, no_ring_request_is_sent_before_the_answer)
{
	uint8_t msg[UR_LEASE_REQUEST_BYTES + 1];

	open_direct();
	close(d.fd);
	cr_assert_eq(ur_lease_poll(lease, 0), UR_LEASE_LOST);
	cr_assert_eq(ur_lease_poll(lease, 1), UR_LEASE_SAME);
	cr_assert(take_request() && d.request.direct && d.request.address == grant.address);
	ur_lease_request_ring(lease, 0x0a4d0003);
	cr_assert_lt(recv(d.fd, msg, sizeof(msg), MSG_DONTWAIT), 0);
	send_grant(-1);
	cr_assert_eq(ur_lease_poll(lease, 2), UR_LEASE_BACK);
	ur_lease_request_ring(lease, 0x0a4d0003);
	cr_assert_eq(recv(d.fd, msg, sizeof(msg), MSG_DONTWAIT), UR_LEASE_RING_REQUEST_BYTES);
	close(interrupt_fd);
}

/* A ring has one producer at each end, and no credits. */
Test(lease, an_endpoint_with_workers_or_credits_asks_for_no_direct_rings)
{
	for (unsigned i = 0; i < 2; i++) {
		ur_config_init(&cfg);
		snprintf(cfg.port.dev, sizeof(cfg.port.dev), "uroced:%s/s", d.dir);
		cfg.worker.count = i ? 1 : 2;
		cfg.port.credits = i;
		cr_assert_eq(open_lease(grant_one), 0, "%s", err);
		cr_assert_not(d.request.direct);
		cr_assert_not(ur_lease_takes_direct(lease));
		ur_lease_close(lease);
		lease = NULL;
		close(d.fd);
		d.fd = -1;
	}
}
