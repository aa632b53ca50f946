/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ADMISSION_ATTR_H
#define UR_ADMISSION_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What receiver admission is told, agreed on with a peer, and tells of itself: plain data. pool.h has the receiver, sst.h the sender. */
/* As on the wire. Odd: only holders of the served letter are accepted. */
enum ur_adm_status {
	UR_ADM_NA,
	UR_ADM_A,
	UR_ADM_NB,
	UR_ADM_B,
};

/* As on the wire. */
enum ur_adm_letter {
	UR_ADM_NONE,
	UR_ADM_LETTER_A,
	UR_ADM_LETTER_B,
};

enum ur_adm_mode {
	UR_ADM_PLAIN,	    /* no letters */
	UR_ADM_AB,	    /* letters */
	UR_ADM_INTELLIGENT, /* letters, NOTIFY and calls */
};

struct ur_adm_attr {
	enum ur_adm_mode mode;
	uint64_t fallback_ns;  /* intelligent: who waits for a call looks after it so often */
	uint64_t recall_ns;    /* a call that is not followed in so long is void */
	uint64_t mark_life_ns; /* a letter goes after so long a silence of its holder */
	uint64_t status_ns;    /* what a peer said of its pool counts for so long */
};

void ur_adm_attr_default(struct ur_adm_attr *attr);

/* What two ends agreed on while they connected. */
struct ur_adm_agreed {
	bool tells;	/* the peer understands what we tell of our pool, */
	uint8_t tables; /* and keeps 2^tables tables of such things, by QPN */
	bool told;	/* the peer tells of its pool, */
	bool notifies;	/* and sends NOTIFY and calls, */
	uint32_t pool;	/* whose name this is */
};

struct ur_adm_counters {
	uint64_t accepted, refused;
	uint64_t false_claims; /* packets that claimed a letter which their queue pair does not hold
				*/
	uint64_t changes, calls, void_calls, expired, notifies;
};

#ifdef __cplusplus
}
#endif

#endif
