/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape.h"
#include "manager/requests.h"

/* X(option, field, least, most, default) */
#define NUMBERS(X)                                                                                 \
	X("window", window, 1, UR_REQUESTS_WINDOW_MAX, 64)                                         \
	X("per-node", per_node, 1, 255, 4)                                                         \
	X("retries", retries, 0, 100, 3)                                                           \
	X("timeout-ms", timeout_ms, 1, 60000, 100)                                                 \
	X("nodes", nodes, 1, 1 << 20, 65536)

/* X(option, field) */
#define STRINGS(X)                                                                                 \
	X("fabric-model", fabric_model)                                                            \
	X("socket", socket)                                                                        \
	X("dev", dev)                                                                              \
	X("json", json)                                                                            \
	X("dot", dot)

enum opt {
	OPT_HELP = 256,
#define X(text, field, ...) OPT_##field,
	NUMBERS(X) STRINGS(X)
#undef X
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPT_HELP},
#define X(text, field, ...) {text, required_argument, NULL, OPT_##field},
	NUMBERS(X) STRINGS(X)
#undef X
		{NULL, 0, NULL, 0},
};

static const struct command {
	const char *name, *words;
	unsigned least, most;
} commands[] = {
#define X(name, words, least, most, meaning) {#name, words, least, most},
	CTL_COMMANDS(X)
#undef X
};

const char *ctl_command_name(enum ctl_command command)
{
	return commands[command].name;
}

struct parser {
	struct ctl_options *o;
	char *err;
	size_t err_bytes;
};

__attribute__((format(printf, 2, 3))) static enum ctl_parse fail(struct parser *p, const char *fmt,
								 ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_bytes, fmt, ap);
	va_end(ap);
	return CTL_PARSE_USAGE;
}

bool ctl_parse_number(const char *text, uint64_t max, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t v;
	char *end;

	if (hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	v = strtoull(text, &end, hex ? 16 : 10);
	if (errno || *end || v > max)
		return false;
	*value = v;
	return true;
}

static enum ctl_parse take_number(struct parser *p, const char *name, const char *text,
				  uint64_t least, uint64_t most, uint64_t *value)
{
	uint64_t v;

	if (!ctl_parse_number(text, most, &v) || v < least)
		return fail(p, "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, name,
			    text, least, most);
	*value = v;
	return CTL_PARSE_OK;
}

static enum ctl_parse take_option(struct parser *p, int opt, const char *text)
{
	switch (opt) {
	case OPT_HELP:
		return CTL_PARSE_HELP;
#define X(name, field, least, most, standard)                                                      \
	case OPT_##field:                                                                          \
		return take_number(p, name, text, least, most, &p->o->field);
		NUMBERS(X)
#undef X
#define X(name, field)                                                                             \
	case OPT_##field:                                                                          \
		p->o->field = text;                                                                \
		return CTL_PARSE_OK;
		STRINGS(X)
#undef X
	default:
		return CTL_PARSE_USAGE;
	}
}

static enum ctl_parse take_command(struct parser *p, const char *name)
{
	for (unsigned i = 0; i < CTL_COMMAND_CNT; i++)
		if (!strcmp(name, commands[i].name)) {
			p->o->command = (enum ctl_command)i;
			return CTL_PARSE_OK;
		}
	return fail(p,
		    "'%s' is not one of "
#define X(name, words, least, most, meaning) #name ", "
		    CTL_COMMANDS(X)
#undef X
			    "see --help",
		    name);
}

static enum ctl_parse check(struct parser *p)
{
	const struct ctl_options *o = p->o;
	const struct command *c = &commands[o->command];

	if (o->words_cnt < c->least || o->words_cnt > c->most)
		return fail(p, "%s: it is 'uroce-ctl %s%s%s'", c->name, c->name,
			    c->words[0] ? " " : "", c->words);
	if (!o->fabric_model + !o->socket + !o->dev != 2)
		return fail(p,
			    "say once how to join the fabric: --dev INTERFACE, --socket FILE, or "
			    "--fabric-model SHAPE to try it out");
	if (o->dot && o->command != CTL_topology)
		return fail(p, "--dot is for topology");
	return CTL_PARSE_OK;
}

enum ctl_parse ctl_options_parse(struct ctl_options *o, int argc, char **argv, char *err,
				 size_t err_bytes)
{
	struct parser p = {o, err, err_bytes};
	enum ctl_parse r;
	int opt;

	*o = (struct ctl_options){
#define X(text, field, least, most, standard) .field = (standard),
		NUMBERS(X)
#undef X
	};
	optind = 1;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == ':')
			return fail(&p, "%s needs a value", argv[optind - 1]);
		if (opt == '?')
			return fail(&p, "there is no option '%s'; see --help", argv[optind - 1]);
		r = opt == 'h' ? CTL_PARSE_HELP : take_option(&p, opt, optarg);
		if (r != CTL_PARSE_OK)
			return r;
	}
	if (optind == argc)
		return fail(&p, "say what to do, such as 'uroce-ctl discover'; see --help");
	r = take_command(&p, argv[optind++]);
	if (r != CTL_PARSE_OK)
		return r;
	for (; optind < argc; optind++) {
		if (o->words_cnt == CTL_WORDS_MAX)
			return fail(&p, "more than %d words follow '%s'", CTL_WORDS_MAX,
				    ctl_command_name(o->command));
		o->words[o->words_cnt++] = argv[optind];
	}
	return check(&p);
}
