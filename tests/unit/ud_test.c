/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "end.h"

static struct ur_ah ah_of(uint32_t pd)
{
	struct ur_path_attr a = {.src = ur_gid_from_ipv4(0x0a000002),
				 .dst = ur_gid_from_ipv4(0x0a000009),
				 .sport = 0xc000};
	struct ur_ah ah = {.pd = pd};

	ur_path_init(&ah.path, &a);
	return ah;
}

static struct ibv_send_wr datagram(struct end *e, uint64_t id, struct ur_ah *ah)
{
	struct ibv_send_wr wr = end_wr(e, id, IBV_WR_SEND);

	wr.wr.ud.ah = &ah->verbs;
	wr.wr.ud.remote_qpn = 0x99;
	wr.wr.ud.remote_qkey = 0x22222222;
	return wr;
}

/* UD-GRH-01 */
Test(ud, ipv4_header_stands_in_the_last_20_of_40_bytes)
{
	static const uint8_t zero[20];
	struct end *e = END(.type = IBV_QPT_UD);
	struct ibv_wc wc;

	memset(e->buf, 0xee, 128);
	end_post_recv(e, 1, 0, 128);
	cr_assert_eq(end_recv(e, UR_UD_SEND_ONLY, 5, 16), UR_DROP_NONE);
	wc = end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, 56);
	cr_assert_eq(wc.src_qp, 0x654321);
	cr_assert(wc.wc_flags & IBV_WC_GRH);
	cr_assert_eq(memcmp(e->buf, zero, 20), 0);
	cr_assert_eq(memcmp(e->buf + 20, e->in_frame.b + 14, 20), 0);
	cr_assert_eq(e->buf[20], 0x45);
	cr_assert_eq(e->buf[40], 5);
	cr_assert_eq(e->buf[56], 0xee);
	end_free(e);
}

/* UD-GRH-01 */
Test(ud, ipv6_header_is_in_the_40_bytes_unchanged)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_packet p = frame_packet(UR_UD_SEND_ONLY_IMM, true, (const uint8_t *)"abcd", 4);
	struct ibv_wc wc;

	p.bth.dqpn = e->qp->qpn;
	end_post_recv(e, 1, 0, 128);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
	wc = end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(e->buf, e->in_frame.b + 14, 40), 0);
	cr_assert_eq(memcmp(e->buf + 40, "abcd", 4), 0);
	cr_assert(wc.wc_flags & IBV_WC_WITH_IMM);
	cr_assert_eq(memcmp(&wc.imm_data, "\xca\xfe\xf0\x0d", 4), 0);
	end_free(e);
}

/* UD-QKEY-01 */
Test(ud, datagram_with_another_qkey_is_dropped)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_packet p = end_packet(e, UR_UD_SEND_ONLY, 5, 16);

	end_post_recv(e, 1, 0, 128);
	p.deth.qkey ^= 1;
	cr_assert_eq(end_in(e, p), UR_DROP_QKEY);
	end_expect_no_wc(e);
	end_free(e);
}

/* UD-LEN-01 */
Test(ud, datagram_that_does_not_fit_is_lost_and_its_receive_used_again)
{
	struct end *e = END(.type = IBV_QPT_UD);

	end_post_recv(e, 1, 0, 50);
	cr_assert_eq(end_recv(e, UR_UD_SEND_ONLY, 5, 11), UR_DROP_RECV_BUFFER);
	end_expect_no_wc(e);
	cr_assert_eq(end_recv(e, UR_UD_SEND_ONLY, 6, 10), UR_DROP_NONE);
	cr_assert_eq(end_expect_wc(e, 1, IBV_WC_SUCCESS).byte_len, 50);
	cr_assert_eq(end_recv(e, UR_UD_SEND_ONLY, 7, 10), UR_DROP_RNR);
	end_expect_silence(e);
	end_free(e);
}

/* UD-LEN-01 */
Test(ud, datagram_beyond_the_pmtu_is_not_sent)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_ah ah = ah_of(END_PD);

	cr_assert_eq(end_post(e, datagram(e, 1, &ah), 0, 4097), 0);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_LOC_LEN_ERR);
	end_free(e);
}

Test(ud, datagram_carries_both_queue_pairs_and_the_qkey)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_ah ah = ah_of(END_PD);

	memcpy(e->buf, "hello", 5);
	cr_assert_eq(end_post(e, datagram(e, 1, &ah), 0, 5), 0);
	end_expect(e, UR_UD_SEND_ONLY, END_SQ_PSN);
	cr_assert_eq(e->out.bth.dqpn.v, 0x99);
	cr_assert_eq(e->out.deth.sqpn.v, e->qp->qpn.v);
	cr_assert_eq(e->out.deth.qkey, 0x22222222);
	cr_assert_eq(e->out.payload_len, 5);
	cr_assert_eq(memcmp(e->out.payload, "hello", 5), 0);
	cr_assert_eq(e->out.ip.dst.b[15], 9);
	end_free(e);
}

/* UD-QKEY-02 */
Test(ud, privileged_qkey_of_a_request_stands_for_the_queue_pairs_own)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_ah ah = ah_of(END_PD);
	struct ibv_send_wr wr = datagram(e, 1, &ah);

	wr.wr.ud.remote_qkey = 0x80000000;
	cr_assert_eq(end_post(e, wr, 0, 5), 0);
	end_expect(e, UR_UD_SEND_ONLY, END_SQ_PSN);
	cr_assert_eq(e->out.deth.qkey, END_QKEY);
	end_free(e);
}

/* UC-REQ-DONE-01 */
Test(ud, psns_follow_one_another_and_wrap)
{
	struct end *e = END(.type = IBV_QPT_UD, .sq_psn = UR_PSN_MASK);
	struct ur_ah ah = ah_of(END_PD);
	struct ibv_send_wr wr = datagram(e, 1, &ah);
	struct ibv_qp_attr attr;

	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(end_post(e, wr, 0, 5), 0);
		end_expect(e, UR_UD_SEND_ONLY, (UR_PSN_MASK + i) & UR_PSN_MASK);
	}
	ur_qp_query(e->qp, &attr);
	cr_assert_eq(attr.sq_psn, 2);
	end_free(e);
}

Test(ud, request_completes_when_its_packet_has_been_taken_away)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_ah ah = ah_of(END_PD);

	cr_assert_eq(end_post(e, datagram(e, 1, &ah), 0, 5), 0);
	end_expect(e, UR_UD_SEND_ONLY, END_SQ_PSN);
	end_expect_no_wc(e);
	cr_assert_eq(ur_engine_next_deadline(e->engine), 0);
	end_expect_silence(e);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_free(e);
}

/* QP-SQE-01 */
Test(ud, failed_request_stops_sending_but_not_receiving)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_ah ah = ah_of(END_PD), other_pd = ah_of(END_PD + 1);

	cr_assert_eq(end_post(e, datagram(e, 1, &ah), 0, 5), 0);
	cr_assert_eq(end_post(e, datagram(e, 2, &other_pd), 0, 5), 0);
	cr_assert_eq(end_post(e, datagram(e, 3, &ah), 0, 5), 0);
	cr_assert_eq(end_drain(e), 1);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_LOC_PROT_ERR);
	end_expect_wc(e, 3, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(e->qp->state, IBV_QPS_SQE);
	cr_assert_eq(end_post(e, datagram(e, 4, &ah), 0, 5), 0);
	end_expect_wc(e, 4, IBV_WC_WR_FLUSH_ERR);
	end_post_recv(e, 5, 0, 128);
	cr_assert_eq(end_recv(e, UR_UD_SEND_ONLY, 5, 16), UR_DROP_NONE);
	end_expect_wc(e, 5, IBV_WC_SUCCESS);
	cr_assert_eq(end_modify(e, IBV_QPS_RTS, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(end_post(e, datagram(e, 6, &ah), 0, 5), 0);
	end_expect(e, UR_UD_SEND_ONLY, END_SQ_PSN + 1);
	end_free(e);
}

/* SCHED-SL-02 */
Test(ud, datagram_is_sent_on_the_lane_of_its_address_handles_level)
{
	struct end *e = END(.type = IBV_QPT_UD);
	const struct ur_core *core = ur_engine_core(e->engine);
	struct ur_ah two = ah_of(END_PD), five = ah_of(END_PD);

	two.sl = 2;
	five.sl = 5;
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(end_post(e, datagram(e, i, i % 3 ? &five : &two), 0, 5), 0);
	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(core->emux.ready_lanes, i % 3 ? 1 << 5 : 1 << 2);
		end_expect(e, UR_UD_SEND_ONLY, END_SQ_PSN + i);
		ur_emux_validate(&core->emux);
		cr_assert_eq(core->lane[2].packets, 1 + i / 3);
		cr_assert_eq(core->lane[2].packets + core->lane[5].packets, i + 1);
	}
	cr_assert_eq(core->emux.ready_lanes, 0);
	end_free(e);
}

/* SCHED-SL-02, SCHED-LIVE-01 */
Test(ud, datagram_of_a_level_that_lost_its_lane_waits_and_those_behind_it)
{
	struct end *e = END(.type = IBV_QPT_UD);
	struct ur_ah two = ah_of(END_PD), five = ah_of(END_PD);
	struct ur_engine_qos qos;

	two.sl = 2;
	five.sl = 5;
	cr_assert_eq(end_post(e, datagram(e, 1, &two), 0, 5), 0);
	cr_assert_eq(end_post(e, datagram(e, 2, &five), 0, 5), 0);
	cr_assert_eq(end_post(e, datagram(e, 3, &two), 0, 5), 0);
	ur_engine_qos_default(&qos);
	qos.vl.sl2vl[5] = 15;
	ur_engine_set_qos(e->engine, &qos);
	cr_assert_eq(end_drain(e), 1);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_no_wc(e);
	qos.vl.sl2vl[5] = 2;
	ur_engine_set_qos(e->engine, &qos);
	cr_assert_eq(end_drain(e), 2);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_wc(e, 3, IBV_WC_SUCCESS);
	end_free(e);
}
