/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>

#include "rsocket/socket.h"

int rlisten(int fd, int backlog)
{
	struct ur_rs_call c;
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	int rc = 0;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (c.rs->udp)
		return ur_rs_leave(&c, EOPNOTSUPP);
	switch (c.rs->state) {
	case UR_RS_FRESH:
		/* rdma_listen() would choose IPv4. */
		if (c.rs->domain == AF_INET6 && rdma_bind_addr(c.rs->id, (struct sockaddr *)&any)) {
			rc = errno;
			break;
		}
		/* fall through */
	case UR_RS_BOUND:
		rc = rdma_listen(c.rs->id, backlog > 0 ? backlog : 1) ? errno : 0;
		break;
	case UR_RS_LISTENING:
		break;
	default:
		rc = EINVAL;
		break;
	}
	if (!rc)
		c.rs->state = UR_RS_LISTENING;
	return ur_rs_leave(&c, rc);
}

void ur_rs_fetch_request(struct ur_rs *rs)
{
	struct pollfd p = {.fd = rs->channel->fd, .events = POLLIN};
	struct rdma_cm_event *e;

	while (!rs->request && poll(&p, 1, 0) > 0 && !rdma_get_cm_event(rs->channel, &e)) {
		if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_ack_cm_event(e);
			continue;
		}
		rs->request = e;
		ur_rs_wake(rs, UR_RS_WANT_RX);
	}
}

static bool has_request(const struct ur_rs *rs)
{
	return rs->request || rs->state != UR_RS_LISTENING;
}

/* What raccept() returns later. Nobody else knows it yet. */
static struct ur_rs *make_child(const struct ur_rs *listener)
{
	struct ur_rs *rs = ur_rs_new(listener->domain, SOCK_STREAM);

	if (!rs)
		return NULL;
	rs->opt = listener->opt;
	rs->channel = ur_rs_new_channel();
	if (rs->channel)
		return rs;
	ur_rs_release(rs);
	return NULL;
}

/* The answer goes out, and the peer's confirmation comes later: a slow peer does not hold up the listener. */
static int answer(struct ur_rs *rs, const struct ur_rs_offer *offer)
{
	uint8_t own[UR_RS_OFFER_BYTES];
	struct rdma_conn_param param;
	int rc = rdma_migrate_id(rs->id, rs->channel) ? errno : ur_rs_open_link(rs);

	if (rc)
		return rc;
	ur_rs_take_offer(rs, offer);
	param = ur_rs_conn_param(rs, own);
	/* Before the peer's confirmation can come. */
	rs->state = UR_RS_ACCEPTING;
	/* The caller has gone meanwhile. */
	if (rdma_accept(rs->id, &param))
		return EPROTO;
	return ur_rs_publish(rs);
}

void ur_rs_refuse(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

/* Makes a socket of the request. EPROTO: the peer does not speak the protocol and is refused, or there is none any more. */
static int take_request(struct ur_rs *listener, struct ur_rs **to)
{
	struct rdma_cm_event *e = listener->request;
	struct rdma_cm_id *id = e->id;
	struct ur_rs_offer offer;
	struct ur_rs *rs;
	int rc;
	bool valid =
		ur_rs_get_offer(e->param.conn.private_data, e->param.conn.private_data_len, &offer);

	listener->request = NULL;
	rdma_ack_cm_event(e);
	if (!valid) {
		ur_rs_refuse(id);
		return EPROTO;
	}
	rs = make_child(listener);
	if (!rs) {
		rc = errno;
		ur_rs_refuse(id);
		return rc;
	}
	rs->id = id;
	rc = answer(rs, &offer);
	if (!rc) {
		*to = rs;
		return 0;
	}
	ur_rs_release(rs); /* with the id: the peer is refused */
	return rc;
}

int raccept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct ur_rs_call c;
	struct ur_rs *child = NULL;
	int rc, number = -1;

	if (!ur_rs_enter(&c, fd))
		return -1;
	do {
		rc = ur_rs_wait(&c, UR_RS_WANT_RX, has_request, c.rs->fd_flags & O_NONBLOCK,
				c.rs->opt.recv_ms);
		if (!rc)
			rc = c.rs->state == UR_RS_LISTENING ? take_request(c.rs, &child) : EINVAL;
	} while (rc == EPROTO);
	if (child) {
		number = child->fd;
		if (addr && len)
			ur_rs_copy_address(addr, len, rdma_get_peer_addr(child->id));
	}
	return ur_rs_leave(&c, rc) ? -1 : number;
}
