/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "oracle.h"
#include "transport/rc/spray.h"

/*
 * A network with ECMP, in which the UDP source port of a packet selects its route. One sprayed
 * queue pair sends; every byte is checked, and the packets of each path are counted.
 */
#define PATHS	 4
#define MTU	 1024
#define DEPTH	 8
#define MSG	 (64 * MTU)
#define LIMIT_NS SIM_MS(1000)
/* Phases, in packets of the sender. */
#define WARM_UP 2000
#define HEALED	8000
#define HEALTHY 12000

enum phase { START, BAD, HEALING, WELL, PHASE_CNT };

struct net {
	struct sim *s;
	uint16_t base;	      /* UDP source port of path 0 */
	uint32_t loss[PATHS]; /* 65536ths */
	uint64_t extra_ns[PATHS];
	bool heals;
	unsigned sent, again;
	unsigned used[PHASE_CNT][PATHS];
};

static enum phase phase_of(const struct net *n)
{
	if (n->sent < WARM_UP)
		return START;
	if (n->sent < HEALED)
		return BAD;
	return n->sent < HEALTHY ? HEALING : WELL;
}

/* The route that the network, which has no notion of paths, selects for the port. */
static unsigned way_of(const struct net *n, uint16_t sport)
{
	for (uint8_t i = 0; i < PATHS; i++)
		if (ur_spray_port(n->base, i) == sport)
			return i;
	return PATHS;
}

static enum sim_verdict forward(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				const struct ur_packet *p)
{
	struct net *n = s->hook_arg;
	unsigned way = way_of(n, p->sport);
	bool bad;

	if (from != &s->ep[0] || !(p->op & UR_OP_XTH))
		return SIM_PASS;
	SIM_CHECK(s, way < PATHS && way == p->xth.path, "port %#x on path %u", p->sport,
		  p->xth.path);
	n->used[phase_of(n)][way]++;
	n->again += !!(p->xth.flags & UR_XTH_RETRY);
	bad = !n->heals || n->sent < HEALED;
	n->sent++;
	if (bad && sim_chance(&s->rng, n->loss[way]))
		return SIM_DROP;
	if (!bad || !n->extra_ns[way])
		return SIM_PASS;
	sim_inject_at(sim_destination(s, p),
		      from->link[1].busy_until_ns + from->link[1].attr.delay_ns + n->extra_ns[way],
		      frame, len);
	return SIM_KEEP;
}

/* The share of the path, in percent of an equal share. */
static unsigned share(const struct net *n, enum phase phase, unsigned path)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < PATHS; i++)
		sum += n->used[phase][i];
	SIM_CHECK(n->s, sum > 1000, "only %u packets in phase %d", sum, phase);
	return n->used[phase][path] * 100 * PATHS / sum;
}

/* Sends `msgs` messages through the network. `judge` is called before all objects are freed. */
static void run(const char *name, struct net *n, unsigned msgs, bool v6, bool lossless,
		void (*judge)(const struct net *n))
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						 IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE};
	struct sim_attr sa = sim_defaults(sim_mode_case(UR_MODE_EXTENDED, name), 0);
	struct sim_oracle oracle;
	struct sim_recvq rq;
	struct sim_qp_attr qa[2];
	struct sim_qp qp[2];
	struct sim_cq cq[2];
	struct sim_flow *flow;

	sa.window = 256;
	sa.fast = true;
	n->s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&cq[i], 64);
		qa[i] = sim_qp_defaults(&cq[i], &cq[i]);
		qa[i].mode = UR_MODE_EXTENDED;
		qa[i].paths = PATHS;
		qa[i].v6 = v6;
		qa[i].psn = 0xfff000;
		qa[i].timeout = 16;
	}
	sim_qp_pair(&qp[0], &n->s->ep[0], &qa[0], &qp[1], &n->s->ep[1], &qa[1]);
	n->base = sim_path_attr(&qp[0], qp[1].ep, qp[1].qpn).sport;
	n->s->hook = forward;
	n->s->hook_arg = n;
	sim_oracle_init(&oracle, n->s);
	oracle.lossless = lossless;
	sim_oracle_add_cq(&oracle, &cq[0]);
	sim_oracle_add_cq(&oracle, &cq[1]);
	sim_recvq_init(&rq, n->s, 0, &qp[1], NULL, 16, MSG, 2);
	sim_oracle_add_recvq(&oracle, &rq);
	flow = sim_flow_new(&oracle, &qp[0], &qp[1], &rq, DEPTH, MSG, 2);
	for (unsigned i = 0; i < msgs; i++)
		sim_flow_add(flow, (struct sim_op){.opcode = ops[i % 4],
						   .len = MSG - (i % 7) * 100,
						   .flags = IBV_SEND_SIGNALED});
	sim_oracle_run(&oracle, LIMIT_NS);
	judge(n);
	for (unsigned i = 0; i < 2; i++)
		sim_qp_destroy(&qp[i]);
	sim_oracle_free(&oracle);
	for (unsigned i = 0; i < 2; i++)
		sim_cq_free(&cq[i]);
	sim_free(n->s);
}

static void expect_avoided_then_trusted(const struct net *n)
{
	const struct ur_counters *c = sim_counters(&n->s->ep[0]);

	SIM_CHECK(n->s,
		  c->packets_deemed_lost == c->lost_but_arrived + c->retransmitted_packets &&
			  c->retransmitted_packets == n->again,
		  "%llu lost, %llu of them arrived, %llu sent again",
		  (unsigned long long)c->packets_deemed_lost,
		  (unsigned long long)c->lost_but_arrived,
		  (unsigned long long)c->retransmitted_packets);
	for (unsigned i = 0; i < PATHS; i++) {
		bool bad = n->loss[i] || n->extra_ns[i];
		unsigned during = share(n, BAD, i), after = share(n, WELL, i);

		SIM_CHECK(n->s, bad ? during < 25 : during > 100,
			  "path %u has %u %% of its share while one is bad", i, during);
		SIM_CHECK(n->s, after >= 75 && after <= 125,
			  "path %u has %u %% of its share when all are well", i, after);
	}
}

static const bool families[] = {false, true};

/* SPRAY-WEIGHT-01, SPRAY-PROBE-01, SPRAY-TELL-01 */
Test(spray, path_that_loses_is_avoided_and_gets_its_share_back)
{
	for (unsigned i = 0; i < 2; i++) {
		struct net n = {.loss = {[2] = 65536 / 5}, .heals = true};

		run("spray_loss", &n, SIM_OPS_MAX, families[i], false, expect_avoided_then_trusted);
	}
}

/* SPRAY-WEIGHT-01, SPRAY-PROBE-01, SPRAY-TELL-01 */
Test(spray, path_that_delays_is_avoided_and_gets_its_share_back)
{
	struct net n = {.extra_ns = {[1] = 300000}, .heals = true}; /* ten round trips */

	run("spray_delay", &n, SIM_OPS_MAX, false, false, expect_avoided_then_trusted);
}

static void expect_nothing_again(const struct net *n)
{
	SIM_CHECK(n->s, n->again == 0, "%u packets were sent again", n->again);
	for (unsigned i = 0; i < PATHS; i++) {
		unsigned during = share(n, BAD, i);

		SIM_CHECK(n->s, during >= 90 && during <= 110, "path %u has %u %% of its share", i,
			  during);
	}
	SIM_CHECK(n->s, sim_counters(&n->s->ep[1])->early_packets > 1000, "nothing was overtaken");
}

/* SPRAY-WEIGHT-01. The delays differ by less than a round trip, which is 11 us and more. */
Test(spray, paths_of_different_length_reorder_and_nothing_is_sent_again)
{
	struct net n = {.extra_ns = {0, 1500, 3000, 5000}};

	run("spray_reorder", &n, 128, false, true, expect_nothing_again);
}

static void expect_half_for_the_slow_one(const struct net *n)
{
	unsigned slow = share(n, BAD, 3);

	SIM_CHECK(n->s, slow >= 40 && slow <= 60, "the slow path has %u %% of its share", slow);
	for (unsigned i = 0; i < 3; i++)
		SIM_CHECK(n->s, share(n, BAD, i) >= 105, "path %u has %u %% of its share", i,
			  share(n, BAD, i));
}

/* SPRAY-WEIGHT-01 */
Test(spray, path_of_more_than_twice_the_round_trip_has_half_of_its_share)
{
	struct net n = {.extra_ns = {[3] = 25000}}; /* to about 20 us */

	run("spray_slow", &n, 128, false, false, expect_half_for_the_slow_one);
}
