/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <unistd.h>

#include "rsocket/dgram.h"
#include "rsocket/post.h"

#define BATCH	16 /* completions */
#define BATCHES 64 /* in one call, so that no peer keeps it from returning */

/* ---- the end ---- */

bool ur_rs_is_up(const struct ur_rs *rs)
{
	return rs->state == UR_RS_CONNECTED || rs->state == UR_RS_ACCEPTING;
}

/* Whether the peer has all data. */
static bool is_acknowledged(const struct ur_rs *rs)
{
	return !rs->link.lost && ur_rs_is_idle(rs);
}

void ur_rs_end(struct ur_rs *rs, int why)
{
	if (!ur_rs_is_up(rs))
		return;
	rs->state = UR_RS_ENDED;
	/* A peer may go when both ends have what the other one has sent. */
	if (why && !rs->error && !(rs->eof && is_acknowledged(rs)))
		rs->error = why;
	ur_rs_wake(rs, UR_RS_WANT_RX | UR_RS_WANT_TX);
}

/* RSOCKET-HOSTILE-01. The peer breaks the protocol: its connection ends, and with the queue pair its rights. */
static void reset(struct ur_rs *rs)
{
	ur_rs_end(rs, ECONNRESET);
	rs->error = ECONNRESET; /* after its end, too */
	rdma_disconnect(rs->id);
}

/* ---- messages ---- */

/* False: it must not do that. */
static bool take_data(struct ur_rs *rs, uint32_t bytes)
{
	if (rs->eof || !ur_rs_rx_data(&rs->link.rx, bytes))
		return false;
	ur_rs_wake(rs, UR_RS_WANT_RX);
	return true;
}

static void take_control(struct ur_rs *rs, uint32_t what)
{
	if (what != UR_RS_DISCONNECT && what != UR_RS_SHUTDOWN)
		return;
	rs->eof = true;
	/* After its shutdown and ours what this end has sent may still be under way. */
	if (what == UR_RS_DISCONNECT)
		ur_rs_end(rs, 0);
	ur_rs_wake(rs, UR_RS_WANT_RX);
}

static bool take_credit(struct ur_rs *rs, uint32_t value, uint32_t written)
{
	if (written >= UR_RS_SGE_BYTES)
		rs->link.targets_due++;
	ur_rs_wake(rs, UR_RS_WANT_TX);
	return ur_rs_tx_credit(&rs->link.tx, value);
}

/* written: bytes of memory, as this end's endpoint says. */
static bool take_message(struct ur_rs *rs, uint32_t word, uint32_t written)
{
	uint32_t value = ur_rs_value(word);

	switch (ur_rs_kind(word)) {
	case UR_RS_DATA:
		return take_data(rs, value);
	case UR_RS_CREDIT:
		return take_credit(rs, value, written);
	case UR_RS_MAP:
		return value < rs->opt.maps && ur_rs_rx_count(&rs->link.rx);
	case UR_RS_CONTROL:
		take_control(rs, value);
		return true;
	default:
		return false;
	}
}

/* ---- completions ---- */

static int errno_of(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET;
}

/* What comes behind the first error was flushed, and says nothing. */
static void take_failed(struct ur_rs_link *l, const struct ibv_wc *wc, bool control)
{
	if (!l->broken)
		l->broken = errno_of(wc->status);
	if (!control)
		l->lost = true;
}

static void take_sent(struct ur_rs *rs, const struct ibv_wc *wc)
{
	struct ur_rs_link *l = &rs->link;
	unsigned kind = wc->wr_id >> 32;
	uint32_t value = (uint32_t)wc->wr_id;
	bool control = kind == UR_RS_CONTROL || kind == UR_RS_CREDIT;

	if (control) {
		l->controls++;
	} else {
		l->slots++;
		l->busy -= value;
	}
	if (wc->status != IBV_WC_SUCCESS)
		take_failed(l, wc, control);
	else if (kind == UR_RS_CONTROL && value == UR_RS_DISCONNECT)
		ur_rs_end(rs, 0);
}

static void poll_sent(struct ur_rs *rs)
{
	struct ibv_wc wc[BATCH];
	int n;

	do {
		n = ibv_poll_cq(rs->link.send_cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			take_sent(rs, &wc[i]);
		if (n > 0)
			ur_rs_wake(rs, UR_RS_WANT_TX);
	} while (n == BATCH);
}

/* Receives are flushed behind what was being sent, so the cause is known, even if nobody waits for room. */
static void take_flushed(struct ur_rs *rs)
{
	poll_sent(rs);
	ur_rs_end(rs, rs->link.broken ? rs->link.broken : ECONNRESET);
}

static void take_received(struct ur_rs *rs, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		take_flushed(rs);
		return;
	}
	if (rs->state == UR_RS_ACCEPTING)
		ur_rs_confirm(rs);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    !take_message(rs, ntohl(wc->imm_data), wc->byte_len))
		reset(rs);
}

/* True: there may be more. After an error of sending there is no end of the peer's messages but that of the receives. */
static bool poll_received(struct ur_rs *rs)
{
	struct ibv_wc wc[BATCH];
	int n, batches = 0;

	do {
		n = ibv_poll_cq(rs->link.recv_cq, BATCH, wc);
		for (int i = 0; i < n && rs->state != UR_RS_ENDED; i++)
			take_received(rs, &wc[i]);
		if (n > 0 && rs->state != UR_RS_ENDED && !rs->link.broken &&
		    ur_rs_post_receives(&rs->link, (uint32_t)n))
			rs->link.broken = ECONNRESET;
	} while (n == BATCH && ++batches < BATCHES);
	return n == BATCH && rs->state != UR_RS_ENDED;
}

/*
 * RSOCKET-LOSS-01. What the peer has said before counts: it may have ended in order. If it was a post that failed, the queue pair still works, and
 * rdma_disconnect() stops it.
 */
void ur_rs_lose(struct ur_rs *rs, int why)
{
	if (!rs->link.broken)
		rs->link.broken = why;
	rdma_disconnect(rs->id);
	poll_sent(rs);
	while (poll_received(rs))
		;
	ur_rs_end(rs, rs->link.broken);
}

/* Whether it is time to look for what was sent, although nobody waits for that. */
static bool is_short(const struct ur_rs *rs)
{
	const struct ur_rs_link *l = &rs->link;

	return l->slots < rs->opt.sq_depth / 2 || l->busy > rs->opt.send_bytes / 2 || !l->controls;
}

/*
 * RSOCKET-TARGET-01. The peer's next buffer, once the one before is full. An entry counts when its message has arrived: until then it
 * may be there in part, in an order that depends on the processor. It is copied, because the peer can change it.
 */
static void take_target(struct ur_rs_link *l)
{
	struct ur_rs_sge *e = &l->targets[l->next_target];

	if (l->tx.target.bytes || !l->targets_due)
		return;
	l->targets_due--;
	l->tx.target.addr = __atomic_load_n(&e->addr, __ATOMIC_RELAXED);
	l->tx.target.key = __atomic_load_n(&e->key, __ATOMIC_RELAXED);
	l->tx.target.bytes = __atomic_load_n(&e->bytes, __ATOMIC_RELAXED);
	l->next_target = (l->next_target + 1) % UR_RS_TARGETS;
}

bool ur_rs_progress(struct ur_rs *rs, unsigned want)
{
	bool more;

	if (rs->udp) {
		ur_rs_udp_progress(rs);
		return false;
	}
	if (rs->state == UR_RS_LISTENING)
		ur_rs_fetch_request(rs);
	else if (ur_rs_is_opening(rs))
		ur_rs_drive(rs);
	if (!ur_rs_is_up(rs))
		return false;
	more = poll_received(rs);
	if ((want & UR_RS_WANT_TX || rs->waiting_tx || is_short(rs)) && ur_rs_is_up(rs))
		poll_sent(rs);
	if (rs->link.broken && ur_rs_is_up(rs)) {
		ur_rs_lose(rs, rs->link.broken);
		return false;
	}
	take_target(&rs->link);
	ur_rs_grant(rs);
	return more;
}

/* ---- waking ---- */

/* A queue whose event is fetched has to be armed again, or a thread that waits for it would sleep on. */
void ur_rs_arm(struct ur_rs *rs, unsigned want)
{
	struct ur_rs_link *l = &rs->link;
	struct ibv_cq *cq;
	void *context;

	if (rs->udp)
		ur_rs_udp_arm(rs);
	if (!ur_rs_is_up(rs))
		return;
	while (!ibv_get_cq_event(l->comp, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(l->recv_cq, 0);
	if (want & UR_RS_WANT_TX || rs->waiting_tx)
		ibv_req_notify_cq(l->send_cq, 0);
}

/* Each thread that slept when it was called notes that it is awake; the last one empties the descriptor. */
void ur_rs_wake(struct ur_rs *rs, unsigned what)
{
	uint64_t one = 1;

	if (!(what & UR_RS_WANT_RX && rs->waiting_rx) && !(what & UR_RS_WANT_TX && rs->waiting_tx))
		return;
	rs->wakes++;
	rs->to_wake = rs->sleepers;
	if (!rs->woken && write(rs->fd, &one, sizeof(one)) == sizeof(one))
		rs->woken = true;
}

uint32_t ur_rs_begin_sleep(struct ur_rs *rs, unsigned want)
{
	rs->sleepers++;
	rs->waiting_rx += want & UR_RS_WANT_RX ? 1 : 0;
	rs->waiting_tx += want & UR_RS_WANT_TX ? 1 : 0;
	return rs->wakes;
}

void ur_rs_end_sleep(struct ur_rs *rs, unsigned want, uint32_t wakes)
{
	uint64_t count;

	rs->sleepers--;
	rs->waiting_rx -= want & UR_RS_WANT_RX ? 1 : 0;
	rs->waiting_tx -= want & UR_RS_WANT_TX ? 1 : 0;
	if (rs->wakes != wakes)
		rs->to_wake--;
	if (rs->woken && !rs->to_wake && read(rs->fd, &count, sizeof(count)) > 0)
		rs->woken = false;
}
