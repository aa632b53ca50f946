/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "cc/cc.h"
#include "cc/swift.h"

/*
 * Event by event; how the whole behaves is shown in cc_sim_test.c. The path takes 10 us, the base
 * target is 35 us; packets have 4096 bytes.
 */
#define PACKET 4096u
#define US     UINT64_C(1000)
#define MS     (1000 * US)
#define S      (1000 * MS)
#define PATH   10000u

#define SWIFT(d) ((const struct ur_cc_swift *)(const void *)(d)->state)

static struct ur_cc t;
static _Alignas(8) uint8_t memory[2048];
static struct ur_cc_dest *d;
static uint64_t now;

static void start(void)
{
	struct ur_cc_attr attr = {.mode = UR_CC_SWIFT, .target_ns = 35000};
	uint8_t key[UR_CC_KEY] = {1};

	ur_cc_init(&t, memory, 1, &attr);
	now = MS;
	d = ur_cc_get(&t, key, PACKET, now);
	ur_cc_on_ack(&t, d, PATH, now);
}

/* An ACK of n packets after rtt_us; in flight is what the test has set. */
static void ack(uint32_t n, uint32_t rtt_us)
{
	d->acked += n * PACKET;
	ur_cc_on_ack(&t, d, rtt_us * 1000, now);
}

static double packets(void)
{
	return SWIFT(d)->cwnd / 65536.0;
}

/* Throttled, with a window of n packets that is full, n in {1, 2, 4, ... 64}. */
static void throttle_at(uint32_t n)
{
	d->in_flight = 2 * n * PACKET;
	ack(1, 10000); /* far too long: half of it is left */
	cr_assert(d->throttled);
	cr_assert_float_eq(packets(), n, 0.01);
	d->in_flight = n * PACKET;
	now += 100 * MS;
}

TestSuite(cc_swift, .init = start);

Test(cc_swift, has_no_window_before_a_delay_exceeds_the_target)
{
	d->in_flight = 1000 * PACKET;
	for (unsigned i = 0; i < 100; i++, now += US)
		ack(1, 34);
	cr_assert_not(d->throttled);
	cr_assert_eq(d->window, UR_CC_NO_WINDOW);
	cr_assert(ur_cc_has_room(d));
	cr_assert_eq(ur_cc_open_ns(d), 0);
}

/* CC-SWIFT-01: what is in flight is the window, less 0.8 of the excess. */
Test(cc_swift, cuts_what_is_in_flight_in_proportion_to_the_excess)
{
	d->in_flight = 64 * PACKET;
	ack(1, 50);
	cr_assert(d->throttled);
	/* Target 35 + 1 us of flow scaling: (50 - 36) / 50 * 0.8 = 0.22. */
	cr_assert_float_eq(packets(), 64 * 0.776, 0.5);
	cr_assert_eq(d->window, (uint64_t)SWIFT(d)->cwnd * PACKET >> 16);
	cr_assert_eq(ur_cc_open_ns(d), 0, "no gap above one packet");
	cr_assert_not(ur_cc_has_room(d));
	d->in_flight = 48 * PACKET;
	cr_assert(ur_cc_has_room(d));
	d->in_flight = 49 * PACKET;
	cr_assert_not(ur_cc_has_room(d));
}

/* CC-SWIFT-01 */
Test(cc_swift, decreases_once_a_round_trip_and_by_half_at_most)
{
	throttle_at(32);
	ack(1, 2000);
	cr_assert_float_eq(packets(), 16, 0.01);
	now += 1999 * US;
	ack(1, 2000);
	cr_assert_float_eq(packets(), 16, 0.01);
	now += 1 * US;
	ack(1, 2000);
	cr_assert_float_eq(packets(), 8, 0.01);
}

/* CC-SWIFT-01 */
Test(cc_swift, grows_by_a_packet_for_each_window_that_is_acknowledged)
{
	throttle_at(16);
	for (unsigned i = 0; i < 8; i++, now += US)
		ack(1, 20);
	cr_assert_float_eq(packets(), 16.5, 0.13);
	for (unsigned i = 0; i < 8; i++, now += US)
		ack(1, 20);
	cr_assert_float_eq(packets(), 17, 0.13);
	ack(17, 20);
	cr_assert_float_eq(packets(), 18, 0.13);
	/* However much one ACK acknowledges. */
	ack(10000, 20);
	cr_assert_float_eq(packets(), 19, 0.13);
}

/* CC-SWIFT-05 */
Test(cc_swift, does_not_grow_while_the_window_is_not_used)
{
	throttle_at(16);
	d->in_flight = 6 * PACKET;
	for (unsigned i = 0; i < 100; i++, now += US)
		ack(1, 20);
	cr_assert_float_eq(packets(), 16, 0.01);
	d->in_flight = 8 * PACKET;
	ack(16, 20);
	cr_assert_float_eq(packets(), 17, 0.13);
}

/* CC-SWIFT-02: RTT / cwnd between packets, one in flight. */
Test(cc_swift, is_a_gap_below_one_packet)
{
	uint64_t rtt;

	throttle_at(1);
	ack(1, 1000);
	cr_assert_float_eq(packets(), 0.5, 0.01);
	cr_assert_eq(d->window, PACKET);
	rtt = d->avg8_ns / 8;
	cr_assert_float_eq(d->gap_ns, 2.0 * (double)rtt, 100);
	d->in_flight = 0;
	cr_assert(ur_cc_has_room(d), "one packet always may be in flight");
	cr_assert_leq(ur_cc_open_ns(d), now);
	ur_cc_on_send(&t, d, PACKET, now);
	cr_assert_eq(ur_cc_open_ns(d), now + d->gap_ns);
	/* Short delays lead back to a window of one packet, without a gap. */
	now += 10 * MS;
	ack(1, 20);
	cr_assert_eq(d->window, PACKET);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	cr_assert_eq(d->gap_ns, 0);
}

/* CC-SWIFT-02: 4096 bytes take 33 ms at 1 Mb/s. */
Test(cc_swift, keeps_a_rate_of_a_megabit)
{
	throttle_at(1);
	for (unsigned i = 0; i < 12; i++) {
		ack(1, 200000);
		now += 300 * MS;
	}
	cr_assert_lt(packets(), 0.002);
	cr_assert_gt(packets(), 0);
	cr_assert_eq(d->gap_ns, 8000 * PACKET);
}

/* CC-SWIFT-03 */
Test(cc_swift, tolerates_a_longer_queue_the_smaller_its_window)
{
	throttle_at(64);
	/* 35 + 125 * (1 / sqrt(64) - 0.1) / 3.06 us */
	ack(64, 34);
	cr_assert_gt(packets(), 64.5);
	now += MS;
	ack(1, 40);
	cr_assert_lt(packets(), 64.5);
	start();
	throttle_at(1);
	/* 35 + 125 * (1 - 0.1) / 3.06 = 72 us */
	ack(1, 69);
	cr_assert_geq(packets(), 2);
	start();
	throttle_at(1);
	ack(1, 80);
	cr_assert_lt(packets(), 1);
}

/* CC-LOSS-01 */
Test(cc_swift, halves_when_packets_are_lost)
{
	d->in_flight = 32 * PACKET;
	ur_cc_on_loss(&t, d, now);
	cr_assert(d->throttled);
	cr_assert_float_eq(packets(), 16, 0.01);
	ur_cc_on_loss(&t, d, now + 5 * US);
	cr_assert_float_eq(packets(), 16, 0.01, "once a round trip");
	ur_cc_on_loss(&t, d, now + 11 * US);
	cr_assert_float_eq(packets(), 8, 0.01);
	cr_assert_eq(t.cnt.losses, 3);
}

/* CC-LOSS-02 */
Test(cc_swift, gives_up_its_window_after_five_timeouts_in_a_row)
{
	d->in_flight = 64 * PACKET;
	for (unsigned i = 0; i < 4; i++, now += 2 * MS)
		ur_cc_on_timeout(&t, d, now);
	cr_assert_float_eq(packets(), 4, 0.01);
	ur_cc_on_timeout(&t, d, now);
	cr_assert_float_eq(packets(), 0.001, 0.0005);
	cr_assert_eq(t.cnt.timeouts, 5);
}

/* CC-LOSS-02 */
Test(cc_swift, an_answer_between_timeouts_ends_the_row)
{
	d->in_flight = 64 * PACKET;
	for (unsigned i = 0; i < 4; i++, now += 2 * MS)
		ur_cc_on_timeout(&t, d, now);
	ack(1, 20);
	ur_cc_on_timeout(&t, d, now);
	cr_assert_float_eq(packets(), 2, 0.6);
}

/* CC-LOSS-02: many queue pairs time out together when the path fails once. */
Test(cc_swift, takes_timeouts_within_a_millisecond_for_one)
{
	d->in_flight = 64 * PACKET;
	for (unsigned i = 0; i < 100; i++)
		ur_cc_on_timeout(&t, d, now + i * 9 * US);
	cr_assert_float_eq(packets(), 32, 0.01);
}

/* CC-SWIFT-04 */
Test(cc_swift, learns_that_the_path_is_longer)
{
	unsigned i;

	throttle_at(1);
	for (i = 0; i < 200 && !t.cnt.reseeds; i++, now += 100 * MS)
		ack(1, 500 + i % 3);
	/* By doubling the target. */
	cr_assert_eq(SWIFT(d)->path_ns, 70 * US);
	for (; i < 200 && packets() < 1; i++, now += 100 * MS)
		ack(1, 500 + i % 3);
	cr_assert_lt(i, 50);
	cr_assert_eq(t.cnt.reseeds, 3);
	cr_assert_eq(SWIFT(d)->path_ns, 430 * US);
	/* A shorter delay is nearer to the truth. */
	ack(1, 300);
	cr_assert_eq(SWIFT(d)->path_ns, 300 * US);
}

/* CC-SWIFT-05 */
Test(cc_swift, opens_when_the_window_has_not_limited_for_a_second)
{
	throttle_at(16);
	ack(1, 20);
	d->in_flight = 6 * PACKET;
	now += S - 1;
	ack(1, 20);
	cr_assert(d->throttled);
	now += 1;
	ack(1, 20);
	cr_assert_not(d->throttled);
	cr_assert_eq(d->window, UR_CC_NO_WINDOW);
	cr_assert_eq(t.throttled, 0);
}

Test(cc_swift, takes_numbers_that_cannot_be)
{
	static const uint32_t rtt[] = {0, 1, UINT32_MAX, UINT32_MAX - 1, 1u << 31};

	for (unsigned i = 0; i < 1000; i++) {
		d->in_flight = i % 7 ? (uint64_t)i * PACKET : UINT64_MAX >> 20;
		d->acked = i % 5 ? PACKET : UINT64_MAX >> 20;
		ur_cc_on_ack(&t, d, rtt[i % 5], now);
		if (i % 3 == 0)
			ur_cc_on_loss(&t, d, now);
		if (i % 11 == 0)
			ur_cc_on_timeout(&t, d, now);
		ur_cc_on_send(&t, d, PACKET, now);
		now += (i % 13) * 100 * US;
		cr_assert(!d->throttled || (SWIFT(d)->cwnd >= 65 && d->window >= PACKET));
		cr_assert_leq(d->gap_ns, 8000 * PACKET);
		cr_assert_leq(ur_cc_open_ns(d), now + 8000 * PACKET);
	}
}
