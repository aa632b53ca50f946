/* SPDX-License-Identifier: BSD-3-Clause */
#include "dut.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ibv_context *dut_open(const struct dut_options *o)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (unsigned i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), o->device) == 0)
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!ctx) {
		fprintf(stderr, "dut: no device %s\n", o->device);
		exit(2);
	}
	return ctx;
}

void dut_close(struct ibv_context *ctx)
{
	ibv_close_device(ctx);
}

bool dut_progress(struct ibv_context *ctx)
{
	return false;
}

/* The counters that the kernel has for the port. */
char *dut_counters(struct ibv_context *ctx)
{
	char dir[256], path[600], *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct dirent *e;
	bool first = true;
	DIR *d;

	if (!out)
		return NULL;
	snprintf(dir, sizeof(dir), "/sys/class/infiniband/%s/ports/1/hw_counters",
		 ibv_get_device_name(ctx->device));
	fputc('{', out);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		unsigned long long value;
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f && fscanf(f, "%llu", &value) == 1) {
			fprintf(out, "%s\"%s\": %llu", first ? "" : ", ", e->d_name, value);
			first = false;
		}
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	fputc('}', out);
	fclose(out);
	return text;
}

int dut_set_mode(struct ibv_qp *qp, const char *mode)
{
	return EOPNOTSUPP;
}
