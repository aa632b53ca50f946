/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "manager/build.h"
#include "names.h"
#include "wire/smp.h"

#define WINDOW_START 64
#define WINDOW_MOST  1024
#define PORTS_A_NODE 16 /* room for that many on average */
#define MS	     UINT64_C(1000000)
#define FRAME_BYTES  342 /* of a MAD, Ethernet to ICRC, untagged */

bool ctl_complain(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("uroce-ctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return false;
}

void ctl_send(struct ctl_session *s, struct ur_mgr_mad *mad)
{
	uint8_t mgmt_class = mad->bytes[1];

	if (s->m_key && (mgmt_class == UR_MAD_CLASS_SMP_DR || mgmt_class == UR_MAD_CLASS_SMP_LID))
		ur_store64(mad->bytes + UR_SMP_MKEY, s->m_key);
	s->join->ops->send(s->join, mad);
	if (s->pace_ns) {
		uint64_t now = s->join->ops->now_ns(s->join);

		s->paced_ns = (s->paced_ns > now ? s->paced_ns : now) + s->pace_ns;
	}
}

void ctl_set_share(struct ctl_session *s, double percent, double gbps)
{
	s->pace_ns = (uint64_t)(FRAME_BYTES * 8 / (gbps * percent / 100)) + 1;
	s->paced_ns = s->join->ops->now_ns(s->join);
}

static bool may_send(const struct ctl_session *s, uint64_t now)
{
	return !s->pace_ns || now >= s->paced_ns;
}

/* ---- discovery ---- */

void ctl_progress(const char *what, uint64_t done, uint64_t of, const char *unit, uint64_t left_s)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s: %" PRIu64 " of %" PRIu64 " %s, %" PRIu64 " s left",
			what, done, of, unit, left_s);
}

void ctl_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static void show_progress(const struct ctl_session *s, bool end)
{
	static uint64_t shown;

	if (!isatty(STDERR_FILENO))
		return;
	if (end)
		ctl_progress_end();
	else if (s->requests.counters.answered - shown >= 1000) {
		shown = s->requests.counters.answered;
		fprintf(stderr, "\r\033[Kdiscovery: %u nodes, %" PRIu64 " responses",
			s->topo.nodes_cnt, shown);
	}
}

static void discover(struct ctl_session *s)
{
	struct ur_discover_attr attr = {(uint32_t)s->o->per_node};
	struct ctl_join *j = s->join;
	struct ur_discover d;
	struct ur_mgr_mad mad;
	uint64_t began = j->ops->now_ns(j);

	ur_discover_init(&d, &attr, &s->topo, &s->requests);
	while (!ur_discover_done(&d)) {
		while (ur_discover_output(&d, j->ops->now_ns(j), &mad))
			ctl_send(s, &mad);
		if (ur_discover_done(&d)) /* the last node's turn had nothing to ask for */
			break;
		if (j->ops->receive(j, ur_discover_next_deadline(&d), &mad))
			ur_discover_input(&d, &mad, j->ops->now_ns(j));
		ur_discover_expire(&d, j->ops->now_ns(j));
		show_progress(s, false);
	}
	show_progress(s, true);
	s->took_ns = j->ops->now_ns(j) - began;
}

/* ---- a run ---- */

bool ctl_make_tables(const struct ctl_options *o, struct ur_topo *topo, void **topo_memory,
		     struct ur_requests *requests, void **requests_memory)
{
	struct ur_topo_limits limits = {.nodes = (uint32_t)o->nodes,
					.ports = (uint32_t)o->nodes * PORTS_A_NODE + 256};
	uint32_t window = (uint32_t)o->window;
	struct ur_requests_attr attr = {.window = window ? window : WINDOW_MOST,
					.start = window ? 0 : WINDOW_START,
					.retries = (uint32_t)o->retries,
					.timeout_ns = o->timeout_ms * MS};

	arc4random_buf(&attr.seed, sizeof(attr.seed));
	arc4random_buf(&limits.seed, sizeof(limits.seed));
	*topo_memory = malloc(ur_topo_size(&limits));
	*requests_memory = malloc(ur_requests_size(attr.window));
	if (!*topo_memory || !*requests_memory)
		return ctl_complain("there is no memory for %" PRIu64
				    " nodes; give fewer with --nodes",
				    o->nodes);
	ur_topo_init(topo, *topo_memory, &limits);
	ur_requests_init(requests, *requests_memory, &attr);
	return true;
}

bool ctl_open(struct ctl_session *s, const struct ctl_options *o)
{
	char err[512];

	*s = (struct ctl_session){.o = o, .m_key = o->m_key};
	if (!ctl_make_tables(o, &s->topo, &s->topo_memory, &s->requests, &s->requests_memory))
		return false;
	s->join = ctl_join(o, err, sizeof(err));
	if (!s->join)
		return ctl_complain("%s", err);
	discover(s);
	if (!s->topo.nodes_cnt)
		return ctl_complain("this program's own agent does not answer");
	if (s->topo.full)
		ctl_complain("the fabric has more than %" PRIu64
			     " nodes, or more ports than they have usually; give more with --nodes",
			     o->nodes);
	return true;
}

void ctl_close(struct ctl_session *s)
{
	if (s->join)
		s->join->ops->close(s->join);
	free(s->topo_memory);
	free(s->requests_memory);
}

/* ---- requests ---- */

static void give(const struct ctl_batch *b, const struct ur_mgr_answer *a)
{
	b->take(b->ctx, (uint32_t)a->cookie, a->mad ? a->mad->bytes : NULL);
}

static void take_other(struct ctl_session *s, const struct ur_mgr_mad *mad)
{
	if (s->take_other)
		s->take_other(s->take_other_ctx, mad);
}

void ctl_ask(struct ctl_session *s, const struct ctl_batch *b)
{
	struct ur_requests *r = &s->requests;
	struct ctl_join *j = s->join;
	struct ur_mgr_answer answer;
	struct ur_mgr_mad mad;
	uint32_t next = 0;

	while ((next < b->cnt && !(b->stop && *b->stop)) || r->open) {
		uint64_t now = j->ops->now_ns(j), until;

		while (next < b->cnt && !(b->stop && *b->stop) && ur_requests_have_room(r) &&
		       (!b->most || r->open < b->most) && may_send(s, now)) {
			b->make(b->ctx, next, &mad);
			(void)ur_requests_post(r, &mad, next++, now);
			if (s->pace_ns)
				break;
		}
		while (ur_requests_output(r, now, &mad))
			ctl_send(s, &mad);
		until = ur_requests_next_deadline(r);
		if (next < b->cnt && !may_send(s, now) && s->paced_ns < until)
			until = s->paced_ns;
		if (j->ops->receive(j, until, &mad)) {
			if (ur_requests_input(r, &mad, j->ops->now_ns(j), &answer))
				give(b, &answer);
			else
				take_other(s, &mad);
		}
		while (ur_requests_expire(r, j->ops->now_ns(j), &answer))
			give(b, &answer);
	}
}

void ctl_wait(struct ctl_session *s, uint64_t until_ns)
{
	struct ctl_join *j = s->join;
	struct ur_mgr_mad mad;

	while (j->ops->now_ns(j) < until_ns)
		if (j->ops->receive(j, until_ns, &mad))
			take_other(s, &mad);
}

/* ---- one request ---- */

struct one {
	struct ur_mgr_mad request, *answer;
	bool answered;
};

static void make_one(void *ctx, uint32_t i, struct ur_mgr_mad *mad)
{
	*mad = ((struct one *)ctx)->request;
}

static void take_one(void *ctx, uint32_t i, const uint8_t *mad)
{
	struct one *o = ctx;

	o->answered = mad;
	if (mad)
		memcpy(o->answer->bytes, mad, UR_MAD_BYTES);
}

static bool ask_one(struct ctl_session *s, uint32_t node, struct one *one, const char *attr)
{
	struct ctl_batch batch = {.cnt = 1, .make = make_one, .take = take_one, .ctx = one};
	char name[CTL_NAME_BYTES];
	uint16_t status;

	ctl_ask(s, &batch);
	ctl_node_name(&s->topo, node, name);
	if (!one->answered)
		return ctl_complain(
			"%s does not answer a request for %s; a key is given with --m-key", name,
			attr);
	status = ur_load16(one->answer->bytes + 4) & (uint16_t)~UR_SMP_DIRECTION;
	if (status)
		return ctl_complain("%s refuses a request for %s: %s", name, attr,
				    ur_mad_status_text(status));
	return true;
}

bool ctl_get(struct ctl_session *s, uint32_t node, uint16_t attr_id, uint32_t attr_mod,
	     struct ur_mgr_mad *answer)
{
	struct one one = {.answer = answer};
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&s->topo, node, path);

	ur_mgr_directed(&one.request, UR_MAD_METHOD_GET, attr_id, attr_mod, path, hops);
	return ask_one(s, node, &one, ur_smp_attr_text(attr_id));
}

bool ctl_get_with(struct ctl_session *s, uint32_t node, uint16_t attr_id, const uint8_t *question,
		  struct ur_mgr_mad *answer)
{
	struct one one = {.answer = answer};
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&s->topo, node, path);

	ur_mgr_directed(&one.request, UR_MAD_METHOD_GET, attr_id, 0, path, hops);
	memcpy(one.request.bytes + UR_SMP_DATA, question, UR_SMP_DATA_BYTES);
	return ask_one(s, node, &one, ur_smp_attr_text(attr_id));
}

bool ctl_set(struct ctl_session *s, uint32_t node, uint16_t attr_id, uint32_t attr_mod,
	     struct ur_mgr_mad *mad)
{
	struct one one = {.answer = mad};
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops = ur_topo_path(&s->topo, node, path);

	ur_mgr_directed(&one.request, UR_MAD_METHOD_SET, attr_id, attr_mod, path, hops);
	memcpy(one.request.bytes + UR_SMP_DATA, mad->bytes + UR_SMP_DATA, UR_SMP_DATA_BYTES);
	return ask_one(s, node, &one, ur_smp_attr_text(attr_id));
}

bool ctl_change_port(struct ctl_session *s, uint32_t node, uint8_t port,
		     void (*change)(void *ctx, struct ur_port_info *info), void *ctx)
{
	struct ur_port_info info;
	struct ur_mgr_mad mad;

	if (!ctl_get(s, node, UR_SMP_PORT_INFO, port, &mad))
		return false;
	ur_get_port_info(mad.bytes + UR_SMP_DATA, &info);
	info.state = UR_PORT_NOP;
	info.phys_state = info.down_default = 0;
	info.width_enabled = info.speed_enabled = info.speed_ext_enabled = 0;
	change(ctx, &info);
	memset(mad.bytes + UR_SMP_DATA, 0, UR_SMP_DATA_BYTES);
	ur_put_port_info(mad.bytes + UR_SMP_DATA, &info);
	return ctl_set(s, node, UR_SMP_PORT_INFO, port, &mad);
}
