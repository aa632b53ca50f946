/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ADMISSION_H
#define UR_TRANSPORT_ADMISSION_H

#include "transport/qp.h"
#include "wire/packet.h"

/*
 * Receiver admission in extended mode (docs/design/admission.md): connects SRQ and pool, pool and
 * peers, queue pair and service status table.
 *
 * Thread class: the worker of the queue pair, which is also that of its SRQ.
 */

size_t ur_admission_size(uint32_t cnt);
/* `memory`: ur_admission_size(cnt) bytes, 64-byte aligned; cnt in [0, 2^20] peers and entries. */
void ur_admission_init(struct ur_core *core, void *memory, uint32_t cnt,
		       const struct ur_adm_attr *attr, uint64_t seed);

/* ---- life ---- */

/* The SRQ got its first queue pair. */
void ur_admission_join(struct ur_core *core, struct ur_srq *srq);
/* The SRQ lost its last queue pair. */
void ur_admission_leave(struct ur_srq *srq);
/* A queue pair of extended mode goes to RTR: the roles that were agreed on begin. ADM-AGREE-01 */
void ur_admission_connect(struct ur_qp *qp, uint64_t now_ns);
/* The queue pair fails, is reset or destroyed: its roles end. Does nothing without any. */
void ur_admission_forget(struct ur_qp *qp);

/* ---- receiver ---- */

/*
 * A packet requests a receive of the queue pair's pool; `claim` is the queue class in it. False: it is
 * refused, with the class in qp->adm.refusal. RECEIVER only.
 */
bool ur_admission_admit(struct ur_qp *qp, uint8_t claim, uint64_t now_ns);
/* How many receives packets beyond ePSN may take. */
uint32_t ur_admission_early_room(const struct ur_qp *qp);
/* A packet of the peer has arrived: renews the refusal. */
void ur_admission_refresh(struct ur_qp *qp, uint64_t now_ns);
/* The timer code for an RNR NAK. */
uint8_t ur_admission_rnr_timer(const struct ur_qp *qp);
/* The ASTH for an ACK or NAK, as ur_asth_pack() makes it. */
uint32_t ur_admission_status(const struct ur_qp *qp);

/* Whether ur_admission_make_next() would make a packet. */
bool ur_admission_wants_output(const struct ur_core *core);
/* Makes the next grant or NOTIFY in *tx. Returns the queue pair that it goes to, NULL: none is due. */
struct ur_qp *ur_admission_make_next(struct ur_core *core, struct ur_tx *tx, uint64_t now_ns);
/* The timer of an SRQ expired. */
void ur_admission_timer(struct ur_core *core, struct ur_timer *t, uint64_t now_ns);

/* ---- sender ---- */

/* ADM-HOLD-01. The next message, which needs a receive, must not begin yet. HOLDER only. */
static inline bool ur_admission_holds(const struct ur_qp *qp)
{
	return qp->adm.queue_class || !qp->adm.may_send;
}

/*
 * Releases the next message or puts the queue pair into the queue of its entry; ur_qp_update() calls
 * it. `asks`: see ur_ext_requester_asks(). HOLDER only.
 */
void ur_admission_update(struct ur_qp *qp, bool asks);
/* A message that needs a receive begins: the release is used up. */
static inline void ur_admission_begin(struct ur_qp *qp)
{
	qp->adm.may_send = false;
}
/*
 * The RNR wait of a request is over. Returns for how many ns it waits on, because a grant or, in mode
 * paper, a change of status is still to come; 0: it is to be sent again now. *probe: a probe is to ask
 * what the pool knows of it. HOLDER only.
 */
uint64_t ur_admission_wait_on(struct ur_qp *qp, bool *probe, uint64_t now_ns);
/* An ACK or NAK brought a status, which may release other queue pairs. SENDER only. */
void ur_admission_on_status(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns);
/* `messages` that needed a receive completed. */
void ur_admission_on_complete(struct ur_qp *qp, uint32_t messages, uint64_t now_ns);
/* A NOTIFY or grant arrived. *granted: a grant for the message at una, which ends an RNR wait. ADM-NOTIFY-04 */
enum ur_drop ur_admission_on_notify(struct ur_qp *qp, const struct ur_packet *p, bool *granted,
				    uint64_t now_ns);
/* The timer of an entry expired. */
void ur_admission_entry_timer(struct ur_core *core, struct ur_timer *t, uint64_t now_ns);

/* Asserts the invariants; ur_qp_validate() calls it. */
void ur_admission_validate(const struct ur_qp *qp);

#endif
