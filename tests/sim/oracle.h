/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_ORACLE_H
#define UR_SIM_ORACLE_H

#include "objects.h"
#include "recvq.h"

/*
 * Flows of work requests from one QP to another, and the model that predicts each completion and
 * every byte of memory. See docs/design/simulator.md.
 *
 * Each flow has its own local region (with a slot for each outstanding request), its own target
 * region at the peer, and a model of the latter, `want`: its contents after all requests posted so
 * far have been executed in order.
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
	bool read_back;	  /* READ: reads what the last WRITE wrote, instead of the source */
	bool echo;	  /* SEND or WRITE: sends what the preceding READ returns (needs a fence) */
	bool shared_word; /* FETCH_ADD: on the word shared by all flows to this peer */
	unsigned word;	  /* atomics: index of the flow's word */

	/* Set by the flow. */
	struct sim_pieces cut;
	uint32_t local_slot, target_off;
	uint32_t imm;
	uint64_t seed, original, swap_add, compare;
	uint8_t *payload;  /* the bytes transferred */
	struct sim_mr inv; /* SEND_WITH_INV, LOCAL_INV: the region invalidated */
	bool received;	   /* its receive has completed */
};

struct sim_flow {
	struct sim_oracle *o;
	unsigned id;
	struct sim_qp *req, *rsp;
	struct sim_recvq *rq;
	struct sim_rng rng;
	struct sim_op ops[SIM_OPS_MAX];
	unsigned op_cnt;
	unsigned posted, done; /* [done, posted) are outstanding */
	unsigned recv_next;    /* receives of all earlier operations have completed */
	unsigned depth;	       /* maximum number of outstanding requests */
	unsigned unsignaled;   /* in a row */
	struct ur_psn una;     /* the requester's una before the event */
	bool died;	       /* retries ran out, justified by losses; the rest is flushed */
	unsigned max_sge;
	bool overlap; /* all WRITEs have the same target, so only the end is checked */
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
	struct sim_mr shared_word[SIM_EP_MAX]; /* one region of 8 bytes per endpoint */
	uint64_t shared_sum[SIM_EP_MAX];
	unsigned died; /* number of flows that died */
	bool clean;    /* the links lose nothing, and receives are always posted */
	bool alone;    /* also, no queue grows, so that no answer is late enough for a probe */
	bool lossless; /* the links may reorder but lose nothing: nothing is retransmitted */
};

void sim_oracle_init(struct sim_oracle *o, struct sim *s);
void sim_oracle_add_cq(struct sim_oracle *o, struct sim_cq *cq);
void sim_oracle_add_recvq(struct sim_oracle *o, struct sim_recvq *q);

/*
 * Creates a flow from `req` to `rsp`. `rq` receives its messages; NULL if it sends none. At most
 * `depth` requests are outstanding, none longer than max_len.
 */
struct sim_flow *sim_flow_new(struct sim_oracle *o, struct sim_qp *req, struct sim_qp *rsp,
			      struct sim_recvq *rq, unsigned depth, uint32_t max_len,
			      unsigned max_sge);
/* Appends a request to the flow. It is posted by sim_oracle_run(). */
void sim_flow_add(struct sim_flow *f, struct sim_op op);

/* Posts all requests, runs until everything has completed, and checks the final state. */
void sim_oracle_run(struct sim_oracle *o, uint64_t limit_ns);
void sim_oracle_free(struct sim_oracle *o);

#endif
