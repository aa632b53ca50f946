/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MANAGER_BUILD_H
#define UR_MANAGER_BUILD_H

#include "manager/requests.h"
#include "manager/topology.h"

/*
 * The MADs that a manager sends. The TransactionID is left to the table of requests. Thread class: pure functions.
 */

/* A directed-route SMP from the manager's node, all of whose data is zero; `path` as ur_topo_path() has it. */
void ur_mgr_directed(struct ur_mgr_mad *m, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
		     const uint8_t path[UR_TOPO_PATH_MAX + 1], uint8_t hops);

/* A LID-routed SMP. */
void ur_mgr_smp(struct ur_mgr_mad *m, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
		uint16_t lid);

/* A general MAD; `lid` 0: to the neighbour. */
void ur_mgr_gmp(struct ur_mgr_mad *m, uint8_t mgmt_class, uint8_t class_version, uint8_t method,
		uint16_t attr_id, uint32_t attr_mod, uint16_t lid);

#endif
