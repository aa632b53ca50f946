/* SPDX-License-Identifier: BSD-3-Clause */
#include "recvq.h"

#include <stdlib.h>

/* ---- pieces ---- */

void sim_pieces_cut(struct sim_pieces *c, struct sim_rng *rng, uint32_t len, unsigned max)
{
	uint32_t left = len, off = 0;

	c->len = len;
	c->n = 0;
	if (max > SIM_PIECES_MAX)
		max = SIM_PIECES_MAX;
	while (left) {
		bool last = c->n + 1 == max || left == 1 || sim_below(rng, 2) == 0;
		uint32_t take = last ? left : sim_between(rng, 1, left - 1);

		c->p[c->n].off = off;
		c->p[c->n++].len = take;
		off += take + SIM_PIECE_GAP;
		left -= take;
	}
}

void sim_pieces_put(const struct sim_pieces *c, uint8_t *slot, const uint8_t *src, uint32_t len)
{
	for (unsigned i = 0; i < c->n && len; i++) {
		uint32_t n = c->p[i].len < len ? c->p[i].len : len;

		memcpy(slot + c->p[i].off, src, n);
		src += n;
		len -= n;
	}
}

void sim_pieces_get(const struct sim_pieces *c, const uint8_t *slot, uint8_t *dst, uint32_t len)
{
	for (unsigned i = 0; i < c->n && len; i++) {
		uint32_t n = c->p[i].len < len ? c->p[i].len : len;

		memcpy(dst, slot + c->p[i].off, n);
		dst += n;
		len -= n;
	}
}

int sim_pieces_sges(const struct sim_pieces *c, const struct sim_mr *mr, size_t off,
		    struct ibv_sge *sge)
{
	for (unsigned i = 0; i < c->n; i++)
		sge[i] = sim_sge(mr, off + c->p[i].off, c->p[i].len);
	return (int)c->n;
}

/* ---- receives ---- */

static size_t slot_off(const struct sim_recvq *q, uint32_t number)
{
	return (size_t)(number % q->slot_cnt) * SIM_SLOT_BYTES(q->max_len);
}

void sim_recvq_init(struct sim_recvq *q, struct sim *s, unsigned id, struct sim_qp *qp,
		    struct sim_srq *srq, uint32_t ahead, uint32_t max_len, unsigned max_sge)
{
	struct sim_ep *ep = qp ? qp->ep : NULL;

	*q = (struct sim_recvq){.s = s,
				.id = id,
				.qp = srq ? NULL : qp,
				.srq = srq,
				.slot_cnt = 2 * ahead,
				.max_len = max_len,
				.max_sge = max_sge,
				.ahead = ahead};
	q->slots = calloc(q->slot_cnt, sizeof(*q->slots));
	q->scratch = malloc(SIM_SLOT_BYTES(max_len));
	if (!q->slots || !q->scratch)
		abort();
	sim_mr_init(&q->mr, ep, (size_t)q->slot_cnt * SIM_SLOT_BYTES(max_len),
		    IBV_ACCESS_LOCAL_WRITE);
}

void sim_recvq_free(struct sim_recvq *q)
{
	sim_mr_free(&q->mr);
	free(q->slots);
	free(q->scratch);
}

static void post_one(struct sim_recvq *q)
{
	struct sim_recv_slot *slot = &q->slots[q->posted % q->slot_cnt];
	size_t off = slot_off(q, q->posted);
	struct ibv_sge sge[SIM_PIECES_MAX];
	struct ibv_recv_wr wr = {.wr_id = SIM_RECV_TAG | (uint64_t)q->id << 32 | q->posted,
				 .sg_list = sge};
	int err;

	sim_pieces_cut(&slot->cut, &q->s->rng, q->max_len, q->max_sge);
	memset(q->mr.p + off, SIM_RECV_FILL, SIM_SLOT_BYTES(q->max_len));
	wr.num_sge = sim_pieces_sges(&slot->cut, &q->mr, off, sge);
	slot->open = true;
	slot->number = q->posted++;
	err = q->srq ? sim_post_srq(q->srq, &wr) : sim_post_recv(q->qp, &wr);
	SIM_CHECK(q->s, err == 0, "cannot post receive %u: %d", slot->number, err);
}

void sim_recvq_fill(struct sim_recvq *q)
{
	while (q->posted - q->completed < q->ahead && !q->slots[q->posted % q->slot_cnt].open)
		post_one(q);
}

static void late_fill(struct sim *s, void *arg)
{
	struct sim_recvq *q = arg;

	(void)s;
	q->waiting = false;
	sim_recvq_fill(q);
}

void sim_recvq_refill(struct sim_recvq *q)
{
	if (q->waiting)
		return;
	if (sim_chance(&q->s->rng, q->starve)) {
		q->waiting = true;
		sim_call_at(q->s, q->s->now_ns + sim_rand(&q->s->rng) % (q->starve_ns + 1),
			    late_fill, q);
		return;
	}
	sim_recvq_fill(q);
}

static struct sim_recv_slot *find(struct sim_recvq *q, uint64_t wr_id)
{
	uint32_t number = (uint32_t)wr_id;
	struct sim_recv_slot *slot = &q->slots[number % q->slot_cnt];

	SIM_CHECK(q->s, (wr_id & SIM_RECV_TAG) && (wr_id & ~SIM_RECV_TAG) >> 32 == q->id,
		  "a completion of another receive queue: %llx", (unsigned long long)wr_id);
	SIM_CHECK(q->s, slot->open && slot->number == number,
		  "receive %u completes without being posted, or twice", number);
	return slot;
}

bool sim_recvq_holds(struct sim_recvq *q, uint64_t wr_id, const uint8_t *payload, uint32_t len)
{
	const struct sim_recv_slot *slot = find(q, wr_id);
	const uint8_t *mem = q->mr.p + slot_off(q, slot->number);

	if (len > q->max_len)
		return false;
	if (q->loose) {
		sim_pieces_get(&slot->cut, mem, q->scratch, len);
		return memcmp(q->scratch, payload, len) == 0;
	}
	memset(q->scratch, SIM_RECV_FILL, SIM_SLOT_BYTES(q->max_len));
	sim_pieces_put(&slot->cut, q->scratch, payload, len);
	return memcmp(q->scratch, mem, SIM_SLOT_BYTES(q->max_len)) == 0;
}

void sim_recvq_take(struct sim_recvq *q, uint64_t wr_id)
{
	struct sim_recv_slot *slot = find(q, wr_id);

	SIM_CHECK(q->s, q->srq || slot->number == q->completed,
		  "receive %u completes before receive %u", slot->number, q->completed);
	slot->open = false;
	q->completed++;
}
