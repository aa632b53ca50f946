/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "transport/sgl.h"

#define PD	7
#define OTHER	8
#define PAGE	4096u
#define RW	IBV_ACCESS_LOCAL_WRITE
#define NO_SGES NULL, 0

static uint8_t memory[3 * PAGE];
static struct ur_mem *mem;
static uint32_t rw, ro; /* keys of the first and the second page; the third has none */

static void setup(void)
{
	void *table = NULL;

	cr_assert_eq(posix_memalign(&table, 64, ur_mem_size(4)), 0);
	mem = ur_mem_init(table, 4);
	cr_assert_eq(ur_mem_register(mem, PD, memory, PAGE, (uintptr_t)memory, RW,
				     UINT64_C(0x123456789abcdef0), &rw),
		     0);
	cr_assert_eq(ur_mem_register(mem, PD, memory + PAGE, PAGE, (uintptr_t)memory + PAGE, 0,
				     UINT64_C(0x0fedcba987654321), &ro),
		     0);
	memset(memory, '.', sizeof(memory));
}

static void teardown(void)
{
	free(mem);
}

TestSuite(sgl, .init = setup, .fini = teardown);

static struct ur_sge sge(unsigned at, uint32_t length, uint32_t lkey)
{
	return (struct ur_sge){(uintptr_t)memory + at, length, lkey};
}

static void expect_frag(const struct ur_tx *tx, unsigned i, unsigned at, uint32_t length)
{
	cr_expect_eq(tx->frag[i].base, memory + at, "fragment %u", i);
	cr_expect_eq(tx->frag[i].length, length, "fragment %u", i);
}

static void expect_untouched(void)
{
	for (unsigned i = 0; i < sizeof(memory); i++)
		cr_assert_eq(memory[i], '.', "byte %u", i);
}

Test(sgl, one_sge_gives_one_fragment)
{
	struct ur_sge list = sge(100, 1000, rw);
	struct ur_tx tx = {0};

	cr_assert(ur_sgl_gather(mem, PD, &list, 1, 0, 1000, &tx));
	cr_assert(ur_sgl_gather(mem, PD, &list, 1, 990, 10, &tx));
	cr_assert_eq(tx.frag_cnt, 2);
	expect_frag(&tx, 0, 100, 1000);
	expect_frag(&tx, 1, 1090, 10);
	cr_assert_eq(tx.payload_len, 0, "payload_len is the caller's");
}

Test(sgl, a_range_over_several_sges_gives_a_fragment_of_each)
{
	struct ur_sge list[] = {sge(0, 10, rw), sge(500, 0, 0), sge(PAGE, 20, ro),
				sge(200, 30, rw)};
	struct ur_tx tx = {0};

	cr_assert(ur_sgl_gather(mem, PD, list, 4, 5, 40, &tx));
	cr_assert_eq(tx.frag_cnt, 3);
	expect_frag(&tx, 0, 5, 5);
	expect_frag(&tx, 1, PAGE, 20);
	expect_frag(&tx, 2, 200, 15);
}

Test(sgl, a_range_may_begin_exactly_where_an_sge_begins)
{
	struct ur_sge list[] = {sge(0, 10, rw), sge(500, 0, 0), sge(PAGE, 20, ro)};
	struct ur_tx tx = {0};

	cr_assert(ur_sgl_gather(mem, PD, list, 3, 10, 20, &tx));
	cr_assert_eq(tx.frag_cnt, 1);
	expect_frag(&tx, 0, PAGE, 20);
}

Test(sgl, each_split_of_a_list_gathers_the_same_bytes)
{
	struct ur_sge list[] = {sge(7, 3, rw), sge(50, 1, rw), sge(PAGE + 9, 8, ro)};
	char want[13], got[13];

	for (unsigned i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + 1);
	memcpy(want, memory + 7, 3);
	memcpy(want + 3, memory + 50, 1);
	memcpy(want + 4, memory + PAGE + 9, 8);
	for (unsigned from = 0; from <= 12; from++)
		for (unsigned to = from; to <= 12; to++) {
			struct ur_tx tx = {0};
			unsigned n = 0;

			cr_assert(ur_sgl_gather(mem, PD, list, 3, from, to - from, &tx));
			for (unsigned i = 0; i < tx.frag_cnt; n += tx.frag[i++].length)
				memcpy(got + n, tx.frag[i].base, tx.frag[i].length);
			cr_assert_eq(n, to - from);
			cr_assert_eq(memcmp(got, want + from, n), 0, "[%u, %u)", from, to);
		}
}

Test(sgl, nothing_is_gathered_from_nothing)
{
	struct ur_tx tx = {0};
	struct ur_sge bad = sge(0, 0, 0);

	cr_assert(ur_sgl_gather(mem, PD, NO_SGES, 0, 0, &tx));
	cr_assert(ur_sgl_gather(mem, PD, &bad, 1, 0, 0, &tx));
	cr_assert_eq(tx.frag_cnt, 0);
	cr_assert_not(ur_sgl_gather(mem, PD, NO_SGES, 0, 1, &tx));
}

/* MEM-LKEY-01 */
Test(sgl, gathering_needs_a_key_that_covers_the_bytes)
{
	struct ur_sge wrong_key = sge(0, 10, rw ^ 0x5a5a0000), zero = sge(0, 10, 0);
	struct ur_sge past = sge(PAGE - 5, 10, rw), keyless = sge(2 * PAGE, 1, ro);
	struct ur_tx tx = {0};

	cr_expect_not(ur_sgl_gather(mem, PD, &wrong_key, 1, 0, 10, &tx));
	cr_expect_not(ur_sgl_gather(mem, PD, &zero, 1, 0, 10, &tx));
	cr_expect_not(ur_sgl_gather(mem, PD, &past, 1, 0, 10, &tx));
	cr_expect_not(ur_sgl_gather(mem, PD, &keyless, 1, 0, 1, &tx));
	cr_expect_eq(tx.frag_cnt, 0);
	cr_expect(ur_sgl_gather(mem, PD, &past, 1, 0, 5, &tx), "only the bytes asked for");
}

Test(sgl, another_domains_key_is_refused)
{
	struct ur_sge list = sge(0, 10, rw);
	struct ur_tx tx = {0};

	cr_expect_not(ur_sgl_gather(mem, OTHER, &list, 1, 0, 10, &tx));
	cr_expect_not(ur_sgl_scatter(mem, OTHER, &list, 1, 0, (const uint8_t *)"x", 1));
	expect_untouched();
}

Test(sgl, a_list_too_short_leaves_the_packet_as_it_was)
{
	struct ur_sge list[] = {sge(0, 10, rw), sge(20, 10, rw)};
	struct ur_tx tx = {.frag_cnt = 1};

	cr_expect_not(ur_sgl_gather(mem, PD, list, 2, 0, 21, &tx));
	cr_expect_not(ur_sgl_gather(mem, PD, list, 2, UINT32_MAX, 1, &tx));
	cr_expect_not(ur_sgl_gather(mem, PD, list, 1, 5, UINT32_MAX, &tx));
	cr_expect_eq(tx.frag_cnt, 1);
}

Test(sgl, a_packet_has_at_most_so_many_fragments)
{
	struct ur_sge list[UR_FRAGS_MAX + 1];
	struct ur_tx tx = {0};

	for (unsigned i = 0; i <= UR_FRAGS_MAX; i++)
		list[i] = sge(i, 1, rw);
	cr_expect_not(ur_sgl_gather(mem, PD, list, UR_FRAGS_MAX + 1, 0, UR_FRAGS_MAX + 1, &tx));
	cr_expect_eq(tx.frag_cnt, 0);
	cr_expect(ur_sgl_gather(mem, PD, list, UR_FRAGS_MAX + 1, 1, UR_FRAGS_MAX, &tx));
	cr_expect_eq(tx.frag_cnt, UR_FRAGS_MAX);
	cr_expect_not(ur_sgl_gather(mem, PD, list, 1, 0, 1, &tx));
	cr_expect_eq(tx.frag_cnt, UR_FRAGS_MAX);
}

Test(sgl, an_address_that_wraps_is_refused)
{
	struct ur_sge list = {UINT64_MAX - 4, 10, rw};
	struct ur_tx tx = {0};

	cr_expect_not(ur_sgl_gather(mem, PD, &list, 1, 0, 10, &tx));
	cr_expect_not(ur_sgl_gather(mem, PD, &list, 1, 5, 5, &tx));
}

Test(sgl, bytes_are_scattered_where_the_list_says_and_nowhere_else)
{
	struct ur_sge list[] = {sge(10, 3, rw), sge(0, 0, 0), sge(20, 2, rw), sge(30, 4, rw)};

	cr_assert(ur_sgl_scatter(mem, PD, list, 4, 1, (const uint8_t *)"abcdef", 6));
	cr_assert_eq(memcmp(memory + 10, ".ab..", 5), 0);
	cr_assert_eq(memcmp(memory + 19, ".cd.", 4), 0);
	cr_assert_eq(memcmp(memory + 29, ".ef..", 5), 0);
	memcpy(memory + 10, ".....", 5);
	memcpy(memory + 19, "....", 4);
	memcpy(memory + 29, ".....", 5);
	expect_untouched();
}

Test(sgl, a_single_sge_is_filled_to_its_end)
{
	struct ur_sge list = sge(PAGE - 4, 4, rw);

	cr_assert(ur_sgl_scatter(mem, PD, &list, 1, 0, (const uint8_t *)"wxyz", 4));
	cr_assert_eq(memcmp(memory + PAGE - 5, ".wxyz.", 6), 0);
}

Test(sgl, nothing_is_written_when_a_later_sge_may_not_be)
{
	struct ur_sge read_only[] = {sge(0, 4, rw), sge(PAGE, 4, ro)};
	struct ur_sge bad[] = {sge(0, 4, rw), sge(2 * PAGE, 4, rw)};
	struct ur_sge short_list[] = {sge(0, 4, rw), sge(8, 3, rw)};
	const uint8_t *src = (const uint8_t *)"12345678";

	cr_expect_not(ur_sgl_scatter(mem, PD, read_only, 2, 0, src, 8));
	cr_expect_not(ur_sgl_scatter(mem, PD, bad, 2, 0, src, 8));
	cr_expect_not(ur_sgl_scatter(mem, PD, short_list, 2, 0, src, 8));
	cr_expect_not(ur_sgl_scatter(mem, PD, read_only + 1, 1, 0, src, 4));
	expect_untouched();
	cr_expect(ur_sgl_scatter(mem, PD, read_only, 2, 0, src, 4), "the rest is not touched");
}

Test(sgl, nothing_is_scattered_to_nothing)
{
	cr_assert(ur_sgl_scatter(mem, PD, NO_SGES, 0, NULL, 0));
	cr_assert_not(ur_sgl_scatter(mem, PD, NO_SGES, 0, (const uint8_t *)"x", 1));
	expect_untouched();
}
