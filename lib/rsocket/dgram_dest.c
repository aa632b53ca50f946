/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "rsocket/dgram.h"

#define DESTS_MAX 1024 /* strangers can make them, so the one that was not used for longest goes */

/* ---- this host's addresses ---- */

static bool is_any(const union ur_rs_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr)
					   : !a->in.sin_addr.s_addr;
}

/* RSOCKET-UDP-03. The address that the socket is bound to, else the one from which the kernel would send there, with the socket's port. */
static int find_source(const struct ur_rs *rs, const union ur_rs_addr *to, union ur_rs_addr *own)
{
	socklen_t len = sizeof(*own);
	in_port_t port;
	int fd, rc = 0;

	if (getsockname(rs->udp->fd, &own->sa, &len))
		return errno;
	if (!is_any(own))
		return 0;
	port = own->in.sin_port;
	fd = socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	len = sizeof(*own);
	if (connect(fd, &to->sa, ur_rs_addr_bytes(to)) || getsockname(fd, &own->sa, &len))
		rc = errno;
	close(fd);
	own->in.sin_port = port; /* the offset is the same */
	return rc;
}

union ibv_gid ur_rs_udp_gid(const union ur_rs_addr *a)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (a->sa.sa_family == AF_INET6)
		memcpy(gid.raw, &a->in6.sin6_addr, 16);
	else
		memcpy(gid.raw + 12, &a->in.sin_addr, 4);
	return gid;
}

static int find_gid(struct ur_rs_udp_port *p)
{
	union ibv_gid want = ur_rs_udp_gid(&p->own), gid;

	for (int i = 0; i < 256 && !ibv_query_gid(p->id->verbs, 1, i, &gid); i++) {
		if (memcmp(&gid, &want, sizeof(gid)))
			continue;
		p->sgid_index = (uint8_t)i;
		return 0;
	}
	return EADDRNOTAVAIL;
}

static int open_queues(struct ur_rs *rs, struct ur_rs_udp_port *p)
{
	struct ur_rs_udp *u = rs->udp;
	struct ibv_context *ctx = p->id->verbs;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = p->send_cnt,
			.max_recv_wr = p->receive_cnt,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	if (!u->comp) {
		u->comp = ibv_create_comp_channel(ctx);
		if (!u->comp || fcntl(u->comp->fd, F_SETFL, O_NONBLOCK))
			return errno;
	} else if (u->comp->context != ctx) {
		return EADDRNOTAVAIL; /* one device for each socket */
	}
	p->cq = ibv_create_cq(ctx, (int)(p->send_cnt + p->receive_cnt), NULL, u->comp, 0);
	if (!p->cq)
		return errno;
	/* The thread may be about to sleep, and have armed the others already. */
	ibv_req_notify_cq(p->cq, 0);
	attr.send_cq = attr.recv_cq = p->cq;
	return rdma_create_qp(p->id, NULL, &attr) ? errno : 0;
}

int ur_rs_udp_post_receive(struct ur_rs_dgram *d)
{
	struct ibv_sge sge = {(uintptr_t)d->buf, UR_RS_GRH_BYTES + UR_RS_DGRAM_BYTES,
			      d->port->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)d, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(d->port->id->qp, &wr, &bad);
}

static int open_buffers(struct ur_rs_udp_port *p)
{
	size_t place = UR_RS_GRH_BYTES + UR_RS_DGRAM_BYTES;
	size_t bytes = p->receive_cnt * place + p->send_cnt * (size_t)UR_RS_DGRAM_BYTES;
	int rc = 0;

	p->memory = calloc(1, bytes);
	p->receives = calloc(p->receive_cnt, sizeof(*p->receives));
	p->free_sends = calloc(p->send_cnt, sizeof(*p->free_sends));
	if (!p->memory || !p->receives || !p->free_sends)
		return ENOMEM;
	p->mr = ibv_reg_mr(p->id->pd, p->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!p->mr)
		return errno;
	for (uint32_t i = 0; i < p->send_cnt; i++)
		p->free_sends[p->free_cnt++] = i;
	for (uint32_t i = 0; i < p->receive_cnt && !rc; i++) {
		p->receives[i] = (struct ur_rs_dgram){.port = p, .buf = p->memory + i * place};
		rc = ur_rs_udp_post_receive(&p->receives[i]);
	}
	return rc;
}

static int open_port(struct ur_rs *rs, struct ur_rs_udp_port *p)
{
	struct ibv_port_attr attr;
	int rc;

	if (rdma_create_id(rs->channel, &p->id, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(p->id, &p->own.sa))
		return errno == ENODEV ? EADDRNOTAVAIL : errno;
	rc = ibv_query_port(p->id->verbs, 1, &attr);
	if (!rc)
		rc = find_gid(p);
	if (rc)
		return rc;
	p->bytes_max = ur_rs_within(UR_RS_DGRAM_BYTES, 0, 128u << attr.active_mtu);
	p->receive_cnt =
		ur_rs_within(rs->opt.rq_depth, 0, rs->opt.recv_bytes / UR_RS_DGRAM_BYTES + 1);
	p->send_cnt = ur_rs_within(rs->opt.sq_depth, 0, rs->opt.send_bytes / UR_RS_DGRAM_BYTES + 1);
	rc = p->receive_cnt && p->send_cnt ? open_queues(rs, p) : EINVAL;
	return rc ? rc : open_buffers(p);
}

static void free_port(struct ur_rs_udp_port *p)
{
	if (p->id && p->id->qp)
		rdma_destroy_qp(p->id);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	if (p->id)
		rdma_destroy_id(p->id);
	free(p->memory);
	free(p->receives);
	free(p->free_sends);
	free(p);
}

static struct ur_rs_udp_port *port_of(struct ur_rs *rs, const union ur_rs_addr *own)
{
	struct ur_rs_udp_port *p;
	int rc;

	SLIST_FOREACH(p, &rs->udp->ports, link)
	if (ur_rs_same_addr(&p->own, own))
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->own = *own;
	rc = open_port(rs, p);
	if (!rc) {
		SLIST_INSERT_HEAD(&rs->udp->ports, p, link);
		/* Threads that sleep do not have the descriptor of the first port. */
		ur_rs_wake(rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
		return p;
	}
	free_port(p);
	errno = rc;
	return NULL;
}

/* ---- peers ---- */

static void free_dest(struct ur_rs_udp *u, struct ur_rs_dest *d)
{
	TAILQ_REMOVE(&u->dests, d, link);
	u->dest_cnt--;
	ur_rs_udp_free_ah(d);
	free(d);
}

static void make_room(struct ur_rs_udp *u)
{
	if (u->dest_cnt >= DESTS_MAX)
		free_dest(u, TAILQ_LAST(&u->dests, ur_rs_dests));
}

struct ur_rs_dest *ur_rs_udp_dest(struct ur_rs *rs, const union ur_rs_addr *to)
{
	struct ur_rs_udp *u = rs->udp;
	struct ur_rs_udp_port *p;
	union ur_rs_addr own;
	struct ur_rs_dest *d;
	int rc;

	TAILQ_FOREACH(d, &u->dests, link)
	if (ur_rs_same_addr(&d->addr, to)) {
		if (d != TAILQ_FIRST(&u->dests)) {
			TAILQ_REMOVE(&u->dests, d, link);
			TAILQ_INSERT_HEAD(&u->dests, d, link);
		}
		return d;
	}
	rc = find_source(rs, to, &own);
	if (rc) {
		errno = rc;
		return NULL;
	}
	p = port_of(rs, &own);
	d = p ? calloc(1, sizeof(*d)) : NULL;
	if (!d)
		return NULL;
	make_room(u);
	d->addr = *to;
	d->port = p;
	TAILQ_INSERT_HEAD(&u->dests, d, link);
	u->dest_cnt++;
	return d;
}

void ur_rs_udp_free_dests(struct ur_rs_udp *u)
{
	struct ur_rs_udp_port *p;
	struct ur_rs_dest *d;

	while ((d = TAILQ_FIRST(&u->dests)))
		free_dest(u, d);
	while ((p = SLIST_FIRST(&u->ports))) {
		SLIST_REMOVE_HEAD(&u->ports, link);
		free_port(p);
	}
}
