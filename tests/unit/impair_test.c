/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "edge/impair.h"

/* Packets are numbers on the heap, so that a sanitizer detects leaks and double releases. */
struct toy {
	uint32_t id;
	bool flipped, marked, copy;
};

static int64_t alive;

static void *make(uint32_t id)
{
	struct toy *t = calloc(1, sizeof(*t));

	t->id = id;
	alive++;
	return t;
}

static void *toy_clone(void *ctx, void *pkt)
{
	struct toy *t = make(((struct toy *)pkt)->id);

	t->copy = true;
	return t;
}

static void *no_clone(void *ctx, void *pkt)
{
	return NULL;
}

static void toy_release(void *ctx, void *pkt)
{
	alive--;
	free(pkt);
}

static void *toy_flip(void *ctx, void *pkt, uint64_t random)
{
	((struct toy *)pkt)->flipped = true;
	return pkt;
}

static bool toy_mark(void *ctx, void **pkt)
{
	struct toy *t = *pkt;

	t->marked = t->id % 2; /* every other one is ECN-capable */
	return t->marked;
}

/* Bytes of a packet on the slow link: 1000, or its id plus 200. */
static uint32_t toy_bytes(void *ctx, void *pkt)
{
	uint32_t id = ((struct toy *)pkt)->id;

	return id < 1000 ? 1000 : id + 200;
}

static const struct ur_impair_ops toy_ops = {toy_clone, toy_release, toy_flip, toy_mark, toy_bytes};

/* Sends packet `id` at `now` and appends the ids that come out to got[]. */
static unsigned send_one(struct ur_impair *imp, uint32_t id, uint64_t now, uint32_t *got,
			 unsigned n)
{
	void *in[1] = {make(id)}, *out[64];
	uint16_t k = ur_impair_run(imp, in, 1, out, 64, now);

	for (uint16_t i = 0; i < k; i++) {
		got[n++] = ((struct toy *)out[i])->id;
		toy_release(NULL, out[i]);
	}
	return n;
}

static unsigned poll_at(struct ur_impair *imp, uint64_t now, uint32_t *got, unsigned n)
{
	void *out[64];
	uint16_t k = ur_impair_run(imp, NULL, 0, out, 64, now);

	for (uint16_t i = 0; i < k; i++) {
		got[n++] = ((struct toy *)out[i])->id;
		toy_release(NULL, out[i]);
	}
	return n;
}

static struct ur_impair *start(struct ur_impair_config cfg)
{
	return ur_impair_new(&cfg, 0, &toy_ops, NULL);
}

static void end(struct ur_impair *imp)
{
	ur_impair_free(imp);
	cr_assert_eq(alive, 0, "every packet was released once");
}

static uint64_t count(const struct ur_impair *imp, enum ur_impair_counter c)
{
	return ur_impair_counters(imp)[c];
}

Test(impair, without_effects_packets_pass_at_once_and_in_order)
{
	struct ur_impair *imp = start((struct ur_impair_config){.seed = 1});
	uint32_t got[100];
	unsigned n = 0;

	for (uint32_t i = 0; i < 100; i++)
		n = send_one(imp, i, i, got, n);
	cr_assert_eq(n, 100);
	for (uint32_t i = 0; i < 100; i++)
		cr_assert_eq(got[i], i);
	cr_assert_eq(ur_impair_next_deadline(imp), UINT64_MAX);
	end(imp);
}

Test(impair, chances_become_thresholds)
{
	cr_assert_eq(ur_impair_chance(0), 0);
	cr_assert_eq(ur_impair_chance(-1), 0);
	cr_assert_eq(ur_impair_chance(NAN), 0);
	cr_assert_eq(ur_impair_chance(0.5), 0x80000000u);
	cr_assert_eq(ur_impair_chance(1), UINT32_MAX);
	cr_assert_eq(ur_impair_chance(7), UINT32_MAX);
}

Test(impair, certainty_is_certain)
{
	struct ur_impair *imp = start((struct ur_impair_config){.loss = UINT32_MAX});
	uint32_t got[1000];
	unsigned n = 0;

	for (uint32_t i = 0; i < 1000; i++)
		n = send_one(imp, i, i, got, n);
	cr_assert_eq(n, 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LOST), 1000);
	end(imp);
}

Test(impair, effects_are_as_frequent_as_configured)
{
	struct ur_impair *imp = start((struct ur_impair_config){.seed = 7,
								.loss = ur_impair_chance(0.01),
								.duplicate = ur_impair_chance(0.02),
								.corrupt = ur_impair_chance(0.03),
								.reorder = ur_impair_chance(0.04),
								.ecn = ur_impair_chance(0.1),
								.reorder_gap = 3});
	static uint32_t got[200000];
	unsigned n = 0;

	for (uint32_t i = 0; i < 100000; i++)
		n = send_one(imp, i, i, got, n);
	/* six standard deviations on either side */
	cr_assert(llabs((long long)count(imp, UR_IMPAIR_LOST) - 1000) < 190);
	cr_assert(llabs((long long)count(imp, UR_IMPAIR_DUPLICATED) - 1980) < 265);
	cr_assert(llabs((long long)count(imp, UR_IMPAIR_CORRUPTED) - 2970) < 325);
	cr_assert(llabs((long long)count(imp, UR_IMPAIR_REORDERED) - 4039) < 380);
	cr_assert(llabs((long long)count(imp, UR_IMPAIR_MARKED) - 4950) < 415);
	cr_assert(llabs((long long)count(imp, UR_IMPAIR_NOT_ECT) - 4950) < 415);
	cr_assert_eq(n + ur_impair_held(imp),
		     100000 - count(imp, UR_IMPAIR_LOST) + count(imp, UR_IMPAIR_DUPLICATED));
	end(imp);
}

/* A hash of what happened to each of 2000 packets. */
static uint64_t fingerprint(struct ur_impair_config cfg, uint32_t stream)
{
	struct ur_impair *imp = ur_impair_new(&cfg, stream, &toy_ops, NULL);
	static uint32_t got[8000];
	uint64_t hash = 1469598103934665603ull;
	unsigned n = 0;

	for (uint32_t i = 0; i < 2000; i++)
		n = send_one(imp, i, i * 10, got, n);
	n = poll_at(imp, UINT32_MAX, got, n);
	for (unsigned i = 0; i < n; i++)
		hash = (hash ^ got[i]) * 1099511628211ull;
	end(imp);
	return hash;
}

Test(impair, a_seed_repeats_itself_and_another_does_not)
{
	struct ur_impair_config cfg = {.seed = 42,
				       .loss = ur_impair_chance(0.1),
				       .duplicate = ur_impair_chance(0.1),
				       .reorder = ur_impair_chance(0.1),
				       .reorder_gap = 4,
				       .delay_ns = 30,
				       .jitter_ns = 100};
	uint64_t first = fingerprint(cfg, 0);

	cr_assert_eq(fingerprint(cfg, 0), first);
	cr_assert_neq(fingerprint(cfg, 1), first, "another worker or direction");
	cfg.seed++;
	cr_assert_neq(fingerprint(cfg, 0), first);
}

Test(impair, turning_one_knob_leaves_the_choices_of_the_others)
{
	struct ur_impair_config cfg = {.seed = 3, .loss = ur_impair_chance(0.2)};
	uint32_t plain[200], turned[400];
	unsigned n = 0, m = 0;
	struct ur_impair *imp = start(cfg);

	for (uint32_t i = 0; i < 200; i++)
		n = send_one(imp, i, 0, plain, n);
	end(imp);
	cfg.corrupt = cfg.ecn = ur_impair_chance(0.5);
	imp = start(cfg);
	for (uint32_t i = 0; i < 200; i++)
		m = send_one(imp, i, 0, turned, m);
	end(imp);
	cr_assert_eq(n, m);
	cr_assert_arr_eq(plain, turned, n * sizeof(plain[0]));
}

/* ---- bursts: the Gilbert-Elliott model. IMPAIR-BURST-01 ---- */

#define BURST_PACKETS_CNT 400000u

/* Statistics of a run of packets. */
struct seen {
	unsigned lost;
	unsigned runs;	 /* runs of consecutive losses */
	unsigned single; /* runs of a single loss */
	uint64_t bursts; /* as counted */
};

static struct seen watch(struct ur_impair_config cfg)
{
	struct ur_impair *imp = start(cfg);
	struct seen seen = {0};
	unsigned run = 0;
	uint32_t got[4];

	for (uint32_t i = 0; i < BURST_PACKETS_CNT; i++) {
		if (send_one(imp, i, i, got, 0) == 0) {
			run++;
			seen.lost++;
			continue;
		}
		seen.runs += run > 0;
		seen.single += run == 1;
		run = 0;
	}
	seen.bursts = count(imp, UR_IMPAIR_BURSTS);
	cr_assert_eq(count(imp, UR_IMPAIR_LOST), seen.lost);
	end(imp);
	return seen;
}

/* Within six standard deviations. */
static void expect_near(double is, double want, double variance, const char *what, uint64_t seed)
{
	cr_assert((is - want) * (is - want) < 36 * variance,
		  "%s is %g, expected %g, variance %g, seed %llu", what, is, want, variance,
		  (unsigned long long)seed);
}

/*
 * Variance of a mean over a chain of packets with variance v each. The correlation decays by the
 * factor memory = 1 - begin - finish per packet, so that n packets are equivalent to n (1 - memory)
 * / (1 + memory) independent ones.
 */
static double of_mean(double v, double memory)
{
	return v / BURST_PACKETS_CNT * (1 + memory) / (1 - memory);
}

static void expect_bursts(double begin, uint32_t packets, uint64_t seed)
{
	struct ur_impair_config cfg = {.seed = seed,
				       .burst = ur_impair_chance(begin),
				       .burst_packets = packets,
				       .burst_loss = UINT32_MAX};
	struct seen seen = watch(cfg);
	double finish = 1.0 / packets, share = begin / (begin + finish), runs = seen.runs;

	expect_near((double)seen.lost / BURST_PACKETS_CNT, share,
		    of_mean(share * (1 - share), 1 - begin - finish), "mean loss", seed);
	expect_near(seen.lost / runs, packets,
		    (1 - finish) * packets * packets / runs + 1 / (runs * runs), "mean burst",
		    seed);
	expect_near(seen.single / runs, finish, finish * (1 - finish) / runs + 1 / (runs * runs),
		    "share of bursts of one packet", seed);
	cr_assert(seen.bursts - seen.runs <= 1, "the last one may last");
}

Test(impair, bursts_are_as_frequent_and_as_long_as_configured)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		expect_bursts(0.001, 10, seed);
		expect_bursts(0.01, 3, seed);
		expect_bursts(0.0005, 50, seed);
		expect_bursts(0.02, 1, seed);
		expect_bursts(0.3, 2, seed);
	}
}

Test(impair, each_state_has_its_own_loss)
{
	struct ur_impair_config cfg = {.seed = 5,
				       .loss = ur_impair_chance(0.01),
				       .burst = ur_impair_chance(0.01),
				       .burst_packets = 20,
				       .burst_loss = ur_impair_chance(0.5)};
	double share = 0.01 / (0.01 + 0.05), memory = 1 - 0.01 - 0.05, states = share * (1 - share);
	double draws = share * 0.25 + (1 - share) * 0.0099;
	struct seen seen = watch(cfg);

	expect_near((double)seen.lost / BURST_PACKETS_CNT, share * 0.5 + (1 - share) * 0.01,
		    of_mean(0.49 * 0.49 * states, memory) + draws / BURST_PACKETS_CNT, "mean loss",
		    cfg.seed);
	cfg.loss = UINT32_MAX;
	cfg.burst_loss = 0;
	seen = watch(cfg);
	expect_near((double)seen.lost / BURST_PACKETS_CNT, 1 - share, of_mean(states, memory),
		    "what only a burst lets through", cfg.seed);
}

Test(impair, bursts_leave_the_choices_of_plain_loss)
{
	struct ur_impair_config cfg = {.seed = 42, .loss = ur_impair_chance(0.1)};
	uint64_t plain = fingerprint(cfg, 0);

	cfg.burst = ur_impair_chance(0.2);
	cfg.burst_packets = 4;
	cfg.burst_loss = cfg.loss;
	cr_assert_eq(fingerprint(cfg, 0), plain);
	cfg.burst_loss = UINT32_MAX;
	cr_assert_neq(fingerprint(cfg, 0), plain);
	cr_assert(ur_impair_active(&(struct ur_impair_config){.burst = 1}));
}

/* A seed with which, of packets 0..6 and with chance 1/2, only packet 2 is held back. */
static uint64_t seed_that_holds_only_packet_2(struct ur_impair_config cfg)
{
	for (cfg.seed = 0;; cfg.seed++) {
		struct ur_impair *imp = start(cfg);
		uint32_t got[16];
		unsigned n = 0, held[7];

		for (uint32_t i = 0; i < 7; i++) {
			n = send_one(imp, i, 0, got, n);
			held[i] = (unsigned)count(imp, UR_IMPAIR_REORDERED);
		}
		end(imp);
		if (held[1] == 0 && held[2] == 1 && held[6] == 1)
			return cfg.seed;
	}
}

Test(impair, a_packet_held_back_comes_after_exactly_the_gap)
{
	struct ur_impair_config cfg = {.reorder = ur_impair_chance(0.5), .reorder_gap = 3};
	static const uint32_t want[] = {0, 1, 3, 4, 5, 2, 6};
	struct ur_impair *imp;
	uint32_t got[16];
	unsigned n = 0;

	cfg.seed = seed_that_holds_only_packet_2(cfg);
	imp = start(cfg);
	for (uint32_t i = 0; i < 7; i++)
		n = send_one(imp, i, 0, got, n);
	cr_assert_eq(n, 7);
	cr_assert_arr_eq(got, want, sizeof(want));
	end(imp);
}

Test(impair, a_packet_held_back_comes_after_its_time_when_no_others_do)
{
	struct ur_impair_config cfg = {
		.reorder = ur_impair_chance(0.5), .reorder_gap = 3, .reorder_hold_ns = 1000};
	struct ur_impair *imp;
	uint32_t got[16];
	unsigned n = 0;

	cfg.seed = seed_that_holds_only_packet_2(cfg);
	imp = start(cfg);
	for (uint32_t i = 0; i < 3; i++)
		n = send_one(imp, i, 500, got, n);
	cr_assert_eq(n, 2);
	cr_assert_eq(ur_impair_next_deadline(imp), 1500);
	cr_assert_eq(poll_at(imp, 1499, got, n), 2);
	n = poll_at(imp, 1500, got, n);
	cr_assert_eq(n, 3);
	cr_assert_eq(got[2], 2);
	end(imp);
}

Test(impair, delay_is_exact_and_jitter_stays_within_and_keeps_order)
{
	struct ur_impair *imp =
		start((struct ur_impair_config){.seed = 9, .delay_ns = 1000, .jitter_ns = 500});
	uint32_t got[100];
	unsigned n = 0;

	for (uint32_t i = 0; i < 50; i++)
		n = send_one(imp, i, i, got, n);
	cr_assert_eq(n, 0);
	cr_assert_geq(ur_impair_next_deadline(imp), 1000);
	n = poll_at(imp, 999, got, n);
	cr_assert_eq(n, 0);
	n = poll_at(imp, 1549, got, n);
	cr_assert_eq(n, 50, "all are out after delay and jitter");
	for (uint32_t i = 0; i < 50; i++)
		cr_assert_eq(got[i], i);
	end(imp);
}

Test(impair, what_does_not_fit_out_waits_and_loses_nothing)
{
	struct ur_impair *imp = start((struct ur_impair_config){.duplicate = UINT32_MAX});
	void *in[8], *out[4];
	unsigned seen = 0;
	uint16_t k;

	for (uint32_t i = 0; i < 8; i++)
		in[i] = make(i);
	k = ur_impair_run(imp, in, 8, out, 4, 0);
	cr_assert_eq(k, 4);
	while (k) {
		for (uint16_t i = 0; i < k; i++, seen++) {
			cr_assert_eq(((struct toy *)out[i])->id, seen / 2);
			toy_release(NULL, out[i]);
		}
		cr_assert_eq(ur_impair_next_deadline(imp), seen < 16 ? 0 : UINT64_MAX);
		k = ur_impair_run(imp, NULL, 0, out, 4, 0);
	}
	cr_assert_eq(seen, 16);
	end(imp);
}

Test(impair, queues_are_bounded_and_their_overflow_is_counted)
{
	struct ur_impair *imp = start((struct ur_impair_config){.delay_ns = 1000, .hold_max = 8});
	uint32_t got[16];

	for (uint32_t i = 0; i < 20; i++)
		cr_assert_eq(send_one(imp, i, 0, got, 0), 0);
	cr_assert_eq(ur_impair_held(imp), 8);
	cr_assert_eq(count(imp, UR_IMPAIR_OVERFLOW), 12);
	cr_assert_eq(alive, 8);
	end(imp);

	imp = start((struct ur_impair_config){
		.reorder = UINT32_MAX, .reorder_hold_ns = 1000, .hold_max = 8});
	for (uint32_t i = 0; i < 20; i++)
		cr_assert_eq(send_one(imp, i, 0, got, 0), i >= 8);
	cr_assert_eq(count(imp, UR_IMPAIR_HOLD_FULL), 12);
	end(imp);
}

Test(impair, without_memory_the_packet_passes_alone)
{
	struct ur_impair_ops ops = toy_ops;
	struct ur_impair_config cfg = {.duplicate = UINT32_MAX};
	struct ur_impair *imp;
	uint32_t got[4];

	ops.clone = no_clone;
	imp = ur_impair_new(&cfg, 0, &ops, NULL);
	cr_assert_eq(send_one(imp, 5, 0, got, 0), 1);
	cr_assert_eq(count(imp, UR_IMPAIR_NO_MEMORY), 1);
	cr_assert_eq(count(imp, UR_IMPAIR_DUPLICATED), 0);
	end(imp);
}

/* ---- the slow link; at 1 Gb/s a byte takes 8 ns, 1000 bytes 8000 ns. RATE-QUEUE-01 ---- */

Test(impair, a_packet_leaves_the_slow_link_after_those_before_it)
{
	struct ur_impair *imp =
		start((struct ur_impair_config){.link_gbps = 1, .link_queue_bytes = 100000});
	uint32_t got[8];

	cr_assert_eq(send_one(imp, 0, 100, got, 0), 0, "its own time on the link");
	cr_assert_eq(send_one(imp, 1, 100, got, 0), 0);
	cr_assert_eq(send_one(imp, 2, 4100, got, 0), 0);
	cr_assert_eq(ur_impair_next_deadline(imp), 8100);
	cr_assert_eq(poll_at(imp, 8099, got, 0), 0);
	cr_assert_eq(poll_at(imp, 8100, got, 0), 1);
	cr_assert_eq(poll_at(imp, 16099, got, 0), 0);
	cr_assert_eq(poll_at(imp, 16100, got, 0), 1);
	cr_assert_eq(poll_at(imp, 24099, got, 0), 0);
	cr_assert_eq(poll_at(imp, 24100, got, 0), 1);
	cr_assert_eq(got[0], 2);
	/* The link was idle since 24100; idle time is lost. */
	cr_assert_eq(send_one(imp, 3, 30000, got, 0), 0);
	cr_assert_eq(ur_impair_next_deadline(imp), 38000);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_PACKETS), 4);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_BYTES), 4000);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_WAIT_NS), 8000 + 12000);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_WAIT_MAX_NS), 12000);
	cr_assert_eq(count(imp, UR_IMPAIR_DELAYED), 0, "it is no delay");
	end(imp);
}

Test(impair, the_slow_links_queue_is_bounded_in_bytes)
{
	struct ur_impair *imp =
		start((struct ur_impair_config){.link_gbps = 1, .link_queue_bytes = 3000});
	uint32_t got[8];

	for (uint32_t i = 0; i < 4; i++)
		cr_assert_eq(send_one(imp, i, 0, got, 0), 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_DROPPED), 1, "[0, 3000) bytes are there");
	cr_assert_eq(alive, 3);
	/* At 7999 ns 2001 bytes are left, at 8000 ns 2000. */
	send_one(imp, 4, 7999, got, 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_DROPPED), 2);
	cr_assert_eq(send_one(imp, 5, 8000, got, 0), 1);
	cr_assert_eq(got[0], 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_DROPPED), 2);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_WAIT_MAX_NS), 16000);
	/* Dropped packets take no time: 1, 2 and 5 leave at 16000, 24000, 32000. */
	cr_assert_eq(poll_at(imp, 31999, got, 0), 2);
	cr_assert_eq(poll_at(imp, 32000, got, 0), 1);
	cr_assert_eq(got[0], 5);
	cr_assert_eq(count(imp, UR_IMPAIR_OVERFLOW), 0);
	end(imp);
}

Test(impair, an_ecn_capable_packet_above_the_threshold_is_marked)
{
	struct ur_impair *imp = start((struct ur_impair_config){
		.link_gbps = 1, .link_queue_bytes = 100000, .link_ecn_bytes = 2000});
	uint32_t got[8];

	send_one(imp, 1, 0, got, 0);
	send_one(imp, 3, 0, got, 0);
	send_one(imp, 5, 0, got, 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_MARKED), 0, "2000 waiting is not more");
	send_one(imp, 7, 7999, got, 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_MARKED), 1, "2001 are");
	send_one(imp, 8, 7999, got, 0);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_MARKED), 1, "it is not ECN-capable");
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_DROPPED), 0);
	cr_assert_eq(count(imp, UR_IMPAIR_MARKED), 0, "that is of chance");
	end(imp);
}

Test(impair, the_slow_link_loses_no_fraction_of_a_nanosecond)
{
	/* 3 Gb/s: 2666 2/3 ns for 1000 bytes, 3200 ns for 1200. */
	struct ur_impair *imp =
		start((struct ur_impair_config){.link_gbps = 3, .link_queue_bytes = 1000000});
	uint32_t got[256];

	for (uint32_t i = 0; i < 150; i++)
		send_one(imp, i, 0, got, 0);
	send_one(imp, 1000, 0, got, 0);
	cr_assert_eq(poll_at(imp, 399999, got, 0), 64);
	cr_assert_eq(poll_at(imp, 399999, got, 0), 64);
	cr_assert_eq(poll_at(imp, 399999, got, 0), 21);
	cr_assert_eq(poll_at(imp, 400000, got, 0), 1);
	cr_assert_eq(poll_at(imp, 403199, got, 0), 0);
	cr_assert_eq(poll_at(imp, 403200, got, 0), 1);
	end(imp);
}

Test(impair, delay_comes_after_the_slow_link)
{
	struct ur_impair *imp = start((struct ur_impair_config){
		.link_gbps = 1, .link_queue_bytes = 100000, .delay_ns = 500});
	uint32_t got[8];

	send_one(imp, 0, 0, got, 0);
	send_one(imp, 1, 0, got, 0);
	cr_assert_eq(poll_at(imp, 8499, got, 0), 0);
	cr_assert_eq(poll_at(imp, 8500, got, 0), 1);
	cr_assert_eq(poll_at(imp, 16500, got, 0), 1);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_WAIT_NS), 8000);
	end(imp);
}

Test(impair, the_slow_link_holds_no_more_packets_than_there_is_room_for)
{
	struct ur_impair *imp = start((struct ur_impair_config){
		.link_gbps = 1, .link_queue_bytes = 100000, .hold_max = 2});
	uint32_t got[8];

	for (uint32_t i = 0; i < 3; i++)
		send_one(imp, i, 0, got, 0);
	cr_assert_eq(count(imp, UR_IMPAIR_OVERFLOW), 1);
	cr_assert_eq(count(imp, UR_IMPAIR_LINK_PACKETS), 2);
	/* It took no time on the link. */
	cr_assert_eq(poll_at(imp, 8000, got, 0), 1);
	send_one(imp, 3, 8000, got, 0);
	cr_assert_eq(poll_at(imp, 16000, got, 0), 1);
	cr_assert_eq(ur_impair_next_deadline(imp), 24000);
	end(imp);
}
