/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_CM_PRIV_H
#define UR_API_CM_PRIV_H

#include "api/device.h"

/*
 * What stands behind cm.h. The core connection manager lives on worker 0; the application's threads
 * reach it with ur_worker_call() only. Its events become notes in the queue of a channel, which
 * need no memory at that moment: ids bring theirs, requests take one of the device's backlog.
 * Whoever gets the event does what it asks for: moves the QP, answers the peer, tells the
 * application.
 *
 * Locks: cm->serve (one thread moves QPs for events, or takes an id or a QP away) -> worker 0 ->
 * cm->lock (queues). No worker is called under cm->lock.
 */

/* Answers are expected within 4.096 us * 2^16 = 268 ms; 1 + 8 tries take 2.4 s. */
#define UR_CM_API_RESP_TIMEOUT 16
#define UR_CM_API_RETRIES      8
/* What a REP says of how late an ACK may be: 134 ms, as other endpoints in software. */
#define UR_CM_API_ACK_DELAY 15
/* Requests that have not been fetched yet, at most; as many as the core lets be pending. */
#define UR_CM_API_BACKLOG (UR_CM_API_PENDING + UR_CM_API_SIDR)
/* Notes an id can have at once: REP, one end, time-wait exit; and one for an end of our own. */
#define UR_CM_API_NOTES 4

/* What the context pointer of a core id means: the first member of what it points to. */
enum ur_cm_owner {
	UR_CM_OWNER_ID,	     /* struct ur_api_cm_id */
	UR_CM_OWNER_REQUEST, /* struct ur_cm_note: the request has not been fetched */
};

struct ur_api_cm_id;

struct ur_cm_note {
	enum ur_cm_owner owner; /* REQUEST */
	TAILQ_ENTRY(ur_cm_note) link;
	bool queued;
	struct ur_api_cm_id *id; /* whom it is about; of a request: the listener */
	struct ur_cm_id handle;
	enum ur_cm_event_type type;
	bool final; /* the core has forgotten the handle */
	int status;
	/* REQ_RCVD, SIDR_REQ_RCVD */
	bool has_mac;
	uint8_t mac[6]; /* CM-MAC-01: of the frame: the peer's, or its gateway's */
	struct ur_gid peer, local;
	uint16_t peer_port;
	/* REQ_RCVD: the REQ; REP_RCVD: the REP, as the local side's QP needs them. */
	struct ur_qpn qpn;
	struct ur_psn sq_psn; /* the one that the QP begins with */
	uint32_t qkey;
	uint8_t transport, pmtu, ack_timeout, retry_cnt, rnr_retry;
	uint8_t responder_resources, initiator_depth; /* the peer's */
	uint8_t sl, tclass;			      /* REQ_RCVD: of the primary path */
	bool srq;
	uint8_t private_len;
	uint8_t private_data[UR_CM_REP_PRIVATE];
	bool extended;	       /* REQ_RCVD: the peer offers extended mode; REP_RCVD: it is used */
	struct ur_offer offer; /* of the peer; zero: none */
};

TAILQ_HEAD(ur_cm_notes, ur_cm_note);

/* Where an id is in its life, for the application's calls. */
enum ur_cm_phase {
	UR_CM_IDLE,
	UR_CM_LISTENING,
	UR_CM_REQUESTED,  /* a child that waits for accept, reject or a SIDR reply */
	UR_CM_CONNECTING, /* REQ, REP or SIDR_REQ sent */
	UR_CM_CONNECTED,
	UR_CM_CLOSED, /* disconnected or refused; time-wait may be under way */
};

struct ur_api_cm_id {
	struct uroce_cm_id base; /* first: the application's handle */
	enum ur_cm_owner owner;	 /* ID; the core's context pointer points here */
	struct ur_device *dev;
	_Atomic enum ur_cm_phase phase;
	bool sidr;
	uint16_t port;		/* LISTENING */
	struct ur_cm_id handle; /* 0: the core knows nothing of it */
	/* What the QP is going to need. */
	uint8_t sl, tclass; /* before there is an address vector */
	struct ibv_ah_attr ah;
	struct uroce_conn_param param; /* without private data */
	uint8_t pmtu;		       /* enum ibv_mtu */
	struct ur_psn rq_psn;	       /* the one that the peer is told to begin with */
	/* Active side: the QP's mode as far as it is known; `peer` comes with the REP. */
	struct ur_mode_case mode;
	struct ur_cm_note request; /* of a child: what the peer asked for */
	/* Under cm->lock: [0, note_cnt) of notes have been used. */
	unsigned note_cnt;
	struct ur_cm_note notes[UR_CM_API_NOTES];
};

struct uroce_event_channel {
	struct ur_device *dev;
	int fd; /* a semaphore: as many as there are notes */
	/* Under cm->lock: */
	struct ur_cm_notes queue;
	uint32_t ids;
	struct ur_waiters waiters;
};

struct ur_cm_api {
	struct ur_device *dev;
	pthread_mutex_t serve, lock;
	struct ur_cm_notes spare;
	struct ur_cm_note backlog[UR_CM_API_BACKLOG];
};

static inline struct ur_api_cm_id *ur_api_cm_id(struct uroce_cm_id *id)
{
	return (struct ur_api_cm_id *)id;
}

static inline struct ur_cm *ur_cm_api_core(const struct ur_device *dev)
{
	return ur_engine_cm(ur_worker_engine(dev->workers[0]));
}

/* --- queues (cm.c) --- */

/*
 * Takes the oldest note. NULL when there is none (*empty), or when it is a request and the caller
 * can take none.
 */
struct ur_cm_note *ur_cm_api_pop(struct uroce_event_channel *ch, bool requests, bool *empty);
/* Gives a request's note back to the backlog. */
void ur_cm_api_give(struct ur_cm_api *cm, struct ur_cm_note *note);
/* Takes away every note about the id. Call it when the core is silent about the id. */
void ur_cm_api_purge(struct ur_cm_api *cm, struct ur_api_cm_id *id);
/* On worker 0: refuses the requests that came to a listener and that nobody has fetched. */
void ur_cm_api_refuse(struct ur_cm_api *cm, const struct ur_api_cm_id *listener, uint64_t now_ns);
/* The traffic class of a connection whose REQ names this one: its DSCP, if any, and our ECN bits.
 */
uint8_t ur_cm_api_tclass(const struct ur_device *dev, uint8_t named);
/* ur_worker_call() on worker 0, and sends what came of it at once. */
void ur_cm_api_call(struct ur_device *dev, void (*fn)(void *arg, uint64_t now_ns), void *arg);

/* --- ids (cm_id.c) --- */

/* An id on the channel, or NULL. */
struct ur_api_cm_id *ur_cm_api_id_new(struct uroce_event_channel *ch, void *user);
/* Frees an id that the core does not know; cm->serve is held. */
void ur_cm_api_id_free(struct ur_api_cm_id *id);
void ur_cm_api_sockaddr(struct sockaddr_storage *to, const struct ur_gid *gid, uint16_t port);
/* Address vector to a peer from one of our addresses. EAFNOSUPPORT, EADDRNOTAVAIL. */
int ur_cm_api_route(struct ur_device *dev, const struct sockaddr *peer, struct ibv_ah_attr *ah,
		    uint16_t *port);
struct ur_gid ur_cm_api_dgid(const struct ibv_ah_attr *ah);

/* --- connections (cm_conn.c) --- */

/* Attaches the QP, so that it cannot be destroyed under our hands. */
void ur_cm_api_attach(struct ur_api_cm_id *id, struct ibv_qp *qp);
/* Moves an id's QP to ERR, if it has one. */
void ur_cm_api_stop_qp(struct ur_api_cm_id *id);
/*
 * Moves an id's QP from INIT to RTS with what the peer's REQ or REP says, and in the mode that
 * comes of id->mode and the peer's block. EPROTONOSUPPORT: the application demands extended mode,
 * and it cannot be had.
 */
int ur_cm_api_start_qp(struct ur_api_cm_id *id, struct ibv_qp *qp, const struct ur_cm_note *peer);

#endif
