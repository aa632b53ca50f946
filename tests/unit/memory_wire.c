/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_wire.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#define TURNS_MAX 100000 /* of one endpoint at one instant */

/* ---- the four operations of a packet source ---- */

static unsigned receive(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct wire_end *end = source;
	struct wire_frame *f;
	unsigned cnt = 0;

	while (cnt < n && (f = STAILQ_FIRST(&end->in)) && f->at_ns <= end->wire->now_ns) {
		STAILQ_REMOVE_HEAD(&end->in, link);
		pkts[cnt++] = (struct ur_pkt){.data = f->bytes, .len = f->len, .handle = f};
		end->buffers++;
	}
	return cnt;
}

static void release(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct wire_end *end = source;

	for (unsigned i = 0; i < n; i++) {
		cr_assert(end->buffers > 0);
		end->buffers--;
		free(pkts[i].handle);
	}
}

static bool allocate(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct wire_end *end = source;

	if (end->buffers + n > end->buffers_max)
		return false;
	for (unsigned i = 0; i < n; i++) {
		struct wire_frame *f = malloc(sizeof(*f));

		pkts[i] = (struct ur_pkt){.data = f->bytes, .handle = f};
		end->buffers++;
	}
	return true;
}

static unsigned transmit(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct wire_end *end = source;

	if (n > end->takes)
		n = end->takes;
	end->takes -= n;
	for (unsigned i = 0; i < n; i++)
		wire_send(end, pkts[i].data, pkts[i].len);
	release(source, pkts, n);
	return n;
}

const struct ur_source_ops wire_ops = {
	.rx = receive, .tx = transmit, .alloc = allocate, .free = release};

/* ---- the switch ---- */

void wire_init(struct wire *w, uint64_t delay_ns)
{
	*w = (struct wire){.now_ns = 1000000000, .delay_ns = delay_ns};
}

struct wire_end *wire_attach(struct wire *w, const uint8_t mac[6])
{
	struct wire_end *end = &w->end[w->cnt++];

	cr_assert_leq(w->cnt, WIRE_ENDS);
	*end = (struct wire_end){.wire = w, .buffers_max = 4096, .takes = UINT32_MAX};
	memcpy(end->mac, mac, 6);
	STAILQ_INIT(&end->in);
	return end;
}

void wire_fini(struct wire *w)
{
	uint8_t frame[WIRE_ROOM];

	w->now_ns = UINT64_MAX;
	for (unsigned i = 0; i < w->cnt; i++)
		while (wire_receive(&w->end[i], frame))
			;
}

void wire_send(struct wire_end *from, const void *frame, uint32_t len)
{
	struct wire *w = from->wire;
	const uint8_t *dmac = frame;

	cr_assert_leq(len, WIRE_ROOM);
	for (unsigned i = 0; i < w->cnt; i++) {
		struct wire_end *to = &w->end[i];
		struct wire_frame *f;

		if (to == from || (!(dmac[0] & 1) && memcmp(dmac, to->mac, 6) != 0))
			continue;
		f = malloc(sizeof(*f));
		f->at_ns = w->now_ns + w->delay_ns;
		f->len = len;
		memcpy(f->bytes, frame, len);
		STAILQ_INSERT_TAIL(&to->in, f, link);
	}
}

uint32_t wire_receive(struct wire_end *end, uint8_t frame[WIRE_ROOM])
{
	struct wire_frame *f = STAILQ_FIRST(&end->in);
	uint32_t len;

	if (!f || f->at_ns > end->wire->now_ns)
		return 0;
	STAILQ_REMOVE_HEAD(&end->in, link);
	len = f->len;
	memcpy(frame, f->bytes, len);
	free(f);
	return len;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Runs the end's endpoint until it is idle; returns the time of its next run. */
static uint64_t run_end(struct wire_end *end)
{
	struct wire_frame *f;
	uint64_t due_ns;

	if (!end->ep)
		return UINT64_MAX;
	for (unsigned turns = 0; ur_endpoint_run(end->ep, end->wire->now_ns); turns++)
		cr_assert_lt(turns, TURNS_MAX, "an endpoint does not come to rest");
	due_ns = ur_endpoint_next_deadline(end->ep);
	f = STAILQ_FIRST(&end->in);
	return f ? earlier(due_ns, f->at_ns) : due_ns;
}

bool wire_run(struct wire *w, bool (*done)(void *arg), void *arg, uint64_t for_ns)
{
	uint64_t until_ns = w->now_ns + for_ns;
	unsigned turns = 0;

	for (;;) {
		uint64_t next_ns = UINT64_MAX;

		for (unsigned i = 0; i < w->cnt; i++)
			next_ns = earlier(next_ns, run_end(&w->end[i]));
		if (done && done(arg))
			return true;
		/* A later end's frames for an earlier one are not in next_ns yet. */
		for (unsigned i = 0; i < w->cnt; i++)
			if (w->end[i].ep && STAILQ_FIRST(&w->end[i].in))
				next_ns = earlier(next_ns, STAILQ_FIRST(&w->end[i].in)->at_ns);
		if (next_ns > until_ns) {
			w->now_ns = until_ns;
			return false;
		}
		turns = next_ns > w->now_ns ? 0 : turns + 1;
		cr_assert_lt(turns, TURNS_MAX, "time does not pass");
		if (next_ns > w->now_ns)
			w->now_ns = next_ns;
	}
}
