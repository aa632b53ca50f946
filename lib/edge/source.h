/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_SOURCE_H
#define UR_EDGE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/tx.h"

/*
 * A packet source: where Ethernet frames come from and go to. One queue pair of a DPDK port is one
 * (lib/dpdk/mbuf_source.h), a wire in memory is another (tests/unit/memory_wire.h). The round (round.h)
 * uses no other input or output. docs/design/packet-source.md explains the table.
 *
 * Ownership: a packet belongs to the round from rx or alloc until tx or hand_over has accepted it or it
 * was passed to free.
 *
 * Thread class: all functions run on the thread that runs the round. They must not block.
 */
#define UR_BURST 32 /* the most packets that one call moves, except tx */

/* A packet buffer with a frame in it. The descriptor is copied freely; `handle` is the buffer. */
struct ur_pkt {
	uint8_t *data;	   /* the Ethernet header; the round may write to the frame */
	void *handle;	   /* the source's own */
	uint32_t len;	   /* bytes of the frame, without its check sequence */
	uint16_t vlan_tci; /* if has_tci */
	bool has_tci; /* rx: the 802.1Q tag is not in the frame, because it could not be put back */
	bool in_pieces; /* tx: only the headers lie at data; see struct ur_gather_ops */
};

/*
 * For a source that can send payload from the application's memory, and no longer needs it when tx
 * returns. Nothing refers to the application's memory between two rounds.
 */
struct ur_gather_ops {
	/*
	 * Takes the place of ur_tx_write(): for each i in [0, n) makes the frame of tx[i], whose
	 * headers are at pkts[i].data. Sets len, and in_pieces if payload is referenced.
	 */
	void (*build)(void *source, struct ur_pkt *pkts, const struct ur_tx *tx, unsigned n);
	/* The frame's pieces in order, at most cap; returns how many. */
	unsigned (*segments)(void *source, const struct ur_pkt *pkt, struct iovec *seg,
			     unsigned cap);
	/* Copies pieces so that the frame is contiguous at data. No effect if it already is. */
	void (*join)(void *source, struct ur_pkt *pkt);
};

struct ur_source_ops {
	/*
	 * Receives: fills at most n <= UR_BURST descriptors with contiguous frames, tags in place, and
	 * returns how many. Fewer than n: nothing more has arrived.
	 */
	unsigned (*rx)(void *source, struct ur_pkt *pkts, unsigned n);
	/* Sends; returns how many it took, from the front. The others stay the round's. */
	unsigned (*tx)(void *source, struct ur_pkt *pkts, unsigned n);
	/* n <= UR_BURST empty buffers, each with room for the largest frame; all or none (false). */
	bool (*alloc)(void *source, struct ur_pkt *pkts, unsigned n);
	void (*free)(void *source, struct ur_pkt *pkts, unsigned n);
	/*
	 * The time in nanoseconds, if it advances during a round; called once per burst. NULL: the time is
	 * the round's argument, as in a simulation.
	 */
	uint64_t (*now_ns)(void *source);
	const struct ur_gather_ops *gather; /* or NULL: payload is copied behind the headers */
	/*
	 * If several workers share the port: passes a packet to the round of another one, which gets it by
	 * take. False: its queue is full, and the packet stays the caller's. NULL with a single worker.
	 */
	bool (*hand_over)(void *source, unsigned worker, const struct ur_pkt *pkt);
	unsigned (*take)(void *source, struct ur_pkt *pkts, unsigned n);
};

#endif
