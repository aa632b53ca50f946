/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_WIRE_ASSERT_H
#define UR_WIRE_ASSERT_H

/*
 * The one way the core stops the program: a broken promise of our own code. Whoever links the
 * core provides ur_assert_fail() (liburoce prints and aborts; tests make it a test failure).
 * What the network or the user sends is never asserted.
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
