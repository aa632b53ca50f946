/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FUZZ_FUZZ_H
#define UR_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * What a fuzz target defines: does something with [data, data + size) and returns 0. It ends the
 * program when a promise is broken (FUZZ_CHECK), for libFuzzer and replay.c alike.
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
