/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "ext_end.h"

struct end *xend_new(struct end_attr attr)
{
	struct end *e;

	attr.mode = UR_MODE_EXTENDED;
	e = end_new(attr);
	e->qp->req.ssn = ur_msn(1);
	return e;
}

void xend_free(struct end *e)
{
	ur_ext_requester_stop(e->qp);
	cr_assert_eq(ur_engine_core(e->engine)->rtx.held_cnt, 0, "a context is lost");
	cr_assert_eq(ur_engine_core(e->engine)->spray.free_cnt,
		     ur_engine_core(e->engine)->spray.cnt, "spraying state is lost");
	end_free(e);
}

static void check(struct end *e)
{
	const struct ur_ext_requester *x = &e->qp->xreq;
	const struct ur_requester *req = &e->qp->req;

	ur_selective_validate(&x->psn);
	ur_selective_validate(&x->rsp);
	if (e->qp->state == IBV_QPS_ERR)
		return;
	cr_assert_leq(ur_ext_reads_out(&e->qp->xreq), req->max_rd_atomic);
	/* The local ACK timer runs while anything is outstanding. */
	if (!x->retry.is_waiting)
		cr_assert_eq(x->retry.timeout && !e->qp->ops->is_idle(e->qp),
			     x->retry.ack_deadline_ns != UR_NEVER);
}

const struct ur_packet *xend_out(struct end *e)
{
	struct ur_tx tx = {.hdr = e->out_frame.b};
	bool ready = ur_ext_requester_ready(e->qp), made;
	uint32_t cur = e->qp->req.cur;
	unsigned wqes = 0;

	e->now_ns += XEND_STEP_NS;
	made = ur_ext_requester_next(e->qp, &tx, e->now_ns, &wqes);
	ur_qp_act(e->qp);
	ur_qp_update_ready(e->qp); /* as at the end of the engine's output */
	check(e);
	cr_assert(ready || !made);
	/* There must be no blind visit. */
	cr_assert(!ready || made || cur != e->qp->req.cur || e->qp->req.local_err ||
		  e->qp->state == IBV_QPS_ERR);
	if (!made)
		return NULL;
	cr_assert_leq(tx.hdr_len, UR_HDR_MAX);
	e->out_frame.len = ur_tx_write(&tx, e->out_frame.b);
	cr_assert_eq(e->out_frame.len, ur_tx_bytes(&tx));
	cr_assert_eq(ur_packet_decode(e->out_frame.b, e->out_frame.len, &e->out), UR_DROP_NONE);
	cr_assert_eq(e->out.bth.dqpn.v, END_PEER_QPN);
	cr_assert_eq(e->out.xth.stamp, ur_stamp(e->now_ns).v);
	return &e->out;
}

const struct ur_packet *xend_expect(struct end *e, uint8_t opcode, uint32_t psn)
{
	const struct ur_packet *p = xend_out(e);

	cr_assert_not_null(p, "silence instead of %s", ur_opcodes[opcode].name);
	cr_assert_eq(p->bth.opcode, opcode, "%s instead of %s", ur_opcodes[p->bth.opcode].name,
		     ur_opcodes[opcode].name);
	cr_assert_eq(p->bth.psn.v, psn, "PSN %u instead of %u", p->bth.psn.v, psn);
	return p;
}

void xend_expect_silence(struct end *e)
{
	const struct ur_packet *p = xend_out(e);

	cr_assert_null(p, "%s instead of silence", p ? ur_opcodes[p->bth.opcode].name : "");
}

unsigned xend_drain(struct end *e)
{
	unsigned n = 0;

	while (xend_out(e))
		n++;
	return n;
}

struct ur_packet xend_packet(struct end *e, uint8_t opcode, uint32_t psn, uint32_t epsn,
			     uint32_t echo, const uint8_t *payload, uint16_t payload_len)
{
	struct ur_packet p = frame_packet(opcode, false, payload, payload_len);

	p.bth.dqpn = e->qp->qpn;
	p.bth.psn = ur_psn(psn);
	p.aeth = (struct ur_aeth){0x1f, 0};
	p.xaeth = (struct ur_xaeth){.echo = echo, .epsn = ur_psn(epsn)};
	return p;
}

enum ur_drop xend_in(struct end *e, struct ur_packet p)
{
	struct ur_packet got;
	enum ur_drop drop;

	e->now_ns += XEND_STEP_NS;
	frame_make(&e->in_frame, &p);
	cr_assert_eq(ur_packet_decode(e->in_frame.b, e->in_frame.len, &got), UR_DROP_NONE);
	drop = ur_ext_completer_input(e->qp, &got, e->now_ns);
	ur_qp_act(e->qp);
	ur_qp_update(e->qp); /* as ur_qp_input() */
	check(e);
	return drop;
}

enum ur_drop xend_ack(struct end *e, uint32_t epsn, uint8_t syndrome, uint32_t msn, uint32_t echo)
{
	bool nak = syndrome & UR_SYNDROME_KIND_MASK;
	struct ur_packet p = xend_packet(e, UR_EXT_ACKNOWLEDGE, epsn - !nak, epsn, echo, NULL, 0);

	p.aeth = (struct ur_aeth){syndrome, msn};
	return xend_in(e, p);
}

enum ur_drop xend_sack(struct end *e, uint32_t epsn, uint32_t bits, uint32_t echo)
{
	uint8_t map[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
			  (uint8_t)(bits >> 24)};
	struct ur_packet p = xend_packet(e, UR_EXT_ACKNOWLEDGE, epsn, epsn, echo, map, 4);

	p.aeth.syndrome = UR_SYNDROME_NAK | UR_NAK_PSN_SEQ;
	return xend_in(e, p);
}

enum ur_drop xend_read(struct end *e, uint32_t ssn, uint32_t offset, uint32_t psn, uint16_t len,
		       uint32_t echo)
{
	uint8_t payload[4096];
	struct ur_packet p;

	memset(payload, (int)(offset + 1), sizeof(payload));
	p = xend_packet(e, UR_EXT_READ_RESPONSE_MIDDLE, psn, e->qp->xreq.psn.max.v, echo, payload,
			len);
	p.xrth = (struct ur_xrth){.ssn = ssn, .offset = offset};
	return xend_in(e, p);
}

enum ur_drop xend_atomic(struct end *e, uint32_t ssn, uint32_t psn, uint32_t echo)
{
	struct ur_packet p = xend_packet(e, UR_EXT_ATOMIC_ACKNOWLEDGE, psn, e->qp->xreq.psn.max.v,
					 echo, NULL, 0);

	p.xrth = (struct ur_xrth){.ssn = ssn};
	return xend_in(e, p);
}

void xend_wait(struct end *e)
{
	uint64_t at = ur_ext_deadline(e->qp);

	cr_assert_neq(at, UR_NEVER, "nothing to wait for");
	if (at > e->now_ns)
		e->now_ns = at;
	ur_ext_completer_timer(e->qp, e->now_ns);
	ur_qp_act(e->qp);
	check(e);
}
