/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"
#include "wire/bits.h"

#define MAX_IDS	      (1u << 20)
#define MAX_LISTENERS (1u << 16)

/* Offsets of the arrays that follow struct ur_cm in its memory, bytes. */
struct layout {
	size_t ids, peers, qpns, shares, listeners, services, tx, end;
};

static size_t part(size_t *at, size_t bytes)
{
	size_t start = *at;

	*at = (start + bytes + 15) & ~(size_t)15;
	return start;
}

static struct layout layout_of(const struct ur_cm_limits *l)
{
	size_t at = 0, buckets = ur_pow2_at_least(l->max_ids);
	struct layout o;

	part(&at, sizeof(struct ur_cm));
	o.ids = part(&at, l->max_ids * sizeof(struct cm_id));
	o.peers = part(&at, buckets * sizeof(struct cm_id *));
	o.qpns = part(&at, buckets * sizeof(struct cm_id *));
	o.shares = part(&at, buckets * sizeof(uint32_t));
	o.listeners = part(&at, l->max_listeners * sizeof(struct cm_listener));
	o.services = part(&at, ur_pow2_at_least(l->max_listeners) * sizeof(uint32_t));
	o.tx = part(&at, l->max_tx * sizeof(struct cm_tx));
	o.end = at;
	return o;
}

size_t ur_cm_size(const struct ur_cm_limits *l)
{
	if (l->max_ids < 1 || l->max_ids > MAX_IDS || l->max_listeners > MAX_LISTENERS ||
	    l->max_pending < 1 || l->max_pending > l->max_ids || l->max_sidr > l->max_ids ||
	    l->max_tx < 1 || l->max_tx > MAX_IDS)
		return 0;
	return layout_of(l).end;
}

struct ur_cm *ur_cm_init(void *mem, const struct ur_cm_limits *limits,
			 const struct ur_cm_attr *attr)
{
	struct layout o = layout_of(limits);
	uint8_t *base = mem;
	struct ur_cm *cm = mem;
	uint32_t i;

	UR_ASSERT(ur_cm_size(limits) && attr->timewait_ns && attr->sink);
	memset(mem, 0, o.end);
	cm->limits = *limits;
	cm->attr = *attr;
	if (!limits->max_sidr)
		cm->limits.max_sidr = limits->max_pending;
	if (!limits->max_per_peer)
		cm->limits.max_per_peer = UINT32_MAX;
	ur_speck_init(&cm->cipher, attr->id_key, (uint8_t)cm_id_bits(cm));
	cm->no_handle = ur_speck_decrypt(&cm->cipher, 0);
	cm->tid_hi = ur_speck_encrypt(&cm->cipher, 0); /* 0 is never a handle */
	cm->ids = (void *)(base + o.ids);
	cm->peers = (void *)(base + o.peers);
	cm->qpns = (void *)(base + o.qpns);
	cm->shares = (void *)(base + o.shares);
	cm->listeners = (void *)(base + o.listeners);
	cm->services = (void *)(base + o.services);
	cm->tx = (void *)(base + o.tx);
	cm->bucket_mask = ur_pow2_at_least(limits->max_ids) - 1;
	cm->service_mask = ur_pow2_at_least(limits->max_listeners) - 1;
	while (1u << cm->idx_bits < limits->max_ids)
		cm->idx_bits++;
	TAILQ_INIT(&cm->free);
	TAILQ_INIT(&cm->linger);
	RB_INIT(&cm->timers);
	for (i = 0; i < limits->max_ids; i++) {
		cm->ids[i].handle = i;
		TAILQ_INSERT_TAIL(&cm->free, &cm->ids[i], link);
	}
	for (i = limits->max_listeners; i > 0; i--) {
		cm->listeners[i - 1].next = cm->free_listener;
		cm->free_listener = i;
	}
	return cm;
}

struct ur_cm_event cm_event(const struct cm_id *id, enum ur_cm_event_type type)
{
	return (struct ur_cm_event){
		.type = type,
		.id = {id->muted ? 0 : id->handle},
		.ctx = id->ctx,
	};
}

struct ur_cm_event cm_request_event(const struct cm_id *id, enum ur_cm_event_type type,
				    const struct cm_rx *rx, const struct ur_rdma_ip *ip,
				    const uint8_t *private_data, uint8_t size)
{
	struct ur_cm_event ev = cm_event(id, type);
	uint8_t skip = ip ? UR_RDMA_IP_BYTES : 0;

	ev.src = rx->src;
	ev.ip = ip;
	ev.private_data = private_data + skip;
	ev.private_len = (uint8_t)(size - skip);
	return ev;
}

void cm_emit(struct ur_cm *cm, const struct ur_cm_event *ev)
{
	if (ev->id.v)
		cm->attr.sink(cm->attr.sink_ctx, ev);
}

int ur_cm_set_ctx(struct ur_cm *cm, struct ur_cm_id handle, void *ctx)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id)
		return -EINVAL;
	id->ctx = ctx;
	return 0;
}

/* CM-DSCP-01 */
static void set_dscp(struct ur_cm *cm, struct cm_id *id)
{
	if (id->has_service && cm->attr.set_dscp)
		cm->attr.set_dscp(cm->attr.sink_ctx, &id->service, &id->path);
}

int ur_cm_set_service(struct ur_cm *cm, struct ur_cm_id handle, const struct ur_cm_service *service)
{
	struct cm_id *id = cm_id_get(cm, handle);

	if (!id)
		return -EINVAL;
	id->service = *service;
	id->has_service = true;
	set_dscp(cm, id);
	return 0;
}

void ur_cm_update_dscp(struct ur_cm *cm)
{
	uint32_t left = cm->ids_in_use;

	for (struct cm_id *id = cm->ids; left; id++) {
		if (id->state == UR_CM_ST_FREE)
			continue;
		set_dscp(cm, id);
		left--;
	}
}

enum ur_cm_state ur_cm_state(const struct ur_cm *cm, struct ur_cm_id handle)
{
	const struct cm_id *id = cm_id_get(cm, handle);

	return id ? (enum ur_cm_state)id->state : UR_CM_ST_FREE;
}

uint32_t ur_cm_ids_in_use(const struct ur_cm *cm)
{
	return cm->ids_in_use;
}

const struct ur_cm_counters *ur_cm_counters(const struct ur_cm *cm)
{
	return &cm->counters;
}

const char *ur_cm_state_name(enum ur_cm_state state)
{
	static const char *const names[UR_CM_ST_CNT] = {
#define X(name) [UR_CM_ST_##name] = #name,
		UR_CM_STATES(X)
#undef X
	};

	return (unsigned)state < UR_CM_ST_CNT ? names[state] : "?";
}

const char *ur_cm_event_text(enum ur_cm_event_type type)
{
	static const char *const texts[UR_CM_EV_CNT] = {
#define X(name, text) [UR_CM_EV_##name] = text,
		UR_CM_EVENTS(X)
#undef X
	};

	return (unsigned)type < UR_CM_EV_CNT ? texts[type] : "?";
}

static bool must_be_timed(uint8_t state)
{
	return state != UR_CM_ST_FREE && state != UR_CM_ST_REP_RCVD &&
	       state != UR_CM_ST_ESTABLISHED;
}

static bool is_live(const struct cm_id *id)
{
	return id->state == UR_CM_ST_REP_SENT || id->state == UR_CM_ST_REP_RCVD ||
	       id->state == UR_CM_ST_ESTABLISHED || id->state == UR_CM_ST_DREQ_SENT;
}

static bool in_chain(const struct ur_cm *cm, const struct cm_id *id)
{
	const struct cm_id *at =
		id->sidr ? cm_peer_find_sidr(cm, &id->peer_gid, id->remote_comm_id)
			 : cm_peer_find(cm, &id->peer_gid, id->peer_guid, id->remote_comm_id);

	return at == id;
}

static void id_validate(const struct ur_cm *cm, const struct cm_id *id)
{
	UR_ASSERT(id->timed == must_be_timed(id->state));
	if (id->state == UR_CM_ST_FREE)
		return;
	UR_ASSERT(cm_id_by_comm(cm, cm_comm_id(cm, id)) == id && cm_comm_id(cm, id) != 0);
	UR_ASSERT(id->in_qpn == is_live(id));
	UR_ASSERT(id->in_peer == (id->remote_known && !id->active));
	UR_ASSERT(!id->in_peer || in_chain(cm, id));
	UR_ASSERT(id->state != UR_CM_ST_LINGER || id->muted);
	UR_ASSERT(id->mra_cnt <= CM_MRA_MAX && id->retries <= id->max_retries);
}

void ur_cm_validate(const struct ur_cm *cm)
{
	const struct cm_id *id;
	uint32_t in_use = 0, pending[UR_CM_KIND_CNT] = {0}, shares = 0, timed = 0, listed = 0, i;

	for (i = 0; i < cm->limits.max_ids; i++) {
		id = &cm->ids[i];
		id_validate(cm, id);
		in_use += id->state != UR_CM_ST_FREE;
		pending[id->sidr ? UR_CM_KIND_SIDR : UR_CM_KIND_CONN] += cm_is_pending(id->state);
		timed += id->timed;
		listed += id->state == UR_CM_ST_FREE || id->state == UR_CM_ST_LINGER;
	}
	TAILQ_FOREACH(id, &cm->free, link)
	listed--;
	TAILQ_FOREACH(id, &cm->linger, link)
	listed--;
	UR_ASSERT(listed == 0);
	for (i = 0; i <= cm->bucket_mask; i++)
		shares += cm->shares[i];
	UR_ASSERT(in_use == cm->ids_in_use);
	UR_ASSERT(pending[UR_CM_KIND_CONN] == cm->pending[UR_CM_KIND_CONN]);
	UR_ASSERT(pending[UR_CM_KIND_SIDR] == cm->pending[UR_CM_KIND_SIDR]);
	UR_ASSERT(pending[UR_CM_KIND_CONN] <= cm->limits.max_pending);
	UR_ASSERT(pending[UR_CM_KIND_SIDR] <= cm->limits.max_sidr);
	UR_ASSERT(shares == pending[UR_CM_KIND_CONN] + pending[UR_CM_KIND_SIDR]);
	UR_ASSERT(cm->tx_cnt <= cm->limits.max_tx);
	UR_ASSERT((timed == 0) == (ur_cm_next_deadline(cm) == UINT64_MAX));
}
