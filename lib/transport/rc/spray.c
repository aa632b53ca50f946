/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "transport/rc/spray.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define RATE_ONE       1024 /* loss rates are in units of 1/1024 */
#define RATE_TOLERATED 32   /* above twice the least loss rate: what chance alone may do */
#define SAMPLES_ENOUGH 32   /* packets that make a loss rate worth comparing with */
#define RTTS_ENOUGH    8    /* round trips the least of which is worth comparing */

_Static_assert(sizeof(struct ur_spray_path) <= 16, "a queue pair has up to 16 of them");

/* Between two looks at the weights: some hundred packets, however few paths there are. */
static uint8_t rounds_of(const struct ur_spray *s)
{
	return (uint8_t)(4 + 24 / s->n);
}

/* A path of weight 0 has its one packet when the weights were just found. */
static void refill(struct ur_spray *s, bool fresh)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct ur_spray_path *p = &s->path[i];

		p->credit = p->weight ? p->weight : fresh; /* SPRAY-PROBE-01 */
		if (p->credit)
			s->ready |= (uint16_t)(1u << i);
	}
}

void ur_spray_init(struct ur_spray *s, uint8_t n)
{
	UR_ASSERT(n >= 1 && n <= UR_SPRAY_MAX);
	memset(s, 0, ur_spray_size(n));
	s->n = n;
	s->last = (uint8_t)(n - 1);
	s->rounds = rounds_of(s);
	for (unsigned i = 0; i < n; i++)
		s->path[i].weight = UR_SPRAY_WEIGHT;
	refill(s, false);
}

/* What the paths are compared with: the best of each kind. */
struct best {
	uint32_t loss_rate, rtt;
};

static uint32_t loss_rate(const struct ur_spray_path *p)
{
	if (p->lost >= p->sent)
		return p->lost ? RATE_ONE : 0;
	return (uint32_t)p->lost * RATE_ONE / p->sent;
}

static struct best best_of(const struct ur_spray *s)
{
	struct best b = {.loss_rate = RATE_ONE, .rtt = UINT32_MAX};

	for (unsigned i = 0; i < s->n; i++) {
		const struct ur_spray_path *p = &s->path[i];
		uint32_t rate = loss_rate(p);

		if (p->sent >= SAMPLES_ENOUGH && rate < b.loss_rate)
			b.loss_rate = rate;
		if (p->rtt && p->rtt < b.rtt)
			b.rtt = p->rtt;
	}
	return b;
}

static uint32_t deserved_by_rtt(uint32_t rtt, uint32_t best)
{
	uint64_t tolerated = (uint64_t)best + best / 2;
	uint32_t part, weight;

	if (rtt <= tolerated)
		return UR_SPRAY_WEIGHT;
	part = (uint32_t)(256 * tolerated / rtt);
	weight = UR_SPRAY_WEIGHT * part * part >> 16;
	/* Delay alone does not stop a path. */
	return weight ? weight : 1;
}

static uint8_t deserved(const struct ur_spray_path *p, const struct best *b)
{
	uint32_t weight = UR_SPRAY_WEIGHT, rate = loss_rate(p);
	uint32_t tolerated = 2 * b->loss_rate + RATE_TOLERATED;
	uint32_t by_rtt = deserved_by_rtt(p->rtt, b->rtt);

	if (rate > tolerated)
		weight = UR_SPRAY_WEIGHT * tolerated / rate;
	return (uint8_t)(by_rtt < weight ? by_rtt : weight);
}

/* Down at once, up by doubling: a path that heals is trusted again step by step. */
static uint8_t approach(uint8_t weight, uint8_t target)
{
	uint8_t more = weight ? (uint8_t)(2 * weight) : 1;

	return target < more ? target : more;
}

/*
 * A round trip that is not confirmed draws near to the best, so that a path too little used to be
 * echoed is tried again.
 */
static void take_rtt(struct ur_spray_path *p, uint32_t best)
{
	if (p->samples < RTTS_ENOUGH) {
		if (p->rtt > best)
			p->rtt -= (p->rtt - best) >> 3;
		return;
	}
	if (p->least > p->rtt)
		p->rtt = p->rtt ? p->rtt + (p->least - p->rtt + 1) / 2 : p->least;
	p->samples = 0;
}

/* Only proportions count; rounds stay long enough to learn something from. */
static void scale_up(struct ur_spray *s)
{
	unsigned most = 0, shift = 0;

	for (unsigned i = 0; i < s->n; i++)
		most = s->path[i].weight > most ? s->path[i].weight : most;
	if (most)
		while (most << (shift + 1) <= UR_SPRAY_WEIGHT)
			shift++;
	for (unsigned i = 0; i < s->n; i++)
		s->path[i].weight = most ? (uint8_t)(s->path[i].weight << shift) : UR_SPRAY_WEIGHT;
}

/* SPRAY-WEIGHT-01 */
static void find_weights(struct ur_spray *s)
{
	struct best b = best_of(s);

	for (unsigned i = 0; i < s->n; i++)
		take_rtt(&s->path[i], b.rtt);
	b = best_of(s);
	for (unsigned i = 0; i < s->n; i++) {
		struct ur_spray_path *p = &s->path[i];

		p->weight = approach(p->weight, deserved(p, &b));
		/* What is old counts half. */
		p->sent >>= 1;
		p->lost >>= 1;
	}
	scale_up(s);
	s->rounds = rounds_of(s);
}

/*
 * SPRAY-TURN-01. Each round begins with another path: bursts, messages and requests for ACKs repeat
 * themselves too, and the packet at the end of a burst waits longer than the one at its beginning.
 */
static void next_round(struct ur_spray *s)
{
	bool fresh = --s->rounds == 0;

	s->last = (uint8_t)(s->last + 1u < s->n ? s->last + 1u : 0);
	if (fresh)
		find_weights(s);
	refill(s, fresh);
}

uint8_t ur_spray_pick(struct ur_spray *s)
{
	struct ur_spray_path *p;
	uint32_t after;
	unsigned i;

	if (__builtin_expect(!s->ready, 0))
		next_round(s);
	after = s->ready & ~((2u << s->last) - 1);
	i = (unsigned)__builtin_ctz(after ? after : s->ready);
	p = &s->path[i];
	p->sent++;
	if (--p->credit == 0)
		s->ready &= (uint16_t) ~(1u << i);
	s->last = (uint8_t)i;
	return s->last;
}

void ur_spray_acked(struct ur_spray *s, uint8_t path, uint32_t rtt)
{
	struct ur_spray_path *p;

	if (!s || path >= s->n)
		return;
	p = &s->path[path];
	if (!p->samples || rtt < p->least)
		p->least = rtt;
	if (rtt < p->rtt)
		p->rtt = rtt;
	p->samples += p->samples < UINT8_MAX;
}

void ur_spray_lost(struct ur_spray *s, uint8_t path)
{
	if (s && path < s->n && s->path[path].lost < UINT16_MAX)
		s->path[path].lost++;
}

static bool is_alone(const struct ur_spray *s, uint8_t path)
{
	for (unsigned i = 0; i < s->n; i++)
		if (i != path && s->path[i].weight)
			return false;
	return true;
}

void ur_spray_avoid(struct ur_spray *s, uint8_t path)
{
	if (!is_alone(s, path)) {
		s->path[path].weight = s->path[path].credit = 0;
		s->ready &= (uint16_t) ~(1u << path);
		return;
	}
	for (unsigned i = 0; i < s->n; i++)
		s->path[i].weight = UR_SPRAY_WEIGHT;
	refill(s, false);
}

/* ---- of a queue pair ---- */

/* What arrived, as far as is known, of the PSNs between two: those that were not sent again. */
struct arrived {
	bool by_path, by_others;
};

static struct arrived arrived_between(const struct ur_spray_qp *s, uint8_t path, struct ur_psn a,
				      struct ur_psn b)
{
	int32_t n = ur_psn_diff(b, a);
	uint32_t from = n < 0 ? b.v : a.v;
	struct arrived found = {0};

	n = n < 0 ? -n : n;
	if (n >= UR_SPRAY_PSNS)
		return (struct arrived){true, true};
	for (int32_t i = 1; i < n && !found.by_path; i++) {
		uint8_t of = s->of[(from + (uint32_t)i) & (UR_SPRAY_PSNS - 1)];

		found.by_path |= of == path;
		found.by_others |= of < s->paths.n && of != path;
	}
	return found;
}

/*
 * SPRAY-DEAD-01. What others lost at the same time was not lost by this path: a burst at a hop that all share is no sign of a
 * dead one. But if only this one is in use, others cannot tell.
 */
void ur_spray_psn_lost(struct ur_spray_qp *s, struct ur_psn psn)
{
	uint8_t path = s->of[psn.v & (UR_SPRAY_PSNS - 1)] & (uint8_t)~UR_SPRAY_RESENT;
	struct arrived since = {true, true};

	if (path >= s->paths.n)
		return;
	ur_spray_lost(&s->paths, path);
	if (s->in_row[path])
		since = arrived_between(s, path, s->lost[path], psn);
	s->lost[path] = psn;
	if (since.by_path)
		s->in_row[path] = 1;
	else if (since.by_others || is_alone(&s->paths, path))
		s->in_row[path] += s->in_row[path] < UINT8_MAX;
	if (s->in_row[path] >= UR_SPRAY_IN_ROW)
		ur_spray_avoid(&s->paths, path);
}

/* ---- pool ---- */

static size_t slot_bytes(void)
{
	size_t n = offsetof(struct ur_spray_qp, paths) + ur_spray_size(UR_SPRAY_MAX);

	return ur_align64(n);
}

size_t ur_spray_pool_size(uint32_t cnt)
{
	return cnt * slot_bytes();
}

void ur_spray_pool_init(struct ur_spray_pool *p, void *memory, uint32_t cnt)
{
	uint8_t *at = memory;

	*p = (struct ur_spray_pool){.free_cnt = cnt, .cnt = cnt};
	SLIST_INIT(&p->free);
	for (uint32_t i = 0; i < cnt; i++, at += slot_bytes())
		SLIST_INSERT_HEAD(&p->free, (struct ur_spray_qp *)(void *)at, link);
}

struct ur_spray_qp *ur_spray_take(struct ur_spray_pool *p, uint8_t n, struct ur_stamp stamp)
{
	struct ur_spray_qp *s = SLIST_FIRST(&p->free);

	if (!s)
		return NULL;
	SLIST_REMOVE_HEAD(&p->free, link);
	p->free_cnt--;
	memset(s->of, 0, sizeof(s->of));
	memset(s->in_row, 0, sizeof(s->in_row));
	for (unsigned i = 0; i < UR_SPRAY_MAX; i++)
		s->echoed[i] = stamp;
	ur_spray_init(&s->paths, n);
	return s;
}

void ur_spray_give(struct ur_spray_pool *p, struct ur_spray_qp *s)
{
	SLIST_INSERT_HEAD(&p->free, s, link);
	p->free_cnt++;
}
