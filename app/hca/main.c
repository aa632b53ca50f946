/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bsd/string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "adapter.h"
#include "issm.h"
#include "server.h"
#include "wire/assert.h"

#define MS_NS 1000000ull

static const char help[] =
	"Usage: uroce-hca [OPTION]...\n"
	"A channel adapter with one port, for programs that manage a fabric by libibumad: ibstat,\n"
	"ibnetdiscover, smpquery, OpenSM. They run unmodified, several at a time; see uroce-umad-run.\n"
	"\n"
	"  -l, --link LINK         the link to the fabric: eth:INTERFACE, a network interface, or\n"
	"                          unix:PATH, a socket at which a switch or fabric listens\n"
	"                          (SOCK_SEQPACKET, one Ethernet frame a message)\n"
	"  -n, --name NAME         the adapter's name (uroce0)\n"
	"  -d, --dir DIR           directory of the sockets for programs ($UROCE_UMAD_DIR, or\n"
	"                          /run/uroce/umad)\n"
	"  -m, --mac MAC           MAC address on a unix link; the GUID is made of it (from host name\n"
	"                          and NAME)\n"
	"  -D, --description TEXT  NodeDescription (host name and NAME)\n"
	"  -h, --help              this text\n"
	"\n"
	"Prints a line when programs can be started, and runs until SIGINT or SIGTERM.\n"
	"\n"
	"Examples:\n"
	"  uroce-hca --link eth:veth0\n"
	"  uroce-hca --link unix:/run/uroce/fabric.sock --name uroce1\n"
	"\n"
	"Exit status: 0 after a signal; 1 the link or the sockets cannot be opened; 2 bad usage.\n";

_Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "uroce-hca: %s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}

struct options {
	const char *link, *name, *dir;
	char description[UR_SMP_DATA_BYTES + 1];
	uint8_t mac[6];
	bool has_mac;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Locally administered, the same at each start. FNV-1a; 02-4C-49-44 stands for LIDs. */
static void derive_mac(uint8_t mac[6], const char *host, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (const char *p = host; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
	for (const char *p = name; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
	mac[0] = 0x06;
	for (unsigned i = 1; i < 6; i++)
		mac[i] = (uint8_t)(h >> 8 * i);
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
	char end;

	return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1], &mac[2],
		      &mac[3], &mac[4], &mac[5], &end) == 6 &&
	       (mac[0] & 1) == 0;
}

static int bad_usage(const char *what, const char *value, const char *remedy)
{
	fprintf(stderr, "uroce-hca: %s%s%s%s; see uroce-hca --help\n", what, value ? " '" : "",
		value ? value : "", value ? remedy : "");
	return 2;
}

/* Like other programs of uroce: 0 to go on, or an exit status, -1 for 0. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option list[] = {{"link", required_argument, NULL, 'l'},
					     {"name", required_argument, NULL, 'n'},
					     {"dir", required_argument, NULL, 'd'},
					     {"mac", required_argument, NULL, 'm'},
					     {"description", required_argument, NULL, 'D'},
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "l:n:d:m:D:h", list, NULL)) != -1) {
		switch (c) {
		case 'l':
			o->link = optarg;
			break;
		case 'n':
			o->name = optarg;
			break;
		case 'd':
			o->dir = optarg;
			break;
		case 'm':
			o->has_mac = true;
			if (!parse_mac(optarg, o->mac))
				return bad_usage("--mac:", optarg,
						 "' is not an address such as 06:00:00:00:00:01");
			break;
		case 'D':
			strlcpy(o->description, optarg, sizeof(o->description));
			break;
		case 'h':
			fputs(help, stdout);
			return -1;
		default:
			return 2;
		}
	}
	if (optind < argc)
		return bad_usage("unexpected argument", argv[optind], "'");
	if (o->link == NULL)
		return bad_usage("--link is missing", NULL, NULL);
	if (o->name[0] == '\0' || strlen(o->name) >= UMAD_CA_NAME_LEN || strchr(o->name, '/'))
		return bad_usage("--name:", o->name, "' is empty, too long, or has a slash");
	return 0;
}

static void fill_defaults(struct options *o)
{
	char host[64] = "localhost";

	gethostname(host, sizeof(host) - 1);
	if (o->description[0] == '\0')
		snprintf(o->description, sizeof(o->description), "%.40s %s", host, o->name);
	if (!o->has_mac)
		derive_mac(o->mac, host, o->name);
}

/* The directory and those above it, as `mkdir -p` does. */
static void make_dir(const char *dir)
{
	char path[256];

	strlcpy(path, dir, sizeof(path));
	for (char *p = path + 1; *p != '\0'; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(path, 0755);
			*p = '/';
		}
	mkdir(path, 0755);
}

static void deliver(void *arg, void *program, const struct ur_umad_mad *head, const uint8_t *mad)
{
	server_deliver(program, head, mad);
}

/* Serves until a signal. */
static void serve(struct adapter *a, struct server *s, struct issm *sm, int signals)
{
	struct pollfd fds[4 + 1 + HCA_CONNECTIONS_MAX];

	for (;;) {
		uint64_t now = now_ns(), due = adapter_deadline(a);
		int wait_ms = due <= now ? 0 : (int)((due - now + MS_NS - 1) / MS_NS);
		unsigned cnt = server_poll_set(s, fds + 4);

		fds[0] = (struct pollfd){.fd = signals, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = a->link.fd, .events = POLLIN};
		fds[2] = (struct pollfd){.fd = sm->inotify, .events = POLLIN};
		fds[3] = (struct pollfd){.fd = sm->writer};
		if (poll(fds, 4 + cnt, wait_ms) < 0 && errno != EINTR)
			return;
		if ((fds[0].revents & POLLIN) != 0)
			return;
		now = now_ns();
		if (fds[2].revents != 0 || fds[3].revents != 0)
			adapter_set_clients(a, server_has_program(s), issm_update(sm));
		server_serve(s, fds + 4, now);
		adapter_set_clients(a, server_has_program(s), a->is_sm);
		adapter_run(a, now);
	}
}

static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(const struct options *o)
{
	const struct adapter_config config = {
		.name = o->name,
		.link = o->link,
		.description = o->description,
		.mac = {o->mac[0], o->mac[1], o->mac[2], o->mac[3], o->mac[4], o->mac[5]},
		.deliver = deliver};
	struct server s;
	char path[PATH_MAX]; /* one that is too long for a socket is refused, and not cut */
	char err[256];
	struct adapter a;
	struct issm sm;
	int signals = catch_signals(), rc;

	if (adapter_open(&a, &config, now_ns()) < 0)
		return 1;
	make_dir(o->dir);
	snprintf(path, sizeof(path), "%s/%s" UR_UMAD_SUFFIX, o->dir, o->name);
	if (!server_open(&s, path, &a.mux, adapter_describe, &a, err, sizeof(err))) {
		fprintf(stderr,
			"uroce-hca: cannot listen at %s: %s; --name chooses another name, --dir or "
			"$" UR_UMAD_DIR_VARIABLE " another directory\n",
			path, err);
		adapter_close(&a);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/%s" UR_UMAD_ISSM_SUFFIX, o->dir, o->name);
	rc = issm_open(&sm, path);
	if (rc == 0) {
		printf("%s is ready in %s\n", o->name, o->dir);
		fflush(stdout);
		adapter_run(&a, now_ns());
		serve(&a, &s, &sm, signals);
		issm_close(&sm);
	} else {
		fprintf(stderr, "uroce-hca: cannot make the FIFO %s: %s\n", path, strerror(-rc));
	}
	server_close(&s);
	adapter_close(&a);
	return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *dir = getenv(UR_UMAD_DIR_VARIABLE);
	struct options o = {.name = "uroce0",
			    .dir = dir != NULL && dir[0] != '\0' ? dir : UR_UMAD_DIR};
	int rc = parse(argc, argv, &o);

	if (rc != 0)
		return rc < 0 ? 0 : rc;
	fill_defaults(&o);
	return run(&o);
}
