/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "verbs/device.h"
#include "verbs/names.h"

/* The GID table, whose entries are all of RoCE version 2. Zero is a free entry. */

static bool is_zero(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && !gid->global.interface_id;
}

/* Behind the endpoint's table the entries are free. */
static int query(struct ibv_context *ctx, uint8_t port_num, int index, union ibv_gid *gid)
{
	if (uroce_query_gid(ctx, port_num, index, gid) == 0)
		return 0;
	if (port_num != 1 || index < 0 || index >= UR_VERBS_GIDS)
		return EINVAL;
	memset(gid, 0, sizeof(*gid));
	return 0;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port_num, int index, union ibv_gid *gid)
{
	int rc = query(ctx, port_num, index, gid);

	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port_num, unsigned index,
		       enum ibv_gid_type_sysfs *type)
{
	union ibv_gid gid;

	*type = IBV_GID_TYPE_SYSFS_ROCE_V2;
	return ibv_query_gid(ctx, port_num, (int)index, &gid);
}

#define ALSO(node)                                                                                 \
	int ibv_query_gid_type_##node(struct ibv_context *ctx, uint8_t port_num, unsigned index,   \
				      enum ibv_gid_type_sysfs *type);                              \
	int ibv_query_gid_type_##node(struct ibv_context *ctx, uint8_t port_num, unsigned index,   \
				      enum ibv_gid_type_sysfs *type)                               \
	{                                                                                          \
		return ibv_query_gid_type(ctx, port_num, index, type);                             \
	}                                                                                          \
	UR_ALSO(ibv_query_gid_type, node)

ALSO(57);
ALSO(59);
ALSO(64);

/* Programs of a later version may know a longer entry. */
static void put(void *at, size_t entry_size, const union ibv_gid *gid, uint32_t index)
{
	struct ibv_gid_entry e = {
		.gid = *gid, .gid_index = index, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2};

	memset(at, 0, entry_size);
	memcpy(at, &e, entry_size < sizeof(e) ? entry_size : sizeof(e));
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port_num, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	union ibv_gid gid;
	int rc;

	if (flags || port_num != 1)
		return EINVAL;
	rc = query(ctx, 1, (int)index, &gid);
	if (rc)
		return rc;
	if (is_zero(&gid))
		return ENODATA;
	put(entry, entry_size, &gid, index);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	union ibv_gid gid;
	size_t n = 0;

	if (flags)
		return -EINVAL;
	for (int i = 0; !query(ctx, 1, i, &gid); i++) {
		if (is_zero(&gid))
			continue;
		if (n == max_entries)
			return -EINVAL;
		put((char *)entries + n++ * entry_size, entry_size, &gid, (uint32_t)i);
	}
	return (ssize_t)n;
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index, __be16 *pkey)
{
	int rc = uroce_query_pkey(ctx, port_num, index, pkey);

	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port_num, __be16 pkey)
{
	__be16 have;

	for (int i = 0; !ibv_query_pkey(ctx, port_num, i, &have); i++)
		if (have == pkey)
			return i;
	return -1;
}
