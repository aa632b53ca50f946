/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_IMPAIR_MBUF_H
#define UR_EDGE_IMPAIR_MBUF_H

#include <rte_mbuf.h>

#include "edge/impair.h"

/*
 * Impairment of mbufs. Copies are allocated from `pool`. A packet that must be changed but is
 * shared, indirect, external or chained is copied first: attached payload is the user's memory and
 * is never written. Give the pool as many more mbufs (ur_port_attr.mbuf_extra_cnt: 2 * hold_max).
 */
/* Returns NULL if memory is out. Call ur_impair_active() first. */
struct ur_impair *ur_impair_mbuf_new(const struct ur_impair_config *cfg, uint32_t stream,
				     struct rte_mempool *pool);

/*
 * ur_impair_run() for mbufs: takes over the `n` of `in`, and returns the number in `out`, which the
 * caller owns. `cap` should be at least 2 * n plus the held packets that may be due; the rest waits
 * for the next call.
 */
static inline uint16_t ur_impair_burst(struct ur_impair *imp, struct rte_mbuf **in, uint16_t n,
				       struct rte_mbuf **out, uint16_t cap, uint64_t now_ns)
{
	return ur_impair_run(imp, (void *const *)in, n, (void **)out, cap, now_ns);
}

/* Returns only the held packets that are due. */
static inline uint16_t ur_impair_poll(struct ur_impair *imp, struct rte_mbuf **out, uint16_t cap,
				      uint64_t now_ns)
{
	return ur_impair_run(imp, NULL, 0, (void **)out, cap, now_ns);
}

/*
 * Marks an ECN-capable IPv4 or IPv6 frame, tagged or not, as CE (RFC 3168), updates the IPv4
 * checksum and returns true. Leaves other frames unchanged and returns false. A pure function.
 */
bool ur_impair_mark_frame(uint8_t *frame, size_t len);

#endif
