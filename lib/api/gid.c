/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>

#include <bsd/string.h>

#include "api/device.h"

/* The GID table, and the state of the port that depends on it. */

struct ur_gid ur_device_gid(struct ur_device *dev, unsigned index)
{
	struct ur_gid gid = {0};

	pthread_mutex_lock(&dev->gid_lock);
	if (index < dev->gid_cnt)
		gid = dev->gids[index];
	pthread_mutex_unlock(&dev->gid_lock);
	return gid;
}

int ur_device_gid_index(struct ur_device *dev, const struct ur_gid *gid)
{
	static const struct ur_gid none;
	int index = -1;

	pthread_mutex_lock(&dev->gid_lock);
	for (unsigned i = 0; index < 0 && i < dev->gid_cnt; i++)
		if (ur_gid_eq(&dev->gids[i], gid))
			index = (int)i;
	pthread_mutex_unlock(&dev->gid_lock);
	return ur_gid_eq(gid, &none) ? -1 : index;
}

int ur_device_family_gid(struct ur_device *dev, bool ipv4)
{
	static const struct ur_gid none;
	int index = -1;

	pthread_mutex_lock(&dev->gid_lock);
	for (unsigned i = 0; index < 0 && i < dev->gid_cnt; i++)
		if (!ur_gid_eq(&dev->gids[i], &none) && ur_gid_is_ipv4(&dev->gids[i]) == ipv4)
			index = (int)i;
	pthread_mutex_unlock(&dev->gid_lock);
	return index;
}

void uroce_describe_port(struct ibv_context *ctx, char *text, size_t bytes)
{
	struct ur_device *dev = ur_device(ctx);
	static const struct ur_gid none;
	const char *between =
		dev->shared ? ", with the kernel's addresses " : ", with the addresses ";

	snprintf(text, bytes, "%s by %s", dev->cfg.port.device,
		 ur_driver_name(dev->cfg.port.driver));
	if (dev->not_af_xdp[0]) {
		strlcat(text, " (not af_xdp: ", bytes);
		strlcat(text, dev->not_af_xdp, bytes);
		strlcat(text, ")", bytes);
	}
	for (unsigned i = 0; i < UR_GIDS_MAX; i++) {
		struct ur_gid gid = ur_device_gid(dev, i);
		char name[INET6_ADDRSTRLEN];

		if (ur_gid_eq(&gid, &none))
			continue;
		if (ur_gid_is_ipv4(&gid))
			inet_ntop(AF_INET, gid.b + 12, name, sizeof(name));
		else
			inet_ntop(AF_INET6, gid.b, name, sizeof(name));
		strlcat(text, between, bytes);
		strlcat(text, name, bytes);
		between = ", ";
	}
	if (dev->port.evict.reason != UR_EVICT_NOT_SHARED) {
		char evict[256];

		ur_evict_describe(&dev->port.evict, evict, sizeof(evict));
		strlcat(text, "; ", bytes);
		strlcat(text, evict, bytes);
	}
}
