/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "objects.h"
#include "transport/dest.h"
#include "transport/qp.h"

/*
 * Thousands of queue pairs between four endpoints: three send WRITEs and READs to one, on lanes of
 * all kinds, and it answers. After each call of output: there was no blind visit, output made
 * packets if a queue was ready, and no queue has been ready for longer than until its turn.
 */
#define SENDERS	    3
#define DEPTH	    2	 /* outstanding requests of a queue pair */
#define MSG_MAX	    2048 /* maximum length of a request, bytes */
#define MTU	    1024
#define TURN	    (DEPTH * MSG_MAX / MTU) /* packets in a turn: no queue has more to send */
#define GATES	    8
#define TX_CAP	    32
#define LIMIT_NS    SIM_MS(2000)
#define CHECK_EVERY 16 /* calls of output between two checks of all queue pairs */
#define TIMEOUT	    18 /* 1 s: nothing is lost, but requests wait for many others */

struct pair {
	struct sim_qp req, rsp;
	uint32_t len[DEPTH]; /* of request id % DEPTH */
	unsigned posted, done;
	/* Of the send queue and of the responses: packets that the endpoint had made when it
	 * became ready or had one of its own; 0: it is not ready. */
	uint64_t since[2];
};

struct fleet {
	struct sim *s;
	unsigned cnt, msgs; /* queue pairs, messages of each */
	unsigned finished;
	struct pair *pairs;
	struct sim_cq cq[SIM_EP_MAX];
	struct sim_mr mr[SIM_EP_MAX];
	struct sim_rng rng;
	bool even; /* all messages are WRITEs of MSG_MAX */
	unsigned
		per_queue; /* maximum wait of a ready queue, in packets for each other queue of its endpoint */
	uint64_t longest; /* longest wait of a queue, in packets */
	unsigned calls, gate_calls;
	bool gated;
	struct ur_dest dest[SENDERS][GATES]; /* the test controls their gates; nothing is paced */
	bool changes;			     /* the tables change during the run */
	uint64_t held, unserved;	     /* queues seen in these states */
};

/* ---- load ---- */

static void post(struct fleet *f, unsigned i)
{
	struct pair *p = &f->pairs[i];
	unsigned at = p->posted % DEPTH, ep = p->req.ep->idx;
	bool read = !f->even && sim_chance(&f->rng, 20000);
	uint32_t off = (i * DEPTH + at) * MSG_MAX,
		 len = f->even ? MSG_MAX : sim_between(&f->rng, 0, MSG_MAX);
	struct ibv_sge sge = sim_sge(&f->mr[ep], off, len);
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)i << 32 | p->posted,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)f->mr[SENDERS].p + off,
			    .rkey = f->mr[SENDERS].key},
	};

	/* READs return what WRITEs have written: the memory always has its pattern. */
	sim_pattern(f->mr[SENDERS].p + off, read ? len : 0, off);
	sim_pattern(f->mr[ep].p + off, read ? 0 : len, off);
	p->len[at] = len;
	SIM_CHECK(f->s, sim_post_send(&p->req, &wr) == 0, "a post fails");
	p->posted++;
}

static void check_bytes(struct fleet *f, unsigned i, unsigned at)
{
	static uint8_t want[MSG_MAX];
	struct pair *p = &f->pairs[i];
	uint32_t off = (i * DEPTH + at) * MSG_MAX;

	sim_pattern(want, p->len[at], off);
	SIM_CHECK(f->s, memcmp(want, f->mr[SENDERS].p + off, p->len[at]) == 0,
		  "queue pair %u: the target differs", i);
	SIM_CHECK(f->s, memcmp(want, f->mr[p->req.ep->idx].p + off, p->len[at]) == 0,
		  "queue pair %u: the source differs", i);
}

/* Polls completions and posts new requests. */
static void poll(struct sim *s, void *arg)
{
	struct fleet *f = arg;
	struct ibv_wc wc;

	for (unsigned e = 0; e < SENDERS; e++)
		while (ur_cq_poll(&f->cq[e].cq, 1, &wc) == 1) {
			unsigned i = (unsigned)(wc.wr_id >> 32);
			struct pair *p = &f->pairs[i];

			SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "queue pair %u: status %d", i,
				  wc.status);
			SIM_CHECK(s, (uint32_t)wc.wr_id == p->done, "queue pair %u: out of order",
				  i);
			check_bytes(f, i, p->done++ % DEPTH);
			if (p->posted < f->msgs)
				post(f, i);
			f->finished += p->done == f->msgs;
		}
}

static bool finished(void *arg)
{
	const struct fleet *f = arg;

	return f->finished == f->cnt;
}

/* ---- oracle ---- */

static bool has_closed_gate(const struct ur_emux_queue *q)
{
	return q->gate && q->gate->closed;
}

/* SCHED-READY-01: the state follows from transport, gate and tables. */
static void check_state(struct fleet *f, struct sim_ep *ep, const struct ur_emux_queue *q,
			bool active)
{
	const struct ur_core *core = ur_engine_core(ep->engine);
	bool served = ur_vl_of_sl(&core->vl, q->sl) >= 0;

	SIM_CHECK(f->s, ur_emux_is_active(q) == active, "active %d, state %u", active, q->state);
	SIM_CHECK(f->s, q->vl == (served ? ur_vl_of_sl(&core->vl, q->sl) : UR_VL_CNT),
		  "SL %u on lane %u", q->sl, q->vl);
	if (!active)
		return;
	SIM_CHECK(f->s, (q->state == UR_EMUX_UNSERVED) == !served, "state %u of SL %u", q->state,
		  q->sl);
	/*
	 * Queues that wait at an opened gate are woken soon. Queues in a ready list are moved to a
	 * closed gate only at their turn.
	 */
	if (q->state == UR_EMUX_HELD)
		SIM_CHECK(f->s, q->gate && q->node.ready, "held at no gate");
	f->held += q->state == UR_EMUX_HELD;
	f->unserved += q->state == UR_EMUX_UNSERVED;
}

/* Changes between two checks are not seen at once. */
static uint64_t bound_of(const struct fleet *f, const struct sim_ep *ep)
{
	uint64_t queues = ep->idx == SENDERS ? f->cnt : f->cnt / SENDERS;

	return queues * f->per_queue + CHECK_EVERY * TX_CAP;
}

static void check_wait(struct fleet *f, struct sim_ep *ep, const struct ur_emux_queue *q,
		       uint64_t *since)
{
	if (q->state != UR_EMUX_READY || has_closed_gate(q)) {
		*since = 0;
		return;
	}
	if (!*since) {
		*since = ep->tx_frames + 1;
		return;
	}
	if (ep->tx_frames - *since > f->longest)
		f->longest = ep->tx_frames - *since;
	SIM_CHECK(f->s, !f->per_queue || ep->tx_frames < *since + bound_of(f, ep),
		  "endpoint %u, SL %u: ready for %llu packets and no turn", ep->idx, q->sl,
		  (unsigned long long)(ep->tx_frames - *since));
}

static void check_queues(struct fleet *f, struct sim_ep *ep)
{
	ur_emux_validate(&ur_engine_core(ep->engine)->emux);
	for (unsigned i = 0; i < f->cnt; i++) {
		struct pair *p = &f->pairs[i];
		bool asks = p->req.ep == ep;
		const struct sim_qp *qp = asks ? &p->req : &p->rsp;

		if (qp->ep != ep)
			continue;
		ur_qp_validate(qp->qp);
		check_state(f, ep, &qp->qp->sq_queue, qp->qp->ops->ready(qp->qp));
		check_state(f, ep, &qp->qp->rsp_queue, qp->qp->rsp.q_cnt != 0);
		check_wait(f, ep, asks ? &qp->qp->sq_queue : &qp->qp->rsp_queue, &p->since[!asks]);
	}
}

static void on_output(struct sim *s, struct sim_ep *ep, bool could, unsigned n)
{
	struct fleet *f = s->output_arg;

	SIM_CHECK(s, n || !could, "endpoint %u was ready and sent nothing", ep->idx);
	if (f->calls++ % CHECK_EVERY == 0)
		check_queues(f, ep);
}

/* Called for each packet of a send queue or of responses. */
static enum sim_verdict on_frame(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				 const struct ur_packet *p)
{
	struct fleet *f = s->hook_arg;
	struct ur_qp *to = ur_engine_find_qp(sim_destination(s, p)->engine, p->bth.dqpn);
	bool answers = from->idx == SENDERS;
	struct pair *pair;

	(void)frame, (void)len;
	if (p->bth.opcode == UR_RC_ACKNOWLEDGE)
		return SIM_PASS;
	/* `user` of a queue pair of the simulator is its sim_qp, a member of the pair. */
	pair = (struct pair *)(void *)((char *)to->user - (answers ? offsetof(struct pair, req)
								   : offsetof(struct pair, rsp)));
	SIM_CHECK(s, pair >= f->pairs && pair < f->pairs + f->cnt, "a packet of no queue pair");
	SIM_CHECK(s, answers || !has_closed_gate(&pair->req.qp->sq_queue),
		  "a packet through a closed gate");
	if (pair->since[answers])
		pair->since[answers] = from->tx_frames;
	return SIM_PASS;
}

/* ---- gates and tables ---- */

/* Closes gates, and opens them for a few queues at a time, until all messages are done. */
static void move_gates(struct sim *s, void *arg)
{
	struct fleet *f = arg;

	for (unsigned e = 0; e < SENDERS; e++)
		for (unsigned g = 0; g < GATES; g++) {
			struct ur_gate *gate = &f->dest[e][g].gate;

			if (f->gate_calls < 300 && sim_chance(&f->rng, 20000))
				gate->closed = true;
			else if (gate->closed || gate->waiting.ready_cnt)
				ur_emux_gate_open(&ur_engine_core(s->ep[e].engine)->emux, gate,
						  sim_between(&f->rng, 1, 20));
			sim_kick(&s->ep[e]);
		}
	f->gate_calls++;
	if (!finished(f))
		sim_call_at(s, s->now_ns + SIM_US(20), move_gates, f);
}

/* SCHED-LIVE-01. Changes tables and policy; sometimes a service level has no lane. */
static void change(struct sim *s, void *arg)
{
	struct fleet *f = arg;
	struct ur_engine_qos qos;

	ur_engine_qos_default(&qos);
	qos.sched.policy = (enum ur_emux_policy)sim_below(&f->rng, 2);
	qos.vl.mode = sim_below(&f->rng, 2) ? UR_VL_IBA : UR_VL_MEASURED;
	for (unsigned i = 0; i < UR_VL_CNT; i++)
		qos.vl.low[i].weight = (uint8_t)sim_between(&f->rng, 1, 64);
	qos.vl.sl2vl[sim_below(&f->rng, 4)] = (uint8_t)sim_between(&f->rng, 10, 15);
	if (f->gate_calls++ > 100)
		ur_engine_qos_default(&qos);
	for (unsigned e = 0; e <= SENDERS; e++) {
		ur_engine_set_qos(s->ep[e].engine, &qos);
		sim_kick(&s->ep[e]);
	}
	if (!finished(f))
		sim_call_at(s, s->now_ns + SIM_US(10), change, f);
}

/* ---- running ---- */

static void run(const char *name, struct fleet *f, const struct ur_engine_qos *qos, unsigned sls)
{
	struct sim_attr sa = sim_defaults(name, 0);
	struct sim_qp_attr qa;

	sa.eps = SENDERS + 1;
	sa.max_qp = f->cnt;
	sa.fast = true;
	sa.tx_cap = TX_CAP;
	sa.qos = qos;
	f->s = sim_new(&sa);
	f->rng.state = 7;
	f->pairs = calloc(f->cnt, sizeof(*f->pairs));
	for (unsigned e = 0; e <= SENDERS; e++) {
		sim_cq_init(&f->cq[e], 2 * DEPTH * f->cnt);
		sim_mr_init(&f->mr[e], &f->s->ep[e], (size_t)f->cnt * DEPTH * MSG_MAX,
			    SIM_ACCESS_ALL);
	}
	for (unsigned e = 0; e < SENDERS; e++)
		for (unsigned g = 0; g < GATES; g++) {
			f->dest[e][g].cc = &ur_engine_core(f->s->ep[e].engine)->cc.unpaced;
			ur_gate_init(&f->dest[e][g].gate);
		}
	for (unsigned i = 0; i < f->cnt; i++) {
		unsigned e = i % SENDERS;
		struct pair *p = &f->pairs[i];

		qa = sim_qp_defaults(&f->cq[e], &f->cq[e]);
		qa.cap = (struct ibv_qp_cap){DEPTH, 1, 1, 1, 0};
		qa.sl = (uint8_t)(i / SENDERS % sls);
		qa.timeout = TIMEOUT;
		sim_qp_create(&p->req, &f->s->ep[e], &qa);
		qa.send_cq = qa.recv_cq = &f->cq[SENDERS];
		sim_qp_create(&p->rsp, &f->s->ep[SENDERS], &qa);
		sim_qp_connect(&p->req, &p->rsp);
		if (f->gated)
			ur_emux_set_gate(&ur_engine_core(f->s->ep[e].engine)->emux,
					 &p->req.qp->sq_queue,
					 &f->dest[e][i / SENDERS % GATES].gate);
	}
	f->s->hook = on_frame;
	f->s->on_output = on_output;
	f->s->after = poll;
	f->s->hook_arg = f->s->output_arg = f->s->after_arg = f;
	for (unsigned i = 0; i < f->cnt * DEPTH; i++)
		post(f, i % f->cnt);
	if (f->gated)
		move_gates(f->s, f);
	if (f->changes)
		change(f->s, f);
	sim_must_run(f->s, finished, f, LIMIT_NS);
	for (unsigned e = 0; e <= SENDERS; e++)
		SIM_CHECK(f->s, sim_counters(&f->s->ep[e])->retransmitted_packets == 0,
			  "endpoint %u sent again on a clean link", e);
}

static void end(struct fleet *f)
{
	for (unsigned i = 0; i < f->cnt; i++) {
		sim_qp_destroy(&f->pairs[i].req);
		sim_qp_destroy(&f->pairs[i].rsp);
	}
	for (unsigned e = 0; e <= SENDERS; e++) {
		sim_mr_free(&f->mr[e]);
		sim_cq_free(&f->cq[e]);
	}
	free(f->pairs);
	sim_free(f->s);
}

static uint64_t sum(const struct fleet *f, size_t counter)
{
	uint64_t n = 0;

	for (unsigned e = 0; e <= SENDERS; e++)
		n += *(const uint64_t *)(const void *)((const char *)sim_counters(&f->s->ep[e]) +
						       counter);
	return n;
}
#define SUM(f, name) sum(f, offsetof(struct ur_counters, name))

/* SCHED-READY-01, SCHED-BLIND-01 */
Test(sched, every_queue_of_thousands_on_one_lane_has_its_turn)
{
	struct fleet f = {.cnt = 3000, .msgs = 12, .per_queue = TURN};

	run("sched.one_lane", &f, NULL, 1);
	cr_assert_gt(f.longest, 1000, "no queue has waited");
	end(&f);
}

/* SCHED-READY-01, SCHED-BLIND-01 */
Test(sched, every_queue_on_lanes_of_unequal_weight_has_its_turn)
{
	struct ur_engine_qos qos;
	struct fleet f = {.cnt = 60, .msgs = 300, .even = true};

	ur_engine_qos_default(&qos);
	/* Lanes 0 to 3 in the ratio 1:2:3:4, lane 4 before them for 4 KB at a time. */
	for (unsigned i = 0; i < 4; i++)
		qos.vl.low[i].weight = (uint8_t)(16 * (i + 1));
	qos.vl.low[4].weight = 0;
	qos.vl.high[0] = (struct ur_vl_entry){4, 255};
	qos.vl.high_cnt = 1;
	qos.vl.high_limit = 1;
	/* Lane 0 has a fifth of the queues, and one packet of ten that the high lane leaves: one
	 * of five. */
	f.per_queue = TURN * 10 * 5 / 5;
	run("sched.lanes", &f, &qos, 5);
	cr_assert_gt(f.longest, 20, "no queue has waited");
	end(&f);
}

/* SCHED-WAKE-01, SCHED-BLIND-01 */
Test(sched, gates_that_close_and_open_at_any_time_cost_no_turn)
{
	struct fleet f = {.cnt = 1500, .msgs = 6, .gated = true};

	run("sched.gates", &f, NULL, 3);
	cr_assert_gt(f.held, 100);
	cr_assert_gt(SUM(&f, sched_sifted), 100);
	cr_assert_gt(SUM(&f, sched_woken), 1000);
	cr_assert_leq(SUM(&f, sched_sifted), SUM(&f, sched_woken));
	end(&f);
}

/* SCHED-LIVE-01 */
Test(sched, tables_that_change_all_the_time_lose_nothing)
{
	struct fleet f = {.cnt = 900, .msgs = 10, .changes = true};

	run("sched.changes", &f, NULL, 4);
	cr_assert_gt(f.unserved, 10);
	end(&f);
}
