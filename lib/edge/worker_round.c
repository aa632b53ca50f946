/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/worker_priv.h"

#include <rte_ether.h>
#include <rte_prefetch.h>
#include <rte_ring_elem.h>

#include "edge/cache.h"
#include "edge/impair_mbuf.h"
#include "wire/icrc.h"

#define HEADERS_AHEAD 6	 /* frames between a prefetch and its use: of headers, */
#define QPS_AHEAD     2	 /* and of what their queue pairs need */
#define BEHIND_ROUNDS 16 /* timers wait that long for what the port still holds */
#define VID_MASK      0xfff
#define EVICT_BYTES   1024 /* of a frame worth evicting: fewer lines are fetched while others are */

/* ---- receive ---- */

static bool is_ours(const struct ur_worker *w, const struct ur_gid *dst)
{
	for (unsigned i = 0; i < w->gid_cnt; i++)
		if (ur_gid_eq(dst, &w->gids[i]))
			return true;
	return false;
}

/*
 * EDGE-VLAN-01. A tag with VLAN id 0 carries a priority and names no VLAN. One that the driver took
 * off and that could not be put back is beside the frame.
 */
static bool is_our_vlan(const struct ur_worker *w, const struct ur_packet *p,
			const struct rte_mbuf *m)
{
	uint16_t tci = p->has_vlan ? p->vlan_tci : 0;

	if (__builtin_expect(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED, 0))
		tci = m->vlan_tci;
	return (tci & VID_MASK) == w->vid;
}

static void hand_over(struct ur_worker *w, unsigned to, struct rte_mbuf *m)
{
	if (rte_ring_mp_enqueue(w->peers[to]->handover, m)) {
		w->cnt_.handover_full++;
		rte_pktmbuf_free(m);
		return;
	}
	w->cnt_.handed_over++;
}

/* Frames that are not RoCEv2 belong to worker 0, which plays the kernel's part. */
static void other_frame(struct ur_worker *w, struct rte_mbuf *m, const uint8_t *frame, size_t len)
{
	if (w->idx) {
		hand_over(w, 0, m);
		return;
	}
	w->cnt_.other_frames++;
	ur_neigh_input(w->neigh, frame, len, w->now_ns);
	rte_pktmbuf_free(m);
}

static void input_frame(struct ur_worker *w, struct rte_mbuf *m)
{
	const uint8_t *frame;
	size_t len;
	struct ur_packet p;
	enum ur_drop drop;
	unsigned owner;

	if (__builtin_expect(m->nb_segs > 1, 0) && rte_pktmbuf_linearize(m)) {
		w->cnt_.no_mbuf++;
		rte_pktmbuf_free(m);
		return;
	}
	frame = rte_pktmbuf_mtod(m, const uint8_t *);
	len = rte_pktmbuf_data_len(m);
	drop = ur_packet_decode(frame, len, &p);
	if (drop == UR_DROP_NOT_ROCE) {
		other_frame(w, m, frame, len);
		return;
	}
	if (drop == UR_DROP_NONE && !is_ours(w, &p.ip.dst))
		drop = UR_DROP_DST_ADDR;
	if (drop == UR_DROP_NONE && !is_our_vlan(w, &p, m))
		drop = UR_DROP_VLAN;
	if (drop == UR_DROP_NONE && !ur_icrc_ok(frame, &p))
		drop = UR_DROP_ICRC;
	if (drop != UR_DROP_NONE) {
		w->cnt_.drops[drop]++;
		rte_pktmbuf_free(m);
		return;
	}
	owner = ur_qpn_worker(p.bth.dqpn, w->cnt);
	if (owner != w->idx) {
		hand_over(w, owner, m);
		return;
	}
	ur_engine_input(w->engine, &p, frame, w->now_ns);
	if (w->port->evict_rx && len >= EVICT_BYTES)
		ur_cache_evict(frame, len);
	rte_pktmbuf_free(m);
}

static void capture(struct ur_worker *w, struct rte_mbuf **pkts, unsigned n,
		    enum ur_capture_dir dir)
{
	struct ur_capture *c = ur_capture_enter(w->capture, w->idx);

	if (!c)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct iovec seg[8];
		unsigned cnt = 0;

		for (struct rte_mbuf *m = pkts[i]; m && cnt < 8; m = m->next)
			seg[cnt++] = (struct iovec){rte_pktmbuf_mtod(m, void *), m->data_len};
		ur_capture_segments(c, w->idx, seg, cnt, w->now_ns, dir);
	}
	ur_capture_leave(w->capture, w->idx);
}

static void prefetch_qp(const struct ur_worker *w, const struct rte_mbuf *m)
{
	ur_engine_prefetch(w->engine, rte_pktmbuf_mtod(m, const uint8_t *),
			   rte_pktmbuf_data_len(m));
}

static void input_burst(struct ur_worker *w, struct rte_mbuf **pkts, unsigned n)
{
	/* First the headers, then what they name, then the packets themselves. */
	for (unsigned i = 0; i < n + HEADERS_AHEAD; i++) {
		if (i < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
		if (i >= HEADERS_AHEAD - QPS_AHEAD && i < n + HEADERS_AHEAD - QPS_AHEAD)
			prefetch_qp(w, pkts[i - (HEADERS_AHEAD - QPS_AHEAD)]);
		if (i >= HEADERS_AHEAD)
			input_frame(w, pkts[i - HEADERS_AHEAD]);
	}
}

/* Some kernels take the 802.1Q tag out of the frame and tell it beside; everyone here wants it in.
 */
static void restore_tags(struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (__builtin_expect(pkts[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED, 0) &&
		    rte_vlan_insert(&pkts[i]) == 0)
			pkts[i]->ol_flags &= ~RTE_MBUF_F_RX_VLAN_STRIPPED;
}

/* A burst from the port; returns how many came. */
static unsigned receive_burst(struct ur_worker *w)
{
	struct rte_mbuf *pkts[BURST], *out[IMPAIR_BURST];
	unsigned n = ur_port_rx(w->port, w->idx, pkts, BURST), all = n;

	ur_worker_update_now(w);
	ur_engine_port_dry(w->engine, w->dry_ns);
	if (n < BURST)
		w->dry_ns = w->now_ns;
	w->cnt_.rx_frames += n;
	restore_tags(pkts, n);
	if (n)
		capture(w, pkts, n, UR_CAPTURE_RX);
	if (__builtin_expect(w->rx_impair != NULL, 0)) {
		n = ur_impair_burst(w->rx_impair, pkts, (uint16_t)n, out, IMPAIR_BURST, w->now_ns);
		input_burst(w, out, n);
	} else {
		input_burst(w, pkts, n);
	}
	return all;
}

/*
 * As much as a round can send, else ACKs of many queue pairs would wait in the peer while their
 * timers run, and a loop back to ourselves would fill the ring. *more: the port may hold more.
 */
static unsigned receive(struct ur_worker *w, bool *more)
{
	struct rte_mbuf *pkts[BURST];
	unsigned n, total = 0, bursts = 0;

	w->unheard = 0;
	do {
		n = receive_burst(w);
		total += n;
	} while (n == BURST && ++bursts < ROUND_BURSTS);
	*more = n == BURST;
	for (unsigned i = 0; i < ROUND_BURSTS && !rte_ring_empty(w->handover); i++) {
		n = rte_ring_sc_dequeue_burst(w->handover, (void **)pkts, BURST, NULL);
		input_burst(w, pkts, n);
		total += n;
		if (n < BURST)
			break;
	}
	return total;
}

/* ---- send ---- */

static void push_pending(struct ur_worker *w)
{
	while (w->tx_head != w->tx_tail) {
		uint16_t n = ur_port_tx(w->port, w->idx, &w->tx_pending[w->tx_head],
					(uint16_t)(w->tx_tail - w->tx_head));

		w->cnt_.tx_frames += n;
		w->tx_head = (uint16_t)(w->tx_head + n);
		if (!n) {
			ur_frame_own(&w->tx_pending[w->tx_head],
				     (unsigned)(w->tx_tail - w->tx_head));
			return;
		}
	}
	w->tx_head = w->tx_tail = 0;
}

/* What goes to our own MAC address never sees the port. */
static bool to_ourselves(const struct ur_worker *w, const struct rte_mbuf *m)
{
	return memcmp(rte_pktmbuf_mtod(m, const void *), w->port->mac, 6) == 0;
}

static unsigned loop_back(struct ur_worker *w, struct rte_mbuf **pkts, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		if (__builtin_expect(!to_ourselves(w, pkts[i]), 1)) {
			pkts[kept++] = pkts[i];
			continue;
		}
		w->cnt_.loopback++;
		ur_frame_own(&pkts[i], 1);
		if (rte_ring_mp_enqueue(w->handover, pkts[i])) {
			w->cnt_.handover_full++;
			rte_pktmbuf_free(pkts[i]);
		}
	}
	return kept;
}

/* Takes over n frames, at most BURST; there is room because output stops while any is pending. */
static void transmit(struct ur_worker *w, struct rte_mbuf **pkts, unsigned n)
{
	struct rte_mbuf **at = &w->tx_pending[w->tx_tail];

	n = loop_back(w, pkts, n);
	if (__builtin_expect(ur_rate_limits(&w->rate), 0))
		for (unsigned i = 0; i < n; i++)
			ur_rate_sent(&w->rate, rte_pktmbuf_pkt_len(pkts[i]), w->now_ns);
	if (__builtin_expect(w->tx_impair != NULL, 0)) {
		n = ur_impair_burst(w->tx_impair, pkts, (uint16_t)n, at,
				    (uint16_t)(TX_PENDING - w->tx_tail), w->now_ns);
	} else {
		memcpy(at, pkts, n * sizeof(*at));
	}
	if (!n)
		return;
	capture(w, at, n, UR_CAPTURE_TX);
	w->tx_tail = (uint16_t)(w->tx_tail + n);
	push_pending(w);
}

/* Only the slots that were used are touched: most rounds of an idle worker use none. */
static bool refill(struct ur_worker *w)
{
	if (!w->spare_first)
		return true;
	if (rte_pktmbuf_alloc_bulk(w->port->pool[w->idx], w->spare, w->spare_first)) {
		w->cnt_.no_mbuf++;
		return w->spare_first < BURST;
	}
	for (unsigned i = 0; i < w->spare_first; i++)
		w->tx[i].hdr = rte_pktmbuf_mtod(w->spare[i], uint8_t *);
	w->spare_first = 0;
	return true;
}

/* Whether the link that rate_gbps emulates takes another packet. */
static bool link_is_free(struct ur_worker *w)
{
	if (ur_rate_lets(&w->rate, w->now_ns))
		return true;
	w->rate.behind = ur_engine_wants_output(w->engine);
	w->cnt_.rate_waits += w->rate.behind;
	return false;
}

/*
 * A slow link is given one packet at a time, and ACKs must not wait behind what an application
 * posts on and on.
 */
unsigned ur_worker_output(struct ur_worker *w, bool posted)
{
	bool slow = ur_rate_limits(&w->rate);
	unsigned total = 0, n, cap;

	push_pending(w);
	if (w->tx_impair && ur_impair_next_deadline(w->tx_impair) <= w->now_ns)
		transmit(w, NULL, 0);
	do {
		struct rte_mbuf **pkts;
		struct ur_tx *tx;

		if (w->tx_head != w->tx_tail || !refill(w))
			break;
		pkts = &w->spare[w->spare_first];
		tx = &w->tx[w->spare_first];
		cap = (unsigned)(BURST - w->spare_first);
		ur_worker_update_now(w);
		if (__builtin_expect(slow, 0)) {
			if (!link_is_free(w))
				break;
			cap = 1;
		}
		n = posted && !slow ? ur_engine_output_posted(w->engine, tx, cap, w->now_ns)
				    : ur_engine_output(w->engine, tx, cap, w->now_ns);
		if (!n)
			w->rate.behind = false;
		for (unsigned i = 0; i < n; i++)
			ur_frame_finish(&w->framer, pkts[i], &tx[i]);
		w->spare_first = (uint16_t)(w->spare_first + n);
		w->unheard += n;
		if (n)
			transmit(w, pkts, n);
		total += n;
	} while (n == cap && total < ROUND_BURSTS * BURST);
	return total;
}

/* ARP, ND and ping have few frames, and those have no hurry. */
static void output_neigh(struct ur_worker *w)
{
	struct rte_mbuf *m;

	while (w->neigh->out.head != w->neigh->out.tail && w->tx_head == w->tx_tail &&
	       ur_rate_lets(&w->rate, w->now_ns)) {
		size_t len;

		m = rte_pktmbuf_alloc(w->port->pool[w->idx]);
		if (!m) {
			w->cnt_.no_mbuf++;
			return;
		}
		len = ur_neigh_output(w->neigh, rte_pktmbuf_mtod(m, uint8_t *),
				      rte_pktmbuf_tailroom(m));
		m->data_len = (uint16_t)len;
		m->pkt_len = (uint32_t)len;
		if (len)
			transmit(w, &m, 1);
		else
			rte_pktmbuf_free(m);
	}
}

/* ---- the round ---- */

static void take_doorbells(struct ur_worker *w)
{
	struct ur_qp *qps[BURST];
	unsigned n;

	do {
		n = rte_ring_sc_dequeue_burst(w->doorbells, (void **)qps, BURST, NULL);
		for (unsigned i = 0; i < n; i++) {
			ur_engine_take_doorbell(qps[i]);
			ur_engine_doorbell(w->engine, qps[i], w->now_ns);
		}
	} while (n == BURST);
}

static void take_cross_cqes(struct ur_worker *w)
{
	struct cross_cqe f;

	while (rte_ring_sc_dequeue_elem(w->cross_cqes, &f, sizeof(f)) == 0)
		ur_engine_complete(w->engine, f.cq, &f.wc, f.solicited);
}

void ur_worker_take(struct ur_worker *w)
{
	take_doorbells(w);
	take_cross_cqes(w);
}

/*
 * After receive(): what has come may be what a timer waits for, also when this worker was not run
 * for a while; so it waits while the port may hold more. By the tick: nothing can be due that was
 * not at the last look in this one.
 */
static void expire(struct ur_worker *w, bool all_received)
{
	if (w->now_ns >> UR_ENGINE_TICK_SHIFT == w->tick)
		return;
	if (!all_received && w->behind++ < BEHIND_ROUNDS)
		return;
	w->behind = 0;
	w->tick = w->now_ns >> UR_ENGINE_TICK_SHIFT;
	if (ur_engine_next_deadline(w->engine) <= w->now_ns)
		ur_engine_expire(w->engine, w->now_ns);
	if (w->neigh && ur_neigh_next_deadline(w->neigh) <= w->now_ns)
		ur_neigh_expire(w->neigh, w->now_ns);
}

/*
 * First what is owed from before, then what has come: an inline caller gets to see what was
 * received at once, and its answer leaves together with the ACK. Should it stop calling, the
 * endpoint's progress thread sends the ACK.
 */
unsigned ur_worker_round(struct ur_worker *w)
{
	unsigned n = 0;
	bool more;

	ur_worker_update_now(w);
	if (!rte_ring_empty(w->doorbells))
		take_doorbells(w);
	if (w->cnt > 1)
		take_cross_cqes(w);
	if (ur_engine_wants_output(w->engine) || w->tx_head != w->tx_tail || w->tx_impair)
		n = ur_worker_output(w, false);
	if (w->neigh && w->neigh->out.head != w->neigh->out.tail)
		output_neigh(w);
	n += receive(w, &more);
	expire(w, !more);
	atomic_store_explicit(&w->last_ns, w->now_ns, memory_order_relaxed);
	return n;
}
