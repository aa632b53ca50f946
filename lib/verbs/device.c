/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strchrnul */
#endif
#include "verbs/device.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uroce/counters.h"
#include "verbs/names.h"

#undef ibv_get_device_list

#define SETS_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ur_verbs_device *devices[UR_VERBS_DEVICES_MAX];
static unsigned device_cnt;
static bool listed;
static pid_t
	owner; /* the process that opens endpoints, or 0; a forked child does not have their threads */

/*
 * Where a program's needs differ from those of a program of liburoce's. A file overrides what has "?", UROCE_SET
 * overrides everything.
 */
static const char *const defaults[] = {
	"eal.memory_mb?=64", /* packets and rings of one worker, where hugepages are taken at once */
	"eal.extra?=--no-telemetry", /* no socket and no thread that the program does not expect */
	"worker.mode=inline",	     /* one process of many on this host: no core of its own */
	"worker.thread_safe=yes",    /* what verbs promises */
	"transport.strict?=yes",     /* for programs that poll on the last byte */
	"transport.min_timeout?=19", /* 2.1 s: many ask for 14, 8 times 67 ms, in which a peer may get no CPU */
	"transport.max_mr?=65536", /* for caches of registrations */
	"transport.max_pd?=1024",
};

/* FNV-1a. */
static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h;
}

/*
 * A GUID of this host, network namespace and configuration, since the MAC address is not known before the
 * endpoint opens. Locally administered, as by EUI-64.
 */
static uint64_t make_guid(const char *what)
{
	char where[64] = "", boot[64] = "";
	uint64_t h = hash(UINT64_C(0xcbf29ce484222325), what);
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, boot, sizeof(boot) - 1) > 0)
			h = hash(h, boot);
		close(fd);
	}
	if (readlink("/proc/self/ns/net", where, sizeof(where) - 1) > 0)
		h = hash(h, where);
	return (h & ~(UINT64_C(3) << 56)) | UINT64_C(2) << 56;
}

static const char *process_text(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", (int)getpid());
	return text;
}

/* Some programs choose how they work by the part numbers they know. */
static uint32_t part_id(void)
{
	const char *text = secure_getenv("UROCE_PART_ID");

	return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

static void add(const char *config, const char *dev)
{
	struct ur_verbs_device *d;

	if (device_cnt == UR_VERBS_DEVICES_MAX || !(d = calloc(1, sizeof(*d))))
		return;
	d->config = config;
	if (dev && asprintf(&d->dev, "port.dev=%s", dev) < 0) {
		free(d);
		return;
	}
	d->guid = make_guid(config ? config : dev);
	/* Each process has a port of its own, although they name the same. */
	if (dev && strncmp(dev, "uroced", strlen("uroced")) == 0)
		d->guid = (hash(d->guid, process_text()) & ~(UINT64_C(3) << 56)) | UINT64_C(2)
											   << 56;
	d->part_id = part_id();
	d->base.node_type = IBV_NODE_CA;
	d->base.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->base.name, sizeof(d->base.name), "uroce%u", device_cnt);
	snprintf(d->base.dev_name, sizeof(d->base.dev_name), "uroce%u", device_cnt);
	snprintf(d->base.dev_path, sizeof(d->base.dev_path), "/sys/class/infiniband_verbs/%s",
		 d->base.name);
	snprintf(d->base.ibdev_path, sizeof(d->base.ibdev_path), "/sys/class/infiniband/%s",
		 d->base.name);
	devices[device_cnt++] = d;
}

/* Calls `each` for every non-empty word of an environment variable; the words live as long as the process. */
static void for_words(const char *variable, char separator, void (*each)(const char *word))
{
	const char *text = secure_getenv(variable);
	char *words = text ? strdup(text) : NULL, *end;

	for (char *w = words; w && *w; w = end) {
		end = strchrnul(w, separator);
		if (*end)
			*end++ = '\0';
		if (*w)
			each(w);
	}
}

static void add_config(const char *word)
{
	add(word, NULL);
}

static void add_dev(const char *word)
{
	add(NULL, word);
}

/*
 * EDGE-FORK-03. In a child of fork(). A thread that the child does not have may hold the lock: it was opening an endpoint, which stays its
 * parent's, or was in the middle of the list, which is made anew.
 */
static void after_fork(void)
{
	if (!pthread_mutex_trylock(&lock)) {
		pthread_mutex_unlock(&lock);
		return;
	}
	pthread_mutex_init(&lock, NULL);
	if (!owner) {
		listed = false;
		device_cnt = 0;
	}
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static void enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
}

/* Under the lock. */
static void make_list(void)
{
	if (listed)
		return;
	listed = true;
	for_words("UROCE_CONFIG", ':', add_config);
	for_words("UROCE_DEV", ',', add_dev);
	if (!device_cnt && access(UR_VERBS_CONFIG, R_OK) == 0)
		add(UR_VERBS_CONFIG, NULL);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(UR_VERBS_DEVICES_MAX + 1, sizeof(*list));

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return NULL;
	enter();
	make_list();
	for (unsigned i = 0; i < device_cnt; i++)
		list[i] = &devices[i]->base;
	if (num_devices)
		*num_devices = (int)device_cnt;
	pthread_mutex_unlock(&lock);
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return -1; /* the kernel has none for it */
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(ur_verbs_device(device)->guid);
}

/* ---- open and close ---- */

static const char *sets[SETS_MAX];
static unsigned set_cnt;

static void add_set(const char *word)
{
	if (set_cnt < SETS_MAX - 2)
		sets[set_cnt++] = word;
}

/* At exit, with UROCE_LOG: what [impair] has done, for tests of programs on a bad network. */
static void say_impaired(void)
{
	struct uroce_counters c;

	if (owner != getpid())
		return;
	for (unsigned i = 0; i < device_cnt; i++) {
		struct ur_verbs_device *d = devices[i];

		if (d->ctx && !uroce_query_counters(d->ctx, &c) && c.impaired_lost)
			fprintf(stderr,
				"uroce: %s: [impair] dropped %llu packets; %llu were accepted\n",
				d->base.name, (unsigned long long)c.impaired_lost,
				(unsigned long long)c.rx_packets);
	}
}

/* Under the lock. One endpoint opens for all opens of the device. */
static struct ibv_context *open_endpoint(struct ur_verbs_device *d)
{
	struct uroce_open_attr attr = {.config = d->config, .set = sets};
	char err[512] = "";
	struct ibv_context *ctx;
	pid_t had = owner;

	set_cnt = 0;
	for (unsigned i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		add_set(defaults[i]);
	if (d->dev)
		add_set(d->dev);
	for_words("UROCE_SET", ';', add_set);
	sets[set_cnt] = NULL;
	owner = getpid(); /* a child that is forked meanwhile is not */
	ctx = uroce_open(&attr, err, sizeof(err));
	if (!ctx) {
		int why = errno;

		/* The program's own message says at most which device. */
		fprintf(stderr, "uroce: %s: %s\n", d->base.name, err);
		owner = had;
		errno = why;
	} else if (!had && secure_getenv("UROCE_LOG")) {
		atexit(say_impaired);
	}
	return ctx;
}

/* How a context looks to the program. */
static void dress(struct ur_verbs_device *d, struct ibv_context *ctx)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	ctx->device = &d->base;
	verbs_get_ctx(ctx)->query_port = ur_verbs_query_port;
	verbs_get_ctx(ctx)->query_device_ex = ur_verbs_query_device_ex;
	/* Some programs use the number of a CPU as a vector. */
	if (cpus > ctx->num_comp_vectors)
		ctx->num_comp_vectors = (int)cpus;
}

/* VERBS-OPEN-01: the endpoint's first context is the library's, and keeps the endpoint open. */
struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ur_verbs_device *d = ur_verbs_device(device);
	struct ibv_context *ctx = NULL;

	enter();
	if (owner && owner != getpid())
		errno = EIO;
	else if (d->ctx || (d->ctx = open_endpoint(d)))
		ctx = uroce_share(d->ctx);
	if (ctx)
		dress(d, ctx);
	pthread_mutex_unlock(&lock);
	return ctx;
}

/*
 * Programs close in any order, and do not look at the result. With a kernel, objects that are left end with their context;
 * here they stay, but peers reach nothing by them.
 */
int ibv_close_device(struct ibv_context *ctx)
{
	int rc = uroce_close(ctx);

	if (rc != EBUSY)
		return rc;
	uroce_abandon(ctx);
	return 0;
}
