/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_MGMT_REGISTERS_H
#define UR_MGMT_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The table of an agent's registers, made from registers.def: for tools, and for the agent itself. Addresses
 * of an endpoint have 12 bits, of a switch 15 bits.
 */
#define UR_PORT_REGISTERS   0x100
#define UR_PORT_WINDOW	    0x40
#define UR_CA_REGISTERS	    0x1000
#define UR_SWITCH_REGISTERS 0x8000

enum ur_register_access { UR_REG_RO, UR_REG_RW, UR_REG_W1C };
enum ur_register_scope { UR_REG_NODE, UR_REG_PORT };

enum ur_register_id {
#define REGISTER(scope, name, address, access, initial, max, meaning) UR_##scope##_##name,
#include "mgmt/registers.def"
#undef REGISTER
	UR_REGISTER_CNT
};

struct ur_register {
	const char *name;
	const char *meaning;
	enum ur_register_scope scope;
	uint16_t address; /* PORT: in the port's window */
	enum ur_register_access access;
	uint64_t initial, max;
};

extern const struct ur_register ur_registers[UR_REGISTER_CNT];

/* The address of a register; `port` counts for those of a port only. */
uint16_t ur_register_address(enum ur_register_id id, uint8_t port);

/* The register at an address, and its port; UR_REGISTER_CNT: there is none. */
enum ur_register_id ur_register_at(uint16_t address, uint8_t *port);

#ifdef __cplusplus
}
#endif

#endif
