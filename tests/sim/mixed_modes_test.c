/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "script.h"

/*
 * Two ends that handle loss differently: one goes back to the gap, the other keeps early packets.
 * Neither is informed of the other's mode; both are RoCEv2. Numbers are drop masks of the first
 * twelve packets, or seeds.
 */
#define MASK_BITS  12
#define SEEDS	   3000
#define LIMIT_NS   SIM_MS(60000)
#define PERCENT(n) ((n)*65536u / 100)

static enum ur_mode other(enum ur_mode mode)
{
	return mode == UR_MODE_GBN ? UR_MODE_REORDER : UR_MODE_GBN;
}

static struct sim_exchange_attr attr_of(enum ur_mode mode, const char *test, uint64_t number)
{
	return (struct sim_exchange_attr){.mode = mode,
					  .peer_mode = other(mode),
					  .mixed = true,
					  .test = test,
					  .number = number};
}

static void run_mask(const struct sim_script *script, enum ur_mode mode, uint64_t mask)
{
	struct sim_exchange_attr attr = attr_of(mode, "mixed", mask);
	struct sim_exchange x;

	sim_exchange_init(&x, script, &attr);
	x.s->drop_mask = mask;
	x.oracle.clean = x.oracle.alone = mask == 0;
	sim_exchange_run(&x, LIMIT_NS);
}

/* Runs the script several times, through a network with all impairments. */
static void run_seed(const struct sim_script *script, enum ur_mode mode, uint64_t seed)
{
	struct sim_exchange_attr attr = attr_of(mode, "mixed_rough", seed);
	struct sim_rng rng = {.state = sim_mix(seed)};
	struct sim_link_attr link = {
		.bits_per_s = 10000000000u,
		.delay_ns = 5000,
		.loss = PERCENT(sim_below(&rng, 25)),
		.dup = PERCENT(sim_below(&rng, 10)),
		.reorder = PERCENT(sim_below(&rng, 50)),
		.reorder_ns = SIM_US(sim_between(&rng, 1, 100)),
	};
	struct sim_exchange x;

	attr.seed = seed + 1;
	attr.link = &link;
	sim_exchange_init(&x, script, &attr);
	if (sim_below(&rng, 4) == 0) {
		x.rq.ahead = 2;
		x.rq.starve = PERCENT(50);
		x.rq.starve_ns = SIM_US(sim_between(&rng, 10, 1000));
	}
	for (unsigned k = sim_below(&rng, 4); k; k--)
		for (unsigned i = 0; i < SIM_SCRIPT_OPS && script->ops[i].flags; i++)
			sim_flow_add(x.flow, script->ops[i]);
	sim_exchange_run(&x, LIMIT_NS);
}

/* Tests run in parallel, each in its own process. */
#define MIXED(script)                                                                              \
	Test(mixed_modes, gbn_to_reorder_##script)                                                 \
	{                                                                                          \
		sim_run_numbers(&sim_script_##script, UR_MODE_GBN, "mixed", 1u << MASK_BITS,       \
				run_mask);                                                         \
	}                                                                                          \
	Test(mixed_modes, reorder_to_gbn_##script)                                                 \
	{                                                                                          \
		sim_run_numbers(&sim_script_##script, UR_MODE_REORDER, "mixed", 1u << MASK_BITS,   \
				run_mask);                                                         \
	}                                                                                          \
	Test(mixed_modes, gbn_to_reorder_over_a_rough_network_##script)                            \
	{                                                                                          \
		sim_run_numbers(&sim_script_##script, UR_MODE_GBN, "mixed_rough", SEEDS,           \
				run_seed);                                                         \
	}                                                                                          \
	Test(mixed_modes, reorder_to_gbn_over_a_rough_network_##script)                            \
	{                                                                                          \
		sim_run_numbers(&sim_script_##script, UR_MODE_REORDER, "mixed_rough", SEEDS,       \
				run_seed);                                                         \
	}
SIM_RC_SCRIPTS(MIXED)
