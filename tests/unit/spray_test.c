/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "transport/rc/spray.h"
#include "wire/path.h"

/*
 * A network of up to 16 paths, each with a loss rate and a round trip. The outcome of a packet is
 * reported after DELAY later ones.
 */
#define DELAY 100

struct net {
	struct ur_spray *s;
	uint32_t random;
	unsigned loss_permille[UR_SPRAY_MAX];
	uint32_t rtt[UR_SPRAY_MAX];
	unsigned ack_every; /* one of this many arriving packets is reported */
	unsigned used[UR_SPRAY_MAX], lost_cnt, sent_cnt, arrived_cnt;
	struct {
		uint8_t path;
		bool lost;
	} flight[DELAY];
};

static struct net net_of(uint8_t n)
{
	struct net net = {.s = malloc(ur_spray_size(n)), .random = 1, .ack_every = 1};

	ur_spray_init(net.s, n);
	for (unsigned i = 0; i < n; i++)
		net.rtt[i] = 1000;
	return net;
}

static unsigned permille(struct net *net)
{
	net->random = net->random * 1664525 + 1013904223;
	return (net->random >> 8) % 1000;
}

static void report(struct net *net, unsigned slot)
{
	uint8_t path = net->flight[slot].path;

	if (net->flight[slot].lost)
		ur_spray_lost(net->s, path);
	else if (net->arrived_cnt++ % net->ack_every == 0)
		ur_spray_acked(net->s, path, net->rtt[path]);
}

/* Sends `cnt` packets; the counts begin with them. */
static void run(struct net *net, unsigned cnt)
{
	for (unsigned i = 0; i < UR_SPRAY_MAX; i++)
		net->used[i] = 0;
	net->lost_cnt = 0;
	for (unsigned k = 0; k < cnt; k++, net->sent_cnt++) {
		unsigned slot = net->sent_cnt % DELAY;

		if (net->sent_cnt >= DELAY)
			report(net, slot);
		net->flight[slot].path = ur_spray_next(net->s);
		cr_assert_lt(net->flight[slot].path, net->s->n);
		net->flight[slot].lost = permille(net) < net->loss_permille[net->flight[slot].path];
		net->used[net->flight[slot].path]++;
		net->lost_cnt += net->flight[slot].lost;
	}
}

/* The share of the path, in percent of an equal share. */
static unsigned percent_of_fair(const struct net *net, uint8_t path)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < net->s->n; i++)
		sum += net->used[i];
	return net->used[path] * 100 * net->s->n / sum;
}

/* SPRAY-PORT-01 */
Test(spray, ports_are_different_and_in_the_range_of_roce)
{
	static const uint16_t bases[] = {0xc000, 0xc123, 0xfff0, 0xffff};

	for (unsigned b = 0; b < 4; b++) {
		cr_assert_eq(ur_spray_port(bases[b], 0), bases[b]);
		for (uint8_t i = 0; i < UR_SPRAY_MAX; i++) {
			cr_assert_geq(ur_spray_port(bases[b], i), 0xc000);
			for (uint8_t k = 0; k < i; k++)
				cr_assert_neq(ur_spray_port(bases[b], i),
					      ur_spray_port(bases[b], k));
		}
	}
}

Test(spray, without_spraying_or_with_one_path_is_path_0_and_changes_no_state)
{
	struct net net = net_of(1);
	struct ur_spray before = *net.s;

	for (unsigned i = 0; i < 1000; i++) {
		cr_assert_eq(ur_spray_next(NULL), 0);
		cr_assert_eq(ur_spray_next(net.s), 0);
	}
	cr_assert_arr_eq((uint8_t *)net.s, (uint8_t *)&before, sizeof(before));
	ur_spray_acked(NULL, 0, 5);
	ur_spray_lost(NULL, 0);
	free(net.s);
}

Test(spray, memory_of_a_path_is_at_most_16_bytes)
{
	cr_assert_leq(ur_spray_size(16) - ur_spray_size(0), 16 * 16);
	cr_assert_leq(ur_spray_size(0), 16);
}

/* SPRAY-WEIGHT-01 */
Test(spray, equal_paths_are_used_equally_whatever_is_lost_on_all_of_them)
{
	static const unsigned loss[] = {0, 10, 50, 200};

	for (uint8_t n = 2; n <= UR_SPRAY_MAX; n++)
		for (unsigned l = 0; l < 4; l++) {
			struct net net = net_of(n);

			for (unsigned i = 0; i < n; i++)
				net.loss_permille[i] = loss[l];
			run(&net, 100000);
			for (uint8_t i = 0; i < n; i++) {
				unsigned share = percent_of_fair(&net, i);

				cr_assert(share >= 90 && share <= 110,
					  "path %u of %u: %u %% at %u permille", i, n, share,
					  loss[l]);
			}
			free(net.s);
		}
}

/* SPRAY-TURN-01 */
Test(spray, consecutive_packets_of_equal_paths_take_turns_and_another_begins_each_round)
{
	struct net net = net_of(4);

	for (unsigned k = 0; k < 10000; k++)
		cr_assert_eq(ur_spray_next(net.s), (k + k / 64) % 4);
	free(net.s);
}

/* SPRAY-TURN-01: one packet of 16 is answered; later packets of a burst of 32 get later answers. */
Test(spray, place_in_a_burst_is_no_delay_of_a_path)
{
	for (uint8_t n = 2; n <= UR_SPRAY_MAX; n *= 2) {
		struct net net = net_of(n);
		unsigned used[UR_SPRAY_MAX] = {0};

		for (unsigned k = 0; k < 320000; k++) {
			uint8_t path = ur_spray_next(net.s);

			used[path]++;
			if (k % 16 == 15 || k % 16 == 0 || k % 16 == 6)
				ur_spray_acked(net.s, path, 1000 + k % 32 * 200);
		}
		for (uint8_t i = 0; i < n; i++)
			cr_assert(used[i] * n >= 290000 && used[i] * n <= 350000, "%u of %u: %u", i,
				  n, used[i]);
		free(net.s);
	}
}

/* SPRAY-WEIGHT-01 */
Test(spray, a_lossy_path_has_less_than_a_quarter_of_its_share)
{
	for (uint8_t n = 2; n <= UR_SPRAY_MAX; n++) {
		struct net net = net_of(n);

		net.loss_permille[n / 2] = 200;
		run(&net, 20000);
		run(&net, 20000);
		cr_assert_lt(percent_of_fair(&net, n / 2), 25, "%u paths", n);
		for (uint8_t i = 0; i < n; i++)
			if (i != n / 2)
				cr_assert_geq(percent_of_fair(&net, i), 95, "%u paths", n);
		free(net.s);
	}
}

/* SPRAY-WEIGHT-01 */
Test(spray, of_sixteen_paths_the_one_that_works_carries_nearly_all)
{
	struct net net = net_of(16);

	for (unsigned i = 0; i < 16; i++)
		net.loss_permille[i] = i == 11 ? 0 : 500;
	run(&net, 50000);
	run(&net, 50000);
	cr_assert_gt(net.used[11], 25000);
	free(net.s);
}

/* SPRAY-PROBE-01 */
Test(spray, a_dead_path_costs_little_and_is_never_given_up)
{
	for (uint8_t n = 2; n <= UR_SPRAY_MAX; n++) {
		struct net net = net_of(n);

		net.loss_permille[1] = 1000;
		run(&net, 20000);
		run(&net, 100000);
		cr_assert_lt(net.lost_cnt, 2500, "%u of 100000 lost, %u paths", net.lost_cnt, n);
		cr_assert_gt(net.lost_cnt, 20, "%u probes, %u paths", net.lost_cnt, n);
		free(net.s);
	}
}

/* SPRAY-PROBE-01 */
Test(spray, a_path_that_heals_gets_its_share_back)
{
	for (uint8_t n = 2; n <= UR_SPRAY_MAX; n++) {
		struct net net = net_of(n);

		net.loss_permille[1] = 1000;
		run(&net, 20000);
		net.loss_permille[1] = 0;
		run(&net, 20000);
		run(&net, 20000);
		cr_assert_geq(percent_of_fair(&net, 1), 95, "%u paths", n);
		free(net.s);
	}
}

/* SPRAY-WEIGHT-01 */
Test(spray, a_slow_path_is_used_less_the_slower_it_is)
{
	static const struct {
		uint32_t rtt; /* of the others: 1000 */
		unsigned least, most;
	} of[] = {{1500, 100, 100}, {1800, 74, 80}, {2000, 63, 69}, {2400, 44, 50},
		  {3000, 30, 36},   {6000, 8, 15},  {16000, 8, 15}};

	for (unsigned k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		struct net net = net_of(4);
		unsigned share;

		net.rtt[2] = of[k].rtt;
		net.ack_every = 7;
		run(&net, 20000);
		run(&net, 20000);
		share = percent_of_fair(&net, 2);
		cr_assert(share >= of[k].least && share <= of[k].most,
			  "%u %% at a round trip of %u", share, of[k].rtt);
		free(net.s);
	}
}

/* SPRAY-WEIGHT-01 */
Test(spray, moments_in_which_a_peer_did_not_run_move_no_share)
{
	struct net net = net_of(4);
	unsigned used[4] = {0};

	net.ack_every = 7;
	for (unsigned k = 0; k < 4000; k++) {
		/* Ten packets of two hundred reach a peer that does not run for a hundred round trips. */
		for (unsigned i = 0; i < 4; i++)
			net.rtt[i] = k % 20 ? 1000 : 100000;
		run(&net, 10);
		for (unsigned i = 0; i < 4; i++)
			used[i] += net.used[i];
	}
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(used[i], 10000, "path %u: %u", i, used[i]);
	free(net.s);
}

Test(spray, a_slow_path_that_heals_gets_its_share_back_though_echoes_are_rare)
{
	struct net net = net_of(4);

	net.rtt[2] = 1000000;
	net.ack_every = 61;
	run(&net, 20000);
	net.rtt[2] = 1000;
	run(&net, 40000);
	run(&net, 20000);
	cr_assert_geq(percent_of_fair(&net, 2), 95);
	free(net.s);
}

Test(spray, all_paths_dead_are_still_used_equally)
{
	struct net net = net_of(5);

	for (unsigned i = 0; i < 5; i++)
		net.loss_permille[i] = 1000;
	run(&net, 50000);
	for (uint8_t i = 0; i < 5; i++)
		cr_assert_geq(percent_of_fair(&net, i), 95);
	free(net.s);
}

Test(spray, reports_of_paths_that_do_not_exist_are_ignored)
{
	struct net net = net_of(3);
	size_t bytes = ur_spray_size(3);
	uint8_t *before = malloc(bytes);

	memcpy(before, net.s, bytes);
	for (unsigned path = 3; path < 256; path++) {
		ur_spray_acked(net.s, (uint8_t)path, 1000000);
		ur_spray_lost(net.s, (uint8_t)path);
	}
	cr_assert_arr_eq((uint8_t *)net.s, before, bytes);
	free(before);
	free(net.s);
}

Test(spray, any_reports_leave_every_path_in_use)
{
	static const uint32_t rtts[] = {0, 1, UINT32_MAX, 77};

	for (uint8_t n = 2; n <= UR_SPRAY_MAX; n++) {
		struct net net = net_of(n);
		unsigned used[UR_SPRAY_MAX] = {0};

		for (unsigned k = 0; k < 200000; k++) {
			unsigned r = permille(&net);

			used[ur_spray_next(net.s)]++;
			for (unsigned i = 0; i < r % 7; i++)
				ur_spray_lost(net.s, (uint8_t)(r / 7));
			ur_spray_acked(net.s, (uint8_t)(r % n), rtts[permille(&net) % 4]);
		}
		for (unsigned i = 0; i < n; i++)
			cr_assert_gt(used[i], 0);
		free(net.s);
	}
}

/* ---- of a queue pair: SPRAY-DEAD-01 ---- */

/* Sends PSNs [0, cnt) without a loss. */
static struct ur_spray_qp *qp_that_sent(uint8_t n, uint32_t cnt)
{
	struct ur_spray_pool pool;
	void *memory = malloc(ur_spray_pool_size(1));
	struct ur_spray_qp *s;

	ur_spray_pool_init(&pool, memory, 1);
	s = ur_spray_take(&pool, n, (struct ur_stamp){0});
	for (uint32_t v = 0; v < cnt; v++)
		ur_spray_sent(s, ur_psn(v), ur_spray_next(&s->paths), false);
	return s; /* at the beginning of the memory */
}

/* The nth PSN from `v` on that took the path. */
static uint32_t psn_of(const struct ur_spray_qp *s, uint8_t path, uint32_t v, unsigned nth)
{
	while (s->of[v % UR_SPRAY_PSNS] != path || nth-- > 0)
		v++;
	return v;
}

/* The PSN leaves once more, and reveals that it was lost. */
static void lose(struct ur_spray_qp *s, uint32_t v)
{
	ur_spray_sent(s, ur_psn(v), ur_spray_next(&s->paths), true);
}

static bool is_picked(struct ur_spray_qp *s, uint8_t path, unsigned packets)
{
	while (packets-- > 0)
		if (ur_spray_next(&s->paths) == path)
			return true;
	return false;
}

/* The first packets of the path from `v` on. */
static void lose_in_a_row(struct ur_spray_qp *s, uint8_t path, uint32_t v, unsigned cnt)
{
	while (cnt-- > 0)
		lose(s, psn_of(s, path, v, 0));
}

Test(spray, packets_lost_in_a_row_stop_their_path_at_once)
{
	struct ur_spray_qp *s = qp_that_sent(4, 200);

	lose_in_a_row(s, 2, 100, UR_SPRAY_IN_ROW - 1);
	cr_expect(is_picked(s, 2, 8), "so few are chance");
	lose_in_a_row(s, 2, 100, 1);
	cr_expect_not(is_picked(s, 2, 2 * 3 * UR_SPRAY_WEIGHT));
	cr_expect(is_picked(s, 2, 1000), "no path is given up");
	free(s);
}

Test(spray, a_packet_that_arrived_between_two_that_were_lost_keeps_their_path)
{
	struct ur_spray_qp *s = qp_that_sent(4, 400);

	for (uint32_t v = 100; v < 300; v = psn_of(s, 1, v, 2))
		lose(s, psn_of(s, 1, v, 0));
	cr_expect_eq(s->in_row[1], 1);
	cr_expect(is_picked(s, 1, 8));
	free(s);
}

/* Each path of four loses several packets one after the other, and so do all the others. */
Test(spray, a_burst_that_hits_all_paths_stops_none)
{
	for (unsigned bytes = 1; bytes <= 64; bytes++) {
		struct ur_spray_qp *s = qp_that_sent(4, 400);

		for (uint32_t v = 200; v < 200 + bytes; v++)
			lose(s, v);
		for (unsigned i = 0; i < 4; i++)
			cr_assert_eq(s->paths.path[i].weight, UR_SPRAY_WEIGHT,
				     "path %u of a burst of %u", i, bytes);
		free(s);
	}
}

/* PSNs wrap, and what is older may be found lost later. */
Test(spray, losses_in_a_row_are_found_in_any_order_and_where_psns_wrap)
{
	static const uint32_t psns[] = {0xfffffa, 0xfffffb, 0xfffffc, 0xfffffd, 0xfffffe,
					0xffffff, 0,	    1,	      2,	3};
	struct ur_spray_qp *s = qp_that_sent(2, 0);

	for (unsigned i = 0; i < 10; i++)
		ur_spray_sent(s, ur_psn(psns[i]), i % 2, false);
	ur_spray_psn_lost(s, ur_psn(1));
	ur_spray_psn_lost(s, ur_psn(0xffffff));
	ur_spray_psn_lost(s, ur_psn(0xfffffd));
	cr_expect_eq(s->in_row[1], 3);
	cr_expect_eq(s->paths.path[1].weight, 0);
	free(s);
}

Test(spray, losses_too_far_apart_to_tell_are_not_in_a_row)
{
	struct ur_spray_qp *s = qp_that_sent(2, 4 * UR_SPRAY_PSNS);
	uint32_t v = psn_of(s, 1, 3 * UR_SPRAY_PSNS, 0);

	lose(s, v);
	s->of[v % UR_SPRAY_PSNS] = 1;
	lose(s, v + UR_SPRAY_PSNS);
	cr_expect_eq(s->in_row[1], 1);
	free(s);
}

/* Nothing tells of the others, of which one may work. */
Test(spray, when_the_only_path_in_use_seems_dead_all_are_used_again)
{
	struct ur_spray_qp *s = qp_that_sent(4, 200);
	uint32_t v = 200;

	for (uint8_t i = 0; i < 3; i++)
		ur_spray_avoid(&s->paths, i);
	for (unsigned i = 0; i < UR_SPRAY_IN_ROW; i++, v++) {
		ur_spray_sent(s, ur_psn(v), ur_spray_next(&s->paths), false);
		cr_assert_eq(s->of[v], 3);
		ur_spray_psn_lost(s, ur_psn(v));
	}
	for (uint8_t i = 0; i < 3; i++)
		cr_expect(is_picked(s, i, 8), "path %u", i);
	free(s);
}

Test(spray, whatever_is_lost_some_path_is_used)
{
	struct ur_spray_qp *s = qp_that_sent(4, 200);

	for (unsigned i = 0; i < 10000; i++) {
		uint8_t path = ur_spray_next(&s->paths);

		cr_assert_lt(path, 4);
		ur_spray_sent(s, ur_psn(i), path, i % 3 == 0);
		ur_spray_psn_lost(s, ur_psn(i));
	}
	free(s);
}

/* SPRAY-TELL-02 */
Test(spray, what_the_peer_refused_charges_no_path)
{
	struct ur_spray_qp *s = qp_that_sent(4, 200);
	uint32_t v = psn_of(s, 1, 50, 0);

	lose_in_a_row(s, 1, 50, UR_SPRAY_IN_ROW - 1);
	ur_spray_refused(s);
	for (v = 100; v < 200; v++)
		ur_spray_psn_lost(s, ur_psn(v));
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(s->in_row[i], 0);
	/* What arrived before is forgotten; so is the row. */
	for (; v < 300; v++)
		ur_spray_sent(s, ur_psn(v), ur_spray_next(&s->paths), false);
	lose_in_a_row(s, 1, 200, 1);
	cr_expect_eq(s->in_row[1], 1);
	cr_expect_eq(s->paths.path[1].weight, UR_SPRAY_WEIGHT);
	free(s);
}

/* The share of windows of 100 packets in which some path of four has fewer than 5, in permille. */
static unsigned starved_permille(unsigned loss_permille, unsigned burst)
{
	struct ur_spray_qp *s = qp_that_sent(4, 0);
	struct net random = {.random = 7};
	unsigned used[4] = {0}, starved = 0, windows = 2000, left = 0;

	for (uint32_t v = 0; v < windows * 100; v++) {
		uint8_t path = ur_spray_next(&s->paths);

		used[path]++;
		ur_spray_sent(s, ur_psn(v), path, false);
		/* What was sent 100 packets ago is found lost, or arrived. */
		left = left ? left - 1 : permille(&random) * burst < loss_permille ? burst : 0;
		if (v >= 100 && left)
			lose(s, v - 100);
		if (v % 100 != 99)
			continue;
		for (unsigned i = 0; i < 4; i++)
			if (used[i] < 5) {
				starved++;
				break;
			}
		memset(used, 0, sizeof(used));
	}
	free(s);
	return starved * 1000 / windows;
}

Test(spray, loss_by_chance_or_in_bursts_seldom_takes_a_path_away)
{
	cr_expect_leq(starved_permille(10, 1), 10, "%u", starved_permille(10, 1));
	cr_expect_leq(starved_permille(10, 8), 30, "%u", starved_permille(10, 8));
}
