/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SWITCH_WRITER_H
#define SWITCH_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * SWITCH-FILES-01. A file that is replaced again and again by a thread of its own: a busy disk can make a rename take seconds, in which a thread that
 * forwards would lose frames. A reader sees the old file or the new one, whole; after a crash of the machine it may be empty.
 *
 * Thread class of all functions: one thread.
 */
struct writer;

/* `file` must stay valid; `mode`: its permissions, less the umask. NULL: no memory, or no thread. */
struct writer *writer_start(const char *file, mode_t mode);

/* Has `len` bytes of `text` written, which the writer frees. What has not been begun is replaced. */
void writer_put(struct writer *w, char *text, size_t len);

/* An errno value if the last write that has ended failed, or 0. */
int writer_error(struct writer *w);

/* Writes what is left, and ends. The same as writer_error(). */
int writer_end(struct writer *w);

#endif
