/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include "cm/cm.h"
#include "edge/capture.h"
#include "edge/endpoint.h"
#include "edge/neigh.h"
#include "engine/query.h"
#include "memory_wire.h"
#include "wire/icrc.h"

/*
 * Whole endpoints on a wire in memory, under virtual time: what a node of a network simulation is. The
 * station that is no endpoint sends frames of a Linux kernel.
 */
#define SECOND 1000000000ull
#define DELAY  10000u
#define BYTES  (1u << 20)
#define PD     1
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static const uint8_t kernel_mac[6] = {0xae, 0x88, 0xd1, 0x89, 0xb8, 0x39};
static const uint8_t our_mac[6] = {0x92, 0x52, 0x3c, 0x2a, 0x8b, 0xb1};

struct node {
	struct ur_endpoint_attr attr;
	struct ur_endpoint *ep;
	struct ur_engine *engine;
	struct wire_end *end;
	void *mem, *cq_mem, *rings;
	struct ur_cq *cq;
	struct ur_qp *qp;
	uint8_t *buf;
	uint32_t key;
	struct ibv_wc wc;
	/* The connection manager's last event. */
	enum ur_cm_event_type event;
	struct ur_cm_id id;
	struct ur_qpn peer_qpn;
	struct ur_psn sq_psn;
};

static struct wire wire;
static struct node nodes[WIRE_ENDS];
static struct node *const a = &nodes[0], *const b = &nodes[1];
static char err[256];

static struct ur_gid ipv4_of(const struct node *n)
{
	return ur_gid_from_ipv4(0x0a090002 + (uint32_t)(n - nodes));
}

static struct ur_gid ipv6_of(const struct node *n)
{
	return (struct ur_gid){{0xfd, 0x09, [15] = (uint8_t)(2 + (n - nodes))}};
}

static void *memory(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	cr_assert_not_null(p);
	return memset(p, 0, bytes);
}

static void on_cm(void *arg, const struct ur_cm_event *ev)
{
	struct node *n = arg;

	n->event = ev->type;
	n->id = ev->id;
	n->sq_psn = ev->sq_psn;
	if (ev->type == UR_CM_EV_REQ_RCVD)
		n->peer_qpn = ev->req->qpn;
	if (ev->type == UR_CM_EV_REP_RCVD)
		n->peer_qpn = ev->rep->qpn;
}

/* What every test may change before wire_open(). */
static void prepare(struct node *n)
{
	struct ur_endpoint_attr *t = &n->attr;
	unsigned idx = (unsigned)(n - nodes);

	*n = (struct node){.event = UR_CM_EV_CNT};
	t->ops = &wire_ops;
	t->frame_bytes = WIRE_ROOM;
	memcpy(t->neigh.mac, our_mac, 6);
	t->neigh.mac[5] = (uint8_t)(t->neigh.mac[5] + idx);
	t->neigh.addr[0] = (struct ur_neigh_addr){ipv4_of(n), 24};
	t->neigh.addr[1] = (struct ur_neigh_addr){ipv6_of(n), 64};
	t->neigh.addr_cnt = 2;
	ur_engine_attr_default(&t->engine);
	n->mem = memory(ur_mem_size(4));
	t->engine.mem = ur_mem_init(n->mem, 4);
	t->engine.random = 1 + idx;
	t->engine.limits.cm = (struct ur_cm_limits){
		.max_ids = 16, .max_listeners = 4, .max_pending = 4, .max_sidr = 4, .max_tx = 32};
	t->engine.cm = (struct ur_cm_attr){.ca_guid = 1 + idx,
					   .seed = 11 + idx,
					   .id_key = 21 + idx,
					   .timewait_ns = SECOND,
					   .sink = on_cm,
					   .sink_ctx = n};
}

static void open_node(struct node *n)
{
	n->end = wire_attach(&wire, n->attr.neigh.mac);
	n->attr.source = n->end;
	n->ep = ur_endpoint_new(&n->attr, wire.now_ns, err, sizeof(err));
	cr_assert_not_null(n->ep, "%s", err);
	n->end->ep = n->ep;
	n->engine = ur_endpoint_engine(n->ep);
}

/* Objects: a buffer, a CQ, an RC queue pair in RESET. */
static void make_objects(struct node *n)
{
	struct ur_cq_create cq = {.cqe = 16, .unarmed = true};
	struct ur_qp_create qp = {.type = IBV_QPT_RC, .pd = PD, .random = wire.now_ns};

	n->buf = memory(BYTES);
	cr_assert_eq(ur_mem_register(n->attr.engine.mem, PD, n->buf, BYTES, (uintptr_t)n->buf,
				     RIGHTS, 99, &n->key),
		     0);
	n->cq_mem = memory(ur_engine_cq_size(cq.cqe));
	n->cq = ur_engine_create_cq(n->cq_mem, &cq);
	qp.send_cq = qp.recv_cq = n->cq;
	qp.cap = (struct ibv_qp_cap){4, 4, 1, 1, 0};
	n->rings = memory(ur_qp_rings_bytes(&qp));
	qp.rings = n->rings;
	cr_assert_eq(ur_engine_create_qp(n->engine, &qp, wire.now_ns, &n->qp), 0);
}

static void setup(void)
{
	wire_init(&wire, DELAY);
	prepare(a);
	prepare(b);
}

static void open_both(void)
{
	open_node(a);
	open_node(b);
}

/* Every buffer is back, whatever the test was about. */
static void teardown(void)
{
	for (unsigned i = 0; i < WIRE_ENDS; i++) {
		struct node *n = &nodes[i];

		ur_endpoint_free(n->ep);
		if (n->end)
			cr_expect_eq(n->end->buffers, 0, "buffers are lost");
		free(n->mem);
		free(n->cq_mem);
		free(n->rings);
		free(n->buf);
	}
	wire_fini(&wire);
}

#define ENDPOINT_TEST(name)                                                                        \
	static void test_##name(void);                                                             \
	Test(endpoint, name, .timeout = 100)                                                       \
	{                                                                                          \
		setup();                                                                           \
		test_##name();                                                                     \
		teardown();                                                                        \
	}                                                                                          \
	static void test_##name(void)

/* ---- neighbours ---- */

static struct ur_path_attr path;
static struct ur_gid wanted;

static bool is_resolved(void *arg)
{
	return ur_endpoint_resolve(((struct node *)arg)->ep, &wanted, wire.now_ns, &path) !=
	       -EAGAIN;
}

ENDPOINT_TEST(arp_and_nd_find_a_neighbour)
{
	open_both();
	for (unsigned v6 = 0; v6 < 2; v6++) {
		wanted = v6 ? ipv6_of(b) : ipv4_of(b);
		cr_assert_eq(ur_endpoint_resolve(a->ep, &wanted, wire.now_ns, &path), -EAGAIN);
		cr_assert(wire_run(&wire, is_resolved, a, SECOND));
		cr_assert_eq(ur_endpoint_resolve(a->ep, &wanted, wire.now_ns, &path), 0);
		cr_assert_arr_eq(path.dmac, b->attr.neigh.mac, 6);
		cr_assert_arr_eq(path.smac, a->attr.neigh.mac, 6);
	}
}

ENDPOINT_TEST(a_neighbour_that_is_not_there_is_unreachable_after_three_queries)
{
	uint64_t from_ns;

	open_both();
	wanted = ur_gid_from_ipv4(0x0a0900fe);
	from_ns = wire.now_ns;
	cr_assert(wire_run(&wire, is_resolved, a, 60 * SECOND));
	cr_assert_eq(ur_endpoint_resolve(a->ep, &wanted, wire.now_ns, &path), -EHOSTUNREACH);
	cr_assert_geq(wire.now_ns - from_ns, UR_NEIGH_TRIES * UR_NEIGH_RETRY_NS);
	cr_assert_lt(wire.now_ns - from_ns, (UR_NEIGH_TRIES + 1) * UR_NEIGH_RETRY_NS);
	wanted = ur_gid_from_ipv4(0x08080808);
	cr_assert_eq(ur_endpoint_resolve(a->ep, &wanted, wire.now_ns, &path), -ENETUNREACH);
}

static unsigned unhex(const char *hex, uint8_t *buf)
{
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};

		buf[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return (unsigned)len;
}

ENDPOINT_TEST(ping_is_answered)
{
	/* From 10.9.0.1 of the kernel to 10.9.0.2, which is A. */
	static const char ping[] = "92523c2a8bb1ae88d189b8390800450000240c42400040011a830a090001"
				   "0a090002080075b5763900010001020304050607";
	struct wire_end *kernel = wire_attach(&wire, kernel_mac);
	uint8_t frame[WIRE_ROOM], was[64];
	unsigned replies = 0;
	uint32_t len;

	open_both();
	len = unhex(ping, was);
	wire_send(kernel, was, len);
	wire_run(&wire, NULL, NULL, SECOND / 10);
	while ((len = wire_receive(kernel, frame))) {
		if (len < 42 || frame[12] != 0x08 || frame[13] != 0 || frame[23] != 1)
			continue;
		replies++;
		cr_assert_eq(frame[34], 0, "an echo reply");
		cr_assert_arr_eq(frame, kernel_mac, 6);
		cr_assert_arr_eq(frame + 26, was + 30, 4, "from the address that was asked");
		cr_assert_arr_eq(frame + 38, was + 38, 12, "identifier, number and data");
	}
	cr_assert_eq(replies, 1);
	cr_assert_eq(ur_endpoint_neigh(a->ep)->cnt[UR_NEIGH_PING4], 1u);
	cr_assert_eq(ur_endpoint_counters(a->ep)->other_frames,
		     ur_endpoint_counters(a->ep)->rx_frames);
}

/* ---- connections ---- */

static bool has_event(void *arg)
{
	return ((struct node *)arg)->event != UR_CM_EV_CNT;
}

static void wait_event(struct node *n, enum ur_cm_event_type type)
{
	cr_assert(wire_run(&wire, has_event, n, 60 * SECOND), "no %s", ur_cm_event_text(type));
	cr_assert_eq(n->event, type, "%s", ur_cm_event_text(n->event));
	n->event = UR_CM_EV_CNT;
}

static void find(struct node *n, struct node *peer)
{
	wanted = ipv4_of(peer);
	cr_assert(wire_run(&wire, is_resolved, n, 10 * SECOND));
	cr_assert_eq(ur_endpoint_resolve(n->ep, &wanted, wire.now_ns, &path), 0);
}

/* Moves the queue pair to RTS with the connection manager's numbers. */
static void start_qp(struct node *n, struct node *peer, struct ur_psn rq_psn, enum ur_mode mode)
{
	struct ur_qp_connection c = {.dest_qpn = n->peer_qpn,
				     .sq_psn = n->sq_psn,
				     .rq_psn = rq_psn,
				     .path_mtu = IBV_MTU_4096,
				     .access = IBV_ACCESS_REMOTE_WRITE,
				     .mode = {.mode = mode}};

	find(n, peer);
	c.path = path;
	c.path.sport = ur_path_sport(0, ur_engine_qpn(n->qp), n->peer_qpn);
	cr_assert_eq(ur_engine_connect_qp(n->engine, n->qp, &c, wire.now_ns), 0);
}

/* A connects to B over the wire, REQ, REP and RTU. */
static void connect_nodes(enum ur_mode mode)
{
	struct ur_psn a_psn = ur_psn(0xfffff0), b_psn = ur_psn(77);
	uint64_t service = 0x1000000000000abcull;
	struct ur_cm_connect_attr req = {.sgid = ipv4_of(a),
					 .dgid = ipv4_of(b),
					 .service_id = service,
					 .transport = UR_CM_TRANSPORT_RC,
					 .rq_psn = a_psn,
					 .pkey = 0xffff,
					 .pmtu = 5,
					 .retry_cnt = 7,
					 .rnr_retry = 7,
					 .ack_timeout = 14,
					 .remote_resp_timeout = 16,
					 .local_resp_timeout = 16,
					 .max_cm_retries = 15};
	struct ur_cm_accept_attr rep = {.rq_psn = b_psn, .rnr_retry = 7};
	struct ur_cm_id id;

	make_objects(a);
	make_objects(b);
	cr_assert_eq(ur_cm_listen(ur_engine_cm(b->engine), UR_CM_KIND_CONN, service, b), 0);
	find(a, b);
	path.sport = 0xc000;
	ur_path_init(&req.path, &path);
	req.qpn = ur_engine_qpn(a->qp);
	cr_assert_eq(ur_cm_connect(ur_engine_cm(a->engine), a, &req, wire.now_ns, &id), 0);
	wait_event(b, UR_CM_EV_REQ_RCVD);
	start_qp(b, a, b_psn, mode);
	rep.qpn = ur_engine_qpn(b->qp);
	cr_assert_eq(ur_cm_accept(ur_engine_cm(b->engine), b->id, &rep, wire.now_ns), 0);
	wait_event(a, UR_CM_EV_REP_RCVD);
	start_qp(a, b, a_psn, mode);
	cr_assert_eq(ur_cm_rtu(ur_engine_cm(a->engine), a->id, NULL, 0, wire.now_ns), 0);
	wait_event(b, UR_CM_EV_ESTABLISHED);
}

static bool has_completion(void *arg)
{
	struct node *n = arg;

	return ur_engine_poll_cq(n->cq, 1, &n->wc) == 1;
}

/* A megabyte from one to the other; it returns the time that it took. */
static uint64_t write_all(struct node *from, struct node *to)
{
	struct ibv_sge sge = {(uintptr_t)from->buf, BYTES, from->key};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)to->buf, to->key}};
	uint64_t from_ns = wire.now_ns;

	for (uint32_t i = 0; i < BYTES; i++)
		from->buf[i] = (uint8_t)(i * 31 + i / 4096);
	memset(to->buf, 0, BYTES);
	cr_assert_eq(ur_engine_post_send(from->qp, &wr), 0);
	ur_engine_doorbell(from->engine, from->qp, wire.now_ns);
	cr_assert(wire_run(&wire, has_completion, from, 60 * SECOND));
	cr_assert_eq(from->wc.status, IBV_WC_SUCCESS);
	cr_assert_arr_eq(from->buf, to->buf, BYTES);
	return wire.now_ns - from_ns;
}

ENDPOINT_TEST(a_connection_is_made_over_the_wire_and_carries_a_megabyte)
{
	const struct ur_worker_counters *c;

	open_both();
	connect_nodes(UR_MODE_GBN);
	write_all(a, b);
	write_all(b, a);
	for (unsigned i = 0; i < 2; i++) {
		c = ur_endpoint_counters(nodes[i].ep);
		for (unsigned d = 0; d < UR_DROP_CNT; d++)
			cr_assert_eq(c->drops[d], 0u, "%s", ur_drop_name((enum ur_drop)d));
		cr_assert_eq(c->no_mbuf, 0u);
		cr_assert_eq(c->loopback, 0u);
	}
}

ENDPOINT_TEST(a_connection_ends_by_a_dreq)
{
	open_both();
	connect_nodes(UR_MODE_GBN);
	cr_assert_eq(ur_cm_disconnect(ur_engine_cm(a->engine), a->id, NULL, 0, wire.now_ns), 0);
	wait_event(b, UR_CM_EV_DREQ_RCVD);
	wait_event(a, UR_CM_EV_DISCONNECTED);
	wait_event(a, UR_CM_EV_TIMEWAIT_EXIT);
}

/* The same seed loses the same packets: what a test saw once it sees again. */
ENDPOINT_TEST(traffic_survives_loss_corruption_duplicates_and_reordering)
{
	static const enum ur_mode modes[] = {UR_MODE_GBN, UR_MODE_REORDER, UR_MODE_EXTENDED};

	for (unsigned m = 0; m < 3; m++) {
		const uint64_t *rx, *tx;

		if (m) {
			teardown();
			setup();
		}
		a->attr.tx_impair = (struct ur_impair_config){.seed = 1 + m,
							      .loss = ur_impair_chance(0.03),
							      .corrupt = ur_impair_chance(0.02),
							      .duplicate = ur_impair_chance(0.02),
							      .reorder = ur_impair_chance(0.02),
							      .reorder_gap = 3,
							      .reorder_hold_ns = 50000};
		b->attr.rx_impair = (struct ur_impair_config){
			.seed = 7, .loss = ur_impair_chance(0.02), .delay_ns = 3000};
		open_both();
		connect_nodes(modes[m]);
		write_all(a, b);
		write_all(b, a);
		tx = ur_impair_counters(ur_endpoint_impair(a->ep, true));
		rx = ur_impair_counters(ur_endpoint_impair(b->ep, false));
		cr_assert_gt(tx[UR_IMPAIR_LOST], 0u);
		cr_assert_gt(tx[UR_IMPAIR_DUPLICATED], 0u);
		cr_assert_gt(tx[UR_IMPAIR_REORDERED], 0u);
		cr_assert_gt(rx[UR_IMPAIR_LOST], 0u);
		cr_assert_gt(rx[UR_IMPAIR_DELAYED], 0u);
		cr_assert_gt(tx[UR_IMPAIR_CORRUPTED], 0u);
		cr_assert_gt(ur_endpoint_counters(b->ep)->drops[UR_DROP_ICRC], 0u);
		cr_assert_null(ur_endpoint_impair(a->ep, false));
	}
}

ENDPOINT_TEST(a_slow_link_takes_the_time_of_its_bytes)
{
	uint64_t took_ns;

	a->attr.rate_gbps = 1;
	open_both();
	connect_nodes(UR_MODE_GBN);
	took_ns = write_all(a, b);
	cr_assert_geq(took_ns, BYTES * 8ull);
	cr_assert_lt(took_ns, BYTES * 9ull, "and no longer: %lu ns", (unsigned long)took_ns);
}

ENDPOINT_TEST(a_source_that_takes_nothing_for_a_while_loses_nothing)
{
	open_both();
	connect_nodes(UR_MODE_GBN);
	/* Fewer than a burst at a time, nothing in between. */
	for (unsigned i = 0; i < 5; i++) {
		a->end->takes = i * 3;
		wire_run(&wire, NULL, NULL, 1000);
	}
	a->end->takes = 7;
	for (unsigned i = 0; i < 40; i++) {
		struct ibv_sge sge = {(uintptr_t)a->buf, BYTES, a->key};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .wr.rdma = {(uintptr_t)b->buf, b->key}};

		if (i == 0) {
			cr_assert_eq(ur_engine_post_send(a->qp, &wr), 0);
			ur_engine_doorbell(a->engine, a->qp, wire.now_ns);
		}
		wire_run(&wire, NULL, NULL, DELAY);
		a->end->takes = i % 2 ? 11 : 0;
	}
	a->end->takes = UINT32_MAX;
	write_all(a, b);
	cr_assert_eq(ur_endpoint_counters(b->ep)->drops[UR_DROP_ICRC], 0u);
}

static unsigned clock_reads;

static uint64_t read_clock(void *source)
{
	clock_reads++;
	return wire.now_ns;
}

/* The round's argument is the time of its first burst. */
ENDPOINT_TEST(the_clock_is_read_once_for_each_burst_after_the_first_that_is_sent)
{
	static struct ur_source_ops ops;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

	ops = *a->attr.ops;
	ops.now_ns = read_clock;
	a->attr.ops = &ops;
	open_both();
	connect_nodes(UR_MODE_GBN);
	wire_run(&wire, NULL, NULL, SECOND);
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
	wr.wr.rdma.rkey = b->key;
	cr_assert_eq(ur_engine_post_send(a->qp, &wr), 0);
	ur_engine_doorbell(a->engine, a->qp, wire.now_ns);
	clock_reads = 0;
	cr_assert_geq(ur_endpoint_run(a->ep, wire.now_ns), 1u);
	cr_assert_eq(clock_reads, 1, "for the receive burst");
}

/* Every size around that of the largest staged frame, and the ACKs of the other direction. */
ENDPOINT_TEST(staged_frames_carry_every_byte)
{
	a->attr.stage_tx = true;
	open_both();
	connect_nodes(UR_MODE_GBN);
	for (uint32_t i = 0; i < BYTES; i++)
		a->buf[i] = (uint8_t)(i * 7 + i / 251);
	for (uint32_t len = 0; len <= 320; len++) {
		struct ibv_sge sge = {(uintptr_t)a->buf + 321 * len, len, a->key};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED};

		wr.wr.rdma.remote_addr = (uintptr_t)b->buf;
		wr.wr.rdma.rkey = b->key;
		memset(b->buf, 0xa5, 400);
		cr_assert_eq(ur_engine_post_send(a->qp, &wr), 0);
		ur_engine_doorbell(a->engine, a->qp, wire.now_ns);
		cr_assert(wire_run(&wire, has_completion, a, 60 * SECOND));
		cr_assert_eq(a->wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(memcmp(b->buf, a->buf + 321 * len, len), 0, "%u bytes", len);
		cr_assert_eq(b->buf[len], 0xa5, "one byte too many");
	}
	write_all(a, b);
	write_all(b, a);
	for (unsigned d = 0; d < UR_DROP_CNT; d++)
		cr_assert_eq(ur_endpoint_counters(b->ep)->drops[d], 0u);
}

ENDPOINT_TEST(buffers_that_run_out_are_counted_and_waited_for)
{
	open_both();
	connect_nodes(UR_MODE_GBN);
	b->end->buffers_max = b->end->buffers;
	a->end->buffers_max = 40;
	write_all(a, b);
	cr_assert_gt(ur_endpoint_counters(b->ep)->no_mbuf, 0u);
}

/* The wire is down at first, with the announcement of an address still to send. */
ENDPOINT_TEST(what_it_sends_to_itself_neither_sees_the_wire_nor_waits_for_it)
{
	struct ur_qp_connection c = {.path_mtu = IBV_MTU_4096, .access = IBV_ACCESS_REMOTE_WRITE};
	uint64_t sent;

	open_both();
	make_objects(a);
	a->end->takes = 0;
	wanted = ipv4_of(a);
	cr_assert_eq(ur_endpoint_resolve(a->ep, &wanted, wire.now_ns, &path), 0);
	c.path = path;
	c.path.sport = 0xc000;
	c.dest_qpn = ur_engine_qpn(a->qp);
	cr_assert_eq(ur_engine_connect_qp(a->engine, a->qp, &c, wire.now_ns), 0);
	write_all(a, a);
	cr_assert_eq(ur_endpoint_counters(a->ep)->tx_frames, 0u);
	a->end->takes = UINT32_MAX;
	wire_run(&wire, NULL, NULL, 10 * SECOND);
	sent = ur_endpoint_counters(a->ep)->tx_frames;
	cr_assert_gt(sent, 0u, "what waited has left");
	write_all(a, a);
	cr_assert_eq(ur_endpoint_counters(a->ep)->tx_frames, sent);
	cr_assert_geq(ur_endpoint_counters(a->ep)->loopback, BYTES / 4096u);
}

/* ---- what is not ours ---- */

/* The last RoCEv2 packet that B was sent, caught on its way. */
static uint32_t catch_packet(uint8_t frame[WIRE_ROOM])
{
	struct ibv_sge sge = {(uintptr_t)a->buf, 64, a->key};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {(uintptr_t)b->buf, b->key}};
	uint32_t len;

	cr_assert_eq(ur_engine_post_send(a->qp, &wr), 0);
	ur_engine_doorbell(a->engine, a->qp, wire.now_ns);
	ur_endpoint_run(a->ep, wire.now_ns);
	wire.now_ns += DELAY;
	len = wire_receive(b->end, frame);
	cr_assert_gt(len, 64);
	return len;
}

static void expect_drop(const uint8_t *frame, uint32_t len, enum ur_drop why)
{
	const struct ur_worker_counters *c = ur_endpoint_counters(b->ep);
	uint64_t drops[UR_DROP_CNT];

	memcpy(drops, c->drops, sizeof(drops));
	wire_send(a->end, frame, len);
	wire_run(&wire, NULL, NULL, DELAY);
	for (unsigned d = 0; d < UR_DROP_CNT; d++)
		cr_assert_eq(c->drops[d] - drops[d], why && d == why, "%s",
			     ur_drop_name((enum ur_drop)d));
}

ENDPOINT_TEST(frames_of_other_vlans_and_addresses_and_damaged_ones_are_dropped)
{
	uint8_t frame[WIRE_ROOM], other[WIRE_ROOM];
	struct ur_packet p;
	uint64_t accepted;
	uint32_t len;

	open_both();
	connect_nodes(UR_MODE_GBN);
	len = catch_packet(frame);

	/* EDGE-VLAN-01 */
	memcpy(other, frame, 12);
	memcpy(other + 12, "\x81\x00\x20\x05", 4);
	memcpy(other + 16, frame + 12, len - 12);
	expect_drop(other, len + 4, UR_DROP_VLAN);

	memcpy(other, frame, len);
	other[len - 20] ^= 1;
	expect_drop(other, len, UR_DROP_ICRC);

	/* Another address, with the checksum that belongs to it. */
	memcpy(other, frame, len);
	other[33] = (uint8_t)(other[33] + 1);
	other[25] = (uint8_t)(other[25] - 1);
	cr_assert_eq(ur_packet_decode(other, len, &p), UR_DROP_NONE);
	expect_drop(other, len, UR_DROP_DST_ADDR);

	/* A priority tag names no VLAN: this one is taken. */
	memcpy(other, frame, 12);
	memcpy(other + 12, "\x81\x00\x60\x00", 4);
	memcpy(other + 16, frame + 12, len - 12);
	accepted = ur_engine_counters(b->engine)->rx_packets;
	expect_drop(other, len + 4, UR_DROP_NONE);
	cr_assert_eq(ur_engine_counters(b->engine)->rx_packets, accepted + 1);

	/* PREDICT-EDGE-01: none of these was predicted, but the next one is. */
	cr_assert_eq(ur_engine_counters(b->engine)->rx_predicted, 0u);
	len = catch_packet(frame);
	expect_drop(frame, len, UR_DROP_NONE);
	cr_assert_eq(ur_engine_counters(b->engine)->rx_predicted, 1u);
	cr_assert_eq(ur_engine_counters(b->engine)->rx_packets, accepted + 2);
}

ENDPOINT_TEST(an_endpoint_in_a_vlan_takes_that_one_only)
{
	uint8_t frame[WIRE_ROOM];
	uint32_t len;

	for (unsigned i = 0; i < 2; i++) {
		nodes[i].attr.neigh.has_vlan = true;
		nodes[i].attr.neigh.vlan_tci = 5;
	}
	open_both();
	connect_nodes(UR_MODE_GBN);
	write_all(a, b);
	len = catch_packet(frame);
	cr_assert_arr_eq(frame + 12, "\x81\x00\x00\x05", 4);
	frame[15] = 6;
	expect_drop(frame, len, UR_DROP_VLAN);
	memmove(frame + 12, frame + 16, len - 16);
	expect_drop(frame, len - 4, UR_DROP_VLAN);
	cr_assert_eq(ur_engine_counters(b->engine)->rx_predicted, 0u); /* PREDICT-EDGE-01 */
}

/* ---- capture ---- */

ENDPOINT_TEST(a_capture_holds_what_went_over_the_wire)
{
	static struct ur_capture_hook hook;
	char file[] = "/tmp/uroce_endpoint_test_XXXXXX", reason[PCAP_ERRBUF_SIZE];
	int fd = mkstemp(file);
	struct ur_capture_attr attr = {.path = file, .worker_cnt = 1, .epoch_ns = 0};
	const struct ur_worker_counters *c;
	struct pcap_pkthdr *header;
	uint64_t frames = 0, roce = 0, last_ns = 0;
	const uint8_t *bytes;
	pcap_t *pcap;

	cr_assert_geq(fd, 0);
	close(fd);
	a->attr.capture = &hook;
	a->attr.tx_impair = (struct ur_impair_config){.seed = 3, .loss = ur_impair_chance(0.05)};
	cr_assert_eq(ur_capture_attach(&hook, ur_capture_start(&attr, err, sizeof(err))), 0, "%s",
		     err);
	open_both();
	connect_nodes(UR_MODE_EXTENDED);
	write_all(a, b);
	cr_assert_eq(ur_capture_stop(ur_capture_detach(&hook), NULL), 0);
	c = ur_endpoint_counters(a->ep);
	pcap = pcap_open_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, reason);
	cr_assert_not_null(pcap, "%s", reason);
	while (pcap_next_ex(pcap, &header, &bytes) == 1) {
		uint64_t ns = (uint64_t)header->ts.tv_sec * SECOND + (uint64_t)header->ts.tv_usec;
		struct ur_packet p;

		cr_assert_geq(ns, last_ns, "in the order of virtual time");
		last_ns = ns;
		frames++;
		if (ur_packet_decode(bytes, header->caplen, &p) == UR_DROP_NOT_ROCE)
			continue;
		cr_assert(ur_icrc_ok(bytes, &p));
		roce++;
	}
	pcap_close(pcap);
	unlink(file);
	cr_assert_eq(frames, c->rx_frames + c->tx_frames);
	cr_assert_geq(roce, BYTES / 4096u);
	cr_assert_leq(last_ns, wire.now_ns);
}

/* ---- what is refused ---- */

ENDPOINT_TEST(an_attribute_that_does_not_fit_is_named)
{
	struct ur_mem *mem;

	a->attr.frame_bytes = 2000;
	cr_assert_null(ur_endpoint_new(&a->attr, 0, err, sizeof(err)));
	cr_assert(strstr(err, "frame_bytes"), "%s", err);
	a->attr.frame_bytes = WIRE_ROOM;
	a->attr.engine.limits.workers = 2;
	cr_assert_null(ur_endpoint_new(&a->attr, 0, err, sizeof(err)));
	cr_assert(strstr(err, "workers"), "%s", err);
	a->attr.engine.limits.workers = 1;
	mem = a->attr.engine.mem;
	a->attr.engine.mem = NULL;
	cr_assert_null(ur_endpoint_new(&a->attr, 0, err, sizeof(err)));
	cr_assert(strstr(err, "memory regions"), "%s", err);
	a->attr.engine.mem = mem;
	a->attr.engine.window = 100;
	cr_assert_null(ur_endpoint_new(&a->attr, 0, err, sizeof(err)));
	cr_assert(strstr(err, "window"), "%s", err);
	a->attr.engine.window = 256;
	a->attr.engine.cm.sink = NULL;
	cr_assert_null(ur_endpoint_new(&a->attr, 0, err, sizeof(err)));
	cr_assert(strstr(err, "cm.sink"), "%s", err);
}

/* ---- link credits ---- */

static void offer_credits(struct node *n, uint32_t session)
{
	static const uint8_t lane[16], pcp[16];

	n->attr.credit =
		(struct ur_credit_attr){.buffers = 240, .session = session, .life_ns = SECOND / 10};
	ur_credit_map_make(&n->attr.credit.map, lane, lane, pcp);
}

/* CREDIT-GATE-02, CREDIT-SESSION-01: the limits are in force, and cost no packet. */
ENDPOINT_TEST(two_ends_with_credits)
{
	offer_credits(a, 5);
	offer_credits(b, 6);
	open_both();
	connect_nodes(UR_MODE_EXTENDED);
	write_all(a, b);
	write_all(b, a);
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_worker_counters *c = ur_endpoint_counters(nodes[i].ep);

		cr_assert_eq(c->credit_sessions, 1u);
		cr_assert_eq(c->credit_stalls, 0u);
	}
}

/* CREDIT-HEAL-01: messages are lost, and frames. */
ENDPOINT_TEST(two_ends_with_credits_and_losses)
{
	offer_credits(a, 5);
	offer_credits(b, 6);
	a->attr.tx_impair = b->attr.tx_impair =
		(struct ur_impair_config){.seed = 3, .loss = ur_impair_chance(0.1)};
	open_both();
	connect_nodes(UR_MODE_EXTENDED);
	write_all(a, b);
	write_all(b, a);
	cr_assert_eq(ur_endpoint_counters(a->ep)->credit_sessions, 1u);
}

/* CREDIT-SESSION-01: the other end does not know credits. */
ENDPOINT_TEST(credits_that_nobody_answers)
{
	offer_credits(a, 5);
	open_both();
	connect_nodes(UR_MODE_GBN);
	write_all(a, b);
	write_all(b, a);
	cr_assert_eq(ur_endpoint_counters(a->ep)->credit_sessions, 0u);
}
