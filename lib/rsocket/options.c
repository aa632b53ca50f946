/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>

#include <infiniband/sa.h>

#include "rsocket/dgram.h"

#define BUFFER_MAX (1u << 30)
#define DEPTH_MAX  65534

/* ---- set ---- */

/* Linux gives twice what is asked for, too. Later it has no effect. */
static int set_buffer(const struct ur_rs *rs, uint32_t *bytes, int value)
{
	if (!rs->link.qp)
		*bytes = ur_rs_within(2 * (int64_t)value, 0, BUFFER_MAX);
	return 0;
}

static int set_flag(bool *flag, int value)
{
	*flag = value != 0;
	return 0;
}

/* On the id, too. After rbind() it comes too late for some. */
static int set_id_flag(struct ur_rs *rs, bool *flag, int name, int value)
{
	int on = value != 0;

	if (rdma_set_option(rs->id, RDMA_OPTION_ID, name, &on, sizeof(on)))
		return errno;
	*flag = on;
	return 0;
}

static int set_time(int *ms, const void *value, socklen_t len)
{
	struct timeval t;

	if (len < sizeof(t))
		return EINVAL;
	memcpy(&t, value, sizeof(t));
	if (t.tv_usec < 0 || t.tv_usec >= 1000000)
		return EDOM;
	*ms = t.tv_sec > 1000000 || t.tv_sec < 0 || (!t.tv_sec && !t.tv_usec)
		      ? -1
		      : (int)(t.tv_sec * 1000 + (t.tv_usec + 999) / 1000);
	return 0;
}

static int set_linger(struct ur_rs *rs, const void *value, socklen_t len)
{
	if (len < sizeof(struct linger))
		return EINVAL;
	memcpy(&rs->opt.linger, value, sizeof(struct linger));
	return 0;
}

static int set_socket(struct ur_rs *rs, int name, int value)
{
	switch (name) {
	case SO_REUSEADDR:
		return set_id_flag(rs, &rs->opt.reuse, RDMA_OPTION_ID_REUSEADDR, value);
	case SO_RCVBUF:
		return set_buffer(rs, &rs->opt.recv_bytes, value);
	case SO_SNDBUF:
		return set_buffer(rs, &rs->opt.send_bytes, value);
	case SO_KEEPALIVE:
		return set_flag(&rs->opt.keepalive, value);
	case SO_OOBINLINE:
		return set_flag(&rs->opt.oobinline, value);
	default:
		return ENOPROTOOPT;
	}
}

static int set_tcp(struct ur_rs *rs, int name, int value)
{
	switch (name) {
	case TCP_NODELAY:
		return set_flag(&rs->opt.nodelay, value);
	case TCP_KEEPIDLE:
		if (value <= 0)
			return EINVAL;
		rs->opt.keep_idle_s = value;
		return 0;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
	case TCP_MAXSEG:
		return 0; /* nothing that they would change */
	default:
		return ENOPROTOOPT;
	}
}

static int set_rdma(struct ur_rs *rs, int name, int value)
{
	if (rs->link.qp)
		return EINVAL;
	switch (name) {
	case RDMA_SQSIZE:
		rs->opt.sq_depth = ur_rs_within(value, 0, DEPTH_MAX);
		return 0;
	case RDMA_RQSIZE:
		rs->opt.rq_depth = ur_rs_within(value, 0, DEPTH_MAX);
		return 0;
	case RDMA_INLINE:
		rs->opt.inline_bytes = ur_rs_within(value, 0, DEPTH_MAX);
		return 0;
	case RDMA_IOMAPSIZE:
		rs->opt.maps = ur_rs_unscale(ur_rs_scale((uint16_t)ur_rs_within(value, 0, 0x7fff)));
		return 0;
	case RDMA_ROUTE: /* with RoCE the neighbour's address is the route */
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int set_number(struct ur_rs *rs, int level, int name, int value)
{
	switch (level) {
	case SOL_SOCKET:
		return set_socket(rs, name, value);
	case IPPROTO_TCP:
		return set_tcp(rs, name, value);
	case IPPROTO_IPV6:
		return name == IPV6_V6ONLY
			       ? set_id_flag(rs, &rs->opt.v6only, RDMA_OPTION_ID_AFONLY, value)
			       : ENOPROTOOPT;
	case SOL_RDMA:
		return set_rdma(rs, name, value);
	default:
		return ENOPROTOOPT;
	}
}

static int set(struct ur_rs *rs, int level, int name, const void *value, socklen_t len)
{
	int number;

	if (level == SOL_SOCKET && name == SO_LINGER)
		return set_linger(rs, value, len);
	if (level == SOL_SOCKET && name == SO_RCVTIMEO)
		return set_time(&rs->opt.recv_ms, value, len);
	if (level == SOL_SOCKET && name == SO_SNDTIMEO)
		return set_time(&rs->opt.send_ms, value, len);
	/* What the kernel's socket keeps; sizes of buffers matter to both. */
	if (rs->udp && level != SOL_RDMA && setsockopt(rs->udp->fd, level, name, value, len))
		return errno;
	if (len < sizeof(number))
		return EINVAL;
	memcpy(&number, value, sizeof(number));
	if (rs->udp && (level != SOL_SOCKET || (name != SO_RCVBUF && name != SO_SNDBUF)) &&
	    level != SOL_RDMA)
		return 0;
	return set_number(rs, level, name, number);
}

int rsetsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct ur_rs_call c;

	if (!ur_rs_enter(&c, fd))
		return -1;
	return ur_rs_leave(&c, set(c.rs, level, name, value, len));
}

/* ---- get ---- */

static int get_socket(struct ur_rs *rs, int name, int *to)
{
	switch (name) {
	case SO_REUSEADDR:
		*to = rs->opt.reuse;
		return 0;
	case SO_RCVBUF:
		*to = (int)rs->opt.recv_bytes;
		return 0;
	case SO_SNDBUF:
		*to = (int)rs->opt.send_bytes;
		return 0;
	case SO_KEEPALIVE:
		*to = rs->opt.keepalive;
		return 0;
	case SO_OOBINLINE:
		*to = rs->opt.oobinline;
		return 0;
	case SO_ERROR:
		ur_rs_progress(rs, 0);
		*to = ur_rs_take_error(rs);
		return 0;
	case SO_TYPE:
		*to = rs->type;
		return 0;
	case SO_DOMAIN:
		*to = rs->domain;
		return 0;
	case SO_PROTOCOL:
		*to = IPPROTO_TCP;
		return 0;
	case SO_ACCEPTCONN:
		*to = rs->state == UR_RS_LISTENING;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int path_mtu(const struct ur_rs *rs)
{
	const struct rdma_route *r = &rs->id->route;

	return r->num_paths ? 128 << r->path_rec->mtu : 2048;
}

static int get_tcp(const struct ur_rs *rs, int name, int *to)
{
	switch (name) {
	case TCP_NODELAY:
		*to = rs->opt.nodelay;
		return 0;
	case TCP_KEEPIDLE:
		*to = rs->opt.keep_idle_s;
		return 0;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
		*to = 1;
		return 0;
	case TCP_MAXSEG:
		*to = path_mtu(rs);
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int get_rdma(const struct ur_rs *rs, int name, int *to)
{
	switch (name) {
	case RDMA_SQSIZE:
		*to = (int)rs->opt.sq_depth;
		return 0;
	case RDMA_RQSIZE:
		*to = (int)rs->opt.rq_depth;
		return 0;
	case RDMA_INLINE:
		*to = (int)rs->opt.inline_bytes;
		return 0;
	case RDMA_IOMAPSIZE:
		*to = rs->opt.maps;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int get_number(struct ur_rs *rs, int level, int name, int *to)
{
	switch (level) {
	case SOL_SOCKET:
		return get_socket(rs, name, to);
	case IPPROTO_TCP:
		return get_tcp(rs, name, to);
	case IPPROTO_IPV6:
		*to = rs->opt.v6only;
		return name == IPV6_V6ONLY ? 0 : ENOPROTOOPT;
	case SOL_RDMA:
		return get_rdma(rs, name, to);
	default:
		return ENOPROTOOPT;
	}
}

static void copy_value(void *to, socklen_t *len, const void *from, socklen_t bytes)
{
	if (*len > bytes)
		*len = bytes;
	memcpy(to, from, *len);
}

static void get_time(int ms, void *to, socklen_t *len)
{
	struct timeval t = {0};

	if (ms > 0)
		t = (struct timeval){ms / 1000, ms % 1000 * 1000};
	copy_value(to, len, &t, sizeof(t));
}

/* The route's only path, in the form that a subnet administrator gives. "Exactly" is 2 in the selectors. */
static int get_route(const struct ur_rs *rs, void *to, socklen_t *len)
{
	const struct ibv_sa_path_rec *from = rs->id->route.path_rec;
	struct ibv_path_data data = {0};

	if (*len < sizeof(data))
		return EINVAL;
	*len = 0;
	if (!rs->id->route.num_paths)
		return 0;
	data.path.dgid = from->dgid;
	data.path.sgid = from->sgid;
	data.path.flowlabel_hoplimit = htonl(ntohl(from->flow_label) << 8 | from->hop_limit);
	data.path.tclass = from->traffic_class;
	data.path.reversible_numpath = 0x81;
	data.path.pkey = from->pkey;
	data.path.qosclass_sl = htons(from->sl);
	data.path.mtu = (uint8_t)(from->mtu | 2 << 6);
	data.path.rate = (uint8_t)(from->rate | 2 << 6);
	data.path.packetlifetime = (uint8_t)(from->packet_life_time | 2 << 6);
	memcpy(to, &data, sizeof(data));
	*len = sizeof(data);
	return 0;
}

static int get(struct ur_rs *rs, int level, int name, void *to, socklen_t *len)
{
	int number, rc;

	if (level == SOL_SOCKET && name == SO_LINGER) {
		copy_value(to, len, &rs->opt.linger, sizeof(rs->opt.linger));
		return 0;
	}
	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) {
		get_time(name == SO_RCVTIMEO ? rs->opt.recv_ms : rs->opt.send_ms, to, len);
		return 0;
	}
	if (level == SOL_RDMA && name == RDMA_ROUTE && !rs->udp)
		return get_route(rs, to, len);
	if (rs->udp && level != SOL_RDMA)
		return getsockopt(rs->udp->fd, level, name, to, len) ? errno : 0;
	rc = get_number(rs, level, name, &number);
	if (!rc)
		copy_value(to, len, &number, sizeof(number));
	return rc;
}

int rgetsockopt(int fd, int level, int name, void *to, socklen_t *len)
{
	struct ur_rs_call c;

	if (!ur_rs_enter(&c, fd))
		return -1;
	return ur_rs_leave(&c, get(c.rs, level, name, to, len));
}

/* ---- flags ---- */

int rfcntl(int fd, int cmd, ...)
{
	struct ur_rs_call c;
	va_list args;
	int value, rc = 0, got = 0;

	va_start(args, cmd);
	value = cmd == F_SETFL || cmd == F_SETFD ? va_arg(args, int) : 0;
	va_end(args);
	if (!ur_rs_enter(&c, fd))
		return -1;
	switch (cmd) {
	case F_GETFL:
		got = O_RDWR | c.rs->fd_flags;
		break;
	case F_SETFL:
		c.rs->fd_flags = value & O_NONBLOCK;
		break;
	case F_GETFD:
	case F_SETFD:
		got = fcntl(fd, cmd, value);
		rc = got < 0 ? errno : 0;
		break;
	default:
		rc = EINVAL;
		break;
	}
	return ur_rs_leave(&c, rc) ? -1 : got;
}
