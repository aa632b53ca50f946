/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_SESSION_H
#define PERF_SESSION_H

#include "endpoint.h"
#include "histogram.h"
#include "layout.h"
#include "pattern.h"
#include "proto.h"

/*
 * One client's run, seen from one end: its memory, queues and queue pairs. Both ends have the same
 * struct; the client's sends, the server's receives (with --bidir both do both). One thread.
 */
#define PERF_BATCH	32
#define PERF_ACKS_MAX	16 /* acknowledgements of one queue pair under way */
#define PERF_SGE_MAX	16
#define PERF_CQS_MAX	16
#define PERF_LIMITLESS	UINT64_MAX
#define PERF_PING_BYTES 8
#define PERF_NO_PING	UINT32_MAX

/* wr_id: kind, queue pair, and the low 32 bits of a message number (or the receive's slot). */
enum perf_wr_kind { PERF_WR_TX, PERF_WR_RX, PERF_WR_ACK };

static inline uint64_t perf_wr_id(enum perf_wr_kind kind, uint32_t idx, uint32_t low)
{
	return (uint64_t)kind << 56 | (uint64_t)idx << 32 | low;
}

static inline enum perf_wr_kind perf_wr_kind_of(uint64_t wr_id)
{
	return (enum perf_wr_kind)(wr_id >> 56);
}

static inline uint32_t perf_wr_idx(uint64_t wr_id)
{
	return (uint32_t)(wr_id >> 32) & 0xffffff;
}

/* Receives of one queue pair; consumed ones are posted again in batches. */
struct perf_rq {
	uint32_t pending_cnt;
	uint32_t pending[PERF_BATCH];
};

/* What the lean sender needs is in the first cache line: with thousands, each is a miss. */
struct perf_qp {
	_Alignas(64) struct ibv_qp *qp;
	/* Sending. In flight: [tx_done, tx_next). Completions are requested up to tx_signaled. */
	uint64_t tx_next, tx_done, tx_signaled;
	uint64_t tx_limit; /* messages to send in all */
	uint64_t remote;   /* the peer's stride, as a remote address */
	uint32_t idx;
	struct perf_share share;
	bool up;      /* connected: may be sent on */
	bool closing; /* flushed work requests are expected */
	bool paused;  /* no new messages except those that the drain needs */
	bool queued;  /* is in the ready ring */

	struct uroce_cm_id *id;
	struct ibv_ah *ah; /* UD */
	uint32_t remote_qpn, remote_qkey;
	uint32_t gen;
	uint8_t *mem; /* our stride of the layout */
	uint64_t tx_key, rx_key;
	uint64_t tx_acked;	      /* the peer checked [0, tx_acked); slots below are free */
	uint64_t tx_ack_ns;	      /* when that last moved; UC gives up on lost ones */
	uint64_t mark_done, end_done; /* tx_done when the measurement began, ended */
	uint64_t cas_next, cas_done;
	uint64_t fetch_last; /* result of the last fetch_add, plus 1 */

	/* Receiving. The next message expected is rx_next; acknowledged to the peer up to ack_sent. */
	uint64_t rx_next, ack_sent;
	uint32_t acks_inflight;
	bool ack_dirty;
	struct perf_rq rq;

	uint64_t lat_rx;  /* lat: messages received */
	uint8_t lat_seen; /* lat: last byte that was answered */

	struct ibv_mr **victims; /* send_inv: regions that the peer invalidates */
	uint32_t victims_cnt;
};

struct perf_sl_stats {
	uint64_t ops, bytes;
};

struct perf_stats {
	uint64_t ops, bytes, rx_messages, rx_bytes, missing, reordered, checked;
	uint64_t start_ns, start_cpu_ns;
	uint64_t end_ns, end_cpu_ns; /* 0: still measuring */
	struct uroce_counters start_counters, end_counters;
	/* The above at the end of the measurement; the drain that follows does not count. */
	uint64_t end_ops, end_bytes, end_rx_messages, end_rx_bytes;
	struct perf_sl_stats sl[16], end_sl[16]; /* of ops and bytes, by service level */
	/* Messages in flight, sampled once a step while measured. */
	uint64_t in_flight_sum, in_flight_least, steps;
	uint64_t step_ns; /* time of the last step */
	uint64_t
		pause_ns; /* longest time between two steps while measured; inline, the worker stood still */
	uint64_t paused_ms; /* whole milliseconds of all of them */
};

struct perf_srq;

struct perf_session {
	struct perf_endpoint *ep;
	struct perf_params params;
	struct perf_layout layout;
	bool server;
	bool sending; /* new messages are posted */
	unsigned traits;
	bool notify; /* WRITEs are verified: slots are freed by acknowledgements */
	bool lossy;  /* UC, UD */
	struct perf_planner planner;

	uint8_t *mem;
	struct ibv_mr *mr;
	uint64_t remote_addr;
	uint32_t remote_rkey;

	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[PERF_CQS_MAX];
	unsigned cq_cnt;
	struct perf_srq *srq; /* the server's; its own, or that of all sessions */
	unsigned rq_shift;    /* log2 of rq_depth: SRQ slot to stride */
	uint32_t *qpn_hash;   /* QPN to index + 1, for the SRQ */
	uint32_t qpn_hash_mask;

	struct perf_qp *qps;
	struct ibv_sge *sges; /* params.sge of each: the pieces of slot 0 */
	uint64_t *stamps;     /* when message n was posted: perf_stamp(); NULL: off */
	uint32_t stamp_mask;

	/* Queue pairs that may have room to send, first in first out. */
	uint32_t *ready;
	uint32_t ready_mask, ready_head, ready_tail;
	uint64_t order; /* state of the generator of params.random_order */

	/* Queue pairs that think before the next message, first in first out, and until when. */
	struct perf_thought {
		uint64_t until_ns;
		uint32_t idx;
	} * thoughts; /* ready_mask + 1 */
	uint32_t think_head, think_tail;

	/* Work requests that are filled in and posted, never kept. */
	struct ibv_send_wr tx_wr[PERF_BATCH];
	struct ibv_sge tx_sge[PERF_BATCH][PERF_SGE_MAX];
	struct ibv_recv_wr rx_wr[PERF_BATCH];
	struct ibv_sge rx_sge[PERF_BATCH];

	/* fetch_adds of ours: their results must be 0, 1, 2, ... in any order. */
	uint64_t fetch_cnt, fetch_sum, fetch_squares;

	/* lat: the ping under way, on queue pair lat_qp, since lat_from_ns (0: none). */
	uint32_t lat_qp;
	uint64_t lat_from_ns, lat_rx_before;

	uint64_t in_flight; /* messages posted and not completed, of all queue pairs */
	uint64_t finished;  /* queue pairs that have completed their tx_limit */
	uint64_t now_ns;    /* of the last step */
	struct perf_stats stats;
	struct perf_histogram *hist; /* NULL: off */

	/* --ping: the last queue pair sends PERF_PING_BYTES, one message at a time, and has a histogram of its own. */
	struct perf_histogram *ping_hist; /* NULL: off */
	uint32_t ping;			  /* the queue pair, PERF_NO_PING: none */

	uint64_t errors;
	bool failed;		    /* must stop */
	char text[PERF_TEXT_BYTES]; /* the first error */
};

/*
 * Memory, completion queues, and room for params.qps queue pairs. False after a sentence in
 * s->text; perf_session_destroy() is to be called in either case. Of what `s` held before, `hist` and `ping_hist` are kept. `shared`: where the SRQ of all
 * sessions is; NULL: each that uses one has its own.
 */
bool perf_session_create(struct perf_session *s, struct perf_endpoint *ep,
			 const struct perf_params *params, bool server, struct perf_srq **shared);
void perf_session_destroy(struct perf_session *s);

/* Creates the queue pair, in RESET; all its numbers begin at 0. */
bool perf_session_open_qp(struct perf_session *s, uint32_t idx, uint32_t gen,
			  const struct perf_share *share);
/* Why connecting it failed with `rc`: strerror, or the sentence about modes. */
const char *perf_session_why(int rc, struct ibv_qp *qp);
/* The queue pairs' mode as it is, "mixed" if they differ, and why; NULL where there is none. */
void perf_session_mode(const struct perf_session *s, const char **mode, const char **reason);
/* Posts its receives; call it when the queue pair has left RESET. */
bool perf_session_arm_qp(struct perf_session *s, uint32_t idx);
/* Destroys id, address handle and queue pair, whatever their state. */
void perf_session_close_qp(struct perf_session *s, uint32_t idx);

/* UD: brings the queue pair to RTS, with an address handle for the peer's. */
bool perf_session_pair_local(struct perf_session *s, uint32_t idx, struct perf_pair *pair,
			     const struct sockaddr_storage *local);
bool perf_session_pair_remote(struct perf_session *s, const struct perf_pair *pair,
			      const struct sockaddr_storage *local);

/* The queue pair with a QPN; NULL when none. */
struct perf_qp *perf_session_by_qpn(struct perf_session *s, uint32_t qpn);

/* The slot of message n in a ring: n modulo the number of slots. */
static inline uint64_t perf_slot(const struct perf_session *s, uint64_t n)
{
	return (n & (s->params.slots - 1)) * s->layout.slot_bytes;
}

static inline uint64_t *perf_stamp(const struct perf_session *s, const struct perf_qp *q,
				   uint64_t n)
{
	return &s->stamps[q->idx * (s->stamp_mask + 1ul) + (n & s->stamp_mask)];
}

/* What one queue pair has outstanding at most, and the bytes of its messages. */
static inline uint64_t perf_depth(const struct perf_session *s, const struct perf_qp *q)
{
	return q->idx == s->ping ? 1 : s->params.depth;
}

static inline uint64_t perf_size(const struct perf_session *s, const struct perf_qp *q)
{
	return q->idx == s->ping ? PERF_PING_BYTES : s->params.size;
}

static inline struct ibv_sge *perf_pieces(const struct perf_session *s, const struct perf_qp *q)
{
	return &s->sges[q->idx * s->params.sge];
}

/* Messages of the queue pairs while measured: the fewest, the most, Jain's index. */
struct perf_fairness {
	uint64_t least, most, qps;
	double sum, squares, jain;
};
struct perf_fairness perf_session_fairness(const struct perf_session *s);
/* Of the queue pairs of both. */
void perf_fairness_add(struct perf_fairness *f, const struct perf_fairness *other);

/* Messages in flight, of all queue pairs together, while measured. */
struct perf_in_flight {
	uint64_t least;
	double mean;
};
struct perf_in_flight perf_session_in_flight(const struct perf_session *s);

/* In the session's own memory. */
uint8_t *perf_session_rx_buffer(struct perf_session *s, uint32_t idx, uint32_t slot);

/* An error: counted, printed, and the first one kept. fail() also stops the session. */
void perf_session_error(struct perf_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void perf_session_fail(struct perf_session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Starts and ends the measurement. */
void perf_session_mark(struct perf_session *s);
void perf_session_end(struct perf_session *s);
void perf_session_result(const struct perf_session *s, struct perf_result *r);

#endif
