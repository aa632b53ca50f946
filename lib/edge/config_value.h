/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CONFIG_VALUE_H
#define UR_EDGE_CONFIG_VALUE_H

#include "edge/config.h"

/*
 * Internal to the sources of config.h: the table of keys made from config_keys.h, the parser of single
 * values, and the functions that the file reader and ur_config_set() share.
 */

/* X(kind, noun for messages: "... is not NOUN") */
#define UR_CONFIG_KINDS(X)                                                                         \
	X(U32, "a whole number in range")                                                          \
	X(PMTU, "a path MTU")                                                                      \
	X(BOOL, "yes or no")                                                                       \
	X(CHOICE, "one of the known words")                                                        \
	X(SPRAY, "a number of UDP source ports")                                                   \
	X(LANES, "a table of lanes")                                                               \
	X(BY_SL, "a number for each service level")                                                \
	X(REAL, "a number in range")                                                               \
	X(PERCENT, "a percentage")                                                                 \
	X(TEXT, "a usable text")                                                                   \
	X(CPUS, "a list of CPUs")                                                                  \
	X(KEY64, "a key of 64 bits")                                                               \
	X(MAC, "the MAC address of one station")                                                   \
	X(NET4, "an IPv4 host address with a prefix length")                                       \
	X(NET6, "an IPv6 host address with a prefix length")                                       \
	X(IP4, "an IPv4 address")                                                                  \
	X(IP6, "an IPv6 address")                                                                  \
	X(NEIGH, "a list of static neighbours")

enum ur_config_kind {
#define X(kind, noun) UR_KIND_##kind,
	UR_CONFIG_KINDS(X)
#undef X
};

struct ur_config_key {
	const char *section, *key;
	enum ur_config_kind kind;
	size_t off;	    /* of the member in struct ur_config */
	int64_t lo, hi;	    /* U32, REAL, SPRAY, BY_SL: the range [lo, hi] */
	const char *choice; /* CHOICE: "|word|word" in enum order; TEXT: what is meant */
	const char *def;    /* the default, as text */
	const char *doc;
};

extern const struct ur_config_key ur_config_keys[];
extern const size_t ur_config_keys_cnt;

/* "eal", "port", ...; [0, ur_config_sections_cnt) */
extern const char *const ur_config_sections[];
extern const size_t ur_config_sections_cnt;

/* -1: there is no such section. */
int ur_config_section_index(const char *name);
/* NULL: there is no such key. */
const struct ur_config_key *ur_config_find_key(const char *section, const char *name);

/* For messages: list all sections, or all keys of one. */
void ur_config_list_sections(char *buf, size_t cap);
void ur_config_list_keys(const char *section, char *buf, size_t cap);

/* Writes the message; returns -EINVAL. */
int ur_config_fail(char *err, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for a value that is not allowed at `where`, "FILE:LINE" or "--set". */
int ur_config_value_error(const struct ur_config_key *key, const char *value, const char *where,
			  char *err, size_t cap);

/*
 * Parses `text` (at most UR_CONFIG_TEXT - 1 characters) into the member of `cfg` that `key` names.
 * NEIGH appends to what is there. Returns false with `cfg` unchanged when the text is not allowed.
 */
bool ur_config_value(const struct ur_config_key *key, const char *text, struct ur_config *cfg);

/* The noun for a valid value, such as "a whole number in range". */
const char *ur_config_noun(const struct ur_config_key *key);

/* Writes the allowed values, such as "0 to 9600", into buf. */
void ur_config_allowed(const struct ur_config_key *key, char *buf, size_t cap);

/* CPUs of a list such as "2,4-6" into cpu[0, cap). Returns how many there are, -1 if malformed. */
int ur_config_cpus(const char *text, unsigned *cpu, unsigned cap);

#endif
