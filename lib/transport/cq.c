/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/cq.h"

#include "wire/assert.h"

static uint32_t places(uint32_t cqe)
{
	uint32_t n = 1;

	UR_ASSERT(cqe >= 1 && cqe <= UINT32_C(1) << 31);
	while (n < cqe)
		n <<= 1;
	return n;
}

size_t ur_cq_ring_bytes(uint32_t cqe)
{
	return (size_t)places(cqe) * sizeof(struct ibv_wc);
}

void ur_cq_init(struct ur_cq *cq, void *ring, uint32_t cqe, uint16_t worker, void *user)
{
	cq->ring = ring;
	cq->mask = places(cqe) - 1;
	cq->cqe = cqe;
	cq->head_seen = 0;
	cq->worker = worker;
	cq->unarmed = false;
	cq->overflown = false;
	cq->user = user;
	atomic_init(&cq->tail, 0);
	atomic_init(&cq->head, 0);
	cq->tail_seen = 0;
	atomic_init(&cq->armed, UR_CQ_QUIET);
	atomic_init(&cq->reported, 0);
}

static enum ur_cq_push overflow(struct ur_cq *cq)
{
	if (cq->overflown)
		return UR_CQ_DEAD;
	cq->overflown = true;
	return UR_CQ_OVERFLOW;
}

/* CQ-ARM-01: a solicited arm waits for solicited and erroneous completions only. */
static bool wakes(uint32_t armed, const struct ibv_wc *wc, bool solicited)
{
	return (armed & UR_CQ_ANY) ||
	       ((armed & UR_CQ_SOLICITED) && (solicited || wc->status != IBV_WC_SUCCESS));
}

/*
 * Whether a completion waits that has raised no event; *first of them, or the tail. `reported` may be behind the head, but is read before the
 * tail, which it never passes.
 */
static bool find_unreported(const struct ur_cq *cq, uint32_t *first)
{
	uint32_t reported = atomic_load(&cq->reported);
	uint32_t tail = atomic_load(&cq->tail);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire);

	*first = reported - head <= tail - head ? reported : head;
	return *first != tail;
}

/* CQ-ARM-03. An event is for one completion, since a program may poll one and wait for the next event. */
static void report(struct ur_cq *cq)
{
	uint32_t first;
	bool waits = find_unreported(cq, &first);

	atomic_store(&cq->reported, first + waits);
}

/*
 * What is polled without an event leaves `reported` behind. The worker catches up before the counts could wrap, with the head that it has
 * just read. The consumer may have raised an event since.
 */
static void catch_up(struct ur_cq *cq, uint32_t tail)
{
	uint32_t reported = atomic_load(&cq->reported);

	if (reported - cq->head_seen > tail - cq->head_seen)
		atomic_compare_exchange_strong(&cq->reported, &reported, cq->head_seen);
}

/*
 * The caller of ur_cq_arm() may want to raise the event as well: the one that disarms the CQ does. A completion raises it even if another thread has polled it
 * meanwhile.
 */
static enum ur_cq_push notify(struct ur_cq *cq, uint32_t tail)
{
	uint32_t armed = atomic_exchange(&cq->armed, UR_CQ_QUIET);

	if (armed == UR_CQ_QUIET)
		return UR_CQ_PUSHED;
	if (atomic_load(&cq->reported) == tail) {
		/* That caller did. If the CQ is armed again, it is for the next completion, which only this thread can push. */
		atomic_fetch_or(&cq->armed, armed);
		return UR_CQ_PUSHED;
	}
	report(cq);
	return UR_CQ_NOTIFY;
}

enum ur_cq_push ur_cq_push(struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (__builtin_expect(cq->overflown, 0))
		return overflow(cq);
	if (__builtin_expect(tail - cq->head_seen >= cq->cqe, 0)) {
		cq->head_seen = atomic_load_explicit(&cq->head, memory_order_acquire);
		/* CQ-OVERFLOW-01 */
		if (tail - cq->head_seen >= cq->cqe)
			return overflow(cq);
		if (!cq->unarmed)
			catch_up(cq, tail);
	}
	if (wc != &cq->ring[tail & cq->mask])
		cq->ring[tail & cq->mask] = *wc;
	if (cq->unarmed) {
		atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
		return UR_CQ_PUSHED;
	}
	/*
	 * CQ-ARM-02: here tail is stored, then armed is read; ur_cq_arm() stores armed, then
	 * reads tail. In one total order of the four (seq_cst) at least one side sees the other.
	 */
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_seq_cst);
	if (__builtin_expect(
		    !wakes(atomic_load_explicit(&cq->armed, memory_order_seq_cst), wc, solicited),
		    1))
		return UR_CQ_PUSHED;
	return notify(cq, tail + 1);
}

unsigned ur_cq_poll(struct ur_cq *cq, unsigned n, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t ready = cq->tail_seen - head;

	if (ready < n) {
		cq->tail_seen = atomic_load_explicit(&cq->tail, memory_order_acquire);
		ready = cq->tail_seen - head;
		if (ready == 0)
			return 0;
		if (n > ready)
			n = ready;
	}
	for (unsigned i = 0; i < n; i++)
		wc[i] = cq->ring[(head + i) & cq->mask];
	atomic_store_explicit(&cq->head, head + n, memory_order_release);
	return n;
}

bool ur_cq_arm(struct ur_cq *cq, bool solicited_only)
{
	uint32_t first;

	UR_ASSERT(!cq->unarmed);
	atomic_fetch_or(&cq->armed, solicited_only ? UR_CQ_SOLICITED : UR_CQ_ANY);
	return find_unreported(cq, &first);
}

bool ur_cq_disarm(struct ur_cq *cq)
{
	if (atomic_exchange(&cq->armed, UR_CQ_QUIET) == UR_CQ_QUIET)
		return false;
	report(cq);
	return true;
}

/* CQ-RESIZE-01 */
bool ur_cq_resize(struct ur_cq *cq, void *memory, uint32_t cqe)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire);
	uint32_t mask = places(cqe) - 1;
	struct ibv_wc *ring = memory;

	if (tail - head > cqe)
		return false;
	for (uint32_t i = head; i != tail; i++)
		ring[i & mask] = cq->ring[i & cq->mask];
	cq->ring = ring;
	cq->mask = mask;
	cq->cqe = cqe;
	cq->head_seen = head;
	return true;
}

/* CQ-RESET-01. The others move toward the tail, which is the producer's and stays. */
void ur_cq_forget_qp(struct ur_cq *cq, uint32_t qpn)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire), to = tail;

	for (uint32_t i = tail; i != head;) {
		const struct ibv_wc *wc = &cq->ring[--i & cq->mask];

		if (wc->qp_num != qpn)
			cq->ring[--to & cq->mask] = *wc;
	}
	cq->tail_seen = tail;
	atomic_store_explicit(&cq->head, to, memory_order_release);
}

uint32_t ur_cq_pending(const struct ur_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire) -
	       atomic_load_explicit(&cq->head, memory_order_acquire);
}
