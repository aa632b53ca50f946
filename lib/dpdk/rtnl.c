/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/rtnl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#define DRAIN_MAX	 65536 /* datagrams */
#define REQUEST_BYTES	 256
#define REPLY_BYTES	 16384
#define ANSWER_TIMEOUT_S 1
#define DUMP_TRIES	 8 /* a dump that a change interrupts begins anew */

/* A request, its answer's receiver, and what the receiver has found. */
struct query {
	_Alignas(8) char buf[REQUEST_BYTES];
	struct nlmsghdr *nlh;
	ur_rtnl_fn fn;
	void *arg;
};

static void begin(struct query *q, uint16_t type, uint16_t flags)
{
	memset(q->buf, 0, sizeof(q->buf));
	q->nlh = mnl_nlmsg_put_header(q->buf);
	q->nlh->nlmsg_type = type;
	q->nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	q->nlh->nlmsg_seq = 1;
}

static void put_gid(struct query *q, uint16_t type, const struct ur_gid *gid)
{
	if (ur_gid_is_ipv4(gid))
		mnl_attr_put(q->nlh, type, 4, gid->b + 12);
	else
		mnl_attr_put(q->nlh, type, 16, gid->b);
}

static uint8_t family_of(const struct ur_gid *gid)
{
	return ur_gid_is_ipv4(gid) ? AF_INET : AF_INET6;
}

static uint8_t bits_of(const struct ur_gid *gid)
{
	return ur_gid_is_ipv4(gid) ? 32 : 128;
}

static int on_message(const struct nlmsghdr *nlh, void *arg)
{
	const struct query *q = arg;
	struct ur_rtnl_msg msg;

	if (q->fn && ur_rtnl_parse(nlh, &msg) != UR_RTNL_OTHER)
		q->fn(q->arg, &msg);
	/* A single answer has no NLMSG_DONE. */
	return nlh->nlmsg_flags & NLM_F_MULTI ? MNL_CB_OK : MNL_CB_STOP;
}

static int exchange(struct mnl_socket *sock, struct query *q)
{
	_Alignas(8) char buf[REPLY_BYTES];
	unsigned id = mnl_socket_get_portid(sock);
	ssize_t n;
	int rc;

	if (mnl_socket_sendto(sock, q->nlh, q->nlh->nlmsg_len) < 0)
		return -errno;
	do {
		n = mnl_socket_recvfrom(sock, buf, sizeof(buf));
		if (n < 0 && errno == EINTR) {
			rc = MNL_CB_OK;
			continue;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		rc = mnl_cb_run(buf, (size_t)n, 1, id, on_message, q);
		if (rc < 0)
			return -errno;
	} while (rc > MNL_CB_STOP);
	return 0;
}

/* Opens a socket, sends the request, passes the answers to its receiver, and closes the socket. */
static int ask(struct query *q)
{
	const struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
	struct mnl_socket *sock = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int rc;

	if (!sock)
		return -errno;
	setsockopt(mnl_socket_get_fd(sock), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	rc = mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : exchange(sock, q);
	mnl_socket_close(sock);
	return rc;
}

/* ---- requests ---- */

struct link_query {
	unsigned ifindex;
	bool found;
	struct ur_rtnl_link *out;
};

static void take_link(void *arg, const struct ur_rtnl_msg *msg)
{
	struct link_query *l = arg;

	if (msg->kind != UR_RTNL_LINK || msg->link.ifindex != l->ifindex)
		return;
	*l->out = msg->link;
	l->found = true;
}

int ur_rtnl_get_link(unsigned ifindex, struct ur_rtnl_link *out)
{
	struct link_query l = {.ifindex = ifindex, .out = out};
	struct query q = {.fn = take_link, .arg = &l};
	struct ifinfomsg *m;
	int rc;

	begin(&q, RTM_GETLINK, 0);
	m = mnl_nlmsg_put_extra_header(q.nlh, sizeof(*m));
	m->ifi_index = (int)ifindex;
	rc = ask(&q);
	return rc ? rc : l.found ? 0 : -ENODEV;
}

struct addr_query {
	unsigned ifindex, cap, cnt;
	struct ur_rtnl_addr *out;
};

static void take_addr(void *arg, const struct ur_rtnl_msg *msg)
{
	struct addr_query *a = arg;

	if (msg->kind != UR_RTNL_ADDR || msg->addr.ifindex != a->ifindex)
		return;
	if (a->cnt < a->cap)
		a->out[a->cnt] = msg->addr;
	a->cnt++;
}

int ur_rtnl_get_addrs(unsigned ifindex, struct ur_rtnl_addr *out, unsigned cap)
{
	struct addr_query a = {.ifindex = ifindex, .cap = cap, .out = out};
	struct query q = {.fn = take_addr, .arg = &a};
	int rc = -EINTR;

	for (unsigned i = 0; rc == -EINTR && i < DUMP_TRIES; i++) {
		a.cnt = 0;
		begin(&q, RTM_GETADDR, NLM_F_DUMP);
		mnl_nlmsg_put_extra_header(q.nlh, sizeof(struct ifaddrmsg));
		rc = ask(&q);
	}
	return rc ? rc : (int)a.cnt;
}

struct route_query {
	bool found;
	struct ur_rtnl_route *out;
};

static void take_route(void *arg, const struct ur_rtnl_msg *msg)
{
	struct route_query *r = arg;

	if (msg->kind != UR_RTNL_ROUTE)
		return;
	*r->out = msg->route;
	r->found = true;
}

int ur_rtnl_get_route(unsigned ifindex, const struct ur_gid *src, const struct ur_gid *dst,
		      struct ur_rtnl_route *out)
{
	struct route_query r = {.out = out};
	struct query q = {.fn = take_route, .arg = &r};
	struct rtmsg *m;
	int rc;

	begin(&q, RTM_GETROUTE, 0);
	m = mnl_nlmsg_put_extra_header(q.nlh, sizeof(*m));
	m->rtm_family = family_of(dst);
	m->rtm_dst_len = bits_of(dst);
	put_gid(&q, RTA_DST, dst);
	if (src) {
		m->rtm_src_len = bits_of(src);
		put_gid(&q, RTA_SRC, src);
	}
	mnl_attr_put_u32(q.nlh, RTA_OIF, ifindex);
	rc = ask(&q);
	if (rc)
		return rc;
	return r.found && out->type != UR_RTNL_UNREACHABLE ? 0 : -ENETUNREACH;
}

struct neigh_query {
	unsigned ifindex;
	const struct ur_gid *gid;
	bool found;
	struct ur_rtnl_neigh *out;
};

static void take_neigh(void *arg, const struct ur_rtnl_msg *msg)
{
	struct neigh_query *n = arg;

	if (msg->kind != UR_RTNL_NEIGH || msg->neigh.ifindex != n->ifindex ||
	    !ur_gid_eq(&msg->neigh.gid, n->gid))
		return;
	*n->out = msg->neigh;
	n->found = true;
}

static void begin_neigh(struct query *q, uint16_t type, uint16_t flags, unsigned ifindex,
			const struct ur_gid *gid, uint8_t ndm_flags)
{
	struct ndmsg *m;

	begin(q, type, flags);
	m = mnl_nlmsg_put_extra_header(q->nlh, sizeof(*m));
	m->ndm_family = family_of(gid);
	m->ndm_ifindex = (int)ifindex;
	m->ndm_flags = ndm_flags;
	put_gid(q, NDA_DST, gid);
}

int ur_rtnl_get_neigh(unsigned ifindex, const struct ur_gid *gid, struct ur_rtnl_neigh *out)
{
	struct neigh_query n = {.ifindex = ifindex, .gid = gid, .out = out};
	struct query q = {.fn = take_neigh, .arg = &n};
	int rc;

	begin_neigh(&q, RTM_GETNEIGH, 0, ifindex, gid, 0);
	rc = ask(&q);
	return rc ? rc : n.found ? 0 : -ENOENT;
}

int ur_rtnl_use_neigh(unsigned ifindex, const struct ur_gid *gid)
{
	struct query q = {0};

	begin_neigh(&q, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, ifindex, gid, NTF_USE);
	return ask(&q);
}

/* ---- changes ---- */

static int open_monitor(const int *groups, unsigned cnt)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), why;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		goto failed;
	for (unsigned i = 0; i < cnt; i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) < 0)
			goto failed;
	return fd;
failed:
	why = errno;
	close(fd);
	return -why;
}

int ur_rtnl_monitor_open(void)
{
	static const int groups[] = {RTNLGRP_LINK,	  RTNLGRP_NEIGH,      RTNLGRP_IPV4_IFADDR,
				     RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE};

	return open_monitor(groups, MNL_ARRAY_SIZE(groups));
}

int ur_rtnl_monitor_links_open(void)
{
	static const int links = RTNLGRP_LINK;

	return open_monitor(&links, 1);
}

/*
 * While its queue is not empty, the kernel loses more messages without another error. What is in it is older than what the
 * caller reads next. Ends although the queue fills again and again.
 */
static int empty_queue(int fd)
{
	char byte;

	for (unsigned i = 0; i < DRAIN_MAX; i++)
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0 &&
		    (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
	return -ENOBUFS;
}

int ur_rtnl_monitor_read(int fd, unsigned max, ur_rtnl_fn fn, void *arg)
{
	_Alignas(8) char buf[REPLY_BYTES];
	unsigned n = 0;

	while (n < max) {
		struct sockaddr_nl from = {0};
		struct iovec iov = {buf, sizeof(buf)};
		struct msghdr msg = {.msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_iov = &iov,
				     .msg_iovlen = 1};
		ssize_t len = recvmsg(fd, &msg, MSG_DONTWAIT);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != ENOBUFS)
			return errno == EAGAIN || errno == EWOULDBLOCK ? (int)n : -errno;
		/* Only complete messages of the kernel count. */
		if (len < 0 || msg.msg_flags & MSG_TRUNC)
			return empty_queue(fd);
		if (msg.msg_namelen == sizeof(from) && from.nl_pid == 0)
			ur_rtnl_walk(buf, (size_t)len, fn, arg);
		n++;
	}
	return (int)n;
}
