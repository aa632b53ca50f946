/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/qp_ops.h"

#include <errno.h>

#include "timer/wheel.h"
#include "transport/admission.h"
#include "transport/rc/ext.h"
#include "transport/rc/gbn.h"
#include "transport/rc/uc.h"
#include "transport/ud/ud.h"
#include "wire/assert.h"
#include "wire/opcode.h"

/* WQ-OPCODE-01: the operations of each service (IBA 10.2.4, table of QP operations). */
#define BIT(n)	(1u << (n))
#define SENDS	(BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define WRITES	(BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#define ATOMICS (BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))
#define ALL                                                                                        \
	(SENDS | WRITES | ATOMICS | BIT(IBV_WR_RDMA_READ) | BIT(IBV_WR_LOCAL_INV) |                \
	 BIT(IBV_WR_BIND_MW) | BIT(IBV_WR_SEND_WITH_INV))

/* ---- what a kind has not ---- */

static void nothing(struct ur_qp *qp)
{
	(void)qp;
}

static void no_resources(struct ur_qp *qp, uint8_t cnt)
{
	(void)qp, (void)cnt;
}

static bool never(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static uint32_t zero(const struct ur_qp *qp)
{
	(void)qp;
	return 0;
}

static uint64_t no_deadline(const struct ur_qp *qp)
{
	(void)qp;
	return UR_NEVER;
}

static void no_timer(struct ur_qp *qp, uint64_t now_ns)
{
	(void)qp, (void)now_ns;
}

static void no_rearm(struct ur_qp *qp, bool held, uint64_t now_ns)
{
	(void)qp, (void)held, (void)now_ns;
}

/* Its transport has no opcode for that. */
static enum ur_drop no_response(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	(void)qp, (void)p, (void)now_ns;
	return UR_DROP_OPCODE;
}

static bool no_prediction(struct ur_qp *qp, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
	(void)qp, (void)frame, (void)bytes, (void)now_ns;
	return false;
}

static bool no_packet(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns)
{
	(void)qp, (void)tx, (void)now_ns;
	return false;
}

static const struct ur_spray_qp *no_paths(const struct ur_qp *qp)
{
	(void)qp;
	return NULL;
}

/* ---- UC and UD ---- */

static void uc_init(struct ur_qp *qp)
{
	qp->unreliable = (struct ur_unreliable_requester){0};
	qp->gbn_rsp = (struct ur_gbn_responder){0};
}

static void ud_init(struct ur_qp *qp)
{
	qp->unreliable = (struct ur_unreliable_requester){0};
	qp->ud_rsp = (struct ur_ud_responder){0};
}

static void unreliable_set_first_psn(struct ur_qp *qp, struct ur_psn first)
{
	qp->unreliable.nxt = first;
}

/* Its WQEs complete as soon as their packets have left. */
static bool unreliable_is_idle(const struct ur_qp *qp)
{
	return qp->req.head == qp->req.cur;
}

static struct ur_qp_numbers unreliable_numbers(const struct ur_qp *qp)
{
	struct ur_psn nxt = qp->unreliable.nxt;

	return (struct ur_qp_numbers){.una = nxt, .nxt = nxt, .max = nxt};
}

static void unreliable_validate(const struct ur_qp *qp)
{
	UR_ASSERT(!ur_emux_is_active(&qp->rsp_queue));
	UR_ASSERT(!qp->rsp.ack);
}

/* The next WQE may go on another lane. */
static bool ud_next(struct ur_qp *qp, struct ur_tx *tx, uint64_t now_ns, unsigned *wqes)
{
	bool made = ur_ud_next(qp, tx);

	(void)now_ns;
	++*wqes;
	ur_qp_act(qp);
	ur_qp_update(qp);
	return made;
}

static struct ur_qp_numbers ud_numbers(const struct ur_qp *qp)
{
	struct ur_qp_numbers n = unreliable_numbers(qp);

	n.qkey = qp->ud_rsp.qkey;
	return n;
}

/* ---- the table ---- */

static const struct ur_qp_ops kinds[] = {
	{
		.type = IBV_QPT_RC,
		.mode = UR_MODE_GBN,
		.service = UR_SERVICE_RC,
		.transport = UR_TRANSPORT_RC,
		.other_transport = UR_TRANSPORT_EXT,
		.connected = true,
		.reliable = true,
		.opcodes = ALL,
		.sending_end = UR_GBN_SENDING_END,
		.init = ur_gbn_init,
		.release = ur_gbn_release,
		.set_first_psn = ur_gbn_set_first_psn,
		.set_epsn = ur_gbn_set_epsn,
		.set_limits = ur_gbn_set_limits,
		.resize = ur_gbn_resize,
		.stop_sending = ur_gbn_stop_sending,
		.stop_responding = ur_gbn_stop_responding,
		.abort = ur_responder_abort,
		.validate = ur_gbn_validate,
		.ready = ur_requester_ready,
		.burst = ur_requester_burst,
		.next = ur_requester_next,
		.drain = ur_requester_drain,
		.is_idle = ur_gbn_is_idle,
		.asks = never,
		.in_flight = ur_gbn_in_flight,
		.acked = ur_gbn_acked,
		.deadline = ur_gbn_deadline,
		.expire = ur_gbn_expire,
		.rearm = ur_gbn_rearm,
		.request = ur_responder_input,
		.predicted = ur_responder_predicted,
		.predicted_answer = ur_completer_predicted,
		.response = ur_completer_input,
		.response_next = ur_response_next,
		.ack_next = ur_response_next_ack,
		.is_answering = ur_gbn_is_answering,
		.ack_all = ur_response_ack_all,
		.numbers = ur_gbn_numbers,
		.paths = no_paths,
	},
	{
		.type = IBV_QPT_RC,
		.mode = UR_MODE_REORDER,
		.service = UR_SERVICE_RC,
		.transport = UR_TRANSPORT_RC,
		.other_transport = UR_TRANSPORT_EXT,
		.connected = true,
		.reliable = true,
		.keeps_early = true,
		.opcodes = ALL,
		.sending_end = UR_GBN_SENDING_END,
		.init = ur_gbn_init,
		.release = ur_gbn_release,
		.set_first_psn = ur_reorder_set_first_psn,
		.set_epsn = ur_gbn_set_epsn,
		.set_limits = ur_gbn_set_limits,
		.resize = ur_gbn_resize,
		.stop_sending = ur_gbn_stop_sending,
		.stop_responding = ur_gbn_stop_responding,
		.abort = ur_responder_abort,
		.validate = ur_gbn_validate,
		.ready = ur_requester_ready,
		.burst = ur_requester_burst,
		.next = ur_requester_next,
		.drain = ur_requester_drain,
		.is_idle = ur_gbn_is_idle,
		.asks = never,
		.in_flight = ur_gbn_in_flight,
		.acked = ur_gbn_acked,
		.deadline = ur_gbn_reorder_deadline,
		.expire = ur_gbn_expire,
		.rearm = ur_gbn_rearm,
		.request = ur_responder_input,
		.predicted = ur_responder_predicted,
		.predicted_answer = ur_completer_predicted,
		.response = ur_completer_input,
		.response_next = ur_response_next,
		.ack_next = ur_response_next_ack,
		.is_answering = ur_gbn_is_answering,
		.ack_all = ur_response_ack_all,
		.numbers = ur_gbn_numbers,
		.paths = no_paths,
	},
	{
		.type = IBV_QPT_RC,
		.mode = UR_MODE_EXTENDED,
		.asks_delay = true,
		.service = UR_SERVICE_RC,
		.transport = UR_TRANSPORT_EXT,
		.other_transport = UR_TRANSPORT_RC,
		.connected = true,
		.reliable = true,
		.opcodes = ALL,
		.sending_end = UR_EXT_SENDING_END,
		.init = ur_ext_init,
		.release = ur_ext_release,
		.set_first_psn = ur_ext_requester_init,
		.set_epsn = ur_ext_responder_begin,
		.set_limits = ur_ext_set_limits,
		.resize = ur_responder_resize,
		.connect = ur_admission_connect,
		.stop_sending = ur_ext_stop_sending,
		.stop_responding = ur_ext_response_stop,
		.abort = ur_ext_responder_stop,
		.validate = ur_ext_validate,
		.ready = ur_ext_requester_ready,
		.burst = ur_ext_requester_burst,
		.next = ur_ext_requester_next,
		.drain = ur_ext_requester_drain,
		.is_idle = ur_ext_is_idle,
		.asks = ur_ext_requester_asks,
		.in_flight = ur_ext_in_flight,
		.acked = ur_ext_acked,
		.deadline = ur_ext_deadline,
		.expire = ur_ext_expire,
		.rearm = ur_ext_rearm,
		.request = ur_ext_responder_input,
		.predicted = ur_ext_responder_predicted,
		.predicted_answer = ur_ext_completer_predicted,
		.response = ur_ext_completer_input,
		.response_next = ur_ext_response_next,
		.ack_next = ur_ext_response_next_ack,
		.is_answering = ur_ext_is_answering,
		.ack_all = nothing,
		.numbers = ur_ext_numbers,
		.paths = ur_ext_paths,
	},
	{
		.type = IBV_QPT_UC,
		.mode = UR_MODE_GBN,
		.service = UR_SERVICE_UC,
		.transport = UR_TRANSPORT_UC,
		.other_transport = UR_TRANSPORT_UC,
		.connected = true,
		.opcodes = SENDS | WRITES,
		.sending_end = UR_UNRELIABLE_SENDING_END,
		.init = uc_init,
		.release = nothing,
		.set_first_psn = unreliable_set_first_psn,
		.set_epsn = nothing,
		.set_limits = nothing,
		.resize = no_resources,
		.stop_sending = nothing,
		.stop_responding = nothing,
		.abort = ur_responder_abort,
		.validate = unreliable_validate,
		.ready = ur_uc_requester_ready,
		.next = ur_uc_requester_next,
		.drain = nothing,
		.is_idle = unreliable_is_idle,
		.asks = never,
		.in_flight = zero,
		.acked = zero,
		.deadline = no_deadline,
		.expire = no_timer,
		.rearm = no_rearm,
		.request = ur_uc_responder_input,
		.predicted = no_prediction,
		.predicted_answer = no_prediction,
		.response = no_response,
		.response_next = no_packet,
		.ack_next = no_packet,
		.is_answering = never,
		.ack_all = nothing,
		.numbers = unreliable_numbers,
		.paths = no_paths,
	},
	{
		.type = IBV_QPT_UD,
		.mode = UR_MODE_GBN,
		.service = UR_SERVICE_UD,
		.transport = UR_TRANSPORT_UD,
		.other_transport = UR_TRANSPORT_UD,
		.opcodes = SENDS,
		.sending_end = UR_UNRELIABLE_SENDING_END,
		.init = ud_init,
		.release = nothing,
		.set_first_psn = unreliable_set_first_psn,
		.set_epsn = nothing,
		.set_limits = nothing,
		.resize = no_resources,
		.stop_sending = nothing,
		.stop_responding = nothing,
		.abort = ur_responder_abort,
		.validate = unreliable_validate,
		.ready = ur_ud_ready,
		.next = ud_next,
		.drain = nothing,
		.is_idle = unreliable_is_idle,
		.follow_sl = ur_ud_follow_sl,
		.asks = never,
		.in_flight = zero,
		.acked = zero,
		.deadline = no_deadline,
		.expire = no_timer,
		.rearm = no_rearm,
		.request = ur_ud_input,
		.predicted = no_prediction,
		.predicted_answer = no_prediction,
		.response = no_response,
		.response_next = no_packet,
		.ack_next = no_packet,
		.is_answering = never,
		.ack_all = nothing,
		.numbers = ud_numbers,
		.paths = no_paths,
	},
};

const struct ur_qp_ops *ur_qp_ops_of(enum ibv_qp_type type, enum ur_mode mode)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type && kinds[i].mode == mode)
			return &kinds[i];
	return NULL;
}

/* QP-MODE-01 */
int ur_qp_set_mode(struct ur_qp *qp, enum ur_mode mode, bool strict)
{
	const struct ur_qp_ops *ops = ur_qp_ops_of(qp->ops->type, mode);

	if (!ur_qp_may_choose_mode(qp) || !ops)
		return -EINVAL;
	qp->ops->release(qp);
	qp->ops = ops;
	qp->strict = strict;
	qp->req.ssn = ur_msn(1);
	ops->init(qp);
	return 0;
}
