/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/direct_ring.h"

#define LINE 64

_Static_assert(sizeof(struct ur_direct_slot) == 8, "both ends agree on the layout");
_Static_assert(sizeof(struct ur_direct_side) == 2 * LINE, "both ends agree on the layout");

static uint32_t slot_bytes(uint32_t frame_max)
{
	return (uint32_t)((sizeof(struct ur_direct_slot) + frame_max + LINE - 1) / LINE * LINE);
}

static size_t side_bytes(uint32_t frame_max)
{
	return sizeof(struct ur_direct_side) + (size_t)UR_DIRECT_SLOTS * slot_bytes(frame_max);
}

size_t ur_direct_bytes(uint32_t frame_max)
{
	return 2 * side_bytes(frame_max);
}

void ur_direct_ring_init(struct ur_direct_ring *r, void *memory, uint32_t frame_max, bool second)
{
	uint8_t *side[2] = {memory, (uint8_t *)memory + side_bytes(frame_max)};

	*r = (struct ur_direct_ring){
		.own = (void *)side[second],
		.other = (void *)side[!second],
		.frame_max = frame_max,
		.slot_bytes = slot_bytes(frame_max),
		.free_until = UR_DIRECT_SLOTS,
	};
}

static size_t slot_at(const struct ur_direct_ring *r, uint32_t frame)
{
	return (size_t)(frame % UR_DIRECT_SLOTS) * r->slot_bytes;
}

void ur_direct_set_ready(struct ur_direct_ring *r)
{
	atomic_store_explicit(&r->own->ready, 1, memory_order_release);
}

bool ur_direct_is_ready(struct ur_direct_ring *r)
{
	if (__builtin_expect(!r->other_ready, 0))
		r->other_ready = atomic_load_explicit(&r->other->ready, memory_order_acquire) != 0;
	return r->other_ready;
}

/* A head that cannot be is taken for one of a full ring. */
uint8_t *ur_direct_room(struct ur_direct_ring *r)
{
	struct ur_direct_slot *slot = (void *)(r->own->slots + slot_at(r, r->sent));

	if (r->sent == r->free_until) {
		uint32_t head = atomic_load_explicit(&r->other->head, memory_order_acquire);

		if (r->sent - head >= UR_DIRECT_SLOTS)
			return NULL;
		r->free_until = head + UR_DIRECT_SLOTS;
	}
	return slot->frame;
}

void ur_direct_push(struct ur_direct_ring *r, uint32_t len)
{
	struct ur_direct_slot *slot = (void *)(r->own->slots + slot_at(r, r->sent));

	atomic_store_explicit(&slot->len, len, memory_order_relaxed);
	atomic_store_explicit(&slot->turn, ++r->sent, memory_order_release);
}

static const struct ur_direct_slot *arrived(const struct ur_direct_ring *r, uint32_t i)
{
	return (const void *)(r->other->slots + slot_at(r, r->taken + i));
}

uint32_t ur_direct_waiting(const struct ur_direct_ring *r, uint32_t most)
{
	uint32_t n = 0;

	if (most > UR_DIRECT_SLOTS)
		most = UR_DIRECT_SLOTS;
	while (n < most &&
	       atomic_load_explicit(&arrived(r, n)->turn, memory_order_acquire) == r->taken + n + 1)
		n++;
	return n;
}

const uint8_t *ur_direct_frame(const struct ur_direct_ring *r, uint32_t i, uint32_t *len)
{
	const struct ur_direct_slot *slot = arrived(r, i);
	uint32_t said = atomic_load_explicit(&slot->len, memory_order_relaxed);

	*len = said <= r->frame_max ? said : 0;
	return slot->frame;
}

void ur_direct_take(struct ur_direct_ring *r, uint32_t cnt)
{
	r->taken += cnt;
	atomic_store_explicit(&r->own->head, r->taken, memory_order_release);
}

void ur_direct_set_sleeps(struct ur_direct_ring *r, bool sleeps)
{
	if (sleeps == (r->sleeps & 1))
		return;
	atomic_store_explicit(&r->own->sleeps, ++r->sleeps, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

bool ur_direct_must_wake(struct ur_direct_ring *r)
{
	atomic_thread_fence(memory_order_seq_cst);
	r->other_sleeps = atomic_load_explicit(&r->other->sleeps, memory_order_relaxed);
	return (r->other_sleeps & 1) && r->other_sleeps != r->woken;
}

void ur_direct_set_woken(struct ur_direct_ring *r)
{
	r->woken = r->other_sleeps;
}
