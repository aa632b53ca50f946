/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_QOS_H
#define UROCE_QOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "uroce/counter_list.h"
#include "uroce/pacing_modes.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * liburoce: which queue pair may send, when, and how much; which one gets a shared receive. Included
 * by uroce/uroce.h, whose conventions hold here as well.
 *
 * Queue pairs share the port by service level (SL) and virtual lane (VL) ([qos] of the configuration,
 * docs/design/virtual-lanes.md; IBTA Volume 1, section 7.6). The SL of an address vector, ah_attr.sl,
 * determines the lane of everything that a queue pair sends, READ responses included. By maps of
 * the configuration it also determines the DSCP (unless grh.traffic_class is not 0) and the 802.1Q
 * priority (where packets are tagged).
 *
 * A service level whose lane is 15, or has no weight in either table, has no service: create_ah,
 * modify_qp with IBV_QP_AV, uroce_cm_connect() and post_send fail with EINVAL.
 */

/* Lanes that carry data, [0, UROCE_VLS); lane 15 is management's. */
#define UROCE_VLS 15

/* Entries of an arbitration table. */
#define UROCE_VL_ENTRIES 64

/*
 * How the lanes of the two tables take turns. X(NAME, word)
 *
 * - IBA: weights in units of 64 bytes; high_limit applies, as the IBTA specifies it.
 * - MEASURED: weights in path MTUs; a model of one kind of adapter (docs/design/virtual-lanes.md).
 * - STRICT: weights in units of 64 bytes; the low table only while no lane of the high one can send.
 */
#define UROCE_VL_MODES(X)                                                                          \
	X(IBA, "iba")                                                                              \
	X(MEASURED, "measured")                                                                    \
	X(STRICT, "strict")

/* UROCE_VL_MODES explains them. */
enum uroce_vl_mode {
#define X(NAME, word) UROCE_VL_##NAME,
	UROCE_VL_MODES(X)
#undef X
};

/*
 * Which queue pair of a lane sends next. X(NAME, word)
 *
 * - RR: in turn.
 * - WRR: in turn, `weight` times as long.
 * - STRICT: the highest priority first, in turn among equals.
 */
#define UROCE_POLICIES(X)                                                                          \
	X(RR, "rr")                                                                                \
	X(WRR, "wrr")                                                                              \
	X(STRICT, "strict")

/* UROCE_POLICIES explains them. */
enum uroce_policy {
#define X(NAME, word) UROCE_POLICY_##NAME,
	UROCE_POLICIES(X)
#undef X
};

/* An entry of an arbitration table. */
struct uroce_vl_weight {
	uint8_t vl;	/* [0, UROCE_VLS) */
	uint8_t weight; /* in the unit of the mode; 0: the entry is skipped */
};

/* The settings of uroce_set_qos(). */
struct uroce_qos_attr {
	enum uroce_vl_mode vl_mode;		       /* the meaning of the tables */
	struct uroce_vl_weight high[UROCE_VL_ENTRIES]; /* the table of high priority */
	struct uroce_vl_weight low[UROCE_VL_ENTRIES];  /* the table of low priority */
	uint8_t high_cnt;   /* entries of `high`, [0, UROCE_VL_ENTRIES] */
	uint8_t low_cnt;    /* entries of `low`, [0, UROCE_VL_ENTRIES] */
	uint8_t high_limit; /* in units of 4096 bytes; 0: one packet; 255 in mode IBA: no limit */
	uint8_t sl2vl[16];  /* the lane of each service level, [0, 15] */
	enum uroce_policy policy; /* within a lane */
	uint32_t turn_wqes;	  /* work requests begun in a turn, [1, 65535] */
	uint32_t turn_bytes;	  /* bytes of frames in a turn, [1, 2^24] */
	/* RR and WRR: a queue pair that has had less than its share goes before those with a backlog. */
	bool sparse_first;
	/*
	 * DSCP * 4 + ECN of service levels whose sl_dscp is 0; its ECN bits are those of all. A
	 * traffic class of an address vector takes precedence.
	 */
	uint8_t traffic_class;
	uint8_t sl_dscp[16]; /* DSCP by service level, [0, 63] */
	uint8_t sl_pcp[16]; /* 802.1Q priority by service level, [0, 7], where packets are tagged */
	double rate_gbps;   /* the port's limit, Gb/s on the wire: 0 (none), or [0.001, 1000] */
};

/*
 * Applies all attributes while traffic runs, from the next packet on, to existing queue pairs, address
 * handles and connections too. Requests that were posted are sent; those of a service level that has
 * lost its lane wait for a later change. EINVAL: an attribute is out of range, or no service level
 * would have service; then `err` has half a sentence, and nothing is changed.
 */
int uroce_set_qos(struct ibv_context *ctx, const struct uroce_qos_attr *attr, char *err,
		  size_t err_bytes);

/* Fills `attr` with the current attributes. Always 0. */
int uroce_query_qos(struct ibv_context *ctx, struct uroce_qos_attr *attr);

/*
 * Sets a queue pair's share of its lane, in any state; it stays through RESET. `priority`, [0, 7],
 * counts with UROCE_POLICY_STRICT; `weight`, [1, 255], counts with UROCE_POLICY_WRR. They are 0 and 1
 * at first. EINVAL: out of range.
 */
int uroce_set_qp_share(struct ibv_qp *qp, uint8_t priority, uint8_t weight);

/* Counters and gauges of one lane. X(name, type, unit, help) */
#define UROCE_LANE(X)                                                                              \
	X(packets, COUNTER, "packets", "packets sent on the lane, including ACKs")                 \
	X(bytes, COUNTER, "bytes", "bytes sent on the lane, Ethernet header to ICRC")              \
	X(ready, GAUGE, "queues", "send queues of the lane that could send now")

/* Of the scheduler, for all lanes. The counters are those of the transport named sched_*. X as above. */
#define UROCE_SCHEDULER(X)                                                                         \
	X(ready, GAUGE, "queues", "send queues that could send now")                               \
	X(held, GAUGE, "queues", "send queues that a gate holds back now")                         \
	X(turns, COUNTER, "turns", "scheduling turns")                                             \
	X(blind_visits, COUNTER, "turns", "scheduling turns in which nothing could be sent")       \
	X(sifted, COUNTER, "queues", "send queues moved to a gate that had closed")                \
	X(woken, COUNTER, "queues", "send queues released by a gate")

/* Counters and gauges of lanes and scheduler, summed over all workers. */
struct uroce_lanes {
	struct {
#define X(name, type, unit, help) uint64_t name;
		UROCE_LANE(X)
#undef X
	} lane[UROCE_VLS]; /* by lane */
#define X(name, type, unit, help) uint64_t name;
	UROCE_SCHEDULER(X)
#undef X
};
/* Fills `lanes` with the sums over all workers. Always 0. */
int uroce_query_lanes(struct ibv_context *ctx, struct uroce_lanes *lanes);

/*
 * Congestion control of RC and UC queue pairs by destination ([pacing] mode of the configuration,
 * docs/design/pacing.md). <uroce/pacing_modes.h> lists the algorithms.
 */
enum uroce_pacing_mode {
#define X(NAME, name, summary) UROCE_PACING_##NAME,
	UROCE_PACING_MODES(X)
#undef X
};

/*
 * Whether packets may leave for a destination. X(NAME, word)
 *
 * - OPEN: as fast as the port takes them.
 * - THROTTLED: at intervals or within a window; the next packet may be sent now.
 * - CLOSED: not now; the interval has not passed yet, or the window is full.
 */
#define UROCE_DESTINATION_STATES(X)                                                                \
	X(OPEN, "open")                                                                            \
	X(THROTTLED, "throttled")                                                                  \
	X(CLOSED, "closed")

/* UROCE_DESTINATION_STATES explains them. */
enum uroce_destination_state {
#define X(NAME, word) UROCE_DESTINATION_##NAME,
	UROCE_DESTINATION_STATES(X)
#undef X
};

/*
 * State of a destination. A delay is a round trip without the residence at the peer; with net_hops, also without
 * queues on the way back unless data is read, and without late ACKs.
 * X(name, meaning)
 */
#define UROCE_DESTINATION(X)                                                                       \
	X(qps, "queue pairs that send to it")                                                      \
	X(waiting_qps, "those of them that wait until the next packet may be sent")                \
	X(samples, "delays measured")                                                              \
	X(average_ns, "average delay; 0: none yet")                                                \
	X(least_ns, "least delay; 0: none yet")                                                    \
	X(deflection_percent, "last delay, in percent of the average")                             \
	X(gap_ns, "time between packets of 4096 bytes; 0: open")                                   \
	X(rate_bps, "bits per second; 0: open, or mode CMDPD")                                     \
	X(window_bytes, "bytes that may be in flight; 0: no window")                               \
	X(in_flight_bytes, "bytes in flight, each packet counted as a full one; 0: no window")     \
	X(outliers, "delays that were too long")                                                   \
	X(reseeds, "times that the delay of the path was learned anew")                            \
	X(throttles, "times that it became throttled")                                             \
	X(cnps, "congestion notification packets received from it")                                \
	X(losses, "times that packets to it were found lost")                                      \
	X(timeouts, "retransmission timeouts of queue pairs that send to it")                      \
	X(net_hops, "switches that stamped the last delay; 0: delays are round trips")             \
	X(net_delay_ns, "with net_hops: how long the last packet that asked was in them")

/* State of a destination on one worker; UROCE_DESTINATION has the rest of the members. */
struct uroce_destination {
	union ibv_gid address;		    /* the destination */
	unsigned worker;		    /* each worker paces its own queue pairs */
	enum uroce_destination_state state; /* whether packets may leave */
#define X(name, meaning) uint64_t name;
	UROCE_DESTINATION(X)
#undef X
};

/* Of all destinations; the counters include former ones. X(name, type, unit, help) */
#define UROCE_PACING(X)                                                                            \
	X(destinations, GAUGE, "destinations", "destinations that queue pairs send to")            \
	X(throttled, GAUGE, "destinations", "destinations that are throttled now")                 \
	X(link_bps, GAUGE, "bits per second", "port speed for algorithms with rates; else 0")      \
	UROCE_PACING_COUNTERS(X)

/* Congestion control of the whole endpoint; UROCE_PACING has the rest of the members. */
struct uroce_pacing {
	enum uroce_pacing_mode mode; /* [pacing] mode */
#define X(name, type, unit, help) uint64_t name;
	UROCE_PACING(X)
#undef X
};

/*
 * Fills `pacing`, and dest[0, cap) with the first `cap` destinations, sorted by worker. `dest` may be
 * NULL if cap is 0. pacing->destinations is their total number. In mode NONE everything is zero.
 * Always 0.
 */
int uroce_query_destinations(struct ibv_context *ctx, struct uroce_pacing *pacing,
			     struct uroce_destination *dest, size_t cap);
/* The word of a mode, such as "auto". Static. */
const char *uroce_pacing_mode_str(enum uroce_pacing_mode mode);
/* The word of a state, such as "open". Static. */
const char *uroce_destination_state_str(enum uroce_destination_state state);

/*
 * Which peer may take a receive of an SRQ that many peers overrun ([admission] mode of the
 * configuration, docs/design/admission.md). X(NAME, word)
 *
 * - PLAIN: the request that arrives first; the others get an RNR NAK.
 * - AB: the oldest refused requests are served first.
 * - INTELLIGENT: as AB, and senders hold back messages that would be refused.
 * - PAPER: the same by the rules of the paper on intelligent A/B aging, without grants.
 */
#define UROCE_ADMISSION_MODES(X)                                                                   \
	X(PLAIN, "plain")                                                                          \
	X(AB, "ab")                                                                                \
	X(INTELLIGENT, "intelligent")                                                              \
	X(PAPER, "paper")

/* UROCE_ADMISSION_MODES explains them. */
enum uroce_admission_mode {
#define X(NAME, word) UROCE_ADMISSION_##NAME,
	UROCE_ADMISSION_MODES(X)
#undef X
};

/* Status of a pool of receives; in A and B only that queue class is accepted. X(NAME, word) */
#define UROCE_POOL_STATUSES(X)                                                                     \
	X(NA, "NA")                                                                                \
	X(A, "A")                                                                                  \
	X(NB, "NB")                                                                                \
	X(B, "B")                                                                                  \
	X(UNKNOWN, "unknown")

/* UROCE_POOL_STATUSES explains them. */
enum uroce_pool_status {
#define X(NAME, word) UROCE_POOL_##NAME,
	UROCE_POOL_STATUSES(X)
#undef X
};

/* The state of an SRQ with queue pairs, as its peers see it. X(name, unit, help) */
#define UROCE_POOL(X)                                                                              \
	X(generation, "changes", "changes of status, modulo 2^16")                                 \
	X(qps, "queue pairs", "queue pairs that receive from the pool")                            \
	X(posted, "receives", "receives posted")                                                   \
	X(room, "receives", "receives posted that are not reserved by a grant")                    \
	X(refused_a, "queue pairs", "queue pairs of class A: refused, and waiting")                \
	X(refused_b, "queue pairs", "queue pairs of class B: refused, and waiting")                \
	X(granted, "queue pairs", "queue pairs with a grant: a receive is reserved")

/* A pool of receives. */
struct uroce_pool {
	uint32_t name;		       /* by which peers know it */
	unsigned worker;	       /* the worker to which it belongs */
	enum uroce_pool_status status; /* the one that peers are notified of */
#define X(name, unit, help) uint64_t name;
	UROCE_POOL(X)
	UROCE_POOL_COUNTERS(X)
#undef X
};

/* This endpoint's record of a peer's pool to which queue pairs send. X(name, meaning) */
#define UROCE_PEER_POOL(X)                                                                         \
	X(generation, "generation of the last status received")                                    \
	X(qps, "queue pairs that send to it")                                                      \
	X(waiting, "those of them that hold a message back because it would be refused")

/* A peer's pool of receives, as this endpoint knows it. */
struct uroce_peer_pool {
	union ibv_gid address;	       /* the peer */
	uint32_t pool;		       /* the peer's name for it */
	unsigned worker;	       /* the worker that sends to it */
	enum uroce_pool_status status; /* the last one received */
#define X(name, meaning) uint64_t name;
	UROCE_PEER_POOL(X)
#undef X
};

/* Admission of the whole endpoint, see uroce_query_admission(). */
struct uroce_admission {
	enum uroce_admission_mode mode; /* [admission] mode */
	size_t pools;			/* current number of pools of this endpoint */
	size_t peer_pools;		/* current number of peers' pools */
};

/*
 * Fills `admission`, pools[0, pool_cap) with the first pools and peers[0, peer_cap) with the first
 * pools of peers, sorted by worker. An array may be NULL if its number is 0. Totals are in
 * uroce_query_counters(). Always 0.
 */
int uroce_query_admission(struct ibv_context *ctx, struct uroce_admission *admission,
			  struct uroce_pool *pools, size_t pool_cap, struct uroce_peer_pool *peers,
			  size_t peer_cap);
/* The word of a mode, such as "plain". Static. */
const char *uroce_admission_mode_str(enum uroce_admission_mode mode);
/* The word of a status, such as "NA". Static. */
const char *uroce_pool_status_str(enum uroce_pool_status status);

#ifdef __cplusplus
}
#endif

#endif
