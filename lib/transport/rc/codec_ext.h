/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_RC_CODEC_EXT_H
#define UR_TRANSPORT_RC_CODEC_EXT_H

#include "transport/rc/request.h"
#include "wire/bytes.h"
#include "wire/ext.h"

/* Header codec of extended mode (docs/wire-format.md): what requester_template.h asks for. */

/* The packet may be placed before those in front of it, so each says where its message lies. */
enum { CODEC_RETH_IN_EACH = true };

#define STAMP_PAUSE (UINT32_C(1) << 26) /* stamps, 1.07 s */

/*
 * EXT-SEL-RTT-02. After a pause the stamps of what is older may look like those of what comes next:
 * only that counts.
 */
static __attribute__((noinline, cold)) void forget_echoes(struct ur_qp *qp, struct ur_stamp stamp)
{
	qp->xreq.echoed = stamp;
	for (unsigned i = 0; qp->sprays && i < UR_SPRAY_MAX; i++)
		qp->xreq.spray->echoed[i] = stamp;
}

static inline void set_last_stamp(struct ur_qp *qp, struct ur_stamp stamp)
{
	if (__builtin_expect(ur_stamp_since(stamp, qp->req.last_stamp) > STAMP_PAUSE, 0))
		forget_echoes(qp, ur_stamp_add(stamp, UINT32_MAX));
	qp->req.last_stamp = stamp;
}

/* What comes back with this stamp may be the answer to this packet. */
static __attribute__((noinline, cold)) void
leave_after_probe(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_stamp stamp)
{
	struct ur_ext_requester *x = &qp->xreq;

	if (x->probed & UR_PROBE_TRAIN && wqe) {
		x->probe_stamp = qp->req.last_stamp;
		x->probed &= (uint8_t)~UR_PROBE_TRAIN;
	}
	if (ur_stamp_eq(stamp, x->probe_stamp))
		x->probed &= (uint8_t) ~(UR_PROBE_LOSS | UR_PROBE_TRAIN);
}

/* A packet is about to leave with this stamp. No WQE: it is a probe. */
static inline void note_stamp(struct ur_qp *qp, const struct ur_wqe *wqe, struct ur_stamp stamp)
{
	if (__builtin_expect(qp->xreq.probed, 0))
		leave_after_probe(qp, wqe, stamp);
	if (!ur_stamp_eq(stamp, qp->req.last_stamp))
		set_last_stamp(qp, stamp);
}

/* Picks the path once the packet has its XTH: a packet that cannot be made takes no path's turn. */
static inline void pick_path(struct ur_qp *qp, uint8_t *xth, struct ur_tx *tx)
{
	qp->spray_path = xth[UR_XTH_PATH] = ur_spray_next(&qp->xreq.spray->paths);
	if (qp->spray_path)
		ur_ext_write_port(qp, qp->spray_path, tx);
}

/* EXT-REQ-HDR-01. Ethernet to XTH; returns where the `ext` bytes behind them go. No WQE: a probe. */
static inline uint8_t *codec_begin(struct ur_qp *qp, const struct ur_wqe *wqe,
				   const struct request *r, unsigned ext, struct ur_tx *tx,
				   uint64_t now_ns)
{
	struct ur_build_bth bth = {
		.opcode = r->opcode | UR_TRANSPORT_EXT,
		.solicited = r->solicited,
		.ackreq = r->ackreq,
		.pkey = qp->pkey,
		.dqpn = qp->dest_qpn,
		.psn = r->psn,
	};
	bool recv = r->class & OP_RECV;
	uint8_t *p = ur_build_from_qp(tx, qp, qp->sport_be, &bth, UR_XTH_BYTES + ext), *xth = p;

	if (!r->joins)
		note_stamp(qp, wqe, ur_stamp(now_ns));
	p = ur_build2(p, qp->req.last_stamp.v, wqe ? wqe->ssn.v : 0);
	p = ur_build2(p, (uint32_t)(r->flags | (recv ? UR_XTH_RECV : 0)) << 24 | r->offset,
		      recv ? wqe->rwqen : 0);
	if (__builtin_expect(qp->sprays, 0))
		pick_path(qp, xth, tx);
	return p;
}

/* EXT-REQ-ACK-01. READ and atomic requests ask for no ACK: their answers say the same. */
static inline bool codec_answers_want_ack(void)
{
	return false;
}

/* What tells that a request is sent again, and the status with which the peer refused it before. */
static inline uint8_t codec_retry_flags(const struct ur_qp *qp)
{
	return (uint8_t)(UR_XTH_RETRY | qp->adm.queue_class << UR_XTH_CLAIM_SHIFT);
}

#endif
