/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "run.h"

enum exit_code { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2 };

static enum exit_code complain(const char *err)
{
	fflush(stdout);
	fprintf(stderr, "uroce-switch: %s\n", err);
	return EXIT_ERROR;
}

static bool read_config(struct node *n, char *err, size_t cap)
{
	static const char *const none[] = {NULL};

	return node_read_config(&n->options.common, none, &n->cfg, err, cap) &&
	       switch_options_ports(&n->options, n->cfg.forwarding.ports, err, cap);
}

static int run(struct node *n)
{
	char err[1024];

	if (!read_config(n, err, sizeof(err)))
		return complain(err);
	if (!node_open(n, err, sizeof(err)))
		return node_finish(n, "uroce-switch", err);
	for (unsigned i = 1; i <= n->port_cnt; i++)
		printf("port %u: %s\n", i, n->port[i].dev->name);
	node_watch(n, ur_clock_ns(&n->clock));
	printf("forwarding between %u ports\n", n->port_cnt);
	fflush(stdout);
	node_run(n, &node_stop);
	return node_finish(n, "uroce-switch", NULL);
}

int main(int argc, char **argv)
{
	static struct node node;
	char err[512];

	switch (switch_options_parse(&node.options, argc, argv, err, sizeof(err))) {
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
	return run(&node);
}
