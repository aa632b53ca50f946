/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "api/qp_ex.h"

/*
 * Posting by ibv_wr_start(3): requests are built one call at a time, and posted together or not at all
 * (WQ-STAGE-01). A request is staged in the send queue when the next one begins, because its address and its data
 * may be set in either order.
 */

struct ur_api_batch {
	struct ibv_send_wr wr; /* the request being built, if `open` */
	bool open;
	int err;	    /* the first error; nothing is posted then */
	uint32_t ready;	    /* requests staged before it */
	uint32_t max_sge;   /* of `sge` */
	uint32_t max_bytes; /* of `copy` */
	uint8_t *copy;	    /* inline data, which the program may change again after its call */
	struct ibv_sge sge[];
};

/* ---- memory: the object, the rest of ibv_qp_ex behind ibv_qp, then the batch ---- */

static size_t batch_at(void)
{
	return (offsetof(struct ur_api_qp, base) + sizeof(struct ibv_qp_ex) + 63) & ~(size_t)63;
}

size_t ur_api_qp_bytes(const struct ibv_qp_cap *cap, bool extended)
{
	if (!extended)
		return sizeof(struct ur_api_qp);
	return batch_at() + sizeof(struct ur_api_batch) +
	       cap->max_send_sge * sizeof(struct ibv_sge) + cap->max_inline_data;
}

/* ---- the calls of ibv_qp_ex ---- */

static struct ur_api_qp *qp_of(struct ibv_qp_ex *ex)
{
	return UR_API(qp, &ex->qp_base);
}

static void fail(struct ur_api_batch *b, int err)
{
	if (!b->err)
		b->err = err;
}

static void stage(struct ur_api_qp *qp)
{
	struct ur_api_batch *b = qp->batch;
	int rc;

	if (b->open && !b->err) {
		rc = ur_api_has_service(qp, &b->wr) ? ur_engine_stage_send(qp->qp, b->ready, &b->wr)
						    : EINVAL;
		if (rc)
			fail(b, rc);
		else
			b->ready++;
	}
	b->open = false;
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct ur_api_qp *qp = qp_of(ex);
	struct ur_api_batch *b = qp->batch;

	stage(qp);
	b->open = true;
	b->wr = (struct ibv_send_wr){
		.wr_id = ex->wr_id,
		.sg_list = b->sge,
		.opcode = opcode,
		/* Its data decide whether a request is inline. */
		.send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE,
	};
	return &b->wr;
}

static struct ibv_send_wr *begin_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
				      uint32_t rkey, uint64_t remote_addr)
{
	struct ibv_send_wr *wr = begin(ex, opcode);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_data = imm_data;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void begin_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
			 uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin(ex, opcode);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

/* What no queue pair has. A program that asks for it when it creates the queue pair is refused there. */
static void refuse(struct ibv_qp_ex *ex)
{
	stage(qp_of(ex));
	fail(qp_of(ex)->batch, EOPNOTSUPP);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	refuse(ex);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	refuse(ex);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *data)
{
	refuse(ex);
}

/* The batch for a call that sets a part of the current request; NULL: there is none, or an error came before. */
static struct ur_api_batch *current(struct ibv_qp_ex *ex)
{
	struct ur_api_batch *b = qp_of(ex)->batch;

	if (!b->open)
		fail(b, EINVAL);
	return b->err ? NULL : b;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct ur_api_batch *b = current(ex);

	/* In a request of another service this place means something else. */
	if (b && ex->qp_base.qp_type != IBV_QPT_UD)
		fail(b, EINVAL);
	else if (b) {
		b->wr.wr.ud.ah = ah;
		b->wr.wr.ud.remote_qpn = remote_qpn;
		b->wr.wr.ud.remote_qkey = remote_qkey;
	}
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t cnt,
				    const struct ibv_data_buf *list)
{
	struct ur_api_batch *b = current(ex);
	size_t bytes = 0;

	if (!b)
		return;
	for (size_t i = 0; i < cnt; i++) {
		if (list[i].length > b->max_bytes - bytes) {
			fail(b, EINVAL);
			return;
		}
		if (list[i].length)
			memcpy(b->copy + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	b->sge[0] = (struct ibv_sge){.addr = (uintptr_t)b->copy, .length = (uint32_t)bytes};
	b->wr.num_sge = 1;
	b->wr.send_flags |= IBV_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	wr_set_inline_data_list(ex, 1, &(struct ibv_data_buf){.addr = addr, .length = length});
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t cnt, const struct ibv_sge *list)
{
	struct ur_api_batch *b = current(ex);

	if (!b)
		return;
	if (cnt > b->max_sge) {
		fail(b, EINVAL);
		return;
	}
	if (cnt)
		memcpy(b->sge, list, cnt * sizeof(*list));
	b->wr.num_sge = (int)cnt;
	b->wr.send_flags &= ~(unsigned)IBV_SEND_INLINE;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	wr_set_sge_list(ex, 1, &(struct ibv_sge){.addr = addr, .length = length, .lkey = lkey});
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct ur_api_qp *qp = qp_of(ex);

	ur_api_lock(qp->thread_safe, &qp->sq_lock);
	qp->batch->open = false;
	qp->batch->err = 0;
	qp->batch->ready = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct ur_api_qp *qp = qp_of(ex);
	struct ur_api_batch *b = qp->batch;
	uint32_t cnt;
	int rc;

	stage(qp);
	rc = b->err;
	cnt = rc ? 0 : b->ready;
	if (cnt)
		rc = ur_engine_publish_sends(qp->qp, cnt);
	ur_api_unlock(qp->thread_safe, &qp->sq_lock);
	if (cnt && !rc)
		ur_worker_doorbell(qp->worker, qp->qp, cnt);
	return rc;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct ur_api_qp *qp = qp_of(ex);

	ur_api_unlock(qp->thread_safe, &qp->sq_lock);
}

void ur_api_qp_extend(struct ur_api_qp *qp, const struct ibv_qp_cap *cap)
{
	struct ibv_qp_ex *ex =
		(struct ibv_qp_ex *)(void *)((char *)qp + offsetof(struct ur_api_qp, base));
	struct ur_api_batch *b = (struct ur_api_batch *)(void *)((char *)qp + batch_at());

	b->max_sge = cap->max_send_sge;
	b->max_bytes = cap->max_inline_data;
	b->copy = (uint8_t *)(b->sge + b->max_sge);
	qp->batch = b;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
}

/* ---- creation ---- */

#define KNOWN                                                                                      \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* The operations, enum ibv_qp_create_send_ops_flags, that queue pairs of a type take. */
static uint64_t send_ops(enum ibv_qp_type type)
{
	static const struct {
		uint64_t flag;
		enum ibv_wr_opcode opcode;
	} ops[] = {
		{IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE},
		{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
		{IBV_QP_EX_WITH_SEND, IBV_WR_SEND},
		{IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM},
		{IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ},
		{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
		{IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
		{IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV},
		{IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW},
		{IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV},
	};
	uint32_t opcodes = ur_engine_opcodes(type);
	uint64_t flags = 0;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		flags |= opcodes >> ops[i].opcode & 1 ? ops[i].flag : 0;
	return flags;
}

static bool is_supported(const struct ibv_qp_init_attr_ex *a)
{
	return !(a->comp_mask & ~(uint32_t)KNOWN) &&
	       !(a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
		 a->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) &&
	       !(a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
		 a->send_ops_flags & ~send_ops(a->qp_type));
}

struct ibv_qp *uroce_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	if (!is_supported(attr)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->pd->context != ctx) {
		errno = EINVAL;
		return NULL;
	}
	/* It begins with the members of struct ibv_qp_init_attr. */
	qp = ur_api_create_qp(attr->pd, (struct ibv_qp_init_attr *)(void *)attr,
			      attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
	if (qp && attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		UR_API(qp, qp)->no_self_mcast =
			attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	return qp;
}

struct ibv_qp_ex *uroce_qp_to_qp_ex(struct ibv_qp *qp)
{
	return UR_API(qp, qp)->batch ? (struct ibv_qp_ex *)(void *)qp : NULL;
}
