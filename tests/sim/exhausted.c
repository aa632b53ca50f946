/* SPDX-License-Identifier: BSD-3-Clause */
#include "exhausted.h"

static bool is_for(const struct ur_packet *p, const struct sim_qp *qp)
{
	return p->bth.dqpn.v == qp->qpn.v &&
	       (ur_gid_eq(&p->ip.dst, &qp->ep->gid4) || ur_gid_eq(&p->ip.dst, &qp->ep->gid6));
}

/* True if the packet or its answer has that PSN. */
static bool covers(const struct ur_packet *p, struct ur_psn psn, uint32_t mtu)
{
	uint32_t cnt = 1;

	if (p->op & UR_OP_READ_REQ && p->reth.length)
		cnt = (p->reth.length + mtu - 1) / mtu;
	return !ur_psn_lt(psn, p->bth.psn) && ur_psn_lt(psn, ur_psn_add(p->bth.psn, cnt));
}

bool sim_exhausted_rightly(const struct sim *s, const struct sim_qp *req, const struct sim_qp *rsp,
			   struct ur_psn una)
{
	struct sim_trace_frame f;
	unsigned lost = 0, lost_again = 0;
	bool tried = false, ext = req->attr.mode == UR_MODE_EXTENDED;

	if (rsp->qp->state == IBV_QPS_ERR || s->trace.forgotten)
		return true;
	for (size_t at = 0; sim_trace_next(&s->trace, &at, &f);) {
		struct ur_packet p;
		bool asks, missed = f.fate == SIM_TRACE_LOST || f.fate == SIM_TRACE_CORRUPT;

		if (ur_packet_decode(f.b, f.len, &p) != UR_DROP_NONE ||
		    !(is_for(&p, rsp) || is_for(&p, req)))
			continue;
		asks = is_for(&p, rsp) && p.op & (UR_OP_PROBE | UR_OP_REQUEST) &&
		       (ext || covers(&p, una, 128u << req->attr.mtu));
		if (ext && is_for(&p, req) && p.op & UR_OP_RESPONSE && !missed)
			lost = lost_again = 0;
		tried = tried || asks;
		lost += tried && missed;
		lost_again += tried && missed && (asks || p.op & UR_OP_RESPONSE);
	}
	return lost_again >= req->attr.retry_cnt && lost > req->attr.retry_cnt;
}
