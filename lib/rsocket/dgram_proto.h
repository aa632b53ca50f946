/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_DGRAM_PROTO_H
#define UR_RSOCKET_DGRAM_PROTO_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/bytes.h"

/*
 * Headers before the data of rsockets for datagrams (docs/design/rsockets.md): in UDP until the peer's queue pair is known, then in SENDs.
 *
 * Thread class: pure functions.
 */

#define UR_RS_UDP_TAG	 0x55555555u
#define UR_RS_HEADER_MAX 28

enum ur_rs_udp_op {
	UR_RS_UDP_DATA = 0, /* data follows; the receiver answers with its own number */
	UR_RS_UDP_CTRL = 7, /* the answer */
};

union ur_rs_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static inline socklen_t ur_rs_addr_bytes(const union ur_rs_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

/* Address and port. */
static inline bool ur_rs_same_addr(const union ur_rs_addr *a, const union ur_rs_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family || a->in.sin_port != b->in.sin_port)
		return false;
	return a->sa.sa_family == AF_INET6 ? !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16)
					   : a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

/*
 * In UDP, big-endian:
 *
 *    0  tag (32)
 *    4  IP version   5  operation   6  bytes of the header: 16 or 28   7  zero
 *    8  zero (8), number of the sender's queue pair (24)
 *   12  the sender's address
 */
static inline size_t ur_rs_put_udp(uint8_t *to, enum ur_rs_udp_op op, uint32_t qpn,
				   const union ur_rs_addr *own)
{
	bool v6 = own->sa.sa_family == AF_INET6;

	ur_store32(to, UR_RS_UDP_TAG);
	to[4] = v6 ? 6 : 4;
	to[5] = (uint8_t)op;
	to[6] = v6 ? 28 : 16;
	to[7] = 0;
	ur_store32(to + 8, qpn & 0xffffff);
	if (v6)
		memcpy(to + 12, &own->in6.sin6_addr, 16);
	else
		memcpy(to + 12, &own->in.sin_addr, 4);
	return to[6];
}

/* RSOCKET-UDP-01. Returns the bytes of the header; 0: it is none, and nothing is written. `family` is that of the address it came from. */
static inline size_t ur_rs_get_udp(const uint8_t *from, size_t len, int family,
				   enum ur_rs_udp_op *op, uint32_t *qpn)
{
	size_t bytes = family == AF_INET6 ? 28 : 16;

	if (len < bytes || ur_load32(from) != UR_RS_UDP_TAG ||
	    from[4] != (family == AF_INET6 ? 6 : 4) || from[6] != bytes ||
	    (from[5] != UR_RS_UDP_DATA && from[5] != UR_RS_UDP_CTRL))
		return 0;
	*op = (enum ur_rs_udp_op)from[5];
	*qpn = ur_load32(from + 8) & 0xffffff;
	return bytes;
}

/*
 * In a SEND:
 *
 *    0  IP version   1  bytes of the header: 8 or 24   2  the sender's port (16)
 *    4  the sender's address; before one of IPv6, the flow information (32)
 */
static inline size_t ur_rs_put_send(uint8_t *to, const union ur_rs_addr *own)
{
	bool v6 = own->sa.sa_family == AF_INET6;

	to[0] = v6 ? 6 : 4;
	to[1] = v6 ? 24 : 8;
	memcpy(to + 2, &own->in.sin_port, 2); /* the offset is the same */
	if (v6) {
		memcpy(to + 4, &own->in6.sin6_flowinfo, 4);
		memcpy(to + 8, &own->in6.sin6_addr, 16);
	} else {
		memcpy(to + 4, &own->in.sin_addr, 4);
	}
	return to[1];
}

/* RSOCKET-UDP-02. The same for the other. `family` is the socket's. */
static inline size_t ur_rs_get_send(const uint8_t *from, size_t len, int family,
				    union ur_rs_addr *peer)
{
	if (len < 8)
		return 0;
	if (family == AF_INET && from[0] == 4 && from[1] == 8) {
		*peer = (union ur_rs_addr){.in = {.sin_family = AF_INET}};
		memcpy(&peer->in.sin_addr, from + 4, 4);
	} else if (family == AF_INET6 && from[0] == 6 && from[1] == 24 && len >= 24) {
		*peer = (union ur_rs_addr){.in6 = {.sin6_family = AF_INET6}};
		memcpy(&peer->in6.sin6_flowinfo, from + 4, 4);
		memcpy(&peer->in6.sin6_addr, from + 8, 16);
	} else {
		return 0;
	}
	memcpy(&peer->in.sin_port, from + 2, 2);
	return from[1];
}

#endif
