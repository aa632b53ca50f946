/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_VERBS_NAMES_H
#define UR_VERBS_NAMES_H

#include <infiniband/verbs.h>

/* Exported names that verbs.h does not declare: see names.txt. */

/* The kinds of GID that the kernel's sysfs distinguishes. */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1,
	IBV_GID_TYPE_SYSFS_ROCE_V2,
};

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);
const char *ibv_get_sysfs_path(void);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

/* Exports the function name_NODE as name, under a private node of a later release. */
#define UR_ALSO(name, node) __asm__(".symver " #name "_" #node ", " #name "@IBVERBS_PRIVATE_" #node)

#endif
