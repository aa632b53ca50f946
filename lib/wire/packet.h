/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_PACKET_H
#define UR_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/drop.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/roce.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A decoded RoCEv2 packet: Ethernet, an optional 802.1Q tag, IPv4 or IPv6, UDP, BTH and the
 * extended headers of its opcode. Values are in host byte order.
 *
 * Thread class: pure functions.
 */
#define UR_ETH_BYTES	  14
#define UR_VLAN_BYTES	  4
#define UR_IPV4_BYTES	  20 /* without options; a packet with options is not accepted as RoCE */
#define UR_IPV6_BYTES	  40
#define UR_UDP_BYTES	  8
#define UR_HDR_MAX	  128 /* enough for all headers, Ethernet to the last extended header */
#define UR_IPPROTO_UDP	  17
#define UR_ETHERTYPE_VLAN 0x8100
#define UR_ETHERTYPE_IPV4 0x0800
#define UR_ETHERTYPE_ARP  0x0806
#define UR_ETHERTYPE_IPV6 0x86dd

/* A GID: 16 bytes in network order. An IPv4 address is mapped to ::ffff:a.b.c.d. */
struct ur_gid {
	uint8_t b[16];
};

static inline bool ur_gid_eq(const struct ur_gid *a, const struct ur_gid *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

static inline struct ur_gid ur_gid_from_ipv4(uint32_t addr)
{
	return (struct ur_gid){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, (uint8_t)(addr >> 24),
				(uint8_t)(addr >> 16), (uint8_t)(addr >> 8), (uint8_t)addr}};
}

static inline bool ur_gid_is_ipv4(const struct ur_gid *g)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(g->b, mapped, 12) == 0;
}

#define UR_GROUP_QPN 0xffffffu /* of a packet to a multicast group (IBA 9.6.1.2, 10.5) */

/* 224.0.0.0/4 or ff00::/8. As an MGID it has the same form (IBA annex A17.4.5): nothing maps one to the other. */
static inline bool ur_gid_is_multicast(const struct ur_gid *g)
{
	return g->b[0] == 0xff || (ur_gid_is_ipv4(g) && g->b[12] >> 4 == 0xe);
}

/* The MAC address of such a group (RFC 1112 6.4, RFC 2464 7). */
static inline void ur_gid_group_mac(const struct ur_gid *g, uint8_t mac[6])
{
	const uint8_t v4[6] = {0x01, 0x00, 0x5e, (uint8_t)(g->b[13] & 0x7f), g->b[14], g->b[15]};
	const uint8_t v6[6] = {0x33, 0x33, g->b[12], g->b[13], g->b[14], g->b[15]};

	memcpy(mac, ur_gid_is_ipv4(g) ? v4 : v6, 6);
}

/* The fields of an IPv4 or IPv6 header that may differ between packets. */
struct ur_ip {
	bool v6;
	uint8_t tos;	     /* DSCP and ECN; the traffic class of IPv6 */
	uint8_t ttl;	     /* hop limit of IPv6 */
	uint16_t len;	     /* total length (IPv4) or payload length (IPv6), bytes */
	uint16_t id;	     /* IPv4 only */
	uint16_t frag;	     /* IPv4 only: flags and fragment offset, as on the wire */
	uint16_t csum;	     /* IPv4 only */
	uint32_t flow_label; /* IPv6 only, 20 bits */
	struct ur_gid src, dst;
};

struct ur_packet {
	/* Offsets from the start of the frame, bytes. */
	uint16_t l3_off, bth_off, payload_off, icrc_off;
	uint16_t frame_len; /* to the end of the ICRC; anything after it is Ethernet padding */

	uint8_t dmac[6], smac[6];
	bool has_vlan;
	uint16_t vlan_tci;
	struct ur_ip ip;
	uint16_t sport, dport, udp_len, udp_csum;

	uint32_t op; /* enum ur_op_flags of bth.opcode */
	struct ur_bth bth;
	struct ur_deth deth;	       /* op & UR_OP_DETH */
	struct ur_reth reth;	       /* op & UR_OP_RETH */
	struct ur_aeth aeth;	       /* op & UR_OP_AETH */
	struct ur_atomiceth atomiceth; /* op & UR_OP_ATOMICETH */
	uint64_t atomic_ack;	       /* op & UR_OP_ATOMICACKETH */
	uint32_t imm;		       /* op & UR_OP_IMM, host order */
	uint32_t ieth;		       /* op & UR_OP_IETH: the R_Key */
	struct ur_xth xth;	       /* op & UR_OP_XTH */
	struct ur_xaeth xaeth;	       /* op & UR_OP_XAETH */
	struct ur_xrth xrth;	       /* op & UR_OP_XRTH */
	struct ur_asth asth;	       /* op & UR_OP_ASTH */
	struct ur_ndth ndth;	       /* op & UR_OP_NDTH */
	struct ur_bpth bpth;	       /* op & UR_OP_BPTH */
	uint32_t pool;		       /* op & UR_OP_POOL */

	const uint8_t *payload; /* in the frame */
	uint16_t payload_len;	/* without pad */
	uint32_t icrc;		/* as transmitted, read little-endian */
};

/*
 * Decodes the frame [frame, frame + len). Of the extended headers, only those in `op` are written.
 * The packet points into the frame, which must outlive it.
 *
 * Returns
 *   UR_DROP_NONE      *p is a RoCEv2 packet with a known opcode (CNP included). Its ICRC has NOT
 *                     been checked, see icrc.h.
 *   UR_DROP_NOT_ROCE  other traffic: ARP, TCP, a UDP port other than 4791, a fragment. The caller
 *                     may pass it to another consumer.
 *   any other value   the packet is invalid for that reason; *p is partly written.
 *
 * Only checks that need no QP are made: lengths, IPv4 header checksum, TVer, pad.
 */
enum ur_drop ur_packet_decode(const uint8_t *frame, size_t len, struct ur_packet *p);

/*
 * Reads opcode and destination QPN of a frame that may be RoCEv2, to prefetch the state that it
 * will need. Nothing is validated, so the result is only a hint. Returns false if the frame is too
 * short.
 */
static inline bool ur_packet_peek(const uint8_t *frame, size_t len, uint8_t *opcode,
				  struct ur_qpn *qpn)
{
	size_t l3 = UR_ETH_BYTES, bth;

	if (len < UR_ETH_BYTES + UR_VLAN_BYTES)
		return false;
	if (frame[12] == 0x81 && frame[13] == 0)
		l3 += UR_VLAN_BYTES;
	bth = l3 + UR_UDP_BYTES + (frame[l3 - 2] == 0x08 ? UR_IPV4_BYTES : UR_IPV6_BYTES);
	if (len < bth + UR_BTH_BYTES)
		return false;
	*opcode = frame[bth];
	*qpn = ur_qpn((uint32_t)frame[bth + 5] << 16 | (uint32_t)frame[bth + 6] << 8 |
		      frame[bth + 7]);
	return true;
}

/*
 * Encodes headers, payload, pad (zeros) and p->icrc into `buf`. Lengths and checksums are taken
 * from *p; nothing is computed. Returns the number of bytes written, or 0 if `cap` is too small.
 * This is the slow and general way for tests and tools; path.h is the fast one.
 */
size_t ur_packet_encode(const struct ur_packet *p, uint8_t *buf, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
