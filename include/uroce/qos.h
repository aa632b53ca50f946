/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_QOS_H
#define UROCE_QOS_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * liburoce: who may send, when and how much. Included by uroce/uroce.h, whose conventions hold here
 * as well.
 */

/*
 * How queue pairs, service levels and virtual lanes (VL) share the port ([qos] of the
 * configuration). The service level (SL) of an address vector, ah_attr.sl, chooses the lane
 * of what a queue pair sends, READ responses included, and by a map of the configuration its DSCP
 * (unless grh.traffic_class is not 0) and its 802.1Q priority (where packets are tagged).
 *
 * A service level whose lane is 15, or has no weight in either table, has no service: create_ah,
 * modify_qp with IBV_QP_AV, uroce_cm_connect() and post_send fail with EINVAL.
 */
#define UROCE_VLS	 15 /* that carry data; VL 15 is management's */
#define UROCE_VL_ENTRIES 64

/* How lanes of the two tables take turns, see docs/design/virtual-lanes.md. X(NAME, word) */
#define UROCE_VL_MODES(X)                                                                          \
	X(IBA, "iba")                                                                              \
	X(MEASURED, "measured")                                                                    \
	X(STRICT, "strict")

enum uroce_vl_mode {
#define X(NAME, word) UROCE_VL_##NAME,
	UROCE_VL_MODES(X)
#undef X
};

/*
 * Which queue pair of a lane is next. X(NAME, word)
 *
 * RR      in turn
 * WRR     in turn, for `weight` times as long
 * STRICT  the highest priority first, in turn among equals
 */
#define UROCE_POLICIES(X)                                                                          \
	X(RR, "rr")                                                                                \
	X(WRR, "wrr")                                                                              \
	X(STRICT, "strict")

enum uroce_policy {
#define X(NAME, word) UROCE_POLICY_##NAME,
	UROCE_POLICIES(X)
#undef X
};

struct uroce_vl_weight {
	uint8_t vl;	/* [0, UROCE_VLS) */
	uint8_t weight; /* 0: the entry does not count */
};

struct uroce_qos_attr {
	enum uroce_vl_mode vl_mode;
	struct uroce_vl_weight high[UROCE_VL_ENTRIES], low[UROCE_VL_ENTRIES];
	uint8_t high_cnt, low_cnt; /* [0, UROCE_VL_ENTRIES] */
	uint8_t high_limit;	   /* 4096 bytes each; 0: one packet, 255 in mode IBA: none */
	uint8_t sl2vl[16];	   /* [0, 15] */
	enum uroce_policy policy;
	uint32_t turn_wqes;  /* work requests begun in a turn, [1, 65535] */
	uint32_t turn_bytes; /* of frames in a turn, [1, 2^24] */
	/* Marks by SL, for the network. An address vector's traffic class goes before these. */
	uint8_t traffic_class; /* DSCP * 4 + ECN of SLs whose sl_dscp is 0; its ECN bits of all */
	uint8_t sl_dscp[16];   /* [0, 63] */
	uint8_t sl_pcp[16];    /* 802.1Q priority, [0, 7], where packets are tagged */
	/* What the port sends at most, Gb/s on the wire; 0: no limit, else [0.001, 1000] */
	double rate_gbps;
};

/*
 * Changes all of that while traffic runs, from the next packet on. What was accepted is sent; of a
 * service level that has lost its lane it waits until a later change. Marks change of queue pairs,
 * address handles and connections that stand. EINVAL, with half a sentence in `err`, and nothing
 * changed: an attribute out of its range, or nothing would have service.
 */
int uroce_set_qos(struct ibv_context *ctx, const struct uroce_qos_attr *attr, char *err,
		  size_t err_bytes);
int uroce_query_qos(struct ibv_context *ctx, struct uroce_qos_attr *attr);

/*
 * What a queue pair has of its lane: `priority` in [0, 7] counts with UROCE_POLICY_STRICT, `weight`
 * in [1, 255] with UROCE_POLICY_WRR; it begins with 0 and 1. In any state, through RESET too.
 * EINVAL.
 */
int uroce_set_qp_share(struct ibv_qp *qp, uint8_t priority, uint8_t weight);

/* What lanes and scheduler have done, of all workers; counters only grow. */
struct uroce_lanes {
	struct {
		uint64_t packets, bytes; /* sent, Ethernet header to ICRC, ACKs included */
		uint32_t ready;		 /* queues that could send now */
	} lane[UROCE_VLS];
	uint32_t ready, held;	/* queues that could send; that a gate holds back */
	uint64_t turns;		/* of queues */
	uint64_t blind_visits;	/* turns in which nothing could be sent */
	uint64_t sifted, woken; /* queues put to a gate that had closed; that one let go on */
};
int uroce_query_lanes(struct ibv_context *ctx, struct uroce_lanes *lanes);

/*
 * How packets of RC and UC queue pairs hold back from their destination ([pacing] mode of the
 * configuration, docs/design/pacing.md). X(NAME, word)
 */
#define UROCE_PACING_MODES(X)                                                                      \
	X(NONE, "none")                                                                            \
	X(CMDPD, "cmdpd")                                                                          \
	X(AUTO, "auto")                                                                            \
	X(DCQCN, "dcqcn")

enum uroce_pacing_mode {
#define X(NAME, word) UROCE_PACING_##NAME,
	UROCE_PACING_MODES(X)
#undef X
};

/*
 * X(NAME, word)
 *
 * OPEN       packets leave as the port takes them
 * THROTTLED  each has its time; that of the next has come
 * CLOSED     that of the next has not come
 */
#define UROCE_DESTINATION_STATES(X)                                                                \
	X(OPEN, "open")                                                                            \
	X(THROTTLED, "throttled")                                                                  \
	X(CLOSED, "closed")

enum uroce_destination_state {
#define X(NAME, word) UROCE_DESTINATION_##NAME,
	UROCE_DESTINATION_STATES(X)
#undef X
};

/*
 * What is known of a destination. Delays: there and back, without the time that the peer kept the
 * packet. X(name, meaning)
 */
#define UROCE_DESTINATION(X)                                                                       \
	X(qps, "queue pairs that send there")                                                      \
	X(waiting_qps, "of them those that wait for the next packet's time")                       \
	X(samples, "delays measured")                                                              \
	X(average_ns, "average delay; 0: none yet")                                                \
	X(least_ns, "least delay; 0: none yet")                                                    \
	X(deflection_percent, "last delay, of the average")                                        \
	X(gap_ns, "between packets of 4096 bytes; 0: open")                                        \
	X(rate_bps, "bits a second; 0: open, or mode CMDPD")                                       \
	X(outliers, "delays that were too long")                                                   \
	X(reseeds, "times that delays were learned anew")                                          \
	X(throttles, "times that it became throttled")                                             \
	X(cnps, "congestion notification packets that it sent")

struct uroce_destination {
	union ibv_gid address;
	unsigned worker; /* whose queue pairs; each worker paces its own */
	enum uroce_destination_state state;
#define X(name, meaning) uint64_t name;
	UROCE_DESTINATION(X)
#undef X
};

/* Of all destinations, those that nobody sends to any more included. X(name, meaning) */
#define UROCE_PACING(X)                                                                            \
	X(destinations, "now")                                                                     \
	X(throttled, "of them")                                                                    \
	X(link_bps, "the port's speed as auto and dcqcn go by it, now; else 0")                    \
	X(samples, "delays measured")                                                              \
	X(unsure, "delays that may be our own pause, not counted")                                 \
	X(outliers, "delays that were too long")                                                   \
	X(reseeds, "times that a destination's delays were learned anew")                          \
	X(throttles, "times that a destination became throttled")                                  \
	X(cnps, "congestion notification packets that came")                                       \
	X(full, "queue pairs not paced because [pacing] destinations had no place")

struct uroce_pacing {
	enum uroce_pacing_mode mode;
#define X(name, meaning) uint64_t name;
	UROCE_PACING(X)
#undef X
};

/*
 * Writes the first `cap` of pacing->destinations to `dest` (which may be NULL when cap is 0), in no
 * order but that of workers. All zero in mode NONE.
 */
int uroce_query_destinations(struct ibv_context *ctx, struct uroce_pacing *pacing,
			     struct uroce_destination *dest, size_t cap);
const char *uroce_pacing_mode_str(enum uroce_pacing_mode mode);
const char *uroce_destination_state_str(enum uroce_destination_state state);

/*
 * Who may take a receive of an SRQ that many peers overrun ([admission] mode of the configuration,
 * docs/design/admission.md). X(NAME, word)
 */
#define UROCE_ADMISSION_MODES(X)                                                                   \
	X(PLAIN, "plain")                                                                          \
	X(AB, "ab")                                                                                \
	X(INTELLIGENT, "intelligent")

enum uroce_admission_mode {
#define X(NAME, word) UROCE_ADMISSION_##NAME,
	UROCE_ADMISSION_MODES(X)
#undef X
};

/* Of a pool of receives; in A and B only holders of that letter are accepted. X(NAME, word) */
#define UROCE_POOL_STATUSES(X)                                                                     \
	X(NA, "NA")                                                                                \
	X(A, "A")                                                                                  \
	X(NB, "NB")                                                                                \
	X(B, "B")                                                                                  \
	X(UNKNOWN, "unknown")

enum uroce_pool_status {
#define X(NAME, word) UROCE_POOL_##NAME,
	UROCE_POOL_STATUSES(X)
#undef X
};

/* An SRQ with queue pairs, as its peers see it. X(name, meaning) */
#define UROCE_POOL(X)                                                                              \
	X(generation, "changes of status, modulo 2^16")                                            \
	X(qps, "queue pairs that receive from it")                                                 \
	X(posted, "receives")                                                                      \
	X(room, "of them those that are not promised to a queue pair that was called")             \
	X(marked_a, "queue pairs that were refused and hold letter A")                             \
	X(marked_b, "the same, B")                                                                 \
	X(called, "of both those that were told that a receive is there")                          \
	X(accepted, "requests")                                                                    \
	X(refused, "requests")                                                                     \
	X(changes, "of status")                                                                    \
	X(calls, "sent")                                                                           \
	X(void_calls, "calls that nobody followed")                                                \
	X(notifies, "sent, but for calls")                                                         \
	X(expired, "letters whose holders were silent for too long")

struct uroce_pool {
	uint32_t name; /* for peers */
	unsigned worker;
	enum uroce_pool_status status;
#define X(name, meaning) uint64_t name;
	UROCE_POOL(X)
#undef X
};

/* What is known of a peer's pool that queue pairs send to. X(name, meaning) */
#define UROCE_PEER_POOL(X)                                                                         \
	X(generation, "of the last word of it")                                                    \
	X(qps, "queue pairs that send there")                                                      \
	X(waiting, "of them those that keep a message back because it would be refused")

struct uroce_peer_pool {
	union ibv_gid address;
	uint32_t pool; /* the peer's name for it */
	unsigned worker;
	enum uroce_pool_status status;
#define X(name, meaning) uint64_t name;
	UROCE_PEER_POOL(X)
#undef X
};

struct uroce_admission {
	enum uroce_admission_mode mode;
	size_t pools, peer_pools; /* how many there are now */
};

/*
 * Writes the first `pool_cap` pools and the first `peer_cap` pools of peers (NULL when the number
 * is 0), in no order but that of workers. What was accepted, refused, told and kept back in all is
 * in uroce_query_counters().
 */
int uroce_query_admission(struct ibv_context *ctx, struct uroce_admission *admission,
			  struct uroce_pool *pools, size_t pool_cap, struct uroce_peer_pool *peers,
			  size_t peer_cap);
const char *uroce_admission_mode_str(enum uroce_admission_mode mode);
const char *uroce_pool_status_str(enum uroce_pool_status status);

#ifdef __cplusplus
}
#endif

#endif
