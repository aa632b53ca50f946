/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4() */
#endif
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bsd/string.h>

#define BACKLOG 64
#define WAIT_NS 5000000 /* for another program that starts or ends there, */
#define WAITS	400	/* so often */

/*
 * LISTEN-01. Of programs that start, run and end with one path, each looks at it and changes it with the directory locked.
 * Otherwise one could take the socket of another for a dead one before that listens, or remove it when its own is gone. The
 * lock is held for some microseconds. Any user who may read the directory can lock it, too. So after
 * two seconds this returns -1, and the caller goes on without the lock.
 */
static int lock_directory(const struct sockaddr_un *addr)
{
	static const struct timespec nap = {.tv_nsec = WAIT_NS};
	char copy[sizeof(addr->sun_path)];
	int fd;

	strlcpy(copy, addr->sun_path, sizeof(copy));
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
		if (errno == EWOULDBLOCK && i < WAITS) {
			nanosleep(&nap, NULL);
			continue;
		}
		close(fd);
		return -1;
	}
	return fd;
}

/* Removes a socket that a dead process has left. */
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

/* With the directory locked. 0, or -1 and errno. */
static int bind_and_listen(struct listener *l)
{
	const struct sockaddr *addr = (const struct sockaddr *)&l->addr;
	int rc = bind(l->fd, addr, sizeof(l->addr));
	struct stat st;

	if (rc && errno == EADDRINUSE) {
		if (remove_stale(&l->addr))
			rc = bind(l->fd, addr, sizeof(l->addr));
		else
			errno = EADDRINUSE;
	}
	if (rc)
		return rc;
	if (lstat(l->addr.sun_path, &st) == 0)
		l->inode = st.st_ino;
	return listen(l->fd, BACKLOG);
}

/* 0, or -1 and errno. */
static int begin(struct listener *l)
{
	int lock = lock_directory(&l->addr), rc = bind_and_listen(l), why = errno;

	if (lock >= 0)
		close(lock);
	errno = why;
	return rc;
}

bool listener_open(struct listener *l, const char *path, uint32_t mode, gid_t group, char *err,
		   size_t cap)
{
	mode_t umask_was;
	int rc;

	*l = (struct listener){.addr.sun_family = AF_UNIX, .fd = -1};
	if (strlcpy(l->addr.sun_path, path, sizeof(l->addr.sun_path)) >= sizeof(l->addr.sun_path)) {
		snprintf(err, cap, "the path is longer than %zu characters",
			 sizeof(l->addr.sun_path) - 1);
		return false;
	}
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* The group may connect once it is the right one. */
	umask_was = umask(0777 & ~(group == LISTENER_SAME_GROUP ? mode : mode & 0700));
	rc = begin(l);
	umask(umask_was);
	if (!rc && group != LISTENER_SAME_GROUP)
		rc = chown(path, (uid_t)-1, group) || chmod(path, mode);
	if (!rc)
		return true;
	snprintf(err, cap, "%s%s", strerror(errno),
		 errno == EADDRINUSE ? "; another program listens there, or it is not a socket"
				     : "");
	listener_close(l);
	return false;
}

/* The inode is not used again while the socket is open. */
static void remove_own(const struct listener *l)
{
	int lock = l->inode ? lock_directory(&l->addr) : -1;
	struct stat st;

	if (l->inode && lstat(l->addr.sun_path, &st) == 0 && st.st_ino == l->inode)
		unlink(l->addr.sun_path);
	if (lock >= 0)
		close(lock);
}

void listener_close(struct listener *l)
{
	if (l->fd < 0)
		return;
	remove_own(l);
	close(l->fd);
	l->fd = -1;
}

int listener_accept(const struct listener *l)
{
	return accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
