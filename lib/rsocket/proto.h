/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_RSOCKET_PROTO_H
#define UR_RSOCKET_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"

/*
 * What rsockets of two hosts tell each other (docs/design/rsockets.md): private data of the connection's messages, the
 * immediate data of WRITEs, and entries of tables that the peer writes.
 *
 * Thread class: pure functions.
 */

#define UR_RS_VERSION	  1
#define UR_RS_OFFER_BYTES 40
#define UR_RS_TARGETS	  2 /* entries of the table of targets that this end offers */

/* ---- entries of tables ---- */

/* Memory of the peer that this end may write. In a table it has the byte order of the host whose memory holds the table. */
struct ur_rs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t bytes;
};

#define UR_RS_SGE_BYTES 16

/* A buffer of the peer's program, mapped at an offset of the program's choice. */
struct ur_rs_map {
	uint64_t offset;
	struct ur_rs_sge sge;
};

#define UR_RS_MAP_BYTES 24

_Static_assert(sizeof(struct ur_rs_sge) == UR_RS_SGE_BYTES, "as on the wire");
_Static_assert(sizeof(struct ur_rs_map) == UR_RS_MAP_BYTES, "as on the wire");

#define UR_RS_IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* RSOCKET-ORDER-01. An entry for a table of the peer, in the peer's byte order. */
static inline struct ur_rs_sge ur_rs_sge_for(bool big, struct ur_rs_sge p)
{
	if (big == UR_RS_IS_BIG)
		return p;
	return (struct ur_rs_sge){__builtin_bswap64(p.addr), __builtin_bswap32(p.key),
				  __builtin_bswap32(p.bytes)};
}

static inline struct ur_rs_map ur_rs_map_for(bool big, struct ur_rs_map m)
{
	return (struct ur_rs_map){big == UR_RS_IS_BIG ? m.offset : __builtin_bswap64(m.offset),
				  ur_rs_sge_for(big, m.sge)};
}

/* ---- private data ---- */

/*
 * One end's offer, in the REQ and in the REP, big-endian:
 *
 *    0  version   1  flags   2  credits (16)
 *    4  zero (24)            7  entries of the table of maps, scaled
 *    8  table of targets: address (64), key (32), number of entries (32)
 *   24  first buffer: address (64), key (32), bytes (32)
 */
struct ur_rs_offer {
	bool big;		  /* the host is big-endian */
	bool has_maps;		  /* `maps` is valid */
	uint16_t credits;	  /* messages that may be under way */
	uint16_t maps;		  /* entries of the table of maps, which follows that of targets */
	struct ur_rs_sge targets; /* bytes: its number of entries */
	struct ur_rs_sge buffer;
};

#define UR_RS_FLAG_BIG	1
#define UR_RS_FLAG_MAPS 2

/* A number of 16 bits in eight: up to 128 as it is, above in units of 256. */
static inline uint8_t ur_rs_scale(uint16_t n)
{
	return n <= 0x80 ? (uint8_t)n : (uint8_t)(0x80 | n >> 8);
}

static inline uint16_t ur_rs_unscale(uint8_t code)
{
	return code <= 0x80 ? code : (uint16_t)((code & 0x7f) << 8);
}

static inline void ur_rs_put_sge(uint8_t *to, struct ur_rs_sge p)
{
	ur_store64(to, p.addr);
	ur_store32(to + 8, p.key);
	ur_store32(to + 12, p.bytes);
}

static inline struct ur_rs_sge ur_rs_get_sge(struct ur_cursor *c)
{
	struct ur_rs_sge p;

	p.addr = ur_get64(c);
	p.key = ur_get32(c);
	p.bytes = ur_get32(c);
	return p;
}

/* RSOCKET-OFFER-01. To UR_RS_OFFER_BYTES bytes. */
static inline void ur_rs_put_offer(uint8_t *to, const struct ur_rs_offer *o)
{
	memset(to, 0, UR_RS_OFFER_BYTES);
	to[0] = UR_RS_VERSION;
	to[1] = (uint8_t)((o->big ? UR_RS_FLAG_BIG : 0) | (o->has_maps ? UR_RS_FLAG_MAPS : 0));
	ur_store16(to + 2, o->credits);
	to[7] = o->has_maps ? ur_rs_scale(o->maps) : 0;
	ur_rs_put_sge(to + 8, o->targets);
	ur_rs_put_sge(to + 24, o->buffer);
}

/*
 * RSOCKET-OFFER-02. False: too short, of another version, or without anything that this end could use; *o is unchanged then. The
 * addresses and keys are the peer's word: they serve only as targets of WRITEs to it.
 */
static inline bool ur_rs_get_offer(const void *from, size_t len, struct ur_rs_offer *o)
{
	struct ur_cursor c = ur_cursor_ro(from, len);
	uint8_t version = ur_get8(&c), flags = ur_get8(&c);
	struct ur_rs_offer got = {.big = flags & UR_RS_FLAG_BIG,
				  .has_maps = flags & UR_RS_FLAG_MAPS};

	got.credits = ur_get16(&c);
	ur_take(&c, 3);
	got.maps = ur_rs_unscale(ur_get8(&c));
	got.targets = ur_rs_get_sge(&c);
	got.buffer = ur_rs_get_sge(&c);
	if (c.bad || version != UR_RS_VERSION || !got.credits || !got.targets.bytes)
		return false;
	if (!got.has_maps)
		got.maps = 0;
	*o = got;
	return true;
}

/* ---- immediate data ---- */

/* Bits 31 to 29; all others are reserved. */
enum ur_rs_kind {
	UR_RS_DATA = 0,	   /* bytes that were written */
	UR_RS_CREDIT = 4,  /* number of the last message that may be sent */
	UR_RS_MAP = 6,	   /* entry of the table of maps that was written */
	UR_RS_CONTROL = 7, /* enum ur_rs_control */
};

enum ur_rs_control {
	UR_RS_DISCONNECT = 0, /* the sender neither sends nor receives any more */
	UR_RS_KEEPALIVE = 1,
	UR_RS_SHUTDOWN = 2, /* the sender sends no more */
};

#define UR_RS_VALUE_BITS 29
#define UR_RS_VALUE_MAX	 ((1u << UR_RS_VALUE_BITS) - 1)

static inline uint32_t ur_rs_word(enum ur_rs_kind kind, uint32_t value)
{
	return (uint32_t)kind << UR_RS_VALUE_BITS | value;
}

static inline enum ur_rs_kind ur_rs_kind(uint32_t word)
{
	return (enum ur_rs_kind)(word >> UR_RS_VALUE_BITS);
}

static inline uint32_t ur_rs_value(uint32_t word)
{
	return word & UR_RS_VALUE_MAX;
}

#endif
