/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_ether.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>
#include <rte_ring_elem.h>

#include "edge/frame.h"
#include "edge/cache.h"
#include "edge/impair_mbuf.h"
#include "edge/memif_guard.h"
#include "edge/slab.h"
#include "edge/rate.h"
#include "wire/icrc.h"

#define BURST	      UR_WORKER_BURST
#define IMPAIR_BURST  (4 * BURST)
#define HANDOVER_RING 1024
#define HEADERS_AHEAD 6 /* frames between a prefetch and its use: of headers, */
#define QPS_AHEAD     2 /* and of what their queue pairs need */
#define BEHIND_ROUNDS 16 /* timers wait that long for what the port still holds */
#define ROUND_BURSTS  2	 /* of output in a round, and so of what may come back */
#define FOREIGN_RING  8192
#define EVICT_BYTES   1024 /* of a frame worth evicting: fewer lines are fetched while others are */
#define TX_PENDING    (IMPAIR_BURST + BURST)

#define STOP_PATIENCE_MS 200

/* A completion on its way to the worker of its CQ; a multiple of 16 bytes, as rte_ring wants. */
struct foreign {
	struct ur_cq *cq;
	uint64_t solicited;
	struct ibv_wc wc;
};
_Static_assert(sizeof(struct foreign) % 16 == 0, "rte_ring element size");

struct command {
	void (*fn)(void *arg, uint64_t now_ns);
	void *arg;
	bool done;
	struct command *next;
};

struct ur_worker {
	struct ur_engine *engine;
	struct ur_port *port;
	const struct ur_clock *clock;
	struct ur_impair *rx_impair, *tx_impair;
	struct ur_neigh *neigh;
	struct ur_capture_hook *capture;
	const struct ur_gid *gids;
	unsigned gid_cnt;
	uint16_t idx, cnt;
	bool dedicated;
	unsigned lcore;
	struct ur_worker **peers;
	uint64_t now_ns;
	uint64_t dry_ns; /* when the port had nothing more to receive */
	uint64_t tick;	  /* of the wheel, at the last look at the timers */
	unsigned unheard; /* packets sent since the port was last asked for some */
	unsigned behind;  /* rounds in a row after which the port may hold more */
	struct ur_rate rate;
	/* Frames made and not taken by the port yet, [tx_head, tx_tail). */
	uint16_t tx_head, tx_tail;
	struct rte_mbuf *tx_pending[TX_PENDING];
	/* Empty mbufs for the next output, [spare_first, BURST), and tx[].hdr points into them. */
	uint16_t spare_first;
	struct rte_mbuf *spare[BURST];
	struct ur_tx tx[BURST];
	struct ur_framer framer;
	struct ur_worker_counters cnt_;
	struct rte_ring *handover; /* frames for this worker's QPs that arrived elsewhere */
	struct rte_ring *doorbells;
	struct rte_ring *foreign;
	void *engine_mem;

	_Alignas(64) _Atomic bool lock; /* inline: held by whoever is the worker */
	_Atomic uint64_t last_ns;
	_Atomic bool stop;
	_Atomic unsigned callers; /* inline: commands that wait for the lock */
	/* Commands for a dedicated worker. */
	pthread_mutex_t cmd_lock;
	bool ended; /* the loop runs no command any more */
	pthread_cond_t cmd_done;
	struct command *_Atomic cmds;
};

/* ---- receive ---- */

static bool is_ours(const struct ur_worker *w, const struct ur_gid *dst)
{
	for (unsigned i = 0; i < w->gid_cnt; i++)
		if (ur_gid_eq(dst, &w->gids[i]))
			return true;
	return false;
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
	ur_engine_prefetch(w->engine, rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m));
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

/* Stamps and round trips are no better than this is fresh: once a burst. */
static void update_now(struct ur_worker *w)
{
	uint64_t now = ur_clock_ns(w->clock);

	/* Never backwards, whatever core this runs on. */
	if (now > w->now_ns)
		w->now_ns = now;
}

/* A burst from the port; returns how many came. */
static unsigned receive_burst(struct ur_worker *w)
{
	struct rte_mbuf *pkts[BURST], *out[IMPAIR_BURST];
	unsigned n = ur_port_rx(w->port, w->idx, pkts, BURST), all = n;
	struct ur_core *core = ur_engine_core(w->engine);

	update_now(w);
	core->pacing.dry_ns = w->dry_ns;
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
 * `posted`: only what was posted, not ACKs and management; see ur_engine_output_posted(). A slow
 * link is given one packet at a time, and ACKs must not wait behind what an application posts on
 * and on.
 */
static unsigned output(struct ur_worker *w, bool posted)
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
		update_now(w);
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
			/* Cleared before the tail is read: a post after that rings again. */
			atomic_store(&qps[i]->pending, 0);
			ur_engine_doorbell(w->engine, qps[i], w->now_ns);
		}
	} while (n == BURST);
}

static void take_foreign(struct ur_worker *w)
{
	struct foreign f;

	while (rte_ring_sc_dequeue_elem(w->foreign, &f, sizeof(f)) == 0)
		ur_core_complete(ur_engine_core(w->engine), f.cq, &f.wc, f.solicited);
}

/*
 * After receive(): what has come may be what a timer waits for, also when this worker was not run
 * for a while; so it waits while the port may hold more. By the tick: nothing can be due that was
 * not at the last look in this one.
 */
static void expire(struct ur_worker *w, bool all_received)
{
	if (w->now_ns >> UR_WHEEL_TICK_SHIFT == w->tick)
		return;
	if (!all_received && w->behind++ < BEHIND_ROUNDS)
		return;
	w->behind = 0;
	w->tick = w->now_ns >> UR_WHEEL_TICK_SHIFT;
	if (ur_engine_next_deadline(w->engine) <= w->now_ns)
		ur_engine_expire(w->engine, w->now_ns);
	if (w->neigh && ur_neigh_next_deadline(w->neigh) <= w->now_ns)
		ur_neigh_expire(w->neigh, w->now_ns);
}

/*
 * First what is owed from before, then what has come: an inline caller gets to see what was
 * received at once, and its answer leaves together with the ACK. Should it stop calling, the
 * endpoint's keeper sends the ACK.
 */
static unsigned one_round(struct ur_worker *w)
{
	unsigned n = 0;
	bool more;

	update_now(w);
	if (!rte_ring_empty(w->doorbells))
		take_doorbells(w);
	if (w->cnt > 1)
		take_foreign(w);
	if (ur_engine_wants_output(w->engine) || w->tx_head != w->tx_tail || w->tx_impair)
		n = output(w, false);
	if (w->neigh && w->neigh->out.head != w->neigh->out.tail)
		output_neigh(w);
	n += receive(w, &more);
	expire(w, !more);
	atomic_store_explicit(&w->last_ns, w->now_ns, memory_order_relaxed);
	return n;
}

/*
 * Taken and given back at every post and poll, almost never contended and held for one round: a
 * mutex would cost as much as handling a packet.
 */
static bool try_lock(struct ur_worker *w)
{
	return !atomic_load_explicit(&w->lock, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&w->lock, true, memory_order_acquire);
}

static void unlock(struct ur_worker *w)
{
	atomic_store_explicit(&w->lock, false, memory_order_release);
}

unsigned ur_worker_poll(struct ur_worker *w)
{
	unsigned n = 0;

	/* Who polls without a pause would keep commands out for long. */
	if (w->dedicated || atomic_load_explicit(&w->callers, memory_order_relaxed) || !try_lock(w))
		return 0;
	if (!atomic_load_explicit(&w->stop, memory_order_relaxed))
		n = one_round(w);
	unlock(w);
	return n;
}

static void run_command(struct ur_worker *w, void (*fn)(void *arg, uint64_t now_ns), void *arg)
{
	update_now(w);
	/* What may refer to the object that the command takes away. */
	take_doorbells(w);
	take_foreign(w);
	fn(arg, w->now_ns);
}

static void run_commands(struct ur_worker *w, bool last)
{
	struct command *c;

	pthread_mutex_lock(&w->cmd_lock);
	while ((c = atomic_load_explicit(&w->cmds, memory_order_relaxed))) {
		atomic_store_explicit(&w->cmds, c->next, memory_order_relaxed);
		run_command(w, c->fn, c->arg);
		c->done = true;
	}
	w->ended = last;
	pthread_cond_broadcast(&w->cmd_done);
	pthread_mutex_unlock(&w->cmd_lock);
}

static int loop(void *arg)
{
	struct ur_worker *w = arg;

	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		one_round(w);
		if (atomic_load_explicit(&w->cmds, memory_order_relaxed))
			run_commands(w, false);
	}
	run_commands(w, true);
	return 0;
}

/* False when the loop has ended: nobody is the worker then. */
static bool ask_loop(struct ur_worker *w, struct command *c)
{
	bool asked;

	pthread_mutex_lock(&w->cmd_lock);
	asked = !w->ended;
	if (asked) {
		c->next = atomic_load_explicit(&w->cmds, memory_order_relaxed);
		atomic_store_explicit(&w->cmds, c, memory_order_release);
		while (!c->done)
			pthread_cond_wait(&w->cmd_done, &w->cmd_lock);
	}
	pthread_mutex_unlock(&w->cmd_lock);
	return asked;
}

void ur_worker_call(struct ur_worker *w, void (*fn)(void *arg, uint64_t now_ns), void *arg)
{
	struct command c = {.fn = fn, .arg = arg};

	if (w->dedicated && ask_loop(w, &c))
		return;
	atomic_fetch_add_explicit(&w->callers, 1, memory_order_relaxed);
	while (!try_lock(w))
		sched_yield();
	atomic_fetch_sub_explicit(&w->callers, 1, memory_order_relaxed);
	run_command(w, fn, arg);
	unlock(w);
}

void ur_worker_doorbell(struct ur_worker *w, struct ur_qp *qp)
{
	if (!w->dedicated && try_lock(w)) {
		update_now(w);
		ur_engine_doorbell(w->engine, qp, w->now_ns);
		/*
		 * The ACK of what is being answered goes with the next round. Who posts on and on
		 * must hear as well, or timers run out.
		 */
		if (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
			if (w->unheard < ROUND_BURSTS * BURST)
				output(w, true);
			else
				one_round(w);
		}
		unlock(w);
		return;
	}
	if (atomic_exchange(&qp->pending, 1) == 0)
		rte_ring_mp_enqueue(w->doorbells, qp);
}

bool ur_worker_foreign(struct ur_worker *w, struct ur_cq *cq, const struct ibv_wc *wc,
		       bool solicited)
{
	struct foreign f = {.cq = cq, .solicited = solicited, .wc = *wc};

	if (rte_ring_mp_enqueue_elem(w->foreign, &f, sizeof(f)) == 0)
		return true;
	__atomic_fetch_add(&w->cnt_.foreign_full, 1, __ATOMIC_RELAXED);
	return false;
}

/* ---- life ---- */

static struct rte_ring *new_ring(const struct ur_worker *w, const char *what, unsigned entries,
				 unsigned elem, unsigned flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "ur_%s_%u_%u", what, w->port->id, w->idx);
	return elem ? rte_ring_create_elem(name, elem, entries, SOCKET_ID_ANY, flags)
		    : rte_ring_create(name, entries, SOCKET_ID_ANY, flags);
}

struct ur_worker *ur_worker_new(const struct ur_worker_attr *a, char *err, size_t cap)
{
	struct ur_worker *w = rte_zmalloc("ur_worker", sizeof(*w), 64);
	unsigned bells = rte_align32pow2(a->engine.limits.max_qp + 1);

	if (!w)
		goto no_memory;
	w->spare_first = BURST;
	w->port = a->port;
	w->clock = a->clock;
	w->neigh = a->neigh;
	w->capture = a->capture;
	w->gids = a->gids;
	w->gid_cnt = a->gid_cnt;
	w->idx = a->idx;
	w->cnt = a->cnt;
	w->peers = a->peers;
	w->dedicated = a->dedicated;
	w->lcore = a->lcore;
	ur_rate_init(&w->rate, a->rate_gbps);
	pthread_mutex_init(&w->cmd_lock, NULL);
	pthread_cond_init(&w->cmd_done, NULL);
	update_now(w);
	if (ur_port_is_memif(w->port))
		ur_memif_guard_add(w);
	w->handover = new_ring(w, "hand", HANDOVER_RING, 0, RING_F_SC_DEQ);
	w->doorbells = new_ring(w, "bell", bells < 64 ? 64 : bells, 0, RING_F_SC_DEQ);
	w->foreign = new_ring(w, "cqe", FOREIGN_RING, sizeof(struct foreign), RING_F_SC_DEQ);
	w->engine_mem = ur_huge_alloc(ur_engine_size(&a->engine.limits));
	if (!w->handover || !w->doorbells || !w->foreign || !w->engine_mem)
		goto no_memory;
	/* What impairment holds back must not refer to a user's memory. */
	ur_framer_init(&w->framer, w->port->pool[w->idx],
		       a->attach_payload && !ur_impair_active(&a->tx_impair));
	w->engine = ur_engine_init(w->engine_mem, &a->engine, w->now_ns);
	if (ur_impair_active(&a->rx_impair) &&
	    !(w->rx_impair = ur_impair_mbuf_new(&a->rx_impair, 2u * w->idx, w->port->pool[w->idx])))
		goto no_memory;
	if (ur_impair_active(&a->tx_impair) &&
	    !(w->tx_impair =
		      ur_impair_mbuf_new(&a->tx_impair, 2u * w->idx + 1, w->port->pool[w->idx])))
		goto no_memory;
	return w;
no_memory:
	snprintf(err, cap,
		 "no memory for worker %u with %u QPs; raise [eal] memory_mb or lower [transport] "
		 "max_qp",
		 a->idx, a->engine.limits.max_qp);
	ur_worker_free(w);
	return NULL;
}

void ur_worker_free(struct ur_worker *w)
{
	struct rte_mbuf *m;

	if (!w)
		return;
	ur_memif_guard_remove(w);
	ur_impair_free(w->rx_impair);
	ur_impair_free(w->tx_impair);
	while (w->handover && rte_ring_sc_dequeue(w->handover, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(&w->tx_pending[w->tx_head], (unsigned)(w->tx_tail - w->tx_head));
	rte_pktmbuf_free_bulk(&w->spare[w->spare_first], (unsigned)(BURST - w->spare_first));
	rte_ring_free(w->handover);
	rte_ring_free(w->doorbells);
	rte_ring_free(w->foreign);
	ur_huge_free(w->engine_mem);
	pthread_mutex_destroy(&w->cmd_lock);
	pthread_cond_destroy(&w->cmd_done);
	rte_free(w);
}

int ur_worker_start(struct ur_worker *w)
{
	return w->dedicated ? rte_eal_remote_launch(loop, w, w->lcore) : 0;
}

/*
 * Who asks may have interrupted the worker (exit() in a signal handler): then there is no lock, and
 * after a while it goes on without.
 */
static bool lock_patiently(struct ur_worker *w)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	bool ours;

	for (unsigned i = 0; !(ours = try_lock(w)) && i < STOP_PATIENCE_MS; i++)
		nanosleep(&nap, NULL);
	return ours;
}

static void stop_inline(struct ur_worker *w)
{
	bool ours = lock_patiently(w);

	atomic_store(&w->stop, true);
	if (ours)
		unlock(w);
}

/* A loop ends the round that it is in, and after that a whole one: so that one has ended. */
static void wait_for_loop(const struct ur_worker *w)
{
	const struct timespec nap = {.tv_nsec = 50000};
	uint64_t last_ns = ur_worker_last_ns(w);
	unsigned rounds = 0;

	for (unsigned i = 0; rounds < 2 && i < STOP_PATIENCE_MS * 20; i++) {
		uint64_t now_ns;

		nanosleep(&nap, NULL);
		now_ns = ur_worker_last_ns(w);
		rounds += now_ns != last_ns;
		last_ns = now_ns;
	}
}

void ur_worker_wait_round(struct ur_worker *w)
{
	if (w->dedicated)
		wait_for_loop(w);
	else if (lock_patiently(w))
		unlock(w);
}

void ur_worker_stop(struct ur_worker *w)
{
	if (!w->dedicated)
		stop_inline(w);
	else if (!atomic_exchange(&w->stop, true))
		rte_eal_wait_lcore(w->lcore);
}

void ur_worker_set_rate(struct ur_worker *w, double gbps)
{
	ur_rate_change(&w->rate, gbps);
}

struct ur_engine *ur_worker_engine(struct ur_worker *w)
{
	return w->engine;
}

const struct ur_worker_counters *ur_worker_counters(const struct ur_worker *w)
{
	return &w->cnt_;
}

const struct ur_impair *ur_worker_impair(const struct ur_worker *w, bool tx)
{
	return tx ? w->tx_impair : w->rx_impair;
}

uint64_t ur_worker_last_ns(const struct ur_worker *w)
{
	return atomic_load_explicit(&w->last_ns, memory_order_relaxed);
}
