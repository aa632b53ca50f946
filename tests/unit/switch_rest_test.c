/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "doze.h"
#include "rest.h"

/* ---- SWITCH-REST-01 ---- */

#define T0 UINT64_C(1000000000)

static struct rest r;

static void begin(void)
{
	rest_begin(&r, false, T0);
}

TestSuite(switch_rest, .init = begin);

Test(switch_rest, alone_it_polls_then_yields_then_sleeps)
{
	rest_busy(&r, T0);
	for (unsigned i = 1; i < REST_POLL; i++)
		cr_assert_eq(rest_idle(&r, T0 + 1), REST_NOT);
	cr_expect_eq(rest_idle(&r, T0 + 1), REST_YIELD);
	rest_yielded(&r, T0 + 1, T0 + REST_LONG_YIELD_NS);
	cr_expect_eq(rest_idle(&r, T0 + REST_YIELD_NS - 1), REST_YIELD);
	cr_expect_eq(rest_idle(&r, T0 + REST_YIELD_NS), REST_SLEEP);
	rest_slept(&r, T0 + REST_YIELD_NS, T0 + 2 * REST_YIELD_NS);
	cr_expect_not(r.urgent, "no other process wants the CPU");
	rest_busy(&r, T0 + 2 * REST_YIELD_NS);
	cr_expect_eq(rest_idle(&r, T0 + 2 * REST_YIELD_NS + 1), REST_NOT, "a frame begins anew");
}

/* A yield that took long: another process has the CPU as well. */
static uint64_t share(void)
{
	rest_yielded(&r, T0, T0 + REST_LONG_YIELD_NS);
	return T0 + REST_LONG_YIELD_NS;
}

Test(switch_rest, on_a_shared_cpu_it_sleeps_soon_and_is_urgent)
{
	uint64_t now_ns = share();

	rest_busy(&r, now_ns);
	cr_expect_eq(rest_idle(&r, now_ns + REST_LINGER_NS - 1), REST_NOT, "more may follow");
	now_ns += REST_LINGER_NS;
	cr_expect_eq(rest_idle(&r, now_ns), REST_SLEEP);
	cr_expect_not(r.urgent, "not before it has slept");
	rest_slept(&r, now_ns, now_ns + 1);
	cr_expect(r.urgent);
	rest_busy(&r, now_ns + 2);
	cr_expect(r.urgent);
	cr_expect_eq(rest_idle(&r, now_ns + 2 + REST_LINGER_NS), REST_SLEEP);
}

/* It always has frames, so it never yields. */
Test(switch_rest, without_the_cpu_while_it_is_busy_it_knows_that_the_cpu_is_shared)
{
	uint64_t now_ns = T0 + REST_SPAN_NS;

	rest_busy(&r, now_ns);
	rest_ran(&r, REST_SPAN_NS, REST_SPAN_NS, now_ns);
	cr_expect_not(r.urgent);
	rest_ran(&r, 100 * REST_SPAN_NS, 100 * REST_SPAN_NS - REST_LOST_NS + 1, now_ns);
	cr_expect_not(r.urgent, "a round that takes long is no sign");
	rest_ran(&r, REST_SPAN_NS, REST_SPAN_NS - REST_LOST_NS, now_ns);
	cr_expect(r.urgent);
	rest_busy(&r, now_ns + REST_CREDIT_MAX_NS - 1);
	cr_expect(r.urgent);
	/* It does not sleep, so it competes as others do, however often they have their turn. */
	rest_busy(&r, now_ns + REST_CREDIT_MAX_NS);
	cr_expect_not(r.urgent);
	now_ns += 3 * REST_CREDIT_MAX_NS;
	rest_busy(&r, now_ns);
	rest_ran(&r, REST_SPAN_NS, 0, now_ns);
	cr_expect_not(r.urgent);
	cr_expect_eq(rest_idle(&r, now_ns + REST_LINGER_NS), REST_SLEEP);
}

/* Time that is not slept, with or without frames. */
Test(switch_rest, it_pays_for_urgency_with_time_asleep)
{
	uint64_t now_ns = share();

	rest_slept(&r, now_ns, now_ns + REST_CREDIT_MAX_NS);
	now_ns += REST_CREDIT_MAX_NS;
	cr_expect(r.urgent);
	rest_busy(&r, now_ns + REST_CREDIT_MAX_NS / 2);
	rest_idle(&r, now_ns + REST_CREDIT_MAX_NS - 1);
	cr_expect(r.urgent);
	rest_busy(&r, now_ns + REST_CREDIT_MAX_NS);
	cr_expect_not(r.urgent);
	now_ns += REST_CREDIT_MAX_NS;
	rest_slept(&r, now_ns, now_ns + REST_CREDIT_MIN_NS / REST_CREDIT_RATIO - 1);
	cr_expect_not(r.urgent, "not for a moment only");
	now_ns += REST_CREDIT_MIN_NS / REST_CREDIT_RATIO - 1;
	rest_slept(&r, now_ns, now_ns + 2);
	cr_expect(r.urgent);
}

/* A client that ends each sleep as soon as it has begun. */
Test(switch_rest, sleeps_that_end_at_once_do_not_keep_it_urgent)
{
	uint64_t now_ns = share(), urgent_ns = 0, began_ns = now_ns;

	r.shared_ns = UINT64_MAX;
	rest_slept(&r, now_ns, now_ns + REST_CREDIT_MAX_NS);
	now_ns += REST_CREDIT_MAX_NS;
	for (unsigned i = 0; i < 100000; i++) {
		urgent_ns += r.urgent ? 5000 : 0;
		now_ns += 5000;
		rest_idle(&r, now_ns);
		rest_slept(&r, now_ns, now_ns + 50);
		now_ns += 50;
	}
	cr_expect_lt(urgent_ns * 10, (now_ns - began_ns) * 2, "950 of 5050, and what was saved");
	cr_expect_gt(urgent_ns * 10, (now_ns - began_ns));
}

Test(switch_rest, after_a_while_it_finds_out_again_whether_it_is_alone)
{
	uint64_t now_ns = share();

	rest_slept(&r, now_ns, now_ns + REST_SHARED_NS - 1);
	cr_expect(r.urgent);
	rest_busy(&r, now_ns + REST_SHARED_NS);
	cr_expect_eq(rest_idle(&r, now_ns + REST_SHARED_NS), REST_NOT);
	cr_expect_not(r.urgent);
}

Test(switch_rest, one_that_polls_never_rests)
{
	rest_begin(&r, true, T0);
	rest_yielded(&r, T0, T0 + REST_LONG_YIELD_NS);
	for (unsigned i = 0; i < 2 * REST_POLL; i++)
		cr_assert_eq(rest_idle(&r, T0 + REST_YIELD_NS + i), REST_NOT);
}

/* ---- SWITCH-DOZE-01 ---- */

#define SHORT_NS 1000000
#define LONG_NS	 999999999

static void *write_once(void *arg)
{
	static const uint64_t one = 1;

	usleep(20000);
	cr_assert_eq(write(*(int *)arg, &one, sizeof(one)), sizeof(one));
	return NULL;
}

TestSuite(switch_doze, .timeout = 120);

Test(switch_doze, what_comes_ends_it_whether_or_not_it_is_read)
{
	static const uint64_t one = 1;
	int fd = eventfd(0, EFD_CLOEXEC);
	bool ended = false;
	pthread_t writer;

	cr_assert(doze_watch(fd));
	cr_expect_not(doze(SHORT_NS));
	cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
	cr_expect(doze(LONG_NS), "it came before");
	cr_expect_not(doze(SHORT_NS), "once");
	cr_assert_eq(pthread_create(&writer, NULL, write_once, &fd), 0);
	for (unsigned i = 0; i < 60 && !ended; i++) /* a machine may stall */
		ended = doze(LONG_NS);
	cr_expect(ended);
	pthread_join(writer, NULL);
	close(fd);
}

Test(switch_doze, what_is_forgotten_ends_none_though_there_is_a_copy)
{
	static const uint64_t one = 1;
	int fd = eventfd(0, EFD_CLOEXEC), copy = dup(fd);

	cr_assert(doze_watch(fd));
	doze_forget(fd);
	close(fd);
	cr_assert_eq(write(copy, &one, sizeof(one)), sizeof(one));
	cr_expect_not(doze(SHORT_NS));
	close(copy);
}
