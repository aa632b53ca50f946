/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/neigh_frame.h"

/* The host's side of IGMPv3 (RFC 3376), and of versions 2 and 1 (RFC 2236, 1112) for an older querier. */

#define QUERY_BYTES	 8
#define QUERY3_BYTES	 12
#define ALERT		 0x94 /* IP option, RFC 2113 */
#define IS_EXCLUDE	 2    /* record types: current state, */
#define TO_INCLUDE	 3    /* and changes of state */
#define TO_EXCLUDE	 4
#define RECORDS_MAX	 32 /* of a message: UR_IGMP_BYTES_MAX */
#define JOIN_INTERVAL_MS 1000
#define JOIN_REPEATS	 1 /* a robustness of 2 */
#define V1_RESPONSE_MS	 10000
#define OLD_QUERIER_NS	 260000000000ull /* 2 * 125 s + 10 s, RFC 3376 8.12 */
#define ALL_HOSTS	 0xe0000001u
#define ALL_ROUTERS	 0xe0000002u
#define V3_ROUTERS	 0xe0000016u

/* RFC 3376 5: every host is in 224.0.0.1, which is never reported. */
static bool is_reported(const struct ur_neigh_group *m)
{
	return ur_gid_is_ipv4(&m->gid) && ur_gid_ipv4(&m->gid) != ALL_HOSTS;
}

static unsigned version(const struct ur_neigh *n, uint64_t now_ns)
{
	return now_ns < n->igmp_old_until_ns ? n->igmp_old : 3;
}

static void send_v3(struct ur_neigh *n, uint8_t record_type, const uint32_t *group, unsigned cnt)
{
	struct ur_gid dst = ur_gid_from_ipv4(V3_ROUTERS);
	uint8_t msg[UR_IGMP_BYTES_MAX];
	struct ur_cursor c = ur_cursor(msg, sizeof(msg));

	ur_put32(&c, (uint32_t)UR_IGMP3_REPORT << 24);
	ur_put32(&c, cnt);
	for (unsigned i = 0; i < cnt; i++) {
		ur_put32(&c, (uint32_t)record_type << 24); /* no auxiliary data, no sources */
		ur_put32(&c, group[i]);
	}
	ur_neigh_send_igmp(n, &dst, msg, (size_t)(c.p - msg));
}

static void send_old(struct ur_neigh *n, uint8_t type, uint32_t to, uint32_t group)
{
	struct ur_gid dst = ur_gid_from_ipv4(to);
	uint8_t msg[QUERY_BYTES];
	struct ur_cursor c = ur_cursor(msg, sizeof(msg));

	ur_put32(&c, (uint32_t)type << 24);
	ur_put32(&c, group);
	ur_neigh_send_igmp(n, &dst, msg, sizeof(msg));
}

static void send_group(struct ur_neigh *n, uint8_t record_type, uint32_t group, uint64_t now_ns)
{
	unsigned v = version(n, now_ns);

	if (v == 3)
		send_v3(n, record_type, &group, 1);
	else if (record_type != TO_INCLUDE)
		send_old(n, v == 2 ? UR_IGMP2_REPORT : UR_IGMP1_REPORT, group, group);
	else if (v == 2)
		send_old(n, UR_IGMP2_LEAVE, ALL_ROUTERS, group);
}

static void report_all(struct ur_neigh *n, uint8_t record_type, uint64_t now_ns)
{
	uint32_t group[RECORDS_MAX];
	bool v3 = version(n, now_ns) == 3;
	unsigned cnt = 0;

	for (unsigned i = 0; i < n->group_cnt; i++) {
		const struct ur_neigh_group *m = &n->group[i];

		if (m->leaving || !is_reported(m))
			continue;
		if (!v3) {
			send_group(n, record_type, ur_gid_ipv4(&m->gid), now_ns);
			continue;
		}
		group[cnt++] = ur_gid_ipv4(&m->gid);
		if (cnt == RECORDS_MAX) {
			send_v3(n, record_type, group, cnt);
			cnt = 0;
		}
	}
	if (cnt)
		send_v3(n, record_type, group, cnt);
}

/* MCAST-JOIN-01 */
void ur_igmp_changed(struct ur_neigh *n, const struct ur_gid *group, bool leave, uint64_t now_ns)
{
	if (ur_gid_ipv4(group) != ALL_HOSTS)
		send_group(n, leave ? TO_INCLUDE : TO_EXCLUDE, ur_gid_ipv4(group), now_ns);
	if (!leave)
		n->igmp_repeats = JOIN_REPEATS;
	ur_neigh_schedule(n, &n->igmp_due_ns, JOIN_INTERVAL_MS, now_ns);
}

void ur_igmp_expire(struct ur_neigh *n, uint64_t now_ns)
{
	n->igmp_due_ns = UINT64_MAX;
	for (unsigned i = 0; i < n->group_cnt; i++)
		if (n->group[i].leaving && is_reported(&n->group[i]))
			send_group(n, TO_INCLUDE, ur_gid_ipv4(&n->group[i].gid), now_ns);
	ur_neigh_forget_left(n, true);
	report_all(n, n->igmp_repeats ? TO_EXCLUDE : IS_EXCLUDE, now_ns);
	n->igmp_repeats = 0;
}

static bool has_alert(const uint8_t *option, size_t len)
{
	while (len >= 2 && option[0]) {
		size_t bytes = option[0] == 1 ? 1 : option[1]; /* 1: no operation */

		if (option[0] == ALERT)
			return bytes == 4 && len >= 4;
		if (!bytes || bytes > len)
			return false;
		option += bytes;
		len -= bytes;
	}
	return false;
}

/* RFC 3376 4.1.1: tenths of a second, above 127 as a floating-point number. */
static uint64_t response_ms(uint8_t code, bool v3)
{
	if (!v3 || code < 128)
		return code * 100u;
	return ((uint64_t)(0x10 | (code & 0xf)) << ((code >> 4 & 7) + 3)) * 100;
}

static bool is_asked(const struct ur_neigh *n, uint32_t group)
{
	for (unsigned i = 0; i < n->group_cnt; i++)
		if (!n->group[i].leaving && is_reported(&n->group[i]) &&
		    (!group || ur_gid_ipv4(&n->group[i].gid) == group))
			return true;
	return false;
}

/*
 * A TTL of 1 proves no link, since a remote sender chooses it. But no router forwards 224.0.0.1, and none sends a group's packets
 * to a host's MAC address. RFC 3376 4.1.12 would accept queries to an own address too: they could come from any network.
 */
static bool is_from_link(const uint8_t dmac[6], uint32_t dst, uint32_t asked)
{
	struct ur_gid g = ur_gid_from_ipv4(dst);
	uint8_t mac[6];

	ur_gid_group_mac(&g, mac);
	return (dst == ALL_HOSTS || dst == asked) && ur_gid_is_multicast(&g) &&
	       memcmp(dmac, mac, 6) == 0;
}

enum ur_neigh_verdict ur_igmp_input(struct ur_neigh *n, const uint8_t *dmac, const uint8_t *ip,
				    size_t head, const uint8_t *p, size_t len, uint64_t now_ns)
{
	bool v3 = len >= QUERY3_BYTES, v1;
	uint32_t asked;

	if (len < QUERY_BYTES || (ip[6] & 0x3f) || ip[7] ||
	    ur_csum_fold(ur_csum_add(0, p, len)) != 0xffff)
		return UR_NEIGH_MALFORMED;
	v1 = len == QUERY_BYTES && !p[1];
	asked = ur_load32(p + 4);
	/* RFC 3376 9.1 */
	if (p[0] != UR_IGMP_QUERY || ip[8] != 1 || !is_from_link(dmac, ur_load32(ip + 16), asked) ||
	    (!v1 && !has_alert(ip + UR_IPV4_BYTES, head - UR_IPV4_BYTES)) ||
	    (!v3 && len != QUERY_BYTES))
		return UR_NEIGH_IGNORED;
	/* RFC 3376 7.2.1: of general queries, also before any group is joined. */
	if (!v3 && !asked) {
		n->igmp_old = v1 ? 1 : 2;
		n->igmp_old_until_ns = now_ns + OLD_QUERIER_NS;
	}
	if (!is_asked(n, asked))
		return UR_NEIGH_IGNORED;
	ur_neigh_schedule(n, &n->igmp_due_ns, v1 ? V1_RESPONSE_MS : response_ms(p[1], v3), now_ns);
	return UR_NEIGH_IGMP_QUERY;
}
