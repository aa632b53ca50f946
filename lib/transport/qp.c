/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/qp.h"

#include <errno.h>

#include "transport/admission.h"
#include "transport/dest.h"
#include "transport/qp_state.h"
#include "transport/send_queue.h"
#include "wire/assert.h"

static bool in_error(const struct ur_qp *qp)
{
	return qp->state == IBV_QPS_ERR;
}

static void tell_drained(struct ur_qp *qp)
{
	if (qp->drained || qp->req.cur_off || !qp->ops->is_idle(qp))
		return;
	qp->drained = true;
	if (qp->sqd_notify)
		qp->core->sink.async(qp->core->sink.ctx, IBV_EVENT_SQ_DRAINED, qp->user);
}

void ur_qp_act(struct ur_qp *qp)
{
	enum ibv_wc_status send_status = qp->fail_send, recv_status = qp->fail_recv;

	qp->fail_send = qp->fail_recv = IBV_WC_SUCCESS;
	if (recv_status != IBV_WC_SUCCESS)
		ur_qp_error(qp, send_status, recv_status);
	else if (send_status != IBV_WC_SUCCESS)
		ur_qp_send_error(qp, send_status);
	if (qp->state == IBV_QPS_SQD)
		tell_drained(qp);
}

void ur_qp_posted(struct ur_qp *qp)
{
	const struct ur_qp_ops *ops = qp->ops;

	if (__builtin_expect(ops->follow_sl != NULL, 0))
		ops->follow_sl(qp);
	if (__builtin_expect(qp->admission & UR_ADM_HOLDER, 0))
		ur_admission_update(qp, ops->asks(qp));
	ur_emux_set(&qp->core->emux, &qp->sq_queue, ops->ready(qp));
}

/* TIMER-KEEP-01. The timer is armed again: what it was armed for last is not over, so it is used often. */
static void arm_timer(struct ur_qp *qp, uint64_t deadline_ns)
{
	struct ur_wheel *w = &qp->core->wheel;

	qp->req.keeps_timer = qp->timer.deadline_ns > ur_wheel_time(w);
	ur_timer_set(w, &qp->timer, deadline_ns);
}

/* A timer that fires too early looks again; that is cheaper than moving it with each ACK. */
void ur_qp_follow_deadline(struct ur_qp *qp)
{
	uint64_t deadline = qp->ops->deadline(qp);

	if (deadline == UR_NEVER)
		ur_qp_rest_timer(qp);
	else if (!in_error(qp) && (!qp->timer.armed || deadline < qp->timer.deadline_ns))
		arm_timer(qp, deadline);
}

void ur_qp_update_ready(struct ur_qp *qp)
{
	ur_qp_follow_deadline(qp);
	ur_qp_posted(qp);
}

void ur_qp_sent_all(struct ur_qp *qp)
{
	ur_emux_set(&qp->core->emux, &qp->sq_queue, false);
	ur_qp_follow_deadline(qp);
}

void ur_qp_update(struct ur_qp *qp)
{
	if (ur_dest_is_watched(qp))
		ur_dest_count_flight(qp);
	ur_qp_update_ready(qp);
}

void ur_qp_set_state(struct ur_qp *qp, enum ibv_qp_state state)
{
	qp->state = (uint8_t)state;
	/* A poster of receives reads this after it stored the tail; a flush reads the tail after this. */
	atomic_store_explicit(&qp->posted_state, (uint8_t)state, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	ur_qp_update(qp);
}

static void flush_sq(struct ur_qp *qp)
{
	struct ur_requester *req = &qp->req;
	uint32_t tail = ur_wq_tail(&qp->sq);

	while (req->head != tail)
		ur_send_queue_finish(qp, IBV_WC_WR_FLUSH_ERR);
	req->cur = req->head;
	req->cur_off = 0;
	req->local_err = 0;
}

static void flush_rq(struct ur_qp *qp)
{
	if (qp->srq) {
		ur_responder_abort(qp, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	while (qp->rsp.wqe || ur_responder_bind(qp))
		ur_responder_abort(qp, IBV_WC_WR_FLUSH_ERR);
}

/* QP-FLUSH-01 */
void ur_qp_flush(struct ur_qp *qp)
{
	if (!in_error(qp) && qp->state != IBV_QPS_SQE)
		return;
	flush_sq(qp);
	if (in_error(qp))
		flush_rq(qp);
}

static void stop_sending(struct ur_qp *qp)
{
	qp->ops->stop_sending(qp);
	ur_timer_cancel(&qp->core->wheel, &qp->timer);
}

void ur_qp_error(struct ur_qp *qp, enum ibv_wc_status send_status, enum ibv_wc_status recv_status)
{
	struct ur_core *core = qp->core;

	qp->fail_send = qp->fail_recv = IBV_WC_SUCCESS;
	if (in_error(qp) || qp->state == IBV_QPS_RESET)
		return;
	stop_sending(qp);
	qp->ops->stop_responding(qp);
	ur_admission_forget(qp);
	ur_qp_set_state(qp, IBV_QPS_ERR);
	if (qp->req.head != ur_wq_tail(&qp->sq) && send_status != IBV_WC_SUCCESS)
		ur_send_queue_finish(qp, send_status);
	qp->ops->abort(qp, recv_status);
	ur_qp_flush(qp);
	if (qp->srq)
		core->sink.async(core->sink.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, qp->user);
}

/* QP-SQE-01 */
void ur_qp_send_error(struct ur_qp *qp, enum ibv_wc_status status)
{
	if (qp->ops->reliable) {
		ur_qp_error(qp, status, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	stop_sending(qp);
	ur_qp_set_state(qp, IBV_QPS_SQE);
	ur_send_queue_finish(qp, status);
	flush_sq(qp);
}

/* UC-REQ-DONE-01 */
void ur_qp_complete_sent(struct ur_qp *qp)
{
	struct ur_requester *req = &qp->req;

	if (in_error(qp) || qp->state == IBV_QPS_RESET)
		return;
	while (req->head != req->cur)
		ur_send_queue_finish(qp, IBV_WC_SUCCESS);
	ur_send_queue_advance(qp);
	ur_qp_act(qp);
	ur_qp_update(qp);
}

/*
 * The peer is silent because we are: what asks for an answer has not been sent yet. Its destination
 * delays it, PACE-TIMER-01, or it waits for its turn and the peer was not asked to answer what it
 * sent last: the next packet will, and until then silence tells nothing. SCHED-SILENCE-01
 */
static void extend_deadlines(struct ur_qp *qp, uint64_t now_ns)
{
	struct ur_requester *req = &qp->req;

	if (ur_dest_delays(qp)) {
		qp->ops->rearm(qp, true, now_ns);
	} else if (req->since_ackreq && ur_emux_is_active(&qp->sq_queue)) {
		if (req->since_ackreq < req->ackreq_every)
			req->since_ackreq = req->ackreq_every - 1;
		qp->ops->rearm(qp, false, now_ns);
	}
}

void ur_qp_timer(struct ur_qp *qp, uint64_t now_ns)
{
	uint64_t deadline = qp->ops->deadline(qp);

	if (in_error(qp))
		return;
	/* What it was armed for was answered. */
	if (now_ns < deadline) {
		if (deadline != UR_NEVER)
			arm_timer(qp, deadline);
		return;
	}
	extend_deadlines(qp, now_ns);
	qp->ops->expire(qp, now_ns);
	ur_qp_act(qp);
	ur_qp_update(qp);
}

/* SCHED-SL-01: what a queue pair sends, requests and responses, goes on the lane of its SL. */
void ur_qp_set_sl(struct ur_qp *qp, uint8_t sl)
{
	ur_emux_set_sl(&qp->core->emux, &qp->sq_queue, sl);
	ur_emux_set_sl(&qp->core->emux, &qp->rsp_queue, sl);
}

/*
 * RC-REQ-PART-01. Sixteen requests fill the window, so that those behind one that is lost tell of
 * it while the peer still has answers to send.
 */
static uint8_t read_psns(uint32_t window)
{
	uint8_t n = 32;

	while (n > 8 && 16 * n > window)
		n /= 2;
	while (n > 1 && 4 * n > window)
		n /= 2;
	return n;
}

/* QP-RESET-01 */
void ur_qp_reset(struct ur_qp *qp)
{
	struct ur_core *core = qp->core;
	struct ur_responder *rsp = &qp->rsp;

	ur_emux_set(&core->emux, &qp->sq_queue, false);
	ur_emux_set(&core->emux, &qp->rsp_queue, false);
	ur_sched_set(qp->ops->reliable ? &core->acks : &core->settle, &qp->ack_node, false);
	ur_sched_set(&core->cnps, &qp->cnp_node, false);
	ur_dest_detach(qp);
	ur_admission_forget(qp);
	ur_timer_cancel(&core->wheel, &qp->timer);
	qp->ops->release(qp);
	atomic_store_explicit(&qp->posted_state, IBV_QPS_RESET, memory_order_release);
	qp->state = IBV_QPS_RESET;
	ur_qp_set_sl(qp, 0);
	qp->req = (struct ur_requester){
		.head = ur_wq_tail(&qp->sq),
		.cur = ur_wq_tail(&qp->sq),
		.ssn = {1},
		.read_psns = read_psns(qp->window),
		.ackreq_every = qp->req.ackreq_every,
		.last_stamp = qp->req.last_stamp,
	};
	ur_wq_release(&qp->sq, qp->req.head);
	ur_wq_release(&qp->rq, ur_wq_tail(&qp->rq));
	*rsp = (struct ur_responder){
		.res = rsp->res, .ans = rsp->ans, .ans_cap = rsp->ans_cap, .srq_wqe = rsp->srq_wqe};
	/* EXT-WINDOW-02: of this peer, not of the next. */
	qp->agreed.wide = 0;
	qp->ops->init(qp);
	memset(rsp->res, 0, qp->res_max * sizeof(*rsp->res));
	qp->mtu_shift = qp->port_mtu_shift;
	qp->comm_est = qp->sqd_notify = qp->drained = qp->rearm = false;
	qp->access = 0;
	qp->dest_qpn = ur_qpn(0);
	qp->attr = (struct ur_qp_attr){0};
	qp->fail_send = qp->fail_recv = IBV_WC_SUCCESS;
}

/* QP-MODE-02 */
int ur_qp_set_paths(struct ur_qp *qp, uint8_t paths)
{
	if (!ur_qp_may_choose_mode(qp) || paths > UR_SPRAY_MAX)
		return -EINVAL;
	qp->paths = paths;
	return 0;
}

/* ADM-AGREE-01 */
int ur_qp_set_agreed(struct ur_qp *qp, const struct ur_adm_agreed *agreed)
{
	if (!ur_qp_may_choose_mode(qp) || agreed->tables > 7 || agreed->wide > UR_WIDE_MAX)
		return -EINVAL;
	qp->agreed = *agreed;
	return 0;
}

/* ---- modify ---- */

int ur_qp_modify_check(const struct ur_qp *qp, const struct ibv_qp_attr *a, int mask,
		       const struct ur_path_attr *path)
{
	enum ibv_qp_state cur = qp->state, next = mask & IBV_QP_STATE ? a->qp_state : cur;
	int rc;

	/* An application that says what it believes the state to be must be right (or SQE/RTS). */
	if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != cur)
		return -EINVAL;
	/* No automatic path migration: there is one path. */
	if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
		return -EINVAL;
	rc = ur_qp_state_check(qp->ops->service, cur, next, mask);
	if (rc)
		return rc;
	/* What is being answered cannot be moved. */
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && qp->ops->is_answering(qp))
		return -EBUSY;
	if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096 ||
					 7u + a->path_mtu > qp->port_mtu_shift))
		return -EINVAL;
	if ((mask & IBV_QP_TIMEOUT && a->timeout > 31) ||
	    (mask & IBV_QP_RETRY_CNT && a->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && a->rnr_retry > 7) ||
	    (mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > UR_RD_ATOMIC_MAX) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > qp->res_max) ||
	    (mask & IBV_QP_PORT && a->port_num != 1) || (mask & IBV_QP_AV && a->ah_attr.sl > 15) ||
	    (mask & IBV_QP_PKEY_INDEX && a->pkey_index != 0) ||
	    (mask & IBV_QP_DEST_QPN && a->dest_qp_num > UR_PSN_MASK) || (mask & IBV_QP_AV && !path))
		return -EINVAL;
	return 0;
}

static void set_number(struct ur_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ur_requester *req = &qp->req;
	struct ur_responder *rsp = &qp->rsp;

#define COPY(bit, field)                                                                           \
	do {                                                                                       \
		if (mask & (bit))                                                                  \
			qp->attr.field = a->field;                                                 \
	} while (0)
	COPY(IBV_QP_RQ_PSN, rq_psn);
	COPY(IBV_QP_AV, ah_attr);
	COPY(IBV_QP_PKEY_INDEX, pkey_index);
	COPY(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	COPY(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(IBV_QP_PORT, port_num);
	COPY(IBV_QP_TIMEOUT, timeout);
	COPY(IBV_QP_RETRY_CNT, retry_cnt);
	COPY(IBV_QP_RNR_RETRY, rnr_retry);
#undef COPY
	if (mask & IBV_QP_PATH_MTU) {
		qp->attr.path_mtu = (uint8_t)a->path_mtu;
		qp->mtu_shift = (uint8_t)(7 + a->path_mtu);
	}
	if (mask & IBV_QP_QKEY)
		qp->ud_rsp.qkey = a->qkey; /* UD alone has one */
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->access = a->qp_access_flags;
	if (mask & IBV_QP_DEST_QPN)
		qp->dest_qpn = ur_qpn(a->dest_qp_num);
	if (mask & IBV_QP_RQ_PSN) {
		rsp->epsn = ur_psn(a->rq_psn);
		qp->ops->set_epsn(qp);
	}
	if (mask & IBV_QP_MIN_RNR_TIMER)
		rsp->min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		qp->ops->resize(qp, a->max_dest_rd_atomic);
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		req->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_SQ_PSN)
		qp->ops->set_first_psn(qp, ur_psn(a->sq_psn));
	if (mask & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN))
		qp->ops->set_limits(qp);
}

static void set_path(struct ur_qp *qp, const struct ur_path_attr *attr)
{
	struct ur_path path;

	ur_path_init(&path, attr);
	qp->sport_be = qp->answer_sport_be = __builtin_bswap16(attr->sport);
	ur_path_pool_replace(&qp->core->paths, &qp->path, &path);
}

void ur_qp_modify(struct ur_qp *qp, const struct ibv_qp_attr *a, int mask,
		  const struct ur_path_attr *path)
{
	enum ibv_qp_state cur = qp->state, next = mask & IBV_QP_STATE ? a->qp_state : cur;

	if (next == IBV_QPS_RESET) {
		ur_qp_reset(qp);
		return;
	}
	if (next == IBV_QPS_ERR) {
		if (cur == IBV_QPS_RESET)
			ur_qp_set_state(qp, IBV_QPS_ERR);
		else
			ur_qp_error(qp, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	set_number(qp, a, mask);
	if (mask & IBV_QP_AV) {
		set_path(qp, path);
		ur_qp_set_sl(qp, a->ah_attr.sl);
	}
	if (next == IBV_QPS_SQD && cur != IBV_QPS_SQD) {
		qp->drained = false;
		qp->sqd_notify = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
		qp->ops->drain(qp);
	}
	ur_qp_set_state(qp, next);
	ur_qp_act(qp);
}

void ur_qp_query(const struct ur_qp *qp, struct ibv_qp_attr *out)
{
	const struct ur_qp_attr *a = &qp->attr;
	struct ur_qp_numbers n = qp->ops->numbers(qp);

	*out = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)qp->state,
		.cur_qp_state = (enum ibv_qp_state)qp->state,
		.path_mtu = (enum ibv_mtu)a->path_mtu,
		.qkey = n.qkey,
		.rq_psn = qp->rsp.epsn.v,
		.sq_psn = n.nxt.v,
		.dest_qp_num = qp->dest_qpn.v,
		.qp_access_flags = qp->access,
		.cap = {.max_send_wr = qp->sq.entries,
			.max_recv_wr = qp->rq.entries,
			.max_send_sge = qp->sq.max_sge,
			.max_recv_sge = qp->rq.max_sge,
			.max_inline_data = qp->sq.max_inline},
		.ah_attr = a->ah_attr,
		.pkey_index = a->pkey_index,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.sq_draining = qp->state == IBV_QPS_SQD && !qp->drained,
		.max_rd_atomic = qp->req.max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = qp->rsp.min_rnr_timer,
		.port_num = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
	};
}

void ur_qp_validate(const struct ur_qp *qp)
{
	const struct ur_requester *req = &qp->req;
	const struct ur_responder *rsp = &qp->rsp;
	uint32_t tail = ur_wq_tail(&qp->sq);

	UR_ASSERT(req->head == ur_wq_head(&qp->sq));
	UR_ASSERT(req->cur - req->head <= tail - req->head && tail - req->head <= qp->sq.entries);
	UR_ASSERT(req->cur != tail || !req->cur_off);
	UR_ASSERT(!qp->fail_send);
	UR_ASSERT(rsp->res_cnt <= qp->res_max);
	UR_ASSERT(qp->has_srq == (qp->srq != NULL));
	qp->ops->validate(qp);
	UR_ASSERT(ur_emux_is_active(&qp->sq_queue) == qp->ops->ready(qp) ||
		  atomic_load_explicit(&qp->pending, memory_order_relaxed));
	UR_ASSERT(rsp->kind != UR_MSG_SEND || rsp->wqe || qp->state == IBV_QPS_ERR ||
		  qp->state == IBV_QPS_RESET);
	UR_ASSERT(in_error(qp) || qp->ops->deadline(qp) == UR_NEVER ||
		  (qp->timer.armed && qp->timer.deadline_ns <= qp->ops->deadline(qp)));
	UR_ASSERT(!qp->admission || qp->ops->connect);
}
