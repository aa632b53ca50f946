/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_ADMISSION_H
#define UR_SWITCH_ADMISSION_H

#include <bsd/sys/queue.h>

#include "switch/queue.h"

/*
 * The status of receive pools, in the switch (docs/design/admission.md, "In the switch"): NOTIFYs that pass
 * through tell it, and requests that their pool would refuse wait here, at the first hop, until the status changes.
 * A switch that is wrong delays a request by UR_SWITCH_HOLD_NS, no more; whatever is unknown, old, ambiguous or too much
 * passes.
 *
 * Thread class: the switch's.
 */
#define UR_SWITCH_POOLS	    1024     /* whose status is known */
#define UR_SWITCH_POOL_QPS  64	     /* of one pool, with requests that wait */
#define UR_SWITCH_HELD_QPS  2048     /* of all pools */
#define UR_SWITCH_POOL_NS   80000000 /* a status is valid for so long */
#define UR_SWITCH_HOLD_NS   500000   /* most that a request waits: below the least RTO of 1 ms */
#define UR_SWITCH_HOLD_PART 4	     /* of a port's references may wait */

/*
 * A queue pair whose request waits, and everything after it. It waits for its pool's status, in the lists `waiting`; or it
 * goes: then it is in the list of the port where its first reference is to leave, and its references move to their lanes
 * as far as there is room. Its packets stay in order in either case.
 */
struct ur_switch_held {
	TAILQ_ENTRY(ur_switch_held)
	link; /* in those that wait, by time; or in a port's that go; or free */
	TAILQ_ENTRY(ur_switch_held) of_pool; /* in order of arrival; while it waits */
	LIST_ENTRY(ur_switch_held) same_hash;
	struct ur_switch_pool *pool; /* NULL: it goes */
	struct ur_gid addr;	     /* of the receiver */
	uint32_t qpn;
	uint16_t generation; /* of the status when it began to wait */
	uint8_t claim;	     /* enum ur_adm_class, as its request says */
	uint64_t since_ns;
	struct ur_switch_list refs; /* empty only until the first is queued */
};

TAILQ_HEAD(ur_switch_held_list, ur_switch_held);

struct ur_switch_pool {
	struct ur_gid addr;  /* of the receiver */
	uint64_t updated_ns; /* by the last NOTIFY; 0: free */
	uint32_t name;
	uint16_t generation;
	uint8_t tag, status;
	uint8_t port;	/* that NOTIFYs come from, and requests go to, */
	bool routed;	/* unless the forwarding table says so */
	bool ambiguous; /* two pools of this address have the tag */
	uint8_t qp_cnt; /* that wait */
	struct ur_switch_held_list waiting;
};

struct ur_switch_adm {
	struct ur_switch_pool *pool;	    /* [0, UR_SWITCH_POOLS): open addressing; NULL: off */
	struct ur_switch_held *qp;	    /* [0, UR_SWITCH_HELD_QPS) */
	LIST_HEAD(, ur_switch_held) * hash; /* [0, UR_SWITCH_HELD_QPS), by address and QPN */
	struct ur_switch_held_list free, waiting; /* the latter in order of since_ns */
	struct ur_switch_held_list going[UR_SWITCH_PORTS_MAX];
	uint64_t next_ns; /* when the oldest has waited for long enough; UINT64_MAX: none waits */
	uint32_t held[UR_SWITCH_PORTS_MAX]; /* references of each receiving port that wait or go */
};

struct ur_switch;
struct ur_switch_headers;
struct ur_switch_way;

size_t ur_switch_adm_size(const struct ur_switch_attr *a);
void ur_switch_adm_init(struct ur_switch_adm *adm, void *mem, const struct ur_switch_attr *a);

/* A NOTIFY of `port` passes. */
void ur_switch_adm_notify(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			  uint64_t now_ns);

/*
 * A frame with an XTH is about to be queued at `out`. Where it is to wait instead; NULL: it is not to wait. *behind: it is
 * behind others that have not gone yet, and there is no room for it. The caller queues it there and calls
 * ur_switch_adm_held(), or drops it and calls ur_switch_adm_refused().
 */
struct ur_switch_held *ur_switch_adm_holds(struct ur_switch *sw, uint8_t out,
					   const struct ur_switch_headers *h, uint8_t in,
					   uint64_t now_ns, bool *behind);
void ur_switch_adm_held(struct ur_switch *sw, struct ur_switch_held *qp, uint32_t ref, uint8_t in);
void ur_switch_adm_refused(struct ur_switch *sw, struct ur_switch_held *qp);

/* Lets requests go that have waited for UR_SWITCH_HOLD_NS. */
void ur_switch_adm_expire(struct ur_switch *sw, uint64_t now_ns);
/* A port has sent, is down, or has other lanes: what goes there moves on. What has no lane any more is dropped and counted. */
void ur_switch_adm_move(struct ur_switch *sw, uint8_t port);
/* Lets all go. */
void ur_switch_adm_release_all(struct ur_switch *sw);

/* For tests: asserts the invariants, and returns the references held. */
uint32_t ur_switch_adm_validate(const struct ur_switch *sw);

#endif
