/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rsocket/iov.h"
#include "rsocket/post.h"

/* ---- this end's buffers, for the peer's riowrite() ---- */

static bool has_index(const struct ur_rs *rs, int index)
{
	const struct ur_rs_mapping *m;

	TAILQ_FOREACH(m, &rs->mappings, link)
	if (m->index == index)
		return true;
	return false;
}

/* The first entry of the peer's table that no mapping has; -1: none. */
static int free_index(const struct ur_rs *rs)
{
	for (uint32_t i = 0; i < rs->link.peer_maps.bytes; i++)
		if (!has_index(rs, (int)i))
			return (int)i;
	return -1;
}

static int map(struct ur_rs *rs, void *buf, size_t len, bool remote, uint64_t offset)
{
	struct ur_rs_mapping *m;
	int index = -1;

	if (!rs->link.qp || len > UINT32_MAX)
		return EINVAL;
	if (remote && (index = free_index(rs)) < 0)
		return ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ENOMEM;
	m->mr = ibv_reg_mr(rs->id->pd, buf, len,
			   IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!m->mr) {
		int rc = errno;

		free(m);
		return rc;
	}
	m->index = index;
	m->offset = offset;
	m->sent = !remote;
	rs->mappings_due = rs->mappings_due || remote;
	TAILQ_INSERT_TAIL(&rs->mappings, m, link);
	return 0;
}

off_t riomap(int fd, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct ur_rs_call c;
	int rc;

	(void)flags;
	if (prot & ~PROT_WRITE)
		return ur_rs_fail(EINVAL);
	if (!ur_rs_enter(&c, fd))
		return -1;
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	rc = map(c.rs, buf, len, prot & PROT_WRITE, (uint64_t)offset);
	return ur_rs_leave(&c, rc) ? -1 : offset;
}

static void drop(struct ur_rs *rs, struct ur_rs_mapping *m)
{
	TAILQ_REMOVE(&rs->mappings, m, link);
	ibv_dereg_mr(m->mr);
	free(m);
}

void ur_rs_drop_mappings(struct ur_rs *rs)
{
	struct ur_rs_mapping *m;

	while ((m = TAILQ_FIRST(&rs->mappings)))
		drop(rs, m);
}

/* The peer is not told; what it writes there ends the connection. */
int riounmap(int fd, void *buf, size_t len)
{
	struct ur_rs_mapping *m;
	struct ur_rs_call c;

	if (!ur_rs_enter(&c, fd))
		return -1;
	TAILQ_FOREACH(m, &c.rs->mappings, link)
	if (m->mr->addr == buf && m->mr->length == len)
		break;
	if (m)
		drop(c.rs, m);
	return ur_rs_leave(&c, m ? 0 : EINVAL);
}

static bool may_send_map(const struct ur_rs *rs)
{
	return rs->state != UR_RS_CONNECTED || rs->shut_wr ||
	       (ur_rs_has_room(rs) && ur_rs_tx_has_credit(&rs->link.tx));
}

static struct ur_rs_mapping *first_unsent(struct ur_rs *rs)
{
	struct ur_rs_mapping *m;

	TAILQ_FOREACH(m, &rs->mappings, link)
	if (!m->sent)
		return m;
	return NULL;
}

int ur_rs_send_mappings(struct ur_rs_call *c, bool nonblock)
{
	struct ur_rs *rs = c->rs;
	struct ur_rs_mapping *m;
	int rc;

	while (rs->mappings_due) {
		rc = ur_rs_wait(c, UR_RS_WANT_TX, may_send_map, nonblock, rs->opt.send_ms);
		if (!rc)
			rc = ur_rs_write_error(rs, true);
		if (rc)
			return rc;
		m = first_unsent(rs);
		if (m) {
			ur_rs_post_map(rs, m);
			m->sent = true;
		}
		rs->mappings_due = m;
	}
	return 0;
}

/* ---- the peer's buffers ---- */

/*
 * RSOCKET-MAP-01. The buffer at that offset, and what of it lies behind; bytes 0: none. The peer may change the table at any time, so
 * the entry is copied before it is judged.
 */
static struct ur_rs_sge find_mapped(const struct ur_rs *rs, uint64_t offset)
{
	for (uint32_t i = 0; i < rs->opt.maps; i++) {
		volatile const struct ur_rs_map *e = &rs->link.maps[i];
		uint64_t skip = offset - e->offset;
		struct ur_rs_sge p = {e->sge.addr, e->sge.key, e->sge.bytes};

		if (skip < p.bytes)
			return (struct ur_rs_sge){p.addr + skip, p.key, p.bytes - (uint32_t)skip};
	}
	return (struct ur_rs_sge){0};
}

static bool may_write_direct(const struct ur_rs *rs)
{
	return rs->state != UR_RS_CONNECTED || rs->shut_wr || ur_rs_has_room(rs);
}

/* EINVAL: nothing is mapped there. */
static int write_piece(struct ur_rs_call *c, struct ur_rs_iov *v, uint64_t offset, uint32_t *step,
		       bool nonblock)
{
	struct ur_rs *rs = c->rs;
	struct ur_rs_sge to;
	uint32_t piece;
	int rc = ur_rs_wait(c, UR_RS_WANT_TX, may_write_direct, nonblock, rs->opt.send_ms);

	if (!rc)
		rc = ur_rs_write_error(rs, !*step);
	if (rc)
		return rc;
	to = find_mapped(rs, offset);
	rc = to.bytes ? ur_rs_copy_piece(c, v, to.bytes, step, &piece) : EINVAL;
	if (!rc)
		ur_rs_post_direct(rs, piece, to.addr, to.key);
	return rc;
}

size_t riowrite(int fd, const void *buf, size_t count, off_t offset, int flags)
{
	struct iovec one = {(void *)(uintptr_t)buf, count};
	struct ur_rs_call c;
	struct ur_rs_iov v;
	uint32_t step = 0;
	bool nonblock;
	int rc = ur_rs_iov(&one, 1, &v);

	if (rc)
		return (size_t)ur_rs_fail(rc);
	if (!ur_rs_enter(&c, fd))
		return (size_t)-1;
	nonblock = c.rs->fd_flags & O_NONBLOCK || flags & MSG_DONTWAIT;
	rc = c.rs->udp ? EOPNOTSUPP : ur_rs_take_direction(&c, &c.rs->send_lock, nonblock);
	if (!rc)
		rc = ur_rs_wait_connected(&c, nonblock, c.rs->opt.send_ms);
	if (!rc)
		rc = ur_rs_send_mappings(&c, nonblock);
	while (!rc && v.bytes)
		rc = write_piece(&c, &v, (uint64_t)offset + (count - v.bytes), &step, nonblock);
	return (size_t)ur_rs_leave_with(&c, rc, count - v.bytes);
}
