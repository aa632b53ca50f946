/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/ingress_drop.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dpdk/worker.h"

#if __has_include("dpdk/ingress_drop.inc")
#include "dpdk/ingress_drop.inc" /* static const unsigned char ingress_drop_object[] */
#else
static const unsigned char ingress_drop_object[1];
#endif

#define TCX_INGRESS ((enum bpf_attach_type)46) /* BPF_TCX_INGRESS of linux/bpf.h since 6.6 */

static int load(struct ur_ingress_drop *d)
{
	int rc = bpf_object__load(d->object);

	if (rc)
		return rc;
	d->map = bpf_object__find_map_fd_by_name(d->object, "addresses");
	d->program = bpf_program__fd(bpf_object__find_program_by_name(d->object, "uroce_drop"));
	return d->map < 0 || d->program < 0 ? -ENOENT : 0;
}

/* One at a time: what libbpf prints with is the process's. */
static pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER;

/* libbpf prints its errors on stderr. Here none is worth a line: the socket drops the packets instead. */
int ur_ingress_drop_open(struct ur_ingress_drop *d)
{
	libbpf_print_fn_t print;
	int rc;

	*d = (struct ur_ingress_drop){.link = -1};
	if (sizeof(ingress_drop_object) == 1)
		return -ENOTSUP;
	pthread_mutex_lock(&quiet);
	print = libbpf_set_print(NULL);
	d->object = bpf_object__open_mem(ingress_drop_object, sizeof(ingress_drop_object), NULL);
	rc = d->object ? load(d) : -errno;
	libbpf_set_print(print);
	pthread_mutex_unlock(&quiet);
	if (rc)
		ur_ingress_drop_close(d);
	return rc;
}

void ur_ingress_drop_close(struct ur_ingress_drop *d)
{
	if (!d->object)
		return;
	if (d->link >= 0) {
		/* A child of fork() may have the descriptor, too, and must not detach its parent's. */
		if (!ur_worker_is_the_parents())
			bpf_link_detach(d->link);
		close(d->link);
	}
	bpf_object__close(d->object);
	d->object = NULL;
}

/* SHARED-INGRESS-01 */
int ur_ingress_drop_attach(struct ur_ingress_drop *d, unsigned ifindex)
{
	int fd = bpf_link_create(d->program, (int)ifindex, TCX_INGRESS, NULL);

	if (fd < 0)
		return fd;
	d->link = fd;
	return 0;
}

int ur_ingress_drop_add(const struct ur_ingress_drop *d, const struct ur_gid *address)
{
	return bpf_map_update_elem(d->map, address->b, &(uint64_t){0}, BPF_NOEXIST);
}

int ur_ingress_drop_remove(const struct ur_ingress_drop *d, const struct ur_gid *address)
{
	return bpf_map_delete_elem(d->map, address->b);
}

uint64_t ur_ingress_drop_count(const struct ur_ingress_drop *d, const struct ur_gid *address)
{
	uint64_t n = 0;

	return bpf_map_lookup_elem(d->map, address->b, &n) == 0 ? n : 0;
}
