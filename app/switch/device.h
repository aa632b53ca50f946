/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_DEVICE_H
#define SWITCH_DEVICE_H

#include <rte_mbuf.h>

#include "dpdk/clock.h"
#include "edge/config.h"
#include "spec.h"
#include "switch/agent.h"

/*
 * What is behind a port of the switch: a DPDK port, or a client of a socket. All functions are called on one
 * thread and do not block.
 *
 * Ownership of mbufs: rx gives them to the caller; tx takes as many as it returns, from the front.
 */
#define DEVICE_BURST 32

struct json_t;

struct device {
	const struct device_ops *ops;
	char name[UR_CONFIG_TEXT + 16]; /* "dev=veth0", "socket=/run/x.sock #2" */
	uint32_t max_frame;		/* bytes that it can send, without FCS */
	uint32_t rx_slots;		/* frames that can wait to be received; 0: not known */
	uint8_t mac[6];
	unsigned ifindex; /* of a kernel interface; 0: none */
};

struct device_ops {
	unsigned (*rx)(struct device *d, struct rte_mbuf **m, unsigned n); /* n <= DEVICE_BURST */
	unsigned (*tx)(struct device *d, struct rte_mbuf **m, unsigned n);
	bool (*link)(struct device *d);	 /* may make a system call */
	void (*close)(struct device *d); /* and frees it */
	/* What the device itself has counted; NULL: nothing. May take some microseconds. */
	void (*counters)(const struct device *d, struct ur_switch_device_counters *out);
	/* Adds to the port's statistics; NULL: nothing. */
	void (*stats)(const struct device *d, struct json_t *out);
	/*
	 * SWITCH-DOZE-01: from now on a frame to receive ends a doze (doze.h), or not any more. What came before does not. False: this
	 * device cannot, or has something to do at a time of its own. NULL: it never can.
	 */
	bool (*interrupts)(struct device *d, bool on);
};

/* What devices have in common that come and go together, such as the clients of a socket. */
struct device_group {
	const struct device_group_ops *ops;
	bool busy; /* after serve: it has more to do, of which nothing ends a doze */
};

struct device_group_ops {
	/* Accepts clients, and whatever they need. True: the link of a device may have changed. */
	bool (*serve)(struct device_group *g, uint64_t now_ns);
	void (*close)(struct device_group *g); /* and frees it; its devices are closed before */
	bool quick;			       /* is served each millisecond instead of each 50 */
};

/*
 * Makes spec->clients devices at devs, which have frames of up to `max_frame` bytes in mbufs of `pool`. NULL: a sentence in
 * `err`.
 */
typedef struct device_group *(*device_group_open)(const struct switch_spec *spec,
						  uint32_t max_frame, struct rte_mempool *pool,
						  struct device **devs, char *err, size_t cap);

/*
 * Opens a DPDK port, and starts DPDK if it does not run. `base`: [eal] and [port]. `held`: mbufs that
 * queues may hold. NULL: a sentence in `err`.
 */
struct device *device_open_port(const struct switch_spec *spec, const struct ur_config *base,
				uint32_t held, const struct ur_clock *clock, char *err, size_t cap);

/* Starts DPDK, if it does not run, for a switch that has sockets and rings only. False: a sentence in `err`. */
bool device_start_dpdk(const struct ur_config *base, char *err, size_t cap);

#endif
