/* SPDX-License-Identifier: BSD-3-Clause */
#include "closer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aside.h"
#include "dpdk/fd_msg.h"

#define OWN_DESCRIPTORS 1024 /* of the daemon itself, at most */
#define MESSAGES_MAX	512  /* in a socket, more than its buffer holds */
#define WAITING_MAX	512  /* sockets; from half of that on no connection is accepted */

struct job {
	bool used, started;
	uid_t uid;
	unsigned cnt;
	int fd[UR_FD_MSG_MAX];
	atomic_bool closed;
};

/* Static: a thread whose close() does not return uses it until the process ends. */
static struct job job[CLOSER_MAX];

static struct waiting {
	int sock;
	uid_t uid;
} waiting[WAITING_MAX];
static unsigned waiting_cnt;
static int watched_by = -1;
static unsigned jobs_max = CLOSER_MAX;

/* ---- the thread ---- */

static void *work(void *arg)
{
	struct job *j = arg;

	for (unsigned i = 0; i < j->cnt; i++)
		close(j->fd[i]);
	atomic_store(&j->closed, true);
	return NULL;
}

/* ---- the thread that forwards ---- */

static bool is_idle(struct job *j)
{
	/* There was no thread for it: another attempt. */
	if (j->used && !j->started)
		j->started = aside_start(work, j);
	if (j->used && atomic_load(&j->closed))
		j->used = false;
	return !j->used;
}

static struct job *idle(uid_t uid)
{
	struct job *found = NULL;
	unsigned same = 0;

	for (unsigned i = 0; i < jobs_max; i++) {
		if (is_idle(&job[i]))
			found = &job[i];
		else
			same += job[i].uid == uid;
	}
	return same < CLOSER_PER_USER ? found : NULL;
}

static void begin(struct job *j, uid_t uid, const int *fd, unsigned cnt)
{
	j->used = true;
	j->uid = uid;
	j->cnt = cnt;
	memcpy(j->fd, fd, cnt * sizeof(*fd));
	atomic_store(&j->closed, false);
	j->started = aside_start(work, j);
}

void closer_begin(int epoll)
{
	struct rlimit limit;

	watched_by = epoll;
	/* A message whose descriptors do not all fit would be closed in part by the thread that reads it. */
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	jobs_max = limit.rlim_cur <= OWN_DESCRIPTORS + UR_FD_MSG_MAX ? 1
		   : limit.rlim_cur >= OWN_DESCRIPTORS + CLOSER_MAX * UR_FD_MSG_MAX
			   ? CLOSER_MAX
			   : (unsigned)((limit.rlim_cur - OWN_DESCRIPTORS) / UR_FD_MSG_MAX);
}

/* Looks at the next message, and leaves it there. Result as of recv(); *any: whether descriptors come with it. */
static ssize_t peek(int sock, bool *any)
{
	char byte;
	struct iovec to = {&byte, 1};
	struct msghdr h = {.msg_iov = &to, .msg_iovlen = 1};
	ssize_t len = recvmsg(sock, &h, MSG_PEEK | MSG_DONTWAIT);

	*any = len >= 0 && h.msg_flags & MSG_CTRUNC;
	return len;
}

ssize_t closer_receive(int sock, void *msg, size_t cap, uid_t uid, int *fd)
{
	int got[UR_FD_MSG_MAX];
	struct job *j = NULL;
	unsigned cnt = 0;
	ssize_t len;
	bool any;

	if (fd)
		*fd = -1;
	/* Without a message now, one that comes in a moment is read next time: it may have descriptors. */
	if (peek(sock, &any) < 0)
		return -1;
	if (any && !(j = idle(uid))) {
		errno = EAGAIN;
		return -1;
	}
	len = ur_fd_msg_receive(sock, msg, cap, got, UR_FD_MSG_MAX);
	for (unsigned i = 0; i < UR_FD_MSG_MAX && got[i] >= 0; i++) {
		if (i == 0 && fd)
			*fd = got[i];
		else
			got[cnt++] = got[i];
	}
	if (cnt)
		begin(j, uid, got, cnt);
	return len;
}

/*
 * Whether nothing is left in it that close() would close too. An empty message cannot be told from the end, so what is empty is read as often as
 * messages fit into a socket.
 */
static bool is_drained(int sock)
{
	char byte;
	bool any;

	for (unsigned i = 0; i < MESSAGES_MAX; i++) {
		if (peek(sock, &any) < 0 && errno == EAGAIN)
			return true;
		if (any)
			return false;
		(void)!recv(sock, &byte, 1, MSG_DONTWAIT);
	}
	return true;
}

static bool close_now(int sock, uid_t uid)
{
	struct job *j;

	if (is_drained(sock)) {
		close(sock);
		return true;
	}
	j = idle(uid);
	if (j)
		begin(j, uid, &sock, 1);
	return j;
}

bool closer_has_room(void)
{
	return waiting_cnt < WAITING_MAX / 2;
}

void closer_close(int sock, uid_t uid)
{
	epoll_ctl(watched_by, EPOLL_CTL_DEL, sock, NULL);
	/* The client is not kept waiting for the end. */
	shutdown(sock, SHUT_RDWR);
	if (close_now(sock, uid))
		return;
	if (waiting_cnt == WAITING_MAX)
		close(sock);
	else
		waiting[waiting_cnt++] = (struct waiting){sock, uid};
}

void closer_poll(void)
{
	for (unsigned i = 0; i < waiting_cnt;) {
		if (close_now(waiting[i].sock, waiting[i].uid))
			waiting[i] = waiting[--waiting_cnt];
		else
			i++;
	}
}
