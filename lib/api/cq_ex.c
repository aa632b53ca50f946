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
	ur_api_lock(dev, &cq->lock);
	rc = take(cq);
	if (rc && !dev->dedicated) {
		ur_device_progress(dev);
		rc = take(cq);
	}
	/* After a failure the program does not call end_poll(). */
	if (rc)
		ur_api_unlock(dev, &cq->lock);
	return rc;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take(cq_of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	ur_api_unlock(ur_device(ex->context), &cq_of(ex)->lock);
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

static bool is_supported(const struct ibv_cq_init_attr_ex *a)
{
	uint32_t flags = a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? a->flags : 0;

	return !(a->wc_flags & ~(uint64_t)WC_FLAGS) &&
	       !(a->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	       !(flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

struct ibv_cq_ex *uroce_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *base;
	struct ibv_cq_ex *ex;

	if (!is_supported(attr)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->cqe > INT32_MAX || attr->comp_vector > INT32_MAX) {
		errno = EINVAL;
		return NULL;
	}
	base = uroce_create_cq(ctx, (int)attr->cqe, attr->cq_context, attr->channel,
			       (int)attr->comp_vector);
	if (!base)
		return NULL;
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
