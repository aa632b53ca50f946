/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <arpa/inet.h>

/*
 * The lean sender: all messages of a queue pair are alike and leave from one buffer, so only
 * addresses, number and signal flag change in a prepared chain of work requests.
 */
void perf_bw_start(struct perf_session *s)
{
	const struct perf_params *p = &s->params;
	bool atomic = (s->traits & PERF_T_ATOMIC) != 0;

	for (unsigned i = 0; p->op != PERF_OP_MIXED && i < PERF_BATCH; i++) {
		struct ibv_send_wr *wr = &s->tx_wr[i];

		wr->opcode = perf_op_opcode((enum perf_op)p->op);
		wr->num_sge = (int)p->sge;
		if (atomic) {
			wr->num_sge = 1;
			wr->wr.atomic.rkey = s->remote_rkey;
			wr->wr.atomic.compare_add = p->op == PERF_OP_FETCH_ADD;
			wr->wr.atomic.swap = 1;
		} else if (p->type != PERF_TYPE_UD) {
			wr->wr.rdma.rkey = s->remote_rkey;
		}
	}
}

static uint64_t target(const struct perf_session *s, const struct perf_qp *q)
{
	switch ((enum perf_op)s->params.op) {
	case PERF_OP_READ:
		return q->remote + s->layout.rd;
	case PERF_OP_CAS:
		return q->remote + PERF_AT_CAS;
	case PERF_OP_FETCH_ADD:
		return s->remote_addr;
	default:
		return q->remote + s->layout.wr;
	}
}

uint32_t perf_bw_post(struct perf_session *s, struct perf_qp *q, uint32_t cnt)
{
	const uint64_t mask = q->idx == s->ping ? 0 : s->params.signal_every - 1;
	const uint64_t remote = target(s, q);
	const unsigned base_flags = perf_size(s, q) <= s->params.inline_bytes &&
						    s->params.inline_bytes != 0 &&
						    (s->traits & PERF_T_SOURCE) != 0
					    ? IBV_SEND_INLINE
					    : 0;
	const bool ud = s->params.type == PERF_TYPE_UD;
	struct ibv_sge *pieces = perf_pieces(s, q);
	uint64_t n = q->tx_next;
	uint32_t taken;

	for (uint32_t i = 0; i < cnt; i++) {
		struct ibv_send_wr *wr = &s->tx_wr[i];

		wr->imm_data = htonl((uint32_t)n);
		n++;
		wr->wr_id = perf_wr_id(PERF_WR_TX, q->idx, (uint32_t)n);
		wr->sg_list = pieces;
		wr->send_flags = base_flags;
		if (ud) {
			wr->wr.ud.ah = q->ah;
			wr->wr.ud.remote_qpn = q->remote_qpn;
			wr->wr.ud.remote_qkey = q->remote_qkey;
		} else {
			wr->wr.rdma.remote_addr = remote; /* atomic's is at the same place */
		}
		if ((n & mask) != 0 && n != q->tx_limit)
			continue;
		wr->send_flags = base_flags | IBV_SEND_SIGNALED;
		if (s->stamps != NULL)
			*perf_stamp(s, q, n - 1) = s->now_ns;
	}
	taken = perf_traffic_post(s, q, cnt);
	q->tx_next += taken;
	if (taken > 0 && q->tx_next == q->tx_limit)
		q->tx_signaled = q->tx_next;
	else if ((q->tx_next & ~mask) > q->tx_signaled)
		q->tx_signaled = q->tx_next & ~mask;
	return taken;
}
