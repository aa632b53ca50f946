/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm_priv.h"

#define TO(state) (1u << UR_CM_ST_##state)

static const uint16_t allowed[UR_CM_ST_CNT] = {
	[UR_CM_ST_FREE] = TO(REQ_SENT) | TO(REQ_RCVD) | TO(SIDR_REQ_SENT) | TO(SIDR_REQ_RCVD),
	[UR_CM_ST_REQ_SENT] = TO(REP_RCVD) | TO(FREE),
	[UR_CM_ST_REQ_RCVD] = TO(REP_SENT) | TO(LINGER) | TO(FREE),
	[UR_CM_ST_REP_SENT] = TO(ESTABLISHED) | TO(DREQ_SENT) | TO(TIMEWAIT),
	[UR_CM_ST_REP_RCVD] = TO(ESTABLISHED) | TO(TIMEWAIT) | TO(LINGER),
	[UR_CM_ST_ESTABLISHED] = TO(DREQ_SENT) | TO(TIMEWAIT),
	[UR_CM_ST_DREQ_SENT] = TO(TIMEWAIT),
	[UR_CM_ST_TIMEWAIT] = TO(FREE),
	[UR_CM_ST_SIDR_REQ_SENT] = TO(FREE),
	[UR_CM_ST_SIDR_REQ_RCVD] = TO(LINGER) | TO(FREE),
	[UR_CM_ST_LINGER] = TO(FREE),
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The random seed keeps a peer from choosing ids that share a bucket. */
static uint32_t bucket(const struct ur_cm *cm, const struct ur_gid *gid, uint64_t guid, uint64_t n)
{
	uint64_t half[2];

	memcpy(half, gid->b, sizeof(half));
	half[0] = mix(mix(half[0] ^ cm->attr.seed) ^ half[1]);
	return (uint32_t)mix(mix(half[0] ^ guid) ^ n) & cm->bucket_mask;
}

/* Peers in one bucket share one limit. The seed keeps an attacker from choosing a victim's bucket. */
static uint32_t *share_of(const struct ur_cm *cm, const struct ur_gid *gid)
{
	return &cm->shares[bucket(cm, gid, 0, UINT64_MAX)];
}

/* CM-LIFE-02 */
bool cm_has_room(struct ur_cm *cm, enum ur_cm_kind kind, const struct ur_gid *peer)
{
	uint32_t max = kind == UR_CM_KIND_SIDR ? cm->limits.max_sidr : cm->limits.max_pending;

	if (cm->pending[kind] >= max)
		return false;
	if (*share_of(cm, peer) < cm->limits.max_per_peer)
		return true;
	cm->counters.over_share++;
	return false;
}

static uint32_t bucket_sidr(const struct ur_cm *cm, const struct ur_gid *gid, uint32_t req_id)
{
	return bucket(cm, gid, 0, (uint64_t)req_id << 32);
}

static uint32_t peer_bucket(const struct ur_cm *cm, const struct cm_id *id)
{
	return id->sidr ? bucket_sidr(cm, &id->peer_gid, id->remote_comm_id)
			: bucket(cm, &id->peer_gid, id->peer_guid, id->remote_comm_id);
}

static uint32_t qpn_bucket(const struct ur_cm *cm, const struct cm_id *id)
{
	return bucket(cm, &id->peer_gid, id->peer_guid, id->rqpn.v);
}

static bool is_peer(const struct cm_id *id, const struct ur_gid *gid, uint64_t guid)
{
	return id->peer_guid == guid && ur_gid_eq(&id->peer_gid, gid);
}

void cm_peer_insert(struct ur_cm *cm, struct cm_id *id)
{
	struct cm_id **head = &cm->peers[peer_bucket(cm, id)];

	UR_ASSERT(!id->in_peer);
	id->peer_next = *head;
	*head = id;
	id->in_peer = true;
}

static void peer_remove(struct ur_cm *cm, struct cm_id *id)
{
	struct cm_id **at = &cm->peers[peer_bucket(cm, id)];

	while (*at != id)
		at = &(*at)->peer_next;
	*at = id->peer_next;
	id->in_peer = false;
}

/* CM-PEER-01 */
struct cm_id *cm_peer_find(const struct ur_cm *cm, const struct ur_gid *gid, uint64_t guid,
			   uint32_t comm_id)
{
	struct cm_id *id = cm->peers[bucket(cm, gid, guid, comm_id)];

	while (id && (id->sidr || id->remote_comm_id != comm_id || !is_peer(id, gid, guid)))
		id = id->peer_next;
	return id;
}

struct cm_id *cm_peer_find_sidr(const struct ur_cm *cm, const struct ur_gid *gid, uint32_t req_id)
{
	struct cm_id *id = cm->peers[bucket_sidr(cm, gid, req_id)];

	while (id && (!id->sidr || id->remote_comm_id != req_id || !ur_gid_eq(&id->peer_gid, gid)))
		id = id->peer_next;
	return id;
}

void cm_qpn_insert(struct ur_cm *cm, struct cm_id *id)
{
	struct cm_id **head = &cm->qpns[qpn_bucket(cm, id)];

	UR_ASSERT(!id->in_qpn);
	id->qpn_next = *head;
	*head = id;
	id->in_qpn = true;
}

static void qpn_remove(struct ur_cm *cm, struct cm_id *id)
{
	struct cm_id **at = &cm->qpns[qpn_bucket(cm, id)];

	while (*at != id)
		at = &(*at)->qpn_next;
	*at = id->qpn_next;
	id->in_qpn = false;
}

struct cm_id *cm_qpn_find(const struct ur_cm *cm, const struct ur_gid *gid, uint64_t guid,
			  struct ur_qpn qpn)
{
	struct cm_id *id = cm->qpns[bucket(cm, gid, guid, qpn.v)];

	while (id && (id->rqpn.v != qpn.v || !is_peer(id, gid, guid)))
		id = id->qpn_next;
	return id;
}

struct cm_id *cm_qpn_twin(const struct ur_cm *cm, const struct cm_id *id)
{
	struct cm_id *at = cm->qpns[qpn_bucket(cm, id)];

	while (at &&
	       (at == id || at->rqpn.v != id->rqpn.v || !is_peer(at, &id->peer_gid, id->peer_guid)))
		at = at->qpn_next;
	return at;
}

static uint32_t next_handle(const struct ur_cm *cm, const struct cm_id *id)
{
	uint32_t idx = (uint32_t)(id - cm->ids);
	uint32_t handle = id->handle;

	/* Neither a handle nor a communication id may be 0, which means "none" in a REJ. */
	do {
		handle = ((handle >> cm->idx_bits) + 1) << cm->idx_bits | idx;
		handle &= UINT32_MAX >> cm->attr.prefix.bits;
	} while (handle >> cm->idx_bits == 0 || handle == cm->no_handle);
	return handle;
}

struct cm_id *cm_id_alloc(struct ur_cm *cm)
{
	struct cm_id *id = TAILQ_FIRST(&cm->free);
	uint32_t handle;

	if (!id) {
		struct cm_id *oldest = TAILQ_FIRST(&cm->linger);

		if (!oldest)
			return NULL;
		cm_set_state(cm, oldest, UR_CM_ST_FREE);
		id = oldest;
	}
	handle = next_handle(cm, id);
	TAILQ_REMOVE(&cm->free, id, link);
	memset(id, 0, sizeof(*id));
	id->handle = handle;
	id->cm_qpn = ur_qpn(UR_GSI_QPN);
	cm->ids_in_use++;
	return id;
}

static void count_pending(struct ur_cm *cm, const struct cm_id *id, int by)
{
	if (!by)
		return;
	cm->pending[id->sidr ? UR_CM_KIND_SIDR : UR_CM_KIND_CONN] += (uint32_t)by;
	*share_of(cm, &id->peer_gid) += (uint32_t)by;
}

void cm_set_state(struct ur_cm *cm, struct cm_id *id, enum ur_cm_state to)
{
	uint8_t from = id->state;

	UR_ASSERT(allowed[from] & 1u << to);
	count_pending(cm, id, cm_is_pending(to) - cm_is_pending(from));
	if (from == UR_CM_ST_LINGER)
		TAILQ_REMOVE(&cm->linger, id, link);
	if (to == UR_CM_ST_LINGER)
		TAILQ_INSERT_TAIL(&cm->linger, id, link);
	/* From now on the peer may use the QPN for another connection. */
	if (id->in_qpn && (to == UR_CM_ST_TIMEWAIT || to == UR_CM_ST_LINGER))
		qpn_remove(cm, id);
	cm_timer_stop(cm, id);
	cm->counters.established += to == UR_CM_ST_ESTABLISHED;
	id->state = (uint8_t)to;
	if (to == UR_CM_ST_FREE) {
		if (id->in_peer)
			peer_remove(cm, id);
		UR_ASSERT(!id->in_qpn);
		TAILQ_INSERT_TAIL(&cm->free, id, link);
		cm->ids_in_use--;
	}
}

static struct cm_id *by_handle(const struct ur_cm *cm, uint32_t handle)
{
	uint32_t idx = handle & (uint32_t)((1ull << cm->idx_bits) - 1);
	struct cm_id *id;

	if (idx >= cm->limits.max_ids)
		return NULL;
	id = &cm->ids[idx];
	return id->state != UR_CM_ST_FREE && id->handle == handle ? id : NULL;
}

struct cm_id *cm_id_get(const struct ur_cm *cm, struct ur_cm_id handle)
{
	struct cm_id *id = by_handle(cm, handle.v);

	return id && !id->muted ? id : NULL;
}

struct cm_id *cm_id_by_comm(const struct ur_cm *cm, uint32_t comm_id)
{
	if ((uint64_t)comm_id >> cm_id_bits(cm) != cm->attr.prefix.value)
		return NULL;
	return by_handle(cm, ur_speck_decrypt(&cm->cipher, comm_id));
}

static uint32_t *service_bucket(const struct ur_cm *cm, uint64_t service_id)
{
	return &cm->services[(uint32_t)mix(service_id) & cm->service_mask];
}

struct cm_listener *cm_listener_find(const struct ur_cm *cm, enum ur_cm_kind kind,
				     uint64_t service_id)
{
	uint32_t at = *service_bucket(cm, service_id);

	while (at && (cm->listeners[at - 1].service_id != service_id ||
		      cm->listeners[at - 1].kind != kind))
		at = cm->listeners[at - 1].next;
	return at ? &cm->listeners[at - 1] : NULL;
}

int ur_cm_listen(struct ur_cm *cm, enum ur_cm_kind kind, uint64_t service_id, void *ctx)
{
	uint32_t *head = service_bucket(cm, service_id);
	uint32_t at = cm->free_listener;
	struct cm_listener *listener;

	if (cm_listener_find(cm, kind, service_id))
		return -EEXIST;
	if (!at)
		return -ENOSPC;
	listener = &cm->listeners[at - 1];
	cm->free_listener = listener->next;
	*listener = (struct cm_listener){
		.kind = kind, .service_id = service_id, .ctx = ctx, .next = *head, .used = true};
	*head = at;
	return 0;
}

int ur_cm_unlisten(struct ur_cm *cm, enum ur_cm_kind kind, uint64_t service_id)
{
	struct cm_listener *listener = cm_listener_find(cm, kind, service_id);
	uint32_t *at = service_bucket(cm, service_id);
	uint32_t mine;

	if (!listener)
		return -ENOENT;
	mine = (uint32_t)(listener - cm->listeners) + 1;
	while (*at != mine)
		at = &cm->listeners[*at - 1].next;
	*at = listener->next;
	listener->used = false;
	listener->next = cm->free_listener;
	cm->free_listener = mine;
	return 0;
}
