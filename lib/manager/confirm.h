/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_CONFIRM_H
#define UR_MANAGER_CONFIRM_H

#include "manager/requests.h"
#include "manager/topology.h"
#include "wire/vendor.h"

/*
 * Fault reports, confirmed by what their nodes say when they are asked (docs/design/management.md). A trap carries no
 * proof: any node can send one in the name of another. So each report waits here until the node that it names has
 * answered five questions, all asked at the same time by directed routes: NodeInfo, three pairs of registers, and
 * PortInfo of the port. MGR-FAULT-01
 *
 * The object has no clock and sends nothing. Thread class: one thread.
 */
#define UR_CONFIRM_MAX	64 /* reports that wait at the same time */
#define UR_CONFIRM_NODE 8  /* of these, in the name of one node */

enum ur_confirm_question {
	UR_CONFIRM_NODE_INFO, /* is it that node? */
	UR_CONFIRM_LAST,      /* FAULT_COUNT, FAULT_CAUSE */
	UR_CONFIRM_STATUS,    /* FAULT_STATUS, FAULT_TIME_NS */
	UR_CONFIRM_VALUE,     /* FAULT_VALUE, FAULT_LIMIT */
	UR_CONFIRM_PORT,      /* PortInfo: is the link as the report says? */
	UR_CONFIRM_QUESTIONS,
};

enum ur_confirm_verdict {
	UR_CONFIRM_TRUE,   /* the node says the same */
	UR_CONFIRM_DENIED, /* it answers, and says something else */
	UR_CONFIRM_SILENT, /* it does not answer */
};

struct ur_confirm_entry {
	bool used;
	uint8_t to_ask,
		open;  /* bits: questions that were not asked yet; that wait for their answer */
	uint8_t tries; /* rounds of questions so far */
	bool silent, refused; /* a question had no answer; it had one that is none */
	bool no_value;	      /* the node cannot say value and limit */
	uint64_t guid, count, cause, status, time_ns, value, limit;
	uint8_t state; /* of the port */
	struct ur_fault report;
	uint64_t tid;	    /* of its trap, for TrapRepress, */
	uint8_t notice[64]; /* and the trap's data */
};

struct ur_confirm {
	struct ur_confirm_entry entry[UR_CONFIRM_MAX];
	/* Reports so far. Dropped: no room, and the node was not told, so it repeats what it really reported. */
	uint64_t confirmed, denied, silent, dropped;
};

void ur_confirm_init(struct ur_confirm *c);

/* The MAD is a fault report, as far as it says so. */
bool ur_confirm_is_report(const struct ur_mgr_mad *mad);

/*
 * A trap has arrived. False: it is no fault report, or the same waits already, or there is no room, which counts.
 * MGR-FAULT-02
 */
bool ur_confirm_add(struct ur_confirm *c, const struct ur_mgr_mad *trap);

struct ur_confirm_ask {
	uint32_t entry;
	enum ur_confirm_question question;
	uint64_t guid; /* the node to ask */
};

/* The next question. It is asked by ur_confirm_make(), or answered at once by NULL if there is no way to the node. */
bool ur_confirm_next(struct ur_confirm *c, struct ur_confirm_ask *ask);

/* The MAD that asks, without M_Key; `path` as ur_topo_path() has it. */
void ur_confirm_make(const struct ur_confirm *c, const struct ur_confirm_ask *ask,
		     const uint8_t path[UR_TOPO_PATH_MAX + 1], uint8_t hops,
		     struct ur_mgr_mad *mad);

/* The answer, 256 bytes; NULL: there is none. */
void ur_confirm_answer(struct ur_confirm *c, uint32_t entry, enum ur_confirm_question question,
		       const uint8_t *mad);

/* The questions that are open will not be answered: they are asked once more. */
void ur_confirm_again(struct ur_confirm *c);

struct ur_confirm_result {
	enum ur_confirm_verdict verdict;
	/* What the node says too. Value and limit are 0 if it cannot say them. */
	struct ur_fault report;
	uint64_t tid;
	uint8_t notice[64];
};

/* A report all of whose questions were answered; it leaves. */
bool ur_confirm_done(struct ur_confirm *c, struct ur_confirm_result *result);

#endif
