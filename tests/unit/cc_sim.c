/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cc_sim.h"
#include "transport/net_delay.h"
#include "wire/delay.h"

#define WINDOW	    (64 * 256)
#define PATIENCE_NS UINT64_C(1000000)

/* A packet on its way: when its answer will be there. */
struct flight {
	uint64_t sent_ns, answer_ns;
	uint64_t there_ns; /* in the queue of the destination, and on its link */
	uint32_t jitter_ns;
	bool marked;
};

/* What one sender has under way to one destination: [una, nxt), by number modulo the window. */
struct pipe {
	struct ur_cc_dest *dest;
	struct flight *flights;
	uint64_t una, nxt, answered_ns;
	uint64_t seen, cnp_ns; /* packets before `seen` have been looked at for marks */
	/* stamped: */
	struct ur_net_delay net;
	struct flight ask; /* net.open: the packet that asked */
	bool asks;	   /* the next packet does */
};

struct sender {
	struct ur_cc pacing;
	void *memory;
	struct pipe pipes[PSIM_DESTS];
	uint64_t free_ns; /* of its link */
	unsigned turn;
};

struct psim {
	struct psim_attr attr;
	struct sender senders[PSIM_SENDERS];
	uint64_t free_ns[PSIM_DESTS]; /* of the destination's link */
	uint64_t now_ns, random;
	/* Of the run. */
	struct psim_result r;
	uint64_t packets[PSIM_DESTS], arrived[PSIM_DESTS], shares[PSIM_SENDERS];
	uint64_t throttled[PSIM_DESTS], from_ns;
};

static uint64_t at(const struct psim_step *steps, uint64_t now_ns)
{
	unsigned i = 0;

	while (i + 1 < PSIM_STEPS && steps[i + 1].value && steps[i + 1].from_ns <= now_ns)
		i++;
	return steps[i].value;
}

/* The queue on the way back, as high as it has grown. */
static uint64_t back_ns(const struct psim *s)
{
	const struct psim_step *step = &s->attr.back_ns[1];
	uint64_t age_ns;

	if (!step->value || s->now_ns < step->from_ns)
		return s->attr.back_ns[0].value;
	age_ns = s->now_ns - step->from_ns;
	return age_ns < s->attr.grow_ns ? step->value * age_ns / s->attr.grow_ns : step->value;
}

static uint64_t transmission_ns(uint64_t bps)
{
	return PSIM_PACKET * UINT64_C(8000000000) / bps;
}

static uint32_t random_below(struct psim *s, uint32_t n)
{
	s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return n ? (uint32_t)((s->random >> 33) % n) : 0;
}

struct psim *psim_new(const struct psim_attr *attr)
{
	struct psim *s = calloc(1, sizeof(*s));

	s->attr = *attr;
	s->attr.window = s->attr.window ? s->attr.window : WINDOW;
	s->attr.coalesce = s->attr.coalesce ? s->attr.coalesce : 1;
	for (unsigned i = 0; i < attr->senders; i++) {
		struct sender *x = &s->senders[i];

		x->memory = calloc(1, ur_cc_size(PSIM_DESTS));
		ur_cc_init(&x->pacing, x->memory, PSIM_DESTS, &attr->pacing);
		x->free_ns = i * attr->stagger_ns;
		for (unsigned j = 0; j < attr->dests; j++) {
			uint8_t key[UR_CC_KEY] = {(uint8_t)j};

			x->pipes[j].dest = ur_cc_get(&x->pacing, key, 4096, 0);
			x->pipes[j].flights = calloc(s->attr.window, sizeof(struct flight));
		}
	}
	return s;
}

void psim_free(struct psim *s)
{
	for (unsigned i = 0; i < s->attr.senders; i++) {
		for (unsigned j = 0; j < s->attr.dests; j++)
			free(s->senders[i].pipes[j].flights);
		free(s->senders[i].memory);
	}
	free(s);
}

static struct flight *flight(const struct psim *s, struct pipe *p, uint64_t n)
{
	return &p->flights[n % s->attr.window];
}

static struct ur_net_sent sent_to(const struct sender *x, const struct pipe *p)
{
	return (struct ur_net_sent){p->nxt, p->dest->bytes, p->dest->throttled,
				    ur_cc_is_wary(&x->pacing, p->dest)};
}

/* Packet by packet through the queue of the destination: packets are sent in the order of time. */
static void send(struct psim *s, unsigned i, unsigned j)
{
	struct sender *x = &s->senders[i];
	struct pipe *p = &x->pipes[j];
	struct flight *f = flight(s, p, p->nxt++);
	uint64_t base_ns = at(s->attr.base_ns, s->now_ns);
	uint64_t arrival, start;

	x->free_ns = s->now_ns + transmission_ns(s->attr.link_bps);
	arrival = x->free_ns + base_ns / 2;
	start = arrival > s->free_ns[j] ? arrival : s->free_ns[j];
	s->free_ns[j] = start + transmission_ns(at(s->attr.drain_bps[j], start));

	f->sent_ns = s->now_ns;
	f->there_ns = s->free_ns[j] - arrival;
	f->answer_ns = s->free_ns[j] + base_ns / 2 + back_ns(s);
	/* A route that becomes shorter does not let packets overtake. */
	if (f->answer_ns < p->answered_ns)
		f->answer_ns = p->answered_ns;
	p->answered_ns = f->answer_ns;
	f->jitter_ns = random_below(s, s->attr.jitter_ns);
	f->marked = s->attr.mark_bytes &&
		    (start - arrival) * at(s->attr.drain_bps[j], start) / UINT64_C(8000000000) >
			    s->attr.mark_bytes;

	s->packets[j]++;
	s->throttled[j] += p->dest->throttled;
	s->r.queue_us[j] += (double)(start - arrival) / 1e3;
	if ((double)(start - arrival) / 1e3 > s->r.queue_max_us[j])
		s->r.queue_max_us[j] = (double)(start - arrival) / 1e3;
	ur_cc_on_send(&x->pacing, p->dest, PSIM_PACKET, s->now_ns);
	if (x->pacing.ops->window)
		p->dest->in_flight += PSIM_PACKET;
	if (p->asks) {
		struct ur_net_sent sent = sent_to(x, p);

		ur_net_delay_on_ask(&p->net, ur_stamp(s->now_ns), &sent, s->now_ns);
		p->ask = *f;
		p->asks = false;
	}
}

/* When the oldest answer that returns `coalesce` packets is there; UINT64_MAX: none is under way.
 */
static uint64_t answer_ns(const struct psim *s, struct pipe *p)
{
	if (p->nxt - p->una < s->attr.coalesce)
		return UINT64_MAX;
	return flight(s, p, p->una + s->attr.coalesce - 1)->answer_ns;
}

/* CNPs for what has arrived; they do not wait for an answer. */
static void notify(struct psim *s, struct sender *x, struct pipe *p)
{
	while (p->seen < p->nxt && flight(s, p, p->seen)->answer_ns <= s->now_ns)
		if (flight(s, p, p->seen++)->marked && ur_cnp_due(&p->cnp_ns, s->now_ns))
			ur_cc_on_cnp(&x->pacing, p->dest, s->now_ns);
}

/* ---- delays that switches stamp ---- */

/* The packet that asked is answered by itself. */
static void take_ask(struct psim *s, struct sender *x, struct pipe *p)
{
	struct ur_net_echo echo = {
		.stamp = p->net.stamp,
		.there = {1, ur_delay_encode(p->ask.there_ns >> UR_STAMP_SHIFT)},
	};
	uint32_t rtt_ns, delay_ns;

	if (!p->net.open || s->now_ns < p->ask.answer_ns + p->ask.jitter_ns)
		return;
	if (ur_net_delay_on_answer(&p->net, &echo, s->now_ns, &rtt_ns, &delay_ns) == UR_NET_SAMPLE)
		ur_cc_on_delay(&x->pacing, p->dest, rtt_ns, delay_ns, s->now_ns);
}

/* As transport/dest.c: a round trip of another packet. */
static void tell(struct psim *s, struct sender *x, struct pipe *p, const struct flight *f)
{
	uint32_t rtt_ns = (uint32_t)(f->answer_ns - f->sent_ns) + f->jitter_ns, delay_ns = rtt_ns;
	struct ur_net_sent sent;

	if (s->attr.stamped)
		take_ask(s, x, p);
	if (s->attr.stamped)
		delay_ns = ur_net_delay_of_rtt(&p->net, rtt_ns, p->dest->throttled, s->now_ns);
	if (delay_ns)
		ur_cc_on_estimate(&x->pacing, p->dest, rtt_ns, delay_ns, s->now_ns);
	if (!s->attr.stamped)
		return;
	sent = sent_to(x, p);
	p->asks |= ur_net_delay_on_rtt(&p->net, rtt_ns, rtt_ns, PATIENCE_NS + 4 * (uint64_t)rtt_ns,
				       &sent, s->now_ns);
}

static void answer(struct psim *s, unsigned i, unsigned j)
{
	struct sender *x = &s->senders[i];
	struct pipe *p = &x->pipes[j];
	struct flight *f = NULL;

	notify(s, x, p);
	p->una += s->attr.coalesce;
	f = flight(s, p, p->una - 1);
	s->arrived[j] += s->attr.coalesce;
	s->shares[i] += s->attr.coalesce;
	if (x->pacing.ops->window) {
		p->dest->in_flight -= s->attr.coalesce * PSIM_PACKET;
		p->dest->acked += s->attr.coalesce * PSIM_PACKET;
	}
	tell(s, x, p, f);
}

/* The next destination in turn that may be served now. Else *wake_ns is when one may. */
static int next_dest(const struct psim *s, struct sender *x, uint64_t now_ns, uint64_t *wake_ns)
{
	*wake_ns = UINT64_MAX;
	for (unsigned k = 0; k < s->attr.dests; k++) {
		unsigned j = (x->turn + k) % s->attr.dests;
		struct pipe *p = &x->pipes[j];
		uint64_t open_ns = ur_cc_open_ns(p->dest);

		if (p->nxt - p->una >= s->attr.window || !ur_cc_has_room(p->dest))
			continue;
		if (open_ns <= now_ns)
			return (int)j;
		*wake_ns = open_ns < *wake_ns ? open_ns : *wake_ns;
	}
	return -1;
}

static void step(struct psim *s, uint64_t until_ns)
{
	uint64_t best = until_ns, wake;
	int who = -1, what = -1;

	for (unsigned i = 0; i < s->attr.senders; i++) {
		struct sender *x = &s->senders[i];
		uint64_t when = x->free_ns > s->now_ns ? x->free_ns : s->now_ns;
		int j;

		for (unsigned k = 0; k < s->attr.dests; k++) {
			uint64_t back = answer_ns(s, &x->pipes[k]);

			if (s->attr.mark_bytes)
				notify(s, x, &x->pipes[k]);
			if (back < best) {
				best = back;
				who = (int)i;
				what = PSIM_DESTS + (int)k;
			}
		}
		j = next_dest(s, x, when, &wake);
		when = j < 0 ? wake : when;
		if (when < best) {
			best = when;
			who = (int)i;
			what = 0;
		}
	}
	s->now_ns = best;
	if (who < 0)
		return;
	if (what >= PSIM_DESTS) {
		answer(s, (unsigned)who, (unsigned)what - PSIM_DESTS);
	} else {
		struct sender *x = &s->senders[who];
		int j = next_dest(s, x, s->now_ns, &wake);

		x->turn = (unsigned)j + 1;
		send(s, (unsigned)who, (unsigned)j);
	}
}

struct psim_result psim_run(struct psim *s, uint64_t until_ns)
{
	double ns = (double)(until_ns - s->now_ns);

	memset(&s->r, 0, sizeof(s->r));
	memset(s->packets, 0, sizeof(s->packets));
	memset(s->arrived, 0, sizeof(s->arrived));
	memset(s->shares, 0, sizeof(s->shares));
	memset(s->throttled, 0, sizeof(s->throttled));
	while (s->now_ns < until_ns)
		step(s, until_ns);
	for (unsigned j = 0; j < s->attr.dests; j++) {
		double n = s->packets[j] ? (double)s->packets[j] : 1;

		s->r.gbps[j] = (double)s->arrived[j] * PSIM_PACKET * 8 / ns;
		s->r.queue_us[j] /= n;
		s->r.throttled[j] = (double)s->throttled[j] / n;
		for (unsigned i = 0; i < s->attr.senders; i++)
			s->r.throttles[j] += s->senders[i].pipes[j].dest->throttles;
	}
	for (unsigned i = 0; i < s->attr.senders; i++) {
		s->r.share_gbps[i] = (double)s->shares[i] * PSIM_PACKET * 8 / ns;
		s->r.reseeds += s->senders[i].pacing.cnt.reseeds;
		s->r.cnps += s->senders[i].pacing.cnt.cnps;
	}
	return s->r;
}
