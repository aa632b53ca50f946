/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_OPTIONS_H
#define UROCED_OPTIONS_H

#include <stdio.h>
#include <sys/types.h>

#include "common.h"
#include "lease.h"

/* The command line of uroced. Pure but for the name of a group. */
#define UROCED_UPLINKS_MAX 8

struct options {
	const char *socket;
	const char *uplink[UROCED_UPLINKS_MAX]; /* descriptions of ports, as uroce-switch has */
	unsigned uplink_cnt;
	const char *leases; /* a file, or NULL */
	struct common_options common;
	struct lease_attr lease;
	const char *share; /* a kernel interface, or NULL */
	uint32_t mode;
	gid_t group; /* -1: the daemon's own */
	uint32_t mtu;
	double rate_gbps;
	bool manage;
	bool direct;
};

enum parse options_parse(struct options *o, int argc, char **argv, char *err, size_t cap);
void options_help(FILE *out);

#endif
