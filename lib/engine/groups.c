/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/groups.h"

#include "wire/bits.h"
#include "wire/bytes.h"

size_t ur_groups_size(uint32_t attachments)
{
	return ur_align64(attachments * sizeof(struct ur_group_entry));
}

void ur_groups_init(struct ur_groups *g, void *memory, uint32_t attachments)
{
	*g = (struct ur_groups){.entry = memory, .free = UR_GROUP_NONE};
	for (unsigned i = 0; i < UR_GROUP_BUCKETS; i++)
		g->bucket[i] = UR_GROUP_NONE;
	for (uint32_t i = attachments; i--;) {
		g->entry[i] = (struct ur_group_entry){.next = g->free};
		g->free = (uint16_t)i;
	}
}

/* The chain of a group. Only attachments of this endpoint are in it, so a sender cannot make it long. */
static unsigned bucket_of(const struct ur_gid *group)
{
	return (ur_load32(group->b + 12) * 0x9e3779b1u) >> 24;
}

bool ur_groups_add(struct ur_groups *g, const struct ur_gid *group, struct ur_qpn qpn,
		   struct ur_qp *qp, bool skip_own)
{
	uint16_t *first = &g->bucket[bucket_of(group)], i = g->free;

	if (i == UR_GROUP_NONE)
		return false;
	g->free = g->entry[i].next;
	g->entry[i] = (struct ur_group_entry){
		.group = *group, .qp = qp, .qpn = qpn, .next = *first, .skip_own = skip_own};
	*first = i;
	g->cnt++;
	return true;
}

bool ur_groups_remove(struct ur_groups *g, const struct ur_gid *group, struct ur_qpn qpn)
{
	uint16_t *link = &g->bucket[bucket_of(group)], i;

	for (; (i = *link) != UR_GROUP_NONE; link = &g->entry[i].next) {
		if (g->entry[i].qpn.v != qpn.v || !ur_gid_eq(&g->entry[i].group, group))
			continue;
		*link = g->entry[i].next;
		g->entry[i] = (struct ur_group_entry){.next = g->free};
		g->free = i;
		g->cnt--;
		return true;
	}
	return false;
}

static const struct ur_group_entry *find(const struct ur_groups *g, uint16_t i,
					 const struct ur_gid *group)
{
	for (; i != UR_GROUP_NONE; i = g->entry[i].next)
		if (ur_gid_eq(&g->entry[i].group, group))
			return &g->entry[i];
	return NULL;
}

const struct ur_group_entry *ur_groups_first(const struct ur_groups *g, const struct ur_gid *group)
{
	return g->cnt ? find(g, g->bucket[bucket_of(group)], group) : NULL;
}

const struct ur_group_entry *ur_groups_next(const struct ur_groups *g,
					    const struct ur_group_entry *e)
{
	return find(g, e->next, &e->group);
}
