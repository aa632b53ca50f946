/* SPDX-License-Identifier: BSD-3-Clause */
#include "objects.h"

#include <string.h>

#include "memory.h"

#define GUARD_BYTES 64
#define GUARD_BYTE  0xa5

static void *aligned(size_t bytes)
{
	return memset(sim_memory_take(bytes), 0xdd, bytes);
}

/* ---- memory regions ---- */

void sim_mr_init_pd(struct sim_mr *mr, struct sim_ep *ep, size_t len, int access, uint32_t pd,
		    uint64_t iova)
{
	int err;

	mr->ep = ep;
	mr->len = len;
	mr->alloc = aligned(len + 2 * GUARD_BYTES);
	mr->p = mr->alloc + GUARD_BYTES;
	memset(mr->alloc, GUARD_BYTE, GUARD_BYTES);
	memset(mr->p, 0, len);
	memset(mr->p + len, GUARD_BYTE, GUARD_BYTES);
	err = ur_mem_register(ep->mem, pd, mr->p, len, iova ? iova : (uintptr_t)mr->p,
			      (uint32_t)access, sim_rand(&ep->sim->rng), &mr->key);
	SIM_CHECK(ep->sim, err == 0, "cannot register: %d", err);
}

void sim_mr_init(struct sim_mr *mr, struct sim_ep *ep, size_t len, int access)
{
	sim_mr_init_pd(mr, ep, len, access, SIM_PD, 0);
}

void sim_mr_check_guards(struct sim *s, const struct sim_mr *mr)
{
	for (unsigned i = 0; i < GUARD_BYTES; i++)
		SIM_CHECK(s, mr->alloc[i] == GUARD_BYTE && mr->p[mr->len + i] == GUARD_BYTE,
			  "a write outside a region of %zu bytes", mr->len);
}

bool sim_mr_valid(const struct sim_mr *mr)
{
	return atomic_load(&mr->ep->mem->mrs[ur_mem_slot(mr->ep->mem, mr->key)].key) == mr->key;
}

void sim_mr_free(struct sim_mr *mr)
{
	if (!mr->alloc)
		return;
	sim_mr_check_guards(mr->ep->sim, mr);
	SIM_CHECK(mr->ep->sim,
		  ur_mem_suspend(mr->ep->mem, mr->key) == 0 &&
			  ur_mem_release(mr->ep->mem, mr->key) == 0,
		  "cannot deregister");
	sim_memory_give(mr->alloc);
	mr->alloc = NULL;
}

/* ---- queues ---- */

void sim_cq_init(struct sim_cq *cq, uint32_t cqe)
{
	cq->notified = 0;
	cq->ring = aligned(ur_cq_ring_bytes(cqe));
	ur_cq_init(&cq->cq, cq->ring, cqe, 0, cq);
}

void sim_cq_free(struct sim_cq *cq)
{
	sim_memory_give(cq->ring);
}

void sim_srq_init(struct sim_srq *srq, uint32_t entries, uint32_t max_sge)
{
	srq->ring = aligned(ur_rq_ring_bytes(entries, max_sge));
	ur_srq_init(&srq->srq, srq->ring, entries, max_sge, SIM_PD, srq);
}

void sim_srq_free(struct sim_srq *srq)
{
	sim_memory_give(srq->ring);
}

/* ---- queue pairs ---- */

struct sim_qp_attr sim_qp_defaults(struct sim_cq *send_cq, struct sim_cq *recv_cq)
{
	return (struct sim_qp_attr){
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.mtu = IBV_MTU_1024,
		.psn = 0x123456,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.rd_atomic = 4,
		.dest_rd_atomic = 4,
		.access = SIM_ACCESS_ALL,
		.qkey = 0x11223344,
	};
}

void sim_qp_create(struct sim_qp *qp, struct sim_ep *ep, const struct sim_qp_attr *attr)
{
	struct ur_qp_create c = {
		.type = attr->type,
		.pd = SIM_PD,
		.send_cq = &attr->send_cq->cq,
		.recv_cq = &attr->recv_cq->cq,
		.srq = attr->srq ? &attr->srq->srq : NULL,
		.cap = attr->cap,
		.sig_all = attr->sig_all,
		.max_dest_rd_atomic = attr->dest_rd_atomic,
		.random = sim_mix(ep->idx + 16 * ep->sim->now_ns),
		.user = qp,
	};
	int err;

	*qp = (struct sim_qp){.ep = ep, .attr = *attr};
	qp->rings = c.rings = aligned(ur_qp_rings_bytes(&c));
	err = ur_engine_create_qp(ep->engine, &c, ep->sim->now_ns, &qp->qp);
	SIM_CHECK(ep->sim, err == 0, "cannot create a QP: %d", err);
	qp->qpn = qp->qp->qpn;
}

struct ur_path_attr sim_path_attr(const struct sim_qp *from, const struct sim_ep *to,
				  struct ur_qpn dqpn)
{
	struct ur_path_attr path = {
		.has_vlan = from->attr.vlan,
		.vlan_tci = 0x6005,
		.src = from->attr.v6 ? from->ep->gid6 : from->ep->gid4,
		.dst = from->attr.v6 ? to->gid6 : to->gid4,
		.tos = 0x6a, /* DSCP 26, ECT(0) */
		.sport = ur_path_sport(0, from->qpn, dqpn),
	};

	memcpy(path.smac, from->ep->mac, 6);
	memcpy(path.dmac, to->mac, 6);
	return path;
}

void sim_ah_init(struct ur_ah *ah, const struct sim_qp *from, const struct sim_ep *to,
		 struct ur_qpn dqpn)
{
	struct ur_path_attr path = sim_path_attr(from, to, dqpn);

	*ah = (struct ur_ah){.pd = SIM_PD};
	ur_path_init(&ah->path, &path);
}

int sim_qp_modify(struct sim_qp *qp, enum ibv_qp_state state, int extra_mask,
		  struct ibv_qp_attr *attr)
{
	struct ibv_qp_attr local = {0};
	int err;

	if (!attr)
		attr = &local;
	attr->qp_state = state;
	err = ur_engine_modify_qp(qp->ep->engine, qp->qp, attr, IBV_QP_STATE | extra_mask, NULL,
				  qp->ep->sim->now_ns);
	sim_kick(qp->ep);
	return err;
}

void sim_qp_to_init(struct sim_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = 1,
		.qp_access_flags = (unsigned)qp->attr.access,
		.qkey = qp->attr.qkey,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	int err;

	mask |= qp->attr.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (qp->attr.type == IBV_QPT_UC)
		attr.qp_access_flags &=
			~(unsigned)(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	err = ur_engine_modify_qp(qp->ep->engine, qp->qp, &attr, mask, NULL, qp->ep->sim->now_ns);
	SIM_CHECK(qp->ep->sim, err == 0, "RESET to INIT: %d", err);
}

static void watch(const struct sim_qp *qp, const struct sim_qp *peer)
{
	struct sim_wire_end end = {
		.ep = qp->ep->idx,
		.peer_ep = peer->ep->idx,
		.qpn = qp->qpn,
		.peer_qpn = peer->qpn,
		.type = qp->attr.type,
		.mode = qp->attr.mode,
		.first = ur_psn(peer->attr.psn),
		.mtu_shift = 7 + (unsigned)qp->attr.mtu,
	};

	if (qp->ep->sim->wire)
		sim_wire_connect(qp->ep->sim->wire, &end);
}

void sim_qp_to_rtr(struct sim_qp *qp, const struct sim_qp *peer)
{
	struct sim *s = qp->ep->sim;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = qp->attr.mtu,
		.max_dest_rd_atomic = qp->attr.dest_rd_atomic,
		.min_rnr_timer = qp->attr.min_rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .sl = qp->attr.sl},
	};
	struct ur_path_attr path;
	int mask = IBV_QP_STATE, err;

	if (qp->attr.type == IBV_QPT_RC)
		SIM_CHECK(s, ur_qp_set_mode(qp->qp, qp->attr.mode, qp->attr.strict) == 0,
			  "mode %d is refused", qp->attr.mode);
	if (qp->attr.paths)
		SIM_CHECK(s, ur_qp_set_paths(qp->qp, qp->attr.paths) == 0, "%u paths are refused",
			  qp->attr.paths);
	if (qp->attr.type == IBV_QPT_RC)
		SIM_CHECK(s, ur_qp_set_agreed(qp->qp, &qp->attr.agreed) == 0, "agreed on nonsense");
	if (qp->attr.type == IBV_QPT_UD) {
		err = ur_engine_modify_qp(qp->ep->engine, qp->qp, &attr, mask, NULL, s->now_ns);
		SIM_CHECK(s, err == 0, "INIT to RTR: %d", err);
		return;
	}
	attr.dest_qp_num = peer->qpn.v;
	attr.rq_psn = peer->attr.psn;
	watch(qp, peer);
	path = sim_path_attr(qp, peer->ep, peer->qpn);
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->attr.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	err = ur_engine_modify_qp(qp->ep->engine, qp->qp, &attr, mask, &path, s->now_ns);
	SIM_CHECK(s, err == 0, "INIT to RTR: %d", err);
}

void sim_qp_to_rts(struct sim_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = qp->attr.psn,
		.timeout = qp->attr.timeout,
		.retry_cnt = qp->attr.retry_cnt,
		.rnr_retry = qp->attr.rnr_retry,
		.max_rd_atomic = qp->attr.rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, err;

	if (qp->attr.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	err = ur_engine_modify_qp(qp->ep->engine, qp->qp, &attr, mask, NULL, qp->ep->sim->now_ns);
	SIM_CHECK(qp->ep->sim, err == 0, "RTR to RTS: %d", err);
}

void sim_qp_connect(struct sim_qp *a, struct sim_qp *b)
{
	a->peer = b;
	b->peer = a;
	sim_qp_to_init(a);
	sim_qp_to_init(b);
	sim_qp_to_rtr(a, b);
	sim_qp_to_rtr(b, a);
	sim_qp_to_rts(a);
	sim_qp_to_rts(b);
}

void sim_qp_pair(struct sim_qp *a, struct sim_ep *ep_a, const struct sim_qp_attr *attr_a,
		 struct sim_qp *b, struct sim_ep *ep_b, const struct sim_qp_attr *attr_b)
{
	sim_qp_create(a, ep_a, attr_a);
	sim_qp_create(b, ep_b, attr_b);
	sim_qp_connect(a, b);
}

void sim_qp_destroy(struct sim_qp *qp)
{
	if (!qp->qp)
		return;
	ur_engine_destroy_qp(qp->ep->engine, qp->qp, qp->ep->sim->now_ns);
	qp->qp = NULL;
	sim_kick(qp->ep);
	sim_memory_give(qp->rings);
}

/* ---- posting and polling ---- */

int sim_post_send(struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	enum ibv_qp_state state = (enum ibv_qp_state)atomic_load(&qp->qp->posted_state);
	int err = ur_sq_post(&qp->qp->sq, state, wr, qp->attr.sig_all);

	if (err == 0) {
		ur_engine_doorbell(qp->ep->engine, qp->qp, qp->ep->sim->now_ns);
		sim_kick(qp->ep);
	}
	return err;
}

int sim_post_recv(struct sim_qp *qp, const struct ibv_recv_wr *wr)
{
	int err = ur_rq_post(&qp->qp->rq, wr);

	if (err == 0 && atomic_load(&qp->qp->posted_state) == IBV_QPS_ERR) {
		ur_engine_doorbell(qp->ep->engine, qp->qp, qp->ep->sim->now_ns);
		sim_kick(qp->ep);
	}
	return err;
}

int sim_post_srq(struct sim_srq *srq, const struct ibv_recv_wr *wr)
{
	return ur_rq_post(&srq->srq.rq, wr);
}

struct ibv_sge sim_sge(const struct sim_mr *mr, size_t off, uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)mr->p + off, .length = len, .lkey = mr->key};
}

static bool has_completion(void *arg)
{
	return ur_cq_pending(&((struct sim_cq *)arg)->cq) != 0;
}

struct ibv_wc sim_wait(struct sim *s, struct sim_cq *cq, uint64_t limit_ns)
{
	struct ibv_wc wc;

	SIM_CHECK(s, sim_run(s, has_completion, cq, limit_ns), "no completion within %.3f ms",
		  (double)limit_ns / 1e6);
	SIM_CHECK(s, ur_cq_poll(&cq->cq, 1, &wc) == 1, "a completion vanished");
	return wc;
}

void sim_expect(struct sim *s, struct sim_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		uint64_t limit_ns)
{
	struct ibv_wc wc = sim_wait(s, cq, limit_ns);

	SIM_CHECK(s, wc.wr_id == wr_id && wc.status == status,
		  "completion %llu with status %d, expected %llu with %d",
		  (unsigned long long)wc.wr_id, wc.status, (unsigned long long)wr_id, status);
}

void sim_expect_none(struct sim *s, struct sim_cq *cq)
{
	struct ibv_wc wc;

	SIM_CHECK(s, ur_cq_poll(&cq->cq, 1, &wc) == 0, "completion %llu with status %d too many",
		  (unsigned long long)wc.wr_id, wc.status);
}

unsigned sim_async_count(const struct sim_ep *ep, enum ibv_event_type type, const void *user)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < ep->async_cnt; i++)
		cnt += ep->async[i].type == type && ep->async[i].user == user;
	return cnt;
}

const struct ur_counters *sim_counters(const struct sim_ep *ep)
{
	return &ur_engine_core(ep->engine)->cnt;
}
