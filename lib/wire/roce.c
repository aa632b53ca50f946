/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/bytes.h"
#include "wire/roce.h"

/*
 * Each function takes its whole header from the cursor with one bounds check. If the header is
 * incomplete, neither the buffer nor the struct changes.
 */

#define BTH_SOLICITED 0x80
#define BTH_MIGREQ    0x40
#define BTH_PAD_SHIFT 4
#define BTH_TVER_MASK 0x0f
#define BTH_FECN      0x80
#define BTH_BECN      0x40
#define BTH_RESV6     0x3f
#define BTH_ACKREQ    0x80
#define BTH_RESV7     0x7f

/* WIRE-BTH-01 */
void ur_put_bth(struct ur_cursor *c, const struct ur_bth *bth)
{
	uint8_t *p = ur_take(c, UR_BTH_BYTES);

	if (!p)
		return;
	p[0] = bth->opcode;
	p[1] = (uint8_t)((bth->solicited ? BTH_SOLICITED : 0) | (bth->migreq ? BTH_MIGREQ : 0) |
			 (bth->pad & 3) << BTH_PAD_SHIFT | (bth->tver & BTH_TVER_MASK));
	ur_store16(p + 2, bth->pkey);
	p[4] = (uint8_t)((bth->fecn ? BTH_FECN : 0) | (bth->becn ? BTH_BECN : 0) |
			 (bth->resv6 & BTH_RESV6));
	ur_store24(p + 5, bth->dqpn.v);
	p[8] = (uint8_t)((bth->ackreq ? BTH_ACKREQ : 0) | (bth->resv7 & BTH_RESV7));
	ur_store24(p + 9, bth->psn.v);
}

void ur_get_bth(struct ur_cursor *c, struct ur_bth *bth)
{
	const uint8_t *p = ur_take(c, UR_BTH_BYTES);

	if (!p)
		return;
	bth->opcode = p[0];
	bth->solicited = p[1] & BTH_SOLICITED;
	bth->migreq = p[1] & BTH_MIGREQ;
	bth->pad = p[1] >> BTH_PAD_SHIFT & 3;
	bth->tver = p[1] & BTH_TVER_MASK;
	bth->pkey = ur_load16(p + 2);
	bth->fecn = p[4] & BTH_FECN;
	bth->becn = p[4] & BTH_BECN;
	bth->resv6 = p[4] & BTH_RESV6;
	bth->dqpn = ur_qpn(ur_load24(p + 5));
	bth->ackreq = p[8] & BTH_ACKREQ;
	bth->resv7 = p[8] & BTH_RESV7;
	bth->psn = ur_psn(ur_load24(p + 9));
}

void ur_put_reth(struct ur_cursor *c, const struct ur_reth *reth)
{
	uint8_t *p = ur_take(c, UR_RETH_BYTES);

	if (!p)
		return;
	ur_store64(p, reth->va);
	ur_store32(p + 8, reth->rkey);
	ur_store32(p + 12, reth->length);
}

void ur_get_reth(struct ur_cursor *c, struct ur_reth *reth)
{
	const uint8_t *p = ur_take(c, UR_RETH_BYTES);

	if (!p)
		return;
	reth->va = ur_load64(p);
	reth->rkey = ur_load32(p + 8);
	reth->length = ur_load32(p + 12);
}

void ur_put_aeth(struct ur_cursor *c, const struct ur_aeth *aeth)
{
	uint8_t *p = ur_take(c, UR_AETH_BYTES);

	if (!p)
		return;
	p[0] = aeth->syndrome;
	ur_store24(p + 1, aeth->msn);
}

void ur_get_aeth(struct ur_cursor *c, struct ur_aeth *aeth)
{
	const uint8_t *p = ur_take(c, UR_AETH_BYTES);

	if (!p)
		return;
	aeth->syndrome = p[0];
	aeth->msn = ur_load24(p + 1);
}

void ur_put_deth(struct ur_cursor *c, const struct ur_deth *deth)
{
	uint8_t *p = ur_take(c, UR_DETH_BYTES);

	if (!p)
		return;
	ur_store32(p, deth->qkey);
	p[4] = deth->resv;
	ur_store24(p + 5, deth->sqpn.v);
}

void ur_get_deth(struct ur_cursor *c, struct ur_deth *deth)
{
	const uint8_t *p = ur_take(c, UR_DETH_BYTES);

	if (!p)
		return;
	deth->qkey = ur_load32(p);
	deth->resv = p[4];
	deth->sqpn = ur_qpn(ur_load24(p + 5));
}

void ur_put_atomiceth(struct ur_cursor *c, const struct ur_atomiceth *atomic)
{
	uint8_t *p = ur_take(c, UR_ATOMICETH_BYTES);

	if (!p)
		return;
	ur_store64(p, atomic->va);
	ur_store32(p + 8, atomic->rkey);
	ur_store64(p + 12, atomic->swap_add);
	ur_store64(p + 20, atomic->compare);
}

void ur_get_atomiceth(struct ur_cursor *c, struct ur_atomiceth *atomic)
{
	const uint8_t *p = ur_take(c, UR_ATOMICETH_BYTES);

	if (!p)
		return;
	atomic->va = ur_load64(p);
	atomic->rkey = ur_load32(p + 8);
	atomic->swap_add = ur_load64(p + 12);
	atomic->compare = ur_load64(p + 20);
}

const char *ur_nak_name(uint8_t code)
{
	switch (code) {
#define X(name, value, text)                                                                       \
	case UR_NAK_##name:                                                                        \
		return text;
		UR_NAK_CODES(X)
#undef X
	default:
		return "reserved";
	}
}

/*
 * WIRE-AETH-02. Number of receives for each credit code (IBA 9.7.7.2, table "end-to-end flow
 * control credit encoding").
 */
static const uint16_t credits[UR_CREDITS_NONE] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

uint32_t ur_credits_decode(uint8_t code)
{
	code &= UR_SYNDROME_VALUE_MASK;
	return code == UR_CREDITS_NONE ? UINT32_MAX : credits[code];
}

uint8_t ur_credits_encode(uint32_t receives)
{
	unsigned log2;

	if (receives < 2)
		return (uint8_t)receives;
	if (receives >= credits[UR_CREDITS_NONE - 1])
		return UR_CREDITS_NONE - 1;
	/* There are two codes for each power of two: 2^n and 1.5 * 2^n. */
	log2 = 31 - (unsigned)__builtin_clz(receives);
	return (uint8_t)(2 * log2 + (receives >> (log2 - 1) & 1));
}

/* WIRE-AETH-03, in units of 10 us. */
static const uint32_t rnr_timers[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint64_t ur_rnr_timer_ns(uint8_t code)
{
	return (uint64_t)rnr_timers[code & UR_SYNDROME_VALUE_MASK] * 10000;
}
