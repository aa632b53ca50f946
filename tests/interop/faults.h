/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_FAULTS_H
#define INTEROP_FAULTS_H

#include "session.h"

/* Scenarios in which requests fail. spec.from is the end that posts them. */

/* The peer refuses the `fault` of the scenario with a NAK; later requests are not executed. */
bool run_refused(struct session *s, char *note, size_t note_bytes);
/* The peer never has a receive. */
bool run_rnr_exceeded(struct session *s, char *note, size_t note_bytes);
/* The peer's queue pair is destroyed. */
bool run_death(struct session *s, char *note, size_t note_bytes);
/* The program in the guest ends without a message; the CM reports it. */
bool run_vanish(struct session *s, char *note, size_t note_bytes);
/* A datagram with a wrong Q_Key is not delivered, the next one is. */
bool run_wrong_qkey(struct session *s, char *note, size_t note_bytes);
/* SEND with invalidate (invalidate.c). */
bool run_invalidate(struct session *s, char *note, size_t note_bytes);

/* The next completion of a CQ must have this id and status. It is stored in `wc`, unless NULL. */
bool expect_completion(struct session *s, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
		       struct ibv_wc *wc);

#endif
