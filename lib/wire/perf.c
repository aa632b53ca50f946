/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/perf.h"

UR_DEFINE_ATTRIBUTE(class_port_info, UR_CLASS_PORT_INFO_FIELDS)

#define COUNTER_PUT(type, name, at, width, bit) UR_FIELD_PUT(type, name, at, width)
#define COUNTER_GET(type, name, at, width, bit) UR_FIELD_GET(type, name, at, width)

void ur_put_port_counters(uint8_t *data, const struct ur_port_counters *a)
{
	UR_PORT_COUNTERS_SELECT(UR_FIELD_PUT)
	UR_PORT_COUNTERS_LIST(COUNTER_PUT)
}

void ur_get_port_counters(const uint8_t *data, struct ur_port_counters *a)
{
	UR_PORT_COUNTERS_SELECT(UR_FIELD_GET)
	UR_PORT_COUNTERS_LIST(COUNTER_GET)
}

void ur_put_port_counters_ext(uint8_t *data, const struct ur_port_counters_ext *a)
{
	UR_PORT_COUNTERS_EXT_SELECT(UR_FIELD_PUT)
	UR_PORT_COUNTERS_EXT_LIST(COUNTER_PUT)
}

void ur_get_port_counters_ext(const uint8_t *data, struct ur_port_counters_ext *a)
{
	UR_PORT_COUNTERS_EXT_SELECT(UR_FIELD_GET)
	UR_PORT_COUNTERS_EXT_LIST(COUNTER_GET)
}
