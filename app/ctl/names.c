/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "wire/smp.h"

void ctl_safe_text(const char *from, char *to, size_t bytes)
{
	size_t i;

	for (i = 0; from[i] && i + 1 < bytes; i++) {
		unsigned char c = (unsigned char)from[i];

		to[i] = c < 0x80 && isprint(c) ? (char)c : '.';
	}
	to[i] = '\0';
}

void ctl_node_name(const struct ur_topo *t, uint32_t node, char name[CTL_NAME_BYTES])
{
	const struct ur_topo_node *n = &t->node[node];

	ctl_safe_text(n->description, name, CTL_NAME_BYTES);
	if (!name[0])
		snprintf(name, CTL_NAME_BYTES, "%#" PRIx64, n->guid);
}

static bool find_guid(const struct ur_topo *t, uint64_t guid, uint32_t *node, char *err,
		      size_t err_bytes)
{
	*node = ur_topo_find(t, guid);
	if (*node == UR_TOPO_NONE) {
		snprintf(err, err_bytes, "no node of the fabric has the GUID %#" PRIx64, guid);
		return false;
	}
	if (ur_topo_find_next(t, *node) != UR_TOPO_NONE) {
		snprintf(err, err_bytes,
			 "several nodes have the GUID %#" PRIx64
			 "; name the node by its number, #%u for the first",
			 guid, *node);
		return false;
	}
	return true;
}

bool ctl_find_node(const struct ur_topo *t, const char *text, uint32_t *node, char *err,
		   size_t err_bytes)
{
	uint32_t found = UR_TOPO_NONE;
	uint64_t number;

	if (text[0] == '#' && ctl_parse_number(text + 1, UINT32_MAX, &number)) {
		*node = (uint32_t)number;
		if (number < t->nodes_cnt)
			return true;
		snprintf(err, err_bytes, "there is no node %s: they are #0 to #%u", text,
			 t->nodes_cnt - 1);
		return false;
	}
	if (text[0] == '0' && (text[1] | 0x20) == 'x' &&
	    ctl_parse_number(text, UINT64_MAX, &number))
		return find_guid(t, number, node, err, err_bytes);
	for (uint32_t i = 0; i < t->nodes_cnt; i++) {
		if (strcmp(t->node[i].description, text) != 0)
			continue;
		if (found != UR_TOPO_NONE) {
			snprintf(
				err, err_bytes,
				"several nodes have the description '%s'; name the node by its GUID",
				text);
			return false;
		}
		found = i;
	}
	*node = found;
	if (found == UR_TOPO_NONE)
		snprintf(
			err, err_bytes,
			"no node of the fabric has the description '%s'; 'uroce-ctl topology' lists them",
			text);
	return found != UR_TOPO_NONE;
}

const char *ctl_type_name(uint8_t type)
{
	static const char *const names[] = {"?", "endpoint", "switch", "router"};

	return names[type < 4 ? type : 0];
}

const char *ctl_state_name(uint8_t state)
{
	static const char *const names[] = {"?", "down", "init", "armed", "active", "deferred"};

	return names[state < 6 ? state : 0];
}

const char *ctl_phys_name(uint8_t phys_state)
{
	static const char *const names[] = {"?",	"sleep",   "polling",  "disabled",
					    "training", "link up", "recovery", "test"};

	return names[phys_state < 8 ? phys_state : 0];
}

unsigned ctl_width(uint8_t code)
{
	switch (code) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

unsigned ctl_mtu(uint8_t code)
{
	return code >= 1 && code <= 5 ? 128u << code : 0;
}

void ctl_faults(uint8_t faults, char *text, size_t bytes)
{
	size_t len = 0;

	text[0] = '\0';
#define X(bit, NAME, name, meaning)                                                                \
	if ((faults & UR_TOPO_##NAME) && len < bytes)                                              \
		len += (size_t)snprintf(text + len, bytes - len, "%s" #name, len ? ", " : "");
	UR_TOPO_FAULTS(X)
#undef X
}
