/* SPDX-License-Identifier: BSD-3-Clause */
#include "ext_end.h"

static void expect_read(struct end *e, uint32_t psn, uint32_t offset, uint8_t flags, uint32_t bytes)
{
	xend_expect(e, UR_EXT_READ_REQUEST, psn);
	cr_assert_eq(e->out.xth.offset, offset);
	cr_assert_eq(e->out.xth.flags, flags, "flags %#x", e->out.xth.flags);
	cr_assert_eq(e->out.reth.va, 0x7000 + 256 * offset);
	cr_assert_eq(e->out.reth.length, bytes);
}

/* EXT-REQ-TWICE-01 */
Test(ext_twice, read_requests_leave_twice_while_packets_are_being_lost)
{
	const uint8_t last = UR_XTH_LAST_READ, again = UR_XTH_LAST_READ | UR_XTH_RETRY;
	struct end *e = XEND(.window = 64, .rd_atomic = 5);
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_READ, 256 * 8);
	expect_read(e, 1000, 0, last, 256 * 8);
	xend_expect_silence(e);
	stamp = e->out.xth.stamp;
	for (uint32_t at = 0; at < 8; at++)
		if (at != 1 && at != 3 && at != 5)
			cr_assert_eq(xend_read(e, 1, at, 1000, 256, stamp), UR_DROP_NONE);
	/* A gap may be reordering. */
	end_send(e, 2, IBV_WR_RDMA_READ, 256 * 8);
	expect_read(e, 1001, 0, last, 256 * 8);
	xend_expect_silence(e);
	for (uint32_t at = 0; at < 8; at++)
		cr_assert_eq(xend_read(e, 2, at, 1001, 256, e->out.xth.stamp), UR_DROP_NONE);
	while (!e->qp->xreq.probe)
		xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1002);
	cr_assert_eq(xend_ack(e, 1002, 0x1f, 0, e->out.xth.stamp), UR_DROP_NONE);
	for (uint32_t at = 1; at < 6; at += 2)
		for (unsigned i = 0; i < 2; i++)
			expect_read(e, 1000, at, again, 256);
	xend_expect_silence(e);
	end_send(e, 3, IBV_WR_RDMA_READ, 256 * 8);
	expect_read(e, 1002, 0, last, 256 * 8);
	expect_read(e, 1002, 0, again | UR_XTH_TWICE, 256 * 8);
	xend_expect_silence(e);
	cr_assert_eq(e->qp->xreq.psn.max.v, 1003);
	/* It asks for little. */
	end_send(e, 4, IBV_WR_RDMA_READ, 256 * 3);
	expect_read(e, 1003, 0, last, 256 * 3);
	xend_expect_silence(e);
	/* An answer comes before the second one has left, and tells that the repeats are lost as well. */
	end_send(e, 5, IBV_WR_RDMA_READ, 256 * 8);
	expect_read(e, 1004, 0, last, 256 * 8);
	cr_assert_eq(xend_read(e, 5, 0, 1004, 256, e->out.xth.stamp), UR_DROP_NONE);
	for (uint32_t at = 1; at < 6; at += 2)
		for (unsigned i = 0; i < 2; i++)
			expect_read(e, 1000, at, again, 256);
	xend_expect_silence(e);
	xend_free(e);
}
