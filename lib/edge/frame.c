/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/frame.h"

#include "wire/assert.h"
#include "wire/icrc.h"

/* For smaller payloads, two more mbufs cost more than the copy. */
#define ATTACH_BYTES 2048

static void nothing(void *addr, void *arg)
{
}

void ur_framer_init(struct ur_framer *f, struct rte_mempool *pool, bool attach)
{
	f->pool = pool;
	f->attach = attach;
	f->shared = (struct rte_mbuf_ext_shared_info){.free_cb = nothing};
	/* The framer holds a reference, so that the count never drops to zero. */
	rte_mbuf_ext_refcnt_set(&f->shared, 1);
}

static void copy_payload(struct rte_mbuf *m, const struct ur_tx *tx)
{
	m->data_len = (uint16_t)ur_tx_write(tx, rte_pktmbuf_mtod(m, uint8_t *));
	m->pkt_len = m->data_len;
}

/* Builds a chain of three mbufs: headers, the user's memory, pad and ICRC. */
static bool attach_payload(struct ur_framer *f, struct rte_mbuf *m, const struct ur_tx *tx)
{
	const struct ur_frag *frag = &tx->frag[0];
	uint8_t *hdr = rte_pktmbuf_mtod(m, uint8_t *), *tail;
	struct rte_mbuf *more[2];
	uint32_t icrc;

	if (rte_pktmbuf_alloc_bulk(f->pool, more, 2))
		return false;
	rte_mbuf_ext_refcnt_update(&f->shared, 1);
	rte_pktmbuf_attach_extbuf(more[0], (void *)(uintptr_t)frag->base, RTE_BAD_IOVA,
				  (uint16_t)frag->length, &f->shared);
	more[0]->data_len = (uint16_t)frag->length;
	tail = rte_pktmbuf_mtod(more[1], uint8_t *);
	memset(tail, 0, UR_ICRC_BYTES);
	icrc = ur_icrc_begin(hdr + tx->l3_off, tx->hdr_len - (size_t)tx->l3_off, tx->v6);
	icrc = ur_icrc_more(icrc, frag->base, frag->length);
	if (tx->pad)
		icrc = ur_icrc_more(icrc, tail, tx->pad);
	ur_icrc_put(tail + tx->pad, icrc);
	more[1]->data_len = (uint16_t)(tx->pad + UR_ICRC_BYTES);
	m->data_len = tx->hdr_len;
	m->nb_segs = 3;
	m->next = more[0];
	more[0]->next = more[1];
	m->pkt_len = (uint32_t)m->data_len + more[0]->data_len + more[1]->data_len;
	return true;
}

void ur_frame_finish(struct ur_framer *f, struct rte_mbuf *m, const struct ur_tx *tx)
{
	if (f->attach && tx->frag_cnt == 1 && tx->payload_len >= ATTACH_BYTES &&
	    attach_payload(f, m, tx))
		return;
	copy_payload(m, tx);
}

void ur_frame_own(struct rte_mbuf **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (pkts[i]->nb_segs > 1) {
			/* Cannot fail: the mbufs of the pool have room for a whole frame. */
			int rc = rte_pktmbuf_linearize(pkts[i]);

			UR_ASSERT(rc == 0);
		}
}
