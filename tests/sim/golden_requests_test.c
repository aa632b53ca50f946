/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "golden.h"
#include "modes.h"
#include "objects.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

/*
 * The other side of golden_replay_test.c: our requester gets the captured answers of another
 * responder. It posts the requests of the captured requester, from the same PSN on, when the
 * capture shows the first packet of each. So its packets must equal those of the capture, byte for
 * byte after the BTH, and its completions those of scenarios.txt.
 *
 * Where nothing was lost there is one packet for each of the capture's, in the same order.
 * Elsewhere when and what is sent again is each stack's own affair, but a request never differs
 * from the one that the other stack made for that PSN; a READ may be requested again in part.
 */
#define MTU	   1024u
#define WRS_MAX	   128u
#define BYTES_MAX  (1u << 20)
#define EXPECT_MAX 128u

struct message {
	struct ur_packet first; /* as captured */
	size_t shown;		/* the packet of the file that shows first that it was posted */
	uint32_t psn, psns, len;
	bool rest; /* its last packets are not in the capture */
	size_t at; /* in the local region */
};

struct expectation {
	enum ibv_wc_status status[EXPECT_MAX];
	uint32_t len[EXPECT_MAX];
	unsigned cnt; /* 0: the file only says that it succeeded */
};

struct replay {
	const struct golden_file *file;
	uint32_t qpn; /* in the capture, at both ends */
	enum ur_mode mode;
	bool exact;
	struct ur_psn first;
	unsigned psn_cnt;
	const struct golden_packet **request; /* by PSN, from `first` on; the first one captured */
	struct message msgs[WRS_MAX];
	unsigned msg_cnt, posted, done;
	struct expectation want;
	bool failed; /* a request has completed in error */
	struct sim *s;
	struct sim_cq cq;
	struct sim_mr mr;
	struct sim_qp qp, peer;
	uint32_t sent; /* PSNs [0, sent) */
	uint32_t seen; /* by the other responder so far, in order: PSNs [0, seen) */
	const struct golden_packet *ack;
};

static bool decode(const struct golden_packet *g, struct ur_packet *p)
{
	return ur_packet_decode(g->b, g->len, p) == UR_DROP_NONE && ur_icrc_ok(g->b, p);
}

static bool to_b(const struct ur_packet *p)
{
	return p->ip.v6 ? p->ip.dst.b[15] == 0x0b : p->ip.dst.b[15] == 2;
}

static bool of_replay(const struct replay *r, size_t at, struct ur_packet *p)
{
	return decode(&r->file->packets[at], p) && p->bth.dqpn.v == r->qpn;
}

static uint32_t offset(const struct replay *r, struct ur_psn psn)
{
	return (psn.v - r->first.v) & 0xffffff;
}

static uint32_t psns_of(const struct ur_packet *p)
{
	return p->op & UR_OP_READ_REQ && p->reth.length ? (p->reth.length + MTU - 1) / MTU : 1;
}

/* ---- what was posted, from the captured requests ---- */

static bool study(struct replay *r)
{
	uint32_t last = 0;
	bool found = false;

	for (size_t i = 0; i < r->file->cnt; i++) {
		struct ur_packet p;

		if (!of_replay(r, i, &p) || !to_b(&p))
			continue;
		if (p.bth.opcode >= 0x20)
			return false; /* UC and UD get no answers */
		if (!found || ur_psn_lt(p.bth.psn, r->first))
			r->first = p.bth.psn;
		found = true;
	}
	r->request = calloc(8192, sizeof(*r->request));
	cr_assert(r->request);
	for (size_t i = 0; found && i < r->file->cnt; i++) {
		struct ur_packet p;
		uint32_t at;

		if (!of_replay(r, i, &p) || !to_b(&p))
			continue;
		at = offset(r, p.bth.psn);
		cr_assert_lt(at, 8192);
		if (!r->request[at])
			r->request[at] = &r->file->packets[i];
		if (at + psns_of(&p) > last)
			last = at + psns_of(&p);
	}
	r->psn_cnt = last;
	return found;
}

/* A message that is refused need not be there to its end: then its rest is made up. */
static void add_payload(struct replay *r, struct message *m)
{
	struct ur_packet p = m->first;

	for (m->psns = 0;;) {
		const struct golden_packet *g = r->request[m->psn + m->psns];

		m->rest = !g;
		if (m->rest)
			break;
		cr_assert(decode(g, &p));
		m->len += p.payload_len;
		m->psns++;
		if (p.op & UR_OP_LAST)
			return;
	}
	m->len = m->first.op & UR_OP_WRITE ? m->first.reth.length : m->len + 1;
	m->psns = (m->len + MTU - 1) / MTU;
	r->psn_cnt = m->psn + m->psns;
}

static void add_message(struct replay *r, uint32_t at)
{
	struct message *m = &r->msgs[r->msg_cnt++];
	struct ur_packet p;

	cr_assert(r->msg_cnt <= WRS_MAX && r->request[at] && decode(r->request[at], &p));
	*m = (struct message){.first = p, .psn = at, .psns = psns_of(&p)};
	if (p.op & UR_OP_READ_REQ)
		m->len = p.reth.length;
	else if (p.op & UR_OP_ATOMIC)
		m->len = 8;
	else
		add_payload(r, m);
}

/* A message counts as posted when any packet of it or behind it is seen. */
static void find_messages(struct replay *r)
{
	size_t at = 0;

	for (uint32_t psn = 0; psn < r->psn_cnt; psn += r->msgs[r->msg_cnt - 1].psns)
		add_message(r, psn);
	for (unsigned k = 0; k < r->msg_cnt; k++) {
		struct message *m = &r->msgs[k];

		m->at = at;
		at += (m->len + 63) & ~63u;
		cr_assert_leq(at, BYTES_MAX);
		for (m->shown = 0;; m->shown++) {
			struct ur_packet p;

			if (of_replay(r, m->shown, &p) && to_b(&p) &&
			    offset(r, p.bth.psn) >= m->psn)
				break;
		}
	}
}

/* ---- what the verbs program saw ---- */

/* The tuples (wr_id, 'IBV_WC_...', length) of a line; receives have ids from 9 on, a bind has 5. */
static void read_tuples(struct expectation *want, const char *line)
{
	static const struct {
		const char *name;
		enum ibv_wc_status status;
	} names[] = {
		{"IBV_WC_SUCCESS", IBV_WC_SUCCESS},
		{"IBV_WC_WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR},
		{"IBV_WC_REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR},
		{"IBV_WC_REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR},
		{"IBV_WC_REM_OP_ERR", IBV_WC_REM_OP_ERR},
		{"IBV_WC_RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR},
		{"IBV_WC_RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR},
		{"IBV_WC_LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR},
	};

	for (; (line = strchr(line, '(')); line++) {
		unsigned id, len, i = 0;
		char status[64];

		if (sscanf(line, "(%u, '%63[A-Z_]', %u)", &id, status, &len) != 3 || id > 8 ||
		    id == 5)
			continue;
		while (strcmp(names[i].name, status) != 0) {
			i++;
			cr_assert_lt(i, sizeof(names) / sizeof(names[0]), "%s", status);
		}
		cr_assert_lt(want->cnt, EXPECT_MAX);
		want->len[want->cnt] = len;
		want->status[want->cnt++] = names[i].status;
	}
}

/* If a scenario was run again, its last run counts. */
static void read_scenario(struct replay *r)
{
	char path[4096], name[64], line[8192], title[80];
	uint32_t qpn = 0;
	bool here = false;
	FILE *f;

	snprintf(name, sizeof(name), "%s", r->file->name);
	*strrchr(name, '.') = 0;
	snprintf(title, sizeof(title), "### %s ", name);
	snprintf(path, sizeof(path), "%s/scenarios.txt", getenv("UROCE_GOLDEN"));
	f = fopen(path, "r");
	cr_assert(f, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "###", 3) == 0) {
			here = strncmp(line, title, strlen(title)) == 0;
			qpn = 0;
		}
		if (here && sscanf(line, " qpn a=%x", &qpn) == 1 && qpn == r->qpn)
			r->want.cnt = 0;
		else if (here && qpn == r->qpn)
			read_tuples(&r->want, line);
	}
	fclose(f);
}

static enum ibv_wc_status wanted(const struct replay *r, unsigned k)
{
	/* Of those that were posted at once, the last alone was signalled. */
	if (r->want.cnt < r->msg_cnt)
		return IBV_WC_SUCCESS;
	return r->want.status[k];
}

/* ---- our requester ---- */

static enum ibv_wr_opcode wr_opcode(const struct replay *r, const struct message *m)
{
	struct ur_packet last;
	bool write = m->first.op & UR_OP_WRITE, imm;

	if (m->first.op & UR_OP_READ_REQ)
		return IBV_WR_RDMA_READ;
	if (m->first.op & UR_OP_ATOMIC)
		return m->first.bth.opcode == UR_RC_FETCH_ADD ? IBV_WR_ATOMIC_FETCH_AND_ADD
							      : IBV_WR_ATOMIC_CMP_AND_SWP;
	if (m->rest)
		return write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
	cr_assert(decode(r->request[m->psn + m->psns - 1], &last));
	imm = last.op & UR_OP_IMM;
	if (last.op & UR_OP_IETH)
		return IBV_WR_SEND_WITH_INV;
	if (write)
		return imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	return imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

static void post(struct replay *r)
{
	struct message *m = &r->msgs[r->posted];
	struct ibv_sge sge = sim_sge(&r->mr, m->at, m->len);
	struct ibv_send_wr wr = {.wr_id = r->posted++,
				 .sg_list = &sge,
				 .num_sge = m->len ? 1 : 0,
				 .opcode = wr_opcode(r, m),
				 .send_flags = IBV_SEND_SIGNALED};
	struct ur_packet p;
	size_t at = m->at;

	if (m->first.op & UR_OP_ATOMIC) {
		wr.wr.atomic.remote_addr = m->first.atomiceth.va;
		wr.wr.atomic.rkey = m->first.atomiceth.rkey;
		wr.wr.atomic.compare_add = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
						   ? m->first.atomiceth.swap_add
						   : m->first.atomiceth.compare;
		wr.wr.atomic.swap = m->first.atomiceth.swap_add;
	} else if (m->first.op & UR_OP_RETH) {
		wr.wr.rdma.remote_addr = m->first.reth.va;
		wr.wr.rdma.rkey = m->first.reth.rkey;
	}
	for (uint32_t i = 0; i < m->psns && !(m->first.op & (UR_OP_READ_REQ | UR_OP_ATOMIC)); i++) {
		if (!r->request[m->psn + i])
			break;
		cr_assert(decode(r->request[m->psn + i], &p));
		memcpy(r->mr.p + at, p.payload, p.payload_len);
		at += p.payload_len;
		wr.send_flags |= p.bth.solicited ? IBV_SEND_SOLICITED : 0u;
		if (p.op & UR_OP_IMM)
			wr.imm_data = __builtin_bswap32(p.imm);
		if (p.op & UR_OP_IETH)
			wr.invalidate_rkey = p.ieth;
	}
	SIM_CHECK(r->s, sim_post_send(&r->qp, &wr) == 0, "cannot post message %u", r->posted - 1);
}

/* A part of a READ is at its offset. The remainder of a refused message is not in the capture. */
static bool is_part(const struct replay *r, const struct ur_packet *p, uint32_t at)
{
	const struct message *end = &r->msgs[r->msg_cnt - 1];

	if (end->rest && at > end->psn && !r->request[at])
		return p->bth.opcode != end->first.bth.opcode;
	for (unsigned k = 0; k < r->msg_cnt; k++) {
		const struct message *m = &r->msgs[k];
		uint32_t skip = (at - m->psn) * MTU;

		if (at >= m->psn && at < m->psn + m->psns)
			return m->first.op & UR_OP_READ_REQ && p->op & UR_OP_READ_REQ &&
			       p->reth.va == m->first.reth.va + skip &&
			       p->reth.rkey == m->first.reth.rkey &&
			       p->reth.length <= m->len - skip &&
			       (p->reth.length == m->len - skip || p->reth.length % MTU == 0);
	}
	return false;
}

static bool same(const struct ur_packet *a, const struct ur_packet *b)
{
	return a->bth.opcode == b->bth.opcode && a->bth.solicited == b->bth.solicited &&
	       a->bth.pkey == b->bth.pkey &&
	       a->payload_off - a->bth_off == b->payload_off - b->bth_off &&
	       a->payload_len == b->payload_len &&
	       memcmp((const uint8_t *)a->payload - (a->payload_off - a->bth_off) + UR_BTH_BYTES,
		      (const uint8_t *)b->payload - (b->payload_off - b->bth_off) + UR_BTH_BYTES,
		      (size_t)(a->payload_off - a->bth_off - UR_BTH_BYTES + a->payload_len)) == 0;
}

/* Without loss, nothing may be sent twice or left out. */
static void in_order(struct replay *r, uint32_t at, uint32_t psns)
{
	SIM_CHECK(r->s, !r->exact || at == r->sent, "PSN %u is sent, %u is next", at, r->sent);
	if (at + psns > r->sent)
		r->sent = at + psns;
}

/*
 * Answers an AckReq of ours that the captured requester did not set: after a loss we send less
 * ahead. The captured responder would answer, so an ACK of the capture is changed to acknowledge
 * what it had received by then.
 */
static void answer(struct replay *r, const struct ur_packet *p, uint32_t at)
{
	uint8_t *frame;
	struct ur_packet ack;
	uint32_t msn = 0;

	/* If the scenario lists single requests, the responder may be not ready, or dead. */
	if (r->exact || r->want.cnt || !p->bth.ackreq || at >= r->seen || !r->ack ||
	    !(p->op & (UR_OP_SEND | UR_OP_WRITE)))
		return;
	while (msn < r->msg_cnt && r->msgs[msn].psn + r->msgs[msn].psns <= at + 1)
		msn++;
	frame = malloc(r->ack->len);
	cr_assert(frame && decode(r->ack, &ack));
	memcpy(frame, r->ack->b, r->ack->len);
	ur_store24(frame + ack.bth_off + 5, r->qp.qpn.v);
	ur_store24(frame + ack.bth_off + 9, p->bth.psn.v);
	frame[ack.bth_off + UR_BTH_BYTES] = 0x1f;
	ur_store24(frame + ack.bth_off + UR_BTH_BYTES + 1, msn);
	sim_reseal(frame, &ack);
	sim_inject_at(&r->s->ep[0], r->s->now_ns + SIM_US(5), frame, (uint32_t)r->ack->len);
	free(frame);
}

/* Every packet that we send must also have been sent by the captured requester. It is then dropped. */
static enum sim_verdict on_request(struct sim *s, struct sim_ep *from, uint8_t *frame, uint32_t len,
				   const struct ur_packet *p)
{
	struct replay *r = s->hook_arg;
	uint32_t at = offset(r, p->bth.psn);
	struct ur_packet g;

	(void)from, (void)frame, (void)len;
	SIM_CHECK(s, p->op & UR_OP_REQUEST, "opcode %x is no request", p->bth.opcode);
	SIM_CHECK(s, at < r->psn_cnt, "PSN %x was never sent by the other stack", p->bth.psn.v);
	SIM_CHECK(s,
		  (r->request[at] && decode(r->request[at], &g) && same(p, &g)) ||
			  is_part(r, p, at),
		  "the request with PSN %x differs", p->bth.psn.v);
	in_order(r, at, psns_of(p));
	answer(r, p, at);
	return SIM_DROP;
}

/* The data of a READ or atomic must be in some captured answer for each of its PSNs. */
static void check_brought(struct replay *r, const struct message *m)
{
	for (uint32_t i = 0; i < m->psns && m->len; i++) {
		uint32_t n = m->len - i * MTU < MTU ? m->len - i * MTU : MTU;
		const uint8_t *mine = r->mr.p + m->at + i * MTU;
		bool found = false;

		for (size_t k = 0; k < r->file->cnt && !found; k++) {
			struct ur_packet p;
			uint64_t atomic;

			if (!of_replay(r, k, &p) || to_b(&p) || offset(r, p.bth.psn) != m->psn + i)
				continue;
			memcpy(&atomic, mine, 8);
			if (p.op & UR_OP_ATOMICACKETH)
				found = atomic == p.atomic_ack;
			else if (p.op & UR_OP_READ_RESP)
				found = p.payload_len == n && memcmp(p.payload, mine, n) == 0;
		}
		SIM_CHECK(r->s, found, "the READ or atomic at PSN %u brought other bytes",
			  m->psn + i);
	}
}

static void check_completions(struct replay *r)
{
	struct ibv_wc wc;

	while (ur_cq_poll(&r->cq.cq, 1, &wc)) {
		const struct message *m = &r->msgs[r->done];
		enum ibv_wc_status want = wanted(r, r->done);
		bool brings = m->first.op & (UR_OP_READ_REQ | UR_OP_ATOMIC);

		SIM_CHECK(r->s, wc.wr_id == r->done && r->done < r->posted,
			  "request %u completes, %u is next of %u", (unsigned)wc.wr_id, r->done,
			  r->posted);
		SIM_CHECK(r->s, wc.status == want, "request %u has status %d, %d there", r->done,
			  wc.status, want);
		if (brings && want == IBV_WC_SUCCESS) {
			SIM_CHECK(r->s, wc.byte_len == m->len, "request %u brings %u bytes",
				  r->done, wc.byte_len);
			check_brought(r, m);
		}
		r->failed |= wc.status != IBV_WC_SUCCESS;
		r->done++;
	}
}

/* ---- a QP of a file ---- */

static bool wants(const struct replay *r, enum ibv_wc_status status)
{
	for (unsigned i = 0; i < r->want.cnt; i++)
		if (r->want.status[i] == status)
			return true;
	return false;
}

static void set_up(struct replay *r)
{
	struct sim_attr attr = sim_defaults(r->file->name, r->qpn);
	struct sim_qp_attr qa = sim_qp_defaults(&r->cq, &r->cq);

	attr.link.bits_per_s = 0;
	r->s = sim_new(&attr);
	for (unsigned i = 0; i < 2; i++) /* the addresses of the captures */
		r->s->ep[i].gid6 = (struct ur_gid){
			{0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = (uint8_t)(0x0a + i)}};
	sim_cq_init(&r->cq, 256);
	sim_mr_init(&r->mr, &r->s->ep[0], BYTES_MAX, IBV_ACCESS_LOCAL_WRITE);
	qa.mode = r->mode;
	qa.cap.max_send_wr = WRS_MAX;
	qa.rd_atomic = 16;
	qa.psn = r->first.v;
	qa.v6 = r->msgs[0].first.ip.v6;
	if (wants(r, IBV_WC_RNR_RETRY_EXC_ERR))
		qa.rnr_retry = 2; /* scenarios.txt */
	if (wants(r, IBV_WC_RETRY_EXC_ERR)) {
		qa.retry_cnt = 3;
		qa.timeout = 12;
	}
	sim_qp_create(&r->qp, &r->s->ep[0], &qa);
	r->peer = (struct sim_qp){.ep = &r->s->ep[1], .attr = qa, .qpn = ur_qpn(r->qpn)};
	sim_qp_to_init(&r->qp);
	sim_qp_to_rtr(&r->qp, &r->peer);
	sim_qp_to_rts(&r->qp);
	r->s->hook = on_request;
	r->s->hook_arg = r;
}

static void feed(struct replay *r, const struct golden_packet *g, const struct ur_packet *p)
{
	uint8_t *frame = malloc(g->len);

	cr_assert(frame);
	memcpy(frame, g->b, g->len);
	ur_store24(frame + p->bth_off + 5, r->qp.qpn.v);
	sim_reseal(frame, p);
	sim_inject(&r->s->ep[0], frame, (uint32_t)g->len);
	free(frame);
}

/* Updates what the captured responder had received in order when the packet arrived. */
static void see(struct replay *r, const struct ur_packet *p)
{
	uint32_t at = offset(r, p->bth.psn);

	if (at <= r->seen && at + psns_of(p) > r->seen)
		r->seen = at + psns_of(p);
}

/* If we send a request later than the captured requester, its answer waits for it. */
static void await_request(struct replay *r, const struct ur_packet *p)
{
	for (unsigned i = 0; i < 2000 && !r->exact && !r->want.cnt; i++) {
		if (offset(r, p->bth.psn) < r->sent)
			return;
		sim_sleep(r->s, SIM_US(100));
		check_completions(r);
	}
}

static void find_ack(struct replay *r)
{
	for (size_t i = 0; i < r->file->cnt && !r->ack; i++) {
		struct ur_packet p;

		if (of_replay(r, i, &p) && !to_b(&p) && p.bth.opcode == UR_RC_ACKNOWLEDGE)
			r->ack = &r->file->packets[i];
	}
}

/* Time passes as in the capture, because retries depend on it. */
static void run_file(struct replay *r)
{
	uint64_t start_ns = 0, began_ns = r->s->now_ns;

	find_ack(r);
	for (size_t i = 0; i < r->file->cnt; i++) {
		const struct golden_packet *g = &r->file->packets[i];
		uint64_t due_ns;
		struct ur_packet p;

		if (!of_replay(r, i, &p))
			continue;
		if (!start_ns)
			start_ns = g->time_ns;
		due_ns = began_ns + (g->time_ns - start_ns);
		if (due_ns > r->s->now_ns)
			sim_sleep(r->s, due_ns - r->s->now_ns);
		while (r->posted < r->msg_cnt && r->msgs[r->posted].shown <= i)
			post(r);
		if (to_b(&p)) {
			see(r, &p);
		} else {
			await_request(r, &p);
			feed(r, g, &p);
		}
		sim_sleep(r->s, 1);
		check_completions(r);
	}
	if (wants(r, IBV_WC_RETRY_EXC_ERR))
		sim_sleep(r->s, SIM_MS(2000)); /* the peer is dead */
	check_completions(r);
}

static void check_end(struct replay *r)
{
	SIM_CHECK(r->s, r->done == r->msg_cnt, "%u of %u requests completed", r->done, r->msg_cnt);
	SIM_CHECK(r->s, r->qp.qp->state == (r->failed ? IBV_QPS_ERR : IBV_QPS_RTS),
		  "the QP is in state %u", r->qp.qp->state);
	SIM_CHECK(r->s, r->sent == r->psn_cnt, "%u PSNs, the other stack sent %u", r->sent,
		  r->psn_cnt);
}

static bool replay_qp(const struct golden_file *file, uint32_t qpn, enum ur_mode mode, bool exact)
{
	struct replay *r = calloc(1, sizeof(*r));
	bool found;

	cr_assert(r);
	*r = (struct replay){.file = file, .qpn = qpn, .mode = mode, .exact = exact};
	found = study(r);
	if (found) {
		find_messages(r);
		read_scenario(r);
		set_up(r);
		run_file(r);
		check_end(r);
		sim_qp_destroy(&r->qp);
		sim_mr_free(&r->mr);
		sim_cq_free(&r->cq);
		sim_free(r->s);
	}
	free(r->request);
	free(r);
	return found;
}

static void replay_file(const char *name, enum ur_mode mode, bool exact)
{
	struct golden_file file = golden_load(name);
	uint32_t seen[16], seen_cnt = 0;

	for (size_t i = 0; i < file.cnt; i++) {
		struct ur_packet p;
		bool old = false;

		if (!decode(&file.packets[i], &p) || !to_b(&p))
			continue;
		for (unsigned k = 0; k < seen_cnt; k++)
			old |= seen[k] == p.bth.dqpn.v;
		if (old)
			continue;
		cr_assert_lt(seen_cnt, 16);
		seen[seen_cnt++] = p.bth.dqpn.v;
		cr_assert(replay_qp(&file, p.bth.dqpn.v, mode, exact));
	}
	cr_assert_gt(seen_cnt, 0);
	golden_free(&file);
}

/* The two modes that other implementations support. */
#define REPLAY(suite, name, exact)                                                                 \
	Test(suite, name##_in_gbn)                                                                 \
	{                                                                                          \
		replay_file(#name "_mtu1024.pcap", UR_MODE_GBN, exact);                            \
	}                                                                                          \
	Test(suite, name##_in_reorder)                                                             \
	{                                                                                          \
		replay_file(#name "_mtu1024.pcap", UR_MODE_REORDER, exact);                        \
	}
#define EXACT(name)   REPLAY(golden_requests, name, true)
#define MEANING(name) REPLAY(golden_requests_again, name, false)

/* Nothing was lost: the same requests in the same order. */
EXACT(rc_send_sizes_v4)
EXACT(rc_send_sizes_v6ll)
EXACT(rc_send_imm_v4)
EXACT(rc_send_inv_v4)
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
EXACT(rc_err_rkey_v4)
EXACT(rc_err_inv_req_v4)

/* Requests are repeated, by each stack at its own times. */
MEANING(rc_rnr_v4)
MEANING(rc_dead_peer_v4)
MEANING(rc_loss5_v4)

/*
 * In gbn, READ responses that overtake others are dropped and requested again, but the capture has
 * them only once.
 */
Test(golden_requests_again, rc_reorder_v4_in_reorder)
{
	replay_file("rc_reorder_v4_mtu1024.pcap", UR_MODE_REORDER, false);
}
MEANING(rc_duplicate_v4)
MEANING(rc_corrupt_v4)
