/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_LOSS_UC_H
#define UR_TRANSPORT_RC_LOSS_UC_H

#define LOSS_RSP ur_psn
#include "transport/rc/loss.h"

/*
 * What requester_template.h asks of a loss engine (rc/loss.h), for UC: nothing is answered, so nothing is
 * known to be lost and nothing is sent again. There is only the PSN of the next packet.
 */

static inline bool loss_is_reliable(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline struct ur_psn loss_next_psn(const struct ur_qp *qp)
{
	return qp->unreliable.nxt;
}

static inline bool loss_is_done(const struct ur_qp *qp)
{
	(void)qp;
	return true;
}

static inline bool loss_is_begun(const struct ur_qp *qp)
{
	return qp->req.cur_off;
}

static inline void loss_sent(struct ur_qp *qp, bool ackreq, bool joins, uint64_t now_ns)
{
	(void)ackreq, (void)joins, (void)now_ns;
	qp->unreliable.nxt = ur_psn_add(qp->unreliable.nxt, 1);
}

static inline uint32_t loss_number(struct ur_qp *qp, struct ur_wqe *wqe, unsigned class)
{
	(void)qp, (void)wqe, (void)class;
	return 1;
}

/* ---- there is always room, and nothing to wait for ---- */

static inline bool loss_is_idle(const struct ur_qp *qp)
{
	(void)qp;
	return true;
}

static inline bool loss_holds(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_has_answers_due(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_has_credit(const struct ur_qp *qp, unsigned class)
{
	(void)qp, (void)class;
	return true;
}

static inline bool loss_may_begin(const struct ur_qp *qp)
{
	(void)qp;
	return true;
}

static inline bool loss_is_held(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline void loss_before_new(struct ur_qp *qp, bool may_go_on)
{
	(void)qp, (void)may_go_on;
}

static inline void loss_after_send(struct ur_qp *qp, uint64_t now_ns)
{
	(void)qp, (void)now_ns;
}

/* ---- no ACKs, no READs and atomics: they cannot be posted (WQ-OPCODE-01) ---- */

static inline bool loss_wants_ack(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_stalls_before(const struct ur_qp *qp, const struct ur_wqe *next)
{
	(void)qp, (void)next;
	return false;
}

static inline bool loss_ask_for_ack(struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_may_read(const struct ur_qp *qp, const struct ur_wqe *wqe)
{
	(void)qp, (void)wqe;
	return false;
}

static inline void loss_sent_read(struct ur_qp *qp, uint32_t n, uint64_t now_ns)
{
	(void)qp, (void)n, (void)now_ns;
}

static inline void loss_sent_atomic(struct ur_qp *qp, uint64_t now_ns)
{
	(void)qp, (void)now_ns;
}

/* ---- nothing again ---- */

enum { LOSS_PROBES = false, LOSS_TWICE = false };

static inline void loss_sent_twice(struct ur_qp *qp)
{
	(void)qp;
}

static inline bool loss_may_probe(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_is_alone(const struct ur_qp *qp, uint64_t now_ns)
{
	(void)qp, (void)now_ns;
	return false;
}

static inline void loss_sent_probe(struct ur_qp *qp, struct ur_tx *tx, bool alone, uint64_t now_ns)
{
	(void)qp, (void)tx, (void)alone, (void)now_ns;
}

static inline bool loss_is_troubled(const struct ur_qp *qp)
{
	(void)qp;
	return false;
}

static inline bool loss_next_again(const struct ur_qp *qp, struct again *again)
{
	(void)qp, (void)again;
	return false;
}

static inline uint32_t loss_find(const struct ur_qp *qp, struct ur_psn psn)
{
	(void)psn;
	return qp->req.head;
}

static inline uint32_t loss_find_rsp(const struct ur_qp *qp, struct ur_psn nr)
{
	return loss_find(qp, nr);
}

static inline struct ur_psn loss_first_response(const struct ur_wqe *wqe)
{
	return wqe->first_psn;
}

static inline struct ur_psn loss_request_psn(const struct ur_qp *qp, const struct ur_wqe *wqe,
					     uint32_t i)
{
	(void)qp;
	return ur_psn_add(wqe->first_psn, i);
}

static inline uint32_t loss_reask(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_psn nr,
				  uint32_t most, uint64_t now_ns)
{
	(void)qp, (void)wqe, (void)nr, (void)now_ns;
	return most;
}

static inline void loss_resent(struct ur_qp *qp, struct ur_psn psn, struct ur_psn nr, uint32_t n,
			       uint64_t now_ns)
{
	(void)qp, (void)psn, (void)nr, (void)n, (void)now_ns;
}

#endif
