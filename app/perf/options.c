/* SPDX-License-Identifier: BSD-3-Clause */
#include "options_priv.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "uroce/pacing_modes.h"
#include "uroce/uroce.h"

#define SIZE_LIMIT (1ull << 31)

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"help-config", no_argument, NULL, OPT_HELP_CONFIG},
	{"set", required_argument, NULL, OPT_SET},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"pacing", required_argument, NULL, OPT_PACING},
	{"op", required_argument, NULL, OPT_OP},
	{"mode", required_argument, NULL, OPT_MODE},
	{"type", required_argument, NULL, OPT_TYPE},
	{"transport-mode", required_argument, NULL, OPT_TRANSPORT_MODE},
	{"size", required_argument, NULL, OPT_SIZE},
	{"sizes", required_argument, NULL, OPT_SIZES},
	{"bytes", required_argument, NULL, OPT_BYTES},
	{"mtu", required_argument, NULL, OPT_MTU},
#define X(text, field, ...) {text, required_argument, NULL, OPT_##field},
	PERF_OPT_NUMBERS(X) PERF_OPT_SECONDS(X) PERF_OPT_LISTS(X) PERF_OPT_STRINGS(X)
#undef X
#define X(text, field) {text, no_argument, NULL, OPT_##field},
		PERF_OPT_FLAGS(X)
#undef X
			{NULL, 0, NULL, 0},
};

const char *perf_option_name(enum perf_opt opt)
{
	const struct option *l = long_options;

	while (l->val != (int)opt)
		l++;
	return l->name;
}

static bool parse_u64(const char *text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno == 0 && *end == '\0';
}

bool perf_parse_size(const char *text, uint64_t max, uint64_t *value)
{
	unsigned shift = 0;
	uint64_t v;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	}
	if (shift != 0)
		end++;
	if (errno != 0 || *end != '\0' || v > (max >> shift))
		return false;
	*value = v << shift;
	return true;
}

/* A plain number, one with K, M or G, or one such as 1e9. */
static bool parse_bytes(const char *text, uint64_t *value)
{
	char *end;
	double d;

	if (perf_parse_size(text, UINT64_MAX, value))
		return true;
	if (!isdigit((unsigned char)text[0]))
		return false;
	d = strtod(text, &end);
	if (*end != '\0' || !(d >= 0) || d >= 1e18)
		return false;
	*value = (uint64_t)d;
	return true;
}

static bool add_size(struct perf_options *o, uint64_t size)
{
	if (o->sizes_cnt == PERF_SIZES_MAX)
		return false;
	o->sizes[o->sizes_cnt++] = size;
	return true;
}

/* "1,64,4K" or "2..1M"; the pieces may be mixed. */
static enum perf_parse parse_sizes(struct perf_parser *p, const char *text)
{
	char item[64];

	while (*text != '\0') {
		size_t len = strcspn(text, ",");
		uint64_t from, to;
		char *dots;

		if (len == 0 || len >= sizeof(item))
			return fail(
				p, "--sizes needs a list such as 1,64,4K or a range such as 2..1M");
		memcpy(item, text, len);
		item[len] = '\0';
		text += len + (text[len] == ',');
		dots = strstr(item, "..");
		if (dots != NULL)
			*dots = '\0';
		if (!perf_parse_size(item, SIZE_LIMIT, &from) ||
		    !perf_parse_size(dots != NULL ? dots + 2 : item, SIZE_LIMIT, &to))
			return fail(
				p,
				"--sizes: '%s%s%s' is not a size from 0 to 2G, nor a range of sizes",
				item, dots != NULL ? ".." : "", dots != NULL ? dots + 2 : "");
		if (from > to || (dots != NULL && from == 0))
			return fail(p, "--sizes: a range goes up, from at least 1: 2..1M");
		for (; from <= to; from *= 2) {
			if (!add_size(p->o, from))
				return fail(p, "--sizes takes at most %d sizes", PERF_SIZES_MAX);
			if (from == to)
				break;
		}
	}
	if (p->o->sizes_cnt == 0)
		return fail(p, "--sizes needs a list such as 1,64,4K or a range such as 2..1M");
	return PERF_PARSE_OK;
}

static enum perf_parse parse_op(struct perf_parser *p, const char *text)
{
	for (unsigned i = 0; i < PERF_OP_CNT; i++) {
		if (strcmp(text, perf_op_name(i)) == 0) {
			p->o->op = i;
			return PERF_PARSE_OK;
		}
	}
	return fail(
		p,
		"--op: '%s' is not one of write, write_imm, read, send, send_imm, send_inv, cas, "
		"fetch_add, mixed",
		text);
}

static enum perf_parse parse_mode(struct perf_parser *p, const char *text)
{
	for (unsigned i = 0; i < PERF_MODE_CNT; i++) {
		if (strcmp(text, perf_mode_name(i)) == 0) {
			p->o->mode = i;
			return PERF_PARSE_OK;
		}
	}
	return fail(p, "--mode: '%s' is not one of bw, rate, lat, soak, connect", text);
}

static enum perf_parse parse_type(struct perf_parser *p, const char *text)
{
	for (unsigned i = 0; i < PERF_TYPE_CNT; i++) {
		if (strcmp(text, perf_type_name(i)) == 0) {
			p->o->type = i;
			return PERF_PARSE_OK;
		}
	}
	return fail(p, "--type: '%s' is not one of rc, uc, ud", text);
}

static enum perf_parse parse_transport(struct perf_parser *p, const char *text)
{
	static const char *const words[] = {
#define X(NAME, word) word,
		UROCE_QP_MODES(X)
#undef X
	};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) == 0) {
			p->o->transport = i + 1;
			return PERF_PARSE_OK;
		}
	}
	return fail(p, "--transport-mode: '%s' is not one of auto, extended, reorder, gbn", text);
}

static enum perf_parse parse_number(struct perf_parser *p, const char *name, const char *text,
				    uint64_t min, uint64_t max, uint64_t *value)
{
	if (parse_u64(text, value) && *value >= min && *value <= max)
		return PERF_PARSE_OK;
	if (max == UINT64_MAX)
		return fail(p, "--%s: '%s' is not a whole number of at least %llu", name, text,
			    (unsigned long long)min);
	return fail(p, "--%s: '%s' is not a whole number from %llu to %llu", name, text,
		    (unsigned long long)min, (unsigned long long)max);
}

static enum perf_parse parse_seconds(struct perf_parser *p, const char *name, const char *text,
				     double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(*value) || *value < 0 || *value > max)
		return fail(p, "--%s: '%s' is not a number of seconds from 0 to %.0f", name, text,
			    max);
	return PERF_PARSE_OK;
}

static enum perf_parse parse_list(struct perf_parser *p, const char *name, const char *text,
				  uint64_t min, uint64_t max, struct perf_list *list)
{
	char item[16];

	list->cnt = 0;
	do {
		size_t len = strcspn(text, ",");
		uint64_t v;

		if (list->cnt == PERF_LIST_MAX)
			return fail(p, "--%s takes at most %d numbers", name, PERF_LIST_MAX);
		snprintf(item, sizeof(item), "%.*s", (int)len, text);
		if (len >= sizeof(item) || !parse_u64(item, &v) || v < min || v > max)
			return fail(p, "--%s: '%.*s' is not a whole number from %llu to %llu", name,
				    (int)len, text, (unsigned long long)min,
				    (unsigned long long)max);
		list->v[list->cnt++] = (uint8_t)v;
		text += len;
	} while (*text++ == ',');
	return PERF_PARSE_OK;
}

static enum perf_parse add_set(struct perf_parser *p, const char *text)
{
	unsigned n = 0;

	while (p->o->set[n] != NULL)
		n++;
	if (n == PERF_SETS_MAX)
		return fail(p, "--set may be given at most %d times", PERF_SETS_MAX);
	p->o->set[n] = text;
	return PERF_PARSE_OK;
}

static enum perf_parse parse_set(struct perf_parser *p, const char *text)
{
	const char *dot = strchr(text, '.');
	const char *eq = strchr(text, '=');

	if (dot == NULL || eq == NULL || dot == text || eq < dot || eq == dot + 1)
		return fail(p, "--set: '%s' is not of the form section.key=value", text);
	return add_set(p, text);
}

/* --pacing MODE is --set pacing.mode=MODE. */
static enum perf_parse parse_pacing(struct perf_parser *p, const char *text)
{
	static const struct {
		const char *name, *set;
	} modes[] = {
#define X(NAME, name, summary) {#name, "pacing.mode=" #name},
		UROCE_PACING_MODES(X)
#undef X
	};

	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(text, modes[i].name) == 0)
			return add_set(p, modes[i].set);
/* ", none, cmdpd": without the first comma. */
#define X(NAME, name, summary) ", " #name
	return fail(p, "--pacing: '%s' is not one of %s", text, &("" UROCE_PACING_MODES(X))[2]);
#undef X
}

static enum perf_parse parse_config(struct perf_parser *p, const char *text)
{
	if (text[0] == '\0')
		return fail(p, "--config needs a value that is not empty");
	if (p->o->configs_cnt == PERF_CONFIGS_MAX)
		return fail(p, "--config may be given at most %d times", PERF_CONFIGS_MAX);
	p->o->config[p->o->configs_cnt++] = text;
	return PERF_PARSE_OK;
}

static enum perf_parse parse_mtu(struct perf_parser *p, const char *text)
{
	uint64_t v;

	if (!parse_u64(text, &v) || (v != 256 && v != 512 && v != 1024 && v != 2048 && v != 4096))
		return fail(p, "--mtu: '%s' is not one of 256, 512, 1024, 2048, 4096", text);
	p->o->mtu = v;
	return PERF_PARSE_OK;
}

static enum perf_parse parse_one(struct perf_parser *p, int opt, const char *arg)
{
	struct perf_options *o = p->o;
	uint64_t v = 0;
	enum perf_parse rc;

	switch (opt) {
	case OPT_SET:
		return parse_set(p, arg);
	case OPT_CONFIG:
		return parse_config(p, arg);
	case OPT_PACING:
		return parse_pacing(p, arg);
	case OPT_OP:
		return parse_op(p, arg);
	case OPT_MODE:
		return parse_mode(p, arg);
	case OPT_TYPE:
		return parse_type(p, arg);
	case OPT_TRANSPORT_MODE:
		return parse_transport(p, arg);
	case OPT_SIZES:
		return parse_sizes(p, arg);
	case OPT_MTU:
		return parse_mtu(p, arg);
	case OPT_SIZE:
		if (!perf_parse_size(arg, SIZE_LIMIT, &v))
			return fail(p,
				    "--size: '%s' is not a size from 0 to 2G (K, M, G may follow)",
				    arg);
		return add_size(o, v) ? PERF_PARSE_OK : fail(p, "--size may be given only once");
	case OPT_BYTES:
		if (!parse_bytes(arg, &o->bytes) || o->bytes == 0)
			return fail(p,
				    "--bytes: '%s' is not an amount of bytes such as 500M or 1e9",
				    arg);
		return PERF_PARSE_OK;
#define X(text, field, min, max, def)                                                              \
	case OPT_##field:                                                                          \
		rc = parse_number(p, text, arg, min, max, &v);                                     \
		if (rc == PERF_PARSE_OK)                                                           \
			o->field = v;                                                              \
		return rc;
		PERF_OPT_NUMBERS(X)
#undef X
#define X(text, field, max, def)                                                                   \
	case OPT_##field:                                                                          \
		return parse_seconds(p, text, arg, max, &o->field);
		PERF_OPT_SECONDS(X)
#undef X
#define X(text, field, min, max, def)                                                              \
	case OPT_##field:                                                                          \
		return parse_list(p, text, arg, min, max, &o->field);
		PERF_OPT_LISTS(X)
#undef X
#define X(text, field)                                                                             \
	case OPT_##field:                                                                          \
		o->field = true;                                                                   \
		return PERF_PARSE_OK;
		PERF_OPT_FLAGS(X)
#undef X
#define X(text, field)                                                                             \
	case OPT_##field:                                                                          \
		if (arg[0] == '\0')                                                                \
			return fail(p, "--%s needs a value that is not empty", text);              \
		o->field = arg;                                                                    \
		return PERF_PARSE_OK;
		PERF_OPT_STRINGS(X)
#undef X
	}
	return fail(p, "an option is not understood; see uroce-perf --help");
}

static enum perf_parse parse_all(struct perf_parser *p, int argc, char **argv)
{
	enum perf_parse rc;
	int opt;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
		if (opt == OPT_HELP || opt == 'h')
			return PERF_PARSE_HELP;
		if (opt == OPT_HELP_CONFIG)
			return PERF_PARSE_HELP_CONFIG;
		if (opt == ':')
			return fail(p, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return fail(p, "'%s' is not an option of uroce-perf; see uroce-perf --help",
				    argv[optind - 1]);
		if (p->given[opt] && opt != OPT_SET && opt != OPT_CONFIG)
			return fail(p, "%s is given twice",
				    argv[optind - (optarg != NULL ? 2 : 1)]);
		p->given[opt] = true;
		rc = parse_one(p, opt, optarg);
		if (rc != PERF_PARSE_OK)
			return rc;
	}
	if (optind < argc)
		return fail(p, "'%s' is not an option; every value follows a --name", argv[optind]);
	return PERF_PARSE_OK;
}

enum perf_parse perf_options_parse(struct perf_options *o, int argc, char **argv, char *err,
				   size_t err_bytes)
{
	struct perf_parser p = {.o = o, .err = err, .err_bytes = err_bytes};
	enum perf_parse rc;

	memset(o, 0, sizeof(*o));
#define X(text, field, min, max, def) o->field = def;
	PERF_OPT_NUMBERS(X)
#undef X
#define X(text, field, max, def) o->field = def;
	PERF_OPT_SECONDS(X)
#undef X
#define X(text, field, min, max, def) o->field = (struct perf_list){.v = {def}, .cnt = 1};
	PERF_OPT_LISTS(X)
#undef X
	if (argc < 2)
		return fail(
			&p,
			"say 'uroce-perf server' or 'uroce-perf client'; see uroce-perf --help");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return PERF_PARSE_HELP;
	if (strcmp(argv[1], "--help-config") == 0)
		return PERF_PARSE_HELP_CONFIG;
	if (strcmp(argv[1], "server") != 0 && strcmp(argv[1], "client") != 0)
		return fail(&p, "'%s' is neither 'server' nor 'client'; see uroce-perf --help",
			    argv[1]);
	o->server = argv[1][0] == 's';
	rc = parse_all(&p, argc - 1, argv + 1);
	return rc == PERF_PARSE_OK ? perf_options_check(&p) : rc;
}
