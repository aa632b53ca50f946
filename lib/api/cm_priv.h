/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_CM_PRIV_H
#define UR_API_CM_PRIV_H

#include "api/device.h"

/*
 * Internal interface of the connection functions (cm.h of the public API). The core connection
 * manager runs on worker 0; application threads reach it only through ur_worker_call(). Its events
 * are queued as notes in a channel. This needs no allocation: each id contains its notes, and
 * requests take them from a backlog of the device. The application thread that fetches a note
 * carries out what it requires: it moves the QP, answers the peer and builds the application's
 * event.
 *
 * Lock order: cm->serve, worker 0, cm->lock. cm->serve is held to move QPs for events and to remove
 * an id or a QP; cm->lock protects the queues. No worker is called under cm->lock.
 */

/* Timeout of an answer: 4.096 us * 2^16 = 268 ms; 1 + 8 attempts take 2.4 s. */
#define UR_CM_API_RESP_TIMEOUT 16
#define UR_CM_API_RETRIES      8
/* Target ACK delay in a REP: 134 ms, like other endpoints in software. */
#define UR_CM_API_ACK_DELAY 15
/* Maximum number of requests not yet fetched: as many as the core allows to be pending. */
#define UR_CM_API_BACKLOG (UR_CM_API_PENDING + UR_CM_API_SIDR)
/* Notes that an id can have at a time: REP, end by the peer, time-wait exit, end by ourselves. */
#define UR_CM_API_NOTES 4

/* The type of the object that the context of a core id points to; its first member. */
enum ur_cm_owner {
	UR_CM_OWNER_ID,	     /* struct ur_api_cm_id */
	UR_CM_OWNER_REQUEST, /* struct ur_cm_note: the request has not been fetched */
};

struct ur_api_cm_id;

struct ur_cm_note {
	enum ur_cm_owner owner; /* REQUEST */
	TAILQ_ENTRY(ur_cm_note) link;
	bool queued;
	struct ur_api_cm_id *id; /* the id concerned; for a request, the listener */
	struct ur_cm_id handle;
	enum ur_cm_event_type type;
	bool final; /* the handle is no longer valid in the core */
	int status;
	/* REQ_RCVD, SIDR_REQ_RCVD */
	bool has_mac;
	uint8_t mac[6]; /* CM-MAC-01: source of the frame: the peer or its gateway */
	struct ur_gid peer, local;
	uint16_t peer_port;
	/* From the REQ (REQ_RCVD) or the REP (REP_RCVD), as the local QP needs them. */
	struct ur_qpn qpn;
	struct ur_psn sq_psn; /* first PSN that the QP sends */
	uint32_t qkey;
	uint8_t transport, pmtu, ack_timeout, retry_cnt, rnr_retry;
	uint8_t responder_resources, initiator_depth; /* the peer's */
	uint8_t sl, tclass;			      /* REQ_RCVD: from the primary path */
	bool srq;
	uint8_t private_len;
	uint8_t private_data[UR_CM_REP_PRIVATE];
	bool extended;	       /* REQ_RCVD: the peer offers extended mode; REP_RCVD: it is used */
	struct ur_offer offer; /* the peer's block; zero: none */
};

TAILQ_HEAD(ur_cm_notes, ur_cm_note);

/* The phase of an id decides which calls of the application are valid. */
enum ur_cm_phase {
	UR_CM_IDLE,
	UR_CM_LISTENING,
	UR_CM_REQUESTED,  /* a child waiting for accept, reject or a SIDR reply */
	UR_CM_CONNECTING, /* REQ, REP or SIDR_REQ sent */
	UR_CM_CONNECTED,
	UR_CM_CLOSED, /* disconnected or refused, perhaps still in time-wait */
};

struct ur_api_cm_id {
	struct uroce_cm_id base; /* first: the application's handle */
	enum ur_cm_owner owner;	 /* ID; the core's context pointer points here */
	struct ur_device *dev;
	_Atomic enum ur_cm_phase phase;
	bool sidr;
	uint16_t port;		/* LISTENING */
	struct ur_cm_id handle; /* 0: unknown to the core */
	/* Parameters for the QP. */
	uint8_t sl, tclass; /* until there is an address vector */
	uint8_t patience;
	struct ibv_ah_attr ah;
	struct uroce_conn_param param;	/* without private data */
	uint8_t pmtu;			/* enum ibv_mtu */
	struct ur_psn rq_psn;		/* first PSN that the peer sends */
	struct sockaddr_storage source; /* the address to connect from; ss_family 0: any */
	/* The application moves the QP itself, and `request` is the peer's REQ or REP. */
	bool by_number;
	bool responded;	       /* by_number: RESPONSE was fetched */
	bool accepted;	       /* `param` holds what was agreed upon */
	enum ibv_qp_type type; /* by_number: RC or UC */
	/* Active side: what decides the QP's mode; its `peer` comes with the REP. */
	struct ur_mode_case mode;
	struct ur_cm_note request; /* of a child: the peer's request */
	/* Under cm->lock: notes[0, note_cnt) are in use. */
	unsigned note_cnt;
	struct ur_cm_note notes[UR_CM_API_NOTES];
};

struct uroce_event_channel {
	struct ibv_context *ctx;
	struct ur_device *dev; /* of ctx */
	int fd;		       /* an eventfd as a semaphore that counts the notes */
	/* Protected by cm->lock: */
	struct ur_cm_notes queue;
	uint32_t ids;
	struct ur_waiters waiters;
};

struct ur_cm_api {
	struct ur_device *dev;
	pthread_mutex_t serve, lock;
	struct ur_cm_notes spare; /* of the first `begun` */
	unsigned begun;		  /* the rest of the backlog is memory that was never touched */
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
 * Takes the oldest note. Returns NULL if there is none (*empty is true), or if it is a request and
 * the caller cannot take requests.
 */
struct ur_cm_note *ur_cm_api_pop(struct uroce_event_channel *ch, bool requests, bool *empty);
/* Returns the note of a request to the backlog. */
void ur_cm_api_give(struct ur_cm_api *cm, struct ur_cm_note *note);
/* Removes all notes of the id. The core must not emit events for the id any more. */
void ur_cm_api_purge(struct ur_cm_api *cm, struct ur_api_cm_id *id);
/* Refuses the requests to a listener that have not been fetched. Thread class: worker 0. */
void ur_cm_api_refuse(struct ur_cm_api *cm, const struct ur_api_cm_id *listener, uint64_t now_ns);
/*
 * The traffic class of a connection whose REQ has traffic class `named`: its DSCP with our ECN
 * bits; 0 if it has no DSCP.
 */
uint8_t ur_cm_api_tclass(const struct ur_device *dev, uint8_t named);
/* Calls `fn` on worker 0 by ur_worker_call(), and sends the resulting MADs at once. */
void ur_cm_api_call(struct ur_device *dev, void (*fn)(void *arg, uint64_t now_ns), void *arg);

/* --- ids (cm_id.c) --- */

/* Creates an id on the channel; NULL: memory is out. */
struct ur_api_cm_id *ur_cm_api_id_new(struct uroce_event_channel *ch, void *user);
/* Frees an id that is unknown to the core. cm->serve is held. */
void ur_cm_api_id_free(struct ur_api_cm_id *id);
void ur_cm_api_sockaddr(struct sockaddr_storage *to, const struct ur_gid *gid, uint16_t port);
/*
 * Address vector to a peer, from `from`, or if its ss_family is 0 from the address of ours that suits best.
 * EAFNOSUPPORT, EADDRNOTAVAIL.
 */
int ur_cm_api_route(struct ur_device *dev, const struct sockaddr *peer,
		    const struct sockaddr_storage *from, struct ibv_ah_attr *ah, uint16_t *port);
struct ur_gid ur_cm_api_dgid(const struct ibv_ah_attr *ah);

/* What is an event of the core's to the API, also if the API itself causes it. Thread class: worker 0. */
void ur_cm_api_sink(void *api, const struct ur_cm_event *ev);

/* --- connections (cm_conn.c) --- */

struct ur_cm_api_connect {
	struct ur_api_cm_id *id;
	uint16_t port;
	struct ur_cm_connect_attr req;
	struct ur_cm_sidr_attr sidr;
	uint8_t private_data[UR_CM_SIDR_REQ_PRIVATE];
	int rc;
};

/* Checks and takes the parameters, and finds the peer. */
int ur_cm_api_prepare(struct ur_cm_api_connect *c, const struct sockaddr *peer,
		      const struct uroce_conn_param *param);
/* Fills in the REQ. */
void ur_cm_api_fill_req(struct ur_cm_api_connect *c, const struct uroce_cm_qp *qp);
/* Sends the REQ or SIDR_REQ. */
int ur_cm_api_start(struct ur_cm_api_connect *c);
/* Takes the parameters of an accept, limited to what the peer's REQ says, and fills in the REP. */
int ur_cm_api_take_accept(struct ur_api_cm_id *id, const struct uroce_cm_qp *qp,
			  const struct uroce_conn_param *param, struct ur_cm_accept_attr *rep);
/* Sends the REP. ECONNABORTED: the peer has given up. */
int ur_cm_api_send_rep(struct ur_api_cm_id *id, const struct ur_cm_accept_attr *rep);
struct ur_psn ur_cm_api_random_psn(void);

/* Attaches a QP to the id, or NULL to detach it. Destroying the QP detaches it as well. */
void ur_cm_api_attach(struct ur_api_cm_id *id, struct ibv_qp *qp);
/* Moves an id's QP to ERR, if it has one. */
void ur_cm_api_stop_qp(struct ur_api_cm_id *id);
/*
 * Moves an id's QP from INIT to RTS with the parameters of the peer's REQ or REP. id->mode and the
 * peer's block decide the mode. EPROTONOSUPPORT: the application requires extended mode, but the
 * peer does not support it.
 */
int ur_cm_api_start_qp(struct ur_api_cm_id *id, struct ibv_qp *qp, const struct ur_cm_note *peer);

#endif
