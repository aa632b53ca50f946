/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, stat64 */
#endif
#undef _FILE_OFFSET_BITS /* it renames stat() */
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Loaded before a program (LD_PRELOAD). UCX uses a device only if /dev/infiniband/NAME is a character device that may
 * be read and written, although UCX does not open it. For the devices of uroce, these calls answer what they answer for
 * /dev/null. All other paths go to libc.
 */

#define PREFIX "/dev/infiniband/uroce"

/* libc answers EFAULT to NULL; volatile, because its headers say that there is none, and compilers believe it. */
static const char *instead(const char *volatile given)
{
	const char *path = given;

	return !path || strncmp(path, PREFIX, sizeof(PREFIX) - 1) ? path : "/dev/null";
}

int stat(const char *restrict path, struct stat *restrict buf)
{
	static int (*next)(const char *, struct stat *);

	if (!next)
		next = (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");
	return next(instead(path), buf);
}

int stat64(const char *restrict path, struct stat64 *restrict buf)
{
	static int (*next)(const char *, struct stat64 *);

	if (!next)
		next = (int (*)(const char *, struct stat64 *))dlsym(RTLD_NEXT, "stat64");
	return next(instead(path), buf);
}

int access(const char *path, int mode)
{
	static int (*next)(const char *, int);

	if (!next)
		next = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");
	return next(instead(path), mode);
}
