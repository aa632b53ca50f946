/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/share.h"

#include <errno.h>
#include <string.h>

#include <bsd/string.h>

#include "api/device.h"
#include "dpdk/dev.h"

#define INTERVAL_NS UINT64_C(10000000)

/* Copies the GIDs in use, for workers, which compare each packet's destination with all of them. */
static void take(struct ur_device *dev)
{
	static const struct ur_gid none;

	dev->taken_cnt = 0;
	for (unsigned i = 0; i < dev->gid_cnt; i++)
		if (!ur_gid_eq(&dev->gids[i], &none))
			dev->taken[dev->taken_cnt++] = dev->gids[i];
}

static bool set_table(struct ur_device *dev)
{
	struct ur_shared_addrs now;
	bool changed;

	ur_shared_addrs(dev->shared, &now);
	pthread_mutex_lock(&dev->gid_lock);
	changed = dev->gid_cnt != now.cnt || memcmp(dev->gids, now.gid, sizeof(now.gid)) != 0;
	memcpy(dev->gids, now.gid, sizeof(now.gid));
	dev->gid_cnt = now.cnt;
	pthread_mutex_unlock(&dev->gid_lock);
	return changed;
}

/* SHARED-DRIVER-01 */
void ur_share_choose_driver(struct ur_device *dev)
{
	if (!ur_config_shares(&dev->cfg) || ur_config_is_given(&dev->cfg, "port", "driver"))
		return;
	dev->may_fall_back =
		ur_dev_suits_af_xdp(&dev->cfg, dev->not_af_xdp, sizeof(dev->not_af_xdp));
	if (dev->may_fall_back)
		dev->cfg.port.driver = UR_DRIVER_AF_XDP;
}

bool ur_share_fall_back(struct ur_device *dev, int rc, const char *err)
{
	bool has_device = dev->eal.queue_cnt;

	/* Another endpoint has the interface: no other driver helps. */
	if (!dev->may_fall_back || (rc == -EBUSY && !has_device))
		return false;
	dev->may_fall_back = false;
	strlcpy(dev->not_af_xdp, err, sizeof(dev->not_af_xdp));
	dev->cfg.port.driver = UR_DRIVER_AF_PACKET;
	if (has_device)
		ur_eal_release(&dev->eal);
	dev->eal.queue_cnt = 0;
	return true;
}

int ur_share_open(struct ur_device *dev, char *err, size_t cap)
{
	if (!ur_config_shares(&dev->cfg))
		return 0;
	dev->shared = ur_shared_open(dev->cfg.port.dev, err, cap);
	if (!dev->shared)
		return -errno;
	set_table(dev);
	take(dev);
	dev->port_up = ur_shared_is_up(dev->shared);
	return 0;
}

int ur_share_hold(struct ur_device *dev, char *err, size_t cap)
{
	bool copies = dev->cfg.port.driver == UR_DRIVER_AF_PACKET;

	return dev->shared ? ur_shared_hold(dev->shared, copies, err, cap) : 0;
}

void ur_share_close(struct ur_device *dev)
{
	ur_shared_close(dev->shared);
	dev->shared = NULL;
}

struct take_call {
	struct ur_device *dev;
	unsigned worker;
};

/* One worker after the other stops here; then all continue with the new addresses. */
static void take_on_workers(void *arg, uint64_t now_ns)
{
	struct take_call *c = arg;
	struct ur_device *dev = c->dev;

	if (++c->worker < dev->worker_cnt) {
		ur_worker_call(dev->workers[c->worker], take_on_workers, c);
		return;
	}
	take(dev);
	for (unsigned i = 0; i < dev->worker_cnt; i++)
		ur_worker_set_gids(dev->workers[i], dev->taken, dev->taken_cnt);
}

/* SHARED-EVENT-01 */
static void tell(struct ur_device *dev, bool gids_changed)
{
	bool up = ur_shared_is_up(dev->shared);

	if (gids_changed)
		ur_async_raise(dev, IBV_EVENT_GID_CHANGE, NULL);
	if (up != dev->port_up)
		ur_async_raise(dev, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL);
	dev->port_up = up;
}

void ur_share_follow(struct ur_device *dev, uint64_t now_ns)
{
	struct take_call c = {dev, 0};
	bool changed;

	if (!dev->shared || now_ns < dev->share_next_ns)
		return;
	dev->share_next_ns = now_ns + INTERVAL_NS;
	dev->share_changed |= ur_shared_poll(dev->shared, now_ns);
	/* exit() may have interrupted its holder, and then waits for us. */
	if (!dev->share_changed || pthread_mutex_trylock(&dev->lock))
		return;
	dev->share_changed = false;
	changed = set_table(dev);
	if (changed)
		ur_worker_call(dev->workers[0], take_on_workers, &c);
	pthread_mutex_unlock(&dev->lock);
	tell(dev, changed);
}
