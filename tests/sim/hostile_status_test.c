/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "pool_world.h"
#include "transport/admission.h"

/* Every value of a status, at every moment of a message, and to queue pairs that wait for none. */

/* ---- random statuses ---- */

enum position {
	IDLE,	/* nothing to say */
	FLIGHT, /* its message has left */
	HOLDS,	/* its message was refused: it has a queue class */
	WAITS,	/* its message would be refused */
};

#define X 0 /* the sender that is lied to */
#define Y 2 /* another of its endpoint */

static bool in_flight(void *arg)
{
	const struct ur_selective *psn = &((struct pool_world *)arg)->snd[X].req.qp->xreq.psn;

	return !ur_psn_eq(psn->una, psn->max);
}

static bool x_holds(void *arg)
{
	return ((struct pool_world *)arg)->snd[X].req.qp->adm.queue_class;
}

static bool y_holds(void *arg)
{
	return ((struct pool_world *)arg)->snd[Y].req.qp->adm.queue_class;
}

static bool x_waits(void *arg)
{
	return ((struct pool_world *)arg)->snd[X].req.qp->adm.waiter.waits;
}

static void take_position(struct pool_world *w, enum position at)
{
	switch (at) {
	case IDLE:
		break;
	case FLIGHT:
		pool_post_receive(w, 0);
		pool_want(w, X);
		sim_must_run(w->s, in_flight, w, POOL_LIMIT_NS);
		break;
	case HOLDS:
		pool_want(w, X);
		sim_must_run(w->s, x_holds, w, POOL_LIMIT_NS);
		break;
	case WAITS:
		pool_want(w, Y);
		sim_must_run(w->s, y_holds, w, POOL_LIMIT_NS);
		pool_want(w, X);
		sim_must_run(w->s, x_waits, w, POOL_LIMIT_NS);
		break;
	}
}

/* Checks that the status changes only what it may change. */
static void say(struct pool_world *w, struct ur_packet p)
{
	const struct ur_qp *qp = w->snd[X].req.qp;
	const struct ur_sst_entry *e = qp->adm.entry;
	bool notify = p.bth.opcode == UR_EXT_NOTIFY;
	struct ur_psn about = notify ? p.bth.psn : p.xaeth.epsn;
	bool counts = ur_psn_eq(about, qp->xreq.psn.una) && (!notify || p.asth.granted);
	bool nak = p.aeth.syndrome != 0x1f;
	uint64_t rnr_until_ns = qp->retry.rnr_until_ns;
	bool waits = qp->retry.is_waiting;
	uint32_t lost = qp->xreq.psn.lost_cnt;
	uint8_t queue_class = qp->adm.queue_class, status = e->status;
	uint16_t generation = e->generation;
	bool known = e->known && w->s->now_ns - e->updated_ns < POOL_STATUS_NS;

	if (counts)
		queue_class =
			p.asth.queue_class == 3 || !in_flight(w) ? UR_ADM_NONE : p.asth.queue_class;
	if (!known || (int16_t)(uint16_t)(p.asth.generation - generation) > 0) {
		status = p.asth.status;
		generation = p.asth.generation;
	}
	SIM_CHECK(w->s, forged_in(w->snd[X].req.ep, p) == UR_DROP_NONE, "a status is dropped");
	SIM_CHECK(w->s, qp->adm.queue_class == queue_class, "class %u instead of %u",
		  qp->adm.queue_class, queue_class);
	SIM_CHECK(w->s, e->status == status && e->generation == generation,
		  "status %u of generation %u instead of %u of %u", e->status, e->generation,
		  status, generation);
	/*
	 * A grant for its message wakes a sender that waits, and in mode paper a status may; nothing else
	 * makes a sender repeat.
	 */
	if ((!counts && !e->paper) || (!waits && !nak))
		SIM_CHECK(w->s,
			  qp->retry.is_waiting == waits && qp->retry.rnr_until_ns == rnr_until_ns &&
				  qp->xreq.psn.lost_cnt == lost,
			  "another status sends the message again");
	ur_qp_validate(qp);
	sim_kick(w->snd[X].req.ep);
	w->lies++;
}

enum kind {
	NOTIFY,
	NOTIFY_NEWEST, /* of the PSN that comes next, not of the message that waits */
	ACK,
	ACK_OLDER, /* from before the message */
	RNR_NAK,
	KINDS
};

static struct ur_packet make(struct pool_world *w, enum kind kind, struct ur_asth asth)
{
	bool notify = kind == NOTIFY || kind == NOTIFY_NEWEST;
	struct ur_packet p = forged_word(&w->snd[X].req,
					 notify ? UR_EXT_NOTIFY : UR_EXT_ACKNOWLEDGE_STATUS, asth);

	if (kind == NOTIFY_NEWEST)
		p.bth.psn = w->snd[X].req.qp->xreq.psn.max;
	if (kind == ACK_OLDER)
		p.xaeth.epsn = p.bth.psn = ur_psn_add(p.xaeth.epsn, UR_PSN_MASK);
	if (kind == ACK || kind == ACK_OLDER)
		p.bth.psn = ur_psn_add(p.xaeth.epsn, UR_PSN_MASK);
	if (kind == RNR_NAK)
		p.aeth.syndrome = UR_SYNDROME_RNR_NAK | 1;
	return p;
}

/* Delivers the status, then completes the request concerned; traffic continues. */
static void lie(struct pool_world *w, enum position at, enum kind kind, struct ur_asth asth)
{
	take_position(w, at);
	asth.generation = (uint16_t)(asth.generation + w->snd[X].req.qp->adm.entry->generation);
	say(w, make(w, kind, asth));
	sim_sleep(w->s, SIM_US(100));
	if (at == HOLDS || at == WAITS)
		pool_post_receive(w, 0);
	if (at == WAITS)
		pool_post_receive(w, 1);
	sim_must_run(w->s, pool_all_done, w, POOL_LIMIT_NS);
	pool_want(w, X);
	pool_post_receive(w, 0);
	sim_must_run(w->s, pool_all_done, w, POOL_LIMIT_NS);
	sim_sleep(w->s, SIM_MS(35)); /* the status has expired */
}

/* Every value of the first byte of an ASTH, with little and much room, older, newer, far away. */
static void lie_all_in(enum position at, enum ur_adm_mode mode)
{
	static const uint16_t generation[] = {0xffff, 0, 1, 0x8000};
	struct pool_world *w = pool_world_new("hostile.nonsense", at, mode, 3, 7);

	w->by_hand = true;
	for (unsigned first = 0; first < 256; first++)
		for (unsigned n = 0; n < KINDS * 2 * 4; n++)
			lie(w, at, (enum kind)(n % KINDS),
			    (struct ur_asth){.status = first >> 6,
					     .queue_class = first >> 4 & 3,
					     .granted = first >> 3 & 1,
					     .resv = first & 7,
					     .room = n / KINDS % 2 ? 255 : 0,
					     .generation = generation[n / KINDS / 2]});
	cr_assert_eq(w->lies, 256 * KINDS * 2 * 4);
	/* A wrong status counts for POOL_STATUS_NS. */
	SIM_CHECK(w->s, w->worst_ns < POOL_STATUS_NS + SIM_MS(20), "%.3f ms",
		  (double)w->worst_ns / 1e6);
	pool_world_free(w);
}

static void lie_all(enum position at)
{
	lie_all_in(at, UR_ADM_INTELLIGENT);
	lie_all_in(at, UR_ADM_PAPER);
}

Test(hostile_admission, nonsense_does_not_stop_an_idle_sender)
{
	lie_all(IDLE);
}

Test(hostile_admission, nonsense_stops_no_message_under_way)
{
	lie_all(FLIGHT);
}

Test(hostile_admission, nonsense_does_not_stop_a_sender_with_a_queue_class)
{
	lie_all(HOLDS);
}

Test(hostile_admission, nonsense_does_not_stop_a_sender_that_is_held_back)
{
	lie_all(WAITS);
}

/* ---- queue pairs that expect no status ---- */

struct deaf {
	struct sim *s;
	struct sim_cq cq[2];
	struct sim_mr mr[2];
	struct sim_qp a, b;
};

static struct deaf *deaf_new(enum ur_mode mode, enum ur_adm_mode worker,
			     struct ur_adm_agreed agreed)
{
	const struct ur_adm_attr adm = {.mode = worker,
					.fallback_ns = 1,
					.grant_life_ns = 1,
					.refusal_life_ns = 1,
					.status_ns = 1};
	struct sim_attr sa = sim_defaults("hostile.deaf", 0);
	struct deaf *d = calloc(1, sizeof(*d));
	struct sim_qp_attr qa;

	cr_assert_not_null(d);
	sa.admission = &adm;
	d->s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&d->cq[i], 32);
		sim_mr_init(&d->mr[i], &d->s->ep[i], 4096, SIM_ACCESS_ALL);
	}
	qa = sim_qp_defaults(&d->cq[0], &d->cq[0]);
	qa.mode = mode;
	qa.agreed = agreed;
	qa.rnr_retry = 2;
	sim_qp_create(&d->a, &d->s->ep[0], &qa);
	qa.send_cq = qa.recv_cq = &d->cq[1];
	qa.agreed = (struct ur_adm_agreed){0};
	sim_qp_create(&d->b, &d->s->ep[1], &qa);
	d->a.peer = &d->b;
	d->b.peer = &d->a;
	return d;
}

static void deaf_free(struct deaf *d)
{
	sim_qp_destroy(&d->a);
	sim_qp_destroy(&d->b);
	for (unsigned i = 0; i < 2; i++) {
		sim_mr_free(&d->mr[i]);
		sim_cq_free(&d->cq[i]);
	}
	sim_free(d->s);
	free(d);
}

/* A SEND arrives. */
static void deaf_send(struct deaf *d)
{
	struct ibv_sge from = sim_sge(&d->mr[0], 0, 3000), to = sim_sge(&d->mr[1], 0, 3000);
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1};
	struct ibv_send_wr send = {.wr_id = 2,
				   .sg_list = &from,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED};

	sim_pattern(d->mr[0].p, 3000, d->s->now_ns);
	cr_assert_eq(sim_post_recv(&d->b, &recv), 0);
	cr_assert_eq(sim_post_send(&d->a, &send), 0);
	sim_expect(d->s, &d->cq[1], 1, IBV_WC_SUCCESS, POOL_LIMIT_NS);
	sim_expect(d->s, &d->cq[0], 2, IBV_WC_SUCCESS, POOL_LIMIT_NS);
	cr_assert_eq(memcmp(d->mr[0].p, d->mr[1].p, 3000), 0);
}

/* A NOTIFY, and an answer with status: granted, class A, receives available. */
static void expect_ignored(struct deaf *d, enum ur_drop want, const char *what)
{
	const struct ur_asth asth = {.queue_class = UR_ADM_CLASS_A, .granted = true, .room = 9};
	struct ur_packet p = forged_word(&d->a, UR_EXT_NOTIFY, asth);

	forged_is_dropped(&d->a, d->a.ep, &p, want, what);
	if (want == UR_DROP_POOL) /* the answer counts as one without a status */
		return;
	p.bth.opcode = UR_EXT_ACKNOWLEDGE_STATUS;
	forged_is_dropped(&d->a, d->a.ep, &p, want, what);
}

static const struct ur_adm_agreed told = {
	.receives_status = true, .notifies = true, .pool = POOL_NAME};

Test(hostile_admission, in_other_states_statuses_are_ignored)
{
	struct deaf *d = deaf_new(UR_MODE_EXTENDED, UR_ADM_INTELLIGENT, told);

	for (unsigned twice = 0; twice < 2; twice++) {
		expect_ignored(d, UR_DROP_QP_STATE, "reset");
		sim_qp_to_init(&d->a);
		sim_qp_to_init(&d->b);
		expect_ignored(d, UR_DROP_QP_STATE, "init");
		sim_qp_to_rtr(&d->a, &d->b);
		sim_qp_to_rtr(&d->b, &d->a);
		expect_ignored(d, UR_DROP_QP_STATE, "ready to receive");
		sim_qp_to_rts(&d->a);
		sim_qp_to_rts(&d->b);
		deaf_send(d);
		cr_assert_eq(sim_qp_modify(&d->a, IBV_QPS_ERR, 0, NULL), 0);
		cr_assert_eq(sim_qp_modify(&d->b, IBV_QPS_ERR, 0, NULL), 0);
		expect_ignored(d, UR_DROP_QP_STATE, "error");
		cr_assert_eq(sim_qp_modify(&d->a, IBV_QPS_RESET, 0, NULL), 0);
		cr_assert_eq(sim_qp_modify(&d->b, IBV_QPS_RESET, 0, NULL), 0);
	}
	deaf_free(d);
}

Test(hostile_admission, a_peer_without_an_agreement_gets_no_notify)
{
	static const struct {
		enum ur_mode mode;
		enum ur_adm_mode worker;
		struct ur_adm_agreed agreed;
		enum ur_drop drop;
	} cases[] = {
		{UR_MODE_GBN, UR_ADM_INTELLIGENT, {0}, UR_DROP_MODE},
		{UR_MODE_REORDER, UR_ADM_INTELLIGENT, {0}, UR_DROP_MODE},
		{UR_MODE_EXTENDED, UR_ADM_INTELLIGENT, {0}, UR_DROP_POOL},
		{UR_MODE_EXTENDED, UR_ADM_INTELLIGENT, {.pool = POOL_NAME}, UR_DROP_POOL},
		{UR_MODE_EXTENDED,
		 UR_ADM_INTELLIGENT,
		 {.receives_status = true, .pool = POOL_NAME},
		 UR_DROP_POOL},
		{UR_MODE_EXTENDED,
		 UR_ADM_PLAIN,
		 {.receives_status = true, .notifies = true, .pool = POOL_NAME},
		 UR_DROP_POOL},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct deaf *d = deaf_new(cases[i].mode, cases[i].worker, cases[i].agreed);

		sim_qp_connect(&d->a, &d->b);
		expect_ignored(d, cases[i].drop, "an unexpected status");
		deaf_send(d);
		expect_ignored(d, cases[i].drop, "an unexpected status");
		deaf_free(d);
	}
}

/* ADM-CLASS-03. An answer with a status, without an agreement on one, is a plain answer: its class does
 * not count, and a refusal with it costs a retry as ever. */
Test(hostile_admission, a_queue_class_without_an_agreement_is_ignored)
{
	struct deaf *d = deaf_new(UR_MODE_EXTENDED, UR_ADM_INTELLIGENT, (struct ur_adm_agreed){0});
	struct ibv_sge sge = sim_sge(&d->mr[0], 0, 64);
	struct ibv_send_wr wr = {.wr_id = 7,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};

	sim_qp_connect(&d->a, &d->b);
	for (unsigned queue_class = 0; queue_class < 4; queue_class++) {
		struct ur_packet p = forged_word(&d->a, UR_EXT_ACKNOWLEDGE_STATUS,
						 (struct ur_asth){.status = 1,
								  .queue_class = queue_class,
								  .granted = queue_class & 1});

		p.bth.psn = ur_psn_add(p.bth.psn, UR_PSN_MASK);
		cr_assert_eq(forged_in(d->a.ep, p), UR_DROP_NONE);
		cr_assert_eq(d->a.qp->adm.queue_class, UR_ADM_NONE);
		deaf_send(d);
	}
	cr_assert_eq(sim_post_send(&d->a, &wr), 0);
	sim_sleep(d->s, SIM_US(3)); /* it has left */
	for (unsigned n = 0; n < 3; n++) {
		struct ur_packet p =
			forged_word(&d->a, UR_EXT_ACKNOWLEDGE_STATUS,
				    (struct ur_asth){.status = 1, .queue_class = UR_ADM_CLASS_A});

		sim_expect_none(d->s, &d->cq[0]);
		p.aeth.syndrome = UR_SYNDROME_RNR_NAK | 30;
		cr_assert_eq(forged_in(d->a.ep, p), UR_DROP_NONE);
		cr_assert_eq(d->a.qp->adm.queue_class, UR_ADM_NONE);
	}
	sim_expect(d->s, &d->cq[0], 7, IBV_WC_RNR_RETRY_EXC_ERR, POOL_LIMIT_NS);
	deaf_free(d);
}
