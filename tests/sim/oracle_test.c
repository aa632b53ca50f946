/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <signal.h>

#include "oracle.h"
#include "wire/assert.h"

/*
 * Tests of the oracle itself: each one violates one rule and passes if the case fails (by abort).
 * The output in between is the report of that failure.
 */
struct trial {
	struct sim *s;
	struct sim_oracle oracle;
	struct sim_cq cq[2];
	struct sim_recvq rq;
	struct sim_qp qp[2];
	struct sim_flow *flow;
};

static struct trial *make_trial(struct trial *t)
{
	struct sim_attr attr = sim_defaults("self", 0);
	struct sim_qp_attr qa;

	t->s = sim_new(&attr);
	sim_cq_init(&t->cq[0], 64);
	sim_cq_init(&t->cq[1], 64);
	qa = sim_qp_defaults(&t->cq[0], &t->cq[0]);
	sim_qp_create(&t->qp[0], &t->s->ep[0], &qa);
	qa.send_cq = qa.recv_cq = &t->cq[1];
	sim_qp_create(&t->qp[1], &t->s->ep[1], &qa);
	sim_qp_connect(&t->qp[0], &t->qp[1]);
	sim_oracle_init(&t->oracle, t->s);
	sim_oracle_add_cq(&t->oracle, &t->cq[0]);
	sim_oracle_add_cq(&t->oracle, &t->cq[1]);
	sim_recvq_init(&t->rq, t->s, 0, &t->qp[1], NULL, 8, 4000, 1);
	sim_oracle_add_recvq(&t->oracle, &t->rq);
	t->flow = sim_flow_new(&t->oracle, &t->qp[0], &t->qp[1], &t->rq, 8, 4000, 1);
	t->oracle.clean = true;
	return t;
}

static void add(struct trial *t, enum ibv_wr_opcode opcode, uint32_t len)
{
	sim_flow_add(t->flow,
		     (struct sim_op){.opcode = opcode, .len = len, .flags = IBV_SEND_SIGNALED});
}

static void free_trial(struct trial *t)
{
	for (unsigned i = 0; i < 2; i++) {
		sim_qp_destroy(&t->qp[i]);
		sim_cq_free(&t->cq[i]);
	}
	sim_oracle_free(&t->oracle);
	sim_free(t->s);
}

static void run(struct trial *t)
{
	sim_oracle_run(&t->oracle, SIM_MS(10000));
	free_trial(t);
}

/* A hook that changes the last payload byte of packets in one direction. */
static enum sim_verdict spoil(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			      const struct ur_packet *p)
{
	(void)s, (void)from, (void)len;
	if (p->payload_len) {
		frame[p->payload_off + p->payload_len - 1] ^= 1;
		sim_reseal(frame, p);
	}
	return SIM_PASS;
}

static void touch_target(struct sim *s, void *arg)
{
	struct trial *t = arg;

	(void)s;
	t->flow->target.p[t->flow->target.len - 1] ^= 1;
}

static void touch_guard(struct sim *s, void *arg)
{
	struct trial *t = arg;

	(void)s;
	t->flow->target.p[t->flow->target.len] ^= 1;
}

static void break_promise(struct sim *s, void *arg)
{
	(void)s;
	UR_ASSERT(arg == NULL);
}

Test(oracle, is_content_with_a_good_run)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_SEND, 3000);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	add(&t, IBV_WR_RDMA_READ, 3000);
	add(&t, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	run(&t);
}

Test(oracle, notices_a_wrong_byte_in_a_message, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_SEND, 100);
	t.s->hook = spoil;
	run(&t);
}

Test(oracle, notices_a_wrong_byte_of_a_write, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	t.s->hook = spoil;
	run(&t);
}

Test(oracle, notices_a_wrong_byte_of_a_read, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_RDMA_READ, 3000);
	t.s->hook = spoil;
	run(&t);
}

Test(oracle, notices_a_repetition_on_a_clean_link, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	t.s->drop_mask = 2;
	run(&t);
}

Test(oracle, notices_a_byte_written_by_no_request, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	sim_call_at(t.s, t.s->now_ns + SIM_MS(1), touch_target, &t);
	run(&t);
}

Test(oracle, notices_a_write_beyond_a_region, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	sim_call_at(t.s, t.s->now_ns + SIM_MS(1), touch_guard, &t);
	run(&t);
}

Test(oracle, notices_an_unexpected_failure, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	t.s->drop_mask = UINT64_MAX;
	run(&t);
}

Test(oracle, reports_an_assertion_of_the_core, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	sim_call_at(t.s, t.s->now_ns + SIM_MS(1), break_promise, &t);
	add(&t, IBV_WR_RDMA_WRITE, 3000);
	run(&t);
}

Test(link, a_corrupt_frame_has_one_to_three_flipped_bits)
{
	struct sim_rng rng = {.state = 1};
	uint8_t frame[128], good[128];

	for (unsigned i = 0; i < 100000; i++) {
		unsigned len = sim_between(&rng, 62, sizeof(frame)), flips = 0;

		sim_pattern(good, len, i);
		memcpy(frame, good, len);
		sim_corrupt(&rng, frame, len);
		for (unsigned k = 0; k < len; k++)
			flips += (unsigned)__builtin_popcount(frame[k] ^ good[k]);
		cr_assert(flips >= 1 && flips <= 3);
	}
}

/* A hook that drops all frames from the n-th on. */
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

static void add_some(struct trial *t)
{
	add(t, IBV_WR_SEND, 3000);
	add(t, IBV_WR_RDMA_WRITE, 3000);
	add(t, IBV_WR_RDMA_READ, 3000);
	add(t, IBV_WR_SEND, 10);
	add(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
}

Test(oracle, accepts_exhausted_retries_when_the_network_lost_as_much)
{
	for (unsigned passed = 0; passed < 12; passed++) {
		unsigned left = passed;
		struct trial t;

		make_trial(&t);
		t.oracle.clean = false;
		add_some(&t);
		t.s->hook = cut_off;
		t.s->hook_arg = &left;
		sim_oracle_run(&t.oracle, SIM_MS(10000));
		cr_assert_eq(t.oracle.died, 1);
		free_trial(&t);
	}
}

Test(oracle, notices_retries_exhausted_too_early, .signal = SIGABRT)
{
	unsigned left = 0;
	struct trial t;

	make_trial(&t);
	t.oracle.clean = false;
	t.qp[0].attr.retry_cnt = 7 + 1; /* so the oracle accepts it */
	add(&t, IBV_WR_SEND, 10);
	t.s->hook = cut_off;
	t.s->hook_arg = &left;
	run(&t);
}

static void stall_for_long(struct sim *s, void *arg)
{
	(void)arg;
	sim_stall(&s->ep[1], SIM_MS(60000));
}

Test(oracle, notices_retries_exhausted_without_a_loss, .signal = SIGABRT)
{
	struct trial t;

	make_trial(&t);
	t.oracle.clean = false;
	add_some(&t);
	sim_call_at(t.s, SIM_US(10), stall_for_long, NULL);
	run(&t);
}
