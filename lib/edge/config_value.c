/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#define MAX_CPU 1023

#define WORD(id, word)		"|" word
#define RANGE_U32(lo, hi)	lo, hi, NULL
#define RANGE_REAL(lo, hi)	lo, hi, NULL
#define RANGE_SPRAY(lo, hi)	lo, hi, NULL
#define RANGE_LANES(lo, hi)	0, 0, NULL
#define RANGE_BY_SL(lo, hi)	lo, hi, NULL
#define RANGE_PMTU(lo, hi)	0, 0, "|auto|256|512|1024|2048|4096"
#define RANGE_BOOL(lo, hi)	0, 0, NULL
#define RANGE_CHOICE(words, hi) 0, 0, words(WORD)
#define RANGE_PERCENT(lo, hi)	0, 0, NULL
#define RANGE_TEXT(what, hi)	0, 0, what
#define RANGE_CPUS(lo, hi)	0, 0, NULL
#define RANGE_KEY64(lo, hi)	0, 0, NULL
#define RANGE_MAC(lo, hi)	0, 0, NULL
#define RANGE_NET4(lo, hi)	0, 0, NULL
#define RANGE_NET6(lo, hi)	0, 0, NULL
#define RANGE_IP4(lo, hi)	0, 0, NULL
#define RANGE_IP6(lo, hi)	0, 0, NULL
#define RANGE_NEIGH(lo, hi)	0, 0, NULL

#define ROW(section, member, key, kind, lo, hi, def, doc)                                          \
	{#section,                                                                                 \
	 key,                                                                                      \
	 UR_KIND_##kind,                                                                           \
	 offsetof(struct ur_config, section.member),                                               \
	 RANGE_##kind(lo, hi),                                                                     \
	 def,                                                                                      \
	 doc},
#define IN_RX(m) rx.m
#define IN_TX(m) tx.m

/* clang-format off */
const struct ur_config_key ur_config_keys[] = {
	UR_CONFIG_KEYS_EAL(ROW)
	UR_CONFIG_KEYS_PORT(ROW)
	UR_CONFIG_KEYS_ADDRESS(ROW)
	UR_CONFIG_KEYS_WORKER(ROW)
	UR_CONFIG_KEYS_TRANSPORT(ROW)
	UR_CONFIG_KEYS_QOS(ROW)
	UR_CONFIG_KEYS_PACING(ROW)
	UR_CONFIG_KEYS_CAPTURE(ROW)
	UR_CONFIG_KEYS_IMPAIR(ROW)
	UR_CONFIG_KEYS_IMPAIR_DIR(ROW, IN_RX, "rx_")
	UR_CONFIG_KEYS_IMPAIR_DIR(ROW, IN_TX, "tx_")
	UR_CONFIG_KEYS_ADMISSION(ROW)
	UR_CONFIG_KEYS_MANAGEMENT(ROW)
	UR_CONFIG_KEYS_FORWARDING(ROW)
};
/* clang-format on */

const size_t ur_config_keys_cnt = sizeof(ur_config_keys) / sizeof(ur_config_keys[0]);
_Static_assert(sizeof(ur_config_keys) / sizeof(ur_config_keys[0]) <= UR_CONFIG_KEYS_MAX,
	       "raise UR_CONFIG_KEYS_MAX");

const char *ur_config_noun(const struct ur_config_key *key)
{
	static const char *const noun[] = {
#define X(kind, text) text,
		UR_CONFIG_KINDS(X)
#undef X
	};

	return noun[key->kind];
}

void ur_config_allowed(const struct ur_config_key *key, char *buf, size_t cap)
{
	switch (key->kind) {
	case UR_KIND_U32:
		snprintf(buf, cap, "%lld to %lld", (long long)key->lo, (long long)key->hi);
		break;
	case UR_KIND_SPRAY:
		snprintf(buf, cap, "off, all, %lld to %lld", (long long)key->lo,
			 (long long)key->hi);
		break;
	case UR_KIND_LANES:
		snprintf(buf, cap,
			 "none, or VL:WEIGHT pairs such as 0:16,2:4, VL 0 to %d, weight 0 to 255, "
			 "%d at most",
			 UR_VL_CNT - 1, UR_VL_ENTRIES);
		break;
	case UR_KIND_BY_SL:
		snprintf(buf, cap, "16 numbers from %lld to %lld, of SL 0 to SL 15",
			 (long long)key->lo, (long long)key->hi);
		break;
	case UR_KIND_REAL:
		snprintf(buf, cap, "%lld to %lld, with decimals", (long long)key->lo,
			 (long long)key->hi);
		break;
	case UR_KIND_BOOL:
		strlcpy(buf, "yes, no", cap);
		break;
	case UR_KIND_PERCENT:
		strlcpy(buf, "0 to 100 with decimals, such as 1 or 0.01%", cap);
		break;
	case UR_KIND_TEXT:
		strlcpy(buf, key->choice, cap);
		break;
	case UR_KIND_CPUS:
		strlcpy(buf, "auto, or CPU numbers such as 2,4-6", cap);
		break;
	case UR_KIND_KEY64:
		strlcpy(buf, "none, or a number such as 0x1122334455667788", cap);
		break;
	case UR_KIND_MAC:
		strlcpy(buf, "auto, or six bytes such as 02:00:00:00:00:0a", cap);
		break;
	case UR_KIND_NET4:
		strlcpy(buf, "none, or ADDRESS/LENGTH such as 10.77.0.1/24", cap);
		break;
	case UR_KIND_NET6:
		strlcpy(buf, "none, or ADDRESS/LENGTH such as fd77::1/64", cap);
		break;
	case UR_KIND_IP4:
		strlcpy(buf, "none, or an address such as 10.77.0.254", cap);
		break;
	case UR_KIND_IP6:
		strlcpy(buf, "none, or an address such as fd77::fe", cap);
		break;
	case UR_KIND_NEIGH:
		snprintf(buf, cap,
			 "none, or IP=MAC pairs such as 10.77.0.2=02:00:00:00:00:02, %d at most",
			 UR_CONFIG_NEIGHBORS);
		break;
	case UR_KIND_CHOICE:
	case UR_KIND_PMTU: {
		size_t n = 0;

		for (const char *p = key->choice + 1; *p != '\0' && n + 3 < cap; p++) {
			if (*p == '|') {
				buf[n++] = ',';
				buf[n++] = ' ';
			} else {
				buf[n++] = *p;
			}
		}
		buf[n] = '\0';
		break;
	}
	}
}

/* The index of `text` in "|word|word", -1 when it is not there. */
static int word_index(const char *words, const char *text)
{
	size_t len = strlen(text);
	int i = 0;

	while (*words == '|') {
		size_t n = strcspn(++words, "|");

		if (n == len && memcmp(words, text, n) == 0)
			return i;
		words += n;
		i++;
	}
	return -1;
}

/* Digits with an optional fraction and nothing else; strtod would take "inf", hex and locales. */
static bool decimal(const char *text, double *out)
{
	double v = 0, scale = 1;
	size_t digits = 0;
	bool point = false;

	if (strlen(text) > 18)
		return false;
	for (; *text != '\0'; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!isdigit((unsigned char)*text))
			return false;
		v = v * 10 + (*text - '0');
		if (point)
			scale *= 10;
		digits++;
	}
	*out = v / scale;
	return digits != 0;
}

static bool percent(const char *text, double *out)
{
	char buf[32];
	size_t len = strlcpy(buf, text, sizeof(buf));
	double v;

	if (len >= sizeof(buf) || len == 0)
		return false;
	if (buf[len - 1] == '%') {
		buf[--len] = '\0';
		while (len != 0 && buf[len - 1] == ' ')
			buf[--len] = '\0';
	}
	if (!decimal(buf, &v) || v > 100)
		return false;
	*out = v / 100;
	return true;
}

static bool number(const char *text, int64_t lo, int64_t hi, uint32_t *out)
{
	const char *why = NULL;
	long long v;

	if (!isdigit((unsigned char)text[0]))
		return false;
	v = strtonum(text, lo, hi, &why);
	if (why != NULL)
		return false;
	*out = (uint32_t)v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Six groups of two digits between colons; of one station, and not zero. */
static bool mac_address(const char *text, uint8_t mac[6])
{
	static const uint8_t none[6];
	uint8_t m[6];

	if (strlen(text) != 17)
		return false;
	for (unsigned i = 0; i < 6; i++, text += 3) {
		int high = hex_digit(text[0]), low = hex_digit(text[1]);

		if (high < 0 || low < 0 || text[2] != (i < 5 ? ':' : '\0'))
			return false;
		m[i] = (uint8_t)(high << 4 | low);
	}
	if ((m[0] & 1) || memcmp(m, none, 6) == 0)
		return false;
	memcpy(mac, m, 6);
	return true;
}

static bool ip4(const char *text, struct ur_gid *out)
{
	struct in_addr a;
	uint32_t host;

	if (inet_pton(AF_INET, text, &a) != 1)
		return false;
	host = ntohl(a.s_addr);
	if (host >> 24 == 0 || host >> 28 >= 0xe) /* "this network", multicast and above */
		return false;
	*out = ur_gid_from_ipv4(host);
	return true;
}

static bool ip6(const char *text, struct ur_gid *out)
{
	struct in6_addr a;

	if (inet_pton(AF_INET6, text, &a) != 1)
		return false;
	if (IN6_IS_ADDR_UNSPECIFIED(&a) || IN6_IS_ADDR_MULTICAST(&a) || IN6_IS_ADDR_V4MAPPED(&a))
		return false;
	memcpy(out->b, &a, 16);
	return true;
}

static bool net(const char *text, bool v6, struct ur_config_net *out)
{
	char buf[UR_CONFIG_TEXT];
	struct ur_config_net v;
	uint32_t len;
	char *slash;

	strlcpy(buf, text, sizeof(buf));
	slash = strchr(buf, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	if (!number(slash + 1, 1, v6 ? 128 : 32, &len))
		return false;
	if (!(v6 ? ip6(buf, &v.addr) : ip4(buf, &v.addr)))
		return false;
	if (!v6 && len < 31) {
		uint32_t host = (uint32_t)v.addr.b[12] << 24 | (uint32_t)v.addr.b[13] << 16 |
				(uint32_t)v.addr.b[14] << 8 | v.addr.b[15];
		uint32_t mask = UINT32_MAX >> len;

		if ((host & mask) == 0 || (host & mask) == mask) /* network and broadcast */
			return false;
	}
	v.len = (uint8_t)len;
	*out = v;
	return true;
}

static bool neighbors(const char *text, struct ur_config_neighbors *out)
{
	struct ur_config_neighbors v = *out;
	char buf[UR_CONFIG_TEXT];
	char *rest = buf, *item;

	strlcpy(buf, text, sizeof(buf));
	while ((item = strsep(&rest, " ,\t")) != NULL) {
		char *eq = strchr(item, '=');

		if (*item == '\0')
			continue;
		if (eq == NULL || v.cnt == UR_CONFIG_NEIGHBORS)
			return false;
		*eq = '\0';
		if (!ip4(item, &v.entry[v.cnt].addr) && !ip6(item, &v.entry[v.cnt].addr))
			return false;
		if (!mac_address(eq + 1, v.entry[v.cnt].mac))
			return false;
		v.cnt++;
	}
	if (v.cnt == out->cnt)
		return false;
	*out = v;
	return true;
}

static bool lanes(const char *text, struct ur_config_lanes *out)
{
	struct ur_config_lanes v = {0};
	char buf[UR_CONFIG_TEXT];
	char *rest = buf, *item;

	strlcpy(buf, text, sizeof(buf));
	while ((item = strsep(&rest, " ,\t")) != NULL) {
		char *colon = strchr(item, ':');
		uint32_t vl, weight;

		if (*item == '\0')
			continue;
		if (colon == NULL || v.cnt == UR_VL_ENTRIES)
			return false;
		*colon = '\0';
		if (!number(item, 0, UR_VL_CNT - 1, &vl) || !number(colon + 1, 0, 255, &weight))
			return false;
		v.entry[v.cnt++] =
			(struct ur_vl_entry){.vl = (uint8_t)vl, .weight = (uint8_t)weight};
	}
	if (v.cnt == 0)
		return false;
	*out = v;
	return true;
}

static bool by_sl(const struct ur_config_key *key, const char *text, uint8_t out[16])
{
	char buf[UR_CONFIG_TEXT];
	char *rest = buf, *item;
	uint8_t v[16];
	unsigned n = 0;

	strlcpy(buf, text, sizeof(buf));
	while ((item = strsep(&rest, " ,\t")) != NULL) {
		uint32_t one;

		if (*item == '\0')
			continue;
		if (n == 16 || !number(item, key->lo, key->hi, &one))
			return false;
		v[n++] = (uint8_t)one;
	}
	if (n != 16)
		return false;
	memcpy(out, v, sizeof(v));
	return true;
}

int ur_config_cpus(const char *text, unsigned *cpu, unsigned cap)
{
	char buf[UR_CONFIG_TEXT];
	char *rest = buf, *item;
	unsigned n = 0;

	strlcpy(buf, text, sizeof(buf));
	while ((item = strsep(&rest, ",")) != NULL) {
		char *dash = strchr(item, '-');
		uint32_t lo, hi;

		if (dash != NULL)
			*dash++ = '\0';
		if (!number(item, 0, MAX_CPU, &lo))
			return -1;
		hi = lo;
		if (dash != NULL && !number(dash, lo, MAX_CPU, &hi))
			return -1;
		for (; lo <= hi; lo++, n++)
			if (n < cap)
				cpu[n] = lo;
	}
	return (int)n;
}

/* "none" is 0, and no other text. */
static bool key64(const char *text, uint64_t *key)
{
	uint64_t v = 0;
	size_t len = strlen(text);

	if (strcmp(text, "none") == 0) {
		*key = 0;
		return true;
	}
	if (len < 3 || len > 18 || text[0] != '0' || text[1] != 'x')
		return false;
	for (const char *p = text + 2; *p != '\0'; p++) {
		if (!isxdigit((unsigned char)*p))
			return false;
		v = v << 4 | (uint64_t)(*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
	}
	*key = v ? v : *key;
	return v != 0;
}

bool ur_config_value(const struct ur_config_key *key, const char *text, struct ur_config *cfg)
{
	void *at = (char *)cfg + key->off;
	bool none = strcmp(text, "none") == 0;
	bool automatic = strcmp(text, "auto") == 0;
	double real;
	int i;

	if (strlen(text) >= UR_CONFIG_TEXT)
		return false;
	switch (key->kind) {
	case UR_KIND_U32:
		return number(text, key->lo, key->hi, at);
	case UR_KIND_SPRAY:
		if (strcmp(text, "off") != 0 && strcmp(text, "all") != 0)
			return number(text, key->lo, key->hi, at);
		*(uint32_t *)at = text[0] == 'a' ? UR_CONFIG_SPRAY_ALL : 0;
		return true;
	case UR_KIND_PMTU:
		i = strcmp(text, "0") == 0 ? 0 : word_index(key->choice, text);
		if (i >= 0)
			*(uint32_t *)at = i == 0 ? 0 : 128u << i;
		return i >= 0;
	case UR_KIND_BOOL:
		if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
			return false;
		*(bool *)at = text[0] == 'y';
		return true;
	case UR_KIND_CHOICE:
		i = word_index(key->choice, text);
		if (i >= 0)
			*(int *)at = i;
		return i >= 0;
	case UR_KIND_REAL:
		if (!decimal(text, &real) || real < (double)key->lo || real > (double)key->hi)
			return false;
		*(double *)at = real;
		return true;
	case UR_KIND_PERCENT:
		return percent(text, at);
	case UR_KIND_TEXT:
		for (const char *p = text; *p != '\0'; p++)
			if (iscntrl((unsigned char)*p) && *p != '\t')
				return false;
		/* where "auto" is the default it is kept as the empty text */
		strlcpy(at, automatic && strcmp(key->def, "auto") == 0 ? "" : text, UR_CONFIG_TEXT);
		return true;
	case UR_KIND_CPUS:
		if (!automatic && ur_config_cpus(text, NULL, 0) <= 0)
			return false;
		strlcpy(at, automatic ? "" : text, UR_CONFIG_TEXT);
		return true;
	case UR_KIND_KEY64:
		return key64(text, at);
	case UR_KIND_MAC:
		if (automatic)
			memset(at, 0, 6);
		return automatic || mac_address(text, at);
	case UR_KIND_NET4:
	case UR_KIND_NET6:
		if (none)
			memset(at, 0, sizeof(struct ur_config_net));
		return none || net(text, key->kind == UR_KIND_NET6, at);
	case UR_KIND_IP4:
	case UR_KIND_IP6:
		if (none)
			memset(at, 0, sizeof(struct ur_gid));
		return none || (key->kind == UR_KIND_IP6 ? ip6(text, at) : ip4(text, at));
	case UR_KIND_NEIGH:
		return none || neighbors(text, at);
	case UR_KIND_LANES:
		if (none)
			memset(at, 0, sizeof(struct ur_config_lanes));
		return none || lanes(text, at);
	case UR_KIND_BY_SL:
		return by_sl(key, text, at);
	}
	return false;
}
