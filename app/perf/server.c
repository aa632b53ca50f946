/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "control.h"
#include "traffic.h"

#define SEATS_MAX    32
#define HOUSEKEEPING 128 /* rounds between checks of anything but traffic */
#define IDLE_MS	     100
#define DRAIN_NS     20000000000ull
#define SETTLE_NS    15000000000ull

/* One client: its control connection and the run under way. */
struct seat {
	bool used;
	uint64_t session_id;
	struct perf_control control;
	char peer[INET6_ADDRSTRLEN];
	struct perf_session session;
	bool running;				   /* `session` exists */
	bool started;				   /* traffic flows */
	bool error_sent;			   /* the client knows that the session failed */
	bool gone;				   /* to be freed */
	uint32_t start_seq, quiet_seq, finish_seq; /* requests to be answered; 0: none */
	uint64_t pending_ns;			   /* since when */
	struct perf_objects before;
};

struct server {
	const struct perf_options *o;
	struct perf_endpoint *ep;
	struct uroce_cm_id *listener;
	struct seat *seats[SEATS_MAX];
	unsigned seated;
	struct perf_objects idle; /* what exists without a client */
	bool error, served;
	struct perf_srq *srq; /* with --shared-srq: of all sessions; NULL: none uses it */
	struct perf_live live;
};

/* One for each endpoint. */
struct servers {
	struct server v[PERF_CONFIGS_MAX];
	unsigned cnt;
};

static void end_session(struct seat *seat)
{
	if (seat->running)
		perf_session_destroy(&seat->session);
	seat->running = seat->started = false;
	seat->start_seq = seat->quiet_seq = seat->finish_seq = 0;
}

static void warn_of_leaks(struct server *v)
{
	struct perf_objects now;

	perf_endpoint_objects(v->ep, &now);
	/* Queue pairs in time-wait are no leak. */
	now.qps_time_wait = v->idle.qps_time_wait;
	now.cm_connections = v->idle.cm_connections;
#define X(name, unit, help)                                                                        \
	if (now.name != v->idle.name)                                                              \
		fprintf(stderr,                                                                    \
			"uroce-perf: warning: " #name " before the client %llu, after it %llu\n",  \
			(unsigned long long)v->idle.name, (unsigned long long)now.name);
	UROCE_OBJECTS(X)
#undef X
}

static void free_seat(struct server *v, unsigned i)
{
	struct seat *seat = v->seats[i];

	if (seat->session.errors != 0)
		v->error = true;
	end_session(seat);
	perf_control_destroy(&seat->control);
	fprintf(stderr, "client %s disconnected\n", seat->peer);
	free(seat);
	v->seats[i] = NULL;
	v->served = true;
	if (--v->seated == 0)
		warn_of_leaks(v);
}

/* Answers. */

static void answer(struct seat *seat, enum perf_message kind, uint32_t seq, const void *payload,
		   size_t bytes)
{
	if (!perf_control_send(&seat->control, kind, seq, payload, bytes) && !seat->control.dead)
		perf_session_fail(&seat->session, "an answer could not be sent");
}

static void on_params(struct server *v, struct seat *seat, const struct perf_received *r)
{
	struct perf_session *s = &seat->session;
	uint8_t message[sizeof(struct perf_ready)];
	struct perf_params params;
	struct perf_ready ready;

	end_session(seat);
	memset(s, 0, sizeof(*s));
	seat->error_sent = false;
	if (!perf_params_decode(r->payload, r->header.bytes, &params) ||
	    !perf_params_valid(&params)) {
		perf_session_fail(s, "the client's parameters are out of range");
		return;
	}
	seat->running = true;
	if (!perf_session_create(s, v->ep, &params, true, v->o->shared_srq ? &v->srq : NULL))
		return;
	/* With the run's own queues and memory, which still exist when the comparison is made. */
	perf_endpoint_objects(v->ep, &seat->before);
	s->remote_addr = params.addr;
	s->remote_rkey = (uint32_t)params.rkey;
	ready = (struct perf_ready){.addr = (uintptr_t)s->mem, .rkey = s->mr ? s->mr->rkey : 0};
	answer(seat, PERF_MSG_READY, r->header.seq, message, perf_ready_encode(message, &ready));
}

static void on_pair(struct seat *seat, const struct perf_received *r)
{
	const struct sockaddr_storage *local = &seat->control.id->local;
	struct perf_session *s = &seat->session;
	uint8_t message[sizeof(struct perf_pair)];
	struct perf_pair theirs, ours;
	struct perf_share share;

	if (!perf_pair_decode(r->payload, r->header.bytes, &theirs) ||
	    theirs.idx >= s->params.qps || s->params.type != PERF_TYPE_UD || theirs.sl > 15) {
		perf_session_fail(s, "the client's queue pair is out of range");
		return;
	}
	perf_session_close_qp(s, (uint32_t)theirs.idx);
	share = (struct perf_share){(uint8_t)theirs.sl, (uint8_t)theirs.priority,
				    (uint8_t)theirs.weight};
	if (perf_session_open_qp(s, (uint32_t)theirs.idx, 0, &share) &&
	    perf_session_pair_local(s, (uint32_t)theirs.idx, &ours, local) &&
	    perf_session_pair_remote(s, &theirs, local))
		answer(seat, PERF_MSG_PAIR, r->header.seq, message,
		       perf_pair_encode(message, &ours));
}

static void on_ends(struct seat *seat, const struct perf_received *r)
{
	struct perf_session *s = &seat->session;
	static uint8_t message[PERF_MSG_BYTES];
	struct perf_end theirs, ours;
	size_t bytes = 0;

	/* By now all that has been acknowledged to the client is in the completion queues. */
	for (unsigned dry = 0; dry < 3 && !s->failed; dry++) {
		if (perf_traffic_poll(s) > 0)
			dry = 0;
	}
	for (size_t at = 0; at < r->header.bytes; at += sizeof(theirs)) {
		if (!perf_end_decode(r->payload + at, r->header.bytes - at, &theirs) ||
		    theirs.idx >= s->params.qps) {
			perf_session_fail(s, "the client's message counts are out of range");
			return;
		}
		perf_checked_end(s, &theirs);
		ours = (struct perf_end){.idx = theirs.idx,
					 .messages = s->qps[theirs.idx].tx_next,
					 .cas = s->qps[theirs.idx].cas_next};
		bytes += perf_end_encode(message + bytes, &ours);
	}
	answer(seat, PERF_MSG_ENDS, r->header.seq, message, bytes);
}

static void send_result(struct server *v, struct seat *seat)
{
	static uint8_t message[PERF_MSG_BYTES];
	struct perf_result result;

	perf_session_end(&seat->session);
	perf_session_result(&seat->session, &result);
	result.before = seat->before;
	perf_endpoint_objects(v->ep, &result.after);
	answer(seat, PERF_MSG_RESULT, seat->finish_seq, message,
	       perf_result_encode(message, &result));
	seat->finish_seq = 0;
}

static void on_message(struct server *v, struct seat *seat, const struct perf_received *r)
{
	struct perf_session *s = &seat->session;
	struct perf_result theirs;

	if (r->header.kind == PERF_MSG_PARAMS) {
		on_params(v, seat, r);
		return;
	}
	if (!seat->running || s->failed) {
		perf_session_fail(s, "there is no run for the client's message");
		return;
	}
	seat->pending_ns = perf_now_ns();
	switch (r->header.kind) {
	case PERF_MSG_PAIR:
		on_pair(seat, r);
		break;
	case PERF_MSG_START:
		seat->start_seq = r->header.seq;
		break;
	case PERF_MSG_MARK:
		perf_session_mark(s);
		answer(seat, PERF_MSG_OK, r->header.seq, NULL, 0);
		break;
	case PERF_MSG_QUIET:
		perf_traffic_quiet(s);
		perf_session_end(s);
		seat->quiet_seq = r->header.seq;
		break;
	case PERF_MSG_ENDS:
		on_ends(seat, r);
		break;
	case PERF_MSG_FINISH:
		if (perf_result_decode(r->payload, r->header.bytes, &theirs))
			perf_checked_fetch_adds(s, theirs.fetch_adds);
		seat->finish_seq = r->header.seq;
		break;
	default:
		perf_session_fail(s, "the client's message is malformed");
	}
}

static bool all_up(const struct perf_session *s)
{
	for (uint32_t i = 0; i < s->params.qps; i++) {
		if (!s->qps[i].up)
			return false;
	}
	return true;
}

/* Connect mode compares objects: all connections must have been torn down. */
static bool is_quiet(struct server *v, const struct seat *seat)
{
	struct perf_objects now;

	if (seat->session.params.mode != PERF_MODE_CONNECT)
		return true;
	perf_endpoint_objects(v->ep, &now);
	return now.qps <= seat->before.qps && now.qps_time_wait <= seat->before.qps_time_wait &&
	       now.cm_ids <= seat->before.cm_ids &&
	       now.cm_connections <= seat->before.cm_connections;
}

static void send_pending_answers(struct server *v, struct seat *seat)
{
	struct perf_session *s = &seat->session;
	uint64_t waited = perf_now_ns() - seat->pending_ns;

	if (seat->start_seq != 0 && all_up(s)) {
		perf_traffic_start(s, s->params.bidir && s->params.mode != PERF_MODE_LAT);
		seat->started = true;
		perf_session_mark(s);
		answer(seat, PERF_MSG_OK, seat->start_seq, NULL, 0);
		seat->start_seq = 0;
	}
	if (seat->quiet_seq != 0 && perf_traffic_drained(s)) {
		answer(seat, PERF_MSG_OK, seat->quiet_seq, NULL, 0);
		seat->quiet_seq = 0;
	}
	if (seat->finish_seq != 0 && (is_quiet(v, seat) || waited > SETTLE_NS))
		send_result(v, seat);
	if ((seat->start_seq != 0 || seat->quiet_seq != 0) && waited > DRAIN_NS)
		perf_session_fail(s, "%s",
				  seat->start_seq != 0
					  ? "not all queue pairs were connected in time"
					  : "work requests are outstanding long after the end");
}

/* Connections. */

static struct seat *seat_of_session(struct server *v, uint64_t session_id)
{
	for (unsigned i = 0; i < SEATS_MAX; i++) {
		if (v->seats[i] != NULL && v->seats[i]->session_id == session_id)
			return v->seats[i];
	}
	return NULL;
}

static bool seat_client(struct server *v, struct uroce_cm_id *id, const struct perf_hello *hello)
{
	struct uroce_conn_param param = perf_conn_param(NULL, NULL, NULL);
	struct seat *seat;
	unsigned i = 0;

	while (i < SEATS_MAX && v->seats[i] != NULL)
		i++;
	if (i == SEATS_MAX || seat_of_session(v, hello->session) != NULL ||
	    (seat = calloc(1, sizeof(*seat))) == NULL)
		return false;
	seat->session_id = hello->session;
	if (id->peer.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&id->peer)->sin6_addr, seat->peer,
			  sizeof(seat->peer));
	else
		inet_ntop(AF_INET, &((struct sockaddr_in *)&id->peer)->sin_addr, seat->peer,
			  sizeof(seat->peer));
	if (!perf_control_create(&seat->control, v->ep) ||
	    (errno = uroce_cm_accept(id, seat->control.qp, &param)) != 0 ||
	    !perf_control_arm(&seat->control)) {
		fprintf(stderr, "uroce-perf: cannot accept client %s: %s\n", seat->peer,
			strerror(errno));
		perf_control_destroy(&seat->control);
		free(seat);
		return false;
	}
	seat->control.id = id;
	id->user = NULL;
	v->seats[i] = seat;
	v->seated++;
	fprintf(stderr, "client %s connected\n", seat->peer);
	return true;
}

/* Closed queue pairs hold their slots through time-wait: with many set-ups in a row they run out.
 */
static bool qp_available(const struct server *v)
{
	struct perf_objects now;

	perf_endpoint_objects(v->ep, &now);
	return now.qps + now.qps_time_wait < (uint64_t)v->ep->device.max_qp;
}

static bool accept_data(struct seat *seat, struct uroce_cm_id *id, const struct perf_hello *hello)
{
	struct perf_session *s = &seat->session;
	struct uroce_conn_param param = perf_conn_param(NULL, NULL, &s->params);
	int rc;

	if (!seat->running || s->failed || hello->idx >= s->params.qps || hello->share.sl > 15)
		return false;
	/* The client has a new one, so the old one is dead whatever its state here. */
	perf_session_close_qp(s, hello->idx);
	if (!perf_session_open_qp(s, hello->idx, hello->gen, &hello->share))
		return false;
	param.srq = s->srq != NULL;
	rc = uroce_cm_accept(id, s->qps[hello->idx].qp, &param);
	if (rc != 0) {
		perf_session_fail(s, "cannot accept queue pair %u: %s", hello->idx,
				  perf_session_why(rc, s->qps[hello->idx].qp));
		perf_session_close_qp(s, hello->idx);
		return false;
	}
	s->qps[hello->idx].id = id;
	id->user = &s->qps[hello->idx];
	return s->params.mode == PERF_MODE_CONNECT || perf_session_arm_qp(s, hello->idx);
}

static void on_request(struct server *v, const struct perf_cm_event *e)
{
	uint16_t reason = PERF_REJECT_CONSUMER;
	struct perf_hello hello;
	struct seat *seat;
	bool taken = false;

	if (perf_hello_decode(e->private_data, e->private_data_bytes, &hello)) {
		seat = seat_of_session(v, hello.session);
		if (hello.kind == PERF_HELLO_CONTROL)
			taken = seat_client(v, e->id, &hello);
		else if (seat != NULL && seat->session.params.mode == PERF_MODE_CONNECT &&
			 !qp_available(v))
			reason = PERF_REJECT_NO_QP;
		else if (seat != NULL)
			taken = accept_data(seat, e->id, &hello);
		/* An id that belongs to a queue pair is destroyed with it. */
		if (!taken && seat != NULL && seat->running &&
		    hello.idx < seat->session.params.qps &&
		    seat->session.qps[hello.idx].id == e->id)
			return;
	}
	if (!taken) {
		uroce_cm_reject(e->id, reason, NULL, 0);
		uroce_cm_destroy_id(e->id);
	}
}

static void on_link(struct seat *seat, struct perf_qp *q, const struct perf_cm_event *e)
{
	if (e->type == UROCE_CM_ESTABLISHED) {
		q->up = true;
		if (seat->session.sending)
			perf_traffic_kick(&seat->session, q);
	} else if (e->type == UROCE_CM_DISCONNECTED || e->type == UROCE_CM_UNREACHABLE ||
		   e->type == UROCE_CM_REJECTED) {
		perf_session_close_qp(&seat->session, q->idx);
	}
}

static void on_event(struct server *v, const struct perf_cm_event *e)
{
	if (e->type == UROCE_CM_CONNECT_REQUEST) {
		on_request(v, e);
		return;
	}
	for (unsigned i = 0; i < SEATS_MAX; i++) {
		struct seat *seat = v->seats[i];
		struct perf_qp *q = e->id->user;

		if (seat == NULL)
			continue;
		if (e->id == seat->control.id) {
			if (e->type == UROCE_CM_ESTABLISHED)
				seat->control.up = true;
			else if (e->type != UROCE_CM_TIMEWAIT_EXIT)
				seat->gone = true;
			return;
		}
		if (seat->running && q != NULL && q >= seat->session.qps &&
		    q < seat->session.qps + seat->session.params.qps && q->id == e->id) {
			on_link(seat, q, e);
			return;
		}
	}
}

static unsigned seat_round(struct server *v, struct seat *seat, bool look)
{
	struct perf_session *s = &seat->session;
	static struct perf_received r;
	unsigned n = 0;

	if (seat->started && !s->failed)
		n = perf_traffic_step(s);
	if (n > 0 && seat->quiet_seq != 0)
		seat->pending_ns = perf_now_ns();
	if (!look && n > 0)
		return n;
	while (!seat->gone && perf_control_poll(&seat->control, &r))
		on_message(v, seat, &r);
	if (seat->control.dead)
		seat->gone = true;
	if (seat->running && !s->failed)
		send_pending_answers(v, seat);
	if (s->failed && !seat->error_sent) {
		seat->error_sent = true;
		perf_control_send(&seat->control, PERF_MSG_ERROR, 0, s->text, sizeof(s->text));
	}
	return n;
}

/* One round of an endpoint; returns how much it did. n: the same for its last round. */
static unsigned server_round(struct server *v, unsigned n, bool look, int wait_ms)
{
	struct perf_cm_event e;

	look |= n == 0 || v->seated == 0;
	if (look && perf_endpoint_event(v->ep, wait_ms, &e)) {
		do {
			on_event(v, &e);
		} while (perf_endpoint_event(v->ep, 0, &e));
	}
	if (look)
		perf_live_update(&v->live);
	n = 0;
	for (unsigned i = 0; i < SEATS_MAX; i++) {
		struct seat *seat = v->seats[i];

		if (seat == NULL)
			continue;
		n += seat_round(v, seat, look);
		if (seat->gone)
			free_seat(v, i);
		else if (n == 0 && v->seated == 1 && v->o->configs_cnt == 1 && seat->started &&
			 seat->session.params.events && !seat->session.failed)
			perf_traffic_sleep(&seat->session);
	}
	return n;
}

static void serve(struct servers *all)
{
	const struct perf_options *o = all->v[0].o;
	unsigned round = 0, n[PERF_CONFIGS_MAX] = {0}, seated = 0;
	bool served = false;

	perf_live_start(&all->v[0].live, all->v[0].ep, o);
	while (perf_interrupted == 0 && !(o->once && served && seated == 0)) {
		bool look = ++round % HOUSEKEEPING == 0;
		int wait_ms = seated == 0 ? IDLE_MS / (int)all->cnt : 0;

		seated = 0;
		served = true;
		for (unsigned i = 0; i < all->cnt; i++) {
			n[i] = server_round(&all->v[i], n[i], look, wait_ms);
			seated += all->v[i].seated;
			served &= all->v[i].served;
		}
	}
}

static bool listen_on(struct server *v)
{
	int rc = uroce_cm_create_id(v->ep->channel, NULL, &v->listener);

	if (rc == 0)
		rc = uroce_cm_listen(v->listener, (uint16_t)v->o->port);
	if (rc != 0)
		fprintf(stderr, "uroce-perf: cannot listen on port %u: %s\n", v->o->port,
			strerror(rc));
	perf_endpoint_objects(v->ep, &v->idle);
	return rc == 0;
}

int perf_server_main(struct perf_endpoint *eps, const struct perf_options *o)
{
	static struct servers all;
	bool good = true, error = false;

	all.cnt = o->configs_cnt;
	for (unsigned i = 0; i < all.cnt && good; i++) {
		all.v[i] = (struct server){.o = o, .ep = &eps[i]};
		good = listen_on(&all.v[i]);
	}
	if (good) {
		fprintf(stderr, "listening on port %u\n", o->port);
		serve(&all);
	}
	for (unsigned i = 0; i < all.cnt; i++) {
		struct server *v = &all.v[i];

		for (unsigned k = 0; k < SEATS_MAX; k++) {
			if (v->seats[k] != NULL)
				free_seat(v, k);
		}
		if (v->listener != NULL)
			uroce_cm_destroy_id(v->listener);
		error |= v->error;
	}
	return !good || (o->once && error) ? PERF_EXIT_ERROR : PERF_EXIT_OK;
}
