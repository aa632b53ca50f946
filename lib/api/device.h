/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_DEVICE_H
#define UR_API_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <bsd/sys/queue.h>

#include "api/dscp_map.h"
#include "api/qos.h"
#include "api/qp_mode.h"
#include "edge/capture.h"
#include "edge/clock.h"
#include "edge/config.h"
#include "edge/eal.h"
#include "edge/neigh.h"
#include "edge/shared.h"
#include "edge/slab.h"
#include "edge/port.h"
#include "edge/worker.h"
#include "engine/verbs.h"
#include "uroce/cm.h"
#include "uroce/uroce.h"

/*
 * What stands behind the objects of uroce.h. Each begins with the verbs struct that the application
 * holds. Lock order: device -> object -> channel; no lock is held while a worker is called, except
 * the device's.
 */

#define UR_GIDS_MAX UR_SHARED_ADDRS_MAX

#define X(NAME, word, sentence) +1
enum { UR_MODE_REASON_CNT = 0 UROCE_QP_MODE_REASONS(X) };
#undef X

struct ur_cm_api;    /* lib/api/cm_priv.h */
struct ur_api_cm_id; /* lib/api/cm_priv.h */

/* Asynchronous events of a CQ, an SRQ or a queue pair; under the device's async_lock. */
struct ur_api_async {
	TAILQ_ENTRY(ur_api_async) link; /* in the device's, while something is pending */
	void *object;
	uint32_t pending; /* bit i: the event of type i has happened and was not fetched since */
	uint32_t got;	  /* events that the application was given */
};

/* Events of the port; each happens to an object of its own, so that they keep their order. */
enum { UR_PORT_EVENT_ERR, UR_PORT_EVENT_ACTIVE, UR_PORT_EVENT_GID, UR_PORT_EVENT_CNT };

struct ur_device {
	struct ibv_context ctx; /* first: the application's handle */
	struct ibv_device ibdev;
	LIST_ENTRY(ur_device) link;
	struct ur_config cfg;
	struct ur_eal_port eal;
	struct ur_port port;
	struct ur_clock clock;
	struct ur_neigh *neigh;
	struct ur_mem *mem;
	struct ur_slab slab;		 /* of queue pairs and their rings */
	pthread_mutex_t gid_lock;	 /* gids, gid_cnt */
	struct ur_gid gids[UR_GIDS_MAX]; /* zero: an entry that is free */
	unsigned gid_cnt;
	bool may_fall_back;		  /* the driver was chosen, and another one can be */
	char not_af_xdp[256];		  /* why the driver is not af_xdp, when it was chosen */
	struct ur_shared *shared;	  /* [port] dev, or NULL; see share.h */
	struct ur_gid taken[UR_GIDS_MAX]; /* gids without gaps, for workers */
	unsigned taken_cnt;
	bool share_changed, port_up; /* the progress thread's */
	uint64_t share_next_ns;	     /* no look at the kernel before */
	uint8_t mtu_shift;	     /* the largest PMTU is 1 << mtu_shift */
	_Atomic uint16_t served_sls; /* bit i: what has SL i may be posted */
	struct ur_dscp_map_shared dscp_map;
	uint16_t worker_cnt;
	struct ur_worker *workers[UR_WORKERS_MAX];
	bool dedicated;
	unsigned number; /* of this endpoint in the process, for names */

	pthread_t progress_thread; /* see progress.h */
	bool progress_runs;
	_Atomic bool progress_stop;
	_Atomic uint32_t followed; /* generation of the neighbours that paths were made of */
	uint64_t follow_next_ns;   /* no look at them before */

	pthread_mutex_t lock; /* counts, references, the MR table, creation and destruction */
	struct uroce_objects objects;
	uint32_t last_pool; /* name of the SRQ created last, for peers */
	struct ur_qos qos;  /* as every worker has it */
	LIST_HEAD(, ur_api_ah) ahs;

	pthread_mutex_t async_lock;
	TAILQ_HEAD(, ur_api_async) asyncs; /* objects with asynchronous events, oldest first */
	struct ur_api_async port_events[UR_PORT_EVENT_CNT];

	_Atomic uint64_t mode_cnt[UR_MODE_REASON_CNT]; /* queue pairs that went to RTR, by reason */

	struct ur_capture_hook capture_hook;
	struct ur_cm_api *cm;
};

struct ur_api_pd {
	struct ibv_pd base;
	uint32_t refs; /* MRs, QPs, SRQs and AHs; under the device's lock */
};

/* Threads that wait for an object which may be destroyed meanwhile; the object's lock guards it. */
struct ur_waiters {
	unsigned cnt;
	_Atomic bool closing; /* they are to leave, and none may come */
	pthread_cond_t left;
};

struct ur_api_channel {
	struct ibv_comp_channel base;
	pthread_mutex_t lock;
	TAILQ_HEAD(, ur_api_cq) events; /* CQs with events nobody has got yet */
	struct ur_waiters waiters;	/* under lock */
};

struct ur_api_cq {
	struct ibv_cq base;
	struct ur_cq *cq;
	pthread_mutex_t lock; /* consumers */
	struct ur_worker *worker;
	uint32_t refs;		     /* QPs */
	_Atomic bool cross_cqe_lost; /* one of another worker was lost: in error for all of those */
	uint32_t events_ready;	     /* under the channel's lock */
	uint32_t events_got;	     /* under the channel's lock */
	struct ur_api_async async;
	TAILQ_ENTRY(ur_api_cq) link;
};

struct ur_api_srq {
	struct ibv_srq base;
	struct ur_srq *srq;
	pthread_mutex_t lock; /* posters */
	void *ring;
	uint32_t pool; /* the name by which peers know it */
	uint32_t max_wr, max_sge;
	uint16_t worker; /* its first QP's; valid while refs > 0 */
	uint32_t refs;
	struct ur_api_async async;
};

struct ur_api_qp {
	struct ibv_qp base;
	/* Posting needs these and the first line of base. */
	struct ur_qp *qp;
	struct ur_worker *worker;
	_Atomic uint8_t sl; /* of the address vector; UD: each request has its own */
	pthread_mutex_t sq_lock, rq_lock;
	void *rings;
	size_t rings_bytes;
	struct ur_api_async async;
	struct ibv_qp_init_attr init; /* as granted */
	struct ur_api_cm_id *cm_id;   /* that moves it, or NULL; cm.c's */
	struct ur_mode_want want;     /* under base.mutex */
	_Atomic enum uroce_qp_mode_reason reason;
};

struct ur_api_ah {
	struct ur_ah ah; /* first: it begins with the verbs struct, and queues point to it */
	struct ibv_ah_attr attr;
	LIST_ENTRY(ur_api_ah) link; /* in the device's; under its lock */
};

struct ur_api_mr {
	struct ibv_mr base;
	uint64_t iova;
	int access;
};

static inline struct ur_device *ur_device(struct ibv_context *ctx)
{
	return (struct ur_device *)ctx;
}

/* The locks of post and poll, which single-threaded applications may do without. */
static inline void ur_api_lock(const struct ibv_context *ctx, pthread_mutex_t *lock)
{
	if (((const struct ur_device *)ctx)->cfg.worker.thread_safe)
		pthread_mutex_lock(lock);
}

static inline void ur_api_unlock(const struct ibv_context *ctx, pthread_mutex_t *lock)
{
	if (((const struct ur_device *)ctx)->cfg.worker.thread_safe)
		pthread_mutex_unlock(lock);
}

/* QOS-SL-01: an SL in [0, 15] has a lane. */
static inline bool ur_device_serves(const struct ur_device *dev, unsigned sl)
{
	return atomic_load_explicit(&dev->served_sls, memory_order_relaxed) >> sl & 1;
}

#define UR_API(type, ptr) ((struct ur_api_##type *)(ptr))

/* Inline mode: one round of every worker. Dedicated: nothing. Returns packets moved. */
unsigned ur_device_progress(struct ur_device *dev);

/*
 * A moment of a loop that waits for something: does the endpoint's work in inline mode, and sleeps
 * a little when there was none for a while. *idle counts, from 0. False when a signal interrupted.
 */
bool ur_device_wait_a_bit(struct ur_device *dev, unsigned *idle);

/* Takes `cnt` counts off an eventfd of the semaphore kind, as far as there are any; never blocks.
 */
unsigned ur_device_take_counts(int fd, unsigned cnt);

/*
 * Waits for a count of such an eventfd and takes it, doing the endpoint's work in inline mode. As
 * read(): -1 with errno EINTR, or EAGAIN when the descriptor is O_NONBLOCK and there is none.
 */
int ur_device_wait_count(struct ur_device *dev, int fd);

/*
 * Whoever waits on `fd`, an eventfd of the semaphore kind, is among the waiters from enter (false:
 * the object is being destroyed) to leave. close wakes all of them and returns when they have left;
 * each looks at `closing` when it wakes.
 */
bool ur_device_waiter_enter(struct ur_waiters *w, pthread_mutex_t *lock);
/* Returns `closing`. */
bool ur_device_waiter_leave(struct ur_waiters *w, pthread_mutex_t *lock);
void ur_device_waiters_close(struct ur_waiters *w, pthread_mutex_t *lock, int fd);

/* Waits until the application has acknowledged the `got` events that it was given. */
void ur_device_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked,
			 uint32_t got);

/* Returns when every worker has been between two rounds. */
void ur_device_quiesce(struct ur_device *dev);

/* Entry `index` of the GID table; zero when it is free or there is none. */
struct ur_gid ur_device_gid(struct ur_device *dev, unsigned index);
/* The entry that has the GID; -1: none. */
int ur_device_gid_index(struct ur_device *dev, const struct ur_gid *gid);

/* 64 random bits. */
uint64_t ur_device_random(void);
/* CM-GUID-01: EUI-64 of the MAC address, as drivers of RoCE devices make it: the GUID of node,
 * image and CM. */
uint64_t ur_device_guid(const struct ur_device *dev);

/* Adds to one of the counts of live objects. */
void ur_device_count(struct ur_device *dev, uint32_t *count, int by);

/*
 * What an address vector comes to: 0, EINVAL (also for an SL without service), or EHOSTUNREACH when
 * the MAC address could not be found. Waits for neighbour resolution, in inline mode doing the
 * endpoint's work, unless `dmac` is given.
 */
int ur_device_resolve(struct ur_device *dev, const struct ibv_ah_attr *attr, const uint8_t *dmac,
		      struct ur_qpn lqpn, struct ur_qpn rqpn, struct ur_path_attr *path);

/*
 * uroce_modify_qp(), but for whoever has agreed with the peer on the mode: `verdict` counts instead
 * of what a queue pair connected by hand gets at RTR, and `dmac` is where it sends. NULL: as
 * uroce_modify_qp().
 */
int ur_api_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     const struct ur_mode_verdict *verdict, const uint8_t *dmac);
/* What the queue pair wants to be (qp_mode.c). */
struct ur_mode_want ur_api_qp_want(struct ur_api_qp *qp);
/* Keeps, and counts, why the queue pair's mode is what it is, or cannot be what was demanded. */
void ur_api_qp_mode_note(struct ur_api_qp *qp, enum uroce_qp_mode_reason reason);

/* The engine's sink (async.c). */
struct ur_sink ur_device_sink(struct ur_device *dev);
/* Forgets events of an object that is being destroyed. Returns how many the application was given. */
uint32_t ur_async_purge(struct ur_device *dev, struct ur_api_async *a);
/*
 * Raises an event from outside of an engine. Any thread. One that happens again before it was
 * fetched is one.
 */
void ur_async_raise(struct ur_device *dev, enum ibv_event_type type, void *object);
/* An armed CQ got a completion: wakes whoever sleeps on its channel. */
void ur_api_cq_notify(struct ur_api_cq *cq);
/* Telemetry (stats.c). */
void ur_stats_register(struct ur_device *dev);
void ur_stats_unregister(struct ur_device *dev);

/* lib/api/cm.c: the connection manager's half of the device. Its attr goes to worker 0's engine. */
/*
 * Requests that wait for the application, or for the peer after it accepted: connections, SIDR
 * exchanges, and both from one address.
 */
#define UR_CM_API_PENDING  4096
#define UR_CM_API_SIDR	   1024
#define UR_CM_API_PER_PEER 1024

int ur_cm_api_new(struct ur_device *dev);
struct ur_cm_attr ur_cm_api_attr(struct ur_device *dev);
void ur_cm_api_free(struct ur_device *dev);
/* A QP is being destroyed: its connection, if it has one, must not touch it any more. */
void ur_cm_api_qp_gone(struct ur_device *dev, struct ibv_qp *qp);
/* Whether a connection is being made with the QP: its mode has been told the peer. */
bool ur_cm_api_connecting(struct ur_device *dev, struct ibv_qp *qp);

#endif
