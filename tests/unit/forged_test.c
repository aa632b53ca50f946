/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "end.h"
#include "transport/rc/ext_early.h"
#include "transport/rc/ext.h"

/*
 * The power of an attacker that knows the addresses and the QPN of a connection, but no PSN. It
 * sends requests that need no key, and guesses. The test counts the requests until one of them is
 * accepted. docs/security.md has the figures that this test prints.
 */
#define PSNS   (UR_PSN_MASK + 1)
#define SEEDS  8
#define WINDOW 512 /* packets in flight, the default of [transport] window */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

/* A request without a byte of payload. */
static struct ur_packet forged(struct end *e, uint8_t opcode)
{
	struct ur_packet p = end_packet(e, opcode, 0, 0);

	p.op = ur_op_flags(opcode);
	p.bth.opcode = opcode;
	p.reth.length = 0;
	p.xth = (struct ur_xth){0};
	return p;
}

/* True if a forged request was executed, or will be, or has ended the connection. */
static bool is_fooled(const struct end *e, struct ur_psn epsn)
{
	const struct ur_qp *qp = e->qp;

	if (qp->state == IBV_QPS_ERR || !ur_psn_eq(qp->rsp.epsn, epsn))
		return true;
	return qp->ops->mode == UR_MODE_EXTENDED ? qp->xrsp.ooo && qp->xrsp.ooo->deferred_cnt
						 : ur_reorder_believed(&qp->gbn_rsp.reorder);
}

/*
 * Scans all PSNs from a random one on: of each `stride`, the first `run`. Returns the number of
 * packets needed.
 */
static uint32_t scan(enum ur_mode mode, uint64_t seed, uint32_t stride, uint32_t run)
{
	uint32_t psn = (uint32_t)mix(seed + 1) & UR_PSN_MASK, from = (uint32_t)mix(seed + 99),
		 n = 0;
	struct end *e = END(.mode = mode, .rq_psn = psn + !psn, .reorder_slots = 1024);
	struct ur_psn epsn = e->qp->rsp.epsn;
	struct ur_packet p =
		forged(e, mode == UR_MODE_EXTENDED ? UR_EXT_WRITE_ONLY : UR_RC_WRITE_ONLY);

	p.xth.ssn = (uint32_t)mix(seed + 2) & UR_PSN_MASK;
	for (uint32_t at = 0; at < PSNS && !is_fooled(e, epsn); at += stride)
		for (uint32_t i = 0; i < run && !is_fooled(e, epsn); i++, n++) {
			p.bth.psn = ur_psn(from + at + i);
			ur_qp_input(e->qp, &p, e->now_ns);
		}
	cr_assert(is_fooled(e, epsn), "a scan of all PSNs finds nothing");
	end_free(e);
	return n;
}

typedef uint32_t scanner(enum ur_mode mode, uint64_t seed, uint32_t stride, uint32_t run);

static double mean_of(scanner *scan_all, enum ur_mode mode, uint32_t stride, uint32_t run)
{
	double sum = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++)
		sum += scan_all(mode, seed, stride, run);
	return sum / SEEDS;
}

/* REORDER-BELIEF-01 */
Test(forged, scan_of_psns_takes_a_tenth_of_go_back_n_at_least)
{
	static const struct {
		enum ur_mode mode;
		uint32_t stride, run;
	} scans[] = {
		{UR_MODE_REORDER, UR_REORDER_NEAR, 1},
		{UR_MODE_REORDER, UR_REORDER_NEAR - 1, 1},
		{UR_MODE_REORDER, UR_REORDER_WINDOW, UR_REORDER_MANY},
		{UR_MODE_REORDER, UR_REORDER_WINDOW / 2, UR_REORDER_MANY},
		{UR_MODE_REORDER, UR_REORDER_WINDOW - UR_REORDER_MANY, UR_REORDER_MANY},
		{UR_MODE_EXTENDED, 1, 1},
	};
	double gbn = mean_of(scan, UR_MODE_GBN, 1, 1), mean;

	printf("go-back-N: %.1f million packets\n", gbn / 1e6);
	for (unsigned i = 0; i < sizeof(scans) / sizeof(scans[0]); i++) {
		mean = mean_of(scan, scans[i].mode, scans[i].stride, scans[i].run);
		printf("mode %u, %u of each %u: %.2f million packets\n", scans[i].mode,
		       scans[i].run, scans[i].stride, mean / 1e6);
		cr_assert_geq(10 * mean, gbn);
	}
}

/* The same for responses to a READ that fills the window, until forged bytes are in its memory. */
static uint32_t scan_read(enum ur_mode mode, uint64_t seed, uint32_t stride, uint32_t run)
{
	uint32_t psn = (uint32_t)mix(seed + 3) & UR_PSN_MASK, from = (uint32_t)mix(seed + 98),
		 n = 0;
	struct end *e = END(.mode = mode, .sq_psn = psn + !psn, .window = WINDOW, .timeout = 20,
			    .rd_atomic = 16);
	struct ur_psn una = e->qp->gbn.rec.una;
	struct ur_packet p = end_packet(e, UR_RC_READ_RESPONSE_MIDDLE, 0, END_MTU);
	bool fooled = false;

	end_send(e, 1, IBV_WR_RDMA_READ, WINDOW * END_MTU);
	end_drain(e);
	cr_assert_eq(ur_psn_diff(e->qp->gbn.rec.nxt, una), WINDOW);
	for (uint32_t at = 0; at < PSNS && !fooled; at += stride)
		for (uint32_t i = 0; i < run && !fooled; i++, n++) {
			p.bth.psn = ur_psn(from + at + i);
			ur_qp_input(e->qp, &p, e->now_ns);
			fooled = !ur_psn_eq(e->qp->gbn.rec.una, una) ||
				 end_counters(e)->early_responses || e->qp->state == IBV_QPS_ERR;
			if (end_counters(e)->implied_nak_seq_err)
				end_drain(e);
		}
	cr_assert(fooled, "a scan of all PSNs finds nothing");
	end_free(e);
	return n;
}

/* REORDER-BELIEF-02 */
Test(forged, forging_what_a_read_brings_takes_a_tenth_of_go_back_n_at_least)
{
	static const struct {
		uint32_t stride, run;
	} scans[] = {{UR_READ_GAP_NEAR, 1},
		     {UR_READ_GAP_NEAR - 1, 1},
		     {WINDOW, WINDOW / UR_READ_GAP_NEAR},
		     {WINDOW / 2, WINDOW / UR_READ_GAP_NEAR}};
	double gbn = mean_of(scan_read, UR_MODE_GBN, 1, 1), mean;

	printf("READ, go-back-N: %.1f million packets\n", gbn / 1e6);
	for (unsigned i = 0; i < sizeof(scans) / sizeof(scans[0]); i++) {
		mean = mean_of(scan_read, UR_MODE_REORDER, scans[i].stride, scans[i].run);
		printf("READ, reorder, %u of each %u: %.2f million packets\n", scans[i].run,
		       scans[i].stride, mean / 1e6);
		cr_assert_geq(10 * mean, gbn);
	}
}

/* EXT-RESP-NUMBERS-01. Beyond ePSN both numbers must be right: counts the valid ones of 2^48 pairs. */
Test(forged, extended_packet_has_to_guess_its_ssn_too)
{
	static const uint8_t opcodes[] = {UR_EXT_WRITE_ONLY, UR_EXT_READ_REQUEST, UR_EXT_SEND_ONLY};

	for (unsigned k = 0; k < sizeof(opcodes); k++) {
		struct end *e = END(.mode = UR_MODE_EXTENDED);
		struct ur_packet p = forged(e, opcodes[k]);
		uint64_t pairs = 0;

		e->qp->rsp.msn = ur_msn(0xfffff0);
		p.xth.flags = opcodes[k] == UR_EXT_SEND_ONLY ? UR_XTH_RECV : UR_XTH_LAST_READ;
		end_post_recv(e, 1, 0, 4);
		for (uint32_t ahead = 1; ahead < UR_EXT_WINDOW; ahead++) {
			const uint32_t later[] = {
				1,	 ahead,	   ahead + 1, UR_EXT_WINDOW,
				1 << 23, PSNS - 1, 0,	      (uint32_t)mix(ahead) | 4096};
			uint32_t taken[8];

			for (unsigned i = 0; i < 8; i++) {
				p.bth.psn = ur_psn(END_RQ_PSN + ahead);
				p.xth.ssn = ur_msn_add(e->qp->rsp.msn, 1 + later[i]).v;
				ur_qp_input(e->qp, &p, e->now_ns);
				taken[i] = e->qp->xrsp.ooo != NULL;
				if (taken[i])
					ur_ext_early_give(e->qp);
			}
			/* It may belong to any message from the next one on. */
			cr_assert(taken[0] && taken[1]);
			for (unsigned i = 2; i < 8; i++)
				cr_assert(!taken[i], "%u ahead, %u messages later", ahead,
					  later[i]);
			pairs += ahead;
		}
		printf("%#x: %.0f million packets at random\n", opcodes[k],
		       (double)(UINT64_C(1) << 48) / (double)pairs / 1e6);
		cr_assert_geq((double)(UINT64_C(1) << 48) / (double)pairs, PSNS);
		end_free(e);
	}
}

/* EXT-SSN-01: the numbers of a new connection are not predictable. */
Test(forged, ssn_of_a_young_connection_is_as_unknown_as_its_psn)
{
	for (uint64_t seed = 0; seed < 100; seed++) {
		uint32_t psn = ((uint32_t)mix(seed) & UR_PSN_MASK) | 1;
		struct end *e = END(.mode = UR_MODE_EXTENDED, .rq_psn = psn, .sq_psn = psn ^ 6);
		struct ur_packet p = forged(e, UR_EXT_WRITE_ONLY);
		unsigned taken = 0;

		for (int32_t off = -UR_EXT_WINDOW; off < UR_EXT_WINDOW; off++) {
			struct ur_psn guess = ur_psn(psn + (uint32_t)off);

			if (off == -2) /* ePSN itself */
				continue;
			p.bth.psn = ur_psn_add(guess, 2);
			p.xth.ssn = ur_msn_add(ur_first_ssn(guess), 1).v;
			ur_qp_input(e->qp, &p, e->now_ns);
			taken += e->qp->xrsp.ooo != NULL;
			if (e->qp->xrsp.ooo)
				ur_ext_early_give(e->qp);
		}
		cr_assert_geq(taken, 1, "seed %llu", (unsigned long long)seed);
		cr_assert_leq(taken, 2, "seed %llu: %u guesses", (unsigned long long)seed, taken);
		end_free(e);

		e = END(.mode = UR_MODE_EXTENDED, .rq_psn = psn, .sq_psn = psn ^ 6);
		cr_assert_eq(e->qp->rsp.msn.v, (ur_first_ssn(ur_psn(psn)).v - 1) & UR_PSN_MASK);
		end_send(e, 1, IBV_WR_SEND, 4);
		cr_assert_eq(end_expect(e, UR_EXT_SEND_ONLY, psn ^ 6)->xth.ssn,
			     ur_first_ssn(ur_psn(psn ^ 6)).v);
		end_free(e);
	}
}
