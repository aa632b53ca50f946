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
	struct switch_options *o = &n->options;

	if (ur_config_load(o->config, &n->cfg, err, cap))
		return false;
	for (unsigned i = 0; i < o->set_cnt; i++)
		if (ur_config_set_arg(&n->cfg, o->set[i], err, cap))
			return false;
	return switch_options_ports(o, n->cfg.forwarding.ports, err, cap);
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
	case SWITCH_PARSE_HELP:
		switch_options_help(stdout);
		return EXIT_OK;
	case SWITCH_PARSE_HELP_CONFIG:
		ur_config_help(stdout);
		return EXIT_OK;
	case SWITCH_PARSE_USAGE:
		complain(err);
		return EXIT_USAGE;
	case SWITCH_PARSE_OK:
		break;
	}
	node_catch_signals();
	return run(&node);
}
