/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The upper limit of an endpoint: two processes that copy, sum, check, copy and acknowledge over a
 * port, without a protocol. See pipe.h and usage().
 */
#include "pipe.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#define LINK_MS	  30000
#define HELLO_MS  100
#define ANSWER_MS 30000
#define LEAVE_MS  10000

static volatile sig_atomic_t stop;
static struct pipe pipe_state;

static void on_signal(int sig)
{
	stop = sig;
}

static void print_help(FILE *out)
{
	fputs("Usage: bare_pipe EAL-OPTION... -- server\n"
	      "  or:  bare_pipe EAL-OPTION... -- client [OPTION]...\n"
	      "Does what a RoCEv2 endpoint must do with the bytes of messages, and nothing of the\n"
	      "protocol: the sender copies payload into frames behind a constant header and sums them\n"
	      "(CRC-32, as the ICRC); the receiver checks the sum, copies the payload to its place and\n"
	      "acknowledges. No other endpoint on the same port can be expected to be faster.\n"
	      "\n"
	      "The port is the first device of the EAL. The client tells the server what to do, so\n"
	      "that only the client's command line matters. The server serves one client and ends.\n"
	      "The client prints one line of JSON.\n"
	      "\n"
	      "Example, 64 KB messages in frames of 4096 bytes over shared memory, two terminals:\n"
	      "\n"
	      "  bare_pipe --lcores=0@0 --no-pci --in-memory --single-file-segments -m 96 \\\n"
	      "    --file-prefix=a --vdev net_memif0,role=server,socket=/run/pipe.sock,\\\n"
	      "    socket-abstract=no,rsize=8,bsize=4224 -- client\n"
	      "  bare_pipe --lcores=0@1 --no-pci --in-memory --single-file-segments -m 96 \\\n"
	      "    --file-prefix=b --vdev net_memif0,role=client,socket=/run/pipe.sock,\\\n"
	      "    socket-abstract=no,rsize=8,bsize=4224,zero-copy=yes -- server\n"
	      "\n"
	      "A memif server must be started before its client, whichever of the two is the client\n"
	      "here. Without hugepages: --no-huge --no-shconf, and no zero-copy.\n"
	      "\n"
	      "Client, what to do:\n"
	      "  --mode write           data from client to server, ACKs back (default)\n"
	      "  --mode read            requests from client to server, data back\n"
	      "  --mode pingpong        one message at a time; half the round trip\n"
	      "  --message N            bytes of a message (65536; pingpong: as --payload)\n"
	      "  --payload N            payload of a frame, a divisor of --message (4096)\n"
	      "  --headers N            bytes of headers before the payload (54: Ethernet, IPv4, UDP\n"
	      "                         and BTH; 70 with a RETH)\n"
	      "  --window N             write: frames that may be unacknowledged (512)\n"
	      "  --ack-every N          write: an ACK is due after N frames, and sent at the end of\n"
	      "                         the burst (16)\n"
	      "  --outstanding N        read: messages that may be outstanding (16)\n"
	      "  --keep-cached          leave received frames in the cache. Without it those of 1 KB\n"
	      "                         and more in a zero-copy ring are evicted once they are read,\n"
	      "                         as in uroce: faster between distant cores, slower between\n"
	      "                         near ones\n"
	      "  --seconds S            duration of the measurement (3)\n"
	      "  --warmup S             time before it (0.5)\n"
	      "  --count N              exactly N messages instead of a time, no warm-up\n"
	      "\n"
	      "Client, for tests:\n"
	      "  --verify               compare every byte that arrives with what was sent\n"
	      "  --corrupt N            flip a bit of every Nth frame after it is summed: the sum must\n"
	      "                         find it\n"
	      "  --forge N              flip it before: only --verify can find it\n"
	      "\n"
	      "Exit status: 0 if all frames arrived as they were sent, 1 if not or if the other end\n"
	      "left, 2 if the command line is wrong.\n",
	      out);
}

static int fail(const char *what)
{
	fprintf(stderr, "bare_pipe: %s\n", what);
	return 1;
}

/* ---- command line ---- */

struct options {
	struct pipe_attr attr;
	double seconds, warmup;
	uint64_t messages;
};

static bool parse_number(const char *name, const char *text, uint64_t most, uint64_t *out)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value > most) {
		fprintf(stderr,
			"bare_pipe: --%s %s: a whole number of at most %" PRIu64 " is needed\n",
			name, text, most);
		return false;
	}
	*out = value;
	return true;
}

static bool parse_seconds(const char *name, const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end || !(*out >= 0) || *out > 86400) {
		fprintf(stderr,
			"bare_pipe: --%s %s: a number of seconds from 0 to 86400 is needed\n", name,
			text);
		return false;
	}
	return true;
}

static bool parse_mode(const char *text, uint32_t *mode)
{
	static const char *const names[] = {
#define X(NAME, word) word,
		PIPE_MODES(X)
#undef X
	};

	for (unsigned i = 0; i < RTE_DIM(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*mode = i;
			return true;
		}
	fprintf(stderr, "bare_pipe: --mode %s: write, read or pingpong is needed\n", text);
	return false;
}

enum option_id {
	OPT_MODE = 256,
	OPT_SECONDS,
	OPT_WARMUP,
	OPT_COUNT,
	OPT_VERIFY,
	OPT_KEEP_CACHED,
	OPT_NUMBERS
};

/* The options that are numbers of struct pipe_attr. */
#define NUMBERS(X)                                                                                 \
	X("message", message)                                                                      \
	X("payload", payload)                                                                      \
	X("headers", headers)                                                                      \
	X("window", window)                                                                        \
	X("ack-every", ack_every)                                                                  \
	X("outstanding", outstanding)                                                              \
	X("corrupt", corrupt)                                                                      \
	X("forge", forge)

static const struct option known[] = {
	{"mode", required_argument, NULL, OPT_MODE},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"warmup", required_argument, NULL, OPT_WARMUP},
	{"count", required_argument, NULL, OPT_COUNT},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"keep-cached", no_argument, NULL, OPT_KEEP_CACHED},
#define X(word, field)                                                                             \
	{word, required_argument, NULL, OPT_NUMBERS + (int)offsetof(struct pipe_attr, field)},
	NUMBERS(X)
#undef X
		{NULL, 0, NULL, 0},
};

static bool parse_option(struct options *o, int id, const char *name)
{
	uint64_t value;

	switch (id) {
	case OPT_MODE:
		return parse_mode(optarg, &o->attr.mode);
	case OPT_SECONDS:
		return parse_seconds(name, optarg, &o->seconds);
	case OPT_WARMUP:
		return parse_seconds(name, optarg, &o->warmup);
	case OPT_COUNT:
		return parse_number(name, optarg, UINT32_MAX, &o->messages);
	case OPT_VERIFY:
		o->attr.verify = 1;
		return true;
	case OPT_KEEP_CACHED:
		o->attr.keep_cached = 1;
		return true;
	}
	if (id < OPT_NUMBERS || !parse_number(name, optarg, UINT32_MAX, &value))
		return false;
	*(uint32_t *)((char *)&o->attr + (id - OPT_NUMBERS)) = (uint32_t)value;
	return true;
}

/* 0, or 2 after a message. */
static int parse_client(int argc, char **argv, struct options *o)
{
	char name[] = "bare_pipe"; /* getopt_long() begins its messages with it */
	const char *why;
	int id, which = 0;

	*o = (struct options){.attr = {.magic = PIPE_ATTR_MAGIC,
				       .payload = 4096,
				       .headers = PIPE_HEADERS,
				       .window = 512,
				       .ack_every = 16,
				       .outstanding = 16},
			      .seconds = 3,
			      .warmup = 0.5};
	argv[0] = name;
	optind = 1;
	while ((id = getopt_long(argc, argv, "", known, &which)) != -1)
		if (id == '?' || !parse_option(o, id, known[which].name))
			return 2;
	if (optind < argc) {
		fprintf(stderr, "bare_pipe: %s: not an option; see bare_pipe --help\n",
			argv[optind]);
		return 2;
	}
	if (!o->attr.message)
		o->attr.message = o->attr.mode == PIPE_PINGPONG ? o->attr.payload : 65536;
	why = pipe_check(&o->attr);
	if (why)
		fail(why);
	return why ? 2 : 0;
}

/* ---- the result ---- */

static uint64_t sum_of(const struct pipe *p, size_t field)
{
	const char *own = (const char *)&p->found, *peer = (const char *)&p->peer_found;

	return *(const uint64_t *)(const void *)(own + field) +
	       *(const uint64_t *)(const void *)(peer + field);
}

#define BOTH(p, field) sum_of(p, offsetof(struct pipe_found, field))

/* Data frames of both ends that were sent. */
static uint64_t frames_sent(const struct pipe *p)
{
	if (p->attr.mode == PIPE_READ)
		return p->requested * p->frames_per_message;
	return p->attr.mode == PIPE_PINGPONG ? 2 * p->sent : p->sent;
}

static void print_result(const struct pipe *p)
{
	const struct pipe_attr *a = &p->attr;
	double seconds = (double)(p->to - p->from) / (double)rte_get_tsc_hz();
	double messages = (double)(p->done_to - p->done_from);

	printf("{\"mode\": \"%s\", \"message\": %u, \"payload\": %u, \"frame_bytes\": %u, "
	       "\"window\": %u, \"ack_every\": %u, \"outstanding\": %u, \"verify\": %s, ",
	       a->mode == PIPE_WRITE  ? "write"
	       : a->mode == PIPE_READ ? "read"
				      : "pingpong",
	       a->message, a->payload, p->frame_bytes, a->window, a->ack_every, a->outstanding,
	       a->verify ? "true" : "false");
	printf("\"seconds\": %.4f, \"messages\": %.0f, \"mops\": %.4f, \"gbps\": %.4f, ", seconds,
	       messages, messages / seconds / 1e6, messages * a->message * 8 / seconds / 1e9);
	if (a->mode == PIPE_PINGPONG)
		printf("\"lat_us\": {\"p50\": %.3f, \"p99\": %.3f, \"p999\": %.3f}, ",
		       (double)perf_histogram_percentile(&p->halves, 50) / 1e3,
		       (double)perf_histogram_percentile(&p->halves, 99) / 1e3,
		       (double)perf_histogram_percentile(&p->halves, 99.9) / 1e3);
	printf("\"acks\": %" PRIu64 ", \"frames_sent\": %" PRIu64 ", \"frames_arrived\": %" PRIu64
	       ", \"bad_sums\": %" PRIu64 ", \"wrong_bytes\": %" PRIu64 ", \"strange\": %" PRIu64
	       "}\n",
	       p->acks, frames_sent(p), BOTH(p, frames), BOTH(p, bad_sums), BOTH(p, wrong_bytes),
	       BOTH(p, strange));
}

/* What one end has found wrong, as a sentence; 0 or 1. */
static int judge(uint64_t bad_sums, uint64_t wrong_bytes, uint64_t strange)
{
	if (bad_sums + wrong_bytes + strange == 0)
		return 0;
	fprintf(stderr,
		"bare_pipe: %" PRIu64 " frames arrived with a wrong sum, %" PRIu64
		" with a right sum and wrong bytes, and %" PRIu64 " were none of this program's\n",
		bad_sums, wrong_bytes, strange);
	return 1;
}

/* ---- the two ends ---- */

static int ran(const struct pipe *p)
{
	return fail(p->why ? p->why : "interrupted");
}

static int greet(struct pipe *p)
{
	uint64_t tick = rte_get_tsc_hz() / 1000, from = rte_rdtsc(), next = from;

	while (!p->greeted) {
		uint64_t now = rte_rdtsc();

		if (now - from > ANSWER_MS * tick) {
			p->why =
				"no answer in 30 s: is `bare_pipe ... -- server` at the other end?";
			return -1;
		}
		if (now >= next) {
			next = now + HELLO_MS * tick;
			if (pipe_send_control(p, PIPE_HELLO, &p->attr, sizeof(p->attr)))
				return -1;
		}
		if (stop || pipe_receive(p) < 0)
			return -1;
	}
	return 0;
}

static int client(struct pipe *p, const struct options *o)
{
	double hz = (double)rte_get_tsc_hz();
	uint64_t lost;
	int rc;

	p->attr = o->attr;
	p->limits = (struct pipe_limits){.messages = o->messages,
					 .warmup = (uint64_t)(o->warmup * hz),
					 .duration = (uint64_t)(o->seconds * hz)};
	if (!pipe_prepare(p))
		return fail("there is no memory for --message");
	if (port_wait_for_link(LINK_MS, &stop))
		return fail("no link in 30 s: start the other end, a memif server first");
	if (greet(p) || pipe_run_client(p))
		return ran(p);
	print_result(p);
	lost = frames_sent(p) - BOTH(p, frames);
	if (lost)
		fprintf(stderr, "bare_pipe: %" PRIu64 " frames were lost\n", lost);
	rc = judge(BOTH(p, bad_sums), BOTH(p, wrong_bytes), BOTH(p, strange));
	return lost ? 1 : rc;
}

static int server(struct pipe *p)
{
	const char *why;

	printf("ready\n");
	fflush(stdout);
	while (!p->greeted) {
		if (stop)
			return 0;
		if (pipe_receive(p) == 0)
			rte_delay_us_sleep(100);
	}
	why = pipe_check(&p->attr);
	if (why)
		return fail(why);
	if (!pipe_prepare(p))
		return fail("there is no memory for the client's --message");
	if (pipe_send_control(p, PIPE_READY, NULL, 0) || pipe_run_server(p))
		return ran(p);
	/*
	 * The driver unmaps the rings when its peer leaves, also in the middle of a burst: from here
	 * on there is none. The client leaves first, because DONE may still lie in our memory.
	 */
	for (unsigned ms = 0; ms < LEAVE_MS && !stop && port_has_link(); ms++)
		rte_delay_us_sleep(1000);
	return judge(p->found.bad_sums, p->found.wrong_bytes, p->found.strange);
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

/* What stands after the EAL's "--", and the rest of it. 0, or 2 after a message. */
static int parse_role(int argc, char **argv, bool *is_client, struct options *o)
{
	*is_client = argc > 1 && strcmp(argv[1], "client") == 0;
	if (*is_client)
		return parse_client(argc - 1, argv + 1, o);
	if (argc == 2 && strcmp(argv[1], "server") == 0)
		return 0;
	fail("after the EAL's options, `-- server` or `-- client [OPTION]...` is needed; see "
	     "bare_pipe --help");
	return 2;
}

int main(int argc, char **argv)
{
	struct pipe *p = &pipe_state;
	struct options o;
	const char *why;
	bool is_client;
	int used, rc;

	if (wants_help(argc, argv)) {
		print_help(stdout);
		return 0;
	}
	used = rte_eal_init(argc, argv);
	if (used < 0) {
		fail("the EAL does not start; see bare_pipe --help");
		return 2;
	}
	rc = parse_role(argc - used, argv + used, &is_client, &o);
	if (rc)
		return rc;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	why = port_open(&p->port);
	if (why)
		return fail(why);
	p->stop = &stop;
	pipe_init(p);
	rc = is_client ? client(p, &o) : server(p);
	port_close();
	pipe_release(p);
	return rc;
}
