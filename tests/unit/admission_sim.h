/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_ADMISSION_SIM_H
#define TESTS_ADMISSION_SIM_H

#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "admission/pool.h"
#include "admission/sst.h"

/*
 * Senders overload one pool, in virtual time and deterministically. The receiver serves accepted
 * requests, one in SERVICE_NS, and posts the receive again. A sender has one request at a time and
 * pauses for senders * SERVICE_NS / load between two of them, so that without waiting all together
 * would request `load` times the service rate. Nothing is lost.
 */
#define SENDERS_MAX 64
#define SERVICE_NS  UINT64_C(50000)
#define RNR_NS	    UINT64_C(10000)    /* all but intelligent: the shortest RNR timer */
#define FALLBACK_NS UINT64_C(20000000) /* intelligent: timer for lost grants */
#define ONE_WAY_NS  UINT64_C(5000)
#define RECEIVES    4
#define JITTER_NS   2048 /* of the delay of a request */
#define ROUNDS	    50	 /* services per sender */
#define EVENTS_MAX  8192

enum kind {
	WANT,
	REQUEST,
	ANSWER,
	TIMER,
	NOTIFY,
	GRANT,
	SERVED,
	POOL,
	HOP, /* at the switch */
};

struct event {
	uint64_t at, order;
	enum kind kind;
	unsigned idx;
	uint32_t epoch; /* TIMER */
	uint16_t generation;
	uint8_t status, queue_class, room;
	bool accepted;
	enum kind passes; /* HOP: REQUEST, NOTIFY or GRANT; HOP itself: its deadline */
};

struct sender {
	struct ur_adm_refusal refusal; /* kept by the receiver */
	struct ur_sst_waiter waiter;   /* kept by the sender, like all below */
	uint8_t queue_class;
	bool open;	/* a request is outstanding */
	bool waits;	/* wants to be served */
	uint32_t epoch; /* of the retry timer */
	uint64_t wanted_at;
	unsigned served;
};

#define MODES (UR_ADM_PAPER + 1)

struct sim;

/* What is between the senders and the receiver, half way; NULL in a sim: nothing. */
struct hop {
	void *ctx;
	/* A request of sender e->idx, or a NOTIFY or grant, or (kind HOP) its own deadline. */
	void (*pass)(void *ctx, struct sim *sim, const struct event *e);
};

struct sim {
	const struct hop *hop;
	enum ur_adm_mode mode;
	unsigned senders, peers, load10;
	uint64_t now, order;
	uint32_t jitter;
	struct event heap[EVENTS_MAX];
	unsigned events;
	struct ur_adm_pool pool;
	uint32_t posted, backlog;
	struct ur_adm_peer peer[SENDERS_MAX];
	struct ur_sst sst;
	struct ur_sst_entry *entry[SENDERS_MAX];
	struct sender s[SENDERS_MAX];
	uint64_t pool_at;
	/* results */
	uint64_t refused, served, wait_sum, wait_max, counted_from;
};

/* ---- events, a binary heap by (at, order) ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct sim *sim, struct event e)
{
	unsigned i = sim->events++;

	cr_assert_lt(i, EVENTS_MAX);
	e.order = sim->order++;
	for (; i && is_before(&e, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = e;
}

static struct event pop(struct sim *sim)
{
	struct event top = sim->heap[0], last = sim->heap[--sim->events];
	unsigned i = 0;

	for (unsigned k; (k = 2 * i + 1) < sim->events; i = k) {
		if (k + 1 < sim->events && is_before(&sim->heap[k + 1], &sim->heap[k]))
			k++;
		if (!is_before(&sim->heap[k], &last))
			break;
		sim->heap[i] = sim->heap[k];
	}
	sim->heap[i] = last;
	return top;
}

static struct ur_sst_entry *entry_of(struct sim *sim, unsigned i)
{
	return sim->entry[i % sim->peers];
}

/* ---- receiver ---- */

/* Sends the status of that generation, which arrives after half a round trip. */
static void say(struct sim *sim, uint16_t generation, struct event e)
{
	e.at = sim->now + ONE_WAY_NS;
	e.status = ur_adm_pool_status_at(&sim->pool, generation);
	e.generation = generation;
	e.room = (uint8_t)ur_adm_pool_room(&sim->pool, sim->posted);
	push(sim, e);
	if (!sim->hop || e.kind == ANSWER)
		return;
	e.at = sim->now + ONE_WAY_NS / 2;
	e.passes = e.kind;
	e.kind = HOP;
	push(sim, e);
}

/* The work of the receiver after each of its events. */
static void pump(struct sim *sim)
{
	struct ur_adm_refusal *m;
	struct ur_adm_peer *p;
	uint64_t at;

	while ((m = ur_adm_pool_next_grant(&sim->pool, sim->posted, sim->now))) {
		const struct sender *s =
			(const void *)((const char *)m - offsetof(struct sender, refusal));

		say(sim, sim->pool.generation,
		    (struct event){.kind = GRANT, .idx = (unsigned)(s - sim->s)});
	}
	while ((p = ur_adm_pool_next_notify(&sim->pool, sim->now)))
		say(sim, p->notified_generation,
		    (struct event){.kind = NOTIFY, .idx = (unsigned)(p - sim->peer)});
	at = ur_adm_pool_deadline(&sim->pool);
	if (at < sim->pool_at) {
		sim->pool_at = at;
		push(sim, (struct event){.at = at, .kind = POOL});
	}
	if (sim->order % 64 == 0)
		ur_adm_pool_validate(&sim->pool);
}

static void count_wait(struct sim *sim, const struct sender *s)
{
	uint64_t from = s->wanted_at > sim->counted_from ? s->wanted_at : sim->counted_from;
	uint64_t wait = sim->now - s->wanted_at;

	if (sim->now <= sim->counted_from)
		return;
	sim->wait_sum += sim->now - from;
	sim->wait_max = wait > sim->wait_max ? wait : sim->wait_max;
}

static void request_arrives(struct sim *sim, const struct event *e)
{
	struct sender *s = &sim->s[e->idx];
	bool ok =
		ur_adm_pool_request(&sim->pool, &s->refusal, e->queue_class, sim->posted, sim->now);

	if (ok) {
		sim->posted--;
		count_wait(sim, s);
		s->waits = false;
		if (sim->backlog++ == 0)
			push(sim, (struct event){.at = sim->now + SERVICE_NS, .kind = SERVED});
		if (sim->now >= sim->counted_from) {
			s->served++;
			sim->served++;
		}
	} else if (sim->now >= sim->counted_from) {
		sim->refused++;
	}
	say(sim, sim->pool.generation,
	    (struct event){.kind = ANSWER,
			   .idx = e->idx,
			   .accepted = ok,
			   .queue_class = s->refusal.queue_class});
	pump(sim);
}

static void served(struct sim *sim)
{
	sim->posted++;
	if (--sim->backlog)
		push(sim, (struct event){.at = sim->now + SERVICE_NS, .kind = SERVED});
	pump(sim);
}

/* ---- senders ---- */

static void send(struct sim *sim, unsigned i)
{
	struct sender *s = &sim->s[i];

	cr_assert(!s->open);
	s->open = true;
	s->epoch++;
	sim->jitter = sim->jitter * 1664525 + 1013904223;
	push(sim, (struct event){.at = sim->now + (sim->hop ? ONE_WAY_NS / 2 : ONE_WAY_NS) +
				       (sim->jitter >> 8) % JITTER_NS,
				 .kind = sim->hop ? HOP : REQUEST,
				 .passes = REQUEST,
				 .idx = i,
				 .queue_class = s->queue_class});
}

static void try_to_send(struct sim *sim, unsigned i)
{
	struct ur_sst_entry *e = entry_of(sim, i);

	if (sim->mode >= UR_ADM_INTELLIGENT && !ur_sst_may_send(e, sim->s[i].queue_class, sim->now))
		ur_sst_wait(e, &sim->s[i].waiter, sim->s[i].queue_class);
	else
		send(sim, i);
}

static void wake(struct sim *sim, struct ur_sst_entry *e, uint32_t n)
{
	struct ur_sst_waiter *out[SENDERS_MAX];
	uint32_t cnt = ur_sst_wake(e, out, n < SENDERS_MAX ? n : SENDERS_MAX, sim->now);

	for (uint32_t k = 0; k < cnt; k++) {
		const struct sender *s =
			(const void *)((const char *)out[k] - offsetof(struct sender, waiter));

		send(sim, (unsigned)(s - sim->s));
	}
}

static void receive_status(struct sim *sim, struct ur_sst_entry *entry, const struct event *e)
{
	if (!ur_sst_update(entry, e->status, e->generation, sim->now))
		return;
	/* A request is sent when it is released: none of them is left to be recalled. */
	while (ur_sst_next_refused(entry))
		;
	wake(sim, entry, sim->mode == UR_ADM_PAPER ? SENDERS_MAX : e->room ? e->room : 1);
}

static void answer_arrives(struct sim *sim, const struct event *e)
{
	struct sender *s = &sim->s[e->idx];

	s->open = false;
	s->queue_class = e->queue_class;
	if (e->accepted)
		push(sim,
		     (struct event){.at = sim->now + sim->senders * SERVICE_NS * 10 / sim->load10,
				    .kind = WANT,
				    .idx = e->idx});
	else
		push(sim,
		     (struct event){.at = sim->now +
					  (sim->mode == UR_ADM_INTELLIGENT ? FALLBACK_NS : RNR_NS),
				    .kind = TIMER,
				    .idx = e->idx,
				    .epoch = s->epoch});
	receive_status(sim, entry_of(sim, e->idx), e);
	if (e->accepted)
		wake(sim, entry_of(sim, e->idx), 1);
}

static void happen(struct sim *sim, const struct event *e)
{
	struct sender *s = &sim->s[e->idx];

	switch (e->kind) {
	case WANT:
		s->wanted_at = sim->now;
		s->waits = true;
		try_to_send(sim, e->idx);
		break;
	case REQUEST:
		request_arrives(sim, e);
		break;
	case ANSWER:
		answer_arrives(sim, e);
		break;
	case TIMER:
		if (e->epoch == s->epoch && !s->open)
			try_to_send(sim, e->idx);
		break;
	case GRANT:
		if (!s->open)
			send(sim, e->idx);
		break;
	case NOTIFY:
		receive_status(sim, sim->entry[e->idx], e);
		break;
	case SERVED:
		served(sim);
		break;
	case POOL:
		sim->pool_at = UINT64_MAX;
		ur_adm_pool_expire(&sim->pool, sim->now);
		pump(sim);
		break;
	case HOP:
		sim->hop->pass(sim->hop->ctx, sim, e);
		break;
	}
}

/* ---- runs ---- */

struct result {
	double refused;	    /* per service */
	double mean, worst; /* time to service, in services */
	double jain, told;  /* NOTIFYs and grants per service */
};

static struct result run(enum ur_adm_mode mode, unsigned senders, unsigned peers, unsigned load10,
			 const struct hop *hop)
{
	struct ur_adm_limits limits = {
		.mode = mode, .refusal_life_ns = 4 * FALLBACK_NS, .grant_life_ns = 10 * ONE_WAY_NS};
	struct sim *sim = calloc(1, sizeof(*sim));
	void *table = calloc(1, ur_sst_size(peers));
	uint64_t end = (ROUNDS + 20) * senders * SERVICE_NS;
	double sum = 0, squares = 0;
	struct result r;

	sim->mode = mode;
	sim->hop = hop;
	sim->senders = senders;
	sim->peers = peers;
	sim->load10 = load10;
	sim->posted = RECEIVES;
	sim->pool_at = UINT64_MAX;
	sim->counted_from = 20 * senders * SERVICE_NS;
	ur_adm_pool_init(&sim->pool, &limits);
	ur_sst_init(&sim->sst, table, peers, 8 * FALLBACK_NS, 1);
	for (unsigned i = 0; i < peers; i++) {
		uint8_t key[16] = {(uint8_t)i};

		ur_adm_peer_add(&sim->pool, &sim->peer[i], 2 * ONE_WAY_NS, 0);
		sim->entry[i] = ur_sst_get(&sim->sst, key, 7);
		sim->entry[i]->paper = mode == UR_ADM_PAPER;
	}
	for (unsigned i = 0; i < senders; i++)
		push(sim,
		     (struct event){.at = i * SERVICE_NS * 10 / load10, .kind = WANT, .idx = i});
	while (sim->heap[0].at < end) {
		struct event e = pop(sim);

		sim->now = e.at;
		happen(sim, &e);
	}
	sim->now = end;
	for (unsigned i = 0; i < senders; i++) {
		if (sim->s[i].waits) /* counts the wait of one that is never served */
			count_wait(sim, &sim->s[i]);
		sum += sim->s[i].served;
		squares += (double)sim->s[i].served * sim->s[i].served;
	}
	cr_assert_gt(sim->served, 0);
	r = (struct result){
		.refused = (double)sim->refused / (double)sim->served,
		.mean = (double)sim->wait_sum / (double)sim->served / SERVICE_NS,
		.worst = (double)sim->wait_max / SERVICE_NS,
		.jain = sum * sum / (senders * squares),
		.told = (double)(sim->pool.cnt.notifies + sim->pool.cnt.grants) /
			(double)sim->pool.cnt.accepted,
	};
	free(table);
	free(sim);
	return r;
}

static void print(const char *what, unsigned senders, unsigned load10, const struct result *r)
{
	printf("%-11s %2u senders, load %.1f: refused %7.3f a service, mean %6.2f, worst %6.2f "
	       "services, Jain %.4f, NOTIFYs and grants %5.2f a service\n",
	       what, senders, load10 / 10.0, r->refused, r->mean, r->worst, r->jain, r->told);
}

#endif
