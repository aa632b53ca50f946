/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <algorithm>

namespace sim
{

Host &Network::add_host(const HostAttr &attr, uint64_t random, unsigned part)
{
	hosts_.push_back(std::make_unique<Host>(hosts(), attr, random, part == part_));
	host_part_.push_back(part);
	return *hosts_.back();
}

Switch &Network::add_switch(unsigned ports, const SwitchAttr &attr, Router *router, unsigned part)
{
	switches_.push_back(std::make_unique<Switch>(switches(), ports, attr, router));
	switch_part_.push_back(part);
	return *switches_.back();
}

/* The two directions of a link, between a and b. */
void Network::note_link(Wire *a, Wire *b, unsigned a_part, unsigned b_part, const WireAttr &attr)
{
	delay_ns_ = std::min(delay_ns_, attr.delay_ns);
	if (a_part == b_part)
		return;
	for (Wire *w : {a, b}) {
		w->cut(cut_, static_cast<uint32_t>(wires_.size()));
		wires_.push_back(w);
	}
	ends_.emplace_back(a_part, b_part);
	ends_.emplace_back(b_part, a_part);
}

void Network::link_host(unsigned host, unsigned s, unsigned port, const WireAttr &up,
			const WireAttr &down)
{
	hosts_[host]->out().connect(up, switches_[s].get(), port, true);
	switches_[s]->set_in(port, &hosts_[host]->out());
	switches_[s]->out(port).connect(down, hosts_[host].get(), 0, false);
	hosts_[host]->set_in(&switches_[s]->out(port));
	note_link(&hosts_[host]->out(), &switches_[s]->out(port), host_part_[host], switch_part_[s],
		  up.delay_ns < down.delay_ns ? up : down);
}

void Network::link_host(unsigned host, unsigned s, unsigned port, const WireAttr &attr)
{
	link_host(host, s, port, attr, attr);
}

void Network::link_switches(unsigned a, unsigned a_port, unsigned b, unsigned b_port,
			    const WireAttr &attr)
{
	switches_[a]->out(a_port).connect(attr, switches_[b].get(), b_port, true);
	switches_[b]->set_in(b_port, &switches_[a]->out(a_port));
	switches_[b]->out(b_port).connect(attr, switches_[a].get(), a_port, true);
	switches_[a]->set_in(a_port, &switches_[b]->out(b_port));
	note_link(&switches_[a]->out(a_port), &switches_[b]->out(b_port), switch_part_[a],
		  switch_part_[b], attr);
}

/* ---- notices ---- */

void Network::tell(const Notice &n)
{
	uint64_t at_ns = now_ns() + delay_ns_;

	if (host_part_[n.to] == part_)
		notice_at(at_ns, n);
	else
		cut_->send_notice(host_part_[n.to], at_ns, n);
}

void Network::notice_at(uint64_t at_ns, const Notice &n)
{
	call_at(notice_context(n.to, n.from), at_ns, &Host::notice, hosts_[n.to].get(), n);
}

/* ---- conservation ---- */

/* Adds what a wire has lost and what it carries. */
static void add(Network::Account *bytes, const Wire &w, bool whole)
{
	UR_ASSERT(!whole || w.frames == w.lost + w.arrived + w.flying);
	bytes->lost += w.lost_bytes;
	bytes->lost_frames += w.lost;
	bytes->flying += w.bytes - w.lost_bytes - w.arrived_bytes;
}

Network::Account Network::validate()
{
	Account bytes;
	size_t frames = 0;
	auto count = [&](const Wire &w) {
		add(&bytes, w, parts_ == 1);
		frames += w.flying;
	};

	for (auto &h : hosts_) {
		h->validate();
		bytes.sent += h->out().bytes;
		bytes.received += h->received_bytes;
		frames += h->waiting;
		count(h->out());
	}
	for (auto &s : switches_) {
		s->validate();
		bytes.dropped += s->dropped_bytes;
		bytes.held += s->held_bytes;
		frames += s->held;
		for (unsigned p = 0; p < s->ports(); p++)
			if (s->out(p).connected())
				count(s->out(p));
	}
	/* Every frame that was made is somewhere. */
	UR_ASSERT(frames_taken() - frames_before_ == frames);
	if (parts_ == 1)
		balance(bytes);
	return bytes;
}

void Network::balance(const Account &all)
{
	UR_ASSERT(all.sent == all.received + all.lost + all.dropped + all.held + all.flying);
}

} // namespace sim
