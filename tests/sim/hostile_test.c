/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "modes.h"
#include "objects.h"
#include "script.h"
#include "wire/bytes.h"

/*
 * A malicious peer: header fields of packets in flight are changed, or changed copies are added,
 * with a correct ICRC. Requests may fail and queue pairs may die. But after every event, memory may
 * have changed only where the queue pair allows it: regions with remote write access, posted
 * receives, and targets of outstanding READs and atomics. Numbers are seeds.
 */
#define RUNS	  4000
#define LIMIT_NS  SIM_MS(60000)
#define OPS	  12 /* requests of each side */
#define RECVS	  12
#define SLOT	  1024 /* bytes between two buffers */
#define SLOT_USED 800  /* bytes of each buffer that are used */
#define RECV_WR	  1000 /* wr_ids of receives start here */
#define REFILL_NS SIM_US(40)

/* Memory that the peer must not change, except for open slots: [i * SLOT, i * SLOT + SLOT_USED). */
struct guarded {
	struct sim_mr mr;
	uint8_t *shadow;
	unsigned slots;
	bool open[OPS + RECVS];
};

struct side {
	struct sim_mr remote;	 /* the peer may read and write it */
	struct guarded readonly; /* the peer may read it */
	struct guarded local;	 /* sources of sends, targets of READs and atomics */
	struct guarded recv;
	struct sim_cq cq;
	struct sim_srq srq; /* world.pool */
	struct sim_qp qp;
	unsigned posted; /* receives */
	unsigned completed;
};

struct world {
	struct sim *s;
	struct sim_rng rng;
	struct side side[2];
	bool pool; /* receives come from a pool that the peer knows */
	unsigned lies;
	uint32_t often; /* chance of a lie, 1/65536 */
};

/* ---- memory ---- */

static void guard(struct guarded *g, struct sim_ep *ep, unsigned slots, int access)
{
	sim_mr_init(&g->mr, ep, (size_t)slots * SLOT, access);
	sim_pattern(g->mr.p, g->mr.len, g->mr.key);
	g->shadow = malloc(g->mr.len);
	cr_assert(g->shadow);
	memcpy(g->shadow, g->mr.p, g->mr.len);
	g->slots = slots;
}

static void unguard(struct guarded *g)
{
	sim_mr_free(&g->mr);
	free(g->shadow);
}

/* Returns a slot to the consumer. From now on its contents must not change. */
static void close_slot(struct guarded *g, unsigned slot)
{
	g->open[slot] = false;
	memcpy(g->shadow + (size_t)slot * SLOT, g->mr.p + (size_t)slot * SLOT, SLOT_USED);
}

static void check(struct sim *s, const struct guarded *g, const char *what)
{
	for (unsigned i = 0; i < g->slots; i++) {
		size_t off = (size_t)i * SLOT, from = g->open[i] ? SLOT_USED : 0;

		SIM_CHECK(s, memcmp(g->shadow + off + from, g->mr.p + off + from, SLOT - from) == 0,
			  "a forbidden write to %s, slot %u", what, i);
	}
	sim_mr_check_guards(s, &g->mr);
}

static void after(struct sim *s, void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;

	for (unsigned i = 0; i < 2; i++) {
		struct side *side = &w->side[i];

		while (ur_cq_poll(&side->cq.cq, 1, &wc)) {
			side->completed++;
			if (wc.wr_id >= RECV_WR)
				close_slot(&side->recv, (unsigned)wc.wr_id - RECV_WR);
			else if (side->local.open[wc.wr_id])
				close_slot(&side->local, (unsigned)wc.wr_id);
		}
		check(s, &side->readonly, "a read-only region");
		check(s, &side->local, "a local buffer");
		check(s, &side->recv, "a receive buffer");
		sim_mr_check_guards(s, &side->remote);
	}
}

/* ---- lies ---- */

static uint32_t lie_about(struct sim_rng *r, uint32_t word)
{
	switch (sim_below(r, 7)) {
	case 0:
		return word + sim_between(r, 1, 4);
	case 1:
		return word - sim_between(r, 1, 4);
	case 2:
		return (uint32_t)sim_rand(r);
	case 3:
		return 0;
	case 4:
		return UINT32_MAX;
	case 5:
		return word ^ 1u << sim_below(r, 32);
	default: /* far ahead in a field of 24 bits */
		return (word & 0xff000000) | ((word + sim_below(r, 4096)) & 0xffffff);
	}
}

/* Changes a RETH or AtomicETH to another place, with a valid key. */
static void redirect(struct world *w, struct side *victim, uint8_t *frame,
		     const struct ur_packet *p)
{
	const struct sim_mr *to[] = {&victim->readonly.mr, &victim->local.mr, &victim->recv.mr,
				     &victim->remote};
	const struct sim_mr *mr = to[sim_below(&w->rng, 4)];
	uint8_t *at = frame + p->bth_off + UR_BTH_BYTES + (p->op & UR_OP_XTH ? UR_XTH_BYTES : 0);
	uint64_t addr = (uintptr_t)mr->p + sim_below(&w->rng, (uint32_t)mr->len + 64);

	ur_store32(at, (uint32_t)(addr >> 32));
	ur_store32(at + 4, (uint32_t)addr);
	if (sim_below(&w->rng, 2))
		ur_store32(at + 8, mr->key);
}

static void lie(struct world *w, struct side *victim, uint8_t *frame, const struct ur_packet *p)
{
	struct sim_rng *r = &w->rng;
	unsigned hdr = p->bth_off + UR_BTH_BYTES, end = p->payload_off;

	if (p->op & UR_OP_ACK) /* the bitmap lies too */
		end += p->payload_len;
	for (unsigned n = sim_between(r, 1, 3); n; n--) {
		switch (sim_below(r, 6)) {
		case 0: { /* PSN */
			uint8_t *at = frame + p->bth_off + 8;

			ur_store32(at, lie_about(r, ur_load32(at)));
			break;
		}
		case 1: /* another opcode with headers of the same length */
			frame[p->bth_off] ^= (uint8_t)(1u << sim_below(r, 5));
			break;
		case 2:
			if (p->op & (UR_OP_RETH | UR_OP_ATOMICETH)) {
				redirect(w, victim, frame, p);
				break;
			}
			/* fall through */
		default:
			if (end >= hdr + 4) {
				uint8_t *at = frame + hdr + sim_below(r, (end - hdr) / 4) * 4;

				ur_store32(at, lie_about(r, ur_load32(at)));
			}
		}
	}
	sim_reseal(frame, p);
	w->lies++;
}

static enum sim_verdict tamper(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			       const struct ur_packet *p)
{
	struct world *w = s->hook_arg;
	struct side *victim = &w->side[!from->idx];
	uint8_t copy[1024];

	SIM_CHECK(s, len <= sizeof(copy), "a frame of %u bytes", len);
	if (!sim_chance(&w->rng, w->often))
		return sim_below(&w->rng, 12) ? SIM_PASS : SIM_DROP;
	if (sim_below(&w->rng, 2)) {
		lie(w, victim, frame, p);
		return SIM_PASS;
	}
	memcpy(copy, frame, len);
	lie(w, victim, copy, p);
	sim_inject_at(victim->qp.ep, s->now_ns + sim_below(&w->rng, 30000), copy, len);
	return SIM_PASS;
}

/* ---- old answers ---- */

/* Repeats every answer eight times, 5 to 40 ms later. */
static enum sim_verdict repeat_answers(struct sim *s, struct sim_ep *from, uint8_t *frame,
				       uint32_t len, const struct ur_packet *p)
{
	struct world *w = s->hook_arg;

	for (unsigned i = 1; (p->op & UR_OP_RESPONSE) && i <= 8; i++)
		sim_inject_at(w->side[!from->idx].qp.ep, s->now_ns + i * SIM_MS(5), frame, len);
	return SIM_PASS;
}

/* ---- the exchange ---- */

static void make_side(struct world *w, unsigned i, enum ur_mode mode)
{
	struct sim_ep *ep = &w->s->ep[i];
	struct side *side = &w->side[i];
	struct sim_qp_attr qa;

	sim_mr_init(&side->remote, ep, 4096, SIM_ACCESS_ALL);
	guard(&side->readonly, ep, 2, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	guard(&side->local, ep, OPS, IBV_ACCESS_LOCAL_WRITE);
	guard(&side->recv, ep, RECVS, IBV_ACCESS_LOCAL_WRITE);
	sim_cq_init(&side->cq, 64);
	qa = sim_qp_defaults(&side->cq, &side->cq);
	qa.mode = mode;
	qa.strict = sim_below(&w->rng, 4) == 0;
	qa.mtu = IBV_MTU_256;
	qa.timeout = 8;
	qa.retry_cnt = 3;
	qa.rnr_retry = 3;
	qa.psn = 0xfffffa;
	if (w->pool) {
		sim_srq_init(&side->srq, RECVS, 1);
		side->srq.srq.pool = i;
		qa.srq = &side->srq;
		qa.agreed = (struct ur_adm_agreed){.sends_status = true,
						   .receives_status = true,
						   .notifies = true,
						   .pool = !i};
	}
	sim_qp_create(&side->qp, ep, &qa);
}

static void post_requests(struct world *w, struct side *side, const struct side *peer)
{
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	      IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < OPS; i++) {
		enum ibv_wr_opcode code = codes[sim_below(&w->rng, 6)];
		bool atomic = code == IBV_WR_ATOMIC_FETCH_AND_ADD;
		struct ibv_sge sge = sim_sge(&side->local.mr, (size_t)i * SLOT,
					     atomic ? 8 : sim_between(&w->rng, 1, SLOT_USED));
		struct ibv_send_wr wr = {.wr_id = i,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = code,
					 .send_flags = IBV_SEND_SIGNALED};
		uint64_t addr = (uintptr_t)peer->remote.p + sim_below(&w->rng, 400) * 8;

		if (atomic) {
			wr.wr.atomic.remote_addr = addr;
			wr.wr.atomic.rkey = peer->remote.key;
		} else {
			wr.wr.rdma.remote_addr = addr;
			wr.wr.rdma.rkey = peer->remote.key;
		}
		side->local.open[i] = atomic || code == IBV_WR_RDMA_READ;
		SIM_CHECK(w->s, sim_post_send(&side->qp, &wr) == 0, "cannot post");
	}
}

static void post_receive(struct world *w, struct side *side)
{
	unsigned i = side->posted++;
	struct ibv_sge sge = sim_sge(&side->recv.mr, (size_t)i * SLOT, SLOT_USED);
	struct ibv_recv_wr wr = {.wr_id = RECV_WR + i, .sg_list = &sge, .num_sge = 1};

	side->recv.open[i] = true;
	SIM_CHECK(w->s,
		  (w->pool ? sim_post_srq(&side->srq, &wr) : sim_post_recv(&side->qp, &wr)) == 0,
		  "cannot post");
}

/* Posts one receive for each pool, so that requests must wait. */
static void fill_pools(struct sim *s, void *arg)
{
	struct world *w = arg;

	for (unsigned i = 0; i < 2; i++) {
		post_receive(w, &w->side[i]);
		sim_kick(&s->ep[i]);
	}
	if (w->side[0].posted < RECVS)
		sim_call_at(s, s->now_ns + REFILL_NS, fill_pools, w);
}

static struct world *begin(const char *name, enum ur_mode mode, bool pool, uint64_t seed)
{
	static const struct ur_adm_attr adm = {
		.mode = UR_ADM_INTELLIGENT,
		.fallback_ns = SIM_US(500),
		.grant_life_ns = SIM_US(100),
		.refusal_life_ns = SIM_MS(5),
		.status_ns = SIM_MS(2),
	};
	struct world *w = calloc(1, sizeof(*w));
	struct sim_attr sa = sim_defaults(name, seed);

	cr_assert(w);
	w->pool = pool;
	sa.admission = pool ? &adm : NULL;
	sa.unwatched = true;
	w->rng.state = sim_mix(seed + 1);
	w->often = 65536 / sim_between(&w->rng, 2, 20);
	w->s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++)
		make_side(w, i, mode);
	sim_qp_connect(&w->side[0].qp, &w->side[1].qp);
	w->s->hook_arg = w;
	w->s->after = after;
	w->s->after_arg = w;
	for (unsigned i = 0; i < 2; i++) {
		while (!pool && w->side[i].posted < RECVS)
			post_receive(w, &w->side[i]);
		post_requests(w, &w->side[i], &w->side[!i]);
	}
	return w;
}

static void end(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *side = &w->side[i];

		sim_qp_destroy(&side->qp);
		if (w->pool)
			sim_srq_free(&side->srq);
		unguard(&side->readonly);
		unguard(&side->local);
		unguard(&side->recv);
		sim_mr_free(&side->remote);
		sim_cq_free(&side->cq);
	}
	sim_free(w->s);
	free(w);
}

static void run(const char *name, enum ur_mode mode, bool pool, uint64_t seed)
{
	struct world *w = begin(name, mode, pool, seed);

	w->s->hook = tamper;
	if (pool) { /* a queue pair that must wait for a receive probes meanwhile */
		fill_pools(w->s, w);
		sim_sleep(w->s, SIM_MS(100));
	} else {
		SIM_CHECK(w->s, sim_run(w->s, NULL, NULL, LIMIT_NS), "no silence");
	}
	for (unsigned i = 0; i < 2; i++)
		(void)sim_qp_modify(&w->side[i].qp, IBV_QPS_ERR, 0, NULL);
	SIM_CHECK(w->s, sim_run(w->s, NULL, NULL, LIMIT_NS), "no silence at the end");
	for (unsigned i = 0; i < 2; i++) {
		unsigned left = pool ? ur_wq_cnt(&w->side[i].srq.srq.rq) : 0;

		SIM_CHECK(w->s, w->side[i].completed + left == OPS + RECVS,
			  "endpoint %u: %u of %u work requests completed", i, w->side[i].completed,
			  OPS + RECVS - left);
	}
	end(w);
}

static void run_all(const char *name, enum ur_mode mode, bool pool)
{
	uint64_t only;

	if (sim_replay(name, &only)) {
		run(name, mode, pool, only);
		return;
	}
	if (sim_replaying())
		cr_skip_test("another case is replayed");
	for (uint64_t seed = 0; seed < RUNS; seed += sim_short_stride())
		run(name, mode, pool, seed);
}

EACH_MODE(hostile, a_lying_peer_writes_only_where_it_may)
{
	run_all(sim_mode_case(mode, "hostile"), mode, false);
}

Test(hostile, a_peer_that_lies_about_a_pool_writes_only_where_it_may)
{
	run_all(sim_mode_case(UR_MODE_EXTENDED, "hostile_pool"), UR_MODE_EXTENDED, true);
}

/* EXT-SEL-RTT-02 */
Test(hostile, answers_that_come_again_lengthen_no_timeout)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		struct world *w = begin(sim_mode_case(UR_MODE_EXTENDED, "hostile_again"),
					UR_MODE_EXTENDED, false, seed);

		w->s->hook = repeat_answers;
		SIM_CHECK(w->s, sim_run(w->s, NULL, NULL, LIMIT_NS), "no silence");
		for (unsigned i = 0; i < 2; i++) {
			const struct ur_rtt *rtt = &w->side[i].qp.qp->xreq.rtt;

			SIM_CHECK(w->s, w->side[i].completed >= OPS, "endpoint %u: %u completions",
				  i, w->side[i].completed);
			SIM_CHECK(w->s, ur_rtt_rto_ns(rtt, 0) == UR_RTO_MIN_NS,
				  "endpoint %u: round trips of %u stamps, timeout of %llu ns", i,
				  rtt->srtt, (unsigned long long)ur_rtt_rto_ns(rtt, 0));
		}
		end(w);
	}
}
