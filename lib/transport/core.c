/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/core.h"

void ur_core_complete(struct ur_core *core, struct ur_cq *cq, const struct ibv_wc *wc,
		      bool solicited)
{
	if (__builtin_expect(cq->worker != core->worker, 0)) {
		core->sink.cross_worker(core->sink.ctx, cq, wc, solicited);
		return;
	}
	switch (ur_cq_push(cq, wc, solicited)) {
	case UR_CQ_PUSHED:
		break;
	case UR_CQ_NOTIFY:
		core->sink.completion(core->sink.ctx, cq);
		break;
	case UR_CQ_OVERFLOW:
		core->cnt.cq_overflow++;
		core->sink.async(core->sink.ctx, IBV_EVENT_CQ_ERR, cq->user);
		break;
	case UR_CQ_DEAD:
		core->cnt.cq_overflow++;
		break;
	}
}
