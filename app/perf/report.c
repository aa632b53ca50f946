/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct perf_report {
	const struct perf_options *o;
	FILE *out; /* the table; stderr when the JSON goes to stdout */
	json_t *runs;
	bool headed;
};

static double per_second(uint64_t amount, uint64_t ns)
{
	return ns == 0 ? 0 : (double)amount * 1e9 / (double)ns;
}

static double gbps(const struct perf_result *r)
{
	return per_second(r->bytes, r->duration_ns) * 8 / 1e9;
}

static double mops(const struct perf_result *r)
{
	return per_second(r->ops, r->duration_ns) / 1e6;
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b == 0 ? 0 : (double)a / (double)b;
}

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *counters_json(const struct uroce_counters *c)
{
	json_t *j = json_object();

#define X(name, unit, help) json_object_set_new(j, #name, number(c->name));
	UROCE_COUNTERS(X)
#undef X
	return j;
}

static json_t *objects_json(const struct perf_objects *o)
{
	json_t *j = json_object();

#define X(name, unit, help) json_object_set_new(j, #name, number(o->name));
	UROCE_OBJECTS(X)
#undef X
	return j;
}

static json_t *cpu_json(const struct perf_result *r)
{
	uint64_t packets = r->counters.rx_packets + r->counters.tx_packets;
	json_t *j = json_object();

	json_object_set_new(j, "ns_per_packet", json_real(ratio(r->cpu_ns, packets)));
	json_object_set_new(j, "ns_per_op", json_real(ratio(r->cpu_ns, r->ops + r->rx_messages)));
	json_object_set_new(j, "seconds", json_real((double)r->cpu_ns / 1e9));
	return j;
}

static json_t *lat_json(const struct perf_histogram *h)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}};
	json_t *j = json_object();

	json_object_set_new(j, "min", json_real(us(h->min_ns)));
	for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		json_object_set_new(j, points[i].name,
				    json_real(us(perf_histogram_percentile(h, points[i].percent))));
	json_object_set_new(j, "max", json_real(us(h->max_ns)));
	json_object_set_new(j, "samples", number(h->cnt));
	return j;
}

static json_t *end_json(const struct perf_result *r)
{
	json_t *j = json_object();

#define X(name) json_object_set_new(j, #name, number(r->name));
	PERF_RESULT(X)
#undef X
	json_object_set_new(j, "gbps", json_real(gbps(r)));
	json_object_set_new(j, "mops", json_real(mops(r)));
	json_object_set_new(j, "cpu", cpu_json(r));
	json_object_set_new(j, "counters", counters_json(&r->counters));
	json_object_set_new(j, "first_error",
			    r->text[0] != '\0' ? json_string(r->text) : json_null());
	return j;
}

/* What the latency figures are; they differ by mode and operation. */
static const char *lat_kind(const struct perf_params *p)
{
	if (p->mode != PERF_MODE_LAT)
		return "post to completion";
	return (perf_op_traits((enum perf_op)p->op) & PERF_T_FETCH) != 0 ? "round trip"
									 : "half round trip";
}

static uint64_t errors_of(const struct perf_run *run)
{
	return run->client.errors + run->server.errors;
}

/* Sums over both ends, as a summary; each end also has its own. */
#define BOTH(X)                                                                                    \
	X(tx_packets)                                                                              \
	X(rx_packets)                                                                              \
	X(retransmitted_packets)                                                                   \
	X(retransmitted_responses)                                                                 \
	X(spurious_retransmits)                                                                    \
	X(packets_deemed_lost)                                                                     \
	X(lost_but_arrived)                                                                        \
	X(probes_sent)                                                                             \
	X(rto)                                                                                     \
	X(early_packets)                                                                           \
	X(ooo_contexts)                                                                            \
	X(impaired_lost)                                                                           \
	X(rx_missed)

static json_t *lanes_json(const struct perf_run *run)
{
	json_t *j = json_array();

	for (unsigned sl = 0; sl < 16; sl++) {
		const struct perf_sl *l = &run->sl[sl];

		if (l->qps != 0)
			json_array_append_new(
				j,
				json_pack("{s:i,s:i,s:I,s:I,s:I,s:f}", "sl", (int)sl, "vl",
					  (int)l->vl, "qps", (json_int_t)l->qps, "ops",
					  (json_int_t)l->ops, "bytes", (json_int_t)l->bytes, "gbps",
					  per_second(l->bytes, run->client.duration_ns) * 8e-9));
	}
	return j;
}

static json_t *pacing_json(const struct uroce_pacing *p)
{
	json_t *j = json_object();

	json_object_set_new(j, "mode", json_string(uroce_pacing_mode_str(p->mode)));
#define X(name, type, unit, help) json_object_set_new(j, #name, number(p->name));
	UROCE_PACING(X)
#undef X
	return j;
}

static json_t *run_json(const struct perf_run *run)
{
	const struct perf_params *p = &run->params;
	const struct perf_result *c = &run->client, *s = &run->server;
	json_t *j = json_object();

	json_object_set_new(j, "op",
			    json_string(p->mode == PERF_MODE_CONNECT
						? "connect"
						: perf_op_name((enum perf_op)p->op)));
	json_object_set_new(j, "mode", json_string(perf_mode_name((enum perf_mode)p->mode)));
	json_object_set_new(j, "type", json_string(perf_type_name((enum perf_type)p->type)));
	json_object_set_new(j, "size", number(p->size));
	json_object_set_new(j, "qps", number(p->qps));
	json_object_set_new(j, "depth", number(p->mode == PERF_MODE_LAT ? 1 : p->depth));
	json_object_set_new(j, "mtu", number(run->mtu));
	json_object_set_new(j, "bidir", json_boolean(p->bidir));
	json_object_set_new(j, "verify", json_boolean(p->verify));
	json_object_set_new(j, "signal_every", number(p->signal_every));
	json_object_set_new(j, "inline", number(p->inline_bytes));
	json_object_set_new(j, "sge", number(p->sge));
	json_object_set_new(j, "srq", json_boolean(p->srq));
	json_object_set_new(j, "seed", number(p->seed));
	json_object_set_new(j, "duration_s", json_real((double)c->duration_ns / 1e9));
	json_object_set_new(j, "ops", number(c->ops + s->ops));
	json_object_set_new(j, "bytes", number(c->bytes + s->bytes));
	json_object_set_new(j, "gbps", json_real(gbps(c) + gbps(s)));
	json_object_set_new(j, "mops", json_real(mops(c) + mops(s)));
	json_object_set_new(j, "lanes", lanes_json(run));
	json_object_set_new(j, "fairness",
			    json_pack("{s:I,s:I,s:f}", "least", (json_int_t)run->fairness.least,
				      "most", (json_int_t)run->fairness.most, "jain",
				      run->fairness.jain));
	json_object_set_new(j, "in_flight",
			    json_pack("{s:I,s:f}", "least", (json_int_t)run->in_flight.least,
				      "mean", run->in_flight.mean));
	json_object_set_new(j, "pacing", pacing_json(&run->pacing));
	json_object_set_new(j, "admission",
			    json_pack("{s:s}", "mode", uroce_admission_mode_str(run->admission)));
	json_object_set_new(j, "port", json_string(run->port));
	json_object_set_new(j, "lat_us", lat_json(run->hist));
	json_object_set_new(j, "lat_kind", json_string(lat_kind(p)));
	if (run->ping_hist != NULL)
		json_object_set_new(j, "ping_us", lat_json(run->ping_hist));
	json_object_set_new(j, "qp_mode",
			    run->qp_mode != NULL ? json_string(run->qp_mode) : json_null());
	json_object_set_new(j, "qp_mode_reason",
			    run->qp_mode != NULL ? json_string(run->qp_mode_reason) : json_null());
#define X(name) json_object_set_new(j, #name, number(c->counters.name + s->counters.name));
	BOTH(X)
#undef X
	json_object_set_new(j, "missing", number(c->missing + s->missing));
	json_object_set_new(j, "reordered", number(c->reordered + s->reordered));
	json_object_set_new(j, "errors", number(errors_of(run)));
	json_object_set_new(j, "cpu", cpu_json(c));
	json_object_set_new(j, "interrupted", json_boolean(run->interrupted));
	json_object_set_new(j, "client", end_json(c));
	json_object_set_new(j, "server", end_json(s));
	if (p->mode == PERF_MODE_CONNECT) {
		json_object_set_new(j, "connects", number(run->connects));
		json_object_set_new(j, "connects_per_s",
				    json_real(per_second(run->connects, c->duration_ns)));
		json_object_set_new(j, "leaked", json_boolean(run->leaked));
		json_object_set_new(j, "objects",
				    json_pack("{s:{s:o,s:o},s:{s:o,s:o}}", "client", "before",
					      objects_json(&run->before), "after",
					      objects_json(&run->after), "server", "before",
					      objects_json(&s->before), "after",
					      objects_json(&s->after)));
	}
	return j;
}

struct perf_report *perf_report_create(const struct perf_options *o)
{
	struct perf_report *r = calloc(1, sizeof(*r));

	if (r == NULL)
		abort();
	r->o = o;
	r->out = o->json != NULL && strcmp(o->json, "-") == 0 ? stderr : stdout;
	r->runs = json_array();
	return r;
}

static void heading(struct perf_report *r, const struct perf_run *run)
{
	const struct perf_params *p = &run->params;

	bool admits = run->admission != UROCE_ADMISSION_PLAIN;

	fprintf(r->out, "mode %s, type %s%s%s, MTU %u, depth %llu%s%s%s%s; latency: %s, in us\n",
		perf_mode_name((enum perf_mode)p->mode), perf_type_name((enum perf_type)p->type),
		run->qp_mode != NULL ? " " : "", run->qp_mode != NULL ? run->qp_mode : "", run->mtu,
		p->mode == PERF_MODE_LAT ? 1ull : (unsigned long long)p->depth,
		p->bidir ? ", both directions" : "", p->verify ? ", every byte verified" : "",
		admits ? ", admission " : "",
		admits ? uroce_admission_mode_str(run->admission) : "", lat_kind(p));
	fprintf(r->out, "%-10s %10s %5s %12s %9s %9s %9s %9s %9s %9s %9s %8s %6s\n", "op", "bytes",
		"qps", "messages", "Gb/s", "Mops", "min", "p50", "p99", "p99.9", "max", "retrans",
		"errors");
}

static void print_connects(struct perf_report *r, const struct perf_run *run)
{
	const struct perf_objects *c = &run->after, *s = &run->server.after;

	fprintf(r->out,
		"%llu connections set up and torn down, %llu at once, in %.3f s: %.0f a second; "
		"set-up "
		"p50 %.1f us, p99 %.1f us\n",
		(unsigned long long)run->connects, (unsigned long long)run->params.qps,
		(double)run->client.duration_ns / 1e9,
		per_second(run->connects, run->client.duration_ns),
		us(perf_histogram_percentile(run->hist, 50)),
		us(perf_histogram_percentile(run->hist, 99)));
	fprintf(r->out, "objects before and after: client");
#define X(name, unit, help)                                                                        \
	fprintf(r->out, " " #name " %llu/%llu", (unsigned long long)run->before.name,              \
		(unsigned long long)c->name);
	UROCE_OBJECTS(X)
	fprintf(r->out, "; server");
#undef X
#define X(name, unit, help)                                                                        \
	fprintf(r->out, " " #name " %llu/%llu", (unsigned long long)run->server.before.name,       \
		(unsigned long long)s->name);
	UROCE_OBJECTS(X)
#undef X
	fprintf(r->out, "%s\n", run->leaked ? ": LEAKED" : "");
}

#define SUM(name) (c->counters.name + s->counters.name)

static void print_lanes(struct perf_report *r, const struct perf_run *run)
{
	unsigned cnt = 0;

	for (unsigned sl = 0; sl < 16; sl++)
		cnt += run->sl[sl].qps != 0;
	for (unsigned sl = 0; sl < 16 && cnt > 1; sl++) {
		const struct perf_sl *l = &run->sl[sl];

		if (l->qps != 0)
			fprintf(r->out,
				"  SL %2u on VL %2u: %5llu qps %12llu messages %9.3f Gb/s, "
				"%.1f %%\n",
				sl, l->vl, (unsigned long long)l->qps, (unsigned long long)l->ops,
				per_second(l->bytes, run->client.duration_ns) * 8e-9,
				100 * ratio(l->bytes, run->client.bytes));
	}
}

static void print_ping(struct perf_report *r, const struct perf_histogram *h)
{
	fprintf(r->out,
		"  beside them, one message of %d bytes at a time: %llu, p50 %.2f us, p99 %.2f us, max %.2f us\n",
		PERF_PING_BYTES, (unsigned long long)h->cnt, us(perf_histogram_percentile(h, 50)),
		us(perf_histogram_percentile(h, 99)), us(h->max_ns));
}

static void print_run(struct perf_report *r, const struct perf_run *run)
{
	const struct perf_histogram *h = run->hist;
	const struct perf_result *c = &run->client, *s = &run->server;

	if (!r->headed)
		heading(r, run);
	r->headed = true;
	fprintf(r->out,
		"%-10s %10llu %5llu %12llu %9.3f %9.4f %9.2f %9.2f %9.2f %9.2f %9.2f %8llu %6llu\n",
		perf_op_name((enum perf_op)run->params.op), (unsigned long long)run->params.size,
		(unsigned long long)run->params.qps, (unsigned long long)(c->ops + s->ops),
		gbps(c) + gbps(s), mops(c) + mops(s), us(h->min_ns),
		us(perf_histogram_percentile(h, 50)), us(perf_histogram_percentile(h, 99)),
		us(perf_histogram_percentile(h, 99.9)), us(h->max_ns),
		(unsigned long long)(SUM(retransmitted_packets) + SUM(retransmitted_responses)),
		(unsigned long long)errors_of(run));
	print_lanes(r, run);
	if (run->ping_hist != NULL)
		print_ping(r, run->ping_hist);
	if (run->params.service_us != 0)
		fprintf(r->out,
			"  %llu requests refused; messages of a queue pair: %llu to %llu, Jain's "
			"index "
			"%.4f\n",
			(unsigned long long)s->counters.rnr_nak_sent,
			(unsigned long long)run->fairness.least,
			(unsigned long long)run->fairness.most, run->fairness.jain);
	if (SUM(impaired_lost) + SUM(rto) + SUM(local_ack_timeout_err) != 0)
		fprintf(r->out, "  %llu packets lost by [impair], %llu probes, %llu timeouts\n",
			(unsigned long long)SUM(impaired_lost),
			(unsigned long long)SUM(probes_sent),
			(unsigned long long)(SUM(rto) + SUM(local_ack_timeout_err)));
	if (c->missing + s->missing + c->reordered + s->reordered != 0)
		fprintf(r->out, "  %llu messages missing, %llu late or twice\n",
			(unsigned long long)(c->missing + s->missing),
			(unsigned long long)(c->reordered + s->reordered));
	if (run->params.verify)
		fprintf(r->out, "  verified: %llu messages at the client, %llu at the server\n",
			(unsigned long long)c->checked, (unsigned long long)s->checked);
}

/* Of the client: an endpoint's counters once; of a server the same. */
static void add_result(struct perf_result *sum, const struct perf_result *r, bool counters)
{
	sum->ops += r->ops;
	sum->bytes += r->bytes;
	sum->rx_messages += r->rx_messages;
	sum->rx_bytes += r->rx_bytes;
	sum->errors += r->errors;
	sum->missing += r->missing;
	sum->reordered += r->reordered;
	sum->checked += r->checked;
	if (sum->duration_ns < r->duration_ns)
		sum->duration_ns = r->duration_ns;
	if (sum->pause_ns < r->pause_ns)
		sum->pause_ns = r->pause_ns;
	sum->paused_ms += r->paused_ms;
	if (sum->cpu_ns < r->cpu_ns)
		sum->cpu_ns = r->cpu_ns;
	if (sum->text[0] == '\0')
		memcpy(sum->text, r->text, sizeof(sum->text));
#define X(name, unit, help) sum->counters.name += counters ? r->counters.name : 0;
	UROCE_COUNTERS(X)
#undef X
}

/* Of another endpoint. */
static void add_pacing(struct uroce_pacing *sum, const struct uroce_pacing *p)
{
#define X(name, type, unit, help) sum->name += p->name;
	UROCE_PACING(X)
#undef X
}

static void add_up(const struct perf_options *o, const struct perf_run *const *runs, unsigned cnt,
		   struct perf_run *sum, struct perf_histogram *hist,
		   struct perf_histogram *ping_hist)
{
	*sum = *runs[0];
	sum->hist = hist;
	memset(&sum->client, 0, sizeof(sum->client));
	memset(&sum->server, 0, sizeof(sum->server));
	memset(sum->sl, 0, sizeof(sum->sl));
	sum->params.qps = 0;
	perf_histogram_reset(hist);
	perf_histogram_reset(ping_hist);
	sum->ping_hist = o->ping ? ping_hist : NULL;
	for (unsigned i = 0; i < cnt; i++) {
		add_result(&sum->client, &runs[i]->client, i % o->peers_cnt == 0);
		add_result(&sum->server, &runs[i]->server, i < o->peers_cnt);
		if (i > 0 && i % o->peers_cnt == 0)
			add_pacing(&sum->pacing, &runs[i]->pacing);
		perf_histogram_merge(hist, runs[i]->hist);
		if (o->ping)
			perf_histogram_merge(ping_hist, runs[i]->ping_hist);
		if (i > 0)
			perf_fairness_add(&sum->fairness, &runs[i]->fairness);
		sum->params.qps += runs[i]->params.qps;
		if (sum->qp_mode != NULL && strcmp(sum->qp_mode, runs[i]->qp_mode) != 0)
			sum->qp_mode = "mixed";
		for (unsigned sl = 0; sl < 16; sl++) {
			sum->sl[sl].qps += runs[i]->sl[sl].qps;
			sum->sl[sl].ops += runs[i]->sl[sl].ops;
			sum->sl[sl].bytes += runs[i]->sl[sl].bytes;
			sum->sl[sl].vl = runs[i]->sl[sl].vl;
		}
	}
}

static void print_peers(struct perf_report *r, const struct perf_run *const *runs, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		fprintf(r->out,
			"  %s to %-15s %12llu messages %9.3f Gb/s %9.2f us p50 %9.2f us p99\n",
			runs[i]->config, runs[i]->peer,
			(unsigned long long)(runs[i]->client.ops + runs[i]->server.ops),
			gbps(&runs[i]->client) + gbps(&runs[i]->server),
			us(perf_histogram_percentile(runs[i]->hist, 50)),
			us(perf_histogram_percentile(runs[i]->hist, 99)));
}

static json_t *peers_json(const struct perf_run *const *runs, unsigned cnt)
{
	json_t *j = json_array();

	for (unsigned i = 0; i < cnt; i++) {
		json_t *one =
			json_pack("{s:s,s:s}", "config", runs[i]->config, "peer", runs[i]->peer);
		json_t *more = run_json(runs[i]);

		json_object_update(one, more);
		json_decref(more);
		json_array_append_new(j, one);
	}
	return j;
}

void perf_report_add(struct perf_report *r, const struct perf_run *const *runs, unsigned cnt)
{
	static struct perf_histogram hist, ping_hist;
	static struct perf_run sum;
	const struct perf_run *run = runs[0];
	json_t *json;

	if (cnt > 1) {
		add_up(r->o, runs, cnt, &sum, &hist, &ping_hist);
		run = &sum;
	}
	if (run->params.mode == PERF_MODE_CONNECT)
		print_connects(r, run);
	else
		print_run(r, run);
	if (cnt > 1)
		print_peers(r, runs, cnt);
	fflush(r->out);
	if (r->o->json == NULL)
		return;
	json = run_json(run);
	if (cnt > 1)
		json_object_set_new(json, "peers", peers_json(runs, cnt));
	json_array_append_new(r->runs, json);
}

bool perf_report_finish(struct perf_report *r)
{
	const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);
	json_t *root = NULL;
	bool good = true;

	if (r->o->json != NULL && json_array_size(r->runs) > 0) {
		root = r->o->sizes_cnt > 1 ? json_pack("{s:O}", "results", r->runs)
					   : json_incref(json_array_get(r->runs, 0));
		if (strcmp(r->o->json, "-") == 0) {
			good = json_dumpf(root, stdout, flags) == 0;
			putchar('\n');
		} else {
			good = json_dump_file(root, r->o->json, flags) == 0;
		}
		if (!good)
			fprintf(stderr, "uroce-perf: cannot write %s: %s\n", r->o->json,
				strerror(errno));
		json_decref(root);
	}
	json_decref(r->runs);
	free(r);
	return good;
}

void perf_progress_start(struct perf_progress *p, const struct perf_options *o, uint64_t now_ns)
{
	uint64_t interval_ns = (uint64_t)(o->live_interval_s * 1e9);

	memset(p, 0, sizeof(*p));
	p->o = o;
	p->terminal = isatty(STDERR_FILENO);
	p->wanted = interval_ns != 0 && !o->live && (p->terminal || o->mode == PERF_MODE_SOAK);
	p->start_ns = p->last_ns = now_ns;
	p->next_ns = now_ns + interval_ns;
}

void perf_progress_update(struct perf_progress *p, uint64_t now_ns, uint64_t ops, uint64_t bytes,
			  uint64_t errors, const char *note)
{
	if (!p->wanted || now_ns < p->next_ns)
		return;
	/* Counters start anew when the warm-up ends. */
	if (ops < p->last_ops || bytes < p->last_bytes)
		p->last_ops = p->last_bytes = 0;
	fprintf(stderr, "%s%8.1f s %9.3f Gb/s %9.4f Mops %12llu messages %llu errors%s%s%s",
		p->terminal ? "\r\033[K" : "", (double)(now_ns - p->start_ns) / 1e9,
		per_second(bytes - p->last_bytes, now_ns - p->last_ns) * 8 / 1e9,
		per_second(ops - p->last_ops, now_ns - p->last_ns) / 1e6, (unsigned long long)ops,
		(unsigned long long)errors, note != NULL ? ", " : "", note != NULL ? note : "",
		p->terminal ? "" : "\n");
	p->dirty = p->terminal;
	p->last_ns = now_ns;
	p->last_ops = ops;
	p->last_bytes = bytes;
	p->next_ns = now_ns + (uint64_t)(p->o->live_interval_s * 1e9);
}

void perf_progress_end(struct perf_progress *p)
{
	if (p->dirty)
		fprintf(stderr, "\r\033[K");
	p->dirty = false;
}
