/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <bsd/stdlib.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_NS     20000000000ull
#define SETTLE_NS    100000000ull /* UC and UD: time for the last messages to arrive */
#define HOUSEKEEPING 128	  /* steps between checks of anything but traffic */

bool perf_client_alive(const struct perf_client *c)
{
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (k->session.failed || k->control.dead)
			return false;
	}
	return true;
}

unsigned perf_client_step(struct perf_client *c)
{
	unsigned n = 0;

	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (k->session_open && k->session.params.mode != PERF_MODE_CONNECT)
			n += perf_traffic_step(&k->session);
	}
	return n;
}

/* One run. */

static bool agree(struct perf_client *c, struct perf_params *p)
{
	static struct perf_received r;
	uint8_t message[sizeof(struct perf_params)];
	struct perf_ready ready;
	size_t bytes;

	if (c->session.mr != NULL) {
		p->addr = (uintptr_t)c->session.mem;
		p->rkey = c->session.mr->rkey;
	}
	bytes = perf_params_encode(message, p);
	if (!perf_link_ask(c, PERF_MSG_PARAMS, message, bytes, PERF_MSG_READY, &r))
		return false;
	if (!perf_ready_decode(r.payload, r.header.bytes, &ready)) {
		perf_session_fail(&c->session, "the server's answer is malformed");
		return false;
	}
	c->session.remote_addr = ready.addr;
	c->session.remote_rkey = (uint32_t)ready.rkey;
	return true;
}

/* Sets how much each queue pair still sends, if messages or bytes are limited. */
static void set_limits(struct perf_client *c)
{
	struct perf_session *s = &c->session;
	uint64_t total = c->o->iters, qps = s->params.qps;

	if (c->o->bytes != 0 && s->params.op != PERF_OP_MIXED)
		total = (c->o->bytes + s->params.size - 1) / s->params.size;
	if (total == 0)
		return;
	s->finished = 0;
	for (uint32_t i = 0; i < qps; i++) {
		struct perf_qp *q = &s->qps[i];
		uint64_t share = total / qps + (i < total % qps);

		q->tx_limit = q->tx_done + share;
		if (q->tx_limit < q->tx_next)
			q->tx_limit = q->tx_next;
		if (q->tx_limit == q->tx_done)
			s->finished++;
		perf_traffic_kick(s, q);
	}
}

static void housekeeping(struct perf_client *c, struct perf_soak *soak)
{
	struct perf_session *s = &c->session;
	uint64_t ops = 0, bytes = 0, errors = 0;
	char note[64];

	perf_link_events(c);
	if (soak != NULL)
		perf_soak_step(c, soak);
	perf_live_update(&c->live);
	if (!c->progress.wanted)
		return;
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		ops += s->params.mode == PERF_MODE_LAT ? k->hist.cnt : k->session.stats.ops;
		bytes += k->session.stats.bytes;
		errors += k->session.errors;
	}
	snprintf(note, sizeof(note), "%u reconnects", c->churns);
	perf_progress_update(&c->progress, s->now_ns, ops, bytes, errors,
			     soak != NULL ? note : NULL);
}

static bool all_finished(const struct perf_client *c)
{
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (!perf_traffic_finished(&k->session))
			return false;
	}
	return true;
}

static bool any_failed(const struct perf_client *c)
{
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (k->session.failed)
			return true;
	}
	return false;
}

/* Runs until until_ns, the limits, an error or Ctrl-C. until_ns 0: no end time. */
static void traffic(struct perf_client *c, uint64_t until_ns, bool counted)
{
	struct perf_soak soak = {.since_ns = perf_now_ns(), .random = c->o->seed};
	struct perf_session *s = &c->session;
	bool soaking = s->params.mode == PERF_MODE_SOAK && counted;
	uint64_t bytes = counted && s->params.op == PERF_OP_MIXED ? c->o->bytes : 0;
	unsigned round = 0;

	while (!any_failed(c) && perf_interrupted == 0) {
		unsigned n = perf_client_step(c);

		if (n == 0 && s->params.events)
			perf_traffic_sleep(s);
		if (++round % HOUSEKEEPING == 0)
			housekeeping(c, soaking ? &soak : NULL);
		if (until_ns != 0 && s->now_ns >= until_ns && soak.state == PERF_SOAK_IDLE)
			break;
		if (counted && (all_finished(c) || (bytes != 0 && s->stats.bytes >= bytes)))
			break;
	}
}

static bool drain(struct perf_client *c)
{
	struct perf_session *s = &c->session;
	uint64_t until = perf_now_ns() + DRAIN_NS;
	unsigned round = 0;

	perf_traffic_quiet(s);
	while (perf_client_alive(c) && !perf_traffic_drained(s)) {
		unsigned n = 0;

		s->now_ns = perf_now_ns();
		for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
			n += perf_traffic_poll(&k->session);
		if (n > 0)
			until = s->now_ns + DRAIN_NS;
		if (++round % HOUSEKEEPING == 0)
			perf_link_events(c);
		if (s->now_ns > until)
			perf_session_fail(
				s, "work requests are outstanding without progress for %llu s",
				DRAIN_NS / 1000000000ull);
	}
	return perf_client_alive(c);
}

static void settle(struct perf_client *c)
{
	uint64_t until = perf_now_ns() + SETTLE_NS;

	while (c->session.lossy && perf_client_alive(c) && perf_now_ns() < until) {
		perf_traffic_poll(&c->session);
		perf_link_events(c);
	}
}

bool perf_client_ends(struct perf_client *c, uint32_t from, uint32_t cnt)
{
	static uint8_t message[PERF_MSG_BYTES];
	static struct perf_received r;
	struct perf_session *s = &c->session;
	struct perf_end end;
	size_t bytes = 0;

	for (uint32_t i = from; i < from + cnt; i++) {
		end = (struct perf_end){
			.idx = i, .messages = s->qps[i].tx_next, .cas = s->qps[i].cas_next};
		bytes += perf_end_encode(message + bytes, &end);
	}
	if (!perf_link_ask(c, PERF_MSG_ENDS, message, bytes, PERF_MSG_ENDS, &r))
		return false;
	while (s->params.bidir && perf_traffic_poll(s) > 0)
		;
	for (size_t at = 0; at < r.header.bytes; at += sizeof(end)) {
		if (!perf_end_decode(r.payload + at, r.header.bytes - at, &end) ||
		    end.idx >= s->params.qps) {
			perf_session_fail(s, "the server's answer is malformed");
			return false;
		}
		if (s->params.bidir)
			perf_checked_end(s, &end);
	}
	return true;
}

static bool finish(struct perf_client *c, struct perf_run *run)
{
	struct perf_session *s = &c->session;
	static struct perf_received r;
	static uint8_t message[PERF_MSG_BYTES];
	uint32_t qps = (uint32_t)s->params.qps;
	struct perf_result mine;
	size_t bytes;

	if (s->params.mode != PERF_MODE_CONNECT) {
		if (!drain(c) || !perf_link_ask(c, PERF_MSG_QUIET, NULL, 0, PERF_MSG_OK, &r))
			return false;
		settle(c);
		for (uint32_t i = 0; i < qps; i += PERF_ENDS_MAX) {
			if (!perf_client_ends(c, i,
					      qps - i < PERF_ENDS_MAX ? qps - i : PERF_ENDS_MAX))
				return false;
		}
	}
	perf_session_result(s, &mine);
	bytes = perf_result_encode(message, &mine);
	if (!perf_link_ask(c, PERF_MSG_FINISH, message, bytes, PERF_MSG_RESULT, &r))
		return false;
	if (!perf_result_decode(r.payload, r.header.bytes, &run->server)) {
		perf_session_fail(s, "the server's answer is malformed");
		return false;
	}
	perf_checked_fetch_adds(s, run->server.fetch_adds);
	return true;
}

static uint32_t mtu_in_use(struct perf_client *c)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	if (c->session.params.type != PERF_TYPE_UD && c->session.params.mode != PERF_MODE_CONNECT &&
	    c->session.qps[0].qp != NULL &&
	    uroce_query_qp(c->session.qps[0].qp, &attr, IBV_QP_PATH_MTU, &init) == 0 &&
	    attr.path_mtu != 0)
		return 128u << attr.path_mtu;
	return (uint32_t)c->session.params.mtu;
}

/* All begin to measure together, once every server does. */
static bool mark_all(struct perf_client *c)
{
	static struct perf_received r;

	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (!perf_link_ask(k, PERF_MSG_MARK, NULL, 0, PERF_MSG_OK, &r))
			return false;
	}
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (c->o->warmup_s <= 0)
			perf_traffic_start(&k->session, true);
		set_limits(k);
		perf_session_mark(&k->session);
	}
	return true;
}

static void measure(struct perf_client *c)
{
	uint64_t now;

	perf_progress_start(&c->progress, c->o, perf_now_ns());
	perf_live_start(&c->live, c->ep, c->o);
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		perf_session_mark(&k->session);
		if (c->o->warmup_s > 0)
			perf_traffic_start(&k->session, true);
	}
	if (c->o->warmup_s > 0)
		traffic(c, perf_now_ns() + (uint64_t)(c->o->warmup_s * 1e9), false);
	if (perf_client_alive(c) && mark_all(c)) {
		now = perf_now_ns();
		traffic(c, c->o->duration_s > 0 ? now + (uint64_t)(c->o->duration_s * 1e9) : 0,
			true);
	}
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		perf_session_end(&k->session);
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		perf_traffic_quiet(&k->session);
	perf_progress_end(&c->progress);
}

static bool open_run(struct perf_client *c, struct perf_run *run, uint64_t size)
{
	struct perf_session *s = &c->session;
	static struct perf_received r;

	perf_params_from_options(&run->params, c->o, size, &c->ep->device, c->ep->mtu);
	run->mtu = (uint32_t)run->params.mtu;
	if (run->mtu > c->ep->mtu) {
		perf_session_fail(s, "--mtu %u is more than the port's path MTU, %u", run->mtu,
				  c->ep->mtu);
		return false;
	}
	if (size > run->params.mtu && run->params.type == PERF_TYPE_UD) {
		perf_session_fail(s, "UD messages of %llu bytes do not fit in the MTU of %llu",
				  (unsigned long long)size, (unsigned long long)run->params.mtu);
		return false;
	}
	perf_histogram_reset(&c->hist);
	s->hist = &c->hist;
	perf_histogram_reset(&c->ping_hist);
	s->ping_hist = c->o->ping ? &c->ping_hist : NULL;
	c->links = calloc(run->params.qps, sizeof(*c->links));
	c->asked_ns = calloc(run->params.qps, sizeof(*c->asked_ns));
	c->session_open = c->links != NULL && c->asked_ns != NULL;
	if (!c->session_open || !perf_session_create(s, c->ep, &run->params, false, NULL) ||
	    !agree(c, &run->params))
		return false;
	if (run->params.mode == PERF_MODE_CONNECT)
		return true;
	if (!perf_link_connect_all(c) ||
	    !perf_link_ask(c, PERF_MSG_START, NULL, 0, PERF_MSG_OK, &r))
		return false;
	run->mtu = mtu_in_use(c);
	perf_session_mode(s, &run->qp_mode, &run->qp_mode_reason);
	return true;
}

static void close_run(struct perf_client *c)
{
	if (c->session_open) {
		if (c->session.qps != NULL)
			perf_link_disconnect_all(c);
		perf_session_destroy(&c->session);
	}
	c->session_open = false;
	free(c->links);
	free(c->asked_ns);
	c->links = NULL;
	c->asked_ns = NULL;
}

/* Fewer than before is no leak: an earlier client's objects may have been freed meanwhile. */
static bool leaked(const struct perf_objects *before, const struct perf_objects *after)
{
#define X(name, unit, help)                                                                        \
	if (after->name > before->name)                                                            \
		return true;
	UROCE_OBJECTS(X)
#undef X
	return false;
}

static void measure_connects(struct perf_client *c, struct perf_run *run)
{
	perf_endpoint_objects(c->ep, &run->before);
	perf_progress_start(&c->progress, c->o, perf_now_ns());
	perf_session_mark(&c->session);
	run->connects = perf_connect_run(c);
	c->session.stats.ops = run->connects;
	perf_session_end(&c->session);
	perf_progress_end(&c->progress);
	perf_connect_settle(c, &run->before);
	perf_endpoint_objects(c->ep, &run->after);
}

static void lanes_of(const struct perf_client *c, struct perf_run *run)
{
	const struct perf_session *s = &c->session;
	struct uroce_qos_attr qos;

	if (run->params.mode == PERF_MODE_LAT || run->params.mode == PERF_MODE_CONNECT)
		return;
	uroce_query_qos(c->ep->ctx, &qos);
	for (uint32_t i = 0; i < s->params.qps; i++)
		run->sl[s->qps[i].share.sl].qps++;
	for (unsigned sl = 0; sl < 16; sl++) {
		run->sl[sl].vl = qos.sl2vl[sl];
		run->sl[sl].ops = s->stats.end_sl[sl].ops;
		run->sl[sl].bytes = s->stats.end_sl[sl].bytes;
	}
}

static void report_all(struct perf_client *c)
{
	const struct perf_run *runs[PERF_CONFIGS_MAX * PERF_PEERS_MAX];

	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		runs[k->number] = &k->run;
	perf_report_add(c->report, runs, c->all_cnt);
}

/* True when all went well. */
static bool end_run(struct perf_client *c, uint64_t size)
{
	struct perf_run *run = &c->run;
	struct uroce_admission admission;
	bool good = finish(c, run);

	perf_session_result(&c->session, &run->client);
	lanes_of(c, run);
	run->fairness = perf_session_fairness(&c->session);
	run->in_flight = perf_session_in_flight(&c->session);
	uroce_query_destinations(c->ep->ctx, &run->pacing, NULL, 0);
	uroce_query_admission(c->ep->ctx, &admission, NULL, 0, NULL, 0);
	run->admission = admission.mode;
	run->port = c->ep->port;
	run->params.qps -= c->o->ping;
	if (run->params.mode == PERF_MODE_LAT)
		run->client.ops = c->hist.cnt;
	if (run->params.mode == PERF_MODE_LAT)
		run->client.bytes = c->hist.cnt * size, run->server.bytes = run->server.ops = 0;
	run->interrupted = perf_interrupted != 0;
	if (run->params.mode == PERF_MODE_CONNECT && good) {
		run->leaked = leaked(&run->before, &run->after) ||
			      leaked(&run->server.before, &run->server.after);
		good = !run->leaked;
	}
	if (run->server.errors != 0)
		fprintf(stderr, "uroce-perf: the server counts %llu errors; the first one: %s\n",
			(unsigned long long)run->server.errors, run->server.text);
	return good;
}

/* True when all went well. */
static bool run_all(struct perf_client *c, uint64_t size)
{
	bool measured = true, good = true;

	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		k->run = (struct perf_run){.hist = &k->hist,
					   .ping_hist = k->o->ping ? &k->ping_hist : NULL,
					   .peer = k->peer->text,
					   .config = k->o->config[k->number / k->o->peers_cnt]};
		measured = measured && open_run(k, &k->run, size);
	}
	if (measured) {
		if (c->run.params.mode == PERF_MODE_CONNECT)
			measure_connects(c, &c->run);
		else
			measure(c);
	}
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		good &= measured && end_run(k, size);
	if (measured)
		report_all(c);
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		good &= k->session.errors == 0 && k->run.server.errors == 0;
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		close_run(k);
	return good;
}

static void warn_of_leaks(const struct perf_objects *before, struct perf_endpoint *ep)
{
	struct perf_objects after;

	perf_endpoint_objects(ep, &after);
	/* Queue pairs in time-wait are no leak. */
	after.qps_time_wait = before->qps_time_wait;
	after.cm_connections = before->cm_connections;
#define X(name, unit, help)                                                                        \
	if (after.name != before->name)                                                            \
		fprintf(stderr, "uroce-perf: warning: " #name " before %llu, after %llu\n",        \
			(unsigned long long)before->name, (unsigned long long)after.name);
	UROCE_OBJECTS(X)
#undef X
}

static struct perf_client *make_clients(struct perf_endpoint *eps, const struct perf_options *o)
{
	unsigned cnt = o->configs_cnt * o->peers_cnt;
	struct perf_client *all = calloc(cnt, sizeof(*all));
	struct perf_report *report = perf_report_create(o);

	for (unsigned i = 0; all != NULL && i < cnt; i++) {
		all[i].o = o;
		all[i].ep = &eps[i / o->peers_cnt];
		all[i].peer = &o->peers[i % o->peers_cnt];
		all[i].all = all;
		all[i].all_cnt = cnt;
		all[i].number = i;
		all[i].report = report;
		arc4random_buf(&all[i].session_id, sizeof(all[i].session_id));
	}
	return all;
}

int perf_client_main(struct perf_endpoint *eps, const struct perf_options *o)
{
	static struct perf_objects before[PERF_CONFIGS_MAX];
	struct perf_client *c = make_clients(eps, o);
	bool good = true;

	if (c == NULL)
		return PERF_EXIT_ERROR;
	for (unsigned i = 0; i < o->configs_cnt; i++)
		perf_endpoint_objects(&eps[i], &before[i]);
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		good = good && perf_link_open(k);
	for (unsigned i = 0; good && i < o->sizes_cnt && perf_interrupted == 0; i++)
		good = run_all(c, o->sizes[i]);
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++)
		perf_link_close(k);
	for (unsigned i = 0; i < o->configs_cnt; i++)
		warn_of_leaks(&before[i], &eps[i]);
	good &= perf_report_finish(c->report);
	free(c);
	return perf_interrupted != 0 ? PERF_EXIT_INTERRUPTED
	       : good		     ? PERF_EXIT_OK
				     : PERF_EXIT_ERROR;
}
