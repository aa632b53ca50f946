/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FABRIC_RINGS_PRIV_H
#define TESTS_FABRIC_RINGS_PRIV_H

#include "rings.h"

/* Between rings.c, which moves frames, and rings_start.c, which makes the nodes. */

#define RINGS_ETHERTYPE                                                                            \
	0x88b5 /* of what is neither management nor RoCE: for experiments (IEEE 802) */

struct rings_frame {
	unsigned refs;
	struct rings_frame *next; /* in a ring, or free */
	struct ur_switch_frame f;
	uint8_t bytes[RINGS_DATA_BYTES];
};

struct rings_ring {
	struct rings_frame *first, *last;
	unsigned cnt;
};

struct rings_port {
	struct rings_node *peer; /* NULL: not linked */
	uint8_t peer_port;
	struct rings_ring in[RINGS_CLASSES];
};

extern const uint8_t rings_echo_mac[6];
extern rings_take_fn rings_take_mad;

struct rings_frame *rings_take_frame(void);
/* Onto the link of that port; the reference is passed on. */
void rings_put(struct rings_node *n, uint8_t port, enum rings_class c, struct rings_frame *f);
/* Sends what the agent of an end has. */
void rings_pump(struct rings_node *n);

#endif
