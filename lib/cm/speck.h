/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_CM_SPECK_H
#define UR_CM_SPECK_H

#include <stdint.h>

/*
 * Speck32/64 (Beaulieu et al., "The SIMON and SPECK families of lightweight block ciphers", 2013):
 * a keyed permutation of 32-bit words with a 64-bit key. A communication id is an encrypted handle:
 * decryption finds the handle without a table, and one id reveals nothing about others. With smaller blocks, of two words
 * of equal size, it is a permutation too, with a key of at most 64 bits; that is no variant of its authors.
 *
 * Thread class: pure functions. ur_speck_init() expands the key.
 */
#define UR_SPECK_ROUNDS 22

struct ur_speck {
	uint8_t bits; /* of a word */
	uint16_t round[UR_SPECK_ROUNDS];
};

/* `block_bits`: even, in [18, 32]. Encryption maps [0, 2^block_bits) to itself. */
void ur_speck_init(struct ur_speck *s, uint64_t key, uint8_t block_bits);
uint32_t ur_speck_encrypt(const struct ur_speck *s, uint32_t x);
uint32_t ur_speck_decrypt(const struct ur_speck *s, uint32_t x);

#endif
