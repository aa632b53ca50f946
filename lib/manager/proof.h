/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_PROOF_H
#define UR_MANAGER_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/vendor.h"

/*
 * How the managers of a zone prove to each other that they know the zone's key, without sending it
 * (docs/design/managers.md). The proof is SipHash with the zone's key, of the whole attribute UR_SMP_MANAGER, of what it is,
 * and of a number that its receiver chose: so it counts for one question or one order.
 *
 * Thread class: pure functions.
 */
#define UR_PROOF_ANSWER 0 /* instead of an order, enum ur_manager_order */

/*
 * Writes info->proof. `number`: of an answer, that of the question; of an order, that of the last answer of the manager
 * which is told. An order's M_Key is hidden, by a pad that depends on info->number as well: it must be a new one for each
 * order.
 */
void ur_proof_seal(uint64_t zone_key, uint32_t order, uint64_t number,
		   struct ur_manager_info *info);

/* Shows the M_Key of an order. False: it is no proof, and `info` is not changed. */
bool ur_proof_open(uint64_t zone_key, uint32_t order, uint64_t number,
		   struct ur_manager_info *info);

#endif
