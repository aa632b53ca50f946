/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/query.h"
#include "transport/build.h"
#include "wire/assert.h"
#include "wire/icrc.h"

#define PD	      7u
#define FIRST_PSN     1000u
#define BURST	      32
#define STEP_NS	      1000	      /* time between two bursts */
#define FRAME_BYTES   (8192 + 3 * 64) /* not a power of two: frames would share the sets of a cache */
#define LARGE_BYTES   65536
#define POOL_CONTEXTS 16
#define POOL_SLOTS    64
#define POOL_SLABS    8
#define REMOTE	      (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "pair: %s\n", what);
	exit(1);
}

void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "pair: %s:%d: %s\n", file, line, expr);
	abort();
}

/* Aligned to 64 bytes. Large blocks are zero without a memset(), which would fill the trace. */
static void *zeroed(size_t bytes)
{
	void *p;

	if (bytes >= LARGE_BYTES) {
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(p != MAP_FAILED, "no memory");
		return p;
	}
	p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	must(p, "no memory");
	return memset(p, 0, bytes);
}

static void on_completion(void *ctx, struct ur_cq *cq)
{
	(void)ctx, (void)cq;
}

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	(void)ctx, (void)user;
	must(type == IBV_EVENT_COMM_EST, "an asynchronous error");
}

static void on_cross_worker(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	(void)ctx, (void)cq, (void)wc, (void)solicited;
	must(false, "a completion for another worker");
}

/* Side 1 of 2 workers: no connection manager. */
static void make_engine(struct pair *p, struct pair_end *end, const struct pair_attr *attr)
{
	struct ur_engine_attr ea = {
		.limits = {.max_qp = attr->qps,
			   .workers = 2,
			   .worker = 1,
			   .reorder_slots = POOL_SLOTS,
			   .reorder_slot_bytes = 4096,
			   .reorder_contexts = POOL_CONTEXTS,
			   .read_gaps = POOL_CONTEXTS,
			   .loss_slabs = POOL_SLABS,
			   .loss_slabs_max = POOL_SLABS,
			   .loss_slab_bytes = UR_LOSS_SLAB_BYTES,
			   .max_sge = 1},
		.mem = end->mem,
		.sink = {NULL, on_completion, on_async, on_cross_worker},
		.random = 42,
		.window = 256,
		.ackreq_every = 64,
		.mtu_shift = 12,
	};

	end->engine_bytes = ur_engine_size(&ea.limits);
	end->engine = ur_engine_init(zeroed(end->engine_bytes), &ea, p->now_ns);
}

static void make_end(struct pair *p, struct pair_end *end, const struct pair_attr *attr)
{
	uint32_t cqe = PAIR_DEPTH * 4 > attr->qps * 2 ? PAIR_DEPTH * 4 : attr->qps * 2;

	end->mem = ur_mem_init(zeroed(ur_mem_size(2)), 2);
	end->buffer = zeroed(attr->buffer_bytes);
	must(ur_mem_register(end->mem, PD, end->buffer, attr->buffer_bytes, (uintptr_t)end->buffer,
			     REMOTE | IBV_ACCESS_LOCAL_WRITE, 0x123456789abcdef0, &end->key) == 0,
	     "cannot register memory");
	make_engine(p, end, attr);
	ur_cq_init(&end->cq, zeroed(ur_cq_ring_bytes(cqe)), cqe, 1, NULL);
	end->cq.unarmed = true;
	end->qp = zeroed(attr->qps * sizeof(struct ur_qp *));
}

static void make_qp(struct pair *p, struct pair_end *end, uint32_t i, enum ur_mode mode)
{
	struct ur_qp_create c = {
		.type = IBV_QPT_RC,
		.pd = PD,
		.send_cq = &end->cq,
		.recv_cq = &end->cq,
		.cap = {PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0},
		.max_dest_rd_atomic = 16,
	};

	end->rings_bytes = ur_qp_rings_bytes(&c);
	c.rings = zeroed(end->rings_bytes);
	must(ur_engine_create_qp(end->engine, &c, p->now_ns, &end->qp[i]) == 0,
	     "cannot create a queue pair");
	must(ur_qp_set_mode(end->qp[i], mode, false) == 0, "cannot set the mode");
}

static void connect_qp(struct pair *p, unsigned side, uint32_t i, enum ibv_mtu mtu)
{
	struct pair_end *end = &p->end[side];
	struct ur_qpn peer = p->end[!side].qp[i]->qpn;
	struct ur_path_attr path = {
		.smac = {2, 0, 0, 0, 0, (uint8_t)side},
		.dmac = {2, 0, 0, 0, 0, (uint8_t)!side},
		.src = ur_gid_from_ipv4(0x0a000001 + side),
		.dst = ur_gid_from_ipv4(0x0a000001 + !side),
		.sport = ur_path_sport(0, end->qp[i]->qpn, peer),
	};
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = REMOTE,
		.path_mtu = mtu,
		.dest_qp_num = peer.v,
		.rq_psn = FIRST_PSN,
		.sq_psn = FIRST_PSN,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} step[] = {
		{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC},
	};

	for (unsigned s = 0; s < 3; s++) {
		attr.qp_state = step[s].state;
		must(ur_engine_modify_qp(end->engine, end->qp[i], &attr,
					 step[s].mask | IBV_QP_STATE,
					 step[s].mask & IBV_QP_AV ? &path : NULL, p->now_ns) == 0,
		     "cannot connect a queue pair");
	}
}

static void post_receive(struct pair *p, uint32_t i, uint32_t len)
{
	struct pair_end *peer = &p->end[1];
	struct ibv_sge sge = {(uintptr_t)peer->buffer, len, peer->key};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	must(ur_rq_post(&peer->qp[i]->rq, &wr) == 0, "cannot post a receive");
}

void pair_init(struct pair *p, const struct pair_attr *attr)
{
	memset(p, 0, sizeof(*p));
	p->now_ns = 1000000;
	p->buffer_bytes = attr->buffer_bytes;
	p->frames = zeroed(BURST * FRAME_BYTES);
	for (unsigned side = 0; side < 2; side++) {
		make_end(p, &p->end[side], attr);
		for (uint32_t i = 0; i < attr->qps; i++)
			make_qp(p, &p->end[side], i, attr->mode);
	}
	for (unsigned side = 0; side < 2; side++)
		for (uint32_t i = 0; i < attr->qps; i++)
			connect_qp(p, side, i, attr->mtu);
	for (uint32_t i = 0; i < attr->qps; i++)
		for (unsigned n = 0; n < PAIR_AHEAD; n++)
			post_receive(p, i, attr->buffer_bytes);
}

/* ---- packets ---- */

static void carry(struct pair *p, unsigned to, const struct ur_tx *tx, uint8_t *frame)
{
	uint32_t len = ur_tx_write(tx, frame);
	struct ur_packet pkt;
	enum ur_drop drop;

	if (ur_engine_input_predicted(p->end[to].engine, frame, len, p->now_ns, &drop)) {
		must(drop == UR_DROP_NONE, "a packet is dropped");
		return;
	}
	must(ur_packet_decode(frame, len, &pkt) == UR_DROP_NONE && ur_icrc_ok(frame, &pkt),
	     "a packet that does not decode");
	must(ur_engine_input(p->end[to].engine, &pkt, p->now_ns) == UR_DROP_NONE,
	     "a packet is dropped");
}

/* What a worker does in a round: a burst of packets by one call, whose payload is valid until the next. */
static unsigned burst(struct pair *p, unsigned from)
{
	struct ur_tx tx[BURST];
	unsigned n;

	for (unsigned i = 0; i < BURST; i++)
		tx[i].hdr = p->frames + i * FRAME_BYTES;
	n = ur_engine_output(p->end[from].engine, tx, BURST, p->now_ns);
	for (unsigned i = 0; i < n; i++)
		carry(p, !from, &tx[i], tx[i].hdr);
	p->now_ns += STEP_NS;
	p->packets += n;
	p->data_packets += from == 0 ? n : 0;
	return n;
}

void pair_settle(struct pair *p)
{
	while (burst(p, 0) + burst(p, 1))
		for (unsigned side = 0; side < 2; side++)
			ur_engine_expire(p->end[side].engine, p->now_ns);
}

/* ---- the application ---- */

void pair_post(struct pair *p, uint32_t i, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct pair_end *me = &p->end[0], *peer = &p->end[1];
	struct ur_qp *qp = me->qp[i];
	struct ibv_sge sge = {(uintptr_t)me->buffer, len, me->key};
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {(uintptr_t)peer->buffer, peer->key},
	};

	if (opcode == IBV_WR_SEND)
		post_receive(p, i, p->buffer_bytes);
	must(ur_sq_post(&qp->sq, IBV_QPS_RTS, &wr, false) == 0, "cannot post");
	ur_engine_doorbell(me->engine, qp, p->now_ns);
}

unsigned pair_completions(struct pair *p)
{
	struct ibv_wc wc[16];
	unsigned n, total = 0;

	for (unsigned side = 0; side < 2; side++)
		while ((n = ur_cq_poll(&p->end[side].cq, 16, wc)) > 0) {
			for (unsigned i = 0; i < n; i++)
				must(wc[i].status == IBV_WC_SUCCESS, "a request failed");
			total += side == 0 ? n : 0;
		}
	return total;
}

uint64_t pair_trouble(const struct pair *p)
{
	uint64_t n = 0;

	for (unsigned side = 0; side < 2; side++) {
		const struct ur_counters *c = ur_engine_counters(p->end[side].engine);

		n += c->retransmitted_packets + c->retransmitted_responses + c->early_packets;
		n += c->early_responses + c->ooo_contexts + c->ooo_exhausted + c->rtx_contexts;
		n += c->rtx_exhausted + c->seq_nak_sent + c->probes_sent + c->rto;
	}
	return n;
}

/* ---- names ---- */

bool pair_opcode(const char *name, enum ibv_wr_opcode *opcode)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
	} known[] = {
		{"write", IBV_WR_RDMA_WRITE}, {"send", IBV_WR_SEND}, {"read", IBV_WR_RDMA_READ}};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0) {
			*opcode = known[i].opcode;
			return true;
		}
	return false;
}

bool pair_mode(const char *name, enum ur_mode *mode)
{
	static const char *const names[] = {
#define X(NAME, word) [UR_MODE_##NAME] = #word,
		UR_MODES(X)
#undef X
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0) {
			*mode = (enum ur_mode)i;
			return true;
		}
	return false;
}

void pair_free(struct pair *p)
{
	(void)p; /* the process ends with it */
}
