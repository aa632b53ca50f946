/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipe.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "wire/roce.h"

#define AHEAD	   8	      /* frames between the prefetch of a frame and its use */
#define IDLE_CHECK (1u << 14) /* idle calls between two checks of clock and link */
#define PATIENCE_S 20	      /* until a peer that stands still is given up */

/* ---- the port ---- */

/* Called when nothing has moved. Returns as pipe_send_control(). */
static int idle(struct pipe *p)
{
	uint64_t now;

	if (*p->stop)
		return -1;
	if (++p->idle % IDLE_CHECK)
		return 0;
	now = rte_rdtsc();
	if (p->idle == IDLE_CHECK)
		p->idle_since = now;
	if (!port_has_link()) {
		p->why = "the other end has left";
		return -1;
	}
	if (now - p->idle_since > PATIENCE_S * rte_get_tsc_hz()) {
		p->why = "the other end has not moved for 20 s";
		return -1;
	}
	return 0;
}

/* Transmits n frames. Returns as pipe_send_control(). */
static int push(struct pipe *p, struct rte_mbuf **m, unsigned n)
{
	unsigned done = 0;

	while (done < n) {
		uint16_t taken = rte_eth_tx_burst(PORT_ID, 0, m + done, (uint16_t)(n - done));

		done += taken;
		if (taken) {
			p->idle = 0;
		} else if (idle(p)) {
			rte_pktmbuf_free_bulk(m + done, n - done);
			return -1;
		}
	}
	return 0;
}

int pipe_send_control(struct pipe *p, enum pipe_kind kind, const void *body, uint32_t len)
{
	struct rte_mbuf *m;

	while (!(m = pipe_build_control(p, kind, body, len)))
		if (idle(p))
			return -1;
	return push(p, &m, 1);
}

/* Sends at most `n` data frames. Returns how many, or -1 as push(). */
static int send_data(struct pipe *p, uint64_t n)
{
	struct rte_mbuf *m[PIPE_BURST];
	unsigned cnt = n < PIPE_BURST ? (unsigned)n : PIPE_BURST;

	if (cnt == 0 || !pipe_build_data(p, m, cnt))
		return 0;
	return push(p, m, cnt) ? -1 : (int)cnt;
}

/* ---- frames that arrive ---- */

static void note_ack(struct pipe *p, const struct rte_mbuf *m)
{
	uint32_t count, more;

	if (!pipe_read_control(m, &count, sizeof(count))) {
		p->found.strange++;
		return;
	}
	more = count - (uint32_t)p->acked;
	if (more > p->sent - p->acked) {
		p->found.strange++;
		return;
	}
	p->acked += more;
	p->acks++;
}

/* The first one is for the caller of pipe_receive(); it is repeated when the answer is late. */
static int take_hello(struct pipe *p, const struct rte_mbuf *m)
{
	if (p->greeted)
		return pipe_send_control(p, PIPE_READY, NULL, 0);
	p->greeted = pipe_read_control(m, &p->attr, sizeof(p->attr));
	return 0;
}

/* Control frames are noted, and a late HELLO is answered. -1: as push(). */
static int take_control(struct pipe *p, const struct rte_mbuf *m)
{
	if (!pipe_frame_ok(p, m))
		return 0;
	switch (pipe_frame_kind(m)) {
	case PIPE_ACK:
		note_ack(p, m);
		return 0;
	case PIPE_REQUEST:
		p->found.requests++;
		return 0;
	case PIPE_DONE:
		p->ended = pipe_read_control(m, &p->peer_found, sizeof(p->peer_found));
		return 0;
	case PIPE_END:
		p->ended = true;
		return 0;
	case PIPE_HELLO:
		return take_hello(p, m);
	case PIPE_READY:
		p->greeted = true;
		return 0;
	case PIPE_DATA:
		break;
	}
	p->found.strange++;
	return 0;
}

int pipe_receive(struct pipe *p)
{
	struct rte_mbuf *m[PIPE_BURST];
	uint16_t n = rte_eth_rx_burst(PORT_ID, 0, m, PIPE_BURST);
	uint64_t before = p->found.frames;
	int rc = 0;

	for (unsigned i = 0; i < n && i < AHEAD; i++)
		pipe_prefetch(m[i]);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n)
			pipe_prefetch(m[i + AHEAD]);
		if (pipe_frame_kind(m[i]) == PIPE_DATA)
			pipe_take_data(p, m[i]);
		else
			rc |= take_control(p, m[i]);
	}
	if (n) {
		rte_pktmbuf_free_bulk(m, n);
		p->unacked += p->found.frames - before;
		p->idle = 0;
	}
	return rc ? -1 : n;
}

/* The ACK of all data frames that have arrived. */
static struct rte_mbuf *build_ack(struct pipe *p)
{
	uint32_t count = (uint32_t)p->found.frames;
	struct rte_mbuf *m = pipe_build_control(p, PIPE_ACK, &count, sizeof(count));

	if (m)
		p->unacked = 0;
	return m;
}

/* ---- the measured interval ---- */

/* True while another message may be begun, with `done` completed so far. */
static bool keeps_going(struct pipe *p, uint64_t begun, uint64_t done)
{
	const struct pipe_limits *l = &p->limits;
	uint64_t now;

	if (*p->stop)
		return false;
	if (l->messages)
		return begun < l->messages;
	now = rte_rdtsc();
	if (!p->to && now - p->from >= l->warmup) {
		p->from = now;
		p->to = now + l->duration;
		p->done_from = done;
	}
	return !p->to || now < p->to;
}

static void start_clock(struct pipe *p)
{
	p->from = rte_rdtsc();
	p->to = p->done_from = 0;
}

static void stop_clock(struct pipe *p, uint64_t done)
{
	p->to = rte_rdtsc();
	p->done_to = done;
}

/* ---- WRITE: data one way, ACKs the other ---- */

static uint64_t messages_of(const struct pipe *p, uint64_t frames)
{
	return frames / p->frames_per_message;
}

/* Frames that may be sent: as far as the window is open. */
static uint64_t send_room(const struct pipe *p)
{
	uint64_t n = p->attr.window - (p->sent - p->acked);
	uint64_t left = p->limits.messages * p->frames_per_message - p->sent;

	return p->limits.messages && left < n ? left : n;
}

static int write_client(struct pipe *p)
{
	start_clock(p);
	while (keeps_going(p, messages_of(p, p->sent), messages_of(p, p->acked))) {
		int got = pipe_receive(p);
		int put = got < 0 ? -1 : send_data(p, send_room(p));

		if (put < 0 || (got + put == 0 && idle(p)))
			return -1;
	}
	stop_clock(p, messages_of(p, p->acked));
	return *p->stop ? -1 : 0;
}

static int write_server(struct pipe *p)
{
	while (!p->ended) {
		int got = pipe_receive(p);

		if (got > 0 && p->unacked >= p->attr.ack_every) {
			struct rte_mbuf *m = build_ack(p);

			if (m && push(p, &m, 1))
				return -1;
		}
		if (got < 0 || (got == 0 && idle(p)))
			return -1;
	}
	return 0;
}

/* ---- READ: requests one way, data the other ---- */

/* Asks for as many messages as may be outstanding. Returns how many, or -1 as push(). */
static int request(struct pipe *p, uint64_t completed)
{
	static const uint8_t reth[UR_RETH_BYTES];
	struct rte_mbuf *m[PIPE_BURST];
	uint64_t room = p->attr.outstanding - (p->requested - completed);
	uint64_t left = p->limits.messages - p->requested;
	unsigned n = 0;

	if (p->limits.messages && left < room)
		room = left;
	while (n < room && n < PIPE_BURST &&
	       (m[n] = pipe_build_control(p, PIPE_REQUEST, reth, sizeof(reth))))
		n++;
	p->requested += n;
	return n && push(p, m, n) ? -1 : (int)n;
}

static int read_client(struct pipe *p)
{
	uint64_t completed = 0;
	bool going = true;

	start_clock(p);
	while (going || completed < p->requested) {
		int got, put = 0;

		if (going && !keeps_going(p, p->requested, completed)) {
			going = false;
			stop_clock(p, completed);
		}
		if (going)
			put = request(p, completed);
		got = put < 0 ? -1 : pipe_receive(p);
		if (got < 0 || (got + put == 0 && idle(p)))
			return -1;
		completed = messages_of(p, p->found.frames);
	}
	return *p->stop ? -1 : 0;
}

static int read_server(struct pipe *p)
{
	while (!p->ended) {
		int got = pipe_receive(p), put;
		uint64_t owed = p->found.requests * p->frames_per_message - p->sent;

		put = got < 0 ? -1 : send_data(p, owed);
		if (put < 0 || (got + put == 0 && idle(p)))
			return -1;
	}
	return 0;
}

/* ---- half round trips ---- */

/* A message and, behind it, the ACK of what has arrived: the ACK is on no critical path. */
static int send_with_ack(struct pipe *p)
{
	struct rte_mbuf *m[2];
	unsigned n = 1;

	while (!pipe_build_data(p, m, 1))
		if (idle(p))
			return -1;
	if (p->unacked && (m[1] = build_ack(p)))
		n = 2;
	return push(p, m, n);
}

static int wait_for_data(struct pipe *p, uint64_t frames)
{
	while (p->found.frames < frames) {
		int got = pipe_receive(p);

		if (got < 0 || (got == 0 && idle(p)))
			return -1;
	}
	return 0;
}

static int pingpong_client(struct pipe *p)
{
	double ns = 1e9 / (double)rte_get_tsc_hz();

	start_clock(p);
	while (keeps_going(p, p->sent, p->found.frames)) {
		uint64_t from = rte_rdtsc();

		if (send_with_ack(p) || wait_for_data(p, p->sent))
			return -1;
		if (p->to || p->limits.messages)
			perf_histogram_record(&p->halves,
					      (uint64_t)((double)(rte_rdtsc() - from) * ns / 2));
	}
	stop_clock(p, p->found.frames);
	return *p->stop ? -1 : 0;
}

static int pingpong_server(struct pipe *p)
{
	while (!p->ended) {
		int got = pipe_receive(p);

		while (p->sent < p->found.frames)
			if (send_with_ack(p))
				return -1;
		if (got < 0 || (got == 0 && idle(p)))
			return -1;
	}
	return 0;
}

/* ---- both ---- */

/* Without a time limit, the interval ends when the other end has handled everything. */
static int end_run(struct pipe *p)
{
	if (pipe_send_control(p, PIPE_END, NULL, 0))
		return -1;
	while (!p->ended) {
		int got = pipe_receive(p);

		if (got < 0 || (got == 0 && idle(p)))
			return -1;
	}
	if (p->limits.messages)
		stop_clock(p, p->limits.messages);
	return 0;
}

int pipe_run_client(struct pipe *p)
{
	static int (*const run[])(struct pipe *) = {write_client, read_client, pingpong_client};

	return run[p->attr.mode](p) || end_run(p) ? -1 : 0;
}

int pipe_run_server(struct pipe *p)
{
	static int (*const run[])(struct pipe *) = {write_server, read_server, pingpong_server};

	if (run[p->attr.mode](p))
		return -1;
	return pipe_send_control(p, PIPE_DONE, &p->found, sizeof(p->found));
}
