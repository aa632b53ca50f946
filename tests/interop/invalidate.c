/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEND with invalidate: the target grants a key, the initiator writes with it and invalidates it,
 * and then requests with this key are refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "traffic.h"

enum { LENT_BYTES = 4096, ANY_RIGHT = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

struct loan {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint8_t *mem;
	uint32_t key;
};

/* The kernel's value of IBV_WC_WITH_INV is 4, and rxe passes its flags to the user unchanged. */
#ifdef INTEROP_UROCE
enum { WITH_INV = IBV_WC_WITH_INV };
#else
enum { WITH_INV = IBV_WC_WITH_INV | 4 };
#endif

#ifdef INTEROP_UROCE
#ifndef UROCE_ACCESS_REMOTE_INVALIDATE
#define UROCE_ACCESS_REMOTE_INVALIDATE 0
#endif

static bool lend(struct session *s, struct loan *loan)
{
	loan->mr =
		uroce_reg_mr(s->pd, loan->mem, LENT_BYTES,
			     IBV_ACCESS_LOCAL_WRITE | ANY_RIGHT | UROCE_ACCESS_REMOTE_INVALIDATE);
	if (loan->mr == NULL)
		return failed(s, "reg_mr: %s", strerror(errno));
	loan->key = loan->mr->rkey;
	return true;
}

static void take_back(struct loan *loan)
{
	if (loan->mr != NULL)
		uroce_dereg_mr(loan->mr);
}
#else
/* rxe cannot invalidate a user's region, but it can invalidate a memory window. */
static bool lend(struct session *s, struct loan *loan)
{
	struct ibv_send_wr wr = {.wr_id = 9,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int rc;

	loan->mr = ibv_reg_mr(s->pd, loan->mem, LENT_BYTES,
			      IBV_ACCESS_LOCAL_WRITE | ANY_RIGHT | IBV_ACCESS_MW_BIND);
	loan->mw = ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
	if (loan->mr == NULL || loan->mw == NULL)
		return failed(s, "reg_mr or alloc_mw: %s", strerror(errno));
	loan->key = ibv_inc_rkey(loan->mw->rkey);
	wr.bind_mw.mw = loan->mw;
	wr.bind_mw.rkey = loan->key;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = loan->mr,
							 .addr = (uintptr_t)loan->mem,
							 .length = LENT_BYTES,
							 .mw_access_flags = ANY_RIGHT};
	rc = ibv_post_send(s->qp, &wr, &bad);
	if (rc != 0)
		return failed(s, "post_send of a bind: %s", strerror(rc));
	return expect_completion(s, s->send_cq, 9, IBV_WC_SUCCESS, NULL);
}

static void take_back(struct loan *loan)
{
	if (loan->mw != NULL)
		ibv_dealloc_mw(loan->mw);
	if (loan->mr != NULL)
		ibv_dereg_mr(loan->mr);
}
#endif

static bool target(struct session *s, struct loan *loan)
{
	struct ibv_wc wc;

	if (!lend(s, loan) || !post_receive(s, 1, 0, 300, 1))
		return false;
	if (!link_send(s->link, "loan %u %llu", loan->key,
		       (unsigned long long)(uintptr_t)loan->mem) ||
	    !expect_completion(s, s->recv_cq, 1, IBV_WC_SUCCESS, &wc))
		return failed(s, "the program at the other end has gone");
	if ((wc.wc_flags & WITH_INV) == 0 || wc.invalidated_rkey != loan->key || wc.byte_len != 300)
		return failed(s, "the receive has flags %x, key %08x, %u bytes; lent was %08x",
			      wc.wc_flags, wc.invalidated_rkey, wc.byte_len, loan->key);
	if (!meet(s, "over"))
		return false;
	for (unsigned i = 0; i < LENT_BYTES; i++)
		if (loan->mem[i] != (i < 64 ? 0x5a : 0))
			return failed(s, "byte %u of what was lent is %02x", i, loan->mem[i]);
	return true;
}

static bool post(struct session *s, uint64_t id, enum ibv_wr_opcode opcode, unsigned len,
		 uint64_t addr, uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)s->mem[REGION_LOCAL], len, s->mr[REGION_LOCAL]->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int rc;

	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = key;
	else
		wr.wr.rdma.remote_addr = addr;
	if (opcode != IBV_WR_SEND_WITH_INV)
		wr.wr.rdma.rkey = key;
	rc = V(post_send)(s->qp, &wr, &bad);
	return rc == 0 || failed(s, "post_send: %s", strerror(rc));
}

static bool initiator(struct session *s)
{
	unsigned long long addr;
	uint32_t key;
	char line[128];

	memset(s->mem[REGION_LOCAL], 0x5a, 64);
	if (!receive_line(s, line, sizeof(line)))
		return false;
	if (sscanf(line, "loan %u %llu", &key, &addr) != 2)
		return failed(s, "not a loan: '%s'", line);
	if (!post(s, 1, IBV_WR_RDMA_WRITE, 64, addr, key) ||
	    !expect_completion(s, s->send_cq, 1, IBV_WC_SUCCESS, NULL) ||
	    !post(s, 2, IBV_WR_SEND_WITH_INV, 300, 0, key) ||
	    !expect_completion(s, s->send_cq, 2, IBV_WC_SUCCESS, NULL))
		return false;
	return post(s, 3, IBV_WR_RDMA_WRITE, 200, addr, key) &&
	       expect_completion(s, s->send_cq, 3, IBV_WC_REM_ACCESS_ERR, NULL) && meet(s, "over");
}

bool run_invalidate(struct session *s, char *note, size_t note_bytes)
{
	struct loan loan = {.mem = calloc(1, LENT_BYTES)};
	bool ok = loan.mem != NULL && session_connect(s) &&
		  (is_us(s->spec.from) ? initiator(s) : target(s, &loan));

	take_back(&loan);
	free(loan.mem);
	return ok && meet(s, "end");
}
