/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/reorder.h"

#include "timer/wheel.h"
#include "transport/qp.h"
#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/opcode.h"

#define RENAK_US_MIN 50
#define RENAK_US     200 /* before any NAK has been answered */
#define RENAK_US_MAX 10000
#define RNR_SLACK_NS UINT64_C(10000000) /* beyond the wait an RNR NAK asked for */
#define NAKS_MAX     64 /* unanswered; then the peer is taken for dead and nothing is kept for it */

#define CHAINS 64 /* of at most 16 packets */

struct ur_reorder {
	SLIST_ENTRY(ur_reorder) link;		     /* in the pool */
	struct ur_psn hole;			     /* ePSN when the context was settled last */
	struct ur_psn next;			     /* nothing before it is kept */
	struct ur_psn beyond;			     /* the newest PSN that came, kept or dropped */
	struct ur_psn sure;			     /* the newest believed is before it */
	uint32_t cnt;				     /* packets kept, PSNs in (hole, hole + W), */
	uint32_t far;				     /* and those of them that are not believed */
	uint32_t later;				     /* packets that came from beyond the hole */
	uint8_t naks;				     /* sequence NAKs sent for the hole */
	uint64_t since_ns;			     /* when the hole showed */
	uint64_t nak_ns;			     /* naks: when the first was owed */
	uint64_t deadline_ns;			     /* of the next NAK */
	uint64_t kept[UR_REORDER_WINDOW / 64];	     /* by PSN modulo W */
	SLIST_HEAD(, ur_reorder_slot) chain[CHAINS]; /* the packets kept, by PSN modulo CHAINS */
};

static size_t stride_of(uint16_t slot_bytes)
{
	return ur_align64(sizeof(struct ur_reorder_slot) + slot_bytes);
}

/* ---- pools ---- */

size_t ur_reorder_pool_size(uint32_t slots, uint16_t slot_bytes, uint32_t contexts)
{
	return slots * stride_of(slot_bytes) + contexts * ur_align64(sizeof(struct ur_reorder));
}

void ur_reorder_pool_init(struct ur_reorder_pool *p, void *memory, uint32_t slots,
			  uint16_t slot_bytes, uint32_t contexts)
{
	uint8_t *at = memory;

	*p = (struct ur_reorder_pool){
		.stride = stride_of(slot_bytes),
		.slot_bytes = slot_bytes,
		.unused_cnt = slots,
		.slot_cnt = slots,
		.slots_free = slots,
		.context_cnt = contexts,
		.contexts_free = contexts,
	};
	for (uint32_t i = 0; i < contexts; i++, at += ur_align64(sizeof(struct ur_reorder)))
		SLIST_INSERT_HEAD(&p->free_contexts, (struct ur_reorder *)(void *)at, link);
	p->unused = at;
}

struct ur_reorder_slot *ur_reorder_slot_take(struct ur_reorder_pool *p, uint32_t held)
{
	struct ur_reorder_slot *slot = SLIST_FIRST(&p->free_slots);

	if (held >= UR_REORDER_SHARE * p->slots_free)
		return NULL;
	p->slots_free--;
	if (slot) {
		SLIST_REMOVE_HEAD(&p->free_slots, link);
		return slot;
	}
	slot = (struct ur_reorder_slot *)(void *)p->unused;
	p->unused += p->stride;
	p->unused_cnt--;
	return slot;
}

void ur_reorder_slot_give(struct ur_reorder_pool *p, struct ur_reorder_slot *slot)
{
	SLIST_INSERT_HEAD(&p->free_slots, slot, link);
	p->slots_free++;
}

/* ---- one queue pair ---- */

void ur_reorder_qp_init(struct ur_reorder_qp *r)
{
	*r = (struct ur_reorder_qp){.renak_us = RENAK_US};
	ur_reo_window_init(&r->reo_window);
}

static inline unsigned place_of(struct ur_psn psn)
{
	return psn.v & (UR_REORDER_WINDOW - 1);
}

static inline bool is_kept(const struct ur_reorder *c, struct ur_psn psn)
{
	return c->kept[place_of(psn) / 64] >> (place_of(psn) % 64) & 1;
}

/* The packet kept at that place, where one is. */
static struct ur_reorder_slot *slot_at(const struct ur_reorder *c, unsigned place)
{
	struct ur_reorder_slot *slot = SLIST_FIRST(&c->chain[place % CHAINS]);

	while (place_of(slot->psn) != place)
		slot = SLIST_NEXT(slot, link);
	return slot;
}

static struct ur_reorder_slot *take_out(struct ur_reorder *c, struct ur_psn psn)
{
	struct ur_reorder_slot *slot = slot_at(c, place_of(psn));

	SLIST_REMOVE(&c->chain[place_of(psn) % CHAINS], slot, ur_reorder_slot, link);
	c->kept[place_of(psn) / 64] &= ~(UINT64_C(1) << place_of(psn) % 64);
	c->cnt--;
	c->far -= slot->far;
	return slot;
}

/* The first place from `place` to the ring's end where a packet is kept; W: none. */
static unsigned kept_from(const struct ur_reorder *c, unsigned place)
{
	unsigned word = place / 64;
	uint64_t bits;

	if (place >= UR_REORDER_WINDOW)
		return UR_REORDER_WINDOW;
	bits = c->kept[word] & (UINT64_MAX << place % 64);
	while (!bits) {
		if (++word == UR_REORDER_WINDOW / 64)
			return UR_REORDER_WINDOW;
		bits = c->kept[word];
	}
	return word * 64 + (unsigned)__builtin_ctzll(bits);
}

/* Of each packet kept its place in `i`; it may be taken out. */
#define FOREACH_KEPT(i, c)                                                                         \
	for (unsigned i = kept_from(c, 0); i < UR_REORDER_WINDOW; i = kept_from(c, i + 1))

/* The oldest packet kept; there is one. */
static const struct ur_reorder_slot *oldest(const struct ur_reorder *c)
{
	unsigned place = kept_from(c, place_of(c->hole));

	return slot_at(c, place < UR_REORDER_WINDOW ? place : kept_from(c, 0));
}

static uint64_t renak_ns(const struct ur_reorder_qp *r, unsigned naks)
{
	uint64_t us = (uint64_t)r->renak_us << (naks < 7 ? naks - 1 : 6);

	return (us < RENAK_US_MAX ? us : RENAK_US_MAX) * 1000;
}

/* REORDER-RNR-02: how long a peer may stay away after an RNR NAK. */
static uint64_t rnr_ns(const struct ur_qp *qp)
{
	return 2 * ur_rnr_timer_ns(qp->rsp.min_rnr_timer) + RNR_SLACK_NS;
}

static struct ur_reorder *take_context(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_reorder_pool *pool = &qp->core->reorder;
	struct ur_responder *rsp = &qp->rsp;
	struct ur_reorder *c = SLIST_FIRST(&pool->free_contexts);

	if (!c)
		return NULL;
	SLIST_REMOVE_HEAD(&pool->free_contexts, link);
	pool->contexts_free--;
	qp->core->cnt.ooo_contexts++;
	memset(c->kept, 0, sizeof(c->kept));
	memset(c->chain, 0, sizeof(c->chain));
	c->hole = c->next = c->beyond = c->sure = rsp->epsn;
	c->cnt = c->far = c->later = 0;
	c->since_ns = c->nak_ns = now_ns;
	/* Reported when there was no context: not again at once. */
	c->naks = rsp->nak_sent && !qp->gbn_rsp.reorder.rnr;
	c->deadline_ns = now_ns + (c->naks ? renak_ns(&qp->gbn_rsp.reorder, 1) : rnr_ns(qp));
	qp->gbn_rsp.reorder.ctx = c;
	return c;
}

static void give_context(struct ur_qp *qp)
{
	struct ur_reorder_pool *pool = &qp->core->reorder;

	SLIST_INSERT_HEAD(&pool->free_contexts, qp->gbn_rsp.reorder.ctx, link);
	pool->contexts_free++;
	qp->gbn_rsp.reorder.ctx = NULL;
}

/*
 * The hole is reported for the first time. What its report brings is awaited for as long as it may
 * be under way; a report for which there is no place teaches nothing.
 */
static void remember(struct ur_reorder_qp *r, struct ur_reorder *c)
{
	for (unsigned i = 0; i < UR_REORDER_REPORTED; i++) {
		bool open = r->open >> i & 1;

		if (open && (int16_t)(uint16_t)(c->hole.v - r->reported[i]) < 2 * UR_REORDER_WINDOW)
			continue;
		if (open)
			ur_reo_window_narrow(&r->reo_window);
		r->reported[i] = (uint16_t)c->hole.v;
		r->open |= (uint8_t)(1u << i);
		r->again &= (uint8_t) ~(1u << i);
		return;
	}
}

/* It is reported once more. */
static void remember_again(struct ur_reorder_qp *r, const struct ur_reorder *c)
{
	for (unsigned i = 0; i < UR_REORDER_REPORTED; i++)
		if (r->reported[i] == (uint16_t)c->hole.v)
			r->again |= (uint8_t)(1u << i);
}

/* REORDER-NAK-01, REORDER-NAK-02 */
static void report(struct ur_qp *qp, struct ur_reorder *c, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_reorder_qp *r = &qp->gbn_rsp.reorder;

	if (c->naks) {
		remember_again(r, c);
	} else {
		c->nak_ns = now_ns;
		remember(r, c);
	}
	c->naks += c->naks < UINT8_MAX;
	r->rnr = false;
	c->deadline_ns = now_ns + renak_ns(r, c->naks);
	/* When the hole is filled, what is owed then is decided afresh. */
	rsp->nak_sent = true;
	qp->gbn_rsp.beyond = rsp->epsn;
	qp->core->cnt.seq_nak_sent++;
	ur_response_seq_nak(qp);
}

/* REORDER-WINDOW-01: is the hole at ePSN a loss? */
static void judge(struct ur_qp *qp, struct ur_reorder *c, uint64_t now_ns)
{
	const struct ur_reorder_qp *r = &qp->gbn_rsp.reorder;

	/* The deadline stands. */
	if (r->rnr || c->naks)
		return;
	if (ur_reo_window_is_over(&r->reo_window, c->later) ||
	    now_ns - c->since_ns >= ur_reo_window_ns(&r->reo_window))
		report(qp, c, now_ns);
	else
		c->deadline_ns = c->since_ns + ur_reo_window_ns(&r->reo_window);
}

static void copy_in(struct ur_reorder_slot *slot, const struct ur_packet *p, uint64_t now_ns)
{
	slot->arrival_ns = now_ns;
	slot->op = p->op;
	slot->imm_ieth = p->op & UR_OP_IMM ? p->imm : p->op & UR_OP_IETH ? p->ieth : 0;
	slot->psn = p->bth.psn;
	slot->payload_len = p->payload_len;
	slot->opcode = p->bth.opcode;
	slot->ackreq = p->bth.ackreq;
	slot->solicited = p->bth.solicited;
	if (p->op & UR_OP_RETH)
		slot->reth = p->reth;
	else if (p->op & UR_OP_ATOMICETH)
		slot->atomiceth = p->atomiceth;
	if (p->payload_len)
		memcpy(slot->payload, p->payload, p->payload_len);
}

void ur_reorder_packet(const struct ur_reorder_slot *slot, struct ur_packet *p)
{
	*p = (struct ur_packet){
		.op = slot->op,
		.bth = {.opcode = slot->opcode,
			.psn = slot->psn,
			.ackreq = slot->ackreq,
			.solicited = slot->solicited},
		.imm = slot->imm_ieth,
		.ieth = slot->imm_ieth,
		.payload = slot->payload,
		.payload_len = slot->payload_len,
	};
	if (slot->op & UR_OP_RETH)
		p->reth = slot->reth;
	else if (slot->op & UR_OP_ATOMICETH)
		p->atomiceth = slot->atomiceth;
}

/* A context and a slot for the packet; NULL: it must be dropped. */
static struct ur_reorder_slot *room(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_reorder_pool *pool = &qp->core->reorder;

	if (ur_psn_diff(p->bth.psn, qp->rsp.epsn) >= UR_REORDER_WINDOW ||
	    p->payload_len > pool->slot_bytes)
		return NULL;
	if (!pool->slots_free)
		return NULL;
	if (!qp->gbn_rsp.reorder.ctx && !take_context(qp, now_ns)) {
		qp->core->cnt.ooo_exhausted++;
		return NULL;
	}
	return ur_reorder_slot_take(pool, qp->gbn_rsp.reorder.ctx->cnt);
}

/* Everything that is kept is believed from now on. */
static void believe_all(struct ur_reorder *c)
{
	FOREACH_KEPT(i, c)
	{
		struct ur_reorder_slot *slot = slot_at(c, i);

		slot->far = false;
		if (ur_psn_le(c->sure, slot->psn))
			c->sure = ur_psn_add(slot->psn, 1);
	}
	c->far = 0;
}

/* REORDER-BELIEF-01. The packet in `slot` is kept. */
static void put_in(struct ur_reorder *c, struct ur_reorder_slot *slot)
{
	SLIST_INSERT_HEAD(&c->chain[place_of(slot->psn) % CHAINS], slot, link);
	c->kept[place_of(slot->psn) / 64] |= UINT64_C(1) << place_of(slot->psn) % 64;
	c->cnt++;
	slot->far = ur_psn_diff(slot->psn, c->sure) >= UR_REORDER_NEAR;
	c->far += slot->far;
	if (!slot->far && ur_psn_le(c->sure, slot->psn))
		c->sure = ur_psn_add(slot->psn, 1);
	else if (c->far == UR_REORDER_MANY)
		believe_all(c);
}

/* Both say the same, but for AckReq, which a repetition may have. */
static bool is_same(const struct ur_reorder_slot *slot, const struct ur_packet *p)
{
	if (slot->opcode != p->bth.opcode || slot->solicited != p->bth.solicited ||
	    slot->payload_len != p->payload_len)
		return false;
	if (p->op & (UR_OP_IMM | UR_OP_IETH) &&
	    slot->imm_ieth != (p->op & UR_OP_IMM ? p->imm : p->ieth))
		return false;
	if (p->op & UR_OP_RETH && (slot->reth.va != p->reth.va || slot->reth.rkey != p->reth.rkey ||
				   slot->reth.length != p->reth.length))
		return false;
	if (p->op & UR_OP_ATOMICETH &&
	    (slot->atomiceth.va != p->atomiceth.va || slot->atomiceth.rkey != p->atomiceth.rkey ||
	     slot->atomiceth.swap_add != p->atomiceth.swap_add ||
	     slot->atomiceth.compare != p->atomiceth.compare))
		return false;
	return !p->payload_len || memcmp(slot->payload, p->payload, p->payload_len) == 0;
}

/* Nothing is kept any more. REORDER-NAK-03: what was dropped beyond the hole has to be asked for.
 */
static void settle_empty(struct ur_qp *qp, struct ur_reorder *c, uint64_t now_ns)
{
	if (!qp->gbn_rsp.reorder.rnr && ur_psn_le(qp->rsp.epsn, c->beyond))
		report(qp, c, now_ns);
	give_context(qp);
}

/* REORDER-CONFLICT-01. A packet came whose PSN is kept. */
static enum ur_drop keep_again(struct ur_qp *qp, struct ur_reorder *c, const struct ur_packet *p,
			       uint64_t now_ns)
{
	struct ur_reorder_slot *slot = slot_at(c, place_of(p->bth.psn));

	if (is_same(slot, p)) {
		slot->ackreq |= p->bth.ackreq;
		qp->core->cnt.duplicate_request++;
		return UR_DROP_PSN_DUPLICATE;
	}
	qp->core->cnt.early_dropped += 2;
	ur_reorder_slot_give(&qp->core->reorder, take_out(c, p->bth.psn));
	if (!c->cnt)
		settle_empty(qp, c, now_ns);
	return UR_DROP_CONFLICT;
}

/* REORDER-KEEP-01 */
enum ur_drop ur_reorder_keep(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_reorder *c = qp->gbn_rsp.reorder.ctx;
	struct ur_reorder_slot *slot;

	if (c && ur_psn_diff(p->bth.psn, rsp->epsn) < UR_REORDER_WINDOW && is_kept(c, p->bth.psn))
		return keep_again(qp, c, p, now_ns);
	slot = room(qp, p, now_ns);
	c = qp->gbn_rsp.reorder.ctx;
	if (slot) {
		copy_in(slot, p, now_ns);
		put_in(c, slot);
		qp->core->cnt.early_packets++;
	} else {
		qp->core->cnt.early_dropped++;
	}
	if (c) {
		c->later++;
		if (ur_psn_lt(c->beyond, p->bth.psn))
			c->beyond = p->bth.psn;
		judge(qp, c, now_ns);
		qp->rearm = true;
	}
	return slot ? UR_DROP_NONE : UR_DROP_NO_CONTEXT;
}

/* Forgets what is kept in [from, end). */
static void forget(struct ur_qp *qp, struct ur_reorder *c, struct ur_psn from, struct ur_psn end)
{
	if (ur_psn_diff(end, from) > UR_REORDER_WINDOW)
		end = ur_psn_add(from, UR_REORDER_WINDOW);
	for (; c->cnt && ur_psn_lt(from, end); from = ur_psn_add(from, 1))
		if (is_kept(c, from))
			ur_reorder_slot_give(&qp->core->reorder, take_out(c, from));
}

/* REORDER-BELIEF-01. The turn of a packet has come for which nothing speaks. */
static void disbelieve(struct ur_qp *qp, struct ur_reorder *c)
{
	FOREACH_KEPT(i, c)
	{
		const struct ur_reorder_slot *slot = slot_at(c, i);

		if (!slot->far)
			continue;
		ur_reorder_slot_give(&qp->core->reorder, take_out(c, slot->psn));
		qp->core->cnt.early_disbelieved++;
	}
}

/* REORDER-REPLAY-01 */
struct ur_reorder_slot *ur_reorder_next(struct ur_qp *qp)
{
	struct ur_reorder *c = qp->gbn_rsp.reorder.ctx;
	struct ur_psn epsn = qp->rsp.epsn;

	/* A READ takes several PSNs; an honest peer sends nothing else with them. */
	if (ur_psn_diff(epsn, c->next) > 0)
		forget(qp, c, c->next, epsn);
	c->next = ur_psn_add(epsn, 1);
	if (!is_kept(c, epsn))
		return NULL;
	if (__builtin_expect(slot_at(c, place_of(epsn))->far, 0)) {
		disbelieve(qp, c);
		return NULL;
	}
	return take_out(c, epsn);
}

/* What the way in which the hole was filled tells about the network. */
static void learn(struct ur_reorder_qp *r, const struct ur_reorder *c, uint64_t now_ns)
{
	uint64_t us = (now_ns - c->nak_ns) / 1000;

	if (!c->naks) {
		ur_reo_window_widen(&r->reo_window, c->later, now_ns - c->since_ns);
		return;
	}
	if (c->naks > 1)
		return;
	us = us < RENAK_US_MAX / 2 ? 2 * us : RENAK_US_MAX;
	if (us < r->renak_us) /* falls slowly, rises at once */
		us = r->renak_us - (r->renak_us - us) / 8;
	r->renak_us = (uint16_t)(us < RENAK_US_MIN ? RENAK_US_MIN : us);
}

void ur_reorder_judge_hole(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_responder *rsp = &qp->rsp;
	struct ur_reorder *c = qp->gbn_rsp.reorder.ctx;

	if (!ur_psn_eq(c->hole, rsp->epsn)) {
		learn(&qp->gbn_rsp.reorder, c, now_ns);
		if (!qp->gbn_rsp.data_old)
			ur_pass_filled(&qp->gbn_rsp.pass, c->hole, qp->gbn_rsp.data, c->naks != 0);
		qp->core->cnt.reordered += !c->naks;
		c->hole = rsp->epsn;
		c->naks = 0;
		/* What is not believed tells of no hole before it. */
		c->later = c->cnt - c->far;
		c->since_ns = c->later ? oldest(c)->arrival_ns : now_ns;
		if (ur_psn_lt(c->sure, rsp->epsn))
			c->sure = rsp->epsn;
	}
	if (c->cnt) {
		if (qp->gbn_rsp.reorder.rnr)
			c->deadline_ns = now_ns + rnr_ns(qp);
		judge(qp, c, now_ns);
		qp->rearm = true;
		return;
	}
	settle_empty(qp, c, now_ns);
}

void ur_reorder_duplicate(struct ur_qp *qp, struct ur_psn psn)
{
	struct ur_reorder_qp *r = &qp->gbn_rsp.reorder;

	for (unsigned i = 0; i < UR_REORDER_REPORTED; i++) {
		if (!(r->open >> i & 1) || r->reported[i] != (uint16_t)psn.v)
			continue;
		if (r->again >> i & 1)
			r->renak_us =
				r->renak_us < RENAK_US_MAX / 2 ? 2 * r->renak_us : RENAK_US_MAX;
		else
			ur_reo_window_double(&r->reo_window);
		r->open &= (uint8_t) ~(1u << i);
	}
}

/* REORDER-STOP-01 */
void ur_reorder_stop(struct ur_qp *qp)
{
	struct ur_reorder *c = qp->gbn_rsp.reorder.ctx;

	if (!c)
		return;
	forget(qp, c, c->hole, ur_psn_add(c->hole, UR_REORDER_WINDOW));
	give_context(qp);
}

uint32_t ur_reorder_believed(const struct ur_reorder_qp *r)
{
	return r->ctx ? r->ctx->cnt - r->ctx->far : 0;
}

uint64_t ur_reorder_deadline(const struct ur_reorder_qp *r)
{
	return r->ctx ? r->ctx->deadline_ns : UR_NEVER;
}

void ur_reorder_timer(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_reorder *c = qp->gbn_rsp.reorder.ctx;

	if (!c || now_ns < c->deadline_ns)
		return;
	if (c->naks >= NAKS_MAX)
		ur_reorder_stop(qp);
	else
		report(qp, c, now_ns);
}

void ur_reorder_validate(const struct ur_qp *qp)
{
	const struct ur_reorder *c = qp->gbn_rsp.reorder.ctx;
	uint32_t cnt = 0, far = 0;

	if (!c)
		return;
	FOREACH_KEPT(i, c)
	{
		far += slot_at(c, i)->far;
		cnt++;
	}
	UR_ASSERT(cnt == c->cnt && cnt > 0 && far == c->far && far < UR_REORDER_MANY);
	UR_ASSERT(ur_psn_le(c->hole, c->sure));
	UR_ASSERT(ur_psn_eq(c->hole, qp->rsp.epsn) && !is_kept(c, c->hole));
	UR_ASSERT(ur_psn_lt(c->hole, oldest(c)->psn));
}
