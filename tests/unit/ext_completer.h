/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_EXT_COMPLETER_H
#define TESTS_EXT_COMPLETER_H

#include <string.h>

#include "ext_end.h"

/* PMTU 256; with windows of 64, READs go in parts of 16 packets, with windows of 16 in parts of 4. */

/* `cnt` SENDs of one packet each, ids from 1, PSNs from 1000, all on their way; their stamps. */
static inline struct end *end_with_sends(unsigned cnt, uint32_t *stamp)
{
	struct end *e = XEND();

	for (unsigned i = 1; i <= cnt; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	for (unsigned i = 0; i < cnt; i++) {
		cr_assert_not_null(xend_out(e));
		stamp[i] = e->out.xth.stamp;
	}
	xend_expect_silence(e);
	return e;
}

/* A READ of 10 packets in 3 parts, an atomic, a READ whose parts are still being requested, a SEND. */
static inline struct end *end_with_reads(void)
{
	struct end *e = XEND(.window = 16, .rd_atomic = 5);

	end_send(e, 1, IBV_WR_SEND, 4);
	end_send(e, 2, IBV_WR_RDMA_READ, 256 * 9 + 7);
	end_send(e, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	end_send(e, 4, IBV_WR_RDMA_READ, 256 * 8);
	cr_assert_eq(xend_drain(e), 6);
	return e;
}

#endif
