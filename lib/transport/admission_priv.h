/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ADMISSION_PRIV_H
#define UR_TRANSPORT_ADMISSION_PRIV_H

#include "transport/admission.h"

/*
 * What the files of receiver admission share: admission.c has the life and the receiver,
 * admission_hold.c decides whether a sender's request may go, admission_status.c takes statuses in.
 *
 * Thread class: the worker of the queue pair.
 */

/* The timer at which the status of the entry expires. */
static inline struct ur_timer *ur_admission_timer_of(struct ur_admission *a,
						     const struct ur_sst_entry *e)
{
	return &a->timers[e - a->entries];
}

/* Arms it if requests wait in the entry. */
void ur_admission_set_entry_timer(struct ur_core *core, struct ur_sst_entry *e);

#endif
