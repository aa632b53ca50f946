/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/speck.h"

static uint16_t word(const struct ur_speck *s, uint32_t x)
{
	return (uint16_t)(x & ((1u << s->bits) - 1));
}

static uint16_t rotate_right(const struct ur_speck *s, uint16_t x, unsigned n)
{
	return word(s, (uint32_t)x >> n | (uint32_t)x << (s->bits - n));
}

/* One round of encryption on (high, low). */
static void forward(const struct ur_speck *s, uint16_t *high, uint16_t *low, uint16_t key)
{
	*high = word(s, (rotate_right(s, *high, 7) + *low) ^ key);
	*low = rotate_right(s, *low, s->bits - 2u) ^ *high;
}

static void backward(const struct ur_speck *s, uint16_t *high, uint16_t *low, uint16_t key)
{
	*low = rotate_right(s, *low ^ *high, 2);
	*high = rotate_right(s, word(s, (uint32_t)(*high ^ key) - *low), s->bits - 7u);
}

void ur_speck_init(struct ur_speck *s, uint64_t key, uint8_t block_bits)
{
	uint16_t k, l[3];

	s->bits = block_bits / 2;
	k = word(s, (uint32_t)key);
	for (unsigned i = 0; i < 3; i++)
		l[i] = word(s, (uint32_t)(key >> 16 * (i + 1)));
	for (uint16_t i = 0; i < UR_SPECK_ROUNDS; i++) {
		s->round[i] = k;
		forward(s, &l[i % 3], &k, i);
	}
}

uint32_t ur_speck_encrypt(const struct ur_speck *s, uint32_t x)
{
	uint16_t high = word(s, x >> s->bits), low = word(s, x);

	for (unsigned i = 0; i < UR_SPECK_ROUNDS; i++)
		forward(s, &high, &low, s->round[i]);
	return (uint32_t)high << s->bits | low;
}

uint32_t ur_speck_decrypt(const struct ur_speck *s, uint32_t x)
{
	uint16_t high = word(s, x >> s->bits), low = word(s, x);

	for (unsigned i = UR_SPECK_ROUNDS; i > 0; i--)
		backward(s, &high, &low, s->round[i - 1]);
	return (uint32_t)high << s->bits | low;
}
