/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#define GRH 40

static void open_v6(void)
{
	static const char *const a[] = {"address.ipv6=fd00:77::a/64", NULL};
	static const char *const b[] = {"address.ipv6=fd00:77::b/64", NULL};

	open_side(A, a);
	open_side(B, b);
}

static struct ibv_qp *qa, *qb;

static void part(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

/* ---- UC ---- */

static void join_uc(void)
{
	qa = make_qp(A, IBV_QPT_UC);
	qb = make_qp(B, IBV_QPT_UC);
	join(qa, qb, (struct join){0});
}

PAIR_TEST(api_uc_ud, uc_sends_and_writes_with_and_without_immediate, open_v6, close_both)
{
	struct ibv_send_wr wr = {.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
	struct ibv_wc wc;

	join_uc();
	fill(A, 0, 9000, 5);
	post_recv(B, qb, 10, 20000, 9000);
	post_recv(B, qb, 11, 20000, 9000);
	post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, 9000);
	post(A, qa, 2, IBV_WR_SEND, 0, 9000);
	wr.imm_data = htonl(77);
	cr_assert_eq(try_post(A, qa, wr, 0, 5), 0);
	for (unsigned i = 1; i <= 3; i++)
		expect_wc(A, i, IBV_WC_SUCCESS);
	wc = expect_wc(B, 10, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV);
	cr_assert_eq(wc.byte_len, 9000u);
	wc = expect_wc(B, 11, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	cr_assert_eq(ntohl(wc.imm_data), 77u);
	cr_assert_eq(memcmp(A->buf, B->buf, 9000), 0);
	cr_assert_eq(memcmp(A->buf, B->buf + 20000, 9000), 0);
	part();
}

PAIR_TEST(api_uc_ud, uc_refuses_what_needs_an_answer, open_v6, close_both)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	join_uc();
	cr_assert_eq(try_post(A, qa, wr, 0, 8), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	cr_assert_eq(try_post(A, qa, wr, 0, 8), EINVAL);
	part();
}

PAIR_TEST(api_uc_ud, a_uc_message_without_a_receive_is_lost_and_the_next_one_is_not, open_v6,
	  close_both)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct uroce_counters c;

	join_uc();
	post(A, qa, 1, IBV_WR_SEND, 0, 3000);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	do {
		cr_assert_lt(now_ms(), until, "B has not got three packets");
		progress();
		cr_assert_eq(uroce_query_counters(B->ctx, &c), 0);
	} while (c.rx_packets + c.dropped_packets < 3);
	post_recv(B, qb, 2, 10000, 3000);
	expect_no_wc(B);
	fill(A, 0, 3000, 8);
	post(A, qa, 3, IBV_WR_SEND, 0, 3000);
	expect_wc(A, 3, IBV_WC_SUCCESS);
	expect_wc(B, 2, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(A->buf, B->buf + 10000, 3000), 0);
	part();
}

PAIR_TEST(api_uc_ud, a_failed_uc_send_stops_the_send_queue_only_until_it_is_asked_to_go_on, open_v6,
	  close_both)
{
	struct ibv_sge sge = {(uintptr_t)A->buf, 100, A->mr->lkey ^ 0x200};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	join_uc();
	post_recv(A, qa, 50, 0, 100);
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0);
	expect_wc(A, 1, IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(state_of(qa), IBV_QPS_SQE);
	post(A, qa, 2, IBV_WR_SEND, 0, 10);
	expect_wc(A, 2, IBV_WC_WR_FLUSH_ERR);
	/* Its receives remain. */
	post(B, qb, 3, IBV_WR_SEND, 0, 10);
	expect_wc(A, 50, IBV_WC_SUCCESS);
	expect_wc(B, 3, IBV_WC_SUCCESS);
	cr_assert_eq(to_state(qa, IBV_QPS_RTS), 0);
	post_recv(B, qb, 4, 0, 100);
	post(A, qa, 5, IBV_WR_SEND, 0, 10);
	expect_wc(A, 5, IBV_WC_SUCCESS);
	expect_wc(B, 4, IBV_WC_SUCCESS);
	part();
}

/* ---- UD ---- */

static struct ibv_ah *ah_to(struct side *s, struct side *peer, int gid_index)
{
	struct ibv_ah_attr av = av_to(s, peer, gid_index);
	struct ibv_ah *ah = uroce_create_ah(s->pd, &av);

	cr_assert_not_null(ah, "%s", strerror(errno));
	return ah;
}

static void join_ud(void)
{
	qa = make_qp(A, IBV_QPT_UD);
	qb = make_qp(B, IBV_QPT_UD);
	ready(qa, A, B, 0, (struct join){0});
	ready(qb, B, A, 0, (struct join){0});
}

static struct ibv_send_wr datagram(struct ibv_ah *ah, struct ibv_qp *to, uint64_t id)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_SEND};

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return wr;
}

static void datagram_and_answer(int gid_index, uint8_t *grh)
{
	struct ibv_ah *ah = ah_to(A, B, gid_index), *back;
	struct ibv_ah_attr av;
	struct ibv_wc wc;

	join_ud();
	fill(A, 0, 1000, 33);
	post_recv(B, qb, 1, 4096, GRH + 1000);
	cr_assert_eq(try_post(A, qa, datagram(ah, qb, 2), 0, 1000), 0);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	wc = expect_wc(B, 1, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, GRH + 1000u);
	cr_assert_eq(wc.src_qp, qa->qp_num);
	cr_assert(wc.wc_flags & IBV_WC_GRH);
	cr_assert_eq(memcmp(A->buf, B->buf + 4096 + GRH, 1000), 0);
	memcpy(grh, B->buf + 4096, GRH);
	cr_assert_eq(uroce_init_ah_from_wc(B->ctx, 1, &wc, (struct ibv_grh *)grh, &av), 0);
	cr_assert_eq(av.grh.sgid_index, gid_index);
	cr_assert_eq(uroce_init_ah_from_wc(B->ctx, 2, &wc, (struct ibv_grh *)grh, &av), EINVAL);
	cr_assert_eq(uroce_init_ah_from_wc(B->ctx, 1, &wc, (struct ibv_grh *)grh, &av), 0);
	back = uroce_create_ah(B->pd, &av);
	cr_assert_not_null(back);
	post_recv(A, qa, 3, 8192, GRH + 10);
	cr_assert_eq(try_post(B, qb, datagram(back, qa, 4), 0, 10), 0);
	expect_wc(B, 4, IBV_WC_SUCCESS);
	cr_assert_eq(expect_wc(A, 3, IBV_WC_SUCCESS).src_qp, qb->qp_num);
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	cr_assert_eq(uroce_destroy_ah(back), 0);
	part();
}

PAIR_TEST(api_uc_ud, a_datagram_over_ipv4_brings_its_header_and_is_answered, open_v6, close_both)
{
	uint8_t grh[GRH];

	datagram_and_answer(0, grh);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(grh[i], 0, "byte %u before the IPv4 header", i);
	cr_assert_eq(grh[20], 0x45);
	cr_assert_eq(grh[29], 17, "UDP");
	cr_assert_eq(memcmp(grh + 32, (uint8_t[]){10, 77, 0, 1}, 4), 0, "source");
	cr_assert_eq(memcmp(grh + 36, (uint8_t[]){10, 77, 0, 2}, 4), 0, "destination");
}

PAIR_TEST(api_uc_ud, a_datagram_over_ipv6_brings_its_header_and_is_answered, open_v6, close_both)
{
	uint8_t grh[GRH];
	union ibv_gid a, b;

	datagram_and_answer(1, grh);
	cr_assert_eq(uroce_query_gid(A->ctx, 1, 1, &a), 0);
	cr_assert_eq(uroce_query_gid(B->ctx, 1, 1, &b), 0);
	cr_assert_eq(grh[0] >> 4, 6);
	cr_assert_eq(grh[6], 17, "UDP");
	cr_assert_eq(memcmp(grh + 8, a.raw, 16), 0, "source");
	cr_assert_eq(memcmp(grh + 24, b.raw, 16), 0, "destination");
}

PAIR_TEST(api_uc_ud, link_local_addresses_work_too, open_v6, close_both)
{
	uint8_t grh[GRH];

	datagram_and_answer(2, grh);
	cr_assert_eq(grh[8], 0xfe);
	cr_assert_eq(grh[9], 0x80);
}

PAIR_TEST(api_uc_ud, rc_works_over_ipv6, open_v6, close_both)
{
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){.gid_index = 1});
	fill(A, 0, 50000, 1);
	post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, 50000);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(A->buf, B->buf, 50000), 0);
	part();
}

PAIR_TEST(api_uc_ud, an_answer_does_not_repeat_the_congestion_mark, open_v6, close_both)
{
	uint8_t grh[GRH] = {[20] = 0x45, [21] = 0x23, [32] = 10, 77, 0, 1, 10, 77, 0, 2};
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah_attr av;

	cr_assert_eq(uroce_init_ah_from_wc(B->ctx, 1, &wc, (struct ibv_grh *)grh, &av), 0);
	cr_assert_eq(av.grh.traffic_class, 0x22);
	grh[39] = 3;
	cr_assert_eq(uroce_init_ah_from_wc(B->ctx, 1, &wc, (struct ibv_grh *)grh, &av), EINVAL,
		     "it was not for us");
	wc.wc_flags = 0;
	cr_assert_eq(uroce_init_ah_from_wc(B->ctx, 1, &wc, (struct ibv_grh *)grh, &av), EINVAL,
		     "there is no header");
}

PAIR_TEST(api_uc_ud, a_wrong_qkey_or_a_short_buffer_loses_the_datagram_and_nothing_else, open_v6,
	  close_both)
{
	struct ibv_ah *ah = ah_to(A, B, 0);
	struct ibv_send_wr wr;

	join_ud();
	post_recv(B, qb, 1, 0, GRH + 100);
	wr = datagram(ah, qb, 2);
	wr.wr.ud.remote_qkey = QKEY + 1;
	cr_assert_eq(try_post(A, qa, wr, 0, 100), 0);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	expect_no_wc(B);
	cr_assert_eq(try_post(A, qa, datagram(ah, qb, 3), 0, 101), 0);
	expect_wc(A, 3, IBV_WC_SUCCESS);
	expect_no_wc(B);
	cr_assert_eq(try_post(A, qa, datagram(ah, qb, 4), 0, 100), 0);
	expect_wc(A, 4, IBV_WC_SUCCESS);
	expect_wc(B, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	part();
}

PAIR_TEST(api_uc_ud, a_datagram_longer_than_the_mtu_fails, open_v6, close_both)
{
	struct ibv_ah *ah = ah_to(A, B, 0);

	join_ud();
	cr_assert_eq(try_post(A, qa, datagram(ah, qb, 1), 0, 4097), 0);
	expect_wc(A, 1, IBV_WC_LOC_LEN_ERR);
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	part();
}

PAIR_TEST(api_uc_ud, a_handle_of_another_domain_or_endpoint_is_not_used, open_v6, close_both)
{
	struct ibv_pd *pd = uroce_alloc_pd(A->ctx);
	struct ibv_ah_attr av = av_to(A, B, 0), av_b = av_to(B, A, 0);
	struct ibv_ah *other = uroce_create_ah(pd, &av), *of_b = uroce_create_ah(B->pd, &av_b);

	cr_assert(other && of_b);
	cr_assert_eq(uroce_dealloc_pd(pd), EBUSY);
	join_ud();
	cr_assert_eq(try_post(A, qa, datagram(other, qb, 1), 0, 10), 0);
	expect_wc(A, 1, IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(to_state(qa, IBV_QPS_RTS), 0);
	cr_assert_eq(try_post(A, qa, datagram(of_b, qb, 2), 0, 10), 0);
	expect_wc(A, 2, IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(try_post(A, qa, datagram(NULL, qb, 2), 0, 10), EINVAL);
	cr_assert_eq(uroce_destroy_ah(other), 0);
	cr_assert_eq(uroce_destroy_ah(of_b), 0);
	cr_assert_eq(uroce_dealloc_pd(pd), 0);
	part();
}

PAIR_TEST(api_uc_ud, a_handle_may_be_destroyed_while_requests_name_it, open_v6, close_both)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 200; i++) {
		struct ibv_ah *ah = ah_to(A, B, i % 2);
		struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD};
		unsigned got = 0;

		join_ud();
		if (i & 4) /* so that they certainly wait */
			cr_assert_eq(uroce_modify_qp(qa, &sqd, IBV_QP_STATE), 0);
		for (unsigned n = 0; n < 16; n++)
			cr_assert_eq(try_post(A, qa, datagram(ah, qb, n), 0, 1000), 0);
		cr_assert_eq(uroce_destroy_ah(ah), 0);
		if (i & 4)
			cr_assert_eq(to_state(qa, IBV_QPS_RTS), 0);
		while (got < 16) {
			wc = next_wc(A);
			cr_assert_eq(wc.wr_id, got++);
			if (i & 4)
				cr_assert_eq(wc.status,
					     got == 1 ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR);
		}
		part();
		while (uroce_poll_cq(B->cq, 1, &wc) > 0)
			;
	}
}

PAIR_TEST(api_uc_ud, an_address_without_a_host_makes_no_handle, open_v6, close_both)
{
	struct ibv_ah_attr av = av_to(A, B, 0);

	av.grh.dgid.raw[15] = 99;
	cr_assert_null(uroce_create_ah(A->pd, &av));
	cr_assert_eq(errno, EHOSTUNREACH);
	av.is_global = 0;
	cr_assert_null(uroce_create_ah(A->pd, &av));
	cr_assert_eq(errno, EINVAL);
	av.is_global = 1;
	av.grh.sgid_index = 1;
	cr_assert_null(uroce_create_ah(A->pd, &av), "from IPv6 to IPv4");
	cr_assert_eq(errno, EINVAL);
	av.grh.sgid_index = 9;
	cr_assert_null(uroce_create_ah(A->pd, &av));
	cr_assert_eq(errno, EINVAL);
}
