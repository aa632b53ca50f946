/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VERBS_DEVICE_H
#define UR_VERBS_DEVICE_H

#include <stdint.h>

#include "uroce/uroce.h"

/*
 * The devices that a program finds: one for each endpoint that its environment names.
 *
 *   UROCE_CONFIG   configuration files, separated by colons
 *   UROCE_DEV      kernel interfaces to share, separated by commas
 *   UROCE_SET      overrides of keys, "section.key=value", separated by semicolons
 *   UROCE_PART_ID  the vendor_part_id that queries report instead of 0
 *
 * If neither of the first two is set, /etc/uroce/verbs.conf is used, if there is one. The list is made once in
 * a process and opens nothing: the endpoint opens when the program opens the device, and stays open until exit,
 * because programs open and close devices several times.
 *
 * Thread class: any.
 */

#define UR_VERBS_DEVICES_MAX 32
/* Entries of the GID table that programs see, most of them free, as those of other RoCE devices. */
#define UR_VERBS_GIDS 16

struct ur_verbs_device {
	struct ibv_device base; /* first: the program's handle */
	/* libmlx5 and libefa, which some programs load, look behind the device whether it is one of theirs. */
	const void *ops;
	uint64_t guid; /* host byte order; known before the endpoint opens */
	uint32_t part_id;
	const char *config;	 /* file, or NULL: an interface */
	char *dev;		 /* "port.dev=NAME", or NULL */
	struct ibv_context *ctx; /* of the endpoint; NULL until it opens */
};

static inline struct ur_verbs_device *ur_verbs_device(struct ibv_device *device)
{
	return (struct ur_verbs_device *)device;
}

/* As uroce_query_device_ex(), with the device's own GUID: what a context of a program calls. */
int ur_verbs_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t bytes);
/* As uroce_query_port(), into a struct of `bytes` bytes, and always active: what a context of a program calls. */
int ur_verbs_query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *attr,
			size_t bytes);

#endif
