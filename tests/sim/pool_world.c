/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool_world.h"

#include <stdlib.h>

#include "transport/admission.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

#define SERVICE_NS SIM_US(20)
#define MSG_BYTES  64u
#define DEPTH	   2u

static struct ur_adm_pool *pool_of(struct pool_world *w)
{
	return &w->srq.srq.adm;
}

/* ---- messages ---- */

void pool_post_receive(struct pool_world *w, uint64_t slot)
{
	struct ibv_sge sge = sim_sge(&w->mr[POOL_HOST], (size_t)slot * MSG_BYTES, MSG_BYTES);
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	SIM_CHECK(w->s, sim_post_srq(&w->srq, &wr) == 0, "a receive is not taken");
	sim_kick(&w->s->ep[POOL_HOST]);
}

static void service_over(struct sim *s, void *arg)
{
	struct pool_world *w = arg;

	pool_post_receive(w, w->slot[w->slot_head++ % POOL_RECEIVES]);
	if (--w->busy)
		sim_call_at(s, s->now_ns + SERVICE_NS, service_over, w);
}

static void content(uint8_t *at, unsigned sender, unsigned n)
{
	sim_pattern(at, MSG_BYTES, (uint64_t)sender << 32 | n);
}

static void send_one(struct pool_world *w, unsigned i)
{
	struct pool_sender *s = &w->snd[i];
	size_t at = ((size_t)i * POOL_MESSAGES + s->posted % POOL_MESSAGES) * MSG_BYTES;
	struct ibv_sge sge = sim_sge(&w->mr[i % POOL_PEERS], at, MSG_BYTES);
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};

	content(w->mr[i % POOL_PEERS].p + at, i, s->posted++);
	SIM_CHECK(w->s, sim_post_send(&s->req, &wr) == 0, "a message is not taken");
}

/* Posts the next messages of the sender, up to DEPTH at a time. */
static void go_on(struct pool_world *w, unsigned i)
{
	while (w->snd[i].posted < w->snd[i].wanted && w->snd[i].posted - w->snd[i].done < DEPTH)
		send_one(w, i);
}

static void arrived(struct pool_world *w, const struct ibv_wc *wc)
{
	uint8_t want[MSG_BYTES];
	unsigned i = 0;

	SIM_CHECK(w->s, wc->status == IBV_WC_SUCCESS, "a receive fails: %d", wc->status);
	while (w->snd[i].rsp.qpn.v != wc->qp_num)
		SIM_CHECK(w->s, ++i < w->senders, "a message of no sender");
	content(want, i, w->snd[i].served++);
	SIM_CHECK(w->s, memcmp(want, w->mr[POOL_HOST].p + wc->wr_id * MSG_BYTES, MSG_BYTES) == 0,
		  "sender %u: message %u is another, or there twice", i, w->snd[i].served - 1);
	w->log = sim_mix(w->log ^ w->s->now_ns << 8 ^ i);
	if (w->by_hand)
		return;
	w->slot[w->slot_tail++ % POOL_RECEIVES] = wc->wr_id;
	if (!w->busy++)
		sim_call_at(w->s, w->s->now_ns + SERVICE_NS, service_over, w);
}

static void completed(struct pool_world *w, const struct ibv_wc *wc)
{
	struct pool_sender *s = &w->snd[wc->wr_id];
	uint64_t wait = w->s->now_ns - s->since_ns;

	SIM_CHECK(w->s, wc->status == IBV_WC_SUCCESS, "sender %u fails: %d", (unsigned)wc->wr_id,
		  wc->status);
	SIM_CHECK(w->s, s->done++ < s->served, "sender %u: done and not served",
		  (unsigned)wc->wr_id);
	w->worst_ns = wait > w->worst_ns ? wait : w->worst_ns;
	s->since_ns = w->s->now_ns;
	go_on(w, (unsigned)wc->wr_id);
}

/* ADM-SST-01: while an entry is valid, its generation never decreases. */
static void check_entry(struct pool_world *w, unsigned peer)
{
	const struct ur_sst_entry *e = w->snd[peer].req.qp->adm.entry;

	if (!e)
		return;
	SIM_CHECK(w->s,
		  !w->heard_ns[peer] ||
			  (int16_t)(uint16_t)(e->generation - w->generation[peer]) >= 0 ||
			  w->s->now_ns - w->heard_ns[peer] >= POOL_STATUS_NS,
		  "endpoint %u: generation %u after %u", peer, e->generation, w->generation[peer]);
	w->generation[peer] = e->generation;
	w->heard_ns[peer] = e->known ? e->updated_ns : 0;
}

static void after(struct sim *s, void *arg)
{
	struct pool_world *w = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&w->recv.cq, 1, &wc) == 1)
		arrived(w, &wc);
	for (unsigned p = 0; p < POOL_PEERS; p++)
		while (ur_cq_poll(&w->cq[p].cq, 1, &wc) == 1)
			completed(w, &wc);
	ur_adm_pool_validate(pool_of(w));
	for (unsigned p = 0; p < POOL_PEERS && p < w->senders; p++)
		check_entry(w, p);
	if (w->each)
		w->each(w);
}

/* ADM-PAPER-02, ADM-PAPER-03. By what its sender knows, the request is accepted while there is room. */
void pool_check_request(struct pool_world *w, const struct sim_ep *from, const struct ur_packet *p,
			bool repeats)
{
	unsigned claim = (p->xth.flags & UR_XTH_CLAIM) >> UR_XTH_CLAIM_SHIFT, i = 0;
	const struct ur_sst_entry *e;
	const struct ur_adm_qp *q;
	uint16_t held_for;

	if (!(p->op & UR_OP_XTH) || (p->op & UR_OP_PROBE))
		return;
	/* Without a class it was lost, or dropped because it followed a refused one: none of the rules. */
	if (p->xth.flags & UR_XTH_RETRY && !(claim && repeats))
		return;
	while (w->snd[i].rsp.qpn.v != p->bth.dqpn.v)
		SIM_CHECK(w->s, ++i < w->senders, "a request to no queue pair");
	SIM_CHECK(w->s, from == w->snd[i].req.ep, "a request of another endpoint");
	q = &w->snd[i].req.qp->adm;
	e = q->entry;
	w->requests++;
	if (!e->known || w->s->now_ns - e->updated_ns >= e->life_ns || !(e->status & 1))
		return;
	held_for = (uint16_t)(e->generation - q->waiter.generation);
	if (claim == (e->status + 1u) / 2)
		return;
	w->overdue++;
	SIM_CHECK(w->s, held_for >= 4 && !(claim && repeats),
		  "sender %u sends with class %u in status %u, after %u changes", i, claim,
		  e->status, held_for);
}

bool pool_all_done(void *arg)
{
	const struct pool_world *w = arg;

	for (unsigned i = 0; i < w->senders; i++)
		if (w->snd[i].done < w->snd[i].wanted)
			return false;
	return true;
}

/* ---- set-up ---- */

struct pool_world *pool_world_new(const char *name, uint64_t seed, enum ur_adm_mode mode,
				  unsigned senders, uint8_t rnr_retry)
{
	const struct ur_adm_attr adm = {
		.mode = mode,
		.fallback_ns = SIM_MS(4),
		.grant_life_ns = SIM_US(200),
		.refusal_life_ns = SIM_MS(30),
		.status_ns = POOL_STATUS_NS,
	};
	struct pool_world *w = calloc(1, sizeof(*w));
	struct sim_attr sa = sim_defaults(name, seed);
	bool plain = mode == UR_ADM_PLAIN;

	if (!w)
		abort();
	w->senders = senders;
	w->rng.state = sim_mix(seed + 77);
	sa.eps = POOL_PEERS + 1;
	sa.admission = &adm;
	sa.contexts = POOL_SENDERS;
	w->s = sim_new(&sa);
	sim_cq_init(&w->recv, 64);
	sim_srq_init(&w->srq, 2 * POOL_RECEIVES, 1);
	w->srq.srq.pool = POOL_NAME;
	for (unsigned p = 0; p <= POOL_PEERS; p++)
		sim_mr_init(&w->mr[p], &w->s->ep[p], POOL_SENDERS * POOL_MESSAGES * MSG_BYTES,
			    SIM_ACCESS_ALL);
	for (unsigned p = 0; p < POOL_PEERS; p++)
		sim_cq_init(&w->cq[p], 64);
	for (unsigned i = 0; i < senders; i++) {
		struct sim_qp_attr qa =
			sim_qp_defaults(&w->cq[i % POOL_PEERS], &w->cq[i % POOL_PEERS]);

		qa.mode = UR_MODE_EXTENDED;
		qa.min_rnr_timer = 1; /* 10 us */
		qa.timeout = 11;      /* 8.4 ms: old echoes make the RTO long */
		qa.rnr_retry = plain ? 7 : rnr_retry;
		qa.agreed = (struct ur_adm_agreed){.receives_status = !plain,
						   .notifies = mode >= UR_ADM_INTELLIGENT,
						   .paper = mode == UR_ADM_PAPER,
						   .pool = POOL_NAME};
		sim_qp_create(&w->snd[i].req, &w->s->ep[i % POOL_PEERS], &qa);
		qa.send_cq = qa.recv_cq = &w->recv;
		qa.srq = &w->srq;
		qa.agreed = (struct ur_adm_agreed){.sends_status = !plain};
		sim_qp_create(&w->snd[i].rsp, &w->s->ep[POOL_HOST], &qa);
		sim_qp_connect(&w->snd[i].req, &w->snd[i].rsp);
		w->snd[i].since_ns = w->s->now_ns;
	}
	w->s->after = after;
	w->s->after_arg = w->s->hook_arg = w;
	return w;
}

void pool_world_run(struct pool_world *w)
{
	pool_world_run_few(w, POOL_MESSAGES);
}

void pool_world_run_few(struct pool_world *w, unsigned messages)
{
	for (unsigned k = 0; k < POOL_RECEIVES; k++)
		pool_post_receive(w, k);
	for (unsigned i = 0; i < w->senders; i++) {
		w->snd[i].wanted = messages;
		go_on(w, i);
	}
	sim_must_run(w->s, pool_all_done, w, POOL_LIMIT_NS);
}

void pool_world_free(struct pool_world *w)
{
	sim_sleep(w->s, SIM_MS(100));
	SIM_CHECK(w->s,
		  !pool_of(w)->refused[UR_ADM_CLASS_A] && !pool_of(w)->refused[UR_ADM_CLASS_B],
		  "a refusal is left in the pool");
	for (unsigned i = 0; i < w->senders; i++) {
		const struct ur_adm_qp *adm = &w->snd[i].req.qp->adm;

		SIM_CHECK(w->s, !adm->queue_class && !adm->waiter.waits,
			  "sender %u: a queue class is left", i);
		SIM_CHECK(w->s, w->snd[i].served == w->snd[i].posted, "sender %u: %u of %u served",
			  i, w->snd[i].served, w->snd[i].posted);
		sim_qp_destroy(&w->snd[i].req);
		sim_qp_destroy(&w->snd[i].rsp);
	}
	for (unsigned p = 0; p < POOL_PEERS; p++) {
		SIM_CHECK(w->s, ur_engine_core(w->s->ep[p].engine)->adm.sst.used == 0,
			  "endpoint %u: an entry is left", p);
		sim_cq_free(&w->cq[p]);
	}
	for (unsigned p = 0; p <= POOL_PEERS; p++)
		sim_mr_free(&w->mr[p]);
	sim_cq_free(&w->recv);
	sim_srq_free(&w->srq);
	sim_free(w->s);
	free(w);
}

void pool_want(struct pool_world *w, unsigned i)
{
	w->snd[i].wanted++;
	w->snd[i].since_ns = w->s->now_ns;
	go_on(w, i);
}

/* ---- forged packets ---- */

enum ur_drop forged_in(struct sim_ep *to, struct ur_packet p)
{
	uint8_t frame[512];
	uint32_t sum = 0;
	size_t len;

	p.op = ur_op_flags(p.bth.opcode);
	p.udp_len = (uint16_t)(UR_UDP_BYTES + UR_BTH_BYTES + ur_opcodes[p.bth.opcode].ext_bytes +
			       p.payload_len + UR_ICRC_BYTES);
	p.ip.len = (uint16_t)(p.udp_len + (p.ip.v6 ? 0 : UR_IPV4_BYTES));
	len = ur_packet_encode(&p, frame, sizeof(frame));
	SIM_CHECK(to->sim, len, "a forged packet is too long");
	for (unsigned i = 0; !p.ip.v6 && i < UR_IPV4_BYTES; i += 2)
		sum += ur_load16(frame + UR_ETH_BYTES + i);
	sum = (sum & 0xffff) + (sum >> 16);
	if (!p.ip.v6)
		ur_store16(frame + UR_ETH_BYTES + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
	ur_icrc_append(frame + UR_ETH_BYTES, len - UR_ETH_BYTES - UR_ICRC_BYTES, p.ip.v6);
	SIM_CHECK(to->sim,
		  ur_packet_decode(frame, len, &p) == UR_DROP_NONE && ur_icrc_ok(frame, &p),
		  "a forged packet is malformed");
	return ur_engine_input(to->engine, &p, to->sim->now_ns);
}

struct ur_packet forged_word(const struct sim_qp *to, uint8_t opcode, struct ur_asth asth)
{
	const struct ur_selective *psn = &to->qp->xreq.psn;

	return (struct ur_packet){
		.ip = {.ttl = 64, .src = to->peer->ep->gid4, .dst = to->ep->gid4},
		.sport = 0xc001,
		.dport = UR_ROCE_UDP_PORT,
		.bth = {.opcode = opcode, .pkey = 0xffff, .dqpn = to->qpn, .psn = psn->una},
		.aeth = {.syndrome = 0x1f},
		.xaeth = {.epsn = psn->una},
		.asth = asth,
		.pool = POOL_NAME,
	};
}

/* The state of a sender that a status could change. */
struct known {
	struct ur_qp qp;
	struct ur_sst_entry entry;
	uint64_t rx_packets, notifies, woken, acks;
};

static void look(const struct sim_qp *q, struct known *k)
{
	const struct ur_counters *cnt = sim_counters(q->ep);

	memset(k, 0, sizeof(*k));
	memcpy(&k->qp, q->qp, sizeof(k->qp));
	if (q->qp->adm.entry)
		memcpy(&k->entry, q->qp->adm.entry, sizeof(k->entry));
	k->rx_packets = cnt->rx_packets;
	k->notifies = cnt->adm_notifies_received;
	k->woken = cnt->adm_woken;
	k->acks = cnt->acks_received;
}

void forged_is_dropped(const struct sim_qp *q, struct sim_ep *to, const struct ur_packet *p,
		       enum ur_drop want, const char *what)
{
	uint64_t drops = sim_counters(to)->drops[want];
	struct known before, now;
	enum ur_drop drop;

	look(q, &before);
	drop = forged_in(to, *p);
	look(q, &now);
	SIM_CHECK(to->sim, drop == want && sim_counters(to)->drops[want] == drops + 1,
		  "%s: \"%s\" instead of \"%s\"", what, ur_drop_text(drop), ur_drop_text(want));
	SIM_CHECK(to->sim, memcmp(&before, &now, sizeof(now)) == 0, "%s changed something", what);
}
