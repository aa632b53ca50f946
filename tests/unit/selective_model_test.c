/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../sim/rng.h"
#include "loss_memory.h"
#include "timer/wheel.h"
#include "transport/loss/selective.h"
#include "wire/ext.h"

/*
 * Selective retransmission over a channel with loss and reordering, in virtual time. The sender
 * always has something to send; the receiver has a bitmap and acknowledges each batch that it
 * reads.
 */
#define TICK_NS 200
#define HELD	256
#define LINE	8192

struct frame {
	uint64_t due_ns;
	uint32_t nr, stamp; /* nr counts from the first number */
	bool probe;
};

/* Delays frames in order, then holds back some until others have passed (lib/edge/impair.h). */
struct channel {
	uint32_t loss, reorder;	   /* of 10000 */
	uint32_t gap_min, gap_max; /* number of frames that pass one that is held back */
	uint64_t delay_ns, hold_ns;
	struct frame line[LINE];
	uint32_t head, tail;
	struct {
		struct frame f;
		uint64_t after;
	} held[HELD];
	uint32_t held_cnt;
	uint64_t passed;
	uint32_t lost; /* frames with a number */
};

struct ack {
	uint64_t due_ns;
	uint32_t epsn, echo, residence, bits;
	uint8_t map[UR_SACK_BYTES];
};

#define ACKS 2048

struct model {
	struct sim_rng rng;
	uint64_t now_ns;
	uint32_t first, total; /* first number, count of numbers to be sent */
	uint64_t interval_ns;  /* time between transmissions */
	uint32_t batch;	       /* frames that the receiver reads at once */
	uint64_t stall_at_ns, stall_ns;
	struct channel ch;
	uint32_t ack_loss; /* of 10000 */
	struct ack acks[ACKS];
	uint32_t ack_head, ack_tail;
	/* Receiver. */
	uint32_t epsn;
	uint8_t has[1 << 20];
	/* Sender. */
	struct ur_rtx_pool pool;
	struct ur_rtt rtt;
	struct ur_tx_times marks;
	struct ur_selective s;
	struct loss_memory memory;
	bool probe;
	uint64_t next_ns;
	uint32_t sent, resent, probes;
};

static bool chance(struct model *m, uint32_t of_10000)
{
	return sim_below(&m->rng, 10000) < of_10000;
}

static void transmit(struct model *m, uint32_t nr, bool probe)
{
	struct channel *ch = &m->ch;

	if (chance(m, ch->loss)) {
		ch->lost += !probe;
		return;
	}
	cr_assert_lt(ch->tail - ch->head, LINE);
	ch->line[ch->tail++ % LINE] = (struct frame){
		.due_ns = m->now_ns + ch->delay_ns,
		.nr = nr,
		.stamp = ur_stamp(m->now_ns).v,
		.probe = probe,
	};
}

/* Takes the next frame that leaves the channel now. */
static bool come_out(struct model *m, struct frame *f)
{
	struct channel *ch = &m->ch;

	for (uint32_t i = 0; i < ch->held_cnt; i++)
		if (ch->passed >= ch->held[i].after || m->now_ns >= ch->held[i].f.due_ns) {
			*f = ch->held[i].f;
			ch->held[i] = ch->held[--ch->held_cnt];
			return true;
		}
	while (ch->head != ch->tail && ch->line[ch->head % LINE].due_ns <= m->now_ns) {
		*f = ch->line[ch->head++ % LINE];
		if (ch->held_cnt < HELD && chance(m, ch->reorder)) {
			f->due_ns = m->now_ns + ch->hold_ns;
			ch->held[ch->held_cnt].f = *f;
			ch->held[ch->held_cnt++].after =
				ch->passed + sim_between(&m->rng, ch->gap_min, ch->gap_max);
			continue;
		}
		ch->passed++;
		return true;
	}
	return false;
}

static void send_ack(struct model *m, uint32_t echo)
{
	struct ack *a = &m->acks[m->ack_tail % ACKS];

	if (chance(m, m->ack_loss))
		return;
	cr_assert_lt(m->ack_tail - m->ack_head, ACKS);
	m->ack_tail++;
	*a = (struct ack){.due_ns = m->now_ns + m->ch.delay_ns, .epsn = m->epsn, .echo = echo};
	for (uint32_t i = 0; i < UR_EXT_WINDOW && m->epsn + 1 + i < m->total; i++)
		if (m->has[m->epsn + 1 + i]) {
			a->map[i / 8] |= (uint8_t)(1 << i % 8);
			a->bits = (i | 31) + 1;
		}
}

static void receive(struct model *m)
{
	struct frame f;
	uint32_t cnt = 0, echo = 0;

	if (m->now_ns >= m->stall_at_ns && m->now_ns < m->stall_at_ns + m->stall_ns)
		return;
	while (cnt < m->batch && come_out(m, &f)) {
		if (!cnt++ || (int32_t)(f.stamp - echo) > 0)
			echo = f.stamp;
		if (f.probe)
			continue;
		cr_assert_lt(f.nr, m->epsn + UR_EXT_WINDOW, "%u is beyond the window", f.nr);
		m->has[f.nr] = 1;
		while (m->epsn < m->total && m->has[m->epsn])
			m->epsn++;
	}
	if (cnt)
		send_ack(m, echo);
}

static void hear(struct model *m, const struct ur_selective_env *env)
{
	while (m->ack_head != m->ack_tail && m->acks[m->ack_head % ACKS].due_ns <= m->now_ns) {
		const struct ack *a = &m->acks[m->ack_head++ % ACKS];
		struct ur_ack_info news = {
			.una = ur_psn(m->first + a->epsn),
			.sack = a->map,
			.sack_bits = a->bits,
			.echo = ur_stamp_of(a->echo),
		};

		ur_rtt_sample(&m->rtt, ur_stamp_of(a->echo), 0, ur_stamp(m->now_ns));
		ur_selective_on_ack(&m->s, env, &news, m->now_ns);
		ur_selective_validate(&m->s);
	}
}

static void say(struct model *m, const struct ur_selective_env *env)
{
	struct ur_psn nr;

	if (m->now_ns < m->next_ns)
		return;
	if (ur_selective_next_lost(&m->s, &nr)) {
		ur_selective_on_resend(&m->s, env, nr, m->now_ns);
		transmit(m, (uint32_t)ur_psn_diff(nr, ur_psn(m->first)), false);
		m->resent++;
	} else if (m->probe) {
		m->probe = false;
		m->probes++;
		transmit(m, 0, true);
	} else if (m->sent < m->total && ur_selective_credit(&m->s)) {
		ur_selective_on_send(&m->s, env, 1, m->now_ns);
		transmit(m, m->sent++, false);
	} else {
		return;
	}
	m->next_ns = m->now_ns + m->interval_ns;
}

static void set_memory(struct model *m, uint32_t slabs, uint32_t bytes)
{
	loss_memory_free(&m->memory);
	loss_memory_init(&m->memory, slabs, bytes);
	ur_rtx_pool_init(&m->pool, &m->memory.slabs, UR_TIER_LEAST, UR_EXT_WINDOW);
}

static struct model *model_new(uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));

	m->rng.state = seed;
	m->now_ns = (sim_rand(&m->rng) >> 20) + 1;
	/* In some runs numbers and stamps wrap. */
	if (chance(m, 5000))
		m->now_ns = (m->now_ns | ((UINT64_C(1) << 36) - 1)) - sim_below(&m->rng, 1000000);
	m->first = chance(m, 5000) ? UR_PSN_MASK - sim_below(&m->rng, 3000)
				   : sim_below(&m->rng, UR_PSN_MASK);
	m->total = 4000 + sim_below(&m->rng, 6000);
	m->interval_ns = sim_between(&m->rng, 200, 4000);
	m->batch = sim_between(&m->rng, 1, 32);
	m->ch.delay_ns = sim_between(&m->rng, 1000, chance(m, 5000) ? 60000 : 5000);
	m->ch.gap_max = 64;
	m->ch.gap_min = chance(m, 5000) ? 1 : 64;
	m->ch.hold_ns = 700000;
	m->stall_at_ns = UINT64_MAX;
	set_memory(m, 4, LOSS_SLAB);
	ur_rtt_init(&m->rtt);
	ur_selective_init(&m->s, &m->marks, 0, ur_psn(m->first),
			  (uint16_t)sim_between(&m->rng, 128, 256), UR_EXT_WINDOW);
	return m;
}

/* Runs until everything has arrived and been acknowledged. */
static void model_run(struct model *m, uint64_t seed)
{
	struct ur_selective_env env = {&m->pool, &m->rtt, &m->marks};
	uint64_t end_ns = m->now_ns + UINT64_C(4000000000);

	while (m->sent < m->total || !ur_psn_eq(m->s.una, m->s.max)) {
		receive(m);
		hear(m, &env);
		if (m->now_ns >= m->s.deadline_ns &&
		    ur_selective_on_timer(&m->s, &env, m->now_ns) == UR_SELECTIVE_PROBE)
			m->probe = true;
		say(m, &env);
		m->now_ns += TICK_NS;
		cr_assert_lt(m->now_ns, end_ns, "seed %#lx: no end, una %d of %u", seed,
			     ur_psn_diff(m->s.una, ur_psn(m->first)), m->total);
	}
	ur_selective_validate(&m->s);
	cr_assert_eq(m->epsn, m->total);
	cr_assert_eq(m->pool.held_cnt, 0);
	cr_assert_eq(m->memory.slabs.object_cnt, 0);
}

static void model_free(struct model *m)
{
	loss_memory_free(&m->memory);
	free(m);
}

#define RUNS 24

Test(selective_model, a_clean_channel_sees_no_retransmission_and_no_context)
{
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct model *m = model_new(seed);

		model_run(m, seed);
		cr_assert_eq(m->resent, 0, "seed %#lx", seed);
		cr_assert_eq(m->probes, 0, "seed %#lx: %u probes", seed, m->probes);
		cr_assert_eq(m->pool.taken_cnt, 0, "seed %#lx", seed);
		model_free(m);
	}
}

/* EXT-SEL-REO-01 */
Test(selective_model, reordering_sees_no_retransmission)
{
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct model *m = model_new(seed);

		m->ch.reorder = 1000;
		model_run(m, seed);
		cr_assert_gt(m->pool.reordered_cnt, 0);
		cr_assert_eq(m->resent, 0, "seed %#lx: %u sent again", seed, m->resent);
		model_free(m);
	}
}

/* Sums over all runs, because one run loses too few packets for a ratio. */
static void lose(uint32_t of_10000, uint32_t reorder)
{
	uint32_t lost = 0, resent = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct model *m = model_new(seed);

		m->ch.loss = m->ack_loss = of_10000;
		m->ch.reorder = reorder;
		model_run(m, seed);
		lost += m->ch.lost;
		resent += m->resent;
		cr_assert_leq(m->resent, m->ch.lost + m->ch.lost / 4 + 10,
			      "seed %#lx: %u lost, %u sent again", seed, m->ch.lost, m->resent);
		model_free(m);
	}
	cr_log_info("lost %u, sent again %u", lost, resent);
	cr_assert_geq(resent, lost);
	cr_assert_leq(100 * resent, 115 * lost, "%u lost, %u sent again", lost, resent);
}

Test(selective_model, one_percent_of_loss_is_sent_again_and_little_else)
{
	lose(100, 0);
}

Test(selective_model, five_percent_of_loss_is_sent_again_and_little_else)
{
	lose(500, 0);
}

Test(selective_model, loss_and_reordering_together_are_distinguished)
{
	lose(100, 1000);
}

Test(selective_model, half_of_all_lost_gets_through)
{
	for (uint64_t seed = 1; seed <= RUNS / 10; seed++) {
		struct model *m = model_new(seed);

		m->ch.loss = m->ack_loss = 5000;
		model_run(m, seed);
		model_free(m);
	}
}

/* The receiver does not run for 50 ms. */
Test(selective_model, a_stall_of_the_peer_costs_a_few_repetitions_of_the_oldest)
{
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct model *m = model_new(seed);

		m->stall_at_ns = m->now_ns + sim_below(&m->rng, 2000000);
		m->stall_ns = 50000000;
		model_run(m, seed);
		cr_assert_leq(m->resent, 6, "seed %#lx: %u sent again", seed, m->resent);
		model_free(m);
	}
}

/* For any message of a peer and any order of events, all intervals hold and the run ends. */
static void disturb(struct model *m, const struct ur_selective_env *env)
{
	uint8_t map[UR_SACK_BYTES];
	struct ur_selective *s = &m->s;
	uint32_t out = (uint32_t)ur_psn_diff(s->max, s->una), n;
	uint32_t echo = ur_stamp(m->now_ns).v - sim_below(&m->rng, 200000) + 1000;
	struct ur_ack_info news = {
		.una = ur_psn_add(s->una, sim_below(&m->rng, out + 40) - 20),
		.sack = map,
		.sack_bits = 32 * sim_below(&m->rng, 65),
		.echo = ur_stamp_of(chance(m, 100) ? (uint32_t)sim_rand(&m->rng) : echo),
		.partial = chance(m, 1000),
	};
	struct ur_psn nr;

	if (chance(m, 5000))
		news.una = s->una;
	for (uint32_t i = 0; i < sizeof(map); i++)
		map[i] = (uint8_t)(sim_rand(&m->rng) & sim_rand(&m->rng));
	switch (sim_below(&m->rng, 8)) {
	case 0:
	case 1:
		n = ur_selective_credit(s);
		if (n)
			ur_selective_on_send(s, env, 1 + sim_below(&m->rng, n), m->now_ns);
		break;
	case 2:
		if (ur_selective_next_lost(s, &nr))
			ur_selective_on_resend(s, env, nr, m->now_ns);
		break;
	case 3:
		ur_selective_on_ack(s, env, &news, m->now_ns);
		break;
	case 4:
		if (out)
			ur_selective_on_response(s, env,
						 ur_psn_add(s->una, sim_below(&m->rng, out)),
						 news.echo, m->now_ns);
		break;
	case 5:
		ur_selective_on_timer(s, env, m->now_ns);
		break;
	case 6:
		ur_selective_on_probe_answer(s, env, news.echo, m->now_ns);
		break;
	case 7:
		if (chance(m, 1000))
			ur_selective_lose_una(s, env);
		ur_rtt_sample(&m->rtt, news.echo, sim_below(&m->rng, 100), ur_stamp(m->now_ns));
		break;
	}
}

Test(selective_model, no_acks_and_no_order_of_calls_break_it)
{
	for (uint64_t seed = 1; seed <= 4 * RUNS; seed++) {
		struct model *m = model_new(seed);
		struct ur_selective_env env = {&m->pool, &m->rtt, &m->marks};

		if (seed % 4 == 0)
			set_memory(m, 0, LOSS_SLAB);
		else if (seed % 4 == 1)
			set_memory(m, 2, 1024); /* for the smallest two tiers */
		for (uint32_t i = 0; i < 1000; i++) {
			m->now_ns += sim_below(&m->rng, chance(m, 100) ? 5000000 : 20000);
			disturb(m, &env);
			ur_selective_validate(&m->s);
		}
		ur_selective_stop(&m->s, &env);
		ur_selective_validate(&m->s);
		cr_assert_eq(m->pool.held_cnt, 0);
		cr_assert_eq(m->memory.slabs.object_cnt, 0);
		model_free(m);
	}
}
