/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_ENDPOINT_H
#define PERF_ENDPOINT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "uroce/cm.h"
#include "uroce/uroce.h"

#include "options.h"
#include "proto.h"

/* The open endpoint, and what belongs to the process as a whole. One thread uses it. */
struct perf_endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct uroce_event_channel *channel;
	struct ibv_device_attr device;
	uint32_t mtu; /* the port's active MTU, bytes */
	char port
		[512]; /* how the port reaches its network, and what it decided when it was opened */
	bool inline_mode;
	bool capturing;
};

/* Opens the endpoint of configuration `n`; the first one captures. False after one sentence on
 * stderr; then nothing is open. */
bool perf_endpoint_open(struct perf_endpoint *ep, const struct perf_options *o, unsigned n);

/* Closes everything; false (and a sentence) if an object was left over. */
bool perf_endpoint_close(struct perf_endpoint *ep);

void perf_endpoint_objects(const struct perf_endpoint *ep, struct perf_objects *o);

/* The index of the GID that is `local`; 0 when none is. */
int perf_endpoint_gid_index(const struct perf_endpoint *ep, const struct sockaddr_storage *local,
			    union ibv_gid *gid);
void perf_gid_of(const struct sockaddr_storage *addr, union ibv_gid *gid);

/*
 * A CM event, copied, so that it may be acted on after it was acked. False when there was none
 * within the time (ms; 0: do not wait).
 */
struct perf_cm_event {
	enum uroce_cm_event_type type;
	struct uroce_cm_id *id;
	int status;
	uint8_t private_data[256];
	unsigned private_data_bytes;
};

bool perf_endpoint_event(struct perf_endpoint *ep, int timeout_ms, struct perf_cm_event *event);

uint64_t perf_now_ns(void); /* monotonic */
uint64_t perf_cpu_ns(void); /* of this process */

enum ibv_mtu perf_mtu_code(uint32_t bytes);

/* SIGINT and SIGTERM set this; the third one kills. */
extern volatile sig_atomic_t perf_interrupted;
void perf_catch_signals(void);

#endif
