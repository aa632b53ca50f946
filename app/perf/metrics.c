/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#define PAGE_LIFE_NS UINT64_C(100000000)
#define ROUND_MS     200 /* at most, between two checks for connections that have lasted too long */
#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct client {
	int fd; /* -1: the slot is free */
	uint64_t since_ns;
};

struct perf_metrics {
	struct MHD_Daemon *daemon;
	pthread_t thread;
	_Atomic bool stop;
	struct client clients[PERF_METRICS_CLIENTS]; /* the thread's */

	pthread_mutex_t lock; /* what is shown, and reading it */
	struct ibv_context *ctx[PERF_CONFIGS_MAX];
	unsigned ctx_cnt;
	struct MHD_Response *page; /* NULL: none yet */
	uint64_t page_ns;	   /* when it was made */
};

/* ---- the page ---- */

static struct MHD_Response *make_page(const struct perf_metrics *m)
{
	struct MHD_Response *page;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int rc = ENOMEM;

	if (out != NULL) {
		rc = uroce_write_metrics(m->ctx, m->ctx_cnt, out);
		if (fclose(out) != 0)
			rc = EIO;
	}
	if (rc != 0) {
		free(text);
		return NULL;
	}
	page = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (page == NULL)
		free(text);
	else
		MHD_add_response_header(page, MHD_HTTP_HEADER_CONTENT_TYPE, CONTENT_TYPE);
	return page;
}

static void drop_page(struct perf_metrics *m)
{
	if (m->page != NULL)
		MHD_destroy_response(m->page);
	m->page = NULL;
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned status, const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(size_t)text,
								 MHD_RESPMEM_PERSISTENT);
	enum MHD_Result rc;

	if (r == NULL)
		return MHD_NO;
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result answer_page(struct perf_metrics *m, struct MHD_Connection *c)
{
	enum MHD_Result rc;

	pthread_mutex_lock(&m->lock);
	if (m->ctx_cnt != 0 && (m->page == NULL || perf_now_ns() - m->page_ns >= PAGE_LIFE_NS)) {
		drop_page(m);
		m->page = make_page(m);
		m->page_ns = perf_now_ns();
	}
	if (m->page != NULL)
		rc = MHD_queue_response(c, MHD_HTTP_OK, m->page);
	else
		rc = answer_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, "no endpoint is open\n");
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_bytes, void **state)
{
	if (strcmp(url, "/metrics") != 0)
		return answer_text(c, MHD_HTTP_NOT_FOUND, "the counters are at /metrics\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	return answer_page(arg, c);
}

/* ---- connections ---- */

static void on_connection(void *arg, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct perf_metrics *m = arg;
	struct client *client = *state;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (client != NULL)
			client->fd = -1;
		return;
	}
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (unsigned i = 0; info != NULL && i < PERF_METRICS_CLIENTS; i++) {
		if (m->clients[i].fd < 0) {
			m->clients[i] = (struct client){info->connect_fd, perf_now_ns()};
			*state = &m->clients[i];
			return;
		}
	}
}

/* The library's timeout counts from the last byte, so that a slow client could stay for ever. */
static void end_old_connections(struct perf_metrics *m)
{
	uint64_t now_ns = perf_now_ns();

	for (unsigned i = 0; i < PERF_METRICS_CLIENTS; i++) {
		struct client *client = &m->clients[i];

		if (client->fd >= 0 &&
		    now_ns - client->since_ns >= PERF_METRICS_CLIENT_S * UINT64_C(1000000000))
			shutdown(client->fd, SHUT_RDWR);
	}
}

static void *serve(void *arg)
{
	struct perf_metrics *m = arg;

	while (!atomic_load(&m->stop) && MHD_run_wait(m->daemon, ROUND_MS) == MHD_YES)
		end_old_connections(m);
	return NULL;
}

/* ---- start and stop ---- */

/* Signals are for the main thread: none may be delivered to this one. */
static int start_thread(struct perf_metrics *m)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&m->thread, NULL, serve, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static struct MHD_Daemon *listen_on(struct perf_metrics *m, const struct sockaddr_storage *addr)
{
	unsigned flags = MHD_USE_EPOLL;

	if (addr->ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	return MHD_start_daemon(flags, 0, NULL, NULL, answer, m, MHD_OPTION_SOCK_ADDR, addr,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, m,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)PERF_METRICS_CLIENTS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)PERF_METRICS_CLIENT_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
				(unsigned)PERF_METRICS_CLIENT_S, MHD_OPTION_END);
}

struct perf_metrics *perf_metrics_start(const struct perf_options *o)
{
	struct perf_metrics *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		abort();
	pthread_mutex_init(&m->lock, NULL);
	for (unsigned i = 0; i < PERF_METRICS_CLIENTS; i++)
		m->clients[i].fd = -1;
	m->daemon = listen_on(m, &o->metrics_addr);
	rc = m->daemon == NULL ? errno : start_thread(m);
	if (rc == 0)
		return m;
	fprintf(stderr, "uroce-perf: --metrics: cannot listen on %s: %s%s\n", o->metrics,
		strerror(rc),
		rc == EADDRNOTAVAIL
			? "; no interface that is up has this address (ip address; in a new "
			  "network namespace: ip link set lo up)"
			: "");
	if (m->daemon != NULL)
		MHD_stop_daemon(m->daemon);
	free(m);
	return NULL;
}

void perf_metrics_show(struct perf_metrics *m, const struct perf_endpoint *eps, unsigned cnt)
{
	if (m == NULL)
		return;
	pthread_mutex_lock(&m->lock);
	for (unsigned i = 0; i < cnt; i++)
		m->ctx[i] = eps[i].ctx;
	m->ctx_cnt = cnt;
	drop_page(m);
	pthread_mutex_unlock(&m->lock);
}

void perf_metrics_stop(struct perf_metrics *m)
{
	if (m == NULL)
		return;
	atomic_store(&m->stop, true);
	pthread_join(m->thread, NULL);
	MHD_stop_daemon(m->daemon);
	drop_page(m);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
