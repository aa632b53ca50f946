/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

/* Posting by ibv_wr_start(3), with the inline functions of verbs.h. */

static struct ibv_qp *qa, *qb;
static struct ibv_qp_ex *ea;

#define RC_OPS                                                                                     \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |       \
	 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                          \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                            \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV)
#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)

static struct ibv_qp_init_attr_ex attr_ex(struct side *s, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr a = qp_attr(s, type);

	return (struct ibv_qp_init_attr_ex){
		.send_cq = a.send_cq,
		.recv_cq = a.recv_cq,
		.cap = a.cap,
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->pd,
		.send_ops_flags = ops,
	};
}

static void make_ends(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex a = attr_ex(A, type, ops);

	qa = uroce_create_qp_ex(A->ctx, &a);
	cr_assert_not_null(qa, "%s", strerror(errno));
	ea = uroce_qp_to_qp_ex(qa);
	cr_assert_not_null(ea);
	cr_assert_eq((void *)ea, (void *)qa);
	qb = make_qp(B, type);
}

static void join_rc(void)
{
	make_ends(IBV_QPT_RC, RC_OPS);
	join(qa, qb, (struct join){0});
}

static void part(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

static uint64_t at(struct side *s, uint32_t offset)
{
	return (uintptr_t)s->buf + offset;
}

static void begin(uint64_t wr_id)
{
	ibv_wr_start(ea);
	ea->wr_id = wr_id;
	ea->wr_flags = 0;
}

/* WQ-STAGE-01 */
PAIR_TEST(api_qp_ex, every_operation_of_rc_by_its_builder, open_both, close_both)
{
	struct ibv_mr *mr;
	uint64_t value = 40;
	struct ibv_wc wc;

	join_rc();
	fill(A, 0, 5000, 1);
	begin(1);
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 100));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 5000);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	cr_assert_eq(expect_wc(A, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	cr_assert_eq(memcmp(A->buf, B->buf + 100, 5000), 0);

	begin(2);
	ibv_wr_rdma_read(ea, B->mr->rkey, at(B, 100));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 8192), 5000);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	cr_assert_eq(expect_wc(A, 2, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	cr_assert_eq(memcmp(A->buf, A->buf + 8192, 5000), 0);

	post_recv(B, qb, 30, 32768, 100);
	begin(3);
	ibv_wr_rdma_write_imm(ea, B->mr->rkey, at(B, 0), htonl(77));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	expect_wc(A, 3, IBV_WC_SUCCESS);
	wc = expect_wc(B, 30, IBV_WC_SUCCESS);
	cr_assert_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	cr_assert_eq(ntohl(wc.imm_data), 77u);

	post_recv(B, qb, 40, 32768, 100);
	begin(4);
	ibv_wr_send_imm(ea, htonl(78));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 10);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	expect_wc(A, 4, IBV_WC_SUCCESS);
	wc = expect_wc(B, 40, IBV_WC_SUCCESS);
	cr_assert_eq(wc.wc_flags, (unsigned)IBV_WC_WITH_IMM);
	cr_assert_eq(ntohl(wc.imm_data), 78u);

	mr = uroce_reg_mr(B->pd, B->buf, 4096, ALL_RIGHTS | UROCE_ACCESS_REMOTE_INVALIDATE);
	post_recv(B, qb, 50, 32768, 100);
	begin(5);
	ibv_wr_send_inv(ea, mr->rkey);
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 10);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	expect_wc(A, 5, IBV_WC_SUCCESS);
	cr_assert_eq(expect_wc(B, 50, IBV_WC_SUCCESS).invalidated_rkey, mr->rkey);
	cr_assert_eq(uroce_dereg_mr(mr), 0);

	memcpy(B->buf, &value, 8);
	begin(6);
	ibv_wr_atomic_fetch_add(ea, B->mr->rkey, at(B, 0), 2);
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
	ea->wr_id = 7;
	ibv_wr_atomic_cmp_swp(ea, B->mr->rkey, at(B, 0), 42, 9);
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 8), 8);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	cr_assert_eq(expect_wc(A, 6, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	cr_assert_eq(expect_wc(A, 7, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	memcpy(&value, B->buf, 8);
	cr_assert_eq(value, 9u);

	mr = uroce_reg_mr(A->pd, A->buf, 64, IBV_ACCESS_LOCAL_WRITE);
	begin(8);
	ibv_wr_local_inv(ea, mr->lkey);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	cr_assert_eq(expect_wc(A, 8, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	part();
}

PAIR_TEST(api_qp_ex, segments_and_inline_data_are_those_of_their_request, open_both, close_both)
{
	char abc[] = "abc", defg[] = "defg";
	struct ibv_data_buf parts[] = {{abc, 3}, {NULL, 0}, {defg, 4}};
	char text[] = "inline";
	struct ibv_sge list[2];

	join_rc();
	fill(A, 0, 200, 5);
	list[0] = (struct ibv_sge){at(A, 0), 100, A->mr->lkey};
	list[1] = (struct ibv_sge){at(A, 100), 100, A->mr->lkey};
	begin(1);
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
	ibv_wr_set_sge_list(ea, 2, list);
	ea->wr_id = 2;
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 300));
	ibv_wr_set_inline_data(ea, text, 6);
	memset(text, 'X', sizeof(text));
	ea->wr_id = 3;
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 400));
	ibv_wr_set_inline_data_list(ea, 3, parts);
	ea->wr_id = 4;
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 500));
	ibv_wr_set_inline_data(ea, NULL, 0);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	for (uint64_t id = 1; id <= 4; id++)
		expect_wc(A, id, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(A->buf, B->buf, 200), 0);
	cr_assert_eq(memcmp(B->buf + 300, "inline", 6), 0, "not copied when the call was made");
	cr_assert_eq(memcmp(B->buf + 400, "abcdefg", 7), 0);
	part();
}

static void expect_nothing(void)
{
	struct ibv_wc wc;

	progress_for(20);
	cr_assert_eq(uroce_poll_cq(A->cq, 1, &wc), 0, "wr_id %lu", (unsigned long)wc.wr_id);
}

PAIR_TEST(api_qp_ex, an_aborted_batch_leaves_no_trace, open_both, close_both)
{
	join_rc();
	memset(B->buf, 0xee, 64);
	begin(1);
	for (unsigned i = 0; i < 3; i++) {
		ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
		ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
	}
	ibv_wr_abort(ea);
	expect_nothing();
	cr_assert_eq(B->buf[0], 0xee);
	fill(A, 0, 8, 3);
	begin(2);
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(A->buf, B->buf, 8), 0);
	expect_nothing();
	part();
}

/* A batch with a good request and then one that is wrong, in each way. */
PAIR_TEST(api_qp_ex, a_batch_with_an_error_posts_nothing, open_both, close_both)
{
	static char bytes[65];
	struct ibv_sge many[5] = {0};

	join_rc();
	for (unsigned way = 0; way < 7; way++) {
		int rc;

		begin(1);
		if (way != 0) {
			ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
			ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
			ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
		}
		if (way == 0)
			ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8); /* of no request */
		else if (way == 1)
			ibv_wr_set_sge_list(ea, 5, many);
		else if (way == 2)
			ibv_wr_set_inline_data(ea, bytes, 65);
		else if (way == 3)
			ibv_wr_set_ud_addr(ea, NULL, 1, 1);
		else if (way == 4)
			ibv_wr_send_tso(ea, bytes, 4, 100);
		else if (way == 5)
			ibv_wr_set_inline_data_list(
				ea, 2, (struct ibv_data_buf[]){{bytes, 8}, {bytes, SIZE_MAX}});
		else
			for (unsigned i = 0; i < 16; i++) /* two more than there is room for */
				ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
		rc = ibv_wr_complete(ea);
		cr_assert_eq(rc,
			     way == 6	? ENOMEM
			     : way == 4 ? EOPNOTSUPP
					: EINVAL,
			     "%u: %d", way, rc);
		expect_nothing();
	}
	begin(9);
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	expect_wc(A, 9, IBV_WC_SUCCESS);
	part();
}

PAIR_TEST(api_qp_ex, a_state_that_takes_no_requests_refuses_the_batch, open_both, close_both)
{
	make_ends(IBV_QPT_RC, RC_OPS);
	begin(1);
	ibv_wr_send(ea);
	cr_assert_eq(ibv_wr_complete(ea), EINVAL, "in RESET");
	join(qa, qb, (struct join){0});
	begin(2);
	ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
	ibv_wr_send(ea); /* the first one is in the queue, unseen */
	cr_assert_eq(to_state(qa, IBV_QPS_RESET), 0);
	cr_assert_eq(ibv_wr_complete(ea), EINVAL);
	expect_nothing();
	part();
}

PAIR_TEST(api_qp_ex, requests_of_both_ways_stay_in_order, open_both, close_both)
{
	join_rc();
	for (unsigned i = 0; i < 40; i++) {
		post(A, qa, 3 * i, IBV_WR_RDMA_WRITE, 0, 100);
		begin(3 * i + 1);
		ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
		ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 3000);
		ea->wr_id = 3 * i + 2;
		ea->wr_flags = IBV_SEND_FENCE | IBV_SEND_INLINE; /* the second is ignored */
		ibv_wr_rdma_write(ea, B->mr->rkey, at(B, 0));
		ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 8);
		cr_assert_eq(ibv_wr_complete(ea), 0);
		for (unsigned n = 0; n < 3; n++)
			expect_wc(A, 3 * i + n, IBV_WC_SUCCESS);
	}
	part();
}

PAIR_TEST(api_qp_ex, datagrams_have_an_address_before_or_after_their_data, open_both, close_both)
{
	struct ibv_ah_attr av;
	struct ibv_ah *ah;

	make_ends(IBV_QPT_UD, UD_OPS);
	join(qa, qb, (struct join){0});
	av = av_to(A, B, 0);
	ah = uroce_create_ah(A->pd, &av);
	cr_assert_not_null(ah);
	fill(A, 0, 100, 9);
	post_recv(B, qb, 10, 0, 200);
	post_recv(B, qb, 11, 1000, 200);
	begin(1);
	ibv_wr_send(ea);
	ibv_wr_set_ud_addr(ea, ah, qb->qp_num, QKEY);
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 100);
	ea->wr_id = 2;
	ibv_wr_send_imm(ea, htonl(5));
	ibv_wr_set_inline_data(ea, A->buf, 50);
	ibv_wr_set_ud_addr(ea, ah, qb->qp_num, QKEY);
	cr_assert_eq(ibv_wr_complete(ea), 0);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	expect_wc(B, 10, IBV_WC_SUCCESS);
	cr_assert_eq(ntohl(expect_wc(B, 11, IBV_WC_SUCCESS).imm_data), 5u);
	cr_assert_eq(memcmp(A->buf, B->buf + 40, 100), 0);
	cr_assert_eq(memcmp(A->buf, B->buf + 1040, 50), 0);
	begin(3);
	ibv_wr_send(ea);
	ibv_wr_set_sge(ea, A->mr->lkey, at(A, 0), 100);
	cr_assert_eq(ibv_wr_complete(ea), EINVAL, "without an address");
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	part();
}

static void refused(struct ibv_qp_init_attr_ex a, int err)
{
	errno = 0;
	cr_assert_null(uroce_create_qp_ex(A->ctx, &a));
	cr_assert_eq(errno, err, "%s", strerror(errno));
}

PAIR_TEST(api_qp_ex, what_does_not_exist_is_refused_at_creation, open_both, close_both)
{
	struct ibv_qp_init_attr_ex a = attr_ex(A, IBV_QPT_UD, UD_OPS | IBV_QP_EX_WITH_RDMA_WRITE);
	struct ibv_qp *qp;

	refused(a, EOPNOTSUPP);
	refused(attr_ex(A, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
	refused(attr_ex(A, IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
	refused(attr_ex(A, IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND), EOPNOTSUPP);
	a = attr_ex(A, IBV_QPT_RC, RC_OPS);
	a.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	refused(a, EOPNOTSUPP);
	a = attr_ex(A, IBV_QPT_RC, RC_OPS);
	a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	a.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	refused(a, EOPNOTSUPP);
	a = attr_ex(A, IBV_QPT_RC, RC_OPS);
	a.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD;
	refused(a, EINVAL);
	a = attr_ex(A, IBV_QPT_RC, RC_OPS);
	a.pd = B->pd;
	refused(a, EINVAL);
	a = attr_ex(A, IBV_QPT_RC, RC_OPS);
	a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp = uroce_create_qp_ex(A->ctx, &a);
	cr_assert_not_null(qp);
	cr_assert_null(uroce_qp_to_qp_ex(qp), "it did not ask for operations");
	cr_assert_eq(uroce_destroy_qp(qp), 0);
}
