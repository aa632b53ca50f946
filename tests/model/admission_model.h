/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that the model admission.pml calls: those of lib/admission, on objects in `world`, and the
 * abstraction `view`, which distinguishes states. It has generations relative to the pool's, lists as
 * sequences of senders, and no time. Everything that decides the further course is in `view` or in
 * Promela's variables.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/pool.h"
#include "admission/sst.h"
#include "wire/assert.h"

extern void (*Uerror)(char *); /* of pan: reports and ends */

_Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s:%d: %s", file, line, expr);
	Uerror(text);
	exit(1);
}

/* Time has three values: long ago, now, and after every entry has expired. */
#define LONG_AGO     0
#define NOW	     1000
#define LATE	     1000000
#define REFUSAL_LIFE 900
#define GRANT_LIFE   500
#define ENTRY_LIFE   100000
#define GENERATION   60000 /* the pool's, after each step */
/* Mode paper: sender 0 is told of each change, and is held back for up to four; else for up to two. */
#define PAPER	(MODE == UR_ADM_PAPER)
#define PATIENT (PAPER ? 4 : 2)
#define OLDEST	(PAPER ? 5 : 2) /* of generations older than this, only the order matters */

struct status {
	uint16_t generation;
	uint8_t status;
};

struct world {
	struct ur_adm_pool pool;
	struct ur_adm_refusal refusal[SENDERS];
	struct ur_adm_peer peer;
	struct ur_sst sst;
	struct ur_sst_entry *entry;
	struct ur_sst_waiter waiter;
	struct status answer, notify;	 /* in flight */
	uint8_t answer_class, own_class; /* in the answer; what sender 0 believes. Mode paper */
	uint16_t arrived[SENDERS];	 /* generation at the first arrival of the request */
	uint64_t table[(sizeof(struct ur_sst_entry) + 64) / 8];
};

struct view {
	uint8_t status;
	uint8_t waiting[2][SENDERS], granted[SENDERS]; /* sender + 1 */
	uint8_t refusal_age[SENDERS], arrived_age[SENDERS];
	uint8_t known, entry_status, entry_age;
	uint8_t waits;	  /* 0: no; else 1 + changes seen since, at most PATIENT */
	uint8_t released; /* the same, of a released request that has not been sent */
	uint8_t answer[2], notify[2], answer_class, own_class;
	uint8_t stale;		     /* the peer must be notified; mode paper: of so many changes */
	uint8_t grants, granted_cnt; /* a queue pair waits for a grant */
};

static struct world world;
static struct view view;

/* The age of a generation, in changes, at most `most`. */
static uint8_t age_of(uint16_t generation, uint8_t most)
{
	uint16_t age = (uint16_t)(world.pool.generation - generation);

	return age < most ? (uint8_t)age : most;
}

static void rebase(uint16_t *generation, uint8_t most)
{
	*generation = (uint16_t)(GENERATION - age_of(*generation, most));
}

static void list(uint8_t *to, const struct ur_adm_refusals *line)
{
	const struct ur_adm_refusal *m;

	TAILQ_FOREACH(m, line, order)
	*to++ = (uint8_t)(m - world.refusal + 1);
}

static void rebase_refusal(unsigned i)
{
	if (world.refusal[i].queue_class) {
		rebase(&world.refusal[i].generation, 3);
		rebase(&world.arrived[i],
		       1); /* no refusal is older than 2, so only 0 or more matters */
	} else {
		world.arrived[i] = world.pool.generation;
	}
}

/* The statuses that sender 0 has or that are in flight to it: ages, and order by age. */
static void rebase_statuses(void)
{
	uint16_t *of[3] = {&world.entry->generation, &world.answer.generation,
			   &world.notify.generation};
	uint8_t age[3], rank[3];

	for (unsigned i = 0; i < 3; i++)
		rank[i] = age[i] = age_of(*of[i], UINT8_MAX);
	for (unsigned i = 0; i < 3; i++) {
		if (age[i] <= OLDEST)
			continue;
		rank[i] = OLDEST + 1;
		for (unsigned k = 0; k < 3; k++)
			if (age[k] > OLDEST && age[k] < age[i] &&
			    (k == 0 || age[k] != age[k - 1]) && (k < 2 || age[k] != age[0]))
				rank[i]++;
	}
	for (unsigned i = 0; i < 3; i++)
		*of[i] = (uint16_t)(GENERATION - rank[i]);
}

static void rebase_entry(void)
{
	struct ur_sst_entry *e = world.entry;
	struct ur_sst_waiter *w = &world.waiter;
	uint16_t seen = (uint16_t)(e->generation - w->generation);

	if (!e->known)
		e->generation = world.pool.generation;
	rebase_statuses();
	if (w->waits || w->released)
		w->generation = (uint16_t)(e->generation - (seen < PATIENT ? seen : PATIENT));
	e->turns = w->turn = 0;
}

/* After every step: reduces generations, checks the invariants, and updates the view. */
static void take_view(void)
{
	const struct ur_sst_entry *e = world.entry;

	ur_adm_pool_validate(&world.pool);
	for (unsigned i = 0; i < SENDERS; i++)
		rebase_refusal(i);
	rebase_entry();
	rebase(&world.peer.notified_generation, PAPER ? 4 : 1);
	world.peer.notified_ns = LONG_AGO;
	world.pool.generation = GENERATION;
	memset(&world.pool.cnt, 0, sizeof(world.pool.cnt));

	memset(&view, 0, sizeof(view));
	view.status = world.pool.status;
	list(view.waiting[0], &world.pool.waiting[UR_ADM_CLASS_A]);
	list(view.waiting[1], &world.pool.waiting[UR_ADM_CLASS_B]);
	list(view.granted, &world.pool.granted);
	for (unsigned i = 0; i < SENDERS; i++) {
		if (world.refusal[i].queue_class)
			view.refusal_age[i] = age_of(world.refusal[i].generation, 3);
		view.arrived_age[i] = age_of(world.arrived[i], 1);
	}
	view.known = e->known;
	view.entry_status = e->known ? e->status : 0;
	view.entry_age = age_of(e->generation, UINT8_MAX);
	if (world.waiter.waits)
		view.waits = (uint8_t)(1 + e->generation - world.waiter.generation);
	if (world.waiter.released)
		view.released = (uint8_t)(1 + e->generation - world.waiter.generation);
	view.answer_class = world.answer_class;
	view.own_class = world.own_class;
	view.answer[0] = age_of(world.answer.generation, UINT8_MAX);
	view.answer[1] = world.answer.status;
	view.notify[0] = age_of(world.notify.generation, UINT8_MAX);
	view.notify[1] = world.notify.status;
	if (MODE >= UR_ADM_INTELLIGENT)
		view.stale = age_of(world.peer.notified_generation, UINT8_MAX);
	view.grants = MODE == UR_ADM_INTELLIGENT &&
		      !TAILQ_EMPTY(&world.pool.waiting[ur_adm_pool_served(&world.pool)]);
	view.granted_cnt = (uint8_t)world.pool.granted_cnt;
}

static struct status no_status(void)
{
	return (struct status){.generation = world.pool.generation};
}

static struct status current_status(void)
{
	/*
	 * Except in mode paper, sender 0 sends requests only without a queue class: A and B are
	 * equivalent, as are NA and NB.
	 */
	return (struct status){world.pool.generation, world.pool.status & (PAPER ? 3 : 1)};
}

static void begin(void)
{
	struct ur_adm_limits limits = {
		.mode = MODE, .refusal_life_ns = REFUSAL_LIFE, .grant_life_ns = GRANT_LIFE};
	static const uint8_t key[16];

	ur_adm_pool_init(&world.pool, &limits);
	world.pool.generation = GENERATION;
	ur_sst_init(&world.sst, world.table, 1, ENTRY_LIFE, 1);
	world.entry = ur_sst_get(&world.sst, key, 1);
	world.entry->paper = PAPER;
	ur_adm_peer_add(&world.pool, &world.peer, 1, LONG_AGO);
	world.answer = world.notify = no_status();
	take_view();
}

/* ---- receiver ---- */

/*
 * The request of sender `i` arrives, for the first time unless it was refused. Returns true if it is
 * accepted. All requests claim class A, because claims must not matter. No request passes another one that
 * was refused two generations before its arrival (ADM-AGE-01), and in A and B only queue pairs with the
 * served class are accepted.
 */
static bool arrive(unsigned i, unsigned posted)
{
	struct ur_adm_pool *p = &world.pool;
	uint8_t held = world.refusal[i].queue_class, status = p->status;
	bool ok;

	if (!held)
		world.arrived[i] = p->generation;
	ok = ur_adm_pool_request(p, &world.refusal[i], UR_ADM_CLASS_A, posted, NOW);
	if (ok) {
		UR_ASSERT(!(status & 1) ||
			  held == (status == UR_ADM_A ? UR_ADM_CLASS_A : UR_ADM_CLASS_B));
		for (unsigned k = 0; k < SENDERS; k++)
			UR_ASSERT(!world.refusal[k].queue_class ||
				  (int16_t)(world.arrived[i] - world.refusal[k].generation) < 2);
	}
	take_view();
	return ok;
}

static unsigned grant(unsigned posted)
{
	unsigned i = (unsigned)(ur_adm_pool_next_grant(&world.pool, posted, NOW) - world.refusal);

	take_view();
	return i;
}

static void expire_grant(void)
{
	TAILQ_FIRST(&world.pool.granted)->granted_ns = LONG_AGO;
	ur_adm_pool_expire(&world.pool, NOW);
	take_view();
}

/* The life of a refusal passes. All senders have sent a packet, except those in `silent` (bits). */
static void pass_life(unsigned silent)
{
	for (unsigned i = 0; i < SENDERS; i++) {
		if (silent >> i & 1)
			world.refusal[i].seen_ns = LONG_AGO;
		else
			ur_adm_pool_refresh(&world.pool, &world.refusal[i], NOW);
	}
	ur_adm_pool_expire(&world.pool, NOW);
	take_view();
}

static void forget(unsigned i)
{
	ur_adm_pool_forget(&world.pool, &world.refusal[i]);
	take_view();
}

/* ---- sender 0 ---- */

static void receive_status(const struct status *w)
{
	struct ur_sst_waiter *out[1];

	if (MODE < UR_ADM_INTELLIGENT || !ur_sst_update(world.entry, w->status, w->generation, NOW))
		return;
	if (ur_sst_next_refused(world.entry))
		ur_sst_recall(world.entry, &world.waiter);
	ur_sst_wake(world.entry, out, 1, NOW);
}

static void answer(void)
{
	world.answer = current_status();
	if (PAPER)
		world.answer_class = world.refusal[0].queue_class;
	take_view();
}

/* `delivered`: it was not lost, and the sender is alive. */
static void deliver_answer(bool delivered)
{
	if (delivered) {
		world.own_class = world.answer_class;
		receive_status(&world.answer);
	}
	world.answer = no_status();
	world.answer_class = UR_ADM_NONE;
	take_view();
}

static void notify(void)
{
	UR_ASSERT(ur_adm_pool_next_notify(&world.pool, NOW + 1024) == &world.peer);
	world.notify = current_status();
	if (PAPER) {
		world.notify.generation = world.peer.notified_generation;
		world.notify.status = ur_adm_pool_status_at(&world.pool, world.notify.generation);
	}
	take_view();
}

static void deliver_notify(bool delivered)
{
	if (delivered)
		receive_status(&world.notify);
	world.notify = no_status();
	take_view();
}

static bool may_send_with(uint8_t queue_class)
{
	bool ok = ur_sst_may_send(world.entry, queue_class, NOW);

	if (!ok)
		ur_sst_wait(world.entry, &world.waiter, queue_class);
	take_view();
	return ok;
}

/*
 * It wants to send a request and has no queue class. False: it must wait, or, in mode paper, is released
 * and may still be recalled.
 */
static bool may_send(void)
{
	if (!PAPER || !ur_sst_may_send(world.entry, UR_ADM_NONE, NOW))
		return may_send_with(UR_ADM_NONE);
	ur_sst_release(world.entry, &world.waiter);
	take_view();
	return false;
}

/* It was refused, and its timer is over, or a grant has come. */
static bool may_repeat(void)
{
	return !PAPER || may_send_with(world.own_class);
}

/* The released request is sent. */
static void leave(void)
{
	ur_sst_cancel_wait(world.entry, &world.waiter);
	take_view();
}

/* No status has arrived for so long that the entry has expired. */
static void expire_entry(void)
{
	struct ur_sst_waiter *out[1];

	ur_sst_wake(world.entry, out, 1, LATE);
	world.entry->known = false;
	take_view();
}

static void die(void)
{
	ur_sst_cancel_wait(world.entry, &world.waiter);
	world.entry->known = false;
	world.own_class = UR_ADM_NONE;
	take_view();
}
