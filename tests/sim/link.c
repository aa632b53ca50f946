/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include "wire/bytes.h"

static bool lose(struct sim_link *link, struct sim_rng *rng)
{
	const struct sim_link_attr *a = &link->attr;

	if (link->in_burst ? sim_chance(rng, a->burst_end) : sim_chance(rng, a->burst))
		link->in_burst = !link->in_burst;
	return sim_chance(rng, link->in_burst ? a->burst_loss : a->loss);
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

struct sim_fate sim_link_send(struct sim_link *link, struct sim_rng *rng, unsigned len,
			      uint64_t now_ns)
{
	const struct sim_link_attr *a = &link->attr;
	struct sim_fate fate = {.copies = 1};
	bool lost = lose(link, rng);
	bool corrupt = sim_chance(rng, a->corrupt);

	if (link->busy_until_ns < now_ns)
		link->busy_until_ns = now_ns;
	if (a->bits_per_s)
		link->busy_until_ns += (uint64_t)len * 8 * 1000000000u / a->bits_per_s;
	if (lost)
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
