/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/descriptors.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>

#define FDS_MAX 65536 /* the kernel assigns the lowest free descriptor */

static void try_all(bool (*visit)(int fd, void *arg), void *arg)
{
	struct rlimit limit = {.rlim_cur = FDS_MAX};
	int fd = 0, end;

	getrlimit(RLIMIT_NOFILE, &limit);
	end = limit.rlim_cur < FDS_MAX ? (int)limit.rlim_cur : FDS_MAX;
	while (fd < end && visit(fd, arg))
		fd++;
}

void ur_descriptors_visit(bool (*visit)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	bool more = true;
	struct dirent *e;

	if (!dir) {
		try_all(visit, arg);
		return;
	}
	while (more && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]) && atoi(e->d_name) != dirfd(dir))
			more = visit(atoi(e->d_name), arg);
	closedir(dir);
}
