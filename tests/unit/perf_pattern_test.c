/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "pattern.h"

static uint8_t buf[4200];

Test(perf_pattern, what_was_filled_checks)
{
	for (size_t bytes = 0; bytes <= 300; bytes++) {
		perf_pattern_fill(buf, bytes, perf_base(7, bytes));
		cr_assert_eq(perf_pattern_check(buf, bytes, perf_base(7, bytes)), bytes);
	}
}

Test(perf_pattern, every_single_wrong_bit_is_found_at_its_byte)
{
	const size_t bytes = 203;
	uint64_t base = perf_base(1, 2);

	for (size_t at = 0; at < bytes; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			perf_pattern_fill(buf, bytes, base);
			buf[at] ^= (uint8_t)(1u << bit);
			cr_assert_eq(perf_pattern_check(buf, bytes, base), at);
		}
	}
}

Test(perf_pattern, a_fill_stays_within_its_bytes)
{
	for (size_t bytes = 0; bytes < 100; bytes++) {
		memset(buf, 0xa5, sizeof(buf));
		perf_pattern_fill(buf, bytes, 1);
		cr_assert_eq(buf[bytes], 0xa5);
	}
}

Test(perf_pattern, the_byte_at_an_offset_is_the_one_that_is_filled_in)
{
	perf_pattern_fill(buf, 500, 99);
	for (size_t at = 0; at < 500; at++)
		cr_assert_eq(buf[at], perf_pattern_byte(99, at));
}

Test(perf_pattern, unaligned_buffers_work)
{
	for (size_t shift = 1; shift < 8; shift++) {
		perf_pattern_fill(buf + shift, 1000, 5);
		cr_assert_eq(perf_pattern_check(buf + shift, 1000, 5), 1000);
	}
}

Test(perf_pattern, other_messages_queue_pairs_generations_and_directions_differ_at_once)
{
	uint64_t key = perf_key(1, 3, 0, 0), base = perf_base(key, 10);

	perf_pattern_fill(buf, 64, base);
	cr_expect_lt(perf_pattern_check(buf, 64, perf_base(key, 11)), 8);
	cr_expect_lt(perf_pattern_check(buf, 64, perf_base(perf_key(1, 4, 0, 0), 10)), 8);
	cr_expect_lt(perf_pattern_check(buf, 64, perf_base(perf_key(1, 3, 1, 0), 10)), 8);
	cr_expect_lt(perf_pattern_check(buf, 64, perf_base(perf_key(1, 3, 0, 1), 10)), 8);
	cr_expect_lt(perf_pattern_check(buf, 64, perf_base(perf_key(2, 3, 0, 0), 10)), 8);
}

Test(perf_pattern, data_shifted_by_a_word_or_a_packet_is_wrong)
{
	perf_pattern_fill(buf, 4096, 17);
	cr_expect_lt(perf_pattern_check(buf + 8, 1024, 17), 8);
	cr_expect_lt(perf_pattern_check(buf + 1024, 1024, 17), 8);
}

Test(perf_pattern, a_message_is_recognised_by_its_first_word)
{
	uint64_t key = perf_key(1, 0, 0, 0);

	perf_pattern_fill(buf, 8, perf_base(key, 1234));
	cr_assert_eq(perf_pattern_find(buf, key, 1000, 500), 1234);
	cr_assert_eq(perf_pattern_find(buf, key, 0, 1234), UINT64_MAX);
	cr_assert_eq(perf_pattern_find(buf, key, 1235, 500), UINT64_MAX);
}

Test(perf_pattern, a_cas_chain_starts_at_0_and_does_not_repeat_soon)
{
	uint64_t key = perf_key(1, 0, 0, 0);

	cr_assert_eq(perf_cas_value(key, 0), 0);
	for (uint64_t n = 1; n < 1000; n++) {
		for (uint64_t m = 0; m < n; m++)
			cr_assert_neq(perf_cas_value(key, n), perf_cas_value(key, m));
	}
}

Test(perf_plan, a_single_operation_is_always_the_same)
{
	struct perf_planner p = {.op = PERF_OP_READ, .window = 4, .size = 100, .notify = false};

	for (uint64_t n = 0; n < 100; n++) {
		cr_assert_eq(perf_plan(&p, 1, n).op, PERF_OP_READ);
		cr_assert_eq(perf_plan(&p, 1, n).size, 100);
	}
}

Test(perf_plan, verified_writes_show_themselves_once_a_window)
{
	struct perf_planner p = {.op = PERF_OP_WRITE, .window = 8, .size = 64, .notify = true};

	for (uint64_t n = 0; n < 64; n++)
		cr_assert_eq(perf_plan(&p, 1, n).op,
			     n % 8 == 7 ? PERF_OP_WRITE_IMM : PERF_OP_WRITE);
}

Test(perf_plan, lossy_writes_all_say_their_number)
{
	struct perf_planner p = {
		.op = PERF_OP_WRITE, .window = 8, .size = 64, .notify = true, .lossy = true};

	for (uint64_t n = 0; n < 64; n++)
		cr_assert_eq(perf_plan(&p, 1, n).op, PERF_OP_WRITE_IMM);
}

Test(perf_plan, a_mix_has_every_operation_and_sizes_from_0_to_the_bound)
{
	struct perf_planner p = {.op = PERF_OP_MIXED, .window = 16, .size = 5000, .notify = true};
	uint64_t key = perf_key(9, 1, 0, 0), smallest = UINT64_MAX, largest = 0;
	unsigned seen = 0, silent = 0;

	for (uint64_t n = 0; n < 100000; n++) {
		struct perf_plan plan = perf_plan(&p, key, n);

		cr_assert_lt(plan.op, PERF_OP_MIXED);
		cr_assert_leq(plan.size, 5000);
		seen |= 1u << plan.op;
		if ((perf_op_traits(plan.op) & PERF_T_ATOMIC) != 0)
			cr_assert_eq(plan.size, 8);
		smallest = plan.size < smallest ? plan.size : smallest;
		largest = plan.size > largest ? plan.size : largest;
		silent = (perf_op_traits(plan.op) & PERF_T_RECV) != 0 ? 0 : silent + 1;
		cr_assert_lt(silent, 2 * p.window, "the receiver sees nothing for too long");
	}
	cr_assert_eq(seen, ((1u << PERF_OP_MIXED) - 1) & ~(1u << PERF_OP_SEND_INV));
	cr_assert_eq(smallest, 0);
	cr_assert_gt(largest, 4900);
}

static struct perf_params params(enum perf_op op, uint64_t size, bool verify)
{
	return (struct perf_params){.op = op,
				    .type = PERF_TYPE_RC,
				    .size = size,
				    .qps = 3,
				    .buffers = 3,
				    .depth = 8,
				    .slots = verify ? 16 : 1,
				    .rq_depth = 16,
				    .verify = verify,
				    .sge = 1,
				    .signal_every = 1};
}

Test(perf_layout, rings_of_a_queue_pair_do_not_overlap_and_fit_in_its_stride)
{
	for (enum perf_op op = 0; op < PERF_OP_CNT; op++) {
		for (unsigned verify = 0; verify < 2; verify++) {
			struct perf_params p = params(op, 1000, verify);
			uint64_t receives = verify ? p.rq_depth : 1;
			struct perf_layout l;

			perf_layout_compute(&l, &p);
			cr_expect_geq(l.slot_bytes, 1000);
			cr_expect_geq(l.tx, PERF_AT_GRANT + 8 * PERF_GRANTS);
			cr_expect_geq(l.wr, l.tx + p.slots * l.slot_bytes);
			cr_expect_geq(l.rd, l.wr);
			cr_expect_geq(l.rx, l.rd);
			cr_expect_geq(l.stride, l.rx + (l.rx_bytes != 0 ? receives * 1000 : 0));
			cr_expect_geq(l.total, PERF_HEAD_BYTES + 3 * l.stride);
			cr_expect_eq(l.stride % 8, 0);
		}
	}
}

Test(perf_layout, an_operation_has_the_rings_it_uses)
{
	struct perf_params p = params(PERF_OP_WRITE, 64, true);
	struct perf_layout l;

	perf_layout_compute(&l, &p);
	cr_assert_eq(l.rd - l.wr, 16 * 64);
	cr_assert(perf_params_receives(&p), "verified writes notify");
	cr_assert_eq(l.rx_bytes, 0, "but bring nothing into a receive");
	p = params(PERF_OP_READ, 64, true);
	perf_layout_compute(&l, &p);
	cr_assert_eq(l.rd - l.wr, 0);
	cr_assert_eq(l.rx - l.rd, 16 * 64);
	cr_assert_not(perf_params_receives(&p));
	p = params(PERF_OP_SEND, 64, true);
	p.type = PERF_TYPE_UD;
	perf_layout_compute(&l, &p);
	cr_assert_eq(l.rx_bytes, 64 + 40);
	cr_assert_geq(l.rx_step, 104);
}

Test(perf_layout, queue_pairs_share_the_buffers_that_there_are)
{
	struct ibv_device_attr device = {.max_qp_wr = 4096, .max_qp_rd_atom = 16};
	struct perf_options o = {.qps = 3, .depth = 1, .sge = 1, .signal_every = 1, .buffers = 2};
	struct perf_params p;
	struct perf_layout l;

	perf_params_from_options(&p, &o, 64, &device, 4096);
	cr_assert(perf_params_valid(&p));
	perf_layout_compute(&l, &p);
	cr_assert_eq(l.stride, 128 + 64 + 64);
	cr_assert_eq(l.total, 64 + 2 * 256);
	cr_assert_eq(perf_layout_stride(&l, &p, 0), 64);
	cr_assert_eq(perf_layout_stride(&l, &p, 1), 320);
	cr_assert_eq(perf_layout_stride(&l, &p, 2), 64);
	o.buffers = 4;
	perf_params_from_options(&p, &o, 64, &device, 4096);
	cr_assert_eq(p.buffers, 3);
	o.buffers = 0;
	perf_params_from_options(&p, &o, 64, &device, 4096);
	cr_assert_eq(p.buffers, 3);
}

Test(perf_layout, huge_verified_messages_take_fewer_slots_rather_than_all_memory)
{
	struct ibv_device_attr device = {.max_qp_wr = 4096, .max_qp_rd_atom = 16};
	struct perf_options o = {.op = PERF_OP_WRITE,
				 .qps = 1,
				 .depth = 64,
				 .sge = 1,
				 .signal_every = 16,
				 .rd_atomic = 128,
				 .verify = true};
	struct perf_params p;

	perf_params_from_options(&p, &o, 64ull << 20, &device, 4096);
	cr_assert(perf_params_valid(&p));
	cr_assert_lt(p.slots, 128);
	cr_assert_leq(p.depth, p.slots);
	cr_assert_leq(p.signal_every, p.depth);
	cr_assert_eq(p.rd_atomic, 16);
}

Test(perf_proto, parameters_decode_to_what_was_encoded)
{
	uint8_t message[PERF_MSG_BYTES];
	struct perf_params in = params(PERF_OP_SEND, 77, true), out;
	size_t bytes;

	in.addr = 0x123456789abcdef0ull;
	in.rkey = 0xdeadbeef;
	bytes = perf_params_encode(message, &in);
	cr_assert(perf_params_decode(message, bytes, &out));
	cr_assert_arr_eq(&in, &out, sizeof(in));
	for (size_t cut = 0; cut < bytes; cut++)
		cr_assert_not(perf_params_decode(message, cut, &out));
}

Test(perf_proto, results_decode_to_what_was_encoded_and_their_text_ends)
{
	static uint8_t message[PERF_MSG_BYTES];
	static struct perf_result in, out;
	size_t bytes;

	in.ops = 5;
	in.counters.retransmitted_packets = 6;
	in.after.qps_time_wait = 7;
	memset(in.text, 'x', sizeof(in.text));
	bytes = perf_result_encode(message, &in);
	cr_assert_leq(bytes, PERF_MSG_BYTES);
	cr_assert(perf_result_decode(message, bytes, &out));
	cr_assert_eq(out.ops, 5);
	cr_assert_eq(out.counters.retransmitted_packets, 6);
	cr_assert_eq(out.after.qps_time_wait, 7);
	cr_assert_eq(strlen(out.text), sizeof(out.text) - 1);
	cr_assert_not(perf_result_decode(message, bytes - 1, &out));
}

Test(perf_proto, a_header_is_refused_when_anything_in_it_is_wrong)
{
	struct perf_header in = {.kind = PERF_MSG_ENDS, .seq = 3, .bytes = 24}, out;
	uint8_t message[PERF_HEADER_BYTES + 24] = {0};

	perf_header_encode(message, &in);
	cr_assert(perf_header_decode(message, sizeof(message), &out));
	cr_assert_eq(out.kind, PERF_MSG_ENDS);
	cr_assert_eq(out.seq, 3);
	cr_assert_eq(out.bytes, 24);
	cr_assert_not(perf_header_decode(message, sizeof(message) - 1, &out), "cut short");
	cr_assert_not(perf_header_decode(message, 3, &out), "cut in the header");
	message[0] ^= 1;
	cr_assert_not(perf_header_decode(message, sizeof(message), &out), "another magic");
	message[0] ^= 1;
	message[5] ^= 2;
	cr_assert_not(perf_header_decode(message, sizeof(message), &out), "another version");
	message[5] ^= 2;
	message[7] = 200;
	cr_assert_not(perf_header_decode(message, sizeof(message), &out), "an unknown kind");
}

Test(perf_proto, hello_fits_in_the_private_data_of_a_request)
{
	struct perf_hello in = {.kind = PERF_HELLO_DATA,
				.session = 0x1122334455667788ull,
				.idx = 9,
				.gen = 4,
				.share = {.sl = 15, .priority = 7, .weight = 255}},
			  out;
	uint8_t data[56];

	cr_assert_eq(perf_hello_encode(data, &in), PERF_HELLO_BYTES);
	cr_assert_leq(PERF_HELLO_BYTES, 40, "16 bytes stay free for the library");
	cr_assert(perf_hello_decode(data, sizeof(data), &out));
	cr_assert_eq(out.session, in.session);
	cr_assert_eq(out.idx, 9);
	cr_assert_eq(out.gen, 4);
	cr_assert_eq(out.share.sl, 15);
	cr_assert_eq(out.share.priority, 7);
	cr_assert_eq(out.share.weight, 255);
	cr_assert_not(perf_hello_decode(data, PERF_HELLO_BYTES - 1, &out));
}

Test(perf_proto, parameters_that_no_client_sends_are_refused)
{
	struct perf_params good = params(PERF_OP_WRITE, 64, true), p;

	cr_assert(perf_params_valid(&good));
#define REFUSED(field, value)                                                                      \
	p = good;                                                                                  \
	p.field = value;                                                                           \
	cr_expect_not(perf_params_valid(&p), #field " " #value)
	REFUSED(op, PERF_OP_CNT);
	REFUSED(mode, PERF_MODE_CNT);
	REFUSED(type, PERF_TYPE_CNT);
	REFUSED(size, (1ull << 31) + 1);
	REFUSED(qps, 0);
	REFUSED(buffers, 0);
	REFUSED(buffers, 2);
	REFUSED(buffers, 4);
	REFUSED(depth, 0);
	REFUSED(depth, 17);
	REFUSED(slots, 3);
	REFUSED(slots, 0);
	REFUSED(rq_depth, 0);
	REFUSED(sge, 17);
	REFUSED(transport, 5);
	REFUSED(sge, 0);
	REFUSED(signal_every, 6);
	REFUSED(timeout, 32);
	REFUSED(retry, 8);
}
