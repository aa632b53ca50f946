/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ADMISSION_STATE_H
#define UR_TRANSPORT_ADMISSION_STATE_H

#include "admission/attr.h"
#include "admission/pool.h"
#include "admission/sst.h"
#include "sched/sched.h"
#include "timer/wheel.h"

/* The state of receiver admission (docs/design/admission.md) in a worker and in a queue pair. */

struct ur_srq;

/* A peer of a pool: one status table of an endpoint, which one NOTIFY updates. */
struct ur_pool_peer {
	struct ur_adm_peer adm;
	LIST_ENTRY(ur_pool_peer) link; /* in a bucket, or free */
	struct ur_srq *srq;	       /* NULL: free */
	uint8_t address[16];
	uint8_t table;
	TAILQ_HEAD(, ur_adm_qp) qps; /* that a NOTIFY can go to, at least one */
};

LIST_HEAD(ur_pool_peers, ur_pool_peer);

/* Of a worker. */
struct ur_admission {
	struct ur_adm_attr attr;
	uint8_t fallback_code;	  /* RNR timer of fallback_ns or more */
	struct ur_sched busy;	  /* SRQs that may owe a grant or a NOTIFY, or have refusals */
	LIST_HEAD(, ur_srq) srqs; /* with queue pairs */
	uint32_t cnt;		  /* of peers, and of entries of the SST */
	uint32_t buckets;	  /* a power of two */
	uint64_t seed;
	struct ur_pool_peers free, *bucket;
	struct ur_sst sst;
	struct ur_sst_entry *entries;
	struct ur_timer *timers; /* one for each entry: its status expires */
};

/* Bits of ur_qp.admission: the roles that were agreed on. */
enum ur_adm_role {
	UR_ADM_RECEIVER = 1 << 0, /* the pool judges requests; responses carry its status */
	UR_ADM_SENDER = 1 << 1,	  /* responses may carry a queue class */
	UR_ADM_HOLDER = 1 << 2,	  /* with SENDER: messages that would be refused are held back */
	UR_ADM_UNGRANTED =
		1 << 3, /* with HOLDER: repetitions too, because no grants come (mode paper) */
};

/* Of a queue pair in mode extended, from RTR on. */
struct ur_adm_qp {
	/* RECEIVER */
	struct ur_adm_refusal refusal;
	struct ur_pool_peer *peer; /* NULL: the table was full; ACKs alone carry the status */
	TAILQ_ENTRY(ur_adm_qp) link;
	/* SENDER */
	struct ur_sst_entry *entry; /* NULL unless HOLDER */
	struct ur_sst_waiter waiter;
	uint64_t wait_ns;    /* of the RNR NAK with the queue class */
	uint8_t queue_class; /* of the message at una; enum ur_adm_class */
	bool may_send;	     /* the next message was released and need not wait */
	bool may_repeat;     /* UNGRANTED: the refused message was released */
	bool status_seen;    /* a status arrived since the last probe */
};

#endif
