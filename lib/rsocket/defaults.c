/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_COUNT */
#endif
#include <sched.h>
#include <stdio.h>

#include "rsocket/socket.h"

/* Where rsocket(7) says that an administrator puts defaults: one number in each file. */
#define DIRECTORY "/etc/rdma/rsocket/"

static struct ur_rs_options defaults = {
	.send_bytes = 131072,
	.recv_bytes = 131072,
	.sq_depth = 384,
	.rq_depth = 384,
	.inline_bytes = 64,
	.keep_idle_s = 7200,
	.linger = {.l_onoff = 0},
	.send_ms = -1,
	.recv_ms = -1,
};
static unsigned long busy_us = 100;

/* Keeps *value if there is no such file, or no number in [1, max] in it. */
static unsigned long read_file(const char *path, unsigned long value, unsigned long max)
{
	FILE *f = fopen(path, "re");
	unsigned long got;

	if (!f)
		return value;
	if (fscanf(f, "%lu", &got) == 1 && got && got <= max)
		value = got;
	fclose(f);
	return value;
}

/* EDGE-BUSY-01 */
static bool has_one_cpu(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1;
}

static void read_files(void)
{
	struct ur_rs_options *d = &defaults;

	if (has_one_cpu())
		busy_us = 0;
	d->recv_bytes = (uint32_t)read_file(DIRECTORY "mem_default", d->recv_bytes, 1u << 30);
	d->send_bytes = (uint32_t)read_file(DIRECTORY "wmem_default", d->send_bytes, 1u << 30);
	d->sq_depth = (uint32_t)read_file(DIRECTORY "sqsize_default", d->sq_depth, 65534);
	d->rq_depth = (uint32_t)read_file(DIRECTORY "rqsize_default", d->rq_depth, 65534);
	d->inline_bytes = (uint32_t)read_file(DIRECTORY "inline_default", d->inline_bytes, 65534);
	d->maps = (uint16_t)read_file(DIRECTORY "iomap_size", d->maps, 32512);
	busy_us = read_file(DIRECTORY "polling_time", busy_us, 1000000);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const struct ur_rs_options *ur_rs_defaults(void)
{
	pthread_once(&once, read_files);
	return &defaults;
}

uint64_t ur_rs_busy_ns(void)
{
	pthread_once(&once, read_files);
	return (uint64_t)busy_us * 1000;
}
