/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "names.h"
#include "output.h"
#include "registers.h"
#include "reports.h"

/* Fault reports as they arrive, and the log of them: list, acknowledge, follow. */

#define NS	   1000000000.0
#define LOOK_NS	   100000000		/* 'tail' looks for new lines that often */
#define SAY_NS	   UINT64_C(1000000000) /* what is not confirmed is shown that often */
#define ASKED_MOST 8			/* in a second, shown before they are confirmed */
#define LAST_SHOWN 10			/* reports that 'tail' begins with */

struct faults {
	struct ctl_session *s;
	struct ctl_fault_log log;
	struct ctl_reports reports;
	json_t *list;
	double began_s; /* on the clock of the fabric */
	uint64_t shown;
	uint64_t asked_ns, asked; /* since then: reports shown before they are confirmed */
	bool ok;
};

static double fabric_s(struct ctl_session *s)
{
	return (double)s->join->ops->now_ns(s->join) / NS;
}

/* ---- reports, as they arrive ---- */

static void print_report(struct faults *f, const char *before, const struct ur_fault *r,
			 const char *name)
{
	uint32_t node = ur_topo_find(&f->s->topo, r->node_guid);
	char text[96];

	ctl_reports_text(r, text, sizeof(text));
	printf("%.6f s  %s%s: ", fabric_s(f->s) - f->began_s, before,
	       ur_severity_text(r->severity));
	if (node != UR_TOPO_NONE)
		printf("#%u ", node);
	printf("\"%s\" port %u: %s\n", name, r->port, text);
	fflush(stdout);
}

static void show_new(struct faults *f, const struct ur_fault *r, const char *name)
{
	double at_s = fabric_s(f->s) - f->began_s;

	if (ctl_prints_text(f->s->o))
		print_report(f, "", r, name);
	json_array_append_new(
		f->list, json_pack("{s:f,s:s,s:s,s:o,s:s,s:i,s:I}", "time_s", at_s, "severity",
				   ur_severity_text(r->severity), "cause", ur_fault_text(r->cause),
				   "guid", ctl_json_hex(r->node_guid), "description", name, "port",
				   (int)r->port, "sequence", (json_int_t)r->sequence));
	f->shown++;
}

/*
 * What has arrived, while its node is asked: a fault is on the screen before the answers are here. Anybody may have sent
 * it, so it is said to be unconfirmed, and few are shown. MGR-FAULT-03
 */
static void show_asked(struct faults *f, const struct ur_mgr_mad *mad)
{
	uint64_t now = f->s->join->ops->now_ns(f->s->join);
	char name[CTL_NAME_BYTES];
	struct ur_fault r;

	ur_get_fault(mad->bytes + UR_SMP_DATA + UR_NOTICE_DETAILS, &r);
	if (now - f->asked_ns >= SAY_NS) {
		f->asked_ns = now;
		f->asked = 0;
	}
	if (!ctl_prints_text(f->s->o) || f->asked == ASKED_MOST || ctl_fault_log_has(&f->log, &r))
		return;
	f->asked++;
	ctl_node_name(&f->s->topo, ur_topo_find(&f->s->topo, r.node_guid), name);
	print_report(f, "not confirmed yet: ", &r, name);
}

static void take_other(void *ctx, const struct ur_mgr_mad *mad)
{
	struct faults *f = ctx;

	if (ctl_reports_take(&f->reports, mad))
		show_asked(f, mad);
}

static void show_report(void *ctx, const struct ur_fault *report, const char *name)
{
	struct faults *f = ctx;

	switch (ctl_fault_log_add(&f->log, report, name)) {
	case CTL_FAULT_NEW:
		show_new(f, report, name);
		break;
	case CTL_FAULT_KNOWN:
		break;
	case CTL_FAULT_LOST:
		f->ok = false;
		break;
	}
}

/* What was not confirmed in the end is shown as a number. */
static void show_unconfirmed(struct faults *f, uint64_t every_ns)
{
	char text[256];

	if (!ctl_reports_unconfirmed(&f->reports, every_ns, f->s->join->ops->now_ns(f->s->join),
				     text, sizeof(text)) ||
	    !ctl_prints_text(f->s->o))
		return;
	printf("%.6f s  %s\n", fabric_s(f->s) - f->began_s, text);
	fflush(stdout);
}

/* Until there are enough of them, or it is time. */
static void wait_for_reports(struct faults *f)
{
	const struct ctl_options *o = f->s->o;
	struct ctl_join *j = f->s->join;
	uint64_t began = j->ops->now_ns(j), until = UINT64_MAX;
	struct ur_mgr_mad mad;

	if (o->duration_s > 0)
		until = began + (uint64_t)(o->duration_s * NS);
	while (f->ok && (!o->count || f->shown < o->count) && j->ops->now_ns(j) < until)
		if (j->ops->receive(j, until, &mad)) {
			take_other(f, &mad);
			ctl_reports_confirm(&f->reports);
			show_unconfirmed(f, SAY_NS);
		}
	show_unconfirmed(f, 0);
	if (f->reports.said)
		json_array_append_new(
			f->list, json_pack("{s:o}", "unconfirmed", ctl_reports_json(&f->reports)));
}

static bool watch(struct faults *f)
{
	uint32_t refused;

	f->began_s = fabric_s(f->s);
	ctl_reports_open(&f->reports, f->s, show_report, f);
	f->s->take_other = take_other;
	f->s->take_other_ctx = f;
	refused = ctl_reports_ask(f->s);
	if (refused)
		ctl_complain("%u of %u nodes do not report here; give their key with --m-key",
			     refused, f->s->topo.nodes_cnt);
	wait_for_reports(f);
	return f->ok;
}

/* ---- the log ---- */

static void show_logged(struct faults *f, const struct ctl_fault *fault)
{
	const struct ur_fault *r = &fault->report;
	time_t second = (time_t)fault->time_s;
	char text[96], when[32] = "?";
	struct tm tm;

	ctl_reports_text(r, text, sizeof(text));
	if (localtime_r(&second, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	if (ctl_prints_text(f->s->o)) {
		printf("%" PRIu64 "  %s  %s: %#" PRIx64 " \"%s\" port %u: %s  (%s)\n", fault->id,
		       when, ur_severity_text(r->severity), r->node_guid, fault->name, r->port,
		       text, ctl_fault_state_name(fault->state));
		fflush(stdout);
	}
	json_array_append_new(f->list, ctl_fault_log_json(fault));
	f->shown++;
}

static void complain_of_lines(const struct ctl_fault_log *log)
{
	if (log->bad)
		ctl_complain("%s: %" PRIu64 " of %" PRIu64
			     " lines are none of a log of faults and were ignored",
			     log->path, log->bad, log->lines);
}

static bool list(struct faults *f)
{
	complain_of_lines(&f->log);
	for (uint32_t i = 0; i < f->log.cnt; i++)
		if (!f->s->o->open || f->log.fault[i].state == CTL_FAULT_RAISED)
			show_logged(f, &f->log.fault[i]);
	return true;
}

/* The last reports of the log, and those that are logged from now on. */
static bool tail(struct faults *f)
{
	const struct timespec look = {0, LOOK_NS};
	const struct ctl_options *o = f->s->o;
	uint64_t last = f->log.last_id > LAST_SHOWN ? f->log.last_id - LAST_SHOWN : 0, looks = 0;

	complain_of_lines(&f->log);
	while ((!o->count || f->shown < o->count) &&
	       (!(o->duration_s > 0) || (double)looks * LOOK_NS < o->duration_s * NS)) {
		if (!ctl_fault_log_read(&f->log))
			return false;
		for (uint32_t i = 0; i < f->log.cnt; i++)
			if (f->log.fault[i].id > last)
				show_logged(f, &f->log.fault[i]);
		last = f->log.last_id;
		nanosleep(&look, NULL);
		looks++;
	}
	return true;
}

/* ---- acknowledge ---- */

struct clearing {
	struct ctl_session *s;
	struct ctl_fault_log *log;
	const uint64_t *id;
	uint32_t refused;
};

static void make_clear(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct clearing *c = ctx;
	const struct ctl_fault *f = ctl_fault_log_find(c->log, c->id[i]);
	uint16_t address = ur_register_address(UR_NODE_FAULT_STATUS, 0);
	uint64_t bit = f->report.cause < 64 ? UINT64_C(1) << f->report.cause : 0;

	ctl_make_registers(c->s, mad, ur_topo_find(&c->s->topo, f->report.node_guid), &address,
			   &bit, 1);
}

static void take_clear(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct clearing *c = ctx;
	struct ur_registers r;

	c->refused += !mad || ctl_registers_error(mad, &r);
}

/* Clears the bits of the causes in the nodes that are there. */
static bool clear_status(struct faults *f, uint64_t *id, uint32_t cnt)
{
	struct clearing c = {f->s, &f->log, id, 0};
	struct ctl_batch batch = {.make = make_clear, .take = take_clear, .ctx = &c};

	for (uint32_t i = 0; i < cnt; i++) {
		const struct ctl_fault *fault = ctl_fault_log_find(&f->log, id[i]);

		if (fault && ur_topo_find(&f->s->topo, fault->report.node_guid) != UR_TOPO_NONE)
			id[batch.cnt++] = id[i];
	}
	ctl_ask(f->s, &batch);
	return !c.refused ||
	       ctl_complain("FAULT_STATUS of %u nodes was not cleared; give their key with --m-key",
			    c.refused);
}

static bool acknowledge(struct faults *f, const char *which)
{
	uint64_t *id = calloc(f->log.cnt + 1u, sizeof(*id)), one = 0;
	bool all = !strcmp(which, "all"), ok;
	uint32_t cnt = 0;

	if (!id)
		return ctl_complain("there is no memory");
	if (!all &&
	    (!ctl_parse_number(which, UINT64_MAX, &one) || !ctl_fault_log_find(&f->log, one))) {
		free(id);
		return ctl_complain("%s has no fault '%s'; 'uroce-ctl faults list' has them",
				    f->log.path, which);
	}
	for (uint32_t i = 0; i < f->log.cnt; i++)
		if (all ? f->log.fault[i].state == CTL_FAULT_RAISED : f->log.fault[i].id == one)
			id[cnt++] = f->log.fault[i].id;
	ok = ctl_fault_log_mark(&f->log, id, cnt, CTL_FAULT_ACKNOWLEDGED);
	for (uint32_t i = 0; ok && i < cnt; i++) {
		/* Another program may have cut the log. */
		const struct ctl_fault *fault = ctl_fault_log_find(&f->log, id[i]);

		if (fault)
			show_logged(f, fault);
	}
	if (ok && f->s->join)
		ok = clear_status(f, id, cnt);
	free(id);
	return ok;
}

/* ---- the command ---- */

bool ctl_cmd_faults(struct ctl_session *s)
{
	static struct faults faults;
	const char *what = s->o->words_cnt ? s->o->words[0] : "";
	struct faults *f = &faults;
	int flags = !what[0] ? O_RDWR | O_CREAT : what[0] == 'a' ? O_RDWR : O_RDONLY;
	bool ok;

	*f = (struct faults){.s = s, .list = json_array(), .ok = true};
	ok = ctl_fault_log_open(&f->log, s->o->log, flags);
	if (ok)
		switch (what[0]) {
		case 'l':
			ok = list(f);
			break;
		case 't':
			ok = tail(f);
			break;
		case 'a':
			ok = acknowledge(f, s->o->words[1]);
			break;
		default:
			ok = watch(f);
		}
	s->take_other = NULL;
	ctl_fault_log_close(&f->log);
	return ctl_json_write(s->o, f->list) && ok;
}
