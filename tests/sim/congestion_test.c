/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "objects.h"
#include "transport/dest.h"

/*
 * Scheduling, pacing and recovery together, with a network that is slower than the senders: one
 * slow receiver among fast ones, and many senders to one receiver. After each call of output: there
 * was no blind visit, and packets were made if a queue with an open destination was ready. At the
 * end every queue pair has had its share.
 */
#define MSG	 (16u << 10)
#define DEPTH	 4 /* messages of a queue pair under way */
#define ONE_WAY	 SIM_US(5)
#define WARM	 SIM_MS(15)
#define MEASURED SIM_MS(25)
#define GBPS	 1000000000ull

struct flow {
	struct sim_qp req, rsp;
	uint64_t done, before; /* messages, and those before the measurement */
};

struct crowd {
	struct sim *s;
	unsigned senders, receivers, qps; /* of a pair of endpoints */
	unsigned sls;
	struct flow *flows; /* of sender i to receiver j: flow(f, i, j, 0) on */
	struct sim_cq cq[SIM_EP_MAX];
	struct sim_mr mr[SIM_EP_MAX];
	uint64_t warm_ns; /* 0: WARM */
	bool standard;	  /* `mode`, else extended */
	enum ur_mode mode;
	bool watched; /* check_windows() runs after each event */
	uint64_t seed;
	struct ur_cc_attr pacing;
	struct sim_port_attr in[SIM_EP_MAX]; /* of receiver j */
	uint64_t out_bps;
	uint64_t calls, could;
};

struct outcome {
	double gbps[SIM_EP_MAX];	   /* of receiver j */
	double wait_us[SIM_EP_MAX];	   /* mean, before receiver j */
	double shares[SIM_EP_MAX];	   /* of sender i, Gb/s */
	uint64_t dropped, again, min_done; /* of the queue pair with the fewest messages */
};

static struct flow *flow(struct crowd *c, unsigned sender, unsigned receiver, unsigned qp)
{
	return &c->flows[(sender * c->receivers + receiver) * c->qps + qp];
}

static unsigned flow_cnt(const struct crowd *c)
{
	return c->senders * c->receivers * c->qps;
}

static void post(struct crowd *c, struct flow *f)
{
	struct ibv_sge sge = sim_sge(&c->mr[f->req.ep->idx], 0, MSG);
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)f,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)c->mr[f->rsp.ep->idx].p,
			    .rkey = c->mr[f->rsp.ep->idx].key},
	};

	SIM_CHECK(c->s, sim_post_send(&f->req, &wr) == 0, "a post fails");
}

static void poll(struct sim *s, void *arg)
{
	struct crowd *c = arg;
	struct ibv_wc wc;

	for (unsigned e = 0; e < c->senders; e++)
		while (ur_cq_poll(&c->cq[e].cq, 1, &wc) == 1) {
			struct flow *f = (struct flow *)(uintptr_t)wc.wr_id;

			SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
			f->done++;
			post(c, f);
		}
}

/* Packets of the queue pair that its destination counts: not what it has given up. */
static uint64_t counted(const struct ur_qp *qp)
{
	const struct ur_dest *d = ur_dest_of(&qp->sq_queue);

	return ur_dest_flight(qp)->epoch + 1 < d->epoch ? 0 : ur_dest_flight(qp)->psns;
}

/* CC-WINDOW-02: what a destination counts is what its queue pairs have in flight. */
static void check_windows(struct sim *s, void *arg)
{
	struct crowd *c = arg;

	for (unsigned e = 0; e < c->senders; e++) {
		const struct ur_cc_dest *d;
		uint64_t sum = 0;
		uint32_t at = 0;

		d = ur_cc_next(&ur_engine_core(s->ep[e].engine)->cc, &at);
		for (unsigned i = 0; i < c->qps; i++)
			sum += counted(flow(c, e, 0, i)->req.qp);
		SIM_CHECK(s, d->in_flight == sum * d->packet,
			  "endpoint %u counts %llu in flight, its queue pairs have %llu", e,
			  (unsigned long long)d->in_flight, (unsigned long long)(sum * d->packet));
	}
	poll(s, arg);
}

/* Work conservation: sim.c has looked for a queue that may go; its own check is that of blind
 * visits. */
static void on_output(struct sim *s, struct sim_ep *ep, bool could, unsigned n)
{
	struct crowd *c = s->output_arg;

	SIM_CHECK(s, n || !could, "endpoint %u was ready and sent nothing", ep->idx);
	c->calls++;
	c->could += could;
}

static void make(struct crowd *c, const char *name)
{
	struct sim_attr sa = sim_defaults(name, c->seed);
	unsigned eps = c->senders + c->receivers;

	sa.eps = eps;
	sa.max_qp = flow_cnt(c);
	sa.fast = true;
	sa.window = 64;
	sa.contexts = 64;
	sa.tx_cap = 8;
	sa.link = (struct sim_link_attr){.delay_ns = ONE_WAY};
	if (c->pacing.mode)
		sa.pacing = &c->pacing;
	c->pacing.link_bps = c->out_bps;
	c->s = sim_new(&sa);
	for (unsigned e = 0; e < eps; e++) {
		c->s->ep[e].out.attr.bits_per_s = c->out_bps;
		if (e >= c->senders)
			c->s->ep[e].in.attr = c->in[e - c->senders];
		sim_cq_init(&c->cq[e], DEPTH * flow_cnt(c));
		sim_mr_init(&c->mr[e], &c->s->ep[e], MSG, SIM_ACCESS_ALL);
	}
	c->flows = calloc(flow_cnt(c), sizeof(*c->flows));
	for (unsigned i = 0; i < flow_cnt(c); i++) {
		unsigned from = i / c->qps / c->receivers, to = i / c->qps % c->receivers;
		struct flow *f = &c->flows[i];
		struct sim_qp_attr qa[2];

		qa[0] = sim_qp_defaults(&c->cq[from], &c->cq[from]);
		qa[1] = sim_qp_defaults(&c->cq[c->senders + to], &c->cq[c->senders + to]);
		for (unsigned k = 0; k < 2; k++) {
			qa[k].cap = (struct ibv_qp_cap){DEPTH, 1, 1, 1, 0};
			qa[k].mtu = IBV_MTU_4096;
			qa[k].mode = c->standard ? c->mode : UR_MODE_EXTENDED;
			qa[k].sl = (uint8_t)(i % c->sls);
			qa[k].timeout = 18;
		}
		sim_qp_pair(&f->req, &c->s->ep[from], &qa[0], &f->rsp, &c->s->ep[c->senders + to],
			    &qa[1]);
	}
	c->s->on_output = on_output;
	c->s->output_arg = c;
	c->s->after = c->watched ? check_windows : poll;
	c->s->after_arg = c;
}

static void end(struct crowd *c)
{
	for (unsigned i = 0; i < flow_cnt(c); i++) {
		sim_qp_destroy(&c->flows[i].req);
		sim_qp_destroy(&c->flows[i].rsp);
	}
	for (unsigned e = 0; e < c->senders + c->receivers; e++) {
		sim_mr_free(&c->mr[e]);
		sim_cq_free(&c->cq[e]);
	}
	free(c->flows);
	sim_free(c->s);
}

static double gbps(uint64_t messages)
{
	return (double)messages * MSG * 8 / (double)MEASURED;
}

/* Each sender sends to receiver j only if bit j of `to` is set. */
static struct outcome run(const char *name, struct crowd *c, unsigned to)
{
	struct outcome o = {.min_done = UINT64_MAX};

	make(c, name);
	for (unsigned i = 0; i < flow_cnt(c); i++)
		for (unsigned k = 0; k < DEPTH && (to >> i / c->qps % c->receivers & 1); k++)
			post(c, &c->flows[i]);
	sim_sleep(c->s, c->warm_ns ? c->warm_ns : WARM);
	for (unsigned i = 0; i < flow_cnt(c); i++)
		c->flows[i].before = c->flows[i].done;
	for (unsigned j = 0; j < c->receivers; j++) {
		struct sim_port *in = &c->s->ep[c->senders + j].in;

		*in = (struct sim_port){.attr = in->attr, .busy_until_ns = in->busy_until_ns};
	}
	sim_sleep(c->s, MEASURED);
	for (unsigned i = 0; i < c->senders; i++)
		for (unsigned j = 0; j < c->receivers; j++)
			for (unsigned k = 0; k < c->qps; k++) {
				const struct flow *f = flow(c, i, j, k);

				o.gbps[j] += gbps(f->done - f->before);
				o.shares[i] += gbps(f->done - f->before);
				if ((to >> j & 1) && f->done - f->before < o.min_done)
					o.min_done = f->done - f->before;
			}
	for (unsigned j = 0; j < c->receivers; j++) {
		const struct sim_port *in = &c->s->ep[c->senders + j].in;

		o.dropped += in->dropped;
		o.wait_us[j] = in->frames ? (double)in->wait_ns / (double)in->frames / 1000 : 0;
	}
	for (unsigned i = 0; i < c->senders; i++)
		o.again += sim_counters(&c->s->ep[i])->retransmitted_packets;
	cr_assert_gt(c->could, c->calls / 10, "the oracle has not seen a ready queue");
	end(c);
	return o;
}

/* ---- one slow receiver among fast ones ---- */

/* 20 Gb/s to three receivers, the first of which takes 2; queues without bound. */
static struct outcome one_slow_in(const char *name, enum ur_cc_mode mode, unsigned to, bool gbn)
{
	struct crowd c = {.senders = 1,
			  .receivers = 3,
			  .qps = 32,
			  .sls = 3,
			  .standard = gbn,
			  .out_bps = 20 * GBPS,
			  .pacing = {.mode = mode},
			  .in = {{2 * GBPS, 0, 0}, {20 * GBPS, 0, 0}, {20 * GBPS, 0, 0}}};

	return run(name, &c, to);
}

static struct outcome one_slow(const char *name, enum ur_cc_mode mode, unsigned to)
{
	return one_slow_in(name, mode, to, false);
}

/* PACE-GATE-01: the slow receiver gets its rate, the others share the rest, and none starves. */
Test(congestion, a_slow_receiver_is_held_back_alone)
{
	struct outcome none = one_slow("congestion.none", UR_CC_NONE, 7);
	struct outcome paced = one_slow("congestion.auto", UR_CC_AUTO, 7);

	cr_assert_gt(none.wait_us[0], 5000, "no queue of %.0f us", none.wait_us[0]);
	cr_assert_lt(5 * paced.wait_us[0], none.wait_us[0], "queue of %.0f us, without %.0f",
		     paced.wait_us[0], none.wait_us[0]);
	cr_assert_gt(paced.gbps[0], 0.9 * none.gbps[0], "slow: %.2f of %.2f", paced.gbps[0],
		     none.gbps[0]);
	for (unsigned j = 1; j < 3; j++)
		cr_assert_gt(paced.gbps[j], 0.95 * none.gbps[j], "%u: %.2f of %.2f", j,
			     paced.gbps[j], none.gbps[j]);
	cr_assert_geq(paced.min_done, 1);
	cr_assert_eq(paced.again + none.again, 0, "sent again, and nothing was lost");
}

/* The link is not idle for the slow one's sake: the others have all that it leaves. */
Test(congestion, others_use_the_time)
{
	struct outcome alone = one_slow("congestion.alone", UR_CC_AUTO, 6);
	struct outcome paced = one_slow("congestion.auto", UR_CC_AUTO, 7);

	cr_assert_gt(alone.gbps[1] + alone.gbps[2], 19);
	cr_assert_gt(paced.gbps[1] + paced.gbps[2],
		     0.95 * (alone.gbps[1] + alone.gbps[2] - paced.gbps[0]), "%.2f of %.2f",
		     paced.gbps[1] + paced.gbps[2], alone.gbps[1] + alone.gbps[2]);
}

/* ---- many senders to one ---- */

static struct outcome incast(const char *name, enum ur_cc_mode mode, uint64_t seed)
{
	struct crowd c = {.seed = seed,
			  .senders = 16,
			  .receivers = 1,
			  .qps = 4,
			  .sls = 2,
			  .out_bps = 10 * GBPS,
			  .pacing = {.mode = mode},
			  .in = {{10 * GBPS, 512u << 10, 64u << 10}}};

	return run(name, &c, 1);
}

static double jain(const struct outcome *o, unsigned cnt)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < cnt; i++) {
		sum += o->shares[i];
		squares += o->shares[i] * o->shares[i];
	}
	return sum * sum / (squares * cnt);
}

static void expect_incast(const struct outcome *o, double least_gbps, double least_jain)
{
	cr_assert_gt(o->gbps[0], least_gbps, "%.2f Gb/s", o->gbps[0]);
	cr_assert_gt(jain(o, 16), least_jain, "Jain %.3f", jain(o, 16));
	cr_assert_geq(o->min_done, 1, "a queue pair starves");
}

/* A queue of 512 KB that overflows; everything arrives in the end, and all have a share. */
Test(congestion, incast_without_pacing_loses_packets_and_continues)
{
	struct outcome o = incast("congestion.incast_none", UR_CC_NONE, 0);

	cr_assert_gt(o.dropped, 1000);
	expect_incast(&o, 8, 0.8);
}

/* From seed to seed what is dropped varies by three. */
static void expect_little_lost(const char *name, enum ur_cc_mode mode, double least_gbps)
{
	uint64_t none = 0, dropped = 0;

	for (uint64_t seed = 0; seed < 8; seed++) {
		struct outcome o = incast(name, mode, seed);

		dropped += o.dropped;
		none += incast("congestion.incast_none", UR_CC_NONE, seed).dropped;
		expect_incast(&o, least_gbps, 0.8);
	}
	cr_assert_lt(10 * dropped, none, "%llu dropped, without %llu", (unsigned long long)dropped,
		     (unsigned long long)none);
}

/* PACE-AUTO-01 */
Test(congestion, incast_with_auto_loses_little)
{
	expect_little_lost("congestion.incast_auto", UR_CC_AUTO, 8);
}

Test(congestion, incast_with_dcqcn_loses_little)
{
	expect_little_lost("congestion.incast_dcqcn", UR_CC_DCQCN, 7);
}

/* ---- a window ---- */

/* A slow receiver among fast ones: its queue is what the target allows, the others have the rest. */
static void expect_swift_holds(bool gbn)
{
	struct outcome none = one_slow_in("congestion.none", UR_CC_NONE, 7, gbn);
	struct outcome o = one_slow_in("congestion.swift", UR_CC_SWIFT, 7, gbn);

	cr_assert_lt(20 * o.wait_us[0], none.wait_us[0], "queue of %.0f us, without %.0f",
		     o.wait_us[0], none.wait_us[0]);
	cr_assert_lt(o.wait_us[0], 200, "%.0f us", o.wait_us[0]);
	cr_assert_gt(o.gbps[0], 0.9 * none.gbps[0], "slow: %.2f of %.2f", o.gbps[0], none.gbps[0]);
	for (unsigned j = 1; j < 3; j++)
		cr_assert_gt(o.gbps[j], 0.95 * none.gbps[j], "%u: %.2f of %.2f", j, o.gbps[j],
			     none.gbps[j]);
	cr_assert_geq(o.min_done, 1);
	cr_assert_eq(o.again, 0, "sent again, and nothing was lost");
}

Test(congestion, swift_holds_a_slow_receiver_back_alone)
{
	expect_swift_holds(false);
}

Test(congestion, swift_holds_a_slow_receiver_back_alone_in_mode_gbn)
{
	expect_swift_holds(true);
}

/* CC-SWIFT-02: 64 queue pairs of 16 senders, and a path that holds five packets. */
Test(congestion, incast_with_swift_loses_little)
{
	expect_little_lost("congestion.incast_swift", UR_CC_SWIFT, 7);
}

static struct crowd swift_incast(bool standard)
{
	return (struct crowd){.senders = 16,
			      .receivers = 1,
			      .qps = 4,
			      .sls = 2,
			      .standard = standard,
			      .mode = UR_MODE_REORDER,
			      .out_bps = 10 * GBPS,
			      .pacing = {.mode = UR_CC_SWIFT},
			      .in = {{10 * GBPS, 512u << 10, 64u << 10}}};
}

/* CC-WINDOW-02, without the extended mode as well. */
static void expect_counted(bool standard, double least_gbps)
{
	struct crowd c = swift_incast(standard);
	struct outcome o;

	c.watched = true;
	/* All begin at once and lose most of the first windows; reorder repairs one packet a time. */
	c.warm_ns = SIM_MS(100);
	o = run(standard ? "congestion.window_standard" : "congestion.window", &c, 1);
	expect_incast(&o, least_gbps, 0.8);
	cr_assert_lt(o.wait_us[0], 250, "%.0f us", o.wait_us[0]);
}

Test(congestion, what_is_in_flight_is_what_queue_pairs_have_sent)
{
	expect_counted(false, 7);
}

Test(congestion, what_is_in_flight_is_what_queue_pairs_have_sent_without_the_extended_mode)
{
	expect_counted(true, 7);
}

/* ---- nothing arrives for a while ---- */

static enum sim_verdict black_out(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				  const struct ur_packet *p)
{
	(void)s, (void)from, (void)frame, (void)len, (void)p;
	return SIM_DROP;
}

/* CC-LOSS-02, CC-WINDOW-04, CC-WINDOW-05: all packets in flight are lost, and all senders recover. */
static void expect_recovery(bool standard)
{
	struct crowd c = swift_incast(standard);
	uint64_t timeouts = 0, losses = 0;

	make(&c, standard ? "congestion.dark_standard" : "congestion.dark");
	for (unsigned i = 0; i < flow_cnt(&c); i++)
		for (unsigned k = 0; k < DEPTH; k++)
			post(&c, &c.flows[i]);
	sim_sleep(c.s, WARM);
	c.s->hook = black_out;
	sim_sleep(c.s, SIM_MS(50));
	c.s->hook = NULL;
	for (unsigned e = 0; e < c.senders; e++)
		timeouts += ur_engine_core(c.s->ep[e].engine)->cc.cnt.timeouts;
	cr_assert_gt(timeouts, 16);
	for (unsigned i = 0; i < flow_cnt(&c); i++)
		c.flows[i].before = c.flows[i].done;
	sim_sleep(c.s, SIM_MS(400));
	for (unsigned e = 0; e < c.senders; e++)
		losses += ur_engine_core(c.s->ep[e].engine)->cc.cnt.losses;
	cr_assert_gt(losses, 16);
	for (unsigned i = 0; i < flow_cnt(&c); i++) {
		cr_assert_eq(c.flows[i].req.qp->state, IBV_QPS_RTS);
		cr_assert_gt(c.flows[i].done, c.flows[i].before, "queue pair %u stands still", i);
	}
	end(&c);
}

Test(congestion, all_senders_continue_after_a_blackout)
{
	expect_recovery(false);
}

Test(congestion, all_senders_continue_after_a_blackout_without_the_extended_mode)
{
	expect_recovery(true);
}
