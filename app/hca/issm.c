/* SPDX-License-Identifier: BSD-3-Clause */
#include "issm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/inotify.h>
#include <sys/stat.h>

int issm_open(struct issm *s, const char *path)
{
	int rc;

	*s = (struct issm){.inotify = -1, .writer = -1};
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s", path) >= sizeof(s->path))
		return -ENAMETOOLONG;
	unlink(path);
	if (mkfifo(path, 0600) < 0)
		return -errno;
	s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (s->inotify >= 0 && inotify_add_watch(s->inotify, path, IN_OPEN) >= 0)
		return 0;
	rc = -errno;
	issm_close(s);
	return rc;
}

void issm_close(struct issm *s)
{
	if (s->writer >= 0)
		close(s->writer);
	if (s->inotify >= 0)
		close(s->inotify);
	s->writer = s->inotify = -1;
	unlink(s->path);
}

bool issm_update(struct issm *s)
{
	char events[4096];
	struct pollfd writer = {.fd = s->writer};

	/* They all say the same. Our own opening is among them. */
	while (read(s->inotify, events, sizeof(events)) > 0)
		;
	if (s->writer >= 0 && poll(&writer, 1, 0) == 1 && (writer.revents & POLLERR) != 0) {
		close(s->writer);
		s->writer = -1;
	}
	if (s->writer < 0)
		s->writer = open(s->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return s->writer >= 0;
}
