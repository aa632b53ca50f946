/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_SLAB_H
#define UR_EDGE_SLAB_H

#include <pthread.h>
#include <stddef.h>

#include <bsd/sys/queue.h>

/*
 * Memory on transparent huge pages, zeroed and 64-byte aligned: with thousands of queue pairs their
 * state and rings lie in more small pages than a TLB holds. Works, slower, where the kernel has no
 * huge pages to give. Outside DPDK's heap, which is as large as [eal] memory_mb and no larger.
 *
 * ur_huge_*: one object. ur_slab: many of a few sizes, in chunks of one huge page each; a chunk
 * whose objects are all free goes back to the system.
 *
 * Thread class: any; a slab has a lock of its own.
 */

/* NULL: no memory. Small objects do without a huge page. */
void *ur_huge_alloc(size_t bytes);
void ur_huge_free(void *p); /* NULL: nothing */

struct ur_slab_chunk;
LIST_HEAD(ur_slab_chunks, ur_slab_chunk);

#define UR_SLAB_CLASSES 128 /* sizes in [64 bytes, 512 KiB) */

struct ur_slab {
	pthread_mutex_t lock;
	struct ur_slab_class {
		size_t bytes;		    /* of an object */
		struct ur_slab_chunks room; /* those with room for one more */
	} class[UR_SLAB_CLASSES];
};

void ur_slab_init(struct ur_slab *s);
/* Chunks with objects that were not given back stay for good. */
void ur_slab_destroy(struct ur_slab *s);

/* NULL: no memory. */
void *ur_slab_alloc(struct ur_slab *s, size_t bytes);
/* `bytes` as it was asked for; p may be NULL. */
void ur_slab_free(struct ur_slab *s, void *p, size_t bytes);

#endif
