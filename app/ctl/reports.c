/* SPDX-License-Identifier: BSD-3-Clause */
#include "reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/build.h"
#include "registers.h"

#define ROUNDS_MAX 16 /* of questions, one after the other */

struct asked {
	struct ctl_session *s;
	uint32_t *node, refused;
};

void ctl_reports_make(struct ctl_session *s, uint32_t node, struct ur_mgr_mad *mad)
{
	uint16_t address[2] = {ur_register_address(UR_NODE_FAULT_HERE, 0),
			       ur_register_address(UR_NODE_FAULT_ENABLE, 0)};
	uint64_t value[2] = {1, UINT32_MAX};

	ctl_make_registers(s, mad, node, address, value, 2);
}

static void make_enable(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	const struct asked *a = ctx;

	ctl_reports_make(a->s, a->node[i], mad);
}

static void take_enable(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct asked *a = ctx;
	struct ur_registers r;

	if (!mad || ctl_registers_error(mad, &r))
		a->refused++;
}

uint32_t ctl_reports_ask(struct ctl_session *s)
{
	struct asked a = {.s = s, .node = calloc(s->topo.nodes_cnt, sizeof(*a.node))};
	struct ctl_batch batch = {.make = make_enable, .take = take_enable, .ctx = &a};

	if (!a.node)
		return s->topo.nodes_cnt;
	/* What has no path now is gone. */
	for (uint32_t i = 0; i < s->topo.nodes_cnt; i++)
		if (s->topo.node[i].hops != UR_TOPO_NO_PATH)
			a.node[batch.cnt++] = i;
	ctl_ask(s, &batch);
	free(a.node);
	return a.refused;
}

/* ---- what arrives ---- */

void ctl_reports_open(struct ctl_reports *r, struct ctl_session *s,
		      void (*show)(void *ctx, const struct ur_fault *report, const char *name),
		      void *ctx)
{
	memset(r, 0, sizeof(*r));
	r->s = s;
	r->show = show;
	r->ctx = ctx;
	ur_confirm_init(&r->confirm);
}

bool ctl_reports_take(struct ctl_reports *r, const struct ur_mgr_mad *mad)
{
	struct ur_fault report;

	if (mad->bytes[3] != UR_MAD_METHOD_TRAP)
		return false;
	ur_get_fault(mad->bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, &report);
	if (ur_confirm_is_report(mad) &&
	    ur_topo_find(&r->s->topo, report.node_guid) == UR_TOPO_NONE) {
		r->unknown++;
		r->last = report.node_guid;
		return false;
	}
	return ur_confirm_add(&r->confirm, mad);
}

/* The node repeats the report until then. */
static void repress(struct ctl_session *s, uint32_t node, const struct ur_confirm_result *result)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops;
	struct ur_mgr_mad mad;

	/* A pass may have found no path to it meanwhile. */
	if (s->topo.node[node].hops == UR_TOPO_NO_PATH)
		return;
	hops = ur_topo_path(&s->topo, node, path);
	ur_mgr_directed(&mad, UR_MAD_METHOD_TRAP_REPRESS, UR_SMP_NOTICE, 0, path, hops);
	ur_store64(mad.bytes + 8, result->tid);
	memcpy(mad.bytes + UR_SMP_DATA, result->notice, UR_SMP_DATA_BYTES);
	ctl_send(s, &mad);
}

/* Shows what is confirmed by now. MGR-FAULT-01 */
static void finish(struct ctl_reports *r)
{
	struct ur_confirm_result result;
	char name[CTL_NAME_BYTES];

	while (ur_confirm_done(&r->confirm, &result)) {
		uint32_t node = ur_topo_find(&r->s->topo, result.report.node_guid);

		if (result.verdict != UR_CONFIRM_TRUE || node == UR_TOPO_NONE) {
			r->last = result.report.node_guid;
			continue;
		}
		repress(r->s, node, &result);
		ctl_node_name(&r->s->topo, node, name);
		r->show(r->ctx, &result.report, name);
	}
}

/* ---- questions ---- */

static bool make_question(struct ctl_reports *r, const struct ur_confirm_ask *ask,
			  struct ur_mgr_mad *mad)
{
	const struct ur_topo *t = &r->s->topo;
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops;
	uint32_t node = ur_topo_find(t, ask->guid);

	if (node == UR_TOPO_NONE || t->node[node].hops == UR_TOPO_NO_PATH)
		return false;
	hops = ur_topo_path(t, node, path);
	ur_confirm_make(&r->confirm, ask, path, hops, mad);
	return true;
}

static void make_of_batch(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct ctl_reports *r = ctx;

	(void)make_question(r, &r->ask[i], mad);
}

static void take_of_batch(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct ctl_reports *r = ctx;

	ur_confirm_answer(&r->confirm, r->ask[i].entry, r->ask[i].question, mad);
}

void ctl_reports_confirm(struct ctl_reports *r)
{
	/* More may arrive meanwhile; a flood of them waits for the next time. */
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		struct ctl_batch batch = {.make = make_of_batch, .take = take_of_batch, .ctx = r};
		struct ur_confirm_ask ask;
		struct ur_mgr_mad unused;

		while (ur_confirm_next(&r->confirm, &ask)) {
			if (make_question(r, &ask, &unused))
				r->ask[batch.cnt++] = ask;
			else
				ur_confirm_answer(&r->confirm, ask.entry, ask.question, NULL);
		}
		if (batch.cnt)
			ctl_ask(r->s, &batch);
		finish(r);
		if (!batch.cnt)
			return;
	}
}

bool ctl_reports_next(struct ctl_reports *r, uint32_t *number, struct ur_mgr_mad *mad)
{
	struct ur_confirm_ask ask;

	while (ur_confirm_next(&r->confirm, &ask)) {
		*number = ask.entry * UR_CONFIRM_QUESTIONS + ask.question;
		if (make_question(r, &ask, mad))
			return true;
		ctl_reports_answer(r, *number, NULL);
	}
	return false;
}

void ctl_reports_answer(struct ctl_reports *r, uint32_t number, const uint8_t *mad)
{
	ur_confirm_answer(&r->confirm, number / UR_CONFIRM_QUESTIONS,
			  (enum ur_confirm_question)(number % UR_CONFIRM_QUESTIONS), mad);
	finish(r);
}

void ctl_reports_again(struct ctl_reports *r)
{
	ur_confirm_again(&r->confirm);
}

/* ---- what is not confirmed ---- */

bool ctl_reports_unconfirmed(struct ctl_reports *r, uint64_t every_ns, uint64_t now_ns, char *text,
			     size_t bytes)
{
	const struct ur_confirm *c = &r->confirm;
	uint64_t all = c->denied + c->silent + c->dropped + r->unknown;

	if (all == r->said || (r->said && now_ns - r->said_ns < every_ns))
		return false;
	r->said = all;
	r->said_ns = now_ns;
	snprintf(
		text, bytes,
		"%llu unconfirmed reports (%llu denied by their node, %llu not answered, %llu of unknown nodes, "
		"%llu dropped), the last one in the name of %#llx",
		(unsigned long long)all, (unsigned long long)c->denied,
		(unsigned long long)c->silent, (unsigned long long)r->unknown,
		(unsigned long long)c->dropped, (unsigned long long)r->last);
	return true;
}

json_t *ctl_reports_json(const struct ctl_reports *r)
{
	return json_pack("{s:I,s:I,s:I,s:I}", "denied", (json_int_t)r->confirm.denied,
			 "not_answered", (json_int_t)r->confirm.silent, "unknown",
			 (json_int_t)r->unknown, "dropped", (json_int_t)r->confirm.dropped);
}

void ctl_reports_text(const struct ur_fault *report, char *text, size_t bytes)
{
	if (report->limit)
		snprintf(text, bytes, "%s (%llu, limit %llu)", ur_fault_text(report->cause),
			 (unsigned long long)report->value, (unsigned long long)report->limit);
	else
		snprintf(text, bytes, "%s", ur_fault_text(report->cause));
}
