/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_MEMORY_WIRE_H
#define TESTS_MEMORY_WIRE_H

#include <bsd/sys/queue.h>

#include "edge/endpoint.h"

/*
 * An Ethernet in memory, under virtual time: a switch with every station's MAC address, with the same
 * delay to each. Its ends are packet sources for endpoints, or stations whose frames a test reads and writes
 * itself.
 */
#define WIRE_ENDS 4
#define WIRE_ROOM 4300 /* bytes of a frame */

struct wire_frame {
	STAILQ_ENTRY(wire_frame) link;
	uint64_t at_ns; /* when it arrives */
	uint32_t len;
	uint8_t bytes[WIRE_ROOM];
};

struct wire_end {
	struct wire *wire;
	struct ur_endpoint *ep; /* NULL: the test is the station */
	uint8_t mac[6];
	STAILQ_HEAD(, wire_frame) in; /* on their way here, oldest first */
	unsigned buffers;	      /* that the endpoint has, in use or not */
	unsigned buffers_max;	      /* no more are given */
	unsigned takes;		      /* frames that it sends from now on */
};

struct wire {
	uint64_t now_ns, delay_ns;
	unsigned cnt;
	struct wire_end end[WIRE_ENDS];
};

/* `source` is a struct wire_end. */
extern const struct ur_source_ops wire_ops;

void wire_init(struct wire *w, uint64_t delay_ns);
struct wire_end *wire_attach(struct wire *w, const uint8_t mac[6]);
/* Frames on their way are dropped. */
void wire_fini(struct wire *w);

/* From a station to whatever has the frame's destination address. */
void wire_send(struct wire_end *from, const void *frame, uint32_t len);
/* What has arrived at a station, oldest first; 0: nothing. */
uint32_t wire_receive(struct wire_end *end, uint8_t frame[WIRE_ROOM]);

/*
 * Runs all endpoints, and lets time pass, until done(arg) or for that long. Returns whether it was done. An
 * endpoint that has work without end at one instant is a failure.
 */
bool wire_run(struct wire *w, bool (*done)(void *arg), void *arg, uint64_t for_ns);

#endif
