/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_CONFIG_H
#define UR_EDGE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "edge/config_keys.h"
#include "engine/engine.h"
#include "wire/packet.h"

/*
 * The configuration of one endpoint: an INI file (config_file.c; "#" starts a comment) and
 * single keys set on the command line. Plain data without pointers, which may be copied. Not
 * thread-safe; needs no EAL.
 *
 * A program does:   ur_config_load(file, &cfg, err, sizeof(err))
 *                   ur_config_set(&cfg, "port.mtu", "4200", err, sizeof(err))   any number of times
 *                   ur_config_share(&cfg)
 *                   ur_config_check(&cfg, err, sizeof(err))
 * ur_eal_init() checks again, so that an omitted check only delays the message.
 *
 * Errors are one sentence without a newline,
 *     FILE:LINE: [section] key: "value" is not ...; allowed: ...
 * with "--set" in place of FILE:LINE for keys of ur_config_set(). `err` is written on error only.
 */

#define UR_CONFIG_TEXT	       256 /* bytes of a text value, NUL included (rte_cfgfile's limit) */
#define UR_CONFIG_NEIGHBORS    64  /* static neighbours at most */
#define UR_CONFIG_KEYS_MAX     152 /* at least the keys of all sections; checked when compiled */
#define UR_CONFIG_SECTIONS_MAX 16
#define UR_WORKERS_MAX	       8
#define UR_CONFIG_SPRAY_ALL    255 /* [transport] spray = all */

/* The largest MTU for af_xdp: a packet, its headroom and the kernel's own data share a page. */
#define UR_AF_XDP_MTU_MAX 3072

enum ur_driver {
#define X(id, word) UR_DRIVER_##id,
	UR_DRIVERS(X)
#undef X
};

enum ur_tristate {
#define X(id, word) UR_TRISTATE_##id,
	UR_TRISTATES(X)
#undef X
};

enum ur_memif_role {
#define X(id, word) UR_MEMIF_ROLE_##id,
	UR_MEMIF_ROLES(X)
#undef X
};

enum ur_forwarding_admission {
#define X(id, word) UR_FORWARDING_ADMISSION_##id,
	UR_FORWARDING_ADMISSIONS(X)
#undef X
};

enum ur_average {
#define X(id, word) UR_AVERAGE_##id,
	UR_AVERAGES(X)
#undef X
};

enum ur_delay_source {
#define X(id, word) UR_DELAY_##id,
	UR_DELAYS(X)
#undef X
};

enum ur_worker_mode {
#define X(id, word) UR_WORKER_MODE_##id,
	UR_WORKER_MODES(X)
#undef X
};

enum ur_progress_mode {
#define X(id, word) UR_PROGRESS_##id,
	UR_PROGRESS_WORDS(X)
#undef X
};

enum ur_transport_mode {
#define X(id, word) UR_TRANSPORT_MODE_##id,
	UR_TRANSPORT_MODES(X)
#undef X
};

/* The slowest [port] rate_gbps. */
#define UR_RATE_GBPS_MIN 0.001

struct ur_config_net {
	struct ur_gid addr; /* IPv4 is kept IPv4-mapped */
	uint8_t len; /* prefix length in the family's own bits, 1..32 or 1..128; 0: not set */
};

struct ur_config_neighbor {
	struct ur_gid addr;
	uint8_t mac[6];
};

struct ur_config_neighbors {
	struct ur_config_neighbor entry[UR_CONFIG_NEIGHBORS];
	uint32_t cnt; /* entries in use: [0, cnt) */
};

struct ur_config_lanes {
	struct ur_vl_entry entry[UR_VL_ENTRIES];
	uint8_t cnt; /* entries in use: [0, cnt) */
};

/* The C type of each kind of key. */
#define UR_CONFIG_TYPE_U32(m)	  uint32_t m
#define UR_CONFIG_TYPE_PMTU(m)	  uint32_t m
#define UR_CONFIG_TYPE_BOOL(m)	  bool m
#define UR_CONFIG_TYPE_CHOICE(m)  int m
#define UR_CONFIG_TYPE_REAL(m)	  double m
#define UR_CONFIG_TYPE_SPRAY(m)	  uint32_t m
#define UR_CONFIG_TYPE_LANES(m)	  struct ur_config_lanes m
#define UR_CONFIG_TYPE_BY_SL(m)	  uint8_t m[16]
#define UR_CONFIG_TYPE_PERCENT(m) double m
#define UR_CONFIG_TYPE_TEXT(m)	  char m[UR_CONFIG_TEXT]
#define UR_CONFIG_TYPE_CPUS(m)	  char m[UR_CONFIG_TEXT]
#define UR_CONFIG_TYPE_KEY64(m)	  uint64_t m
#define UR_CONFIG_TYPE_MAC(m)	  uint8_t m[6]
#define UR_CONFIG_TYPE_NET4(m)	  struct ur_config_net m
#define UR_CONFIG_TYPE_NET6(m)	  struct ur_config_net m
#define UR_CONFIG_TYPE_IP4(m)	  struct ur_gid m
#define UR_CONFIG_TYPE_IP6(m)	  struct ur_gid m
#define UR_CONFIG_TYPE_NEIGH(m)	  struct ur_config_neighbors m

#define UR_CONFIG_MEMBER(section, member, key, kind, lo, hi, def, doc)                             \
	UR_CONFIG_TYPE_##kind(member);
#define UR_CONFIG_SELF(m) m

/* One direction of [impair]: the keys rx_* and tx_*. Probabilities are in [0, 1]. */
struct ur_config_impair_dir {
	UR_CONFIG_KEYS_IMPAIR_DIR(UR_CONFIG_MEMBER, UR_CONFIG_SELF, "")
};

/* cfg.port.mtu is the key mtu of [port], and so on; config_keys.h has units and meanings. */
struct ur_config {
	struct {
		UR_CONFIG_KEYS_EAL(UR_CONFIG_MEMBER)
	} eal;
	struct {
		UR_CONFIG_KEYS_PORT(UR_CONFIG_MEMBER)
	} port;
	struct {
		UR_CONFIG_KEYS_ADDRESS(UR_CONFIG_MEMBER)
	} address;
	struct {
		UR_CONFIG_KEYS_WORKER(UR_CONFIG_MEMBER)
	} worker;
	struct {
		UR_CONFIG_KEYS_TRANSPORT(UR_CONFIG_MEMBER)
	} transport;
	struct {
		UR_CONFIG_KEYS_QOS(UR_CONFIG_MEMBER)
	} qos;
	struct {
		UR_CONFIG_KEYS_PACING(UR_CONFIG_MEMBER)
	} pacing;
	struct {
		UR_CONFIG_KEYS_ADMISSION(UR_CONFIG_MEMBER)
	} admission;
	struct {
		UR_CONFIG_KEYS_MANAGEMENT(UR_CONFIG_MEMBER)
	} management;
	struct {
		UR_CONFIG_KEYS_FORWARDING(UR_CONFIG_MEMBER)
	} forwarding; /* of a switch; an endpoint ignores it */
	struct {
		UR_CONFIG_KEYS_CAPTURE(UR_CONFIG_MEMBER)
	} capture;
	struct {
		UR_CONFIG_KEYS_IMPAIR(UR_CONFIG_MEMBER)
		struct ur_config_impair_dir rx, tx;
	} impair;

	bool bare; /* set by a program, not by a key: the port carries frames, and needs no address */
	bool leased; /* [port] and [address] are of a grant of uroced, which may be away for a while (UROCED-RELEASE-02) */

	/* Where a value came from, for messages: its line, 0 for a default, UINT32_MAX for --set.
	 */
	char file[UR_CONFIG_TEXT];
	uint32_t line[UR_CONFIG_KEYS_MAX];
	uint32_t section_line[UR_CONFIG_SECTIONS_MAX]; /* 0: not in the file */
};

/* Every key at its default. Such a configuration names no port: ur_config_check() fails. */
void ur_config_init(struct ur_config *cfg);

/*
 * Sets defaults, then reads the file `name`; NULL: only defaults. A name without a slash that is not a
 * file in the working directory is searched among the installed ones (UR_PMD_CONFIG_DIR, which is
 * ${datadir}/uroce/pmd-config). Values are checked one by one; conditions on several keys are left
 * to ur_config_check(), because ur_config_set() may still change them.
 * Returns 0, -ENOENT/-EACCES/... if the file cannot be read, -EINVAL if it is wrong. `out` is
 * written on success only.
 */
int ur_config_load(const char *name, struct ur_config *out, char *err, size_t err_cap);

/*
 * Sets the key `section.key` and replaces its value (address.neighbor: all entries).
 * Returns 0 or -EINVAL with `cfg` unchanged.
 */
int ur_config_set(struct ur_config *cfg, const char *section_dot_key, const char *value, char *err,
		  size_t err_cap);

/*
 * The same with "section.key=value" in one string, as with `--set`; "section.key?=value" sets only the default of a
 * key that is not set.
 */
int ur_config_set_arg(struct ur_config *cfg, const char *arg, char *err, size_t err_cap);

/*
 * If [port] dev is set: sets the device, and defaults for a shared interface of keys that the
 * configuration does not set. Call it after the last ur_config_set().
 */
void ur_config_share(struct ur_config *cfg);

/* Whether the configuration sets the key; otherwise its value is the default. */
bool ur_config_is_given(const struct ur_config *cfg, const char *section, const char *key);

/* Whether the endpoint shares the addresses of a kernel interface. */
static inline bool ur_config_shares(const struct ur_config *cfg)
{
	return cfg->port.dev[0] != '\0';
}

/* Whether the port is to be leased from uroced: [port] dev is uroced[:PATH][@ADDRESS]. */
bool ur_config_leases(const struct ur_config *cfg);

/*
 * Of a configuration that leases its port: checks that it sets nothing that comes with the lease. Returns 0 or -EINVAL, as
 * ur_config_check(), which is for what the lease makes of it (dpdk/lease.h).
 */
int ur_config_check_lease(const struct ur_config *cfg, char *err, size_t err_cap);

/* Checks the conditions on several keys. Returns 0 or -EINVAL. */
int ur_config_check(const struct ur_config *cfg, char *err, size_t err_cap);

/* Writes the message prefix of a key, "FILE:LINE: [section] key: ", for errors found later; the
 * line of the section stands in for that of a key which is not there. */
void ur_config_where(const struct ur_config *cfg, const char *section, const char *key, char *buf,
		     size_t cap);

/* The word of a driver, "af_packet". */
const char *ur_driver_name(int driver);

/* The text of `--help-config`: every section, key, default, range and meaning. */
void ur_config_help(FILE *out);

#endif
