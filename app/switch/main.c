/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "ring.h"
#include "run.h"

enum exit_code { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2 };

static struct switch_options options[SWITCHES_MAX];

static enum exit_code complain(const char *err)
{
	fflush(stdout);
	fprintf(stderr, "uroce-switch: %s\n", err);
	return EXIT_ERROR;
}

/* Says whose error it is. */
static bool is_of(const struct node *n, const char *why, char *err, size_t cap)
{
	snprintf(err, cap, "%s%s", node_prefix(n), why);
	return false;
}

static bool read_config(struct node *n, char *err, size_t cap)
{
	static const char *const none[] = {NULL};

	return node_read_config(&n->options.common, none, &n->cfg, err, cap) &&
	       switch_options_ports(&n->options, n->cfg.forwarding.ports, err, cap);
}

static void announce(struct node *n)
{
	for (unsigned i = 1; i <= n->port_cnt; i++)
		printf("%sport %u: %s\n", node_prefix(n), i, n->port[i].dev->name);
	node_watch(n, ur_clock_ns(&n->clock));
}

/* In the order of what they need of DPDK. False: a sentence in `err`. */
static bool open_all(struct node *n, unsigned cnt, char *err, size_t cap)
{
	unsigned opened = 0;
	char why[1024];

	for (unsigned rank = 0; opened < cnt; rank++)
		for (unsigned i = 0; i < cnt; i++) {
			if (node_rank(&n[i]) != rank)
				continue;
			if (!node_open(&n[i], why, sizeof(why)))
				return is_of(&n[i], why, err, cap);
			opened++;
		}
	return ring_check(err, cap);
}

static bool start(struct node *n, unsigned cnt, char *err, size_t cap)
{
	char why[1024];

	for (unsigned i = 0; i < cnt; i++) {
		n[i].options = options[i];
		if (!read_config(&n[i], why, sizeof(why)))
			return is_of(&n[i], why, err, cap);
	}
	if (!open_all(n, cnt, err, cap))
		return false;
	for (unsigned i = 0; i < cnt; i++)
		announce(&n[i]);
	for (unsigned i = 0; i < cnt; i++)
		printf("%sforwarding between %u ports\n", node_prefix(&n[i]), n[i].port_cnt);
	fflush(stdout);
	return true;
}

static enum exit_code run(unsigned cnt)
{
	struct node *n = calloc(cnt, sizeof(*n));
	char err[1024];
	bool runs, ok;

	if (!n)
		return complain("out of memory");
	ok = runs = start(n, cnt, err, sizeof(err));
	if (runs)
		node_run(n, cnt, &node_stop);
	else
		complain(err);
	for (unsigned i = 0; i < cnt; i++)
		ok &= node_finish(&n[i], "uroce-switch", runs);
	free(n);
	return ok ? EXIT_OK : EXIT_ERROR;
}

int main(int argc, char **argv)
{
	char err[512];
	unsigned cnt;

	switch (switch_options_parse(options, &cnt, argc, argv, err, sizeof(err))) {
	case PARSE_HELP:
		switch_options_help(stdout);
		return EXIT_OK;
	case PARSE_HELP_CONFIG:
		ur_config_help(stdout);
		return EXIT_OK;
	case PARSE_USAGE:
		complain(err);
		return EXIT_USAGE;
	case PARSE_OK:
		break;
	}
	node_catch_signals();
	return run(cnt);
}
