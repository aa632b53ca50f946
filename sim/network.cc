/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

namespace sim
{

Host &Network::add_host(const HostAttr &attr, uint64_t random)
{
	hosts_.push_back(std::make_unique<Host>(hosts(), attr, random));
	return *hosts_.back();
}

Switch &Network::add_switch(unsigned ports, const SwitchAttr &attr, Router *router)
{
	switches_.push_back(std::make_unique<Switch>(switches(), ports, attr, router));
	return *switches_.back();
}

void Network::link_host(unsigned host, unsigned s, unsigned port, const WireAttr &up,
			const WireAttr &down)
{
	hosts_[host]->out().connect(up, switches_[s].get(), port, true);
	switches_[s]->set_in(port, &hosts_[host]->out());
	switches_[s]->out(port).connect(down, hosts_[host].get(), 0, false);
	hosts_[host]->set_in(&switches_[s]->out(port));
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
}

/* Adds what a wire has lost and what it carries. */
static void add(Network::Account *bytes, const Wire &w)
{
	UR_ASSERT(w.frames >= w.lost + w.arrived);
	bytes->lost += w.lost_bytes;
	bytes->lost_frames += w.lost;
	bytes->flying += w.bytes - w.lost_bytes - w.arrived_bytes;
}

Network::Account Network::validate()
{
	Account bytes;

	for (auto &h : hosts_) {
		h->validate();
		bytes.sent += h->out().bytes;
		bytes.received += h->received_bytes;
		add(&bytes, h->out());
	}
	for (auto &s : switches_) {
		s->validate();
		bytes.dropped += s->dropped_bytes;
		bytes.held += s->held_bytes;
		for (unsigned p = 0; p < s->ports(); p++) {
			Wire &w = s->out(p);

			if (w.connected())
				add(&bytes, w);
		}
	}
	UR_ASSERT(bytes.sent ==
		  bytes.received + bytes.lost + bytes.dropped + bytes.held + bytes.flying);
	return bytes;
}

} // namespace sim
