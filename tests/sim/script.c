/* SPDX-License-Identifier: BSD-3-Clause */
#include "script.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define OP(op, bytes, ...)                                                                         \
	{                                                                                          \
		.opcode = IBV_WR_##op, .len = (bytes), .flags = IBV_SEND_SIGNALED, ##__VA_ARGS__   \
	}
/* Unsignaled. Every entry of a script has a flag; an entry without flags ends the list. */
#define QUIET(op, bytes)                                                                           \
	{                                                                                          \
		.opcode = IBV_WR_##op, .len = (bytes), .flags = IBV_SEND_SOLICITED                 \
	}
#define SCRIPT(name, type, ...)                                                                    \
	const struct sim_script sim_script_##name = {#name, IBV_QPT_##type, {__VA_ARGS__}}

SCRIPT(send, RC, QUIET(SEND, 700), OP(SEND, 0), OP(SEND, 1000), OP(SEND, 257));
SCRIPT(send_imm, RC, OP(SEND_WITH_IMM, 700), QUIET(SEND_WITH_IMM, 0), OP(SEND_WITH_IMM, 1025));
SCRIPT(send_inv, RC, OP(SEND_WITH_INV, 700), OP(SEND_WITH_INV, 3), OP(SEND_WITH_INV, 900));
SCRIPT(write, RC, OP(RDMA_WRITE, 700), QUIET(RDMA_WRITE, 0), OP(RDMA_WRITE, 1024),
       OP(RDMA_WRITE, 1));
SCRIPT(write_imm, RC, OP(RDMA_WRITE_WITH_IMM, 700), OP(RDMA_WRITE_WITH_IMM, 0),
       OP(RDMA_WRITE_WITH_IMM, 901));
SCRIPT(read, RC, OP(RDMA_READ, 1000), QUIET(RDMA_READ, 0), OP(RDMA_READ, 256), OP(RDMA_READ, 1150));
SCRIPT(cas, RC, OP(ATOMIC_CMP_AND_SWP, 8), OP(ATOMIC_CMP_AND_SWP, 8, .word = 1),
       QUIET(ATOMIC_CMP_AND_SWP, 8), OP(ATOMIC_CMP_AND_SWP, 8), OP(ATOMIC_CMP_AND_SWP, 8),
       OP(ATOMIC_CMP_AND_SWP, 8, .word = 1));
SCRIPT(fetch_add, RC, OP(ATOMIC_FETCH_AND_ADD, 8), OP(ATOMIC_FETCH_AND_ADD, 8, .shared_word = true),
       QUIET(ATOMIC_FETCH_AND_ADD, 8), OP(ATOMIC_FETCH_AND_ADD, 8),
       OP(ATOMIC_FETCH_AND_ADD, 8, .shared_word = true), OP(ATOMIC_FETCH_AND_ADD, 8));
SCRIPT(mixed, RC, OP(RDMA_WRITE, 1000), OP(RDMA_READ, 0, .read_back = true),
       OP(SEND, 600, .echo = true), OP(ATOMIC_FETCH_AND_ADD, 8), OP(RDMA_WRITE_WITH_IMM, 300),
       OP(RDMA_READ, 600), OP(ATOMIC_CMP_AND_SWP, 8), OP(SEND_WITH_IMM, 10));
SCRIPT(mixed_requests, RC, OP(RDMA_READ, 700), OP(RDMA_READ, 700), OP(SEND, 700),
       OP(RDMA_WRITE, 600), OP(ATOMIC_FETCH_AND_ADD, 8, .shared_word = true), OP(SEND, 600));

SCRIPT(uc_send, UC, OP(SEND, 700), OP(SEND, 0), OP(SEND, 700), OP(SEND_WITH_IMM, 700),
       OP(SEND, 100));
SCRIPT(uc_write, UC, OP(RDMA_WRITE, 700), OP(RDMA_WRITE_WITH_IMM, 600), OP(RDMA_WRITE_WITH_IMM, 0),
       OP(RDMA_WRITE, 700), OP(RDMA_WRITE_WITH_IMM, 500));
SCRIPT(uc_mixed, UC, OP(SEND, 600), OP(RDMA_WRITE, 600), OP(SEND_WITH_IMM, 300),
       OP(RDMA_WRITE_WITH_IMM, 400), OP(SEND, 0), OP(SEND, 500));

const char *sim_exchange_case(enum ur_mode mode, const char *test, const struct sim_script *script)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s%s", test ? test : "", test ? "." : "", script->name);
	return sim_mode_case(mode, name);
}

/* Sends a request before the script, so that the round-trip time is known and there are credits. */
static void warm_up(struct sim_exchange *x)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

	SIM_CHECK(x->s, sim_post_send(&x->qp[0], &wr) == 0, "cannot post");
	sim_expect(x->s, &x->cq[0], 0, IBV_WC_SUCCESS, SIM_MS(100));
}

void sim_exchange_init(struct sim_exchange *x, const struct sim_script *script,
		       const struct sim_exchange_attr *attr)
{
	struct sim_attr sa =
		sim_defaults(sim_exchange_case(attr->mode, attr->test, script), attr->number);
	struct sim_qp_attr qa[2];

	*x = (struct sim_exchange){0};
	sa.seed = attr->seed ? attr->seed : 1;
	if (attr->link)
		sa.link = *attr->link;
	x->s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&x->cq[i], 64);
		qa[i] = sim_qp_defaults(&x->cq[i], &x->cq[i]);
		qa[i].type = script->type;
		qa[i].mode = i && attr->mixed ? attr->peer_mode : attr->mode;
		qa[i].strict = attr->strict;
		qa[i].mtu = IBV_MTU_256;
		qa[i].psn = attr->warm ? 0xfffff9 : 0xfffffa;
	}
	sim_qp_pair(&x->qp[0], &x->s->ep[0], &qa[0], &x->qp[1], &x->s->ep[1], &qa[1]);
	if (attr->warm)
		warm_up(x);
	sim_oracle_init(&x->oracle, x->s);
	sim_oracle_add_cq(&x->oracle, &x->cq[0]);
	sim_oracle_add_cq(&x->oracle, &x->cq[1]);
	sim_recvq_init(&x->rq, x->s, 0, &x->qp[1], NULL, SIM_SCRIPT_DEPTH, SIM_SCRIPT_MAX_LEN, 2);
	x->rq.loose = script->type == IBV_QPT_UC;
	sim_oracle_add_recvq(&x->oracle, &x->rq);
	x->flow = sim_flow_new(&x->oracle, &x->qp[0], &x->qp[1], &x->rq, SIM_SCRIPT_DEPTH,
			       SIM_SCRIPT_MAX_LEN, 3);
	for (unsigned i = 0; i < SIM_SCRIPT_OPS && script->ops[i].flags; i++)
		sim_flow_add(x->flow, script->ops[i]);
}

void sim_exchange_run(struct sim_exchange *x, uint64_t limit_ns)
{
	sim_oracle_run(&x->oracle, limit_ns);
	for (unsigned i = 0; i < 2; i++)
		sim_qp_destroy(&x->qp[i]);
	sim_oracle_free(&x->oracle);
	for (unsigned i = 0; i < 2; i++)
		sim_cq_free(&x->cq[i]);
	sim_free(x->s);
}

uint64_t sim_stride(void)
{
	const char *stride = getenv("UROCE_SIM_STRIDE");
	uint64_t step = stride ? strtoull(stride, NULL, 0) : 1;

	return step ? step : 1;
}

uint64_t sim_short_stride(void)
{
	return (sim_stride() / 4) | 1;
}

void sim_run_numbers(const struct sim_script *script, enum ur_mode mode, const char *test,
		     uint64_t cnt,
		     void (*run)(const struct sim_script *script, enum ur_mode mode,
				 uint64_t number))
{
	uint64_t only;

	if (sim_replay(sim_exchange_case(mode, test, script), &only)) {
		run(script, mode, only);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t number = 0; number < cnt; number += sim_stride())
		run(script, mode, number);
}
