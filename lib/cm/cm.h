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
 * The connection manager of one port (IBA chapter 12; docs/design/cm.md has states, timers and the
 * table of what each message does). A pure state machine: MADs that came to QP1 go in with the
 * time, MADs to send come out, the caller learns of connections through events and drives them with
 * commands. `now` never goes back.
 *
 * Thread class: one thread at a time (the worker that owns QP1). Commands may be called from inside
 * an event callback; ur_cm_input(), ur_cm_expire() and ur_cm_output() may not.
 */
struct ur_cm;

struct ur_cm_limits {
	uint32_t max_ids;	/* [1, 2^20]: connections and SIDR exchanges, time-wait included */
	uint32_t max_listeners; /* [0, 2^16] */
	/* Ids made by peers and not yet established or answered, [1, max_ids] each. */
	uint32_t max_pending;  /* connections */
	uint32_t max_sidr;     /* SIDR exchanges; 0: max_pending */
	uint32_t max_per_peer; /* both, from one address; 0: no limit of its own */
	uint32_t max_tx;       /* [1, 2^20]: MADs made and not yet fetched; max_ids + 16 is ample */
};

/* A connection or SIDR exchange; 0 is none. A stale one is refused with -EINVAL. */
struct ur_cm_id {
	uint32_t v;
};

/*
 * What happens to ids. X(name, text)
 *
 * REQ_RCVD       a peer asks for a connection; `id` is new, `ctx` the listener's. Answer with
 *                ur_cm_accept() or ur_cm_reject(), within the callback or later. req, src, ip.
 * REP_RCVD       our connect() was accepted. Bring the QP to RTS, then call ur_cm_rtu(), or
 *                ur_cm_reject(). rep, resources already lowered to what our REQ allowed.
 * ESTABLISHED    passive side: RTU received.
 * MRA_RCVD       the peer needs more time. mra.
 * REJ_RCVD       the peer refuses or gives up. rej.
 * UNREACHABLE    our REQ, REP or SIDR_REQ was repeated in vain; or a peer's REQ or SIDR_REQ was
 * left unanswered by the caller for a minute, and is refused. DREQ_RCVD      the peer ends the
 * connection (it has its DREP already): move the QP to error. DISCONNECTED   our DREQ was answered,
 * or `timed_out`. Comes unasked when the peer showed that it has forgotten the connection.
 * TIMEWAIT_EXIT  the QPN may be used again.
 * SIDR_REQ_RCVD  a peer asks for a UD QP; answer with ur_cm_sidr_rep(). sidr_req, src, ip.
 * SIDR_REP_RCVD  the answer to our sidr_req(). sidr_rep.
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

/* States, as ur_cm_state() tells them. X(name) */
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

/* X(name, text) */
#define UR_CM_COUNTERS(X)                                                                          \
	X(rx, "MADs received")                                                                     \
	X(tx, "MADs handed out")                                                                   \
	X(malformed, "MADs that are no CM message or carry an impossible field")                   \
	X(unexpected, "messages for no id, or not for its state")                                  \
	X(wrong_peer, "messages for an id from another address than its peer's")                   \
	X(duplicates, "repeated messages, answered again")                                         \
	X(retries, "messages repeated by a timer")                                                 \
	X(timeouts, "messages repeated in vain")                                                   \
	X(rej_sent, "REJs sent")                                                                   \
	X(no_service, "requests for a service id without a listener")                              \
	X(no_resources, "requests refused because the tables are full")                            \
	X(over_share, "requests refused because their peer has too many unanswered")               \
	X(expired, "requests refused because the application did not answer")                      \
	X(stale, "connections replaced by a new one of their peer's QP")                           \
	X(tx_full, "MADs lost because nobody fetched them")

struct ur_cm_counters {
#define X(name, text) uint64_t name;
	UR_CM_COUNTERS(X)
#undef X
};

/* Where a MAD came from and how to answer. */
struct ur_cm_src {
	struct ur_gid sgid, dgid; /* of the packet: the peer's, ours */
	struct ur_qpn sqpn;	  /* source QPN of the DETH; answers go there */
	struct ur_path path;	  /* to sgid */
};

struct ur_cm_event {
	enum ur_cm_event_type type;
	struct ur_cm_id id;
	void *ctx;
	bool final;		     /* the handle is stale already; no event follows */
	bool timed_out;		     /* DISCONNECTED */
	const struct ur_cm_src *src; /* REQ_RCVD, SIDR_REQ_RCVD */
	struct ur_psn sq_psn;	     /* REQ_RCVD, REP_RCVD: CM-PSN-01: our first */
	union {
		const struct ur_cm_req *req;
		const struct ur_cm_rep *rep;
		const struct ur_cm_mra *mra;
		const struct ur_cm_rej *rej;
		const struct ur_cm_sidr_req *sidr_req;
		const struct ur_cm_sidr_rep *sidr_rep;
	};
	/* REQ_RCVD, SIDR_REQ_RCVD with a service id of the RDMA IP CM; else NULL. */
	const struct ur_rdma_ip *ip;
	/* The application's part of the private data (after `ip`); 0 bytes where there is none. */
	const uint8_t *private_data;
	uint8_t private_len;
	/*
	 * REQ_RCVD, REP_RCVD: the block at the end of the private data, which is zero in
	 * private_data then; NULL when there was none. What comes of it is for the caller.
	 */
	const struct ur_offer *offer;
};

/* Pointers in the event live until the callback returns. */
typedef void (*ur_cm_sink)(void *sink_ctx, const struct ur_cm_event *ev);

/* What decides how an id's messages are marked for the network; the core only keeps it. */
struct ur_cm_service {
	uint8_t sl, tclass; /* tclass 0: what the SL has */
};

/* Gives a path the marks of a service. */
typedef void (*ur_cm_mark)(void *sink_ctx, const struct ur_cm_service *service,
			   struct ur_path *path);

struct ur_cm_attr {
	uint64_t ca_guid;
	uint64_t seed;	      /* random: of hash tables */
	uint64_t id_key;      /* random: hides communication ids and tells restarts apart */
	uint64_t timewait_ns; /* > 0; 1 s is usual */
	ur_cm_sink sink;
	void *sink_ctx;
	ur_cm_mark mark; /* or NULL: nothing is ever marked */
};

/* Bytes for ur_cm_init(); 0 when a limit is out of range. */
size_t ur_cm_size(const struct ur_cm_limits *limits);
/* `mem` has ur_cm_size() bytes, aligned to 16, and stays the CM's until the caller drops it. */
struct ur_cm *ur_cm_init(void *mem, const struct ur_cm_limits *limits,
			 const struct ur_cm_attr *attr);

/*
 * A MAD of class CM that came to QP1 with the right Q_Key. UR_DROP_NONE: it had an effect, or was
 * a duplicate. MAD: malformed or with an impossible field. PEER: not from the id's peer. QPN: a
 * DREQ for another QP. UNEXPECTED: fits no id, or not its state. RESOURCES: tables are full. An
 * answer (REJ, DREP, SIDR_REP) may be on its way in every case but PEER and QPN.
 */
enum ur_drop ur_cm_input(struct ur_cm *cm, const uint8_t mad[UR_MAD_BYTES],
			 const struct ur_cm_src *src, uint64_t now);

struct ur_cm_out {
	const struct ur_path *path; /* lives until the next call of anything but ur_cm_output() */
	struct ur_qpn dest_qpn;	    /* 1, unless the peer's CM lives elsewhere */
	uint8_t mad[UR_MAD_BYTES];
};

/* Hands out at most `cap` MADs, oldest first. Returns how many. */
size_t ur_cm_output(struct ur_cm *cm, struct ur_cm_out *out, size_t cap, uint64_t now);

/* Whether a MAD waits to be fetched. */
bool ur_cm_wants_output(const struct ur_cm *cm);

/* When ur_cm_expire() has something to do; UINT64_MAX for never. */
uint64_t ur_cm_next_deadline(const struct ur_cm *cm);
void ur_cm_expire(struct ur_cm *cm, uint64_t now);

enum ur_cm_kind { UR_CM_KIND_CONN, UR_CM_KIND_SIDR, UR_CM_KIND_CNT };

/*
 * Takes requests of one kind for a service id. -EEXIST: something listens already; -ENOSPC:
 * max_listeners.
 */
int ur_cm_listen(struct ur_cm *cm, enum ur_cm_kind kind, uint64_t service_id, void *ctx);
/* Children live on. -ENOENT: nothing listens. */
int ur_cm_unlisten(struct ur_cm *cm, enum ur_cm_kind kind, uint64_t service_id);

struct ur_cm_connect_attr {
	struct ur_path path; /* marked by the caller, here and below */
	struct ur_cm_service service;
	struct ur_gid sgid, dgid; /* ours, the peer's */
	uint64_t service_id;
	enum ur_cm_transport transport; /* RC or UC */
	struct ur_qpn qpn;
	struct ur_psn rq_psn; /* CM-PSN-01: the peer's first */
	uint16_t pkey;
	uint8_t pmtu;		      /* 1 to 5: 256 to 4096 bytes */
	uint8_t responder_resources;  /* READs and atomics we serve at a time */
	uint8_t initiator_depth;      /* READs and atomics we would keep outstanding */
	uint8_t retry_cnt, rnr_retry; /* [0, 7] */
	uint8_t ack_timeout;	      /* [0, 31]: 4.096 us * 2^n */
	bool flow_ctrl, srq;
	uint32_t flow_label;
	uint8_t tclass, hop_limit, sl;
	uint8_t remote_resp_timeout;  /* [0, 31]: the peer's CM answers the REQ by then */
	uint8_t local_resp_timeout;   /* [0, 31]: we answer the REP by then */
	uint8_t max_cm_retries;	      /* [0, 15] */
	const void *private_data;     /* with the RDMA IP header, if any, in front */
	uint8_t private_len;	      /* [0, UR_CM_REQ_PRIVATE]; with an offer 16 less */
	const struct ur_offer *offer; /* goes into the last 16 bytes, or NULL */
};

/*
 * Sends a REQ and sets *id. Later: REP_RCVD, REJ_RCVD or UNREACHABLE. -EINVAL: an attribute out of
 * its range; -ENOSPC: max_ids.
 */
int ur_cm_connect(struct ur_cm *cm, void *ctx, const struct ur_cm_connect_attr *attr, uint64_t now,
		  struct ur_cm_id *id);

/* The QP of an id in REP_RCVD is ready. -EINVAL: stale id or another state, here and below. */
int ur_cm_rtu(struct ur_cm *cm, struct ur_cm_id id, const void *private_data, uint8_t private_len,
	      uint64_t now);

struct ur_cm_accept_attr {
	struct ur_qpn qpn;
	struct ur_psn rq_psn; /* CM-PSN-01: the peer's first */
	uint32_t qkey;
	/* Lowered to the REQ's initiator depth and responder resources. */
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay; /* [0, 31] */
	uint8_t rnr_retry;	  /* [0, 7] */
	bool flow_ctrl, srq;
	const void *private_data;
	uint8_t private_len;	      /* [0, UR_CM_REP_PRIVATE]; with an offer 16 less */
	const struct ur_offer *offer; /* goes into the last 16 bytes, or NULL */
};

/*
 * Answers a REQ; the QP must be able to receive. Later: ESTABLISHED, REJ_RCVD or UNREACHABLE,
 * within ten seconds unless the peer shows by an MRA that it is there.
 */
int ur_cm_accept(struct ur_cm *cm, struct ur_cm_id id, const struct ur_cm_accept_attr *attr,
		 uint64_t now);

/*
 * Refuses a REQ (id in REQ_RCVD) or a REP (id in REP_RCVD). The handle is stale afterwards and no
 * event follows. private_len in [0, UR_CM_REJ_PRIVATE].
 */
int ur_cm_reject(struct ur_cm *cm, struct ur_cm_id id, enum ur_cm_rej_reason reason,
		 const void *private_data, uint8_t private_len, uint64_t now);

/* Asks the peer for more time (REQ_RCVD, REP_RCVD): 4.096 us * 2^service_timeout, [0, 31]. */
int ur_cm_mra(struct ur_cm *cm, struct ur_cm_id id, uint8_t service_timeout, uint64_t now);

/* The first data arrived before the RTU (REP_SENT). 0 as well when it is established already. */
int ur_cm_established(struct ur_cm *cm, struct ur_cm_id id);

/* Ends a connection (ESTABLISHED, REP_SENT). private_len in [0, UR_CM_DREQ_PRIVATE]. */
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
	const void *private_data;
	uint8_t private_len; /* [0, UR_CM_SIDR_REQ_PRIVATE] */
};

/* Asks for the UD QP behind a service id. Later: SIDR_REP_RCVD or UNREACHABLE, both final. */
int ur_cm_sidr_req(struct ur_cm *cm, void *ctx, const struct ur_cm_sidr_attr *attr, uint64_t now,
		   struct ur_cm_id *id);

/* Answers a SIDR_REQ; the handle is stale afterwards. private_len in [0, UR_CM_SIDR_REP_PRIVATE].
 */
int ur_cm_sidr_rep(struct ur_cm *cm, struct ur_cm_id id, enum ur_cm_sidr_status status,
		   struct ur_qpn qpn, uint32_t qkey, const void *private_data, uint8_t private_len,
		   uint64_t now);

/*
 * Lets go of an id in any state: the handle is stale, no event follows. A request is refused, a
 * connection disconnected, and the slot comes back when the peer knows or time-wait is over.
 */
int ur_cm_destroy(struct ur_cm *cm, struct ur_cm_id id, uint64_t now);

int ur_cm_set_ctx(struct ur_cm *cm, struct ur_cm_id id, void *ctx);

/* Marks the id's messages from now on. Before it a peer's request is answered as it was marked. */
int ur_cm_set_service(struct ur_cm *cm, struct ur_cm_id id, const struct ur_cm_service *service);
/* Marks change: those of every id with a service are made anew, repeated messages included. */
void ur_cm_renew_marks(struct ur_cm *cm);

/* FREE for a stale id. */
enum ur_cm_state ur_cm_state(const struct ur_cm *cm, struct ur_cm_id id);
const char *ur_cm_state_name(enum ur_cm_state state);
const char *ur_cm_event_text(enum ur_cm_event_type type);
/* Slots not free, those in TIMEWAIT and LINGER included. */
uint32_t ur_cm_ids_in_use(const struct ur_cm *cm);
const struct ur_cm_counters *ur_cm_counters(const struct ur_cm *cm);
/* Asserts what is true between calls; for tests. Costs a walk over all ids. */
void ur_cm_validate(const struct ur_cm *cm);

#ifdef __cplusplus
}
#endif

#endif
