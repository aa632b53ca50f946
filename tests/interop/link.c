/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

unsigned long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000 + (unsigned long long)ts.tv_nsec / 1000000;
}

static int dial(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen) == 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

bool link_connect(struct link *l, const char *host_port)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *ai;
	unsigned long long end = now_ms() + 10000;
	char host[128], *colon;

	snprintf(host, sizeof(host), "%s", host_port);
	colon = strrchr(host, ':');
	if (colon == NULL)
		return false;
	*colon = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &ai) != 0)
		return false;
	do {
		l->fd = dial(ai);
		if (l->fd < 0)
			usleep(100000);
	} while (l->fd < 0 && now_ms() < end);
	freeaddrinfo(ai);
	l->used = 0;
	l->peer_failure[0] = '\0';
	return l->fd >= 0;
}

void link_close(struct link *l)
{
	close(l->fd);
	l->fd = -1;
}

bool link_send(struct link *l, const char *fmt, ...)
{
	char line[2048];
	size_t done = 0, len;
	va_list ap;
	ssize_t n;

	va_start(ap, fmt);
	len = (size_t)vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len > sizeof(line) - 2)
		return false;
	line[len++] = '\n';
	for (; done < len; done += (size_t)n) {
		n = send(l->fd, line + done, len - done, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Reads what the socket has. -1: the peer has ended and everything has been read. */
static int fill(struct link *l)
{
	ssize_t n = recv(l->fd, l->buf + l->used, sizeof(l->buf) - 1 - l->used, MSG_DONTWAIT);

	if (n > 0)
		l->used += (size_t)n;
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ? -1 : 0;
}

static bool take_line(struct link *l, char *line, size_t cap)
{
	char *nl = memchr(l->buf, '\n', l->used);
	size_t len;

	if (nl == NULL)
		return false;
	len = (size_t)(nl - l->buf);
	snprintf(line, cap, "%.*s", (int)len, l->buf);
	memmove(l->buf, nl + 1, l->used - len - 1);
	l->used -= len + 1;
	return true;
}

static bool record_failure(struct link *l, const char *line)
{
	if (strncmp(line, "fail ", 5) != 0)
		return false;
	snprintf(l->peer_failure, sizeof(l->peer_failure), "%.500s", line + 5);
	return true;
}

int link_recv(struct link *l, char *line, size_t cap, unsigned ms)
{
	unsigned long long end = now_ms() + ms;
	struct pollfd pfd = {.fd = l->fd, .events = POLLIN};
	int gone = 0;

	for (;;) {
		if (take_line(l, line, cap))
			return record_failure(l, line) ? -1 : 1;
		if (gone < 0) {
			snprintf(l->peer_failure, sizeof(l->peer_failure),
				 "the program at the other end has gone");
			return -1;
		}
		if (device_progress(l->dev) == 0)
			poll(&pfd, 1, ms == 0 ? 0 : 1);
		gone = fill(l);
		if (gone == 0 && l->used == 0 && now_ms() >= end)
			return 0;
		if (l->used == sizeof(l->buf) - 1)
			return -1;
	}
}

const char *link_peer_failure(struct link *l)
{
	char first[600];
	int gone = fill(l);
	char *nl = memchr(l->buf, '\n', l->used);

	if (nl != NULL) {
		snprintf(first, sizeof(first), "%.*s", (int)(nl - l->buf), l->buf);
		if (record_failure(l, first))
			return l->peer_failure;
	} else if (gone < 0) {
		return "the program at the other end has gone";
	}
	return NULL;
}
