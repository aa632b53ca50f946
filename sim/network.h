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

	Host &add_host(const HostAttr &attr, uint64_t random);
	Switch &add_switch(unsigned ports, const SwitchAttr &attr, Router *router);

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

	/* The oracle of conservation: asserts that frames and bytes add up, everywhere and in all. */
	Account validate();

      private:
	std::vector<std::unique_ptr<Host>> hosts_;
	std::vector<std::unique_ptr<Switch>> switches_;
};

} // namespace sim

#endif
