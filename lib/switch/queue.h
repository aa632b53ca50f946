/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SWITCH_QUEUE_H
#define UR_SWITCH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/switch.h"

/*
 * References to frames, in lists. All references of a switch are in one array, each in exactly one
 * list: the free ones, the queue of a port's lane, or the ones to reap.
 */
#define UR_SWITCH_END UINT32_MAX

struct ur_switch_ref {
	struct ur_switch_frame frame;
	uint64_t in_ns;
	uint32_t next; /* index, UR_SWITCH_END: the last */
	uint16_t tci;  /* of the edits */
	uint8_t in_port, out_port, edits, vl;
	uint8_t credit; /* 1 + lane of the receiving port whose buffer it takes; 0: none */
	bool held;	/* has waited for a receive pool */
	bool mgmt;	/* counts against the receiving port's limit of management packets */
	bool group;
};

struct ur_switch_list {
	uint32_t head, tail; /* UR_SWITCH_END: empty */
	uint32_t cnt, bytes;
};

static inline void ur_switch_list_init(struct ur_switch_list *l)
{
	*l = (struct ur_switch_list){.head = UR_SWITCH_END, .tail = UR_SWITCH_END};
}

static inline void ur_switch_list_push(struct ur_switch_ref *ref, struct ur_switch_list *l,
				       uint32_t i)
{
	ref[i].next = UR_SWITCH_END;
	if (l->tail == UR_SWITCH_END)
		l->head = i;
	else
		ref[l->tail].next = i;
	l->tail = i;
	l->cnt++;
	l->bytes += ref[i].frame.len;
}

/* Takes the first one of a list that is not empty. */
static inline uint32_t ur_switch_list_pop(const struct ur_switch_ref *ref, struct ur_switch_list *l)
{
	uint32_t i = l->head;

	l->head = ref[i].next;
	if (l->head == UR_SWITCH_END)
		l->tail = UR_SWITCH_END;
	l->cnt--;
	l->bytes -= ref[i].frame.len;
	return i;
}

/* A limit of events per second that lets a burst pass (the GCRA of ATM). */
struct ur_switch_limit {
	uint64_t next_ns;  /* when the next one conforms, without the burst */
	uint64_t each_ns;  /* 0: no limit */
	uint64_t burst_ns; /* how early one may come */
};

void ur_switch_limit_init(struct ur_switch_limit *l, uint32_t per_s, uint32_t burst);

/* True if one more event is within the limit, and counts it. */
static inline bool ur_switch_limit_lets(struct ur_switch_limit *l, uint64_t now_ns)
{
	if (!l->each_ns)
		return true;
	if (l->next_ns > now_ns + l->burst_ns)
		return false;
	l->next_ns = (l->next_ns > now_ns ? l->next_ns : now_ns) + l->each_ns;
	return true;
}

#endif
