/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/assert.h"
#include "wire/path.h"

#define DEFAULT_TTL 64
#define IPV4_DF	    0x4000

/* WIRE-IP-02 */
static void put_ipv4(struct ur_cursor *c, const struct ur_path_attr *attr, uint8_t ttl)
{
	ur_put8(c, 0x45);
	ur_put8(c, attr->tos);
	ur_put16(c, 0); /* length, see ur_path_write() */
	ur_put16(c, 0); /* id */
	ur_put16(c, IPV4_DF);
	ur_put8(c, ttl);
	ur_put8(c, UR_IPPROTO_UDP);
	ur_put16(c, 0); /* checksum, see ur_path_write() */
	ur_put_bytes(c, attr->src.b + 12, 4);
	ur_put_bytes(c, attr->dst.b + 12, 4);
}

static void put_ipv6(struct ur_cursor *c, const struct ur_path_attr *attr, uint8_t ttl)
{
	ur_put32(c, 6u << 28 | (uint32_t)attr->tos << 20 | (attr->flow_label & 0xfffff));
	ur_put16(c, 0); /* payload length, see ur_path_write() */
	ur_put8(c, UR_IPPROTO_UDP);
	ur_put8(c, ttl);
	ur_put_bytes(c, attr->src.b, 16);
	ur_put_bytes(c, attr->dst.b, 16);
}

static uint32_t sum_words(const uint8_t *p, unsigned len)
{
	struct ur_cursor c = ur_cursor_ro(p, len);
	uint32_t sum = 0;

	while (ur_cursor_left(&c))
		sum += ur_get16(&c);
	return sum;
}

/* `first`: of the bytes of an IPv4 address. */
static bool is_host(uint8_t first)
{
	return first && first != 127 && first < 224;
}

void ur_path_init(struct ur_path *path, const struct ur_path_attr *attr)
{
	uint8_t ttl = attr->ttl ? attr->ttl : DEFAULT_TTL;
	struct ur_cursor c;

	UR_ASSERT(ur_gid_is_ipv4(&attr->src) == ur_gid_is_ipv4(&attr->dst));
	memset(path, 0, sizeof(*path));
	path->v6 = !ur_gid_is_ipv4(&attr->dst);

	c = ur_cursor(path->hdr, sizeof(path->hdr));
	ur_put_bytes(&c, attr->dmac, 6);
	ur_put_bytes(&c, attr->smac, 6);
	if (attr->has_vlan) {
		ur_put16(&c, UR_ETHERTYPE_VLAN);
		ur_put16(&c, attr->vlan_tci);
	}
	ur_put16(&c, path->v6 ? UR_ETHERTYPE_IPV6 : UR_ETHERTYPE_IPV4);
	path->l3_off = (uint8_t)(c.p - path->hdr);
	if (path->v6) {
		put_ipv6(&c, attr, ttl);
	} else {
		put_ipv4(&c, attr, ttl);
		path->csum_part = sum_words(path->hdr + path->l3_off, UR_IPV4_BYTES);
	}
	ur_put16(&c, attr->sport);
	ur_put16(&c, UR_ROCE_UDP_PORT);
	ur_put32(&c, 0); /* length, see ur_path_write(), and no checksum */
	path->len = (uint8_t)(c.p - path->hdr);
	path->plain = path->len == UR_PATH_MIN_BYTES && is_host(attr->dst.b[12]);
	UR_ASSERT(!c.bad);
}

void ur_path_set_tos(struct ur_path *path, uint8_t tos, uint16_t vlan_tci)
{
	uint8_t *ip = path->hdr + path->l3_off;

	if (path->l3_off > UR_ETH_BYTES)
		ur_store16(path->hdr + UR_ETH_BYTES, vlan_tci);
	if (path->v6) {
		ip[0] = (uint8_t)(6 << 4 | tos >> 4);
		ip[1] = (uint8_t)(tos << 4 | (ip[1] & 0xf));
	} else {
		path->csum_part += tos;
		path->csum_part -= ip[1];
		ip[1] = tos;
	}
}

void ur_path_set_sport(struct ur_path *path, uint16_t sport)
{
	UR_ASSERT(path->len >= UR_PATH_MIN_BYTES);
	ur_store16(path->hdr + path->len - UR_UDP_BYTES, sport);
}

/* WIRE-UDP-02 */
uint16_t ur_path_sport(uint32_t flow_label, struct ur_qpn lqpn, struct ur_qpn rqpn)
{
	if (!flow_label) {
		/* The hash that other RoCEv2 senders use: the product of the QPNs, folded. */
		uint64_t mix = (uint64_t)lqpn.v * rqpn.v;

		mix ^= mix >> 20;
		mix ^= mix >> 40;
		flow_label = (uint32_t)mix;
	}
	flow_label &= 0xfffff;
	return (uint16_t)(((flow_label & 0x3fff) ^ flow_label >> 14) | 0xc000);
}
