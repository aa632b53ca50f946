/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/speck.h"

static uint16_t rotate_right(uint16_t x, unsigned n)
{
	return (uint16_t)(x >> n | x << (16 - n));
}

/* One round of encryption on (high, low). */
static void forward(uint16_t *high, uint16_t *low, uint16_t key)
{
	*high = (uint16_t)((rotate_right(*high, 7) + *low) ^ key);
	*low = (uint16_t)(rotate_right(*low, 14) ^ *high);
}

static void backward(uint16_t *high, uint16_t *low, uint16_t key)
{
	*low = rotate_right((uint16_t)(*low ^ *high), 2);
	*high = rotate_right((uint16_t)((*high ^ key) - *low), 9);
}

void ur_speck_init(struct ur_speck *s, uint64_t key)
{
	uint16_t k = (uint16_t)key;
	uint16_t l[3] = {(uint16_t)(key >> 16), (uint16_t)(key >> 32), (uint16_t)(key >> 48)};

	for (uint16_t i = 0; i < UR_SPECK_ROUNDS; i++) {
		s->round[i] = k;
		forward(&l[i % 3], &k, i);
	}
}

uint32_t ur_speck_encrypt(const struct ur_speck *s, uint32_t x)
{
	uint16_t high = (uint16_t)(x >> 16), low = (uint16_t)x;

	for (unsigned i = 0; i < UR_SPECK_ROUNDS; i++)
		forward(&high, &low, s->round[i]);
	return (uint32_t)high << 16 | low;
}

uint32_t ur_speck_decrypt(const struct ur_speck *s, uint32_t x)
{
	uint16_t high = (uint16_t)(x >> 16), low = (uint16_t)x;

	for (unsigned i = UR_SPECK_ROUNDS; i > 0; i--)
		backward(&high, &low, s->round[i - 1]);
	return (uint32_t)high << 16 | low;
}
