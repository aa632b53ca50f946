/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "cc_sim.h"

/* What the modes do to queues. docs/design/pacing.md has the figures; here is what must hold. */

#define GBPS UINT64_C(1000000000)
#define MS   UINT64_C(1000000)

/* A sender of 10 Gb/s; destination 0 drains at 1 Gb/s, three others at 10. */
static struct psim_attr one_slow(enum ur_cc_mode mode)
{
	return (struct psim_attr){
		.pacing = {.mode = mode, .link_bps = 10 * GBPS},
		.senders = 1,
		.dests = 4,
		.link_bps = 10 * GBPS,
		.base_ns = {{0, 20000}},
		.drain_bps = {{{0, GBPS}}, {{0, 10 * GBPS}}, {{0, 10 * GBPS}}, {{0, 10 * GBPS}}},
	};
}

static struct psim_attr incast(enum ur_cc_mode mode)
{
	return (struct psim_attr){
		.pacing = {.mode = mode, .link_bps = 10 * GBPS},
		.senders = 16,
		.dests = 1,
		.window = 4096,
		.link_bps = 10 * GBPS,
		.base_ns = {{0, 20000}},
		.drain_bps = {{{0, 10 * GBPS}}},
	};
}

static struct psim_result run(const struct psim_attr *attr, uint64_t from_ns, uint64_t until_ns)
{
	struct psim *s = psim_new(attr);
	struct psim_result r;

	psim_run(s, from_ns);
	r = psim_run(s, until_ns);
	psim_free(s);
	return r;
}

/*
 * The slow destination loses less than a tenth, its queue is a fifth of what it was at most, and
 * the others have 0.95 of the link that it leaves them.
 */
static void expect_held(const struct psim_attr *attr, uint64_t from_ns, uint64_t until_ns)
{
	struct psim_attr none = *attr;
	struct psim_result with = run(attr, from_ns, until_ns), without;

	none.pacing.mode = UR_CC_NONE;
	without = run(&none, from_ns, until_ns);
	cr_assert_gt(with.gbps[0], 0.9 * without.gbps[0], "%f of %f", with.gbps[0],
		     without.gbps[0]);
	cr_assert_lt(5 * with.queue_us[0], without.queue_us[0], "%f of %f", with.queue_us[0],
		     without.queue_us[0]);
	/* Far better than that, once it runs. */
	cr_assert_lt(with.queue_us[0], 400);
	for (unsigned j = 1; j < 4; j++) {
		cr_assert_gt(with.gbps[j], 0.95 * (10 - 1.0) / 3, "%u: %f", j, with.gbps[j]);
		cr_assert_eq(with.queue_us[j], 0);
	}
}

static double jain(const struct psim_result *r)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < PSIM_SENDERS; i++) {
		sum += r->share_gbps[i];
		squares += r->share_gbps[i] * r->share_gbps[i];
	}
	return sum * sum / (squares * PSIM_SENDERS);
}

static void expect_fair(const struct psim_attr *attr, double queue_us)
{
	struct psim_result r = run(attr, 100 * MS, 200 * MS);

	cr_assert_gt(r.gbps[0], 9.5, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_us[0], queue_us, "%f", r.queue_us[0]);
	cr_assert_gt(jain(&r), 0.9, "%f", jain(&r));
}

/* PACE-AUTO-03 */
Test(cc_sim, auto_drains_the_queue_of_a_slow_destination)
{
	struct psim_attr attr = one_slow(UR_CC_AUTO);

	expect_held(&attr, 600 * MS, 1100 * MS);
	/* From the first packet on. */
	expect_held(&attr, 0, 100 * MS);
}

/* PACE-AUTO-03 */
Test(cc_sim, auto_copes_with_rare_answers)
{
	struct psim_attr attr = one_slow(UR_CC_AUTO);

	for (attr.coalesce = 4; attr.coalesce <= 64; attr.coalesce *= 4)
		expect_held(&attr, 600 * MS, 1100 * MS);
}

/* PACE-AUTO-03 */
Test(cc_sim, auto_copes_with_short_and_long_ways)
{
	struct psim_attr attr = one_slow(UR_CC_AUTO);

	attr.base_ns[0].value = 2000;
	expect_held(&attr, 600 * MS, 1100 * MS);
	attr.base_ns[0].value = 100000;
	expect_held(&attr, 600 * MS, 1100 * MS);
	attr.base_ns[0].value = 1000000;
	expect_held(&attr, 600 * MS, 1100 * MS);
}

/* PACE-AUTO-02 */
Test(cc_sim, auto_copes_with_jitter)
{
	static const uint64_t base_ns[] = {2000, 20000, 1000000};
	struct psim_attr attr = one_slow(UR_CC_AUTO);

	attr.jitter_ns = 30000;
	for (unsigned i = 0; i < 3; i++) {
		attr.base_ns[0].value = base_ns[i];
		attr.coalesce = 1;
		expect_held(&attr, 600 * MS, 1100 * MS);
		attr.coalesce = 16;
		expect_held(&attr, 600 * MS, 1100 * MS);
	}
}

/* PACE-AUTO-01 */
Test(cc_sim, auto_leaves_healthy_destinations_alone)
{
	static const uint64_t base_ns[] = {2000, 20000, 1000000};
	struct psim_attr attr = one_slow(UR_CC_AUTO);

	attr.drain_bps[0][0].value = 10 * GBPS;
	for (unsigned i = 0; i < 3; i++) {
		attr.base_ns[0].value = base_ns[i];
		for (attr.jitter_ns = 0; attr.jitter_ns <= 30000; attr.jitter_ns += 15000) {
			for (attr.coalesce = 1; attr.coalesce <= 64; attr.coalesce *= 8) {
				struct psim_result r = run(&attr, 0, 200 * MS);

				for (unsigned j = 0; j < 4; j++)
					cr_assert_eq(r.throttles[j], 0);
			}
		}
	}
}

/* PACE-AUTO-05 */
Test(cc_sim, auto_survives_a_longer_path)
{
	struct psim_attr attr = one_slow(UR_CC_AUTO);
	struct psim_result r;

	attr.base_ns[1] = (struct psim_step){200 * MS, 200000};
	expect_held(&attr, 600 * MS, 1100 * MS);
	/* Where all are healthy they are so again soon. */
	attr.drain_bps[0][0].value = 10 * GBPS;
	r = run(&attr, 250 * MS, 400 * MS);
	for (unsigned j = 0; j < 4; j++) {
		cr_assert_gt(r.gbps[j], 2.45, "%u: %f", j, r.gbps[j]);
		cr_assert_lt(r.throttled[j], 0.01);
	}
	/* With jitter it takes longer to be sure. */
	attr.jitter_ns = 30000;
	r = run(&attr, 1300 * MS, 1500 * MS);
	for (unsigned j = 0; j < 4; j++)
		cr_assert_gt(r.gbps[j], 2.45, "%u: %f", j, r.gbps[j]);
	attr.jitter_ns = 0;
	/* And a shorter one is none of its business. */
	attr.base_ns[0].value = 400000;
	r = run(&attr, 0, 400 * MS);
	for (unsigned j = 0; j < 4; j++)
		cr_assert_eq(r.throttles[j], 0);
}

/* PACE-AUTO-03, PACE-AUTO-04 */
Test(cc_sim, auto_follows_a_destination_whose_rate_changes)
{
	struct psim_attr attr = one_slow(UR_CC_AUTO);
	struct psim_result r;
	struct psim *s;

	attr.dests = 2;
	attr.drain_bps[0][1] = (struct psim_step){200 * MS, 5 * GBPS};
	attr.drain_bps[0][2] = (struct psim_step){400 * MS, GBPS / 2};
	s = psim_new(&attr);
	psim_run(s, 100 * MS);
	r = psim_run(s, 200 * MS);
	cr_assert_gt(r.gbps[0], 0.95);
	cr_assert_lt(r.queue_us[0], 200);
	/* 1 to 5 Gb/s, within 20 ms. */
	r = psim_run(s, 220 * MS);
	cr_assert_gt(r.gbps[0], 4.5);
	r = psim_run(s, 400 * MS);
	cr_assert_gt(r.gbps[0], 4.9);
	cr_assert_lt(r.queue_us[0], 50);
	/* 5 to 0.5 Gb/s. */
	r = psim_run(s, 420 * MS);
	cr_assert_gt(r.gbps[0], 0.48);
	cr_assert_lt(r.queue_max_us[0], 5000);
	r = psim_run(s, 600 * MS);
	cr_assert_gt(r.gbps[0], 0.48);
	cr_assert_lt(r.queue_us[0], 300);
	cr_assert_gt(r.gbps[1], 9.4);
	psim_free(s);
}

/* PACE-AUTO-03 */
Test(cc_sim, auto_shares_a_destination_fairly)
{
	struct psim_attr attr = incast(UR_CC_AUTO);

	expect_fair(&attr, 300);
	attr.jitter_ns = 30000;
	expect_fair(&attr, 300);
	attr.jitter_ns = 0;
	attr.coalesce = 16;
	expect_fair(&attr, 800);
	attr.coalesce = 1;
	attr.base_ns[0].value = 2000;
	expect_fair(&attr, 300);
	attr.base_ns[0].value = 1000000;
	expect_fair(&attr, 500);
}

/* PACE-AUTO-05, PACE-AUTO-06: no sender takes the others' queue for the path, however long it stands. */
Test(cc_sim, auto_stays_fair)
{
	struct psim_attr attr = incast(UR_CC_AUTO);
	struct psim_result r = run(&attr, 4000 * MS, 5000 * MS);

	cr_assert_gt(r.gbps[0], 9.9);
	cr_assert_lt(r.queue_max_us[0], 500, "%f", r.queue_max_us[0]);
	cr_assert_gt(jain(&r), 0.98, "%f", jain(&r));
	cr_assert_eq(r.reseeds, 0);
}

/* Senders that start late take some of the queue for the path; but it stays short. PACE-AUTO-03 */
Test(cc_sim, auto_keeps_the_queue_short_when_senders_come_one_by_one)
{
	struct psim_attr attr = incast(UR_CC_AUTO);
	struct psim_result r;

	attr.stagger_ns = 3 * MS;
	r = run(&attr, 200 * MS, 400 * MS);
	cr_assert_gt(r.gbps[0], 9.9);
	cr_assert_lt(r.queue_max_us[0], 1000, "%f", r.queue_max_us[0]);
	cr_assert_gt(jain(&r), 0.8, "%f", jain(&r));
}

/* ---- delays that switches stamp ---- */

/*
 * All destinations take 10 Gb/s. From 50 ms on a queue grows on the way back, to a millisecond within 20 ms; or is there at
 * once.
 */
static struct psim_result way_back(enum ur_cc_mode mode, bool stamped, bool at_once)
{
	struct psim_attr attr = one_slow(mode);

	attr.drain_bps[0][0].value = 10 * GBPS;
	attr.back_ns[0] = (struct psim_step){0, 1};
	attr.back_ns[1] = (struct psim_step){50 * MS, MS};
	attr.grow_ns = at_once ? 0 : 20 * MS;
	attr.stamped = stamped;
	return run(&attr, 50 * MS, 150 * MS);
}

/* PACE-NET-01 */
Test(cc_sim, queue_on_the_way_back_throttles_by_round_trips_only)
{
	struct psim_result c = way_back(UR_CC_AUTO, false, false),
			   a = way_back(UR_CC_AUTO, true, false);

	for (unsigned j = 0; j < 4; j++) {
		cr_assert_lt(a.throttled[j], 0.01, "%f", a.throttled[j]);
		cr_assert_gt(a.gbps[j], 2.45, "%f", a.gbps[j]);
		cr_assert_gt(c.throttled[j], 0.5, "%f", c.throttled[j]);
		cr_assert_lt(c.gbps[j], 0.5, "%f", c.gbps[j]);
	}
}

/* PACE-NET-05: a queue that is not measured yet throttles, but not for long. */
Test(cc_sim, sudden_queue_on_the_way_back_throttles_for_a_moment)
{
	struct psim_result c = way_back(UR_CC_AUTO, false, true),
			   a = way_back(UR_CC_AUTO, true, true);

	for (unsigned j = 0; j < 4; j++) {
		cr_assert_lt(a.throttled[j], 0.2, "%f", a.throttled[j]);
		cr_assert_lt(a.throttled[j], c.throttled[j] / 2, "%f of %f", a.throttled[j],
			     c.throttled[j]);
		cr_assert_geq(a.gbps[j], c.gbps[j]);
	}
}

/* PACE-NET-01, PACE-NET-05: a queue on the way there is noticed as soon, and is as short. */
Test(cc_sim, auto_drains_what_switches_stamp)
{
	struct psim_attr attr = one_slow(UR_CC_AUTO);

	attr.stamped = true;
	expect_held(&attr, 600 * MS, 1100 * MS);
	attr = incast(UR_CC_AUTO);
	attr.stamped = true;
	expect_fair(&attr, 400);
	attr.stagger_ns = 3 * MS;
	cr_assert_lt(run(&attr, 200 * MS, 400 * MS).queue_max_us[0], 1000);
}

/* PACE-NET-05: one that begins late; 16 senders, each of which was alone on its way. */
Test(cc_sim, auto_notices_a_sudden_queue_that_switches_stamp)
{
	struct psim_attr attr = incast(UR_CC_AUTO);
	struct psim_result c, a;

	/* 160 Gb/s are enough for all. */
	attr.drain_bps[0][0].value = 160 * GBPS;
	attr.drain_bps[0][1] = (struct psim_step){50 * MS, 10 * GBPS};
	c = run(&attr, 50 * MS, 150 * MS);
	attr.stamped = true;
	a = run(&attr, 50 * MS, 150 * MS);
	cr_assert_lt(a.queue_max_us[0], 2 * c.queue_max_us[0], "%f, not %f", a.queue_max_us[0],
		     c.queue_max_us[0]);
	cr_assert_gt(a.gbps[0], 0.95 * c.gbps[0]);
}

/* PACE-DCQCN-01 */
Test(cc_sim, dcqcn_drains_queues_by_marks)
{
	struct psim_attr attr = one_slow(UR_CC_DCQCN);
	struct psim_result r;

	attr.mark_bytes = 100000;
	r = run(&attr, 600 * MS, 1100 * MS);
	cr_assert_gt(r.gbps[0], 0.8, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_us[0], 5000, "%f", r.queue_us[0]);
	cr_assert_gt(r.gbps[1], 2.9);
	cr_assert_eq(r.throttles[1], 0);
	attr = incast(UR_CC_DCQCN);
	attr.mark_bytes = 100000;
	r = run(&attr, 100 * MS, 200 * MS);
	cr_assert_gt(r.gbps[0], 8.5, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_us[0], 300, "%f", r.queue_us[0]);
	cr_assert_gt(jain(&r), 0.9, "%f", jain(&r));
}

/* ---- Swift: base target 50 us, with flow scaling 175 us at most ---- */

static struct psim_attr with_target(struct psim_attr attr)
{
	attr.pacing.target_ns = 50000;
	return attr;
}

/* CC-SWIFT-01: the delay stays near the target, and the others have what the slow one leaves. */
Test(cc_sim, swift_holds_the_queue_of_a_slow_destination_near_its_target)
{
	struct psim_attr attr = with_target(one_slow(UR_CC_SWIFT));
	struct psim_result r = run(&attr, 600 * MS, 1100 * MS);

	cr_assert_gt(r.gbps[0], 0.95, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_us[0], 50, "%f", r.queue_us[0]);
	cr_assert_lt(r.queue_max_us[0], 100, "%f", r.queue_max_us[0]);
	for (unsigned j = 1; j < 4; j++) {
		cr_assert_gt(r.gbps[j], 0.95 * (10 - 1.0) / 3, "%u: %f", j, r.gbps[j]);
		cr_assert_eq(r.throttles[j], 0);
	}
	/* From the first packet on. */
	r = run(&attr, 0, 100 * MS);
	cr_assert_gt(r.gbps[0], 0.95, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_max_us[0], 250, "%f", r.queue_max_us[0]);
}

/*
 * CC-SWIFT-01. At 0.5 Gb/s a packet takes 65 us on the last link: one on its way is less than the
 * link takes, two are more than the target. Whole packets cannot do better.
 */
Test(cc_sim, swift_follows_a_destination_whose_rate_changes)
{
	struct psim_attr attr = with_target(one_slow(UR_CC_SWIFT));
	struct psim_result r;
	struct psim *s;

	attr.dests = 2;
	attr.drain_bps[0][1] = (struct psim_step){200 * MS, 5 * GBPS};
	attr.drain_bps[0][2] = (struct psim_step){400 * MS, GBPS / 2};
	s = psim_new(&attr);
	psim_run(s, 100 * MS);
	r = psim_run(s, 200 * MS);
	cr_assert_gt(r.gbps[0], 0.95, "%f", r.gbps[0]);
	psim_run(s, 205 * MS);
	r = psim_run(s, 400 * MS);
	cr_assert_gt(r.gbps[0], 4.9, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_us[0], 50, "%f", r.queue_us[0]);
	r = psim_run(s, 420 * MS);
	cr_assert_lt(r.queue_max_us[0], 1000, "%f", r.queue_max_us[0]);
	r = psim_run(s, 600 * MS);
	cr_assert_gt(r.gbps[0], 0.3, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_max_us[0], 150, "%f", r.queue_max_us[0]);
	psim_free(s);
}

static void expect_swift_shares(const struct psim_attr *attr, uint64_t from_ns, uint64_t until_ns)
{
	struct psim_result r = run(attr, from_ns, until_ns);

	cr_assert_gt(r.gbps[0], 9.9, "%f", r.gbps[0]);
	cr_assert_lt(r.queue_us[0], 100, "%f", r.queue_us[0]);
	cr_assert_lt(r.queue_max_us[0], 150, "%f", r.queue_max_us[0]);
	cr_assert_gt(jain(&r), 0.98, "%f", jain(&r));
	cr_assert_eq(r.reseeds, 0);
}

/*
 * CC-SWIFT-02, CC-SWIFT-03. 16 senders share the six packets that a round trip of 20 us holds at
 * 10 Gb/s: their windows are below one packet. And the half packet of a round trip of 2 us.
 */
Test(cc_sim, swift_shares_less_than_a_packet_each)
{
	struct psim_attr attr = with_target(incast(UR_CC_SWIFT));

	expect_swift_shares(&attr, 100 * MS, 300 * MS);
	expect_swift_shares(&attr, 2000 * MS, 2500 * MS);
	attr.jitter_ns = 30000;
	expect_swift_shares(&attr, 100 * MS, 300 * MS);
	attr.jitter_ns = 0;
	attr.base_ns[0].value = 2000;
	expect_swift_shares(&attr, 100 * MS, 300 * MS);
}

/* CC-SWIFT-01: shares converge, whichever sender comes first. */
Test(cc_sim, swift_converges_when_senders_come_one_by_one)
{
	struct psim_attr attr = with_target(incast(UR_CC_SWIFT));

	attr.stagger_ns = 3 * MS;
	expect_swift_shares(&attr, 100 * MS, 300 * MS);
	attr.jitter_ns = 3000;
	expect_swift_shares(&attr, 100 * MS, 300 * MS);
}

/* CC-SWIFT-04: a path that takes longer than the target is found out. */
Test(cc_sim, swift_survives_a_longer_path)
{
	struct psim_attr attr = with_target(one_slow(UR_CC_SWIFT));
	struct psim_result r;

	attr.drain_bps[0][0].value = 10 * GBPS;
	attr.base_ns[1] = (struct psim_step){200 * MS, 400000};
	r = run(&attr, 2500 * MS, 3000 * MS);
	for (unsigned j = 0; j < 4; j++)
		cr_assert_gt(r.gbps[j], 2.4, "%u: %f", j, r.gbps[j]);
}

/* PACE-CMDPD-01, PACE-CMDPD-03: the average rises with a queue that builds up, so nothing happens.
 */
Test(cc_sim, cmdpd_reacts_to_sudden_congestion_only)
{
	struct psim_attr attr = one_slow(UR_CC_CMDPD);
	struct psim_result r;

	attr.pacing.ewma = true;
	r = run(&attr, 0, 100 * MS);
	cr_assert_eq(r.throttles[0], 0);
	attr.drain_bps[0][0].value = 10 * GBPS;
	attr.base_ns[1] = (struct psim_step){10 * MS, 1000000};
	r = run(&attr, 10 * MS, 100 * MS);
	cr_assert_eq(r.throttles[0], 1);
	cr_assert_eq(r.reseeds, 4);
	r = run(&attr, 30 * MS, 100 * MS);
	cr_assert_eq(r.throttled[0], 0);
	cr_assert_gt(r.gbps[0], 2.49);
}
