/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "edge/direct_ring.h"

#define FRAME_MAX   100 /* of which a slot has some more */
#define GUARD_BYTES 256
#define GUARD	    0xa5

/* Both ends in one memory, with bytes around it that nobody may touch. */
static struct {
	uint8_t *all, *memory;
	size_t bytes;
	struct ur_direct_ring end[2];
	uint32_t in[2], out[2]; /* frames that each end has sent, and taken from the other one */
} t;

static void set_up(void)
{
	size_t more;

	memset(&t, 0, sizeof(t));
	t.bytes = ur_direct_bytes(FRAME_MAX);
	more = t.bytes + 2 * GUARD_BYTES;
	t.all = aligned_alloc(64, (more + 63) / 64 * 64);
	cr_assert_not_null(t.all);
	memset(t.all, GUARD, more);
	t.memory = t.all + GUARD_BYTES;
	memset(t.memory, 0, t.bytes);
	for (unsigned i = 0; i < 2; i++)
		ur_direct_ring_init(&t.end[i], t.memory, FRAME_MAX, i);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < GUARD_BYTES; i++)
		cr_assert(t.all[i] == GUARD && t.memory[t.bytes + i] == GUARD, "%u", i);
	free(t.all);
}

TestSuite(direct_ring, .init = set_up, .fini = tear_down);

/* As if this end had sent so many frames already, and the other one had taken them. */
static void begin_at(unsigned end, uint32_t frames)
{
	t.end[end].sent = t.in[end] = t.end[!end].taken = t.out[!end] = frames;
	t.end[end].free_until = frames + UR_DIRECT_SLOTS;
	atomic_store(&t.end[!end].own->head, frames);
}

/* ---- one honest end and what it sends ---- */

static uint32_t length(uint32_t frame)
{
	return 1 + frame * 7 % FRAME_MAX;
}

static uint8_t content(unsigned end, uint32_t frame, uint32_t i)
{
	return (uint8_t)(frame * 31 + i + end * 101);
}

static bool is_within(const void *side, const void *at)
{
	const uint8_t *first = (const uint8_t *)side + sizeof(struct ur_direct_side),
		      *end = (const uint8_t *)side + t.bytes / 2, *p = at;

	return p >= first && p + FRAME_MAX <= end;
}

/* False: the ring is full. */
static bool push(unsigned end)
{
	struct ur_direct_ring *r = &t.end[end];
	uint8_t *room = ur_direct_room(r);
	uint32_t len = length(t.in[end]);

	if (!room)
		return false;
	cr_assert(is_within(r->own, room));
	for (uint32_t i = 0; i < len; i++)
		room[i] = content(end, t.in[end], i);
	ur_direct_push(r, len);
	t.in[end]++;
	return true;
}

/* Takes so many frames, which have to be there, whole and in order. */
static void take(unsigned end, uint32_t cnt)
{
	struct ur_direct_ring *r = &t.end[end];
	uint32_t len;

	cr_assert_eq(ur_direct_waiting(r, cnt), cnt);
	for (uint32_t i = 0; i < cnt; i++, t.out[end]++) {
		const uint8_t *frame = ur_direct_frame(r, i, &len);

		cr_assert_eq(len, length(t.out[end]), "frame %u", t.out[end]);
		for (uint32_t k = 0; k < len; k++)
			cr_assert_eq(frame[k], content(!end, t.out[end], k), "frame %u, byte %u",
				     t.out[end], k);
	}
	ur_direct_take(r, cnt);
}

static void exchange(unsigned rounds)
{
	for (unsigned n = 0; n < rounds; n++)
		for (unsigned end = 0; end < 2; end++) {
			unsigned cnt = 1 + (n * 13 + end * 5) % UR_DIRECT_SLOTS;

			for (unsigned i = 0; i < cnt; i++)
				cr_assert(push(end));
			/* As many as have arrived, at most as many as are wanted. */
			cr_assert_eq(ur_direct_waiting(&t.end[!end], UINT32_MAX), cnt);
			cr_assert_eq(ur_direct_waiting(&t.end[!end], cnt / 2), cnt / 2);
			take(!end, cnt / 3);
			take(!end, cnt - cnt / 3);
			cr_assert_eq(ur_direct_waiting(&t.end[!end], UINT32_MAX), 0);
		}
}

/* UROCED-DIRECT-01 */
Test(direct_ring, frames_arrive_in_order_and_whole)
{
	exchange(300);
	cr_assert_gt(t.in[0], 10 * UR_DIRECT_SLOTS, "around several times");
}

Test(direct_ring, counters_wrap_around)
{
	for (unsigned end = 0; end < 2; end++)
		begin_at(end, UINT32_MAX - 1000 - end * 77);
	exchange(100);
	cr_assert(t.in[0] < UINT32_MAX / 2 && t.in[1] < UINT32_MAX / 2, "around");
}

/* UROCED-DIRECT-03 */
Test(direct_ring, a_full_ring_takes_a_frame_for_each_that_is_taken)
{
	static const uint32_t begin[] = {0, UINT32_MAX - 300};

	for (unsigned b = 0; b < 2; b++) {
		begin_at(1, begin[b]);
		for (unsigned i = 0; i < UR_DIRECT_SLOTS; i++)
			cr_assert(push(1));
		for (unsigned taken = 1; taken <= 3 * UR_DIRECT_SLOTS; taken++) {
			cr_assert_not(push(1));
			cr_assert_not(push(1), "and stays full");
			take(0, 1);
			cr_assert(push(1));
		}
		cr_assert_not(push(1));
		take(0, UR_DIRECT_SLOTS);
		memset(t.memory, 0, t.bytes);
	}
}

Test(direct_ring, an_end_is_ready_once_it_says_so)
{
	cr_assert_not(ur_direct_is_ready(&t.end[0]));
	ur_direct_set_ready(&t.end[0]);
	cr_assert_not(ur_direct_is_ready(&t.end[0]), "it is the other end that counts");
	cr_assert(ur_direct_is_ready(&t.end[1]));
	ur_direct_set_ready(&t.end[1]);
	cr_assert(ur_direct_is_ready(&t.end[0]));
	memset(t.memory, 0, t.bytes);
	cr_assert(ur_direct_is_ready(&t.end[0]), "it does not become unready");
}

Test(direct_ring, an_end_that_sleeps_says_so_to_the_other_one)
{
	for (unsigned end = 0; end < 2; end++) {
		for (int again = 0; again < 2; again++) {
			cr_assert_not(ur_direct_must_wake(&t.end[!end]));
			ur_direct_set_sleeps(&t.end[end], true);
			cr_assert(ur_direct_must_wake(&t.end[!end]));
			cr_assert(ur_direct_must_wake(&t.end[!end]), "it was not woken");
			ur_direct_set_woken(&t.end[!end]);
			cr_assert_not(ur_direct_must_wake(&t.end[!end]), "it was woken");
			cr_assert_not(ur_direct_must_wake(&t.end[end]));
			ur_direct_set_sleeps(&t.end[end], false);
		}
		ur_direct_set_sleeps(&t.end[end], true);
		ur_direct_set_sleeps(&t.end[end], false);
		cr_assert_not(ur_direct_must_wake(&t.end[!end]), "it is awake");
	}
}

/* ---- the other end lies ---- */

static struct ur_direct_slot *slot(unsigned end, uint32_t frame)
{
	const struct ur_direct_ring *r = &t.end[end];

	return (void *)(r->own->slots + (size_t)(frame % UR_DIRECT_SLOTS) * r->slot_bytes);
}

static void set_head(unsigned end, uint32_t head)
{
	atomic_store(&t.end[end].own->head, head);
}

/* UROCED-DIRECT-01 */
Test(direct_ring, a_head_that_cannot_be_is_that_of_a_full_ring)
{
	static const uint32_t begin[] = {0, 5, UINT32_MAX - UR_DIRECT_SLOTS - 2, 1u << 31};

	for (unsigned b = 0; b < sizeof(begin) / sizeof(begin[0]); b++) {
		uint32_t full = begin[b] + UR_DIRECT_SLOTS;
		const uint32_t bad[] = {full + 1,   full + UR_DIRECT_SLOTS, begin[b] - 1,
					begin[b],   begin[b] - (1u << 30),  full + (1u << 31),
					full + 1000};

		begin_at(0, begin[b]);
		for (unsigned i = 0; i < UR_DIRECT_SLOTS; i++)
			cr_assert(push(0));
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			set_head(1, bad[i]);
			cr_assert_not(push(0), "begin %u, head %u", begin[b], bad[i]);
		}
		/* It never has more frames than the ring has slots. */
		set_head(1, full);
		for (unsigned i = 0; i < UR_DIRECT_SLOTS; i++)
			cr_assert(push(0));
		cr_assert_not(push(0));
	}
}

/* The frames that were there before stay where they are, and further ones arrive. */
Test(direct_ring, a_length_that_cannot_be_is_none)
{
	static const uint32_t bad[] = {FRAME_MAX + 1, FRAME_MAX + 28, 0x80000000, UINT32_MAX};
	uint32_t len;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert(push(1));
		atomic_store(&slot(1, t.in[1] - 1)->len, bad[i]);
		cr_assert_eq(ur_direct_waiting(&t.end[0], 8), 1);
		cr_assert(is_within(t.end[1].own, ur_direct_frame(&t.end[0], 0, &len)));
		cr_assert_eq(len, 0, "%u", bad[i]);
		ur_direct_take(&t.end[0], 1);
		t.out[0]++;
	}
	cr_assert(push(1));
	atomic_store(&slot(1, t.in[1] - 1)->len, FRAME_MAX);
	ur_direct_frame(&t.end[0], 0, &len);
	cr_assert_eq(len, FRAME_MAX);
	ur_direct_take(&t.end[0], 1);
	t.out[0]++;
	cr_assert(push(1));
	take(0, 1);
}

Test(direct_ring, a_turn_that_is_wrong_is_no_frame)
{
	static const uint32_t wrong[] = {0, 1, 2, 4, 3 + UR_DIRECT_SLOTS, UINT32_MAX, 0x80000003};

	for (unsigned i = 0; i < 3; i++)
		cr_assert(push(1));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		atomic_store(&slot(1, 2)->turn, wrong[i]);
		cr_assert_eq(ur_direct_waiting(&t.end[0], 8), 2, "turn %u", wrong[i]);
	}
	take(0, 2);
	cr_assert_eq(ur_direct_waiting(&t.end[0], 8), 0);
	atomic_store(&slot(1, 2)->turn, 3);
	take(0, 1);
}

/* All slots say that they are full: a call finds each once. */
Test(direct_ring, no_call_finds_more_frames_than_there_are_slots)
{
	for (uint32_t i = 0; i < UR_DIRECT_SLOTS; i++)
		atomic_store(&slot(1, i)->turn, i + 1);
	cr_assert_eq(ur_direct_waiting(&t.end[0], UINT32_MAX), UR_DIRECT_SLOTS);
	ur_direct_take(&t.end[0], UR_DIRECT_SLOTS);
	cr_assert_eq(ur_direct_waiting(&t.end[0], UINT32_MAX), 0);
}

/* ---- at random ---- */

static uint64_t state;

static uint32_t any(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(state >> 33) % below;
}

static void write_garbage(void *at, size_t bytes)
{
	size_t first = any((uint32_t)bytes), cnt = 1 + any(any(4) ? 8 : 4096);

	for (size_t i = first; i < bytes && i < first + cnt; i++)
		((uint8_t *)at)[i] = (uint8_t)any(256);
}

/* Words that an end computes with. */
static void write_words(unsigned end)
{
	struct ur_direct_side *s = t.end[end].own;
	uint32_t near = t.end[any(2)].sent + any(300) - 150;

	switch (any(5)) {
	case 0:
		atomic_store(&s->head, near);
		break;
	case 1:
		atomic_store(&s->sleeps, any(3));
		break;
	case 2:
		atomic_store(&s->ready, any(2));
		break;
	case 3:
		atomic_store(&slot(end, near)->turn, near + 1);
		break;
	default:
		atomic_store(&slot(end, near)->len, any(3) ? any(2 * FRAME_MAX) : UINT32_MAX);
	}
}

static void write_to_side(unsigned end)
{
	if (any(2))
		write_words(end);
	else
		write_garbage(t.end[end].own, t.bytes / 2);
}

/*
 * UROCED-DIRECT-01: End 1 does what it likes with the side of end 0, which end 0 must not notice: it receives what was sent, and sends when there
 * is room. End 1 knows by itself how much room it has; what it writes as its own head is true.
 */
Test(direct_ring, what_is_written_to_the_own_side_changes_nothing)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		state = seed;
		tear_down();
		set_up();
		if (seed % 2) {
			begin_at(0, UINT32_MAX - 2000);
			begin_at(1, UINT32_MAX - 1000);
		}
		for (unsigned n = 0; n < 5000; n++) {
			struct ur_direct_ring *victim = &t.end[0], *liar = &t.end[1];
			uint32_t sent = t.in[1] - t.out[0], cnt;

			liar->free_until = t.out[0] + UR_DIRECT_SLOTS;
			switch (any(4)) {
			case 0:
				write_to_side(0);
				break;
			case 1:
				cr_assert_eq(ur_direct_waiting(victim, UINT32_MAX), sent, "seed %u",
					     seed);
				take(0, any(sent + 1));
				break;
			case 2:
				for (cnt = any(40); cnt && liar->sent != liar->free_until; cnt--)
					cr_assert(push(1));
				break;
			default:
				for (cnt = any(40); cnt; cnt--) {
					bool room = t.in[0] - t.out[1] < UR_DIRECT_SLOTS;

					cr_assert_eq(push(0), room, "seed %u", seed);
				}
				t.out[1] += any(t.in[0] - t.out[1] + 1);
				set_head(1, t.out[1]);
			}
		}
	}
}

/* What one end gets while the other one writes anywhere; frames that it takes are of no interest. */
static void look(unsigned end, unsigned seed)
{
	struct ur_direct_ring *r = &t.end[end];
	uint32_t cnt, len, most = any(200);
	uint8_t *room;

	for (unsigned i = any(200); i; i--) {
		room = ur_direct_room(r);
		if (!room)
			break;
		cr_assert(is_within(r->own, room), "seed %u", seed);
		memset(room, 0x5a, FRAME_MAX);
		ur_direct_push(r, any(FRAME_MAX + 1));
		cr_assert_leq(r->free_until - r->sent, UR_DIRECT_SLOTS, "seed %u", seed);
	}
	cnt = ur_direct_waiting(r, most);
	cr_assert(cnt <= most && cnt <= UR_DIRECT_SLOTS, "seed %u", seed);
	for (uint32_t i = 0; i < cnt; i++) {
		cr_assert(is_within(r->other, ur_direct_frame(r, i, &len)), "seed %u", seed);
		cr_assert_leq(len, FRAME_MAX, "seed %u", seed);
	}
	ur_direct_take(r, cnt);
}

/* UROCED-DIRECT-01: each lies to the other one. The bytes around the memory are looked at by tear_down(). */
Test(direct_ring, no_end_leaves_its_memory_whatever_the_other_one_writes)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		state = seed * 1000;
		tear_down();
		set_up();
		for (unsigned n = 0; n < 3000; n++) {
			unsigned end = any(2);

			for (unsigned lies = any(4); lies; lies--)
				write_to_side(any(8) ? !end : end);
			look(end, seed);
		}
	}
}
