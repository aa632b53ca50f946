/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/cnp.h"

#include "cc/cc.h"
#include "transport/build.h"
#include "wire/opcode.h"

#define BECN	       0x40 /* in the byte before DestQP */
#define RESERVED_BYTES 16

/* CNP-SEND-01, CNP-SEND-02 */
void ur_cnp_on_ce(struct ur_qp *qp, uint64_t now_ns)
{
	if (ur_cnp_due(&qp->cnp_ns, now_ns))
		ur_sched_set(&qp->core->cnps, &qp->cnp_node, true);
}

/* CNP-SEND-01 */
void ur_cnp_next(struct ur_qp *qp, struct ur_tx *tx)
{
	struct ur_build_bth bth = {.opcode = UR_CNP, .pkey = qp->pkey, .dqpn = qp->dest_qpn};
	uint8_t *p;

	ur_sched_set(&qp->core->cnps, &qp->cnp_node, false);
	tx->frag_cnt = 0;
	tx->payload_len = 0;
	p = ur_build_from_qp(tx, qp, qp->answer_sport_be, &bth, RESERVED_BYTES);
	p[-8] |= BECN;
	memset(p, 0, RESERVED_BYTES);
	qp->core->cnt.np_cnp_sent++;
}
