/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "output.h"
#include "pace.h"
#include "picture.h"
#include "reports.h"
#include "view.h"

/* A page that shows the fabric: the program reads everything in passes, and the server shows the last one. */

#define STATE_UP   4   /* active */
#define FAULTS_MAX 200 /* on the page, the last ones */

struct web {
	struct ctl_session *s;
	struct ctl_view view;
	struct ctl_picture picture;
	struct ctl_fault_log log;
	struct ctl_reports reports;
	struct ctl_http *http;
	uint32_t *open;	  /* faults of each node that are still to be dealt with */
	uint32_t *number; /* of each node, in the picture; UINT32_MAX: it is not shown */
	uint32_t refused;
	uint64_t *cleared; /* room for the ids of all faults */
};

/* ---- links ---- */

static const struct ctl_view_port *port_of(const struct web *w, uint32_t node, uint8_t port)
{
	const struct ctl_view_node *n = &w->view.node[node];

	return n->first == UINT32_MAX ? NULL : &w->view.port[n->first_port + port - 1u];
}

static const char *link_state(const struct ctl_view_port *a, const struct ctl_view_port *b)
{
	bool known_a = a && a->known, known_b = b && b->known;

	if ((known_a && a->state <= 1) || (known_b && b->state <= 1))
		return "down";
	if (!known_a || !known_b)
		return "silent";
	return a->state == STATE_UP && b->state == STATE_UP ? "active" : "init";
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

/* From each end one is known what it sends, and what it receives is what the other sends. */
static json_t *json_link(const struct web *w, uint32_t node, uint8_t port)
{
	const struct ur_topo *t = &w->s->topo;
	const struct ur_topo_port *tp = &t->port[ur_topo_port_of(t, node, port)];
	static const struct ctl_view_port none;
	const struct ctl_view_port *a = port_of(w, node, port);
	const struct ctl_view_port *b = port_of(w, tp->peer_node, tp->peer_port);
	const char *state = link_state(a, b);

	a = a ? a : &none;
	b = b ? b : &none;
	return json_pack("{s:i,s:i,s:i,s:i,s:s,s:f,s:f,s:f,s:I,s:I,s:I,s:I}", "a",
			 (int)w->number[node], "a_port", (int)port, "b",
			 (int)w->number[tp->peer_node], "b_port", (int)tp->peer_port, "state",
			 state, "ab_gbps", greater(a->tx, b->rx) / 1e9, "ba_gbps",
			 greater(b->tx, a->rx) / 1e9, "share", greater(a->share, b->share), "bps",
			 (json_int_t)(a->bps ? a->bps : b->bps), "errors",
			 (json_int_t)(a->errors + b->errors), "discards",
			 (json_int_t)(a->discards + b->discards), "downs",
			 (json_int_t)(a->downs > b->downs ? a->downs : b->downs));
}

/* Each link once, of its two ends the one that comes first in the picture. */
static json_t *json_links(const struct web *w)
{
	const struct ur_topo *t = &w->s->topo;
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->picture.shown; i++) {
		uint32_t node = w->picture.order[i];

		for (unsigned p = 1; p <= t->node[node].ports; p++) {
			const struct ur_topo_port *tp = &t->port[t->node[node].first_port + p];

			if (tp->peer_node == UR_TOPO_NONE || !w->picture.place[tp->peer_node].shown)
				continue;
			if (w->number[tp->peer_node] > i ||
			    (tp->peer_node == node && tp->peer_port >= p))
				json_array_append_new(list, json_link(w, node, (uint8_t)p));
		}
	}
	return list;
}

/* ---- nodes ---- */

static unsigned endpoints_at(const struct ur_topo *t, uint32_t node)
{
	unsigned cnt = 0;

	for (unsigned p = 1; p <= t->node[node].ports; p++) {
		uint32_t peer = t->port[t->node[node].first_port + p].peer_node;

		cnt += peer != UR_TOPO_NONE && t->node[peer].type != UR_TOPO_SWITCH;
	}
	return cnt;
}

static void count_open_faults(struct web *w)
{
	const struct ur_topo *t = &w->s->topo;

	memset(w->open, 0, t->nodes_cnt * sizeof(*w->open));
	for (uint32_t i = 0; i < w->log.cnt; i++) {
		const struct ctl_fault *f = &w->log.fault[i];
		uint32_t node = f->state == CTL_FAULT_RAISED ? ur_topo_find(t, f->report.node_guid)
							     : UR_TOPO_NONE;

		for (; node != UR_TOPO_NONE; node = ur_topo_find_next(t, node))
			w->open[node]++;
	}
}

static json_t *json_node(const struct web *w, uint32_t node)
{
	const struct ur_topo *t = &w->s->topo;
	const struct ctl_view_node *v = &w->view.node[node];
	const struct ctl_place *place = &w->picture.place[node];
	char name[CTL_NAME_BYTES];

	ctl_node_name(t, node, name);
	return json_pack("{s:s,s:o,s:s,s:i,s:i,s:f,s:f,s:b,s:f,s:f,s:i,s:i}", "name", name, "guid",
			 ctl_json_hex(t->node[node].guid), "type",
			 ctl_type_name(t->node[node].type), "ports", (int)t->node[node].ports,
			 "rank", (int)place->rank, "x", place->x, "y", place->y, "known", v->known,
			 "load", v->load / 1000.0, "ring", v->ring / 1000.0, "endpoints",
			 (int)endpoints_at(t, node), "faults", (int)w->open[node]);
}

/* ---- what is shown ---- */

static void show(struct web *w, enum ctl_http_text which, json_t *root)
{
	ctl_http_show(w->http, which, root ? json_dumps(root, JSON_COMPACT) : NULL);
	json_decref(root);
}

static void show_fabric(struct web *w)
{
	json_t *nodes = json_array();
	uint32_t silent = 0;

	count_open_faults(w);
	for (uint32_t i = 0; i < w->s->topo.nodes_cnt; i++)
		silent += !w->view.node[i].known;
	for (uint32_t i = 0; i < w->picture.shown; i++)
		json_array_append_new(nodes, json_node(w, w->picture.order[i]));
	show(w, CTL_HTTP_FABRIC,
	     json_pack("{s:I,s:f,s:i,s:i,s:i,s:i,s:b,s:i,s:o,s:o}", "pass",
		       (json_int_t)w->view.scan.passes, "interval_s", w->s->o->interval_s,
		       "all_nodes", (int)w->s->topo.nodes_cnt, "silent", (int)silent, "ranks",
		       (int)w->picture.ranks, "widest", (int)w->picture.widest, "no_endpoints",
		       w->picture.no_endpoints, "not_reporting", (int)w->refused, "nodes", nodes,
		       "links", json_links(w)));
}

static void show_faults(struct web *w)
{
	uint32_t first = w->log.cnt > FAULTS_MAX ? w->log.cnt - FAULTS_MAX : 0, open = 0;
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->log.cnt; i++)
		open += w->log.fault[i].state == CTL_FAULT_RAISED;
	for (uint32_t i = w->log.cnt; i-- > first;)
		json_array_append_new(list, ctl_fault_log_json(&w->log.fault[i]));
	show(w, CTL_HTTP_FAULTS,
	     json_pack("{s:i,s:i,s:o,s:o}", "open", (int)open, "all", (int)w->log.cnt,
		       "unconfirmed", ctl_reports_json(&w->reports), "faults", list));
}

/* ---- faults ---- */

static void take_other(void *ctx, const struct ur_mgr_mad *mad)
{
	struct web *w = ctx;

	ctl_reports_take(&w->reports, mad);
}

static void show_report(void *ctx, const struct ur_fault *report, const char *name)
{
	struct web *w = ctx;

	if (ctl_fault_log_add(&w->log, report, name) == CTL_FAULT_NEW)
		show_faults(w);
}

static bool is_over(const struct ctl_view_node *n, const struct ur_fault *r)
{
	switch (r->cause) {
	case UR_FAULT_HOT:
		return n->known && n->load <= r->limit;
	case UR_FAULT_MEMPOOL:
		return n->known && n->mempool <= r->limit;
	case UR_FAULT_RING:
		return n->known && n->ring <= r->limit;
	default:
		return false;
	}
}

/* A gauge that is below its limit again is not reported by its node. */
static bool clear_gauges(struct web *w)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < w->log.cnt; i++) {
		const struct ctl_fault *f = &w->log.fault[i];
		uint32_t node = ur_topo_find(&w->s->topo, f->report.node_guid);

		if (f->state != CTL_FAULT_CLEARED && node != UR_TOPO_NONE &&
		    is_over(&w->view.node[node], &f->report))
			w->cleared[cnt++] = f->id;
	}
	return !cnt || ctl_fault_log_mark(&w->log, w->cleared, cnt, CTL_FAULT_CLEARED);
}

/* Reports come here, unless another program logs them. */
static bool open_faults_log(struct web *w)
{
	if (!ctl_fault_log_open(&w->log, w->s->o->log, O_RDWR))
		return false;
	w->cleared = calloc(CTL_FAULT_LOG_MAX, sizeof(*w->cleared));
	if (!w->cleared)
		return ctl_complain("there is no memory for faults");
	if (w->s->o->log)
		return true;
	ctl_reports_open(&w->reports, w->s, show_report, w);
	w->s->take_other = take_other;
	w->s->take_other_ctx = w;
	w->refused = ctl_reports_ask(w->s);
	if (w->refused)
		ctl_complain("%u of %u nodes do not report here; give their key with --m-key",
			     w->refused, w->s->topo.nodes_cnt);
	return true;
}

/* ---- the command ---- */

/* Of the graph that the session has now. */
static bool make_tables(struct web *w)
{
	const struct ur_topo *t = &w->s->topo;

	ctl_picture_free(&w->picture);
	free(w->open);
	free(w->number);
	w->picture = (struct ctl_picture){0};
	w->open = calloc(t->nodes_cnt, sizeof(*w->open));
	w->number = calloc(t->nodes_cnt, sizeof(*w->number));
	if (!w->open || !w->number || !ctl_picture_make(&w->picture, t))
		return ctl_complain("there is no memory for a picture of %u nodes", t->nodes_cnt);
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		w->number[i] = UINT32_MAX;
	for (uint32_t i = 0; i < w->picture.shown; i++)
		w->number[w->picture.order[i]] = i;
	return true;
}

/* What is behind a port that came up is found, shown, and told to report here. */
static bool renew(struct web *w)
{
	bool changed;

	if (!ctl_view_renew(&w->view, &changed))
		return false;
	if (!changed)
		return true;
	if (!make_tables(w))
		return false;
	if (!w->s->o->log)
		w->refused = ctl_reports_ask(w->s);
	return true;
}

static bool watch(struct web *w)
{
	struct ctl_join *j = w->s->join;
	uint64_t due = j->ops->now_ns(j);

	for (uint64_t i = 0; !w->s->o->count || i < w->s->o->count; i++) {
		(void)ctl_pace(w->s, due, -1);
		if (ctl_is_ended())
			return true;
		if (!renew(w) || !ctl_view_pass(&w->view))
			return false;
		if (w->s->take_other)
			ctl_reports_confirm(&w->reports);
		if (!ctl_fault_log_read(&w->log) || !clear_gauges(w))
			return false;
		show_fabric(w);
		show_faults(w);
		due = ctl_next_due(w->s, due, w->s->o->interval_s);
	}
	return true;
}

bool ctl_cmd_web(struct ctl_session *s)
{
	static struct web web;
	char url[96];
	bool ok;

	web = (struct web){.s = s, .log = {.fd = -1}};
	web.http = ctl_http_start(s->o->listen ? s->o->listen : "127.0.0.1:8080");
	if (!web.http)
		return false;
	ctl_catch_signals();
	ok = ctl_view_open(&web.view, s) && make_tables(&web) && open_faults_log(&web);
	if (ok) {
		ctl_http_url(web.http, url, sizeof(url));
		printf("the fabric is at %s\n", url);
		fflush(stdout);
		ok = watch(&web);
	}
	ctl_http_stop(web.http);
	s->take_other = NULL;
	ctl_fault_log_close(&web.log);
	ctl_view_close(&web.view);
	ctl_picture_free(&web.picture);
	free(web.open);
	free(web.number);
	free(web.cleared);
	return ok;
}
