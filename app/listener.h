/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * A unix socket (SOCK_SEQPACKET) that listens at a path. What a dead process has left there is replaced; the socket of a
 * process that listens is not, also when several start and end at the same time. The directory has to be readable: it is
 * locked for a moment.
 */
struct listener {
	struct sockaddr_un addr;
	ino_t inode; /* of the path; another process may have replaced it */
	int fd;	     /* non-blocking; -1: not open */
};

#define LISTENER_SAME_GROUP ((gid_t)-1)

/*
 * `mode`: permissions; `group`: who owns it besides the user, or LISTENER_SAME_GROUP. False: a phrase in `err`, and nothing
 * is open.
 */
bool listener_open(struct listener *l, const char *path, uint32_t mode, gid_t group, char *err,
		   size_t cap);

/* Ends listening and removes the path. Does nothing if it is not open. */
void listener_close(struct listener *l);

/* Accepts a client; -1: none waits. Its descriptor is non-blocking. */
int listener_accept(const struct listener *l);

#endif
