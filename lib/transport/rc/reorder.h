/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_REORDER_H
#define UR_TRANSPORT_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "transport/loss/reo_window.h"
#include "wire/packet.h"

/*
 * Standard mode (UR_MODE_REORDER): request packets that come before their turn are kept whole and
 * replayed, in order, when the hole before them is filled (docs/design/loss.md). A queue pair takes
 * a context from its worker's pool at the first early packet and gives it back when nothing is
 * kept; each packet kept takes a slot. Pools that are empty drop early packets, as go-back-N does.
 *
 * An attacker that knows the addresses and the QPN of a connection can forge an early packet by guessing a PSN
 * anywhere in the window. So a packet is believed when it lies close to what is known to have been
 * sent, or once so many of its kind have come that as many guesses would have found ePSN itself;
 * and of two that claim one PSN neither is. What is not believed when its turn comes is dropped and
 * asked for, as in go-back-N. docs/security.md has the figures.
 *
 * Here is also decided when a hole counts as a loss: so many later packets came, or it stayed open
 * for so long. Both are learned from NAKs that turn out to have been needless. A NAK that brings
 * nothing is repeated.
 *
 * Thread class: the QP's worker.
 */
#define UR_REORDER_WINDOW 1024 /* PSNs [ePSN, ePSN + W) may be kept; a power of two */

/*
 * REORDER-BELIEF-01. PSNs beyond the newest that is believed in which one more is, and how many
 * others are believed together. N guesses of PSNs that are NEAR apart, or MANY apiece for each W,
 * find either after 2^24 / NEAR: an eighth of what it takes to find ePSN.
 */
#define UR_REORDER_NEAR 8
#define UR_REORDER_MANY (UR_REORDER_WINDOW / UR_REORDER_NEAR)

#define UR_REORDER_REPORTED 8 /* holes reported that are remembered */

struct ur_qp;

/* A place for one packet. Extended mode uses slots too, for strict placement. */
struct ur_reorder_slot {
	SLIST_ENTRY(ur_reorder_slot) link; /* in the pool, or in a chain of the context */
	uint64_t arrival_ns;
	uint32_t op;	   /* enum ur_op_flags; what follows is as in struct ur_packet */
	uint32_t imm_ieth; /* the immediate or the key to invalidate */
	struct ur_psn psn;
	uint16_t payload_len;
	uint8_t opcode;
	bool ackreq, solicited;
	bool far; /* it is not believed so far */
	union {
		struct ur_reth reth;
		struct ur_atomiceth atomiceth;
	};
	uint8_t payload[]; /* ur_reorder_pool.slot_bytes of it */
};

struct ur_reorder; /* the context */

struct ur_reorder_pool {
	SLIST_HEAD(, ur_reorder_slot) free_slots;
	SLIST_HEAD(, ur_reorder) free_contexts;
	/* Slots that were never used are not touched: [unused, unused + unused_cnt *
	 * stride). */
	uint8_t *unused;
	size_t stride; /* bytes */
	uint32_t unused_cnt;
	uint32_t slot_cnt, slots_free;
	uint32_t context_cnt, contexts_free;
	uint16_t slot_bytes; /* largest payload */
};

/* Bytes of memory, 64-byte aligned, for slots of `slot_bytes` bytes of payload, and contexts. */
size_t ur_reorder_pool_size(uint32_t slots, uint16_t slot_bytes, uint32_t contexts);
void ur_reorder_pool_init(struct ur_reorder_pool *p, void *memory, uint32_t slots,
			  uint16_t slot_bytes, uint32_t contexts);

/*
 * A slot for a queue pair that holds `held` of them; NULL when all are in use, or when that is its
 * share. REORDER-SHARE-01: it holds at most four times what is left, so that of n queue pairs each
 * gets 4 / (4 n + 1) of all, and there is always something for the next.
 */
#define UR_REORDER_SHARE 4
struct ur_reorder_slot *ur_reorder_slot_take(struct ur_reorder_pool *p, uint32_t held);
void ur_reorder_slot_give(struct ur_reorder_pool *p, struct ur_reorder_slot *slot);

/* What a queue pair's responder keeps of all this while it is in order. */
struct ur_reorder_qp {
	struct ur_reorder *ctx; /* NULL: nothing is kept */
	struct ur_reo_window reo_window;
	uint16_t renak_us; /* how long a NAK may take to be answered */
	bool rnr;	   /* the packet at ePSN was answered with an RNR NAK */
	/* Some holes that were reported, by the low half of their PSN. A duplicate of one shows
	 * that the report was needless; that none comes for two windows, that it was not. */
	uint16_t reported[UR_REORDER_REPORTED];
	uint8_t open;  /* bit i: reported[i] is awaited */
	uint8_t again; /* bit i: reported[i] was reported more than once */
};

void ur_reorder_qp_init(struct ur_reorder_qp *r);

/*
 * Packet p, PSN in (ePSN, ePSN + 2^23), came early. NONE: it is kept. PSN_DUPLICATE: it was.
 * CONFLICT: another was, and is not any more. Else NO_CONTEXT; if no context is held either, the
 * gap is the caller's to report, as in go-back-N.
 */
enum ur_drop ur_reorder_keep(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);

/*
 * A context is held and ePSN may have moved: takes the packet at ePSN out, to be executed and given
 * back to the pool, or NULL. What lies before ePSN is forgotten.
 */
struct ur_reorder_slot *ur_reorder_next(struct ur_qp *qp);
/* The packet in `slot`; it points into it. */
void ur_reorder_packet(const struct ur_reorder_slot *slot, struct ur_packet *p);

/*
 * A context is held and ur_reorder_next() said NULL, or the packet at ePSN got an RNR NAK: judges
 * the hole at ePSN, or gives the context back.
 */
void ur_reorder_judge_hole(struct ur_qp *qp, uint64_t now_ns);

/* A duplicate came: when it is a hole that was reported, the NAK was needless. */
void ur_reorder_duplicate(struct ur_qp *qp, struct ur_psn psn);

/* Forgets what is kept. */
void ur_reorder_stop(struct ur_qp *qp);

/* Packets kept that will be executed in their turn, as far as is known now. */
uint32_t ur_reorder_believed(const struct ur_reorder_qp *r);

/* When ur_reorder_timer() has something to do; UR_NEVER. */
uint64_t ur_reorder_deadline(const struct ur_reorder_qp *r);
void ur_reorder_timer(struct ur_qp *qp, uint64_t now_ns);

void ur_reorder_validate(const struct ur_qp *qp);

#endif
