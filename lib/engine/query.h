/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_QUERY_H
#define UR_ENGINE_QUERY_H

#include "engine/engine.h"
#include "transport/counters.h"

/*
 * Queries: copies of an engine's state, made between two rounds. The layers above read these and no
 * struct of a part.
 *
 * Iterators: start with a zeroed cursor; they return false after the last item. The engine must not be
 * changed in between.
 *
 * Thread class: the worker, except ur_engine_counters(), which any thread may read: a value may be
 * slightly old, but is never torn.
 */

#ifdef __cplusplus
extern "C" {
#endif

const struct ur_counters *ur_engine_counters(const struct ur_engine *e);

/* ---- queue pairs ---- */

struct ur_qp_path_view {
	uint16_t sport;		 /* UDP source port */
	uint16_t share_permille; /* of the packets that are sent now */
	uint16_t loss_permille;	 /* in the last thousand packets or so */
	uint64_t rtt_ns;	 /* the round trip that shares are computed from; 0: unknown */
};

struct ur_qp_view {
	struct ur_qpn qpn, dest_qpn;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	enum ur_mode mode;
	bool strict;
	uint32_t pmtu;			   /* bytes */
	uint32_t sq_head, sq_cur, sq_tail; /* send queue: oldest, next to send, next to post */
	struct ur_psn una, nxt, max;	   /* [una, max) is in flight, nxt is sent next */
	struct ur_psn epsn;		   /* expected of the peer */
	uint32_t msn;
	uint8_t retries_left;
	uint16_t sport;	  /* of its requests; 0: it has no path yet */
	uint8_t path_cnt; /* 1: it does not spray, and `path` is empty */
	struct ur_qp_path_view path[UR_SPRAY_MAX];
};

void ur_engine_view_qp(const struct ur_qp *qp, struct ur_qp_view *out);

/* As ibv_query_qp(), except `cap`. */
void ur_engine_query_qp(const struct ur_qp *qp, struct ibv_qp_attr *out);

/* ---- lanes ---- */

struct ur_lanes_view {
	struct {
		uint64_t packets, bytes; /* sent, ACKs and NAKs included */
		uint64_t ready;		 /* queues that can send now */
	} lane[UR_VL_CNT];
	uint64_t ready, held; /* queues, of all lanes; behind a closed gate */
	uint64_t turns, blind_visits, sifted, woken;
};

void ur_engine_view_lanes(const struct ur_engine *e, struct ur_lanes_view *out);

/* ---- destinations that are paced ---- */

struct ur_destinations_view {
	uint64_t destinations, throttled;
	uint64_t link_bps;
	struct ur_cc_counters cnt;
};

struct ur_destination_view {
	struct ur_cc_view pacing;
	bool closed;	       /* nothing may be sent there now */
	uint8_t net_hops;      /* switches that stamped the last delay; 0: delays are round trips */
	uint32_t net_delay_ns; /* with net_hops: the delay in them */
	uint32_t waiting_qps;  /* queue pairs that wait until packets may be sent */
};

void ur_engine_view_destinations(const struct ur_engine *e, struct ur_destinations_view *out);
bool ur_engine_next_destination(const struct ur_engine *e, uint32_t *cursor,
				struct ur_destination_view *out);

/* ---- receive pools, our own and those of peers ---- */

struct ur_pool_view {
	uint32_t name; /* that peers know it by */
	enum ur_adm_status status;
	uint16_t generation; /* changes of status */
	uint32_t qps;
	uint32_t posted, room; /* receives; those not reserved by a grant */
	uint32_t refused_a, refused_b, granted;
	struct ur_adm_counters cnt;
};

struct ur_peer_pool_view {
	uint8_t address[16];
	uint32_t name;
	bool known;
	enum ur_adm_status status; /* if known */
	uint16_t generation;
	uint32_t qps, waiting;
};

struct ur_pool_cursor {
	const struct ur_srq *next;
	bool begun;
};

bool ur_engine_next_pool(const struct ur_engine *e, struct ur_pool_cursor *cursor,
			 struct ur_pool_view *out);
bool ur_engine_next_peer_pool(const struct ur_engine *e, uint32_t *cursor,
			      struct ur_peer_pool_view *out);

#ifdef __cplusplus
}
#endif

#endif
