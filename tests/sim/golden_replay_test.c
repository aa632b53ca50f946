/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "golden.h"
#include "objects.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

/*
 * Feeds captured requests of another stack into our responder. Our answers are compared with the
 * captured answers, and the memory with a model that is built only from the captured bytes.
 *
 * We choose QPNs and keys, so those in the packets are replaced and the ICRC is computed again.
 * Addresses are kept; the region is registered with them. Responses must agree in opcode, PSN, MSN,
 * NAK code and payload. They may differ in the credit count (rxe sends none) and, if packets were
 * lost or repeated, in the number of ACKs with the same contents.
 */
#define MEM_BYTES  65536u
#define RECV_BYTES 16384u
#define RECV_MAX   128u
#define MTU	   1024u

struct message {
	uint32_t len, imm;
	bool has_imm;
	uint8_t *bytes;
};

struct response {
	uint8_t opcode, syndrome;
	uint32_t psn, msn;
	uint64_t atomic;
	uint16_t len;
	bool has_aeth;
	uint8_t payload[4096];
};

/* One QP of a capture, replayed. */
struct replay {
	const struct golden_file *file;
	uint32_t qpn; /* in the capture, at both ends */
	enum ibv_qp_type type;
	uint32_t rkey, qkey;
	uint64_t va; /* address of B's buffer */
	bool v6;
	struct sim *s;
	struct sim_cq cq;
	struct sim_mr mr, recv_mr;
	struct sim_qp qp, peer;
	uint8_t *model; /* expected contents of B's buffer */
	uint32_t epsn;
	uint8_t rnr_timer;
	bool skip; /* UC: the current message has a gap, or its start is not in the capture */
	struct message *msgs;
	unsigned msg_cnt, received, posted;
	uint64_t write_va;
	struct response *ours, *theirs;
	unsigned our_cnt, their_cnt;
};

static bool decode(const struct golden_packet *g, struct ur_packet *p)
{
	return ur_packet_decode(g->b, g->len, p) == UR_DROP_NONE && ur_icrc_ok(g->b, p);
}

static bool to_b(const struct ur_packet *p)
{
	return p->ip.v6 ? p->ip.dst.b[15] == 0x0b : p->ip.dst.b[15] == 2;
}

/* ---- the model: a receiver that executes the captured requests in order ---- */

static uint32_t psns_of(const struct ur_packet *p)
{
	return p->op & UR_OP_READ_REQ && p->reth.length ? (p->reth.length + MTU - 1) / MTU : 1;
}

static void model_atomic(struct replay *r, const struct ur_packet *p)
{
	uint8_t *at = r->model + (p->atomiceth.va - r->va);
	uint64_t now;

	memcpy(&now, at, 8);
	if (p->bth.opcode == UR_RC_FETCH_ADD)
		now += p->atomiceth.swap_add;
	else if (now == p->atomiceth.compare)
		now = p->atomiceth.swap_add;
	memcpy(at, &now, 8);
}

static void model_message(struct replay *r, const struct ur_packet *p)
{
	struct message *m = &r->msgs[r->msg_cnt];

	if (p->op & UR_OP_WRITE) {
		if (p->op & UR_OP_RETH)
			r->write_va = p->reth.va;
		memcpy(r->model + (r->write_va - r->va), p->payload, p->payload_len);
		r->write_va += p->payload_len;
	} else {
		m->bytes = realloc(m->bytes, m->len + p->payload_len + 1u);
		cr_assert(m->bytes);
		memcpy(m->bytes + m->len, p->payload, p->payload_len);
	}
	m->len += p->payload_len;
	m->has_imm = p->op & UR_OP_IMM;
	m->imm = m->has_imm ? p->imm : 0;
	if (!(p->op & UR_OP_LAST))
		return;
	if (p->op & UR_OP_WRITE && !m->has_imm)
		m->len = 0; /* without a completion */
	else
		r->msg_cnt++;
}

/* Executes a request that is new by its PSN. Duplicates and packets after a gap have no effect. */
static void model_request(struct replay *r, const struct ur_packet *p)
{
	if (r->type == IBV_QPT_UD) {
		if (p->deth.qkey == r->qkey)
			model_message(r, p);
		return;
	}
	if (r->type == IBV_QPT_UC) {
		struct message *m = &r->msgs[r->msg_cnt];
		bool gap = p->bth.psn.v != r->epsn;

		r->epsn = (p->bth.psn.v + 1) & 0xffffff;
		if (p->op & UR_OP_FIRST)
			m->len = 0;
		r->skip = p->op & UR_OP_FIRST ? false : r->skip || gap;
		if (!r->skip)
			model_message(r, p);
		return;
	}
	if (p->bth.psn.v != r->epsn)
		return;
	r->epsn = (r->epsn + psns_of(p)) & 0xffffff;
	if (p->op & UR_OP_ATOMIC)
		model_atomic(r, p);
	else if (p->op & (UR_OP_SEND | UR_OP_WRITE))
		model_message(r, p);
}

/* ---- responses ---- */

static void note(struct response *list, unsigned *cnt, const struct ur_packet *p)
{
	struct response *rsp = &list[(*cnt)++];

	rsp->opcode = p->bth.opcode;
	rsp->psn = p->bth.psn.v;
	rsp->has_aeth = p->op & UR_OP_AETH;
	if (rsp->has_aeth) {
		rsp->syndrome = p->aeth.syndrome;
		rsp->msn = p->aeth.msn;
		/* Each stack may have its own credits. */
		if ((rsp->syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_ACK)
			rsp->syndrome = 0;
	}
	if (p->op & UR_OP_ATOMICACKETH)
		rsp->atomic = p->atomic_ack;
	rsp->len = p->payload_len;
	memcpy(rsp->payload, p->payload, p->payload_len);
}

static enum sim_verdict on_response(struct sim *s, struct sim_ep *from, uint8_t *frame,
				    uint32_t len, const struct ur_packet *p)
{
	struct replay *r = s->hook_arg;

	(void)from, (void)frame, (void)len;
	note(r->ours, &r->our_cnt, p);
	return SIM_DROP;
}

/* ---- feeding ---- */

/* True if the captured responder had no receive for the message that this request starts. */
static bool was_rnr(const struct replay *r, size_t at, struct ur_psn psn)
{
	for (size_t i = at + 1; i < r->file->cnt; i++) {
		struct ur_packet p;

		if (!decode(&r->file->packets[i], &p) || to_b(&p) || p.bth.dqpn.v != r->qpn ||
		    p.bth.opcode != UR_RC_ACKNOWLEDGE || ur_psn_lt(p.bth.psn, psn))
			continue;
		return (p.aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_RNR_NAK;
	}
	return r->type == IBV_QPT_RC; /* never answered */
}

/* Posts a receive. This happens when the captured responder had one. */
static void post_receive(struct replay *r)
{
	struct ibv_sge sge =
		sim_sge(&r->recv_mr, (size_t)(r->posted % RECV_MAX) * RECV_BYTES, RECV_BYTES);
	struct ibv_recv_wr wr = {.wr_id = r->posted++, .sg_list = &sge, .num_sge = 1};

	cr_assert_eq(sim_post_recv(&r->qp, &wr), 0);
}

static void check_received(struct replay *r)
{
	struct ibv_wc wc;

	while (ur_cq_poll(&r->cq.cq, 1, &wc)) {
		const struct message *m = &r->msgs[r->received];
		const uint8_t *at = r->recv_mr.p + (r->received % RECV_MAX) * RECV_BYTES;
		uint32_t grh = r->type == IBV_QPT_UD ? 40 : 0;

		SIM_CHECK(r->s, wc.status == IBV_WC_SUCCESS && r->received < r->msg_cnt,
			  "completion %u has status %d; %u messages came", r->received, wc.status,
			  r->msg_cnt);
		SIM_CHECK(r->s, wc.wr_id == r->received && wc.byte_len == m->len + grh,
			  "message %u: %u bytes, expected %u", r->received, wc.byte_len,
			  m->len + grh);
		SIM_CHECK(r->s,
			  !!(wc.wc_flags & IBV_WC_WITH_IMM) == m->has_imm &&
				  (!m->has_imm || wc.imm_data == __builtin_bswap32(m->imm)),
			  "message %u: wrong immediate", r->received);
		SIM_CHECK(r->s, !m->bytes || memcmp(at + grh, m->bytes, m->len) == 0,
			  "message %u: wrong bytes", r->received);
		r->received++;
	}
}

static void feed(struct replay *r, size_t at)
{
	const struct golden_packet *g = &r->file->packets[at];
	uint8_t *frame = malloc(g->len);
	struct ur_packet p;
	bool takes_receive;

	cr_assert(frame && decode(g, &p));
	takes_receive = p.op & (UR_OP_SEND | UR_OP_IMM);
	memcpy(frame, g->b, g->len);
	ur_store24(frame + p.bth_off + 5, r->qp.qpn.v);
	if (p.op & UR_OP_RETH && p.reth.rkey == r->rkey)
		ur_store32(frame + p.bth_off + UR_BTH_BYTES + 8, r->mr.key);
	if (p.op & UR_OP_ATOMICETH && p.atomiceth.rkey == r->rkey)
		ur_store32(frame + p.bth_off + UR_BTH_BYTES + 8, r->mr.key);
	sim_reseal(frame, &p);
	/* The captured responder had a receive unless it sent RNR; a message with a gap keeps its own. */
	if (takes_receive && r->posted <= r->received && !was_rnr(r, at, p.bth.psn))
		post_receive(r);
	if (!takes_receive || r->posted > r->received)
		model_request(r, &p);
	sim_inject(&r->s->ep[1], frame, (uint32_t)g->len);
	sim_sleep(r->s, SIM_US(100));
	check_received(r);
	free(frame);
}

/* ---- a QP of a file ---- */

/* Finds out type, first PSN and key of the QP from the capture. */
static bool study(struct replay *r)
{
	bool found = false;

	for (size_t i = 0; i < r->file->cnt; i++) {
		struct ur_packet p;
		uint64_t va;

		if (!decode(&r->file->packets[i], &p) || p.bth.dqpn.v != r->qpn)
			continue;
		if (!to_b(&p)) {
			r->their_cnt++;
			if (p.op & UR_OP_AETH &&
			    (p.aeth.syndrome & UR_SYNDROME_KIND_MASK) == UR_SYNDROME_RNR_NAK)
				r->rnr_timer = p.aeth.syndrome & UR_SYNDROME_VALUE_MASK;
			continue;
		}
		/* The oldest PSN, because the first packet captured may have overtaken others. */
		if (!found || ur_psn_lt(p.bth.psn, ur_psn(r->epsn)))
			r->epsn = p.bth.psn.v;
		if (!found) {
			r->type = p.bth.opcode < 0x20	? IBV_QPT_RC
				  : p.bth.opcode < 0x40 ? IBV_QPT_UC
							: IBV_QPT_UD;
			r->qkey = p.op & UR_OP_DETH ? p.deth.qkey : 0;
			r->v6 = p.ip.v6;
		}
		found = true;
		va = p.op & UR_OP_RETH ? p.reth.va : p.op & UR_OP_ATOMICETH ? p.atomiceth.va : 0;
		if (va && (!r->va || va < r->va))
			r->va = va;
		if (p.op & UR_OP_RETH && !r->rkey)
			r->rkey = p.reth.rkey;
		if (p.op & UR_OP_ATOMICETH && !r->rkey)
			r->rkey = p.atomiceth.rkey;
	}
	return found;
}

static void set_up(struct replay *r, const uint8_t *memory)
{
	struct sim_attr attr = sim_defaults(r->file->name, r->qpn);
	struct sim_qp_attr qa = sim_qp_defaults(&r->cq, &r->cq);

	attr.link.bits_per_s = 0;
	r->s = sim_new(&attr);
	for (unsigned i = 0; i < 2; i++) /* the addresses of the captures */
		r->s->ep[i].gid6 = (struct ur_gid){
			{0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = (uint8_t)(0x0a + i)}};
	sim_cq_init(&r->cq, 256);
	sim_mr_init_pd(&r->mr, &r->s->ep[1], MEM_BYTES, SIM_ACCESS_ALL, SIM_PD, r->va);
	memcpy(r->mr.p, memory, MEM_BYTES);
	sim_mr_init(&r->recv_mr, &r->s->ep[1], (size_t)RECV_MAX * RECV_BYTES,
		    IBV_ACCESS_LOCAL_WRITE);
	qa.type = r->type;
	qa.cap.max_recv_wr = RECV_MAX;
	qa.dest_rd_atomic = 16;
	qa.qkey = r->qkey;
	qa.min_rnr_timer = r->rnr_timer;
	qa.v6 = r->v6;
	sim_qp_create(&r->qp, &r->s->ep[1], &qa);
	qa.psn = r->epsn;
	r->peer = (struct sim_qp){.ep = &r->s->ep[0], .attr = qa, .qpn = ur_qpn(r->qpn)};
	sim_qp_to_init(&r->qp);
	sim_qp_to_rtr(&r->qp, &r->peer);
	r->s->hook = on_response;
	r->s->hook_arg = r;
}

/* Compares response by response. */
static void compare_exactly(struct replay *r)
{
	for (unsigned i = 0; i < r->our_cnt && i < r->their_cnt; i++) {
		const struct response *a = &r->ours[i], *b = &r->theirs[i];

		SIM_CHECK(r->s,
			  a->opcode == b->opcode && a->psn == b->psn &&
				  a->syndrome == b->syndrome && a->msn == b->msn &&
				  a->atomic == b->atomic && a->len == b->len &&
				  memcmp(a->payload, b->payload, a->len) == 0,
			  "response %u: opcode %x psn %x syndrome %x msn %u len %u; the captured "
			  "one: %x %x %x %u %u",
			  i, a->opcode, a->psn, a->syndrome, a->msn, a->len, b->opcode, b->psn,
			  b->syndrome, b->msn, b->len);
	}
	SIM_CHECK(r->s, r->our_cnt == r->their_cnt, "%u responses, the captured stack made %u",
		  r->our_cnt, r->their_cnt);
}

static const struct response *find(const struct response *list, unsigned cnt,
				   const struct response *like)
{
	for (unsigned i = 0; i < cnt; i++)
		if (list[i].opcode == like->opcode && list[i].psn == like->psn &&
		    list[i].syndrome == like->syndrome)
			return &list[i];
	return NULL;
}

/* Compares the data that both sent for a PSN, and the gaps reported. */
static void compare_meaning(struct replay *r)
{
	for (unsigned i = 0; i < r->our_cnt; i++) {
		const struct response *a = &r->ours[i], *b;
		uint8_t kind = a->syndrome & UR_SYNDROME_KIND_MASK;

		SIM_CHECK(r->s, kind == 0 || a->syndrome == 0x60 || kind == UR_SYNDROME_RNR_NAK,
			  "response %u: NAK %x", i, a->syndrome);
		b = find(r->theirs, r->their_cnt, a);
		if (a->syndrome == 0x60 || kind == UR_SYNDROME_RNR_NAK)
			SIM_CHECK(r->s, b,
				  "response %u: NAK %x for %x, the captured stack sent none", i,
				  a->syndrome, a->psn);
		/* Memory that is read again may have changed meanwhile. */
		if (b && a->len == b->len && find(r->ours, r->our_cnt, a) == a)
			SIM_CHECK(r->s,
				  a->atomic == b->atomic &&
					  memcmp(a->payload, b->payload, a->len) == 0,
				  "response %u: other data for %x", i, a->psn);
	}
	if (r->our_cnt && r->their_cnt) {
		const struct response *a = &r->ours[r->our_cnt - 1];
		const struct response *b = &r->theirs[r->their_cnt - 1];

		SIM_CHECK(r->s, a->psn == b->psn && a->msn == b->msn,
			  "the last response is psn %x msn %u, the captured one %x %u", a->psn,
			  a->msn, b->psn, b->msn);
	}
}

static void replay_qp(const struct golden_file *file, uint32_t qpn, uint8_t *memory,
		      void (*compare)(struct replay *r))
{
	struct replay *r = calloc(1, sizeof(*r));

	cr_assert(r);
	r->file = file;
	r->qpn = qpn;
	r->skip = true;
	if (!study(r)) {
		free(r);
		return;
	}
	r->model = malloc(MEM_BYTES);
	r->msgs = calloc(file->cnt + 1, sizeof(*r->msgs));
	r->ours = calloc(4 * file->cnt + 64, sizeof(*r->ours));
	r->theirs = calloc(r->their_cnt + 1, sizeof(*r->theirs));
	cr_assert(r->model && r->msgs && r->ours && r->theirs);
	memcpy(r->model, memory, MEM_BYTES);
	r->their_cnt = 0;
	set_up(r, memory);
	for (size_t i = 0; i < file->cnt; i++) {
		struct ur_packet p;

		if (!decode(&file->packets[i], &p) || p.bth.dqpn.v != qpn)
			continue;
		if (to_b(&p))
			feed(r, i);
		else
			note(r->theirs, &r->their_cnt, &p);
	}
	SIM_CHECK(r->s, r->received == r->msg_cnt, "%u of %u messages received", r->received,
		  r->msg_cnt);
	SIM_CHECK(r->s, memcmp(r->model, r->mr.p, MEM_BYTES) == 0, "the memory is wrong");
	SIM_CHECK(r->s, r->qp.qp->state == IBV_QPS_RTR, "the QP is in state %u", r->qp.qp->state);
	if (r->type == IBV_QPT_RC)
		compare(r);
	else
		SIM_CHECK(r->s, r->our_cnt == 0, "an unreliable QP answers");
	memcpy(memory, r->mr.p, MEM_BYTES);
	sim_qp_destroy(&r->qp);
	sim_mr_free(&r->mr);
	sim_mr_free(&r->recv_mr);
	sim_cq_free(&r->cq);
	sim_free(r->s);
	for (unsigned i = 0; i <= r->msg_cnt; i++)
		free(r->msgs[i].bytes);
	free(r->msgs);
	free(r->model);
	free(r->ours);
	free(r->theirs);
	free(r);
}

static void replay_file(const char *name, void (*compare)(struct replay *r))
{
	struct golden_file file = golden_load(name);
	uint8_t *memory = malloc(MEM_BYTES);
	uint32_t seen[16], seen_cnt = 0;

	cr_assert(memory);
	for (unsigned i = 0; i < MEM_BYTES; i++)
		memory[i] = (uint8_t)(7 * i + 101);
	if (strncmp(name, "rc_atomic", 9) == 0) /* scenarios.txt */
		memcpy(memory, &(uint64_t){0x1122334455667788}, 8);
	for (size_t i = 0; i < file.cnt; i++) {
		struct ur_packet p;
		bool old = false;

		if (!decode(&file.packets[i], &p) || !to_b(&p))
			continue;
		for (unsigned k = 0; k < seen_cnt; k++)
			old |= seen[k] == p.bth.dqpn.v;
		if (old)
			continue;
		seen[seen_cnt++] = p.bth.dqpn.v;
		replay_qp(&file, p.bth.dqpn.v, memory, compare);
	}
	cr_assert_gt(seen_cnt, 0);
	free(memory);
	golden_free(&file);
}

#define EXACT(name)                                                                                \
	Test(golden_exact, name)                                                                   \
	{                                                                                          \
		replay_file(#name "_mtu1024.pcap", compare_exactly);                               \
	}
#define MEANING(name)                                                                              \
	Test(golden_meaning, name)                                                                 \
	{                                                                                          \
		replay_file(#name "_mtu1024.pcap", compare_meaning);                               \
	}

/* Nothing was lost: the same responses in the same order. */
EXACT(rc_send_sizes_v4)
EXACT(rc_send_sizes_v6ll)
EXACT(rc_send_imm_v4)
EXACT(rc_write_sizes_v4)
EXACT(rc_write_imm_v4)
EXACT(rc_read_sizes_v4)
EXACT(rc_read_sizes_v6ll)
EXACT(rc_read_outstanding_v4)
EXACT(rc_atomic_v4)
EXACT(rc_atomic_v6ll)
EXACT(rc_psn_wrap_v4)
EXACT(rc_pipelined_v4)
EXACT(rc_sgl_inline_v4)
EXACT(rc_tos_flow_v4)

/* With loss, repetition or reordering: the same meaning. */
MEANING(rc_rnr_v4)
MEANING(rc_loss5_v4)
MEANING(rc_reorder_v4)
MEANING(rc_duplicate_v4)
MEANING(rc_corrupt_v4)
MEANING(uc_all_v4)
MEANING(uc_loss_v4)
MEANING(ud_all_v4)
MEANING(ud_all_v6ll)
