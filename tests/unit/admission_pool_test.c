/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>

#include <criterion/criterion.h>

#include "admission/pool.h"

#define LIFE	 UINT64_C(1000000)
#define RECALL	 UINT64_C(50000)
#define QPS	 8
#define NO_CLAIM UR_ADM_NONE

static struct ur_adm_pool pool;
static struct ur_adm_refusal qp[QPS];

static void set_up(enum ur_adm_mode mode)
{
	struct ur_adm_limits limits = {
		.mode = mode, .refusal_life_ns = LIFE, .grant_life_ns = RECALL};

	ur_adm_pool_init(&pool, &limits);
	for (unsigned i = 0; i < QPS; i++)
		qp[i] = (struct ur_adm_refusal){0};
}

static bool ask_at(unsigned i, uint32_t posted, uint64_t now_ns)
{
	bool ok = ur_adm_pool_request(&pool, &qp[i], qp[i].queue_class, posted, now_ns);

	ur_adm_pool_validate(&pool);
	return ok;
}

static bool ask(unsigned i, uint32_t posted)
{
	return ask_at(i, posted, 0);
}

#define assert_pool(st, gen, a, b)                                                                 \
	do {                                                                                       \
		cr_assert_eq(pool.status, st);                                                     \
		cr_assert_eq(pool.generation, gen);                                                \
		cr_assert_eq(pool.refused[UR_ADM_CLASS_A], a);                                     \
		cr_assert_eq(pool.refused[UR_ADM_CLASS_B], b);                                     \
	} while (0)

/* Status A: qp 0 has class A; 1 and 2 were refused later and have class B. */
static void reach_a(void)
{
	cr_assert(!ask(0, 0));
	cr_assert(!ask(1, 0));
	cr_assert(!ask(2, 5));
	assert_pool(UR_ADM_A, 1, 1, 2);
}

/* ADM-MODE-01 */
Test(admission_pool, plain_gives_no_queue_classes_and_never_changes)
{
	set_up(UR_ADM_PLAIN);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert(!ask(0, 0));
		cr_assert(ask(1, 1));
		cr_assert_eq(qp[0].queue_class, UR_ADM_NONE);
	}
	assert_pool(UR_ADM_NA, 0, 0, 0);
	cr_assert_eq(pool.cnt.refused, 4);
	cr_assert_eq(pool.cnt.accepted, 4);
	cr_assert_null(ur_adm_pool_next_grant(&pool, 1, 0));
}

/* ADM-STATUS-01 */
Test(admission_pool, accepts_everything_while_there_is_room)
{
	set_up(UR_ADM_AB);
	for (unsigned i = 0; i < QPS; i++)
		cr_assert(ask(i, 1));
	assert_pool(UR_ADM_NA, 0, 0, 0);
	cr_assert(ur_adm_pool_is_open(&pool, 1));
	cr_assert(!ur_adm_pool_is_open(&pool, 0));
}

/* ADM-STATUS-01, ADM-STATUS-02, ADM-STATUS-03 */
Test(admission_pool, goes_round_through_four_statuses)
{
	set_up(UR_ADM_AB);
	reach_a();
	cr_assert_eq(qp[0].queue_class, UR_ADM_CLASS_A);
	cr_assert_eq(qp[1].queue_class, UR_ADM_CLASS_B);
	cr_assert_eq(qp[2].queue_class, UR_ADM_CLASS_B);
	cr_assert(!ur_adm_pool_is_open(&pool, 5));

	cr_assert(!ask(0, 0)); /* no receive: keeps A */
	cr_assert(!ask(1, 5)); /* not its turn: keeps B */
	assert_pool(UR_ADM_A, 1, 1, 2);

	cr_assert(ask(0, 1));
	assert_pool(UR_ADM_NB, 2, 0, 2);
	cr_assert(ask(3, 1)); /* never refused before, and there is a receive */
	cr_assert(ask(1, 1));
	assert_pool(UR_ADM_NB, 2, 0, 1);

	cr_assert(!ask(4, 0)); /* the first one refused gets the served class */
	assert_pool(UR_ADM_B, 3, 0, 2);
	cr_assert_eq(qp[4].queue_class, UR_ADM_CLASS_B);
	cr_assert(!ask(5, 9));
	cr_assert_eq(qp[5].queue_class, UR_ADM_CLASS_A);
	assert_pool(UR_ADM_B, 3, 1, 2);

	cr_assert(ask(2, 1));
	cr_assert(ask(4, 1));
	assert_pool(UR_ADM_NA, 4, 1, 0);
	cr_assert(ask(5, 1));
	assert_pool(UR_ADM_NA, 4, 0, 0);
}

/* ADM-STATUS-01 */
Test(admission_pool, a_holder_refused_in_an_open_phase_keeps_its_class)
{
	set_up(UR_ADM_AB);
	reach_a();
	cr_assert(ask(0, 1));
	cr_assert(!ask(2, 0));
	assert_pool(UR_ADM_B, 3, 0, 2);
	cr_assert_eq(qp[2].queue_class, UR_ADM_CLASS_B);
}

/* ADM-REFUSAL-01 */
Test(admission_pool, a_claimed_class_decides_nothing)
{
	set_up(UR_ADM_AB);
	reach_a();
	for (unsigned claim = 1; claim < 256; claim++)
		cr_assert(!ur_adm_pool_request(&pool, &qp[3], (uint8_t)claim, 9, 0));
	assert_pool(UR_ADM_A, 1, 1, 3);
	cr_assert_eq(qp[3].queue_class, UR_ADM_CLASS_B);
	/* From the second request on, claiming B is true: 255 claims minus the one of B. */
	cr_assert_eq(pool.cnt.false_claims, 254);
	/* The RNR NAK was lost: the sender has class A without being informed. */
	cr_assert(ur_adm_pool_request(&pool, &qp[0], NO_CLAIM, 1, 0));
	cr_assert_eq(pool.cnt.false_claims, 254);
}

/* ADM-REFUSAL-02 */
Test(admission_pool, forgets_queue_pairs_that_end)
{
	set_up(UR_ADM_AB);
	reach_a();
	ur_adm_pool_forget(&pool, &qp[1]);
	ur_adm_pool_validate(&pool);
	assert_pool(UR_ADM_A, 1, 1, 1);
	ur_adm_pool_forget(&pool, &qp[1]);
	ur_adm_pool_forget(&pool, &qp[7]);
	assert_pool(UR_ADM_A, 1, 1, 1);
	ur_adm_pool_forget(&pool, &qp[0]); /* the last with A */
	ur_adm_pool_validate(&pool);
	assert_pool(UR_ADM_NB, 2, 0, 1);
	ur_adm_pool_forget(&pool, &qp[2]); /* in NB it does not hold back others */
	assert_pool(UR_ADM_NB, 2, 0, 0);
}

/* ADM-REFUSAL-03 */
Test(admission_pool, a_silent_holder_expires_and_no_other)
{
	set_up(UR_ADM_AB);
	cr_assert(!ask_at(0, 0, 100));
	cr_assert(!ask_at(1, 0, 200));
	cr_assert(!ask_at(2, 0, 300));
	cr_assert_eq(ur_adm_pool_deadline(&pool), 100 + LIFE);
	ur_adm_pool_refresh(&pool, &qp[1], 5000);
	ur_adm_pool_refresh(&pool, &qp[6], 5000); /* has no class */
	ur_adm_pool_validate(&pool);

	ur_adm_pool_expire(&pool, 99 + LIFE);
	assert_pool(UR_ADM_A, 1, 1, 2);
	ur_adm_pool_expire(&pool, 100 + LIFE);
	ur_adm_pool_validate(&pool);
	assert_pool(UR_ADM_NB, 2, 0, 2); /* the pool has no dead queue pairs */
	cr_assert_eq(ur_adm_pool_deadline(&pool), 300 + LIFE);
	ur_adm_pool_expire(&pool, 300 + LIFE);
	assert_pool(UR_ADM_NB, 2, 0, 1);
	cr_assert_eq(qp[1].queue_class, UR_ADM_CLASS_B);
	cr_assert(!ask_at(1, 0, 6000 + LIFE / 2)); /* a refused request also counts as a packet */
	ur_adm_pool_expire(&pool, 5000 + LIFE);
	assert_pool(UR_ADM_B, 3, 0, 1);
	ur_adm_pool_expire(&pool, 6000 + LIFE / 2 + LIFE);
	assert_pool(UR_ADM_NA, 4, 0, 0);
	cr_assert_eq(pool.cnt.expired, 3);
	cr_assert_eq(ur_adm_pool_deadline(&pool), UINT64_MAX);
}

/* ADM-AGE-01 */
Test(admission_pool, a_queue_class_is_gone_before_the_third_change)
{
	set_up(UR_ADM_AB);
	reach_a();
	cr_assert(ask(0, 1)); /* NB, 2 */
	for (unsigned i = 0; i < 100; i++)
		cr_assert(ask(4, 1)); /* an open phase lasts as long as there are receives */
	cr_assert(!ask(5, 0));	      /* B, 3 */
	for (unsigned i = 0; i < 100; i++) {
		cr_assert(!ask(
			6,
			1)); /* arrived two changes after qp 1 was refused, so must not pass it */
		cr_assert(!ask(5, 0));
	}
	cr_assert(ask(5, 1));
	cr_assert(ask(1, 1));
	assert_pool(UR_ADM_B, 3, 1, 1);
	cr_assert(ask(2, 1));
	assert_pool(UR_ADM_NA, 4, 1, 0);
}

/* ADM-STATUS-02 */
Test(admission_pool, generations_wrap)
{
	set_up(UR_ADM_AB);
	pool.generation = 65534;
	cr_assert(!ask(0, 0));
	cr_assert(!ask(1, 0));
	cr_assert(ask(0, 1));
	assert_pool(UR_ADM_NB, 0, 0, 1);
	cr_assert(!ask(2, 0));
	cr_assert(ask(1, 1));
	cr_assert(ask(2, 1));
	assert_pool(UR_ADM_NA, 2, 0, 0);
}

/* ---- grants ---- */

static unsigned call(uint32_t posted, uint64_t now_ns)
{
	struct ur_adm_refusal *m = ur_adm_pool_next_grant(&pool, posted, now_ns);

	ur_adm_pool_validate(&pool);
	return m ? (unsigned)(m - qp) : QPS;
}

/* ADM-GRANT-01 */
Test(admission_pool, grants_in_order_of_refusal_one_receive_each)
{
	set_up(UR_ADM_INTELLIGENT);
	reach_a();
	cr_assert_eq(call(0, 0), QPS);
	cr_assert_eq(call(3, 0), 0); /* qp 1 and 2 have class B */
	cr_assert_eq(call(3, 0), QPS);
	cr_assert(ask(0, 3));
	assert_pool(UR_ADM_NB, 2, 0, 2);
	cr_assert_eq(call(1, 0), 1);
	cr_assert_eq(call(1, 0), QPS);
	cr_assert_eq(call(2, 0), 2);
	cr_assert_eq(call(2, 0), QPS);
	cr_assert_eq(pool.cnt.grants, 3);
}

/* ADM-GRANT-01 */
Test(admission_pool, queue_classes_alone_do_not_grant)
{
	set_up(UR_ADM_AB);
	reach_a();
	cr_assert_eq(call(3, 0), QPS);
}

/* ADM-GRANT-02 */
Test(admission_pool, what_is_promised_is_not_given_to_others)
{
	set_up(UR_ADM_INTELLIGENT);
	reach_a();
	cr_assert_eq(call(1, 0), 0);
	cr_assert(ask(0, 1)); /* NB */
	cr_assert_eq(call(1, 0), 1);
	cr_assert_eq(ur_adm_pool_room(&pool, 1), 0);
	cr_assert(!ur_adm_pool_is_open(&pool, 1));
	cr_assert(!ask(3, 1));
	cr_assert_eq(pool.status, UR_ADM_B);
	cr_assert(!ask(2, 1)); /* has class B and no grant */
	cr_assert(ask(2, 2));  /* the second receive is not reserved */
	cr_assert(ask(1, 1));
	cr_assert_eq(ur_adm_pool_room(&pool, 1), 1);
}

/* ADM-GRANT-02 */
Test(admission_pool, a_holder_granted_in_vain_is_the_next_to_get_a_grant)
{
	set_up(UR_ADM_INTELLIGENT);
	reach_a();
	cr_assert(ask(0, 1)); /* NB; 1 and 2 have class B */
	cr_assert_eq(call(1, 0), 1);
	cr_assert(!ask(1, 0)); /* its receive has been taken */
	cr_assert_eq(pool.granted_cnt, 0);
	cr_assert_eq(call(1, 0), 1);
}

/* ADM-GRANT-03 */
Test(admission_pool, an_unused_grant_passes_to_the_next)
{
	set_up(UR_ADM_INTELLIGENT);
	reach_a();
	cr_assert(ask(0, 1)); /* NB */
	cr_assert_eq(call(1, 1000), 1);
	cr_assert_eq(ur_adm_pool_deadline(&pool), 1000 + RECALL);
	ur_adm_pool_expire(&pool, 999 + RECALL);
	cr_assert_eq(call(1, 999 + RECALL), QPS);
	ur_adm_pool_expire(&pool, 1000 + RECALL);
	ur_adm_pool_validate(&pool);
	cr_assert_eq(call(1, 1000 + RECALL), 2);
	cr_assert_eq(pool.cnt.void_grants, 1);
	ur_adm_pool_expire(&pool, 1000 + 2 * RECALL);
	cr_assert_eq(call(1, 1000 + 2 * RECALL), 1); /* in turn */
}

/* ADM-GRANT-02, ADM-REFUSAL-02 */
Test(admission_pool, the_receive_reserved_for_an_ended_queue_pair_is_free_again)
{
	set_up(UR_ADM_INTELLIGENT);
	reach_a();
	cr_assert_eq(call(1, 0), 0);
	ur_adm_pool_forget(&pool, &qp[0]);
	ur_adm_pool_validate(&pool);
	assert_pool(UR_ADM_NB, 2, 0, 2);
	cr_assert_eq(call(1, 0), 1);
}

/* ---- NOTIFY ---- */

static struct ur_adm_peer peer[4];

static unsigned tell(uint64_t now_ns)
{
	struct ur_adm_peer *p = ur_adm_pool_next_notify(&pool, now_ns);

	ur_adm_pool_validate(&pool);
	return p ? (unsigned)(p - peer) : 4;
}

/* ADM-NOTIFY-01 */
Test(admission_pool, every_peer_is_notified_once_of_a_change)
{
	set_up(UR_ADM_INTELLIGENT);
	for (unsigned i = 0; i < 3; i++)
		ur_adm_peer_add(&pool, &peer[i], 10000, i);
	cr_assert_eq(tell(1000000), 4);
	cr_assert_eq(ur_adm_pool_deadline(&pool), UINT64_MAX);
	cr_assert(!ask_at(0, 0, 1000000));
	cr_assert_eq(tell(1000000), 0);
	cr_assert_eq(tell(1000000), 1);
	ur_adm_peer_remove(&pool, &peer[2]);
	cr_assert_eq(tell(1000000), 4);
	cr_assert_eq(tell(9000000), 4);
	cr_assert_eq(pool.cnt.notifies, 2);
}

/* ADM-NOTIFY-02: 10 us belong to the class of 16.384 us */
Test(admission_pool, a_peer_is_notified_once_per_round_trip_of_the_latest_status)
{
	set_up(UR_ADM_INTELLIGENT);
	ur_adm_peer_add(&pool, &peer[0], 10000, 500);
	cr_assert(!ask_at(0, 0, 1000));
	cr_assert_eq(tell(500 + 16383), 4);
	cr_assert_eq(ur_adm_pool_deadline(&pool), 500 + 16384);
	cr_assert(ask_at(0, 1, 2000));	/* NB */
	cr_assert(!ask_at(0, 0, 3000)); /* B */
	cr_assert_eq(tell(500 + 16384), 0);
	cr_assert_eq(peer[0].notified_generation, 3);
	cr_assert_eq(tell(500 + 16384), 4);
	cr_assert(ask_at(0, 1, 20000)); /* NA */
	cr_assert_eq(tell(500 + 2 * 16384 - 1), 4);
	cr_assert_eq(tell(500 + 2 * 16384), 0);
}

/* ADM-NOTIFY-01 */
Test(admission_pool, a_distant_peer_does_not_delay_a_close_one)
{
	set_up(UR_ADM_INTELLIGENT);
	ur_adm_peer_add(&pool, &peer[0], 1000000, 0); /* class of 1.048576 ms */
	ur_adm_peer_add(&pool, &peer[1], 0, 0);	      /* 1.024 us */
	ur_adm_peer_add(&pool, &peer[2], UINT64_MAX, 0);
	cr_assert_eq(peer[2].rtt_class, UR_ADM_RTT_CLASSES - 1);
	cr_assert(!ask(0, 0));
	cr_assert_eq(tell(1023), 4);
	cr_assert_eq(tell(1024), 1);
	cr_assert_eq(tell(1048575), 4);
	peer[0].rtt_ns = 2000; /* takes effect the next time */
	cr_assert_eq(tell(1048576), 0);
	cr_assert(ask_at(0, 1, 1048576));
	cr_assert_eq(tell(1048576 + 2047), 1);
	cr_assert_eq(tell(1048576 + 2047), 4);
	cr_assert_eq(tell(1048576 + 2048), 0);
}

/* ADM-PAPER-01: far or near, and however often the status changes at once */
Test(admission_pool, in_mode_paper_every_peer_is_told_of_every_change_at_once)
{
	static const uint8_t status[] = {UR_ADM_A, UR_ADM_NB, UR_ADM_B};

	set_up(UR_ADM_PAPER);
	for (unsigned i = 0; i < 3; i++)
		ur_adm_peer_add(&pool, &peer[i], 10000 << 5 * i, 500);
	cr_assert_eq(tell(1000), 4);
	cr_assert_eq(ur_adm_pool_deadline(&pool), UINT64_MAX);
	cr_assert(!ask_at(0, 0, 1000));
	cr_assert_leq(ur_adm_pool_deadline(&pool), 1000, "now");
	cr_assert(ask_at(0, 1, 1000));
	cr_assert(!ask_at(0, 0, 1000));
	assert_pool(UR_ADM_B, 3, 0, 1);
	for (unsigned change = 0; change < 3; change++)
		for (unsigned i = 0; i < 3; i++) {
			cr_assert_eq(tell(1000), i);
			cr_assert_eq(peer[i].notified_generation, change + 1);
			cr_assert_eq(ur_adm_pool_status_at(&pool, peer[i].notified_generation),
				     status[change]);
		}
	cr_assert_eq(tell(1000), 4);
	cr_assert_eq(pool.cnt.notifies, 9);
}

/* ADM-PAPER-01 */
Test(admission_pool, in_mode_paper_a_peer_that_was_not_told_for_long_hears_of_the_last_cycle)
{
	set_up(UR_ADM_PAPER);
	for (unsigned i = 0; i < 3; i++)
		ur_adm_peer_add(&pool, &peer[i], 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(!ask(0, 0));
		cr_assert(ask(0, 1));
	}
	/* Four changes: none is left out. The rest of the peers have to wait. */
	cr_assert_eq(tell(0), 0);
	cr_assert_eq(peer[0].notified_generation, 1);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(!ask(0, 0));
		cr_assert(ask(0, 1));
	}
	for (unsigned change = 5; change <= 8; change++)
		for (unsigned i = 0; i < 3; i++) {
			unsigned told = tell(0);

			cr_assert_eq(told, (i + 1) % 3);
			cr_assert_eq(peer[told].notified_generation, change);
		}
	cr_assert_eq(tell(0), 4);
}

/* ADM-PAPER-01: the list stays in the order of generations */
Test(admission_pool, in_mode_paper_a_peer_that_comes_late_does_not_silence_the_others)
{
	set_up(UR_ADM_PAPER);
	ur_adm_peer_add(&pool, &peer[0], 0, 0);
	ur_adm_peer_add(&pool, &peer[1], 0, 0);
	cr_assert(!ask(0, 0));
	cr_assert(ask(0, 1));
	cr_assert_eq(tell(0), 0);
	ur_adm_peer_add(&pool, &peer[2], 0, 0);
	ur_adm_pool_validate(&pool);
	cr_assert_eq(tell(0), 1);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_neq(tell(0), 4);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(peer[i].notified_generation, 2);
	cr_assert_eq(tell(0), 4);
}

/* ADM-PAPER-02 */
Test(admission_pool, in_mode_paper_there_are_no_grants)
{
	set_up(UR_ADM_PAPER);
	reach_a();
	cr_assert_null(ur_adm_pool_next_grant(&pool, 5, 0));
	cr_assert_eq(ur_adm_pool_room(&pool, 5), 5);
	cr_assert(!ask(1, 5), "B waits for its turn although there is room");
	cr_assert(ask(0, 5));
	assert_pool(UR_ADM_NB, 2, 0, 2);
}

/* ADM-NOTIFY-01 */
Test(admission_pool, only_intelligent_pools_notify)
{
	set_up(UR_ADM_AB);
	ur_adm_peer_add(&pool, &peer[0], 0, 0);
	cr_assert(!ask(0, 0));
	cr_assert_eq(tell(1000000), 4);
	cr_assert_eq(ur_adm_pool_deadline(&pool), LIFE);
}

/* ---- random events ---- */

static uint32_t random_below(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % n;
}

/* ADM-REFUSAL-01, ADM-AGE-01 */
Test(admission_pool, any_order_of_events_keeps_count)
{
	static const enum ur_adm_mode modes[] = {UR_ADM_INTELLIGENT, UR_ADM_AB, UR_ADM_PAPER};

	for (uint32_t seed = 0; seed < 96; seed++) {
		uint32_t r = seed, posted = 2;
		uint64_t now_ns = 0;

		set_up(modes[seed % 3]);
		for (unsigned step = 0; step < 5000; step++) {
			unsigned i = random_below(&r, QPS);

			now_ns += random_below(&r, 2000);
			switch (random_below(&r, 8)) {
			case 0:
				posted += posted < 3;
				break;
			case 1:
				call(posted, now_ns);
				break;
			case 2:
				ur_adm_pool_expire(&pool, now_ns);
				break;
			case 3:
				if (random_below(&r, 8) == 0)
					ur_adm_pool_forget(&pool, &qp[i]);
				break;
			case 4:
				ur_adm_pool_refresh(&pool, &qp[i], now_ns);
				break;
			default:
				posted -= ask_at(i, posted, now_ns);
				cr_assert_leq(posted, 3);
			}
			ur_adm_pool_validate(&pool);
		}
		cr_assert_gt(pool.cnt.changes, 100);
	}
}
