/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsocket_kernel.h"

/* Datagrams, by the kernel's UDP and by SENDs. */

TestSuite(rsocket_udp, .init = open_kernel, .timeout = 60);

/* ---- addresses ---- */

/* The kernel's route to an address of its own has that address as its source. RSOCKET-UDP-03 */
Test(rsocket_udp, a_bound_socket_sends_from_its_address_in_both_families)
{
	static const char *const ips[][SIDES] = {{IP_A, IP_B}, {IP6_A, IP6_B}};

	for (int i = 0; i < 2; i++) {
		int a = bound_to(ips[i][A], PORT), b = bound_to(ips[i][B], OTHER_PORT);

		make_friends(a, ips[i][A], PORT, b, ips[i][B], OTHER_PORT);
		cr_expect_eq(rclose(a), 0);
		cr_expect_eq(rclose(b), 0);
	}
}

/* RSOCKET-UDP-05 */
Test(rsocket_udp, a_connected_socket_hears_only_its_peer)
{
	int a = bound_to(IP_A, PORT), other = bound_to(IP_A, OTHER_PORT), b = bound_to(IP_B, PORT);
	int stranger = kernel_socket(STRANGER, PORT);
	union addr peer = addr(IP_A, PORT);
	unsigned long before;

	make_friends(a, IP_A, PORT, b, IP_B, PORT);
	make_friends(other, IP_A, OTHER_PORT, b, IP_B, PORT);
	cr_assert_eq(rconnect(b, &peer.sa, bytes_of(&peer)), 0);
	send_headed(stranger, STRANGER, 77, "by UDP");
	before = udp_count();
	send_control(other, IP_B, PORT, "by SEND");
	send_control(a, IP_B, PORT, "peer");
	cr_expect_eq(udp_count(), before);
	hear(b, IP_A, PORT, "peer");
	expect_silence(b);
	cr_expect_eq(udp_count(), before, "strangers get no answer");
	peer.sa.sa_family = AF_UNSPEC;
	cr_assert_eq(rconnect(b, &peer.sa, sizeof(peer)), 0);
	send_control(other, IP_B, PORT, "other");
	hear(b, IP_A, OTHER_PORT, "other");
	cr_expect_eq(errno_of(rsend(b, "x", 1, 0)), EDESTADDRREQ);
}

Test(rsocket_udp, addresses_are_checked)
{
	union addr v4 = addr(IP_B, PORT), v6 = addr(IP6_B, PORT);
	int a = bound_to(IP_A, PORT);

	cr_expect_eq(errno_of(rsendto(a, "x", 1, 0, NULL, 0)), EDESTADDRREQ);
	cr_expect_eq(errno_of(rsendto(a, "x", 1, 0, &v4.sa, 1)), EINVAL);
	cr_expect_eq(errno_of(rsendto(a, "x", 1, 0, &v4.sa, sizeof(v4.in) - 1)), EINVAL);
	cr_expect_eq(errno_of(rsendto(a, "x", 1, 0, &v6.sa, sizeof(v6.in6))), EAFNOSUPPORT);
	cr_expect_eq(errno_of(rsendto(a, "x", 1, 0, &v6.sa, sizeof(v4.in) - 1)), EINVAL);
	cr_expect_eq(errno_of(rconnect(a, &v4.sa, sizeof(v4.in) - 1)), EINVAL);
	cr_expect_eq(errno_of(rconnect(a, &v6.sa, sizeof(v6.in6))), EAFNOSUPPORT);
}

/* ---- what does not fit ---- */

static void expect_cut(int fd)
{
	char got[5] = "";
	struct iovec iov = {got, 4};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	cr_assert(await(fd, POLLIN) & POLLIN);
	cr_expect_eq(rrecvmsg(fd, &msg, MSG_PEEK), 4);
	cr_expect_eq(msg.msg_flags, MSG_TRUNC);
	cr_expect_eq(rrecvmsg(fd, &msg, MSG_PEEK | MSG_TRUNC), 8, "its bytes, as with UDP");
	cr_expect_eq(rrecvmsg(fd, &msg, 0), 4);
	cr_expect_str_eq(got, "long");
	cr_assert(await(fd, POLLIN) & POLLIN);
	cr_expect_eq(rrecvmsg(fd, &msg, 0), 4);
	cr_expect_eq(msg.msg_flags, 0);
	cr_expect_str_eq(got, "next", "the rest is gone");
}

/* RSOCKET-UDP-06 */
Test(rsocket_udp, a_datagram_that_is_longer_than_the_buffer_is_cut)
{
	int a = bound_to(IP_A, PORT), b = bound_to(IP_B, PORT);
	char big[2033] = "";
	union addr to = addr(IP_B, PORT);

	for (int by_send = 0; by_send < 2; by_send++) {
		send_control(a, IP_B, PORT, "longlong");
		send_control(a, IP_B, PORT, "next");
		expect_cut(b);
		make_friends(a, IP_A, PORT, b, IP_B, PORT);
	}
	cr_expect_eq(errno_of(rsendto(a, big, sizeof(big), 0, &to.sa, bytes_of(&to))), EMSGSIZE);
}

/* ---- strangers ---- */

/* RSOCKET-UDP-01 */
Test(rsocket_udp, junk_is_dropped)
{
	int a = bound_to(IP_A, PORT), b = bound_to(IP_B, PORT);
	int stranger = kernel_socket(STRANGER, PORT);
	uint8_t junk[UR_RS_HEADER_MAX] = {0x55, 0x55, 0x55, 0x55, 6, 0, 28};

	set_nonblocking(b, true);
	for (int i = 0; i < 50; i++) {
		send_raw(stranger, IP_B, PORT, "", 0);
		send_raw(stranger, IP_B, PORT, junk, sizeof(junk));
	}
	send_control(a, IP_B, PORT, "true");
	hear(b, IP_A, PORT, "true");
	expect_silence(b);
}

/* Begins to look for the stranger's neighbour entry. Its end comes when that has failed. */
static struct rdma_cm_id *look_for_stranger(void)
{
	struct rdma_cm_id *id = new_id(B, RDMA_PS_TCP);
	union addr own = addr(IP_B, 0), to = addr(STRANGER, PORT);

	cr_assert_eq(rdma_resolve_addr(id, &own.sa, &to.sa, 1), 0);
	return id;
}

/* A call that waited for the entry, too, would not return before that has failed. RSOCKET-UDP-04 */
Test(rsocket_udp, a_stranger_delays_no_call)
{
	int a = bound_to(IP_A, PORT), b = bound_to(IP_B, PORT);
	int stranger = kernel_socket(STRANGER, PORT);
	struct rdma_cm_id *id = look_for_stranger();

	set_nonblocking(b, true);
	send_headed(stranger, STRANGER, 77, "hello");
	hear(b, STRANGER, PORT, "hello");
	take_headed(stranger, UR_RS_UDP_CTRL, "");
	for (int i = 0; i < 20; i++) {
		send_control(b, STRANGER, PORT, "answer");
		take_headed(stranger, UR_RS_UDP_DATA, "answer");
	}
	make_friends(a, IP_A, PORT, b, IP_B, PORT);
	cr_expect_not(has_event(ch[B], 0), "the calls have waited");
	cr_expect_eq(rdma_destroy_id(id), 0);
}

/* RSOCKET-UDP-04 */
Test(rsocket_udp, a_peer_without_a_neighbour_entry_gets_datagrams_by_udp)
{
	int b = bound_to(IP_B, PORT), stranger = kernel_socket(STRANGER, PORT);
	struct rdma_cm_event *e;

	send_headed(stranger, STRANGER, 77, "hello");
	hear(b, STRANGER, PORT, "hello");
	take_headed(stranger, UR_RS_UDP_CTRL, "");
	send_control(b, STRANGER, PORT, "before");
	take_headed(stranger, UR_RS_UDP_DATA, "before");
	look_for_stranger();
	e = next_event(ch[B], RDMA_CM_EVENT_ADDR_ERROR);
	rdma_ack_cm_event(e);
	for (int i = 0; i < 3; i++) {
		send_control(b, STRANGER, PORT, "after");
		take_headed(stranger, UR_RS_UDP_DATA, "after");
	}
}

/* RSOCKET-UDP-04 */
Test(rsocket_udp, closing_waits_for_no_neighbour_entry)
{
	int b = bound_to(IP_B, PORT), stranger = kernel_socket(STRANGER, PORT);
	struct rdma_cm_event *e;

	send_headed(stranger, STRANGER, 77, "hello");
	hear(b, STRANGER, PORT, "hello");
	look_for_stranger();
	send_control(b, STRANGER, PORT, "answer");
	cr_expect_eq(rclose(b), 0);
	cr_expect_not(has_event(ch[B], 0), "rclose() has waited");
	b = bound_to(IP_B, PORT);
	e = next_event(ch[B], RDMA_CM_EVENT_ADDR_ERROR);
	rdma_ack_cm_event(e);
	cr_expect_eq(rclose(b), 0);
}

/* ---- a peer that sends by verbs as soon as it can ---- */

static uint8_t memory[256];

struct raw {
	int udp;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
};

/* At B; it sends to A. */
static struct raw open_raw(void)
{
	struct raw r = {.udp = kernel_socket(IP_B, PORT), .id = new_id(B, RDMA_PS_UDP)};
	union addr a = addr(IP_A, PORT);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	union ibv_gid gid;

	cr_assert_eq(try_bind(r.id, IP_B, OTHER_PORT), 0);
	make_qp(r.id);
	r.mr = ibv_reg_mr(r.id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	memset(attr.grh.dgid.raw + 10, 0xff, 2);
	memcpy(attr.grh.dgid.raw + 12, &a.in.sin_addr, 4);
	for (int i = 0; !ibv_query_gid(r.id->verbs, 1, i, &gid); i++)
		if (!memcmp(gid.raw, attr.grh.dgid.raw, 12))
			attr.grh.sgid_index = (uint8_t)i;
	r.ah = ibv_create_ah(r.id->pd, &attr);
	cr_assert(r.mr && r.ah, "%s", strerror(errno));
	return r;
}

/* Says that it comes from there. */
static void send_by_verbs(struct raw *r, uint32_t qpn, const char *ip, const char *text)
{
	union addr own = addr(ip, PORT);
	size_t len = ur_rs_put_send(memory, (union ur_rs_addr *)&own);
	struct ibv_sge sge = {(uintptr_t)memory, (uint32_t)(len + strlen(text)), r->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.ud = {r->ah, qpn, RDMA_UDP_QKEY}},
			   *bad;
	struct ibv_wc wc;

	memcpy(memory + len, text, strlen(text));
	cr_assert_eq(ibv_post_send(r->id->qp, &wr, &bad), 0);
	while (!ibv_poll_cq(r->id->send_cq, 1, &wc))
		continue;
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

static void *hear_from_b(void *arg)
{
	int *fd = arg;
	char got[8] = "";

	cr_expect_eq(rrecv(*fd, got, sizeof(got), 0), 4, "%s", strerror(errno));
	cr_expect_str_eq(got, "news");
	return NULL;
}

/* While it slept, another thread has made the socket's first queue pair. If it is late, the test says nothing. */
Test(rsocket_udp, a_send_wakes_a_thread_that_slept_before_there_was_a_queue_pair)
{
	int a = bound_to(IP_A, PORT);
	struct raw peer = open_raw();
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, hear_from_b, &a), 0);
	pause_ms(50);
	send_control(a, IP_B, PORT, "question");
	send_by_verbs(&peer, take_headed(peer.udp, UR_RS_UDP_DATA, "question"), IP_B, "news");
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* RSOCKET-UDP-02 */
Test(rsocket_udp, a_send_that_names_an_address_of_the_other_family_is_dropped)
{
	int a = bound_to(IP_A, PORT);
	struct raw peer = open_raw();
	uint32_t qpn;

	send_control(a, IP_B, PORT, "question");
	qpn = take_headed(peer.udp, UR_RS_UDP_DATA, "question");
	send_by_verbs(&peer, qpn, IP6_B, "false");
	send_by_verbs(&peer, qpn, IP_B, "true");
	hear(a, IP_B, PORT, "true");
	expect_silence(a);
}
