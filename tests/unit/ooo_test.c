/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "loss_memory.h"
#include "transport/loss/ooo.h"

static struct loss_memory memory;
static struct ur_ooo_pool pool;

/* A context for the whole window. */
static struct ur_ooo *context(void)
{
	return ur_ooo_take(&pool, NULL, ur_psn(0), UR_EXT_WINDOW - 1);
}

static void setup(void)
{
	loss_memory_init(&memory, 8, LOSS_SLAB);
	ur_ooo_pool_init(&pool, &memory.slabs, 64, UR_EXT_WINDOW, 3);
}

static void teardown(void)
{
	loss_memory_free(&memory);
}

TestSuite(ooo, .init = setup, .fini = teardown);

/* EXT-RESP-CONTEXT-01 */
Test(ooo, pool_gives_out_what_it_has_and_takes_it_back)
{
	struct ur_ooo *a, *b;
	unsigned cnt = 0;

	while ((a = context())) {
		cr_assert_eq(a->span, UR_EXT_WINDOW);
		b = a;
		cnt++;
	}
	cr_assert_geq(cnt, 6);
	cr_assert_eq(pool.held_cnt, cnt);
	ur_ooo_give(&pool, b);
	cr_assert_eq(pool.held_cnt, cnt - 1);
	cr_assert_eq(context(), b);
}

Test(ooo, context_comes_back_empty)
{
	struct ur_ooo *o = context();

	ur_ooo_defer(o, ur_psn(7), &(struct ur_ooo_deferred){0});
	cr_assert(ur_ooo_hold_room(&pool, o) && ur_ooo_room(&pool, o, ur_psn(5), 1));
	ur_ooo_hold(o, &(struct ur_ooo_held){.stamp = ur_stamp_of(1)});
	ur_ooo_written(o, ur_psn(7), (uint8_t *)o, 1);
	ur_ooo_give(&pool, o);
	o = context();
	cr_assert(!ur_ooo_is_deferred(o, ur_psn(7)));
	ur_ooo_validate(o, ur_psn(5));
	cr_assert_eq(o->deferred_cnt + o->held_cnt + o->range_cnt, 0);
}

/* EXT-OOO-SACK-01 */
Test(ooo, bitmap_says_what_came_beyond_epsn)
{
	struct ur_ooo *o = context();

	ur_ooo_defer(o, ur_psn(101), &(struct ur_ooo_deferred){0});
	ur_ooo_defer(o, ur_psn(103), &(struct ur_ooo_deferred){0});
	ur_ooo_defer(o, ur_psn(132), &(struct ur_ooo_deferred){0});
	cr_assert_eq(ur_ooo_sack(o, ur_psn(100), false).bytes, 4);
	cr_assert_eq(memcmp(o->sack, (uint8_t[]){0x05, 0, 0, 0x80}, 4), 0);
	ur_ooo_defer(o, ur_psn(133), &(struct ur_ooo_deferred){0});
	cr_assert_eq(ur_ooo_sack(o, ur_psn(100), false).bytes, 8);
	cr_assert_eq(memcmp(o->sack, (uint8_t[]){0x05, 0, 0, 0x80, 1, 0, 0, 0}, 8), 0);
}

/* EXT-OOO-SACK-01 */
Test(ooo, bitmap_is_right_wherever_the_window_lies)
{
	static const uint32_t ahead[] = {1, 2, 63, 64, 65, 700, 2046, 2047};

	for (uint32_t epsn = UR_PSN_MASK - 3000; epsn < UR_PSN_MASK + 3000; epsn += 13) {
		struct ur_ooo *o = context();
		uint32_t bytes;

		for (unsigned i = 0; i < 8; i++)
			ur_ooo_defer(o, ur_psn(epsn + ahead[i]), &(struct ur_ooo_deferred){0});
		bytes = ur_ooo_sack(o, ur_psn(epsn), false).bytes;
		cr_assert_eq(bytes, UR_SACK_BYTES);
		for (uint32_t i = 0, n = 0; i < bytes * 8; i++) {
			bool want = n < 8 && i + 1 == ahead[n];

			n += want;
			cr_assert_eq(ur_sack_bit(o->sack, i), want, "ePSN %u, bit %u", epsn, i);
		}
		ur_ooo_give(&pool, o);
	}
}

/* ---- memory ---- */

static uint8_t mem[8192], src[4096];

/* Writes in the same way as the responder. */
static void put(struct ur_ooo *o, uint32_t psn, uint32_t from, uint32_t len)
{
	if (!ur_ooo_write(o, ur_psn(psn), mem + from, src, len))
		memcpy(mem + from, src, len);
}

/* Checks which bytes of mem[0, len) have been written. */
static void expect_written(uint32_t len, const char *map)
{
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(mem[i] == 1, map[i] == 'x', "byte %u", i);
}

static void wrote(struct ur_ooo *o, uint32_t psn, uint32_t from, uint32_t len)
{
	cr_assert(ur_ooo_room(&pool, o, ur_psn(0), 1));
	ur_ooo_written(o, ur_psn(psn), mem + from, len);
	ur_ooo_defer(o, ur_psn(psn), &(struct ur_ooo_deferred){0});
}

/* EXT-OOO-CLIP-01 */
Test(ooo, write_spares_what_younger_packets_wrote)
{
	struct ur_ooo *o = context();

	memset(src, 1, sizeof(src));
	wrote(o, 20, 2, 3);
	wrote(o, 22, 8, 4);
	wrote(o, 5, 0, 16);
	put(o, 10, 0, 10);
	expect_written(16, "xx...xxx........");
}

/* EXT-OOO-CLIP-01 */
Test(ooo, write_of_the_youngest_is_whole)
{
	struct ur_ooo *o = context();

	memset(src, 1, sizeof(src));
	wrote(o, 20, 2, 3);
	cr_assert(!ur_ooo_write(o, ur_psn(21), mem, src, 8));
	put(o, 21, 0, 8);
	expect_written(9, "xxxxxxxx.");
}

Test(ooo, write_of_nothing_writes_nothing)
{
	struct ur_ooo *o = context();

	memset(src, 1, sizeof(src));
	wrote(o, 20, 0, 8);
	cr_assert(!ur_ooo_write(o, ur_psn(10), mem + 4, src, 0));
	expect_written(8, "........");
}

/* EXT-OOO-CLIP-01 */
Test(ooo, clipping_agrees_with_a_byte_by_byte_oracle)
{
	static uint32_t owner[sizeof(mem)]; /* newest PSN that wrote the byte; 0: none */
	static uint8_t want[sizeof(mem)];

	srand(1);
	for (unsigned round = 0; round < 300; round++) {
		struct ur_ooo *o = context();
		uint32_t psn, from, len;

		memset(owner, 0, sizeof(owner));
		for (unsigned i = 0; i < 60; i++) {
			psn = 1 + (unsigned)rand() % 2000;
			from = (unsigned)rand() % 4096;
			len = 1 + (unsigned)rand() % (i & 1 ? 4096 : 90);
			if (ur_ooo_is_deferred(o, ur_psn(psn)))
				continue;
			for (uint32_t b = from; b < from + len; b++)
				owner[b] = psn > owner[b] ? psn : owner[b];
			wrote(o, psn, from, len);
			ur_ooo_validate(o, ur_psn(0));
		}
		do
			psn = (unsigned)rand() % 2040;
		while (psn && ur_ooo_is_deferred(o, ur_psn(psn)));
		from = (unsigned)rand() % 4096;
		len = (unsigned)rand() % 4097;
		for (uint32_t b = 0; b < sizeof(mem); b++)
			mem[b] = want[b] = 0xee;
		for (uint32_t b = 0; b < len; b++) {
			src[b] = (uint8_t)(b * 7);
			if (owner[from + b] <= psn)
				want[from + b] = src[b];
		}
		put(o, psn, from, len);
		cr_assert_eq(memcmp(mem, want, sizeof(mem)), 0, "round %u", round);
		ur_ooo_give(&pool, o);
	}
}

/* EXT-OOO-RANGE-01 */
Test(ooo, packets_of_a_message_merge_in_whatever_order)
{
	static const uint32_t order[][4] = {
		{10, 11, 12, 13}, {13, 12, 11, 10}, {11, 13, 10, 12}, {10, 12, 13, 11}};

	for (unsigned i = 0; i < 4; i++) {
		struct ur_ooo *o = context();

		for (unsigned k = 0; k < 4; k++)
			wrote(o, order[i][k], (order[i][k] - 10) * 256, 256);
		cr_assert_eq(o->range_cnt, 1);
		cr_assert_eq(o->range[0].hi - o->range[0].lo, 1024);
		cr_assert(o->range[0].first.v == 10 && o->range[0].last.v == 13);
		ur_ooo_give(&pool, o);
	}
}

/* EXT-OOO-RANGE-01 */
Test(ooo, neighbours_in_memory_with_a_gap_between_their_psns_stay_apart)
{
	struct ur_ooo *o = context();

	memset(src, 1, sizeof(src));
	wrote(o, 10, 0, 4);
	wrote(o, 12, 4, 4);
	cr_assert_eq(o->range_cnt, 2);
	put(o, 11, 0, 8);
	expect_written(8, "xxxx....");
}

#define PART  256
#define PARTS 16

/* EXT-OOO-RANGE-03 */
Test(ooo, messages_that_follow_each_other_to_one_place_leave_one_range)
{
	struct ur_ooo *o = context();

	for (uint32_t psn = 1; psn <= 40 * PARTS; psn++)
		wrote(o, psn + (psn - 1) / PARTS, (psn - 1) % PARTS * PART, PART);
	ur_ooo_validate(o, ur_psn(0));
	cr_assert_eq(o->range_cnt, 1);
	cr_assert(o->range[0].first.v == 40 * PARTS + 39 - PARTS + 1 &&
		  o->range[0].last.v == 40 * PARTS + 39);
}

/* Where packet i goes: each third message lies half a message further. */
static uint32_t place_of(uint32_t i)
{
	return (i / PARTS % 3 == 0) * PARTS * PART / 2 + i % PARTS * PART;
}

/* EXT-OOO-RANGE-03, EXT-OOO-CLIP-01: packets of messages to two places; what is missing comes late, in any order. */
Test(ooo, late_packets_spare_what_younger_messages_wrote)
{
	static uint32_t owner[sizeof(mem)], late[20 * PARTS];

	srand(2);
	memset(src, 1, sizeof(src));
	for (unsigned round = 0; round < 200; round++) {
		struct ur_ooo *o = context();
		unsigned cnt = 0;

		memset(owner, 0, sizeof(owner));
		for (uint32_t i = 0; i < 20 * PARTS; i++) {
			uint32_t at = place_of(i);

			if (rand() % 8 == 0) {
				late[cnt++] = i;
				continue;
			}
			for (uint32_t b = at; b < at + PART; b++)
				owner[b] = i + 1;
			wrote(o, i + 1, at, PART);
			ur_ooo_validate(o, ur_psn(0));
		}
		while (cnt) {
			unsigned pick = (unsigned)rand() % cnt;
			uint32_t i = late[pick], at = place_of(i);

			late[pick] = late[--cnt];
			memset(mem, 0, sizeof(mem));
			put(o, i + 1, at, PART);
			for (uint32_t b = 0; b < sizeof(mem); b++)
				cr_assert_eq(mem[b], b >= at && b < at + PART && owner[b] < i + 1,
					     "round %u, PSN %u, byte %u", round, i + 1, b);
			for (uint32_t b = at; b < at + PART; b++)
				owner[b] = owner[b] < i + 1 ? i + 1 : owner[b];
			wrote(o, i + 1, at, PART);
			ur_ooo_validate(o, ur_psn(0));
		}
		ur_ooo_give(&pool, o);
	}
}

/* EXT-OOO-RANGE-02 */
Test(ooo, full_list_has_room_again_once_epsn_has_passed)
{
	struct ur_ooo *o = context();

	for (uint32_t i = 0; i < UR_OOO_RANGES; i++) {
		cr_assert(ur_ooo_room(&pool, o, ur_psn(0), 1));
		wrote(o, 10 + i, i * 2, 1);
	}
	cr_assert(!ur_ooo_room(&pool, o, ur_psn(0), 1));
	cr_assert(!ur_ooo_room(&pool, o, ur_psn(10), 1));
	cr_assert(ur_ooo_room(&pool, o, ur_psn(11), 1));
	cr_assert(!ur_ooo_room(&pool, o, ur_psn(11), 2));
	cr_assert(ur_ooo_room(&pool, o, ur_psn(15), 5));
}

Test(ooo, held_requests_have_places_of_their_own)
{
	struct ur_ooo *o = context();
	bool seen[UR_OOO_HELD] = {false};
	unsigned i;

	for (unsigned k = 0; k < UR_OOO_HELD; k++) {
		cr_assert(ur_ooo_hold_room(&pool, o));
		i = ur_ooo_hold(o, &(struct ur_ooo_held){.stamp = ur_stamp_of(k)});
		cr_assert(i < UR_OOO_HELD && !seen[i] && o->held[i].stamp.v == k);
		seen[i] = true;
	}
	cr_assert(!ur_ooo_hold_room(&pool, o));
	ur_ooo_release(o, 77);
	cr_assert_eq(ur_ooo_hold(o, &(struct ur_ooo_held){.stamp = ur_stamp_of(5)}), 77);
}
