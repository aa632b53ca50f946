/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <sys/mman.h>

static struct ibv_qp *qa, *qb;

static void join_rc(void)
{
	qa = make_qp(A, IBV_QPT_RC);
	qb = make_qp(B, IBV_QPT_RC);
	join(qa, qb, (struct join){0});
}

static void part(void)
{
	cr_expect_eq(uroce_destroy_qp(qa), 0);
	cr_expect_eq(uroce_destroy_qp(qb), 0);
}

/* A's request for `len` bytes at `addr` with `rkey`. Each call uses a new pair of QPs. */
static enum ibv_wc_status try_rdma(enum ibv_wr_opcode op, uint64_t addr, uint32_t rkey,
				   uint32_t len)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = op};
	enum ibv_wc_status status;

	join_rc();
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	cr_assert_eq(try_post(A, qa, wr, 0, len), 0);
	status = next_wc(A).status;
	part();
	return status;
}

#define WRITES(addr, rkey, len)                                                                    \
	(try_rdma(IBV_WR_RDMA_WRITE, (addr), (rkey), (len)) == IBV_WC_SUCCESS)
#define READS(addr, rkey, len) (try_rdma(IBV_WR_RDMA_READ, (addr), (rkey), (len)) == IBV_WC_SUCCESS)

PAIR_TEST(api_mr, a_range_ends_where_it_ends, open_both, close_both)
{
	struct ibv_mr *mr = uroce_reg_mr(B->pd, B->buf + 100, 1000, ALL_RIGHTS);
	uint64_t at = (uintptr_t)B->buf + 100;

	cr_assert(WRITES(at, mr->rkey, 1000));
	cr_assert_not(WRITES(at, mr->rkey, 1001));
	cr_assert_not(WRITES(at - 1, mr->rkey, 10));
	cr_assert_not(READS(at + 1000, mr->rkey, 1));
	cr_assert_not(READS(UINT64_MAX - 10, mr->rkey, 100), "a range that wraps");
	cr_assert_not(WRITES(at, mr->rkey + 1, 10));
	cr_assert_eq(uroce_dereg_mr(mr), 0);
}

PAIR_TEST(api_mr, each_right_is_given_alone, open_both, close_both)
{
	uint64_t at = (uintptr_t)B->buf;
	struct ibv_mr *r = uroce_reg_mr(B->pd, B->buf, 100, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *w =
		uroce_reg_mr(B->pd, B->buf, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	cr_assert(READS(at, r->rkey, 10));
	cr_assert_not(WRITES(at, r->rkey, 10));
	cr_assert(WRITES(at, w->rkey, 10));
	cr_assert_not(READS(at, w->rkey, 10));
	cr_assert_eq(uroce_dereg_mr(r), 0);
	cr_assert_eq(uroce_dereg_mr(w), 0);
	errno = 0;
	cr_assert_null(uroce_reg_mr(B->pd, B->buf, 100, IBV_ACCESS_REMOTE_WRITE),
		       "remote write needs local write");
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(uroce_reg_mr(B->pd, B->buf, 100, 1 << 18));
	cr_assert_null(uroce_reg_mr(B->pd, (void *)-100, 200, ALL_RIGHTS), "wraps");
}

PAIR_TEST(api_mr, zero_based_and_iova_regions_are_named_by_other_addresses, open_both, close_both)
{
	struct ibv_mr *zero = uroce_reg_mr(B->pd, B->buf, 1000, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);
	struct ibv_mr *iova = uroce_reg_mr_iova(B->pd, B->buf, 1000, 0x10000, ALL_RIGHTS);

	fill(A, 0, 100, 1);
	cr_assert(WRITES(900, zero->rkey, 100));
	cr_assert_eq(memcmp(A->buf, B->buf + 900, 100), 0);
	cr_assert_not(WRITES(901, zero->rkey, 100));
	cr_assert_not(WRITES((uintptr_t)B->buf, zero->rkey, 100));
	fill(A, 0, 100, 2);
	cr_assert(WRITES(0x10000, iova->rkey, 100));
	cr_assert_eq(memcmp(A->buf, B->buf, 100), 0);
	cr_assert_not(WRITES(0xffff, iova->rkey, 100));
	cr_assert_eq(uroce_dereg_mr(zero), 0);
	cr_assert_eq(uroce_dereg_mr(iova), 0);
}

PAIR_TEST(api_mr, rereg_changes_what_its_flags_say_but_not_the_keys, open_both, close_both)
{
	uint64_t at = (uintptr_t)B->buf;
	struct ibv_pd *pd = uroce_alloc_pd(B->ctx);
	struct ibv_mr *mr = uroce_reg_mr(B->pd, B->buf, 100, ALL_RIGHTS);
	uint32_t old = mr->rkey;

	cr_assert_eq(uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				    IBV_ACCESS_REMOTE_READ),
		     0);
	cr_assert(READS(at, mr->rkey, 100));
	cr_assert_not(WRITES(at, mr->rkey, 10));
	cr_assert_eq(
		uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, B->buf + 5000, 200, 0),
		0);
	cr_assert_eq(mr->addr, B->buf + 5000);
	cr_assert_eq(mr->length, 200u);
	cr_assert(READS(at + 5000, mr->rkey, 200));
	cr_assert_not(READS(at, mr->rkey, 10));
	cr_assert_eq(uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	cr_assert_eq(mr->pd, pd);
	cr_assert_not(READS(at + 5000, mr->rkey, 10), "the QP is of another domain");
	cr_assert_eq(uroce_dealloc_pd(pd), EBUSY);
	cr_assert_eq(uroce_rereg_mr(mr,
				    IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION |
					    IBV_REREG_MR_CHANGE_ACCESS,
				    B->pd, B->buf, 50, ALL_RIGHTS | IBV_ACCESS_ZERO_BASED),
		     0);
	cr_assert_eq(uroce_dealloc_pd(pd), 0);
	cr_assert(WRITES(0, mr->rkey, 50));
	cr_assert_eq(uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS), 0);
	cr_assert(WRITES(at, mr->rkey, 50), "no longer zero-based");
	cr_assert_eq(mr->rkey, old);
	cr_assert_eq(mr->lkey, old);
	cr_assert_eq(uroce_dereg_mr(mr), 0);
}

PAIR_TEST(api_mr, a_refused_rereg_leaves_the_region_as_it_was, open_both, close_both)
{
	struct ibv_mr *mr = uroce_reg_mr(B->pd, B->buf, 100, ALL_RIGHTS);
	uint32_t key = mr->rkey;

	cr_assert_eq(uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				    IBV_ACCESS_REMOTE_WRITE),
		     EINVAL);
	cr_assert_eq(
		uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)-100, 200, 0),
		EINVAL);
	cr_assert_eq(uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, A->pd, NULL, 0, 0), EINVAL);
	cr_assert_eq(uroce_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), EINVAL);
	cr_assert_eq(uroce_rereg_mr(mr, 1 << 10, NULL, NULL, 0, 0), EINVAL);
	cr_assert_eq(mr->rkey, key);
	cr_assert(WRITES((uintptr_t)B->buf, key, 100));
	cr_assert_eq(uroce_dereg_mr(mr), 0);
}

PAIR_TEST(api_mr, memory_may_be_unmapped_as_soon_as_dereg_returns, open_both, close_both)
{
	struct ibv_wc wc;
	unsigned refused = 0;

	for (unsigned i = 0; i < 150; i++) {
		uint8_t *mem = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr = uroce_reg_mr(B->pd, mem, 65536, ALL_RIGHTS);
		struct ibv_send_wr wr = {.wr_id = 1,
					 .opcode = i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE};

		join_rc();
		wr.wr.rdma.remote_addr = (uintptr_t)mem;
		wr.wr.rdma.rkey = mr->rkey;
		for (unsigned n = 0; n < 4; n++)
			cr_assert_eq(try_post(A, qa, wr, 0, 60000), 0);
		for (unsigned n = i % 11; n; n--)
			uroce_progress(n & 1 ? B->ctx : A->ctx);
		cr_assert_eq(uroce_dereg_mr(mr), 0);
		munmap(mem, 65536);
		/* If the progress threads were fast, all requests have completed before. */
		wc.status = IBV_WC_SUCCESS;
		for (unsigned n = 0; n < 4; n++) {
			bool failed = wc.status != IBV_WC_SUCCESS;

			wc = next_wc(A);
			if (failed)
				cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
			else if (wc.status != IBV_WC_SUCCESS)
				cr_assert_eq(wc.status, IBV_WC_REM_ACCESS_ERR, "round %u: %s", i,
					     uroce_wc_status_str(wc.status));
			refused += !failed && wc.status != IBV_WC_SUCCESS;
		}
		part();
	}
	cr_assert_gt(refused, 0u, "no region went while it was in use");
}

PAIR_TEST(api_mr, the_senders_own_memory_may_go_too, open_both, close_both)
{
	for (unsigned i = 0; i < 100; i++) {
		uint8_t *mem = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ibv_mr *mr = uroce_reg_mr(A->pd, mem, 65536, ALL_RIGHTS);
		struct ibv_sge sge = {(uintptr_t)mem, 60000, mr->lkey};
		struct ibv_send_wr wr = {.wr_id = i,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE};
		struct ibv_send_wr *bad;

		join_rc();
		wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
		wr.wr.rdma.rkey = B->mr->rkey;
		cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0);
		for (unsigned n = i % 5; n; n--)
			uroce_progress(n & 1 ? B->ctx : A->ctx);
		cr_assert_eq(uroce_dereg_mr(mr), 0);
		munmap(mem, 65536);
		cr_assert_neq(next_wc(A).status, IBV_WC_WR_FLUSH_ERR);
		part();
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

PAIR_TEST(api_mr, keys_reveal_nothing_about_others, open_both, close_both)
{
	enum { KEYS = 600 };
	static uint32_t key[KEYS];
	unsigned same_step = 0, bits[32] = {0};

	for (unsigned i = 0; i < KEYS; i++) {
		struct ibv_mr *mr = uroce_reg_mr(B->pd, B->buf, 64, ALL_RIGHTS);

		cr_assert_not_null(mr);
		key[i] = mr->rkey;
		cr_assert_eq(uroce_dereg_mr(mr), 0);
		for (unsigned b = 0; b < 32; b++)
			bits[b] += key[i] >> b & 1;
		same_step += i > 1 && key[i] - key[i - 1] == key[i - 1] - key[i - 2];
	}
	cr_assert_leq(same_step, 2u, "keys are counted");
	/* Expected: 300 +- 12. A bound of 8 sigma means one false alarm in 10^13. */
	for (unsigned b = 0; b < 32; b++)
		cr_assert(bits[b] > 200 && bits[b] < 400, "bit %u: %u of %u", b, bits[b], KEYS);
	qsort(key, KEYS, sizeof(key[0]), by_value);
	for (unsigned i = 1; i < KEYS; i++)
		cr_assert_neq(key[i], key[i - 1], "a key came twice");
}

PAIR_TEST(api_mr, a_domain_in_use_is_not_given_up, open_both, close_both)
{
	struct ibv_pd *pd = uroce_alloc_pd(A->ctx);
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_mr *mr = uroce_reg_mr(pd, A->buf, 10, 0);
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	cr_assert_eq(uroce_dealloc_pd(pd), EBUSY);
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	qp = uroce_create_qp(pd, &attr);
	cr_assert_eq(uroce_dealloc_pd(pd), EBUSY);
	cr_assert_eq(uroce_destroy_qp(qp), 0);
	srq = uroce_create_srq(pd, &sa);
	cr_assert_eq(uroce_dealloc_pd(pd), EBUSY);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
	cr_assert_eq(uroce_dealloc_pd(pd), 0);
	cr_assert_eq(uroce_close(A->ctx), EBUSY);
}

PAIR_TEST(api_mr, memory_of_another_domain_is_not_sent_from, open_both, close_both)
{
	struct ibv_pd *pd = uroce_alloc_pd(A->ctx);
	struct ibv_mr *mr = uroce_reg_mr(pd, A->buf, 100, ALL_RIGHTS);
	struct ibv_sge sge = {(uintptr_t)A->buf, 10, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	join_rc();
	cr_assert_eq(uroce_post_send(qa, &wr, &bad), 0);
	expect_wc(A, 1, IBV_WC_LOC_PROT_ERR);
	part();
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	cr_assert_eq(uroce_dealloc_pd(pd), 0);
}

PAIR_TEST(api_mr_own, full_tables_are_reported, open_nothing, close_both)
{
	static const char *const few[] = {"transport.max_mr=2", "transport.max_cq=2",
					  "transport.max_qp=2", "transport.max_srq=2",
					  "transport.max_pd=2", NULL};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr qa_attr;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_srq *srq[2];
	struct ibv_pd *pd;

	open_side(A, few); /* takes one PD, CQ and MR */
	qa_attr = qp_attr(A, IBV_QPT_RC);
#define FULL(call)                                                                                 \
	do {                                                                                       \
		errno = 0;                                                                         \
		cr_assert_null(call);                                                              \
		cr_assert_eq(errno, ENOMEM, #call);                                                \
	} while (0)
	mr = uroce_reg_mr(A->pd, A->buf, 1, 0);
	FULL(uroce_reg_mr(A->pd, A->buf, 1, 0));
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	mr = uroce_reg_mr(A->pd, A->buf, 1, 0);
	cr_assert_not_null(mr, "a place came free");
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	cq = uroce_create_cq(A->ctx, 1, NULL, NULL, 0);
	FULL(uroce_create_cq(A->ctx, 1, NULL, NULL, 0));
	cr_assert_eq(uroce_destroy_cq(cq), 0);
	pd = uroce_alloc_pd(A->ctx);
	FULL(uroce_alloc_pd(A->ctx));
	cr_assert_eq(uroce_dealloc_pd(pd), 0);
	for (unsigned i = 0; i < 2; i++) {
		srq[i] = uroce_create_srq(A->pd, &sa);
		qp[i] = uroce_create_qp(A->pd, &qa_attr);
		cr_assert(srq[i] && qp[i]);
	}
	FULL(uroce_create_srq(A->pd, &sa));
	FULL(uroce_create_qp(A->pd, &qa_attr));
#undef FULL
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(uroce_destroy_srq(srq[i]), 0);
		cr_assert_eq(uroce_destroy_qp(qp[i]), 0);
	}
}
