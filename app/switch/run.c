/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <stdio.h>

#include "dpdk/port.h"
#include "writer.h"

volatile sig_atomic_t node_stop;

static void on_signal(int sig)
{
	node_stop = sig;
}

static void on_crash(int sig)
{
	ur_port_emergency();
	signal(sig, SIG_DFL);
	raise(sig);
}

void node_catch_signals(void)
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

bool node_finish(struct node *n, const char *program, bool has_run)
{
	bool ok = true;

	if (has_run && n->stats)
		node_write_stats(n, ur_clock_ns(&n->clock));
	if (n->stats && writer_end(n->stats) && has_run) {
		fflush(stdout);
		fprintf(stderr, "%s: --json: %s cannot be written\n", program,
			n->options.common.json);
		ok = false;
	}
	n->stats = NULL;
	node_close(n);
	return ok;
}

bool node_read_config(const struct common_options *o, const char *const *defaults,
		      struct ur_config *cfg, char *err, size_t cap)
{
	if (ur_config_load(o->config, cfg, err, cap))
		return false;
	for (; *defaults; defaults++)
		if (ur_config_set_arg(cfg, *defaults, err, cap))
			return false;
	for (unsigned i = 0; i < o->set_cnt; i++)
		if (ur_config_set_arg(cfg, o->set[i], err, cap))
			return false;
	return true;
}
