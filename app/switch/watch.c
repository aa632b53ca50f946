/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <unistd.h>

#include "doze.h"
#include "dpdk/rtnl.h"
#include "node.h"

#define MESSAGES    64	     /* of the kernel, at once */
#define COUNTERS_NS 50000000 /* in which the counters of all ports are read; with 63 ports 63 ms */

static void set_link(struct node *n, unsigned i, bool up, uint64_t now_ns)
{
	struct node_port *p = &n->port[i];

	if (up == p->link)
		return;
	p->link = up;
	node_set_present(n, i, up);
	ur_switch_set_link(n->sw, (uint8_t)i, up, now_ns);
	if (!up)
		node_drop_pending(p);
	ur_switch_agent_expire(n->agent, now_ns);
	printf("%sport %u (%s): link %s\n", node_prefix(n), i, p->dev->name, up ? "up" : "down");
	fflush(stdout);
}

static bool is_reported(const struct node *n, unsigned i)
{
	return n->reported && n->port[i].dev->ifindex;
}

static void watch_links(struct node *n, uint64_t now_ns)
{
	for (unsigned i = 1; i <= n->port_cnt; i++) {
		if (!is_reported(n, i))
			set_link(n, i, n->port[i].dev->ops->link(n->port[i].dev), now_ns);
	}
	node_reap(n);
}

static void serve_groups(struct node *n, bool quick, uint64_t now_ns)
{
	bool changed = false;

	for (unsigned i = 0; i < n->group_cnt; i++) {
		if (n->group[i]->ops->quick != quick)
			continue;
		changed |= n->group[i]->ops->serve(n->group[i], now_ns);
		n->soon = n->soon || n->group[i]->busy;
	}
	if (changed)
		watch_links(n, now_ns);
}

/* Of one port at a time: a driver may take long, and frames wait. */
static void read_counters(struct node *n)
{
	struct node_port *p;

	n->counted = n->counted % n->port_cnt + 1;
	p = &n->port[n->counted];
	if (!p->dev->ops->counters)
		return;
	p->dev->ops->counters(p->dev, &p->device);
	ur_switch_agent_set_device(n->agent, (uint8_t)n->counted, &p->device);
}

/* The agent compares the counters of each port every 100 ms (MGMT-WATCH-01): each is read more often than that. */
void node_watch_quick(struct node *n, uint64_t now_ns)
{
	if (now_ns >= n->times.counters_ns) {
		n->times.counters_ns = now_ns + COUNTERS_NS / n->port_cnt;
		read_counters(n);
	}
	n->soon = false;
	serve_groups(n, true, now_ns);
}

void node_watch(struct node *n, uint64_t now_ns)
{
	/* Before a new client takes the place of one that has left. */
	watch_links(n, now_ns);
	serve_groups(n, false, now_ns);
}

/* ---- what the kernel reports ---- */

struct report {
	struct node *n;
	uint64_t now_ns;
};

/* The kernel reports the state some time after a change: it counts a flap that it does not report. */
static void take_link(struct node *n, unsigned i, const struct ur_rtnl_link *link, bool up,
		      uint64_t now_ns)
{
	int32_t more = (int32_t)(link->downs - n->port[i].downs);

	if (more < 0)
		return; /* older than what the kernel has been asked */
	if (more)
		set_link(n, i, false, now_ns);
	n->port[i].downs = link->downs;
	set_link(n, i, up, now_ns);
}

static void on_report(void *arg, const struct ur_rtnl_msg *msg)
{
	struct report *r = arg;

	if (msg->kind != UR_RTNL_LINK)
		return;
	for (unsigned i = 1; i <= r->n->port_cnt; i++)
		if (r->n->port[i].dev->ifindex == msg->link.ifindex)
			take_link(r->n, i, &msg->link, msg->link.up && !msg->gone, r->now_ns);
}

/* The states now: at the start, and when reports were lost. */
static void ask_kernel(struct node *n, uint64_t now_ns)
{
	struct ur_rtnl_link link;

	for (unsigned i = 1; i <= n->port_cnt; i++)
		if (is_reported(n, i) && ur_rtnl_get_link(n->port[i].dev->ifindex, &link) == 0)
			take_link(n, i, &link, link.up, now_ns);
}

void node_report_links(struct node *n)
{
	bool any = false;

	for (unsigned i = 1; i <= n->port_cnt; i++)
		any |= n->port[i].dev->ifindex != 0;
	n->reports = any ? ur_rtnl_monitor_links_open() : -1;
	n->reported = n->reports >= 0;
	if (n->reported)
		(void)doze_watch(n->reports); /* else it is looked at after each doze */
	ask_kernel(n, ur_clock_ns(&n->clock));
}

void node_watch_kernel(struct node *n, uint64_t now_ns)
{
	struct report r = {n, now_ns};
	int got;

	if (!n->reported)
		return;
	got = ur_rtnl_monitor_read(n->reports, MESSAGES, on_report, &r);
	if (got < 0)
		ask_kernel(n, now_ns);
	if (got)
		node_reap(n);
}
