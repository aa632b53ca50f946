/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RDMACM_CM_H
#define UR_RDMACM_CM_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <rdma/rdma_cma.h>

#include "uroce/cm.h"

/*
 * librdmacm over liburoce's connections (uroce/cm.h). It has no protocol of its own: it keeps addresses and ports, chooses
 * the device, and puts liburoce's events into the queues of the program's channels.
 *
 * liburoce has one event channel for each device, whatever channels the program has: so an id may move from one channel to
 * another. A thread of the library takes events from there; a thread that waits for one looks itself first.
 *
 * Thread class: any. ur_cm_lock protects queues, ids and ports. It is held while liburoce destroys an id or hands out an
 * event, but not in calls that wait.
 */

#define UR_CM_DEVICES_MAX 32

/* A device that is open. Made once, never freed. */
struct ur_cm_device {
	struct ibv_context *verbs;
	struct uroce_event_channel *channel;
	struct ibv_pd *pd; /* for programs that give none */
};

struct ur_cm_event {
	struct rdma_cm_event ev; /* first: the program's handle */
	struct ur_cm_id *owner;	 /* waits in destroy until the event is acknowledged */
	TAILQ_ENTRY(ur_cm_event) link;
	uint8_t data[256]; /* private data, and zeros to the end of the message's field */
};

struct ur_cm_channel {
	struct rdma_event_channel base; /* first: fd counts the queued events */
	TAILQ_HEAD(, ur_cm_event) queue;
	unsigned waiters;
	bool closed; /* the last waiter frees it */
};

enum ur_cm_state {
	UR_CM_IDLE,
	UR_CM_BOUND,
	UR_CM_ADDR_RESOLVED,
	UR_CM_ROUTE_RESOLVED,
	UR_CM_LISTENING,
	UR_CM_REQUESTED, /* by a peer; accept or reject */
	UR_CM_CONNECTING,
	UR_CM_CONNECTED,
	UR_CM_ENDED,
};

struct ur_cm_id {
	struct rdma_cm_id id; /* first: the program's handle */
	LIST_ENTRY(ur_cm_id) link;
	enum ur_cm_state state;
	bool sync;   /* the program gave no channel: calls wait for their event */
	bool active; /* connect, not accept */
	bool reuse;  /* RDMA_OPTION_ID_REUSEADDR */
	uint8_t tos, ack_timeout;
	struct ur_cm_device *dev;
	struct uroce_cm_id *cm;				  /* NULL until it is needed */
	struct uroce_cm_id *listeners[UR_CM_DEVICES_MAX]; /* one for each device it listens on */
	unsigned got;					  /* events fetched and not acknowledged */
	struct ibv_sa_path_rec path;
	bool own_send_cq, own_recv_cq; /* made by rdma_create_qp() */
	bool own_srq_cq;	       /* made by rdma_create_srq() */
	struct ibv_qp_init_attr init;  /* of queue pairs of an endpoint's requests */
	bool has_init;
};

static inline struct ur_cm_id *ur_cm_id(struct rdma_cm_id *id)
{
	return (struct ur_cm_id *)id;
}

static inline struct ur_cm_channel *ur_cm_channel(struct rdma_event_channel *channel)
{
	return (struct ur_cm_channel *)channel;
}

extern pthread_mutex_t ur_cm_lock;

/* Returns -1 with errno, as rdma_cm's calls do; 0 if rc is 0. */
int ur_cm_fail(int rc);

/* ---- device.c ---- */

/* Opens the devices, once. False with errno: there is none. */
bool ur_cm_open_devices(void);
struct ur_cm_device *ur_cm_devices(unsigned *cnt);
/* The device that has the address, an IP address without its port; NULL: none. */
struct ur_cm_device *ur_cm_device_of(const struct sockaddr *addr, int *gid_index);
/* The device and its address from which the peer is reached best, that with the longest common prefix; NULL: none. */
struct ur_cm_device *ur_cm_device_towards(const struct sockaddr *peer, int *gid_index);
/* The IP address of an entry of the GID table, port 0. */
void ur_cm_address(struct ur_cm_device *dev, int gid_index, struct sockaddr_storage *to);
union ibv_gid ur_cm_gid(const struct sockaddr *addr);
bool ur_cm_is_any(const struct sockaddr *addr);
bool ur_cm_is_loopback(const struct sockaddr *addr);
static inline __be16 *ur_cm_port(struct sockaddr *addr)
{
	/* The offset is the same in both families. */
	return &((struct sockaddr_in *)addr)->sin_port;
}

/* ---- channel.c ---- */

/* Takes the events that liburoce has and queues them. */
void ur_cm_pump(void);
/* Starts the thread that does so while nobody waits. */
int ur_cm_start_pump(void);
/* Queues an event of the library itself. */
int ur_cm_raise(struct ur_cm_id *id, enum rdma_cm_event_type type, int status);
/* Drops the events of an id that were not fetched. Under the lock. */
void ur_cm_purge(struct ur_cm_id *id);
/* For a synchronous id: waits for the next event. -1 with errno: it says that the call has failed. */
int ur_cm_complete(struct ur_cm_id *id);

/* ---- event.c ---- */

/* Makes the program's event of one of liburoce's. NULL: there is nothing to report. Under the lock. */
struct ur_cm_event *ur_cm_translate(const struct uroce_cm_event *e);

/* ---- id.c ---- */

struct ur_cm_id *ur_cm_new_id(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps);
/* Destroys an id that the program has not seen. Under the lock. */
void ur_cm_drop_id(struct ur_cm_id *id);
void ur_cm_use_device(struct ur_cm_id *id, struct ur_cm_device *dev);

#endif
