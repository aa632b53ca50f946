/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "rdmacm/cm.h"
#include "thread/thread.h"

/* Queue pairs, shared receive queues and endpoints that belong to an id. */

#define ALL_RIGHTS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define RESOLVE_MS 2000
/* Members that struct ibv_qp_init_attr and the extended one begin with. */
#define COMMON_BYTES offsetof(struct ibv_qp_init_attr_ex, comp_mask)

/* ---- completion queues ---- */

static struct ibv_cq *make_cq(struct rdma_cm_id *id, uint32_t cqe,
			      struct ibv_comp_channel **channel)
{
	struct ibv_cq *cq;

	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return NULL;
	cq = ibv_create_cq(id->verbs, cqe ? (int)cqe : 1, id, *channel, 0);
	if (cq)
		return cq;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return NULL;
}

static void free_cq(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static void free_cqs(struct ur_cm_id *id)
{
	if (id->own_recv_cq)
		free_cq(&id->id.recv_cq, &id->id.recv_cq_channel);
	if (id->own_send_cq)
		free_cq(&id->id.send_cq, &id->id.send_cq_channel);
	id->own_send_cq = id->own_recv_cq = false;
}

/* Makes those that the program gives none of. */
static int choose_cqs(struct ur_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *b = &id->id;

	if (!attr->recv_cq && !b->srq) {
		b->recv_cq = make_cq(b, attr->cap.max_recv_wr, &b->recv_cq_channel);
		if (!b->recv_cq)
			return errno;
		id->own_recv_cq = true;
	}
	if (!attr->recv_cq)
		attr->recv_cq = b->recv_cq;
	if (!attr->send_cq) {
		b->send_cq = make_cq(b, attr->cap.max_send_wr, &b->send_cq_channel);
		if (!b->send_cq)
			return errno;
		id->own_send_cq = true;
		attr->send_cq = b->send_cq;
	}
	return 0;
}

/* ---- queue pairs ---- */

static int to_init(const struct ur_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = ALL_RIGHTS,
				   .qkey = RDMA_UDP_QKEY};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	return ibv_modify_qp(qp, &attr,
			     mask | (id->id.ps == RDMA_PS_UDP ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* The other states of a connected queue pair are the connection's. */
static int prepare_qp(const struct ur_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int rc = to_init(id, qp);

	if (rc || id->id.ps != RDMA_PS_UDP)
		return rc;
	rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return rc ? rc : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int make_qp(struct ur_cm_id *id, struct ibv_qp_init_attr_ex *attr, struct ibv_qp **to)
{
	struct ibv_cq *send_cq = attr->send_cq, *recv_cq = attr->recv_cq;
	struct ibv_qp *qp;
	int rc = choose_cqs(id, attr);

	qp = rc ? NULL : ibv_create_qp_ex(id->id.verbs, attr);
	if (!rc && !qp)
		rc = errno;
	if (!rc)
		rc = prepare_qp(id, qp);
	if (!rc) {
		*to = qp;
		return 0;
	}
	if (qp)
		ibv_destroy_qp(qp);
	free_cqs(id);
	/* The program may try again. */
	attr->send_cq = send_cq;
	attr->recv_cq = recv_cq;
	return rc;
}

/* What liburoce does not have it refuses. */
int rdma_create_qp_ex(struct rdma_cm_id *base, struct ibv_qp_init_attr_ex *attr)
{
	struct ur_cm_id *id = ur_cm_id(base);
	struct ibv_qp *qp;
	int rc, state;

	if (base->qp || !base->verbs)
		return ur_cm_fail(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = base->pd;
	}
	if (!attr->pd || attr->pd->context != base->verbs)
		return ur_cm_fail(EINVAL);
	if (!attr->srq)
		attr->srq = base->srq;
	state = ur_cancel_off();
	rc = make_qp(id, attr, &qp);
	ur_cancel_restore(state);
	if (rc)
		return ur_cm_fail(rc);
	base->qp = qp;
	base->pd = attr->pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0,
		.pd = pd,
	};
	int rc;

	memcpy(&ex, attr, COMMON_BYTES);
	rc = rdma_create_qp_ex(base, &ex);
	if (!rc)
		memcpy(attr, &ex, COMMON_BYTES);
	return rc;
}

void rdma_destroy_qp(struct rdma_cm_id *base)
{
	int state = ur_cancel_off();

	ur_cm_detach_groups(ur_cm_id(base));
	ibv_destroy_qp(base->qp);
	base->qp = NULL;
	free_cqs(ur_cm_id(base));
	ur_cancel_restore(state);
}

/* ---- shared receive queues ---- */

int rdma_create_srq(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ur_cm_id *id = ur_cm_id(base);

	if (!base->verbs)
		return ur_cm_fail(EINVAL);
	if (!base->recv_cq) {
		base->recv_cq = make_cq(base, attr->attr.max_wr, &base->recv_cq_channel);
		if (!base->recv_cq)
			return -1;
		id->own_srq_cq = true;
	}
	base->srq = ibv_create_srq(pd ? pd : base->pd, attr);
	if (base->srq)
		return 0;
	rdma_destroy_srq(base);
	return -1;
}

int rdma_create_srq_ex(struct rdma_cm_id *base, struct ibv_srq_init_attr_ex *ex)
{
	struct ibv_srq_init_attr attr = {.srq_context = ex->srq_context, .attr = ex->attr};
	bool has_pd = ex->comp_mask & IBV_SRQ_INIT_ATTR_PD;

	if (ex->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && ex->srq_type != IBV_SRQT_BASIC)
		return ur_cm_fail(EOPNOTSUPP);
	if (rdma_create_srq(base, has_pd ? ex->pd : NULL, &attr))
		return -1;
	ex->attr = attr.attr;
	return 0;
}

void rdma_destroy_srq(struct rdma_cm_id *base)
{
	struct ur_cm_id *id = ur_cm_id(base);
	int why = errno;

	if (base->srq)
		ibv_destroy_srq(base->srq);
	base->srq = NULL;
	if (id->own_srq_cq)
		free_cq(&base->recv_cq, &base->recv_cq_channel);
	id->own_srq_cq = false;
	errno = why;
}

/* ---- endpoints ---- */

static int open_active(struct rdma_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	int rc = rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS);

	if (!rc)
		rc = rdma_resolve_route(id, RESOLVE_MS);
	if (rc || !attr)
		return rc;
	attr->qp_type = res->ai_qp_type;
	return rdma_create_qp(id, pd, attr);
}

int rdma_create_ep(struct rdma_cm_id **base, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int rc = rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)res->ai_port_space);
	int why;

	if (rc)
		return rc;
	if (res->ai_flags & RAI_PASSIVE) {
		rc = rdma_bind_addr(id, res->ai_src_addr);
		if (!rc && attr) {
			ur_cm_id(id)->init = *attr;
			ur_cm_id(id)->init.qp_type = res->ai_qp_type;
			ur_cm_id(id)->has_init = true;
			if (pd)
				id->pd = pd;
		}
	} else {
		rc = open_active(id, res, pd, attr);
	}
	if (!rc) {
		*base = id;
		return 0;
	}
	why = errno;
	rdma_destroy_ep(id);
	return ur_cm_fail(why);
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* The request's event stays with its id until the next call on that, for the private data. */
int rdma_get_request(struct rdma_cm_id *base, struct rdma_cm_id **request)
{
	struct ur_cm_id *listener = ur_cm_id(base);
	struct ibv_qp_init_attr init = listener->init;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	if (!listener->sync)
		return ur_cm_fail(EINVAL);
	if (base->event) {
		rdma_ack_cm_event(base->event);
		base->event = NULL;
	}
	if (rdma_get_cm_event(base->channel, &e))
		return -1;
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rdma_ack_cm_event(e);
		return ur_cm_fail(EINVAL);
	}
	id = e->id;
	if (rdma_migrate_id(id, NULL) ||
	    (listener->has_init &&
	     rdma_create_qp(id, base->pd && base->pd->context == id->verbs ? base->pd : NULL,
			    &init))) {
		int why = errno;

		rdma_ack_cm_event(e);
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return ur_cm_fail(why);
	}
	id->event = e;
	*request = id;
	return 0;
}
