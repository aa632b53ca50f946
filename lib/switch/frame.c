/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/frame.h"

#include <string.h>

#include "wire/assert.h"
#include "wire/bytes.h"
#include "wire/ext.h"
#include "wire/mad.h"
#include "wire/opcode.h"

#define ROCE_PORT     4791
#define IPV4_FRAGMENT 0x3fff /* more fragments, fragment offset */
#define UD_SEND_ONLY  0x64
#define MAD_UDP_BYTES (UR_UDP_BYTES + UR_BTH_BYTES + UR_DETH_BYTES + UR_MAD_BYTES + UR_ICRC_BYTES)
#define CE	      3

static bool has_prefix(const uint8_t *mac, const uint8_t *prefix, size_t len)
{
	return memcmp(mac, prefix, len) == 0;
}

static void read_mac(const uint8_t *f, struct ur_switch_headers *h)
{
	static const uint8_t bridge[] = {0x01, 0x80, 0xc2, 0, 0};
	static const uint8_t lid[] = {0x02, 0x4c, 0x49, 0x44}; /* docs/design/management.md */

	h->group_dst = f[0] & 1;
	h->group_src = f[6] & 1;
	h->reserved = has_prefix(f, bridge, sizeof(bridge)) && f[5] < 16;
	h->neighbor = h->reserved && f[5] == 0x0e;
	if (has_prefix(f, lid, sizeof(lid)))
		h->lid = ur_load16(f + 4);
}

/* `p` is where UDP begins, `len` what is left of the frame. */
static void read_udp(const uint8_t *p, uint32_t len, struct ur_switch_headers *h)
{
	const uint8_t *bth = p + UR_UDP_BYTES;

	if (len < UR_UDP_BYTES + UR_BTH_BYTES || ur_load16(p + 2) != ROCE_PORT)
		return;
	h->roce = true;
	h->sport = ur_load16(p);
	h->bth = bth;
	h->op = ur_op_flags(bth[0]);
	if (h->op & UR_OP_XTH && len < UR_UDP_BYTES + UR_BTH_BYTES + UR_XTH_BYTES + UR_ICRC_BYTES)
		h->op = 0;
	/* Nothing else has a way to VL15. */
	h->mad = bth[0] == UD_SEND_ONLY && ur_load24(bth + 5) <= 1 && len == MAD_UDP_BYTES &&
		 ur_load16(p + 4) == MAD_UDP_BYTES;
}

static void read_ipv4(const uint8_t *p, uint32_t len, struct ur_switch_headers *h)
{
	uint32_t ihl;

	if (len < UR_IPV4_BYTES || p[0] >> 4 != 4)
		return;
	ihl = (p[0] & 15u) * 4;
	if (ihl < UR_IPV4_BYTES || ihl > len)
		return;
	h->version = 4;
	h->tos = p[1];
	h->dst = ur_gid_from_ipv4(ur_load32(p + 16));
	if (p[9] == UR_IPPROTO_UDP && !(ur_load16(p + 6) & IPV4_FRAGMENT))
		read_udp(p + ihl, len - ihl, h);
}

static void read_ipv6(const uint8_t *p, uint32_t len, struct ur_switch_headers *h)
{
	if (len < UR_IPV6_BYTES || p[0] >> 4 != 6)
		return;
	h->version = 6;
	h->tos = (uint8_t)(ur_load16(p) >> 4);
	memcpy(h->dst.b, p + 24, 16);
	if (p[6] == UR_IPPROTO_UDP)
		read_udp(p + UR_IPV6_BYTES, len - UR_IPV6_BYTES, h);
}

bool ur_switch_headers_read(const uint8_t *frame, uint32_t len, struct ur_switch_headers *h)
{
	uint16_t type;

	*h = (struct ur_switch_headers){.l3_off = UR_ETH_BYTES};
	if (len < UR_ETH_BYTES)
		return false;
	read_mac(frame, h);
	type = ur_load16(frame + 12);
	if (type == UR_ETHERTYPE_VLAN) {
		if (len < UR_ETH_BYTES + UR_VLAN_BYTES)
			return false;
		h->tagged = true;
		h->tci = ur_load16(frame + 14);
		h->l3_off += UR_VLAN_BYTES;
		type = ur_load16(frame + 16);
	}
	if (type == UR_ETHERTYPE_IPV4)
		read_ipv4(frame + h->l3_off, len - h->l3_off, h);
	else if (type == UR_ETHERTYPE_IPV6)
		read_ipv6(frame + h->l3_off, len - h->l3_off, h);
	return true;
}

/* The checksum after a word changed from `was` to `is` (RFC 1624, equation 3). */
static uint16_t checksum_after(uint16_t sum, uint16_t was, uint16_t is)
{
	uint32_t s = (uint32_t)(uint16_t)~sum + (uint16_t)~was + is;

	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

/* SWITCH-ECN-01 */
static void mark(uint8_t *ip)
{
	uint16_t was = ur_load16(ip);

	if (ip[0] >> 4 == 6) {
		ip[1] |= CE << 4;
		return;
	}
	ip[1] |= CE;
	ur_store16(ip + 10, checksum_after(ur_load16(ip + 10), was, ur_load16(ip)));
}

uint8_t ur_switch_edit(const uint8_t *frame, unsigned edits, uint16_t tci,
		       uint8_t head[UR_SWITCH_HEAD_MAX], uint8_t *skip)
{
	bool tagged = ur_load16(frame + 12) == UR_ETHERTYPE_VLAN;
	uint8_t in = 12, out = 12, ip;

	memcpy(head, frame, 12);
	if (tagged) {
		in += UR_VLAN_BYTES;
		if (!(edits & UR_SWITCH_POP)) {
			memcpy(head + 12, frame + 12, UR_VLAN_BYTES);
			out += UR_VLAN_BYTES;
		}
	}
	if (edits & UR_SWITCH_RETAG)
		ur_store16(head + 14, (uint16_t)((ur_load16(head + 14) & 0xf000) | (tci & 0xfff)));
	if (edits & UR_SWITCH_PUSH) {
		UR_ASSERT(!tagged);
		ur_store16(head + 12, UR_ETHERTYPE_VLAN);
		ur_store16(head + 14, tci);
		out += UR_VLAN_BYTES;
	}
	memcpy(head + out, frame + in, 2);
	in += 2;
	out += 2;
	if (edits & UR_SWITCH_CE) {
		ip = frame[in] >> 4 == 6 ? 4 : UR_IPV4_BYTES;
		memcpy(head + out, frame + in, ip);
		mark(head + out);
		in += ip;
		out += ip;
	}
	*skip = in;
	return out;
}
