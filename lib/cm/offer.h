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
 * How two uroce endpoints recognize each other (docs/wire-format.md, "Negotiation"): a block in the
 * last 16 bytes of the private data of a REQ and of its REP, if the application leaves them free.
 * Other peers see padding.
 *
 *    0 |                       magic "uroce" 00 ab 1e                  |
 *    8 |    version    |     flags     |     ports     | 0 |wide |tables|
 *   12 |                             pool                              |
 *
 * Thread class: pure functions.
 */
#define UR_OFFER_BYTES	  16
#define UR_OFFER_VERSION  1
#define UR_OFFER_WIDE_MAX 5

enum ur_offer_flags {
	UR_OFFER_EXTENDED = 1 << 0, /* REQ: extended mode is offered; REP: it is used */
	UR_OFFER_STRICT = 1 << 1,   /* the sender uses strict placement (informative) */
	UR_OFFER_STATUS = 1 << 2,   /* the sender understands the status of a receive pool */
	UR_OFFER_POOL = 1 << 3,	    /* it receives from `pool` and reports its status with STATUS */
	UR_OFFER_NOTIFY = 1 << 4,   /* with POOL: it also sends NOTIFY and grants */
	UR_OFFER_PAPER =
		1 << 5, /* with POOL: it also sends NOTIFY, at each change, and no grants */
	UR_OFFER_DELAY = 1 << 6, /* the sender answers packets that ask for delay stamps */
};

struct ur_offer {
	uint8_t version; /* REQ: the highest that is supported; REP: the one in use */
	uint8_t flags;	 /* enum ur_offer_flags; others are sent as 0 and ignored on receipt */
	uint8_t ports;	 /* UDP source ports of the sender: 0 or 1, 2 to 16, 255 (informative) */
	uint8_t tables;	 /* STATUS: it has 2^tables status tables, by QPN modulo 2^tables; [0, 7] */
	uint8_t wide;	 /* it takes in 2048 * 2^wide PSNs from ePSN on; [0, UR_OFFER_WIDE_MAX] */
	uint32_t pool;	 /* POOL: name of the pool */
};

/* True if `private_len` bytes leave the last 16 of `size` bytes free. */
bool ur_offer_fits(size_t private_len, size_t size);

/* Writes the block to the last 16 bytes of data[0, size), which must be free. */
void ur_offer_put(uint8_t *data, size_t size, const struct ur_offer *offer);

/*
 * Removes a block from the end of data[0, size): decodes it to *offer, overwrites it with zeros and
 * returns true. If there is no block of a supported version, returns false and changes nothing.
 */
bool ur_offer_take(uint8_t *data, size_t size, struct ur_offer *offer);

#ifdef __cplusplus
}
#endif

#endif
