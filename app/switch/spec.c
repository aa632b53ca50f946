/* SPDX-License-Identifier: BSD-3-Clause */
#include "spec.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS_DEFAULT 8
#define MODE_DEFAULT	0660

static bool __attribute__((format(printf, 3, 4))) wrong(char *err, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, cap, fmt, ap);
	va_end(ap);
	return false;
}

const char *switch_kind_word(enum switch_kind kind)
{
	static const char *const word[] = {
#define X(NAME, text, help) text,
		SWITCH_KINDS(X)
#undef X
	};

	return word[kind];
}

/* A whole number in [lo, hi] and nothing else. */
static bool number(const char *text, int base, unsigned long lo, unsigned long hi, uint32_t *out)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)text[0]) || strlen(text) > 10)
		return false;
	v = strtoul(text, &end, base);
	if (*end || v < lo || v > hi)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* "10+20+30" */
static bool vlans(char *text, struct switch_spec *s)
{
	for (char *word; (word = strsep(&text, "+")) != NULL;) {
		uint32_t vid;

		if (!number(word, 10, 1, UR_SWITCH_VIDS - 2, &vid))
			return false;
		s->vids[vid / 64] |= UINT64_C(1) << vid % 64;
	}
	s->has_trunk = true;
	return true;
}

/* Returns what is allowed if the value is not; NULL: it is. */
static const char *take_key(struct switch_spec *s, const char *key, char *value)
{
	uint32_t v;
	char *end;

	if (strcmp(key, "rate") == 0) {
		s->rate_gbps = strtod(value, &end);
		return !*end && s->rate_gbps >= UR_RATE_GBPS_MIN && s->rate_gbps <= 1000
			       ? NULL
			       : "Gb/s from 0.001 to 1000";
	}
	if (strcmp(key, "mtu") == 0)
		return number(value, 10, 256, 9600, &s->mtu) ? NULL : "256 to 9600";
	if (strcmp(key, "credits") == 0 && s->kind != SWITCH_SOCKET && s->kind != SWITCH_RING) {
		s->has_credits = true;
		s->credits = strcmp(value, "yes") == 0;
		return s->credits || strcmp(value, "no") == 0 ? NULL : "yes, no";
	}
	if (strcmp(key, "access") == 0 || strcmp(key, "native") == 0) {
		if (!number(value, 10, 1, UR_SWITCH_VIDS - 2, &v))
			return "a VLAN from 1 to 4094";
		s->vid = (uint16_t)v;
		s->access |= key[0] == 'a';
		s->has_native |= key[0] == 'n';
		return NULL;
	}
	if (strcmp(key, "trunk") == 0)
		return vlans(value, s) ? NULL : "VLANs such as 10+20";
	if (strcmp(key, "role") == 0 && s->kind == SWITCH_MEMIF) {
		s->client = strcmp(value, "client") == 0;
		return s->client || strcmp(value, "server") == 0 ? NULL : "server, client";
	}
	if (strcmp(key, "clients") == 0 && s->kind == SWITCH_SOCKET)
		return number(value, 10, 1, UR_SWITCH_PORTS_MAX - 1, &s->clients) ? NULL
										  : "1 to 63";
	if (strcmp(key, "mode") == 0 && s->kind == SWITCH_SOCKET)
		return number(value, 8, 0, 0777, &s->mode) ? NULL : "permissions such as 0666";
	return "";
}

static bool take_keys(struct switch_spec *s, char *rest, char *err, size_t cap)
{
	static const char *const more[SWITCH_KIND_CNT] = {[SWITCH_MEMIF] = ", credits, role",
							  [SWITCH_SOCKET] = ", clients, mode",
							  [SWITCH_RING] = "",
							  [SWITCH_DEV] = ", credits",
							  [SWITCH_XDP] = ", credits",
							  [SWITCH_TAP] = ", credits",
							  [SWITCH_PCI] = ", credits"};

	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		char *value = strchr(word, '=');
		const char *allowed;

		if (value)
			*value++ = '\0';
		allowed = value ? take_key(s, word, value) : "";
		if (allowed && *allowed)
			return wrong(err, cap, "port \"%s\": %s is not valid; allowed: %s", s->text,
				     word, allowed);
		if (allowed)
			return wrong(err, cap,
				     "port \"%s\": \"%s\" is not a key of a %s port; allowed: "
				     "rate, mtu, access, native, trunk%s, each with =VALUE",
				     s->text, word, switch_kind_word(s->kind), more[s->kind]);
	}
	if (s->access && (s->has_trunk || s->has_native))
		return wrong(err, cap, "port \"%s\": access and %s exclude each other", s->text,
			     s->has_trunk ? "trunk" : "native");
	return true;
}

bool switch_spec_parse(const char *text, struct switch_spec *out, char *err, size_t cap)
{
	struct switch_spec s = {.clients = CLIENTS_DEFAULT,
				.mode = MODE_DEFAULT,
				.vid = UR_SWITCH_VID,
				.kind = SWITCH_KIND_CNT};
	char copy[UR_CONFIG_TEXT], *rest = copy, *word, *name;

	if (strlen(text) >= sizeof(copy))
		return wrong(err, cap, "port \"%.40s...\" is longer than 255 characters", text);
	strcpy(copy, text);
	strcpy(s.text, text);
	word = strsep(&rest, ",");
	name = strchr(word, '=');
	if (name)
		*name++ = '\0';
	for (unsigned k = 0; k < SWITCH_KIND_CNT; k++)
		if (strcmp(word, switch_kind_word(k)) == 0)
			s.kind = k;
	if (!name || !*name || s.kind == SWITCH_KIND_CNT)
		return wrong(err, cap,
			     "port \"%s\" is not KIND=NAME; allowed kinds: dev, xdp, tap, memif, "
			     "pci, socket, ring, such as dev=veth0",
			     text);
	strcpy(s.name, name);
	if (rest && !take_keys(&s, rest, err, cap))
		return false;
	*out = s;
	return true;
}

static bool address(const char *text, struct ur_gid *out)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*out = ur_gid_from_ipv4(ntohl(v4.s_addr));
		return true;
	}
	return inet_pton(AF_INET6, text, out->b) == 1;
}

bool switch_route_parse(const char *text, struct switch_route *out, char *err, size_t cap)
{
	char copy[UR_CONFIG_TEXT], *lid, *lmc;
	uint32_t v = 0, shift = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	lid = strchr(copy, '=');
	lmc = lid ? strchr(lid, '/') : NULL;
	if (lid)
		*lid++ = '\0';
	if (lmc)
		*lmc++ = '\0';
	if (!lid || !address(copy, &out->addr) || !number(lid, 10, 1, UR_SWITCH_LIDS - 1, &v) ||
	    (lmc && !number(lmc, 10, 0, 7, &shift)) || v & ((1u << shift) - 1))
		return wrong(err, cap,
			     "route \"%s\" is not valid; allowed: ADDRESS=LID or ADDRESS=LID/LMC, "
			     "LID 1 to 49151 and a multiple of 2^LMC, LMC 0 to 7",
			     text);
	out->lid = (uint16_t)v;
	out->lmc = (uint8_t)shift;
	return true;
}

bool switch_lid_parse(const char *text, uint16_t *lid, uint8_t *port, char *err, size_t cap)
{
	char copy[UR_CONFIG_TEXT], *second;
	uint32_t l, p;

	snprintf(copy, sizeof(copy), "%s", text);
	second = strchr(copy, '=');
	if (second)
		*second++ = '\0';
	if (!second || !number(copy, 10, 1, UR_SWITCH_LIDS - 1, &l) ||
	    !number(second, 10, 0, UR_SWITCH_PORTS_MAX - 1, &p))
		return wrong(err, cap,
			     "LID \"%s\" is not valid; allowed: LID=PORT, LID 1 to 49151, PORT 0 "
			     "(the switch) to 63",
			     text);
	*lid = (uint16_t)l;
	*port = (uint8_t)p;
	return true;
}
