/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>

#include "oracle.h"

/*
 * Every way to lose some of the first twelve packets of a short exchange, for each operation: 4096
 * runs each. With RC everything still completes; with UC what completes is right. The messages are
 * such that twelve packets are under way before the last one is done, and no packet can be lost so
 * often that seven retries do not do.
 */
#define MASK_BITS 12
#define PMTU	  256
#define DEPTH	  8
#define MAX_LEN	  1200

struct script {
	const char *name;
	enum ibv_qp_type type;
	struct sim_op ops[8];
	bool responses_too; /* packets of both directions count, or requests only */
};

#define OP(op, bytes, ...)                                                                         \
	{                                                                                          \
		.opcode = IBV_WR_##op, .len = (bytes), .flags = IBV_SEND_SIGNALED, ##__VA_ARGS__   \
	}
/* Not signalled; every entry of a script has a flag, the list ends with none. */
#define QUIET(op, bytes)                                                                           \
	{                                                                                          \
		.opcode = IBV_WR_##op, .len = (bytes), .flags = IBV_SEND_SOLICITED                 \
	}

static const struct script send = {
	"send", IBV_QPT_RC, {QUIET(SEND, 700), OP(SEND, 0), OP(SEND, 1000), OP(SEND, 257)}, true};
static const struct script send_imm = {
	"send_imm",
	IBV_QPT_RC,
	{OP(SEND_WITH_IMM, 700), QUIET(SEND_WITH_IMM, 0), OP(SEND_WITH_IMM, 1025)},
	true};
static const struct script send_inv = {
	"send_inv",
	IBV_QPT_RC,
	{OP(SEND_WITH_INV, 700), OP(SEND_WITH_INV, 3), OP(SEND_WITH_INV, 900)},
	true};
static const struct script write = {
	"write",
	IBV_QPT_RC,
	{OP(RDMA_WRITE, 700), QUIET(RDMA_WRITE, 0), OP(RDMA_WRITE, 1024), OP(RDMA_WRITE, 1)},
	true};
static const struct script write_imm = {
	"write_imm",
	IBV_QPT_RC,
	{OP(RDMA_WRITE_WITH_IMM, 700), OP(RDMA_WRITE_WITH_IMM, 0), OP(RDMA_WRITE_WITH_IMM, 901)},
	true};
static const struct script read_ = {
	"read",
	IBV_QPT_RC,
	{OP(RDMA_READ, 1000), QUIET(RDMA_READ, 0), OP(RDMA_READ, 256), OP(RDMA_READ, 1150)},
	true};
static const struct script cas = {"cas",
				  IBV_QPT_RC,
				  {OP(ATOMIC_CMP_AND_SWP, 8), OP(ATOMIC_CMP_AND_SWP, 8, .word = 1),
				   QUIET(ATOMIC_CMP_AND_SWP, 8), OP(ATOMIC_CMP_AND_SWP, 8),
				   OP(ATOMIC_CMP_AND_SWP, 8), OP(ATOMIC_CMP_AND_SWP, 8, .word = 1)},
				  true};
static const struct script fetch_add = {
	"fetch_add",
	IBV_QPT_RC,
	{OP(ATOMIC_FETCH_AND_ADD, 8), OP(ATOMIC_FETCH_AND_ADD, 8, .shared_word = true),
	 QUIET(ATOMIC_FETCH_AND_ADD, 8), OP(ATOMIC_FETCH_AND_ADD, 8),
	 OP(ATOMIC_FETCH_AND_ADD, 8, .shared_word = true), OP(ATOMIC_FETCH_AND_ADD, 8)},
	true};
static const struct script mixed = {"mixed",
				    IBV_QPT_RC,
				    {OP(RDMA_WRITE, 1000), OP(RDMA_READ, 0, .read_back = true),
				     OP(SEND, 600, .echo = true), OP(ATOMIC_FETCH_AND_ADD, 8),
				     OP(RDMA_WRITE_WITH_IMM, 300), OP(RDMA_READ, 600),
				     OP(ATOMIC_CMP_AND_SWP, 8), OP(SEND_WITH_IMM, 10)},
				    true};
static const struct script mixed_requests = {
	"mixed_requests",
	IBV_QPT_RC,
	{OP(RDMA_READ, 700), OP(RDMA_READ, 700), OP(SEND, 700), OP(RDMA_WRITE, 600),
	 OP(ATOMIC_FETCH_AND_ADD, 8, .shared_word = true), OP(SEND, 600)},
	false};

static const struct script uc_send = {
	"uc_send",
	IBV_QPT_UC,
	{OP(SEND, 700), OP(SEND, 0), OP(SEND, 700), OP(SEND_WITH_IMM, 700), OP(SEND, 100)},
	true};
static const struct script uc_write = {"uc_write",
				       IBV_QPT_UC,
				       {OP(RDMA_WRITE, 700), OP(RDMA_WRITE_WITH_IMM, 600),
					OP(RDMA_WRITE_WITH_IMM, 0), OP(RDMA_WRITE, 700),
					OP(RDMA_WRITE_WITH_IMM, 500)},
				       true};
static const struct script uc_mixed = {"uc_mixed",
				       IBV_QPT_UC,
				       {OP(SEND, 600), OP(RDMA_WRITE, 600), OP(SEND_WITH_IMM, 300),
					OP(RDMA_WRITE_WITH_IMM, 400), OP(SEND, 0), OP(SEND, 500)},
				       true};

static bool is_request(const struct ur_packet *p)
{
	return p->op & UR_OP_REQUEST;
}

static void run_mask(const struct script *script, uint64_t mask)
{
	struct sim_attr attr = sim_defaults(script->name, mask);
	struct sim_oracle oracle;
	struct sim_cq cq[2];
	struct sim_recvq rq = {0};
	struct sim_qp a, b;
	struct sim_flow *flow;
	struct sim_qp_attr qp_attr[2];
	struct sim *s;

	attr.seed = 1; /* all masks see the same exchange */
	s = sim_new(&attr);
	s->drop_mask = mask;
	s->mask_counts = script->responses_too ? NULL : is_request;
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&cq[i], 64);
		qp_attr[i] = sim_qp_defaults(&cq[i], &cq[i]);
		qp_attr[i].type = script->type;
		qp_attr[i].mtu = IBV_MTU_256;
		qp_attr[i].psn = 0xfffffa; /* wraps in the middle of it */
	}
	sim_qp_pair(&a, &s->ep[0], &qp_attr[0], &b, &s->ep[1], &qp_attr[1]);
	sim_oracle_init(&oracle, s);
	sim_oracle_add_cq(&oracle, &cq[0]);
	sim_oracle_add_cq(&oracle, &cq[1]);
	sim_recvq_init(&rq, s, 0, &b, NULL, DEPTH, MAX_LEN, 2);
	rq.loose = script->type == IBV_QPT_UC;
	sim_oracle_add_recvq(&oracle, &rq);
	flow = sim_flow_new(&oracle, &a, &b, &rq, DEPTH, MAX_LEN, 3);
	for (unsigned i = 0; i < 8 && script->ops[i].flags; i++)
		sim_flow_add(flow, script->ops[i]);
	oracle.clean = mask == 0;
	sim_oracle_run(&oracle, SIM_MS(10000));
	if (mask == 0)
		SIM_CHECK(s, s->counted >= MASK_BITS - 3, "only %u packets", s->counted);
	sim_qp_destroy(&a);
	sim_qp_destroy(&b);
	sim_oracle_free(&oracle);
	sim_cq_free(&cq[0]);
	sim_cq_free(&cq[1]);
	sim_free(s);
}

static void run_all(const struct script *script)
{
	uint64_t only;

	if (sim_replay(script->name, &only)) {
		run_mask(script, only);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t mask = 0; mask < 1u << MASK_BITS; mask++)
		run_mask(script, mask);
}

Test(drop_masks, every_rc_send_arrives_once)
{
	run_all(&send);
}

Test(drop_masks, every_rc_send_with_immediate_arrives_once)
{
	run_all(&send_imm);
}

Test(drop_masks, every_rc_send_with_invalidate_arrives_once)
{
	run_all(&send_inv);
}

Test(drop_masks, every_rc_write_is_placed)
{
	run_all(&write);
}

Test(drop_masks, every_rc_write_with_immediate_arrives_once)
{
	run_all(&write_imm);
}

Test(drop_masks, every_rc_read_brings_its_bytes)
{
	run_all(&read_);
}

Test(drop_masks, every_compare_and_swap_executes_once)
{
	run_all(&cas);
}

Test(drop_masks, every_fetch_and_add_executes_once)
{
	run_all(&fetch_add);
}

Test(drop_masks, rc_operations_of_all_kinds_keep_their_order)
{
	run_all(&mixed);
}

Test(drop_masks, twelve_lost_requests_of_all_kinds_are_repeated)
{
	run_all(&mixed_requests);
}

Test(drop_masks, uc_sends_are_lost_whole)
{
	run_all(&uc_send);
}

Test(drop_masks, uc_writes_with_immediate_complete_only_when_whole)
{
	run_all(&uc_write);
}

Test(drop_masks, uc_operations_of_all_kinds_are_lost_whole)
{
	run_all(&uc_mixed);
}
