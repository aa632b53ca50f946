/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "cm_pair.h"

Test(cm_setup, needs_req_rep_and_rtu)
{
	struct pair *p = pair_new(4);
	struct ur_cm_id id = pair_connect(p);

	pair_pass(p, 10 * MS);
	cr_expect_eq(p->sent, 3);
	cr_expect(SENT(p, A, REQ) == 1 && SENT(p, B, REP) == 1 && SENT(p, A, RTU) == 1);
	cr_expect_eq(ur_cm_state(p->s[A].cm, id), UR_CM_ST_ESTABLISHED);
	cr_expect_eq(ur_cm_state(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD]),
		     UR_CM_ST_ESTABLISHED);
	cr_expect_eq(p->s[B].ctx, p, "the child starts with the listener's context");
	pair_free(p);
}

Test(cm_setup, gives_each_side_the_parameters_of_the_other)
{
	struct pair *p = pair_new(4);

	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect_eq(p->s[B].req.qpn.v, 0x100);
	cr_expect_eq(p->s[B].req.psn.v, 0xa0a);
	cr_expect_eq(p->s[B].req.pmtu, 3);
	cr_expect_eq(p->s[B].req.primary.ack_timeout, 14);
	cr_expect_eq(p->s[A].rep.qpn.v, 0x201);
	cr_expect_eq(p->s[A].rep.psn.v, 0xb0b);
	cr_expect_eq(p->s[A].rep.ca_guid, 0x5054000000990002ull);
	pair_free(p);
}

Test(cm_setup, grants_no_more_resources_than_were_asked_for)
{
	struct pair *p = pair_new(4);

	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect_eq(p->s[A].rep.responder_resources, 2, "the REQ's initiator depth");
	cr_expect_eq(p->s[A].rep.initiator_depth, 4, "the REQ's responder resources");
	pair_free(p);
}

Test(cm_setup, splits_the_ip_header_from_the_private_data)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	struct ur_rdma_ip ip = {.ip_version = 4, .sport = 4242, .src = attr.sgid, .dst = attr.dgid};
	uint8_t data[UR_RDMA_IP_BYTES + 5];
	struct ur_cursor c = ur_cursor(data, sizeof(data));

	ur_put_rdma_ip(&c, &ip);
	ur_put_bytes(&c, "hello", 5);
	attr.service_id = IP_SERVICE;
	attr.private_data = data;
	attr.private_len = sizeof(data);
	p->s[B].accepts = false;
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	cr_assert(p->s[B].has_ip);
	cr_expect(p->s[B].ip.sport == 4242 && ur_gid_eq(&p->s[B].ip.src, &attr.sgid));
	cr_expect_eq(p->s[B].private_len, 56);
	cr_expect_arr_eq(p->s[B].private_data, "hello\0", 6);
	pair_free(p);
}

Test(cm_setup, leaves_the_private_data_of_other_services_alone)
{
	struct pair *p = pair_new(4);

	p->s[B].accepts = false;
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_expect_not(p->s[B].has_ip);
	cr_expect_eq(p->s[B].private_len, 92);
	cr_expect_arr_eq(p->s[B].private_data, "req\0", 4);
	pair_free(p);
}

Test(cm_setup, refuses_an_ip_service_without_ip_header)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	attr.service_id = IP_SERVICE;
	pair_connect_attr(p, A, &attr);
	pair_settle(p);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 0);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_UNSUPPORTED);
	pair_free(p);
}

/* One connection, up and down, whatever happened to the messages on the way. */
static void expect_one_clean_life(const struct pair *p)
{
	cr_assert_eq(SAW(p, B, REQ_RCVD), 1, "drop %#lx twice %#lx", p->drop, p->twice);
	cr_assert_eq(SAW(p, A, REP_RCVD), 1, "drop %#lx twice %#lx", p->drop, p->twice);
	cr_assert_eq(SAW(p, B, ESTABLISHED), 1, "drop %#lx twice %#lx", p->drop, p->twice);
	cr_assert_eq(ur_cm_counters(p->s[A].cm)->established, 1);
	cr_assert_eq(ur_cm_counters(p->s[B].cm)->established, 1);
	cr_assert_eq(SAW(p, A, DISCONNECTED), 1, "drop %#lx twice %#lx", p->drop, p->twice);
	cr_assert_not(p->s[A].timed_out);
	cr_assert_eq(SAW(p, B, DREQ_RCVD), 1, "drop %#lx twice %#lx", p->drop, p->twice);
	cr_assert_eq(SAW(p, A, TIMEWAIT_EXIT), 1);
	cr_assert_eq(SAW(p, B, TIMEWAIT_EXIT), 1);
	cr_assert(p->s[A].finals == 1 && p->s[B].finals == 1);
	cr_assert_eq(SAW(p, A, REJ_RCVD) + SAW(p, B, REJ_RCVD), 0);
	cr_assert_eq(SAW(p, A, UNREACHABLE) + SAW(p, B, UNREACHABLE), 0);
	cr_assert_eq(pair_in_use(p), 0, "drop %#lx twice %#lx", p->drop, p->twice);
}

static void live_once(uint64_t drop, uint64_t twice, uint8_t timeout_exp)
{
	struct pair *p = pair_new(2);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	p->drop = drop;
	p->twice = twice;
	p->s[B].ends_when_up = true;
	attr.remote_resp_timeout = attr.local_resp_timeout = timeout_exp;
	pair_connect_attr(p, A, &attr);
	pair_settle(p);
	expect_one_clean_life(p);
	pair_free(p);
}

/* CM-AMPLIFY-01: an answer is given eight times, so seven may be lost. */
Test(cm_loss, any_seven_of_the_first_twelve_messages_may_be_lost)
{
	/* Time-wait longer, and shorter, than the time between repeats. */
	for (uint64_t mask = 0; mask < 1 << 12; mask++) {
		if (__builtin_popcountll(mask) > 7)
			continue;
		live_once(mask, 0, 14);
		live_once(mask, 0, 20);
	}
}

Test(cm_loss, any_of_the_first_eight_messages_may_be_lost_and_any_other_doubled)
{
	for (uint64_t mask = 0; mask < 1 << 8; mask++)
		live_once(mask, ~mask, 14);
}

Test(cm_loss, duplicates_of_any_message_change_nothing)
{
	for (uint64_t mask = 0; mask < 1 << 12; mask++)
		live_once(0, mask, 14);
}

Test(cm_loss, a_late_copy_of_any_message_does_no_harm)
{
	struct pair *p = pair_new(4);

	p->s[B].ends_when_up = true;
	pair_connect(p);
	pair_settle(p);
	/* Sends all of them again when neither side remembers the connection. */
	for (unsigned attr = UR_CM_REQ + 1; attr <= UR_CM_DREP; attr++) {
		for (int from = A; from <= B; from++)
			if (p->sent_attr[from][attr & 15])
				pair_feed(p, !from, p->last_mad[from][attr & 15]);
	}
	pair_settle(p);
	expect_one_clean_life(p);
	pair_free(p);
}

/* REPATH-CM-01, REPATH-CM-02: one way in two is dead in each direction, for ever, whichever port is the first. */
Test(cm_loss, a_way_that_works_is_found_in_both_directions)
{
	for (uint16_t port = 0; port < 64; port++)
		for (uint8_t ways = 0; ways < 4; ways++) {
			struct pair *p = pair_new(2);

			p->sport = (uint16_t)(0xc000 + 251 * port);
			p->closed = true;
			p->open[A] = ways & 1;
			p->open[B] = ways >> 1;
			p->s[B].ends_when_up = true;
			pair_connect(p);
			pair_settle(p);
			expect_one_clean_life(p);
			pair_free(p);
		}
}

Test(cm_loss, a_full_transmit_ring_is_mended_by_the_timers)
{
	struct ur_cm_limits limits = {.max_ids = 8, .max_pending = 8, .max_tx = 1};
	struct pair *p = pair_new(8);

	side_init(p, A, &limits);
	for (uint32_t i = 0; i < 4; i++) {
		struct ur_cm_connect_attr attr = connect_attr(p, A);

		attr.qpn.v += i;
		attr.remote_resp_timeout = (uint8_t)(14 + i);
		pair_connect_attr(p, A, &attr);
	}
	cr_expect_eq(ur_cm_counters(p->s[A].cm)->tx_full, 3);
	pair_pass(p, 10000 * MS);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 4);
	pair_free(p);
}

Test(cm_setup, ten_thousand_in_a_row_leave_no_id_behind)
{
	struct pair *p = pair_new(3);

	p->s[B].ends_when_up = true;
	for (unsigned i = 1; i <= 10000; i++) {
		pair_connect(p);
		pair_settle(p);
		cr_assert_eq(SAW(p, B, ESTABLISHED), i);
		cr_assert_eq(SAW(p, A, TIMEWAIT_EXIT), i);
		cr_assert_eq(pair_in_use(p), 0);
	}
	cr_expect_eq(p->sent, 5 * 10000);
	pair_free(p);
}

Test(cm_setup, works_in_a_table_of_one)
{
	struct pair *p = pair_new(1);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	struct ur_cm_id id;

	p->s[B].ends_when_up = true;
	for (unsigned i = 1; i <= 100; i++) {
		pair_connect(p);
		cr_assert_eq(ur_cm_connect(p->s[A].cm, NULL, &attr, p->now, &id), -ENOSPC);
		pair_settle(p);
		cr_assert_eq(SAW(p, B, ESTABLISHED), i);
	}
	pair_free(p);
}

Test(cm_setup, a_full_table_refuses_until_time_wait_is_over)
{
	struct pair *p = pair_new(2);
	struct ur_cm_connect_attr attr = connect_attr(p, A);

	for (int i = 0; i < 2; i++, attr.qpn.v++)
		pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	/* B is full; A gets a fresh table and tries a third. */
	side_init(p, A, &(struct ur_cm_limits){.max_ids = 2, .max_pending = 2, .max_tx = 8});
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	cr_expect_eq(p->s[A].rej_reason, UR_CM_REJ_NO_RESOURCES);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->no_resources, 1);
	cr_assert_eq(ur_cm_disconnect(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD], NULL, 0, p->now),
		     0);
	pair_pass(p, 1100 * MS);
	pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 3);
	pair_free(p);
}

Test(cm_setup, strangers_cannot_take_the_ids_of_our_own_connects)
{
	struct ur_cm_limits limits = {
		.max_ids = 4, .max_listeners = 1, .max_pending = 2, .max_tx = 16};
	struct pair *p = pair_new(8);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	struct ur_cm_id id;

	side_init(p, B, &limits);
	p->s[B].accepts = false;
	cr_assert_eq(ur_cm_listen(p->s[B].cm, UR_CM_KIND_CONN, SERVICE, NULL), 0);
	for (int i = 0; i < 5; i++, attr.qpn.v++)
		pair_connect_attr(p, A, &attr);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 2);
	cr_expect_eq(ur_cm_counters(p->s[B].cm)->no_resources, 3);
	attr = connect_attr(p, B);
	cr_expect_eq(ur_cm_connect(p->s[B].cm, NULL, &attr, p->now, &id), 0);
	pair_free(p);
}

Test(cm_setup, both_sides_at_once_make_two_connections)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr from_a = connect_attr(p, A), from_b = connect_attr(p, B);

	cr_assert_eq(ur_cm_listen(p->s[A].cm, UR_CM_KIND_CONN, SERVICE, NULL), 0);
	from_b.qpn.v = 0x300;
	pair_connect_attr(p, A, &from_a);
	pair_connect_attr(p, B, &from_b);
	pair_pass(p, 20 * MS);
	cr_expect(SAW(p, A, ESTABLISHED) == 1 && SAW(p, B, ESTABLISHED) == 1);
	cr_expect(SAW(p, A, REP_RCVD) == 1 && SAW(p, B, REP_RCVD) == 1);
	cr_expect_eq(pair_in_use(p), 4);
	pair_free(p);
}

Test(cm_setup, a_port_may_connect_to_itself)
{
	struct pair *p = pair_new(4);
	struct ur_cm_connect_attr attr = connect_attr(p, A);
	struct ur_cm_src src = {
		.sgid = attr.sgid, .dgid = attr.sgid, .sqpn = {1}, .path = attr.path};
	struct ur_cm_out out;

	attr.dgid = attr.sgid;
	cr_assert_eq(ur_cm_listen(p->s[A].cm, UR_CM_KIND_CONN, SERVICE, NULL), 0);
	pair_connect_attr(p, A, &attr);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(ur_cm_output(p->s[A].cm, &out, 1, p->now), 1);
		cr_assert_eq(ur_cm_input(p->s[A].cm, out.mad, &src, p->now), UR_DROP_NONE);
		ur_cm_validate(p->s[A].cm);
	}
	cr_expect_eq(SAW(p, A, ESTABLISHED), 1);
	pair_free(p);
}

Test(cm_setup, first_data_may_stand_for_the_rtu)
{
	struct pair *p = pair_new(2);

	p->drop = 1 << 2; /* the RTU */
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_assert_eq(ur_cm_establish(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD]), 0);
	pair_pass(p, 1000 * MS);
	cr_expect_eq(SENT(p, B, REP), 1, "the REP is not repeated any more");
	cr_expect_eq(SAW(p, B, ESTABLISHED), 0, "the caller told us; no event");
	cr_expect_eq(ur_cm_establish(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD]), 0);
	pair_free(p);
}

Test(cm_setup, a_slow_listener_is_waited_for)
{
	struct pair *p = pair_new(2);

	p->s[B].accepts = false;
	pair_connect(p);
	pair_pass(p, 60000 * MS); /* 67 ms * 16 is long over */
	cr_expect_eq(SENT(p, B, MRA), 1, "the repeated REQ was answered by an MRA");
	cr_expect_eq(SENT(p, A, REQ), 2);
	cr_expect_eq(SAW(p, A, MRA_RCVD), 1);
	cr_expect_eq(SAW(p, B, REQ_RCVD), 1);
	side_accept(&p->s[B], p->s[B].last[UR_CM_EV_REQ_RCVD]);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 1);
	pair_free(p);
}

Test(cm_setup, a_slow_connector_is_waited_for)
{
	struct pair *p = pair_new(2);

	p->s[A].readies = false;
	pair_connect(p);
	pair_pass(p, 10 * MS);
	cr_assert_eq(ur_cm_mra(p->s[A].cm, p->s[A].last[UR_CM_EV_REP_RCVD], 20, p->now), 0);
	pair_pass(p, 4000 * MS);
	cr_expect_eq(SENT(p, B, REP), 1, "no repeat within 4.3 s");
	cr_expect_eq(SAW(p, B, MRA_RCVD), 1);
	cr_assert_eq(ur_cm_rtu(p->s[A].cm, p->s[A].last[UR_CM_EV_REP_RCVD], NULL, 0, p->now), 0);
	pair_pass(p, 10 * MS);
	cr_expect_eq(SAW(p, B, ESTABLISHED), 1);
	pair_free(p);
}

Test(cm_setup, mras_prolong_a_request_only_so_often)
{
	struct pair *p = pair_new(2);
	uint64_t start;

	p->s[B].accepts = false;
	p->drop = ~1ull;
	pair_connect(p);
	pair_pass(p, 2 * MS);
	cr_assert_eq(ur_cm_mra(p->s[B].cm, p->s[B].last[UR_CM_EV_REQ_RCVD], 31, p->now), 0);
	pair_fetch(p, B);
	start = p->now;
	for (int i = 0; i < 100; i++)
		pair_feed(p, A, p->last_mad[B][UR_CM_MRA & 15]);
	cr_expect_eq(SAW(p, A, MRA_RCVD), 1);
	cr_expect_geq(ur_cm_counters(p->s[A].cm)->unexpected, 85);
	p->drop = ~0ull;
	pair_settle(p);
	cr_expect_eq(SAW(p, A, UNREACHABLE), 1);
	cr_expect_lt(p->now - start, 80000 * MS);
	pair_free(p);
}
