/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4() */
#endif
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <bsd/string.h>

#define SEND_BUFFER (1 << 20)
#define ACCEPT_MAX  64 /* clients at once; frames of others wait meanwhile */

struct socket_device {
	struct device dev;
	struct rte_mempool *pool;
	int fd; /* -1: no client */
};

struct socket_port {
	struct sockaddr_un addr;
	ino_t inode; /* of the path; another process may have replaced it */
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

static const struct device_ops client_ops = {client_rx, client_tx, client_link, client_close};

/*
 * A socket on which a process still listens is its own; another one is what a dead process left. Two switches that
 * start at a time must not take it from each other, so the directory is locked from here until the caller listens.
 */
static bool remove_stale(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat st;
	bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0 &&
		    errno == ECONNREFUSED && lstat(addr->sun_path, &st) == 0 &&
		    S_ISSOCK(st.st_mode);

	if (fd >= 0)
		close(fd);
	return dead && unlink(addr->sun_path) == 0;
}

/* -1: it cannot be locked now. */
static int lock_directory(const struct sockaddr_un *addr)
{
	char copy[sizeof(addr->sun_path)];
	int fd;

	strlcpy(copy, addr->sun_path, sizeof(copy));
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* 0, or -1 and errno. */
static int bind_and_listen(struct socket_port *p)
{
	const struct sockaddr *addr = (const struct sockaddr *)&p->addr;
	int lock = lock_directory(&p->addr), rc = bind(p->fd, addr, sizeof(p->addr)), why;
	struct stat st;

	if (rc && errno == EADDRINUSE && lock >= 0) {
		if (remove_stale(&p->addr))
			rc = bind(p->fd, addr, sizeof(p->addr));
		else
			errno = EADDRINUSE;
	}
	if (!rc)
		rc = listen(p->fd, 16);
	if (!rc && lstat(p->addr.sun_path, &st) == 0)
		p->inode = st.st_ino;
	why = errno;
	if (lock >= 0)
		close(lock);
	errno = why;
	return rc;
}

static bool listen_at(struct socket_port *p, const struct switch_spec *spec, char *err, size_t cap)
{
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
	rc = bind_and_listen(p);
	umask(umask_was);
	if (!rc)
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

	for (unsigned i = 0; i < ACCEPT_MAX; i++) {
		struct socket_device *s = free_client(p);

		fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			break;
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
	struct stat st;

	close(p->fd);
	if (lstat(p->addr.sun_path, &st) == 0 && st.st_ino == p->inode)
		unlink(p->addr.sun_path);
	free(p);
}
