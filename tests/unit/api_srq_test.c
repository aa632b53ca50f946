/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#define QPS 8

static struct ibv_srq *new_srq(struct side *s, uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = 2}};
	struct ibv_srq *srq = uroce_create_srq(s->pd, &attr);

	cr_assert_not_null(srq, "%s", strerror(errno));
	return srq;
}

static struct ibv_qp *srq_qp(struct side *s, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = qp_attr(s, IBV_QPT_RC);
	struct ibv_qp *qp;

	attr.srq = srq;
	qp = uroce_create_qp(s->pd, &attr);
	cr_assert_not_null(qp, "%s", strerror(errno));
	return qp;
}

static int try_srq_recv(struct side *s, struct ibv_srq *srq, uint64_t id, uint32_t off)
{
	struct ibv_sge sge = sge_of(s, off, 1024);
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return uroce_post_srq_recv(srq, &wr, &bad);
}

static void srq_recv(struct side *s, struct ibv_srq *srq, uint64_t id)
{
	cr_assert_eq(try_srq_recv(s, srq, id, (uint32_t)(id % 32) * 1024), 0);
}

PAIR_TEST(api_srq, many_qps_share_one_queue_in_order, open_both, close_both)
{
	struct ibv_srq *srq = new_srq(B, 64);
	struct ibv_qp *a[QPS], *b[QPS];
	unsigned next = 0;

	for (unsigned i = 0; i < QPS; i++) {
		a[i] = make_qp(A, IBV_QPT_RC);
		b[i] = srq_qp(B, srq);
		join(a[i], b[i], (struct join){0});
	}
	cr_assert_eq(try_recv(B, b[0], 1, 0, 10), EINVAL, "its receives are the SRQ's");
	for (unsigned i = 0; i < 64; i++)
		srq_recv(B, srq, i);
	cr_assert_eq(try_srq_recv(B, srq, 64, 0), ENOMEM);
	for (unsigned i = 0; i < 64; i++) {
		unsigned from = (i * 5) % QPS;
		struct ibv_wc wc;

		fill(A, 0, 900, (uint8_t)i);
		post(A, a[from], i, IBV_WR_SEND, 0, 900);
		expect_wc(A, i, IBV_WC_SUCCESS);
		wc = expect_wc(B, next++, IBV_WC_SUCCESS);
		cr_assert_eq(wc.qp_num, b[from]->qp_num);
		cr_assert_eq(memcmp(A->buf, B->buf + (i % 32) * 1024, 900), 0);
	}
	cr_assert_eq(uroce_destroy_srq(srq), EBUSY);
	for (unsigned i = 0; i < QPS; i++) {
		cr_assert_eq(uroce_destroy_qp(a[i]), 0);
		cr_assert_eq(uroce_destroy_qp(b[i]), 0);
	}
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

PAIR_TEST(api_srq, the_limit_event_comes_once_each_time_the_limit_is_set, open_both, close_both)
{
	struct ibv_srq *srq = new_srq(B, 8);
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = srq_qp(B, srq);

	join(a, b, (struct join){0});
	for (unsigned i = 0; i < 3; i++)
		srq_recv(B, srq, i);
	cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(uroce_query_srq(srq, &attr), 0);
	cr_assert_eq(attr.srq_limit, 2u);
	cr_assert_eq(attr.max_wr, 8u);
	cr_assert_eq(attr.max_sge, 2u);
	for (unsigned i = 0; i < 3; i++) {
		post(A, a, i, IBV_WR_SEND, 0, 10);
		expect_wc(A, i, IBV_WC_SUCCESS);
		expect_wc(B, i, IBV_WC_SUCCESS);
	}
	expect_event(B, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	cr_assert_eq(uroce_query_srq(srq, &attr), 0);
	cr_assert_eq(attr.srq_limit, 0u, "it is told once");
	/* Sets the limit while the SRQ is already below it. */
	attr.srq_limit = 1;
	cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	expect_event(B, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	attr.srq_limit = 9;
	cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL, "more than it holds");
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

PAIR_TEST(api_srq, a_resize_keeps_what_is_posted, open_both, close_both)
{
	struct ibv_srq *srq = new_srq(B, 8);
	struct ibv_srq_attr attr = {.max_wr = 4};
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = srq_qp(B, srq);
	unsigned posted = 0, used = 0;

	join(a, b, (struct join){0});
	while (posted < 8)
		srq_recv(B, srq, posted++);
	cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL, "8 are posted");
	for (unsigned round = 0; round < 60; round++) {
		static const uint32_t sizes[] = {100, 8, 5, 31, 4, 64};

		while (posted - used > 4) {
			post(A, a, used, IBV_WR_SEND, 0, 10);
			expect_wc(A, used, IBV_WC_SUCCESS);
			expect_wc(B, used++, IBV_WC_SUCCESS);
		}
		post(A, a, used, IBV_WR_SEND, 0, 10); /* one in flight */
		attr.max_wr = sizes[round % 6];
		cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
		expect_wc(A, used, IBV_WC_SUCCESS);
		expect_wc(B, used++, IBV_WC_SUCCESS);
		while (try_srq_recv(B, srq, posted, (posted % 32) * 1024) == 0)
			posted++;
		cr_assert_eq(posted - used, attr.max_wr);
	}
	attr.max_wr = 0;
	cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = UINT32_MAX;
	cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	cr_assert_eq(uroce_modify_srq(srq, &attr, 1 << 20), EINVAL);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

PAIR_TEST(api_srq, a_qp_in_error_leaves_the_others_their_receives, open_both, close_both)
{
	struct ibv_srq *srq = new_srq(B, 8);
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = srq_qp(B, srq), *idle = srq_qp(B, srq);

	join(a, b, (struct join){0});
	srq_recv(B, srq, 1);
	cr_assert_eq(to_init(idle, 0), 0);
	cr_assert_eq(to_state(idle, IBV_QPS_ERR), 0);
	expect_event(B, IBV_EVENT_QP_LAST_WQE_REACHED, idle);
	expect_no_wc(B);
	post(A, a, 2, IBV_WR_SEND, 0, 10);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	expect_wc(B, 1, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	cr_assert_eq(uroce_destroy_qp(idle), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

PAIR_TEST(api_srq, an_empty_queue_makes_the_sender_wait, open_both, close_both)
{
	struct ibv_srq *srq = new_srq(B, 8);
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = srq_qp(B, srq);

	join(a, b, (struct join){0});
	post(A, a, 1, IBV_WR_SEND, 0, 1000);
	expect_no_wc(A);
	srq_recv(B, srq, 2);
	expect_wc(A, 1, IBV_WC_SUCCESS);
	expect_wc(B, 2, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	cr_assert_eq(uroce_destroy_srq(srq), 0);
}

PAIR_TEST(api_srq, is_destroyed_with_messages_under_way, open_both, close_both)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 200; i++) {
		struct ibv_srq *srq = new_srq(B, 8);
		struct ibv_srq_attr attr = {.srq_limit = 5};
		struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = srq_qp(B, srq);

		join(a, b, (struct join){.timeout = 8, .retry_cnt = 1});
		for (unsigned n = 0; n < 8; n++)
			srq_recv(B, srq, n);
		cr_assert_eq(uroce_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
		for (unsigned n = 0; n < 8; n++)
			post(A, a, n, IBV_WR_SEND, 0, 1000);
		for (unsigned n = i % 7; n; n--)
			progress();
		cr_assert_eq(uroce_destroy_qp(b), 0);
		cr_assert_eq(uroce_destroy_srq(srq), 0);
		progress();
		cr_assert_eq(uroce_destroy_qp(a), 0);
		while (uroce_poll_cq(A->cq, 1, &wc) > 0 || uroce_poll_cq(B->cq, 1, &wc) > 0)
			;
	}
}

PAIR_TEST(api_srq, wrong_attributes_make_no_srq, open_both, close_both)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 0, .max_sge = 1}};

	cr_assert_null(uroce_create_srq(B->pd, &attr));
	cr_assert_eq(errno, EINVAL);
	attr.attr.max_wr = 1 << 30;
	cr_assert_null(uroce_create_srq(B->pd, &attr));
	cr_assert_eq(errno, EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = 1000;
	cr_assert_null(uroce_create_srq(B->pd, &attr));
	cr_assert_eq(errno, EINVAL);
}
