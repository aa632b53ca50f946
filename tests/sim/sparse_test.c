/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include <criterion/criterion.h>

#include "objects.h"

/*
 * SCHED-SPARSE-01, with whole endpoints: one queue pair sends 8 bytes, one message at a time, beside many with long messages. How many
 * packets of the others leave between its post and its packet?
 */
#define BULK	   32	 /* queue pairs with long messages */
#define BULK_BYTES 65536 /* of a message; each queue pair has one outstanding */
#define PINGS	   60
#define TX_CAP	   4
#define TURN	   16 /* packets of 1 KB in a turn */
#define LIMIT_NS   SIM_MS(2000)
#define GBPS	   UINT64_C(1000000000)

struct load {
	struct sim *s;
	struct sim_cq cq[2];
	struct sim_mr mr[2];
	struct sim_qp req[BULK + 1], rsp[BULK + 1]; /* the last one sends 8 bytes */
	unsigned pings;
	uint64_t bulk_done;
	uint64_t posted_at, most, sum; /* packets of the sender */
};

static void post(struct load *l, unsigned i)
{
	uint32_t bytes = i == BULK ? 8 : BULK_BYTES;
	struct ibv_sge sge = sim_sge(&l->mr[0], 0, bytes);
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)l->mr[1].p, .rkey = l->mr[1].key},
	};

	if (i == BULK)
		l->posted_at = l->s->ep[0].tx_frames;
	SIM_CHECK(l->s, sim_post_send(&l->req[i], &wr) == 0, "a post fails");
}

static void poll(struct sim *s, void *arg)
{
	struct load *l = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&l->cq[0].cq, 1, &wc) == 1) {
		SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "queue pair %u: status %d",
			  (unsigned)wc.wr_id, wc.status);
		if (wc.wr_id == BULK)
			l->pings++;
		else
			l->bulk_done++;
		if (l->pings < PINGS)
			post(l, (unsigned)wc.wr_id);
	}
}

static enum sim_verdict on_frame(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				 const struct ur_packet *p)
{
	struct load *l = s->hook_arg;
	uint64_t before;

	(void)frame, (void)len;
	if (from->idx != 0 || p->bth.dqpn.v != ur_engine_qpn(l->rsp[BULK].qp).v)
		return SIM_PASS;
	before = from->tx_frames - l->posted_at;
	l->sum += before;
	/* The first one meets queue pairs that are as new. */
	if (l->pings && before > l->most)
		l->most = before;
	return SIM_PASS;
}

static bool finished(void *arg)
{
	const struct load *l = arg;

	return l->pings == PINGS;
}

static void run(struct load *l, const char *name, bool in_turn)
{
	struct sim_attr sa = sim_defaults(name, 0);
	struct ur_engine_qos qos;
	struct sim_qp_attr qa;

	ur_engine_qos_default(&qos);
	qos.sched.in_turn = in_turn;
	sa.max_qp = BULK + 1;
	sa.fast = true;
	sa.tx_cap = TX_CAP;
	sa.qos = &qos;
	*l = (struct load){.s = sim_new(&sa)};
	for (unsigned e = 0; e < 2; e++) {
		sim_cq_init(&l->cq[e], 4 * BULK);
		sim_mr_init(&l->mr[e], &l->s->ep[e], BULK_BYTES, SIM_ACCESS_ALL);
	}
	for (unsigned i = 0; i <= BULK; i++) {
		qa = sim_qp_defaults(&l->cq[0], &l->cq[0]);
		sim_qp_create(&l->req[i], &l->s->ep[0], &qa);
		qa.send_cq = qa.recv_cq = &l->cq[1];
		sim_qp_create(&l->rsp[i], &l->s->ep[1], &qa);
		sim_qp_connect(&l->req[i], &l->rsp[i]);
	}
	/* The transmit ring is short, and the rest waits in the engine. */
	l->s->ep[0].out.attr.bits_per_s = 10 * GBPS;
	l->s->hook = on_frame;
	l->s->after = poll;
	l->s->hook_arg = l->s->after_arg = l;
	for (unsigned i = 0; i <= BULK; i++)
		post(l, i);
	sim_must_run(l->s, finished, l, LIMIT_NS);
	for (unsigned i = 0; i <= BULK; i++) {
		sim_qp_destroy(&l->req[i]);
		sim_qp_destroy(&l->rsp[i]);
	}
	for (unsigned e = 0; e < 2; e++) {
		sim_mr_free(&l->mr[e]);
		sim_cq_free(&l->cq[e]);
	}
	sim_free(l->s);
}

/* The turn that is open, and what one call of output makes. */
Test(sparse, short_message_waits_for_one_turn)
{
	struct load l;

	run(&l, "sparse.first", false);
	cr_assert_leq(l.most, TURN + TX_CAP, "%" PRIu64, l.most);
	cr_assert_gt(l.bulk_done, 0u);
}

/* With all in turn it waits for those of most of the others, so the test above is about something. */
Test(sparse, with_all_in_turn_it_waits_for_a_round)
{
	struct load l;

	run(&l, "sparse.in_turn", true);
	cr_assert_gt(l.sum / PINGS, BULK * TURN / 2, "%" PRIu64, l.sum / PINGS);
}
