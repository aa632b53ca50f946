/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interop-uroce run --peer HOST:PORT --config FILE [--set KEY=VALUE]...     scenarios on stdin, one
 * a line interop-rxe serve PORT                                                    in the guest
 *
 * The first prints "ok NAME: NOTE" or "FAILED NAME: REASON" for each scenario; its exit status is 1
 * if any failed. The second serves each connection in a process of its own: a scenario, or a
 * command line.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scenario.h"

/* Limits the time of a scenario, also of one that transfers much slowly. */
static void limit_time(const struct spec *spec)
{
	alarm(900 + 2 * spec->megabytes);
}

static bool lead(struct device *dev, const char *peer, const char *line)
{
	struct link link = {.dev = dev};
	static struct session s;
	char note[256] = "", losses[128], answer[600];
	bool ok;

	memset(&s, 0, sizeof(s));
	s.dev = dev;
	s.link = &link;
	s.leads = true;
	if (!spec_parse(&s.spec, line, s.why, sizeof(s.why))) {
		printf("FAILED %s: %s\n", s.spec.name, s.why);
		return false;
	}
	limit_time(&s.spec);
	if (!link_connect(&link, peer)) {
		printf("FAILED %s: no connection to the program in the guest\n", s.spec.name);
		return false;
	}
	ok = link_send(&link, "scenario %s", line) ||
	     failed(&s, "the program in the guest has gone");
	ok = ok && run_scenario(&s, note, sizeof(note));
	/* Closing may reveal objects that are still in use. */
	if (ok && !s.peer_left &&
	    (link_recv(&link, answer, sizeof(answer), 20000) != 1 || strcmp(answer, "over") != 0))
		ok = failed(&s, "rxe: %s",
			    link.peer_failure[0] != '\0' ? link.peer_failure : "no end");
	link_close(&link);
	device_losses(dev, losses, sizeof(losses));
	if (ok)
		printf("ok %s: %s%s\n", s.spec.name, note, losses);
	else
		printf("FAILED %s: %s%s\n", s.spec.name, s.why, losses);
	fflush(stdout);
	return ok;
}

static int run(int argc, char **argv)
{
	const char *set[32] = {NULL}, *config = NULL, *peer = NULL;
	unsigned sets = 0, bad = 0;
	struct device dev;
	char line[1024];

	for (int i = 2; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--config") == 0)
			config = argv[i + 1];
		else if (strcmp(argv[i], "--peer") == 0)
			peer = argv[i + 1];
		else if (strcmp(argv[i], "--set") == 0 && sets < 31)
			set[sets++] = argv[i + 1];
		else
			return 2;
	}
	if (peer == NULL || !device_open(&dev, config, set))
		return 2;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] != '\0' && !lead(&dev, peer, line))
			bad++;
	}
	alarm(0);
	return !device_close(&dev) || bad > 0;
}

static void follow(struct link *link, const char *line)
{
	static struct session s;
	struct device dev;
	char note[256];

	s.dev = link->dev = &dev;
	s.link = link;
	if (spec_parse(&s.spec, line, s.why, sizeof(s.why)))
		limit_time(&s.spec);
	if (s.why[0] != '\0' || !device_open(&dev, NULL, NULL))
		link_send(link, "fail %s", s.why);
	else if (run_scenario(&s, note, sizeof(note)))
		link_send(link, "over");
}

/* Reads the first line, byte by byte, so that nothing of the scenario is consumed. */
static bool first_line(int fd, char *line, size_t cap)
{
	size_t n = 0;

	while (n + 1 < cap && read(fd, line + n, 1) == 1) {
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		n++;
	}
	return false;
}

static void serve_one(int fd)
{
	struct link link = {.fd = fd};
	char line[2048];
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!first_line(fd, line, sizeof(line)))
		return;
	if (strncmp(line, "scenario ", 9) == 0) {
		follow(&link, line + 9);
	} else if (strncmp(line, "command ", 8) == 0) {
		dup2(fd, 1);
		dup2(fd, 2);
		execl("/bin/bash", "bash", "-c", line + 8, (char *)NULL);
	}
}

static int serve(const char *port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, client;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    listen(fd, 16) != 0) {
		perror("interop: listen");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0)
			continue;
		if (fork() == 0) {
			close(fd);
			signal(SIGCHLD, SIG_DFL);
			serve_one(client);
			_exit(0);
		}
		close(client);
	}
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 2 && strcmp(argv[1], "run") == 0)
		return run(argc, argv);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2]);
	fprintf(stderr, "usage: interop run --peer HOST:PORT --config FILE [--set KEY=VALUE]... | "
			"serve PORT\n");
	return 2;
}
