/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "edge/round.h"
#include "end.h"

/* The round of an inline worker, and when the ACK of a WRITE leaves that the application answers. */

#define ROOM	4300 /* bytes of a buffer */
#define WAIT_NS 1000
#define WRITES	5

static struct end *e;
static struct ur_round r;
static struct ur_gid gid;
static struct frame arrived; /* len 0: nothing */
static unsigned buffers;
static char sent[64]; /* since it was looked at: W: a WRITE, A: an ACK; a comma ends a burst */

static bool allocate(void *source, struct ur_pkt *pkts, unsigned n)
{
	(void)source;
	for (unsigned i = 0; i < n; i++)
		pkts[i].data = pkts[i].handle = calloc(1, ROOM);
	buffers += n;
	return true;
}

static void release(void *source, struct ur_pkt *pkts, unsigned n)
{
	(void)source;
	for (unsigned i = 0; i < n; i++)
		free(pkts[i].handle);
	buffers -= n;
}

static unsigned receive(void *source, struct ur_pkt *pkts, unsigned n)
{
	if (!n || !arrived.len)
		return 0;
	pkts[0] = (struct ur_pkt){.len = (uint32_t)arrived.len};
	allocate(source, pkts, 1);
	memcpy(pkts[0].data, arrived.b, arrived.len);
	arrived.len = 0;
	return 1;
}

static unsigned transmit(void *source, struct ur_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ur_packet p;

		cr_assert_eq(ur_packet_decode(pkts[i].data, pkts[i].len, &p), UR_DROP_NONE);
		strlcat(sent, p.bth.opcode == UR_RC_ACKNOWLEDGE ? "A" : "W", sizeof(sent));
	}
	strlcat(sent, ",", sizeof(sent));
	release(source, pkts, n);
	return n;
}

static uint64_t clock_ns(void *source)
{
	(void)source;
	return e->now_ns;
}

static const struct ur_source_ops ops = {
	.rx = receive, .tx = transmit, .alloc = allocate, .free = release, .now_ns = clock_ns};

static void setup(void)
{
	struct ur_packet p;
	struct ur_round_attr attr = {.ops = &ops,
				     .frame_bytes = ROOM,
				     .gids = &gid,
				     .gid_cnt = 1,
				     .ack_wait_ns = WAIT_NS};

	e = END(.window = 0);
	e->now_ns = 1000000;
	p = end_packet(e, UR_RC_WRITE_ONLY, END_RQ_PSN, 8);
	gid = p.ip.dst;
	memcpy(attr.mac, p.dmac, 6);
	attr.engine = e->engine;
	cr_assert_eq(ur_round_init(&r, &attr, e->now_ns), 0);
}

static void teardown(void)
{
	ur_round_fini(&r);
	cr_assert_eq(buffers, 0u);
	end_free(e);
}

TestSuite(round_ack, .init = setup, .fini = teardown);

static void expect_sent(const char *bursts)
{
	cr_assert_str_eq(sent, bursts);
	sent[0] = '\0';
}

/* A message arrives from the peer. The round that receives it sends `sends` packets. */
static void take(uint8_t opcode, unsigned sends)
{
	static uint32_t psn = END_RQ_PSN;
	struct ur_packet p = end_packet(e, opcode, psn++, 8);

	p.bth.ackreq = true;
	frame_make(&arrived, &p);
	cr_assert_eq(ur_round_poll(&r), 1 + sends);
}

/* The ACK of a WRITE does not leave, because the answer may come. */
static void take_write(void)
{
	take(UR_RC_WRITE_ONLY, 0);
	expect_sent("");
}

/* What the application posts leaves at once. */
static void answer(void)
{
	static uint64_t id;

	end_send(e, id++, IBV_WR_RDMA_WRITE, 8);
	ur_round_output(&r, e->now_ns, true);
}

static void poll_after(uint64_t ns)
{
	e->now_ns += ns;
	ur_round_poll(&r);
}

/* EDGE-ACK-01 */
Test(round_ack, an_ack_leaves_with_the_next_round_after_the_answer)
{
	take_write();
	poll_after(WAIT_NS - 1);
	expect_sent("");
	answer();
	expect_sent("W,");
	poll_after(0);
	expect_sent("A,");
}

/* EDGE-ACK-01 */
Test(round_ack, an_ack_without_an_answer_waits_for_a_while)
{
	for (unsigned i = 0; i < WRITES; i++) {
		take_write();
		poll_after(WAIT_NS - 1);
		expect_sent("");
		poll_after(1);
		expect_sent("A,");
	}
	take_write();
	ur_round_send_acks(&r);
	poll_after(0);
	expect_sent("A,");
}

/* EDGE-ACK-02 */
Test(round_ack, an_ack_that_was_kept_leaves_in_one_burst_with_the_answer)
{
	take_write();
	cr_assert(ur_round_keep_ack(&r));
	poll_after(0);
	answer();
	expect_sent("WA,");
	poll_after(WAIT_NS);
	expect_sent("");
	for (unsigned i = 1; i < UR_ACKS_WITH_ANSWER; i++) {
		take_write();
		answer();
		expect_sent("WA,");
		end_ack(e, END_SQ_PSN + i, 0x1f, i + 1);
		end_expect_wc(e, i - 1, IBV_WC_SUCCESS);
	}
	take_write();
	answer();
	expect_sent("W,");
}

/* EDGE-ACK-02. The doorbell found a thread in its round; the next one takes it. */
Test(round_ack, an_ack_follows_an_answer_that_had_to_wait)
{
	take_write();
	cr_assert(ur_round_keep_ack(&r));
	end_send(e, 0, IBV_WR_RDMA_WRITE, 8);
	poll_after(0);
	expect_sent("WA,");
}

/* EDGE-ACK-02 */
Test(round_ack, nothing_is_kept_if_there_is_more_to_send_than_an_ack)
{
	cr_expect_not(ur_round_keep_ack(&r), "no ACK is owed");
	take_write();
	end_send(e, 0, IBV_WR_RDMA_WRITE, 8);
	cr_expect_not(ur_round_keep_ack(&r));
	poll_after(0);
	expect_sent("AW,");
}

/* EDGE-ACK-02. More waits than fits into a burst: ACKs are ahead of the second one. */
Test(round_ack, an_ack_waits_for_one_burst_at_most)
{
	char expected[UR_BURST + 8];

	take_write();
	cr_assert(ur_round_keep_ack(&r));
	end_send(e, 0, IBV_WR_RDMA_WRITE, (UR_BURST + 1) * END_MTU);
	poll_after(0);
	memset(expected, 'W', UR_BURST);
	strcpy(expected + UR_BURST, ",AW,");
	expect_sent(expected);
}

/* EDGE-ACK-04 */
Test(round_ack, acks_go_ahead_of_answers_once_that_was_asked_for)
{
	ur_round_put_acks_first(&r);
	for (unsigned i = 0; i < 3; i++) {
		take_write();
		if (i)
			cr_assert(ur_round_keep_ack(&r));
		answer();
		expect_sent("AW,");
		end_ack(e, END_SQ_PSN + i, 0x1f, i + 1);
		end_expect_wc(e, i, IBV_WC_SUCCESS);
	}
	take_write();
	poll_after(WAIT_NS);
	expect_sent("A,");
}

/* EDGE-ACK-03. Programs expect the completion of a request before the answer to it, as ib_send_lat -e does, whose CQs share a channel. */
Test(round_ack, an_ack_leaves_in_the_round_that_has_raised_an_event)
{
	ur_round_event_raised(&r);
	take(UR_RC_WRITE_ONLY, 1);
	expect_sent("A,");
	cr_assert_not(ur_round_keep_ack(&r));
	take_write();
}
