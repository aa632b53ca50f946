/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "rsocket/dgram.h"

#define SPARES	   16 /* datagrams that have come by UDP and were not read */
#define BATCH	   16
#define BATCHES	   64
#define DRAIN_MS   2000
#define WR_IS_SEND (UINT64_C(1) << 63) /* the rest: its place */

/* ---- a socket ---- */

struct ur_rs_udp *ur_rs_udp_new(int domain)
{
	struct ur_rs_udp *u =
		calloc(1, sizeof(*u) + SPARES * (sizeof(struct ur_rs_dgram) + UR_RS_DGRAM_BYTES));
	struct ur_rs_dgram *d = (void *)(u + 1);

	if (!u)
		return NULL;
	SLIST_INIT(&u->ports);
	TAILQ_INIT(&u->dests);
	TAILQ_INIT(&u->queue);
	TAILQ_INIT(&u->spare);
	u->fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0) {
		free(u);
		return NULL;
	}
	for (unsigned i = 0; i < SPARES; i++) {
		d[i].buf = (uint8_t *)(d + SPARES) + (size_t)i * UR_RS_DGRAM_BYTES;
		TAILQ_INSERT_TAIL(&u->spare, &d[i], link);
	}
	return u;
}

void ur_rs_udp_free(struct ur_rs_udp *u)
{
	ur_rs_udp_free_dests(u);
	if (u->comp)
		ibv_destroy_comp_channel(u->comp);
	close(u->fd);
	free(u);
}

/* ---- receiving ---- */

static void give_back(struct ur_rs_udp *u, struct ur_rs_dgram *d)
{
	if (d->port)
		ur_rs_udp_post_receive(d);
	else
		TAILQ_INSERT_TAIL(&u->spare, d, link);
}

/* A connected socket hears its peer only. RSOCKET-UDP-05 */
static bool hears(const struct ur_rs *rs, const union ur_rs_addr *from)
{
	const union ur_rs_addr *peer = &rs->udp->connected_to;

	return !peer->sa.sa_family || ur_rs_same_addr(peer, from);
}

static void take_receive(struct ur_rs *rs, const struct ibv_wc *wc)
{
	struct ur_rs_dgram *d = (void *)(uintptr_t)wc->wr_id;
	size_t header;

	if (wc->status != IBV_WC_SUCCESS)
		return; /* the queue pair goes */
	header = wc->byte_len < UR_RS_GRH_BYTES
			 ? 0
			 : ur_rs_get_send(d->buf + UR_RS_GRH_BYTES, wc->byte_len - UR_RS_GRH_BYTES,
					  rs->domain, &d->from);
	if (!header || rs->shut_rd || !hears(rs, &d->from)) {
		give_back(rs->udp, d);
		return;
	}
	d->skip = UR_RS_GRH_BYTES + (uint32_t)header;
	d->bytes = wc->byte_len - d->skip;
	TAILQ_INSERT_TAIL(&rs->udp->queue, d, link);
	ur_rs_wake(rs, UR_RS_WANT_RX);
}

static void poll_port(struct ur_rs *rs, struct ur_rs_udp_port *p)
{
	struct ibv_wc wc[BATCH];
	int n, batches = 0;

	do {
		n = ibv_poll_cq(p->cq, BATCH, wc);
		for (int i = 0; i < n; i++) {
			if (!(wc[i].wr_id & WR_IS_SEND)) {
				take_receive(rs, &wc[i]);
				continue;
			}
			p->free_sends[p->free_cnt++] = (uint32_t)wc[i].wr_id;
			ur_rs_wake(rs, UR_RS_WANT_TX);
		}
	} while (n == BATCH && ++batches < BATCHES);
}

static ssize_t send_udp(struct ur_rs *rs, const struct ur_rs_dest *to, enum ur_rs_udp_op op,
			const uint8_t *data, size_t len)
{
	uint8_t header[UR_RS_HEADER_MAX];
	struct iovec iov[2] = {
		{header, ur_rs_put_udp(header, op, to->port->id->qp->qp_num, &to->port->own)},
		{(void *)(uintptr_t)data, len}};
	struct msghdr msg = {.msg_name = (void *)(uintptr_t)&to->addr,
			     .msg_namelen = ur_rs_addr_bytes(&to->addr),
			     .msg_iov = iov,
			     .msg_iovlen = 2};

	return sendmsg(rs->udp->fd, &msg, MSG_NOSIGNAL);
}

/* A datagram by UDP. The spare place is not needed for one without data. Of a stranger, nothing is kept but its number. */
static void take_udp(struct ur_rs *rs, struct ur_rs_dgram *d, size_t len)
{
	enum ur_rs_udp_op op;
	uint32_t qpn;
	size_t header = ur_rs_get_udp(d->buf, len, d->from.sa.sa_family, &op, &qpn);
	struct ur_rs_dest *peer =
		header && hears(rs, &d->from) ? ur_rs_udp_dest(rs, &d->from) : NULL;

	if (!peer) {
		give_back(rs->udp, d);
		return;
	}
	if (op == UR_RS_UDP_DATA)
		send_udp(rs, peer, UR_RS_UDP_CTRL, NULL, 0);
	peer->qpn = qpn;
	if (op != UR_RS_UDP_DATA || rs->shut_rd) {
		give_back(rs->udp, d);
		return;
	}
	d->skip = (uint32_t)header;
	d->bytes = (uint32_t)(len - header);
	TAILQ_INSERT_TAIL(&rs->udp->queue, d, link);
	ur_rs_wake(rs, UR_RS_WANT_RX);
}

/* What finds no place stays in the kernel's buffer. Each datagram may make a peer known, so their number is bounded, too. */
static void poll_udp(struct ur_rs *rs)
{
	struct ur_rs_dgram *d;

	for (unsigned i = 0; i < BATCH && (d = TAILQ_FIRST(&rs->udp->spare)); i++) {
		socklen_t from_len = sizeof(d->from);
		ssize_t n =
			recvfrom(rs->udp->fd, d->buf, UR_RS_DGRAM_BYTES, 0, &d->from.sa, &from_len);

		if (n < 0)
			return;
		TAILQ_REMOVE(&rs->udp->spare, d, link);
		take_udp(rs, d, (size_t)n);
	}
}

static void look_for_room(struct ur_rs *rs)
{
	struct pollfd p = {.fd = rs->udp->fd, .events = POLLOUT};

	if (!rs->udp->full || poll(&p, 1, 0) <= 0 || !(p.revents & POLLOUT))
		return;
	rs->udp->full = false;
	ur_rs_wake(rs, UR_RS_WANT_TX);
}

void ur_rs_udp_progress(struct ur_rs *rs)
{
	struct ur_rs_udp_port *p;

	SLIST_FOREACH(p, &rs->udp->ports, link)
	poll_port(rs, p);
	poll_udp(rs);
	look_for_room(rs);
}

void ur_rs_udp_arm(struct ur_rs *rs)
{
	struct ur_rs_udp_port *p;
	struct ibv_cq *cq;
	void *context;

	if (!rs->udp->comp)
		return;
	while (!ibv_get_cq_event(rs->udp->comp, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	SLIST_FOREACH(p, &rs->udp->ports, link)
	ibv_req_notify_cq(p->cq, 0);
}

static bool may_receive(const struct ur_rs *rs)
{
	return rs->shut_rd || !TAILQ_EMPTY(&rs->udp->queue);
}

/* A thread that waits does not say for which peer, so all ports must have room. */
static bool may_send(const struct ur_rs *rs)
{
	const struct ur_rs_udp_port *p;

	SLIST_FOREACH(p, &rs->udp->ports, link)
	if (!p->free_cnt)
		return false;
	return !rs->udp->full;
}

static bool is_sent(const struct ur_rs *rs)
{
	const struct ur_rs_udp_port *p;

	SLIST_FOREACH(p, &rs->udp->ports, link)
	if (p->free_cnt < p->send_cnt)
		return false;
	return true;
}

short ur_rs_udp_events(const struct ur_rs *rs)
{
	return (short)((may_receive(rs) ? POLLIN | POLLRDNORM : 0) |
		       (may_send(rs) ? POLLOUT | POLLWRNORM : 0));
}

/* Without a spare place a datagram stays in the kernel's buffer, and a thread that waits to send would never sleep. */
short ur_rs_udp_kernel_events(const struct ur_rs *rs)
{
	return (short)((TAILQ_EMPTY(&rs->udp->spare) ? 0 : POLLIN) | (rs->udp->full ? POLLOUT : 0));
}

/* As with UDP, what does not fit is lost. RSOCKET-UDP-06 */
ssize_t ur_rs_udp_receive(struct ur_rs_call *c, struct ur_rs_iov *v, int flags,
			  struct sockaddr *from, socklen_t *len)
{
	struct ur_rs *rs = c->rs;
	struct ur_rs_dgram *d;
	size_t bytes, whole;
	int rc = ur_rs_wait(c, UR_RS_WANT_RX, may_receive,
			    rs->fd_flags & O_NONBLOCK || flags & MSG_DONTWAIT, rs->opt.recv_ms);

	d = TAILQ_FIRST(&rs->udp->queue);
	if (rc || !d)
		return ur_rs_leave(c, rc);
	whole = d->bytes;
	bytes = whole < v->bytes ? whole : v->bytes;
	ur_rs_iov_put(v, d->buf + d->skip, bytes);
	if (from && len)
		ur_rs_copy_address(from, len, &d->from.sa);
	if (!(flags & MSG_PEEK)) {
		TAILQ_REMOVE(&rs->udp->queue, d, link);
		give_back(rs->udp, d);
	}
	ur_rs_leave(c, 0);
	return (ssize_t)(flags & MSG_TRUNC ? whole : bytes);
}

/* ---- sending ---- */

static int take_address(const struct ur_rs *rs, const struct sockaddr *addr, socklen_t len,
			union ur_rs_addr *to)
{
	int rc = addr ? ur_rs_check_address(rs, addr, len) : EDESTADDRREQ;

	if (!rc)
		memcpy(to, addr, ur_rs_address_bytes(rs));
	return rc;
}

/* The kernel's socket gets its port. It is not connected itself: strangers' SENDs have to be dropped here anyway. */
int ur_rs_udp_connect(struct ur_rs_call *c, const struct sockaddr *addr, socklen_t len)
{
	union ur_rs_addr to = {0};
	int rc;

	if (addr && len >= sizeof(sa_family_t) && addr->sa_family == AF_UNSPEC) {
		c->rs->udp->connected_to = (union ur_rs_addr){0};
		return ur_rs_leave(c, 0);
	}
	rc = take_address(c->rs, addr, len, &to);
	if (!rc)
		rc = ur_rs_udp_name(c->rs);
	if (!rc && !ur_rs_udp_dest(c->rs, &to))
		rc = errno;
	if (!rc)
		c->rs->udp->connected_to = to;
	return ur_rs_leave(c, rc);
}

int ur_rs_udp_name(struct ur_rs *rs)
{
	union ur_rs_addr own;
	socklen_t len = sizeof(own);

	if (getsockname(rs->udp->fd, &own.sa, &len))
		return errno;
	if (own.in.sin_port)
		return 0;
	own = (union ur_rs_addr){.sa = {.sa_family = (sa_family_t)rs->domain}};
	return bind(rs->udp->fd, &own.sa, ur_rs_addr_bytes(&own)) ? errno : 0;
}

static int post(struct ur_rs_dest *to, struct ibv_ah *ah, struct ur_rs_iov *v)
{
	struct ur_rs_udp_port *p = to->port;
	uint32_t i = p->free_sends[--p->free_cnt];
	uint8_t *at = p->memory + p->receive_cnt * (size_t)(UR_RS_GRH_BYTES + UR_RS_DGRAM_BYTES) +
		      i * (size_t)UR_RS_DGRAM_BYTES;
	size_t header = ur_rs_put_send(at, &p->own), bytes = v->bytes;
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)(header + bytes), p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = WR_IS_SEND | i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {ah, to->qpn, RDMA_UDP_QKEY}},
			   *bad;

	ur_rs_iov_get(v, at + header, bytes);
	if (!ibv_post_send(p->id->qp, &wr, &bad))
		return 0;
	p->free_cnt++;
	return EIO;
}

/* EAGAIN: its port, or the kernel's socket, has no room. */
static int try_send(struct ur_rs *rs, const union ur_rs_addr *to, struct ur_rs_iov v)
{
	struct ur_rs_dest *d = ur_rs_udp_dest(rs, to);
	uint8_t data[UR_RS_DGRAM_BYTES];
	size_t bytes = v.bytes;
	struct ibv_ah *ah;

	if (!d)
		return errno;
	if (bytes > d->port->bytes_max - (rs->domain == AF_INET6 ? UR_RS_HEADER_MAX : 16))
		return EMSGSIZE;
	ah = ur_rs_udp_ah(d);
	if (ah)
		return d->port->free_cnt ? post(d, ah, &v) : EAGAIN;
	ur_rs_iov_get(&v, data, bytes);
	if (send_udp(rs, d, UR_RS_UDP_DATA, data, bytes) >= 0)
		return 0;
	rs->udp->full = errno == EAGAIN;
	return errno;
}

static int send_one(struct ur_rs_call *c, const union ur_rs_addr *to, const struct ur_rs_iov *v,
		    bool nonblock)
{
	struct ur_rs *rs = c->rs;
	int rc = ur_rs_udp_name(rs);

	ur_rs_progress(rs, UR_RS_WANT_TX);
	while (!rc) {
		rc = try_send(rs, to, *v);
		if (rc != EAGAIN || nonblock || may_send(rs))
			return rc;
		rc = ur_rs_wait(c, UR_RS_WANT_TX, may_send, false, rs->opt.send_ms);
	}
	return rc;
}

ssize_t ur_rs_udp_send(struct ur_rs_call *c, struct ur_rs_iov *v, int flags,
		       const struct sockaddr *addr, socklen_t len)
{
	struct ur_rs *rs = c->rs;
	union ur_rs_addr to = rs->udp->connected_to;
	size_t bytes = v->bytes;
	int rc = rs->shut_wr ? EPIPE : 0;

	if (!rc && addr)
		rc = take_address(rs, addr, len, &to);
	if (!rc && !to.sa.sa_family)
		rc = EDESTADDRREQ;
	if (!rc)
		rc = send_one(c, &to, v, rs->fd_flags & O_NONBLOCK || flags & MSG_DONTWAIT);
	return ur_rs_leave(c, rc) ? -1 : (ssize_t)bytes;
}

void ur_rs_udp_drain(struct ur_rs_call *c)
{
	ur_rs_wait(c, UR_RS_WANT_TX, is_sent, false, DRAIN_MS);
}
