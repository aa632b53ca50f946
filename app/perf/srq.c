/* SPDX-License-Identifier: BSD-3-Clause */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint32_t entries_of(const struct perf_session *s)
{
	uint64_t entries =
		s->params.receives != 0 ? s->params.receives : s->params.qps * s->params.rq_depth;

	if (s->ep->device.max_srq_wr > 0 && entries > (uint64_t)s->ep->device.max_srq_wr)
		entries = (uint64_t)s->ep->device.max_srq_wr;
	return (uint32_t)entries;
}

/* Small enough that with few receives none waits for a batch to fill. */
static uint32_t batch_of(const struct perf_session *s, uint32_t entries)
{
	uint64_t quarter = (s->params.rq_depth < entries ? s->params.rq_depth : entries) / 4;

	return quarter < 1 ? 1 : quarter < PERF_BATCH ? (uint32_t)quarter : PERF_BATCH;
}

/* As in a session's memory: without --verify all receives have one buffer. */
static bool make_memory(struct perf_srq *q, struct perf_session *s)
{
	uint64_t step = s->layout.rx_step;

	q->mem_bytes = (q->entries - 1) * step + (q->bytes < 8 ? 8 : q->bytes);
	q->mem = mmap(NULL, q->mem_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (q->mem == MAP_FAILED) {
		q->mem = NULL;
		return false;
	}
	q->mr = uroce_reg_mr(s->ep->pd, q->mem, q->mem_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (q->mr == NULL)
		return false;
	q->lkey = q->mr->lkey;
	for (uint32_t i = 0; i < q->entries; i++)
		q->at[i] = (uintptr_t)q->mem + i * step;
	return true;
}

static void use_memory_of(struct perf_srq *q, struct perf_session *s)
{
	uint32_t mask = (uint32_t)s->params.rq_depth - 1;

	q->lkey = s->mr->lkey;
	for (uint32_t i = 0; i < q->entries; i++)
		q->at[i] = (uintptr_t)perf_session_rx_buffer(s, i >> s->rq_shift, i & mask);
}

static bool make(struct perf_srq *q, struct perf_session *s)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = q->entries, .max_sge = 1}};

	q->at = calloc(q->entries, sizeof(*q->at));
	if (q->at == NULL)
		return false;
	if (q->home == NULL)
		use_memory_of(q, s);
	else if (!make_memory(q, s))
		return false;
	q->srq = uroce_create_srq(s->ep->pd, &attr);
	return q->srq != NULL;
}

static bool create(struct perf_session *s, struct perf_srq **home)
{
	uint32_t entries = entries_of(s);
	struct perf_srq *q = calloc(1, sizeof(*q));

	if (q != NULL) {
		q->home = home;
		q->users = 1;
		q->receives = s->params.receives;
		q->service_us = s->params.service_us;
		q->verify = s->params.verify;
		q->entries = entries;
		q->batch = batch_of(s, entries);
		q->bytes = (uint32_t)s->layout.rx_bytes;
		if (home != NULL)
			*home = q;
	}
	if (q == NULL || !make(q, s)) {
		perf_session_fail(s, "cannot create a shared receive queue of %u entries: %s",
				  entries, strerror(errno));
		perf_srq_put(q);
		return false;
	}
	s->srq = q;
	return true;
}

static bool fits(const struct perf_srq *q, const struct perf_session *s)
{
	return s->layout.rx_bytes <= q->bytes && s->params.receives == q->receives &&
	       s->params.service_us == q->service_us && s->params.verify == q->verify;
}

bool perf_srq_take(struct perf_session *s, struct perf_srq **home)
{
	struct perf_srq *q = home != NULL ? *home : NULL;

	if (q == NULL)
		return create(s, home);
	if (!fits(q, s)) {
		perf_session_fail(s,
				  "the SRQ that clients share here is for up to %u bytes a "
				  "message, --receives %llu, --service-us %llu, %s --verify; "
				  "this client has other settings",
				  q->bytes, (unsigned long long)q->receives,
				  (unsigned long long)q->service_us,
				  q->verify ? "with" : "without");
		return false;
	}
	q->users++;
	s->srq = q;
	return true;
}

void perf_srq_put(struct perf_srq *q)
{
	if (q == NULL || --q->users > 0)
		return;
	if (q->home != NULL)
		*q->home = NULL;
	if (q->srq != NULL)
		uroce_destroy_srq(q->srq);
	if (q->mr != NULL)
		uroce_dereg_mr(q->mr);
	if (q->mem != NULL)
		munmap(q->mem, q->mem_bytes);
	free(q->at);
	free(q);
}

static int post(struct perf_srq *q)
{
	uint32_t cnt = q->pending_cnt;
	struct ibv_recv_wr *bad;

	q->pending_cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		q->sge[i] = (struct ibv_sge){q->at[q->pending[i]], q->bytes, q->lkey};
		q->wr[i].wr_id = perf_wr_id(PERF_WR_RX, 0, q->pending[i]);
		q->wr[i].sg_list = &q->sge[i];
		q->wr[i].num_sge = q->bytes != 0;
		q->wr[i].next = i + 1 < cnt ? &q->wr[i + 1] : NULL;
	}
	return cnt > 0 ? uroce_post_srq_recv(q->srq, q->wr, &bad) : 0;
}

int perf_srq_arm(struct perf_srq *q)
{
	int rc = 0;

	for (uint32_t i = 0; i < q->entries && !q->armed && rc == 0; i++) {
		q->pending[q->pending_cnt++] = i;
		if (q->pending_cnt == PERF_BATCH || i + 1 == q->entries)
			rc = post(q);
	}
	q->armed = true;
	return rc;
}

int perf_srq_give_back(struct perf_srq *q, uint32_t entry)
{
	q->pending[q->pending_cnt++] = entry;
	return q->pending_cnt >= q->batch ? post(q) : 0;
}

void perf_srq_serve_later(struct perf_srq *q, uint32_t entry)
{
	if (q->serve_head == q->serve_tail)
		q->serve_until_ns = perf_now_ns() + q->service_us * 1000;
	q->serve[q->serve_tail++ % PERF_RECEIVES_MAX] = entry;
}

int perf_srq_serve(struct perf_srq *q)
{
	uint64_t now = perf_now_ns();
	int rc = 0;

	while (q->serve_head != q->serve_tail && now >= q->serve_until_ns && rc == 0) {
		q->pending[q->pending_cnt++] = q->serve[q->serve_head++ % PERF_RECEIVES_MAX];
		rc = post(q);
		q->serve_until_ns += q->service_us * 1000;
	}
	return rc;
}
