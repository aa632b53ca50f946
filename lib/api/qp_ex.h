/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_API_QP_EX_H
#define UR_API_QP_EX_H

#include "api/device.h"

/* Queue pairs that requests are posted to by ibv_wr_start(3). */

/* Bytes of a queue pair's object. `extended`: with room for ur_api_qp_extend(). */
size_t ur_api_qp_bytes(const struct ibv_qp_cap *cap, bool extended);
/* Sets the functions of ibv_qp_ex, and qp->batch. The object is new and zeroed. */
void ur_api_qp_extend(struct ur_api_qp *qp, const struct ibv_qp_cap *cap);

/* uroce_create_qp(), of either form (qp.c). */
struct ibv_qp *ur_api_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, bool extended);
/* QOS-SL-01: whether the request's SL has a lane; a live change may have removed it. */
bool ur_api_has_service(const struct ur_api_qp *qp, const struct ibv_send_wr *wr);

#endif
