/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_CLIENT_H
#define UROCED_CLIENT_H

#include <sys/types.h>

#include "device.h"
#include "guard.h"
#include "lease.h"
#include "memif_msg.h"
#include "memory.h"
#include "ring.h"
#include "wire/rate.h"

/*
 * A port of the switch for clients, one after the other: a lease, and the memif connection of its process. Owns the descriptors
 * and the mapping. Thread class: the daemon's one thread.
 *
 * States: free; leased (lease.fd >= 0); connecting (memif.fd >= 0 too), for a while with a job (its memory is mapped); up. A port is free again when the switch has seen
 * that its link is down.
 */

/* What the daemon waits for on a descriptor; the first member of what belongs to it. */
enum watch_kind {
	WATCH_LEASES,
	WATCH_MEMIFS,
	WATCH_NEW_LEASE,
	WATCH_NEW_MEMIF,
	WATCH_LEASE,
	WATCH_MEMIF
};

struct watch {
	enum watch_kind kind;
	int fd; /* -1: none */
	void *of;
};

/* X(name, text): why frames of a client do not arrive, the guard's reasons aside */
#define CLIENT_COUNTERS(X)                                                                         \
	X(broken, "rings that contradicted themselves: the connection was ended")                  \
	X(too_long, "frames that were longer than the MTU permits")                                \
	X(no_room, "frames for the client that all of its buffers together cannot hold")           \
	X(wakes, "times that the client slept and was woken")                                      \
	X(rings, "direct rings to other clients")                                                  \
	X(region_waits, "regions that had to wait: their user makes too many at a time")

#define CLIENT_RINGS_MAX 16 /* direct rings of a client, UR_DIRECT_MAX */

struct client {
	struct device dev;
	struct rte_mempool *pool;
	const struct ur_clock *clock;
	struct rte_mbuf *spare;
	struct watch lease, memif;
	unsigned index; /* of its lease in the table */
	uid_t uid;
	pid_t pid;
	char program[UR_LEASE_PROGRAM_BYTES];
	struct guard guard;
	struct ur_link rate; /* of what it sends */
	struct region region;
	struct ring rx, tx;
	struct memory_job *job; /* maps the region; NULL: none */
	bool has_rx, has_tx, up, seen_down;
	bool waits;	   /* for room for its memory */
	int wake_fd;	   /* our end of the socket that wakes it; -1: none */
	int interrupt_fd;  /* the eventfd by which it wakes us; -1: none */
	bool interrupts;   /* it has written to that */
	uint64_t asked_ns; /* when that was looked at last */
	bool wake_due;	   /* frames may have been sent while it slept */
	uint64_t wake_ns;  /* when it was woken last */
	/* direct.h */
	bool direct;		    /* it knows direct rings, and may have some */
	uint64_t requested, joined; /* bit i: a ring to client i of the daemon */
	uint32_t parted
		[CLIENT_RINGS_MAX]; /* clients that have left, as direct.c names them, [0, parted_cnt): it is to be told */
	unsigned parted_cnt;
	uint64_t drops[GUARD_PASS]; /* of all clients of this port */
#define X(name, text) uint64_t name;
	CLIENT_COUNTERS(X)
#undef X
};

/* A free port. `gbps`: most that its clients send; 0: no limit. NULL: no memory. */
struct client *client_new(struct rte_mempool *pool, const struct ur_clock *clock,
			  uint32_t max_frame, double gbps, const char *name);

/* Which of the daemon's clients it is. */
static inline unsigned client_number(struct client *const *client, const struct client *c)
{
	unsigned i = 0;

	while (client[i] != c)
		i++;
	return i;
}

static inline bool client_is_free(const struct client *c)
{
	return c->lease.fd < 0 && c->seen_down;
}

/* Begins a lease: `fd` is its connection. */
struct client_addresses {
	uint8_t mac[6];
	uint32_t address; /* host byte order */
	uint8_t number;	  /* as lease_number() */
};
void client_begin(struct client *c, int fd, unsigned index, const struct client_addresses *a,
		  bool manage);
/*
 * UROCED-WAKE-01: makes the socket by which its process is woken, and returns the end that goes with the grant, for the caller
 * to close; -1: there is none. The client cannot make a write to our end wait: the end is not its own, and the write is told
 * not to. It cannot send us anything by it either.
 */
int client_make_wake(struct client *c);
/*
 * UROCED-WAKE-02: makes the eventfd by which it ends a doze of ours, and returns it; -1: there is none. It goes with the grant too. A
 * client that knows what it is for writes to it when it makes its ring; until it does, the ring is looked at as often as if it had
 * none. It is neither read nor written here.
 */
int client_make_interrupt(struct client *c);
/* From now on both poll. */
void client_drop_wakes(struct client *c);
/* Ends it, and the memif connection. */
void client_end(struct client *c);

/* A memif connection that has named this lease; takes `fd`. */
void client_attach(struct client *c, int fd);
/* Ends the memif connection. The lease stays. */
void client_detach(struct client *c);

/* UROCED-REGION-02: whether the next message is read now, and then whether with a descriptor, which is that of the region. */
enum client_wants { CLIENT_NOTHING, CLIENT_MESSAGE, CLIENT_REGION };
enum client_wants client_wants(struct client *c, uint64_t now_ns);

/*
 * A message of that connection, NULL: an invalid one, with a descriptor or -1, which it takes; a descriptor only if
 * CLIENT_REGION was wanted. NULL: answered, or it will be; else why the connection has to end.
 */
const char *client_message(struct client *c, const struct memif_msg *m, int fd, uint64_t now_ns);
/* Answers when the region is mapped. Result as before. */
const char *client_look(struct client *c);

#endif
