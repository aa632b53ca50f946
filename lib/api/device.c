/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/device.h"
#include "api/lease.h"
#include "api/mcast.h"
#include "api/life.h"
#include "api/progress.h"
#include "api/share.h"
#include "api/wait.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dpdk/assemble.h"
#include "dpdk/lease.h"
#include "edge/config_attr.h"
#include "thread/thread.h"
#include "wire/assert.h"

uint64_t ur_device_guid(const struct ur_device *dev)
{
	const uint8_t *m = dev->port.mac;

	return (uint64_t)(m[0] ^ 2) << 56 | (uint64_t)m[1] << 48 | (uint64_t)m[2] << 40 |
	       UINT64_C(0xfffe) << 24 | (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
}

unsigned ur_device_progress(struct ur_device *dev)
{
	unsigned n = 0;

	if (!dev->dedicated)
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			n += ur_worker_poll(dev->workers[i]);
	return n;
}

void ur_device_close_bursts(struct ur_device *dev)
{
	if (!dev->dedicated)
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			ur_worker_close_burst(dev->workers[i]);
}

void ur_device_stop_gathering(struct ur_device *dev)
{
	if (!dev->dedicated)
		for (unsigned i = 0; i < dev->worker_cnt; i++)
			ur_worker_stop_gathering(dev->workers[i]);
}

static void nothing(void *arg, uint64_t now_ns)
{
}

void ur_device_quiesce(struct ur_device *dev)
{
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_worker_call(dev->workers[i], nothing, NULL);
}

/* ---- open ---- */

/* For a shared interface the table stays empty, because the kernel has the neighbours. */
static void make_neigh(struct ur_device *dev)
{
	struct ur_neigh_attr a = {0};

	if (dev->shared) {
		memcpy(a.mac, dev->port.mac, 6);
		ur_neigh_init(dev->neigh, &a);
		return;
	}
	a = ur_neigh_attr_of(&dev->cfg, dev->port.mac);
	if (dev->lease && ur_lease_is_kernels(dev->lease))
		a.addr[0].prefix_len = 0;
	for (unsigned i = 0; i < a.addr_cnt; i++)
		dev->gids[i] = dev->taken[i] = a.addr[i].gid;
	dev->gid_cnt = dev->taken_cnt = a.addr_cnt;
	ur_neigh_open(dev->neigh, &a, &dev->cfg, ur_clock_ns(&dev->clock));
}

/*
 * SHARED-INGRESS-02. The kernel gets each packet, too, and would look for a route to an address that it does not have. Without the right
 * to attach a program it does so. In a VLAN the endpoint has tagged packets only, which belong to an interface of their own.
 */
static void drop_copies(struct ur_device *dev)
{
	const struct ur_config *cfg = &dev->cfg;

	if (dev->shared || cfg->port.driver != UR_DRIVER_AF_PACKET || cfg->address.vlan ||
	    ur_ingress_drop_open(&dev->drop))
		return;
	for (unsigned i = 0; i < dev->gid_cnt; i++)
		ur_ingress_drop_add(&dev->drop, &dev->gids[i]);
	if (ur_ingress_drop_attach(&dev->drop, if_nametoindex(cfg->port.device)))
		ur_ingress_drop_close(&dev->drop);
}

static int make_workers(struct ur_device *dev, char *err, size_t cap)
{
	struct ur_assembly a = {
		.cfg = &dev->cfg,
		.eal = &dev->eal,
		.port = &dev->port,
		.clock = &dev->clock,
		.neigh = dev->shared ? NULL : dev->neigh,
		.mem = dev->mem,
		.capture = &dev->capture_hook,
		.gids = dev->taken,
		.gid_cnt = dev->taken_cnt,
		.worker_cnt = dev->worker_cnt,
		.prefix = ur_lease_prefix_of(dev),
		.mtu_shift = dev->mtu_shift,
		.sink = ur_device_sink(dev),
		.cm = ur_cm_api_attr(dev),
		.cm_limits = {.max_listeners = 512,
			      .max_pending = UR_CM_API_PENDING,
			      .max_sidr = UR_CM_API_SIDR,
			      .max_per_peer = UR_CM_API_PER_PEER,
			      .max_tx = 8192},
		.qos = &dev->qos.engine,
	};

	ur_qos_of_config(&dev->cfg, dev->mtu_shift, &dev->qos);
	dev->served_sls = ur_qos_served_sls(&dev->qos.engine);
	ur_dscp_map_publish(&dev->dscp_map, &dev->qos.dscp_map);
	if (dev->cfg.management.agent) {
		int rc = ur_mgmt_open(&dev->mgmt, &dev->cfg, &dev->port, dev->workers,
				      dev->worker_cnt, err, cap);

		if (rc)
			return rc;
		a.mgmt = &dev->mgmt;
	}
	return ur_assemble_workers(&a, dev->workers, err, cap);
}

void ur_device_stop_threads(struct ur_device *dev)
{
	ur_progress_stop(dev, ur_life_is_exiting());
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		if (dev->workers[i])
			ur_worker_stop(dev->workers[i]);
}

static void tear_down(struct ur_device *dev)
{
	/* First, because telemetry's thread calls the workers. */
	ur_stats_unregister(dev);
	ur_device_stop_threads(dev);
	if (dev->port.open)
		ur_life_delist(dev);
	if (atomic_load(&dev->capture_hook.current))
		uroce_capture_stop(&dev->own.v.context, NULL);
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_worker_free(dev->workers[i]);
	ur_lease_free_direct(dev);
	ur_cm_api_free(dev);
	ur_mgmt_link_close(dev);
	ur_mgmt_close(&dev->mgmt);
	ur_port_close(&dev->port);
	ur_mcast_free(dev);
	ur_share_close(dev);
	ur_ingress_drop_close(&dev->drop);
	if (dev->eal.queue_cnt)
		ur_eal_release(&dev->eal);
	ur_lease_close(dev->lease);
	if (dev->call_fd >= 0)
		close(dev->call_fd);
	ur_port_reap(); /* the last frames of a ring have been returned */
	ur_life_return_number(dev->number);
	free(dev->mem);
	free(dev->neigh);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->gid_lock);
	ur_slab_destroy(&dev->slab);
	pthread_mutex_destroy(&dev->async_lock);
	free(dev);
}

void ur_device_start_clock(struct ur_device *dev)
{
	if (!dev->clock.mult)
		ur_clock_start(&dev->clock);
}

static int start(struct ur_device *dev, const struct uroce_open_attr *attr, char *err, size_t cap)
{
	int rc = ur_assemble_config(&dev->cfg, attr->config, attr->set, &dev->lease, err, cap);
	struct ur_wake_before before;
	void *mem;

	if (rc)
		return rc;
	ur_share_choose_driver(dev);
	rc = ur_share_open(dev, err, cap);
	ur_wake_note(&before);
	if (!rc)
		rc = ur_assemble_port(&dev->cfg, &dev->eal, &dev->port, &dev->mtu_shift, err, cap);
	while (rc && (ur_share_fall_back(dev, rc, err) || ur_lease_regain(dev, &rc, err, cap)))
		rc = ur_assemble_port(&dev->cfg, &dev->eal, &dev->port, &dev->mtu_shift, err, cap);
	ur_wake_find(&dev->wake, &before, &dev->cfg);
	if (dev->port.open)
		ur_life_enlist(dev);
	if (!rc)
		rc = ur_share_hold(dev, err, cap);
	if (rc)
		return rc;
	ur_lease_wait_link(dev);
	ur_device_start_clock(dev);
	dev->dedicated = dev->eal.dedicated;
	mem = aligned_alloc(64, (ur_mem_size(dev->cfg.transport.max_mr) + 63) & ~(size_t)63);
	dev->mem = mem ? ur_mem_init(mem, dev->cfg.transport.max_mr) : NULL;
	dev->neigh = malloc(sizeof(*dev->neigh));
	if (!dev->mem || !dev->neigh || ur_cm_api_new(dev)) {
		snprintf(err, cap, "out of memory");
		return -ENOMEM;
	}
	make_neigh(dev);
	drop_copies(dev);
	dev->worker_cnt = ur_assemble_worker_cnt(&dev->port);
	rc = make_workers(dev, err, cap);
	if (rc)
		return rc;
	ur_lease_begin_direct(dev);
	ur_mgmt_link_open(dev);
	rc = -ur_progress_start(dev);
	if (rc) {
		snprintf(err, cap, "no thread could be started: %s", strerror(-rc));
		return rc;
	}
	ur_stats_register(dev);
	if (dev->cfg.capture.file[0])
		rc = uroce_capture_start(&dev->own.v.context, dev->cfg.capture.file,
					 dev->cfg.capture.filter,
					 dev->cfg.capture.max_mb * UINT64_C(1048576), err, cap);
	return rc > 0 ? -rc : rc;
}

static struct ur_device *new_device(void)
{
	struct ur_device *dev = aligned_alloc(64, (sizeof(*dev) + 63) & ~(size_t)63);

	if (!dev)
		return NULL;
	memset(dev, 0, sizeof(*dev));
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->gid_lock, NULL);
	ur_slab_init(&dev->slab);
	pthread_mutex_init(&dev->async_lock, NULL);
	dev->call_fd = -1;
	dev->number = ur_life_take_number();
	dev->own.dev = dev;
	snprintf(dev->ibdev.base.name, sizeof(dev->ibdev.base.name), "uroce%u", dev->number);
	dev->ibdev.base.node_type = IBV_NODE_CA;
	dev->ibdev.base.transport_type = IBV_TRANSPORT_IB;
	return dev;
}

static struct ibv_context *open_endpoint(const struct uroce_open_attr *attr, char *err,
					 size_t err_bytes)
{
	struct ur_device *dev;
	struct ur_context *ctx;
	int rc;

	if (!ur_life_may_open()) {
		snprintf(err, err_bytes,
			 "a child of fork() cannot open what its parent has opened; open it "
			 "after fork(), or call exec()");
		errno = EIO;
		return NULL;
	}
	dev = new_device();
	if (!dev) {
		snprintf(err, err_bytes, "out of memory");
		errno = ENOMEM;
		return NULL;
	}
	rc = start(dev, attr, err, err_bytes);
	ctx = rc ? NULL : ur_context_new(dev);
	if (!ctx) {
		if (!rc) {
			rc = -errno;
			snprintf(err, err_bytes, "no event descriptor: %s", strerror(-rc));
		}
		tear_down(dev);
		errno = -rc;
		return NULL;
	}
	return &ctx->v.context;
}

struct ibv_context *uroce_open(const struct uroce_open_attr *attr, char *err, size_t err_bytes)
{
	int cancel = ur_cancel_off();
	struct ibv_context *ctx = open_endpoint(attr, err, err_bytes);

	ur_cancel_restore(cancel);
	return ctx;
}

int uroce_close(struct ibv_context *ctx)
{
	struct ur_device *dev = ur_device(ctx);
	int cancel;
	bool busy;

	/* The port, its threads and the connections belong to the parent. */
	if (ur_life_is_child())
		return 0;
	pthread_mutex_lock(&dev->lock);
	busy = ur_context(ctx)->objects != 0;
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return EBUSY;
	/* In a destructor during exit() the port is closed already, and the process ends soon. */
	cancel = ur_cancel_off();
	if (!ur_life_is_exiting() && ur_context_free(ur_context(ctx)))
		tear_down(dev);
	ur_cancel_restore(cancel);
	return 0;
}

/* CONTEXT-ABANDON-01 */
void uroce_abandon(struct ibv_context *ctx)
{
	struct ur_context *c = ur_context(ctx);
	struct ur_device *dev = c->dev;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int cancel = ur_cancel_off();
	struct ur_api_mr *mr;
	struct ur_api_mw *mw;
	struct ur_api_qp *qp;

	if (ur_life_is_child() || ur_life_is_exiting()) {
		ur_cancel_restore(cancel);
		return;
	}
	pthread_mutex_lock(&dev->lock);
	LIST_FOREACH(mr, &c->mrs, link)
	ur_mem_suspend(dev->mem, mr->base.lkey);
	LIST_FOREACH(mw, &c->mws, link)
	ur_window_suspend(dev->mem, mw->base.rkey);
	ur_device_quiesce(dev);
	LIST_FOREACH(qp, &c->qps, link)
	uroce_modify_qp(&qp->base, &attr, IBV_QP_STATE);
	pthread_mutex_unlock(&dev->lock);
	ur_cancel_restore(cancel);
}

void uroce_config_help(FILE *out)
{
	ur_config_help(out);
}

unsigned uroce_progress(struct ibv_context *ctx)
{
	return ur_device_progress(ur_device(ctx));
}

bool uroce_is_inline(const struct ibv_context *ctx)
{
	return !ur_device(ctx)->dedicated;
}
