/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_EXT_STATE_H
#define UR_TRANSPORT_EXT_STATE_H

#include "transport/ooo.h"
#include "transport/rtt.h"
#include "transport/selective.h"

/* What extended mode keeps in a queue pair beside what standard mode has (docs/design/loss.md). */

struct ur_ext_requester {
	struct ur_rtt rtt;
	struct ur_selective psn; /* requests */
	struct ur_selective rsp; /* response packets of READs and atomics, by response number */
	uint32_t rwqen;		 /* of the next message that consumes a receive; 24 bits */
	bool probe;		 /* a probe is to be sent */
};

struct ur_ext_responder {
	struct ur_ooo *ooo; /* NULL: in order */
	uint32_t rwqen;	    /* receives taken by completed messages; 24 bits */
	/* The ACK owed: of the newest packet since the last one. */
	uint32_t echo;
	uint64_t arrival_ns;
	uint8_t echo_path;
};

#endif
