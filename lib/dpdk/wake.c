/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include "dpdk/wake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <bsd/string.h>

#include "dpdk/descriptors.h"

#define TUN_MAJOR 10 /* of /dev/net/tun: the kernel's misc devices, */
#define TUN_MINOR 200

static bool is_tap(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(TUN_MAJOR, TUN_MINOR);
}

static bool receives_frames(int fd)
{
	int domain = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){sizeof(domain)}) != 0)
		return is_tap(fd);
	return domain == AF_PACKET || domain == AF_XDP;
}

static bool note(int fd, void *arg)
{
	struct ur_wake_before *before = arg;

	if (receives_frames(fd))
		before->fd[before->cnt++] = fd;
	return before->cnt < UR_WAKE_BEFORE_MAX;
}

void ur_wake_note(struct ur_wake_before *before)
{
	before->cnt = 0;
	ur_descriptors_visit(note, before);
}

struct search {
	struct ur_wake *wake;
	const struct ur_wake_before *before;
};

static bool was_there(const struct ur_wake_before *before, int fd)
{
	for (unsigned i = 0; i < before->cnt; i++)
		if (before->fd[i] == fd)
			return true;
	return false;
}

static bool find(int fd, void *arg)
{
	const struct search *s = arg;

	if (!receives_frames(fd) || was_there(s->before, fd))
		return true;
	if (s->wake->cnt == UR_WAKE_MAX) {
		s->wake->cnt = 0;
		return false;
	}
	s->wake->fd[s->wake->cnt++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return true;
}

static void find_descriptors(struct ur_wake *wake, const struct ur_wake_before *before)
{
	if (before->cnt < UR_WAKE_BEFORE_MAX)
		ur_descriptors_visit(find, &(struct search){wake, before});
}

/* The id of a memif port: among the driver's own arguments, "id=3,secret=...". */
static uint32_t memif_id(const struct ur_config *cfg)
{
	char args[sizeof(cfg->port.args)], *left = args, *arg;
	uint32_t id = 0;

	strlcpy(args, cfg->port.args, sizeof(args));
	while ((arg = strsep(&left, ",")))
		if (strncmp(arg, "id=", 3) == 0)
			id = (uint32_t)strtoul(arg + 3, NULL, 10);
	return id;
}

void ur_wake_find(struct ur_wake *wake, const struct ur_wake_before *before,
		  const struct ur_config *cfg)
{
	*wake = (struct ur_wake){.daemon = -1};
	find_descriptors(wake, before);
	if (cfg->port.driver != UR_DRIVER_MEMIF)
		return;
	strlcpy(wake->end.path, cfg->port.device, sizeof(wake->end.path));
	wake->end.id = memif_id(cfg);
	wake->end.server = cfg->port.role == UR_MEMIF_ROLE_SERVER;
}

/* EDGE-REST-04 */
bool ur_wake_arm(struct ur_wake *wake, uint32_t queues, int daemon)
{
	if (!wake->end.path[0])
		return false;
	wake->armed =
		ur_memif_wake_arm(&wake->end, queues, wake->fd + wake->cnt, UR_WAKE_ARMED_MAX - 1);
	wake->daemon = wake->armed ? daemon : -1;
	if (wake->daemon >= 0)
		wake->fd[wake->cnt + wake->armed++] =
			(struct pollfd){.fd = daemon, .events = POLLIN};
	return wake->armed;
}

void ur_wake_disarm(struct ur_wake *wake)
{
	if (wake->armed)
		ur_memif_wake_disarm(&wake->end);
	wake->armed = 0;
}

/* Whether uroced has written: what it wrote is of no interest. Another thread that sleeps may have read it. */
static bool read_daemon(int fd)
{
	char bytes[256];
	ssize_t len = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	return len > 0 || (len < 0 && errno == EAGAIN);
}

/* Whether a descriptor of the driver is readable. */
static bool look_at_driver(struct ur_wake *wake)
{
	bool woken = false;

	for (unsigned i = 0; i < wake->cnt; i++) {
		if (wake->fd[i].revents & ~POLLIN)
			wake->fd[i].fd = -1;
		else if (wake->fd[i].revents)
			woken = true;
	}
	return woken;
}

/* Whether the peer has written. *failed: a descriptor reports something else, and would again. */
static bool look_at_peer(const struct ur_wake *wake, bool *failed)
{
	bool woken = false;

	for (unsigned i = wake->cnt; i < wake->cnt + wake->armed; i++) {
		const struct pollfd *p = &wake->fd[i];

		if (!p->revents)
			continue;
		if (p->revents == POLLIN && (p->fd != wake->daemon || read_daemon(p->fd)))
			woken = true;
		else
			*failed = true;
	}
	return woken;
}

static bool has_any(const struct pollfd *fds, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (fds[i].revents)
			return true;
	return false;
}

/* The port's descriptors lie behind the caller's. */
static int poll_all(struct ur_wake *wake, struct pollfd *own, unsigned own_cnt,
		    const struct timespec *at_most, const sigset_t *mask)
{
	unsigned cnt = wake->cnt + wake->armed;
	struct pollfd *all = own ? own : wake->fd;
	int rc;

	if (own)
		memcpy(own + own_cnt, wake->fd, cnt * sizeof(*own));
	rc = ppoll(all, own_cnt + cnt, at_most, mask);
	if (own)
		memcpy(wake->fd, own + own_cnt, cnt * sizeof(*own));
	return rc < 0 ? -errno : rc;
}

int ur_wake_wait(struct ur_wake *wake, struct pollfd *own, unsigned own_cnt, uint64_t ns,
		 const sigset_t *mask)
{
	const struct timespec at_most = {.tv_nsec = (long)ns};
	bool woken = false, failed = false;
	int rc = poll_all(wake, own, own_cnt, &at_most, mask);

	if (rc > 0) {
		woken = look_at_driver(wake);
		woken = look_at_peer(wake, &failed) || woken;
	}
	ur_wake_disarm(wake);
	if (failed && !woken && !has_any(own, own_cnt))
		rc = ppoll(own, own_cnt, &at_most, mask) < 0 ? -errno : 0;
	return rc < 0 ? rc : woken;
}
