/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>

#include "rsocket/dgram.h"
#include "rsocket/post.h"

#define PIECE 32768 /* the peer gets room back before all is copied */

bool ur_rs_may_read(const struct ur_rs *rs)
{
	return rs->state != UR_RS_CONNECTED || rs->eof || rs->shut_rd ||
	       ur_rs_rx_unread(&rs->link.rx);
}

/* From byte `from` of the stream on, without moving on in it. */
static void copy_out(struct ur_rs_call *c, struct ur_rs_iov *v, uint64_t from, uint32_t bytes)
{
	const struct ur_rs_link *l = &c->rs->link;
	uint32_t size = 2 * l->rx.half, at = (uint32_t)(from % size);
	uint32_t first = size - at;
	bool unlock = bytes > UR_RS_COPY_LOCKED;

	if (first > bytes)
		first = bytes;
	/* The peer writes elsewhere. If it does not keep to that, it spoils its own data. */
	if (unlock)
		pthread_mutex_unlock(&c->rs->lock);
	ur_rs_iov_put(v, l->recv_buf + at, first);
	ur_rs_iov_put(v, l->recv_buf, bytes - first);
	if (unlock)
		pthread_mutex_lock(&c->rs->lock);
}

static uint32_t next_piece(uint64_t there, size_t wanted)
{
	uint32_t piece = wanted < PIECE ? (uint32_t)wanted : PIECE;

	return there < piece ? (uint32_t)there : piece;
}

/* What has arrived, as much as fits. */
static void take_data(struct ur_rs_call *c, struct ur_rs_iov *v)
{
	struct ur_rs_rx *rx = &c->rs->link.rx;
	uint32_t piece;

	while ((piece = next_piece(ur_rs_rx_unread(rx), v->bytes))) {
		uint64_t from = rx->taken;

		copy_out(c, v, from, piece);
		/* After rshutdown() meanwhile it may be further. */
		if (rx->taken < from + piece)
			rx->taken = from + piece;
		ur_rs_grant(c->rs);
	}
}

static void peek_data(struct ur_rs_call *c, struct ur_rs_iov *v)
{
	struct ur_rs_rx *rx = &c->rs->link.rx;
	uint64_t at = rx->taken;
	uint32_t piece;

	while ((piece = next_piece(rx->arrived - at, v->bytes))) {
		copy_out(c, v, at, piece);
		at += piece;
	}
}

/* No data, and none will come. A reset is reported once; then there is the end of the stream. */
static bool is_at_end(const struct ur_rs *rs)
{
	return !ur_rs_rx_unread(&rs->link.rx) &&
	       (rs->state != UR_RS_CONNECTED || rs->eof || rs->shut_rd);
}

static int receive(struct ur_rs_call *c, struct ur_rs_iov *v, int flags, bool nonblock)
{
	struct ur_rs *rs = c->rs;
	size_t wanted = v->bytes;
	int rc;

	do {
		rc = ur_rs_wait(c, UR_RS_WANT_RX, ur_rs_may_read, nonblock, rs->opt.recv_ms);
		if (rc)
			return rc;
		if (is_at_end(rs))
			return v->bytes == wanted ? ur_rs_take_error(rs) : 0;
		if (flags & MSG_PEEK) {
			peek_data(c, v);
			return 0;
		}
		take_data(c, v);
	} while (v->bytes && flags & MSG_WAITALL);
	return 0;
}

static int begin(struct ur_rs_call *c, int flags, bool nonblock)
{
	int rc = flags & MSG_OOB ? EINVAL : 0;

	if (!rc)
		rc = ur_rs_take_direction(c, &c->rs->recv_lock, nonblock);
	return rc ? rc : ur_rs_wait_connected(c, nonblock, c->rs->opt.recv_ms);
}

static ssize_t receive_all(int fd, struct ur_rs_iov *v, int flags, struct sockaddr *from,
			   socklen_t *from_len)
{
	size_t bytes = v->bytes;
	struct ur_rs_call c;
	bool nonblock;
	int rc;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (c.rs->udp)
		return ur_rs_udp_receive(&c, v, flags, from, from_len);
	nonblock = c.rs->fd_flags & O_NONBLOCK || flags & MSG_DONTWAIT;
	rc = begin(&c, flags, nonblock);
	if (!rc && bytes)
		rc = receive(&c, v, flags, nonblock);
	if (!rc && from && from_len)
		ur_rs_copy_address(from, from_len, rdma_get_peer_addr(c.rs->id));
	return ur_rs_leave_with(&c, rc, bytes - v->bytes);
}

static ssize_t receive_vectors(int fd, const struct iovec *iov, size_t cnt, int flags,
			       struct sockaddr *from, socklen_t *from_len)
{
	struct ur_rs_iov v;
	int rc = ur_rs_iov(iov, cnt, &v);

	return rc ? ur_rs_fail(rc) : receive_all(fd, &v, flags, from, from_len);
}

ssize_t rrecvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
		  socklen_t *from_len)
{
	struct iovec one = {buf, len};

	return receive_vectors(fd, &one, 1, flags, from, from_len);
}

ssize_t rrecv(int fd, void *buf, size_t len, int flags)
{
	return rrecvfrom(fd, buf, len, flags, NULL, NULL);
}

ssize_t rrecvmsg(int fd, struct msghdr *msg, int flags)
{
	struct ur_rs_iov v = {0};
	int rc = ur_rs_iov(msg->msg_iov, msg->msg_iovlen, &v);
	size_t room = v.bytes;
	ssize_t n;

	if (rc)
		return ur_rs_fail(rc);
	/* With this flag, the bytes of a datagram that is longer than the room for it. */
	n = receive_all(fd, &v, flags | MSG_TRUNC, msg->msg_name,
			msg->msg_name ? &msg->msg_namelen : NULL);
	if (n < 0)
		return n;
	msg->msg_controllen = 0;
	msg->msg_flags = (size_t)n > room ? MSG_TRUNC : 0;
	return (size_t)n > room && !(flags & MSG_TRUNC) ? (ssize_t)room : n;
}

ssize_t rread(int fd, void *buf, size_t len)
{
	return rrecv(fd, buf, len, 0);
}

ssize_t rreadv(int fd, const struct iovec *iov, int cnt)
{
	return cnt < 0 ? ur_rs_fail(EINVAL) : receive_vectors(fd, iov, (size_t)cnt, 0, NULL, NULL);
}
