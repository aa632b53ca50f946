/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* epoll_pwait2 */
#endif
#include "doze.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#define EVENTS 64

static int descriptor(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = epoll_create1(EPOLL_CLOEXEC);
	return fd;
}

bool doze_watch(int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(descriptor(), EPOLL_CTL_ADD, fd, &e) == 0;
}

void doze_forget(int fd)
{
	epoll_ctl(descriptor(), EPOLL_CTL_DEL, fd, NULL);
}

bool doze(uint64_t ns)
{
	const struct timespec at_most = {.tv_nsec = (long)ns};
	struct epoll_event event[EVENTS];
	int cnt = epoll_pwait2(descriptor(), event, EVENTS, &at_most, NULL);

	/* Linux before 5.11 has no such call. */
	if (cnt < 0 && errno != EINTR)
		nanosleep(&at_most, NULL);
	return cnt > 0;
}
