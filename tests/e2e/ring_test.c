/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints in one process, joined by a ring: the public API end to end, without privileges.
 * The server runs in its own thread; the test is the client. Both can access each other's memory,
 * so that the tests can compare bytes.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "uroce/cm.h"
#include "uroce/uroce.h"

#define PORT	     7471
#define REGION_BYTES (1u << 20)
#define RECV_BYTES   (REGION_BYTES / RECV_CNT)
#define RECV_CNT     4
#define CQ_ENTRIES   64
#define PATIENCE_S   60
#define ALL_ACCESS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct side {
	struct ibv_context *ctx;
	struct uroce_event_channel *channel;
	struct uroce_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *recv_mr;
	uint8_t *region;   /* REGION_BYTES, target of the peer's RDMA */
	uint8_t *received; /* RECV_CNT receives of RECV_BYTES */
};

static struct side server, client;
static struct uroce_cm_id *listener;
static pthread_t server_thread;
static _Atomic bool stop, up, disconnected;
/* Receive completions of the server, [0, received_cnt); the client reads them after the count. */
static struct ibv_wc received_wc[CQ_ENTRIES];
static _Atomic unsigned received_cnt;

/* Seconds of the monotonic clock. */
static time_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static time_t deadline(void)
{
	return now_s() + PATIENCE_S;
}

static void side_open(struct side *s, const char *file)
{
	const char *dir = getenv("UROCE_SOURCE");
	/* Other processes may take the hugepages at any time, so tests do without. */
	const char *const set[] = {"eal.hugepages=no", NULL};
	struct uroce_open_attr attr = {.set = set};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = RECV_CNT,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	char path[512], err[512] = "";

	cr_assert_not_null(dir, "UROCE_SOURCE is not set");
	snprintf(path, sizeof(path), "%s/pmd-config/%s", dir, file);
	attr.config = path;
	memset(s, 0, sizeof(*s));
	s->ctx = uroce_open(&attr, err, sizeof(err));
	cr_assert_not_null(s->ctx, "%s: %s", file, err);
	s->channel = uroce_create_event_channel(s->ctx);
	s->pd = uroce_alloc_pd(s->ctx);
	s->cq = uroce_create_cq(s->ctx, CQ_ENTRIES, NULL, NULL, 0);
	cr_assert(s->channel && s->pd && s->cq);
	s->region = calloc(1, REGION_BYTES);
	s->received = calloc(1, REGION_BYTES);
	cr_assert(s->region && s->received);
	s->mr = uroce_reg_mr(s->pd, s->region, REGION_BYTES, ALL_ACCESS);
	s->recv_mr = uroce_reg_mr(s->pd, s->received, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(s->mr && s->recv_mr);
	qp.send_cq = qp.recv_cq = s->cq;
	s->qp = uroce_create_qp(s->pd, &qp);
	cr_assert_not_null(s->qp);
}

static void side_close(struct side *s)
{
	struct uroce_objects o;

	if (s->id)
		cr_expect_eq(uroce_cm_destroy_id(s->id), 0);
	cr_expect_eq(uroce_destroy_qp(s->qp), 0);
	cr_expect_eq(uroce_destroy_cq(s->cq), 0);
	cr_expect_eq(uroce_dereg_mr(s->mr), 0);
	cr_expect_eq(uroce_dereg_mr(s->recv_mr), 0);
	cr_expect_eq(uroce_dealloc_pd(s->pd), 0);
	cr_expect_eq(uroce_destroy_event_channel(s->channel), 0);
	cr_expect_eq(uroce_query_objects(s->ctx, &o), 0);
	cr_expect_eq(o.pds + o.mrs + o.cqs + o.srqs + o.qps + o.ahs + o.channels + o.cm_ids, 0,
		     "objects are left");
	cr_expect_eq(uroce_close(s->ctx), 0);
	free(s->region);
	free(s->received);
}

static int post_receive(struct side *s, unsigned i)
{
	struct ibv_sge sge = {(uintptr_t)s->received + i * RECV_BYTES, RECV_BYTES,
			      s->recv_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	return uroce_post_recv(s->qp, &wr, &bad);
}

static void server_event(const struct uroce_cm_event *e)
{
	struct uroce_conn_param param = {.responder_resources = 4, .initiator_depth = 4};

	switch (e->type) {
	case UROCE_CM_CONNECT_REQUEST:
		server.id = e->id;
		if (uroce_cm_accept(e->id, server.qp, &param) != 0)
			abort();
		for (unsigned i = 0; i < RECV_CNT; i++)
			if (post_receive(&server, i) != 0)
				abort();
		break;
	case UROCE_CM_ESTABLISHED:
		atomic_store(&up, true);
		break;
	case UROCE_CM_DISCONNECTED:
		atomic_store(&disconnected, true);
		break;
	default:
		break;
	}
}

static void *serve(void *arg)
{
	struct uroce_cm_event *e;
	struct ibv_wc wc;

	while (!atomic_load(&stop)) {
		if (uroce_get_cm_event(server.channel, 0, &e) == 0) {
			server_event(e);
			uroce_ack_cm_event(e);
		}
		while (uroce_poll_cq(server.cq, 1, &wc) == 1) {
			unsigned n = atomic_load(&received_cnt);

			if (n == CQ_ENTRIES)
				abort();
			received_wc[n] = wc;
			atomic_store(&received_cnt, n + 1);
		}
	}
	return arg;
}

/* The next connection event of the client. */
static enum uroce_cm_event_type client_event(void)
{
	struct uroce_cm_event *e;
	enum uroce_cm_event_type type;

	cr_assert_eq(uroce_get_cm_event(client.channel, PATIENCE_S * 1000, &e), 0, "no event came");
	type = e->type;
	uroce_ack_cm_event(e);
	return type;
}

static void wait_until(_Atomic bool *flag, const char *what)
{
	time_t end = deadline();

	while (!atomic_load(flag)) {
		uroce_progress(client.ctx);
		cr_assert_lt(now_s(), end, "waited in vain: %s", what);
	}
}

static void connect_both(void)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct uroce_conn_param param = {.responder_resources = 4,
					 .initiator_depth = 4,
					 .retry_count = 7,
					 .rnr_retry_count = 7,
					 .min_rnr_timer = 1};

	inet_pton(AF_INET, "10.77.0.1", &peer.sin_addr);
	cr_assert_eq(uroce_cm_create_id(client.channel, NULL, &client.id), 0);
	cr_assert_eq(uroce_cm_connect(client.id, (struct sockaddr *)&peer, client.qp, &param), 0);
	cr_assert_eq(client_event(), UROCE_CM_ESTABLISHED);
	wait_until(&up, "the server is connected");
}

static void set_up(void)
{
	side_open(&server, "ring-a.conf");
	side_open(&client, "ring-b.conf");
	cr_assert_eq(uroce_cm_create_id(server.channel, NULL, &listener), 0);
	cr_assert_eq(uroce_cm_listen(listener, PORT), 0);
	cr_assert_eq(pthread_create(&server_thread, NULL, serve, NULL), 0);
	connect_both();
}

static void tear_down(void)
{
	atomic_store(&stop, true);
	pthread_join(server_thread, NULL);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
	side_close(&client);
	side_close(&server);
}

static struct ibv_wc client_completion(void)
{
	time_t end = deadline();
	struct ibv_wc wc;
	int n;

	while ((n = uroce_poll_cq(client.cq, 1, &wc)) == 0)
		cr_assert_lt(now_s(), end, "no completion came");
	cr_assert_eq(n, 1);
	return wc;
}

/* Posts one request with client.region[0, len) and returns its completion. */
static struct ibv_wc transfer(struct ibv_send_wr *wr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)client.region, len, client.mr->lkey};
	struct ibv_send_wr *bad;

	wr->wr_id = 0x1234;
	wr->sg_list = &sge;
	wr->num_sge = 1;
	cr_assert_eq(uroce_post_send(client.qp, wr, &bad), 0);
	return client_completion();
}

static struct ibv_wc rdma(enum ibv_wr_opcode opcode, uint32_t len, uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = opcode};

	wr.wr.rdma.remote_addr = (uintptr_t)server.region;
	wr.wr.rdma.rkey = rkey;
	return transfer(&wr, len);
}

static void fill(uint8_t *p, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static const uint32_t sizes[] = {0, 1, 3, 4095, 4096, 4097, 100000, REGION_BYTES};
#define SIZES_CNT (sizeof(sizes) / sizeof(sizes[0]))

/*
 * Criterion's .init and .fini are not used, because it treats a crash in them as a warning. Closing
 * the endpoints is a part of the test.
 */
#define RING_TEST(name)                                                                            \
	static void name(void);                                                                    \
	Test(ring, name, .timeout = 240)                                                           \
	{                                                                                          \
		set_up();                                                                          \
		name();                                                                            \
		tear_down();                                                                       \
	}                                                                                          \
	static void name(void)

RING_TEST(write_puts_every_byte_and_no_other)
{
	for (unsigned i = 0; i < SIZES_CNT; i++) {
		uint32_t len = sizes[i];
		struct ibv_wc wc;

		fill(client.region, REGION_BYTES, i);
		memset(server.region, 0xee, REGION_BYTES);
		wc = rdma(IBV_WR_RDMA_WRITE, len, server.mr->rkey);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(wc.wr_id, 0x1234);
		cr_assert_eq(wc.opcode, IBV_WC_RDMA_WRITE);
		cr_assert_eq(memcmp(server.region, client.region, len), 0, "%u bytes", len);
		for (uint32_t at = len; at < REGION_BYTES; at++)
			cr_assert_eq(server.region[at], 0xee, "byte %u behind a write of %u", at,
				     len);
	}
}

RING_TEST(read_gets_every_byte_and_no_other)
{
	for (unsigned i = 0; i < SIZES_CNT; i++) {
		uint32_t len = sizes[i];
		struct ibv_wc wc;

		fill(server.region, REGION_BYTES, i + 100);
		memset(client.region, 0xee, REGION_BYTES);
		wc = rdma(IBV_WR_RDMA_READ, len, server.mr->rkey);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(wc.opcode, IBV_WC_RDMA_READ);
		cr_assert_eq(memcmp(server.region, client.region, len), 0, "%u bytes", len);
		for (uint32_t at = len; at < REGION_BYTES; at++)
			cr_assert_eq(client.region[at], 0xee, "byte %u behind a read of %u", at,
				     len);
	}
}

/* Sends a message into the server's receive `n`, which has that wr_id. */
static void send_and_check(unsigned n, uint32_t len, bool with_imm)
{
	struct ibv_send_wr wr = {.opcode = with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND};
	const struct ibv_wc *got = &received_wc[n];
	time_t end = deadline();

	wr.imm_data = htonl(0xabcd0000u + n);
	fill(client.region, len, n + 200);
	cr_assert_eq(transfer(&wr, len).status, IBV_WC_SUCCESS);
	while (atomic_load(&received_cnt) <= n)
		cr_assert_lt(now_s(), end, "message %u did not arrive", n);
	cr_assert_eq(got->status, IBV_WC_SUCCESS);
	cr_assert_eq(got->opcode, IBV_WC_RECV);
	cr_assert_eq(got->wr_id, n);
	cr_assert_eq(got->byte_len, len);
	cr_assert_eq(!!(got->wc_flags & IBV_WC_WITH_IMM), with_imm);
	if (with_imm)
		cr_assert_eq(ntohl(got->imm_data), 0xabcd0000u + n);
	cr_assert_eq(memcmp(server.received + n * RECV_BYTES, client.region, len), 0);
}

RING_TEST(sends_fill_the_receives_in_order)
{
	send_and_check(0, 0, false);
	send_and_check(1, 100, true);
	send_and_check(2, 4097, false);
	send_and_check(3, RECV_BYTES, true);
}

static uint64_t atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = {.opcode = opcode};
	struct ibv_wc wc;
	uint64_t old;

	wr.wr.atomic.remote_addr = (uintptr_t)server.region;
	wr.wr.atomic.rkey = server.mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	wc = transfer(&wr, 8);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	memcpy(&old, client.region, 8);
	return old;
}

RING_TEST(atomics_return_the_old_value_and_store_the_new)
{
	uint64_t value = 1000;

	memcpy(server.region, &value, 8);
	cr_assert_eq(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0), 1000);
	cr_assert_eq(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 0), 1007);
	cr_assert_eq(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 5, 55), 1006, "a compare that fails");
	cr_assert_eq(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1006, 0x123456789abcdef0), 1006);
	memcpy(&value, server.region, 8);
	cr_assert_eq(value, 0x123456789abcdef0);
}

RING_TEST(a_wrong_rkey_is_refused_and_the_rest_flushes)
{
	struct ibv_wc wc;

	memset(server.region, 0xee, 100);
	fill(client.region, 100, 1);
	wc = rdma(IBV_WR_RDMA_WRITE, 100, server.mr->rkey ^ 1);
	cr_assert_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
	for (unsigned i = 0; i < 100; i++)
		cr_assert_eq(server.region[i], 0xee);
	wc = rdma(IBV_WR_RDMA_WRITE, 100, server.mr->rkey);
	cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
}

RING_TEST(reading_past_the_end_is_refused)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	wr.wr.rdma.remote_addr = (uintptr_t)server.region + REGION_BYTES - 99;
	wr.wr.rdma.rkey = server.mr->rkey;
	cr_assert_eq(transfer(&wr, 100).status, IBV_WC_REM_ACCESS_ERR);
}

RING_TEST(disconnecting_tells_both_sides_and_flushes_the_receives)
{
	time_t end = deadline();

	cr_assert_eq(uroce_cm_disconnect(client.id), 0);
	cr_assert_eq(client_event(), UROCE_CM_DISCONNECTED);
	wait_until(&disconnected, "the server is disconnected");
	while (atomic_load(&received_cnt) < RECV_CNT)
		cr_assert_lt(now_s(), end, "receives were not flushed");
	for (unsigned i = 0; i < RECV_CNT; i++)
		cr_assert_eq(received_wc[i].status, IBV_WC_WR_FLUSH_ERR);
}
