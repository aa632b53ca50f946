/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_DIRECT_H
#define UR_DPDK_DIRECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "edge/direct_ring.h"
#include "edge/lease_msg.h"
#include "edge/source.h"
#include "edge/worker_counters.h"

/*
 * The direct rings of an endpoint whose port is leased from uroced (docs/design/uroced.md): RC packets for another
 * process of the host leave by the ring that joins the two, everything else by the port.
 *
 * Thread class: rx, find, tx: the worker. add, remove, set_sleep: a command of the worker. The others: the progress thread.
 */

#define UR_DIRECT_MAX 16 /* rings of an endpoint */

struct ur_mbuf_source;

struct ur_direct_peer {
	struct ur_direct_ring ring;
	uint8_t mac[6];
	uint8_t ip4[4];
	uint32_t client; /* as in struct ur_lease_direct */
	/* When the ring was found full, and half a ring had been sent since the time before; 0: never. What had been sent then. */
	uint64_t full_ns;
	uint32_t full_sent;
	void *memory; /* owned */
	size_t bytes;
};

/* One address that all clients of uroced share. */
struct ur_direct_host {
	uint8_t number; /* of this client; 0: its address is its alone, and the rest is unused */
	uint8_t mac[6];
	uint8_t ip4[4];
};

struct ur_direct {
	struct ur_direct_host host;
	struct ur_direct_peer *peer[UR_DIRECT_MAX]; /* [0, cnt) */
	unsigned cnt;
	unsigned first; /* whose turn it is to be received from */
	struct ur_worker_counters *counters;
	unsigned sleepers;
	_Atomic uint32_t wanted; /* a client of uroced that packets went to by the port; 0: none */
	/* The requests of the last second. */
	struct {
		uint32_t client;
		uint64_t until_ns;
	} requested[2 * UR_DIRECT_MAX];
};

/*
 * Maps a ring whose memory came as this descriptor, which it takes. NULL: it cannot be used. It is to be added by a command
 * of the worker, or freed.
 */
struct ur_direct_peer *ur_direct_peer_new(const struct ur_direct_host *host,
					  const struct ur_lease_direct *d, int fd);
/*
 * `over`: the other end has left, and what it sent is taken: it may keep the file, but not these pages. NULL is allowed.
 */
void ur_direct_peer_free(struct ur_direct_peer *p, bool over);

/* Adds it, and returns the one that it replaces; or itself, if there is no room. NULL: nothing is left over. */
struct ur_direct_peer *ur_direct_add(struct ur_direct *d, struct ur_direct_peer *p);
/* Takes out that to this client, 0: to any; NULL: there is none. */
struct ur_direct_peer *ur_direct_remove(struct ur_direct *d, uint32_t client);

/* The ring for this frame, whose headers lie at `frame`; NULL: the port. */
struct ur_direct_peer *ur_direct_find(struct ur_direct *d, const uint8_t *frame, uint32_t len);
/*
 * Sends; returns how many were taken, from the front, and freed. An end that sleeps is woken by a datagram by the port, for nobody.
 * UROCED-DIRECT-03: a ring that is full loses frames, as a switch's queue does, if the other end has not taken half a ring in a
 * millisecond: a process that reads nothing, or little, does not stop its peers.
 */
unsigned ur_direct_tx(struct ur_direct *d, struct ur_direct_peer *p, struct ur_mbuf_source *s,
		      struct ur_pkt *pkts, unsigned n);

/* Receives, as rx of struct ur_source_ops. UROCED-DIRECT-02: only what the other end's lease permits. */
unsigned ur_direct_rx(struct ur_direct *d, struct ur_mbuf_source *s, struct ur_pkt *pkts,
		      unsigned n);

/* A client for which uroced should be asked for a ring, once in a second; 0: none. */
uint32_t ur_direct_request(struct ur_direct *d, uint64_t now_ns);

/* A thread of this end is about to sleep: the other ends are to wake it. Or it is awake again; another one may still sleep. */
void ur_direct_set_sleep(struct ur_direct *d, bool sleeps);

#endif
