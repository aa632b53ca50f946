/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "manager/build.h"
#include "wire/assert.h"
#include "wire/smp.h"

void ur_mgr_gmp(struct ur_mgr_mad *m, uint8_t mgmt_class, uint8_t class_version, uint8_t method,
		uint16_t attr_id, uint32_t attr_mod, uint16_t lid)
{
	struct ur_mad hdr = {
		.base_version = UR_MAD_BASE_VERSION,
		.mgmt_class = mgmt_class,
		.class_version = class_version,
		.method = method,
		.attr_id = attr_id,
		.attr_mod = attr_mod,
	};
	struct ur_cursor c = ur_cursor(m->bytes, sizeof(m->bytes));

	m->lid = lid;
	ur_put_mad(&c, &hdr);
	ur_put_zero(&c, ur_cursor_left(&c));
}

void ur_mgr_smp(struct ur_mgr_mad *m, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
		uint16_t lid)
{
	ur_mgr_gmp(m, UR_MAD_CLASS_SMP_LID, UR_SMP_VERSION, method, attr_id, attr_mod, lid);
}

/* No part of the route is by LIDs (IBA 14.2.2.2). MGR-ROUTE-01 */
void ur_mgr_directed(struct ur_mgr_mad *m, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
		     const uint8_t path[UR_TOPO_PATH_MAX + 1], uint8_t hops)
{
	UR_ASSERT(hops <= UR_SMP_HOPS_MAX);
	ur_mgr_gmp(m, UR_MAD_CLASS_SMP_DR, UR_SMP_VERSION, method, attr_id, attr_mod, 0);
	m->bytes[UR_SMP_HOP_COUNT] = hops;
	ur_store16(m->bytes + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
	ur_store16(m->bytes + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
	memcpy(m->bytes + UR_SMP_INITIAL + 1, path + 1, hops);
}
