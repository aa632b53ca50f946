/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch.h"

#include <cstring>

extern "C" {
#include "switch/frame.h"
#include "switch/stamp.h"
}

namespace sim
{

Switch::Switch(unsigned idx, unsigned ports, const SwitchAttr &attr, Router *router)
    : idx_(idx), attr_(attr), router_(router), in_(ports), out_(ports)
{
	UR_ASSERT(attr.vls >= 1 && attr.vls <= UR_VL_CNT);
	UR_ASSERT(ports <= PORTS_MAX && idx < SWITCHES_MAX);
	for (unsigned p = 0; p < ports; p++) {
		in_[p].lane.resize(attr.vls);
		in_[p].used.resize(attr.vls);
		in_[p].shown.resize(attr.vls);
		out_[p].lane.resize(attr.vls);
		out_[p].lane_ns.resize(attr.vls);
		out_[p].lane_sent.resize(attr.vls);
		out_[p].wanted.resize(attr.vls * words());
		out_[p].turn.resize(attr.vls);
		out_[p].wire.set_from(this, p);
		ur_vl_init(&out_[p].vl, &attr.vl_attr);
	}
}

/* Marks CE where the frame can be marked; the ICRC masks the field. */
static bool mark(Frame *f)
{
	struct ur_switch_headers h;
	uint8_t head[UR_SWITCH_HEAD_MAX], skip, len;

	if (!ur_switch_headers_read(f->bytes, f->kept, &h) || !ur_switch_can_mark(&h))
		return false;
	len = ur_switch_edit(f->bytes, UR_SWITCH_CE, 0, head, &skip);
	UR_ASSERT(len == skip);
	std::memcpy(f->bytes, head, len);
	return true;
}

/* Adds a time in this switch to the frame's delay stamp if it asks for one. */
static void stamp(Frame *f, uint64_t ns)
{
	struct ur_switch_stamp s;

	if (ur_switch_stamp_begin(f->bytes, f->len, &s))
		ur_switch_stamp_set(f->bytes, &s, ns);
}

void Switch::drop(Frame *f)
{
	dropped++;
	dropped_bytes += f->len;
	held--;
	held_bytes -= f->len;
	release(f->in_port, f->vl, f->len);
	give_frame(f);
}

void Switch::release(unsigned in_port, unsigned in_vl, uint32_t bytes)
{
	In &in = in_[in_port];

	UR_ASSERT(in.used[in_vl] >= bytes);
	in.used[in_vl] -= bytes;
	if (in.wire)
		in.wire->return_credit(in_vl, bytes);
}

void Switch::receive(Frame *f, unsigned port)
{
	In &in = in_[port];

	UR_ASSERT(f->vl < attr_.vls);
	f->in_ns = now_ns();
	f->in_port = static_cast<uint16_t>(port);
	f->hops++;
	in.used[f->vl] += f->len;
	frames_in++;
	held++;
	held_bytes += f->len;
	/* The sender had the credits, so there is room. */
	UR_ASSERT(!in.wire || !in.wire->attr().credit_bytes ||
		  in.used[f->vl] <= in.wire->attr().credit_bytes);
	if (attr_.queues == SwitchAttr::OUTPUT) {
		queue_at_output(f, router_->route(*this, idx_, f));
		return;
	}
	in.lane[f->vl].push(f);
	show_first(port, f->vl);
}

/* ---- queues at the outputs ---- */

void Switch::queue_at_output(Frame *f, Hop hop)
{
	Out &o = out_[hop.port];
	uint64_t now = now_ns(), sending = o.lane_sent[hop.vl];
	/* What is left of the frame that is being sent counts as queued. */
	uint64_t wait_ns = o.lane_ns[hop.vl] + (sending > now ? sending - now : 0);
	uint64_t depth = o.wire.bytes_in(wait_ns);

	if (attr_.queue_bytes && depth + f->len > attr_.queue_bytes) {
		drop(f);
		return;
	}
	if (attr_.ecn_bytes && depth > attr_.ecn_bytes)
		marked += mark(f);
	o.lane_ns[hop.vl] += o.wire.serialize_ns(f->len);
	o.lane[hop.vl].push(f);
	o.queued_bytes += f->len;
	send_next(hop.port);
}

/* ---- queues at the inputs ---- */

/* Makes the first frame of an input's lane known to its output. */
void Switch::show_first(unsigned in, unsigned lane)
{
	Frame *f = in_[in].lane[lane].front();
	unsigned bit = in * attr_.vls + lane;
	Hop hop;

	if (!f || in_[in].shown[lane])
		return;
	in_[in].shown[lane] = true;
	hop = router_->route(*this, idx_, f);
	out_[hop.port].wanted[hop.vl * words() + bit / 64] |= UINT64_C(1) << bit % 64;
	out_[hop.port].queued_bytes += f->len;
	send_next(hop.port);
}

Frame *Switch::candidate(Out &o, unsigned vl, unsigned *bit)
{
	unsigned bits = words() * 64;

	if (attr_.queues == SwitchAttr::OUTPUT) {
		Frame *f = o.lane[vl].front();

		return f && o.wire.has_credit(vl, f->len) ? f : nullptr;
	}
	/* The next input after the last one served whose frame is for here, and which is not sending another. */
	for (unsigned i = 0, b = o.turn[vl]; i < bits; i++, b = b + 1 < bits ? b + 1 : 0) {
		uint64_t word = o.wanted[vl * words() + b / 64];

		if (b % 64 == 0 && !word) {
			i += 63;
			b += 63;
			continue;
		}
		if (!(word >> b % 64 & 1) || in_[b / attr_.vls].busy)
			continue;
		Frame *f = in_[b / attr_.vls].lane[b % attr_.vls].front();

		*bit = b;
		/* The turn waits for its credits, so that short frames do not starve long ones. */
		return o.wire.has_credit(vl, f->len) ? f : nullptr;
	}
	return nullptr;
}

/* ---- sending ---- */

void Switch::send_next(unsigned port)
{
	Out &o = out_[port];
	Frame *first[UR_VL_CNT];
	unsigned bit[UR_VL_CNT] = {}, vl, in_port, in_vl;
	uint16_t ready = 0;
	uint64_t end_ns, now = now_ns();
	uint32_t len;
	Frame *f;

	if (o.busy)
		return;
	for (vl = 0; vl < attr_.vls; vl++) {
		first[vl] = candidate(o, vl, &bit[vl]);
		ready |= static_cast<uint16_t>((first[vl] ? 1u : 0u) << vl);
	}
	if (!ready)
		return;
	vl = ur_vl_pick(&o.vl, ready);
	ur_vl_charge(&o.vl, vl, first[vl]->len);
	f = first[vl];
	in_port = f->in_port;
	in_vl = f->vl;
	o.busy = true;
	if (attr_.queues == SwitchAttr::OUTPUT) {
		o.lane[vl].pop();
		o.lane_ns[vl] -= o.wire.serialize_ns(f->len);
	} else {
		in_[in_port].lane[in_vl].pop();
		in_[in_port].shown[in_vl] = false;
		in_[in_port].busy = true;
		o.wanted[vl * words() + bit[vl] / 64] &= ~(UINT64_C(1) << bit[vl] % 64);
		o.turn[vl] = bit[vl] + 1 < words() * 64 ? bit[vl] + 1 : 0;
	}
	o.queued_bytes -= f->len;
	f->wait_ns += now - f->in_ns;
	stamp(f, now - f->in_ns + (attr_.stamp_whole ? o.wire.serialize_ns(f->len) : 0));
	f->vl = static_cast<uint8_t>(vl);
	len = f->len;
	frames_out++;
	held--;
	held_bytes -= len;
	sending_bytes += len;
	end_ns = o.wire.send(f, now); /* the frame is the wire's now */
	o.lane_sent[vl] = end_ns;
	call_at(switch_own_context(idx_), end_ns, &Switch::sent, this, port, in_port, in_vl, len);
}

/* The last bit of a frame has left. */
void Switch::sent(unsigned port, unsigned in_port, unsigned in_vl, uint32_t bytes)
{
	sending_bytes -= bytes;
	out_[port].busy = false;
	release(in_port, in_vl, bytes);
	if (attr_.queues == SwitchAttr::INPUT) {
		in_[in_port].busy = false;
		show_first(in_port, in_vl);
		/* The other lanes of this input may have been waiting for it. */
		for (unsigned p = 0; p < out_.size(); p++)
			if (p != port)
				send_next(p);
	}
	send_next(port);
}

void Switch::receive_credit(unsigned port, unsigned vl, uint32_t bytes)
{
	out_[port].wire.add_credit(vl, bytes);
	send_next(port);
}

void Switch::validate() const
{
	uint64_t used = 0;

	UR_ASSERT(frames_in == frames_out + dropped + held);
	for (const In &in : in_)
		for (uint32_t bytes : in.used)
			used += bytes;
	UR_ASSERT(used == held_bytes + sending_bytes);
}

} // namespace sim
