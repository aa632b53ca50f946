/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include "shared_net.h"

#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>

#include <criterion/criterion.h>

#include "dpdk/counters.h"

struct ibv_context *ctx;
struct ibv_pd *pd;
char err[512];

void run(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	cr_assert_eq(system(command), 0, "%s", command);
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* /sys is that of the namespace it was mounted in. */
void make_network(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0, "%s", strerror(errno));
	cr_assert_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	cr_assert_eq(mount("sysfs", "/sys", "sysfs", 0, NULL), 0, "%s", strerror(errno));
	run("ip link add sh0 address 02:00:00:00:00:01 type veth peer name sh1 address " PEER_MAC);
	run("ip link set sh0 addrgenmode none 2>/dev/null || :");
	run("ip link set sh0 up && ip link set sh1 up");
	/* sh1 has no address, so no host answers there. Hosts are entries in the kernel's tables. */
	run("ip addr add 10.78.0.1/24 dev sh0");
	run("ip ntable change name arp_cache dev sh0 retrans %u", QUESTION_MS);
	run("ip ntable change name ndisc_cache dev sh0 retrans %u", QUESTION_MS);
}

struct ibv_context *try_open(const char *const *more)
{
	const char *set[8] = {"port.dev=sh0", "eal.hugepages=no", "worker.mode=inline"};
	const struct uroce_open_attr attr = {.set = set};

	for (unsigned i = 3; *more; i++)
		set[i] = *more++;
	err[0] = '\0';
	return uroce_open(&attr, err, sizeof(err));
}

const char *const by_af_packet[] = {"port.driver=af_packet", NULL};

void open_endpoint(void)
{
	ctx = try_open(by_af_packet);
	cr_assert_not_null(ctx, "%s", err);
	pd = uroce_alloc_pd(ctx);
	cr_assert_not_null(pd);
}

void open_network(void)
{
	make_network();
	open_endpoint();
}

void close_endpoint(void)
{
	if (!ctx)
		return;
	cr_expect_eq(uroce_dealloc_pd(pd), 0);
	cr_expect_eq(uroce_close(ctx), 0);
}

enum ibv_event_type next_event(void)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event ev;

	cr_assert_eq(poll(&p, 1, PATIENCE_MS), 1, "no event");
	cr_assert_eq(uroce_get_async_event(ctx, &ev), 0);
	cr_expect_eq(ev.element.port_num, 1);
	uroce_ack_async_event(&ev);
	return ev.event_type;
}

void expect_event(enum ibv_event_type want)
{
	enum ibv_event_type got = next_event();

	cr_assert_eq(got, want, "%s, not %s", uroce_event_type_str(got),
		     uroce_event_type_str(want));
}

uint64_t counter_of(const char *command, const char *name)
{
	json_t *counters = ur_counters_json(command);
	uint64_t n;

	cr_assert_not_null(counters);
	n = (uint64_t)json_integer_value(json_object_get(counters, name));
	json_decref(counters);
	return n;
}

uint64_t neigh_counter(const char *name)
{
	return counter_of("/uroce/neigh", name);
}

int open_wire(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_IP),
				 .sll_ifindex = (int)if_nametoindex("sh1")};
	int wire = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));

	cr_assert_geq(wire, 0);
	cr_assert_eq(bind(wire, (struct sockaddr *)&at, sizeof(at)), 0);
	return wire;
}

void arrive(int wire, uint16_t port)
{
	uint8_t frame[60] = {
		0x02, 0, 0,  0,	 0,    1,	  0x02,	     0,		  0,	     0,
		0,    2, 8,  0,	 0x45, [17] = 46, [22] = 64, IPPROTO_UDP, [26] = 10, 78,
		0,    2, 10, 78, 0,    1,	  0x80,	     0,		  [39] = 26};

	frame[36] = (uint8_t)(port >> 8);
	frame[37] = (uint8_t)port;
	cr_assert_eq(send(wire, frame, sizeof(frame), 0), (ssize_t)sizeof(frame));
}
