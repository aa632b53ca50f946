/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FABRIC_EVENTS_H
#define UR_FABRIC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

/* MADs on their way, in order of their times; those of the same time in the order in which they were added. */

#define EVENTS_NONE UINT32_MAX

struct flight {
	enum { FLIGHT_ARRIVES, FLIGHT_FOR_CLIENT, FLIGHT_TIMER } kind;
	uint32_t node; /* where it happens */
	uint32_t next; /* while it is in no queue of time: the owner's */
	uint8_t port, way, qpn;
	uint32_t sqpn;
	uint16_t slid, dlid;
	uint8_t mad[UR_MAD_BYTES];
};

struct event {
	uint64_t at_ns, order;
	uint32_t flight;
};

struct events {
	struct event *heap; /* [0, cnt) */
	uint32_t cnt, max;
	uint64_t added;
	struct flight *flight; /* [0, flights); free ones are a list */
	uint32_t flights, free;
};

void events_init(struct events *e);
void events_free(struct events *e);
/* A new flight, to be filled in before the next call; kind, node and so on are not set. */
struct flight *events_add(struct events *e, uint64_t at_ns);
/* When the next one is; UINT64_MAX: there is none. */
uint64_t events_next(const struct events *e);
/* Takes the next one out of the queue of time. It exists until events_drop(). */
uint32_t events_take(struct events *e);
static inline struct flight *events_at(struct events *e, uint32_t flight)
{
	return &e->flight[flight];
}
void events_drop(struct events *e, uint32_t flight);

#endif
