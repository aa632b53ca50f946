/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TRANSPORT_ORDERED_COPY_H
#define UR_TRANSPORT_ORDERED_COPY_H

#include <stdint.h>
#include <string.h>

/*
 * For applications that poll on the end of a message (docs/memory-ordering.md): a copy whose last bytes
 * appear after all others, by one store with release order.
 */

/* How many bytes [1, 8] that end at `end` one store can write; a power of two, at most len > 0. */
static inline uint32_t ur_ordered_tail(uintptr_t end, uint32_t len)
{
	uint32_t tail = 8;

	while (tail > len || end & (tail - 1))
		tail >>= 1;
	return tail;
}

#define UR_ORDERED_STORE(type, dst, src)                                                           \
	do {                                                                                       \
		type v_;                                                                           \
		memcpy(&v_, src, sizeof(v_));                                                      \
		__atomic_store_n((type *)(void *)(dst), v_, __ATOMIC_RELEASE);                     \
	} while (0)

/* Copies [src, src + len) to dst, which do not overlap; len > 0. RESP-STRICT-01 */
static inline void ur_ordered_copy(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint32_t tail = ur_ordered_tail((uintptr_t)dst + len, len), head = len - tail;

	memcpy(dst, src, head);
	switch (tail) {
	case 8:
		UR_ORDERED_STORE(uint64_t, dst + head, src + head);
		break;
	case 4:
		UR_ORDERED_STORE(uint32_t, dst + head, src + head);
		break;
	case 2:
		UR_ORDERED_STORE(uint16_t, dst + head, src + head);
		break;
	default:
		UR_ORDERED_STORE(uint8_t, dst + head, src + head);
	}
}

#undef UR_ORDERED_STORE

#endif
