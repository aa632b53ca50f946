/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "print/out.h"
#include "print/print.h"
#include "wire/delay.h"

#define STAMP_NS (UINT64_C(1) << UR_STAMP_SHIFT)

/* Maximum number of ranges shown. The count before them covers the rest. */
#define RANGES_MAX 8

static const char *const classes[4] = {"none", "A", "B", "3"};

static void out_asth(struct ur_out *o, const struct ur_asth *x)
{
	static const char *const statuses[4] = {"NA", "A", "NB", "B"};

	ur_outf(o, " ASTH{%s generation %u room %u", statuses[x->status & 3], x->generation,
		x->room);
	if (x->queue_class)
		ur_outf(o, " class %s", classes[x->queue_class & 3]);
	ur_outf(o, "%s}", x->granted ? " granted" : "");
}

static void out_delay(struct ur_out *o, uint8_t hops, uint16_t code)
{
	if (hops == UR_DELAY_VOID)
		ur_outf(o, "void}");
	else
		ur_outf(o, "%" PRIu64 " ns in %u hops}", ur_delay_ns(code), hops);
}

/* What switches have stamped into the packet, if it asks them to. */
static void out_stamp(struct ur_out *o, const struct ur_packet *p)
{
	uint8_t bits = p->bth.resv6;

	if ((p->bth.opcode & UR_TRANSPORT_MASK) != UR_TRANSPORT_EXT || !(bits & UR_DELAY_ASK))
		return;
	ur_outf(o, " delay{");
	out_delay(o, bits & UR_DELAY_HOPS, p->udp_csum);
}

static void out_xth(struct ur_out *o, const struct ur_xth *x)
{
	static const struct {
		uint8_t flag;
		const char *name;
	} flags[] = {{UR_XTH_LAST_READ, "last"},
		     {UR_XTH_RETRY, "retry"},
		     {UR_XTH_TWICE, "twice"},
		     {UR_XTH_BACK, "back"}};

	ur_outf(o, " XTH{stamp %" PRIu32 " path %u ssn %" PRIu32 " offset %" PRIu32, x->stamp,
		x->path, x->ssn, x->offset);
	if (x->flags & UR_XTH_RECV)
		ur_outf(o, " receive %" PRIu32, x->rwqen);
	if (x->flags & UR_XTH_CLAIM)
		ur_outf(o, " claims %s", classes[x->flags >> UR_XTH_CLAIM_SHIFT & 3]);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (x->flags & flags[i].flag)
			ur_outf(o, " %s", flags[i].name);
	ur_outf(o, "}");
}

static void out_xaeth(struct ur_out *o, const struct ur_xaeth *x)
{
	ur_outf(o, " XAETH{echo %" PRIu32 " path %u residence %" PRIu64 " ns epsn %" PRIu32 "}",
		x->echo, x->path, x->residence * STAMP_NS, x->epsn.v);
}

/*
 * A bitmap seen as numbers [0, bits). Number 0 is ePSN, which is always missing if there is a
 * bitmap. Number i + 1 is bit i.
 */
struct sack {
	const uint8_t *map;
	uint32_t bits; /* end of the numbers: one past the last that arrived */
	uint32_t from; /* bit 0 is number from + 1 */
	struct ur_psn epsn;
};

static bool arrived(const struct sack *s, uint32_t i)
{
	return i > s->from && ur_sack_bit(s->map, i - s->from - 1);
}

static struct sack sack_of(const struct ur_packet *p)
{
	uint32_t bytes = p->payload_len < UR_SACK_BYTES ? p->payload_len : UR_SACK_BYTES;
	struct sack s = {.map = p->payload, .bits = bytes * 8 + 1, .epsn = p->xaeth.epsn};

	if (p->op & UR_OP_BPTH) {
		s.from = p->bpth.offset;
		s.bits += s.from;
	}
	while (s.bits > s.from && !arrived(&s, s.bits - 1))
		s.bits--;
	return s;
}

/* Appends the count and the ranges of the numbers that have arrived or not, as " 4: 7 10..12". */
static void out_ranges(struct ur_out *o, const struct sack *s, bool there)
{
	uint32_t cnt = 0, ranges = 0, begin = s->from ? s->from + 1 : 0;

	for (uint32_t i = begin; i < s->bits; i++)
		cnt += arrived(s, i) == there;
	ur_outf(o, " %" PRIu32 "%s", cnt, cnt ? ":" : "");
	for (uint32_t i = begin, first; i < s->bits; i++) {
		if (arrived(s, i) != there)
			continue;
		if (ranges++ == RANGES_MAX) {
			ur_outf(o, " ...");
			return;
		}
		for (first = i; i + 1 < s->bits && arrived(s, i + 1) == there; i++)
			;
		ur_outf(o, " %" PRIu32, ur_psn_add(s->epsn, first).v);
		if (i > first)
			ur_outf(o, "..%" PRIu32, ur_psn_add(s->epsn, i).v);
	}
}

static void out_sack(struct ur_out *o, const struct ur_packet *p)
{
	struct sack s = sack_of(p);

	ur_outf(o, " SACK{missing");
	out_ranges(o, &s, false);
	ur_outf(o, " arrived");
	out_ranges(o, &s, true);
	ur_outf(o, "}");
}

void ur_out_xth(struct ur_out *o, const struct ur_packet *p)
{
	out_stamp(o, p);
	if (p->op & UR_OP_XTH)
		out_xth(o, &p->xth);
}

void ur_out_xaeth(struct ur_out *o, const struct ur_packet *p)
{
	if (p->op & UR_OP_XAETH)
		out_xaeth(o, &p->xaeth);
	if (p->op & UR_OP_XRTH)
		ur_outf(o, " XRTH{ssn %" PRIu32 " offset %" PRIu32 "}", p->xrth.ssn,
			p->xrth.offset);
	if (p->op & UR_OP_ASTH)
		out_asth(o, &p->asth);
	if (p->op & UR_OP_NDTH) {
		ur_outf(o, " NDTH{");
		out_delay(o, p->ndth.hops, p->ndth.delay);
	}
	if (p->op & UR_OP_BPTH)
		ur_outf(o, " BPTH{offset %" PRIu32 "%s}", p->bpth.offset,
			p->bpth.flags & UR_BPTH_MORE ? " more" : "");
	if (p->op & UR_OP_POOL)
		ur_outf(o, " pool %" PRIu32, p->pool);
	if (p->op & UR_OP_XAETH && p->op & UR_OP_ACK && p->payload_len)
		out_sack(o, p);
}
