/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "file/replace_file.h"
#include "manage.h"
#include "manager/build.h"
#include "names.h"
#include "output.h"
#include "pace.h"
#include "reports.h"
#include "scout.h"
#include "wire/siphash.h"

/*
 * One of the managers of a zone. A single loop asks what the election wants to know, answers the other managers, and
 * discovers the fabric again and again; while it is master, faults are reported here.
 */

#define MS	  UINT64_C(1000000)
#define MINUTE	  (60000 * MS)
#define NS	  1e9
#define QUESTIONS 256 /* of the election, at the same time */
#define OF_REPORT                                                                                  \
	(UINT64_C(1) << 63) /* in a request's cookie: it is about a report, not the election */
#define DUTY	    10	    /* discovery takes at most one part in so many of the time */
#define LEAVE_TRIES 3	    /* leases, for a handover at the end */

/* What the last discovery found of a member. */
struct member {
	uint32_t node; /* UR_TOPO_NONE: it is not there */
	uint64_t way;  /* stands for the path to it; 0: there is none */
	bool doubled;  /* other nodes have its GUID */
};

struct run {
	struct ctl_session *s;
	const struct ur_zones *zones;
	const struct ur_zone *zone;
	struct ur_election e;
	struct ur_hold *hold;
	struct member *member; /* of each entry of `hold` */
	uint8_t *zone_of;      /* of each node */
	uint32_t *work;	       /* 3 numbers for each node */
	struct ur_requests asked;
	void *asked_memory;
	struct ctl_reports reports;
	struct ctl_scout scout;
	uint64_t scout_ns;	      /* when it sets out again */
	enum ur_election_phase phase; /* that was printed last */
	uint32_t held;		      /* members that were printed last */
	uint64_t master;
	uint64_t unproved,
		unproved_ns; /* answers that were printed last, and when they are again */
	uint32_t doubled;    /* bit i: several nodes have the GUID of seat i, as was printed */
	bool unasked;	     /* nodes may have to be told to report here */
	FILE *json;
};

static uint64_t now_of(const struct run *r)
{
	return r->s->join->ops->now_ns(r->s->join);
}

/* ---- events ---- */

/* A line for each: text, or JSON. */
static void say(struct run *r, const char *event, const char *text, json_t *more)
{
	struct timespec t;
	json_t *o;

	clock_gettime(CLOCK_REALTIME, &t);
	o = json_pack("{s:s,s:s,s:f}", "event", event, "zone", r->zone->name, "time_s",
		      (double)t.tv_sec + (double)t.tv_nsec / NS);
	if (more)
		json_object_update(o, more);
	json_decref(more);
	if (r->json && (json_dumpf(o, r->json, JSON_COMPACT) || fputc('\n', r->json) == EOF ||
			fflush(r->json)))
		ctl_complain("--json: an event was not written");
	json_decref(o);
	if (ctl_prints_text(r->s->o)) {
		printf("%s: %s\n", r->zone->name, text);
		fflush(stdout);
	}
}

static void say_phase(struct run *r, uint64_t now)
{
	struct ur_manager_info info;
	uint32_t seats, members;
	char text[128];

	if (r->e.phase == r->phase && r->e.master == r->master)
		return;
	r->phase = r->e.phase;
	r->master = r->e.master;
	ur_election_held(&r->e, now, &seats, &members);
	ur_election_info(&r->e, 0, now, &info);
	snprintf(text, sizeof(text), "%s (%s); master %#" PRIx64 ", %u of %u seats",
		 ctl_manager_state(info.state), ur_election_phase_name(r->phase), r->master, seats,
		 r->e.attr.seats);
	say(r, "state", text,
	    json_pack("{s:s,s:s,s:o,s:o,s:i,s:i,s:I}", "state", ctl_manager_state(info.state),
		      "phase", ur_election_phase_name(r->phase), "master", ctl_json_hex(r->master),
		      "guid", ctl_json_hex(r->e.attr.guid), "seats", (int)r->e.attr.seats, "held",
		      (int)seats, "terms", (json_int_t)r->e.terms));
}

static void say_held(struct run *r, uint64_t now)
{
	uint32_t seats, members;
	char text[96];

	ur_election_held(&r->e, now, &seats, &members);
	if (r->e.phase != UR_ELECTION_REIGN)
		r->held = 0;
	if (r->e.phase != UR_ELECTION_REIGN || members == r->held)
		return;
	r->held = members;
	snprintf(text, sizeof(text), "%u of %u nodes have the key", members, r->e.members);
	r->unasked = true;
	say(r, "nodes", text,
	    json_pack("{s:i,s:i}", "held", (int)members, "nodes", (int)r->e.members));
}

/* At most once a minute, so that the sender of such answers does not decide how much is written. */
static void say_unproved(struct run *r, uint64_t now)
{
	char text[128];

	if (r->e.unproved == r->unproved || now < r->unproved_ns)
		return;
	r->unproved = r->e.unproved;
	r->unproved_ns = now + MINUTE;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " answers without proof of the zone's key, the last one of %#" PRIx64,
		 r->unproved, r->e.unproved_guid);
	say(r, "unproved", text,
	    json_pack("{s:I,s:o}", "answers", (json_int_t)r->unproved, "guid",
		      ctl_json_hex(r->e.unproved_guid)));
}

/* ---- the key, for other commands ---- */

/* Replaced as a whole: a reader finds a key or none. It is of no use after a crash, so nothing waits for the disk. */
static bool write_key(struct run *r, uint64_t key)
{
	const char *file = r->s->o->key_out;
	char text[32];
	int rc;

	if (!file)
		return true;
	if (!key) {
		unlink(file);
		return true;
	}
	snprintf(text, sizeof(text), "%#" PRIx64 "\n", key);
	rc = ur_replace_file_unsynced(file, text, strlen(text), 0600);
	return !rc || ctl_complain("--key-out: %s was not written: %s", file, strerror(rc));
}

/* ---- members ---- */

static bool is_seat(const struct run *r, uint32_t node)
{
	const struct ur_topo *t = &r->s->topo;

	for (uint32_t i = 0; i < r->zone->seats_cnt; i++)
		if (r->zone->seat[i] == t->node[node].guid)
			return ur_zones_seat(t, t->node[node].guid) == node;
	return false;
}

static const struct ur_topo *sorted; /* qsort() passes no context */

static int by_guid_of_node(const void *a, const void *b)
{
	uint32_t i = ((const struct member *)a)->node, k = ((const struct member *)b)->node;
	uint64_t x = sorted->node[i].guid, y = sorted->node[k].guid;

	return x != y ? (x < y ? -1 : 1) : i < k ? -1 : i > k;
}

/* MGR-ZONE-07 */
static void say_doubled(struct run *r)
{
	const struct ur_topo *t = &r->s->topo;
	uint32_t doubled = 0;
	char text[128];

	for (uint32_t i = 0; i < r->zone->seats_cnt; i++) {
		uint64_t guid = r->zone->seat[i];

		if (ur_topo_find(t, guid) == UR_TOPO_NONE || ur_zones_seat(t, guid) != UR_TOPO_NONE)
			continue;
		doubled |= 1u << i;
		if (r->doubled >> i & 1)
			continue;
		snprintf(text, sizeof(text),
			 "GUID %#" PRIx64 " of a seat belongs to several nodes; the seat does not"
			 " count until only one has it",
			 guid);
		say(r, "duplicate", text, json_pack("{s:o}", "guid", ctl_json_hex(guid)));
	}
	r->doubled = doubled;
}

/* Stands for the path to a node. */
static uint64_t way_to(const struct ur_topo *t, uint32_t node)
{
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops;

	if (t->node[node].hops == UR_TOPO_NO_PATH)
		return 0;
	hops = ur_topo_path(t, node, path);
	return ur_siphash(0, hops, path, hops + 1u) | 1;
}

static void find_member(const struct ur_topo *t, struct member *m)
{
	if (m->node == UR_TOPO_NONE)
		return;
	m->way = way_to(t, m->node);
	m->doubled = t->node[m->node].faults & UR_TOPO_DUPLICATE;
}

/* Of two discoveries and one GUID: where other nodes have or had the GUID, only the path tells which node it is. */
static bool is_same(const struct member *a, const struct member *b)
{
	return (!a->doubled && !b->doubled) || (a->way && a->way == b->way);
}

/* What is known of a node is kept. Seats have the same places in both tables, the others are in order of their GUIDs. */
static void keep_known(const struct run *r, struct ur_hold *hold, const struct member *member,
		       uint32_t cnt)
{
	uint32_t seats = r->zone->seats_cnt, first = seats;

	if (!r->hold)
		return;
	memcpy(hold, r->hold, seats * sizeof(*hold));
	for (uint32_t i = seats; i < cnt; i++) {
		uint64_t guid = hold[i].guid;

		while (first < r->e.members && r->hold[first].guid < guid)
			first++;
		for (uint32_t k = first; k < r->e.members && r->hold[k].guid == guid; k++)
			if (is_same(&r->member[k], &member[i]))
				hold[i] = r->hold[k];
	}
}

/* The zone's nodes in the graph that was just discovered: seats, in the order of the file, then the others. */
static bool make_members(struct run *r)
{
	const struct ur_topo *t = &r->s->topo;
	uint32_t most = t->nodes_cnt + UR_ZONE_SEATS_MAX, seats = r->zone->seats_cnt, cnt = seats;
	struct ur_hold *hold = calloc(most, sizeof(*hold));
	struct member *member = calloc(most, sizeof(*member));
	uint8_t number = (uint8_t)(r->zone - r->zones->zone);

	free(r->zone_of);
	free(r->work);
	r->zone_of = calloc(t->nodes_cnt, sizeof(*r->zone_of));
	r->work = calloc(3 * (size_t)t->nodes_cnt, sizeof(*r->work));
	if (!hold || !member || !r->zone_of || !r->work) {
		free(hold);
		free(member);
		return ctl_complain("there is no memory for the nodes of a zone");
	}
	ur_zones_assign(r->zones, t, r->zone_of, r->work, r->work + 2 * (size_t)t->nodes_cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		hold[i].guid = r->zone->seat[i];
		member[i].node = ur_zones_seat(t, hold[i].guid);
	}
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		if (r->zone_of[i] == number && !is_seat(r, i) && !ctl_is_manager(t, i))
			member[cnt++].node = i;
	sorted = t;
	qsort(member + seats, cnt - seats, sizeof(*member), by_guid_of_node);
	for (uint32_t i = seats; i < cnt; i++)
		hold[i].guid = t->node[member[i].node].guid;
	for (uint32_t i = 0; i < cnt; i++)
		find_member(t, &member[i]);
	keep_known(r, hold, member, cnt);
	if (r->hold)
		ur_election_set_members(&r->e, hold, cnt);
	free(r->hold);
	free(r->member);
	r->hold = hold;
	r->member = member;
	return true;
}

static void make_peers(struct run *r)
{
	const struct ur_topo *t = &r->s->topo;
	uint64_t guid[UR_ELECTION_PEERS_MAX];
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < t->nodes_cnt && cnt < UR_ELECTION_PEERS_MAX; i++)
		if (i && ctl_is_manager(t, i))
			guid[cnt++] = t->node[i].guid;
	ur_election_set_peers(&r->e, guid, cnt);
}

/* The graph was discovered: questions that are open refer to the one before. */
static bool take_graph(struct run *r)
{
	ur_requests_cancel_all(&r->asked);
	ctl_reports_again(&r->reports);
	if (!make_members(r))
		return false;
	make_peers(r);
	say_doubled(r);
	r->unasked = true;
	return true;
}

/* ---- questions and answers ---- */

/* The node that the question is for; UR_TOPO_NONE: it is not there now. */
static uint32_t node_of(const struct run *r, const struct ur_election_ask *ask)
{
	if (ask->what == UR_ELECTION_READ || ask->what == UR_ELECTION_WRITE)
		return r->member[ask->index].node;
	return ur_topo_find(&r->s->topo, r->e.peer[ask->index].guid);
}

static void post(struct run *r, const struct ur_election_ask *ask, uint64_t now)
{
	bool sets = ask->what == UR_ELECTION_WRITE || ask->what == UR_ELECTION_TELL;
	bool port = ask->what == UR_ELECTION_READ || ask->what == UR_ELECTION_WRITE;
	uint8_t path[UR_TOPO_PATH_MAX + 1], hops;
	uint32_t node = node_of(r, ask);
	struct ur_mgr_mad mad;

	if (node == UR_TOPO_NONE || r->s->topo.node[node].hops == UR_TOPO_NO_PATH) {
		ur_election_answer(&r->e, ask->what, ask->index, NULL, now);
		return;
	}
	hops = ur_topo_path(&r->s->topo, node, path);
	ur_mgr_directed(&mad, sets ? UR_MAD_METHOD_SET : UR_MAD_METHOD_GET,
			port ? UR_SMP_PORT_INFO : UR_SMP_MANAGER, ask->modifier, path, hops);
	ur_store64(mad.bytes + UR_SMP_MKEY, ask->key);
	if (sets || !port)
		memcpy(mad.bytes + UR_SMP_DATA, ask->data, UR_SMP_DATA_BYTES);
	(void)ur_requests_post(&r->asked, &mad, (uint64_t)ask->what << 32 | ask->index, now);
}

static void finish(struct run *r, const struct ur_mgr_answer *a, uint64_t now)
{
	const uint8_t *mad = a->mad ? a->mad->bytes : NULL;
	bool ok = mad && !(ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION);

	if (a->cookie & OF_REPORT) {
		ctl_reports_answer(&r->reports, (uint32_t)a->cookie, mad);
		return;
	}
	ur_election_answer(&r->e, (enum ur_election_what)(a->cookie >> 32), (uint32_t)a->cookie,
			   ok ? mad + UR_SMP_DATA : NULL, now);
}

/* Another manager asks, or orders: a request that came by a directed route goes back on it. MGR-ZONE-05 */
static void serve(struct run *r, const struct ur_mgr_mad *mad, uint64_t now)
{
	struct ur_mgr_mad answer = *mad;
	struct ur_manager_info info;
	bool ok = true;

	ur_get_manager_info(mad->bytes + UR_SMP_DATA, &info);
	if (mad->bytes[3] == UR_MAD_METHOD_SET)
		ok = ur_election_order(&r->e, ur_load32(mad->bytes + 20), &info, now);
	ur_election_info(&r->e, info.number, now, &info);
	memset(answer.bytes + UR_SMP_DATA, 0, UR_SMP_DATA_BYTES);
	ur_put_manager_info(answer.bytes + UR_SMP_DATA, &info);
	answer.bytes[3] = UR_MAD_METHOD_GET_RESP;
	ur_store16(answer.bytes + 4,
		   (uint16_t)(UR_SMP_DIRECTION | (ok ? UR_MAD_STATUS_OK : UR_MAD_STATUS_VALUE)));
	r->s->join->ops->send(r->s->join, &answer);
}

static void show_fault(void *ctx, const struct ur_fault *report, const char *name)
{
	char text[96], line[256];
	struct run *r = ctx;

	ctl_reports_text(report, text, sizeof(text));
	snprintf(line, sizeof(line), "%s: \"%s\" port %u: %s", ur_severity_text(report->severity),
		 name, report->port, text);
	say(r, "fault", line,
	    json_pack("{s:s,s:o,s:s,s:i,s:s}", "severity", ur_severity_text(report->severity),
		      "node", ctl_json_hex(report->node_guid), "description", name, "port",
		      (int)report->port, "cause", ur_fault_text(report->cause)));
	r->scout_ns = 0; /* a link may have changed */
}

/* As answers without proof. */
static void say_unconfirmed(struct run *r, uint64_t now)
{
	char text[256];

	if (ctl_reports_unconfirmed(&r->reports, MINUTE, now, text, sizeof(text)))
		say(r, "unconfirmed", text, ctl_reports_json(&r->reports));
}

static void take(struct run *r, const struct ur_mgr_mad *mad)
{
	uint64_t now = now_of(r);
	struct ur_mgr_answer answer;
	uint8_t method = mad->bytes[3];

	if (ur_requests_input(&r->asked, mad, now, &answer))
		finish(r, &answer, now);
	else if (mad->bytes[1] == UR_MAD_CLASS_SMP_DR &&
		 ur_load16(mad->bytes + 16) == UR_SMP_MANAGER &&
		 (method == UR_MAD_METHOD_GET || method == UR_MAD_METHOD_SET))
		serve(r, mad, now);
	else if (method & UR_MAD_METHOD_RESPONSE)
		ctl_scout_input(&r->scout, mad, now);
	else
		ctl_reports_take(&r->reports, mad);
}

/* ---- reports ---- */

/*
 * Nodes that have the key are told to report here, once for each path, by which reports come back. No answer is
 * waited for.
 */
static void ask_reports(struct run *r, uint64_t now)
{
	struct ur_mgr_mad mad;

	for (uint32_t i = 0; i < r->e.members && r->unasked; i++) {
		struct ur_hold *h = &r->hold[i];
		const struct member *m = &r->member[i];

		if (h->until_ns <= now || !m->way || h->way == m->way)
			continue;
		h->way = m->way;
		ctl_reports_make(r->s, m->node, &mad);
		ctl_send(r->s, &mad);
	}
	r->unasked = false;
}

/* ---- the loop ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Nodes are asked whether they report what came in their name. The election's questions have most of the room. */
static void post_reports(struct run *r, uint64_t now)
{
	struct ur_mgr_mad mad;
	uint32_t number;

	while (r->asked.open < QUESTIONS / 4 && ctl_reports_next(&r->reports, &number, &mad)) {
		ur_store64(mad.bytes + UR_SMP_MKEY, r->e.key);
		(void)ur_requests_post(&r->asked, &mad, OF_REPORT | number, now);
	}
}

static void send_all(struct run *r, uint64_t now)
{
	struct ur_election_ask ask;
	struct ur_mgr_mad mad;

	while (ur_requests_have_room(&r->asked) && ur_election_output(&r->e, now, &ask))
		post(r, &ask, now);
	post_reports(r, now);
	while (ur_requests_output(&r->asked, now, &mad))
		r->s->join->ops->send(r->s->join, &mad);
	r->s->m_key = r->e.key;
	if (r->unasked && ur_election_is_master(&r->e, now))
		ask_reports(r, now);
	while (ctl_scout_output(&r->scout, now, &mad))
		ctl_send(r->s, &mad);
}

/* Discovery ends, or begins. */
static bool step_scout(struct run *r, uint64_t now)
{
	uint64_t pause = (uint64_t)(r->s->o->interval_s * NS);

	if (r->scout.running && ctl_scout_is_done(&r->scout)) {
		uint64_t took = now - r->scout.began_ns;

		r->scout_ns = now + (pause > DUTY * took ? pause : DUTY * took);
		if (ctl_scout_finish(&r->scout) && !take_graph(r))
			return false;
	}
	if (!r->scout.running && now >= r->scout_ns)
		ctl_scout_begin(&r->scout, now);
	return true;
}

/* One turn of the loop, which lasts until something happens. */
static bool turn(struct run *r, uint64_t until_ns)
{
	struct ctl_join *j = r->s->join;
	uint64_t now = now_of(r), next;
	struct ur_mgr_answer answer;
	struct ur_mgr_mad mad;

	if (!step_scout(r, now))
		return false;
	send_all(r, now);
	say_phase(r, now);
	say_held(r, now);
	say_unproved(r, now);
	say_unconfirmed(r, now);
	next = least(least(ur_election_next_deadline(&r->e), ur_requests_next_deadline(&r->asked)),
		     r->scout.running ? ctl_scout_next_deadline(&r->scout) : r->scout_ns);
	if (j->ops->receive(j, least(next, until_ns), &mad))
		take(r, &mad);
	now = now_of(r);
	while (ur_requests_expire(&r->asked, now, &answer))
		finish(r, &answer, now);
	ctl_scout_expire(&r->scout, now);
	return true;
}

/* It is ended: another manager takes over, or the keys are given back. */
static void leave(struct run *r)
{
	uint64_t end = now_of(r) + LEAVE_TRIES * (uint64_t)(r->zone->lease_s * NS);

	if (ur_election_resign(&r->e, 0, now_of(r)))
		/* If the heir is gone as well, it gets its seats back first. */
		while ((r->e.phase == UR_ELECTION_HAND_OVER || r->e.phase == UR_ELECTION_CONTEND) &&
		       now_of(r) < end)
			if (!turn(r, end))
				return;
	if (r->e.phase != UR_ELECTION_FOLLOW) {
		ur_election_leave(&r->e, now_of(r));
		while (!ur_election_has_left(&r->e) && now_of(r) < end)
			if (!turn(r, end))
				return;
	}
	say(r, "end", "ended", NULL);
}

static bool watch(struct run *r)
{
	uint64_t key = 0, end = UINT64_MAX;
	bool ok = true;

	if (r->s->o->duration_s > 0)
		end = now_of(r) + (uint64_t)(r->s->o->duration_s * NS);
	while (ok && !ctl_is_ended() && now_of(r) < end) {
		bool master = ur_election_is_master(&r->e, now_of(r));

		if ((master ? r->e.key : 0) != key) {
			key = master ? r->e.key : 0;
			ok = write_key(r, key);
		}
		ok = ok && turn(r, end);
	}
	if (key)
		(void)write_key(r, 0);
	if (ok)
		leave(r);
	return ok;
}

static bool open_run(struct run *r)
{
	const struct ctl_options *o = r->s->o;
	struct ur_requests_attr attr = {
		.window = QUESTIONS, .retries = 0, .timeout_ns = o->timeout_ms * MS};
	struct ur_election_attr election = {
		.guid = r->s->topo.node[0].guid,
		.priority = (uint8_t)o->priority,
		.lease_s = r->zone->lease_s,
		.poll_ns = (uint64_t)(o->poll_s * NS),
		.misses = (uint32_t)o->misses,
		.seats = r->zone->seats_cnt,
		.zone = ur_zone_number(r->zone->name),
		.rules = ur_zones_number(r->zones),
		.zone_key = r->zone->key,
	};

	if (o->poll_s < 0.001)
		return ctl_complain("--poll: it is at least 0.001, in seconds");
	arc4random_buf(&attr.seed, sizeof(attr.seed));
	arc4random_buf(&election.seed, sizeof(election.seed));
	if (o->timeout_ms * MS * 8 > r->zone->lease_s * (uint64_t)NS)
		return ctl_complain("--timeout-ms: a request takes up to %" PRIu64
				    " ms, which is more than an eighth of the lease",
				    o->timeout_ms);
	r->asked_memory = malloc(ur_requests_size(attr.window));
	if (!r->asked_memory || !ctl_scout_open(&r->scout, r->s))
		return ctl_complain("there is no memory for requests");
	ur_requests_init(&r->asked, r->asked_memory, &attr);
	if (o->json && !(r->json = ctl_output_open(o->json)))
		return false;
	if (!make_members(r))
		return false;
	ur_election_init(&r->e, &election, r->hold, now_of(r));
	/* As found at the start: the table has the seats first. */
	return take_graph(r);
}

bool ctl_manage_run(struct ctl_session *s, const struct ur_zones *zones, const struct ur_zone *zone)
{
	static struct run run;
	struct run *r = &run;
	bool ok;

	*r = (struct run){.s = s, .zones = zones, .zone = zone, .phase = UR_ELECTION_OFF};
	ctl_catch_signals();
	ctl_reports_open(&r->reports, s, show_fault, r);
	ok = open_run(r) && watch(r);
	ctl_scout_close(&r->scout);
	free(r->asked_memory);
	free(r->hold);
	free(r->member);
	free(r->zone_of);
	free(r->work);
	return (!r->json || ctl_output_close(r->json, s->o->json)) && ok;
}
