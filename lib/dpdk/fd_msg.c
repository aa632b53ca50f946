/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#endif
#include "dpdk/fd_msg.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* What CMSG_SPACE() adds for alignment may hold one more, so it is not told to the kernel on receipt. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(UR_FD_MSG_MAX * sizeof(int))];
};

bool ur_fd_msg_send(int sock, const void *msg, size_t len, const int *fd, unsigned cnt)
{
	union control control = {.bytes = {0}};
	struct iovec from = {(void *)(uintptr_t)msg, len};
	struct msghdr h = {.msg_iov = &from, .msg_iovlen = 1};

	if (cnt) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		control.align = (struct cmsghdr){.cmsg_len = CMSG_LEN(cnt * sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.align), fd, cnt * sizeof(int));
	}
	return sendmsg(sock, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

ssize_t ur_fd_msg_receive(int sock, void *msg, size_t cap, int *fd, unsigned cnt)
{
	union control control;
	struct iovec to = {msg, cap};
	struct msghdr h = {.msg_iov = &to,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = CMSG_LEN(cnt * sizeof(int))};
	ssize_t len = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = len < 0 ? NULL : CMSG_FIRSTHDR(&h);

	for (unsigned i = 0; i < cnt; i++)
		fd[i] = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return len;
}
