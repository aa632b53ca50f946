/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "oracle.h"
#include "script.h"

/*
 * A network that hashes the UDP source port to two ways in each direction, of which one is always dead, in every combination
 * and each for a while (docs/design/repath.md). One queue pair sends; every byte is checked, and none may fail. Either both ends
 * run all the time, or they are threads among others, which stand still again and again.
 */
#define DEPTH	  4
#define MSG	  (16 * 1024)
#define MSGS	  SIM_OPS_MAX
#define EPOCH	  400 /* frames that get through before the next way dies */
#define STALL_NS  SIM_MS(40)
#define STALLS_NS SIM_MS(30) /* from one stall to the next */

struct net {
	unsigned passed, died; /* frames */
	unsigned epochs;
	const struct sim_flow *flow;
};

static enum sim_verdict forward(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				const struct ur_packet *p)
{
	struct net *n = s->hook_arg;
	unsigned epoch = n->passed / EPOCH, dead = from == &s->ep[0] ? epoch & 1 : epoch >> 1 & 1;

	n->epochs = epoch;
	if ((p->sport & 1) == dead) {
		n->died++;
		return SIM_DROP;
	}
	n->passed++;
	return SIM_PASS;
}

/* One end stands still for a while, and so on until everything is done. */
static void stall(struct sim *s, void *arg)
{
	const struct net *n = arg;

	if (n->flow->done == n->flow->op_cnt)
		return;
	sim_stall(&s->ep[sim_below(&s->rng, 2)], sim_below(&s->rng, STALL_NS));
	sim_call_at(s, s->now_ns + sim_below(&s->rng, STALLS_NS), stall, arg);
}

static void run(enum ur_mode mode, uint64_t number, bool stalls)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE_WITH_IMM};
	struct sim_attr sa =
		sim_defaults(sim_mode_case(mode, stalls ? "repath_stalls" : "repath"), number);
	struct sim_oracle oracle;
	struct sim_recvq rq;
	struct sim_qp_attr qa[2];
	struct sim_qp qp[2];
	struct sim_cq cq[2];
	struct sim_flow *flow;
	struct net n = {0};
	struct sim *s;

	sa.window = 256;
	sa.fast = !sim_replaying();
	s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&cq[i], 64);
		qa[i] = sim_qp_defaults(&cq[i], &cq[i]);
		qa[i].mode = mode;
		qa[i].timeout = stalls ? 16 : 12; /* 268 or 17 ms */
	}
	sim_qp_pair(&qp[0], &s->ep[0], &qa[0], &qp[1], &s->ep[1], &qa[1]);
	s->hook = forward;
	s->hook_arg = &n;
	sim_oracle_init(&oracle, s);
	sim_oracle_add_cq(&oracle, &cq[0]);
	sim_oracle_add_cq(&oracle, &cq[1]);
	sim_recvq_init(&rq, s, 0, &qp[1], NULL, 16, MSG, 2);
	sim_oracle_add_recvq(&oracle, &rq);
	flow = sim_flow_new(&oracle, &qp[0], &qp[1], &rq, DEPTH, MSG, 2);
	for (unsigned i = 0; i < MSGS; i++)
		sim_flow_add(flow, (struct sim_op){.opcode = ops[i % 4],
						   .len = MSG - (i % 7) * 100,
						   .flags = IBV_SEND_SIGNALED});
	n.flow = flow;
	if (stalls)
		stall(s, &n);
	sim_oracle_run(&oracle, stalls ? SIM_MS(60000) : SIM_MS(4000));
	SIM_CHECK(s, !oracle.died, "the queue pair failed in epoch %u", n.epochs);
	SIM_CHECK(s, n.epochs >= 8, "only %u epochs", n.epochs);
	SIM_CHECK(s, sim_counters(&s->ep[0])->repaths && sim_counters(&s->ep[1])->repaths,
		  "an end kept its port");
	for (unsigned i = 0; i < 2; i++)
		sim_qp_destroy(&qp[i]);
	sim_oracle_free(&oracle);
	for (unsigned i = 0; i < 2; i++)
		sim_cq_free(&cq[i]);
	sim_free(s);
}

static void run_modes(uint64_t numbers, bool stalls)
{
	for (uint64_t number = 0; number < numbers; number += sim_short_stride()) {
		run(UR_MODE_GBN, number, stalls);
		run(UR_MODE_REORDER, number, stalls);
		run(UR_MODE_EXTENDED, number, stalls);
	}
}

/* REPATH-REQ-01, REPATH-REQ-02, REPATH-RSP-01, REPATH-RSP-02 */
Test(repath, one_way_of_two_is_dead_in_each_direction_and_nothing_fails)
{
	run_modes(10, false);
}

/* The same. What an end sends again after a pause differs from what it sent before it. */
Test(repath, nor_does_it_while_the_ends_stand_still_again_and_again)
{
	run_modes(250, true);
}
