/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

static struct ibv_qp *qa, *qb;

static void join_rc(struct join j)
{
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, j);
}

static void part(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

static void same_bytes(uint32_t from, uint32_t to, uint32_t len)
{
	cr_assert_eq(memcmp(A->buf + from, B->buf + to, len), 0, "bytes differ");
}

/* ---- every operation ---- */

PAIR_TEST(api_qp, every_opcode_of_rc_is_executed_and_completes, open_both, close_both)
{
	static const uint32_t sizes[] = {0, 1, 1024, 1025, 20000};
	struct ibv_send_wr atomic = {.wr_id = 50, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_wc wc;
	uint64_t value = 40, old;

	join_rc((struct join){0});
	for (unsigned i = 0; i < 5; i++) {
		fill(A, 0, sizes[i], (uint8_t)i);
		memset(B->buf, 0xee, SIDE_BUF);
		post(A, qa, 10 + i, IBV_WR_RDMA_WRITE, 0, sizes[i]);
		cr_assert_eq(expect_wc(A, 10 + i, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
		same_bytes(0, 0, sizes[i]);
		cr_assert_eq(B->buf[sizes[i]], 0xee, "one byte too many");

		fill(B, 0, sizes[i], (uint8_t)(i + 90));
		post(A, qa, 20 + i, IBV_WR_RDMA_READ, 0, sizes[i]);
		wc = expect_wc(A, 20 + i, IBV_WC_SUCCESS);
		cr_assert_eq(wc.opcode, IBV_WC_RDMA_READ);
		cr_assert_eq(wc.byte_len, sizes[i]);
		same_bytes(0, 0, sizes[i]);

		fill(A, 0, sizes[i], (uint8_t)(i + 30));
		post_recv(B, qb, 30 + i, 32768, 20000);
		post(A, qa, 40 + i, IBV_WR_SEND, 0, sizes[i]);
		cr_assert_eq(expect_wc(A, 40 + i, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
		wc = expect_wc(B, 30 + i, IBV_WC_SUCCESS);
		cr_assert_eq(wc.opcode, IBV_WC_RECV);
		cr_assert_eq(wc.byte_len, sizes[i]);
		cr_assert_eq(wc.qp_num, qb->qp_num);
		cr_assert_eq(wc.wc_flags, 0u);
		same_bytes(0, 32768, sizes[i]);
	}
	memcpy(B->buf, &value, 8);
	atomic.wr.atomic.compare_add = 2;
	cr_assert_eq(try_post(A, qa, atomic, 0, 8), 0);
	wc = expect_wc(A, 50, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_FETCH_ADD);
	cr_assert_eq(wc.byte_len, 8u);
	memcpy(&old, A->buf, 8);
	memcpy(&value, B->buf, 8);
	cr_assert_eq(old, 40);
	cr_assert_eq(value, 42);
	atomic.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	atomic.wr.atomic.compare_add = 42;
	atomic.wr.atomic.swap = 7;
	cr_assert_eq(try_post(A, qa, atomic, 0, 8), 0);
	cr_assert_eq(expect_wc(A, 50, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	memcpy(&value, B->buf, 8);
	cr_assert_eq(value, 7);
	part();
}

PAIR_TEST(api_qp, immediate_data_arrives_with_a_send_and_with_a_write, open_both, close_both)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND_WITH_IMM};
	struct ibv_wc wc;

	join_rc((struct join){0});
	wr.imm_data = htonl(0xcafe0001);
	post_recv(B, qb, 2, 0, 100);
	post_recv(B, qb, 3, 0, 100);
	cr_assert_eq(try_post(A, qa, wr, 0, 60), 0);
	wc = expect_wc(B, 2, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV);
	cr_assert_eq(wc.wc_flags, (unsigned)IBV_WC_WITH_IMM);
	cr_assert_eq(ntohl(wc.imm_data), 0xcafe0001u);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	cr_assert_eq(try_post(A, qa, wr, 0, 5000), 0);
	wc = expect_wc(B, 3, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	cr_assert_eq(wc.byte_len, 5000u);
	cr_assert_eq(ntohl(wc.imm_data), 0xcafe0001u);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	part();
}

PAIR_TEST(api_qp, a_list_is_gathered_and_scattered_in_order, open_both, close_both)
{
	struct ibv_sge from[4], to[4];
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = from, .num_sge = 4, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = to, .num_sge = 4}, *bad_recv;
	struct ibv_send_wr *bad;

	join_rc((struct join){0});
	fill(A, 0, 8000, 3);
	from[0] = sge_of(A, 0, 1);
	from[1] = sge_of(A, 1, 2998);
	from[2] = sge_of(A, 2999, 0);
	from[3] = sge_of(A, 2999, 1001);
	to[0] = sge_of(B, 0, 7);
	to[1] = sge_of(B, 7, 1);
	to[2] = sge_of(B, 8, 3000);
	to[3] = sge_of(B, 3008, 3000);
	cr_assert_eq(uroce_post_recv(qb, &recv, &bad_recv), 0);
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0);
	cr_assert_eq(expect_wc(B, 2, IBV_WC_SUCCESS).byte_len, 4000u);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	same_bytes(0, 0, 4000);
	part();
}

PAIR_TEST(api_qp, inline_data_is_taken_when_posted, open_both, close_both)
{
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE};
	uint8_t text[64];
	struct ibv_sge sge[2] = {{(uintptr_t)text, 40, 0}, {(uintptr_t)text + 40, 24, 0}};
	struct ibv_send_wr *bad;

	join_rc((struct join){0});
	memset(text, 'x', sizeof(text));
	wr.sg_list = sge;
	wr.num_sge = 2;
	wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
	wr.wr.rdma.rkey = B->mr->rkey;
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0, "the lkey of inline data is not looked at");
	memset(text, 'y', sizeof(text));
	expect_wc(A, 1, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_eq(B->buf[i], 'x');
	sge[1].length = 25;
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), EINVAL, "65 bytes inline");
	cr_assert_eq(bad, &wr);
	part();
}

PAIR_TEST(api_qp, only_signalled_and_failed_requests_complete, open_both, close_both)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_send_wr quiet = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr loud = quiet;

	attr.sq_sig_all = 0;
	qa = uroce_create_qp(A->pd, &attr);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	loud.wr_id = 2;
	loud.send_flags = IBV_SEND_SIGNALED;
	cr_assert_eq(try_post(A, qa, quiet, 0, 10), 0);
	cr_assert_eq(try_post(A, qa, loud, 0, 10), 0);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	quiet.wr.rdma.rkey = B->mr->rkey ^ 0x1000;
	cr_assert_eq(try_post(A, qa, quiet, 0, 10), 0);
	expect_wc(A, 1, IBV_WC_REM_ACCESS_ERR);
	part();
}

PAIR_TEST(api_qp, a_fenced_send_carries_what_the_read_before_it_brought, open_both, close_both)
{
	struct ibv_send_wr wr = {.wr_id = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_FENCE};

	join_rc((struct join){.rd_atomic = 1});
	for (unsigned i = 0; i < 20; i++) {
		fill(B, 0, 8000, (uint8_t)(i * 3));
		memset(A->buf, 0, 8000);
		post_recv(B, qb, 3, 16384, 8000);
		post(A, qa, 1, IBV_WR_RDMA_READ, 0, 8000);
		cr_assert_eq(try_post(A, qa, wr, 0, 8000), 0);
		expect_wc(A, 1, IBV_WC_SUCCESS);
		expect_wc(A, 2, IBV_WC_SUCCESS);
		expect_wc(B, 3, IBV_WC_SUCCESS);
		cr_assert_eq(memcmp(B->buf, B->buf + 16384, 8000), 0);
	}
	part();
}

PAIR_TEST(api_qp, invalidates_take_the_key_away, open_both, close_both)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND_WITH_INV};
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t key;

	join_rc((struct join){0});
	mr = uroce_reg_mr(B->pd, B->buf, 4096, ALL_RIGHTS | UROCE_ACCESS_REMOTE_INVALIDATE);
	cr_assert_not_null(mr);
	key = mr->rkey;
	wr.invalidate_rkey = key;
	post_recv(B, qb, 2, 8192, 100);
	cr_assert_eq(try_post(A, qa, wr, 0, 10), 0);
	wc = expect_wc(B, 2, IBV_WC_SUCCESS);
	cr_assert_eq(wc.wc_flags, (unsigned)IBV_WC_WITH_INV);
	cr_assert_eq(wc.invalidated_rkey, key);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	/* Also a local invalidate, by B itself, after the region is registered again. */
	cr_assert_eq(uroce_rereg_mr(mr, 0, NULL, NULL, 0, 0), 0);
	cr_assert_neq(mr->rkey, key);
	wr = (struct ibv_send_wr){.wr_id = 4, .opcode = IBV_WR_LOCAL_INV};
	wr.invalidate_rkey = mr->rkey;
	cr_assert_eq(try_post(B, qb, wr, 0, 0), 0);
	cr_assert_eq(expect_wc(B, 4, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	wr = (struct ibv_send_wr){.wr_id = 5, .opcode = IBV_WR_RDMA_WRITE};
	wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
	wr.wr.rdma.rkey = mr->rkey;
	cr_assert_eq(try_post(A, qa, wr, 0, 10), 0);
	expect_wc(A, 5, IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	part();
}

/* ---- errors ---- */

PAIR_TEST(api_qp, a_bad_local_key_fails_after_what_was_before_it, open_both, close_both)
{
	struct ibv_sge sge = {(uintptr_t)A->buf, 100, A->mr->lkey ^ 0x100};
	struct ibv_send_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	join_rc((struct join){0});
	post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, 30000);
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0);
	wr.wr_id = 3;
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	expect_wc(A, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(A, 3, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(state_of(qa), IBV_QPS_ERR);
	part();
}

PAIR_TEST(api_qp, a_receive_without_the_right_to_write_fails_on_both_sides, open_both, close_both)
{
	struct ibv_mr *ro = uroce_reg_mr(B->pd, B->buf, 100, 0);
	struct ibv_sge sge = {(uintptr_t)B->buf, 100, ro->lkey};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;

	join_rc((struct join){0});
	cr_assert_eq(uroce_post_recv(qb, &wr, &bad), 0);
	post(A, qa, 1, IBV_WR_SEND, 0, 50);
	expect_wc(B, 2, IBV_WC_LOC_PROT_ERR);
	expect_wc(A, 1, IBV_WC_REM_OP_ERR);
	part();
	cr_assert_eq(uroce_dereg_mr(ro), 0);
}

PAIR_TEST(api_qp, a_message_longer_than_the_receive_fails_on_both_sides, open_both, close_both)
{
	join_rc((struct join){0});
	post_recv(B, qb, 2, 0, 2000);
	post_recv(B, qb, 3, 0, 2000);
	post(A, qa, 1, IBV_WR_SEND, 0, 2001);
	expect_wc(B, 2, IBV_WC_LOC_LEN_ERR);
	expect_wc(B, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(A, 1, IBV_WC_REM_INV_REQ_ERR);
	part();
}

PAIR_TEST(api_qp, rights_that_the_qp_does_not_give_are_refused, open_both, close_both)
{
	join_rc((struct join){.access = -1});
	post(A, qa, 1, IBV_WR_RDMA_READ, 0, 10);
	expect_wc(A, 1, IBV_WC_REM_INV_REQ_ERR);
	part();
	join_rc((struct join){.access = IBV_ACCESS_REMOTE_READ});
	post(A, qa, 1, IBV_WR_RDMA_READ, 0, 10);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	post(A, qa, 2, IBV_WR_RDMA_WRITE, 0, 10);
	expect_wc(A, 2, IBV_WC_REM_INV_REQ_ERR);
	part();
}

PAIR_TEST(api_qp, without_a_receive_the_sender_gives_up_after_rnr_retry, open_both, close_both)
{
	join_rc((struct join){.rnr_retry = 2, .min_rnr_timer = 1});
	post(A, qa, 1, IBV_WR_SEND, 0, 10);
	post(A, qa, 2, IBV_WR_SEND, 0, 10);
	expect_wc(A, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_wc(A, 2, IBV_WC_WR_FLUSH_ERR);
	part();
	/* 7 means no limit. */
	join_rc((struct join){.rnr_retry = 7, .min_rnr_timer = 1});
	post(A, qa, 1, IBV_WR_SEND, 0, 10);
	expect_no_wc(A);
	post_recv(B, qb, 2, 0, 100);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	expect_wc(B, 2, IBV_WC_SUCCESS);
	part();
}

PAIR_TEST(api_qp, a_dead_peer_is_noticed_and_everything_flushed_in_order, open_both, close_both)
{
	join_rc((struct join){.timeout = 8, .retry_cnt = 2});
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	post_recv(A, qa, 100, 0, 10);
	post_recv(A, qa, 101, 0, 10);
	for (unsigned i = 0; i < 8; i++)
		post(A, qa, i, IBV_WR_RDMA_WRITE, 0, 3000);
	expect_wc(A, 0, IBV_WC_RETRY_EXC_ERR);
	for (unsigned i = 1; i < 8; i++)
		expect_wc(A, i, IBV_WC_WR_FLUSH_ERR);
	expect_wc(A, 100, IBV_WC_WR_FLUSH_ERR);
	expect_wc(A, 101, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(state_of(qa), IBV_QPS_ERR);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
}

static void open_both_patient(void)
{
	open_side(A, (const char *const[]){"transport.min_timeout=12", NULL});
	open_side(B, NULL);
}

static uint8_t timeout_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	cr_assert_eq(uroce_query_qp(qp, &attr, IBV_QP_TIMEOUT, NULL), 0);
	return attr.timeout;
}

/* QP-TIMEOUT-01: 2^12 * 4.096 us = 16.8 ms, where the application asks for 8 us. */
PAIR_TEST(api_qp, a_timeout_is_not_shorter_than_the_minimum, open_both_patient, close_both)
{
	uint64_t before_ms;

	join_rc((struct join){.timeout = 1, .retry_cnt = 1});
	cr_assert_eq(timeout_of(qa), 1, "as it was set");
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	before_ms = now_ms();
	post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, 10);
	expect_wc(A, 1, IBV_WC_RETRY_EXC_ERR);
	cr_assert_geq(now_ms() - before_ms, 2 * 16);
	cr_assert_eq(to_state(qa, IBV_QPS_RESET), 0);
	cr_assert_eq(timeout_of(qa), 0, "RESET forgets it");
	cr_assert_eq(uroce_destroy_qp(qa), 0);
}

PAIR_TEST(api_qp, posts_to_a_qp_in_error_are_flushed, open_both, close_both)
{
	join_rc((struct join){0});
	cr_assert_eq(to_state(qa, IBV_QPS_ERR), 0);
	post(A, qa, 1, IBV_WR_SEND, 0, 10);
	expect_wc(A, 1, IBV_WC_WR_FLUSH_ERR);
	post_recv(A, qa, 2, 0, 10);
	expect_wc(A, 2, IBV_WC_WR_FLUSH_ERR);
	part();
}

PAIR_TEST(api_qp, states_decide_what_may_be_posted, open_both, close_both)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	cr_assert_eq(try_post(A, qa, wr, 0, 1), EINVAL, "RESET");
	cr_assert_eq(try_recv(A, qa, 1, 0, 1), EINVAL, "RESET");
	cr_assert_eq(to_rts(qa, (struct join){0}), EINVAL, "RESET to RTS");
	cr_assert_eq(to_init(qa, REMOTE), 0);
	cr_assert_eq(try_post(A, qa, wr, 0, 1), EINVAL, "INIT");
	cr_assert_eq(try_recv(A, qa, 1, 0, 1), 0, "INIT");
	cr_assert_eq(to_rtr(qa, A, B, qb->qp_num, (struct join){0}), 0);
	cr_assert_eq(try_post(A, qa, wr, 0, 1), EINVAL, "RTR");
	cr_assert_eq(to_state(qa, IBV_QPS_RESET), 0);
	cr_assert_eq(try_post(A, qa, wr, 0, 1), EINVAL, "RESET again");
	part();
	expect_no_wc(A);
}

PAIR_TEST(api_qp, full_queues_and_long_lists_are_refused_at_once, open_both, close_both)
{
	struct ibv_sge sge[5] = {sge_of(A, 0, 1), sge_of(A, 0, 1), sge_of(A, 0, 1), sge_of(A, 0, 1),
				 sge_of(A, 0, 1)};
	struct ibv_send_wr wr[20], *bad;
	struct ibv_recv_wr recv[20], *bad_recv;

	join_rc((struct join){.timeout = 20});
	for (unsigned i = 0; i < 20; i++) {
		wr[i] = (struct ibv_send_wr){.wr_id = i,
					     .next = i < 19 ? &wr[i + 1] : NULL,
					     .sg_list = sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND};
		recv[i] = (struct ibv_recv_wr){.wr_id = i,
					       .next = i < 19 ? &recv[i + 1] : NULL,
					       .sg_list = sge,
					       .num_sge = 1};
	}
	cr_assert_eq(uroce_post_recv(qa, recv, &bad_recv), ENOMEM);
	cr_assert_eq(bad_recv, &recv[16], "16 of 20 fit");
	cr_assert_eq(uroce_post_send(qa, wr, &bad), ENOMEM);
	cr_assert_eq(bad, &wr[16], "16 of 20 fit");
	recv[0].next = NULL;
	recv[0].num_sge = 5;
	cr_assert_eq(uroce_post_recv(qa, recv, &bad_recv), EINVAL, "5 SGEs");
	recv[0].num_sge = -1;
	cr_assert_eq(uroce_post_recv(qa, recv, &bad_recv), EINVAL, "-1 SGEs");
	wr[0].next = NULL;
	wr[0].num_sge = 5;
	cr_assert_eq(uroce_post_send(qa, wr, &bad), EINVAL, "5 SGEs");
	wr[0].num_sge = 1;
	wr[0].opcode = (enum ibv_wr_opcode)77;
	cr_assert_eq(uroce_post_send(qa, wr, &bad), EINVAL, "no such opcode");
	wr[0].opcode = IBV_WR_RDMA_READ;
	wr[0].send_flags = IBV_SEND_INLINE;
	cr_assert_eq(uroce_post_send(qa, wr, &bad), EINVAL, "an inline READ");
	part();
}

PAIR_TEST(api_qp, wrong_attributes_make_no_qp, open_both, close_both)
{
	struct ibv_qp_init_attr good = qp_attr(A, IBV_QPT_RC), a;
	struct ibv_pd *other_pd = uroce_alloc_pd(A->ctx);
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = uroce_create_srq(other_pd, &sa);

#define REFUSED(what)                                                                              \
	do {                                                                                       \
		errno = 0;                                                                         \
		cr_assert_null(uroce_create_qp(A->pd, &a), what);                                  \
		cr_assert_eq(errno, EINVAL, what);                                                 \
	} while (0)
	a = good, a.send_cq = NULL;
	REFUSED("no send CQ");
	a = good, a.send_cq = B->cq;
	REFUSED("a CQ of another endpoint");
	a = good, a.recv_cq = B->cq;
	REFUSED("a receive CQ of another endpoint");
	a = good, a.cap.max_send_sge = 1000;
	REFUSED("1000 SGEs");
	a = good, a.cap.max_send_wr = 1 << 30;
	REFUSED("2^30 WRs");
	a = good, a.cap.max_inline_data = 1 << 20;
	REFUSED("1 MiB inline");
	a = good, a.srq = srq;
	REFUSED("an SRQ of another PD");
#undef REFUSED
	/* Programs try a type and do without. */
	for (int type = IBV_QPT_RC; type <= IBV_QPT_DRIVER; type++) {
		if (type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD)
			continue;
		a = good, a.qp_type = (enum ibv_qp_type)type;
		errno = 0;
		cr_assert_null(uroce_create_qp(A->pd, &a));
		cr_assert_eq(errno, EOPNOTSUPP, "type %d: %s", type, strerror(errno));
	}
	cr_assert_eq(uroce_destroy_srq(srq), 0);
	cr_assert_eq(uroce_dealloc_pd(other_pd), 0);
}

/* ---- ACKs that are still to be sent ---- */

/* Polls only the CQ of one end, so that the other end does no work. */
static void poll_alone(struct side *s, uint64_t id, enum ibv_wc_status status)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;
	int n;

	while ((n = uroce_poll_cq(s->cq, 1, &wc)) == 0)
		cr_assert_lt(now_ms(), until, "nothing completes");
	cr_assert_eq(n, 1);
	cr_assert_eq(wc.wr_id, id);
	cr_assert_eq(wc.status, status, "%s", uroce_wc_status_str(wc.status));
}

/* EDGE-OWED-01. The receiver ends as soon as it has its message; the sender must still get the ACK. */
PAIR_TEST(api_qp, ack_of_the_last_message_leaves_before_its_queue_pair_goes, open_both, close_both)
{
	enum { DESTROY, TO_ERR, TO_RESET, CNT };

	for (unsigned how = 0; how < CNT; how++) {
		struct ibv_qp_attr attr = {.qp_state = how == TO_ERR ? IBV_QPS_ERR : IBV_QPS_RESET};

		join_rc((struct join){.timeout = 17, .retry_cnt = 3});
		post_recv(B, qb, 2, 8192, 100);
		post(A, qa, 1, IBV_WR_SEND, 0, 10);
		poll_alone(B, 2, IBV_WC_SUCCESS);
		if (how == DESTROY)
			cr_assert_eq(uroce_destroy_qp(qb), 0);
		else
			cr_assert_eq(uroce_modify_qp(qb, &attr, IBV_QP_STATE), 0);
		poll_alone(A, 1, IBV_WC_SUCCESS);
		if (how != DESTROY)
			cr_assert_eq(uroce_destroy_qp(qb), 0);
		cr_assert_eq(uroce_destroy_qp(qa), 0);
	}
}

/* ---- query, drain, loop back ---- */

PAIR_TEST(api_qp, query_returns_what_was_set, open_both, close_both)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	join_rc((struct join){.timeout = 11, .retry_cnt = 5, .rnr_retry = 3, .rd_atomic = 2});
	cr_assert_eq(uroce_query_qp(qa, &attr, ~0, &init), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_RTS);
	cr_assert_eq(attr.cur_qp_state, IBV_QPS_RTS);
	cr_assert_eq(attr.path_mtu, IBV_MTU_1024);
	cr_assert_eq(attr.dest_qp_num, qb->qp_num);
	cr_assert_eq(attr.timeout, 11);
	cr_assert_eq(attr.retry_cnt, 5);
	cr_assert_eq(attr.rnr_retry, 3);
	cr_assert_eq(attr.max_rd_atomic, 2);
	cr_assert_eq(attr.max_dest_rd_atomic, 2);
	cr_assert_eq(attr.sq_psn, FIRST_PSN);
	cr_assert_eq(attr.rq_psn, FIRST_PSN);
	cr_assert_eq(attr.port_num, 1);
	cr_assert_eq(attr.qp_access_flags, (unsigned)REMOTE);
	cr_assert_eq(attr.cap.max_send_wr, 16u);
	cr_assert_eq(init.cap.max_inline_data, 64u);
	cr_assert_eq(init.qp_type, IBV_QPT_RC);
	cr_assert_eq(init.send_cq, A->cq);
	cr_assert_eq(qa->state, IBV_QPS_RTS);
	part();
}

/* As with Linux's rxe. */
PAIR_TEST(api_qp, inline_data_has_the_room_of_the_scatter_list, open_both, close_both)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC), init;
	struct ibv_qp_attr now;
	struct ibv_qp *qp;

	attr.cap.max_send_sge = 3;
	attr.cap.max_inline_data = 0;
	cr_assert_not_null(qp = uroce_create_qp(A->pd, &attr));
	cr_assert_eq(attr.cap.max_inline_data, 3 * sizeof(struct ibv_sge));
	cr_assert_eq(uroce_query_qp(qp, &now, IBV_QP_CAP, &init), 0);
	cr_assert_eq(now.cap.max_inline_data, 3 * sizeof(struct ibv_sge));
	cr_assert_eq(init.cap.max_inline_data, 3 * sizeof(struct ibv_sge));
	cr_assert_eq(uroce_destroy_qp(qp), 0);
}

PAIR_TEST(api_qp, sqd_stops_new_requests_and_reports_when_it_is_drained, open_both, close_both)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	join_rc((struct join){0});
	post(A, qa, 1, IBV_WR_RDMA_WRITE, 0, 60000);
	cr_assert_eq(uroce_modify_qp(qa, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	expect_event(A, IBV_EVENT_SQ_DRAINED, qa);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	post(A, qa, 2, IBV_WR_RDMA_WRITE, 0, 10);
	expect_no_wc(A);
	cr_assert_eq(uroce_query_qp(qa, &attr, IBV_QP_STATE, NULL), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_SQD);
	cr_assert_eq(attr.sq_draining, 0);
	cr_assert_eq(to_state(qa, IBV_QPS_RTS), 0);
	progress();
	expect_wc(A, 2, IBV_WC_SUCCESS);
	part();
}

PAIR_TEST(api_qp, an_endpoint_talks_to_itself, open_both, close_both)
{
	struct ibv_qp *x = make_qp(A, IBV_QPT_RC), *y = make_qp(A, IBV_QPT_RC);
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE};

	ready(x, A, A, y->qp_num, (struct join){0});
	ready(y, A, A, x->qp_num, (struct join){0});
	fill(A, 0, 30000, 9);
	wr.wr.rdma.remote_addr = (uintptr_t)A->buf + 32768;
	wr.wr.rdma.rkey = A->mr->rkey;
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(try_post(A, x, wr, 0, 30000), 0);
		expect_wc(A, 1, IBV_WC_SUCCESS);
	}
	cr_assert_eq(memcmp(A->buf, A->buf + 32768, 30000), 0);
	/* Also to itself. */
	cr_assert_eq(to_state(x, IBV_QPS_RESET), 0);
	ready(x, A, A, x->qp_num, (struct join){0});
	post_recv(A, x, 5, 0, 100);
	post(A, x, 6, IBV_WR_SEND, 1000, 100);
	expect_wc(A, 5, IBV_WC_SUCCESS);
	expect_wc(A, 6, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_qp(x), 0);
	cr_assert_eq(uroce_destroy_qp(y), 0);
}

PAIR_TEST(api_qp, a_qp_can_be_reset_and_joined_again, open_both, close_both)
{
	join_rc((struct join){0});
	for (unsigned i = 0; i < 10; i++) {
		post_recv(B, qb, 2, 0, 100);
		post(A, qa, 1, IBV_WR_SEND, 0, 100);
		expect_wc(A, 1, IBV_WC_SUCCESS);
		expect_wc(B, 2, IBV_WC_SUCCESS);
		post(A, qa, 3, IBV_WR_RDMA_WRITE, 0, 60000);
		cr_assert_eq(to_state(qa, IBV_QPS_RESET), 0);
		cr_assert_eq(to_state(qb, IBV_QPS_RESET), 0);
		progress_for(1);
		/* With other PSNs, packets that are still in flight are stale. */
		join(qa, qb, (struct join){.psn = (i + 1) * 100});
	}
	part();
}

/* ---- destruction ---- */

PAIR_TEST(api_qp, objects_die_at_any_moment_of_a_transfer, open_both, close_both)
{
	struct ibv_wc wc[16];
	unsigned seed = 1;

	for (unsigned i = 0; i < 300; i++) {
		struct ibv_mr *mr = uroce_reg_mr(B->pd, B->buf + 32768, 16384, ALL_RIGHTS);
		struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE};

		join_rc((struct join){.timeout = 17, .retry_cnt = 3});
		wr.wr.rdma.remote_addr = (uintptr_t)B->buf + 32768;
		wr.wr.rdma.rkey = mr->rkey;
		post_recv(B, qb, 2, 0, 20000);
		cr_assert_eq(try_post(A, qa, wr, 0, 16000), 0);
		post(A, qa, 3, IBV_WR_SEND, 0, 20000);
		post(A, qa, 4, IBV_WR_RDMA_READ, 0, 20000);
		post(B, qb, 5, IBV_WR_RDMA_READ, 30000, 20000);
		for (unsigned n = (seed = seed * 1103515245 + 12345) >> 16 & 15; n; n--)
			uroce_progress(n & 1 ? A->ctx : B->ctx);
		switch (seed >> 24 & 3) {
		case 0:
			cr_assert_eq(uroce_dereg_mr(mr), 0);
			progress();
			part();
			break;
		case 1:
			cr_assert_eq(uroce_destroy_qp(qb), 0);
			progress();
			cr_assert_eq(uroce_dereg_mr(mr), 0);
			cr_assert_eq(uroce_destroy_qp(qa), 0);
			break;
		default:
			part();
			cr_assert_eq(uroce_dereg_mr(mr), 0);
			break;
		}
		while (uroce_poll_cq(A->cq, 16, wc) > 0 || uroce_poll_cq(B->cq, 16, wc) > 0)
			;
	}
}
