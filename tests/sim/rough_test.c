/* SPDX-License-Identifier: BSD-3-Clause */
#include "modes.h"
#include "script.h"

/*
 * Other difficulties than losses: copies of all packets, overlapping WRITEs, late receives, an SRQ
 * that runs empty, threads that do not run for 50 ms. Numbers are seeds.
 */
#define LIMIT_NS   SIM_MS(60000)
#define PERCENT(n) ((n)*65536u / 100)

static const struct sim_script *const scripts[] = {
#define X(name) &sim_script_##name,
	SIM_RC_SCRIPTS(X)
#undef X
};
#define SCRIPT_CNT (sizeof(scripts) / sizeof(scripts[0]))

/* Runs numbers [0, cnt), or only the one to be replayed. Names are "mode.test". */
static void run_seeds(enum ur_mode mode, const char *test, uint64_t cnt,
		      void (*run)(enum ur_mode mode, uint64_t seed))
{
	uint64_t only;

	if (sim_replay(sim_mode_case(mode, test), &only)) {
		run(mode, only);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t seed = 0; seed < cnt; seed += sim_short_stride())
		run(mode, seed);
}

/* The script of that number, with its own case name. */
static struct sim_script script_named(uint64_t seed, const char *test)
{
	struct sim_script script = *scripts[seed % SCRIPT_CNT];

	script.name = test;
	return script;
}

/* ---- copies ---- */

static void run_copies(enum ur_mode mode, uint64_t seed)
{
	struct sim_script script = script_named(seed, "copies");
	struct sim_rng rng = {.state = seed};
	struct sim_link_attr link = {
		.bits_per_s = 10000000000u,
		.delay_ns = 5000,
		.dup = 65536, /* three copies of each packet */
		.reorder = PERCENT(sim_below(&rng, 100)),
		.reorder_ns = sim_below(&rng, 2) ? 5000 : SIM_US(sim_between(&rng, 1, 300)),
		.loss = sim_below(&rng, 2) ? PERCENT(10) : 0,
	};
	struct sim_exchange_attr attr = {
		.mode = mode, .number = seed, .seed = seed + 1, .link = &link};
	struct sim_exchange x;

	sim_exchange_init(&x, &script, &attr);
	sim_exchange_run(&x, LIMIT_NS);
}

EACH_MODE(rough, three_copies_of_everything_are_executed_once)
{
	run_seeds(mode, "copies", 3000, run_copies);
}

/* ---- overlapping WRITEs ---- */

static void run_overlap(enum ur_mode mode, uint64_t seed)
{
	struct sim_rng rng = {.state = sim_mix(seed)};
	struct sim_script script = {.name = "overlap", .type = IBV_QPT_RC};
	struct sim_link_attr link = {
		.bits_per_s = 10000000000u,
		.delay_ns = 5000,
		.loss = PERCENT(sim_below(&rng, 30)),
		.dup = PERCENT(sim_below(&rng, 20)),
		.reorder = PERCENT(sim_below(&rng, 60)),
		.reorder_ns = SIM_US(sim_between(&rng, 1, 50)),
	};
	struct sim_exchange_attr attr = {
		.mode = mode, .strict = seed & 1, .number = seed, .seed = seed + 1, .link = &link};
	struct sim_exchange x;
	unsigned cnt = sim_between(&rng, 2, 30);

	sim_exchange_init(&x, &script, &attr);
	x.flow->overlap = true;
	for (unsigned i = 0; i < cnt; i++) {
		struct sim_op op = {
			.opcode =
				sim_below(&rng, 4) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
			.len = sim_below(&rng, sim_below(&rng, 2) ? 100 : SIM_SCRIPT_MAX_LEN) + 1,
			.flags = sim_below(&rng, 2) ? IBV_SEND_SIGNALED : 0,
		};

		if (sim_below(&rng, 10) == 0)
			op = (struct sim_op){.opcode = IBV_WR_SEND, .len = 300};
		sim_flow_add(x.flow, op);
	}
	sim_exchange_run(&x, LIMIT_NS);
}

EACH_MODE(rough, overlapping_writes_end_as_in_order)
{
	run_seeds(mode, "overlap", 3000, run_overlap);
}

/* ---- missing receives ---- */

static void run_dry(enum ur_mode mode, uint64_t seed)
{
	struct sim_script script = script_named(seed, "dry");
	struct sim_rng rng = {.state = sim_mix(seed)};
	struct sim_exchange_attr attr = {.mode = mode, .number = seed, .seed = seed + 1};
	struct sim_exchange x;

	sim_exchange_init(&x, &script, &attr);
	x.rq.ahead = sim_between(&rng, 1, 3);
	x.rq.starve = PERCENT(sim_between(&rng, 20, 100));
	x.rq.starve_ns = SIM_US(sim_between(&rng, 10, 3000));
	x.s->drop_mask = sim_below(&rng, 1 << 14);
	sim_exchange_run(&x, LIMIT_NS);
}

EACH_MODE(rough, receives_that_come_late_are_waited_for_in_a_gap)
{
	run_seeds(mode, "dry", 4000, run_dry);
}

/* ---- an SRQ between two QPs ---- */

struct shared {
	struct sim *s;
	struct sim_oracle oracle;
	struct sim_cq cq[2];
	struct sim_srq srq;
	struct sim_recvq rq;
	struct sim_qp qp[4]; /* 0 and 2 request, 1 and 3 respond */
};

static void run_shared(enum ur_mode mode, uint64_t seed)
{
	struct sim_rng rng = {.state = sim_mix(seed)};
	struct sim_attr sa = sim_defaults(sim_mode_case(mode, "srq"), seed);
	struct sim_qp_attr qa[2];
	struct shared x = {0};

	sa.link.loss = PERCENT(sim_below(&rng, 25));
	sa.link.reorder = PERCENT(sim_below(&rng, 30));
	sa.link.reorder_ns = SIM_US(20);
	x.s = sim_new(&sa);
	sim_srq_init(&x.srq, 16, 2);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&x.cq[i], 128);
		qa[i] = sim_qp_defaults(&x.cq[i], &x.cq[i]);
		qa[i].mode = mode;
		qa[i].mtu = IBV_MTU_256;
	}
	qa[1].srq = &x.srq;
	sim_oracle_init(&x.oracle, x.s);
	sim_oracle_add_cq(&x.oracle, &x.cq[0]);
	sim_oracle_add_cq(&x.oracle, &x.cq[1]);
	for (unsigned i = 0; i < 4; i += 2)
		sim_qp_pair(&x.qp[i], &x.s->ep[0], &qa[0], &x.qp[i + 1], &x.s->ep[1], &qa[1]);
	sim_recvq_init(&x.rq, x.s, 0, &x.qp[1], &x.srq, sim_between(&rng, 1, 5), 1200, 2);
	x.rq.starve = PERCENT(sim_between(&rng, 10, 100));
	x.rq.starve_ns = SIM_US(sim_between(&rng, 10, 1000));
	sim_oracle_add_recvq(&x.oracle, &x.rq);
	for (unsigned i = 0; i < 4; i += 2) {
		struct sim_flow *f =
			sim_flow_new(&x.oracle, &x.qp[i], &x.qp[i + 1], &x.rq, 8, 1200, 2);

		for (unsigned k = 0; k < 12; k++)
			sim_flow_add(f,
				     (struct sim_op){.opcode = sim_below(&rng, 3)
								       ? IBV_WR_SEND
								       : IBV_WR_RDMA_WRITE_WITH_IMM,
						     .len = sim_below(&rng, 1200)});
	}
	sim_oracle_run(&x.oracle, LIMIT_NS);
	for (unsigned i = 0; i < 4; i++)
		sim_qp_destroy(&x.qp[i]);
	sim_oracle_free(&x.oracle);
	sim_srq_free(&x.srq);
	for (unsigned i = 0; i < 2; i++)
		sim_cq_free(&x.cq[i]);
	sim_free(x.s);
}

EACH_MODE(rough, an_srq_that_runs_dry_serves_both_queue_pairs_in_the_end)
{
	run_seeds(mode, "srq", 1500, run_shared);
}

/* ---- stalls ---- */

#define STALL_NS SIM_MS(50)

struct stalls {
	struct sim_rng rng;
	unsigned left, sides; /* bit 0: the requester, bit 1: the responder */
};

/* Both QPs have timeout 14 (67 ms) and 7 retries. */
static void stall(struct sim *s, void *arg)
{
	struct stalls *st = arg;

	if (!st->left--)
		return;
	for (unsigned i = 0; i < 2; i++)
		if ((st->sides >> i & 1) && (st->sides != 3 || sim_below(&st->rng, 3)))
			sim_stall(&s->ep[i], STALL_NS);
	sim_call_at(s, s->now_ns + STALL_NS + sim_below(&st->rng, 60000), stall, st);
}

static void run_stalls(enum ur_mode mode, uint64_t seed)
{
	struct sim_script script = script_named(seed, "stalls");
	struct sim_rng rng = {.state = sim_mix(seed)};
	struct stalls st = {.rng = rng, .sides = 1 + seed % 3};
	struct sim_link_attr link = {.bits_per_s = 1000000000u,
				     .delay_ns = 5000,
				     .loss = sim_below(&rng, 2) ? PERCENT(10) : 0};
	struct sim_exchange_attr attr = {
		.mode = mode, .number = seed, .seed = seed + 1, .link = &link};
	struct sim_exchange x;

	st.left = sim_between(&rng, 1, 20);
	sim_exchange_init(&x, &script, &attr);
	for (unsigned k = 0; k < 4; k++)
		for (unsigned i = 0; i < SIM_SCRIPT_OPS && script.ops[i].flags; i++)
			sim_flow_add(x.flow, script.ops[i]);
	sim_call_at(x.s, x.s->now_ns + sim_below(&rng, 60000), stall, &st);
	sim_exchange_run(&x, LIMIT_NS);
}

EACH_MODE(rough, stalls_of_50_ms_kill_no_queue_pair)
{
	run_seeds(mode, "stalls", 1500, run_stalls);
}
