/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_MCAST_H
#define UR_API_MCAST_H

#include <stdbool.h>

#include "dpdk/assemble.h"

struct ur_device;
struct ur_api_qp;

/*
 * Multicast groups of an endpoint: which it is in, and the queue pairs that are attached to them.
 */
#define UR_MCAST_GROUPS	   UR_NEIGH_GROUPS_MAX /* max_mcast_grp */
#define UR_MCAST_GROUP_QPS 256		       /* max_mcast_qp_attach */

/* Whether the queue pair is attached to a group. Under the device's lock. */
bool ur_mcast_is_attached(const struct ur_api_qp *qp);
/* Frees what is left. The workers have gone. */
void ur_mcast_free(struct ur_device *dev);

#endif
