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
#include "http.h"
#include "manager/requests.h"

/* X(option, field, least, most, default) */
#define NUMBERS(X)                                                                                 \
	X("window", window, 0, UR_REQUESTS_WINDOW_MAX, 0)                                          \
	X("per-node", per_node, 1, 255, 4)                                                         \
	X("retries", retries, 0, 100, 3)                                                           \
	X("timeout-ms", timeout_ms, 1, 60000, 100)                                                 \
	X("nodes", nodes, 1, 1 << 20, 65536)                                                       \
	X("m-key", m_key, 0, UINT64_MAX, 0)                                                        \
	X("tiers", tiers, 1, 3, 2)                                                                 \
	X("count", count, 0, UINT64_MAX, 0)                                                        \
	X("protect", protect, 0, 3, 1)                                                             \
	X("lease", lease, 0, UINT16_MAX, 0)                                                        \
	X("priority", priority, 0, 15, 0)                                                          \
	X("misses", misses, 1, 1000, 3)                                                            \
	X("lmc", lmc, 0, 7, 0)                                                                     \
	X("spray", spray, 0, 16, 0)                                                                \
	X("mtu", mtu, 256, 4096, 4096)

/* X(option, field, default): seconds */
#define SECONDS(X)                                                                                 \
	X("interval", interval_s, 1)                                                               \
	X("duration", duration_s, 0)                                                               \
	X("poll", poll_s, 0.5)

/* X(option, field) */
#define STRINGS(X)                                                                                 \
	X("fabric-model", fabric_model)                                                            \
	X("socket", socket)                                                                        \
	X("dev", dev)                                                                              \
	X("load-routes", load_routes)                                                              \
	X("json", json)                                                                            \
	X("mode", mode)                                                                            \
	X("m-key-file", m_key_file)                                                                \
	X("listen", listen)                                                                        \
	X("log", log)                                                                              \
	X("sport", sport)                                                                          \
	X("zones", zones)                                                                          \
	X("key-out", key_out)                                                                      \
	X("source-routes", source_routes)                                                          \
	X("dot", dot)

/* X(option, field, most, default) */
#define REALS(X)                                                                                   \
	X("rate", rate_gbps, 10000, 0)                                                             \
	X("tolerance", tolerance, 50, 1)                                                           \
	X("share", share, 100, 0)

/* X(option, field) */
#define FLAGS(X)                                                                                   \
	X("force", force)                                                                          \
	X("open", open)                                                                            \
	X("ecmp", ecmp)

#define READS_MAX  1000000
#define SHARE_GBPS 1e-9 /* least that requests may take: one every 46 minutes */

enum opt {
	OPT_HELP = 256,
	OPT_MODEL_EVENT,
#define X(text, field, ...) OPT_##field,
	NUMBERS(X) STRINGS(X) SECONDS(X) REALS(X) FLAGS(X)
#undef X
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"model-event", required_argument, NULL, OPT_MODEL_EVENT},
#define X(text, field, ...) {text, required_argument, NULL, OPT_##field},
	NUMBERS(X) STRINGS(X) SECONDS(X) REALS(X)
#undef X
#define X(text, field) {text, no_argument, NULL, OPT_##field},
		FLAGS(X)
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

const struct ctl_form ctl_forms[] = {
#define X(command, word, words, least, most) {CTL_##command, #word, words, least, most},
	CTL_FORMS(X)
#undef X
};
const unsigned ctl_forms_cnt = sizeof(ctl_forms) / sizeof(ctl_forms[0]);

const char *ctl_command_name(enum ctl_command command)
{
	return commands[command].name;
}

bool ctl_needs_no_fabric(const struct ctl_options *o)
{
	if (o->command == CTL_faults && o->words_cnt)
		return o->words[0][0] != 'a' || (!o->fabric_model && !o->socket && !o->dev);
	return (o->command == CTL_reg && !strcmp(o->words[0], "list")) ||
	       (o->command == CTL_qos && !strcmp(o->words[0], "solve"));
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

bool ctl_read_key(const char *file, uint64_t *key, char *err, size_t err_bytes)
{
	FILE *in = fopen(file, "re");
	char text[64] = "";
	size_t len;

	if (!in) {
		snprintf(err, err_bytes, "%s cannot be read: %s", file, strerror(errno));
		return false;
	}
	len = fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	if (ctl_parse_number(text, UINT64_MAX, key))
		return true;
	snprintf(err, err_bytes, "%s does not hold a key, which is a number of 64 bits", file);
	return false;
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

static enum ctl_parse take_seconds(struct parser *p, const char *name, const char *text,
				   double *value)
{
	char *end;
	double v = isdigit((unsigned char)text[0]) ? strtod(text, &end) : -1;

	if (!(v >= 0) || *end || v > 1e7)
		return fail(p, "--%s: '%s' is not a number of seconds, such as 0.5", name, text);
	*value = v;
	return CTL_PARSE_OK;
}

static enum ctl_parse take_real(struct parser *p, const char *name, const char *text, double most,
				double *value)
{
	char *end;
	double v = isdigit((unsigned char)text[0]) ? strtod(text, &end) : -1;

	if (!(v >= 0) || *end || v > most)
		return fail(p, "--%s: '%s' is not a number from 0 to %g", name, text, most);
	*value = v;
	return CTL_PARSE_OK;
}

static enum ctl_parse take_event(struct parser *p, const char *text)
{
	if (p->o->events_cnt == CTL_EVENTS_MAX)
		return fail(p, "--model-event is given more than %d times", CTL_EVENTS_MAX);
	p->o->events[p->o->events_cnt++] = text;
	return CTL_PARSE_OK;
}

static enum ctl_parse take_option(struct parser *p, int opt, const char *text)
{
	switch (opt) {
	case OPT_HELP:
		return CTL_PARSE_HELP;
	case OPT_MODEL_EVENT:
		return take_event(p, text);
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
#define X(name, field, standard)                                                                   \
	case OPT_##field:                                                                          \
		return take_seconds(p, name, text, &p->o->field);
		SECONDS(X)
#undef X
#define X(name, field, most, standard)                                                             \
	case OPT_##field:                                                                          \
		return take_real(p, name, text, most, &p->o->field);
		REALS(X)
#undef X
#define X(name, field)                                                                             \
	case OPT_##field:                                                                          \
		p->o->field = true;                                                                \
		return CTL_PARSE_OK;
		FLAGS(X)
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

static bool is_mode(const char *text)
{
	return !strcmp(text, "updown") || !strcmp(text, "shortest");
}

/* The first word of a command is of its list, and as many follow as it says. */
static enum ctl_parse check_form(struct parser *p)
{
	const struct ctl_options *o = p->o;
	char list[256] = "";
	size_t len = 0;

	for (unsigned i = 0; i < ctl_forms_cnt; i++) {
		const struct ctl_form *f = &ctl_forms[i];

		if (f->command != o->command)
			continue;
		if (!strcmp(f->word, o->words[0])) {
			if (o->words_cnt > f->least && o->words_cnt - 1 <= f->most)
				return CTL_PARSE_OK;
			return fail(p, "%s: it is 'uroce-ctl %s %s%s%s'",
				    ctl_command_name(o->command), ctl_command_name(o->command),
				    f->word, f->words[0] ? " " : "", f->words);
		}
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "",
					f->word);
	}
	if (!len)
		return CTL_PARSE_OK;
	return fail(p, "%s: '%s' is not one of %s", ctl_command_name(o->command), o->words[0],
		    list);
}

static enum ctl_parse check_words(struct parser *p)
{
	const struct ctl_options *o = p->o;
	enum ctl_parse r = o->words_cnt ? check_form(p) : CTL_PARSE_OK;

	if (r != CTL_PARSE_OK)
		return r;
	if (o->command == CTL_reg && o->count &&
	    (strcmp(o->words[0], "read") != 0 || o->words_cnt > 4))
		return fail(
			p,
			"--count: it is for 'reg read' of one or two registers, which are one request");
	if (o->command == CTL_reg && o->count > READS_MAX)
		return fail(p, "--count: a register is read %d times at most", READS_MAX);
	if (o->share > 0 && (o->command != CTL_monitor || !(o->rate_gbps > 0)))
		return fail(p, "--share is for monitor, and needs the port's speed: --rate GBPS");
	if (o->share > 0 && o->share / 100 * o->rate_gbps < SHARE_GBPS)
		return fail(p, "--share of --rate is less than one bit per second");
	if (o->command == CTL_routes && o->words_cnt == 2 && !is_mode(o->words[1]))
		return fail(p, "routes: '%s' is not one of updown, shortest", o->words[1]);
	if (strcmp(o->mode, "iba") != 0 && strcmp(o->mode, "measured") != 0 &&
	    strcmp(o->mode, "strict") != 0)
		return fail(p, "--mode: '%s' is not one of iba, measured, strict", o->mode);
	if (o->load_routes && !is_mode(o->load_routes))
		return fail(p, "--load-routes: '%s' is not one of updown, shortest",
			    o->load_routes);
	return CTL_PARSE_OK;
}

static enum ctl_parse check(struct parser *p)
{
	const struct ctl_options *o = p->o;
	const struct command *c = &commands[o->command];
	struct sockaddr_storage addr;
	enum ctl_parse r;

	if (o->words_cnt < c->least || o->words_cnt > c->most)
		return fail(p, "%s: it is 'uroce-ctl %s%s%s'", c->name, c->name,
			    c->words[0] ? " " : "", c->words);
	r = check_words(p);
	if (r == CTL_PARSE_OK && o->command == CTL_faults && o->words_cnt && !o->log)
		return fail(p, "faults %s: say which log, with --log FILE", o->words[0]);
	if (r == CTL_PARSE_OK && (o->sport || o->ecmp) &&
	    (o->command != CTL_trace || o->words_cnt != 2))
		return fail(p, "--sport and --ecmp: it is 'uroce-ctl trace FROM ADDRESS'");
	if (r == CTL_PARSE_OK && o->spray && !o->sport)
		return fail(
			p,
			"--spray: say with --sport which UDP source port is the queue pair's own");
	if (r == CTL_PARSE_OK && o->lmc && o->command != CTL_routes && !o->load_routes)
		return fail(p, "--lmc is for routes, and for --load-routes");
	if (r == CTL_PARSE_OK && o->command == CTL_manage && o->words_cnt > 1 && !o->zones)
		return fail(p, "manage %s: say what the zones are, with --zones FILE", o->words[0]);
	if (o->listen && !ctl_http_parse(o->listen, &addr))
		return fail(
			p,
			"--listen: '%s' is not ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080",
			o->listen);
	if (r != CTL_PARSE_OK || ctl_needs_no_fabric(o))
		return r;
	if (!o->fabric_model + !o->socket + !o->dev != 2)
		return fail(p,
			    "say once how to join the fabric: --dev INTERFACE, --socket FILE, or "
			    "--fabric-model SHAPE to try it out");
	if (o->events_cnt && !o->fabric_model)
		return fail(p, "--model-event is for --fabric-model");
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
#define X(text, field, standard) .field = (standard),
			SECONDS(X)
#undef X
#define X(text, field, most, standard) .field = (standard),
				REALS(X)
#undef X
					.mode = "iba",
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
