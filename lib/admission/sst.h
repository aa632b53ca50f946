/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ADMISSION_SST_H
#define UR_ADMISSION_SST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "admission/pool.h"

/*
 * The service status table (SST): the sender's record of the receive pools of its peers, and of the
 * queue pairs that hold a message back because it would be refused (docs/design/admission.md). A queue
 * pair looks up its entry when it connects and keeps it: there is no look-up on the path of a packet.
 *
 * Times are in ns and never go back. Thread class: one worker.
 */

/* A queue pair that may wait in an entry; part of it. All zero before use. */
struct ur_sst_waiter {
	TAILQ_ENTRY(ur_sst_waiter) link;
	uint64_t turn;	     /* order of waiting in the entry */
	uint16_t generation; /* of the entry when it began to wait */
	uint8_t queue_class; /* of its request, enum ur_adm_class */
	bool waits;	     /* in waiters[queue_class] */
	bool released;	     /* in `released` */
};

TAILQ_HEAD(ur_sst_waiters, ur_sst_waiter);

struct ur_sst_entry {
	LIST_ENTRY(ur_sst_entry) link; /* in a bucket, or free */
	uint8_t peer[16];	       /* its address */
	uint32_t pool;		       /* its name for the pool */
	uint32_t refs;		       /* queue pairs that hold it; 0: free */
	uint64_t updated_ns, life_ns;  /* status counts in [updated_ns, updated_ns + life_ns) */
	uint64_t turns;
	uint16_t generation;
	uint8_t status;			  /* enum ur_adm_status */
	bool known;			  /* a status was received */
	bool paper;			  /* the pool is in mode paper; the owner's to set */
	struct ur_sst_waiters waiters[3]; /* by queue class, in order of waiting */
	struct ur_sst_waiters
		released; /* paper: without a queue class, released and perhaps not gone */
};

LIST_HEAD(ur_sst_list, ur_sst_entry);

/* One for each worker, of bounded size. */
struct ur_sst {
	uint64_t life_ns, seed;
	uint32_t buckets; /* a power of two */
	uint32_t used, cnt;
	struct ur_sst_list free, *bucket;
};

size_t ur_sst_size(uint32_t cnt);
/*
 * `memory`: ur_sst_size(cnt) bytes, aligned to 8, in use until the end. A status is valid for life_ns,
 * more than 0. `seed`: random, of the hash.
 */
void ur_sst_init(struct ur_sst *t, void *memory, uint32_t cnt, uint64_t life_ns, uint64_t seed);

/* The entry of (peer, pool), with one more reference. NULL: all `cnt` entries are in use. */
struct ur_sst_entry *ur_sst_get(struct ur_sst *t, const uint8_t peer[16], uint32_t pool);
/* Returns a reference. No queue pair may wait in the entry when the last one is returned. */
void ur_sst_put(struct ur_sst *t, struct ur_sst_entry *e);

/*
 * Records a status from the receiver. A status with an older generation than the known one is ignored;
 * one of the same generation extends its life. True: the status changed; the caller calls ur_sst_wake().
 */
bool ur_sst_update(struct ur_sst_entry *e, uint8_t status, uint16_t generation, uint64_t now_ns);

/* Whether to send a request of that queue class; false: by the known status it would be refused. */
bool ur_sst_may_send(const struct ur_sst_entry *e, uint8_t queue_class, uint64_t now_ns);

/*
 * Holds the request of `w` back. If it is waiting already this does nothing, unless the class is new:
 * then it goes to the end.
 */
void ur_sst_wait(struct ur_sst_entry *e, struct ur_sst_waiter *w, uint8_t queue_class);
/*
 * The request is withdrawn, or is sent for another reason. Removes it from either list; does nothing if
 * it is in none.
 */
void ur_sst_cancel_wait(struct ur_sst_entry *e, struct ur_sst_waiter *w);

/*
 * Removes up to `n` waiters that may send now, in order of waiting, and writes them to `out`; returns
 * how many. Each sends its request without asking ur_sst_may_send() again. Those without a queue class
 * are `released` if the pool is in mode paper and the status has not expired.
 */
uint32_t ur_sst_wake(struct ur_sst_entry *e, struct ur_sst_waiter **out, uint32_t n,
		     uint64_t now_ns);

/*
 * Mode paper: a request without a queue class may be sent that did not have to wait. It is listed until
 * the status refuses it, because it may not have been sent by then.
 */
void ur_sst_release(struct ur_sst_entry *e, struct ur_sst_waiter *w);
/*
 * Takes the first released request out of the list if the status refuses it now. NULL: there is none.
 * The caller calls ur_sst_recall() unless the request was sent.
 */
struct ur_sst_waiter *ur_sst_next_refused(struct ur_sst_entry *e);
/*
 * Holds a request from ur_sst_next_refused() back again. False: it was held back for a whole cycle, and
 * is to be sent all the same.
 */
bool ur_sst_recall(struct ur_sst_entry *e, struct ur_sst_waiter *w);

/* When the status expires and every waiter may send; UINT64_MAX: none waits. */
uint64_t ur_sst_deadline(const struct ur_sst_entry *e);

#endif
