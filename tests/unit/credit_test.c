/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/credit.h"

#include <criterion/criterion.h>

#include "wire/bytes.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static uint64_t now_ns = 1;

static struct ur_credit_attr attr_of(uint32_t session)
{
	struct ur_credit_attr a = {
		.buffers = 20 * UR_CREDIT_LANES, .session = session, .life_ns = 100000000};
	uint8_t lane[16], dscp[16], pcp[16];

	for (uint8_t sl = 0; sl < 16; sl++) {
		lane[sl] = sl < 15 ? sl : 7;
		dscp[sl] = sl < 8 ? 8 * sl : 8 * (sl - 8) + 2;
		pcp[sl] = sl % 8;
	}
	ur_credit_map_make(&a.map, lane, dscp, pcp);
	return a;
}

static struct ur_credit end_of(uint32_t session)
{
	struct ur_credit_attr a = attr_of(session);
	struct ur_credit c;

	cr_assert_null(ur_credit_attr_check(&a));
	ur_credit_init(&c, &a);
	return c;
}

/* A message from one end to the other, if one is due. */
static bool tell(struct ur_credit *from, struct ur_credit *to)
{
	uint8_t f[UR_CREDIT_BYTES];

	if (!ur_credit_is_due(from, now_ns))
		return false;
	ur_credit_output(from, f, mac, now_ns);
	cr_assert(ur_credit_is_message(f, sizeof(f)));
	return ur_credit_input(to, f, sizeof(f), now_ns);
}

static void agree(struct ur_credit *a, struct ur_credit *b)
{
	for (unsigned i = 0; i < 4; i++) {
		tell(a, b);
		now_ns += UR_CREDIT_ANSWER;
		tell(b, a);
		now_ns += UR_CREDIT_ANSWER;
	}
	cr_assert(a->on && b->on);
}

/* CREDIT-SESSION-01 */
Test(credit, holds_nothing_back_until_both_ends_have_said_so)
{
	struct ur_credit a = end_of(7), b = end_of(9);

	cr_assert_eq(ur_credit_left(&a, 0), INT32_MAX);
	for (unsigned i = 0; i < 1000; i++)
		ur_credit_sent(&a, 3);
	cr_assert_eq(a.closed, 0);
	cr_assert(tell(&a, &b));
	cr_assert(!a.on && !b.on);
	cr_assert(tell(&b, &a));
	cr_assert(a.on && !b.on);
	cr_assert_eq(ur_credit_left(&a, 3), 20);
	cr_assert(tell(&a, &b));
	cr_assert(b.on);
	cr_assert_eq(ur_credit_left(&b, 14), 20);
	now_ns += UR_CREDIT_ANSWER;
	cr_assert_not(tell(&b, &a), "nothing more to say");
	cr_assert_not(tell(&a, &b));
}

/* CREDIT-GATE-01, CREDIT-HEAL-01 */
Test(credit, closes_a_lane_and_opens_it_with_the_next_message)
{
	struct ur_credit a = end_of(1), b = end_of(2);

	agree(&a, &b);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(a.closed, 0);
		ur_credit_sent(&a, 5);
		ur_credit_received(&b, 5);
		cr_assert(ur_credit_has_room(&b, 5));
		ur_credit_hold(&b, 5);
	}
	cr_assert_eq(a.closed, 1 << 5);
	cr_assert_eq(ur_credit_left(&a, 5), 0);
	cr_assert_not(ur_credit_has_room(&b, 5));
	cr_assert_eq(ur_credit_left(&a, 6), 20, "other lanes have their own");
	for (unsigned i = 0; i < 4; i++)
		ur_credit_free(&b, 5);
	cr_assert_not(ur_credit_is_due(&b, now_ns), "less than a quarter");
	ur_credit_free(&b, 5);
	cr_assert(tell(&b, &a));
	cr_assert_eq(ur_credit_left(&a, 5), 5);
	cr_assert_eq(a.closed, 0);
}

/* CREDIT-HEAL-01: frames that are lost on the link give their buffers back. */
Test(credit, counts_lost_frames_as_received)
{
	struct ur_credit a = end_of(1), b = end_of(2);

	agree(&a, &b);
	for (unsigned i = 0; i < 20; i++)
		ur_credit_sent(&a, 0);
	cr_assert_eq(ur_credit_wait(&a, 1, now_ns), 0);
	now_ns += UR_CREDIT_ASK;
	cr_assert(tell(&a, &b), "it asks");
	cr_assert(tell(&b, &a));
	cr_assert_eq(ur_credit_left(&a, 0), 20);
	cr_assert_gt(a.cnt.credit_wait_ns, 0);
}

/* CREDIT-LIFE-01 */
Test(credit, a_lane_without_credit_is_stalled_after_its_time)
{
	struct ur_credit a = end_of(1), b = end_of(2);
	uint64_t begin_ns;

	agree(&a, &b);
	for (unsigned i = 0; i < 20; i++) {
		ur_credit_sent(&a, 2);
		ur_credit_received(&b, 2);
		ur_credit_hold(&b, 2);
	}
	begin_ns = now_ns;
	cr_assert_eq(ur_credit_wait(&a, 1 << 2 | 1 << 3, now_ns), 0);
	now_ns = begin_ns + a.life_ns - 1;
	cr_assert_eq(ur_credit_wait(&a, 1 << 2, now_ns), 0);
	now_ns++;
	cr_assert_eq(ur_credit_wait(&a, 1 << 2, now_ns), 1 << 2);
	cr_assert_eq(ur_credit_wait(&a, 1 << 2, now_ns), 0, "once");
	cr_assert_eq(a.stalled, 1 << 2);
	cr_assert_eq(a.cnt.credit_stalls, 1);
	cr_assert_eq(a.cnt.credit_wait_ns, a.life_ns);
	for (unsigned i = 0; i < 20; i++)
		ur_credit_free(&b, 2);
	cr_assert(tell(&b, &a));
	cr_assert_eq(a.stalled, 0);
	cr_assert_eq(ur_credit_left(&a, 2), 20);
}

/* CREDIT-LIFE-01: a lane that had nothing to send for a moment has not waited all the time. */
Test(credit, only_time_with_frames_counts)
{
	struct ur_credit a = end_of(1), b = end_of(2);

	agree(&a, &b);
	for (unsigned i = 0; i < 20; i++)
		ur_credit_sent(&a, 0);
	ur_credit_wait(&a, 1, now_ns);
	now_ns += a.life_ns / 2;
	ur_credit_wait(&a, 0, now_ns);
	ur_credit_wait(&a, 1, now_ns);
	now_ns += a.life_ns / 2;
	cr_assert_eq(ur_credit_wait(&a, 1, now_ns), 0);
}

/* CREDIT-SESSION-01 */
Test(credit, an_end_that_restarts_begins_anew)
{
	struct ur_credit a = end_of(1), b = end_of(2);

	agree(&a, &b);
	for (unsigned i = 0; i < 20; i++) {
		ur_credit_sent(&a, 0);
		ur_credit_received(&b, 0);
		ur_credit_hold(&b, 0);
	}
	b = end_of(3);
	tell(&b, &a);
	cr_assert_not(a.on, "its limits were those of the old session");
	cr_assert_eq(a.closed, 0);
	agree(&a, &b);
	cr_assert_eq(ur_credit_left(&a, 0), 20);
}

/* CREDIT-SESSION-01, CREDIT-BOUND-01: what is held after a link flap is not promised again. */
Test(credit, buffers_outlive_a_session)
{
	struct ur_credit a = end_of(1), b = end_of(2);

	agree(&a, &b);
	for (unsigned i = 0; i < 15; i++) {
		ur_credit_sent(&a, 0);
		ur_credit_received(&b, 0);
		ur_credit_hold(&b, 0);
	}
	ur_credit_restart(&a, NULL);
	ur_credit_restart(&b, NULL);
	agree(&a, &b);
	cr_assert_eq(ur_credit_left(&a, 0), 5);
}

/* CREDIT-SESSION-01 */
Test(credit, silence_opens_the_lanes)
{
	struct ur_credit a = end_of(1), b = end_of(2);
	uint8_t f[UR_CREDIT_BYTES];

	agree(&a, &b);
	for (unsigned i = 0; i < 20; i++)
		ur_credit_sent(&a, 0);
	cr_assert_eq(a.closed, 1);
	for (unsigned i = 0; i < 12; i++) {
		now_ns += UR_CREDIT_HELLO;
		cr_assert(ur_credit_is_due(&a, now_ns));
		ur_credit_output(&a, f, mac, now_ns);
	}
	cr_assert_not(a.on);
	cr_assert_eq(a.cnt.credit_silences, 1);
	cr_assert_eq(a.closed, 0);
	cr_assert(ur_credit_input(&b, f, sizeof(f), now_ns));
	cr_assert_not(b.on, "it is told that it is not heard");
}

/* A port that has one lane for everything gives it all buffers. */
Test(credit, buffers_go_to_the_lanes_in_use)
{
	struct ur_credit_attr attr = attr_of(5);
	struct ur_credit a, b = end_of(6);
	static const uint8_t one[16] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 15};
	static const uint8_t none[16];

	ur_credit_map_make(&attr.map, one, none, none);
	ur_credit_init(&a, &attr);
	agree(&a, &b);
	cr_assert_eq(ur_credit_left(&a, 4), 20 * UR_CREDIT_LANES);
	cr_assert_leq(ur_credit_left(&a, 5), 0);
}

static uint8_t lane(const struct ur_credit_map *m, uint32_t len, const uint8_t *f)
{
	return ur_credit_lane_of(m, f, len);
}

/* CREDIT-BOUND-01: lane after lane is given all buffers, and fills them. */
Test(credit, new_maps_promise_no_buffer_twice)
{
	struct ur_credit b = end_of(9);
	struct ur_credit_attr attr = attr_of(7);
	struct ur_credit a;
	uint32_t held = 0;

	ur_credit_init(&a, &attr);
	agree(&a, &b);
	for (uint8_t vl = 0; vl < UR_CREDIT_LANES; vl++) {
		memset(&a.map, vl, sizeof(a.map));
		a.next_ns = 0;
		cr_assert(tell(&a, &b));
		b.next_ns = 0;
		cr_assert(tell(&b, &a));
		for (; ur_credit_left(&a, vl) > 0; held++) {
			ur_credit_sent(&a, vl);
			ur_credit_received(&b, vl);
			if (ur_credit_has_room(&b, vl))
				ur_credit_hold(&b, vl);
		}
		cr_assert_leq(held, attr.buffers, "lane %u", vl);
	}
	cr_assert_eq(b.held, attr.buffers);
}

Test(credit, the_lane_of_a_frame)
{
	struct ur_credit_attr a = attr_of(1);
	uint8_t f[64] = {2, 0, 0, 0, 0, 1};

	cr_assert_eq(lane(&a.map, 13, f), UR_CREDIT_NONE);
	cr_assert_eq(lane(&a.map, 60, f), 0);
	ur_store16(f + 12, 0x0800);
	f[14] = 0x45;
	f[15] = 40 << 2;
	cr_assert_eq(lane(&a.map, 60, f), 5);
	cr_assert_eq(lane(&a.map, 33, f), 0, "no whole IP header");
	f[15] = 10 << 2;
	cr_assert_eq(lane(&a.map, 60, f), 9);
	ur_store16(f + 12, 0x86dd);
	f[14] = 0x60 | 48 >> 2;
	f[15] = 0;
	cr_assert_eq(lane(&a.map, 60, f), 6);
	ur_store16(f + 12, 0x8100);
	f[14] = 3 << 5;
	f[15] = 0;
	ur_store16(f + 16, 0x0806);
	cr_assert_eq(lane(&a.map, 60, f), 3);
	cr_assert_eq(lane(&a.map, 17, f), UR_CREDIT_NONE);
	memcpy(f, (const uint8_t[]){2, 0x4c, 0x49, 0x44}, 4);
	cr_assert_eq(lane(&a.map, 60, f), UR_CREDIT_NONE, "management has no credits");
	memcpy(f, (const uint8_t[]){1, 0x80, 0xc2, 0, 0, 0}, 6);
	cr_assert_eq(lane(&a.map, 60, f), UR_CREDIT_NONE);
}

Test(credit, malformed_messages_change_nothing)
{
	struct ur_credit a = end_of(1), b = end_of(2), was;
	uint8_t f[UR_CREDIT_BYTES], g[UR_CREDIT_BYTES];

	agree(&a, &b);
	ur_credit_output(&a, f, mac, now_ns);
	for (uint32_t len = 19; len < sizeof(f); len++) {
		was = b;
		cr_assert_not(ur_credit_input(&b, f, len, now_ns));
		was.cnt.credit_messages_invalid++;
		cr_assert_eq(memcmp(&was, &b, sizeof(b)), 0);
	}
	memcpy(g, f, sizeof(f));
	g[19] = 2;
	cr_assert_not(ur_credit_input(&b, g, sizeof(g), now_ns), "another version");
	memcpy(g, f, sizeof(f));
	memset(g + 22, 0, 4);
	cr_assert_not(ur_credit_input(&b, g, sizeof(g), now_ns), "no session");
	for (unsigned i = 0; i < 19; i++) {
		memcpy(g, f, sizeof(f));
		g[i] ^= 1;
		cr_assert_eq(ur_credit_is_message(g, sizeof(g)), i >= 6 && i < 12, "byte %u", i);
	}
}

/* ---- model ---- */

#define QUEUE 8192

struct item {
	bool message;
	uint8_t vl, f[UR_CREDIT_BYTES];
	bool gated; /* a frame sent while limits held */
	uint32_t epoch;
};

struct way {
	struct item item[QUEUE];
	unsigned head, tail;
};

struct side {
	struct ur_credit c;
	uint32_t held[UR_CREDIT_LANES];
	struct way out;
	uint32_t epoch; /* of the run since its last start */
};

static struct side side[2];
static uint64_t seed;
static unsigned loss_percent;

static uint32_t rnd(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % n;
}

static struct item *put(struct side *s)
{
	struct item *i = &s->out.item[s->out.tail % QUEUE];

	if (s->out.tail - s->out.head == QUEUE || rnd(100) < loss_percent) {
		static struct item lost;

		return &lost;
	}
	s->out.tail++;
	return i;
}

static void send_frame(struct side *s)
{
	unsigned vl = rnd(UR_CREDIT_LANES);
	struct item *i;

	if (ur_credit_left(&s->c, vl) <= 0) {
		cr_assert(s->c.closed >> vl & 1);
		ur_credit_wait(&s->c, (uint16_t)(1u << vl), now_ns);
		return;
	}
	cr_assert_not(s->c.closed >> vl & 1);
	i = put(s);
	*i = (struct item){.vl = (uint8_t)vl, .gated = s->c.on, .epoch = s->epoch};
	ur_credit_sent(&s->c, vl);
}

static void send_message(struct side *s)
{
	struct item *i;

	if (!ur_credit_is_due(&s->c, now_ns))
		return;
	i = put(s);
	i->message = true;
	ur_credit_output(&s->c, i->f, mac, now_ns);
}

static void receive(struct side *s, struct side *from)
{
	struct item *i;

	if (from->out.head == from->out.tail)
		return;
	i = &from->out.item[from->out.head++ % QUEUE];
	if (i->message) {
		cr_assert(ur_credit_input(&s->c, i->f, UR_CREDIT_BYTES, now_ns));
		return;
	}
	ur_credit_received(&s->c, i->vl);
	/* CREDIT-BOUND-01: a frame that had a credit finds a buffer. */
	if (s->c.on && i->gated && from->c.on && i->epoch == from->epoch)
		cr_assert(ur_credit_has_room(&s->c, i->vl));
	if (ur_credit_has_room(&s->c, i->vl) && rnd(8)) {
		ur_credit_hold(&s->c, i->vl);
		s->held[i->vl]++;
	}
	ur_credit_settle(&s->c, i->vl);
}

static void free_some(struct side *s)
{
	unsigned vl = rnd(UR_CREDIT_LANES);

	if (!s->held[vl])
		return;
	s->held[vl]--;
	ur_credit_free(&s->c, vl);
}

static void check_side(const struct side *s)
{
	uint32_t all = 0;

	for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++) {
		cr_assert_eq(s->c.rx[vl].held, s->held[vl]);
		cr_assert_leq(s->held[vl], 20);
		all += s->held[vl];
	}
	cr_assert_eq(s->c.held, all);
}

static void step_model(bool restarts)
{
	struct side *s = &side[rnd(2)], *other = &side[s == side];

	now_ns += rnd(2000);
	switch (rnd(restarts ? 20000 : 8)) {
	case 0:
		free_some(s);
		break;
	case 1: /* the process dies: what it had on the way arrives, its buffers are gone */
		if (!restarts)
			break;
		s->c = end_of(1 + rnd(1u << 30));
		memset(s->held, 0, sizeof(s->held));
		s->epoch++;
		other->epoch++; /* what the other sends by old limits until it knows */
		break;
	default:
		switch (rnd(4)) {
		case 0:
			send_message(s);
			send_frame(s);
			break;
		case 1:
			send_message(s);
			break;
		case 2:
			receive(s, other);
			break;
		default:
			free_some(s);
		}
	}
	check_side(s);
}

static void settle_model(void)
{
	loss_percent = 0;
	for (unsigned i = 0;
	     i < 400000 && side[0].c.held + side[1].c.held + (side[0].out.tail - side[0].out.head) +
				   (side[1].out.tail - side[1].out.head);
	     i++) {
		now_ns += 1000;
		receive(&side[i & 1], &side[~i & 1]);
		free_some(&side[i & 1]);
	}
	for (unsigned i = 0; i < 64; i++) {
		now_ns += UR_CREDIT_HELLO;
		send_message(&side[i & 1]);
		receive(&side[~i & 1], &side[i & 1]);
	}
}

static void run_model(bool restarts, unsigned loss)
{
	for (unsigned run = 0; run < 6; run++) {
		seed = 1000 * loss + run;
		loss_percent = loss;
		for (unsigned i = 0; i < 2; i++) {
			memset(&side[i], 0, sizeof(side[i]));
			side[i].c = end_of(i + 1);
		}
		for (unsigned i = 0; i < 60000; i++)
			step_model(restarts);
		settle_model();
		for (unsigned vl = 0; vl < UR_CREDIT_LANES; vl++) {
			cr_assert_eq(ur_credit_left(&side[0].c, vl), 20, "a credit has leaked");
			cr_assert_eq(ur_credit_left(&side[1].c, vl), 20);
		}
	}
}

/* CREDIT-HEAL-01, CREDIT-BOUND-01 */
Test(credit_model, no_loss)
{
	run_model(false, 0);
}

/* CREDIT-HEAL-01, CREDIT-BOUND-01: messages and frames are lost. */
Test(credit_model, losses_leak_no_credit_and_overrun_no_buffer)
{
	run_model(false, 3);
	run_model(false, 30);
}

/* CREDIT-SESSION-01 */
Test(credit_model, restarts)
{
	run_model(true, 0);
	run_model(true, 10);
}
