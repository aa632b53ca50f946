/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_NODE_H
#define SWITCH_NODE_H

#include <signal.h>

#include "device.h"
#include "options.h"
#include "socket.h"
#include "switch/agent.h"
#include "switch/stamp.h"
#include "switch/switch.h"
#include "wire/vendor.h"

/* The switch with its devices, and the loop that moves frames between them. One thread. */
#define NODE_PENDING 64

/* A frame that asks how long it is in the switch (SWITCH-DELAY-01). */
struct node_stamp {
	struct ur_switch_stamp stamp;
	uint64_t in_ns; /* when it was received */
};

struct node_port {
	struct device *dev;
	const struct switch_spec *spec;
	struct ur_vl_attr configured; /* lanes as the configuration has them */
	/* Sent by the switch, not yet taken by the device: [at, cnt). */
	struct rte_mbuf *pending[NODE_PENDING];
	unsigned at, cnt;
	uint64_t stamped;			 /* bit i: pending[i] asks, */
	struct node_stamp stamp[NODE_PENDING];	 /* and this is what it is told */
	bool link;				 /* of the device; the port may be disabled */
	bool credits;				 /* link credits */
	struct ur_switch_device_counters device; /* as last read */
	uint32_t downs;	  /* of a kernel interface's carrier, as the kernel counts them */
	uint64_t no_copy; /* frames lost because there was no buffer for a copy that differs */
};

/* When what is not done for each frame is due. */
struct node_times {
	uint64_t links_ns, quick_ns, counters_ns, watch_ns, stats_ns, state_ns, load_ns;
	uint64_t work_ns; /* spent on frames since the load was computed */
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
	struct state *state;	/* state.h */
	struct writer *stats;	/* of --json; NULL: none */
	uint64_t saved_changes; /* of the agent, that the file of --state has or will have */
	uint64_t saved_guid;	/* 0: none */
	uint16_t saved_lid;
	uint32_t load; /* time spent on frames in the last second, 1/1000 */
	struct ur_clock clock;
	struct node_port port[UR_SWITCH_PORTS_MAX]; /* [1, port_cnt] */
	unsigned port_cnt;
	struct rte_mempool *pool; /* of the agent, and of sockets */
	struct device_group *group[SWITCH_SPECS_MAX];
	unsigned group_cnt;
	device_group_open open_group; /* of ports of kind SWITCH_GROUP; by the program */
	unsigned counted;	      /* the port whose device was last asked for its counters */
	uint64_t present;	      /* bit p: port p is looked at in each round */
	bool soon;		      /* a group has something to do when its next turn comes */
	bool unasked;		      /* a port is present that was not asked for interrupts */
	bool reported;		      /* links of kernel interfaces, at */
	int reports;
	struct node_times times;
};

/* Opens everything. False: a sentence in `err`; node_close() closes what is open. */
bool node_open(struct node *n, char *err, size_t cap);
void node_close(struct node *n);

/*
 * How much its ports ask of DPDK, which the first device that is opened starts: of several nodes, the one with the lowest
 * number is opened first.
 */
unsigned node_rank(const struct node *n);

/* "NAME: " of a switch that has one, for messages; "" otherwise. */
const char *node_prefix(const struct node *n);

/* Runs these nodes in turn until *stop. */
void node_run(struct node *n, unsigned cnt, const volatile sig_atomic_t *stop);

/* No round looks at a client's port while its link is down: no client uses it. */
void node_set_present(struct node *n, unsigned port, bool link);
/* Moves frames once. Returns how many. */
unsigned node_round(struct node *n, uint64_t now_ns);
/* Ports whose device took all that it was offered: bit p. */
uint64_t node_ready(const struct node *n);
/*
 * SWITCH-DOZE-01: has the devices of all links that are up end a doze when there is a frame to receive, or not any more. False: not
 * all of them do. A frame that came before ends none.
 */
bool node_ask_interrupts(struct node *n, bool on);
/* Accepts clients, and looks at the links that the kernel does not report; prints those that have changed. */
void node_watch(struct node *n, uint64_t now_ns);
/* The same for groups of devices that are to be served quickly. */
void node_watch_quick(struct node *n, uint64_t now_ns);
/* Looks at what the kernel has reported of links. One system call if there is nothing. */
void node_watch_kernel(struct node *n, uint64_t now_ns);

/* Asks the kernel for such reports. */
void node_report_links(struct node *n);

/* Frees what was dropped, or not taken by a device. */
void node_reap(struct node *n);
void node_drop_pending(struct node_port *p);

/* Has statistics written as JSON, docs/design/switch.md, with --json. */
void node_write_stats(struct node *n, uint64_t now_ns);

#endif
