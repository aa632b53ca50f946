/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/admission_priv.h"

#include "transport/build.h"
#include "wire/assert.h"
#include "wire/bits.h"

#define RTT_NS UINT64_C(50000) /* assumed before the first sample */

#define SRQ_OF(ptr, member)                                                                        \
	((struct ur_srq *)(void *)((char *)(ptr)-offsetof(struct ur_srq, member)))
#define QP_OF_ADM(ptr)	   UR_QP_OF(ptr, adm)
#define QP_OF_REFUSAL(ptr) UR_QP_OF(ptr, adm.refusal)

void ur_adm_attr_default(struct ur_adm_attr *attr)
{
	*attr = (struct ur_adm_attr){
		.mode = UR_ADM_PLAIN,
		.fallback_ns = UINT64_C(20000000),
		.grant_life_ns = UINT64_C(2000000),
		.refusal_life_ns = UINT64_C(1000000000),
		.status_ns = UINT64_C(100000000),
	};
}

/* ---- memory ---- */

struct layout {
	size_t buckets, entries, timers, total;
};

static struct layout layout_of(uint32_t cnt)
{
	struct layout at;

	at.buckets = ur_align64(cnt * sizeof(struct ur_pool_peer));
	at.entries = at.buckets + ur_align64(ur_pow2_at_least(cnt) * sizeof(struct ur_pool_peers));
	at.timers = at.entries + ur_align64(ur_sst_size(cnt));
	at.total = at.timers + ur_align64(cnt * sizeof(struct ur_timer));
	return at;
}

size_t ur_admission_size(uint32_t cnt)
{
	return layout_of(cnt).total;
}

/* The shortest timer code of at least `ns`; the longest if there is none. */
static uint8_t code_of(uint64_t ns)
{
	for (uint8_t code = 1; code < 32; code++)
		if (ur_rnr_timer_ns(code) >= ns)
			return code;
	return 0;
}

void ur_admission_init(struct ur_core *core, void *memory, uint32_t cnt,
		       const struct ur_adm_attr *attr, uint64_t seed)
{
	struct ur_admission *a = &core->adm;
	struct layout at = layout_of(cnt);
	uint8_t *m = memory;
	struct ur_pool_peer *peers = memory;

	*a = (struct ur_admission){
		.attr = *attr,
		.fallback_code = code_of(attr->fallback_ns),
		.cnt = cnt,
		.buckets = ur_pow2_at_least(cnt),
		.seed = seed | 1,
		.bucket = (struct ur_pool_peers *)(void *)(m + at.buckets),
		.entries = (struct ur_sst_entry *)(void *)(m + at.entries),
		.timers = (struct ur_timer *)(void *)(m + at.timers),
	};
	ur_sched_init(&a->busy);
	LIST_INIT(&a->srqs);
	LIST_INIT(&a->free);
	for (uint32_t i = 0; i < a->buckets; i++)
		LIST_INIT(&a->bucket[i]);
	for (uint32_t i = cnt; i-- > 0;) {
		peers[i].srq = NULL;
		LIST_INSERT_HEAD(&a->free, &peers[i], link);
		a->timers[i] = (struct ur_timer){.kind = UR_TIMER_SST};
	}
	ur_sst_init(&a->sst, a->entries, cnt, attr->status_ns, seed);
}

/* ---- SRQs ---- */

static uint32_t posted(const struct ur_srq *srq)
{
	return ur_wq_cnt(&srq->rq);
}

/* The pool changed: a grant or NOTIFY may be due, or its timer. */
static void set_changed(struct ur_srq *srq)
{
	srq->changed = true;
	ur_sched_set(&srq->core->adm.busy, &srq->node, true);
}

void ur_admission_join(struct ur_core *core, struct ur_srq *srq)
{
	const struct ur_adm_attr *attr = &core->adm.attr;
	struct ur_adm_limits limits = {attr->mode, attr->refusal_life_ns, attr->grant_life_ns};

	srq->core = core;
	srq->changed = false;
	srq->node = (struct ur_sched_node){0};
	srq->timer = (struct ur_timer){.kind = UR_TIMER_POOL};
	ur_adm_pool_init(&srq->adm, &limits);
	LIST_INSERT_HEAD(&core->adm.srqs, srq, link);
}

void ur_admission_leave(struct ur_srq *srq)
{
	struct ur_core *core = srq->core;

	ur_timer_cancel(&core->wheel, &srq->timer);
	ur_sched_set(&core->adm.busy, &srq->node, false);
	LIST_REMOVE(srq, link);
	srq->core = NULL;
}

/* ---- peers of a pool ---- */

static struct ur_pool_peers *bucket_of(struct ur_admission *a, const struct ur_srq *srq,
				       const uint8_t address[16], uint8_t table)
{
	uint64_t seed = a->seed ^ (uintptr_t)srq ^ (uint64_t)table << 56;

	return &a->bucket[ur_hash16(address, seed) & (a->buckets - 1)];
}

static uint64_t rtt_of(const struct ur_qp *qp)
{
	uint32_t srtt = qp->xreq.rtt.srtt;

	return srtt ? (uint64_t)srtt << UR_STAMP_SHIFT : RTT_NS;
}

/* ADM-NOTIFY-01: one for all queue pairs that share a table. */
static void enter_peer(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_admission *a = &qp->core->adm;
	uint8_t table = (uint8_t)(qp->dest_qpn.v & ((1u << qp->agreed.tables) - 1));
	struct ur_pool_peers *bucket;
	struct ur_pool_peer *peer;
	struct ur_gid to = ur_path_destination(qp->path);

	bucket = bucket_of(a, qp->srq, to.b, table);
	LIST_FOREACH(peer, bucket, link)
	if (peer->srq == qp->srq && peer->table == table && !memcmp(peer->address, to.b, 16))
		break;
	if (!peer) {
		peer = LIST_FIRST(&a->free);
		if (!peer) {
			qp->core->cnt.adm_exhausted++;
			return;
		}
		LIST_REMOVE(peer, link);
		LIST_INSERT_HEAD(bucket, peer, link);
		peer->srq = qp->srq;
		peer->table = table;
		memcpy(peer->address, to.b, 16);
		TAILQ_INIT(&peer->qps);
		ur_adm_peer_add(&qp->srq->adm, &peer->adm, rtt_of(qp), now_ns);
	}
	TAILQ_INSERT_TAIL(&peer->qps, &qp->adm, link);
	qp->adm.peer = peer;
}

static void leave_peer(struct ur_qp *qp)
{
	struct ur_admission *a = &qp->core->adm;
	struct ur_pool_peer *peer = qp->adm.peer;

	if (!peer)
		return;
	qp->adm.peer = NULL;
	TAILQ_REMOVE(&peer->qps, &qp->adm, link);
	if (!TAILQ_EMPTY(&peer->qps))
		return;
	ur_adm_peer_remove(&qp->srq->adm, &peer->adm);
	peer->srq = NULL;
	LIST_REMOVE(peer, link);
	LIST_INSERT_HEAD(&a->free, peer, link);
}

/* ---- life of a queue pair ---- */

/* ADM-AGREE-01 */
void ur_admission_connect(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_admission *a = &qp->core->adm;
	const struct ur_adm_agreed *agreed = &qp->agreed;
	struct ur_gid to;

	ur_admission_forget(qp);
	if (a->attr.mode == UR_ADM_PLAIN)
		return;
	if (agreed->sends_status && qp->srq) {
		qp->admission |= UR_ADM_RECEIVER;
		if (a->attr.mode >= UR_ADM_INTELLIGENT)
			enter_peer(qp, now_ns);
	}
	if (!agreed->receives_status)
		return;
	qp->admission |= UR_ADM_SENDER;
	if (!agreed->notifies)
		return;
	to = ur_path_destination(qp->path);
	qp->adm.entry = ur_sst_get(&a->sst, to.b, agreed->pool);
	if (!qp->adm.entry) {
		qp->core->cnt.adm_exhausted++;
		return;
	}
	qp->adm.entry->paper = agreed->paper;
	qp->admission |= UR_ADM_HOLDER | (agreed->paper ? UR_ADM_UNGRANTED : 0);
}

/* ADM-REFUSAL-02 */
void ur_admission_forget(struct ur_qp *qp)
{
	struct ur_admission *a = &qp->core->adm;
	struct ur_adm_qp *q = &qp->adm;

	if (!qp->admission)
		return;
	if (qp->admission & UR_ADM_RECEIVER) {
		leave_peer(qp);
		if (q->refusal.queue_class) {
			ur_adm_pool_forget(&qp->srq->adm, &q->refusal);
			set_changed(qp->srq);
		}
	}
	if (q->entry) {
		ur_sst_cancel_wait(q->entry, &q->waiter);
		if (q->entry->refs == 1)
			ur_timer_cancel(&qp->core->wheel, ur_admission_timer_of(a, q->entry));
		ur_sst_put(&a->sst, q->entry);
		q->entry = NULL;
	}
	q->queue_class = UR_ADM_NONE;
	q->may_send = q->may_repeat = q->status_seen = false;
	qp->admission = 0;
}

/* ---- receiver ---- */

bool ur_admission_admit(struct ur_qp *qp, uint8_t claim, uint64_t now_ns)
{
	struct ur_srq *srq = qp->srq;
	struct ur_counters *cnt = &qp->core->cnt;
	uint8_t held = qp->adm.refusal.queue_class;
	uint16_t generation = srq->adm.generation;
	bool ok;

	if (claim > UR_ADM_CLASS_B)
		claim = UR_ADM_NONE;
	cnt->adm_false_claims += claim && claim != held;
	ok = ur_adm_pool_request(&srq->adm, &qp->adm.refusal, claim, posted(srq), now_ns);
	cnt->adm_accepted += ok;
	cnt->adm_refused += !ok;
	if (__builtin_expect(!ok || held || generation != srq->adm.generation, 0))
		set_changed(srq);
	return ok;
}

/* ADM-EARLY-01 */
uint32_t ur_admission_early_room(const struct ur_qp *qp)
{
	uint32_t cnt = posted(qp->srq);

	if (qp->adm.refusal.queue_class || !ur_adm_pool_is_open(&qp->srq->adm, cnt))
		return 0;
	return ur_adm_pool_room(&qp->srq->adm, cnt);
}

void ur_admission_refresh(struct ur_qp *qp, uint64_t now_ns)
{
	ur_adm_pool_refresh(&qp->srq->adm, &qp->adm.refusal, now_ns);
}

uint8_t ur_admission_rnr_timer(const struct ur_qp *qp)
{
	const struct ur_admission *a = &qp->core->adm;
	uint8_t code = qp->rsp.min_rnr_timer;

	if (a->attr.mode != UR_ADM_INTELLIGENT ||
	    ur_rnr_timer_ns(code) >= ur_rnr_timer_ns(a->fallback_code))
		return code;
	return a->fallback_code;
}

static struct ur_asth status_of(const struct ur_srq *srq)
{
	uint32_t room = ur_adm_pool_room(&srq->adm, posted(srq));

	return (struct ur_asth){
		.status = srq->adm.status,
		.room = (uint8_t)(room < 255 ? room : 255),
		.generation = srq->adm.generation,
	};
}

uint32_t ur_admission_status(const struct ur_qp *qp)
{
	struct ur_asth x = status_of(qp->srq);

	x.queue_class = qp->adm.refusal.queue_class;
	x.granted = qp->adm.refusal.granted;
	return ur_asth_pack(&x);
}

/* A refusal of the served class can get a grant. */
static bool can_grant(const struct ur_srq *srq)
{
	const struct ur_adm_pool *p = &srq->adm;

	return p->limits.mode == UR_ADM_INTELLIGENT &&
	       !TAILQ_EMPTY(&p->waiting[ur_adm_pool_served(p)]) && ur_adm_pool_room(p, posted(srq));
}

bool ur_admission_wants_output(const struct ur_core *core)
{
	struct ur_sched_node *n;

	TAILQ_FOREACH(n, &core->adm.busy.ready, link)
	{
		const struct ur_srq *srq = SRQ_OF(n, node);

		if (srq->changed || can_grant(srq))
			return true;
	}
	return false;
}

/* Nothing is due. An SRQ with refusals stays listed: a receive posted later may bring a grant. */
static void go_idle(struct ur_srq *srq)
{
	struct ur_core *core = srq->core;
	uint64_t at;

	if (srq->changed) {
		at = ur_adm_pool_deadline(&srq->adm);
		if (at != UR_NEVER && (!srq->timer.armed || at < srq->timer.deadline_ns))
			ur_timer_set(&core->wheel, &srq->timer, at);
	}
	srq->changed = false;
	if (!srq->adm.refused[UR_ADM_CLASS_A] && !srq->adm.refused[UR_ADM_CLASS_B])
		ur_sched_set(&core->adm.busy, &srq->node, false);
}

/* The queue pair to send to next, and the generation that it is told of; NULL: none. */
static struct ur_qp *next_recipient(struct ur_srq *srq, bool *granted, uint16_t *generation,
				    uint64_t now_ns)
{
	struct ur_adm_refusal *r = ur_adm_pool_next_grant(&srq->adm, posted(srq), now_ns);
	struct ur_adm_peer *peer;
	struct ur_pool_peer *pp;
	struct ur_qp *qp;

	*granted = r != NULL;
	*generation = srq->adm.generation;
	if (r) {
		srq->changed = true; /* for the timer */
		return QP_OF_REFUSAL(r);
	}
	peer = ur_adm_pool_next_notify(&srq->adm, now_ns);
	if (!peer)
		return NULL;
	pp = (struct ur_pool_peer *)(void *)peer;
	qp = QP_OF_ADM(TAILQ_FIRST(&pp->qps));
	peer->rtt_ns = rtt_of(qp);
	*generation = peer->notified_generation;
	return qp;
}

/* ADM-NOTIFY-03, ADM-PAPER-01 */
static void make_notify(struct ur_qp *qp, bool granted, uint16_t generation, struct ur_tx *tx)
{
	struct ur_asth x = status_of(qp->srq);
	struct ur_build_bth bth = {
		.opcode = UR_EXT_NOTIFY,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = qp->rsp.epsn,
	};
	uint8_t *p;

	x.status = ur_adm_pool_status_at(&qp->srq->adm, generation);
	x.generation = generation;
	x.queue_class = granted ? qp->adm.refusal.queue_class : UR_ADM_NONE;
	x.granted = granted;
	tx->frag_cnt = 0;
	tx->payload_len = 0;
	p = ur_build_from_qp(tx, qp, qp->answer_sport_be, &bth, UR_ASTH_BYTES + UR_POOL_BYTES);
	ur_build32(ur_build32(p, ur_asth_pack(&x)), qp->srq->pool);
	qp->core->cnt.adm_grants_sent += granted;
	qp->core->cnt.adm_notifies_sent += !granted;
}

struct ur_qp *ur_admission_make_next(struct ur_core *core, struct ur_tx *tx, uint64_t now_ns)
{
	struct ur_sched_node *n, *next;

	for (n = ur_sched_peek(&core->adm.busy); n; n = next) {
		struct ur_srq *srq = SRQ_OF(n, node);
		uint16_t generation;
		bool granted;
		struct ur_qp *qp;

		next = TAILQ_NEXT(n, link);
		qp = next_recipient(srq, &granted, &generation, now_ns);
		if (qp) {
			make_notify(qp, granted, generation, tx);
			return qp;
		}
		go_idle(srq);
	}
	return NULL;
}

void ur_admission_timer(struct ur_core *core, struct ur_timer *t, uint64_t now_ns)
{
	struct ur_srq *srq = SRQ_OF(t, timer);
	uint64_t expired = srq->adm.cnt.expired;

	ur_adm_pool_expire(&srq->adm, now_ns);
	core->cnt.adm_expired += srq->adm.cnt.expired - expired;
	set_changed(srq);
}

/* ---- invariants ---- */

void ur_admission_validate(const struct ur_qp *qp)
{
	const struct ur_adm_qp *q = &qp->adm;

	UR_ASSERT(!q->refusal.queue_class || qp->admission & UR_ADM_RECEIVER);
	UR_ASSERT(!q->queue_class || qp->admission & UR_ADM_SENDER);
	UR_ASSERT(!(qp->admission & UR_ADM_HOLDER) == !q->entry);
	UR_ASSERT(!q->peer || qp->admission & UR_ADM_RECEIVER);
	UR_ASSERT(!(qp->admission & UR_ADM_UNGRANTED) || qp->admission & UR_ADM_HOLDER);
	UR_ASSERT(!(q->waiter.waits && q->waiter.released));
	UR_ASSERT(!q->waiter.released || q->entry);
	/* ADM-HOLD-02. A refused request waits only where no grant will come, and with its own class. */
	UR_ASSERT(!q->waiter.waits || (q->entry && !q->may_send && !q->may_repeat));
	UR_ASSERT(!q->waiter.waits || q->waiter.queue_class == q->queue_class);
	UR_ASSERT(!q->waiter.waits || !q->queue_class || qp->admission & UR_ADM_UNGRANTED);
}
