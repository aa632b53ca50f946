/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/assert.h"
#include "wire/drop.h"

/* Names are the enumerators in lower case, converted by the compiler, so that one list suffices. */
#define NAME_MAX_BYTES 16
#define AT(s, i)       ((s)[(i) < sizeof(s) ? (i) : sizeof(s) - 1])
#define LOW(s, i)      ((char)(AT(s, i) >= 'A' && AT(s, i) <= 'Z' ? AT(s, i) - 'A' + 'a' : AT(s, i)))
#define LOW4(s, i)     LOW(s, i), LOW(s, (i) + 1), LOW(s, (i) + 2), LOW(s, (i) + 3)
#define LOW16(s)                                                                                   \
	{                                                                                          \
		LOW4(s, 0), LOW4(s, 4), LOW4(s, 8), LOW4(s, 12)                                    \
	}

static const char names[UR_DROP_CNT][NAME_MAX_BYTES] = {
#define X(name, text) LOW16(#name),
	UR_DROP_REASONS(X)
#undef X
};

#define X(name, text) _Static_assert(sizeof(#name) <= NAME_MAX_BYTES, #name " is too long");
UR_DROP_REASONS(X)
#undef X

static const char *const texts[UR_DROP_CNT] = {
#define X(name, text) text,
	UR_DROP_REASONS(X)
#undef X
};

const char *ur_drop_text(enum ur_drop reason)
{
	UR_ASSERT((unsigned)reason < UR_DROP_CNT);
	return texts[reason];
}

const char *ur_drop_name(enum ur_drop reason)
{
	UR_ASSERT((unsigned)reason < UR_DROP_CNT);
	return names[reason];
}
