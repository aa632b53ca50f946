/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault.h"

#include "clock.h"
#include "random.h"

namespace sim
{

Fault::Fault(Network *net, Topology *topology, const FaultAttr &attr, uint64_t seed)
    : net_(net), topology_(topology), attr_(attr), seed_(seed), links_(topology->core())
{
	Random random(mix(seed, 0xfa17));

	UR_ASSERT(attr.links <= links_.size());
	for (size_t i = 0; i < attr.links; i++)
		std::swap(links_[i],
			  links_[i + random.below(static_cast<uint32_t>(links_.size() - i))]);
	links_.resize(attr.links);
}

void Fault::start()
{
	for (unsigned h = 0; attr_.loss > 0 && h < topology_->hosts(); h++)
		net_->sw(topology_->host(h).sw)
			.out(topology_->host(h).port)
			.set_loss(attr_.loss, mix(h, seed_));
	if (!links_.empty())
		call_at(NETWORK_CONTEXT, now_ns() + attr_.at_ns, &Fault::set_down, this, true);
}

void Fault::set_down(bool down)
{
	for (size_t i : links_) {
		const Topology::Link &l = topology_->links()[i];

		net_->sw(l.a).out(l.a_port).set_down(down);
		net_->sw(l.b).out(l.b_port).set_down(down);
	}
	if (attr_.reroute_ns)
		call_at(NETWORK_CONTEXT, now_ns() + attr_.reroute_ns, &Fault::reroute, this, down);
	if (down && attr_.for_ns)
		call_at(NETWORK_CONTEXT, now_ns() + attr_.for_ns, &Fault::set_down, this, false);
	if (!down && attr_.every_ns > attr_.for_ns)
		call_at(NETWORK_CONTEXT, now_ns() + attr_.every_ns - attr_.for_ns, &Fault::set_down,
			this, true);
}

void Fault::reroute(bool dead)
{
	for (size_t i : links_)
		UR_ASSERT(topology_->avoid(i, dead));
}

} // namespace sim
