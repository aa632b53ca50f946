/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_QP_MODE_H
#define UR_API_QP_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "uroce/uroce.h"

/*
 * The mode of an RC queue pair: what both ends want, and the result. ur_mode_decide() alone
 * decides. It is called when the queue pair moves to RTR: by cm_conn.c for connections by CM, by
 * qp.c if the application connects the queue pair itself.
 */

/* What the application or the configuration wants. */
struct ur_mode_want {
	enum uroce_qp_mode mode;
	bool strict;
	uint8_t spray; /* as in struct uroce_qp_mode_attr */
};

struct ur_mode_case {
	bool rc;
	enum uroce_qp_mode want;
	bool by_cm; /* false: the peer was not asked, and the fields below do not matter */
	bool room;  /* our private data has room for the block, to offer or to answer */
	bool peer;  /* the peer's block offers extended mode, or accepts it */
};

struct ur_mode_verdict {
	bool ok;	   /* false: a required mode is not available */
	enum ur_mode mode; /* mode of the queue pair; if !ok, the mode that is possible */
	enum uroce_qp_mode_reason reason;
	struct ur_adm_agreed agreed; /* agreement on receive pools, filled in by the caller */
};

/* True if we offer extended mode to the peer, or may accept the peer's offer. */
bool ur_mode_offers(const struct ur_mode_case *c);
struct ur_mode_verdict ur_mode_decide(const struct ur_mode_case *c);

/* True if an application may poll memory that the peer's `op` (or our READ) writes. */
bool ur_mode_in_order(bool rc, bool strict, enum ibv_wr_opcode op);

/* Checks bits and ranges. Returns 0 or EINVAL. */
int ur_mode_want_check(const struct uroce_qp_mode_attr *attr, int mask,
		       const struct ur_mode_want *old);

#endif
