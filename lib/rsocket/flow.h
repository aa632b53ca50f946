/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_FLOW_H
#define UR_RSOCKET_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "rsocket/proto.h"

/*
 * Flow control of one stream. Two things limit a sender: bytes of the receiver's buffer, granted in halves, and credits, one
 * for each message. Messages are numbered modulo 2^16.
 *
 * Thread class: under the socket's lock. No function here reads or writes a buffer.
 */

/* ---- receiving ---- */

/* Bytes are counted from the beginning of the stream; byte x lies at x % (2 * half) of the buffer. */
struct ur_rs_rx {
	uint32_t half;
	uint16_t depth; /* credits that are offered */
	/*
	 * Unread: [taken, arrived); the peer may write [arrived, granted). taken <= arrived <= granted <= taken + 2 * half, and
	 * granted is a multiple of half.
	 */
	uint64_t taken, arrived, granted;
	uint16_t seq;	/* messages that have arrived */
	uint16_t limit; /* the peer may send up to this one */
};

/* As the offer says: the first half is granted. */
static inline struct ur_rs_rx ur_rs_rx(uint32_t half, uint16_t depth)
{
	return (struct ur_rs_rx){.half = half, .depth = depth, .granted = half, .limit = depth};
}

/* RSOCKET-CREDIT-01. Counts a message that takes a credit. False: the peer had none. */
static inline bool ur_rs_rx_count(struct ur_rs_rx *rx)
{
	if (rx->seq == rx->limit)
		return false;
	rx->seq++;
	return true;
}

/* RSOCKET-DATA-01. Counts a message with data. False: it says more than lies between its first byte and the end of a granted half. */
static inline bool ur_rs_rx_data(struct ur_rs_rx *rx, uint32_t bytes)
{
	uint64_t room = rx->granted - rx->arrived;

	if (room > rx->half)
		room = rx->half - rx->arrived % rx->half;
	if (!ur_rs_rx_count(rx) || bytes > room)
		return false;
	rx->arrived += bytes;
	return true;
}

static inline uint64_t ur_rs_rx_unread(const struct ur_rs_rx *rx)
{
	return rx->arrived - rx->taken;
}

/* Whether half of the buffer is free and not granted. */
static inline bool ur_rs_rx_has_half(const struct ur_rs_rx *rx)
{
	return rx->granted <= rx->taken + rx->half;
}

/* Grants it, and returns where it begins in the buffer. */
static inline uint32_t ur_rs_rx_grant(struct ur_rs_rx *rx)
{
	uint32_t at = (uint32_t)(rx->granted % (2 * (uint64_t)rx->half));

	rx->granted += rx->half;
	return at;
}

/* Whether so many credits are due that a message is worth while. */
static inline bool ur_rs_rx_owes(const struct ur_rs_rx *rx)
{
	return (uint16_t)(rx->seq + rx->depth - rx->limit) >= (rx->depth + 1) / 2;
}

/* Gives all that are due. Returns the value of the credit message. */
static inline uint16_t ur_rs_rx_give(struct ur_rs_rx *rx)
{
	rx->limit = (uint16_t)(rx->seq + rx->depth);
	return rx->limit;
}

/* ---- sending ---- */

struct ur_rs_tx {
	uint16_t depth;		 /* credits that the peer has offered */
	uint16_t seq;		 /* messages sent */
	uint16_t limit;		 /* may send up to this one */
	struct ur_rs_sge target; /* what is left of the buffer that the peer has granted last */
};

static inline struct ur_rs_tx ur_rs_tx(const struct ur_rs_offer *peer)
{
	return (struct ur_rs_tx){
		.depth = peer->credits, .limit = peer->credits, .target = peer->buffer};
}

static inline bool ur_rs_tx_has_credit(const struct ur_rs_tx *tx)
{
	return tx->seq != tx->limit;
}

/* RSOCKET-CREDIT-02. False: more than the peer has offered. Only 16 bits of the value count. */
static inline bool ur_rs_tx_credit(struct ur_rs_tx *tx, uint32_t value)
{
	uint16_t limit = (uint16_t)value;

	if ((uint16_t)(limit - tx->seq) > tx->depth)
		return false;
	tx->limit = limit;
	return true;
}

/* Takes `bytes` of the target, at most target.bytes, for one message. Returns where they go. */
static inline struct ur_rs_sge ur_rs_tx_take(struct ur_rs_tx *tx, uint32_t bytes)
{
	struct ur_rs_sge to = {tx->target.addr, tx->target.key, bytes};

	tx->seq++;
	tx->target.addr += bytes;
	tx->target.bytes -= bytes;
	return to;
}

#endif
