/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/lease.h"

#include <errno.h>
#include <stdio.h>

#include "api/device.h"
#include "dpdk/lease.h"

#define INTERVAL_NS  2000000
#define LINK_WAIT_MS 2000
#define LOST_WAIT_NS 100000000 /* a daemon that ends closes its sockets one after the other */
#define BACK_WAIT_S  5
#define DOWN_LOOKS   50		/* after which the driver has forgotten the connection */
#define RESTART_NS   1000000000 /* between attempts to connect */
#define DRAIN_ROUNDS (UR_DIRECT_SLOTS / UR_BURST)

struct ur_qpn_prefix ur_lease_prefix_of(const struct ur_device *dev)
{
	return dev->lease ? ur_lease_prefix(dev->lease) : (struct ur_qpn_prefix){0};
}

/* Polls until `event`, or until `until_ns`. There is no progress thread yet. */
static bool wait_for(struct ur_device *dev, enum ur_lease_event event, uint64_t until_ns)
{
	uint64_t now_ns;

	while ((now_ns = ur_clock_ns(&dev->clock)) < until_ns) {
		if (ur_lease_poll(dev->lease, now_ns) == event)
			return true;
		rte_delay_us_sleep(1000);
	}
	return false;
}

bool ur_lease_regain(struct ur_device *dev, int *rc, char *err, size_t cap)
{
	uint64_t now_ns;

	if (!dev->lease || !dev->eal.queue_cnt || dev->port.open)
		return false;
	ur_device_start_clock(dev);
	now_ns = ur_clock_ns(&dev->clock);
	if (!wait_for(dev, UR_LEASE_LOST, now_ns + LOST_WAIT_NS))
		return false;
	if (!dev->regain_until_ns)
		dev->regain_until_ns = now_ns + (uint64_t)BACK_WAIT_S * NS_PER_S;
	if (!wait_for(dev, UR_LEASE_BACK, dev->regain_until_ns)) {
		snprintf(err, cap,
			 "uroced ended while its port was being opened, and was not back for good "
			 "within %u s: start it again",
			 BACK_WAIT_S);
		*rc = -ETIMEDOUT;
		return false;
	}
	ur_eal_release(&dev->eal);
	dev->eal.queue_cnt = 0;
	return true;
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

static void begin_sleep(void *arg, uint64_t now_ns)
{
	ur_direct_set_sleep(arg, true);
}

static void end_sleep(void *arg, uint64_t now_ns)
{
	ur_direct_set_sleep(arg, false);
}

/* The progress thread may be adding or removing a ring. */
void ur_lease_set_sleep(struct ur_device *dev, bool sleeps)
{
	if (dev->lease)
		ur_worker_call(dev->workers[0], sleeps ? begin_sleep : end_sleep, &dev->direct);
}

static struct ur_direct_host direct_host(const struct ur_device *dev)
{
	struct ur_direct_host host = {.number = ur_lease_prefix(dev->lease).value};

	memcpy(host.mac, dev->cfg.address.mac, sizeof(host.mac));
	memcpy(host.ip4, dev->cfg.address.ipv4.addr.b + 12, sizeof(host.ip4));
	return host;
}

static void use_direct(void *arg, uint64_t now_ns)
{
	struct ur_device *dev = arg;

	dev->direct.host = direct_host(dev);
	ur_worker_set_direct(dev->workers[0], &dev->direct);
}

void ur_lease_begin_direct(struct ur_device *dev)
{
	if (dev->lease && ur_lease_takes_direct(dev->lease))
		ur_worker_call(dev->workers[0], use_direct, dev);
}

void ur_lease_free_direct(struct ur_device *dev)
{
	struct ur_direct_peer *p;

	while ((p = ur_direct_remove(&dev->direct, 0)))
		ur_direct_peer_free(p, false);
}

/* ---- direct rings ---- */

/* Commands of the worker; `old` is left over. */
struct change {
	struct ur_device *dev;
	struct ur_direct_peer *add, *old;
	uint32_t remove; /* the ring to this client, 0: any */
};

static void add_ring(void *arg, uint64_t now_ns)
{
	struct change *c = arg;

	c->old = ur_direct_add(&c->dev->direct, c->add);
}

static void remove_ring(void *arg, uint64_t now_ns)
{
	struct change *c = arg;

	c->old = ur_direct_remove(&c->dev->direct, c->remove);
}

static void begin_ring(struct ur_device *dev, struct ur_direct_peer *p)
{
	struct change c = {.dev = dev, .add = p};

	ur_worker_call(dev->workers[0], add_ring, &c);
	ur_direct_peer_free(c.old, false);
}

/* The other end has left. What it sent before, its last ACK for instance, is taken first. */
static void end_ring(struct ur_device *dev, uint32_t client)
{
	struct change c = {.dev = dev, .remove = client};

	for (unsigned i = 0; i < DRAIN_ROUNDS; i++)
		ur_worker_serve(dev->workers[0], true, NULL);
	ur_worker_call(dev->workers[0], remove_ring, &c);
	ur_direct_peer_free(c.old, true);
}

static void follow_direct(struct ur_device *dev, uint64_t now_ns)
{
	uint32_t request = ur_direct_request(&dev->direct, now_ns);
	struct ur_lease_direct d;
	int fd;

	if (request)
		ur_lease_request_ring(dev->lease, request);
	while (ur_lease_next_direct(dev->lease, &d, &fd)) {
		struct ur_direct_peer *p =
			d.frame_max ? ur_direct_peer_new(&dev->direct.host, &d, fd) : NULL;

		if (p)
			begin_ring(dev, p);
		else if (!d.frame_max)
			end_ring(dev, d.client);
	}
}

/* The lease is lost. The other ends may take what was sent before. */
static void drop_direct(struct ur_device *dev)
{
	while (dev->direct.cnt) {
		struct change c = {.dev = dev};

		ur_worker_call(dev->workers[0], remove_ring, &c);
		ur_direct_peer_free(c.old, false);
	}
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
		drop_direct(dev);
		break;
	case UR_LEASE_BACK:
		dev->leased = true;
		dev->restart_ns = now_ns;
		break;
	case UR_LEASE_SAME:
		break;
	}
	follow_direct(dev, now_ns);
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
