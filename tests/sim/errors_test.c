/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "bench.h"
#include "modes.h"

/*
 * Errors: the status at the requester, the events at the responder, that no byte is written that
 * must not be, and that the remaining requests are flushed in order.
 */
#define LIMIT_NS SIM_MS(1000)

/* ---- refused by the responder ---- */

/* Posts two requests. The first must fail with `status`, the second is flushed. */
static void refused(struct bench *b, struct ibv_send_wr wr, enum ibv_wc_status status)
{
	struct ibv_send_wr behind = bench_send(b, 2, 10);
	uint8_t before[BENCH_BYTES];

	memcpy(before, b->mr[1].p, BENCH_BYTES);
	wr.wr_id = 1;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &behind), 0);
	sim_expect(b->s, &b->cq[0], 1, status, LIMIT_NS);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	sim_sleep(b->s, SIM_MS(100));
	sim_expect_none(b->s, &b->cq[0]);
	cr_assert_eq(b->qp[0].qp->state, IBV_QPS_ERR);
	cr_assert_eq(b->qp[1].qp->state, IBV_QPS_ERR);
	cr_assert_eq(memcmp(before, b->mr[1].p, BENCH_BYTES), 0, "memory changed");
}

EACH_MODE(errors, a_write_with_a_wrong_rkey_is_a_remote_access_error)
{
	struct bench *b = bench_new(mode, "write_rkey", NULL);
	struct ibv_send_wr wr = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 3000);

	wr.wr.rdma.rkey ^= 0x10000;
	refused(b, wr, IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(sim_async_count(&b->s->ep[1], IBV_EVENT_QP_ACCESS_ERR, &b->qp[1]), 1);
	bench_free(b);
}

EACH_MODE(errors, a_read_past_the_end_is_a_remote_access_error)
{
	struct bench *b = bench_new(mode, "read_range", NULL);

	refused(b, bench_rdma(b, IBV_WR_RDMA_READ, BENCH_BYTES - 99, 100), IBV_WC_REM_ACCESS_ERR);
	bench_free(b);
}

EACH_MODE(errors, a_write_that_wraps_the_address_space_is_a_remote_access_error)
{
	struct bench *b = bench_new(mode, "write_wrap", NULL);
	struct ibv_send_wr wr = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 100);

	wr.wr.rdma.remote_addr = UINT64_MAX - 10;
	refused(b, wr, IBV_WC_REM_ACCESS_ERR);
	bench_free(b);
}

EACH_MODE(errors, a_region_without_the_right_refuses)
{
	struct bench *b = bench_new(mode, "no_right", NULL);
	struct ibv_send_wr wr = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 100);
	struct sim_mr mr;

	sim_mr_init(&mr, &b->s->ep[1], 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	wr.wr.rdma.rkey = mr.key;
	wr.wr.rdma.remote_addr = (uintptr_t)mr.p;
	refused(b, wr, IBV_WC_REM_ACCESS_ERR);
	sim_mr_free(&mr);
	bench_free(b);
}

EACH_MODE(errors, a_region_of_another_domain_refuses)
{
	struct bench *b = bench_new(mode, "other_pd", NULL);
	struct ibv_send_wr wr = bench_rdma(b, IBV_WR_RDMA_READ, 0, 100);
	struct sim_mr mr;

	sim_mr_init_pd(&mr, &b->s->ep[1], 100, SIM_ACCESS_ALL, SIM_PD + 1, 0);
	wr.wr.rdma.rkey = mr.key;
	wr.wr.rdma.remote_addr = (uintptr_t)mr.p;
	refused(b, wr, IBV_WC_REM_ACCESS_ERR);
	sim_mr_free(&mr);
	bench_free(b);
}

EACH_MODE(errors, an_atomic_with_a_wrong_rkey_is_a_remote_access_error)
{
	struct bench *b = bench_new(mode, "atomic_rkey", NULL);
	struct ibv_send_wr wr = bench_atomic(b, 0, 5);

	wr.wr.atomic.rkey++;
	refused(b, wr, IBV_WC_REM_ACCESS_ERR);
	bench_free(b);
}

EACH_MODE(errors, a_qp_that_permits_no_read_calls_it_invalid)
{
	struct bench_attr attr = {.access = IBV_ACCESS_REMOTE_WRITE};
	struct bench *b = bench_new(mode, "qp_right", &attr);

	refused(b, bench_rdma(b, IBV_WR_RDMA_READ, 0, 100), IBV_WC_REM_INV_REQ_ERR);
	cr_assert_eq(sim_async_count(&b->s->ep[1], IBV_EVENT_QP_REQ_ERR, &b->qp[1]), 1);
	bench_free(b);
}

EACH_MODE(errors, a_zero_length_write_needs_no_key)
{
	struct bench *b = bench_new(mode, "zero_write", NULL);
	struct ibv_send_wr wr = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 0);

	wr.wr.rdma.rkey = 0;
	wr.wr_id = 1;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(errors, an_unaligned_atomic_of_a_hostile_peer_is_invalid)
{
	struct bench *b = bench_new(mode, "unaligned", NULL);

	/* The requester would refuse to post it, so the packet is changed in transit. */
	b->s->hook = bench_unalign;
	refused(b, bench_atomic(b, 0, 5), IBV_WC_REM_INV_REQ_ERR);
	bench_free(b);
}

EACH_MODE(errors, a_send_longer_than_the_receive_fails_at_both_ends)
{
	struct bench *b = bench_new(mode, "long_send", NULL);
	struct ibv_send_wr wr = bench_send(b, 1, 3000), behind = bench_send(b, 2, 1);

	bench_recv(b, 10, 2000);
	bench_recv(b, 11, 2000);
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &behind), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_REM_INV_REQ_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[1], 10, IBV_WC_LOC_LEN_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[1], 11, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(errors, a_receive_with_a_bad_lkey_is_a_remote_operational_error)
{
	struct bench *b = bench_new(mode, "bad_lkey", NULL);
	struct ibv_sge sge = sim_sge(&b->mr[1], 0, 100);
	struct ibv_recv_wr recv = {.wr_id = 10, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr wr = bench_send(b, 1, 50);

	sge.lkey ^= 0x1000;
	cr_assert_eq(sim_post_recv(&b->qp[1], &recv), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_REM_OP_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[1], 10, IBV_WC_LOC_PROT_ERR, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(errors, a_send_with_a_bad_lkey_fails_after_what_is_before_it)
{
	struct bench *b = bench_new(mode, "local_lkey", NULL);
	struct ibv_send_wr good = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 5000);
	struct ibv_send_wr bad = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 100);
	struct ibv_sge sge = *bad.sg_list;

	good.wr_id = 1;
	bad.wr_id = 2;
	sge.lkey++;
	bad.sg_list = &sge;
	cr_assert_eq(sim_post_send(&b->qp[0], &good), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &bad), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, LIMIT_NS);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_LOC_PROT_ERR, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(errors, an_invalidate_of_an_unknown_key_is_a_remote_access_error)
{
	struct bench *b = bench_new(mode, "bad_inv", NULL);
	struct ibv_send_wr wr = bench_send(b, 1, 50);

	bench_recv(b, 10, 100);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = b->mr[1].key ^ 0x100;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_REM_ACCESS_ERR, LIMIT_NS);
	cr_assert(sim_mr_valid(&b->mr[1]));
	bench_free(b);
}

/* MEM-INV-02 */
EACH_MODE(errors, an_invalidate_of_what_was_not_registered_for_it_is_a_remote_access_error)
{
	struct bench *b = bench_new(mode, "closed_inv", NULL);
	struct ibv_send_wr wr = bench_send(b, 1, 50);

	bench_recv(b, 10, 100);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = b->mr[1].key;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_REM_ACCESS_ERR, LIMIT_NS);
	cr_assert(sim_mr_valid(&b->mr[1]));
	bench_free(b);
}

EACH_MODE(errors, a_local_invalidate_of_an_unknown_key_fails)
{
	struct bench *b = bench_new(mode, "bad_local_inv", NULL);
	struct ibv_send_wr wr = {.wr_id = 1,
				 .opcode = IBV_WR_LOCAL_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = b->mr[0].key ^ 0x100};

	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_MW_BIND_ERR, LIMIT_NS);
	bench_free(b);
}

EACH_MODE(errors, a_region_that_was_invalidated_refuses)
{
	struct bench *b = bench_new(mode, "after_inv", NULL);
	struct ibv_send_wr wr = bench_send(b, 1, 50);
	struct sim_mr mr;

	sim_mr_init(&mr, &b->s->ep[1], 100, SIM_ACCESS_ALL | (int)UR_ACCESS_REMOTE_INVALIDATE);
	bench_recv(b, 10, 100);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = mr.key;
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, LIMIT_NS);
	sim_expect(b->s, &b->cq[1], 10, IBV_WC_SUCCESS, LIMIT_NS);
	wr = bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 50);
	wr.wr.rdma.rkey = mr.key;
	wr.wr.rdma.remote_addr = (uintptr_t)mr.p;
	refused(b, wr, IBV_WC_REM_ACCESS_ERR);
	sim_mr_free(&mr);
	bench_free(b);
}

/* ---- no receive, no peer ---- */

EACH_MODE(errors, a_receiver_that_stays_unready_exhausts_the_rnr_retries)
{
	struct bench_attr attr = {.rnr_retry = 3, .set_rnr = true};
	struct bench *b = bench_new(mode, "rnr_exhausted", &attr);
	struct ibv_send_wr wr = bench_send(b, 1, 50), behind = bench_send(b, 2, 50);
	uint64_t start = b->s->now_ns;

	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &behind), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_RNR_RETRY_EXC_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	/* Timer code 12 is 0.64 ms: three waits, four NAKs. */
	cr_assert_geq(b->s->now_ns - start, 3 * SIM_US(640));
	cr_assert_leq(b->s->now_ns - start, 3 * SIM_US(640) + SIM_US(200));
	cr_assert_eq(sim_counters(&b->s->ep[1])->rnr_nak_sent, 4);
	bench_free(b);
}

EACH_MODE(errors, a_receiver_that_becomes_ready_late_is_waited_for)
{
	struct bench *b = bench_new(mode, "rnr_late", NULL);
	struct ibv_send_wr wr = bench_send(b, 1, 5000);

	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_sleep(b->s, SIM_MS(500));
	sim_expect_none(b->s, &b->cq[0]);
	bench_recv(b, 10, 6000);
	sim_expect(b->s, &b->cq[1], 10, IBV_WC_SUCCESS, SIM_MS(2));
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, SIM_MS(2));
	bench_free(b);
}

EACH_MODE(errors, a_dead_peer_exhausts_the_retries_within_the_configured_time)
{
	struct bench_attr attr = {.timeout = 12, .retry_cnt = 3, .set_retry = true};
	struct bench *b = bench_new(mode, "dead_peer", &attr);
	struct ibv_send_wr wr = bench_send(b, 1, 5000), behind = bench_send(b, 2, 50);
	uint64_t start = b->s->now_ns, timeout_ns = 4096ull << 12;

	sim_qp_destroy(&b->qp[1]);
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	cr_assert_eq(sim_post_send(&b->qp[0], &behind), 0);
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_RETRY_EXC_ERR, LIMIT_NS);
	sim_expect(b->s, &b->cq[0], 2, IBV_WC_WR_FLUSH_ERR, LIMIT_NS);
	/* Four attempts, each between one and four times the timeout (IBA 9.7.6.1.3). */
	cr_assert_geq(b->s->now_ns - start, 4 * timeout_ns);
	cr_assert_leq(b->s->now_ns - start, 16 * timeout_ns);
	cr_assert_eq(sim_counters(&b->s->ep[0])->retry_exceeded_err, 1);
	bench_free(b);
}

/* Cuts the wire at each packet of messages of each kind. */
static enum sim_verdict cut_off(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				const struct ur_packet *p)
{
	unsigned *left = s->hook_arg;

	(void)from, (void)frame, (void)len, (void)p;
	if (*left == 0)
		return SIM_DROP;
	--*left;
	return SIM_PASS;
}

EACH_MODE(errors, a_peer_that_dies_in_traffic_is_detected_within_the_configured_time)
{
	for (unsigned passed = 0; passed < 24; passed++) {
		struct bench_attr attr = {.timeout = 12, .retry_cnt = 3, .set_retry = true};
		struct bench *b = bench_new(mode, "dies_in_traffic", &attr);
		uint64_t start = b->s->now_ns, timeout_ns = 4096ull << 12;
		unsigned left = passed, done = 0;
		enum ibv_wc_status status = IBV_WC_SUCCESS;

		b->s->hook = cut_off;
		b->s->hook_arg = &left;
		for (unsigned i = 0; i < 2; i++)
			bench_recv(b, 10 + i, 6000);
		for (unsigned i = 0; i < 6; i++) {
			struct ibv_send_wr wr =
				i % 3 == 0   ? bench_rdma(b, IBV_WR_RDMA_WRITE, 0, 5000)
				: i % 3 == 1 ? bench_rdma(b, IBV_WR_RDMA_READ, 1000, 5000)
					     : bench_send(b, 0, 5000);

			wr.wr_id = i;
			cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
		}
		for (; done < 6 && status == IBV_WC_SUCCESS; done++)
			status = sim_wait(b->s, &b->cq[0], LIMIT_NS).status;
		cr_assert_eq(status, IBV_WC_RETRY_EXC_ERR, "%u packets passed: status %d", passed,
			     status);
		/* Four attempts, each between one and four times the timeout, after the last packet passed. */
		cr_assert_geq(b->s->now_ns - start, 4 * timeout_ns);
		cr_assert_leq(b->s->now_ns - start, 16 * timeout_ns + SIM_MS(1));
		bench_free(b);
	}
}

EACH_MODE(errors, a_timeout_of_zero_waits_for_ever)
{
	struct bench_attr attr = {.timeout = 0, .retry_cnt = 1, .set_retry = true};
	struct bench *b = bench_new(mode, "no_timeout", &attr);
	struct ibv_send_wr wr = bench_send(b, 1, 50);

	sim_qp_destroy(&b->qp[1]);
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_sleep(b->s, SIM_MS(100000));
	sim_expect_none(b->s, &b->cq[0]);
	bench_free(b);
}

/* ---- flow control ---- */

EACH_MODE(credits, a_receiver_with_one_receive_at_a_time_gets_everything_in_order)
{
	struct bench *b = bench_new(mode, "one_credit", NULL);

	for (unsigned i = 0; i < 8; i++) {
		struct ibv_send_wr wr = bench_send(b, i, 100);

		cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		bench_recv(b, 10 + i, 100);
		sim_expect(b->s, &b->cq[1], 10 + i, IBV_WC_SUCCESS, LIMIT_NS);
	}
	for (unsigned i = 0; i < 8; i++)
		sim_expect(b->s, &b->cq[0], i, IBV_WC_SUCCESS, LIMIT_NS);
	/* Credits make the requester wait: at most one probe per receive was refused. */
	cr_assert_leq(sim_counters(&b->s->ep[1])->rnr_nak_sent, 16);
	bench_free(b);
}

/* ---- sizes ---- */

EACH_MODE(sizes, a_read_larger_than_the_window_is_requested_in_parts)
{
	struct bench_attr attr = {.window = 8, .bytes = 1 << 20, .mtu = IBV_MTU_256};
	struct bench *b = bench_new(mode, "big_read", &attr);
	struct ibv_send_wr wr = bench_rdma(b, IBV_WR_RDMA_READ, 0, 1 << 20);

	sim_pattern(b->mr[1].p, 1 << 20, 5);
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[0], 0, IBV_WC_SUCCESS, SIM_MS(10000));
	cr_assert_eq(memcmp(b->mr[0].p, b->mr[1].p, 1 << 20), 0);
	cr_assert_eq(sim_counters(&b->s->ep[0])->retransmitted_packets, 0);
	bench_free(b);
}

EACH_MODE(sizes, a_send_of_many_megabytes_arrives_at_the_smallest_pmtu)
{
	struct bench_attr attr = {.bytes = 6 << 20, .mtu = IBV_MTU_256};
	struct bench *b = bench_new(mode, "big_send", &attr);
	struct ibv_send_wr wr = bench_send(b, 1, 6 << 20);

	sim_pattern(b->mr[0].p, 6 << 20, 6);
	b->s->ep[0].link[1].attr.loss = 65536 / 1000;
	bench_recv(b, 10, 6 << 20);
	cr_assert_eq(sim_post_send(&b->qp[0], &wr), 0);
	sim_expect(b->s, &b->cq[1], 10, IBV_WC_SUCCESS, SIM_MS(10000));
	sim_expect(b->s, &b->cq[0], 1, IBV_WC_SUCCESS, SIM_MS(10000));
	cr_assert_eq(memcmp(b->mr[0].p, b->mr[1].p, 6 << 20), 0);
	cr_assert_gt(sim_counters(&b->s->ep[0])->retransmitted_packets, 0);
	bench_free(b);
}
