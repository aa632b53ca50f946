/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"

#include "wire/bits.h"
#include "wire/siphash.h"

#define QUEUE_MAX 4096

/*
 * How long a response is remembered. A requester that repeats waits about a second between its attempts and
 * gives up after a few. A longer memory would answer a new request that happens to equal an old one.
 */
#define MEMORY_NS (UINT64_C(4) * 1000 * 1000 * 1000)

struct layout {
	size_t port, request, pass, answer, notice, total;
};

static bool in_range(uint32_t v, uint32_t max)
{
	return v >= 1 && v <= max;
}

static struct layout layout_of(const struct ur_nma_limits *l)
{
	struct layout at;

	at.port = ur_align64(sizeof(struct ur_nma));
	at.request = at.port + ur_align64((l->ports + 1u) * sizeof(struct nma_port));
	at.pass = at.request + NMA_KINDS * ur_align64(l->requests * sizeof(struct nma_request));
	at.answer = at.pass + ur_align64(l->passing * sizeof(struct ur_nma_out));
	at.notice = at.answer + ur_align64(l->remembered * sizeof(struct nma_answer));
	at.total = at.notice + ur_align64(l->notices * sizeof(struct nma_notice));
	return at;
}

size_t ur_nma_size(const struct ur_nma_limits *l)
{
	if (!in_range(l->ports, 254) || !in_range(l->requests, QUEUE_MAX) ||
	    !in_range(l->passing, QUEUE_MAX) || !in_range(l->remembered, QUEUE_MAX) ||
	    !in_range(l->notices, QUEUE_MAX))
		return 0;
	return layout_of(l).total;
}

struct ur_nma *ur_nma_init(void *memory, const struct ur_nma_attr *attr, uint64_t now_ns)
{
	const struct ur_nma_limits *l = &attr->limits;
	struct layout at = layout_of(l);
	struct ur_nma *nma = memory;
	uint8_t *m = memory;

	UR_ASSERT(ur_nma_size(l) && ((uintptr_t)memory & 15) == 0);
	UR_ASSERT(attr->type == UR_NODE_CA || attr->type == UR_NODE_SWITCH);
	memset(memory, 0, at.total);
	nma->born_ns = nma->now_ns = now_ns;
	nma->attr = *attr;
	nma->first_port = attr->type == UR_NODE_SWITCH ? 0 : 1;
	nma->port = (struct nma_port *)(m + at.port);
	for (unsigned k = 0; k < NMA_KINDS; k++) {
		size_t each = (at.pass - at.request) / NMA_KINDS;

		nma->request[k] = (struct nma_request *)(m + at.request + k * each);
		nma->requests[k].cap = l->requests;
	}
	nma->pass = (struct ur_nma_out *)(m + at.pass);
	nma->answer = (struct nma_answer *)(m + at.answer);
	nma->notice = (struct nma_notice *)(m + at.notice);
	nma->passing.cap = l->passing;
	nma->m_key = attr->config.m_key;
	nma->protect = attr->config.protect & 3;
	nma->lease_s = attr->config.lease_s;
	nma->lease_end_ns = nma->scan_next_ns = nma->notice_next_ns = nma->link_next_ns = NMA_NEVER;
	nma->default_port = 0xff;
	for (unsigned p = nma->first_port; p <= l->ports; p++)
		nma_port_init(nma, (uint8_t)p);
	nma_reg_init(nma);
	for (unsigned p = 1; p <= l->ports; p++) {
		nma->port[p].bist.next_ns = NMA_NEVER;
		nma_ask_neighbour(nma, (uint8_t)p, now_ns);
	}
	nma_eeprom_defaults(nma, now_ns);
	return nma;
}

/* ---- queues ---- */

/* The place of a new element, or -1: the queue is full. */
static int queue_push(struct ur_nma *nma, struct nma_queue *q)
{
	if (q->cnt == q->cap) {
		nma->stats.full++;
		return -1;
	}
	return (q->head + q->cnt++) % q->cap;
}

static unsigned queue_pop(struct nma_queue *q)
{
	unsigned at = q->head;

	q->head = (uint16_t)((at + 1) % q->cap);
	q->cnt--;
	return at;
}

static enum ur_drop pass_on(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_to *to)
{
	int at = queue_push(nma, &nma->passing);

	if (at < 0)
		return UR_DROP_RESOURCES;
	nma->pass[at].to = *to;
	memcpy(nma->pass[at].mad, mad, UR_MAD_BYTES);
	nma->stats.passed += to->way == UR_MAD_HOP;
	return UR_DROP_NONE;
}

static enum ur_drop to_client(struct ur_nma *nma, const uint8_t *mad,
			      const struct ur_nma_from *from)
{
	struct ur_nma_to to = {.way = UR_MAD_LOCAL,
			       .port = from->port,
			       .sqpn = from->sqpn,
			       .dqpn = from->qpn,
			       .slid = from->slid,
			       .dlid = from->dlid,
			       .path = from->path};

	if (!nma->client) {
		nma->stats.unexpected++;
		return UR_DROP_UNEXPECTED;
	}
	return pass_on(nma, mad, &to);
}

/* ---- repeated requests: MGMT-TID-01 ---- */

/* What the seed is used for: each has values that say nothing about the others. */
enum { FOR_TIDS, FOR_HASHES };

uint64_t nma_own_tid(struct ur_nma *nma)
{
	uint64_t number = ++nma->own_tids;
	uint64_t tid = ur_siphash(nma->attr.seed, FOR_TIDS, &number, sizeof(number));

	return tid ? tid : 1;
}

/* Of source and content; not 0. */
static uint64_t hash_of(const struct ur_nma *nma, const uint8_t *mad,
			const struct ur_nma_from *from)
{
	uint8_t all[28 + UR_MAD_BYTES] = {(uint8_t)from->way, from->port, from->qpn};
	uint64_t h;

	ur_store16(all + 4, from->slid);
	ur_store16(all + 6, from->dlid);
	ur_store32(all + 8, from->sqpn);
	if (from->way == UR_MAD_IP) {
		struct ur_gid gid = ur_path_destination(&from->path);

		memcpy(all + 12, gid.b, sizeof(gid.b));
	}
	memcpy(all + 28, mad, UR_MAD_BYTES);
	h = ur_siphash(nma->attr.seed, FOR_HASHES, all, sizeof(all));
	return h ? h : 1;
}

static bool is_repeated(struct ur_nma *nma, unsigned kind, uint64_t hash, uint64_t now_ns)
{
	const struct nma_queue *q = &nma->requests[kind];

	for (unsigned i = 0; i < q->cnt; i++)
		if (nma->request[kind][(q->head + i) % q->cap].hash == hash)
			return true;
	for (unsigned i = 0; i < nma->eeprom_cnt; i++)
		if (nma->eeprom[i].hash == hash)
			return true;
	for (unsigned i = 0; i < nma->attr.limits.remembered; i++) {
		struct nma_answer *a = &nma->answer[i];

		if (a->hash == hash && a->until_ns > now_ns) {
			nma->again_cnt += !a->again;
			a->again = true;
			return true;
		}
	}
	return false;
}

static void remember(struct ur_nma *nma, const struct ur_nma_out *out, uint64_t hash,
		     uint64_t now_ns)
{
	struct nma_answer *a = &nma->answer[nma->answer_next];

	nma->answer_next = (uint16_t)((nma->answer_next + 1) % nma->attr.limits.remembered);
	nma->again_cnt -= a->again;
	*a = (struct nma_answer){.hash = hash, .until_ns = now_ns + MEMORY_NS};
	a->out = *out;
}

/* ---- input ---- */

static bool is_request(uint8_t method)
{
	return method == UR_MAD_METHOD_GET || method == UR_MAD_METHOD_SET ||
	       method == UR_MAD_METHOD_TRAP_REPRESS;
}

bool ur_nma_serves(const uint8_t mad[UR_MAD_BYTES])
{
	return mad[2] == 1 && /* of all three classes */
	       (nma_is_smp(mad) || mad[1] == UR_MAD_CLASS_PERF ||
		(mad[1] == UR_MAD_CLASS_VENDOR &&
		 ur_load24(mad + UR_VENDOR_OUI_AT) == UR_VENDOR_OUI));
}

/*
 * Whether the agent executes it; the rest is for a client. MGMT-STATUS-01: without a client what nothing serves is
 * refused by the agent.
 */
static bool is_for_agent(const struct ur_nma *nma, const uint8_t *mad)
{
	if (!nma->client && ur_mad_wants_response(mad[3]))
		return true;
	if (!is_request(mad[3]))
		return false;
	switch (mad[1]) {
	case UR_MAD_CLASS_PERF:
		return true;
	case UR_MAD_CLASS_VENDOR:
		return ur_load24(mad + UR_VENDOR_OUI_AT) == UR_VENDOR_OUI;
	case UR_MAD_CLASS_SMP_LID:
	case UR_MAD_CLASS_SMP_DR:
		if (ur_load16(mad + 16) == UR_SMP_MANAGER)
			return !nma->client;
		return ur_load16(mad + 16) != UR_SMP_SM_INFO || !nma->client_is_sm;
	default:
		return false;
	}
}

/* `arrived`: the MAD before a directed route moved it on. What only passes through is not hashed: that is most of its work. */
static enum ur_drop take(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from,
			 const uint8_t *arrived, uint64_t now_ns)
{
	unsigned kind = nma_is_smp(mad) ? NMA_SMPS : NMA_GMPS;
	struct nma_request *r;
	uint64_t hash;
	int at;

	if (nma_bist_returned(nma, mad, from))
		return UR_DROP_NONE;
	if (!is_for_agent(nma, mad))
		return to_client(nma, mad, from);
	hash = hash_of(nma, arrived, from);
	if (is_repeated(nma, kind, hash, now_ns)) {
		nma->stats.repeated++;
		return UR_DROP_NONE;
	}
	at = queue_push(nma, &nma->requests[kind]);
	if (at < 0)
		return UR_DROP_RESOURCES;
	r = &nma->request[kind][at];
	r->from = *from;
	r->hash = hash;
	memcpy(r->mad, mad, UR_MAD_BYTES);
	return UR_DROP_NONE;
}

/* A client's MAD for another node, except for directed routes that begin here. */
static bool leaves(const struct ur_nma *nma, const struct ur_nma_from *from, struct ur_nma_to *to)
{
	uint8_t port = nma->first_port;
	uint16_t lid = nma->port[port].lid;

	*to = (struct ur_nma_to){.port = port, .sqpn = from->sqpn, .dqpn = from->qpn};
	if (from->path.len) {
		to->way = UR_MAD_IP;
		to->path = from->path;
		return true;
	}
	if (from->dlid == 0 || from->dlid == UR_LID_PERMISSIVE ||
	    (lid && from->dlid >> nma->port[port].lmc == lid >> nma->port[port].lmc))
		return false;
	to->way = UR_MAD_LID;
	to->slid = lid;
	to->dlid = from->dlid;
	return true;
}

static enum ur_drop malformed(struct ur_nma *nma)
{
	nma->stats.malformed++;
	return UR_DROP_MAD;
}

enum ur_drop ur_nma_input(struct ur_nma *nma, const uint8_t mad[UR_MAD_BYTES],
			  const struct ur_nma_from *from, uint64_t now_ns)
{
	uint8_t moved[UR_MAD_BYTES];
	struct ur_nma_to to;

	nma->stats.rx++;
	nma->now_ns = now_ns;
	if (from->way == UR_MAD_LOCAL && leaves(nma, from, &to))
		return pass_on(nma, mad, &to);
	/* QP0 takes SMPs only, and only QP0 does (IBA 13.5.1). */
	if (mad[0] != UR_MAD_BASE_VERSION || nma_is_smp(mad) != (from->qpn == UR_SMI_QPN))
		return malformed(nma);
	if (from->way != UR_MAD_LOCAL && (from->port == 0 || from->port > nma->attr.limits.ports))
		return malformed(nma);
	if (mad[1] != UR_MAD_CLASS_SMP_DR)
		return take(nma, mad, from, mad, now_ns);
	memcpy(moved, mad, UR_MAD_BYTES);
	switch (nma_route_dr(nma, moved, from, &to)) {
	case NMA_HERE:
		return take(nma, moved, from, mad, now_ns);
	case NMA_CLIENT:
		if (nma_learn_neighbour(nma, moved, from))
			return UR_DROP_NONE;
		return to_client(nma, moved, from);
	case NMA_OUT:
		return pass_on(nma, moved, &to);
	case NMA_DISCARD:
	default:
		return malformed(nma);
	}
}

/* ---- execution ---- */

/* *wait_ns: how long the response has to wait, 0 as a rule. */
static enum ur_mad_status execute(struct ur_nma *nma, struct nma_request *r, uint64_t now_ns,
				  uint64_t *wait_ns)
{
	struct nma_call call = {
		.mad = r->mad,
		.data = nma_eeprom_body(r->mad),
		.from = &r->from,
		.attr_id = ur_load16(r->mad + 16),
		.attr_mod = ur_load32(r->mad + 20),
		.now_ns = now_ns,
		.set = r->mad[3] == UR_MAD_METHOD_SET,
	};

	*wait_ns = 0;
	if (!ur_nma_serves(r->mad))
		return UR_MAD_STATUS_BAD_VERSION;
	if (r->mad[3] != UR_MAD_METHOD_GET && r->mad[3] != UR_MAD_METHOD_SET)
		return UR_MAD_STATUS_METHOD;
	if (call.data)
		return nma_eeprom(nma, &call, wait_ns);
	switch (r->mad[1]) {
	case UR_MAD_CLASS_PERF:
		call.data = r->mad + UR_GMP_DATA;
		return nma_perf(nma, &call);
	case UR_MAD_CLASS_VENDOR:
		call.data = r->mad + UR_VENDOR_BODY;
		return nma_vendor(nma, &call);
	default:
		call.data = r->mad + UR_SMP_DATA;
		return nma_smp(nma, &call);
	}
}

/* The response to a request: in the request's own bytes. False: there is no way back. */
static bool respond(struct ur_nma *nma, struct nma_request *r, enum ur_mad_status status,
		    struct ur_nma_out *out)
{
	const struct ur_nma_from *from = &r->from;
	uint8_t *mad = r->mad;

	nma->stats.refused += status != UR_MAD_STATUS_OK;
	mad[3] = ur_mad_response_method(mad[3]);
	ur_store16(mad + 4, (uint16_t)status);
	if (mad[1] == UR_MAD_CLASS_SMP_DR) {
		ur_store16(mad + 4, (uint16_t)status | UR_SMP_DIRECTION);
		switch (nma_return_dr(nma, mad, from, &out->to)) {
		case NMA_OUT:
			break;
		case NMA_CLIENT:
			out->to = (struct ur_nma_to){.way = UR_MAD_LOCAL};
			break;
		default:
			return false;
		}
	} else {
		out->to = (struct ur_nma_to){
			.way = from->way,
			.port = from->port,
			.sqpn = from->qpn,
			.dqpn = from->sqpn,
			.slid = from->dlid,
			.dlid = from->slid,
			.path = from->path,
		};
		if (from->way == UR_MAD_LID && nma_is_switch(nma))
			out->to.port = 0;
	}
	memcpy(out->mad, mad, UR_MAD_BYTES);
	return true;
}

/* The response of the E2PROM, when it is ready: MGMT-EEPROM-01. */
static bool next_eeprom(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns)
{
	struct nma_request *r = nma_eeprom_done(nma, now_ns);
	bool is_set, responds;

	if (!r)
		return false;
	is_set = r->mad[3] == UR_MAD_METHOD_SET;
	responds = respond(nma, r, UR_MAD_STATUS_OK, out);
	if (responds && is_set)
		remember(nma, out, r->hash, now_ns);
	nma_eeprom_next(nma, now_ns);
	return responds;
}

/* Executes waiting requests of a kind until one has a response. */
static bool next_of_kind(struct ur_nma *nma, unsigned kind, struct ur_nma_out *out, uint64_t now_ns)
{
	while (nma->requests[kind].cnt) {
		struct nma_request *r = &nma->request[kind][queue_pop(&nma->requests[kind])];
		enum ur_mad_status status;
		uint64_t wait_ns;
		bool is_set;

		/* MGMT-KEY-05: ahead of everything that a request can do. */
		if (!nma_check_key(nma, r->mad, &r->from, now_ns))
			continue;
		nma->stats.executed++;
		if (r->mad[3] == UR_MAD_METHOD_TRAP_REPRESS) {
			nma_repress(nma, r->mad);
			continue;
		}
		is_set = r->mad[3] == UR_MAD_METHOD_SET;
		status = execute(nma, r, now_ns, &wait_ns);
		if (wait_ns && nma_eeprom_take(nma, r, now_ns))
			continue;
		if (wait_ns)
			status = UR_MAD_STATUS_BUSY;
		if (!respond(nma, r, status, out))
			continue;
		/*
		 * A repeated Get is executed again: it has no effect, what it shows is new, and it takes no place from
		 * a Set. What was refused had no effect either.
		 */
		if (is_set && status == UR_MAD_STATUS_OK)
			remember(nma, out, r->hash, now_ns);
		return true;
	}
	return false;
}

/* MGMT-QUEUE-01 */
static bool next_response(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns)
{
	return next_of_kind(nma, NMA_SMPS, out, now_ns) || next_of_kind(nma, NMA_GMPS, out, now_ns);
}

static bool next_again(struct ur_nma *nma, struct ur_nma_out *out)
{
	if (!nma->again_cnt)
		return false;
	for (unsigned i = 0; i < nma->attr.limits.remembered; i++) {
		struct nma_answer *a = &nma->answer[i];

		if (!a->again)
			continue;
		a->again = false;
		nma->again_cnt--;
		*out = a->out;
		return true;
	}
	UR_ASSERT(!"an answer is to be sent again");
	return false;
}

bool ur_nma_output(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns)
{
	bool made = false;

	nma->now_ns = now_ns;
	if (nma->passing.cnt) {
		*out = nma->pass[queue_pop(&nma->passing)];
		made = true;
	}
	made = made || next_again(nma, out) || next_eeprom(nma, out, now_ns) ||
	       next_response(nma, out, now_ns) || nma_next_link(nma, out, now_ns) ||
	       nma_next_notice(nma, out, now_ns);
	nma->stats.tx += made && out->to.way != UR_MAD_LOCAL;
	return made;
}

/* When the agent has something to send that nothing asks for at that time. */
static uint64_t next_own(const struct ur_nma *nma)
{
	uint64_t next = nma->eeprom_cnt ? nma->eeprom_due_ns : NMA_NEVER;

	next = nma->notice_next_ns < next ? nma->notice_next_ns : next;
	return nma->link_next_ns < next ? nma->link_next_ns : next;
}

bool ur_nma_wants_output(const struct ur_nma *nma)
{
	return nma->passing.cnt || nma->again_cnt || nma->requests[NMA_SMPS].cnt ||
	       nma->requests[NMA_GMPS].cnt || next_own(nma) <= nma->now_ns;
}

/* ---- time ---- */

uint64_t ur_nma_next_deadline(const struct ur_nma *nma)
{
	uint64_t next = next_own(nma);

	if (next <= nma->now_ns)
		next = NMA_NEVER;
	next = nma->lease_end_ns < next ? nma->lease_end_ns : next;
	return nma->scan_next_ns < next ? nma->scan_next_ns : next;
}

void ur_nma_expire(struct ur_nma *nma, uint64_t now_ns)
{
	nma->now_ns = now_ns;
	nma_check_lease(nma, now_ns);
	if (now_ns >= nma->scan_next_ns)
		nma_scan(nma, now_ns);
}

/* ---- the rest ---- */

void ur_nma_link_event(struct ur_nma *nma, uint8_t port, uint64_t now_ns)
{
	uint8_t before = nma->port[port].state;
	bool up = nma_link(nma, port).up;

	UR_ASSERT(port >= 1 && port <= nma->attr.limits.ports);
	nma->now_ns = now_ns;
	nma->port[port].failed |= !up && before != UR_PORT_DOWN && !nma->port[port].disabled;
	nma->port[port].link_recovered += up && nma->port[port].failed;
	nma->port[port].failed &= !up;
	nma_port_link(nma, port, up);
	nma_ask_neighbour(nma, port, now_ns);
	if (nma->port[port].state != before)
		ur_nma_fault(nma, up ? UR_FAULT_LINK_UP : UR_FAULT_LINK_DOWN, port, 0, 0, now_ns);
}

bool ur_nma_query(struct ur_nma *nma, enum ur_smp_attr attr, uint32_t attr_mod, uint8_t *data)
{
	static const struct ur_nma_from here = {.way = UR_MAD_LOCAL};
	uint8_t mad[UR_MAD_BYTES] = {UR_MAD_BASE_VERSION, UR_MAD_CLASS_SMP_DR, UR_SMP_VERSION,
				     UR_MAD_METHOD_GET};
	struct nma_call call = {.mad = mad,
				.data = mad + UR_SMP_DATA,
				.from = &here,
				.attr_id = (uint16_t)attr,
				.attr_mod = attr_mod,
				.now_ns = nma->now_ns};

	ur_store64(mad + UR_SMP_MKEY, nma->m_key);
	if (nma_smp(nma, &call) != UR_MAD_STATUS_OK)
		return false;
	memcpy(data, call.data, UR_SMP_DATA_BYTES);
	return true;
}

void ur_nma_set_client(struct ur_nma *nma, bool present, bool is_sm)
{
	uint8_t details[UR_NOTICE_DETAILS_BYTES] = {0};
	bool was_sm = nma->client_is_sm;

	nma->client = present;
	nma->client_is_sm = present && is_sm;
	if (nma->client_is_sm == was_sm)
		return;
	ur_store16(details + 2, nma->port[nma->first_port].lid);
	ur_store32(details + 6, nma_capabilities(nma));
	nma_trap(nma, UR_TRAP_CAPABILITY, 0, details);
}

uint16_t ur_nma_lid(const struct ur_nma *nma, uint8_t port, uint8_t *lmc)
{
	const struct nma_port *p = nma_end_port(nma, port);

	*lmc = p->lmc;
	return p->lid;
}

enum ur_port_state ur_nma_port_state(const struct ur_nma *nma, uint8_t port)
{
	return (enum ur_port_state)nma->port[port].state;
}

const struct ur_nma_stats *ur_nma_stats(const struct ur_nma *nma)
{
	return &nma->stats;
}

void ur_nma_validate(const struct ur_nma *nma)
{
	unsigned again = 0;

	for (unsigned k = 0; k < NMA_KINDS; k++)
		UR_ASSERT(nma->requests[k].cnt <= nma->requests[k].cap);
	UR_ASSERT(nma->eeprom_cnt <= NMA_EEPROM_REQUESTS);
	UR_ASSERT(nma->passing.cnt <= nma->passing.cap);
	for (unsigned i = 0; i < nma->attr.limits.remembered; i++)
		again += nma->answer[i].again;
	UR_ASSERT(again == nma->again_cnt);
	for (unsigned p = nma->first_port; p <= nma->attr.limits.ports; p++) {
		UR_ASSERT(nma->port[p].state >= UR_PORT_DOWN);
		UR_ASSERT(nma->port[p].state <= UR_PORT_ACTIVE);
		UR_ASSERT(nma->port[p].lid < 0xc000 && nma->port[p].lmc <= 7);
	}
}
