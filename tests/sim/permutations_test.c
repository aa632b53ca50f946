/* SPDX-License-Identifier: BSD-3-Clause */
#include "modes.h"
#include "script.h"

/*
 * Every order in which the first packets of an exchange can arrive. The network holds back the
 * first `hold` packets of one direction, or fewer if there are not as many, and releases them in
 * the order given by the number. Nothing is lost, so extended mode must not send anything again.
 */
#define HOLD_MAX    7
#define HOLD_NS	    SIM_US(30) /* time that the first packet waits for the others */
#define SPACING_NS  100
#define LIMIT_NS    SIM_MS(10000)
#define FACTORIAL_6 720
#define FACTORIAL_7 5040

struct hold {
	struct sim_ep *from;
	unsigned hold, cnt;
	bool released;
	unsigned order[HOLD_MAX]; /* order[i] is the i-th to be released */
	struct {
		struct sim_ep *to;
		uint8_t frame[512];
		uint32_t len;
	} kept[HOLD_MAX];
};

/* The permutation of that number, in [0, n!). */
static void permute(unsigned *order, unsigned n, uint64_t number)
{
	unsigned left[HOLD_MAX];

	for (unsigned i = 0; i < n; i++)
		left[i] = i;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (unsigned)(number % (n - i));

		number /= n - i;
		order[i] = left[at];
		for (unsigned k = at; k + 1 < n - i; k++)
			left[k] = left[k + 1];
	}
}

static void release(struct sim *s, void *arg)
{
	struct hold *h = arg;
	uint64_t at_ns = s->now_ns + SPACING_NS;

	if (h->released)
		return;
	h->released = true;
	for (unsigned i = 0; i < h->hold; i++) {
		unsigned which = h->order[i];

		if (which >= h->cnt)
			continue;
		sim_inject_at(h->kept[which].to, at_ns, h->kept[which].frame, h->kept[which].len);
		at_ns += SPACING_NS;
	}
}

static enum sim_verdict keep(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			     const struct ur_packet *p)
{
	struct hold *h = s->hook_arg;

	if (h->released || from != h->from)
		return SIM_PASS;
	SIM_CHECK(s, len <= sizeof(h->kept[0].frame), "a frame of %u bytes", len);
	h->kept[h->cnt].to = sim_destination(s, p);
	h->kept[h->cnt].len = len;
	memcpy(h->kept[h->cnt].frame, frame, len);
	if (h->cnt++ == 0)
		sim_call_at(s, s->now_ns + HOLD_NS, release, h);
	if (h->cnt == h->hold)
		release(s, h);
	return SIM_KEEP;
}

static void run(const struct sim_script *script, const struct sim_exchange_attr *attr,
		unsigned hold_cnt, unsigned direction, uint64_t permutation)
{
	struct sim_exchange x;
	struct hold h = {.hold = hold_cnt};

	sim_exchange_init(&x, script, attr);
	h.from = &x.s->ep[direction];
	permute(h.order, hold_cnt, permutation);
	x.s->hook = keep;
	x.s->hook_arg = &h;
	x.oracle.lossless = attr->mode == UR_MODE_EXTENDED;
	sim_exchange_run(&x, LIMIT_NS);
}

/* The number encodes the permutation, the direction, and whether there was another exchange before. */
static void run_6(const struct sim_script *script, enum ur_mode mode, uint64_t number)
{
	struct sim_exchange_attr attr = {
		.mode = mode, .test = "permuted6", .number = number, .warm = number & 1};

	run(script, &attr, 6, number >> 1 & 1, number >> 2);
}

static void run_7(const struct sim_script *script, enum ur_mode mode, uint64_t number)
{
	struct sim_exchange_attr attr = {.mode = mode, .test = "permuted7", .number = number};

	run(script, &attr, 7, 0, number);
}

#define PERMUTED(name)                                                                             \
	EACH_MODE(permutations, six_packets_of_##name)                                             \
	{                                                                                          \
		sim_run_numbers(&sim_script_##name, mode, "permuted6", 4 * FACTORIAL_6, run_6);    \
	}
SIM_RC_SCRIPTS(PERMUTED)

EACH_MODE(permutations, seven_packets_of_sends)
{
	sim_run_numbers(&sim_script_send, mode, "permuted7", FACTORIAL_7, run_7);
}

EACH_MODE(permutations, seven_packets_of_all_kinds)
{
	sim_run_numbers(&sim_script_mixed_requests, mode, "permuted7", FACTORIAL_7, run_7);
}
