/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_API_PAIR_H
#define TESTS_API_PAIR_H

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_set.h"
#include "uroce/uroce.h"

#ifdef __has_feature
#define UR_CLANG_ASAN __has_feature(address_sanitizer)
#else
#define UR_CLANG_ASAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || UR_CLANG_ASAN
#include <sanitizer/lsan_interface.h>
#endif

/*
 * Two endpoints in one process, joined by a ring, used only through the public API. QPs are
 * connected by modify_qp with exchanged numbers. In inline mode, functions that wait run the
 * workers of both.
 */

#define SIDE_BUF    (64u << 10)
#define SIDE_CQE    256
#define PATIENCE_MS 20000
#define REMOTE	    (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL_RIGHTS  (IBV_ACCESS_LOCAL_WRITE | REMOTE)
#define QKEY	    0x1234u
#define FIRST_PSN   0xfffff0u /* wraps soon */

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t buf[SIDE_BUF];
};

static struct side sides[2];
#define A (&sides[0])
#define B (&sides[1])

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Opens an end of the ring. `set`: as for api_set(). */
static inline struct ibv_context *open_end(const char *file, const char *const *set, char err[512])
{
	const char *all[API_SET_ROOM];
	const char *source = getenv("UROCE_SOURCE");
	char path[512];
	struct uroce_open_attr attr = {.config = path, .set = all};

	api_set(all, set);
	snprintf(path, sizeof(path), "%s/pmd-config/%s", source ? source : ".", file);
	return uroce_open(&attr, err, 512);
}

static inline void open_side(struct side *s, const char *const *set)
{
	char err[512] = "";

	s->ctx = open_end(s == A ? "ring-a.conf" : "ring-b.conf", set, err);
	cr_assert_not_null(s->ctx, "%s", err);
	s->pd = uroce_alloc_pd(s->ctx);
	s->cq = uroce_create_cq(s->ctx, SIDE_CQE, NULL, NULL, 0);
	cr_assert(s->pd && s->cq);
	s->mr = uroce_reg_mr(s->pd, s->buf, SIDE_BUF, ALL_RIGHTS);
	cr_assert_not_null(s->mr);
}

static inline void close_side(struct side *s)
{
	if (!s->ctx)
		return;
	if (s->mr)
		cr_expect_eq(uroce_dereg_mr(s->mr), 0);
	cr_expect_eq(uroce_destroy_cq(s->cq), 0, "a QP is left");
	cr_expect_eq(uroce_dealloc_pd(s->pd), 0, "the PD is in use");
	cr_expect_eq(uroce_close(s->ctx), 0, "an object is left");
	s->ctx = NULL;
}

static inline void open_both(void)
{
	open_side(A, NULL);
	open_side(B, NULL);
}

/* Criterion ends its tests without exit(), in which leaks would be checked. */
static inline void expect_no_leak(void)
{
#if defined(__SANITIZE_ADDRESS__) || UR_CLANG_ASAN
	cr_expect_eq(__lsan_do_recoverable_leak_check(), 0, "memory is lost");
#endif
}

static inline void close_both(void)
{
	close_side(A);
	close_side(B);
	expect_no_leak();
}

/* For tests that open what they need themselves. */
static inline void open_nothing(void)
{
}

/*
 * Criterion's .init and .fini are not used, because it treats a failure in them as a warning.
 * Closing the endpoints is a part of the test.
 */
#define PAIR_TEST(suite, name, set_up, tear_down, ...)                                             \
	static void suite##__##name(void);                                                         \
	Test(suite, name, .timeout = 240, ##__VA_ARGS__)                                           \
	{                                                                                          \
		set_up();                                                                          \
		suite##__##name();                                                                 \
		tear_down();                                                                       \
	}                                                                                          \
	static void suite##__##name(void)

static inline void progress(void)
{
	for (unsigned i = 0; i < 2; i++)
		if (sides[i].ctx)
			uroce_progress(sides[i].ctx);
}

static inline void progress_for(unsigned ms)
{
	uint64_t until = now_ms() + ms;

	do
		progress();
	while (now_ms() < until);
}

/* ---- queue pairs ---- */

static inline struct ibv_qp_init_attr qp_attr(struct side *s, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = type,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
	};
}

static inline struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = qp_attr(s, type);
	struct ibv_qp *qp = uroce_create_qp(s->pd, &attr);

	cr_assert_not_null(qp, "%s", strerror(errno));
	return qp;
}

/* How to connect a QP to its peer. 0 means the default. */
struct join {
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic;
	int gid_index;
	int access;   /* -1: none */
	uint32_t psn; /* offset from FIRST_PSN */
};

static inline struct ibv_ah_attr av_to(struct side *s, struct side *peer, int gid_index)
{
	struct ibv_ah_attr av = {.is_global = 1, .port_num = 1};

	(void)s;
	cr_assert_eq(uroce_query_gid(peer->ctx, 1, gid_index, &av.grh.dgid), 0);
	av.grh.sgid_index = (uint8_t)gid_index;
	return av;
}

static inline int to_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qkey = QKEY,
				   .qp_access_flags = (unsigned)access};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	return uroce_modify_qp(qp, &attr, mask);
}

static inline int to_rtr(struct ibv_qp *qp, struct side *s, struct side *peer, uint32_t dest_qpn,
			 struct join j)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = (FIRST_PSN + j.psn) & 0xffffff,
		.max_dest_rd_atomic = j.rd_atomic ? j.rd_atomic : 4,
		.min_rnr_timer = j.min_rnr_timer ? j.min_rnr_timer : 1,
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD) {
		attr.ah_attr = av_to(s, peer, j.gid_index);
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return uroce_modify_qp(qp, &attr, mask);
}

static inline int to_rts(struct ibv_qp *qp, struct join j)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = (FIRST_PSN + j.psn) & 0xffffff,
		.timeout = j.timeout ? j.timeout : 18, /* 1.07 s */
		.retry_cnt = j.retry_cnt ? j.retry_cnt : 7,
		.rnr_retry = j.rnr_retry ? j.rnr_retry : 7,
		.max_rd_atomic = j.rd_atomic ? j.rd_atomic : 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return uroce_modify_qp(qp, &attr, mask);
}

static inline int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return uroce_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	cr_assert_eq(uroce_query_qp(qp, &attr, IBV_QP_STATE, NULL), 0);
	return attr.qp_state;
}

static inline void ready(struct ibv_qp *qp, struct side *s, struct side *peer, uint32_t dest_qpn,
			 struct join j)
{
	int rc = to_init(qp, j.access < 0 ? 0 : j.access ? j.access : REMOTE);

	cr_assert_eq(rc, 0, "to INIT: %s", strerror(rc));
	rc = to_rtr(qp, s, peer, dest_qpn, j);
	cr_assert_eq(rc, 0, "to RTR: %s", strerror(rc));
	rc = to_rts(qp, j);
	cr_assert_eq(rc, 0, "to RTS: %s", strerror(rc));
}

static inline void join(struct ibv_qp *a, struct ibv_qp *b, struct join j)
{
	ready(a, A, B, b->qp_num, j);
	ready(b, B, A, a->qp_num, j);
}

/* ---- requests and completions ---- */

/* The local buffer of every request is at offset `off` of its side's buffer. */
static inline struct ibv_sge sge_of(struct side *s, uint32_t off, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)s->buf + off, len, s->mr->lkey};
}

static inline int try_recv(struct side *s, struct ibv_qp *qp, uint64_t id, uint32_t off,
			   uint32_t len)
{
	struct ibv_sge sge = sge_of(s, off, len);
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return uroce_post_recv(qp, &wr, &bad);
}

static inline void post_recv(struct side *s, struct ibv_qp *qp, uint64_t id, uint32_t off,
			     uint32_t len)
{
	int rc = try_recv(s, qp, id, off, len);

	cr_assert_eq(rc, 0, "post_recv: %s", strerror(rc));
}

/* The target of RDMA and atomics is at offset `off` of the peer's buffer. */
static inline int try_post(struct side *s, struct ibv_qp *qp, struct ibv_send_wr wr, uint32_t off,
			   uint32_t len)
{
	struct side *peer = s == A ? B : A;
	struct ibv_sge sge = sge_of(s, off, len);
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf + off;
		wr.wr.atomic.rkey = peer->mr->rkey;
	} else if (qp->qp_type != IBV_QPT_UD && !wr.wr.rdma.rkey) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf + off;
		wr.wr.rdma.rkey = peer->mr ? peer->mr->rkey : 0;
	}
	return uroce_post_send(qp, &wr, &bad);
}

static inline void post(struct side *s, struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op,
			uint32_t off, uint32_t len)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = op};
	int rc = try_post(s, qp, wr, off, len);

	cr_assert_eq(rc, 0, "post_send: %s", strerror(rc));
}

static inline struct ibv_wc next_wc_of(struct ibv_cq *cq)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = uroce_poll_cq(cq, 1, &wc))) {
		progress();
		cr_assert_lt(now_ms(), until, "no completion");
	}
	cr_assert_eq(n, 1);
	return wc;
}

static inline struct ibv_wc next_wc(struct side *s)
{
	return next_wc_of(s->cq);
}

static inline struct ibv_wc expect_wc(struct side *s, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(s);

	cr_assert_eq(wc.wr_id, id, "completion of %u, not %u", (unsigned)wc.wr_id, (unsigned)id);
	cr_assert_eq(wc.status, status, "%s, not %s", uroce_wc_status_str(wc.status),
		     uroce_wc_status_str(status));
	return wc;
}

static inline void expect_no_wc(struct side *s)
{
	struct ibv_wc wc;

	progress_for(5);
	cr_assert_eq(uroce_poll_cq(s->cq, 1, &wc), 0, "a completion of %u: %s", (unsigned)wc.wr_id,
		     uroce_wc_status_str(wc.status));
}

static inline void fill(struct side *s, uint32_t off, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		s->buf[off + i] = (uint8_t)(seed + i * 7);
}

static inline void expect_event(struct side *s, enum ibv_event_type type, const void *object)
{
	struct ibv_async_event ev;

	cr_assert_eq(uroce_get_async_event(s->ctx, &ev), 0);
	cr_assert_eq(ev.event_type, type, "%s", uroce_event_type_str(ev.event_type));
	cr_assert_eq((const void *)ev.element.qp, object);
	uroce_ack_async_event(&ev);
}

#endif
