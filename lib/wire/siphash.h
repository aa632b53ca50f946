/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_SIPHASH_H
#define UR_WIRE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * SipHash-2-4 (Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012): 64 bits of a message and a key of 128 bits.
 * Without the key nothing about other messages' values follows from those of any number of messages.
 *
 * Thread class: pure function.
 */
uint64_t ur_siphash(uint64_t k0, uint64_t k1, const void *message, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
