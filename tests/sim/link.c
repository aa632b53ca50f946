/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include "wire/bytes.h"

#define ASKS	 (UR_OP_READ_REQ | UR_OP_ATOMIC)
#define ANSWERED (ASKS | UR_OP_READ_RESP | UR_OP_ATOMICACKETH)

/*
 * Lost too often already: this time it has to come through. A retry of a READ or atomic is in vain
 * when the answer is lost as well as when the request is: the two count together, by their PSN.
 */
static bool spared(struct sim_link *link, const struct ur_packet *p, bool lose)
{
	bool answered = (p->op & ANSWERED) && !(p->op & (UR_OP_XTH | UR_OP_XRTH));
	struct sim_fair *fair = answered ? link->shared : &link->fair;
	uint64_t key = answered ? UINT64_MAX << 24 | p->bth.psn.v
				: (uint64_t)p->bth.dqpn.v << 32 | p->bth.psn.v << 8 | p->bth.opcode;
	unsigned slot = sim_mix(key) % SIM_FAIR_SLOTS;
	bool ends = !answered || !(p->op & ASKS);

	if (!lose) {
		if (fair->slot[slot].key == key && ends)
			fair->slot[slot].lost = 0;
		return false;
	}
	if (fair->slot[slot].key != key) {
		fair->slot[slot].key = key;
		fair->slot[slot].lost = 0;
	}
	if (fair->slot[slot].lost == SIM_FAIR_MAX) {
		if (ends)
			fair->slot[slot].lost = 0;
		return true;
	}
	fair->slot[slot].lost++;
	return false;
}

static uint64_t arrival(struct sim_link *link, struct sim_rng *rng)
{
	const struct sim_link_attr *a = &link->attr;
	uint64_t at = link->busy_until_ns + a->delay_ns;

	if (a->jitter_ns)
		at += sim_rand(rng) % a->jitter_ns;
	if (at < link->last_ns)
		at = link->last_ns;
	link->last_ns = at;
	if (sim_chance(rng, a->reorder))
		at += 1 + sim_rand(rng) % (a->reorder_ns + 1);
	return at;
}

struct sim_fate sim_link_send(struct sim_link *link, struct sim_rng *rng, const struct ur_packet *p,
			      unsigned len, uint64_t now_ns)
{
	const struct sim_link_attr *a = &link->attr;
	struct sim_fate fate = {.copies = 1};
	bool lose = sim_chance(rng, a->loss);
	bool corrupt = sim_chance(rng, a->corrupt);

	if (link->busy_until_ns < now_ns)
		link->busy_until_ns = now_ns;
	if (a->bits_per_s)
		link->busy_until_ns += (uint64_t)len * 8 * 1000000000u / a->bits_per_s;
	if (spared(link, p, lose || corrupt))
		lose = corrupt = false;
	if (lose)
		return (struct sim_fate){.copies = 0};
	fate.corrupt[0] = corrupt;
	fate.ecn = sim_chance(rng, a->ecn);
	fate.at_ns[0] = arrival(link, rng);
	while (fate.copies < SIM_COPIES_MAX && sim_chance(rng, a->dup))
		fate.at_ns[fate.copies++] = arrival(link, rng);
	return fate;
}

void sim_corrupt(struct sim_rng *rng, uint8_t *frame, unsigned len)
{
	unsigned flips = sim_between(rng, 1, 3);
	uint32_t bit = sim_below(rng, len * 8), step = 1 + sim_below(rng, len * 2);

	/* Three different bits: the steps add up to less than the frame. */
	for (unsigned i = 0; i < flips; i++, bit = (bit + step) % (len * 8))
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

void sim_mark_ecn(uint8_t *frame, const struct ur_packet *p)
{
	uint8_t *l3 = frame + p->l3_off;
	uint32_t sum = 0;

	if (p->ip.v6) {
		l3[1] |= 0x30;
		return;
	}
	l3[1] |= 3;
	l3[10] = l3[11] = 0;
	for (unsigned i = 0; i < UR_IPV4_BYTES; i += 2)
		sum += ur_load16(l3 + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ur_store16(l3 + 10, (uint16_t)~sum);
}
