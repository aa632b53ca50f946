/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_RECVQ_H
#define UR_SIM_RECVQ_H

#include "objects.h"

/* A message buffer in pieces, with gaps between them that must not be written. */
#define SIM_PIECES_MAX 4
#define SIM_PIECE_GAP  3

struct sim_pieces {
	unsigned n;
	uint32_t len; /* sum of all pieces */
	struct {
		uint32_t off, len;
	} p[SIM_PIECES_MAX];
};

/* Maximum space, in bytes, of `len` bytes in pieces. */
#define SIM_SLOT_BYTES(len) ((len) + SIM_PIECES_MAX * SIM_PIECE_GAP)

/* Cuts `len` bytes into at most `max` random pieces. No piece is empty unless `len` is 0. */
void sim_pieces_cut(struct sim_pieces *c, struct sim_rng *rng, uint32_t len, unsigned max);
void sim_pieces_put(const struct sim_pieces *c, uint8_t *slot, const uint8_t *src, uint32_t len);
void sim_pieces_get(const struct sim_pieces *c, const uint8_t *slot, uint8_t *dst, uint32_t len);
/* Makes SGEs for the pieces of the slot at `off` of the region; returns their number. */
int sim_pieces_sges(const struct sim_pieces *c, const struct sim_mr *mr, size_t off,
		    struct ibv_sge *sge);

/*
 * A receive queue or SRQ that is kept filled, and the expected contents of each posted buffer.
 * Receives are numbered from 0; wr_id consists of SIM_RECV_TAG, that number and the queue's id.
 */
#define SIM_RECV_TAG  (1ull << 63)
#define SIM_RECV_FILL 0xee

struct sim_recv_slot {
	bool open; /* posted, not completed */
	uint32_t number;
	struct sim_pieces cut;
};

struct sim_recvq {
	struct sim *s;
	unsigned id;
	struct sim_qp *qp;   /* NULL for an SRQ */
	struct sim_srq *srq; /* NULL for a receive queue */
	struct sim_mr mr;
	struct sim_recv_slot *slots;
	uint32_t slot_cnt, max_len;
	unsigned max_sge;
	uint32_t posted, completed; /* free-running */
	uint32_t ahead;		    /* receives kept posted */
	uint32_t starve;	    /* chance that a refill is late, 65536ths */
	uint64_t starve_ns;	    /* maximum delay of a late refill */
	bool waiting;		    /* a late refill is scheduled */
	bool loose;		    /* UC: a lost message may have left bytes in a buffer */
	uint8_t *scratch;
};

void sim_recvq_init(struct sim_recvq *q, struct sim *s, unsigned id, struct sim_qp *qp,
		    struct sim_srq *srq, uint32_t ahead, uint32_t max_len, unsigned max_sge);
void sim_recvq_free(struct sim_recvq *q);

/* Posts receives until `ahead` are posted. */
void sim_recvq_fill(struct sim_recvq *q);
/* A receive was consumed: refills now or, at random, later. */
void sim_recvq_refill(struct sim_recvq *q);

/* True if the buffer of this completion holds these bytes and nothing else was written. */
bool sim_recvq_holds(struct sim_recvq *q, uint64_t wr_id, const uint8_t *payload, uint32_t len);
/* Accounts for a receive completion. Fails the case if it is out of order. */
void sim_recvq_take(struct sim_recvq *q, uint64_t wr_id);

#endif
