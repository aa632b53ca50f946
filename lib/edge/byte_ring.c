/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/byte_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each record begins with its length. SKIP means: continue at the start of the buffer. */
#define HEAD_BYTES 8
#define SKIP	   UINT64_MAX

int ur_byte_ring_init(struct ur_byte_ring *r, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->size = 4096;
	while (r->size < size)
		r->size *= 2;
	r->buf = malloc(r->size);
	return r->buf ? 0 : -ENOMEM;
}

void ur_byte_ring_fini(struct ur_byte_ring *r)
{
	free(r->buf);
	r->buf = NULL;
}

static uint64_t record_bytes(uint64_t len)
{
	return HEAD_BYTES + ((len + 7) & ~(uint64_t)7);
}

void *ur_byte_ring_reserve(struct ur_byte_ring *r, size_t len)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t need = record_bytes(len), pos = tail & (r->size - 1);
	uint64_t skip = r->size - pos < need ? r->size - pos : 0, word = len;

	if (r->size - (tail - head) < need + skip)
		return NULL;
	if (skip) {
		uint64_t mark = SKIP;

		memcpy(r->buf + pos, &mark, HEAD_BYTES);
		pos = 0;
	}
	memcpy(r->buf + pos, &word, HEAD_BYTES);
	r->reserved = tail + skip + need;
	return r->buf + pos + HEAD_BYTES;
}

void ur_byte_ring_commit(struct ur_byte_ring *r)
{
	atomic_store_explicit(&r->tail, r->reserved, memory_order_release);
}

const void *ur_byte_ring_peek(struct ur_byte_ring *r, size_t *len)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t pos = head & (r->size - 1), word;

	if (head == atomic_load_explicit(&r->tail, memory_order_acquire))
		return NULL;
	memcpy(&word, r->buf + pos, HEAD_BYTES);
	if (word == SKIP) {
		atomic_store_explicit(&r->head, head + r->size - pos, memory_order_release);
		pos = 0;
		memcpy(&word, r->buf, HEAD_BYTES);
	}
	*len = word;
	return r->buf + pos + HEAD_BYTES;
}

void ur_byte_ring_release(struct ur_byte_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), word;

	memcpy(&word, r->buf + (head & (r->size - 1)), HEAD_BYTES);
	atomic_store_explicit(&r->head, head + record_bytes(word), memory_order_release);
}
