/* SPDX-License-Identifier: BSD-3-Clause */
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doze.h"
#include "listener.h"

#define SEND_BUFFER (1 << 20)
#define ACCEPT_MAX  64 /* clients at once; frames of others wait meanwhile */

struct socket_device {
	struct device dev;
	struct rte_mempool *pool;
	int fd; /* -1: no client */
	bool watched;
};

struct socket_port {
	struct device_group group;
	struct listener listener;
	unsigned clients;
	struct socket_device *client[UR_SWITCH_PORTS_MAX];
};

static void disconnect(struct socket_device *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* A client that is slow to read is waited for; one that has left is disconnected. */
static bool is_over(int err)
{
	return err != EAGAIN && err != EINTR && err != ENOBUFS;
}

/* Receives a frame. False: there is none. Of one that is longer than the buffer nothing is left: the switch drops it. */
static bool receive(struct socket_device *s, struct rte_mbuf *m)
{
	ssize_t n;

	n = recv(s->fd, rte_pktmbuf_mtod(m, void *), s->dev.max_frame, MSG_DONTWAIT | MSG_TRUNC);
	if (n == 0 || (n < 0 && is_over(errno)))
		disconnect(s);
	if (n <= 0)
		return false;
	if (n > (ssize_t)s->dev.max_frame)
		n = 0;
	m->data_len = (uint16_t)n;
	m->pkt_len = (uint32_t)n;
	return true;
}

static unsigned client_rx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct socket_device *s = (struct socket_device *)d;
	unsigned got = 0;

	while (got < n && s->fd >= 0) {
		m[got] = rte_pktmbuf_alloc(s->pool);
		if (!m[got])
			break;
		if (!receive(s, m[got])) {
			rte_pktmbuf_free(m[got]);
			break;
		}
		got++;
	}
	return got;
}

static unsigned client_tx(struct device *d, struct rte_mbuf **m, unsigned n)
{
	struct socket_device *s = (struct socket_device *)d;
	unsigned i = 0;

	for (; i < n && s->fd >= 0; i++) {
		if (send(s->fd, rte_pktmbuf_mtod(m[i], void *), m[i]->data_len,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			if (!is_over(errno))
				break;
			disconnect(s);
			break;
		}
		rte_pktmbuf_free(m[i]);
	}
	return i;
}

static bool client_link(struct device *d)
{
	return ((struct socket_device *)d)->fd >= 0;
}

static void client_close(struct device *d)
{
	disconnect((struct socket_device *)d);
	free(d);
}

static bool client_interrupts(struct device *d, bool on)
{
	return ((struct socket_device *)d)->watched;
}

static const struct device_ops client_ops = {.rx = client_rx,
					     .tx = client_tx,
					     .link = client_link,
					     .close = client_close,
					     .interrupts = client_interrupts};

static struct socket_device *free_client(struct socket_port *p)
{
	for (unsigned i = 0; i < p->clients; i++)
		if (p->client[i]->fd < 0)
			return p->client[i];
	return NULL;
}

static bool socket_serve(struct device_group *g, uint64_t now_ns)
{
	struct socket_port *p = (struct socket_port *)g;
	static const int bytes = SEND_BUFFER;
	int fd;

	for (unsigned i = 0; i < ACCEPT_MAX; i++) {
		struct socket_device *s = free_client(p);

		fd = listener_accept(&p->listener);
		if (fd < 0)
			break;
		if (!s) {
			close(fd);
			continue;
		}
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		s->fd = fd;
		s->watched = doze_watch(fd);
	}
	return true;
}

static void socket_close(struct device_group *g)
{
	struct socket_port *p = (struct socket_port *)g;

	listener_close(&p->listener);
	free(p);
}

static const struct device_group_ops socket_ops = {socket_serve, socket_close, false};

struct device_group *socket_open(const struct switch_spec *spec, uint32_t max_frame,
				 struct rte_mempool *pool, struct device **devs, char *err,
				 size_t cap)
{
	struct socket_port *p = calloc(1, sizeof(*p));
	char why[256] = "out of memory";

	if (!p || !listener_open(&p->listener, spec->name, spec->mode, LISTENER_SAME_GROUP, why,
				 sizeof(why))) {
		snprintf(err, cap, "socket=%s: %s", spec->name, why);
		free(p);
		return NULL;
	}
	p->group.ops = &socket_ops;
	for (; p->clients < spec->clients; p->clients++) {
		struct socket_device *s = calloc(1, sizeof(*s));

		if (!s)
			abort();
		s->fd = -1;
		s->pool = pool;
		s->dev.ops = &client_ops;
		s->dev.max_frame = max_frame;
		snprintf(s->dev.name, sizeof(s->dev.name), "socket=%.200s #%u", spec->name,
			 p->clients + 1);
		p->client[p->clients] = s;
		devs[p->clients] = &s->dev;
	}
	return &p->group;
}
