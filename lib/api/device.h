/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_DEVICE_H
#define UR_API_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include <bsd/sys/queue.h>

#include "api/context.h"
#include "api/dscp_map.h"
#include "api/mgmt.h"
#include "edge/nap.h"
#include "api/qos.h"
#include "api/qp_mode.h"
#include "edge/capture.h"
#include "dpdk/clock.h"
#include "edge/config.h"
#include "dpdk/direct.h"
#include "dpdk/eal.h"
#include "dpdk/lease.h"
#include "dpdk/mgmt.h"
#include "edge/neigh.h"
#include "dpdk/ingress_drop.h"
#include "dpdk/shared.h"
#include "edge/slab.h"
#include "dpdk/port.h"
#include "dpdk/wake.h"
#include "dpdk/worker.h"
#include "engine/verbs.h"
#include "uroce/cm.h"
#include "uroce/uroce.h"

/*
 * The objects behind uroce.h. Each contains the verbs struct that the application holds. Lock order: device, object, channel. Only the device's lock may be held while a worker is called.
 */

#define UR_GIDS_MAX UR_SHARED_ADDRS_MAX

#define X(NAME, word, sentence) +1
enum { UR_MODE_REASON_CNT = 0 UROCE_QP_MODE_REASONS(X) };
#undef X

struct ur_api_batch; /* lib/api/qp_ex.c */
struct ur_cm_api;    /* lib/api/cm_priv.h */
struct ur_api_cm_id; /* lib/api/cm_priv.h */

/* A device as rdma-core lays it out: its libraries for NICs compare `ops` with their own. */
struct ur_ibdev {
	struct ibv_device base;
	const void *ops;
};

struct ur_device {
	struct ur_context own; /* for the library's own calls of public functions; in no list */
	struct ur_ibdev ibdev;
	LIST_ENTRY(ur_device) link;
	struct ur_config cfg;
	struct ur_eal_port eal;
	struct ur_port port;
	struct ur_wake wake; /* of the port; threads that sleep there have copies */
	struct ur_mgmt mgmt; /* open if the configuration has an agent */
	struct ur_mgmt_link mgmt_link;
	struct ur_clock clock;
	struct ur_neigh *neigh;
	struct ur_mem *mem;
	struct ur_slab slab;		 /* memory of queue pairs and their rings */
	pthread_mutex_t gid_lock;	 /* gids, gid_cnt */
	struct ur_gid gids[UR_GIDS_MAX]; /* zero: a free entry */
	unsigned gid_cnt;
	bool may_fall_back; /* the driver was chosen automatically, and another one can be tried */
	char not_af_xdp[256];	  /* why the automatic choice of the driver was not af_xdp */
	struct ur_shared *shared; /* [port] dev, or NULL; see share.h */
	struct ur_ingress_drop
		drop; /* of the kernel's copies of packets to addresses of the endpoint's own */
	struct ur_lease *lease;	  /* of a port of uroced, or NULL; lease.h */
	uint64_t regain_until_ns; /* while it opens; 0: the lease has not been lost */
	struct ur_direct
		direct; /* its rings to other clients of uroced; the progress thread's and the worker's */
	bool leased; /* used by the progress thread only, as the next two: there is a lease now */
	unsigned down_looks;		  /* since when the link is down */
	uint64_t restart_ns;		  /* when the port may be connected again */
	struct ur_gid taken[UR_GIDS_MAX]; /* gids without gaps, for workers */
	unsigned taken_cnt;
	bool share_changed, port_up; /* used by the progress thread only */
	uint64_t share_next_ns;	     /* time of the next look at the kernel's changes */
	uint8_t mtu_shift;	     /* the largest PMTU is 1 << mtu_shift */
	_Atomic uint16_t served_sls; /* bit i: requests with SL i may be posted */
	struct ur_dscp_map_shared dscp_map;
	uint16_t worker_cnt;
	struct ur_worker *workers[UR_WORKERS_MAX];
	bool dedicated;
	unsigned number; /* number of this endpoint in the process, for names */

	pthread_t progress_thread; /* see progress.h */
	bool progress_runs;
	_Atomic bool progress_stop;
	struct ur_nap progress_nap; /* while the thread stands back */
	_Atomic bool led; /* a thread that waits in the library makes the rounds; wait.h */
	_Atomic unsigned followers; /* threads that wait beside it */
	int call_fd;		    /* an eventfd that wakes it */
	_Atomic uint32_t followed;  /* generation of the neighbour table that paths agree with */
	uint64_t follow_next_ns;    /* time of the next check of the generation */

	pthread_mutex_t lock; /* counts, references, the MR table, creation and destruction */
	struct uroce_objects objects;
	uint32_t last_pool; /* name of the SRQ created last, for peers */
	struct ur_qos qos;  /* the settings that every worker has */
	LIST_HEAD(, ur_api_ah) ahs;
	LIST_HEAD(, ur_membership) memberships; /* these three: mcast.c */
	unsigned membership_cnt, attachment_cnt;

	pthread_mutex_t async_lock;
	LIST_HEAD(, ur_context) contexts;

	_Atomic uint64_t mode_cnt[UR_MODE_REASON_CNT]; /* queue pairs that went to RTR, by reason */

	struct ur_capture_hook capture_hook;
	struct ur_cm_api *cm;
};

struct ur_api_td {
	struct ibv_td base;
	uint32_t refs; /* parent domains; under the device's lock */
};

/* A protection domain, or a parent domain: one more handle of a protection domain, with a thread domain or without. */
struct ur_api_pd {
	struct ibv_pd base;
	uint32_t
		refs; /* MRs, MWs, QPs, SRQs, CQs, AHs and parent domains; under the device's lock */
	struct ur_api_pd *protection; /* of a parent domain, else NULL */
	struct ur_api_td *td;	      /* of a parent domain, or NULL */
};

struct ur_api_channel {
	struct ibv_comp_channel base;
	pthread_mutex_t lock;
	TAILQ_HEAD(, ur_api_cq) events; /* CQs with events that have not been fetched */
	struct ur_waiters waiters;	/* under lock */
};

/* What a CQ has been used for. */
enum {
	UR_CQ_USE_SEND_AND_RECV = 1, /* as the send and the receive CQ of an RC queue pair */
	UR_CQ_USE_EVENTS = 2,	     /* events were asked for */
};

struct ur_api_cq {
	union {
		struct ibv_cq base;
		struct ibv_cq_ex ex; /* its common members are those of base */
	};
	_Alignas(64) struct ur_cq *cq;
	pthread_mutex_t lock; /* consumers */
	struct ur_worker *worker;
	bool thread_safe;	     /* consumers take the lock */
	void *ring;		     /* of the last resize, or NULL; under lock */
	struct ur_api_pd *parent;    /* domain that it was created in, or NULL */
	uint32_t refs;		     /* QPs */
	_Atomic unsigned uses;	     /* UR_CQ_USE_ */
	_Atomic bool cross_cqe_lost; /* a cross-worker CQE was lost: all later ones are dropped */
	uint32_t events_ready;	     /* under the channel's lock */
	uint32_t events_got;	     /* under the channel's lock */
	struct ur_api_async async;
	TAILQ_ENTRY(ur_api_cq) link;
	struct ibv_wc current; /* of polling by cq_ex.c; under lock */
};

struct ur_api_srq {
	struct ibv_srq base;
	struct ur_srq *srq;
	pthread_mutex_t lock; /* posters */
	bool thread_safe;     /* they take it */
	void *ring;
	uint32_t pool; /* its name for peers */
	uint32_t max_wr, max_sge;
	uint16_t worker; /* worker of its first QP; valid while refs > 0 */
	uint32_t refs;
	struct ur_api_async async;
};

struct ur_api_qp {
	pthread_mutex_t rq_lock;
	void *rings;
	size_t rings_bytes;
	struct ur_api_async async;
	size_t bytes;			       /* of this object */
	LIST_ENTRY(ur_api_qp) link;	       /* in the context's */
	LIST_HEAD(, ur_api_attachment) groups; /* under the device's lock; mcast.c */
	bool no_self_mcast; /* what it has sent to a group of its own is not delivered to it */
	struct ur_api_batch *batch;   /* of ibv_wr_start(), or NULL; see qp_ex.c */
	struct ibv_qp_init_attr init; /* as granted */
	struct ur_api_cm_id *cm_id;   /* connection that moves it, or NULL; for cm.c only */
	struct ur_mode_want want;     /* under base.mutex */
	uint8_t timeout;	      /* local ACK timeout that the application asked for */
	_Atomic enum uroce_qp_mode_reason reason;
	/* The cache line that posting needs, besides the first one of base; the engine prefetches both. */
	_Alignas(64) struct ur_qp *qp;
	struct ur_worker *worker;
	pthread_mutex_t sq_lock;
	_Atomic uint8_t sl; /* SL of the address vector; with UD each request has its own */
	bool thread_safe;   /* posters take sq_lock and rq_lock */
	/* Last: most queue pairs end here, and those with a batch go on (ibv_qp_ex). */
	_Alignas(64) struct ibv_qp base;
};

struct ur_api_ah {
	union {
		struct ibv_ah base;
		struct ur_ah ah; /* it begins with the verbs struct, and queues point to it */
	};
	struct ibv_ah_attr attr;
	LIST_ENTRY(ur_api_ah) link; /* in the device's; under its lock */
};

struct ur_api_mw {
	struct ibv_mw base;
	LIST_ENTRY(ur_api_mw) link; /* in the context's */
};

struct ur_api_mr {
	struct ibv_mr base;
	LIST_ENTRY(ur_api_mr) link; /* in the context's */
	uint64_t iova;
	int access;
};

/*
 * TD-LOCK-01. The locks of post and poll. An object that is used by one thread at a time has none: by configuration, by its
 * thread domain, or by a flag of its CQ. It is decided when the object is created.
 */
static inline bool ur_api_is_thread_safe(const struct ur_device *dev, const struct ur_api_pd *pd)
{
	return dev->cfg.worker.thread_safe && !(pd && pd->td);
}

static inline void ur_api_lock(bool thread_safe, pthread_mutex_t *lock)
{
	if (thread_safe)
		pthread_mutex_lock(lock);
}

static inline void ur_api_unlock(bool thread_safe, pthread_mutex_t *lock)
{
	if (thread_safe)
		pthread_mutex_unlock(lock);
}

/* QOS-SL-01: true if the SL, in [0, 15], has a lane. */
static inline bool ur_device_serves(const struct ur_device *dev, unsigned sl)
{
	return atomic_load_explicit(&dev->served_sls, memory_order_relaxed) >> sl & 1;
}

/* The object of a verbs struct; of NULL it is NULL for all but queue pairs. */
#define UR_API(type, ptr)                                                                          \
	((struct ur_api_##type *)((uintptr_t)(ptr)-offsetof(struct ur_api_##type, base)))

/* Inline mode: runs one round of every worker. Dedicated mode: nothing. Returns the packets moved. */
unsigned ur_device_progress(struct ur_device *dev);

/* See ur_worker_close_burst() and ur_worker_stop_gathering(); of all workers. */
void ur_device_close_bursts(struct ur_device *dev);
void ur_device_stop_gathering(struct ur_device *dev);

/* Unless it runs: the endpoint's time does not go back. DPDK has been started. Thread class: the thread that opens the device. */
void ur_device_start_clock(struct ur_device *dev);

/* After this no thread of the endpoint uses the port. */
void ur_device_stop_threads(struct ur_device *dev);

/* Waits until every worker has passed a quiescent point. */
void ur_device_quiesce(struct ur_device *dev);

/* Entry `index` of the GID table; zero if it is free or does not exist. */
struct ur_gid ur_device_gid(struct ur_device *dev, unsigned index);
/* The index of the GID in the table; -1: none. */
int ur_device_gid_index(struct ur_device *dev, const struct ur_gid *gid);
/* The index of the first GID of a family; -1: none. */
int ur_device_family_gid(struct ur_device *dev, bool ipv4);

/* CM-GUID-01: the GUID of node, image and CM: the EUI-64 of the MAC address, as in RoCE drivers. */
uint64_t ur_device_guid(const struct ur_device *dev);

/*
 * Resolves an address vector to a path. Returns 0, EINVAL (also for an SL without a lane), or
 * EHOSTUNREACH if the MAC address cannot be found. Unless `dmac` is given, it waits for neighbour
 * resolution and, in inline mode, runs the workers meanwhile.
 */
int ur_device_resolve(struct ur_device *dev, const struct ibv_ah_attr *attr, const uint8_t *dmac,
		      struct ur_qpn lqpn, struct ur_qpn rqpn, struct ur_path_attr *path);

/*
 * uroce_modify_qp() for a queue pair whose mode was negotiated with the peer: at RTR, `verdict`
 * replaces the mode of a queue pair connected without the CM, and `dmac` is the destination. NULL:
 * like uroce_modify_qp().
 */
int ur_api_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     const struct ur_mode_verdict *verdict, const uint8_t *dmac);
/* The mode wanted for the queue pair (qp_mode.c). */
struct ur_mode_want ur_api_qp_want(struct ur_api_qp *qp);
/* Records and counts the reason for the queue pair's mode, or for refusing a required mode. */
void ur_api_record_qp_mode(struct ur_api_qp *qp, enum uroce_qp_mode_reason reason);

/* The engine's sink (async.c). */
struct ur_sink ur_device_sink(struct ur_device *dev);
/*
 * Drops the events of an object that is being destroyed. Returns the number of events that the
 * application has fetched.
 */
uint32_t ur_async_purge(struct ibv_context *ctx, struct ur_api_async *a);
/*
 * Raises an event outside an engine, of the verbs struct `object` or of the port (NULL). An event that
 * is raised again before it is fetched counts once. Thread class: any.
 */
void ur_async_raise(struct ur_device *dev, enum ibv_event_type type, void *object);
/* Removes the completions of a queue pair in RESET that have not been polled. */
void ur_api_cq_forget(struct ur_api_cq *cq, struct ur_qpn qpn);
/* Called when an armed CQ gets a completion: wakes the threads that wait on its channel. */
void ur_api_cq_notify(struct ur_api_cq *cq);
/* The CQ gets another use. Once it has both, EDGE-ACK-04 holds for its worker, until the endpoint is closed. Thread class: any. */
void ur_api_cq_note_use(struct ur_api_cq *cq, unsigned use);
/* Telemetry (stats.c). */
void ur_stats_register(struct ur_device *dev);
void ur_stats_unregister(struct ur_device *dev);

/* lib/api/cm.c: the device's part of the connection manager, with the attributes for worker 0's engine. */
/*
 * Limits of requests that wait for the application or, after it has accepted, for the peer:
 * connections, SIDR exchanges, and both from one address.
 */
#define UR_CM_API_PENDING  4096
#define UR_CM_API_SIDR	   1024
#define UR_CM_API_PER_PEER 1024

int ur_cm_api_new(struct ur_device *dev);
struct ur_cm_attr ur_cm_api_attr(struct ur_device *dev);
void ur_cm_api_free(struct ur_device *dev);
/* Called before a QP is destroyed: its connection, if any, must not use it any more. */
void ur_cm_api_qp_gone(struct ur_device *dev, struct ibv_qp *qp);
/* True if the QP is being connected, so that its mode is agreed with the peer already. */
bool ur_cm_api_connecting(struct ur_device *dev, struct ibv_qp *qp);

#endif
