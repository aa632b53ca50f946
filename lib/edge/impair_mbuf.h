/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_IMPAIR_MBUF_H
#define UR_EDGE_IMPAIR_MBUF_H

#include <rte_mbuf.h>

#include "edge/impair.h"

/*
 * Impairment of mbufs. Copies, and packets that must be written to but are shared, indirect,
 * external or chained, are made anew from `pool`: payload that was attached without a copy is the
 * user's memory and is never touched. Give the pool that many more mbufs
 * (ur_port_attr.mbuf_extra_cnt: 2 * hold_max).
 */

/* NULL when memory is out. Whether there is anything to do: ur_impair_active(). */
struct ur_impair *ur_impair_mbuf_new(const struct ur_impair_config *cfg, uint32_t stream,
				     struct rte_mempool *pool);

/*
 * ur_impair_run() over mbufs: takes over the n of in, returns how many of out are the caller's.
 * cap should be at least 2 * n + what may come due; the rest waits for the next call.
 */
static inline uint16_t ur_impair_burst(struct ur_impair *imp, struct rte_mbuf **in, uint16_t n,
				       struct rte_mbuf **out, uint16_t cap, uint64_t now_ns)
{
	return ur_impair_run(imp, (void *const *)in, n, (void **)out, cap, now_ns);
}

/* Only what is due. */
static inline uint16_t ur_impair_poll(struct ur_impair *imp, struct rte_mbuf **out, uint16_t cap,
				      uint64_t now_ns)
{
	return ur_impair_run(imp, NULL, 0, (void **)out, cap, now_ns);
}

/*
 * Sets "congestion experienced" in the frame's IP header, IPv4 checksum included, and returns true,
 * when the frame is IPv4 or IPv6 (tagged or not) and says it is ECN-capable. A pure function.
 */
bool ur_impair_mark_frame(uint8_t *frame, size_t len);

#endif
