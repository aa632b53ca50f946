/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <pcap/pcap.h>
#include <unistd.h>

/*
 * Changes of DSCP, 802.1Q priority and port speed while traffic runs, as seen on the wire. All
 * frames of A have a tag of VLAN 5.
 */

#define VLAN	   5
#define MESSAGE	   1000
#define SLOW_GBPS  0.001
#define WRITE_ONLY 0x0a
#define UC_WRITE   0x2a
#define UD_SEND	   0x64
#define MARKS_MAX  64

static const char *const one_worker[] = {"address.vlan=5", "transport.mode=gbn", NULL};
static const char *const two_workers[] = {"address.vlan=5", "transport.mode=gbn", "worker.count=2",
					  NULL};
static const char *const dedicated[] = {"address.vlan=5",	    "transport.mode=gbn",
					"worker.count=2",	    "worker.mode=dedicated",
					"eal.lcores=(0,1,2)@(0,1)", NULL};

static void open_one(void)
{
	open_side(A, one_worker);
	open_side(B, one_worker);
}

static void open_two(void)
{
	open_side(A, two_workers);
	open_side(B, two_workers);
}

static void open_dedicated(void)
{
	open_side(A, dedicated);
	open_side(B, two_workers);
}

/* ---- frames on the wire ---- */

static char file[] = "api_marks_test.XXXXXX";

static void capture(void)
{
	int fd;
	char err[256];

	memcpy(file + sizeof(file) - 7, "XXXXXX", 6);
	fd = mkstemp(file);
	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(uroce_capture_start(A->ctx, file, NULL, 0, err, sizeof(err)), 0, "%s", err);
}

struct mark {
	uint8_t tos, pcp;
	uint64_t ns; /* time of transmission */
};

static uint32_t sum16(const u_char *b, unsigned bytes)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < bytes; i += 2)
		sum += (uint32_t)(b[i] << 8 | b[i + 1]);
	return (sum & 0xffff) + (sum >> 16);
}

/* Reads DSCP and priority of a tagged RoCEv2 packet with that opcode. */
static bool mark_of(const u_char *b, unsigned len, uint8_t opcode, struct mark *m)
{
	const u_char *ip = b + 18;
	bool v6 = b[16] == 0x86 && b[17] == 0xdd;

	if (len < 90 || b[12] != 0x81 || ip[v6 ? 6 : 9] != 17 || ip[(v6 ? 40 : 20) + 8] != opcode)
		return false;
	cr_expect_eq((b[14] & 0xf) << 8 | b[15], VLAN);
	if (!v6)
		cr_expect_eq(sum16(ip, 20), 0xffff, "header checksum");
	m->tos = v6 ? (uint8_t)(ip[0] << 4 | ip[1] >> 4) : ip[1];
	m->pcp = b[14] >> 5;
	return true;
}

/* Ends the capture; returns the values of A's packets with that opcode, in order. */
static unsigned marks(uint8_t opcode, struct mark m[MARKS_MAX])
{
	struct pcap_pkthdr *h;
	const u_char *b;
	char err[PCAP_ERRBUF_SIZE];
	unsigned n = 0;
	pcap_t *pcap;

	cr_assert_eq(uroce_capture_stop(A->ctx, NULL), 0);
	pcap = pcap_open_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, err);
	cr_assert_not_null(pcap, "%s", err);
	while (n < MARKS_MAX && pcap_next_ex(pcap, &h, &b) == 1)
		if (mark_of(b, h->caplen, opcode, &m[n]))
			m[n++].ns = (uint64_t)h->ts.tv_sec * 1000000000 + (uint64_t)h->ts.tv_usec;
	pcap_close(pcap);
	unlink(file);
	return n;
}

/* The values of a single packet, which may have been sent several times. */
static struct mark only_mark(uint8_t opcode)
{
	struct mark m[MARKS_MAX];
	unsigned n = marks(opcode, m);

	cr_assert_geq(n, 1);
	for (unsigned i = 1; i < n; i++)
		cr_expect(m[i].tos == m[0].tos && m[i].pcp == m[0].pcp, "packet %u", i);
	return m[0];
}

static void expect_mark(struct mark m, uint8_t dscp, uint8_t pcp)
{
	cr_expect_eq(m.tos, dscp << 2, "DSCP %u, not %u", m.tos >> 2, dscp);
	cr_expect_eq(m.pcp, pcp, "priority %u, not %u", m.pcp, pcp);
}

/* ---- changes ---- */

static struct uroce_qos_attr qos_of(struct side *s)
{
	struct uroce_qos_attr qos;

	cr_assert_eq(uroce_query_qos(s->ctx, &qos), 0);
	return qos;
}

static void change(struct side *s, const struct uroce_qos_attr *qos)
{
	char err[128] = "";

	cr_assert_eq(uroce_set_qos(s->ctx, qos, err, sizeof(err)), 0, "%s", err);
}

static void set_marks(struct side *s, uint8_t sl, uint8_t dscp, uint8_t pcp)
{
	struct uroce_qos_attr qos = qos_of(s);

	qos.sl_dscp[sl] = dscp;
	qos.sl_pcp[sl] = pcp;
	change(s, &qos);
	qos = qos_of(s);
	cr_assert_eq(qos.sl_dscp[sl], dscp);
	cr_assert_eq(qos.sl_pcp[sl], pcp);
}

static void set_rate(double gbps)
{
	struct uroce_qos_attr qos = qos_of(A);

	qos.rate_gbps = gbps;
	change(A, &qos);
	cr_assert_eq(qos_of(A).rate_gbps, gbps);
}

static uint64_t rate_waits(void)
{
	char *json = uroce_counters_json(A->ctx), *at = strstr(json, "\"rate_waits\": ");
	uint64_t n;

	cr_assert_not_null(at);
	n = strtoull(at + 14, NULL, 10);
	free(json);
	return n;
}

/* ---- queue pairs ---- */

static void to_rts_by(struct ibv_qp *qp, uint32_t dest, struct ibv_ah_attr av)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = dest,
				   .rq_psn = FIRST_PSN,
				   .max_dest_rd_atomic = 4,
				   .min_rnr_timer = 1,
				   .ah_attr = av};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	cr_assert_eq(to_init(qp, REMOTE), 0);
	cr_assert_eq(uroce_modify_qp(qp, &attr, mask), 0);
	cr_assert_eq(to_rts(qp, (struct join){.timeout = 18}), 0);
}

static struct ibv_qp *qa, *qb;

static void join_as(enum ibv_qp_type type, uint8_t sl, uint8_t tclass, int gid_index)
{
	struct ibv_ah_attr to_b = av_to(A, B, gid_index), to_a = av_to(B, A, gid_index);

	qa = make_qp(A, type);
	qb = make_qp(B, type);
	to_b.sl = to_a.sl = sl;
	to_b.grh.traffic_class = tclass;
	to_rts_by(qa, qb->qp_num, to_b);
	to_rts_by(qb, qa->qp_num, to_a);
}

static void part(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

static void post_writes(unsigned cnt)
{
	while (cnt--)
		post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, MESSAGE);
}

static void expect_writes(unsigned cnt)
{
	while (cnt--)
		expect_wc(A, 1, IBV_WC_SUCCESS);
}

/* ---- marks of queue pairs ---- */

/* Sends sixteen messages over a slow link, and changes the map after the second. */
static void change_between(enum ibv_qp_type type, uint8_t opcode, int gid_index)
{
	struct mark m[MARKS_MAX];
	unsigned n, old = 0;

	join_as(type, 3, 0, gid_index);
	set_rate(SLOW_GBPS);
	capture();
	post_writes(16);
	expect_writes(2);
	set_marks(A, 3, 46, 6);
	expect_writes(14);
	n = marks(opcode, m);
	cr_assert_geq(n, 16, "%u; more when some were sent again", n);
	while (old < n && m[old].tos == 24 << 2 && m[old].pcp == 3)
		old++;
	cr_expect_geq(old, 2);
	cr_expect_lt(old, n);
	for (unsigned i = old; i < n; i++)
		expect_mark(m[i], 46, 6);
	part();
}

/* QOS-LIVE-02 */
PAIR_TEST(api_marks, of_a_reliable_connection_change_between_two_packets, open_one, close_both)
{
	change_between(IBV_QPT_RC, WRITE_ONLY, 0);
}

PAIR_TEST(api_marks, of_an_unreliable_connection_too, open_one, close_both)
{
	change_between(IBV_QPT_UC, UC_WRITE, 0);
}

PAIR_TEST(api_marks, ipv6_has_the_same, open_one, close_both)
{
	change_between(IBV_QPT_RC, WRITE_ONLY, 1);
}

static void a_change_reaches_all(void)
{
	join_as(IBV_QPT_RC, 3, 0, 0);
	set_marks(A, 3, 7, 1);
	capture();
	post_writes(1);
	expect_writes(1);
	expect_mark(only_mark(WRITE_ONLY), 7, 1);
	part();
	join_as(IBV_QPT_RC, 3, 0, 0);
	capture();
	post_writes(1);
	expect_writes(1);
	expect_mark(only_mark(WRITE_ONLY), 7, 1);
	part();
	join_as(IBV_QPT_RC, 4, 0, 0);
	capture();
	post_writes(1);
	expect_writes(1);
	expect_mark(only_mark(WRITE_ONLY), 32, 4);
	part();
}

/* QOS-LIVE-02 */
PAIR_TEST(api_marks, reach_those_that_stand_and_those_that_come_and_no_other_level, open_one,
	  close_both)
{
	a_change_reaches_all();
}

PAIR_TEST(api_marks, reach_the_queue_pairs_of_dedicated_workers, open_dedicated, close_both)
{
	a_change_reaches_all();
}

/* QOS-DSCP-01 */
PAIR_TEST(api_marks, a_traffic_class_of_the_application_stays, open_one, close_both)
{
	join_as(IBV_QPT_RC, 3, 10 << 2, 0);
	set_marks(A, 3, 46, 6);
	capture();
	post_writes(1);
	expect_writes(1);
	expect_mark(only_mark(WRITE_ONLY), 10, 6);
	part();
}

PAIR_TEST(api_marks, a_level_without_dscp_has_the_traffic_class, open_one, close_both)
{
	struct uroce_qos_attr qos = qos_of(A);
	struct mark m;

	join_as(IBV_QPT_RC, 3, 0, 0);
	qos.sl_dscp[3] = 0;
	qos.traffic_class = 20 << 2 | 2;
	change(A, &qos);
	cr_expect_eq(qos_of(A).traffic_class, 20 << 2 | 2);
	capture();
	post_writes(1);
	expect_writes(1);
	m = only_mark(WRITE_ONLY);
	cr_expect_eq(m.tos, 20 << 2 | 2, "%#x", m.tos);
	part();
}

/* ---- marks of address handles ---- */

static struct ibv_ah *handle(uint8_t sl, uint8_t tclass)
{
	struct ibv_ah_attr av = av_to(A, B, 0);
	struct ibv_ah *ah;

	av.sl = sl;
	av.grh.traffic_class = tclass;
	ah = uroce_create_ah(A->pd, &av);
	cr_assert_not_null(ah, "%s", strerror(errno));
	return ah;
}

static struct mark mark_by(struct ibv_ah *ah)
{
	struct ibv_send_wr wr = {
		.wr_id = 9,
		.opcode = IBV_WR_SEND,
		.wr.ud = {.ah = ah, .remote_qpn = qb->qp_num, .remote_qkey = QKEY}};

	capture();
	cr_assert_eq(try_post(A, qa, wr, 0, MESSAGE), 0);
	expect_wc(A, 9, IBV_WC_SUCCESS);
	return only_mark(UD_SEND);
}

static void handles_are_marked_anew(void)
{
	struct ibv_ah *ah[3];

	qa = make_qp(A, IBV_QPT_UD);
	qb = make_qp(B, IBV_QPT_UD);
	ready(qa, A, B, 0, (struct join){0});
	ready(qb, B, A, 0, (struct join){0});
	ah[0] = handle(3, 0);
	ah[1] = handle(3, 10 << 2);
	expect_mark(mark_by(ah[0]), 24, 3);
	set_marks(A, 3, 46, 6);
	expect_mark(mark_by(ah[0]), 46, 6);
	expect_mark(mark_by(ah[1]), 10, 6);
	ah[2] = handle(3, 0);
	expect_mark(mark_by(ah[2]), 46, 6);
	cr_expect_eq(uroce_destroy_ah(ah[0]), 0);
	set_marks(A, 3, 1, 2);
	expect_mark(mark_by(ah[2]), 1, 2);
	for (unsigned i = 1; i < 3; i++)
		cr_expect_eq(uroce_destroy_ah(ah[i]), 0);
	set_marks(A, 3, 4, 5);
	part();
}

/* QOS-LIVE-02 */
PAIR_TEST(api_marks, of_address_handles_change, open_one, close_both)
{
	handles_are_marked_anew();
}

PAIR_TEST(api_marks, of_address_handles_that_several_workers_use, open_two, close_both)
{
	handles_are_marked_anew();
}

PAIR_TEST(api_marks, of_address_handles_that_dedicated_workers_use, open_dedicated, close_both)
{
	handles_are_marked_anew();
}

PAIR_TEST(api_marks, name_the_service_level_of_an_answer, open_one, close_both)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah_attr av = av_to(A, B, 0);
	uint8_t grh[40] = {[20] = 0x45, [21] = 46 << 2};

	memcpy(grh + 32, av.grh.dgid.raw + 12, 4);
	cr_assert_eq(uroce_query_gid(A->ctx, 1, 0, &av.grh.dgid), 0);
	memcpy(grh + 36, av.grh.dgid.raw + 12, 4);
	cr_assert_eq(uroce_init_ah_from_wc(A->ctx, 1, &wc, (struct ibv_grh *)(void *)grh, &av), 0);
	cr_expect_eq(av.sl, 0);
	set_marks(A, 9, 46, 0);
	cr_assert_eq(uroce_init_ah_from_wc(A->ctx, 1, &wc, (struct ibv_grh *)(void *)grh, &av), 0);
	cr_expect_eq(av.sl, 9);
}

/* ---- the speed of the port ---- */

/*
 * The frame of a message has 14 + 4 + 20 + 8 + 12 + 16 + 1000 + 4 = 1078 bytes, and 24 more on the
 * wire: 8.816 ms at 0.001 Gb/s. The port holds the packet being sent and one more, and a worker may
 * catch up 4 ms.
 */
static void speed_changes(unsigned workers)
{
	const uint64_t frame_ns = 8816000 * workers;
	struct mark m[MARKS_MAX];
	uint64_t waits;
	unsigned n;

	join_as(IBV_QPT_UC, 0, 0, 0);
	cr_expect_eq(qos_of(A).rate_gbps, 0);
	post_writes(4);
	expect_writes(4);
	cr_expect_eq(rate_waits(), 0);
	set_rate(SLOW_GBPS);
	capture();
	post_writes(6);
	expect_writes(6);
	n = marks(UC_WRITE, m);
	cr_assert_eq(n, 6, "%u packets", n);
	cr_expect_geq(m[5].ns - m[0].ns, 4 * frame_ns - 4000000, "%u us",
		      (unsigned)((m[5].ns - m[0].ns) / 1000));
	waits = rate_waits();
	cr_expect_gt(waits, 0);
	post_writes(4);
	set_rate(0);
	expect_writes(4);
	waits = rate_waits();
	post_writes(8);
	expect_writes(8);
	cr_expect_eq(rate_waits(), waits, "nothing waits any more");
	part();
}

/* RATE-LINK-02 */
PAIR_TEST(api_marks, the_speed_of_the_port_changes, open_one, close_both)
{
	speed_changes(1);
}

PAIR_TEST(api_marks, each_worker_has_its_part_of_the_speed, open_two, close_both)
{
	speed_changes(2);
}

/* ---- effect on pacing ---- */

static uint64_t paced_link(void)
{
	struct uroce_pacing p;

	cr_assert_eq(uroce_query_destinations(A->ctx, &p, NULL, 0), 0);
	return p.link_bps;
}

static void open_paced(const char *mode, const char *link, const char *workers)
{
	const char *const set[] = {mode, link, workers, NULL};

	open_side(A, set);
}

/* PACE-LINK-01 */
PAIR_TEST(api_marks, pacing_follows_the_speed_of_the_port, open_nothing, close_both)
{
	open_paced("pacing.mode=auto", "pacing.link_gbps=0", "worker.count=2");
	cr_expect_eq(paced_link(), UINT64_C(100000000000), "the speed is unknown");
	set_rate(5);
	cr_expect_eq(paced_link(), UINT64_C(5000000000));
	set_rate(SLOW_GBPS);
	cr_expect_eq(paced_link(), UINT64_C(2000000), "at least 1 Mb/s for each worker");
	set_rate(0);
	cr_expect_eq(paced_link(), UINT64_C(100000000000));
}

PAIR_TEST(api_marks, pacing_with_a_link_of_its_own_does_not, open_nothing, close_both)
{
	open_paced("pacing.mode=dcqcn", "pacing.link_gbps=20", "worker.count=1");
	set_rate(5);
	cr_expect_eq(paced_link(), UINT64_C(20000000000));
}

PAIR_TEST(api_marks, pacing_without_rates_knows_no_link, open_nothing, close_both)
{
	open_paced("pacing.mode=cmdpd", "pacing.link_gbps=20", "worker.count=1");
	set_rate(5);
	cr_expect_eq(paced_link(), 0);
}

PAIR_TEST(api_marks, a_slow_port_of_many_workers_can_be_paced, open_nothing, close_both)
{
	open_paced("pacing.mode=auto", "port.rate_gbps=0.001", "worker.count=2");
	cr_expect_eq(paced_link(), UINT64_C(2000000));
}
