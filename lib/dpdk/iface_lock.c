/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include "dpdk/iface_lock.h"

#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/*
 * A process that asks for the holder connects to its socket. The connection is never accepted and
 * stays in the backlog. When the backlog is full, the holder's name can no longer be found out.
 */
#define BACKLOG 64
#define STEP_MS 10

static socklen_t name_of(struct sockaddr_un *addr, unsigned ifindex)
{
	int n;

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "uroce/interface/%u", ifindex);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void name_program(struct ur_iface_holder *holder)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)holder->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(holder->name, sizeof(holder->name), f))
		holder->name[0] = '\0';
	holder->name[strcspn(holder->name, "\n")] = '\0';
	/* The name comes from another process and may contain anything. */
	for (char *c = holder->name; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : '?';
	fclose(f);
}

static void find_holder(const struct sockaddr_un *addr, socklen_t len,
			struct ur_iface_holder *holder)
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	int fd = new_socket();

	*holder = (struct ur_iface_holder){0};
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)addr, len) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 && cred.pid > 0) {
		holder->pid = cred.pid;
		name_program(holder);
	}
	close(fd);
}

/* Returns the descriptor of the lock, or a negative errno. */
static int take(const struct sockaddr_un *addr, socklen_t len)
{
	int fd = new_socket(), why;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)addr, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	why = errno;
	close(fd);
	return why == EADDRINUSE ? -EBUSY : -why;
}

int ur_iface_lock(const char *ifname, unsigned wait_ms, struct ur_iface_holder *holder)
{
	const struct timespec nap = {.tv_nsec = STEP_MS * 1000000};
	unsigned ifindex = if_nametoindex(ifname);
	struct sockaddr_un addr;
	socklen_t len;
	int fd;

	if (!ifindex)
		return -ENODEV;
	len = name_of(&addr, ifindex);
	fd = take(&addr, len);
	if (fd != -EBUSY)
		return fd;
	find_holder(&addr, len, holder);
	if (holder->pid == getpid())
		return fd;
	/* EDGE-REOPEN-01. The holder may be ending. Its name is requested only once, to save the backlog. */
	for (unsigned ms = 0; fd == -EBUSY && ms < wait_ms; ms += STEP_MS) {
		nanosleep(&nap, NULL);
		fd = take(&addr, len);
	}
	return fd;
}
