/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "link.h"

/*
 * Compares the losses of the simulator's links with the Gilbert-Elliott model. Seeds are fixed;
 * bounds are six standard deviations.
 */
#define FRAMES	  400000u
#define CHANCE(p) ((uint32_t)((p)*65536))

struct seen {
	unsigned lost, runs, long_runs; /* runs of more than 3 */
};

static struct seen watch(struct sim_link_attr attr, uint64_t seed)
{
	struct sim_link link = {.attr = attr};
	struct sim_rng rng = {.state = sim_mix(seed)};
	struct seen seen = {0};
	unsigned run = 0;

	for (unsigned i = 0; i < FRAMES; i++) {
		if (sim_link_send(&link, &rng, 100, i).copies) {
			run = 0;
			continue;
		}
		seen.lost++;
		seen.runs += run++ == 0;
		seen.long_runs += run == 4;
	}
	return seen;
}

static void expect_near(double is, double want, double variance, const char *what)
{
	cr_assert((is - want) * (is - want) < 36 * variance, "%s is %g, expected %g", what, is,
		  want);
}

static void expect_bursts(double begin, double finish, uint64_t seed)
{
	struct seen seen = watch((struct sim_link_attr){.burst = CHANCE(begin),
							.burst_end = CHANCE(finish),
							.burst_loss = 65536},
				 seed);
	double share = begin / (begin + finish), memory = 1 - begin - finish, runs = seen.runs;

	expect_near((double)seen.lost / FRAMES, share,
		    share * (1 - share) / FRAMES * (1 + memory) / (1 - memory), "mean loss");
	expect_near(seen.lost / runs, 1 / finish,
		    (1 - finish) / (finish * finish) / runs + 1 / (runs * runs), "mean burst");
}

/* Chances that are multiples of 1/65536. */
Test(link, bursts_are_as_frequent_and_as_long_as_configured)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		expect_bursts(64 / 65536.0, 0.125, seed);
		expect_bursts(1024 / 65536.0, 0.5, seed);
		expect_bursts(32 / 65536.0, 1 / 64.0, seed);
		expect_bursts(0.25, 1, seed);
	}
}

Test(link, independent_loss_is_as_frequent_as_configured_and_unbounded_in_a_row)
{
	struct seen seen = watch((struct sim_link_attr){.loss = 65536 / 4}, 1);

	expect_near((double)seen.lost / FRAMES, 0.25, 0.25 * 0.75 / FRAMES, "mean loss");
	expect_near(seen.long_runs, seen.runs / 64.0, seen.runs / 64.0, "runs of more than 3");
}
