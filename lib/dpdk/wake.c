/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include "dpdk/wake.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define FDS_MAX 65536 /* the kernel assigns the lowest free descriptor */

static bool receives_frames(int fd)
{
	int domain = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){sizeof(domain)}) == 0 &&
	       (domain == AF_PACKET || domain == AF_XDP);
}

static int fds_end(void)
{
	struct rlimit limit = {.rlim_cur = FDS_MAX};

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur < FDS_MAX ? (int)limit.rlim_cur : FDS_MAX;
}

void ur_wake_note(struct ur_wake_before *before)
{
	int end = fds_end();

	before->cnt = 0;
	for (int fd = 0; fd < end && before->cnt < UR_WAKE_BEFORE_MAX; fd++)
		if (receives_frames(fd))
			before->fd[before->cnt++] = fd;
}

static bool was_there(const struct ur_wake_before *before, int fd)
{
	for (unsigned i = 0; i < before->cnt; i++)
		if (before->fd[i] == fd)
			return true;
	return false;
}

void ur_wake_find(struct ur_wake *wake, const struct ur_wake_before *before)
{
	int end = fds_end();

	wake->cnt = 0;
	if (before->cnt == UR_WAKE_BEFORE_MAX)
		return;
	for (int fd = 0; fd < end; fd++) {
		if (!receives_frames(fd) || was_there(before, fd))
			continue;
		if (wake->cnt == UR_WAKE_MAX) {
			wake->cnt = 0;
			return;
		}
		wake->fd[wake->cnt++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
}

bool ur_wake_wait(struct ur_wake *wake, uint64_t ns)
{
	const struct timespec at_most = {.tv_nsec = (long)ns};
	bool woken = false;

	if (ppoll(wake->fd, wake->cnt, &at_most, NULL) <= 0)
		return false;
	for (unsigned i = 0; i < wake->cnt; i++) {
		if (wake->fd[i].revents & ~POLLIN)
			wake->fd[i].fd = -1;
		else if (wake->fd[i].revents)
			woken = true;
	}
	return woken;
}
