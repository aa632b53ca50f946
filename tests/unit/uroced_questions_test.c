/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "questions.h"

#define LIAR	  7
#define HONEST	  9
#define NOWHERE	  0x0a000000
#define NEIGHBOUR 0xc0a80001

static struct questions q;

static unsigned of(uint8_t client)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < q.cnt; i++)
		cnt += q.of[i].client == client;
	return cnt;
}

/* UROCED-KERNEL-02 */
Test(uroced_questions, a_client_that_asks_for_everything_leaves_room_for_others)
{
	struct question *due;

	for (uint32_t i = 0; i < 1000; i++)
		questions_add(&q, NOWHERE + i, LIAR, i);
	cr_assert_eq(q.cnt, QUESTIONS);
	for (uint32_t i = 0; i < QUESTIONS / 2; i++) {
		questions_add(&q, NEIGHBOUR + i, HONEST, 2000);
		questions_add(&q, NOWHERE + 5000 + i, LIAR, 2000);
	}
	cr_assert_eq(of(HONEST), QUESTIONS / 2, "no question of another client was dropped");
	cr_assert_eq(of(LIAR), QUESTIONS / 2);
	/* Shares stay, whoever asks more. */
	for (uint32_t i = 0; i < 1000; i++) {
		questions_add(&q, NOWHERE + 10000 + i, LIAR, 3000);
		questions_add(&q, NEIGHBOUR + 10000 + i, HONEST, 3000);
	}
	cr_assert_eq(of(HONEST), QUESTIONS / 2);
	questions_add(&q, NEIGHBOUR + 90000, HONEST + 1, 4000);
	cr_assert_eq(of(HONEST + 1), 1);
	cr_assert_eq(q.cnt, QUESTIONS);
	/* All of them come up. */
	for (unsigned left = QUESTIONS; left; left--) {
		due = questions_due(&q, 5000);
		cr_assert_not_null(due);
		questions_remove(&q, due);
	}
	cr_assert(!questions_are_due(&q, UINT64_MAX) && !questions_due(&q, UINT64_MAX));
}

/* However slowly they are looked for, in turn. */
Test(uroced_questions, each_comes_up_before_any_comes_up_again)
{
	bool seen[QUESTIONS] = {false};
	uint64_t now_ns = 1;

	for (uint32_t i = 0; i < QUESTIONS; i++)
		questions_add(&q, NOWHERE + i, LIAR, now_ns);
	for (unsigned i = 0; i < QUESTIONS; i++, now_ns += QUESTIONS_LOOK_NS / 5) {
		const struct question *due = questions_due(&q, now_ns);

		cr_assert_not_null(due);
		cr_assert_not(seen[due->target - NOWHERE], "question %u after %u", due->target, i);
		seen[due->target - NOWHERE] = true;
	}
}

Test(uroced_questions, each_waits_its_time_and_is_asked_once)
{
	struct question *a, *b;

	questions_add(&q, NEIGHBOUR, HONEST, 100);
	questions_add(&q, NEIGHBOUR, LIAR, 200);
	cr_assert_eq(q.cnt, 1, "an answer is for all");
	questions_add(&q, NOWHERE, LIAR, 300);
	cr_assert(!questions_are_due(&q, 99) && questions_are_due(&q, 100));
	a = questions_due(&q, 300);
	b = questions_due(&q, 300);
	cr_assert(a && b && a->target == NEIGHBOUR && b->target == NOWHERE);
	cr_assert_eq(b->until_ns, 300 + QUESTIONS_WAIT_NS);
	cr_assert_null(questions_due(&q, 300 + QUESTIONS_LOOK_NS - 1));
	cr_assert_eq(questions_due(&q, 300 + QUESTIONS_LOOK_NS), a);
	questions_remove(&q, a);
	cr_assert_eq(questions_due(&q, 300 + QUESTIONS_LOOK_NS)->target, NOWHERE);
}
