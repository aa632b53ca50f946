/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "edge/round.h"
#include "edge/slab.h"

/* One of two workers' rounds, on a source whose frames all come from the other worker. */

#define ROOM  4300 /* bytes of a buffer */
#define WAITS 1000 /* frames that the other worker has handed over */

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static struct ur_round r;
static void *engine_mem;
static unsigned in_ring, buffers;

static void make_frame(struct ur_pkt *pkt)
{
	pkt->data = pkt->handle = calloc(1, ROOM);
	pkt->len = 60;
	memcpy(pkt->data, mac, 6);
	pkt->data[12] = 0x88; /* neither IPv4 nor IPv6 */
	pkt->data[13] = 0xb5;
	buffers++;
}

static bool allocate(void *source, struct ur_pkt *pkts, unsigned n)
{
	(void)source;
	for (unsigned i = 0; i < n; i++)
		make_frame(&pkts[i]);
	return true;
}

static void release(void *source, struct ur_pkt *pkts, unsigned n)
{
	(void)source;
	buffers -= n;
	for (unsigned i = 0; i < n; i++)
		free(pkts[i].handle);
}

static unsigned none(void *source, struct ur_pkt *pkts, unsigned n)
{
	(void)source;
	(void)pkts;
	(void)n;
	return 0;
}

static unsigned take(void *source, struct ur_pkt *pkts, unsigned n)
{
	(void)source;
	if (n > in_ring)
		n = in_ring;
	for (unsigned i = 0; i < n; i++)
		make_frame(&pkts[i]);
	in_ring -= n;
	return n;
}

static const struct ur_source_ops ops = {
	.rx = none, .tx = none, .alloc = allocate, .free = release, .take = take};

static void setup(void)
{
	struct ur_engine_attr engine;
	struct ur_round_attr attr = {.ops = &ops, .frame_bytes = ROOM, .cnt = 2};

	ur_engine_attr_default(&engine);
	engine_mem = ur_huge_alloc(ur_engine_size(&engine.limits));
	cr_assert_not_null(engine_mem);
	attr.engine = ur_engine_init(engine_mem, &engine, 0);
	cr_assert_not_null(attr.engine);
	memcpy(attr.mac, mac, 6);
	cr_assert_eq(ur_round_init(&r, &attr, 0), 0);
}

static void teardown(void)
{
	ur_round_fini(&r);
	cr_assert_eq(buffers, 0u);
	ur_huge_free(engine_mem);
}

TestSuite(round, .init = setup, .fini = teardown);

static void loop_back(unsigned n)
{
	while (n--)
		make_frame(&r.loop[r.loop_tail++ % UR_ROUND_LOOPBACK]);
}

/* Each of both gets what a round can send, however much of the other there is. */
Test(round, a_worker_that_sends_to_itself_takes_what_others_hand_over)
{
	unsigned most = UR_ROUND_BURSTS * UR_BURST;

	for (unsigned looped = 0; looped <= most; looped += UR_BURST / 2) {
		in_ring = WAITS;
		loop_back(looped);
		cr_assert_eq(ur_round_run(&r, 0), looped + most, "%u looped", looped);
		cr_assert_eq(WAITS - in_ring, most, "%u looped", looped);
		cr_assert_eq(r.loop_head, r.loop_tail);
	}
	loop_back(3 * UR_BURST);
	in_ring = 5;
	cr_assert_eq(ur_round_run(&r, 0), most + 5);
	cr_assert_eq(r.loop_tail - r.loop_head, (uint32_t)UR_BURST);
}
