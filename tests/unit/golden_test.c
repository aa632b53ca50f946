/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "golden.h"
#include "wire/icrc.h"

/* The decoder's verdicts for a set of packets. */
struct verdicts {
	size_t by_drop[UR_DROP_CNT];
	size_t icrc_wrong_cnt;
};

static bool is_corrupt_file(const struct golden_file *file)
{
	return strncmp(file->name, "rc_corrupt_", 11) == 0;
}

static void judge(const struct golden_file *file, struct verdicts *v)
{
	for (size_t i = 0; i < file->cnt; i++) {
		const struct golden_packet *g = &file->packets[i];
		struct ur_packet p;
		enum ur_drop drop = ur_packet_decode(g->b, g->len, &p);

		v->by_drop[drop]++;
		if (drop == UR_DROP_NONE && !ur_icrc_ok(g->b, &p))
			v->icrc_wrong_cnt++;
	}
}

static void judge_intact(const struct golden_file *file, void *arg)
{
	if (!is_corrupt_file(file))
		judge(file, arg);
}

Test(golden, every_packet_decodes_and_its_icrc_verifies)
{
	struct verdicts v = {.icrc_wrong_cnt = 0};

	cr_assert_eq(golden_each(judge_intact, &v), 31);
	cr_assert_eq(v.by_drop[UR_DROP_NONE], 3589);
	cr_assert_eq(v.icrc_wrong_cnt, 0);
	cr_assert_eq(v.by_drop[UR_DROP_NOT_ROCE], 10, "the ARP of the cm files");
	for (unsigned drop = 0; drop < UR_DROP_CNT; drop++)
		if (drop != UR_DROP_NONE && drop != UR_DROP_NOT_ROCE)
			cr_assert_eq(v.by_drop[drop], 0, "%s", ur_drop_name(drop));
}

static void encode_again(const struct golden_file *file, void *arg)
{
	size_t *decoded_cnt = arg;
	uint8_t again[16384];

	for (size_t i = 0; i < file->cnt; i++) {
		const struct golden_packet *g = &file->packets[i];
		struct ur_packet p;

		if (ur_packet_decode(g->b, g->len, &p) != UR_DROP_NONE)
			continue;
		++*decoded_cnt;
		cr_assert_eq(ur_packet_encode(&p, again, sizeof(again)), p.frame_len,
			     "%s packet %zu", file->name, i + 1);
		cr_assert_arr_eq(again, g->b, p.frame_len, "%s packet %zu", file->name, i + 1);
	}
}

Test(golden, every_packet_encodes_to_the_same_bytes)
{
	size_t decoded_cnt = 0;

	golden_each(encode_again, &decoded_cnt);
	cr_assert_eq(decoded_cnt, 3589 + 387);
}

Test(golden, corrupted_packets_are_found_and_no_others)
{
	struct golden_file file = golden_load("rc_corrupt_v4_mtu1024.pcap");
	struct verdicts v = {.icrc_wrong_cnt = 0};

	judge(&file, &v);
	cr_assert_eq(file.cnt, 391);
	cr_assert_eq(v.by_drop[UR_DROP_NONE], 387);
	cr_assert_eq(v.icrc_wrong_cnt, 13);
	cr_assert_eq(v.by_drop[UR_DROP_IP_HEADER], 3);
	cr_assert_eq(v.by_drop[UR_DROP_OPCODE], 1);
	golden_free(&file);
}

static bool is_right(const struct golden_packet *g)
{
	struct ur_packet p;

	return ur_packet_decode(g->b, g->len, &p) == UR_DROP_NONE && ur_icrc_ok(g->b, &p);
}

static bool one_flipped_bit_makes_it_right(const struct golden_packet *g)
{
	for (size_t bit = 0; bit < g->len * 8; bit++) {
		bool right;

		g->b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		right = is_right(g);
		g->b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (right)
			return true;
	}
	return false;
}

Test(golden, each_corrupted_packet_is_one_bit_away_from_a_right_one)
{
	struct golden_file file = golden_load("rc_corrupt_v4_mtu1024.pcap");
	size_t wrong_cnt = 0;

	for (size_t i = 0; i < file.cnt; i++) {
		if (is_right(&file.packets[i]))
			continue;
		wrong_cnt++;
		cr_assert(one_flipped_bit_makes_it_right(&file.packets[i]), "packet %zu", i + 1);
	}
	cr_assert_eq(wrong_cnt, 17);
	golden_free(&file);
}

static void truncate_some(const struct golden_file *file, void *arg)
{
	size_t *cut_cnt = arg;

	for (size_t i = 0; i < file->cnt; i += 17) {
		const struct golden_packet *g = &file->packets[i];
		struct ur_packet p;

		if (ur_packet_decode(g->b, g->len, &p) != UR_DROP_NONE)
			continue;
		for (size_t len = 0; len < p.frame_len; len++) {
			uint8_t *cut = malloc(len ? len : 1);

			memcpy(cut, g->b, len);
			cr_assert_eq(ur_packet_decode(cut, len, &p), UR_DROP_TRUNCATED,
				     "%s packet %zu cut to %zu", file->name, i + 1, len);
			free(cut);
			++*cut_cnt;
		}
	}
}

Test(golden, every_truncation_is_refused_without_reading_beyond)
{
	size_t cut_cnt = 0;

	golden_each(truncate_some, &cut_cnt);
	cr_assert_gt(cut_cnt, 50000);
}
