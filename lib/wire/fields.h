/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_FIELDS_H
#define UR_WIRE_FIELDS_H

#include <stdint.h>

/*
 * Attributes of management datagrams: lists of fields. A field is X(type, name, offset, width), with
 * offset and width in bits. Bit 0 is the most significant bit of the first byte, as in the tables of
 * the IBA. Struct, encoder and decoder are generated from the list.
 *
 * Thread class: pure functions.
 */

/* Reads `width` bits, [1, 64]. */
static inline uint64_t ur_get_bits(const uint8_t *data, unsigned at, unsigned width)
{
	const uint8_t *p = data + at / 8;
	unsigned first = 8 - at % 8; /* bits of the first byte, from the field's start */
	uint64_t v = *p & (0xffu >> at % 8);

	if (width <= first)
		return v >> (first - width);
	for (width -= first; width >= 8; width -= 8)
		v = v << 8 | *++p;
	return width ? v << width | *++p >> (8 - width) : v;
}

/* Writes `width` bits, [1, 64], and leaves the bits beside them. */
static inline void ur_put_bits(uint8_t *data, unsigned at, unsigned width, uint64_t v)
{
	for (; width && (at % 8 || width < 8); width--, at++) {
		uint8_t bit = (uint8_t)(0x80u >> at % 8);

		data[at / 8] =
			(uint8_t)(v >> (width - 1) & 1 ? data[at / 8] | bit : data[at / 8] & ~bit);
	}
	for (; width >= 8; width -= 8, at += 8)
		data[at / 8] = (uint8_t)(v >> (width - 8));
	if (width)
		ur_put_bits(data, at, width, v);
}

#define UR_FIELD_MEMBER(type, name, at, width) type name;

/*
 * Declares struct ur_STEM, ur_put_STEM() and ur_get_STEM(). Put writes the fields and leaves reserved
 * bits as they are: the caller zeroes `data` first.
 */
#define UR_DECLARE_ATTRIBUTE(stem, FIELDS)                                                         \
	struct ur_##stem {                                                                         \
		FIELDS(UR_FIELD_MEMBER)                                                            \
	};                                                                                         \
	void ur_put_##stem(uint8_t *data, const struct ur_##stem *a);                              \
	void ur_get_##stem(const uint8_t *data, struct ur_##stem *a);

#define UR_FIELD_PUT(type, name, at, width) ur_put_bits(data, at, width, (uint64_t)a->name);
#define UR_FIELD_GET(type, name, at, width) a->name = (type)ur_get_bits(data, at, width);

#define UR_DEFINE_ATTRIBUTE(stem, FIELDS)                                                          \
	void ur_put_##stem(uint8_t *data, const struct ur_##stem *a)                               \
	{                                                                                          \
		FIELDS(UR_FIELD_PUT)                                                               \
	}                                                                                          \
	void ur_get_##stem(const uint8_t *data, struct ur_##stem *a)                               \
	{                                                                                          \
		FIELDS(UR_FIELD_GET)                                                               \
	}

#endif
