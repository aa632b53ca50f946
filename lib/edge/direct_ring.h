/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_EDGE_DIRECT_RING_H
#define UR_EDGE_DIRECT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A ring of frames each way between two processes of one host that do not trust each other (docs/design/uroced.md,
 * UROCED-DIRECT-01). Their shared memory has two sides. An end writes to its own side and never reads it, and reads each word of
 * the other side once. So whatever the other end writes, and to whichever side, only changes what arrives from it.
 *
 * A slot is full when its `turn` is the number of its frame, counted from 1: the consumer looks at the slot alone, and finds a small frame
 * in the same cache line.
 *
 * Thread class: sending and taking: the worker. set_ready, set_sleeps: any, one at a time.
 */
#define UR_DIRECT_SLOTS 128 /* a power of two */

struct ur_direct_slot {
	_Atomic uint32_t turn, len;
	uint8_t frame[];
};

/* What one end writes. The slots follow. */
struct ur_direct_side {
	_Alignas(64) _Atomic uint32_t head; /* frames that this end has taken from the other side */
	_Alignas(64) _Atomic uint32_t ready; /* it takes frames */
	_Atomic uint32_t sleeps;	     /* odd: it sleeps; each time another number */
	_Alignas(64) uint8_t slots[];
};

/* One end. */
struct ur_direct_ring {
	struct ur_direct_side *own;
	const struct ur_direct_side *other;
	uint32_t frame_max, slot_bytes;
	uint32_t sent, taken; /* frames of this end, frames of the other one; free-running */
	uint32_t free_until; /* frames that may be sent before the other end's head is read again */
	uint32_t sleeps;     /* of this end, as in its side */
	uint32_t other_sleeps, woken; /* of the other end, as read last; when it was woken last */
	bool other_ready;	      /* as it was read last: it does not become unready */
};

/* Bytes of the memory, for frames of at most `frame_max` bytes. */
size_t ur_direct_bytes(uint32_t frame_max);

/* One end of memory that was zeroed before both began. `second`: which of the two. */
void ur_direct_ring_init(struct ur_direct_ring *r, void *memory, uint32_t frame_max, bool second);

/* From now on this end takes frames. */
void ur_direct_set_ready(struct ur_direct_ring *r);
/* Whether the other end does. */
bool ur_direct_is_ready(struct ur_direct_ring *r);

/* Where the next frame is to be written, frame_max bytes; NULL: the ring is full. */
uint8_t *ur_direct_room(struct ur_direct_ring *r);
/* Sends what was written there. */
void ur_direct_push(struct ur_direct_ring *r, uint32_t len);

/* How many frames have arrived, at most `most`. */
uint32_t ur_direct_waiting(const struct ur_direct_ring *r, uint32_t most);
/* The i-th of them, which the other end may still change: copy it, and look at the copy. *len: at most frame_max, 0 if it is longer. */
const uint8_t *ur_direct_frame(const struct ur_direct_ring *r, uint32_t i, uint32_t *len);
/* The first `cnt` of them are taken. */
void ur_direct_take(struct ur_direct_ring *r, uint32_t cnt);

/*
 * Before a sleep this end says so, and looks at the ring once more; after it has sent, the other end looks at that. Both have a fence between the
 * two, so that no frame is slept over.
 */
void ur_direct_set_sleeps(struct ur_direct_ring *r, bool sleeps);
/* After a push: whether the other end sleeps, and has not been woken from this sleep. */
bool ur_direct_must_wake(struct ur_direct_ring *r);
/* After that: the caller has woken it. */
void ur_direct_set_woken(struct ur_direct_ring *r);

#endif
