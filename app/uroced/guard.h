/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_GUARD_H
#define UROCED_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a client may send: frames with its own addresses (docs/design/uroced.md). Pure: reads [frame, frame + len) and
 * nothing else, whatever is in it. Thread class: any.
 */

/* X(NAME, name, text): the first that applies */
#define GUARD_REASONS(X)                                                                           \
	X(TRUNCATED, truncated, "headers that are not whole")                                      \
	X(MAC, mac, "another's MAC address as its source")                                         \
	X(VLAN, vlan, "a VLAN tag")                                                                \
	X(MANAGEMENT, management, "meant for the switch")                                          \
	X(IP, ip, "another's IP address as its source")                                            \
	X(ARP, arp, "ARP with another's addresses as its sender's")                                \
	X(ND, nd, "neighbour discovery with another's addresses, or of a router")                  \
	X(TYPE, type, "neither IPv4, IPv6 nor ARP")                                                \
	X(QPN, qpn, "another's queue pair number or communication id as its own")

enum guard_reason {
#define X(NAME, name, text) GUARD_##NAME,
	GUARD_REASONS(X)
#undef X
		GUARD_PASS
};

struct guard {
	uint8_t mac[6];
	uint8_t ip4[4];
	uint8_t ip6[16]; /* link-local, of the MAC address */
	bool manage;	 /* frames for the switch pass */
	uint8_t number; /* of the client, with which its numbers begin; 0: its address is its alone */
};

/* `address` in host byte order. `number`: [0, 62]. */
void guard_init(struct guard *g, const uint8_t mac[6], uint32_t address, uint8_t number,
		bool manage);

/* UROCED-GUARD-01, UROCED-GUARD-02: GUARD_PASS, or why the frame is dropped. */
enum guard_reason guard_check(const struct guard *g, const uint8_t *frame, uint32_t len);

/* "mac" */
const char *guard_name(enum guard_reason reason);

#endif
