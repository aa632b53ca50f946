/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "ext_end.h"
#include "transport/rc/spray.h"

/* How an extended requester uses its paths: ports on the wire, and effect of responses. */

static const struct ur_spray_path *path_of(const struct end *e, unsigned i)
{
	return &e->qp->xreq.spray->paths.path[i];
}

/* The last packet must have the port of the path that it names. Returns the path. */
static unsigned expect_agreement(struct end *e)
{
	cr_assert_lt(e->out.xth.path, e->attr.paths ? e->attr.paths : 1);
	cr_assert_eq(e->out.sport, ur_spray_port(END_SPORT, e->out.xth.path));
	cr_assert_eq(e->out.dport, UR_ROCE_UDP_PORT);
	return e->out.xth.path;
}

/* Acknowledges everything before `epsn`, in answer to a packet that came by `path`. */
static void answer(struct end *e, uint32_t epsn, uint32_t echo, uint8_t path)
{
	struct ur_packet p = xend_packet(e, UR_EXT_ACKNOWLEDGE, epsn - 1, epsn, echo, NULL, 0);

	p.xaeth.path = path;
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
}

/* ---- ports ---- */

static void expect_fair_ports(struct end_attr attr, unsigned paths)
{
	unsigned used[UR_SPRAY_MAX] = {0};
	struct end *e;

	attr.window = 64;
	attr.paths = (uint8_t)paths;
	e = xend_new(attr);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 64);
	for (unsigned i = 0; i < 64; i++) {
		cr_assert_not_null(xend_out(e));
		used[expect_agreement(e)]++;
	}
	for (unsigned i = 0; i < paths; i++)
		cr_assert_eq(used[i], 64 / paths);
	xend_free(e);
}

/* SPRAY-PORT-02 */
Test(ext_spray, equal_paths_take_turns_over_any_kind_of_network)
{
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned vlan = 0; vlan < 2; vlan++)
			for (unsigned paths = 2; paths <= UR_SPRAY_MAX; paths *= 2)
				expect_fair_ports((struct end_attr){.v6 = v6, .vlan = vlan}, paths);
}

/* SPRAY-PORT-02 */
Test(ext_spray, nothing_but_the_port_depends_on_the_path)
{
	uint8_t first[UR_HDR_MAX];
	struct end *e = XEND(.paths = 2);

	for (unsigned i = 0; i < 2; i++) {
		end_send(e, i, IBV_WR_RDMA_WRITE, 4);
		xend_expect(e, UR_EXT_WRITE_ONLY, END_SQ_PSN + i);
		cr_assert_eq(expect_agreement(e), i);
		cr_assert_eq(e->out_frame.b[24] << 8 | e->out_frame.b[25], e->out.ip.csum);
		e->out_frame.b[34] = e->out_frame.b[35] = 0; /* the port */
		if (!i)
			memcpy(first, e->out_frame.b, UR_PATH_MIN_BYTES);
	}
	cr_assert_arr_eq(first, e->out_frame.b, UR_PATH_MIN_BYTES);
	xend_free(e);
}

/* SPRAY-PORT-02 */
Test(ext_spray, without_it_everything_takes_the_queue_pairs_own_port)
{
	static const uint8_t none[] = {0, 1};

	for (unsigned i = 0; i < 2; i++) {
		struct end *e = XEND(.paths = none[i]);

		cr_assert_null(e->qp->xreq.spray);
		end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 10);
		for (unsigned n = 0; n < 10; n++) {
			cr_assert_not_null(xend_out(e));
			cr_assert_eq(expect_agreement(e), 0);
		}
		xend_free(e);
	}
}

/* SPRAY-PORT-02 */
Test(ext_spray, reads_and_atomics_take_turns_as_well)
{
	struct end *e = XEND(.paths = 4, .rd_atomic = 4);
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP};

	for (unsigned i = 0; i < 4; i++) {
		end_send(e, i, op[i], 8);
		cr_assert_not_null(xend_out(e));
		cr_assert_eq(expect_agreement(e), i);
	}
	xend_free(e);
}

/* SPRAY-PORT-02 */
Test(ext_spray, packet_that_is_not_made_costs_no_path_its_turn)
{
	struct end *e = XEND(.paths = 2);

	/* Repeatedly a packet, and a turn without one. */
	for (uint32_t i = 0; i < 64; i++) {
		end_send(e, i, IBV_WR_RDMA_WRITE, 4);
		xend_expect(e, UR_EXT_WRITE_ONLY, END_SQ_PSN + i);
		cr_assert_eq(expect_agreement(e), (i + i / 32) % 2);
		xend_expect_silence(e);
		answer(e, END_SQ_PSN + i + 1, e->out.xth.stamp, e->out.xth.path);
		end_expect_wc(e, i, IBV_WC_SUCCESS);
	}
	xend_free(e);
}

/* SPRAY-PORT-02, SPRAY-TELL-01 */
Test(ext_spray, packet_sent_again_takes_another_turn_and_its_first_path_is_blamed)
{
	struct end *e = XEND(.paths = 4);
	unsigned last = 0;
	uint32_t stamp;

	/* PSN 1000 + i takes path i % 4. */
	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 42);
	for (unsigned i = 0; i < 42; i++) {
		cr_assert_not_null(xend_out(e));
		last = expect_agreement(e);
	}
	stamp = e->out.xth.stamp;
	/* The peer has all but 1001, which is deemed lost when the probe is answered. */
	answer(e, 1001, stamp, 0);
	cr_assert_eq(path_of(e, 1)->lost, 0);
	xend_sack(e, 1001, UINT32_MAX, stamp);
	xend_wait(e);
	xend_expect(e, UR_EXT_PROBE, 1042);
	cr_assert_eq(expect_agreement(e), (last + 1) % 4);
	last = e->out.xth.path;
	xend_sack(e, 1001, UINT32_MAX, e->out.xth.stamp);
	xend_expect(e, UR_EXT_WRITE_MIDDLE, 1001);
	cr_assert_eq(expect_agreement(e), (last + 1) % 4);
	cr_assert(e->out.xth.flags & UR_XTH_RETRY);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(path_of(e, i)->lost, i == 1);
	xend_free(e);
}

/* SPRAY-TELL-01 */
Test(ext_spray, second_loss_is_blamed_on_the_path_of_the_second_transmission)
{
	struct end *e = XEND(.paths = 4);
	unsigned by[3];

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	xend_expect(e, UR_EXT_WRITE_ONLY, 1000);
	by[0] = expect_agreement(e);
	for (unsigned again = 1; again < 3; again++) {
		do {
			xend_wait(e);
			while (xend_out(e) && (e->out.op & UR_OP_PROBE))
				expect_agreement(e);
		} while (!(e->out.xth.flags & UR_XTH_RETRY) || (e->out.op & UR_OP_PROBE) ||
			 e->qp->core->cnt.retransmitted_packets < again);
		by[again] = expect_agreement(e);
		cr_assert_geq(path_of(e, by[again - 1])->lost, 1);
	}
	cr_assert_eq(path_of(e, 0)->lost + path_of(e, 1)->lost + path_of(e, 2)->lost +
			     path_of(e, 3)->lost,
		     2);
	xend_free(e);
}

/* SPRAY-TELL-02 */
Test(ext_spray, packet_sent_again_after_an_rnr_nak_blames_no_path)
{
	struct end *e = XEND(.paths = 4);
	unsigned by;

	for (unsigned i = 0; i < 2; i++)
		end_send(e, i, IBV_WR_SEND, 4);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	xend_expect(e, UR_EXT_SEND_ONLY, 1001);
	cr_assert_eq(xend_ack(e, 1000, 0x20 | 12, 0, e->out.xth.stamp), UR_DROP_NONE);
	xend_wait(e);
	xend_expect(e, UR_EXT_SEND_ONLY, 1000);
	by = expect_agreement(e);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(path_of(e, i)->lost, 0);
	/* Now there is a receive; the packets that arrived without one are missing. */
	answer(e, 1001, e->out.xth.stamp, (uint8_t)by);
	while (e->qp->core->cnt.retransmitted_packets < 2) {
		xend_wait(e);
		while (xend_out(e))
			;
	}
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(path_of(e, i)->lost, 0);
	/* This has no consequence the first time. */
	while (e->qp->core->cnt.retransmitted_packets < 3) {
		xend_wait(e);
		while (xend_out(e))
			;
	}
	cr_assert_eq(path_of(e, 0)->lost + path_of(e, 1)->lost + path_of(e, 2)->lost +
			     path_of(e, 3)->lost,
		     1);
	xend_free(e);
}

/* SPRAY-PORT-02 */
Test(ext_spray, probes_take_turns_too)
{
	struct end *e = XEND(.paths = 2);

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	xend_expect(e, UR_EXT_WRITE_ONLY, 1000);
	cr_assert_eq(expect_agreement(e), 0);
	e->qp->xreq.probe = true;
	xend_expect(e, UR_EXT_PROBE, 1001);
	cr_assert_eq(expect_agreement(e), 1);
	e->qp->xreq.probe = true;
	xend_expect(e, UR_EXT_PROBE, 1001);
	cr_assert_eq(expect_agreement(e), 0);
	xend_free(e);
}

/* ---- round trips ---- */

/* SPRAY-TELL-01 */
Test(ext_spray, round_trip_counts_for_the_path_that_is_echoed)
{
	struct end *e = XEND(.paths = 4);
	uint32_t stamp[4];

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 4);
	for (unsigned i = 0; i < 4; i++)
		stamp[i] = xend_out(e)->xth.stamp;
	answer(e, 1003, stamp[2], 2);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(path_of(e, i)->samples, i == 2);
	/* Two steps from 1002 to its answer. */
	cr_assert_eq(path_of(e, 2)->least, ur_stamp(e->now_ns).v - stamp[2]);
	xend_free(e);
}

/* SPRAY-TELL-01 */
Test(ext_spray, word_of_the_peer_that_cannot_be_moves_no_path)
{
	struct end *e = XEND(.paths = 4);
	struct ur_packet p;
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 8);
	for (unsigned i = 0; i < 8; i++)
		cr_assert_not_null(xend_out(e));
	stamp = e->out.xth.stamp;
	answer(e, 1001, stamp, 4);	    /* no such path */
	answer(e, 1002, stamp, 255);	    /* nor this one */
	answer(e, 1003, stamp + 100000, 1); /* sent in the future */
	p = xend_packet(e, UR_EXT_ACKNOWLEDGE, 1003, 1004, stamp, NULL, 0);
	p.xaeth.path = 2;
	p.xaeth.residence = 1000000; /* a residence longer than the round trip */
	cr_assert_eq(xend_in(e, p), UR_DROP_NONE);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(path_of(e, i)->samples, 0);
	cr_assert_eq(e->qp->xreq.rtt.srtt, 0);
	xend_free(e);
}

/* SPRAY-TELL-01, EXT-SEL-RTT-02 */
Test(ext_spray, answers_by_way_of_a_slow_path_count_though_they_were_overtaken)
{
	struct end *e = XEND(.paths = 4);
	uint32_t stamp[8];

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 9);
	for (unsigned i = 0; i < 8; i++)
		stamp[i] = xend_out(e)->xth.stamp;
	/* Packets of path 0 arrive last. */
	for (unsigned i = 7; i > 0; i--)
		if (i % 4)
			answer(e, 1000, stamp[i], i % 4);
	answer(e, 1004, stamp[0], 0);
	answer(e, 1008, stamp[4], 0);
	cr_assert_eq(path_of(e, 0)->samples, 2);
	/* On the others the second packet arrived first, so that the first was stale. */
	for (unsigned i = 1; i < 4; i++)
		cr_assert_eq(path_of(e, i)->samples, 1);
	xend_free(e);
}

/* SPRAY-TELL-01, EXT-SEL-RTT-02 */
Test(ext_spray, answers_that_come_again_move_no_path)
{
	struct end *e = XEND(.paths = 4);
	uint32_t stamp[4];
	struct ur_rtt before;

	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 5);
	for (unsigned i = 0; i < 4; i++)
		stamp[i] = xend_out(e)->xth.stamp;
	for (unsigned i = 0; i < 4; i++)
		answer(e, 1001 + i, stamp[i], (uint8_t)i);
	before = e->qp->xreq.rtt;
	e->now_ns += 40000000;
	for (unsigned i = 0; i < 4; i++) {
		answer(e, 1001 + i, stamp[i], (uint8_t)i);
		cr_assert_eq(path_of(e, i)->samples, 1);
	}
	cr_assert_eq(e->qp->xreq.rtt.srtt, before.srtt);
	cr_assert_eq(e->qp->xreq.rtt.rttvar, before.rttvar);
	xend_free(e);
}

/* EXT-SEL-RTT-02 */
Test(ext_spray, answers_of_the_last_connection_move_no_path)
{
	struct end *e = XEND(.paths = 4);
	uint32_t stamp;

	end_send(e, 1, IBV_WR_RDMA_WRITE, 4);
	stamp = xend_out(e)->xth.stamp;
	answer(e, 1001, stamp, 0);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	ur_ext_requester_init(e->qp, ur_psn(1001));
	end_send(e, 2, IBV_WR_RDMA_WRITE, 4);
	cr_assert_not_null(xend_out(e));
	answer(e, 1001, stamp, 1);
	cr_assert_eq(path_of(e, 1)->samples, 0);
	cr_assert_eq(e->qp->xreq.rtt.srtt, 0);
	answer(e, 1002, e->out.xth.stamp, 0);
	cr_assert_eq(path_of(e, 0)->samples, 1);
	xend_free(e);
}

/* ---- state ---- */

/* SPRAY-POOL-01 */
Test(ext_spray, queue_pair_without_state_works_over_its_own_port)
{
	struct end *e = XEND(.paths = 4, .no_contexts = true);

	cr_assert_null(e->qp->xreq.spray);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 3);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_not_null(xend_out(e));
		cr_assert_eq(expect_agreement(e), 0);
	}
	answer(e, 1003, e->out.xth.stamp, 3);
	end_expect_wc(e, 1, IBV_WC_SUCCESS);
	xend_free(e);
}

static struct ur_spray_pool *pool_of(struct end *e)
{
	return &ur_engine_core(e->engine)->spray;
}

/* SPRAY-POOL-01 */
Test(ext_spray, state_goes_back_with_the_connection)
{
	static const enum ibv_qp_state ends[] = {IBV_QPS_ERR, IBV_QPS_RESET};

	for (unsigned i = 0; i < 2; i++) {
		struct end *e = END(.mode = UR_MODE_EXTENDED, .paths = 4);

		cr_assert_eq(pool_of(e)->free_cnt, 0);
		cr_assert_eq(end_modify(e, ends[i], (struct ibv_qp_attr){0}, 0), 0);
		cr_assert_eq(pool_of(e)->free_cnt, 1);
		ur_engine_destroy_qp(e->engine, e->qp, e->now_ns);
		cr_assert_eq(pool_of(e)->free_cnt, 1);
		end_free(e);
	}
}

/* SPRAY-POOL-01 */
Test(ext_spray, state_of_a_destroyed_queue_pair_goes_back)
{
	struct end *e = END(.mode = UR_MODE_EXTENDED, .paths = 4);

	ur_engine_destroy_qp(e->engine, e->qp, e->now_ns);
	cr_assert_eq(pool_of(e)->free_cnt, 1);
	end_free(e);
}

/* ---- choice ---- */

static void expect_no_choice(struct end *e)
{
	uint8_t before = e->qp->paths;

	cr_assert_eq(ur_qp_set_paths(e->qp, 4), -EINVAL);
	cr_assert_eq(e->qp->paths, before);
	end_free(e);
}

/* QP-MODE-02 */
Test(ext_spray, paths_are_chosen_before_the_connection_and_by_rc_only)
{
	struct end *e;

	expect_no_choice(END(.mode = UR_MODE_EXTENDED, .rtr = true));
	expect_no_choice(END(.mode = UR_MODE_EXTENDED, .paths = 2));
	expect_no_choice(END(.type = IBV_QPT_UC));
	expect_no_choice(END(.type = IBV_QPT_UD));
	e = END(.mode = UR_MODE_EXTENDED);
	cr_assert_eq(end_modify(e, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(ur_qp_set_paths(e->qp, 4), -EINVAL);
	cr_assert_eq(end_modify(e, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0), 0);
	cr_assert_eq(ur_qp_set_paths(e->qp, UR_SPRAY_MAX + 1), -EINVAL);
	cr_assert_eq(ur_qp_set_paths(e->qp, 255), -EINVAL);
	cr_assert_eq(e->qp->paths, 0);
	for (uint8_t n = 0; n <= UR_SPRAY_MAX; n++) {
		cr_assert_eq(ur_qp_set_paths(e->qp, n), 0);
		cr_assert_eq(e->qp->paths, n);
	}
	end_free(e);
}

/* QP-MODE-02 */
Test(ext_spray, choice_means_nothing_in_standard_mode)
{
	struct end *e = END(.mode = UR_MODE_REORDER, .paths = 4);

	cr_assert_eq(pool_of(e)->free_cnt, 1);
	end_send(e, 1, IBV_WR_RDMA_WRITE, 256 * 4);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_not_null(end_out(e));
		cr_assert_eq(e->out.sport, END_SPORT);
	}
	end_free(e);
}
