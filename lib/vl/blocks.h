/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VL_BLOCKS_H
#define UR_VL_BLOCKS_H

#include "vl/attr.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Arbitration tables and SL to VL as the attributes VLArbitrationTable and SLtoVLMappingTable have them (IBA 14.2.5.8,
 * 14.2.5.9): 64 bytes each. For the agent, and for managers.
 *
 * Thread class: pure functions.
 */
#define UR_VL_BLOCKS	  4 /* 1 and 2: the halves of the low table, 3 and 4: those of the high one */
#define UR_VL_BLOCK_BYTES 64

/* An entry without weight counts for nothing; its lane is 0 on both ways. */
void ur_vl_put_block(uint8_t *data, const struct ur_vl_attr *vl, unsigned block);
/* The other half of the table stays. */
void ur_vl_get_block(const uint8_t *data, struct ur_vl_attr *vl, unsigned block);

/* 8 bytes, of which each has two SLs, the even one in the upper half; the rest is 0. */
void ur_vl_put_sl2vl(uint8_t *data, const struct ur_vl_attr *vl);
void ur_vl_get_sl2vl(const uint8_t *data, struct ur_vl_attr *vl);

#ifdef __cplusplus
}
#endif

#endif
