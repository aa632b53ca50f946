/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_PATH_H
#define UR_WIRE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/bytes.h"
#include "wire/packet.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Headers to a destination: Ethernet, 802.1Q, IP and UDP. They are built once, when a QP or an
 * address handle gets its address vector, and copied in front of every packet. Only the length
 * fields and the IPv4 checksum differ between packets. IPv4 has DF set and id 0; the UDP checksum
 * is 0.
 *
 * Thread class: a struct belongs to one thread at a time.
 */
struct ur_path {
	uint32_t csum_part; /* IPv4: sum of the header's 16-bit words without length and checksum */
	uint8_t len;	    /* bytes of hdr in use */
	uint8_t l3_off;	    /* 14 or 18 */
	bool v6;
	bool plain; /* untagged IPv4, to the address of a single host: neither 0/8, 127/8, multicast nor reserved */
	uint8_t hdr[UR_ETH_BYTES + UR_VLAN_BYTES + UR_IPV6_BYTES + UR_UDP_BYTES];
};

/* The shortest path: untagged IPv4. */
#define UR_PATH_MIN_BYTES (UR_ETH_BYTES + UR_IPV4_BYTES + UR_UDP_BYTES)

struct ur_path_attr {
	uint8_t smac[6], dmac[6];
	bool has_vlan;
	uint16_t vlan_tci;
	struct ur_gid src, dst; /* both IPv4-mapped, or neither */
	uint8_t tos;		/* traffic class: DSCP and ECN */
	uint8_t ttl;		/* hop limit; 0 means 64 */
	uint32_t flow_label;	/* 20 bits */
	uint16_t sport;		/* UDP source port, see ur_path_sport() */
};

/* Builds the headers. `attr` is not needed afterwards. */
void ur_path_init(struct ur_path *path, const struct ur_path_attr *attr);

/* Sets the traffic class and, if the path has an 802.1Q tag, the tag. */
void ur_path_set_tos(struct ur_path *path, uint8_t tos, uint16_t vlan_tci);

/* Changes the destination MAC address, for instance when the neighbour's address becomes known. */
static inline void ur_path_set_dmac(struct ur_path *path, const uint8_t mac[6])
{
	memcpy(path->hdr, mac, 6);
}

/* True if a packet's source address is the destination of the path. */
static inline bool ur_path_leads_to(const struct ur_path *path, const struct ur_ip *from)
{
	const uint8_t *ip = path->hdr + path->l3_off;

	if (from->v6 != path->v6)
		return false;
	return path->v6 ? memcmp(ip + 24, from->src.b, 16) == 0
			: memcmp(ip + 16, from->src.b + 12, 4) == 0;
}

/* The destination address of the path. */
static inline struct ur_gid ur_path_destination(const struct ur_path *path)
{
	const uint8_t *ip = path->hdr + path->l3_off;
	struct ur_gid gid;

	if (!path->v6)
		return ur_gid_from_ipv4(ur_load32(ip + 16));
	memcpy(gid.b, ip + 24, sizeof(gid.b));
	return gid;
}

/*
 * UDP source port in [0xc000, 0xffff] for a flow label: the low 14 bits XOR the 6 bits above them,
 * OR 0xc000, as in all RoCEv2 drivers. If `flow_label` is 0, a label is derived from the two QPNs.
 */
uint16_t ur_path_sport(uint32_t flow_label, struct ur_qpn lqpn, struct ur_qpn rqpn);

/*
 * UDP source port of path [0, 16) of a queue pair that sprays and whose own port is `base`: all different, all in
 * [0xc000, 0xffff], path 0 is base. The step changes high and low bits, for the sake of hashes that look at few of them.
 */
static inline uint16_t ur_spray_port(uint16_t base, uint8_t path)
{
	return (uint16_t)(0xc000 | ((base + path * 1031u) & 0x3fff)); /* SPRAY-PORT-01 */
}

/*
 * The port after `sport`, [0xc000, 0xffff], for when its path seems dead. All 16384 take turns; the lowest k bits have all their
 * values within 2^k steps (a full period needs a factor of 4n + 1 and an odd increment), and high bits change as well. REPATH-PORT-01
 */
static inline uint16_t ur_path_next_sport(uint16_t sport)
{
	return (uint16_t)(0xc000 | ((sport * 5197u + 3571u) & 0x3fff));
}

/*
 * Of the answer to a MAD that came from the port `theirs`: what is asked once more, another way, is answered another way. Each bit
 * is joined by the next one, because among the ports of one way the low bits may all be the same. REPATH-CM-02
 */
static inline uint16_t ur_path_back_sport(uint16_t theirs)
{
	return (uint16_t)(0xc000 | (theirs ^ theirs >> 1));
}

static inline uint16_t ur_path_own_sport(const struct ur_path *path)
{
	return ur_load16(path->hdr + path->len - UR_UDP_BYTES);
}

/* Gives a path that ur_path_init() has made another port. */
void ur_path_set_sport(struct ur_path *path, uint16_t sport);

/*
 * Writes the headers of a packet with `udp_payload` bytes of UDP payload (BTH to ICRC, inclusive)
 * to `buf`, which has room for path->len bytes. Returns path->len.
 */
static inline unsigned ur_path_write(const struct ur_path *path, uint8_t *buf, unsigned udp_payload)
{
	uint16_t udp_len = __builtin_bswap16((uint16_t)(udp_payload + UR_UDP_BYTES));

	memcpy(buf, path->hdr, UR_PATH_MIN_BYTES);
	if (path->len > UR_PATH_MIN_BYTES)
		memcpy(buf + UR_PATH_MIN_BYTES, path->hdr + UR_PATH_MIN_BYTES,
		       path->len - UR_PATH_MIN_BYTES);
	memcpy(buf + path->len - 4, &udp_len, 2);
	if (path->v6) {
		memcpy(buf + path->l3_off + 4, &udp_len, 2);
	} else {
		uint32_t total = udp_payload + UR_UDP_BYTES + UR_IPV4_BYTES;
		uint32_t sum = path->csum_part + total;
		uint16_t be;

		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		be = __builtin_bswap16((uint16_t)total);
		memcpy(buf + path->l3_off + 2, &be, 2);
		be = __builtin_bswap16((uint16_t)~sum);
		memcpy(buf + path->l3_off + 10, &be, 2);
	}
	return path->len;
}

#ifdef __cplusplus
}
#endif

#endif
