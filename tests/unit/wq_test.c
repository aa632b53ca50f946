/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "transport/qp_ops.h"
#include "transport/wq.h"

#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD

static struct ur_ah handle;

static void *ring_new(size_t bytes)
{
	/* Exactly the declared size, so that AddressSanitizer detects accesses beyond it. */
	void *ring = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	cr_assert_not_null(ring);
	memset(ring, 0xa5, bytes);
	return ring;
}

static struct ur_wq *sq_new_of(enum ibv_qp_type type, uint32_t entries, uint32_t max_sge,
			       uint32_t max_inline)
{
	struct ur_wq *wq = malloc(sizeof(*wq));

	ur_sq_init(wq, ur_qp_ops_of(type, UR_MODE_GBN),
		   ring_new(ur_sq_ring_bytes(entries, max_sge, max_inline)), entries, max_sge,
		   max_inline);
	return wq;
}

static struct ur_wq *sq_new(uint32_t entries, uint32_t max_sge, uint32_t max_inline)
{
	return sq_new_of(RC, entries, max_sge, max_inline);
}

static struct ur_wq *rq_new(uint32_t entries, uint32_t max_sge)
{
	struct ur_wq *wq = malloc(sizeof(*wq));

	ur_rq_init(wq, ring_new(ur_rq_ring_bytes(entries, max_sge)), entries, max_sge);
	return wq;
}

static void wq_free(struct ur_wq *wq)
{
	free(wq->ring);
	free(wq);
}

static int post(struct ur_wq *wq, const struct ibv_send_wr *wr)
{
	return ur_sq_post(wq, IBV_QPS_RTS, wr, false);
}

static void expect_sge(const struct ur_sge *sge, uint64_t addr, uint32_t length, uint32_t lkey)
{
	cr_expect_eq(sge->addr, addr);
	cr_expect_eq(sge->length, length);
	cr_expect_eq(sge->lkey, lkey);
}

Test(wq, a_small_send_wqe_starts_on_a_cache_line)
{
	struct ur_wq *wq = sq_new(5, 1, 0);

	cr_assert_eq(wq->stride % 64, 0);
	cr_assert_eq(ur_sq_ring_bytes(5, 1, 0), (size_t)8 * wq->stride);
	cr_assert_eq((uintptr_t)ur_sq_at(wq, 3) % 64, 0);
	cr_assert_eq(ur_sq_at(wq, 8), ur_sq_at(wq, 0));
	wq_free(wq);
}

Test(wq, every_wqe_has_room_for_the_extension_and_the_larger_of_sges_and_inline)
{
	for (uint32_t max_sge = 0; max_sge <= 32; max_sge++)
		for (uint32_t max_inline = 0; max_inline <= 600; max_inline += 4) {
			size_t need = 16u * max_sge;

			if (need < max_inline)
				need = max_inline;
			cr_assert_geq(ur_sq_ring_bytes(1, max_sge, max_inline), 40 + 16 + need);
		}
	for (uint32_t max_sge = 0; max_sge <= 32; max_sge++)
		cr_assert_eq(ur_rq_ring_bytes(4, max_sge), 4 * (16 + 16 * (size_t)max_sge));
}

Test(wq, a_write_is_posted_with_all_its_fields)
{
	struct ur_wq *wq = sq_new(4, 3, 0);
	struct ibv_sge sg[3] = {{0x1000, 100, 7}, {0x2000, 0, 8}, {0x3000, 33, 9}};
	struct ibv_send_wr wr = {
		.wr_id = UINT64_C(0x0102030405060708),
		.sg_list = sg,
		.num_sge = 3,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.imm_data = 0x44332211,
		.wr.rdma = {.remote_addr = UINT64_C(0xfedcba9876543210), .rkey = 0x55667788},
	};
	const struct ur_wqe *wqe = ur_sq_at(wq, 0);
	const struct ur_sge *sge;

	cr_assert_eq(post(wq, &wr), 0);
	cr_assert_eq(ur_wq_tail(wq), 1);
	cr_expect_eq(wqe->wr_id, UINT64_C(0x0102030405060708));
	cr_expect_eq(wqe->remote_addr, UINT64_C(0xfedcba9876543210));
	cr_expect_eq(wqe->rkey, 0x55667788);
	cr_expect_eq(wqe->imm_inv, 0x44332211);
	cr_expect_eq(wqe->length, 133);
	cr_expect_eq(wqe->opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	cr_expect_eq(wqe->flags, UR_WQE_SIGNALED | UR_WQE_SOLICITED);
	cr_expect_eq(wqe->num_sge, 3);
	sge = ur_wqe_data(wqe);
	expect_sge(&sge[0], 0x1000, 100, 7);
	expect_sge(&sge[1], 0x2000, 0, 8);
	expect_sge(&sge[2], 0x3000, 33, 9);
	wq_free(wq);
}

Test(wq, each_flag_is_taken_over_alone)
{
	static const struct {
		unsigned verbs;
		uint8_t wqe;
	} flags[] = {
		{0, 0},
		{IBV_SEND_SIGNALED, UR_WQE_SIGNALED},
		{IBV_SEND_FENCE, UR_WQE_FENCE},
		{IBV_SEND_SOLICITED, UR_WQE_SOLICITED},
		{IBV_SEND_INLINE, UR_WQE_INLINE},
	};
	struct ur_wq *wq = sq_new(16, 1, 0);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	for (unsigned i = 0; i < 5; i++) {
		wr.send_flags = flags[i].verbs;
		cr_assert_eq(post(wq, &wr), 0);
		cr_expect_eq(ur_sq_at(wq, 2 * i)->flags, flags[i].wqe);
		cr_assert_eq(ur_sq_post(wq, IBV_QPS_RTS, &wr, true), 0);
		cr_expect_eq(ur_sq_at(wq, 2 * i + 1)->flags, flags[i].wqe | UR_WQE_SIGNALED);
	}
	wr.send_flags = IBV_SEND_IP_CSUM;
	cr_assert_eq(post(wq, &wr), EINVAL);
	wq_free(wq);
}

/* WQ-INLINE-01 */
Test(wq, inline_payload_is_copied_from_all_sges_at_post)
{
	struct ur_wq *wq = sq_new(1, 3, 13);
	char a[] = "hello", b[] = "worldly";
	struct ibv_sge sg[3] = {{(uintptr_t)a, 5, 0}, {0, 0, 0}, {(uintptr_t)b, 7, 0}};
	struct ibv_send_wr wr = {
		.sg_list = sg, .num_sge = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};

	cr_assert_eq(post(wq, &wr), 0);
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	cr_assert_eq(ur_sq_at(wq, 0)->length, 12);
	cr_assert_eq(memcmp(ur_wqe_data(ur_sq_at(wq, 0)), "helloworldly", 12), 0);
	wq_free(wq);
}

Test(wq, inline_is_bounded_and_for_sends_and_writes_only)
{
	static const enum ibv_wr_opcode yes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						 IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_WRITE_WITH_IMM};
	static const enum ibv_wr_opcode no[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV};
	struct ur_wq *wq = sq_new(16, 1, 8);
	uint8_t bytes[9] = {0};
	struct ibv_sge sg = {(uintptr_t)bytes, 8, 0};
	struct ibv_send_wr wr = {.sg_list = &sg, .num_sge = 1, .send_flags = IBV_SEND_INLINE};

	for (unsigned i = 0; i < 5; i++) {
		wr.opcode = yes[i];
		cr_expect_eq(post(wq, &wr), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		wr.opcode = no[i];
		cr_expect_eq(post(wq, &wr), EINVAL);
	}
	wr.opcode = IBV_WR_SEND;
	sg.length = 9;
	cr_expect_eq(post(wq, &wr), EINVAL);
	wq_free(wq);
}

Test(wq, the_largest_inline_datagram_fits_its_wqe)
{
	static uint8_t bytes[220];
	struct ur_wq *wq = sq_new_of(UD, 1, 1, 220);
	struct ibv_sge sg = {(uintptr_t)bytes, 220, 0};
	struct ibv_send_wr wr = {.sg_list = &sg,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE,
				 .wr.ud.ah = &handle.verbs};
	const uint8_t *data;

	for (unsigned i = 0; i < 220; i++)
		bytes[i] = (uint8_t)i;
	cr_assert_eq(post(wq, &wr), 0);
	data = ur_wqe_data(ur_sq_at(wq, 0));
	cr_assert_eq(memcmp(data, bytes, 220), 0);
	cr_assert_leq(data + 220, wq->ring + wq->stride);
	wq_free(wq);
}

Test(wq, atomics_bring_their_operands)
{
	struct ur_wq *wq = sq_new(2, 1, 0);
	struct ibv_sge sg = {0x4000, 8, 3};
	struct ibv_send_wr wr = {
		.sg_list = &sg,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {.remote_addr = 0x8008, .compare_add = 11, .swap = 22, .rkey = 33},
	};

	cr_assert_eq(post(wq, &wr), 0);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	cr_assert_eq(post(wq, &wr), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct ur_wqe *wqe = ur_sq_at(wq, i);

		cr_expect_eq(wqe->flags, UR_WQE_EXT);
		cr_expect_eq(wqe->remote_addr, 0x8008);
		cr_expect_eq(wqe->rkey, 33);
		cr_expect_eq(wqe->length, 8);
		cr_expect_eq(ur_wqe_ext(wqe)->atomic.compare_add, 11);
		cr_expect_eq(ur_wqe_ext(wqe)->atomic.swap, 22);
		expect_sge(ur_wqe_data(wqe), 0x4000, 8, 3);
	}
	wq_free(wq);
}

/* WQ-ATOMIC-01 */
Test(wq, an_atomic_is_8_bytes)
{
	struct ur_wq *wq = sq_new(4, 2, 0);
	struct ibv_sge sg[2] = {{0x4000, 4, 3}, {0x5000, 4, 3}};
	struct ibv_send_wr wr = {
		.sg_list = sg, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	cr_expect_eq(post(wq, &wr), EINVAL);
	wr.num_sge = 2;
	cr_expect_eq(post(wq, &wr), 0);
	sg[0].length = 16;
	cr_expect_eq(post(wq, &wr), EINVAL);
	wr.num_sge = 0;
	cr_expect_eq(post(wq, &wr), EINVAL);
	wq_free(wq);
}

Test(wq, a_datagram_names_its_destination)
{
	struct ur_wq *wq = sq_new_of(UD, 2, 1, 0);
	struct ibv_sge sg = {0x4000, 64, 3};
	struct ibv_send_wr wr = {
		.sg_list = &sg,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 5,
		.wr.ud = {.ah = &handle.verbs, .remote_qpn = 0x123456, .remote_qkey = 0x11111111},
	};
	const struct ur_wqe *wqe = ur_sq_at(wq, 0);

	cr_assert_eq(post(wq, &wr), 0);
	cr_expect_eq(wqe->flags, UR_WQE_EXT);
	cr_expect_eq(wqe->imm_inv, 5);
	cr_expect_eq(ur_wqe_ext(wqe)->ud.ah, &handle);
	cr_expect_eq(ur_wqe_ext(wqe)->ud.remote_qpn, 0x123456);
	cr_expect_eq(ur_wqe_ext(wqe)->ud.remote_qkey, 0x11111111);
	expect_sge(ur_wqe_data(wqe), 0x4000, 64, 3);
	wr.wr.ud.ah = NULL;
	cr_expect_eq(post(wq, &wr), EINVAL);
	wq_free(wq);
}

/* WQ-OPCODE-01 */
Test(wq, each_type_takes_its_opcodes_only)
{
	static const char *const takes[] = {
		/* WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CAS, FADD, LOCAL_INV, BIND, SEND_INV, TSO
		 */
		[IBV_QPT_RC] = "yyyyyyyynyn",
		[IBV_QPT_UC] = "yyyynnnnnnn",
		[IBV_QPT_UD] = "nnyynnnnnnn",
	};
	static const enum ibv_qp_type types[] = {RC, UC, UD};
	struct ibv_sge sg = {0x4000, 8, 3};
	struct ibv_send_wr wr = {.sg_list = &sg, .num_sge = 1};

	for (unsigned t = 0; t < 3; t++) {
		struct ur_wq *wq = sq_new_of(types[t], 64, 1, 0);

		for (int op = 0; op <= IBV_WR_TSO; op++) {
			wr.opcode = (enum ibv_wr_opcode)op;
			if (types[t] == UD)
				wr.wr.ud.ah = &handle.verbs;
			cr_expect_eq(post(wq, &wr), takes[types[t]][op] == 'y' ? 0 : EINVAL,
				     "type %d opcode %d", (int)types[t], op);
		}
		wr.opcode = (enum ibv_wr_opcode)(32 + IBV_WR_SEND);
		cr_expect_eq(post(wq, &wr), EINVAL);
		wq_free(wq);
	}
}

/* WQ-STATE-01 */
Test(wq, sends_are_taken_in_rts_sqd_sqe_and_err)
{
	static const int rc[] = {EINVAL, EINVAL, EINVAL, 0, 0, 0, 0, EINVAL};
	struct ur_wq *wq = sq_new(8, 1, 0);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	for (int s = IBV_QPS_RESET; s <= IBV_QPS_UNKNOWN; s++)
		cr_expect_eq(ur_sq_post(wq, (enum ibv_qp_state)s, &wr, false), rc[s], "state %d",
			     s);
	wq_free(wq);
}

Test(wq, the_sges_of_a_local_invalidate_are_ignored)
{
	struct ur_wq *wq = sq_new(1, 1, 0);
	struct ibv_send_wr wr = {
		.num_sge = 77, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 0xabcd};

	cr_assert_eq(post(wq, &wr), 0);
	cr_expect_eq(ur_sq_at(wq, 0)->imm_inv, 0xabcd);
	cr_expect_eq(ur_sq_at(wq, 0)->length, 0);
	cr_expect_eq(ur_sq_at(wq, 0)->num_sge, 0);
	wq_free(wq);
}

/* WQ-LENGTH-01 */
Test(wq, a_message_is_at_most_2_to_the_31_bytes)
{
	struct ur_wq *wq = sq_new(4, 3, 0);
	struct ibv_sge sg[3] = {{0, UINT32_C(1) << 31, 1}, {0, 0, 1}, {0, UINT32_MAX, 1}};
	struct ibv_send_wr wr = {.sg_list = sg, .num_sge = 2, .opcode = IBV_WR_RDMA_READ};

	cr_expect_eq(post(wq, &wr), 0);
	cr_expect_eq(ur_sq_at(wq, 0)->length, UINT32_C(1) << 31);
	sg[1].length = 1;
	cr_expect_eq(post(wq, &wr), EINVAL);
	sg[1].length = UINT32_C(1) << 31;
	cr_expect_eq(post(wq, &wr), EINVAL, "the sum wraps to 0 in 32 bits");
	sg[0].length = (UINT32_C(1) << 31) + 1;
	wr.num_sge = 1;
	cr_expect_eq(post(wq, &wr), EINVAL);
	wq_free(wq);
}

Test(wq, too_many_or_negative_sges_are_refused)
{
	struct ur_wq *wq = sq_new(4, 2, 0);
	struct ur_wq *rq = rq_new(4, 2);
	struct ibv_sge sg[3] = {{0x1000, 1, 1}, {0x2000, 1, 1}, {0x3000, 1, 1}};
	struct ibv_send_wr wr = {.sg_list = sg, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr rwr = {.sg_list = sg};
	static const int num[] = {0, 1, 2, 3, -1};
	static const int rc[] = {0, 0, 0, EINVAL, EINVAL};

	for (unsigned i = 0; i < 5; i++) {
		wr.num_sge = rwr.num_sge = num[i];
		cr_expect_eq(post(wq, &wr), rc[i]);
		cr_expect_eq(ur_rq_post(rq, &rwr), rc[i]);
	}
	wq_free(wq);
	wq_free(rq);
}

Test(wq, a_full_queue_takes_more_when_the_worker_releases)
{
	struct ur_wq *wq = sq_new(3, 1, 0);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	for (wr.wr_id = 0; wr.wr_id < 3; wr.wr_id++)
		cr_assert_eq(post(wq, &wr), 0);
	cr_assert_eq(post(wq, &wr), ENOMEM);
	cr_assert_eq(ur_wq_tail(wq), 3);
	ur_wq_release(wq, 2);
	cr_assert_eq(post(wq, &wr), 0);
	cr_assert_eq(ur_sq_at(wq, 2)->wr_id, 2);
	cr_assert_eq(ur_sq_at(wq, 3)->wr_id, 3);
	cr_assert_eq(post(wq, &wr), 0);
	cr_assert_eq(post(wq, &wr), ENOMEM);
	wq_free(wq);
}

Test(wq, indices_wrap_at_2_to_the_32)
{
	struct ur_wq *wq = rq_new(3, 1);
	struct ibv_recv_wr wr = {0};

	atomic_store(&wq->tail, UINT32_MAX);
	ur_wq_release(wq, UINT32_MAX);
	wq->head_seen = UINT32_MAX;
	for (wr.wr_id = 0; wr.wr_id < 3; wr.wr_id++)
		cr_assert_eq(ur_rq_post(wq, &wr), 0);
	cr_assert_eq(ur_rq_post(wq, &wr), ENOMEM);
	cr_assert_eq(ur_wq_tail(wq), 2);
	cr_assert_eq(ur_rq_at(wq, UINT32_MAX)->wr_id, 0);
	cr_assert_eq(ur_rq_at(wq, 1)->wr_id, 2);
	wq_free(wq);
}

Test(wq, a_receive_is_posted_with_its_sges_and_their_sum)
{
	struct ur_wq *wq = rq_new(2, 2);
	struct ibv_sge sg[2] = {{0x1000, UINT32_C(1) << 31, 1}, {0x2000, 0x7fffffff, 2}};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = sg, .num_sge = 2};
	const struct ur_rwqe *rwqe = ur_rq_at(wq, 0);

	cr_assert_eq(ur_rq_post(wq, &wr), 0);
	cr_expect_eq(rwqe->wr_id, 9);
	cr_expect_eq(rwqe->num_sge, 2);
	cr_expect_eq(rwqe->length, UINT32_MAX);
	expect_sge(&rwqe->sge[0], 0x1000, UINT32_C(1) << 31, 1);
	expect_sge(&rwqe->sge[1], 0x2000, 0x7fffffff, 2);
	sg[1].length++;
	cr_expect_eq(ur_rq_post(wq, &wr), EINVAL);
	wq_free(wq);
}

/* One poster and one worker: every element arrives complete and in order. */
#define RACE_CNT 200000u

static void *post_all(void *arg)
{
	struct ur_wq *wq = arg;

	for (uint32_t i = 0; i < RACE_CNT;) {
		struct ibv_sge sg = {i, i & 0xffff, ~i};
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

		if (post(wq, &wr) == 0)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

Test(wq, poster_and_worker_may_run_at_once, .timeout = 60)
{
	struct ur_wq *wq = sq_new(5, 1, 0);
	pthread_t poster;
	uint32_t head = 0;

	cr_assert_eq(pthread_create(&poster, NULL, post_all, wq), 0);
	while (head < RACE_CNT) {
		uint32_t tail = ur_wq_tail(wq);

		if (head == tail)
			sched_yield();
		for (; head != tail; head++) {
			const struct ur_wqe *wqe = ur_sq_at(wq, head);
			const struct ur_sge *sge = ur_wqe_data(wqe);

			cr_assert_eq(wqe->wr_id, head);
			cr_assert_eq(sge->addr, head);
			cr_assert_eq(sge->lkey, ~head);
			cr_assert_eq(wqe->length, head & 0xffff);
		}
		ur_wq_release(wq, head);
	}
	pthread_join(poster, NULL);
	wq_free(wq);
}

/* WQ-STAGE-01 */
Test(wq, staged_requests_are_seen_together_or_not_at_all)
{
	struct ur_wq *wq = sq_new(4, 1, 0);
	struct ibv_sge sge = {0x1000, 10, 7};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	wr.wr_id = 1;
	cr_assert_eq(post(wq, &wr), 0);
	for (uint32_t i = 0; i < 3; i++) {
		wr.wr_id = 10 + i;
		cr_assert_eq(ur_sq_stage(wq, IBV_QPS_RTS, i, &wr, true), 0);
	}
	cr_assert_eq(ur_sq_stage(wq, IBV_QPS_RTS, 3, &wr, true), ENOMEM);
	cr_assert_eq(ur_wq_cnt(wq), 1);
	cr_assert_eq(ur_sq_publish(wq, IBV_QPS_INIT, 3), EINVAL);
	cr_assert_eq(ur_wq_cnt(wq), 1);
	cr_assert_eq(ur_sq_publish(wq, IBV_QPS_RTS, 3), 0);
	cr_assert_eq(ur_wq_cnt(wq), 4);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(ur_sq_at(wq, 1 + i)->wr_id, 10 + i);
		cr_expect(ur_sq_at(wq, 1 + i)->flags & UR_WQE_SIGNALED);
	}
	wr.opcode = IBV_WR_TSO;
	ur_wq_release(wq, 4);
	cr_assert_eq(ur_sq_stage(wq, IBV_QPS_RTS, 0, &wr, true), EINVAL);
	wq_free(wq);
}
