/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/siphash.h"

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], unsigned cnt)
{
	while (cnt--) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

/* Little-endian, as the paper has it. */
static uint64_t load(const uint8_t *m, size_t bytes)
{
	uint64_t word = 0;

	for (size_t i = 0; i < bytes; i++)
		word |= (uint64_t)m[i] << 8 * i;
	return word;
}

uint64_t ur_siphash(uint64_t k0, uint64_t k1, const void *message, size_t bytes)
{
	uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
			 k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
	const uint8_t *m = message;
	size_t left = bytes;

	for (; left >= 8; left -= 8, m += 8)
		take(v, load(m, 8));
	take(v, load(m, left) | (uint64_t)bytes << 56);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
