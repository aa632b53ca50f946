/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "ext_end.h"
#include "transport/plb.h"

/* docs/design/plb.md. The least round trip is 100 units of 16 ns, and a round lasts 300. */
#define LEAST 100
#define ROUND 300

static struct ur_plb p;
static struct ur_rtt rtt;
static uint32_t now;

static void start(void)
{
	p = (struct ur_plb){0};
	rtt = (struct ur_rtt){.srtt = ROUND, .min = LEAST};
	now = 5;
}

TestSuite(plb, .init = start);

/* Round trips of that length for so many rounds, four in each. Returns the moves. */
static unsigned rounds(unsigned n, uint32_t sample)
{
	unsigned moves = 0;

	for (unsigned i = 0; i < 4 * n; i++) {
		now += ROUND / 4;
		moves += ur_plb_on_rtt(&p, &rtt, sample, ur_stamp_of(now));
	}
	return moves;
}

/* Rounds until it moves; 0: not in 1000. */
static unsigned until_move(uint32_t sample)
{
	for (unsigned i = 1; i <= 1000; i++)
		if (rounds(1, sample))
			return i;
	return 0;
}

/* ---- when ---- */

/* PLB-ROUND-01 */
Test(plb, round_trips_up_to_twice_the_least_move_nothing)
{
	cr_assert_eq(rounds(100, LEAST), 0);
	cr_assert_eq(rounds(100, 2 * LEAST), 0);
	cr_assert(p.level == 0 && p.congested == 0);
}

/* PLB-MOVE-01. The first long one ends the quiet round, which does not count. */
Test(plb, three_congested_rounds_in_a_row_move)
{
	rounds(1, LEAST);
	now += 1;
	cr_assert_not(ur_plb_on_rtt(&p, &rtt, 2 * LEAST + 1, ur_stamp_of(now)));
	cr_assert_eq(rounds(2, 2 * LEAST + 1), 0);
	cr_assert_eq(rounds(1, 2 * LEAST + 1), 1);
}

/* PLB-ROUND-01 */
Test(plb, one_short_round_trip_makes_a_round_that_is_not_congested)
{
	rounds(1, LEAST);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(rounds(2, 50 * LEAST), 0);
		now += 1;
		cr_assert_not(ur_plb_on_rtt(&p, &rtt, 2 * LEAST, ur_stamp_of(now)));
		cr_assert_eq(rounds(1, 50 * LEAST), 0);
	}
}

/* ---- how bad is usual ---- */

/* PLB-LEVEL-01 */
Test(plb, a_path_as_bad_as_the_others_is_left_a_few_times)
{
	rounds(1, LEAST);
	cr_assert_eq(rounds(1000, 10 * LEAST), 3, "from 2, from 4 and from 8 times the least");
	cr_assert_eq(p.level, 3);
}

/* PLB-LEVEL-01 */
Test(plb, a_path_worse_than_the_others_is_left_wherever_they_are)
{
	rounds(100, 10 * LEAST);
	cr_assert_eq(until_move(17 * LEAST), 4);
	cr_assert_eq(rounds(100, 10 * LEAST), 0);
	cr_assert_eq(p.level, 3, "10 is in (2^3, 2^4]");
}

/* PLB-LEVEL-01 */
Test(plb, what_is_usual_falls_with_the_round_trips)
{
	rounds(100, 10 * LEAST);
	rounds(1, LEAST);
	for (unsigned level = 3; level > 0; level--) {
		cr_assert_eq(p.level, level);
		rounds(UR_PLB_CALM, LEAST);
	}
	cr_assert_eq(p.level, 0);
	cr_assert_eq(until_move(3 * LEAST), 4);
}

/* PLB-LEVEL-01 */
Test(plb, a_short_round_now_and_then_is_not_what_is_usual)
{
	rounds(100, 10 * LEAST);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_eq(rounds(UR_PLB_CALM - 2, LEAST), 0);
		cr_assert_eq(rounds(2, 10 * LEAST), 0);
	}
	cr_assert_eq(p.level, 3);
}

Test(plb, the_level_has_an_end)
{
	cr_assert_eq(rounds(1000, 3000 * LEAST), 333);
	cr_assert_eq(p.level, UR_PLB_LEVEL_MAX);
}

/* ---- after a dead link, and after a rest ---- */

/* PLB-PAUSE-01 */
Test(plb, silence_is_followed_by_a_second_without_moves)
{
	rounds(2, 10 * LEAST);
	ur_plb_on_silence(&p, ur_stamp_of(now));
	for (unsigned i = 0; i < 10; i++) {
		cr_assert_eq(rounds(1, 10 * LEAST), 0);
		now += UR_PLB_PAUSE / 10 - 2 * ROUND;
	}
	cr_assert_eq(p.congested, 0);
	now += 20 * ROUND;
	cr_assert_eq(rounds(1, 10 * LEAST), 0, "the pause counts as a round that is not congested");
	cr_assert_leq(until_move(10 * LEAST), 3);
}

/* The end of a round may lie anywhere in the 68 s of the stamps when the next round trip comes. */
Test(plb, a_rest_of_any_length_ends_a_round)
{
	for (unsigned i = 1; i < 64; i++) {
		start();
		rounds(2, 10 * LEAST);
		now += i << 26;
		cr_assert_leq(until_move(10 * LEAST), 4, "%u", i);
	}
}

/* ---- on the wire ---- */

/* So many WRITEs, one after the other, that are acknowledged after `rtt_ns` each. Returns how often the port changed. */
static unsigned writes(struct end *e, unsigned n, uint64_t rtt_ns)
{
	static uint32_t id;
	unsigned changes = 0;
	uint16_t sport = __builtin_bswap16(e->qp->sport_be);

	while (n--) {
		struct ibv_wc wc;

		end_send(e, ++id, IBV_WR_SEND, 4);
		cr_assert(xend_out(e));
		changes += e->out.sport != sport;
		sport = e->out.sport;
		e->now_ns += rtt_ns;
		cr_assert_eq(xend_ack(e, (e->out.bth.psn.v + 1) & 0xffffff, 0x1f, e->out.xth.ssn,
				      e->out.xth.stamp),
			     UR_DROP_NONE);
		while (ur_cq_poll(e->qp->send_cq, 1, &wc) == 1)
			cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	}
	return changes;
}

/* PLB-MOVE-01 */
Test(plb, round_trips_that_stay_long_change_the_port_of_requests)
{
	struct end *e = XEND(0);
	uint16_t answers = e->qp->answer_sport_be;

	cr_assert_eq(writes(e, 50, 20000), 0);
	cr_assert_eq(writes(e, 50, 100000), 2, "from 2 and from 4 times 20 us");
	cr_assert_eq(writes(e, 50, 100000), 0);
	cr_assert_eq(writes(e, 10, 400000), 2, "from 8 and from 16 times");
	cr_assert_eq(end_counters(e)->plb_repaths, 4);
	cr_assert_eq(end_counters(e)->repaths, 4);
	cr_assert_eq(e->qp->answer_sport_be, answers);
	xend_free(e);
}

/* REPATH-KEEP-01, PLB-OFF-01 */
Test(plb, ports_stay_where_that_is_wanted)
{
	struct end_attr attr[] = {{.no_plb = true}, {.keeps_ports = true}, {.paths = 4}};

	for (unsigned i = 0; i < 3; i++) {
		struct end *e = xend_new(attr[i]);
		uint16_t sport = e->qp->sport_be;

		writes(e, 20, 20000);
		writes(e, 50, 200000);
		cr_assert_eq(e->qp->sport_be, sport, "%u", i);
		cr_assert_eq(end_counters(e)->plb_repaths, 0, "%u", i);
		xend_free(e);
	}
}
