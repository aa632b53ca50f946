/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_REPEATS_H
#define UR_TRANSPORT_REPEATS_H

#include <stdint.h>

#include "wire/psn.h"

/* Executed requests that the peer has sent again, beside rsp.has_again and rsp.again: see ur_repath_on_duplicate(). */
struct ur_repeats {
	struct ur_psn epsn; /* ePSN when the last of them came */
	uint32_t newest;    /* that one, in the form of rsp.again */
};

#endif
