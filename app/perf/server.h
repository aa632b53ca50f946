/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_SERVER_H
#define PERF_SERVER_H

#include "endpoint.h"

/*
 * The whole program's server side, on an endpoint of each file of the options; returns the exit
 * status. Runs until SIGINT or SIGTERM.
 */
int perf_server_main(struct perf_endpoint *eps, const struct perf_options *o);

#endif
