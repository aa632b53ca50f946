/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <string.h>

static const char *kind_of(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0)
		return "4";
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? "ll" : "6";
}

int device_gid(struct device *dev, const char *kind, union ibv_gid *gid)
{
	static const union ibv_gid none;

	for (unsigned i = 0; i < dev->gid_cnt; i++)
		if (V(query_gid)(dev->ctx, 1, (int)i, gid) == 0 &&
		    memcmp(gid, &none, sizeof(none)) != 0 && strcmp(kind_of(gid), kind) == 0)
			return (int)i;
	return -1;
}
