/* SPDX-License-Identifier: BSD-3-Clause */
#include "modes.h"
#include "script.h"

/*
 * All ways to lose some of the first twelve packets of a short exchange, for each operation in each
 * mode: 4096 runs each. With RC everything must complete; with UC, completed messages must be
 * correct. The messages are long enough that twelve packets are sent before the last one completes,
 * and no packet can be lost so often that seven retries do not suffice.
 */
#define MASK_BITS 12
#define LIMIT_NS  SIM_MS(10000)

static bool is_request(const struct ur_packet *p)
{
	return p->op & UR_OP_REQUEST;
}

static void run(const struct sim_script *script, enum ur_mode mode, uint64_t mask, bool strict)
{
	struct sim_exchange_attr attr = {
		.mode = mode, .strict = strict, .number = mask, .test = strict ? "strict" : NULL};
	struct sim_exchange x;

	sim_exchange_init(&x, script, &attr);
	x.s->drop_mask = mask;
	x.s->mask_counts = script == &sim_script_mixed_requests ? is_request : NULL;
	x.oracle.clean = x.oracle.alone = mask == 0;
	sim_exchange_run(&x, LIMIT_NS);
}

static void run_mask(const struct sim_script *script, enum ur_mode mode, uint64_t mask)
{
	run(script, mode, mask, false);
}

static void run_strict_mask(const struct sim_script *script, enum ur_mode mode, uint64_t mask)
{
	run(script, mode, mask, true);
}

static void run_all(enum ur_mode mode, const struct sim_script *script)
{
	sim_run_numbers(script, mode, NULL, 1u << MASK_BITS, run_mask);
}

EACH_MODE(drop_masks, every_rc_send_arrives_once)
{
	run_all(mode, &sim_script_send);
}

EACH_MODE(drop_masks, every_rc_send_with_immediate_arrives_once)
{
	run_all(mode, &sim_script_send_imm);
}

EACH_MODE(drop_masks, every_rc_send_with_invalidate_arrives_once)
{
	run_all(mode, &sim_script_send_inv);
}

EACH_MODE(drop_masks, every_rc_write_is_placed)
{
	run_all(mode, &sim_script_write);
}

EACH_MODE(drop_masks, every_rc_write_with_immediate_arrives_once)
{
	run_all(mode, &sim_script_write_imm);
}

EACH_MODE(drop_masks, every_rc_read_brings_its_bytes)
{
	run_all(mode, &sim_script_read);
}

EACH_MODE(drop_masks, every_compare_and_swap_executes_once)
{
	run_all(mode, &sim_script_cas);
}

EACH_MODE(drop_masks, every_fetch_and_add_executes_once)
{
	run_all(mode, &sim_script_fetch_add);
}

EACH_MODE(drop_masks, rc_operations_of_all_kinds_keep_their_order)
{
	run_all(mode, &sim_script_mixed);
}

EACH_MODE(drop_masks, twelve_lost_requests_of_all_kinds_are_repeated)
{
	run_all(mode, &sim_script_mixed_requests);
}

EACH_MODE(drop_masks, strict_writes_are_placed)
{
	sim_run_numbers(&sim_script_write, mode, "strict", 1u << MASK_BITS, run_strict_mask);
}

EACH_MODE(drop_masks, strict_operations_of_all_kinds_keep_their_order)
{
	sim_run_numbers(&sim_script_mixed, mode, "strict", 1u << MASK_BITS, run_strict_mask);
}

Test(drop_masks, uc_sends_are_lost_whole)
{
	run_all(UR_MODE_GBN, &sim_script_uc_send);
}

Test(drop_masks, uc_writes_with_immediate_complete_only_when_whole)
{
	run_all(UR_MODE_GBN, &sim_script_uc_write);
}

Test(drop_masks, uc_operations_of_all_kinds_are_lost_whole)
{
	run_all(UR_MODE_GBN, &sim_script_uc_mixed);
}
