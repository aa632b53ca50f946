/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <string.h>

/*
 * Ping-pong, one message under way in the whole session. A WRITE is answered by a WRITE: both ends
 * poll on the last byte in memory. A SEND or a WRITE with immediate data is answered in kind as
 * soon as its receive completes. READs and atomics are their own round trip.
 */
#define SPINS	256	     /* polls before the caller may do other work */
#define LOST_NS 100000000ull /* UC and UD: a message or its answer went missing */

static volatile uint8_t *last_byte(const struct perf_session *s, const struct perf_qp *q,
				   uint64_t ring)
{
	return q->mem + ring + s->params.size - 1;
}

static bool post_one(struct perf_session *s, struct perf_qp *q)
{
	return perf_bw_post(s, q, 1) == 1;
}

static unsigned answer_write(struct perf_session *s, struct perf_qp *q)
{
	uint8_t value = *last_byte(s, q, s->layout.wr);

	if (value == q->lat_seen)
		return 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*last_byte(s, q, s->layout.tx) = value;
	if (post_one(s, q))
		q->lat_seen = value;
	return 1;
}

/* The server answers a SEND at once; the client's loop looks at lat_rx. */
void perf_lat_receive(struct perf_session *s, struct perf_qp *q)
{
	q->lat_rx++;
	if (s->server)
		post_one(s, q);
}

static bool arrived(const struct perf_session *s, const struct perf_qp *q, uint64_t rx)
{
	if ((s->traits & PERF_T_FETCH) != 0)
		return q->tx_done == q->tx_next;
	if ((s->traits & PERF_T_RECV) != 0)
		return q->lat_rx != rx;
	return *last_byte(s, q, s->layout.wr) == (uint8_t)q->tx_next;
}

static bool begin_ping(struct perf_session *s, struct perf_qp *q)
{
	if (!s->sending || !q->up || q->tx_next == q->tx_limit)
		return false;
	if ((s->traits & (PERF_T_WRITE | PERF_T_RECV)) == PERF_T_WRITE)
		*last_byte(s, q, s->layout.tx) = (uint8_t)(q->tx_next + 1);
	s->lat_rx_before = q->lat_rx;
	s->lat_from_ns = s->now_ns = perf_now_ns();
	if (!post_one(s, q))
		s->lat_from_ns = 0;
	return s->lat_from_ns != 0;
}

static unsigned end_ping(struct perf_session *s)
{
	uint64_t ns = perf_now_ns() - s->lat_from_ns;

	s->lat_from_ns = 0;
	s->lat_qp = s->lat_qp + 1 == s->params.qps ? 0 : s->lat_qp + 1;
	perf_histogram_record(s->hist, (s->traits & PERF_T_FETCH) != 0 ? ns : ns / 2);
	return 1;
}

static unsigned client_step(struct perf_session *s)
{
	struct perf_qp *q = &s->qps[s->lat_qp];

	if (s->lat_from_ns == 0 && !begin_ping(s, q)) {
		s->lat_qp = s->lat_qp + 1 == s->params.qps ? 0 : s->lat_qp + 1;
		s->now_ns = perf_now_ns();
		return perf_traffic_poll(s);
	}
	for (unsigned i = 0; i < SPINS; i++) {
		if (arrived(s, q, s->lat_rx_before))
			return end_ping(s);
		perf_traffic_poll(s);
	}
	s->now_ns = perf_now_ns();
	if (s->lossy && s->now_ns - s->lat_from_ns > LOST_NS) {
		s->stats.missing++;
		s->lat_from_ns = 0;
	}
	return 0;
}

/* Polls for pings alone for a while: what the caller does between two polls adds latency. */
static unsigned server_step(struct perf_session *s)
{
	bool writes = (s->traits & (PERF_T_WRITE | PERF_T_RECV)) == PERF_T_WRITE;
	unsigned n = 0;

	for (unsigned spin = 0; spin < SPINS && n == 0; spin++) {
		n = perf_traffic_poll(s);
		for (uint32_t i = 0; writes && i < s->params.qps; i++) {
			if (s->qps[i].up)
				n += answer_write(s, &s->qps[i]);
		}
	}
	return n;
}

unsigned perf_lat_step(struct perf_session *s)
{
	return s->server ? server_step(s) : client_step(s);
}
