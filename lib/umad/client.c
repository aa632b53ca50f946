/* SPDX-License-Identifier: BSD-3-Clause */
#include "umad/client.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "umad/pass.h"

#define ANSWER_MS 5000 /* a process on the same machine answers at once, unless it is stopped */

int ur_umad_debug_level;

void ur_umad_debug(int level, const char *fmt, ...)
{
	va_list args;

	if (ur_umad_debug_level < level)
		return;
	va_start(args, fmt);
	fputs("libibumad (uroce): ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

const char *ur_umad_dir(void)
{
	const char *dir = getenv(UR_UMAD_DIR_VARIABLE);

	return dir != NULL && dir[0] != '\0' ? dir : UR_UMAD_DIR;
}

void ur_umad_explain_absence(void)
{
	static int done;

	if (!__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
		fprintf(stderr,
			"libibumad (uroce): no channel adapter answers in %s; start one with "
			"uroce-hca, or set " UR_UMAD_DIR_VARIABLE "\n",
			ur_umad_dir());
}

int ur_umad_connect(const char *ca_name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd, n, error;

	n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s" UR_UMAD_SUFFIX, ur_umad_dir(),
		     ca_name);
	if (n < 0 || (size_t)n >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	error = errno;
	close(fd);
	return error == ENOENT || error == ECONNREFUSED ? -ENODEV : -error;
}

/* One datagram, exactly as long as expected; 0, or a negative errno. */
static int receive_answer(int fd, void *answer, size_t bytes)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	ssize_t n;

	do
		n = poll(&ready, 1, ANSWER_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0)
		return -errno;
	n = recv(fd, answer, bytes, MSG_TRUNC);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EPROTO;
}

int ur_umad_query(const char *ca_name, struct ur_umad_ca *ca)
{
	const struct ur_umad_query query = {.kind = UR_UMAD_QUERY, .version = UR_UMAD_VERSION};
	int fd = ur_umad_connect(ca_name), rc;

	if (fd < 0)
		return fd;
	rc = send(fd, &query, sizeof(query), MSG_NOSIGNAL) < 0 ? -errno : 0;
	if (rc == 0)
		rc = receive_answer(fd, ca, sizeof(*ca));
	close(fd);
	return rc;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

int ur_umad_list(char (*names)[UMAD_CA_NAME_LEN], int max)
{
	const size_t suffix = strlen(UR_UMAD_SUFFIX);
	DIR *dir = opendir(ur_umad_dir());
	struct dirent *e;
	int cnt = 0;

	if (dir == NULL)
		return 0;
	while (cnt < max && (e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name);
		int fd;

		if (len <= suffix || len - suffix >= UMAD_CA_NAME_LEN ||
		    strcmp(e->d_name + len - suffix, UR_UMAD_SUFFIX) != 0)
			continue;
		memcpy(names[cnt], e->d_name, len - suffix);
		names[cnt][len - suffix] = '\0';
		fd = ur_umad_connect(names[cnt]);
		if (fd < 0)
			continue;
		close(fd);
		cnt++;
	}
	closedir(dir);
	qsort(names, (size_t)cnt, sizeof(*names), compare_names);
	return cnt;
}

int ur_umad_resolve(const char *ca_name, int port, struct ur_umad_ca *ca)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int cnt, first = -1;

	if (ca_name != NULL)
		return ur_umad_query(ca_name, ca) == 0 &&
				       (port == 0 || port == (int)ca->port.number)
			       ? 0
			       : -ENODEV;
	cnt = ur_umad_list(names, UMAD_MAX_DEVICES);
	for (int i = 0; i < cnt; i++) {
		if (ur_umad_query(names[i], ca) != 0 || (port != 0 && port != (int)ca->port.number))
			continue;
		if (ca->port.state == 4)
			return 0;
		if (first < 0)
			first = i;
	}
	if (first >= 0 && ur_umad_query(names[first], ca) == 0)
		return 0;
	ur_umad_explain_absence();
	return -ENODEV;
}

int ur_umad_ask(int fd, const void *message, size_t bytes)
{
	struct ur_umad_result result;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	rc = ur_umad_send_fd(fd, message, bytes, pair[1], 0);
	close(pair[1]);
	if (rc == 0)
		rc = receive_answer(pair[0], &result, sizeof(result));
	close(pair[0]);
	return rc < 0 ? rc : result.value;
}
