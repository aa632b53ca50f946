/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/device.h"
#include "api/stats.h"

int uroce_capture_start(struct ibv_context *ctx, const char *file, const char *filter,
			uint64_t max_bytes, char *err, size_t err_bytes)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_capture_attr a = {
		.path = file,
		.filter = filter,
		.worker_cnt = dev->worker_cnt,
		.snaplen = dev->cfg.capture.snaplen,
		.max_bytes = max_bytes,
		.ring_bytes = dev->cfg.capture.ring * 2048,
		.epoch_ns = dev->clock.epoch_ns,
	};
	struct ur_capture *c;
	cpu_set_t cpus;
	int rc;

	ur_eal_cpus(&cpus);
	if (dev->dedicated)
		a.cpus = &cpus;
	if (atomic_load(&dev->capture_hook.current)) {
		snprintf(err, err_bytes, "a capture is under way already; stop it first");
		return EBUSY;
	}
	c = ur_capture_start(&a, err, err_bytes);
	if (!c)
		return EINVAL;
	rc = ur_capture_attach(&dev->capture_hook, c);
	if (rc)
		ur_capture_stop(c, NULL);
	return -rc;
}

int uroce_capture_stop(struct ibv_context *ctx, struct uroce_capture_stats *out)
{
	struct ur_device *dev = ur_device(ctx);
	struct ur_capture *c = ur_capture_detach(&dev->capture_hook);
	uint64_t st[UR_CAPTURE_STAT_CNT];
	int rc;

	if (!c)
		return ENOENT;
	rc = ur_capture_stop(c, st);
	if (out)
		*out = (struct uroce_capture_stats){.written = st[UR_CAPTURE_WRITTEN],
						    .dropped = st[UR_CAPTURE_DROPPED] +
							       st[UR_CAPTURE_WRITE_ERRORS],
						    .filtered = st[UR_CAPTURE_FILTERED],
						    .overflow = st[UR_CAPTURE_PAST_LIMIT]};
	return -rc;
}

/* ---- telemetry ---- */

/*
 * "/uroce/capture,start,FILE", ",start,FILE,FILTER" and ",stop" control a capture; without a
 * parameter the counters of the current one are returned. Any process that may open the telemetry
 * socket may capture.
 */
int ur_stats_emit_capture(struct ur_emit *e, const char *params, void *ctx)
{
	struct ur_device *dev = ctx;
	struct uroce_capture_stats st;
	char text[512], err[256], *file, *filter;

	if (!*params) {
		ur_emit_str(e, "state",
			    atomic_load(&dev->capture_hook.current) ? "running" : "stopped");
		return 0;
	}
	if (strcmp(params, "stop") == 0) {
		if (uroce_capture_stop(&dev->own.v.context, &st))
			return -ENOENT;
		ur_emit_u64(e, "written", st.written);
		ur_emit_u64(e, "dropped", st.dropped);
		ur_emit_u64(e, "filtered", st.filtered);
		ur_emit_u64(e, "overflow", st.overflow);
		return 0;
	}
	if (strncmp(params, "start,", 6) || strlen(params) >= sizeof(text))
		return -EINVAL;
	strcpy(text, params + 6);
	filter = text;
	file = strsep(&filter, ",");
	if (uroce_capture_start(&dev->own.v.context, file, filter, 0, err, sizeof(err)))
		ur_emit_str(e, "error", err);
	else
		ur_emit_str(e, "state", "running");
	return 0;
}
