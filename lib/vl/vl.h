/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VL_VL_H
#define UR_VL_VL_H

#include <stdint.h>

#include "vl/attr.h"
#include "wire/assert.h"

/*
 * Virtual lanes: which data lane (VL 0..14) sends its next packet (docs/design/virtual-lanes.md,
 * IBA 7.6.9). The sender pulls, packet by packet:
 *
 *	vl = ur_vl_pick(v, ready);		what is ready decides, nothing is queued here
 *	...make one packet of that lane...
 *	ur_vl_charge(v, vl, payload bytes);
 *
 * A pick without a charge changes nothing that counts: the caller may ask again, also with another
 * mask. A lane that is alone ready may be sent without asking, and without a charge. VL 15 is not
 * arbitrated: whoever asks here has sent it first.
 *
 * Thread class: the worker.
 */
#define UR_VL_CHARGE_MIN 64	    /* bytes that any packet counts */
#define UR_VL_DEBT_MAX	 (1 << 16)  /* bytes a lane can owe for what went ahead */
#define UR_VL_BYTES_MAX	 (1u << 20) /* of one charge; more counts as this */

/* One of the two tables; entries of weight 0 are left out. */
struct ur_vl_table {
	int32_t credit;		/* bytes left in the turn of the current entry; <= 0: it is over */
	uint16_t lanes;		/* bit v: VL v has an entry */
	uint8_t cnt;		/* [0, UR_VL_ENTRIES] */
	uint8_t at;		/* current entry, [0, cnt) */
	uint64_t of[UR_VL_CNT]; /* bit i: entry i is of this lane */
	struct ur_vl_entry entry[UR_VL_ENTRIES]; /* [0, cnt) */
};

struct ur_vl {
	/* The lane chosen stands until `left` is used up or a lane of `keep` wakes or sleeps. */
	int32_t left;	  /* bytes until a choice is due; <= 0: due */
	int32_t start;	  /* `left` at the last choice: start - left is not yet in the books */
	uint16_t keep;	  /* lanes whose readiness matters */
	uint16_t bit;	  /* ready & keep as long as the choice stands */
	uint8_t vl;	  /* chosen lane */
	uint8_t side;	  /* table that has it: 0 low, 1 high */
	uint8_t low_turn; /* UR_VL_MEASURED: a due low turn has begun, high lanes wait */
	uint8_t mode;
	uint16_t served;	       /* bit v: VL v has weight */
	uint16_t paid;		       /* bit v: VL v has paid debt and not sent since */
	uint8_t unit_shift, mtu_shift; /* of weights, of debts */
	int32_t limit;		       /* UR_VL_IBA: bytes; INT32_MAX: none */
	int32_t limit_left;	       /* <= 0: a low lane that is ready comes first */
	int32_t due_unit;	 /* UR_VL_MEASURED: high bytes that a due low weight of 1 allows */
	int32_t used;		 /* high bytes, in turns begun, since the last low turn */
	int8_t sl[16];		 /* VL, -1: no service */
	int32_t debt[UR_VL_CNT]; /* bytes, [0, UR_VL_DEBT_MAX] */
	struct ur_vl_table table[2]; /* low, high */
};

/*
 * `a` passed ur_vl_attr_check() and is copied. Also to change attributes while running, between a
 * charge and the next pick: turns, limit and debts start anew.
 */
void ur_vl_init(struct ur_vl *v, const struct ur_vl_attr *a);

/* Bit v: VL v may be in a ready mask. */
static inline uint16_t ur_vl_served(const struct ur_vl *v)
{
	return v->served;
}

/* VL of a service level in [0, 15]; -1: no service, what is posted with it must fail. */
static inline int ur_vl_of_sl(const struct ur_vl *v, unsigned sl)
{
	UR_ASSERT(sl < 16);
	return v->sl[sl]; /* VL-SL-01 */
}

unsigned ur_vl_choose(struct ur_vl *v, uint16_t ready);

/* Which of the lanes in `ready` sends a packet. `ready` is not empty and within ur_vl_served(). */
static inline unsigned ur_vl_pick(struct ur_vl *v, uint16_t ready)
{
	if (v->left > 0 && (ready & v->keep) == v->bit)
		return v->vl;
	return ur_vl_choose(v, ready);
}

static inline int32_t ur_vl_counted(uint32_t bytes)
{
	bytes = bytes < UR_VL_CHARGE_MIN ? UR_VL_CHARGE_MIN : bytes;
	return (int32_t)(bytes < UR_VL_BYTES_MAX ? bytes : UR_VL_BYTES_MAX);
}

/* The packet picked has left, with so many bytes of payload. `vl` is what that pick returned. */
static inline void ur_vl_charge(struct ur_vl *v, unsigned vl, uint32_t bytes)
{
	UR_ASSERT(vl == v->vl);
	v->left -= ur_vl_counted(bytes);
}

/* A packet of lane `vl` went ahead of all lanes: the lane has less of its next turns. */
static inline void ur_vl_charge_ahead(struct ur_vl *v, unsigned vl, uint32_t bytes)
{
	int32_t debt;

	UR_ASSERT(vl < UR_VL_CNT);
	debt = v->debt[vl] + ur_vl_counted(bytes); /* VL-AHEAD-01 */
	v->debt[vl] = debt < UR_VL_DEBT_MAX ? debt : UR_VL_DEBT_MAX;
}

#endif
