/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INTEROP_FAULTS_H
#define INTEROP_FAULTS_H

#include "session.h"

/* Kinds of scenarios in which requests fail, as spec.from says: the end that posts them. */

/* `fault` of the scenario: what the peer refuses by a NAK, and what is then left undone. */
bool run_refused(struct session *s, char *note, size_t note_bytes);
/* The peer never has a receive. */
bool run_rnr_exceeded(struct session *s, char *note, size_t note_bytes);
/* The peer's queue pair is destroyed. */
bool run_death(struct session *s, char *note, size_t note_bytes);
/* The program in the guest ends without a word; CM tells. */
bool run_vanish(struct session *s, char *note, size_t note_bytes);
/* A datagram with a wrong Q_Key is not delivered, the next one is. */
bool run_wrong_qkey(struct session *s, char *note, size_t note_bytes);
/* SEND with invalidate (invalidate.c). */
bool run_invalidate(struct session *s, char *note, size_t note_bytes);

/* The next completion of a CQ must be of request `id` and have that status; `wc` gets it, unless
 * NULL. */
bool expect_completion(struct session *s, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
		       struct ibv_wc *wc);

#endif
