/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_SIM_MODES_H
#define UR_SIM_MODES_H

#include <criterion/criterion.h>

#include "transport/qp.h"

/*
 * EACH_MODE(suite, name) { ... } defines one test per mode; the body has a variable `mode`. The
 * tests of a program run in parallel, each in its own process.
 */
#define SIM_MODE_TEST(suite, name, MODE, text)                                                     \
	Test(suite, name##_in_##text)                                                              \
	{                                                                                          \
		suite##_##name(UR_MODE_##MODE);                                                    \
	}

#define EACH_MODE(suite, name)                                                                     \
	static void suite##_##name(enum ur_mode mode);                                             \
	SIM_MODE_TEST(suite, name, GBN, gbn)                                                       \
	SIM_MODE_TEST(suite, name, REORDER, reorder)                                               \
	SIM_MODE_TEST(suite, name, EXTENDED, extended)                                             \
	static void suite##_##name(enum ur_mode mode)

#endif
