/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_pair.h"

#include "api/device.h"
#include "engine/query.h"

#define GRH	  40
#define GROUP_QPN 0xffffff

static const union ibv_gid group4 = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const union ibv_gid group6 = {.raw = {0xff, 0x15, [14] = 0x12, 0x34}};

static void open_two_workers(void)
{
	static const char *const a[] = {"address.ipv6=fd00:77::a/64", "worker.count=2", NULL};
	static const char *const b[] = {"address.ipv6=fd00:77::b/64", "worker.count=2", NULL};

	open_side(A, a);
	open_side(B, b);
}

/* Of the worker that serves this completion vector. */
static struct ibv_qp *make_ud(struct side *s, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = qp_attr(s, IBV_QPT_UD);
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	qp = uroce_create_qp(s->pd, &attr);
	cr_assert_not_null(qp, "%s", strerror(errno));
	ready(qp, s, s, 0, (struct join){0});
	return qp;
}

static struct ibv_ah *ah_of(struct side *s, const union ibv_gid *group)
{
	struct ibv_ah_attr av = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	av.grh.dgid = *group;
	av.grh.sgid_index = group->raw[0] == 0xff;
	ah = uroce_create_ah(s->pd, &av);
	cr_assert_not_null(ah, "%s", strerror(errno));
	return ah;
}

static void send_to(struct side *s, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qkey)
{
	struct ibv_send_wr wr = {.wr_id = 99, .opcode = IBV_WR_SEND};

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = GROUP_QPN;
	wr.wr.ud.remote_qkey = qkey;
	cr_assert_eq(try_post(s, qp, wr, 0, 500), 0);
}

static void expect_copy(struct ibv_cq *cq, uint64_t id, const struct ibv_qp *from, uint32_t at)
{
	struct ibv_wc wc = next_wc_of(cq);

	cr_assert_eq(wc.wr_id, id);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, GRH + 500u);
	cr_assert_eq(wc.src_qp, from->qp_num);
	cr_assert(wc.wc_flags & IBV_WC_GRH);
	cr_assert_eq(memcmp(A->buf, B->buf + at + GRH, 500), 0);
}

/* By the workers' rounds and by their engines. */
static uint64_t drops(struct side *s, enum ur_drop reason)
{
	struct ur_device *dev = ur_device(s->ctx);
	uint64_t cnt = 0;

	for (unsigned i = 0; i < dev->worker_cnt; i++)
		cnt += ur_worker_counters(dev->workers[i])->drops[reason] +
		       ur_engine_counters(ur_worker_engine(dev->workers[i]))->drops[reason];
	return cnt;
}

/* MCAST-RECV-01, MCAST-TOUR-01: two queue pairs of one worker and one of another, each gets the datagram. */
static void every_queue_pair_gets_a_copy(const union ibv_gid *group)
{
	struct ibv_cq *second = uroce_create_cq(B->ctx, SIDE_CQE, NULL, NULL, 1);
	struct ibv_cq *third = uroce_create_cq(B->ctx, SIDE_CQE, NULL, NULL, 1);
	struct ibv_qp *from = make_ud(A, A->cq), *to[3];
	struct ibv_cq *cq[3] = {B->cq, second, third};
	struct ibv_ah *ah = ah_of(A, group);

	cr_assert(second && third);
	fill(A, 0, 500, 7);
	for (unsigned i = 0; i < 3; i++) {
		to[i] = make_ud(B, cq[i]);
		cr_assert_eq(uroce_attach_mcast(to[i], group, 0), 0);
		post_recv(B, to[i], 10 + i, 4096 * (i + 1), GRH + 500);
	}
	send_to(A, from, ah, QKEY);
	expect_wc(A, 99, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		expect_copy(cq[i], 10 + i, from, 4096 * (i + 1));
	cr_assert_eq(memcmp(B->buf + 4096 + (group->raw[0] ? 24 : 36),
			    group->raw + (group->raw[0] ? 0 : 12), group->raw[0] ? 16 : 4),
		     0, "the group is the destination");
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(uroce_detach_mcast(to[i], group, 0), 0);
		cr_assert_eq(uroce_destroy_qp(to[i]), 0);
	}
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	cr_assert_eq(uroce_destroy_qp(from), 0);
	cr_assert_eq(uroce_destroy_cq(second), 0);
	cr_assert_eq(uroce_destroy_cq(third), 0);
}

PAIR_TEST(api_mcast, every_queue_pair_of_an_ipv4_group_gets_a_copy, open_two_workers, close_both)
{
	every_queue_pair_gets_a_copy(&group4);
}

PAIR_TEST(api_mcast, every_queue_pair_of_an_ipv6_group_gets_a_copy, open_two_workers, close_both)
{
	every_queue_pair_gets_a_copy(&group6);
}

/* MCAST-RECV-01, MCAST-ADDR-01 */
PAIR_TEST(api_mcast, what_does_not_fit_is_counted_and_takes_no_receive, open_two_workers,
	  close_both)
{
	struct ibv_qp *from = make_ud(A, A->cq), *to = make_ud(B, B->cq);
	struct ibv_ah *ah = ah_of(A, &group4);
	struct ibv_send_wr wr = {.wr_id = 99, .opcode = IBV_WR_SEND};

	post_recv(B, to, 1, 4096, GRH + 500);
	send_to(A, from, ah, QKEY);
	expect_no_wc(B);
	cr_assert_eq(drops(B, UR_DROP_GROUP), 1u, "no queue pair is attached");
	cr_assert_eq(uroce_attach_mcast(to, &group4, 0), 0);
	send_to(A, from, ah, QKEY + 1);
	expect_no_wc(B);
	cr_assert_eq(drops(B, UR_DROP_QKEY), 1u);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	cr_assert_eq(try_post(A, from, wr, 0, 500), 0);
	expect_no_wc(B);
	cr_assert_eq(drops(B, UR_DROP_GROUP), 2u, "a group's address, and a queue pair's number");
	send_to(A, from, ah, QKEY);
	for (unsigned i = 0; i < 4; i++)
		expect_wc(A, 99, IBV_WC_SUCCESS);
	expect_copy(B->cq, 1, from, 4096);
	cr_assert_eq(uroce_detach_mcast(to, &group4, 0), 0);
	send_to(A, from, ah, QKEY);
	expect_wc(A, 99, IBV_WC_SUCCESS);
	expect_no_wc(B);
	cr_assert_eq(drops(B, UR_DROP_GROUP), 3u, "detached");
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	cr_assert_eq(uroce_destroy_qp(from), 0);
	cr_assert_eq(uroce_destroy_qp(to), 0);
}

/* MCAST-LOOP-01, MCAST-LOOP-02 */
PAIR_TEST(api_mcast, an_endpoint_hears_itself_unless_the_queue_pair_objects, open_two_workers,
	  close_both)
{
	struct ibv_qp_init_attr plain = qp_attr(B, IBV_QPT_UD);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = B->cq,
		.recv_cq = B->cq,
		.cap = plain.cap,
		.sq_sig_all = plain.sq_sig_all,
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = B->pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};
	struct ibv_cq *cq = uroce_create_cq(B->ctx, SIDE_CQE, NULL, NULL, 1);
	struct ibv_qp *deaf = uroce_create_qp_ex(B->ctx, &attr), *other = make_ud(B, cq);
	struct ibv_ah *ah = ah_of(B, &group4);
	struct ibv_wc wc;

	cr_assert_not_null(deaf, "%s", strerror(errno));
	ready(deaf, B, B, 0, (struct join){0});
	cr_assert_eq(uroce_attach_mcast(deaf, &group4, 0), 0);
	cr_assert_eq(uroce_attach_mcast(other, &group4, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		post_recv(B, deaf, 20 + i, 4096 + 1000 * i, GRH + 500);
		post_recv(B, other, 30 + i, 8192 + 1000 * i, GRH + 500);
	}
	send_to(B, deaf, ah, QKEY);
	expect_wc(B, 99, IBV_WC_SUCCESS);
	cr_assert_eq(next_wc_of(cq).wr_id, 30u);
	expect_no_wc(B);
	send_to(B, other, ah, QKEY);
	do
		wc = next_wc_of(cq);
	while (wc.wr_id == 99);
	cr_assert_eq(wc.wr_id, 31u, "its own");
	expect_wc(B, 20, IBV_WC_SUCCESS);
	cr_assert_eq(uroce_detach_mcast(deaf, &group4, 0), 0);
	cr_assert_eq(uroce_detach_mcast(other, &group4, 0), 0);
	cr_assert_eq(uroce_destroy_ah(ah), 0);
	cr_assert_eq(uroce_destroy_qp(deaf), 0);
	cr_assert_eq(uroce_destroy_qp(other), 0);
	cr_assert_eq(uroce_destroy_cq(cq), 0);
}

/* MCAST-ATTACH-01 */
PAIR_TEST(api_mcast, attachments_have_rules_and_limits, open_two_workers, close_both)
{
	struct ibv_qp *ud = make_ud(B, B->cq), *rc = make_qp(B, IBV_QPT_RC);
	union ibv_gid host = {.raw = {[10] = 0xff, 0xff, 10, 77, 0, 1}}, g = group6;
	struct ibv_device_attr limits;
	int i;

	cr_assert_eq(uroce_query_device(B->ctx, &limits), 0);
	cr_assert_eq(uroce_attach_mcast(rc, &group4, 0), EINVAL);
	cr_assert_eq(uroce_attach_mcast(ud, &host, 0), EINVAL);
	cr_assert_eq(uroce_detach_mcast(ud, &group4, 0), EINVAL);
	cr_assert_eq(uroce_attach_mcast(ud, &group4, 0), 0);
	cr_assert_eq(uroce_attach_mcast(ud, &group4, 0), 0, "once more is the same");
	cr_assert_eq(uroce_destroy_qp(ud), EBUSY);
	cr_assert_eq(uroce_detach_mcast(ud, &group4, 0), 0);
	cr_assert_eq(uroce_detach_mcast(ud, &group4, 0), EINVAL);
	for (i = 0; i < limits.max_mcast_grp; i++) {
		g.raw[13] = (uint8_t)i;
		cr_assert_eq(uroce_attach_mcast(ud, &g, 0), 0, "group %d", i);
	}
	cr_assert_eq(uroce_attach_mcast(ud, &group4, 0), ENOMEM);
	cr_assert_eq(uroce_join_mcast(B->ctx, &g), 0, "of a group that it is in");
	while (i--) {
		g.raw[13] = (uint8_t)i;
		cr_assert_eq(uroce_detach_mcast(ud, &g, 0), 0);
	}
	g.raw[13] = (uint8_t)(limits.max_mcast_grp - 1);
	cr_assert_eq(uroce_leave_mcast(B->ctx, &g), 0);
	cr_assert_eq(uroce_leave_mcast(B->ctx, &g), EINVAL);
	cr_assert_eq(uroce_destroy_qp(ud), 0);
	cr_assert_eq(uroce_destroy_qp(rc), 0);
}
