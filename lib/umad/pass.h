/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with a MAD or a file descriptor, for both ends (message.h). Errors are negative errnos. */
#ifndef UR_UMAD_PASS_H
#define UR_UMAD_PASS_H

#include <stddef.h>
#include <sys/types.h>

#include "umad/message.h"

/* Sends the message with head->length bytes of MAD, in a memfd if that is long. 0, or an error. */
int ur_umad_send_mad(int fd, const struct ur_umad_mad *head, const void *mad, int flags);

/* Sends a message with a file descriptor; -1: none. 0, or an error. */
int ur_umad_send_fd(int fd, const void *message, size_t bytes, int passed, int flags);

/*
 * Receives a message in two parts, and the file descriptor that came with it, or -1. Returns the message's bytes, 0 at
 * the end, or an error. What does not fit is lost.
 */
ssize_t ur_umad_receive(int fd, void *head, size_t head_bytes, void *rest, size_t rest_bytes,
			int *passed, int flags);

/* Reads [from, length) of a MAD from its memfd. 0, or an error. */
int ur_umad_read_rest(int memfd, void *mad, size_t from, size_t length);

#endif
