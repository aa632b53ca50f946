/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/vendor.h"

#include "wire/bytes.h"

UR_DEFINE_ATTRIBUTE(registers, UR_REGISTERS_FIELDS)
UR_DEFINE_ATTRIBUTE(bist, UR_BIST_FIELDS)
UR_DEFINE_ATTRIBUTE(fault, UR_FAULT_FIELDS)
UR_DEFINE_ATTRIBUTE(manager_info, UR_MANAGER_INFO_FIELDS)
UR_DEFINE_ATTRIBUTE(route, UR_ROUTE_FIELDS)

#define EEPROM_ADDRESS 4
#define EEPROM_VALUE   16

void ur_put_eeprom(uint8_t *body, const struct ur_eeprom *a)
{
	body[0] = a->count;
	body[1] = a->error;
	body[2] = a->entry;
	for (unsigned i = 0; i < UR_EEPROM_MAX; i++) {
		ur_store16(body + EEPROM_ADDRESS + 2 * i, a->address[i]);
		body[EEPROM_VALUE + i] = a->value[i];
	}
}

void ur_get_eeprom(const uint8_t *body, struct ur_eeprom *a)
{
	a->count = body[0];
	a->error = body[1];
	a->entry = body[2];
	for (unsigned i = 0; i < UR_EEPROM_MAX; i++) {
		a->address[i] = ur_load16(body + EEPROM_ADDRESS + 2 * i);
		a->value[i] = body[EEPROM_VALUE + i];
	}
}

const char *ur_vendor_error_text(uint8_t error)
{
	switch (error) {
#define X(name, value, text)                                                                       \
	case value:                                                                                \
		return text;
		UR_VENDOR_ERRORS(X)
#undef X
	default:
		return "unknown";
	}
}

const char *ur_fault_text(uint8_t cause)
{
	switch (cause) {
#define X(name, bit, severity, text)                                                               \
	case bit:                                                                                  \
		return text;
		UR_FAULTS(X)
#undef X
	default:
		return "unknown";
	}
}

const char *ur_severity_text(uint8_t severity)
{
	static const char *const text[] = {"info", "warning", "error", "critical"};

	return severity < sizeof(text) / sizeof(text[0]) ? text[severity] : "unknown";
}

enum ur_fault_severity ur_fault_severity(enum ur_fault_cause cause)
{
	static const uint8_t severity[UR_FAULT_CNT] = {
#define X(name, bit, severity, text) UR_SEVERITY_##severity,
		UR_FAULTS(X)
#undef X
	};

	return severity[cause];
}
