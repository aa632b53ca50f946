/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "admission/sst.h"
#include "wire/assert.h"
#include "wire/bits.h"

/* ---- table ---- */

size_t ur_sst_size(uint32_t cnt)
{
	return cnt * sizeof(struct ur_sst_entry) +
	       ur_pow2_at_least(cnt) * sizeof(struct ur_sst_list);
}

void ur_sst_init(struct ur_sst *t, void *memory, uint32_t cnt, uint64_t life_ns, uint64_t seed)
{
	struct ur_sst_entry *e = memory;

	UR_ASSERT(cnt <= UINT32_C(1) << 24 && life_ns);
	*t = (struct ur_sst){
		.life_ns = life_ns,
		.seed = seed | 1,
		.buckets = ur_pow2_at_least(cnt),
		.cnt = cnt,
		.bucket = (struct ur_sst_list *)(void *)(e + cnt),
	};
	LIST_INIT(&t->free);
	for (uint32_t i = cnt; i-- > 0;) {
		e[i] = (struct ur_sst_entry){0};
		LIST_INSERT_HEAD(&t->free, &e[i], link);
	}
	for (uint32_t i = 0; i < t->buckets; i++)
		LIST_INIT(&t->bucket[i]);
}

static struct ur_sst_list *bucket_of(struct ur_sst *t, const uint8_t peer[16], uint32_t pool)
{
	return &t->bucket[ur_hash16(peer, t->seed ^ pool) & (t->buckets - 1)];
}

struct ur_sst_entry *ur_sst_get(struct ur_sst *t, const uint8_t peer[16], uint32_t pool)
{
	struct ur_sst_list *bucket = bucket_of(t, peer, pool);
	struct ur_sst_entry *e;

	LIST_FOREACH(e, bucket, link)
	if (e->pool == pool && !memcmp(e->peer, peer, 16)) {
		e->refs++;
		return e;
	}
	e = LIST_FIRST(&t->free);
	if (!e)
		return NULL;
	LIST_REMOVE(e, link);
	LIST_INSERT_HEAD(bucket, e, link);
	t->used++;
	e->pool = pool;
	e->refs = 1;
	e->life_ns = t->life_ns;
	e->known = e->paper = false;
	memcpy(e->peer, peer, 16);
	for (unsigned i = 0; i < 3; i++)
		TAILQ_INIT(&e->waiters[i]);
	TAILQ_INIT(&e->released);
	return e;
}

void ur_sst_put(struct ur_sst *t, struct ur_sst_entry *e)
{
	UR_ASSERT(e->refs);
	if (--e->refs)
		return;
	for (unsigned i = 0; i < 3; i++)
		UR_ASSERT(TAILQ_EMPTY(&e->waiters[i]));
	UR_ASSERT(TAILQ_EMPTY(&e->released));
	LIST_REMOVE(e, link);
	LIST_INSERT_HEAD(&t->free, e, link);
	t->used--;
}

/* ---- status ---- */

/* ADM-SST-03 */
static bool is_known(const struct ur_sst_entry *e, uint64_t now_ns)
{
	return e->known && now_ns - e->updated_ns < e->life_ns;
}

/* Generations from before are of no use: the pool may be another one. */
static void count_from(struct ur_sst_entry *e, uint16_t generation)
{
	struct ur_sst_waiter *w;

	TAILQ_FOREACH(w, &e->released, link)
	w->generation = generation;
	for (unsigned i = 0; i < 3; i++)
		TAILQ_FOREACH(w, &e->waiters[i], link)
	w->generation = generation;
}

/* ADM-SST-01 */
bool ur_sst_update(struct ur_sst_entry *e, uint8_t status, uint16_t generation, uint64_t now_ns)
{
	bool known = is_known(e, now_ns);
	int16_t newer = (int16_t)(generation - e->generation);

	if (known && newer < 0)
		return false;
	e->updated_ns = now_ns;
	if (known && newer == 0)
		return false;
	if (!known && e->paper)
		count_from(e, generation);
	e->known = true;
	e->status = status & 3;
	e->generation = generation;
	return true;
}

/* ADM-SST-02 */
bool ur_sst_may_send(const struct ur_sst_entry *e, uint8_t queue_class, uint64_t now_ns)
{
	if (!is_known(e, now_ns))
		return true;
	return !(e->status == UR_ADM_A && queue_class != UR_ADM_CLASS_A) &&
	       !(e->status == UR_ADM_B && queue_class != UR_ADM_CLASS_B);
}

/* ---- waiters ---- */

static void enter_queue(struct ur_sst_entry *e, struct ur_sst_waiter *w, uint8_t queue_class)
{
	w->queue_class = queue_class;
	w->turn = e->turns++;
	w->waits = true;
	TAILQ_INSERT_TAIL(&e->waiters[queue_class], w, link);
}

void ur_sst_wait(struct ur_sst_entry *e, struct ur_sst_waiter *w, uint8_t queue_class)
{
	UR_ASSERT(queue_class <= UR_ADM_CLASS_B);
	if (w->waits && w->queue_class == queue_class)
		return;
	ur_sst_cancel_wait(e, w);
	w->generation = e->generation;
	enter_queue(e, w, queue_class);
}

void ur_sst_cancel_wait(struct ur_sst_entry *e, struct ur_sst_waiter *w)
{
	if (w->waits)
		TAILQ_REMOVE(&e->waiters[w->queue_class], w, link);
	else if (w->released)
		TAILQ_REMOVE(&e->released, w, link);
	w->waits = w->released = false;
}

/* ADM-SST-05, ADM-PAPER-04: phases in which it could have sent have passed unused. */
static bool has_waited_out(const struct ur_sst_entry *e, const struct ur_sst_waiter *w)
{
	return (int16_t)(e->generation - w->generation) >= (e->paper ? 4 : 2);
}

static void enter_released(struct ur_sst_entry *e, struct ur_sst_waiter *w)
{
	w->released = true;
	TAILQ_INSERT_TAIL(&e->released, w, link);
}

/* ADM-SST-04 */
static struct ur_sst_waiter *first_to_go(const struct ur_sst_entry *e, uint64_t now_ns)
{
	struct ur_sst_waiter *first = NULL;

	for (uint8_t queue_class = UR_ADM_NONE; queue_class <= UR_ADM_CLASS_B; queue_class++) {
		struct ur_sst_waiter *w = TAILQ_FIRST(&e->waiters[queue_class]);

		if (w && (ur_sst_may_send(e, queue_class, now_ns) || has_waited_out(e, w)) &&
		    (!first || w->turn < first->turn))
			first = w;
	}
	return first;
}

uint32_t ur_sst_wake(struct ur_sst_entry *e, struct ur_sst_waiter **out, uint32_t n,
		     uint64_t now_ns)
{
	uint32_t cnt = 0;

	while (cnt < n) {
		struct ur_sst_waiter *w = first_to_go(e, now_ns);

		if (!w)
			break;
		ur_sst_cancel_wait(e, w);
		/* One whose status has expired goes, whatever arrives now. */
		if (e->paper && !w->queue_class && is_known(e, now_ns))
			enter_released(e, w);
		out[cnt++] = w;
	}
	return cnt;
}

void ur_sst_release(struct ur_sst_entry *e, struct ur_sst_waiter *w)
{
	ur_sst_cancel_wait(e, w);
	w->queue_class = UR_ADM_NONE;
	w->generation = e->generation;
	enter_released(e, w);
}

/* ADM-PAPER-03 */
struct ur_sst_waiter *ur_sst_next_refused(struct ur_sst_entry *e)
{
	struct ur_sst_waiter *w = TAILQ_FIRST(&e->released);

	if (!w || !e->known || !(e->status & 1))
		return NULL;
	ur_sst_cancel_wait(e, w);
	return w;
}

bool ur_sst_recall(struct ur_sst_entry *e, struct ur_sst_waiter *w)
{
	if (has_waited_out(e, w))
		return false;
	enter_queue(e, w, UR_ADM_NONE);
	return true;
}

uint64_t ur_sst_deadline(const struct ur_sst_entry *e)
{
	for (unsigned i = 0; i < 3; i++)
		if (!TAILQ_EMPTY(&e->waiters[i]))
			return e->updated_ns + e->life_ns;
	return UINT64_MAX;
}
