/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/nma_priv.h"

/*
 * What the agent asks the nodes at the other end of its links: their GUIDs and ports, and, in a link test, to return what
 * it sends (MGMT-BIST-01).
 */
#define ASK_NS	  UINT64_C(1000000000) /* until the first repetition; then twice as long */
#define ASK_TRIES 8
#define SETTLE_NS UINT64_C(200000000) /* for the last packets of a link test to return */
#define NS_PER_S  UINT64_C(1000000000)

static void sooner(struct ur_nma *nma, uint64_t at_ns)
{
	if (at_ns < nma->link_next_ns)
		nma->link_next_ns = at_ns;
}

static void update_next(struct ur_nma *nma)
{
	nma->link_next_ns = NMA_NEVER;
	for (unsigned p = 1; p <= nma->attr.limits.ports; p++) {
		sooner(nma, nma->port[p].neighbour.next_ns);
		sooner(nma, nma->port[p].bist.next_ns);
	}
}

static void begin(uint8_t *mad, uint8_t mgmt_class, uint64_t tid, uint16_t attr_id)
{
	memset(mad, 0, UR_MAD_BYTES);
	mad[0] = UR_MAD_BASE_VERSION;
	mad[1] = mgmt_class;
	mad[2] = 1;
	mad[3] = UR_MAD_METHOD_GET;
	ur_store64(mad + 8, tid);
	ur_store16(mad + 16, attr_id);
}

/* ---- neighbours ---- */

void nma_ask_neighbour(struct ur_nma *nma, uint8_t port, uint64_t now_ns)
{
	struct nma_neighbour *b = &nma->port[port].neighbour;

	*b = (struct nma_neighbour){.next_ns = NMA_NEVER};
	if (!nma->attr.config.ask_neighbours || !nma_link(nma, port).up)
		return;
	b->tid = nma_own_tid(nma);
	b->next_ns = now_ns;
	sooner(nma, now_ns);
}

static void ask(struct nma_neighbour *b, uint8_t port, struct ur_nma_out *out, uint64_t now_ns)
{
	begin(out->mad, UR_MAD_CLASS_SMP_DR, b->tid, UR_SMP_NODE_INFO);
	out->mad[UR_SMP_HOP_POINTER] = out->mad[UR_SMP_HOP_COUNT] = 1;
	out->mad[UR_SMP_INITIAL + 1] = port;
	ur_store16(out->mad + UR_SMP_DR_SLID, UR_LID_PERMISSIVE);
	ur_store16(out->mad + UR_SMP_DR_DLID, UR_LID_PERMISSIVE);
	out->to = (struct ur_nma_to){.way = UR_MAD_HOP, .port = port};
	b->next_ns = b->tries + 1 < ASK_TRIES ? now_ns + (ASK_NS << b->tries) : NMA_NEVER;
	b->tries++;
}

bool nma_learn_neighbour(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from)
{
	struct nma_neighbour *b;
	struct ur_node_info info;

	/* Of one hop: what was relayed from farther away is not the neighbour's. */
	if (from->way != UR_MAD_HOP || mad[1] != UR_MAD_CLASS_SMP_DR ||
	    mad[3] != UR_MAD_METHOD_GET_RESP || ur_load16(mad + 16) != UR_SMP_NODE_INFO ||
	    mad[UR_SMP_HOP_COUNT] != 1 || mad[UR_SMP_INITIAL + 1] != from->port ||
	    ur_load16(mad + 4) & (uint16_t)~UR_SMP_DIRECTION)
		return false;
	b = &nma->port[from->port].neighbour;
	if (!b->tid || nma_tid(mad) != b->tid)
		return false;
	ur_get_node_info(mad + UR_SMP_DATA, &info);
	b->guid = info.node_guid;
	b->port = info.local_port;
	b->type = info.node_type;
	b->tid = 0;
	b->next_ns = NMA_NEVER;
	update_next(nma);
	return true;
}

/* ---- link test ---- */

void nma_bist_run(struct ur_nma *nma, uint8_t port, bool start, uint64_t now_ns)
{
	struct nma_bist *b = &nma->port[port].bist;

	if (!start) {
		if (b->running)
			b->end_ns = now_ns;
		return;
	}
	b->sent = b->returned = b->errors = 0;
	b->tid = nma_own_tid(nma);
	b->running = true;
	b->next_ns = now_ns;
	b->end_ns = now_ns + b->duration_ns;
	sooner(nma, now_ns);
}

/* The bytes of packet `sequence`. */
static void fill_pattern(uint8_t *to, const struct nma_bist *b, uint64_t sequence)
{
	static const uint8_t fixed[] = {0, 0x00, 0xff, 0x55};
	uint64_t x = b->tid ^ sequence * UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned i = 0; i < UR_BIST_BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		to[i] = b->pattern ? fixed[b->pattern] : (uint8_t)x;
	}
}

static void probe(struct nma_bist *b, uint8_t port, struct ur_nma_out *out, uint64_t now_ns)
{
	struct ur_bist body = {.sequence = b->sent, .pattern = b->pattern};

	begin(out->mad, UR_MAD_CLASS_VENDOR, b->tid, UR_VENDOR_BIST);
	ur_store24(out->mad + UR_VENDOR_OUI_AT, UR_VENDOR_OUI);
	ur_put_bist(out->mad + UR_VENDOR_BODY, &body);
	fill_pattern(out->mad + UR_VENDOR_BODY + UR_BIST_AT, b, b->sent);
	/* The neighbour's memory of requests must not answer for it: each is another one. */
	ur_store32(out->mad + 20, (uint32_t)b->sent);
	out->to = (struct ur_nma_to){
		.way = UR_MAD_HOP, .port = port, .sqpn = UR_GSI_QPN, .dqpn = UR_GSI_QPN};
	b->sent++;
	b->next_ns = now_ns + NS_PER_S / b->rate;
}

/* The test is over, also for packets that are late. */
static void finish(struct ur_nma *nma, uint8_t port, uint64_t now_ns)
{
	struct nma_bist *b = &nma->port[port].bist;

	b->running = false;
	b->next_ns = NMA_NEVER;
	if (b->returned < b->sent)
		ur_nma_fault(nma, UR_FAULT_BIST, port, b->sent - b->returned, 0, now_ns);
}

bool nma_bist_returned(struct ur_nma *nma, const uint8_t *mad, const struct ur_nma_from *from)
{
	uint8_t expected[UR_BIST_BYTES];
	struct nma_bist *b;
	struct ur_bist body;

	if (from->way != UR_MAD_HOP || mad[1] != UR_MAD_CLASS_VENDOR ||
	    mad[3] != UR_MAD_METHOD_GET_RESP || ur_load16(mad + 16) != UR_VENDOR_BIST)
		return false;
	b = &nma->port[from->port].bist;
	if (!b->running || nma_tid(mad) != b->tid)
		return false;
	ur_get_bist(mad + UR_VENDOR_BODY, &body);
	/* More cannot return than were sent, whatever the neighbour does. */
	if (body.sequence >= b->sent || b->returned + b->errors >= b->sent)
		return true;
	fill_pattern(expected, b, body.sequence);
	if (memcmp(expected, mad + UR_VENDOR_BODY + UR_BIST_AT, UR_BIST_BYTES) == 0)
		b->returned++;
	else
		b->errors++;
	return true;
}

bool nma_next_link(struct ur_nma *nma, struct ur_nma_out *out, uint64_t now_ns)
{
	bool made = false;

	if (nma->link_next_ns > now_ns)
		return false;
	for (unsigned p = 1; p <= nma->attr.limits.ports && !made; p++) {
		struct nma_port *port = &nma->port[p];

		if (port->bist.next_ns <= now_ns) {
			if (now_ns >= port->bist.end_ns + SETTLE_NS) {
				finish(nma, (uint8_t)p, now_ns);
			} else if (now_ns >= port->bist.end_ns) {
				port->bist.next_ns = port->bist.end_ns + SETTLE_NS;
			} else {
				probe(&port->bist, (uint8_t)p, out, now_ns);
				made = true;
			}
		} else if (port->neighbour.next_ns <= now_ns) {
			ask(&port->neighbour, (uint8_t)p, out, now_ns);
			made = true;
		}
	}
	update_next(nma);
	return made;
}
