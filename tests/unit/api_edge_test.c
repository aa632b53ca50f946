/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_wire.h"

#include <rte_cycles.h>

#include "dpdk/counters.h"
#include "dpdk/port.h"

/* Parts that the application does not see: packet buffers, hostile frames, telemetry. */

/* ---- no buffer is lost ---- */

static void transfer_and_close(const char *const *set)
{
	struct ibv_qp *a[4], *b[4];
	struct ibv_wc wc;

	open_side(A, set);
	open_side(B, set);
	for (unsigned i = 0; i < 4; i++) {
		a[i] = make_qp(A, IBV_QPT_RC);
		b[i] = make_qp(B, IBV_QPT_RC);
		join(a[i], b[i], (struct join){0});
	}
	for (unsigned i = 0; i < 40; i++) {
		post(A, a[i % 4], i, IBV_WR_RDMA_WRITE, 0, 60000);
		wc = next_wc(A);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", uroce_wc_status_str(wc.status));
		cr_assert_eq(memcmp(A->buf, B->buf, 60000), 0);
	}
	/* Full of packets, in both directions. */
	for (unsigned i = 0; i < 4; i++) {
		post(A, a[i], 1, IBV_WR_RDMA_WRITE, 0, 60000);
		post(B, b[i], 1, IBV_WR_RDMA_READ, 0, 60000);
	}
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(uroce_destroy_qp(a[i]), 0);
		cr_assert_eq(uroce_destroy_qp(b[i]), 0);
	}
	close_side(A);
	progress();
	close_side(B);
	/* A pool is freed only when all its buffers have been returned. */
	cr_assert_eq(ur_port_reap(), 0u, "buffers are lost");
}

PAIR_TEST(api_edge, every_packet_buffer_comes_back, open_nothing, close_both)
{
	for (unsigned i = 0; i < 4; i++)
		transfer_and_close(NULL);
}

PAIR_TEST(api_edge, every_packet_buffer_comes_back_from_a_bad_network, open_nothing, close_both)
{
	static const char *const bad[] = {"impair.tx_loss=2",	   "impair.tx_duplicate=5",
					  "impair.tx_reorder=5",   "impair.tx_corrupt=2",
					  "impair.rx_delay_us=50", "impair.rx_jitter_us=50",
					  "impair.rx_ecn=10",	   NULL};

	transfer_and_close(bad);
}

PAIR_TEST(api_edge, every_packet_buffer_comes_back_from_several_workers, open_nothing, close_both)
{
	static const char *const more[] = {"worker.count=2", "impair.rx_loss=1", NULL};

	transfer_and_close(more);
}

PAIR_TEST(api_edge, an_end_may_be_opened_again_while_the_other_stays, open_nothing, close_both)
{
	open_side(B, NULL);
	for (unsigned i = 0; i < 5; i++) {
		struct ibv_qp *a, *b = make_qp(B, IBV_QPT_RC);

		open_side(A, NULL);
		a = make_qp(A, IBV_QPT_RC);
		join(a, b, (struct join){0});
		post(A, a, 1, IBV_WR_RDMA_WRITE, 0, 30000);
		expect_wc(A, 1, IBV_WC_SUCCESS);
		post(A, a, 2, IBV_WR_RDMA_WRITE, 0, 60000); /* in flight */
		cr_assert_eq(uroce_destroy_qp(a), 0);
		close_side(A);
		cr_assert_eq(uroce_destroy_qp(b), 0);
		for (uint64_t until = now_ms() + PATIENCE_MS; ur_port_reap() && now_ms() < until;)
			progress();
		cr_assert_eq(ur_port_reap(), 0u);
	}
}

PAIR_TEST(api_edge, the_number_of_queues_is_that_of_the_workers, open_nothing, close_both)
{
	static const char *const two[] = {"worker.count=2", NULL};

	open_side(A, two);
	open_side(B, two);
	cr_assert_eq(A->ctx->num_comp_vectors, 2);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_cq *cq = uroce_create_cq(A->ctx, 8, NULL, NULL, (int)i % 2);
		struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
		struct ibv_qp *a, *b = make_qp(B, IBV_QPT_RC);

		attr.send_cq = attr.recv_cq = cq;
		a = uroce_create_qp(A->pd, &attr);
		join(a, b, (struct join){0});
		post(A, a, 1, IBV_WR_RDMA_WRITE, 0, 30000);
		cr_assert_eq(next_wc_of(cq).status, IBV_WC_SUCCESS);
		cr_assert_eq(uroce_destroy_qp(a), 0);
		cr_assert_eq(uroce_destroy_qp(b), 0);
		cr_assert_eq(uroce_destroy_cq(cq), 0);
	}
}

/* ---- without a peer: the test uses the other end of the ring ---- */

static const char *const with_neighbor[] = {"address.neighbor=10.77.0.2=02:75:72:00:00:0b",
					    "port.framecnt=256", NULL};

static void *swallow_late(void *arg)
{
	rte_delay_us_sleep(50000);
	swallow();
	return arg;
}

/* One endpoint of this size takes most of the EAL's memory; a second one does not fit. */
static const char *const large[] = {"port.mbufs=12287", "port.framecnt=256", NULL};

PAIR_TEST(api_edge, an_end_opened_again_waits_for_its_last_frames, open_nothing, close_both)
{
	pthread_t late;

	take_wire(large);
	progress(); /* says whose address it is */
	close_side(A);
	cr_assert_eq(ur_port_reap(), 1u, "the wire still holds what A said last");
	cr_assert_eq(pthread_create(&late, NULL, swallow_late, NULL), 0);
	open_side(A, large);
	pthread_join(late, NULL);
	give_wire();
}

PAIR_TEST(api_edge, an_end_that_waits_for_its_last_frames_in_vain_says_so, open_nothing, close_both)
{
	char err[512] = "";

	take_wire(large);
	progress(); /* says whose address it is */
	close_side(A);
	cr_assert_null(open_end("ring-a.conf", large, err));
	cr_assert(strstr(err, "wait for their last frames: 1"), "%s", err);
	give_wire();
}

/* An ARP request for A's address. The answer shows that A is alive. */
static const uint8_t arp[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x75, 0x72, 0x00, 0x00,
				0x0b, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01,
				0x02, 0x75, 0x72, 0x00, 0x00, 0x0b, 10,	  77,	0,    2,    0,
				0,    0,    0,	  0,	0,    10,   77,	  0,	1};

static unsigned swallow_some(void)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	unsigned n;

	do {
		progress();
		n = swallow();
	} while (!n && now_ms() < until);
	return n;
}

static void expect_alive(void)
{
	swallow();
	inject(arp, sizeof(arp), sizeof(arp));
	cr_assert_gt(swallow_some(), 0u, "no answer");
}

PAIR_TEST(api_edge, frames_of_any_length_and_shape_are_survived, open_nothing, close_both)
{
	static uint8_t frame[9000] = {0x02, 0x75, 0x72, 0x00, 0x00, 0x0a, 0x02, 0x75, 0x72, 0x00,
				      0x00, 0x0b, 0x08, 0x00, 0x45, 0x00, 0x00, 0x3c, 0x00, 0x00,
				      0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 10,	77,   0,    2,
				      10,   77,	  0,	1,    0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28,
				      0x00, 0x00, 0x04, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01};
	static const uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x8100, 0x1234};

	take_wire(NULL);
	for (unsigned t = 0; t < 5; t++) {
		frame[12] = (uint8_t)(types[t] >> 8);
		frame[13] = (uint8_t)types[t];
		for (size_t len = 0; len <= 120; len++)
			inject(frame, len, 2000);
		for (size_t len = 1; len <= 120; len += 7)
			inject(frame, len, 1 + len / 3);
	}
	expect_alive();
	/* A chain too long for one buffer is dropped, and so is one longer than any MTU. */
	inject(frame, 9000, 500);
	inject(frame, 4300, 2000);
	inject(frame, 2000, 17);
	expect_alive();
	inject(arp, sizeof(arp), 5);
	cr_assert_gt(swallow_some(), 0u, "a request in nine pieces is answered");
	give_wire();
}

static void nobody_takes(const char *const *set)
{
	struct ibv_qp *qp[8];
	struct ibv_ah_attr av = {.is_global = 1, .port_num = 1};
	unsigned got;

	take_wire(set);
	for (unsigned i = 0; i < 8; i++) {
		struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
					  .path_mtu = IBV_MTU_1024,
					  .dest_qp_num = 0x123,
					  .max_dest_rd_atomic = 1};
		struct ibv_sge sge = sge_of(A, 0, 60000);
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
		struct ibv_send_wr *bad;

		qp[i] = make_qp(A, IBV_QPT_RC);
		cr_assert_eq(to_init(qp[i], 0), 0);
		memcpy(av.grh.dgid.raw,
		       (uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2}, 16);
		rtr.ah_attr = av;
		cr_assert_eq(uroce_modify_qp(qp[i], &rtr,
					     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						     IBV_QP_MAX_DEST_RD_ATOMIC |
						     IBV_QP_MIN_RNR_TIMER),
			     0);
		cr_assert_eq(to_rts(qp[i], (struct join){.timeout = 5}), 0);
		for (unsigned n = 0; n < 16; n++)
			cr_assert_eq(uroce_post_send(qp[i], &wr, &bad), 0);
	}
	progress_for(30);
	got = swallow();
	cr_assert_geq(got, 250u, "the ring was full");
	cr_assert_gt(swallow_some(), 0u, "what waited goes on");
	progress_for(30);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_eq(uroce_destroy_qp(qp[i]), 0);
	give_wire();
}

PAIR_TEST(api_edge, a_port_that_takes_nothing_more_is_waited_for, open_nothing, close_both)
{
	nobody_takes(with_neighbor);
}

PAIR_TEST(api_edge, a_full_port_behind_a_bad_network_loses_no_buffer, open_nothing, close_both)
{
	static const char *const set[] = {"address.neighbor=10.77.0.2=02:75:72:00:00:0b",
					  "port.framecnt=256",
					  "impair.tx_duplicate=50",
					  "impair.tx_reorder=20",
					  "impair.tx_delay_us=100",
					  "impair.tx_jitter_us=100",
					  "impair.tx_loss=1",
					  NULL};

	nobody_takes(set);
}

/* ---- queries ---- */

static bool listed(const char *path)
{
	json_t *list = ur_counters_json("/uroce/list");
	bool found;

	if (!list)
		return false;
	found = json_object_get(list, path) != NULL;
	json_decref(list);
	return found;
}

PAIR_TEST(api_edge, each_endpoint_has_its_paths_while_it_is_open, open_nothing, close_both)
{
	static const char *const names[] = {"port",    "workers", "drops", "cm",     "neigh",
					    "objects", "qp",	  "qps",   "capture"};
	char path[64];
	struct ibv_qp *qp;
	json_t *one;

	open_both();
	for (unsigned e = 0; e < 2; e++)
		for (unsigned i = 0; i < 8; i++) {
			snprintf(path, sizeof(path), "/uroce%s/%s", e ? "1" : "", names[i]);
			cr_assert(listed(path), "%s", path);
		}
	qp = make_qp(A, IBV_QPT_RC);
	snprintf(path, sizeof(path), "/uroce/qp,%u", qp->qp_num);
	one = ur_counters_json(path);
	cr_assert_not_null(one);
	cr_assert_eq(json_integer_value(json_object_get(one, "qpn")), qp->qp_num);
	json_decref(one);
	cr_assert_null(ur_counters_json("/uroce/qp,nonsense"));
	cr_assert_eq(uroce_destroy_qp(qp), 0);
	cr_assert_null(ur_counters_json(path), "the QP is gone");
	/* Free numbers are used again, so that paths do not run out. */
	for (unsigned i = 0; i < 3; i++) {
		close_side(A);
		cr_assert_not(listed("/uroce/port"));
		cr_assert(listed("/uroce1/port"));
		open_side(A, NULL);
		cr_assert(listed("/uroce/port"));
	}
}

PAIR_TEST(api_edge, the_counters_name_everything, open_nothing, close_both)
{
	struct ibv_qp *a, *b;
	struct uroce_counters c;
	json_t *all, *qps, *w;
	char *text, name[16];

	open_both();
	a = make_qp(A, IBV_QPT_RC);
	b = make_qp(B, IBV_QPT_RC);
	join(a, b, (struct join){0});
	post(A, a, 1, IBV_WR_RDMA_WRITE, 0, 10240);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_query_counters(A->ctx, &c), 0);
	cr_assert_geq(c.tx_packets, 10u);
	cr_assert_gt(c.rx_packets, 0u);
	cr_assert_eq(c.dropped_packets, 0u);
	text = uroce_counters_json(A->ctx);
	cr_assert_not_null(text);
	all = json_loads(text, 0, NULL);
	cr_assert_not_null(all, "it is JSON");
	w = json_object_get(json_object_get(all, "workers"), "worker0");
	cr_assert_eq((uint64_t)json_integer_value(json_object_get(w, "tx_packets")), c.tx_packets);
	cr_assert(json_is_object(json_object_get(all, "drops")));
	cr_assert(json_is_object(json_object_get(all, "port")));
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(all, "objects"), "qps")),
		     1);
	qps = json_object_get(all, "qps");
	snprintf(name, sizeof(name), "%u", a->qp_num);
	cr_assert_eq(json_integer_value(json_object_get(json_object_get(qps, name), "dest_qpn")),
		     b->qp_num);
	json_decref(all);
	free(text);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
}

/* ---- destinations ---- */

PAIR_TEST(api_edge, destinations_are_shown_with_their_delays, open_nothing, close_both)
{
	static const char *const paced[] = {"pacing.mode=auto", "port.rate_gbps=100", NULL};
	static const uint8_t b_gid[16] = {[10] = 0xff, 0xff, 10, 77, 0, 2};
	struct uroce_destination dest[2];
	struct uroce_pacing pacing;
	struct ibv_qp *a[2], *b[2];
	json_t *shown, *w, *d;

	open_side(A, paced);
	open_side(B, NULL);
	shown = section(B, "destinations");
	cr_assert_str_eq(json_string_value(json_object_get(shown, "mode")), "none");
	cr_assert_null(json_object_get(shown, "worker0"));
	json_decref(shown);
	cr_assert_eq(uroce_query_destinations(B->ctx, &pacing, dest, 2), 0);
	cr_assert_eq(pacing.mode, UROCE_PACING_NONE);
	cr_assert_eq(pacing.destinations, 0);
	cr_assert_eq(pacing.samples, 0);
	for (unsigned i = 0; i < 2; i++) {
		a[i] = make_qp(A, IBV_QPT_RC);
		b[i] = make_qp(B, IBV_QPT_RC);
		join(a[i], b[i], (struct join){0});
	}
	/* A stall causes a WRITE to be sent again, and a packet sent twice gives no sample. */
	for (unsigned i = 0; i < 100 && pacing.samples < 2; i++) {
		post(A, a[i % 2], i, IBV_WR_RDMA_WRITE, 0, 10240);
		expect_wc(A, i, IBV_WC_SUCCESS);
		cr_assert_eq(uroce_query_destinations(A->ctx, &pacing, NULL, 0), 0);
	}
	shown = section(A, "destinations");
	cr_assert_str_eq(json_string_value(json_object_get(shown, "mode")), "auto");
	w = json_object_get(shown, "worker0");
	d = json_object_get(w, "0");
	cr_assert_eq(number_of(w, "destinations"), 1);
	cr_assert_str_eq(json_string_value(json_object_get(d, "address")), "10.77.0.2");
	cr_assert_str_eq(json_string_value(json_object_get(d, "state")), "open");
	cr_assert_eq(number_of(d, "qps"), 2);
	cr_assert_geq(number_of(d, "samples"), 2);
	cr_assert_eq(number_of(w, "samples"), number_of(d, "samples"));
	cr_assert_gt(number_of(d, "average_ns"), 0);
	cr_assert_leq(number_of(d, "least_ns"), number_of(d, "average_ns"));
	cr_assert_eq(number_of(d, "rate_bps"), 0, "it is not throttled");
	memset(dest, 0xee, sizeof(dest));
	cr_assert_eq(uroce_query_destinations(A->ctx, &pacing, dest, 2), 0);
	cr_assert_str_eq(uroce_pacing_mode_str(pacing.mode), "auto");
	cr_assert_eq(pacing.destinations, 1);
	cr_assert_eq(pacing.throttled, 0);
	cr_assert_eq(pacing.samples, number_of(d, "samples"));
	cr_assert_arr_eq(dest[0].address.raw, b_gid, 16);
	cr_assert_eq(dest[0].worker, 0);
	cr_assert_str_eq(uroce_destination_state_str(dest[0].state), "open");
	cr_assert_eq(dest[0].qps, 2);
	cr_assert_eq(dest[0].average_ns, number_of(d, "average_ns"));
	cr_assert_eq(dest[1].worker, 0xeeeeeeee, "there is no second one");
	memset(dest, 0xee, sizeof(dest));
	cr_assert_eq(uroce_query_destinations(A->ctx, &pacing, NULL, 0), 0);
	cr_assert_eq(pacing.destinations, 1, "counted without room for it");
	json_decref(shown);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(uroce_destroy_qp(a[i]), 0);
		cr_assert_eq(uroce_destroy_qp(b[i]), 0);
	}
	shown = section(A, "destinations");
	cr_assert_eq(number_of(json_object_get(shown, "worker0"), "destinations"), 0);
	json_decref(shown);
}
