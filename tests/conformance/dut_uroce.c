/* SPDX-License-Identifier: BSD-3-Clause */
#include "dut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool relayed;

struct ibv_context *dut_open(const struct dut_options *o)
{
	struct uroce_open_attr attr = {.config = o->device, .set = o->set};
	char err[512] = "";
	struct ibv_context *ctx = uroce_open(&attr, err, sizeof(err));

	if (!ctx) {
		fprintf(stderr, "dut: %s\n", err);
		exit(2);
	}
	relayed = o->frames_fd >= 0;
	if (relayed)
		dut_relay_open(o->ring, o->frames_fd);
	return ctx;
}

void dut_close(struct ibv_context *ctx)
{
	uroce_close(ctx);
}

bool dut_progress(struct ibv_context *ctx)
{
	bool busy = uroce_progress(ctx) > 0;

	return (relayed && dut_relay()) || busy;
}

char *dut_counters(struct ibv_context *ctx)
{
	char *text = uroce_counters_json(ctx);

	for (char *p = text; p && *p; p++)
		if (*p == '\n')
			*p = ' ';
	return text;
}

int dut_set_mode(struct ibv_qp *qp, const char *mode)
{
	struct uroce_qp_mode_attr attr = {.mode = UROCE_QP_MODE_REORDER};

	if (strcmp(mode, "gbn") == 0)
		attr.mode = UROCE_QP_MODE_GBN;
	else if (strcmp(mode, "reorder") != 0)
		return EINVAL;
	return uroce_set_qp_mode(qp, &attr, UROCE_QP_MODE);
}
