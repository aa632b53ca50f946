/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_MEMORY_H
#define UROCED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring.h"

/*
 * UROCED-REGION-01, UROCED-REGION-02: checks and maps the memory of clients, away from the thread that forwards. A call with a
 * descriptor of a client may take as long as the client wants: close() asks the server of a file in user
 * space, a seal waits for writes to the file, and pages have to be found. So each descriptor gets a thread of its own, which
 * ends by closing it, and a user has MEMORY_PER_USER of them at most, for MEMORY_NS each at least.
 *
 *	idle -- memory_begin --> at work -- the thread --> ready -- memory_poll --> closing -- closed, and MEMORY_NS --> idle
 *			            `---------------- memory_drop -----------------------^
 *
 * Thread class of all functions: the daemon's one thread.
 */
#define MEMORY_MAX	64
#define MEMORY_PER_USER 4
#define MEMORY_NS	100000000
#define MEMORY_BYTES	(UINT64_C(16) << 20) /* of a region, at most */

struct memory_job;

/* Whether a descriptor of this user may be received now. */
bool memory_has_room(uid_t uid, uint64_t now_ns);
/* Takes `fd`; bytes: size of the region that it is said to be. Only after memory_has_room(). */
struct memory_job *memory_begin(uid_t uid, int fd, uint64_t bytes, uint64_t now_ns);
/*
 * False: not ready. True: the job is the caller's no more, and *wrong is NULL and *out a region, to be unmapped by the caller,
 * or *wrong says why there is none.
 */
bool memory_poll(struct memory_job *j, struct region *out, const char **wrong);
/* Its result is no longer wanted. */
void memory_drop(struct memory_job *j);

#endif
