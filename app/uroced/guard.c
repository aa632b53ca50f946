/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include <string.h>

#include "edge/lease_msg.h"
#include "switch/frame.h"
#include "wire/bytes.h"
#include "wire/cm_msg.h"
#include "wire/opcode.h"

#define ETH_BYTES  14
#define ARP_BYTES  28
#define IP4_BYTES  20
#define IP6_BYTES  40
#define TYPE_IP4   0x0800
#define TYPE_ARP   0x0806
#define TYPE_VLAN  0x8100
#define TYPE_IP6   0x86dd
#define TYPE_SVLAN 0x88a8
#define ICMP6	   58
#define FRAGMENT   44
#define ND_FIRST   133 /* router solicitation */
#define ND_LAST	   137 /* redirect */
#define MLD_FIRST  130
#define MLD_LAST   132
#define MLD2	   143
#define SOLICIT	   135
#define ADVERT	   136
#define OPT_SLLA   1
#define OPT_TLLA   2

void guard_init(struct guard *g, const uint8_t mac[6], uint32_t address, uint8_t number,
		bool manage)
{
	*g = (struct guard){.manage = manage, .number = number, .ip6 = {0xfe, 0x80}};
	memcpy(g->mac, mac, 6);
	ur_store32(g->ip4, address);
	/* EUI-64, RFC 4291 appendix A */
	memcpy(g->ip6 + 8, mac, 3);
	g->ip6[8] ^= 2;
	g->ip6[11] = 0xff;
	g->ip6[12] = 0xfe;
	memcpy(g->ip6 + 13, mac + 3, 3);
}

static bool is_zero(const uint8_t *p, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

static enum guard_reason check_arp(const struct guard *g, const uint8_t *p, uint32_t len)
{
	static const uint8_t ethernet_ip4[6] = {0, 1, 8, 0, 6, 4};

	if (len < ARP_BYTES)
		return GUARD_TRUNCATED;
	if (memcmp(p, ethernet_ip4, sizeof(ethernet_ip4)) != 0 || memcmp(p + 8, g->mac, 6) != 0 ||
	    (memcmp(p + 14, g->ip4, 4) != 0 && !is_zero(p + 14, 4)))
		return GUARD_ARP;
	return GUARD_PASS;
}

static enum guard_reason check_ip4(const struct guard *g, const uint8_t *p, uint32_t len)
{
	uint32_t header;

	if (len < IP4_BYTES)
		return GUARD_TRUNCATED;
	header = (p[0] & 15) * 4u;
	if (p[0] >> 4 != 4 || header < IP4_BYTES || ur_load16(p + 2) < header ||
	    ur_load16(p + 2) > len)
		return GUARD_TRUNCATED;
	return memcmp(p + 12, g->ip4, 4) == 0 ? GUARD_PASS : GUARD_IP;
}

/* ---- IPv6 ---- */

/* The link-layer options of a message must name the client. */
static bool own_options(const struct guard *g, const uint8_t *p, uint32_t len)
{
	while (len >= 2) {
		uint32_t bytes = p[1] * 8u;

		if (!bytes || bytes > len)
			return false;
		if ((p[0] == OPT_SLLA || p[0] == OPT_TLLA) && memcmp(p + 2, g->mac, 6) != 0)
			return false;
		p += bytes;
		len -= bytes;
	}
	return !len;
}

/* [p, p + len): the ICMPv6 message. `anonymous`: its source is "::". */
static enum guard_reason check_nd(const struct guard *g, const uint8_t *p, uint32_t len,
				  bool anonymous)
{
	if (len < 4)
		return GUARD_TRUNCATED;
	if (p[0] == SOLICIT || p[0] == ADVERT) {
		if (len < 24)
			return GUARD_TRUNCATED;
		if (p[0] == ADVERT && memcmp(p + 8, g->ip6, 16) != 0)
			return GUARD_ND;
		return own_options(g, p + 24, len - 24) ? GUARD_PASS : GUARD_ND;
	}
	if (p[0] >= ND_FIRST && p[0] <= ND_LAST)
		return GUARD_ND;
	return anonymous ? GUARD_IP : GUARD_PASS;
}

static bool is_mld(uint8_t type)
{
	return (type >= MLD_FIRST && type <= MLD_LAST) || type == MLD2;
}

/* Behind extension headers neighbour discovery could hide: only MLD is let through there. */
static enum guard_reason check_hop_by_hop(const uint8_t *p, uint32_t len)
{
	uint32_t bytes = len >= 2 ? (p[1] + 1) * 8u : 8;

	if (len < bytes + 4)
		return GUARD_TRUNCATED;
	return p[0] == ICMP6 && is_mld(p[bytes]) ? GUARD_PASS : GUARD_ND;
}

static bool is_extension(uint8_t next)
{
	return next == FRAGMENT || next == 43 || next == 50 || next == 51 || next == 60 ||
	       next == 135 || next == 139 || next == 140;
}

static enum guard_reason check_ip6(const struct guard *g, const uint8_t *p, uint32_t len)
{
	bool anonymous, own;
	uint32_t payload;
	uint8_t next;

	if (len < IP6_BYTES || p[0] >> 4 != 6)
		return GUARD_TRUNCATED;
	payload = ur_load16(p + 4);
	next = p[6];
	if (payload > len - IP6_BYTES)
		return GUARD_TRUNCATED;
	anonymous = is_zero(p + 8, 16);
	own = memcmp(p + 8, g->ip6, 16) == 0;
	if (!own && !(anonymous && (next == ICMP6 || next == 0)))
		return GUARD_IP;
	p += IP6_BYTES;
	switch (next) {
	case 0:
		return check_hop_by_hop(p, payload);
	case ICMP6:
		return check_nd(g, p, payload, anonymous);
	default:
		return is_extension(next) ? GUARD_ND : GUARD_PASS;
	}
}

/* ---- numbers ---- */

static bool owns_qpn(const struct guard *g, uint32_t qpn)
{
	return qpn >> (24 - UR_LEASE_PREFIX_BITS) == g->number;
}

/* UROCED-GUARD-02. Of the connection manager: what names its sender. A REJ of no connection has no id. */
static bool owns_mad(const struct guard *g, const uint8_t *mad)
{
	const uint8_t *body = mad + UR_MAD_HDR_BYTES;
	bool own = ur_load32(body) >> (32 - UR_LEASE_PREFIX_BITS) == g->number;

	if (mad[1] != UR_MAD_CLASS_CM)
		return false;
	switch (ur_load16(mad + 16)) {
	case UR_CM_REQ:
		return own && owns_qpn(g, ur_load24(body + 32));
	case UR_CM_REP:
		return own && owns_qpn(g, ur_load24(body + 12));
	case UR_CM_REJ:
		return own || !ur_load32(body);
	case UR_CM_SIDR_REP:
		return body[4] || owns_qpn(g, ur_load24(body + 8));
	default:
		return own;
	}
}

/* Datagrams name their sender; its other packets do not. */
static bool owns_numbers(const struct guard *g, const uint8_t *frame, uint32_t len)
{
	struct ur_switch_headers h;
	const uint8_t *deth;
	uint32_t source;

	if (!ur_switch_headers_read(frame, len, &h) || !h.roce ||
	    (h.bth[0] & 0xe0) != UR_TRANSPORT_UD)
		return true;
	deth = h.bth + UR_BTH_BYTES;
	if ((uint32_t)(deth + UR_DETH_BYTES + UR_ICRC_BYTES - frame) > len)
		return false;
	source = ur_load24(deth + 5);
	if (h.mad)
		return source == UR_GSI_QPN && ur_load24(h.bth + 5) == UR_GSI_QPN &&
		       owns_mad(g, deth + UR_DETH_BYTES);
	return owns_qpn(g, source) && ur_load24(h.bth + 5) > UR_GSI_QPN;
}

/* ---- frames ---- */

static bool is_for_the_switch(const uint8_t *dst)
{
	static const uint8_t reserved[5] = {0x01, 0x80, 0xc2, 0x00, 0x00};
	static const uint8_t lid[4] = {0x02, 0x4c, 0x49, 0x44};

	return (memcmp(dst, reserved, 5) == 0 && dst[5] < 0x10) || memcmp(dst, lid, 4) == 0;
}

static enum guard_reason check_addresses(const struct guard *g, const uint8_t *frame, uint32_t len)
{
	uint16_t type;

	if (len < ETH_BYTES)
		return GUARD_TRUNCATED;
	if (memcmp(frame + 6, g->mac, 6) != 0)
		return GUARD_MAC;
	type = ur_load16(frame + 12);
	if (type == TYPE_VLAN || type == TYPE_SVLAN)
		return GUARD_VLAN;
	if (is_for_the_switch(frame))
		return g->manage ? GUARD_PASS : GUARD_MANAGEMENT;
	frame += ETH_BYTES;
	len -= ETH_BYTES;
	switch (type) {
	case TYPE_IP4:
		return check_ip4(g, frame, len);
	case TYPE_ARP:
		return check_arp(g, frame, len);
	case TYPE_IP6:
		return check_ip6(g, frame, len);
	default:
		return GUARD_TYPE;
	}
}

enum guard_reason guard_check(const struct guard *g, const uint8_t *frame, uint32_t len)
{
	enum guard_reason r = check_addresses(g, frame, len);

	if (r != GUARD_PASS || !g->number)
		return r;
	return owns_numbers(g, frame, len) ? GUARD_PASS : GUARD_QPN;
}

const char *guard_name(enum guard_reason reason)
{
	static const char *const name[] = {
#define X(NAME, name, text) #name,
		GUARD_REASONS(X)
#undef X
	};

	return name[reason];
}
