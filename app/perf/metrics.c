/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "http_server.h"

#define PAGE_LIFE_NS UINT64_C(100000000)
#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct perf_metrics {
	struct http_server *server;

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
			      const char *method)
{
	if (strcmp(url, "/metrics") != 0)
		return answer_text(c, MHD_HTTP_NOT_FOUND, "the counters are at /metrics\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	return answer_page(arg, c);
}

/* ---- start and stop ---- */

struct perf_metrics *perf_metrics_start(const struct perf_options *o)
{
	struct http_server_attr attr = {
		.addr = o->metrics_addr,
		.epoll = true,
		.clients = PERF_METRICS_CLIENTS,
		.client_bytes = PERF_METRICS_CLIENT_BYTES,
		.client_s = PERF_METRICS_CLIENT_S,
		.answer = answer,
	};
	struct perf_metrics *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		abort();
	pthread_mutex_init(&m->lock, NULL);
	attr.ctx = m;
	rc = http_server_start(&m->server, &attr);
	if (rc == 0)
		return m;
	fprintf(stderr, "uroce-perf: --metrics: cannot listen on %s: %s%s\n", o->metrics,
		strerror(rc),
		rc == EADDRNOTAVAIL
			? "; no interface that is up has this address (ip address; in a new "
			  "network namespace: ip link set lo up)"
			: "");
	pthread_mutex_destroy(&m->lock);
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
	http_server_stop(m->server);
	drop_page(m);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
