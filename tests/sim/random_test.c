/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "modes.h"
#include "oracle.h"
#include "script.h"

/*
 * Seeded runs: a number determines the network, the QPs and the requests. Each test has its own
 * kind of network and runs in each mode. UROCE_SIM_RUNS sets the number of seeds.
 */
#define RUNS	   1000
#define PAIRS_MAX  3
#define OPS_MAX	   60
#define LIMIT_NS   SIM_MS(120000)
#define PERCENT(n) ((n)*65536u / 100)

enum network { CLEAN, LOSSY, ROUGH, SHUFFLED, UNRELIABLE, BURSTY };

struct world {
	struct sim *s;
	struct sim_rng rng;
	enum network network;
	enum ibv_qp_type type;
	enum ur_mode mode;
	struct sim_oracle oracle;
	struct sim_cq cq[SIM_EP_MAX];
	struct sim_srq srq[SIM_EP_MAX];
	struct sim_recvq srq_rq[SIM_EP_MAX];
	bool has_srq[SIM_EP_MAX];
	struct sim_recvq rq[2 * PAIRS_MAX];
	struct sim_qp qp[2 * PAIRS_MAX];
	unsigned pairs;
	uint32_t max_len;
	unsigned depth;
};

static unsigned pick(struct sim_rng *r, const unsigned *from, unsigned n)
{
	return from[sim_below(r, n)];
}

/* ---- the network ---- */

static struct sim_link_attr draw_link(struct sim_rng *r, enum network network)
{
	static const unsigned gbps[] = {0, 1, 10, 100};
	struct sim_link_attr link = {
		.bits_per_s = pick(r, gbps, 4) * 1000000000ull,
		.delay_ns = sim_between(r, 100, 20000),
		.jitter_ns = sim_below(r, 2) ? sim_below(r, 5000) : 0,
		.ecn = sim_below(r, 4) ? 0 : PERCENT(5),
	};

	if (network == CLEAN)
		return link;
	if (network == BURSTY) {
		link.loss = sim_below(r, 2) ? PERCENT(1) : 0;
		link.burst = sim_between(r, 65, 655); /* 0.1 to 1 % */
		link.burst_end = 65536 / sim_between(r, 2, 12);
		link.burst_loss = PERCENT(sim_below(r, 2) ? 100 : 50);
		return link;
	}
	if (network == SHUFFLED) {
		link.reorder = PERCENT(sim_between(r, 1, 50));
		link.reorder_ns = link.delay_ns;
		return link;
	}
	/* No reordering for UC, which would take a late packet for a new message. */
	link.loss = sim_below(r, 4) ? PERCENT(sim_between(r, 1, 6)) : 0;
	link.corrupt = sim_below(r, 2) ? PERCENT(sim_between(r, 1, 2)) : 0;
	if (network == UNRELIABLE)
		return link;
	link.dup = sim_below(r, 2) ? PERCENT(sim_between(r, 1, 10)) : 0;
	if (network != LOSSY) {
		link.reorder = PERCENT(sim_between(r, 1, 15));
		link.reorder_ns = sim_between(r, 1000, 200000);
	}
	return link;
}

/* From none to enough, in slabs that hold the smallest tiers or all of them. */
static void draw_loss_memory(struct sim_attr *attr, uint64_t seed)
{
	static const unsigned bytes[] = {1024, 4096, 16384, 49152};
	struct sim_rng r = {sim_mix(seed)};

	attr->loss.slabs = sim_below(&r, 6);
	attr->loss.max = attr->loss.slabs + (sim_below(&r, 2) ? sim_below(&r, 6) : 0);
	attr->loss.bytes = pick(&r, bytes, 4);
	attr->loss.first = sim_below(&r, 2) ? 16 : 64;
}

static struct sim_attr draw_attr(struct sim_rng *r, const char *name, uint64_t seed,
				 enum network network)
{
	static const unsigned windows[] = {4, 8, 16, 64, 128, 1024};
	static const unsigned caps[] = {1, 2, 8, 32};
	struct sim_attr attr = sim_defaults(name, seed);

	attr.eps = sim_below(r, 4) ? 2 : 3;
	attr.window = pick(r, windows, 6);
	if (network != CLEAN && network != SHUFFLED && sim_below(r, 3) == 0) {
		attr.contexts = sim_below(r, 3); /* so that pools run out */
		draw_loss_memory(&attr, seed);
		attr.reorder_slots = sim_below(r, 20);
	}
	attr.ackreq_every = sim_between(r, 1, attr.window);
	attr.turn_delay_ns = sim_below(r, 3) ? sim_below(r, 3000) : 0;
	attr.tx_cap = pick(r, caps, 4);
	attr.link = draw_link(r, network);
	return attr;
}

/* ---- QPs ---- */

static struct sim_qp_attr draw_qp(struct world *w, unsigned ep)
{
	static const unsigned rd[] = {1, 2, 4, 16, 128};
	struct sim_rng *r = &w->rng;
	struct sim_qp_attr attr = sim_qp_defaults(&w->cq[ep], &w->cq[ep]);

	attr.type = w->type;
	attr.mode = w->type == IBV_QPT_RC ? w->mode : UR_MODE_GBN;
	attr.cap.max_send_wr = w->depth;
	attr.cap.max_recv_wr = sim_below(r, 3) ? 16 : sim_between(r, 1, 4);
	attr.cap.max_send_sge = sim_between(r, 1, 4);
	attr.cap.max_recv_sge = sim_between(r, 1, 4);
	attr.cap.max_inline_data = sim_below(r, 2) ? 0 : sim_between(r, 1, 300);
	attr.sig_all = sim_below(r, 4) == 0;
	attr.psn = sim_below(r, 2) ? 0xffffff - sim_below(r, 40) : (uint32_t)sim_rand(r) & 0xffffff;
	/* An additional draw would change all other cases. */
	if (attr.mode == UR_MODE_EXTENDED)
		attr.paths = (const uint8_t[]){0, 2, 5, UR_SPRAY_MAX}[attr.psn & 3];
	attr.timeout = (uint8_t)sim_between(r, 11, 14);
	if (w->network == CLEAN || w->network == SHUFFLED) { /* nothing ever needs to be repeated */
		attr.cap.max_recv_wr = w->depth;
		attr.timeout = 16;
	}
	attr.min_rnr_timer = (uint8_t)sim_between(r, 1, 16);
	attr.dest_rd_atomic = (uint8_t)pick(r, rd, 5);
	return attr;
}

static void make_srq(struct world *w, struct sim_qp *any)
{
	unsigned ep = any->ep->idx;

	sim_recvq_init(&w->srq_rq[ep], w->s, w->oracle.rq_cnt, any, &w->srq[ep], 12, w->max_len, 3);
	sim_oracle_add_recvq(&w->oracle, &w->srq_rq[ep]);
}

/* The receive queue of the QP: its own or the endpoint's SRQ. */
static struct sim_recvq *make_rq(struct world *w, unsigned qp_idx)
{
	struct sim_qp *qp = &w->qp[qp_idx];
	struct sim_recvq *q = &w->rq[qp_idx];

	if (qp->attr.srq) {
		if (!w->srq_rq[qp->ep->idx].s)
			make_srq(w, qp);
		q = &w->srq_rq[qp->ep->idx];
	} else {
		sim_recvq_init(q, w->s, w->oracle.rq_cnt, qp, NULL, qp->attr.cap.max_recv_wr,
			       w->max_len, qp->attr.cap.max_recv_sge);
		sim_oracle_add_recvq(&w->oracle, q);
	}
	q->loose = w->type == IBV_QPT_UC;
	if (w->network != CLEAN && w->network != SHUFFLED && sim_below(&w->rng, 3) == 0) {
		q->starve = PERCENT(20);
		q->starve_ns = SIM_US(sim_between(&w->rng, 1, 3000));
	}
	return q;
}

/* ---- what is posted ---- */

static uint32_t draw_len(struct sim_rng *r, uint32_t mtu, uint32_t max)
{
	uint32_t len;

	switch (sim_below(r, 5)) {
	case 0:
		len = sim_below(r, 20);
		break;
	case 1:
		len = mtu * sim_below(r, 6) + sim_below(r, 3) - 1;
		break;
	default:
		len = sim_below(r, max + 1);
	}
	return len > max ? max : len;
}

static enum ibv_wr_opcode draw_opcode(struct sim_rng *r, enum ibv_qp_type type)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND,
						 IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_SEND_WITH_INV,
						 IBV_WR_LOCAL_INV,
						 IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_CMP_AND_SWP,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};

	return ops[sim_below(r, type == IBV_QPT_RC ? 10 : 4)];
}

static void fill_flow(struct world *w, struct sim_flow *f)
{
	struct sim_rng *r = &w->rng;
	uint32_t mtu = 128u << f->req->attr.mtu, inl = f->req->attr.cap.max_inline_data;
	unsigned cnt = sim_between(r, 1, OPS_MAX);

	f->overlap = sim_below(r, 3) == 0;
	for (unsigned i = 0; i < cnt; i++) {
		struct sim_op op = {.opcode = draw_opcode(r, w->type)};

		op.len = op.opcode == IBV_WR_LOCAL_INV ? 0 : draw_len(r, mtu, w->max_len);
		if (op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		    op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			op.len = 8;
		else if (op.len <= inl && op.opcode != IBV_WR_RDMA_READ &&
			 op.opcode != IBV_WR_LOCAL_INV && sim_below(r, 2))
			op.flags |= IBV_SEND_INLINE;
		op.flags |= sim_below(r, 3) ? IBV_SEND_SIGNALED : 0;
		op.flags |= sim_below(r, 6) ? 0 : IBV_SEND_FENCE;
		op.flags |= sim_below(r, 4) ? 0 : IBV_SEND_SOLICITED;
		op.read_back = sim_below(r, 2);
		op.echo = sim_below(r, 2);
		op.word = sim_below(r, SIM_WORDS);
		op.shared_word = op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && sim_below(r, 3) == 0;
		sim_flow_add(f, op);
	}
}

/* Two QPs and traffic between them, in one direction or both. */
static void make_pair(struct world *w, unsigned idx)
{
	struct sim_rng *r = &w->rng;
	unsigned ep_a = sim_below(r, w->s->attr.eps);
	unsigned ep_b = (ep_a + sim_between(r, 1, w->s->attr.eps - 1)) % w->s->attr.eps;
	struct sim_qp_attr a = draw_qp(w, ep_a), b = draw_qp(w, ep_b);
	struct sim_qp *qa = &w->qp[2 * idx], *qb = &w->qp[2 * idx + 1];
	unsigned both = sim_below(r, 2);

	a.mtu = b.mtu = (enum ibv_mtu)sim_between(r, IBV_MTU_256, IBV_MTU_4096);
	a.v6 = b.v6 = sim_below(r, 2);
	a.vlan = b.vlan = sim_below(r, 3) == 0;
	a.rd_atomic = b.dest_rd_atomic;
	b.rd_atomic = a.dest_rd_atomic;
	a.srq = w->has_srq[ep_a] ? &w->srq[ep_a] : NULL;
	b.srq = w->has_srq[ep_b] ? &w->srq[ep_b] : NULL;
	sim_qp_pair(qa, &w->s->ep[ep_a], &a, qb, &w->s->ep[ep_b], &b);
	fill_flow(w, sim_flow_new(&w->oracle, qa, qb, make_rq(w, 2 * idx + 1), w->depth, w->max_len,
				  a.cap.max_send_sge));
	if (both)
		fill_flow(w, sim_flow_new(&w->oracle, qb, qa, make_rq(w, 2 * idx), w->depth,
					  w->max_len, b.cap.max_send_sge));
}

/* Returns true if the network lost so much that a queue pair ran out of retries. */
static bool run_seed(enum ur_mode mode, const char *name, uint64_t seed, enum network network)
{
	static const unsigned depths[] = {1, 2, 3, 8, 32};
	struct world *w = calloc(1, sizeof(*w));
	struct sim_attr attr;
	bool died;

	cr_assert(w);
	w->rng.state = sim_mix(seed * 2 + 1) + network;
	w->network = network;
	w->mode = mode;
	w->type = network == UNRELIABLE ? IBV_QPT_UC : IBV_QPT_RC;
	w->pairs = sim_between(&w->rng, 1, PAIRS_MAX);
	w->depth = pick(&w->rng, depths, 5);
	w->max_len = w->depth > 8 ? 4000 : sim_below(&w->rng, 8) ? 9000 : 65536;
	attr = draw_attr(&w->rng, sim_mode_case(mode, name), seed, network);
	attr.max_qp = w->pairs; /* no more than necessary */
	attr.max_mr = 2048;
	w->s = sim_new(&attr);
	sim_oracle_init(&w->oracle, w->s);
	for (unsigned i = 0; i < attr.eps; i++) {
		sim_cq_init(&w->cq[i], 1024);
		sim_oracle_add_cq(&w->oracle, &w->cq[i]);
		sim_srq_init(&w->srq[i], 16, 3);
		w->has_srq[i] =
			network != CLEAN && network != SHUFFLED && sim_below(&w->rng, 4) == 0;
	}
	for (unsigned i = 0; i < w->pairs; i++)
		make_pair(w, i);
	w->oracle.clean = network == CLEAN;
	/* Nothing is lost, so a requester that distinguishes reordering from loss retransmits nothing. */
	w->oracle.lossless = network == SHUFFLED && mode == UR_MODE_EXTENDED;
	sim_oracle_run(&w->oracle, LIMIT_NS);
	died = w->oracle.died;
	for (unsigned i = 0; i < 2 * w->pairs; i++)
		sim_qp_destroy(&w->qp[i]);
	sim_oracle_free(&w->oracle);
	for (unsigned i = 0; i < attr.eps; i++) {
		sim_cq_free(&w->cq[i]);
		sim_srq_free(&w->srq[i]);
	}
	sim_free(w->s);
	free(w);
	return died;
}

/* Maximum number of seeds in which queue pairs may run out of retries. */
static uint64_t deaths_max(enum network network, uint64_t cnt)
{
	return network == BURSTY ? 1 + cnt / 100 : cnt / 1000;
}

static void run_seeds(enum ur_mode mode, const char *name, enum network network)
{
	const char *runs = getenv("UROCE_SIM_RUNS");
	uint64_t cnt = runs ? strtoull(runs, NULL, 0) : RUNS, only, ran = 0, died = 0;

	if (sim_replay(sim_mode_case(mode, name), &only)) {
		run_seed(mode, name, only, network);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t seed = 0; seed < cnt; seed += sim_stride(), ran++)
		died += run_seed(mode, name, seed, network);
	cr_assert(died <= deaths_max(network, ran), "queue pairs died in %llu of %llu seeds",
		  (unsigned long long)died, (unsigned long long)ran);
}

EACH_MODE(random, a_clean_network_needs_no_recovery)
{
	run_seeds(mode, "clean", CLEAN);
}

EACH_MODE(random, rc_survives_loss_duplication_and_corruption)
{
	run_seeds(mode, "lossy", LOSSY);
}

EACH_MODE(random, rc_survives_reordering_as_well)
{
	run_seeds(mode, "rough", ROUGH);
}

EACH_MODE(random, rc_survives_bursts_of_loss)
{
	run_seeds(mode, "bursty", BURSTY);
}

EACH_MODE(random, rc_survives_reordering_alone)
{
	run_seeds(mode, "shuffled", SHUFFLED);
}

Test(random, uc_loses_messages_whole_and_changes_none)
{
	run_seeds(UR_MODE_GBN, "unreliable", UNRELIABLE);
}
