/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/device.h"
#include "api/wait.h"

static int query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *out,
		      size_t bytes)
{
	struct ibv_port_attr a;
	int rc = uroce_query_port(ctx, port_num, &a);

	/* A program of another release has a shorter or a longer struct. */
	if (rc)
		return rc;
	memset(out, 0, bytes);
	memcpy(out, &a, bytes < sizeof(a) ? bytes : sizeof(a));
	return 0;
}

static void set_operations(struct verbs_context *v)
{
	v->query_port = query_port;
	v->create_cq_ex = uroce_create_cq_ex;
	v->create_qp_ex = uroce_create_qp_ex;
	v->query_device_ex = uroce_query_device_ex;
	v->query_rt_values = uroce_query_rt_values;
	v->alloc_td = uroce_alloc_td;
	v->dealloc_td = uroce_dealloc_td;
	v->alloc_parent_domain = uroce_alloc_parent_domain;
	v->context.ops.alloc_mw = uroce_alloc_mw;
	v->context.ops.bind_mw = uroce_bind_mw;
	v->context.ops.dealloc_mw = uroce_dealloc_mw;
	v->context.ops.poll_cq = uroce_poll_cq;
	v->context.ops.req_notify_cq = uroce_req_notify_cq;
	v->context.ops.post_send = uroce_post_send;
	v->context.ops.post_recv = uroce_post_recv;
	v->context.ops.post_srq_recv = uroce_post_srq_recv;
}

struct ur_context *ur_context_new(struct ur_device *dev)
{
	struct ur_context *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->v.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (c->v.context.async_fd < 0) {
		free(c);
		return NULL;
	}
	/* For programs that duplicate it; nothing is written to it. */
	c->v.context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	c->v.context.device = &dev->ibdev.base;
	c->v.context.num_comp_vectors = dev->worker_cnt;
	c->v.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->v.sz = sizeof(c->v);
	pthread_mutex_init(&c->v.context.mutex, NULL);
	set_operations(&c->v);
	TAILQ_INIT(&c->asyncs);
	LIST_INIT(&c->mrs);
	LIST_INIT(&c->mws);
	LIST_INIT(&c->qps);
	pthread_cond_init(&c->waiters.left, NULL);
	c->dev = dev;
	pthread_mutex_lock(&dev->async_lock);
	LIST_INSERT_HEAD(&dev->contexts, c, link);
	pthread_mutex_unlock(&dev->async_lock);
	return c;
}

bool ur_context_free(struct ur_context *c)
{
	struct ur_device *dev = c->dev;
	bool last;

	ur_device_waiters_close(&c->waiters, &dev->async_lock, c->v.context.async_fd);
	pthread_mutex_lock(&dev->async_lock);
	LIST_REMOVE(c, link);
	last = LIST_EMPTY(&dev->contexts);
	pthread_mutex_unlock(&dev->async_lock);
	close(c->v.context.async_fd);
	if (c->v.context.cmd_fd >= 0)
		close(c->v.context.cmd_fd);
	pthread_mutex_destroy(&c->v.context.mutex);
	pthread_cond_destroy(&c->waiters.left);
	free(c);
	return last;
}

struct ibv_context *uroce_share(struct ibv_context *ctx)
{
	struct ur_context *c = ur_context_new(ur_device(ctx));

	return c ? &c->v.context : NULL;
}

void ur_context_count_locked(struct ibv_context *ctx, uint32_t *count, int by)
{
	*count += (uint32_t)by;
	ur_context(ctx)->objects += (uint32_t)by;
}

void ur_context_count(struct ibv_context *ctx, uint32_t *count, int by)
{
	struct ur_device *dev = ur_device(ctx);

	pthread_mutex_lock(&dev->lock);
	ur_context_count_locked(ctx, count, by);
	pthread_mutex_unlock(&dev->lock);
}
