/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_WORD_H
#define UR_API_WORD_H

#include <stddef.h>

static inline const char *ur_word(const char *const *words, size_t cnt, size_t value,
				  const char *otherwise)
{
	return value < cnt && words[value] ? words[value] : otherwise;
}

/* The text of an enumeration's value in an array; `otherwise` if the array does not have it. */
#define UR_WORD(words, value, otherwise)                                                           \
	ur_word(words, sizeof(words) / sizeof((words)[0]), (size_t)(value), otherwise)

#endif
