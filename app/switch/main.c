/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "dpdk/port.h"
#include "node.h"

enum exit_code { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2 };

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

/* An XDP program that outlives the process would discard all of the interface's traffic. */
static void on_crash(int sig)
{
	ur_port_emergency();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_signals(void)
{
	static const int crash[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	sa.sa_handler = on_crash;
	for (unsigned i = 0; i < sizeof(crash) / sizeof(crash[0]); i++)
		sigaction(crash[i], &sa, NULL);
}

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

static enum exit_code run(struct node *n)
{
	enum exit_code code = EXIT_OK;
	char err[1024];

	if (!read_config(n, err, sizeof(err)))
		return complain(err);
	if (!node_open(n, err, sizeof(err))) {
		node_close(n);
		return complain(err);
	}
	for (unsigned i = 1; i <= n->port_cnt; i++)
		printf("port %u: %s\n", i, n->port[i].dev->name);
	node_watch(n, ur_clock_ns(&n->clock));
	printf("forwarding between %u ports\n", n->port_cnt);
	fflush(stdout);
	node_run(n, &stop);
	if (n->options.json && !node_write_stats(n, n->options.json, ur_clock_ns(&n->clock))) {
		snprintf(err, sizeof(err), "--json: %s cannot be written", n->options.json);
		code = complain(err);
	}
	node_close(n);
	return code;
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
	catch_signals();
	return (int)run(&node);
}
