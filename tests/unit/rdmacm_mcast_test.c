/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmacm_pair.h"

TestSuite(rdmacm_mcast, .init = setup, .timeout = 240);

#define GROUP4 "239.1.2.3"
#define GROUP6 "ff15::1234"

/* The callocs_left-th calloc() of librdmacm from now on finds no memory; 0: none. */
static unsigned callocs_left;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return callocs_left && !--callocs_left ? NULL : __real_calloc(n, size);
}

static struct rdma_cm_id *bound(enum side s, const char *ip)
{
	struct rdma_cm_id *id = new_id(s, RDMA_PS_UDP);

	cr_assert_eq(try_bind(id, ip, 0), 0);
	return id;
}

static void send_to_group(struct rdma_cm_id *id, struct rdma_ud_param *to, uint32_t imm)
{
	struct ibv_ah *ah = ibv_create_ah(id->pd, &to->ah_attr);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND_WITH_IMM,
				       .imm_data = htonl(imm),
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	cr_assert_not_null(ah);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = to->qkey;
	cr_assert_eq(ibv_post_send(id->qp, &wr, &bad), 0);
	while (!ibv_poll_cq(id->send_cq, 1, &wc))
		;
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
}

/* The event has what a datagram to the group needs, and the queue pair of the full member receives it. */
static void join_and_send(const char *group, const char *ip_a, const char *ip_b)
{
	struct rdma_cm_id *a = bound(A, ip_a), *b = bound(B, ip_b);
	struct rdma_cm_join_mc_attr_ex only_send = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER};
	union addr to = addr(group, 0);
	static uint8_t buffer[40];
	struct rdma_cm_event *e;
	struct ibv_mr *mr;
	struct ibv_sge sge = {(uintptr_t)buffer, sizeof(buffer), 0};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_wc wc;
	int context;

	make_qp(a);
	make_qp(b);
	mr = ibv_reg_mr(b->pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr);
	sge.lkey = mr->lkey;
	cr_assert_eq(ibv_post_recv(b->qp, &wr, &bad), 0);
	cr_assert_eq(rdma_join_multicast(b, &to.sa, &context), 0, "%s", strerror(errno));
	e = next_event(ch[B], RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(e->id, b);
	cr_expect_eq(e->param.ud.private_data, (void *)&context);
	rdma_ack_cm_event(e);
	only_send.addr = &to.sa;
	cr_assert_eq(rdma_join_multicast_ex(a, &only_send, NULL), 0, "%s", strerror(errno));
	e = next_event(ch[A], RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(e->param.ud.qp_num, 0xffffff);
	cr_expect_eq(e->param.ud.qkey, RDMA_UDP_QKEY);
	send_to_group(a, &e->param.ud, 77);
	rdma_ack_cm_event(e);
	while (!ibv_poll_cq(b->recv_cq, 1, &wc))
		;
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(ntohl(wc.imm_data), 77);
	cr_assert_eq(wc.src_qp, a->qp->qp_num);
	cr_assert_eq(rdma_leave_multicast(a, &to.sa), 0);
	cr_assert_eq(rdma_leave_multicast(b, &to.sa), 0);
	cr_assert_eq(rdma_leave_multicast(b, &to.sa), -1);
	cr_assert_eq(errno, EADDRNOTAVAIL);
	ibv_dereg_mr(mr);
	free_id(a);
	free_id(b);
}

Test(rdmacm_mcast, members_of_an_ipv4_group_receive_what_others_send)
{
	join_and_send(GROUP4, IP_A, IP_B);
}

Test(rdmacm_mcast, members_of_an_ipv6_group_receive_what_others_send)
{
	join_and_send(GROUP6, IP6_A, IP6_B);
}

Test(rdmacm_mcast, joins_that_make_no_sense_are_refused)
{
	struct rdma_cm_id *id = bound(A, IP_A), *rc = new_id(A, RDMA_PS_TCP),
			  *idle = new_id(A, RDMA_PS_UDP);
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .join_flags = RDMA_MC_JOIN_FLAG_RESERVED};
	union addr host = addr(IP_B, 0), to = addr(GROUP4, 0);

	cr_assert_eq(try_bind(rc, IP_A, 0), 0);
	cr_expect_eq(rdma_join_multicast(id, &host.sa, NULL), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(rdma_join_multicast(rc, &to.sa, NULL), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(rdma_join_multicast(idle, &to.sa, NULL), -1);
	cr_expect_eq(errno, EINVAL);
	attr.addr = &to.sa;
	cr_expect_eq(rdma_join_multicast_ex(id, &attr, NULL), -1);
	cr_expect_eq(errno, ENOTSUP);
	free_id(id);
	free_id(rc);
	free_id(idle);
}

Test(rdmacm_mcast, what_was_joined_ends_with_its_queue_pair_and_its_id)
{
	struct rdma_cm_id *id = bound(A, IP_A);
	union addr to = addr(GROUP4, 0), other = addr("239.9.9.9", 0);

	make_qp(id);
	cr_assert_eq(rdma_join_multicast(id, &to.sa, NULL), 0);
	cr_assert_eq(rdma_leave_multicast(id, &to.sa), 0);
	cr_expect_not(has_event(ch[A], 0), "its event is dropped with it");
	cr_assert_eq(rdma_join_multicast(id, &to.sa, NULL), 0);
	cr_assert_eq(rdma_join_multicast(id, &other.sa, NULL), 0);
	expect(ch[A], RDMA_CM_EVENT_MULTICAST_JOIN);
	rdma_destroy_qp(id);
	cr_assert_eq(rdma_destroy_id(id), 0);
	cr_expect_not(has_event(ch[A], 0));
}

Test(rdmacm_mcast, a_queue_pair_may_be_made_with_the_calls_of_ibv_wr_start)
{
	struct rdma_cm_id *id = bound(A, IP_A);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};

	attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ;
	cr_expect_eq(rdma_create_qp_ex(id, &attr), -1);
	cr_expect_eq(errno, EOPNOTSUPP, "datagrams read nothing");
	attr.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_RDMA_READ;
	cr_assert_eq(rdma_create_qp_ex(id, &attr), 0, "%s", strerror(errno));
	cr_expect_not_null(ibv_qp_to_qp_ex(id->qp));
	cr_expect_not_null(id->send_cq);
	free_id(id);
}

/* As librdmacm: the id's own. */
Test(rdmacm_mcast, a_queue_pair_without_a_protection_domain_gets_the_id_s)
{
	struct rdma_cm_id *id = bound(A, IP_A);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD};

	cr_assert_eq(rdma_create_qp_ex(id, &attr), 0, "%s", strerror(errno));
	cr_expect_not_null(attr.pd);
	cr_expect_eq(id->qp->pd, id->pd);
	free_id(id);
}

/* Else the queue pair, its protection domain and the membership would stay for ever. */
Test(rdmacm_mcast, a_queue_pair_leaves_its_groups_when_the_channel_goes)
{
	struct rdma_cm_id *id = bound(A, IP_A);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	union addr to = addr(GROUP4, 0);

	cr_assert_eq(rdma_create_qp(id, pd, &attr), 0, "%s", strerror(errno));
	cr_assert_eq(rdma_join_multicast(id, &to.sa, NULL), 0);
	rdma_destroy_event_channel(ch[A]);
	rdma_destroy_qp(id);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_assert_eq(rdma_destroy_id(id), 0);
}

static int join_with_callocs(struct rdma_cm_id *id, union addr *to, unsigned left)
{
	int rc;

	callocs_left = left;
	rc = rdma_join_multicast(id, &to->sa, NULL);
	callocs_left = 0;
	return rc;
}

/* Whatever it lacks memory for. A synchronous id would wait for ever for an event that does not come. */
Test(rdmacm_mcast, a_join_without_memory_fails)
{
	union addr to = addr(GROUP4, 0);
	struct rdma_cm_id *id;
	unsigned left = 1;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(try_bind(id, IP_A, 0), 0);
	make_qp(id);
	for (; join_with_callocs(id, &to, left); left++) {
		cr_assert_eq(errno, ENOMEM);
		cr_assert_eq(rdma_leave_multicast(id, &to.sa), -1, "it is in no group");
	}
	cr_expect_gt(left, 2u, "a join and its event");
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_assert_eq(rdma_leave_multicast(id, &to.sa), 0);
	free_id(id);
}
