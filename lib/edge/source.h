/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_SOURCE_H
#define UR_EDGE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/tx.h"

/*
 * A packet source: whatever Ethernet frames come from and go to. One queue pair of a DPDK port is one
 * (lib/dpdk/mbuf_source.h), a wire in memory is another (tests/unit/memory_wire.h). The round (round.h) sees nothing else of the world. docs/design/packet-source.md says why the table looks as it does.
 *
 * Ownership: a packet belongs to the round from rx or alloc until tx has taken it, free has got it
 * or hand_over has accepted it.
 *
 * Thread class: all functions run on the thread that runs the round. They must not block.
 */
#define UR_BURST 32 /* packets that one call moves at most, tx aside */

/* A packet buffer with a frame in it. The descriptor is copied freely; `handle` is the buffer. */
struct ur_pkt {
	uint8_t *data;	   /* the Ethernet header; the round may write to the frame */
	void *handle;	   /* the source's own */
	uint32_t len;	   /* bytes of the frame, without its check sequence */
	uint16_t vlan_tci; /* if has_tci */
	bool has_tci; /* rx: the 802.1Q tag was taken out of the frame and could not be put back */
	bool in_pieces; /* tx: only the headers lie at data; see struct ur_gather_ops */
};

/*
 * For a source that can send payload from where the application has it, and is done with it when tx
 * returns. Nothing refers to the application's memory between two rounds.
 */
struct ur_gather_ops {
	/*
	 * As the round would do by ur_tx_write() for each i in [0, n): makes the frame of tx[i], whose
	 * headers lie at pkts[i].data. Sets len, and in_pieces where payload is referred to.
	 */
	void (*build)(void *source, struct ur_pkt *pkts, const struct ur_tx *tx, unsigned n);
	/* The frame's pieces in order, at most cap; returns how many. */
	unsigned (*segments)(void *source, const struct ur_pkt *pkt, struct iovec *seg,
			     unsigned cap);
	/* Copies: the frame lies at data in one piece afterwards. Does nothing to one that does. */
	void (*join)(void *source, struct ur_pkt *pkt);
};

struct ur_source_ops {
	/*
	 * Fills at most n <= UR_BURST descriptors with frames in one piece, tags in place, and returns how
	 * many. Fewer than n: nothing more has arrived.
	 */
	unsigned (*rx)(void *source, struct ur_pkt *pkts, unsigned n);
	/* Sends; returns how many it took, the first ones. The others stay the round's. */
	unsigned (*tx)(void *source, struct ur_pkt *pkts, unsigned n);
	/* n <= UR_BURST empty buffers, each with room for the largest frame; all or none (false). */
	bool (*alloc)(void *source, struct ur_pkt *pkts, unsigned n);
	void (*free)(void *source, struct ur_pkt *pkts, unsigned n);
	/*
	 * Where time runs on during a round: nanoseconds, asked once a burst. NULL: the time that the round
	 * was given, as in a simulation.
	 */
	uint64_t (*now_ns)(void *source);
	const struct ur_gather_ops *gather; /* or NULL: payload is copied behind the headers */
	/*
	 * Several workers share the port: gives a packet to the round of another, which gets it by take.
	 * False: its queue is full, and the packet still the caller's. NULL with a single worker.
	 */
	bool (*hand_over)(void *source, unsigned worker, const struct ur_pkt *pkt);
	unsigned (*take)(void *source, struct ur_pkt *pkts, unsigned n);
};

#endif
