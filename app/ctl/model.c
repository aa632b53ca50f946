/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "fabric/shape.h"
#include "join.h"

/* ---- a model of a fabric ---- */

#define PLACE	  0	   /* its node, an endpoint */
#define MAD_NS	  24	   /* 342 bytes at 112 Gb/s, a link of the paper */
#define SETTLE_NS 10000000 /* agents ask their neighbours when links come up */

enum what { UP, DOWN, ERRORS, KILL };

/* Something that happens in the model; --model-event. */
struct happening {
	uint64_t at_ns;
	enum what what;
	uint32_t node;
	uint8_t port;
};

struct model {
	struct ctl_join join;
	struct ur_fabric *fabric;
	struct happening happening[CTL_EVENTS_MAX]; /* in order of their times */
	unsigned cnt, done;
};

static void happen(struct ur_fabric *f, const struct happening *h)
{
	switch (h->what) {
	case UP:
	case DOWN:
		ur_fabric_set_link(f, h->node, h->port, h->what == UP);
		break;
	case ERRORS:
		ur_fabric_count_errors(f, h->node, h->port, 1000);
		break;
	case KILL:
		ur_fabric_kill(f, h->node);
		break;
	}
}

static void model_send(struct ctl_join *j, const struct ur_mgr_mad *mad)
{
	ur_fabric_send(((struct model *)j)->fabric, PLACE, mad->lid, mad->bytes);
}

static bool model_receive(struct ctl_join *j, uint64_t until_ns, struct ur_mgr_mad *mad)
{
	struct model *m = (struct model *)j;
	struct ur_fabric *f = m->fabric;

	while (m->done < m->cnt && m->happening[m->done].at_ns <= until_ns) {
		if (ur_fabric_run(f, m->happening[m->done].at_ns))
			return ur_fabric_receive(f, PLACE, &mad->lid, mad->bytes);
		happen(f, &m->happening[m->done++]);
	}
	return ur_fabric_run(f, until_ns) && ur_fabric_receive(f, PLACE, &mad->lid, mad->bytes);
}

static uint64_t model_now(struct ctl_join *j)
{
	return ur_fabric_now(((struct model *)j)->fabric);
}

static void model_close(struct ctl_join *j)
{
	ur_fabric_free(((struct model *)j)->fabric);
	free(j);
}

/* ---- events ---- */

static bool find_node(const struct ur_fabric *f, const char *name, uint32_t *node)
{
	for (*node = 0; *node < ur_fabric_nodes(f); (*node)++)
		if (!strcmp(ur_fabric_node(f, *node)->name, name))
			return true;
	return false;
}

/* "0.5,down,switch 1,2" */
static bool take_event(struct model *m, const char *text, char *err, size_t err_bytes)
{
	static const char *const words[] = {"up", "down", "errors", "kill"};
	struct happening h = {.what = KILL + 1};
	char word[16], name[65];
	unsigned port = 0, at;
	uint32_t peer;
	uint8_t far;
	double s;
	int got = sscanf(text, "%lf,%15[a-z],%64[^,],%u", &s, word, name, &port);

	for (unsigned i = 0; got >= 3 && i < 4; i++)
		if (!strcmp(word, words[i]))
			h.what = (enum what)i;
	if (h.what > KILL || got != (h.what == KILL ? 3 : 4) || !(s >= 0 && s < 1e7)) {
		snprintf(
			err, err_bytes,
			"--model-event: '%s' is not 'SECONDS,up|down|errors,NODE,PORT' or 'SECONDS,kill,NODE'",
			text);
		return false;
	}
	if (!find_node(m->fabric, name, &h.node) ||
	    (h.what != KILL && (port > ur_fabric_node(m->fabric, h.node)->ports ||
				!ur_fabric_peer(m->fabric, h.node, (uint8_t)port, &peer, &far)))) {
		snprintf(err, err_bytes,
			 "--model-event: '%s': the model has no such node, or no link at that port",
			 text);
		return false;
	}
	h.port = (uint8_t)port;
	h.at_ns = SETTLE_NS + (uint64_t)(s * 1e9);
	for (at = m->cnt++; at && m->happening[at - 1].at_ns > h.at_ns; at--)
		m->happening[at] = m->happening[at - 1];
	m->happening[at] = h;
	return true;
}

struct ctl_join *ctl_join_model(const struct ctl_options *o, char *err, size_t err_bytes)
{
	static const struct ctl_join_ops ops = {model_send, model_receive, model_now, model_close};
	struct ur_fabric_attr attr = {.hop_ns = UR_FABRIC_PAPER_HOP_NS,
				      .process_ns = UR_FABRIC_PAPER_PROCESS_NS,
				      .mad_ns = MAD_NS,
				      .seed = 1};
	struct ur_fabric *f = ur_fabric_of_shape(o->fabric_model, &attr, err, err_bytes);
	struct model *m = f ? calloc(1, sizeof(*m)) : NULL;

	if (f && !m)
		snprintf(err, err_bytes, "there is no memory for a model of '%s'", o->fabric_model);
	if (!m) {
		ur_fabric_free(f);
		return NULL;
	}
	m->join.ops = &ops;
	m->fabric = f;
	for (unsigned i = 0; i < o->events_cnt; i++)
		if (!take_event(m, o->events[i], err, err_bytes)) {
			model_close(&m->join);
			return NULL;
		}
	ur_fabric_start(f);
	ur_fabric_attach(f, PLACE);
	(void)ur_fabric_run(f, SETTLE_NS);
	return &m->join;
}
