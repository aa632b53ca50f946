/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_PORT_H
#define UR_SIM_PORT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A port that one frame leaves after the other, first in, first out: what an endpoint sends to all
 * others, or the port of the switch that leads to it. Without a rate it is not there.
 */
struct sim_port_attr {
	uint64_t bits_per_s;		 /* 0: no port */
	uint64_t queue_bytes, ecn_bytes; /* more waiting: dropped, marked; 0: never */
};

struct sim_port {
	struct sim_port_attr attr;
	uint64_t busy_until_ns;
	/* Since somebody set them to 0. */
	uint64_t frames, bytes, dropped, marked;
	uint64_t wait_ns, wait_max_ns; /* of all frames, of one */
};

/* False: there is no room. Else *at_ns is when the frame has left. */
bool sim_port_pass(struct sim_port *port, unsigned len, uint64_t now_ns, uint64_t *at_ns,
		   bool *ecn);

#endif
