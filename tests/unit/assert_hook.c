/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "wire/assert.h"

/*
 * The core's assert hook for test programs: a failed assertion of ours ends the test by SIGABRT,
 * which Criterion reports as a failure, unless the test expects exactly that (.signal = SIGABRT).
 */
_Noreturn void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
	abort();
}
