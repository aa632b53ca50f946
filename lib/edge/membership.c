/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "edge/neigh_frame.h"

/* The multicast groups that the endpoint is in. What is reported of them: igmp.c, mld.c. */

static struct ur_neigh_group *find(struct ur_neigh *n, const struct ur_gid *g)
{
	for (unsigned i = 0; i < n->group_cnt; i++)
		if (ur_gid_eq(&n->group[i].gid, g))
			return &n->group[i];
	return NULL;
}

struct ur_neigh_group *ur_neigh_find_group(struct ur_neigh *n, const struct ur_gid *g)
{
	struct ur_neigh_group *m = find(n, g);

	return m && !m->leaving ? m : NULL;
}

void ur_neigh_forget_left(struct ur_neigh *n, bool ipv4)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n->group_cnt; i++)
		if (!n->group[i].leaving || ur_gid_is_ipv4(&n->group[i].gid) != ipv4)
			n->group[kept++] = n->group[i];
	n->group_cnt = kept;
}

void ur_neigh_schedule(const struct ur_neigh *n, uint64_t *due_ns, uint64_t most_ms,
		       uint64_t now_ns)
{
	uint64_t share = (uint64_t)n->attr.mac[4] << 8 | n->attr.mac[5];
	uint64_t own_ns = now_ns + (most_ms * 1000000 * share >> 16);

	if (own_ns < *due_ns)
		*due_ns = own_ns;
}

static void report(struct ur_neigh *n, const struct ur_gid *gid, bool leave, uint64_t now_ns)
{
	if (ur_gid_is_ipv4(gid))
		ur_igmp_changed(n, gid, leave, now_ns);
	else
		ur_mld_changed(n, gid, leave, now_ns);
}

/* One that was left and is not reported again yet makes room for a new one. */
static bool make_room(struct ur_neigh *n)
{
	if (n->group_cnt == UR_NEIGH_GROUPS_MAX) {
		ur_neigh_forget_left(n, true);
		ur_neigh_forget_left(n, false);
	}
	return n->group_cnt < UR_NEIGH_GROUPS_MAX;
}

int ur_neigh_join_group(struct ur_neigh *n, const struct ur_gid *gid, uint64_t now_ns)
{
	struct ur_neigh_group *m = find(n, gid);

	if (!ur_gid_is_multicast(gid))
		return -EINVAL;
	if (m && !m->leaving)
		return -EALREADY;
	if (!m && !make_room(n))
		return -ENOSPC;
	if (!m)
		m = &n->group[n->group_cnt++];
	*m = (struct ur_neigh_group){.gid = *gid};
	report(n, gid, false, now_ns);
	return 0;
}

void ur_neigh_leave_group(struct ur_neigh *n, const struct ur_gid *gid, uint64_t now_ns)
{
	struct ur_neigh_group *m = ur_neigh_find_group(n, gid);

	if (!m)
		return;
	m->leaving = true;
	report(n, gid, true, now_ns);
}
