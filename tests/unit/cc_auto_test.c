/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "cc/cc.h"
#include "cc/auto.h"

#define AUTO(d) ((const struct ur_cc_auto *)(const void *)(d)->state)

/* Sample by sample; how the whole behaves is shown in cc_sim_test.c. */

#define GBPS UINT64_C(1000000000)
#define US   UINT64_C(1000)
#define MS   UINT64_C(1000000)
#define S    UINT64_C(1000000000)

static struct ur_cc t;
static _Alignas(8) uint8_t memory[2048];
static struct ur_cc_dest *d;
static uint64_t now;

static void start(void)
{
	struct ur_cc_attr attr = {.mode = UR_CC_AUTO, .link_bps = 10 * GBPS};
	uint8_t key[UR_CC_KEY] = {1};

	ur_cc_init(&t, memory, 1, &attr);
	d = ur_cc_get(&t, key, 4096, 1 * MS);
	now = 1 * MS;
}

/* For `us`: a packet of 4096 bytes each interval_us, each answered after delay_us. */
static void flow(uint64_t us, uint64_t interval_us, uint32_t delay_us)
{
	for (uint64_t end = now + us * US; now < end; now += interval_us * US) {
		ur_cc_on_send(&t, d, 4096, now);
		ur_cc_on_ack(&t, d, delay_us * 1000, now);
	}
}

static double gbps(void)
{
	struct ur_cc_view v;

	ur_cc_view(&t, d, &v);
	return (double)v.rate_bps / 1e9;
}

/* To a destination that took 3.3 Gb/s (4096 bytes each 10 us) until its answers came late. */
static void make_slow(void)
{
	flow(1000, 10, 20);
	flow(30, 10, 100);
}

TestSuite(cc_auto, .init = start);

/* PACE-AUTO-01 */
Test(cc_auto, leaves_short_delays_alone)
{
	flow(5000, 10, 20);
	/* Goal: 4 packets at 3.3 Gb/s and an eighth of the least, 42.5 us. */
	flow(5000, 10, 60);
	cr_assert_not(d->throttled);
	cr_assert_eq(d->throttles, 0);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	/* And on a long path: 139 us. */
	start();
	flow(5000, 10, 800);
	flow(5000, 10, 900);
	cr_assert_eq(d->throttles, 0);
	flow(5000, 10, 1000);
	cr_assert_eq(d->throttles, 1);
}

/* For 20 us: 4096 bytes each 256 ns, 128 Gb/s; they take longer by 10 ns each until they take delay_ns. */
static void fast_flow(uint32_t from_ns, uint32_t delay_ns)
{
	for (uint64_t end = now + 20 * US; now < end; now += 256) {
		from_ns = from_ns + 10 < delay_ns ? from_ns + 10 : delay_ns;
		ur_cc_on_send(&t, d, 4096, now);
		ur_cc_on_ack(&t, d, from_ns, now);
	}
}

/*
 * PACE-AUTO-03: what the link sends in 1280 ns, 41 KB here; at the capacity of 16 bytes a nanosecond that is 2.56 us, to
 * which an eighth of the least delay comes.
 */
Test(cc_auto, wants_a_longer_queue_on_a_fast_link)
{
	uint32_t taken = 2000;

	ur_cc_set_link(&t, 256 * GBPS);
	fast_flow(taken, taken);
	for (unsigned i = 0; i < 20; i++, taken += 130)
		fast_flow(taken, taken + 130);
	cr_assert_eq(d->throttles, 0, "at a queue of 2.6 us, of 2.81");
	for (unsigned i = 0; i < 7; i++, taken += 130)
		fast_flow(taken, taken + 130);
	cr_assert_eq(d->throttles, 1, "at one of 3.5 us");
}

/* PACE-AUTO-02 */
Test(cc_auto, leaves_a_single_long_delay_alone)
{
	flow(5000, 10, 20);
	for (unsigned i = 0; i < 20; i++) {
		flow(10, 10, 1000);
		flow(200, 10, 20);
	}
	cr_assert_eq(d->throttles, 0);
}

/* PACE-AUTO-02 */
Test(cc_auto, leaves_jitter_alone)
{
	uint32_t seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		flow(4, 4, 2 + (seed >> 16) % 31);
	}
	cr_assert_eq(d->throttles, 0);
}

/* PACE-AUTO-02: it accounts for 60 us here, however much there is. */
Test(cc_auto, is_not_blinded_by_jitter)
{
	for (unsigned i = 0; i < 200; i++) {
		flow(10, 10, 20);
		flow(10, 10, 1020);
	}
	flow(10, 10, 20);
	cr_assert_eq(d->throttles, 0);
	flow(60, 10, 300);
	cr_assert_eq(d->throttles, 1);
}

/* PACE-AUTO-01, PACE-AUTO-03 */
Test(cc_auto, throttles_to_less_than_the_delivery_rate)
{
	make_slow();
	cr_assert(d->throttled);
	cr_assert_eq(d->throttles, 1);
	cr_assert_lt(gbps(), 3.3);
	cr_assert_gt(gbps(), 0.4);
	cr_assert_leq(ur_cc_open_ns(d), now);
	ur_cc_on_send(&t, d, 4096, now);
	ur_cc_on_send(&t, d, 4096, now);
	ur_cc_on_send(&t, d, 4096, now);
	cr_assert_gt(ur_cc_open_ns(d), now);
}

/* PACE-AUTO-02: late by 980 us, they must be so for 122.5 us; a round trip need not pass. */
Test(cc_auto, throttles_when_long_delays_last)
{
	flow(1000, 10, 20);
	flow(10, 10, 1000);
	now += 112 * US - 10 * US;
	flow(10, 10, 1000);
	cr_assert_not(d->throttled, "the second one came 112 us after the first");
	now += 1 * US;
	flow(10, 10, 1000);
	cr_assert(d->throttled, "123 us");
}

/* PACE-AUTO-02: a peer that did not run for 10 ms answers 64 packets at once. */
Test(cc_auto, ignores_answers_that_are_late_together)
{
	flow(1000, 10, 20);
	for (unsigned pause = 0; pause < 20; pause++) {
		now += 10 * MS;
		for (uint32_t i = 0; i < 64; i++) {
			ur_cc_on_ack(&t, d, 10000000 - i * 10000, now);
			now += 2 * US;
		}
		flow(500, 10, 20);
	}
	cr_assert_eq(d->throttles, 0);
}

/* PACE-DELAY-01 */
Test(cc_auto, does_not_count_what_may_have_waited_for_us)
{
	flow(1000, 10, 20);
	cr_assert_eq(t.cnt.samples, 100);
	t.dry_ns = now - 501 * US;
	ur_cc_on_ack(&t, d, 1000000, now);
	cr_assert_eq(t.cnt.samples, 100);
	cr_assert_eq(t.cnt.unsure, 1);
	cr_assert_eq(d->samples, 100);
	t.dry_ns = now - 500 * US;
	ur_cc_on_ack(&t, d, 1000000, now);
	cr_assert_eq(t.cnt.samples, 101);
	cr_assert_eq(t.cnt.unsure, 1);
}

/* PACE-AUTO-04 */
Test(cc_auto, opens_step_by_step)
{
	double before = 0;
	unsigned steps = 0;

	make_slow();
	while (d->throttled && steps < 40) {
		before = gbps();
		flow(30, 30, 20);
		if (!d->throttled)
			break;
		/* At first more comes out than is sent. */
		cr_assert_leq(gbps(), steps ? 1.4 * before : 4);
		steps++;
	}
	cr_assert_not(d->throttled);
	cr_assert_geq(steps, 4);
	cr_assert_leq(steps, 12);
	cr_assert_gt(before, 10 / 1.26);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	flow(1000, 10, 20);
	cr_assert_eq(d->throttles, 1);
}

/* PACE-AUTO-05: whatever is sent, the answers take 100 us now. */
Test(cc_auto, learns_a_longer_path)
{
	make_slow();
	for (unsigned i = 0; i < 4000 && d->throttled; i++) {
		uint64_t open_ns = ur_cc_open_ns(d);

		now = open_ns > now + 10 * US ? open_ns : now + 10 * US;
		ur_cc_on_send(&t, d, 4096, now);
		ur_cc_on_ack(&t, d, 100000, now);
	}
	cr_assert_not(d->throttled);
	cr_assert_geq(d->reseeds, 1);
	cr_assert_eq(AUTO(d)->least_ns, 100000);
	flow(5000, 10, 100);
	cr_assert_eq(d->throttles, 1);
}

/* PACE-AUTO-06 */
Test(cc_auto, forgets_the_least_delay_of_long_ago)
{
	flow(1 * MS / US, 10, 20);
	flow(900 * MS / US, 100, 30);
	cr_assert_eq(AUTO(d)->least_ns, 20000);
	/* The first interval ends, and what was seen in it still counts. */
	flow(300 * MS / US, 100, 30);
	cr_assert_eq(AUTO(d)->least_ns, 20000);
	flow(1000 * MS / US, 100, 30);
	cr_assert_eq(AUTO(d)->least_ns, 30000);
}

/* PACE-AUTO-06 */
Test(cc_auto, does_not_age_while_throttled)
{
	make_slow();
	/* Delays go up and down with no turn between, so the way is no longer one. */
	for (unsigned i = 0; i < 150000; i++)
		flow(20, 20, 200 + i % 997);
	cr_assert(d->throttled);
	cr_assert_eq(AUTO(d)->least_ns, 20000);
	cr_assert_eq(d->reseeds, 0);
}

/* PACE-AUTO-07 */
Test(cc_auto, lets_go_when_nothing_has_come_back_for_a_second)
{
	make_slow();
	now = AUTO(d)->round_ns + S - 1;
	ur_cc_on_send(&t, d, 4096, now);
	cr_assert(d->throttled);
	ur_cc_on_send(&t, d, 4096, now + 1);
	cr_assert_not(d->throttled);
	cr_assert_eq(ur_cc_open_ns(d), 0);
}

/* A burst after a pause is judged by itself, not by the mean rate since then. */
Test(cc_auto, measures_afresh_after_a_pause)
{
	flow(1000, 10, 20);
	now += 500 * MS;
	/* A packet each 10 us; number k, sent at 10 k, is answered at 20 + 40 k. */
	for (uint64_t us = 0, end = now; us < 400; us += 10) {
		now = end + us * US;
		ur_cc_on_send(&t, d, 4096, now);
		if (us >= 20 && us % 40 == 20)
			ur_cc_on_ack(&t, d, (uint32_t)(20 + 30 * (us / 40)) * 1000, now);
	}
	cr_assert(d->throttled);
	/* A packet each 40 us is 0.82 Gb/s. */
	cr_assert_float_eq(AUTO(d)->capacity * 8.0 / (1 << UR_CC_RATE_SHIFT), 0.82, 0.2);
}

/* The same while throttled: a pause is no reason to slow down. */
Test(cc_auto, keeps_its_rate_over_a_pause)
{
	double before;

	flow(5000, 10, 200);
	flow(200, 10, 500);
	cr_assert(d->throttled);
	while (gbps() < 4)
		flow(10, 10, 200);
	before = gbps();
	now += 50 * MS;
	for (unsigned i = 0; i < 20; i++, now += 10 * US)
		ur_cc_on_send(&t, d, 4096, now);
	flow(10, 10, 200);
	cr_assert_geq(gbps(), before);
}

/* Answers overtake one another. What was delivered stays so. */
Test(cc_auto, counts_what_was_delivered_once)
{
	for (unsigned i = 0; i < 20; i++, now += 10 * US)
		ur_cc_on_send(&t, d, 4096, now);
	ur_cc_on_ack(&t, d, 100000, now);
	/* Sent before that one. */
	ur_cc_on_ack(&t, d, 310000, now + 10 * US);
	ur_cc_on_ack(&t, d, 340000, now + 40 * US);
	cr_assert_lt(AUTO(d)->capacity * 8.0 / (1 << UR_CC_RATE_SHIFT), 0.1);
}

/* PACE-AUTO-08: READs of 64 KB, one at a time, of 52 us at 10 Gb/s and 20 us of way. */
Test(cc_auto, a_read_is_no_queue)
{
	make_slow();
	for (unsigned i = 0; i < 2000; i++) {
		if (ur_cc_open_ns(d) > now)
			now = ur_cc_open_ns(d);
		ur_cc_on_send(&t, d, 65536, now);
		now += 72 * US;
		ur_cc_on_ack(&t, d, 72000, now);
	}
	cr_assert(!d->throttled || gbps() > 3.0, "%f", gbps());
}

/*
 * Until it is open, 200 cycles at most: `reads` READs of 64 KB at once, of which the first is
 * answered after 28 us; the next cycle begins when all have come, each in read_us. The least delay
 * is 3 us and the link has 100 Gb/s.
 */
static void lockstep(unsigned reads, uint64_t read_us)
{
	struct ur_cc_attr attr = {.mode = UR_CC_AUTO, .link_bps = 100 * GBPS};
	uint8_t key[UR_CC_KEY] = {1};

	ur_cc_init(&t, memory, 1, &attr);
	d = ur_cc_get(&t, key, 4096, 1 * MS);
	now = 1 * MS;
	flow(1000, 10, 3);
	flow(30, 10, 200);
	cr_assert(d->throttled);
	for (unsigned i = 0; i < 200 && d->throttled; i++) {
		for (unsigned k = 0; k < reads; k++)
			ur_cc_on_send(&t, d, 65536, now);
		ur_cc_on_ack(&t, d, 28000, now + 28 * US);
		now += reads * read_us * US;
	}
}

/* PACE-AUTO-08: READs of 52 us, 10 Gb/s. Four and a burst of either end, eight, are 416 us. */
Test(cc_auto, reads_that_the_ends_process_are_no_queue)
{
	lockstep(7, 52);
	cr_assert_not(d->throttled);
	lockstep(9, 52);
	cr_assert(d->throttled);
	/* 49 of 468 us too many. */
	cr_assert_float_eq(gbps(), 10.08 * (1 - 49 / 468.0), 0.1, "%f", gbps());
}

/* PACE-AUTO-08: of 524 us, 1 Gb/s. No burst is more than 250 us. */
Test(cc_auto, reads_are_a_queue_when_the_network_is_slow)
{
	lockstep(4, 524);
	cr_assert_not(d->throttled);
	lockstep(5, 524);
	cr_assert(d->throttled);
	cr_assert_float_eq(gbps(), 1 - 271 / 2620.0, 0.01, "%f", gbps());
}

Test(cc_auto, takes_delays_that_cannot_be)
{
	ur_cc_on_ack(&t, d, UINT32_MAX, 5);
	ur_cc_on_ack(&t, d, 0, 5);
	ur_cc_on_ack(&t, d, UINT32_MAX, 6);
	ur_cc_on_ack(&t, d, 1, 7);
	ur_cc_on_send(&t, d, 4096, 8);
	ur_cc_on_ack(&t, d, 1, 9);
	cr_assert_eq(d->samples, 5);
}

/* PACE-LINK-01 */
Test(cc_auto, a_slower_link_bounds_the_rate_at_once)
{
	make_slow();
	cr_assert(d->throttled);
	cr_assert_gt(gbps(), 1.5);
	ur_cc_set_link(&t, 1 * GBPS);
	cr_expect_float_eq(gbps(), 1.0, 0.001, "%f", gbps());
	cr_expect_eq(ur_cc_link_bps(&t), 1 * GBPS);
}

/* PACE-LINK-01 */
Test(cc_auto, a_faster_link_lets_it_grow)
{
	double before, most = 0;

	make_slow();
	ur_cc_set_link(&t, 1 * GBPS);
	before = gbps();
	cr_expect_leq(before, 1.001);
	ur_cc_set_link(&t, 10 * GBPS);
	cr_expect_float_eq(gbps(), before, 0.001, "not by itself");
	for (unsigned i = 0; i < 10000 && d->throttled && most < 1.5; i++) {
		flow(1, 10, 30);
		if (d->throttled && most < gbps())
			most = gbps();
	}
	cr_expect_geq(most, 1.5, "%f", most);
}

/* PACE-LINK-01 */
Test(cc_auto, another_link_does_not_affect_open_destinations)
{
	flow(5000, 10, 20);
	ur_cc_set_link(&t, 1 * GBPS);
	cr_expect_not(d->throttled);
	flow(5000, 10, 20);
	cr_expect_not(d->throttled);
}
