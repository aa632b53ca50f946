/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "wire/vendor.h"

/* Paths of RoCE packets: each switch is asked by which port it would forward them. */

#define NO_PORT	  255
#define HOPS_MAX  64
#define PATHS_MAX UINT32_MAX /* so many, or more */

struct flow {
	struct ctl_session *s;
	struct ur_route question;
	ctl_flow_leave *leave;
	void *ctx;
	uint32_t *paths; /* of each node to the end; UINT32_MAX: not known yet */
};

bool ctl_flow_address(const char *text, struct ur_route *question)
{
	uint8_t b[16] = {[10] = 0xff, 0xff};

	if (inet_pton(AF_INET, text, b + 12) != 1 && inet_pton(AF_INET6, text, b) != 1)
		return false;
	*question = (struct ur_route){.addr_high = ur_load64(b), .addr_low = ur_load64(b + 8)};
	return true;
}

static bool ask(struct flow *f, uint32_t node, struct ur_route *answer)
{
	char name[CTL_NAME_BYTES];
	uint8_t question[UR_SMP_DATA_BYTES] = {0};
	struct ur_mgr_mad mad;

	ur_put_route(question, &f->question);
	if (!ctl_get_with(f->s, node, UR_SMP_ROUTE, question, &mad))
		return false;
	ur_get_route(mad.bytes + UR_SMP_DATA, answer);
	ctl_node_name(&f->s->topo, node, name);
	if (!answer->known)
		return ctl_complain(
			"%s has no LID for this address; it forwards such packets by the MAC addresses that it has learned",
			name);
	return (answer->port != NO_PORT && answer->port &&
		answer->port <= f->s->topo.node[node].ports) ||
	       ctl_complain("%s drops packets to this address: no port of its %u LIDs is up", name,
			    1u << (answer->lmc & 7));
}

static uint8_t first_linked(const struct ur_topo *t, uint32_t node)
{
	for (uint8_t p = 1; p <= t->node[node].ports; p++)
		if (t->port[ur_topo_port_of(t, node, p)].peer_node != UR_TOPO_NONE)
			return p;
	return 1;
}

static uint32_t beyond(const struct ur_topo *t, uint32_t node, uint8_t port)
{
	return t->port[ur_topo_port_of(t, node, port)].peer_node;
}

bool ctl_flow_trace(struct ctl_session *s, uint32_t from, const struct ur_route *question,
		    ctl_flow_leave *leave, void *ctx)
{
	struct flow f = {.s = s, .question = *question};
	const struct ur_topo *t = &s->topo;
	uint32_t at = from;

	for (unsigned hop = 0;; hop++) {
		struct ur_route answer = {.port = first_linked(t, at)};

		if (hop && t->node[at].type != UR_TOPO_SWITCH)
			return true;
		if (hop == HOPS_MAX)
			return ctl_complain("the path has more than %d hops: it is a loop",
					    HOPS_MAX);
		if (t->node[at].type == UR_TOPO_SWITCH && !ask(&f, at, &answer))
			return false;
		if (!leave(ctx, at, answer.port))
			return false;
		at = beyond(t, at, answer.port);
	}
}

/* ---- all paths ---- */

/* Each switch is asked once, and each link reported once. The number of paths; 0: a sentence was printed. */
static uint32_t explore(struct flow *f, uint32_t at, unsigned hop)
{
	const struct ur_topo *t = &f->s->topo;
	uint8_t first = first_linked(t, at);
	uint64_t ports = first < 64 ? UINT64_C(1) << first : 0, sum = 0;
	struct ur_route answer;

	if (hop && t->node[at].type != UR_TOPO_SWITCH)
		return 1;
	if (f->paths[at] != UINT32_MAX) {
		if (!f->paths[at])
			(void)ctl_complain("the paths have a loop");
		return f->paths[at];
	}
	if (hop == HOPS_MAX) {
		(void)ctl_complain("a path has more than %d hops", HOPS_MAX);
		return 0;
	}
	f->paths[at] = 0; /* on the way: a path that comes here again has a loop */
	if (t->node[at].type == UR_TOPO_SWITCH) {
		if (!ask(f, at, &answer))
			return 0;
		ports = answer.ports;
	}
	for (uint8_t p = 1; p <= t->node[at].ports && p < 64; p++) {
		uint32_t more;

		if (!(ports >> p & 1))
			continue;
		if (!f->leave(f->ctx, at, p))
			return 0;
		more = explore(f, beyond(t, at, p), hop + 1);
		if (!more)
			return 0;
		sum += more;
	}
	if (!sum) {
		(void)ctl_complain("a path ends at a node that no port leads on from");
		return 0;
	}
	f->paths[at] = sum < PATHS_MAX - 1 ? (uint32_t)sum : PATHS_MAX - 1;
	return f->paths[at];
}

uint32_t ctl_flow_all(struct ctl_session *s, uint32_t from, const struct ur_route *question,
		      ctl_flow_leave *leave, void *ctx)
{
	struct flow f = {.s = s, .question = *question, .leave = leave, .ctx = ctx};
	uint32_t paths;

	f.paths = malloc(s->topo.nodes_cnt * sizeof(*f.paths));
	if (!f.paths) {
		(void)ctl_complain("there is no memory for %u nodes", s->topo.nodes_cnt);
		return 0;
	}
	memset(f.paths, 0xff, s->topo.nodes_cnt * sizeof(*f.paths));
	paths = explore(&f, from, 0);
	free(f.paths);
	return paths;
}
