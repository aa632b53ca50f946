/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_SPRAY_H
#define UR_TRANSPORT_SPRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include "transport/attr.h"
#include "wire/psn.h"
#include "wire/stamp.h"

/*
 * Spraying: which of its UDP source ports the next packet of a queue pair takes, so that networks
 * that hash ports over several ways use all of them (extended mode, docs/design/loss.md). A path
 * is an index [0, n); path 0 is the queue pair's own port.
 *
 * Paths take turns, each with as many packets a round as its weight; the turn moves on by one path
 * between rounds, so that no path has the same place in every burst. Weights are found anew every
 * few rounds from what was reported: a path that does much worse than the best is used less, down
 * to one packet in some hundred, and gets its share back when it does well again.
 *
 * A rate of loss up to twice the least and 3 % costs nothing, beyond that in inverse proportion. A
 * round trip up to 1.5 times the least costs nothing, beyond that by the square: twice the least
 * leaves a path 9/16 of its share, three times 1/4, six times 1/16, and nothing takes more.
 *
 * What is compared is the least of several round trips of each path, and nothing before there are
 * several. Means would tell of the moments in which a thread of the peer did not run, whichever
 * path was asked about just then; the delay of a path, be it of its length or of a queue that
 * stands in it, is in the least one as well.
 *
 * Memory is the caller's: ur_spray_size() bytes for a queue pair that sprays; one that does not has
 * NULL, which every function but init takes for one path.
 *
 * Thread class: the queue pair's worker.
 */
#define UR_SPRAY_WEIGHT 16 /* of a path that is as good as the best */

struct ur_spray_path {
	uint32_t rtt; /* round trip, stamps of 16 ns: falls at once, grows by halves; 0: unknown */
	uint32_t least;	 /* of the `samples` reported since rtt was confirmed */
	uint16_t sent;	 /* packets, older ones count less */
	uint16_t lost;	 /* of them; may be ahead of `sent` for a while */
	uint8_t weight;	 /* [0, UR_SPRAY_WEIGHT]; 0: one packet now and then */
	uint8_t credit;	 /* packets left in this round */
	uint8_t samples; /* round trips in `least`, up to 255 */
};

struct ur_spray {
	uint16_t ready;		     /* bit i: path i has credit */
	uint8_t n;		     /* [1, UR_SPRAY_MAX] */
	uint8_t last;		     /* path of the newest packet */
	uint8_t rounds;		     /* until weights are found anew */
	struct ur_spray_path path[]; /* [0, n) */
};

static inline size_t ur_spray_size(uint8_t n)
{
	return sizeof(struct ur_spray) + n * sizeof(struct ur_spray_path);
}

/* n in [1, UR_SPRAY_MAX]; all paths are equal. */
void ur_spray_init(struct ur_spray *s, uint8_t n);

/* The path of the next packet, for which the caller spends it. */
uint8_t ur_spray_pick(struct ur_spray *s);

static inline uint8_t ur_spray_next(struct ur_spray *s)
{
	return s && s->n > 1 ? ur_spray_pick(s) : 0;
}

/*
 * A packet that took `path` was answered after `rtt` stamps (without the peer's residence), or was
 * deemed lost. Not every packet needs a report of its round trip; every loss needs one. A path out
 * of range (an echo is the peer's word) is ignored.
 */
void ur_spray_acked(struct ur_spray *s, uint8_t path, uint32_t rtt);
void ur_spray_lost(struct ur_spray *s, uint8_t path);

/*
 * The path seems dead: it takes no more packets until weights are found anew, and then begins with the least. If no other one is in
 * use, nothing is known of any: all are used equally again. (SPRAY-DEAD-01)
 */
void ur_spray_avoid(struct ur_spray *s, uint8_t path);

/* ---- of a queue pair ---- */

#define UR_SPRAY_PSNS	2048 /* PSNs whose path is remembered, a power of two */
#define UR_SPRAY_RESENT 0x80 /* beside a path: the PSN was sent again by it */
#define UR_SPRAY_IN_ROW 3    /* packets lost one after the other that make a path seem dead */

/*
 * What a queue pair that sprays has: its paths, and which of them each PSN in flight took last;
 * UR_SPRAY_MAX: no path is to blame.
 */
struct ur_spray_qp {
	SLIST_ENTRY(ur_spray_qp) link;	      /* in the pool */
	uint8_t of[UR_SPRAY_PSNS];	      /* path of PSN % UR_SPRAY_PSNS */
	struct ur_stamp echoed[UR_SPRAY_MAX]; /* newest stamp of each path that gave a round trip */
	struct ur_psn lost[UR_SPRAY_MAX];     /* of each path, the last one that was lost */
	uint8_t in_row[UR_SPRAY_MAX]; /* lost since one arrived by the path, as far as is known */
	struct ur_spray paths;	      /* must be last */
};

/* Bounded pool; one a worker. */
struct ur_spray_pool {
	SLIST_HEAD(, ur_spray_qp) free;
	uint32_t free_cnt, cnt;
};

size_t ur_spray_pool_size(uint32_t cnt);
void ur_spray_pool_init(struct ur_spray_pool *p, void *memory, uint32_t cnt);
/*
 * For n paths, all equal, nothing stamped up to `stamp` is of interest; NULL when none is left
 * (then the queue pair does not spray).
 */
struct ur_spray_qp *ur_spray_take(struct ur_spray_pool *p, uint8_t n, struct ur_stamp stamp);
void ur_spray_give(struct ur_spray_pool *p, struct ur_spray_qp *s);

/* The last transmission of `psn` was lost: charges the loss to its path, and avoids a path that seems dead. */
void ur_spray_psn_lost(struct ur_spray_qp *s, struct ur_psn psn);

/* `psn` leaves by `path`; `again`: its last transmission was deemed lost. */
static inline void ur_spray_sent(struct ur_spray_qp *s, struct ur_psn psn, uint8_t path, bool again)
{
	if (again)
		ur_spray_psn_lost(s, psn);
	s->of[psn.v & (UR_SPRAY_PSNS - 1)] = again ? path | UR_SPRAY_RESENT : path;
}

/* The peer had no receive for what is in flight: that it is sent again tells nothing of paths. */
static inline void ur_spray_refused(struct ur_spray_qp *s)
{
	memset(s->of, UR_SPRAY_MAX, sizeof(s->of));
	memset(s->in_row, 0, sizeof(s->in_row));
}

#endif
