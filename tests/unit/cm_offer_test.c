/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

/* The block with which two uroce endpoints agree on extended mode. */

static const struct ur_offer some = {
	.version = UR_OFFER_VERSION, .flags = UR_OFFER_EXTENDED | UR_OFFER_STRICT, .ports = 16};

/* CM-EXT-04 */
Test(cm_offer, the_bytes_on_the_wire_are_those_of_the_document)
{
	static const uint8_t want[UR_OFFER_BYTES] = {'u', 'r', 'o', 'c', 'e', 0, 0xab, 0x1e,
						     1,	  3,   16,  0,	 0,   0, 0,    0};
	uint8_t data[24];

	memset(data, 0x77, 8);
	ur_offer_put(data, sizeof(data), &some);
	cr_expect_arr_eq(data + 8, want, sizeof(want));
	cr_expect_eq(data[7], 0x77, "only the last 16 bytes are written");
}

/* CM-EXT-04, CM-ADM-01 */
Test(cm_offer, names_a_receive_pool_in_its_last_bytes)
{
	static const uint8_t want[8] = {1, 0x7d, 0, 5 << 3 | 3, 0x81, 0x82, 0x83, 0x84};
	struct ur_offer got, pool = {.version = UR_OFFER_VERSION,
				     .flags = UR_OFFER_EXTENDED | UR_OFFER_STATUS | UR_OFFER_POOL |
					      UR_OFFER_NOTIFY | UR_OFFER_PAPER | UR_OFFER_DELAY,
				     .tables = 3,
				     .wide = UR_OFFER_WIDE_MAX,
				     .pool = 0x81828384};
	uint8_t data[UR_OFFER_BYTES];

	ur_offer_put(data, sizeof(data), &pool);
	cr_expect_arr_eq(data + 8, want, sizeof(want));
	cr_assert(ur_offer_take(data, sizeof(data), &got));
	cr_expect_eq(got.flags, pool.flags);
	cr_expect_eq(got.tables, 3);
	cr_expect_eq(got.wide, 5);
	cr_expect_eq(got.pool, 0x81828384);
}

Test(cm_offer, decodes_to_what_was_encoded_and_leaves_zeros)
{
	static const uint8_t zeros[UR_OFFER_BYTES];
	uint8_t data[UR_CM_REQ_PRIVATE];
	struct ur_offer got;

	memset(data, 0x77, sizeof(data));
	ur_offer_put(data, sizeof(data), &some);
	cr_assert(ur_offer_take(data, sizeof(data), &got));
	cr_expect(got.version == some.version && got.flags == some.flags && got.ports == 16);
	cr_expect_arr_eq(data + sizeof(data) - 16, zeros, 16);
	cr_expect_eq(data[sizeof(data) - 17], 0x77);
	cr_expect_not(ur_offer_take(data, sizeof(data), &got), "it is gone");
}

Test(cm_offer, what_is_unknown_of_it_is_ignored)
{
	uint8_t data[UR_OFFER_BYTES];
	struct ur_offer got;

	ur_offer_put(data, sizeof(data), &some);
	data[8] = 200;	 /* a later version, which supports ours */
	data[9] |= 0x80; /* its flags */
	data[11] = 0xc0;
	cr_assert(ur_offer_take(data, sizeof(data), &got));
	cr_expect_eq(got.flags, some.flags);
	cr_expect_eq(got.version, 200);
	cr_expect_eq(got.tables, 0);
	cr_expect_eq(got.wide, 0);
	ur_offer_put(data, sizeof(data), &some);
	data[11] = 0x38;
	cr_assert(ur_offer_take(data, sizeof(data), &got));
	cr_expect_eq(got.wide, UR_OFFER_WIDE_MAX, "it takes in more than is known here");
}

/* CM-EXT-04 */
Test(cm_offer, any_wrong_bit_of_the_magic_makes_it_the_applications_data)
{
	uint8_t data[UR_OFFER_BYTES], before[UR_OFFER_BYTES];
	struct ur_offer got;

	for (unsigned bit = 0; bit < 64; bit++) {
		ur_offer_put(data, sizeof(data), &some);
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		memcpy(before, data, sizeof(data));
		cr_expect_not(ur_offer_take(data, sizeof(data), &got), "bit %u", bit);
		cr_expect_arr_eq(data, before, sizeof(data));
	}
	ur_offer_put(data, sizeof(data), &some);
	data[8] = 0;
	cr_expect_not(ur_offer_take(data, sizeof(data), &got), "there is no version 0");
}

/* CM-EXT-01 */
Test(cm_offer, wants_the_last_16_bytes_for_itself)
{
	cr_expect(ur_offer_fits(76, UR_CM_REQ_PRIVATE));
	cr_expect_not(ur_offer_fits(77, UR_CM_REQ_PRIVATE));
	cr_expect(ur_offer_fits(180, UR_CM_REP_PRIVATE));
	cr_expect_not(ur_offer_fits(181, UR_CM_REP_PRIVATE));
}

static struct pair *offered(uint8_t private_len, const uint8_t *private_data)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	attr.offer = &some;
	attr.private_data = private_data;
	attr.private_len = private_len;
	p->s[B].answer = &some;
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	return p;
}

/* CM-EXT-02, CM-EXT-03 */
Test(cm_offer, travels_in_req_and_rep_beside_the_applications_data)
{
	uint8_t data[76], zeros[16] = {0};
	struct pair *p;

	memset(data, 0x5a, sizeof(data));
	p = offered(sizeof(data), data);
	for (int i = A; i <= B; i++) {
		cr_assert(p->s[i].has_offer, "side %d", i);
		cr_expect_eq(p->s[i].offer.flags, some.flags);
		cr_expect_eq(p->s[i].offer.ports, some.ports);
	}
	cr_expect_arr_eq(p->s[B].req.private_data, data, 76);
	cr_expect_arr_eq(p->s[B].req.private_data + 76, zeros, 16, "the block is not data");
	cr_expect_arr_eq(p->s[A].rep.private_data, "rep", 3);
	cr_expect_arr_eq(p->s[A].rep.private_data + 180, zeros, 16);
	pair_free(p);
}

Test(cm_offer, that_has_no_room_is_refused_by_the_core)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	uint8_t data[77] = {0};
	struct ur_cm_id id;

	attr.offer = &some;
	attr.private_data = data;
	attr.private_len = sizeof(data);
	cr_expect_eq(ur_cm_connect(p->s[A].cm, NULL, &attr, p->now, &id), -EINVAL);
	cr_expect_eq(ur_cm_ids_in_use(p->s[A].cm), 0);
	pair_free(p);
}

/* CM-EXT-03 */
Test(cm_offer, survives_lost_and_repeated_messages)
{
	for (uint64_t drop = 0; drop < 8; drop++) {
		struct pair *p = pair_new(4);
		struct ur_cm_connect_attr attr = connect_attr(p, A);

		p->drop = drop;
		p->twice = ~drop;
		attr.offer = &some;
		p->s[B].answer = &some;
		pair_connect_attr(p, A, &attr);
		pair_pass(p, 2000 * MS);
		cr_expect(p->s[A].has_offer && p->s[B].has_offer, "drop %llu",
			  (unsigned long long)drop);
		pair_free(p);
	}
}

/* CM-EXT-05 */
Test(cm_offer, of_a_peer_that_makes_none_is_none)
{
	struct pair *p = pair_new(4);

	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect(!p->s[A].has_offer && !p->s[B].has_offer);
	pair_free(p);
}

/* CM-EXT-04 */
Test(cm_offer, an_answer_of_another_version_is_none)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	struct ur_offer later = {.version = UR_OFFER_VERSION + 1, .flags = UR_OFFER_EXTENDED};

	attr.offer = &some;
	p->s[B].answer = &later;
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	cr_expect(p->s[B].has_offer && !p->s[A].has_offer);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 1, "the connection stands all the same");
	pair_free(p);
}
