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

size_t ur_switch_adm_size(const struct ur_switch_attr *a)
{
	return a->hold ? UR_SWITCH_POOLS * sizeof(struct ur_switch_pool) : 0;
}

void ur_switch_adm_init(struct ur_switch_adm *adm, void *mem, const struct ur_switch_attr *a)
{
	*adm = (struct ur_switch_adm){.next_ns = UINT64_MAX};
	LIST_INIT(&adm->holding);
	if (!a->hold)
		return;
	adm->pool = mem;
	memset(mem, 0, ur_switch_adm_size(a));
	for (unsigned i = 0; i < UR_SWITCH_POOLS; i++)
		ur_switch_list_init(&adm->pool[i].held);
}

/* ---- table ---- */

static bool is_alive(const struct ur_switch_pool *p, uint64_t now_ns)
{
	return p->updated_ns && now_ns - p->updated_ns < UR_SWITCH_POOL_NS;
}

static uint32_t place_of(const struct ur_switch *sw, const struct ur_gid *addr, uint8_t tag)
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

		if (!p->held.cnt && (!oldest || p->updated_ns < oldest->updated_ns))
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

/* ---- requests that wait ---- */

static uint32_t qpn_of(const struct ur_switch_ref *r)
{
	return ur_load24(r->frame.data + r->bth + 5);
}

static struct ur_switch_pool_qp *find_qp(struct ur_switch_pool *p, uint32_t qpn)
{
	for (unsigned i = 0; i < p->qp_cnt; i++)
		if (p->qp[i].qpn == qpn)
			return &p->qp[i];
	return NULL;
}

/* Puts a reference, which is in no list, into its lane's queue. What has no place there any more is dropped. */
static void let_go(struct ur_switch *sw, uint32_t i)
{
	struct ur_switch_ref *r = &sw->ref[i];
	struct ur_switch_port *p = &sw->port[r->out_port];
	struct ur_switch_list *lane = &p->out.lane[r->vl];
	enum ur_switch_drop why = UR_SWITCH_DROP_CNT;

	sw->adm.held[r->in_port]--;
	if (lane->bytes + r->frame.len > p->attr.lane_bytes || lane->cnt >= p->out.lane_frames)
		why = UR_SWITCH_DROP_QUEUE_FULL;
	if (!(ur_vl_served(&p->out.vl) >> r->vl & 1))
		why = UR_SWITCH_DROP_NO_SERVICE;
	if (!(sw->up >> r->out_port & 1))
		why = UR_SWITCH_DROP_LINK_DOWN;
	if (why != UR_SWITCH_DROP_CNT) {
		ur_switch_drop(sw, r->out_port, r->vl, why);
		ur_switch_list_push(sw->ref, &sw->dead, i);
		return;
	}
	ur_switch_list_push(sw->ref, lane, i);
	p->out.ready |= (uint16_t)(1u << r->vl);
}

/* Lets everything go of the queue pairs that are marked, in order of arrival. */
static void release_marked(struct ur_switch *sw, struct ur_switch_pool *p)
{
	for (uint32_t left = p->held.cnt; left; left--) {
		uint32_t i = ur_switch_list_pop(sw->ref, &p->held);

		if (find_qp(p, qpn_of(&sw->ref[i]))->goes)
			let_go(sw, i);
		else
			ur_switch_list_push(sw->ref, &p->held, i);
	}
	for (unsigned i = p->qp_cnt; i-- > 0;)
		if (p->qp[i].goes)
			p->qp[i] = p->qp[--p->qp_cnt];
	if (!p->qp_cnt)
		LIST_REMOVE(p, link);
}

static void release_qp(struct ur_switch *sw, struct ur_switch_pool *p, uint32_t qpn)
{
	find_qp(p, qpn)->goes = true;
	release_marked(sw, p);
}

static void release(struct ur_switch *sw, struct ur_switch_pool *p)
{
	if (!p->qp_cnt)
		return;
	for (unsigned i = 0; i < p->qp_cnt; i++)
		p->qp[i].goes = true;
	release_marked(sw, p);
}

static void set_deadline(struct ur_switch *sw)
{
	struct ur_switch_pool *p;

	sw->adm.next_ns = UINT64_MAX;
	LIST_FOREACH(p, &sw->adm.holding, link)
	{
		uint64_t at = sw->ref[p->held.head].in_ns + UR_SWITCH_HOLD_NS;

		if (at < sw->adm.next_ns)
			sw->adm.next_ns = at;
	}
}

void ur_switch_adm_release_all(struct ur_switch *sw)
{
	while (!LIST_EMPTY(&sw->adm.holding))
		release(sw, LIST_FIRST(&sw->adm.holding));
	sw->adm.next_ns = UINT64_MAX;
}

/* SWITCH-HOLD-02 */
void ur_switch_adm_expire(struct ur_switch *sw, uint64_t now_ns)
{
	struct ur_switch_pool *p, *next;

	for (p = LIST_FIRST(&sw->adm.holding); p; p = next) {
		next = LIST_NEXT(p, link);
		while (p->held.cnt && sw->ref[p->held.head].in_ns + UR_SWITCH_HOLD_NS <= now_ns) {
			const struct ur_switch_ref *r = &sw->ref[p->held.head];

			sw->port[r->in_port].counters.held_late++;
			release_qp(sw, p, qpn_of(r));
		}
	}
	set_deadline(sw);
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
	bool any = false;

	for (unsigned i = 0; i < p->qp_cnt; i++) {
		struct ur_switch_pool_qp *qp = &p->qp[i];

		qp->goes = !is_refused(p->status, qp->claim) ||
			   (uint16_t)(p->generation - qp->generation) >= 2;
		any |= qp->goes;
	}
	if (any)
		release_marked(sw, p);
	set_deadline(sw);
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
			set_deadline(sw);
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

/* The pool behind whose held requests a packet of this queue pair has to wait. */
static struct ur_switch_pool *find_behind(struct ur_switch *sw, const struct ur_gid *addr,
					  uint32_t qpn)
{
	struct ur_switch_pool *p;

	LIST_FOREACH(p, &sw->adm.holding, link)
	if (ur_gid_eq(&p->addr, addr) && find_qp(p, qpn))
		return p;
	return NULL;
}

/* SWITCH-HOLD-04 */
static bool has_room(const struct ur_switch *sw, uint8_t in)
{
	return sw->adm.held[in] < sw->attr.limits.frames / UR_SWITCH_HOLD_PART;
}

/* SWITCH-HOLD-01 */
struct ur_switch_pool *ur_switch_adm_holds(struct ur_switch *sw, uint8_t out,
					   const struct ur_switch_headers *h, uint8_t in,
					   uint64_t now_ns)
{
	const uint8_t *xth = h->bth + UR_BTH_BYTES;
	uint32_t qpn = ur_load24(h->bth + 5);
	uint8_t claim = xth[XTH_FLAGS] >> CLAIM_BITS & 3;
	struct ur_switch_pool *p = find_behind(sw, &h->dst, qpn);

	if (p) {
		if (has_room(sw, in))
			return p;
		release_qp(sw, p, qpn);
		set_deadline(sw);
		return NULL;
	}
	if (!(xth[XTH_FLAGS] & UR_XTH_RECV) || ur_load24(xth + XTH_OFFSET) || !xth[XTH_TAG])
		return NULL;
	p = find(sw, &h->dst, xth[XTH_TAG]);
	if (!p || p->ambiguous || !is_alive(p, now_ns) || !is_refused(p->status, claim) ||
	    (!p->routed && p->port != out) || p->qp_cnt == UR_SWITCH_POOL_QPS || !has_room(sw, in))
		return NULL;
	if (!p->qp_cnt)
		LIST_INSERT_HEAD(&sw->adm.holding, p, link);
	p->qp[p->qp_cnt++] = (struct ur_switch_pool_qp){qpn, p->generation, claim, false};
	return p;
}

void ur_switch_adm_refused(struct ur_switch *sw, struct ur_switch_pool *pool, uint32_t qpn)
{
	for (uint32_t i = pool->held.head; i != UR_SWITCH_END; i = sw->ref[i].next)
		if (qpn_of(&sw->ref[i]) == qpn)
			return;
	release_qp(sw, pool, qpn);
}

void ur_switch_adm_held(struct ur_switch *sw, struct ur_switch_pool *pool, uint8_t in)
{
	uint64_t at = sw->ref[pool->held.head].in_ns + UR_SWITCH_HOLD_NS;

	sw->adm.held[in]++;
	sw->port[in].counters.held++;
	if (at < sw->adm.next_ns)
		sw->adm.next_ns = at;
}
