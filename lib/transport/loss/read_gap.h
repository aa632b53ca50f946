/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_READ_GAP_H
#define UR_TRANSPORT_READ_GAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "transport/loss/reo_window.h"
#include "wire/psn.h"

/*
 * Standard mode (UR_MODE_REORDER): READ and atomic responses that come while an older one is
 * missing (docs/design/loss.md). They are placed on arrival and noted in a bitmap; the missing ones
 * are asked for by a READ request for just the lowest hole. A queue pair takes a context from its
 * worker's pool at the first such response and gives it back when nothing is noted any more.
 *
 * It knows PSNs and times, nothing of WQEs or packets.
 *
 * Thread class: the QP's worker.
 */
#define UR_READ_GAP_WINDOW 4096 /* PSNs [una, una + W) may be noted; a power of two */

/*
 * REORDER-BELIEF-02. How many responses beyond the newest believed one more is believed. Guesses so
 * far apart find a window of responses after 2^24 / NEAR of them (docs/security.md).
 */
#define UR_READ_GAP_NEAR 8

struct ur_read_gap {
	SLIST_ENTRY(ur_read_gap) link;		   /* in the pool */
	uint64_t arrived[UR_READ_GAP_WINDOW / 64]; /* by PSN modulo W; bits of [una, una + W) */
	uint32_t cnt;				   /* bits set */
	struct ur_psn una;			   /* the hole: the oldest PSN that is missing */
	uint32_t later;		 /* what came from beyond it since it is the lowest */
	uint64_t since_ns;	 /* when that began */
	struct ur_psn asked_end; /* `asked`: [una, asked_end) was asked for again */
	struct ur_psn asked_max; /* when nothing from here on had been asked for */
	bool asked;
	uint64_t deadline_ns; /* when the hole counts as lost; UR_NEVER */
	struct ur_psn sure;   /* the newest response believed is before it */
	struct ur_psn run;    /* the newest that was not is before it, */
	uint32_t run_cnt;     /* the last of so many that lay near one another */
};

struct ur_read_gap_pool {
	SLIST_HEAD(, ur_read_gap) free;
	uint32_t free_cnt, cnt;
};

size_t ur_read_gap_pool_size(uint32_t cnt);
void ur_read_gap_pool_init(struct ur_read_gap_pool *p, void *memory, uint32_t cnt);

/* A context whose lowest hole is at `una`, or NULL when none is left. */
struct ur_read_gap *ur_read_gap_take(struct ur_read_gap_pool *p, struct ur_psn una,
				     uint64_t now_ns);
void ur_read_gap_give(struct ur_read_gap_pool *p, struct ur_read_gap *g);

/* Whether the response `psn` of [una, una + W) came before. */
bool ur_read_gap_has(const struct ur_read_gap *g, struct ur_psn psn);

/* The response `psn` of [una, una + W) came, which ur_read_gap_has() not yet; una must move if it
 * is it. */
void ur_read_gap_on_response(struct ur_read_gap *g, struct ur_psn psn);

/*
 * REORDER-BELIEF-02. Whether the response `psn`, which has not come before, is the peer's: it is
 * near `sure`, or the last of `many` in a row, each near `run` as the one before it left that.
 */
bool ur_read_gap_believes(struct ur_read_gap *g, struct ur_psn psn, bool near_sure, bool near_run,
			  uint32_t many);

/* The first PSN of [from, end) whose response is missing; `end` when none is. */
struct ur_psn ur_read_gap_missing(const struct ur_read_gap *g, struct ur_psn from,
				  struct ur_psn end);
/* The first PSN of [from, end) whose response has come; `end` when none has. */
struct ur_psn ur_read_gap_present(const struct ur_read_gap *g, struct ur_psn from,
				  struct ur_psn end);

/* una has moved to `una`, at most W further: what was noted before it is forgotten. */
void ur_read_gap_advance(struct ur_read_gap *g, struct ur_psn una, struct ur_reo_window *reo_window,
			 uint64_t now_ns);

/*
 * Something came that proves the hole: a response beyond it (`psn` is its PSN) or an
 * acknowledgement
 * (`psn` is una). True when the hole counts as lost now and is to be asked for again; else
 * deadline_ns says when it will. `again_ns` is how long an answer to a request may take.
 */
bool ur_read_gap_judge(struct ur_read_gap *g, struct ur_psn psn,
		       const struct ur_reo_window *reo_window, uint64_t again_ns, uint64_t now_ns);

/* [una, end) is asked for again; the oldest PSN that has not been asked for is `max`. */
void ur_read_gap_on_reask(struct ur_read_gap *g, struct ur_psn end, struct ur_psn max,
			  uint64_t again_ns, uint64_t now_ns);

#endif
