/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_NETWORK_H
#define UR_NS3_NETWORK_H

#include <deque>
#include <memory>
#include <vector>

#include "host.h"
#include "switch.h"

namespace sim
{

/* Hosts, switches and the links between them. */
class Network
{
      public:
	/* Where the bytes are that hosts have sent: arrived at a host, lost, dropped, in a switch, or on a wire. */
	struct Account {
		uint64_t sent = 0, received = 0, lost = 0, dropped = 0, held = 0, flying = 0;
		uint64_t lost_frames = 0;
	};

	Network() = default;
	/* One of several parts; each is simulated by a process of its own, which adds all hosts, switches and links. */
	Network(unsigned part, unsigned parts, Cut *cut) : part_(part), parts_(parts), cut_(cut)
	{
	}

	/* part: that which simulates it. */
	Host &add_host(const HostAttr &attr, uint64_t random, unsigned part = 0);
	Switch &add_switch(unsigned ports, const SwitchAttr &attr, Router *router,
			   unsigned part = 0);

	/* Links in both directions. */
	void link_host(unsigned host, unsigned sw, unsigned port, const WireAttr &attr);
	/* The same, with other attributes towards the host. */
	void link_host(unsigned host, unsigned sw, unsigned port, const WireAttr &up,
		       const WireAttr &down);
	void link_switches(unsigned a, unsigned a_port, unsigned b, unsigned b_port,
			   const WireAttr &attr);

	Host &host(unsigned i)
	{
		return *hosts_[i];
	}
	Switch &sw(unsigned i)
	{
		return *switches_[i];
	}
	unsigned hosts() const
	{
		return static_cast<unsigned>(hosts_.size());
	}
	unsigned switches() const
	{
		return static_cast<unsigned>(switches_.size());
	}
	unsigned parts() const
	{
		return parts_;
	}
	unsigned part_of_host(unsigned i) const
	{
		return host_part_[i];
	}
	unsigned part_of_switch(unsigned i) const
	{
		return switch_part_[i];
	}
	/* Of the wires with a number: those that are cut. */
	Wire &wire(uint32_t number)
	{
		return *wires_[number];
	}
	/* What the two ends of a cut wire do in the parts: who sends by it, and who receives. */
	unsigned part_of_sender(uint32_t number) const
	{
		return ends_[number].first;
	}
	unsigned part_of_receiver(uint32_t number) const
	{
		return ends_[number].second;
	}

	/* Tells a host something, beside the network, after the delay of a link. It is handed to Host::on_notice. */
	void tell(const Notice &n);
	/* A notice for a host that is here. */
	void notice_at(uint64_t at_ns, const Notice &n);
	/* The delay of the links, which is the least time in which a part can affect another. */
	uint64_t delay_ns() const
	{
		return delay_ns_;
	}

	/*
	 * The oracle of conservation: asserts that the frames and bytes of this part add up. balance() asserts that those of
	 * all parts do.
	 */
	Account validate();
	static void balance(const Account &all);

      private:
	void note_link(Wire *a, Wire *b, unsigned a_part, unsigned b_part, const WireAttr &attr);

	std::vector<std::unique_ptr<Host>> hosts_;
	std::vector<std::unique_ptr<Switch>> switches_;
	std::vector<unsigned> host_part_, switch_part_;
	std::vector<Wire *> wires_;
	std::vector<std::pair<unsigned, unsigned>>
		ends_; /* parts of the senders and receivers of wires_ */
	unsigned part_ = 0, parts_ = 1;
	Cut *cut_ = nullptr;
	uint64_t delay_ns_ = UINT64_MAX;
	size_t frames_before_ = frames_taken(); /* of networks that are gone */
};

} // namespace sim

#endif
