/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "api/device.h"

/*
 * The layouts that programs compiled for rdma-core rely on (x86-64), against the header that this tree
 * is compiled with. Structs that later releases let grow are compared by what precedes the new fields.
 */

/* CONTEXT-LAYOUT-01 */
Test(verbs_layout, a_device_is_followed_by_its_operations)
{
	cr_expect_eq(sizeof(struct ibv_device), 664);
	cr_expect_eq(offsetof(struct ur_ibdev, ops), 664);
}

Test(verbs_layout, a_context_ends_the_extended_one)
{
	cr_expect_eq(sizeof(struct ibv_context), 328);
	cr_expect_eq(offsetof(struct ibv_context, abi_compat), 320);
	cr_expect_eq(offsetof(struct verbs_context, context) + sizeof(struct ibv_context),
		     sizeof(struct verbs_context));
	cr_expect_eq(offsetof(struct verbs_context, context) - offsetof(struct verbs_context, sz),
		     sizeof(size_t));
	/* New fields come before the old ones. */
	cr_expect_geq(sizeof(struct verbs_context), 648);
	cr_expect_eq(offsetof(struct ur_context, v) + sizeof(struct verbs_context),
		     sizeof(struct ur_context), "a field is behind the handle");
}

Test(verbs_layout, a_completion_queue_is_both_forms_at_once)
{
	cr_expect_eq(sizeof(struct ibv_cq), 128);
	cr_expect_geq(sizeof(struct ibv_cq_ex), 288);
	cr_expect_eq(offsetof(struct ur_api_cq, base), 0);
	cr_expect_eq(offsetof(struct ur_api_cq, ex), 0);
	cr_expect_eq(offsetof(struct ur_api_cq, cq) % 64, 0);
	cr_expect_geq(offsetof(struct ur_api_cq, cq), sizeof(struct ibv_cq_ex));
}

Test(verbs_layout, a_queue_pair_has_room_for_the_extended_form_behind_it)
{
	cr_expect_eq(sizeof(struct ibv_qp), 160);
	cr_expect_geq(sizeof(struct ibv_qp_ex), 352);
	cr_expect_eq(offsetof(struct ibv_qp_ex, qp_base), 0);
	cr_expect_geq(offsetof(struct ur_api_qp, base) + sizeof(struct ibv_qp) + 63,
		      sizeof(struct ur_api_qp), "a field is behind base");
	/* What posting needs is one line, and the next one is base's first. */
	cr_expect_eq(offsetof(struct ur_api_qp, base) - offsetof(struct ur_api_qp, qp), 64);
	cr_expect_eq(offsetof(struct ur_api_qp, base) % 64, 0);
	cr_expect_lt(offsetof(struct ibv_qp, qp_type), 64);
}

Test(verbs_layout, the_other_objects_begin_with_their_verbs_structs)
{
	cr_expect_eq(offsetof(struct ur_api_pd, base), 0);
	cr_expect_eq(offsetof(struct ur_api_mr, base), 0);
	cr_expect_eq(offsetof(struct ur_api_srq, base), 0);
	cr_expect_eq(offsetof(struct ur_api_ah, base), 0);
	cr_expect_eq(offsetof(struct ur_api_channel, base), 0);
	cr_expect_eq(offsetof(struct ur_ah, verbs), 0);
}

Test(verbs_layout, attributes_of_a_port_end_with_port_cap_flags2)
{
	cr_expect_eq(offsetof(struct ibv_port_attr, flags), 47);
	cr_expect_eq(offsetof(struct ibv_port_attr, port_cap_flags2), 48);
}
