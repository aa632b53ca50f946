/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_REGISTERS_H
#define CTL_REGISTERS_H

#include "mgmt/registers.h"
#include "session.h"
#include "wire/vendor.h"

/* Requests for the registers of agents, by directed route: no node needs an address. */

/* A register of a node of the graph. */
struct ctl_register {
	uint32_t node;
	uint16_t address;
};

/* Makes a request for one or two registers of a node; `value` NULL: to read. */
void ctl_make_registers(struct ctl_session *s, struct ur_mgr_mad *mad, uint32_t node,
			const uint16_t *address, const uint64_t *value, unsigned cnt);
/* Why the response is none: a status, or an error of a register; NULL if it is fine. */
const char *ctl_registers_error(const uint8_t *mad, struct ur_registers *r);

/*
 * Reads many registers, two in a request where they follow each other and are of the same node. take() gets each value;
 * false in `known`: there was no answer, or none with a value. An agent that lacks one of the two, because it is older, refuses
 * both: the other one is asked for again, alone. MGR-READ-01
 */
struct ctl_read {
	const struct ctl_register *reg;
	uint32_t cnt;
	void (*take)(void *ctx, uint32_t i, bool known, uint64_t value);
	void (*absent)(void *ctx,
		       uint32_t i); /* the node says that it has none; before take(). Or NULL */
	void *ctx;
};
/* False: there is no memory; a sentence was printed. */
bool ctl_read_registers(struct ctl_session *s, const struct ctl_read *read);

/* "0x105", "uptime_ns" or "tx_packets:3". False: there is none; a sentence was printed. */
bool ctl_find_register(const char *text, uint16_t *address);
/* "tx_packets:3", or the number. */
void ctl_register_name(uint16_t address, char *text, size_t bytes);

#endif
