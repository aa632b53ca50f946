/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VL_ATTR_H
#define UR_VL_ATTR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Configuration of a port's virtual lanes. vl.h has the arbiter. */
#define UR_VL_CNT     15 /* data lanes */
#define UR_VL_ENTRIES 64 /* entries of a table */

enum ur_vl_mode {
	UR_VL_IBA,	/* units: weights 64 bytes, Limit of High-Priority 4096 bytes (IBA 7.6.9) */
	UR_VL_MEASURED, /* unit of weights: one PMTU; the law measured on adapters (QoS paper) */
	UR_VL_STRICT,	/* like UR_VL_IBA, but the low table only when no high lane is ready */
};

struct ur_vl_entry {
	uint8_t vl;	/* [0, UR_VL_CNT) */
	uint8_t weight; /* 0: the entry is ignored */
};

struct ur_vl_attr {
	enum ur_vl_mode mode;
	struct ur_vl_entry high[UR_VL_ENTRIES], low[UR_VL_ENTRIES];
	uint8_t high_cnt, low_cnt; /* [0, UR_VL_ENTRIES] */
	uint8_t high_limit; /* UR_VL_IBA: 0: one packet, 255: unlimited; UR_VL_STRICT: unused */
	uint8_t sl2vl[16];  /* VL of each SL, [0, 15]; 15: the SL has no service */
	uint8_t mtu_shift;  /* the PMTU is 1 << mtu_shift bytes, [8, 12] */
};

/* UR_VL_IBA, SL i on VL i, SL 15 on VL 7, equal weights in the low table, the high table empty. */
void ur_vl_attr_default(struct ur_vl_attr *a);

/* Returns NULL if the attributes are valid, else a phrase that says what is wrong (a constant). */
const char *ur_vl_attr_check(const struct ur_vl_attr *a);

/* Bit i: SL i has a lane. The attributes have passed the check. */
uint16_t ur_vl_attr_served_sls(const struct ur_vl_attr *a);

#ifdef __cplusplus
}
#endif

#endif
