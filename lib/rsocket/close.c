/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>

#include "rsocket/dgram.h"
#include "rsocket/post.h"
#include "thread/thread.h"

static bool is_sent(const struct ur_rs *rs)
{
	return rs->state != UR_RS_CONNECTED ||
	       (ur_rs_is_idle(rs) && rs->link.controls == UR_RS_CONTROLS);
}

static bool may_send_control(const struct ur_rs *rs)
{
	return rs->state != UR_RS_CONNECTED || rs->link.controls;
}

/*
 * What was written is under way; a program that ends now would take it along. So this waits until the peer has it, which needs
 * nothing of the peer's program. It also waits for what another thread has said: rclose() sends that thread away.
 */
static void send_control(struct ur_rs_call *c, enum ur_rs_control what, int linger_ms)
{
	struct ur_rs *rs = c->rs;

	if (ur_rs_wait(c, UR_RS_WANT_TX, may_send_control, false, linger_ms) ||
	    rs->state != UR_RS_CONNECTED)
		return;
	if (!rs->sent_disconnect)
		ur_rs_post_control(rs, what);
	ur_rs_wait(c, UR_RS_WANT_TX, is_sent, false, linger_ms);
}

/* RSOCKET-CLOSE-01 */
static void shut(struct ur_rs_call *c, bool rd, bool wr, int linger_ms)
{
	struct ur_rs *rs = c->rs;
	bool is_new = wr && !rs->shut_wr;

	rs->shut_rd = rs->shut_rd || rd;
	rs->shut_wr = rs->shut_wr || wr;
	ur_rs_wake(rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
	if (rs->shut_wr && (rs->shut_rd || rs->eof))
		send_control(c, UR_RS_DISCONNECT, linger_ms);
	else if (is_new)
		send_control(c, UR_RS_SHUTDOWN, linger_ms);
}

int rshutdown(int fd, int how)
{
	struct ur_rs_call c;
	int rc = 0;

	if (!ur_rs_enter(&c, fd))
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		rc = EINVAL;
	if (c.rs->udp && !rc) {
		c.rs->shut_rd = c.rs->shut_rd || how != SHUT_WR;
		c.rs->shut_wr = c.rs->shut_wr || how != SHUT_RD;
		ur_rs_wake(c.rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
		return ur_rs_leave(&c, 0);
	}
	if (!rc && c.rs->state == UR_RS_ACCEPTING)
		ur_rs_wait(&c, UR_RS_WANT_TX, ur_rs_is_decided, false, UR_RS_LINGER_MS);
	ur_rs_progress(c.rs, 0);
	if (!rc && c.rs->state != UR_RS_CONNECTED && c.rs->state != UR_RS_ENDED)
		rc = ENOTCONN;
	if (!rc)
		shut(&c, how != SHUT_WR, how != SHUT_RD, UR_RS_LINGER_MS);
	return ur_rs_leave(&c, rc);
}

/* 0: as with TCP, the connection is to be reset. */
static int linger_ms(const struct ur_rs *rs)
{
	const struct linger *l = &rs->opt.linger;

	if (!l->l_onoff)
		return UR_RS_LINGER_MS;
	/* As in Linux, a negative time is a very long one. */
	return l->l_linger < 0 || l->l_linger > INT_MAX / 1000 ? INT_MAX : l->l_linger * 1000;
}

int rclose(int fd)
{
	struct ur_rs_call c = {.closing = true};
	int linger;

	if (ur_rs_forget(fd))
		return 0;
	c.cancel = ur_cancel_off();
	c.rs = ur_rs_withdraw(fd);
	if (!c.rs) {
		ur_cancel_restore(c.cancel);
		return -1;
	}
	pthread_mutex_lock(&c.rs->lock);
	c.rs->closed = true;
	ur_rs_wake(c.rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
	linger = linger_ms(c.rs);
	if (c.rs->udp) {
		ur_rs_udp_drain(&c);
		return ur_rs_leave(&c, 0);
	}
	if (linger && c.rs->state == UR_RS_ACCEPTING)
		ur_rs_wait(&c, UR_RS_WANT_TX, ur_rs_is_decided, false, linger);
	if (linger)
		shut(&c, true, true, linger);
	return ur_rs_leave(&c, 0);
}
