/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

volatile sig_atomic_t perf_interrupted;

static void on_signal(int sig)
{
	if (++perf_interrupted >= 2)
		signal(sig, SIG_DFL);
}

void perf_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t perf_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t perf_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

enum ibv_mtu perf_mtu_code(uint32_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

static bool open_objects(struct perf_endpoint *ep)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof(port));
	if ((errno = uroce_query_device(ep->ctx, &ep->device)) != 0 ||
	    (errno = uroce_query_port(ep->ctx, 1, &port)) != 0) {
		fprintf(stderr, "uroce-perf: cannot query the endpoint: %s\n", strerror(errno));
		return false;
	}
	ep->mtu = 128u << port.active_mtu;
	ep->pd = uroce_alloc_pd(ep->ctx);
	ep->channel = uroce_create_event_channel(ep->ctx);
	if (ep->pd == NULL || ep->channel == NULL) {
		fprintf(stderr,
			"uroce-perf: cannot create a protection domain and an event "
			"channel: %s\n",
			strerror(errno));
		return false;
	}
	return true;
}

bool perf_endpoint_open(struct perf_endpoint *ep, const struct perf_options *o, unsigned n)
{
	const char *set[PERF_SETS_MAX + 2];
	struct uroce_open_attr attr = {.config = o->config[n], .set = set};
	char err[512] = "", dev[288];
	unsigned sets = 0;

	memset(ep, 0, sizeof(*ep));
	if (o->dev != NULL) {
		snprintf(dev, sizeof(dev), "port.dev=%s", o->dev);
		set[sets++] = dev;
	}
	memcpy(&set[sets], o->set, sizeof(o->set));
	ep->ctx = uroce_open(&attr, err, sizeof(err));
	if (ep->ctx == NULL) {
		fprintf(stderr, "uroce-perf: %s\n", err[0] != '\0' ? err : strerror(errno));
		return false;
	}
	ep->inline_mode = uroce_is_inline(ep->ctx);
	uroce_describe_port(ep->ctx, ep->port, sizeof(ep->port));
	if (o->dev != NULL || strstr(ep->port, "received frames") != NULL)
		fprintf(stderr, "%s\n", ep->port);
	if (!open_objects(ep)) {
		perf_endpoint_close(ep);
		return false;
	}
	if (o->pcap != NULL && n == 0 &&
	    uroce_capture_start(ep->ctx, o->pcap, o->filter, 0, err, sizeof(err)) != 0) {
		fprintf(stderr, "uroce-perf: --pcap: %s\n", err);
		perf_endpoint_close(ep);
		return false;
	}
	ep->capturing = o->pcap != NULL && n == 0;
	return true;
}

bool perf_endpoint_close(struct perf_endpoint *ep)
{
	struct uroce_capture_stats stats;
	bool clean = true;
	int rc;

	if (ep->capturing && uroce_capture_stop(ep->ctx, &stats) == 0)
		fprintf(stderr, "capture: %llu packets written, %llu copies dropped\n",
			(unsigned long long)stats.written, (unsigned long long)stats.dropped);
	if (ep->channel != NULL && (rc = uroce_destroy_event_channel(ep->channel)) != 0) {
		fprintf(stderr, "uroce-perf: cannot destroy the event channel: %s\n", strerror(rc));
		clean = false;
	}
	if (ep->pd != NULL && (rc = uroce_dealloc_pd(ep->pd)) != 0) {
		fprintf(stderr, "uroce-perf: cannot free the protection domain: %s\n",
			strerror(rc));
		clean = false;
	}
	if (ep->ctx != NULL && (rc = uroce_close(ep->ctx)) != 0) {
		fprintf(stderr, "uroce-perf: cannot close the endpoint: %s\n", strerror(rc));
		clean = false;
	}
	memset(ep, 0, sizeof(*ep));
	return clean;
}

void perf_endpoint_objects(const struct perf_endpoint *ep, struct perf_objects *o)
{
	struct uroce_objects u;

	memset(&u, 0, sizeof(u));
	uroce_query_objects(ep->ctx, &u);
#define X(name, unit, help) o->name = u.name;
	UROCE_OBJECTS(X)
#undef X
}

void perf_gid_of(const struct sockaddr_storage *addr, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (addr->ss_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
		return;
	}
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
}

int perf_endpoint_gid_index(const struct perf_endpoint *ep, const struct sockaddr_storage *local,
			    union ibv_gid *gid)
{
	union ibv_gid want;

	perf_gid_of(local, &want);
	for (int i = 0; uroce_query_gid(ep->ctx, 1, i, gid) == 0; i++) {
		if (memcmp(gid->raw, want.raw, 16) == 0)
			return i;
	}
	uroce_query_gid(ep->ctx, 1, 0, gid);
	return 0;
}

bool perf_endpoint_event(struct perf_endpoint *ep, int timeout_ms, struct perf_cm_event *event)
{
	struct uroce_cm_event *e;

	if (uroce_get_cm_event(ep->channel, timeout_ms, &e) != 0)
		return false;
	event->type = e->type;
	event->id = e->id;
	event->status = e->status;
	event->private_data_bytes = e->param.private_data != NULL ? e->param.private_data_len : 0;
	if (event->private_data_bytes != 0)
		memcpy(event->private_data, e->param.private_data, event->private_data_bytes);
	uroce_ack_cm_event(e);
	return true;
}
