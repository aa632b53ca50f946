/* SPDX-License-Identifier: BSD-3-Clause */
#include "umad/mux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "umad/mux_priv.h"
#include "wire/mad.h"
#include "wire/smp.h"
#include "wire/siphash.h"

#define IS_VENDOR2(c) ((c) >= 0x30 && (c) <= 0x4f)
#define METHODS	      128

/* As kernel and libibumad treat TransactionIDs: a program owns the lower half. UMAD-TID-01 */
#define TID_LOW 0xffffffffull

void mux_init(struct mux *m, const struct mux_ops *ops, void *arg, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->ops = ops;
	m->arg = arg;
	m->seed = seed;
	TAILQ_INIT(&m->programs);
	TAILQ_INIT(&m->transfers);
	TAILQ_INIT(&m->assemblies);
}

void mux_fini(struct mux *m)
{
	while (!TAILQ_EMPTY(&m->programs))
		mux_close(m, TAILQ_FIRST(&m->programs));
}

struct mux_program *mux_open(struct mux *m, void *program)
{
	struct mux_program *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->arg = program;
	TAILQ_INSERT_TAIL(&m->programs, p, link);
	return p;
}

static size_t room_of(uint32_t length)
{
	return length > UR_UMAD_MAD_BYTES ? length : UR_UMAD_MAD_BYTES;
}

void mux_end_transfer(struct mux *m, struct mux_transfer *t)
{
	TAILQ_REMOVE(&m->transfers, t, link);
	t->program->transfers--;
	t->program->bytes -= room_of(t->length);
	free(t->mad);
	free(t);
}

/* Ends what the program, or one of its agents, has under way; agent UR_UMAD_AGENTS: all of them. UMAD-END-01 */
static void end_all(struct mux *m, const struct mux_program *p, uint32_t agent)
{
	struct mux_transfer *t, *next_t;
	struct mux_assembly *a, *next_a;

	for (t = TAILQ_FIRST(&m->transfers); t != NULL; t = next_t) {
		next_t = TAILQ_NEXT(t, link);
		if (t->program == p && (agent == UR_UMAD_AGENTS || t->umad.agent_id == agent))
			mux_end_transfer(m, t);
	}
	for (a = TAILQ_FIRST(&m->assemblies); a != NULL; a = next_a) {
		next_a = TAILQ_NEXT(a, link);
		if (a->program == p && (agent == UR_UMAD_AGENTS || a->umad.agent_id == agent))
			mux_end_assembly(m, a);
	}
}

void mux_close(struct mux *m, struct mux_program *p)
{
	end_all(m, p, UR_UMAD_AGENTS);
	TAILQ_REMOVE(&m->programs, p, link);
	free(p);
}

static bool has_method(const struct ur_umad_register *r, unsigned method)
{
	return method < METHODS && (r->methods[method / 64] >> method % 64 & 1) != 0;
}

/* The same requests could be for both. UMAD-METHOD-01 */
static bool conflict(const struct ur_umad_register *a, const struct ur_umad_register *b)
{
	return a->mgmt_class == b->mgmt_class && a->class_version == b->class_version &&
	       (!IS_VENDOR2(a->mgmt_class) || a->oui == b->oui) &&
	       ((a->methods[0] & b->methods[0]) != 0 || (a->methods[1] & b->methods[1]) != 0);
}

static struct mux_agent *find_by_tid(struct mux *m, uint32_t tid_high, struct mux_program **program)
{
	struct mux_program *p;

	TAILQ_FOREACH(p, &m->programs, link)
	for (unsigned i = 0; i < UR_UMAD_AGENTS; i++)
		if (p->agents[i].used && p->agents[i].tid_high == tid_high) {
			*program = p;
			return &p->agents[i];
		}
	return NULL;
}

int mux_register(struct mux *m, struct mux_program *p, const struct ur_umad_register *reg)
{
	struct mux_program *other;
	uint32_t tid_high;
	int free_agent = -1;

	if (reg->rmpp_version > 1 || (IS_VENDOR2(reg->mgmt_class) && reg->oui == 0))
		return -EINVAL;
	TAILQ_FOREACH(other, &m->programs, link)
	for (unsigned i = 0; i < UR_UMAD_AGENTS; i++)
		if (other->agents[i].used && conflict(&other->agents[i].reg, reg))
			return -EINVAL;
	for (int i = UR_UMAD_AGENTS - 1; i >= 0; i--)
		if (!p->agents[i].used)
			free_agent = i;
	if (free_agent < 0)
		return -ENOMEM;
	do {
		m->agents++;
		tid_high = (uint32_t)ur_siphash(m->seed, 0, &m->agents, sizeof(m->agents));
	} while (tid_high == 0 || find_by_tid(m, tid_high, &other) != NULL);
	p->agents[free_agent] = (struct mux_agent){.used = true, .tid_high = tid_high, .reg = *reg};
	return free_agent;
}

int mux_unregister(struct mux *m, struct mux_program *p, uint32_t agent)
{
	if (agent >= UR_UMAD_AGENTS || !p->agents[agent].used)
		return -EINVAL;
	end_all(m, p, agent);
	p->agents[agent].used = false;
	return 0;
}

void mux_deliver(struct mux *m, struct mux_program *p, const struct ib_user_mad *umad,
		 const uint8_t *mad, uint32_t length)
{
	struct ur_umad_mad head = {.kind = UR_UMAD_MAD, .length = length};

	memcpy(&head.umad, umad, sizeof(head.umad));
	head.umad.length = (uint32_t)sizeof(head.umad) + length;
	m->counters.delivered++;
	m->ops->deliver(m->arg, p->arg, &head, mad);
}

/* TrapRepress answers a trap, but is no response by its method. */
static bool is_response(const uint8_t *mad)
{
	return (mad[MAD_METHOD] & MAD_RESPONSE) != 0 || mad[MAD_METHOD] == 0x07;
}

void mux_await_response(struct mux_transfer *t, uint64_t now)
{
	t->deadline = now + t->umad.timeout_ms * MS_NS;
}

/* A directed route has no LID at its ends; the permissive one is answered by whatever took it. */
static bool is_from(const struct mux_transfer *t, uint16_t lid_be)
{
	return t->mad[MAD_CLASS] == MAD_CLASS_DIRECTED || t->umad.addr.lid == lid_be ||
	       t->umad.addr.lid == 0xffff || t->umad.addr.lid == 0;
}

struct mux_transfer *mux_find_request(struct mux *m, const struct mux_program *p, uint64_t tid,
				      uint8_t mgmt_class, uint16_t lid_be)
{
	struct mux_transfer *t;

	TAILQ_FOREACH(t, &m->transfers, link)
	if (t->waits && t->program == p && t->mad[MAD_CLASS] == mgmt_class &&
	    ur_load64(t->mad + MAD_TID) == tid && is_from(t, lid_be))
		return t;
	return NULL;
}

static struct mux_transfer *start_transfer(struct mux *m, struct mux_program *p,
					   const struct ur_umad_mad *head, const uint8_t *mad)
{
	size_t bytes = room_of(head->length);
	struct mux_transfer *t = NULL;

	if (p->transfers < MUX_TRANSFERS_MAX && bytes <= MUX_BYTES_MAX - p->bytes)
		t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->mad = calloc(1, bytes);
	if (t->mad == NULL) {
		free(t);
		return NULL;
	}
	memcpy(t->mad, mad, head->length);
	memcpy(&t->umad, &head->umad, sizeof(t->umad));
	t->program = p;
	t->length = head->length;
	t->retries_left = head->umad.retries;
	TAILQ_INSERT_TAIL(&m->transfers, t, link);
	p->transfers++;
	p->bytes += bytes;
	return t;
}

void mux_submit(struct mux *m, struct mux_program *p, const struct ur_umad_mad *head,
		const uint8_t *mad, uint64_t now)
{
	const struct mux_agent *agent;
	struct mux_transfer *t;
	bool rmpp;

	if (head->umad.agent_id >= UR_UMAD_AGENTS || !p->agents[head->umad.agent_id].used ||
	    head->length < UR_UMAD_MIN_BYTES) {
		m->counters.refused++;
		return;
	}
	agent = &p->agents[head->umad.agent_id];
	rmpp = agent->reg.rmpp_version != 0 && !agent->reg.user_rmpp && mux_rmpp_is_active(mad);
	if ((!rmpp && head->length > UR_UMAD_MAD_BYTES) ||
	    (rmpp && head->length < mux_header_bytes(mad[MAD_CLASS])) ||
	    (t = start_transfer(m, p, head, mad)) == NULL) {
		m->counters.refused++;
		return;
	}
	m->counters.sent++;
	t->waits = !is_response(mad) && head->umad.timeout_ms != 0;
	if (!is_response(mad))
		ur_store64(t->mad + MAD_TID,
			   (uint64_t)agent->tid_high << 32 | (ur_load64(mad + MAD_TID) & TID_LOW));
	if (rmpp) {
		mux_rmpp_start(m, t, now);
		return;
	}
	m->ops->send(m->arg, t->mad, &t->umad.addr);
	if (t->waits)
		mux_await_response(t, now);
	else
		mux_end_transfer(m, t);
}

/* The agent that a MAD from the fabric is for, or NULL. */
static struct mux_agent *find_agent(struct mux *m, const uint8_t *mad, struct mux_program **program)
{
	uint8_t mgmt_class = mad[MAD_CLASS];
	struct mux_program *p;

	if ((mad[MAD_METHOD] & MAD_RESPONSE) != 0)
		return find_by_tid(m, ur_load32(mad + MAD_TID), program);
	TAILQ_FOREACH(p, &m->programs, link)
	for (unsigned i = 0; i < UR_UMAD_AGENTS; i++) {
		const struct ur_umad_register *r = &p->agents[i].reg;

		if (p->agents[i].used && r->mgmt_class == mgmt_class &&
		    r->class_version == mad[MAD_VERSION] && has_method(r, mad[MAD_METHOD]) &&
		    (!IS_VENDOR2(mgmt_class) || r->oui == ur_load24(mad + MAD_VENDOR_OUI))) {
			*program = p;
			return &p->agents[i];
		}
	}
	return NULL;
}

bool mux_input(struct mux *m, const uint8_t *mad, const struct ib_mad_addr *from, uint64_t now)
{
	struct mux_program *p = NULL;
	struct mux_agent *agent = find_agent(m, mad, &p);
	struct ib_user_mad umad = {0};
	struct mux_transfer *t;

	if (agent == NULL) {
		if ((mad[MAD_METHOD] & MAD_RESPONSE) != 0) {
			m->counters.unmatched_responses++;
			return true;
		}
		m->counters.unmatched_requests++;
		return false;
	}
	umad.agent_id = (uint32_t)(agent - p->agents);
	umad.addr = *from;
	if (agent->reg.rmpp_version != 0 && !agent->reg.user_rmpp && mux_rmpp_is_active(mad)) {
		mux_rmpp_input(m, p, umad.agent_id, mad, from, now);
		return true;
	}
	if ((mad[MAD_METHOD] & MAD_RESPONSE) != 0) {
		t = mux_find_request(m, p, ur_load64(mad + MAD_TID), mad[MAD_CLASS], from->lid);
		if (t == NULL) {
			m->counters.unmatched_responses++;
			return true;
		}
		mux_end_transfer(m, t);
	}
	mux_deliver(m, p, &umad, mad, UR_UMAD_MAD_BYTES);
	return true;
}

/* Whether a program serves requests of the MAD's class and version. */
static bool serves_class(const struct mux *m, const uint8_t *mad)
{
	const struct mux_program *p;

	TAILQ_FOREACH(p, &m->programs, link)
	for (unsigned i = 0; i < UR_UMAD_AGENTS; i++) {
		const struct ur_umad_register *r = &p->agents[i].reg;

		if (p->agents[i].used && r->mgmt_class == mad[MAD_CLASS] &&
		    r->class_version == mad[MAD_VERSION] &&
		    (r->methods[0] != 0 || r->methods[1] != 0) &&
		    (!IS_VENDOR2(mad[MAD_CLASS]) || r->oui == ur_load24(mad + MAD_VENDOR_OUI)))
			return true;
	}
	return false;
}

static enum ur_mad_status why_refused(const struct mux *m, const uint8_t *mad, bool is_served)
{
	bool is_smp =
		mad[MAD_CLASS] == UR_MAD_CLASS_SMP_LID || mad[MAD_CLASS] == MAD_CLASS_DIRECTED;

	if (!is_served && !serves_class(m, mad))
		return UR_MAD_STATUS_BAD_VERSION;
	/* Of SMPs, the node leaves some attributes to programs. */
	return is_smp && (mad[MAD_METHOD] == UR_MAD_METHOD_GET ||
			  mad[MAD_METHOD] == UR_MAD_METHOD_SET)
		       ? UR_MAD_STATUS_ATTRIBUTE
		       : UR_MAD_STATUS_METHOD;
}

/* MGMT-STATUS-01 */
bool mux_refuse(const struct mux *m, uint8_t mad[UR_UMAD_MAD_BYTES], bool is_served)
{
	uint16_t direction = mad[MAD_CLASS] == MAD_CLASS_DIRECTED ? UR_SMP_DIRECTION : 0;

	if (!ur_mad_wants_response(mad[MAD_METHOD]) || !mux_rmpp_begins(mad))
		return false;
	ur_store16(mad + MAD_STATUS, (uint16_t)(direction | why_refused(m, mad, is_served)));
	mad[MAD_METHOD] = ur_mad_response_method(mad[MAD_METHOD]);
	mux_rmpp_end(mad);
	return true;
}

uint64_t mux_deadline(const struct mux *m)
{
	uint64_t first = MUX_NEVER;
	const struct mux_transfer *t;
	const struct mux_assembly *a;

	TAILQ_FOREACH(t, &m->transfers, link)
	if (t->deadline < first)
		first = t->deadline;
	TAILQ_FOREACH(a, &m->assemblies, link)
	if (a->deadline < first)
		first = a->deadline;
	return first;
}

/* As from the kernel: the request's header, and ETIMEDOUT. UMAD-RETRY-01 */
static void give_up(struct mux *m, struct mux_transfer *t)
{
	t->umad.status = ETIMEDOUT;
	m->counters.timed_out++;
	mux_deliver(m, t->program, &t->umad, t->mad, MAD_HDR_BYTES);
	mux_end_transfer(m, t);
}

static void expire_transfer(struct mux *m, struct mux_transfer *t, uint64_t now)
{
	if (t->retries_left == 0) {
		give_up(m, t);
		return;
	}
	t->retries_left--;
	m->counters.retried++;
	if (t->segments != 0) {
		mux_rmpp_resend(m, t, now);
		return;
	}
	m->ops->send(m->arg, t->mad, &t->umad.addr);
	mux_await_response(t, now);
}

void mux_expire(struct mux *m, uint64_t now)
{
	struct mux_transfer *t, *next_t;
	struct mux_assembly *a, *next_a;

	for (t = TAILQ_FIRST(&m->transfers); t != NULL; t = next_t) {
		next_t = TAILQ_NEXT(t, link);
		if (t->deadline <= now)
			expire_transfer(m, t, now);
	}
	for (a = TAILQ_FIRST(&m->assemblies); a != NULL; a = next_a) {
		next_a = TAILQ_NEXT(a, link);
		if (a->deadline <= now)
			mux_expire_assembly(m, a);
	}
}
