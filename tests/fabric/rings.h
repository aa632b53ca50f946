/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FABRIC_RINGS_H
#define TESTS_FABRIC_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "manager/build.h"
#include "mgmt/nma.h"
#include "switch/agent.h"

/*
 * A row of real switches with agents, joined by rings in memory, in one thread and in real time. A node is served when
 * something waits for it, so that a figure is the work of the nodes on the way and nothing else.
 *
 *   manager -- 1 switch 0 2 -- 1 switch 1 2 -- ... -- far end, if there is one
 *                   3               3
 *                 host            host: returns frames of RINGS_ECHO_BYTES
 *
 * Manager and far end are endpoints with an agent. What fails ends the program.
 */
#define RINGS_MAX	 32 /* switches */
#define RINGS_ECHO_BYTES UR_SWITCH_MAD_FRAME
#define RINGS_DATA_BYTES 512

struct rings_node {
	struct ur_switch *sw;
	struct ur_switch_agent *agent;
	uint64_t born_ns;
	bool waits; /* is served in the next round */
};

extern struct rings_node rings_node[RINGS_MAX + 2]; /* the switches, then the two ends */
extern unsigned rings_cnt;			    /* switches */
extern bool rings_echoed;			    /* a host has returned the frame */

/* Called with each MAD for the manager's client. */
typedef void (*rings_take_fn)(const struct ur_nma_out *out);

_Noreturn void rings_give_up(const char *why);
/* `memory`, which must not be NULL. */
void *rings_must(void *memory);
uint64_t rings_now(void);

/* Starts `cnt` switches. With `far` there is a far end, and no host; otherwise each switch has learned its host's address. */
void rings_start(unsigned cnt, bool far, rings_take_fn take);
/* The manager's client sends. */
void rings_send(const struct ur_mgr_mad *m);
/* The manager sends a frame to the host of switch `n`. */
void rings_send_echo(unsigned n);

/* Frames of RINGS_DATA_BYTES from now on go to and fro between manager and far end. There is work at any time then. */
void rings_start_data(unsigned frames);

void rings_wake(unsigned n);
/* Serves each node for which something waits once: a frame moves by one hop. False: nothing waits. */
bool rings_round(void);
/* Rounds until nothing waits. */
void rings_run(void);
/* Serves agents whose time has come. */
void rings_look_at_clocks(void);

#endif
