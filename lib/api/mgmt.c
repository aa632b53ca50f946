/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/mgmt.h"

#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "api/device.h"
#include "dpdk/rtnl.h"
#include "edge/pacing_attr.h"
#include "engine/mgmt.h"

#define ASK_NS	 UINT64_C(50000000)
#define MESSAGES 16 /* of the kernel, at once */

/* ---- the link ---- */

struct link_call {
	struct ur_device *dev;
	bool up;
};

/* Tells the agent, and begins a new session of link credits at each change, as a switch does. */
static void tell_worker(void *arg, uint64_t now_ns)
{
	const struct link_call *c = arg;
	const struct ur_config *cfg = &c->dev->cfg;
	struct ur_worker *w = c->dev->workers[0];

	ur_worker_restart_credit(w);
	ur_engine_mgmt_link(ur_worker_engine(w), c->up, ur_cc_link_of(cfg, cfg->port.rate_gbps, 1),
			    now_ns);
}

/* MGMT-LINK-01, CREDIT-SESSION-01 */
static void link_is(struct ur_device *dev, bool up)
{
	struct link_call c = {dev, up};

	if (up == dev->mgmt_link.up)
		return;
	dev->mgmt_link.up = up;
	ur_worker_call(dev->workers[0], tell_worker, &c);
}

/* The kernel reports the state some time after a change: it counts a flap that it does not report. */
static void take_link(struct ur_device *dev, const struct ur_rtnl_link *link, bool up)
{
	int32_t more = (int32_t)(link->downs - dev->mgmt_link.downs);

	if (more < 0)
		return; /* older than what the kernel has been asked */
	if (more)
		link_is(dev, false);
	dev->mgmt_link.downs = link->downs;
	link_is(dev, up);
}

static void on_report(void *arg, const struct ur_rtnl_msg *msg)
{
	struct ur_device *dev = arg;

	if (msg->kind == UR_RTNL_LINK && msg->link.ifindex == dev->mgmt_link.ifindex)
		take_link(dev, &msg->link, msg->link.up && !msg->gone);
}

/* The state now: at the start, and when reports were lost. */
static void ask_kernel(struct ur_device *dev)
{
	struct ur_rtnl_link link;

	if (ur_rtnl_get_link(dev->mgmt_link.ifindex, &link) == 0)
		take_link(dev, &link, link.up);
}

/* What went down before the endpoint was opened does not count. */
static void begin(struct ur_device *dev)
{
	struct ur_rtnl_link link = {0};

	if (ur_rtnl_get_link(dev->mgmt_link.ifindex, &link) != 0)
		return;
	dev->mgmt_link.downs = link.downs;
	take_link(dev, &link, link.up);
}

static bool is_kernel_driver(const struct ur_port *port)
{
	return strcmp(port->driver, "net_af_packet") == 0 ||
	       strcmp(port->driver, "net_af_xdp") == 0;
}

/* Whether anything here asks for the link's state. */
static bool is_wanted(const struct ur_device *dev)
{
	return dev->mgmt.port || dev->cfg.port.credits;
}

void ur_mgmt_link_open(struct ur_device *dev)
{
	dev->mgmt_link = (struct ur_mgmt_link){.up = true};
	if (!is_wanted(dev) || !is_kernel_driver(&dev->port))
		return;
	dev->mgmt_link.ifindex = if_nametoindex(dev->port.ifname);
	if (!dev->mgmt_link.ifindex)
		return;
	dev->mgmt_link.fd = ur_rtnl_monitor_links_open();
	dev->mgmt_link.reported = dev->mgmt_link.fd >= 0;
	begin(dev);
}

void ur_mgmt_link_close(struct ur_device *dev)
{
	if (dev->mgmt_link.reported)
		close(dev->mgmt_link.fd);
}

static void follow_link(struct ur_device *dev, uint64_t now_ns)
{
	struct ur_mgmt_link *l = &dev->mgmt_link;

	if (l->reported) {
		if (ur_rtnl_monitor_read(l->fd, MESSAGES, on_report, dev) < 0)
			ask_kernel(dev);
		return;
	}
	if (now_ns < l->next_ns)
		return;
	l->next_ns = now_ns + ASK_NS;
	if (l->ifindex)
		ask_kernel(dev);
	else
		link_is(dev, ur_port_link_up(&dev->port));
}

/* ---- what the agent leaves ---- */

static void follow_vl(struct ur_device *dev)
{
	struct ur_vl_attr vl;
	uint64_t number = ur_mgmt_begin_vl(&dev->mgmt, &vl);

	if (number && ur_qos_try_vl(dev, &vl))
		ur_mgmt_end_vl(&dev->mgmt, number);
}

void ur_mgmt_follow(struct ur_device *dev, uint64_t now_ns)
{
	if (is_wanted(dev))
		follow_link(dev, now_ns);
	if (!dev->mgmt.port)
		return;
	follow_vl(dev);
	ur_mgmt_serve_port(&dev->mgmt, now_ns);
}
