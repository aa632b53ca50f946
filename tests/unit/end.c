/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <sanitizer/asan_interface.h>

#include "end.h"
#include "loss_memory.h"

#define LOSS_SLABS 6
#define MAX_SGE	   4
#define MAX_INLINE 64
#define MAX_MR	   8

/*
 * Memory of ends that are gone. A test makes thousands of ends, and AddressSanitizer maps a block of this size anew each time,
 * which takes most of the test's time. What is kept is poisoned meanwhile.
 */
static struct end_memory spare[16];

static struct end_memory *find_spare(size_t bytes)
{
	for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]); i++)
		if (spare[i].bytes == bytes)
			return &spare[i];
	return NULL;
}

void *end_take(struct end *e, size_t bytes)
{
	size_t rounded = (bytes + 64) & ~(size_t)63; /* never 0, which is no memory */
	struct end_memory *s = find_spare(rounded), m = {NULL, rounded};

	if (s) {
		m = *s;
		*s = (struct end_memory){0};
		ASAN_UNPOISON_MEMORY_REGION(m.p, m.bytes);
	} else {
		m.p = aligned_alloc(64, rounded);
	}
	cr_assert_not_null(m.p);
	cr_assert_lt(e->memory_cnt, sizeof(e->memory) / sizeof(e->memory[0]));
	e->memory[e->memory_cnt++] = m;
	ASAN_POISON_MEMORY_REGION((uint8_t *)m.p + bytes, rounded - bytes);
	return memset(m.p, 0, bytes);
}

static void give_back(struct end_memory m)
{
	struct end_memory *s = find_spare(0);

	if (s) {
		*s = m;
		ASAN_POISON_MEMORY_REGION(m.p, m.bytes);
	} else {
		ASAN_UNPOISON_MEMORY_REGION(m.p, m.bytes);
		free(m.p);
	}
}

static void on_completion(void *ctx, struct ur_cq *cq)
{
	struct end *e = ctx;

	cr_assert_eq(cq, &e->cq);
	e->notified++;
}

static void on_async(void *ctx, enum ibv_event_type type, void *user)
{
	struct end *e = ctx;

	(void)user;
	cr_assert_lt(e->async_cnt, END_ASYNC_MAX);
	e->async[e->async_cnt++].event_type = type;
}

static void on_cross_worker(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	(void)ctx, (void)cq, (void)wc, (void)solicited;
	cr_assert(false, "a completion for another worker");
}

static void on_cm(void *ctx, const struct ur_cm_event *ev)
{
	(void)ctx, (void)ev;
}

static struct ur_path_attr path(const struct end_attr *attr)
{
	struct ur_path_attr a = {.src = ur_gid_from_ipv4(0x0a000002),
				 .dst = ur_gid_from_ipv4(0x0a000001),
				 .has_vlan = attr->vlan,
				 .vlan_tci = 5,
				 .sport = END_SPORT};

	if (attr->v6) {
		a.src = (struct ur_gid){{0xfd, [15] = 2}};
		a.dst = (struct ur_gid){{0xfd, [15] = 1}};
	}
	memcpy(a.smac, (uint8_t[]){2, 0, 0, 0, 0, 0x0b}, 6);
	memcpy(a.dmac, (uint8_t[]){2, 0, 0, 0, 0, 0x0a}, 6);
	return a;
}

int end_modify(struct end *e, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	struct ur_path_attr to = path(&e->attr);
	int rc;

	attr.qp_state = state;
	rc = ur_engine_modify_qp(e->engine, e->qp, &attr, mask | IBV_QP_STATE,
				 mask & IBV_QP_AV ? &to : NULL, e->now_ns);
	ur_qp_validate(e->qp);
	return rc;
}

#define RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void connect_qp(struct end *e)
{
	static const int init[] = {
		[IBV_QPT_RC] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPT_UC] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPT_UD] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	};
	static const int rtr[] = {
		[IBV_QPT_RC] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPT_UC] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		[IBV_QPT_UD] = 0,
	};
	static const int rts[] = {
		[IBV_QPT_RC] = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
		[IBV_QPT_UC] = IBV_QP_SQ_PSN,
		[IBV_QPT_UD] = IBV_QP_SQ_PSN,
	};
	const struct end_attr *a = &e->attr;
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qkey = END_QKEY,
		.qp_access_flags = (unsigned)(RIGHTS & ~a->no_access),
		.path_mtu = a->mtu ? a->mtu : IBV_MTU_256,
		.dest_qp_num = END_PEER_QPN,
		.rq_psn = a->rq_psn ? a->rq_psn : END_RQ_PSN,
		.sq_psn = a->sq_psn ? a->sq_psn : END_SQ_PSN,
		.max_dest_rd_atomic = a->dest_rd_atomic ? a->dest_rd_atomic : 2,
		.max_rd_atomic = a->no_rd	? 0
				 : a->rd_atomic ? a->rd_atomic
						: 2,
		.min_rnr_timer = 12, /* 0.64 ms */
		.timeout = a->no_timeout ? 0
			   : a->timeout	 ? a->timeout
					 : 10,
		.retry_cnt = a->retry_cnt ? a->retry_cnt : 3,
		.rnr_retry = 2,
	};

	if (a->mode)
		cr_assert_eq(ur_qp_set_mode(e->qp, a->mode, a->strict), 0);
	if (a->paths)
		cr_assert_eq(ur_qp_set_paths(e->qp, a->paths), 0);
	if (a->mode)
		cr_assert_eq(ur_qp_set_agreed(e->qp, &a->agreed), 0);
	cr_assert_eq(end_modify(e, IBV_QPS_INIT, attr, init[e->qp->ops->type]), 0);
	cr_assert_eq(end_modify(e, IBV_QPS_RTR, attr, rtr[e->qp->ops->type]), 0);
	if (!a->rtr)
		cr_assert_eq(end_modify(e, IBV_QPS_RTS, attr, rts[e->qp->ops->type]), 0);
}

static void create_qp(struct end *e)
{
	struct ur_qp_create c = {
		.type = e->attr.type ? e->attr.type : IBV_QPT_RC,
		.pd = END_PD,
		.send_cq = &e->cq,
		.recv_cq = &e->cq,
		.srq = e->attr.srq,
		.cap = {.max_send_wr = e->attr.send_wr ? e->attr.send_wr : 16,
			.max_recv_wr = e->attr.recv_wr ? e->attr.recv_wr : 16,
			.max_send_sge = MAX_SGE,
			.max_recv_sge = MAX_SGE,
			.max_inline_data = MAX_INLINE},
		.max_dest_rd_atomic = 4,
		.user = e,
	};

	c.rings = end_take(e, ur_qp_rings_bytes(&c));
	cr_assert_eq(ur_engine_create_qp(e->engine, &c, e->now_ns, &e->qp), 0);
}

struct ur_qp *end_add_qp(struct end *e)
{
	struct ur_qp *first = e->qp, *added;

	create_qp(e);
	connect_qp(e);
	added = e->qp;
	e->qp = first;
	return added;
}

struct end *end_new(struct end_attr attr)
{
	struct end *e = calloc(1, sizeof(*e));
	uint32_t contexts = attr.no_contexts ? 0 : attr.contexts ? attr.contexts : 1;
	struct ur_engine_attr ea = {
		.limits = {.max_qp = 4,
			   .attachments = 2,
			   .workers = 2,
			   .worker = !attr.cm,
			   .cm = {.max_ids = 4, .max_listeners = 1, .max_pending = 2, .max_tx = 20},
			   .reorder_slots = attr.reorder_slots ? attr.reorder_slots : 64,
			   .reorder_slot_bytes = 4096,
			   .reorder_contexts = contexts,
			   .read_gaps = contexts,
			   .loss_slabs = attr.no_contexts ? 0 : LOSS_SLABS,
			   .loss_slabs_max = LOSS_SLABS,
			   .loss_slab_bytes = attr.large_slabs
						      ? ur_engine_loss_slab_bytes(attr.window)
						      : LOSS_SLAB,
			   .loss_first = loss_first(),
			   .spray_contexts = attr.no_contexts ? 0 : 1,
			   .destinations = attr.pacing ? 2 : 0,
			   .admission = attr.admission ? 2 : 0,
			   .max_sge = MAX_SGE},
		.cm = {.ca_guid = 1, .seed = 2, .timewait_ns = 1000, .sink = on_cm},
		.random = 42,
		.time_wait_ns = 1000,
		.window = attr.window ? attr.window : 64,
		.ackreq_every = attr.ackreq_every ? attr.ackreq_every : UINT32_MAX,
		.mtu_shift = 12,
		.no_prediction = attr.no_prediction,
		.keeps_ports = attr.keeps_ports,
		.no_plb = attr.no_plb,
		.pacing = attr.pacing,
		.admission = attr.admission,
	};
	uint32_t cqe = attr.cqe ? attr.cqe : END_CQE;

	cr_assert_not_null(e);
	e->attr = attr;
	e->now_ns = 1000000;
	e->mem = ur_mem_init(end_take(e, ur_mem_size(MAX_MR)), MAX_MR);
	e->buf = end_take(e, END_BUF_BYTES);
	cr_assert_eq(ur_mem_register(e->mem, END_PD, e->buf, END_BUF_BYTES, (uintptr_t)e->buf,
				     RIGHTS | IBV_ACCESS_LOCAL_WRITE, 0x123456789abcdef0, &e->key),
		     0);
	cr_assert_eq(ur_mem_register(e->mem, END_PD, e->buf + 1, END_BUF_BYTES - 1, 0,
				     RIGHTS | IBV_ACCESS_LOCAL_WRITE | UR_ACCESS_REMOTE_INVALIDATE,
				     0xfedcba9876543210, &e->unaligned_key),
		     0);
	ea.mem = e->mem;
	ea.sink = (struct ur_sink){e, on_completion, on_async, on_cross_worker};
	e->engine = ur_engine_init(end_take(e, ur_engine_size(&ea.limits)), &ea, e->now_ns);
	ur_cq_init(&e->cq, end_take(e, ur_cq_ring_bytes(cqe)), cqe, !attr.cm, e);
	create_qp(e);
	connect_qp(e);
	return e;
}

void end_free(struct end *e)
{
	while (e->memory_cnt)
		give_back(e->memory[--e->memory_cnt]);
	free(e);
}

/* ---- as the peer ---- */

struct ur_packet end_packet(struct end *e, uint8_t opcode, uint32_t psn, uint16_t payload_len)
{
	static uint8_t payload[4096 + 4];
	struct ur_packet p;

	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(psn + i);
	p = frame_packet(opcode, false, payload, payload_len);
	p.bth.dqpn = e->qp->qpn;
	p.bth.psn = ur_psn(psn);
	p.reth = (struct ur_reth){(uintptr_t)e->buf, e->key, payload_len};
	p.atomiceth.va = (uintptr_t)e->buf;
	p.atomiceth.rkey = e->key;
	p.aeth = (struct ur_aeth){0x1f, 0};
	return p;
}

enum ur_drop end_in(struct end *e, struct ur_packet p)
{
	struct ur_packet got;
	enum ur_drop drop;

	frame_make(&e->in_frame, &p);
	cr_assert_eq(ur_packet_decode(e->in_frame.b, e->in_frame.len, &got), UR_DROP_NONE);
	if (!ur_engine_input_predicted(e->engine, e->in_frame.b, e->in_frame.len, e->now_ns, &drop))
		drop = ur_engine_input(e->engine, &got, e->now_ns);
	ur_qp_validate(e->qp);
	return drop;
}

enum ur_drop end_recv(struct end *e, uint8_t opcode, uint32_t psn, uint16_t payload_len)
{
	return end_in(e, end_packet(e, opcode, psn, payload_len));
}

enum ur_drop end_ack(struct end *e, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct ur_packet p = end_packet(e, UR_RC_ACKNOWLEDGE, psn, 0);

	p.aeth = (struct ur_aeth){syndrome, msn};
	return end_in(e, p);
}

const struct ur_packet *end_out(struct end *e)
{
	struct ur_tx tx = {.hdr = e->out_frame.b};

	if (!ur_engine_output(e->engine, &tx, 1, e->now_ns))
		return NULL;
	ur_qp_validate(e->qp);
	cr_assert_leq(tx.hdr_len, UR_HDR_MAX);
	e->out_frame.len = ur_tx_write(&tx, e->out_frame.b);
	cr_assert_eq(e->out_frame.len, ur_tx_bytes(&tx));
	cr_assert_eq(ur_packet_decode(e->out_frame.b, e->out_frame.len, &e->out), UR_DROP_NONE);
	if (e->qp->ops->type != IBV_QPT_UD)
		cr_assert_eq(e->out.bth.dqpn.v, END_PEER_QPN);
	return &e->out;
}

const struct ur_packet *end_expect(struct end *e, uint8_t opcode, uint32_t psn)
{
	const struct ur_packet *p = end_out(e);

	cr_assert_not_null(p, "silence instead of %s", ur_opcodes[opcode].name);
	cr_assert_eq(p->bth.opcode, opcode, "%s instead of %s", ur_opcodes[p->bth.opcode].name,
		     ur_opcodes[opcode].name);
	cr_assert_eq(p->bth.psn.v, psn, "PSN %u instead of %u", p->bth.psn.v, psn);
	return p;
}

void end_expect_ack(struct end *e, uint32_t psn)
{
	const struct ur_packet *p = end_expect(e, UR_RC_ACKNOWLEDGE, psn);

	cr_assert_eq(p->aeth.syndrome & UR_SYNDROME_KIND_MASK, UR_SYNDROME_ACK);
}

void end_expect_nak(struct end *e, uint32_t psn, uint8_t syndrome)
{
	const struct ur_packet *p = end_expect(e, UR_RC_ACKNOWLEDGE, psn);

	cr_assert_eq(p->aeth.syndrome, syndrome, "syndrome %#x instead of %#x", p->aeth.syndrome,
		     syndrome);
}

void end_expect_silence(struct end *e)
{
	const struct ur_packet *p = end_out(e);

	cr_assert_null(p, "%s instead of silence", p ? ur_opcodes[p->bth.opcode].name : "");
}

unsigned end_drain(struct end *e)
{
	unsigned n = 0;

	while (end_out(e))
		n++;
	return n;
}

/* ---- as the application ---- */

void end_post_recv(struct end *e, uint64_t id, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + off, len, e->key};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	cr_assert_eq(ur_rq_post(e->attr.srq ? &e->attr.srq->rq : &e->qp->rq, &wr), 0);
	if (e->qp->state == IBV_QPS_ERR)
		ur_engine_doorbell(e->engine, e->qp, e->now_ns);
}

struct ibv_send_wr end_wr(struct end *e, uint64_t id, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};

	(void)e;
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x7000;
		wr.wr.atomic.rkey = 0x8000;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 6;
	} else {
		wr.wr.rdma.remote_addr = 0x7000;
		wr.wr.rdma.rkey = 0x8000;
	}
	return wr;
}

int end_post(struct end *e, struct ibv_send_wr wr, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->buf + off, len, e->key};
	int rc;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	rc = ur_sq_post(&e->qp->sq, e->qp->posted_state, &wr, false);
	if (!rc)
		ur_engine_doorbell(e->engine, e->qp, e->now_ns);
	ur_qp_validate(e->qp);
	return rc;
}

void end_send(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	cr_assert_eq(end_post(e, end_wr(e, id, opcode), 0, len), 0);
}

struct ibv_wc end_expect_wc(struct end *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	cr_assert_eq(ur_cq_poll(&e->cq, 1, &wc), 1, "no completion, not %u", (unsigned)id);
	cr_assert_eq(wc.wr_id, id, "completion of %u, not of %u", (unsigned)wc.wr_id, (unsigned)id);
	cr_assert_eq(wc.status, status, "status %d, not %d", wc.status, status);
	cr_assert_eq(wc.qp_num, e->qp->qpn.v);
	return wc;
}

void end_expect_no_wc(struct end *e)
{
	cr_assert_eq(ur_cq_pending(&e->cq), 0);
}

unsigned end_async(const struct end *e, enum ibv_event_type type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->async_cnt; i++)
		n += e->async[i].event_type == type;
	return n;
}

void end_sleep(struct end *e, uint64_t ns)
{
	e->now_ns += ns;
	ur_engine_expire(e->engine, e->now_ns);
	ur_qp_validate(e->qp);
}

const struct ur_counters *end_counters(struct end *e)
{
	return &ur_engine_core(e->engine)->cnt;
}
