/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/neigh_frame.h"

#define FRAME_MIN	60	    /* Ethernet's minimum without FCS */
#define UR_ROUTER_ALERT 0x94040000u /* RFC 2113 */

const uint8_t ur_mac_broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
const struct ur_gid ur_gid_all_nodes = {{0xff, 0x02, [15] = 1}};

bool ur_gid_is_zero(const struct ur_gid *g)
{
	static const struct ur_gid none;

	return ur_gid_eq(g, &none) || (ur_gid_is_ipv4(g) && ur_gid_ipv4(g) == 0);
}

bool ur_gid_is_host(const struct ur_gid *g)
{
	static const struct ur_gid loopback = {{[15] = 1}};

	if (ur_gid_is_zero(g))
		return false;
	if (ur_gid_is_ipv4(g))
		return g->b[12] != 0 && g->b[12] != 127 && g->b[12] < 224;
	return g->b[0] != 0xff && !ur_gid_eq(g, &loopback);
}

struct ur_gid ur_gid_solicited_node(const struct ur_gid *g)
{
	return (struct ur_gid){
		{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, g->b[13], g->b[14], g->b[15]}};
}

struct ur_gid ur_neigh_link_local(const uint8_t mac[6])
{
	return (struct ur_gid){{0xfe, 0x80, 0, 0, 0, 0, 0, 0, (uint8_t)(mac[0] ^ 2), mac[1], mac[2],
				0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

uint32_t ur_csum_add(uint32_t sum, const uint8_t *p, size_t len)
{
	for (; len > 1; len -= 2, p += 2)
		sum += (uint32_t)p[0] << 8 | p[1];
	if (len)
		sum += (uint32_t)p[0] << 8;
	return sum;
}

uint16_t ur_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

uint32_t ur_csum_pseudo6(const uint8_t src[16], const uint8_t dst[16], uint32_t len)
{
	uint32_t sum = ur_csum_add(ur_csum_add(0, src, 16), dst, 16);

	return sum + (len >> 16) + (len & 0xffff) + UR_ICMP6_PROTO;
}

/* Bytes in and out of the ring at a free-running position. */
static void ring_put(struct ur_neigh_queue *q, uint32_t at, const uint8_t *src, uint32_t len)
{
	uint32_t pos = at % UR_NEIGH_QUEUE_BYTES;
	uint32_t first = len < UR_NEIGH_QUEUE_BYTES - pos ? len : UR_NEIGH_QUEUE_BYTES - pos;

	memcpy(q->ring + pos, src, first);
	memcpy(q->ring, src + first, len - first);
}

static void ring_get(const struct ur_neigh_queue *q, uint32_t at, uint8_t *dst, uint32_t len)
{
	uint32_t pos = at % UR_NEIGH_QUEUE_BYTES;
	uint32_t first = len < UR_NEIGH_QUEUE_BYTES - pos ? len : UR_NEIGH_QUEUE_BYTES - pos;

	memcpy(dst, q->ring + pos, first);
	memcpy(dst + first, q->ring, len - first);
}

size_t ur_neigh_output(struct ur_neigh *n, uint8_t *buf, size_t cap)
{
	struct ur_neigh_queue *q = &n->out;

	while (q->head != q->tail) {
		uint8_t size[2];
		uint32_t len, at = q->head;

		ring_get(q, at, size, 2);
		len = (uint32_t)size[0] << 8 | size[1];
		q->head = at + 2 + len;
		if (len <= cap) {
			ring_get(q, at + 2, buf, len);
			return len;
		}
	}
	return 0;
}

/* Queues what was written to the cursor over buf, padded to the minimum. */
static bool queue_frame(struct ur_neigh *n, uint8_t *buf, struct ur_cursor *c)
{
	struct ur_neigh_queue *q = &n->out;
	uint32_t len = (uint32_t)(c->p - buf);
	uint8_t size[2];

	if (len < FRAME_MIN) {
		ur_put_zero(c, FRAME_MIN - len);
		len = FRAME_MIN;
	}
	if (c->bad || UR_NEIGH_QUEUE_BYTES - (q->tail - q->head) < len + 2)
		return false;
	size[0] = (uint8_t)(len >> 8);
	size[1] = (uint8_t)len;
	ring_put(q, q->tail, size, 2);
	ring_put(q, q->tail + 2, buf, len);
	q->tail += len + 2;
	return true;
}

static void put_eth(const struct ur_neigh *n, struct ur_cursor *c, const uint8_t dmac[6],
		    uint16_t type)
{
	ur_put_bytes(c, dmac, 6);
	ur_put_bytes(c, n->attr.mac, 6);
	if (n->attr.has_vlan) {
		ur_put16(c, UR_ETHERTYPE_VLAN);
		ur_put16(c, n->attr.vlan_tci);
	}
	ur_put16(c, type);
}

static void put_csum(uint8_t to[2], uint32_t sum)
{
	uint16_t csum = (uint16_t)~ur_csum_fold(sum);

	to[0] = (uint8_t)(csum >> 8);
	to[1] = (uint8_t)csum;
}

/* `option`: four bytes of options, or 0. */
static void put_ipv4(struct ur_cursor *c, uint8_t tos, uint8_t ttl, uint8_t proto,
		     const struct ur_gid *src, const struct ur_gid *dst, uint32_t option,
		     size_t len)
{
	size_t head = UR_IPV4_BYTES + (option ? 4 : 0);
	uint8_t *ip = c->p;

	ur_put8(c, (uint8_t)(0x40 | head / 4));
	ur_put8(c, tos);
	ur_put16(c, (uint16_t)(head + len));
	ur_put32(c, 0x00004000); /* id 0, DF */
	ur_put8(c, ttl);
	ur_put8(c, proto);
	ur_put16(c, 0);
	ur_put32(c, ur_gid_ipv4(src));
	ur_put32(c, ur_gid_ipv4(dst));
	if (option)
		ur_put32(c, option);
	if (!c->bad)
		put_csum(ip + 10, ur_csum_add(0, ip, head));
}

bool ur_neigh_send_arp(struct ur_neigh *n, uint16_t op, const uint8_t dmac[6],
		       const struct ur_gid *src, const uint8_t tha[6], const struct ur_gid *target)
{
	uint8_t buf[UR_ETH_BYTES + UR_VLAN_BYTES + FRAME_MIN];
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));

	put_eth(n, &c, dmac, UR_ETHERTYPE_ARP);
	ur_put16(&c, 1);
	ur_put16(&c, UR_ETHERTYPE_IPV4);
	ur_put8(&c, 6);
	ur_put8(&c, 4);
	ur_put16(&c, op);
	ur_put_bytes(&c, n->attr.mac, 6);
	ur_put32(&c, ur_gid_ipv4(src));
	ur_put_bytes(&c, tha, 6);
	ur_put32(&c, ur_gid_ipv4(target));
	return queue_frame(n, buf, &c);
}

static void put_ipv6(struct ur_cursor *c, const struct ur_gid *src, const struct ur_gid *dst,
		     uint8_t tc, uint8_t next, uint8_t hop_limit, size_t len)
{
	ur_put32(c, 0x60000000u | (uint32_t)tc << 20);
	ur_put16(c, (uint16_t)len);
	ur_put8(c, next);
	ur_put8(c, hop_limit);
	ur_put_bytes(c, src->b, 16);
	ur_put_bytes(c, dst->b, 16);
}

/* Fills in the checksum, two bytes behind the start of the message that ends at the cursor. */
static void finish_icmp6(const struct ur_cursor *c, uint8_t *icmp, const struct ur_gid *src,
			 const struct ur_gid *dst)
{
	size_t len = (size_t)(c->p - icmp);
	uint16_t sum = (uint16_t)~ur_csum_fold(
		ur_csum_add(ur_csum_pseudo6(src->b, dst->b, (uint32_t)len), icmp, len));

	icmp[2] = (uint8_t)(sum >> 8);
	icmp[3] = (uint8_t)sum;
}

/* Both ND messages: type, 32 bits of flags, target and one link-layer address option. */
static bool send_nd(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
		    const struct ur_gid *dst, uint8_t type, uint32_t flags,
		    const struct ur_gid *target, uint8_t option)
{
	uint8_t buf[UR_ETH_BYTES + UR_VLAN_BYTES + UR_IPV6_BYTES + UR_ND_BYTES + UR_ND_OPT_BYTES];
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));
	uint8_t *icmp;

	put_eth(n, &c, dmac, UR_ETHERTYPE_IPV6);
	put_ipv6(&c, src, dst, 0, UR_ICMP6_PROTO, 255, UR_ND_BYTES + UR_ND_OPT_BYTES);
	icmp = c.p;
	ur_put8(&c, type);
	ur_put8(&c, 0);
	ur_put16(&c, 0);
	ur_put32(&c, flags);
	ur_put_bytes(&c, target->b, 16);
	ur_put8(&c, option);
	ur_put8(&c, UR_ND_OPT_BYTES / 8);
	ur_put_bytes(&c, n->attr.mac, 6);
	finish_icmp6(&c, icmp, src, dst);
	return queue_frame(n, buf, &c);
}

bool ur_neigh_send_solicit(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
			   const struct ur_gid *dst, const struct ur_gid *target)
{
	return send_nd(n, dmac, src, dst, UR_ND_SOLICIT, 0, target, UR_ND_OPT_SLLA);
}

bool ur_neigh_send_advert(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *dst,
			  const struct ur_gid *target, uint32_t flags)
{
	return send_nd(n, dmac, target, dst, UR_ND_ADVERT, flags, target, UR_ND_OPT_TLLA);
}

/* RFC 3810 5: from a link-local address, hop limit 1, and a router alert in a hop-by-hop header. */
bool ur_neigh_send_mld(struct ur_neigh *n, const struct ur_gid *src, const struct ur_gid *dst,
		       uint8_t type, const uint8_t *body, size_t len)
{
	static const uint8_t alert[] = {UR_ICMP6_PROTO, 0, 5, 2, 0, 0, 1, 0};
	uint8_t dmac[6];
	uint8_t buf[UR_ETH_BYTES + UR_VLAN_BYTES + UR_IPV6_BYTES + sizeof(alert) + 4 +
		    UR_MLD_BYTES_MAX];
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));
	uint8_t *icmp;

	ur_gid_group_mac(dst, dmac);
	put_eth(n, &c, dmac, UR_ETHERTYPE_IPV6);
	put_ipv6(&c, src, dst, 0, UR_HOP_BY_HOP_PROTO, 1, sizeof(alert) + 4 + len);
	ur_put_bytes(&c, alert, sizeof(alert));
	icmp = c.p;
	ur_put32(&c, (uint32_t)type << 24);
	ur_put_bytes(&c, body, len);
	if (c.bad)
		return false;
	finish_icmp6(&c, icmp, src, dst);
	return queue_frame(n, buf, &c);
}

/* RFC 3376 4: TTL 1, precedence of internetwork control, a router alert. */
bool ur_neigh_send_igmp(struct ur_neigh *n, const struct ur_gid *dst, uint8_t *msg, size_t len)
{
	const struct ur_neigh_addr *src = ur_neigh_source(n, dst);
	uint8_t buf[UR_ETH_BYTES + UR_VLAN_BYTES + UR_IPV4_BYTES + 4 + UR_IGMP_BYTES_MAX], dmac[6];
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));

	if (!src)
		return false;
	msg[2] = msg[3] = 0;
	put_csum(msg + 2, ur_csum_add(0, msg, len));
	ur_gid_group_mac(dst, dmac);
	put_eth(n, &c, dmac, UR_ETHERTYPE_IPV4);
	put_ipv4(&c, 0xc0, 1, UR_IGMP_PROTO, &src->gid, dst, UR_ROUTER_ALERT, len);
	ur_put_bytes(&c, msg, len);
	return queue_frame(n, buf, &c);
}

bool ur_neigh_send_pong4(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
			 const struct ur_gid *dst, uint8_t tos, const uint8_t *icmp, size_t len)
{
	uint8_t buf[UR_NEIGH_FRAME_MAX], *reply;
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));

	put_eth(n, &c, dmac, UR_ETHERTYPE_IPV4);
	put_ipv4(&c, tos, 64, UR_ICMP4_PROTO, src, dst, 0, len);
	reply = c.p;
	ur_put32(&c, 0); /* echo reply, code 0, checksum to come */
	ur_put_bytes(&c, icmp + 4, len - 4);
	if (c.bad)
		return false;
	put_csum(reply + 2, ur_csum_add(0, reply, len));
	return queue_frame(n, buf, &c);
}

bool ur_neigh_send_pong6(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
			 const struct ur_gid *dst, uint8_t tc, const uint8_t *icmp, size_t len)
{
	uint8_t buf[UR_NEIGH_FRAME_MAX], *reply;
	struct ur_cursor c = ur_cursor(buf, sizeof(buf));

	put_eth(n, &c, dmac, UR_ETHERTYPE_IPV6);
	put_ipv6(&c, src, dst, tc, UR_ICMP6_PROTO, 64, len);
	reply = c.p;
	ur_put32(&c, (uint32_t)UR_ICMP6_REPLY << 24);
	ur_put_bytes(&c, icmp + 4, len - 4);
	if (c.bad)
		return false;
	finish_icmp6(&c, reply, src, dst);
	return queue_frame(n, buf, &c);
}
