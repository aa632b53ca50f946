/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_CM_PAIR_H
#define UR_TEST_CM_PAIR_H

#include <stdlib.h>

#include <criterion/criterion.h>

#include "cm/cm.h"

/*
 * Two connection managers, A and B, joined by a pipe in virtual time. Each MAD takes a millisecond.
 * The n-th MAD is lost if bit n of `drop` is set, and arrives twice if bit n of `twice` is set.
 * With `closed`, only the ports of one way in two get through in each direction.
 * Both sides count events and answer them according to their flags. Both are validated after every
 * step.
 */
#define MS 1000000ull

enum { A, B };

struct side {
	struct ur_cm *cm;
	void *mem;
	struct pair *pair;
	int side;
	struct ur_gid gid;

	/* behaviour of the application */
	bool accepts, readies, rejects;
	bool ends_when_up; /* A disconnects once it is established */
	bool frees;	   /* ids are destroyed in callbacks */
	uint8_t resources, depth;
	const struct ur_offer *answer; /* sent in REPs */

	/* what the application saw */
	unsigned n[UR_CM_EV_CNT];
	unsigned finals;
	struct ur_cm_id last[UR_CM_EV_CNT]; /* id of the last event of each kind */
	bool timed_out;
	uint16_t rej_reason;
	uint8_t rej_about;
	struct ur_cm_req req;
	struct ur_cm_rep rep;
	struct ur_cm_sidr_rep sidr_rep;
	struct ur_rdma_ip ip;
	bool has_ip;
	uint8_t private_data[UR_CM_PAIR_PRIVATE];
	uint8_t private_len;
	struct ur_offer offer;
	bool has_offer;
	void *ctx;
	uint8_t marks[16]; /* traffic class by SL, for a service without a tclass */
};

struct flight {
	int to;
	uint64_t at;
	uint16_t sport;
	uint8_t mad[UR_MAD_BYTES];
};

#define PIPE_MAX 4096

struct pair {
	struct side s[2];
	uint64_t now;
	unsigned inits; /* gives every CM another seed */
	uint64_t drop, twice;
	bool closed;
	uint16_t sport;		   /* of the path of the next connect; 0: PAIR_SPORT */
	uint8_t open[2];	   /* closed: the lowest bit of ports that get through, by sender */
	unsigned sent;		   /* MADs sent by both */
	unsigned sent_attr[2][16]; /* by sender and attribute id - 0x10 */
	uint8_t last_mad[2][16][UR_MAD_BYTES];
	uint8_t last_mark[2][16];
	struct flight pipe[PIPE_MAX];
	unsigned head, tail; /* [head, tail) in flight, in order of arrival */
};

#define PAIR_SPORT 0xc001

/* In these tests a path is all zeros except for its traffic class, where a MAC address would begin, and its UDP source port. */
static inline struct ur_path pair_path(uint16_t sport)
{
	struct ur_path path = {.len = UR_PATH_MIN_BYTES};

	ur_path_set_sport(&path, sport);
	return path;
}

static inline struct ur_cm_src pair_src_by(const struct pair *p, int to, uint16_t sport)
{
	return (struct ur_cm_src){.sgid = p->s[!to].gid,
				  .dgid = p->s[to].gid,
				  .sqpn = {1},
				  .path = pair_path(ur_path_back_sport(sport))};
}

static inline struct ur_cm_src pair_src(const struct pair *p, int to)
{
	return pair_src_by(p, to, PAIR_SPORT);
}

static inline void side_accept(struct side *s, struct ur_cm_id id)
{
	struct ur_cm_accept_attr attr = {.qpn = {0x200 + s->n[UR_CM_EV_REQ_RCVD]},
					 .rq_psn = {0xb0b},
					 .rnr_retry = 7,
					 .responder_resources = s->resources,
					 .initiator_depth = s->depth,
					 .private_data = "rep",
					 .private_len = 3,
					 .offer = s->answer};

	cr_assert_eq(ur_cm_accept(s->cm, id, &attr, s->pair->now), 0);
}

static inline void side_sink(void *arg, const struct ur_cm_event *ev)
{
	struct side *s = arg;
	struct pair *p = s->pair;

	s->n[ev->type]++;
	s->finals += ev->final;
	s->last[ev->type] = ev->id;
	s->ctx = ev->ctx;
	s->private_len = ev->private_len;
	if (ev->offer) {
		s->has_offer = true;
		s->offer = *ev->offer;
	}
	if (ev->private_len)
		memcpy(s->private_data, ev->private_data, ev->private_len);
	cr_assert_eq(ur_cm_state(s->cm, ev->id) == UR_CM_ST_FREE, ev->final);
	switch (ev->type) {
	case UR_CM_EV_REQ_RCVD:
		s->req = *ev->req;
		s->has_ip = ev->ip;
		if (ev->ip)
			s->ip = *ev->ip;
		if (s->frees)
			cr_assert_eq(ur_cm_destroy(s->cm, ev->id, p->now), 0);
		else if (s->accepts)
			side_accept(s, ev->id);
		else if (s->rejects)
			cr_assert_eq(
				ur_cm_reject(s->cm, ev->id, UR_CM_REJ_CONSUMER, "no", 2, p->now),
				0);
		break;
	case UR_CM_EV_REP_RCVD:
		s->rep = *ev->rep;
		if (s->frees)
			cr_assert_eq(ur_cm_destroy(s->cm, ev->id, p->now), 0);
		else if (s->readies)
			cr_assert_eq(ur_cm_rtu(s->cm, ev->id, "rtu", 3, p->now), 0);
		break;
	case UR_CM_EV_ESTABLISHED:
		if (s->ends_when_up)
			cr_assert_eq(ur_cm_disconnect(p->s[!s->side].cm,
						      p->s[!s->side].last[UR_CM_EV_REP_RCVD], "bye",
						      3, p->now),
				     0);
		break;
	case UR_CM_EV_REJ_RCVD:
		s->rej_reason = ev->rej->reason;
		s->rej_about = ev->rej->about;
		break;
	case UR_CM_EV_DISCONNECTED:
		s->timed_out = ev->timed_out;
		break;
	case UR_CM_EV_SIDR_REP_RCVD:
		s->sidr_rep = *ev->sidr_rep;
		break;
	default:
		break;
	}
}

static inline void side_set_dscp(void *arg, const struct ur_cm_service *service,
				 struct ur_path *path)
{
	const struct side *s = arg;

	path->hdr[0] = service->tclass ? service->tclass : s->marks[service->sl];
}

static inline void side_init(struct pair *p, int side, const struct ur_cm_limits *limits)
{
	struct side *s = &p->s[side];
	struct ur_cm_attr attr = {.ca_guid = 0x5054000000990001ull + (unsigned)side,
				  .seed = 0x1234 + p->inits,
				  .id_key = 0x5678 + p->inits++,
				  .timewait_ns = 1000 * MS,
				  .sink = side_sink,
				  .sink_ctx = s,
				  .set_dscp = side_set_dscp};

	s->pair = p;
	s->side = side;
	s->accepts = s->readies = true;
	s->resources = s->depth = 255;
	s->gid = ur_gid_from_ipv4(0x0a630001u + (unsigned)side);
	free(s->mem);
	s->mem = aligned_alloc(16, (ur_cm_size(limits) + 15) / 16 * 16);
	s->cm = ur_cm_init(s->mem, limits, &attr);
}

/* Service ids, one of plain IB CM and one of the RDMA IP CM. B listens to both. */
#define SERVICE	   0x0123456789abcdefull
#define IP_SERVICE 0x0000000001061c06ull

static inline struct pair *pair_new(uint32_t max_ids)
{
	struct ur_cm_limits limits = {.max_ids = max_ids,
				      .max_listeners = 8,
				      .max_pending = max_ids,
				      .max_tx = max_ids + 16};
	struct pair *p = calloc(1, sizeof(*p));

	side_init(p, A, &limits);
	side_init(p, B, &limits);
	p->now = 1000 * MS;
	for (enum ur_cm_kind kind = 0; kind < UR_CM_KIND_CNT; kind++) {
		cr_assert_eq(ur_cm_listen(p->s[B].cm, kind, SERVICE, p), 0);
		cr_assert_eq(ur_cm_listen(p->s[B].cm, kind, IP_SERVICE, p), 0);
	}
	return p;
}

static inline void pair_free(struct pair *p)
{
	free(p->s[A].mem);
	free(p->s[B].mem);
	free(p);
}

static inline void pair_put(struct pair *p, int to, uint16_t sport, const uint8_t mad[UR_MAD_BYTES])
{
	struct flight *f = &p->pipe[p->tail % PIPE_MAX];

	cr_assert_lt(p->tail - p->head, PIPE_MAX);
	p->tail++;
	f->to = to;
	f->at = p->now + MS;
	f->sport = sport;
	memcpy(f->mad, mad, UR_MAD_BYTES);
}

static inline void pair_fetch(struct pair *p, int from)
{
	struct ur_cm_out out[4];
	size_t n;

	while ((n = ur_cm_output(p->s[from].cm, out, 4, p->now))) {
		for (size_t i = 0; i < n; i++) {
			unsigned bit = p->sent++, attr = out[i].mad[17] & 15;
			uint16_t sport = ur_path_own_sport(out[i].path);

			cr_assert_eq(out[i].dest_qpn.v, 1);
			p->sent_attr[from][attr]++;
			memcpy(p->last_mad[from][attr], out[i].mad, UR_MAD_BYTES);
			p->last_mark[from][attr] = out[i].path->hdr[0];
			if ((bit < 64 && p->drop >> bit & 1) ||
			    (p->closed && (sport & 1) != p->open[from]))
				continue;
			pair_put(p, !from, sport, out[i].mad);
			if (bit < 64 && p->twice >> bit & 1)
				pair_put(p, !from, sport, out[i].mad);
		}
	}
}

static inline enum ur_drop pair_feed_by(struct pair *p, int to, uint16_t sport,
					const uint8_t mad[UR_MAD_BYTES])
{
	struct ur_cm_src src = pair_src_by(p, to, sport);
	enum ur_drop drop = ur_cm_input(p->s[to].cm, mad, &src, p->now);

	ur_cm_validate(p->s[to].cm);
	return drop;
}

static inline enum ur_drop pair_feed(struct pair *p, int to, const uint8_t mad[UR_MAD_BYTES])
{
	return pair_feed_by(p, to, PAIR_SPORT, mad);
}

/* Runs until the time `until`, or until no MAD is in flight and no timer is armed. */
static inline void pair_run(struct pair *p, uint64_t until)
{
	for (;;) {
		uint64_t next = UINT64_MAX, t;

		pair_fetch(p, A);
		pair_fetch(p, B);
		if (p->head != p->tail)
			next = p->pipe[p->head % PIPE_MAX].at;
		for (int i = A; i <= B; i++) {
			t = ur_cm_next_deadline(p->s[i].cm);
			next = t < next ? t : next;
		}
		if (next > until || next == UINT64_MAX)
			break;
		p->now = next > p->now ? next : p->now;
		if (p->head != p->tail && p->pipe[p->head % PIPE_MAX].at <= p->now) {
			struct flight *f = &p->pipe[p->head++ % PIPE_MAX];

			pair_feed_by(p, f->to, f->sport, f->mad);
			continue;
		}
		for (int i = A; i <= B; i++) {
			ur_cm_expire(p->s[i].cm, p->now);
			ur_cm_validate(p->s[i].cm);
		}
	}
	if (until != UINT64_MAX)
		p->now = until;
}

static inline void pair_pass(struct pair *p, uint64_t ns)
{
	pair_run(p, p->now + ns);
}

static inline void pair_settle(struct pair *p)
{
	pair_run(p, UINT64_MAX);
}

static inline struct ur_cm_connect_attr connect_attr(const struct pair *p, int from)
{
	return (struct ur_cm_connect_attr){.path = pair_path(p->sport ? p->sport : PAIR_SPORT),
					   .sgid = p->s[from].gid,
					   .dgid = p->s[!from].gid,
					   .service_id = SERVICE,
					   .transport = UR_CM_TRANSPORT_RC,
					   .qpn = {0x100},
					   .rq_psn = {0xa0a},
					   .pkey = 0xffff,
					   .pmtu = 3,
					   .responder_resources = 4,
					   .initiator_depth = 2,
					   .retry_cnt = 7,
					   .rnr_retry = 7,
					   .ack_timeout = 14,
					   .remote_resp_timeout = 14,
					   .local_resp_timeout = 14,
					   .max_cm_retries = 15,
					   .hop_limit = 64,
					   .private_data = "req",
					   .private_len = 3};
}

static inline struct ur_cm_id pair_connect_attr(struct pair *p, int from,
						const struct ur_cm_connect_attr *attr)
{
	struct ur_cm_id id;

	cr_assert_eq(ur_cm_connect(p->s[from].cm, &p->s[from], attr, p->now, &id), 0);
	return id;
}

static inline struct ur_cm_id pair_connect(struct pair *p)
{
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	return pair_connect_attr(p, A, &attr);
}

/* Two sides with an established connection, and its ids. */
static inline struct pair *pair_up(uint32_t max_ids, struct ur_cm_id *a, struct ur_cm_id *b)
{
	struct pair *p = pair_new(max_ids);

	*a = pair_connect(p);
	pair_pass(p, 10 * MS);
	*b = p->s[B].last[UR_CM_EV_REQ_RCVD];
	cr_assert_eq(p->s[B].n[UR_CM_EV_ESTABLISHED], 1);
	return p;
}

static inline unsigned pair_in_use(const struct pair *p)
{
	return ur_cm_ids_in_use(p->s[A].cm) + ur_cm_ids_in_use(p->s[B].cm);
}

#define SENT(p, side, name) ((p)->sent_attr[side][UR_CM_##name & 15])
#define SAW(p, side, name)  ((p)->s[side].n[UR_CM_EV_##name])

#endif
