/* SPDX-License-Identifier: BSD-3-Clause */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include "rng.h"

#define PD	    7u
#define FIRST_PSN   0x123456u
#define REGION_IOVA (UINT64_C(1) << 40)

struct side {
	struct load_end at;
	uint8_t *region; /* halves: what it sends, what the peer writes or it reads into */
	uint32_t key;
	struct ur_cq *cq, *recv_cq;
	struct ur_qp *qp;
	void *memory[4];
	unsigned memory_cnt;
};

struct load {
	struct load_case c;
	size_t half;
	struct side side[2];
	int done;
	struct ibv_sge sge[2][LOAD_DEPTH];
};

static void *take(struct side *s, size_t bytes)
{
	void *block = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!block)
		abort();
	s->memory[s->memory_cnt++] = block;
	return memset(block, 0, (bytes + 63) & ~(size_t)63);
}

static void open_side(struct load *l, unsigned i, uint64_t now_ns)
{
	struct side *s = &l->side[i];
	struct ur_cq_create cq = {.cqe = 2 * LOAD_DEPTH, .unarmed = true};
	struct ur_qp_create qp = {.type = IBV_QPT_RC,
				  .pd = PD,
				  .cap = {LOAD_DEPTH, LOAD_DEPTH, 4, 4, 0},
				  .max_dest_rd_atomic = 4,
				  .random = sim_mix(l->c.seed * 2 + i + 1)};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	s->region = take(s, 2 * l->half);
	sim_pattern(s->region, l->half, i + 1);
	UR_ASSERT(ur_mem_register(s->at.mem, PD, s->region, 2 * l->half, REGION_IOVA,
				  (uint32_t)access, sim_mix(l->c.seed + 99 + i), &s->key) == 0);
	s->cq = ur_engine_create_cq(take(s, ur_engine_cq_size(cq.cqe)), &cq);
	s->recv_cq = ur_engine_create_cq(take(s, ur_engine_cq_size(cq.cqe)), &cq);
	qp.send_cq = s->cq;
	qp.recv_cq = s->recv_cq;
	qp.rings = take(s, ur_qp_rings_bytes(&qp));
	UR_ASSERT(ur_engine_create_qp(s->at.engine, &qp, now_ns, &s->qp) == 0);
}

static void connect_side(struct load *l, unsigned i, uint64_t now_ns)
{
	struct side *s = &l->side[i], *peer = &l->side[!i];
	struct ur_qp_connection c = {
		.path = {.src = s->at.gid, .dst = peer->at.gid, .tos = 0x6a}, /* ECT(0) */
		.dest_qpn = ur_engine_qpn(peer->qp),
		.path_mtu = IBV_MTU_1024,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.mode = {.mode = l->c.mode}};

	c.mode.agreed.delay = l->c.stamps;
	c.sq_psn = c.rq_psn = ur_psn(FIRST_PSN);
	memcpy(c.path.smac, s->at.mac, 6);
	memcpy(c.path.dmac, peer->at.mac, 6);
	c.path.sport = ur_path_sport(0, ur_engine_qpn(s->qp), c.dest_qpn);
	UR_ASSERT(ur_engine_connect_qp(s->at.engine, s->qp, &c, now_ns) == 0);
}

static enum load_op op_of(const struct load_case *c, unsigned n)
{
	return c->op == LOAD_MIXED ? (enum load_op)(n % LOAD_MIXED) : c->op;
}

/* Request n of host i uses the n-th piece of the halves at both ends. */
static void post(struct load *l, unsigned i, unsigned n)
{
	static const enum ibv_wr_opcode codes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						   IBV_WR_SEND};
	uint64_t off = (uint64_t)n * l->c.message_bytes;
	enum load_op op = op_of(&l->c, n);
	struct ibv_sge *sge = &l->sge[i][n];
	struct ibv_send_wr wr = {
		.sg_list = sge, .num_sge = 1, .opcode = codes[op], .send_flags = IBV_SEND_SIGNALED};

	*sge = (struct ibv_sge){REGION_IOVA + off + (op == LOAD_READ ? l->half : 0),
				l->c.message_bytes, l->side[i].key};
	if (op != LOAD_SEND) {
		wr.wr.rdma.remote_addr = REGION_IOVA + off + (op == LOAD_READ ? 0 : l->half);
		wr.wr.rdma.rkey = l->side[!i].key;
	}
	UR_ASSERT(ur_engine_post_send(l->side[i].qp, &wr) == 0);
}

/* A receive for the SEND n of host i, at the other end. */
static void post_receive(struct load *l, unsigned i, unsigned n)
{
	struct ibv_sge sge = {REGION_IOVA + l->half + (uint64_t)n * l->c.message_bytes,
			      l->c.message_bytes, l->side[!i].key};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	bool flushes;

	UR_ASSERT(ur_engine_post_recv(l->side[!i].qp, &wr, &bad, &flushes) == 0 && !flushes);
}

struct load *load_start(const struct load_case *c, const struct load_end end[2], uint64_t now_ns)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->c = *c;
	l->half = (size_t)LOAD_DEPTH * c->message_bytes;
	for (unsigned i = 0; i < 2; i++) {
		l->side[i].at = end[i];
		open_side(l, i, now_ns);
	}
	for (unsigned i = 0; i < 2; i++)
		connect_side(l, i, now_ns);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned n = 0; n < c->messages[i]; n++)
			if (op_of(c, n) == LOAD_SEND)
				post_receive(l, i, n);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned n = 0; n < c->messages[i]; n++)
			post(l, i, n);
		ur_engine_doorbell(end[i].engine, l->side[i].qp, now_ns);
	}
	return l;
}

int load_done(struct load *l)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 2; i++) {
		while (l->done >= 0 && ur_engine_poll_cq(l->side[i].cq, 1, &wc))
			l->done = wc.status == IBV_WC_SUCCESS ? l->done + 1 : -1;
		while (ur_engine_poll_cq(l->side[i].recv_cq, 1, &wc))
			;
	}
	return l->done;
}

bool load_right(const struct load *l)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned n = 0; n < l->c.messages[i]; n++) {
			bool reads = op_of(&l->c, n) == LOAD_READ;
			const struct side *to = &l->side[reads ? i : !i],
					  *from = &l->side[reads ? !i : i];
			size_t off = (size_t)n * l->c.message_bytes;

			if (memcmp(to->region + l->half + off, from->region + off,
				   l->c.message_bytes) != 0)
				return false;
		}
	return true;
}

void load_end(struct load *l, uint64_t now_ns)
{
	for (unsigned i = 0; i < 2; i++) {
		ur_engine_destroy_qp(l->side[i].at.engine, l->side[i].qp, now_ns);
		while (l->side[i].memory_cnt)
			free(l->side[i].memory[--l->side[i].memory_cnt]);
	}
	free(l);
}
