/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "client.h"
#include "metrics.h"
#include "server.h"

int main(int argc, char **argv)
{
	static struct perf_options options;
	static struct perf_endpoint ep[PERF_CONFIGS_MAX];
	struct perf_metrics *metrics = NULL;
	unsigned open = 0;
	char err[512];
	int status;

	switch (perf_options_parse(&options, argc, argv, err, sizeof(err))) {
	case PERF_PARSE_HELP:
		perf_options_help(stdout);
		return PERF_EXIT_OK;
	case PERF_PARSE_HELP_CONFIG:
		uroce_config_help(stdout);
		return PERF_EXIT_OK;
	case PERF_PARSE_USAGE:
		fprintf(stderr, "uroce-perf: %s\n", err);
		return PERF_EXIT_USAGE;
	case PERF_PARSE_OK:
		break;
	}
	perf_catch_signals();
	if (options.metrics != NULL && (metrics = perf_metrics_start(&options)) == NULL)
		return PERF_EXIT_ERROR;
	while (open < options.configs_cnt && perf_endpoint_open(&ep[open], &options, open))
		open++;
	status = PERF_EXIT_ERROR;
	perf_metrics_show(metrics, ep, open);
	if (open == options.configs_cnt)
		status = options.server ? perf_server_main(ep, &options)
					: perf_client_main(ep, &options);
	perf_metrics_show(metrics, NULL, 0);
	while (open > 0)
		if (!perf_endpoint_close(&ep[--open]) && status == PERF_EXIT_OK)
			status = PERF_EXIT_ERROR;
	perf_metrics_stop(metrics);
	return status;
}
