/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_POOL_WORLD_H
#define UR_SIM_POOL_WORLD_H

#include "objects.h"

/*
 * Queue pairs of two endpoints send to one SRQ of a third, whose pool they are told of, one message
 * after the other. After each event: each message arrives once, in its turn, with its bytes, and
 * completes then; what an endpoint knows of the pool grows no older; the pool is sound.
 */
#define POOL_PEERS     2
#define POOL_HOST      POOL_PEERS /* whose pool it is */
#define POOL_SENDERS   6	  /* at most; number i is at endpoint i % POOL_PEERS */
#define POOL_RECEIVES  2
#define POOL_MESSAGES  24u /* of each */
#define POOL_NAME      77u
#define POOL_STATUS_NS SIM_MS(16) /* a status counts for so long */
#define POOL_LIMIT_NS  SIM_MS(2000)

struct pool_sender {
	struct sim_qp req, rsp;
	unsigned wanted, posted, done, served;
	uint64_t since_ns; /* of the last progress */
};

struct pool_world {
	struct sim *s;
	struct sim_rng rng; /* of the lies */
	struct sim_cq cq[POOL_PEERS], recv;
	struct sim_mr mr[POOL_PEERS + 1];
	struct sim_srq srq;
	struct pool_sender snd[POOL_SENDERS];
	unsigned senders, busy; /* receives in service */
	uint64_t slot[POOL_RECEIVES];
	uint32_t slot_head, slot_tail;
	bool by_hand; /* the test posts receives */
	uint64_t log; /* of who was served when */
	uint64_t worst_ns;
	unsigned lies;
	void (*each)(struct pool_world *w); /* after each event */
	uint16_t generation[POOL_PEERS];
	uint64_t heard_ns[POOL_PEERS];
};

struct pool_world *pool_world_new(const char *name, uint64_t seed, enum ur_adm_mode mode,
				  unsigned senders, uint8_t rnr_retry);
/* Everybody sends POOL_MESSAGES messages, as fast as it may. */
void pool_world_run(struct pool_world *w);
/* After a while in which nobody wants anything, nothing is left of what was said. */
void pool_world_free(struct pool_world *w);

void pool_post_receive(struct pool_world *w, uint64_t slot);
/* The sender has one message more to send. */
void pool_want(struct pool_world *w, unsigned sender);
/* For sim_run(): whatever was wanted is done. */
bool pool_all_done(void *w);

/* ---- forged packets ---- */

/*
 * A NOTIFY, or an answer with status, of the peer of `to`, whose numbers fit: PSN and ePSN are its
 * oldest unacknowledged.
 */
struct ur_packet forged_word(const struct sim_qp *to, uint8_t opcode, struct ur_asth asth);
/* Hands a packet in as bytes, every length and sum right. */
enum ur_drop forged_in(struct sim_ep *to, struct ur_packet p);
/* It is dropped for that reason, counted, and changes nothing of `q`, of its entry, and of what is
 * counted. */
void forged_is_dropped(const struct sim_qp *q, struct sim_ep *to, const struct ur_packet *p,
		       enum ur_drop want, const char *what);

#endif
