/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_SCRIPT_H
#define UR_SIM_SCRIPT_H

#include "oracle.h"

/*
 * Short exchanges of one or more kinds of operations, and functions that run them under the oracle.
 * The PMTU is 256, so that a few hundred bytes take several packets. PSNs wrap in the middle of an
 * exchange.
 */
#define SIM_SCRIPT_OPS	   8
#define SIM_SCRIPT_DEPTH   8
#define SIM_SCRIPT_MAX_LEN 1200 /* length of the longest message, bytes */

struct sim_script {
	const char *name;
	enum ibv_qp_type type;
	struct sim_op ops[SIM_SCRIPT_OPS]; /* an entry without flags ends the list */
};

/* RC. X(name) */
#define SIM_RC_SCRIPTS(X)                                                                          \
	X(send)                                                                                    \
	X(send_imm)                                                                                \
	X(send_inv)                                                                                \
	X(write)                                                                                   \
	X(write_imm)                                                                               \
	X(read)                                                                                    \
	X(cas)                                                                                     \
	X(fetch_add)                                                                               \
	X(mixed)                                                                                   \
	X(mixed_requests)
#define SIM_UC_SCRIPTS(X)                                                                          \
	X(uc_send)                                                                                 \
	X(uc_write)                                                                                \
	X(uc_mixed)

#define X(name) extern const struct sim_script sim_script_##name;
SIM_RC_SCRIPTS(X)
SIM_UC_SCRIPTS(X)
#undef X

struct sim_exchange {
	struct sim *s;
	struct sim_oracle oracle;
	struct sim_cq cq[2];
	struct sim_recvq rq;
	struct sim_qp qp[2]; /* 0 requests, 1 responds */
	struct sim_flow *flow;
};

struct sim_exchange_attr {
	enum ur_mode mode;
	enum ur_mode peer_mode; /* mode of the responder, if `mixed` */
	bool mixed, strict;
	const char *test; /* the case is "mode.test.script:number"; NULL: "mode.script:number" */
	uint64_t number;
	uint64_t seed;			  /* 0: 1; the exchange is then the same for all numbers */
	const struct sim_link_attr *link; /* NULL: 10 Gb/s, 5 us, no impairment */
	bool warm;			  /* another request completes before the script starts */
};

/* Creates network, queue pairs and flow. The caller may add hooks before the run. */
void sim_exchange_init(struct sim_exchange *x, const struct sim_script *script,
		       const struct sim_exchange_attr *attr);
/* Runs the exchange to its end and frees everything. */
void sim_exchange_run(struct sim_exchange *x, uint64_t limit_ns);

/* The name of the cases of such exchanges, like sim_mode_case(). */
const char *sim_exchange_case(enum ur_mode mode, const char *test, const struct sim_script *script);

/* The distance from one number to the next that is run: UROCE_SIM_STRIDE, or 1. */
uint64_t sim_stride(void);
/* About a quarter of it, and odd, so that a number taken modulo a small count still reaches every value. */
uint64_t sim_short_stride(void);

/*
 * Runs numbers [0, cnt), a sim_stride() apart, or only the one of a replay. Skips the test if another
 * case is replayed.
 */
void sim_run_numbers(const struct sim_script *script, enum ur_mode mode, const char *test,
		     uint64_t cnt,
		     void (*run)(const struct sim_script *script, enum ur_mode mode,
				 uint64_t number));

#endif
