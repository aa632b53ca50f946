/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/zones.h"
#include "wire/assert.h"
#include "wire/siphash.h"

#define FAR	   UINT32_MAX
#define LEASE_S	   5
#define WORD_BYTES 128

/* ---- the text ---- */

struct reader {
	const char *at, *end;
	unsigned line;
	char *err;
	size_t err_bytes;
	struct ur_zones *zones;
};

/* "line 7: " and the sentence; nothing that formats is available here. */
static bool fail(struct reader *r, const char *why)
{
	char digits[12];
	size_t n = 0, len = 0;
	unsigned line = r->line;
	const char *head = "line ", *colon = ": ";

	do
		digits[n++] = (char)('0' + line % 10);
	while (line /= 10);
#define PUT(c)                                                                                     \
	if (len + 1 < r->err_bytes)                                                                \
	r->err[len++] = (c)
	for (; *head; head++)
		PUT(*head);
	while (n)
		PUT(digits[--n]);
	for (; *colon; colon++)
		PUT(*colon);
	for (; *why; why++)
		PUT(*why);
#undef PUT
	if (r->err_bytes)
		r->err[len] = '\0';
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; an empty one at its end. False: it is too long. */
static bool next_word(struct reader *r, char word[WORD_BYTES])
{
	size_t len = 0;

	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	if (r->at < r->end && *r->at == '#')
		while (r->at < r->end && *r->at != '\n')
			r->at++;
	for (; r->at < r->end && !is_blank(*r->at) && *r->at != '\n' && *r->at != '#'; r->at++) {
		if (len == WORD_BYTES - 1)
			return fail(r, "a word is too long");
		word[len++] = *r->at;
	}
	word[len] = '\0';
	return true;
}

static bool is_word(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* In decimal, or in hexadecimal after 0x. *at is moved behind it. */
static bool read_number(const char **at, uint64_t max, uint64_t *value)
{
	const char *c = *at;
	int base = c[0] == '0' && (c[1] | 0x20) == 'x' ? 16 : 10;
	uint64_t v = 0;

	c += base == 16 ? 2 : 0;
	if (digit(*c) >= base)
		return false;
	for (; digit(*c) < base; c++) {
		if (v > (UINT64_MAX - (uint64_t)digit(*c)) / (uint64_t)base)
			return false;
		v = v * (uint64_t)base + (uint64_t)digit(*c);
	}
	*at = c;
	*value = v;
	return v <= max;
}

static bool parse_number(const char *word, uint64_t max, uint64_t *value)
{
	return read_number(&word, max, value) && !*word;
}

static bool read_guid(struct reader *r, uint64_t *guid)
{
	char word[WORD_BYTES];

	if (!next_word(r, word))
		return false;
	if (!parse_number(word, UINT64_MAX, guid) || !*guid)
		return fail(r, "a GUID is expected, such as 0x27572000000001");
	return true;
}

static bool add_rule(struct reader *r, struct ur_zone *z, const struct ur_zone_rule *rule)
{
	if (z->rules_cnt == UR_ZONE_RULES_MAX)
		return fail(r, "the zone has too many rules");
	z->rule[z->rules_cnt++] = *rule;
	return true;
}

/* GUID... up to the end of the line: seats, or a rule for each. */
static bool read_guids(struct reader *r, struct ur_zone *z, bool seats, enum ur_zone_what what)
{
	struct ur_zone_rule rule = {.what = what};
	char word[WORD_BYTES];

	for (unsigned cnt = 0;; cnt++) {
		if (!next_word(r, word))
			return false;
		if (!word[0])
			return cnt || fail(r, "a GUID is expected");
		if (!parse_number(word, UINT64_MAX, &rule.guid) || !rule.guid)
			return fail(r, "a GUID is expected, such as 0x27572000000001");
		if (!seats) {
			if (!add_rule(r, z, &rule))
				return false;
			continue;
		}
		for (uint32_t i = 0; i < z->seats_cnt; i++)
			if (z->seat[i] == rule.guid)
				return fail(r, "the zone has this seat already");
		if (z->seats_cnt == UR_ZONE_SEATS_MAX)
			return fail(r, "a zone has at most 15 seats");
		z->seat[z->seats_cnt++] = rule.guid;
	}
}

static bool read_within(struct reader *r, struct ur_zone *z)
{
	struct ur_zone_rule rule = {.what = UR_ZONE_WITHIN};
	char word[WORD_BYTES];
	uint64_t hops;

	if (!next_word(r, word))
		return false;
	if (!parse_number(word, UR_TOPO_PATH_MAX, &hops))
		return fail(r, "a number of links up to 63 is expected");
	rule.hops = (uint8_t)hops;
	if (!next_word(r, word))
		return false;
	if (!is_word(word, "of"))
		return fail(r, "it is 'within HOPS of GUID'");
	return read_guid(r, &rule.guid) && add_rule(r, z, &rule);
}

static bool read_route(struct reader *r, struct ur_zone *z)
{
	struct ur_zone_rule rule = {.what = UR_ZONE_ROUTE};
	char word[WORD_BYTES];
	const char *at = word;
	uint64_t port;

	if (!read_guid(r, &rule.guid) || !next_word(r, word))
		return false;
	for (;;) {
		if (rule.hops == UR_ZONE_ROUTE_MAX || !read_number(&at, 254, &port) || !port)
			return fail(r, "a route is up to 16 ports, such as 1,3");
		rule.route[rule.hops++] = (uint8_t)port;
		if (!*at)
			return add_rule(r, z, &rule);
		if (*at++ != ',')
			return fail(r, "a route is up to 16 ports, such as 1,3");
	}
}

static bool begin_zone(struct reader *r)
{
	struct ur_zones *zs = r->zones;
	char word[WORD_BYTES];
	size_t len = 0;
	struct ur_zone *z;

	if (!next_word(r, word))
		return false;
	while (len < UR_ZONE_NAME_BYTES && word[len])
		len++;
	if (!len || len == UR_ZONE_NAME_BYTES)
		return fail(r, "a zone has a name of at most 31 characters");
	if (ur_zones_find(zs, word))
		return fail(r, "there is a zone of this name already");
	if (zs->cnt == UR_ZONES_MAX)
		return fail(r, "there are at most 16 zones");
	z = &zs->zone[zs->cnt++];
	memset(z, 0, sizeof(*z));
	memcpy(z->name, word, len);
	z->lease_s = LEASE_S;
	return true;
}

static bool read_value(struct reader *r, struct ur_zone *z, bool is_key)
{
	char word[WORD_BYTES];
	uint64_t v;

	if (!next_word(r, word))
		return false;
	if (!parse_number(word, is_key ? UINT64_MAX : UINT16_MAX, &v) || !v)
		return fail(r, is_key ? "a key is a number of 64 bits, and not 0"
				      : "a lease is 1 to 65535 seconds");
	if (is_key)
		z->key = v;
	else
		z->lease_s = (uint16_t)v;
	return true;
}

static bool read_line(struct reader *r)
{
	struct ur_zone *z = r->zones->cnt ? &r->zones->zone[r->zones->cnt - 1] : NULL;
	char word[WORD_BYTES];

	if (!next_word(r, word))
		return false;
	if (!word[0])
		return true;
	if (is_word(word, "zone"))
		return begin_zone(r);
	if (!z)
		return fail(r, "'zone NAME' comes first");
	if (is_word(word, "key") || is_word(word, "lease"))
		return read_value(r, z, word[0] == 'k');
	if (is_word(word, "seat"))
		return read_guids(r, z, true, UR_ZONE_NODE);
	if (is_word(word, "node"))
		return read_guids(r, z, false, UR_ZONE_NODE);
	if (is_word(word, "nearest"))
		return read_guids(r, z, false, UR_ZONE_NEAREST);
	if (is_word(word, "within"))
		return read_within(r, z);
	if (is_word(word, "route"))
		return read_route(r, z);
	return fail(r,
		    "it begins with none of zone, key, lease, seat, node, within, route, nearest");
}

/* Without seats, the nodes that its rules name. */
static void default_seats(struct ur_zone *z)
{
	for (uint32_t i = 0; i < z->rules_cnt && z->seats_cnt < UR_ZONE_SEATS_MAX; i++) {
		bool has = false;

		for (uint32_t k = 0; k < z->seats_cnt; k++)
			has = has || z->seat[k] == z->rule[i].guid;
		if (!has)
			z->seat[z->seats_cnt++] = z->rule[i].guid;
	}
}

bool ur_zones_parse(struct ur_zones *z, const char *text, size_t bytes, char *err, size_t err_bytes)
{
	struct reader r = {text, text + bytes, 0, err, err_bytes, z};
	char word[WORD_BYTES];

	z->cnt = 0;
	while (r.at < r.end) {
		r.line++;
		if (!read_line(&r) || !next_word(&r, word))
			return false;
		if (word[0])
			return fail(&r, "there is more on the line than belongs there");
		if (r.at < r.end)
			r.at++;
	}
	for (uint32_t i = 0; i < z->cnt; i++) {
		if (!z->zone[i].seats_cnt)
			default_seats(&z->zone[i]);
		if (!z->zone[i].key || !z->zone[i].seats_cnt)
			return fail(&r, !z->zone[i].key
						? "a zone has no key; say 'key NUMBER' in each"
						: "a zone has no nodes");
	}
	return z->cnt || fail(&r, "there is no zone");
}

const struct ur_zone *ur_zones_find(const struct ur_zones *z, const char *name)
{
	for (uint32_t i = 0; i < z->cnt; i++)
		if (is_word(z->zone[i].name, name))
			return &z->zone[i];
	return NULL;
}

uint64_t ur_zone_number(const char *name)
{
	char padded[UR_ZONE_NAME_BYTES] = "";

	for (size_t i = 0; i < sizeof(padded) && name[i]; i++)
		padded[i] = name[i];
	return ur_siphash(0, 0, padded, sizeof(padded));
}

uint64_t ur_zones_number(const struct ur_zones *z)
{
	uint64_t h = z->cnt;

	for (uint32_t i = 0; i < z->cnt; i++) {
		const struct ur_zone *o = &z->zone[i];
		uint64_t all[3] = {h, ur_zone_number(o->name), o->lease_s};

		/* The result is public: nothing follows from it about the key. */
		h = ur_siphash(o->key, 1, all, sizeof(all));
		h ^= ur_siphash(0, h, o->seat, o->seats_cnt * sizeof(o->seat[0]));
		for (uint32_t k = 0; k < o->rules_cnt; k++) {
			uint64_t rule[3] = {h, o->rule[k].guid,
					    (uint64_t)o->rule[k].what << 8 | o->rule[k].hops};

			h = ur_siphash(0, 2, rule, sizeof(rule));
			h ^= ur_siphash(0, h, o->rule[k].route, sizeof(o->rule[k].route));
		}
	}
	return h;
}

/* ---- which nodes ---- */

struct walk {
	const struct ur_topo *t;
	uint32_t *dist, *queue;
	uint32_t head, tail;
};

static void begin_walk(struct walk *w)
{
	w->head = w->tail = 0;
	for (uint32_t i = 0; i < w->t->nodes_cnt; i++)
		w->dist[i] = FAR;
}

static void enter(struct walk *w, uint32_t node, uint32_t dist)
{
	if (node == UR_TOPO_NONE || w->dist[node] != FAR)
		return;
	w->dist[node] = dist;
	w->queue[w->tail++] = node;
}

/* Distances in links from what was entered; endpoints forward nothing, but one may be where it begins. */
static void walk(struct walk *w)
{
	while (w->head < w->tail) {
		uint32_t at = w->queue[w->head++];
		const struct ur_topo_node *n = &w->t->node[at];

		if (w->dist[at] && n->type != UR_TOPO_SWITCH)
			continue;
		for (unsigned p = 1; p <= n->ports; p++)
			enter(w, w->t->port[n->first_port + p].peer_node, w->dist[at] + 1);
	}
}

static void claim(uint8_t *zone, uint32_t node, uint8_t number)
{
	if (zone[node] == UR_ZONE_NONE || number < zone[node])
		zone[node] = number;
}

static void assign_within(struct walk *w, const struct ur_zone_rule *r, uint32_t from,
			  uint8_t *zone, uint8_t number)
{
	begin_walk(w);
	enter(w, from, 0);
	walk(w);
	for (uint32_t i = 0; i < w->t->nodes_cnt; i++)
		if (w->dist[i] <= r->hops)
			claim(zone, i, number);
}

/*
 * Nodes whose distance from the start is that of the route's end and what is left: one of their shortest paths begins so.
 * dist2 is the second half of the memory for distances.
 */
static void assign_route(struct walk *w, const struct ur_zone_rule *r, uint32_t from, uint8_t *zone,
			 uint8_t number)
{
	const struct ur_topo *t = w->t;
	uint32_t *all = w->dist, *rest = w->dist + t->nodes_cnt, at = from;

	for (uint8_t i = 0; i < r->hops; i++) {
		if (r->route[i] > t->node[at].ports)
			return;
		at = t->port[ur_topo_port_of(t, at, r->route[i])].peer_node;
		if (at == UR_TOPO_NONE)
			return;
	}
	begin_walk(w);
	enter(w, from, 0);
	walk(w);
	w->dist = rest;
	begin_walk(w);
	enter(w, at, 0);
	walk(w);
	w->dist = all;
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		if (rest[i] != FAR && all[i] == rest[i] + r->hops)
			claim(zone, i, number);
}

/* All 'nearest' rules of all zones at once; where two are as near, the zone that comes first. */
static void assign_nearest(const struct ur_zones *z, struct walk *w, uint8_t *zone)
{
	const struct ur_topo *t = w->t;
	uint32_t *owner = w->dist + t->nodes_cnt;

	begin_walk(w);
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		owner[i] = FAR;
	for (uint32_t i = 0; i < z->cnt; i++)
		for (uint32_t k = 0; k < z->zone[i].rules_cnt; k++) {
			const struct ur_zone_rule *r = &z->zone[i].rule[k];
			uint32_t from = r->what == UR_ZONE_NEAREST ? ur_topo_find(t, r->guid)
								   : UR_TOPO_NONE;

			for (; from != UR_TOPO_NONE; from = ur_topo_find_next(t, from)) {
				enter(w, from, 0);
				owner[from] = i < owner[from] ? i : owner[from];
			}
		}
	/* In order of distances, so that a node's owner is final before it passes it on. */
	while (w->head < w->tail) {
		uint32_t at = w->queue[w->head++];
		const struct ur_topo_node *n = &t->node[at];

		if (w->dist[at] && n->type != UR_TOPO_SWITCH)
			continue;
		for (unsigned p = 1; p <= n->ports; p++) {
			uint32_t to = t->port[n->first_port + p].peer_node;

			enter(w, to, w->dist[at] + 1);
			if (to != UR_TOPO_NONE && w->dist[to] == w->dist[at] + 1 &&
			    owner[at] < owner[to])
				owner[to] = owner[at];
		}
	}
	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		if (owner[i] != FAR)
			claim(zone, i, (uint8_t)owner[i]);
}

static void assign_rule(struct walk *w, const struct ur_zone_rule *r, uint32_t node, uint8_t *zone,
			uint8_t number)
{
	if (r->what == UR_ZONE_NODE)
		claim(zone, node, number);
	else if (r->what == UR_ZONE_WITHIN)
		assign_within(w, r, node, zone, number);
	else if (r->what == UR_ZONE_ROUTE)
		assign_route(w, r, node, zone, number);
}

void ur_zones_assign(const struct ur_zones *z, const struct ur_topo *t, uint8_t *zone,
		     uint32_t *dist, uint32_t *queue)
{
	struct walk w = {t, dist, queue, 0, 0};

	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		zone[i] = UR_ZONE_NONE;
	for (uint32_t i = 0; i < z->cnt; i++) {
		const struct ur_zone *o = &z->zone[i];

		for (uint32_t k = 0; k < o->rules_cnt; k++)
			for (uint32_t node = ur_topo_find(t, o->rule[k].guid); node != UR_TOPO_NONE;
			     node = ur_topo_find_next(t, node))
				assign_rule(&w, &o->rule[k], node, zone, (uint8_t)i);
	}
	assign_nearest(z, &w, zone);
	/* A seat belongs to its zone, whatever the rules say. */
	for (uint32_t i = z->cnt; i--;)
		for (uint32_t k = 0; k < z->zone[i].seats_cnt; k++)
			for (uint32_t node = ur_topo_find(t, z->zone[i].seat[k]);
			     node != UR_TOPO_NONE; node = ur_topo_find_next(t, node))
				zone[node] = (uint8_t)i;
}

/* MGR-ZONE-07 */
uint32_t ur_zones_seat(const struct ur_topo *t, uint64_t guid)
{
	uint32_t node = ur_topo_find(t, guid);

	return node != UR_TOPO_NONE && ur_topo_find_next(t, node) == UR_TOPO_NONE ? node
										  : UR_TOPO_NONE;
}
