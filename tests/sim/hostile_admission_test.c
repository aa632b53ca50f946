/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "pool_world.h"

/*
 * False messages about a receive pool: requests with wrong claims, and NOTIFYs and answers of
 * another sender or of another time.
 */

static struct ur_asth nonsense(struct pool_world *w)
{
	uint32_t x = (uint32_t)sim_rand(&w->rng);

	return (struct ur_asth){.status = x & 3,
				.queue_class = x >> 2 & 3,
				.granted = x >> 4 & 1,
				.resv = x >> 5 & 7,
				.room = (uint8_t)(x >> 8),
				.generation = (uint16_t)(x >> 16)};
}

/* ---- requests ---- */

/* A hook that adds false queue classes, and random bits in ignored fields, to requests and answers. */
static enum sim_verdict adorn(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
			      const struct ur_packet *p)
{
	struct pool_world *w = s->hook_arg;
	uint8_t *ext = frame + p->bth_off + UR_BTH_BYTES;

	(void)from, (void)len;
	if (p->op & UR_OP_XTH) {
		ext[8] = (uint8_t)((ext[8] & ~(0xe0 | UR_XTH_CLAIM)) |
				   (sim_rand(&w->rng) & (0xe0 | UR_XTH_CLAIM)));
		ext[12] = (uint8_t)sim_rand(&w->rng);
		w->lies++;
	}
	if (p->op & UR_OP_ASTH) {
		if (!(p->op & UR_OP_NOTIFY))
			ext += UR_AETH_BYTES + UR_XAETH_BYTES;
		ext[0] = (uint8_t)(ext[0] ^ (sim_rand(&w->rng) & 7));
		w->lies++;
	}
	sim_reseal(frame, p);
	return SIM_PASS;
}

/* ADM-REFUSAL-01. The run is the same to the nanosecond, whatever is claimed. */
Test(hostile_admission, claims_and_reserved_bits_decide_nothing)
{
	for (unsigned mode = UR_ADM_PLAIN; mode <= UR_ADM_PAPER; mode++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			struct pool_world *honest = pool_world_new("hostile.honest", seed, mode,
								   POOL_SENDERS, 0),
					  *liar;
			uint64_t log, claims;

			pool_world_run(honest);
			log = honest->log;
			claims = sim_counters(&honest->s->ep[POOL_HOST])->adm_false_claims;
			pool_world_free(honest);
			liar = pool_world_new("hostile.claims", seed, mode, POOL_SENDERS, 0);
			liar->s->hook = adorn;
			pool_world_run(liar);
			cr_assert_eq(liar->log, log, "mode %u seed %u", mode, (unsigned)seed);
			cr_assert_gt(liar->lies, 4 * POOL_SENDERS * POOL_MESSAGES / 3);
			if (mode != UR_ADM_PLAIN)
				cr_assert_gt(
					sim_counters(&liar->s->ep[POOL_HOST])->adm_false_claims,
					claims + POOL_MESSAGES);
			pool_world_free(liar);
		}
}

/* ---- statuses that do not fit ---- */

enum misfit {
	OTHER_ADDRESS,
	OTHER_FAMILY,
	NO_QP,
	OTHER_PKEY,
	PSN_BEFORE,
	PSN_BEYOND,
	OTHER_POOL,
	TO_THE_HOST,
	ANSWER_OF_STRANGER,
	ANSWER_OTHER_PKEY,
	ANSWER_BEYOND,
	ANSWER_OF_PAST,
	MISFITS
};

static void forge(struct pool_world *w, unsigned i, enum misfit how)
{
	struct pool_sender *s = &w->snd[i];
	const struct ur_selective *psn = &s->req.qp->xreq.psn;
	bool answer = how >= ANSWER_OF_STRANGER;
	struct ur_packet p = forged_word(
		&s->req, answer ? UR_EXT_ACKNOWLEDGE_STATUS : UR_EXT_NOTIFY, nonsense(w));
	enum ur_drop drop = UR_DROP_POOL;
	struct sim_ep *to = s->req.ep;
	uint32_t far = 1 + sim_below(&w->rng, 1u << sim_below(&w->rng, 23));

	switch (how) {
	case OTHER_ADDRESS:
	case ANSWER_OF_STRANGER:
		p.ip.src = w->s->ep[!to->idx].gid4;
		drop = UR_DROP_PEER;
		break;
	case OTHER_FAMILY: /* the same address, in a header of IPv6: ::ffff:a.b.c.d */
		p.ip.v6 = true;
		drop = UR_DROP_PEER;
		break;
	case NO_QP:
		p.bth.dqpn.v ^= 0x400000;
		drop = UR_DROP_QPN;
		break;
	case OTHER_PKEY:
	case ANSWER_OTHER_PKEY:
		p.bth.pkey = (uint16_t)(0x8000 | sim_below(&w->rng, 0x7fff));
		drop = UR_DROP_PKEY;
		break;
	case PSN_BEFORE:
		p.bth.psn = ur_psn_add(psn->una, 0u - far);
		break;
	case PSN_BEYOND:
		p.bth.psn = ur_psn_add(psn->max, far < 1u << 22 ? far : 1u << 22);
		break;
	case OTHER_POOL:
		p.pool ^= 1u << sim_below(&w->rng, 32);
		break;
	case TO_THE_HOST: /* which itself gets no status of a pool */
		p = forged_word(&s->rsp, UR_EXT_NOTIFY, nonsense(w));
		to = s->rsp.ep;
		break;
	case ANSWER_BEYOND:
		p.xaeth.epsn = ur_psn_add(psn->max, far < 1u << 22 ? far : 1u << 22);
		drop = UR_DROP_PSN_STALE;
		break;
	case ANSWER_OF_PAST:
		p.xaeth.epsn = ur_psn_add(psn->una, 0u - (1u << 22) - 1 - far / 4);
		drop = UR_DROP_PSN_STALE;
		break;
	case MISFITS:
		break;
	}
	forged_is_dropped(how == TO_THE_HOST ? &s->rsp : &s->req, to, &p, drop,
			  "a status that does not fit");
	w->lies++;
}

static void forge_each_time(struct pool_world *w)
{
	for (unsigned n = 0; n < MISFITS; n++)
		forge(w, sim_below(&w->rng, w->senders), (enum misfit)n);
}

/* ADM-NOTIFY-04. At any moment; no queue pair is served a nanosecond sooner or later because of it. */
Test(hostile_admission, words_that_do_not_fit_change_nothing)
{
	for (unsigned mode = UR_ADM_AB; mode <= UR_ADM_PAPER; mode++)
		for (uint64_t seed = 20; seed < 23; seed++) {
			struct pool_world *honest = pool_world_new("hostile.honest", seed, mode,
								   POOL_SENDERS, 0),
					  *w;
			uint64_t log;

			pool_world_run(honest);
			log = honest->log;
			pool_world_free(honest);
			w = pool_world_new("hostile.misfits", seed, mode, POOL_SENDERS, 0);
			w->each = forge_each_time;
			pool_world_run(w);
			cr_assert_eq(w->log, log, "mode %u seed %u", mode, (unsigned)seed);
			cr_assert_gt(w->lies, 10000);
			pool_world_free(w);
		}
}

/* ---- statuses of another time ---- */

/* Statuses arrive late, in any order, and repeatedly, even after their entries have expired. */
static enum sim_verdict confuse(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				const struct ur_packet *p)
{
	struct pool_world *w = s->hook_arg;
	struct sim_ep *to = sim_destination(s, p);

	(void)from;
	if (!(p->op & UR_OP_ASTH))
		return SIM_PASS;
	for (unsigned n = sim_below(&w->rng, 4); n; n--, w->lies++)
		sim_inject_at(to,
			      s->now_ns + sim_below(&w->rng, 1u << sim_between(&w->rng, 10, 26)),
			      frame, len);
	if (sim_below(&w->rng, 4))
		return SIM_PASS;
	sim_inject_at(to, s->now_ns + sim_below(&w->rng, 300000), frame, len);
	return SIM_KEEP;
}

/* ADM-SST-01, ADM-CLASS-01, ADM-CLASS-03: not even a retry is used up. */
Test(hostile_admission, replayed_and_reordered_statuses_stop_no_sender)
{
	for (unsigned mode = UR_ADM_AB; mode <= UR_ADM_PAPER; mode++)
		for (uint64_t seed = 0; seed < 60; seed++) {
			struct pool_world *w =
				pool_world_new("hostile.replays", seed, mode, POOL_SENDERS, 0);

			w->s->hook = confuse;
			pool_world_run(w);
			cr_assert_gt(w->lies, POOL_SENDERS * POOL_MESSAGES);
			/* Two local ACK timeouts. */
			SIM_CHECK(w->s, w->worst_ns < SIM_MS(20), "%.3f ms",
				  (double)w->worst_ns / 1e6);
			pool_world_free(w);
		}
}
