/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/neigh_frame.h"

#define ND_HOP_LIMIT 255 /* RFC 4861 7.1: proof that no router forwarded it */

/* A frame that is being checked. */
struct input {
	struct ur_neigh *n;
	const uint8_t *dmac, *smac;
	uint64_t now_ns;
	struct ur_gid src, dst; /* of the IP header */
	uint8_t tos, hop_limit;
};

static bool from_ourselves(const struct input *in)
{
	return memcmp(in->smac, in->n->attr.mac, 6) == 0;
}

static enum ur_neigh_verdict sent_or_full(bool sent, enum ur_neigh_verdict verdict)
{
	return sent ? verdict : UR_NEIGH_QUEUE_FULL;
}

static enum ur_neigh_verdict arp_request(struct input *in, const struct ur_gid *spa,
					 const uint8_t *sha, const struct ur_gid *tpa)
{
	struct ur_neigh *n = in->n;

	if (!ur_neigh_own(n, tpa)) {
		ur_neigh_learn(n, spa, sha, UR_NEIGH_HOW_OVERHEARD, in->now_ns);
		return UR_NEIGH_FOREIGN;
	}
	if (ur_mac_is_group(sha))
		return UR_NEIGH_MALFORMED;
	ur_neigh_learn(n, spa, sha, UR_NEIGH_HOW_REQUEST, in->now_ns);
	return sent_or_full(ur_neigh_send_arp(n, UR_ARP_REPLY, sha, tpa, sha, spa),
			    UR_NEIGH_ARP_REQUEST);
}

static enum ur_neigh_verdict arp_reply(struct input *in, const struct ur_gid *spa,
				       const uint8_t *sha, const struct ur_gid *tpa)
{
	bool to_us = ur_neigh_own(in->n, tpa) && !ur_mac_is_group(in->dmac);

	return ur_neigh_learn(in->n, spa, sha, to_us ? UR_NEIGH_HOW_ANSWER : UR_NEIGH_HOW_OVERHEARD,
			      in->now_ns)
		       ? UR_NEIGH_ARP_REPLY
		       : UR_NEIGH_IGNORED;
}

static enum ur_neigh_verdict input_arp(struct input *in, struct ur_cursor *c)
{
	uint16_t hw = ur_get16(c), proto = ur_get16(c), sizes = ur_get16(c);
	uint16_t op = ur_get16(c);
	const uint8_t *sha = ur_take(c, 6);
	struct ur_gid spa = ur_gid_from_ipv4(ur_get32(c)), tpa;

	ur_take(c, 6);
	tpa = ur_gid_from_ipv4(ur_get32(c));
	if (c->bad || hw != 1 || proto != UR_ETHERTYPE_IPV4 || sizes != 0x0604)
		return UR_NEIGH_MALFORMED;
	if (from_ourselves(in) || memcmp(sha, in->n->attr.mac, 6) == 0)
		return UR_NEIGH_IGNORED;
	if (ur_neigh_own(in->n, &spa))
		return UR_NEIGH_CONFLICT;
	if (op == UR_ARP_REQUEST)
		return arp_request(in, &spa, sha, &tpa);
	if (op == UR_ARP_REPLY)
		return arp_reply(in, &spa, sha, &tpa);
	return UR_NEIGH_IGNORED;
}

static enum ur_neigh_verdict input_ipv4(struct input *in, struct ur_cursor *c)
{
	const uint8_t *ip = c->p, *icmp;
	size_t left = ur_cursor_left(c), head, total, len;

	if (left < UR_IPV4_BYTES)
		return UR_NEIGH_MALFORMED;
	head = (size_t)(ip[0] & 0x0f) * 4;
	total = (size_t)ip[2] << 8 | ip[3];
	if (ip[0] >> 4 != 4 || head < UR_IPV4_BYTES || total < head || total > left)
		return UR_NEIGH_MALFORMED;
	if (ip[9] != UR_ICMP4_PROTO && ip[9] != UR_IGMP_PROTO)
		return UR_NEIGH_OTHER;
	if (ur_csum_fold(ur_csum_add(0, ip, head)) != 0xffff)
		return UR_NEIGH_MALFORMED;
	c->p = c->p + 12;
	in->src = ur_gid_from_ipv4(ur_get32(c));
	in->dst = ur_gid_from_ipv4(ur_get32(c));
	icmp = ip + head;
	len = total - head;
	if (ip[9] == UR_IGMP_PROTO)
		return ur_igmp_input(in->n, in->dmac, ip, head, icmp, len, in->now_ns);
	if (!ur_neigh_own(in->n, &in->dst))
		return UR_NEIGH_FOREIGN;
	if ((ip[6] & 0x3f) || ip[7]) /* a fragment */
		return UR_NEIGH_IGNORED;
	if (len < 8 || ur_csum_fold(ur_csum_add(0, icmp, len)) != 0xffff)
		return UR_NEIGH_MALFORMED;
	/* RFC 1122 3.2.2.6: no answers to broadcast, nor to what cannot be a host. */
	if (icmp[0] != UR_ICMP4_ECHO || icmp[1] != 0 || ur_mac_is_group(in->dmac) ||
	    !ur_gid_is_host(&in->src) || ur_neigh_own(in->n, &in->src))
		return UR_NEIGH_IGNORED;
	return sent_or_full(
		ur_neigh_send_pong4(in->n, in->smac, &in->dst, &in->src, ip[1], icmp, len),
		UR_NEIGH_PING4);
}

/*
 * Walks the options of an ND message from the cursor to its end. Returns whether they are
 * well-formed; *mac is the link-layer address of the option `type`, NULL without one.
 */
static bool nd_options(struct ur_cursor *c, uint8_t type, const uint8_t **mac)
{
	*mac = NULL;
	while (ur_cursor_left(c)) {
		uint8_t kind = ur_get8(c), units = ur_get8(c);
		const uint8_t *body;

		if (c->bad || units == 0)
			return false;
		body = ur_take(c, (size_t)units * 8 - 2);
		if (!body)
			return false;
		if (kind == type)
			*mac = body;
	}
	return true;
}

static bool target_ok(const struct ur_gid *target)
{
	return target->b[0] != 0xff && !ur_gid_is_ipv4(target);
}

/* RFC 4861 7.1.1, 7.2.3, 7.2.4 */
static enum ur_neigh_verdict input_solicit(struct input *in, struct ur_cursor *c)
{
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct ur_neigh *n = in->n;
	bool anonymous = ur_gid_is_zero(&in->src);
	struct ur_gid target, group;
	const uint8_t *slla;

	ur_take(c, 4);
	ur_get_bytes(c, target.b, 16);
	if (c->bad || in->hop_limit != ND_HOP_LIMIT || !target_ok(&target) ||
	    !nd_options(c, UR_ND_OPT_SLLA, &slla))
		return UR_NEIGH_MALFORMED;
	group = ur_gid_solicited_node(&target);
	if (anonymous && (slla || !ur_gid_eq(&in->dst, &group)))
		return UR_NEIGH_MALFORMED;
	if (!ur_neigh_own(n, &target))
		return UR_NEIGH_FOREIGN;
	if (from_ourselves(in))
		return UR_NEIGH_IGNORED;
	if (ur_neigh_own(n, &in->src))
		return UR_NEIGH_CONFLICT;
	if (anonymous)
		return sent_or_full(ur_neigh_send_advert(n, all_nodes_mac, &ur_gid_all_nodes,
							 &target, UR_ND_OVERRIDE),
				    UR_NEIGH_ND_SOLICIT);
	if (!ur_gid_is_host(&in->src) || (slla && ur_mac_is_group(slla)))
		return UR_NEIGH_MALFORMED;
	if (slla)
		ur_neigh_learn(n, &in->src, slla, UR_NEIGH_HOW_REQUEST, in->now_ns);
	return sent_or_full(ur_neigh_send_advert(n, slla ? slla : in->smac, &in->src, &target,
						 UR_ND_SOLICITED | UR_ND_OVERRIDE),
			    UR_NEIGH_ND_SOLICIT);
}

/* RFC 4861 7.1.2, 7.2.5 */
static enum ur_neigh_verdict input_advert(struct input *in, struct ur_cursor *c)
{
	struct ur_neigh *n = in->n;
	uint32_t flags = ur_get32(c);
	bool solicited = flags & UR_ND_SOLICITED;
	const struct ur_neigh_entry *e;
	struct ur_gid target;
	const uint8_t *tlla;

	ur_get_bytes(c, target.b, 16);
	if (c->bad || in->hop_limit != ND_HOP_LIMIT || !target_ok(&target) ||
	    (solicited && in->dst.b[0] == 0xff) || !nd_options(c, UR_ND_OPT_TLLA, &tlla))
		return UR_NEIGH_MALFORMED;
	if (from_ourselves(in))
		return UR_NEIGH_IGNORED;
	if (ur_neigh_own(n, &target))
		return UR_NEIGH_CONFLICT;
	e = ur_neigh_find(n, &target);
	if (!e)
		return UR_NEIGH_IGNORED;
	if (!tlla)
		return solicited && ur_neigh_confirm(n, &target, in->now_ns) ? UR_NEIGH_ND_ADVERT
									     : UR_NEIGH_IGNORED;
	/* Without the override flag a known address stays. */
	if (!(flags & UR_ND_OVERRIDE) && e->state != UR_NEIGH_STATE_INCOMPLETE &&
	    memcmp(e->mac, tlla, 6) != 0)
		return UR_NEIGH_IGNORED;
	return ur_neigh_learn(n, &target, tlla,
			      solicited ? UR_NEIGH_HOW_ANSWER : UR_NEIGH_HOW_OVERHEARD, in->now_ns)
		       ? UR_NEIGH_ND_ADVERT
		       : UR_NEIGH_IGNORED;
}

static enum ur_neigh_verdict input_ping6(struct input *in, const uint8_t *icmp, size_t len)
{
	const struct ur_gid *src = &in->dst;

	if (!ur_gid_is_host(&in->src) || ur_neigh_own(in->n, &in->src) || from_ourselves(in))
		return UR_NEIGH_IGNORED;
	if (src->b[0] == 0xff) {
		const struct ur_neigh_addr *own = ur_neigh_source(in->n, &in->src);

		if (!own)
			return UR_NEIGH_IGNORED;
		src = &own->gid;
	}
	return sent_or_full(ur_neigh_send_pong6(in->n, in->smac, src, &in->src, in->tos, icmp, len),
			    UR_NEIGH_PING6);
}

/* Ours, all nodes, or the solicited-node group of one of ours. */
static bool for_us6(const struct ur_neigh *n, const struct ur_gid *dst)
{
	if (ur_neigh_own(n, dst) || ur_gid_eq(dst, &ur_gid_all_nodes))
		return true;
	for (unsigned i = 0; i < n->attr.addr_cnt; i++) {
		struct ur_gid group = ur_gid_solicited_node(&n->attr.addr[i].gid);

		if (!ur_gid_is_ipv4(&n->attr.addr[i].gid) && ur_gid_eq(dst, &group))
			return true;
	}
	return false;
}

static enum ur_neigh_verdict input_ipv6(struct input *in, struct ur_cursor *c)
{
	uint32_t first = ur_get32(c);
	uint16_t len = ur_get16(c);
	uint8_t proto = ur_get8(c), type;
	const uint8_t *icmp;
	struct ur_cursor message;

	in->hop_limit = ur_get8(c);
	ur_get_bytes(c, in->src.b, 16);
	ur_get_bytes(c, in->dst.b, 16);
	if (c->bad || first >> 28 != 6)
		return UR_NEIGH_MALFORMED;
	if (proto != UR_ICMP6_PROTO && proto != UR_HOP_BY_HOP_PROTO)
		return UR_NEIGH_OTHER;
	/* Our tables contain IPv4-mapped addresses; on the wire these are invalid. */
	if (ur_gid_is_ipv4(&in->src) || ur_gid_is_ipv4(&in->dst))
		return UR_NEIGH_FOREIGN;
	in->tos = (uint8_t)(first >> 20);
	icmp = ur_take(c, len);
	if (!icmp || len < 8)
		return UR_NEIGH_MALFORMED;
	if (!for_us6(in->n, &in->dst))
		return UR_NEIGH_FOREIGN;
	if (proto == UR_HOP_BY_HOP_PROTO)
		return ur_mld_input(in->n, &in->src, &in->dst, in->hop_limit, icmp, len,
				    in->now_ns);
	if (ur_csum_fold(ur_csum_add(ur_csum_pseudo6(in->src.b, in->dst.b, len), icmp, len)) !=
	    0xffff)
		return UR_NEIGH_MALFORMED;
	type = icmp[0];
	if (icmp[1] != 0)
		return UR_NEIGH_IGNORED;
	message = ur_cursor_ro(icmp + 4, len - 4u);
	if (type == UR_ND_SOLICIT)
		return input_solicit(in, &message);
	if (type == UR_ND_ADVERT)
		return input_advert(in, &message);
	if (type == UR_ICMP6_ECHO)
		return input_ping6(in, icmp, len);
	return UR_NEIGH_IGNORED;
}

static enum ur_neigh_verdict input(struct ur_neigh *n, const uint8_t *frame, size_t len,
				   uint64_t now_ns)
{
	struct ur_cursor c = ur_cursor_ro(frame, len);
	struct input in = {.n = n, .now_ns = now_ns};
	uint16_t type, vid = 0;

	in.dmac = ur_take(&c, 6);
	in.smac = ur_take(&c, 6);
	type = ur_get16(&c);
	if (type == UR_ETHERTYPE_VLAN) {
		vid = ur_get16(&c) & 0xfff;
		type = ur_get16(&c);
	}
	if (c.bad || ur_mac_is_group(in.smac))
		return UR_NEIGH_MALFORMED;
	if (!ur_mac_is_group(in.dmac) && memcmp(in.dmac, n->attr.mac, 6) != 0)
		return UR_NEIGH_FOREIGN;
	if (vid != (n->attr.has_vlan ? n->attr.vlan_tci & 0xfff : 0))
		return UR_NEIGH_FOREIGN;
	if (type == UR_ETHERTYPE_ARP)
		return input_arp(&in, &c);
	if (type == UR_ETHERTYPE_IPV4)
		return input_ipv4(&in, &c);
	if (type == UR_ETHERTYPE_IPV6)
		return input_ipv6(&in, &c);
	return UR_NEIGH_OTHER;
}

enum ur_neigh_verdict ur_neigh_input(struct ur_neigh *n, const uint8_t *frame, size_t len,
				     uint64_t now_ns)
{
	enum ur_neigh_verdict verdict = input(n, frame, len, now_ns);

	n->cnt[verdict]++;
	return verdict;
}
