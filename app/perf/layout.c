/* SPDX-License-Identifier: BSD-3-Clause */
#include "layout.h"

#include <string.h>

#define MEMORY_BYTES (1ull << 30)
#define LAT_DEPTH    32 /* the ping-pong requests a completion now and then */
#define ACK_ROOM     64 /* send queue entries beside --depth, for acknowledgements of ours */

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

static uint64_t power_at_least(uint64_t v)
{
	uint64_t p = 1;

	while (p < v)
		p *= 2;
	return p;
}

static uint64_t power_at_most(uint64_t v)
{
	uint64_t p = 1;

	while (p * 2 <= v)
		p *= 2;
	return p;
}

bool perf_params_receives(const struct perf_params *p)
{
	unsigned traits = perf_op_traits((enum perf_op)p->op);

	return (traits & PERF_T_RECV) != 0 || (p->verify && (traits & PERF_T_WRITE) != 0);
}

void perf_layout_compute(struct perf_layout *l, const struct perf_params *p)
{
	unsigned traits = perf_op_traits((enum perf_op)p->op);
	uint64_t grh = p->type == PERF_TYPE_UD ? PERF_GRH_BYTES : 0;
	uint64_t ring;

	memset(l, 0, sizeof(*l));
	l->slot_bytes = round_up(p->size < 8 ? 8 : p->size, 64);
	ring = l->slot_bytes * p->slots;
	l->tx = PERF_AT_RINGS;
	l->wr = l->tx + ring;
	l->rd = l->wr + ((traits & PERF_T_WRITE) != 0 ? ring : 0);
	l->rx = l->rd + (p->op == PERF_OP_READ || p->op == PERF_OP_MIXED ? ring : 0);
	l->rx_bytes =
		perf_params_receives(p) && p->op != PERF_OP_WRITE && p->op != PERF_OP_WRITE_IMM
			? p->size + grh
			: 0;
	l->rx_step =
		p->verify && l->rx_bytes != 0 ? round_up(l->rx_bytes < 8 ? 8 : l->rx_bytes, 64) : 0;
	l->stride = l->rx;
	if (l->rx_bytes != 0)
		l->stride += p->verify ? l->rx_step * p->rq_depth
				       : round_up(l->rx_bytes < 8 ? 8 : l->rx_bytes, 64);
	l->stride = round_up(l->stride, 64);
	l->total = PERF_HEAD_BYTES + l->stride * p->buffers;
}

static void shrink_to_memory(struct perf_params *p)
{
	struct perf_layout l;

	for (;;) {
		perf_layout_compute(&l, p);
		if (l.total <= MEMORY_BYTES)
			break;
		if (p->rq_depth > p->slots)
			p->rq_depth /= 2;
		else if (p->slots > 4)
			p->slots /= 2;
		else if (p->rq_depth > 2)
			p->rq_depth /= 2;
		else
			break;
	}
	if (p->depth > p->slots)
		p->depth = p->slots;
}

void perf_params_from_options(struct perf_params *p, const struct perf_options *o, uint64_t size,
			      const struct ibv_device_attr *device, uint32_t mtu)
{
	uint64_t most = device->max_qp_wr > ACK_ROOM ? (uint64_t)device->max_qp_wr - ACK_ROOM : 1;

	memset(p, 0, sizeof(*p));
	p->op = o->op;
	p->mode = o->mode;
	p->type = o->type;
	p->size = size;
	p->qps = o->qps + o->ping;
	p->buffers = o->buffers != 0 && o->buffers < p->qps ? o->buffers : p->qps;
	p->depth = o->mode == PERF_MODE_LAT ? LAT_DEPTH : o->depth;
	if (p->depth > most)
		p->depth = most;
	p->verify = o->verify;
	p->bidir = o->bidir;
	p->mtu = o->mtu != 0 ? o->mtu : mtu;
	p->inline_bytes = o->inline_bytes;
	p->sge = o->sge;
	p->srq = o->srq;
	p->receives = o->receives;
	p->service_us = o->service_us;
	p->think_us = o->think_us;
	p->random_order = o->random_order;
	p->events = o->events;
	p->seed = o->seed;
	p->timeout = o->timeout;
	p->retry = o->retry;
	p->rnr_retry = o->rnr_retry;
	p->min_rnr_timer = o->min_rnr_timer;
	p->rd_atomic = o->rd_atomic;
	p->transport = o->transport;
	if (device->max_qp_rd_atom > 0 && p->rd_atomic > (uint64_t)device->max_qp_rd_atom)
		p->rd_atomic = (uint64_t)device->max_qp_rd_atom;
	p->slots = p->verify ? power_at_least(p->depth * 2 < 8 ? 8 : p->depth * 2) : 1;
	p->rq_depth = power_at_least(p->depth * 2 < 16 ? 16 : p->depth * 2);
	if (p->rq_depth > most)
		p->rq_depth = power_at_most(most);
	if (p->verify)
		shrink_to_memory(p);
	p->signal_every = power_at_most(o->signal_every);
	if (o->mode == PERF_MODE_LAT)
		p->signal_every = (perf_op_traits(o->op) & PERF_T_FETCH) != 0 ? 1 : 16;
	else if (p->signal_every > p->depth)
		p->signal_every = power_at_most(p->depth);
}
