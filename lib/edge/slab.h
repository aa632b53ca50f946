/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_SLAB_H
#define UR_EDGE_SLAB_H

#include <pthread.h>
#include <stddef.h>

#include <bsd/sys/queue.h>

/*
 * Memory on transparent huge pages, zeroed and aligned to 64 bytes. The state and rings of
 * thousands of queue pairs occupy more small pages than a TLB has entries. Without huge pages in
 * the kernel it works as well, but slower. The memory is outside DPDK's heap, whose size is fixed
 * by [eal] memory_mb.
 *
 * ur_huge_alloc() is for single objects. ur_slab is for many objects of a few sizes; each chunk is
 * one huge page. When all its objects are free it is returned to the system, except one of each size:
 * a program that makes and destroys one object at a time should not wait for a chunk to be zeroed.
 *
 * Thread class: any. A slab has its own lock.
 */

/* Returns NULL if memory is out. Small objects get no huge page. */
void *ur_huge_alloc(size_t bytes);
void ur_huge_free(void *p); /* NULL is allowed */

struct ur_slab_chunk;
LIST_HEAD(ur_slab_chunks, ur_slab_chunk);

#define UR_SLAB_CLASSES 128 /* sizes in [64 bytes, 512 KiB) */

struct ur_slab {
	pthread_mutex_t lock;
	struct ur_slab_class {
		size_t bytes;		     /* size of an object */
		struct ur_slab_chunks room;  /* chunks with a free object, and one in use */
		struct ur_slab_chunk *spare; /* without an object in use, or NULL */
	} class[UR_SLAB_CLASSES];
};

void ur_slab_init(struct ur_slab *s);
/* Chunks with objects that were not freed are leaked. */
void ur_slab_destroy(struct ur_slab *s);

/* Returns NULL if memory is out. */
void *ur_slab_alloc(struct ur_slab *s, size_t bytes);
/* `bytes` is the size requested from ur_slab_alloc(). `p` may be NULL. */
void ur_slab_free(struct ur_slab *s, void *p, size_t bytes);

#endif
