/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ADMISSION_ATTR_H
#define UR_ADMISSION_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "uroce/counter_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Receiver admission: parameters, terms agreed on with a peer, counters. Plain data; pool.h has the
 * receiver, sst.h the sender, docs/glossary.md the words of the paper.
 */

/* SERVE_NA to SERVE_B of the paper, as on the wire. Odd: only the served queue class is accepted. */
enum ur_adm_status {
	UR_ADM_NA,
	UR_ADM_A,
	UR_ADM_NB,
	UR_ADM_B,
};

/* Queue class of a refused request: BUSY_A and RETRY_A of the paper. As on the wire. */
enum ur_adm_class {
	UR_ADM_NONE,
	UR_ADM_CLASS_A,
	UR_ADM_CLASS_B,
};

enum ur_adm_mode {
	UR_ADM_PLAIN,	    /* no queue classes */
	UR_ADM_AB,	    /* queue classes */
	UR_ADM_INTELLIGENT, /* queue classes, NOTIFY once a round trip, and grants */
	UR_ADM_PAPER, /* intelligent A/B aging as published: NOTIFY at each change, no grants */
};

struct ur_adm_attr {
	enum ur_adm_mode mode;
	uint64_t fallback_ns;	  /* intelligent, paper: interval of probes of a refused request */
	uint64_t grant_life_ns;	  /* a grant that is not used for so long is void */
	uint64_t refusal_life_ns; /* a refusal is dropped after so long a silence of its peer */
	uint64_t status_ns;	  /* how long a peer's status is valid */
};

void ur_adm_attr_default(struct ur_adm_attr *attr);

#define UR_WIDE_MAX 5

/* The agreement of two ends, made while they connect. */
struct ur_adm_agreed {
	bool sends_status : 1;	  /* we send our pool's status, which the peer understands */
	bool receives_status : 1; /* the peer sends its pool's status */
	bool notifies : 1;	  /* with receives_status: and NOTIFYs, and grants unless `paper` */
	bool paper : 1;		  /* with notifies: the peer's pool is in mode paper */
	bool delay : 1;		  /* of no pool: both ends understand delay stamps */
	uint8_t wide; /* of no pool: the peer's W is 2048 * 2^wide PSNs, <= UR_WIDE_MAX; 0 again in RESET */
	uint8_t tables; /* with sends_status: the peer has 2^tables status tables, by QPN */
	uint32_t pool;	/* with receives_status: the name of the peer's pool */
};

/* Counters of one pool. */
struct ur_adm_counters {
#define X(name, unit, help) uint64_t name;
	UROCE_POOL_COUNTERS(X)
#undef X
};

#ifdef __cplusplus
}
#endif

#endif
