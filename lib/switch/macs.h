/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_MACS_H
#define UR_SWITCH_MACS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "switch/attr.h"

/*
 * The table of learned addresses: (VLAN, MAC) to port. Bounded: buckets of four entries, chosen by a hash
 * with a seed. A full bucket gives up an entry that is too old; then one of the same port; then one of a
 * port that has more than its share of the table. Otherwise the address is not learned, and frames to it
 * are flooded. So one port with many addresses cannot displace those of the others.
 *
 * Thread class: the switch's.
 */
#define UR_SWITCH_WAYS 4

struct ur_switch_mac {
	uint64_t key; /* VLAN << 48 | MAC; 0: free */
	uint64_t seen_ns;
	uint8_t port;
};

struct ur_switch_macs {
	struct ur_switch_mac *entry; /* [0, (mask + 1) * UR_SWITCH_WAYS) */
	uint32_t mask;		     /* buckets - 1 */
	uint32_t share;		     /* entries that a port may keep when others need room */
	uint64_t age_ns, seed;
	uint32_t cnt[UR_SWITCH_PORTS_MAX]; /* entries of each port, old ones included */
};

enum ur_switch_learned {
	UR_SWITCH_KNOWN,   /* on this port already */
	UR_SWITCH_LEARNED, /* new */
	UR_SWITCH_MOVED,   /* was on another port */
	UR_SWITCH_FULL,	   /* no room */
};

/* Bytes of memory for limits.macs addresses. */
size_t ur_switch_macs_size(uint32_t macs);
/* `mem` has that size and is aligned for uint64_t. */
void ur_switch_macs_init(struct ur_switch_macs *m, void *mem, const struct ur_switch_attr *a);

enum ur_switch_learned ur_switch_macs_learn(struct ur_switch_macs *m, uint16_t vid,
					    const uint8_t mac[6], uint8_t port, uint64_t now_ns);
/* The port, or UR_SWITCH_NO_PORT. */
uint8_t ur_switch_macs_find(const struct ur_switch_macs *m, uint16_t vid, const uint8_t mac[6],
			    uint64_t now_ns);
/* Forgets all addresses of a port. Walks the whole table. */
void ur_switch_macs_forget(struct ur_switch_macs *m, uint8_t port);

/* Addresses that are valid now. Walks the whole table. */
uint32_t ur_switch_macs_cnt(const struct ur_switch_macs *m, uint64_t now_ns);

#endif
