/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_wire.h"

#include "frames.h"

/* The frames that an endpoint accepts. */

static const uint8_t a_mac[6] = {0x02, 0x75, 0x72, 0, 0, 0x0a};
static const uint8_t b_mac[6] = {0x02, 0x75, 0x72, 0, 0, 0x0b};

/* A request to a queue pair that A does not have, which A counts if it accepts the frame. */
static struct ur_packet request(bool has_vlan, uint16_t tci)
{
	static const uint8_t payload[4];
	struct ur_packet p = frame_packet(UR_RC_WRITE_ONLY, false, payload, sizeof(payload));

	memcpy(p.dmac, a_mac, 6);
	memcpy(p.smac, b_mac, 6);
	p.ip.dst = ur_gid_from_ipv4(0x0a4d0001);
	p.ip.src = ur_gid_from_ipv4(0x0a4d0002);
	p.has_vlan = has_vlan;
	p.vlan_tci = tci;
	return p;
}

static uint64_t dropped(const char *reason)
{
	json_t *drops = section(A, "drops");
	uint64_t n = number_of(drops, reason);

	json_decref(drops);
	return n;
}

static void expect_counted(const char *reason, const struct ur_packet *p)
{
	struct ur_packet copy = *p;
	static struct frame f;
	uint64_t before = dropped(reason);

	frame_make(&f, &copy);
	inject(f.b, f.len, f.len);
	cr_expect_eq(dropped(reason), before + 1, "not counted as %s: tag %d 0x%x", reason,
		     p->has_vlan, p->vlan_tci);
}

static void expect_taken(bool has_vlan, uint16_t tci)
{
	struct ur_packet p = request(has_vlan, tci);

	expect_counted("qpn", &p);
}

static void expect_other_vlan(bool has_vlan, uint16_t tci)
{
	struct ur_packet p = request(has_vlan, tci);

	expect_counted("vlan", &p);
}

/* EDGE-VLAN-01 */
PAIR_TEST(api_frames, without_a_vlan_tagged_frames_are_dropped, open_nothing, close_both)
{
	take_wire(NULL);
	expect_taken(false, 0);
	expect_taken(true, 5 << 13);
	expect_other_vlan(true, 100);
	expect_other_vlan(true, 5 << 13 | 100);
	give_wire();
}

/* EDGE-VLAN-01 */
PAIR_TEST(api_frames, in_a_vlan_only_its_frames_are_taken, open_nothing, close_both)
{
	static const char *const set[] = {"address.vlan=100", NULL};

	take_wire(set);
	expect_taken(true, 100);
	expect_taken(true, 7 << 13 | 100);
	expect_other_vlan(false, 0);
	expect_other_vlan(true, 3 << 13);
	expect_other_vlan(true, 101);
	give_wire();
}

/* A frame from a driver that strips tags. `shared`: the tag cannot be inserted again. */
static void expect_stripped(const char *reason, uint16_t tci, bool shared)
{
	struct ur_packet p = request(false, 0);
	uint64_t before = dropped(reason);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	static struct frame f;

	cr_assert_not_null(m);
	frame_make(&f, &p);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f.len), f.b, f.len);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = tci;
	if (shared)
		rte_mbuf_refcnt_update(m, 1);
	cr_assert_eq(rte_eth_tx_burst(wire, 0, &m, 1), 1);
	progress();
	cr_expect_eq(dropped(reason), before + 1, "not counted as %s: 0x%x", reason, tci);
	if (shared)
		rte_pktmbuf_free(m);
}

/* EDGE-VLAN-01 */
PAIR_TEST(api_frames, a_tag_that_the_driver_took_off_counts, open_nothing, close_both)
{
	static const char *const set[] = {"address.vlan=100", NULL};

	take_wire(set);
	for (int shared = 0; shared < 2; shared++) {
		expect_stripped("qpn", 100, shared);
		expect_stripped("qpn", 6 << 13 | 100, shared);
		expect_stripped("vlan", 101, shared);
		expect_stripped("vlan", 0, shared);
	}
	give_wire();
}

/* ---- neighbours ---- */

static const uint8_t c_mac[6] = {0x02, 0x75, 0x72, 0, 0, 0x0c};

/* Announces that 10.77.0.2 has this MAC address. */
static void say(const uint8_t mac[6])
{
	uint8_t f[60] = {0xff,	    0xff, 0xff, 0xff, 0xff,	 0xff, [12] = 0x08, 0x06,
			 0x00,	    0x01, 0x08, 0x00, 0x06,	 0x04, 0x00,	    0x01,
			 [28] = 10, 77,	  0,	2,    [38] = 10, 77,   0,	    2};

	memcpy(f + 6, mac, 6);
	memcpy(f + 22, mac, 6);
	inject(f, sizeof(f), sizeof(f));
}

/* True if the QP has sent a frame to that MAC address since the last call. Consumes all frames. */
static bool went_to(const uint8_t mac[6], bool ud)
{
	struct rte_mbuf *m;
	bool found = false;

	while (rte_eth_rx_burst(wire, 0, &m, 1)) {
		const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

		found |= m->data_len > 58 && f[12] == 0x08 && f[13] == 0 &&
			 memcmp(f, mac, 6) == 0 && (f[42] == UR_UD_SEND_ONLY) == ud;
		rte_pktmbuf_free(m);
	}
	return found;
}

static struct ibv_qp *rc_qp, *ud_qp;
static struct ibv_ah *ah;

static void send_both(void)
{
	struct ibv_sge sge = sge_of(A, 0, 16);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x123;
	(void)uroce_post_send(ud_qp, &wr, &bad); /* its queue may be full for a while */
	progress();
	while (uroce_poll_cq(A->cq, 1, &wc) > 0)
		;
}

static void expect_goes_to(const uint8_t mac[6], bool ud)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	swallow();
	do {
		cr_assert_lt(now_ms(), until, "%s goes elsewhere", ud ? "UD" : "RC");
		if (ud)
			send_both();
		progress();
	} while (!went_to(mac, ud));
}

static void make_paths(void)
{
	struct ibv_ah_attr av = {.is_global = 1, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = 0x123,
				  .max_dest_rd_atomic = 1};
	struct ibv_sge sge = sge_of(A, 0, 1000);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	memcpy(av.grh.dgid.raw + 10, (uint8_t[]){0xff, 0xff, 10, 77, 0, 2}, 6);
	ah = uroce_create_ah(A->pd, &av);
	cr_assert_not_null(ah);
	ud_qp = make_qp(A, IBV_QPT_UD);
	cr_assert_eq(to_init(ud_qp, 0), 0);
	cr_assert_eq(to_state(ud_qp, IBV_QPS_RTR), 0);
	cr_assert_eq(to_rts(ud_qp, (struct join){0}), 0);
	rc_qp = make_qp(A, IBV_QPT_RC);
	cr_assert_eq(to_init(rc_qp, 0), 0);
	rtr.ah_attr = av;
	cr_assert_eq(uroce_modify_qp(rc_qp, &rtr,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER),
		     0);
	/* Without an answer, the request is sent again after 1.07 s, eight times. */
	cr_assert_eq(to_rts(rc_qp, (struct join){.timeout = 18, .retry_cnt = 7}), 0);
	cr_assert_eq(uroce_post_send(rc_qp, &wr, &bad), 0);
}

static void drop_paths(void)
{
	cr_assert_eq(uroce_destroy_qp(rc_qp), 0);
	cr_assert_eq(uroce_destroy_qp(ud_qp), 0);
	cr_assert_eq(uroce_destroy_ah(ah), 0);
}

/* NEIGH-FOLLOW-01 */
PAIR_TEST(api_frames, what_stands_follows_a_neighbour_to_another_mac, open_nothing, close_both)
{
	take_wire(NULL);
	inject((const uint8_t *)"\xff\xff\xff\xff\xff\xff\x02\x75\x72\x00\x00\x0b\x08\x06\x00\x01"
				"\x08\x00\x06\x04\x00\x01\x02\x75\x72\x00\x00\x0b\x0a\x4d\x00\x02"
				"\x00\x00\x00\x00\x00\x00\x0a\x4d\x00\x01",
	       42, 42);
	make_paths();
	expect_goes_to(b_mac, true);
	say(c_mac);
	expect_goes_to(c_mac, true);
	expect_goes_to(c_mac, false);
	drop_paths();
	give_wire();
}

/* NEIGH-FOLLOW-01 */
PAIR_TEST(api_frames, a_static_neighbour_stays_whatever_is_said, open_nothing, close_both)
{
	static const char *const set[] = {"address.neighbor=10.77.0.2=02:75:72:00:00:0b", NULL};

	take_wire(set);
	make_paths();
	say(c_mac);
	progress_for(300); /* three times as long as an update takes */
	swallow();
	send_both();
	progress();
	cr_assert_not(went_to(c_mac, true));
	expect_goes_to(b_mac, true);
	drop_paths();
	give_wire();
}
