/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "cc/cc.h"

#define DESTS 3
#define GBPS  UINT64_C(1000000000)

static struct ur_cc t;
static _Alignas(8) uint8_t memory[4096];

static void start_mode(enum ur_cc_mode mode)
{
	struct ur_cc_attr attr = {.mode = mode, .link_bps = 10 * GBPS, .seed = 7};

	cr_assert_leq(ur_cc_size(DESTS), sizeof(memory));
	memset(memory, 0xa5, sizeof(memory));
	ur_cc_init(&t, memory, DESTS, &attr);
}

static void start(void)
{
	start_mode(UR_CC_DCQCN);
}

static struct ur_cc_dest *get(uint8_t last)
{
	uint8_t key[UR_CC_KEY] = {0xfe, 0x80, [15] = last};

	return ur_cc_get(&t, key, 4096, 1000);
}

TestSuite(cc, .init = start);

/* PACE-TABLE-01 */
Test(cc, shares_an_entry_among_those_with_the_same_key)
{
	struct ur_cc_dest *a = get(1), *b = get(2);

	cr_assert_neq(a, b);
	cr_assert_eq(get(1), a);
	cr_assert_eq(a->users, 2);
	cr_assert_eq(t.used, 2);
}

/* PACE-TABLE-01 */
Test(cc, forgets_with_the_last_reference)
{
	struct ur_cc_dest *a = get(1);

	get(1);
	ur_cc_on_cnp(&t, a, 2000);
	ur_cc_put(&t, a);
	cr_assert(a->throttled);
	cr_assert_eq(t.throttled, 1);
	ur_cc_put(&t, a);
	cr_assert_eq(t.used, 0);
	cr_assert_eq(t.throttled, 0);
	a = get(1);
	cr_assert_eq(a->cnps, 0);
	cr_assert_eq(ur_cc_open_ns(a), 0);
}

/* PACE-TABLE-01 */
Test(cc, finds_the_other_entries_of_a_bucket_after_one_is_removed)
{
	struct ur_cc_dest *d[DESTS];

	for (uint8_t round = 0; round < 50; round++) {
		for (uint8_t i = 0; i < DESTS; i++)
			d[i] = get((uint8_t)(round + i));
		ur_cc_put(&t, d[1]);
		cr_assert_eq(get(round), d[0]);
		cr_assert_eq(get((uint8_t)(round + 2)), d[2]);
		for (unsigned i = 0; i < 2; i++) {
			ur_cc_put(&t, d[0]);
			ur_cc_put(&t, d[2]);
		}
		cr_assert_eq(t.used, 0);
	}
}

/* PACE-TABLE-02 */
Test(cc, does_not_pace_whom_a_full_table_has_no_entry_for)
{
	struct ur_cc_dest *full;

	for (uint8_t i = 0; i < DESTS; i++)
		get(i);
	full = get(DESTS);
	cr_assert_eq(full, get(DESTS + 1));
	cr_assert_eq(t.cnt.full, 2);
	cr_assert_eq(t.used, DESTS);
	ur_cc_on_cnp(&t, full, 2000);
	ur_cc_on_ack(&t, full, 5000, 2000);
	ur_cc_on_send(&t, full, 4096, 2000);
	cr_assert_eq(ur_cc_open_ns(full), 0);
	cr_assert_eq(t.cnt.cnps, 1);
	cr_assert_eq(t.cnt.samples, 0);
	ur_cc_put(&t, full);
	cr_assert_eq(t.used, DESTS);
}

Test(cc, numbers_its_entries)
{
	unsigned seen = 0;

	for (uint8_t i = 0; i < DESTS; i++) {
		uint32_t idx = ur_cc_index(&t, get(i));

		cr_assert_lt(idx, DESTS);
		seen |= 1u << idx;
	}
	cr_assert_eq(seen, (1u << DESTS) - 1);
	cr_assert_eq(ur_cc_index(&t, get(DESTS)), UINT32_MAX);
}

/* PACE-TABLE-02 */
Test(cc, does_nothing_in_mode_none)
{
	struct ur_cc_dest *d;

	start_mode(UR_CC_NONE);
	d = get(1);
	ur_cc_on_ack(&t, d, 1000, 2000);
	ur_cc_on_ack(&t, d, 1000000000, 1000002000);
	ur_cc_on_cnp(&t, d, 1000002000);
	ur_cc_on_send(&t, d, 4096, 1000002000);
	cr_assert_eq(ur_cc_open_ns(d), 0);
	cr_assert_eq(t.used, 0);
	cr_assert_eq(t.cnt.full, 0);
	ur_cc_put(&t, d);
}

Test(cc, counts_notifications_and_delays_where_they_do_not_matter)
{
	struct ur_cc_dest *d;

	start_mode(UR_CC_CMDPD);
	d = get(1);
	ur_cc_on_cnp(&t, d, 2000);
	cr_assert_eq(d->cnps, 1);
	cr_assert_not(d->throttled);
	start();
	d = get(1);
	ur_cc_on_ack(&t, d, 1000, 2000);
	ur_cc_on_ack(&t, d, 100000, 102000);
	cr_assert_eq(t.cnt.samples, 2);
	cr_assert_not(d->throttled);
}

/* PACE-RATE-01 */
Test(cc, keeps_a_rate_whatever_the_moment_that_packets_leave_at)
{
	struct ur_cc_dest *d = get(1);

	/* Half of 10 Gb/s: 4000 bytes take 6400 ns. */
	ur_cc_on_cnp(&t, d, 100000);
	cr_assert_eq(ur_cc_open_ns(d), 100000);
	ur_cc_on_send(&t, d, 4000, 100000);
	cr_assert_float_eq((double)ur_cc_open_ns(d), 106400, 2);
	/* 1000 ns late, and the next one is on time again. */
	ur_cc_on_send(&t, d, 4000, 107400);
	cr_assert_float_eq((double)ur_cc_open_ns(d), 112800, 4);
	/* Very late: two packets may follow at once, no more. */
	ur_cc_on_send(&t, d, 4000, 140000);
	cr_assert_float_eq((double)ur_cc_open_ns(d), 140000 - 6400, 4);
	ur_cc_on_send(&t, d, 4000, 140000);
	cr_assert_float_eq((double)ur_cc_open_ns(d), 140000, 4);
	ur_cc_on_send(&t, d, 4000, 140000);
	cr_assert_float_eq((double)ur_cc_open_ns(d), 146400, 4);
}

/* PACE-CNP-01 */
Test(cc, notifies_a_flow_once_in_fifty_microseconds)
{
	uint64_t last = 0, other = 0;

	cr_assert(ur_cnp_due(&last, 0));
	cr_assert_not(ur_cnp_due(&last, 0));
	cr_assert_not(ur_cnp_due(&last, 49999));
	cr_assert(ur_cnp_due(&other, 49999));
	cr_assert(ur_cnp_due(&last, 50001));
	cr_assert_not(ur_cnp_due(&last, 100000));
	cr_assert(ur_cnp_due(&last, 100001));
}

Test(cc, shows_every_destination_in_use)
{
	struct ur_cc_dest *a = get(1), *b = get(2);
	const struct ur_cc_dest *d;
	struct ur_cc_view v;
	uint32_t at = 0;
	unsigned seen = 0;

	while ((d = ur_cc_next(&t, &at)) != NULL)
		seen |= d == a ? 1 : d == b ? 2 : 4;
	cr_assert_eq(seen, 3);

	ur_cc_view(&t, a, &v);
	cr_assert_eq(v.average_ns, 0);
	cr_assert_eq(v.least_ns, 0);
	cr_assert_eq(v.deflection, 0);
	cr_assert_eq(v.gap_ns, 0);
	cr_assert_eq(v.rate_bps, 0);
	cr_assert_eq(v.key[15], 1);

	ur_cc_on_ack(&t, a, 8000, 10000);
	ur_cc_on_ack(&t, a, 16000, 30000);
	ur_cc_on_cnp(&t, a, 30000);
	ur_cc_view(&t, a, &v);
	cr_assert_eq(v.samples, 2);
	cr_assert_eq(v.cnps, 1);
	cr_assert_eq(v.users, 1);
	cr_assert(v.throttled);
	cr_assert_eq(v.throttles, 1);
	cr_assert_eq(v.average_ns, 9000);
	cr_assert_eq(v.least_ns, 8000);
	cr_assert_eq(v.deflection, 256 * 16 / 9);
	cr_assert_float_eq((double)v.rate_bps, 5e9, 1e6);
	cr_assert_float_eq(v.gap_ns, 4096 * 1.6, 2);
}

/* PACE-LINK-01 */
Test(cc, modes_without_a_link_take_no_notice_of_another)
{
	struct ur_cc none = {0}; /* as in an engine without a table */

	ur_cc_set_link(&none, 1);
	cr_expect_eq(ur_cc_link_bps(&none), 0);
}
