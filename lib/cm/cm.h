/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CM_CM_H
#define UR_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/offer.h"
#include "wire/cm_msg.h"
#include "wire/drop.h"
#include "wire/mad.h"
#include "wire/path.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The connection manager of one port (IBA chapter 12). docs/design/cm.md describes the states, the
 * timers and the effect of each message. It is a pure state machine: the caller passes in the MADs
 * that QP1 receives, with the current time, and fetches the MADs to send. Events report what
 * happens to connections; commands act on them.
 *
 * `now` is in nanoseconds and must never go back. Deadlines are on the same clock.
 *
 * Thread class: one thread at a time (the worker that owns QP1). An event callback may call
 * commands, but not ur_cm_input(), ur_cm_expire() or ur_cm_output().
 */
struct ur_cm;

struct ur_cm_limits {
	uint32_t max_ids;	/* [1, 2^20]: connections and SIDR exchanges, time-wait included */
	uint32_t max_listeners; /* [0, 2^16] */
	/* Requests of peers that are not yet established or answered, [1, max_ids] each. */
	uint32_t max_pending;  /* connections */
	uint32_t max_sidr;     /* SIDR exchanges; 0: the same as max_pending */
	uint32_t max_per_peer; /* both kinds, from one address; 0: no separate limit */
	uint32_t max_tx;       /* [1, 2^20]: MADs waiting to be fetched; max_ids + 16 is ample */
};

/* Handle of a connection or SIDR exchange; 0 is none. Commands refuse a stale one with -EINVAL. */
struct ur_cm_id {
	uint32_t v;
};

/*
 * Events. X(name, text). Names at the end of a line are the members of struct ur_cm_event that are
 * valid.
 *
 * - REQ_RCVD: a peer requests a connection. `id` is new, `ctx` is the listener's. Answer with
 *   ur_cm_accept() or ur_cm_reject(), in the callback or later. (req, src, ip)
 * - REP_RCVD: the peer accepted our REQ. Move the QP to RTS and call ur_cm_rtu(), or call
 *   ur_cm_reject(). The resources in `rep` are already limited to what our REQ allowed. (rep)
 * - ESTABLISHED: the RTU arrived (passive side).
 * - MRA_RCVD: the peer needs more time. (mra)
 * - REJ_RCVD: the peer refuses or gives up. (rej)
 * - UNREACHABLE: our REQ, REP or SIDR_REQ got no answer after all retries. Or the caller left a
 *   peer's REQ or SIDR_REQ unanswered for a minute, and the CM has refused it.
 * - DREQ_RCVD: the peer ends the connection, and the DREP is sent already. Move the QP to error.
 * - DISCONNECTED: our DREQ was answered, or `timed_out` is set. It also comes without a DREQ of the
 *   caller if the peer has forgotten the connection.
 * - TIMEWAIT_EXIT: the QPN may be used again.
 * - SIDR_REQ_RCVD: a peer requests a UD QP. Answer with ur_cm_sidr_rep(). (sidr_req, src, ip)
 * - SIDR_REP_RCVD: the answer to our SIDR_REQ. (sidr_rep)
 */
#define UR_CM_EVENTS(X)                                                                            \
	X(REQ_RCVD, "REQ received")                                                                \
	X(REP_RCVD, "REP received")                                                                \
	X(ESTABLISHED, "established")                                                              \
	X(MRA_RCVD, "MRA received")                                                                \
	X(REJ_RCVD, "REJ received")                                                                \
	X(UNREACHABLE, "unreachable")                                                              \
	X(DREQ_RCVD, "DREQ received")                                                              \
	X(DISCONNECTED, "disconnected")                                                            \
	X(TIMEWAIT_EXIT, "time-wait over")                                                         \
	X(SIDR_REQ_RCVD, "SIDR_REQ received")                                                      \
	X(SIDR_REP_RCVD, "SIDR_REP received")

enum ur_cm_event_type {
#define X(name, text) UR_CM_EV_##name,
	UR_CM_EVENTS(X)
#undef X
		UR_CM_EV_CNT
};

/* States of an id, returned by ur_cm_state(). X(name) */
#define UR_CM_STATES(X)                                                                            \
	X(FREE)                                                                                    \
	X(REQ_SENT)                                                                                \
	X(REQ_RCVD)                                                                                \
	X(REP_SENT)                                                                                \
	X(REP_RCVD)                                                                                \
	X(ESTABLISHED)                                                                             \
	X(DREQ_SENT)                                                                               \
	X(TIMEWAIT)                                                                                \
	X(SIDR_REQ_SENT)                                                                           \
	X(SIDR_REQ_RCVD)                                                                           \
	X(LINGER)

enum ur_cm_state {
#define X(name) UR_CM_ST_##name,
	UR_CM_STATES(X)
#undef X
		UR_CM_ST_CNT
};

/* X(name, unit, help): docs/design/counters.md */
#define UR_CM_COUNTERS(X)                                                                          \
	X(rx, "packets", "MADs received")                                                          \
	X(tx, "packets", "MADs sent")                                                              \
	X(malformed, "packets", "MADs that are no CM message or have an impossible field")         \
	X(unexpected, "packets", "messages for an unknown id, or not valid in its state")          \
	X(wrong_peer, "packets",                                                                   \
	  "messages for an id that came from another address than its peer's")                     \
	X(established, "connections", "connections that were established")                         \
	X(duplicates, "packets", "repeated messages that were answered again")                     \
	X(retries, "packets", "messages sent again because a timer expired")                       \
	X(timeouts, "messages", "messages given up after all retries")                             \
	X(rej_sent, "packets", "REJs sent")                                                        \
	X(no_service, "requests", "requests for a service id without a listener")                  \
	X(no_resources, "requests", "requests refused because a table was full")                   \
	X(over_share, "requests", "requests refused because their peer had too many unanswered")   \
	X(expired, "requests", "requests refused because the application did not answer in time")  \
	X(stale, "connections", "connections replaced by a new one of the peer's queue pair")      \
	X(tx_full, "packets", "MADs lost because the send queue was full")                         \
	X(ignored, "requests",                                                                     \
	  "requests left unanswered because the application's backlog was full")

struct ur_cm_counters {
#define X(name, unit, help) uint64_t name;
	UR_CM_COUNTERS(X)
#undef X
};

/* The origin of a MAD, and how to answer it. */
struct ur_cm_src {
	struct ur_gid sgid, dgid; /* addresses of the packet: the peer's and ours */
	struct ur_qpn sqpn;	  /* source QPN of the DETH, to which answers go */
	struct ur_path path;	  /* path to sgid */
};

struct ur_cm_event {
	enum ur_cm_event_type type;
	struct ur_cm_id id;
	void *ctx;
	bool final;		     /* the handle is already stale; no further event follows */
	bool timed_out;		     /* DISCONNECTED */
	const struct ur_cm_src *src; /* REQ_RCVD, SIDR_REQ_RCVD */
	struct ur_psn sq_psn;	     /* REQ_RCVD, REP_RCVD: first PSN that we send; CM-PSN-01 */
	union {
		const struct ur_cm_req *req;
		const struct ur_cm_rep *rep;
		const struct ur_cm_mra *mra;
		const struct ur_cm_rej *rej;
		const struct ur_cm_sidr_req *sidr_req;
		const struct ur_cm_sidr_rep *sidr_rep;
	};
	/* REQ_RCVD, SIDR_REQ_RCVD: NULL unless the service id is one of the RDMA IP CM. */
	const struct ur_rdma_ip *ip;
	/* The application's part of the private data, after `ip`; 0 bytes if there is none. */
	const uint8_t *private_data;
	uint8_t private_len;
	/*
	 * REQ_RCVD, REP_RCVD: the block at the end of the private data, or NULL. Its bytes are zero
	 * in private_data. The caller decides what to do with it.
	 */
	const struct ur_offer *offer;
};

/* Pointers in the event are valid until the callback returns. */
typedef void (*ur_cm_sink)(void *sink_ctx, const struct ur_cm_event *ev);

/* Service level and traffic class of an id's messages. The CM only stores it, for `set_dscp`. */
struct ur_cm_service {
	uint8_t sl, tclass; /* tclass 0: that of the SL */
};

/* Sets the traffic class and 802.1Q priority of a path to those of a service. */
typedef void (*ur_cm_set_dscp)(void *sink_ctx, const struct ur_cm_service *service,
			       struct ur_path *path);

struct ur_cm_attr {
	uint64_t ca_guid;
	uint64_t seed;	 /* random: seed of the hash tables */
	uint64_t id_key; /* random: makes communication ids unpredictable and unique to a run */
	struct ur_qpn_prefix prefix; /* upper bits of communication ids, at most 6; zero: none */
	uint64_t timewait_ns;	     /* > 0; usually 1 s */
	ur_cm_sink sink;	     /* receives the events */
	void *sink_ctx;
	ur_cm_set_dscp set_dscp; /* NULL: paths stay as the caller gives them */
};

/* Bytes of memory that ur_cm_init() needs; 0 if a limit is out of range. */
size_t ur_cm_size(const struct ur_cm_limits *limits);
/*
 * `mem` has ur_cm_size() bytes and is aligned to 16. It belongs to the caller, who keeps it as long
 * as the CM is in use; there is nothing else to free. `limits` and `attr` are copied.
 */
struct ur_cm *ur_cm_init(void *mem, const struct ur_cm_limits *limits,
			 const struct ur_cm_attr *attr);

/*
 * Processes a MAD of class CM that QP1 received with the right Q_Key. Returns
 *
 * - UR_DROP_NONE: it took effect, or was a duplicate
 * - UR_DROP_MAD: malformed, or a field has an impossible value
 * - UR_DROP_PEER: not from the id's peer
 * - UR_DROP_QPN: a DREQ for another QP
 * - UR_DROP_UNEXPECTED: for no known id, or not valid in the id's state
 * - UR_DROP_RESOURCES: a table is full
 *
 * An answer (REJ, DREP, SIDR_REP) may be queued in every case except PEER and QPN.
 */
enum ur_drop ur_cm_input(struct ur_cm *cm, const uint8_t mad[UR_MAD_BYTES],
			 const struct ur_cm_src *src, uint64_t now);

struct ur_cm_out {
	const struct ur_path *path; /* valid until the next call of a function but ur_cm_output() */
	struct ur_qpn dest_qpn;	    /* 1, unless the peer's CM uses another QP */
	uint8_t mad[UR_MAD_BYTES];
};

/* Fetches at most `cap` MADs to send, oldest first. Returns their number. */
size_t ur_cm_output(struct ur_cm *cm, struct ur_cm_out *out, size_t cap, uint64_t now);

/* True if there are MADs to fetch. */
bool ur_cm_wants_output(const struct ur_cm *cm);

/* The time at which ur_cm_expire() is due, ns; UINT64_MAX if no timer is armed. */
uint64_t ur_cm_next_deadline(const struct ur_cm *cm);
void ur_cm_expire(struct ur_cm *cm, uint64_t now);

enum ur_cm_kind { UR_CM_KIND_CONN, UR_CM_KIND_SIDR, UR_CM_KIND_CNT };

/*
 * Accepts requests of one kind for a service id. -EEXIST: there is a listener already; -ENOSPC:
 * max_listeners is reached.
 */
int ur_cm_listen(struct ur_cm *cm, enum ur_cm_kind kind, uint64_t service_id, void *ctx);
/* Removes a listener. Ids that it has created remain. -ENOENT: there is no listener. */
int ur_cm_unlisten(struct ur_cm *cm, enum ur_cm_kind kind, uint64_t service_id);

struct ur_cm_connect_attr {
	struct ur_path path; /* with the traffic class of `service`, here and below */
	struct ur_cm_service service;
	struct ur_gid sgid, dgid; /* our address, the peer's */
	uint64_t service_id;
	enum ur_cm_transport transport; /* RC or UC */
	struct ur_qpn qpn;
	struct ur_psn rq_psn; /* first PSN that the peer sends; CM-PSN-01 */
	uint16_t pkey;
	uint8_t pmtu;		      /* 1 to 5: 256 to 4096 bytes */
	uint8_t responder_resources;  /* READs and atomics that we serve at a time */
	uint8_t initiator_depth;      /* READs and atomics that we want outstanding */
	uint8_t retry_cnt, rnr_retry; /* [0, 7] */
	uint8_t ack_timeout;	      /* [0, 31]: 4.096 us * 2^n */
	bool flow_ctrl, srq;
	uint32_t flow_label;
	uint8_t tclass, hop_limit, sl;
	uint8_t remote_resp_timeout; /* [0, 31]: the peer's CM answers the REQ within this time */
	uint8_t local_resp_timeout;  /* [0, 31]: we answer the REP within this time */
	uint8_t max_cm_retries;	     /* [0, 15] */
	uint8_t patience; /* CM-PATIENCE-01: refusals for lack of a listener that count as a lost REQ */
	const void *private_data;     /* begins with the RDMA IP header, if any */
	uint8_t private_len;	      /* [0, UR_CM_REQ_PRIVATE]; 16 less with an offer */
	const struct ur_offer *offer; /* sent in the last 16 bytes; NULL: none */
};

/*
 * Sends a REQ and sets *id. The outcome is an event: REP_RCVD, REJ_RCVD or UNREACHABLE. -EINVAL: an
 * attribute is out of range; -ENOSPC: max_ids is reached. `attr` is not needed afterwards.
 */
int ur_cm_connect(struct ur_cm *cm, void *ctx, const struct ur_cm_connect_attr *attr, uint64_t now,
		  struct ur_cm_id *id);

/*
 * Sends an RTU: the QP of an id in REP_RCVD is ready. -EINVAL: the id is stale or in another state,
 * here and below.
 */
int ur_cm_rtu(struct ur_cm *cm, struct ur_cm_id id, const void *private_data, uint8_t private_len,
	      uint64_t now);

struct ur_cm_accept_attr {
	struct ur_qpn qpn;
	struct ur_psn rq_psn; /* first PSN that the peer sends; CM-PSN-01 */
	uint32_t qkey;
	/* Limited to the REQ's initiator depth and responder resources. */
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay; /* [0, 31] */
	uint8_t rnr_retry;	  /* [0, 7] */
	bool flow_ctrl, srq;
	const void *private_data;
	uint8_t private_len;	      /* [0, UR_CM_REP_PRIVATE]; 16 less with an offer */
	const struct ur_offer *offer; /* sent in the last 16 bytes; NULL: none */
};

/*
 * Answers a REQ with a REP. The QP must be able to receive already. The outcome is an event:
 * ESTABLISHED, REJ_RCVD or UNREACHABLE, within ten seconds unless the peer sends an MRA.
 */
int ur_cm_accept(struct ur_cm *cm, struct ur_cm_id id, const struct ur_cm_accept_attr *attr,
		 uint64_t now);

/*
 * Refuses a REQ (id in REQ_RCVD) or a REP (id in REP_RCVD). Afterwards the handle is stale and no
 * event follows. private_len is in [0, UR_CM_REJ_PRIVATE].
 */
int ur_cm_reject(struct ur_cm *cm, struct ur_cm_id id, enum ur_cm_rej_reason reason,
		 const void *private_data, uint8_t private_len, uint64_t now);

/*
 * Forgets a REQ or SIDR_REQ that is not answered yet, without a message (CM-BACKLOG-01). Afterwards the
 * handle is stale, and a repetition by the peer is a new request.
 */
int ur_cm_ignore(struct ur_cm *cm, struct ur_cm_id id);

/*
 * Sends an MRA, which asks the peer for more time: 4.096 us * 2^service_timeout, [0, 31]. The id is
 * in REQ_RCVD or REP_RCVD.
 */
int ur_cm_mra(struct ur_cm *cm, struct ur_cm_id id, uint8_t service_timeout, uint64_t now);

/*
 * Establishes an id in REP_SENT whose first data arrived before the RTU. Also returns 0 if the id
 * is established already.
 */
int ur_cm_establish(struct ur_cm *cm, struct ur_cm_id id);

/*
 * Sends a DREQ for an id in ESTABLISHED or REP_SENT. private_len is in [0, UR_CM_DREQ_PRIVATE].
 */
int ur_cm_disconnect(struct ur_cm *cm, struct ur_cm_id id, const void *private_data,
		     uint8_t private_len, uint64_t now);

struct ur_cm_sidr_attr {
	struct ur_path path;
	struct ur_cm_service service;
	struct ur_gid dgid;
	uint64_t service_id;
	uint16_t pkey;
	uint8_t resp_timeout;	/* [0, 31] */
	uint8_t max_cm_retries; /* [0, 15] */
	uint8_t patience;	/* as for connections: CM-PATIENCE-01 */
	const void *private_data;
	uint8_t private_len; /* [0, UR_CM_SIDR_REQ_PRIVATE] */
};

/*
 * Sends a SIDR_REQ, which asks for the UD QP of a service id. The outcome is an event:
 * SIDR_REP_RCVD or UNREACHABLE, both final.
 */
int ur_cm_sidr_req(struct ur_cm *cm, void *ctx, const struct ur_cm_sidr_attr *attr, uint64_t now,
		   struct ur_cm_id *id);

/*
 * Answers a SIDR_REQ. Afterwards the handle is stale. private_len is in [0,
 * UR_CM_SIDR_REP_PRIVATE].
 */
int ur_cm_sidr_rep(struct ur_cm *cm, struct ur_cm_id id, enum ur_cm_sidr_status status,
		   struct ur_qpn qpn, uint32_t qkey, const void *private_data, uint8_t private_len,
		   uint64_t now);

/*
 * Releases an id in any state. Afterwards the handle is stale and no event follows. An unanswered
 * request is refused, a connection is disconnected. The slot becomes free when the peer has
 * answered or time-wait is over.
 */
int ur_cm_destroy(struct ur_cm *cm, struct ur_cm_id id, uint64_t now);

int ur_cm_set_ctx(struct ur_cm *cm, struct ur_cm_id id, void *ctx);

/*
 * Sets the service of the id's messages from now on. Until then the answers to a peer's request
 * have the traffic class of the request.
 */
int ur_cm_set_service(struct ur_cm *cm, struct ur_cm_id id, const struct ur_cm_service *service);
/*
 * Calls `set_dscp` again for every id with a service, after the DSCP/PCP map has changed. Repeated
 * messages get the new values as well.
 */
void ur_cm_update_dscp(struct ur_cm *cm);

/* UR_CM_ST_FREE for a stale id. */
enum ur_cm_state ur_cm_state(const struct ur_cm *cm, struct ur_cm_id id);
const char *ur_cm_state_name(enum ur_cm_state state);
const char *ur_cm_event_text(enum ur_cm_event_type type);
/* Number of slots in use, including those in TIMEWAIT and LINGER. */
uint32_t ur_cm_ids_in_use(const struct ur_cm *cm);
const struct ur_cm_counters *ur_cm_counters(const struct ur_cm *cm);
/* Asserts the invariants that hold between calls. For tests: it visits all ids. */
void ur_cm_validate(const struct ur_cm *cm);

#ifdef __cplusplus
}
#endif

#endif
