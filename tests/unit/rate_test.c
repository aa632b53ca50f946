/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "wire/rate.h"

/* At 1 Gb/s a byte takes 8 ns. A frame of 101 bytes occupies 125 bytes on the wire, 1000 ns. */
#define FRAME 101

static struct ur_rate at(double gbps)
{
	struct ur_rate r;

	ur_rate_init(&r, gbps);
	return r;
}

Test(rate, no_limit_is_none)
{
	struct ur_rate r = at(0);

	cr_expect_not(ur_rate_limits(&r));
	ur_rate_sent(&r, 9000, 5);
	ur_rate_sent(&r, 9000, 5);
	cr_expect(ur_rate_lets(&r, 5));
}

/* RATE-LINK-01 */
Test(rate, the_port_has_the_packet_that_leaves_and_one_more)
{
	struct ur_rate r = at(1);

	cr_expect(ur_rate_limits(&r));
	cr_assert(ur_rate_lets(&r, 7000));
	ur_rate_sent(&r, FRAME, 7000); /* leaves in [7000, 8000) */
	cr_assert(ur_rate_lets(&r, 7000));
	ur_rate_sent(&r, FRAME, 7000); /* leaves in [8000, 9000) */
	cr_expect_not(ur_rate_lets(&r, 7000));
	cr_expect_not(ur_rate_lets(&r, 7999));
	cr_expect(ur_rate_lets(&r, 8000));
	ur_rate_sent(&r, FRAME, 8000); /* leaves in [9000, 10000) */
	cr_expect_not(ur_rate_lets(&r, 8999));
	cr_expect(ur_rate_lets(&r, 9000));
}

Test(rate, a_small_packet_behind_a_large_one_is_the_only_one)
{
	struct ur_rate r = at(1);

	ur_rate_sent(&r, 4226, 0); /* 34 us */
	ur_rate_sent(&r, 60, 0);
	cr_expect_not(ur_rate_lets(&r, 33999));
	cr_expect(ur_rate_lets(&r, 34000));
}

/* Idle time is lost: two packets after a pause take as long as at the start. */
Test(rate, nothing_is_saved_up_while_there_is_nothing_to_send)
{
	struct ur_rate r = at(1);

	ur_rate_sent(&r, FRAME, 0);
	ur_rate_sent(&r, FRAME, 500000);
	cr_expect_eq(r.link.free_ns, 501000);
	ur_rate_sent(&r, FRAME, 500000);
	cr_expect_not(ur_rate_lets(&r, 500999));
	cr_expect(ur_rate_lets(&r, 501000));
}

Test(rate, a_late_worker_makes_up_for_it)
{
	struct ur_rate r = at(1);
	unsigned n = 0;

	ur_rate_sent(&r, FRAME, 0);
	r.behind = true;
	while (n < 100 && ur_rate_lets(&r, 10000)) {
		ur_rate_sent(&r, FRAME, 10000);
		n++;
	}
	/* Those that should have left in [1000, 10000), the one that leaves now, and one more. */
	cr_expect_eq(n, 9 + 2);
	cr_expect_eq(r.link.free_ns, 12000);
}

Test(rate, four_milliseconds_at_most)
{
	struct ur_rate r = at(1);
	unsigned n = 0;

	ur_rate_sent(&r, FRAME, 0);
	r.behind = true;
	while (n < 10000 && ur_rate_lets(&r, 50000000)) {
		ur_rate_sent(&r, FRAME, 50000000);
		n++;
	}
	cr_expect_eq(n, 4000 + 2);
}

/* RATE-LINK-02 */
Test(rate, a_new_speed_applies_to_later_packets)
{
	struct ur_rate r = at(1);

	ur_rate_sent(&r, FRAME, 7000); /* leaves in [7000, 8000) */
	ur_rate_sent(&r, FRAME, 7000); /* leaves in [8000, 9000) */
	ur_rate_change(&r, 4);
	cr_expect_not(ur_rate_lets(&r, 7999));
	cr_expect(ur_rate_lets(&r, 8000));
	ur_rate_sent(&r, FRAME, 8000); /* leaves in [9000, 9250) */
	ur_rate_sent(&r, FRAME, 9000);
	cr_expect_not(ur_rate_lets(&r, 9249));
	cr_expect(ur_rate_lets(&r, 9250));
	ur_rate_change(&r, 0.5);
	ur_rate_sent(&r, FRAME, 9250); /* leaves in [9500, 11500) */
	ur_rate_sent(&r, FRAME, 9500);
	cr_expect_not(ur_rate_lets(&r, 11499));
	cr_expect(ur_rate_lets(&r, 11500));
}

/* RATE-LINK-02 */
Test(rate, removing_the_limit_releases_everything)
{
	struct ur_rate r = at(0.001);

	ur_rate_sent(&r, FRAME, 0); /* 1 ms */
	ur_rate_sent(&r, FRAME, 0);
	r.behind = true;
	cr_assert_not(ur_rate_lets(&r, 10));
	ur_rate_change(&r, 0);
	cr_expect_not(ur_rate_limits(&r));
	cr_expect(ur_rate_lets(&r, 10));
	ur_rate_change(&r, 1); /* no time is caught up */
	ur_rate_sent(&r, FRAME, 5000000);
	ur_rate_sent(&r, FRAME, 5000000);
	cr_expect_not(ur_rate_lets(&r, 5000999));
	cr_expect(ur_rate_lets(&r, 5001000));
}

/* 3 Gb/s is 2.666... ns a byte: a million packets of 1000 bytes take 8/3 s, to within a millionth.
 */
Test(rate, fractions_of_a_nanosecond_add_up)
{
	struct ur_rate r = at(3);

	for (unsigned i = 0; i < 1000000; i++)
		ur_rate_sent(&r, 1000 - UR_RATE_EXTRA, 0);
	cr_expect_geq(r.link.free_ns, 2666666667 - 2700);
	cr_expect_leq(r.link.free_ns, 2666666667 + 2700);
}

Test(rate, the_slowest_and_the_fastest_are_exact)
{
	struct ur_rate slow = at(0.001 / 8), fast = at(1000);

	ur_rate_sent(&slow, 9600 - UR_RATE_EXTRA, 0);
	cr_expect_eq(slow.link.free_ns, 9600 * 64000ull);
	for (unsigned i = 0; i < 1000; i++)
		ur_rate_sent(&fast, 1000 - UR_RATE_EXTRA, 0);
	cr_expect_geq(fast.link.free_ns, 7999);
	cr_expect_leq(fast.link.free_ns, 8001);
}
