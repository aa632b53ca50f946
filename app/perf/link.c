/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "client.h"

#define ANSWER_NS  30000000000ull
#define CONNECT_NS 60000000000ull

/* Time for the peer's part of a disconnect; after a failure the peer is likely to be dead. */
#define PART_NS	       10000000000ull
#define CLOSE_NS       3000000000ull
#define PART_FAILED_NS 500000000ull

/* CM events. */

static void never_up(struct perf_client *c, uint32_t idx)
{
	if (c->links[idx] == PERF_LINK_CONNECTING)
		c->in_transit--;
	c->links[idx] = PERF_LINK_DOWN;
}

static void link_event(struct perf_client *c, const struct perf_cm_event *e)
{
	uint32_t idx = (uint32_t)(uintptr_t)e->id->user;
	struct perf_qp *q = &c->session.qps[idx];

	switch (e->type) {
	case UROCE_CM_ESTABLISHED:
		if (c->links[idx] == PERF_LINK_CONNECTING)
			c->in_transit--;
		c->links[idx] = PERF_LINK_UP;
		q->up = true;
		if (c->session.params.mode == PERF_MODE_CONNECT)
			perf_histogram_record(&c->hist, perf_now_ns() - c->asked_ns[idx]);
		break;
	case UROCE_CM_REJECTED:
		if (c->session.params.mode == PERF_MODE_CONNECT && e->status == PERF_REJECT_NO_QP) {
			never_up(c, idx);
			c->refused++;
			break;
		}
		never_up(c, idx);
		perf_session_fail(&c->session, "queue pair %u: the server rejects it: %s", idx,
				  uroce_cm_reject_str(e->status));
		break;
	case UROCE_CM_UNREACHABLE:
		never_up(c, idx);
		perf_session_fail(&c->session, "queue pair %u: cannot connect: %s", idx,
				  perf_session_why(e->status, q->qp));
		break;
	case UROCE_CM_DISCONNECTED:
		if (c->links[idx] == PERF_LINK_CLOSING)
			c->in_transit--;
		else if (!c->session.failed)
			perf_session_fail(&c->session, "queue pair %u: the server disconnected it",
					  idx);
		c->links[idx] = PERF_LINK_DOWN;
		q->closing = true;
		break;
	default:
		break;
	}
}

static void control_event(struct perf_client *c, const struct perf_cm_event *e)
{
	struct perf_session *s = &c->session;

	switch (e->type) {
	case UROCE_CM_ESTABLISHED:
		c->control.up = true;
		break;
	case UROCE_CM_REJECTED:
		if (e->status == PERF_REJECT_NO_SERVICE)
			perf_session_fail(s,
					  "%s has no server on port %u: start it there, or name "
					  "its port with --port",
					  c->peer->text, c->o->port);
		else
			perf_session_fail(s, "the server at %s rejects the connection: %s%s",
					  c->peer->text, uroce_cm_reject_str(e->status),
					  e->status == PERF_REJECT_CONSUMER
						  ? "; it may be of another version of uroce-perf"
						  : "");
		break;
	case UROCE_CM_UNREACHABLE:
		perf_session_fail(s,
				  "no server answers at %s port %u (%s): is it running, with this "
				  "address in its configuration?",
				  c->peer->text, c->o->port, strerror(e->status));
		break;
	case UROCE_CM_DISCONNECTED:
		if (c->control.up && !s->failed)
			perf_session_fail(s, "the server closed the control connection");
		c->control.up = false;
		c->control.dead = true;
		break;
	default:
		break;
	}
}

/* The user value of a data connection's id: its client and its queue pair. */
static void *user_of(const struct perf_client *c, uint32_t idx)
{
	return (void *)((uintptr_t)c->number << 32 | idx);
}

static void cm_events(struct perf_client *c)
{
	struct perf_cm_event e;

	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		/* An endpoint's events come by its first one. */
		while (k->number % k->o->peers_cnt == 0 && perf_endpoint_event(k->ep, 0, &e)) {
			struct perf_client *of = k;

			while (of < k + k->o->peers_cnt && e.id != of->control.id)
				of++;
			if (of < k + k->o->peers_cnt) {
				control_event(of, &e);
				continue;
			}
			of = &c->all[(uintptr_t)e.id->user >> 32];
			if (of->session_open)
				link_event(of, &e);
		}
	}
}

static bool poll_control(struct perf_client *c, struct perf_received *r)
{
	if (perf_control_poll(&c->control, r)) {
		if (r->header.kind != PERF_MSG_ERROR)
			return true;
		r->payload[sizeof(r->payload) - 1] = '\0';
		perf_session_fail(&c->session, "the server failed: %s", (char *)r->payload);
	}
	if (c->control.dead && !c->session.failed)
		perf_session_fail(&c->session,
				  "the server is gone: the control connection ended with: %s",
				  uroce_wc_status_str(c->control.why));
	return false;
}

void perf_link_events(struct perf_client *c)
{
	static struct perf_received r;

	cm_events(c);
	for (struct perf_client *k = c->all; k < perf_client_end(c); k++) {
		if (k->control.id != NULL)
			poll_control(k, &r);
	}
}

bool perf_link_ask(struct perf_client *c, enum perf_message kind, const void *payload, size_t bytes,
		   enum perf_message answer, struct perf_received *r)
{
	uint64_t until = perf_now_ns() + ANSWER_NS;
	uint32_t seq = ++c->seq;
	bool asked = false;

	while (perf_client_alive(c)) {
		if (!asked)
			asked = perf_control_send(&c->control, kind, seq, payload, bytes);
		cm_events(c);
		if (poll_control(c, r) && r->header.seq == seq) {
			if (r->header.kind == answer)
				return true;
			perf_session_fail(&c->session, "the server's answer is malformed");
			return false;
		}
		if (perf_client_step(c) > 0)
			until = perf_now_ns() + ANSWER_NS;
		if (perf_now_ns() > until)
			perf_session_fail(&c->session, "the server does not answer");
	}
	return false;
}

/* Control connection. */

bool perf_link_open(struct perf_client *c)
{
	struct perf_hello hello = {.kind = PERF_HELLO_CONTROL, .session = c->session_id};
	uint8_t data[PERF_HELLO_BYTES];
	struct uroce_conn_param param = perf_conn_param(&hello, data, NULL);
	uint64_t until = perf_now_ns() + CONNECT_NS;
	int rc;

	param.timeout = (uint8_t)c->o->timeout;
	param.retry_count = (uint8_t)c->o->retry;
	if (!perf_control_create(&c->control, c->ep) ||
	    uroce_cm_create_id(c->ep->channel, NULL, &c->control.id) != 0) {
		perf_session_fail(&c->session, "cannot create the control connection: %s",
				  strerror(errno));
		return false;
	}
	/* A server's port answers before the server listens. */
	uroce_cm_set_patience(c->control.id, 2);
	rc = uroce_cm_connect(c->control.id, (const struct sockaddr *)&c->peer->addr, c->control.qp,
			      &param);
	if (rc == EHOSTUNREACH) {
		perf_session_fail(
			&c->session,
			"no host answers for the address %s: start the server first, and "
			"check --peer, the addresses and routes of both sides, and the link",
			c->peer->text);
		return false;
	}
	if (rc != 0) {
		perf_session_fail(&c->session, "cannot connect to %s: %s", c->peer->text,
				  strerror(rc));
		return false;
	}
	if (!perf_control_arm(&c->control)) {
		perf_session_fail(&c->session, "cannot post receives: %s", strerror(errno));
		return false;
	}
	while (!c->control.up && perf_client_alive(c) && perf_interrupted == 0) {
		perf_link_events(c);
		if (perf_now_ns() > until)
			perf_session_fail(&c->session, "no server answers at %s port %u",
					  c->peer->text, c->o->port);
	}
	return c->control.up && perf_client_alive(c);
}

void perf_link_close(struct perf_client *c)
{
	uint64_t until = perf_now_ns() + (c->session.failed ? PART_FAILED_NS : CLOSE_NS);

	if (c->control.id != NULL && c->control.up && !c->control.dead) {
		c->control.up = false;
		if (uroce_cm_disconnect(c->control.id) == 0) {
			while (!c->control.dead && perf_now_ns() < until)
				cm_events(c);
		}
	}
	perf_control_destroy(&c->control);
}

/* Data connections. */

static struct perf_share share_of(const struct perf_client *c, uint32_t idx)
{
	return (struct perf_share){perf_list_at(&c->o->sl, idx), perf_list_at(&c->o->priority, idx),
				   perf_list_at(&c->o->weight, idx)};
}

bool perf_link_connect(struct perf_client *c, uint32_t idx, uint32_t gen)
{
	struct perf_hello hello = {.kind = PERF_HELLO_DATA,
				   .session = c->session_id,
				   .idx = idx,
				   .gen = gen,
				   .share = share_of(c, idx)};
	struct perf_session *s = &c->session;
	uint8_t data[PERF_HELLO_BYTES];
	struct uroce_conn_param param = perf_conn_param(&hello, data, &s->params);
	struct perf_qp *q = &s->qps[idx];
	int rc;

	param.srq = false;
	if (!perf_session_open_qp(s, idx, gen, &hello.share))
		return false;
	rc = uroce_cm_create_id(c->ep->channel, user_of(c, idx), &q->id);
	c->asked_ns[idx] = perf_now_ns();
	if (rc == 0 && uroce_cm_set_service(q->id, hello.share.sl, 0) != 0) {
		perf_session_fail(s,
				  "SL %u has no service here: give its VL, [qos] sl2vl, a weight "
				  "in vl_high or vl_low",
				  hello.share.sl);
		return false;
	}
	if (rc == 0)
		rc = uroce_cm_connect(q->id, (const struct sockaddr *)&c->peer->addr, q->qp,
				      &param);
	if (rc != 0) {
		perf_session_fail(s, "queue pair %u: cannot connect: %s", idx, strerror(rc));
		return false;
	}
	c->links[idx] = PERF_LINK_CONNECTING;
	c->in_transit++;
	return s->params.mode == PERF_MODE_CONNECT || perf_session_arm_qp(s, idx);
}

void perf_link_disconnect(struct perf_client *c, uint32_t idx)
{
	struct perf_qp *q = &c->session.qps[idx];

	q->closing = true;
	q->up = false;
	c->links[idx] = PERF_LINK_CLOSING;
	c->in_transit++;
	if (uroce_cm_disconnect(q->id) != 0) {
		c->links[idx] = PERF_LINK_DOWN;
		c->in_transit--;
	}
}

static bool pair_ud(struct perf_client *c, uint32_t idx)
{
	const struct sockaddr_storage *local = &c->control.id->local;
	static struct perf_received r;
	uint8_t message[sizeof(struct perf_pair)];
	struct perf_share share = share_of(c, idx);
	struct perf_pair pair;
	size_t bytes;

	if (!perf_session_open_qp(&c->session, idx, 0, &share) ||
	    !perf_session_pair_local(&c->session, idx, &pair, local))
		return false;
	bytes = perf_pair_encode(message, &pair);
	if (!perf_link_ask(c, PERF_MSG_PAIR, message, bytes, PERF_MSG_PAIR, &r))
		return false;
	if (!perf_pair_decode(r.payload, r.header.bytes, &pair) || pair.idx != idx) {
		perf_session_fail(&c->session, "the server's answer is malformed");
		return false;
	}
	return perf_session_pair_remote(&c->session, &pair, local);
}

bool perf_link_connect_all(struct perf_client *c)
{
	struct perf_session *s = &c->session;
	uint64_t until = perf_now_ns() + CONNECT_NS;

	for (uint32_t i = 0; i < s->params.qps && perf_client_alive(c); i++) {
		if (s->params.type == PERF_TYPE_UD) {
			if (!pair_ud(c, i))
				return false;
			continue;
		}
		while (c->in_transit >= PERF_LINK_TRANSIT_MAX && perf_client_alive(c))
			perf_link_events(c);
		if (!perf_client_alive(c) || !perf_link_connect(c, i, 0))
			return false;
	}
	while (c->in_transit > 0 && perf_client_alive(c) && perf_interrupted == 0) {
		perf_link_events(c);
		if (perf_now_ns() > until)
			perf_session_fail(s,
					  "%u of %llu queue pairs could not be connected in time",
					  c->in_transit, (unsigned long long)s->params.qps);
	}
	return perf_client_alive(c) && c->in_transit == 0;
}

/* Waits until at most `left` are in transit; gives up when the peer stays silent for too long. */
static bool settle(struct perf_client *c, uint32_t left)
{
	uint64_t patience = c->session.failed ? PART_FAILED_NS : PART_NS;
	uint64_t until = perf_now_ns() + patience;
	uint32_t last = c->in_transit;

	while (c->in_transit > left && !c->control.dead && perf_now_ns() < until) {
		if (c->session.failed)
			perf_link_events(
				c); /* these may report that the control connection is dead */
		else
			cm_events(c);
		if (c->in_transit < last)
			until = perf_now_ns() + patience;
		last = c->in_transit;
	}
	return c->in_transit <= left;
}

void perf_link_disconnect_all(struct perf_client *c)
{
	bool answers = true;

	for (uint32_t i = 0; i < c->session.params.qps && answers; i++) {
		if (c->links[i] == PERF_LINK_UP)
			perf_link_disconnect(c, i);
		answers = settle(c, PERF_LINK_TRANSIT_MAX - 1);
	}
	if (answers)
		settle(c, 0);
	c->in_transit = 0;
}
