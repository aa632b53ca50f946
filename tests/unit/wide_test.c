/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"
#include "selective_fixture.h"
#include "transport/loss/ooo.h"

/* Windows of more numbers than a bitmap has bits: parts of bitmaps, what they say and what they leave open. */
#define MOST 65536

static struct loss_memory wide_memory;
static struct ur_ooo_pool ooo_pool;
static struct ur_ooo *o;

static void setup(void)
{
	start();
	loss_memory_free(&wide_memory);
	loss_memory_init(&wide_memory, 4, 2 << 20);
	ur_rtx_pool_init(&pool, &wide_memory.slabs, 64, MOST);
	ur_ooo_pool_init(&ooo_pool, &wide_memory.slabs, 64, MOST, 3);
	ur_selective_init(&s, &marks, 0, ur_psn(FIRST), 16384, MOST - 1);
}

static void teardown(void)
{
	loss_memory_free(&wide_memory);
}

TestSuite(wide, .init = setup, .fini = teardown);

/* A responder to which [epsn + 1, epsn + last] has come, but for every 1000th. */
static void arrive(uint32_t epsn, uint32_t last)
{
	o = ur_ooo_take(&ooo_pool, NULL, ur_psn(epsn), last);
	cr_assert_not_null(o);
	for (uint32_t i = 1; i <= last; i++)
		if (i % 1000)
			ur_ooo_defer(o, ur_psn_add(ur_psn(epsn), i),
				     &(struct ur_ooo_deferred){.held = UR_OOO_NOT_HELD});
	ur_ooo_validate(o, ur_psn(epsn));
}

static void expect_part(uint32_t epsn, bool lowest, uint32_t offset, bool more)
{
	struct ur_ooo_part part = ur_ooo_sack(o, ur_psn(epsn), lowest);

	cr_assert_eq(part.offset, offset, "%u, not %u", part.offset, offset);
	cr_assert_eq(part.bytes, UR_SACK_BYTES);
	cr_assert_eq(part.more, more);
	for (uint32_t i = 0; i < UR_SACK_BITS; i++)
		cr_assert_eq(ur_sack_bit(part.sack, i), (1 + offset + i) % 1000 != 0, "bit %u", i);
}

/* EXT-OOO-PART-01 */
Test(wide, the_newest_part_takes_turns_with_the_others_in_order)
{
	const uint32_t epsn = UR_PSN_MASK - 100, last = 7999, newest = last - UR_SACK_BITS;

	arrive(epsn, last);
	expect_part(epsn, false, newest, false);
	expect_part(epsn, false, 0, true);
	expect_part(epsn, true, 0, true);
	expect_part(epsn, false, newest, false);
	expect_part(epsn, false, 2048, true);
	expect_part(epsn, false, newest, false);
	expect_part(epsn, false, 4096, true);
	expect_part(epsn, false, newest, false);
	expect_part(epsn, false, 0, true);
	ur_ooo_give(&ooo_pool, o);
}

/* EXT-RESP-SACK-01. The ACK and the answer to a probe that are made in one call of the engine */
Test(wide, two_packets_may_tell_different_parts)
{
	struct ur_ooo_part newest, lowest;

	for (unsigned lowest_last = 0; lowest_last < 2; lowest_last++) {
		arrive(100, 7999);
		if (!lowest_last)
			lowest = ur_ooo_sack(o, ur_psn(100), true);
		newest = ur_ooo_sack(o, ur_psn(100), false);
		if (lowest_last)
			lowest = ur_ooo_sack(o, ur_psn(100), true);
		cr_assert_eq(lowest.offset, 0u);
		cr_assert_eq(newest.offset, 7999 - UR_SACK_BITS);
		for (uint32_t i = 0; i < UR_SACK_BITS; i++) {
			cr_assert_eq(ur_sack_bit(lowest.sack, i), (1 + i) % 1000 != 0);
			cr_assert_eq(ur_sack_bit(newest.sack, i),
				     (1 + newest.offset + i) % 1000 != 0);
		}
		ur_ooo_give(&ooo_pool, o);
	}
}

/* EXT-OOO-PART-01, EXT-WINDOW-01 */
Test(wide, the_largest_context_notes_the_whole_window)
{
	struct ur_ooo_part part;

	arrive(5, MOST - 1);
	cr_assert_eq(o->span, MOST);
	cr_assert_eq(o->deferred_cnt, MOST - 1 - 65);
	part = ur_ooo_sack(o, ur_psn(5), false);
	cr_assert_eq(part.offset, MOST - 1 - UR_SACK_BITS);
	cr_assert_not(part.more);
	cr_assert(ur_sack_bit(part.sack, UR_SACK_BITS - 1));
	ur_ooo_give(&ooo_pool, o);
}

/* The numbers beyond una that the bits [at, at + UR_SACK_BITS) say, all but `but` of which have arrived. */
static uint32_t part(uint32_t una, uint32_t at_bit, uint32_t but, bool more, uint64_t echo_us,
		     uint64_t us)
{
	uint8_t map[UR_SACK_BYTES];
	struct ur_ack_info n = {
		.una = ur_psn(FIRST + una),
		.sack = map,
		.sack_at = at_bit,
		.sack_bits = UR_SACK_BITS,
		.more = more,
		.echo = ur_stamp(at(echo_us)),
	};
	uint32_t cnt;

	memset(map, 0xff, sizeof(map));
	but -= una + 1 + at_bit;
	if (but < UR_SACK_BITS)
		map[but / 8] &= (uint8_t) ~(1 << but % 8);
	cnt = ur_selective_on_ack(&s, &env, &n, at(us));
	ur_selective_validate(&s);
	return cnt;
}

/* 10000 numbers leave, 1000 every 50 us. */
static void send_many(void)
{
	for (unsigned i = 0; i < 10; i++)
		send(1000, i * 50);
}

/* EXT-SEL-PART-01 */
Test(wide, what_a_part_says_nothing_of_is_not_lost)
{
	send_many();
	/* Of 0 it is known that it is missing, of [1, 7952) nothing. */
	cr_assert_eq(part(0, 7951, 0, false, 450, 550), UR_SACK_BITS);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(part(0, 2048, 3000, true, 450, 560), UR_SACK_BITS - 1);
	resend(3000, 560);
	cr_assert_eq(lost(), -1, "nothing else was said to be missing");
	cr_assert_eq(part(0, 0, 0, true, 450, 570), UR_SACK_BITS);
	resend(0, 570);
	cr_assert_eq(lost(), -1);
	cr_assert_eq(s.acked_cnt, 3 * UR_SACK_BITS - 1);
	cr_assert_eq(s.reo_places, 0, "parts that are told one after the other are no reordering");
}

/* EXT-SEL-PART-01 */
Test(wide, what_follows_the_last_part_has_not_arrived)
{
	send_many();
	s.probe_stamp = ur_stamp(at(460));
	cr_assert_eq(part(0, 0, 0, false, 460, 560), UR_SACK_BITS);
	resend(0, 560);
	/* The probe has overtaken them. */
	cr_assert_eq(lost(), 1 + (int)UR_SACK_BITS);
	cr_assert_eq(s.lost_cnt, 8000 - 1 - UR_SACK_BITS, "those 100 us older than the probe");
}

/* EXT-SEL-PART-01 */
Test(wide, an_answer_without_a_bitmap_makes_nothing_lost)
{
	struct ur_ack_info n = {
		.una = ur_psn(FIRST + 1), .echo = ur_stamp(at(460)), .partial = true};

	send_many();
	cr_assert_eq(part(0, 7951, 0, false, 450, 550), UR_SACK_BITS);
	cr_assert_eq(ur_selective_on_ack(&s, &env, &n, at(560)), 1);
	ur_selective_validate(&s);
	cr_assert_eq(lost(), -1);
}

/*
 * EXT-WINDOW-04. Sixteen READs of 1024 responses are asked for at once, all arrive, and so on. The first response of a
 * later batch is overtaken, by the last or the next: with the stamp of an older batch all would seem to be lost.
 */
Test(wide, reads_in_batches_are_as_old_as_they_are)
{
	const uint32_t part = 1024, parts = 16, all = part * parts;

	for (uint32_t batch = 0; batch < 40; batch++) {
		uint64_t now = 300 * (uint64_t)batch, seen = at(now + 100);
		struct ur_psn first = s.max;

		for (uint32_t i = 0; i < parts; i++)
			send(part, now);
		if (batch % 2) {
			ur_selective_on_response(&s, &env,
						 ur_psn_add(first, batch % 4 ? all - 1 : 1),
						 ur_stamp(at(now)), seen);
			ur_selective_validate(&s);
			cr_assert_eq(s.lost_cnt, 0, "batch %u: %u are lost", batch, s.lost_cnt);
			for (uint32_t i = 0; i < all; i += 97)
				cr_assert_geq(ur_stamp_diff(s.rtx->stamp[ur_psn_add(first, i).v &
									 (s.rtx->span - 1)],
							    ur_stamp(at(now))),
					      0, "batch %u, %u", batch, i);
		}
		for (uint32_t i = 0; i < all; i++)
			if (!ur_selective_has_arrived(&s, ur_psn_add(first, i)))
				ur_selective_on_response(&s, &env, ur_psn_add(first, i),
							 ur_stamp(at(now)), seen);
		ur_selective_validate(&s);
		cr_assert(ur_psn_eq(s.una, s.max));
		cr_assert_eq(pool.lost_cnt, 0);
	}
}

/* EXT-WINDOW-01 */
Test(wide, as_many_as_the_counts_hold_may_be_outstanding)
{
	uint32_t sent = 0;

	s.limit = UINT16_MAX;
	while (ur_selective_credit(&s)) {
		send(ur_selective_credit(&s) < 1000 ? ur_selective_credit(&s) : 1000, sent / 20);
		sent = (uint32_t)ur_psn_diff(s.max, s.una);
		/* What arrives beyond the gap is no longer in flight. */
		for (uint32_t at_bit = 0; at_bit + UR_SACK_BITS < sent; at_bit += UR_SACK_BITS)
			part(0, at_bit, 0, true, sent / 20, sent / 20 + 1);
	}
	cr_assert_eq(sent, MOST - 1);
	cr_assert_eq(ur_selective_credit(&s), 0);
	cr_assert_eq(s.rtx->span, MOST);
}

/* EXT-WINDOW-02, RC-REQ-PART-02 */
Test(wide, no_more_is_sent_than_the_peer_takes_in)
{
	static const struct {
		uint32_t window;
		uint8_t peer;
		uint32_t most, flight, part;
	} cells[] = {{64, 5, 2048, 64, 8},	  {512, 0, 2048, 512, 32},
		     {512, 5, 2048, 512, 32},	  {16384, 0, 2048, 2048, 32},
		     {16384, 2, 8192, 8192, 512}, {16384, 5, 65535, 16384, 1024},
		     {4096, 5, 16384, 4096, 256}};

	for (unsigned i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		struct end *e = end_new((struct end_attr){.mode = UR_MODE_EXTENDED,
							  .window = cells[i].window,
							  .large_slabs = true,
							  .agreed = {.wide = cells[i].peer}});
		const struct ur_ext_requester *x = &e->qp->xreq;

		cr_assert_eq(x->psn.most, cells[i].most, "%u", i);
		cr_assert_eq(x->rsp.most, cells[i].most, "%u", i);
		cr_assert_eq(x->psn.limit, cells[i].flight, "%u", i);
		cr_assert_eq(e->qp->req.read_psns, cells[i].part, "%u: %u", i,
			     e->qp->req.read_psns);
		end_free(e);
	}
}

/* EXT-WINDOW-02 */
Test(wide, a_peer_cannot_take_in_more_than_there_is)
{
	struct end *e = end_new((struct end_attr){.mode = UR_MODE_EXTENDED, .rtr = true});

	ur_qp_reset(e->qp);
	cr_assert_eq(ur_qp_set_agreed(e->qp, &(struct ur_adm_agreed){.wide = 5}), 0);
	cr_assert_eq(ur_qp_set_agreed(e->qp, &(struct ur_adm_agreed){.wide = 6}), -EINVAL);
	end_free(e);
}

/* LOSS-SLAB-04 */
Test(wide, a_slab_holds_the_largest_context_of_any_window)
{
	cr_assert_eq(ur_engine_loss_slab_bytes(512), UR_LOSS_SLAB_BYTES);
	for (uint32_t window = 4; window <= 32768; window *= 2) {
		uint32_t bytes = ur_engine_loss_slab_bytes(window), span = ur_ext_window(window);
		struct loss_memory m;
		void *object;

		loss_memory_init(&m, 1, bytes);
		object = ur_slabs_take(&m.slabs, ur_ooo_bytes(span), 0);
		cr_assert_not_null(object, "%u", window);
		ur_slabs_give(&m.slabs, object);
		object = ur_slabs_take(&m.slabs, ur_rtx_bytes(span), 0);
		cr_assert_not_null(object, "%u", window);
		ur_slabs_give(&m.slabs, object);
		ur_slabs_validate(&m.slabs);
		cr_assert_eq((uint32_t)UR_EXT_WINDOW << ur_engine_wide(window), span);
		loss_memory_free(&m);
	}
}

/* LOSS-SLAB-04: END has slabs of 128 KiB, which hold a context of 4096 numbers. */
Test(wide, no_more_is_taken_in_than_a_context_tracks)
{
	static const uint32_t windows[] = {64, 1024, 2048, 16384},
			      want[] = {2048, 4096, 4096, 4096};

	for (unsigned i = 0; i < 4; i++) {
		struct end *e = end_new((struct end_attr){
			.mode = UR_MODE_EXTENDED, .window = windows[i], .agreed = {.wide = 5}});

		cr_assert_eq(ur_engine_core(e->engine)->ooo.most, want[i], "%u", windows[i]);
		cr_assert_eq(e->qp->xreq.psn.most, want[i], "%u", windows[i]);
		end_free(e);
	}
}

/* EXT-WINDOW-01 */
Test(wide, four_times_the_flight_and_2048_at_least)
{
	cr_assert_eq(ur_ext_window(4), 2048);
	cr_assert_eq(ur_ext_window(512), 2048);
	cr_assert_eq(ur_ext_window(1024), 4096);
	cr_assert_eq(ur_ext_window(16384), 65536);
	cr_assert_eq(ur_ext_window(1u << 31), 65536);
}
