/* SPDX-License-Identifier: BSD-3-Clause */
#include "twins.h"

#include "engine/query.h"
#include "wire/icrc.h"

struct twins twins_new(struct end_attr attr)
{
	struct twins t;

	attr.recv_wr = 64;
	attr.cqe = 1024;
	t.on = end_new(attr);
	attr.no_prediction = true;
	t.off = end_new(attr);
	return t;
}

void twins_free(struct twins t)
{
	end_free(t.on);
	end_free(t.off);
}

#define WC_BYTES (offsetof(struct ibv_wc, dlid_path_bits) + 1) /* padding follows, of any value */

void twins_expect_same_state(struct twins t)
{
	struct ur_counters on = *end_counters(t.on), off = *end_counters(t.off);
	struct ibv_wc a[8], b[8];
	unsigned n;

	cr_assert_eq(off.rx_predicted, 0);
	cr_assert_eq(off.rx_path_predicted, 0);
	cr_assert_eq(off.rx_acks_predicted, 0);
	cr_assert_eq(off.rx_responses_predicted, 0);
	cr_assert_eq(off.tx_predicted, 0);
	on.rx_predicted = on.rx_path_predicted = on.rx_acks_predicted = on.tx_predicted = 0;
	on.rx_responses_predicted = 0;
	cr_assert_arr_eq(&on, &off, sizeof(on));
	do {
		n = ur_cq_poll(&t.on->cq, 8, a);
		cr_assert_eq(ur_cq_poll(&t.off->cq, 8, b), n);
		for (unsigned i = 0; i < n; i++)
			cr_assert_arr_eq(&a[i], &b[i], WC_BYTES);
	} while (n);
	cr_assert_arr_eq(t.on->buf, t.off->buf, TWINS_COMPARED);
	cr_assert_eq(t.on->async_cnt, t.off->async_cnt);
	cr_assert_eq(t.on->notified, t.off->notified);
	cr_assert_eq(ur_engine_next_deadline(t.on->engine), ur_engine_next_deadline(t.off->engine));
	cr_assert_eq(t.on->qp->state, t.off->qp->state);
	cr_assert_eq(t.on->qp->req.ssn.v, t.off->qp->req.ssn.v);
	cr_assert_eq(t.on->qp->req.since_ackreq, t.off->qp->req.since_ackreq);
	cr_assert_eq(t.on->qp->rsp.epsn.v, t.off->qp->rsp.epsn.v);
	cr_assert_eq(t.on->qp->rsp.msn.v, t.off->qp->rsp.msn.v);
}

static struct frame sent[TWINS_BURST];
struct ur_packet twins_sent[TWINS_BURST];

unsigned twins_expect_same_burst(struct twins t, unsigned cap)
{
	static uint8_t headers[TWINS_BURST][UR_HDR_MAX];
	static struct frame other;
	struct ur_tx tx[TWINS_BURST];
	unsigned n;

	for (unsigned i = 0; i < TWINS_BURST; i++)
		tx[i].hdr = headers[i];
	n = ur_engine_output(t.on->engine, tx, cap, t.on->now_ns);
	for (unsigned i = 0; i < n; i++) {
		sent[i].len = ur_tx_write(&tx[i], sent[i].b);
		cr_assert_eq(ur_packet_decode(sent[i].b, sent[i].len, &twins_sent[i]),
			     UR_DROP_NONE);
	}
	cr_assert_eq(ur_engine_output(t.off->engine, tx, cap, t.off->now_ns), n);
	for (unsigned i = 0; i < n; i++) {
		other.len = ur_tx_write(&tx[i], other.b);
		cr_assert_eq(sent[i].len, other.len);
		cr_assert_arr_eq(sent[i].b, other.b, other.len);
	}
	ur_qp_validate(t.on->qp);
	ur_qp_validate(t.off->qp);
	return n;
}

bool twins_expect_same_packet(struct twins t)
{
	return twins_expect_same_burst(t, 1);
}

enum ur_drop end_in_decoded(struct end *e, const struct frame *f)
{
	struct ur_packet p;
	enum ur_drop drop = ur_packet_decode(f->b, f->len, &p);

	if (drop == UR_DROP_NONE && !ur_icrc_ok(f->b, &p))
		drop = UR_DROP_ICRC;
	if (drop == UR_DROP_NONE)
		return ur_engine_input(e->engine, &p, e->now_ns);
	ur_engine_core(e->engine)->cnt.drops[drop]++;
	return drop;
}

bool twins_in(struct twins t, const struct frame *f)
{
	uint64_t before = end_counters(t.on)->rx_predicted;
	enum ur_drop on = ur_engine_input_frame(t.on->engine, f->b, f->len, t.on->now_ns);

	cr_assert_eq(on, end_in_decoded(t.off, f));
	ur_qp_validate(t.on->qp);
	ur_qp_validate(t.off->qp);
	return end_counters(t.on)->rx_predicted != before;
}

void twins_sleep(struct twins t, uint64_t ns)
{
	end_sleep(t.on, ns);
	end_sleep(t.off, ns);
}

void twins_post_recv(struct twins t, uint64_t id, uint32_t len)
{
	end_post_recv(t.on, id, 4096, len);
	end_post_recv(t.off, id, 4096, len);
}

void frame_fix_sums(struct frame *f)
{
	uint32_t crc;

	frame_fix_ipv4_csum(f->b + 14);
	crc = frame_icrc(f->b + 14, f->len - 14 - 4, false);
	for (unsigned i = 0; i < 4; i++)
		f->b[f->len - 4 + i] = (uint8_t)(crc >> 8 * i);
}
