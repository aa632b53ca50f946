/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_CLOSER_H
#define UROCED_CLOSER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * UROCED-CLOSE-01: closes what clients have sent, away from the thread that forwards. The last close() of a file can take as long as its
 * owner likes: a TCP socket that lingers, a file in user space. A descriptor that is not received is closed by the thread that reads its message,
 * or closes the socket in which the message waits. So all descriptors are received, and closed by a thread of their own; so are
 * sockets in which such a message waits.
 *
 * A user has CLOSER_PER_USER such threads at most; with all of them at work, its messages with descriptors, and sockets with such messages, wait.
 *
 * Thread class of all functions: the daemon's one thread.
 */
#define CLOSER_MAX	64
#define CLOSER_PER_USER 4

/* The epoll instance that watches the sockets: one that is to be closed is taken out before. */
void closer_begin(int epoll);

/*
 * Receives a message. Result as of recv(); also -1 with EAGAIN if the user has to wait. *fd: the first descriptor that came with it, which is the
 * caller's, or -1; fd NULL: it is closed as the others are.
 */
ssize_t closer_receive(int sock, void *msg, size_t cap, uid_t uid, int *fd);

/* Whether there is room for the sockets of new connections. */
bool closer_has_room(void);

/* Ends a connection of this user, and closes its socket at once or later. */
void closer_close(int sock, uid_t uid);

/* Closes sockets that had to wait, as far as there is room. Call it often. */
void closer_poll(void);

#endif
