/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/query.h"
#include "engine/verbs.h"
#include "wire/opcode.h"

/* What docs/embedding.md promises to a program that drives an engine by itself. */

static void *aligned(size_t bytes)
{
	void *p = NULL;

	cr_assert_eq(posix_memalign(&p, 64, bytes), 0);
	return p;
}

static struct ur_engine *engine_of(const struct ur_engine_attr *attr)
{
	return ur_engine_init(aligned(ur_engine_size(&attr->limits)), attr, 1000);
}

static struct ur_engine_attr defaults(void)
{
	struct ur_engine_attr attr;

	ur_engine_attr_default(&attr);
	attr.mem = ur_mem_init(aligned(ur_mem_size(1)), 1);
	return attr;
}

static struct ur_qp *qp_of(struct ur_engine *e, enum ibv_qp_type type)
{
	struct ur_cq_create cq = {.cqe = 4};
	struct ur_qp_create a = {.type = type, .pd = 1, .cap = {4, 4, 1, 1, 0}};
	struct ur_qp *qp;

	a.send_cq = a.recv_cq = ur_engine_create_cq(aligned(ur_engine_cq_size(4)), &cq);
	a.rings = aligned(ur_qp_rings_bytes(&a));
	cr_assert_eq(ur_engine_create_qp(e, &a, 1000, &qp), 0);
	return qp;
}

static struct ur_qp_connection connection(void)
{
	return (struct ur_qp_connection){
		.path = {.src = ur_gid_from_ipv4(0x0a000001), .dst = ur_gid_from_ipv4(0x0a000002)},
		.dest_qpn = {77},
		.path_mtu = IBV_MTU_1024,
		.mode = {.mode = UR_MODE_REORDER},
	};
}

Test(embedding, an_engine_of_a_few_queue_pairs_takes_less_than_100_kb)
{
	struct ur_limits few = {.max_qp = 2, .workers = 1};
	struct ur_limits many = {.max_qp = 1024, .workers = 1};
	struct ur_engine_attr attr;

	cr_expect_leq(ur_engine_size(&few), 100 * 1024, "%zu bytes", ur_engine_size(&few));
	cr_expect_gt(ur_engine_size(&many), ur_engine_size(&few) + 1000 * 1024);
	ur_engine_attr_default(&attr);
	cr_log_info("2 queue pairs: %zu bytes, the default: %zu", ur_engine_size(&few),
		    ur_engine_size(&attr.limits));
}

static void on_cm(void *ctx, const struct ur_cm_event *ev)
{
	(void)ctx, (void)ev;
}

Test(embedding, no_connection_manager_without_ids)
{
	struct ur_engine_attr attr = defaults();

	cr_expect_null(ur_engine_cm(engine_of(&attr)));
	attr.limits.cm = (struct ur_cm_limits){.max_ids = 2, .max_pending = 1, .max_tx = 4};
	attr.cm.timewait_ns = 1;
	attr.cm.sink = on_cm;
	cr_expect_not_null(ur_engine_cm(engine_of(&attr)));
}

/* Expects a sentence about `what` for attributes that are valid otherwise. */
static void expect_fault(const struct ur_engine_attr *attr, const char *what)
{
	const char *fault = ur_engine_attr_check(attr);

	cr_expect(fault && strstr(fault, what), "%s: %s", what, fault ? fault : "no fault");
}

Test(embedding, check_names_the_attribute_that_does_not_fit)
{
	struct ur_engine_attr good = defaults(), a;

	cr_assert_null(ur_engine_attr_check(&good));
#define WITH(member, value, what) (a = good, a.member = value, expect_fault(&a, what))
	WITH(limits.max_qp, 0, "limits.max_qp");
	WITH(limits.max_qp, 32767, "limits.max_qp");
	WITH(limits.workers, 0, "limits.workers");
	WITH(limits.workers, 3, "limits.workers");
	WITH(limits.workers, 16, "limits.workers");
	WITH(limits.worker, 1, "limits.worker");
	WITH(mem, NULL, "mem");
	WITH(window, 100, "window");
	WITH(window, 2, "window");
	WITH(ackreq_every, 0, "ackreq_every");
	WITH(mtu_shift, 7, "mtu_shift");
	WITH(mtu_shift, 13, "mtu_shift");
	WITH(limits.destinations, 1, "pacing");
	WITH(limits.cm.max_ids, 100, "cm.sink");
	WITH(limits.cm.max_ids, 1, "limits.cm");
	good.limits.cm.max_ids = 100;
	good.cm.sink = on_cm;
	cr_assert_null(ur_engine_attr_check(&good));
	cr_assert_not_null(ur_engine_cm(engine_of(&good)), "the rest is by default");
	WITH(cm.timewait_ns, 0, "cm.timewait_ns");
	WITH(limits.cm.max_tx, 0, "limits.cm");
#undef WITH
}

/* QP-CREATE-01 */
Test(embedding, a_queue_pair_without_a_queue_or_a_cq_is_refused)
{
	struct ur_engine_attr attr = defaults();
	struct ur_engine *e = engine_of(&attr);
	struct ur_cq_create cq = {.cqe = 4};
	struct ur_qp_create good = {.type = IBV_QPT_RC, .pd = 1, .cap = {4, 4, 1, 1, 0}}, a;
	struct ur_qp *qp;

	good.send_cq = good.recv_cq = ur_engine_create_cq(aligned(ur_engine_cq_size(4)), &cq);
	good.rings = aligned(ur_qp_rings_bytes(&good));
	a = good;
	a.cap.max_send_wr = 0;
	cr_expect_eq(ur_qp_rings_bytes(&a), 0);
	cr_expect_eq(ur_engine_create_qp(e, &a, 1000, &qp), -EINVAL);
	a = good;
	a.cap.max_recv_wr = 0;
	cr_expect_eq(ur_qp_rings_bytes(&a), 0);
	cr_expect_eq(ur_engine_create_qp(e, &a, 1000, &qp), -EINVAL);
	a = good;
	a.recv_cq = NULL;
	cr_expect_eq(ur_engine_create_qp(e, &a, 1000, &qp), -EINVAL);
	a = good;
	a.send_cq = NULL;
	cr_expect_eq(ur_engine_create_qp(e, &a, 1000, &qp), -EINVAL);
	cr_expect_eq(ur_engine_create_qp(e, &good, 1000, &qp), 0);
}

Test(embedding, a_path_between_two_families_is_refused)
{
	struct ur_engine_attr attr = defaults();
	struct ur_engine *e = engine_of(&attr);
	struct ur_qp *qp = qp_of(e, IBV_QPT_RC);
	struct ur_qp_connection c = connection();

	c.path.dst = (struct ur_gid){{0xfd, 0x77, [15] = 2}};
	cr_expect_eq(ur_engine_connect_qp(e, qp, &c, 1000), -EINVAL);
	c = connection();
	cr_expect_eq(ur_engine_connect_qp(e, qp, &c, 1000), 0, "it is still in RESET");
}

Test(embedding, connect_moves_a_queue_pair_to_rts)
{
	struct ur_engine_attr attr = defaults();
	struct ur_engine *e = engine_of(&attr);
	struct ur_qp_connection c = connection();
	enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct ur_qp_view view;

	for (unsigned i = 0; i < 2; i++) {
		struct ur_qp *qp = qp_of(e, types[i]);

		cr_assert_eq(ur_engine_connect_qp(e, qp, &c, 1000), 0);
		ur_engine_view_qp(qp, &view);
		cr_expect_eq(view.state, IBV_QPS_RTS);
		cr_expect_eq(view.dest_qpn.v, 77);
		cr_expect_eq(view.pmtu, 1024);
		cr_expect_eq(view.mode, i ? UR_MODE_GBN : UR_MODE_REORDER);
		cr_expect_eq(ur_engine_connect_qp(e, qp, &c, 1000), -EINVAL, "connected already");
	}
}

Test(embedding, connect_that_fails_leaves_reset)
{
	struct ur_engine_attr attr = defaults();
	struct ur_engine *e = engine_of(&attr);
	struct ur_qp_connection c = connection();
	struct ur_qp *qp = qp_of(e, IBV_QPT_RC), *ud = qp_of(e, IBV_QPT_UD);
	struct ur_qp_view view;

	c.path_mtu = (enum ibv_mtu)9;
	cr_expect_eq(ur_engine_connect_qp(e, qp, &c, 1000), -EINVAL);
	ur_engine_view_qp(qp, &view);
	cr_expect_eq(view.state, IBV_QPS_RESET);
	c.path_mtu = IBV_MTU_1024;
	cr_expect_eq(ur_engine_connect_qp(e, qp, &c, 1000), 0, "it can be tried again");
	cr_expect_eq(ur_engine_connect_qp(e, ud, &c, 1000), -EINVAL,
		     "datagrams have no connection");
	ur_engine_view_qp(ud, &view);
	cr_expect_eq(view.state, IBV_QPS_RESET);
}

/* A frame that `e` sends, in `frame`; its length. */
static uint32_t one_frame(struct ur_engine *e, struct ur_qp *qp, uint8_t *frame)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ur_tx tx = {.hdr = frame};

	cr_assert_eq(ur_engine_post_send(qp, &wr), 0);
	ur_engine_doorbell(e, qp, 1000);
	cr_assert_eq(ur_engine_output(e, &tx, 1, 1000), 1);
	return ur_tx_write(&tx, frame);
}

Test(embedding, frames_are_verified)
{
	struct ur_engine_attr attr = defaults();
	struct ur_engine *e = engine_of(&attr);
	struct ur_qp *qp = qp_of(e, IBV_QPT_RC);
	struct ur_qp_connection c = connection();
	uint8_t frame[UR_HDR_MAX + 8];
	uint32_t len;

	cr_assert_eq(ur_engine_connect_qp(e, qp, &c, 1000), 0);
	len = one_frame(e, qp, frame);
	cr_expect_eq(ur_engine_input_frame(e, frame, len, 2000), UR_DROP_QPN, "there is no QP 77");
	cr_expect_eq(ur_engine_input_frame(e, frame, len - 1, 2000), UR_DROP_TRUNCATED);
	frame[len - 1] ^= 1;
	cr_expect_eq(ur_engine_input_frame(e, frame, len, 2000), UR_DROP_ICRC);
	cr_expect_eq(ur_engine_counters(e)->drops[UR_DROP_ICRC], 1);
	cr_expect_eq(ur_engine_counters(e)->drops[UR_DROP_TRUNCATED], 1);
	cr_expect_eq(ur_engine_counters(e)->drops[UR_DROP_QPN], 1);
}

/* A queue pair fails; the sink has no functions, and nothing is called. */
Test(embedding, a_sink_may_be_empty)
{
	struct ur_engine_attr attr = defaults();
	struct ur_engine *e = engine_of(&attr);
	struct ur_qp *qp = qp_of(e, IBV_QPT_RC);
	struct ur_qp_connection c = connection();
	struct ibv_recv_wr recv = {.num_sge = 0}, *bad;
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	bool flushes;

	cr_assert_eq(ur_engine_connect_qp(e, qp, &c, 1000), 0);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(ur_engine_post_recv(qp, &recv, &bad, &flushes), 0);
	cr_expect_not(flushes);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

		cr_assert_eq(ur_engine_post_send(qp, &wr), 0);
	}
	/* Eight flushed requests into four entries: IBV_EVENT_CQ_ERR. */
	cr_assert_eq(ur_engine_modify_qp(e, qp, &err, IBV_QP_STATE, NULL, 1000), 0);
	cr_expect_eq(ur_engine_counters(e)->flushed_wqe, 8);
	cr_expect_geq(ur_engine_counters(e)->cq_overflow, 1);
}
