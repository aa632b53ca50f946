/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "objects.h"

/*
 * Goodput with loss and with reordering, in virtual time: one queue pair, 100 Gb/s, a round trip of
 * 40 us, loss in both directions. Prints JSON:
 *
 *   {"rows": [{op, mode, mtu, loss_percent, goodput_gbps, relative, retransmitted, lost, ratio,
 *              probes, rto, ack_timeouts, rnr}],
 *    "reordering": [{op, mode, mtu, reordered_percent, places, goodput_gbps, relative,
 *                    retransmitted}]}
 *
 * relative: compared with the same op, mode and mtu without loss. lost: lost packets in the
 * direction of the data, and lost READ requests. retransmitted: such packets sent again. ratio:
 * retransmitted / lost.
 */
#define GBPS	      100
#define ONE_WAY_NS    20000
#define MSG_BYTES     (256u << 10)
#define DEPTH	      32
#define WARM_NS	      SIM_MS(2)
#define REORDER_SHARE 10 /* percent */
#define PLACES	      64

/* The requirements of --assert for extended mode. EXT-RESP-CREDIT-02: SENDs keep their goodput. */
#define BAR_REORDERING 0.95
#define BAR_RESENT     1.10 /* packets sent again for each one lost */
#define FEWEST_LOST    50   /* of fewer that ratio is chance */

static const struct op {
	const char *name;
	enum ibv_wr_opcode code;
} ops[] = {{"write", IBV_WR_RDMA_WRITE}, {"send", IBV_WR_SEND}, {"read", IBV_WR_RDMA_READ}};

static const struct {
	double percent;
	double bar; /* goodput relative to no loss */
} losses[] = {{0, 0}, {0.01, 0.98}, {0.1, 0.95}, {1, 0.95}, {5, 0.80}};
static const enum ibv_mtu mtus[] = {IBV_MTU_4096, IBV_MTU_1024};
static const char *const modes[] = {
#define X(NAME, name) #name,
	UR_MODES(X)
#undef X
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct load {
	const struct op *op;
	enum ur_mode mode;
	enum ibv_mtu mtu;
	double loss_percent;
	bool reordering;
	uint64_t run_ns;
};

struct world {
	const struct load *load;
	struct sim *s;
	struct sim_cq cq[2];
	struct sim_mr mr[2];
	struct sim_qp qp[2];
	uint64_t posted, done, received;
	uint64_t newest, again; /* READ responses: the newest sent so far, those sent again */
};

struct result {
	double gbps;
	uint64_t retransmitted, lost, probes, rto, ack_timeouts, rnr;
};

static void post(struct world *w)
{
	uint64_t slot = w->posted++ % DEPTH * MSG_BYTES;
	struct ibv_sge sge = sim_sge(&w->mr[0], slot, MSG_BYTES);
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = w->load->op->code,
				 .send_flags = IBV_SEND_SIGNALED};

	if (wr.opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)w->mr[1].p + slot;
		wr.wr.rdma.rkey = w->mr[1].key;
	}
	SIM_CHECK(w->s, sim_post_send(&w->qp[0], &wr) == 0, "cannot post");
}

static void receive(struct world *w)
{
	struct ibv_sge sge = sim_sge(&w->mr[1], w->received++ % DEPTH * MSG_BYTES, MSG_BYTES);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	SIM_CHECK(w->s, sim_post_recv(&w->qp[1], &wr) == 0, "cannot post a receive");
}

static void poll(struct sim *s, void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;

	while (ur_cq_poll(&w->cq[1].cq, 1, &wc))
		receive(w);
	while (ur_cq_poll(&w->cq[0].cq, 1, &wc)) {
		SIM_CHECK(s, wc.status == IBV_WC_SUCCESS, "status %d", wc.status);
		w->done++;
		post(w);
	}
}

/* Responses are sent in order of PSN, or of SSN and offset; others are retransmissions. */
static enum sim_verdict count_responses(struct sim *s, struct sim_ep *from, uint8_t *frame,
					uint32_t len, const struct ur_packet *p)
{
	struct world *w = s->hook_arg;
	uint64_t nr;

	if (!(p->op & UR_OP_READ_RESP))
		return SIM_PASS;
	nr = p->op & UR_OP_XRTH ? (uint64_t)p->xrth.ssn << 24 | p->xrth.offset
				: (uint64_t)ur_psn_diff(p->bth.psn, ur_psn(w->qp[0].attr.psn));
	nr++;
	w->again += nr <= w->newest;
	if (nr > w->newest)
		w->newest = nr;
	return SIM_PASS;
}

static struct sim_attr network(const struct load *l)
{
	struct sim_attr sa = sim_defaults("sim_loss", 0);
	uint64_t frame_ns = (128u << l->mtu) * 8 / GBPS;

	sa.fast = true;
	sa.window = 1024;
	sa.loss.bytes = ur_engine_loss_slab_bytes(sa.window);
	sa.ackreq_every = 32;
	sa.tx_cap = 32;
	sa.contexts = 1;
	sa.reorder_slots = 1280;
	sa.link = (struct sim_link_attr){
		.bits_per_s = GBPS * 1000000000ull,
		.delay_ns = ONE_WAY_NS,
		.loss = (uint32_t)(l->loss_percent * 65536 / 100 + 0.5),
	};
	if (l->reordering) {
		sa.link.reorder = REORDER_SHARE * 65536 / 100;
		sa.link.reorder_ns = PLACES * frame_ns;
	}
	return sa;
}

static void make(struct world *w)
{
	struct sim_attr sa = network(w->load);
	struct sim_qp_attr qa[2];

	w->s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&w->cq[i], 2 * DEPTH);
		sim_mr_init(&w->mr[i], &w->s->ep[i], DEPTH * MSG_BYTES, SIM_ACCESS_ALL);
		qa[i] = sim_qp_defaults(&w->cq[i], &w->cq[i]);
		qa[i].cap.max_send_wr = qa[i].cap.max_recv_wr = DEPTH;
		qa[i].mtu = w->load->mtu;
		qa[i].mode = w->load->mode;
		qa[i].agreed.wide = ur_engine_wide(sa.window);
		qa[i].rd_atomic = qa[i].dest_rd_atomic = 64;
		qa[i].timeout = 10; /* 4.2 ms: with a longer timeout, go-back-N would only wait */
	}
	sim_qp_pair(&w->qp[0], &w->s->ep[0], &qa[0], &w->qp[1], &w->s->ep[1], &qa[1]);
}

static void drop(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		sim_qp_destroy(&w->qp[i]);
		sim_mr_free(&w->mr[i]);
		sim_cq_free(&w->cq[i]);
	}
	sim_free(w->s);
}

static struct result run(const struct load *load)
{
	struct world w = {.load = load};
	const struct ur_counters *c;
	bool reading = load->op->code == IBV_WR_RDMA_READ;
	struct result r;
	uint64_t before;

	make(&w);
	for (unsigned i = 0; i < DEPTH; i++) {
		receive(&w);
		post(&w);
	}
	if (reading) {
		w.s->hook = count_responses;
		w.s->hook_arg = &w;
	}
	w.s->after = poll;
	w.s->after_arg = &w;
	sim_sleep(w.s, WARM_NS);
	before = w.done;
	sim_sleep(w.s, load->run_ns);
	r.gbps = (double)((w.done - before) * MSG_BYTES * 8) / (double)load->run_ns;
	c = sim_counters(&w.s->ep[0]);
	r.lost = w.s->ep[reading].lost_frames;
	r.retransmitted = reading ? w.again : c->retransmitted_packets;
	r.probes = c->probes_sent;
	r.rto = c->rto;
	r.ack_timeouts = c->local_ack_timeout_err;
	r.rnr = c->rnr_nak_retry_err;
	drop(&w);
	return r;
}

/* ---- the tables ---- */

struct options {
	bool quick, check;
	const char *op, *mode; /* only this one; NULL: all */
	unsigned failed;
};

static void expect(struct options *o, const struct load *l, const char *what, double value,
		   double bar)
{
	if (!o->check || value >= bar)
		return;
	fprintf(stderr, "%s %s, mtu %u, %g %% lost: %s is %.3f, below %.3f\n", modes[l->mode],
		l->op->name, 128u << l->mtu, l->loss_percent, what, value, bar);
	o->failed++;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static void print_loss(struct options *o, struct load *l, bool *first)
{
	double clean = 0;

	for (unsigned i = 0; i < COUNT(losses); i++) {
		struct result r;

		l->loss_percent = losses[i].percent;
		l->reordering = false;
		r = run(l);
		if (i == 0)
			clean = r.gbps;
		printf("%s\n  {\"op\": \"%s\", \"mode\": \"%s\", \"mtu\": %u, \"loss_percent\": "
		       "%g, "
		       "\"goodput_gbps\": %.3f, \"relative\": %.4f, \"retransmitted\": %llu, "
		       "\"lost\": %llu, \"ratio\": %.3f, \"probes\": %llu, \"rto\": %llu, "
		       "\"ack_timeouts\": %llu, \"rnr\": %llu}",
		       *first ? "" : ",", l->op->name, modes[l->mode], 128u << l->mtu,
		       l->loss_percent, r.gbps, ratio(r.gbps, clean),
		       (unsigned long long)r.retransmitted, (unsigned long long)r.lost,
		       ratio((double)r.retransmitted, (double)r.lost), (unsigned long long)r.probes,
		       (unsigned long long)r.rto, (unsigned long long)r.ack_timeouts,
		       (unsigned long long)r.rnr);
		fflush(stdout);
		*first = false;
		if (l->mode != UR_MODE_EXTENDED || i == 0)
			continue;
		expect(o, l, "goodput", ratio(r.gbps, clean), losses[i].bar);
		if (r.lost >= FEWEST_LOST)
			expect(o, l, "minus what was sent again for each one lost",
			       -ratio((double)r.retransmitted, (double)r.lost), -BAR_RESENT);
	}
}

static void print_reordering(struct options *o, struct load *l, bool *first)
{
	struct result clean, r;

	l->loss_percent = 0;
	l->reordering = false;
	clean = run(l);
	l->reordering = true;
	r = run(l);
	printf("%s\n  {\"op\": \"%s\", \"mode\": \"%s\", \"mtu\": %u, \"reordered_percent\": %u, "
	       "\"places\": %u, \"goodput_gbps\": %.3f, \"relative\": %.4f, \"retransmitted\": "
	       "%llu}",
	       *first ? "" : ",", l->op->name, modes[l->mode], 128u << l->mtu, REORDER_SHARE,
	       PLACES, r.gbps, ratio(r.gbps, clean.gbps), (unsigned long long)r.retransmitted);
	fflush(stdout);
	*first = false;
	if (l->mode != UR_MODE_EXTENDED)
		return;
	expect(o, l, "goodput with reordering", ratio(r.gbps, clean.gbps), BAR_REORDERING);
	expect(o, l, "no retransmission (0) with reordering", -(double)r.retransmitted, 0);
}

static void each(struct options *o, void (*print)(struct options *, struct load *, bool *))
{
	bool first = true;

	for (unsigned m = 0; m < COUNT(mtus); m++)
		for (unsigned i = 0; i < COUNT(ops); i++)
			for (unsigned k = 0; k < COUNT(modes); k++) {
				struct load l = {.op = &ops[i],
						 .mode = (enum ur_mode)k,
						 .mtu = mtus[m],
						 .run_ns = SIM_MS(o->quick ? 10 : 50) >> m};

				/* READs are first to fill the window, with their responses. */
				if (o->quick && m && ops[i].code != IBV_WR_RDMA_READ)
					continue;
				if ((o->op && strcmp(o->op, ops[i].name) != 0) ||
				    (o->mode && strcmp(o->mode, modes[k]) != 0))
					continue;
				print(o, &l, &first);
			}
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {{"quick", no_argument, NULL, 'q'},
						 {"assert", no_argument, NULL, 'a'},
						 {"op", required_argument, NULL, 'o'},
						 {"mode", required_argument, NULL, 'm'},
						 {NULL, 0, NULL, 0}};
	struct options o = {0};
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c == 'q')
			o.quick = true;
		else if (c == 'a')
			o.check = true;
		else if (c == 'o')
			o.op = optarg;
		else if (c == 'm')
			o.mode = optarg;
		else
			return 2;
	}
	printf("{\"rows\": [");
	each(&o, print_loss);
	printf("\n], \"reordering\": [");
	each(&o, print_reordering);
	printf("\n]}\n");
	return o.failed != 0;
}
