/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_QP_MODE_H
#define UR_API_QP_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "uroce/uroce.h"

/*
 * The mode of an RC queue pair: what is wanted, and what comes of it. Decided in one place,
 * ur_mode_decide(), by whoever moves the queue pair to RTR: cm_conn.c when two ends connect by CM,
 * qp.c when the application does it itself.
 */

/* What the application or the configuration asks for. */
struct ur_mode_want {
	enum uroce_qp_mode mode;
	bool strict;
	uint8_t spray; /* as struct uroce_qp_mode_attr */
};

struct ur_mode_case {
	bool rc;
	enum uroce_qp_mode want;
	bool by_cm; /* false: nobody was asked; the fields below do not matter */
	bool room;  /* our private data has room for the block: we offer, or could answer */
	bool peer;  /* the peer's block offers extended mode, or answers that it is used */
};

struct ur_mode_verdict {
	bool ok;	   /* false: what is demanded cannot be had */
	enum ur_mode mode; /* of the queue pair; where !ok, what it could be instead */
	enum uroce_qp_mode_reason reason;
	struct ur_adm_agreed agreed; /* as to receive pools; whoever asked the peer fills it in */
};

/* Whether extended mode is offered to the peer, or may be agreed on when the peer offers it. */
bool ur_mode_offers(const struct ur_mode_case *c);
struct ur_mode_verdict ur_mode_decide(const struct ur_mode_case *c);

/* Whether memory that `op` of the peer (or our READ) writes may be polled. */
bool ur_mode_in_order(bool rc, bool strict, enum ibv_wr_opcode op);

/* Bits known and values in range; 0 or EINVAL. */
int ur_mode_want_check(const struct uroce_qp_mode_attr *attr, int mask,
		       const struct ur_mode_want *old);

#endif
