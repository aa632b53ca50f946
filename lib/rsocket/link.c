/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket/socket.h"

#define DEPTH_MIN 16
/*
 * Receives beyond the credits that are offered, for control messages, which take none. Without them the peer's last
 * message could wait for this program to read.
 */
#define SPARE_RECEIVES 8
#define CACHE_LINE     64
#define HALF_MIN       1024 /* bytes */
#define SEND_BYTES_MIN (2 * UR_RS_LOW_BYTES)
#define CHAIN	       32 /* receives posted by one call */

static int fit_depths(struct ur_rs *rs)
{
	struct ibv_device_attr limits;
	uint32_t most;

	if (ibv_query_device(rs->id->verbs, &limits))
		return EIO;
	most = ur_rs_within(limits.max_qp_wr, 0, 65534) - SPARE_RECEIVES;
	rs->opt.sq_depth = ur_rs_within(rs->opt.sq_depth, DEPTH_MIN, most);
	rs->opt.rq_depth = ur_rs_within(rs->opt.rq_depth, DEPTH_MIN, most);
	return 0;
}

static int open_queues(struct ur_rs *rs)
{
	struct ur_rs_link *l = &rs->link;
	struct ibv_context *ctx = rs->id->verbs;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = rs->opt.sq_depth,
			.max_recv_wr = rs->opt.rq_depth + SPARE_RECEIVES,
			.max_send_sge = 2, /* the ring may wrap */
			.max_recv_sge = 1,
			.max_inline_data = rs->opt.inline_bytes},
	};

	l->comp = ibv_create_comp_channel(ctx);
	if (!l->comp || fcntl(l->comp->fd, F_SETFL, O_NONBLOCK))
		return errno;
	l->send_cq = ibv_create_cq(ctx, (int)attr.cap.max_send_wr, NULL, l->comp, 0);
	l->recv_cq = ibv_create_cq(ctx, (int)attr.cap.max_recv_wr, NULL, l->comp, 0);
	if (!l->send_cq || !l->recv_cq)
		return errno;
	attr.send_cq = l->send_cq;
	attr.recv_cq = l->recv_cq;
	if (rdma_create_qp(rs->id, NULL, &attr)) {
		/* More than the device sends inline: the ring serves as well. */
		attr.cap.max_inline_data = 0;
		if (rdma_create_qp(rs->id, NULL, &attr))
			return errno;
	}
	l->qp = rs->id->qp;
	l->inline_bytes = rs->opt.inline_bytes < attr.cap.max_inline_data
				  ? rs->opt.inline_bytes
				  : attr.cap.max_inline_data;
	l->slots = rs->opt.sq_depth - UR_RS_CONTROLS;
	l->controls = UR_RS_CONTROLS;
	return 0;
}

static size_t round_up(size_t n)
{
	return (n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static int open_buffers(struct ur_rs *rs)
{
	struct ur_rs_link *l = &rs->link;
	uint32_t half =
		(uint32_t)round_up(ur_rs_within(rs->opt.recv_bytes / 2, HALF_MIN, UINT32_MAX));
	size_t maps_at = UR_RS_TARGETS * sizeof(struct ur_rs_sge);
	size_t recv_at = round_up(maps_at + rs->opt.maps * sizeof(struct ur_rs_map));
	size_t open_bytes = recv_at + 2 * (size_t)half;
	size_t ring_bytes;

	if (rs->opt.send_bytes < SEND_BYTES_MIN)
		rs->opt.send_bytes = SEND_BYTES_MIN;
	ring_bytes = rs->opt.send_bytes + UR_RS_CONTROLS * sizeof(struct ur_rs_sge);
	l->open = calloc(1, open_bytes);
	l->ring = calloc(1, ring_bytes);
	if (!l->open || !l->ring)
		return ENOMEM;
	/* The peer has no right to what this end sends. */
	l->open_mr = ibv_reg_mr(rs->id->pd, l->open, open_bytes,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	l->ring_mr = ibv_reg_mr(rs->id->pd, l->ring, ring_bytes, 0);
	if (!l->open_mr || !l->ring_mr)
		return errno;
	l->targets = (void *)l->open;
	l->maps = (void *)(l->open + maps_at);
	l->recv_buf = l->open + recv_at;
	l->rx = ur_rs_rx(half, (uint16_t)rs->opt.rq_depth);
	return 0;
}

int ur_rs_post_receives(struct ur_rs_link *l, uint32_t cnt)
{
	struct ibv_recv_wr chain[CHAIN], *bad;
	int rc = 0;

	while (cnt && !rc) {
		uint32_t n = cnt < CHAIN ? cnt : CHAIN;

		for (uint32_t i = 0; i < n; i++)
			chain[i] = (struct ibv_recv_wr){.next = i + 1 < n ? &chain[i + 1] : NULL};
		rc = ibv_post_recv(l->qp, chain, &bad);
		cnt -= n;
	}
	return rc;
}

int ur_rs_open_link(struct ur_rs *rs)
{
	int rc = fit_depths(rs);

	if (!rc)
		rc = open_queues(rs);
	if (!rc)
		rc = open_buffers(rs);
	if (!rc)
		rc = ur_rs_post_receives(&rs->link, rs->opt.rq_depth + SPARE_RECEIVES);
	return rc;
}

void ur_rs_close_link(struct ur_rs *rs)
{
	struct ur_rs_link *l = &rs->link;

	if (l->qp)
		rdma_destroy_qp(rs->id);
	if (l->recv_cq)
		ibv_destroy_cq(l->recv_cq);
	if (l->send_cq)
		ibv_destroy_cq(l->send_cq);
	if (l->comp)
		ibv_destroy_comp_channel(l->comp);
	if (l->open_mr)
		ibv_dereg_mr(l->open_mr);
	if (l->ring_mr)
		ibv_dereg_mr(l->ring_mr);
	free(l->open);
	free(l->ring);
	*l = (struct ur_rs_link){0};
}

/* No READs or atomics: none in flight. The peer repeats for ever what finds no receive, because control messages take no credit. */
struct rdma_conn_param ur_rs_conn_param(const struct ur_rs *rs, uint8_t *offer)
{
	const struct ur_rs_link *l = &rs->link;
	struct ur_rs_offer o = {
		.big = UR_RS_IS_BIG,
		.has_maps = true,
		.credits = l->rx.depth,
		.maps = rs->opt.maps,
		.targets = {(uintptr_t)l->targets, l->open_mr->rkey, UR_RS_TARGETS},
		.buffer = {(uintptr_t)l->recv_buf, l->open_mr->rkey, l->rx.half},
	};

	ur_rs_put_offer(offer, &o);
	return (struct rdma_conn_param){.private_data = offer,
					.private_data_len = UR_RS_OFFER_BYTES,
					.flow_control = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

/* The peer's first buffer stands for entry 0 of both tables. */
void ur_rs_take_offer(struct ur_rs *rs, const struct ur_rs_offer *o)
{
	struct ur_rs_link *l = &rs->link;

	l->peer_big = o->big;
	l->peer_targets = o->targets;
	l->peer_maps =
		(struct ur_rs_sge){o->targets.addr + (uint64_t)o->targets.bytes * UR_RS_SGE_BYTES,
				   o->targets.key, o->maps};
	l->next_peer_target = 1 % o->targets.bytes;
	l->next_target = 1;
	l->tx = ur_rs_tx(o);
}
