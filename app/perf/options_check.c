/* SPDX-License-Identifier: BSD-3-Clause */
#include "options_priv.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static bool parse_address(const char *text, struct sockaddr_storage *addr, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
	char bare[64];

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return true;
	}
	/* "fe80::1%eth0": the endpoint has one interface. */
	snprintf(bare, sizeof(bare), "%s", text);
	bare[strcspn(bare, "%")] = '\0';
	if (inet_pton(AF_INET6, bare, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		return true;
	}
	return false;
}

/* "10.0.0.1,10.0.0.2" */
static enum perf_parse parse_peers(struct perf_parser *p)
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
		if (!parse_address(peer->text, &peer->addr, (uint16_t)o->port))
			return fail(p, "--peer: '%.*s' is neither an IPv4 nor an IPv6 address",
				    (int)len, text);
	}
	if (o->peers_cnt * o->configs_cnt > 1 &&
	    ((o->mode != PERF_MODE_BW && o->mode != PERF_MODE_RATE) || o->events || o->live))
		return fail(p, "several endpoints or peers are for --mode bw and rate, without "
			       "--events and --live");
	return PERF_PARSE_OK;
}

/* "127.0.0.1:9400" or "[::1]:9400" */
static enum perf_parse parse_metrics(struct perf_parser *p)
{
	struct perf_options *o = p->o;
	const char *text = o->metrics, *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	bool bracketed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
	char address[64] = "";
	char *end = NULL;
	unsigned long port = 0;

	if (len < sizeof(address))
		memcpy(address, text + bracketed, len - 2 * bracketed);
	if (colon != NULL && isdigit((unsigned char)colon[1]))
		port = strtoul(colon + 1, &end, 10);
	if (end == NULL || *end != '\0' || port < 1 || port > 65535 ||
	    !parse_address(address, &o->metrics_addr, (uint16_t)port) ||
	    bracketed != (o->metrics_addr.ss_family == AF_INET6))
		return fail(p,
			    "--metrics: '%s' is not ADDRESS:PORT, such as 127.0.0.1:9400 or "
			    "[::1]:9400",
			    text);
	return PERF_PARSE_OK;
}

/* Refuses options that concern only the other side. */
static enum perf_parse check_sides(struct perf_parser *p)
{
	static const enum perf_opt client_only[] = {
		OPT_peer,	   OPT_OP,	     OPT_MODE,
		OPT_TYPE,	   OPT_SIZE,	     OPT_SIZES,
		OPT_BYTES,	   OPT_MTU,	     OPT_qps,
		OPT_depth,	   OPT_iters,	     OPT_inline_bytes,
		OPT_sge,	   OPT_signal_every, OPT_timeout,
		OPT_retry,	   OPT_rnr_retry,    OPT_rd_atomic,
		OPT_duration_s,	   OPT_warmup_s,     OPT_bidir,
		OPT_verify,	   OPT_srq,	     OPT_events,
		OPT_json,	   OPT_seed,	     OPT_sl,
		OPT_priority,	   OPT_weight,	     OPT_TRANSPORT_MODE,
		OPT_receives,	   OPT_service_us,   OPT_think_us,
		OPT_buffers,	   OPT_random_order, OPT_ping,
		OPT_min_rnr_timer,
	};

	if (!p->o->server) {
		if (p->given[OPT_once] || p->given[OPT_shared_srq])
			return fail(p, "--%s is an option of the server",
				    p->given[OPT_once] ? "once" : "shared-srq");
		if (!p->given[OPT_peer])
			return fail(p, "the client needs --peer ADDRESS, the server's address");
		return PERF_PARSE_OK;
	}
	for (unsigned i = 0; i < sizeof(client_only) / sizeof(client_only[0]); i++) {
		if (p->given[client_only[i]])
			return fail(
				p, "--%s is an option of the client, which passes it to the server",
				perf_option_name(client_only[i]));
	}
	return PERF_PARSE_OK;
}

static enum perf_parse check_amounts(struct perf_parser *p)
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

static enum perf_parse check_type(struct perf_parser *p)
{
	const struct perf_options *o = p->o;
	unsigned traits = perf_op_traits(o->op);

	if (o->type == PERF_TYPE_UC && ((traits & PERF_T_FETCH) != 0 || o->op == PERF_OP_SEND_INV))
		return fail(p, "--type uc carries write, write_imm, send and send_imm, not %s",
			    perf_op_name(o->op));
	if (o->type != PERF_TYPE_RC && o->transport != 0)
		return fail(
			p, "--transport-mode is for --type rc: uc and ud do not recover from loss");
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

static enum perf_parse check_mode(struct perf_parser *p)
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
		return fail(p, "--service-us needs --receives N, at most 16 for each queue pair");
	if (o->think_us != 0 && o->depth != 1)
		return fail(p, "--think-us needs --depth 1");
	if (o->buffers != 0 &&
	    ((o->mode != PERF_MODE_BW && o->mode != PERF_MODE_RATE) || o->verify))
		return fail(p, "--buffers is for --mode bw and rate, without --verify");
	if (o->ping &&
	    (o->mode != PERF_MODE_BW || o->type != PERF_TYPE_RC || o->bidir || o->verify ||
	     o->sge > 1 || o->think_us != 0 || p->given[OPT_iters] || p->given[OPT_BYTES] ||
	     (perf_op_traits(o->op) & PERF_T_ATOMIC) != 0 || o->op == PERF_OP_SEND_INV))
		return fail(
			p,
			"--ping is for --mode bw with --duration and a plain operation on RC, without "
			"--bidir, --verify, --sge and --think-us");
	if (o->ping && o->qps == 65536)
		return fail(p, "--ping is one more queue pair: at most 65535 --qps");
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

static void fill_defaults(struct perf_parser *p)
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
		o->sizes[o->sizes_cnt++] = size;
	}
	if (o->signal_every == 0) {
		o->signal_every = o->mode == PERF_MODE_RATE ? 16 : o->sizes[0] <= 1024 ? 8 : 1;
		while (o->signal_every > 1 && o->signal_every * 2 > o->depth)
			o->signal_every /= 2;
	}
	if (o->iters == 0 && o->bytes == 0 && !p->given[OPT_duration_s])
		o->duration_s = o->mode == PERF_MODE_SOAK ? 60 : 5;
}

enum perf_parse perf_options_check(struct perf_parser *p)
{
	struct perf_options *o = p->o;
	enum perf_parse rc;

	if (o->configs_cnt == 0 && o->dev == NULL)
		return fail(p, "--dev INTERFACE is needed, which the endpoint shares with the "
			       "kernel, or --config FILE, which names another port; see "
			       "pmd-config/");
	if (o->configs_cnt > 1 && o->dev != NULL)
		return fail(p, "--dev is one endpoint: give --config once at most");
	if (o->configs_cnt == 0)
		o->configs_cnt = 1;
	if (o->configs_cnt > 1 && o->live)
		return fail(p, "--live shows one endpoint: give --config once");
	if (o->metrics != NULL && (rc = parse_metrics(p)) != PERF_PARSE_OK)
		return rc;
	if ((rc = check_sides(p)) != PERF_PARSE_OK || (rc = check_amounts(p)) != PERF_PARSE_OK ||
	    o->server)
		return rc;
	if ((rc = parse_peers(p)) != PERF_PARSE_OK || (rc = check_mode(p)) != PERF_PARSE_OK ||
	    (rc = check_type(p)) != PERF_PARSE_OK)
		return rc;
	fill_defaults(p);
	return PERF_PARSE_OK;
}
