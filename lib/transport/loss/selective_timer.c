/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/loss/selective_priv.h"

/* Probes, trains of them and timeouts: what happens when nothing arrives. */

void ur_selective_lose_una(struct ur_selective *s, const struct ur_selective_env *env)
{
	if (!ur_psn_eq(s->una, s->max))
		ur_rtx_lose_una(s, env->pool);
}

/* EXT-SEL-RTO-01, EXT-SEL-RTO-02. How long the silence lasts until the next timeout. */
static uint64_t timeout_ns(const struct ur_selective *s, const struct ur_selective_env *env)
{
	uint64_t ns = ur_rtt_rto_ns(env->rtt, s->backoff), most = UR_NEVER;

	if (env->retry)
		most = ur_retry_silence_ns(env->retry, ur_rtt_rto_ns(env->rtt, 0));
	return ns < most ? ns : most;
}

/* EXT-SEL-TRAIN-01. Its train; one begins if packets are being lost and there is a place. */
static struct ur_probe_train *train_of(struct ur_selective *s, const struct ur_selective_env *env,
				       uint64_t now_ns)
{
	struct ur_probe_trains *t = &env->pool->trains;
	struct ur_probe_train *train = NULL;

	if (s->flags & TRAIN)
		return ur_probe_train_find(t, s);
	if (s->backoff < UR_PROBE_TRAIN_TIMEOUTS && now_ns < t->lossy_until_ns)
		train = ur_probe_train_find(t, NULL);
	if (!train)
		return NULL;
	*train = (struct ur_probe_train){.of = s,
					 .timeout_ns = now_ns + 2 * silence_ns(env->rtt) +
						       timeout_ns(s, env),
					 .path_ns = now_ns};
	s->flags |= TRAIN;
	return train;
}

struct step {
	uint64_t ns; /* from the last one on */
	bool probe;  /* else the timeout */
};

/*
 * EXT-SEL-PROBE-02. What follows a lone probe without effect, or a timeout. Before the first timeout the third probe needs ample
 * room. Later, up to three share the time between two timeouts.
 */
static struct step next_step(const struct ur_selective *s, const struct ur_selective_env *env)
{
	uint64_t first = ur_rtt_rto_ns(env->rtt, 0), timeout = timeout_ns(s, env), ns;
	unsigned probed = s->flags & PROBED;

	if (!s->backoff) {
		ns = 2 * silence_ns(env->rtt);
		if ((probed == 1 && ns < first) || (probed == 2 && 3 * ns < first))
			return (struct step){.ns = ns, .probe = true};
		return (struct step){.ns = timeout};
	}
	ns = timeout / 4 > first ? timeout / 4 : first;
	if ((probed + 1) * ns <= timeout)
		return (struct step){.ns = ns, .probe = true};
	return (struct step){.ns = timeout - (probed - 1) * ns};
}

static void expect_step(struct ur_selective *s, const struct ur_selective_env *env, uint64_t now_ns)
{
	uint64_t ns;

	if (s->flags & TRAIN)
		ns = ur_probe_train_gap_ns(ur_probe_train_find(&env->pool->trains, s),
					   silence_ns(env->rtt), ur_rtt_rto_ns(env->rtt, 0),
					   UR_PTO_MIN_NS);
	else
		ns = next_step(s, env).ns;
	s->deadline_ns = now_ns + ns;
}

static enum ur_selective_verdict probe(struct ur_selective *s, const struct ur_selective_env *env,
				       uint64_t now_ns)
{
	struct ur_probe_train *train = train_of(s, env, now_ns);

	/* What a probe shows that nothing has left since the one before shows of all that left before that one. */
	if (!(s->flags & PROBED) ||
	    !ur_stamp_lt(ur_selective_last_sent(s, env->tx_times), s->probe_stamp))
		s->probe_stamp = ur_stamp(now_ns);
	if (train)
		train->sent++;
	s->flags += (s->flags & PROBED) < PROBED_MOST;
	s->flags &= (uint8_t)~ASKING;
	expect_step(s, env, now_ns);
	return UR_SELECTIVE_PROBE;
}

bool ur_selective_asks_again(const struct ur_selective *s, const struct ur_selective_env *env,
			     uint64_t now_ns)
{
	struct ur_probe_train *train;

	if (!(s->flags & TRAIN))
		return (s->flags & PROBED) > 1;
	train = ur_probe_train_find(&env->pool->trains, s);
	if (now_ns - train->path_ns < 2 * silence_ns(env->rtt))
		return false;
	train->path_ns = now_ns;
	return true;
}

void ur_selective_on_probe_sent(struct ur_selective *s, const struct ur_selective_env *env,
				uint64_t now_ns)
{
	struct ur_probe_train *train;
	uint64_t ns = silence_ns(env->rtt);

	if (s->flags & TRAIN) {
		train = ur_probe_train_find(&env->pool->trains, s);
		if (train->sent == 1) {
			ns = 2 * ns + timeout_ns(s, env);
			train->path_ns = now_ns;
		}
		if (train->timeout_ns < now_ns + ns)
			train->timeout_ns = now_ns + ns;
	}
	if (s->flags & PROBED)
		expect_step(s, env, now_ns);
	else
		ur_selective_hasten(s, probe_timeout_ns(s, env->rtt), now_ns);
}

/* The timeout is over. */
static enum ur_selective_verdict time_out(struct ur_selective *s,
					  const struct ur_selective_env *env, uint64_t now_ns)
{
	struct ur_probe_train *train;

	if (s->backoff < UINT8_MAX)
		s->backoff++;
	if (s->backoff >= UR_PROBE_TRAIN_TIMEOUTS)
		ur_selective_leave_train(s, env->pool);
	if (s->flags & TRAIN) {
		train = ur_probe_train_find(&env->pool->trains, s);
		train->timeout_ns = now_ns + timeout_ns(s, env);
		train->path_ns = now_ns;
	}
	s->flags = (uint8_t)((s->flags & ~PROBED) | 1);
	expect_step(s, env, now_ns);
	ur_rtx_lose_una(s, env->pool);
	return UR_SELECTIVE_RESEND;
}

/*
 * EXT-SEL-PROBE-05. Peers take longer to answer than this queue pair has seen, on whatever queue pair of the worker: with thousands
 * of READs the first answers show how long the others wait for their turns. Where packets are being lost, a queue pair goes by
 * its own round trips. True: the silence may last longer, and the deadline is later.
 */
static bool waits_in_turn(struct ur_selective *s, const struct ur_selective_env *env,
			  uint64_t now_ns)
{
	const struct ur_rtx_pool *pool = env->pool;
	uint64_t before_ns;

	if (now_ns >= pool->slow_until_ns || now_ns < pool->trains.lossy_until_ns ||
	    pool->slow <= env->rtt->kept)
		return false;
	before_ns = probe_timeout_ns(s, env->rtt);
	env->rtt->kept = pool->slow;
	s->deadline_ns += probe_timeout_ns(s, env->rtt) - before_ns;
	return now_ns < s->deadline_ns;
}

enum ur_selective_verdict ur_selective_on_timer(struct ur_selective *s,
						const struct ur_selective_env *env, uint64_t now_ns)
{
	struct ur_probe_train *train;

	if (now_ns < s->deadline_ns || ur_psn_eq(s->una, s->max))
		return UR_SELECTIVE_NOTHING;
	if (s->lost_cnt) {
		s->deadline_ns = now_ns + timeout_ns(s, env);
		return UR_SELECTIVE_RESEND;
	}
	/* EXT-SEL-PROBE-01 */
	if (!(s->flags & PROBED)) {
		uint64_t sent_ns = time_of(ur_selective_last_sent(s, env->tx_times), now_ns);

		if (waits_in_turn(s, env, now_ns))
			return UR_SELECTIVE_NOTHING;
		sent_ns += probe_timeout_ns(s, env->rtt);
		if (!(s->flags & ASKING) && now_ns < sent_ns) {
			s->deadline_ns = sent_ns;
			return UR_SELECTIVE_NOTHING;
		}
		return probe(s, env, now_ns);
	}
	/* The answer to the last probe, or what it called for, may be lost as well. */
	train = train_of(s, env, now_ns);
	if (train ? now_ns < train->timeout_ns : next_step(s, env).probe)
		return probe(s, env, now_ns);
	/* EXT-SEL-RTO-01 */
	return time_out(s, env, now_ns);
}
