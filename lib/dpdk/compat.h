/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of today's DPDK that 22.11, the oldest supported, has under others. */
#ifndef UR_DPDK_COMPAT_H
#define UR_DPDK_COMPAT_H

#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#endif

#endif
