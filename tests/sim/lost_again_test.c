/* SPDX-License-Identifier: BSD-3-Clause */
#include "modes.h"
#include "script.h"

/*
 * Losses of packets that repair losses. First one request packet is lost, then the n-th packet of a
 * kind and up to two more of that kind. The exchange must complete for every kind.
 */
#define LIMIT_NS  SIM_MS(10000)
#define FIRST_MAX 10 /* request packet that is lost first; the last value means none */
#define NTH_MAX	  8
#define BURST_MAX 3
#define SEEN_MAX  512

/* X(NAME, predicate) */
#define KINDS(X)                                                                                   \
	X(REQUEST, "a request, for the first time")                                                \
	X(REPEAT, "a request, again")                                                              \
	X(RESPONSE, "a READ or atomic response, for the first time")                               \
	X(RESPONSE_REPEAT, "a READ or atomic response, again")                                     \
	X(ACK, "an ACK")                                                                           \
	X(SEQ_NAK, "a sequence NAK")                                                               \
	X(RNR_NAK, "an RNR NAK")                                                                   \
	X(PROBE, "a tail probe")

enum kind {
#define X(NAME, text) NAME,
	KINDS(X)
#undef X
		KIND_CNT
};

#define NUMBERS (FIRST_MAX * NTH_MAX * BURST_MAX * KIND_CNT)

struct losses {
	unsigned first, nth, burst;
	enum kind kind;
	unsigned cnt[KIND_CNT];
	uint64_t seen[SEEN_MAX];
	unsigned seen_cnt;
};

static bool seen_before(struct sim *s, struct losses *l, const struct ur_packet *p)
{
	uint64_t key = (uint64_t)p->bth.psn.v << 33 | (uint64_t)(p->op & UR_OP_RESPONSE ? 1 : 0)
							      << 32;

	if (p->op & UR_OP_XRTH)
		key |= p->xrth.offset;
	for (unsigned i = 0; i < l->seen_cnt; i++)
		if (l->seen[i] == key)
			return true;
	SIM_CHECK(s, l->seen_cnt < SEEN_MAX, "too many packets");
	l->seen[l->seen_cnt++] = key;
	return false;
}

static enum kind classify(struct sim *s, struct losses *l, const struct ur_packet *p)
{
	bool carries = p->op & (UR_OP_READ_RESP | UR_OP_ATOMICACKETH);

	if (p->op & UR_OP_PROBE)
		return PROBE;
	if (p->op & UR_OP_REQUEST)
		return seen_before(s, l, p) ? REPEAT : REQUEST;
	if (carries)
		return seen_before(s, l, p) ? RESPONSE_REPEAT : RESPONSE;
	switch (p->aeth.syndrome & UR_SYNDROME_KIND_MASK) {
	case UR_SYNDROME_RNR_NAK:
		return RNR_NAK;
	case UR_SYNDROME_NAK:
		return SEQ_NAK;
	default:
		return ACK;
	}
}

static enum sim_verdict lose(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			     const struct ur_packet *p)
{
	struct losses *l = s->hook_arg;
	enum kind kind = classify(s, l, p);
	unsigned n = l->cnt[kind]++;

	if (kind == REQUEST && n == l->first)
		return SIM_DROP;
	return kind == l->kind && n >= l->nth && n < l->nth + l->burst ? SIM_DROP : SIM_PASS;
}

static void run(const struct sim_script *script, enum ur_mode mode, uint64_t number)
{
	struct sim_exchange_attr attr = {.mode = mode, .test = "again", .number = number};
	struct losses l = {.first = (unsigned)(number % FIRST_MAX)};
	struct sim_exchange x;

	number /= FIRST_MAX;
	l.nth = (unsigned)(number % NTH_MAX);
	number /= NTH_MAX;
	l.burst = 1 + (unsigned)(number % BURST_MAX);
	l.kind = (enum kind)(number / BURST_MAX);
	if (l.first == FIRST_MAX - 1)
		l.first = UINT32_MAX;
	sim_exchange_init(&x, script, &attr);
	x.s->hook = lose;
	x.s->hook_arg = &l;
	if (l.kind == RNR_NAK) { /* receives are posted one by one, and late */
		x.rq.ahead = 1;
		x.rq.starve = 65536;
		x.rq.starve_ns = SIM_US(500);
	}
	sim_exchange_run(&x, LIMIT_NS);
}

#define LOST_AGAIN(name)                                                                           \
	EACH_MODE(lost_again, name)                                                                \
	{                                                                                          \
		sim_run_numbers(&sim_script_##name, mode, "again", NUMBERS, run);                  \
	}
SIM_RC_SCRIPTS(LOST_AGAIN)
