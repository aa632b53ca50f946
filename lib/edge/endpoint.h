/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_ENDPOINT_H
#define UR_EDGE_ENDPOINT_H

#include <stddef.h>

#include "edge/impair.h"
#include "edge/neigh_attr.h"
#include "edge/source.h"
#include "edge/worker_counters.h"
#include "engine/verbs.h"
#include "wire/credit.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ur_capture_hook;
struct ur_neigh;

/*
 * A whole RoCEv2 endpoint for a program that has one thread, packets of its own kind and its own time: a
 * node of a network simulation. No DPDK, no clock, no system call while it runs. It consists of the same
 * parts as an endpoint of uroce_open() with one worker: engine, connection manager, neighbours (ARP, ND,
 * ping), impairment, capture.
 *
 *	ep = ur_endpoint_new(&attr, now_ns, err, sizeof(err));
 *	... objects, by engine/verbs.h on ur_endpoint_engine(ep) ...
 *	each time that a frame has arrived, something was posted, or the deadline has come:
 *		while (ur_endpoint_run(ep, now_ns))
 *			;
 *		at(ur_endpoint_next_deadline(ep), ...);
 *
 * docs/design/packet-source.md explains the packet source; docs/embedding.md the objects.
 * tests/unit/endpoint_test.c connects several by a wire in memory.
 *
 * Thread class: one thread at a time. Time is in nanoseconds and never goes back. Endpoints are
 * independent: a program may run thousands, on several threads. C++ programs can include
 * this header.
 */
struct ur_endpoint_attr {
	const struct ur_source_ops *ops; /* these two outlive the endpoint */
	void *source;
	uint32_t frame_bytes; /* room of an allocated buffer: at least 18 more than the MTU */
	/*
	 * Own addresses with their prefixes, MAC address, VLAN, gateways. Without an IP address
	 * nothing can be sent to the endpoint.
	 */
	struct ur_neigh_attr neigh;
	/*
	 * Start from ur_engine_attr_default(); connections need `limits.cm.max_ids`. `mem` is the
	 * caller's and outlives the endpoint. mtu_shift must leave room for UR_ROCE_OVERHEAD_BYTES (mtu.h).
	 */
	struct ur_engine_attr engine;
	struct ur_impair_config rx_impair, tx_impair; /* zeroed: a perfect network */
	struct ur_capture_hook *capture;	      /* or NULL; outlives the endpoint */
	double rate_gbps;			      /* limit of what it sends; 0: none */
	/* Link credits (docs/design/credits.md); `spare` is ignored. buffers 0: none. */
	struct ur_credit_attr credit;
	/*
	 * Each byte of a frame of up to 256 bytes is stored once in its buffer, and none is read. For buffers
	 * that another core reads, if it is far away.
	 */
	bool stage_tx;
};

struct ur_endpoint;

/*
 * Creates an endpoint, which announces its addresses with the first run. *attr is copied. NULL, with a
 * sentence in `err`: attributes do not fit one another, or memory is out.
 */
struct ur_endpoint *ur_endpoint_new(const struct ur_endpoint_attr *attr, uint64_t now_ns, char *err,
				    size_t cap);

/* Returns all buffers to the source. Objects of its engine must not be used afterwards. NULL is allowed. */
void ur_endpoint_free(struct ur_endpoint *ep);

/*
 * Runs one round: sends, receives, expires timers. Returns how many packets it moved; the caller repeats
 * it until that is 0.
 */
unsigned ur_endpoint_run(struct ur_endpoint *ep, uint64_t now_ns);

/*
 * The time at which it has something to do although nothing arrives and nothing is posted: at least the
 * time of the last run; UINT64_MAX: never. Valid after a run that returned 0. If the source took less than
 * it was offered, run the endpoint again when the source has room.
 */
uint64_t ur_endpoint_next_deadline(const struct ur_endpoint *ep);

/*
 * Resolves the path to `dst` for a queue pair or a connection: MAC addresses, source address, VLAN. The
 * caller sets UDP source port, DSCP and SL. 0; -EAGAIN: a query is on its way, run the endpoint and call
 * this again; -EHOSTUNREACH, -ENETUNREACH, -ENOBUFS: as ur_neigh_resolve().
 */
int ur_endpoint_resolve(struct ur_endpoint *ep, const struct ur_gid *dst, uint64_t now_ns,
			struct ur_path_attr *path);

struct ur_engine *ur_endpoint_engine(struct ur_endpoint *ep);
struct ur_neigh *ur_endpoint_neigh(struct ur_endpoint *ep);
const struct ur_worker_counters *ur_endpoint_counters(const struct ur_endpoint *ep);
/* NULL: there is none in that direction. */
const struct ur_impair *ur_endpoint_impair(const struct ur_endpoint *ep, bool tx);

#ifdef __cplusplus
}
#endif

#endif
