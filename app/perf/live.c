/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct view {
	struct perf_live *l;
	struct uroce_lanes now;
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

static void service_levels(const struct uroce_qos_attr *qos, unsigned vl, char *text, size_t cap)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned sl = 0; sl < 16; sl++)
		if (qos->sl2vl[sl] == vl && len < cap)
			len += (size_t)snprintf(text + len, cap - len, "%s%u", len ? "," : "", sl);
}

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
		char sls[48];

		if (now->lane[i].packets == 0 && now->lane[i].ready == 0)
			continue;
		service_levels(&v->l->qos, i, sls, sizeof(sls));
		line(v, "%4u %-10s %14llu %16llu %10.3f %6.1f%% %7u", i, sls,
		     (unsigned long long)now->lane[i].packets,
		     (unsigned long long)now->lane[i].bytes, (double)bytes * 8e-9 / v->seconds,
		     total != 0 ? 100.0 * (double)bytes / (double)total : 0, now->lane[i].ready);
	}
}

static void scheduler(struct view *v)
{
	const struct uroce_lanes *now = &v->now, *last = &v->l->last;

	line(v,
	     "scheduler: %u ready, %u held; %.0f turns a second; %llu blind visits, %llu sifted, "
	     "%llu woken",
	     now->ready, now->held, (double)(now->turns - last->turns) / v->seconds,
	     (unsigned long long)now->blind_visits, (unsigned long long)now->sifted,
	     (unsigned long long)now->woken);
}

/* The parts of the table, from top to bottom. */
static void (*const parts[])(struct view *v) = {lanes, scheduler};

static void draw(struct perf_live *l, uint64_t now_ns)
{
	struct view v = {.l = l, .seconds = (double)(now_ns - l->last_ns) / 1e9};

	uroce_query_lanes(l->ep->ctx, &v.now);
	uroce_query_qos(l->ep->ctx, &l->qos);
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
