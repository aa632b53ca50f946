/* SPDX-License-Identifier: BSD-3-Clause */
#include "manager/confirm.h"

#include <string.h>

#include "manager/build.h"
#include "mgmt/registers.h"
#include "wire/bytes.h"
#include "wire/smp.h"

#define TRIES_MAX 3 /* rounds: a node may have another fault between two answers */
#define ALL	  ((1u << UR_CONFIRM_QUESTIONS) - 1)

void ur_confirm_init(struct ur_confirm *c)
{
	memset(c, 0, sizeof(*c));
}

static bool is_of_link(const struct ur_fault *r)
{
	return r->cause == UR_FAULT_LINK_DOWN || r->cause == UR_FAULT_LINK_UP;
}

/* ---- reports ---- */

static bool is_report(const struct ur_mgr_mad *trap, struct ur_fault *report)
{
	struct ur_notice head;

	if (trap->bytes[3] != UR_MAD_METHOD_TRAP)
		return false;
	ur_get_notice(trap->bytes + UR_SMP_DATA, &head);
	if (head.is_generic || head.producer != UR_VENDOR_OUI || head.trap != UR_FAULT_NOTICE)
		return false;
	ur_get_fault(trap->bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, report);
	return report->cause < UR_FAULT_CNT &&
	       report->severity == ur_fault_severity((enum ur_fault_cause)report->cause);
}

bool ur_confirm_is_report(const struct ur_mgr_mad *mad)
{
	struct ur_fault unused;

	return is_report(mad, &unused);
}

static bool is_same(const struct ur_fault *a, const struct ur_fault *b)
{
	return a->cause == b->cause && a->port == b->port && a->sequence == b->sequence &&
	       a->time_ns == b->time_ns && a->value == b->value && a->limit == b->limit;
}

static void begin(struct ur_confirm_entry *e)
{
	e->tries++;
	e->silent = e->refused = e->no_value = false;
	e->to_ask = ALL;
	if (!is_of_link(&e->report))
		e->to_ask &= (uint8_t) ~(1u << UR_CONFIRM_PORT);
}

bool ur_confirm_add(struct ur_confirm *c, const struct ur_mgr_mad *trap)
{
	struct ur_confirm_entry *room = NULL;
	struct ur_fault report;
	unsigned of_node = 0;

	if (!is_report(trap, &report))
		return false;
	for (unsigned i = 0; i < UR_CONFIRM_MAX; i++) {
		struct ur_confirm_entry *e = &c->entry[i];

		if (!e->used) {
			room = e;
			continue;
		}
		if (e->report.node_guid != report.node_guid)
			continue;
		of_node++;
		if (is_same(&e->report, &report))
			return false;
	}
	if (!room || of_node >= UR_CONFIRM_NODE) {
		c->dropped++;
		return false;
	}
	*room = (struct ur_confirm_entry){
		.used = true, .report = report, .tid = ur_load64(trap->bytes + 8)};
	memcpy(room->notice, trap->bytes + UR_SMP_DATA, sizeof(room->notice));
	begin(room);
	return true;
}

/* ---- questions ---- */

bool ur_confirm_next(struct ur_confirm *c, struct ur_confirm_ask *ask)
{
	for (uint32_t i = 0; i < UR_CONFIRM_MAX; i++) {
		struct ur_confirm_entry *e = &c->entry[i];
		unsigned q;

		if (!e->used || !e->to_ask)
			continue;
		q = (unsigned)__builtin_ctz(e->to_ask);
		e->to_ask &= (uint8_t) ~(1u << q);
		e->open |= (uint8_t)(1u << q);
		*ask = (struct ur_confirm_ask){i, (enum ur_confirm_question)q, e->report.node_guid};
		return true;
	}
	return false;
}

void ur_confirm_make(const struct ur_confirm *c, const struct ur_confirm_ask *ask,
		     const uint8_t path[UR_TOPO_PATH_MAX + 1], uint8_t hops, struct ur_mgr_mad *mad)
{
	static const enum ur_register_id pair[UR_CONFIRM_QUESTIONS][2] = {
		[UR_CONFIRM_LAST] = {UR_NODE_FAULT_COUNT, UR_NODE_FAULT_CAUSE},
		[UR_CONFIRM_STATUS] = {UR_NODE_FAULT_STATUS, UR_NODE_FAULT_TIME_NS},
		[UR_CONFIRM_VALUE] = {UR_NODE_FAULT_VALUE, UR_NODE_FAULT_LIMIT},
	};
	struct ur_registers r = {.count = 2};

	switch (ask->question) {
	case UR_CONFIRM_NODE_INFO:
		ur_mgr_directed(mad, UR_MAD_METHOD_GET, UR_SMP_NODE_INFO, 0, path, hops);
		return;
	case UR_CONFIRM_PORT:
		ur_mgr_directed(mad, UR_MAD_METHOD_GET, UR_SMP_PORT_INFO,
				c->entry[ask->entry].report.port, path, hops);
		return;
	default:
		r.address0 = ur_register_address(pair[ask->question][0], 0);
		r.address1 = ur_register_address(pair[ask->question][1], 0);
		ur_mgr_directed(mad, UR_MAD_METHOD_GET, UR_SMP_REGISTERS, 0, path, hops);
		ur_put_registers(mad->bytes + UR_SMP_DATA, &r);
	}
}

/* ---- answers ---- */

void ur_confirm_again(struct ur_confirm *c)
{
	for (unsigned i = 0; i < UR_CONFIRM_MAX; i++) {
		struct ur_confirm_entry *e = &c->entry[i];

		e->to_ask |= e->open;
		e->open = 0;
	}
}

static void take_registers(struct ur_confirm_entry *e, enum ur_confirm_question question,
			   const struct ur_registers *r)
{
	switch (question) {
	case UR_CONFIRM_LAST:
		e->count = r->value0;
		e->cause = r->value1;
		break;
	case UR_CONFIRM_STATUS:
		e->status = r->value0;
		e->time_ns = r->value1;
		break;
	default:
		e->value = r->value0;
		e->limit = r->value1;
	}
}

static void take_answer(struct ur_confirm_entry *e, enum ur_confirm_question question,
			const uint8_t *data)
{
	struct ur_node_info node;
	struct ur_port_info port;
	struct ur_registers r;

	switch (question) {
	case UR_CONFIRM_NODE_INFO:
		ur_get_node_info(data, &node);
		e->guid = node.node_guid;
		break;
	case UR_CONFIRM_PORT:
		ur_get_port_info(data, &port);
		e->state = port.state;
		break;
	default:
		ur_get_registers(data, &r);
		take_registers(e, question, &r);
	}
}

void ur_confirm_answer(struct ur_confirm *c, uint32_t entry, enum ur_confirm_question question,
		       const uint8_t *mad)
{
	struct ur_confirm_entry *e = &c->entry[entry];

	if (!e->used || !(e->open >> question & 1))
		return;
	e->open &= (uint8_t) ~(1u << question);
	if (!mad)
		e->silent = true;
	else if (!(ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION))
		take_answer(e, question, mad + UR_SMP_DATA);
	else if (question == UR_CONFIRM_VALUE)
		e->no_value = true; /* an agent without these registers */
	else
		e->refused = true;
}

/* ---- the verdict ---- */

static bool says_the_last(const struct ur_confirm_entry *e)
{
	const struct ur_fault *r = &e->report;
	bool up = e->state > UR_PORT_DOWN;

	if (e->cause != (r->cause | (uint64_t)r->port << 8) || e->time_ns != r->time_ns)
		return false;
	if (!e->no_value && (e->value != r->value || e->limit != r->limit))
		return false;
	return !is_of_link(r) || up == (r->cause == UR_FAULT_LINK_UP);
}

/*
 * MGR-FAULT-01. Of a fault before the last one a node has only its bit: port and time of such a report would be those
 * of its sender, and so it is denied.
 */
static bool says_the_same(const struct ur_confirm_entry *e)
{
	const struct ur_fault *r = &e->report;

	return !e->refused && e->guid == r->node_guid && e->status >> r->cause & 1 &&
	       (uint32_t)e->count == r->sequence && says_the_last(e);
}

bool ur_confirm_done(struct ur_confirm *c, struct ur_confirm_result *result)
{
	for (unsigned i = 0; i < UR_CONFIRM_MAX; i++) {
		struct ur_confirm_entry *e = &c->entry[i];
		bool same;

		if (!e->used || e->to_ask || e->open)
			continue;
		same = !e->silent && says_the_same(e);
		if (!same && !e->silent && e->tries < TRIES_MAX) {
			begin(e);
			continue;
		}
		result->verdict = e->silent ? UR_CONFIRM_SILENT
				  : same    ? UR_CONFIRM_TRUE
					    : UR_CONFIRM_DENIED;
		result->report = e->report;
		if (e->no_value)
			result->report.value = result->report.limit = 0;
		result->tid = e->tid;
		memcpy(result->notice, e->notice, sizeof(result->notice));
		c->confirmed += same;
		c->silent += e->silent;
		c->denied += !same && !e->silent;
		e->used = false;
		return true;
	}
	return false;
}
