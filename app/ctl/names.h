/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_NAMES_H
#define CTL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manager/topology.h"

/* Nodes, states and codes in words. */

#define CTL_NAME_BYTES 96

/* Copies a text without what could upset a terminal or a file. */
void ctl_safe_text(const char *from, char *to, size_t bytes);
/* The description, without what could upset a terminal or a file; the GUID if there is none. */
void ctl_node_name(const struct ur_topo *t, uint32_t node, char name[CTL_NAME_BYTES]);

/*
 * The node of that GUID, description, or number after '#'. False: there is none, or more than one; err holds a
 * sentence.
 */
bool ctl_find_node(const struct ur_topo *t, const char *text, uint32_t *node, char *err,
		   size_t err_bytes);

const char *ctl_type_name(uint8_t type);
const char *ctl_state_name(uint8_t state);     /* PortState */
const char *ctl_phys_name(uint8_t phys_state); /* PortPhysicalState */
unsigned ctl_width(uint8_t code);	       /* lanes; 0: unknown */
unsigned ctl_mtu(uint8_t code);		       /* bytes; 0: unknown */

/* "duplicate, dead"; empty if nothing is wrong. */
void ctl_faults(uint8_t faults, char *text, size_t bytes);

#endif
