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
 * Thread class: any. One lock protects queues, ids and ports. It is held while liburoce destroys an id or hands out an
 * event, but not in calls that wait. A thread that has it cannot be cancelled.
 *
 * A child of fork() has none of the library's threads. Its calls fail with EIO; it may free what it has.
 */

#define UR_CM_DEVICES_MAX 32

/*
 * RDMA_CM_EVENT_USER of rdma-core 60: the program puts an event of its own into the id's channel, to wake a thread. Older
 * headers have neither. Returns 0, or -1 with errno: EINVAL for another event.
 */
#define UR_CM_EVENT_USER 18
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

/* A device that is open. Made once, never freed. */
struct ur_cm_device {
	struct ibv_context *verbs;
	struct uroce_event_channel *channel;
	struct ibv_pd *pd; /* for programs that give none */
};

struct ur_cm_event {
	struct rdma_cm_event ev;       /* first: the program's handle */
	struct ur_cm_id *owner;	       /* waits in destroy until the event is acknowledged */
	const struct ur_cm_join *join; /* RDMA_CM_EVENT_MULTICAST_JOIN: of this one */
	TAILQ_ENTRY(ur_cm_event) link;
	uint8_t data[256]; /* private data, and zeros to the end of the message's field */
};

TAILQ_HEAD(ur_cm_events, ur_cm_event);

/* It goes when the program has destroyed it and neither a thread nor an id uses it. */
struct ur_cm_channel {
	struct rdma_event_channel base; /* first: fd counts the queued events */
	struct ur_cm_events queue;
	unsigned waiters; /* they keep fd open, or it would soon be another file's */
	unsigned ids;
	bool closed;
	TAILQ_ENTRY(ur_cm_channel) kept; /* closed, and nothing uses it */
};

/* What liburoce listens on for all ids with this port on the device. */
struct ur_cm_port {
	LIST_ENTRY(ur_cm_port) link;
	struct ur_cm_device *dev;
	enum rdma_port_space ps;
	uint16_t number;
	unsigned refs;
	struct uroce_cm_id *cm;
};

enum ur_cm_state {
	UR_CM_IDLE,
	UR_CM_BOUND,
	UR_CM_RESOLVING,
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
	bool sync;	/* the program gave no channel: calls wait for their event */
	bool active;	/* connect, not accept */
	bool reuse;	/* RDMA_OPTION_ID_REUSEADDR */
	bool afonly;	/* RDMA_OPTION_ID_AFONLY */
	bool responded; /* CONNECTING: the peer has accepted, rdma_establish() is due */
	uint8_t tos, ack_timeout;
	uint16_t held_port;    /* bound by uroce_cm_bind_port(), host byte order; 0: none */
	uint32_t held_devices; /* on these, bit i: device i */
	struct ur_cm_device *dev;
	struct uroce_cm_id *cm;			     /* NULL until it is needed */
	struct ur_cm_port *ports[UR_CM_DEVICES_MAX]; /* those it listens on */
	unsigned backlog, pending;		     /* requests not yet fetched: at most, now */
	struct ur_cm_resolve *resolve;		     /* RESOLVING */
	unsigned got;				     /* events fetched and not acknowledged */
	LIST_HEAD(, ur_cm_join) joins;		     /* multicast groups; under the lock */
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

/* Takes the lock. Returns what ur_cm_leave() needs. */
int ur_cm_enter(void);
void ur_cm_leave(int cancel_state);
/* In a child of fork(): nobody holds the lock, whoever did in the parent. */
void ur_cm_renew_lock(void);
/* Waits until `id` has no event that is not acknowledged. Under the lock. */
void ur_cm_wait_acked(struct ur_cm_id *id);

/* Returns -1 with errno, as rdma_cm's calls do; 0 if rc is 0. */
int ur_cm_fail(int rc);

/* ---- device.c ---- */

/* Opens the devices, once. False with errno: there is none, or EIO in a child of fork(). */
bool ur_cm_open_devices(void);
bool ur_cm_is_child(void);
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

/* Queues an event and owns it from now on. Under the lock. */
void ur_cm_put(struct ur_cm_event *e);
/* Drops the events of an id that were not fetched. Under the lock. */
void ur_cm_purge(struct ur_cm_id *id);
/* Drops the event of a join, if it was not fetched. Under the lock. */
void ur_cm_purge_join(struct ur_cm_id *id, const struct ur_cm_join *join);
/* Counts an id that uses the channel, or no longer does. Under the lock. */
void ur_cm_use_channel(struct ur_cm_channel *ch, int by);
/* For a synchronous id: waits for the next event. -1 with errno: it says that the call has failed. */
int ur_cm_complete(struct ur_cm_id *id);
/* Whether an event waits to be fetched. Under the lock. */
bool ur_cm_has_event(const struct ur_cm_id *id);

/* ---- pump.c ---- */

/* Takes the events that liburoce has and queues them. */
void ur_cm_pump(void);
/* Starts the thread that does so while no thread of the program waits. */
int ur_cm_start_pump(void);
/* An event of the library itself, for ur_cm_put(); NULL: no memory. */
struct ur_cm_event *ur_cm_new_event(struct ur_cm_id *id, enum rdma_cm_event_type type, int status);
/* Queues an event of the library itself; without memory there is none. Under the lock. */
void ur_cm_raise(struct ur_cm_id *id, enum rdma_cm_event_type type, int status);

/* ---- event.c ---- */

/* Makes the program's event of one of liburoce's. NULL: there is nothing to report. Under the lock. */
struct ur_cm_event *ur_cm_translate(const struct uroce_cm_event *e);

/* ---- id.c ---- */

/* Under the lock. */
struct ur_cm_id *ur_cm_new_id(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps);
/* Ends what the id does; the program still has it. Under the lock. */
void ur_cm_abandon_id(struct ur_cm_id *id);
/* The same for all ids of a channel. */
void ur_cm_abandon_ids(const struct ur_cm_channel *ch);
/* Destroys an id. Under the lock. */
void ur_cm_drop_id(struct ur_cm_id *id);
void ur_cm_use_device(struct ur_cm_id *id, struct ur_cm_device *dev);
/* The first id for which `f` is true. Under the lock. */
struct ur_cm_id *ur_cm_find_id(bool (*f)(const struct ur_cm_id *id, const void *arg),
			       const void *arg);

/* ---- port.c ---- */

/* Binds to an address of a device, or without a device to `addr`, with the port of `addr`. */
int ur_cm_bind(struct ur_cm_id *id, const struct sockaddr *addr, struct ur_cm_device *dev,
	       int gid_index);
/* The listener for requests to an address. NULL: none. Under the lock. */
struct ur_cm_id *ur_cm_listener(const struct ur_cm_port *port, const struct sockaddr *local);
/* Gives up the port that the id has among processes. Under the lock. */
void ur_cm_unhold_port(struct ur_cm_id *id);
/* Stops listening. Under the lock. */
void ur_cm_release_ports(struct ur_cm_id *id);

/* ---- multicast.c ---- */

/* The id goes. Under the lock. */
void ur_cm_leave_groups(struct ur_cm_id *id);
/* The id's queue pair goes. */
void ur_cm_detach_groups(struct ur_cm_id *id);

/* ---- resolve.c ---- */

/* The id goes. Under the lock. */
void ur_cm_cancel_resolve(struct ur_cm_id *id);

#endif
