/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlvsym */
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * load LIBRARY...: a program that is not linked with the libraries, as NCCL and UCX are not, loads and unloads them
 * several times, and uses the device in between. Then it exits with the libraries unloaded. Prints "ok", or what went wrong.
 */

#define TIMES 3

struct ibv_context;
struct ibv_device;

typedef struct ibv_device **list_call(int *num);
typedef void free_call(struct ibv_device **list);
typedef struct ibv_context *open_call(struct ibv_device *device);
typedef int close_call(struct ibv_context *ctx);

static void fail(const char *what)
{
	const char *why = dlerror();

	printf("%s: %s\n", what, why ? why : "");
	exit(1);
}

static void *find(void *library, const char *name)
{
	void *symbol = dlvsym(library, name, "IBVERBS_1.1");

	if (!symbol)
		fail(name);
	return symbol;
}

static void use(void *library)
{
	list_call *list_devices = (list_call *)find(library, "ibv_get_device_list");
	free_call *free_list = (free_call *)find(library, "ibv_free_device_list");
	open_call *open_device = (open_call *)find(library, "ibv_open_device");
	close_call *close_device = (close_call *)find(library, "ibv_close_device");
	struct ibv_device **list = list_devices(NULL);
	struct ibv_context *ctx;

	if (!list || !list[0])
		fail("ibv_get_device_list");
	ctx = open_device(list[0]);
	free_list(list);
	if (!ctx || close_device(ctx))
		fail("ibv_open_device or ibv_close_device");
}

int main(int argc, char **argv)
{
	for (int i = 0; i < TIMES; i++)
		for (int k = 1; k < argc; k++) {
			void *library = dlopen(argv[k], RTLD_NOW | RTLD_LOCAL);

			if (!library)
				fail("dlopen");
			if (k == 1)
				use(library);
			if (dlclose(library))
				fail("dlclose");
		}
	puts("ok");
	return 0;
}
