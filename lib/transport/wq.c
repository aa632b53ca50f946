/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/wq.h"

#include <errno.h>
#include <string.h>

#include "transport/qp_ops.h"
#include "wire/assert.h"

#define LINE_BYTES    64u
#define MESSAGE_BYTES (UINT64_C(1) << 31) /* the longest message (IBA 9.7.2) */
#define ATOMIC_BYTES  8u

#define BIT(n) (1u << (n))

/* The SGEs of a request are copied as they are. */
_Static_assert(sizeof(struct ur_sge) == sizeof(struct ibv_sge) &&
		       offsetof(struct ur_sge, length) == offsetof(struct ibv_sge, length) &&
		       offsetof(struct ur_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "SGE layouts differ");
_Static_assert(sizeof(struct ur_wqe) == 48 && sizeof(struct ur_wqe_ext) == 16, "WQE layout");
_Static_assert(sizeof(struct ur_wqe) + sizeof(struct ur_sge) <= LINE_BYTES, "small WQE in a line");
_Static_assert(sizeof(struct ur_rwqe) == 16, "receive WQE layout");

static uint32_t places(uint32_t entries)
{
	uint32_t n = 1;

	UR_ASSERT(entries >= 1 && entries <= UR_WQ_ENTRIES_MAX);
	while (n < entries)
		n <<= 1;
	return n;
}

static uint32_t sq_stride(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t data = max_sge * (uint32_t)sizeof(struct ur_sge);

	UR_ASSERT(max_sge <= UINT8_MAX && max_inline <= UR_WQ_INLINE_MAX);
	if (data < max_inline)
		data = max_inline;
	data += (uint32_t)(sizeof(struct ur_wqe) + sizeof(struct ur_wqe_ext));
	return (data + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
}

static uint32_t rq_stride(uint32_t max_sge)
{
	UR_ASSERT(max_sge <= UINT8_MAX);
	return (uint32_t)(sizeof(struct ur_rwqe) + max_sge * sizeof(struct ur_sge));
}

size_t ur_sq_ring_bytes(uint32_t entries, uint32_t max_sge, uint32_t max_inline)
{
	return (size_t)places(entries) * sq_stride(max_sge, max_inline);
}

size_t ur_rq_ring_bytes(uint32_t entries, uint32_t max_sge)
{
	return (size_t)places(entries) * rq_stride(max_sge);
}

static void init(struct ur_wq *wq, void *ring, uint32_t entries, uint32_t stride, uint32_t max_sge,
		 uint32_t max_inline)
{
	UR_ASSERT(((uintptr_t)ring & (LINE_BYTES - 1)) == 0);
	wq->ring = ring;
	wq->mask = (uint16_t)(places(entries) - 1);
	wq->entries = (uint16_t)entries;
	wq->stride = (uint16_t)stride;
	wq->max_sge = (uint8_t)max_sge;
	wq->max_inline = (uint16_t)max_inline;
	wq->head_seen = 0;
	atomic_init(&wq->tail, 0);
	atomic_init(&wq->head, 0);
}

void ur_sq_init(struct ur_wq *wq, const struct ur_qp_ops *ops, void *ring, uint32_t entries,
		uint32_t max_sge, uint32_t max_inline)
{
	UR_ASSERT(ops->opcodes <= UINT16_MAX);
	init(wq, ring, entries, sq_stride(max_sge, max_inline), max_sge, max_inline);
	wq->opcodes = (uint16_t)ops->opcodes;
	wq->connected = ops->connected;
}

void ur_rq_init(struct ur_wq *wq, void *ring, uint32_t entries, uint32_t max_sge)
{
	init(wq, ring, entries, rq_stride(max_sge), max_sge, 0);
}

/* The poster's view: reads the worker's cache line only when the ring looks full. */
static bool full(struct ur_wq *wq, uint32_t tail)
{
	if (__builtin_expect(tail - wq->head_seen < wq->entries, 1))
		return false;
	wq->head_seen = atomic_load_explicit(&wq->head, memory_order_acquire);
	return tail - wq->head_seen >= wq->entries;
}

static uint64_t total(const struct ibv_sge *sge, unsigned num_sge)
{
	uint64_t sum = 0;

	if (__builtin_expect(num_sge == 1, 1))
		return sge[0].length;
	for (unsigned i = 0; i < num_sge; i++)
		sum += sge[i].length;
	return sum;
}

/* Sets of operations; those of each service are in the table of queue pairs (qp_ops.c). */
#define SENDS	  (BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define WRITES	  (BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#define ATOMICS	  (BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))
#define LOCALS	  (BIT(IBV_WR_LOCAL_INV) | BIT(IBV_WR_BIND_MW))
#define INLINABLE (SENDS | WRITES | BIT(IBV_WR_SEND_WITH_INV))

/* WQ-STATE-01 */
#define POSTABLE (BIT(IBV_QPS_RTS) | BIT(IBV_QPS_SQD) | BIT(IBV_QPS_SQE) | BIT(IBV_QPS_ERR))

#define SEND_FLAGS                                                                                 \
	((unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE))

_Static_assert(SEND_FLAGS < UR_WQE_EXT, "the flags of a work request are the low ones of a WQE");

static void copy_inline(uint8_t *dst, const struct ibv_sge *sge, unsigned num_sge)
{
	for (unsigned i = 0; i < num_sge; i++) {
		if (sge[i].length == 0)
			continue;
		memcpy(dst, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
		dst += sge[i].length;
	}
}

/* The parts of a request that its opcode brings along; returns where the payload goes. */
static uint8_t *fill_kind(struct ur_wqe *wqe, bool connected, const struct ibv_send_wr *wr)
{
	struct ur_wqe_ext *ext = (struct ur_wqe_ext *)(wqe + 1);

	if (!connected) {
		ext->ud.ah = (const struct ur_ah *)wr->wr.ud.ah;
		ext->ud.remote_qpn = wr->wr.ud.remote_qpn;
		ext->ud.remote_qkey = wr->wr.ud.remote_qkey;
	} else if (wr->opcode == IBV_WR_BIND_MW) {
		wqe->remote_addr = wr->bind_mw.bind_info.addr;
		wqe->rkey = wr->bind_mw.rkey;
		wqe->imm_inv = wr->bind_mw.bind_info.mr ? wr->bind_mw.bind_info.mr->lkey : 0;
		ext->bind.length = wr->bind_mw.bind_info.length;
		ext->bind.old_rkey = wr->bind_mw.mw->rkey;
		ext->bind.access = wr->bind_mw.bind_info.mw_access_flags;
	} else if (BIT(wr->opcode) & ATOMICS) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		ext->atomic.compare_add = wr->wr.atomic.compare_add;
		ext->atomic.swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return (uint8_t *)ext;
	}
	wqe->flags |= UR_WQE_EXT;
	return (uint8_t *)(ext + 1);
}

/* Those of a connected queue pair that may have one segment of any length, and need no ur_wqe_ext. */
#define COMMON (SENDS | WRITES | BIT(IBV_WR_RDMA_READ) | BIT(IBV_WR_SEND_WITH_INV))

/* The commonest request: one segment, not inline. It passes check(). */
static inline bool is_common(const struct ur_wq *wq, enum ibv_qp_state state,
			     const struct ibv_send_wr *wr)
{
	return state == IBV_QPS_RTS && wr->num_sge == 1 && wq->max_sge && wq->connected &&
	       (unsigned)wr->opcode <= IBV_WR_SEND_WITH_INV &&
	       (BIT(wr->opcode) & wq->opcodes & COMMON) &&
	       !(wr->send_flags & ~(SEND_FLAGS & ~(unsigned)IBV_SEND_INLINE)) &&
	       wr->sg_list[0].length <= MESSAGE_BYTES;
}

/* What ibv_post_send() refuses at once; *length is set on success. */
static int check(const struct ur_wq *wq, enum ibv_qp_state state, const struct ibv_send_wr *wr,
		 uint32_t *length)
{
	uint64_t sum = 0;

	/* The range checks come first: a shift by a hostile opcode is undefined. */
	if ((unsigned)state > IBV_QPS_ERR || !(BIT(state) & POSTABLE) ||
	    (unsigned)wr->opcode > IBV_WR_SEND_WITH_INV || !(BIT(wr->opcode) & wq->opcodes) ||
	    (wr->send_flags & ~SEND_FLAGS))
		return EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW && !wr->bind_mw.mw)
		return EINVAL;
	if (!(BIT(wr->opcode) & LOCALS)) {
		if ((unsigned)wr->num_sge > wq->max_sge)
			return EINVAL;
		sum = total(wr->sg_list, (unsigned)wr->num_sge);
	}
	/* WQ-LENGTH-01 */
	if (sum > MESSAGE_BYTES)
		return EINVAL;
	/* WQ-INLINE-01 */
	if ((wr->send_flags & IBV_SEND_INLINE) &&
	    (!(BIT(wr->opcode) & INLINABLE) || sum > wq->max_inline))
		return EINVAL;
	/* WQ-ATOMIC-01 */
	if ((BIT(wr->opcode) & ATOMICS) && sum != ATOMIC_BYTES)
		return EINVAL;
	if (!wq->connected && !wr->wr.ud.ah)
		return EINVAL;
	*length = (uint32_t)sum;
	return 0;
}

/* Writes the element `at`, which the worker does not see yet. */
static inline int write_wqe(struct ur_wq *wq, uint32_t at, const struct ibv_send_wr *wr,
			    uint32_t length, bool common, bool sig_all)
{
	struct ur_wqe *wqe;
	uint8_t *data;

	if (__builtin_expect(full(wq, at), 0))
		return ENOMEM;
	wqe = ur_sq_at(wq, at);
	wqe->wr_id = wr->wr_id;
	wqe->imm_inv = wr->invalidate_rkey; /* or imm_data: a union, copied as it is */
	wqe->length = length;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)(wr->send_flags | (sig_all ? UR_WQE_SIGNALED : 0));
	wqe->num_sge = BIT(wr->opcode) & LOCALS ? 0 : (uint8_t)wr->num_sge;
	wqe->resv = 0;
	if (common) {
		wqe->num_sge = 1;
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		memcpy(wqe + 1, wr->sg_list, sizeof(struct ur_sge));
	} else {
		data = fill_kind(wqe, wq->connected, wr);
		if (wqe->flags & UR_WQE_INLINE)
			copy_inline(data, wr->sg_list, wqe->num_sge);
		else if (wqe->num_sge)
			memcpy(data, wr->sg_list, wqe->num_sge * sizeof(struct ur_sge));
	}
	return 0;
}

static inline int post(struct ur_wq *wq, const struct ibv_send_wr *wr, uint32_t length, bool common,
		       bool sig_all)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	int rc = write_wqe(wq, tail, wr, length, common, sig_all);

	if (!rc)
		atomic_store_explicit(&wq->tail, tail + 1, memory_order_release);
	return rc;
}

static __attribute__((noinline)) int post_any(struct ur_wq *wq, enum ibv_qp_state state,
					      const struct ibv_send_wr *wr, bool sig_all)
{
	uint32_t length;
	int rc = check(wq, state, wr, &length);

	return rc ? rc : post(wq, wr, length, false, sig_all);
}

/* WQ-STAGE-01 */
int ur_sq_stage(struct ur_wq *wq, enum ibv_qp_state state, uint32_t ahead,
		const struct ibv_send_wr *wr, bool sig_all)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed), length;
	int rc = check(wq, state, wr, &length);

	return rc ? rc : write_wqe(wq, tail + ahead, wr, length, false, sig_all);
}

int ur_sq_publish(struct ur_wq *wq, enum ibv_qp_state state, uint32_t cnt)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);

	if ((unsigned)state > IBV_QPS_ERR || !(BIT(state) & POSTABLE))
		return EINVAL;
	atomic_store_explicit(&wq->tail, tail + cnt, memory_order_release);
	return 0;
}

int ur_sq_post(struct ur_wq *wq, enum ibv_qp_state state, const struct ibv_send_wr *wr,
	       bool sig_all)
{
	if (__builtin_expect(is_common(wq, state, wr), 1)) {
		/* The payload is copied when the request has its turn. */
		if (wr->opcode != IBV_WR_RDMA_READ)
			__builtin_prefetch((const void *)(uintptr_t)wr->sg_list[0].addr);
		return post(wq, wr, wr->sg_list[0].length, true, sig_all);
	}
	return post_any(wq, state, wr, sig_all);
}

int ur_rq_post(struct ur_wq *wq, const struct ibv_recv_wr *wr)
{
	uint32_t tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	struct ur_rwqe *rwqe;
	uint64_t sum;

	if (__builtin_expect((unsigned)wr->num_sge > wq->max_sge, 0))
		return EINVAL;
	sum = total(wr->sg_list, (unsigned)wr->num_sge);
	if (__builtin_expect(sum > UINT32_MAX, 0))
		return EINVAL;
	if (__builtin_expect(full(wq, tail), 0))
		return ENOMEM;
	rwqe = ur_rq_at(wq, tail);
	rwqe->wr_id = wr->wr_id;
	rwqe->num_sge = (uint32_t)wr->num_sge;
	rwqe->length = (uint32_t)sum;
	if (__builtin_expect(rwqe->num_sge == 1, 1))
		memcpy(rwqe->sge, wr->sg_list, sizeof(struct ur_sge));
	else if (rwqe->num_sge)
		memcpy(rwqe->sge, wr->sg_list, rwqe->num_sge * sizeof(struct ur_sge));
	atomic_store_explicit(&wq->tail, tail + 1, memory_order_release);
	return 0;
}
