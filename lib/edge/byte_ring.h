/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_BYTE_RING_H
#define UR_EDGE_BYTE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A lock-free ring of byte records, with one producer thread and one consumer thread. Each record
 * is contiguous. The producer reserves, fills and commits; the consumer peeks and releases.
 *
 * Unread bytes are [head, tail), free-running. tail - head is in [0, size].
 */
struct ur_byte_ring {
	uint8_t *buf;
	uint64_t size;				/* a power of two */
	_Alignas(64) atomic_uint_fast64_t tail; /* written by the producer */
	uint64_t reserved;			/* producer: tail after the commit */
	_Alignas(64) atomic_uint_fast64_t head; /* written by the consumer */
};

/* Allocates `size` bytes, rounded up to a power of two. Returns 0 or -ENOMEM. */
int ur_byte_ring_init(struct ur_byte_ring *r, size_t size);
void ur_byte_ring_fini(struct ur_byte_ring *r);

/* Producer: returns `len` contiguous bytes, aligned to 8; NULL if the ring is too full now. */
void *ur_byte_ring_reserve(struct ur_byte_ring *r, size_t len);
/* Producer: publishes the last reserved record. Without it, the next reserve replaces the record. */
void ur_byte_ring_commit(struct ur_byte_ring *r);

/* Consumer: the oldest record and its length, valid until released; NULL if the ring is empty. */
const void *ur_byte_ring_peek(struct ur_byte_ring *r, size_t *len);
void ur_byte_ring_release(struct ur_byte_ring *r);

#endif
