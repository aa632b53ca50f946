/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_MAD_PATH_H
#define UR_WIRE_MAD_PATH_H

#include <stdint.h>

#include "wire/mad.h"
#include "wire/packet.h"
#include "wire/path.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How a management datagram travels over Ethernet (docs/design/management.md).
 *
 * - hop: to 01-80-C2-00-00-0E and ff02::1, from the sender's MAC address and its link-local address:
 *   one link, no further, because bridges do not forward this group. The hop limit is 255, and a
 *   receiver drops other values.
 * - LID: from and to 02-4C-49-44-hh-ll and fe80::4c:49ff:fe44:hhll, where hhll is the LID.
 * - IP: to and from an ordinary address of an endpoint.
 * - local: from and to a client on this node; never on a wire.
 *
 * Thread class: pure functions.
 */
enum ur_mad_way { UR_MAD_HOP, UR_MAD_LID, UR_MAD_IP, UR_MAD_LOCAL };

#define UR_MAD_TOS	 (56 << 2) /* DSCP CS7 */
#define UR_MAD_PRIORITY	 7	   /* 802.1Q, where there is a tag */
#define UR_MAD_HOP_LIMIT 255

/* The MAC address of the group that hop packets go to. */
extern const uint8_t ur_mad_hop_mac[6];

/* True for the destination MAC address of a hop or LID packet: what a port has to let through. */
bool ur_mad_is_mgmt_mac(const uint8_t dmac[6]);

/* The way of a decoded packet. Sets *slid and *dlid if it is UR_MAD_LID, otherwise both to 0xffff. */
enum ur_mad_way ur_mad_way_of(const struct ur_packet *p, uint16_t *slid, uint16_t *dlid);

/*
 * True if a packet whose ICRC is right is a MAD that its queue pair takes: SMPs on QP0, other classes on QP1
 * with its Q_Key (IBA 13.5.1), and by hop only what the neighbour itself has sent. p->bth.dqpn is 0 or 1 then.
 */
bool ur_mad_is_valid(const struct ur_packet *p);

/* Headers of a hop packet from `smac`, of a LID packet; untagged. */
void ur_mad_hop_path(struct ur_path *path, const uint8_t smac[6]);
void ur_mad_lid_path(struct ur_path *path, uint16_t slid, uint16_t dlid);

/*
 * Writes the headers from Ethernet to DETH of a MAD, for a UD SEND-only packet of UR_MAD_BYTES payload.
 * `hdr` has UR_HDR_MAX bytes. Returns their length; ur_icrc_append() finishes the frame.
 */
unsigned ur_mad_headers(uint8_t *hdr, const struct ur_path *path, struct ur_qpn dqpn,
			struct ur_qpn sqpn, struct ur_psn psn);
/* Bytes of a frame with a MAD on this path, with ICRC. */
#define UR_MAD_FRAME_BYTES(path)                                                                   \
	((unsigned)(path)->len + UR_BTH_BYTES + UR_DETH_BYTES + UR_MAD_BYTES + UR_ICRC_BYTES)
/* The whole frame, with ICRC; `frame` has UR_MAD_FRAME_BYTES(path). Returns its length. */
unsigned ur_mad_frame(uint8_t *frame, const struct ur_path *path, struct ur_qpn dqpn,
		      struct ur_qpn sqpn, struct ur_psn psn, const uint8_t mad[UR_MAD_BYTES]);

/* The EUI-64 of a MAC address, a port's GUID. */
uint64_t ur_mac_guid(const uint8_t mac[6]);

#ifdef __cplusplus
}
#endif

#endif
