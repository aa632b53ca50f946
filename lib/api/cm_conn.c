/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "api/cm_priv.h"
#include "edge/config_attr.h"
#include "edge/random.h"

/* Peers that use rdma_cm expect these rights. The application may restrict them by modify_qp. */
#define REMOTE_RIGHTS                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define EPHEMERAL_BASE 32768u

#define REQ_PRIVATE_MAX	 (UR_CM_REQ_PRIVATE - UR_RDMA_IP_BYTES)
#define SIDR_PRIVATE_MAX (UR_CM_SIDR_REQ_PRIVATE - UR_RDMA_IP_BYTES)

/* ---- QPs ---- */

void ur_cm_api_attach(struct ur_api_cm_id *id, struct ibv_qp *qp)
{
	struct ur_cm_api *cm = id->dev->cm;

	pthread_mutex_lock(&cm->lock);
	if (id->base.qp)
		UR_API(qp, id->base.qp)->cm_id = NULL;
	/* A QP of an earlier connection now belongs to the new one only. */
	if (qp && UR_API(qp, qp)->cm_id)
		UR_API(qp, qp)->cm_id->base.qp = NULL;
	id->base.qp = qp;
	if (qp)
		UR_API(qp, qp)->cm_id = id;
	pthread_mutex_unlock(&cm->lock);
}

void ur_cm_api_qp_gone(struct ur_device *dev, struct ibv_qp *qp)
{
	struct ur_api_cm_id *id;

	/* A thread that moves the QP for an event holds this lock meanwhile. */
	pthread_mutex_lock(&dev->cm->serve);
	pthread_mutex_lock(&dev->cm->lock);
	id = UR_API(qp, qp)->cm_id;
	if (id)
		id->base.qp = NULL;
	pthread_mutex_unlock(&dev->cm->lock);
	pthread_mutex_unlock(&dev->cm->serve);
}

void ur_cm_api_stop_qp(struct ur_api_cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (id->base.qp)
		uroce_modify_qp(id->base.qp, &attr, IBV_QP_STATE);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	uroce_query_qp(qp, &attr, IBV_QP_STATE, NULL);
	return attr.qp_state;
}

/* RESET to INIT. A QP that the application has already moved to INIT stays unchanged. */
static int init_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE_RIGHTS};

	if (state_of(qp) == IBV_QPS_INIT)
		return 0;
	return uroce_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

bool ur_cm_api_connecting(struct ur_device *dev, struct ibv_qp *qp)
{
	struct ur_api_cm_id *id;
	bool connecting;

	pthread_mutex_lock(&dev->cm->lock);
	id = UR_API(qp, qp)->cm_id;
	connecting = id && id->phase == UR_CM_CONNECTING;
	pthread_mutex_unlock(&dev->cm->lock);
	return connecting;
}

/* ---- negotiation of the mode ---- */

static struct ur_mode_case mode_case(struct ibv_qp *qp, size_t private_len, size_t private_max)
{
	return (struct ur_mode_case){
		.rc = qp->qp_type == IBV_QPT_RC,
		.want = ur_api_qp_want(UR_API(qp, qp)).mode,
		.by_cm = true,
		.room = ur_offer_fits(private_len, private_max),
	};
}

static struct ur_offer offer_of(struct ibv_qp *qp)
{
	const struct ur_device *dev = ur_device(qp->context);
	struct ur_mode_want want = ur_api_qp_want(UR_API(qp, qp));
	struct ur_offer offer = {
		.version = UR_OFFER_VERSION,
		.flags = UR_OFFER_EXTENDED | UR_OFFER_DELAY | (want.strict ? UR_OFFER_STRICT : 0),
		.ports = want.spray,
		.wide = ur_engine_wide(ur_config_window(&dev->cfg)),
	};

	/* CM-ADM-01 */
	if (dev->cfg.admission.mode == UR_ADM_PLAIN)
		return offer;
	offer.flags |= UR_OFFER_STATUS;
	offer.tables = (uint8_t)__builtin_ctz(dev->worker_cnt);
	if (!qp->srq)
		return offer;
	offer.flags |= UR_OFFER_POOL;
	if (dev->cfg.admission.mode == UR_ADM_INTELLIGENT)
		offer.flags |= UR_OFFER_NOTIFY;
	else if (dev->cfg.admission.mode == UR_ADM_PAPER)
		offer.flags |= UR_OFFER_PAPER;
	offer.pool = UR_API(srq, qp->srq)->pool;
	return offer;
}

/* ADM-AGREE-01: a side with a pool reports its status to peers that understand it. */
static struct ur_adm_agreed agreed_of(const struct ur_offer *own, const struct ur_offer *peer)
{
	return (struct ur_adm_agreed){
		.sends_status = own->flags & UR_OFFER_POOL && peer->flags & UR_OFFER_STATUS,
		.tables = peer->tables,
		.receives_status = own->flags & UR_OFFER_STATUS && peer->flags & UR_OFFER_POOL,
		.notifies = peer->flags & (UR_OFFER_NOTIFY | UR_OFFER_PAPER),
		/* Grants are to be waited for if it says both. */
		.paper = (peer->flags & (UR_OFFER_NOTIFY | UR_OFFER_PAPER)) == UR_OFFER_PAPER,
		.pool = peer->pool,
		.delay = own->flags & peer->flags & UR_OFFER_DELAY,
		.wide = peer->wide,
	};
}

int ur_cm_api_start_qp(struct ur_api_cm_id *id, struct ibv_qp *qp, const struct ur_cm_note *peer)
{
	struct ur_offer own = offer_of(qp);
	struct ur_mode_verdict mode;
	bool rc_qp = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = id->ah,
		.path_mtu = (enum ibv_mtu)id->pmtu,
		.dest_qp_num = peer->qpn.v,
		.rq_psn = id->rq_psn.v,
		.max_dest_rd_atomic = id->param.responder_resources,
		.min_rnr_timer = id->param.min_rnr_timer,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rc;

	id->mode.peer = peer->extended;
	mode = ur_mode_decide(&id->mode);
	if (!mode.ok) {
		ur_api_record_qp_mode(UR_API(qp, qp), mode.reason);
		return EPROTONOSUPPORT;
	}
	mode.agreed = agreed_of(&own, &peer->offer);
	if (rc_qp)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rc = ur_api_modify_qp(qp, &attr, mask, &mode, peer->has_mac ? peer->mac : NULL);
	if (rc)
		return rc;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = peer->sq_psn.v;
	attr.timeout = id->param.timeout;
	attr.retry_cnt = id->param.retry_count;
	attr.rnr_retry = id->param.rnr_retry_count;
	attr.max_rd_atomic = id->param.initiator_depth;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc_qp)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return uroce_modify_qp(qp, &attr, mask);
}

/* ---- parameters ---- */

static uint8_t min8(uint8_t a, uint32_t b)
{
	return a < b ? a : (uint8_t)b;
}

/* The application's parameters; the configuration's values for those that it leaves open. */
static int take_param(struct ur_api_cm_id *id, const struct uroce_conn_param *p, size_t private_max)
{
	const struct ur_config *cfg = &id->dev->cfg;
	uint32_t rd = cfg->transport.max_rd_atomic;

	if (p && (p->private_data_len > private_max || (p->private_data_len && !p->private_data) ||
		  p->retry_count > 7 || p->rnr_retry_count > 7 || p->timeout > 31 ||
		  p->min_rnr_timer > 31))
		return EINVAL;
	if (p) {
		id->param = *p;
	} else {
		id->param = (struct uroce_conn_param){
			.responder_resources = (uint8_t)rd,
			.initiator_depth = (uint8_t)rd,
			.retry_count = (uint8_t)cfg->transport.retry_cnt,
			.rnr_retry_count = (uint8_t)cfg->transport.rnr_retry,
			.min_rnr_timer = (uint8_t)cfg->transport.min_rnr_timer,
		};
	}
	id->param.responder_resources = min8(id->param.responder_resources, rd);
	id->param.initiator_depth = min8(id->param.initiator_depth, rd);
	if (!id->param.timeout)
		id->param.timeout = (uint8_t)cfg->transport.timeout;
	return 0;
}

static int take_pmtu(struct ur_api_cm_id *id)
{
	unsigned shift = id->dev->mtu_shift;

	if (id->param.path_mtu) {
		shift = (unsigned)__builtin_ctz(id->param.path_mtu);
		if (id->param.path_mtu != 1u << shift || shift < 8 || shift > id->dev->mtu_shift)
			return EINVAL;
	}
	id->pmtu = (uint8_t)(shift - 7);
	return 0;
}

struct ur_psn ur_cm_api_random_psn(void)
{
	return ur_psn((uint32_t)ur_random64());
}

static bool is_connected_type(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_UC;
}

static struct uroce_cm_qp describe(const struct ibv_qp *qp)
{
	return (struct uroce_cm_qp){qp->qp_num, qp->qp_type, qp->srq != NULL};
}

/* Prepares an id for a new attempt: drops the notes of an earlier one. False: the id is in use. */
static bool prepare_id(struct ur_api_cm_id *id)
{
	if ((id->phase != UR_CM_IDLE && id->phase != UR_CM_CLOSED) || id->handle.v)
		return false;
	ur_cm_api_purge(id->dev->cm, id);
	id->by_number = id->responded = id->accepted = false;
	return true;
}

int uroce_cm_set_service(struct uroce_cm_id *base, uint8_t sl, uint8_t traffic_class)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	enum ur_cm_phase phase = id->phase;

	if (sl > 15 || !ur_device_serves(id->dev, sl) ||
	    (phase != UR_CM_IDLE && phase != UR_CM_CLOSED && phase != UR_CM_REQUESTED))
		return EINVAL;
	id->sl = id->ah.sl = sl;
	id->tclass = id->ah.grh.traffic_class = traffic_class;
	return 0;
}

/* ---- connect ---- */

static struct ur_cm_service service_of(const struct ur_api_cm_id *id)
{
	return (struct ur_cm_service){id->ah.sl, id->ah.grh.traffic_class};
}

/* The traffic class is set here, not earlier, because the DSCP/PCP map may change until now. */
static void connect_on_worker(void *arg, uint64_t now_ns)
{
	struct ur_cm_api_connect *c = arg;
	struct ur_api_cm_id *id = c->id;
	struct ur_cm *core = ur_cm_api_core(id->dev);

	if (id->sidr) {
		ur_dscp_map_update_path(id->dev, &id->ah, &c->sidr.path);
		c->sidr.service = service_of(id);
		c->rc = ur_cm_sidr_req(core, &id->owner, &c->sidr, now_ns, &id->handle);
	} else {
		c->req.tclass = ur_dscp_map_update_path(id->dev, &id->ah, &c->req.path);
		c->req.service = service_of(id);
		c->rc = ur_cm_connect(core, &id->owner, &c->req, now_ns, &id->handle);
	}
}

/* Resolves the peer, sets the id's addresses, and builds the path of its MADs. */
static int find_peer(struct ur_api_cm_id *id, const struct sockaddr *peer, uint16_t *port,
		     struct ur_path *path)
{
	struct ur_path_attr attr;
	struct ur_gid sgid, dgid;
	uint16_t source = ntohs(((const struct sockaddr_in *)&id->source)->sin_port);
	int rc = ur_cm_api_route(id->dev, peer, &id->source, &id->ah, port);

	if (!source)
		source = (uint16_t)(EPHEMERAL_BASE | ur_random64());
	if (!rc) {
		id->ah.sl = id->sl;
		id->ah.grh.traffic_class = id->tclass;
		rc = ur_device_resolve(id->dev, &id->ah, NULL, ur_qpn(1), ur_qpn(1), &attr);
	}
	if (rc)
		return rc;
	ur_path_init(path, &attr);
	dgid = ur_cm_api_dgid(&id->ah);
	sgid = ur_device_gid(id->dev, id->ah.grh.sgid_index);
	ur_cm_api_sockaddr(&id->base.local, &sgid, source);
	ur_cm_api_sockaddr(&id->base.peer, &dgid, *port);
	return 0;
}

/* Writes the RDMA IP CM header, followed by the application's data. Returns the total length. */
static uint8_t put_private(const struct ur_api_cm_id *id, uint8_t *to, size_t cap, const void *data,
			   uint8_t len)
{
	const struct sockaddr_in *local = (const struct sockaddr_in *)&id->base.local;
	struct ur_cursor c = ur_cursor(to, cap);
	struct ur_rdma_ip ip = {
		.sport = ntohs(local->sin_port), /* same offset in both address families */
		.src = ur_device_gid(id->dev, id->ah.grh.sgid_index),
		.dst = ur_cm_api_dgid(&id->ah),
	};

	ip.ip_version = ur_gid_is_ipv4(&ip.src) ? 4 : 6;
	ur_put_rdma_ip(&c, &ip);
	if (len)
		memcpy(to + UR_RDMA_IP_BYTES, data, len);
	return (uint8_t)(UR_RDMA_IP_BYTES + len);
}

/* CM-FLOW-01: no credits with an SRQ, and none on unreliable QPs, which send no ACKs. */
static bool sends_credits(const struct uroce_cm_qp *qp)
{
	return qp->type == IBV_QPT_RC && !qp->srq;
}

void ur_cm_api_fill_req(struct ur_cm_api_connect *c, const struct uroce_cm_qp *qp)
{
	struct ur_cm_connect_attr *a = &c->req;
	struct ur_api_cm_id *id = c->id;

	id->sidr = false;
	id->rq_psn = ur_cm_api_random_psn();
	a->sgid = ur_device_gid(id->dev, id->ah.grh.sgid_index);
	a->dgid = ur_cm_api_dgid(&id->ah);
	a->service_id = ur_rdma_ip_service(UR_RDMA_IP_TCP, c->port);
	a->transport = qp->type == IBV_QPT_RC ? UR_CM_TRANSPORT_RC : UR_CM_TRANSPORT_UC;
	a->qpn = ur_qpn(qp->qpn);
	a->rq_psn = id->rq_psn;
	a->pkey = 0xffff;
	a->pmtu = id->pmtu;
	a->responder_resources = id->param.responder_resources;
	a->initiator_depth = id->param.initiator_depth;
	a->retry_cnt = id->param.retry_count;
	a->rnr_retry = id->param.rnr_retry_count;
	a->ack_timeout = id->param.timeout;
	a->flow_ctrl = sends_credits(qp);
	a->srq = qp->srq;
	a->sl = id->ah.sl;
	a->hop_limit = id->ah.grh.hop_limit;
	a->remote_resp_timeout = UR_CM_API_RESP_TIMEOUT;
	a->local_resp_timeout = UR_CM_API_RESP_TIMEOUT;
	a->max_cm_retries = UR_CM_API_RETRIES;
	a->patience = id->patience;
	a->private_data = c->private_data;
	a->private_len = put_private(id, c->private_data, UR_CM_REQ_PRIVATE, id->param.private_data,
				     id->param.private_data_len);
}

int ur_cm_api_prepare(struct ur_cm_api_connect *c, const struct sockaddr *peer,
		      const struct uroce_conn_param *param)
{
	int rc = prepare_id(c->id) ? take_param(c->id, param, REQ_PRIVATE_MAX) : EINVAL;

	if (!rc)
		rc = take_pmtu(c->id);
	return rc ? rc : find_peer(c->id, peer, &c->port, &c->req.path);
}

int ur_cm_api_start(struct ur_cm_api_connect *c)
{
	struct ur_api_cm_id *id = c->id;

	id->phase = UR_CM_CONNECTING;
	ur_cm_api_call(id->dev, connect_on_worker, c);
	if (!c->rc)
		return 0;
	id->phase = UR_CM_IDLE;
	return c->rc == -ENOSPC ? EAGAIN : -c->rc;
}

int uroce_cm_connect(struct uroce_cm_id *base, const struct sockaddr *peer, struct ibv_qp *qp,
		     const struct uroce_conn_param *param)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_cm_api_connect c = {.id = id};
	struct uroce_cm_qp described = describe(qp);
	struct ibv_qp_attr before = {0};
	struct ur_offer offer = offer_of(qp);
	int rc = is_connected_type(qp) ? ur_cm_api_prepare(&c, peer, param) : EINVAL;

	if (rc)
		return rc;
	before.qp_state = state_of(qp);
	rc = init_qp(qp);
	if (rc)
		return rc;
	ur_cm_api_fill_req(&c, &described);
	id->mode = mode_case(qp, c.req.private_len, UR_CM_REQ_PRIVATE);
	c.req.offer = ur_mode_offers(&id->mode) ? &offer : NULL;
	ur_cm_api_attach(id, qp);
	rc = ur_cm_api_start(&c);
	if (rc) {
		ur_cm_api_attach(id, NULL);
		uroce_modify_qp(qp, &before, IBV_QP_STATE);
	}
	return rc;
}

/* ---- accept, reject ---- */

struct answer_call {
	struct ur_api_cm_id *id;
	struct ur_cm_accept_attr rep;
	enum ur_cm_rej_reason reason;
	enum ur_cm_sidr_status status;
	struct ur_qpn qpn;
	uint32_t qkey;
	const void *private_data;
	uint8_t private_len;
	int rc;
};

static void accept_on_worker(void *arg, uint64_t now_ns)
{
	struct answer_call *a = arg;
	struct ur_cm *core = ur_cm_api_core(a->id->dev);
	struct ur_cm_service service = service_of(a->id);

	/* The application may have chosen another service. */
	ur_cm_set_service(core, a->id->handle, &service);
	a->rc = ur_cm_accept(core, a->id->handle, &a->rep, now_ns);
}

/* IBA 12.7: the REQ decides the retry counts; of the resources, the smaller value counts. */
static void apply_request(struct ur_api_cm_id *id, uint8_t timeout)
{
	const struct ur_cm_note *req = &id->request;

	id->pmtu = req->pmtu;
	id->param.responder_resources = min8(id->param.responder_resources, req->initiator_depth);
	id->param.initiator_depth = min8(id->param.initiator_depth, req->responder_resources);
	id->param.retry_count = req->retry_cnt;
	if (!timeout && req->ack_timeout)
		id->param.timeout = req->ack_timeout;
}

int ur_cm_api_take_accept(struct ur_api_cm_id *id, const struct uroce_cm_qp *qp,
			  const struct uroce_conn_param *param, struct ur_cm_accept_attr *rep)
{
	uint8_t own_rnr_retry;
	int rc;

	if (id->phase != UR_CM_REQUESTED || id->sidr ||
	    qp->type != (id->request.transport == UR_CM_TRANSPORT_RC ? IBV_QPT_RC : IBV_QPT_UC))
		return EINVAL;
	rc = take_param(id, param, UR_CM_REP_PRIVATE);
	if (rc)
		return rc;
	/* Each side sends how often the other is to retry after an RNR NAK. */
	own_rnr_retry = id->param.rnr_retry_count;
	id->param.rnr_retry_count = id->request.rnr_retry;
	apply_request(id, param ? param->timeout : 0);
	id->accepted = true;
	*rep = (struct ur_cm_accept_attr){
		.qpn = ur_qpn(qp->qpn),
		.rq_psn = id->rq_psn,
		.responder_resources = id->param.responder_resources,
		.initiator_depth = id->param.initiator_depth,
		.rnr_retry = own_rnr_retry,
		.flow_ctrl = sends_credits(qp),
		.target_ack_delay = UR_CM_API_ACK_DELAY,
		.srq = qp->srq,
		.private_data = id->param.private_data,
		.private_len = id->param.private_data_len,
	};
	return 0;
}

int ur_cm_api_send_rep(struct ur_api_cm_id *id, const struct ur_cm_accept_attr *rep)
{
	struct answer_call a = {.id = id, .rep = *rep};

	id->phase = UR_CM_CONNECTING;
	ur_cm_api_call(id->dev, accept_on_worker, &a);
	return a.rc ? ECONNABORTED : 0;
}

int uroce_cm_accept(struct uroce_cm_id *base, struct ibv_qp *qp,
		    const struct uroce_conn_param *param)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_offer answer = offer_of(qp);
	struct uroce_cm_qp described = describe(qp);
	struct ur_cm_accept_attr rep;
	int rc = ur_cm_api_take_accept(id, &described, param, &rep);

	if (rc)
		return rc;
	id->mode = mode_case(qp, id->param.private_data_len, UR_CM_REP_PRIVATE);
	rc = init_qp(qp);
	if (!rc)
		rc = ur_cm_api_start_qp(id, qp, &id->request);
	if (rc)
		return rc;
	rep.offer = ur_mode_decide(&id->mode).mode == UR_MODE_EXTENDED ? &answer : NULL;
	ur_cm_api_attach(id, qp);
	rc = ur_cm_api_send_rep(id, &rep);
	if (!rc)
		return 0;
	/* The peer has given up meanwhile; an event will report this. */
	ur_cm_api_stop_qp(id);
	ur_cm_api_attach(id, NULL);
	return rc;
}

static void reject_on_worker(void *arg, uint64_t now_ns)
{
	struct answer_call *a = arg;

	a->rc = ur_cm_reject(ur_cm_api_core(a->id->dev), a->id->handle, a->reason, a->private_data,
			     a->private_len, now_ns);
	a->id->handle.v = 0;
}

int uroce_cm_reject(struct uroce_cm_id *base, uint16_t reason, const void *private_data,
		    uint8_t len)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct answer_call a = {.id = id,
				.reason = (enum ur_cm_rej_reason)reason,
				.private_data = private_data,
				.private_len = len};

	if ((id->phase != UR_CM_REQUESTED && !(id->phase == UR_CM_CONNECTING && id->responded)) ||
	    id->sidr || len > UR_CM_REJ_PRIVATE || (len && !private_data))
		return EINVAL;
	id->phase = UR_CM_CLOSED;
	ur_cm_api_call(id->dev, reject_on_worker, &a);
	return a.rc ? ECONNABORTED : 0;
}

/* ---- disconnect ---- */

static void disconnect_on_worker(void *arg, uint64_t now_ns)
{
	struct answer_call *a = arg;

	/* If this fails, the peer was faster, and DISCONNECTED is in the queue. */
	a->rc = ur_cm_disconnect(ur_cm_api_core(a->id->dev), a->id->handle, NULL, 0, now_ns);
}

/* CM-EARLY-END-01. Also a passive end that has accepted, whether or not it knows that the peer has got its REP. */
static bool may_disconnect(const struct ur_api_cm_id *id)
{
	return id->phase == UR_CM_CONNECTED ||
	       (id->phase == UR_CM_CONNECTING && id->accepted && !id->responded);
}

int uroce_cm_disconnect(struct uroce_cm_id *base)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct answer_call a = {.id = id};

	if (!may_disconnect(id))
		return ENOTCONN;
	pthread_mutex_lock(&id->dev->cm->serve);
	ur_cm_api_stop_qp(id);
	pthread_mutex_unlock(&id->dev->cm->serve);
	ur_cm_api_call(id->dev, disconnect_on_worker, &a);
	return 0;
}

/* ---- SIDR ---- */

int uroce_cm_sidr_resolve(struct uroce_cm_id *base, const struct sockaddr *peer, uint16_t port,
			  const void *private_data, uint8_t len)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct ur_cm_api_connect c = {.id = id};
	int rc;

	if (!prepare_id(id) || len > SIDR_PRIVATE_MAX || (len && !private_data))
		return EINVAL;
	rc = find_peer(id, peer, &c.port, &c.sidr.path);
	if (rc)
		return rc;
	((struct sockaddr_in *)&id->base.peer)->sin_port = htons(port);
	id->sidr = true;
	c.sidr.dgid = ur_cm_api_dgid(&id->ah);
	c.sidr.service_id = ur_rdma_ip_service(UR_RDMA_IP_UDP, port);
	c.sidr.pkey = 0xffff;
	c.sidr.resp_timeout = UR_CM_API_RESP_TIMEOUT;
	c.sidr.max_cm_retries = UR_CM_API_RETRIES;
	c.sidr.patience = id->patience;
	c.sidr.private_data = c.private_data;
	c.sidr.private_len =
		put_private(id, c.private_data, sizeof(c.private_data), private_data, len);
	return ur_cm_api_start(&c);
}

static void sidr_reply_on_worker(void *arg, uint64_t now_ns)
{
	struct answer_call *a = arg;

	a->rc = ur_cm_sidr_rep(ur_cm_api_core(a->id->dev), a->id->handle, a->status, a->qpn,
			       a->qkey, a->private_data, a->private_len, now_ns);
	a->id->handle.v = 0;
}

int uroce_cm_sidr_reply_qpn(struct uroce_cm_id *base, uint32_t qpn, uint32_t qkey, int status,
			    const void *private_data, uint8_t len)
{
	struct ur_api_cm_id *id = ur_api_cm_id(base);
	struct answer_call a = {.id = id,
				.status = (enum ur_cm_sidr_status)status,
				.qpn = ur_qpn(status ? 0 : qpn),
				.qkey = status ? 0 : qkey,
				.private_data = private_data,
				.private_len = len};

	if (id->phase != UR_CM_REQUESTED || !id->sidr || status < 0 || status > 255 ||
	    (!status && (qpn < 2 || qpn >= 1u << 24)) || len > UR_CM_SIDR_REP_PRIVATE ||
	    (len && !private_data))
		return EINVAL;
	id->phase = UR_CM_CLOSED;
	ur_cm_api_call(id->dev, sidr_reply_on_worker, &a);
	return -a.rc;
}

int uroce_cm_sidr_reply(struct uroce_cm_id *base, struct ibv_qp *qp, uint32_t qkey, int status)
{
	if (!status && (!qp || qp->qp_type != IBV_QPT_UD))
		return EINVAL;
	return uroce_cm_sidr_reply_qpn(base, status ? 0 : qp->qp_num, qkey, status, NULL, 0);
}
