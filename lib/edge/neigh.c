/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/neigh.h"

#include <errno.h>

#include "edge/neigh_frame.h"

static const char *const verdict_names[] = {
#define X(name, text) #name,
	UR_NEIGH_VERDICTS(X)
#undef X
};

static const char *const state_names[] = {
#define X(name, text) text,
	UR_NEIGH_STATES(X)
#undef X
};

const char *ur_neigh_verdict_name(unsigned verdict)
{
	return verdict < UR_NEIGH_VERDICT_CNT ? verdict_names[verdict] : "?";
}

const char *ur_neigh_state_name(unsigned state)
{
	return state < sizeof(state_names) / sizeof(state_names[0]) ? state_names[state] : "?";
}

void ur_neigh_init(struct ur_neigh *n, const struct ur_neigh_attr *attr)
{
	memset(n, 0, sizeof(*n));
	n->attr = *attr;
	if (n->attr.addr_cnt > UR_NEIGH_ADDRS_MAX)
		n->attr.addr_cnt = UR_NEIGH_ADDRS_MAX;
	n->entry_max = UR_NEIGH_ENTRIES_MAX;
	n->next_due_ns = UINT64_MAX;
	n->mld_due_ns = n->igmp_due_ns = UINT64_MAX;
}

const struct ur_neigh_addr *ur_neigh_own(const struct ur_neigh *n, const struct ur_gid *g)
{
	for (unsigned i = 0; i < n->attr.addr_cnt; i++)
		if (ur_gid_eq(&n->attr.addr[i].gid, g))
			return &n->attr.addr[i];
	return NULL;
}

static const struct ur_neigh_entry *find(const struct ur_neigh *n, const struct ur_gid *g)
{
	for (unsigned i = 0; i < n->entry_max; i++)
		if (n->entry[i].state != UR_NEIGH_STATE_FREE && ur_gid_eq(&n->entry[i].gid, g))
			return &n->entry[i];
	return NULL;
}

struct ur_neigh_entry *ur_neigh_find(struct ur_neigh *n, const struct ur_gid *g)
{
	const struct ur_neigh_entry *e = find(n, g);

	return e ? &n->entry[e - n->entry] : NULL;
}

/* Whether g lies in the subnet of our address a. */
static bool in_subnet(const struct ur_neigh_addr *a, const struct ur_gid *g)
{
	unsigned bits = a->prefix_len, whole;

	if (ur_gid_is_ipv4(&a->gid) != ur_gid_is_ipv4(g))
		return false;
	if (ur_gid_is_ipv4(g))
		bits += 96;
	bits = bits > 128 ? 128 : bits;
	whole = bits / 8;
	if (memcmp(a->gid.b, g->b, whole) != 0)
		return false;
	return bits % 8 == 0 || ((a->gid.b[whole] ^ g->b[whole]) >> (8 - bits % 8)) == 0;
}

static bool on_link(const struct ur_neigh *n, const struct ur_gid *g)
{
	if (!ur_gid_is_ipv4(g) && ur_gid_is_link_local(g))
		return true;
	for (unsigned i = 0; i < n->attr.addr_cnt; i++)
		if (in_subnet(&n->attr.addr[i], g))
			return true;
	return false;
}

const struct ur_neigh_addr *ur_neigh_source(const struct ur_neigh *n, const struct ur_gid *dst)
{
	const struct ur_neigh_addr *best = NULL;
	bool local = ur_gid_is_link_local(dst) || dst->b[0] == 0xff;
	unsigned best_rank = 0;

	for (unsigned i = 0; i < n->attr.addr_cnt; i++) {
		const struct ur_neigh_addr *a = &n->attr.addr[i];
		unsigned rank = 1;

		if (ur_gid_is_ipv4(&a->gid) != ur_gid_is_ipv4(dst))
			continue;
		if (ur_gid_is_ipv4(dst) || ur_gid_is_link_local(&a->gid) == local)
			rank = 2;
		if (in_subnet(a, dst))
			rank = 3;
		if (rank > best_rank) {
			best = a;
			best_rank = rank;
		}
	}
	return best;
}

static void set_due(struct ur_neigh *n, struct ur_neigh_entry *e, uint64_t due_ns)
{
	e->due_ns = due_ns;
	if (due_ns < n->next_due_ns)
		n->next_due_ns = due_ns;
}

static void set_mac(struct ur_neigh *n, struct ur_neigh_entry *e, const uint8_t mac[6])
{
	static const uint8_t unknown[6];

	if (memcmp(e->mac, mac, 6) == 0)
		return;
	n->moved_cnt += memcmp(e->mac, unknown, 6) != 0;
	memcpy(e->mac, mac, 6);
	atomic_fetch_add_explicit(&n->generation, 1, memory_order_release);
}

/* The order in which entries are replaced: 0 is never, a higher number sooner. */
static unsigned expendable(const struct ur_neigh_entry *e, bool for_wanted)
{
	switch (e->state) {
	case UR_NEIGH_STATE_STATIC:
	case UR_NEIGH_STATE_INCOMPLETE:
	case UR_NEIGH_STATE_PROBE:
		return 0;
	default:
		break;
	}
	if (!e->wanted)
		return 4;
	if (!for_wanted)
		return 0;
	if (e->state == UR_NEIGH_STATE_FAILED)
		return 3;
	return e->state == UR_NEIGH_STATE_STALE ? 2 : 1;
}

/* A cleared entry for g, replacing another one if necessary; NULL: none can be replaced. */
static struct ur_neigh_entry *new_entry(struct ur_neigh *n, const struct ur_gid *g, bool wanted,
					uint64_t now_ns)
{
	struct ur_neigh_entry *best = NULL;
	unsigned best_rank = 0;

	for (unsigned i = 0; i < n->entry_max; i++) {
		struct ur_neigh_entry *e = &n->entry[i];
		unsigned rank = e->state == UR_NEIGH_STATE_FREE ? 5 : expendable(e, wanted);

		if (rank > best_rank || (rank && rank == best_rank && e->used_ns < best->used_ns)) {
			best = e;
			best_rank = rank;
		}
	}
	if (!best) {
		n->no_room_cnt++;
		return NULL;
	}
	n->evicted_cnt += best_rank < 5;
	*best = (struct ur_neigh_entry){
		.gid = *g, .wanted = wanted, .used_ns = now_ns, .due_ns = UINT64_MAX};
	return best;
}

int ur_neigh_add_static(struct ur_neigh *n, const struct ur_gid *gid, const uint8_t mac[6],
			uint64_t now_ns)
{
	static const uint8_t none[6];
	struct ur_neigh_entry *e;

	if (ur_mac_is_group(mac) || memcmp(mac, none, 6) == 0 || !ur_gid_is_host(gid))
		return -EINVAL;
	e = ur_neigh_find(n, gid);
	if (!e)
		e = new_entry(n, gid, true, now_ns);
	if (!e)
		return -ENOSPC;
	e->state = UR_NEIGH_STATE_STATIC;
	e->due_ns = UINT64_MAX;
	set_mac(n, e, mac);
	return 0;
}

bool ur_neigh_learn(struct ur_neigh *n, const struct ur_gid *g, const uint8_t mac[6],
		    enum ur_neigh_how how, uint64_t now_ns)
{
	static const uint8_t none[6];
	struct ur_neigh_entry *e;
	bool asked, same;

	if (ur_mac_is_group(mac) || memcmp(mac, none, 6) == 0 || memcmp(mac, n->attr.mac, 6) == 0 ||
	    !ur_gid_is_host(g) || !on_link(n, g))
		return false;
	e = ur_neigh_find(n, g);
	if (e && e->state == UR_NEIGH_STATE_STATIC)
		return false;
	if (!e) {
		e = how == UR_NEIGH_HOW_REQUEST ? new_entry(n, g, false, now_ns) : NULL;
		if (!e)
			return false;
	}
	asked = e->state == UR_NEIGH_STATE_INCOMPLETE || e->state == UR_NEIGH_STATE_PROBE;
	same = e->state != UR_NEIGH_STATE_INCOMPLETE && memcmp(e->mac, mac, 6) == 0;
	e->used_ns = now_ns;
	e->tries = 0;
	if (how == UR_NEIGH_HOW_ANSWER && asked) {
		e->state = UR_NEIGH_STATE_REACHABLE;
		set_due(n, e, now_ns + UR_NEIGH_REACHABLE_NS);
	} else if (!same || e->state == UR_NEIGH_STATE_FAILED) {
		e->state = UR_NEIGH_STATE_STALE;
		e->due_ns = UINT64_MAX;
	}
	n->learned_cnt += !same;
	set_mac(n, e, mac);
	return true;
}

bool ur_neigh_confirm(struct ur_neigh *n, const struct ur_gid *g, uint64_t now_ns)
{
	struct ur_neigh_entry *e = ur_neigh_find(n, g);

	if (!e || e->state != UR_NEIGH_STATE_PROBE)
		return false;
	e->state = UR_NEIGH_STATE_REACHABLE;
	e->tries = 0;
	set_due(n, e, now_ns + UR_NEIGH_REACHABLE_NS);
	return true;
}

/* One query: broadcast while the MAC address is unknown, unicast to confirm it.
 */
static void query(struct ur_neigh *n, struct ur_neigh_entry *e, uint64_t now_ns)
{
	const struct ur_neigh_addr *src = ur_neigh_source(n, &e->gid);
	struct ur_gid group = ur_gid_solicited_node(&e->gid);
	const uint8_t group_mac[6] = {0x33,	   0x33,	group.b[12],
				      group.b[13], group.b[14], group.b[15]};
	static const uint8_t unknown[6];
	bool probe = e->state == UR_NEIGH_STATE_PROBE, sent;

	e->tries++;
	set_due(n, e, now_ns + UR_NEIGH_RETRY_NS);
	if (!src)
		return;
	if (ur_gid_is_ipv4(&e->gid))
		sent = ur_neigh_send_arp(n, UR_ARP_REQUEST, probe ? e->mac : ur_mac_broadcast,
					 &src->gid, unknown, &e->gid);
	else
		sent = ur_neigh_send_solicit(n, probe ? e->mac : group_mac, &src->gid,
					     probe ? &e->gid : &group, &e->gid);
	n->queries_cnt += sent;
}

void ur_neigh_announce(struct ur_neigh *n)
{
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	static const uint8_t unknown[6];

	for (unsigned i = 0; i < n->attr.addr_cnt; i++) {
		const struct ur_gid *own = &n->attr.addr[i].gid;

		if (ur_gid_is_ipv4(own))
			ur_neigh_send_arp(n, UR_ARP_REQUEST, ur_mac_broadcast, own, unknown, own);
		else
			ur_neigh_send_advert(n, all_nodes_mac, &ur_gid_all_nodes, own,
					     UR_ND_OVERRIDE);
	}
}

static bool is_broadcast(const struct ur_neigh *n, const struct ur_gid *dst)
{
	uint32_t addr = ur_gid_ipv4(dst);

	if (addr == UINT32_MAX)
		return true;
	for (unsigned i = 0; i < n->attr.addr_cnt; i++) {
		const struct ur_neigh_addr *a = &n->attr.addr[i];
		uint32_t hosts;

		if (!ur_gid_is_ipv4(&a->gid) || a->prefix_len >= 31 || !in_subnet(a, dst))
			continue;
		hosts = UINT32_MAX >> a->prefix_len;
		if ((addr & hosts) == hosts)
			return true;
	}
	return false;
}

/* Destinations whose MAC address needs no neighbour. */
static bool mapped(const struct ur_neigh *n, const struct ur_gid *dst, uint8_t mac[6])
{
	if (ur_gid_is_ipv4(dst) && is_broadcast(n, dst)) {
		memcpy(mac, ur_mac_broadcast, 6);
	} else if (ur_gid_is_multicast(dst)) {
		ur_gid_group_mac(dst, mac);
	} else if (ur_neigh_own(n, dst)) {
		memcpy(mac, n->attr.mac, 6);
	} else {
		return false;
	}
	return true;
}

/* The next hop to dst: dst itself or a gateway; NULL: there is none. */
static const struct ur_gid *next_hop(const struct ur_neigh *n, const struct ur_gid *dst)
{
	if (!ur_gid_is_host(dst) || !ur_neigh_source(n, dst))
		return NULL;
	if (on_link(n, dst))
		return dst;
	if (ur_gid_is_ipv4(dst))
		return n->attr.has_gateway4 ? &n->attr.gateway4 : NULL;
	return n->attr.has_gateway6 ? &n->attr.gateway6 : NULL;
}

int ur_neigh_resolve(struct ur_neigh *n, const struct ur_gid *dst, uint8_t mac[6], uint64_t now_ns)
{
	const struct ur_gid *hop;
	struct ur_neigh_entry *e;

	if (mapped(n, dst, mac))
		return 0;
	e = ur_neigh_find(n, dst);
	if (!e || e->state != UR_NEIGH_STATE_STATIC) {
		hop = next_hop(n, dst);
		if (!hop)
			return -ENETUNREACH;
		e = ur_neigh_find(n, hop);
		if (!e) {
			e = new_entry(n, hop, true, now_ns);
			if (!e)
				return -ENOBUFS;
			e->state = UR_NEIGH_STATE_INCOMPLETE;
			query(n, e, now_ns);
		}
	}
	e->wanted = true;
	e->used_ns = now_ns;
	if (e->state == UR_NEIGH_STATE_INCOMPLETE)
		return -EAGAIN;
	if (e->state == UR_NEIGH_STATE_FAILED)
		return -EHOSTUNREACH;
	if (e->state == UR_NEIGH_STATE_STALE) {
		e->state = UR_NEIGH_STATE_PROBE;
		e->tries = 0;
		query(n, e, now_ns);
	}
	memcpy(mac, e->mac, 6);
	return 0;
}

bool ur_neigh_lookup(const struct ur_neigh *n, const struct ur_gid *dst, uint8_t mac[6])
{
	const struct ur_neigh_entry *e = find(n, dst);
	const struct ur_gid *hop;
	uint8_t fixed[6];

	if (mapped(n, dst, fixed))
		return false;
	if (!e || e->state != UR_NEIGH_STATE_STATIC) {
		hop = next_hop(n, dst);
		e = hop ? find(n, hop) : NULL;
	}
	if (!e || e->state == UR_NEIGH_STATE_INCOMPLETE || e->state == UR_NEIGH_STATE_FAILED)
		return false;
	memcpy(mac, e->mac, 6);
	return true;
}

static void expire_entry(struct ur_neigh *n, struct ur_neigh_entry *e, uint64_t now_ns)
{
	switch (e->state) {
	case UR_NEIGH_STATE_INCOMPLETE:
	case UR_NEIGH_STATE_PROBE:
		if (e->tries < UR_NEIGH_TRIES) {
			query(n, e, now_ns);
		} else {
			e->state = UR_NEIGH_STATE_FAILED;
			set_due(n, e, now_ns + UR_NEIGH_FAILED_NS);
		}
		break;
	case UR_NEIGH_STATE_REACHABLE:
		e->state = UR_NEIGH_STATE_STALE;
		e->due_ns = UINT64_MAX;
		break;
	case UR_NEIGH_STATE_FAILED:
		e->state = UR_NEIGH_STATE_FREE;
		break;
	default:
		break;
	}
}

void ur_neigh_expire(struct ur_neigh *n, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (n->mld_due_ns <= now_ns)
		ur_mld_expire(n, now_ns);
	if (n->igmp_due_ns <= now_ns)
		ur_igmp_expire(n, now_ns);
	if (now_ns < n->next_due_ns)
		return;
	for (unsigned i = 0; i < n->entry_max; i++) {
		struct ur_neigh_entry *e = &n->entry[i];

		if (e->state != UR_NEIGH_STATE_FREE && e->due_ns <= now_ns)
			expire_entry(n, e, now_ns);
		if (e->state != UR_NEIGH_STATE_FREE && e->due_ns < next_ns)
			next_ns = e->due_ns;
	}
	n->next_due_ns = next_ns;
}

uint64_t ur_neigh_next_deadline(const struct ur_neigh *n)
{
	uint64_t report_ns = n->mld_due_ns < n->igmp_due_ns ? n->mld_due_ns : n->igmp_due_ns;

	return n->next_due_ns < report_ns ? n->next_due_ns : report_ns;
}
