/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/bytes.h"
#include "wire/ext.h"

#define LOW24 UINT32_C(0xffffff) /* 24-bit field after an 8-bit field in one 32-bit word */

void ur_put_xth(struct ur_cursor *c, const struct ur_xth *x)
{
	uint8_t *p = ur_take(c, UR_XTH_BYTES);

	if (!p)
		return;
	ur_store32(p, x->stamp);
	p[4] = x->path;
	ur_store24(p + 5, x->ssn);
	p[8] = x->flags;
	ur_store24(p + 9, x->offset);
	p[12] = x->tag;
	ur_store24(p + 13, x->rwqen);
}

void ur_get_xth(struct ur_cursor *c, struct ur_xth *x)
{
	const uint8_t *p = ur_take(c, UR_XTH_BYTES);

	if (!p)
		return;
	x->stamp = ur_load32(p);
	x->path = p[4];
	x->ssn = ur_load32(p + 4) & LOW24;
	x->flags = p[8];
	x->offset = ur_load32(p + 8) & LOW24;
	x->tag = p[12];
	x->rwqen = ur_load32(p + 12) & LOW24;
}

void ur_put_xaeth(struct ur_cursor *c, const struct ur_xaeth *x)
{
	uint8_t *p = ur_take(c, UR_XAETH_BYTES);

	if (!p)
		return;
	ur_store32(p, x->echo);
	ur_store32(p + 4, x->residence);
	p[8] = x->path;
	ur_store24(p + 9, x->epsn.v);
}

void ur_get_xaeth(struct ur_cursor *c, struct ur_xaeth *x)
{
	const uint8_t *p = ur_take(c, UR_XAETH_BYTES);

	if (!p)
		return;
	x->echo = ur_load32(p);
	x->residence = ur_load32(p + 4);
	x->path = p[8];
	x->epsn = ur_psn(ur_load32(p + 8));
}

void ur_put_xrth(struct ur_cursor *c, const struct ur_xrth *x)
{
	uint8_t *p = ur_take(c, UR_XRTH_BYTES);

	if (!p)
		return;
	p[0] = x->resv;
	ur_store24(p + 1, x->ssn);
	p[4] = x->resv2;
	ur_store24(p + 5, x->offset);
}

void ur_get_xrth(struct ur_cursor *c, struct ur_xrth *x)
{
	const uint8_t *p = ur_take(c, UR_XRTH_BYTES);

	if (!p)
		return;
	x->resv = p[0];
	x->ssn = ur_load32(p) & LOW24;
	x->resv2 = p[4];
	x->offset = ur_load32(p + 4) & LOW24;
}

void ur_put_asth(struct ur_cursor *c, const struct ur_asth *x)
{
	uint8_t *p = ur_take(c, UR_ASTH_BYTES);

	if (p)
		ur_store32(p, ur_asth_pack(x));
}

void ur_get_asth(struct ur_cursor *c, struct ur_asth *x)
{
	const uint8_t *p = ur_take(c, UR_ASTH_BYTES);

	if (!p)
		return;
	x->status = p[0] >> 6;
	x->queue_class = p[0] >> 4 & 3;
	x->granted = p[0] >> 3 & 1;
	x->resv = p[0] & 7;
	x->room = p[1];
	x->generation = ur_load16(p + 2);
}

void ur_put_ndth(struct ur_cursor *c, const struct ur_ndth *x)
{
	uint8_t *p = ur_take(c, UR_NDTH_BYTES);

	if (p)
		ur_store32(p, ur_ndth_pack(x));
}

void ur_get_ndth(struct ur_cursor *c, struct ur_ndth *x)
{
	const uint8_t *p = ur_take(c, UR_NDTH_BYTES);

	if (!p)
		return;
	x->hops = p[0] >> 3;
	x->resv = ur_load16(p) & 0x7ff;
	x->delay = ur_load16(p + 2);
}

void ur_put_bpth(struct ur_cursor *c, const struct ur_bpth *x)
{
	uint8_t *p = ur_take(c, UR_BPTH_BYTES);

	if (p)
		ur_store32(p, ur_bpth_pack(x));
}

void ur_get_bpth(struct ur_cursor *c, struct ur_bpth *x)
{
	const uint8_t *p = ur_take(c, UR_BPTH_BYTES);

	if (!p)
		return;
	x->flags = p[0];
	x->offset = ur_load32(p) & 0xffffff;
}
