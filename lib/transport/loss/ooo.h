/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_OOO_H
#define UR_TRANSPORT_OOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "transport/loss/selective.h"
#include "transport/wq.h"
#include "wire/ext.h"
#include "wire/roce.h"

struct ur_reorder_slot;

/*
 * The out-of-order context of an extended responder: what has arrived beyond ePSN, what has to wait
 * for its turn, and which memory was written early (docs/design/loss.md). Held from the first gap
 * until it closes, that is while anything is noted; a bounded pool a worker.
 *
 * PSNs given here lie in (ePSN, ePSN + UR_EXT_WINDOW) unless stated otherwise.
 *
 * Thread class: the QP's worker.
 */
#define UR_OOO_BOUND  64  /* receives of an SRQ that wait at once, a power of two */
#define UR_OOO_RANGES 512 /* ranges written early */
#define UR_OOO_HELD   256 /* packets that wait whole, > UR_RD_ATOMIC_MAX */

/* What has to wait of a packet. */
struct ur_ooo_deferred {
	uint8_t opcode;
	uint8_t flags; /* enum ur_xth_flags, UR_DEFERRED_SOLICITED */
	uint16_t payload_len;
	struct ur_msn ssn;	/* of XTH, */
	uint32_t offset, rwqen; /* and these */
	uint32_t arg;		/* immediate (host order) or key to invalidate */
	uint16_t held;		/* where it waits whole, or UR_OOO_NOT_HELD */
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
 * lie before ePSN by now): a packet that is not noted is older than all of them or younger.
 */
struct ur_ooo_range {
	uintptr_t lo, hi;
	struct ur_psn first, last;
};

struct ur_ooo {
	SLIST_ENTRY(ur_ooo) link; /* in the pool */
	struct ur_psn top;	  /* the newest noted; while deferred_cnt */
	uint16_t deferred_cnt, range_cnt;
	uint16_t held_cnt, slot_cnt;   /* slot_cnt of held_cnt have a slot */
	uint16_t recent;	       /* the range that grew last, < range_cnt or 0 */
	uint8_t bound_head, bound_cnt; /* receives [bound_head, + bound_cnt) of the ring `bound` */
	uint32_t bound_stride;	       /* bytes */
	uint64_t deferred[UR_EXT_WINDOW / 64]; /* bit PSN % UR_EXT_WINDOW */
	uint64_t held_used[UR_OOO_HELD / 64];
	uint8_t sack[UR_SACK_BYTES]; /* the bitmap of the ACK that was made last */
	struct ur_ooo_range range[UR_OOO_RANGES];
	struct ur_ooo_held held[UR_OOO_HELD];
	struct ur_ooo_deferred desc[UR_EXT_WINDOW]; /* of PSN % UR_EXT_WINDOW, where `deferred` */
	_Alignas(16) uint8_t bound[];
};

struct ur_ooo_pool {
	SLIST_HEAD(, ur_ooo) free;
	uint32_t free_cnt, cnt;
};

/* Bytes for `cnt` contexts whose receives have at most `max_sge` SGEs; 64-byte aligned. */
size_t ur_ooo_pool_size(uint32_t cnt, uint32_t max_sge);
void ur_ooo_pool_init(struct ur_ooo_pool *p, void *memory, uint32_t cnt, uint32_t max_sge);

/* An empty context; NULL when none is left. */
struct ur_ooo *ur_ooo_take(struct ur_ooo_pool *p);
void ur_ooo_give(struct ur_ooo_pool *p, struct ur_ooo *o);

/* ---- notes ---- */

static inline bool ur_ooo_is_deferred(const struct ur_ooo *o, struct ur_psn psn)
{
	uint32_t i = psn.v & (UR_EXT_WINDOW - 1);

	return o->deferred[i >> 6] >> (i & 63) & 1;
}

static inline struct ur_ooo_deferred *ur_ooo_deferred_at(struct ur_ooo *o, struct ur_psn psn)
{
	return &o->desc[psn.v & (UR_EXT_WINDOW - 1)];
}

/* Notes a packet that is not noted. */
void ur_ooo_defer(struct ur_ooo *o, struct ur_psn psn, const struct ur_ooo_deferred *note);
/* Its turn is over. */
void ur_ooo_forget(struct ur_ooo *o, struct ur_psn psn);

/*
 * Writes what has arrived beyond `epsn` to `sack` (wire/ext.h), as far as the newest. Returns
 * bytes, a multiple of 4.
 */
uint32_t ur_ooo_sack(struct ur_ooo *o, struct ur_psn epsn);

/* Keeps the packet; returns where. held_cnt < UR_OOO_HELD. */
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
bool ur_ooo_room(struct ur_ooo *o, struct ur_psn epsn, unsigned cnt);
/* [dst, dst + len), len > 0, was written by `psn`. There is room. */
void ur_ooo_written(struct ur_ooo *o, struct ur_psn psn, struct ur_psn epsn, const uint8_t *dst,
		    uint32_t len);

/* ---- receives taken from an SRQ ---- */

/* The i-th of them, i <= bound_cnt: the last is the place for the next. */
static inline struct ur_rwqe *ur_ooo_bound(struct ur_ooo *o, unsigned i)
{
	return (struct ur_rwqe *)(void *)(o->bound + ((o->bound_head + i) & (UR_OOO_BOUND - 1)) *
							     (size_t)o->bound_stride);
}

/* Asserts what is stated above. */
void ur_ooo_validate(const struct ur_ooo *o, struct ur_psn epsn);

#endif
