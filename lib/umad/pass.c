/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include "umad/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static int send_parts(int fd, struct iovec *parts, size_t cnt, int passed, int flags)
{
	union control control = {.room = {0}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = cnt};

	if (passed >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &passed, sizeof(int));
	}
	return sendmsg(fd, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int ur_umad_send_fd(int fd, const void *message, size_t bytes, int passed, int flags)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};

	return send_parts(fd, &part, 1, passed, flags);
}

/* A memfd that holds the bytes, or a negative errno. */
static int make_memfd(const void *data, size_t bytes)
{
	int fd = memfd_create("umad", MFD_CLOEXEC);
	const char *at = data;

	if (fd < 0)
		return -errno;
	while (bytes > 0) {
		ssize_t n = write(fd, at, bytes);

		if (n <= 0) {
			close(fd);
			return -EIO;
		}
		at += n;
		bytes -= (size_t)n;
	}
	return fd;
}

int ur_umad_send_mad(int fd, const struct ur_umad_mad *head, const void *mad, int flags)
{
	struct iovec parts[2] = {
		{.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head)},
		{.iov_base = (void *)(uintptr_t)mad, .iov_len = head->length},
	};
	int memfd = -1, rc;

	if (head->length > UR_UMAD_INLINE) {
		memfd = make_memfd(mad, head->length);
		if (memfd < 0)
			return memfd;
		parts[1].iov_len = UR_UMAD_MAD_BYTES;
	}
	rc = send_parts(fd, parts, 2, memfd, flags);
	if (memfd >= 0)
		close(memfd);
	return rc;
}

/* The room is aligned, and so may hold one descriptor more than was asked for. */
static void take_first(const struct cmsghdr *c, int *passed)
{
	size_t cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int fd;

	for (size_t i = 0; i < cnt; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (i == 0)
			*passed = fd;
		else
			close(fd);
	}
}

ssize_t ur_umad_receive(int fd, void *head, size_t head_bytes, void *rest, size_t rest_bytes,
			int *passed, int flags)
{
	union control control;
	struct iovec parts[2] = {{.iov_base = head, .iov_len = head_bytes},
				 {.iov_base = rest, .iov_len = rest_bytes}};
	struct msghdr msg = {.msg_iov = parts,
			     .msg_iovlen = 2,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	*passed = -1;
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		take_first(c, passed);
	return n;
}

int ur_umad_read_rest(int memfd, void *mad, size_t from, size_t length)
{
	while (from < length) {
		ssize_t n = pread(memfd, (char *)mad + from, length - from, (off_t)from);

		if (n <= 0)
			return -EIO;
		from += (size_t)n;
	}
	return 0;
}
