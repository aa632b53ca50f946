/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 10 /* of a table, so that all of it fits on a terminal */

struct view {
	struct perf_live *l;
	struct uroce_lanes now;
	struct uroce_counters counters;
	double seconds; /* since the last table */
	unsigned lines;
};

__attribute__((format(printf, 2, 3))) static void line(struct view *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(v->l->terminal ? "\033[K\n" : "\n", stderr);
	v->lines++;
}

/* ---- words and numbers ---- */

struct text {
	char s[64];
};

/* In at most six characters: 9999, 12.3k, 456.7M. */
static struct text amount(double n)
{
	static const char units[] = "kMGTPE";
	struct text t;
	int unit = -1;

	while (n >= (unit < 0 ? 9999.5 : 999.95) && units[unit + 1] != '\0') {
		n /= 1000;
		unit++;
	}
	if (unit < 0)
		snprintf(t.s, sizeof(t.s), "%.0f", n);
	else
		snprintf(t.s, sizeof(t.s), "%.1f%c", n, units[unit]);
	return t;
}

static struct text address_of(const union ibv_gid *gid, unsigned worker, bool name_worker)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
	struct text t;
	size_t len;

	inet_ntop(v4 ? AF_INET : AF_INET6, gid->raw + (v4 ? 12 : 0), t.s, sizeof(t.s));
	len = strlen(t.s);
	if (name_worker)
		snprintf(t.s + len, sizeof(t.s) - len, " @%u", worker);
	return t;
}

/* "0-3,7": the service levels of a lane. */
static struct text service_levels(const struct uroce_qos_attr *qos, unsigned vl)
{
	struct text t = {""};
	size_t len = 0;

	for (unsigned sl = 0, last; sl < 16; sl++) {
		if (qos->sl2vl[sl] != vl)
			continue;
		for (last = sl; last < 15 && qos->sl2vl[last + 1] == vl; last++)
			;
		len += (size_t)snprintf(t.s + len, sizeof(t.s) - len, "%s%u", len ? "," : "", sl);
		if (last > sl)
			len += (size_t)snprintf(t.s + len, sizeof(t.s) - len, "-%u", last);
		sl = last;
	}
	return t;
}

/* The first column of a table: the destination of each row, and the worker if there are several. */
struct addresses {
	struct text row[ROWS_MAX];
	int width; /* of the longest, and of the title */
	bool name_workers;
};

static void set_address(struct addresses *a, size_t row, const union ibv_gid *gid, unsigned worker)
{
	int width;

	a->row[row] = address_of(gid, worker, a->name_workers);
	width = (int)strlen(a->row[row].s);
	a->width = width > a->width ? width : a->width;
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

/* ---- the parts ---- */

static void lanes(struct view *v)
{
	const struct uroce_lanes *now = &v->now, *last = &v->l->last;
	uint64_t total = 0;

	for (unsigned i = 0; i < UROCE_VLS; i++)
		total += now->lane[i].bytes - last->lane[i].bytes;
	line(v, "%4s %-10s %14s %16s %10s %7s %7s", "VL", "SL", "packets", "bytes", "Gb/s", "share",
	     "ready");
	for (unsigned i = 0; i < UROCE_VLS; i++) {
		uint64_t bytes = now->lane[i].bytes - last->lane[i].bytes;

		if (now->lane[i].packets == 0 && now->lane[i].ready == 0)
			continue;
		line(v, "%4u %-10s %14llu %16llu %10.3f %6.1f%% %7llu", i,
		     service_levels(&v->l->qos, i).s, (unsigned long long)now->lane[i].packets,
		     (unsigned long long)now->lane[i].bytes, (double)bytes * 8e-9 / v->seconds,
		     total != 0 ? 100.0 * (double)bytes / (double)total : 0,
		     (unsigned long long)now->lane[i].ready);
	}
}

static void scheduler(struct view *v)
{
	const struct uroce_lanes *now = &v->now, *last = &v->l->last;

	line(v,
	     "scheduler: %llu ready, %llu held; %s turns a second; %s blind visits, %s sifted, %s "
	     "woken",
	     (unsigned long long)now->ready, (unsigned long long)now->held,
	     amount((double)(now->turns - last->turns) / v->seconds).s,
	     amount((double)now->blind_visits).s, amount((double)now->sifted).s,
	     amount((double)now->woken).s);
}

/* Destinations that are held back come first; then by address. */
static int by_interest(const void *a, const void *b)
{
	const struct uroce_destination *x = a, *y = b;
	bool x_open = x->state == UROCE_DESTINATION_OPEN,
	     y_open = y->state == UROCE_DESTINATION_OPEN;
	int cmp;

	if (x_open != y_open)
		return x_open ? 1 : -1;
	cmp = memcmp(x->address.raw, y->address.raw, sizeof(x->address.raw));
	return cmp != 0 ? cmp : (x->worker > y->worker) - (x->worker < y->worker);
}

static void more(struct view *v, size_t cnt)
{
	if (cnt > ROWS_MAX)
		line(v, "  and %zu more", cnt - ROWS_MAX);
}

/* Where delays come from, and what switches have stamped; nothing if no switch has. */
static struct text stamps(const struct uroce_destination *d, bool any)
{
	struct text t = {""};

	if (any && d->net_hops != 0)
		snprintf(t.s, sizeof(t.s), " net %4llu %8.1f", (unsigned long long)d->net_hops,
			 us(d->net_delay_ns));
	else if (any)
		snprintf(t.s, sizeof(t.s), " rtt %4s %8s", "-", "-");
	return t;
}

static void destination_rows(struct view *v, const struct uroce_destination *d, size_t cnt)
{
	size_t rows = cnt < ROWS_MAX ? cnt : ROWS_MAX;
	struct addresses to = {.width = sizeof("destination") - 1};
	bool any = false;

	for (size_t i = 0; i < cnt; i++) {
		to.name_workers |= d[i].worker != 0;
		any |= d[i].net_hops != 0;
	}
	for (size_t i = 0; i < rows; i++)
		set_address(&to, i, &d[i].address, d[i].worker);
	line(v, "%-*s %5s %4s %-9s %8s %8s %5s %8s %6s%s", to.width, "destination", "qps", "wait",
	     "state", "delay us", "least us", "defl", "gap us", "Gb/s",
	     any ? " of  hops   net us" : "");
	for (size_t i = 0; i < rows; i++, d++) {
		struct text rate;

		/* As many digits as fit. */
		snprintf(rate.s, sizeof(rate.s), "%.4f", (double)d->rate_bps / 1e9);
		line(v, "%-*s %5s %4s %-9s %8.1f %8.1f %5.1f %8.1f %6.6s%s", to.width, to.row[i].s,
		     amount((double)d->qps).s, amount((double)d->waiting_qps).s,
		     uroce_destination_state_str(d->state), us(d->average_ns), us(d->least_ns),
		     (double)d->deflection_percent / 100, us(d->gap_ns),
		     d->rate_bps != 0 ? rate.s : "-", stamps(d, any).s);
	}
	more(v, cnt);
}

static void destinations(struct view *v)
{
	struct ibv_context *ctx = v->l->ep->ctx;
	struct uroce_destination *d;
	struct uroce_pacing p;
	size_t cap, cnt;

	uroce_query_destinations(ctx, &p, NULL, 0);
	if (p.mode == UROCE_PACING_NONE)
		return;
	cap = (size_t)p.destinations + 1;
	d = calloc(cap, sizeof(*d));
	if (d == NULL)
		return;
	uroce_query_destinations(ctx, &p, d, cap);
	line(v, "pacing: %s; destinations: %s, throttled: %s; outliers: %s, CNPs: %s",
	     uroce_pacing_mode_str(p.mode), amount((double)p.destinations).s,
	     amount((double)p.throttled).s, amount((double)p.outliers).s, amount((double)p.cnps).s);
	cnt = p.destinations < cap ? (size_t)p.destinations : cap;
	qsort(d, cnt, sizeof(*d), by_interest);
	if (cnt != 0)
		destination_rows(v, d, cnt);
	free(d);
}

static void pool_rows(struct view *v, const struct uroce_pool *p, size_t cnt)
{
	line(v, "%6s %-6s %5s %6s %6s %6s %6s %6s %6s %8s %8s %8s %8s", "pool", "status", "gen",
	     "qps", "posted", "room", "in A", "in B", "grant", "accepted", "refused", "grants",
	     "NOTIFYs");
	for (size_t i = 0; i < cnt && i < ROWS_MAX; i++, p++)
		line(v, "%6u %-6s %5llu %6s %6s %6s %6s %6s %6s %8s %8s %8s %8s", p->name,
		     uroce_pool_status_str(p->status), (unsigned long long)p->generation,
		     amount((double)p->qps).s, amount((double)p->posted).s,
		     amount((double)p->room).s, amount((double)p->refused_a).s,
		     amount((double)p->refused_b).s, amount((double)p->granted).s,
		     amount((double)p->accepted).s, amount((double)p->refused).s,
		     amount((double)p->grants).s, amount((double)p->notifies).s);
	more(v, cnt);
}

static void peer_pool_rows(struct view *v, const struct uroce_peer_pool *p, size_t cnt)
{
	size_t rows = cnt < ROWS_MAX ? cnt : ROWS_MAX;
	struct addresses of = {.width = sizeof("of a peer") - 1};

	for (size_t i = 0; i < cnt; i++)
		of.name_workers |= p[i].worker != 0;
	for (size_t i = 0; i < rows; i++)
		set_address(&of, i, &p[i].address, p[i].worker);
	line(v, "%-*s %6s %-7s %5s %6s %6s", of.width, "of a peer", "pool", "status", "gen", "qps",
	     "wait");
	for (size_t i = 0; i < rows; i++, p++)
		line(v, "%-*s %6u %-7s %5llu %6s %6s", of.width, of.row[i].s, p->pool,
		     uroce_pool_status_str(p->status), (unsigned long long)p->generation,
		     amount((double)p->qps).s, amount((double)p->waiting).s);
	more(v, cnt);
}

static void admission_totals(struct view *v, enum uroce_admission_mode mode)
{
	const struct uroce_counters *now = &v->counters, *last = &v->l->last_counters;

	line(v, "admission: %s; %s requests accepted and %s refused a second",
	     uroce_admission_mode_str(mode),
	     amount((double)(now->adm_accepted - last->adm_accepted) / v->seconds).s,
	     amount((double)(now->adm_refused - last->adm_refused) / v->seconds).s);
	line(v,
	     "  NOTIFYs: %s sent, %s received; grants: %s sent, %s received; refusals: %s expired",
	     amount((double)now->adm_notifies_sent).s, amount((double)now->adm_notifies_received).s,
	     amount((double)now->adm_grants_sent).s, amount((double)now->adm_grants_received).s,
	     amount((double)now->adm_expired).s);
	line(v, "  messages held back: %s, released: %s", amount((double)now->adm_waits).s,
	     amount((double)now->adm_woken).s);
}

static void admission(struct view *v)
{
	struct ibv_context *ctx = v->l->ep->ctx;
	struct uroce_peer_pool *peers;
	struct uroce_admission a;
	struct uroce_pool *pools;
	size_t pool_cap, peer_cap;

	uroce_query_admission(ctx, &a, NULL, 0, NULL, 0);
	if (a.mode == UROCE_ADMISSION_PLAIN)
		return;
	pool_cap = a.pools + 1;
	peer_cap = a.peer_pools + 1;
	pools = calloc(pool_cap, sizeof(*pools));
	peers = calloc(peer_cap, sizeof(*peers));
	if (pools != NULL && peers != NULL) {
		uroce_query_admission(ctx, &a, pools, pool_cap, peers, peer_cap);
		admission_totals(v, a.mode);
		if (a.pools != 0)
			pool_rows(v, pools, a.pools < pool_cap ? a.pools : pool_cap);
		if (a.peer_pools != 0)
			peer_pool_rows(v, peers, a.peer_pools < peer_cap ? a.peer_pools : peer_cap);
	}
	free(pools);
	free(peers);
}

/* The parts of the table, from top to bottom. */
static void (*const parts[])(struct view *v) = {lanes, scheduler, destinations, admission};

static void draw(struct perf_live *l, uint64_t now_ns)
{
	struct view v = {.l = l, .seconds = (double)(now_ns - l->last_ns) / 1e9};

	uroce_query_lanes(l->ep->ctx, &v.now);
	uroce_query_qos(l->ep->ctx, &l->qos);
	uroce_query_counters(l->ep->ctx, &v.counters);
	if (l->drawn != 0)
		fprintf(stderr, "\033[%uA", l->drawn);
	line(&v, "after %.1f s", (double)(now_ns - l->start_ns) / 1e9);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		parts[i](&v);
	if (l->terminal) {
		fputs("\033[J", stderr);
		l->drawn = v.lines;
	}
	l->last = v.now;
	l->last_counters = v.counters;
	l->last_ns = now_ns;
}

void perf_live_start(struct perf_live *l, struct perf_endpoint *ep, const struct perf_options *o)
{
	memset(l, 0, sizeof(*l));
	if (!o->live || o->live_interval_s <= 0)
		return;
	l->ep = ep;
	l->terminal = isatty(STDERR_FILENO);
	l->interval_ns = (uint64_t)(o->live_interval_s * 1e9);
	l->start_ns = l->last_ns = perf_now_ns();
	uroce_query_lanes(ep->ctx, &l->last);
	uroce_query_counters(ep->ctx, &l->last_counters);
}

void perf_live_update(struct perf_live *l)
{
	uint64_t now_ns;

	if (l->ep == NULL)
		return;
	now_ns = perf_now_ns();
	if (now_ns - l->last_ns >= l->interval_ns)
		draw(l, now_ns);
}
