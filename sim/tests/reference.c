/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "load.h"
#include "sim.h"

struct reference {
	struct sim *s;
	struct load *load;
	uint64_t start_ns;
	size_t at; /* in the trace */
};

struct reference *reference_run(const struct load_case *c)
{
	struct reference *r = calloc(1, sizeof(*r));
	struct sim_attr a = sim_defaults(c->name, c->seed);
	struct load_end end[2];

	if (!r)
		abort();
	a.max_qp = LOAD_MAX_QP;
	a.max_mr = LOAD_MAX_MR;
	a.window = LOAD_WINDOW;
	a.ackreq_every = LOAD_ACKREQ;
	a.unwatched = true; /* the oracle of the wire wants queue pairs of objects.h */
	a.pacing = c->pacing;
	a.link = (struct sim_link_attr){.bits_per_s = c->host_bps, .delay_ns = c->delay_ns};
	r->s = sim_new(&a);
	r->s->drop_mask = c->drop_mask;
	r->start_ns = r->s->now_ns;
	for (unsigned i = 0; i < 2; i++) {
		struct sim_ep *ep = &r->s->ep[i];

		ep->in.attr = (struct sim_port_attr){.bits_per_s = c->port_bps,
						     .queue_bytes = c->queue_bytes,
						     .ecn_bytes = c->ecn_bytes,
						     .stamps = c->stamps ? SIM_STAMPS_RIGHT
									 : SIM_STAMPS_NONE};
		end[i] = (struct load_end){.engine = ep->engine, .mem = ep->mem, .gid = ep->gid4};
		memcpy(end[i].mac, ep->mac, 6);
	}
	r->load = load_start(c, end, r->s->now_ns);
	for (unsigned i = 0; i < 2; i++)
		sim_kick(&r->s->ep[i]);
	sim_must_run(r->s, NULL, NULL, SIM_MS(10000));
	SIM_CHECK(r->s, !r->s->trace.forgotten, "the trace is not complete");
	return r;
}

uint64_t reference_start_ns(const struct reference *r)
{
	return r->start_ns;
}

int reference_done(struct reference *r)
{
	return load_right(r->load) ? load_done(r->load) : -1;
}

uint64_t reference_dropped(const struct reference *r)
{
	return r->s->ep[0].in.dropped + r->s->ep[1].in.dropped;
}

uint64_t reference_marked(const struct reference *r)
{
	return r->s->ep[0].in.marked + r->s->ep[1].in.marked;
}

bool reference_next(struct reference *r, struct reference_frame *f)
{
	struct sim_trace_frame t;

	if (!sim_trace_next(&r->s->trace, &r->at, &t))
		return false;
	*f = (struct reference_frame){.at_ns = t.at_ns, .bytes = t.b, .len = t.len};
	return true;
}

void reference_free(struct reference *r)
{
	load_end(r->load, r->s->now_ns);
	sim_free(r->s);
	free(r);
}
