/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_TSAN_H
#define UR_EDGE_TSAN_H

/*
 * DPDK's libraries are not instrumented, so ThreadSanitizer does not see when a packet buffer
 * changes its owner in a driver or in a pool. These functions annotate this. Without the sanitizer they
 * do nothing.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UR_TSAN 1
#endif
#endif

#ifdef UR_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

/* This thread has received these buffers, or passes them on. */
static inline void ur_tsan_got(void **objects, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__tsan_acquire(objects[i]);
}

static inline void ur_tsan_gives(void **objects, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__tsan_release(objects[i]);
}
#else
static inline void ur_tsan_got(void **objects, unsigned n)
{
}

static inline void ur_tsan_gives(void **objects, unsigned n)
{
}
#endif

#endif
