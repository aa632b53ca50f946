/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_bed.h"
#include "wire/credit.h"

/*
 * Link credits of a switch (docs/design/credits.md): hosts 1, 2 and 3 send to host 4. Each host's end of its link is a
 * struct ur_credit, as in an endpoint. Frames are not IP: lane 0.
 */
#define BUFFERS 375 /* of a port */
#define EACH	(BUFFERS / 15)

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
static struct ur_credit host[BED_PORTS];

static void open_host(unsigned h, uint32_t session)
{
	struct ur_credit_attr a = {.buffers = BUFFERS, .session = session, .life_ns = 100000000};
	uint8_t lane[16];

	for (uint8_t sl = 0; sl < 16; sl++)
		lane[sl] = sl < 15 ? sl : 7;
	ur_credit_map_make(&a.map, lane, attr.sl_dscp, attr.sl_pcp);
	ur_credit_init(&host[h], &a);
}

/* What both ends of each link have to say. */
static void talk(void)
{
	for (uint8_t h = 1; h < BED_PORTS; h++) {
		struct ur_switch_frame f = {frames[frame_at++ % 4096], NULL, UR_CREDIT_BYTES};

		if (ur_switch_wants_message(sw, h, now_ns)) {
			ur_switch_message(sw, h, f.data, mac, now_ns);
			ur_credit_input(&host[h], f.data, f.len, now_ns);
		}
		if (host[h].session && ur_credit_is_due(&host[h], now_ns)) {
			ur_credit_output(&host[h], f.data, mac, now_ns);
			cr_assert_eq(give(h, f), 0);
		}
	}
}

static void settle(void)
{
	for (unsigned i = 0; i < 6; i++) {
		now_ns += UR_CREDIT_ANSWER;
		talk();
	}
}

static void start(bool credits)
{
	bed_attr();
	attr.limits.frames = 512;
	port_attr.lane_bytes = 16384;
	if (credits) {
		port_attr.credit_frames = BUFFERS;
		port_attr.credit_session = 77;
		port_attr.credit_life_ns = 100000000;
	}
	bed_start();
	introduce();
	memset(host, 0, sizeof(host));
	for (unsigned h = 1; credits && h < BED_PORTS; h++)
		open_host(h, h);
	settle();
}

/* Host h sends to host `to` while it has credit, `cap` frames at most. Returns how many. */
static unsigned send_all(unsigned h, unsigned to, unsigned cap)
{
	unsigned n = 0;

	for (; n < cap && ur_credit_left(&host[h], 0) > 0; n++) {
		ur_credit_sent(&host[h], 0);
		give((uint8_t)h, plain(h, to, 1000));
	}
	return n;
}

/* Takes what leads to host h. It keeps nothing: a host gives buffers back at once, unless `keeps`. */
static unsigned receive(unsigned h, unsigned cap, bool keeps)
{
	unsigned n = take((uint8_t)h, cap);

	for (unsigned i = 0; i < n; i++) {
		ur_credit_received(&host[h], 0);
		if (keeps)
			ur_credit_hold(&host[h], 0);
		ur_credit_settle(&host[h], 0);
	}
	return n;
}

static uint64_t lost(void)
{
	uint64_t n = 0;

	for (uint8_t p = 0; p < BED_PORTS; p++)
		for (unsigned vl = 0; vl < UR_SWITCH_LANES; vl++)
			for (unsigned d = 0; d < UR_SWITCH_DROP_CNT; d++)
				n += dropped(p, vl, d);
	return n;
}

/* SWITCH-CREDIT-01: three to one, for a long time. */
Test(switch_credit, an_incast_loses_nothing)
{
	unsigned got = 0, given = 0;

	start(true);
	for (unsigned i = 0; i < 400; i++) {
		for (unsigned h = 1; h < 4; h++)
			given += send_all(h, 4, 40);
		got += receive(4, 7, false);
		now_ns += 1000;
		talk();
	}
	cr_assert_geq(got, 400 * 7 - 7);
	cr_assert_eq(lost(), 0);
	cr_assert_eq(given, got + ur_switch_queued(sw));
	for (unsigned h = 1; h < 4; h++)
		cr_assert_eq(counters((uint8_t)h).credit_overruns, 0);
	while (receive(4, 64, false))
		settle();
	settle();
	for (unsigned h = 1; h < 4; h++)
		cr_assert_eq(ur_credit_left(&host[h], 0), EACH, "a credit has leaked");
}

/* The same without: the lane's queue is full after 16 frames. */
Test(switch_credit, without_credits_it_loses)
{
	start(false);
	for (unsigned h = 1; h < 4; h++)
		cr_assert_eq(send_all(h, 4, 40), 40, "nothing holds it back");
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_QUEUE_FULL), 120 - 16);
}

/* SWITCH-CREDIT-01: a receiver's credits hold the switch back, and the switch's hold the senders back. */
Test(switch_credit, pressure_goes_back_to_the_sender)
{
	start(true);
	cr_assert_eq(send_all(1, 4, 1000), EACH);
	cr_assert_eq(receive(4, 256, true), EACH);
	settle();
	cr_assert_eq(send_all(1, 4, 1000), EACH);
	cr_assert_eq(receive(4, 256, true), 0, "the receiver has no buffer");
	settle();
	cr_assert_eq(send_all(1, 4, 1000), 0);
	cr_assert_eq(send_all(1, 3, 1000), 0, "its lane is full");
	cr_assert_eq(send_all(2, 3, 1000), EACH, "others' are not");
	cr_assert_eq(receive(3, 256, false), EACH);
	for (unsigned i = 0; i < EACH; i++)
		ur_credit_free(&host[4], 0);
	settle();
	cr_assert_eq(receive(4, 256, false), EACH);
	cr_assert_eq(lost(), 0);
	cr_assert_gt(counters(4).credit_wait_ns, 0);
}

/* SWITCH-CREDIT-02: a receiver that takes nothing does not stop the others for longer than the limit. */
Test(switch_credit, a_stuck_receiver_is_drained)
{
	uint64_t begin_ns;

	start(true);
	for (unsigned i = 0; i < 2; i++) {
		send_all(1, 4, 1000);
		receive(4, 256, true);
		settle();
	}
	cr_assert_eq(send_all(1, 3, 1000), 0);
	begin_ns = now_ns;
	while (!dropped(4, 0, UR_SWITCH_DROP_NO_CREDIT)) {
		now_ns += 1000000;
		talk();
		receive(4, 256, true);
		cr_assert_lt(now_ns, begin_ns + 150000000);
	}
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_NO_CREDIT), EACH);
	cr_assert_eq(ur_switch_reap(sw, tx, 256), EACH);
	cr_assert_eq(counters(4).credit_stalls, 1);
	settle();
	cr_assert_eq(send_all(1, 3, 10), 10);
	cr_assert_eq(receive(3, 256, false), 10);
	cr_assert_eq(send_all(1, 4, 10), 10);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_NO_CREDIT), EACH + 10,
		     "at once while it is stalled");
	for (unsigned i = 0; i < EACH; i++)
		ur_credit_free(&host[4], 0);
	settle();
	cr_assert_eq(send_all(1, 4, 10), 10);
	cr_assert_eq(receive(4, 256, false), 10);
}

/* SWITCH-CREDIT-01: a host that offers no credits is served as ever, and cannot take the buffers of those that do. */
Test(switch_credit, neighbours_without_credits)
{
	start(true);
	memset(&host[2], 0, sizeof(host[2])); /* gone; its session lasts for a second */
	now_ns += UR_CREDIT_DEAD;
	settle();
	for (unsigned i = 0; i < 11; i++) {
		now_ns += UR_CREDIT_HELLO;
		talk();
	}
	for (unsigned i = 0; i < 100; i++)
		give(2, plain(2, 4, 1000));
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_QUEUE_FULL), 100 - 16);
	cr_assert_eq(send_all(1, 4, 1000), EACH);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_QUEUE_FULL), 100 - 16);
	cr_assert_eq(counters(2).credit_overruns, 0);
}

/* CREDIT-BOUND-01: one that sends without credit loses only its own guarantee. */
Test(switch_credit, overruns_are_counted)
{
	start(true);
	cr_assert_eq(send_all(1, 4, 1000), EACH);
	for (unsigned i = 0; i < 50; i++)
		give(1, plain(1, 4, 1000));
	cr_assert_eq(counters(1).credit_overruns, 50);
	cr_assert_eq(dropped(4, 0, UR_SWITCH_DROP_QUEUE_FULL), 50 - 16, "as without credits");
}

/* SWITCH-CREDIT-01: floods have no guarantee, and hold no credit. */
Test(switch_credit, floods_give_credit_back_at_once)
{
	start(true);
	for (unsigned i = 0; i < EACH - 1; i++) {
		ur_credit_sent(&host[1], 0);
		give(1, plain(1, 0xffff, 1000));
	}
	settle();
	cr_assert_eq(ur_credit_left(&host[1], 0), EACH);
}

/* CREDIT-SESSION-01: a link that flaps, and a manager that changes lanes. */
Test(switch_credit, new_sessions)
{
	struct ur_switch_port_attr a = port_attr;

	start(true);
	send_all(1, 4, 10);
	ur_switch_set_link(sw, 1, false, now_ns);
	ur_switch_set_link(sw, 1, true, now_ns);
	ur_credit_restart(&host[1], NULL);
	settle();
	cr_assert_eq(ur_credit_left(&host[1], 0), EACH - 10, "its frames are still there");
	receive(4, 256, false);
	settle();
	cr_assert_eq(ur_credit_left(&host[1], 0), EACH);
	a = *ur_switch_port(sw, 4);
	for (unsigned sl = 0; sl < 16; sl++)
		a.vl.sl2vl[sl] = 3;
	ur_switch_set_port(sw, 4, &a, now_ns);
	settle();
	send_all(1, 4, 10);
	cr_assert_eq(take(4, 256), 10);
	cr_assert_eq(tx[0].vl, 3);
	cr_assert_eq(ur_credit_lane_of(&host[4].peer_map, tx[0].frame.data, tx[0].frame.len), 3);
	cr_assert_eq(host[4].rx[3].buffers, BUFFERS);
}

/* Messages are not forwarded, whatever is in them, and cost nothing where credits are off. */
Test(switch_credit, messages_go_no_further)
{
	struct ur_switch_frame f = {frames[0], NULL, UR_CREDIT_BYTES};

	start(false);
	open_host(1, 5);
	ur_credit_output(&host[1], f.data, mac, now_ns);
	cr_assert_eq(give(1, f), 0);
	cr_assert_eq(dropped(1, 0, UR_SWITCH_DROP_RESERVED), 1);
	cr_assert_not(ur_switch_wants_message(sw, 1, now_ns));
	start(true);
	for (uint32_t len = 14; len <= UR_CREDIT_BYTES; len++) {
		f.len = len;
		ur_credit_output(&host[1], f.data, mac, now_ns);
		memset(f.data + 40, (int)len, 100);
		cr_assert_eq(give(1, f), 0);
	}
	cr_assert_gt(counters(1).credit_messages_invalid, 0);
	cr_assert_eq(ur_switch_queued(sw), 0);
}
