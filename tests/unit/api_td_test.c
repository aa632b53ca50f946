/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <pthread.h>

#include "api/device.h"

/* Thread domains and parent domains, with the inline functions of verbs.h. */

static struct ibv_td *td;
static struct ibv_pd *parent;
static struct ibv_cq_ex *cq;
static struct ibv_srq *srq;
static struct ibv_qp *with_srq, *with_rq, *b_srq, *b_rq;
static struct ibv_qp_ex *ex;

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *thread)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = thread};

	return ibv_alloc_parent_domain(A->ctx, &attr);
}

static struct ibv_td *new_td(void)
{
	struct ibv_td_init_attr attr = {0};
	struct ibv_td *thread = ibv_alloc_td(A->ctx, &attr);

	cr_assert_not_null(thread);
	return thread;
}

static struct ibv_cq_ex *cq_in(struct ibv_pd *domain, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | (domain ? IBV_CQ_INIT_ATTR_MASK_PD : 0),
		.flags = flags,
		.parent_domain = domain,
	};

	return ibv_create_cq_ex(A->ctx, &attr);
}

static struct ibv_qp *qp_in(struct ibv_pd *domain, struct ibv_srq *shared)
{
	struct ibv_qp_init_attr a = qp_attr(A, IBV_QPT_RC);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.srq = shared,
		.cap = a.cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = domain,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(A->ctx, &attr);

	cr_assert_not_null(qp, "%s", strerror(errno));
	return qp;
}

/* A's objects in the domain, each kind that is posted to or polled; joined to queue pairs of B. */
static void make_objects(struct ibv_pd *domain, struct ibv_cq_ex *polled)
{
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 8, .max_sge = 1}};

	cr_assert_not_null(domain);
	cr_assert_not_null(polled);
	cq = polled;
	srq = uroce_create_srq(domain, &sa);
	cr_assert_not_null(srq);
	with_srq = qp_in(domain, srq);
	with_rq = qp_in(domain, NULL);
	ex = uroce_qp_to_qp_ex(with_rq);
	b_srq = make_qp(B, IBV_QPT_RC);
	b_rq = make_qp(B, IBV_QPT_RC);
	join(with_srq, b_srq, (struct join){0});
	join(with_rq, b_rq, (struct join){0});
}

static void destroy_objects(void)
{
	cr_assert_eq(uroce_destroy_qp(with_srq), 0);
	cr_assert_eq(uroce_destroy_qp(with_rq), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
	cr_assert_eq(uroce_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	cr_assert_eq(uroce_destroy_qp(b_srq), 0);
	cr_assert_eq(uroce_destroy_qp(b_rq), 0);
}

/*
 * Puts a held mutex in place of a lock that nobody uses now. If this thread takes it meanwhile, it is refused, and gives it
 * back: then it is not held at the end.
 */
static void hold(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_destroy(lock);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	cr_assert_eq(pthread_mutex_lock(lock), 0);
}

/* Whether the lock was taken between hold() and this call. */
static bool was_taken(pthread_mutex_t *lock)
{
	return pthread_mutex_unlock(lock) == EPERM;
}

static void take_wc(uint64_t id)
{
	struct ibv_wc wc = next_wc_of(ibv_cq_ex_to_cq(cq));

	cr_assert_eq(wc.wr_id, id);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", uroce_wc_status_str(wc.status));
}

static void post_each_way(void)
{
	struct ibv_sge sge = sge_of(A, 2048, 100);
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;

	fill(A, 0, 200, 9);
	post(A, with_srq, 1, IBV_WR_RDMA_WRITE, 0, 100);
	take_wc(1);
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, B->mr->rkey, (uintptr_t)B->buf + 100);
	ibv_wr_set_sge(ex, A->mr->lkey, (uintptr_t)A->buf + 100, 100);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	take_wc(2);
	cr_expect_arr_eq(A->buf, B->buf, 200);
	cr_assert_eq(uroce_post_srq_recv(srq, &wr, &bad), 0);
	post_recv(A, with_rq, 4, 3072, 100);
	post(B, b_srq, 5, IBV_WR_SEND, 0, 60);
	take_wc(3);
	post(B, b_rq, 6, IBV_WR_SEND, 60, 70);
	take_wc(4);
	expect_wc(B, 5, IBV_WC_SUCCESS);
	expect_wc(B, 6, IBV_WC_SUCCESS);
	cr_expect_arr_eq(A->buf + 2048, B->buf, 60);
	cr_expect_arr_eq(A->buf + 3072, B->buf + 60, 70);
}

/* Posts and polls, and checks whether the locks of queue pairs and SRQ, and that of the CQ, were taken. */
static void expect_locks(bool posting, bool polling)
{
	struct ur_api_qp *first = UR_API(qp, with_srq), *second = UR_API(qp, with_rq);
	struct ur_api_cq *polled = UR_API(cq, ibv_cq_ex_to_cq(cq));
	struct ibv_poll_cq_attr none = {0};

	hold(&first->sq_lock);
	hold(&second->sq_lock);
	hold(&second->rq_lock);
	hold(&UR_API(srq, srq)->lock);
	hold(&polled->lock);
	post_each_way();
	cr_expect_eq(was_taken(&first->sq_lock), posting, "post_send");
	cr_expect_eq(was_taken(&second->sq_lock), posting, "wr_start");
	cr_expect_eq(was_taken(&second->rq_lock), posting, "post_recv");
	cr_expect_eq(was_taken(&UR_API(srq, srq)->lock), posting, "post_srq_recv");
	cr_expect_eq(was_taken(&polled->lock), polling, "poll_cq");
	hold(&polled->lock);
	cr_expect_eq(ibv_start_poll(cq, &none), ENOENT);
	cr_expect_eq(was_taken(&polled->lock), polling, "start_poll");
}

/* TD-LOCK-01 */
PAIR_TEST(api_td, objects_of_a_thread_domain_take_no_lock, open_both, close_both)
{
	td = new_td();
	parent = parent_of(A->pd, td);
	make_objects(parent, cq_in(parent, 0));
	expect_locks(false, false);
	destroy_objects();
	cr_assert_eq(uroce_dealloc_pd(parent), 0);
	cr_assert_eq(ibv_dealloc_td(td), 0);
}

PAIR_TEST(api_td, objects_of_a_parent_domain_alone_take_their_locks, open_both, close_both)
{
	parent = parent_of(A->pd, NULL);
	make_objects(parent, cq_in(parent, 0));
	expect_locks(true, true);
	destroy_objects();
	cr_assert_eq(uroce_dealloc_pd(parent), 0);
}

PAIR_TEST(api_td, a_single_threaded_cq_takes_no_lock, open_both, close_both)
{
	make_objects(A->pd, cq_in(NULL, IBV_CREATE_CQ_ATTR_SINGLE_THREADED));
	expect_locks(true, false);
	destroy_objects();
}

static const char *const one_thread[] = {"worker.thread_safe=no", NULL};

static void open_one_thread(void)
{
	open_side(A, one_thread);
	open_side(B, one_thread);
}

PAIR_TEST(api_td, nothing_takes_a_lock_where_the_endpoint_is_not_thread_safe, open_one_thread,
	  close_both)
{
	make_objects(A->pd, cq_in(NULL, 0));
	expect_locks(false, false);
	destroy_objects();
}

/* TD-PARENT-01 */
PAIR_TEST(api_td, a_parent_domain_stands_for_its_protection_domain, open_both, close_both)
{
	struct ibv_mw_bind bind = {.wr_id = 4, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_RDMA_WRITE};

	parent = parent_of(A->pd, NULL);
	make_objects(parent, cq_in(NULL, 0));
	/* The region and the window of one handle, the queue pair of the other. */
	mr = uroce_reg_mr(A->pd, A->buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = uroce_alloc_mw(A->pd, IBV_MW_TYPE_1);
	cr_assert(mr && mw);
	bind.bind_info = (struct ibv_mw_bind_info){.mr = mr,
						   .addr = (uintptr_t)A->buf,
						   .length = 100,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	cr_assert_eq(uroce_bind_mw(with_rq, mw, &bind), 0);
	take_wc(4);
	fill(B, 0, 100, 77);
	wr.wr.rdma.remote_addr = (uintptr_t)A->buf;
	wr.wr.rdma.rkey = mw->rkey;
	cr_assert_eq(try_post(B, b_rq, wr, 0, 100), 0);
	expect_wc(B, 5, IBV_WC_SUCCESS);
	cr_expect_arr_eq(A->buf, B->buf, 100);
	cr_assert_eq(uroce_dealloc_mw(mw), 0);
	cr_assert_eq(uroce_dereg_mr(mr), 0);
	destroy_objects();
	cr_assert_eq(uroce_dealloc_pd(parent), 0);
}

PAIR_TEST(api_td, another_protection_domain_stays_another, open_both, close_both)
{
	struct ibv_pd *other = uroce_alloc_pd(A->ctx);
	struct ibv_wc wc;

	cr_assert_not_null(other);
	parent = parent_of(other, NULL);
	make_objects(parent, cq_in(NULL, 0));
	post(A, with_rq, 1, IBV_WR_RDMA_WRITE, 0, 100); /* A's region is not of this domain */
	wc = next_wc_of(ibv_cq_ex_to_cq(cq));
	cr_expect_eq(wc.status, IBV_WC_LOC_PROT_ERR, "%s", uroce_wc_status_str(wc.status));
	destroy_objects();
	cr_assert_eq(uroce_dealloc_pd(parent), 0);
	cr_assert_eq(uroce_dealloc_pd(other), 0);
}

PAIR_TEST(api_td, what_is_in_use_stays, open_both, close_both)
{
	struct ibv_pd *pd = uroce_alloc_pd(A->ctx);
	struct uroce_objects o;

	td = new_td();
	parent = parent_of(pd, td);
	cq = cq_in(parent, 0);
	cr_assert(parent && cq);
	cr_assert_eq(uroce_query_objects(A->ctx, &o), 0);
	cr_expect_eq(o.tds, 1);
	cr_expect_eq(o.pds, 3, "a parent domain counts");
	cr_expect_eq(uroce_dealloc_pd(pd), EBUSY, "the parent domain uses it");
	cr_expect_eq(ibv_dealloc_td(td), EBUSY, "the parent domain uses it");
	cr_expect_eq(uroce_dealloc_pd(parent), EBUSY, "the CQ is in it");
	cr_assert_eq(uroce_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	cr_expect_eq(uroce_dealloc_pd(parent), 0);
	cr_expect_eq(uroce_dealloc_pd(pd), 0);
	cr_expect_eq(uroce_close(A->ctx), EBUSY, "the thread domain is left");
	cr_expect_eq(ibv_dealloc_td(td), 0);
	cr_assert_eq(uroce_query_objects(A->ctx, &o), 0);
	cr_expect_eq(o.tds, 0);
	cr_expect_eq(o.pds, 1);
}

static void expect_refused(struct ibv_parent_domain_init_attr attr, int err)
{
	errno = 0;
	cr_expect_null(ibv_alloc_parent_domain(A->ctx, &attr));
	cr_expect_eq(errno, err);
}

PAIR_TEST(api_td, what_does_not_fit_is_refused, open_both, close_both)
{
	struct ibv_td_init_attr unknown = {.comp_mask = 1};
	struct ibv_context *second = uroce_share(A->ctx);
	struct ibv_pd *of_second = uroce_alloc_pd(second);
	struct ibv_td_init_attr none = {0};
	struct ibv_td *td_of_second = ibv_alloc_td(second, &none);

	cr_assert(second && of_second && td_of_second);
	errno = 0;
	cr_expect_null(ibv_alloc_td(A->ctx, &unknown));
	cr_expect_eq(errno, EOPNOTSUPP);
	parent = parent_of(A->pd, NULL);
	cr_assert_not_null(parent);
	expect_refused((struct ibv_parent_domain_init_attr){.pd = NULL}, EINVAL);
	expect_refused((struct ibv_parent_domain_init_attr){.pd = parent}, EINVAL);
	expect_refused((struct ibv_parent_domain_init_attr){.pd = of_second}, EINVAL);
	expect_refused((struct ibv_parent_domain_init_attr){.pd = A->pd, .td = td_of_second},
		       EINVAL);
	expect_refused(
		(struct ibv_parent_domain_init_attr){
			.pd = A->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS},
		EOPNOTSUPP);
	errno = 0;
	cr_expect_null(cq_in(A->pd, 0), "not a parent domain");
	cr_expect_eq(errno, EINVAL);
	cr_assert_eq(uroce_dealloc_pd(parent), 0);
	cr_assert_eq(uroce_dealloc_pd(of_second), 0);
	cr_assert_eq(ibv_dealloc_td(td_of_second), 0);
	cr_assert_eq(uroce_close(second), 0);
}
