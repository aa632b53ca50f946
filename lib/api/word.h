/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_WORD_H
#define UR_API_WORD_H

#include <stddef.h>

static inline const char *ur_word(const char *const *words, size_t cnt, size_t value,
				  const char *otherwise)
{
	return value < cnt && words[value] ? words[value] : otherwise;
}

/* What an array has for a value of an enumeration; `otherwise` for one that it does not know. */
#define UR_WORD(words, value, otherwise)                                                           \
	ur_word(words, sizeof(words) / sizeof((words)[0]), (size_t)(value), otherwise)

#endif
