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

const char *ur_mad_class_text(uint8_t mgmt_class)
{
	switch (mgmt_class) {
#define X(name, value, text)                                                                       \
	case value:                                                                                \
		return text;
		UR_MAD_CLASSES(X)
	case UR_MAD_CLASS_CM:
		return "connection management";
	default:
		return "unknown";
	}
}

const char *ur_mad_method_text(uint8_t method)
{
	switch (method) {
		UR_MAD_METHODS(X)
	case UR_MAD_METHOD_SEND:
		return "Send";
	default:
		return "unknown";
	}
}

const char *ur_mad_status_text(uint16_t status)
{
	switch (status) {
		UR_MAD_STATUSES(X)
#undef X
	default:
		return "unknown";
	}
}
