/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>

#include "rsocket/dgram.h"

#define RESOLVE_MS 8000

/* ---- making a socket ---- */

struct rdma_event_channel *ur_rs_new_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel || !fcntl(channel->fd, F_SETFL, O_NONBLOCK))
		return channel;
	rdma_destroy_event_channel(channel);
	return NULL;
}

static int set_id_options(struct rdma_cm_id *id, const struct ur_rs_options *opt)
{
	int reuse = opt->reuse, v6only = opt->v6only;

	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof(reuse)) ||
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &v6only, sizeof(v6only)))
		return errno;
	return 0;
}

/* *to is written only on success. */
static int make_id(struct ur_rs *rs, struct rdma_cm_id **to)
{
	struct rdma_cm_id *id;
	int rc;

	if (!rs->channel)
		rs->channel = ur_rs_new_channel();
	if (!rs->channel || rdma_create_id(rs->channel, &id, NULL, RDMA_PS_TCP))
		return errno;
	rc = set_id_options(id, &rs->opt);
	if (rc)
		rdma_destroy_id(id);
	else
		*to = id;
	return rc;
}

static int make_udp(struct ur_rs *rs)
{
	rs->channel = ur_rs_new_channel();
	rs->udp = rs->channel ? ur_rs_udp_new(rs->domain) : NULL;
	return rs->udp ? 0 : errno;
}

static int check_kind(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6)
		return EAFNOSUPPORT;
	if (type == SOCK_DGRAM && (!protocol || protocol == IPPROTO_UDP))
		return 0;
	if (type != SOCK_STREAM || (protocol && protocol != IPPROTO_TCP))
		return EPROTONOSUPPORT;
	return 0;
}

int rsocket(int domain, int type, int protocol)
{
	int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct ur_rs *rs;
	int rc = check_kind(domain, type & ~flags, protocol);

	if (rc)
		return ur_rs_fail(rc);
	rs = ur_rs_new(domain, type & ~flags);
	if (!rs)
		return -1;
	rs->fd_flags = flags & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	rc = rs->type == SOCK_DGRAM ? make_udp(rs) : make_id(rs, &rs->id);
	if (!rc)
		rc = ur_rs_publish(rs);
	if (!rc)
		return rs->fd;
	ur_rs_release(rs);
	return ur_rs_fail(rc);
}

/* ---- bind ---- */

/* The kernel knows the host's address by another errno. */
static int bind_id(struct ur_rs *rs, const struct sockaddr *addr)
{
	if (!rdma_bind_addr(rs->id, (struct sockaddr *)(uintptr_t)addr))
		return 0;
	return errno == ENODEV ? EADDRNOTAVAIL : errno;
}

int rbind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct ur_rs_call c;
	int rc;

	if (!ur_rs_enter(&c, fd))
		return -1;
	rc = ur_rs_check_address(c.rs, addr, len);
	if (!rc && c.rs->udp)
		return ur_rs_leave(&c, bind(c.rs->udp->fd, addr, len) ? errno : 0);
	if (!rc)
		rc = c.rs->state == UR_RS_FRESH ? bind_id(c.rs, addr) : EINVAL;
	if (!rc) {
		c.rs->state = UR_RS_BOUND;
		memcpy(&c.rs->bound, addr, ur_rs_address_bytes(c.rs));
	}
	return ur_rs_leave(&c, rc);
}

/* ---- connecting ---- */

bool ur_rs_is_opening(const struct ur_rs *rs)
{
	return rs->state == UR_RS_RESOLVING || rs->state == UR_RS_CONNECTING ||
	       rs->state == UR_RS_ACCEPTING;
}

bool ur_rs_is_decided(const struct ur_rs *rs)
{
	return !ur_rs_is_opening(rs);
}

static void fail(struct ur_rs *rs, int why)
{
	rs->state = UR_RS_FAILED;
	rs->error = why;
	ur_rs_wake(rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
}

static void become_connected(struct ur_rs *rs)
{
	rs->state = UR_RS_CONNECTED;
	ur_rs_wake(rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
}

void ur_rs_confirm(struct ur_rs *rs)
{
	become_connected(rs);
	rdma_notify(rs->id, IBV_EVENT_COMM_EST);
}

static int request(struct ur_rs *rs)
{
	uint8_t offer[UR_RS_OFFER_BYTES];
	struct rdma_conn_param param;
	int rc = ur_rs_open_link(rs);

	if (rc)
		return rc;
	param = ur_rs_conn_param(rs, offer);
	if (rdma_connect(rs->id, &param))
		return errno;
	rs->state = UR_RS_CONNECTING;
	return 0;
}

static void finish(struct ur_rs *rs, const struct rdma_conn_param *answer)
{
	struct ur_rs_offer offer;

	if (rs->state == UR_RS_ACCEPTING) {
		become_connected(rs);
		return;
	}
	if (!ur_rs_get_offer(answer->private_data, answer->private_data_len, &offer)) {
		rdma_disconnect(rs->id);
		fail(rs, EPROTO);
		return;
	}
	ur_rs_take_offer(rs, &offer);
	become_connected(rs);
}

/* Goes on as the event says. Returns why there will be no connection, or 0. */
static int handle(struct ur_rs *rs, const struct rdma_cm_event *e)
{
	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(rs->id, RESOLVE_MS) ? errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return request(rs);
	case RDMA_CM_EVENT_ESTABLISHED:
		finish(rs, &e->param.conn);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		return rs->state == UR_RS_ACCEPTING ? ECONNRESET : ECONNREFUSED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return ECONNRESET;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return e->status < 0 ? -e->status : ETIMEDOUT;
	default:
		return 0;
	}
}

void ur_rs_drive(struct ur_rs *rs)
{
	struct rdma_cm_event *e;
	int why;

	while (ur_rs_is_opening(rs)) {
		struct pollfd p = {.fd = rs->channel->fd, .events = POLLIN};

		if (poll(&p, 1, 0) <= 0 || rdma_get_cm_event(rs->channel, &e))
			return;
		why = handle(rs, e);
		rdma_ack_cm_event(e);
		/* The program has an accepted socket already, so that one has a connection to lose. */
		if (why && rs->state == UR_RS_ACCEPTING)
			ur_rs_lose(rs, why);
		else if (why)
			fail(rs, why);
	}
}

/* After a failure the id has had its attempt. Until the next one is bound as that was, the socket stays as it is. */
static int renew(struct ur_rs *rs)
{
	struct rdma_cm_id *id;
	int rc = make_id(rs, &id);

	if (rc)
		return rc;
	ur_rs_close_link(rs);
	rdma_destroy_id(rs->id);
	rs->id = id;
	if (rs->bound.ss_family)
		rc = bind_id(rs, (struct sockaddr *)&rs->bound);
	if (!rc)
		rs->state = rs->bound.ss_family ? UR_RS_BOUND : UR_RS_FRESH;
	return rc;
}

static int begin(struct ur_rs *rs, const struct sockaddr *addr)
{
	int rc = rs->state == UR_RS_FAILED ? renew(rs) : 0;

	if (rc)
		return rc;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)(uintptr_t)addr, RESOLVE_MS))
		return errno == ENODEV ? ENETUNREACH : errno;
	rs->state = UR_RS_RESOLVING;
	return 0;
}

int ur_rs_take_error(struct ur_rs *rs)
{
	int rc = rs->error;

	rs->error = 0;
	return rc;
}

/* As in Linux, an attempt that failed without the program's knowledge is told before there is another. */
static int may_connect(struct ur_rs *rs)
{
	switch (rs->state) {
	case UR_RS_FRESH:
	case UR_RS_BOUND:
		return 0;
	case UR_RS_FAILED:
		return ur_rs_take_error(rs);
	case UR_RS_RESOLVING:
	case UR_RS_CONNECTING:
		return EALREADY;
	case UR_RS_LISTENING:
		return EOPNOTSUPP;
	default:
		return EISCONN;
	}
}

int rconnect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct ur_rs_call c;
	bool nonblock;
	int rc;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (c.rs->udp)
		return ur_rs_udp_connect(&c, addr, len);
	nonblock = c.rs->fd_flags & O_NONBLOCK;
	ur_rs_progress(c.rs, 0);
	rc = ur_rs_check_address(c.rs, addr, len);
	if (!rc)
		rc = may_connect(c.rs);
	if (!rc)
		rc = begin(c.rs, addr);
	if (!rc)
		rc = ur_rs_wait(&c, UR_RS_WANT_TX, ur_rs_is_decided, nonblock, c.rs->opt.send_ms);
	if (rc == EAGAIN)
		rc = EINPROGRESS;
	if (!rc && c.rs->state == UR_RS_FAILED)
		rc = ur_rs_take_error(c.rs);
	return ur_rs_leave(&c, rc);
}

int ur_rs_wait_connected(struct ur_rs_call *c, bool nonblock, int timeout_ms)
{
	int rc = ur_rs_wait(c, UR_RS_WANT_TX, ur_rs_is_decided, nonblock, timeout_ms);

	if (rc)
		return rc;
	if (c->rs->state == UR_RS_CONNECTED || c->rs->state == UR_RS_ENDED)
		return 0;
	rc = ur_rs_take_error(c->rs);
	return rc ? rc : ENOTCONN;
}
