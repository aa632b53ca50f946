/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring.h"

#include <string.h>

#define HEAD_OFFSET  6
#define FLAGS_OFFSET 4
#define TAIL_OFFSET  64

struct desc {
	uint16_t flags, region;
	uint32_t length, offset;
};

static uint8_t *desc_at(const struct ring *r, uint16_t i)
{
	return r->at + RING_HEADER_BYTES + (uint32_t)(i & r->mask) * RING_DESC_BYTES;
}

/* Each field once: the peer may change it between two reads. */
static struct desc read_desc(const struct ring *r, uint16_t i)
{
	const uint8_t *at = desc_at(r, i);

	return (struct desc){
		.flags = __atomic_load_n((const uint16_t *)(const void *)at, __ATOMIC_RELAXED),
		.region =
			__atomic_load_n((const uint16_t *)(const void *)(at + 2), __ATOMIC_RELAXED),
		.length =
			__atomic_load_n((const uint32_t *)(const void *)(at + 4), __ATOMIC_RELAXED),
		.offset =
			__atomic_load_n((const uint32_t *)(const void *)(at + 8), __ATOMIC_RELAXED),
	};
}

static bool is_inside(const struct desc *d, const struct region *m)
{
	return d->region == 0 && d->length <= m->bytes && d->offset <= m->bytes - d->length;
}

/* Descriptors that are available; negative: more than there are. */
static int available(const struct ring *r)
{
	uint16_t head = __atomic_load_n((const uint16_t *)(const void *)(r->at + HEAD_OFFSET),
					__ATOMIC_ACQUIRE);
	uint16_t cnt = (uint16_t)(head - r->next);

	return cnt > r->mask + 1 ? -1 : cnt;
}

bool ring_open(struct ring *r, const struct region *m, uint32_t offset, uint8_t shift)
{
	uint64_t bytes;
	uint32_t cookie;

	if (!shift || shift > RING_SHIFT_MAX || offset % 8)
		return false;
	bytes = RING_HEADER_BYTES + ((uint64_t)RING_DESC_BYTES << shift);
	if (bytes > m->bytes || offset > m->bytes - bytes)
		return false;
	*r = (struct ring){.at = m->at + offset, .mask = (uint16_t)((1u << shift) - 1)};
	memcpy(&cookie, r->at, 4);
	if (cookie != RING_COOKIE)
		return false;
	__atomic_store_n((uint16_t *)(void *)(r->at + HEAD_OFFSET), 0, __ATOMIC_RELAXED);
	__atomic_store_n((uint16_t *)(void *)(r->at + TAIL_OFFSET), 0, __ATOMIC_RELAXED);
	__atomic_store_n((uint16_t *)(void *)(r->at + FLAGS_OFFSET), RING_MASK_INT,
			 __ATOMIC_RELEASE);
	return true;
}

enum ring_result ring_receive(struct ring *r, const struct region *m, uint8_t *buf, uint32_t cap,
			      uint32_t *len)
{
	int cnt = available(r);
	uint32_t got = 0;
	bool fits = true;
	uint16_t at = r->next;

	if (cnt <= 0)
		return cnt ? RING_BROKEN : RING_EMPTY;
	for (;; at++) {
		struct desc d = read_desc(r, at);

		if (!cnt-- || (uint16_t)(at - r->next) == RING_CHAIN_MAX || !is_inside(&d, m))
			return RING_BROKEN;
		fits = fits && d.length <= cap - got;
		if (fits) {
			memcpy(buf + got, m->at + d.offset, d.length);
			got += d.length;
		}
		if (!(d.flags & RING_NEXT))
			break;
	}
	r->next = (uint16_t)(at + 1);
	*len = got;
	return fits ? RING_DONE : RING_SKIP;
}

static void write_desc(const struct ring *r, uint16_t i, uint32_t length, bool more)
{
	uint8_t *at = desc_at(r, i);

	__atomic_store_n((uint32_t *)(void *)(at + 4), length, __ATOMIC_RELAXED);
	__atomic_store_n((uint16_t *)(void *)at, more ? RING_NEXT : 0, __ATOMIC_RELAXED);
}

/* What does not fit into all buffers of an unused ring, or into the longest chain, never will. */
static enum ring_result wait_or_skip(const struct ring *r, int cnt)
{
	return cnt == r->mask + 1 || cnt >= RING_CHAIN_MAX ? RING_SKIP : RING_EMPTY;
}

enum ring_result ring_send(struct ring *r, const struct region *m, const uint8_t *frame,
			   uint32_t len)
{
	int cnt = available(r);
	uint16_t at = r->next;
	uint32_t put = 0;

	if (cnt < 0)
		return RING_BROKEN;
	for (int left = cnt < RING_CHAIN_MAX ? cnt : RING_CHAIN_MAX; put < len; left--, at++) {
		struct desc d;
		uint32_t part;

		if (!left)
			return wait_or_skip(r, cnt);
		d = read_desc(r, at);
		if (!is_inside(&d, m))
			return RING_BROKEN;
		part = d.length < len - put ? d.length : len - put;
		memcpy(m->at + d.offset, frame + put, part);
		put += part;
		write_desc(r, at, part, put < len);
	}
	r->next = at;
	return RING_DONE;
}

void ring_publish(struct ring *r)
{
	if (r->done == r->next)
		return;
	r->done = r->next;
	__atomic_store_n((uint16_t *)(void *)(r->at + TAIL_OFFSET), r->done, __ATOMIC_RELEASE);
}

void ring_ask_interrupts(struct ring *r, bool on)
{
	__atomic_store_n((uint16_t *)(void *)(r->at + FLAGS_OFFSET), on ? 0 : RING_MASK_INT,
			 __ATOMIC_RELAXED);
	/* The peer moves head and then looks at the flag: one of the two sees what the other has written. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool ring_wants_wake(const struct ring *r)
{
	/* The peer clears the flag and then looks at tail: one of the two sees what the other has written. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !(__atomic_load_n((const uint16_t *)(const void *)(r->at + FLAGS_OFFSET),
				 __ATOMIC_RELAXED) &
		 RING_MASK_INT);
}
