/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rc/loss_answers_gbn.h"

/* The completer of modes gbn and reorder. */
#define COMPLETER(name) ur_completer_##name
#include "transport/rc/completer_template.h"

void ur_completer_give_gap(struct ur_qp *qp)
{
	if (!qp->gbn.gap)
		return;
	ur_read_gap_give(&qp->core->read_gaps, qp->gbn.gap);
	qp->gbn.gap = NULL;
}
