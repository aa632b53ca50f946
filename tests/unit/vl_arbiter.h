/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VL_ARBITER_H
#define VL_ARBITER_H

#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include "vl/vl.h"

/* An arbiter, the bytes that it has sent, and the checks of the tests of virtual lanes. */

#define FULL 2048 /* payload of a full packet with mtu_shift 11 */

static struct ur_vl v;
static uint64_t sent[UR_VL_CNT]; /* bytes sent by each lane */

/* VL 0 with weight h in the high table, VL 1 with weight l in the low one; SL i is on VL i. */
static inline struct ur_vl_attr two(enum ur_vl_mode mode, uint8_t q, uint8_t h, uint8_t l)
{
	struct ur_vl_attr a;

	ur_vl_attr_default(&a);
	a.mode = mode;
	a.high_limit = q;
	a.high_cnt = a.low_cnt = 1;
	a.high[0] = (struct ur_vl_entry){0, h};
	a.low[0] = (struct ur_vl_entry){1, l};
	a.mtu_shift = 11;
	return a;
}

static inline void start(struct ur_vl_attr a)
{
	cr_assert_null(ur_vl_attr_check(&a));
	ur_vl_init(&v, &a);
	memset(sent, 0, sizeof(sent));
}

static inline unsigned send_one(uint16_t ready, uint32_t bytes)
{
	unsigned vl = ur_vl_pick(&v, ready);

	cr_assert(ready >> vl & 1, "VL %u of 0x%x", vl, ready);
	ur_vl_charge(&v, vl, bytes);
	sent[vl] += bytes;
	return vl;
}

static inline void run(uint16_t ready, uint32_t bytes, unsigned cnt)
{
	while (cnt--)
		send_one(ready, bytes);
}

/* Sends packets; `lanes` has one digit per packet, its expected lane. */
static inline void expect(uint16_t ready, uint32_t bytes, const char *lanes)
{
	for (const char *c = lanes; *c; c++) {
		unsigned vl = send_one(ready, bytes);

		cr_assert_eq(vl, (unsigned)(*c - '0'), "packet %d of %s is of VL %u",
			     (int)(c - lanes), lanes, vl);
	}
}

/* a : b must equal x : y within one percent. */
static inline void expect_ratio(uint64_t a, uint64_t b, uint64_t x, uint64_t y)
{
	cr_assert(a * y * 100 >= b * x * 99 && a * y * 100 <= b * x * 101, "%lu:%lu is not %lu:%lu",
		  (unsigned long)a, (unsigned long)b, (unsigned long)x, (unsigned long)y);
}

static uint32_t seed;

static inline uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)seed * n) >> 32);
}

static inline void random_table(struct ur_vl_entry *entry, uint8_t *cnt, unsigned max_cnt,
				unsigned max)
{
	*cnt = (uint8_t)(1 + random_below(max_cnt));
	for (unsigned i = 0; i < *cnt; i++)
		entry[i] = (struct ur_vl_entry){(uint8_t)random_below(UR_VL_CNT),
						(uint8_t)random_below(max + 1)};
}

/* Random attributes. Each of the two tables has at least one lane with weight. */
static inline struct ur_vl_attr random_attr(enum ur_vl_mode mode, unsigned max_cnt, unsigned max)
{
	struct ur_vl_attr a;

	ur_vl_attr_default(&a);
	a.mode = mode;
	a.mtu_shift = 11;
	a.high_limit = (uint8_t)random_below(4);
	random_table(a.high, &a.high_cnt, max_cnt, max);
	random_table(a.low, &a.low_cnt, max_cnt, max);
	a.high[0].weight |= 1;
	a.low[0].weight |= 1;
	return a;
}

#endif
