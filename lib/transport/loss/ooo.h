/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_OOO_H
#define UR_TRANSPORT_OOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/slabs.h"
#include "transport/loss/selective.h"
#include "transport/wq.h"
#include "wire/ext.h"
#include "wire/roce.h"

struct ur_reorder_slot;

/*
 * The out-of-order context of an extended responder: what has arrived beyond ePSN, what has to wait
 * for its turn, and which memory was written early (docs/design/loss.md). Held from the first gap
 * until it closes, that is while anything is noted. It notes PSNs in (ePSN, ePSN + span), and grows
 * with the gap as far as memory allows; so do its lists of ranges, of packets that wait whole, and of
 * receives, which take memory when they have an element.
 *
 * Where a call needs memory that is refused, nothing has changed.
 *
 * Thread class: the QP's worker.
 */
#define UR_OOO_BOUND  64   /* receives of an SRQ that wait at once, a power of two */
#define UR_OOO_RANGES 2048 /* ranges written early */
#define UR_OOO_HELD   256  /* packets that wait whole, > UR_RD_ATOMIC_MAX */

/* What has to wait of a packet. */
struct ur_ooo_deferred {
	uint32_t ssn : 24, opcode : 8;	 /* of XTH; of BTH */
	uint32_t offset : 24, flags : 8; /* of XTH; enum ur_xth_flags, UR_DEFERRED_SOLICITED */
	uint32_t rwqen;			 /* of XTH */
	uint32_t arg;			 /* immediate (host order) or key to invalidate */
	uint16_t payload_len;
	uint16_t held; /* where it waits whole, or UR_OOO_NOT_HELD */
};
#define UR_DEFERRED_SOLICITED 0x80
#define UR_OOO_NOT_HELD	      0xffff

/* A READ or atomic request, or the end of a WRITE that is placed strictly: it waits whole. */
struct ur_ooo_held {
	union {
		struct ur_reth reth;
		struct ur_atomiceth atomic;
	};
	uint64_t arrival_ns;
	struct ur_stamp stamp;
	uint8_t path;
	struct ur_reorder_slot *slot; /* the payload of a WRITE; NULL: READ, atomic */
};

/*
 * Host memory [lo, hi) that the packets [first, last] wrote, all of which are noted (or were, and
 * lie before ePSN by now): a packet that is not noted is older than all of them or younger. Ranges
 * may overlap. They are sorted by lo; `reach` is the largest hi of a range and those before it.
 */
struct ur_ooo_range {
	uintptr_t lo, hi, reach;
	struct ur_psn first, last;
};

struct ur_ooo {
	uint32_t span;		       /* a power of two, [UR_TIER_LEAST, most of the pool] */
	struct ur_psn top;	       /* the newest noted; while deferred_cnt */
	struct ur_psn swept;	       /* ranges were last looked through then */
	uint32_t bound_stride;	       /* bytes */
	uint16_t deferred_cnt;	       /* PSNs that are noted */
	uint16_t range_cnt, range_cap; /* of `range` */
	uint16_t recent;	       /* the range with the newest packets, < range_cnt or 0 */
	uint16_t held_cnt, held_cap;   /* of `held` */
	uint16_t slot_cnt;	       /* of held_cnt: with a slot */
	uint8_t bound_head, bound_cnt,
		bound_cap;  /* [bound_head, + bound_cnt) of the ring `bound` */
	bool refused;	    /* memory for the next tier was refused; counted once */
	bool newest_told;   /* the last part of the bitmap was the newest, */
	struct ur_psn told; /* and the last other one ended here */
	struct ur_ooo_range *range;
	struct ur_ooo_held *held;
	uint64_t *held_used;
	uint8_t *bound;
	uint64_t *deferred;	      /* bit PSN % span */
	uint8_t *sack;		      /* the bitmaps of the ACKs that were made last */
	struct ur_ooo_deferred *desc; /* of PSN % span, where `deferred` */
	uint64_t words[];
};

/* Out-of-order contexts of a worker. The counters only grow. */
struct ur_ooo_pool {
	struct ur_slabs *slabs;
	uint32_t first;	       /* span of the first tier, */
	uint32_t most;	       /* and of the last */
	uint32_t bound_stride; /* bytes of a receive */
	uint32_t held_cnt;     /* contexts that are held */
	uint64_t grown_cnt;    /* contexts that moved to a larger tier */
	uint64_t short_cnt;    /* contexts that were refused the tier that a packet needed */
};

/*
 * Takes contexts from `slabs`, which outlives it. `first` and `most` are powers of two, UR_TIER_LEAST <= first <= most;
 * receives have at most `max_sge` SGEs.
 */
void ur_ooo_pool_init(struct ur_ooo_pool *p, struct ur_slabs *slabs, uint32_t first, uint32_t most,
		      uint32_t max_sge);
/* Bytes of a context with empty lists. */
size_t ur_ooo_bytes(uint32_t span);

/*
 * LOSS-OWN-01. Memory of a queue pair's own, which is taken where slabs have none: for a context of UR_OWN_SPAN numbers and
 * UR_OWN_RANGES ranges.
 */
#define UR_OWN_RANGES 8
#define UR_OOO_OWN_BYTES                                                                           \
	UR_SLABS_OWN_BYTES(sizeof(struct ur_ooo) + UR_OWN_SPAN / 4 +                               \
			   UR_OWN_SPAN * sizeof(struct ur_ooo_deferred))
#define UR_OWN_EARLY_BYTES                                                                         \
	(UR_OOO_OWN_BYTES + UR_SLABS_OWN_BYTES(UR_OWN_RANGES * sizeof(struct ur_ooo_range)))

/*
 * An empty context that can note epsn + ahead; NULL when there is no memory for one. `own`: UR_OWN_EARLY_BYTES, aligned to 16, or NULL; no
 * other context has been taken with it and not been given back.
 */
struct ur_ooo *ur_ooo_take(struct ur_ooo_pool *p, void *own, struct ur_psn epsn, uint32_t ahead);
void ur_ooo_give(struct ur_ooo_pool *p, struct ur_ooo *o);
/* Lets *o note epsn + ahead, ahead < most; *o may move. False: memory is refused. */
bool ur_ooo_reach(struct ur_ooo_pool *p, struct ur_ooo **o, struct ur_psn epsn, uint32_t ahead);

/* ---- notes ---- */

static inline bool ur_ooo_is_deferred(const struct ur_ooo *o, struct ur_psn psn)
{
	uint32_t i = psn.v & (o->span - 1);

	return o->deferred[i >> 6] >> (i & 63) & 1;
}

static inline struct ur_ooo_deferred *ur_ooo_deferred_at(struct ur_ooo *o, struct ur_psn psn)
{
	return &o->desc[psn.v & (o->span - 1)];
}

/* Notes a packet that is not noted; ur_ooo_reach() was true of it. */
void ur_ooo_defer(struct ur_ooo *o, struct ur_psn psn, const struct ur_ooo_deferred *note);
/* Its turn is over. */
void ur_ooo_forget(struct ur_ooo *o, struct ur_psn psn);

/* A part of the bitmap (wire/ext.h), or the whole: then offset is 0 and `more` false. */
struct ur_ooo_part {
	const uint8_t *sack;
	uint32_t bytes, offset; /* bytes is a multiple of 4, at most UR_SACK_BYTES */
	bool more;		/* there is more behind it */
};

/*
 * EXT-OOO-PART-01. Writes what has arrived beyond `epsn` to one of the areas at o->sack, as far as the newest. It stays there until the next
 * call with the same `lowest`, or one that tells the whole. Of what does not fit, the newest part
 * takes turns with the others, which follow each other from ePSN on; `lowest`: the one at ePSN.
 */
struct ur_ooo_part ur_ooo_sack(struct ur_ooo *o, struct ur_psn epsn, bool lowest);

/* Whether one more packet can wait whole. */
bool ur_ooo_hold_room(struct ur_ooo_pool *p, struct ur_ooo *o);
/* Keeps the packet; returns where. There is room. */
uint16_t ur_ooo_hold(struct ur_ooo *o, const struct ur_ooo_held *h);
/* Its slot, if any, is the caller's again. */
void ur_ooo_release(struct ur_ooo *o, uint16_t held);

/* ---- memory ---- */

/*
 * Copies to [dst, dst + len) what no younger packet has written. False, and nothing is written,
 * when younger packets wrote nothing of it. `psn` may be ePSN; len is at most UR_OOO_WRITE_MAX.
 */
#define UR_OOO_WRITE_MAX 4096
bool ur_ooo_write(const struct ur_ooo *o, struct ur_psn psn, uint8_t *dst, const uint8_t *src,
		  uint32_t len);

/* Whether `cnt` more ranges fit, after those were forgotten that lie before ePSN. */
bool ur_ooo_room(struct ur_ooo_pool *p, struct ur_ooo *o, struct ur_psn epsn, unsigned cnt);
/* [dst, dst + len), len > 0, was written by `psn`. There is room. */
void ur_ooo_written(struct ur_ooo *o, struct ur_psn psn, const uint8_t *dst, uint32_t len);

/* ---- receives taken from an SRQ ---- */

/* Whether `cnt` receives fit; cnt is at most UR_OOO_BOUND. */
bool ur_ooo_bound_room(struct ur_ooo_pool *p, struct ur_ooo *o, unsigned cnt);

/* The i-th of them, i <= bound_cnt: the last is the place for the next, if there is room. */
static inline struct ur_rwqe *ur_ooo_bound(struct ur_ooo *o, unsigned i)
{
	return (struct ur_rwqe *)(void *)(o->bound + ((o->bound_head + i) & (o->bound_cap - 1u)) *
							     (size_t)o->bound_stride);
}

/* The first of them is no longer here. */
static inline void ur_ooo_unbind(struct ur_ooo *o)
{
	o->bound_head = (uint8_t)((o->bound_head + 1u) & (o->bound_cap - 1u));
	o->bound_cnt--;
}

/* Asserts what is stated above. */
void ur_ooo_validate(const struct ur_ooo *o, struct ur_psn epsn);

#endif
