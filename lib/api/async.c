/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/device.h"

/* ---- the engine's sink: called on workers ---- */

static void on_completion(void *ctx, struct ur_cq *cq)
{
	ur_api_cq_notify(cq->user);
}

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	struct ur_device *dev = ctx;
	struct ibv_async_event ev = {.event_type = type};
	uint64_t one = 1;
	bool lost;

	/* The three kinds of objects begin with the struct the application knows. */
	ev.element.qp = user;
	pthread_mutex_lock(&dev->async_lock);
	lost = dev->async_tail - dev->async_head == UR_ASYNC_MAX;
	if (lost)
		dev->async_lost++;
	else
		dev->async[dev->async_tail++ % UR_ASYNC_MAX] = ev;
	pthread_mutex_unlock(&dev->async_lock);
	if (!lost && write(dev->ctx.async_fd, &one, sizeof(one)) < 0)
		return;
}

static void on_foreign(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct ur_device *dev = ctx;

	ur_worker_foreign(dev->workers[cq->worker], cq, wc, solicited);
}

struct ur_sink ur_device_sink(struct ur_device *dev)
{
	return (struct ur_sink){
		.ctx = dev, .completion = on_completion, .async = on_async, .foreign = on_foreign};
}

/* ---- the application's side ---- */

void ur_async_purge(struct ur_device *dev, const void *object)
{
	uint32_t kept;

	pthread_mutex_lock(&dev->async_lock);
	kept = dev->async_head;
	for (uint32_t i = dev->async_head; i != dev->async_tail; i++) {
		struct ibv_async_event ev = dev->async[i % UR_ASYNC_MAX];

		if ((const void *)ev.element.qp != object)
			dev->async[kept++ % UR_ASYNC_MAX] = ev;
	}
	dev->async_tail = kept;
	pthread_mutex_unlock(&dev->async_lock);
}

int uroce_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct ur_device *dev = ur_device(ctx);
	unsigned idle = 0;
	uint64_t one;
	bool got;

	do {
		while (!dev->dedicated) {
			struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

			if (poll(&p, 1, 0) == 1)
				break;
			ur_device_wait_a_bit(dev, &idle);
		}
		if (read(ctx->async_fd, &one, sizeof(one)) < 0)
			return -1;
		pthread_mutex_lock(&dev->async_lock);
		/* Fewer than were announced: the object of one is gone. */
		got = dev->async_head != dev->async_tail;
		if (got)
			*event = dev->async[dev->async_head++ % UR_ASYNC_MAX];
		pthread_mutex_unlock(&dev->async_lock);
	} while (!got);
	return 0;
}

void uroce_ack_async_event(struct ibv_async_event *event)
{
}

const char *uroce_event_type_str(enum ibv_event_type type)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
		[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
		[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
	};
	size_t i = (size_t)type;

	return i < sizeof(names) / sizeof(names[0]) && names[i] ? names[i] : "unknown event";
}

const char *uroce_wc_status_str(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "work request flushed",
		[IBV_WC_MW_BIND_ERR] = "invalidate or bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_GENERAL_ERR] = "general error",
	};
	size_t i = (size_t)status;

	return i < sizeof(names) / sizeof(names[0]) && names[i] ? names[i] : "unknown status";
}
