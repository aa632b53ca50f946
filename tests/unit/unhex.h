/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNHEX_H
#define TESTS_UNHEX_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a frame that is written in hexadecimal. Returns how many. */
static inline size_t unhex(const char *hex, uint8_t *buf)
{
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};

		buf[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return len;
}

#endif
