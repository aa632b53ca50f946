/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/routes.h"

#include "switch/hash.h"
#include "wire/bytes.h"

/* At least half of the slots stay free, so that searches are short and end. */
static uint32_t slots_of(uint32_t routes)
{
	uint32_t n = 2;

	while (n < 2 * routes)
		n *= 2;
	return n;
}

size_t ur_switch_routes_size(uint32_t routes)
{
	return slots_of(routes) * sizeof(struct ur_switch_route);
}

void ur_switch_routes_init(struct ur_switch_routes *r, void *mem, const struct ur_switch_attr *a)
{
	r->entry = mem;
	r->mask = slots_of(a->limits.routes) - 1;
	r->cnt = 0;
	r->max = a->limits.routes;
	r->seed = a->seed;
	memset(mem, 0, ur_switch_routes_size(a->limits.routes));
	memset(r->port_of, UR_SWITCH_NO_PORT, sizeof(r->port_of));
}

static uint32_t slot_of(const struct ur_switch_routes *r, const struct ur_gid *addr)
{
	uint64_t h = ur_switch_hash(ur_load64(addr->b), r->seed);

	return (uint32_t)ur_switch_hash(ur_load64(addr->b + 8), h) & r->mask;
}

/* The slot of an address; false: it has none, and *at is the first that it could have. */
static bool find_slot(const struct ur_switch_routes *r, const struct ur_gid *addr, uint32_t *at)
{
	uint32_t i = slot_of(r, addr), first = UINT32_MAX;

	for (uint32_t n = 0; n <= r->mask; n++, i = (i + 1) & r->mask) {
		const struct ur_switch_route *e = &r->entry[i];

		if (e->lid && ur_gid_eq(&e->addr, addr)) {
			*at = i;
			return true;
		}
		if (!e->lid && first == UINT32_MAX)
			first = i;
		if (!e->used)
			break;
	}
	*at = first;
	return false;
}

/* Frees a slot, and those before it that only led to it: a search is as short as without them. */
static void free_slot(struct ur_switch_routes *r, uint32_t at)
{
	r->entry[at].lid = 0;
	r->cnt--;
	while (r->entry[at].used && !r->entry[at].lid && !r->entry[(at + 1) & r->mask].used) {
		r->entry[at].used = false;
		at = (at - 1) & r->mask;
	}
}

bool ur_switch_routes_set(struct ur_switch_routes *r, const struct ur_gid *addr, uint16_t lid,
			  uint8_t lmc)
{
	uint32_t at;
	bool found = find_slot(r, addr, &at);

	if (!lid) {
		if (found)
			free_slot(r, at);
		return true;
	}
	if (lmc > UR_SWITCH_LMC_MAX || lid & ((1u << lmc) - 1) || lid >= UR_SWITCH_LIDS)
		return false;
	if (!found) {
		if (r->cnt == r->max)
			return false;
		r->cnt++;
	}
	r->entry[at] = (struct ur_switch_route){*addr, lid, lmc, true};
	return true;
}

const struct ur_switch_route *ur_switch_routes_find(const struct ur_switch_routes *r,
						    const struct ur_gid *addr)
{
	uint32_t at;

	return r->cnt && find_slot(r, addr, &at) ? &r->entry[at] : NULL;
}

/* SWITCH-ECMP-01 */
uint8_t ur_switch_routes_port(const struct ur_switch_routes *r, const struct ur_switch_route *route,
			      uint16_t sport, uint64_t up)
{
	uint32_t mask = (1u << route->lmc) - 1;
	uint32_t first = (uint32_t)ur_switch_hash(sport, r->seed);

	for (uint32_t i = 0; i <= mask; i++) {
		uint8_t port = r->port_of[route->lid + ((first + i) & mask)];

		if (port < UR_SWITCH_PORTS_MAX && up >> port & 1)
			return port;
	}
	return UR_SWITCH_NO_PORT;
}
