/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "objects.h"

/*
 * Goodput of many queue pairs through loss, in virtual time: each queue pair has `depth` messages
 * outstanding all the time, all of them share one line, frames are lost in both directions. The
 * configuration is the default of lib/edge. One run a call, printed as a JSON object:
 *
 *   {op, mode, mtu, bytes, qps, depth, loss_percent, bursts, seed, run_ms, goodput_gbps, messages,
 *    p50_us, p999_us, lost, resent, probes, timeouts, ack_timeouts, holes, state_bytes,
 *    state_peak_bytes}
 *
 * lost, resent: packets with payload that were lost, and such packets that were sent again. timeouts:
 * of the requester, without local ACK timeouts. holes: lost packets that have not been repaired, mean over time; state_bytes:
 * memory that both ends hold for them from their pools, mean; state_peak_bytes: most. A message's time is from its post to its
 * completion.
 *
 * An engine has at most 2^15 - 2 queue pairs: more are spread over several workers, whose share of the line is fixed.
 */
#define WORKER_QPS   25000
#define BURST_FRAMES 8 /* mean length of a burst of losses */
#define RAMP_NS	     SIM_MS(2)
#define SAMPLES	     64 /* of the state for open holes, in a run */
#define RATIO_BAR    1.10
#define GOODPUT_BAR  0.95 /* --kept */

/* The defaults of lib/edge/config_keys.h. */
#define ACK_COALESCE   16
#define CONTEXTS       1024
#define LOSS_BYTES     (4u << 20)
#define LOSS_BYTES_MAX (64u << 20)
#define REORDER_SLOTS  1280

/* Of sim.c. */
#define SLOT_BYTES 4096

static const struct op {
	const char *name;
	enum ibv_wr_opcode code;
} ops[] = {{"write", IBV_WR_RDMA_WRITE}, {"send", IBV_WR_SEND}, {"read", IBV_WR_RDMA_READ}};

static const char *const modes[] = {
#define X(NAME, name) #name,
	UR_MODES(X)
#undef X
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct load {
	const struct op *op;
	enum ur_mode mode;
	unsigned mtu_shift;
	uint32_t bytes; /* of a message, a power of two, as is depth */
	unsigned qps, depth, window;
	uint8_t rd_atomic;
	double loss_percent;
	bool bursts;
	double gbps;
	uint64_t rtt_ns, run_ns, seed;
	uint64_t turn_ns;		   /* from an event to the turn of the worker */
	uint64_t stall_ns, stall_every_ns; /* longest stall of a worker, mean time between two */
	double kept;			   /* goodput relative to no loss, for --assert */
	double timeouts;		   /* the most for each lost packet, for --assert */
};

/* A place in the window of a queue pair, and the newest packet that was sent in it. */
struct place {
	uint8_t lap : 6; /* of the packet: its number divided by the window */
	uint8_t is_taken : 1;
	uint8_t is_lost : 1;
};

struct qp_pair {
	struct world *w;
	struct sim_qp end[2];
	struct ibv_sge sge[2];
	uint32_t posted, done;
	uint64_t *post_ns;   /* [depth] */
	struct place *place; /* [window_of()] */
};

/* One worker at each end, and the directions between them. */
struct workers {
	struct sim_cq cq[2];
	struct sim_mr mr[2];
	struct sim_link drop[2];
	struct sim_rng rng;
};

struct world {
	const struct load *load;
	struct sim *s;
	unsigned workers;
	struct workers *worker;
	struct qp_pair *qp; /* [load->qps] */
	uint64_t *post_ns;
	struct place *place;
	unsigned begun;	   /* queue pairs that have posted */
	uint64_t from_ns;  /* the measurement begins */
	uint64_t *time_ns; /* of messages that completed since */
	size_t time_cnt, time_cap;
	uint64_t lost, resent;
	uint64_t holes; /* now */
	uint64_t holes_sum, state_sum, state_peak, samples;
};

struct result {
	double gbps, p50_us, p999_us, holes, state_bytes;
	uint64_t messages, lost, resent, probes, rto, ack_timeouts, state_peak;
};

static void *zeroed(size_t n, size_t bytes)
{
	void *p = calloc(n, bytes);

	if (!p)
		abort();
	return p;
}

static unsigned window_of(const struct load *l)
{
	return l->depth * (l->bytes >> l->mtu_shift);
}

/* ---- the application ---- */

static void post(struct qp_pair *q)
{
	struct world *w = q->w;
	struct ibv_send_wr wr = {.sg_list = &q->sge[0],
				 .num_sge = 1,
				 .opcode = w->load->op->code,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr_id = (uint64_t)(q - w->qp)};

	if (wr.opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = q->sge[1].addr;
		wr.wr.rdma.rkey = q->sge[1].lkey;
	}
	q->post_ns[q->posted++ % w->load->depth] = w->s->now_ns;
	SIM_CHECK(w->s, sim_post_send(&q->end[0], &wr) == 0, "cannot post");
}

static void receive(struct qp_pair *q)
{
	struct ibv_recv_wr wr = {
		.sg_list = &q->sge[1], .num_sge = 1, .wr_id = (uint64_t)(q - q->w->qp)};

	SIM_CHECK(q->w->s, sim_post_recv(&q->end[1], &wr) == 0, "cannot post a receive");
}

static void record_time(struct world *w, uint64_t ns)
{
	if (w->time_cnt == w->time_cap) {
		w->time_cap = w->time_cap ? 2 * w->time_cap : 4096;
		w->time_ns = realloc(w->time_ns, w->time_cap * sizeof(*w->time_ns));
		if (!w->time_ns)
			abort();
	}
	w->time_ns[w->time_cnt++] = ns;
}

static void complete(struct world *w, const struct ibv_wc *wc)
{
	struct qp_pair *q = &w->qp[wc->wr_id];
	uint64_t ns = w->s->now_ns - q->post_ns[q->done++ % w->load->depth];

	SIM_CHECK(w->s, wc->status == IBV_WC_SUCCESS, "status %d of queue pair %llu", wc->status,
		  (unsigned long long)wc->wr_id);
	if (w->from_ns)
		record_time(w, ns);
	post(q);
}

static void poll(struct sim *s, void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc;

	(void)s;
	for (unsigned i = 0; i < w->workers; i++) {
		while (ur_cq_poll(&w->worker[i].cq[1].cq, 1, &wc))
			receive(&w->qp[wc.wr_id]);
		while (ur_cq_poll(&w->worker[i].cq[0].cq, 1, &wc))
			complete(w, &wc);
	}
}

/* ---- the line ---- */

static struct qp_pair *pair_of(struct world *w, const struct sim_ep *from, struct ur_qpn dqpn)
{
	struct ur_engine *e = w->s->ep[from->idx ^ 1].engine;
	struct ur_qp *qp = ur_engine_find_qp(e, dqpn);
	char *end;

	SIM_CHECK(w->s, qp, "a frame for no queue pair");
	end = qp->user;
	return (struct qp_pair *)(void *)(end - offsetof(struct qp_pair, end) -
					  (from->idx & 1 ? 0 : sizeof(struct sim_qp)));
}

/* Packets are numbered by PSN, or by message and offset in it. */
static void track(struct world *w, struct qp_pair *q, const struct ur_packet *p, bool lost)
{
	uint32_t packets = w->load->bytes >> w->load->mtu_shift, window = window_of(w->load);
	uint32_t nr = p->bth.psn.v;
	struct place *at;
	uint8_t lap;

	if (p->op & UR_OP_XRTH)
		nr = p->xrth.ssn * packets + p->xrth.offset;
	at = &q->place[nr & (window - 1)];
	lap = nr / window & 0x3f;
	w->lost += lost;
	if (at->is_taken && ((at->lap - lap) & 0x3f) < 0x20) {
		w->resent++;
		if (at->lap != lap)
			return; /* of a message that is complete */
		w->holes -= at->is_lost;
	}
	w->holes += lost;
	*at = (struct place){.lap = lap & 0x3f, .is_taken = 1, .is_lost = lost};
}

static enum sim_verdict pass_line(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				  const struct ur_packet *p)
{
	struct world *w = s->hook_arg;
	struct workers *ends = &w->worker[from->idx / 2];
	bool lost = !sim_link_send(&ends->drop[from->idx & 1], &ends->rng, len, 0).copies;

	(void)frame;
	if (p->op & (UR_OP_SEND | UR_OP_WRITE | UR_OP_READ_RESP))
		track(w, pair_of(w, from, p->bth.dqpn), p, lost);
	return lost ? SIM_DROP : SIM_PASS;
}

static struct sim_link_attr losses(const struct load *l)
{
	double share = l->loss_percent / 100;

	if (!l->bursts)
		return (struct sim_link_attr){.loss = (uint32_t)(share * 65536 + 0.5)};
	return (struct sim_link_attr){
		.burst = (uint32_t)(share / (1 - share) / BURST_FRAMES * 65536 + 0.5),
		.burst_end = 65536 / BURST_FRAMES,
		.burst_loss = 65536,
	};
}

/* ---- state for open holes ---- */

static uint64_t state_bytes(const struct ur_core *c)
{
	size_t slot =
		ur_reorder_pool_size(2, SLOT_BYTES, 1) - ur_reorder_pool_size(1, SLOT_BYTES, 1);
	size_t context =
		ur_reorder_pool_size(1, SLOT_BYTES, 2) - ur_reorder_pool_size(1, SLOT_BYTES, 1);

	return c->loss.used_bytes + (c->reorder.slot_cnt - c->reorder.slots_free) * slot +
	       (c->reorder.context_cnt - c->reorder.contexts_free) * context +
	       (c->read_gaps.cnt - c->read_gaps.free_cnt) * ur_read_gap_pool_size(1);
}

static void sample_state(struct sim *s, void *arg)
{
	struct world *w = arg;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->attr.eps; i++)
		bytes += state_bytes(ur_engine_core(s->ep[i].engine));
	w->holes_sum += w->holes;
	w->state_sum += bytes;
	w->samples++;
	if (bytes > w->state_peak)
		w->state_peak = bytes;
	sim_call_at(s, s->now_ns + w->load->run_ns / SAMPLES, sample_state, w);
}

/* ---- the world ---- */

static uint64_t random_ns(struct world *w, uint64_t most)
{
	return most ? sim_rand(&w->worker[0].rng) % most : 0;
}

/* One worker after another, at random, stands still for a while. */
static void stall(struct sim *s, void *arg)
{
	struct world *w = arg;

	sim_stall(&s->ep[sim_below(&w->worker[0].rng, s->attr.eps)],
		  1 + random_ns(w, w->load->stall_ns));
	sim_call_at(s, s->now_ns + 1 + random_ns(w, 2 * w->load->stall_every_ns / s->attr.eps),
		    stall, w);
}

/* The time that a round of one message from each queue pair takes on the line. */
static uint64_t round_ns(const struct load *l)
{
	return (uint64_t)((double)l->qps * l->depth * l->bytes * 8 / l->gbps);
}

/* Queue pairs begin one after another, so that they are not in step. */
static void begin(struct sim *s, void *arg)
{
	struct world *w = arg;
	struct qp_pair *q = &w->qp[w->begun++];

	for (unsigned i = 0; i < w->load->depth; i++) {
		if (w->load->op->code == IBV_WR_SEND)
			receive(q);
		post(q);
	}
	if (w->begun < w->load->qps)
		sim_call_at(s, s->now_ns + round_ns(w->load) / w->load->qps, begin, w);
}

static struct sim_attr network(const struct world *w)
{
	const struct load *l = w->load;
	struct sim_attr sa = sim_defaults("sim_scale", l->seed);

	sa.fast = true;
	sa.eps = 2 * w->workers;
	sa.max_qp = (l->qps + w->workers - 1) / w->workers;
	sa.window = l->window;
	sa.ackreq_every = ACK_COALESCE;
	sa.tx_cap = 32;
	sa.contexts = CONTEXTS;
	sa.loss.bytes = ur_engine_loss_slab_bytes(l->window);
	sa.loss.slabs = LOSS_BYTES / sa.loss.bytes;
	sa.loss.max = LOSS_BYTES_MAX / sa.loss.bytes;
	sa.reorder_slots = REORDER_SLOTS;
	sa.link = (struct sim_link_attr){
		.bits_per_s = (uint64_t)(l->gbps * 1e9) / w->workers,
		.delay_ns = l->rtt_ns / 2,
	};
	if (l->turn_ns)
		sa.turn_delay_ns = l->turn_ns;
	return sa;
}

static void make_workers(struct world *w, unsigned i)
{
	struct workers *ends = &w->worker[i];
	unsigned cqe = w->s->attr.max_qp * w->load->depth;

	ends->rng.state = sim_mix(w->load->seed + i) + 1;
	for (unsigned side = 0; side < 2; side++) {
		sim_cq_init(&ends->cq[side], cqe < 16 ? 16 : cqe);
		sim_mr_init(&ends->mr[side], &w->s->ep[2 * i + side], w->load->bytes,
			    SIM_ACCESS_ALL);
		ends->drop[side].attr = losses(w->load);
	}
	sim_pattern(ends->mr[w->load->op->code == IBV_WR_RDMA_READ].p, w->load->bytes, 1);
}

static void make_pair(struct world *w, unsigned nr)
{
	const struct load *l = w->load;
	struct qp_pair *q = &w->qp[nr];
	unsigned at = nr % w->workers;
	struct workers *ends = &w->worker[at];
	struct sim_qp_attr qa[2];

	q->w = w;
	q->post_ns = &w->post_ns[(size_t)nr * l->depth];
	q->place = &w->place[(size_t)nr * window_of(l)];
	for (unsigned side = 0; side < 2; side++) {
		q->sge[side] = sim_sge(&ends->mr[side], 0, l->bytes);
		qa[side] = sim_qp_defaults(&ends->cq[side], &ends->cq[side]);
		qa[side].cap.max_send_wr = qa[side].cap.max_recv_wr = l->depth;
		qa[side].cap.max_send_sge = qa[side].cap.max_recv_sge = 1;
		qa[side].cap.max_inline_data = 0;
		qa[side].mtu = (enum ibv_mtu)(l->mtu_shift - 7);
		qa[side].mode = l->mode;
		qa[side].agreed.wide = ur_engine_wide(l->window);
		qa[side].rd_atomic = qa[side].dest_rd_atomic = l->rd_atomic;
	}
	sim_qp_pair(&q->end[0], &w->s->ep[2 * at], &qa[0], &q->end[1], &w->s->ep[2 * at + 1],
		    &qa[1]);
}

static void make(struct world *w)
{
	const struct load *l = w->load;
	struct sim_attr sa;

	w->workers = (l->qps + WORKER_QPS - 1) / WORKER_QPS;
	w->worker = zeroed(w->workers, sizeof(*w->worker));
	w->qp = zeroed(l->qps, sizeof(*w->qp));
	w->post_ns = zeroed((size_t)l->qps * l->depth, sizeof(*w->post_ns));
	w->place = zeroed((size_t)l->qps * window_of(l), sizeof(*w->place));
	sa = network(w);
	w->s = sim_new(&sa);
	for (unsigned i = 0; i < w->workers; i++)
		make_workers(w, i);
	for (unsigned i = 0; i < l->qps; i++)
		make_pair(w, i);
	w->s->hook = pass_line;
	w->s->hook_arg = w;
	w->s->after = poll;
	w->s->after_arg = w;
}

static void drop(struct world *w)
{
	for (unsigned i = 0; i < w->load->qps; i++)
		for (unsigned side = 0; side < 2; side++)
			sim_qp_destroy(&w->qp[i].end[side]);
	for (unsigned i = 0; i < w->workers; i++)
		for (unsigned side = 0; side < 2; side++) {
			sim_mr_free(&w->worker[i].mr[side]);
			sim_cq_free(&w->worker[i].cq[side]);
		}
	sim_free(w->s);
	free(w->worker);
	free(w->qp);
	free(w->post_ns);
	free(w->place);
	free(w->time_ns);
}

/* ---- one run ---- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double time_us(const struct world *w, double share)
{
	return w->time_cnt ? (double)w->time_ns[(size_t)((double)(w->time_cnt - 1) * share)] / 1e3
			   : 0;
}

/* All queue pairs write or read the same bytes, so whatever has completed left those. */
static void check_bytes(const struct world *w)
{
	for (unsigned i = 0; i < w->workers; i++)
		SIM_CHECK(w->s,
			  memcmp(w->worker[i].mr[0].p, w->worker[i].mr[1].p, w->load->bytes) == 0,
			  "the bytes differ");
}

static void count(const struct world *w, struct result *r, int sign)
{
	for (unsigned i = 0; i < w->workers; i++) {
		const struct ur_counters *c = sim_counters(&w->s->ep[2 * i]);

		r->probes += (uint64_t)sign * c->probes_sent;
		r->rto += (uint64_t)sign * c->rto;
		r->ack_timeouts += (uint64_t)sign * c->local_ack_timeout_err;
	}
	r->lost += (uint64_t)sign * w->lost;
	r->resent += (uint64_t)sign * w->resent;
}

static struct result run(const struct load *load)
{
	struct world w = {.load = load};
	struct result r = {0};

	make(&w);
	begin(w.s, &w);
	if (load->stall_ns)
		stall(w.s, &w);
	sim_sleep(w.s, RAMP_NS + round_ns(load) + round_ns(load) / 4);
	w.from_ns = w.s->now_ns;
	count(&w, &r, -1);
	sample_state(w.s, &w);
	sim_sleep(w.s, load->run_ns);
	count(&w, &r, 1);
	qsort(w.time_ns, w.time_cnt, sizeof(*w.time_ns), by_size);
	r.messages = w.time_cnt;
	r.gbps = (double)w.time_cnt * load->bytes * 8 / (double)load->run_ns;
	r.p50_us = time_us(&w, 0.5);
	r.p999_us = time_us(&w, 0.999);
	r.holes = (double)w.holes_sum / (double)w.samples;
	r.state_bytes = (double)w.state_sum / (double)w.samples;
	r.state_peak = w.state_peak;
	check_bytes(&w);
	drop(&w);
	return r;
}

static void print(const struct load *l, const struct result *r)
{
	printf("{\"op\": \"%s\", \"mode\": \"%s\", \"mtu\": %u, \"bytes\": %u, \"qps\": %u, "
	       "\"depth\": %u, \"loss_percent\": %g, \"bursts\": %s, \"seed\": %llu, "
	       "\"run_ms\": %g, ",
	       l->op->name, modes[l->mode], 1u << l->mtu_shift, l->bytes, l->qps, l->depth,
	       l->loss_percent, l->bursts ? "true" : "false", (unsigned long long)l->seed,
	       (double)l->run_ns / 1e6);
	printf("\"goodput_gbps\": %.4f, \"messages\": %llu, \"p50_us\": %.3f, \"p999_us\": %.3f, "
	       "\"lost\": %llu, \"resent\": %llu, \"probes\": %llu, \"timeouts\": %llu, "
	       "\"ack_timeouts\": %llu, \"holes\": %.2f, \"state_bytes\": %.0f, "
	       "\"state_peak_bytes\": %llu}\n",
	       r->gbps, (unsigned long long)r->messages, r->p50_us, r->p999_us,
	       (unsigned long long)r->lost, (unsigned long long)r->resent,
	       (unsigned long long)r->probes, (unsigned long long)r->rto,
	       (unsigned long long)r->ack_timeouts, r->holes, r->state_bytes,
	       (unsigned long long)r->state_peak);
	fflush(stdout);
}

/* ---- the command line ---- */

static const char usage[] =
	"usage: sim_scale [--op write|send|read] [--mode gbn|reorder|extended] [--qps N] [--depth N]\n"
	"                 [--bytes N] [--mtu N] [--window N] [--loss PERCENT] [--bursts] [--rd-atomic N]\n"
	"                 [--gbps N] [--rtt-us N] [--run-ms N] [--seed N] [--turn-us N] [--stall-us N --stall-every-us N]\n"
	"                 [--assert [--kept SHARE] [--timeouts SHARE]]\n"
	"--bytes, --depth, --mtu, --window and --rd-atomic are powers of two. --assert compares with a run without loss; "
	"without --loss nothing may be asked about or sent again.\n";

_Noreturn static void refuse(const char *what)
{
	fprintf(stderr, "sim_scale: %s\n%s", what, usage);
	exit(2);
}

static unsigned index_in(const char *const *names, unsigned cnt, const char *name)
{
	for (unsigned i = 0; i < cnt; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	refuse("no such operation or mode");
}

static const struct op *op_of(const char *name)
{
	const char *const names[] = {ops[0].name, ops[1].name, ops[2].name};

	return &ops[index_in(names, COUNT(names), name)];
}

static uint32_t power_of_two(const char *text, uint32_t most)
{
	unsigned long v = strtoul(text, NULL, 0);

	if (v < 1 || v > most || (v & (v - 1)))
		refuse("a number is no power of two, or too large");
	return (uint32_t)v;
}

/* Returns false if the option is unknown. */
static bool set_option(struct load *l, int c, const char *value)
{
	switch (c) {
	case 'o':
		l->op = op_of(value);
		return true;
	case 'm':
		l->mode = (enum ur_mode)index_in(modes, COUNT(modes), value);
		return true;
	case 'q':
		l->qps = (unsigned)strtoul(value, NULL, 0);
		return true;
	case 'd':
		l->depth = power_of_two(value, 256);
		return true;
	case 'b':
		l->bytes = power_of_two(value, 1u << 20);
		return true;
	case 't':
		l->mtu_shift = (unsigned)__builtin_ctz(power_of_two(value, 4096));
		return true;
	case 'w':
		l->window = power_of_two(value, UR_EXT_WINDOW_MAX / 4);
		return true;
	case 'a':
		l->rd_atomic = (uint8_t)power_of_two(value, 64);
		return true;
	case 'l':
		l->loss_percent = strtod(value, NULL);
		return true;
	case 'B':
		l->bursts = true;
		return true;
	case 'g':
		l->gbps = strtod(value, NULL);
		return true;
	case 'r':
		l->rtt_ns = (uint64_t)(strtod(value, NULL) * 1e3);
		return true;
	case 'n':
		l->run_ns = (uint64_t)(strtod(value, NULL) * 1e6);
		return true;
	case 's':
		l->seed = strtoull(value, NULL, 0);
		return true;
	case 'T':
		l->turn_ns = (uint64_t)(strtod(value, NULL) * 1e3);
		return true;
	case 'S':
		l->stall_ns = (uint64_t)(strtod(value, NULL) * 1e3);
		return true;
	case 'E':
		l->stall_every_ns = (uint64_t)(strtod(value, NULL) * 1e3);
		return true;
	case 'k':
		l->kept = strtod(value, NULL);
		return true;
	case 'O':
		l->timeouts = strtod(value, NULL);
		return true;
	default:
		return false;
	}
}

/* Checks the bars of the load. Returns the number of those that are missed. */
static int check(const struct load *l, const struct result *r)
{
	struct load clean = *l;
	struct result c;
	double share, again = r->lost ? (double)r->resent / (double)r->lost : 0;
	double timeouts = (double)(r->rto + r->ack_timeouts);
	bool is_late = timeouts > l->timeouts * (double)r->lost;

	clean.loss_percent = 0;
	c = run(&clean);
	print(&clean, &c);
	share = c.gbps > 0 ? r->gbps / c.gbps : 0;
	if (share < l->kept)
		fprintf(stderr, "goodput is %.4f of that without loss, below %.2f\n", share,
			l->kept);
	if (!r->lost || again > RATIO_BAR)
		fprintf(stderr, "%.3f packets were sent again for each one lost, more than %.2f\n",
			again, RATIO_BAR);
	if (is_late)
		fprintf(stderr, "%.0f timeouts for %llu lost packets\n", timeouts,
			(unsigned long long)r->lost);
	if (c.resent)
		fprintf(stderr, "%llu packets were sent again without loss\n",
			(unsigned long long)c.resent);
	return (share < l->kept) + (!r->lost || again > RATIO_BAR) + is_late + (c.resent > 0);
}

/* EXT-SEL-PROBE-05. The same without loss: nothing is asked about, nothing is sent again. */
static int check_clean(const struct result *r)
{
	uint64_t timeouts = r->rto + r->ack_timeouts;

	if (r->probes || r->resent || timeouts)
		fprintf(stderr,
			"%llu probes, %llu packets sent again, %llu timeouts without loss\n",
			(unsigned long long)r->probes, (unsigned long long)r->resent,
			(unsigned long long)timeouts);
	return r->probes || r->resent || timeouts;
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {{"op", required_argument, NULL, 'o'},
						 {"mode", required_argument, NULL, 'm'},
						 {"qps", required_argument, NULL, 'q'},
						 {"depth", required_argument, NULL, 'd'},
						 {"bytes", required_argument, NULL, 'b'},
						 {"mtu", required_argument, NULL, 't'},
						 {"window", required_argument, NULL, 'w'},
						 {"rd-atomic", required_argument, NULL, 'a'},
						 {"loss", required_argument, NULL, 'l'},
						 {"bursts", no_argument, NULL, 'B'},
						 {"gbps", required_argument, NULL, 'g'},
						 {"rtt-us", required_argument, NULL, 'r'},
						 {"run-ms", required_argument, NULL, 'n'},
						 {"seed", required_argument, NULL, 's'},
						 {"turn-us", required_argument, NULL, 'T'},
						 {"stall-us", required_argument, NULL, 'S'},
						 {"stall-every-us", required_argument, NULL, 'E'},
						 {"assert", no_argument, NULL, 'A'},
						 {"kept", required_argument, NULL, 'k'},
						 {"timeouts", required_argument, NULL, 'O'},
						 {NULL, 0, NULL, 0}};
	struct load l = {.op = &ops[0],
			 .mode = UR_MODE_EXTENDED,
			 .mtu_shift = 12,
			 .bytes = 65536,
			 .qps = 1,
			 .depth = 1,
			 .window = 512,
			 .rd_atomic = 16,
			 .gbps = 100,
			 .rtt_ns = 40000,
			 .run_ns = SIM_MS(20),
			 .seed = 1,
			 .kept = GOODPUT_BAR};
	bool asserts = false;
	struct result r;
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (c == 'A')
			asserts = true;
		else if (!set_option(&l, c, optarg))
			refuse("unknown option");
	}
	if (l.qps < 1 || l.qps > WORKER_QPS * (SIM_EP_MAX / 2) || l.mtu_shift < 8 ||
	    l.bytes < 1u << l.mtu_shift || l.gbps < 1 || l.loss_percent < 0 || l.loss_percent > 50)
		refuse("out of range");
	if (!l.stall_every_ns)
		l.stall_every_ns = 50 * l.stall_ns;
	r = run(&l);
	print(&l, &r);
	if (!asserts)
		return 0;
	return l.loss_percent > 0 ? check(&l, &r) != 0 : check_clean(&r);
}
