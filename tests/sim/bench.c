/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include <stdlib.h>

struct bench *bench_new(enum ur_mode mode, const char *name, const struct bench_attr *attr)
{
	static const struct bench_attr none;
	struct bench *b = calloc(1, sizeof(*b));
	struct sim_attr sa;
	struct sim_qp_attr qa[2];

	if (!b)
		abort();
	if (!attr)
		attr = &none;
	sa = sim_defaults(sim_mode_case(mode, name), attr->number);
	sa.seed = 0;
	sa.window = attr->window ? attr->window : sa.window;
	sa.max_qp = attr->max_qp ? attr->max_qp : sa.max_qp;
	b->s = sim_new(&sa);
	for (unsigned i = 0; i < 2; i++) {
		sim_cq_init(&b->cq[i], attr->cqe ? attr->cqe : 64);
		sim_mr_init(&b->mr[i], &b->s->ep[i], attr->bytes ? attr->bytes : BENCH_BYTES,
			    SIM_ACCESS_ALL);
		sim_pattern(b->mr[i].p, b->mr[i].len, i + 1);
		qa[i] = sim_qp_defaults(&b->cq[i], &b->cq[i]);
		qa[i].type = attr->type ? attr->type : IBV_QPT_RC;
		qa[i].mtu = attr->mtu ? attr->mtu : IBV_MTU_1024;
		qa[i].v6 = attr->v6;
		qa[i].mode = mode;
	}
	if (attr->access)
		qa[1].access = attr->access;
	if (attr->set_rnr)
		qa[0].rnr_retry = attr->rnr_retry;
	if (attr->set_retry) {
		qa[0].retry_cnt = attr->retry_cnt;
		qa[0].timeout = attr->timeout;
	}
	if (attr->srq) {
		sim_srq_init(&b->srq, 16, 4);
		qa[1].srq = &b->srq;
	}
	sim_qp_create(&b->qp[0], &b->s->ep[0], &qa[0]);
	sim_qp_create(&b->qp[1], &b->s->ep[1], &qa[1]);
	if (!attr->unconnected)
		sim_qp_connect(&b->qp[0], &b->qp[1]);
	return b;
}

void bench_free(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++) {
		sim_qp_destroy(&b->qp[i]);
		sim_mr_free(&b->mr[i]);
		sim_cq_free(&b->cq[i]);
	}
	if (b->srq.ring)
		sim_srq_free(&b->srq);
	sim_free(b->s);
	free(b);
}

static struct ibv_send_wr request(struct bench *b, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge *sge = &b->sge[b->sge_next++ % 8];

	*sge = sim_sge(&b->mr[0], 0, len);
	return (struct ibv_send_wr){.sg_list = sge,
				    .num_sge = len ? 1 : 0,
				    .opcode = opcode,
				    .send_flags = IBV_SEND_SIGNALED};
}

struct ibv_send_wr bench_send(struct bench *b, uint64_t wr_id, uint32_t len)
{
	struct ibv_send_wr wr = request(b, IBV_WR_SEND, len);

	wr.wr_id = wr_id;
	return wr;
}

struct ibv_send_wr bench_rdma(struct bench *b, enum ibv_wr_opcode opcode, size_t remote_off,
			      uint32_t len)
{
	struct ibv_send_wr wr = request(b, opcode, len);

	wr.wr.rdma.remote_addr = (uintptr_t)b->mr[1].p + remote_off;
	wr.wr.rdma.rkey = b->mr[1].key;
	return wr;
}

struct ibv_send_wr bench_atomic(struct bench *b, size_t remote_off, uint64_t add)
{
	struct ibv_send_wr wr = request(b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);

	wr.wr.atomic.remote_addr = (uintptr_t)b->mr[1].p + remote_off;
	wr.wr.atomic.rkey = b->mr[1].key;
	wr.wr.atomic.compare_add = add;
	return wr;
}

void bench_recv(struct bench *b, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = sim_sge(&b->mr[1], 0, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	int err = b->qp[1].attr.srq ? sim_post_srq(&b->srq, &wr) : sim_post_recv(&b->qp[1], &wr);

	SIM_CHECK(b->s, err == 0, "cannot post a receive: %d", err);
}

enum sim_verdict bench_unalign(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			       const struct ur_packet *p)
{
	(void)s, (void)from, (void)len;
	if (p->op & UR_OP_ATOMIC) {
		frame[p->bth_off + UR_BTH_BYTES + (p->op & UR_OP_XTH ? UR_XTH_BYTES : 0) + 7] |= 1;
		sim_reseal(frame, p);
	}
	return SIM_PASS;
}
