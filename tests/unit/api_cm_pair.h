/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_API_CM_PAIR_H
#define TESTS_API_CM_PAIR_H

#include "api_end.h"

/* Two endpoints on a ring, and connections from A to B by CM. */

#define PORT 7471
#define IP_A "10.77.0.1"
#define IP_B "10.77.0.2"

static inline void open_both(const char *const *set_a, const char *const *set_b)
{
	end_open(A, "ring-a.conf", set_a);
	end_open(B, "ring-b.conf", set_b);
}

static inline void setup(void)
{
	open_both(NULL, NULL);
}

static inline void teardown(void)
{
	end_close(A);
	end_close(B);
}

TestSuite(api_cm, .init = setup, .fini = teardown, .timeout = 240);
TestSuite(api_cm_own, .fini = teardown, .timeout = 240); /* the tests open endpoints themselves */

/* One connection from A to B, with its listener. */
struct pair {
	struct uroce_cm_id *listener, *a, *b;
	struct ibv_qp *qa, *qb;
};

static inline void accept_one(struct pair *p)
{
	struct uroce_cm_event *ev = end_event(B, UROCE_CM_CONNECT_REQUEST);

	p->b = ev->id;
	p->qb = end_qp(B, p->qa->qp_type);
	uroce_ack_cm_event(ev);
	cr_assert_eq(uroce_cm_accept(p->b, p->qb, &end_param), 0);
	end_expect(A, UROCE_CM_ESTABLISHED);
	end_expect(B, UROCE_CM_ESTABLISHED);
}

static inline void join(struct pair *p, enum ibv_qp_type type)
{
	if (!p->listener)
		p->listener = end_listen(B, PORT);
	p->a = end_id(A);
	p->qa = end_qp(A, type);
	cr_assert_eq(end_try_connect(p->a, IP_B, PORT, p->qa, NULL), 0);
	accept_one(p);
}

static inline void drop_ends(struct pair *p)
{
	cr_expect_eq(uroce_cm_destroy_id(p->a), 0);
	cr_expect_eq(uroce_cm_destroy_id(p->b), 0);
	cr_expect_eq(uroce_destroy_qp(p->qa), 0);
	cr_expect_eq(uroce_destroy_qp(p->qb), 0);
}

static inline void drop(struct pair *p)
{
	drop_ends(p);
	cr_expect_eq(uroce_cm_destroy_id(p->listener), 0);
}

static inline void talk(struct pair *p)
{
	end_post_recv(A, p->qa, 1);
	end_post_recv(B, p->qb, 2);
	end_post_send(A, p->qa, 3, "from a");
	cr_assert_eq(end_wc(A).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(B).wr_id, 2);
	cr_assert_str_eq((char *)B->buf, "from a");
	end_post_send(B, p->qb, 4, "from b");
	cr_assert_eq(end_wc(B).status, IBV_WC_SUCCESS);
	cr_assert_eq(end_wc(A).wr_id, 1);
	cr_assert_str_eq((char *)A->buf, "from b");
}

static inline void expect_addr(const struct sockaddr_storage *ss, const char *ip, int port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	char text[INET_ADDRSTRLEN];

	cr_expect_eq(in->sin_family, AF_INET);
	cr_expect_str_eq(inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)), ip);
	if (port)
		cr_expect_eq(ntohs(in->sin_port), port);
}

static inline void expect_status(struct uroce_cm_id *id, enum uroce_cm_event_type type, int status)
{
	struct uroce_cm_event *ev = end_event(A, type);

	cr_expect_eq(ev->id, id);
	cr_expect_eq(ev->status, status, "%d", ev->status);
	uroce_ack_cm_event(ev);
}

static inline void end_from(struct pair *p, struct uroce_cm_id *id)
{
	end_post_recv(A, p->qa, 5);
	end_post_recv(B, p->qb, 6);
	cr_assert_eq(uroce_cm_disconnect(id), 0);
	end_expect(A, UROCE_CM_DISCONNECTED);
	end_expect(B, UROCE_CM_DISCONNECTED);
	cr_expect_eq(end_state(p->qa), IBV_QPS_ERR);
	cr_expect_eq(end_state(p->qb), IBV_QPS_ERR);
	cr_expect_eq(end_wc(A).status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(end_wc(B).status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(uroce_cm_disconnect(id), ENOTCONN);
	end_expect(A, UROCE_CM_TIMEWAIT_EXIT);
	end_expect(B, UROCE_CM_TIMEWAIT_EXIT);
	cr_expect_null(end_try_event(A, 20));
	cr_expect_null(end_try_event(B, 20));
}

#endif
