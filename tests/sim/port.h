/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_PORT_H
#define UR_SIM_PORT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A port with a FIFO queue and a rate: either the port of an endpoint, or the port of the switch
 * that leads to it. Without a rate there is no port, and frames pass at once.
 */
enum sim_stamps {
	SIM_STAMPS_NONE,
	SIM_STAMPS_RIGHT, /* as lib/switch/stamp.h */
	SIM_STAMPS_LOST,  /* what is stamped is dropped behind the port, as by a firewall */
	SIM_STAMPS_LIES,  /* random ones */
};

struct sim_port_attr {
	uint64_t bits_per_s; /* 0: no port */
	uint64_t queue_bytes,
		ecn_bytes; /* queue depth above which frames are dropped, marked; 0: never */
	enum sim_stamps stamps;
};

struct sim_port {
	struct sim_port_attr attr;
	uint64_t busy_until_ns;
	/* Counters; a test may reset them to 0. */
	uint64_t frames, bytes, dropped, marked;
	uint64_t stamped;
	uint64_t wait_ns, wait_max_ns; /* waiting time of all frames together, longest of one */
};

/* Returns false if the queue is full. Otherwise *at_ns is the time at which the frame has left. */
bool sim_port_pass(struct sim_port *port, unsigned len, uint64_t now_ns, uint64_t *at_ns,
		   bool *ecn);

#endif
