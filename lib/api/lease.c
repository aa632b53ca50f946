/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/lease.h"

#include "api/device.h"
#include "dpdk/lease.h"

#define INTERVAL_NS  10000000
#define LINK_WAIT_MS 2000
#define DOWN_LOOKS   10		/* after which the driver has forgotten the connection */
#define RESTART_NS   1000000000 /* between attempts to connect */

struct ur_qpn_prefix ur_lease_prefix_of(const struct ur_device *dev)
{
	return dev->lease ? ur_lease_prefix(dev->lease) : (struct ur_qpn_prefix){0};
}

void ur_lease_wait_link(struct ur_device *dev)
{
	if (!dev->lease)
		return;
	dev->port_up = ur_port_wait_link(&dev->port, LINK_WAIT_MS);
	dev->leased = true;
}

int ur_lease_wake_fd_of(const struct ur_device *dev)
{
	return dev->lease ? ur_lease_wake_fd(dev->lease) : -1;
}

struct restart {
	struct ur_device *dev;
	unsigned worker;
};

/* One worker after the other stops here. When the last one has, the port is not in use. */
static void restart_port(void *arg, uint64_t now_ns)
{
	struct restart *r = arg;
	struct ur_device *dev = r->dev;

	if (++r->worker < dev->worker_cnt)
		ur_worker_call(dev->workers[r->worker], restart_port, r);
	else
		ur_port_restart(&dev->port);
}

static void follow_link(struct ur_device *dev)
{
	bool up = ur_port_link_up(&dev->port);

	dev->down_looks = up ? 0 : dev->down_looks + 1;
	if (up == dev->port_up)
		return;
	dev->port_up = up;
	ur_async_raise(dev, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL);
}

void ur_lease_follow(struct ur_device *dev, uint64_t now_ns)
{
	struct restart r = {dev, 0};

	if (!dev->lease || now_ns < dev->share_next_ns)
		return;
	dev->share_next_ns = now_ns + INTERVAL_NS;
	switch (ur_lease_poll(dev->lease, now_ns)) {
	case UR_LEASE_LOST:
		dev->leased = false;
		break;
	case UR_LEASE_BACK:
		dev->leased = true;
		dev->restart_ns = now_ns;
		break;
	case UR_LEASE_SAME:
		break;
	}
	follow_link(dev);
	if (!dev->leased || dev->down_looks < DOWN_LOOKS || now_ns < dev->restart_ns)
		return;
	/* exit() may have interrupted its holder, and then waits for us. */
	if (pthread_mutex_trylock(&dev->lock))
		return;
	dev->restart_ns = now_ns + RESTART_NS;
	ur_worker_call(dev->workers[0], restart_port, &r);
	pthread_mutex_unlock(&dev->lock);
}
