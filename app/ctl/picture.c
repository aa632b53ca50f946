/* SPDX-License-Identifier: BSD-3-Clause */
#include "picture.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS	4
#define NO_RANK UINT32_MAX

/* A node of a row, while the row is sorted. */
struct key {
	const struct ur_topo_node *n;
	double mean; /* place of its neighbours in the next row */
	uint32_t at, node;
};

/* ---- rows ---- */

static bool is_switch(const struct ur_topo *t, uint32_t node)
{
	return t->node[node].type == UR_TOPO_SWITCH;
}

/* A program that manages the fabric is at any place of it: no row begins there. */
static bool is_base(const struct ur_topo *t, uint32_t node)
{
	return !is_switch(t, node) && strcmp(t->node[node].description, "uroce-ctl") != 0;
}

/* Breadth first from all endpoints. `queue` has room for all nodes. */
static void find_ranks(struct ctl_picture *p, const struct ur_topo *t, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		p->place[i].rank = is_base(t, i) ? 0 : NO_RANK;
		if (!p->place[i].rank)
			queue[tail++] = i;
	}
	for (uint32_t i = 0; !tail && i < t->nodes_cnt; i++) {
		p->place[i].rank = 0;
		queue[tail++] = i;
	}
	while (head < tail) {
		const struct ur_topo_node *n = &t->node[queue[head]];
		uint32_t rank = p->place[queue[head++]].rank + 1;

		for (unsigned i = 1; i <= n->ports; i++) {
			uint32_t peer = t->port[n->first_port + i].peer_node;

			if (peer == UR_TOPO_NONE || p->place[peer].rank != NO_RANK)
				continue;
			p->place[peer].rank = rank;
			queue[tail++] = peer;
		}
	}
	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		if (p->place[i].rank == NO_RANK)
			p->place[i].rank = 0;
		if (p->place[i].rank >= p->ranks)
			p->ranks = p->place[i].rank + 1;
	}
}

/* ---- order in a row ---- */

/* "host 2" before "host 10" */
static int compare_names(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			char *end_a, *end_b;
			unsigned long long x = strtoull(a, &end_a, 10), y = strtoull(b, &end_b, 10);

			if (x != y)
				return x < y ? -1 : 1;
			a = end_a;
			b = end_b;
			continue;
		}
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		a++;
		b++;
	}
	return *a ? 1 : *b ? -1 : 0;
}

static int by_name(const void *one, const void *other)
{
	const struct key *a = one, *b = other;
	int order = compare_names(a->n->description, b->n->description);

	if (order)
		return order;
	if (a->n->guid != b->n->guid)
		return a->n->guid < b->n->guid ? -1 : 1;
	return a->node < b->node ? -1 : 1; /* two nodes with one GUID */
}

static int by_mean(const void *one, const void *other)
{
	const struct key *a = one, *b = other;

	if (a->mean < b->mean || a->mean > b->mean)
		return a->mean < b->mean ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* The mean place of the neighbours in row `next`; its own if there is none. */
static double mean_place(const struct ctl_picture *p, const struct ur_topo *t, uint32_t node,
			 uint32_t next)
{
	const struct ur_topo_node *n = &t->node[node];
	double sum = 0;
	unsigned cnt = 0;

	for (unsigned i = 1; i <= n->ports; i++) {
		uint32_t peer = t->port[n->first_port + i].peer_node;

		if (peer == UR_TOPO_NONE || !p->place[peer].shown || p->place[peer].rank != next)
			continue;
		sum += p->place[peer].x;
		cnt++;
	}
	return cnt ? sum / cnt : p->place[node].x;
}

static void place_row(struct ctl_picture *p, const struct key *key, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		p->place[key[i].node].at = i;
		p->place[key[i].node].x = (i + 0.5) / cnt;
	}
}

/* Sorts a row: by names, or, if there is a `next` row, by the places of the neighbours there. */
static void sort_row(struct ctl_picture *p, const struct ur_topo *t, struct key *key, uint32_t rank,
		     uint32_t next)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		const struct ctl_place *place = &p->place[i];

		if (!place->shown || place->rank != rank)
			continue;
		key[cnt] = (struct key){.n = &t->node[i], .at = place->at, .node = i};
		if (next != NO_RANK)
			key[cnt].mean = mean_place(p, t, i, next);
		cnt++;
	}
	qsort(key, cnt, sizeof(*key), next == NO_RANK ? by_name : by_mean);
	place_row(p, key, cnt);
	if (cnt > p->widest)
		p->widest = cnt;
}

/* How far apart linked nodes are. The lower rows count more: what belongs together there is to stay together. */
static double spread_of(const struct ctl_picture *p, const struct ur_topo *t)
{
	double sum = 0;

	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		const struct ctl_place *a = &p->place[i];

		if (!a->shown)
			continue;
		for (unsigned k = 1; k <= t->node[i].ports; k++) {
			uint32_t peer = t->port[t->node[i].first_port + k].peer_node;

			if (peer == UR_TOPO_NONE || !p->place[peer].shown ||
			    p->place[peer].rank != a->rank + 1)
				continue;
			sum += fabs(p->place[peer].x - a->x) /
			       (double)(UINT64_C(1) << (2 * (a->rank < 16 ? a->rank : 16)));
		}
	}
	return sum;
}

/* By names, then row after row by the places of the neighbours: up from the endpoints, down and up. The best one is kept. */
static void sort_rows(struct ctl_picture *p, const struct ur_topo *t, struct key *key,
		      struct ctl_place *best)
{
	double least = 0;

	for (uint32_t r = 0; r < p->ranks; r++)
		sort_row(p, t, key, r, NO_RANK);
	for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
		double spread;

		for (uint32_t r = p->ranks - 1; sweep && r--;)
			sort_row(p, t, key, r, r + 1);
		for (uint32_t r = 1; r < p->ranks; r++)
			sort_row(p, t, key, r, r - 1);
		spread = spread_of(p, t);
		if (sweep && !(spread < least * 0.999))
			continue;
		least = spread;
		memcpy(best, p->place, t->nodes_cnt * sizeof(*best));
	}
	memcpy(p->place, best, t->nodes_cnt * sizeof(*best));
}

static void list_nodes(struct ctl_picture *p, const struct ur_topo *t)
{
	uint32_t first = 0, lowest = p->ranks - 1, top = p->ranks - 1, cnt;

	for (uint32_t i = 0; i < t->nodes_cnt; i++)
		if (p->place[i].shown && p->place[i].rank < lowest)
			lowest = p->place[i].rank;
	p->ranks -= lowest;
	for (uint32_t r = top + 1; r-- > lowest; first += cnt) {
		cnt = 0;
		for (uint32_t i = 0; i < t->nodes_cnt; i++) {
			if (!p->place[i].shown || p->place[i].rank != r)
				continue;
			p->order[first + p->place[i].at] = i;
			p->place[i].y = (top - r + 0.5) / p->ranks;
			cnt++;
		}
	}
	p->shown = first;
}

bool ctl_picture_make(struct ctl_picture *p, const struct ur_topo *t)
{
	struct key *key = calloc(t->nodes_cnt + 1u, sizeof(*key));
	struct ctl_place *best = calloc(t->nodes_cnt + 1u, sizeof(*best));

	*p = (struct ctl_picture){.no_endpoints = t->nodes_cnt > CTL_PICTURE_NODES};
	p->place = calloc(t->nodes_cnt + 1u, sizeof(*p->place));
	p->order = calloc(t->nodes_cnt + 1u, sizeof(*p->order));
	if (key && best && p->place && p->order) {
		find_ranks(p, t, p->order);
		for (uint32_t i = 0; i < t->nodes_cnt; i++)
			p->place[i].shown = !p->no_endpoints || is_switch(t, i);
		sort_rows(p, t, key, best);
		list_nodes(p, t);
	}
	free(key);
	free(best);
	return key && best && p->place && p->order;
}

void ctl_picture_free(struct ctl_picture *p)
{
	free(p->place);
	free(p->order);
}
