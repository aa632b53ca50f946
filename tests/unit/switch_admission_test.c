/* SPDX-License-Identifier: BSD-3-Clause */
#include "admission/attr.h"
#include "switch_bed.h"
#include "wire/ext.h"

/*
 * Admission at the first hop (docs/design/admission.md): hosts 1, 2 and 3 send requests to a pool of host 4; the switch
 * knows its status from NOTIFYs.
 */
#define POOL 0x1234u

static struct ur_switch_frame finish(struct ur_packet *p, unsigned src, unsigned dst)
{
	struct ur_switch_frame f = {frames[frame_at++ % 4096], NULL, 0};
	struct frame made;

	host_mac(p->dmac, dst);
	host_mac(p->smac, src);
	p->ip.src = ur_gid_from_ipv4(0x0a000000 + src);
	p->ip.dst = ur_gid_from_ipv4(0x0a000000 + dst);
	p->sport = 50000;
	frame_make(&made, p);
	memcpy(f.data, made.b, made.len);
	f.handle = f.data;
	f.len = (uint32_t)made.len;
	return f;
}

/* A packet of a request; `claim`: the queue class with which its message was refused. */
static struct ur_switch_frame part(unsigned src, uint32_t qpn, uint8_t claim, uint32_t offset,
				   uint32_t psn)
{
	static const uint8_t bytes[64];
	struct ur_packet p =
		frame_packet(offset ? UR_EXT_SEND_LAST : UR_EXT_SEND_FIRST, false, bytes, 64);

	p.bth.dqpn = ur_qpn(qpn);
	p.bth.psn = ur_psn(psn);
	p.xth = (struct ur_xth){.flags = (uint8_t)(UR_XTH_RECV | claim << UR_XTH_CLAIM_SHIFT),
				.offset = offset,
				.tag = ur_pool_tag(POOL)};
	return finish(&p, src, 4);
}

static struct ur_switch_frame request(unsigned src, uint32_t qpn, uint8_t claim)
{
	return part(src, qpn, claim, 0, 1);
}

static struct ur_switch_frame notify_of(unsigned src, uint32_t pool, uint8_t status,
					uint16_t generation)
{
	struct ur_packet p = frame_packet(UR_EXT_NOTIFY, false, NULL, 0);

	p.bth.dqpn = ur_qpn(9);
	p.asth = (struct ur_asth){.status = status, .generation = generation};
	p.pool = pool;
	return finish(&p, src, 1);
}

/* Host 4 tells host 1, which passes. */
static void notify(uint8_t status, uint16_t generation)
{
	cr_assert_eq(give(4, notify_of(4, POOL, status, generation)), 1);
	cr_assert_eq(take(1, 64), 1);
}

static void start(void)
{
	bed_attr();
	attr.hold = true;
	bed_start();
	introduce();
}

/* QPN and PSN of tx[i]. */
static uint32_t qpn_at(unsigned i)
{
	return ur_load24(tx[i].frame.data + 14 + 20 + 8 + 5);
}

static uint32_t psn_at(unsigned i)
{
	return ur_load24(tx[i].frame.data + 14 + 20 + 8 + 9);
}

/* SWITCH-HOLD-01 */
Test(switch_admission, a_request_that_would_be_refused_waits_for_the_status)
{
	start();
	cr_assert_eq(give(1, request(1, 10, UR_ADM_NONE)), 1);
	cr_assert_eq(take(4, 64), 1, "an unknown pool: it passes");
	notify(UR_ADM_A, 7);
	cr_assert_eq(give(1, request(1, 10, UR_ADM_NONE)), 1);
	cr_assert_eq(give(2, request(2, 11, UR_ADM_CLASS_B)), 1);
	cr_assert_eq(give(3, request(3, 12, UR_ADM_CLASS_A)), 1);
	cr_assert(take(4, 64) == 1 && qpn_at(0) == 12 && !tx[0].held, "class A is served");
	cr_assert_eq(ur_switch_next_deadline(sw, UINT64_MAX, now_ns), now_ns + 500000);
	notify(UR_ADM_NB, 8);
	cr_assert_eq(take(4, 64), 2);
	cr_assert(qpn_at(0) == 10 && qpn_at(1) == 11 && tx[0].held && tx[1].held, "in order");
	notify(UR_ADM_B, 9);
	cr_assert_eq(give(3, request(3, 12, UR_ADM_CLASS_A)), 1);
	cr_assert_eq(give(2, request(2, 11, UR_ADM_CLASS_B)), 1);
	cr_assert(take(4, 64) == 1 && qpn_at(0) == 11);
	notify(UR_ADM_NA, 10);
	cr_assert_eq(take(4, 64), 1);
	cr_assert_eq(counters(1).held + counters(2).held + counters(3).held, 3);
	cr_assert_eq(ur_switch_queued(sw), 0);
}

/* SWITCH-HOLD-01 */
Test(switch_admission, what_follows_a_held_request_stays_behind_it)
{
	struct ur_packet p = frame_packet(UR_EXT_READ_REQUEST, false, NULL, 0);

	start();
	notify(UR_ADM_A, 1);
	cr_assert_eq(give(1, part(1, 10, 0, 0, 1)), 1);
	cr_assert_eq(give(1, part(1, 10, 0, 1, 2)), 1);
	p.bth.dqpn = ur_qpn(10);
	p.bth.psn = ur_psn(3);
	cr_assert_eq(give(1, finish(&p, 1, 4)), 1, "a READ of the same queue pair");
	p.bth.dqpn = ur_qpn(99);
	cr_assert_eq(give(1, finish(&p, 1, 4)), 1);
	cr_assert(take(4, 64) == 1 && qpn_at(0) == 99, "of another one");
	notify(UR_ADM_NA, 2);
	cr_assert_eq(take(4, 64), 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(qpn_at(i) == 10 && psn_at(i) == i + 1);
}

/* SWITCH-HOLD-02 */
Test(switch_admission, nothing_waits_for_longer_than_half_a_millisecond)
{
	start();
	notify(UR_ADM_A, 1);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	now_ns += 300000;
	cr_assert_eq(give(2, request(2, 11, 0)), 1);
	now_ns += 199999;
	cr_assert_eq(take(4, 64), 0);
	now_ns++;
	cr_assert(take(4, 64) == 1 && qpn_at(0) == 10);
	now_ns += 300000;
	cr_assert(take(4, 64) == 1 && qpn_at(0) == 11);
	cr_assert_eq(counters(1).held_late, 1);
	/* A status that is not renewed is forgotten. */
	now_ns += 80000000;
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(take(4, 64), 1);
}

/* SWITCH-HOLD-02 */
Test(switch_admission, a_queue_pair_does_not_wait_through_a_whole_cycle)
{
	start();
	notify(UR_ADM_A, 65535);
	cr_assert_eq(give(1, request(1, 10, UR_ADM_NONE)), 1);
	notify(UR_ADM_B, 0);
	cr_assert_eq(take(4, 64), 0);
	notify(UR_ADM_A, 1);
	cr_assert_eq(take(4, 64), 1);
}

/* SWITCH-HOLD-03 */
Test(switch_admission, a_status_must_be_the_pools_own)
{
	struct ur_switch_frame f;

	start();
	notify(UR_ADM_A, 5);
	/* Old. */
	notify(UR_ADM_NA, 4);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(take(4, 64), 0);
	/* From a port that does not lead to its source. */
	f = notify_of(4, POOL, UR_ADM_NA, 6);
	host_mac(f.data + 6, 3);
	cr_assert_eq(give(3, f), 1);
	take(1, 64);
	cr_assert_eq(take(4, 64), 0);
	cr_assert_eq(counters(3).notify_ignored, 1);
	/* With a wrong ICRC. */
	f = notify_of(4, POOL, UR_ADM_NA, 6);
	f.data[f.len - 1] ^= 1;
	cr_assert_eq(give(4, f), 1);
	take(1, 64);
	cr_assert_eq(take(4, 64), 0);
	notify(UR_ADM_NA, 6);
	cr_assert_eq(take(4, 64), 1);
}

/* SWITCH-HOLD-03: by the forwarding table any of its ports will do, and no other. */
Test(switch_admission, a_route_says_where_a_status_comes_from)
{
	struct ur_gid addr = ur_gid_from_ipv4(0x0a000004);
	struct ur_switch_frame f;

	start();
	cr_assert(ur_switch_set_route(sw, &addr, 8, 1));
	ur_switch_set_lft(sw, 8, 3);
	ur_switch_set_lft(sw, 9, 4);
	f = notify_of(4, POOL, UR_ADM_A, 6);
	cr_assert_eq(give(2, f), 1);
	take(1, 64);
	cr_assert_eq(counters(2).notify_ignored, 1);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(take(3, 64) + take(4, 64), 1);
	cr_assert_eq(give(3, notify_of(4, POOL, UR_ADM_A, 6)), 1);
	take(1, 64);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(take(3, 64) + take(4, 64), 0);
}

/* SWITCH-HOLD-03 */
Test(switch_admission, two_pools_with_one_tag_hold_nothing)
{
	start();
	cr_assert_eq(ur_pool_tag(POOL), ur_pool_tag(POOL << 8));
	notify(UR_ADM_A, 1);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(give(4, notify_of(4, POOL << 8, UR_ADM_B, 1)), 1);
	take(1, 64);
	cr_assert_eq(take(4, 64), 1);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(take(4, 64), 1);
}

/* SWITCH-HOLD-04 */
Test(switch_admission, what_may_wait_is_bounded)
{
	unsigned held;

	start();
	notify(UR_ADM_A, 1);
	for (unsigned i = 0; i < 65; i++)
		cr_assert_eq(give(1, request(1, 100 + i, 0)), 1);
	cr_assert(take(4, 64) == 1 && qpn_at(0) == 164, "64 queue pairs");
	notify(UR_ADM_NA, 2);
	cr_assert_eq(take(4, 100), 64);
	notify(UR_ADM_A, 3);
	for (unsigned i = 0; i < 128; i++)
		cr_assert_eq(give(1, part(1, 100, 0, i ? i : 0, i)), 1);
	cr_assert_eq(take(4, 200), 0, "a quarter of 512 frames");
	cr_assert_eq(give(2, request(2, 50, 0)), 1, "of one port");
	cr_assert_eq(give(1, part(1, 100, 0, 128, 128)), 1);
	held = take(4, 200);
	cr_assert_eq(held, 129, "all of it goes, and it is in order");
	for (unsigned i = 0; i < held; i++)
		cr_assert_eq(psn_at(i), i);
}

/* SWITCH-HOLD-05: more is let go at once than the lane holds. Nothing of it is lost, and it stays in order. */
Test(switch_admission, a_release_does_not_overflow_the_lane)
{
	unsigned got = 0, n;

	bed_attr();
	attr.hold = true;
	port_attr.lane_bytes = 1600; /* 10 requests */
	bed_start();
	introduce();
	notify(UR_ADM_A, 1);
	for (unsigned i = 0; i < 120; i++)
		cr_assert_eq(give((uint8_t)(1 + i % 2), part(1 + i % 2, i % 60, 0, i / 60, i)), 1);
	cr_assert_eq(take(4, 256), 0);
	notify(UR_ADM_NA, 2);
	cr_assert_leq(ur_switch_queued_bytes(sw, 4, 0), 1600);
	/* One more behind those that go, and one of a queue pair that does not wait: the lane is full. */
	cr_assert_eq(give(1, part(1, 58, 0, 2, 120)), 1);
	cr_assert_eq(give(1, part(1, 99, 0, 1, 121)), 0);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_QUEUE_FULL), 1);
	while ((n = take(4, 7)) > 0)
		for (unsigned i = 0; i < n; i++, got++)
			cr_assert(qpn_at(i) != 58 || psn_at(i) == 58 || got > 60);
	cr_assert_eq(got, 121);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_QUEUE_FULL), 1);
	cr_assert_eq(ur_switch_queued(sw), 0);
}

/* SWITCH-HOLD-05: what goes is dropped with the link, and its queue pair is served anew. */
Test(switch_admission, what_goes_to_a_port_that_goes_down_is_dropped)
{
	bed_attr();
	attr.hold = true;
	port_attr.lane_bytes = 1600;
	bed_start();
	introduce();
	notify(UR_ADM_A, 1);
	for (unsigned i = 0; i < 60; i++)
		give(1, part(1, 10, 0, i, i));
	notify(UR_ADM_NA, 2);
	ur_switch_set_link(sw, 4, false, now_ns);
	ur_switch_validate(sw);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_LINK_DOWN), 60);
	cr_assert_eq(ur_switch_reap(sw, tx, 64), 60);
	cr_assert_eq(ur_switch_queued(sw), 0);
}

/* SWITCH-HOLD-04 */
Test(switch_admission, what_waits_for_a_port_that_goes_down_is_dropped)
{
	start();
	notify(UR_ADM_A, 1);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	ur_switch_set_link(sw, 4, false, now_ns);
	ur_switch_validate(sw);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_LINK_DOWN), 1);
	cr_assert_eq(ur_switch_reap(sw, tx, 64), 1);
	ur_switch_set_link(sw, 4, true, now_ns);
	give(4, plain(4, 0xffff, 64));
	take(1, 64);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(ur_switch_queued_bytes(sw, 4, 0), 0);
	ur_switch_set_port(sw, 4, &port_attr, now_ns);
	cr_assert_gt(ur_switch_queued_bytes(sw, 4, 0), 0, "other lanes: it is let go");
	port_attr.vl.low_cnt = 1;
	port_attr.vl.low[0] = (struct ur_vl_entry){1, 1};
	for (unsigned sl = 0; sl < 16; sl++)
		port_attr.vl.sl2vl[sl] = 1;
	give(1, request(1, 10, 0));
	ur_switch_set_port(sw, 4, &port_attr, now_ns);
	ur_switch_validate(sw);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_NO_SERVICE), 2, "the lane is gone");
}

Test(switch_admission, a_switch_that_does_not_hold_passes_all)
{
	bed_attr();
	bed_start();
	introduce();
	notify(UR_ADM_A, 1);
	cr_assert_eq(give(1, request(1, 10, 0)), 1);
	cr_assert_eq(take(4, 64), 1);
}

/* What is taken from the switch, of each queue pair: in order, as far as it was not dropped. */
static void check_order(uint32_t last[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t qpn = qpn_at(i), psn = psn_at(i);

		if (tx[i].frame.data[14 + 20 + 8] == UR_EXT_NOTIFY)
			continue;
		cr_assert(psn > last[qpn % 64], "QPN %u: %u after %u", qpn, psn, last[qpn % 64]);
		last[qpn % 64] = psn;
	}
}

/* Whatever comes: every frame ends, in the order of its queue pair, after 500 us at the latest. */
Test(switch_admission, random_statuses_and_requests)
{
	uint32_t last[64] = {0}, psn = 0;
	uint64_t given = 0, taken = 0, held = 0;

	for (unsigned seed = 1; seed <= 20; seed++) {
		uint16_t generation = 0;

		srand(seed);
		start();
		memset(last, 0, sizeof(last));
		for (unsigned step = 0; step < 3000; step++) {
			unsigned what = (unsigned)rand() % 16, src = 1 + (unsigned)rand() % 3, n;
			uint32_t qpn = src * 16 + (unsigned)rand() % 16;

			if (what < 10) {
				given += give((uint8_t)src, part(src, qpn, (uint8_t)(rand() % 4),
								 rand() % 2, ++psn));
			} else if (what < 13) {
				generation = (uint16_t)(generation + rand() % 3);
				notify((uint8_t)(rand() % 4), generation);
			} else if (what < 15) {
				now_ns += (uint64_t)(rand() % 300000);
			} else {
				ur_switch_set_port(sw, 4, &port_attr, now_ns);
			}
			n = take(4, (unsigned)rand() % 8);
			check_order(last, n);
			taken += n;
		}
		now_ns += 500000;
		for (unsigned n; (n = take(4, 64)) > 0; taken += n)
			check_order(last, n);
		cr_assert_eq(ur_switch_queued(sw), 0);
		held += counters(1).held + counters(2).held + counters(3).held;
	}
	cr_assert_eq(given, taken);
	cr_assert_gt(held, 1000);
}
