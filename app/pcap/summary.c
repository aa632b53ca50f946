/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <bsd/sys/tree.h>

#include "pcap_tool.h"
#include "print/print.h"

/*
 * The packets of one sender to one QP. Both directions of a connection are two flows: a RoCE
 * packet names its destination QP only.
 */
struct flow_key {
	struct ur_gid src, dst;
	uint32_t dqpn;
	uint32_t transport;
};

struct flow {
	RB_ENTRY(flow) node;
	struct flow_key key;
	uint64_t packet_cnt, payload_bytes, nak_cnt, rnr_cnt;
	uint64_t request_cnt;	     /* all but UD: those whose PSNs are in sequence */
	uint64_t again_cnt;	     /* requests not beyond the newest PSN: sent again, or late */
	struct ur_psn first, newest; /* of requests; valid when request_cnt > 0 */
};

struct per_opcode {
	uint64_t packet_cnt, payload_bytes, icrc_wrong_cnt;
};

RB_HEAD(flow_tree, flow);

struct summary {
	uint64_t verdict_cnt[VERDICT_CNT];
	struct per_opcode per_opcode[256];
	struct flow_tree flows;
};

static int flow_cmp(const struct flow *a, const struct flow *b)
{
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

RB_PROTOTYPE(flow_tree, flow, node, flow_cmp)
RB_GENERATE(flow_tree, flow, node, flow_cmp)

static void *xcalloc(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p)
		err(2, "uroce-pcap");
	return p;
}

struct summary *summary_new(void)
{
	struct summary *s = xcalloc(sizeof(*s));

	RB_INIT(&s->flows);
	return s;
}

void summary_free(struct summary *s)
{
	struct flow *f, *next;

	RB_FOREACH_SAFE(f, flow_tree, &s->flows, next)
	{
		RB_REMOVE(flow_tree, &s->flows, f);
		free(f);
	}
	free(s);
}

static struct flow *flow_of(struct summary *s, const struct ur_packet *p)
{
	struct flow *f, *old;

	f = xcalloc(sizeof(*f));
	f->key.src = p->ip.src;
	f->key.dst = p->ip.dst;
	f->key.dqpn = p->bth.dqpn.v;
	f->key.transport = p->bth.opcode & UR_TRANSPORT_MASK;
	old = RB_INSERT(flow_tree, &s->flows, f);
	if (old)
		free(f);
	return old ? old : f;
}

/* Requests only: responses carry the PSNs of the other direction, a probe takes none. */
static void count_psn(struct flow *f, const struct ur_packet *p)
{
	if (!(p->op & UR_OP_REQUEST) || p->op & (UR_OP_DETH | UR_OP_PROBE))
		return;
	if (f->request_cnt++ == 0) {
		f->first = f->newest = p->bth.psn;
	} else if (ur_psn_lt(f->newest, p->bth.psn)) {
		f->newest = p->bth.psn;
	} else {
		f->again_cnt++;
	}
}

static void flow_add(struct flow *f, const struct ur_packet *p)
{
	uint8_t kind = p->op & UR_OP_AETH ? p->aeth.syndrome & UR_SYNDROME_KIND_MASK : 0;

	f->packet_cnt++;
	f->payload_bytes += p->payload_len;
	f->nak_cnt += kind == UR_SYNDROME_NAK;
	f->rnr_cnt += kind == UR_SYNDROME_RNR_NAK;
	count_psn(f, p);
}

void summary_add(struct summary *s, enum verdict verdict, const struct ur_packet *p)
{
	struct per_opcode *op;

	s->verdict_cnt[verdict]++;
	if (verdict != VERDICT_OK && verdict != VERDICT_ICRC_WRONG)
		return;
	op = &s->per_opcode[p->bth.opcode];
	op->packet_cnt++;
	op->payload_bytes += p->payload_len;
	/* If the ICRC is wrong, the addresses or the QPN may be corrupt. */
	if (verdict == VERDICT_ICRC_WRONG)
		op->icrc_wrong_cnt++;
	else
		flow_add(flow_of(s, p), p);
}

uint64_t summary_cnt(const struct summary *s, enum verdict verdict)
{
	return s->verdict_cnt[verdict];
}

static void print_totals(const struct summary *s)
{
	static const char *const labels[VERDICT_CNT] = {
		[VERDICT_OK] = "RoCE, ICRC right",	 [VERDICT_ICRC_WRONG] = "RoCE, ICRC wrong",
		[VERDICT_MALFORMED] = "RoCE, malformed", [VERDICT_CUT] = "cut by the capture",
		[VERDICT_NOT_ROCE] = "not RoCE",
	};

	printf("%-24s %12s\n", "packets", "count");
	for (unsigned v = 0; v < VERDICT_CNT; v++)
		printf("%-24s %12" PRIu64 "\n", labels[v], s->verdict_cnt[v]);
}

static void print_opcodes(const struct summary *s)
{
	printf("\n%-24s %12s %15s %10s\n", "opcode", "packets", "payload bytes", "ICRC wrong");
	for (unsigned op = 0; op < 256; op++) {
		const struct per_opcode *c = &s->per_opcode[op];

		if (c->packet_cnt)
			printf("%-24s %12" PRIu64 " %15" PRIu64 " %10" PRIu64 "\n",
			       ur_opcodes[op].name, c->packet_cnt, c->payload_bytes,
			       c->icrc_wrong_cnt);
	}
}

static const char *transport_name(uint32_t transport)
{
	switch (transport) {
	case UR_TRANSPORT_RC:
		return "RC";
	case UR_TRANSPORT_UC:
		return "UC";
	case UR_TRANSPORT_UD:
		return "UD";
	case UR_TRANSPORT_EXT:
		return "EXT";
	default:
		return "CNP";
	}
}

static void print_flow(const struct flow *f)
{
	char psns[32] = "-";

	if (f->request_cnt)
		snprintf(psns, sizeof(psns), "%" PRIu32 "..%" PRIu32, f->first.v, f->newest.v);
	printf("  %-4s qpn 0x%-8" PRIx32 " %9" PRIu64 " %14" PRIu64 " %20s %7" PRIu64 " %6" PRIu64
	       " %6" PRIu64 "\n",
	       transport_name(f->key.transport), f->key.dqpn, f->packet_cnt, f->payload_bytes, psns,
	       f->again_cnt, f->nak_cnt, f->rnr_cnt);
}

static void print_flows(const struct summary *s)
{
	struct flow_tree flows = s->flows;
	const struct flow *before = NULL;
	struct flow *f;

	printf("\nflows: sender > receiver\n  %-17s %9s %14s %20s %7s %6s %6s\n", "to", "packets",
	       "payload bytes", "request PSNs", "again", "NAK", "RNR");
	RB_FOREACH(f, flow_tree, &flows)
	{
		char src[64], dst[64];

		if (!before || !ur_gid_eq(&before->key.src, &f->key.src) ||
		    !ur_gid_eq(&before->key.dst, &f->key.dst)) {
			ur_print_gid(src, sizeof(src), &f->key.src);
			ur_print_gid(dst, sizeof(dst), &f->key.dst);
			printf("%s > %s\n", src, dst);
		}
		print_flow(f);
		before = f;
	}
}

void summary_print(const struct summary *s)
{
	print_totals(s);
	print_opcodes(s);
	print_flows(s);
}
