/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/assert.h"

#include <stdio.h>
#include <stdlib.h>

#include "dpdk/port.h"

/* Weak, so that a program can replace it. */
__attribute__((weak)) _Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "uroce: internal error: %s does not hold (%s:%d)\n", expr, file, line);
	ur_port_emergency();
	abort();
}
