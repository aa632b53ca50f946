/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <bsd/stdlib.h>

#include "edge/mtu.h"
#include "kernel.h"
#include "node.h"
#include "options.h"
#include "run.h"
#include "server.h"

/* Room for the bursts of processes that wait for a CPU, and less memory for each of many ports. */
static const char *const defaults[] = {
	"forwarding.frames?=1024", "forwarding.lane_kb?=4096", "management.description?=uroced",
	NULL, /* "?=": unless the file has it */
};

static struct server_attr server_attr;
static struct steer steer;
static struct kernel *kernel;

static bool add_shared(struct switch_spec *spec, const char *ifname, char *err, size_t cap)
{
	char text[UR_CONFIG_TEXT];

	snprintf(text, sizeof(text), "dev=%s", ifname);
	if (!switch_spec_parse(text, spec, err, cap))
		return false;
	spec->shares = true;
	return true;
}

static bool add_uplink(struct switch_spec *spec, const char *text, char *err, size_t cap)
{
	if (!switch_spec_parse(text, spec, err, cap))
		return false;
	if (spec->kind != SWITCH_RING)
		return true;
	snprintf(
		err, cap,
		"--uplink %s: a ring joins switches of one uroce-switch; memif=PATH joins processes",
		text);
	return false;
}

/* The uplinks first, then the clients. */
static bool make_ports(struct node *n, const struct options *o, char *err, size_t cap)
{
	struct switch_options *s = &n->options;
	struct switch_spec *clients;

	s->common = o->common;
	for (; s->spec_cnt < o->uplink_cnt; s->spec_cnt++)
		if (!add_uplink(&s->spec[s->spec_cnt], o->uplink[s->spec_cnt], err, cap))
			return false;
	if (o->share && !add_shared(&s->spec[s->spec_cnt++], o->share, err, cap))
		return false;
	clients = &s->spec[s->spec_cnt++];
	if (!switch_spec_parse("socket=clients", clients, err, cap))
		return false;
	clients->kind = SWITCH_GROUP;
	clients->clients = o->lease.clients + (o->lease.host != 0); /* self.h */
	clients->mtu = o->mtu;
	clients->rate_gbps = o->rate_gbps;
	return true;
}

static struct device_group *open_clients(const struct switch_spec *spec, uint32_t max_frame,
					 struct rte_mempool *pool, struct device **devs, char *err,
					 size_t cap)
{
	return server_open(&server_attr, max_frame, pool, devs, err, cap);
}

/* The directory of the default socket is the daemon's own; any other has to be there. */
static void make_directory(const char *path)
{
	if (strcmp(path, UR_LEASE_SOCKET) == 0)
		(void)mkdir("/run/uroced", 0755);
}

/* A packet of a client has to fit into every uplink. */
static void tell_mtu(struct node *n, const struct options *o)
{
	uint32_t mtu = o->mtu;

	for (unsigned i = 1; i <= n->port_cnt; i++)
		if (n->port[i].dev->max_frame < mtu + UR_FRAME_OVERHEAD_BYTES)
			mtu = n->port[i].dev->max_frame - UR_FRAME_OVERHEAD_BYTES;
	server_set_mtu(n->group[n->group_cnt - 1], mtu);
}

/* One address for all clients: of the options, or of the kernel. */
static bool share_address(const struct options *o, char *err, size_t cap)
{
	unsigned uplinks = o->uplink_cnt + (o->share != NULL);
	uint8_t mac[6];

	if (!o->lease.host)
		return true;
	ur_lease_mac(o->lease.host, mac);
	if (o->share) {
		kernel = kernel_open(o->share, err, cap);
		if (!kernel)
			return false;
		server_attr.lease.host = kernel_address(kernel);
		kernel_mac(kernel, mac);
	}
	steer_init(&steer, mac, server_attr.lease.host, arc4random());
	steer.uplinks = (UINT64_C(2) << uplinks) - 2;
	steer.self = (uint8_t)(uplinks + o->lease.clients + 1);
	steer.kernel = kernel;
	server_attr.steer = &steer;
	server_attr.kernel = kernel;
	server_attr.first_port = (uint8_t)(uplinks + 1);
	return true;
}

static void start_steering(struct node *n)
{
	struct ur_switch_steer s = {.ports = steer_ports, .arg = &steer};

	if (!server_attr.steer)
		return;
	memcpy(s.mac, steer.mac, 6);
	ur_switch_set_steer(n->sw, &s);
}

static bool start(struct node *n, const struct options *o, char *err, size_t cap)
{
	static char leases[UR_CONFIG_TEXT];

	snprintf(leases, sizeof(leases), "%s.leases", o->socket);
	server_attr = (struct server_attr){
		.path = o->socket,
		.file = o->leases ? o->leases : leases,
		.mode = o->mode,
		.group = o->group,
		.lease = o->lease,
		.rate_gbps = o->rate_gbps,
		.manage = o->manage,
		.direct = o->direct,
		.first_port = (uint8_t)(o->uplink_cnt + 1),
		.clock = &n->clock,
	};
	n->open_group = open_clients;
	if (!share_address(o, err, cap) ||
	    !node_read_config(&o->common, defaults, &n->cfg, err, cap) ||
	    !make_ports(n, o, err, cap))
		return false;
	make_directory(o->socket);
	if (!node_open(n, err, cap) || (kernel && !kernel_hold(kernel, err, cap)))
		return false;
	start_steering(n);
	tell_mtu(n, o);
	for (unsigned i = 1; i < n->options.spec_cnt; i++)
		printf("port %u: %s\n", i, n->port[i].dev->name);
	printf("leasing at %s\n", o->socket);
	fflush(stdout);
	return true;
}

static int run(struct node *n, const struct options *o)
{
	char err[1024];
	bool ok = start(n, o, err, sizeof(err));
	bool written;

	if (ok)
		node_run(n, 1, &node_stop);
	written = node_finish(n, "uroced", ok);
	if (!ok) {
		fflush(stdout);
		fprintf(stderr, "uroced: %s\n", err);
	}
	if (kernel)
		kernel_close(kernel);
	return ok && written ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct node node;
	static struct options o;
	char err[1024];

	switch (options_parse(&o, argc, argv, err, sizeof(err))) {
	case PARSE_HELP:
		options_help(stdout);
		return 0;
	case PARSE_HELP_CONFIG:
		ur_config_help(stdout);
		return 0;
	case PARSE_USAGE:
		fprintf(stderr, "uroced: %s\n", err);
		return 2;
	case PARSE_OK:
		break;
	}
	node_catch_signals();
	return run(&node, &o);
}
