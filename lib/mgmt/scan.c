/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"
#include "mgmt/registers.h"

/*
 * What the agent looks for itself, each SCAN_NS: gauges and counters above the limits of its registers, which are faults, and
 * errors of ports above the thresholds of their PortInfo, which are traps (MGMT-WATCH-01).
 */
#define TRAP_NS UINT64_C(1000000000) /* between traps about the same port */

/* Faults that a scan finds. */
#define SCANNED                                                                                    \
	(1u << UR_FAULT_ERROR_BURST | 1u << UR_FAULT_RETRANSMITS | 1u << UR_FAULT_HOT |            \
	 1u << UR_FAULT_MEMPOOL | 1u << UR_FAULT_RING | 1u << UR_FAULT_FIFO)

static uint64_t scan_ns(const struct ur_nma *nma)
{
	uint64_t ns = nma->reg[UR_NODE_SCAN_NS];

	return ns < 1000000 ? 1000000 : ns;
}

static void note(struct nma_scanned *s, const struct ur_nma_counters *c)
{
	s->rx_errors = c->rx_errors;
	s->symbol_errors = c->symbol_errors;
	s->retransmitted = c->retransmitted;
	s->overruns = c->overruns;
	s->flow_control = c->flow_control;
}

/* The counters at the start are no burst. */
static void note_counters(struct ur_nma *nma)
{
	nma->scanned_full = nma->stats.full;
	for (unsigned p = 1; nma->attr.ops->get_counters && p <= nma->attr.limits.ports; p++) {
		struct ur_nma_counters c = {0};

		nma->attr.ops->get_counters(nma->attr.ctx, (uint8_t)p, &c);
		note(&nma->port[p].scanned, &c);
	}
}

void nma_scan_start(struct ur_nma *nma, uint64_t now_ns)
{
	uint64_t enabled = nma->reg[UR_NODE_FAULT_ENABLE] & ~nma->reg[UR_NODE_FAULT_MASK];

	/* A trap has nowhere to go without a subnet manager: MGMT-COST-01. */
	if (!(enabled & SCANNED) && !nma->port[nma->first_port].sm_lid) {
		nma->scan_next_ns = NMA_NEVER;
		return;
	}
	if (nma->scan_next_ns == NMA_NEVER)
		note_counters(nma);
	nma->scan_next_ns = now_ns + scan_ns(nma);
}

/* A fault when the gauge passes its limit, and again only after it was below. */
static void scan_gauge(struct ur_nma *nma, enum ur_fault_cause cause, uint64_t value,
		       uint64_t limit, uint64_t now_ns)
{
	bool above = value > limit, before = nma->above >> cause & 1;

	nma->above = (nma->above & ~(1u << cause)) | (uint32_t)above << cause;
	if (above && !before)
		ur_nma_fault(nma, cause, 0, value, limit, now_ns);
}

/* At most once in TRAP_NS, however many there are: a subnet manager counts traps, and takes the port out if there are too many. */
static void raise_trap(struct ur_nma *nma, enum ur_trap trap, uint8_t port, uint64_t now_ns)
{
	uint64_t *next_ns = &nma->port[port].scanned.trap_next_ns[trap - UR_TRAP_LINK_INTEGRITY];

	if (now_ns < *next_ns)
		return;
	*next_ns = now_ns + TRAP_NS;
	ur_nma_trap(nma, trap, port);
}

/* MGMT-WATCH-01. `before`: at the last scan. */
static void scan_thresholds(struct ur_nma *nma, uint8_t port, const struct nma_scanned *before,
			    uint64_t now_ns)
{
	struct nma_port *p = &nma->port[port];
	struct nma_scanned *s = &p->scanned;
	uint64_t errors =
		s->rx_errors - before->rx_errors + s->symbol_errors - before->symbol_errors;

	if (errors > p->local_phy_errors) {
		p->integrity_errors++;
		raise_trap(nma, UR_TRAP_LINK_INTEGRITY, port, now_ns);
	}
	s->overrun_scans = s->overruns == before->overruns ? 0 : s->overrun_scans + 1;
	if (s->overrun_scans > p->overrun_errors) {
		s->overrun_scans = 0;
		p->excessive_overruns++;
		raise_trap(nma, UR_TRAP_BUFFER_OVERRUN, port, now_ns);
	}
	if (s->flow_control != before->flow_control)
		raise_trap(nma, UR_TRAP_FLOW_CONTROL, port, now_ns);
}

static void scan_port(struct ur_nma *nma, uint8_t port, uint64_t now_ns)
{
	struct nma_scanned *s = &nma->port[port].scanned, before = *s;
	struct ur_nma_counters c = {0};
	uint64_t errors, again;

	nma->attr.ops->get_counters(nma->attr.ctx, port, &c);
	note(s, &c);
	errors = s->rx_errors - before.rx_errors;
	again = s->retransmitted - before.retransmitted;
	if (errors > nma->reg[UR_NODE_ERROR_LIMIT])
		ur_nma_fault(nma, UR_FAULT_ERROR_BURST, port, errors, nma->reg[UR_NODE_ERROR_LIMIT],
			     now_ns);
	if (again > nma->reg[UR_NODE_RETRANSMIT_LIMIT])
		ur_nma_fault(nma, UR_FAULT_RETRANSMITS, port, again,
			     nma->reg[UR_NODE_RETRANSMIT_LIMIT], now_ns);
	scan_thresholds(nma, port, &before, now_ns);
}

void nma_scan(struct ur_nma *nma, uint64_t now_ns)
{
	const struct ur_nma_ops *ops = nma->attr.ops;
	struct ur_nma_gauges g = {0};

	if (ops->get_gauges) {
		ops->get_gauges(nma->attr.ctx, &g);
		scan_gauge(nma, UR_FAULT_HOT, g.load, nma->reg[UR_NODE_LOAD_LIMIT], now_ns);
		scan_gauge(nma, UR_FAULT_MEMPOOL, g.mempool, nma->reg[UR_NODE_MEMPOOL_LIMIT],
			   now_ns);
		scan_gauge(nma, UR_FAULT_RING, g.ring, nma->reg[UR_NODE_RING_LIMIT], now_ns);
	}
	for (unsigned p = 1; ops->get_counters && p <= nma->attr.limits.ports; p++)
		scan_port(nma, (uint8_t)p, now_ns);
	if (nma->stats.full != nma->scanned_full)
		ur_nma_fault(nma, UR_FAULT_FIFO, 0, nma->stats.full - nma->scanned_full, 0, now_ns);
	nma->scanned_full = nma->stats.full;
	nma->scan_next_ns = now_ns + scan_ns(nma);
}
