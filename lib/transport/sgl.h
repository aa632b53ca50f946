/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SGL_H
#define UR_TRANSPORT_SGL_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/table.h"
#include "transport/qp.h"
#include "transport/wq.h"

/*
 * Scatter and gather lists: the only code that turns SGEs into addresses. Each SGE it touches is
 * checked against its lkey.
 */

/* The whole of [off, off + len) lies in the first SGE. */
static inline bool ur_sgl_in_first(const struct ur_sge *sge, unsigned num_sge, uint32_t off,
				   uint32_t len)
{
	return num_sge && off <= sge->length && len <= sge->length - off;
}

/*
 * Resolves the bytes [off, off + len) of the list to at most `cap` fragments under the right `access`.
 * Returns how many, or -1 when an SGE does not grant it, the list is too short or `cap` too small.
 */
int ur_sgl_resolve(const struct ur_mem *mem, uint32_t pd, const struct ur_sge *sge,
		   unsigned num_sge, uint32_t off, uint32_t len, uint32_t access,
		   struct ur_frag *frag, unsigned cap);

/*
 * Adds the bytes [off, off + len) of the list to the packet as fragments; frag_cnt grows, payload_len
 * is the caller's. False, and the packet as it was, when an SGE may not be read, the list is too
 * short or the packet would need more than UR_FRAGS_MAX fragments. Only the bytes asked for are
 * checked; SGEs of length 0 are skipped unchecked.
 */
bool ur_sgl_gather(const struct ur_mem *mem, uint32_t pd, const struct ur_sge *sge,
		   unsigned num_sge, uint32_t off, uint32_t len, struct ur_tx *tx);

/*
 * Copies `len` bytes to the list from its byte `off` on. Nothing is written unless all of it may be:
 * false when an SGE may not be written, the list is too short or more than UR_FRAGS_MAX SGEs take part.
 */
bool ur_sgl_scatter(const struct ur_mem *mem, uint32_t pd, const struct ur_sge *sge,
		    unsigned num_sge, uint32_t off, const uint8_t *src, uint32_t len);

#endif
