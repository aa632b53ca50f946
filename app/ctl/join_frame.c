/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* ppoll() */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include <arpa/inet.h>
#include <bsd/stdlib.h>

#include "join.h"
#include "mgmt/nma.h"
#include "session.h"
#include "wire/icrc.h"
#include "wire/mad_path.h"
#include "wire/opcode.h"

/* A place in a fabric by Ethernet frames: a channel adapter with one port, whose agent has this program as its client. */

#define FRAME_BYTES 2048
#define PORT	    1
#define NS	    UINT64_C(1000000000)

struct frames {
	struct ctl_join join;
	int fd;
	uint8_t mac[6];
	uint32_t psn;
	struct ur_nma *nma;
	bool has; /* `in` has a MAD for the client */
	struct ur_mgr_mad in;
};

static uint64_t frames_now(struct ctl_join *j)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* ---- the agent's node ---- */

static void get_link(void *ctx, uint8_t port, struct ur_nma_link *link)
{
	*link = (struct ur_nma_link){.up = true, .mtu = 5};
}

static void get_counters(void *ctx, uint8_t port, struct ur_nma_counters *counters)
{
	*counters = (struct ur_nma_counters){0};
}

static const struct ur_nma_ops ops_of_node = {.get_link = get_link, .get_counters = get_counters};

static bool start_agent(struct frames *f, const char *description)
{
	struct ur_nma_attr attr = {
		.limits = {.ports = 1,
			   .requests = 256,
			   .passing = 256,
			   .remembered = 64,
			   .notices = 4},
		.type = UR_NODE_CA,
		.vendor_id = UR_VENDOR_OUI,
		.node_guid = ur_mac_guid(f->mac) ^ 1,
		.port_guid = ur_mac_guid(f->mac),
		.ops = &ops_of_node,
		.ctx = f,
	};
	size_t bytes = (ur_nma_size(&attr.limits) + 63) & ~(size_t)63;
	void *memory = aligned_alloc(64, bytes);

	if (!memory)
		return false;
	snprintf(attr.description, sizeof(attr.description), "%s", description);
	arc4random_buf(&attr.seed, sizeof(attr.seed));
	f->nma = ur_nma_init(memory, &attr, frames_now(&f->join));
	ur_nma_set_client(f->nma, true, false);
	ur_nma_link_event(f->nma, PORT, frames_now(&f->join));
	return true;
}

/* ---- frames ---- */

/* What is lost here is sent again by the table of requests. */
static void send_frame(struct frames *f, const struct ur_nma_out *out)
{
	uint8_t frame[FRAME_BYTES];
	struct ur_path path = {0};
	unsigned len;

	switch (out->to.way) {
	case UR_MAD_HOP:
		ur_mad_hop_path(&path, f->mac);
		break;
	case UR_MAD_LID:
		ur_mad_lid_path(&path, out->to.slid, out->to.dlid);
		break;
	default:
		path = out->to.path;
		break;
	}
	len = ur_mad_frame(frame, &path, ur_qpn(out->to.dqpn), ur_qpn(out->to.sqpn),
			   ur_psn(f->psn++), out->mad);
	(void)!send(f->fd, frame, len, MSG_NOSIGNAL);
}

/* Sends what the agent has, until it has something for the client. */
static void pump(struct frames *f)
{
	struct ur_nma_out out;

	while (!f->has && ur_nma_output(f->nma, &out, frames_now(&f->join))) {
		if (out.to.way != UR_MAD_LOCAL) {
			send_frame(f, &out);
			continue;
		}
		f->has = true;
		/* A hop packet has no LID. */
		f->in.lid = out.to.slid == UR_LID_PERMISSIVE ? 0 : out.to.slid;
		memcpy(f->in.bytes, out.mad, UR_MAD_BYTES);
	}
}

static void take_frame(struct frames *f, const uint8_t *frame, size_t len)
{
	struct ur_nma_from from = {.port = PORT};
	struct ur_packet p;

	if (ur_packet_decode(frame, len, &p) != UR_DROP_NONE || !ur_icrc_ok(frame, &p))
		return;
	if (p.bth.opcode != UR_UD_SEND_ONLY || p.payload_len != UR_MAD_BYTES || p.bth.dqpn.v > 1)
		return;
	from.way = ur_mad_way_of(&p, &from.slid, &from.dlid);
	if (from.way != UR_MAD_HOP && from.way != UR_MAD_LID)
		return;
	from.qpn = (uint8_t)p.bth.dqpn.v;
	from.sqpn = p.deth.sqpn.v;
	(void)ur_nma_input(f->nma, p.payload, &from, frames_now(&f->join));
}

/* ---- as the place of a client ---- */

static void frames_send(struct ctl_join *j, const struct ur_mgr_mad *mad)
{
	struct frames *f = (struct frames *)j;
	struct ur_nma_from from = {.way = UR_MAD_LOCAL, .dlid = mad->lid};
	uint8_t mgmt_class = mad->bytes[1];

	from.qpn = mgmt_class == UR_MAD_CLASS_SMP_DR || mgmt_class == UR_MAD_CLASS_SMP_LID ? 0 : 1;
	from.sqpn = from.qpn;
	(void)ur_nma_input(f->nma, mad->bytes, &from, frames_now(j));
	pump(f);
}

/* Waits until there is a frame. False: it is `until_ns`, or a signal came. */
static bool wait_frame(struct frames *f, uint64_t until_ns)
{
	struct pollfd p = {.fd = f->fd, .events = POLLIN};
	uint64_t now = frames_now(&f->join), wait;
	struct timespec t;

	errno = 0;
	wait = until_ns > now ? until_ns - now : 0;
	if (wait > NS)
		wait = NS;
	t = (struct timespec){(time_t)(wait / NS), (long)(wait % NS)};
	return ppoll(&p, 1, &t, NULL) == 1;
}

static bool frames_receive(struct ctl_join *j, uint64_t until_ns, struct ur_mgr_mad *mad)
{
	struct frames *f = (struct frames *)j;
	uint8_t frame[FRAME_BYTES];

	for (;;) {
		uint64_t now = frames_now(j), own = ur_nma_next_deadline(f->nma);
		ssize_t len;

		if (own <= now)
			ur_nma_expire(f->nma, now);
		pump(f);
		if (f->has) {
			f->has = false;
			*mad = f->in;
			return true;
		}
		if (now >= until_ns)
			return false;
		if (!wait_frame(f, own < until_ns ? own : until_ns)) {
			if (errno == EINTR)
				return false;
			continue;
		}
		len = recv(f->fd, frame, sizeof(frame), MSG_DONTWAIT);
		if (!len || (len < 0 && errno != EAGAIN && errno != EINTR && errno != ENETDOWN)) {
			ctl_complain("the other end has closed the connection");
			exit(EXIT_FAILURE);
		}
		if (len > 0)
			take_frame(f, frame, (size_t)len);
	}
}

static void frames_close(struct ctl_join *j)
{
	struct frames *f = (struct frames *)j;

	close(f->fd);
	free(f->nma);
	free(f);
}

static struct ctl_join *start(int fd, const uint8_t mac[6], const char *description, char *err,
			      size_t err_bytes)
{
	static const struct ctl_join_ops ops = {frames_send, frames_receive, frames_now,
						frames_close};
	struct frames *f = calloc(1, sizeof(*f));

	if (f) {
		f->join.ops = &ops;
		f->fd = fd;
		memcpy(f->mac, mac, 6);
		if (start_agent(f, description))
			return &f->join;
	}
	snprintf(err, err_bytes, "there is no memory for an agent");
	free(f);
	close(fd);
	return NULL;
}

static void random_mac(uint8_t mac[6])
{
	arc4random_buf(mac, 6);
	mac[0] = (uint8_t)((mac[0] | 0x02) & ~0x01); /* locally administered, of one station */
}

/* ---- a port of uroce-switch ---- */

struct ctl_join *ctl_join_socket(const char *path, const char *description, char *err,
				 size_t err_bytes)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	uint8_t mac[6];
	int fd;

	if (strlen(path) >= sizeof(at.sun_path)) {
		snprintf(err, err_bytes, "--socket: the path is longer than %zu characters",
			 sizeof(at.sun_path) - 1);
		return NULL;
	}
	strcpy(at.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		snprintf(
			err, err_bytes,
			"--socket %s: %s; it is the path of a port of kind 'socket' of a running uroce-switch",
			path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	random_mac(mac);
	return start(fd, mac, description, err, err_bytes);
}

/* ---- an interface ---- */

static bool bind_to(int fd, unsigned ifindex)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_IPV6),
				 .sll_ifindex = (int)ifindex};
	struct packet_mreq group = {
		.mr_ifindex = (int)ifindex, .mr_type = PACKET_MR_MULTICAST, .mr_alen = ETH_ALEN};
	struct packet_mreq all = {.mr_ifindex = (int)ifindex, .mr_type = PACKET_MR_PROMISC};
	int one = 1;

	memcpy(group.mr_address, ur_mad_hop_mac, ETH_ALEN);
	return !setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) &&
	       !bind(fd, (struct sockaddr *)&at, sizeof(at)) &&
	       !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof(group)) &&
	       !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
}

struct ctl_join *ctl_join_dev(const char *dev, const char *description, char *err, size_t err_bytes)
{
	unsigned ifindex = if_nametoindex(dev);
	uint8_t mac[6];
	int fd;

	if (!ifindex) {
		snprintf(err, err_bytes, "--dev: there is no interface '%s'; 'ip link' lists them",
			 dev);
		return NULL;
	}
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || !bind_to(fd, ifindex)) {
		snprintf(err, err_bytes, "--dev %s: %s%s", dev, strerror(errno),
			 errno == EPERM ? "; it needs CAP_NET_RAW: run it as root" : "");
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	random_mac(mac);
	return start(fd, mac, description, err, err_bytes);
}
