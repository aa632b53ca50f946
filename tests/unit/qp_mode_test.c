/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "api/qp_mode.h"

/* Calls `fn` for all combinations of service, mode that is wanted, way of connecting, room and peer. */
static void each_case(void (*fn)(const struct ur_mode_case *c))
{
	for (unsigned bits = 0; bits < 1u << 6; bits++) {
		struct ur_mode_case c = {
			.want = (enum uroce_qp_mode)(bits & 3),
			.rc = bits >> 2 & 1,
			.by_cm = bits >> 3 & 1,
			.room = bits >> 4 & 1,
			.peer = bits >> 5 & 1,
		};

		fn(&c);
	}
}

static bool wants_extended(const struct ur_mode_case *c)
{
	return c->want == UROCE_QP_MODE_EXTENDED || c->want == UROCE_QP_MODE_AUTO;
}

/* CM-EXT-02 */
static void expect_agreement_only(const struct ur_mode_case *c)
{
	struct ur_mode_verdict v = ur_mode_decide(c);
	bool agreed = c->rc && wants_extended(c) && c->by_cm && c->room && c->peer;
	bool by_hand = c->rc && c->want == UROCE_QP_MODE_EXTENDED && !c->by_cm;

	cr_expect_eq(v.ok && v.mode == UR_MODE_EXTENDED, agreed || by_hand);
	cr_expect_eq(v.reason == UROCE_MODE_REASON_AGREED, agreed);
}

Test(qp_mode, extended_needs_both_ends_and_room_for_the_block)
{
	each_case(expect_agreement_only);
}

/* CM-EXT-06 */
static void expect_demands_only(const struct ur_mode_case *c)
{
	struct ur_mode_verdict v = ur_mode_decide(c);

	if (!v.ok)
		cr_expect(c->rc && c->want == UROCE_QP_MODE_EXTENDED && c->by_cm &&
			  !(c->room && c->peer));
}

Test(qp_mode, only_a_demand_can_fail)
{
	each_case(expect_demands_only);
}

static void expect_symmetry(const struct ur_mode_case *c)
{
	struct ur_mode_case other = *c;

	/* A side that answers that extended mode is used must have got the offer, and must use it. */
	if (!c->by_cm)
		return;
	other.peer = ur_mode_offers(c);
	other.rc = c->rc;
	for (unsigned want = 0; want < 4; want++) {
		struct ur_mode_verdict passive, active;
		struct ur_mode_case mine = *c;

		other.want = (enum uroce_qp_mode)want;
		other.room = true;
		passive = ur_mode_decide(&other);
		mine.peer = passive.mode == UR_MODE_EXTENDED;
		active = ur_mode_decide(&mine);
		if (passive.ok && active.ok)
			cr_expect_eq(passive.mode == UR_MODE_EXTENDED,
				     active.mode == UR_MODE_EXTENDED);
	}
}

/* CM-EXT-02 */
Test(qp_mode, both_ends_come_to_the_same_mode_or_to_none)
{
	each_case(expect_symmetry);
}

/* CM-EXT-05 */
Test(qp_mode, auto_falls_back_to_the_reorder_buffer)
{
	struct ur_mode_case c = {.rc = true, .by_cm = true, .room = true};
	struct ur_mode_verdict v = ur_mode_decide(&c);

	cr_expect(v.ok && v.mode == UR_MODE_REORDER && v.reason == UROCE_MODE_REASON_PEER);
	c.room = false;
	v = ur_mode_decide(&c);
	cr_expect(v.ok && v.mode == UR_MODE_REORDER && v.reason == UROCE_MODE_REASON_PRIVATE_DATA);
	c.by_cm = false;
	v = ur_mode_decide(&c);
	cr_expect(v.ok && v.mode == UR_MODE_REORDER && v.reason == UROCE_MODE_REASON_BY_HAND);
}

Test(qp_mode, a_chosen_standard_mode_is_that_mode)
{
	struct ur_mode_case c = {
		.rc = true, .want = UROCE_QP_MODE_GBN, .by_cm = true, .peer = true};

	cr_expect_eq(ur_mode_decide(&c).mode, UR_MODE_GBN);
	c.want = UROCE_QP_MODE_REORDER;
	cr_expect_eq(ur_mode_decide(&c).mode, UR_MODE_REORDER);
	c.rc = false;
	cr_expect_eq(ur_mode_decide(&c).mode, UR_MODE_GBN, "other services have one mode");
}

Test(qp_mode, only_strict_writes_and_atomics_may_be_polled_in_memory)
{
	cr_expect(ur_mode_in_order(true, true, IBV_WR_RDMA_WRITE));
	cr_expect(ur_mode_in_order(true, true, IBV_WR_RDMA_WRITE_WITH_IMM));
	cr_expect(ur_mode_in_order(true, false, IBV_WR_ATOMIC_FETCH_AND_ADD));
	cr_expect_not(ur_mode_in_order(true, false, IBV_WR_RDMA_WRITE));
	cr_expect_not(ur_mode_in_order(true, true, IBV_WR_RDMA_READ));
	cr_expect_not(ur_mode_in_order(true, true, IBV_WR_SEND));
	cr_expect_not(ur_mode_in_order(false, true, IBV_WR_RDMA_WRITE), "UC places in any way");
}

Test(qp_mode, spraying_is_refused_where_order_matters)
{
	struct ur_mode_want old = {.mode = UROCE_QP_MODE_GBN};
	struct uroce_qp_mode_attr a = {.mode = UROCE_QP_MODE_EXTENDED, .spray = 4};

	cr_expect_eq(ur_mode_want_check(&a, UROCE_QP_SPRAY, &old), EINVAL);
	cr_expect_eq(ur_mode_want_check(&a, UROCE_QP_SPRAY | UROCE_QP_MODE, &old), 0);
}

Test(qp_mode, every_mode_and_reason_has_a_name)
{
	cr_expect_str_eq(uroce_qp_mode_str(UROCE_QP_MODE_EXTENDED), "extended");
	cr_expect_str_eq(uroce_qp_mode_str((enum uroce_qp_mode)99), "unknown");
	cr_expect_not_null(strstr(uroce_qp_mode_reason_str(UROCE_MODE_REASON_PRIVATE_DATA), "40"));
	cr_expect_str_eq(uroce_qp_mode_reason_str((enum uroce_qp_mode_reason)99), "unknown");
}
