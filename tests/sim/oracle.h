/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_ORACLE_H
#define UR_SIM_ORACLE_H

#include "objects.h"
#include "recvq.h"

/*
 * Flows of work requests from one QP to another, and the model that tells what each completion and
 * every byte of memory must be. See docs/design/simulator.md.
 *
 * Each flow has its own local region (a slot for each request under way), its own target region at
 * the peer and a model of it, `want`: what it holds when everything posted so far was executed in
 * order.
 *
 *   target region:  write slots | a read-only source | words for atomics
 */
#define SIM_FLOW_MAX  8
#define SIM_OPS_MAX   256
#define SIM_WORDS     4
#define SIM_SEND_FILL 0xcc

struct sim_op {
	/* Set by the caller. */
	enum ibv_wr_opcode opcode;
	uint32_t len;	  /* bytes; 8 for atomics, 0 for LOCAL_INV */
	unsigned flags;	  /* enum ibv_send_flags */
	bool read_back;	  /* READ: what the last WRITE wrote, rather than the source */
	bool echo;	  /* SEND or WRITE: what the READ just before it brings (needs a fence) */
	bool shared_word; /* FETCH_ADD: to the word that all flows to this peer share */
	unsigned word;	  /* atomics: which of the flow's words */

	/* The flow's. */
	struct sim_pieces cut;
	uint32_t local_slot, target_off;
	uint32_t imm;
	uint64_t seed, original, swap_add, compare;
	uint8_t *payload;  /* the bytes that move */
	struct sim_mr inv; /* SEND_WITH_INV, LOCAL_INV: what is invalidated */
	bool received;	   /* its receive completion came */
};

struct sim_flow {
	struct sim_oracle *o;
	unsigned id;
	struct sim_qp *req, *rsp;
	struct sim_recvq *rq;
	struct sim_rng rng;
	struct sim_op ops[SIM_OPS_MAX];
	unsigned op_cnt;
	unsigned posted, done; /* [done, posted) under way */
	unsigned recv_next;    /* no receive completion is expected for ops before this one */
	unsigned depth;	       /* requests under way at most */
	unsigned unsignaled;   /* in a row */
	struct ur_psn una;     /* of the requester, before the event */
	bool died;	       /* retries ran out, rightly; what is left is flushed */
	unsigned max_sge;
	bool overlap; /* all WRITEs go to the same place: only the end can be checked */
	uint32_t max_len;
	uint32_t slots;
	size_t source_off, words_off;
	struct sim_mr local, target;
	uint8_t *want;
	uint8_t *scratch;
};

struct sim_oracle {
	struct sim *s;
	struct sim_flow *flow[SIM_FLOW_MAX];
	unsigned flow_cnt;
	struct sim_recvq *rq[SIM_FLOW_MAX];
	unsigned rq_cnt;
	struct sim_cq *cq[2 * SIM_FLOW_MAX];
	unsigned cq_cnt;
	struct sim_mr shared_word[SIM_EP_MAX]; /* one region of 8 bytes an endpoint */
	uint64_t shared_sum[SIM_EP_MAX];
	unsigned died; /* flows that did */
	bool clean;    /* the links lose nothing and receives are always posted */
	bool alone;    /* and no queue ever grows: no answer is late enough for a probe */
	bool lossless; /* the links lose nothing, but may change the order: nothing is sent again */
};

void sim_oracle_init(struct sim_oracle *o, struct sim *s);
void sim_oracle_add_cq(struct sim_oracle *o, struct sim_cq *cq);
void sim_oracle_add_recvq(struct sim_oracle *o, struct sim_recvq *q);

/*
 * A flow from req to rsp, whose messages are received by rq (or NULL when none are sent). `depth`
 * requests at most are under way, none longer than max_len.
 */
struct sim_flow *sim_flow_new(struct sim_oracle *o, struct sim_qp *req, struct sim_qp *rsp,
			      struct sim_recvq *rq, unsigned depth, uint32_t max_len,
			      unsigned max_sge);
/* Adds a request to the flow's list. Nothing is posted yet. */
void sim_flow_add(struct sim_flow *f, struct sim_op op);

/* Posts, runs until everything has completed, and checks what must be true at the end. */
void sim_oracle_run(struct sim_oracle *o, uint64_t limit_ns);
void sim_oracle_free(struct sim_oracle *o);

#endif
