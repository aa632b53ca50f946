/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ADMISSION_SST_H
#define UR_ADMISSION_SST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "admission/pool.h"

/*
 * The service status table: what a sender knows of the receive pools of its peers, and who waits
 * because a request would be refused (docs/design/admission.md). An entry is looked up when a queue
 * pair connects, which holds it from then on; no look-up on the path of a packet.
 *
 * Time in ns, never going back. Thread class: one worker.
 */

/* What a queue pair owns that can wait in an entry. All zero before use. */
struct ur_sst_waiter {
	TAILQ_ENTRY(ur_sst_waiter) link;
	uint64_t turn;	     /* order of waiting in the entry */
	uint16_t generation; /* of the entry when it began to wait */
	uint8_t letter;	     /* that its request carries, enum ur_adm_letter */
	bool waits;
};

TAILQ_HEAD(ur_sst_waiters, ur_sst_waiter);

struct ur_sst_entry {
	LIST_ENTRY(ur_sst_entry) link; /* in a bucket, or free */
	uint8_t peer[16];	       /* its address */
	uint32_t pool;		       /* its name for the pool */
	uint32_t refs;		       /* queue pairs that hold it; 0: free */
	uint64_t heard_ns, life_ns;    /* status counts in [heard_ns, heard_ns + life_ns) */
	uint64_t turns;
	uint16_t generation;
	uint8_t status;			  /* enum ur_adm_status */
	bool known;			  /* a word has come */
	struct ur_sst_waiters waiters[3]; /* by letter, in order */
};

LIST_HEAD(ur_sst_list, ur_sst_entry);

/* Bounded; one a worker. */
struct ur_sst {
	uint64_t life_ns, seed;
	uint32_t buckets; /* a power of two */
	uint32_t used, cnt;
	struct ur_sst_list free, *bucket;
};

size_t ur_sst_size(uint32_t cnt);
/* `memory`: ur_sst_size(cnt) bytes, aligned to 8. A word is good for life_ns > 0; `seed`: random.
 */
void ur_sst_init(struct ur_sst *t, void *memory, uint32_t cnt, uint64_t life_ns, uint64_t seed);

/* The entry of (peer, pool), with one reference more; NULL: all `cnt` are in use by others. */
struct ur_sst_entry *ur_sst_get(struct ur_sst *t, const uint8_t peer[16], uint32_t pool);
/* Gives a reference back; nobody waits in an entry whose last one goes. */
void ur_sst_put(struct ur_sst *t, struct ur_sst_entry *e);

/*
 * A word of the receiver. One older than what is known is ignored, one of the same age only renews.
 * True: the status changed; the caller calls ur_sst_wake().
 */
bool ur_sst_update(struct ur_sst_entry *e, uint8_t status, uint16_t generation, uint64_t now_ns);

/* False: a request with that letter would be refused, as far as is known. */
bool ur_sst_may_send(const struct ur_sst_entry *e, uint8_t letter, uint64_t now_ns);

/* The request of `w` is kept back; harmless when it waits already, unless the letter is new: then
 * it waits anew. */
void ur_sst_wait(struct ur_sst_entry *e, struct ur_sst_waiter *w, uint8_t letter);
/* It is no longer wanted, or is sent for another reason. Harmless when it does not wait. */
void ur_sst_unwait(struct ur_sst_entry *e, struct ur_sst_waiter *w);

/*
 * Takes at most `n` of those who may go now out of the line, in order of waiting, and writes them
 * to `out`; returns how many. Each sends its request without asking ur_sst_may_send() again.
 */
uint32_t ur_sst_wake(struct ur_sst_entry *e, struct ur_sst_waiter **out, uint32_t n,
		     uint64_t now_ns);

/* When what is known expires and all who wait may go; UINT64_MAX: nobody waits. */
uint64_t ur_sst_deadline(const struct ur_sst_entry *e);

#endif
