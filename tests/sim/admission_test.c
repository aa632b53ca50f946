/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "objects.h"

/*
 * Queue pairs of three endpoints overload one SRQ of the fourth. Each sends one message at a time
 * and pauses before the next, so that without waiting all together would request `load10` / 10
 * times the service rate. The receiver serves one message in SERVICE_NS and then posts its receive
 * again.
 */
#define SENDERS_MAX 48
#define PEERS	    3
#define RECEIVES    4
#define SERVICE_NS  SIM_US(20)
#define MSG_BYTES   64
#define POOL	    77

struct sender {
	struct sim_qp req, rsp;
	unsigned done, failed;
	uint64_t wanted_ns;
	bool dead; /* it no longer sends */
};

struct overrun {
	const char *name;
	enum ur_adm_mode mode;
	unsigned senders, load10, messages; /* messages per sender */
	unsigned depth;			    /* messages posted at once; 0: 1 */
	uint32_t bytes;			    /* of a message; 0: MSG_BYTES */
	unsigned loss;			    /* loss of NOTIFYs and ACKs, 1/65536 */
	uint64_t deaths_ns; /* interval at which a sender with a queue class dies; 0: never */
	unsigned deaths;    /* maximum number of deaths */
	uint8_t rnr_retry;

	struct sim *s;
	struct sim_rng rng;
	struct sim_cq cq[PEERS], recv;
	struct sim_mr mr[PEERS + 1];
	struct sim_srq srq;
	struct sender snd[SENDERS_MAX];
	unsigned backlog; /* messages that wait for service */
	uint64_t slot[64];
	uint32_t slot_head, slot_tail;
	unsigned served, finished, dead;
	uint64_t wait_sum, wait_max;
	unsigned counts[SENDERS_MAX]; /* messages of each sender when the first one had finished */
	unsigned lost;
};

static uint32_t bytes_of(const struct overrun *o)
{
	return o->bytes ? o->bytes : MSG_BYTES;
}

static struct ur_adm_pool *pool_of(struct overrun *o)
{
	return &o->srq.srq.adm;
}

static void post_receive(struct overrun *o, uint64_t slot)
{
	struct ibv_sge sge = sim_sge(&o->mr[PEERS], (size_t)slot * bytes_of(o), bytes_of(o));
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	SIM_CHECK(o->s, sim_post_srq(&o->srq, &wr) == 0, "a receive is not taken");
	sim_kick(&o->s->ep[PEERS]);
}

static void post(struct overrun *o, unsigned i)
{
	struct sender *s = &o->snd[i];
	struct ibv_sge sge = sim_sge(&o->mr[i % PEERS], 0, bytes_of(o));
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};

	s->wanted_ns = o->s->now_ns;
	SIM_CHECK(o->s, sim_post_send(&s->req, &wr) == 0, "a message is not taken");
}

struct call {
	struct overrun *o;
	unsigned i;
};

static void think_over(struct sim *s, void *arg)
{
	struct call *c = arg;

	if (!c->o->snd[c->i].dead)
		post(c->o, c->i);
	free(c);
}

static void want_after(struct overrun *o, unsigned i, uint64_t ns)
{
	struct call *c = malloc(sizeof(*c));

	*c = (struct call){o, i};
	sim_call_at(o->s, o->s->now_ns + ns, think_over, c);
}

static void service_over(struct sim *s, void *arg)
{
	struct overrun *o = arg;

	post_receive(o, o->slot[o->slot_head++ % 64]);
	if (--o->backlog)
		sim_call_at(s, s->now_ns + SERVICE_NS, service_over, o);
}

static void finish(struct overrun *o, struct sender *s)
{
	if (s->done == o->messages)
		o->finished++;
}

static void poll(struct sim *s, void *arg)
{
	struct overrun *o = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&o->recv.cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS) {
			SIM_CHECK(s, o->deaths_ns, "a receive fails: %d", wc.status);
			post_receive(o, wc.wr_id);
			continue;
		}
		o->slot[o->slot_tail++ % 64] = wc.wr_id;
		if (!o->backlog++)
			sim_call_at(s, s->now_ns + SERVICE_NS, service_over, o);
	}
	for (unsigned p = 0; p < PEERS; p++)
		while (ur_cq_poll(&o->cq[p].cq, 1, &wc) == 1) {
			struct sender *snd = &o->snd[wc.wr_id];
			uint64_t wait = s->now_ns - snd->wanted_ns;

			if (snd->dead)
				continue;
			SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "sender %llu fails: %d",
				  (unsigned long long)wc.wr_id, wc.status);
			o->served++;
			snd->done++;
			o->wait_sum += wait;
			o->wait_max = wait > o->wait_max ? wait : o->wait_max;
			if (!o->finished)
				o->counts[wc.wr_id] = snd->done;
			finish(o, snd);
			if (snd->done + (o->depth ? o->depth - 1 : 0) < o->messages)
				want_after(o, (unsigned)wc.wr_id,
					   o->senders * SERVICE_NS * 10 / o->load10);
		}
	if (!s->attr.fast)
		ur_adm_pool_validate(pool_of(o));
}

static bool all_served(void *arg)
{
	const struct overrun *o = arg;

	return o->finished + o->dead == o->senders;
}

/* Sometimes loses the packets that repair state: NOTIFYs, and ACKs with a status. */
static enum sim_verdict lose(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			     const struct ur_packet *p)
{
	struct overrun *o = s->hook_arg;

	(void)from, (void)frame, (void)len;
	if ((p->op & (UR_OP_NOTIFY | UR_OP_ACK)) && sim_chance(&o->rng, o->loss)) {
		o->lost++;
		return SIM_DROP;
	}
	return SIM_PASS;
}

/* Kills a sender with a queue class, either silently or so that the receiver notices. */
static void kill_one(struct sim *s, void *arg)
{
	struct overrun *o = arg;

	for (unsigned i = 0; i < o->senders && o->deaths; i++) {
		struct sender *snd = &o->snd[i];

		if (snd->dead || !snd->rsp.qp->adm.refusal.queue_class)
			continue;
		snd->dead = true;
		o->dead++;
		o->finished -= snd->done == o->messages;
		o->deaths--;
		sim_qp_modify(&snd->req, IBV_QPS_ERR, 0, NULL);
		if (o->deaths & 1)
			sim_qp_modify(&snd->rsp, IBV_QPS_ERR, 0, NULL);
		break;
	}
	if (o->deaths)
		sim_call_at(s, s->now_ns + o->deaths_ns, kill_one, o);
}

static void run(struct overrun *o)
{
	static const struct ur_adm_attr attr = {
		.fallback_ns = SIM_MS(4),
		.grant_life_ns = SIM_US(200),
		.refusal_life_ns = SIM_MS(30),
		.status_ns = SIM_MS(16),
	};
	struct ur_adm_attr adm = attr;
	struct sim_attr sa = sim_defaults(o->name, 0);
	struct sim_qp_attr qa;

	adm.mode = o->mode;
	sa.eps = PEERS + 1;
	sa.max_qp = SENDERS_MAX;
	sa.contexts = SENDERS_MAX;
	sa.admission = &adm;
	o->s = sim_new(&sa);
	o->rng.state = 11;
	sim_cq_init(&o->recv, 2 * SENDERS_MAX);
	sim_srq_init(&o->srq, RECEIVES, 1);
	o->srq.srq.pool = POOL;
	sim_mr_init(&o->mr[PEERS], &o->s->ep[PEERS], RECEIVES * bytes_of(o), SIM_ACCESS_ALL);
	for (unsigned p = 0; p < PEERS; p++) {
		sim_cq_init(&o->cq[p], 16 * SENDERS_MAX);
		sim_mr_init(&o->mr[p], &o->s->ep[p], bytes_of(o), SIM_ACCESS_ALL);
	}
	for (unsigned i = 0; i < o->senders; i++) {
		struct sender *s = &o->snd[i];
		bool plain = o->mode == UR_ADM_PLAIN;

		qa = sim_qp_defaults(&o->cq[i % PEERS], &o->cq[i % PEERS]);
		qa.mode = UR_MODE_EXTENDED;
		qa.rnr_retry = plain ? 7 : o->rnr_retry;
		qa.min_rnr_timer = 1; /* 10 us */
		qa.agreed = (struct ur_adm_agreed){.receives_status = !plain,
						   .notifies = o->mode >= UR_ADM_INTELLIGENT,
						   .paper = o->mode == UR_ADM_PAPER,
						   .pool = POOL};
		sim_qp_create(&s->req, &o->s->ep[i % PEERS], &qa);
		qa.send_cq = qa.recv_cq = &o->recv;
		qa.srq = &o->srq;
		qa.agreed = (struct ur_adm_agreed){.sends_status = !plain};
		sim_qp_create(&s->rsp, &o->s->ep[PEERS], &qa);
		sim_qp_connect(&s->req, &s->rsp);
	}
	o->s->after = poll;
	o->s->after_arg = o->s->hook_arg = o;
	if (o->loss)
		o->s->hook = lose;
	for (unsigned k = 0; k < RECEIVES; k++)
		post_receive(o, k);
	for (unsigned i = 0; i < o->senders; i++)
		for (unsigned d = 0; d < (o->depth ? o->depth : 1); d++)
			want_after(o, i, i * SERVICE_NS * 10 / o->load10);
	if (o->deaths_ns)
		sim_call_at(o->s, o->s->now_ns + o->deaths_ns, kill_one, o);
	sim_must_run(o->s, all_served, o, SIM_MS(20000));
}

/* Jain's fairness index of the messages served when the first sender had finished. */
static double jain(const struct overrun *o)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < o->senders; i++) {
		sum += o->counts[i];
		squares += (double)o->counts[i] * o->counts[i];
	}
	return sum * sum / (o->senders * squares);
}

static uint64_t refused(const struct overrun *o)
{
	return sim_counters(&o->s->ep[PEERS])->rnr_nak_sent;
}

/* When all senders are dead or done, no state of them may be left in the pool. */
static void check_rest(struct overrun *o)
{
	sim_sleep(o->s, SIM_MS(50));
	ur_adm_pool_validate(pool_of(o));
	cr_assert_eq(pool_of(o)->refused[UR_ADM_CLASS_A], 0);
	cr_assert_eq(pool_of(o)->refused[UR_ADM_CLASS_B], 0);
	for (unsigned i = 0; i < o->senders; i++) {
		const struct ur_adm_qp *adm = &o->snd[i].req.qp->adm;

		cr_assert(!adm->queue_class && !adm->waiter.waits, "sender %u", i);
		cr_assert(o->snd[i].dead || o->snd[i].done >= o->messages, "sender %u", i);
	}
}

static void end(struct overrun *o)
{
	const struct ur_counters *cnt = sim_counters(&o->s->ep[PEERS]);

	printf("%-32s %2u senders, load %.1f: refused %6.3f a service, wait mean %7.1f us, worst "
	       "%8.1f us, notifies %llu, grants %llu\n",
	       o->name, o->senders, o->load10 / 10.0, (double)refused(o) / o->served,
	       (double)o->wait_sum / o->served / 1000, (double)o->wait_max / 1000,
	       (unsigned long long)cnt->adm_notifies_sent,
	       (unsigned long long)cnt->adm_grants_sent);
	check_rest(o);
	for (unsigned i = 0; i < o->senders; i++) {
		sim_qp_destroy(&o->snd[i].req);
		sim_qp_destroy(&o->snd[i].rsp);
	}
	cr_assert_eq(o->srq.srq.qp_cnt, 0);
	for (unsigned p = 0; p < PEERS; p++) {
		cr_assert_eq(ur_engine_core(o->s->ep[p].engine)->adm.sst.used, 0);
		sim_mr_free(&o->mr[p]);
		sim_cq_free(&o->cq[p]);
	}
	sim_mr_free(&o->mr[PEERS]);
	sim_cq_free(&o->recv);
	sim_srq_free(&o->srq);
	sim_free(o->s);
}

/* ADM-MODE-01 */
Test(admission, plain_refuses_again_and_again)
{
	struct overrun o = {.name = "admission.plain", .senders = 12, .load10 = 20, .messages = 20};

	run(&o);
	cr_assert_gt(refused(&o), 2 * o.served);
	cr_assert_eq(sim_counters(&o.s->ep[PEERS])->adm_refused, 0);
	end(&o);
}

/* ADM-STATUS-01, ADM-CLASS-03: rnr_retry 0 would end each of them at its second refusal. */
Test(admission, letters_order_the_retries_and_cost_none)
{
	struct overrun o = {.name = "admission.ab",
			    .mode = UR_ADM_AB,
			    .senders = 12,
			    .load10 = 20,
			    .messages = 20};

	run(&o);
	cr_assert_gt(refused(&o), o.served);
	cr_assert_eq(sim_counters(&o.s->ep[PEERS])->adm_refused, refused(&o));
	cr_assert_eq(sim_counters(&o.s->ep[PEERS])->adm_notifies_sent, 0);
	cr_assert_eq(sim_counters(&o.s->ep[PEERS])->adm_false_claims, 0);
	/* A queue pair that is refused repeatedly neither runs out of retries nor is passed by others. */
	cr_assert_lt(o.wait_max, 3 * o.senders * SERVICE_NS);
	end(&o);
}

/* ADM-GRANT-01, ADM-GRANT-04, ADM-HOLD-01 */
Test(admission, a_waiting_queue_pair_is_refused_once_and_granted)
{
	struct overrun o = {.name = "admission.intelligent",
			    .mode = UR_ADM_INTELLIGENT,
			    .senders = 12,
			    .load10 = 20,
			    .messages = 20};

	run(&o);
	cr_assert_leq(refused(&o), o.served);
	cr_assert_gt(sim_counters(&o.s->ep[PEERS])->adm_grants_sent, o.served / 4);
	cr_assert_gt(sim_counters(&o.s->ep[0])->adm_waits, 0);
	end(&o);
}

Test(admission, of_many_senders_none_starves)
{
	for (unsigned load = 12; load <= 40; load += 28) {
		struct overrun p = {.name = "admission.many.plain",
				    .senders = SENDERS_MAX,
				    .load10 = load,
				    .messages = 10};
		struct overrun o = {.name = "admission.many",
				    .mode = UR_ADM_INTELLIGENT,
				    .senders = SENDERS_MAX,
				    .load10 = load,
				    .messages = 10};

		run(&p);
		run(&o);
		cr_assert_leq(refused(&o), o.served + o.served / 10);
		if (refused(&p) >= 11 * p.served)
			cr_assert_leq(10 * refused(&o), refused(&p));
		cr_assert_lt(o.wait_max, p.wait_max);
		end(&p);
		end(&o);
	}
}

/* ADM-HOLD-04 */
Test(admission, those_that_wait_are_not_overtaken_by_their_own)
{
	struct overrun o = {.name = "admission.fair",
			    .mode = UR_ADM_INTELLIGENT,
			    .senders = SENDERS_MAX,
			    .load10 = 40,
			    .messages = 40};

	run(&o);
	printf("Jain %.4f\n", jain(&o));
	cr_assert_gt(jain(&o), 0.95);
	end(&o);
}

/* ADM-PAPER-01, ADM-PAPER-02 */
Test(admission, by_the_rules_of_the_paper_fewer_are_refused_than_with_classes_alone)
{
	for (unsigned senders = 12; senders <= SENDERS_MAX; senders += 36) {
		struct overrun ab = {.name = "admission.ab",
				     .mode = UR_ADM_AB,
				     .senders = senders,
				     .load10 = 20,
				     .messages = 20};
		struct overrun o = {.name = "admission.paper",
				    .mode = UR_ADM_PAPER,
				    .senders = senders,
				    .load10 = 20,
				    .messages = 20};
		const struct ur_counters *cnt;

		run(&ab);
		run(&o);
		cnt = sim_counters(&o.s->ep[PEERS]);
		printf("of mode ab's %.3f, Jain %.4f\n",
		       (double)refused(&o) * ab.served / o.served / refused(&ab), jain(&o));
		cr_assert_lt(2 * refused(&o), refused(&ab));
		cr_assert_eq(cnt->adm_refused, refused(&o));
		cr_assert_eq(cnt->adm_grants_sent, 0);
		cr_assert_gt(sim_counters(&o.s->ep[0])->adm_waits, 0);
		/* Each peer is told of each change. */
		sim_sleep(o.s, SIM_MS(1));
		cr_assert_eq(cnt->adm_notifies_sent, PEERS * pool_of(&o)->cnt.changes);
		cr_assert_lt(o.wait_max, 3 * senders * SERVICE_NS);
		end(&ab);
		end(&o);
	}
}

/* ADM-SST-03, ADM-CLASS-02, ADM-GRANT-03, ADM-PAPER-02 */
Test(admission, lost_statuses_and_grants_delay_but_stop_no_sender)
{
	static const enum ur_adm_mode modes[] = {UR_ADM_AB, UR_ADM_INTELLIGENT, UR_ADM_PAPER};

	for (unsigned m = 0; m < 3; m++)
		for (unsigned loss = 2000; loss <= 20000; loss += 6000) {
			struct overrun o = {.name = "admission.loss",
					    .mode = modes[m],
					    .senders = 12,
					    .load10 = 20,
					    .messages = 20,
					    .loss = loss};

			run(&o);
			cr_assert_gt(o.lost, 10);
			end(&o);
		}
}

/* ADM-REFUSAL-02, ADM-REFUSAL-03 */
Test(admission, dead_holders_leave_no_state_behind)
{
	static const enum ur_adm_mode modes[] = {UR_ADM_AB, UR_ADM_INTELLIGENT, UR_ADM_PAPER};

	for (unsigned m = 0; m < 3; m++) {
		struct overrun o = {.name = "admission.death",
				    .mode = modes[m],
				    .senders = 16,
				    .load10 = 40,
				    .messages = 40,
				    .loss = 1000,
				    .deaths_ns = SIM_US(700),
				    .deaths = 6};

		run(&o);
		cr_assert_eq(o.dead, 6);
		cr_assert_gt(sim_counters(&o.s->ep[PEERS])->adm_expired, 0);
		end(&o);
	}
}

/* ADM-EARLY-01, ADM-HOLD-03: several packets per message, several messages outstanding. */
Test(admission, long_messages_and_pipelines_arrive_whole)
{
	static const enum ur_adm_mode modes[] = {UR_ADM_PLAIN, UR_ADM_AB, UR_ADM_INTELLIGENT,
						 UR_ADM_PAPER};
	uint64_t dropped[4];

	for (unsigned m = 0; m < 4; m++) {
		struct overrun o = {.name = "admission.long",
				    .mode = modes[m],
				    .senders = 9,
				    .load10 = 20,
				    .messages = 20,
				    .depth = 4,
				    .bytes = 5000,
				    .loss = 1000};

		run(&o);
		dropped[m] = sim_counters(&o.s->ep[PEERS])->early_dropped;
		/* No queue pair waits for a local ACK timeout, 67 ms. */
		cr_assert_lt(o.wait_max, SIM_MS(20));
		end(&o);
	}
	/* Packets after a refused message are not sent repeatedly. */
	cr_assert_lt(dropped[1], dropped[0] * 3 / 5);
	cr_assert_lt(dropped[2], dropped[0] * 3 / 5);
	cr_assert_lt(dropped[3], dropped[0] * 3 / 5);
}
