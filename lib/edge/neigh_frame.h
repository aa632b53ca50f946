/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_NEIGH_FRAME_H
#define UR_EDGE_NEIGH_FRAME_H

#include "edge/neigh.h"

/* Internal to the files of neigh: table, input, frames, groups. */

#define UR_ARP_BYTES	    28
#define UR_ARP_REQUEST	    1
#define UR_ARP_REPLY	    2
#define UR_ICMP4_PROTO	    1
#define UR_IGMP_PROTO	    2
#define UR_ICMP6_PROTO	    58
#define UR_ICMP4_ECHO	    8
#define UR_ICMP6_ECHO	    128
#define UR_ICMP6_REPLY	    129
#define UR_HOP_BY_HOP_PROTO 0
#define UR_MLD_QUERY	    130
#define UR_MLD1_REPORT	    131
#define UR_MLD1_DONE	    132
#define UR_MLD2_REPORT	    143
#define UR_MLD_BYTES_MAX    256 /* of a report's body */
#define UR_IGMP_QUERY	    0x11
#define UR_IGMP1_REPORT	    0x12
#define UR_IGMP2_REPORT	    0x16
#define UR_IGMP2_LEAVE	    0x17
#define UR_IGMP3_REPORT	    0x22
#define UR_IGMP_BYTES_MAX   264 /* of a message */
#define UR_ND_SOLICIT	    135
#define UR_ND_ADVERT	    136
#define UR_ND_BYTES	    24 /* solicitation and advertisement without options */
#define UR_ND_OPT_BYTES	    8  /* a link-layer address option */
#define UR_ND_OPT_SLLA	    1
#define UR_ND_OPT_TLLA	    2
#define UR_ND_SOLICITED	    0x40000000u
#define UR_ND_OVERRIDE	    0x20000000u

extern const uint8_t ur_mac_broadcast[6];
extern const struct ur_gid ur_gid_all_nodes; /* ff02::1 */

static inline bool ur_mac_is_group(const uint8_t mac[6])
{
	return mac[0] & 1;
}

static inline uint32_t ur_gid_ipv4(const struct ur_gid *g)
{
	return (uint32_t)g->b[12] << 24 | (uint32_t)g->b[13] << 16 | (uint32_t)g->b[14] << 8 |
	       g->b[15];
}

static inline bool ur_gid_is_link_local(const struct ur_gid *g)
{
	return g->b[0] == 0xfe && (g->b[1] & 0xc0) == 0x80;
}

bool ur_gid_is_zero(const struct ur_gid *g); /* :: or 0.0.0.0 */
/* A host's address: no multicast, broadcast, loopback or "unspecified" one. */
bool ur_gid_is_host(const struct ur_gid *g);
struct ur_gid ur_gid_solicited_node(const struct ur_gid *g);

/* The Internet checksum of len bytes on top of `sum`, folded to 16 bits; 0xffff: verified. */
uint32_t ur_csum_add(uint32_t sum, const uint8_t *p, size_t len);
uint16_t ur_csum_fold(uint32_t sum);
/* Sum of the IPv6 pseudo header of an ICMPv6 message. */
uint32_t ur_csum_pseudo6(const uint8_t src[16], const uint8_t dst[16], uint32_t len);

/* Queue a frame; false: the queue is full. */
bool ur_neigh_send_arp(struct ur_neigh *n, uint16_t op, const uint8_t dmac[6],
		       const struct ur_gid *src, const uint8_t tha[6], const struct ur_gid *target);
bool ur_neigh_send_solicit(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
			   const struct ur_gid *dst, const struct ur_gid *target);
bool ur_neigh_send_advert(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *dst,
			  const struct ur_gid *target, uint32_t flags);
/* An MLD message: `body` follows the checksum. */
bool ur_neigh_send_mld(struct ur_neigh *n, const struct ur_gid *src, const struct ur_gid *dst,
		       uint8_t type, const uint8_t *body, size_t len);
/* An IGMP message, whose checksum is filled in at msg[2]. */
bool ur_neigh_send_igmp(struct ur_neigh *n, const struct ur_gid *dst, uint8_t *msg, size_t len);
/* An echo reply whose ICMP message is that of the request `icmp`, type and checksum aside. */
bool ur_neigh_send_pong4(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
			 const struct ur_gid *dst, uint8_t tos, const uint8_t *icmp, size_t len);
bool ur_neigh_send_pong6(struct ur_neigh *n, const uint8_t dmac[6], const struct ur_gid *src,
			 const struct ur_gid *dst, uint8_t tc, const uint8_t *icmp, size_t len);

/*
 * Handles an IPv6 packet's payload [p, p + len), which begins with a hop-by-hop header. A query is
 * accepted if no router has forwarded it and it asks for one of our groups or for all.
 */
enum ur_neigh_verdict ur_mld_input(struct ur_neigh *n, const struct ur_gid *src,
				   const struct ur_gid *dst, uint8_t hop_limit, const uint8_t *p,
				   size_t len, uint64_t now_ns);
void ur_mld_expire(struct ur_neigh *n, uint64_t now_ns);
/* The group was joined or left. */
void ur_mld_changed(struct ur_neigh *n, const struct ur_gid *group, bool leave, uint64_t now_ns);

/*
 * The same for IPv4: handles an IGMP message [p, p + len) in a packet to the MAC address dmac, whose IP header, of `head` bytes,
 * is at `ip`. A query is for 224.0.0.1 or for the group that it asks for.
 */
enum ur_neigh_verdict ur_igmp_input(struct ur_neigh *n, const uint8_t *dmac, const uint8_t *ip,
				    size_t head, const uint8_t *p, size_t len, uint64_t now_ns);
void ur_igmp_expire(struct ur_neigh *n, uint64_t now_ns);
void ur_igmp_changed(struct ur_neigh *n, const struct ur_gid *group, bool leave, uint64_t now_ns);

/* The joined group equal to g, not one that was left; NULL: none. */
struct ur_neigh_group *ur_neigh_find_group(struct ur_neigh *n, const struct ur_gid *g);
/* Removes the groups of a family that were left. */
void ur_neigh_forget_left(struct ur_neigh *n, bool ipv4);
/* Brings *due_ns forward to a time of this host's own within most_ms: otherwise all would answer a query at once. */
void ur_neigh_schedule(const struct ur_neigh *n, uint64_t *due_ns, uint64_t most_ms,
		       uint64_t now_ns);

/* Our own address equal to g; NULL when it is not ours. */
const struct ur_neigh_addr *ur_neigh_own(const struct ur_neigh *n, const struct ur_gid *g);
/* Our source address towards `dst`; NULL if we have none of its family. */
const struct ur_neigh_addr *ur_neigh_source(const struct ur_neigh *n, const struct ur_gid *dst);
struct ur_neigh_entry *ur_neigh_find(struct ur_neigh *n, const struct ur_gid *g);

/* How we learned a pair of addresses. */
enum ur_neigh_how {
	UR_NEIGH_HOW_ANSWER,   /* the answer to a query */
	UR_NEIGH_HOW_REQUEST,  /* a query of its owner */
	UR_NEIGH_HOW_OVERHEARD /* sent to all hosts: may change an entry, but does not create one */
};

/* Updates the entry of g, if that is allowed. True: the entry now has this MAC address. */
bool ur_neigh_learn(struct ur_neigh *n, const struct ur_gid *g, const uint8_t mac[6],
		    enum ur_neigh_how how, uint64_t now_ns);
/* A solicited advertisement without an address confirms the entry of g. */
bool ur_neigh_confirm(struct ur_neigh *n, const struct ur_gid *g, uint64_t now_ns);

#endif
