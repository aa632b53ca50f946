/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VL_VL_H
#define UR_VL_VL_H

#include <stdint.h>

#include "vl/attr.h"
#include "wire/assert.h"

/*
 * VL arbitration: selects the data lane (VL 0..14) that sends the next packet (IBA 7.6.9,
 * docs/design/virtual-lanes.md). The arbiter queues nothing. For every packet the sender calls
 *
 *	vl = ur_vl_pick(v, ready);		`ready`: lanes that have a packet to send
 *	...send one packet of that lane...
 *	ur_vl_charge(v, vl, payload bytes);
 *
 * A pick without a charge has no effect on shares: the caller may pick again, even with another
 * mask. If only one lane is ready, it may send without a pick and a charge. VL 15 is not
 * arbitrated; its packets are sent before any pick.
 *
 * The struct belongs to the caller. Thread class: one worker.
 */
#define UR_VL_CHARGE_MIN 64	    /* a packet counts as at least this many bytes */
#define UR_VL_DEBT_MAX	 (1 << 16)  /* bytes that a lane can owe for packets sent ahead */
#define UR_VL_BYTES_MAX	 (1u << 20) /* a charge counts as at most this many bytes */

/* One of the two tables, without the entries of weight 0. */
struct ur_vl_table {
	int32_t credit;		/* bytes left in the turn of the current entry; <= 0: it is over */
	uint16_t lanes;		/* bit v: VL v has an entry */
	uint8_t cnt;		/* [0, UR_VL_ENTRIES] */
	uint8_t at;		/* current entry, [0, cnt) */
	uint64_t of[UR_VL_CNT]; /* bit i: entry i belongs to this lane */
	struct ur_vl_entry entry[UR_VL_ENTRIES]; /* [0, cnt) */
};

struct ur_vl {
	/* A choice is valid until `left` is used up or the readiness of a lane in `keep` changes. */
	int32_t left;	  /* bytes until the next choice; <= 0: choose now */
	int32_t start;	  /* `left` at the last choice: start - left is not yet accounted for */
	uint16_t keep;	  /* lanes whose readiness matters */
	uint16_t bit;	  /* ready & keep while the choice is valid */
	uint8_t vl;	  /* lane chosen */
	uint8_t side;	  /* table of its entry: 0 low, 1 high */
	uint8_t low_turn; /* UR_VL_MEASURED: a due low turn is in progress, high lanes wait */
	uint8_t mode;
	uint16_t served;	       /* bit v: VL v has weight */
	uint16_t paid;		       /* bit v: VL v has paid debt and has not sent since */
	uint8_t unit_shift, mtu_shift; /* unit of weights, of debts: 1 << shift bytes */
	int32_t limit;	    /* UR_VL_IBA: Limit of High-Priority, bytes; INT32_MAX: none */
	int32_t limit_left; /* <= 0: a ready low lane goes first */
	int32_t due_unit; /* UR_VL_MEASURED: high bytes allowed per unit of weight of the due low entry */
	int32_t used;		     /* high bytes in the turns begun since the last low turn */
	int8_t sl[16];		     /* VL of each SL; -1: no service */
	int32_t debt[UR_VL_CNT];     /* bytes, [0, UR_VL_DEBT_MAX] */
	struct ur_vl_table table[2]; /* low, high */
};

/*
 * `a` has passed ur_vl_attr_check() and is copied. To change the attributes of a running arbiter,
 * call this again between a charge and the next pick; turns, limit and debts are reset.
 */
void ur_vl_init(struct ur_vl *v, const struct ur_vl_attr *a);

/* Bit v: VL v has weight and may be in a ready mask. */
static inline uint16_t ur_vl_served(const struct ur_vl *v)
{
	return v->served;
}

/* VL of a service level in [0, 15]; -1: no service, so that posting with this SL must fail. */
static inline int ur_vl_of_sl(const struct ur_vl *v, unsigned sl)
{
	UR_ASSERT(sl < 16);
	return v->sl[sl]; /* VL-SL-01 */
}

unsigned ur_vl_choose(struct ur_vl *v, uint16_t ready); /* the slow path of ur_vl_pick() */

/* The lane of `ready` that sends next. `ready` is not 0 and a subset of ur_vl_served(). */
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

/* Accounts for the packet sent after a pick: `vl` is the lane picked, `bytes` the payload. */
static inline void ur_vl_charge(struct ur_vl *v, unsigned vl, uint32_t bytes)
{
	UR_ASSERT(vl == v->vl);
	v->left -= ur_vl_counted(bytes);
}

/*
 * Accounts for a packet of lane `vl` that was sent ahead of the arbitration. The lane owes `bytes`
 * and pays with its next turns.
 */
static inline void ur_vl_charge_ahead(struct ur_vl *v, unsigned vl, uint32_t bytes)
{
	int32_t debt;

	UR_ASSERT(vl < UR_VL_CNT);
	debt = v->debt[vl] + ur_vl_counted(bytes); /* VL-AHEAD-01 */
	v->debt[vl] = debt < UR_VL_DEBT_MAX ? debt : UR_VL_DEBT_MAX;
}

#endif
