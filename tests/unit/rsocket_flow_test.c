/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "rsocket/flow.h"

/* What rsockets say on the wire, and what a peer may say; without a queue pair. */

#define HALF 1000u

/* ---- words and offers ---- */

Test(rsocket_proto, a_word_has_its_kind_in_the_upper_three_bits)
{
	cr_expect_eq(ur_rs_word(UR_RS_DATA, 5), 5);
	cr_expect_eq(ur_rs_word(UR_RS_CREDIT, 384), 0x80000180);
	cr_expect_eq(ur_rs_word(UR_RS_MAP, 3), 0xc0000003);
	cr_expect_eq(ur_rs_word(UR_RS_CONTROL, UR_RS_SHUTDOWN), 0xe0000002);
	cr_expect_eq(ur_rs_kind(0xe0000000), UR_RS_CONTROL);
	cr_expect_eq(ur_rs_value(0xffffffff), UR_RS_VALUE_MAX);
}

static const struct ur_rs_offer some = {.has_maps = true,
					.credits = 384,
					.maps = 8,
					.targets = {0x1122334455667788, 0xaabbccdd, 2},
					.buffer = {0x0102030405060708, 0x090a0b0c, 65536}};

/* What Linux's librdmacm sends in its place, with other numbers. */
static const uint8_t bytes[UR_RS_OFFER_BYTES] = {
	1,    2,    0x01, 0x80, 0,    0,    0,	  8,	0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
	0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0,	  0,	0,    2,    0x01, 0x02, 0x03, 0x04,
	0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0,    1,    0,	  0};

/* RSOCKET-OFFER-01 */
Test(rsocket_proto, the_bytes_of_an_offer_are_those_of_the_document)
{
	uint8_t got[UR_RS_OFFER_BYTES];
	struct ur_rs_offer o;

	ur_rs_put_offer(got, &some);
	cr_expect_arr_eq(got, bytes, sizeof(bytes));
	cr_assert(ur_rs_get_offer(bytes, sizeof(bytes), &o));
	cr_expect(!o.big && o.has_maps && o.credits == 384 && o.maps == 8);
	cr_expect_eq(o.targets.addr, some.targets.addr);
	cr_expect_eq(o.targets.key, some.targets.key);
	cr_expect_eq(o.buffer.key, some.buffer.key);
	cr_expect_eq(o.buffer.bytes, 65536);
}

/* RSOCKET-OFFER-02 */
Test(rsocket_proto, an_offer_of_no_use_is_refused)
{
	struct ur_rs_offer o = {.credits = 77};
	uint8_t bad[UR_RS_OFFER_BYTES];

	for (size_t len = 0; len < sizeof(bytes); len++)
		cr_expect_not(ur_rs_get_offer(bytes, len, &o), "%zu bytes", len);
	memcpy(bad, bytes, sizeof(bad));
	bad[0] = 2;
	cr_expect_not(ur_rs_get_offer(bad, sizeof(bad), &o), "another version");
	bad[0] = 1;
	bad[2] = bad[3] = 0;
	cr_expect_not(ur_rs_get_offer(bad, sizeof(bad), &o), "no credits");
	bad[3] = 1;
	bad[23] = 0;
	cr_expect_not(ur_rs_get_offer(bad, sizeof(bad), &o), "an empty table of targets");
	cr_expect_eq(o.credits, 77, "and nothing is written");
}

Test(rsocket_proto, a_peer_that_does_not_say_so_has_no_table_of_maps)
{
	uint8_t old[UR_RS_OFFER_BYTES];
	struct ur_rs_offer o;

	memcpy(old, bytes, sizeof(old));
	old[1] = UR_RS_FLAG_BIG;
	cr_assert(ur_rs_get_offer(old, sizeof(old), &o));
	cr_expect(o.big && !o.maps);
}

Test(rsocket_proto, large_tables_are_told_in_units)
{
	cr_expect_eq(ur_rs_scale(128), 128);
	cr_expect_eq(ur_rs_unscale(ur_rs_scale(100)), 100);
	cr_expect_eq(ur_rs_scale(512), 0x82);
	cr_expect_eq(ur_rs_unscale(0x82), 512);
	cr_expect_eq(ur_rs_unscale(0xff), 0x7f00);
}

/* RSOCKET-ORDER-01 */
Test(rsocket_proto, entries_have_the_byte_order_of_their_reader)
{
	struct ur_rs_map m = {1, {0x1122334455667788, 0xaabbccdd, 16}};
	struct ur_rs_map same = ur_rs_map_for(UR_RS_IS_BIG, m);
	struct ur_rs_map other = ur_rs_map_for(!UR_RS_IS_BIG, m);

	cr_expect_eq(same.sge.addr, m.sge.addr);
	cr_expect_eq(other.offset, UINT64_C(1) << 56);
	cr_expect_eq(other.sge.addr, 0x8877665544332211);
	cr_expect_eq(other.sge.key, 0xddccbbaa);
	cr_expect_eq(other.sge.bytes, 16u << 24);
}

/* ---- receiving ---- */

/* RSOCKET-DATA-01 */
Test(rsocket_flow, data_stays_within_the_half_it_begins_in)
{
	struct ur_rs_rx rx = ur_rs_rx(HALF, 16);

	cr_expect(ur_rs_rx_data(&rx, 600));
	cr_expect_not(ur_rs_rx_data(&rx, 401), "the second half is not granted");
	rx = ur_rs_rx(HALF, 16);
	cr_assert(ur_rs_rx_data(&rx, 600));
	cr_assert(ur_rs_rx_has_half(&rx));
	cr_expect_eq(ur_rs_rx_grant(&rx), HALF);
	cr_expect_not(ur_rs_rx_data(&rx, 401), "one message has one target");
	cr_expect(ur_rs_rx_data(&rx, 400));
	cr_expect(ur_rs_rx_data(&rx, HALF));
	cr_expect_not(ur_rs_rx_data(&rx, 1), "nothing is left");
	cr_expect_not(ur_rs_rx_data(&rx, UR_RS_VALUE_MAX));
	cr_expect_eq(ur_rs_rx_unread(&rx), 2 * HALF);
}

Test(rsocket_flow, a_half_is_granted_again_when_it_was_read)
{
	struct ur_rs_rx rx = ur_rs_rx(HALF, 16);

	ur_rs_rx_grant(&rx);
	cr_assert(ur_rs_rx_data(&rx, HALF));
	rx.taken = HALF - 1;
	cr_expect_not(ur_rs_rx_has_half(&rx));
	rx.taken++;
	cr_assert(ur_rs_rx_has_half(&rx));
	cr_expect_eq(ur_rs_rx_grant(&rx), 0);
	cr_expect_not(ur_rs_rx_has_half(&rx));
}

/* RSOCKET-CREDIT-01 */
Test(rsocket_flow, no_more_messages_arrive_than_credits_were_given)
{
	struct ur_rs_rx rx = ur_rs_rx(HALF, 16);

	rx.seq = UINT16_MAX - 3; /* over the end of the numbers */
	rx.limit = (uint16_t)(rx.seq + 16);
	for (int i = 0; i < 16; i++)
		cr_expect(ur_rs_rx_count(&rx), "message %d", i);
	cr_expect_not(ur_rs_rx_count(&rx));
	cr_expect_not(ur_rs_rx_data(&rx, 0), "an empty one takes a credit too");
	cr_assert(ur_rs_rx_owes(&rx));
	cr_expect_eq(ur_rs_rx_give(&rx), (uint16_t)(rx.seq + 16));
	cr_expect_not(ur_rs_rx_owes(&rx));
	cr_expect(ur_rs_rx_count(&rx));
}

Test(rsocket_flow, credits_are_owed_from_half_of_them_on)
{
	struct ur_rs_rx rx = ur_rs_rx(HALF, 16);

	for (int i = 0; i < 8; i++) {
		cr_expect_not(ur_rs_rx_owes(&rx), "after %d", i);
		ur_rs_rx_count(&rx);
	}
	cr_expect(ur_rs_rx_owes(&rx));
}

/* ---- sending ---- */

/* RSOCKET-CREDIT-02 */
Test(rsocket_flow, a_peer_gives_no_more_credits_than_it_has)
{
	struct ur_rs_offer peer = {.credits = 20, .buffer = {4096, 7, 100}};
	struct ur_rs_tx tx = ur_rs_tx(&peer);
	struct ur_rs_sge to;

	cr_expect_not(ur_rs_tx_credit(&tx, 21), "none was used");
	to = ur_rs_tx_take(&tx, 60);
	cr_expect(to.addr == 4096 && to.key == 7 && to.bytes == 60);
	cr_expect(ur_rs_tx_credit(&tx, 21));
	cr_expect_not(ur_rs_tx_credit(&tx, 22));
	cr_expect_eq(tx.limit, 21, "a refused one changes nothing");
	cr_expect(ur_rs_tx_credit(&tx, 0x10000 + 21), "16 bits count");
	to = ur_rs_tx_take(&tx, 40);
	cr_expect_eq(to.addr, 4156);
	cr_expect_eq(tx.target.bytes, 0);
	tx.seq = tx.limit;
	cr_expect_not(ur_rs_tx_has_credit(&tx));
}
