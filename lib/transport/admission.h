/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ADMISSION_H
#define UR_TRANSPORT_ADMISSION_H

#include "transport/qp.h"
#include "wire/packet.h"

/*
 * Receiver admission wired into extended mode (docs/design/admission.md): an SRQ with its pool and
 * who is told of it, a queue pair with the letter of its peer's pool and the entry where it waits.
 *
 * Thread class: the worker. The SRQ's is that of its queue pairs.
 */

size_t ur_admission_size(uint32_t cnt);
/* `memory`: ur_admission_size(cnt) bytes, 64-byte aligned; cnt in [0, 2^20] peers and entries. */
void ur_admission_init(struct ur_core *core, void *memory, uint32_t cnt,
		       const struct ur_adm_attr *attr, uint64_t seed);

/* ---- life ---- */

/* The SRQ gets its first queue pair, has lost its last. */
void ur_admission_join(struct ur_core *core, struct ur_srq *srq);
void ur_admission_leave(struct ur_srq *srq);
/* The queue pair goes to RTR: what was agreed on is in force. */
void ur_admission_connect(struct ur_qp *qp, uint64_t now_ns);
/* It fails, is reset or goes away; harmless when nothing was. */
void ur_admission_forget(struct ur_qp *qp);

/* ---- receiver ---- */

/*
 * A packet that claims `claim` asks for a receive of the queue pair's pool. False: refused; the
 * letter is in the mark.
 */
bool ur_admission_admit(struct ur_qp *qp, uint8_t claim, uint64_t now_ns);
/* So many receives may be bound to packets beyond ePSN. */
uint32_t ur_admission_early(const struct ur_qp *qp);
/* Any packet of its peer came. */
void ur_admission_heard(struct ur_qp *qp, uint64_t now_ns);
/* The timer of an RNR NAK. */
uint8_t ur_admission_rnr_timer(const struct ur_qp *qp);
/* The ASTH of an ACK or NAK. */
uint32_t ur_admission_status(const struct ur_qp *qp);

bool ur_admission_wants_output(const struct ur_core *core);
/* Makes the next call or NOTIFY; returns whose it is, NULL: there is none. */
struct ur_qp *ur_admission_next(struct ur_core *core, struct ur_tx *tx, uint64_t now_ns);
/* The SRQ's timer fired. */
void ur_admission_timer(struct ur_core *core, struct ur_timer *t, uint64_t now_ns);

/* ---- sender ---- */

/*
 * ADM-HOLD-01. The next message needs a receive and is kept back: it is the first packet, and asks
 * for nothing that was granted. HELD.
 */
static inline bool ur_admission_holds(const struct ur_qp *qp)
{
	return qp->adm.letter || !qp->adm.go;
}

/* Grants the next message leave, or has it wait in the entry; as ur_qp_update() is called. HELD. */
void ur_admission_update(struct ur_qp *qp);
/* A message that needs a receive is begun. */
static inline void ur_admission_begun(struct ur_qp *qp)
{
	qp->adm.go = false;
}
/* An ACK or NAK with a status came, of a QP that is TOLD; others may go on by it. */
void ur_admission_word(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* So many messages that needed a receive are complete. */
void ur_admission_passed(struct ur_qp *qp, uint32_t messages, uint64_t now_ns);
enum ur_drop ur_admission_notified(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* The timer of an entry fired. */
void ur_admission_entry_timer(struct ur_core *core, struct ur_timer *t, uint64_t now_ns);

/* Asserts what must hold; ur_qp_validate() calls it. */
void ur_admission_validate(const struct ur_qp *qp);

#endif
