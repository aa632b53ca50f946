/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UROCED_RING_H
#define UROCED_RING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The server's end of a pair of memif 2.0 rings (FD.io's libmemif defines the layout) in memory that the peer owns and
 * writes to at any time. Nothing there is trusted: an index or a descriptor is read once, compared with the limits, and
 * then used. Memory outside the region is never touched.
 *
 *	ring, 64-byte lines:  cookie 4, flags 2, head 2 | tail 2 | descriptors, 16 bytes each
 *	descriptor:	      flags 2, region 2, length 4, offset 4, metadata 4; native byte order
 *
 * UROCED-RING-01. Both rings: the peer makes descriptors available by moving head, we use them up by moving tail. They are those of frames
 * that the peer sends (rx), and of empty buffers (tx).
 *
 * Pure: no system call. Thread class: one thread.
 */
#define RING_COOKIE	  0x3e31f20
#define RING_HEADER_BYTES 128
#define RING_DESC_BYTES	  16
#define RING_SHIFT_MAX	  14
#define RING_CHAIN_MAX	  64 /* buffers of a frame: the peer decides how long a search takes */
#define RING_NEXT	  1  /* flag of a descriptor: the frame goes on in the next one */
#define RING_MASK_INT	  1  /* flag of a ring: its consumer polls */

struct region { /* memory of the peer */
	uint8_t *at;
	uint64_t bytes;
};

struct ring {
	uint8_t *at;   /* in the region */
	uint16_t mask; /* slots - 1 */
	uint16_t next; /* of ours, free-running: [next, head) are available */
	uint16_t done; /* tail as the peer sees it, <= next */
};

enum ring_result {
	RING_EMPTY, /* nothing is available, or too little */
	RING_DONE,  /* one frame */
	RING_SKIP, /* one frame was skipped: it is longer than the buffer, or than what the peer's buffers hold */
	RING_BROKEN, /* the ring contradicts itself */
};

/*
 * Finds a ring at `offset` of the region. False: it does not fit, or is not one. The peer polls it, or does not, as it
 * likes; we poll.
 */
bool ring_open(struct ring *r, const struct region *m, uint32_t offset, uint8_t shift);

/* Copies the next frame to [buf, buf + cap). RING_DONE: *len bytes. */
enum ring_result ring_receive(struct ring *r, const struct region *m, uint8_t *buf, uint32_t cap,
			      uint32_t *len);
/* Copies a frame, len > 0, to the peer's buffers. RING_EMPTY: they do not suffice now. */
enum ring_result ring_send(struct ring *r, const struct region *m, const uint8_t *frame,
			   uint32_t len);
/* Shows the peer what was used up. After a burst. */
void ring_publish(struct ring *r);
/*
 * UROCED-WAKE-02. Asks the peer to interrupt us when it sends from now on, or not to. What it sent before causes no interrupt: after the
 * call for interrupts, the caller receives once more.
 */
void ring_ask_interrupts(struct ring *r, bool on);
/* UROCED-WAKE-01. After ring_publish(): whether the peer, as the consumer of what was sent, sleeps until it is woken. */
bool ring_wants_wake(const struct ring *r);

#endif
