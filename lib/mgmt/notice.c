/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"
#include "mgmt/registers.h"

/*
 * Traps and fault reports. Both are notices that are sent until the manager represses them, a bounded number of
 * times (MGMT-TRAP-01). A notice about what another one that is still pending reports is counted there.
 */
#define REPEAT_NS UINT64_C(1000000000)
#define TRIES_MAX 8
#define FAULT_KEY 0x8000 /* in nma_notice.what: a cause, otherwise a trap number */

/* ---- where they go ---- */

void nma_report_to(struct ur_nma *nma, const struct ur_nma_from *from, const uint8_t *mad)
{
	struct nma_manager *m = &nma->manager;

	m->set = from != NULL;
	if (!from)
		return;
	m->from = *from;
	m->mgmt_class = mad[1];
	m->hops = 0;
	if (mad[1] != UR_MAD_CLASS_SMP_DR)
		return;
	if (from->way == UR_MAD_LID)
		m->mgmt_class = UR_MAD_CLASS_SMP_LID;
	m->hops = mad[UR_SMP_HOP_COUNT];
	for (unsigned i = 1; i <= m->hops; i++)
		m->route[i] = mad[UR_SMP_RETURN + m->hops + 1 - i];
}

/* To the subnet manager, LID-routed. False: there is none. */
static bool to_sm(struct ur_nma *nma, struct ur_nma_to *to)
{
	const struct nma_port *p = &nma->port[nma->first_port];

	if (!p->sm_lid || !p->lid)
		return false;
	*to = (struct ur_nma_to){.way = p->sm_lid == p->lid ? UR_MAD_LOCAL : UR_MAD_LID,
				 .port = nma->first_port,
				 .slid = p->lid,
				 .dlid = p->sm_lid};
	return to->way == UR_MAD_LID || nma->client;
}

/* Header and destination of a report to the manager that asked for reports. */
static bool to_manager(struct ur_nma *nma, uint8_t *mad, struct ur_nma_to *to)
{
	static const struct ur_nma_from here = {.way = UR_MAD_LOCAL};
	const struct nma_manager *m = &nma->manager;

	mad[1] = m->mgmt_class;
	if (m->from.way == UR_MAD_LOCAL) {
		*to = (struct ur_nma_to){.way = UR_MAD_LOCAL, .sqpn = m->from.qpn};
		to->dqpn = m->from.qpn;
		return nma->client;
	}
	if (m->mgmt_class == UR_MAD_CLASS_SMP_DR) {
		mad[UR_SMP_HOP_COUNT] = m->hops;
		ur_store16(mad + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
		ur_store16(mad + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
		memcpy(mad + UR_SMP_INITIAL, m->route, sizeof(m->route));
		return nma_route_dr(nma, mad, &here, to) == NMA_OUT;
	}
	*to = (struct ur_nma_to){
		.way = m->from.way,
		.port = nma_is_switch(nma) && m->from.way == UR_MAD_LID ? 0 : m->from.port,
		.sqpn = m->from.qpn,
		.dqpn = m->from.sqpn,
		.slid = m->from.dlid,
		.dlid = m->from.slid,
		.path = m->from.path,
	};
	return true;
}

/* ---- pending notices ---- */

static void update_next(struct ur_nma *nma)
{
	nma->notice_next_ns = NMA_NEVER;
	for (unsigned i = 0; i < nma->attr.limits.notices; i++)
		if (nma->notice[i].tid && nma->notice[i].next_ns < nma->notice_next_ns)
			nma->notice_next_ns = nma->notice[i].next_ns;
}

/* The notice about the same that is pending, or NULL. */
static struct nma_notice *find_notice(struct ur_nma *nma, uint16_t what, uint8_t port)
{
	for (unsigned i = 0; i < nma->attr.limits.notices; i++) {
		struct nma_notice *n = &nma->notice[i];

		if (n->tid && n->what == what && n->port == port)
			return n;
	}
	return NULL;
}

/*
 * Counts one more of what a notice reports that is pending. A TrapRepress that is under way is for those before it, and
 * what the manager reads meanwhile may be older than this one (MGMT-TRAP-03).
 */
static void happened_again(struct ur_nma *nma, struct nma_notice *pending)
{
	struct ur_notice head;

	ur_get_notice(pending->data, &head);
	head.count += head.count < 0x7fff;
	ur_put_notice(pending->data, &head);
	pending->tid = nma_own_tid(nma);
	pending->tries = 0;
}

static void put_head(const struct ur_nma *nma, struct nma_notice *n, struct ur_notice *head)
{
	head->issuer_lid = nma->port[nma->first_port].lid;
	head->count = 1;
	ur_put_notice(n->data, head);
}

/*
 * The notice that is pending about the same, or else a new one with this head; NULL: there is no room. The caller puts
 * the newest details there: a manager asks for the last ones, and confirms no others.
 */
static struct nma_notice *notice_about(struct ur_nma *nma, uint16_t what, uint8_t port,
				       struct ur_notice *head)
{
	struct nma_notice *n = find_notice(nma, what, port);

	if (n) {
		happened_again(nma, n);
		return n;
	}
	for (unsigned i = 0; i < nma->attr.limits.notices; i++)
		if (!nma->notice[i].tid)
			n = &nma->notice[i];
	if (!n) {
		nma->stats.notices_lost++;
		return NULL;
	}
	*n = (struct nma_notice){.tid = nma_own_tid(nma), .what = what, .port = port};
	nma->notice_next_ns = 0;
	put_head(nma, n, head);
	return n;
}

void nma_trap(struct ur_nma *nma, enum ur_trap trap, uint8_t port, const uint8_t *details)
{
	struct ur_notice head = {
		.is_generic = 1, .producer = nma->attr.type, .trap = (uint16_t)trap};
	struct nma_notice *n;

	switch (trap) {
#define X(name, number, urgency, text)                                                             \
	case UR_TRAP_##name:                                                                       \
		head.type = urgency;                                                               \
		break;
		UR_TRAPS(X)
#undef X
	}
	n = notice_about(nma, (uint16_t)trap, port, &head);
	if (n)
		memcpy(n->data + UR_NOTICE_DETAILS, details, UR_NOTICE_DETAILS_BYTES);
}

void ur_nma_trap(struct ur_nma *nma, enum ur_trap trap, uint8_t port)
{
	uint8_t details[UR_NOTICE_DETAILS_BYTES] = {0};
	uint16_t lid = nma->port[nma->first_port].lid;

	UR_ASSERT(trap >= UR_TRAP_LINK_STATE && trap <= UR_TRAP_FLOW_CONTROL);
	if (trap == UR_TRAP_LINK_STATE) {
		ur_store16(details, lid);
		port = 0; /* one for the whole switch */
	} else {
		ur_store16(details + 2, lid);
		details[4] = port;
	}
	nma_trap(nma, trap, port, details);
}

void nma_trap_bad_key(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from)
{
	uint8_t d[UR_NOTICE_DETAILS_BYTES] = {0};
	uint8_t hops = mad[UR_SMP_HOP_COUNT];

	ur_store16(d + 2, from->way == UR_MAD_LID ? from->slid : UR_LID_PERMISSIVE);
	d[6] = mad[3];
	memcpy(d + 8, mad + 16, 2);
	memcpy(d + 10, mad + 20, 4);
	memcpy(d + 14, mad + UR_SMP_MKEY, 8);
	if (mad[1] == UR_MAD_CLASS_SMP_DR) {
		memcpy(d + 4, mad + UR_SMP_DR_SLID, 2);
		d[23] = (uint8_t)(0x80 | (hops > 30 ? 0x40 | 30 : hops));
		memcpy(d + 24, mad + UR_SMP_RETURN + 1, hops > 30 ? 30 : hops);
	}
	nma_trap(nma, UR_TRAP_BAD_M_KEY, 0, d);
}

/* MGMT-FAULT-01 */
void ur_nma_fault(struct ur_nma *nma, enum ur_fault_cause cause, uint8_t port, uint64_t value,
		  uint64_t limit, uint64_t now_ns)
{
	uint64_t bit = UINT64_C(1) << cause, *reg = nma->reg;
	struct ur_notice head = {.type = 1, .producer = UR_VENDOR_OUI, .trap = UR_FAULT_NOTICE};
	struct ur_fault fault = {
		.severity = (uint8_t)ur_fault_severity(cause),
		.cause = (uint8_t)cause,
		.port = port,
		.time_ns = now_ns - nma->born_ns,
		.value = value,
		.limit = limit,
		.node_guid = nma->attr.node_guid,
	};
	struct nma_notice *n;

	reg[UR_NODE_FAULT_STATUS] |= bit;
	fault.sequence = (uint32_t)++reg[UR_NODE_FAULT_COUNT];
	reg[UR_NODE_FAULT_CAUSE] = cause | (uint64_t)port << 8;
	reg[UR_NODE_FAULT_TIME_NS] = fault.time_ns;
	reg[UR_NODE_FAULT_VALUE] = value;
	reg[UR_NODE_FAULT_LIMIT] = limit;
	if (!(reg[UR_NODE_FAULT_ENABLE] & ~reg[UR_NODE_FAULT_MASK] & bit) ||
	    fault.severity < reg[UR_NODE_FAULT_SEVERITY])
		return;
	n = notice_about(nma, (uint16_t)(FAULT_KEY | cause), port, &head);
	if (n)
		ur_put_fault(n->data + UR_NOTICE_DETAILS, &fault);
}

static struct nma_notice *due_notice(struct ur_nma *nma, uint64_t now_ns)
{
	for (unsigned i = 0; i < nma->attr.limits.notices; i++)
		if (nma->notice[i].tid && nma->notice[i].next_ns <= now_ns)
			return &nma->notice[i];
	return NULL;
}

/* Makes the MAD of a notice; false: it has no destination. */
static bool make_notice(struct ur_nma *nma, const struct nma_notice *n, struct ur_nma_out *out)
{
	bool known;

	memset(out->mad, 0, UR_MAD_BYTES);
	out->mad[0] = UR_MAD_BASE_VERSION;
	out->mad[1] = UR_MAD_CLASS_SMP_LID;
	out->mad[2] = UR_SMP_VERSION;
	out->mad[3] = UR_MAD_METHOD_TRAP;
	ur_store64(out->mad + 8, n->tid);
	ur_store16(out->mad + 16, UR_SMP_NOTICE);
	known = n->what & FAULT_KEY && nma->manager.set ? to_manager(nma, out->mad, &out->to)
							: to_sm(nma, &out->to);
	if (out->mad[1] == UR_MAD_CLASS_VENDOR) {
		ur_store24(out->mad + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
		memcpy(out->mad + UR_VENDOR_BODY, n->data, sizeof(n->data));
	} else {
		memcpy(out->mad + UR_SMP_DATA, n->data, sizeof(n->data));
	}
	return known;
}

bool nma_next_notice(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns)
{
	struct nma_notice *n;
	bool sent = false;

	if (nma->notice_next_ns > now_ns)
		return false;
	while (!sent && (n = due_notice(nma, now_ns))) {
		sent = make_notice(nma, n, out);
		n->by_gmp = !nma_is_smp(out->mad);
		n->next_ns = now_ns + REPEAT_NS;
		nma->stats.traps += sent;
		nma->stats.no_manager += !sent;
		if (!sent || ++n->tries == TRIES_MAX) {
			nma->stats.notices_lost += sent;
			n->tid = 0;
		}
	}
	update_next(nma);
	return sent;
}

/* MGMT-TRAP-02: in the class of the notice. That of SMPs has a key, which was checked. */
void nma_repress(struct ur_nma *nma, const uint8_t *mad)
{
	bool by_gmp = !nma_is_smp(mad);

	if (by_gmp && mad[1] != UR_MAD_CLASS_VENDOR)
		return;
	for (unsigned i = 0; i < nma->attr.limits.notices; i++)
		if (nma->notice[i].tid && nma->notice[i].tid == nma_tid(mad) &&
		    nma->notice[i].by_gmp == by_gmp)
			nma->notice[i].tid = 0;
	update_next(nma);
}
