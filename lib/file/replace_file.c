/* SPDX-License-Identifier: BSD-3-Clause */
#include "file/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int write_new(const char *file, const void *bytes, size_t len, mode_t mode, bool sync)
{
	int fd, rc;

	/* What a crash has left. */
	if (unlink(file) && errno != ENOENT)
		return errno;
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return errno;
	rc = write_all(fd, bytes, len);
	if (!rc && sync && fsync(fd))
		rc = errno;
	if (close(fd) && !rc)
		rc = errno;
	return rc;
}

/* The name is on the disk when the directory is. */
static int sync_directory(const char *file)
{
	char copy[PATH_MAX];
	int fd, rc;

	if (strlcpy(copy, file, sizeof(copy)) >= sizeof(copy))
		return ENAMETOOLONG;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	rc = fsync(fd) ? errno : 0;
	close(fd);
	return rc == EINVAL ? 0 : rc; /* a file system that has nothing to write */
}

static int replace(const char *file, const void *bytes, size_t len, mode_t mode, bool sync)
{
	char made[PATH_MAX];
	int rc;

	if ((size_t)snprintf(made, sizeof(made), "%s.new", file) >= sizeof(made))
		return ENAMETOOLONG;
	rc = write_new(made, bytes, len, mode, sync);
	if (!rc && rename(made, file))
		rc = errno;
	if (rc)
		unlink(made);
	return rc;
}

int ur_replace_file(const char *file, const void *bytes, size_t len)
{
	int rc = replace(file, bytes, len, 0600, true);

	return rc ? rc : sync_directory(file);
}

int ur_replace_file_unsynced(const char *file, const void *bytes, size_t len, mode_t mode)
{
	return replace(file, bytes, len, mode, false);
}
