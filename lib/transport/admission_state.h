/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ADMISSION_STATE_H
#define UR_TRANSPORT_ADMISSION_STATE_H

#include "admission/attr.h"
#include "admission/pool.h"
#include "admission/sst.h"
#include "sched/sched.h"
#include "timer/wheel.h"

/* What receiver admission (docs/design/admission.md) keeps in a worker and in a queue pair. */

struct ur_srq;

/* A peer of a pool: an endpoint's status table, which one NOTIFY reaches. In the worker's memory.
 */
struct ur_pool_peer {
	struct ur_adm_peer adm;
	LIST_ENTRY(ur_pool_peer) link; /* in a bucket, or free */
	struct ur_srq *srq;	       /* NULL: free */
	uint8_t address[16];
	uint8_t table;
	TAILQ_HEAD(, ur_adm_qp) qps; /* that are told, one at least */
};

LIST_HEAD(ur_pool_peers, ur_pool_peer);

/* A worker's. */
struct ur_admission {
	struct ur_adm_attr attr;
	uint8_t fallback_code;	  /* RNR timer of fallback_ns or more */
	struct ur_sched busy;	  /* SRQs that may have something to tell, or to wait for */
	LIST_HEAD(, ur_srq) srqs; /* with queue pairs */
	uint32_t cnt;		  /* of peers, and of entries */
	uint32_t buckets;	  /* a power of two */
	uint64_t seed;
	struct ur_pool_peers free, *bucket;
	struct ur_sst sst;
	struct ur_sst_entry *entries;
	struct ur_timer *timers; /* one an entry: who waits there does not wait for ever */
};

/* ur_qp.admission: what of it is in force, bits. */
enum ur_adm_role {
	UR_ADM_TELLS = 1 << 0, /* packets are judged by the pool, and answers have its status */
	UR_ADM_TOLD = 1 << 1,  /* answers may bring a letter */
	UR_ADM_HELD = 1 << 2,  /* with TOLD: messages that would be refused are kept back */
};

/* Of a queue pair in mode extended, from RTR on. */
struct ur_adm_qp {
	/* TELLS */
	struct ur_adm_mark mark;
	struct ur_pool_peer *peer; /* NULL: there was no place left, it hears by ACKs alone */
	TAILQ_ENTRY(ur_adm_qp) link;
	/* TOLD */
	struct ur_sst_entry *entry; /* NULL without HELD */
	struct ur_sst_waiter waiter;
	uint64_t wait_ns; /* of the RNR NAK that brought the letter */
	uint8_t letter;	  /* of the message at una; enum ur_adm_letter */
	bool go;	  /* the next message need not ask */
	bool heard;	  /* the peer spoke since the last look at the letter */
};

#endif
