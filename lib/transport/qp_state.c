/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/qp_state.h"

#include <errno.h>
#include <stdbool.h>

/* Columns of the table. */
#define RC UR_SERVICE_RC
#define UC UR_SERVICE_UC
#define UD UR_SERVICE_UD

#define STATE_CNT (IBV_QPS_ERR + 1)

struct transition {
	bool legal[UR_SERVICE_CNT];
	int required[UR_SERVICE_CNT];
	int optional[UR_SERVICE_CNT];
};

#define ALL_SERVICES                                                                               \
	{                                                                                          \
		true, true, true                                                                   \
	}

/* Sets of attributes that several transitions share. */
#define ALT	       (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_DATAGRAM  (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC	       (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC	       (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTR_OPTIONAL   (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define REQUESTER_RC                                                                               \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define RTS_OPTIONAL_UC (ALT | IBV_QP_ACCESS_FLAGS)
#define RTS_OPTIONAL_RC (RTS_OPTIONAL_UC | IBV_QP_MIN_RNR_TIMER)
#define SQD_UC		(ALT | IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define SQD_RC                                                                                     \
	(SQD_UC | REQUESTER_RC | IBV_QP_PORT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

/*
 * QP-STATE-01, QP-STATE-02 (IBA 11.2.5.2). To RESET and to ERR one may go from every state, with no
 * attribute; these two are not listed.
 */
static const struct transition transitions[STATE_CNT][STATE_CNT] =
	{
		[IBV_QPS_RESET][IBV_QPS_INIT] =
			{
				.legal = ALL_SERVICES,
				.required = {[RC] = INIT_CONNECTED,
					     [UC] = INIT_CONNECTED,
					     [UD] = INIT_DATAGRAM},
			},
		[IBV_QPS_INIT][IBV_QPS_INIT] =
			{
				.legal = ALL_SERVICES,
				.optional = {[RC] = INIT_CONNECTED,
					     [UC] = INIT_CONNECTED,
					     [UD] = INIT_DATAGRAM},
			},
		[IBV_QPS_INIT][IBV_QPS_RTR] =
			{
				.legal = ALL_SERVICES,
				.required = {[RC] = RTR_RC, [UC] = RTR_UC},
				.optional = {[RC] = RTR_OPTIONAL,
					     [UC] = RTR_OPTIONAL,
					     [UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
			},
		[IBV_QPS_RTR][IBV_QPS_RTS] =
			{
				.legal = ALL_SERVICES,
				.required = {[RC] = REQUESTER_RC | IBV_QP_SQ_PSN,
					     [UC] = IBV_QP_SQ_PSN,
					     [UD] = IBV_QP_SQ_PSN},
				.optional = {[RC] = RTS_OPTIONAL_RC,
					     [UC] = RTS_OPTIONAL_UC,
					     [UD] = IBV_QP_QKEY},
			},
		[IBV_QPS_RTS][IBV_QPS_RTS] =
			{
				.legal = ALL_SERVICES,
				.optional = {[RC] = RTS_OPTIONAL_RC,
					     [UC] = RTS_OPTIONAL_UC,
					     [UD] = IBV_QP_QKEY},
			},
		[IBV_QPS_RTS][IBV_QPS_SQD] =
			{
				.legal = ALL_SERVICES,
				.optional = {[RC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
					     [UC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
					     [UD] = IBV_QP_EN_SQD_ASYNC_NOTIFY},
			},
		[IBV_QPS_SQD][IBV_QPS_RTS] =
			{
				.legal = ALL_SERVICES,
				.optional = {[RC] = RTS_OPTIONAL_RC,
					     [UC] = RTS_OPTIONAL_UC,
					     [UD] = IBV_QP_QKEY},
			},
		[IBV_QPS_SQD][IBV_QPS_SQD] =
			{
				.legal = ALL_SERVICES,
				.optional = {[RC] = SQD_RC,
					     [UC] = SQD_UC,
					     [UD] = IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
			},
		/* A failed send stops an RC QP altogether, so it never is in SQE (IBA 10.3.1.6). */
		[IBV_QPS_SQE][IBV_QPS_RTS] =
			{
				.legal = {[UC] = true, [UD] = true},
				.optional = {[UC] = IBV_QP_ACCESS_FLAGS, [UD] = IBV_QP_QKEY},
			},
};

int ur_qp_state_check(enum ur_service service, enum ibv_qp_state cur, enum ibv_qp_state next,
		      int mask)
{
	const struct transition *t;

	if ((unsigned)cur >= STATE_CNT || (unsigned)next >= STATE_CNT)
		return -EINVAL;
	mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	if (next == IBV_QPS_RESET || next == IBV_QPS_ERR)
		return mask ? -EINVAL : 0;
	t = &transitions[cur][next];
	if (!t->legal[service] || (mask & t->required[service]) != t->required[service] ||
	    (mask & ~(t->required[service] | t->optional[service])))
		return -EINVAL;
	return 0;
}

int ur_qp_state_required(enum ur_service service, enum ibv_qp_state cur, enum ibv_qp_state next)
{
	return transitions[cur][next].required[service];
}

const char *ur_qp_state_name(enum ibv_qp_state state)
{
	static const char *const names[STATE_CNT] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
		[IBV_QPS_RTS] = "RTS",	   [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
		[IBV_QPS_ERR] = "ERR",
	};

	return (unsigned)state < STATE_CNT ? names[state] : "UNKNOWN";
}
