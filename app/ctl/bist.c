/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"
#include "output.h"
#include "registers.h"

/* The test of a link: a node sends packets to its neighbour, which returns them, beside all other traffic. */

#define NS	   1000000000.0
#define STANDARD_S 1.0
#define LAST_NS	   20000000 /* for packets that are still on their way at the end */

struct bist {
	struct ctl_session *s;
	uint32_t node;
	uint8_t port;
	uint64_t value[2];
	uint16_t address[2];
	const char *error;
	uint64_t sent, returned, wrong;
	bool known;
};

static void make(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	struct bist *b = ctx;

	ctl_make_registers(b->s, mad, b->node, b->address, b->value, 2);
}

static void take(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct bist *b = ctx;
	struct ur_registers r;

	b->error = mad ? ctl_registers_error(mad, &r) : "no answer";
}

/* Writes the duration, then the start, in one request. */
static bool start(struct bist *b, double duration_s)
{
	struct ctl_batch batch = {1, make, take, b};

	b->address[0] = ur_register_address(UR_PORT_BIST_DURATION_NS, b->port);
	b->value[0] = (uint64_t)(duration_s * NS);
	b->address[1] = ur_register_address(UR_PORT_BIST_CONTROL, b->port);
	b->value[1] = 1;
	ctl_ask(b->s, &batch);
	return !b->error || ctl_complain("the test was not started: %s", b->error);
}

static void take_result(void *ctx, uint32_t i, bool known, uint64_t value)
{
	struct bist *b = ctx;
	uint64_t *const to[] = {&b->sent, &b->returned, &b->wrong};

	b->known = b->known && known;
	*to[i] = value;
}

static bool read_result(struct bist *b)
{
	const struct ctl_register reg[] = {
		{b->node, ur_register_address(UR_PORT_BIST_SENT, b->port)},
		{b->node, ur_register_address(UR_PORT_BIST_RETURNED, b->port)},
		{b->node, ur_register_address(UR_PORT_BIST_ERRORS, b->port)},
	};
	struct ctl_read read = {.reg = reg, .cnt = 3, .take = take_result, .ctx = b};

	b->known = true;
	if (!ctl_read_registers(b->s, &read))
		return false;
	return b->known || ctl_complain("the result was not read: the node does not answer");
}

bool ctl_cmd_bist(struct ctl_session *s)
{
	double duration_s = s->o->duration_s > 0 ? s->o->duration_s : STANDARD_S;
	struct bist b = {.s = s};
	struct ctl_join *j = s->join;
	uint64_t port;
	char err[256];
	bool ok;

	if (!ctl_find_node(&s->topo, s->o->words[0], &b.node, err, sizeof(err)))
		return ctl_complain("%s", err);
	if (!ctl_parse_number(s->o->words[1], s->topo.node[b.node].ports, &port) || !port)
		return ctl_complain("'%s' is not a port of %s; it has ports 1 to %u",
				    s->o->words[1], s->o->words[0], s->topo.node[b.node].ports);
	b.port = (uint8_t)port;
	if (!start(&b, duration_s))
		return false;
	ctl_wait(s, j->ops->now_ns(j) + (uint64_t)(duration_s * NS) + LAST_NS);
	if (!read_result(&b))
		return false;
	ok = b.sent && b.returned == b.sent && !b.wrong;
	if (ctl_prints_text(s->o))
		printf("%llu packets sent, %llu returned, %llu with wrong bytes: %s\n",
		       (unsigned long long)b.sent, (unsigned long long)b.returned,
		       (unsigned long long)b.wrong,
		       ok ? "the link is good" : "the link is not good");
	return ctl_json_write(s->o, json_pack("{s:I,s:I,s:I,s:b}", "sent", (json_int_t)b.sent,
					      "returned", (json_int_t)b.returned, "wrong",
					      (json_int_t)b.wrong, "good", ok)) &&
	       ok;
}
