/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/engine_priv.h"
#include "engine/inside.h"
#include "engine/mgmt_priv.h"
#include "engine/prefetch.h"
#include "engine/verbs.h"

#include <errno.h>

#include "transport/admission.h"
#include "transport/cnp.h"
#include "transport/dest.h"
#include "wire/assert.h"
#include "wire/bits.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/predict.h"

_Static_assert(UR_ENGINE_TICK_SHIFT == UR_WHEEL_TICK_SHIFT, "engine.h repeats it");

#define FIRST_TIER 64 /* packets of a gap: a message of 64 KB at a PMTU of 1024 */

static void ignore_completion(void *ctx, struct ur_cq *cq)
{
	(void)ctx, (void)cq;
}

static void ignore_async(void *ctx, enum ibv_event_type type, void *user)
{
	(void)ctx, (void)type, (void)user;
}

static void ignore_cross_worker(void *ctx, struct ur_cq *cq, const struct ibv_wc *wc,
				bool solicited)
{
	(void)ctx, (void)cq, (void)wc, (void)solicited;
}

static struct ur_sink sink_of(const struct ur_sink *sink)
{
	return (struct ur_sink){
		.ctx = sink->ctx,
		.completion = sink->completion ? sink->completion : ignore_completion,
		.async = sink->async ? sink->async : ignore_async,
		.cross_worker = sink->cross_worker ? sink->cross_worker : ignore_cross_worker,
	};
}

/* Offsets of the parts in the engine's memory, bytes. */
struct layout {
	size_t slots, paths, groups, reorder, read_gaps, loss, spray, dests, admission, cm, mgmt,
		total;
};

static bool has_cm(const struct ur_limits *l)
{
	return l->worker == 0 && l->cm.max_ids;
}

static struct layout layout_of(const struct ur_limits *l)
{
	struct layout at;

	at.slots = ur_align64(sizeof(struct ur_engine));
	at.paths = at.slots + ur_align64(ur_slots_size(l->max_qp));
	at.groups = at.paths + ur_path_pool_size(l->max_qp);
	at.reorder = at.groups + ur_groups_size(l->attachments);
	at.read_gaps = at.reorder +
		       ur_align64(ur_reorder_pool_size(l->reorder_slots, l->reorder_slot_bytes,
						       l->reorder_contexts));
	at.loss = at.read_gaps + ur_align64(ur_read_gap_pool_size(l->read_gaps));
	at.spray = at.loss + (size_t)l->loss_slabs * l->loss_slab_bytes;
	at.dests = at.spray + ur_align64(ur_spray_pool_size(l->spray_contexts));
	at.admission = at.dests + (l->destinations ? ur_dests_size(l->destinations, l->max_qp) : 0);
	at.cm = at.admission + ur_admission_size(l->admission);
	at.mgmt = at.cm + (has_cm(l) ? ur_align64(ur_cm_size(&l->cm)) : 0);
	at.total = at.mgmt + ur_mgmt_size(l);
	return at;
}

size_t ur_engine_size(const struct ur_limits *l)
{
	return layout_of(l).total;
}

struct ur_engine *ur_engine_init(void *memory, const struct ur_engine_attr *attr, uint64_t now_ns)
{
	struct ur_engine *e = memory;
	const struct ur_limits *l = &attr->limits;
	struct layout at = layout_of(l);
	uint8_t *m = memory;
	struct ur_adm_attr admission;
	struct ur_engine_qos qos;
	uint32_t first = l->loss_first ? l->loss_first : FIRST_TIER;
	uint32_t most = ur_engine_loss_window(attr);

	UR_ASSERT(((uintptr_t)memory & 63) == 0);
	UR_ASSERT(attr->window >= 4 && (attr->window & (attr->window - 1)) == 0);
	memset(e, 0, sizeof(*e));
	e->core.mem = attr->mem;
	e->core.sink = sink_of(&attr->sink);
	e->core.worker = l->worker;
	e->core.no_prediction = attr->no_prediction;
	e->core.keeps_ports = attr->keeps_ports;
	e->core.no_plb = attr->no_plb;
	ur_wheel_init(&e->core.wheel, now_ns);
	ur_sched_init(&e->core.settle);
	ur_sched_init(&e->core.acks);
	ur_sched_init(&e->core.cnps);
	ur_engine_qos_default(&qos);
	qos.vl.mtu_shift = attr->mtu_shift;
	if (attr->qos)
		qos = *attr->qos;
	ur_vl_init(&e->core.vl, &qos.vl);
	ur_emux_init(&e->core.emux, &qos.sched, &e->core.vl);
	e->time_wait_ns = attr->time_wait_ns;
	e->window = attr->window;
	e->ackreq_every = attr->ackreq_every;
	e->mtu_shift = attr->mtu_shift;
	ur_slots_init(&e->slots, m + at.slots, l->max_qp, l->workers, l->worker, l->prefix);
	ur_path_pool_init(&e->core.paths, m + at.paths, l->max_qp, attr->random);
	ur_groups_init(&e->groups, m + at.groups, l->attachments);
	e->last_doorbell = e->slots.qps;
	ur_reorder_pool_init(&e->core.reorder, m + at.reorder, l->reorder_slots,
			     l->reorder_slot_bytes, l->reorder_contexts);
	ur_read_gap_pool_init(&e->core.read_gaps, m + at.read_gaps, l->read_gaps);
	ur_slabs_init(&e->core.loss, l->loss_slab_bytes, l->loss_slabs_max);
	ur_engine_add_slabs(e, m + at.loss, l->loss_slabs);
	ur_ooo_pool_init(&e->core.ooo, &e->core.loss, first, most, l->max_sge);
	ur_rtx_pool_init(&e->core.rtx, &e->core.loss, first, most);
	ur_spray_pool_init(&e->core.spray, m + at.spray, l->spray_contexts);
	if (l->destinations)
		ur_dests_init(&e->core, m + at.dests, l->destinations, attr->pacing, e->slots.qps,
			      l->max_qp);
	ur_adm_attr_default(&admission);
	ur_admission_init(&e->core, m + at.admission, l->admission,
			  attr->admission ? attr->admission : &admission, attr->random);
	if (has_cm(l))
		e->cm = ur_cm_init(m + at.cm, &l->cm, &attr->cm);
	e->mgmt_deadline_ns = UR_NEVER;
	if (ur_mgmt_size(l))
		ur_mgmt_init(e, m + at.mgmt, attr, now_ns);
	return e;
}

/* LOSS-SLAB-03 */
uint32_t ur_engine_wanted_slabs(const struct ur_engine *e)
{
	return ur_slabs_wanted(&e->core.loss);
}

uint32_t ur_engine_add_slabs(struct ur_engine *e, void *memory, uint32_t cnt)
{
	struct ur_slabs *s = &e->core.loss;
	uint32_t n = cnt < s->max_cnt - s->cnt ? cnt : s->max_cnt - s->cnt;

	for (uint32_t i = 0; i < n; i++)
		ur_slabs_add(s, (uint8_t *)memory + (size_t)i * s->slab_bytes);
	return n;
}

struct ur_core *ur_engine_core(struct ur_engine *e)
{
	return &e->core;
}

struct ur_cm *ur_engine_cm(struct ur_engine *e)
{
	return e->cm;
}

/* ---- input ---- */

/* The P_Keys name the same partition and one of the two is a full member (IBA 10.9.3). */
static bool pkey_matches(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000);
}

/* A packet for QP0 or QP1. */
static enum ur_drop mad_input(struct ur_engine *e, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_path_attr back = {
		.has_vlan = p->has_vlan,
		.vlan_tci = p->vlan_tci,
		.src = p->ip.dst,
		.dst = p->ip.src,
		.tos = p->ip.tos & 0xfc,
		.ttl = 64,
	};
	struct ur_cm_src src = {.sgid = p->ip.src, .dgid = p->ip.dst, .sqpn = p->deth.sqpn};
	bool gsi = p->bth.dqpn.v == GSI_QPN, for_cm;

	if (gsi ? !e->cm && !e->mgmt : !e->mgmt)
		return UR_DROP_QPN;
	if (p->bth.opcode != UR_UD_SEND_ONLY)
		return UR_DROP_QP_TYPE;
	/* Neither key counts at QP0 (IBA 10.2.4, 10.9.1.2). */
	if (gsi && !pkey_matches(p->bth.pkey, GSI_PKEY))
		return UR_DROP_PKEY;
	if (gsi && p->deth.qkey != GSI_QKEY)
		return UR_DROP_QKEY;
	if (p->payload_len != UR_MAD_BYTES)
		return UR_DROP_MAD;
	memcpy(back.smac, p->dmac, 6);
	memcpy(back.dmac, p->smac, 6);
	back.sport = ur_path_back_sport(p->sport);
	for_cm = !e->mgmt || (gsi && p->payload[1] == UR_MAD_CLASS_CM);
	if (!for_cm) {
		back.tos = UR_MAD_TOS;
		back.vlan_tci = (uint16_t)(p->vlan_tci & 0xfff) | UR_MAD_PRIORITY << 13;
		ur_path_init(&src.path, &back);
		return ur_mgmt_packet(e, p, &src.path, now_ns);
	}
	/* Connections are made between addresses. */
	if (!e->cm || ur_mad_is_mgmt_mac(p->dmac))
		return UR_DROP_QPN;
	ur_path_init(&src.path, &back);
	return ur_cm_input(e->cm, p->payload, &src, now_ns);
}

static inline bool takes_packets(const struct ur_qp *qp)
{
	return qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT && qp->state != IBV_QPS_ERR;
}

/* EXT-MODE-01: packets of the other mode are never handled. */
static __attribute__((noinline, cold)) enum ur_drop wrong_transport(const struct ur_qp *qp,
								    uint8_t transport)
{
	if (transport != qp->ops->other_transport)
		return UR_DROP_QP_TYPE;
	return takes_packets(qp) ? UR_DROP_MODE : UR_DROP_QP_STATE;
}

/* RC-IN-01: the conditions that a packet must meet before a QP handles it. */
static enum ur_drop check_identity(const struct ur_qp *qp, const struct ur_packet *p)
{
	const struct ur_qp_ops *ops = qp->ops;
	uint8_t transport = p->bth.opcode & UR_TRANSPORT_MASK;

	if (__builtin_expect(transport != ops->transport, 0))
		return wrong_transport(qp, transport);
	if (!takes_packets(qp))
		return UR_DROP_QP_STATE;
	if (!pkey_matches(p->bth.pkey, qp->pkey))
		return UR_DROP_PKEY;
	if (ops->connected && !ur_path_leads_to(qp->path, &p->ip))
		return UR_DROP_PEER;
	return UR_DROP_NONE;
}

/*
 * IN-ADDR-02. An answer goes to the packet's source, from its destination, so both must be addresses
 * of a single host. The destination's IP address is already known to be ours.
 */
static bool is_from_host(const struct ur_packet *p)
{
	static const uint8_t local[15]; /* of :: and ::1 */
	const uint8_t *src = p->ip.src.b;

	if (p->smac[0] & 1)
		return false;
	if (p->ip.v6)
		return src[0] != 0xff && memcmp(src, local, sizeof(local)) != 0;
	/* 0.0.0.0/8, 127.0.0.0/8, multicast, reserved and broadcast addresses belong to no host. */
	return src[12] != 0 && src[12] != 127 && src[12] < 224;
}

static bool is_between_hosts(const struct ur_packet *p)
{
	return !(p->dmac[0] & 1) && is_from_host(p);
}

/* IN-ADDR-01: an IPv6 header must not yield an IPv4 peer's GID, nor an IPv4 group. */
static bool is_mapped(const struct ur_packet *p)
{
	return p->ip.v6 && (ur_gid_is_ipv4(&p->ip.src) || ur_gid_is_ipv4(&p->ip.dst));
}

/* MCAST-ADDR-01: Ethernet, IP and BTH agree that a group is meant. */
static bool is_to_group(const struct ur_packet *p)
{
	uint8_t mac[6];

	if (!ur_gid_is_multicast(&p->ip.dst) || p->bth.dqpn.v != UR_GROUP_QPN || is_mapped(p))
		return false;
	ur_gid_group_mac(&p->ip.dst, mac);
	return memcmp(p->dmac, mac, 6) == 0 && is_from_host(p);
}

/* Congestion experienced. */
static inline bool is_marked(const struct ur_packet *p)
{
	return (p->ip.tos & 3) == 3;
}

/* CNP-RECV-01 */
static enum ur_drop cnp_input(struct ur_qp *qp, const struct ur_packet *p, uint64_t now_ns)
{
	if (!qp->ops->connected || qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT ||
	    !ur_path_leads_to(qp->path, &p->ip))
		return UR_DROP_PEER;
	if (ur_dest_on_cnp(qp, now_ns))
		qp->core->cnt.rp_cnp_handled++;
	else
		qp->core->cnt.rp_cnp_ignored++;
	return UR_DROP_NONE;
}

void ur_engine_prefetch(const struct ur_engine *e, const uint8_t *frame, size_t len)
{
	uint8_t opcode;
	struct ur_qpn qpn;
	const struct ur_qp *qp;

	if (!ur_packet_peek(frame, len, &opcode, &qpn))
		return;
	qp = ur_slots_at(&e->slots, qpn);
	if (!(ur_op_flags(opcode) & (UR_OP_RESPONSE | UR_OP_NOTIFY))) {
		ur_prefetch_receiver(qp);
		return;
	}
	ur_prefetch_lines(qp, 0, offsetof(struct ur_qp, ack_node));
	ur_prefetch_lines(qp, offsetof(struct ur_qp, sq_queue),
			  (opcode & UR_TRANSPORT_MASK) == UR_TRANSPORT_EXT ? UR_EXT_SENDING_END
									   : UR_GBN_SENDING_END);
}

static inline enum ur_drop count_input(struct ur_core *core, enum ur_drop drop,
				       uint32_t frame_bytes)
{
	core->cnt.drops[drop]++;
	if (drop == UR_DROP_NONE) {
		core->cnt.rx_packets++;
		core->cnt.rx_bytes += frame_bytes;
	}
	return drop;
}

enum ur_drop ur_engine_input(struct ur_engine *e, const struct ur_packet *p, uint64_t now_ns)
{
	struct ur_core *core = &e->core;
	struct ur_qp *qp = ur_slots_find(&e->slots, p->bth.dqpn);
	enum ur_drop drop;

	if (is_marked(p))
		core->cnt.np_ecn_marked_roce_packets++;
	if (is_mapped(p)) {
		drop = UR_DROP_PEER;
	} else if (__builtin_expect(!is_between_hosts(p), 0)) {
		return e->mgmt && ur_mgmt_is_hop(p)
			       ? count_input(core, mad_input(e, p, now_ns), p->frame_len)
			       : ur_engine_input_group(e, p, false, now_ns);
	} else if (p->bth.dqpn.v <= GSI_QPN) {
		drop = mad_input(e, p, now_ns);
	} else if (p->op & UR_OP_CNP) {
		drop = qp ? cnp_input(qp, p, now_ns) : UR_DROP_QPN;
	} else if (!qp) {
		drop = UR_DROP_QPN;
	} else if ((drop = check_identity(qp, p)) == UR_DROP_NONE) {
		drop = ur_qp_input(qp, p, now_ns);
		/* CNP-SEND-02: not for packets that were dropped. */
		if (__builtin_expect(is_marked(p), 0) && drop == UR_DROP_NONE && qp->ops->connected)
			ur_cnp_on_ce(qp, now_ns);
	}
	return count_input(core, drop, p->frame_len);
}

/* MCAST-LOOP-02. False: the packet is not for this engine's copy of the attachment. */
static bool is_delivered(const struct ur_group_entry *a, const struct ur_packet *p, bool own)
{
	return a->qp && !(own && a->skip_own && p->deth.sqpn.v == a->qpn.v);
}

/* MCAST-RECV-01 */
enum ur_drop ur_engine_input_group(struct ur_engine *e, const struct ur_packet *p, bool own,
				   uint64_t now_ns)
{
	struct ur_core *core = &e->core;
	const struct ur_group_entry *a =
		is_to_group(p) ? ur_groups_first(&e->groups, &p->ip.dst) : NULL;
	enum ur_drop result = UR_DROP_NONE;
	bool taken = false;

	if (!a)
		return count_input(core, UR_DROP_GROUP, p->frame_len);
	for (; a; a = ur_groups_next(&e->groups, a)) {
		enum ur_drop drop;

		if (!is_delivered(a, p, own))
			continue;
		drop = check_identity(a->qp, p);
		if (drop == UR_DROP_NONE)
			drop = ur_qp_input(a->qp, p, now_ns);
		taken |= drop == UR_DROP_NONE;
		if (drop == UR_DROP_NONE)
			continue;
		core->cnt.drops[drop]++;
		result = drop;
	}
	return taken ? count_input(core, UR_DROP_NONE, p->frame_len) : result;
}

bool ur_engine_has_groups(const struct ur_engine *e)
{
	return e->groups.cnt;
}

bool ur_engine_has_group(const struct ur_engine *e, const struct ur_gid *group)
{
	return ur_groups_first(&e->groups, group);
}

/* PREDICT-DECODE-01. RC-IN-01 for a packet that came from the peer. An equal P_Key of a full member matches. */
static inline bool is_for(const struct ur_qp *qp, const uint8_t *bth)
{
	return (bth[0] & UR_TRANSPORT_MASK) == qp->ops->transport && takes_packets(qp) &&
	       (qp->pkey & 0x8000) && (ur_load32(bth) & UR_PREDICT_PKEY) == qp->pkey;
}

/*
 * A frame that passed ur_predict_path() and is not the request that was predicted: only what follows its UDP header is
 * decoded. False: it is for ur_packet_decode() and ur_engine_input().
 */
static __attribute__((noinline)) bool input_from_peer(struct ur_qp *qp, const uint8_t *frame,
						      uint32_t bytes, uint64_t now_ns,
						      enum ur_drop *drop)
{
	struct ur_packet p;

	if (!is_for(qp, frame + UR_PREDICT_BTH) || !ur_predict_decode(frame, bytes, &p) ||
	    !ur_predict_icrc(frame, bytes))
		return false;
	*drop = ur_qp_input(qp, &p, now_ns);
	qp->core->cnt.rx_path_predicted++;
	count_input(qp->core, *drop, UR_PREDICT_BTH + bytes);
	return true;
}

bool ur_engine_input_predicted(struct ur_engine *e, const uint8_t *frame, size_t len,
			       uint64_t now_ns, enum ur_drop *drop)
{
	struct ur_core *core = &e->core;
	struct ur_qp *qp;
	uint32_t bytes;

	*drop = UR_DROP_NONE;
	if (len < UR_PREDICT_BYTES || core->no_prediction)
		return false;
	qp = ur_slots_find(&e->slots, ur_qpn(ur_predict_low24(frame + UR_PREDICT_BTH + 4)));
	if (!qp || !ur_predict_path(qp->path, frame, len, &bytes))
		return false;
	if (ur_predict_opcode(frame[UR_PREDICT_BTH]) &&
	    qp->ops->predicted(qp, frame, bytes, now_ns)) {
		ur_qp_after_request(qp);
		core->cnt.rx_predicted++;
	} else if (ur_predict_answer(frame[UR_PREDICT_BTH]) &&
		   qp->ops->predicted_answer(qp, frame, bytes, now_ns)) {
		core->cnt.rx_path_predicted++;
	} else {
		return input_from_peer(qp, frame, bytes, now_ns, drop);
	}
	count_input(core, UR_DROP_NONE, UR_PREDICT_BTH + bytes);
	return true;
}

enum ur_drop ur_engine_input_frame(struct ur_engine *e, const uint8_t *frame, size_t len,
				   uint64_t now_ns)
{
	struct ur_packet p;
	enum ur_drop drop;

	if (ur_engine_input_predicted(e, frame, len, now_ns, &drop))
		return drop;
	drop = ur_packet_decode(frame, len, &p);
	if (drop == UR_DROP_NONE && !ur_icrc_ok(frame, &p))
		drop = UR_DROP_ICRC;
	if (drop == UR_DROP_NONE)
		return ur_engine_input(e, &p, now_ns);
	e->core.cnt.drops[drop]++;
	return drop;
}

/* ---- time ---- */

uint64_t ur_engine_next_deadline(const struct ur_engine *e)
{
	uint64_t wheel = ur_wheel_next(&e->core.wheel);
	uint64_t cm = e->cm ? ur_cm_next_deadline(e->cm) : UR_NEVER;

	wheel = e->mgmt_deadline_ns < wheel ? e->mgmt_deadline_ns : wheel;
	/* Packets have left whose requests complete at the next call. */
	if (e->core.settle.ready_cnt)
		return 0;
	return wheel < cm ? wheel : cm;
}

void ur_engine_expire(struct ur_engine *e, uint64_t now_ns)
{
	struct ur_timer *t;

	ur_engine_complete_sent(e);
	while ((t = ur_wheel_expire(&e->core.wheel, now_ns)))
		switch (t->kind) {
		case UR_TIMER_DEST:
			ur_dest_timer(&e->core, UR_DEST_OF(t), now_ns);
			break;
		case UR_TIMER_POOL:
			ur_admission_timer(&e->core, t, now_ns);
			break;
		case UR_TIMER_SST:
			ur_admission_entry_timer(&e->core, t, now_ns);
			break;
		default:
			ur_qp_timer(UR_QP_OF(t, timer), now_ns);
		}
	if (e->cm)
		ur_cm_expire(e->cm, now_ns);
	if (__builtin_expect(now_ns >= e->mgmt_deadline_ns, 0))
		ur_mgmt_expire(e, now_ns);
}

/* ---- commands ---- */

static void remap(struct ur_qp *qp, void *ctx)
{
	ur_emux_remap(ctx, &qp->sq_queue);
	ur_emux_remap(ctx, &qp->rsp_queue);
}

void ur_engine_qos_default(struct ur_engine_qos *qos)
{
	ur_vl_attr_default(&qos->vl);
	qos->sched = (struct ur_emux_attr){UR_EMUX_RR, UR_EMUX_WQES, UR_EMUX_BURST};
}

/* SCHED-LIVE-01 */
void ur_engine_set_qos(struct ur_engine *e, const struct ur_engine_qos *qos)
{
	ur_vl_init(&e->core.vl, &qos->vl);
	ur_emux_change(&e->core.emux, &qos->sched);
	if (e->mgmt)
		e->mgmt->qos = *qos;
	ur_engine_for_each_qp(e, remap, &e->core.emux);
}

void ur_engine_port_dry(struct ur_engine *e, uint64_t dry_ns)
{
	e->core.cc.dry_ns = dry_ns;
}

bool ur_engine_owes(const struct ur_engine *e)
{
	return e->core.acks.ready_cnt;
}

void ur_engine_complete(struct ur_engine *e, struct ur_cq *cq, const struct ibv_wc *wc,
			bool solicited)
{
	ur_core_complete(&e->core, cq, wc, solicited);
}

bool ur_engine_wants_ecn(enum ur_cc_mode mode)
{
	return ur_cc_ops_of(mode)->ecn;
}

void ur_engine_set_link(struct ur_engine *e, uint64_t link_bps)
{
	ur_cc_set_link(&e->core.cc, link_bps);
}

static void flush_acks(struct ur_qp *qp, void *ctx)
{
	(void)ctx;
	ur_engine_flush_qp_acks(qp);
}

void ur_engine_flush_acks(struct ur_engine *e)
{
	ur_engine_for_each_qp(e, flush_acks, NULL);
}

struct ur_engine_objects ur_engine_objects(struct ur_engine *e, uint64_t now_ns)
{
	return (struct ur_engine_objects){e->slots.live, ur_slots_time_wait(&e->slots, now_ns)};
}
