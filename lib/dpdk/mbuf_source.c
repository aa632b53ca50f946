/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/mbuf_source.h"

#include <rte_ether.h>

#include "wire/assert.h"
#include "wire/icrc.h"

/* For smaller payloads, two more mbufs cost more than the copy. */
#define ATTACH_BYTES 2048
#define TX_MAX	     (4 * UR_BURST)
/* Up to as many buffers are kept and reused. For more, the pool's operations in bulk cost less for each. */
#define FEW 4

static void nothing(void *addr, void *arg)
{
}

void ur_mbuf_source_init(struct ur_mbuf_source *s, const struct ur_port *port, uint16_t queue,
			 const struct ur_clock *clock, bool writes, uint64_t *no_mbuf)
{
	*s = (struct ur_mbuf_source){.port = port,
				     .clock = clock,
				     .pool = port->pool[queue],
				     .queue = queue,
				     .writes = writes,
				     .no_mbuf = no_mbuf,
				     .shared = {.free_cb = nothing}};
	/* The source holds a reference, so that the count never drops to zero. */
	rte_mbuf_ext_refcnt_set(&s->shared, 1);
}

uint64_t ur_mbuf_now_ns(void *source)
{
	return ur_clock_ns(((const struct ur_mbuf_source *)source)->clock);
}

/* ---- buffers ---- */

static bool is_shared(const struct rte_mbuf *m)
{
	return !RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1;
}

/* Whether the buffer is as those of the pool are. */
static bool may_be_kept(const struct ur_mbuf_source *s, const struct rte_mbuf *m)
{
	return m->pool == s->pool && m->nb_segs == 1 && !is_shared(m);
}

static void take_kept(struct ur_mbuf_source *s, struct ur_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = s->kept[--s->kept_cnt];

		rte_pktmbuf_reset(m);
		pkts[i] = ur_mbuf_pkt(m);
	}
}

bool ur_mbuf_alloc(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct ur_mbuf_source *s = source;
	struct rte_mbuf *m[UR_BURST];

	if (n <= FEW && s->kept_cnt >= n) {
		take_kept(s, pkts, n);
		return true;
	}
	if (rte_pktmbuf_alloc_bulk(s->pool, m, n))
		return false;
	for (unsigned i = 0; i < n; i++)
		pkts[i] = ur_mbuf_pkt(m[i]);
	return true;
}

static void free_few(struct ur_mbuf_source *s, struct ur_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i].handle;

		if (s->kept_cnt < UR_MBUF_KEPT && may_be_kept(s, m))
			s->kept[s->kept_cnt++] = m;
		else
			rte_pktmbuf_free(m);
	}
}

void ur_mbuf_free(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct rte_mbuf *m[UR_BURST];

	if (n <= FEW) {
		free_few(source, pkts, n);
		return;
	}
	for (unsigned at = 0, cnt; at < n; at += cnt) {
		cnt = RTE_MIN(n - at, (unsigned)UR_BURST);
		for (unsigned i = 0; i < cnt; i++)
			m[i] = pkts[at + i].handle;
		rte_pktmbuf_free_bulk(m, cnt);
	}
}

void ur_mbuf_source_fini(struct ur_mbuf_source *s)
{
	rte_pktmbuf_free_bulk(s->kept, s->kept_cnt);
	s->kept_cnt = 0;
}

/* ---- receive ---- */

/* Returns the packet itself if nothing else refers to its bytes, otherwise a copy. */
static struct rte_mbuf *unshare(struct ur_mbuf_source *s, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (!is_shared(m) && m->nb_segs == 1)
		return m;
	copy = rte_pktmbuf_copy(m, s->pool, 0, UINT32_MAX);
	rte_pktmbuf_free(m);
	return copy;
}

/*
 * Handles what only some drivers deliver: a chain, a frame whose tag the kernel removed and reported
 * separately, shared memory. False: there was no buffer for this, and the packet was freed.
 */
static bool normalize(struct ur_mbuf_source *s, struct rte_mbuf *m, struct ur_pkt *pkt)
{
	bool stripped;

	if (s->writes)
		m = unshare(s, m);
	if (m && m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && rte_vlan_insert(&m) == 0)
		m->ol_flags &= ~RTE_MBUF_F_RX_VLAN_STRIPPED;
	if (!m || (m->nb_segs > 1 && rte_pktmbuf_linearize(m))) {
		++*s->no_mbuf;
		rte_pktmbuf_free(m);
		return false;
	}
	stripped = m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED;
	*pkt = ur_mbuf_pkt(m);
	pkt->has_tci = stripped;
	pkt->vlan_tci = stripped ? m->vlan_tci : 0;
	return true;
}

static bool is_normal(const struct ur_mbuf_source *s, const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && !(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) &&
	       !(s->writes && is_shared(m));
}

static unsigned receive_from_port(struct ur_mbuf_source *s, struct ur_pkt *pkts, unsigned n)
{
	struct rte_mbuf *m[UR_BURST];
	unsigned kept = 0, want, got;

	/* Usually one iteration. After a full burst in which a packet was lost it receives again,
	 * because fewer than n means that there are no more packets. */
	do {
		want = n - kept;
		got = ur_port_rx(s->port, s->queue, m, (uint16_t)want);
		for (unsigned i = 0; i < got; i++) {
			if (__builtin_expect(is_normal(s, m[i]), 1))
				pkts[kept++] = ur_mbuf_pkt(m[i]);
			else
				kept += normalize(s, m[i], &pkts[kept]);
		}
	} while (got == want && kept < n);
	return kept;
}

/* In turns, so that neither can keep the other from being received. */
static unsigned receive_from_both(struct ur_mbuf_source *s, struct ur_pkt *pkts, unsigned n)
{
	unsigned got;

	s->direct_first = !s->direct_first;
	if (s->direct_first) {
		got = ur_direct_rx(s->direct, s, pkts, n);
		return got < n ? got + receive_from_port(s, pkts + got, n - got) : got;
	}
	got = receive_from_port(s, pkts, n);
	return got < n ? got + ur_direct_rx(s->direct, s, pkts + got, n - got) : got;
}

unsigned ur_mbuf_rx(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct ur_mbuf_source *s = source;

	return s->direct ? receive_from_both(s, pkts, n) : receive_from_port(s, pkts, n);
}

/* ---- send ---- */

unsigned ur_mbuf_send_by_port(const struct ur_mbuf_source *s, const struct ur_pkt *pkts, unsigned n)
{
	struct rte_mbuf *m[TX_MAX];

	if (n > TX_MAX)
		n = TX_MAX;
	for (unsigned i = 0; i < n; i++) {
		m[i] = pkts[i].handle;
		if (!pkts[i].in_pieces) {
			m[i]->data_len = (uint16_t)pkts[i].len;
			m[i]->pkt_len = pkts[i].len;
		}
	}
	return ur_port_tx(s->port, s->queue, m, (uint16_t)n);
}

/* Frames for one ring, or for the port, that follow each other leave together. */
static unsigned send_by_both(struct ur_mbuf_source *s, struct ur_pkt *pkts, unsigned n)
{
	unsigned sent = 0, end, cnt;

	while (sent < n) {
		struct ur_direct_peer *peer =
			ur_direct_find(s->direct, pkts[sent].data, pkts[sent].len);

		end = sent + 1;
		while (end < n && ur_direct_find(s->direct, pkts[end].data, pkts[end].len) == peer)
			end++;
		cnt = peer ? ur_direct_tx(s->direct, peer, s, pkts + sent, end - sent)
			   : ur_mbuf_send_by_port(s, pkts + sent, end - sent);
		sent += cnt;
		if (sent < end)
			break;
	}
	return sent;
}

unsigned ur_mbuf_tx(void *source, struct ur_pkt *pkts, unsigned n)
{
	struct ur_mbuf_source *s = source;

	return s->direct ? send_by_both(s, pkts, n) : ur_mbuf_send_by_port(s, pkts, n);
}

/* Builds a chain of three mbufs: headers, the user's memory, pad and ICRC. */
static bool attach_payload(struct ur_mbuf_source *s, struct ur_pkt *pkt, const struct ur_tx *tx)
{
	const struct ur_frag *frag = &tx->frag[0];
	struct rte_mbuf *m = pkt->handle, *more[2];
	uint8_t *hdr = pkt->data, *tail;
	uint32_t icrc;

	if (rte_pktmbuf_alloc_bulk(s->pool, more, 2))
		return false;
	rte_mbuf_ext_refcnt_update(&s->shared, 1);
	rte_pktmbuf_attach_extbuf(more[0], (void *)(uintptr_t)frag->base, RTE_BAD_IOVA,
				  (uint16_t)frag->length, &s->shared);
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
	pkt->len = m->pkt_len;
	pkt->in_pieces = true;
	return true;
}

static void build(void *source, struct ur_pkt *pkts, const struct ur_tx *tx, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (tx[i].frag_cnt != 1 || tx[i].payload_len < ATTACH_BYTES ||
		    !attach_payload(source, &pkts[i], &tx[i]))
			pkts[i].len = ur_tx_write(&tx[i], pkts[i].data);
}

static unsigned segments(void *source, const struct ur_pkt *pkt, struct iovec *seg, unsigned cap)
{
	unsigned cnt = 0;

	if (!pkt->in_pieces) {
		seg[0] = (struct iovec){pkt->data, pkt->len};
		return 1;
	}
	for (struct rte_mbuf *m = pkt->handle; m && cnt < cap; m = m->next)
		seg[cnt++] = (struct iovec){rte_pktmbuf_mtod(m, void *), m->data_len};
	return cnt;
}

static void join(void *source, struct ur_pkt *pkt)
{
	if (!pkt->in_pieces)
		return;
	/* Cannot fail: the mbufs of the pool have room for a whole frame. */
	UR_ASSERT(rte_pktmbuf_linearize(pkt->handle) == 0);
	pkt->in_pieces = false;
}

const struct ur_gather_ops ur_mbuf_gather = {build, segments, join};
