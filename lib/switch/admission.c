/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/admission.h"

#include <string.h>

#include "admission/attr.h"
#include "switch/hash.h"
#include "switch/inside.h"
#include "wire/assert.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

#define PROBES	   8 /* places of the table where an entry may be */
#define XTH_FLAGS  8
#define XTH_OFFSET 9
#define XTH_TAG	   12
#define CLAIM_BITS 3
#define GOING_STUCK                                                                                \
	16 /* queue pairs without room that one call looks at: at least one for each lane */

static size_t pools_bytes(void)
{
	return UR_SWITCH_POOLS * sizeof(struct ur_switch_pool);
}

static size_t qps_bytes(void)
{
	return UR_SWITCH_HELD_QPS * sizeof(struct ur_switch_held);
}

size_t ur_switch_adm_size(const struct ur_switch_attr *a)
{
	const struct ur_switch_adm *adm = NULL;

	return a->hold ? pools_bytes() + qps_bytes() + UR_SWITCH_HELD_QPS * sizeof(*adm->hash) : 0;
}

void ur_switch_adm_init(struct ur_switch_adm *adm, void *mem, const struct ur_switch_attr *a)
{
	*adm = (struct ur_switch_adm){.next_ns = UINT64_MAX};
	TAILQ_INIT(&adm->free);
	TAILQ_INIT(&adm->waiting);
	for (unsigned p = 0; p < UR_SWITCH_PORTS_MAX; p++)
		TAILQ_INIT(&adm->going[p]);
	if (!a->hold)
		return;
	memset(mem, 0, ur_switch_adm_size(a));
	adm->pool = mem;
	adm->qp = (void *)((uint8_t *)mem + pools_bytes());
	adm->hash = (void *)((uint8_t *)mem + pools_bytes() + qps_bytes());
	for (unsigned i = 0; i < UR_SWITCH_POOLS; i++)
		TAILQ_INIT(&adm->pool[i].waiting);
	for (unsigned i = 0; i < UR_SWITCH_HELD_QPS; i++)
		TAILQ_INSERT_TAIL(&adm->free, &adm->qp[i], link);
}

/* ---- table ---- */

static bool is_alive(const struct ur_switch_pool *p, uint64_t now_ns)
{
	return p->updated_ns && now_ns - p->updated_ns < UR_SWITCH_POOL_NS;
}

/* `tag`: of a pool, or the number of a queue pair. */
static uint32_t place_of(const struct ur_switch *sw, const struct ur_gid *addr, uint32_t tag)
{
	uint64_t half[2];

	memcpy(half, addr->b, sizeof(half));
	return (uint32_t)ur_switch_hash(half[0] ^ ur_switch_hash(half[1] ^ tag, sw->attr.seed),
					sw->attr.seed);
}

static struct ur_switch_pool *find(struct ur_switch *sw, const struct ur_gid *addr, uint8_t tag)
{
	uint32_t at = place_of(sw, addr, tag);

	for (unsigned i = 0; i < PROBES; i++) {
		struct ur_switch_pool *p = &sw->adm.pool[(at + i) % UR_SWITCH_POOLS];

		if (p->updated_ns && p->tag == tag && ur_gid_eq(&p->addr, addr))
			return p;
	}
	return NULL;
}

/* A free place, or that of the entry which was updated longest ago and has no frames; NULL: there is none. */
static struct ur_switch_pool *make(struct ur_switch *sw, const struct ur_gid *addr, uint8_t tag)
{
	uint32_t at = place_of(sw, addr, tag);
	struct ur_switch_pool *oldest = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		struct ur_switch_pool *p = &sw->adm.pool[(at + i) % UR_SWITCH_POOLS];

		if (!p->qp_cnt && (!oldest || p->updated_ns < oldest->updated_ns))
			oldest = p;
	}
	if (!oldest)
		return NULL;
	oldest->addr = *addr;
	oldest->tag = tag;
	oldest->updated_ns = 0;
	oldest->ambiguous = false;
	return oldest;
}

/* ---- queue pairs ---- */

static struct ur_switch_held *find_qp(struct ur_switch *sw, const struct ur_gid *addr, uint32_t qpn)
{
	uint32_t at = place_of(sw, addr, qpn) % UR_SWITCH_HELD_QPS;
	struct ur_switch_held *q;

	LIST_FOREACH(q, &sw->adm.hash[at], same_hash)
	if (q->qpn == qpn && ur_gid_eq(&q->addr, addr))
		return q;
	return NULL;
}

static void set_deadline(struct ur_switch_adm *adm)
{
	const struct ur_switch_held *q = TAILQ_FIRST(&adm->waiting);

	adm->next_ns = q ? q->since_ns + UR_SWITCH_HOLD_NS : UINT64_MAX;
}

/* A queue pair without references, which is in neither list. */
static void free_qp(struct ur_switch_adm *adm, struct ur_switch_held *q)
{
	LIST_REMOVE(q, same_hash);
	TAILQ_INSERT_TAIL(&adm->free, q, link);
}

static void stop_waiting(struct ur_switch_adm *adm, struct ur_switch_held *q)
{
	TAILQ_REMOVE(&adm->waiting, q, link);
	TAILQ_REMOVE(&q->pool->waiting, q, of_pool);
	q->pool->qp_cnt--;
	q->pool = NULL;
}

/* Whether the first reference has a place now, also that of the dropped: then it takes it. */
static bool move_first(struct ur_switch *sw, struct ur_switch_held *q)
{
	uint32_t i = q->refs.head;
	struct ur_switch_ref *r = &sw->ref[i];
	struct ur_switch_port *p = &sw->port[r->out_port];
	enum ur_switch_drop why = UR_SWITCH_DROP_CNT;

	if (!(ur_vl_served(&p->out.vl) >> r->vl & 1))
		why = UR_SWITCH_DROP_NO_SERVICE;
	if (p->credit.stalled >> r->vl & 1)
		why = UR_SWITCH_DROP_NO_CREDIT;
	if (!(sw->up >> r->out_port & 1))
		why = UR_SWITCH_DROP_LINK_DOWN;
	if (why == UR_SWITCH_DROP_CNT && !ur_switch_has_room(p, r->vl, r->frame.len, r->credit))
		return false;
	ur_switch_list_pop(sw->ref, &q->refs);
	sw->adm.held[r->in_port]--;
	if (why != UR_SWITCH_DROP_CNT) {
		ur_switch_drop(sw, r->out_port, r->vl, why);
		ur_switch_list_push(sw->ref, &sw->dead, i);
		return true;
	}
	ur_switch_list_push(sw->ref, &p->out.lane[r->vl], i);
	p->out.ready |= (uint16_t)(1u << r->vl);
	return true;
}

/*
 * SWITCH-HOLD-05: moves what fits into the lanes. A queue pair that is in no list ends in that of the port where it has to
 * wait for room, or is free. True: it is free.
 */
static bool move(struct ur_switch *sw, struct ur_switch_held *q)
{
	while (q->refs.cnt && move_first(sw, q))
		;
	if (!q->refs.cnt) {
		free_qp(&sw->adm, q);
		return true;
	}
	TAILQ_INSERT_TAIL(&sw->adm.going[sw->ref[q->refs.head].out_port], q, link);
	return false;
}

/* True: all has gone. */
static bool let_go(struct ur_switch *sw, struct ur_switch_held *q)
{
	stop_waiting(&sw->adm, q);
	return move(sw, q);
}

static void release(struct ur_switch *sw, struct ur_switch_pool *p)
{
	while (!TAILQ_EMPTY(&p->waiting))
		let_go(sw, TAILQ_FIRST(&p->waiting));
	set_deadline(&sw->adm);
}

void ur_switch_adm_release_all(struct ur_switch *sw)
{
	while (!TAILQ_EMPTY(&sw->adm.waiting))
		let_go(sw, TAILQ_FIRST(&sw->adm.waiting));
	set_deadline(&sw->adm);
}

/* SWITCH-HOLD-05: in turns, as long as one that finds no room is not the first one again. */
void ur_switch_adm_move(struct ur_switch *sw, uint8_t port)
{
	struct ur_switch_held_list *going = &sw->adm.going[port];
	struct ur_switch_held *q;

	for (unsigned stuck = 0; stuck < GOING_STUCK && (q = TAILQ_FIRST(going));) {
		uint32_t was = q->refs.cnt;

		TAILQ_REMOVE(going, q, link);
		if (!move(sw, q))
			stuck += q->refs.cnt == was;
	}
}

/* SWITCH-HOLD-02 */
void ur_switch_adm_expire(struct ur_switch *sw, uint64_t now_ns)
{
	struct ur_switch_held *q;

	while ((q = TAILQ_FIRST(&sw->adm.waiting)) && q->since_ns + UR_SWITCH_HOLD_NS <= now_ns) {
		sw->port[sw->ref[q->refs.head].in_port].counters.held_late++;
		let_go(sw, q);
	}
	set_deadline(&sw->adm);
}

/* ---- status ---- */

static bool is_refused(uint8_t status, uint8_t claim)
{
	return (status == UR_ADM_A && claim != UR_ADM_CLASS_A) ||
	       (status == UR_ADM_B && claim != UR_ADM_CLASS_B);
}

/* SWITCH-HOLD-01: the status has changed. */
static void wake(struct ur_switch *sw, struct ur_switch_pool *p)
{
	struct ur_switch_held *q, *next;

	for (q = TAILQ_FIRST(&p->waiting); q; q = next) {
		next = TAILQ_NEXT(q, of_pool);
		if (!is_refused(p->status, q->claim) ||
		    (uint16_t)(p->generation - q->generation) >= 2)
			let_go(sw, q);
	}
	set_deadline(&sw->adm);
}

/* Whether the forwarding table leads to an address by `port`. *routed: it has a LID. */
static bool leads(const struct ur_switch *sw, const struct ur_gid *addr, uint8_t port, bool *routed)
{
	const struct ur_switch_route *route = ur_switch_routes_find(&sw->routes, addr);

	*routed = route != NULL;
	for (unsigned i = 0; route && i < 1u << route->lmc; i++)
		if (ur_switch_lft(sw, (uint16_t)(route->lid + i)) == port)
			return true;
	return !route;
}

static void take_status(struct ur_switch *sw, struct ur_switch_pool *p, const struct ur_packet *k,
			uint64_t now_ns)
{
	p->updated_ns = now_ns;
	p->generation = k->asth.generation;
	p->status = k->asth.status;
	wake(sw, p);
}

/* SWITCH-HOLD-03 */
void ur_switch_adm_notify(struct ur_switch *sw, uint8_t port, const struct ur_switch_frame *frame,
			  uint64_t now_ns)
{
	struct ur_switch_pool *p;
	struct ur_packet k;
	struct ur_gid src;
	bool routed;

	if (ur_packet_decode(frame->data, frame->len, &k) != UR_DROP_NONE ||
	    !(k.op & UR_OP_NOTIFY) || !ur_icrc_ok(frame->data, &k))
		return;
	src = k.ip.src;
	if (!leads(sw, &src, port, &routed)) {
		sw->port[port].counters.notify_ignored++;
		return;
	}
	p = find(sw, &src, ur_pool_tag(k.pool));
	if (p && is_alive(p, now_ns)) {
		if (!routed && p->port != port) {
			sw->port[port].counters.notify_ignored++;
			return;
		}
		if (p->ambiguous || p->name != k.pool) {
			release(sw, p);
			p->ambiguous = true;
			p->updated_ns = now_ns;
			return;
		}
		if ((int16_t)(k.asth.generation - p->generation) >= 0)
			take_status(sw, p, &k, now_ns);
		return;
	}
	if (p)
		release(sw, p);
	p = p ? p : make(sw, &src, ur_pool_tag(k.pool));
	if (!p)
		return;
	p->name = k.pool;
	p->port = port;
	p->routed = routed;
	p->ambiguous = false;
	take_status(sw, p, &k, now_ns);
}

/* SWITCH-HOLD-04 */
static bool has_room(const struct ur_switch *sw, uint8_t in)
{
	return sw->adm.held[in] < sw->attr.limits.frames / UR_SWITCH_HOLD_PART;
}

/* A packet of a queue pair of which others wait or go. */
static struct ur_switch_held *queue_behind(struct ur_switch *sw, struct ur_switch_held *q,
					   uint8_t in, bool *behind)
{
	if (has_room(sw, in))
		return q;
	if (q->pool) {
		bool gone = let_go(sw, q);

		set_deadline(&sw->adm);
		if (gone)
			return NULL;
	}
	*behind = true;
	return q;
}

/* SWITCH-HOLD-01 */
struct ur_switch_held *ur_switch_adm_holds(struct ur_switch *sw, uint8_t out,
					   const struct ur_switch_headers *h, uint8_t in,
					   uint64_t now_ns, bool *behind)
{
	struct ur_switch_adm *adm = &sw->adm;
	const uint8_t *xth = h->bth + UR_BTH_BYTES;
	uint32_t qpn = ur_load24(h->bth + 5);
	uint8_t claim = xth[XTH_FLAGS] >> CLAIM_BITS & 3;
	struct ur_switch_held *q = find_qp(sw, &h->dst, qpn);
	struct ur_switch_pool *p;

	*behind = false;
	if (q)
		return queue_behind(sw, q, in, behind);
	if (!(xth[XTH_FLAGS] & UR_XTH_RECV) || ur_load24(xth + XTH_OFFSET) || !xth[XTH_TAG])
		return NULL;
	p = find(sw, &h->dst, xth[XTH_TAG]);
	if (!p || p->ambiguous || !is_alive(p, now_ns) || !is_refused(p->status, claim) ||
	    (!p->routed && p->port != out) || p->qp_cnt == UR_SWITCH_POOL_QPS || !has_room(sw, in))
		return NULL;
	q = TAILQ_FIRST(&adm->free);
	if (!q)
		return NULL;
	TAILQ_REMOVE(&adm->free, q, link);
	q->addr = h->dst;
	q->qpn = qpn;
	q->pool = p;
	q->generation = p->generation;
	q->claim = claim;
	q->since_ns = now_ns;
	ur_switch_list_init(&q->refs);
	p->qp_cnt++;
	TAILQ_INSERT_TAIL(&p->waiting, q, of_pool);
	TAILQ_INSERT_TAIL(&adm->waiting, q, link);
	LIST_INSERT_HEAD(&adm->hash[place_of(sw, &h->dst, qpn) % UR_SWITCH_HELD_QPS], q, same_hash);
	return q;
}

void ur_switch_adm_refused(struct ur_switch *sw, struct ur_switch_held *q)
{
	if (q->refs.cnt)
		return;
	stop_waiting(&sw->adm, q);
	free_qp(&sw->adm, q);
}

void ur_switch_adm_held(struct ur_switch *sw, struct ur_switch_held *q, uint32_t ref, uint8_t in)
{
	ur_switch_list_push(sw->ref, &q->refs, ref);
	sw->adm.held[in]++;
	sw->port[in].counters.held++;
	if (q->pool)
		set_deadline(&sw->adm);
}

/* ---- invariants ---- */

static uint32_t count(const struct ur_switch *sw, const struct ur_switch_held *q)
{
	uint32_t cnt = 0;

	for (uint32_t i = q->refs.head; i != UR_SWITCH_END; i = sw->ref[i].next)
		cnt++;
	UR_ASSERT(cnt && cnt == q->refs.cnt);
	return cnt;
}

uint32_t ur_switch_adm_validate(const struct ur_switch *sw)
{
	const struct ur_switch_adm *adm = &sw->adm;
	const struct ur_switch_held *q;
	uint32_t refs = 0, qps = 0, held = 0;

	if (!adm->pool)
		return 0;
	TAILQ_FOREACH(q, &adm->waiting, link)
	{
		UR_ASSERT(q->pool && q->pool->qp_cnt);
		UR_ASSERT(!TAILQ_NEXT(q, link) || TAILQ_NEXT(q, link)->since_ns >= q->since_ns);
		refs += count(sw, q);
		qps++;
	}
	for (unsigned p = 0; p < UR_SWITCH_PORTS_MAX; p++) {
		held += adm->held[p];
		TAILQ_FOREACH(q, &adm->going[p], link)
		{
			UR_ASSERT(!q->pool && sw->ref[q->refs.head].out_port == p);
			refs += count(sw, q);
			qps++;
		}
	}
	TAILQ_FOREACH(q, &adm->free, link)
	qps++;
	UR_ASSERT(qps == UR_SWITCH_HELD_QPS && refs == held);
	return refs;
}
