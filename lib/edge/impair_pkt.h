/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_IMPAIR_PKT_H
#define UR_EDGE_IMPAIR_PKT_H

#include <stddef.h>

#include "edge/impair.h"
#include "edge/source.h"

/*
 * Applies impairment (impair.h) to a source's packets: copies, corrupts and marks their frames. Buffers for
 * copies come from the source, which therefore should have 2 * hold_max more than it needs otherwise.
 * Frames are contiguous and may be written to.
 *
 * Thread class: one owner (the round).
 */
struct ur_impair_pkt;

/* `frame_bytes`: room of an allocated buffer. *ops and source outlive it. NULL: no memory. */
struct ur_impair_pkt *ur_impair_pkt_new(const struct ur_impair_config *cfg, uint32_t stream,
					const struct ur_source_ops *ops, void *source,
					uint32_t frame_bytes);
/* Frees the packets held as well. NULL is fine. */
void ur_impair_pkt_free(struct ur_impair_pkt *ip);

/*
 * ur_impair_run() over descriptors: takes over the n <= UR_BURST packets of in, returns how many of out are
 * the caller's. cap <= UR_IMPAIR_PKT_OUT should be at least 2 * n plus the number of held packets that may
 * become due; the rest waits for the next call.
 */
#define UR_IMPAIR_PKT_OUT 256
unsigned ur_impair_pkt_run(struct ur_impair_pkt *ip, const struct ur_pkt *in, unsigned n,
			   struct ur_pkt *out, unsigned cap, uint64_t now_ns);

const struct ur_impair *ur_impair_pkt_impair(const struct ur_impair_pkt *ip);

/*
 * Marks an ECN-capable IPv4 or IPv6 frame, tagged or not, as CE (RFC 3168), updates the IPv4
 * checksum and returns true. Leaves other frames unchanged and returns false. A pure function.
 */
bool ur_impair_mark_frame(uint8_t *frame, size_t len);

#endif
