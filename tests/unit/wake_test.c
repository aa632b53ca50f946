/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_tun.h>

#include "dpdk/wake.h"

/* EDGE-REST-03 */

#define LONG_NS	 900000000
#define SHORT_NS 2000000

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct ur_wake wake_of(int fd)
{
	return (struct ur_wake){.fd = {{.fd = fd, .events = POLLIN}}, .cnt = 1};
}

Test(wake, the_port_ends_the_sleep)
{
	int fd = eventfd(1, 0);
	struct ur_wake wake = wake_of(fd);
	uint64_t start_ns = now_ns();

	/* At once, on a machine however busy: several sleeps would take seconds. */
	for (int i = 0; i < 50; i++)
		cr_expect(ur_wake_wait(&wake, NULL, 0, LONG_NS, NULL));
	cr_expect_lt(now_ns() - start_ns, (uint64_t)25 * LONG_NS);
	close(fd);
}

/* EDGE-WAIT-01 */
Test(wake, a_descriptor_of_the_callers_ends_the_sleep)
{
	int fd = eventfd(0, 0), own = eventfd(1, 0);
	struct ur_wake wake = wake_of(fd);
	struct pollfd all[1 + UR_WAKE_FDS_MAX] = {{.fd = own, .events = POLLIN}};
	uint64_t start_ns = now_ns(), one = 1;

	for (int i = 0; i < 50; i++) {
		cr_expect_eq(ur_wake_wait(&wake, all, 1, LONG_NS, NULL), 0);
		cr_expect_eq(all[0].revents, POLLIN);
	}
	cr_expect_lt(now_ns() - start_ns, (uint64_t)25 * LONG_NS);
	cr_assert_eq(read(own, &one, sizeof(one)), sizeof(one));
	cr_expect_eq(ur_wake_wait(&wake, all, 1, SHORT_NS, NULL), 0);
	cr_expect_eq(all[0].revents, 0);
	cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
	cr_expect_eq(ur_wake_wait(&wake, all, 1, LONG_NS, NULL), 1, "the port");
	cr_expect_eq(all[0].revents, 0);
	/* One of the port's that fails ends no sleep but its own. */
	close(wake.fd[0].fd);
	cr_expect_eq(ur_wake_wait(&wake, all, 1, LONG_NS, NULL), 0);
	cr_expect_eq(wake.fd[0].fd, -1);
	close(own);
}

static void on_signal(int sig)
{
}

Test(wake, a_signal_ends_the_sleep)
{
	struct ur_wake wake = wake_of(eventfd(0, 0));
	struct itimerval often = {{0, 10000}, {0, 10000}}, off = {0};
	int rc;

	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	do
		rc = ur_wake_wait(&wake, NULL, 0, LONG_NS, NULL);
	while (!rc);
	cr_expect_eq(rc, -EINTR);
	setitimer(ITIMER_REAL, &off, NULL);
}

Test(wake, without_a_packet_it_sleeps_as_long_as_asked)
{
	int fd = eventfd(0, 0);
	struct ur_wake wake = wake_of(fd);
	uint64_t start_ns = now_ns();

	cr_expect_not(ur_wake_wait(&wake, NULL, 0, SHORT_NS, NULL));
	cr_expect_geq(now_ns() - start_ns, SHORT_NS);
	close(fd);
}

Test(wake, a_socket_that_fails_is_not_waited_for_again)
{
	struct ur_wake wake = wake_of(eventfd(0, 0));
	uint64_t start_ns = now_ns();

	close(wake.fd[0].fd);
	cr_expect_not(ur_wake_wait(&wake, NULL, 0, LONG_NS, NULL));
	cr_expect_eq(wake.fd[0].fd, -1);
	start_ns = now_ns();
	cr_expect_not(ur_wake_wait(&wake, NULL, 0, SHORT_NS, NULL));
	cr_expect_geq(now_ns() - start_ns, SHORT_NS);
}

Test(wake, finds_the_packet_sockets_that_were_added)
{
	int old = socket(AF_PACKET, SOCK_RAW, 0), added, other;
	struct ur_wake_before before;
	static const struct ur_config cfg = {.port.driver = UR_DRIVER_AF_PACKET};
	struct ur_wake wake;

	if (old < 0)
		cr_skip_test("packet sockets need root");
	ur_wake_note(&before);
	added = socket(AF_PACKET, SOCK_RAW, 0);
	other = socket(AF_INET, SOCK_DGRAM, 0);
	ur_wake_find(&wake, &before, &cfg);
	cr_expect_eq(wake.cnt, 1);
	cr_expect_eq(wake.fd[0].fd, added);
	cr_expect(ur_wake_is_possible(&wake));
	close(old);
	close(added);
	close(other);
}

/* A packet that the kernel sends to a tap ends the sleep; one of its queues that is detached does not. */
Test(wake, finds_the_queues_of_a_tap)
{
	static const struct ur_config cfg = {.port.driver = UR_DRIVER_TAP};
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	struct ur_wake_before before;
	struct ur_wake wake;
	int fd, other, control;

	ur_wake_note(&before);
	fd = open("/dev/net/tun", O_RDWR);
	other = open("/dev/null", O_RDWR);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) != 0)
		cr_skip_test("taps need root");
	ur_wake_find(&wake, &before, &cfg);
	cr_assert_eq(wake.cnt, 1);
	cr_expect_eq(wake.fd[0].fd, fd);
	cr_expect_not(ur_wake_wait(&wake, NULL, 0, SHORT_NS, NULL));
	/* A link that goes up sends router solicitations, or what else its host likes. */
	control = socket(AF_INET, SOCK_DGRAM, 0);
	ifr.ifr_flags = IFF_UP;
	cr_assert_eq(ioctl(control, SIOCSIFFLAGS, &ifr), 0);
	for (int i = 0; i < 30 && wake.fd[0].revents != POLLIN; i++)
		ur_wake_wait(&wake, NULL, 0, LONG_NS, NULL);
	cr_expect_eq(wake.fd[0].revents, POLLIN);
	close(control);
	close(other);
	close(fd);
}

Test(wake, the_end_of_a_memif_port_is_as_its_arguments_say)
{
	struct ur_config cfg = {.port = {.driver = UR_DRIVER_MEMIF,
					 .role = UR_MEMIF_ROLE_SERVER,
					 .device = "/tmp/m.sock",
					 .args = "bsize=2048,id=17,secret=id=4"}};
	struct ur_wake_before before = {0};
	struct ur_wake wake;

	ur_wake_find(&wake, &before, &cfg);
	cr_expect_str_eq(wake.end.path, "/tmp/m.sock");
	cr_expect_eq(wake.end.id, 17);
	cr_expect(wake.end.server);
	cr_expect(ur_wake_is_possible(&wake));
	/* Without a peer there is nobody to be woken by. */
	cr_expect_not(ur_wake_arm(&wake, 1, -1));
	cr_expect_not(ur_wake_wait(&wake, NULL, 0, SHORT_NS, NULL));
}
