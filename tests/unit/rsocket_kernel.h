/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_RSOCKET_KERNEL_H
#define TESTS_RSOCKET_KERNEL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include <sched.h>

#include "rsocket/dgram_proto.h"
#include "rsocket_pair.h"

/*
 * Datagrams over the two endpoints of rdmacm_pair.h. The kernel of a namespace of its own has the addresses of both, and one more:
 * so UDP passes through the loopback interface, and SENDs pass through the ring.
 */

#define STRANGER   "10.77.0.9" /* no endpoint has it, so its neighbour entry is never found */
#define OTHER_PORT 7472

static inline void run(const char *command)
{
	cr_assert_eq(system(command), 0, "%s", command);
}

static inline void open_kernel(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert_eq(unshare(CLONE_NEWNET), 0, "%s", strerror(errno));
	run("ip link set lo up");
	run("ip address add " IP_A "/24 dev lo && ip address add " IP_B "/24 dev lo");
	run("ip address add " STRANGER "/24 dev lo");
	run("ip address add " IP6_A "/64 dev lo nodad && ip address add " IP6_B "/64 dev lo nodad");
	setup();
}

static inline int bound_to(const char *ip, uint16_t port)
{
	int fd = rsocket(strchr(ip, ':') ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);

	cr_assert_geq(fd, 0, "%s", strerror(errno));
	bind_to(fd, ip, port);
	return fd;
}

static inline void send_control(int fd, const char *ip, uint16_t port, const char *text)
{
	union addr to = addr(ip, port);
	ssize_t len = (ssize_t)strlen(text);

	cr_assert_eq(rsendto(fd, text, (size_t)len, 0, &to.sa, bytes_of(&to)), len, "%s",
		     strerror(errno));
}

/* From this address. */
static inline void hear(int fd, const char *ip, uint16_t port, const char *text)
{
	union addr from = {0}, expected = addr(ip, port);
	socklen_t len = sizeof(from);
	char got[64] = "";

	cr_assert(await(fd, POLLIN) & POLLIN);
	cr_assert_geq(rrecvfrom(fd, got, sizeof(got) - 1, 0, &from.sa, &len), 0, "%s",
		      strerror(errno));
	cr_expect_str_eq(got, text);
	cr_expect_eq(len, bytes_of(&expected));
	cr_expect(ur_rs_same_addr((union ur_rs_addr *)&from, (union ur_rs_addr *)&expected),
		  "'%s' has come from another address", text);
}

static inline void expect_silence(int fd)
{
	char got[64];

	cr_expect_eq(errno_of(rrecv(fd, got, sizeof(got), MSG_DONTWAIT)), EAGAIN);
}

static inline unsigned long number_in(const char *path, const char *format)
{
	unsigned long n = 0;
	char line[256];
	FILE *f = fopen(path, "r");

	cr_assert_not_null(f, "%s", path);
	while (fgets(line, sizeof(line), f) && sscanf(line, format, &n) != 1)
		continue;
	fclose(f);
	return n;
}

/* Datagrams that the kernel has sent. */
static inline unsigned long udp_count(void)
{
	return number_in("/proc/self/net/snmp", "Udp: %*u %*u %*u %lu") +
	       number_in("/proc/self/net/snmp6", "Udp6OutDatagrams %lu");
}

/* Until both use SENDs. The address handles are made meanwhile. */
static inline void make_friends(int a, const char *ip_a, uint16_t port_a, int b, const char *ip_b,
				uint16_t port_b)
{
	unsigned long before;

	do {
		before = udp_count();
		send_control(a, ip_b, port_b, "question");
		hear(b, ip_a, port_a, "question");
		send_control(b, ip_a, port_a, "answer");
		hear(a, ip_b, port_b, "answer");
	} while (udp_count() != before);
}

/* A kernel's socket, whose owner writes the headers itself. */
static inline int kernel_socket(const char *ip, uint16_t port)
{
	union addr own = addr(ip, port);
	int fd = socket(own.sa.sa_family, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, &own.sa, bytes_of(&own)), 0, "%s", strerror(errno));
	return fd;
}

static inline void send_raw(int fd, const char *ip, uint16_t port, const void *data, size_t len)
{
	union addr to = addr(ip, port);

	cr_assert_eq(sendto(fd, data, len, 0, &to.sa, bytes_of(&to)), (ssize_t)len);
}

/* With the header of a queue pair of this number. */
static inline void send_headed(int fd, const char *own, uint32_t qpn, const char *text)
{
	union addr a = addr(own, PORT);
	uint8_t bytes[100];
	size_t len = ur_rs_put_udp(bytes, UR_RS_UDP_DATA, qpn, (union ur_rs_addr *)&a);

	memcpy(bytes + len, text, strlen(text));
	send_raw(fd, IP_B, PORT, bytes, len + strlen(text));
}

/* The next one, of IPv4. Returns the number of the sender's queue pair. */
static inline uint32_t take_headed(int fd, enum ur_rs_udp_op expected, const char *text)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	enum ur_rs_udp_op op = UR_RS_UDP_DATA;
	uint8_t bytes[100] = {0};
	uint32_t qpn = 0;
	ssize_t n;

	cr_assert_eq(poll(&p, 1, PATIENCE_MS), 1, "nothing comes by UDP");
	n = recv(fd, bytes, sizeof(bytes) - 1, 0);
	cr_assert_eq(ur_rs_get_udp(bytes, (size_t)n, AF_INET, &op, &qpn), 16);
	cr_expect_eq(op, expected);
	cr_expect_str_eq((char *)bytes + 16, text);
	return qpn;
}

#endif
