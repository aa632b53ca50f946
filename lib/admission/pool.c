/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "admission/pool.h"
#include "wire/assert.h"

#define CYCLE 4 /* statuses: NA, A, NB, B */

void ur_adm_pool_init(struct ur_adm_pool *p, const struct ur_adm_limits *limits)
{
	UR_ASSERT(limits->refusal_life_ns && limits->grant_life_ns);
	*p = (struct ur_adm_pool){.status = UR_ADM_NA, .limits = *limits};
	for (unsigned i = 0; i < 3; i++)
		TAILQ_INIT(&p->waiting[i]);
	TAILQ_INIT(&p->granted);
	TAILQ_INIT(&p->by_age);
	for (unsigned i = 0; i < UR_ADM_RTT_CLASSES; i++)
		TAILQ_INIT(&p->peers[i]);
}

/* ADM-STATUS-02 */
static void advance_status(struct ur_adm_pool *p)
{
	p->status = (p->status + 1) & 3;
	p->generation++;
	p->cnt.changes++;
}

/* ADM-STATUS-03: the last queue pair of the served class is gone. */
static void end_phase(struct ur_adm_pool *p)
{
	if (p->status & 1 && !p->refused[ur_adm_pool_served(p)])
		advance_status(p);
}

/* ---- refusals ---- */

static void leave_queue(struct ur_adm_pool *p, struct ur_adm_refusal *r)
{
	if (r->granted) {
		TAILQ_REMOVE(&p->granted, r, order);
		p->granted_cnt--;
		r->granted = false;
	} else {
		TAILQ_REMOVE(&p->waiting[r->queue_class], r, order);
	}
}

static void add_refusal(struct ur_adm_pool *p, struct ur_adm_refusal *r,
			enum ur_adm_class queue_class, uint64_t now_ns)
{
	r->queue_class = (uint8_t)queue_class;
	r->generation = p->generation;
	r->seen_ns = now_ns;
	TAILQ_INSERT_TAIL(&p->waiting[queue_class], r, order);
	TAILQ_INSERT_TAIL(&p->by_age, r, by_age);
	p->refused[queue_class]++;
}

/* ADM-REFUSAL-02 */
static void remove_refusal(struct ur_adm_pool *p, struct ur_adm_refusal *r)
{
	if (!r->queue_class)
		return;
	leave_queue(p, r);
	TAILQ_REMOVE(&p->by_age, r, by_age);
	p->refused[r->queue_class]--;
	*r = (struct ur_adm_refusal){0};
	end_phase(p);
}

/* ADM-REFUSAL-03 */
void ur_adm_pool_refresh(struct ur_adm_pool *p, struct ur_adm_refusal *r, uint64_t now_ns)
{
	if (!r->queue_class)
		return;
	r->seen_ns = now_ns;
	TAILQ_REMOVE(&p->by_age, r, by_age);
	TAILQ_INSERT_TAIL(&p->by_age, r, by_age);
}

void ur_adm_pool_forget(struct ur_adm_pool *p, struct ur_adm_refusal *r)
{
	remove_refusal(p, r);
}

/* ---- requests ---- */

/* ADM-STATUS-01, ADM-REFUSAL-01: by the pool's own record; the class in the packet does not count. */
static bool is_admitted(const struct ur_adm_pool *p, const struct ur_adm_refusal *r,
			uint32_t posted)
{
	if (r->granted) /* ADM-GRANT-02 */
		return posted;
	if (p->status & 1 && r->queue_class != ur_adm_pool_served(p))
		return false;
	return ur_adm_pool_room(p, posted);
}

static void refuse(struct ur_adm_pool *p, struct ur_adm_refusal *r, uint64_t now_ns)
{
	enum ur_adm_class queue_class = ur_adm_pool_served(p);

	if (p->status & 1)
		queue_class = UR_ADM_CLASS_A + UR_ADM_CLASS_B - queue_class;
	else
		advance_status(p);
	if (!r->queue_class) {
		add_refusal(p, r, queue_class, now_ns);
		return;
	}
	ur_adm_pool_refresh(p, r, now_ns);
	if (r->granted) { /* the receive that was reserved for it is gone */
		leave_queue(p, r);
		TAILQ_INSERT_HEAD(&p->waiting[r->queue_class], r, order);
	}
}

bool ur_adm_pool_request(struct ur_adm_pool *p, struct ur_adm_refusal *r, uint8_t claim,
			 uint32_t posted, uint64_t now_ns)
{
	p->cnt.false_claims += claim && claim != r->queue_class;
	if (is_admitted(p, r, posted)) {
		p->cnt.accepted++;
		remove_refusal(p, r);
		return true;
	}
	p->cnt.refused++;
	if (p->limits.mode != UR_ADM_PLAIN) /* ADM-MODE-01 */
		refuse(p, r, now_ns);
	return false;
}

/* ADM-GRANT-01 */
struct ur_adm_refusal *ur_adm_pool_next_grant(struct ur_adm_pool *p, uint32_t posted,
					      uint64_t now_ns)
{
	struct ur_adm_refusal *r = TAILQ_FIRST(&p->waiting[ur_adm_pool_served(p)]);

	if (!r || p->limits.mode != UR_ADM_INTELLIGENT || !ur_adm_pool_room(p, posted))
		return NULL;
	leave_queue(p, r);
	TAILQ_INSERT_TAIL(&p->granted, r, order);
	r->granted = true;
	r->granted_ns = now_ns;
	p->granted_cnt++;
	p->cnt.grants++;
	return r;
}

/* ---- peers ---- */

/* The least class whose interval is a round trip or more. */
static uint8_t rtt_class_of(uint64_t rtt_ns)
{
	unsigned bits = rtt_ns > 1 ? 64 - (unsigned)__builtin_clzll(rtt_ns - 1) : 0;

	if (bits <= UR_ADM_RTT_CLASS_MIN)
		return 0;
	bits -= UR_ADM_RTT_CLASS_MIN;
	return (uint8_t)(bits < UR_ADM_RTT_CLASSES ? bits : UR_ADM_RTT_CLASSES - 1);
}

static void enter_rtt_class(struct ur_adm_pool *p, struct ur_adm_peer *peer, uint16_t generation,
			    uint64_t now_ns)
{
	peer->notified_generation = generation;
	peer->notified_ns = now_ns;
	peer->rtt_class = p->limits.mode == UR_ADM_PAPER ? 0 : rtt_class_of(peer->rtt_ns);
	TAILQ_INSERT_TAIL(&p->peers[peer->rtt_class], peer, link);
	p->rtt_classes |= 1u << peer->rtt_class;
}

void ur_adm_peer_add(struct ur_adm_pool *p, struct ur_adm_peer *peer, uint64_t rtt_ns,
		     uint64_t now_ns)
{
	const struct ur_adm_peer *last = TAILQ_LAST(&p->peers[0], ur_adm_peers);
	bool after = p->limits.mode == UR_ADM_PAPER && last;

	peer->rtt_ns = rtt_ns;
	enter_rtt_class(p, peer, after ? last->notified_generation : p->generation, now_ns);
}

void ur_adm_peer_remove(struct ur_adm_pool *p, struct ur_adm_peer *peer)
{
	TAILQ_REMOVE(&p->peers[peer->rtt_class], peer, link);
	if (TAILQ_EMPTY(&p->peers[peer->rtt_class]))
		p->rtt_classes &= ~(1u << peer->rtt_class);
}

/* When the first of a class may be notified; UINT64_MAX: it is up to date, and so are all behind it. */
static uint64_t notify_at(const struct ur_adm_pool *p, unsigned rtt_class)
{
	const struct ur_adm_peer *peer = TAILQ_FIRST(&p->peers[rtt_class]);

	if (p->limits.mode < UR_ADM_INTELLIGENT || peer->notified_generation == p->generation)
		return UINT64_MAX;
	if (p->limits.mode == UR_ADM_PAPER)
		return peer->notified_ns;
	return peer->notified_ns + (UINT64_C(1) << (UR_ADM_RTT_CLASS_MIN + rtt_class));
}

/*
 * ADM-PAPER-01: the change that the next NOTIFY to the peer reports. A peer that is more than a
 * cycle behind gets those of the last cycle, so no more than four NOTIFYs to it are ever due. This
 * keeps peers[0] in the order of generations: if its head is up to date, so is the rest.
 */
static uint16_t next_generation(const struct ur_adm_pool *p, const struct ur_adm_peer *peer)
{
	uint16_t behind = (uint16_t)(p->generation - peer->notified_generation);

	if (p->limits.mode != UR_ADM_PAPER)
		return p->generation;
	return (uint16_t)(p->generation - (behind < CYCLE ? behind : CYCLE) + 1);
}

/* ADM-NOTIFY-01, ADM-NOTIFY-02 */
struct ur_adm_peer *ur_adm_pool_next_notify(struct ur_adm_pool *p, uint64_t now_ns)
{
	for (uint32_t left = p->rtt_classes; left; left &= left - 1) {
		unsigned rtt_class = (unsigned)__builtin_ctz(left);
		struct ur_adm_peer *peer = TAILQ_FIRST(&p->peers[rtt_class]);
		uint16_t generation;

		if (notify_at(p, rtt_class) > now_ns)
			continue;
		generation = next_generation(p, peer);
		ur_adm_peer_remove(p, peer);
		enter_rtt_class(p, peer, generation, now_ns);
		p->cnt.notifies++;
		return peer;
	}
	return NULL;
}

/* ---- time ---- */

/* ADM-GRANT-03: the next in the queue gets the receive. */
static void void_grant(struct ur_adm_pool *p, struct ur_adm_refusal *r)
{
	leave_queue(p, r);
	TAILQ_INSERT_TAIL(&p->waiting[r->queue_class], r, order);
	p->cnt.void_grants++;
}

void ur_adm_pool_expire(struct ur_adm_pool *p, uint64_t now_ns)
{
	struct ur_adm_refusal *r;

	while ((r = TAILQ_FIRST(&p->by_age)) && now_ns - r->seen_ns >= p->limits.refusal_life_ns) {
		remove_refusal(p, r);
		p->cnt.expired++;
	}
	while ((r = TAILQ_FIRST(&p->granted)) && now_ns - r->granted_ns >= p->limits.grant_life_ns)
		void_grant(p, r);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ur_adm_pool_deadline(const struct ur_adm_pool *p)
{
	const struct ur_adm_refusal *silent = TAILQ_FIRST(&p->by_age);
	const struct ur_adm_refusal *granted = TAILQ_FIRST(&p->granted);
	uint64_t at = UINT64_MAX;

	if (silent)
		at = silent->seen_ns + p->limits.refusal_life_ns;
	if (granted)
		at = earlier(at, granted->granted_ns + p->limits.grant_life_ns);
	for (uint32_t left = p->rtt_classes; left; left &= left - 1)
		at = earlier(at, notify_at(p, (unsigned)__builtin_ctz(left)));
	return at;
}

/* ---- invariants ---- */

/* Every refusal in the queue has this class and state; returns how many there are. */
static uint32_t validate_queue(const struct ur_adm_pool *p, const struct ur_adm_refusals *line,
			       enum ur_adm_class queue_class, bool granted)
{
	const struct ur_adm_refusal *r;
	uint64_t granted_ns = 0;
	uint32_t n = 0;

	TAILQ_FOREACH(r, line, order)
	{
		UR_ASSERT(r->queue_class == queue_class && r->granted == granted);
		UR_ASSERT((uint16_t)(p->generation - r->generation) <= 2); /* ADM-AGE-01 */
		if (granted) {
			UR_ASSERT(r->granted_ns >= granted_ns);
			granted_ns = r->granted_ns;
		}
		n++;
	}
	return n;
}

static void validate_by_age(const struct ur_adm_pool *p)
{
	uint32_t refused = p->refused[UR_ADM_CLASS_A] + p->refused[UR_ADM_CLASS_B];
	const struct ur_adm_refusal *r;
	uint64_t seen_ns = 0;

	TAILQ_FOREACH(r, &p->by_age, by_age)
	{
		UR_ASSERT(r->seen_ns >= seen_ns && refused);
		seen_ns = r->seen_ns;
		refused--;
	}
	UR_ASSERT(!refused);
}

static void validate_peers(const struct ur_adm_pool *p)
{
	for (unsigned i = 0; i < UR_ADM_RTT_CLASSES; i++) {
		const struct ur_adm_peer *peer, *previous = NULL;
		uint64_t notified_ns = 0;

		UR_ASSERT(!TAILQ_EMPTY(&p->peers[i]) == (p->rtt_classes >> i & 1));
		TAILQ_FOREACH(peer, &p->peers[i], link)
		{
			UR_ASSERT(peer->rtt_class == i && peer->notified_ns >= notified_ns);
			notified_ns = peer->notified_ns;
			UR_ASSERT(p->limits.mode != UR_ADM_PAPER || !previous ||
				  (int16_t)(uint16_t)(peer->notified_generation -
						      previous->notified_generation) >= 0);
			previous = peer;
		}
	}
}

void ur_adm_pool_validate(const struct ur_adm_pool *p)
{
	enum ur_adm_class served = ur_adm_pool_served(p);
	enum ur_adm_class other = UR_ADM_CLASS_A + UR_ADM_CLASS_B - served;

	UR_ASSERT(!p->refused[UR_ADM_NONE] && TAILQ_EMPTY(&p->waiting[UR_ADM_NONE]));
	UR_ASSERT(validate_queue(p, &p->granted, served, true) == p->granted_cnt);
	UR_ASSERT(validate_queue(p, &p->waiting[served], served, false) + p->granted_cnt ==
		  p->refused[served]);
	UR_ASSERT(validate_queue(p, &p->waiting[other], other, false) == p->refused[other]);
	UR_ASSERT(p->status & 1 ? p->refused[served] : !p->refused[other]);
	validate_by_age(p);
	validate_peers(p);
}
