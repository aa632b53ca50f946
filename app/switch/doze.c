/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include "doze.h"

#include <poll.h>
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
	struct pollfd p = {.fd = descriptor(), .events = POLLIN};
	struct epoll_event event[EVENTS];

	/* epoll_wait() knows milliseconds only, and epoll_pwait2() not every kernel. Without a descriptor this is a sleep. */
	return ppoll(&p, 1, &at_most, NULL) > 0 && epoll_wait(p.fd, event, EVENTS, 0) > 0;
}
