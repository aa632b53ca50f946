/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MGMT_ATTR_H
#define UR_MGMT_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data of the management agent; nma.h has the agent. */

struct ur_nma_limits {
	uint8_t ports;	     /* [1, 254]: physical ports */
	uint16_t requests;   /* [1, 4096]: SMPs that wait to be executed, and as many GMPs */
	uint16_t passing;    /* [1, 4096]: MADs on their way through the node, or to a client */
	uint16_t remembered; /* [1, 4096]: responses kept for repeated requests */
	uint16_t notices;    /* [1, 4096]: traps and fault reports not yet sent or repressed */
};

/* What an administrator sets. */
struct ur_nma_config {
	uint64_t m_key;	     /* 0: none */
	uint8_t protect;     /* M_KeyProtectBits, [0, 3] (IBA 14.2.4) */
	uint16_t lease_s;    /* M_KeyLeasePeriod; 0: for ever */
	bool open;	     /* registers and E2PROM are written without a key while m_key is 0 */
	bool ask_neighbours; /* ask the node at the other end of a link for its GUID and port */
};

/* Counters of the agent. X(name, unit, help): docs/design/counters.md */
#define UR_NMA_STATS(X)                                                                            \
	X(rx, "packets", "management datagrams received")                                          \
	X(tx, "packets", "management datagrams sent")                                              \
	X(passed, "packets", "directed-route SMPs that passed through")                            \
	X(executed, "requests", "requests executed")                                               \
	X(repeated, "requests", "repeated requests: answered from memory, or executed already")    \
	X(malformed, "packets", "malformed, or with a route that cannot be")                       \
	X(full, "packets", "dropped because a queue was full")                                     \
	X(unexpected, "packets", "responses that nothing on the node waits for")                   \
	X(bad_key, "requests", "requests refused because of their key")                            \
	X(refused, "requests", "requests answered with an error")                                  \
	X(traps, "packets", "traps and fault reports sent, repetitions too")                       \
	X(notices_lost, "notices", "notices that found no room, or that were never repressed")     \
	X(no_manager, "notices", "notices without a manager to send them to")

struct ur_nma_stats {
#define X(name, unit, help) uint64_t name;
	UR_NMA_STATS(X)
#undef X
};

#ifdef __cplusplus
}
#endif

#endif
