/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ADMISSION_POOL_H
#define UR_ADMISSION_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "admission/attr.h"

/*
 * Admission to a shared receive pool by A/B aging (docs/design/admission.md). The pool accepts or
 * refuses requests, records which queue pairs it refused and with which queue class, grants them
 * receives when some are posted, and records which peers have not got the latest status yet. It does
 * not count receives: the caller passes the number posted.
 *
 * Every call takes constant time unless it says otherwise, and none allocates: a struct ur_adm_refusal
 * is part of a queue pair, a struct ur_adm_peer part of the caller's record of a peer. Both must stay
 * at their address while the pool knows them. Times are in ns and never go back.
 *
 * Thread class: the worker that owns the pool.
 */

/* The refusal of a queue pair's request. All zero while there is none. */
struct ur_adm_refusal {
	TAILQ_ENTRY(ur_adm_refusal) order;  /* in waiting[queue_class] or granted */
	TAILQ_ENTRY(ur_adm_refusal) by_age; /* in by_age */
	uint64_t seen_ns;		    /* last packet of the queue pair */
	uint64_t granted_ns;		    /* valid while granted */
	uint16_t generation;		    /* of the pool when it refused the request */
	uint8_t queue_class;		    /* enum ur_adm_class */
	bool granted;			    /* a receive is reserved for the request */
};

TAILQ_HEAD(ur_adm_refusals, ur_adm_refusal);

/* A peer that is notified of changes of status; the caller's. */
struct ur_adm_peer {
	TAILQ_ENTRY(ur_adm_peer) link; /* in peers[rtt_class] */
	uint64_t rtt_ns;	       /* may be written at any time; read at each NOTIFY */
	uint64_t notified_ns;
	uint16_t notified_generation;
	uint8_t rtt_class; /* the next NOTIFY is 2^(UR_ADM_RTT_CLASS_MIN + rtt_class) ns later; paper: 0 */
};

TAILQ_HEAD(ur_adm_peers, ur_adm_peer);

#define UR_ADM_RTT_CLASS_MIN 10 /* 2^10 ns: 1 us */
#define UR_ADM_RTT_CLASSES   24 /* the last: 2^33 ns, 8.6 s */

struct ur_adm_limits {
	enum ur_adm_mode mode;
	uint64_t refusal_life_ns; /* a refusal is dropped after so long a silence; > 0 */
	uint64_t grant_life_ns;	  /* a grant that is not used for so long is void; > 0 */
};

struct ur_adm_pool {
	uint16_t generation;  /* grows by 1 with each change of status */
	uint8_t status;	      /* enum ur_adm_status */
	uint32_t refused[3];  /* queue pairs of queue class i; [0] stays 0 */
	uint32_t granted_cnt; /* of these with a grant; all of the served class */
	uint32_t rtt_classes; /* bit i: peers[i] is not empty */
	struct ur_adm_limits limits;
	struct ur_adm_refusals waiting[3];	       /* by queue class, oldest refusal first */
	struct ur_adm_refusals granted;		       /* oldest grant first */
	struct ur_adm_refusals by_age;		       /* all, longest silent first */
	struct ur_adm_peers peers[UR_ADM_RTT_CLASSES]; /* each: notified longest ago first */
	struct ur_adm_counters cnt;
};

void ur_adm_pool_init(struct ur_adm_pool *p, const struct ur_adm_limits *limits);

/* The status that the pool had at `generation`, which it has reached. */
static inline uint8_t ur_adm_pool_status_at(const struct ur_adm_pool *p, uint16_t generation)
{
	return (uint8_t)(p->status - (uint16_t)(p->generation - generation)) & 3;
}

/* The queue class that is served first now. */
static inline enum ur_adm_class ur_adm_pool_served(const struct ur_adm_pool *p)
{
	return p->status <= UR_ADM_A ? UR_ADM_CLASS_A : UR_ADM_CLASS_B;
}

/* How many of `posted` receives are not reserved by a grant. */
static inline uint32_t ur_adm_pool_room(const struct ur_adm_pool *p, uint32_t posted)
{
	return posted > p->granted_cnt ? posted - p->granted_cnt : 0;
}

/* Whether a queue pair that was not refused would be accepted now. */
static inline bool ur_adm_pool_is_open(const struct ur_adm_pool *p, uint32_t posted)
{
	return !(p->status & 1) && ur_adm_pool_room(p, posted);
}

/*
 * The queue pair of `r` requests a receive. `claim` is the queue class in its packet, any byte; it is
 * counted if wrong and decides nothing. `posted`: receives in the pool. True: the request takes one
 * and *r is zero. False: it is refused, with r->queue_class (none in mode plain).
 */
bool ur_adm_pool_request(struct ur_adm_pool *p, struct ur_adm_refusal *r, uint8_t claim,
			 uint32_t posted, uint64_t now_ns);

/* Any other packet of the queue pair has arrived: renews its refusal, if it has one. */
void ur_adm_pool_refresh(struct ur_adm_pool *p, struct ur_adm_refusal *r, uint64_t now_ns);

/* The queue pair failed, was destroyed or lost its peer. Without a refusal it does nothing. */
void ur_adm_pool_forget(struct ur_adm_pool *p, struct ur_adm_refusal *r);

/*
 * Reserves a receive for the oldest refusal of the served class and returns it, NULL if there is none
 * or no room; the caller sends the grant. To be called until NULL after receives were posted, and
 * after request, forget and expire.
 */
struct ur_adm_refusal *ur_adm_pool_next_grant(struct ur_adm_pool *p, uint32_t posted,
					      uint64_t now_ns);

/* ---- peers ---- */

/*
 * Adds a peer. It counts as notified: its first ACK brings the status. In mode paper it counts as
 * notified of what the others were notified of.
 */
void ur_adm_peer_add(struct ur_adm_pool *p, struct ur_adm_peer *peer, uint64_t rtt_ns,
		     uint64_t now_ns);
void ur_adm_peer_remove(struct ur_adm_pool *p, struct ur_adm_peer *peer);

/*
 * The next peer to send a NOTIFY of peer->notified_generation; it counts as notified of that. In mode
 * intelligent this is the present generation, at most once per round trip. In mode paper every change
 * is sent, at once and in order: call again until NULL. NULL: none is due now.
 */
struct ur_adm_peer *ur_adm_pool_next_notify(struct ur_adm_pool *p, uint64_t now_ns);

/* ---- time ---- */

/* Drops refusals of silent queue pairs and voids unused grants. Time in proportion to these. */
void ur_adm_pool_expire(struct ur_adm_pool *p, uint64_t now_ns);

/* When expire or next_notify has something to do; UINT64_MAX: never. */
uint64_t ur_adm_pool_deadline(const struct ur_adm_pool *p);

/* Asserts the invariants. Time in proportion to refusals and peers: for tests. */
void ur_adm_pool_validate(const struct ur_adm_pool *p);

#endif
