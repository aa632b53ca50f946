/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_SPEC_H
#define SWITCH_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edge/config.h"
#include "switch/attr.h"

/*
 * Descriptions of ports and tables on the command line and in [forwarding]. Pure functions.
 *
 *	KIND=NAME[,KEY=VALUE]...	dev=veth0,rate=1,access=10
 */

/* X(NAME, word, help) */
#define SWITCH_KINDS(X)                                                                            \
	X(DEV, "dev", "a kernel interface, by AF_PACKET")                                          \
	X(XDP, "xdp", "a kernel interface, by AF_XDP: faster, frames up to 3 KB")                  \
	X(TAP, "tap", "a new tap interface of this name")                                          \
	X(MEMIF, "memif", "a memif socket at this path; see role")                                 \
	X(PCI, "pci", "a NIC by vfio, by its PCI address")                                         \
	X(SOCKET, "socket", "a unix socket at this path; see clients and mode")                    \
	X(RING, "ring", "a link to the other port of this name in this process")

enum switch_kind {
#define X(NAME, word, help) SWITCH_##NAME,
	SWITCH_KINDS(X)
#undef X
		SWITCH_KIND_CNT,
	SWITCH_GROUP, /* of the program itself, node.h; in no description */
};

struct switch_spec {
	enum switch_kind kind;
	char text[UR_CONFIG_TEXT]; /* as given */
	char name[UR_CONFIG_TEXT];
	double rate_gbps; /* 0: that of [port] */
	uint32_t mtu;	  /* 0: that of [port] */
	bool has_credits; /* credits was given; else [port] decides */
	bool credits;	  /* link credits */
	bool client;	  /* memif: which end of the socket */
	bool shares; /* dev: takes RoCE alone, and leaves everything else to the kernel; not by a key */
	uint32_t clients; /* socket: ports that it has */
	uint32_t mode;	  /* socket: permissions */
	bool access;	  /* of VLAN vid only, untagged */
	bool has_native;  /* vid was given for a trunk */
	uint16_t vid;	  /* of untagged frames */
	bool has_trunk;
	uint64_t vids[UR_SWITCH_VIDS / 64]; /* if has_trunk */
};

/* Whether the port offers link credits; `all`: what [port] says for all ports. */
static inline bool switch_spec_credits(const struct switch_spec *s, bool all)
{
	return s->has_credits ? s->credits : all;
}

/* Returns false, with a sentence in `err`. */
bool switch_spec_parse(const char *text, struct switch_spec *out, char *err, size_t cap);

const char *switch_kind_word(enum switch_kind kind);

struct switch_route {
	struct ur_gid addr;
	uint16_t lid;
	uint8_t lmc;
};

/* "10.0.0.1=5" or "fe80::1=8/2"; a sentence in `err` otherwise. */
bool switch_route_parse(const char *text, struct switch_route *out, char *err, size_t cap);
/* "5=1": LID and port. */
bool switch_lid_parse(const char *text, uint16_t *lid, uint8_t *port, char *err, size_t cap);

#endif
