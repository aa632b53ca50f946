/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_CURSOR_H
#define UR_WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/bytes.h"

/*
 * A bounds-checked cursor over big-endian bytes. Every read or write advances it. An access that
 * would pass the end sets `bad` and changes nothing else; a read then returns zero. So a decoder
 * can read all its fields and check `bad` once at the end.
 *
 * The cursor does not own the buffer. Thread class: a value on the caller's stack.
 */
struct ur_cursor {
	uint8_t *p;   /* next byte */
	uint8_t *end; /* one past the last byte */
	bool bad;     /* an access did not fit */
};

static inline struct ur_cursor ur_cursor(void *buf, size_t len)
{
	uint8_t *p = (uint8_t *)buf;

	return (struct ur_cursor){.p = p, .end = p + len};
}

/* A cursor for reading only: do not use the ur_put functions on it. */
static inline struct ur_cursor ur_cursor_ro(const void *buf, size_t len)
{
	uint8_t *p = (uint8_t *)(uintptr_t)buf;

	return (struct ur_cursor){.p = p, .end = p + len};
}

static inline size_t ur_cursor_left(const struct ur_cursor *c)
{
	return (size_t)(c->end - c->p);
}

/* Returns the next `n` bytes and skips them. If fewer are left, returns NULL and sets `bad`. */
static inline uint8_t *ur_take(struct ur_cursor *c, size_t n)
{
	uint8_t *at = c->p;

	if (__builtin_expect(c->bad || n > ur_cursor_left(c), 0)) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return at;
}

static inline uint8_t ur_get8(struct ur_cursor *c)
{
	uint8_t *p = ur_take(c, 1);

	return p ? p[0] : 0;
}

static inline uint16_t ur_get16(struct ur_cursor *c)
{
	const uint8_t *p = ur_take(c, 2);

	return p ? ur_load16(p) : 0;
}

static inline uint32_t ur_get24(struct ur_cursor *c)
{
	uint8_t *p = ur_take(c, 3);

	return p ? ur_load24(p) : 0;
}

static inline uint32_t ur_get32(struct ur_cursor *c)
{
	const uint8_t *p = ur_take(c, 4);

	return p ? ur_load32(p) : 0;
}

static inline uint64_t ur_get64(struct ur_cursor *c)
{
	const uint8_t *p = ur_take(c, 8);

	return p ? ur_load64(p) : 0;
}

/* Copies the next `n` bytes to `dst`, which is unchanged if fewer are left. */
static inline void ur_get_bytes(struct ur_cursor *c, void *dst, size_t n)
{
	const uint8_t *p = ur_take(c, n);

	if (p)
		memcpy(dst, p, n);
}

static inline void ur_put8(struct ur_cursor *c, uint8_t v)
{
	uint8_t *p = ur_take(c, 1);

	if (p)
		p[0] = v;
}

static inline void ur_put16(struct ur_cursor *c, uint16_t v)
{
	uint8_t *p = ur_take(c, 2);

	if (p)
		ur_store16(p, v);
}

static inline void ur_put24(struct ur_cursor *c, uint32_t v)
{
	uint8_t *p = ur_take(c, 3);

	if (p)
		ur_store24(p, v);
}

static inline void ur_put32(struct ur_cursor *c, uint32_t v)
{
	uint8_t *p = ur_take(c, 4);

	if (p)
		ur_store32(p, v);
}

static inline void ur_put64(struct ur_cursor *c, uint64_t v)
{
	uint8_t *p = ur_take(c, 8);

	if (p)
		ur_store64(p, v);
}

static inline void ur_put_bytes(struct ur_cursor *c, const void *src, size_t n)
{
	uint8_t *p = ur_take(c, n);

	if (p && n)
		memcpy(p, src, n);
}

static inline void ur_put_zero(struct ur_cursor *c, size_t n)
{
	uint8_t *p = ur_take(c, n);

	if (p && n)
		memset(p, 0, n);
}

#endif
