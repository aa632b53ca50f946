/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "end.h"
#include "transport/qp.h"
#include "transport/qp_ops.h"
#include "wire/opcode.h"

static const struct {
	enum ibv_qp_type type;
	enum ur_mode mode;
} kinds[] = {
	{IBV_QPT_RC, UR_MODE_GBN}, {IBV_QPT_RC, UR_MODE_REORDER}, {IBV_QPT_RC, UR_MODE_EXTENDED},
	{IBV_QPT_UC, UR_MODE_GBN}, {IBV_QPT_UD, UR_MODE_GBN},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct ur_qp_ops *row(unsigned i)
{
	const struct ur_qp_ops *ops = ur_qp_ops_of(kinds[i].type, kinds[i].mode);

	cr_assert_not_null(ops, "kind %u", i);
	return ops;
}

Test(qp_ops, each_kind_has_a_row_of_its_own)
{
	for (unsigned i = 0; i < KINDS; i++) {
		cr_expect_eq(row(i)->type, kinds[i].type);
		cr_expect_eq(row(i)->mode, kinds[i].mode);
		for (unsigned k = 0; k < i; k++)
			cr_expect_neq(row(i), row(k));
	}
}

Test(qp_ops, other_types_and_modes_have_no_row)
{
	cr_expect_null(ur_qp_ops_of(IBV_QPT_RAW_PACKET, UR_MODE_GBN));
	cr_expect_null(ur_qp_ops_of(IBV_QPT_XRC_SEND, UR_MODE_GBN));
	cr_expect_null(ur_qp_ops_of((enum ibv_qp_type)0, UR_MODE_GBN));
	cr_expect_null(ur_qp_ops_of(IBV_QPT_RC, (enum ur_mode)(UR_MODE_EXTENDED + 1)));
	cr_expect_null(ur_qp_ops_of(IBV_QPT_UC, UR_MODE_REORDER));
	cr_expect_null(ur_qp_ops_of(IBV_QPT_UD, UR_MODE_EXTENDED));
}

/* What is not said to be optional is there: all that calls it does so without a look. */
Test(qp_ops, no_operation_is_missing)
{
	for (unsigned i = 0; i < KINDS; i++) {
		const struct ur_qp_ops *o = row(i);
		void (*const required[])(void) = {
#define OP(name) (void (*)(void)) o->name
			OP(init),	  OP(release),	       OP(set_first_psn),
			OP(set_epsn),	  OP(set_limits),      OP(resize),
			OP(stop_sending), OP(stop_responding), OP(abort),
			OP(validate),	  OP(ready),	       OP(next),
			OP(drain),	  OP(is_idle),	       OP(asks),
			OP(in_flight),	  OP(acked),	       OP(deadline),
			OP(expire),	  OP(rearm),	       OP(request),
			OP(predicted),	  OP(response),	       OP(response_next),
			OP(ack_next),	  OP(is_answering),    OP(ack_all),
			OP(numbers),	  OP(paths),	       OP(predicted_answer),
#undef OP
		};
		size_t optional = sizeof(o->connect) + sizeof(o->burst) + sizeof(o->follow_sl);

		for (unsigned k = 0; k < sizeof(required) / sizeof(required[0]); k++)
			cr_expect_not_null((void *)(uintptr_t)required[k], "kind %u operation %u",
					   i, k);
		/* All operations are in the list above. */
		cr_expect_eq(sizeof(required) + optional,
			     sizeof(*o) - offsetof(struct ur_qp_ops, init));
	}
}

/* IBA 9.2.1: the top three bits of an opcode are its transport. */
Test(qp_ops, transports_are_those_of_the_opcodes)
{
	static const uint8_t opcode[KINDS] = {UR_RC_SEND_ONLY, UR_RC_SEND_ONLY, UR_EXT_SEND_ONLY,
					      UR_RC_SEND_ONLY | UR_TRANSPORT_UC, UR_UD_SEND_ONLY};

	for (unsigned i = 0; i < KINDS; i++) {
		bool rc = kinds[i].type == IBV_QPT_RC;

		cr_expect_eq(row(i)->transport, opcode[i] & UR_TRANSPORT_MASK);
		cr_expect_eq(row(i)->other_transport != row(i)->transport, rc,
			     "RC alone has modes");
		cr_expect_eq(row(i)->reliable, rc);
		cr_expect_eq(row(i)->connected, kinds[i].type != IBV_QPT_UD);
	}
}

/* What the send queue accepts was copied from it, and stays through all modes. */
Test(qp_ops, mode_does_not_change_what_may_be_posted)
{
	cr_expect_eq(row(0)->opcodes, row(1)->opcodes);
	cr_expect_eq(row(0)->opcodes, row(2)->opcodes);
	cr_expect_eq(row(0)->connected, row(2)->connected);
}

/* QP-MODE-01 */
Test(qp_ops, a_queue_pair_points_to_the_row_of_its_mode)
{
	struct end *e = END(.mode = UR_MODE_REORDER);

	cr_expect_eq(e->qp->ops, row(1));
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_expect_eq(e->qp->ops, row(1), "it stays through RESET");
	cr_assert_eq(ur_qp_set_mode(e->qp, UR_MODE_EXTENDED, false), 0);
	cr_expect_eq(e->qp->ops, row(2));
	cr_assert_eq(ur_qp_set_mode(e->qp, UR_MODE_GBN, false), 0);
	cr_expect_eq(e->qp->ops, row(0));
	end_free(e);
}

static void expect_no_other_mode(enum ibv_qp_type type)
{
	struct end *e = END(.type = type);
	const struct ur_qp_ops *ops = ur_qp_ops_of(type, UR_MODE_GBN);

	cr_expect_eq(e->qp->ops, ops);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	for (enum ur_mode m = UR_MODE_GBN; m <= UR_MODE_EXTENDED; m++)
		cr_expect_eq(ur_qp_set_mode(e->qp, m, false), -EINVAL);
	cr_expect_eq(e->qp->ops, ops);
	end_free(e);
}

Test(qp_ops, unreliable_queue_pairs_have_no_modes)
{
	expect_no_other_mode(IBV_QPT_UC);
	expect_no_other_mode(IBV_QPT_UD);
}
