/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_PORTS_H
#define UROCED_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "edge/lease_msg.h"

/*
 * The port spaces of a host whose address several clients share: which client has which port, so that a request for its service
 * goes there. Pure; the caller owns the memory. Thread class: one thread.
 *
 * A port that its client has released still names it, until another client binds it or the client ends: a request that is
 * repeated belongs to a connection that has been accepted. Invariant: a bound port has an owner.
 *
 * Clients decide how often these functions are called, on the thread that forwards. So none of them looks at ports one by one:
 * the longest searches read 4 KiB of bits, or 128 KiB for a client that ends and has had a port.
 */
#define PORTS_CLIENTS	  64
#define PORTS_PER_CLIENT  4096
#define PORTS_PER_USER	  (PORTS_EPHEMERAL_N / 4 * 3) /* the rest is for other users */
#define PORTS_EPHEMERAL	  32768			      /* the first; up to 60999, as in Linux */
#define PORTS_EPHEMERAL_N 28232

struct port_spaces {
	uint8_t owner[UR_LEASE_SPACES][65536]; /* number of the client, 0: none */
	uint64_t bound[UR_LEASE_SPACES][65536 / 64];
	uint16_t next[UR_LEASE_SPACES]; /* ephemeral port to try, from 0 */
	uint16_t cnt[PORTS_CLIENTS];	/* bound, of both spaces */
	uint32_t
		owned[PORTS_CLIENTS]; /* the same, and those that were released and still name it */
	uint32_t uid[PORTS_CLIENTS];  /* its user */
};

/* `random` decides where ephemeral ports begin. */
void ports_init(struct port_spaces *s, uint32_t random);

/* A client of this user begins. It has no ports. */
static inline void ports_begin(struct port_spaces *s, uint8_t client, uint32_t uid)
{
	s->uid[client] = uid;
}

/*
 * UROCED-PORTS-01: binds *port, or an ephemeral one, which it writes there, if it is 0. A port of the same client is bound once
 * more without effect.
 */
enum ur_lease_status ports_bind(struct port_spaces *s, enum ur_lease_space space, uint8_t client,
				uint16_t *port);
/* Nothing happens if it is not that client's. */
void ports_release(struct port_spaces *s, enum ur_lease_space space, uint8_t client, uint16_t port);
/* The client ends. */
void ports_forget(struct port_spaces *s, uint8_t client);

/* The client with the port, 0: none. */
static inline uint8_t ports_owner(const struct port_spaces *s, enum ur_lease_space space,
				  uint16_t port)
{
	return s->owner[space][port];
}

#endif
