/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "api/device.h"

/* The form of polling in which a program reads single fields of the current completion. */

#define WC_FLAGS                                                                                   \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |                    \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |                         \
	 IBV_WC_EX_WITH_DLID_PATH_BITS)

static struct ur_api_cq *cq_of(struct ibv_cq_ex *ex)
{
	return UR_API(cq, ibv_cq_ex_to_cq(ex));
}

/* Makes the oldest completion the current one. ENOENT: there is none. The lock is held. */
static int take(struct ur_api_cq *cq)
{
	if (!ur_engine_poll_cq(cq->cq, 1, &cq->current))
		return ENOENT;
	cq->ex.wr_id = cq->current.wr_id;
	cq->ex.status = cq->current.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct ur_device *dev = ur_device(ex->context);
	struct ur_api_cq *cq = cq_of(ex);
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	ur_device_close_bursts(dev);
	ur_api_lock(cq->thread_safe, &cq->lock);
	rc = take(cq);
	if (rc && !dev->dedicated) {
		ur_device_progress(dev);
		rc = take(cq);
	}
	/* After a failure the program does not call end_poll(). */
	if (rc)
		ur_api_unlock(cq->thread_safe, &cq->lock);
	return rc;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(cq_of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct ur_api_cq *cq = cq_of(ex);

	ur_api_unlock(cq->thread_safe, &cq->lock);
}

#define READ(type, name, field)                                                                    \
	static type read_##name(struct ibv_cq_ex *ex)                                              \
	{                                                                                          \
		return cq_of(ex)->current.field;                                                   \
	}

READ(enum ibv_wc_opcode, opcode, opcode)
READ(uint32_t, vendor_err, vendor_err)
READ(uint32_t, byte_len, byte_len)
READ(__be32, imm_data, imm_data)
READ(uint32_t, qp_num, qp_num)
READ(uint32_t, src_qp, src_qp)
READ(unsigned, wc_flags, wc_flags)
READ(uint32_t, slid, slid)
READ(uint8_t, sl, sl)
READ(uint8_t, dlid_path_bits, dlid_path_bits)

static uint32_t flags_of(const struct ibv_cq_init_attr_ex *a)
{
	return a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? a->flags : 0;
}

static bool is_supported(const struct ibv_cq_init_attr_ex *a)
{
	return !(a->wc_flags & ~(uint64_t)WC_FLAGS) &&
	       !(a->comp_mask &
		 ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) &&
	       !(flags_of(a) & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

/* NULL: none is given. */
static struct ur_api_pd *parent_of(const struct ibv_cq_init_attr_ex *a)
{
	return a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? UR_API(pd, a->parent_domain) : NULL;
}

static bool is_in_range(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *a)
{
	const struct ur_api_pd *parent = parent_of(a);

	return a->cqe <= INT32_MAX && a->comp_vector <= INT32_MAX &&
	       (!parent || (parent->protection && parent->base.context == ctx));
}

/* TD-LOCK-01, TD-PARENT-01 */
static void enter_domain(struct ur_api_cq *cq, const struct ibv_cq_init_attr_ex *a)
{
	struct ur_device *dev = ur_device(cq->base.context);

	cq->parent = parent_of(a);
	cq->thread_safe = ur_api_is_thread_safe(dev, cq->parent) &&
			  !(flags_of(a) & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	if (!cq->parent)
		return;
	pthread_mutex_lock(&dev->lock);
	cq->parent->refs++;
	pthread_mutex_unlock(&dev->lock);
}

struct ibv_cq_ex *uroce_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *base;
	struct ibv_cq_ex *ex;

	if (!is_supported(attr)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!is_in_range(ctx, attr)) {
		errno = EINVAL;
		return NULL;
	}
	base = uroce_create_cq(ctx, (int)attr->cqe, attr->cq_context, attr->channel,
			       (int)attr->comp_vector);
	if (!base)
		return NULL;
	enter_domain(UR_API(cq, base), attr);
	ex = &UR_API(cq, base)->ex;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	return ex;
}
