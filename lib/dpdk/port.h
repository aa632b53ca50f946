/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_PORT_H
#define UR_DPDK_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "dpdk/counters.h"
#include "dpdk/evict.h"
#include "edge/tsan.h"

/*
 * A port: a DPDK ethdev with as many RX/TX queue pairs as there are workers, and one
 * mempool for each pair. Queue i and pool i belong to worker i; nothing on the data path is shared.
 *
 * Thread class: open, close and queries: one control thread. rx and tx bursts: the worker
 * that owns the queue.
 */

#define UR_PORT_QUEUES_MAX 32

/* Zero in a field: ur_port_open() chooses. */
struct ur_port_attr {
	uint16_t queue_cnt;	   /* queue pairs wanted; 0 is 1 */
	uint16_t rx_desc, tx_desc; /* descriptors a ring; fitted to what the device can do */
	uint16_t mtu;		   /* bytes of IP packet that must fit; 0: what the link has */
	uint32_t mbuf_room_bytes;  /* frame bytes an mbuf must hold; 0: one frame */
	uint32_t mbuf_cnt;	   /* mbufs of a pool; 0: what the rings need */
	uint32_t mbuf_extra_cnt; /* added to the chosen count: mbufs held by others (impairment) */
	bool promiscuous;
	struct ur_evict evict; /* decided by the caller */
	bool has_mac; /* set this address instead of the device's own; tap: beside the kernel's */
	uint8_t mac[6];
};

struct ur_port {
	uint16_t id;
	uint16_t queue_cnt;	   /* granted: may be less than wanted, at least 1 */
	uint16_t rx_desc, tx_desc; /* granted */
	uint16_t mtu;		   /* IP bytes that pass in one frame */
	uint16_t max_frame_bytes;  /* Ethernet header and one tag included, FCS not */
	uint16_t max_payload;	   /* largest PMTU that fits: 256..4096, 0 when not even 256 does */
	uint32_t mbuf_room_bytes;  /* frame bytes one mbuf holds */
	uint32_t mbuf_cnt;	   /* of each pool */
	bool multi_seg_tx;	   /* chained mbufs may be sent */
	bool copies_tx;		   /* a TX burst copies what it takes before it returns */
	bool tx_is_syscall;	   /* a TX burst is a system call */
	struct ur_evict evict; /* whether workers evict received frames from the cache, and why */
	bool rss;	       /* the device spreads flows over the queues */
	bool open;
	unsigned xdp_ifindex; /* of an af_xdp port, else 0 */
	uint8_t mac[6];
	char name[RTE_ETH_NAME_MAX_LEN]; /* of the ethdev */
	char driver[32];		 /* "net_af_packet" */
	char ifname[32];		 /* kernel interface behind it, "" when there is none */
	struct rte_mempool *pool[UR_PORT_QUEUES_MAX];
};

/*
 * Configures and starts ethdev `id`. Returns 0, or a negative errno with one sentence in `err` that
 * names the port, the fault and, where one exists, the command that helps; nothing is
 * left open then. *port is written only on success, and must not move while it is open.
 *
 * -EBUSY: among others, an af_xdp queue is taken, by a process that may have died; try again with the
 * device made anew.
 *
 * Requirements that cannot be met are errors (an MTU that does not fit, a MAC address that cannot be
 * set); of queues, descriptors and offloads the port gets as many as the device has.
 */
int ur_port_open(struct ur_port *port, uint16_t id, const struct ur_port_attr *attr, char *err,
		 size_t cap);

/*
 * Stops and closes the device and frees the pools; no mbuf of theirs may be used after it. Closing
 * a port that is not open does nothing. Open ports are also closed by exit().
 *
 * A pool whose mbufs are still held by the other end of a ring is freed when the last of them has
 * come back, by a later close, open or reap of any port. An open that finds no memory waits up to a
 * second for such pools.
 */
void ur_port_close(struct ur_port *port);
/* Returns how many pools of closed ports still wait for mbufs. */
unsigned ur_port_reap(void);

/*
 * Stops the device and starts it again: a memif client connects anew. No thread may use the port meanwhile. 0 or a negative
 * errno.
 */
int ur_port_restart(const struct ur_port *port);

/* Closes all open ports, at the end of a program. */
void ur_port_close_all(void);

/*
 * For a handler of SIGSEGV, SIGABRT and the like; async-signal-safe. Detaches the XDP programs from the
 * interfaces of all open af_xdp ports, which would otherwise discard all traffic until they are detached
 * by hand. Closes nothing else; the process must end afterwards.
 */
void ur_port_emergency(void);

/* Whether the port uses DPDK's memif driver. */
bool ur_port_is_memif(const struct ur_port *port);

/* Whether the link is up now. Does not wait. */
bool ur_port_link_up(const struct ur_port *port);

/* Waits up to timeout_ms for the link (memif: for the peer). Returns whether it is up. */
bool ur_port_wait_link(const struct ur_port *port, unsigned timeout_ms);

/* The device's counters, fields of rte_eth_stats. X(name, unit, help): docs/design/counters.md */
#define UR_PORT_COUNTERS(X)                                                                        \
	X(ipackets, "packets", "packets that the device received")                                 \
	X(opackets, "packets", "packets that the device sent")                                     \
	X(ibytes, "bytes", "bytes that the device received")                                       \
	X(obytes, "bytes", "bytes that the device sent")                                           \
	X(imissed, "packets", "packets dropped because the receive queue was full")                \
	X(ierrors, "packets", "packets received with errors")                                      \
	X(oerrors, "packets", "packets that could not be sent")                                    \
	X(rx_nombuf, "packets", "packets dropped because no packet buffer was free")

struct ur_port_counters {
#define X(name, unit, help) uint64_t name;
	UR_PORT_COUNTERS(X)
#undef X
};

/* Reads the counters. False, with all zero: the device has none. May make a system call. */
bool ur_port_read_counters(const struct ur_port *port, struct ur_port_counters *out);

/* The device's counters and the port's properties, by name. */
void ur_port_emit(const struct ur_port *port, struct ur_emit *e);

/* A ur_counters_fn over a struct ur_port as ctx, for "/uroce/port". */
int ur_port_counters(struct ur_emit *e, const char *params, void *ctx);

static inline uint16_t ur_port_rx(const struct ur_port *port, uint16_t queue,
				  struct rte_mbuf **pkts, uint16_t n)
{
	n = rte_eth_rx_burst(port->id, queue, pkts, n);
	ur_tsan_got((void **)pkts, n);
	return n;
}

/* Returns how many were taken; the caller keeps the others. */
static inline uint16_t ur_port_tx(const struct ur_port *port, uint16_t queue,
				  struct rte_mbuf **pkts, uint16_t n)
{
	ur_tsan_gives((void **)pkts, n);
	return rte_eth_tx_burst(port->id, queue, pkts, n);
}

#endif
