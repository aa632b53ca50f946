/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "modes.h"
#include "rxe_peer.h"

/*
 * The requester of modes gbn and reorder against the model of another responder (rxe_peer.h), with
 * loss, reordering and duplicates. Every byte is compared, no queue pair dies, and the numbers of
 * retransmissions and of timeouts stay in proportion to the number of losses.
 */
#define RUNS	 5 /* seeds of each load */
#define SLOTS	 16
#define SLOT	 (256u << 10)
#define LIMIT_NS SIM_MS(20000)
#define PERCENT	 65536 / 100

struct load {
	const char *name;
	enum ibv_wr_opcode ops[4]; /* chosen at random */
	unsigned op_cnt;
	uint32_t min_len, max_len;
	unsigned depth, cnt; /* outstanding requests, total number */
	enum ibv_mtu mtu;
	bool guest; /* a peer as slow and irregular as an emulated machine */
	bool losses_only;
};

#define W IBV_WR_RDMA_WRITE
#define R IBV_WR_RDMA_READ
#define S IBV_WR_SEND
#define A IBV_WR_ATOMIC_FETCH_AND_ADD
static const struct load loads[] = {
	{"write_64k", {W}, 1, 65536, 65536, 4, 60, IBV_MTU_1024, false, false},
	{"read_64k", {R}, 1, 65536, 65536, 4, 60, IBV_MTU_1024, false, false},
	{"send_64k", {S}, 1, 65536, 65536, 4, 60, IBV_MTU_1024, false, false},
	{"mixed_64k", {W, R, S}, 3, 65536, 65536, 4, 90, IBV_MTU_1024, false, false},
	{"mixed_loss", {W, R, S}, 3, 65536, 65536, 4, 90, IBV_MTU_1024, false, true},
	{"mixed_any", {W, R, S, A}, 4, 0, 65536, 8, 200, IBV_MTU_4096, false, false},
	{"small", {W, R, S, A}, 4, 0, 2000, 8, 1000, IBV_MTU_1024, false, false},
	{"guest_write", {W}, 1, 65536, 65536, 2, 60, IBV_MTU_1024, true, false},
	{"guest_read", {R}, 1, 65536, 65536, 2, 60, IBV_MTU_1024, true, false},
	{"guest_mixed", {W, R, S}, 3, 65536, 65536, 4, 90, IBV_MTU_1024, true, false},
	{"guest_large", {W, R, S}, 3, 262144, 262144, 4, 60, IBV_MTU_4096, true, false},
};
#undef W
#undef R
#undef S
#undef A
#define LOADS (sizeof(loads) / sizeof(loads[0]))

struct request {
	enum ibv_wr_opcode op;
	uint32_t len;
	uint64_t seed;
};

struct world {
	const struct load *load;
	struct sim *s;
	struct sim_rng rng;
	struct sim_cq cq;
	struct sim_mr mr; /* a slot for each outstanding request */
	struct sim_qp qp;
	struct rxe_peer peer; /* its slots: targets and sources of RDMA, then receives */
	struct request req[SLOTS];
	unsigned posted, done;
	uint64_t sent[4096]; /* seeds and lengths of SENDs, in order */
	uint32_t sent_len[4096];
	unsigned sends, arrived;
	uint64_t sum; /* of the atomics */
};

struct totals {
	uint64_t packets, lost, resent, timeouts, probes, rto, ns;
};

static uint8_t *remote(struct world *w, unsigned slot)
{
	return w->peer.mr.p + (size_t)slot * SLOT;
}

static uint8_t *local(struct world *w, unsigned slot)
{
	return w->mr.p + (size_t)slot * SLOT;
}

static bool matches(const uint8_t *p, uint32_t len, uint64_t seed)
{
	static uint8_t want[SLOT];

	sim_pattern(want, len, seed);
	return memcmp(p, want, len) == 0;
}

static void received(void *arg, struct rxe_recv r, uint32_t len)
{
	struct world *w = arg;
	unsigned i = w->arrived++;

	SIM_CHECK(w->s, i < w->sends && len == w->sent_len[i] && matches(r.p, len, w->sent[i]),
		  "message %u is not what was sent", i);
	rxe_peer_post_recv(&w->peer, r.p, r.len);
}

static void post(struct world *w)
{
	unsigned slot = w->posted % SLOTS;
	struct request *q = &w->req[slot];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = w->posted, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};

	*q = (struct request){
		.op = w->load->ops[sim_below(&w->rng, w->load->op_cnt)],
		.len = sim_between(&w->rng, w->load->min_len, w->load->max_len),
		.seed = sim_rand(&w->rng),
	};
	wr.opcode = q->op;
	wr.wr.rdma.remote_addr = (uintptr_t)remote(w, slot);
	wr.wr.rdma.rkey = w->peer.mr.key;
	switch (q->op) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		q->len = 8;
		wr.wr.atomic.remote_addr = (uintptr_t)remote(w, 2 * SLOTS);
		wr.wr.atomic.rkey = w->peer.mr.key;
		wr.wr.atomic.compare_add = q->seed;
		q->seed = w->sum;
		w->sum += wr.wr.atomic.compare_add;
		break;
	case IBV_WR_RDMA_READ:
		sim_pattern(remote(w, slot), q->len, q->seed);
		break;
	default:
		sim_pattern(local(w, slot), q->len, q->seed);
		break;
	}
	if (q->op == IBV_WR_SEND) {
		w->sent[w->sends] = q->seed;
		w->sent_len[w->sends++] = q->len;
	}
	sge = sim_sge(&w->mr, (size_t)slot * SLOT, q->len);
	SIM_CHECK(w->s, sim_post_send(&w->qp, &wr) == 0, "cannot post");
	w->posted++;
}

static void complete(struct world *w, const struct ibv_wc *wc)
{
	unsigned slot = w->done % SLOTS;
	const struct request *q = &w->req[slot];
	uint64_t before;

	SIM_CHECK(w->s, wc->wr_id == w->done && wc->status == IBV_WC_SUCCESS,
		  "request %u ended with status %d", w->done, wc->status);
	switch (q->op) {
	case IBV_WR_RDMA_WRITE:
		SIM_CHECK(w->s, matches(remote(w, slot), q->len, q->seed), "WRITE %u", w->done);
		break;
	case IBV_WR_RDMA_READ:
		SIM_CHECK(w->s, matches(local(w, slot), q->len, q->seed), "READ %u", w->done);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		memcpy(&before, local(w, slot), 8);
		SIM_CHECK(w->s, before == q->seed, "atomic %u", w->done);
		break;
	default:
		break;
	}
	w->done++;
}

static void poll(struct sim *s, void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;

	(void)s;
	while (ur_cq_poll(&w->cq.cq, 1, &wc)) {
		complete(w, &wc);
		if (w->posted < w->load->cnt)
			post(w);
	}
}

static bool all_done(void *arg)
{
	struct world *w = arg;

	return w->done == w->load->cnt;
}

static struct sim_attr network(const struct load *l, const char *name, uint64_t number)
{
	struct sim_attr sa = sim_defaults(name, number);

	sa.seed = number + 1;
	sa.window = 512;
	sa.ackreq_every = 32;
	sa.link.loss = 1 * PERCENT;
	if (!l->losses_only) {
		sa.link.reorder = 2 * PERCENT;
		sa.link.reorder_ns = SIM_US(10);
		sa.link.dup = 1 * PERCENT;
	}
	if (l->guest) {
		sa.link.delay_ns = SIM_US(150);
		sa.link.jitter_ns = SIM_US(150);
		sa.link.reorder_ns = SIM_US(100);
	}
	return sa;
}

static void run(const struct load *l, enum ur_mode mode, uint64_t number, struct totals *t)
{
	struct world *w = calloc(1, sizeof(*w));
	char test[40], name[96];
	struct sim_attr sa;
	struct sim_qp_attr qa;
	const struct ur_counters *c;
	struct rxe_peer_attr xa = {
		.qpn = ur_qpn(0x11),
		.psn = 0x800000,
		.dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.service_ns = l->guest ? SIM_US(25) : SIM_US(1),
		.stall = l->guest ? 65536 / 400 : 0,
		.stall_ns = SIM_MS(3),
	};
	uint64_t from_ns;

	snprintf(test, sizeof(test), "rxe_%s", l->name);
	snprintf(name, sizeof(name), "%s", sim_mode_case(mode, test));
	sa = network(l, name, number);
	w->load = l;
	w->s = sim_new(&sa);
	w->rng.state = number;
	rxe_peer_init(&w->peer, &w->s->ep[1], &xa, (size_t)(2 * SLOTS + 1) * SLOT);
	w->peer.received = received;
	w->peer.arg = w;
	for (unsigned i = 0; i < SLOTS; i++)
		rxe_peer_post_recv(&w->peer, remote(w, SLOTS + i), SLOT);
	sim_cq_init(&w->cq, 2 * SLOTS);
	sim_mr_init(&w->mr, &w->s->ep[0], (size_t)SLOTS * SLOT, SIM_ACCESS_ALL);
	qa = sim_qp_defaults(&w->cq, &w->cq);
	qa.mtu = l->mtu;
	qa.mode = mode;
	qa.rd_atomic = 16;
	qa.psn = 0xffff00;
	sim_qp_create(&w->qp, &w->s->ep[0], &qa);
	rxe_peer_connect(&w->peer, &w->qp);
	from_ns = w->s->now_ns;
	for (unsigned i = 0; i < l->depth; i++)
		post(w);
	w->s->after = poll;
	w->s->after_arg = w;
	sim_must_run(w->s, all_done, w, LIMIT_NS);
	SIM_CHECK(w->s, w->arrived == w->sends, "%u of %u messages", w->arrived, w->sends);
	c = sim_counters(&w->s->ep[0]);
	t->ns += w->s->now_ns - from_ns;
	t->packets += w->s->ep[0].tx_frames + w->s->ep[1].tx_frames;
	t->lost += w->s->ep[0].lost_frames + w->s->ep[1].lost_frames;
	t->resent += c->retransmitted_packets;
	t->timeouts += c->local_ack_timeout_err;
	t->rto += c->rto;
	t->probes += c->probes_sent;
	sim_qp_destroy(&w->qp);
	rxe_peer_free(&w->peer);
	sim_mr_free(&w->mr);
	sim_cq_free(&w->cq);
	sim_free(w->s);
	free(w);
}

static void through(const struct load *l, enum ur_mode mode)
{
	struct totals t = {0};
	const char *runs = getenv("UROCE_SIM_RUNS");
	char test[40];
	uint64_t number;

	snprintf(test, sizeof(test), "rxe_%s", l->name);
	if (sim_replaying()) {
		if (sim_replay(sim_mode_case(mode, test), &number))
			run(l, mode, number, &t);
		return;
	}
	for (unsigned i = 0; i < (runs ? strtoul(runs, NULL, 0) : RUNS); i++)
		run(l, mode, i, &t);
	if (runs)
		fprintf(stderr,
			"%-28s %8.1f ms, %6lu packets, %5lu lost, %6lu resent (%.1f), %lu "
			"timeouts, %lu "
			"rto, "
			"%lu probes\n",
			sim_mode_case(mode, test), (double)t.ns / 1e6 / RUNS, t.packets, t.lost,
			t.resent, (double)t.resent / (double)t.lost, t.timeouts, t.rto, t.probes);
	cr_expect(20 * (t.timeouts + t.rto) <= t.lost, "%s: %lu timeouts, %lu lost", l->name,
		  t.timeouts + t.rto, t.lost);
	cr_expect(t.resent <= 6 * t.lost, "%s: %lu resent, %lu lost", l->name, t.resent, t.lost);
}

Test(rxe, go_back_n_recovers_from_losses_of_another_stack)
{
	for (unsigned i = 0; i < LOADS; i++)
		through(&loads[i], UR_MODE_GBN);
}

Test(rxe, reorder_recovers_from_losses_of_another_stack)
{
	for (unsigned i = 0; i < LOADS; i++)
		through(&loads[i], UR_MODE_REORDER);
}
