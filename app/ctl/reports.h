/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_REPORTS_H
#define CTL_REPORTS_H

#include "fault_log.h"
#include "session.h"

/*
 * Fault reports of nodes. Each node is asked to send them to this program, along the route of that request. Each is
 * acknowledged by TrapRepress, without which the node would repeat it.
 */

/* Makes the request by which a node reports here. */
void ctl_reports_make(struct ctl_session *s, uint32_t node, struct ur_mgr_mad *mad);

/* Asks every node. Those that refuse, because their key is another one, are counted. */
uint32_t ctl_reports_ask(struct ctl_session *s);

/*
 * A MAD that is no response. True: it is a fault report; it was answered, `report` is what it says, and `name` its node.
 */
bool ctl_reports_take(struct ctl_session *s, const struct ur_mgr_mad *mad, struct ur_fault *report,
		      char name[CTL_NAME_BYTES]);

/* "link down", and the value and the limit that it passed, if there are any. */
void ctl_reports_text(const struct ur_fault *report, char *text, size_t bytes);

#endif
