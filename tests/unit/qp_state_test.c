/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>

#include "transport/qp_state.h"

/*
 * The whole matrix, written out: [type][from][to]. A cell names the attributes with one letter
 * each, required ones before the slash, permitted ones after it; NULL is an illegal transition.
 */
static const struct {
	char letter;
	int bit;
} letters[] = {
	{'K', IBV_QP_PKEY_INDEX},
	{'P', IBV_QP_PORT},
	{'Q', IBV_QP_QKEY},
	{'F', IBV_QP_ACCESS_FLAGS},
	{'V', IBV_QP_AV},
	{'M', IBV_QP_PATH_MTU},
	{'D', IBV_QP_DEST_QPN},
	{'r', IBV_QP_RQ_PSN},
	{'s', IBV_QP_SQ_PSN},
	{'d', IBV_QP_MAX_DEST_RD_ATOMIC},
	{'a', IBV_QP_MAX_QP_RD_ATOMIC},
	{'n', IBV_QP_MIN_RNR_TIMER},
	{'T', IBV_QP_TIMEOUT},
	{'c', IBV_QP_RETRY_CNT},
	{'R', IBV_QP_RNR_RETRY},
	{'A', IBV_QP_ALT_PATH},
	{'G', IBV_QP_PATH_MIG_STATE},
	{'E', IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{'C', IBV_QP_CAP},
	{'L', IBV_QP_RATE_LIMIT},
};

#define LETTERS (sizeof(letters) / sizeof(letters[0]))
#define STATES	7

static const enum ur_service services[] = {UR_SERVICE_RC, UR_SERVICE_UC, UR_SERVICE_UD};

/* clang-format off */
static const char *const matrix[3][STATES][STATES] = {
	/* to:        RESET INIT    RTR             RTS           SQD   SQE   ERR */
	{ /* RC */
		/* RESET */ {"/", "KPF/",  NULL,          NULL,         NULL, NULL, "/"},
		/* INIT */  {"/", "/KPF",  "VMDrdn/AFK",  NULL,         NULL, NULL, "/"},
		/* RTR */   {"/", NULL,    NULL,          "sTcRa/AFnG", NULL, NULL, "/"},
		/* RTS */   {"/", NULL,    NULL,          "/AFnG",      "/E", NULL, "/"},
		/* SQD */   {"/", NULL,    NULL,          "/AFnG",      "/PVTcRadAFKnG", NULL, "/"},
		/* SQE */   {"/", NULL,    NULL,          NULL,         NULL, NULL, "/"},
		/* ERR */   {"/", NULL,    NULL,          NULL,         NULL, NULL, "/"},
	},
	{ /* UC */
		/* RESET */ {"/", "KPF/",  NULL,          NULL,         NULL, NULL, "/"},
		/* INIT */  {"/", "/KPF",  "VMDr/AFK",    NULL,         NULL, NULL, "/"},
		/* RTR */   {"/", NULL,    NULL,          "s/AFG",      NULL, NULL, "/"},
		/* RTS */   {"/", NULL,    NULL,          "/AFG",       "/E", NULL, "/"},
		/* SQD */   {"/", NULL,    NULL,          "/AFG",       "/VAFKG", NULL, "/"},
		/* SQE */   {"/", NULL,    NULL,          "/F",         NULL, NULL, "/"},
		/* ERR */   {"/", NULL,    NULL,          NULL,         NULL, NULL, "/"},
	},
	{ /* UD */
		/* RESET */ {"/", "KPQ/",  NULL,          NULL,         NULL, NULL, "/"},
		/* INIT */  {"/", "/KPQ",  "/KQ",         NULL,         NULL, NULL, "/"},
		/* RTR */   {"/", NULL,    NULL,          "s/Q",        NULL, NULL, "/"},
		/* RTS */   {"/", NULL,    NULL,          "/Q",         "/E", NULL, "/"},
		/* SQD */   {"/", NULL,    NULL,          "/Q",         "/KQ", NULL, "/"},
		/* SQE */   {"/", NULL,    NULL,          "/Q",         NULL, NULL, "/"},
		/* ERR */   {"/", NULL,    NULL,          NULL,         NULL, NULL, "/"},
	},
};
/* clang-format on */

static int bit_of(char letter)
{
	for (unsigned i = 0; i < LETTERS; i++)
		if (letters[i].letter == letter)
			return letters[i].bit;
	cr_assert_fail("no attribute is called %c", letter);
	return 0;
}

static void parse(const char *cell, int *required, int *permitted)
{
	int *set = required;

	*required = *permitted = 0;
	for (; *cell; cell++) {
		if (*cell == '/')
			set = permitted;
		else
			*set |= bit_of(*cell);
	}
}

static void expect_cell(unsigned service, int from, int to, int mask, int rc)
{
	cr_expect_eq(ur_qp_state_check(services[service], from, to, mask), rc,
		     "service %d, %s to %s, mask %#x: not %d", (int)services[service],
		     ur_qp_state_name(from), ur_qp_state_name(to), (unsigned)mask, rc);
}

/* QP-STATE-01 */
Test(qp_state, illegal_transitions_are_refused_whatever_the_mask)
{
	for (unsigned t = 0; t < 3; t++)
		for (int from = 0; from < STATES; from++)
			for (int to = 0; to < STATES; to++) {
				if (matrix[t][from][to])
					continue;
				expect_cell(t, from, to, IBV_QP_STATE, -EINVAL);
				for (unsigned i = 0; i < LETTERS; i++)
					expect_cell(t, from, to, letters[i].bit, -EINVAL);
			}
}

/* QP-STATE-02 */
Test(qp_state, each_attribute_is_required_permitted_or_refused_as_the_table_says)
{
	for (unsigned t = 0; t < 3; t++)
		for (int from = 0; from < STATES; from++)
			for (int to = 0; to < STATES; to++) {
				int required, permitted;

				if (!matrix[t][from][to])
					continue;
				parse(matrix[t][from][to], &required, &permitted);
				expect_cell(t, from, to, required, 0);
				expect_cell(t, from, to, required | permitted, 0);
				for (unsigned i = 0; i < LETTERS; i++) {
					int bit = letters[i].bit;

					if (required & bit)
						expect_cell(t, from, to, required & ~bit, -EINVAL);
					else
						expect_cell(t, from, to, required | bit,
							    (permitted & bit) ? 0 : -EINVAL);
				}
			}
}

Test(qp_state, naming_the_state_changes_nothing)
{
	int state = IBV_QP_STATE | IBV_QP_CUR_STATE;

	for (unsigned t = 0; t < 3; t++)
		for (int from = 0; from < STATES; from++)
			for (int to = 0; to < STATES; to++) {
				int required = 0, permitted;

				if (matrix[t][from][to])
					parse(matrix[t][from][to], &required, &permitted);
				expect_cell(t, from, to, required | state,
					    matrix[t][from][to] ? 0 : -EINVAL);
			}
}

Test(qp_state, an_rc_qp_is_never_in_sqe)
{
	cr_assert_eq(ur_qp_state_check(UR_SERVICE_RC, IBV_QPS_SQE, IBV_QPS_RTS, 0), -EINVAL);
	cr_assert_eq(ur_qp_state_check(UR_SERVICE_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0), 0);
	cr_assert_eq(ur_qp_state_check(UR_SERVICE_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0), 0);
}

Test(qp_state, other_states_are_refused)
{
	cr_assert_eq(ur_qp_state_check(UR_SERVICE_RC, IBV_QPS_UNKNOWN, IBV_QPS_RESET, 0), -EINVAL);
	cr_assert_eq(ur_qp_state_check(UR_SERVICE_RC, IBV_QPS_RESET, IBV_QPS_UNKNOWN, 0), -EINVAL);
	cr_assert_eq(ur_qp_state_check(UR_SERVICE_RC, (enum ibv_qp_state) - 1, IBV_QPS_ERR, 0),
		     -EINVAL);
}

Test(qp_state, every_state_has_a_name)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	for (int s = 0; s < STATES; s++)
		cr_expect_str_eq(ur_qp_state_name(s), names[s]);
	cr_expect_str_eq(ur_qp_state_name(IBV_QPS_UNKNOWN), "UNKNOWN");
	cr_expect_str_eq(ur_qp_state_name((enum ibv_qp_state) - 1), "UNKNOWN");
}
