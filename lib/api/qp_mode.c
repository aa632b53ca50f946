/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/qp_mode.h"

#include <errno.h>

#include "api/device.h"
#include "api/word.h"
#include "engine/query.h"

/* The modes of the configuration have the values of the API. */
_Static_assert((int)UR_TRANSPORT_MODE_AUTO == (int)UROCE_QP_MODE_AUTO &&
		       (int)UR_TRANSPORT_MODE_EXTENDED == (int)UROCE_QP_MODE_EXTENDED &&
		       (int)UR_TRANSPORT_MODE_REORDER == (int)UROCE_QP_MODE_REORDER &&
		       (int)UR_TRANSPORT_MODE_GBN == (int)UROCE_QP_MODE_GBN &&
		       UR_CONFIG_SPRAY_ALL == UROCE_SPRAY_ALL,
	       "keep both lists in one order");

#define SPRAY_MIN 2
#define SPRAY_MAX 16

/* ---- decision ---- */

static bool may_extend(const struct ur_mode_case *c)
{
	return c->rc && (c->want == UROCE_QP_MODE_EXTENDED || c->want == UROCE_QP_MODE_AUTO);
}

bool ur_mode_offers(const struct ur_mode_case *c)
{
	return may_extend(c) && c->by_cm && c->room;
}

static struct ur_mode_verdict fall_back(const struct ur_mode_case *c,
					enum uroce_qp_mode_reason reason)
{
	return (struct ur_mode_verdict){
		.ok = c->want != UROCE_QP_MODE_EXTENDED, .mode = UR_MODE_REORDER, .reason = reason};
}

/* CM-EXT-02, CM-EXT-05, CM-EXT-06 */
struct ur_mode_verdict ur_mode_decide(const struct ur_mode_case *c)
{
	struct ur_mode_verdict v = {.ok = true, .reason = UROCE_MODE_REASON_CHOSEN};

	if (!c->rc) {
		v.mode = UR_MODE_GBN;
		v.reason = UROCE_MODE_REASON_SERVICE;
		return v;
	}
	switch (c->want) {
	case UROCE_QP_MODE_GBN:
		v.mode = UR_MODE_GBN;
		return v;
	case UROCE_QP_MODE_REORDER:
		v.mode = UR_MODE_REORDER;
		return v;
	case UROCE_QP_MODE_EXTENDED:
		if (c->by_cm)
			break;
		v.mode = UR_MODE_EXTENDED;
		return v;
	case UROCE_QP_MODE_AUTO:
		if (!c->by_cm)
			return fall_back(c, UROCE_MODE_REASON_BY_HAND);
		break;
	}
	if (!c->room)
		return fall_back(c, UROCE_MODE_REASON_PRIVATE_DATA);
	if (!may_extend(c) || !c->peer)
		return fall_back(c, UROCE_MODE_REASON_PEER);
	v.mode = UR_MODE_EXTENDED;
	v.reason = UROCE_MODE_REASON_AGREED;
	return v;
}

bool ur_mode_in_order(bool rc, bool strict, enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return rc;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return rc && strict;
	default:
		return false;
	}
}

int ur_mode_want_check(const struct uroce_qp_mode_attr *attr, int mask,
		       const struct ur_mode_want *old)
{
	enum uroce_qp_mode mode = mask & UROCE_QP_MODE ? attr->mode : old->mode;
	uint8_t spray = mask & UROCE_QP_SPRAY ? attr->spray : old->spray;

	if (mask & ~(UROCE_QP_MODE | UROCE_QP_STRICT | UROCE_QP_SPRAY) ||
	    (unsigned)mode > UROCE_QP_MODE_GBN)
		return EINVAL;
	if (!(mask & UROCE_QP_SPRAY) || !spray)
		return 0;
	if ((spray < SPRAY_MIN || spray > SPRAY_MAX) && spray != UROCE_SPRAY_ALL)
		return EINVAL;
	return mode == UROCE_QP_MODE_REORDER || mode == UROCE_QP_MODE_GBN ? EINVAL : 0;
}

/* ---- the application's calls ---- */

int uroce_set_qp_mode(struct ibv_qp *base, const struct uroce_qp_mode_attr *attr, int mask)
{
	struct ur_api_qp *qp = UR_API(qp, base);
	struct ibv_qp_attr now;
	int rc;

	if (base->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP;
	uroce_query_qp(base, &now, IBV_QP_STATE, NULL);
	if (now.qp_state != IBV_QPS_RESET && now.qp_state != IBV_QPS_INIT)
		return EINVAL;
	if (ur_cm_api_connecting(ur_device(base->context), base))
		return EBUSY;
	pthread_mutex_lock(&base->mutex);
	rc = ur_mode_want_check(attr, mask, &qp->want);
	if (!rc) {
		if (mask & UROCE_QP_MODE)
			qp->want.mode = attr->mode;
		if (mask & UROCE_QP_STRICT)
			qp->want.strict = attr->strict;
		if (mask & UROCE_QP_SPRAY)
			qp->want.spray = attr->spray;
	}
	pthread_mutex_unlock(&base->mutex);
	return rc;
}

struct ur_mode_want ur_api_qp_want(struct ur_api_qp *qp)
{
	struct ur_mode_want want;

	pthread_mutex_lock(&qp->base.mutex);
	want = qp->want;
	pthread_mutex_unlock(&qp->base.mutex);
	return want;
}

void ur_api_record_qp_mode(struct ur_api_qp *qp, enum uroce_qp_mode_reason reason)
{
	struct ur_device *dev = ur_device(qp->base.context);

	qp->reason = reason;
	if (reason != UROCE_MODE_REASON_OPEN)
		atomic_fetch_add_explicit(&dev->mode_cnt[reason], 1, memory_order_relaxed);
}

struct query_mode {
	const struct ur_qp *qp;
	struct ur_qp_view view;
};

static void query_on_worker(void *arg, uint64_t now_ns)
{
	struct query_mode *q = arg;

	ur_engine_view_qp(q->qp, &q->view);
}

int uroce_query_qp_mode(struct ibv_qp *base, struct uroce_qp_mode_attr *attr)
{
	static const enum uroce_qp_mode names[] = {
		[UR_MODE_GBN] = UROCE_QP_MODE_GBN,
		[UR_MODE_REORDER] = UROCE_QP_MODE_REORDER,
		[UR_MODE_EXTENDED] = UROCE_QP_MODE_EXTENDED,
	};
	struct ur_api_qp *qp = UR_API(qp, base);
	struct query_mode q = {.qp = qp->qp};
	struct ur_mode_want want = ur_api_qp_want(qp);

	ur_worker_call(qp->worker, query_on_worker, &q);
	*attr = (struct uroce_qp_mode_attr){.mode = want.mode,
					    .strict = want.strict,
					    .spray = want.spray,
					    .reason = qp->reason};
	if (base->qp_type != IBV_QPT_RC ||
	    (q.view.state != IBV_QPS_RESET && q.view.state != IBV_QPS_INIT)) {
		attr->mode = names[q.view.mode];
		attr->strict = q.view.strict;
	}
	return 0;
}

int uroce_query_qp_data_in_order(struct ibv_qp *base, enum ibv_wr_opcode op, uint32_t flags)
{
	struct uroce_qp_mode_attr attr;

	/* Later headers define a flag 1, which queries capabilities; "the whole message" is also 1. */
	if (flags & ~1u)
		return 0;
	uroce_query_qp_mode(base, &attr);
	return ur_mode_in_order(base->qp_type == IBV_QPT_RC, attr.strict, op);
}

const char *uroce_qp_mode_str(enum uroce_qp_mode mode)
{
	static const char *const names[] = {
#define X(NAME, word) word,
		UROCE_QP_MODES(X)
#undef X
	};

	return UR_WORD(names, mode, "unknown");
}

const char *uroce_qp_mode_reason_str(enum uroce_qp_mode_reason reason)
{
	static const char *const texts[] = {
#define X(NAME, word, sentence) sentence,
		UROCE_QP_MODE_REASONS(X)
#undef X
	};

	return UR_WORD(texts, reason, "unknown");
}
