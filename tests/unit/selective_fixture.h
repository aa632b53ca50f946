/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SELECTIVE_FIXTURE_H
#define TESTS_SELECTIVE_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "loss_memory.h"
#include "timer/wheel.h"
#include "transport/loss/selective.h"
#include "wire/ext.h"

/*
 * Times are microseconds of a clock that starts at `origin`. The round trip is 100 us without
 * deviation, the reordering window 100 us, the long one 1 ms, the probe timeout 200 us, the timeout
 * 1 ms.
 */
#define US    1000
#define FIRST 0xfffffd /* three numbers before the wrap */
#define CNT   4	       /* slabs */

static struct loss_memory memory;
static struct ur_rtx_pool pool;
static struct ur_rtt rtt;
static struct ur_tx_times marks;
static struct ur_selective_env env = {&pool, &rtt, &marks};
static struct ur_selective s;
static uint64_t origin;

static inline void start_at(uint64_t origin_ns, uint32_t slabs)
{
	origin = origin_ns;
	loss_memory_free(&memory);
	loss_memory_init(&memory, slabs, LOSS_SLAB);
	ur_rtx_pool_init(&pool, &memory.slabs, loss_first(), UR_EXT_WINDOW);
	ur_rtt_init(&rtt);
	rtt.srtt = rtt.min = rtt.min_next = 6250;
	marks = (struct ur_tx_times){0};
	ur_selective_init(&s, &marks, 0, ur_psn(FIRST), 256, UR_EXT_WINDOW);
}

static inline void start(void)
{
	start_at(1000000000, CNT);
}

TestSuite(selective, .init = start);

static inline uint64_t at(uint64_t us)
{
	return origin + us * US;
}

static inline void send(uint32_t n, uint64_t us)
{
	ur_selective_on_send(&s, &env, n, at(us));
	ur_selective_validate(&s);
}

/* `una` counts from FIRST; bit i is number una + 1 + i. */
static inline uint32_t news(uint32_t una, uint64_t bits, uint64_t echo_us, uint64_t us)
{
	struct ur_ack_info n = {
		.una = ur_psn(FIRST + una),
		.sack = (const uint8_t *)&bits,
		.sack_bits = bits ? 64 : 0,
		.echo = ur_stamp(at(echo_us)),
	};
	uint32_t cnt = ur_selective_on_ack(&s, &env, &n, at(us));

	ur_selective_validate(&s);
	return cnt;
}

/* The same for `cnt` arrivals directly after una. */
static inline uint32_t news_many(uint32_t una, uint32_t cnt, uint64_t echo_us, uint64_t us)
{
	uint8_t map[UR_SACK_BYTES] = {0};
	struct ur_ack_info n = {
		.una = ur_psn(FIRST + una),
		.sack = map,
		.sack_bits = (cnt + 31) & ~31u,
		.echo = ur_stamp(at(echo_us)),
	};

	for (uint32_t i = 0; i < cnt; i++)
		map[i / 8] |= (uint8_t)(1 << i % 8);
	cnt = ur_selective_on_ack(&s, &env, &n, at(us));
	ur_selective_validate(&s);
	return cnt;
}

static inline void expect_window(uint32_t una, uint32_t max)
{
	cr_expect_eq(s.una.v, ur_psn(FIRST + una).v, "una is %d",
		     ur_psn_diff(s.una, ur_psn(FIRST)));
	cr_expect_eq(s.max.v, ur_psn(FIRST + max).v, "max is %d",
		     ur_psn_diff(s.max, ur_psn(FIRST)));
}

/* The lowest lost number, counted from FIRST; -1: none. */
static inline int lost(void)
{
	struct ur_psn nr;

	return ur_selective_next_lost(&s, &nr) ? ur_psn_diff(nr, ur_psn(FIRST)) : -1;
}

static inline void resend(int nr, uint64_t us)
{
	cr_assert_eq(lost(), nr, "%d is lost, not %d", lost(), nr);
	ur_selective_on_resend(&s, &env, ur_psn(FIRST + (uint32_t)nr), at(us));
	ur_selective_validate(&s);
}

static inline enum ur_selective_verdict expire(uint64_t us)
{
	enum ur_selective_verdict v = ur_selective_on_timer(&s, &env, at(us));

	ur_selective_validate(&s);
	return v;
}

/* The deadline in microseconds, -1: never. */
static inline long deadline(void)
{
	return s.deadline_ns == UR_NEVER ? -1 : (long)((s.deadline_ns - origin) / US);
}

#endif
