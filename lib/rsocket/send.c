/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>

#include "rsocket/dgram.h"
#include "rsocket/post.h"

#define FIRST_PIECE                                                                                \
	2048 /* so that the peer begins while the rest is copied; then twice as much each time */

static uint32_t room(const struct ur_rs *rs)
{
	return rs->opt.send_bytes - rs->link.busy;
}

bool ur_rs_has_room(const struct ur_rs *rs)
{
	return rs->link.slots && room(rs) >= UR_RS_LOW_BYTES;
}

static bool can_send(const struct ur_rs *rs)
{
	return rs->state == UR_RS_CONNECTED && ur_rs_has_room(rs) &&
	       ur_rs_tx_has_credit(&rs->link.tx) && rs->link.tx.target.bytes;
}

bool ur_rs_may_write(const struct ur_rs *rs)
{
	return rs->state != UR_RS_CONNECTED || rs->shut_wr || can_send(rs);
}

int ur_rs_write_error(struct ur_rs *rs, bool tell)
{
	int rc = rs->error;

	if (rs->shut_wr)
		return EPIPE;
	if (rs->state == UR_RS_CONNECTED)
		return 0;
	if (!rc)
		rc = rs->reset_told ? EPIPE : ECONNRESET;
	if (tell && !ur_rs_take_error(rs))
		rs->reset_told = true;
	return rc;
}

/* To the ring's head. The lock may be given up meanwhile. */
static void copy_in(struct ur_rs_call *c, struct ur_rs_iov *v, uint32_t bytes)
{
	struct ur_rs_link *l = &c->rs->link;
	uint32_t first = ur_rs_ring_part(c->rs, bytes);
	bool unlock = bytes > UR_RS_COPY_LOCKED;

	/* Only the holder of send_lock moves the head, and what is behind it is free. */
	if (unlock)
		pthread_mutex_unlock(&c->rs->lock);
	ur_rs_iov_get(v, l->ring + l->head, first);
	ur_rs_iov_get(v, l->ring, bytes - first);
	if (unlock)
		pthread_mutex_lock(&c->rs->lock);
}

/* Bytes of the next WRITE: at most `left`, and what has room. */
static uint32_t next_piece(const struct ur_rs *rs, size_t left, uint32_t *step)
{
	uint32_t piece = *step ? *step : FIRST_PIECE;

	*step = piece < UR_RS_PIECE_MAX ? 2 * piece : UR_RS_PIECE_MAX;
	if (piece > left)
		piece = (uint32_t)left;
	return piece < room(rs) ? piece : room(rs);
}

int ur_rs_copy_piece(struct ur_rs_call *c, struct ur_rs_iov *v, uint32_t most, uint32_t *step,
		     uint32_t *piece)
{
	bool first = !*step;
	int rc;

	*piece = next_piece(c->rs, v->bytes, step);
	if (*piece > most)
		*piece = most;
	copy_in(c, v, *piece);
	rc = c->rs->closed ? EBADF : ur_rs_write_error(c->rs, first);
	if (rc)
		v->bytes += *piece; /* it will not be sent */
	return rc;
}

static int send_piece(struct ur_rs_call *c, struct ur_rs_iov *v, uint32_t *step, bool nonblock)
{
	struct ur_rs *rs = c->rs;
	uint32_t piece;
	int rc = ur_rs_wait(c, UR_RS_WANT_TX, ur_rs_may_write, nonblock, rs->opt.send_ms);

	if (!rc)
		rc = ur_rs_write_error(rs, !*step);
	if (!rc)
		rc = ur_rs_copy_piece(c, v, rs->link.tx.target.bytes, step, &piece);
	if (!rc)
		ur_rs_post_data(rs, piece);
	return rc;
}

static int begin(struct ur_rs_call *c, int flags, bool nonblock)
{
	int rc = flags & MSG_OOB ? EOPNOTSUPP : 0;

	if (!rc)
		rc = ur_rs_take_direction(c, &c->rs->send_lock, nonblock);
	if (!rc)
		rc = ur_rs_wait_connected(c, nonblock, c->rs->opt.send_ms);
	if (!rc)
		rc = ur_rs_write_error(c->rs, true);
	return rc;
}

static ssize_t send_all(int fd, struct ur_rs_iov *v, int flags, const struct sockaddr *to,
			socklen_t to_len)
{
	size_t bytes = v->bytes;
	struct ur_rs_call c;
	uint32_t step = 0;
	bool nonblock;
	int rc;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (c.rs->udp)
		return ur_rs_udp_send(&c, v, flags, to, to_len);
	nonblock = c.rs->fd_flags & O_NONBLOCK || flags & MSG_DONTWAIT;
	rc = begin(&c, flags, nonblock);
	if (!rc)
		rc = ur_rs_send_mappings(&c, nonblock);
	while (!rc && v->bytes)
		rc = send_piece(&c, v, &step, nonblock);
	return ur_rs_leave_with(&c, rc, bytes - v->bytes);
}

/* With a stream, as with TCP, an address is ignored. */
static ssize_t send_vectors(int fd, const struct iovec *iov, size_t cnt, int flags,
			    const struct sockaddr *to, socklen_t to_len)
{
	struct ur_rs_iov v;
	int rc = ur_rs_iov(iov, cnt, &v);

	return rc ? ur_rs_fail(rc) : send_all(fd, &v, flags, to, to_len);
}

ssize_t rsendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		socklen_t to_len)
{
	struct iovec one = {(void *)(uintptr_t)buf, len};

	return send_vectors(fd, &one, 1, flags, to, to_len);
}

ssize_t rsend(int fd, const void *buf, size_t len, int flags)
{
	return rsendto(fd, buf, len, flags, NULL, 0);
}

ssize_t rsendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen)
		return ur_rs_fail(EOPNOTSUPP);
	return send_vectors(fd, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
			    msg->msg_namelen);
}

ssize_t rwrite(int fd, const void *buf, size_t len)
{
	return rsend(fd, buf, len, 0);
}

ssize_t rwritev(int fd, const struct iovec *iov, int cnt)
{
	return cnt < 0 ? ur_rs_fail(EINVAL) : send_vectors(fd, iov, (size_t)cnt, 0, NULL, 0);
}
