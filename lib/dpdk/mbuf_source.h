/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_MBUF_SOURCE_H
#define UR_DPDK_MBUF_SOURCE_H

#include <rte_mbuf.h>

#include "dpdk/clock.h"
#include "dpdk/direct.h"
#include "dpdk/port.h"
#include "edge/source.h"

#define UR_MBUF_KEPT 16

/*
 * A queue pair of a DPDK port as a packet source (source.h): `handle` is the mbuf. The functions
 * are for a table of operations; their contracts are those of struct ur_source_ops.
 *
 * Payload may be attached to a frame as an external buffer. That is safe for ports whose driver copies
 * the frame before its TX burst returns. The round copies the payload of frames that were not sent
 * (`join`), so that no frame refers to a user's memory when the engine runs again.
 *
 * Thread class: the worker that owns the queue.
 */
struct ur_mbuf_source {
	const struct ur_port *port;
	const struct ur_clock *clock;
	struct rte_mempool *pool; /* of new buffers */
	uint16_t queue;
	bool writes;		  /* received frames are written to, so shared ones are copied */
	uint64_t *no_mbuf;	  /* counts received frames lost for lack of a buffer */
	struct ur_direct *direct; /* rings in addition to the port, or NULL */
	bool direct_first;	  /* whose turn it is to be received from */
	struct rte_mbuf_ext_shared_info shared; /* of all payload attached */
	/*
	 * EDGE-KEEP-01. Buffers of `pool` that came with few frames, [0, kept_cnt), for the next few to be sent: one message at a
	 * time takes none from the pool and gives none back. The last one in, which is in the cache, is the first one out.
	 */
	struct rte_mbuf *kept[UR_MBUF_KEPT];
	unsigned kept_cnt;
};

void ur_mbuf_source_init(struct ur_mbuf_source *s, const struct ur_port *port, uint16_t queue,
			 const struct ur_clock *clock, bool writes, uint64_t *no_mbuf);

/* Gives back what it keeps. It may not have been initialized, if it is zeroed. */
void ur_mbuf_source_fini(struct ur_mbuf_source *s);

unsigned ur_mbuf_rx(void *source, struct ur_pkt *pkts, unsigned n);
unsigned ur_mbuf_tx(void *source, struct ur_pkt *pkts, unsigned n);
/* The same, and never by a direct ring. */
unsigned ur_mbuf_send_by_port(const struct ur_mbuf_source *s, const struct ur_pkt *pkts,
			      unsigned n);
bool ur_mbuf_alloc(void *source, struct ur_pkt *pkts, unsigned n);
void ur_mbuf_free(void *source, struct ur_pkt *pkts, unsigned n);
uint64_t ur_mbuf_now_ns(void *source);
extern const struct ur_gather_ops ur_mbuf_gather;

/* Describes a contiguous mbuf whose tag, if any, is in place. */
static inline struct ur_pkt ur_mbuf_pkt(struct rte_mbuf *m)
{
	return (struct ur_pkt){
		.data = rte_pktmbuf_mtod(m, uint8_t *), .handle = m, .len = m->data_len};
}

#endif
