/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/bytes.h"
#include "wire/packet.h"

#define IPV4_FRAGMENT	   0x3fff /* more-fragments flag and offset */
#define CNP_RESERVED_BYTES 16

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* With a correct checksum, the words of the header sum to 0xffff (RFC 791). */
static bool ipv4_csum_ok(const uint8_t *ip)
{
	uint64_t sum = 0;
	uint32_t word;

	/* Byte order does not change whether a one's complement sum is all ones. */
	for (unsigned i = 0; i < UR_IPV4_BYTES; i += sizeof(word)) {
		memcpy(&word, ip + i, sizeof(word));
		sum += word;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/*
 * Each of the four decoders below consumes its headers from the cursor. Step by step, `c->end`
 * moves down from the end of the frame to the start of the ICRC.
 */

static enum ur_drop decode_eth(struct ur_cursor *c, struct ur_packet *p)
{
	const uint8_t *eth = ur_take(c, UR_ETH_BYTES);
	uint16_t type;

	if (!eth)
		return UR_DROP_TRUNCATED;
	memcpy(p->dmac, eth, 6);
	memcpy(p->smac, eth + 6, 6);
	type = ur_load16(eth + 12);
	p->has_vlan = type == UR_ETHERTYPE_VLAN;
	p->vlan_tci = 0;
	p->l3_off = UR_ETH_BYTES;
	if (p->has_vlan) {
		const uint8_t *tag = ur_take(c, UR_VLAN_BYTES);

		if (!tag)
			return UR_DROP_TRUNCATED;
		p->vlan_tci = ur_load16(tag);
		type = ur_load16(tag + 2);
		p->l3_off = UR_ETH_BYTES + UR_VLAN_BYTES;
	}
	p->ip.v6 = type == UR_ETHERTYPE_IPV6;
	return p->ip.v6 || type == UR_ETHERTYPE_IPV4 ? UR_DROP_NONE : UR_DROP_NOT_ROCE;
}

/* Leaves the cursor at the UDP header. *ip_payload is the payload length by the IP header. */
static enum ur_drop decode_ipv4(struct ur_cursor *c, struct ur_packet *p, size_t *ip_payload)
{
	const uint8_t *ip = c->p;
	size_t left = ur_cursor_left(c);

	if (UNLIKELY(left < UR_IPV4_BYTES))
		return UR_DROP_TRUNCATED;
	if (UNLIKELY(ip[0] != 0x45))
		return ip[0] >> 4 == 4 && (ip[0] & 15) > 5 ? UR_DROP_NOT_ROCE : UR_DROP_IP_HEADER;
	p->ip.frag = ur_load16(ip + 6);
	/* WIRE-IP-02, WIRE-UDP-01 */
	if (UNLIKELY(ip[9] != UR_IPPROTO_UDP || p->ip.frag & IPV4_FRAGMENT))
		return UR_DROP_NOT_ROCE;
	if (UNLIKELY(left < UR_IPV4_BYTES + UR_UDP_BYTES))
		return UR_DROP_TRUNCATED;
	if (UNLIKELY(ur_load16(ip + UR_IPV4_BYTES + 2) != UR_ROCE_UDP_PORT))
		return UR_DROP_NOT_ROCE;
	if (UNLIKELY(!ipv4_csum_ok(ip)))
		return UR_DROP_IP_HEADER;
	p->ip.tos = ip[1];
	p->ip.len = ur_load16(ip + 2);
	p->ip.id = ur_load16(ip + 4);
	p->ip.ttl = ip[8];
	p->ip.csum = ur_load16(ip + 10);
	p->ip.flow_label = 0;
	p->ip.src = ur_gid_from_ipv4(ur_load32(ip + 12));
	p->ip.dst = ur_gid_from_ipv4(ur_load32(ip + 16));
	if (UNLIKELY(p->ip.len < UR_IPV4_BYTES))
		return UR_DROP_LENGTH;
	*ip_payload = p->ip.len - UR_IPV4_BYTES;
	c->p += UR_IPV4_BYTES;
	return UR_DROP_NONE;
}

static enum ur_drop decode_ipv6(struct ur_cursor *c, struct ur_packet *p, size_t *ip_payload)
{
	const uint8_t *ip = c->p;
	size_t left = ur_cursor_left(c);
	uint32_t first;

	if (UNLIKELY(left < UR_IPV6_BYTES))
		return UR_DROP_TRUNCATED;
	if (UNLIKELY(ip[0] >> 4 != 6))
		return UR_DROP_IP_HEADER;
	if (UNLIKELY(ip[6] != UR_IPPROTO_UDP))
		return UR_DROP_NOT_ROCE;
	if (UNLIKELY(left < UR_IPV6_BYTES + UR_UDP_BYTES))
		return UR_DROP_TRUNCATED;
	if (UNLIKELY(ur_load16(ip + UR_IPV6_BYTES + 2) != UR_ROCE_UDP_PORT))
		return UR_DROP_NOT_ROCE;
	first = ur_load32(ip);
	p->ip.tos = (uint8_t)(first >> 20);
	p->ip.flow_label = first & 0xfffff;
	p->ip.len = ur_load16(ip + 4);
	p->ip.ttl = ip[7];
	p->ip.id = p->ip.frag = p->ip.csum = 0;
	memcpy(p->ip.src.b, ip + 8, 16);
	memcpy(p->ip.dst.b, ip + 24, 16);
	*ip_payload = p->ip.len;
	c->p += UR_IPV6_BYTES;
	return UR_DROP_NONE;
}

/* The IP decoders have checked that the UDP header is complete. */
static enum ur_drop decode_udp(struct ur_cursor *c, const uint8_t *frame, size_t ip_payload,
			       struct ur_packet *p)
{
	const uint8_t *udp = c->p;
	size_t bth_off = (size_t)(udp - frame) + UR_UDP_BYTES;

	p->sport = ur_load16(udp);
	p->dport = ur_load16(udp + 2);
	p->udp_len = ur_load16(udp + 4);
	p->udp_csum = ur_load16(udp + 6);
	if (UNLIKELY(ip_payload > ur_cursor_left(c)))
		return UR_DROP_TRUNCATED;
	if (UNLIKELY(p->udp_len != ip_payload)) /* WIRE-IP-01 */
		return UR_DROP_LENGTH;
	if (UNLIKELY(ip_payload < UR_UDP_BYTES + UR_BTH_BYTES + UR_ICRC_BYTES))
		return UR_DROP_TRUNCATED;
	if (UNLIKELY(bth_off - UR_UDP_BYTES + ip_payload > UINT16_MAX))
		return UR_DROP_LENGTH; /* offsets are 16 bits; packets of any PMTU are far smaller */
	p->bth_off = (uint16_t)bth_off;
	p->frame_len = (uint16_t)(bth_off - UR_UDP_BYTES + ip_payload);
	p->icrc_off = (uint16_t)(p->frame_len - UR_ICRC_BYTES);
	p->icrc = __builtin_bswap32(ur_load32(frame + p->icrc_off));
	c->p += UR_UDP_BYTES;
	c->end = c->p + ip_payload - UR_UDP_BYTES - UR_ICRC_BYTES;
	return UR_DROP_NONE;
}

/* Of the answering end, and of the way to it. */
static __attribute__((noinline)) void get_status(struct ur_cursor *c, struct ur_packet *p)
{
	if (p->op & UR_OP_ASTH)
		ur_get_asth(c, &p->asth);
	if (p->op & UR_OP_NDTH)
		ur_get_ndth(c, &p->ndth);
	if (p->op & UR_OP_BPTH)
		ur_get_bpth(c, &p->bpth);
	if (p->op & UR_OP_POOL)
		p->pool = ur_get32(c);
}

static void get_ext(struct ur_cursor *c, struct ur_packet *p)
{
	if (p->op & UR_OP_DETH)
		ur_get_deth(c, &p->deth);
	if (p->op & UR_OP_XTH)
		ur_get_xth(c, &p->xth);
	if (p->op & UR_OP_RETH)
		ur_get_reth(c, &p->reth);
	if (p->op & UR_OP_ATOMICETH)
		ur_get_atomiceth(c, &p->atomiceth);
	if (p->op & UR_OP_AETH)
		ur_get_aeth(c, &p->aeth);
	if (UNLIKELY(p->op & UR_OP_XAETH))
		ur_get_xaeth(c, &p->xaeth);
	if (p->op & UR_OP_XRTH)
		ur_get_xrth(c, &p->xrth);
	if (UNLIKELY(p->op & (UR_OP_ASTH | UR_OP_NDTH | UR_OP_BPTH | UR_OP_POOL)))
		get_status(c, p);
	if (p->op & UR_OP_ATOMICACKETH)
		p->atomic_ack = ur_get64(c);
	if (p->op & UR_OP_IMM)
		p->imm = ur_get32(c);
	if (p->op & UR_OP_IETH)
		p->ieth = ur_get32(c);
}

static void put_ext(struct ur_cursor *c, const struct ur_packet *p)
{
	if (p->op & UR_OP_DETH)
		ur_put_deth(c, &p->deth);
	if (p->op & UR_OP_XTH)
		ur_put_xth(c, &p->xth);
	if (p->op & UR_OP_RETH)
		ur_put_reth(c, &p->reth);
	if (p->op & UR_OP_ATOMICETH)
		ur_put_atomiceth(c, &p->atomiceth);
	if (p->op & UR_OP_AETH)
		ur_put_aeth(c, &p->aeth);
	if (p->op & UR_OP_XAETH)
		ur_put_xaeth(c, &p->xaeth);
	if (p->op & UR_OP_XRTH)
		ur_put_xrth(c, &p->xrth);
	if (p->op & UR_OP_ASTH)
		ur_put_asth(c, &p->asth);
	if (p->op & UR_OP_NDTH)
		ur_put_ndth(c, &p->ndth);
	if (p->op & UR_OP_BPTH)
		ur_put_bpth(c, &p->bpth);
	if (p->op & UR_OP_POOL)
		ur_put32(c, p->pool);
	if (p->op & UR_OP_ATOMICACKETH)
		ur_put64(c, p->atomic_ack);
	if (p->op & UR_OP_IMM)
		ur_put32(c, p->imm);
	if (p->op & UR_OP_IETH)
		ur_put32(c, p->ieth);
}

/*
 * WIRE-PAD-01, WIRE-CNP-01. The payload must be padded to four bytes, and be empty if the opcode
 * carries none.
 */
static bool payload_fits(uint32_t op, size_t with_pad, uint8_t pad)
{
	if (LIKELY(op & UR_OP_PAYLOAD))
		return with_pad % 4 == 0 && pad <= with_pad;
	return with_pad == (op & UR_OP_CNP ? CNP_RESERVED_BYTES : 0) && pad == 0;
}

static enum ur_drop decode_roce(struct ur_cursor *c, const uint8_t *frame, struct ur_packet *p)
{
	const struct ur_opcode_info *info;
	size_t with_pad;

	ur_get_bth(c, &p->bth);
	if (UNLIKELY(p->bth.tver != 0)) /* WIRE-BTH-02 */
		return UR_DROP_TVER;
	info = &ur_opcodes[p->bth.opcode];
	p->op = info->flags;
	if (UNLIKELY(!p->op)) /* WIRE-OPCODE-01 */
		return UR_DROP_OPCODE;
	if (UNLIKELY(info->ext_bytes > ur_cursor_left(c)))
		return UR_DROP_TRUNCATED;
	get_ext(c, p); /* WIRE-EXT-01 */
	with_pad = ur_cursor_left(c);
	if (UNLIKELY(!payload_fits(p->op, with_pad, p->bth.pad)))
		return UR_DROP_LENGTH;
	p->payload = c->p;
	p->payload_off = (uint16_t)(c->p - frame);
	p->payload_len = (uint16_t)(with_pad - p->bth.pad);
	return UR_DROP_NONE;
}

enum ur_drop ur_packet_decode(const uint8_t *frame, size_t len, struct ur_packet *p)
{
	struct ur_cursor c = ur_cursor_ro(frame, len);
	size_t ip_payload = 0;
	enum ur_drop drop;

	drop = decode_eth(&c, p);
	if (UNLIKELY(drop))
		return drop;
	drop = p->ip.v6 ? decode_ipv6(&c, p, &ip_payload) : decode_ipv4(&c, p, &ip_payload);
	if (UNLIKELY(drop))
		return drop;
	drop = decode_udp(&c, frame, ip_payload, p);
	if (UNLIKELY(drop))
		return drop;
	return decode_roce(&c, frame, p);
}

static void put_eth(struct ur_cursor *c, const struct ur_packet *p)
{
	ur_put_bytes(c, p->dmac, 6);
	ur_put_bytes(c, p->smac, 6);
	if (p->has_vlan) {
		ur_put16(c, UR_ETHERTYPE_VLAN);
		ur_put16(c, p->vlan_tci);
	}
	ur_put16(c, p->ip.v6 ? UR_ETHERTYPE_IPV6 : UR_ETHERTYPE_IPV4);
}

static void put_ip(struct ur_cursor *c, const struct ur_ip *ip)
{
	if (ip->v6) {
		ur_put32(c, 6u << 28 | (uint32_t)ip->tos << 20 | (ip->flow_label & 0xfffff));
		ur_put16(c, ip->len);
		ur_put8(c, UR_IPPROTO_UDP);
		ur_put8(c, ip->ttl);
		ur_put_bytes(c, ip->src.b, 16);
		ur_put_bytes(c, ip->dst.b, 16);
		return;
	}
	ur_put8(c, 0x45);
	ur_put8(c, ip->tos);
	ur_put16(c, ip->len);
	ur_put16(c, ip->id);
	ur_put16(c, ip->frag);
	ur_put8(c, ip->ttl);
	ur_put8(c, UR_IPPROTO_UDP);
	ur_put16(c, ip->csum);
	ur_put_bytes(c, ip->src.b + 12, 4);
	ur_put_bytes(c, ip->dst.b + 12, 4);
}

size_t ur_packet_encode(const struct ur_packet *p, uint8_t *buf, size_t cap)
{
	struct ur_cursor c = ur_cursor(buf, cap);

	put_eth(&c, p);
	put_ip(&c, &p->ip);
	ur_put16(&c, p->sport);
	ur_put16(&c, p->dport);
	ur_put16(&c, p->udp_len);
	ur_put16(&c, p->udp_csum);
	ur_put_bth(&c, &p->bth);
	put_ext(&c, p);
	ur_put_bytes(&c, p->payload, p->payload_len);
	ur_put_zero(&c, p->bth.pad & 3);
	ur_put32(&c, __builtin_bswap32(p->icrc));
	return c.bad ? 0 : (size_t)(c.p - buf);
}
