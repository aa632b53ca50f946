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
 * Connections, made in band by InfiniBand CM messages on QP1 (IBTA Volume 1, chapter 12) in the
 * layout of the RDMA IP CM Service (annex A11), which rdma_cm peers understand. The interface
 * resembles librdmacm: an id, events, listen, connect and accept. The application creates the
 * queue pair; the library moves it through its states.
 *
 * State changes happen in the thread that fetches events. A queue pair is in RTS when
 * uroce_get_cm_event() returns ESTABLISHED. It is in ERR, its work requests flushed, when that call
 * returns DISCONNECTED, REJECTED or UNREACHABLE. So a program has to keep fetching events.
 *
 * A queue pair that is in RESET gets LOCAL_WRITE and all remote access rights. A program that wants
 * to grant fewer, or to post receives first, moves it to INIT itself before connect or accept. Queue
 * pair and id may be destroyed in either order.
 *
 * Time limits: connecting to a silent peer fails after 2.4 s. A peer that is alive but has not
 * accepted yet extends that by 69 s at a time. A peer's request waits one minute for the application
 * before it is refused and its id gets UNREACHABLE; the same happens when an accepted peer is silent
 * for ten seconds. At most 4096 connections and 1024 SIDR exchanges may be pending, 1024 of them
 * from one address.
 *
 * Ownership: the library owns ids, channels and events between the call that creates them and the
 * one that destroys or acknowledges them. It copies private data, addresses and parameters that are
 * passed in.
 *
 * Thread class: any thread. Calls that return int return 0 or an errno value, never a negative one.
 */

struct uroce_event_channel;

/* One end of a connection, a listener, or one end of a SIDR exchange. The application writes only `user`. */
struct uroce_cm_id {
	struct ibv_context *context;	     /* the endpoint */
	struct uroce_event_channel *channel; /* where its events arrive */
	void *user;	   /* from uroce_cm_create_id(); for a request, the listener's */
	struct ibv_qp *qp; /* set by connect and accept */
	struct sockaddr_storage local; /* address of this endpoint, with the port */
	struct sockaddr_storage peer;  /* address of the peer */
};

/*
 * Types of events. X(name, text)
 *
 * - CONNECT_REQUEST: a peer wants to connect. Accept or reject the new id, now or later.
 * - ESTABLISHED: the queue pair may send. At the active end the event holds the private data of the
 *   peer's accept.
 * - REJECTED: the peer refused (status: the reason, see uroce_cm_reject_str()), or withdrew its
 *   request before it was accepted.
 * - UNREACHABLE: no answer arrived (status ETIMEDOUT), extended mode is required and the peer does not
 *   agree (EPROTONOSUPPORT; uroce_query_qp_mode() says why), or the queue pair could not be moved
 *   (the errno value of that).
 * - DISCONNECTED: the connection was ended, by either end. Reported once.
 * - TIMEWAIT_EXIT: the id may connect again.
 * - SIDR_REQUEST: a peer requests the number of a UD queue pair. Answer with the new id.
 * - SIDR_RESOLVED: the answer. status 0: qpn and qkey are valid; otherwise an IBTA SIDR status, such
 *   as 1 (no such service) and 2 (refused).
 * - RESPONSE: the peer accepted what uroce_cm_connect_qpn() began, and the event holds its private data and
 *   parameters. Move the queue pair to RTS and call uroce_cm_establish(), or destroy the id.
 */
#define UROCE_CM_EVENTS(X)                                                                         \
	X(CONNECT_REQUEST, "connect request")                                                      \
	X(ESTABLISHED, "established")                                                              \
	X(REJECTED, "rejected")                                                                    \
	X(UNREACHABLE, "unreachable")                                                              \
	X(DISCONNECTED, "disconnected")                                                            \
	X(TIMEWAIT_EXIT, "time-wait exit")                                                         \
	X(SIDR_REQUEST, "service id resolution request")                                           \
	X(SIDR_RESOLVED, "service id resolved")                                                    \
	X(RESPONSE, "connect response")

/* UROCE_CM_EVENTS explains them. */
enum uroce_cm_event_type {
#define X(name, text) UROCE_CM_##name,
	UROCE_CM_EVENTS(X)
#undef X
};

/*
 * Parameters that one end offers to the other. The number of READs and atomics in flight is the
 * smaller of one end's responder_resources and the other end's initiator_depth. As in the IBTA's
 * messages, rnr_retry_count is how often the *peer* retries when this end has no receive posted.
 * The active end chooses retry_count and path_mtu for both ends; accept ignores them.
 */
struct uroce_conn_param {
	const void *private_data; /* private_data_len bytes for the peer, copied; or NULL */
	/*
	 * At most 56 in connect, 196 in accept, 148 in reject. Extended mode is negotiated in the
	 * last 16 bytes: with more than 40 in connect or 180 in accept there is no room for it and a
	 * queue pair in mode AUTO becomes REORDER. The peer reads zeros behind the data.
	 */
	uint8_t private_data_len;
	uint8_t responder_resources; /* READs and atomics the peer may have in flight to this end */
	uint8_t initiator_depth;     /* READs and atomics this end wants in flight to the peer */
	uint8_t retry_count;	     /* [0, 7] */
	uint8_t rnr_retry_count;     /* [0, 7]; 7: without limit */
	uint8_t timeout;       /* local ACK timeout, 4.096 us * 2^timeout; 0: the configured one */
	uint8_t min_rnr_timer; /* RNR NAK timer code, [0, 31] */
	uint16_t path_mtu;     /* bytes; 0: the port's active MTU */
	bool srq;	       /* in events: the peer receives from an SRQ */
};

/* Valid until uroce_ack_cm_event(). */
struct uroce_cm_event {
	enum uroce_cm_event_type type; /* what happened */
	struct uroce_cm_id *id;	       /* a new one with CONNECT_REQUEST and SIDR_REQUEST */
	struct uroce_cm_id *listen_id; /* with CONNECT_REQUEST and SIDR_REQUEST: the listener */
	int status;		       /* see UROCE_CM_EVENTS */
	struct uroce_conn_param param; /* the peer's; its private data belongs to the event */
	uint32_t qpn;  /* the peer's queue pair; not with the ends of a connection */
	uint32_t qkey; /* with SIDR_RESOLVED: its Q_Key */
};

/* A queue pair that the library does not move: see uroce_cm_connect_qpn(). */
struct uroce_cm_qp {
	uint32_t qpn;	       /* [2, 2^24) */
	enum ibv_qp_type type; /* IBV_QPT_RC or IBV_QPT_UC */
	bool srq;	       /* it receives from an SRQ */
};

/* A queue of events. NULL with errno set: ENOMEM, or the limit of open files. */
struct uroce_event_channel *uroce_create_event_channel(struct ibv_context *ctx);

/*
 * EBUSY while an id uses the channel. A thread that waits on it is woken with ECANCELED and has left
 * when this call returns.
 */
int uroce_destroy_event_channel(struct uroce_event_channel *channel);

/*
 * A descriptor for poll(), readable while there is an event; never read from it. In inline mode it
 * becomes readable only while some thread makes progress.
 */
int uroce_event_channel_fd(const struct uroce_event_channel *channel);

/*
 * Waits for an event, at most timeout_ms milliseconds (-1: without limit, 0: not at all), and passes
 * it to the caller, which has to acknowledge it. In inline mode the waiting thread does the endpoint's
 * work. ETIMEDOUT: no event arrived. ECANCELED: the channel is being destroyed.
 */
int uroce_get_cm_event(struct uroce_event_channel *channel, int timeout_ms,
		       struct uroce_cm_event **event);

/* Frees the event, its private data included. Its id stays valid. */
void uroce_ack_cm_event(struct uroce_cm_event *event);

/* Creates an id whose events arrive at `channel`. `user` is the application's. ENOMEM. */
int uroce_cm_create_id(struct uroce_event_channel *channel, void *user, struct uroce_cm_id **id);

/*
 * Destroys an id. It ends the connection, if there is one: REJ or DREQ is sent to the peer, without
 * waiting for an answer, and the queue pair goes to ERR. A listener refuses the requests that were not
 * fetched; ids of requests that were fetched stay valid. No event has the id afterwards.
 */
int uroce_cm_destroy_id(struct uroce_cm_id *id);

/*
 * Destroys the id of a request without an answer to the peer, whose CM will repeat the request. For a server
 * that cannot take it now. EINVAL: `id` is not that of a pending request, and stays.
 */
int uroce_cm_ignore(struct uroce_cm_id *id);

/*
 * Sets the address that connect and sidr_resolve use, one of the endpoint's, and its port (0: a random
 * one). The default is the address that suits the peer best. EINVAL: the id listens or connects already.
 * EADDRNOTAVAIL: no address of this endpoint. EAFNOSUPPORT.
 */
int uroce_cm_set_source(struct uroce_cm_id *id, const struct sockaddr *source);

/*
 * Has connect and sidr_resolve ask again, at most `refusals` times, if the peer answers that the port has no
 * listener; each time takes 268 ms. For programs whose server begins to listen while the client connects. The default is 0.
 */
void uroce_cm_set_patience(struct uroce_cm_id *id, uint8_t refusals);

/*
 * Sets the service level, [0, 15], and the traffic class (0: the one configured for the service
 * level) of the connection. For connect and sidr_resolve the default is 0 and 0; for accept it
 * is the service level and DSCP of the peer's request. EINVAL: out of range, the id listens or
 * connects already, or the service level has no service (see uroce_set_qos()).
 */
int uroce_cm_set_service(struct uroce_cm_id *id, uint8_t sl, uint8_t traffic_class);

/*
 * Binds a port for this process where other processes have its address too ([port] dev = uroced of a host with one address), for
 * connections or datagrams (RDMA_PS_TCP, RDMA_PS_UDP). *port 0: chooses one, and writes it there. Elsewhere it does
 * nothing, returns 0, and *port stays as it is. EADDRINUSE: another process has the port; ENOBUFS: this one has too many;
 * EADDRNOTAVAIL: no port is free; ENETDOWN: the daemon does not answer. uroce_cm_listen() binds its port itself.
 */
int uroce_cm_bind_port(struct ibv_context *ctx, bool datagrams, uint16_t *port);

/* Releases a port, as often as it was bound; then other processes can bind it. */
void uroce_cm_release_port(struct ibv_context *ctx, bool datagrams, uint16_t port);

/*
 * Listens for connections on a port of the RDMA_PS_TCP space. EADDRINUSE: another id listens on it
 * already. The application never sees a request whose path MTU is larger than this endpoint's (refused
 * with reason 26) or whose service level has no service here (reason 14).
 */
int uroce_cm_listen(struct uroce_cm_id *id, uint16_t port);

/* As uroce_cm_listen(), for SIDR requests, on a port of the RDMA_PS_UDP space. */
int uroce_cm_sidr_listen(struct uroce_cm_id *id, uint16_t port);

/* Stops listening; the id may be used again. EINVAL: it does not listen. */
int uroce_cm_unlisten(struct uroce_cm_id *id);

/*
 * Active end: resolves the peer's MAC address, moves `qp` from RESET to INIT if necessary, and sends
 * REQ. ESTABLISHED, REJECTED or UNREACHABLE follows. If `param` is NULL the configured values apply. On
 * failure the queue pair is unchanged. EHOSTUNREACH: the peer's address was not resolved. EINVAL: the
 * id is in use or in time-wait, or a parameter is out of range. EAFNOSUPPORT: neither IPv4 nor IPv6.
 * EADDRNOTAVAIL: this endpoint has no address of that family. EAGAIN: too many connections.
 */
int uroce_cm_connect(struct uroce_cm_id *id, const struct sockaddr *peer, struct ibv_qp *qp,
		     const struct uroce_conn_param *param);

/*
 * Passive end: moves `qp` from RESET or INIT to RTS and sends REP; ESTABLISHED follows when the
 * peer's RTU or first packet arrives. EINVAL: `id` is not that of a pending request, or the queue
 * pair's transport is not the peer's. ECONNABORTED: the peer gave up. EPROTONOSUPPORT: extended mode
 * is required, and the peer does not offer it or the private data leaves no room for the answer;
 * reject with reason 5. After any other error the id may still be rejected.
 */
int uroce_cm_accept(struct uroce_cm_id *id, struct ibv_qp *qp,
		    const struct uroce_conn_param *param);

/*
 * Refuses a request, or a RESPONSE. `reason` is an IBTA reject reason, usually 28 (consumer reject); `len` bytes of
 * private data, at most 148, go to the peer. EINVAL: not a pending request, or too much data.
 */
int uroce_cm_reject(struct uroce_cm_id *id, uint16_t reason, const void *private_data, uint8_t len);

/*
 * Sends DREQ and moves the queue pair to ERR, which flushes its work requests. DISCONNECTED follows
 * at both ends. A passive end may do so as soon as it has accepted; ESTABLISHED may still come before. ENOTCONN: an active end has not
 * fetched ESTABLISHED yet, or DISCONNECTED was fetched.
 */
int uroce_cm_disconnect(struct uroce_cm_id *id);

/*
 * Asks the peer for the number and Q_Key of the UD queue pair behind a port; SIDR_RESOLVED follows.
 * Errors are those of uroce_cm_connect().
 */
int uroce_cm_sidr_resolve(struct uroce_cm_id *id, const struct sockaddr *peer, uint16_t port,
			  const void *private_data, uint8_t len);

/*
 * Answers a SIDR_REQUEST with a UD queue pair and its Q_Key (status 0), or refuses it with an IBTA
 * SIDR status in [1, 255], `qp` NULL then. EINVAL: not such a request, or it was answered already.
 */
int uroce_cm_sidr_reply(struct uroce_cm_id *id, struct ibv_qp *qp, uint32_t qkey, int status);

/* The same without a queue pair of this library's, and with private data, at most 136 bytes. */
int uroce_cm_sidr_reply_qpn(struct uroce_cm_id *id, uint32_t qpn, uint32_t qkey, int status,
			    const void *private_data, uint8_t len);

/*
 * Connections of a queue pair that the application moves itself, with the attributes that
 * uroce_cm_init_qp_attr() gives. Its mode is that of a queue pair that is connected by uroce_modify_qp().
 *
 *   active:  connect_qpn ... RESPONSE, RTR, RTS, establish
 *   passive: CONNECT_REQUEST, RTR, RTS, accept_qpn ... ESTABLISHED
 *
 * Errors are those of uroce_cm_connect() and uroce_cm_accept().
 */
int uroce_cm_connect_qpn(struct uroce_cm_id *id, const struct sockaddr *peer,
			 const struct uroce_cm_qp *qp, const struct uroce_conn_param *param);

/* The passive end of it: answers a CONNECT_REQUEST with a queue pair that is in RTS already. */
int uroce_cm_accept_qpn(struct uroce_cm_id *id, const struct uroce_cm_qp *qp,
			const struct uroce_conn_param *param);

/*
 * Active end, after RESPONSE: sends RTU; no event follows. Passive end, after an accept: the peer's first
 * packet has arrived, so ESTABLISHED follows even if the RTU is lost. EINVAL: neither of the two.
 */
int uroce_cm_establish(struct uroce_cm_id *id);

/*
 * Fills in what uroce_modify_qp() needs to move a queue pair to attr->qp_state, which is INIT, RTR or RTS, and
 * the mask. RTR and RTS need a CONNECT_REQUEST or RESPONSE. EINVAL: another state, or too early.
 */
int uroce_cm_init_qp_attr(struct uroce_cm_id *id, struct ibv_qp_attr *attr, int *mask);

/* Text of an event's type, such as "established". Static. */
const char *uroce_cm_event_str(enum uroce_cm_event_type type);

/* Text of an IBTA reject reason. Static. */
const char *uroce_cm_reject_str(int reason);

#ifdef __cplusplus
}
#endif

#endif
