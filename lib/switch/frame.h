/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_FRAME_H
#define UR_SWITCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/*
 * What a switch reads in a frame, and what it changes. Everything is bounds-checked: the frame is
 * whatever a port has received.
 *
 * Thread class: pure functions.
 */
struct ur_switch_headers {
	bool group_src; /* the source is a group address, which is invalid */
	bool group_dst; /* multicast or broadcast */
	bool reserved;	/* destination 01-80-C2-00-00-00 to -0F: for the next device only */
	bool neighbor;	/* destination 01-80-C2-00-00-0E */
	bool tagged;
	uint16_t tci; /* if tagged */
	uint8_t l3_off;
	uint8_t version; /* of IP: 4 or 6; 0: no IP header */
	uint8_t tos;	 /* if version; the traffic class of IPv6 */
	bool roce;	 /* RoCEv2, not a fragment: the fields below are set */
	bool mad;	 /* UD SEND-only to QP0 or QP1: may be a management packet */
	uint16_t sport;
	const uint8_t
		*bth; /* in the frame; BTH_BYTES are there, and those of an XTH if op says so */
	uint32_t op;  /* enum ur_op_flags; 0: unknown, or too short for its XTH */
	struct ur_gid dst; /* IP destination */
	uint16_t lid;	   /* of a destination 02-4C-49-44-hh-ll, else 0 */
};

/* False: the frame is too short for its Ethernet header or tag. */
bool ur_switch_headers_read(const uint8_t *frame, uint32_t len, struct ur_switch_headers *h);

/* Whether the ECN field is ECT(0) or ECT(1), so that the frame can be marked. */
static inline bool ur_switch_can_mark(const struct ur_switch_headers *h)
{
	return h->version && ((h->tos & 3) == 1 || (h->tos & 3) == 2);
}

/* Changes of a frame between input and output. */
enum ur_switch_edit {
	UR_SWITCH_PUSH = 1,  /* insert a tag */
	UR_SWITCH_POP = 2,   /* remove the tag */
	UR_SWITCH_RETAG = 4, /* change the tag's VLAN, keep the rest */
	UR_SWITCH_CE = 8,    /* mark CE, correct IPv4's checksum; the ICRC masks both (IBA A17) */
};

#define UR_SWITCH_HEAD_MAX 40 /* Ethernet header, tag, IPv4 header without options */

/*
 * Writes the changed beginning of a frame: head[0, return value) takes the place of
 * frame[0, *skip). `tci`: of PUSH; the low 12 bits are RETAG's VLAN. The edits fit the frame's headers: CE needs
 * ur_switch_can_mark().
 */
uint8_t ur_switch_edit(const uint8_t *frame, unsigned edits, uint16_t tci,
		       uint8_t head[UR_SWITCH_HEAD_MAX], uint8_t *skip);

#endif
