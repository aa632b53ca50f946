/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_BYTE_RING_H
#define UR_EDGE_BYTE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Records of bytes from one thread to one other, without locks. Each record lies in one piece. The
 * producer reserves, fills and commits; the consumer peeks and releases.
 *
 * Unread bytes are [head, tail), free-running; tail - head is in [0, size].
 */
struct ur_byte_ring {
	uint8_t *buf;
	uint64_t size;				/* a power of two */
	_Alignas(64) atomic_uint_fast64_t tail; /* written by the producer */
	uint64_t reserved;			/* producer: tail after the commit */
	_Alignas(64) atomic_uint_fast64_t head; /* written by the consumer */
};

/* Memory of at least `size` bytes, rounded up to a power of two. -ENOMEM, or 0. */
int ur_byte_ring_init(struct ur_byte_ring *r, size_t size);
void ur_byte_ring_fini(struct ur_byte_ring *r);

/* Producer: room for len bytes, 8-aligned, in one piece; NULL when the ring is too full now. */
void *ur_byte_ring_reserve(struct ur_byte_ring *r, size_t len);
/* Producer: makes the record reserved last visible. Without it a new reserve starts over. */
void ur_byte_ring_commit(struct ur_byte_ring *r);

/* Consumer: the oldest record and its length; NULL when there is none. Stays until released. */
const void *ur_byte_ring_peek(struct ur_byte_ring *r, size_t *len);
void ur_byte_ring_release(struct ur_byte_ring *r);

#endif
