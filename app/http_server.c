/* SPDX-License-Identifier: BSD-3-Clause */
#include "http_server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "thread/thread.h"

#define ROUND_MS 200 /* at most, between two checks for connections that have lasted too long */
#define NS	 UINT64_C(1000000000)

struct client {
	int fd; /* -1: the slot is free */
	uint64_t since_ns;
};

struct http_server {
	struct http_server_attr attr;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	_Atomic bool stop;
	struct client client[]; /* [attr.clients], the thread's */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* ---- connections ---- */

static void on_connection(void *arg, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct http_server *s = arg;
	struct client *client = *state;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (client)
			client->fd = -1;
		return;
	}
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (unsigned i = 0; info && i < s->attr.clients; i++)
		if (s->client[i].fd < 0) {
			s->client[i] = (struct client){info->connect_fd, now_ns()};
			*state = &s->client[i];
			return;
		}
}

/* The library's timeout counts from the last byte, so that a slow client could stay for ever. */
static void end_old_connections(struct http_server *s)
{
	uint64_t now = now_ns();

	for (unsigned i = 0; i < s->attr.clients; i++)
		if (s->client[i].fd >= 0 && now - s->client[i].since_ns >= s->attr.client_s * NS)
			shutdown(s->client[i].fd, SHUT_RDWR);
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_bytes, void **state)
{
	struct http_server *s = arg;

	return s->attr.answer(s->attr.ctx, c, url, method);
}

static void *serve(void *arg)
{
	struct http_server *s = arg;

	while (!atomic_load(&s->stop) && MHD_run_wait(s->daemon, ROUND_MS) == MHD_YES)
		end_old_connections(s);
	return NULL;
}

/* ---- start and stop ---- */

static int start_daemon(struct http_server *s)
{
	unsigned flags = (s->attr.epoll ? MHD_USE_EPOLL : 0) |
			 (s->attr.addr.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);

	errno = 0;
	s->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, answer, s, MHD_OPTION_SOCK_ADDR, &s->attr.addr,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_LIMIT,
		s->attr.clients, MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->attr.client_bytes,
		MHD_OPTION_CONNECTION_TIMEOUT, s->attr.client_s, MHD_OPTION_END);
	if (!s->daemon)
		return errno ? errno : ENOMEM;
	return ur_thread_start(&s->thread, NULL, serve, s);
}

int http_server_start(struct http_server **server, const struct http_server_attr *attr)
{
	struct http_server *s = calloc(1, sizeof(*s) + attr->clients * sizeof(s->client[0]));
	int rc;

	*server = NULL;
	if (!s)
		return ENOMEM;
	s->attr = *attr;
	for (unsigned i = 0; i < attr->clients; i++)
		s->client[i].fd = -1;
	rc = start_daemon(s);
	if (!rc) {
		*server = s;
		return 0;
	}
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	free(s);
	return rc;
}

uint16_t http_server_port(const struct http_server *server)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	atomic_store(&server->stop, true);
	pthread_join(server->thread, NULL);
	MHD_stop_daemon(server->daemon);
	free(server);
}
