/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_SOCKET_H
#define UR_RSOCKET_SOCKET_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rdma/rsocket.h>

#include "rsocket/flow.h"

/*
 * Sockets over RDMA WRITEs with immediate data (docs/design/rsockets.md). They are a layer above verbs and rdma_cm, and use
 * only their public calls, and uroce_wait() to sleep.
 *
 * Thread class: any. A call holds a reference, so that rclose() of another thread does not free the socket under it. Locks are
 * taken in this order: send_lock or recv_lock, then the socket's lock, then the table's. No lock is held while a thread sleeps, except
 * send_lock and recv_lock, which only calls of the same direction want. A thread inside a call can be cancelled where it sleeps,
 * and nowhere else.
 *
 * Errors: public calls return -1 with errno, as those of sockets; functions here return errno values.
 */

#define UR_RS_CONTROLS	  4    /* control messages under way; they take no credit */
#define UR_RS_LOW_BYTES	  2048 /* room in the send buffer from which on a socket counts as writable */
#define UR_RS_PIECE_MAX	  65536 /* bytes of one WRITE */
#define UR_RS_COPY_LOCKED 1024	/* bytes that are copied without giving up the lock */
#define UR_RS_LINGER_MS	  10000 /* rclose() waits so long for a peer that takes nothing */

enum ur_rs_state {
	UR_RS_FRESH,
	UR_RS_BOUND,
	UR_RS_LISTENING,
	UR_RS_RESOLVING, /* the peer's address, then the route */
	UR_RS_CONNECTING,
	UR_RS_ACCEPTING, /* accepted, but the peer has not confirmed yet */
	UR_RS_CONNECTED,
	UR_RS_ENDED,  /* was connected */
	UR_RS_FAILED, /* could not connect; rconnect() may try again */
};

/* Values of rsetsockopt(). What raccept() returns has the listener's. */
struct ur_rs_options {
	uint32_t send_bytes, recv_bytes; /* buffers */
	uint32_t sq_depth, rq_depth;	 /* work requests */
	uint32_t inline_bytes;
	uint16_t maps; /* mappings of the peer's that this end can hold */
	bool reuse, v6only, keepalive, oobinline, nodelay;
	int keep_idle_s;
	struct linger linger;
	int send_ms, recv_ms; /* SO_SNDTIMEO, SO_RCVTIMEO; -1: none */
};

/* A buffer of this program that riomap() has registered. */
struct ur_rs_mapping {
	TAILQ_ENTRY(ur_rs_mapping) link;
	struct ibv_mr *mr;
	uint64_t offset;
	int index; /* in the peer's table of maps; -1: of no interest to the peer */
	bool sent; /* the peer's entry was written */
};

/* The queue pair of a connection and its buffers. All zero while there is none. */
struct ur_rs_link {
	struct ibv_comp_channel *comp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	/* The peer writes here, at any time: UR_RS_TARGETS targets, opt.maps maps, and 2 * rx.half bytes of data. */
	uint8_t *open;
	struct ibv_mr *open_mr;
	struct ur_rs_sge *targets;
	struct ur_rs_map *maps;
	uint8_t *recv_buf;
	/* A ring of opt.send_bytes bytes. In flight: `busy` bytes before head. */
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint32_t head, busy;
	/* Work requests that may be posted: of data, and of control messages. */
	uint32_t slots, controls;
	unsigned next_half; /* place behind the ring for the next entry of the peer's targets */
	uint32_t inline_bytes;
	int broken;	      /* why sending has failed; an errno value, or 0 */
	bool lost;	      /* some data was not acknowledged, and never will be */
	unsigned next_target; /* entry of `targets` that the peer writes next */
	uint32_t targets_due; /* entries whose messages have arrived, and that are not taken */
	/* The peer's tables. */
	bool peer_big;
	struct ur_rs_sge peer_targets, peer_maps; /* bytes: number of entries */
	unsigned next_peer_target;
	struct ur_rs_rx rx;
	struct ur_rs_tx tx;
};

struct ur_rs_udp;

struct ur_rs {
	int fd;	       /* the program's number; an eventfd that wakes threads that sleep */
	unsigned refs; /* under the table's lock */
	int domain, type;
	pthread_mutex_t send_lock, recv_lock;
	pthread_mutex_t lock; /* of all that follows */
	enum ur_rs_state state;
	bool shut_rd, shut_wr;
	bool eof;	      /* the peer sends no more */
	bool sent_disconnect; /* DISCONNECT was sent */
	bool closed;	      /* rclose() was called */
	bool reset_told;      /* a write has failed with ECONNRESET; from now on with EPIPE */
	int error;	      /* SO_ERROR: an errno value that was not reported yet; or 0 */
	int fd_flags;	      /* O_NONBLOCK */
	/* Threads that sleep, or are about to; those of them that wait for data, and for room. */
	unsigned sleepers, waiting_rx, waiting_tx;
	uint32_t wakes;	  /* times that they were woken */
	unsigned to_wake; /* of those that slept the last time, how many still do */
	bool woken;	  /* fd is readable */
	struct ur_rs_options opt;
	struct rdma_cm_id *id;
	struct rdma_event_channel *channel;
	struct rdma_cm_event *request; /* LISTENING: fetched, and not accepted */
	struct sockaddr_storage bound; /* by rbind(); no family: it was not called */
	struct ur_rs_udp *udp;	       /* SOCK_DGRAM, or NULL: then what follows has no meaning */
	struct ur_rs_link link;
	TAILQ_HEAD(, ur_rs_mapping) mappings;
	bool mappings_due; /* some are not sent */
};

/* What a thread has while it is inside of a call. */
struct ur_rs_call {
	struct ur_rs *rs;
	pthread_mutex_t *direction; /* send_lock or recv_lock if held */
	int cancel;		    /* cancel state outside */
	bool closing;		    /* it is rclose() itself */
	unsigned want;		    /* while it sleeps: for what, */
	uint32_t wakes;		    /* and since when */
};

/* ---- table.c ---- */

/* Makes a socket with default options, and a number for it. NULL with errno. */
struct ur_rs *ur_rs_new(int domain, int type);
/* Lets the program find it by its number. The table's reference is the one that ur_rs_new() returned. */
int ur_rs_publish(struct ur_rs *rs);
/* Takes it out of the table: later calls do not find it. The caller has the table's reference then. NULL with errno. */
struct ur_rs *ur_rs_withdraw(int fd);
/* In a child of fork(): closes the number of a socket of its parent's, which stays connected. False: not a child, or no socket. */
bool ur_rs_forget(int fd);
/* NULL: not a socket. */
struct ur_rs *ur_rs_hold(int fd);
/* Gives a reference back; the last one frees the socket. */
void ur_rs_release(struct ur_rs *rs);
/* Begins a call: finds the socket and takes its lock. False with errno: EBADF, or EIO in a child of fork(). */
bool ur_rs_enter(struct ur_rs_call *c, int fd);
/* Ends it, and returns -1 with errno `rc`, or 0. */
int ur_rs_leave(struct ur_rs_call *c, int rc);
/* The same for a call that returns a number. */
ssize_t ur_rs_leave_with(struct ur_rs_call *c, int rc, size_t done);
/*
 * Also takes send_lock or recv_lock until the call ends. EAGAIN: another thread has it, and the caller does not wait. The
 * socket's lock is held before and after, not meanwhile.
 */
int ur_rs_take_direction(struct ur_rs_call *c, pthread_mutex_t *direction, bool nonblock);
/* rdma_cm has the same, but no layer uses more of another one than its public calls. */
static inline int ur_rs_fail(int rc)
{
	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

/* n, or the nearest of its bounds. */
static inline uint32_t ur_rs_within(int64_t n, uint32_t least, uint32_t most)
{
	return n < least ? least : n > most ? most : (uint32_t)n;
}

/* ---- defaults.c ---- */

/* From the files of /etc/rdma/rsocket, read once. */
const struct ur_rs_options *ur_rs_defaults(void);
/* How long a call looks for progress before it sleeps, at most. */
uint64_t ur_rs_busy_ns(void);

/* ---- link.c; under the lock ---- */

/* Makes the queue pair of rs->id, its buffers, and posts receives. */
int ur_rs_open_link(struct ur_rs *rs);
void ur_rs_close_link(struct ur_rs *rs);
/* The parameters of rdma_connect() and rdma_accept(), with this end's offer in `offer`, UR_RS_OFFER_BYTES bytes, as private data. */
struct rdma_conn_param ur_rs_conn_param(const struct ur_rs *rs, uint8_t *offer);
void ur_rs_take_offer(struct ur_rs *rs, const struct ur_rs_offer *o);
int ur_rs_post_receives(struct ur_rs_link *l, uint32_t cnt);

/* ---- progress.c; under the lock ---- */

#define UR_RS_WANT_RX 1 /* data, requests, the end of the peer's data */
#define UR_RS_WANT_TX 2 /* room to send, the end of sends */

/*
 * Takes what has happened, without waiting: completions, and events of the connection. True: there may be more, so the caller must
 * not sleep. No event tells of completions that were there when the queue was armed.
 */
bool ur_rs_progress(struct ur_rs *rs, unsigned want);
/* Has a descriptor of the socket become readable when something happens. ur_rs_progress() must be called once more before sleeping. */
void ur_rs_arm(struct ur_rs *rs, unsigned want);
/* Wakes threads that sleep and wait for this. */
void ur_rs_wake(struct ur_rs *rs, unsigned what);
/* Around a sleep on ur_rs_fds(). What the first returns, the second needs. */
uint32_t ur_rs_begin_sleep(struct ur_rs *rs, unsigned want);
void ur_rs_end_sleep(struct ur_rs *rs, unsigned want, uint32_t wakes);
/* The connection is over; `why` is what calls report, or 0. */
void ur_rs_end(struct ur_rs *rs, int why);
/* Ends it once everything that has arrived is taken. An error of sending comes before `why`. */
void ur_rs_lose(struct ur_rs *rs, int why);
/* Whether no message with data is under way. */
static inline bool ur_rs_is_idle(const struct ur_rs *rs)
{
	return rs->link.slots == rs->opt.sq_depth - UR_RS_CONTROLS;
}

/* Whether data may arrive. */
bool ur_rs_is_up(const struct ur_rs *rs);

/* ---- wait.c; under the lock ---- */

typedef bool (*ur_rs_test)(const struct ur_rs *rs);

/*
 * Waits until `ready` is true, first busily, then asleep, without the lock. timeout_ms: -1 without limit. EAGAIN: it would have to
 * wait but may not, or the time is over; EINTR: a signal; EBADF: rclose() by another thread.
 */
int ur_rs_wait(struct ur_rs_call *c, unsigned want, ur_rs_test ready, bool nonblock,
	       int timeout_ms);
#define UR_RS_FDS_MAX 3
/* The descriptors to sleep on. Returns their number. */
unsigned ur_rs_fds(const struct ur_rs *rs, struct pollfd fds[UR_RS_FDS_MAX]);
/* The endpoint that has to make rounds for the socket; NULL: none yet, or none any more. Valid until the process ends. */
struct ibv_context *ur_rs_context(const struct ur_rs *rs);
/* Sleeps as in poll(), at the endpoint's port if there is one. Without a lock. Returns 0 or an errno value. */
int ur_rs_poll(struct ibv_context *ctx, struct pollfd *fds, nfds_t cnt, int timeout_ms);
/* Around a wait: how long the thread looks before it sleeps (EDGE-BUSY-01). */
struct ur_rs_busy {
	uint64_t from_ns, until_ns;
};
struct ur_rs_busy ur_rs_busy_begin(void);
void ur_rs_busy_end(const struct ur_rs_busy *b);
uint64_t ur_rs_now_ns(void);
/* The end of a time that begins now; 0: timeout_ms is negative, so there is none. */
uint64_t ur_rs_deadline_ns(int timeout_ms);
/* Milliseconds until then, rounded up; -1: for ever. */
int ur_rs_left_ms(uint64_t deadline_ns);

/* ---- connect.c; under the lock ---- */

/* Takes events of the connection manager. */
void ur_rs_drive(struct ur_rs *rs);
bool ur_rs_is_opening(const struct ur_rs *rs);
/* The opposite. */
bool ur_rs_is_decided(const struct ur_rs *rs);
/* The first data has come: the peer has confirmed, whatever happened to its message. */
void ur_rs_confirm(struct ur_rs *rs);
/* A channel with a descriptor that does not block. NULL with errno. */
struct rdma_event_channel *ur_rs_new_channel(void);
/* Waits until the socket is connected, if it is about to be. Otherwise ENOTCONN, or why it could not. */
int ur_rs_wait_connected(struct ur_rs_call *c, bool nonblock, int timeout_ms);
/* Takes the error that the program has not seen. */
int ur_rs_take_error(struct ur_rs *rs);

/* ---- listen.c; under the lock ---- */

/* Fetches a request, if there is one and none is kept. */
void ur_rs_fetch_request(struct ur_rs *rs);
/* Refuses a request, whose id it destroys. */
void ur_rs_refuse(struct rdma_cm_id *id);

/* ---- send.c; under the lock ---- */

struct ur_rs_iov;

/* Whether there is a work request and some room in the ring. */
bool ur_rs_has_room(const struct ur_rs *rs);
/* Whether a call that writes need not wait, if only to fail. */
bool ur_rs_may_write(const struct ur_rs *rs);
/*
 * Why nothing can be written, now or later; 0: it can. `tell`: the program gets it. Not so after a part was sent: the call returns
 * bytes then, and the next one the error.
 */
int ur_rs_write_error(struct ur_rs *rs, bool tell);
/*
 * Copies what the next WRITE is to carry to the ring's head: *piece bytes, at most `most`, and what has room. *step, first 0, has the
 * size of the one after. The caller has send_lock; the lock may be given up meanwhile. Not 0: it must not be sent any more.
 */
int ur_rs_copy_piece(struct ur_rs_call *c, struct ur_rs_iov *v, uint32_t most, uint32_t *step,
		     uint32_t *piece);

/* ---- recv.c; under the lock ---- */

/* Whether a call that reads need not wait, if only to fail. */
bool ur_rs_may_read(const struct ur_rs *rs);

/* ---- address.c ---- */

/* As much as *len has room for; *len becomes what there would be. */
void ur_rs_copy_address(struct sockaddr *to, socklen_t *len, const struct sockaddr *from);
/* Of an address of the socket's family. */
socklen_t ur_rs_address_bytes(const struct ur_rs *rs);
/* 0 if it is a whole address of the socket's family; EINVAL: it is too short; EAFNOSUPPORT. */
int ur_rs_check_address(const struct ur_rs *rs, const struct sockaddr *addr, socklen_t len);

/* ---- iomap.c ---- */

/* Tells the peer of mappings that it does not know. Under the lock and send_lock. */
int ur_rs_send_mappings(struct ur_rs_call *c, bool nonblock);
/* The socket goes. */
void ur_rs_drop_mappings(struct ur_rs *rs);

#endif
