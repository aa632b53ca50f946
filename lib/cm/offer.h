/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CM_OFFER_H
#define UR_CM_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How two uroce endpoints find each other (docs/wire-format.md, "Negotiation"): a block in the last
 * 16 bytes of the private data of a REQ, and of the REP that answers it, if the application leaves
 * them free. For any other peer it is padding.
 *
 *    0 |                       magic "uroce" 00 ab 1e                  |
 *    8 |    version    |     flags     |     ports     |    tables     |
 *   12 |                             pool                              |
 *
 * Pure functions on bytes.
 */
#define UR_OFFER_BYTES	 16
#define UR_OFFER_VERSION 1

enum ur_offer_flags {
	UR_OFFER_EXTENDED = 1 << 0, /* REQ: extended mode is offered; REP: it is used */
	UR_OFFER_STRICT = 1 << 1,   /* the sender of the block places strictly; only informs */
	UR_OFFER_STATUS = 1 << 2,   /* it understands the status of a receive pool */
	UR_OFFER_POOL = 1 << 3, /* it receives from `pool`, and tells its status who understands */
	UR_OFFER_NOTIFY = 1 << 4, /* with POOL: it sends NOTIFY and calls as well */
};

struct ur_offer {
	uint8_t version; /* REQ: the highest spoken; REP: the one used */
	uint8_t flags;	 /* enum ur_offer_flags; unknown ones are 0 when sent, ignored when received
			  */
	uint8_t ports; /* UDP source ports the sender may use: 0 or 1, 2 to 16, 255; only informs */
	uint8_t tables; /* STATUS: it keeps 2^tables tables, one for all QPNs of one residue; [0, 7] */
	uint32_t pool; /* POOL */
};

/* Whether `private_len` bytes leave the last 16 of `size` free. */
bool ur_offer_fits(size_t private_len, size_t size);

/* Writes the block to the end of data[0, size), whose last 16 bytes are free. */
void ur_offer_put(uint8_t *data, size_t size, const struct ur_offer *offer);

/*
 * Takes a block from the end of data[0, size): true, and 16 zero bytes stand in its place. False,
 * with nothing changed, when there is none, or none of a version that can be spoken.
 */
bool ur_offer_take(uint8_t *data, size_t size, struct ur_offer *offer);

#ifdef __cplusplus
}
#endif

#endif
