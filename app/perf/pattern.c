/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include <endian.h>
#include <string.h>

static uint64_t load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

void perf_pattern_fill(void *buf, size_t bytes, uint64_t base)
{
	uint8_t *p = buf;
	uint64_t word = base, le;

	for (; bytes >= 32; bytes -= 32, p += 32) {
		uint64_t w[4] = {
			htole64(word),
			htole64(word + PERF_PATTERN_STEP),
			htole64(word + 2 * PERF_PATTERN_STEP),
			htole64(word + 3 * PERF_PATTERN_STEP),
		};

		memcpy(p, w, sizeof(w));
		word += 4 * PERF_PATTERN_STEP;
	}
	for (; bytes > 0; word += PERF_PATTERN_STEP) {
		size_t n = bytes < 8 ? bytes : 8;

		le = htole64(word);
		memcpy(p, &le, n);
		p += n;
		bytes -= n;
	}
}

uint8_t perf_pattern_byte(uint64_t base, size_t offset)
{
	return (uint8_t)((base + offset / 8 * PERF_PATTERN_STEP) >> (offset % 8 * 8));
}

static size_t locate(const uint8_t *p, size_t from, size_t to, uint64_t base)
{
	while (from < to && p[from] == perf_pattern_byte(base, from))
		from++;
	return from;
}

size_t perf_pattern_check(const void *buf, size_t bytes, uint64_t base)
{
	const uint8_t *p = buf;
	uint64_t word = base;
	size_t at = 0;

	for (; at + 64 <= bytes; at += 64) {
		uint64_t diff = 0;

		for (unsigned i = 0; i < 8; i++)
			diff |= load(p + at + i * 8u) ^ htole64(word + i * PERF_PATTERN_STEP);
		if (diff != 0)
			return locate(p, at, at + 64, base);
		word += 8 * PERF_PATTERN_STEP;
	}
	return locate(p, at, bytes, base);
}

uint64_t perf_pattern_find(const void *buf, uint64_t key, uint64_t from, uint64_t range)
{
	uint64_t word = le64toh(load(buf));

	for (uint64_t n = from; n < from + range; n++) {
		if (perf_base(key, n) == word)
			return n;
	}
	return UINT64_MAX;
}

struct perf_plan perf_plan(const struct perf_planner *p, uint64_t key, uint64_t n)
{
	static const enum perf_op mix[16] = {
		PERF_OP_WRITE, PERF_OP_WRITE,	  PERF_OP_WRITE,     PERF_OP_WRITE,
		PERF_OP_SEND,  PERF_OP_SEND,	  PERF_OP_SEND,	     PERF_OP_READ,
		PERF_OP_READ,  PERF_OP_READ,	  PERF_OP_SEND_IMM,  PERF_OP_SEND_IMM,
		PERF_OP_CAS,   PERF_OP_FETCH_ADD, PERF_OP_WRITE_IMM, PERF_OP_WRITE_IMM,
	};
	struct perf_plan plan = {p->op, p->size};
	uint64_t h, most;

	if (p->op == PERF_OP_MIXED) {
		h = perf_mix64((key ^ 0x5eed5eed5eed5eedull) + n * PERF_PATTERN_STEP);
		plan.op = mix[h & 15];
		/* Small ones should not be rare: the bound itself is halved at random. */
		most = p->size >> (h >> 4 & 7);
		plan.size = (h >> 32) * (most + 1) >> 32;
	}
	if (p->notify && (perf_op_traits(p->op) & PERF_T_WRITE) != 0 &&
	    (perf_op_traits(plan.op) & PERF_T_RECV) == 0 &&
	    ((p->lossy && plan.op == PERF_OP_WRITE) || (n & (p->window - 1)) == p->window - 1))
		plan.op = PERF_OP_WRITE_IMM;
	if ((perf_op_traits(plan.op) & PERF_T_ATOMIC) != 0)
		plan.size = 8;
	return plan;
}
