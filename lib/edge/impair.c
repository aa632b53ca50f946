/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/impair.h"

#include <stdlib.h>

#include "wire/rate.h"

#define HOLD_DEFAULT 1024

/* Each decision has its own random stream. Append new ones, so that old seeds keep their results. */
enum stream { LOSS, CORRUPT, CORRUPT_BIT, ECN, DUPLICATE, REORDER, JITTER, BURST, STREAM_CNT };

struct held {
	void *pkt;
	uint64_t due_ns;
	uint64_t after; /* reordering only: leaves after this many packets have passed */
};

/* A FIFO queue: entries [head, tail), with free-running indices. */
struct queue {
	struct held *slot;
	uint32_t head, tail;
};

struct ur_impair {
	struct ur_impair_config cfg;
	struct ur_link link;
	uint64_t queue_ns, ecn_ns; /* time that the limits of the link's queue take to drain */
	const struct ur_impair_ops *ops;
	void *ctx;
	uint64_t random[STREAM_CNT];
	ur_chance burst_end;  /* chance that a packet is the first after a burst */
	bool in_burst;	      /* the last packet was in a burst */
	bool only_loses;      /* no other stage does anything, so none keeps a packet */
	uint64_t passed;      /* packets that have passed the queue `back` */
	struct queue back;    /* packets held back, in the order in which they leave */
	struct queue line;    /* delay line; due times do not decrease */
	uint64_t last_due_ns; /* due time of the packet added last */
	uint64_t cnt[UR_IMPAIR_CNT];
};

/* The output array of one call. */
struct exit {
	void **out;
	uint16_t cap, n;
	uint64_t now_ns;
};

static const char *const counter_names[] = {
#define X(name, type, unit, help) #name,
	UR_IMPAIR_COUNTERS(X)
#undef X
};

const char *ur_impair_counter_name(unsigned counter)
{
	return counter < UR_IMPAIR_CNT ? counter_names[counter] : "?";
}

ur_chance ur_impair_chance(double probability)
{
	if (!(probability > 0))
		return 0;
	if (probability >= 1)
		return UINT32_MAX;
	return (ur_chance)(probability * 4294967296.0);
}

static bool does_more(const struct ur_impair_config *cfg)
{
	return cfg->duplicate || cfg->reorder || cfg->corrupt || cfg->ecn || cfg->delay_ns ||
	       cfg->jitter_ns || cfg->link_gbps > 0;
}

bool ur_impair_active(const struct ur_impair_config *cfg)
{
	return cfg->loss || cfg->burst || does_more(cfg);
}

/* A Weyl sequence through a bijective mixer (Steele, Lea, Flood: SplitMix). To skip a number takes one addition. */
static void skip_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z;

	skip_random(state);
	z = *state;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Draws for every packet, whatever the chance, so that streams stay in step with the packets. */
static bool happens(struct ur_impair *imp, enum stream s, ur_chance chance)
{
	uint32_t draw;

	if (!chance) {
		skip_random(&imp->random[s]);
		return false;
	}
	draw = (uint32_t)(next_random(&imp->random[s]) >> 32);
	return draw < chance || chance == UINT32_MAX;
}

static uint32_t queued(const struct queue *q)
{
	return q->tail - q->head;
}

static struct held *oldest(const struct ur_impair *imp, const struct queue *q)
{
	return queued(q) ? &q->slot[q->head % imp->cfg.hold_max] : NULL;
}

static bool push(const struct ur_impair *imp, struct queue *q, struct held h)
{
	if (queued(q) == imp->cfg.hold_max)
		return false;
	q->slot[q->tail++ % imp->cfg.hold_max] = h;
	return true;
}

static void link_init(struct ur_impair *imp)
{
	const struct ur_impair_config *cfg = &imp->cfg;

	ur_link_init(&imp->link, cfg->link_gbps);
	imp->queue_ns = ur_link_ns(&imp->link, cfg->link_queue_bytes);
	imp->ecn_ns = UINT64_MAX;
	if (cfg->link_ecn_bytes)
		imp->ecn_ns = ur_link_ns(&imp->link, cfg->link_ecn_bytes);
}

struct ur_impair *ur_impair_new(const struct ur_impair_config *cfg, uint32_t stream,
				const struct ur_impair_ops *ops, void *ctx)
{
	struct ur_impair *imp = calloc(1, sizeof(*imp));
	uint64_t root = cfg->seed + (uint64_t)stream * 0xd1342543de82ef95ull;

	if (!imp)
		return NULL;
	imp->cfg = *cfg;
	if (imp->cfg.hold_max == 0)
		imp->cfg.hold_max = HOLD_DEFAULT;
	imp->ops = ops;
	imp->ctx = ctx;
	imp->burst_end = UINT32_MAX;
	if (cfg->burst_packets > 1)
		imp->burst_end = ur_impair_chance(1.0 / cfg->burst_packets);
	imp->only_loses = !does_more(cfg);
	link_init(imp);
	for (unsigned i = 0; i < STREAM_CNT; i++)
		imp->random[i] = next_random(&root);
	imp->back.slot = calloc(imp->cfg.hold_max, sizeof(struct held));
	imp->line.slot = calloc(imp->cfg.hold_max, sizeof(struct held));
	if (!imp->back.slot || !imp->line.slot) {
		ur_impair_free(imp);
		return NULL;
	}
	return imp;
}

static void release_all(struct ur_impair *imp, struct queue *q)
{
	struct held *h;

	while (q->slot && (h = oldest(imp, q))) {
		imp->ops->release(imp->ctx, h->pkt);
		q->head++;
	}
	free(q->slot);
}

void ur_impair_free(struct ur_impair *imp)
{
	if (!imp)
		return;
	release_all(imp, &imp->back);
	release_all(imp, &imp->line);
	free(imp);
}

/*
 * RATE-QUEUE-01. Sends the packet over the slow link. Returns the time at which it has left, or
 * UINT64_MAX if the queue is full.
 */
static uint64_t cross(struct ur_impair *imp, void **pkt, uint64_t now_ns)
{
	struct ur_link *l = &imp->link;
	uint32_t bytes = imp->ops->wire_bytes(imp->ctx, *pkt);
	uint64_t wait_ns = 0;

	if (l->free_ns > now_ns)
		wait_ns = l->free_ns - now_ns;
	else
		l->free_ns = now_ns;
	if (wait_ns + ur_link_ns(l, bytes) > imp->queue_ns) {
		imp->cnt[UR_IMPAIR_LINK_DROPPED]++;
		return UINT64_MAX;
	}
	if (wait_ns > imp->ecn_ns)
		imp->cnt[UR_IMPAIR_LINK_MARKED] += imp->ops->mark_ce(imp->ctx, pkt);
	imp->cnt[UR_IMPAIR_LINK_PACKETS]++;
	imp->cnt[UR_IMPAIR_LINK_BYTES] += bytes;
	imp->cnt[UR_IMPAIR_LINK_WAIT_NS] += wait_ns;
	if (imp->cnt[UR_IMPAIR_LINK_WAIT_MAX_NS] < wait_ns)
		imp->cnt[UR_IMPAIR_LINK_WAIT_MAX_NS] = wait_ns;
	ur_link_carry(l, bytes);
	return l->free_ns;
}

/*
 * Link and delay line. A packet leaves at once if it has neither a time nor another packet to wait
 * for.
 */
static void delay(struct ur_impair *imp, struct exit *exit, void *pkt)
{
	uint64_t wait_ns = imp->cfg.delay_ns, due_ns, from_ns = exit->now_ns;

	if (imp->link.ns_per_byte && queued(&imp->line) < imp->cfg.hold_max)
		from_ns = cross(imp, &pkt, from_ns);
	if (from_ns == UINT64_MAX) {
		imp->ops->release(imp->ctx, pkt);
		return;
	}
	if (imp->cfg.jitter_ns)
		wait_ns += next_random(&imp->random[JITTER]) % (imp->cfg.jitter_ns + 1);
	due_ns = from_ns + wait_ns;
	if (due_ns == exit->now_ns && queued(&imp->line) == 0 && exit->n < exit->cap) {
		exit->out[exit->n++] = pkt;
		return;
	}
	if (due_ns < imp->last_due_ns)
		due_ns = imp->last_due_ns;
	if (!push(imp, &imp->line, (struct held){.pkt = pkt, .due_ns = due_ns})) {
		imp->ops->release(imp->ctx, pkt);
		imp->cnt[UR_IMPAIR_OVERFLOW]++;
		return;
	}
	imp->last_due_ns = due_ns;
	imp->cnt[UR_IMPAIR_DELAYED] += wait_ns > 0;
}

static void release_held_back(struct ur_impair *imp, struct exit *exit)
{
	struct held *h;

	while ((h = oldest(imp, &imp->back)) &&
	       (h->after <= imp->passed || h->due_ns <= exit->now_ns)) {
		imp->back.head++;
		delay(imp, exit, h->pkt);
	}
}

static void leave_line(struct ur_impair *imp, struct exit *exit)
{
	struct held *h;

	while (exit->n < exit->cap && (h = oldest(imp, &imp->line)) && h->due_ns <= exit->now_ns) {
		exit->out[exit->n++] = h->pkt;
		imp->line.head++;
	}
}

/* Both bounds 0: no reordering. If only one is 0, that bound is infinite. */
static bool hold_back(struct ur_impair *imp, struct exit *exit, void *pkt)
{
	const struct ur_impair_config *cfg = &imp->cfg;
	bool chosen = happens(imp, REORDER, cfg->reorder);
	struct held h = {.pkt = pkt, .due_ns = UINT64_MAX, .after = UINT64_MAX};

	if (!chosen || (!cfg->reorder_gap && !cfg->reorder_hold_ns))
		return false;
	if (cfg->reorder_gap)
		h.after = imp->passed + cfg->reorder_gap;
	if (cfg->reorder_hold_ns)
		h.due_ns = exit->now_ns + cfg->reorder_hold_ns;
	if (!push(imp, &imp->back, h)) {
		imp->cnt[UR_IMPAIR_HOLD_FULL]++;
		return false;
	}
	imp->cnt[UR_IMPAIR_REORDERED]++;
	return true;
}

static void pass(struct ur_impair *imp, struct exit *exit, void *pkt)
{
	if (hold_back(imp, exit, pkt))
		return;
	delay(imp, exit, pkt);
	imp->passed++;
	release_held_back(imp, exit);
}

static void *corrupt(struct ur_impair *imp, void *pkt)
{
	void *flipped;

	if (!happens(imp, CORRUPT, imp->cfg.corrupt)) {
		skip_random(&imp->random[CORRUPT_BIT]);
		return pkt;
	}
	flipped = imp->ops->flip(imp->ctx, pkt, next_random(&imp->random[CORRUPT_BIT]));
	imp->cnt[flipped ? UR_IMPAIR_CORRUPTED : UR_IMPAIR_NO_MEMORY]++;
	return flipped ? flipped : pkt;
}

/* IMPAIR-BURST-01. True if the network loses the packet. Updates the state of the loss model. */
static bool lose(struct ur_impair *imp)
{
	bool was = imp->in_burst;

	if (imp->cfg.burst) {
		bool turns = happens(imp, BURST, was ? imp->burst_end : imp->cfg.burst);

		imp->in_burst = was != turns;
		imp->cnt[UR_IMPAIR_BURSTS] += !was && turns;
	}
	return happens(imp, LOSS, imp->in_burst ? imp->cfg.burst_loss : imp->cfg.loss);
}

/* The first stage. False: the packet is lost. */
static bool survives(struct ur_impair *imp, void *pkt)
{
	imp->cnt[UR_IMPAIR_PACKETS]++;
	if (!lose(imp))
		return true;
	imp->cnt[UR_IMPAIR_LOST]++;
	imp->ops->release(imp->ctx, pkt);
	return false;
}

static void one(struct ur_impair *imp, struct exit *exit, void *pkt)
{
	void *copy = NULL;
	bool twice;

	if (!survives(imp, pkt))
		return;
	pkt = corrupt(imp, pkt);
	if (happens(imp, ECN, imp->cfg.ecn))
		imp->cnt[imp->ops->mark_ce(imp->ctx, &pkt) ? UR_IMPAIR_MARKED
							   : UR_IMPAIR_NOT_ECT]++;
	twice = happens(imp, DUPLICATE, imp->cfg.duplicate);
	if (twice) {
		copy = imp->ops->clone(imp->ctx, pkt);
		imp->cnt[copy ? UR_IMPAIR_DUPLICATED : UR_IMPAIR_NO_MEMORY]++;
	}
	pass(imp, exit, pkt);
	if (copy)
		pass(imp, exit, copy);
}

uint16_t ur_impair_run(struct ur_impair *imp, void *const *in, uint16_t n, void **out, uint16_t cap,
		       uint64_t now_ns)
{
	struct exit exit = {.out = out, .cap = cap, .now_ns = now_ns};

	if (imp->only_loses && n <= cap && !queued(&imp->line)) {
		for (uint16_t i = 0; i < n; i++)
			if (survives(imp, in[i]))
				out[exit.n++] = in[i];
		return exit.n;
	}
	leave_line(imp, &exit);
	release_held_back(imp, &exit);
	for (uint16_t i = 0; i < n; i++)
		one(imp, &exit, in[i]);
	leave_line(imp, &exit);
	return exit.n;
}

uint64_t ur_impair_next_deadline(const struct ur_impair *imp)
{
	const struct held *back = oldest(imp, &imp->back), *line = oldest(imp, &imp->line);
	uint64_t due_ns = back ? back->due_ns : UINT64_MAX;

	return line && line->due_ns < due_ns ? line->due_ns : due_ns;
}

uint32_t ur_impair_held(const struct ur_impair *imp)
{
	return queued(&imp->back) + queued(&imp->line);
}

const uint64_t *ur_impair_counters(const struct ur_impair *imp)
{
	return imp->cnt;
}
