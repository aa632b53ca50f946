/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FUZZ_FUZZ_H
#define UR_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A fuzz target defines this function. It processes [data, data + size) and returns 0. If an
 * invariant is violated (FUZZ_CHECK), it ends the program, both under libFuzzer and under replay.c.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(expr)                                                                           \
	do {                                                                                       \
		if (!(expr)) {                                                                     \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #expr);         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
