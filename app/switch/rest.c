/* SPDX-License-Identifier: BSD-3-Clause */
#include "rest.h"

static bool is_shared(const struct rest *r, uint64_t now_ns)
{
	return now_ns < r->shared_ns;
}

void rest_begin(struct rest *r, bool polls, uint64_t now_ns)
{
	*r = (struct rest){.polls = polls,
			   .busy_ns = now_ns,
			   .credit_ns = REST_CREDIT_MAX_NS,
			   .charged_ns = now_ns};
}

/* Time that is urgent and not slept. */
static void charge(struct rest *r, uint64_t now_ns)
{
	uint64_t took_ns = r->urgent ? now_ns - r->charged_ns : 0;

	r->charged_ns = now_ns;
	r->credit_ns -= took_ns < r->credit_ns ? took_ns : r->credit_ns;
	r->urgent = r->urgent && r->credit_ns;
}

void rest_busy(struct rest *r, uint64_t now_ns)
{
	r->idle = 0;
	r->busy_ns = now_ns;
	charge(r, now_ns);
}

void rest_ran(struct rest *r, uint64_t took_ns, uint64_t cpu_ns, uint64_t now_ns)
{
	if (cpu_ns + REST_LOST_NS > took_ns)
		return;
	r->shared_ns = now_ns + REST_SHARED_NS;
	r->urgent |= r->credit_ns >= REST_CREDIT_MIN_NS;
}

enum rest_what rest_idle(struct rest *r, uint64_t now_ns)
{
	r->idle++;
	charge(r, now_ns);
	if (r->polls)
		return REST_NOT;
	if (is_shared(r, now_ns))
		return now_ns - r->busy_ns < REST_LINGER_NS ? REST_NOT : REST_SLEEP;
	r->urgent = false;
	if (r->idle < REST_POLL)
		return REST_NOT;
	return now_ns - r->busy_ns < REST_YIELD_NS ? REST_YIELD : REST_SLEEP;
}

void rest_yielded(struct rest *r, uint64_t from_ns, uint64_t now_ns)
{
	if (now_ns - from_ns >= REST_LONG_YIELD_NS)
		r->shared_ns = now_ns + REST_SHARED_NS;
}

void rest_slept(struct rest *r, uint64_t from_ns, uint64_t now_ns)
{
	uint64_t earned_ns = (now_ns - from_ns) * REST_CREDIT_RATIO;

	charge(r, from_ns);
	r->charged_ns = now_ns;
	r->credit_ns += earned_ns < REST_CREDIT_MAX_NS - r->credit_ns
				? earned_ns
				: REST_CREDIT_MAX_NS - r->credit_ns;
	r->urgent = is_shared(r, now_ns) && (r->urgent || r->credit_ns >= REST_CREDIT_MIN_NS);
}
