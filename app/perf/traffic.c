/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "srq.h"

#define AHEAD	    2 /* turns between a prefetch and its use */
#define LOST_ACK_NS 100000000ull

void perf_traffic_kick(struct perf_session *s, struct perf_qp *q)
{
	if (q->queued)
		return;
	q->queued = true;
	s->ready[s->ready_tail++ & s->ready_mask] = q->idx;
}

/* Receives. */

static void check_posted(struct perf_session *s, int rc)
{
	if (rc != 0)
		perf_session_fail(s, "cannot post a receive: %s", strerror(rc));
}

static void repost(struct perf_session *s, struct perf_qp *q)
{
	struct perf_rq *rq = &q->rq;
	uint32_t cnt = rq->pending_cnt, bytes = (uint32_t)s->layout.rx_bytes;
	struct ibv_recv_wr *bad;
	int rc;

	if (cnt == 0)
		return;
	rq->pending_cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		uint8_t *at = perf_session_rx_buffer(s, q->idx, rq->pending[i]);

		s->rx_sge[i] = (struct ibv_sge){(uintptr_t)at, bytes, s->mr->lkey};
		s->rx_wr[i].wr_id = perf_wr_id(PERF_WR_RX, q->idx, rq->pending[i]);
		s->rx_wr[i].sg_list = &s->rx_sge[i];
		s->rx_wr[i].num_sge = bytes != 0;
		s->rx_wr[i].next = i + 1 < cnt ? &s->rx_wr[i + 1] : NULL;
	}
	rc = uroce_post_recv(q->qp, s->rx_wr, &bad);
	if (!q->closing)
		check_posted(s, rc);
}

/* q: NULL only with an SRQ. */
static void give_back(struct perf_session *s, struct perf_qp *q, uint32_t slot)
{
	if (s->srq != NULL) {
		check_posted(s, perf_srq_give_back(s->srq, slot));
		return;
	}
	q->rq.pending[q->rq.pending_cnt++] = slot;
	if (q->rq.pending_cnt == PERF_BATCH || q->rq.pending_cnt * 4 >= s->params.rq_depth)
		repost(s, q);
}

/* Lets queue pairs whose think time is over send again. */
static void think_over(struct perf_session *s, uint64_t now_ns)
{
	while (s->think_head != s->think_tail) {
		const struct perf_thought *t = &s->thoughts[s->think_head & s->ready_mask];

		if (now_ns < t->until_ns)
			return;
		s->think_head++;
		perf_traffic_kick(s, &s->qps[t->idx]);
	}
}

/* The queue pair may send again, at once or later. */
static void go_on(struct perf_session *s, struct perf_qp *q)
{
	if (s->params.think_us == 0) {
		perf_traffic_kick(s, q);
		return;
	}
	s->thoughts[s->think_tail++ & s->ready_mask] =
		(struct perf_thought){perf_now_ns() + s->params.think_us * 1000, q->idx};
}

bool perf_session_arm_qp(struct perf_session *s, uint32_t idx)
{
	struct perf_qp *q = &s->qps[idx];

	for (uint32_t i = 0; perf_params_receives(&s->params) && s->srq == NULL &&
			     i < s->params.rq_depth && !s->failed;
	     i++) {
		q->rq.pending[q->rq.pending_cnt++] = i;
		if (q->rq.pending_cnt == PERF_BATCH || i + 1 == s->params.rq_depth)
			repost(s, q);
	}
	return !s->failed;
}

/* Sending. */

/* The peer frees the slots of WRITEs by writing how far it has checked. */
static uint64_t unacked_room(struct perf_session *s, struct perf_qp *q)
{
	uint64_t acked = le64toh(
		__atomic_load_n((uint64_t *)(void *)(q->mem + PERF_AT_ACK), __ATOMIC_ACQUIRE));

	if (acked > q->tx_acked && acked <= q->tx_next) {
		q->tx_acked = acked;
		q->tx_ack_ns = s->now_ns;
	} else if (s->lossy && q->tx_next - q->tx_acked == s->params.slots &&
		   q->tx_done == q->tx_next && s->now_ns - q->tx_ack_ns > LOST_ACK_NS) {
		/* UC lost all of a ring, or the acknowledgement: it is no longer read. */
		q->tx_acked = q->tx_next;
		q->tx_ack_ns = s->now_ns;
	}
	return s->params.slots - (q->tx_next - q->tx_acked);
}

uint32_t perf_traffic_room(struct perf_session *s, struct perf_qp *q)
{
	uint64_t room = perf_depth(s, q) - (q->tx_next - q->tx_done);
	uint64_t more;

	if (room > q->tx_limit - q->tx_next)
		room = q->tx_limit - q->tx_next;
	if (s->notify && room > 0 && (more = unacked_room(s, q)) < room)
		room = more;
	return room < PERF_BATCH ? (uint32_t)room : PERF_BATCH;
}

uint32_t perf_traffic_post(struct perf_session *s, struct perf_qp *q, uint32_t cnt)
{
	struct ibv_send_wr *bad = NULL;
	uint32_t taken = cnt;
	int rc;

	s->tx_wr[cnt - 1].next = NULL;
	rc = uroce_post_send(q->qp, s->tx_wr, &bad);
	s->tx_wr[cnt - 1].next = cnt < PERF_BATCH ? &s->tx_wr[cnt] : NULL;
	if (rc != 0)
		taken = bad != NULL ? (uint32_t)(bad - s->tx_wr) : 0;
	if (rc != 0 && rc != ENOMEM && !q->closing)
		perf_session_fail(s, "queue pair %u: cannot post a work request: %s", q->idx,
				  strerror(rc));
	s->in_flight += taken;
	return taken;
}

static uint32_t post(struct perf_session *s, struct perf_qp *q, uint32_t cnt)
{
	return s->params.verify || s->params.op == PERF_OP_SEND_INV ? perf_checked_post(s, q, cnt)
								    : perf_bw_post(s, q, cnt);
}

/* The queue pair whose turn comes soon. */
static void prefetch(const struct perf_session *s)
{
	if (s->ready_tail - s->ready_head > AHEAD)
		__builtin_prefetch(&s->qps[s->ready[(s->ready_head + AHEAD) & s->ready_mask]], 1);
}

/* Swaps the first queue pair that is ready with any of them. */
static void shuffle_head(struct perf_session *s)
{
	uint32_t cnt = s->ready_tail - s->ready_head, at, idx;

	s->order += PERF_PATTERN_STEP;
	at = s->ready_head + (uint32_t)((perf_mix64(s->order) >> 32) * cnt >> 32);
	idx = s->ready[at & s->ready_mask];
	s->ready[at & s->ready_mask] = s->ready[s->ready_head & s->ready_mask];
	s->ready[s->ready_head & s->ready_mask] = idx;
}

static unsigned send_step(struct perf_session *s)
{
	uint32_t turns = s->ready_tail - s->ready_head;
	unsigned posted = 0;

	while (turns-- > 0 && s->sending) {
		struct perf_qp *q;
		uint32_t room, n = 0;

		if (s->params.random_order)
			shuffle_head(s);
		q = &s->qps[s->ready[s->ready_head++ & s->ready_mask]];
		prefetch(s);
		q->queued = false;
		if (!q->up || q->paused || q->tx_next == q->tx_limit)
			continue;
		room = perf_traffic_room(s, q);
		if (room > 0)
			n = post(s, q, room);
		posted += n;
		/* Otherwise a completion will bring it back. */
		if (q->tx_next - q->tx_done < perf_depth(s, q) && !s->failed)
			perf_traffic_kick(s, q);
	}
	return posted;
}

bool perf_traffic_qp_drained(struct perf_session *s, struct perf_qp *q)
{
	if (!q->up || q->tx_next == q->tx_done)
		return true;
	/* Unsignaled messages complete only with a later signaled one. */
	if (q->tx_signaled != q->tx_next && !s->failed) {
		uint64_t limit = q->tx_limit;

		q->tx_limit = q->tx_next + 1;
		if (perf_traffic_room(s, q) > 0)
			post(s, q, 1);
		q->tx_limit = limit;
	}
	return false;
}

bool perf_traffic_drained(struct perf_session *s)
{
	bool drained = true;

	for (uint32_t i = 0; i < s->params.qps; i++)
		drained &= perf_traffic_qp_drained(s, &s->qps[i]);
	return drained;
}

bool perf_traffic_finished(const struct perf_session *s)
{
	return s->finished >= s->params.qps;
}

void perf_traffic_quiet(struct perf_session *s)
{
	s->sending = false;
}

/* Words that this end writes into the peer's memory: acknowledgements and grants. */

static bool write_word(struct perf_session *s, struct perf_qp *q, uint64_t offset, uint64_t value)
{
	uint64_t word = htole64(value);
	/* The peer writes its words to AT_ACK; grants travel one way only. */
	uint64_t at = offset == PERF_AT_ACK ? PERF_AT_ACK_OUT : offset;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
					 .wr_id = perf_wr_id(PERF_WR_ACK, q->idx, 0),
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .sg_list = &sge,
					 .num_sge = 1,
				 };
	int rc;

	/* A later value may overtake an earlier one without harm. */
	memcpy(q->mem + at, &word, sizeof(word));
	sge = (struct ibv_sge){(uintptr_t)q->mem + at, sizeof(word), s->mr->lkey};
	wr.wr.rdma.remote_addr = q->remote + offset;
	wr.wr.rdma.rkey = s->remote_rkey;
	rc = uroce_post_send(q->qp, &wr, &bad);
	if (rc == 0)
		q->acks_inflight++;
	else if (rc != ENOMEM && !q->closing)
		perf_session_fail(s, "queue pair %u: cannot acknowledge: %s", q->idx, strerror(rc));
	return rc == 0;
}

static void acknowledge(struct perf_session *s, struct perf_qp *q)
{
	if (q->rx_next - q->ack_sent < s->planner.window)
		return;
	if (q->acks_inflight >= PERF_ACKS_MAX) {
		q->ack_dirty = true;
		return;
	}
	q->ack_dirty = !write_word(s, q, PERF_AT_ACK, q->rx_next);
	if (!q->ack_dirty)
		q->ack_sent = q->rx_next;
}

void perf_grant(struct perf_session *s, struct perf_qp *q, uint32_t victim, uint64_t n)
{
	write_word(s, q, PERF_AT_GRANT + 8ull * victim, (n + 1) << 32 | q->victims[victim]->rkey);
}

uint32_t perf_granted(const struct perf_qp *q, uint64_t n)
{
	uint64_t at = PERF_AT_GRANT + 8 * (n & (PERF_GRANTS - 1));
	uint64_t word =
		le64toh(__atomic_load_n((uint64_t *)(void *)(q->mem + at), __ATOMIC_ACQUIRE));

	return (uint32_t)(word >> 32) == (uint32_t)(n + 1) ? (uint32_t)word : 0;
}

/* Completions. */

/* What a user may do about it. */
static const char *remedy_of(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR
		       ? "; the peer is gone, or too slow for what is outstanding: try a smaller --qps or --depth, "
			 "or --pacing auto"
		       : "";
}

static void failed_completion(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc)
{
	bool flushed = wc->status == IBV_WC_WR_FLUSH_ERR;

	if (s->srq != NULL && perf_wr_kind_of(wc->wr_id) == PERF_WR_RX)
		give_back(s, q, (uint32_t)wc->wr_id);
	if (flushed && (q->closing || perf_wr_kind_of(wc->wr_id) != PERF_WR_TX))
		return;
	if (!s->failed)
		perf_session_fail(s, "queue pair %u: message %llu of %s completed with: %s%s",
				  q->idx, (unsigned long long)q->tx_done,
				  perf_op_name((enum perf_op)s->params.op),
				  uroce_wc_status_str(wc->status), remedy_of(wc->status));
	else
		s->errors++;
	q->up = false;
}

static void sent(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc)
{
	uint64_t done = q->tx_done + (uint32_t)((uint32_t)wc->wr_id - (uint32_t)q->tx_done);
	uint64_t cnt = done - q->tx_done, bytes = s->stats.bytes;
	struct perf_sl_stats *sl = &s->stats.sl[q->share.sl];

	if (cnt == 0 || done > q->tx_next) {
		perf_session_fail(s,
				  "queue pair %u: a completion of message %llu, while only "
				  "[%llu, %llu) are outstanding",
				  q->idx, (unsigned long long)done - 1,
				  (unsigned long long)q->tx_done, (unsigned long long)q->tx_next);
		return;
	}
	if (s->stamps != NULL && s->params.mode != PERF_MODE_LAT && s->stats.end_ns == 0)
		perf_histogram_record(q->idx == s->ping ? s->ping_hist : s->hist,
				      s->now_ns - *perf_stamp(s, q, done - 1));
	if (s->params.verify || s->params.op == PERF_OP_SEND_INV)
		perf_checked_complete(s, q, wc, done);
	else if (q->idx != s->ping)
		s->stats.bytes += cnt * s->params.size;
	s->in_flight -= cnt;
	if (q->idx != s->ping) {
		s->stats.ops += cnt;
		sl->ops += cnt;
		sl->bytes += s->stats.bytes - bytes;
	}
	q->tx_done = done;
	if (done == q->tx_limit)
		s->finished++;
	else if (s->sending)
		go_on(s, q);
}

static void received(struct perf_session *s, struct perf_qp *q, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;

	s->stats.rx_messages++;
	s->stats.rx_bytes += wc->byte_len - (s->params.type == PERF_TYPE_UD ? PERF_GRH_BYTES : 0);
	if (s->params.verify || s->params.op == PERF_OP_SEND_INV)
		perf_checked_receive(s, q, wc, slot);
	if (s->params.service_us != 0)
		perf_srq_serve_later(s->srq, slot);
	else
		give_back(s, q, slot);
	if (s->notify)
		acknowledge(s, q);
	if (s->params.mode == PERF_MODE_LAT)
		perf_lat_receive(s, q);
}

static void complete(struct perf_session *s, const struct ibv_wc *wc)
{
	enum perf_wr_kind kind = perf_wr_kind_of(wc->wr_id);
	struct perf_qp *q = &s->qps[perf_wr_idx(wc->wr_id)];

	if (kind == PERF_WR_RX && s->srq != NULL) {
		q = perf_session_by_qpn(s, wc->qp_num);
		if (q == NULL) {
			if (wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_WR_FLUSH_ERR)
				give_back(s, NULL, (uint32_t)wc->wr_id);
			return;
		}
	}
	if (q->qp == NULL)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		failed_completion(s, q, wc);
		return;
	}
	switch (kind) {
	case PERF_WR_TX:
		sent(s, q, wc);
		break;
	case PERF_WR_RX:
		received(s, q, wc);
		break;
	case PERF_WR_ACK:
		q->acks_inflight--;
		if (q->ack_dirty)
			acknowledge(s, q);
		break;
	}
}

unsigned perf_traffic_poll(struct perf_session *s)
{
	struct ibv_wc wc[PERF_BATCH];
	unsigned total = 0;

	for (unsigned c = 0; c < s->cq_cnt; c++) {
		int n = uroce_poll_cq(s->cq[c], PERF_BATCH, wc);

		if (n < 0) {
			perf_session_fail(s, "a completion queue cannot be polled any more");
			return 0;
		}
		for (int i = 0; i < n; i++)
			complete(s, &wc[i]);
		total += (unsigned)n;
	}
	if (s->params.service_us != 0 && s->srq != NULL)
		check_posted(s, perf_srq_serve(s->srq));
	return total;
}

void perf_traffic_start(struct perf_session *s, bool sending)
{
	for (unsigned i = 0; i + 1 < PERF_BATCH; i++)
		s->tx_wr[i].next = &s->tx_wr[i + 1];
	if (s->srq != NULL)
		check_posted(s, perf_srq_arm(s->srq));
	perf_bw_start(s);
	s->sending = sending;
	for (uint32_t i = 0; i < s->params.qps; i++) {
		struct perf_qp *q = &s->qps[i];

		if (sending)
			perf_traffic_kick(s, q);
		for (uint32_t v = 0; v < q->victims_cnt; v++)
			perf_grant(s, q, v, v);
	}
}

static void count_in_flight(struct perf_session *s)
{
	struct perf_stats *t = &s->stats;

	if (t->end_ns != 0)
		return;
	t->steps++;
	t->in_flight_sum += s->in_flight;
	if (s->in_flight < t->in_flight_least)
		t->in_flight_least = s->in_flight;
}

static void note_pause(struct perf_session *s)
{
	struct perf_stats *t = &s->stats;
	uint64_t ns = s->now_ns - t->step_ns;

	t->step_ns = s->now_ns;
	if (t->end_ns != 0)
		return;
	if (ns > t->pause_ns)
		t->pause_ns = ns;
	if (ns >= 1000000)
		t->paused_ms += ns / 1000000;
}

unsigned perf_traffic_step(struct perf_session *s)
{
	unsigned n = 0;

	if (s->params.mode == PERF_MODE_LAT)
		return perf_lat_step(s);
	s->now_ns = perf_now_ns();
	note_pause(s);
	if (s->params.think_us != 0)
		think_over(s, s->now_ns);
	if (s->sending)
		n = send_step(s);
	count_in_flight(s);
	if (s->stamps != NULL)
		s->now_ns = perf_now_ns();
	return n + perf_traffic_poll(s);
}

void perf_traffic_sleep(struct perf_session *s)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
	uint64_t until = perf_now_ns() + 100000000ull;
	struct ibv_cq *cq;
	void *context;

	/* A word in memory makes no completion event: keep polling while one is awaited. */
	if (s->sending && s->ready_head != s->ready_tail)
		return;
	for (unsigned c = 0; c < s->cq_cnt; c++)
		uroce_req_notify_cq(s->cq[c], 0);
	if (perf_traffic_poll(s) > 0)
		return;
	/* In inline mode the descriptor becomes readable only by work that this thread does. */
	while (poll(&fd, 1, s->ep->inline_mode ? 0 : 100) == 0 && s->ep->inline_mode &&
	       perf_now_ns() < until)
		uroce_progress(s->ep->ctx);
	if ((fd.revents & POLLIN) != 0 && uroce_get_cq_event(s->channel, &cq, &context) == 0)
		uroce_ack_cq_events(cq, 1);
}
