/* SPDX-License-Identifier: BSD-3-Clause */
/* LISTEN-01: processes that start and end at one path, all at the same time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "listener.h"

#define PROCESSES 4
#define ROUNDS	  50
#define TURNS	  50

static char dir[] = "/tmp/uroce-listener-XXXXXX", path[64], err[256];

static void make_directory(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
}

static void remove_directory(void)
{
	unlink(path);
	cr_assert_eq(rmdir(dir), 0, "nothing else is left");
}

TestSuite(listener, .init = make_directory, .fini = remove_directory);

static bool opens(struct listener *l)
{
	return listener_open(l, path, 0600, LISTENER_SAME_GROUP, err, sizeof(err));
}

/* Also one whose backlog is full of those that have tried. */
static bool answers(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	bool ok;

	strcpy(at.sun_path, path);
	ok = connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 || errno == EAGAIN;
	close(fd);
	return ok;
}

/* As a process that was killed leaves it. */
static void leave_stale(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(at.sun_path, path);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
}

Test(listener, a_second_one_is_refused_and_a_dead_one_is_replaced)
{
	struct listener a, b;
	struct stat st;

	leave_stale();
	cr_assert(opens(&a), "%s", err);
	cr_assert(answers());
	cr_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	cr_assert_not(opens(&b));
	cr_assert(strstr(err, "another program listens there"), "%s", err);
	cr_assert(answers(), "the first one is not disturbed");
	listener_close(&b);
	cr_assert(answers(), "nor by the end of the second");
	listener_close(&a);
	listener_close(&a);
	cr_assert_neq(access(path, F_OK), 0);
}

Test(listener, what_is_no_socket_is_left_alone)
{
	FILE *f = fopen(path, "w");
	struct listener a;

	fclose(f);
	cr_assert_not(opens(&a));
	cr_assert_eq(access(path, F_OK), 0);
}

Test(listener, the_socket_of_another_is_not_removed)
{
	struct listener a, b;

	cr_assert(opens(&a));
	cr_assert_eq(unlink(path), 0);
	cr_assert(opens(&b));
	listener_close(&a);
	cr_assert(answers());
	listener_close(&b);
}

/* Any user who may read the directory can lock it. */
Test(listener, a_directory_that_stays_locked_keeps_no_listener_out)
{
	int fd = open(dir, O_RDONLY);
	struct listener a;

	cr_assert_eq(flock(fd, LOCK_EX), 0);
	cr_assert(opens(&a), "%s", err);
	cr_assert(answers());
	listener_close(&a);
	cr_assert_neq(access(path, F_OK), 0);
	close(fd);
}

/* One that starts with the others: writes 'y' or 'n', and listens until `end` is closed. */
static _Noreturn void start_at_once(int begin, int result, int end)
{
	struct listener l;
	char c;

	(void)!read(begin, &c, 1);
	c = opens(&l) ? 'y' : 'n';
	(void)!write(result, &c, 1);
	(void)!read(end, &c, 1);
	listener_close(&l);
	_exit(0);
}

static void round_of_starts(void)
{
	int begin[2], result[2], end[2], yes = 0;
	char c;

	leave_stale();
	cr_assert(pipe(begin) == 0 && pipe(result) == 0 && pipe(end) == 0);
	for (unsigned i = 0; i < PROCESSES; i++)
		if (fork() == 0) {
			close(begin[1]);
			close(end[1]);
			start_at_once(begin[0], result[1], end[0]);
		}
	close(begin[1]);
	for (unsigned i = 0; i < PROCESSES; i++) {
		cr_assert_eq(read(result[0], &c, 1), 1);
		yes += c == 'y';
	}
	cr_assert_eq(yes, 1, "%d processes listen", yes);
	cr_assert(answers());
	close(end[1]);
	while (wait(NULL) > 0)
		;
	cr_assert_neq(access(path, F_OK), 0);
	for (unsigned i = 0; i < 2; i++)
		close(result[i]);
	close(begin[0]);
	close(end[0]);
}

Test(listener, of_several_that_start_at_once_one_listens, .timeout = 120)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		round_of_starts();
}

/* 0: whenever it listened, it could be reached. */
static int come_and_go(void)
{
	struct listener l;

	for (unsigned i = 0; i < TURNS; i++) {
		while (!opens(&l))
			;
		if (!answers())
			return 1;
		listener_close(&l);
	}
	return 0;
}

Test(listener, one_that_ends_takes_nothing_from_one_that_starts, .timeout = 120)
{
	int status;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			_exit(come_and_go());
	for (unsigned i = 0; i < PROCESSES; i++) {
		cr_assert_gt(wait(&status), 0);
		cr_assert_eq(status, 0);
	}
}
