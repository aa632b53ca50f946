/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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
	for (int i = 0; i < 10; i++)
		cr_expect(ur_wake_wait(&wake, LONG_NS));
	cr_expect_lt(now_ns() - start_ns, (uint64_t)5 * LONG_NS);
	close(fd);
}

Test(wake, without_a_packet_it_sleeps_as_long_as_asked)
{
	int fd = eventfd(0, 0);
	struct ur_wake wake = wake_of(fd);
	uint64_t start_ns = now_ns();

	cr_expect_not(ur_wake_wait(&wake, SHORT_NS));
	cr_expect_geq(now_ns() - start_ns, SHORT_NS);
	close(fd);
}

Test(wake, a_socket_that_fails_is_not_waited_for_again)
{
	struct ur_wake wake = wake_of(eventfd(0, 0));
	uint64_t start_ns = now_ns();

	close(wake.fd[0].fd);
	cr_expect_not(ur_wake_wait(&wake, LONG_NS));
	cr_expect_eq(wake.fd[0].fd, -1);
	start_ns = now_ns();
	cr_expect_not(ur_wake_wait(&wake, SHORT_NS));
	cr_expect_geq(now_ns() - start_ns, SHORT_NS);
}

Test(wake, finds_the_packet_sockets_that_were_added)
{
	int old = socket(AF_PACKET, SOCK_RAW, 0), added, other;
	struct ur_wake_before before;
	struct ur_wake wake;

	if (old < 0)
		cr_skip_test("packet sockets need root");
	ur_wake_note(&before);
	added = socket(AF_PACKET, SOCK_RAW, 0);
	other = socket(AF_INET, SOCK_DGRAM, 0);
	ur_wake_find(&wake, &before);
	cr_expect_eq(wake.cnt, 1);
	cr_expect_eq(wake.fd[0].fd, added);
	close(old);
	close(added);
	close(other);
}
