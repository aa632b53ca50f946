/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <string.h>

#include "rsocket/post.h"

static uint64_t id_of(unsigned kind, uint32_t value)
{
	return (uint64_t)kind << 32 | value;
}

static void post(struct ur_rs *rs, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	if (ibv_post_send(rs->link.qp, wr, &bad))
		rs->link.broken = ECONNRESET;
}

/* What lies in the ring from its head on. Returns the number of elements. */
static int gather(const struct ur_rs *rs, uint32_t bytes, struct ibv_sge sge[2])
{
	const struct ur_rs_link *l = &rs->link;
	uint32_t first = ur_rs_ring_part(rs, bytes);

	sge[0] = (struct ibv_sge){(uintptr_t)l->ring + l->head, first, l->ring_mr->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)l->ring, bytes - first, l->ring_mr->lkey};
	return first < bytes ? 2 : 1;
}

/* Sends from the ring. What is sent inline leaves it at once. */
static void post_ring(struct ur_rs *rs, unsigned kind, uint32_t bytes, struct ibv_send_wr *wr)
{
	struct ur_rs_link *l = &rs->link;
	struct ibv_sge sge[2];
	bool is_inline = bytes <= l->inline_bytes;

	wr->sg_list = sge;
	wr->num_sge = gather(rs, bytes, sge);
	wr->send_flags = is_inline ? IBV_SEND_INLINE : 0;
	wr->wr_id = id_of(kind, is_inline ? 0 : bytes);
	l->slots--;
	if (!is_inline) {
		l->busy += bytes;
		l->head = (l->head + bytes) % rs->opt.send_bytes;
	}
	post(rs, wr);
}

void ur_rs_post_data(struct ur_rs *rs, uint32_t bytes)
{
	struct ur_rs_sge to = ur_rs_tx_take(&rs->link.tx, bytes);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(ur_rs_word(UR_RS_DATA, bytes)),
		.wr.rdma = {to.addr, to.key},
	};

	post_ring(rs, UR_RS_DATA, bytes, &wr);
}

void ur_rs_post_direct(struct ur_rs *rs, uint32_t bytes, uint64_t addr, uint32_t key)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {addr, key}};

	post_ring(rs, UR_RS_DIRECT, bytes, &wr);
}

void ur_rs_post_map(struct ur_rs *rs, const struct ur_rs_mapping *m)
{
	struct ur_rs_link *l = &rs->link;
	struct ur_rs_map map = {
		m->offset,
		{(uintptr_t)m->mr->addr, m->mr->rkey, (uint32_t)m->mr->length},
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(ur_rs_word(UR_RS_MAP, (uint32_t)m->index)),
		.wr.rdma = {l->peer_maps.addr + (uint64_t)m->index * UR_RS_MAP_BYTES,
			    l->peer_maps.key},
	};

	map = ur_rs_map_for(l->peer_big, map);
	ur_rs_fill_ring(rs, &map, sizeof(map));
	l->tx.seq++;
	post_ring(rs, UR_RS_MAP, sizeof(map), &wr);
}

void ur_rs_fill_ring(struct ur_rs *rs, const void *from, uint32_t bytes)
{
	struct ur_rs_link *l = &rs->link;
	uint32_t first = ur_rs_ring_part(rs, bytes);

	memcpy(l->ring + l->head, from, first);
	memcpy(l->ring, (const uint8_t *)from + first, bytes - first);
}

/* ---- control messages ---- */

void ur_rs_post_control(struct ur_rs *rs, enum ur_rs_control c)
{
	struct ibv_send_wr wr = {
		.wr_id = id_of(UR_RS_CONTROL, c),
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(ur_rs_word(UR_RS_CONTROL, c)),
	};

	rs->link.controls--;
	if (c == UR_RS_DISCONNECT)
		rs->sent_disconnect = true;
	post(rs, &wr);
}

/* entry: what is written `to` the peer's targets with it, or NULL. */
static void post_credits(struct ur_rs *rs, struct ibv_sge *entry, struct ur_rs_sge to)
{
	struct ibv_send_wr wr = {
		.wr_id = id_of(UR_RS_CREDIT, 0),
		.sg_list = entry,
		.num_sge = entry ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(ur_rs_word(UR_RS_CREDIT, ur_rs_rx_give(&rs->link.rx))),
		.wr.rdma = {to.addr, to.key},
	};

	rs->link.controls--;
	post(rs, &wr);
}

/* The entry stays in its own place behind the ring until it is sent: as many places as control messages under way. */
static void post_half(struct ur_rs *rs)
{
	struct ur_rs_link *l = &rs->link;
	struct ur_rs_sge half = {(uintptr_t)l->recv_buf + ur_rs_rx_grant(&l->rx), l->open_mr->rkey,
				 l->rx.half};
	size_t at = rs->opt.send_bytes + l->next_half % UR_RS_CONTROLS * sizeof(half);
	struct ibv_sge entry = {(uintptr_t)l->ring + at, sizeof(half), l->ring_mr->lkey};
	struct ur_rs_sge to = l->peer_targets;

	half = ur_rs_sge_for(l->peer_big, half);
	memcpy(l->ring + at, &half, sizeof(half));
	to.addr += (uint64_t)l->next_peer_target * UR_RS_SGE_BYTES;
	l->next_half++;
	l->next_peer_target = (l->next_peer_target + 1) % l->peer_targets.bytes;
	post_credits(rs, &entry, to);
}

/* RSOCKET-GRANT-01 */
void ur_rs_grant(struct ur_rs *rs)
{
	struct ur_rs_link *l = &rs->link;

	while (rs->state == UR_RS_CONNECTED && !rs->eof && !rs->sent_disconnect && l->controls) {
		if (ur_rs_rx_has_half(&l->rx))
			post_half(rs);
		else if (ur_rs_rx_owes(&l->rx))
			post_credits(rs, NULL, (struct ur_rs_sge){0});
		else
			return;
	}
}
