/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/impair_mbuf.h"

#include "edge/rate.h"
#include "wire/packet.h"

#define ECN_MASK 3
#define ECN_CE	 3

static void *clone_mbuf(void *ctx, void *pkt)
{
	return rte_pktmbuf_copy(pkt, ctx, 0, UINT32_MAX);
}

static void release_mbuf(void *ctx, void *pkt)
{
	(void)ctx;
	rte_pktmbuf_free(pkt);
}

/* Returns the packet if it may be written, else a copy that replaces it; NULL: memory is out. */
static struct rte_mbuf *writable(void *ctx, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1)
		return m;
	copy = rte_pktmbuf_copy(m, ctx, 0, UINT32_MAX);
	if (copy)
		rte_pktmbuf_free(m);
	return copy;
}

/* The IP version of [frame, frame + len), and the offset of its header; 0 if it is not IP. */
static unsigned ip_version(const uint8_t *frame, size_t len, size_t *l3)
{
	uint16_t type;

	*l3 = UR_ETH_BYTES;
	if (len < UR_ETH_BYTES + UR_VLAN_BYTES + UR_IPV4_BYTES)
		return 0;
	type = (uint16_t)(frame[12] << 8 | frame[13]);
	if (type == UR_ETHERTYPE_VLAN) {
		type = (uint16_t)(frame[16] << 8 | frame[17]);
		*l3 += UR_VLAN_BYTES;
	}
	if (type == UR_ETHERTYPE_IPV4)
		return 4;
	return type == UR_ETHERTYPE_IPV6 ? 6 : 0;
}

/*
 * Only IP packets, and only from the IP header on. A wrong bit before it could give another MAC
 * address or a wrong neighbour, which the check sequence of real Ethernet prevents.
 */
static void *flip_bit(void *ctx, void *pkt, uint64_t random)
{
	struct rte_mbuf *m = pkt;
	size_t l3;
	uint64_t bit;

	if (!ip_version(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &l3))
		return m;
	m = writable(ctx, m);
	if (!m || m->data_len <= l3)
		return m;
	/* A copy too long for one mbuf is chained; the bit is then in its first segment. */
	bit = random % ((m->data_len - l3) * 8);
	rte_pktmbuf_mtod(m, uint8_t *)[l3 + bit / 8] ^= (uint8_t)(1u << bit % 8);
	return m;
}

/* RFC 1624: updates a header checksum after one 16-bit word has changed from `was` to `is`. */
static void update_csum(uint8_t *csum, uint16_t was, uint16_t is)
{
	uint32_t sum = (uint16_t) ~(csum[0] << 8 | csum[1]);

	sum += (uint16_t)~was + is;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	csum[0] = (uint8_t)(sum >> 8);
	csum[1] = (uint8_t)sum;
}

bool ur_impair_mark_frame(uint8_t *frame, size_t len)
{
	size_t l3;
	unsigned version = ip_version(frame, len, &l3);
	uint8_t *ip = frame + l3;

	if (version == 4) {
		uint16_t was = (uint16_t)(ip[0] << 8 | ip[1]);

		if ((ip[1] & ECN_MASK) == 0)
			return false;
		ip[1] |= ECN_CE;
		update_csum(ip + 10, was, (uint16_t)(ip[0] << 8 | ip[1]));
		return true;
	}
	if (version == 6 && (ip[1] >> 4 & ECN_MASK) != 0) {
		ip[1] |= ECN_CE << 4;
		return true;
	}
	return false;
}

static bool mark_mbuf(void *ctx, void **pkt)
{
	struct rte_mbuf *m = *pkt;

	/* The headers are in our own memory, even if the payload after them is the user's. */
	if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
		m = writable(ctx, m);
	if (!m)
		return false;
	*pkt = m;
	return ur_impair_mark_frame(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
}

static uint32_t mbuf_wire_bytes(void *ctx, void *pkt)
{
	(void)ctx;
	return rte_pktmbuf_pkt_len((const struct rte_mbuf *)pkt) + UR_RATE_EXTRA;
}

static const struct ur_impair_ops mbuf_ops = {clone_mbuf, release_mbuf, flip_bit, mark_mbuf,
					      mbuf_wire_bytes};

struct ur_impair *ur_impair_mbuf_new(const struct ur_impair_config *cfg, uint32_t stream,
				     struct rte_mempool *pool)
{
	return ur_impair_new(cfg, stream, &mbuf_ops, pool);
}
