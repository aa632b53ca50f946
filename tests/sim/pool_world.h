/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_POOL_WORLD_H
#define UR_SIM_POOL_WORLD_H

#include "objects.h"

/*
 * Queue pairs of two endpoints send to one SRQ of a third, and have its status. Each sends one
 * message at a time. Checked after each event: messages arrive once, in order, with the right
 * bytes, and then complete; the status of an endpoint never becomes older; the invariants of
 * the pool hold.
 */
#define POOL_PEERS     2
#define POOL_HOST      POOL_PEERS /* the endpoint with the pool */
#define POOL_SENDERS   6	  /* maximum; sender i is at endpoint i % POOL_PEERS */
#define POOL_RECEIVES  2
#define POOL_MESSAGES  24u /* messages per sender */
#define POOL_NAME      77u
#define POOL_STATUS_NS SIM_MS(16) /* time for which a status is valid */
#define POOL_LIMIT_NS  SIM_MS(2000)

struct pool_sender {
	struct sim_qp req, rsp;
	unsigned wanted, posted, done, served;
	uint64_t since_ns; /* time of the last progress */
};

struct pool_world {
	struct sim *s;
	struct sim_rng rng; /* random numbers for forged packets */
	struct sim_cq cq[POOL_PEERS], recv;
	struct sim_mr mr[POOL_PEERS + 1];
	struct sim_srq srq;
	struct pool_sender snd[POOL_SENDERS];
	unsigned senders, busy; /* receives in service */
	uint64_t slot[POOL_RECEIVES];
	uint32_t slot_head, slot_tail;
	bool by_hand; /* the test itself posts receives */
	uint64_t log; /* hash of the order in which senders were served */
	uint64_t worst_ns;
	uint64_t mask; /* which packets the test loses */
	unsigned lies;
	unsigned requests, overdue; /* seen by pool_check_request(); held back for a whole cycle */
	void (*each)(struct pool_world *w); /* after each event */
	uint16_t generation[POOL_PEERS];
	uint64_t heard_ns[POOL_PEERS];
};

struct pool_world *pool_world_new(const char *name, uint64_t seed, enum ur_adm_mode mode,
				  unsigned senders, uint8_t rnr_retry);
/* All senders send POOL_MESSAGES messages, as fast as they may. */
void pool_world_run(struct pool_world *w);
/* As many each, at most POOL_MESSAGES. */
void pool_world_run_few(struct pool_world *w, unsigned messages);
/* Waits without traffic, checks that no state of the senders is left in the pool, and frees all. */
void pool_world_free(struct pool_world *w);

void pool_post_receive(struct pool_world *w, uint64_t slot);
/* Gives the sender one more message to send. */
void pool_want(struct pool_world *w, unsigned sender);
/* For sim_run(): true if all messages have been sent. */
bool pool_all_done(void *w);

/*
 * Mode paper, from a hook: a request that the status refuses, as far as the sender knows, never leaves,
 * unless it was held back for a whole cycle. `repeats`: requests sent again are checked too, because
 * none is lost.
 */
void pool_check_request(struct pool_world *w, const struct sim_ep *from, const struct ur_packet *p,
			bool repeats);

/* ---- forged packets ---- */

/*
 * A NOTIFY, or an answer with status, from the peer of `to`, with valid numbers: PSN and ePSN are
 * the oldest unacknowledged PSN.
 */
struct ur_packet forged_word(const struct sim_qp *to, uint8_t opcode, struct ur_asth asth);
/* Passes the packet to the endpoint as bytes, with correct lengths and checksums. */
enum ur_drop forged_in(struct sim_ep *to, struct ur_packet p);
/*
 * The packet must be dropped for that reason and counted. It must not change `q`, its entry in the
 * status table, or other counters.
 */
void forged_is_dropped(const struct sim_qp *q, struct sim_ep *to, const struct ur_packet *p,
		       enum ur_drop want, const char *what);

#endif
