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
#include <unistd.h>

#include <bsd/string.h>

#define BACKLOG 64

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
static int bind_and_listen(struct listener *l)
{
	const struct sockaddr *addr = (const struct sockaddr *)&l->addr;
	int lock = lock_directory(&l->addr), rc = bind(l->fd, addr, sizeof(l->addr)), why;
	struct stat st;

	if (rc && errno == EADDRINUSE && lock >= 0) {
		if (remove_stale(&l->addr))
			rc = bind(l->fd, addr, sizeof(l->addr));
		else
			errno = EADDRINUSE;
	}
	if (!rc)
		rc = listen(l->fd, BACKLOG);
	if (!rc && lstat(l->addr.sun_path, &st) == 0)
		l->inode = st.st_ino;
	why = errno;
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
	rc = bind_and_listen(l);
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

void listener_close(struct listener *l)
{
	struct stat st;

	if (l->fd < 0)
		return;
	close(l->fd);
	l->fd = -1;
	if (l->inode && lstat(l->addr.sun_path, &st) == 0 && st.st_ino == l->inode)
		unlink(l->addr.sun_path);
}

int listener_accept(const struct listener *l)
{
	return accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
