/* SPDX-License-Identifier: BSD-3-Clause */
#include "http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <microhttpd.h>

#include "page.h"
#include "session.h"

#define ROUND_MS 200 /* at most, between two checks for connections that have lasted too long */
#define NS	 UINT64_C(1000000000)
#define POLICY	 "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct client {
	int fd; /* -1: the slot is free */
	uint64_t since_ns;
};

struct text {
	char *text;
	uint64_t since_ns;
};

struct ctl_http {
	struct sockaddr_storage addr;
	uint16_t port;
	bool anywhere; /* it listens on all addresses */
	char host[INET6_ADDRSTRLEN + 2];
	struct MHD_Daemon *daemon;
	pthread_t thread;
	_Atomic bool stop;
	struct client clients[CTL_HTTP_CLIENTS]; /* the thread's */

	pthread_mutex_t lock; /* of `texts` */
	struct text texts[CTL_HTTP_TEXT_CNT];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* ---- addresses ---- */

/* An IPv4 address, or an IPv6 address in brackets. */
static bool parse_host(const char *text, size_t len, struct sockaddr_storage *addr)
{
	bool bracketed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
	char bare[INET6_ADDRSTRLEN] = "";

	memset(addr, 0, sizeof(*addr));
	if (len - 2 * bracketed >= sizeof(bare))
		return false;
	memcpy(bare, text + bracketed, len - 2 * bracketed);
	addr->ss_family = bracketed ? AF_INET6 : AF_INET;
	return inet_pton(addr->ss_family, bare,
			 bracketed ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr) == 1;
}

/* The length of "HOST" in "HOST:PORT". */
static size_t host_length(const char *text)
{
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');

	return colon && (!bracket || colon > bracket) ? (size_t)(colon - text) : strlen(text);
}

bool ctl_http_parse(const char *text, struct sockaddr_storage *addr)
{
	size_t len = host_length(text);
	uint64_t port;

	if (text[len] != ':' || !ctl_parse_number(text + len + 1, UINT16_MAX, &port) ||
	    !parse_host(text, len, addr))
		return false;
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)addr)->sin6_port = htons((uint16_t)port);
	return true;
}

static void read_address(struct ctl_http *h, bool *is_loopback)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&h->addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&h->addr;
	char bare[INET6_ADDRSTRLEN];

	if (h->addr.ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, h->host, sizeof(h->host));
		h->anywhere = v4->sin_addr.s_addr == htonl(INADDR_ANY);
		*is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
		return;
	}
	inet_ntop(AF_INET6, &v6->sin6_addr, bare, sizeof(bare));
	snprintf(h->host, sizeof(h->host), "[%s]", bare);
	h->anywhere = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
	*is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/*
 * A browser says in Host what it believes to talk to. A name that was made to lead here is another one; an address cannot
 * be made to.
 */
static bool is_host_ours(const struct ctl_http *h, const char *host)
{
	struct sockaddr_storage addr;
	size_t len = host ? host_length(host) : 0;

	if (len == 9 && !strncasecmp(host, "localhost", 9))
		return true;
	if (len == strlen(h->host) && !strncasecmp(host, h->host, len))
		return true;
	return h->anywhere && len && parse_host(host, len, &addr);
}

/* ---- answers ---- */

static enum MHD_Result send_response(struct MHD_Connection *c, unsigned status,
				     struct MHD_Response *r, const char *type)
{
	enum MHD_Result rc = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    MHD_add_response_header(r, "Content-Security-Policy", POLICY) == MHD_YES &&
	    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff") == MHD_YES &&
	    MHD_add_response_header(r, "Referrer-Policy", "no-referrer") == MHD_YES &&
	    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
	    MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES)
		rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *why)
{
	return send_response(c, status,
			     MHD_create_response_from_buffer(strlen(why), (void *)(uintptr_t)why,
							     MHD_RESPMEM_PERSISTENT),
			     "text/plain; charset=utf-8");
}

/* A header says how old the text is, since that changes while the text does not. */
static enum MHD_Result send_text(struct ctl_http *h, struct MHD_Connection *c,
				 enum ctl_http_text which)
{
	struct MHD_Response *r = NULL;
	uint64_t age_ns = 0;
	char age[24];

	pthread_mutex_lock(&h->lock);
	if (h->texts[which].text) {
		r = MHD_create_response_from_buffer(strlen(h->texts[which].text),
						    h->texts[which].text, MHD_RESPMEM_MUST_COPY);
		age_ns = now_ns() - h->texts[which].since_ns;
	}
	pthread_mutex_unlock(&h->lock);
	if (!r)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "nothing was read yet\n");
	snprintf(age, sizeof(age), "%llu", (unsigned long long)(age_ns / 1000000));
	(void)MHD_add_response_header(r, "Uroce-Age-Ms", age);
	return send_response(c, MHD_HTTP_OK, r, "application/json");
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_bytes, void **state)
{
	static const char *const paths[] = {
#define X(NAME, path) path,
		CTL_HTTP_TEXTS(X)
#undef X
	};
	struct ctl_http *h = arg;

	if (!is_host_ours(h, MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)))
		return refuse(c, MHD_HTTP_FORBIDDEN, "this is not that host\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	for (unsigned i = 0; i < CTL_HTTP_TEXT_CNT; i++)
		if (!strcmp(url, paths[i]))
			return send_text(h, c, (enum ctl_http_text)i);
	for (unsigned i = 0; i < ctl_page_cnt; i++)
		if (!strcmp(url, ctl_page[i].path))
			return send_response(
				c, MHD_HTTP_OK,
				MHD_create_response_from_buffer(ctl_page[i].bytes,
								(void *)(uintptr_t)ctl_page[i].data,
								MHD_RESPMEM_PERSISTENT),
				ctl_page[i].type);
	return refuse(c, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

/* ---- connections ---- */

static void on_connection(void *arg, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct ctl_http *h = arg;
	struct client *client = *state;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (client)
			client->fd = -1;
		return;
	}
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (unsigned i = 0; info && i < CTL_HTTP_CLIENTS; i++)
		if (h->clients[i].fd < 0) {
			h->clients[i] = (struct client){info->connect_fd, now_ns()};
			*state = &h->clients[i];
			return;
		}
}

/* The library's timeout counts from the last byte, so that a slow client could stay for ever. */
static void end_old_connections(struct ctl_http *h)
{
	uint64_t now = now_ns();

	for (unsigned i = 0; i < CTL_HTTP_CLIENTS; i++)
		if (h->clients[i].fd >= 0 && now - h->clients[i].since_ns >= CTL_HTTP_CLIENT_S * NS)
			shutdown(h->clients[i].fd, SHUT_RDWR);
}

static void *serve(void *arg)
{
	struct ctl_http *h = arg;

	while (!atomic_load(&h->stop) && MHD_run_wait(h->daemon, ROUND_MS) == MHD_YES)
		end_old_connections(h);
	return NULL;
}

/* ---- start and stop ---- */

/* Signals are for the main thread: none may be delivered to this one. */
static int start_thread(struct ctl_http *h)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&h->thread, NULL, serve, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static int start_daemon(struct ctl_http *h)
{
	/* Not by epoll: with it the library misses the end of a connection that was closed before it was accepted. */
	unsigned flags = h->addr.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0;
	const union MHD_DaemonInfo *info;

	h->daemon = MHD_start_daemon(flags, 0, NULL, NULL, answer, h, MHD_OPTION_SOCK_ADDR,
				     &h->addr, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned)CTL_HTTP_CLIENTS,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)CTL_HTTP_CLIENT_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
				     (unsigned)CTL_HTTP_CLIENT_S, MHD_OPTION_END);
	if (!h->daemon)
		return errno ? errno : ENOMEM;
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
	h->port = info ? info->port : 0;
	return start_thread(h);
}

struct ctl_http *ctl_http_start(const char *listen_on)
{
	struct ctl_http *h = calloc(1, sizeof(*h));
	bool is_loopback = false;
	int rc;

	if (!h || !ctl_http_parse(listen_on, &h->addr)) {
		ctl_complain("there is no memory for a server");
		free(h);
		return NULL;
	}
	read_address(h, &is_loopback);
	pthread_mutex_init(&h->lock, NULL);
	for (unsigned i = 0; i < CTL_HTTP_CLIENTS; i++)
		h->clients[i].fd = -1;
	rc = start_daemon(h);
	if (!rc) {
		if (!is_loopback)
			ctl_complain("the page has no log-in: all that reach %s can read it",
				     listen_on);
		return h;
	}
	ctl_complain("--listen: cannot listen on %s: %s", listen_on, strerror(rc));
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	free(h);
	return NULL;
}

void ctl_http_url(const struct ctl_http *h, char *url, size_t bytes)
{
	snprintf(url, bytes, "http://%s:%u/", h->host, h->port);
}

void ctl_http_show(struct ctl_http *h, enum ctl_http_text which, char *text)
{
	char *old;

	pthread_mutex_lock(&h->lock);
	old = text ? h->texts[which].text : NULL;
	if (text)
		h->texts[which] = (struct text){text, now_ns()};
	pthread_mutex_unlock(&h->lock);
	free(old);
}

void ctl_http_stop(struct ctl_http *h)
{
	if (!h)
		return;
	atomic_store(&h->stop, true);
	pthread_join(h->thread, NULL);
	MHD_stop_daemon(h->daemon);
	for (unsigned i = 0; i < CTL_HTTP_TEXT_CNT; i++)
		free(h->texts[i].text);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
