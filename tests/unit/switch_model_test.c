/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_bed.h"

/*
 * Random traffic, links, tables and hostile bytes. After every step the switch's own invariants hold, and each
 * frame has as many references as the test has counted: none is lost, none is invented.
 */
static uint64_t seed;
static int refs[4096]; /* of frames[i] */

static uint32_t rnd(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % n;
}

static unsigned index_of(const struct ur_switch_frame *f)
{
	return (unsigned)((uint8_t(*)[2048])f->handle - frames);
}

static struct ur_switch_frame any_frame(void)
{
	struct ur_switch_frame f;
	uint32_t len = 60 + rnd(1500);

	while (refs[frame_at % 4096])
		frame_at++;
	switch (rnd(8)) {
	case 0:
		f = mad((uint16_t)rnd(8));
		break;
	case 1:
	case 2:
		f = roce(rnd(12), rnd(12), rnd(2), (uint8_t)rnd(256), (uint16_t)rnd(65536),
			 (uint16_t)rnd(1024));
		break;
	case 3:
		f = plain(rnd(12), 0xffff, len);
		break;
	case 4:
		f = plain(rnd(12), rnd(12), len);
		for (unsigned i = 0; i < 64; i++)
			f.data[i] = (uint8_t)rnd(256);
		f.len = rnd(64);
		break;
	default:
		f = plain(rnd(12), rnd(12), len);
	}
	if (rnd(4) == 0 && f.len >= 14)
		f = tagged(f, (uint16_t)rnd(65536));
	if (rnd(8) == 0)
		f.data[rnd(60)] ^= (uint8_t)(1u << rnd(8));
	return f;
}

static void release(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		cr_assert_gt(refs[index_of(&tx[i].frame)]--, 0);
		cr_assert_leq(tx[i].skip, tx[i].frame.len);
		cr_assert_leq(tx[i].head_len, UR_SWITCH_HEAD_MAX);
	}
}

static void change_port(uint8_t p)
{
	struct ur_switch_port_attr a = port_attr;

	a.trunk = rnd(2);
	a.vid = (uint16_t)(1 + rnd(3));
	a.rate_gbps = rnd(2) ? 0.1 : 0;
	a.lane_bytes = 2000 + rnd(50000);
	a.ecn_min_bytes = rnd(3000);
	a.ecn_max_bytes = a.ecn_min_bytes + rnd(3000);
	a.ecn_chance = rnd(1u << 31);
	a.vl.low[rnd(15)].weight = (uint8_t)rnd(3);
	a.vl.sl2vl[rnd(16)] = (uint8_t)rnd(16);
	if (!ur_switch_port_attr_check(&a))
		ur_switch_set_port(sw, p, &a, now_ns);
}

static void step(void)
{
	uint8_t p = (uint8_t)(1 + rnd(BED_PORTS - 1));
	struct ur_gid addr = ur_gid_from_ipv4(0x0a000002);
	struct ur_switch_frame f;

	now_ns += rnd(20000);
	switch (rnd(64)) {
	case 0:
		ur_switch_set_link(sw, p, rnd(4) != 0, now_ns);
		break;
	case 1:
		change_port(p);
		break;
	case 2:
		ur_switch_set_lft(sw, (uint16_t)(1 + rnd(8)), (uint8_t)rnd(BED_PORTS + 1));
		break;
	case 3:
		ur_switch_set_route(sw, &addr, (uint16_t)(rnd(3) * 4), (uint8_t)rnd(3));
		break;
	case 4:
		release(ur_switch_reap(sw, tx, rnd(20)));
		break;
	default:
		if (rnd(3) == 0) {
			release(ur_switch_output(sw, (uint8_t)rnd(BED_PORTS), tx, rnd(20), now_ns));
			break;
		}
		f = any_frame();
		cr_assert_eq(refs[index_of(&f)], 0);
		refs[index_of(&f)] = (int)ur_switch_input(sw, (uint8_t)rnd(BED_PORTS), &f, now_ns);
	}
	ur_switch_validate(sw);
}

/* SWITCH-COUNT-01 */
Test(switch_model, every_reference_is_sent_dropped_or_queued)
{
	bed_attr();
	attr.limits.frames = 200;
	attr.limits.mgmt_frames = 20;
	attr.limits.macs = 64;
	attr.age_ns = 1000000;
	bed_start();
	for (seed = 1; seed < 1000000007; seed += 100000000) {
		uint64_t own = seed;

		for (unsigned i = 0; i < 20000; i++)
			step();
		seed = own;
	}
	for (uint8_t p = 0; p < BED_PORTS; p++) {
		ur_switch_set_link(sw, p, true, now_ns);
		ur_switch_set_link(sw, p, false, now_ns);
	}
	for (unsigned n; (n = ur_switch_reap(sw, tx, 256)) > 0;)
		release(n);
	ur_switch_validate(sw);
	cr_assert_eq(ur_switch_queued(sw), 0);
	for (unsigned i = 0; i < 4096; i++)
		cr_assert_eq(refs[i], 0);
}

/* SWITCH-COUNT-01: the same input gives the same output. */
Test(switch_model, is_deterministic)
{
	struct ur_switch_counters first[BED_PORTS], c;

	for (unsigned round = 0; round < 2; round++) {
		memset(refs, 0, sizeof(refs));
		now_ns = 1000;
		frame_at = 0;
		seed = 42;
		bed_plain();
		for (unsigned i = 0; i < 5000; i++)
			step();
		for (uint8_t p = 0; p < BED_PORTS; p++) {
			ur_switch_counters(sw, p, &c);
			if (!round)
				first[p] = c;
			cr_assert_eq(memcmp(&first[p], &c, sizeof(c)), 0);
		}
	}
}
