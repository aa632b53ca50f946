/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mad.h"

void ur_put_mad(struct ur_cursor *c, const struct ur_mad *mad)
{
	ur_put8(c, mad->base_version);
	ur_put8(c, mad->mgmt_class);
	ur_put8(c, mad->class_version);
	ur_put8(c, mad->method);
	ur_put16(c, mad->status);
	ur_put16(c, mad->class_specific);
	ur_put64(c, mad->tid);
	ur_put16(c, mad->attr_id);
	ur_put16(c, mad->resv);
	ur_put32(c, mad->attr_mod);
}

void ur_get_mad(struct ur_cursor *c, struct ur_mad *mad)
{
	mad->base_version = ur_get8(c);
	mad->mgmt_class = ur_get8(c);
	mad->class_version = ur_get8(c);
	mad->method = ur_get8(c);
	mad->status = ur_get16(c);
	mad->class_specific = ur_get16(c);
	mad->tid = ur_get64(c);
	mad->attr_id = ur_get16(c);
	mad->resv = ur_get16(c);
	mad->attr_mod = ur_get32(c);
}
