/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap_tool.h"
#include "print/out.h"

#define PROTO_TCP 6

static void out_proto(struct ur_out *o, uint8_t proto)
{
	static const struct {
		uint8_t proto;
		const char *name;
	} names[] = {{1, "ICMP"},      {2, "IGMP"},   {PROTO_TCP, "TCP"}, {UR_IPPROTO_UDP, "UDP"},
		     {44, "fragment"}, {58, "ICMPv6"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].proto == proto) {
			ur_outf(o, "%s", names[i].name);
			return;
		}
	ur_outf(o, "IP protocol %u", proto);
}

static void out_arp(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_gid sender, target;
	uint16_t op;

	ur_take(c, 6);
	op = ur_get16(c);
	ur_take(c, 6);
	sender = ur_gid_from_ipv4(ur_get32(c));
	ur_take(c, 6);
	target = ur_gid_from_ipv4(ur_get32(c));
	if (c->bad) {
		ur_outf(o, "ARP, cut short");
		return;
	}
	ur_outf(o, op == 1 ? "ARP who-has " : "ARP reply to ");
	ur_out_gid(o, &target);
	ur_outf(o, op == 1 ? " tell " : " from ");
	ur_out_gid(o, &sender);
}

static void out_ports(struct ur_out *o, struct ur_cursor *c, uint8_t proto)
{
	uint16_t sport = ur_get16(c), dport = ur_get16(c);

	if (!c->bad && (proto == UR_IPPROTO_UDP || proto == PROTO_TCP))
		ur_outf(o, " ports %u > %u", sport, dport);
}

static void out_ipv4(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_gid src, dst;
	uint8_t first = ur_get8(c), proto;
	uint16_t frag;

	ur_take(c, 5);
	frag = ur_get16(c);
	ur_take(c, 1);
	proto = ur_get8(c);
	ur_take(c, 2);
	src = ur_gid_from_ipv4(ur_get32(c));
	dst = ur_gid_from_ipv4(ur_get32(c));
	if (c->bad) {
		ur_outf(o, "IPv4, cut short");
		return;
	}
	out_proto(o, proto);
	ur_outf(o, " ");
	ur_out_gid(o, &src);
	ur_outf(o, " > ");
	ur_out_gid(o, &dst);
	if (frag & 0x3fff) {
		ur_outf(o, " fragment at %u", (frag & 0x1fff) * 8);
	} else if ((first & 15) >= 5) {
		ur_take(c, (size_t)((first & 15) - 5) * 4);
		out_ports(o, c, proto);
	}
}

static void out_ipv6(struct ur_out *o, struct ur_cursor *c)
{
	struct ur_gid src = {{0}}, dst = {{0}};
	uint8_t proto;

	ur_take(c, 6);
	proto = ur_get8(c);
	ur_take(c, 1);
	ur_get_bytes(c, src.b, sizeof(src.b));
	ur_get_bytes(c, dst.b, sizeof(dst.b));
	if (c->bad) {
		ur_outf(o, "IPv6, cut short");
		return;
	}
	out_proto(o, proto);
	ur_outf(o, " ");
	ur_out_gid(o, &src);
	ur_outf(o, " > ");
	ur_out_gid(o, &dst);
	out_ports(o, c, proto);
}

void other_print(char *buf, size_t cap, const uint8_t *frame, size_t len)
{
	struct ur_cursor c = ur_cursor_ro(frame, len);
	struct ur_out o = ur_out(buf, cap);
	uint16_t type;

	ur_take(&c, 12);
	type = ur_get16(&c);
	if (type == UR_ETHERTYPE_VLAN) {
		ur_outf(&o, "vlan %u ", ur_get16(&c) & 0xfffu);
		type = ur_get16(&c);
	}
	if (c.bad)
		ur_outf(&o, "no Ethernet header");
	else if (type == UR_ETHERTYPE_ARP)
		out_arp(&o, &c);
	else if (type == UR_ETHERTYPE_IPV4)
		out_ipv4(&o, &c);
	else if (type == UR_ETHERTYPE_IPV6)
		out_ipv6(&o, &c);
	else
		ur_outf(&o, "Ethertype 0x%04x", type);
	ur_outf(&o, ", %zu bytes", len);
}
