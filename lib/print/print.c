/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>

#include "print/out.h"
#include "print/print.h"
#include "wire/mad.h"

#define PKEY_DEFAULT 0xffff

static void out_aeth(struct ur_out *o, const struct ur_aeth *aeth)
{
	uint8_t value = aeth->syndrome & UR_SYNDROME_VALUE_MASK;

	ur_outf(o, "AETH{");
	switch (aeth->syndrome & UR_SYNDROME_KIND_MASK) {
	case UR_SYNDROME_ACK:
		if (value == UR_CREDITS_NONE)
			ur_outf(o, "ACK credits none");
		else
			ur_outf(o, "ACK credits %" PRIu32, ur_credits_decode(value));
		break;
	case UR_SYNDROME_RNR_NAK:
		ur_outf(o, "RNR NAK %.2f ms", (double)ur_rnr_timer_ns(value) / 1e6);
		break;
	case UR_SYNDROME_NAK:
		ur_outf(o, "NAK %s", ur_nak_name(value));
		break;
	default:
		ur_outf(o, "reserved syndrome 0x%02x", aeth->syndrome);
	}
	ur_outf(o, " msn %" PRIu32 "}", aeth->msn);
}

static void out_addresses(struct ur_out *o, const struct ur_packet *p)
{
	ur_outf(o, p->ip.v6 ? "[" : "");
	ur_out_gid(o, &p->ip.src);
	ur_outf(o, p->ip.v6 ? "]:%u > " : ":%u > ", p->sport);
	ur_out_gid(o, &p->ip.dst);
	if (p->has_vlan)
		ur_outf(o, " vlan %u prio %u", p->vlan_tci & 0xfff, p->vlan_tci >> 13);
	if (p->ip.tos)
		ur_outf(o, " dscp %u ecn %u", p->ip.tos >> 2, p->ip.tos & 3);
}

static void out_flags(struct ur_out *o, const struct ur_bth *bth)
{
	const struct {
		bool set;
		const char *name;
	} flags[] = {
		{bth->solicited, "SE"}, {bth->migreq, "M"},  {bth->ackreq, "A"},
		{bth->fecn, "FECN"},	{bth->becn, "BECN"},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].set) {
			ur_outf(o, "%s%s", any ? " " : " [", flags[i].name);
			any = true;
		}
	if (any)
		ur_outf(o, "]");
}

static void out_bth(struct ur_out *o, const struct ur_bth *bth)
{
	ur_outf(o, " %s qpn 0x%" PRIx32 " psn %" PRIu32, ur_opcodes[bth->opcode].name, bth->dqpn.v,
		bth->psn.v);
	out_flags(o, bth);
	if (bth->pkey != PKEY_DEFAULT)
		ur_outf(o, " pkey 0x%04x", bth->pkey);
}

static void out_atomiceth(struct ur_out *o, const struct ur_packet *p)
{
	const struct ur_atomiceth *a = &p->atomiceth;

	ur_outf(o, " AtomicETH{va 0x%" PRIx64 " rkey 0x%" PRIx32, a->va, a->rkey);
	if (p->bth.opcode == UR_RC_FETCH_ADD || p->bth.opcode == UR_EXT_FETCH_ADD)
		ur_outf(o, " add 0x%" PRIx64 "}", a->swap_add);
	else
		ur_outf(o, " swap 0x%" PRIx64 " compare 0x%" PRIx64 "}", a->swap_add, a->compare);
}

static void out_ext(struct ur_out *o, const struct ur_packet *p)
{
	if (p->op & UR_OP_DETH)
		ur_outf(o, " DETH{qkey 0x%" PRIx32 " sqpn 0x%" PRIx32 "}", p->deth.qkey,
			p->deth.sqpn.v);
	ur_out_xth(o, p);
	if (p->op & UR_OP_RETH)
		ur_outf(o, " RETH{va 0x%" PRIx64 " rkey 0x%" PRIx32 " len %" PRIu32 "}", p->reth.va,
			p->reth.rkey, p->reth.length);
	if (p->op & UR_OP_ATOMICETH)
		out_atomiceth(o, p);
	if (p->op & UR_OP_AETH) {
		ur_outf(o, " ");
		out_aeth(o, &p->aeth);
	}
	ur_out_xaeth(o, p);
	if (p->op & UR_OP_ATOMICACKETH)
		ur_outf(o, " AtomicAckETH{original 0x%" PRIx64 "}", p->atomic_ack);
	if (p->op & UR_OP_IMM)
		ur_outf(o, " ImmDt{0x%08" PRIx32 "}", p->imm);
	if (p->op & UR_OP_IETH)
		ur_outf(o, " IETH{rkey 0x%" PRIx32 "}", p->ieth);
}

size_t ur_print_packet(char *buf, size_t cap, const struct ur_packet *p, bool icrc_ok)
{
	struct ur_out o = ur_out(buf, cap);

	out_addresses(&o, p);
	out_bth(&o, &p->bth);
	out_ext(&o, p);
	if (p->op & UR_OP_DETH && p->bth.dqpn.v == UR_GSI_QPN) {
		ur_outf(&o, " ");
		o.len += ur_print_mad(o.buf + o.len, o.cap - o.len, p->payload, p->payload_len);
	}
	ur_outf(&o, " payload %u", p->payload_len);
	if (p->bth.pad)
		ur_outf(&o, " pad %u", p->bth.pad);
	if (icrc_ok)
		ur_outf(&o, " icrc ok");
	else
		ur_outf(&o, " ICRC WRONG 0x%08" PRIx32, p->icrc);
	return o.len;
}

size_t ur_print_gid(char *buf, size_t cap, const struct ur_gid *gid)
{
	struct ur_out o = ur_out(buf, cap);

	ur_out_gid(&o, gid);
	return o.len;
}

size_t ur_print_aeth(char *buf, size_t cap, const struct ur_aeth *aeth)
{
	struct ur_out o = ur_out(buf, cap);

	out_aeth(&o, aeth);
	return o.len;
}
