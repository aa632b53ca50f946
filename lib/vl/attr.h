/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VL_ATTR_H
#define UR_VL_ATTR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a port is told about its virtual lanes: plain data. vl.h has the arbiter. */
#define UR_VL_CNT     15 /* data lanes */
#define UR_VL_ENTRIES 64 /* of a table */

enum ur_vl_mode {
	UR_VL_IBA,	/* weights of 64 bytes, limit of high priority in 4096 bytes */
	UR_VL_MEASURED, /* weights of one PMTU, the law measured on adapters */
	UR_VL_STRICT,	/* as UR_VL_IBA, the low table only when no high lane is ready */
};

struct ur_vl_entry {
	uint8_t vl;	/* [0, UR_VL_CNT) */
	uint8_t weight; /* 0: the entry does not count */
};

/* Plain data: what a port is told about its lanes. */
struct ur_vl_attr {
	enum ur_vl_mode mode;
	struct ur_vl_entry high[UR_VL_ENTRIES], low[UR_VL_ENTRIES];
	uint8_t high_cnt, low_cnt; /* [0, UR_VL_ENTRIES] */
	uint8_t high_limit;	   /* UR_VL_IBA: 0: one packet, 255: none; UR_VL_STRICT: unused */
	uint8_t sl2vl[16];	   /* [0, 15]; 15: no service */
	uint8_t mtu_shift;	   /* the PMTU is 1 << mtu_shift bytes, [8, 12] */
};

/* SL i has VL i, SL 15 VL 7; equal weights in the low table, nothing in the high one; UR_VL_IBA. */
void ur_vl_attr_default(struct ur_vl_attr *a);

/* NULL, or what is wrong, as half a sentence (a constant). */
const char *ur_vl_attr_check(const struct ur_vl_attr *a);

/* Bit i: SL i has a lane. The attributes have passed the check. */
uint16_t ur_vl_attr_served_sls(const struct ur_vl_attr *a);

#ifdef __cplusplus
}
#endif

#endif
