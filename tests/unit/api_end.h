/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_API_END_H
#define TESTS_API_END_H

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_set.h"
#include "uroce/cm.h"

/*
 * Two endpoints in one process, joined by a ring, with all that is needed to connect and to send.
 * In inline mode, end_event() and end_wc() run the workers of both.
 */

#define END_BUF	  4096
#define END_PEERS 2

#define PATIENCE_MS 20000

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct uroce_event_channel *ch;
	uint8_t buf[END_BUF];
};

static struct end ends[END_PEERS];
#define A (&ends[0])
#define B (&ends[1])

static inline uint64_t end_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void end_open(struct end *e, const char *config, const char *const *set)
{
	char file[512], err[512];
	const char *all[API_SET_ROOM];
	struct uroce_open_attr attr = {.config = file, .set = all};
	const char *source = getenv("UROCE_SOURCE");

	api_set(all, set);
	snprintf(file, sizeof(file), "%s/pmd-config/%s", source ? source : ".", config);
	e->ctx = uroce_open(&attr, err, sizeof(err));
	cr_assert_not_null(e->ctx, "%s", err);
	e->pd = uroce_alloc_pd(e->ctx);
	e->cq = uroce_create_cq(e->ctx, 256, NULL, NULL, 0);
	e->ch = uroce_create_event_channel(e->ctx);
	cr_assert(e->pd && e->cq && e->ch);
	e->mr = uroce_reg_mr(e->pd, e->buf, sizeof(e->buf),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	cr_assert_not_null(e->mr);
}

static inline void end_close(struct end *e)
{
	if (!e->ctx)
		return;
	cr_expect_eq(uroce_dereg_mr(e->mr), 0);
	cr_expect_eq(uroce_destroy_event_channel(e->ch), 0, "every id was destroyed");
	cr_expect_eq(uroce_destroy_cq(e->cq), 0, "every QP was destroyed");
	cr_expect_eq(uroce_dealloc_pd(e->pd), 0);
	cr_expect_eq(uroce_close(e->ctx), 0, "no object is left");
	e->ctx = NULL;
}

static inline struct ibv_qp *end_qp_of(struct end *e, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.srq = srq,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = type,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = uroce_create_qp(e->pd, &attr);

	cr_assert_not_null(qp, "%s", strerror(errno));
	return qp;
}

static inline struct ibv_qp *end_qp(struct end *e, enum ibv_qp_type type)
{
	return end_qp_of(e, type, NULL);
}

static inline void end_progress(void)
{
	for (unsigned i = 0; i < END_PEERS; i++)
		if (ends[i].ctx)
			uroce_progress(ends[i].ctx);
}

/* The next event of `e`; NULL after `ms` milliseconds without one. */
static inline struct uroce_cm_event *end_try_event(struct end *e, unsigned ms)
{
	uint64_t until = end_ms() + ms;
	struct uroce_cm_event *ev;

	do {
		int rc = uroce_get_cm_event(e->ch, 0, &ev);

		if (!rc)
			return ev;
		cr_assert_eq(rc, ETIMEDOUT);
		end_progress();
	} while (end_ms() < until);
	return NULL;
}

/* The next event, which must have this type. */
static inline struct uroce_cm_event *end_event(struct end *e, enum uroce_cm_event_type type)
{
	struct uroce_cm_event *ev = end_try_event(e, PATIENCE_MS);

	cr_assert_not_null(ev, "no event; expected: %s", uroce_cm_event_str(type));
	cr_assert_eq(ev->type, type, "got: %s (%d); expected: %s", uroce_cm_event_str(ev->type),
		     ev->status, uroce_cm_event_str(type));
	return ev;
}

/* The same if only the type matters. */
static inline void end_expect(struct end *e, enum uroce_cm_event_type type)
{
	uroce_ack_cm_event(end_event(e, type));
}

static inline struct uroce_cm_id *end_id(struct end *e)
{
	struct uroce_cm_id *id;

	cr_assert_eq(uroce_cm_create_id(e->ch, NULL, &id), 0);
	return id;
}

static inline struct uroce_cm_id *end_listen(struct end *e, uint16_t port)
{
	struct uroce_cm_id *id = end_id(e);

	cr_assert_eq(uroce_cm_listen(id, port), 0);
	return id;
}

static inline struct sockaddr_in end_addr(const char *ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	cr_assert_eq(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	return in;
}

static const struct uroce_conn_param end_param = {.responder_resources = 4,
						  .initiator_depth = 4,
						  .retry_count = 7,
						  .rnr_retry_count = 7,
						  .timeout = 18, /* 1.07 s */
						  .min_rnr_timer = 12};

static inline int end_try_connect(struct uroce_cm_id *id, const char *ip, uint16_t port,
				  struct ibv_qp *qp, const struct uroce_conn_param *param)
{
	struct sockaddr_in in = end_addr(ip, port);

	return uroce_cm_connect(id, (struct sockaddr *)&in, qp, param ? param : &end_param);
}

static inline enum ibv_qp_state end_state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	cr_assert_eq(uroce_query_qp(qp, &attr, IBV_QP_STATE, NULL), 0);
	return attr.qp_state;
}

static inline void end_post_recv(struct end *e, struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 1024, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	cr_assert_eq(uroce_post_recv(qp, &wr, &bad), 0);
}

static inline void end_post_send(struct end *e, struct ibv_qp *qp, uint64_t wr_id, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + 2048, (uint32_t)strlen(text) + 1, e->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	memcpy(e->buf + 2048, text, strlen(text) + 1);
	cr_assert_eq(uroce_post_send(qp, &wr, &bad), 0);
}

static inline struct ibv_wc end_wc(struct end *e)
{
	uint64_t until = end_ms() + PATIENCE_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = uroce_poll_cq(e->cq, 1, &wc))) {
		end_progress();
		cr_assert_lt(end_ms(), until, "no completion");
	}
	cr_assert_eq(n, 1);
	return wc;
}

#endif
