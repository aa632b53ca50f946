/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_PATH_POOL_H
#define UR_TRANSPORT_PATH_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "wire/path.h"

/*
 * The headers to the destinations of a worker's queue pairs (docs/design/transport.md). Queue pairs whose headers differ
 * in nothing but the UDP source port share one path: the port is the queue pair's own, see ur_build_from_qp().
 *
 * Thread class: the worker. Nothing is allocated; every operation takes constant time, as long as few paths lead to the
 * same address.
 */

/* A line of cache has all that packets without a tag over IPv4 read. */
struct ur_shared_path {
	_Alignas(64) struct ur_path path; /* its UDP source port is 0 */
	uint32_t user_cnt;
	LIST_ENTRY(ur_shared_path) link; /* in a bucket, or free */
};

LIST_HEAD(ur_shared_paths, ur_shared_path);

struct ur_path_pool {
	struct ur_shared_paths free, *bucket;
	uint32_t mask; /* buckets - 1 */
	uint64_t seed;
};

/* Bytes of memory for `cnt` >= 1 paths. */
size_t ur_path_pool_size(uint32_t cnt);
/* `memory` is aligned to 64 bytes; `seed` makes the buckets of addresses unpredictable. */
void ur_path_pool_init(struct ur_path_pool *p, void *memory, uint32_t cnt, uint64_t seed);

/* The path of a queue pair that has none: it leads nowhere, and its length is 0. */
extern const struct ur_path ur_path_none;

/*
 * What *mine points to, ur_path_none or a path of the pool, is given back and replaced by `path` with UDP source port 0.
 * There are as many paths as users at least, so there is always one.
 */
void ur_path_pool_replace(struct ur_path_pool *p, const struct ur_path **mine,
			  const struct ur_path *path);
/* Gives it back: *mine is ur_path_none. */
void ur_path_pool_give(struct ur_path_pool *p, const struct ur_path **mine);

#endif
