/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape.h"

#define GUID_SWITCH   UINT64_C(0x0275720000000000)
#define GUID_ENDPOINT UINT64_C(0x0275720100000000)

/* A fabric that is being made. */
struct maker {
	struct ur_fabric *f;
	uint32_t switches, endpoints;
	char *err;
	size_t err_bytes;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct maker *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->err, m->err_bytes, fmt, ap);
	va_end(ap);
	return false;
}

static uint32_t add(struct maker *m, bool is_switch, unsigned ports, const char *name)
{
	struct ur_fabric_node_attr attr = {.is_switch = is_switch, .ports = (uint8_t)ports};

	/* The GUIDs of an endpoint's ports follow that of the node. */
	attr.guid = is_switch ? GUID_SWITCH + ++m->switches
			      : GUID_ENDPOINT + (uint64_t)++m->endpoints * 256;
	snprintf(attr.name, sizeof(attr.name), "%s", name);
	return ur_fabric_add(m->f, &attr);
}

__attribute__((format(printf, 4, 5))) static uint32_t
add_named(struct maker *m, bool is_switch, unsigned ports, const char *fmt, ...)
{
	char name[65];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return add(m, is_switch, ports, name);
}

/* ---- rows and rings ---- */

#define SIDE 3 /* of these switches: the port for an endpoint; 1 is back, 2 is forward */

static bool make_line(struct maker *m, unsigned n, unsigned unused)
{
	uint32_t first = add_named(m, false, 1, "endpoint 1"), last = first, end;

	(void)unused;
	for (unsigned i = 1; i <= n; i++) {
		uint32_t s = add_named(m, true, 4, "switch %u", i);

		ur_fabric_link(m->f, last, last == first ? 1 : 2, s, 1);
		last = s;
	}
	end = add_named(m, false, 1, "endpoint 2");
	return ur_fabric_link(m->f, last, 2, end, 1);
}

static bool make_ring(struct maker *m, unsigned n, unsigned unused)
{
	uint32_t first = 0, last = 0;

	(void)unused;
	for (unsigned i = 1; i <= n; i++) {
		uint32_t e = add_named(m, false, 1, "endpoint %u", i);
		uint32_t s = add_named(m, true, 4, "switch %u", i);

		ur_fabric_link(m->f, e, 1, s, SIDE);
		if (i == 1)
			first = s;
		else
			ur_fabric_link(m->f, last, 2, s, 1);
		last = s;
	}
	return ur_fabric_link(m->f, last, 2, first, 1);
}

/* ---- fat trees ---- */

/* K pods of K/2 edge and K/2 aggregation switches, and (K/2)^2 core switches. */
static bool make_fattree(struct maker *m, unsigned k, unsigned unused)
{
	unsigned half = k / 2;
	uint32_t *core = calloc((size_t)half * half, sizeof(*core));
	uint32_t *up = calloc(half, sizeof(*up));

	(void)unused;
	for (unsigned pod = 0; core && up && pod < k; pod++) {
		for (unsigned e = 0; e < half; e++) {
			uint32_t edge = 0;

			for (unsigned h = 0; h < half; h++) {
				uint32_t host = add_named(m, false, 1, "host %u.%u.%u", pod, e, h);

				if (!h)
					edge = add_named(m, true, k, "edge %u.%u", pod, e);
				ur_fabric_link(m->f, host, 1, edge, (uint8_t)(h + 1));
			}
			for (unsigned a = 0; a < half; a++) {
				if (!e)
					up[a] = add_named(m, true, k, "aggregation %u.%u", pod, a);
				ur_fabric_link(m->f, edge, (uint8_t)(half + a + 1), up[a],
					       (uint8_t)(e + 1));
			}
		}
		for (unsigned a = 0; a < half; a++)
			for (unsigned c = 0; c < half; c++) {
				if (!pod)
					core[a * half + c] =
						add_named(m, true, k, "core %u.%u", a, c);
				ur_fabric_link(m->f, up[a], (uint8_t)(half + c + 1),
					       core[a * half + c], (uint8_t)(pod + 1));
			}
	}
	free(core);
	free(up);
	return true;
}

/*
 * Tianhe-2 (Pang et al.): 576 bottom switches of 6 chips, 32 endpoints on each of 572 of them; 48 groups of 20 leaf switches of
 * one chip; 240 root switches of 6 chips. How the chips of a switch are linked is not published. Here 4 carry the ports and
 * 2 link them, so that the longest path has 9 chips, as in the paper.
 */
#define TH_CHIPS   6
#define TH_PORTS   24
#define TH_BOTTOM  576
#define TH_USED	   572
#define TH_GROUPS  48
#define TH_LEAVES  20
#define TH_BOTTOMS 12 /* of a group */
#define TH_ROOTS   240

static void make_bottom(struct maker *m, unsigned b, const uint32_t leaf[TH_LEAVES])
{
	uint32_t chip[TH_CHIPS];

	for (unsigned i = 0; i < TH_CHIPS; i++) {
		chip[i] = add_named(m, true, TH_PORTS, "bottom %u.%u", b, i);
		for (unsigned h = i * 8; b < TH_USED && h < 32 && h < i * 8 + 8; h++) {
			/* The first one is there already. */
			uint32_t nic = b || h ? add_named(m, false, 1, "nic %u.%u", b, h) : 0;

			ur_fabric_link(m->f, nic, 1, chip[i], (uint8_t)(1 + h % 8));
		}
	}
	/* Ports 9 to 14 of the 4 go to the other two, three each; those have ports 13 to 22 for the leaves. */
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 6; k++)
			ur_fabric_link(m->f, chip[i], (uint8_t)(9 + k), chip[4 + k / 3],
				       (uint8_t)(1 + i * 3 + k % 3));
	for (unsigned l = 0; l < TH_LEAVES; l++)
		ur_fabric_link(m->f, chip[4 + l / 10], (uint8_t)(13 + l % 10), leaf[l],
			       (uint8_t)(1 + b % TH_BOTTOMS));
}

static void make_root(struct maker *m, unsigned r, uint32_t (*leaf)[TH_LEAVES])
{
	uint32_t chip[TH_CHIPS];

	for (unsigned i = 0; i < TH_CHIPS; i++)
		chip[i] = add_named(m, true, TH_PORTS, "root %u.%u", r, i);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 12; k++)
			ur_fabric_link(m->f, chip[i], (uint8_t)(13 + k), chip[4 + k / 6],
				       (uint8_t)(1 + i * 6 + k % 6));
	for (unsigned g = 0; g < TH_GROUPS; g++)
		ur_fabric_link(m->f, chip[g / 12], (uint8_t)(1 + g % 12), leaf[g][r / 12],
			       (uint8_t)(13 + r % 12));
}

static bool make_tianhe2(struct maker *m, unsigned unused, unsigned unused2)
{
	uint32_t(*leaf)[TH_LEAVES] = calloc(TH_GROUPS, sizeof(*leaf));

	(void)unused;
	(void)unused2;
	if (!leaf)
		return fail(m, "there is no memory for tianhe2");
	add_named(m, false, 1, "nic 0.0"); /* node 0, the manager's */
	for (unsigned b = 0; b < TH_BOTTOM; b++) {
		unsigned g = b / TH_BOTTOMS;

		for (unsigned l = 0; b % TH_BOTTOMS == 0 && l < TH_LEAVES; l++)
			leaf[g][l] = add_named(m, true, TH_PORTS, "leaf %u.%u", g, l);
		make_bottom(m, b, leaf[g]);
	}
	for (unsigned r = 0; r < TH_ROOTS; r++)
		make_root(m, r, leaf);
	free(leaf);
	return true;
}

/* ---- random graphs ---- */

static uint64_t rnd(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Everything that a cable can do: loops, double links, a port linked to itself, parts that nothing leads to. */
static bool make_random(struct maker *m, unsigned n, unsigned seed)
{
	uint64_t state = seed;
	uint32_t switches = 0, nodes;

	add_named(m, false, 1 + rnd(&state) % 2, "endpoint 1");
	for (unsigned i = 1; i <= n; i++) {
		unsigned ports = 2 + (unsigned)(rnd(&state) % (rnd(&state) % 8 ? 10 : 40));
		uint32_t s = add_named(m, true, ports, "switch %u", i);

		if (i == 1)
			ur_fabric_link(m->f, 0, 1, s, 1);
		else if (rnd(&state) % 32) /* to one of those before it, if there is a port */
			for (unsigned k = 0; k < 20; k++)
				if (ur_fabric_link(m->f, 1 + (uint32_t)(rnd(&state) % (i - 1)),
						   1 + rnd(&state) % 12, s,
						   (uint8_t)(1 + rnd(&state) % ports)))
					break;
		switches = s;
	}
	for (unsigned i = 2; i <= n; i++)
		add_named(m, false, 1 + rnd(&state) % 4 / 3, "endpoint %u", i);
	nodes = ur_fabric_nodes(m->f);
	for (unsigned i = 0; i < 6 * n; i++) {
		uint32_t a = 1 + (uint32_t)(rnd(&state) % switches);
		uint32_t b = (uint32_t)(rnd(&state) % nodes);
		uint8_t p = 1 + rnd(&state) % 12, q = 1 + rnd(&state) % (b > switches ? 2 : 12);

		ur_fabric_link(m->f, a, p, b, q);
		if (rnd(&state) % 64 == 0)
			ur_fabric_link(m->f, a, p, a, p);
	}
	return true;
}

/* ---- files ---- */

#define FILE_NODES_MAX 65536

static uint32_t find(const struct maker *m, const char *name)
{
	for (uint32_t i = 0; i < ur_fabric_nodes(m->f); i++)
		if (!strcmp(ur_fabric_node(m->f, i)->name, name))
			return i;
	return UINT32_MAX;
}

static bool take_link(struct maker *m, const char *file, unsigned line, const char *text)
{
	char a[65], b[65];
	unsigned p, q;
	uint32_t na, nb;

	if (sscanf(text, "link %64s %u %64s %u", a, &p, b, &q) != 4)
		return fail(m, "%s, line %u: a link is 'link NAME PORT NAME PORT'", file, line);
	na = find(m, a);
	nb = find(m, b);
	if (na == UINT32_MAX || nb == UINT32_MAX)
		return fail(m, "%s, line %u: there is no node '%s' above", file, line,
			    na == UINT32_MAX ? a : b);
	if (p > UINT8_MAX || q > UINT8_MAX || !ur_fabric_link(m->f, na, (uint8_t)p, nb, (uint8_t)q))
		return fail(m, "%s, line %u: one of the ports does not exist or is linked already",
			    file, line);
	return true;
}

static bool take_line(struct maker *m, const char *file, unsigned line, const char *text)
{
	char word[16], name[65];
	unsigned ports = 1;
	int got = sscanf(text, "%15s %64s %u", word, name, &ports);

	if (got < 1 || word[0] == '#')
		return true;
	if (!strcmp(word, "link"))
		return take_link(m, file, line, text);
	if ((strcmp(word, "switch") != 0 && strcmp(word, "endpoint") != 0) || got < 2)
		return fail(
			m,
			"%s, line %u: a line is 'switch NAME PORTS', 'endpoint NAME [PORTS]' or 'link NAME PORT NAME PORT'",
			file, line);
	if (!ports || ports > 254)
		return fail(m, "%s, line %u: a node has 1 to 254 ports", file, line);
	if (find(m, name) != UINT32_MAX)
		return fail(m, "%s, line %u: there is a node '%s' above", file, line, name);
	if (ur_fabric_nodes(m->f) == FILE_NODES_MAX)
		return fail(m, "%s, line %u: more than %u nodes", file, line, FILE_NODES_MAX);
	add(m, word[0] == 's', ports, name);
	return true;
}

static bool read_file(struct maker *m, const char *file)
{
	FILE *in = fopen(file, "re");
	char text[512];
	bool ok = true;

	if (!in)
		return fail(
			m,
			"'%s' is neither a shape of fabric (line:N, ring:N, fattree:K, random:N,SEED, tianhe2) nor a file that can be read: %s",
			file, strerror(errno));
	for (unsigned line = 1; ok && fgets(text, sizeof(text), in); line++)
		ok = take_line(m, file, line, text);
	fclose(in);
	if (ok && !ur_fabric_nodes(m->f))
		return fail(m, "%s: it has no node", file);
	return ok;
}

/* ---- shapes ---- */

static const struct shape {
	const char *name;
	unsigned min, max; /* of its number */
	bool even, seed;
	bool (*make)(struct maker *m, unsigned n, unsigned seed);
} shapes[] = {
	{"line", 1, 1000, false, false, make_line},
	{"ring", 2, 1000, false, false, make_ring},
	{"fattree", 2, 48, true, false, make_fattree},
	{"random", 1, 5000, false, true, make_random},
	{"tianhe2", 0, 0, false, false, make_tianhe2},
};

static bool make(struct maker *m, const char *text)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct shape *s = &shapes[i];
		size_t len = strlen(s->name);
		unsigned n = 0, seed = 1;
		char rest = 0;
		int got;

		if (strncmp(text, s->name, len) != 0 || (text[len] && text[len] != ':'))
			continue;
		got = sscanf(text + len, ":%u,%u%c", &n, &seed, &rest);
		if ((s->max ? got < 1 || got > 1 + s->seed : text[len] != 0) || n < s->min ||
		    n > s->max || (s->even && n % 2) || (got == 1 && strchr(text, ',')))
			return s->max ? fail(m,
					     "'%s' needs a%s number from %u to %u, such as %s:%u%s",
					     s->name, s->even ? "n even" : "", s->min, s->max,
					     s->name, s->min > 4 ? s->min : 4, s->seed ? ",1" : "")
				      : fail(m, "'%s' takes no number", s->name);
		return s->make(m, n, seed);
	}
	return read_file(m, text);
}

struct ur_fabric *ur_fabric_of_shape(const char *shape, const struct ur_fabric_attr *attr,
				     char *err, size_t err_bytes)
{
	struct maker m = {.f = ur_fabric_new(attr), .err = err, .err_bytes = err_bytes};

	if (make(&m, shape))
		return m.f;
	ur_fabric_free(m.f);
	return NULL;
}
