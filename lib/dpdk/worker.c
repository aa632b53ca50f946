/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* sched_getcpu */
#include "dpdk/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include <rte_launch.h>
#include <rte_malloc.h>
#include <rte_pause.h>
#include <rte_ring_elem.h>

#include <bsd/sys/queue.h>

#include "dpdk/mbuf_source.h"
#include "dpdk/memif_guard.h"
#include "edge/gather.h"
#include "edge/slab.h"
#include "thread/thread.h"
#include "wire/assert.h"

#define HANDOVER_RING	 1024
#define CROSS_CQE_RING	 8192
#define CALL_BURST	 32
#define STOP_PATIENCE_MS 200
#define FLUSH_TRIES	 64
#define LOCK_SPINS	 1000
#define LOCK_NAP_NS	 20000

struct command {
	void (*fn)(void *arg, uint64_t now_ns);
	void *arg;
	bool done;
	struct command *next;
};

/* Memory for queue pairs with a gap; slabs follow. */
struct growth {
	_Alignas(64) SLIST_ENTRY(growth) link;
	struct ur_worker *worker;
	uint32_t cnt;
};

/* A completion on its way to the worker of its CQ; a multiple of 16 bytes, as rte_ring wants. */
struct cross_cqe {
	struct ur_cq *cq;
	uint64_t solicited;
	struct ibv_wc wc;
};
_Static_assert(sizeof(struct cross_cqe) % 16 == 0, "rte_ring element size");

/*
 * EDGE-FORK-02: this process is a child of the one that the workers belong to. Their memory, rings and ports are shared with
 * it, so that nothing of them may be touched.
 */
static bool forked;

void ur_worker_leave_to_parent(void)
{
	forked = true;
}

bool ur_worker_is_the_parents(void)
{
	return forked;
}

struct ur_worker {
	struct ur_round round;
	struct ur_credit credit;
	struct ur_mbuf_source source;
	struct ur_engine *engine;
	void *engine_mem;
	size_t loss_slab_bytes;
	SLIST_HEAD(, growth) growths; /* used by ur_worker_grow() only */
	const struct ur_clock *clock;
	uint16_t idx, cnt;
	bool dedicated;
	unsigned lcore;
	struct ur_worker_rounds rounds;
	struct ur_worker **peers;
	struct rte_ring *handover; /* frames for this worker's QPs that arrived elsewhere */
	struct rte_ring *doorbells;
	struct rte_ring *cross_cqes;

	_Alignas(64) _Atomic bool lock; /* inline: held by the thread that is the worker */
	int cancel;			/* of that thread, for unlock() */
	int cpu;			/* inline: the application's, lately; -1: none yet */
	bool raised;			/* an event, since ur_worker_serve() was called last */
	_Atomic uint64_t last_ns;
	_Atomic bool stop;
	_Atomic bool contended;	  /* inline: a thread did not get the lock */
	_Atomic unsigned callers; /* inline: commands that wait for the lock */
	struct ur_gather gather;  /* inline */
	/* Commands for a dedicated worker. */
	pthread_mutex_t cmd_lock;
	bool ended; /* the loop runs no command any more */
	pthread_cond_t cmd_done;
	struct command *_Atomic cmds;
};

/* ---- rings between workers ---- */

static struct ur_worker *worker_of(void *source)
{
	return (struct ur_worker *)(void *)((char *)source - offsetof(struct ur_worker, source));
}

static bool hand_over(void *source, unsigned worker, const struct ur_pkt *pkt)
{
	struct rte_mbuf *m = pkt->handle;

	/* Of a packet to ourselves only the descriptor has the length. */
	m->data_len = (uint16_t)pkt->len;
	m->pkt_len = pkt->len;
	return rte_ring_mp_enqueue(worker_of(source)->peers[worker]->handover, m) == 0;
}

static unsigned take_over(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct rte_mbuf *m[UR_BURST];

	n = rte_ring_sc_dequeue_burst(worker_of(source)->handover, (void **)m, n, NULL);
	for (unsigned i = 0; i < n; i++)
		pkts[i] = ur_mbuf_pkt(m[i]);
	return n;
}

static const struct ur_source_ops copying = {.rx = ur_mbuf_rx,
					     .tx = ur_mbuf_tx,
					     .alloc = ur_mbuf_alloc,
					     .free = ur_mbuf_free,
					     .now_ns = ur_mbuf_now_ns,
					     .hand_over = hand_over,
					     .take = take_over};

static const struct ur_source_ops gathering = {.rx = ur_mbuf_rx,
					       .tx = ur_mbuf_tx,
					       .alloc = ur_mbuf_alloc,
					       .free = ur_mbuf_free,
					       .now_ns = ur_mbuf_now_ns,
					       .gather = &ur_mbuf_gather,
					       .hand_over = hand_over,
					       .take = take_over};

/* ---- the round, and what other threads left in the rings for it ---- */

static uint64_t update_now(struct ur_worker *w)
{
	return ur_round_set_now(&w->round, ur_clock_ns(w->clock));
}

static void take_doorbells(struct ur_worker *w)
{
	struct ur_qp *qps[CALL_BURST];
	unsigned n;

	do {
		n = rte_ring_sc_dequeue_burst(w->doorbells, (void **)qps, CALL_BURST, NULL);
		for (unsigned i = 0; i < n; i++) {
			ur_engine_take_doorbell(qps[i]);
			ur_engine_doorbell(w->engine, qps[i], w->round.now_ns);
		}
	} while (n == CALL_BURST);
}

static void take_cross_cqes(struct ur_worker *w)
{
	struct cross_cqe f;

	while (rte_ring_sc_dequeue_elem(w->cross_cqes, &f, sizeof(f)) == 0)
		ur_engine_complete(w->engine, f.cq, &f.wc, f.solicited);
}

static unsigned run_round(struct ur_worker *w)
{
	unsigned n;

	ur_gather_round(&w->gather);
	if (!rte_ring_empty(w->doorbells)) {
		update_now(w);
		take_doorbells(w);
	}
	if (w->cnt > 1)
		take_cross_cqes(w);
	n = ur_round_poll(&w->round);
	w->rounds.all++;
	w->rounds.busy += n != 0;
	atomic_store_explicit(&w->last_ns, w->round.now_ns, memory_order_relaxed);
	return n;
}

/* ---- the thread that is the worker ---- */

/*
 * Taken and given back at every post and poll, almost never contended and held for one round: a
 * mutex would cost as much as handling a packet.
 */
static bool take_lock(struct ur_worker *w)
{
	if (__builtin_expect(forked, 0))
		return false;
	if (!atomic_load_explicit(&w->lock, memory_order_relaxed) &&
	    !atomic_exchange_explicit(&w->lock, true, memory_order_acquire))
		return true;
	atomic_store_explicit(&w->contended, true, memory_order_relaxed);
	return false;
}

static void release_lock(struct ur_worker *w)
{
	atomic_store_explicit(&w->lock, false, memory_order_release);
}

/* EDGE-CANCEL-01: for all that may call the driver. */
static bool try_lock(struct ur_worker *w)
{
	if (!take_lock(w))
		return false;
	w->cancel = ur_cancel_off();
	return true;
}

static void unlock(struct ur_worker *w)
{
	int cancel = w->cancel;

	release_lock(w);
	ur_cancel_restore(cancel);
}

/* A thread that polls without a pause would starve commands. */
static bool may_run_round(struct ur_worker *w)
{
	return !w->dedicated && !atomic_load_explicit(&w->callers, memory_order_relaxed) &&
	       try_lock(w);
}

/* The caller has the lock. */
static unsigned run_unless_stopped(struct ur_worker *w)
{
	return atomic_load_explicit(&w->stop, memory_order_relaxed) ? 0 : run_round(w);
}

unsigned ur_worker_poll(struct ur_worker *w)
{
	unsigned n;

	if (!may_run_round(w))
		return 0;
	w->cpu = sched_getcpu();
	n = run_unless_stopped(w);
	unlock(w);
	return n;
}

unsigned ur_worker_serve(struct ur_worker *w, bool may_be_answered, bool *in_way)
{
	unsigned n;
	bool kept;

	if (in_way)
		*in_way = false;
	if (!may_run_round(w))
		return 0;
	w->raised = false;
	if (!may_be_answered)
		ur_round_send_acks(&w->round);
	n = run_unless_stopped(w);
	kept = n && may_be_answered && ur_round_keep_ack(&w->round);
	if (in_way)
		*in_way = w->raised || (kept && w->cpu == sched_getcpu());
	unlock(w);
	return n;
}

void ur_worker_event_raised(struct ur_worker *w)
{
	w->raised = true;
	ur_round_event_raised(&w->round);
}

/* A thread that only posts must also receive, or timers expire. */
static void send_posted(struct ur_worker *w)
{
	ur_gather_sent(&w->gather);
	if (atomic_load_explicit(&w->stop, memory_order_relaxed))
		return;
	if (ur_round_must_receive(&w->round))
		run_round(w);
	else
		ur_round_output(&w->round, w->round.now_ns, true);
}

static void take_and_send(struct ur_worker *w)
{
	update_now(w);
	take_doorbells(w);
	send_posted(w);
}

void ur_worker_close_burst(struct ur_worker *w)
{
	if (!ur_gather_open(&w->gather) || !try_lock(w))
		return;
	update_now(w);
	send_posted(w);
	unlock(w);
}

void ur_worker_put_acks_first(struct ur_worker *w)
{
	if (!forked)
		ur_round_put_acks_first(&w->round);
}

void ur_worker_stop_gathering(struct ur_worker *w)
{
	if (forked)
		return;
	ur_gather_end_auto(&w->gather);
	ur_worker_close_burst(w);
}

static void run_command(struct ur_worker *w, void (*fn)(void *arg, uint64_t now_ns), void *arg)
{
	/* Doorbells may refer to the object that the command destroys; what they announce leaves before (EDGE-GATHER-01, EDGE-REST-02). */
	if (ur_gather_open(&w->gather) || !rte_ring_empty(w->doorbells))
		take_and_send(w);
	take_cross_cqes(w);
	fn(arg, update_now(w));
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

static void flush(struct ur_worker *w)
{
	unsigned tries = 0;

	do
		ur_round_output(&w->round, update_now(w), false);
	while ((ur_engine_owes(w->engine) || ur_round_has_pending(&w->round)) &&
	       ++tries < FLUSH_TRIES);
}

/* After the worker was stopped, the port may be closed. */
void ur_worker_flush(struct ur_worker *w)
{
	if (!atomic_load_explicit(&w->stop, memory_order_relaxed))
		flush(w);
}

static void flush_last(struct ur_worker *w)
{
	ur_engine_flush_acks(w->engine);
	flush(w);
}

static int loop(void *arg)
{
	struct ur_worker *w = arg;

	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		run_round(w);
		if (atomic_load_explicit(&w->cmds, memory_order_relaxed))
			run_commands(w, false);
	}
	flush_last(w);
	run_commands(w, true);
	ur_tsan_gives((void *[]){w}, 1);
	return 0;
}

/* False: the loop has ended, and the caller has to run the command. */
static bool run_on_loop(struct ur_worker *w, struct command *c)
{
	int cancel = ur_cancel_off(); /* the loop writes to this thread's stack */
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
	ur_cancel_restore(cancel);
	return asked;
}

/*
 * For a round at most, because others stand back for `callers`. Not by sched_yield(): since Linux 6.12.63 and 6.18 each call puts the
 * thread a time slice behind all others, and after a few hundred of them it may not run for seconds (docs/programs.md).
 */
static void wait_for_lock(struct ur_worker *w)
{
	const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};

	for (unsigned i = 0; !try_lock(w); i++) {
		if (i < LOCK_SPINS)
			rte_pause();
		else
			nanosleep(&nap, NULL);
	}
}

void ur_worker_call(struct ur_worker *w, void (*fn)(void *arg, uint64_t now_ns), void *arg)
{
	struct command c = {.fn = fn, .arg = arg};

	if (forked)
		return;
	if (w->dedicated && run_on_loop(w, &c))
		return;
	atomic_fetch_add_explicit(&w->callers, 1, memory_order_relaxed);
	wait_for_lock(w);
	atomic_fetch_sub_explicit(&w->callers, 1, memory_order_relaxed);
	run_command(w, fn, arg);
	unlock(w);
}

/*
 * EDGE-REST-02. The thread that had the lock may have taken its doorbells before this one came, and have
 * left since. Without a second try the request would wait for the next round.
 */
static void take_late_doorbell(struct ur_worker *w)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!try_lock(w))
		return;
	take_and_send(w);
	unlock(w);
}

void ur_worker_doorbell(struct ur_worker *w, struct ur_qp *qp, unsigned cnt)
{
	if (!w->dedicated && take_lock(w)) {
		uint64_t now_ns = update_now(w);

		ur_engine_doorbell(w->engine, qp, now_ns);
		/* No cancellation point so far: ur_device_add_counts(), which an event of the engine calls, is none. */
		if (ur_gather_joins(&w->gather, now_ns, cnt)) {
			w->round.cnt.gathered += cnt;
			release_lock(w);
			return;
		}
		w->cancel = ur_cancel_off();
		w->cpu = sched_getcpu();
		send_posted(w);
		unlock(w);
		return;
	}
	if (forked)
		return;
	if (ur_engine_mark_doorbell(qp))
		rte_ring_mp_enqueue(w->doorbells, qp);
	if (!w->dedicated)
		take_late_doorbell(w);
}

bool ur_worker_push_cqe(struct ur_worker *w, struct ur_cq *cq, const struct ibv_wc *wc,
			bool solicited)
{
	struct cross_cqe f = {.cq = cq, .solicited = solicited, .wc = *wc};

	if (rte_ring_mp_enqueue_elem(w->cross_cqes, &f, sizeof(f)) == 0)
		return true;
	__atomic_fetch_add(&w->round.cnt.cross_cqe_full, 1, __ATOMIC_RELAXED);
	return false;
}

/* ---- memory for gaps ---- */

static void add_slabs(void *arg, uint64_t now_ns)
{
	struct growth *g = arg;
	struct ur_worker *w = g->worker;
	uint32_t added = ur_engine_add_slabs(w->engine, g + 1, g->cnt);

	(void)now_ns;
	UR_ASSERT(added == g->cnt);
	w->round.cnt.loss_memory_bytes += added * w->loss_slab_bytes;
}

/* EDGE-LOSS-01 */
void ur_worker_grow(struct ur_worker *w)
{
	uint32_t wanted = ur_engine_wanted_slabs(w->engine);
	struct growth *g;

	if (!wanted)
		return;
	g = ur_huge_alloc(sizeof(*g) + wanted * w->loss_slab_bytes);
	if (!g)
		return; /* gaps are served from what is there */
	g->worker = w;
	g->cnt = wanted;
	SLIST_INSERT_HEAD(&w->growths, g, link);
	ur_worker_call(w, add_slabs, g);
}

/* ---- life ---- */

static struct rte_ring *new_ring(const struct ur_worker *w, const char *what, unsigned entries,
				 unsigned elem, unsigned flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "ur_%s_%u_%u", what, w->source.port->id, w->idx);
	return elem ? rte_ring_create_elem(name, elem, entries, SOCKET_ID_ANY, flags)
		    : rte_ring_create(name, entries, SOCKET_ID_ANY, flags);
}

static int init_round(struct ur_worker *w, const struct ur_worker_attr *a, uint64_t now_ns)
{
	struct ur_round_attr round = {
		.ops = a->attach_payload ? &gathering : &copying,
		.source = &w->source,
		.engine = w->engine,
		.frame_bytes = a->port->mbuf_room_bytes,
		.idx = a->idx,
		.cnt = a->cnt,
		.rx_impair = a->rx_impair,
		.tx_impair = a->tx_impair,
		.neigh = a->neigh,
		.capture = a->capture,
		.gids = a->gids,
		.gid_cnt = a->gid_cnt,
		.vid = a->vid,
		.no_loop = a->no_loop,
		.evict_rx = a->port->evict.on,
		.stage_tx = a->port->evict.on,
		.ack_wait_ns = a->dedicated		? 0
			       : a->port->tx_is_syscall ? UR_ACK_WAIT_SYSCALL_NS
							: UR_ACK_WAIT_NS,
		.rate_gbps = a->rate_gbps,
	};

	memcpy(round.mac, a->port->mac, 6);
	if (a->credit.buffers) {
		ur_credit_init(&w->credit, &a->credit);
		round.credit = &w->credit;
	}
	return ur_round_init(&w->round, &round, now_ns);
}

struct ur_worker *ur_worker_new(const struct ur_worker_attr *a, char *err, size_t cap)
{
	struct ur_worker *w = rte_zmalloc("ur_worker", sizeof(*w), 64);
	unsigned bells = rte_align32pow2(a->engine.limits.max_qp + 1);
	uint64_t now_ns = ur_clock_ns(a->clock);

	if (!w)
		goto no_memory;
	ur_mbuf_source_init(&w->source, a->port, a->idx, a->clock, ur_impair_active(&a->rx_impair),
			    &w->round.cnt.no_mbuf);
	SLIST_INIT(&w->growths);
	w->clock = a->clock;
	w->idx = a->idx;
	w->cnt = a->cnt;
	w->peers = a->peers;
	w->dedicated = a->dedicated;
	w->cpu = -1;
	ur_gather_init(&w->gather, a->gather);
	w->lcore = a->lcore;
	pthread_mutex_init(&w->cmd_lock, NULL);
	pthread_cond_init(&w->cmd_done, NULL);
	if (ur_port_is_memif(a->port))
		ur_memif_guard_add(w);
	w->handover = new_ring(w, "hand", HANDOVER_RING, 0, RING_F_SC_DEQ);
	w->doorbells = new_ring(w, "bell", bells < 64 ? 64 : bells, 0, RING_F_SC_DEQ);
	w->cross_cqes = new_ring(w, "cqe", CROSS_CQE_RING, sizeof(struct cross_cqe), RING_F_SC_DEQ);
	w->engine_mem = ur_huge_alloc(ur_engine_size(&a->engine.limits));
	if (!w->handover || !w->doorbells || !w->cross_cqes || !w->engine_mem)
		goto no_memory;
	w->engine = ur_engine_init(w->engine_mem, &a->engine, now_ns);
	w->loss_slab_bytes = a->engine.limits.loss_slab_bytes;
	if (init_round(w, a, now_ns))
		goto no_memory;
	w->round.cnt.loss_memory_bytes = a->engine.limits.loss_slabs * w->loss_slab_bytes;
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
	struct growth *g;

	if (!w)
		return;
	ur_memif_guard_remove(w);
	ur_round_fini(&w->round);
	ur_mbuf_source_fini(&w->source);
	while (w->handover && rte_ring_sc_dequeue(w->handover, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(w->handover);
	rte_ring_free(w->doorbells);
	rte_ring_free(w->cross_cqes);
	ur_huge_free(w->engine_mem);
	while ((g = SLIST_FIRST(&w->growths))) {
		SLIST_REMOVE_HEAD(&w->growths, link);
		ur_huge_free(g);
	}
	pthread_mutex_destroy(&w->cmd_lock);
	pthread_cond_destroy(&w->cmd_done);
	rte_free(w);
}

int ur_worker_start(struct ur_worker *w)
{
	return w->dedicated ? rte_eal_remote_launch(loop, w, w->lcore) : 0;
}

/*
 * The caller may have interrupted the worker (exit() in a signal handler). Then the lock is never
 * released, and the caller continues without it.
 */
static bool lock_with_timeout(struct ur_worker *w)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	bool ours;

	for (unsigned i = 0; !(ours = try_lock(w)) && i < STOP_PATIENCE_MS; i++)
		nanosleep(&nap, NULL);
	return ours;
}

static void stop_inline(struct ur_worker *w)
{
	bool ours = lock_with_timeout(w);

	if (ours && !atomic_load(&w->stop))
		flush_last(w);
	atomic_store(&w->stop, true);
	if (ours)
		unlock(w);
}

/* Waits for two ends of rounds: the second round began after the call, so the one under way has ended. */
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
	else if (lock_with_timeout(w))
		unlock(w);
}

void ur_worker_stop(struct ur_worker *w)
{
	if (!w->dedicated)
		stop_inline(w);
	else if (!atomic_exchange(&w->stop, true)) {
		rte_eal_wait_lcore(w->lcore);
		ur_tsan_got((void *[]){w}, 1);
	}
}

void ur_worker_set_rate(struct ur_worker *w, double gbps)
{
	ur_round_set_rate(&w->round, gbps);
}

void ur_worker_set_credit_map(struct ur_worker *w, const struct ur_credit_map *map)
{
	if (w->round.credit && memcmp(map, &w->credit.map, sizeof(*map)))
		ur_credit_restart(&w->credit, map);
}

void ur_worker_restart_credit(struct ur_worker *w)
{
	if (w->round.credit)
		ur_credit_restart(&w->credit, NULL);
}

void ur_worker_set_direct(struct ur_worker *w, struct ur_direct *direct)
{
	direct->counters = &w->round.cnt;
	w->source.direct = direct;
}

void ur_worker_set_gids(struct ur_worker *w, const struct ur_gid *gids, unsigned cnt)
{
	ur_round_set_gids(&w->round, gids, cnt);
}

struct ur_engine *ur_worker_engine(struct ur_worker *w)
{
	return w->engine;
}

const struct ur_worker_counters *ur_worker_counters(const struct ur_worker *w)
{
	return &w->round.cnt;
}

const struct ur_worker_rounds *ur_worker_rounds(const struct ur_worker *w)
{
	return &w->rounds;
}

static unsigned fill_permille(const struct rte_ring *ring)
{
	return (unsigned)(rte_ring_count(ring) * UINT64_C(1000) / rte_ring_get_capacity(ring));
}

unsigned ur_worker_ring_fill(const struct ur_worker *w)
{
	unsigned handover = fill_permille(w->handover), doorbells = fill_permille(w->doorbells);

	return handover > doorbells ? handover : doorbells;
}

const struct ur_impair *ur_worker_impair(const struct ur_worker *w, bool tx)
{
	return ur_round_impair(&w->round, tx);
}

bool ur_worker_take_contended(struct ur_worker *w)
{
	if (!atomic_load_explicit(&w->contended, memory_order_relaxed))
		return false;
	atomic_store_explicit(&w->contended, false, memory_order_relaxed);
	return true;
}

uint64_t ur_worker_last_ns(const struct ur_worker *w)
{
	return atomic_load_explicit(&w->last_ns, memory_order_relaxed);
}
