/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4() */
#endif
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <bsd/string.h>

#define SEND_BUFFER (1 << 20)

struct socket_device {
	struct device dev;
	struct rte_mempool *pool;
	int fd; /* -1: no client */
};

struct socket_port {
	struct sockaddr_un addr;
	int fd;
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

/* Receives a frame. False: there is none. A longer one than the buffer is dropped. */
static bool receive(struct socket_device *s, struct rte_mbuf *m)
{
	ssize_t n;

	do {
		n = recv(s->fd, rte_pktmbuf_mtod(m, void *), s->dev.max_frame,
			 MSG_DONTWAIT | MSG_TRUNC);
		if (n == 0 || (n < 0 && is_over(errno)))
			disconnect(s);
	} while (n > (ssize_t)s->dev.max_frame);
	if (n <= 0)
		return false;
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

static const struct device_ops client_ops = {client_rx, client_tx, client_link, client_close};

/* A socket on which a process still listens is its own; another one is what a dead process left. */
static bool remove_stale(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct stat st;
	bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0 &&
		    errno == ECONNREFUSED && lstat(addr->sun_path, &st) == 0 &&
		    S_ISSOCK(st.st_mode);

	if (fd >= 0)
		close(fd);
	return dead && unlink(addr->sun_path) == 0;
}

static bool listen_at(struct socket_port *p, const struct switch_spec *spec, char *err, size_t cap)
{
	const struct sockaddr *addr = (const struct sockaddr *)&p->addr;
	mode_t umask_was;
	int rc;

	if (strlen(spec->name) >= sizeof(p->addr.sun_path)) {
		snprintf(err, cap, "socket=%s: the path is longer than %zu characters", spec->name,
			 sizeof(p->addr.sun_path) - 1);
		return false;
	}
	p->addr.sun_family = AF_UNIX;
	strcpy(p->addr.sun_path, spec->name);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	umask_was = umask(0777 & ~spec->mode);
	rc = bind(p->fd, addr, sizeof(p->addr));
	if (rc && errno == EADDRINUSE && remove_stale(&p->addr))
		rc = bind(p->fd, addr, sizeof(p->addr));
	umask(umask_was);
	if (!rc && listen(p->fd, 16) == 0)
		return true;
	snprintf(err, cap, "socket=%s: %s%s", spec->name, strerror(errno),
		 errno == EADDRINUSE ? "; another program listens there, or it is not a socket"
				     : "");
	return false;
}

struct socket_port *socket_open(const struct switch_spec *spec, uint32_t max_frame,
				struct rte_mempool *pool, struct device **devs, char *err,
				size_t cap)
{
	struct socket_port *p = calloc(1, sizeof(*p));

	if (!p || !listen_at(p, spec, err, cap)) {
		if (p && p->fd > 0)
			close(p->fd);
		free(p);
		return NULL;
	}
	for (; p->clients < spec->clients; p->clients++) {
		struct socket_device *s = calloc(1, sizeof(*s));

		if (!s)
			abort();
		s->fd = -1;
		s->pool = pool;
		s->dev.ops = &client_ops;
		s->dev.max_frame = max_frame;
		snprintf(s->dev.name, sizeof(s->dev.name), "socket=%s #%u", spec->name,
			 p->clients + 1);
		p->client[p->clients] = s;
		devs[p->clients] = &s->dev;
	}
	return p;
}

static struct socket_device *free_client(struct socket_port *p)
{
	for (unsigned i = 0; i < p->clients; i++)
		if (p->client[i]->fd < 0)
			return p->client[i];
	return NULL;
}

void socket_accept(struct socket_port *p)
{
	static const int bytes = SEND_BUFFER;
	int fd;

	while ((fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct socket_device *s = free_client(p);

		if (!s) {
			close(fd);
			continue;
		}
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		s->fd = fd;
	}
}

void socket_close(struct socket_port *p)
{
	close(p->fd);
	unlink(p->addr.sun_path);
	free(p);
}
