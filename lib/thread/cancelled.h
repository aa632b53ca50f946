/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_THREAD_CANCELLED_H
#define UR_THREAD_CANCELLED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UR_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define UR_ASAN 1
#endif

#ifdef UR_ASAN
#include <sanitizer/asan_interface.h>
#define UR_CANCELLED_BYTES 16384
#endif

/*
 * To be called first in a clean-up handler of pthread_cleanup_push(). AddressSanitizer does not see that the frames below are gone when a thread is
 * cancelled, and would take what it has poisoned there for parts of later frames. Without the sanitizer it does nothing.
 */
static inline __attribute__((always_inline)) void ur_cancelled(void)
{
#ifdef UR_ASAN
	__asan_unpoison_memory_region((char *)__builtin_frame_address(0) - UR_CANCELLED_BYTES,
				      UR_CANCELLED_BYTES);
#endif
}

#endif
