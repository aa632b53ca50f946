/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FABRIC_RINGS_H
#define TESTS_FABRIC_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "manager/build.h"
#include "mgmt/nma.h"
#include "switch/agent.h"

/*
 * Real switches with agents, joined by rings in memory, in one thread and in real time. A node is served when something
 * waits for it, so that a figure is the work of the nodes on the way and nothing else.
 *
 * A link has two rings in each direction, as a receiver of the IBA has a buffer for each lane: one of VL15 and one of data. All of
 * VL15 is served before any data. A switch chip moves data on all ports while its agent works; one thread cannot. It gives data a
 * share of its time: rings_set_share().
 *
 * A row of switches, in which each has a host that returns frames of RINGS_ECHO_BYTES:
 *
 *   manager -- 1 switch 0 2 -- 1 switch 1 2 -- ...
 *                   3               3
 *                 host            host
 *
 * Or any fabric of lib/fabric/shape.h, with a manager at node 0. What fails ends the program.
 */
#define RINGS_ECHO_BYTES UR_SWITCH_MAD_FRAME
#define RINGS_DATA_BYTES 512

struct rings_port;

enum rings_kind {
	RINGS_SWITCH,
	RINGS_END,  /* an endpoint with an agent */
	RINGS_HOST, /* returns frames */
};

enum rings_class { RINGS_DATA, RINGS_VL15, RINGS_CLASSES };

struct rings_node {
	enum rings_kind kind;
	struct ur_switch *sw; /* of a switch, */
	struct ur_switch_agent *agent;
	struct ur_nma *nma; /* of an end */
	uint64_t born_ns;
	uint8_t mac[6];		 /* of an end */
	struct rings_port *port; /* [0, ports); 0: not linked */
	uint8_t ports, in_turn, out_turn;
	uint8_t header[128];	     /* of the data that an end sends */
	unsigned header_len;	     /* 0: it sends none */
	uint64_t has[RINGS_CLASSES]; /* bit p: a ring of port p has a frame */
	bool waits[RINGS_CLASSES];   /* is in the list of nodes to serve */
	struct rings_node *next[RINGS_CLASSES];
};

extern struct rings_node *rings_node; /* [0, rings_cnt); in a row the switches are the first */
extern unsigned rings_cnt;
extern unsigned rings_manager; /* its number */
extern bool rings_echoed;      /* a host has returned the frame */

struct rings_moved {
	uint64_t mads, data; /* by one hop */
	uint64_t lost;	     /* a ring of VL15 was full, or a switch dropped it */
};
extern struct rings_moved rings_moved;

/* Called with each MAD for the manager's client. */
typedef void (*rings_take_fn)(const struct ur_nma_out *out);

_Noreturn void rings_give_up(const char *why);
/* `memory`, which must not be NULL. */
void *rings_must(void *memory);
uint64_t rings_now(void);

/* Starts a row of `cnt` switches, which have learned their hosts' addresses. */
void rings_start_row(unsigned cnt, rings_take_fn take);
/* Starts a fabric. Node i is the shape's. */
void rings_start_shape(const char *shape, rings_take_fn take);
/* Ports of a node that are linked. */
unsigned rings_links(unsigned n);
/* The manager's client sends. */
void rings_send(const struct ur_mgr_mad *m);
/* The manager of a row sends a frame to the host of switch `n`. */
void rings_send_echo(unsigned n);

/* While MADs wait, one data frame is moved for `mads` of them, each by one hop. 0, as at first: data waits until no MAD does. */
void rings_set_share(unsigned mads);

/*
 * In a shape: endpoints, at most RINGS_FLOWS_MAX, are paired, and frames of RINGS_DATA_BYTES from now on go to and fro between them,
 * by the forwarding tables of the switches; so many in each ring on their ways. There is work at any time then, so that data needs
 * a share.
 */
#define RINGS_FLOWS_MAX 1024
void rings_start_data(unsigned frames);
/* Of the directions of links, those of ends without data left out: the share for which data waits. */
double rings_data_waits(void);

/* What has waited for VL15, or for its agent's time. */
void rings_wake(unsigned n);
/* Serves MADs until none waits, and data as far as it has a share. False: nothing waits. */
bool rings_round(void);
/* Rounds until nothing waits. */
void rings_run(void);
/* Serves agents whose time has come. */
void rings_look_at_clocks(void);

#endif
