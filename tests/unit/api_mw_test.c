/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

/* Memory windows: B binds them, A reads and writes through them. */

static struct ibv_qp *qa, *qb;
static struct ibv_mr *region; /* of B, without remote rights */
static struct ibv_mw *mw;

#define AT(offset) ((uintptr_t)B->buf + (offset))

static void begin(enum ibv_mw_type type)
{
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	region = uroce_reg_mr(B->pd, B->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	cr_assert_not_null(region);
	mw = uroce_alloc_mw(B->pd, type);
	cr_assert_not_null(mw);
}

static void join_again(void)
{
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
}

static void end(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
	if (mw)
		cr_expect_eq(uroce_dealloc_mw(mw), 0);
	cr_expect_eq(uroce_dereg_mr(region), 0);
}

/* The outcome of an RDMA operation of A; a failed one leaves the queue pairs in ERR. */
static enum ibv_wc_status outcome(enum ibv_wr_opcode op, uint64_t at, uint32_t rkey, uint32_t len)
{
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = op};

	wr.wr.rdma.remote_addr = at;
	wr.wr.rdma.rkey = rkey;
	cr_assert_eq(try_post(A, qa, wr, 0, len), 0);
	return next_wc(A).status;
}

static struct ibv_mw_bind_info info(uint64_t offset, uint64_t length, unsigned access)
{
	return (struct ibv_mw_bind_info){
		.mr = region, .addr = AT(offset), .length = length, .mw_access_flags = access};
}

static void bind_1(struct ibv_mw_bind_info where, enum ibv_wc_status expected)
{
	struct ibv_mw_bind b = {.wr_id = 3, .send_flags = IBV_SEND_SIGNALED, .bind_info = where};
	struct ibv_wc wc;

	cr_assert_eq(uroce_bind_mw(qb, mw, &b), 0);
	wc = expect_wc(B, 3, expected);
	if (expected == IBV_WC_SUCCESS)
		cr_assert_eq(wc.opcode, IBV_WC_BIND_MW);
}

static void post_bind_2(struct ibv_mw_bind_info where, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 4, .opcode = IBV_WR_BIND_MW}, *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = where;
	cr_assert_eq(uroce_post_send(qb, &wr, &bad), 0);
}

#define WRITES(offset, rkey, len)                                                                  \
	(outcome(IBV_WR_RDMA_WRITE, AT(offset), rkey, len) == IBV_WC_SUCCESS)
#define REFUSED(op, offset, rkey, len)                                                             \
	cr_assert_eq(outcome(op, AT(offset), rkey, len), IBV_WC_REM_ACCESS_ERR)

/* MW-BIND-01, MW-CHECK-01 */
PAIR_TEST(api_mw, of_type_1_opens_a_part_of_a_region_and_closes_it, open_both, close_both)
{
	uint32_t old, first;

	begin(IBV_MW_TYPE_1);
	old = mw->rkey;
	bind_1(info(100, 2000, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
	first = mw->rkey;
	cr_assert_eq(first, ibv_inc_rkey(old));
	fill(A, 0, 2000, 1);
	memset(B->buf, 0xee, 4096);
	cr_assert(WRITES(100, first, 2000));
	cr_assert_eq(memcmp(A->buf, B->buf + 100, 2000), 0);
	cr_assert_eq(B->buf[99], 0xee);
	REFUSED(IBV_WR_RDMA_WRITE, 99, first, 10);
	cr_assert_eq(B->buf[99], 0xee);
	join_again();
	REFUSED(IBV_WR_RDMA_WRITE, 101, first, 2000);
	cr_assert_eq(B->buf[2100], 0xee);
	join_again();
	REFUSED(IBV_WR_RDMA_READ, 100, first, 10);
	join_again();
	REFUSED(IBV_WR_RDMA_WRITE, 100, region->rkey, 10);
	join_again();
	bind_1(info(3000, 50, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
	cr_assert_eq(outcome(IBV_WR_RDMA_READ, AT(3000), mw->rkey, 50), IBV_WC_SUCCESS);
	REFUSED(IBV_WR_RDMA_WRITE, 100, first, 10);
	join_again();
	bind_1((struct ibv_mw_bind_info){0}, IBV_WC_SUCCESS);
	REFUSED(IBV_WR_RDMA_READ, 3000, mw->rkey, 50);
	end();
}

/* MW-INV-01 */
PAIR_TEST(api_mw, of_type_2_is_invalidated_by_either_side, open_both, close_both)
{
	struct ibv_send_wr inv = {.wr_id = 5, .opcode = IBV_WR_LOCAL_INV};
	uint32_t key;
	struct ibv_wc wc;

	begin(IBV_MW_TYPE_2);
	key = ibv_inc_rkey(mw->rkey);
	post_bind_2(info(0, 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE), key);
	expect_wc(B, 4, IBV_WC_SUCCESS);
	cr_assert(WRITES(0, key, 4000));
	inv.invalidate_rkey = key;
	cr_assert_eq(try_post(B, qb, inv, 0, 0), 0);
	expect_wc(B, 5, IBV_WC_SUCCESS);
	REFUSED(IBV_WR_RDMA_WRITE, 0, key, 8);
	join_again();

	key = ibv_inc_rkey(key);
	post_bind_2(info(0, 4096, IBV_ACCESS_REMOTE_WRITE), key);
	expect_wc(B, 4, IBV_WC_SUCCESS);
	inv.opcode = IBV_WR_SEND_WITH_INV;
	inv.invalidate_rkey = key;
	post_recv(B, qb, 6, 8192, 100);
	cr_assert_eq(try_post(A, qa, inv, 0, 10), 0);
	wc = expect_wc(B, 6, IBV_WC_SUCCESS);
	cr_assert_eq(wc.invalidated_rkey, key);
	expect_wc(A, 5, IBV_WC_SUCCESS);
	REFUSED(IBV_WR_RDMA_WRITE, 0, key, 8);
	end();
}

/* MW-CHECK-01, MW-QP-01: another queue pair of the same domain, and a later one. */
PAIR_TEST(api_mw, of_type_2_serves_its_queue_pair_only, open_both, close_both)
{
	struct ibv_qp *first_a, *first_b;
	uint32_t key;

	begin(IBV_MW_TYPE_2);
	key = ibv_inc_rkey(mw->rkey);
	post_bind_2(info(0, 4096, IBV_ACCESS_REMOTE_WRITE), key);
	expect_wc(B, 4, IBV_WC_SUCCESS);
	first_a = qa;
	first_b = qb;
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
	REFUSED(IBV_WR_RDMA_WRITE, 0, key, 8);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	qa = first_a;
	qb = first_b;
	cr_assert(WRITES(0, key, 8));
	cr_assert_eq(uroce_dereg_mr(region), EBUSY);
	join_again();
	REFUSED(IBV_WR_RDMA_WRITE, 0, key, 8);
	end();
}

/* MW-REGION-01 */
PAIR_TEST(api_mw, a_region_with_windows_stays_and_a_freed_window_closes, open_both, close_both)
{
	uint32_t key;

	begin(IBV_MW_TYPE_1);
	bind_1(info(0, 4096, IBV_ACCESS_REMOTE_WRITE), IBV_WC_SUCCESS);
	key = mw->rkey;
	cr_assert_eq(uroce_dereg_mr(region), EBUSY);
	cr_assert_eq(uroce_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), EBUSY);
	cr_assert_eq(uroce_dealloc_pd(B->pd), EBUSY);
	cr_assert(WRITES(0, key, 8));
	cr_assert_eq(uroce_dealloc_mw(mw), 0);
	mw = NULL;
	REFUSED(IBV_WR_RDMA_WRITE, 0, key, 8);
	end();
}

PAIR_TEST(api_mw, binds_that_are_not_allowed_fail_or_are_refused, open_both, close_both)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;
	struct ibv_mw_bind b = {.bind_info.length = 1};
	struct ibv_mr *closed;
	struct ibv_qp *ud;

	begin(IBV_MW_TYPE_1);
	cr_assert_eq(uroce_bind_mw(qb, mw, &b), EINVAL, "no region");
	b.bind_info = info(0, 10, 0);
	cr_assert_eq(uroce_bind_mw(qa, mw, &b), EINVAL, "another domain");
	cr_assert_eq(uroce_post_send(qb, &wr, &bad), EINVAL, "no window");
	ud = make_qp(B, IBV_QPT_UD);
	cr_assert_eq(uroce_bind_mw(ud, mw, &b), EINVAL);
	cr_assert_eq(uroce_destroy_qp(ud), 0);
	bind_1(info(0, 5000, IBV_ACCESS_REMOTE_WRITE), IBV_WC_MW_BIND_ERR);
	join_again();
	closed = region;
	region = uroce_reg_mr(B->pd, B->buf, 4096, ALL_RIGHTS);
	bind_1(info(0, 10, IBV_ACCESS_REMOTE_WRITE), IBV_WC_MW_BIND_ERR);
	cr_assert_eq(uroce_dereg_mr(region), 0);
	region = closed;
	errno = 0;
	cr_assert_null(uroce_alloc_mw(B->pd, (enum ibv_mw_type)3));
	cr_assert_eq(errno, EINVAL);
	end();
}

PAIR_TEST(api_mw, binds_by_ibv_wr_start, open_both, close_both)
{
	struct ibv_qp_init_attr a = qp_attr(B, IBV_QPT_RC);
	struct ibv_qp_init_attr_ex ex = {.send_cq = a.send_cq,
					 .recv_cq = a.recv_cq,
					 .cap = a.cap,
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .comp_mask = IBV_QP_INIT_ATTR_PD |
						      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					 .pd = B->pd,
					 .send_ops_flags = IBV_QP_EX_WITH_BIND_MW};
	struct ibv_mw_bind_info where;
	struct ibv_qp_ex *qx;
	uint32_t key;

	begin(IBV_MW_TYPE_2);
	cr_assert_eq(uroce_destroy_qp(qa), 0);
	cr_assert_eq(uroce_destroy_qp(qb), 0);
	qa = make_qp(A, IBV_QPT_RC);
	qb = uroce_create_qp_ex(B->ctx, &ex);
	cr_assert_not_null(qb);
	join(qa, qb, (struct join){0});
	qx = uroce_qp_to_qp_ex(qb);
	key = ibv_inc_rkey(mw->rkey);
	where = info(0, 100, IBV_ACCESS_REMOTE_WRITE);
	ibv_wr_start(qx);
	qx->wr_id = 11;
	qx->wr_flags = 0;
	ibv_wr_bind_mw(qx, mw, key, &where);
	cr_assert_eq(ibv_wr_complete(qx), 0);
	expect_wc(B, 11, IBV_WC_SUCCESS);
	cr_assert(WRITES(0, key, 100));
	end();
}
