/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_ASSERT_H
#define UR_WIRE_ASSERT_H

/*
 * UR_ASSERT() checks invariants of our own code; it is the only way in which the core stops the
 * program. Input from the network or from the user is never asserted.
 *
 * The program that links the core provides ur_assert_fail(), which must not return: liburoce prints
 * the expression and aborts, the tests turn it into a test failure.
 */
#ifdef __cplusplus
extern "C" {
#endif

void ur_assert_fail(const char *expr, const char *file, int line) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#define UR_ASSERT(expr)                                                                            \
	(__builtin_expect(!!(expr), 1) ? (void)0 : ur_assert_fail(#expr, __FILE__, __LINE__))

#endif
