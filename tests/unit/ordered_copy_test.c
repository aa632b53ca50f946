/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include <criterion/criterion.h>

#include "end.h"
#include "transport/rc/ordered_copy.h"

#define LEN_MAX 80

Test(ordered_copy, copies_any_length_to_any_place_and_nothing_more)
{
	uint8_t src[LEN_MAX], dst[LEN_MAX + 16];

	for (unsigned i = 0; i < LEN_MAX; i++)
		src[i] = (uint8_t)(7 * i + 1);
	for (uint32_t len = 1; len <= LEN_MAX; len++)
		for (unsigned at = 0; at < 8; at++) {
			memset(dst, 0xee, sizeof(dst));
			ur_ordered_copy(dst + at, src, len);
			cr_assert_arr_eq(dst + at, src, len);
			for (unsigned i = 0; i < sizeof(dst); i++)
				if (i < at || i >= at + len)
					cr_assert_eq(dst[i], 0xee, "%u bytes at %u", len, at);
		}
}

Test(ordered_copy, stores_at_once_what_is_aligned_at_the_end)
{
	cr_assert_eq(ur_ordered_tail(0x1000, 64), 8);
	cr_assert_eq(ur_ordered_tail(0x1004, 64), 4);
	cr_assert_eq(ur_ordered_tail(0x1006, 64), 2);
	cr_assert_eq(ur_ordered_tail(0x1007, 64), 1);
	cr_assert_eq(ur_ordered_tail(0x1008, 8), 8);
	cr_assert_eq(ur_ordered_tail(0x1008, 7), 4);
	cr_assert_eq(ur_ordered_tail(0x1008, 1), 1);
}

#define ROUNDS 150
#define WORDS  32768 /* long enough for another thread to look in the meantime */

static _Alignas(64) uint64_t message[WORDS], seen;

static void *poll_on_the_last_word(void *arg)
{
	uint64_t *wrong = arg;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&message[WORDS - 1], __ATOMIC_ACQUIRE) != round)
			; /* at once, before the writer is done */
		for (unsigned i = WORDS; i-- > 0;)
			*wrong += message[i] != round;
		__atomic_store_n(&seen, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* RESP-STRICT-01 */
Test(ordered_copy, a_poller_on_the_last_word_sees_the_whole_message, .timeout = 60)
{
	static uint64_t src[WORDS];
	uint64_t wrong = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, poll_on_the_last_word, &wrong), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (unsigned i = 0; i < WORDS; i++)
			src[i] = round;
		ur_ordered_copy((uint8_t *)message, (const uint8_t *)src, sizeof(src));
		while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) != round)
			sched_yield();
	}
	pthread_join(thread, NULL);
	cr_assert_eq(wrong, 0);
}

/* WRITEs of every length to every alignment; with `gap`, a later packet arrives before each. */
static void assert_writes_arrive(struct end *e, uint8_t first, uint8_t only, bool gap)
{
	uint32_t psn = 100, ssn = e->qp->rsp.msn.v;

	for (uint16_t len = 0; len <= LEN_MAX; len++)
		for (unsigned at = 1; at <= 8; at++, psn += gap ? 3 : 1) {
			struct ur_packet p = end_packet(e, only, psn, len);
			struct ur_packet later = end_packet(e, first, psn + 1, 256);
			struct ur_packet last = end_packet(e, only - 2, psn + 2, 4);

			p.xth = (struct ur_xth){.ssn = ++ssn};
			later.xth = (struct ur_xth){.ssn = ssn + 1};
			last.xth = (struct ur_xth){.ssn = ssn + 1, .offset = 1};
			later.reth.va = last.reth.va = (uintptr_t)e->buf + 1024;
			later.reth.length = last.reth.length = 260;
			memset(e->buf, 0xee, LEN_MAX + 16);
			p.reth.va += at;
			if (gap)
				cr_assert_eq(end_in(e, later), UR_DROP_NONE);
			cr_assert_eq(end_in(e, p), UR_DROP_NONE);
			if (gap)
				cr_assert_eq(end_in(e, last), UR_DROP_NONE);
			ssn += gap;
			cr_assert_eq(e->buf[at - 1], 0xee);
			cr_assert_eq(memcmp(e->buf + at, p.payload, len), 0, "%u bytes", len);
			cr_assert_eq(e->buf[at + len], 0xee);
		}
}

/* RESP-STRICT-01 */
Test(ordered_copy, a_strict_queue_pair_takes_writes_of_any_length_at_any_address)
{
	struct end *e = END(.mode = UR_MODE_REORDER, .strict = true);

	assert_writes_arrive(e, UR_RC_WRITE_FIRST, UR_RC_WRITE_ONLY, false);
	end_free(e);
	e = END(.mode = UR_MODE_EXTENDED, .strict = true);
	assert_writes_arrive(e, UR_EXT_WRITE_FIRST, UR_EXT_WRITE_ONLY, false);
	end_free(e);
	e = END(.mode = UR_MODE_EXTENDED, .strict = true);
	assert_writes_arrive(e, UR_EXT_WRITE_FIRST, UR_EXT_WRITE_ONLY, true);
	end_free(e);
}
