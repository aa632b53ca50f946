/* SPDX-License-Identifier: BSD-3-Clause */
#include "http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "http_server.h"
#include "page.h"
#include "session.h"

#define NS     UINT64_C(1000000000)
#define POLICY "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct text {
	char *text;
	uint64_t since_ns;
};

struct ctl_http {
	struct sockaddr_storage addr;
	bool anywhere; /* it listens on all addresses */
	char host[INET6_ADDRSTRLEN + 2];
	struct http_server *server;

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
			      const char *method)
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

/* ---- start and stop ---- */

static int start_server(struct ctl_http *h)
{
	struct http_server_attr attr = {
		.addr = h->addr,
		.clients = CTL_HTTP_CLIENTS,
		.client_bytes = CTL_HTTP_CLIENT_BYTES,
		.client_s = CTL_HTTP_CLIENT_S,
		.answer = answer,
		.ctx = h,
	};

	return http_server_start(&h->server, &attr);
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
	rc = start_server(h);
	if (!rc) {
		if (!is_loopback)
			ctl_complain("the page has no log-in: all that reach %s can read it",
				     listen_on);
		return h;
	}
	ctl_complain("--listen: cannot listen on %s: %s", listen_on, strerror(rc));
	pthread_mutex_destroy(&h->lock);
	free(h);
	return NULL;
}

void ctl_http_url(const struct ctl_http *h, char *url, size_t bytes)
{
	snprintf(url, bytes, "http://%s:%u/", h->host, http_server_port(h->server));
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
	http_server_stop(h->server);
	for (unsigned i = 0; i < CTL_HTTP_TEXT_CNT; i++)
		free(h->texts[i].text);
	pthread_mutex_destroy(&h->lock);
	free(h);
}
