/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* faccessat() with flags */
#endif
#include "dpdk/memif_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <bsd/string.h>

#include "dpdk/driver_call.h"

enum ur_memif_socket ur_memif_socket(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, why = 0;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? UR_MEMIF_SOCKET_NONE : UR_MEMIF_SOCKET_OTHER;
	if (!S_ISSOCK(st.st_mode) ||
	    strlcpy(addr.sun_path, path, sizeof(addr.sun_path)) >= sizeof(addr.sun_path))
		return UR_MEMIF_SOCKET_OTHER;
	/*
	 * memif listens for SOCK_SEQPACKET, so the kernel refuses this connection without the
	 * server's knowledge. A peer that connects and leaves at once can crash DPDK's interrupt
	 * thread.
	 */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return UR_MEMIF_SOCKET_OTHER;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0)
		why = errno;
	close(fd);
	if (why == EPROTOTYPE)
		return UR_MEMIF_SOCKET_LIVE;
	return why == ECONNREFUSED ? UR_MEMIF_SOCKET_STALE : UR_MEMIF_SOCKET_OTHER;
}

/* Replaces faccessat() in the driver. */
static int check_access(int dir, const char *path, int mode, int flags)
{
	return faccessat(dir, path, mode & ~W_OK, flags);
}

void ur_memif_permit_directory(void)
{
	ur_driver_call_replace("librte_net_memif.so", "faccessat", (ur_driver_fn)check_access);
}
