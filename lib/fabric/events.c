/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "fabric/events.h"

void events_init(struct events *e)
{
	*e = (struct events){.free = EVENTS_NONE};
}

void events_free(struct events *e)
{
	free(e->heap);
	free(e->flight);
}

static void *grow(void *memory, uint32_t cnt, size_t bytes)
{
	memory = reallocarray(memory, cnt, bytes);
	if (!memory) {
		fputs("uroce: no memory for the model of a fabric\n", stderr);
		abort();
	}
	return memory;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static uint32_t take_free(struct events *e)
{
	uint32_t at = e->free;

	if (at == EVENTS_NONE) {
		uint32_t more = e->flights ? 2 * e->flights : 256;

		e->flight = grow(e->flight, more, sizeof(*e->flight));
		for (at = more; at-- > e->flights;) {
			e->flight[at].next = e->free;
			e->free = at;
		}
		e->flights = more;
		at = e->free;
	}
	e->free = e->flight[at].next;
	return at;
}

struct flight *events_add(struct events *e, uint64_t at_ns)
{
	struct event new = {at_ns, e->added++, take_free(e)};
	uint32_t i, up;

	if (e->cnt == e->max) {
		e->max = e->max ? 2 * e->max : 256;
		e->heap = grow(e->heap, e->max, sizeof(*e->heap));
	}
	for (i = e->cnt++; i; i = up) {
		up = (i - 1) / 2;
		if (!is_before(&new, &e->heap[up]))
			break;
		e->heap[i] = e->heap[up];
	}
	e->heap[i] = new;
	return &e->flight[new.flight];
}

uint64_t events_next(const struct events *e)
{
	return e->cnt ? e->heap[0].at_ns : UINT64_MAX;
}

uint32_t events_take(struct events *e)
{
	uint32_t taken = e->heap[0].flight, i = 0, down;
	struct event last = e->heap[--e->cnt];

	while ((down = 2 * i + 1) < e->cnt) {
		if (down + 1 < e->cnt && is_before(&e->heap[down + 1], &e->heap[down]))
			down++;
		if (!is_before(&e->heap[down], &last))
			break;
		e->heap[i] = e->heap[down];
		i = down;
	}
	e->heap[i] = last;
	return taken;
}

void events_drop(struct events *e, uint32_t flight)
{
	e->flight[flight].next = e->free;
	e->free = flight;
}
