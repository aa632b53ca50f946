/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include <fcntl.h>
#include <unistd.h>

#include "api/device.h"

/* Contexts: what the inline functions of verbs.h find in one, and several of one endpoint. */

static struct side A2; /* a second context of A's endpoint */

static void open_second(void)
{
	open_both();
	A2.ctx = uroce_share(A->ctx);
	cr_assert_not_null(A2.ctx);
	A2.pd = uroce_alloc_pd(A2.ctx);
	A2.cq = uroce_create_cq(A2.ctx, SIDE_CQE, NULL, NULL, 0);
	A2.mr = uroce_reg_mr(A2.pd, A2.buf, SIDE_BUF, ALL_RIGHTS);
	cr_assert(A2.pd && A2.cq && A2.mr);
	cr_assert_eq(fcntl(A->ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(fcntl(A2.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
}

static void close_all(void)
{
	close_side(&A2);
	close_both();
}

/* Behind it is padding. */
#define PORT_ATTR_END (offsetof(struct ibv_port_attr, port_cap_flags2) + sizeof(uint16_t))

static void expect_no_event(struct side *s)
{
	struct ibv_async_event ev;

	cr_expect_eq(uroce_get_async_event(s->ctx, &ev), -1);
	cr_expect_eq(errno, EAGAIN);
}

/* A WRITE from `s` to B, by queue pairs of its own. */
static void write_once(struct side *s)
{
	struct ibv_qp *a = make_qp(s, IBV_QPT_RC), *b = make_qp(B, IBV_QPT_RC);
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_RDMA_WRITE};

	ready(a, s, B, b->qp_num, (struct join){0});
	ready(b, B, s, a->qp_num, (struct join){0});
	fill(s, 0, 3000, 5);
	memset(B->buf, 0, 3000);
	wr.wr.rdma.remote_addr = (uintptr_t)B->buf;
	wr.wr.rdma.rkey = B->mr->rkey;
	cr_assert_eq(try_post(s, a, wr, 0, 3000), 0);
	expect_wc(s, 7, IBV_WC_SUCCESS);
	cr_assert_arr_eq(B->buf, s->buf, 3000);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
}

/* CONTEXT-LAYOUT-01 */
PAIR_TEST(api_context, programs_find_the_extended_context, open_both, close_both)
{
	struct verbs_context *v = verbs_get_ctx(A->ctx);
	const struct ur_ibdev *dev = (const void *)A->ctx->device;

	cr_assert_not_null(v);
	cr_expect_eq(v->sz, sizeof(*v));
	cr_expect_eq(&v->context, A->ctx);
	cr_expect_null(v->priv);
	cr_expect_str_eq(dev->base.name, "uroce0");
	cr_expect_null(dev->ops);
	cr_expect_geq(A->ctx->cmd_fd, 0);
	cr_expect_geq(dup2(A->ctx->cmd_fd, A->ctx->cmd_fd), 0, "a descriptor that is open");
}

PAIR_TEST(api_context, a_port_is_queried_into_structs_of_any_release, open_both, close_both)
{
	struct verbs_context *v = verbs_get_ctx_op(A->ctx, query_port);
	struct ibv_port_attr whole;
	uint8_t room[80];

	cr_assert_not_null(v);
	cr_assert_eq(uroce_query_port(A->ctx, 1, &whole), 0);
	for (size_t bytes = 48; bytes <= 60; bytes += 4) {
		size_t given = bytes < sizeof(whole) ? bytes : sizeof(whole);
		size_t known = given < PORT_ATTR_END ? given : PORT_ATTR_END;

		memset(room, 0xaa, sizeof(room));
		cr_assert_eq(v->query_port(A->ctx, 1, (void *)room, bytes), 0);
		cr_expect_arr_eq(room, &whole, known);
		for (size_t i = given; i < sizeof(room); i++)
			cr_expect_eq(room[i], i < bytes ? 0 : 0xaa, "byte %zu of %zu", i, bytes);
	}
	cr_expect_eq(v->query_port(A->ctx, 2, (void *)room, 52), EINVAL);
}

/* Tools print 0 as "invalid", and programs take it for a failed query. */
PAIR_TEST(api_context, no_attribute_that_programs_look_at_is_zero, open_both, close_both)
{
	struct ibv_device_attr d;
	struct ibv_port_attr p;

	cr_assert_eq(uroce_query_device(A->ctx, &d), 0);
	cr_expect_neq(d.vendor_id, 0);
	cr_assert_eq(uroce_query_port(A->ctx, 1, &p), 0);
	cr_expect_eq(p.state, IBV_PORT_ACTIVE);
	cr_expect_eq(p.phys_state, 5, "LinkUp");
	cr_expect_eq(p.active_width, 2, "4X");
	cr_expect_eq(p.active_speed, 64, "50 Gb/s a lane: shared memory");
	cr_expect_eq(p.max_vl_num, 5, "VL0 to VL14");
	cr_expect(p.port_cap_flags & IBV_PORT_CM_SUP);
	cr_expect_eq(p.flags, IBV_QPF_GRH_REQUIRED);
}

/* The inline functions of verbs.h, which call what the context names. */
PAIR_TEST(api_context, inline_functions_post_and_poll, open_both, close_both)
{
	struct ibv_qp *a = make_qp(A, IBV_QPT_RC), *b = make_qp(B, IBV_QPT_RC);
	struct ibv_sge to = sge_of(B, 0, 100), from = sge_of(A, 0, 100);
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.wr_id = 2,
				   .sg_list = &from,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND},
			   *bad_send;
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;
	int n;

	join(a, b, (struct join){0});
	cr_assert_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(a, &send, &bad_send), 0);
	while (!(n = ibv_poll_cq(B->cq, 1, &wc)) && now_ms() < until)
		progress();
	cr_assert_eq(n, 1);
	cr_expect_eq(wc.wr_id, 1);
	expect_wc(A, 2, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_req_notify_cq(A->cq, 0), 0);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
}

PAIR_TEST(api_context, an_extended_cq_is_read_field_by_field, open_both, close_both)
{
	struct ibv_cq_init_attr_ex ca = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_qp_init_attr qa = qp_attr(A, IBV_QPT_RC);
	struct ibv_cq_ex *ex = ibv_create_cq_ex(A->ctx, &ca);
	struct ibv_poll_cq_attr none = {0}, wrong = {.comp_mask = 1};
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_qp *a, *b = make_qp(B, IBV_QPT_RC);
	int rc;

	cr_assert_not_null(ex);
	qa.send_cq = qa.recv_cq = ibv_cq_ex_to_cq(ex);
	cr_assert_not_null(a = uroce_create_qp(A->pd, &qa));
	join(a, b, (struct join){0});
	cr_expect_eq(ibv_start_poll(ex, &wrong), EINVAL);
	cr_expect_eq(ibv_start_poll(ex, &none), ENOENT);
	cr_expect_eq(ibv_start_poll(ex, &none), ENOENT, "the lock is free again");
	post_recv(A, a, 77, 100, 100);
	cr_assert_eq(
		try_post(B, b,
			 (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x1234},
			 0, 50),
		0);
	expect_wc(B, 0, IBV_WC_SUCCESS);
	while ((rc = ibv_start_poll(ex, &none)) == ENOENT && now_ms() < until)
		progress();
	cr_assert_eq(rc, 0);
	cr_expect_eq(ex->wr_id, 77);
	cr_expect_eq(ex->status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	cr_expect_eq(ibv_wc_read_byte_len(ex), 50);
	cr_expect_eq(ibv_wc_read_imm_data(ex), 0x1234);
	cr_expect_eq(ibv_wc_read_qp_num(ex), a->qp_num);
	cr_expect(ibv_wc_read_wc_flags(ex) & IBV_WC_WITH_IMM);
	cr_expect_eq(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	cr_assert_eq(uroce_destroy_qp(a), 0);
	cr_assert_eq(uroce_destroy_qp(b), 0);
	cr_assert_eq(uroce_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	ca.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	errno = 0;
	cr_expect_null(ibv_create_cq_ex(A->ctx, &ca));
	cr_expect_eq(errno, EOPNOTSUPP);
	ca = (struct ibv_cq_init_attr_ex){.cqe = 0};
	errno = 0;
	cr_expect_null(ibv_create_cq_ex(A->ctx, &ca));
	cr_expect_eq(errno, EINVAL);
}

PAIR_TEST(api_context, what_is_not_there_is_not_supported, open_both, close_both)
{
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = 0};

	errno = 0;
	cr_expect_null(ibv_alloc_dm(A->ctx, &dm));
	cr_expect_eq(errno, EOPNOTSUPP);
	errno = 0;
	cr_expect_null(ibv_open_xrcd(A->ctx, &xrcd));
	cr_expect_eq(errno, EOPNOTSUPP);
}

PAIR_TEST(api_context, the_extended_queries_agree_with_the_others, open_both, close_both)
{
	struct ibv_values_ex first = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, second = first;
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;
	uint64_t start, passed;

	memset(&ex, 0xee, sizeof(ex));
	cr_assert_eq(uroce_query_device(A->ctx, &attr), 0);
	cr_assert_eq(uroce_query_device_ex(A->ctx, NULL, &ex, sizeof(ex)), 0);
	cr_expect_eq(memcmp(&ex.orig_attr, &attr, sizeof(attr)), 0);
	cr_expect_eq(ex.phys_port_cnt_ex, 1u);
	cr_expect_eq(ex.completion_timestamp_mask, 0u);
	cr_expect_eq(ex.max_dm_size, 0u);
	cr_expect_eq(ex.odp_caps.general_caps, 0u);
	cr_expect_eq(ex.device_cap_flags_ex, attr.device_cap_flags);
	/* A shorter struct is not overrun. */
	memset(&ex, 0xee, sizeof(ex));
	cr_assert_eq(uroce_query_device_ex(A->ctx, NULL, &ex, sizeof(attr)), 0);
	cr_expect_eq(ex.phys_port_cnt_ex, 0xeeeeeeeeu);
	cr_expect_eq(uroce_query_device_ex(A->ctx, &input, &ex, sizeof(ex)), EINVAL);
	cr_expect_eq(uroce_query_device_ex(A->ctx, NULL, &ex, 8), EINVAL);

	cr_assert_eq(ibv_query_rt_values_ex(A->ctx, &first), 0);
	start = now_ms();
	while (now_ms() < start + 20)
		progress();
	cr_assert_eq(ibv_query_rt_values_ex(A->ctx, &second), 0);
	passed = (uint64_t)(second.raw_clock.tv_nsec - first.raw_clock.tv_nsec);
	cr_expect_geq(passed, 15000000u, "the clock does not count nanoseconds");
	second.comp_mask = 1u << 5;
	cr_expect_eq(ibv_query_rt_values_ex(A->ctx, &second), EINVAL);
}

/* CONTEXT-SHARE-01 */
PAIR_TEST(api_context, several_contexts_share_an_endpoint, open_second, close_all)
{
	struct uroce_objects o;
	union ibv_gid g1, g2;

	cr_expect_neq(A2.ctx, A->ctx);
	cr_expect_neq(A2.ctx->async_fd, A->ctx->async_fd);
	cr_expect_eq(A2.ctx->device, A->ctx->device);
	cr_assert_eq(uroce_query_gid(A->ctx, 1, 0, &g1), 0);
	cr_assert_eq(uroce_query_gid(A2.ctx, 1, 0, &g2), 0);
	cr_expect_arr_eq(g1.raw, g2.raw, 16);
	write_once(A);
	write_once(&A2);
	cr_assert_eq(uroce_query_objects(A->ctx, &o), 0);
	cr_expect_eq(o.pds, 2, "the endpoint's objects");
}

PAIR_TEST(api_context, a_context_closes_without_its_own_objects_only, open_second, close_all)
{
	struct ibv_context *third = uroce_share(A2.ctx);

	cr_assert_not_null(third);
	cr_expect_eq(uroce_close(third), 0, "the others' objects are not its own");
	cr_expect_eq(uroce_close(A->ctx), EBUSY);
	cr_expect_eq(uroce_close(A2.ctx), EBUSY);
}

PAIR_TEST(api_context, the_endpoint_lives_as_long_as_a_context, open_second, close_all)
{
	close_side(A);
	/* B's peer is still there, by its second context. */
	write_once(&A2);
	close_side(&A2);
	/* The last one is gone: the ring can be opened again. */
	open_side(A, NULL);
	write_once(A);
}

PAIR_TEST(api_context, objects_of_different_contexts_do_not_mix, open_second, close_all)
{
	struct ibv_qp_init_attr attr = qp_attr(A, IBV_QPT_RC);
	struct ibv_comp_channel *ch = uroce_create_comp_channel(A2.ctx);

	errno = 0;
	cr_expect_null(uroce_create_qp(A2.pd, &attr), "CQs of another context");
	cr_expect_eq(errno, EINVAL);
	errno = 0;
	cr_expect_null(uroce_create_cq(A->ctx, 8, NULL, ch, 0), "a channel of another context");
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(uroce_rereg_mr(A->mr, IBV_REREG_MR_CHANGE_PD, A2.pd, NULL, 0, 0), EINVAL);
	cr_assert_eq(uroce_destroy_comp_channel(ch), 0);
}

PAIR_TEST(api_context, an_event_comes_to_the_context_of_its_object, open_second, close_all)
{
	struct ibv_qp *qp = make_qp(&A2, IBV_QPT_RC);

	ur_async_raise(ur_device(A->ctx), IBV_EVENT_COMM_EST, qp);
	expect_no_event(A);
	expect_event(&A2, IBV_EVENT_COMM_EST, qp);
	expect_no_event(&A2);
	ur_async_raise(ur_device(A->ctx), IBV_EVENT_CQ_ERR, A->cq);
	expect_no_event(&A2);
	expect_event(A, IBV_EVENT_CQ_ERR, A->cq);
	cr_assert_eq(uroce_destroy_qp(qp), 0);
}

PAIR_TEST(api_context, an_event_of_the_port_comes_to_every_context, open_second, close_all)
{
	struct ibv_async_event ev;

	ur_async_raise(ur_device(A->ctx), IBV_EVENT_GID_CHANGE, NULL);
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &A2 : A;

		cr_assert_eq(uroce_get_async_event(s->ctx, &ev), 0);
		cr_expect_eq(ev.event_type, IBV_EVENT_GID_CHANGE);
		cr_expect_eq(ev.element.port_num, 1);
		uroce_ack_async_event(&ev);
		expect_no_event(s);
	}
}

/* UCX passes a CPU's number; a layer above may report as many vectors as there are CPUs. */
PAIR_TEST(api_context, vectors_beyond_the_workers_are_counted_modulo, open_nothing, close_both)
{
	static const char *const two[] = {"worker.count=2", NULL};

	open_side(A, two);
	open_side(B, two);
	A->ctx->num_comp_vectors = 7;
	for (int i = 0; i < 7; i++) {
		struct ibv_cq *cq = uroce_create_cq(A->ctx, 8, NULL, NULL, i);

		cr_assert_not_null(cq);
		cr_expect_eq(UR_API(cq, cq)->worker, ur_device(A->ctx)->workers[i % 2]);
		cr_assert_eq(uroce_destroy_cq(cq), 0);
	}
	errno = 0;
	cr_expect_null(uroce_create_cq(A->ctx, 8, NULL, NULL, 7));
	cr_expect_eq(errno, EINVAL);
}
