/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_end.h"

#include <math.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <pcap/pcap.h>
#include <rte_eal.h>

#include "api/device.h"

/* Service levels, lanes and shares through the public API. The tests of lib/vl test the lanes. */

#define PORT	7471
#define IP_B	"10.77.0.2"
#define MESSAGE 1024
#define SLOW	"port.rate_gbps=0.001" /* a message of 1024 bytes takes 9 ms */

#define ONLY_SL_0_AND_3 "qos.sl2vl=0,15,15,3,15,15,15,15,15,15,15,15,15,15,15,15"

static void open_both(const char *const *set_a, const char *const *set_b)
{
	end_open(A, "ring-a.conf", set_a);
	end_open(B, "ring-b.conf", set_b);
}

static void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_qos, .fini = teardown, .timeout = 240);

struct pair {
	struct uroce_cm_id *a, *b;
	struct ibv_qp *qa, *qb;
};

/* Connects A to B with this service level. */
static struct pair join(struct uroce_cm_id *listener, uint8_t sl, uint8_t tclass)
{
	struct pair p = {.a = end_id(A), .qa = end_qp(A, IBV_QPT_RC)};
	struct uroce_cm_event *ev;

	(void)listener;
	cr_assert_eq(uroce_cm_set_service(p.a, sl, tclass), 0);
	cr_assert_eq(end_try_connect(p.a, IP_B, PORT, p.qa, NULL), 0);
	ev = end_event(B, UROCE_CM_CONNECT_REQUEST);
	p.b = ev->id;
	p.qb = end_qp(B, IBV_QPT_RC);
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_accept(p.b, p.qb, &end_param), 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
	return p;
}

static void drop(const struct pair *p)
{
	cr_expect_eq(uroce_cm_destroy_id(p->a), 0);
	cr_expect_eq(uroce_cm_destroy_id(p->b), 0);
	cr_expect_eq(uroce_destroy_qp(p->qa), 0);
	cr_expect_eq(uroce_destroy_qp(p->qb), 0);
}

/* A WRITE from A's buffer to B's. */
static int try_write(struct ibv_qp *qp, uint64_t id, struct ibv_send_wr **bad)
{
	struct ibv_sge sge = {(uintptr_t)A->buf, MESSAGE, A->mr->lkey};
	static struct ibv_send_wr wr;

	wr = (struct ibv_send_wr){.wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = {(uintptr_t)B->buf, B->mr->rkey}};
	*bad = NULL;
	return uroce_post_send(qp, &wr, bad);
}

static void post_writes(struct ibv_qp *qp, uint64_t id, unsigned cnt)
{
	struct ibv_send_wr *bad;

	while (cnt--)
		cr_assert_eq(try_write(qp, id, &bad), 0);
}

static unsigned completions_within(unsigned ms)
{
	uint64_t until = end_ms() + ms;
	struct ibv_wc wc;
	unsigned n = 0;

	do {
		end_progress();
		if (uroce_poll_cq(A->cq, 1, &wc) == 1) {
			cr_assert_eq(wc.status, IBV_WC_SUCCESS);
			n++;
		}
	} while (end_ms() < until);
	return n;
}

static uint8_t sl_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	cr_assert_eq(uroce_query_qp(qp, &attr, IBV_QP_AV, NULL), 0);
	return attr.ah_attr.sl;
}

static struct ibv_ah_attr to_b(uint8_t sl)
{
	struct ibv_ah_attr av = {.is_global = 1, .port_num = 1, .sl = sl};

	cr_assert_eq(uroce_query_gid(B->ctx, 1, 0, &av.grh.dgid), 0);
	return av;
}

/* ---- service levels without service ---- */

/* QOS-SL-01 */
Test(api_qos, no_address_vector_names_a_service_level_without_service)
{
	const char *const set[] = {ONLY_SL_0_AND_3, NULL};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_ah_attr av;
	struct ibv_ah *ah;
	struct ibv_qp *qp;

	open_both(set, NULL);
	for (uint8_t sl = 0; sl < 16; sl++) {
		av = to_b(sl);
		errno = 0;
		ah = uroce_create_ah(A->pd, &av);
		cr_expect_eq(ah != NULL, sl == 0 || sl == 3, "SL %u", sl);
		if (ah)
			cr_expect_eq(uroce_destroy_ah(ah), 0);
		else
			cr_expect_eq(errno, EINVAL);
	}
	av = to_b(16);
	cr_expect_null(uroce_create_ah(A->pd, &av));
	qp = end_qp(A, IBV_QPT_RC);
	cr_assert_eq(uroce_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS),
		     0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .ah_attr = to_b(1),
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = 77};
	cr_expect_eq(uroce_modify_qp(qp, &attr, rtr), EINVAL);
	cr_expect_eq(end_state(qp), IBV_QPS_INIT);
	attr.ah_attr.sl = 3;
	cr_expect_eq(uroce_modify_qp(qp, &attr, rtr), 0);
	cr_expect_eq(uroce_destroy_qp(qp), 0);
}

/* QOS-SL-01 */
Test(api_qos, no_connection_is_made_without_service)
{
	const char *const set[] = {ONLY_SL_0_AND_3, NULL};
	struct uroce_cm_id *listener, *id;
	struct uroce_cm_event *ev;
	struct ibv_qp *qp;

	open_both(NULL, set);
	listener = end_listen(B, PORT);
	id = end_id(A);
	qp = end_qp(A, IBV_QPT_RC);
	cr_expect_eq(uroce_cm_set_service(id, 16, 0), EINVAL);
	cr_assert_eq(uroce_cm_set_service(id, 1, 0), 0, "A has service for it");
	cr_assert_eq(end_try_connect(id, IP_B, PORT, qp, NULL), 0);
	cr_expect_eq(uroce_cm_set_service(id, 3, 0), EINVAL, "too late");
	ev = end_event(A, UROCE_CM_REJECTED);
	cr_expect_eq(ev->status, 14);
	cr_expect_str_eq(uroce_cm_reject_str(ev->status), "primary service level refused");
	uroce_ack_cm_event(ev);
	cr_expect_eq(uroce_cm_destroy_id(id), 0);
	id = end_id(B);
	cr_expect_eq(uroce_cm_set_service(id, 1, 0), EINVAL, "B has none");
	cr_expect_eq(uroce_cm_destroy_id(id), 0);
	cr_expect_eq(uroce_destroy_qp(qp), 0);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
}

/* CM-SL-01 */
Test(api_qos, the_passive_side_takes_the_service_level_of_the_request)
{
	struct uroce_cm_id *listener;
	struct pair three, seven;

	open_both(NULL, NULL);
	listener = end_listen(B, PORT);
	three = join(listener, 3, 0);
	seven = join(listener, 7, 0x20);
	cr_expect_eq(sl_of(three.qa), 3);
	cr_expect_eq(sl_of(three.qb), 3);
	cr_expect_eq(sl_of(seven.qa), 7);
	cr_expect_eq(sl_of(seven.qb), 7);
	drop(&three);
	drop(&seven);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
}

/* ---- while running ---- */

static struct uroce_qos_attr qos_of(struct end *e)
{
	struct uroce_qos_attr qos;

	cr_assert_eq(uroce_query_qos(e->ctx, &qos), 0);
	return qos;
}

static void change(struct end *e, const struct uroce_qos_attr *qos)
{
	char err[128] = "";

	cr_assert_eq(uroce_set_qos(e->ctx, qos, err, sizeof(err)), 0, "%s", err);
}

/* QOS-LIVE-01 */
Test(api_qos, a_service_level_without_a_lane_refuses_posts_and_keeps_its_requests)
{
	const char *const set[] = {SLOW, NULL};
	struct ibv_send_wr *bad;
	struct uroce_cm_id *listener;
	struct uroce_qos_attr qos;
	struct pair zero, two;
	unsigned n = 8;

	open_both(set, NULL);
	listener = end_listen(B, PORT);
	zero = join(listener, 0, 0);
	two = join(listener, 2, 0);
	qos = qos_of(A);
	/* If the test was not scheduled in time, it is repeated. */
	for (unsigned i = 0; i < 10 && n == 8; i++) {
		qos.sl2vl[2] = 2;
		change(A, &qos);
		post_writes(two.qa, 2, 8);
		qos.sl2vl[2] = 15;
		change(A, &qos);
		n = completions_within(40);
	}
	cr_expect_lt(n, 8, "those that had not left wait");
	cr_expect_eq(completions_within(40), 0);
	cr_expect_eq(try_write(two.qa, 9, &bad), EINVAL);
	cr_assert_not_null(bad);
	cr_expect_eq(bad->wr_id, 9);
	post_writes(zero.qa, 3, 2);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(end_wc(A).wr_id, 3, "others are not held up");
	qos.sl2vl[2] = 5;
	change(A, &qos);
	for (; n < 8; n++)
		cr_expect_eq(end_wc(A).wr_id, 2, "what was accepted is sent");
	cr_expect_eq(try_write(two.qa, 9, &bad), 0);
	cr_expect_eq(end_wc(A).wr_id, 9);
	drop(&zero);
	drop(&two);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
}

/* QOS-SL-01 */
Test(api_qos, a_datagram_has_the_service_level_of_its_address_handle)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_ah_attr av;
	struct ibv_ah *ah[2];
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct uroce_qos_attr qos;
	struct ibv_qp *qp;

	open_both(NULL, NULL);
	qp = end_qp(A, IBV_QPT_UD);
	for (unsigned i = 0; i < 2; i++) {
		av = to_b((uint8_t)(4 + i));
		ah[i] = uroce_create_ah(A->pd, &av);
		cr_assert_not_null(ah[i]);
	}
	cr_assert_eq(uroce_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		     0);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(uroce_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(uroce_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	qos = qos_of(A);
	qos.sl2vl[5] = 15;
	change(A, &qos);
	sge = (struct ibv_sge){(uintptr_t)A->buf, 64, A->mr->lkey};
	wr = (struct ibv_send_wr){
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = {ah[0], 77, 1}};
	cr_expect_eq(uroce_post_send(qp, &wr, &bad), 0);
	wr.wr.ud.ah = ah[1];
	cr_expect_eq(uroce_post_send(qp, &wr, &bad), EINVAL);
	cr_expect_eq(bad, &wr);
	cr_expect_eq(end_wc(A).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(uroce_destroy_ah(ah[i]), 0);
	cr_expect_eq(uroce_destroy_qp(qp), 0);
}

static void expect_refusal(const struct uroce_qos_attr *qos, const char *why)
{
	char err[128] = "";

	cr_expect_eq(uroce_set_qos(A->ctx, qos, err, sizeof(err)), EINVAL);
	cr_expect_str_eq(err, why);
}

Test(api_qos, settings_are_reported_and_wrong_ones_change_nothing)
{
	struct uroce_qos_attr qos, wrong, got;

	open_both(NULL, NULL);
	qos = qos_of(A);
	cr_expect_eq(qos.vl_mode, UROCE_VL_IBA);
	cr_expect_eq(qos.low_cnt, 15);
	cr_expect_eq(qos.low[14].vl, 14);
	cr_expect_eq(qos.low[14].weight, 64);
	cr_expect_eq(qos.high_cnt, 0);
	cr_expect_eq(qos.sl2vl[15], 7);
	cr_expect_eq(qos.turn_wqes, 8);
	cr_expect(qos.sparse_first);
	cr_expect_eq(qos.traffic_class, 0);
	cr_expect_eq(qos.sl_dscp[15], 58);
	cr_expect_eq(qos.sl_pcp[9], 1);
	cr_expect_eq(qos.rate_gbps, 0);
	qos.vl_mode = UROCE_VL_MEASURED;
	qos.high_cnt = 1;
	qos.high[0] = (struct uroce_vl_weight){3, 200};
	qos.high_limit = 9;
	qos.policy = UROCE_POLICY_WRR;
	qos.turn_bytes = 4096;
	qos.sparse_first = false;
	change(A, &qos);
	wrong = qos;
	wrong.low[0].vl = 15;
	expect_refusal(&wrong, "the low table names a VL that is not in 0 to 14");
	wrong = qos;
	wrong.vl_mode = (enum uroce_vl_mode)3;
	expect_refusal(&wrong, "the mode of arbitration is unknown");
	wrong = qos;
	wrong.policy = (enum uroce_policy)3;
	expect_refusal(&wrong, "the policy is unknown");
	wrong = qos;
	wrong.turn_wqes = 0;
	expect_refusal(&wrong, "a turn is not of 1 to 65535 work requests");
	wrong = qos;
	wrong.turn_bytes = (1u << 24) + 1;
	expect_refusal(&wrong, "a turn is not of 1 to 16777216 bytes");
	wrong = qos;
	wrong.sl_dscp[15] = 64;
	expect_refusal(&wrong, "a DSCP is not in 0 to 63");
	wrong = qos;
	wrong.sl_pcp[0] = 8;
	expect_refusal(&wrong, "an 802.1Q priority is not in 0 to 7");
	for (unsigned i = 0; i < 4; i++) {
		const double rates[] = {-1, 0.0009, 1000.5, (double)NAN};

		wrong = qos;
		wrong.rate_gbps = rates[i];
		expect_refusal(&wrong, "the rate is neither 0 nor 0.001 to 1000 Gb/s");
	}
	got = qos_of(A);
	cr_expect_eq(got.vl_mode, UROCE_VL_MEASURED);
	cr_expect_eq(got.high_cnt, 1);
	cr_expect_eq(got.high[0].vl, 3);
	cr_expect_eq(got.high[0].weight, 200);
	cr_expect_eq(got.high_limit, 9);
	cr_expect_eq(got.policy, UROCE_POLICY_WRR);
	cr_expect_eq(got.turn_wqes, 8);
	cr_expect_eq(got.turn_bytes, 4096);
	cr_expect_not(got.sparse_first);
	cr_expect_eq(got.low[0].vl, 0);
	cr_expect_eq(got.sl_dscp[15], 58);
	cr_expect_eq(got.sl_pcp[0], 0);
	cr_expect_eq(got.rate_gbps, 0);
}

/* ---- shares ---- */

/* Runs on the worker, so that the worker sees both at the same time. */
static void post_both(void *arg, uint64_t now_ns)
{
	struct pair *p = arg;

	(void)now_ns;
	post_writes(p[0].qa, 0, 8);
	post_writes(p[1].qa, 1, 8);
}

/*
 * Both QPs send eight messages; those of the first are posted first. Returns the number of the
 * first QP's messages that complete before the last one of the second.
 */
static unsigned overtaken(uint8_t second_priority, uint8_t second_weight, const char *policy)
{
	const char *const set[] = {SLOW, "qos.turn_wqes=1", policy, NULL};
	struct uroce_cm_id *listener;
	unsigned first = 0, second = 0;
	struct pair p[2];

	open_both(set, NULL);
	listener = end_listen(B, PORT);
	p[0] = join(listener, 0, 0);
	p[1] = join(listener, 0, 0);
	cr_assert_eq(uroce_set_qp_share(p[1].qa, second_priority, second_weight), 0);
	ur_worker_call(ur_device(A->ctx)->workers[0], post_both, p);
	while (second < 8) {
		if (end_wc(A).wr_id)
			second++;
		else
			first++;
	}
	while (first + second < 16) {
		end_wc(A);
		second++;
	}
	drop(&p[0]);
	drop(&p[1]);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
	return first;
}

Test(api_qos, round_robin_knows_no_share)
{
	cr_expect_geq(overtaken(7, 255, "qos.policy=rr"), 7);
}

Test(api_qos, strict_priority_lets_the_urgent_pass)
{
	cr_expect_leq(overtaken(7, 1, "qos.policy=strict"), 4);
}

Test(api_qos, a_weight_of_four_is_four_messages_a_turn)
{
	unsigned first = overtaken(0, 4, "qos.policy=wrr");

	cr_expect_leq(first, 5);
	cr_expect_geq(first, 2);
}

Test(api_qos, a_share_out_of_range_is_refused)
{
	struct ibv_qp *qp;

	open_both(NULL, NULL);
	qp = end_qp(A, IBV_QPT_RC);
	cr_expect_eq(uroce_set_qp_share(qp, 8, 1), EINVAL);
	cr_expect_eq(uroce_set_qp_share(qp, 0, 0), EINVAL);
	cr_expect_eq(uroce_set_qp_share(qp, 7, 255), 0);
	cr_expect_eq(uroce_destroy_qp(qp), 0);
}

/* ---- counters ---- */

Test(api_qos, lanes_count_what_they_send)
{
	struct uroce_cm_id *listener;
	struct uroce_lanes before, after;
	struct uroce_counters c;
	uint64_t again;
	struct pair p;

	open_both(NULL, NULL);
	listener = end_listen(B, PORT);
	p = join(listener, 9, 0);
	cr_assert_eq(uroce_query_counters(A->ctx, &c), 0);
	again = c.retransmitted_packets + c.probes_sent;
	cr_assert_eq(uroce_query_lanes(A->ctx, &before), 0);
	post_writes(p.qa, 0, 4);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_query_lanes(A->ctx, &after), 0);
	cr_assert_eq(uroce_query_counters(A->ctx, &c), 0);
	again = c.retransmitted_packets + c.probes_sent - again; /* the machine may stall */
	cr_expect_eq(after.lane[9].packets - before.lane[9].packets, 4 + again);
	cr_expect_geq(after.lane[9].bytes - before.lane[9].bytes, 4 * MESSAGE);
	cr_expect_eq(after.lane[0].packets, before.lane[0].packets);
	cr_expect_gt(after.turns, before.turns);
	cr_expect_eq(after.blind_visits, 0);
	cr_expect_eq(after.ready, 0);
	drop(&p);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
}

/* ---- DSCP and priority in the headers ---- */

struct marks {
	unsigned cnt;
	uint8_t tos, pcp;
};

/* DSCP and priority of the RoCEv2 packets with that opcode in a capture; all must be equal. */
static struct marks marks_in(const char *file, uint8_t opcode)
{
	struct marks m = {0};
	struct pcap_pkthdr *h;
	const u_char *b;
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline(file, err);

	cr_assert_not_null(pcap, "%s", err);
	while (pcap_next_ex(pcap, &h, &b) == 1) {
		if (h->caplen < 60 || b[12] != 0x81 || b[16] != 8 || b[27] != 17 || b[46] != opcode)
			continue;
		cr_expect(!m.cnt || (m.tos == b[19] && m.pcp == b[14] >> 5));
		cr_expect_eq((b[14] & 0xf) << 8 | b[15], 5, "VLAN");
		m.tos = b[19];
		m.pcp = b[14] >> 5;
		m.cnt++;
	}
	pcap_close(pcap);
	return m;
}

#define WRITE_ONLY 0x0a
#define ACK	   0x11

/* Checks A's packets and B's answers on a connection with that service level. */
static void expect_marks(uint8_t sl, uint8_t tclass, uint8_t tos, uint8_t pcp)
{
	const char *const set_a[] = {"address.vlan=5", "transport.mode=gbn", "qos.traffic_class=2",
				     NULL};
	const char *const set_b[] = {"address.vlan=5", "transport.mode=gbn", "qos.traffic_class=1",
				     NULL};
	struct uroce_cm_id *listener;
	char file[] = "api_qos_test.XXXXXX", err[256];
	struct marks m;
	struct pair p;
	int fd = mkstemp(file);

	cr_assert_geq(fd, 0);
	close(fd);
	open_both(set_a, set_b);
	listener = end_listen(B, PORT);
	p = join(listener, sl, tclass);
	cr_assert_eq(uroce_capture_start(A->ctx, file, NULL, 0, err, sizeof(err)), 0, "%s", err);
	post_writes(p.qa, 0, 2);
	for (unsigned i = 0; i < 2; i++)
		cr_expect_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_capture_stop(A->ctx, NULL), 0);
	m = marks_in(file, WRITE_ONLY);
	cr_expect_geq(m.cnt, 2, "more when they were sent again");
	cr_expect_eq(m.tos, tos, "%#x", m.tos);
	cr_expect_eq(m.pcp, pcp);
	m = marks_in(file, ACK);
	cr_expect_gt(m.cnt, 0);
	cr_expect_eq(m.tos, (tos & 0xfc) | 1, "B's own ECN bits: %#x", m.tos);
	cr_expect_eq(m.pcp, pcp);
	drop(&p);
	cr_expect_eq(uroce_cm_destroy_id(listener), 0);
	unlink(file);
}

/* QOS-DSCP-01 */
Test(api_qos, a_service_level_marks_its_packets)
{
	expect_marks(3, 0, 24 << 2 | 2, 3);
}

Test(api_qos, service_levels_beyond_seven_have_marks_of_their_own)
{
	expect_marks(12, 0, 34 << 2 | 2, 4);
}

/* QOS-DSCP-01 */
Test(api_qos, an_application_may_choose_the_traffic_class)
{
	expect_marks(3, 0x20, 0x20, 3);
}

Test(api_qos, service_level_0_is_marked_as_the_configuration_says)
{
	expect_marks(0, 0, 2, 0);
}

/* ---- by telemetry ---- */

Test(api_qos, the_json_has_lanes_and_tables)
{
	char *text;

	open_both(NULL, NULL);
	text = uroce_counters_json(A->ctx);
	cr_assert_not_null(text);
	cr_expect_not_null(strstr(text, "\"lanes\": {"));
	cr_expect_not_null(strstr(text, "\"vl14\": {"));
	cr_expect_not_null(strstr(text, "\"vl_mode\": \"iba\""));
	cr_expect_not_null(strstr(text, "\"vl_high\": \"none\""));
	cr_expect_not_null(strstr(text, "\"sl2vl\": \"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7\""));
	free(text);
}

static int telemetry(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char text[1024];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	cr_assert_geq(fd, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/dpdk_telemetry.v2",
		 rte_eal_get_runtime_dir());
	cr_assert_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0, "%s", un.sun_path);
	cr_assert_gt(read(fd, text, sizeof(text)), 0);
	return fd;
}

static void ask(int fd, const char *question, const char *answer)
{
	char text[16384];
	ssize_t n;

	cr_assert_eq(write(fd, question, strlen(question)), (ssize_t)strlen(question));
	n = read(fd, text, sizeof(text) - 1);
	cr_assert_gt(n, 0);
	text[n] = '\0';
	cr_expect_not_null(strstr(text, answer), "%s: %s", question, text);
}

/* QOS-LIVE-01 */
Test(api_qos, tables_change_by_telemetry_all_keys_or_none)
{
	struct uroce_qos_attr qos;
	int fd;

	open_both(NULL, NULL);
	fd = telemetry();
	ask(fd, "/uroce/qos,vl_mode=strict;vl_high=3:7,0:1;vl_high_limit=12",
	    "\"vl_high\":\"3:7,0:1\"");
	qos = qos_of(A);
	cr_expect_eq(qos.vl_mode, UROCE_VL_STRICT);
	cr_expect_eq(qos.high_cnt, 2);
	cr_expect_eq(qos.high[0].vl, 3);
	cr_expect_eq(qos.high_limit, 12);
	cr_expect_eq(qos.low_cnt, 15, "what is not named stays");
	ask(fd, "/uroce/qos,vl_mode=iba;vl_high_limit=256",
	    "--set: [qos] vl_high_limit: \\\"256\\\" is not a whole number in range");
	ask(fd, "/uroce/qos,vl_high=none;vl_low=none", "no VL has a weight above 0");
	ask(fd, "/uroce/qos,sl_dscp=0", "sl_dscp: \\\"0\\\" is not");
	ask(fd, "/uroce/qos,traffic_class=8;port.rate_gbps=0.0001", "is too slow");
	ask(fd, "/uroce/qos,port.mtu=1500", "[qos] port.mtu: is not a key");
	qos = qos_of(A);
	cr_expect_eq(qos.traffic_class, 0);
	cr_expect_eq(qos.vl_mode, UROCE_VL_STRICT);
	cr_expect_eq(qos.high_cnt, 2);
	ask(fd,
	    "/uroce/qos,sl_pcp=7,6,5,4,3,2,1,0,0,1,2,3,4,5,6,7;traffic_class=8;port.rate_gbps=2.5",
	    "\"rate_bps\":2500000000");
	qos = qos_of(A);
	cr_expect_eq(qos.traffic_class, 8);
	cr_expect_eq(qos.sl_pcp[1], 6);
	cr_expect_eq(qos.sl_dscp[1], 8);
	cr_expect_eq(qos.rate_gbps, 2.5);
	ask(fd, "/uroce/lanes", "\"vl14\":{\"packets\":0,\"bytes\":0,\"ready\":0}");
	close(fd);
}
