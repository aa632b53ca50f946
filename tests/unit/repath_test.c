/* SPDX-License-Identifier: BSD-3-Clause */
#include "ext_end.h"
#include "ext_peer.h"

/* docs/design/repath.md: when a queue pair takes another UDP source port, as seen on the wire. */

/* The last packet left by a port that none of `seen` is, which joins them. */
static void expect_new_port(const struct end *e, uint16_t *seen, unsigned n)
{
	cr_assert_geq(e->out.sport, 0xc000);
	for (unsigned i = 0; i < n; i++)
		cr_assert_neq(e->out.sport, seen[i], "%u", i);
	seen[n] = e->out.sport;
}

static uint64_t timeouts_of(struct end *e)
{
	return end_counters(e)->rto + end_counters(e)->local_ack_timeout_err;
}

/* ---- which port ---- */

/* REPATH-PORT-01 */
Test(repath, ports_take_turns_and_so_do_their_low_bits)
{
	static bool used[1 << 14];
	uint16_t port = 0xc123;

	for (unsigned i = 0; i < 1 << 14; i++, port = ur_path_next_sport(port)) {
		cr_assert(port >= 0xc000 && !used[port & 0x3fff], "%#x", port);
		used[port & 0x3fff] = true;
	}
	cr_assert_eq(port, 0xc123);
	for (unsigned k = 1; k <= 4; k++) {
		uint32_t low = 0;

		for (unsigned i = 0; i < 1u << k; i++, port = ur_path_next_sport(port))
			low |= 1u << (port & ((1u << k) - 1));
		cr_assert_eq(low, (1u << (1u << k)) - 1, "%u low bits: %#x", k, low);
	}
}

/* ---- the requester ---- */

/* REPATH-REQ-01 */
Test(repath, each_local_ack_timeout_takes_another_port_and_what_is_new_follows)
{
	struct end *e = END();
	uint16_t seen[4];

	end_send(e, 1, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(e->out.sport, END_SPORT);
	seen[0] = e->out.sport;
	for (unsigned i = 1; i < 4; i++) {
		end_sleep(e, END_TIMEOUT_NS + 2000);
		end_expect(e, UR_RC_SEND_ONLY, 1000);
		expect_new_port(e, seen, i);
	}
	cr_assert_eq(end_ack(e, 1000, 0x1f, 1), UR_DROP_NONE);
	end_send(e, 2, IBV_WR_SEND, 4);
	end_expect(e, UR_RC_SEND_ONLY, 1001);
	cr_assert_eq(e->out.sport, seen[3]);
	cr_assert_eq(end_counters(e)->repaths, 3);
	end_free(e);
}

/* REPATH-REQ-01: a path that brings a NAK is not dead. */
Test(repath, loss_that_the_peer_reports_keeps_the_port)
{
	struct end *e = END();

	for (unsigned i = 1; i <= 3; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	cr_assert_eq(end_drain(e), 3);
	cr_assert_eq(end_ack(e, 1000, UR_SYNDROME_NAK | UR_NAK_PSN_SEQ, 0), UR_DROP_NONE);
	end_expect(e, UR_RC_SEND_ONLY, 1000);
	cr_assert_eq(e->out.sport, END_SPORT);
	cr_assert_eq(end_counters(e)->repaths, 0);
	end_free(e);
}

/* REPATH-REQ-01, REPATH-REQ-02. The first probe keeps the port. One that follows it takes another and says so, as a timeout does. */
Test(repath, in_extended_mode_a_probe_that_nothing_answers_is_enough)
{
	struct end *e = XEND();
	uint16_t seen[64];
	unsigned n = 1, again = 0;
	uint64_t timeouts = 0;

	/* A round trip is measured. */
	end_send(e, 1, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_send(e, 2, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1001);
	seen[0] = e->out.sport;
	cr_assert_eq(seen[0], END_SPORT);
	while (e->qp->state == IBV_QPS_RTS && n < 6) {
		bool is_again;

		xend_wait(e);
		if (!xend_out(e))
			continue;
		is_again = (e->out.op & UR_OP_PROBE) && (e->out.xth.flags & UR_XTH_RETRY);
		again += is_again;
		if (is_again || timeouts_of(e) != timeouts)
			expect_new_port(e, seen, n++);
		else
			cr_assert_eq(e->out.sport, seen[n - 1]);
		timeouts = timeouts_of(e);
	}
	cr_assert(again && timeouts && end_counters(e)->probes_sent > again);
	cr_assert_eq(end_counters(e)->repaths, n - 1);
	xend_free(e);
}

/* REPATH-KEEP-01 */
Test(repath, a_queue_pair_that_sprays_and_one_of_a_fixed_network_keep_their_ports)
{
	for (unsigned sprays = 0; sprays < 2; sprays++) {
		struct end *e = XEND(.paths = sprays ? 4 : 1, .keeps_ports = !sprays);

		end_send(e, 1, IBV_WR_SEND, 4);
		while (e->qp->state == IBV_QPS_RTS) {
			while (xend_out(e))
				cr_assert_eq(e->out.sport,
					     ur_spray_port(END_SPORT, e->out.xth.path));
			xend_wait(e);
		}
		cr_assert_gt(timeouts_of(e), 0);
		cr_assert_eq(end_counters(e)->repaths, 0);
		xend_free(e);
	}
}

/* QP-RESET-01: the next connection begins with the port of its own flow label, for requests and for answers. */
Test(repath, a_new_connection_has_forgotten_it)
{
	struct end *e = END();
	struct ur_path_attr path = {.sport = END_SPORT + 5};

	end_recv(e, UR_RC_WRITE_ONLY, 100, 4);
	for (unsigned i = 0; i < 3; i++)
		end_recv(e, UR_RC_WRITE_ONLY, 100, 4);
	end_send(e, 1, IBV_WR_SEND, 4);
	end_drain(e);
	end_sleep(e, END_TIMEOUT_NS + 2000);
	cr_assert(e->qp->rsp.has_again && e->qp->sport_be != e->qp->answer_sport_be);
	ur_qp_reset(e->qp);
	cr_assert_not(e->qp->rsp.has_again);
	path.src = path.dst = ur_gid_from_ipv4(0x0a000001);
	ur_qp_modify(e->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
		     IBV_QP_STATE | IBV_QP_PORT, NULL);
	ur_qp_modify(e->qp,
		     &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
					   .path_mtu = IBV_MTU_256,
					   .ah_attr.is_global = 1},
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU, &path);
	cr_assert_eq(e->qp->sport_be, __builtin_bswap16(END_SPORT + 5));
	cr_assert_eq(e->qp->answer_sport_be, e->qp->sport_be);
	end_free(e);
}

/* ---- the responder ---- */

/* A WRITE of one packet that comes once more. */
static void repeat(struct end *e, uint32_t psn)
{
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, psn, 4), UR_DROP_PSN_DUPLICATE);
}

static struct end *end_with_writes(unsigned n)
{
	struct end *e = END();

	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, END_RQ_PSN + i, 4), UR_DROP_NONE);
	end_drain(e);
	return e;
}

/* REPATH-RSP-01 */
Test(repath, what_comes_again_twice_is_answered_by_another_port)
{
	struct end *e = end_with_writes(1);
	uint16_t seen[4] = {END_SPORT};

	repeat(e, 100);
	end_expect_ack(e, 100);
	cr_assert_eq(e->out.sport, END_SPORT);
	for (unsigned i = 1; i < 4; i++) {
		repeat(e, 100);
		end_expect_ack(e, 100);
		expect_new_port(e, seen, i);
	}
	cr_assert_eq(end_counters(e)->repaths, 3);
	end_free(e);
}

/* REPATH-RSP-01: a pass of a peer that goes back N counts once, and the next one from the same packet on is the second. */
Test(repath, passes_of_a_peer_that_goes_back_count_by_their_first_packet)
{
	struct end *e = end_with_writes(4);

	for (unsigned pass = 0; pass < 3; pass++) {
		for (uint32_t psn = 101; psn < 104; psn++)
			repeat(e, psn);
		cr_assert_eq(end_counters(e)->repaths, pass);
	}
	/* One from further back is another, and again one. */
	repeat(e, 100);
	cr_assert_eq(end_counters(e)->repaths, 2);
	repeat(e, 101);
	cr_assert_eq(end_counters(e)->repaths, 2);
	repeat(e, 100);
	cr_assert_eq(end_counters(e)->repaths, 3);
	end_free(e);
}

/* REPATH-RSP-01: with something new in between, too; but not two packets that are each repeated once. */
Test(repath, something_new_between_two_repeats_makes_no_difference)
{
	struct end *e = end_with_writes(1);

	repeat(e, 100);
	cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 101, 4), UR_DROP_NONE);
	repeat(e, 100);
	cr_assert_eq(end_counters(e)->repaths, 1);
	for (uint32_t psn = 101; psn < 110; psn++) {
		repeat(e, psn);
		cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, psn + 1, 4), UR_DROP_NONE);
	}
	cr_assert_eq(end_counters(e)->repaths, 1);
	end_free(e);
}

/* REPATH-RSP-01: nor do 128 packets, or any other number. */
Test(repath, what_came_again_long_ago_is_no_first_time)
{
	for (uint32_t later = 1; later <= 4096; later *= 2) {
		struct end *e = end_with_writes(1);

		repeat(e, 100);
		for (uint32_t i = 1; i <= later; i++)
			cr_assert_eq(end_recv(e, UR_RC_WRITE_ONLY, 100 + i, 4), UR_DROP_NONE);
		repeat(e, 100 + later);
		cr_assert_eq(end_counters(e)->repaths, 0);
		repeat(e, 100 + later);
		cr_assert_eq(end_counters(e)->repaths, 1, "%u", later);
		end_free(e);
	}
}

/* REPATH-RSP-01: however old the first packet was that came again since something new was executed. */
Test(repath, a_packet_that_comes_again_and_again_counts_after_an_older_one)
{
	struct end *e = end_with_writes(4);

	/* From its third time on: the first may be the end of the pass before, and the second the network's copy. */
	repeat(e, 100);
	for (unsigned i = 0; i < 5; i++) {
		repeat(e, 103);
		cr_assert_eq(end_counters(e)->repaths, i < 2 ? 0 : i - 1);
	}
	end_free(e);
	/* So does a pass. */
	e = end_with_writes(4);
	repeat(e, 100);
	for (unsigned pass = 0; pass < 4; pass++) {
		for (uint32_t psn = 101; psn < 104; psn++)
			repeat(e, psn);
		cr_assert_eq(end_counters(e)->repaths, pass < 2 ? 0 : pass - 1);
	}
	end_free(e);
}

/* REPATH-RSP-01: copies that the network makes within a pass do not count; the next pass takes the place of the copy. */
Test(repath, copies_of_what_a_peer_repeats_keep_the_port)
{
	struct end *e = end_with_writes(4);

	for (uint32_t psn = 100; psn < 104; psn++) {
		repeat(e, psn);
		if (psn > 100)
			repeat(e, psn);
	}
	cr_assert_eq(end_counters(e)->repaths, 0);
	for (unsigned pass = 0; pass < 3; pass++) {
		for (uint32_t psn = 100; psn < 104; psn++)
			repeat(e, psn);
		cr_assert_eq(end_counters(e)->repaths, pass);
	}
	end_free(e);
}

/* REPATH-REQ-01: a request and the responses to another are both missing, and one packet leaves for both. */
Test(repath, one_packet_takes_one_step)
{
	struct end *e = XEND();
	uint64_t before;

	end_send(e, 1, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	cr_assert_eq(xend_ack(e, 1001, 0x1f, 1, e->out.xth.stamp), UR_DROP_NONE);
	end_send(e, 2, IBV_WR_RDMA_READ, 600);
	end_send(e, 3, IBV_WR_SEND, 4);
	xend_drain(e);
	while (e->qp->state == IBV_QPS_RTS) {
		before = end_counters(e)->repaths;
		do {
			cr_assert_leq(end_counters(e)->repaths, before + 1);
			if (e->qp->state == IBV_QPS_RTS)
				xend_wait(e);
		} while (e->qp->state == IBV_QPS_RTS && !xend_drain(e));
	}
	cr_assert_gt(end_counters(e)->repaths, 4);
	xend_free(e);
}

/* REPATH-RSP-01: several parts of a READ are asked for again, each once; then one of them twice. */
Test(repath, parts_of_a_read_are_different_requests)
{
	struct peer *x = PEER(.dest_rd_atomic = 4);
	struct ur_packet *r = peer_read(x, 0, 1024, 0, true), again = *r;

	peer_in(x, r);
	again.reth.length = 256;
	for (unsigned i = 0; i < 3; i++, again.reth.va += 256) {
		peer_drain(x);
		again.xth.offset = i;
		peer_in(x, &again);
	}
	peer_drain(x);
	cr_assert_eq(x->qp->core->cnt.repaths, 0);
	again.reth.va = r->reth.va;
	again.xth.offset = 0;
	peer_in(x, &again);
	peer_drain(x);
	cr_assert_eq(x->qp->core->cnt.repaths, 1);
	/* Twins are one: they have one stamp, or the second says so. */
	x->stamp--;
	peer_in(x, &again);
	cr_assert_eq(x->qp->core->cnt.repaths, 1);
	again.xth.flags |= UR_XTH_RETRY | UR_XTH_TWICE;
	peer_in(x, &again);
	cr_assert_eq(x->qp->core->cnt.repaths, 1);
	peer_free(x);
}

/* REPATH-RSP-02 */
Test(repath, a_probe_that_follows_another_is_answered_by_another_port)
{
	struct peer *x = PEER();
	struct ur_packet probe = {.op = ur_op_flags(UR_EXT_PROBE), .bth.opcode = UR_EXT_PROBE};
	uint16_t seen[2];

	probe.bth.dqpn = x->qp->qpn;
	peer_in(x, peer_write(x, 0, 4));
	for (unsigned i = 0; i < 2; i++) {
		peer_in(x, &probe);
		peer_expect_ack(x, 101);
		cr_assert_eq(x->e->out.sport, END_SPORT);
	}
	seen[0] = END_SPORT;
	probe.xth.flags = UR_XTH_RETRY;
	peer_in(x, &probe);
	peer_expect_ack(x, 101);
	expect_new_port(x->e, seen, 1);
	cr_assert_eq(x->qp->core->cnt.repaths, 1);
	/* A copy of it is no other one. */
	x->stamp--;
	peer_in(x, &probe);
	cr_assert_eq(x->qp->core->cnt.repaths, 1);
	peer_free(x);
}
