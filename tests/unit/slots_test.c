/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "engine/slots.h"

static struct ur_core core; /* a slot is live while it has a core */

static uint64_t next_random;

static void slots_new_of(struct ur_slots *s, uint32_t max_qp, uint16_t workers, uint16_t worker,
			 struct ur_qpn_prefix prefix, uint64_t random)
{
	void *memory = aligned_alloc(64, (ur_slots_size(max_qp) + 63) & ~(size_t)63);

	cr_assert_not_null(memory);
	ur_slots_init(s, memory, max_qp, workers, worker, prefix);
	next_random = random;
}

static void slots_new(struct ur_slots *s, uint32_t max_qp, uint16_t workers, uint16_t worker,
		      uint64_t random)
{
	slots_new_of(s, max_qp, workers, worker, (struct ur_qpn_prefix){0}, random);
}

static struct ur_qp *take(struct ur_slots *s, uint64_t now_ns)
{
	struct ur_qp *qp = ur_slots_take(s, now_ns, next_random++);

	if (qp)
		qp->core = &core;
	return qp;
}

/* SLOT-QPN-01 */
Test(slots, number_contains_the_worker_and_is_never_0_or_1)
{
	for (uint64_t random = 0; random < 200; random++) {
		struct ur_slots s;

		slots_new(&s, 6, 4, 3, random);
		for (unsigned i = 0; i < 6; i++) {
			struct ur_qp *qp = take(&s, 0);

			cr_assert_not_null(qp);
			cr_assert_eq(qp->qpn.v & 3, 3);
			cr_assert_gt(qp->qpn.v, 1);
			cr_assert_leq(qp->qpn.v, 0xfffffe);
			cr_assert_eq(ur_slots_find(&s, qp->qpn), qp);
		}
		free(s.qps);
	}
}

/* SLOT-QPN-01 */
Test(slots, one_worker_alone_has_no_bits_in_the_number)
{
	struct ur_slots s;

	slots_new(&s, 2, 1, 0, 1);
	cr_assert_eq(take(&s, 0)->qpn.v & 3, 2);
	cr_assert_eq(take(&s, 0)->qpn.v & 3, 3);
	free(s.qps);
}

Test(slots, no_more_than_max_qp_are_given_out)
{
	struct ur_slots s;

	slots_new(&s, 5, 1, 0, 1);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_not_null(take(&s, 0));
	cr_assert_null(take(&s, 0));
	cr_assert_eq(s.live, 5);
	free(s.qps);
}

/* SLOT-WAIT-01 */
Test(slots, slot_is_reused_after_time_wait_under_another_number)
{
	struct ur_slots s;
	struct ur_qp *qp;
	struct ur_qpn old;

	slots_new(&s, 1, 1, 0, 9);
	qp = take(&s, 0);
	old = qp->qpn;
	ur_slots_give(&s, qp, 1000);
	cr_assert_null(ur_slots_find(&s, old));
	cr_assert_null(take(&s, 999));
	cr_assert_eq(ur_slots_time_wait(&s, 999), 1);
	cr_assert_eq(ur_slots_time_wait(&s, 1000), 0);
	qp = take(&s, 1000);
	cr_assert_not_null(qp);
	cr_assert_neq(qp->qpn.v, old.v);
	cr_assert_null(ur_slots_find(&s, old));
	free(s.qps);
}

/* SLOT-WAIT-01 */
Test(slots, slot_that_is_free_longest_is_used_first)
{
	struct ur_slots s;
	struct ur_qp *qp[3];

	slots_new(&s, 3, 1, 0, 9);
	for (unsigned i = 0; i < 3; i++)
		qp[i] = take(&s, 0);
	ur_slots_give(&s, qp[1], 0);
	ur_slots_give(&s, qp[2], 0);
	ur_slots_give(&s, qp[0], 0);
	cr_assert_eq(take(&s, 0), qp[1]);
	cr_assert_eq(take(&s, 0), qp[2]);
	cr_assert_eq(take(&s, 0), qp[0]);
	free(s.qps);
}

/* SLOT-QPN-01 */
Test(slots, generations_go_round_and_skip_the_multicast_number)
{
	struct ur_slots s;

	slots_new(&s, 2, 8, 7, 3);
	for (unsigned i = 0; i < 3u << 19; i++) {
		struct ur_qp *qp = take(&s, 0);

		cr_assert_neq(qp->qpn.v, 0xffffff);
		ur_slots_give(&s, qp, 0);
	}
	free(s.qps);
}

/* SLOT-QPN-02 */
Test(slots, generation_is_the_randomness_given_but_never_the_last)
{
	static const uint64_t random[] = {7, 7, 8, 0xfffffffffffffffe, 0, 3, 0x1234567812345678};
	struct ur_slots s;
	uint32_t last = 0;

	slots_new(&s, 1, 2, 1, 0);
	for (unsigned i = 0; i < 7; i++) {
		struct ur_qp *qp = ur_slots_take(&s, 0, random[i]);
		uint32_t mask = (1u << 21) - 1, want = (uint32_t)random[i] & mask;

		/* Three bits of slot and worker below it. */
		cr_assert_eq(qp->qpn.v & 7, 2 << 1 | 1);
		cr_assert_eq(qp->qpn.v >> 3, want == last ? (last + 1) & mask : want, "%u", i);
		last = qp->qpn.v >> 3;
		qp->core = &core;
		ur_slots_give(&s, qp, 0);
	}
	free(s.qps);
}

Test(slots, unused_numbers_are_not_found)
{
	struct ur_slots s;

	slots_new(&s, 2, 1, 0, 3);
	for (uint32_t qpn = 0; qpn < 1u << 24; qpn += 997)
		cr_assert_null(ur_slots_find(&s, ur_qpn(qpn)));
	free(s.qps);
}

/* SLOT-QPN-03 */
Test(slots, number_begins_with_the_prefix)
{
	static const struct ur_qpn_prefix prefix = {6, 62};

	for (uint64_t random = 0; random < 200; random++) {
		struct ur_slots s;
		struct ur_qpn last = {0};

		slots_new_of(&s, 2, 2, 1, prefix, UINT64_MAX - random);
		for (unsigned i = 0; i < 6; i++) {
			struct ur_qp *qp = take(&s, 0);

			cr_assert_eq(qp->qpn.v >> 18, 62);
			cr_assert_eq(qp->qpn.v & 1, 1);
			cr_assert_neq(qp->qpn.v, last.v);
			cr_assert_eq(ur_slots_find(&s, qp->qpn), qp);
			last = qp->qpn;
			ur_slots_give(&s, qp, 0);
		}
		free(s.qps);
	}
}
