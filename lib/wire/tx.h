/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_TX_H
#define UR_WIRE_TX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/icrc.h"

/*
 * A packet to send, as the engine passes it to the owner of the port: headers in the caller's
 * buffer, payload by reference. The owner builds the frame with ur_tx_write() or, without copying
 * the payload, piece by piece.
 *
 * The payload belongs to the application and must be read before the next call of the engine.
 */
#define UR_FRAGS_MAX 32

struct ur_frag {
	const uint8_t *base;
	uint32_t length; /* bytes */
};

struct ur_tx {
	uint8_t *hdr;	  /* in: a buffer of UR_HDR_MAX bytes; out: Ethernet to the last header */
	uint16_t hdr_len; /* bytes */
	uint16_t payload_len; /* bytes, sum of all fragments */
	uint8_t l3_off;	      /* offset of the IP header: 14 or 18 */
	uint8_t pad;	      /* zero bytes between payload and ICRC */
	bool v6;
	uint8_t frag_cnt;
	uint32_t asked; /* READ request: bytes that it requests; otherwise 0 */
	struct ur_frag frag[UR_FRAGS_MAX];
};

/* Length of the frame in bytes, ICRC included. */
static inline uint32_t ur_tx_bytes(const struct ur_tx *tx)
{
	return (uint32_t)tx->hdr_len + tx->payload_len + tx->pad + UR_ICRC_BYTES;
}

/*
 * Writes the frame to `frame`, which has room for ur_tx_bytes() bytes. `frame` may be tx->hdr: the
 * headers are then in place and are not copied. Returns the length of the frame.
 */
static inline uint32_t ur_tx_write(const struct ur_tx *tx, uint8_t *frame)
{
	uint8_t *p = frame + tx->hdr_len;
	uint32_t covered;

	if (frame != tx->hdr)
		memcpy(frame, tx->hdr, tx->hdr_len);
	for (unsigned i = 0; i < tx->frag_cnt; i++) {
		memcpy(p, tx->frag[i].base, tx->frag[i].length);
		p += tx->frag[i].length;
	}
	memset(p, 0, UR_ICRC_BYTES); /* the pad; the ICRC overwrites the rest */
	covered = (uint32_t)(p - frame) + tx->pad;
	ur_icrc_put(frame + covered,
		    tx->v6 ? ur_icrc(frame + tx->l3_off, covered - tx->l3_off, true)
			   : ur_icrc_v4(frame + tx->l3_off, covered - tx->l3_off));
	return covered + UR_ICRC_BYTES;
}

#endif
