/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_RSOCKET_PEER_H
#define TESTS_RSOCKET_PEER_H

#include "rsocket/flow.h"
#include "rsocket_pair.h"

/* A peer that speaks the protocol as it likes, by verbs, against an rsocket: it is at A, the rsocket at B. */

static uint8_t memory[4096] __attribute__((aligned(16)));

struct peer {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ur_rs_offer theirs;
	int listener, fd; /* the rsockets */
};

static inline void post_receive(struct rdma_cm_id *id)
{
	struct ibv_recv_wr wr = {0}, *bad;

	cr_assert_eq(ibv_post_recv(id->qp, &wr, &bad), 0);
}

/* Calls the listener, which accepts. memory[] has two targets at 0, and a buffer of 2048 bytes behind. */
static inline struct peer connect_peer_to(int listener, uint32_t rkey_spoiled)
{
	struct peer p = {.listener = listener};
	struct ur_rs_offer own = {.credits = 16, .has_maps = true};
	uint8_t bytes[UR_RS_OFFER_BYTES];
	struct rdma_cm_event *e;
	int maps = 2;

	rsetsockopt(p.listener, SOL_RDMA, RDMA_IOMAPSIZE, &maps, sizeof(maps));
	p.id = resolve(IP_B, RDMA_PS_TCP);
	make_qp(p.id);
	for (int i = 0; i < 4; i++)
		post_receive(p.id);
	p.mr = ibv_reg_mr(p.id->pd, memory, sizeof(memory),
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(p.mr);
	own.targets = (struct ur_rs_sge){(uintptr_t)memory, p.mr->rkey, 2};
	own.buffer = (struct ur_rs_sge){(uintptr_t)memory + 2048, p.mr->rkey ^ rkey_spoiled, 2048};
	ur_rs_put_offer(bytes, &own);
	param.private_data = bytes;
	param.private_data_len = sizeof(bytes);
	cr_assert_eq(rdma_connect(p.id, &param), 0);
	p.fd = raccept(p.listener, NULL, NULL);
	cr_assert_geq(p.fd, 0, "%s", strerror(errno));
	e = next_event(ch[A], RDMA_CM_EVENT_ESTABLISHED);
	cr_assert(ur_rs_get_offer(e->param.conn.private_data, UR_RS_OFFER_BYTES, &p.theirs));
	rdma_ack_cm_event(e);
	return p;
}

static inline struct peer connect_peer(uint32_t rkey_spoiled)
{
	return connect_peer_to(serve(IP_B), rkey_spoiled);
}

static inline void reap(struct peer *p)
{
	struct ibv_wc wc;
	uint64_t until = now_ms() + PATIENCE_MS;

	while (!ibv_poll_cq(p->id->send_cq, 1, &wc))
		cr_assert_lt(now_ms(), until);
}

/* A message without data; what it says is not true. */
static inline void send_control(struct peer *p, uint32_t word)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htonl(word)},
			   *bad;

	cr_assert_eq(ibv_post_send(p->id->qp, &wr, &bad), 0);
	reap(p);
}

/* The peer writes the second entry of the rsocket's table. */
static inline void write_target(struct peer *p, enum ibv_wr_opcode how)
{
	struct ur_rs_sge *e = (void *)memory;
	struct ibv_sge sge = {(uintptr_t)e, sizeof(*e), p->mr->lkey};
	struct ibv_send_wr wr = {.opcode = how,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = htonl(ur_rs_word(UR_RS_CREDIT, 16)),
				 .wr.rdma = {p->theirs.targets.addr + UR_RS_SGE_BYTES,
					     p->theirs.targets.key}},
			   *bad;

	*e = (struct ur_rs_sge){(uintptr_t)memory + 2048, p->mr->rkey, 2048};
	cr_assert_eq(ibv_post_send(p->id->qp, &wr, &bad), 0);
	reap(p);
}

/* Takes so many messages. Returns what the last one says. */
static inline uint32_t await_messages(struct peer *p, unsigned cnt)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc = {0};

	while (cnt) {
		cr_assert_lt(now_ms(), until);
		if (ibv_poll_cq(p->id->recv_cq, 1, &wc) <= 0)
			continue;
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cnt--;
	}
	return ntohl(wc.imm_data);
}

static inline void drop_peer(struct peer *p)
{
	rclose(p->listener);
	free_id(p->id);
	ibv_dereg_mr(p->mr);
}

#endif
