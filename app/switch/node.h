/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_NODE_H
#define SWITCH_NODE_H

#include <signal.h>

#include "device.h"
#include "options.h"
#include "socket.h"
#include "switch/agent.h"
#include "switch/switch.h"
#include "wire/vendor.h"

/* The switch with its devices, and the loop that moves frames between them. One thread. */
#define NODE_PENDING 64

struct node_port {
	struct device *dev;
	const struct switch_spec *spec;
	struct ur_vl_attr configured; /* lanes as the configuration has them */
	/* Sent by the switch, not yet taken by the device: [at, cnt). */
	struct rte_mbuf *pending[NODE_PENDING];
	unsigned at, cnt;
	bool link;	  /* of the device; the port may be disabled */
	uint64_t no_copy; /* frames lost because there was no buffer for a copy that differs */
};

struct node {
	struct ur_config cfg;
	struct switch_options options;
	struct ur_switch_attr attr;
	struct ur_switch *sw;
	void *memory; /* of sw */
	struct ur_switch_agent *agent;
	uint64_t guid;
	uint8_t eeprom[UR_EEPROM_BYTES];
	uint64_t saved_changes; /* of the agent, that the file of --state has */
	uint16_t saved_lid;
	uint32_t load; /* time spent on frames in the last second, 1/1000 */
	struct ur_clock clock;
	struct node_port port[UR_SWITCH_PORTS_MAX]; /* [1, port_cnt] */
	unsigned port_cnt;
	struct rte_mempool *pool; /* of the agent, and of sockets */
	struct socket_port *socket[SWITCH_SPECS_MAX];
	unsigned socket_cnt;
};

/* Opens everything. False: a sentence in `err`; node_close() closes what is open. */
bool node_open(struct node *n, char *err, size_t cap);
void node_close(struct node *n);

/* Runs until *stop. */
void node_run(struct node *n, const volatile sig_atomic_t *stop);

/* Moves frames once. Returns how many. */
unsigned node_round(struct node *n, uint64_t now_ns);
/* Accepts clients, and looks at all links; prints those that have changed. */
void node_watch(struct node *n, uint64_t now_ns);

/* Statistics as JSON, docs/design/switch.md. False: they cannot be written. */
bool node_write_stats(struct node *n, const char *file, uint64_t now_ns);

#endif
