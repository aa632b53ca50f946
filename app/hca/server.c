/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "umad/pass.h"

#define BURST 64 /* messages from one program before the next one's turn */

bool server_open(struct server *s, const char *path, struct mux *mux,
		 void (*describe)(void *arg, struct ur_umad_ca *ca), void *arg, char *err,
		 size_t cap)
{
	*s = (struct server){.listener.fd = -1, .mux = mux, .describe = describe, .arg = arg};
	TAILQ_INIT(&s->conns);
	s->room = malloc(UR_UMAD_INLINE);
	if (s->room == NULL) {
		snprintf(err, cap, "out of memory");
		return false;
	}
	if (listener_open(&s->listener, path, 0600, LISTENER_SAME_GROUP, err, cap))
		return true;
	server_close(s);
	return false;
}

static void end_conn(struct server *s, struct server_conn *c)
{
	struct server_message *m;

	if (c->program != NULL)
		mux_close(s->mux, c->program);
	while ((m = STAILQ_FIRST(&c->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->queue, link);
		free(m);
	}
	TAILQ_REMOVE(&s->conns, c, link);
	s->conns_cnt--;
	close(c->fd);
	free(c);
}

void server_close(struct server *s)
{
	while (!TAILQ_EMPTY(&s->conns))
		end_conn(s, TAILQ_FIRST(&s->conns));
	free(s->room);
	s->room = NULL;
	listener_close(&s->listener);
}

static void accept_conn(struct server *s)
{
	int fd = listener_accept(&s->listener);
	struct server_conn *c;

	if (fd < 0)
		return;
	c = s->conns_cnt < HCA_CONNECTIONS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		close(fd);
		return;
	}
	c->server = s;
	c->fd = fd;
	STAILQ_INIT(&c->queue);
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	s->conns_cnt++;
}

void server_deliver(void *program, const struct ur_umad_mad *head, const uint8_t *mad)
{
	struct server_conn *c = program;
	struct server_message *m;
	int rc;

	if (c->dead)
		return;
	if (STAILQ_EMPTY(&c->queue)) {
		rc = ur_umad_send_mad(c->fd, head, mad, MSG_DONTWAIT);
		if (rc != -EAGAIN) {
			c->dead |= rc < 0;
			return;
		}
	}
	m = c->queued < HCA_QUEUE_MAX && c->queued_bytes + head->length <= HCA_QUEUE_BYTES
		    ? malloc(sizeof(*m) + head->length)
		    : NULL;
	if (m == NULL) {
		c->server->dropped++;
		return;
	}
	memcpy(&m->head, head, sizeof(m->head));
	memcpy(m->mad, mad, head->length);
	STAILQ_INSERT_TAIL(&c->queue, m, link);
	c->queued++;
	c->queued_bytes += head->length;
}

static void flush_queue(struct server_conn *c)
{
	struct server_message *m;

	while ((m = STAILQ_FIRST(&c->queue)) != NULL) {
		int rc = ur_umad_send_mad(c->fd, &m->head, m->mad, MSG_DONTWAIT);

		if (rc == -EAGAIN)
			return;
		c->dead |= rc < 0;
		STAILQ_REMOVE_HEAD(&c->queue, link);
		c->queued--;
		c->queued_bytes -= m->head.length;
		free(m);
	}
}

static void answer(int fd, int value)
{
	const struct ur_umad_result result = {.value = value};

	(void)!send(fd, &result, sizeof(result), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve_query(struct server *s, struct server_conn *c, const struct ur_umad_query *q)
{
	struct ur_umad_ca ca = {.node_type = 0};

	if (q->version == UR_UMAD_VERSION)
		s->describe(s->arg, &ca);
	(void)!send(c->fd, &ca, q->version == UR_UMAD_VERSION ? sizeof(ca) : 0,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void serve_open(struct server *s, struct server_conn *c, const struct ur_umad_open *o)
{
	int rc = 0;

	if (o->version != UR_UMAD_VERSION)
		rc = -EPROTO;
	else if (o->port != 1 || c->program != NULL)
		rc = -EINVAL;
	else if ((c->program = mux_open(s->mux, c)) == NULL)
		rc = -ENOMEM;
	answer(c->fd, rc);
}

static void serve_mad(struct server *s, struct server_conn *c, const struct ur_umad_mad *head,
		      size_t bytes, int memfd, uint64_t now)
{
	uint8_t *mad = s->room;

	if (head->length > UR_UMAD_MAX_BYTES || (memfd < 0 && head->length != bytes)) {
		c->dead = true;
		return;
	}
	if (memfd >= 0) {
		mad = malloc(head->length);
		if (mad == NULL)
			return;
		if (ur_umad_read_rest(memfd, mad, 0, head->length) < 0) {
			free(mad);
			return;
		}
	}
	mux_submit(s->mux, c->program, head, mad, now);
	if (mad != s->room)
		free(mad);
}

union any_message {
	uint32_t kind;
	struct ur_umad_query query;
	struct ur_umad_open open;
	struct ur_umad_register reg;
	struct ur_umad_unregister unreg;
	struct ur_umad_mad mad;
};

static void serve_message(struct server *s, struct server_conn *c, const union any_message *m,
			  size_t bytes, int passed, uint64_t now)
{
	if (m->kind == UR_UMAD_QUERY && bytes == sizeof(m->query))
		serve_query(s, c, &m->query);
	else if (m->kind == UR_UMAD_OPEN && bytes == sizeof(m->open))
		serve_open(s, c, &m->open);
	else if (c->program == NULL)
		c->dead = true;
	else if (m->kind == UR_UMAD_REGISTER && bytes == sizeof(m->reg))
		answer(passed, mux_register(s->mux, c->program, &m->reg));
	else if (m->kind == UR_UMAD_UNREGISTER && bytes == sizeof(m->unreg))
		answer(passed, mux_unregister(s->mux, c->program, m->unreg.agent));
	else if (m->kind == UR_UMAD_MAD && bytes >= sizeof(m->mad))
		serve_mad(s, c, &m->mad, bytes - sizeof(m->mad), passed, now);
	else
		c->dead = true;
}

static void serve_conn(struct server *s, struct server_conn *c, uint64_t now)
{
	for (unsigned i = 0; i < BURST && !c->dead; i++) {
		union any_message m = {.kind = 0};
		int passed;
		ssize_t n = ur_umad_receive(c->fd, &m, sizeof(m), s->room, UR_UMAD_INLINE, &passed,
					    MSG_DONTWAIT);

		if (n > 0)
			serve_message(s, c, &m, (size_t)n, passed, now);
		else if (n != -EAGAIN)
			c->dead = true;
		if (passed >= 0)
			close(passed);
		if (n <= 0)
			return;
	}
}

unsigned server_poll_set(const struct server *s, struct pollfd *fds)
{
	const struct server_conn *c;
	unsigned cnt = 0;

	fds[cnt++] = (struct pollfd){.fd = s->listener.fd, .events = POLLIN};
	TAILQ_FOREACH(c, &s->conns, link)
	fds[cnt++] = (struct pollfd){.fd = c->fd,
				     .events = STAILQ_EMPTY(&c->queue) ? POLLIN : POLLIN | POLLOUT};
	return cnt;
}

void server_serve(struct server *s, const struct pollfd *fds, uint64_t now)
{
	struct server_conn *c = TAILQ_FIRST(&s->conns), *next;

	for (unsigned i = 1; c != NULL; c = next, i++) {
		next = TAILQ_NEXT(c, link);
		if ((fds[i].revents & POLLOUT) != 0)
			flush_queue(c);
		if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
			serve_conn(s, c, now);
		if (c->dead)
			end_conn(s, c);
	}
	/* Last: a new connection has no entry yet. */
	if ((fds[0].revents & POLLIN) != 0)
		accept_conn(s);
}

bool server_has_program(const struct server *s)
{
	const struct server_conn *c;

	TAILQ_FOREACH(c, &s->conns, link)
	if (c->program != NULL)
		return true;
	return false;
}
