/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_RDMACM_PAIR_H
#define TESTS_RDMACM_PAIR_H

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "uroce/counters.h"

/*
 * librdmacm over two endpoints on a ring, in one process. Both are devices of the program: an id that binds to an address
 * of A or of B is on that side. A has the channel ch[A], and so on.
 */

#define PORT	    7471
#define PATIENCE_MS 20000
#define IP_A	    "10.77.0.1"
#define IP_B	    "10.77.0.2"
#define IP6_A	    "fd77::1"
#define IP6_B	    "fd77::2"

enum side { A, B, SIDES };

static struct rdma_event_channel *ch[SIDES];
static char conf[SIDES][64];

static inline void write_conf(enum side s, const char *mac, const char *ip, const char *ip6)
{
	FILE *f;
	int fd;

	snprintf(conf[s], sizeof(conf[s]), "/tmp/rdmacm-test-XXXXXX");
	fd = mkstemp(conf[s]);
	cr_assert_geq(fd, 0);
	f = fdopen(fd, "w");
	fprintf(f,
		"[port]\ndriver = ring\ndevice = loop\nframecnt = 512\nmbufs = 1023\n"
		"[address]\nmac = %s\nipv4 = %s/24\nipv6 = %s/64\n"
		"[eal]\nhugepages = no\nmemory_mb = 128\n",
		mac, ip, ip6);
	fclose(f);
}

static inline void setup(void)
{
	char both[160];

	write_conf(A, "02:75:72:00:00:0a", IP_A, IP6_A);
	write_conf(B, "02:75:72:00:00:0b", IP_B, IP6_B);
	snprintf(both, sizeof(both), "%s:%s", conf[A], conf[B]);
	setenv("UROCE_CONFIG", both, 1);
	for (int s = A; s < SIDES; s++) {
		ch[s] = rdma_create_event_channel();
		cr_assert_not_null(ch[s], "%s", strerror(errno));
	}
	unlink(conf[A]);
	unlink(conf[B]);
}

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void pause_ms(unsigned ms)
{
	poll(NULL, 0, (int)ms);
}

union addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* An address with its port; of IPv6 if it has a colon. */
static inline union addr addr(const char *ip, uint16_t port)
{
	union addr a = {.sa = {.sa_family = strchr(ip, ':') ? AF_INET6 : AF_INET}};

	a.in.sin_port = htons(port); /* the offset is the same */
	cr_assert_eq(inet_pton(a.sa.sa_family, ip,
			       a.sa.sa_family == AF_INET ? (void *)&a.in.sin_addr
							 : (void *)&a.in6.sin6_addr),
		     1);
	return a;
}

static inline bool has_event(struct rdma_event_channel *c, unsigned ms)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return poll(&p, 1, (int)ms) == 1;
}

static inline struct rdma_cm_event *next_event(struct rdma_event_channel *c,
					       enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	cr_assert(has_event(c, PATIENCE_MS), "no event; expected: %s", rdma_event_str(type));
	cr_assert_eq(rdma_get_cm_event(c, &e), 0);
	cr_assert_eq(e->event, type, "got: %s (%d); expected: %s", rdma_event_str(e->event),
		     e->status, rdma_event_str(type));
	return e;
}

/* The same if only the id and the status matter; returns the id. */
static inline struct rdma_cm_id *expect_status(struct rdma_event_channel *c,
					       enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e = next_event(c, type);
	struct rdma_cm_id *id = e->id;

	cr_expect_eq(e->status, status, "%s: status %d", rdma_event_str(type), e->status);
	rdma_ack_cm_event(e);
	return id;
}

static inline struct rdma_cm_id *expect(struct rdma_event_channel *c, enum rdma_cm_event_type type)
{
	return expect_status(c, type, 0);
}

static inline struct rdma_cm_id *new_id(enum side s, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch[s], &id, NULL, ps), 0);
	return id;
}

static inline int try_bind(struct rdma_cm_id *id, const char *ip, uint16_t port)
{
	union addr a = addr(ip, port);

	return rdma_bind_addr(id, &a.sa) ? errno : 0;
}

static inline struct rdma_cm_id *listen_at(const char *ip, enum rdma_port_space ps, int backlog)
{
	struct rdma_cm_id *id = new_id(B, ps);

	cr_assert_eq(try_bind(id, ip, PORT), 0);
	cr_assert_eq(rdma_listen(id, backlog), 0);
	return id;
}

/* An id of A that has found the way to `to`. */
static inline struct rdma_cm_id *resolve(const char *to, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = new_id(A, ps);
	union addr src = addr(strchr(to, ':') ? IP6_A : IP_A, 0), dst = addr(to, PORT);

	cr_assert_eq(rdma_resolve_addr(id, &src.sa, &dst.sa, 5000), 0);
	cr_expect_eq(expect(ch[A], RDMA_CM_EVENT_ADDR_RESOLVED), id);
	cr_assert_eq(rdma_resolve_route(id, 5000), 0);
	cr_expect_eq(expect(ch[A], RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	return id;
}

static inline void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	cr_assert_eq(rdma_create_qp(id, NULL, &attr), 0, "%s", strerror(errno));
}

static inline void free_id(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

static struct rdma_conn_param param = {
	.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

/* One that gives only the number of a queue pair. */
static inline struct rdma_cm_id *connect_number(const char *to, uint32_t qpn)
{
	struct rdma_cm_id *id = resolve(to, RDMA_PS_TCP);
	struct rdma_conn_param p = param;

	p.qp_num = qpn;
	cr_assert_eq(rdma_connect(id, &p), 0, "%s", strerror(errno));
	return id;
}

/* A connection from A to B. */
struct pair {
	struct rdma_cm_id *listener, *a, *b;
};

static inline void join(struct pair *p)
{
	if (!p->listener)
		p->listener = listen_at(IP_B, RDMA_PS_TCP, 0);
	p->a = resolve(IP_B, RDMA_PS_TCP);
	make_qp(p->a);
	cr_assert_eq(rdma_connect(p->a, &param), 0);
	p->b = expect(ch[B], RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(p->b);
	cr_assert_eq(rdma_accept(p->b, &param), 0);
	cr_expect_eq(expect(ch[A], RDMA_CM_EVENT_ESTABLISHED), p->a);
	cr_expect_eq(expect(ch[B], RDMA_CM_EVENT_ESTABLISHED), p->b);
}

static inline void drop(struct pair *p)
{
	free_id(p->a);
	free_id(p->b);
	free_id(p->listener);
}

#endif
