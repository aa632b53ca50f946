/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
/*
 * An endpoint that shares a kernel interface, seen by an application while addresses, routes,
 * neighbours and the link change. Each test has a network namespace of its own with a veth pair: the
 * endpoint on sh0, the other end, sh1, is the test's to use.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include <criterion/criterion.h>

#include "dpdk/rtnl.h"
#include "shared_net.h"

#define OTHER_MAC "02:00:00:00:00:03"

static enum ibv_port_state port_state(void)
{
	struct ibv_port_attr a;

	cr_assert_eq(uroce_query_port(ctx, 1, &a), 0);
	return a.state;
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		cr_assert_eq(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static int index_of(const char *text)
{
	union ibv_gid want = gid_of(text), gid;

	for (int i = 0; uroce_query_gid(ctx, 1, i, &gid) == 0; i++)
		if (memcmp(gid.raw, want.raw, 16) == 0)
			return i;
	return -1;
}

static struct ibv_ah *make_ah(const char *from, const char *to)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	attr.grh.sgid_index = (uint8_t)index_of(from);
	attr.grh.hop_limit = 64;
	attr.grh.dgid = gid_of(to);
	return uroce_create_ah(pd, &attr);
}

static void expect_way(const char *from, const char *to)
{
	struct ibv_ah *ah = make_ah(from, to);

	cr_assert_not_null(ah, "no way from %s to %s: %s", from, to, strerror(errno));
	cr_expect_eq(uroce_destroy_ah(ah), 0);
}

static void expect_no_way(const char *from, const char *to)
{
	errno = 0;
	cr_assert_null(make_ah(from, to), "a way from %s to %s", from, to);
	cr_expect_eq(errno, EHOSTUNREACH, "%s", strerror(errno));
}

/* ---- opening ---- */

Test(shared, an_endpoint_has_the_addresses_of_its_interface, .init = open_network,
     .fini = close_endpoint)
{
	char text[256];

	cr_expect_eq(index_of("10.78.0.1"), 0);
	cr_expect_eq(port_state(), IBV_PORT_ACTIVE);
	uroce_describe_port(ctx, text, sizeof(text));
	cr_expect_eq(strncmp(text, "sh0 by af_packet, with the kernel's addresses 10.78.0.1", 55),
		     0, "%s", text);
}

static void expect_refused(const char *what)
{
	cr_assert_null(try_open(by_af_packet));
	cr_expect_not_null(strstr(err, what), "%s", err);
}

Test(shared, an_interface_without_an_address_is_refused, .init = make_network)
{
	run("ip addr flush dev sh0");
	expect_refused("the interface sh0 has no address to share; `ip addr add");
}

Test(shared, an_interface_that_is_down_is_refused, .init = make_network)
{
	run("ip link set sh0 down");
	expect_refused("the interface sh0 is down; fix it with: ip link set dev sh0 up");
}

Test(shared, an_interface_that_is_not_there_is_refused, .init = make_network)
{
	run("ip link del sh0");
	expect_refused("there is no interface sh0 in this network namespace");
}

/* SHARED-HOLD-01 */
Test(shared, a_udp_port_that_another_program_has_is_not_shared, .init = make_network)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(4791)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	expect_refused("UDP port 4791 of the interface sh0 is taken");
	close(fd);
	open_endpoint();
	close_endpoint();
}

/* SHARED-HOLD-01 */
Test(shared, nothing_stays_behind, .init = open_network)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(4791)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_neq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0, "the port is not held");
	close_endpoint();
	cr_expect_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0, "%s", strerror(errno));
	close(fd);
}

/* ---- the driver ---- */

static void expect_description(const char *const *set, const char *want)
{
	char text[512];

	ctx = try_open(set);
	cr_assert_not_null(ctx, "%s", err);
	pd = uroce_alloc_pd(ctx);
	uroce_describe_port(ctx, text, sizeof(text));
	cr_expect_eq(strncmp(text, want, strlen(want)), 0, "%s", text);
}

static const char *const by_any[] = {NULL};

/* SHARED-DRIVER-01 */
Test(shared, the_driver_is_af_xdp_where_that_works, .init = make_network, .fini = close_endpoint)
{
	int fd = socket(AF_XDP, SOCK_RAW, 0);

	if (fd < 0)
		cr_skip_test("this kernel has no AF_XDP");
	close(fd);
	expect_description(by_any, "sh0 by af_xdp, with the kernel's addresses 10.78.0.1");
}

/* SHARED-DRIVER-01 */
Test(shared, the_driver_is_af_packet_where_the_mtu_is_too_large, .init = make_network,
     .fini = close_endpoint)
{
	run("ip link set sh0 mtu 4200");
	expect_description(by_any,
			   "sh0 by af_packet (not af_xdp: the MTU of sh0 is 4200 and af_xdp "
			   "supports at most 3072), with the kernel's addresses 10.78.0.1");
}

/* SHARED-DRIVER-01: af_packet's own argument is one that af_xdp refuses, when it is opened. */
Test(shared, the_driver_is_af_packet_where_af_xdp_does_not_open, .init = make_network,
     .fini = close_endpoint)
{
	static const char *const set[] = {"port.args=framecnt=512", NULL};

	expect_description(set, "sh0 by af_packet (not af_xdp: ");
}

/* ---- addresses and link ---- */

/* SHARED-EVENT-01 */
Test(shared, an_address_that_goes_takes_its_gid_and_the_last_one_the_port, .init = open_network,
     .fini = close_endpoint)
{
	run("ip addr add 10.78.0.7/24 dev sh0");
	expect_event(IBV_EVENT_GID_CHANGE);
	cr_expect_eq(index_of("10.78.0.7"), 1);
	/* Its secondary addresses would go with the first one. */
	run("sysctl -qw net.ipv4.conf.sh0.promote_secondaries=1");
	run("ip addr del 10.78.0.1/24 dev sh0");
	expect_event(IBV_EVENT_GID_CHANGE);
	cr_expect_eq(index_of("10.78.0.1"), -1);
	cr_expect_eq(index_of("10.78.0.7"), 1, "it keeps its place");
	cr_expect_eq(port_state(), IBV_PORT_ACTIVE);
	run("ip addr del 10.78.0.7/24 dev sh0");
	expect_event(IBV_EVENT_GID_CHANGE);
	expect_event(IBV_EVENT_PORT_ERR);
	cr_expect_eq(port_state(), IBV_PORT_DOWN);
	run("ip addr add 10.78.0.7/24 dev sh0");
	expect_event(IBV_EVENT_GID_CHANGE);
	expect_event(IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(port_state(), IBV_PORT_ACTIVE);
}

/* SHARED-EVENT-01 */
Test(shared, a_link_that_goes_down_takes_the_port_and_brings_it_back, .init = open_network,
     .fini = close_endpoint)
{
	run("ip link set sh1 down");
	expect_event(IBV_EVENT_PORT_ERR);
	cr_expect_eq(port_state(), IBV_PORT_DOWN);
	run("ip link set sh1 up");
	expect_event(IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(port_state(), IBV_PORT_ACTIVE);
}

Test(shared, an_interface_that_is_removed_takes_the_port, .init = open_network,
     .fini = close_endpoint)
{
	run("ip link del sh1");
	while (next_event() != IBV_EVENT_PORT_ERR)
		;
	cr_expect_eq(port_state(), IBV_PORT_DOWN);
}

/* ---- the way to a peer ---- */

/* SHARED-NEIGH-01 */
Test(shared, a_peer_that_the_kernel_knows_is_found, .init = open_network, .fini = close_endpoint)
{
	run("ip neigh add 10.78.0.2 lladdr " PEER_MAC " dev sh0");
	expect_way("10.78.0.1", "10.78.0.2");
}

/* SHARED-NEIGH-01: no host answers the kernel's ARP. */
Test(shared, a_peer_that_does_not_answer_is_unreachable, .init = open_network,
     .fini = close_endpoint)
{
	uint64_t start = now_ms();

	expect_no_way("10.78.0.1", "10.78.0.9");
	cr_expect_geq(now_ms() - start, 2 * QUESTION_MS, "the kernel was not asked");
}

/* SHARED-ROUTE-01 */
Test(shared, a_peer_without_a_route_is_unreachable_and_found_with_a_gateway, .init = open_network,
     .fini = close_endpoint)
{
	run("ip neigh add 10.78.0.254 lladdr " PEER_MAC " dev sh0");
	run("ip route add unreachable 10.79.0.0/16");
	expect_no_way("10.78.0.1", "10.79.0.1");
	run("ip route del unreachable 10.79.0.0/16");
	run("ip route add 10.79.0.0/16 via 10.78.0.254 dev sh0");
	expect_way("10.78.0.1", "10.79.0.1");
}

/* ---- what is on its way follows ---- */

struct sender {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	int wire; /* sees what arrives at sh1 */
	char data[64];
};

/* A UD queue pair, and an address handle. */
static void make_sender(struct sender *s, const char *from, const char *to)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	s->cq = uroce_create_cq(ctx, 16, NULL, NULL, 0);
	cr_assert_not_null(s->cq);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = uroce_create_qp(pd, &init);
	s->mr = uroce_reg_mr(pd, s->data, sizeof(s->data), IBV_ACCESS_LOCAL_WRITE);
	s->ah = make_ah(from, to);
	cr_assert(s->qp && s->mr && s->ah);
	cr_assert_eq(uroce_modify_qp(s->qp, &a,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		     0);
	a.qp_state = IBV_QPS_RTR;
	cr_assert_eq(uroce_modify_qp(s->qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	cr_assert_eq(uroce_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	s->wire = open_wire();
}

static void end_sender(struct sender *s)
{
	close(s->wire);
	cr_expect_eq(uroce_destroy_qp(s->qp), 0);
	cr_expect_eq(uroce_destroy_ah(s->ah), 0);
	cr_expect_eq(uroce_dereg_mr(s->mr), 0);
	cr_expect_eq(uroce_destroy_cq(s->cq), 0);
}

static void send_datagram(struct sender *s)
{
	struct ibv_sge sge = {(uintptr_t)s->data, sizeof(s->data), s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.ud = {.ah = s->ah, .remote_qpn = 2, .remote_qkey = 1}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	cr_assert_eq(uroce_post_send(s->qp, &wr, &bad), 0);
	for (uint64_t end = now_ms() + PATIENCE_MS; uroce_poll_cq(s->cq, 1, &wc) == 0;)
		cr_assert_lt(now_ms(), end, "no completion");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

/* Datagrams are sent until one arrives with that destination. */
static void expect_dmac(struct sender *s, const char *mac)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	char got[18] = "";

	while (strcmp(got, mac) != 0) {
		uint8_t frame[2048];
		ssize_t n;

		cr_assert_lt(now_ms(), end, "packets go to %s, not to %s", got, mac);
		send_datagram(s);
		while ((n = recv(s->wire, frame, sizeof(frame), MSG_DONTWAIT)) > 0)
			if (n >= 42 && frame[23] == IPPROTO_UDP && frame[36] == 0x12 &&
			    frame[37] == 0xb7)
				snprintf(got, sizeof(got), "%02x:%02x:%02x:%02x:%02x:%02x",
					 frame[0], frame[1], frame[2], frame[3], frame[4],
					 frame[5]);
	}
}

/* SHARED-MONITOR-01 */
Test(shared, packets_follow_a_neighbour_that_moves, .init = open_network, .fini = close_endpoint)
{
	struct sender s;

	run("ip neigh add 10.78.0.2 lladdr " PEER_MAC " dev sh0");
	make_sender(&s, "10.78.0.1", "10.78.0.2");
	expect_dmac(&s, PEER_MAC);
	run("ip neigh replace 10.78.0.2 lladdr " OTHER_MAC " dev sh0");
	expect_dmac(&s, OTHER_MAC);
	/* One that the kernel forgets keeps its last address. */
	run("ip neigh del 10.78.0.2 dev sh0");
	expect_dmac(&s, OTHER_MAC);
	run("ip neigh replace 10.78.0.2 lladdr " PEER_MAC " dev sh0");
	expect_dmac(&s, PEER_MAC);
	end_sender(&s);
}

/* SHARED-MONITOR-01, SHARED-ROUTE-01 */
Test(shared, packets_follow_a_route_that_changes, .init = open_network, .fini = close_endpoint)
{
	struct sender s;

	run("ip neigh add 10.78.0.254 lladdr " PEER_MAC " dev sh0");
	run("ip neigh add 10.78.0.253 lladdr " OTHER_MAC " dev sh0");
	run("ip route add 10.79.0.0/16 via 10.78.0.254");
	make_sender(&s, "10.78.0.1", "10.79.0.1");
	expect_dmac(&s, PEER_MAC);
	run("ip route replace 10.79.0.0/16 via 10.78.0.253");
	expect_dmac(&s, OTHER_MAC);
	end_sender(&s);
}

/* Thousands of changes at once, and among them, when the socket is full, the one that matters. */
static void flood_changes(unsigned round, const char *mac)
{
	char path[] = "/tmp/shared_test.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	cr_assert_not_null(f);
	for (unsigned i = 0; i < 8000; i++) {
		if (i == 1000)
			fprintf(f, "neigh replace 10.78.0.2 lladdr %s dev sh0\n", mac);
		fprintf(f, "neigh replace 10.%u.%u.%u lladdr 02:01:00:00:%02x:%02x dev sh0\n",
			100 + round % 100, i / 250, i % 250 + 1, i / 250, i % 250);
	}
	cr_assert_eq(fclose(f), 0);
	run("ip -batch %s", path);
	unlink(path);
}

/* SHARED-MONITOR-01 */
Test(shared, changes_that_were_not_heard_are_followed_too, .init = open_network,
     .fini = close_endpoint)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	char mac[18] = PEER_MAC;
	struct sender s;

	/* An IPv6 route added by the kernel would also make the library query everything again. */
	for (unsigned i = 0; i < 2; i++)
		run("[ ! -e /proc/sys/net/ipv6 ] || sysctl -qw net.ipv6.conf.sh%u.disable_ipv6=1",
		    i);
	run("ip neigh add 10.78.0.2 lladdr " PEER_MAC " dev sh0");
	make_sender(&s, "10.78.0.1", "10.78.0.2");
	for (unsigned round = 0; neigh_counter("resynced") == 0; round++) {
		cr_assert_lt(now_ms(), end, "no message was lost, so nothing was tested");
		snprintf(mac, sizeof(mac), "02:00:00:00:01:%02x", round % 256);
		flood_changes(round, mac);
		usleep(50000); /* the progress thread looks a hundred times a second */
	}
	expect_dmac(&s, mac);
	end_sender(&s);
}

static void count_neigh(void *arg, const struct ur_rtnl_msg *msg)
{
	*(unsigned *)arg += msg->kind == UR_RTNL_NEIGH;
}

/* SHARED-MONITOR-01: a queue that is not empty loses more, and the kernel does not say so again. */
Test(shared, after_an_error_for_lost_changes_no_other_is_lost, .init = make_network)
{
	int fd = ur_rtnl_monitor_open();
	unsigned heard = 0;

	cr_assert_geq(fd, 0);
	flood_changes(0, PEER_MAC);
	cr_assert_eq(ur_rtnl_monitor_read(fd, 1, count_neigh, &heard), -ENOBUFS);
	run("ip neigh replace 10.78.0.2 lladdr " OTHER_MAC " dev sh0");
	cr_expect_eq(ur_rtnl_monitor_read(fd, 1000, count_neigh, &heard), 1);
	cr_expect_eq(heard, 1);
	close(fd);
}

/* ---- beside the kernel's own traffic ---- */

/* SHARED-FILTER-01 */
Test(shared, traffic_of_others_takes_no_place_in_the_ring, .init = open_network,
     .fini = close_endpoint)
{
	uint64_t end = now_ms() + PATIENCE_MS, before;
	struct sender s;

	s.wire = open_wire();
	/* What came before the filter was set is over. */
	uroce_progress(ctx);
	before = counter_of("/uroce/port", "ipackets");
	for (unsigned i = 0; i < 200; i++)
		arrive(s.wire, (uint16_t)(4792 + i));
	/* The kernel sends as well: ARP requests without an answer. */
	run("ping -c 1 -W 1 10.78.0.77 >/dev/null || :");
	arrive(s.wire, 4791);
	while (counter_of("/uroce/port", "ipackets") == before) {
		uroce_progress(ctx);
		cr_assert_lt(now_ms(), end, "the endpoint's packets do not arrive");
	}
	uroce_progress(ctx);
	cr_expect_eq(counter_of("/uroce/port", "ipackets"), before + 1,
		     "others' traffic is in the ring");
	close(s.wire);
}

/* ---- without CAP_NET_ADMIN ---- */

static void drop_net_admin(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	cr_assert_eq(syscall(SYS_capget, &head, data), 0);
	data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective &= ~CAP_TO_MASK(CAP_NET_ADMIN);
	cr_assert_eq(syscall(SYS_capset, &head, data), 0);
}

/* SHARED-NEIGH-01: without CAP_NET_ADMIN a datagram makes the kernel resolve the address. */
Test(shared, without_cap_net_admin_the_kernel_is_asked_all_the_same, .init = open_network,
     .fini = close_endpoint)
{
	uint64_t start = now_ms();

	/* Of this thread, which sends the queries. */
	drop_net_admin();
	expect_no_way("10.78.0.1", "10.78.0.9");
	cr_expect_geq(now_ms() - start, 2 * QUESTION_MS, "the kernel was not asked");
	cr_expect_geq(neigh_counter("asked_by_udp"), 1u);
}

/* ---- IPv6 ---- */

static void setup6(void)
{
	make_network();
	if (access("/proc/sys/net/ipv6", F_OK) != 0)
		cr_skip_test("this kernel has no IPv6");
	run("ip addr add fd78::1/64 dev sh0 nodad");
	open_endpoint();
}

Test(shared, ipv6_addresses_come_after_ipv4_ones, .init = setup6, .fini = close_endpoint)
{
	cr_expect_eq(index_of("10.78.0.1"), 0);
	cr_expect_eq(index_of("fd78::1"), 1);
}

/* SHARED-ADDR-01 */
Test(shared, an_ipv6_address_counts_when_the_kernel_has_found_it_unique, .init = setup6,
     .fini = close_endpoint)
{
	run("ip addr add fd78::5/64 dev sh0");
	cr_expect_eq(index_of("fd78::5"), -1);
	expect_event(IBV_EVENT_GID_CHANGE);
	cr_expect_geq(index_of("fd78::5"), 0);
}

/* SHARED-ROUTE-01, SHARED-NEIGH-01 */
Test(shared, an_ipv6_peer_is_found_on_the_link_and_behind_a_gateway, .init = setup6,
     .fini = close_endpoint)
{
	run("ip neigh add fd78::2 lladdr " PEER_MAC " dev sh0");
	run("ip neigh add fe80::fe lladdr " OTHER_MAC " dev sh0");
	run("ip -6 route add fd79::/64 via fe80::fe dev sh0");
	expect_way("fd78::1", "fd78::2");
	expect_way("fd78::1", "fd79::2");
	expect_no_way("fd78::1", "fd80::2");
	expect_no_way("fd78::1", "fd78::9");
}
