/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "uroce/uroce.h"

#define SIZE_LIMIT (1ull << 31)

/* X(option, field, min, max, default): whole numbers. */
#define NUMBERS(X)                                                                                 \
	X("port", port, 1, 65535, PERF_DEFAULT_PORT)                                               \
	X("qps", qps, 1, 65536, 1)                                                                 \
	X("depth", depth, 1, 8192, 64)                                                             \
	X("iters", iters, 1, UINT64_MAX, 0)                                                        \
	X("inline", inline_bytes, 0, 1024, 0)                                                      \
	X("sge", sge, 1, 16, 1)                                                                    \
	X("signal-every", signal_every, 1, 4096, 0)                                                \
	X("seed", seed, 0, UINT64_MAX, 1)                                                          \
	X("timeout", timeout, 1, 31, 14)                                                           \
	X("retry", retry, 0, 7, 7)                                                                 \
	X("rnr-retry", rnr_retry, 0, 7, 7)                                                         \
	X("rd-atomic", rd_atomic, 1, 128, 16)                                                      \
	X("receives", receives, 1, 1024, 0)                                                        \
	X("service-us", service_us, 1, 1000000, 0)                                                 \
	X("think-us", think_us, 1, 10000000, 0)                                                    \
	X("buffers", buffers, 1, 65536, 0)

/* X(option, field, max, default): seconds. */
#define SECONDS(X)                                                                                 \
	X("duration", duration_s, 1e7, 0)                                                          \
	X("warmup", warmup_s, 3600, 0)                                                             \
	X("live-interval", live_interval_s, 3600, 1)

/* X(option, field, min, max, default): lists of numbers. */
#define LISTS(X)                                                                                   \
	X("sl", sl, 0, 15, 0)                                                                      \
	X("priority", priority, 0, 7, 0)                                                           \
	X("weight", weight, 1, 255, 1)

/* X(option, field) */
#define FLAGS(X)                                                                                   \
	X("once", once)                                                                            \
	X("bidir", bidir)                                                                          \
	X("verify", verify)                                                                        \
	X("srq", srq)                                                                              \
	X("events", events)                                                                        \
	X("live", live)

#define STRINGS(X)                                                                                 \
	X("pcap", pcap)                                                                            \
	X("filter", filter)                                                                        \
	X("json", json)                                                                            \
	X("peer", peer)

enum opt_id {
	OPT_HELP = 256,
	OPT_HELP_CONFIG,
	OPT_SET,
	OPT_CONFIG,
	OPT_OP,
	OPT_MODE,
	OPT_TYPE,
	OPT_TRANSPORT_MODE,
	OPT_SIZE,
	OPT_SIZES,
	OPT_BYTES,
	OPT_MTU,
#define X(text, field, ...) OPT_##field,
	NUMBERS(X) SECONDS(X) LISTS(X) FLAGS(X) STRINGS(X)
#undef X
		OPT_END
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"help-config", no_argument, NULL, OPT_HELP_CONFIG},
	{"set", required_argument, NULL, OPT_SET},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"op", required_argument, NULL, OPT_OP},
	{"mode", required_argument, NULL, OPT_MODE},
	{"type", required_argument, NULL, OPT_TYPE},
	{"transport-mode", required_argument, NULL, OPT_TRANSPORT_MODE},
	{"size", required_argument, NULL, OPT_SIZE},
	{"sizes", required_argument, NULL, OPT_SIZES},
	{"bytes", required_argument, NULL, OPT_BYTES},
	{"mtu", required_argument, NULL, OPT_MTU},
#define X(text, field, ...) {text, required_argument, NULL, OPT_##field},
	NUMBERS(X) SECONDS(X) LISTS(X) STRINGS(X)
#undef X
#define X(text, field) {text, no_argument, NULL, OPT_##field},
		FLAGS(X)
#undef X
			{NULL, 0, NULL, 0},
};

struct parser {
	struct perf_options *o;
	char *err;
	size_t err_bytes;
	bool given[OPT_END];
};

__attribute__((format(printf, 2, 3))) static enum perf_parse fail(struct parser *p, const char *fmt,
								  ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_bytes, fmt, ap);
	va_end(ap);
	return PERF_PARSE_USAGE;
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
static enum perf_parse parse_sizes(struct parser *p, const char *text)
{
	char item[64];

	while (*text != '\0') {
		size_t len = strcspn(text, ",");
		uint64_t from, to;
		char *dots;

		if (len == 0 || len >= sizeof(item))
			return fail(
				p, "--sizes wants a list such as 1,64,4K or a range such as 2..1M");
		memcpy(item, text, len);
		item[len] = '\0';
		text += len + (text[len] == ',');
		dots = strstr(item, "..");
		if (dots != NULL)
			*dots = '\0';
		if (!perf_parse_size(item, SIZE_LIMIT, &from) ||
		    !perf_parse_size(dots != NULL ? dots + 2 : item, SIZE_LIMIT, &to))
			return fail(
				p, "--sizes: '%s%s%s' is no size from 0 to 2G, nor a range of them",
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
		return fail(p, "--sizes wants a list such as 1,64,4K or a range such as 2..1M");
	return PERF_PARSE_OK;
}

static enum perf_parse parse_op(struct parser *p, const char *text)
{
	for (unsigned i = 0; i < PERF_OP_CNT; i++) {
		if (strcmp(text, perf_op_name(i)) == 0) {
			p->o->op = i;
			return PERF_PARSE_OK;
		}
	}
	return fail(p,
		    "--op: '%s' is none of write, write_imm, read, send, send_imm, send_inv, cas, "
		    "fetch_add, mixed",
		    text);
}

static enum perf_parse parse_mode(struct parser *p, const char *text)
{
	for (unsigned i = 0; i < PERF_MODE_CNT; i++) {
		if (strcmp(text, perf_mode_name(i)) == 0) {
			p->o->mode = i;
			return PERF_PARSE_OK;
		}
	}
	return fail(p, "--mode: '%s' is none of bw, rate, lat, soak, connect", text);
}

static enum perf_parse parse_type(struct parser *p, const char *text)
{
	for (unsigned i = 0; i < PERF_TYPE_CNT; i++) {
		if (strcmp(text, perf_type_name(i)) == 0) {
			p->o->type = i;
			return PERF_PARSE_OK;
		}
	}
	return fail(p, "--type: '%s' is none of rc, uc, ud", text);
}

static enum perf_parse parse_transport(struct parser *p, const char *text)
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
	return fail(p, "--transport-mode: '%s' is none of auto, extended, reorder, gbn", text);
}

static enum perf_parse parse_number(struct parser *p, const char *name, const char *text,
				    uint64_t min, uint64_t max, uint64_t *value)
{
	if (parse_u64(text, value) && *value >= min && *value <= max)
		return PERF_PARSE_OK;
	if (max == UINT64_MAX)
		return fail(p, "--%s: '%s' is no whole number of at least %llu", name, text,
			    (unsigned long long)min);
	return fail(p, "--%s: '%s' is no whole number from %llu to %llu", name, text,
		    (unsigned long long)min, (unsigned long long)max);
}

static enum perf_parse parse_seconds(struct parser *p, const char *name, const char *text,
				     double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(*value) || *value < 0 || *value > max)
		return fail(p, "--%s: '%s' is no number of seconds from 0 to %.0f", name, text,
			    max);
	return PERF_PARSE_OK;
}

static enum perf_parse parse_list(struct parser *p, const char *name, const char *text,
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
			return fail(p, "--%s: '%.*s' is no whole number from %llu to %llu", name,
				    (int)len, text, (unsigned long long)min,
				    (unsigned long long)max);
		list->v[list->cnt++] = (uint8_t)v;
		text += len;
	} while (*text++ == ',');
	return PERF_PARSE_OK;
}

static enum perf_parse parse_set(struct parser *p, const char *text)
{
	const char *dot = strchr(text, '.');
	const char *eq = strchr(text, '=');
	unsigned n = 0;

	if (dot == NULL || eq == NULL || dot == text || eq < dot || eq == dot + 1)
		return fail(p, "--set: '%s' is not of the form section.key=value", text);
	while (p->o->set[n] != NULL)
		n++;
	if (n == PERF_SETS_MAX)
		return fail(p, "--set may be given at most %d times", PERF_SETS_MAX);
	p->o->set[n] = text;
	return PERF_PARSE_OK;
}

static enum perf_parse parse_config(struct parser *p, const char *text)
{
	if (text[0] == '\0')
		return fail(p, "--config wants a value that is not empty");
	if (p->o->configs_cnt == PERF_CONFIGS_MAX)
		return fail(p, "--config may be given at most %d times", PERF_CONFIGS_MAX);
	p->o->config[p->o->configs_cnt++] = text;
	return PERF_PARSE_OK;
}

static enum perf_parse parse_mtu(struct parser *p, const char *text)
{
	uint64_t v;

	if (!parse_u64(text, &v) || (v != 256 && v != 512 && v != 1024 && v != 2048 && v != 4096))
		return fail(p, "--mtu: '%s' is none of 256, 512, 1024, 2048, 4096", text);
	p->o->mtu = v;
	return PERF_PARSE_OK;
}

static enum perf_parse parse_one(struct parser *p, int opt, const char *arg)
{
	struct perf_options *o = p->o;
	uint64_t v = 0;
	enum perf_parse rc;

	switch (opt) {
	case OPT_SET:
		return parse_set(p, arg);
	case OPT_CONFIG:
		return parse_config(p, arg);
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
			return fail(p, "--size: '%s' is no size from 0 to 2G (K, M, G may follow)",
				    arg);
		return add_size(o, v) ? PERF_PARSE_OK : fail(p, "--size may be given only once");
	case OPT_BYTES:
		if (!parse_bytes(arg, &o->bytes) || o->bytes == 0)
			return fail(p, "--bytes: '%s' is no amount of bytes such as 500M or 1e9",
				    arg);
		return PERF_PARSE_OK;
#define X(text, field, min, max, def)                                                              \
	case OPT_##field:                                                                          \
		rc = parse_number(p, text, arg, min, max, &v);                                     \
		if (rc == PERF_PARSE_OK)                                                           \
			o->field = v;                                                              \
		return rc;
		NUMBERS(X)
#undef X
#define X(text, field, max, def)                                                                   \
	case OPT_##field:                                                                          \
		return parse_seconds(p, text, arg, max, &o->field);
		SECONDS(X)
#undef X
#define X(text, field, min, max, def)                                                              \
	case OPT_##field:                                                                          \
		return parse_list(p, text, arg, min, max, &o->field);
		LISTS(X)
#undef X
#define X(text, field)                                                                             \
	case OPT_##field:                                                                          \
		o->field = true;                                                                   \
		return PERF_PARSE_OK;
		FLAGS(X)
#undef X
#define X(text, field)                                                                             \
	case OPT_##field:                                                                          \
		if (arg[0] == '\0')                                                                \
			return fail(p, "--%s wants a value that is not empty", text);              \
		o->field = arg;                                                                    \
		return PERF_PARSE_OK;
		STRINGS(X)
#undef X
	}
	return fail(p, "an option is not understood; see uroce-perf --help");
}

static bool parse_address(struct perf_peer *peer, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&peer->addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&peer->addr;

	if (inet_pton(AF_INET, peer->text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return true;
	}
	if (inet_pton(AF_INET6, peer->text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		return true;
	}
	return false;
}

/* "10.0.0.1,10.0.0.2" */
static enum perf_parse parse_peers(struct parser *p)
{
	struct perf_options *o = p->o;
	const char *text = o->peer;

	for (size_t len; *text != '\0'; text += len + (text[len] == ',')) {
		struct perf_peer *peer = &o->peers[o->peers_cnt];

		len = strcspn(text, ",");
		if (o->peers_cnt++ == PERF_PEERS_MAX)
			return fail(p, "--peer takes at most %d addresses", PERF_PEERS_MAX);
		if (len < sizeof(peer->text))
			memcpy(peer->text, text, len);
		if (!parse_address(peer, (uint16_t)o->port))
			return fail(p, "--peer: '%.*s' is neither an IPv4 nor an IPv6 address",
				    (int)len, text);
	}
	if (o->peers_cnt * o->configs_cnt > 1 &&
	    ((o->mode != PERF_MODE_BW && o->mode != PERF_MODE_RATE) || o->events || o->live))
		return fail(p, "several endpoints or peers are for --mode bw and rate, without "
			       "--events and --live");
	return PERF_PARSE_OK;
}

/* The options that only one of the two sides has a use for. */
static enum perf_parse check_sides(struct parser *p)
{
	static const int client_only[] = {
		OPT_peer,     OPT_OP,		OPT_MODE,      OPT_TYPE,	 OPT_SIZE,
		OPT_SIZES,    OPT_BYTES,	OPT_MTU,       OPT_qps,		 OPT_depth,
		OPT_iters,    OPT_inline_bytes, OPT_sge,       OPT_signal_every, OPT_timeout,
		OPT_retry,    OPT_rnr_retry,	OPT_rd_atomic, OPT_duration_s,	 OPT_warmup_s,
		OPT_bidir,    OPT_verify,	OPT_srq,       OPT_events,	 OPT_json,
		OPT_seed,     OPT_sl,		OPT_priority,  OPT_weight,	 OPT_TRANSPORT_MODE,
		OPT_receives, OPT_service_us,	OPT_think_us,  OPT_buffers,
	};

	if (!p->o->server) {
		if (p->given[OPT_once])
			return fail(p, "--once belongs to the server");
		if (!p->given[OPT_peer])
			return fail(p, "the client needs --peer ADDRESS, the server's address");
		return PERF_PARSE_OK;
	}
	for (unsigned i = 0; i < sizeof(client_only) / sizeof(client_only[0]); i++) {
		const struct option *l = long_options;

		if (!p->given[client_only[i]])
			continue;
		while (l->val != client_only[i])
			l++;
		return fail(p, "--%s belongs to the client, which tells the server in band",
			    l->name);
	}
	return PERF_PARSE_OK;
}

static enum perf_parse check_amounts(struct parser *p)
{
	const bool *given = p->given;
	struct perf_options *o = p->o;

	if (given[OPT_SIZE] && given[OPT_SIZES])
		return fail(p, "--size and --sizes exclude each other");
	if (given[OPT_duration_s] + given[OPT_iters] + given[OPT_BYTES] > 1)
		return fail(p, "--duration, --iters and --bytes exclude one another");
	if (given[OPT_duration_s] && o->duration_s <= 0)
		return fail(p, "--duration must be more than 0 seconds");
	for (unsigned i = 0; given[OPT_BYTES] && i < o->sizes_cnt; i++) {
		if (o->sizes[i] == 0)
			return fail(p, "--bytes cannot be reached with messages of 0 bytes");
	}
	if (given[OPT_filter] && !given[OPT_pcap])
		return fail(p, "--filter chooses what --pcap writes: give --pcap FILE as well");
	if (given[OPT_signal_every] && o->signal_every > o->depth)
		return fail(p,
			    "--signal-every %llu exceeds --depth %llu: nothing would ever complete",
			    (unsigned long long)o->signal_every, (unsigned long long)o->depth);
	return PERF_PARSE_OK;
}

static enum perf_parse check_type(struct parser *p)
{
	const struct perf_options *o = p->o;
	unsigned traits = perf_op_traits(o->op);

	if (o->type == PERF_TYPE_UC && ((traits & PERF_T_FETCH) != 0 || o->op == PERF_OP_SEND_INV))
		return fail(p, "--type uc carries write, write_imm, send and send_imm, not %s",
			    perf_op_name(o->op));
	if (o->type != PERF_TYPE_RC && o->transport != 0)
		return fail(p, "--transport-mode is for --type rc: uc and ud repair nothing");
	if (o->type == PERF_TYPE_UC && o->srq)
		return fail(p, "--srq works with --type rc and ud, not with uc");
	if (o->type == PERF_TYPE_UD && o->op != PERF_OP_SEND && o->op != PERF_OP_SEND_IMM)
		return fail(p, "--type ud carries send and send_imm, not %s", perf_op_name(o->op));
	for (unsigned i = 0; i < o->sizes_cnt; i++) {
		uint64_t most = o->mtu != 0 ? o->mtu : 4096;

		if (o->type == PERF_TYPE_UD && o->sizes[i] > most)
			return fail(p,
				    "--type ud carries messages of one packet, at most %llu bytes",
				    (unsigned long long)most);
		if (o->type != PERF_TYPE_RC && o->verify && o->op == PERF_OP_SEND &&
		    o->sizes[i] < 8)
			return fail(p,
				    "--verify needs at least 8 bytes a message, or immediate data "
				    "(send_imm), to tell messages apart when some are lost");
		if ((traits & PERF_T_ATOMIC) != 0 && o->op != PERF_OP_MIXED && o->sizes[i] != 8)
			return fail(p, "--op %s always moves 8 bytes: leave --size out",
				    perf_op_name(o->op));
	}
	return PERF_PARSE_OK;
}

static enum perf_parse check_mode(struct parser *p)
{
	const struct perf_options *o = p->o;

	if (o->inline_bytes != 0 &&
	    (o->op == PERF_OP_READ || o->op == PERF_OP_CAS || o->op == PERF_OP_FETCH_ADD))
		return fail(p, "--inline is for payload that is sent; --op %s sends none",
			    perf_op_name(o->op));
	if (o->op == PERF_OP_SEND_INV && o->bidir)
		return fail(p, "--op send_inv runs in one direction: leave --bidir out");
	if (o->mode == PERF_MODE_LAT) {
		if (o->op == PERF_OP_MIXED || o->op == PERF_OP_SEND_INV)
			return fail(p, "--mode lat measures one plain operation, not %s",
				    perf_op_name(o->op));
		if (o->bidir || o->verify)
			return fail(p, "--mode lat is a ping-pong: leave --%s out",
				    o->bidir ? "bidir" : "verify");
		for (unsigned i = 0; i < o->sizes_cnt; i++) {
			if (o->op == PERF_OP_WRITE && o->sizes[i] == 0)
				return fail(
					p, "--mode lat --op write polls on the last byte: at least "
					   "1 byte is needed");
		}
	}
	if (o->receives + o->service_us != 0 && (!o->srq || o->bidir || o->verify))
		return fail(p, "--receives and --service-us are for --srq, without --bidir and "
			       "--verify");
	if ((o->service_us != 0 && o->receives == 0) ||
	    (o->receives > o->qps * 16 && o->receives > o->qps * o->depth * 2))
		return fail(p, "--service-us wants --receives N, at most 16 for each queue pair");
	if (o->think_us != 0 && o->depth != 1)
		return fail(p, "--think-us wants --depth 1");
	if (o->buffers != 0 &&
	    ((o->mode != PERF_MODE_BW && o->mode != PERF_MODE_RATE) || o->verify))
		return fail(p, "--buffers is for --mode bw and rate, without --verify");
	if (o->mode == PERF_MODE_SOAK &&
	    ((p->given[OPT_OP] && o->op != PERF_OP_MIXED) || o->type != PERF_TYPE_RC || o->bidir))
		return fail(p,
			    "--mode soak mixes all operations on RC by itself: leave --op, --type "
			    "and --bidir out");
	if (o->mode == PERF_MODE_CONNECT &&
	    (p->given[OPT_OP] || p->given[OPT_SIZE] || p->given[OPT_SIZES] || p->given[OPT_BYTES]))
		return fail(p,
			    "--mode connect moves no data: it takes --iters, --duration and --qps, "
			    "not --op, --size or --bytes");
	if (o->mode == PERF_MODE_CONNECT && o->type == PERF_TYPE_UD)
		return fail(p, "--mode connect needs connections: --type rc or uc");
	return PERF_PARSE_OK;
}

static void fill_defaults(struct parser *p)
{
	struct perf_options *o = p->o;

	if (o->mode == PERF_MODE_SOAK)
		o->op = PERF_OP_MIXED;
	if (o->op == PERF_OP_MIXED)
		o->verify = true;
	if (o->sizes_cnt == 0) {
		static const uint64_t by_mode[PERF_MODE_CNT] = {
			[PERF_MODE_BW] = 65536,	  [PERF_MODE_RATE] = 64,   [PERF_MODE_LAT] = 8,
			[PERF_MODE_SOAK] = 65536, [PERF_MODE_CONNECT] = 8,
		};
		uint64_t size = by_mode[o->mode];

		if ((perf_op_traits(o->op) & PERF_T_ATOMIC) != 0 && o->op != PERF_OP_MIXED)
			size = 8;
		else if (o->type == PERF_TYPE_UD && size > 1024)
			size = 1024;
		add_size(o, size);
	}
	if (o->signal_every == 0) {
		o->signal_every = o->mode == PERF_MODE_RATE ? 16 : o->sizes[0] <= 1024 ? 8 : 1;
		while (o->signal_every > 1 && o->signal_every * 2 > o->depth)
			o->signal_every /= 2;
	}
	if (o->iters == 0 && o->bytes == 0 && !p->given[OPT_duration_s])
		o->duration_s = o->mode == PERF_MODE_SOAK ? 60 : 5;
}

static enum perf_parse parse_all(struct parser *p, int argc, char **argv)
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
			return fail(p, "%s wants a value", argv[optind - 1]);
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
	struct parser p = {.o = o, .err = err, .err_bytes = err_bytes};
	enum perf_parse rc;

	memset(o, 0, sizeof(*o));
#define X(text, field, min, max, def) o->field = def;
	NUMBERS(X)
#undef X
#define X(text, field, max, def) o->field = def;
	SECONDS(X)
#undef X
#define X(text, field, min, max, def) o->field = (struct perf_list){.v = {def}, .cnt = 1};
	LISTS(X)
#undef X
	if (argc < 2)
		return fail(&p,
			    "say 'uroce-perf server' or 'uroce-perf client'; --help tells more");
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
	if (rc != PERF_PARSE_OK)
		return rc;
	if (o->configs_cnt == 0)
		return fail(&p, "--config FILE is needed: it names the port; see pmd-config/");
	if (o->configs_cnt > 1 && o->live)
		return fail(&p, "--live shows one endpoint: give --config once");
	if ((rc = check_sides(&p)) != PERF_PARSE_OK || (rc = check_amounts(&p)) != PERF_PARSE_OK ||
	    o->server)
		return rc;
	if ((rc = parse_peers(&p)) != PERF_PARSE_OK || (rc = check_mode(&p)) != PERF_PARSE_OK ||
	    (rc = check_type(&p)) != PERF_PARSE_OK)
		return rc;
	fill_defaults(&p);
	return PERF_PARSE_OK;
}
