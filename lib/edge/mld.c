/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/neigh_frame.h"

/*
 * The listener's side of MLDv2 (RFC 3810), and answers to queriers of MLDv1 (RFC 2710). Switches
 * that snoop MLD deliver solicitations only to ports that have reported the group.
 */

#define QUERY1_BYTES	 24
#define QUERY2_BYTES	 28
#define OPTION_PAD1	 0
#define OPTION_ALERT	 5
#define IS_EXCLUDE	 2 /* record types: current state, */
#define TO_INCLUDE	 3 /* and changes of state */
#define TO_EXCLUDE	 4
#define RECORDS_MAX	 12 /* of a message: UR_MLD_BYTES_MAX */
#define GROUPS_MAX	 (UR_NEIGH_ADDRS_MAX + UR_NEIGH_GROUPS_MAX)
#define JOIN_INTERVAL_MS 1000
#define JOIN_REPEATS	 1 /* a robustness of 2 */

static const struct ur_gid all_mld2_routers = {{0xff, 0x02, [15] = 0x16}};
static const struct ur_gid all_routers = {{0xff, 0x02, [15] = 2}};

/* RFC 3810 6: neither all nodes, nor what stays in the host. */
static bool is_reported(const struct ur_gid *g)
{
	return !ur_gid_is_ipv4(g) && (g->b[1] & 0xf) > 1 && !ur_gid_eq(g, &ur_gid_all_nodes);
}

/* The solicited-node groups of our addresses, each once, and those that were joined. */
static unsigned groups_of(const struct ur_neigh *n, struct ur_gid group[GROUPS_MAX])
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < n->attr.addr_cnt; i++) {
		struct ur_gid g = ur_gid_solicited_node(&n->attr.addr[i].gid);
		unsigned k = 0;

		if (ur_gid_is_ipv4(&n->attr.addr[i].gid))
			continue;
		while (k < cnt && !ur_gid_eq(&group[k], &g))
			k++;
		if (k == cnt)
			group[cnt++] = g;
	}
	for (unsigned i = 0; i < n->group_cnt; i++)
		if (!n->group[i].leaving && is_reported(&n->group[i].gid))
			group[cnt++] = n->group[i].gid;
	return cnt;
}

/* Reports come from a link-local address, or from none. */
static struct ur_gid source(const struct ur_neigh *n)
{
	for (unsigned i = 0; i < n->attr.addr_cnt; i++)
		if (ur_gid_is_link_local(&n->attr.addr[i].gid))
			return n->attr.addr[i].gid;
	return (struct ur_gid){{0}};
}

static void report_groups(struct ur_neigh *n, uint8_t record_type, const struct ur_gid *group,
			  unsigned cnt)
{
	struct ur_gid src = source(n);
	uint8_t body[UR_MLD_BYTES_MAX];
	struct ur_cursor c = ur_cursor(body, sizeof(body));

	ur_put16(&c, 0);
	ur_put16(&c, (uint16_t)cnt);
	for (unsigned i = 0; i < cnt; i++) {
		ur_put32(&c, (uint32_t)record_type << 24); /* no auxiliary data, no sources */
		ur_put_bytes(&c, group[i].b, 16);
	}
	ur_neigh_send_mld(n, &src, &all_mld2_routers, UR_MLD2_REPORT, body, (size_t)(c.p - body));
}

static void report(struct ur_neigh *n, uint8_t record_type)
{
	struct ur_gid group[GROUPS_MAX];
	unsigned cnt = groups_of(n, group);

	for (unsigned at = 0; at < cnt; at += RECORDS_MAX)
		report_groups(n, record_type, group + at,
			      cnt - at < RECORDS_MAX ? cnt - at : RECORDS_MAX);
}

static void send_v1(struct ur_neigh *n, uint8_t type, const struct ur_gid *dst,
		    const struct ur_gid *group)
{
	struct ur_gid src = source(n);
	uint8_t body[20] = {0};

	memcpy(body + 4, group->b, 16);
	ur_neigh_send_mld(n, &src, dst, type, body, sizeof(body));
}

static void report_v1(struct ur_neigh *n)
{
	struct ur_gid group[GROUPS_MAX];
	unsigned cnt = groups_of(n, group);

	for (unsigned i = 0; i < cnt; i++)
		send_v1(n, UR_MLD1_REPORT, &group[i], &group[i]);
}

static void schedule(struct ur_neigh *n, uint64_t most_ms, uint64_t now_ns)
{
	ur_neigh_schedule(n, &n->mld_due_ns, most_ms, now_ns);
}

/* MLD-REPORT-01 */
void ur_mld_join(struct ur_neigh *n, uint64_t now_ns)
{
	report(n, TO_EXCLUDE);
	n->mld_repeats = JOIN_REPEATS;
	schedule(n, JOIN_INTERVAL_MS, now_ns);
}

static void report_left(struct ur_neigh *n, const struct ur_gid *group)
{
	if (!is_reported(group))
		return;
	report_groups(n, TO_INCLUDE, group, 1);
	if (n->mld_v1)
		send_v1(n, UR_MLD1_DONE, &all_routers, group);
}

/* MCAST-JOIN-01 */
void ur_mld_changed(struct ur_neigh *n, const struct ur_gid *group, bool leave, uint64_t now_ns)
{
	if (leave) {
		report_left(n, group);
	} else if (is_reported(group)) {
		report_groups(n, TO_EXCLUDE, group, 1);
		n->mld_repeats = JOIN_REPEATS;
	}
	schedule(n, JOIN_INTERVAL_MS, now_ns);
}

void ur_mld_expire(struct ur_neigh *n, uint64_t now_ns)
{
	n->mld_due_ns = UINT64_MAX;
	for (unsigned i = 0; i < n->group_cnt; i++)
		if (n->group[i].leaving && !ur_gid_is_ipv4(&n->group[i].gid))
			report_left(n, &n->group[i].gid);
	ur_neigh_forget_left(n, false);
	if (n->mld_repeats) {
		n->mld_repeats--;
		report(n, TO_EXCLUDE);
	} else if (n->mld_v1) {
		report_v1(n);
	} else {
		report(n, IS_EXCLUDE);
	}
	n->mld_v1 = false;
}

/* Whether the options of a hop-by-hop header are well-formed and have a router alert for MLD. */
static bool has_alert(struct ur_cursor *c)
{
	bool found = false;

	while (ur_cursor_left(c)) {
		uint8_t type = ur_get8(c), len;
		const uint8_t *value;

		if (type == OPTION_PAD1)
			continue;
		len = ur_get8(c);
		value = ur_take(c, len);
		if (c->bad)
			return false;
		found |= type == OPTION_ALERT && len == 2 && !value[0] && !value[1];
	}
	return found;
}

/* RFC 3810 5.1.3: milliseconds, above 32767 as a floating-point number. */
static uint64_t response_ms(uint16_t code, bool v1)
{
	if (v1 || code < 0x8000)
		return code;
	return (uint64_t)(0x1000 | (code & 0xfff)) << ((code >> 12 & 7) + 3);
}

static bool is_asked(const struct ur_neigh *n, const struct ur_gid *asked)
{
	struct ur_gid group[GROUPS_MAX];
	unsigned cnt = groups_of(n, group), i = 0;

	if (ur_gid_is_zero(asked))
		return cnt;
	while (i < cnt && !ur_gid_eq(&group[i], asked))
		i++;
	return i < cnt;
}

/* MLD-REPORT-01 */
static enum ur_neigh_verdict query(struct ur_neigh *n, const uint8_t *icmp, size_t len,
				   uint64_t now_ns)
{
	struct ur_cursor c = ur_cursor_ro(icmp + 4, len - 4);
	uint16_t code = ur_get16(&c);
	struct ur_gid asked;
	bool v1 = len == QUERY1_BYTES;

	ur_get16(&c);
	ur_get_bytes(&c, asked.b, 16);
	if (c.bad || (!v1 && len < QUERY2_BYTES))
		return UR_NEIGH_MALFORMED;
	if (!is_asked(n, &asked))
		return UR_NEIGH_IGNORED;
	n->mld_v1 = v1;
	schedule(n, response_ms(code, v1), now_ns);
	return UR_NEIGH_MLD_QUERY;
}

enum ur_neigh_verdict ur_mld_input(struct ur_neigh *n, const struct ur_gid *src,
				   const struct ur_gid *dst, uint8_t hop_limit, const uint8_t *p,
				   size_t len, uint64_t now_ns)
{
	size_t options = (p[1] + 1u) * 8;
	struct ur_cursor c = ur_cursor_ro(p + 2, options - 2);
	const uint8_t *icmp = p + options;
	uint32_t sum;

	if (len < options)
		return UR_NEIGH_MALFORMED;
	if (p[0] != UR_ICMP6_PROTO || len < options + 4)
		return UR_NEIGH_IGNORED;
	len -= options;
	sum = ur_csum_pseudo6(src->b, dst->b, (uint32_t)len);
	if (ur_csum_fold(ur_csum_add(sum, icmp, len)) != 0xffff)
		return UR_NEIGH_MALFORMED;
	/* RFC 3810 5.1.14, 6.2 */
	if (icmp[0] != UR_MLD_QUERY || hop_limit != 1 || !ur_gid_is_link_local(src) ||
	    !has_alert(&c))
		return UR_NEIGH_IGNORED;
	return query(n, icmp, len, now_ns);
}
