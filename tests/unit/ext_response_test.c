/* SPDX-License-Identifier: BSD-3-Clause */
#include "ext_peer.h"
#include "transport/rc/spray.h"
#include "wire/delay.h"

static void let_pass(struct peer *x, uint64_t ns)
{
	x->e->now_ns += ns;
}

/* EXT-RESP-SACK-01 */
Test(ext_response, nak_tells_what_came_beyond_the_gap)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 40 * PEER_MTU);
	const struct ur_packet *p;

	peer_in(x, &w[1]);
	peer_in(x, &w[4]);
	p = peer_expect_nak(x, 100, 0x60);
	cr_assert_eq(p->xaeth.epsn.v, 100);
	cr_assert_eq(p->payload_len, 4);
	cr_assert_eq(memcmp(p->payload, (uint8_t[]){0x09, 0, 0, 0}, 4), 0);
	peer_expect_silence(x);
	peer_in(x, &w[39]);
	p = peer_expect_nak(x, 100, 0x60);
	cr_assert_eq(p->payload_len, 8);
	cr_assert_eq(memcmp(p->payload, (uint8_t[]){0x09, 0, 0, 0, 0x40, 0, 0, 0}, 8), 0);
	/* The remaining gap moves the bitmap. */
	peer_in(x, &w[0]);
	p = peer_expect_nak(x, 102, 0x60);
	cr_assert_eq(p->xaeth.epsn.v, 102);
	cr_assert_eq(memcmp(p->payload, (uint8_t[]){0x02, 0, 0, 0}, 4), 0);
	peer_free(x);
}

/* EXT-RESP-SACK-01 */
Test(ext_response, many_packets_owe_one_nak)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 10 * PEER_MTU);

	for (unsigned i = 1; i < 10; i++)
		peer_in(x, &w[i]);
	cr_assert_eq(peer_drain(x), 1);
	cr_assert_eq(x->qp->core->cnt.seq_nak_sent, 1);
	cr_assert_eq(x->qp->core->cnt.early_packets, 9);
	peer_free(x);
}

/* EXT-RESP-ACK-03 */
Test(ext_response, what_follows_the_newest_early_packet_is_acknowledged_on_request)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 10 * PEER_MTU);

	peer_in(x, &w[1]);
	peer_expect_nak(x, 100, 0x60);
	peer_in(x, &w[2]);
	peer_in(x, &w[3]);
	peer_expect_silence(x);
	w[4].bth.ackreq = true;
	peer_in(x, &w[4]);
	peer_expect_nak(x, 100, 0x60);
	/* A second gap, and one that is filled late, are acknowledged. */
	peer_in(x, &w[6]);
	peer_expect_nak(x, 100, 0x60);
	peer_in(x, &w[5]);
	peer_expect_nak(x, 100, 0x60);
	peer_free(x);
}

/* EXT-RESP-ECHO-01 */
Test(ext_response, ack_echoes_the_newest_packet_by_stamp)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 3 * PEER_MTU);
	const struct ur_packet *p;

	w[1].xth.path = 1;
	w[2].xth.path = 2;
	x->stamp = UINT32_MAX - 1; /* the newest of two that wrap */
	peer_in(x, &w[2]);
	x->stamp = 9;
	peer_in(x, &w[1]);
	let_pass(x, 1600);
	x->stamp = 4;
	w[0].xth.path = 3;
	peer_in(x, &w[0]);
	let_pass(x, 320);
	p = peer_expect_ack(x, 103);
	cr_assert_eq(p->xaeth.echo, 10);
	cr_assert_eq(p->xaeth.path, 1);
	cr_assert_eq(p->xaeth.residence, (1600 + 160 + 320) >> UR_STAMP_SHIFT);
	peer_free(x);
}

/* EXT-RESP-ECHO-02 */
Test(ext_response, read_response_echoes_the_request_that_asked)
{
	struct peer *x = PEER();
	struct ur_packet *r = peer_read(x, 256, 700, 0, true);
	static const uint8_t opcode[] = {UR_EXT_READ_RESPONSE_FIRST, UR_EXT_READ_RESPONSE_MIDDLE,
					 UR_EXT_READ_RESPONSE_LAST};

	for (unsigned i = 0; i < 1024; i++)
		x->e->buf[i] = (uint8_t)(i * 7);
	r->xth.path = 5;
	peer_in(x, r);
	for (unsigned i = 0; i < 3; i++) {
		const struct ur_packet *p;

		let_pass(x, 160);
		p = peer_expect(x, opcode[i], 100);
		cr_assert_eq(p->xaeth.echo, r->xth.stamp);
		cr_assert_eq(p->xaeth.residence, 10 * (i + 1));
		cr_assert_eq(p->xaeth.path, 5);
		cr_assert_eq(p->xaeth.epsn.v, 101);
		cr_assert_eq(p->xrth.ssn, 1);
		cr_assert_eq(p->xrth.offset, i);
		cr_assert_eq(p->aeth.msn, 1);
		cr_assert_eq(p->payload_len, i < 2 ? 256 : 188);
		cr_assert_eq(memcmp(p->payload, x->e->buf + 256 + i * 256, p->payload_len), 0);
	}
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-READ-01 */
Test(ext_response, parts_of_a_read_number_their_packets_through)
{
	struct peer *x = PEER();
	struct ur_packet *a = peer_read(x, 0, 512, 0, false), *b = peer_read(x, 512, 100, 2, true);

	peer_in(x, a);
	cr_assert_eq(x->qp->rsp.msn.v, 0);
	peer_in(x, b);
	cr_assert_eq(x->qp->rsp.msn.v, 1);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100)->xrth.offset, 0);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100)->xrth.offset, 1);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 101)->xrth.offset, 2);
	peer_free(x);
}

Test(ext_response, read_of_nothing_is_answered)
{
	struct peer *x = PEER();
	struct ur_packet *r = peer_read(x, 0, 0, 0, true);

	r->reth.rkey = 1; /* not checked */
	peer_in(x, r);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 100)->payload_len, 0);
	peer_free(x);
}

/* EXT-RESP-ANSWER-01 */
Test(ext_response, first_answers_leave_in_order_and_repeats_before_them)
{
	struct peer *x = PEER(.dest_rd_atomic = 2);
	struct ur_packet *r = peer_read(x, 0, 300, 0, true), *a = peer_fetch_add(x, 64, 1), again;

	peer_in(x, r);
	peer_in(x, a);
	peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 0);
	/* In the middle of a response, which continues where it was. */
	again = *r;
	again.reth.length = 256;
	peer_in(x, &again);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 100)->xaeth.echo, again.xth.stamp);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 1);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100)->xrth.offset, 1);
	peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 1);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-DUP-04 */
Test(ext_response, what_has_not_left_yet_is_not_repeated)
{
	struct peer *x = PEER(.dest_rd_atomic = 2);
	struct ur_packet *r = peer_read(x, 0, 300, 0, true), *a = peer_fetch_add(x, 64, 1);

	peer_in(x, r);
	peer_in(x, a);
	cr_assert_eq(peer_in(x, r), UR_DROP_PSN_DUPLICATE);
	peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100);
	cr_assert_eq(peer_in(x, r), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_in(x, a), UR_DROP_PSN_DUPLICATE);
	peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100);
	peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101);
	peer_expect_silence(x);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 0);
	peer_free(x);
}

/* SPRAY-ANSWER-01. No queue pair has a path of 16 or more: the peer's word for one is not taken. */
Test(ext_response, acks_and_naks_take_the_path_of_the_packet_that_they_echo)
{
	static const uint8_t path[] = {0, 1, 15, 16, 255, 3};
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 8 * PEER_MTU);
	struct ur_packet probe = {.op = ur_op_flags(UR_EXT_PROBE)};

	for (unsigned i = 0; i < 6; i++) {
		uint8_t taken = path[i] < UR_SPRAY_MAX ? path[i] : 0;

		w[i].xth.path = path[i];
		w[i].bth.ackreq = true;
		peer_in(x, &w[i]);
		cr_assert_eq(peer_expect_ack(x, 101 + i)->sport, ur_spray_port(END_SPORT, taken));
	}
	probe.bth.opcode = UR_EXT_PROBE;
	probe.xth.path = 7;
	peer_in(x, &probe);
	cr_assert_eq(peer_expect_ack(x, 106)->sport, ur_spray_port(END_SPORT, 7));
	w[7].xth.path = 9;
	peer_in(x, &w[7]);
	cr_assert_eq(peer_expect_nak(x, 106, 0x60)->sport, ur_spray_port(END_SPORT, 9));
	peer_free(x);
}

/* SPRAY-ANSWER-01 */
Test(ext_response, repeats_take_the_path_of_what_asked_for_them)
{
	struct peer *x = PEER(.dest_rd_atomic = 2);
	struct ur_packet *r = peer_read(x, 0, 300, 0, true), *a = peer_fetch_add(x, 64, 1), again;

	r->xth.path = 5;
	a->xth.path = 6;
	peer_in(x, r);
	peer_in(x, a);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100)->sport, END_SPORT);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100)->sport, END_SPORT);
	cr_assert_eq(peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101)->sport, END_SPORT);
	again = *r;
	again.xth.path = 9;
	again.reth.length = 256;
	peer_in(x, &again);
	a->xth.path = 10;
	peer_in(x, a);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 100)->sport,
		     ur_spray_port(END_SPORT, 9));
	cr_assert_eq(peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101)->sport,
		     ur_spray_port(END_SPORT, 10));
	peer_free(x);
}

/* Packets [first, first + cnt) of the READ `r`, of 700 bytes, once more. */
static enum ur_drop again(struct peer *x, const struct ur_packet *r, uint32_t first, uint32_t cnt)
{
	struct ur_packet part = *r;

	part.xth.offset = first;
	part.xth.stamp += 100;
	part.reth.va += first * 256;
	part.reth.length = first + cnt < 3 ? cnt * 256 : 700 - first * 256;
	return peer_in(x, &part);
}

/* EXT-RESP-DUP-05 */
Test(ext_response, what_waits_to_be_repeated_is_not_repeated_twice)
{
	struct peer *x = PEER(.dest_rd_atomic = 4);
	struct ur_packet *r = peer_read(x, 0, 700, 0, true), *a = peer_fetch_add(x, 64, 1);

	peer_in(x, r);
	peer_in(x, a);
	peer_drain(x);
	cr_assert_eq(again(x, r, 1, 2), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(again(x, r, 1, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(again(x, r, 2, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(again(x, r, 1, 2), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_in(x, a), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_in(x, a), UR_DROP_PSN_DUPLICATE);
	/* Of these only the second one waits. */
	cr_assert_eq(again(x, r, 0, 2), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100)->xrth.offset, 1);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100)->xrth.offset, 2);
	peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100)->xrth.offset, 0);
	/* What has left of it waits no longer. */
	cr_assert_eq(again(x, r, 0, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100)->xrth.offset, 1);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 100)->xrth.offset, 0);
	peer_expect_silence(x);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 6);
	peer_free(x);
}

/* EXT-RESP-DUP-06 */
Test(ext_response, the_second_of_two_read_requests_is_of_no_use_once_the_first_was_executed)
{
	struct peer *x = PEER(.dest_rd_atomic = 4);
	struct ur_packet *r = peer_read(x, 0, 700, 0, true), *s = peer_read(x, 0, 4, 0, true), twin;

	peer_in(x, r);
	peer_drain(x);
	twin = *r;
	twin.xth.flags |= UR_XTH_RETRY | UR_XTH_TWICE;
	cr_assert_eq(peer_in(x, &twin), UR_DROP_PSN_DUPLICATE);
	peer_expect_silence(x);
	/* The first one was lost. */
	twin = *s;
	twin.xth.flags |= UR_XTH_RETRY | UR_XTH_TWICE;
	cr_assert_eq(peer_in(x, &twin), UR_DROP_NONE);
	cr_assert_eq(peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, 101)->xrth.offset, 0);
	peer_expect_silence(x);
	cr_assert_eq(x->qp->core->cnt.retransmitted_responses, 0);
	peer_free(x);
}

/* A repeat with another key or address is not what waits. EXT-RESP-DUP-05 */
Test(ext_response, a_repeat_of_other_memory_is_another_one)
{
	struct peer *x = PEER(.dest_rd_atomic = 4);
	struct ur_packet *r = peer_read(x, 0, 512, 0, true), other;

	peer_in(x, r);
	peer_drain(x);
	other = *r;
	other.reth.va += 256;
	cr_assert_eq(peer_in(x, r), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(peer_in(x, &other), UR_DROP_PSN_DUPLICATE);
	for (unsigned i = 0; i < 2; i++) {
		peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100);
		peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100);
	}
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-ANSWER-01 */
Test(ext_response, repeats_take_no_room_from_first_answers)
{
	struct peer *x = PEER(.dest_rd_atomic = 2);
	struct ur_packet *r = peer_read(x, 0, 700, 0, true);

	x->qp->rsp.ans_cap = 4;
	peer_read(x, 0, 4, 0, true);
	peer_read(x, 0, 4, 0, true);
	peer_read(x, 0, 4, 0, true);
	peer_in(x, &r[0]);
	peer_drain(x);
	cr_assert_eq(again(x, r, 0, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(again(x, r, 1, 1), UR_DROP_PSN_DUPLICATE);
	cr_assert_eq(again(x, r, 2, 1), UR_DROP_DUP_UNKNOWN);
	cr_assert_eq(peer_in(x, &r[1]), UR_DROP_NONE);
	cr_assert_eq(peer_in(x, &r[2]), UR_DROP_NONE);
	/* One more than agreed. */
	cr_assert_eq(peer_in(x, &r[3]), UR_DROP_RESOURCES);
	cr_assert_eq(x->qp->state, IBV_QPS_ERR);
	for (unsigned i = 0; i < 4; i++)
		peer_expect(x, UR_EXT_READ_RESPONSE_ONLY, i < 2 ? 100 : 99 + i);
	peer_expect_nak(x, 103, 0x61);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-PROBE-01 */
Test(ext_response, probe_is_answered_behind_the_answers_before_it)
{
	struct peer *x = PEER(.dest_rd_atomic = 4);
	struct ur_packet *r = peer_read(x, 0, 300, 0, true), *a = peer_fetch_add(x, 64, 1);
	struct ur_packet *w = peer_write(x, 0, 4);
	struct ur_packet probe = {.op = ur_op_flags(UR_EXT_PROBE)};

	probe.bth.opcode = UR_EXT_PROBE;
	probe.xth.path = 7;
	peer_in(x, r);
	peer_in(x, a);
	peer_in(x, &probe);
	w->bth.ackreq = true;
	peer_in(x, w);
	/* An ACK does not wait. */
	cr_assert_eq(peer_expect_ack(x, 103)->xaeth.echo, w->xth.stamp);
	peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100);
	peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100);
	/* A later repetition is answered first, without delaying the rest. */
	peer_in(x, r);
	peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100);
	peer_expect(x, UR_EXT_READ_RESPONSE_LAST, 100);
	peer_expect(x, UR_EXT_ATOMIC_ACKNOWLEDGE, 101);
	cr_assert_eq(peer_expect_ack(x, 103)->xaeth.echo, probe.xth.stamp);
	cr_assert_eq(x->e->out.xaeth.path, 7);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-PROBE-01 */
Test(ext_response, probe_takes_no_psn_and_tells_the_gap)
{
	struct peer *x = PEER();
	struct ur_packet *w = peer_write(x, 0, 512);
	struct ur_packet probe = {.op = ur_op_flags(UR_EXT_PROBE)};

	probe.bth.opcode = UR_EXT_PROBE;
	peer_in(x, &probe);
	peer_expect_ack(x, 100);
	peer_in(x, &w[1]);
	peer_drain(x);
	peer_in(x, &probe);
	cr_assert_eq(peer_expect_nak(x, 100, 0x60)->payload_len, 4);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-DELAY-01 */
Test(ext_response, probe_that_asks_gets_its_delay_and_no_other_answer_has_one)
{
	struct peer *x = PEER(.agreed = {.delay = true});
	struct ur_packet *w = peer_write(x, 0, 4);
	struct ur_packet probe = {.op = ur_op_flags(UR_EXT_PROBE)};
	const struct ur_packet *p;

	probe.bth.opcode = UR_EXT_PROBE;
	probe.bth.resv6 = UR_DELAY_ASK | 5;
	probe.udp_csum = 0x1234;
	peer_in(x, &probe);
	p = peer_expect(x, UR_EXT_ACKNOWLEDGE_DELAY, 99);
	cr_assert_eq(p->ndth.hops, 5);
	cr_assert_eq(p->ndth.delay, 0x1234);
	cr_assert_eq(p->ndth.resv, 0);
	cr_assert_eq(p->xaeth.echo, probe.xth.stamp);
	/* No switch has stamped. */
	probe.bth.resv6 = UR_DELAY_ASK;
	probe.udp_csum = 0;
	peer_in(x, &probe);
	p = peer_expect(x, UR_EXT_ACKNOWLEDGE_DELAY, 99);
	cr_assert_eq(p->ndth.hops | p->ndth.delay, 0);
	/* PACE-NET-06: the answer asks, if the probe says so. */
	cr_assert_eq(p->bth.resv6, 0);
	probe.xth.flags = UR_XTH_BACK;
	peer_in(x, &probe);
	p = peer_expect(x, UR_EXT_ACKNOWLEDGE_DELAY, 99);
	cr_assert_eq(p->bth.resv6, UR_DELAY_ASK);
	cr_assert_eq(p->ndth.hops | p->ndth.delay, 0);
	/* It does not ask; data that does is not a probe. */
	probe.bth.resv6 = 5;
	peer_in(x, &probe);
	peer_expect_ack(x, 100);
	w->bth.ackreq = true;
	w->bth.resv6 = UR_DELAY_ASK | 5;
	peer_in(x, w);
	peer_expect_ack(x, 101);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-DELAY-01 */
Test(ext_response, probe_that_asks_without_agreement_gets_an_ack)
{
	struct peer *x = PEER();
	struct ur_packet probe = {.op = ur_op_flags(UR_EXT_PROBE)};

	probe.bth.opcode = UR_EXT_PROBE;
	probe.bth.resv6 = UR_DELAY_ASK | 5;
	peer_in(x, &probe);
	peer_expect_ack(x, 100);
	peer_expect_silence(x);
	peer_free(x);
}

/* EXT-RESP-CREDIT-01 */
Test(ext_response, credits_count_receives_beyond_what_completed)
{
	struct peer *x = PEER();
	struct ur_packet *s = peer_send(x, 512), *t = peer_send(x, 4);

	for (unsigned i = 0; i < 4; i++)
		end_post_recv(x->e, i, 0, 1000);
	s[0].bth.ackreq = true;
	peer_in(x, &s[0]);
	cr_assert_eq(peer_expect_ack(x, 101)->aeth.syndrome, ur_credits_encode(4));
	peer_in(x, t);
	peer_drain(x);
	peer_in(x, &s[1]);
	cr_assert_eq(peer_expect_ack(x, 103)->aeth.syndrome, ur_credits_encode(2));
	cr_assert_eq(x->e->out.aeth.msn, 2);
	peer_free(x);
}

/* RC-RESP-READ-02 */
Test(ext_response, region_that_has_gone_ends_a_first_answer_but_only_drops_a_repeat)
{
	struct peer *x = PEER();
	struct ur_packet *r, again;
	uint32_t key;

	cr_assert_eq(ur_mem_register(x->e->mem, END_PD, x->e->buf, 4096, (uintptr_t)x->e->buf,
				     IBV_ACCESS_REMOTE_READ, 77, &key),
		     0);
	r = peer_read(x, 0, 600, 0, true);
	r->reth.rkey = key;
	peer_read(x, 0, 600, 0, true)->reth.rkey = key;
	peer_in(x, r);
	peer_drain(x);
	again = *r;
	peer_in(x, &again);
	peer_expect(x, UR_EXT_READ_RESPONSE_FIRST, 100);
	peer_in(x, &r[1]);
	ur_mem_invalidate(x->e->mem, key, END_PD, false);
	peer_expect_nak(x, 101, 0x62);
	cr_assert_eq(x->qp->state, IBV_QPS_ERR);
	peer_expect_silence(x);
	cr_assert_eq(x->qp->core->cnt.resp_remote_access_errors, 1);
	peer_free(x);
}

Test(ext_response, stop_forgets_all_but_a_fatal_nak)
{
	struct peer *x = PEER();
	struct ur_packet *r = peer_read(x, 0, 600, 0, true), *w = peer_write(x, 0, 512);

	peer_in(x, r);
	peer_in(x, &w[1]);
	ur_ext_responder_stop(x->qp, IBV_WC_WR_FLUSH_ERR);
	ur_ext_response_stop(x->qp);
	peer_expect_silence(x);
	peer_free(x);
}
