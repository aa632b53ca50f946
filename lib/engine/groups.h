/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_GROUPS_H
#define UR_ENGINE_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "transport/qp.h"

/*
 * Multicast groups: which UD queue pairs of the endpoint are attached to which group (IBA 10.5). Each worker has the
 * whole list, and the pointers of its own queue pairs. A hash of the group's last bytes leads to a chain.
 *
 * Thread class: the worker.
 */
#define UR_GROUP_BUCKETS 256
#define UR_GROUP_NONE	 UINT16_MAX

struct ur_group_entry {
	struct ur_gid group;
	struct ur_qp *qp; /* NULL: of another worker */
	struct ur_qpn qpn;
	uint16_t next; /* in its chain, or in the chain of free ones; UR_GROUP_NONE: the last */
	bool skip_own; /* what the queue pair itself has sent is not delivered to it */
};

struct ur_groups {
	struct ur_group_entry *entry;
	uint16_t free;
	uint16_t cnt; /* in use */
	uint16_t bucket[UR_GROUP_BUCKETS];
};

size_t ur_groups_size(uint32_t attachments);
/* `attachments`, in [0, UR_GROUP_NONE), is how many there may be. */
void ur_groups_init(struct ur_groups *g, void *memory, uint32_t attachments);

/* False: there is no room. The pair must not be in it. */
bool ur_groups_add(struct ur_groups *g, const struct ur_gid *group, struct ur_qpn qpn,
		   struct ur_qp *qp, bool skip_own);
/* False: the pair is not in it. */
bool ur_groups_remove(struct ur_groups *g, const struct ur_gid *group, struct ur_qpn qpn);

/* The first attachment to the group, and the next one after it; NULL: no more. */
const struct ur_group_entry *ur_groups_first(const struct ur_groups *g, const struct ur_gid *group);
const struct ur_group_entry *ur_groups_next(const struct ur_groups *g,
					    const struct ur_group_entry *e);

#endif
