/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/impair_pkt.h"

#include <stdlib.h>
#include <string.h>

#include "wire/rate.h"
#include "wire/assert.h"
#include "wire/packet.h"

#define ECN_MASK     3
#define ECN_CE	     3
#define HOLD_DEFAULT 1024 /* of impair.c */

/* The object behind a packet pointer of impair.c. */
struct node {
	struct ur_pkt pkt;
	struct node *next; /* free ones */
};

struct ur_impair_pkt {
	struct ur_impair *imp;
	const struct ur_source_ops *ops;
	void *source;
	uint32_t frame_bytes;
	struct node *free;
	struct node node[];
};

static struct node *take_node(struct ur_impair_pkt *ip)
{
	struct node *n = ip->free;

	if (n)
		ip->free = n->next;
	return n;
}

static void give_node(struct ur_impair_pkt *ip, struct node *n)
{
	n->next = ip->free;
	ip->free = n;
}

static void *clone_pkt(void *ctx, void *pkt)
{
	struct ur_impair_pkt *ip = ctx;
	const struct ur_pkt *from = &((struct node *)pkt)->pkt;
	struct node *copy;
	struct ur_pkt to;

	if (from->len > ip->frame_bytes || !ip->ops->alloc(ip->source, &to, 1))
		return NULL;
	copy = take_node(ip);
	UR_ASSERT(copy);
	memcpy(to.data, from->data, from->len);
	copy->pkt = *from;
	copy->pkt.data = to.data;
	copy->pkt.handle = to.handle;
	return copy;
}

static void release_pkt(void *ctx, void *pkt)
{
	struct ur_impair_pkt *ip = ctx;
	struct node *n = pkt;

	ip->ops->free(ip->source, &n->pkt, 1);
	give_node(ip, n);
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
	struct ur_pkt *p = &((struct node *)pkt)->pkt;
	uint64_t bit;
	size_t l3;

	if (!ip_version(p->data, p->len, &l3))
		return pkt;
	bit = random % ((p->len - l3) * 8);
	p->data[l3 + bit / 8] ^= (uint8_t)(1u << bit % 8);
	return pkt;
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

static bool mark_pkt(void *ctx, void **pkt)
{
	struct ur_pkt *p = &((struct node *)*pkt)->pkt;

	return ur_impair_mark_frame(p->data, p->len);
}

static uint32_t wire_bytes(void *ctx, void *pkt)
{
	return ((const struct node *)pkt)->pkt.len + UR_RATE_EXTRA;
}

static const struct ur_impair_ops pkt_ops = {clone_pkt, release_pkt, flip_bit, mark_pkt,
					     wire_bytes};

struct ur_impair_pkt *ur_impair_pkt_new(const struct ur_impair_config *cfg, uint32_t stream,
					const struct ur_source_ops *ops, void *source,
					uint32_t frame_bytes)
{
	/* Both queues full, a burst on its way in and a copy of each. */
	size_t cnt = 2 * (size_t)(cfg->hold_max ? cfg->hold_max : HOLD_DEFAULT) + 2 * UR_BURST +
		     UR_IMPAIR_PKT_OUT;
	struct ur_impair_pkt *ip = calloc(1, sizeof(*ip) + cnt * sizeof(ip->node[0]));

	if (!ip)
		return NULL;
	ip->ops = ops;
	ip->source = source;
	ip->frame_bytes = frame_bytes;
	for (size_t i = cnt; i-- > 0;)
		give_node(ip, &ip->node[i]);
	ip->imp = ur_impair_new(cfg, stream, &pkt_ops, ip);
	if (!ip->imp) {
		free(ip);
		return NULL;
	}
	return ip;
}

void ur_impair_pkt_free(struct ur_impair_pkt *ip)
{
	if (!ip)
		return;
	ur_impair_free(ip->imp);
	free(ip);
}

unsigned ur_impair_pkt_run(struct ur_impair_pkt *ip, const struct ur_pkt *in, unsigned n,
			   struct ur_pkt *out, unsigned cap, uint64_t now_ns)
{
	void *nodes[UR_BURST], *left[UR_IMPAIR_PKT_OUT];
	unsigned cnt;

	UR_ASSERT(n <= UR_BURST && cap <= UR_IMPAIR_PKT_OUT);
	for (unsigned i = 0; i < n; i++) {
		struct node *node = take_node(ip);

		UR_ASSERT(node);
		node->pkt = in[i];
		nodes[i] = node;
	}
	cnt = ur_impair_run(ip->imp, nodes, (uint16_t)n, left, (uint16_t)cap, now_ns);
	for (unsigned i = 0; i < cnt; i++) {
		struct node *node = left[i];

		out[i] = node->pkt;
		give_node(ip, node);
	}
	return cnt;
}

const struct ur_impair *ur_impair_pkt_impair(const struct ur_impair_pkt *ip)
{
	return ip->imp;
}
