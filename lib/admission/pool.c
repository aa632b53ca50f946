/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "admission/pool.h"
#include "wire/assert.h"

void ur_adm_pool_init(struct ur_adm_pool *p, const struct ur_adm_limits *limits)
{
	UR_ASSERT(limits->mark_life_ns && limits->recall_ns);
	*p = (struct ur_adm_pool){.status = UR_ADM_NA, .limits = *limits};
	for (unsigned i = 0; i < 3; i++)
		TAILQ_INIT(&p->waiting[i]);
	TAILQ_INIT(&p->called);
	TAILQ_INIT(&p->heard);
	for (unsigned i = 0; i < UR_ADM_CLASSES; i++)
		TAILQ_INIT(&p->peers[i]);
}

/* ADM-STATUS-02 */
static void change(struct ur_adm_pool *p)
{
	p->status = (p->status + 1) & 3;
	p->generation++;
	p->cnt.changes++;
}

/* ADM-STATUS-03: nobody is left for whom the others had to stand back. */
static void settle(struct ur_adm_pool *p)
{
	if (p->status & 1 && !p->marked[ur_adm_pool_served(p)])
		change(p);
}

/* ---- marks ---- */

static void leave_line(struct ur_adm_pool *p, struct ur_adm_mark *m)
{
	if (m->called) {
		TAILQ_REMOVE(&p->called, m, order);
		p->called_cnt--;
		m->called = false;
	} else {
		TAILQ_REMOVE(&p->waiting[m->letter], m, order);
	}
}

static void mark(struct ur_adm_pool *p, struct ur_adm_mark *m, enum ur_adm_letter letter,
		 uint64_t now_ns)
{
	m->letter = (uint8_t)letter;
	m->generation = p->generation;
	m->heard_ns = now_ns;
	TAILQ_INSERT_TAIL(&p->waiting[letter], m, order);
	TAILQ_INSERT_TAIL(&p->heard, m, heard);
	p->marked[letter]++;
}

/* ADM-MARK-02 */
static void unmark(struct ur_adm_pool *p, struct ur_adm_mark *m)
{
	if (!m->letter)
		return;
	leave_line(p, m);
	TAILQ_REMOVE(&p->heard, m, heard);
	p->marked[m->letter]--;
	*m = (struct ur_adm_mark){0};
	settle(p);
}

/* ADM-MARK-03 */
void ur_adm_pool_heard(struct ur_adm_pool *p, struct ur_adm_mark *m, uint64_t now_ns)
{
	if (!m->letter)
		return;
	m->heard_ns = now_ns;
	TAILQ_REMOVE(&p->heard, m, heard);
	TAILQ_INSERT_TAIL(&p->heard, m, heard);
}

void ur_adm_pool_forget(struct ur_adm_pool *p, struct ur_adm_mark *m)
{
	unmark(p, m);
}

/* ---- requests ---- */

/* ADM-STATUS-01, ADM-MARK-01: by what the pool wrote down, whatever the packet claims. */
static bool is_admitted(const struct ur_adm_pool *p, const struct ur_adm_mark *m, uint32_t posted)
{
	if (m->called) /* ADM-CALL-02 */
		return posted;
	if (p->status & 1 && m->letter != ur_adm_pool_served(p))
		return false;
	return ur_adm_pool_room(p, posted);
}

static void refuse(struct ur_adm_pool *p, struct ur_adm_mark *m, uint64_t now_ns)
{
	enum ur_adm_letter letter = ur_adm_pool_served(p);

	if (p->status & 1)
		letter = UR_ADM_LETTER_A + UR_ADM_LETTER_B - letter;
	else
		change(p);
	if (!m->letter) {
		mark(p, m, letter, now_ns);
		return;
	}
	ur_adm_pool_heard(p, m, now_ns);
	if (m->called) { /* what it was called for has gone */
		leave_line(p, m);
		TAILQ_INSERT_HEAD(&p->waiting[m->letter], m, order);
	}
}

bool ur_adm_pool_request(struct ur_adm_pool *p, struct ur_adm_mark *m, uint8_t claim,
			 uint32_t posted, uint64_t now_ns)
{
	p->cnt.false_claims += claim && claim != m->letter;
	if (is_admitted(p, m, posted)) {
		p->cnt.accepted++;
		unmark(p, m);
		return true;
	}
	p->cnt.refused++;
	if (p->limits.mode != UR_ADM_PLAIN) /* ADM-MODE-01 */
		refuse(p, m, now_ns);
	return false;
}

/* ADM-CALL-01 */
struct ur_adm_mark *ur_adm_pool_next_call(struct ur_adm_pool *p, uint32_t posted, uint64_t now_ns)
{
	struct ur_adm_mark *m = TAILQ_FIRST(&p->waiting[ur_adm_pool_served(p)]);

	if (!m || p->limits.mode != UR_ADM_INTELLIGENT || !ur_adm_pool_room(p, posted))
		return NULL;
	leave_line(p, m);
	TAILQ_INSERT_TAIL(&p->called, m, order);
	m->called = true;
	m->called_ns = now_ns;
	p->called_cnt++;
	p->cnt.calls++;
	return m;
}

/* ---- peers ---- */

/* The least class whose interval is a round trip or more. */
static uint8_t class_of(uint64_t rtt_ns)
{
	unsigned bits = rtt_ns > 1 ? 64 - (unsigned)__builtin_clzll(rtt_ns - 1) : 0;

	if (bits <= UR_ADM_CLASS_MIN)
		return 0;
	bits -= UR_ADM_CLASS_MIN;
	return (uint8_t)(bits < UR_ADM_CLASSES ? bits : UR_ADM_CLASSES - 1);
}

static void enter_class(struct ur_adm_pool *p, struct ur_adm_peer *peer, uint64_t now_ns)
{
	peer->told = p->generation;
	peer->told_ns = now_ns;
	peer->class = class_of(peer->rtt_ns);
	TAILQ_INSERT_TAIL(&p->peers[peer->class], peer, link);
	p->peer_classes |= 1u << peer->class;
}

void ur_adm_peer_add(struct ur_adm_pool *p, struct ur_adm_peer *peer, uint64_t rtt_ns,
		     uint64_t now_ns)
{
	peer->rtt_ns = rtt_ns;
	enter_class(p, peer, now_ns);
}

void ur_adm_peer_remove(struct ur_adm_pool *p, struct ur_adm_peer *peer)
{
	TAILQ_REMOVE(&p->peers[peer->class], peer, link);
	if (TAILQ_EMPTY(&p->peers[peer->class]))
		p->peer_classes &= ~(1u << peer->class);
}

/* When the first of a class may be told; UINT64_MAX: it knows, and so do those behind it. */
static uint64_t tell_at(const struct ur_adm_pool *p, unsigned class)
{
	const struct ur_adm_peer *peer = TAILQ_FIRST(&p->peers[class]);

	if (p->limits.mode != UR_ADM_INTELLIGENT || peer->told == p->generation)
		return UINT64_MAX;
	return peer->told_ns + (UINT64_C(1) << (UR_ADM_CLASS_MIN + class));
}

/* ADM-NOTIFY-01, ADM-NOTIFY-02 */
struct ur_adm_peer *ur_adm_pool_next_notify(struct ur_adm_pool *p, uint64_t now_ns)
{
	for (uint32_t left = p->peer_classes; left; left &= left - 1) {
		unsigned class = (unsigned)__builtin_ctz(left);
		struct ur_adm_peer *peer = TAILQ_FIRST(&p->peers[class]);

		if (tell_at(p, class) > now_ns)
			continue;
		ur_adm_peer_remove(p, peer);
		enter_class(p, peer, now_ns);
		p->cnt.notifies++;
		return peer;
	}
	return NULL;
}

/* ---- time ---- */

/* ADM-CALL-03: those behind it go first now. */
static void void_call(struct ur_adm_pool *p, struct ur_adm_mark *m)
{
	leave_line(p, m);
	TAILQ_INSERT_TAIL(&p->waiting[m->letter], m, order);
	p->cnt.void_calls++;
}

void ur_adm_pool_expire(struct ur_adm_pool *p, uint64_t now_ns)
{
	struct ur_adm_mark *m;

	while ((m = TAILQ_FIRST(&p->heard)) && now_ns - m->heard_ns >= p->limits.mark_life_ns) {
		unmark(p, m);
		p->cnt.expired++;
	}
	while ((m = TAILQ_FIRST(&p->called)) && now_ns - m->called_ns >= p->limits.recall_ns)
		void_call(p, m);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ur_adm_pool_deadline(const struct ur_adm_pool *p)
{
	const struct ur_adm_mark *silent = TAILQ_FIRST(&p->heard);
	const struct ur_adm_mark *called = TAILQ_FIRST(&p->called);
	uint64_t at = UINT64_MAX;

	if (silent)
		at = silent->heard_ns + p->limits.mark_life_ns;
	if (called)
		at = earlier(at, called->called_ns + p->limits.recall_ns);
	for (uint32_t left = p->peer_classes; left; left &= left - 1)
		at = earlier(at, tell_at(p, (unsigned)__builtin_ctz(left)));
	return at;
}

/* ---- what must hold ---- */

/* Everyone in the line holds `letter`; returns how many. */
static uint32_t validate_line(const struct ur_adm_pool *p, const struct ur_adm_marks *line,
			      enum ur_adm_letter letter, bool called)
{
	const struct ur_adm_mark *m;
	uint64_t called_ns = 0;
	uint32_t n = 0;

	TAILQ_FOREACH(m, line, order)
	{
		UR_ASSERT(m->letter == letter && m->called == called);
		UR_ASSERT((uint16_t)(p->generation - m->generation) <= 2); /* ADM-AGE-01 */
		if (called) {
			UR_ASSERT(m->called_ns >= called_ns);
			called_ns = m->called_ns;
		}
		n++;
	}
	return n;
}

static void validate_heard(const struct ur_adm_pool *p)
{
	uint32_t marked = p->marked[UR_ADM_LETTER_A] + p->marked[UR_ADM_LETTER_B];
	const struct ur_adm_mark *m;
	uint64_t heard_ns = 0;

	TAILQ_FOREACH(m, &p->heard, heard)
	{
		UR_ASSERT(m->heard_ns >= heard_ns && marked);
		heard_ns = m->heard_ns;
		marked--;
	}
	UR_ASSERT(!marked);
}

static void validate_peers(const struct ur_adm_pool *p)
{
	for (unsigned i = 0; i < UR_ADM_CLASSES; i++) {
		const struct ur_adm_peer *peer;
		uint64_t told_ns = 0;

		UR_ASSERT(!TAILQ_EMPTY(&p->peers[i]) == (p->peer_classes >> i & 1));
		TAILQ_FOREACH(peer, &p->peers[i], link)
		{
			UR_ASSERT(peer->class == i && peer->told_ns >= told_ns);
			told_ns = peer->told_ns;
		}
	}
}

void ur_adm_pool_validate(const struct ur_adm_pool *p)
{
	enum ur_adm_letter served = ur_adm_pool_served(p);
	enum ur_adm_letter other = UR_ADM_LETTER_A + UR_ADM_LETTER_B - served;

	UR_ASSERT(!p->marked[UR_ADM_NONE] && TAILQ_EMPTY(&p->waiting[UR_ADM_NONE]));
	UR_ASSERT(validate_line(p, &p->called, served, true) == p->called_cnt);
	UR_ASSERT(validate_line(p, &p->waiting[served], served, false) + p->called_cnt ==
		  p->marked[served]);
	UR_ASSERT(validate_line(p, &p->waiting[other], other, false) == p->marked[other]);
	UR_ASSERT(p->status & 1 ? p->marked[served] : !p->marked[other]);
	validate_heard(p);
	validate_peers(p);
}
