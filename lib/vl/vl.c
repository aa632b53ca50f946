/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include "vl/vl.h"

enum side { LOW, HIGH }; /* index of a table */

#define UNIT_SHIFT_IBA 6  /* unit of weights: 64 bytes */
#define LIMIT_SHIFT    12 /* unit of the limit: 4096 bytes */
#define LIMIT_NONE     255
#define WEIGHT_DEFAULT 64
#define VL_OF_SL15     7
#define USED_MAX       (INT32_C(1) << 30) /* more than any low entry allows */

_Static_assert((INT64_C(255) * 255 << LIMIT_SHIFT) < USED_MAX, "law at its largest");

/* ---- attributes ---- */

void ur_vl_attr_default(struct ur_vl_attr *a)
{
	*a = (struct ur_vl_attr){.mode = UR_VL_IBA, .low_cnt = UR_VL_CNT, .mtu_shift = 12};
	for (uint8_t i = 0; i < UR_VL_CNT; i++) {
		a->low[i] = (struct ur_vl_entry){.vl = i, .weight = WEIGHT_DEFAULT};
		a->sl2vl[i] = i;
	}
	a->sl2vl[15] = VL_OF_SL15;
}

/* Mask of the lanes with weight; all ones if an entry names a lane that does not exist. */
static uint32_t lanes_of(const struct ur_vl_entry *entry, unsigned cnt)
{
	uint32_t lanes = 0;

	for (unsigned i = 0; i < cnt; i++) {
		if (entry[i].vl >= UR_VL_CNT)
			return UINT32_MAX;
		if (entry[i].weight)
			lanes |= 1u << entry[i].vl;
	}
	return lanes;
}

/* VL-ATTR-01 */
const char *ur_vl_attr_check(const struct ur_vl_attr *a)
{
	uint32_t high, low, mapped = 0;

	if (a->mode != UR_VL_IBA && a->mode != UR_VL_MEASURED && a->mode != UR_VL_STRICT)
		return "the mode of arbitration is unknown";
	if (a->mtu_shift < 8 || a->mtu_shift > 12)
		return "the path MTU is none of 256, 512, 1024, 2048 and 4096";
	if (a->high_cnt > UR_VL_ENTRIES)
		return "the high table has more than 64 entries";
	if (a->low_cnt > UR_VL_ENTRIES)
		return "the low table has more than 64 entries";
	high = lanes_of(a->high, a->high_cnt);
	if (high == UINT32_MAX)
		return "the high table names a VL that is not in 0 to 14";
	low = lanes_of(a->low, a->low_cnt);
	if (low == UINT32_MAX)
		return "the low table names a VL that is not in 0 to 14";
	if (!(high | low))
		return "no VL has a weight above 0";
	for (unsigned sl = 0; sl < 16; sl++) {
		if (a->sl2vl[sl] > 15)
			return "an SL is mapped to a VL that is not in 0 to 15";
		mapped |= 1u << a->sl2vl[sl];
	}
	if (!(mapped & (high | low)))
		return "no SL is mapped to a VL that has a weight above 0";
	return NULL;
}

static void table_init(struct ur_vl_table *t, const struct ur_vl_entry *entry, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		if (!entry[i].weight)
			continue;
		t->entry[t->cnt] = entry[i];
		t->of[entry[i].vl] |= UINT64_C(1) << t->cnt;
		t->lanes |= (uint16_t)(1u << entry[i].vl);
		t->cnt++;
	}
	/* The search starts after `at`, so the first turn goes to entry 0. */
	t->at = t->cnt ? (uint8_t)(t->cnt - 1) : 0;
}

void ur_vl_init(struct ur_vl *v, const struct ur_vl_attr *a)
{
	bool unlimited = a->mode != UR_VL_IBA || a->high_limit == LIMIT_NONE;

	UR_ASSERT(!ur_vl_attr_check(a));
	*v = (struct ur_vl){.mode = (uint8_t)a->mode, .mtu_shift = a->mtu_shift};
	v->unit_shift = a->mode == UR_VL_MEASURED ? a->mtu_shift : UNIT_SHIFT_IBA;
	/* Any packet uses up a limit of one byte. */
	v->limit = a->high_limit ? a->high_limit << LIMIT_SHIFT : 1;
	if (unlimited)
		v->limit = INT32_MAX;
	v->limit_left = v->limit;
	v->due_unit = a->high_limit ? a->high_limit << LIMIT_SHIFT : 1 << a->mtu_shift;
	table_init(&v->table[HIGH], a->high, a->high_cnt);
	table_init(&v->table[LOW], a->low, a->low_cnt);
	v->served = v->table[0].lanes | v->table[1].lanes;
	for (unsigned sl = 0; sl < 16; sl++) {
		uint8_t vl = a->sl2vl[sl]; /* 15 is never served */

		v->sl[sl] = v->served >> vl & 1 ? (int8_t)vl : -1;
	}
}

uint16_t ur_vl_attr_served_sls(const struct ur_vl_attr *a)
{
	struct ur_vl v;
	uint16_t sls = 0;

	ur_vl_init(&v, a);
	for (unsigned sl = 0; sl < 16; sl++)
		if (ur_vl_of_sl(&v, sl) >= 0)
			sls |= (uint16_t)(1u << sl);
	return sls;
}

static int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* ---- one table ---- */

static const struct ur_vl_entry *current(const struct ur_vl_table *t)
{
	return &t->entry[t->at];
}

/* True if the turn of the current entry is not over and its lane is ready. */
static bool can_continue(const struct ur_vl_table *t, uint16_t ready)
{
	return t->credit > 0 && ready >> current(t)->vl & 1;
}

static int32_t turn_bytes(const struct ur_vl *v, const struct ur_vl_table *t, unsigned at)
{
	return t->entry[at].weight << v->unit_shift;
}

/* The next entry with a lane in `ready`, which is not 0 and a subset of t->lanes. */
static unsigned next_entry(const struct ur_vl_table *t, uint16_t ready)
{
	uint64_t can = 0, behind;

	for (uint32_t rest = ready; rest; rest &= rest - 1)
		can |= t->of[__builtin_ctz(rest)];
	behind = can & ~((UINT64_C(2) << t->at) - 1);
	return (unsigned)__builtin_ctzll(behind ? behind : can);
}

static void owe(struct ur_vl *v, unsigned vl, int32_t bytes)
{
	v->debt[vl] = least(v->debt[vl] + bytes, UR_VL_DEBT_MAX);
}

static void begin(struct ur_vl *v, struct ur_vl_table *t, unsigned at)
{
	if (v->mode == UR_VL_MEASURED && t->credit < 0)
		owe(v, current(t)->vl, -t->credit);
	t->at = (uint8_t)at;
	t->credit = turn_bytes(v, t, at);
}

/* VL-TURN-01: makes the current entry one that can send. */
static void advance(struct ur_vl *v, struct ur_vl_table *t, uint16_t ready)
{
	if (!can_continue(t, ready))
		begin(v, t, next_entry(t, ready));
}

/* ---- between the tables: `hi` and `lo` are the ready lanes of each ---- */

/* Accounts for `bytes` that the current entry of a table has sent, or paid as debt. */
static void book(struct ur_vl *v, enum side side, int32_t bytes)
{
	struct ur_vl_table *t = &v->table[side];

	t->credit -= bytes;
	if (side == HIGH) {
		v->limit_left -= v->limit == INT32_MAX ? 0 : bytes;
		return;
	}
	v->limit_left = v->limit; /* VL-LIMIT-01 */
	if (t->credit <= 0) {
		v->used = 0;
		v->low_turn = 0;
	}
}

/* Accounts for the charges since the last choice. */
static void book_charges(struct ur_vl *v)
{
	int32_t sent = v->start - v->left;

	v->start = v->left = 0;
	if (!sent)
		return;
	v->paid &= (uint16_t) ~(1u << v->vl);
	book(v, v->side, sent);
}

/* VL-LIMIT-01 */
static enum side side_iba(struct ur_vl *v, uint16_t hi, uint16_t lo)
{
	if (hi && !lo && v->limit_left <= 0)
		v->limit_left = v->limit;
	if (hi && v->limit_left > 0) {
		advance(v, &v->table[HIGH], hi);
		return HIGH;
	}
	advance(v, &v->table[LOW], lo);
	return LOW;
}

/* Between two high turns: true if the low entry that is due allows another one of `bytes`. */
static bool high_fits(struct ur_vl *v, int32_t bytes, uint16_t lo)
{
	struct ur_vl_table *low = &v->table[LOW];

	if (!lo || !v->used)
		return true;
	advance(v, low, lo);
	return v->used + bytes <= current(low)->weight * v->due_unit;
}

/* VL-LAW-01 */
static enum side side_measured(struct ur_vl *v, uint16_t hi, uint16_t lo)
{
	struct ur_vl_table *high = &v->table[HIGH], *low = &v->table[LOW];

	if (v->low_turn && !can_continue(low, lo)) {
		v->low_turn = 0;
		/* VL-FAIR-01: another low lane does not inherit the turn. */
		if (lo) {
			low->credit = 0;
			v->used = 0;
		}
	}
	if (hi && !v->low_turn && !can_continue(high, hi)) {
		unsigned next = next_entry(high, hi);
		int32_t bytes = turn_bytes(v, high, next);

		if (high_fits(v, bytes, lo)) {
			v->used = least(v->used + bytes, USED_MAX);
			begin(v, high, next);
		} else {
			v->low_turn = 1;
		}
	}
	if (hi && !v->low_turn)
		return HIGH;
	advance(v, low, lo);
	return LOW;
}

/*
 * VL-AHEAD-02: instead of sending up to `bytes`, a lane with debt pays, in whole packets. After
 * that it must send before it pays again. Returns the bytes paid.
 */
static int32_t pay_debt(struct ur_vl *v, unsigned vl, int32_t bytes)
{
	int32_t mtu = 1 << v->mtu_shift, whole = (bytes + mtu - 1) & -mtu;
	int32_t paid = least(v->debt[vl] & -mtu, whole);

	if (!paid || v->paid >> vl & 1)
		return 0;
	v->paid |= (uint16_t)(1u << vl);
	v->debt[vl] -= paid;
	return paid;
}

/* Returns the bytes that the lane chosen may send, or 0 if it has used its turn to pay debt. */
static int32_t try_once(struct ur_vl *v, uint16_t hi, uint16_t lo)
{
	bool measured = v->mode == UR_VL_MEASURED;
	enum side side = measured ? side_measured(v, hi, lo) : side_iba(v, hi, lo);
	const struct ur_vl_table *t = &v->table[side];
	int32_t bytes = t->credit, paid;

	if (side == HIGH)
		bytes = least(bytes, v->limit_left);
	/* High lanes have used up their limit: the low lane may send one packet. */
	if (side == LOW && hi && !measured)
		bytes = 1;
	v->side = (uint8_t)side;
	v->vl = current(t)->vl;
	paid = pay_debt(v, v->vl, bytes);
	if (!paid)
		return bytes;
	book(v, side, paid);
	return 0;
}

unsigned ur_vl_choose(struct ur_vl *v, uint16_t ready)
{
	uint16_t hi = ready & v->table[HIGH].lanes, lo = ready & v->table[LOW].lanes;
	int32_t bytes;

	UR_ASSERT(ready && !(ready & ~v->served));
	book_charges(v);
	do
		bytes = try_once(v, hi, lo);
	while (!bytes);
	v->bit = (uint16_t)(1u << v->vl);
	/* VL-WORK-01: a low lane yields to a high one at once, unless its turn is due. */
	v->keep = v->side == LOW && !v->low_turn ? v->bit | v->table[HIGH].lanes : v->bit;
	v->start = v->left = bytes;
	return v->vl;
}
