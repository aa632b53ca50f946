/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ADMISSION_POOL_H
#define UR_ADMISSION_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "admission/attr.h"

/*
 * Who may take a receive from a shared pool: A/B aging (docs/design/admission.md). The pool judges
 * requests, remembers which queue pairs it refused and with which letter, calls them when
 * receives come, and knows which peers have yet to hear of a change. It counts no receives:
 * the caller says how many are posted.
 *
 * Constant time and no allocation: marks lie in queue pairs, peers in whatever knows peers. Time in
 * ns, never going back.
 *
 * Thread class: the worker that owns the pool.
 */

/* What a queue pair owns: the letter it holds. All zero when it holds none. */
struct ur_adm_mark {
	TAILQ_ENTRY(ur_adm_mark) order; /* in waiting[letter] or called */
	TAILQ_ENTRY(ur_adm_mark) heard; /* in heard */
	uint64_t heard_ns;		/* last word of the queue pair */
	uint64_t called_ns;		/* valid while called */
	uint16_t generation;		/* of the pool when it got the letter */
	uint8_t letter;			/* enum ur_adm_letter */
	bool called;
};

TAILQ_HEAD(ur_adm_marks, ur_adm_mark);

/* A peer that is to hear of changes; the caller's. */
struct ur_adm_peer {
	TAILQ_ENTRY(ur_adm_peer) link; /* in peers[class] */
	uint64_t rtt_ns; /* may be written at any time; counts from the next NOTIFY on */
	uint64_t told_ns;
	uint16_t told; /* generation */
	uint8_t class; /* told again 2^(UR_ADM_CLASS_MIN + class) ns after told_ns, not before */
};

TAILQ_HEAD(ur_adm_peers, ur_adm_peer);

#define UR_ADM_CLASS_MIN 10 /* 2^10 ns: 1 us */
#define UR_ADM_CLASSES	 24 /* the last: 2^33 ns, 8.6 s */

struct ur_adm_limits {
	enum ur_adm_mode mode;
	uint64_t mark_life_ns; /* a mark goes after so long a silence of its holder; > 0 */
	uint64_t recall_ns;    /* a call that is not followed in so long is void; > 0 */
};

struct ur_adm_pool {
	uint16_t generation;   /* grows by 1 with each change of status */
	uint8_t status;	       /* enum ur_adm_status */
	uint32_t marked[3];    /* queue pairs that hold letter i; [0] stays 0 */
	uint32_t called_cnt;   /* of them called; they hold the served letter */
	uint32_t peer_classes; /* bit i: peers[i] is not empty */
	struct ur_adm_limits limits;
	struct ur_adm_marks waiting[3];		   /* by letter, in order of marking */
	struct ur_adm_marks called;		   /* in order of calling */
	struct ur_adm_marks heard;		   /* all marked, longest silent first */
	struct ur_adm_peers peers[UR_ADM_CLASSES]; /* each: told longest ago first */
	struct ur_adm_counters cnt;
};

void ur_adm_pool_init(struct ur_adm_pool *p, const struct ur_adm_limits *limits);

/* The letter whose holders go first now. */
static inline enum ur_adm_letter ur_adm_pool_served(const struct ur_adm_pool *p)
{
	return p->status <= UR_ADM_A ? UR_ADM_LETTER_A : UR_ADM_LETTER_B;
}

/* Receives of `posted` that are not promised to a queue pair that was called. */
static inline uint32_t ur_adm_pool_room(const struct ur_adm_pool *p, uint32_t posted)
{
	return posted > p->called_cnt ? posted - p->called_cnt : 0;
}

/* Whether a queue pair that holds no letter would be accepted now. */
static inline bool ur_adm_pool_is_open(const struct ur_adm_pool *p, uint32_t posted)
{
	return !(p->status & 1) && ur_adm_pool_room(p, posted);
}

/*
 * The queue pair of `m` asks for a receive; `claim` is the letter its packet says it has (any
 * byte), `posted` what the pool has. True: it takes one, and holds no letter any more. False: it is
 * refused, with the letter m->letter (none in mode plain).
 */
bool ur_adm_pool_request(struct ur_adm_pool *p, struct ur_adm_mark *m, uint8_t claim,
			 uint32_t posted, uint64_t now_ns);

/* Anything else was heard of the queue pair of `m`, marked or not. */
void ur_adm_pool_heard(struct ur_adm_pool *p, struct ur_adm_mark *m, uint64_t now_ns);

/* The queue pair of `m` failed, went away or lost its peer. Harmless when it holds no letter. */
void ur_adm_pool_forget(struct ur_adm_pool *p, struct ur_adm_mark *m);

/*
 * The next queue pair that is to be told that a receive waits for it, or NULL. Call it until NULL
 * after receives were posted, after a request, forget and expire.
 */
struct ur_adm_mark *ur_adm_pool_next_call(struct ur_adm_pool *p, uint32_t posted, uint64_t now_ns);

/* ---- peers ---- */

/* A peer connects; it counts as told, for its first ACK tells it. */
void ur_adm_peer_add(struct ur_adm_pool *p, struct ur_adm_peer *peer, uint64_t rtt_ns,
		     uint64_t now_ns);
void ur_adm_peer_remove(struct ur_adm_pool *p, struct ur_adm_peer *peer);

/*
 * The next peer that is to be sent a NOTIFY with the present status and generation, or NULL: all
 * have been told, or were told less than a round trip ago. The peer counts as told.
 */
struct ur_adm_peer *ur_adm_pool_next_notify(struct ur_adm_pool *p, uint64_t now_ns);

/* ---- time ---- */

/* Drops marks of the silent and voids calls that were not followed. */
void ur_adm_pool_expire(struct ur_adm_pool *p, uint64_t now_ns);

/* When expire or next_notify has something to do; UINT64_MAX: no such time. */
uint64_t ur_adm_pool_deadline(const struct ur_adm_pool *p);

/* Asserts what must hold between the fields. Time in proportion to marks and peers: for tests. */
void ur_adm_pool_validate(const struct ur_adm_pool *p);

#endif
