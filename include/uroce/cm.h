/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCE_CM_H
#define UROCE_CM_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "uroce/uroce.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Connections in band, by InfiniBand CM messages on QP1 in the RDMA IP CM layout, so that
 * rdma_cm peers understand them. The shape is librdmacm's: an id, events, connect and accept. The
 * library moves the QP through its states; the application creates it before connect or accept.
 *
 * The states are moved by whoever fetches the events: a QP reaches RTS inside the
 * uroce_get_cm_event() that returns ESTABLISHED, and stops inside the one that returns
 * DISCONNECTED, REJECTED or UNREACHABLE (it is in ERR then and its work requests have flushed).
 * Keep fetching. A QP gets all remote rights and LOCAL_WRITE; an application that wants fewer, or
 * posts receives beforehand, moves it to INIT itself. QP and id may be destroyed in either order.
 *
 * An attempt to connect to a silent peer ends after 2.4 s; a peer that is slow to accept is waited
 * for 69 s at a time. A request of a peer waits for the application for a minute, then it is
 * refused and the id gets UNREACHABLE; so does one that was accepted and to which the peer says
 * nothing for ten seconds. At most 4096 connections and 1024 SIDR exchanges wait like this, 1024 of
 * them from one address.
 *
 * Thread class: any thread. Return values: 0 or an errno value.
 */

struct uroce_event_channel;

struct uroce_cm_id {
	struct ibv_context *context;
	struct uroce_event_channel *channel;
	void *user;	   /* the application's */
	struct ibv_qp *qp; /* set by connect and accept */
	struct sockaddr_storage local, peer;
};

/*
 * X(name, text)
 *
 * CONNECT_REQUEST  a peer wants to connect: accept or reject the new id, now or later.
 * ESTABLISHED      send. On the active side with the private data of the peer's accept.
 * REJECTED         the peer refuses, or withdrew its request before it was accepted. status.
 * UNREACHABLE      nothing answered (ETIMEDOUT), extended mode is demanded and the peer does not
 * agree (EPROTONOSUPPORT; uroce_query_qp_mode() tells why), or the QP could not be moved (its
 * errno). status. DISCONNECTED     the connection is over, reported once, by whichever end. It may be
 * destroyed. TIMEWAIT_EXIT    the id may connect again. SIDR_REQUEST     a peer asks for a UD QP:
 * answer on the new id. SIDR_RESOLVED    status 0: qpn, qkey; else the IBA's SIDR status: 1 nobody
 * listens, 2 refused.
 */
#define UROCE_CM_EVENTS(X)                                                                         \
	X(CONNECT_REQUEST, "connect request")                                                      \
	X(ESTABLISHED, "established")                                                              \
	X(REJECTED, "rejected")                                                                    \
	X(UNREACHABLE, "unreachable")                                                              \
	X(DISCONNECTED, "disconnected")                                                            \
	X(TIMEWAIT_EXIT, "time-wait exit")                                                         \
	X(SIDR_REQUEST, "service id resolution request")                                           \
	X(SIDR_RESOLVED, "service id resolved")

enum uroce_cm_event_type {
#define X(name, text) UROCE_CM_##name,
	UROCE_CM_EVENTS(X)
#undef X
};

/*
 * What one side offers. The smaller of one side's resources and the other side's depth counts. As
 * the IBA has it, rnr_retry_count is how often the *peer* is to retry when we are not ready, and
 * retry_count and path_mtu are the active side's choice for both; accept ignores them.
 */
struct uroce_conn_param {
	const void *private_data;
	/*
	 * REQ <= 56 bytes, REP <= 196, REJ <= 148. Extended mode is agreed on in the last 16 bytes
	 * of REQ and REP: there is room with REQ <= 40 and REP <= 180, otherwise a QP of mode auto
	 * is `reorder`. The peer sees zeros in their place.
	 */
	uint8_t private_data_len;
	uint8_t responder_resources; /* READs and atomics the peer may have outstanding at us */
	uint8_t initiator_depth;     /* READs and atomics we want to have outstanding at the peer */
	uint8_t retry_count;	     /* 0..7 */
	uint8_t rnr_retry_count;     /* 0..7, 7 is for ever */
	uint8_t timeout;       /* local ACK timeout, 4.096 us * 2^timeout; 0 takes the default */
	uint8_t min_rnr_timer; /* RNR timer code 0..31 */
	uint16_t path_mtu;     /* bytes; 0 takes the port's active MTU */
	bool srq;
};

struct uroce_cm_event {
	enum uroce_cm_event_type type;
	struct uroce_cm_id *id;	       /* the new child for CONNECT_REQUEST and SIDR_REQUEST */
	struct uroce_cm_id *listen_id; /* CONNECT_REQUEST and SIDR_REQUEST */
	int status;		       /* see UROCE_CM_EVENTS */
	struct uroce_conn_param param; /* the peer's; private_data lives until the event is acked */
	uint32_t qpn, qkey;	       /* SIDR_RESOLVED */
};

struct uroce_event_channel *uroce_create_event_channel(struct ibv_context *ctx);
/* EBUSY while it has ids. A thread that waits on it gets ECANCELED, and has left when this returns. */
int uroce_destroy_event_channel(struct uroce_event_channel *channel);
/* Readable when there is an event (dedicated mode, and inline mode while somebody makes progress).
 */
int uroce_event_channel_fd(const struct uroce_event_channel *channel);

/*
 * Waits at most timeout_ms (-1: for ever, 0: not at all) for an event. ETIMEDOUT when none came.
 * In inline mode the waiting thread does the endpoint's work.
 */
int uroce_get_cm_event(struct uroce_event_channel *channel, int timeout_ms,
		       struct uroce_cm_event **event);
void uroce_ack_cm_event(struct uroce_cm_event *event);

int uroce_cm_create_id(struct uroce_event_channel *channel, void *user, struct uroce_cm_id **id);
/*
 * Drops the connection, if there is one, without a word to the peer beyond REJ or DREQ; its QP goes
 * to ERR. A listener refuses the requests that nobody has fetched; its children live on. No event
 * names the id afterwards.
 */
int uroce_cm_destroy_id(struct uroce_cm_id *id);

/*
 * The service level of the connection, [0, 15], and its traffic class (0: what the configuration
 * says of the service level): before connect or sidr_resolve, it is 0 and 0 otherwise; before
 * accept, instead of what the peer's request names. EINVAL: out of range, an id that listens or
 * connects already, or a service level without service (see uroce_set_qos()).
 */
int uroce_cm_set_service(struct uroce_cm_id *id, uint8_t sl, uint8_t traffic_class);

/*
 * Listens on a port of the RDMA_PS_TCP space for connections; EADDRINUSE when another id does. A
 * request whose path MTU is larger than this endpoint's is refused with reason 26 and never seen,
 * one whose service level has no service here with reason 14.
 */
int uroce_cm_listen(struct uroce_cm_id *id, uint16_t port);
/* The same for SIDR requests, on a port of the RDMA_PS_UDP space. */
int uroce_cm_sidr_listen(struct uroce_cm_id *id, uint16_t port);
int uroce_cm_unlisten(struct uroce_cm_id *id);

/*
 * Active side: resolves the peer (EHOSTUNREACH when nobody answers), moves `qp` (RESET) to INIT and
 * sends REQ. ESTABLISHED follows when the QP is in RTS, or REJECTED, or UNREACHABLE. `param` NULL
 * takes the configuration's values. On an error the QP is as it was. EINVAL: an id that is in use,
 * time-wait included, or a parameter out of range; EAFNOSUPPORT; EADDRNOTAVAIL: no address of the
 * peer's family; EAGAIN: too many connections.
 */
int uroce_cm_connect(struct uroce_cm_id *id, const struct sockaddr *peer, struct ibv_qp *qp,
		     const struct uroce_conn_param *param);
/*
 * Passive side: moves `qp` (RESET) to RTR and then RTS, and sends REP. ESTABLISHED follows with
 * RTU. EINVAL: not an id of a request, or a QP of another transport than the peer's. ECONNABORTED:
 * the peer gave up. EPROTONOSUPPORT: extended mode is demanded, and the peer does not offer it, or
 * the private data leaves no room for the answer; reject with reason 5. After another error the id
 * may still be rejected.
 */
int uroce_cm_accept(struct uroce_cm_id *id, struct ibv_qp *qp,
		    const struct uroce_conn_param *param);
/* `reason` is an IBA reject reason; 28 (consumer reject) is the usual one. */
int uroce_cm_reject(struct uroce_cm_id *id, uint16_t reason, const void *private_data, uint8_t len);
/*
 * Sends DREQ, moves the QP to ERR (its work requests flush). DISCONNECTED follows on both sides.
 * ENOTCONN before ESTABLISHED and after DISCONNECTED were fetched.
 */
int uroce_cm_disconnect(struct uroce_cm_id *id);

/* UD: asks for the QPN and Q_Key behind a port; answers such a question. */
int uroce_cm_sidr_resolve(struct uroce_cm_id *id, const struct sockaddr *peer, uint16_t port,
			  const void *private_data, uint8_t len);
int uroce_cm_sidr_reply(struct uroce_cm_id *id, struct ibv_qp *qp, uint32_t qkey, int status);

const char *uroce_cm_event_str(enum uroce_cm_event_type type);
const char *uroce_cm_reject_str(int reason);

#ifdef __cplusplus
}
#endif

#endif
