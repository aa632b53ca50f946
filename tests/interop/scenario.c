/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenario.h"

#include <stdio.h>
#include <string.h>

#include "cm.h"
#include "faults.h"
#include "traffic.h"

static bool failed_at(struct session *s, unsigned nr)
{
	char why[sizeof(s->why)];

	memcpy(why, s->why, sizeof(why));
	snprintf(s->why, sizeof(s->why), "connection %u: %.400s", nr, why);
	return false;
}

static bool traffic(struct session *s, char *note, size_t note_bytes)
{
	struct totals t;
	unsigned long long begun = now_ms(), ms;

	if (!session_connect(s) || !run_traffic(s, &t) || !meet(s, "end") || !session_disconnect(s))
		return false;
	ms = now_ms() - begun;
	if (s->spec.lossy != 0)
		snprintf(note, note_bytes, "%llu messages, %llu not delivered",
			 (unsigned long long)t.messages, (unsigned long long)t.missing);
	else
		snprintf(note, note_bytes, "%llu messages, %.3f MB, %.1f s",
			 (unsigned long long)t.messages, (double)t.bytes / 1e6, (double)ms / 1e3);
	return true;
}

/* Successive connections, each with the traffic of one round. */
static bool connections(struct session *s, char *note, size_t note_bytes)
{
	unsigned cnt = s->spec.count;
	struct totals t;

	s->spec.count = s->spec.op_cnt * s->spec.size_cnt;
	if (!session_listen(s))
		return false;
	for (unsigned i = 0; i < cnt; i++, s->spec.seed++) {
		if (!session_connect_cm(s) || !run_traffic(s, &t) || !meet(s, "next") ||
		    !session_disconnect(s))
			return failed_at(s, i);
	}
	snprintf(note, note_bytes, "%u connections", cnt);
	return meet(s, "end");
}

/* A peer that refuses, a port without a listener, and then a connection. */
static bool refusals(struct session *s, char *note, size_t note_bytes)
{
	struct totals t;

	if (!session_listen(s))
		return false;
	if (is_us(s->spec.active) ? !cm_expect_refusal(s, false) || !cm_expect_refusal(s, true)
				  : !cm_refuse(s))
		return false;
	return meet(s, "refused") && session_connect_cm(s) && run_traffic(s, &t) &&
	       meet(s, "end") && session_disconnect(s);
}

static const struct kind {
	const char *word;
	bool (*run)(struct session *s, char *note, size_t note_bytes);
} kinds[] = {
	{"traffic", traffic},
	{"connections", connections},
	{"refusals", refusals},
	{"refused", run_refused},
	{"rnr-exceeded", run_rnr_exceeded},
	{"death", run_death},
	{"vanish", run_vanish},
	{"wrong-qkey", run_wrong_qkey},
	{"invalidate", run_invalidate},
};

bool run_scenario(struct session *s, char *note, size_t note_bytes)
{
	const struct kind *kind = NULL;
	bool ok;

	note[0] = '\0';
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(s->spec.kind, kinds[i].word) == 0)
			kind = &kinds[i];
	ok = kind != NULL ? session_open(s) && kind->run(s, note, note_bytes)
			  : failed(s, "there is no kind '%s'", s->spec.kind);
	ok &= session_close(s);
	if (s->peer_left)
		return ok;
	if (!ok && s->link->peer_failure[0] == '\0')
		link_send(s->link, "fail %s", s->why);
	return ok;
}
