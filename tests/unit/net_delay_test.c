/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "transport/net_delay.h"
#include "wire/delay.h"

#define US	    1000u
#define MS	    UINT64_C(1000000)
#define RTT	    (20 * US)
#define PATIENCE    MS
#define FIRST_STAMP 5000

/* One destination: 20 us away, and packets of 4096 bytes. */
static struct ur_net_delay net;
static struct ur_net_sent sent;
static uint64_t now_ns;
static bool asks_both; /* the last ask is about the way back as well */

static void begin(void)
{
	net = (struct ur_net_delay){0};
	sent = (struct ur_net_sent){0};
	now_ns = (uint64_t)FIRST_STAMP << UR_STAMP_SHIFT;
}

/* Congestion control has been wary for so long that a round trip will ask. */
static void start(void)
{
	begin();
	sent.wary = true;
	cr_assert_not(ur_net_delay_on_rtt(&net, RTT, RTT, PATIENCE, &sent, now_ns));
	now_ns += UR_NET_WARY * RTT;
}

static void send(unsigned packets)
{
	sent.packets += packets;
	sent.bytes += 4096 * (uint64_t)packets;
}

/* A round trip of another packet ends. Whether an ask leaves. */
static bool rtt(uint32_t ns)
{
	bool asks = ur_net_delay_on_rtt(&net, ns, ns, PATIENCE, &sent, now_ns);

	if (asks)
		asks_both = ur_net_delay_on_ask(&net, ur_stamp(now_ns), &sent, now_ns);
	return asks;
}

static uint32_t got_rtt, got_delay;

static struct ur_net_way way(uint8_t hops, uint64_t ns)
{
	return (struct ur_net_way){hops, ur_delay_encode(ns / 16)};
}

static enum ur_net_answer answer_ways(struct ur_net_way there, struct ur_net_way back)
{
	struct ur_net_echo echo = {.stamp = net.stamp, .there = there, .back = back};

	got_rtt = got_delay = 0;
	return ur_net_delay_on_answer(&net, &echo, now_ns, &got_rtt, &got_delay);
}

/* The last ask is answered now, after `ns` in switches. */
static enum ur_net_answer answer(uint8_t hops, uint64_t ns)
{
	return answer_ways(way(hops, ns), way(0, 0));
}

/* An answer to the last ask, or to another packet that left `later`. */
static enum ur_net_answer answer_as(uint32_t later, uint32_t residence)
{
	struct ur_net_echo echo = {
		.stamp = ur_stamp_add(net.stamp, later),
		.residence = residence,
		.there = {1, 1},
	};
	uint32_t unused;

	return ur_net_delay_on_answer(&net, &echo, now_ns, &unused, &unused);
}

/* An ask, which takes `ns` of which `in_switches` were spent in switches. */
static void sample(uint32_t ns, uint32_t in_switches)
{
	cr_assert(rtt(ns));
	now_ns += ns;
	cr_assert_eq(answer(1, in_switches), UR_NET_SAMPLE);
	cr_assert_eq(got_rtt, ns);
}

/* A round trip of another packet than an ask. */
static uint32_t heard(uint32_t ns, bool throttled)
{
	return ur_net_delay_of_rtt(&net, ns, throttled, now_ns);
}

static void turn_on(void)
{
	start();
	sample(RTT, 0);
	cr_assert_eq(net.state, UR_NET_ON);
}

/* PACE-NET-03 */
Test(net_delay, first_asks_whether_the_path_lets_stamps_pass)
{
	start();
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
	cr_assert(rtt(RTT));
	cr_assert_eq(net.state, UR_NET_TRIAL);
	cr_assert_not(rtt(RTT), "one ask is open at a time");
	now_ns += RTT;
	cr_assert_eq(answer(2, 3200), UR_NET_SAMPLE);
	cr_assert_eq(net.state, UR_NET_ON);
	cr_assert_eq(net.hops, 2);
	cr_assert_eq(net.delay_ns, 3200);
	cr_assert(ur_net_delay_serves(&net, now_ns));
}

/* PACE-NET-03 */
Test(net_delay, without_switches_that_stamp_it_asks_again_after_ten_seconds)
{
	start();
	cr_assert(rtt(RTT));
	now_ns += RTT;
	cr_assert_eq(answer(0, 0), UR_NET_NONE);
	cr_assert_eq(net.state, UR_NET_OFF);
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
	send(100000);
	now_ns += UR_NET_OFF_NS - 1;
	cr_assert_not(rtt(RTT));
	now_ns++;
	cr_assert(rtt(RTT));
}

/* PACE-NET-03. */
Test(net_delay, path_that_drops_what_is_stamped_is_blocked_for_a_minute)
{
	start();
	for (unsigned i = 0; i < UR_NET_TRIALS; i++) {
		cr_assert_eq(net.state, i ? UR_NET_TRIAL : UR_NET_OFF);
		cr_assert(rtt(RTT));
		send(1000);
		now_ns += PATIENCE - 1;
		cr_assert_not(rtt(RTT), "its answer may still come");
		now_ns++;
		if (i + 1 < UR_NET_TRIALS)
			cr_assert(ur_net_delay_on_rtt(&net, RTT, RTT, PATIENCE, &sent, now_ns));
		now_ns += 4 * RTT;
	}
	cr_assert_not(rtt(RTT));
	cr_assert_eq(net.state, UR_NET_BLOCKED);
	now_ns += UR_NET_BLOCKED_NS - 4 * RTT - 1;
	cr_assert_not(rtt(RTT));
	now_ns += 4 * RTT + 1;
	cr_assert(rtt(RTT));
	cr_assert_eq(net.state, UR_NET_TRIAL);
}

/* PACE-NET-03: a round trip that began before the ask does not show that the ask was lost. */
Test(net_delay, silence_of_the_peer_is_no_missed_ask)
{
	start();
	cr_assert(rtt(RTT));
	now_ns += 100 * MS;
	cr_assert_not(rtt(100 * MS));
	cr_assert_eq(net.missed, 0);
	ur_net_delay_on_rtt(&net, RTT, 100 * MS - 1, PATIENCE, &sent, now_ns);
	cr_assert_eq(net.missed, 1);
}

/* PACE-NET-03 */
Test(net_delay, three_asks_without_an_answer_begin_another_trial)
{
	turn_on();
	for (unsigned i = 0; i < UR_NET_MISSES; i++) {
		cr_assert_eq(net.state, UR_NET_ON);
		send(UR_NET_EVERY);
		now_ns += 4 * RTT;
		cr_assert(rtt(RTT));
		now_ns += PATIENCE;
		ur_net_delay_on_rtt(&net, RTT, RTT, PATIENCE, &sent, now_ns);
	}
	cr_assert_eq(net.state, UR_NET_TRIAL);
	cr_assert_not(ur_net_delay_serves(&net, now_ns), "round trips serve at once");
}

/* PACE-NET-07 */
Test(net_delay, an_answer_without_room_for_the_delay_is_neither_a_sample_nor_missed)
{
	turn_on();
	for (unsigned i = 0; i < 100; i++) {
		send(UR_NET_EVERY);
		now_ns += 4 * RTT;
		cr_assert(rtt(RTT), "%u", i);
		now_ns += RTT;
		cr_assert_not(ur_net_delay_on_no_room(&net, ur_stamp(now_ns)), "of another packet");
		cr_assert(net.open);
		cr_assert(ur_net_delay_on_no_room(&net, net.stamp));
		cr_assert_not(ur_net_delay_on_no_room(&net, net.stamp), "it is answered");
		now_ns += PATIENCE;
		ur_net_delay_on_rtt(&net, RTT, RTT, PATIENCE, &sent, now_ns);
		cr_assert_eq(net.missed, 0);
		cr_assert_eq(net.state, UR_NET_ON);
	}
	cr_assert_not(ur_net_delay_serves(&net, now_ns), "round trips serve");
}

/* PACE-NET-03 */
Test(net_delay, an_answer_makes_missed_asks_forgotten)
{
	turn_on();
	for (unsigned i = 0; i < 10; i++) {
		send(UR_NET_EVERY);
		now_ns += 4 * RTT;
		cr_assert(rtt(RTT));
		now_ns += PATIENCE;
		send(UR_NET_EVERY);
		now_ns += 4 * RTT;
		sample(RTT, 0);
		cr_assert_eq(net.state, UR_NET_ON);
	}
}

/* PACE-NET-03 */
Test(net_delay, switches_that_stop_stamping_are_noticed)
{
	turn_on();
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	now_ns += RTT;
	cr_assert_eq(answer(0, 0), UR_NET_NONE);
	cr_assert_eq(net.state, UR_NET_TRIAL);
	now_ns += 4 * RTT;
	cr_assert(rtt(RTT));
	now_ns += RTT;
	cr_assert_eq(answer(0, 0), UR_NET_NONE);
	cr_assert_eq(net.state, UR_NET_OFF);
}

/* PACE-NET-03: less than 1 % of the packets, however long it takes. */
Test(net_delay, asks_are_less_than_a_part_in_a_hundred_of_packets)
{
	uint64_t asks = 0;
	uint32_t random = 1;

	turn_on();
	for (unsigned i = 0; i < 200000; i++) {
		random = random * 1664525 + 1013904223;
		send(1);
		now_ns += 300;
		/* Round trips that vary by a factor of eight. */
		if (!rtt(RTT / 4 + (random >> 16) % (7 * RTT / 4)))
			continue;
		asks++;
		now_ns += RTT;
		cr_assert_eq(answer(1, 100), UR_NET_SAMPLE);
	}
	cr_assert_gt(asks * 130, 190000, "%lu", (unsigned long)asks);
	cr_assert_lt(asks * 100, 200000, "%lu", (unsigned long)asks);
}

/* PACE-NET-03 */
Test(net_delay, longer_round_trips_are_asked_about_at_once)
{
	turn_on();
	sent.wary = false;
	now_ns += RTT;
	send(20 * UR_NET_EVERY);
	cr_assert_not(rtt(RTT));
	cr_assert_not(rtt(RTT + RTT / 4));
	cr_assert(rtt(RTT + RTT / 4 + 1));
}

/* PACE-NET-03: asks are saved up, as many as there are at first. */
Test(net_delay, wary_of_a_destination_it_is_asked_from_what_was_saved)
{
	for (unsigned pause = 0; pause < 2; pause++) {
		turn_on(); /* which asks once */
		if (pause)
			send(20 * UR_NET_EVERY);
		for (unsigned i = !pause; i < UR_NET_SAVED; i++) {
			cr_assert_not(ur_net_delay_is_longer(&net, RTT));
			sample(RTT, 0);
		}
		cr_assert_not(rtt(RTT), "%u", pause);
		send(UR_NET_EVERY - 1);
		cr_assert_not(rtt(RTT));
		send(1);
		sent.wary = false;
		cr_assert_not(rtt(RTT), "round trips are steady");
		sent.wary = true;
		cr_assert(rtt(RTT));
	}
}

/* PACE-NET-03 */
Test(net_delay, nothing_asks_where_delays_do_not_matter)
{
	begin();
	for (unsigned i = 0; i < 10000; i++) {
		send(10);
		now_ns += RTT;
		cr_assert_not(rtt(RTT + i % 7 * RTT));
		/* A moment is not enough. */
		sent.wary = i % 2;
	}
	cr_assert_eq(net.state, UR_NET_OFF);
}

/* PACE-NET-03 */
Test(net_delay, first_throttle_asks_at_once)
{
	begin();
	send(1);
	cr_assert_not(rtt(RTT));
	sent.throttled = sent.wary = true;
	cr_assert(rtt(RTT));
	cr_assert_eq(net.state, UR_NET_TRIAL);
}

/* PACE-NET-03: 16 KiB have not left since the last ask, and nothing was saved. */
Test(net_delay, each_other_throttle_asks_at_once)
{
	turn_on();
	while (rtt(RTT))
		cr_assert_eq(answer(1, 16), UR_NET_SAMPLE);
	for (unsigned i = 0; i < 10; i++) {
		sent.throttled = true;
		sample(RTT, 0);
		cr_assert_not(rtt(RTT), "once");
		sent.throttled = false;
		now_ns += UR_NET_HOLD_NS / 2;
		sample(RTT, 0);
	}
}

/* PACE-NET-03 */
Test(net_delay, throttled_destination_is_asked_once_a_round_trip)
{
	turn_on();
	sent.throttled = true;
	sample(RTT, 0);
	for (unsigned i = 0; i < 1000; i++) {
		send(3);
		cr_assert_not(rtt(RTT), "%u", i);
		send(1);
		sample(RTT, 0);
	}
	/* And what that cost is not charged to the time afterwards. */
	sent.throttled = false;
	send(UR_NET_EVERY - 1);
	cr_assert_not(rtt(RTT));
	send(1);
	cr_assert(rtt(RTT));
}

/* PACE-NET-03: a destination with little traffic. */
Test(net_delay, asks_at_least_each_ten_milliseconds)
{
	turn_on();
	sent.wary = false;
	for (unsigned i = 0; i < 10; i++) {
		now_ns += 9 * MS;
		send(1);
		cr_assert_not(rtt(RTT));
		now_ns += MS;
		sample(RTT, 0);
		cr_assert(ur_net_delay_serves(&net, now_ns));
	}
}

/* PACE-NET-01: queues on the way back are no delay; those on the way there are, to the nanosecond. */
Test(net_delay, does_not_hear_the_way_back)
{
	turn_on();
	cr_assert_eq(got_delay, RTT);
	for (unsigned back = 0; back <= 1000 * US; back += 10 * US) {
		send(UR_NET_EVERY);
		sample(RTT + back, 0);
		cr_assert_eq(got_delay, RTT);
		send(UR_NET_EVERY);
		sample(RTT + back + 64 * US, 64 * US);
		cr_assert_eq(got_delay, RTT + 64 * US);
	}
}

/* PACE-NET-08: the queue on the way back was there before the first ask. */
Test(net_delay, base_is_no_longer_than_the_shortest_round_trip)
{
	begin();
	cr_assert_not(rtt(RTT));
	cr_assert_not(rtt(RTT + 300 * US));
	sent.throttled = sent.wary = true;
	sample(RTT + 308 * US, 8 * US);
	cr_assert_eq(got_delay, RTT + 8 * US);
	cr_assert_eq(heard(RTT + 340 * US, true), RTT + 40 * US);
}

/* PACE-NET-01: what has stood on the way back for two seconds counts as path. */
Test(net_delay, learns_a_longer_way_back_within_two_seconds)
{
	uint64_t from_ns;

	turn_on();
	from_ns = now_ns;
	while (now_ns < from_ns + 2100 * MS) {
		send(UR_NET_EVERY);
		sample(RTT + 500 * US, 0);
		now_ns += MS;
		if (now_ns < from_ns + 900 * MS)
			cr_assert_eq(got_delay, RTT);
	}
	cr_assert_eq(got_delay, RTT + 500 * US);
	send(UR_NET_EVERY);
	sample(RTT, 0);
	cr_assert_eq(got_delay, RTT);
}

/* PACE-NET-01 */
Test(net_delay, does_not_serve_when_it_is_old)
{
	turn_on();
	now_ns += UR_NET_HOLD_NS + 8 * RTT - 1;
	cr_assert(ur_net_delay_serves(&net, now_ns));
	now_ns++;
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
}

/* PACE-NET-01: the way back is that of the data, and the peer does not stamp its answers. */
Test(net_delay, does_not_serve_while_data_is_read_that_no_stamp_tells_of)
{
	turn_on();
	cr_assert(ur_net_delay_served(&net));
	now_ns += MS;
	ur_net_delay_on_read(&net, now_ns);
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
	cr_assert_not(ur_net_delay_served(&net));
	now_ns += UR_NET_HOLD_NS / 2;
	sample(RTT, 0);
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
	now_ns += UR_NET_HOLD_NS / 2 + 8 * RTT;
	sample(RTT, 0);
	cr_assert(ur_net_delay_serves(&net, now_ns));
	cr_assert(ur_net_delay_served(&net));
}

/* An ask while data is read, which takes `ns`, of which so many on each way in switches. */
static void sample_both(uint32_t ns, uint32_t there, uint32_t back)
{
	cr_assert(rtt(ns));
	cr_assert(asks_both);
	now_ns += ns;
	cr_assert_eq(answer_ways(way(1, there), way(1, back)), UR_NET_SAMPLE);
	cr_assert_eq(got_rtt, ns);
}

static void read_on(void)
{
	turn_on();
	cr_assert_not(asks_both);
	ur_net_delay_on_read(&net, now_ns);
	send(UR_NET_EVERY);
	sample_both(RTT, 0, 0);
}

/* PACE-NET-06 */
Test(net_delay, while_data_is_read_both_ways_are_heard_and_nothing_else)
{
	read_on();
	cr_assert_eq(got_delay, RTT);
	for (unsigned rest = 0; rest <= 1000 * US; rest += 10 * US) {
		ur_net_delay_on_read(&net, now_ns);
		send(UR_NET_EVERY);
		sample_both(RTT + rest, 0, 0);
		cr_assert_eq(got_delay, RTT);
		send(UR_NET_EVERY);
		sample_both(RTT + rest + 96 * US, 32 * US, 64 * US);
		cr_assert_eq(got_delay, RTT + 96 * US);
		cr_assert(ur_net_delay_serves(&net, now_ns));
		cr_assert(ur_net_delay_served(&net));
		cr_assert_eq(net.hops, 2);
		cr_assert_eq(net.delay_ns, 96 * US);
	}
}

/* PACE-NET-06: the least way back is part of the base of the way there, and not of that of both. */
Test(net_delay, each_way_has_its_base)
{
	read_on();
	ur_net_delay_on_read(&net, now_ns);
	for (unsigned i = 0; i < 3; i++) {
		send(UR_NET_EVERY);
		sample_both(RTT + 64 * US, 0, 64 * US);
		cr_assert_eq(got_delay, RTT + 64 * US);
	}
	now_ns += UR_NET_HOLD_NS + 8 * (RTT + 64 * US);
	send(UR_NET_EVERY);
	sample(RTT + 64 * US, 0);
	cr_assert_not(asks_both);
	cr_assert_eq(got_delay, RTT, "the way back is none of it");
}

/* PACE-NET-06 */
Test(net_delay, switch_that_cannot_say_the_way_back_leaves_round_trips)
{
	read_on();
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	now_ns += RTT;
	ur_net_delay_on_read(&net, now_ns);
	cr_assert_eq(answer_ways(way(1, 0), way(UR_DELAY_VOID, 16 * US)), UR_NET_SAMPLE);
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
	cr_assert_not(ur_net_delay_served(&net));
}

/* PACE-NET-02: the sum of both ways. */
Test(net_delay, both_ways_are_no_longer_than_the_round_trip)
{
	read_on();
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	now_ns += RTT;
	cr_assert_eq(answer_ways(way(1, RTT / 2), way(1, RTT / 2 + 2 * US)), UR_NET_BAD);
	now_ns += 4 * RTT;
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	now_ns += RTT;
	cr_assert_eq(answer_ways(way(1, RTT / 2), way(1, RTT / 2 + 512)), UR_NET_SAMPLE);
	cr_assert_leq(got_delay, RTT);
	cr_assert_eq(net.delay_ns, RTT);
}

/* PACE-NET-03: the answer waits behind those to earlier READs. */
Test(net_delay, answer_behind_long_reads_is_not_missed)
{
	read_on();
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	now_ns += 5 * PATIENCE;
	cr_assert_not(ur_net_delay_on_rtt(&net, RTT, 6 * PATIENCE, PATIENCE, &sent, now_ns));
	cr_assert(net.open);
	cr_assert_eq(net.missed, 0);
	ur_net_delay_on_rtt(&net, RTT, 4 * PATIENCE, PATIENCE, &sent, now_ns);
	cr_assert_eq(net.missed, 1);
}

/* PACE-NET-05 */
Test(net_delay, round_trips_count_until_switches_are_heard)
{
	start();
	cr_assert_eq(heard(RTT, false), RTT);
	cr_assert(rtt(RTT));
	cr_assert_eq(heard(5 * RTT, true), 5 * RTT);
}

/* PACE-NET-05 */
Test(net_delay, other_round_trips_lose_what_is_known_of_the_way_back)
{
	turn_on();
	send(UR_NET_EVERY);
	sample(RTT + 300 * US + 8 * US, 8 * US);
	cr_assert_eq(heard(RTT + 300 * US, true), RTT);
	cr_assert_eq(heard(RTT + 340 * US, true), RTT + 40 * US);
	cr_assert_eq(heard(RTT + 10 * US, true), RTT, "the way back is free again");
	cr_assert_eq(heard(10 * US, true), 10 * US, "the path is shorter than the last ask's");
}

/* PACE-NET-05 */
Test(net_delay, destination_that_was_throttled_lately_hears_the_same)
{
	turn_on();
	send(UR_NET_EVERY);
	sample(RTT + 300 * US + 8 * US, 8 * US);
	cr_assert_eq(heard(RTT + 340 * US, false), 0);
	sent.throttled = true;
	sample(RTT + 300 * US, 0);
	sent.throttled = false;
	now_ns += UR_NET_AFTER_NS - (RTT + 300 * US) - 1;
	cr_assert_eq(heard(RTT + 340 * US, false), RTT + 40 * US);
	now_ns++;
	cr_assert_eq(heard(RTT + 340 * US, false), 0);
}

/* PACE-NET-05 */
Test(net_delay, open_destination_hears_others_only_if_its_ask_takes_too_long)
{
	turn_on();
	cr_assert_eq(heard(50 * RTT, false), 0);
	cr_assert_eq(heard(50 * RTT, true), 50 * RTT);
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	now_ns += 2 * RTT;
	cr_assert_eq(heard(3 * RTT, false), 0);
	now_ns++;
	cr_assert_eq(heard(3 * RTT, false), 3 * RTT);
	cr_assert_eq(answer(1, RTT), UR_NET_SAMPLE);
	cr_assert_eq(heard(3 * RTT, false), 0);
}

/* PACE-NET-02 */
Test(net_delay, longer_than_the_round_trip_is_a_lie)
{
	turn_on();
	for (uint64_t ns = 10 * RTT; ns > RTT + RTT / 256 + US + 64; ns -= ns / 50) {
		send(UR_NET_EVERY);
		now_ns += 4 * RTT;
		cr_assert(rtt(RTT));
		now_ns += RTT;
		cr_assert_eq(answer(1, ns), UR_NET_BAD, "%lu", (unsigned long)ns);
	}
	/* It may be rounded up, and clocks differ. */
	send(UR_NET_EVERY);
	now_ns += 4 * RTT;
	sample(RTT, RTT + 500);
	cr_assert_eq(got_delay, RTT);
}

/* PACE-NET-02: whatever switches and peers write, a delay is no longer than the round trip of its packet. */
Test(net_delay, is_never_longer_than_the_round_trip)
{
	uint64_t random = 1;
	unsigned samples = 0;

	turn_on();
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t ns, residence;
		struct ur_net_echo echo;
		enum ur_net_answer a;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		ns = (uint32_t)(random >> 40) % (100 * US) + 16;
		residence = (uint32_t)(random >> 20) % 4 ? 0 : (uint32_t)(random >> 8);
		send(UR_NET_EVERY);
		if (!rtt(ns)) {
			now_ns += net.state == UR_NET_OFF ? UR_NET_OFF_NS : PATIENCE;
			continue;
		}
		now_ns += ns;
		echo = (struct ur_net_echo){
			.stamp = net.stamp,
			.residence = residence,
			.there = {(random >> 35) & 31, (uint16_t)(random >> 51)},
			.back = {i & 1 ? (random >> 30) & 31 : 0, (uint16_t)(random >> 47)},
		};
		a = ur_net_delay_on_answer(&net, &echo, now_ns, &got_rtt, &got_delay);
		if (a != UR_NET_SAMPLE)
			continue;
		samples++;
		cr_assert_geq(got_delay, 1);
		cr_assert_leq(got_delay, got_rtt);
		cr_assert_leq(got_rtt, ns + 16);
		cr_assert_leq(ur_net_delay_of_rtt(&net, ns + 64, true, now_ns), ns + 64);
		cr_assert_leq(ur_net_delay_of_rtt(&net, 1, true, now_ns), 1u);
	}
	cr_assert_gt(samples, 1000);
}

/* PACE-NET-02 */
Test(net_delay, answers_to_nothing_change_nothing)
{
	struct ur_net_delay before;

	start();
	before = net;
	cr_assert_eq(answer_as(0, 0), UR_NET_NONE, "there was no ask");
	cr_assert_eq(memcmp(&before, &net, sizeof(net)), 0);
	turn_on();
	before = net;
	cr_assert_eq(answer(1, 16), UR_NET_NONE, "the same once more");
	cr_assert_eq(memcmp(&before, &net, sizeof(net)), 0);
	send(UR_NET_EVERY);
	cr_assert(rtt(RTT));
	before = net;
	now_ns += RTT;
	for (uint32_t i = 1; i < 100; i++)
		cr_assert_eq(answer_as(i, 0), UR_NET_NONE, "of another packet");
	cr_assert_eq(memcmp(&before, &net, sizeof(net)), 0);
	cr_assert_eq(answer_as(0, UINT32_MAX), UR_NET_BAD, "it would have come before it left");
}

/* WIRE-DELAY-01: it answers, but gives no delay. */
Test(net_delay, void_delay_shows_only_that_stamps_pass)
{
	start();
	cr_assert(rtt(RTT));
	now_ns += RTT;
	cr_assert_eq(answer(UR_DELAY_VOID, 1600), UR_NET_NONE);
	cr_assert_eq(net.state, UR_NET_ON);
	cr_assert_not(ur_net_delay_serves(&net, now_ns));
}
