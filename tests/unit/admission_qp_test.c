/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "end.h"

/* Admission in one extended queue pair: first a sender, then a receiver with an SRQ. */
#define POOL	    0x51u
#define MS	    UINT64_C(1000000)
#define FALLBACK_NS (10 * MS)
#define RNR_US10    1 /* RNR timer code of 10 us */

static const struct ur_adm_attr attr = {
	.mode = UR_ADM_INTELLIGENT,
	.fallback_ns = FALLBACK_NS,
	.grant_life_ns = MS,
	.refusal_life_ns = 100 * MS,
	.status_ns = 40 * MS,
};

static const struct ur_adm_attr letters_only = {
	.mode = UR_ADM_AB,
	.fallback_ns = FALLBACK_NS,
	.grant_life_ns = MS,
	.refusal_life_ns = 100 * MS,
	.status_ns = 40 * MS,
};

static const struct ur_adm_attr paper = {
	.mode = UR_ADM_PAPER,
	.fallback_ns = FALLBACK_NS,
	.grant_life_ns = MS,
	.refusal_life_ns = 100 * MS,
	.status_ns = 40 * MS,
};

/* ---- the sender ---- */

static struct end *sender(bool notifies)
{
	return END(.mode = UR_MODE_EXTENDED, .admission = notifies ? &attr : &letters_only,
		   .agreed = {.receives_status = true, .notifies = notifies, .pool = POOL});
}

static struct ur_packet word(struct end *e, uint8_t opcode, uint32_t psn, struct ur_asth x)
{
	struct ur_packet p = frame_packet(opcode, false, NULL, 0);

	p.bth.dqpn = e->qp->qpn;
	p.bth.psn = ur_psn(psn);
	p.asth = x;
	p.pool = POOL;
	return p;
}

static enum ur_drop answer(struct end *e, uint32_t epsn, uint8_t syndrome, struct ur_asth x)
{
	bool nak = syndrome & UR_SYNDROME_KIND_MASK;
	struct ur_packet p = word(e, UR_EXT_ACKNOWLEDGE_STATUS, epsn - !nak, x);

	p.aeth = (struct ur_aeth){syndrome, 0};
	p.xaeth = (struct ur_xaeth){.echo = e->out.xth.stamp, .epsn = ur_psn(epsn)};
	e->now_ns += 1000;
	return end_in(e, p);
}

static void acked(struct end *e, uint32_t epsn, struct ur_asth x)
{
	cr_assert_eq(answer(e, epsn, 0x1f, x), UR_DROP_NONE);
}

static void refused(struct end *e, uint32_t epsn, struct ur_asth x)
{
	cr_assert_eq(answer(e, epsn, UR_SYNDROME_RNR_NAK | RNR_US10, x), UR_DROP_NONE);
}

static enum ur_drop notified(struct end *e, uint32_t psn, struct ur_asth x)
{
	return end_in(e, word(e, UR_EXT_NOTIFY, psn, x));
}

static unsigned claim_of(const struct ur_packet *p)
{
	return (p->xth.flags & UR_XTH_CLAIM) >> UR_XTH_CLAIM_SHIFT;
}

static void send(struct end *e, uint64_t id)
{
	end_send(e, id, IBV_WR_SEND, 16);
}

#define STATUS(...) ((struct ur_asth){__VA_ARGS__})

/* ADM-CLASS-01, ADM-CLASS-03 */
Test(admission_qp, refusals_with_a_class_cost_no_retry_and_the_class_is_claimed)
{
	struct end *e = sender(false);

	send(e, 1);
	cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_NONE);
	for (unsigned i = 0; i < 9; i++) { /* rnr_retry is 2 */
		refused(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
		end_expect_silence(e);
		end_sleep(e, 12000);
		cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_CLASS_A);
	}
	cr_assert_eq(e->qp->adm.queue_class, UR_ADM_CLASS_A);
	acked(e, 1001, STATUS(.status = UR_ADM_NB, .generation = 2));
	cr_assert_eq(e->qp->adm.queue_class, UR_ADM_NONE);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	/* Without a queue class they do, as usual. */
	send(e, 2);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	for (unsigned i = 0; i < 2; i++) {
		refused(e, 1001, STATUS(.status = UR_ADM_A));
		end_sleep(e, 12000);
		cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1001)), UR_ADM_NONE);
	}
	refused(e, 1001, STATUS(.status = UR_ADM_A));
	end_expect_wc(e, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	end_free(e);
}

/* ADM-CLASS-01: nothing is in flight that could have been refused. */
Test(admission_qp, a_class_without_a_refused_request_is_ignored)
{
	struct end *e = sender(true);

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	acked(e, 1001, STATUS(.status = UR_ADM_NA, .queue_class = UR_ADM_CLASS_B));
	cr_assert_eq(e->qp->adm.queue_class, UR_ADM_NONE);
	send(e, 2);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	/* An old status. */
	acked(e, 1000, STATUS(.status = UR_ADM_NA, .queue_class = UR_ADM_CLASS_B));
	cr_assert_eq(e->qp->adm.queue_class, UR_ADM_NONE);
	acked(e, 1001, STATUS(.status = UR_ADM_NA, .queue_class = 3));
	cr_assert_eq(e->qp->adm.queue_class, UR_ADM_NONE);
	end_free(e);
}

/* ADM-TAG-01 */
Test(admission_qp, requests_to_a_pool_with_notifies_have_its_tag)
{
	struct end *e = sender(true);

	for (uint32_t n = 0; n < 3; n++) {
		const struct ur_packet *p;

		send(e, n);
		p = end_expect(e, UR_EXT_SEND_ONLY, 1000 + n);
		cr_assert(p->xth.tag == ur_pool_tag(POOL) && p->xth.rwqen == n);
		acked(e, 1001 + n, STATUS(.status = UR_ADM_NA));
	}
	e = sender(false);
	send(e, 1);
	cr_assert_eq(end_expect(e, UR_EXT_SEND_ONLY, 1000)->xth.tag, 0);
}

/* ADM-GRANT-04 */
Test(admission_qp, a_grant_sends_the_refused_message_at_once)
{
	struct end *e = sender(true);

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
	end_expect_silence(e);
	cr_assert_eq(notified(e, 1000, STATUS(.status = UR_ADM_A, .generation = 1)), UR_DROP_NONE);
	end_expect_silence(e);
	cr_assert_eq(notified(e, 1000, STATUS(.queue_class = UR_ADM_CLASS_A, .granted = true)),
		     UR_DROP_NONE);
	cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_CLASS_A);
	cr_assert_eq(end_counters(e)->adm_grants_received, 1);
	cr_assert_eq(end_counters(e)->adm_notifies_received, 2);
	/* Refused, and granted before the refusal was sent. */
	refused(e, 1000,
		STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A, .granted = true));
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	end_free(e);
}

/* ADM-CLASS-02 */
Test(admission_qp, a_queue_pair_that_waits_for_a_grant_probes_and_finally_repeats)
{
	struct end *e = sender(true);

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
	for (unsigned i = 0; i < 20; i++) { /* it keeps its place for any time */
		end_sleep(e, 12000);
		end_expect(e, UR_EXT_PROBE, 1001);
		end_expect_silence(e);
		acked(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
		end_expect_silence(e);
	}
	/* There is not even an answer. */
	end_sleep(e, 12000);
	end_expect(e, UR_EXT_PROBE, 1001);
	end_sleep(e, 12000);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	/* The answer says that the place is lost. */
	refused(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
	end_sleep(e, 12000);
	end_expect(e, UR_EXT_PROBE, 1001);
	acked(e, 1000, STATUS(.status = UR_ADM_NA, .generation = 4));
	cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_NONE);
	end_free(e);
}

/* Informs the sender that the pool is in status A, so that the next message would be refused. */
static void close_pool(struct end *e)
{
	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	acked(e, 1001, STATUS(.status = UR_ADM_A, .generation = 1));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
}

/* ADM-HOLD-01 */
Test(admission_qp, a_message_that_would_be_refused_waits_and_others_do_not)
{
	struct end *e = sender(true);

	close_pool(e);
	end_send(e, 2, IBV_WR_RDMA_WRITE, 16);
	send(e, 3);
	end_send(e, 4, IBV_WR_RDMA_WRITE, 16);
	end_expect(e, UR_EXT_WRITE_ONLY, 1001);
	end_expect_silence(e); /* in order */
	cr_assert(e->qp->adm.waiter.waits);
	cr_assert_eq(end_counters(e)->adm_waits, 1);
	cr_assert_eq(notified(e, 1001, STATUS(.status = UR_ADM_NB, .generation = 2)), UR_DROP_NONE);
	end_expect(e, UR_EXT_SEND_ONLY, 1002);
	end_expect(e, UR_EXT_WRITE_ONLY, 1003);
	cr_assert_eq(end_counters(e)->adm_woken, 1);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* ADM-SST-03 */
Test(admission_qp, a_message_waits_no_longer_than_what_is_known_counts)
{
	struct end *e = sender(true);

	close_pool(e);
	send(e, 2);
	end_expect_silence(e);
	end_sleep(e, 39 * MS);
	end_expect_silence(e);
	end_sleep(e, 2 * MS);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	end_free(e);
}

/* ADM-HOLD-02 */
Test(admission_qp, a_message_found_ready_is_sent_whatever_status_arrives)
{
	struct end *e = sender(true);

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	send(e, 2); /* in the ready list */
	acked(e, 1001, STATUS(.status = UR_ADM_A, .generation = 1));
	send(e, 3);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	end_expect_silence(e);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* ADM-HOLD-03: after the refusal of an earlier message it may no longer be sent. */
Test(admission_qp, a_refusal_holds_back_the_messages_that_follow)
{
	struct end *e = sender(true);

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	send(e, 2); /* found ready */
	cr_assert(e->qp->adm.may_send);
	refused(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
	end_expect_silence(e);
	acked(e, 1001, STATUS(.status = UR_ADM_A));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_silence(e);
	cr_assert(e->qp->adm.waiter.waits);
	notified(e, 1001, STATUS(.status = UR_ADM_NB, .generation = 1));
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	end_free(e);
}

/* Answers the probe: the peer keeps 1002 and still waits for 1000. */
static void answer_probe(struct end *e)
{
	static const uint8_t third[4] = {0x02};
	struct ur_packet p = word(e, UR_EXT_ACKNOWLEDGE_STATUS, 1000,
				  STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));

	p.aeth.syndrome = UR_SYNDROME_NAK | UR_NAK_PSN_SEQ;
	p.xaeth = (struct ur_xaeth){.echo = e->out.xth.stamp, .epsn = ur_psn(1000)};
	p.payload = third;
	p.payload_len = sizeof(third);
	cr_assert_eq(end_in(e, p), UR_DROP_NONE);
}

/* ADM-HOLD-03: neither new nor lost packets are sent; only una, until it arrives. */
Test(admission_qp, nothing_follows_a_message_that_was_refused)
{
	struct end *e = sender(true);
	const struct ur_packet *p;
	unsigned first = 0;

	for (unsigned i = 1; i <= 3; i++)
		send(e, i);
	for (unsigned i = 0; i < 3; i++)
		end_expect(e, UR_EXT_SEND_ONLY, 1000 + i);
	refused(e, 1000, STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A));
	send(e, 4);
	notified(e, 1000, STATUS(.queue_class = UR_ADM_CLASS_A, .granted = true));
	for (unsigned i = 0; i < 20; i++) { /* less than the local ACK timeouts allow */
		while ((p = end_out(e))) {
			if (p->bth.opcode == UR_EXT_PROBE) {
				answer_probe(e);
				continue;
			}
			cr_assert_eq(p->bth.psn.v, 1000);
			first++;
		}
		end_sleep(e, MS / 2);
	}
	cr_assert_geq(first, 3, "%u", first);
	cr_assert_leq(first, 40, "no more than one a timeout");
	acked(e, 1001, STATUS(.status = UR_ADM_NA, .generation = 4));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	end_expect(e, UR_EXT_SEND_ONLY, 1003);
	end_free(e);
}

static struct end *paper_sender(void)
{
	return END(.mode = UR_MODE_EXTENDED, .admission = &paper,
		   .agreed = {
			   .receives_status = true, .notifies = true, .paper = true, .pool = POOL});
}

/* ADM-PAPER-02 */
Test(admission_qp, in_mode_paper_a_served_class_repeats_like_any_refused_request)
{
	struct end *e = paper_sender();

	cr_assert_eq(e->qp->admission, UR_ADM_SENDER | UR_ADM_HOLDER | UR_ADM_UNGRANTED);
	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	for (unsigned i = 0; i < 9; i++) { /* rnr_retry is 2 */
		refused(e, 1000,
			STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_A, .generation = 1));
		end_expect_silence(e);
		end_sleep(e, 12000);
		cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_CLASS_A);
	}
	cr_assert_eq(end_counters(e)->adm_waits, 0);
	cr_assert_eq(end_counters(e)->probes_sent, 0);
	acked(e, 1001, STATUS(.status = UR_ADM_NB, .generation = 2));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_free(e);
}

/* ADM-PAPER-02 */
Test(admission_qp, in_mode_paper_a_class_that_is_not_served_is_held_back_until_the_notify)
{
	struct end *e = paper_sender();

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000,
		STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_B, .generation = 1));
	end_sleep(e, 12000);
	end_expect_silence(e);
	cr_assert(e->qp->adm.waiter.waits);
	cr_assert_eq(e->qp->adm.waiter.queue_class, UR_ADM_CLASS_B);
	cr_assert_eq(end_counters(e)->adm_waits, 1);
	/* The same status again, with room: no reason to send. */
	cr_assert_eq(notified(e, 1000, STATUS(.status = UR_ADM_A, .generation = 1, .room = 3)),
		     UR_DROP_NONE);
	end_sleep(e, 2000);
	end_expect_silence(e);
	cr_assert_eq(notified(e, 1000, STATUS(.status = UR_ADM_NB, .generation = 2)), UR_DROP_NONE);
	end_sleep(e, 2000);
	cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_CLASS_B);
	/* Refused again, but in B this class is served: it repeats. */
	refused(e, 1000,
		STATUS(.status = UR_ADM_B, .queue_class = UR_ADM_CLASS_B, .generation = 3));
	end_sleep(e, 12000);
	cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_CLASS_B);
	acked(e, 1001, STATUS(.status = UR_ADM_NA, .generation = 4));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* ADM-PAPER-02: the RNR timer still counts; the NOTIFY ends only the waiting after it. */
Test(admission_qp, in_mode_paper_a_notify_does_not_shorten_the_rnr_timer)
{
	struct end *e = paper_sender();

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000,
		STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_B, .generation = 1));
	notified(e, 1000, STATUS(.status = UR_ADM_NB, .generation = 2));
	end_sleep(e, 5000);
	end_expect_silence(e);
	end_sleep(e, 7000);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	end_free(e);
}

/* ADM-PAPER-02, ADM-SST-03: the refusal lives on, a lost NOTIFY heals, and a dead receiver is noticed. */
Test(admission_qp, in_mode_paper_a_request_that_is_held_back_for_long_probes)
{
	struct end *e = paper_sender();

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000,
		STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_B, .generation = 1));
	end_sleep(e, 12000);
	end_expect_silence(e);
	for (unsigned i = 0; i < 20; i++) {
		end_sleep(e, FALLBACK_NS + 2000);
		end_expect(e, UR_EXT_PROBE, 1001);
		end_expect_silence(e);
		acked(e, 1000,
		      STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_B, .generation = 1));
		end_expect_silence(e);
	}
	cr_assert_eq(end_counters(e)->adm_waits, 1);
	/* The NOTIFYs of NB and B were lost. */
	end_sleep(e, FALLBACK_NS + 2000);
	end_expect(e, UR_EXT_PROBE, 1001);
	acked(e, 1000, STATUS(.status = UR_ADM_B, .queue_class = UR_ADM_CLASS_B, .generation = 3));
	end_sleep(e, 2000);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000,
		STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_B, .generation = 5));
	end_sleep(e, 12000);
	/* Nothing arrives any more: the status expires, and the request goes. */
	for (unsigned i = 0; i < 3; i++) {
		end_sleep(e, FALLBACK_NS + 2000);
		end_expect(e, UR_EXT_PROBE, 1001);
		end_expect_silence(e);
	}
	end_sleep(e, FALLBACK_NS + 2000);
	end_sleep(e, 2000);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	end_free(e);
}

/* ADM-PAPER-02: the answer to the probe says that the place is lost. */
Test(admission_qp, in_mode_paper_a_request_without_a_class_any_more_is_sent_again)
{
	struct end *e = paper_sender();

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	refused(e, 1000,
		STATUS(.status = UR_ADM_A, .queue_class = UR_ADM_CLASS_B, .generation = 1));
	end_sleep(e, 12000);
	end_sleep(e, FALLBACK_NS + 2000);
	end_expect(e, UR_EXT_PROBE, 1001);
	acked(e, 1000, STATUS(.status = UR_ADM_A, .generation = 1));
	cr_assert_eq(claim_of(end_expect(e, UR_EXT_SEND_ONLY, 1000)), UR_ADM_NONE);
	cr_assert(!e->qp->adm.waiter.waits);
	end_free(e);
}

/* ADM-PAPER-03: otherwise than in the other modes, see ADM-HOLD-02 above */
Test(admission_qp, in_mode_paper_a_message_found_ready_is_held_back_if_the_status_changes)
{
	struct end *e = paper_sender();

	send(e, 1);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	acked(e, 1001, STATUS(.status = UR_ADM_NA));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	send(e, 2); /* in the ready list */
	cr_assert(e->qp->adm.may_send);
	notified(e, 1001, STATUS(.status = UR_ADM_A, .generation = 1));
	end_expect_silence(e);
	cr_assert(e->qp->adm.waiter.waits);
	/* Released, and held back again: once. */
	notified(e, 1001, STATUS(.status = UR_ADM_NB, .generation = 2));
	notified(e, 1001, STATUS(.status = UR_ADM_B, .generation = 3));
	end_expect_silence(e);
	/* ADM-PAPER-04 */
	notified(e, 1001, STATUS(.status = UR_ADM_NA, .generation = 4));
	notified(e, 1001, STATUS(.status = UR_ADM_A, .generation = 5));
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* ADM-PAPER-03: a message whose release was used up is none of it, and the next one is judged anew. */
Test(admission_qp, in_mode_paper_each_message_of_a_queue_is_judged)
{
	struct end *e = paper_sender();

	for (unsigned i = 1; i <= 4; i++)
		send(e, i);
	end_expect(e, UR_EXT_SEND_ONLY, 1000);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	notified(e, 1000, STATUS(.status = UR_ADM_A, .generation = 1));
	end_expect_silence(e);
	acked(e, 1002, STATUS(.status = UR_ADM_A, .generation = 1));
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	end_expect_wc(e, 2, IBV_WC_SUCCESS);
	end_expect_silence(e);
	notified(e, 1002, STATUS(.status = UR_ADM_NB, .generation = 2));
	end_expect(e, UR_EXT_SEND_ONLY, 1002);
	end_expect(e, UR_EXT_SEND_ONLY, 1003);
	cr_assert_eq(end_counters(e)->sched_blind_visits, 0);
	end_free(e);
}

/* ADM-NOTIFY-04 */
Test(admission_qp, a_notify_that_is_not_for_it_changes_nothing)
{
	struct end *e = sender(true);
	struct ur_asth open = {.status = UR_ADM_NB, .generation = 2};
	struct ur_packet p;

	close_pool(e);
	send(e, 2);
	end_expect_silence(e);
	p = word(e, UR_EXT_NOTIFY, 1001, open);
	p.pool = POOL + 1;
	cr_assert_eq(end_in(e, p), UR_DROP_POOL);
	cr_assert_eq(notified(e, 1000, open), UR_DROP_POOL, "before una");
	cr_assert_eq(notified(e, 1002, open), UR_DROP_POOL, "not sent yet");
	p = word(e, UR_EXT_NOTIFY, 1001, open);
	p.ip.src.b[15]++;
	cr_assert_eq(end_in(e, p), UR_DROP_PEER);
	end_expect_silence(e);
	cr_assert_eq(notified(e, 1001, open), UR_DROP_NONE);
	end_expect(e, UR_EXT_SEND_ONLY, 1001);
	end_free(e);
	e = sender(false);
	cr_assert_eq(notified(e, 1000, open), UR_DROP_POOL, "it agreed on queue classes only");
	end_free(e);
	e = END(.mode = UR_MODE_EXTENDED);
	cr_assert_eq(notified(e, 1000, open), UR_DROP_POOL, "it was told of nothing");
	end_free(e);
}

/* ADM-AGREE-01 */
Test(admission_qp, what_was_agreed_counts_from_rtr_on_unless_the_mode_is_plain)
{
	struct ur_adm_agreed agreed = {.receives_status = true, .notifies = true, .pool = POOL};
	struct end *e = sender(true);

	cr_assert_eq(e->qp->admission, UR_ADM_SENDER | UR_ADM_HOLDER);
	cr_assert_eq(ur_qp_set_agreed(e->qp, &agreed), -EINVAL, "in RTS");
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(e->qp->admission, 0);
	agreed.tables = 8;
	cr_assert_eq(ur_qp_set_agreed(e->qp, &agreed), -EINVAL);
	agreed.tables = 7;
	cr_assert_eq(ur_qp_set_agreed(e->qp, &agreed), 0);
	end_free(e);
	e = END(.mode = UR_MODE_EXTENDED, .agreed = agreed);
	cr_assert_eq(e->qp->admission, 0, "plain");
	end_free(e);
	e = END(.mode = UR_MODE_REORDER, .admission = &attr, .agreed = agreed);
	cr_assert_eq(e->qp->admission, 0, "standard headers");
	end_free(e);
}

/* ---- the receiver ---- */

struct receiver {
	struct ur_srq srq;
	struct end *e;
	void *ring;
	uint32_t stamp;
};

static struct receiver *receiver_new(const struct ur_adm_attr *a)
{
	struct receiver *r = calloc(1, sizeof(*r));

	r->ring = aligned_alloc(64, (ur_rq_ring_bytes(8, 1) + 63) & ~63ul);
	ur_srq_init(&r->srq, r->ring, 8, 1, END_PD, NULL);
	r->srq.pool = POOL;
	r->e = END(.mode = UR_MODE_EXTENDED, .srq = &r->srq, .admission = a,
		   .agreed = {.sends_status = true});
	return r;
}

static void receiver_free(struct receiver *r)
{
	end_free(r->e);
	free(r->ring);
	free(r);
}

static void post(struct receiver *r)
{
	struct ibv_sge sge = {(uintptr_t)r->e->buf, 64, r->e->key};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	cr_assert_eq(ur_rq_post(&r->srq.rq, &wr), 0);
}

/* Message `n` of the peer, from 0, of one packet arrives and claims a queue class. */
static enum ur_drop arrives(struct receiver *r, uint32_t n, uint8_t claim)
{
	struct ur_packet p = end_packet(r->e, UR_EXT_SEND_ONLY, END_RQ_PSN + n, 16);

	p.bth.ackreq = true;
	p.xth = (struct ur_xth){
		.stamp = ++r->stamp,
		.ssn = (ur_first_ssn(ur_psn(END_RQ_PSN)).v + n) & UR_PSN_MASK,
		.flags = (uint8_t)(UR_XTH_RECV | claim << UR_XTH_CLAIM_SHIFT),
		.rwqen = n,
	};
	return end_in(r->e, p);
}

static const struct ur_packet *expect_status(struct receiver *r, uint32_t psn, uint8_t status,
					     uint8_t queue_class)
{
	const struct ur_packet *p = end_expect(r->e, UR_EXT_ACKNOWLEDGE_STATUS, psn);

	cr_assert_eq(p->asth.status, status);
	cr_assert_eq(p->asth.queue_class, queue_class);
	return p;
}

/* ADM-STATUS-01, ADM-GRANT-01, ADM-NOTIFY-03, ADM-AGREE-01 */
Test(admission_qp, answers_have_the_status_and_a_posted_receive_is_granted)
{
	struct receiver *r = receiver_new(&attr);
	const struct ur_packet *p;

	post(r);
	post(r);
	cr_assert_eq(arrives(r, 0, 0), UR_DROP_NONE);
	cr_assert_eq(expect_status(r, 100, UR_ADM_NA, UR_ADM_NONE)->asth.room, 1);
	cr_assert_eq(arrives(r, 1, 0), UR_DROP_NONE);
	cr_assert_eq(expect_status(r, 101, UR_ADM_NA, UR_ADM_NONE)->asth.room, 0);
	cr_assert_eq(arrives(r, 2, 0), UR_DROP_RNR);
	p = expect_status(r, 102, UR_ADM_A, UR_ADM_CLASS_A);
	cr_assert_eq(p->asth.generation, 1);
	cr_assert(!p->asth.granted);
	/* The grant will wake it. The timer is the longer of 0.64 and 10 ms that an RNR NAK can express. */
	cr_assert_eq(p->aeth.syndrome & UR_SYNDROME_KIND_MASK, UR_SYNDROME_RNR_NAK);
	cr_assert_eq(ur_rnr_timer_ns(p->aeth.syndrome), UINT64_C(10240000));
	end_expect_silence(r->e);
	post(r);
	cr_assert(ur_engine_wants_output(r->e->engine));
	p = end_expect(r->e, UR_EXT_NOTIFY, 102);
	cr_assert(p->asth.granted);
	cr_assert_eq(p->asth.queue_class, UR_ADM_CLASS_A);
	cr_assert_eq(p->asth.room, 0, "it is promised");
	cr_assert_eq(p->pool, POOL);
	end_expect_silence(r->e);
	cr_assert_eq(arrives(r, 2, UR_ADM_CLASS_A), UR_DROP_NONE);
	expect_status(r, 102, UR_ADM_NB, UR_ADM_NONE);
	cr_assert_eq(end_counters(r->e)->adm_accepted, 3);
	cr_assert_eq(end_counters(r->e)->adm_refused, 1);
	cr_assert_eq(end_counters(r->e)->adm_grants_sent, 1);
	cr_assert_eq(end_counters(r->e)->adm_false_claims, 0);
	/* A round trip after the last NOTIFY, the peer is notified of NB. */
	end_sleep(r->e, 300000);
	p = end_expect(r->e, UR_EXT_NOTIFY, 103);
	cr_assert_eq(p->asth.status, UR_ADM_NB);
	cr_assert_eq(p->asth.generation, 2);
	cr_assert_eq(p->asth.queue_class, UR_ADM_NONE);
	cr_assert_eq(end_counters(r->e)->adm_notifies_sent, 1);
	receiver_free(r);
}

static void expect_notify(struct receiver *r, uint32_t psn, uint8_t status, uint16_t generation)
{
	const struct ur_packet *p = end_expect(r->e, UR_EXT_NOTIFY, psn);

	cr_assert_eq(p->asth.status, status);
	cr_assert_eq(p->asth.generation, generation);
	cr_assert(!p->asth.granted);
	cr_assert_eq(p->asth.queue_class, UR_ADM_NONE);
	cr_assert_eq(p->pool, POOL);
}

/* ADM-PAPER-01, ADM-PAPER-02 */
Test(admission_qp, in_mode_paper_each_change_is_told_at_once_and_nothing_is_granted)
{
	struct receiver *r = receiver_new(&paper);

	cr_assert_eq(arrives(r, 0, 0), UR_DROP_RNR);
	expect_notify(r, 100, UR_ADM_A, 1);
	/* The queue pair's own timer, as in mode ab. */
	cr_assert_eq(expect_status(r, 100, UR_ADM_A, UR_ADM_CLASS_A)->aeth.syndrome,
		     UR_SYNDROME_RNR_NAK | 12);
	post(r);
	end_expect_silence(r->e);
	cr_assert_eq(arrives(r, 0, UR_ADM_CLASS_A), UR_DROP_NONE);
	cr_assert_eq(arrives(r, 1, 0), UR_DROP_RNR);
	expect_notify(r, 101, UR_ADM_NB, 2);
	expect_notify(r, 101, UR_ADM_B, 3);
	expect_status(r, 101, UR_ADM_B, UR_ADM_CLASS_B);
	end_expect_silence(r->e);
	end_sleep(r->e, 10 * MS);
	end_expect_silence(r->e);
	cr_assert_eq(end_counters(r->e)->adm_notifies_sent, 3);
	cr_assert_eq(end_counters(r->e)->adm_grants_sent, 0);
	receiver_free(r);
}

/* ADM-MODE-01: in mode ab, refusals have the queue pair's own timer, and there are no grants. */
Test(admission_qp, in_mode_ab_only_answers_carry_the_status)
{
	struct receiver *r = receiver_new(&letters_only);

	cr_assert_eq(arrives(r, 0, UR_ADM_CLASS_B), UR_DROP_RNR);
	cr_assert_eq(expect_status(r, 100, UR_ADM_A, UR_ADM_CLASS_A)->aeth.syndrome,
		     UR_SYNDROME_RNR_NAK | 12);
	cr_assert_eq(end_counters(r->e)->adm_false_claims, 1);
	post(r);
	end_expect_silence(r->e);
	end_sleep(r->e, 10 * MS);
	end_expect_silence(r->e);
	receiver_free(r);
}

Test(admission_qp, an_unknown_claimed_class_is_ignored)
{
	struct receiver *r = receiver_new(&letters_only);

	cr_assert_eq(arrives(r, 0, 3), UR_DROP_RNR);
	expect_status(r, 100, UR_ADM_A, UR_ADM_CLASS_A);
	cr_assert_eq(end_counters(r->e)->adm_false_claims, 0);
	receiver_free(r);
}

/* ADM-REFUSAL-02, ADM-REFUSAL-03 */
Test(admission_qp, a_queue_class_ends_with_its_holder_or_after_silence)
{
	struct receiver *r = receiver_new(&attr);

	cr_assert_eq(arrives(r, 0, 0), UR_DROP_RNR);
	end_drain(r->e);
	for (unsigned i = 0; i < 6; i++) { /* probes refresh it */
		struct ur_packet p = end_packet(r->e, UR_EXT_PROBE, 101, 0);

		end_sleep(r->e, 60 * MS);
		p.xth = (struct ur_xth){.stamp = ++r->stamp};
		cr_assert_eq(end_in(r->e, p), UR_DROP_NONE);
		end_drain(r->e);
		cr_assert_eq(r->srq.adm.refused[UR_ADM_CLASS_A], 1);
	}
	end_sleep(r->e, 101 * MS);
	cr_assert_eq(r->srq.adm.refused[UR_ADM_CLASS_A], 0);
	cr_assert_eq(end_counters(r->e)->adm_expired, 1);
	end_drain(r->e);
	cr_assert_eq(arrives(r, 0, 0), UR_DROP_RNR);
	cr_assert_eq(r->srq.adm.refused[UR_ADM_CLASS_B], 1);
	end_modify(r->e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0);
	cr_assert_eq(r->srq.adm.refused[UR_ADM_CLASS_B], 0);
	cr_assert_eq(r->e->qp->admission, 0);
	receiver_free(r);
}

/* ADM-EARLY-01 */
Test(admission_qp, an_early_packet_takes_only_receives_without_a_waiter)
{
	struct receiver *r = receiver_new(&attr);

	/* NA and a receive: as usual. */
	post(r);
	post(r);
	cr_assert_eq(arrives(r, 1, 0), UR_DROP_NONE);
	cr_assert_eq(ur_wq_head(&r->srq.rq), 2);
	cr_assert_eq(arrives(r, 0, 0), UR_DROP_NONE);
	end_drain(r->e);
	cr_assert_eq(end_counters(r->e)->adm_accepted, 2);
	/* The queue pair itself has a queue class, so later packets take nothing. */
	cr_assert_eq(arrives(r, 2, 0), UR_DROP_RNR);
	end_drain(r->e);
	post(r);
	post(r);
	cr_assert_eq(arrives(r, 3, 0), UR_DROP_RNR);
	cr_assert_eq(ur_wq_head(&r->srq.rq), 2);
	cr_assert_eq(end_counters(r->e)->adm_refused, 1, "it is not judged at all");
	cr_assert_eq(arrives(r, 2, 0), UR_DROP_NONE);
	cr_assert_eq(ur_wq_head(&r->srq.rq), 3);
	receiver_free(r);
}
