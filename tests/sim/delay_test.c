/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "objects.h"
#include "transport/dest.h"
#include "wire/bytes.h"
#include "wire/delay.h"

/*
 * Delay stamps from end to end (docs/design/delay.md): endpoint 0 writes to endpoint 1 through a switch, which stamps, or
 * does not, or lies, or has a firewall behind it. 10 Gb/s, and 10 us each way.
 */
#define GBPS	UINT64_C(1000000000)
#define ONE_WAY SIM_US(10)
#define MSG	16384
#define DEPTH	32
#define OTHERS	31
#define READS	16 /* of these, under way at the same time */

struct way {
	struct sim *s;
	struct ur_cc_attr pacing;
	struct sim_cq cq[2];
	struct sim_mr mr[2];
	struct sim_qp qp[2], other[2][OTHERS];
	unsigned others;	   /* queue pairs beside the first one */
	enum ibv_wr_opcode opcode; /* 0: IBV_WR_RDMA_WRITE */
	bool alone;		   /* the peer does not understand delays */
	bool v6;
	uint64_t done, asks, answers;
	uint64_t both; /* answers that ask as well: among the asks */
	bool odd;      /* a frame that does not ask has more than zeros where stamps are */
};

static struct ur_dest *dest_of(struct way *w)
{
	return ur_dest_of(&w->qp[0].qp->sq_queue);
}

static const struct ur_cc_counters *counters(struct way *w)
{
	return &ur_engine_core(w->s->ep[0].engine)->cc.cnt;
}

/* On queue pair `i`. */
static void post(struct way *w, unsigned i)
{
	struct ibv_sge sge = sim_sge(&w->mr[0], 0, MSG);
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = w->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)w->mr[1].p, .rkey = w->mr[1].key},
	};

	SIM_CHECK(w->s, sim_post_send(i ? &w->other[0][i - 1] : &w->qp[0], &wr) == 0,
		  "a post fails");
}

static void poll(struct sim *s, void *arg)
{
	struct way *w = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&w->cq[0].cq, 1, &wc) == 1) {
		SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
		w->done++;
		post(w, (unsigned)wc.wr_id);
	}
}

/* PACE-NET-04: what endpoints send, before any switch. */
static enum sim_verdict watch(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			      const struct ur_packet *p)
{
	struct way *w = s->hook_arg;

	if (p->bth.resv6 & UR_DELAY_ASK) {
		w->asks++;
		w->odd |= from->idx ? !(p->op & UR_OP_NDTH) : p->bth.opcode != UR_EXT_PROBE;
		w->both += from->idx;
	}
	w->answers += !!(p->op & UR_OP_NDTH);
	w->odd |= (p->bth.resv6 & UR_DELAY_HOPS) || p->udp_csum;
	return SIM_PASS;
}

static void start(struct way *w, const char *name, enum ur_cc_mode mode, enum sim_stamps stamps)
{
	struct sim_attr sa = sim_defaults(name, 0);

	sa.fast = true;
	sa.window = 512;
	sa.contexts = 8;
	sa.max_qp = 1 + OTHERS;
	sa.link = (struct sim_link_attr){.delay_ns = ONE_WAY};
	w->pacing.mode = mode;
	w->pacing.link_bps = 10 * GBPS;
	sa.pacing = &w->pacing;
	w->s = sim_new(&sa);
	w->opcode = w->opcode ? w->opcode : IBV_WR_RDMA_WRITE;
	for (unsigned e = 0; e < 2; e++) {
		struct sim_ep *ep = &w->s->ep[e];

		ep->out.attr.bits_per_s = ep->in.attr.bits_per_s = 10 * GBPS;
		ep->in.attr.stamps = stamps;
		sim_cq_init(&w->cq[e], DEPTH * (1 + w->others));
		sim_mr_init(&w->mr[e], ep, MSG, SIM_ACCESS_ALL);
	}
	for (unsigned e = 0; e < 2; e++) {
		struct sim_qp_attr qa = sim_qp_defaults(&w->cq[e], &w->cq[e]);

		qa.cap = (struct ibv_qp_cap){DEPTH, 1, 1, 1, 0};
		qa.mtu = IBV_MTU_4096;
		qa.mode = UR_MODE_EXTENDED;
		qa.timeout = 18;
		qa.v6 = w->v6;
		qa.agreed.delay = !w->alone;
		qa.rd_atomic = qa.dest_rd_atomic = READS;
		sim_qp_create(&w->qp[e], &w->s->ep[e], &qa);
		for (unsigned i = 0; i < w->others; i++)
			sim_qp_create(&w->other[e][i], &w->s->ep[e], &qa);
	}
	sim_qp_connect(&w->qp[0], &w->qp[1]);
	for (unsigned i = 0; i < w->others; i++)
		sim_qp_connect(&w->other[0][i], &w->other[1][i]);
	w->s->after = poll;
	w->s->after_arg = w;
	w->s->hook = watch;
	w->s->hook_arg = w;
	for (unsigned i = 0; i < DEPTH; i++)
		post(w, 0);
	for (unsigned i = 1; i <= w->others; i++)
		post(w, i);
}

static void end(struct way *w)
{
	cr_assert_not(w->odd, "a frame that does not ask differs");
	for (unsigned e = 0; e < 2; e++) {
		sim_qp_destroy(&w->qp[e]);
		for (unsigned i = 0; i < w->others; i++)
			sim_qp_destroy(&w->other[e][i]);
	}
	for (unsigned e = 0; e < 2; e++) {
		sim_mr_free(&w->mr[e]);
		sim_cq_free(&w->cq[e]);
	}
	sim_free(w->s);
}

/* Gb/s of messages from now on for that time. */
static double measure(struct way *w, uint64_t ns)
{
	uint64_t before = w->done;

	sim_sleep(w->s, ns);
	return (double)(w->done - before) * MSG * 8 / (double)ns;
}

static uint64_t again(const struct way *w)
{
	return sim_counters(&w->s->ep[0])->retransmitted_packets;
}

/* The way back becomes longer by a millisecond within 20 ms. */
static void grow(struct sim *s, void *arg)
{
	struct sim_link *back = &s->ep[1].link[0];

	if (back->attr.delay_ns >= ONE_WAY + SIM_MS(1))
		return;
	back->attr.delay_ns += SIM_US(5);
	sim_call_at(s, s->now_ns + SIM_US(100), grow, arg);
}

/* PACE-NET-01, PACE-NET-03, PACE-NET-04, EXT-RESP-DELAY-01, SWITCH-DELAY-01 */
Test(delay, switch_that_stamps_is_found_and_heard)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct way w = {.v6 = v6};

		start(&w, "delay.found", UR_CC_AUTO, SIM_STAMPS_RIGHT);
		cr_assert_gt(measure(&w, SIM_MS(20)), 9.5);
		grow(w.s, NULL);
		sim_sleep(w.s, SIM_MS(20));
		cr_assert_eq(dest_of(&w)->net.state, UR_NET_ON);
		cr_assert(ur_net_delay_serves(&dest_of(&w)->net, w.s->now_ns));
		cr_assert_eq(dest_of(&w)->net.hops, 1);
		/* The port takes a probe of 78 bytes at 10 Gb/s, behind what waits there. */
		cr_assert_geq(dest_of(&w)->net.delay_ns, 48);
		cr_assert_gt(counters(&w)->net_samples, 10);
		cr_assert_eq(counters(&w)->net_bad, 0);
		cr_assert_eq(w.answers, w.asks);
		cr_assert_eq(again(&w), 0);
		end(&w);
	}
}

/* PACE-NET-03: less than 1 % of packets ask. */
Test(delay, asks_are_few)
{
	struct way w = {0};

	/* Swift is always wary. */
	start(&w, "delay.few", UR_CC_SWIFT, SIM_STAMPS_RIGHT);
	sim_sleep(w.s, SIM_MS(50));
	cr_assert_gt(w.asks, 50);
	cr_assert_lt(w.asks * 100, w.s->ep[0].tx_frames, "%lu of %lu", (unsigned long)w.asks,
		     (unsigned long)w.s->ep[0].tx_frames);
	end(&w);
}

/* PACE-NET-03: less than a quarter of what it may. */
Test(delay, where_round_trips_are_steady_nearly_nothing_asks)
{
	struct way w = {0};

	start(&w, "delay.steady", UR_CC_AUTO, SIM_STAMPS_RIGHT);
	sim_sleep(w.s, SIM_MS(50));
	cr_assert_lt(w.asks * 4 * UR_NET_EVERY, w.s->ep[0].tx_frames, "%lu of %lu",
		     (unsigned long)w.asks, (unsigned long)w.s->ep[0].tx_frames);
	cr_assert_eq(counters(&w)->throttles, 0);
	end(&w);
}

/* PACE-NET-03, PACE-NET-04 */
Test(delay, without_switches_one_packet_asks)
{
	struct way w = {0};

	start(&w, "delay.none", UR_CC_AUTO, SIM_STAMPS_NONE);
	sim_sleep(w.s, SIM_MS(20));
	cr_assert_eq(dest_of(&w)->net.state, UR_NET_OFF);
	cr_assert_eq(w.asks, 1);
	cr_assert_eq(w.answers, 1);
	end(&w);
}

static void expect_no_ask(struct way *w, enum ur_cc_mode mode)
{
	start(w, "delay.silent", mode, SIM_STAMPS_RIGHT);
	sim_sleep(w->s, SIM_MS(20));
	cr_assert_eq(w->asks + w->answers, 0);
	cr_assert_gt(w->done, 100);
	end(w);
}

/* PACE-NET-04 */
Test(delay, nothing_asks_that_has_no_right_or_use)
{
	struct way old = {.alone = true}, told = {.pacing = {.round_trip = true}}, marks = {0};

	expect_no_ask(&old, UR_CC_AUTO);
	expect_no_ask(&told, UR_CC_AUTO);
	expect_no_ask(&marks, UR_CC_DCQCN);
}

/* PACE-NET-03: a firewall behind the switch. Probes are lost, data is not. */
Test(delay, path_that_drops_stamps_costs_no_data)
{
	struct way w = {0};
	double before, with;

	w.pacing.round_trip = true;
	start(&w, "delay.never", UR_CC_AUTO, SIM_STAMPS_LOST);
	before = measure(&w, SIM_MS(40));
	end(&w);
	w = (struct way){0};
	start(&w, "delay.blocked", UR_CC_AUTO, SIM_STAMPS_LOST);
	with = measure(&w, SIM_MS(40));
	cr_assert_eq(dest_of(&w)->net.state, UR_NET_BLOCKED);
	cr_assert_eq(counters(&w)->net_blocked, 1);
	cr_assert_eq(w.asks, UR_NET_TRIALS);
	cr_assert_eq(w.answers, 0);
	cr_assert_eq(again(&w), 0);
	cr_assert_eq(sim_counters(&w.s->ep[0])->rto, 0);
	cr_assert_gt(with, 0.99 * before, "%.2f of %.2f", with, before);
	end(&w);
}

/* PACE-NET-03: and one that is switched on later. */
Test(delay, path_that_begins_to_drop_stamps_costs_no_data)
{
	struct way w = {0};
	uint64_t asks;

	start(&w, "delay.later", UR_CC_AUTO, SIM_STAMPS_RIGHT);
	sim_sleep(w.s, SIM_MS(10));
	cr_assert_eq(dest_of(&w)->net.state, UR_NET_ON);
	asks = w.asks;
	w.s->ep[1].in.attr.stamps = SIM_STAMPS_LOST;
	cr_assert_gt(measure(&w, SIM_MS(40)), 9.4);
	cr_assert_eq(dest_of(&w)->net.state, UR_NET_BLOCKED);
	/* One may be on its way. */
	cr_assert_leq(w.asks - asks, UR_NET_MISSES + UR_NET_TRIALS + 1);
	cr_assert_eq(again(&w), 0);
	cr_assert_eq(sim_counters(&w.s->ep[0])->rto, 0);
	end(&w);
}

/* PACE-NET-02: a switch that writes random delays. */
Test(delay, lies_do_no_harm)
{
	static const enum ur_cc_mode modes[] = {UR_CC_AUTO, UR_CC_CMDPD, UR_CC_SWIFT};

	for (unsigned i = 0; i < 3; i++) {
		struct way w = {0};
		double gbps;

		start(&w, "delay.lies", modes[i], SIM_STAMPS_LIES);
		gbps = measure(&w, SIM_MS(50));
		cr_assert_gt(gbps, 9, "%u: %.2f Gb/s", i, gbps);
		cr_assert_gt(counters(&w)->net_bad, 10);
		cr_assert_eq(again(&w), 0);
		end(&w);
	}
}

/* How often a longer way back throttles; the way there is empty. */
static uint64_t throttles_by_way_back(enum ibv_wr_opcode opcode, bool round_trip,
				      enum ur_cc_mode mode, double *gbps)
{
	struct way w = {
		.opcode = opcode,
		.pacing = {.round_trip = round_trip, .target_ns = 100000},
	};
	uint64_t before, n;

	start(&w, "delay.back", mode, SIM_STAMPS_RIGHT);
	sim_sleep(w.s, SIM_MS(20));
	before = counters(&w)->throttles;
	grow(w.s, NULL);
	*gbps = measure(&w, SIM_MS(100));
	n = counters(&w)->throttles - before;
	cr_assert_eq(again(&w), 0);
	end(&w);
	return n;
}

/* PACE-NET-01 */
Test(delay, queue_on_the_way_back_does_not_throttle)
{
	static const enum ur_cc_mode modes[] = {UR_CC_AUTO, UR_CC_SWIFT};

	for (unsigned i = 0; i < 2; i++) {
		double with, without;

		cr_assert_gt(throttles_by_way_back(IBV_WR_RDMA_WRITE, true, modes[i], &without), 0,
			     "%u", i);
		cr_assert_eq(throttles_by_way_back(IBV_WR_RDMA_WRITE, false, modes[i], &with), 0,
			     "%u", i);
		cr_assert_geq(with, without, "%u: %.3f and %.3f Gb/s", i, with, without);
	}
}

struct queue {
	double gbps, wait_us;
};

/* The port to the receiver takes a tenth. */
static struct queue slow_receiver(bool round_trip)
{
	struct way w = {.pacing = {.round_trip = round_trip}};
	struct sim_port *in;
	struct queue q;

	start(&w, "delay.there", UR_CC_AUTO, SIM_STAMPS_RIGHT);
	in = &w.s->ep[1].in;
	in->attr.bits_per_s = GBPS;
	/* Whichever source: AUTO has probed for the least delay by then (PACE-AUTO-05). */
	sim_sleep(w.s, SIM_MS(300));
	in->frames = in->wait_ns = 0;
	q.gbps = measure(&w, SIM_MS(100));
	q.wait_us = (double)in->wait_ns / (double)in->frames / 1000;
	cr_assert(dest_of(&w)->cc->throttled);
	cr_assert_eq(ur_net_delay_serves(&dest_of(&w)->net, w.s->now_ns), !round_trip);
	end(&w);
	return q;
}

/* PACE-NET-01: there it is as good. */
Test(delay, queue_on_the_way_there_is_kept_as_short)
{
	struct queue c = slow_receiver(true), a = slow_receiver(false);

	cr_assert_gt(a.gbps, 0.95 * c.gbps, "%.3f of %.3f Gb/s", a.gbps, c.gbps);
	cr_assert_lt(a.wait_us, 1.2 * c.wait_us, "%.0f, not %.0f us", a.wait_us, c.wait_us);
}

/* PACE-NET-03: an ask does not wait until its queue pair has its turn at the gate, after all others. */
Test(delay, asks_leave_the_gate_first)
{
	struct way w = {.others = OTHERS};
	uint64_t before, sent_again;

	start(&w, "delay.turns", UR_CC_AUTO, SIM_STAMPS_RIGHT);
	w.s->ep[1].in.attr.bits_per_s = GBPS / 40;
	sim_sleep(w.s, SIM_MS(500));
	cr_assert(dest_of(&w)->cc->throttled);
	before = counters(&w)->net_samples;
	sent_again = again(&w);
	sim_sleep(w.s, SIM_MS(1000));
	/* A turn of all queue pairs takes 170 ms: 2 asks when each waited for its turn, 50 when it does not. */
	cr_assert_gt(counters(&w)->net_samples - before, 25, "%lu",
		     (unsigned long)(counters(&w)->net_samples - before));
	cr_assert_eq(again(&w), sent_again);
	end(&w);
}

/* PACE-NET-06: what is read comes the way back, and its queue is heard there. */
static struct queue slow_reader(bool round_trip)
{
	struct way w = {.opcode = IBV_WR_RDMA_READ, .pacing = {.round_trip = round_trip}};
	struct sim_port *in;
	struct queue q;

	start(&w, "delay.read", UR_CC_AUTO, SIM_STAMPS_RIGHT);
	in = &w.s->ep[0].in;
	in->attr.bits_per_s = GBPS;
	sim_sleep(w.s, SIM_MS(300));
	in->frames = in->wait_ns = 0;
	q.gbps = measure(&w, SIM_MS(100));
	q.wait_us = (double)in->wait_ns / (double)in->frames / 1000;
	cr_assert(dest_of(&w)->cc->throttled);
	cr_assert_eq(ur_net_delay_serves(&dest_of(&w)->net, w.s->now_ns), !round_trip);
	if (!round_trip) {
		cr_assert_eq(dest_of(&w)->net.hops, 2);
		cr_assert_gt(counters(&w)->net_samples, 10);
		cr_assert_eq(w.both, w.answers, "each answer");
	}
	cr_assert_eq(again(&w), 0);
	end(&w);
	return q;
}

/* PACE-NET-06 */
Test(delay, queue_of_what_is_read_is_kept_as_short)
{
	struct queue c = slow_reader(true), a = slow_reader(false);

	cr_assert_gt(a.gbps, 0.95 * c.gbps, "%.3f of %.3f Gb/s", a.gbps, c.gbps);
	cr_assert_lt(a.wait_us, 1.2 * c.wait_us, "%.0f, not %.0f us", a.wait_us, c.wait_us);
}

/* PACE-NET-06: what makes round trips of READs longer and is no queue in a switch. */
Test(delay, longer_round_trips_of_reads_do_not_throttle)
{
	static const enum ur_cc_mode modes[] = {UR_CC_AUTO, UR_CC_SWIFT};

	for (unsigned i = 0; i < 2; i++) {
		double with, without;

		cr_assert_gt(throttles_by_way_back(IBV_WR_RDMA_READ, true, modes[i], &without), 0,
			     "%u", i);
		cr_assert_eq(throttles_by_way_back(IBV_WR_RDMA_READ, false, modes[i], &with), 0,
			     "%u", i);
		cr_assert_geq(with, without, "%u: %.3f and %.3f Gb/s", i, with, without);
	}
}

/* PACE-NET-03, PACE-NET-06: a firewall before the reader drops answers; what is read arrives. */
Test(delay, way_back_that_drops_stamps_costs_no_data)
{
	struct way w = {.opcode = IBV_WR_RDMA_READ};

	start(&w, "delay.read_blocked", UR_CC_SWIFT, SIM_STAMPS_RIGHT);
	w.s->ep[0].in.attr.stamps = SIM_STAMPS_LOST;
	cr_assert_gt(measure(&w, SIM_MS(40)), 9);
	cr_assert_eq(dest_of(&w)->net.state, UR_NET_BLOCKED);
	cr_assert_eq(counters(&w)->net_samples, 0);
	cr_assert_eq(again(&w), 0);
	cr_assert_eq(sim_counters(&w.s->ep[0])->rto, 0);
	end(&w);
}
