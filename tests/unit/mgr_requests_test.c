/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "manager/requests.h"
#include "wire/bits.h"
#include "wire/bytes.h"

/* A manager's requests: windows, timeouts, and responses that are late, repeated or forged. */

#define WINDOW	4
#define RETRIES 2
#define TIMEOUT 1000

static struct ur_requests r;
static uint8_t memory[64 * 1024] __attribute__((aligned(8)));
static struct ur_mgr_answer answer;
static uint64_t now;

static void start(void)
{
	struct ur_requests_attr attr = {
		.window = WINDOW, .retries = RETRIES, .timeout_ns = TIMEOUT, .seed = 42};

	cr_assert_leq(ur_requests_size(WINDOW), sizeof(memory));
	ur_requests_init(&r, memory, &attr);
	now = 5000;
}

static struct ur_mgr_mad request(uint16_t attr_id)
{
	struct ur_mgr_mad m = {.lid = 7};

	m.bytes[0] = 1;
	m.bytes[1] = 0x01;
	m.bytes[2] = 1;
	m.bytes[3] = 0x01;
	ur_store16(m.bytes + 16, attr_id);
	return m;
}

static struct ur_mgr_mad directed(uint8_t hops)
{
	struct ur_mgr_mad m = request(0x11);

	m.lid = 0;
	m.bytes[1] = 0x81;
	m.bytes[7] = hops;
	for (uint8_t i = 1; i <= hops; i++)
		m.bytes[128 + i] = i + 10;
	return m;
}

static struct ur_mgr_mad response(const struct ur_mgr_mad *req)
{
	struct ur_mgr_mad m = *req;

	m.bytes[3] = 0x81;
	m.bytes[100] = 0xab;
	return m;
}

/* Posts it and takes it from the table as it is sent. */
static struct ur_mgr_mad send(const struct ur_mgr_mad *m, uint64_t cookie)
{
	struct ur_mgr_mad out;

	cr_assert(ur_requests_post(&r, m, cookie, now));
	cr_assert(ur_requests_output(&r, now, &out));
	ur_requests_validate(&r);
	return out;
}

static bool arrive(const struct ur_mgr_mad *m)
{
	bool is = ur_requests_input(&r, m, now, &answer);

	ur_requests_validate(&r);
	return is;
}

TestSuite(mgr_requests, .init = start);

Test(mgr_requests, a_response_ends_its_request)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 99), rsp = response(&out);

	now += 300;
	cr_assert(arrive(&rsp));
	cr_assert_eq(answer.cookie, 99);
	cr_assert_eq(answer.waited_ns, 300);
	cr_assert_eq(answer.mad->bytes[100], 0xab);
	cr_assert_eq(ur_requests_next_deadline(&r), UINT64_MAX);
	cr_assert_eq(r.open, 0);
}

Test(mgr_requests, the_window_bounds_what_is_open)
{
	struct ur_mgr_mad m = request(0x15), out[WINDOW], rsp;

	for (unsigned i = 0; i < WINDOW; i++)
		out[i] = send(&m, i);
	cr_assert(!ur_requests_have_room(&r));
	cr_assert(!ur_requests_post(&r, &m, 9, now));
	/* Responses in any order. */
	for (unsigned i = WINDOW; i-- > 0;) {
		rsp = response(&out[i]);
		cr_assert(arrive(&rsp));
		cr_assert_eq(answer.cookie, i);
	}
	cr_assert(ur_requests_have_room(&r));
}

/* MGR-TID-01 */
Test(mgr_requests, no_transaction_id_is_used_twice_or_is_zero)
{
	struct ur_mgr_mad m = request(0x15), rsp;
	static uint64_t seen[4000];

	for (unsigned i = 0; i < 4000; i++) {
		struct ur_mgr_mad out = send(&m, i);

		seen[i] = ur_load64(out.bytes + 8);
		cr_assert(seen[i]);
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(seen[i], seen[k]);
		rsp = response(&out);
		cr_assert(arrive(&rsp));
	}
}

/* MGR-TID-01: each step of the sequence used to be invertible, so that one request told all others. */
Test(mgr_requests, a_transaction_id_says_nothing_about_the_next)
{
	struct ur_mgr_mad m = request(0x15), rsp;
	unsigned same = 0;
	uint64_t last = 0;

	for (unsigned i = 0; i < 2000; i++) {
		struct ur_mgr_mad out = send(&m, i);
		uint64_t x = ur_load64(out.bytes + 8) >> 16, guess;

		/* What the inverse of the old mixing would make of the low 48 bits of a known one. */
		guess = (last + UINT64_C(0x9e3779b97f4a7c15)) & UINT64_C(0xffffffffffff);
		same += x == guess || x == last + 1;
		/* Half of the bits differ. */
		cr_assert(!i || (ur_popcount(x ^ last) > 6 && ur_popcount(x ^ last) < 42));
		last = x;
		rsp = response(&out);
		cr_assert(arrive(&rsp));
	}
	cr_assert_eq(same, 0);
}

/* MGR-TID-01 */
Test(mgr_requests, another_seed_gives_other_transaction_ids)
{
	struct ur_requests_attr attr = {.window = 1, .timeout_ns = 1, .seed = 43};
	struct ur_mgr_mad m = request(0x15), a = send(&m, 0), b;

	ur_requests_init(&r, memory, &attr);
	b = send(&m, 0);
	cr_assert_neq(ur_load64(a.bytes + 8) >> 16, ur_load64(b.bytes + 8) >> 16);
}

/* REQ: MGR-WINDOW-01 */
Test(mgr_requests, a_window_adapts_to_the_time_of_responses)
{
	static uint64_t room[sizeof(struct ur_request) * 100 / 8];
	struct ur_requests_attr attr = {
		.window = 100, .start = 8, .retries = RETRIES, .timeout_ns = TIMEOUT, .seed = 42};
	struct ur_mgr_mad m = directed(3), far = directed(9), out, rsp;

	ur_requests_init(&r, room, &attr);
	cr_assert_eq(r.limit, 8);
	for (unsigned i = 0; i < 200;
	     i++) { /* as fast as the fastest; others are farther away, and as fast as that allows */
		out = send(i & 1 ? &m : &far, i);
		now += i & 1 ? 10 : 90;
		rsp = response(&out);
		cr_assert(arrive(&rsp));
	}
	cr_assert_eq(r.limit, 100, "%u", r.limit);
	for (unsigned i = 0; i < 200; i++) { /* three times as long */
		out = send(&m, i);
		now += 30;
		rsp = response(&out);
		cr_assert(arrive(&rsp));
		cr_assert_geq(r.limit, 8);
	}
	cr_assert_eq(r.limit, 8, "%u", r.limit);
	for (unsigned i = 0; i < 200; i++) {
		out = send(&m, i);
		now += 15;
		rsp = response(&out);
		cr_assert(arrive(&rsp));
	}
	cr_assert_eq(r.limit, 100);
	for (unsigned i = 0; i < 100; i++)
		cr_assert(ur_requests_post(&r, &m, i, now));
	cr_assert(!ur_requests_post(&r, &m, 100, now));
	while (ur_requests_output(&r, now, &out))
		;
	now += TIMEOUT; /* all of them: once, not a hundred times */
	cr_assert(!ur_requests_expire(&r, now, &answer));
	cr_assert_eq(r.limit, 88);
}

/* MGR-RETRY-01 */
Test(mgr_requests, an_unanswered_request_is_sent_again_unchanged_and_then_times_out)
{
	struct ur_mgr_mad m = request(0x15), first = send(&m, 5), again;

	for (unsigned i = 0; i < RETRIES; i++) {
		cr_assert_eq(ur_requests_next_deadline(&r), now + TIMEOUT);
		now += TIMEOUT - 1;
		cr_assert(!ur_requests_expire(&r, now, &answer));
		cr_assert(!ur_requests_output(&r, now, &again));
		now++;
		cr_assert(!ur_requests_expire(&r, now, &answer));
		cr_assert(ur_requests_output(&r, now, &again));
		cr_assert_arr_eq(&again, &first, sizeof(again));
		ur_requests_validate(&r);
	}
	now += TIMEOUT;
	cr_assert(ur_requests_expire(&r, now, &answer));
	cr_assert_eq(answer.cookie, 5);
	cr_assert_null(answer.mad);
	cr_assert_eq(answer.waited_ns, (RETRIES + 1) * TIMEOUT);
	cr_assert(!ur_requests_expire(&r, now, &answer));
	cr_assert_eq(r.counters.sent, 1);
	cr_assert_eq(r.counters.resent, RETRIES);
	cr_assert_eq(r.counters.timed_out, 1);
}

Test(mgr_requests, a_response_to_the_first_sending_counts_after_the_second)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5), rsp = response(&out), again;

	now += TIMEOUT;
	cr_assert(!ur_requests_expire(&r, now, &answer));
	cr_assert(ur_requests_output(&r, now, &again));
	cr_assert(arrive(&rsp));
	cr_assert(!arrive(&rsp), "the response to the second sending");
	cr_assert_eq(r.counters.repeated, 1);
	cr_assert_eq(r.counters.answered, 1);
}

Test(mgr_requests, a_response_that_arrives_before_the_second_sending_prevents_it)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5), rsp = response(&out), again;

	now += TIMEOUT;
	cr_assert(!ur_requests_expire(&r, now, &answer));
	cr_assert(arrive(&rsp));
	cr_assert(!ur_requests_output(&r, now, &again));
}

Test(mgr_requests, a_response_after_the_last_timeout_is_late)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5), rsp = response(&out);

	for (unsigned i = 0; i <= RETRIES; i++) {
		now += TIMEOUT;
		(void)ur_requests_expire(&r, now, &answer);
		(void)ur_requests_output(&r, now, &out);
	}
	cr_assert_eq(r.open, 0);
	cr_assert(!arrive(&rsp));
	cr_assert_eq(r.counters.late, 1);
}

/* MGR-TID-02 */
Test(mgr_requests, what_differs_from_the_request_is_no_response)
{
	static const unsigned char at[] = {1, 16, 17, 20, 23};
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5), rsp;

	for (unsigned i = 0; i < sizeof(at); i++) {
		rsp = response(&out);
		rsp.bytes[at[i]] ^= 0x40;
		cr_assert(!arrive(&rsp), "byte %u", at[i]);
	}
	rsp = response(&out);
	rsp.lid++;
	cr_assert(!arrive(&rsp), "another sender");
	cr_assert_eq(r.counters.mismatched, sizeof(at) + 1);
	rsp = response(&out);
	cr_assert(arrive(&rsp));
}

/* MGR-TID-02 */
Test(mgr_requests, a_response_from_another_route_is_none)
{
	struct ur_mgr_mad m = directed(3), out = send(&m, 5), rsp;

	for (unsigned i = 1; i <= 3; i++) {
		rsp = response(&out);
		rsp.bytes[128 + i]++;
		cr_assert(!arrive(&rsp), "hop %u", i);
	}
	rsp = response(&out);
	rsp.bytes[7]--;
	cr_assert(!arrive(&rsp));
	rsp = response(&out);
	rsp.bytes[128 + 4]++; /* beyond the route */
	cr_assert(arrive(&rsp));
}

Test(mgr_requests, a_guess_hits_nothing)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5), rsp = response(&out);
	uint64_t tid = ur_load64(out.bytes + 8);

	for (uint64_t i = 1; i < 100000; i++) {
		ur_store64(rsp.bytes + 8, tid + i);
		cr_assert(!ur_requests_input(&r, &rsp, now, &answer));
	}
	ur_store64(rsp.bytes + 8, 0);
	cr_assert(!arrive(&rsp));
	cr_assert_eq(r.counters.unknown, 100000);
	cr_assert_eq(r.open, 1);
}

Test(mgr_requests, requests_and_traps_are_no_responses)
{
	static const unsigned char methods[] = {0x01, 0x02, 0x05, 0x07, 0x82, 0x85, 0xff};
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5);

	for (unsigned i = 0; i < sizeof(methods); i++) {
		out.bytes[3] = methods[i];
		cr_assert(!arrive(&out));
	}
	cr_assert_eq(r.counters.not_response, sizeof(methods));
}

Test(mgr_requests, a_busy_agent_is_asked_again_under_another_transaction_id)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 5), rsp = response(&out), again;

	ur_store16(rsp.bytes + 4, 0x0001);
	cr_assert(!arrive(&rsp));
	cr_assert_eq(r.counters.busy, 1);
	cr_assert(!ur_requests_output(&r, now, &again), "not before the timeout");
	now += TIMEOUT;
	cr_assert(!ur_requests_expire(&r, now, &answer));
	cr_assert(ur_requests_output(&r, now, &again));
	cr_assert_neq(ur_load64(again.bytes + 8), ur_load64(out.bytes + 8));
	rsp = response(&again);
	cr_assert(arrive(&rsp));
}

Test(mgr_requests, a_response_before_the_request_was_sent_is_none)
{
	struct ur_mgr_mad m = request(0x15), rsp, out;

	cr_assert(ur_requests_post(&r, &m, 1, now));
	rsp = response(&TAILQ_FIRST(&r.to_send)->mad);
	cr_assert(!arrive(&rsp));
	cr_assert(ur_requests_output(&r, now, &out));
	cr_assert(arrive(&rsp));
}

Test(mgr_requests, cancelled_requests_have_no_answer)
{
	struct ur_mgr_mad m = request(0x15), out = send(&m, 1), rsp = response(&out);

	cr_assert(ur_requests_post(&r, &m, 2, now));
	ur_requests_cancel_all(&r);
	ur_requests_validate(&r);
	cr_assert_eq(r.open, 0);
	cr_assert(!arrive(&rsp));
	now += 10 * TIMEOUT;
	cr_assert(!ur_requests_expire(&r, now, &answer));
}

/* A model: every request ends once, as its network decides, for any order of losses and repetitions. */
Test(mgr_requests, every_request_ends_exactly_once_over_a_network_that_loses_and_repeats)
{
	static unsigned ended[20000];
	static struct ur_mgr_mad wire[64];
	unsigned on_wire = 0, posted = 0;
	uint64_t x = 1;

	while (posted < 20000 || r.open) {
		struct ur_mgr_mad m = request(0x15), out;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		now += x >> 33 & 0xff;
		if (posted < 20000 && ur_requests_post(&r, &m, posted, now))
			posted++;
		while (ur_requests_output(&r, now, &out))
			if (on_wire < 64 && x >> 60 > 5)
				wire[on_wire++] = response(&out);
		if (on_wire) {
			unsigned i = (unsigned)(x >> 40) % on_wire;

			if (arrive(&wire[i]))
				ended[answer.cookie]++;
			if (x >> 56 & 1)
				wire[i] = wire[--on_wire];
		}
		while (ur_requests_expire(&r, now, &answer))
			ended[answer.cookie]++;
	}
	for (unsigned i = 0; i < 20000; i++)
		cr_assert_eq(ended[i], 1, "request %u ended %u times", i, ended[i]);
	cr_assert(r.counters.resent && r.counters.timed_out && r.counters.repeated &&
		  r.counters.late);
	cr_assert_eq(r.counters.answered + r.counters.timed_out, 20000);
}
