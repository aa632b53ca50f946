/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * life CASE: what foreign programs do with a device in their lives, written against the system's libibverbs and run
 * by uroce-run. Prints "ok", or what went wrong.
 */

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                  \
			       strerror(errno));                                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct ibv_device *first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *device;

	CHECK(list && list[0]);
	device = list[0];
	ibv_free_device_list(list);
	return device;
}

static struct ibv_context *open_device(void)
{
	struct ibv_context *ctx = ibv_open_device(first_device());

	CHECK(ctx);
	return ctx;
}

static unsigned threads(void)
{
	char line[128];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "Threads: %u", &n);
	fclose(f);
	return n;
}

/* Listing opens nothing. */
static void list_only(void)
{
	first_device();
	CHECK(threads() == 1);
}

/* VERBS-OPEN-01 */
static void open_twice(void)
{
	struct ibv_context *a = open_device(), *b = open_device();
	struct ibv_port_attr port;
	struct ibv_device_attr attr;
	struct ibv_pd *pd = ibv_alloc_pd(a);

	CHECK(pd && a != b && a->async_fd != b->async_fd);
	CHECK(a->device == b->device && a->device == first_device());
	CHECK(!ibv_query_device(b, &attr) && attr.node_guid == ibv_get_device_guid(b->device));
	/* In any order, and with an object that lives. */
	CHECK(!ibv_close_device(b) && !ibv_close_device(a));
	a = open_device();
	CHECK(!ibv_query_port(a, 1, &port) && port.state == IBV_PORT_ACTIVE);
	CHECK(!ibv_close_device(a));
}

/* A child that calls exit() does not wait for threads that it does not have; the parent goes on. */
static void fork_exit(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd;
	int status = -1;
	pid_t child = fork();

	if (!child) {
		CHECK(!ibv_open_device(first_device()) && errno == EIO);
		exit(7);
	}
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd && !ibv_dealloc_pd(pd));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"list_only", list_only}, {"open_twice", open_twice}, {"fork_exit", fork_exit}};

	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			puts("ok");
			return 0;
		}
	fprintf(stderr, "usage: life CASE\n");
	return 2;
}
