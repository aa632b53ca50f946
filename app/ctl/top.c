/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "names.h"
#include "output.h"
#include "pace.h"
#include "view.h"

/*
 * A live table of the ports of a fabric. On a terminal it fills the screen and is sorted by keys; otherwise it is
 * printed once a pass.
 */

#define NS	     1000000000.0
#define NAME_COLUMNS 24
#define FRAME_LINES  3 /* above the rows */

enum order { BY_LOAD, BY_DISCARDS, BY_ERRORS, BY_NODE };

struct top {
	struct ctl_session *s;
	struct ctl_view view;
	enum order order;
	const struct ctl_view_port **row; /* those that are shown, in order */
	uint32_t rows_cnt, first_row;	  /* first_row: at the top of the screen */
	bool terminal;
	struct termios before; /* what the terminal was like */
};

/* ---- the rows ---- */

static enum order sorted_by; /* qsort() passes no context */

static int by_place(const struct ctl_view_port *a, const struct ctl_view_port *b)
{
	return a->node != b->node ? (a->node < b->node ? -1 : 1) : a->port - b->port;
}

static int compare_rows(const void *one, const void *other)
{
	const struct ctl_view_port *a = *(const struct ctl_view_port *const *)one;
	const struct ctl_view_port *b = *(const struct ctl_view_port *const *)other;
	double difference = 0;

	switch (sorted_by) {
	case BY_LOAD:
		difference = b->share - a->share;
		if (!(difference > 0) && !(difference < 0))
			difference = (b->tx + b->rx) - (a->tx + a->rx);
		break;
	case BY_DISCARDS:
		difference = (double)b->discards - (double)a->discards;
		break;
	case BY_ERRORS:
		difference = (double)b->errors - (double)a->errors;
		break;
	case BY_NODE:
		break;
	}
	return difference > 0 ? 1 : difference < 0 ? -1 : by_place(a, b);
}

/* Ports at which nothing ever was are left out. */
static void choose_rows(struct top *t)
{
	t->rows_cnt = 0;
	for (uint32_t i = 0; i < t->view.ports_cnt; i++)
		if (t->view.port[i].was_up)
			t->row[t->rows_cnt++] = &t->view.port[i];
	sorted_by = t->order;
	qsort(t->row, t->rows_cnt, sizeof(*t->row), compare_rows);
}

/* ---- text ---- */

static void print_head(void)
{
	printf("%-*s %4s %-7s %9s %9s %6s %9s %9s %9s %5s %5s\n", NAME_COLUMNS, "node", "port",
	       "state", "tx Gb/s", "rx Gb/s", "link", "waits/s", "discards", "errors", "load",
	       "ring");
}

static void print_row(const struct top *t, const struct ctl_view_port *p)
{
	const struct ctl_view_node *n = &t->view.node[p->node];
	char name[CTL_NAME_BYTES], share[16] = "-";

	ctl_node_name(&t->s->topo, p->node, name);
	if (p->bps)
		snprintf(share, sizeof(share), "%.1f%%", p->share * 100);
	printf("%-*.*s %4u %-7s %9.3f %9.3f %6s %9.0f %9llu %9llu %4.1f%% %4.1f%%", NAME_COLUMNS,
	       NAME_COLUMNS, name, p->port, ctl_view_state(p), p->tx / 1e9, p->rx / 1e9, share,
	       p->wait, (unsigned long long)p->discards, (unsigned long long)p->errors,
	       n->load / 10.0, n->ring / 10.0);
}

static uint32_t silent_nodes(const struct top *t)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < t->s->topo.nodes_cnt; i++)
		cnt += !t->view.node[i].known;
	return cnt;
}

static void print_sums(const struct top *t)
{
	uint32_t down = 0;

	for (uint32_t i = 0; i < t->rows_cnt; i++)
		down += t->row[i]->known && t->row[i]->state <= 1;
	printf("%u nodes, %u do not answer; %u ports, %u down", t->s->topo.nodes_cnt,
	       silent_nodes(t), t->rows_cnt, down);
}

static void print_table(const struct top *t, double at_s)
{
	if (t->view.scan.passes > 1)
		printf("\n%.3f s\n", at_s);
	print_sums(t);
	putchar('\n');
	print_head();
	for (uint32_t i = 0; i < t->rows_cnt; i++) {
		print_row(t, t->row[i]);
		putchar('\n');
	}
	fflush(stdout);
}

static bool write_json(const struct top *t, FILE *out, double at_s)
{
	json_t *list = json_array(), *root;
	bool ok;

	for (uint32_t i = 0; i < t->rows_cnt; i++) {
		const struct ctl_view_port *p = t->row[i];
		const struct ctl_view_node *n = &t->view.node[p->node];
		char name[CTL_NAME_BYTES];

		ctl_node_name(&t->s->topo, p->node, name);
		json_array_append_new(
			list,
			json_pack("{s:i,s:o,s:s,s:i,s:s,s:f,s:f,s:I,s:f,s:f,s:I,s:I,s:I,s:f,s:f}",
				  "node", (int)p->node, "guid",
				  ctl_json_hex(t->s->topo.node[p->node].guid), "description", name,
				  "port", (int)p->port, "state", ctl_view_state(p), "tx_gbps",
				  p->tx / 1e9, "rx_gbps", p->rx / 1e9, "bps", (json_int_t)p->bps,
				  "share", p->share, "waits_per_s", p->wait, "discards",
				  (json_int_t)p->discards, "errors", (json_int_t)p->errors, "downs",
				  (json_int_t)p->downs, "load", n->load / 1000.0, "ring",
				  n->ring / 1000.0));
	}
	root = json_pack("{s:f,s:i,s:i,s:o}", "time_s", at_s, "nodes", (int)t->s->topo.nodes_cnt,
			 "silent_nodes", (int)silent_nodes(t), "ports", list);
	ok = !json_dumpf(root, out, JSON_COMPACT) && fputc('\n', out) != EOF && !fflush(out);
	json_decref(root);
	return ok;
}

/* ---- a terminal ---- */

static void enter_screen(struct top *t)
{
	struct termios raw;

	t->terminal = !t->s->o->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
		      !tcgetattr(STDIN_FILENO, &t->before);
	if (!t->terminal)
		return;
	raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	ctl_catch_signals();
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout); /* the other screen, no cursor */
}

static void leave_screen(struct top *t)
{
	if (!t->terminal)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static uint32_t screen_rows(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row <= FRAME_LINES + 1)
		return 20;
	return size.ws_row - FRAME_LINES - 1u;
}

static void draw_screen(struct top *t)
{
	static const char *const orders[] = {"load", "discards", "errors", "node"};
	uint32_t rows = screen_rows(), end;

	if (t->first_row + rows > t->rows_cnt)
		t->first_row = t->rows_cnt > rows ? t->rows_cnt - rows : 0;
	end = t->first_row + rows < t->rows_cnt ? t->first_row + rows : t->rows_cnt;
	fputs("\033[H\033[?7l", stdout); /* home; long lines are cut off */
	print_sums(t);
	printf("\033[K\nby %s; l: load  d: discards  e: errors  n: node  j, k: down, up  q: end\033[K\n\033[7m",
	       orders[t->order]);
	print_head();
	fputs("\033[0m", stdout);
	for (uint32_t i = t->first_row; i < end; i++) {
		bool bad = !t->row[i]->known || t->row[i]->state <= 1;

		fputs(bad ? "\033[31m" : "", stdout);
		print_row(t, t->row[i]);
		fputs("\033[0m\033[K\n", stdout);
	}
	fputs("\033[J\033[?7h", stdout);
	fflush(stdout);
}

/* False: the user has had enough. */
static bool take_key(struct top *t, int key)
{
	static const char orders[] = "lden";
	const char *order = strchr(orders, key);

	if (key == 'q')
		return false;
	if (key && order)
		t->order = (enum order)(order - orders);
	if (key == 'j')
		t->first_row++;
	if (key == 'k' && t->first_row)
		t->first_row--;
	choose_rows(t);
	draw_screen(t);
	return true;
}

/* ---- the command ---- */

static bool show(struct top *t, FILE *out, double at_s)
{
	choose_rows(t);
	if (t->terminal)
		draw_screen(t);
	else if (ctl_prints_text(t->s->o))
		print_table(t, at_s);
	return !out || write_json(t, out, at_s);
}

/* False: it is time to end. */
static bool wait_for_next(struct top *t, uint64_t due)
{
	int key;

	if (!t->terminal) {
		ctl_wait(t->s, due);
		return true;
	}
	while ((key = ctl_pace(t->s, due, STDIN_FILENO)))
		if (!take_key(t, key))
			return false;
	return !ctl_is_ended();
}

static bool make_rows(struct top *t)
{
	free(t->row);
	t->rows_cnt = 0;
	t->row = calloc(t->view.ports_cnt + 1u, sizeof(*t->row));
	return t->row || ctl_complain("there is no memory for a table");
}

/* What is behind a port that came up is found. */
static bool renew(struct top *t)
{
	bool changed;

	return ctl_view_renew(&t->view, &changed) && (!changed || make_rows(t));
}

static bool watch(struct top *t, FILE *out)
{
	struct ctl_join *j = t->s->join;
	uint64_t began = j->ops->now_ns(j), due = began;

	for (uint64_t i = 0; !t->s->o->count || i < t->s->o->count; i++) {
		if (!wait_for_next(t, due))
			return true;
		if (!renew(t) || !ctl_view_pass(&t->view) ||
		    !show(t, out, (double)(t->view.scan.at_ns - began) / NS))
			return false;
		due = ctl_next_due(t->s, due, t->s->o->interval_s);
	}
	return true;
}

bool ctl_cmd_top(struct ctl_session *s)
{
	static struct top top;
	FILE *out = s->o->json ? ctl_output_open(s->o->json) : NULL;
	bool ok;

	top = (struct top){.s = s};
	if (s->o->json && !out)
		return false;
	ok = ctl_view_open(&top.view, s) && make_rows(&top);
	if (ok) {
		enter_screen(&top);
		ok = watch(&top, out);
		leave_screen(&top);
	}
	free(top.row);
	ctl_view_close(&top.view);
	return (!out || ctl_output_close(out, s->o->json)) && ok;
}
