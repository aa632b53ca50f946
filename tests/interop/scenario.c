/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenario.h"

#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "traffic.h"

static bool traffic(struct session *s, char *note, size_t note_bytes)
{
	struct totals t;
	unsigned long long begun = now_ms(), ms;

	if (!session_connect(s) || !run_traffic(s, &t) || !meet(s, "end"))
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

static const struct kind {
	const char *word;
	bool (*run)(struct session *s, char *note, size_t note_bytes);
} kinds[] = {
	{"traffic", traffic},
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
	if (!ok && s->link->peer_failure[0] == '\0')
		link_send(s->link, "fail %s", s->why);
	return ok;
}
