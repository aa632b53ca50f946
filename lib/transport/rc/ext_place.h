/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_PLACE_H
#define UR_TRANSPORT_EXT_PLACE_H

#include "transport/rc/arrival.h"
#include "transport/rc/ext.h"

/*
 * Of what the responder of mode extended does with a packet, in order (responder_selective.c) or not (ext_early.c), that
 * which place.h asks for. Nothing else includes this.
 */
#define ARRIVAL_READ_PSNS UR_EXT_WINDOW

static inline uint32_t add24(uint32_t a, uint32_t b)
{
	return (a + b) & UR_PSN_MASK;
}

static inline uint64_t arrival_offset(const struct ur_qp *qp, const struct ur_packet *p)
{
	return (uint64_t)p->xth.offset << qp->mtu_shift;
}

static inline const struct ur_reth *arrival_reth(const struct ur_qp *qp, const struct ur_packet *p)
{
	return &p->reth;
}

static inline bool arrival_clip(const struct ur_qp *qp, struct ur_psn psn, uint8_t *dst,
				const uint8_t *src, uint32_t len)
{
	return __builtin_expect(qp->xrsp.has_gap, 0) &&
	       ur_ooo_write(qp->xrsp.ooo, psn, dst, src, len);
}

/*
 * EXT-RESP-FORM-01. What a packet says of itself must fit together: First has offset 0 and nothing else has; RECV is
 * where a receive is taken; a READ ends within the message.
 */
static inline struct verdict arrival_check_form(const struct ur_qp *qp, const struct ur_packet *p)
{
	bool first = p->op & UR_OP_FIRST, last = p->op & UR_OP_LAST,
	     recv = p->xth.flags & UR_XTH_RECV;

	if (is_answered(p->op)) {
		uint32_t offset = p->xth.offset;

		if (recv || (is_read(p->op) ? offset + ur_responder_read_psns(qp, p->reth.length) >
						      UR_PSN_MASK + 1
					    : offset))
			return NAK(INV_REQ, MSG_LENGTH);
		return CONTINUE;
	}
	if (first != (p->xth.offset == 0) || (p->op & UR_OP_SEND && !recv) ||
	    (p->op & UR_OP_WRITE && last && recv != !!(p->op & UR_OP_IMM)))
		return NAK(INV_REQ, OP_SEQUENCE);
	return arrival_offset(qp, p) + p->payload_len > 1u << 31 ? NAK(INV_REQ, MSG_LENGTH)
								 : CONTINUE;
}

/* Reaches the end of its message, or of a packet. */
static inline bool is_whole_part(const struct ur_qp *qp, const struct ur_packet *p)
{
	return p->xth.flags & UR_XTH_LAST_READ ||
	       (p->reth.length && !(p->reth.length & ((1u << qp->mtu_shift) - 1)));
}

#include "transport/rc/place.h"

#endif
