/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/smp.h"

UR_DEFINE_ATTRIBUTE(node_info, UR_NODE_INFO_FIELDS)
UR_DEFINE_ATTRIBUTE(switch_info, UR_SWITCH_INFO_FIELDS)
UR_DEFINE_ATTRIBUTE(port_info, UR_PORT_INFO_FIELDS)
UR_DEFINE_ATTRIBUTE(sm_info, UR_SM_INFO_FIELDS)
UR_DEFINE_ATTRIBUTE(notice, UR_NOTICE_FIELDS)

const char *ur_smp_attr_text(uint16_t attr_id)
{
	switch (attr_id) {
#define X(name, id, text)                                                                          \
	case id:                                                                                   \
		return text;
		UR_SMP_ATTRS(X)
#undef X
	default:
		return "unknown";
	}
}
