/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES (PERF_HEADER_BYTES + PERF_MSG_BYTES)
#define PING_NS	   1000000000ull
#define SEND_BIT   0x100u /* of wr_id: a send; below it the slot */

/* A required extended mode concerns the data connections; here it would hide which end lacks it. */
static bool demand_nothing(struct ibv_qp *qp)
{
	struct uroce_qp_mode_attr attr;

	uroce_query_qp_mode(qp, &attr);
	if (attr.mode != UROCE_QP_MODE_EXTENDED)
		return true;
	attr.mode = UROCE_QP_MODE_AUTO;
	errno = uroce_set_qp_mode(qp, &attr, UROCE_QP_MODE);
	return errno == 0;
}

bool perf_control_create(struct perf_control *c, struct perf_endpoint *ep)
{
	const size_t bytes = 2ul * PERF_CONTROL_SLOTS * SLOT_BYTES;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = PERF_CONTROL_SLOTS,
			.max_recv_wr = PERF_CONTROL_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	memset(c, 0, sizeof(*c));
	c->ep = ep;
	if (posix_memalign((void **)&c->mem, 4096, (bytes + 4095) & ~4095ul) != 0) {
		errno = ENOMEM;
		return false;
	}
	memset(c->mem, 0, bytes);
	c->mr = uroce_reg_mr(ep->pd, c->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (c->mr == NULL)
		return false;
	c->cq = uroce_create_cq(ep->ctx, 4 * PERF_CONTROL_SLOTS, NULL, NULL, 0);
	if (c->cq == NULL)
		return false;
	attr.send_cq = attr.recv_cq = c->cq;
	c->qp = uroce_create_qp(ep->pd, &attr);
	return c->qp != NULL && demand_nothing(c->qp);
}

static bool post_receive(struct perf_control *c, unsigned slot)
{
	struct ibv_sge sge = {(uintptr_t)c->mem + slot * (size_t)SLOT_BYTES, SLOT_BYTES,
			      c->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
	int rc = uroce_post_recv(c->qp, &wr, &bad);

	if (rc != 0)
		errno = rc;
	return rc == 0;
}

bool perf_control_arm(struct perf_control *c)
{
	for (unsigned i = 0; i < PERF_CONTROL_SLOTS; i++) {
		if (!post_receive(c, i))
			return false;
	}
	return true;
}

void perf_control_destroy(struct perf_control *c)
{
	if (c->id != NULL)
		uroce_cm_destroy_id(c->id);
	if (c->qp != NULL)
		uroce_destroy_qp(c->qp);
	if (c->cq != NULL)
		uroce_destroy_cq(c->cq);
	if (c->mr != NULL)
		uroce_dereg_mr(c->mr);
	free(c->mem);
	memset(c, 0, sizeof(*c));
}

bool perf_control_send(struct perf_control *c, enum perf_message kind, uint32_t seq,
		       const void *payload, size_t bytes)
{
	struct perf_header header = {.kind = kind, .seq = seq, .bytes = (uint32_t)bytes};
	unsigned slot = (unsigned)__builtin_ctz(~c->tx_busy);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_sge sge;
	uint8_t *at;

	if (c->dead || slot >= PERF_CONTROL_SLOTS || bytes > PERF_MSG_BYTES)
		return false;
	at = c->mem + (PERF_CONTROL_SLOTS + slot) * (size_t)SLOT_BYTES;
	perf_header_encode(at, &header);
	if (bytes != 0)
		memcpy(at + PERF_HEADER_BYTES, payload, bytes);
	sge = (struct ibv_sge){(uintptr_t)at, (uint32_t)(PERF_HEADER_BYTES + bytes), c->mr->lkey};
	wr.wr_id = SEND_BIT | slot;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	if (uroce_post_send(c->qp, &wr, &bad) != 0)
		return false;
	c->tx_busy |= 1u << slot;
	return true;
}

static bool take(struct perf_control *c, const struct ibv_wc *wc, struct perf_received *r)
{
	const uint8_t *at = c->mem + wc->wr_id * (size_t)SLOT_BYTES;
	bool good = perf_header_decode(at, wc->byte_len, &r->header);

	if (good)
		memcpy(r->payload, at + PERF_HEADER_BYTES, r->header.bytes);
	if (!post_receive(c, (unsigned)wc->wr_id)) {
		c->dead = true;
		c->why = IBV_WC_GENERAL_ERR;
	}
	return good && r->header.kind != PERF_MSG_PING;
}

bool perf_control_poll(struct perf_control *c, struct perf_received *r)
{
	struct ibv_wc wc;
	uint64_t now;

	while (c->cq != NULL && uroce_poll_cq(c->cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS) {
			if (!c->dead)
				c->why = wc.status;
			c->dead = true;
			continue;
		}
		if ((wc.wr_id & SEND_BIT) != 0)
			c->tx_busy &= ~(1u << (wc.wr_id & (SEND_BIT - 1)));
		else if (take(c, &wc, r))
			return true;
	}
	now = perf_now_ns();
	if (c->up && !c->dead && now - c->pinged_ns > PING_NS) {
		c->pinged_ns = now;
		perf_control_send(c, PERF_MSG_PING, 0, NULL, 0);
	}
	return false;
}

struct uroce_conn_param perf_conn_param(const struct perf_hello *hello, uint8_t *private_data,
					const struct perf_params *p)
{
	struct uroce_conn_param param = {
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.timeout = 18,	    /* 1.07 s: a machine may be suspended for a while */
		.min_rnr_timer = 1, /* 10 us: the receiver is a program that polls */
	};

	if (hello != NULL) {
		param.private_data = private_data;
		param.private_data_len = (uint8_t)perf_hello_encode(private_data, hello);
	}
	if (p != NULL) {
		param.responder_resources = (uint8_t)p->rd_atomic;
		param.initiator_depth = (uint8_t)p->rd_atomic;
		param.retry_count = (uint8_t)p->retry;
		param.rnr_retry_count = (uint8_t)p->rnr_retry;
		param.min_rnr_timer = (uint8_t)p->min_rnr_timer;
		param.timeout = (uint8_t)p->timeout;
		param.path_mtu = (uint16_t)p->mtu;
		param.srq = p->srq != 0;
	}
	return param;
}
