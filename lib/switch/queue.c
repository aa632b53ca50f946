/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue.h"

#include "switch/hash.h"
#include "switch/inside.h"
#include "wire/assert.h"

#define NS_PER_S 1000000000u

void ur_switch_limit_init(struct ur_switch_limit *l, uint32_t per_s, uint32_t burst)
{
	*l = (struct ur_switch_limit){0};
	if (!per_s)
		return;
	l->each_ns = per_s < NS_PER_S ? NS_PER_S / per_s : 1;
	l->burst_ns = l->each_ns * burst;
}

/* ---- input ---- */

/* SWITCH-VLAN-02: how a frame of VLAN `vid` differs on a port from how it was received. */
static uint8_t edits_for(const struct ur_switch_port_attr *out, const struct ur_switch_headers *h,
			 uint16_t vid)
{
	bool names_vlan = h->tagged && h->tci & 0xfff;

	if (!out->trunk)
		return names_vlan ? UR_SWITCH_POP : 0;
	if (vid == out->vid || names_vlan)
		return 0;
	return h->tagged ? UR_SWITCH_RETAG : UR_SWITCH_PUSH;
}

static uint64_t next_random(struct ur_switch *sw)
{
	sw->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
	return ur_switch_hash(sw->random, sw->attr.seed);
}

/* SWITCH-ECN-01 */
static bool marks(struct ur_switch *sw, const struct ur_switch_port *p, uint32_t bytes)
{
	uint64_t chance;

	if (bytes < p->attr.ecn_min_bytes)
		return false;
	if (bytes >= p->attr.ecn_max_bytes)
		return true;
	chance = (bytes - p->attr.ecn_min_bytes) * p->out.ecn_slope >> 16;
	return (uint32_t)next_random(sw) < chance;
}

/*
 * SWITCH-BOUND-02: a sender's frames at one receiver are at most as many as its references that are free (Choudhury
 * and Hahne's dynamic threshold). So k receivers that take nothing hold k / (k + 1) of them. In the same way, k senders
 * leave 1 / (k + 1) of the bytes of a port's VL15 to the others.
 */
static uint32_t free_of(uint32_t limit, uint32_t held)
{
	return limit > held ? limit - held : 0;
}

/* SWITCH-BOUND-01. UR_SWITCH_DROP_CNT: the reference may be queued. */
static enum ur_switch_drop refusal_mgmt(const struct ur_switch *sw, const struct ur_switch_port *p,
					uint8_t in, uint32_t bytes)
{
	const struct ur_switch_limits *l = &sw->attr.limits;
	uint32_t share = in ? free_of(l->mgmt_frames, sw->port[in].in.held_mgmt)
			    : (l->frames + l->mgmt_frames) / l->ports;

	uint32_t room = free_of(sw->attr.vl15_bytes, p->out.lane[UR_SWITCH_VL15].bytes);

	if (bytes > room || p->out.vl15_from[in] + bytes > room)
		return UR_SWITCH_DROP_QUEUE_FULL;
	return p->out.mgmt_from[in] < share ? UR_SWITCH_DROP_CNT : UR_SWITCH_DROP_NO_BUFFER;
}

bool ur_switch_has_room(const struct ur_switch_port *p, unsigned vl, uint32_t bytes, uint8_t credit)
{
	const struct ur_switch_out *o = &p->out;

	return credit ||
	       (free_of(o->lane[vl].bytes, o->credit_bytes[vl]) + bytes <= p->attr.lane_bytes &&
		free_of(o->lane[vl].cnt, o->credit_cnt[vl]) < o->lane_frames);
}

/* Of a frame without credit, or (SWITCH-CREDIT-01) with: its buffer is its own. */
static enum ur_switch_drop refusal(const struct ur_switch *sw, const struct ur_switch_port *p,
				   const struct ur_switch_way *way, uint32_t bytes, unsigned vl,
				   bool waits)
{
	const struct ur_switch_port *from = &sw->port[way->in];
	uint8_t in = way->in;
	uint32_t share = free_of(sw->attr.limits.frames - from->attr.credit_frames,
				 from->in.held - from->credit.held);

	if (way->credit)
		return UR_SWITCH_DROP_CNT;
	if (!waits && !ur_switch_has_room(p, vl, bytes, 0))
		return UR_SWITCH_DROP_QUEUE_FULL;
	return p->out.data_from[in] < share ? UR_SWITCH_DROP_CNT : UR_SWITCH_DROP_NO_BUFFER;
}

bool ur_switch_enqueue(struct ur_switch *sw, uint8_t out, const struct ur_switch_frame *frame,
		       const struct ur_switch_headers *h, const struct ur_switch_way *way,
		       uint64_t now_ns)
{
	struct ur_switch_port *p = &sw->port[out];
	struct ur_switch_in *in = &sw->port[way->in].in;
	uint8_t edits = way->mgmt ? 0 : edits_for(&p->attr, h, way->vid);
	int vl = way->mgmt ? UR_SWITCH_VL15 : ur_vl_of_sl(&p->out.vl, way->sl);
	uint32_t bytes = frame->len, i;
	struct ur_switch_held *held = NULL;
	bool behind = false;
	struct ur_switch_list *lane;
	enum ur_switch_drop why;

	bytes += edits & UR_SWITCH_PUSH ? UR_VLAN_BYTES : 0;
	bytes -= edits & UR_SWITCH_POP ? UR_VLAN_BYTES : 0;
	if (vl < 0) {
		ur_switch_drop(sw, out, 0, UR_SWITCH_DROP_NO_SERVICE);
		return false;
	}
	lane = &p->out.lane[vl];
	if (sw->adm.pool && !way->mgmt && !way->flooded && h->op & UR_OP_XTH)
		held = ur_switch_adm_holds(sw, out, h, way->in, now_ns, &behind);
	why = way->mgmt ? refusal_mgmt(sw, p, way->in, bytes)
			: refusal(sw, p, way, bytes, (unsigned)vl, held != NULL);
	if (p->credit.stalled >> vl & 1)
		why = UR_SWITCH_DROP_NO_CREDIT;
	/* The limits leave a reference for whatever they let pass; memory does not hang on that alone. */
	if (behind || !sw->free.cnt)
		why = UR_SWITCH_DROP_NO_BUFFER;
	if (bytes > p->attr.max_frame)
		why = UR_SWITCH_DROP_TOO_LONG;
	if (why != UR_SWITCH_DROP_CNT) {
		ur_switch_drop(sw, out, (unsigned)vl, why);
		if (held)
			ur_switch_adm_refused(sw, held);
		return false;
	}
	if (!way->mgmt && ur_switch_can_mark(h) && marks(sw, p, lane->bytes)) {
		edits |= UR_SWITCH_CE;
		p->counters.ce_marked++;
	}
	i = ur_switch_list_pop(sw->ref, &sw->free);
	sw->ref[i] = (struct ur_switch_ref){
		.frame = *frame,
		.in_ns = now_ns,
		/* PUSH keeps no priority: an untagged frame has none. */
		.tci = way->vid,
		.in_port = way->in,
		.out_port = out,
		.edits = edits,
		.vl = (uint8_t)vl,
		.credit = way->credit,
		.held = held != NULL,
		.mgmt = way->mgmt,
		.group = h->group_dst,
	};
	++*(way->mgmt ? &in->held_mgmt : &in->held);
	p->out.vl15_from[way->in] += way->mgmt ? bytes : 0;
	if (way->credit)
		ur_switch_credit_hold(sw, &sw->ref[i]);
	else
		++*(way->mgmt ? &p->out.mgmt_from[way->in] : &p->out.data_from[way->in]);
	if (held) {
		ur_switch_adm_held(sw, held, i, way->in);
		return true;
	}
	ur_switch_list_push(sw->ref, lane, i);
	if (vl == UR_SWITCH_VL15)
		sw->urgent |= UINT64_C(1) << out;
	else
		p->out.ready |= (uint16_t)(1u << vl);
	return true;
}

/* ---- output ---- */

/* Gives up reference `i`, which is in no list, to the caller. */
static void hand_out(struct ur_switch *sw, uint32_t i, unsigned vl, struct ur_switch_tx *tx)
{
	struct ur_switch_ref *r = &sw->ref[i];
	struct ur_switch_in *in = &sw->port[r->in_port].in;
	struct ur_switch_out *out = &sw->port[r->out_port].out;

	tx->frame = r->frame;
	tx->in_ns = r->in_ns;
	tx->in_port = r->in_port;
	tx->vl = (uint8_t)vl;
	tx->held = r->held;
	tx->skip = tx->head_len = 0;
	if (r->edits)
		tx->head_len = ur_switch_edit(r->frame.data, r->edits, r->tci, tx->head, &tx->skip);
	--*(r->mgmt ? &in->held_mgmt : &in->held);
	out->vl15_from[r->in_port] -= r->mgmt ? r->frame.len : 0;
	if (r->credit)
		ur_switch_credit_free(sw, r);
	else
		--*(r->mgmt ? &out->mgmt_from[r->in_port] : &out->data_from[r->in_port]);
	ur_switch_list_push(sw->ref, &sw->free, i);
}

/* SWITCH-VL15-01. The lane to send from, -1: none has a frame. */
static int pick(struct ur_switch_port *p)
{
	struct ur_switch_out *o = &p->out;
	unsigned ready = ur_switch_ready(p);

	if (o->lane[UR_SWITCH_VL15].cnt)
		return UR_SWITCH_VL15;
	if (!ready)
		return -1;
	/* A lane that is alone is not arbitrated (docs/design/virtual-lanes.md). */
	if (!(ready & (ready - 1)))
		return __builtin_ctz(ready);
	return (int)ur_vl_pick(&o->vl, (uint16_t)ready);
}

static void send_one(struct ur_switch *sw, struct ur_switch_port *p, unsigned vl,
		     struct ur_switch_tx *tx, uint64_t now_ns)
{
	struct ur_switch_out *o = &p->out;
	unsigned ready = ur_switch_ready(p);
	bool contended = vl != UR_SWITCH_VL15 && (ready & (ready - 1));
	uint32_t i = ur_switch_list_pop(sw->ref, &o->lane[vl]), bytes;

	if (sw->ref[i].group)
		p->counters.tx_group_packets++;
	hand_out(sw, i, vl, tx);
	bytes = tx->frame.len - tx->skip + tx->head_len;
	if (contended)
		ur_vl_charge(&o->vl, vl, bytes);
	if (!o->lane[vl].cnt) {
		o->ready &= (uint16_t) ~(1u << vl);
		sw->urgent &= ~((uint64_t)(vl == UR_SWITCH_VL15) << (p - sw->port));
	}
	if (ur_rate_limits(&o->rate))
		ur_rate_sent(&o->rate, bytes, now_ns);
	if (__builtin_expect(p->attr.credit_frames != 0, 0))
		ur_credit_sent(&p->credit, vl);
	p->counters.tx_packets++;
	p->counters.tx_bytes += bytes;
	p->counters.lane[vl].tx_packets++;
	p->counters.lane[vl].tx_bytes += bytes;
}

unsigned ur_switch_output(struct ur_switch *sw, uint8_t port, struct ur_switch_tx *tx, unsigned cap,
			  uint64_t now_ns)
{
	struct ur_switch_port *p = &sw->port[port];
	struct ur_switch_out *o = &p->out;
	uint64_t until = UINT64_MAX;
	unsigned n = 0;
	int vl = -1;

	if (now_ns >= sw->adm.next_ns)
		ur_switch_adm_expire(sw, now_ns);
	if (__builtin_expect(p->credit.closed != 0, 0))
		ur_switch_credit_expire(sw, port, now_ns);
	if (ur_rate_limits(&o->rate))
		until = p->counters.tx_bytes + UR_SWITCH_AHEAD_BYTES;
	/* SWITCH-RATE-01, SWITCH-AHEAD-01 */
	while (n < cap && (n < 2 || p->counters.tx_bytes < until) &&
	       ur_rate_lets(&o->rate, now_ns) && (vl = pick(p)) >= 0)
		send_one(sw, p, (unsigned)vl, &tx[n++], now_ns);
	if (sw->adm.pool)
		ur_switch_adm_move(sw, port);
	if (o->waits_ns)
		p->counters.wait_ns += now_ns - o->waits_ns;
	o->rate.behind = ur_switch_ready(p) || o->lane[UR_SWITCH_VL15].cnt;
	o->waits_ns = o->rate.behind && !ur_rate_lets(&o->rate, now_ns) ? now_ns : 0;
	return n;
}

unsigned ur_switch_output_mgmt(struct ur_switch *sw, uint8_t port, struct ur_switch_tx *tx,
			       unsigned cap, uint64_t now_ns)
{
	uint32_t cnt = sw->port[port].out.lane[UR_SWITCH_VL15].cnt;

	return ur_switch_output(sw, port, tx, cnt < cap ? cnt : cap, now_ns);
}

void ur_switch_drop_lane(struct ur_switch *sw, uint8_t port, unsigned vl,
			 enum ur_switch_drop reason)
{
	struct ur_switch_out *o = &sw->port[port].out;

	sw->port[port].counters.lane[vl].drops[reason] += o->lane[vl].cnt;
	while (o->lane[vl].cnt)
		ur_switch_list_push(sw->ref, &sw->dead, ur_switch_list_pop(sw->ref, &o->lane[vl]));
	o->ready &= (uint16_t) ~(1u << vl);
	sw->urgent &= ~((uint64_t)(vl == UR_SWITCH_VL15) << port);
}

unsigned ur_switch_reap(struct ur_switch *sw, struct ur_switch_tx *tx, unsigned cap)
{
	unsigned n = 0;

	while (n < cap && sw->dead.cnt) {
		uint32_t i = ur_switch_list_pop(sw->ref, &sw->dead);

		hand_out(sw, i, 0, &tx[n++]);
	}
	return n;
}

uint64_t ur_switch_next_deadline(const struct ur_switch *sw, uint64_t ports, uint64_t now_ns)
{
	uint64_t first = sw->adm.next_ns > now_ns ? sw->adm.next_ns : now_ns;

	for (unsigned i = 0; i < sw->attr.limits.ports; i++) {
		const struct ur_switch_out *o = &sw->port[i].out;
		uint64_t at;

		if (!(ports >> i & 1))
			continue;
		if (sw->up >> i & 1 && sw->port[i].attr.credit_frames) {
			at = ur_credit_next_deadline(&sw->port[i].credit);
			at = at > now_ns ? at : now_ns;
			first = at < first ? at : first;
		}
		at = o->rate.next_ns > now_ns ? o->rate.next_ns : now_ns;
		if ((ur_switch_ready(&sw->port[i]) || o->lane[UR_SWITCH_VL15].cnt) && at < first)
			first = at;
	}
	return first;
}
