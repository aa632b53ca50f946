/* SPDX-License-Identifier: BSD-3-Clause */
#include "random.h"
#include "topology.h"

namespace sim
{

namespace
{

/*
 * Ports of a router: [0, p) hosts, [p, p + a - 1) the other routers of its group in order, and h global ones. Link l of
 * the a * h global links of group G belongs to router l / h, and leads to the l-th of the other groups.
 *
 * The lane of a hop is the number of global links before it. So the links of a way come in the order local 0, global
 * 0, local 1, global 1, local 2, and dependencies have no cycle.
 */
class Dragonfly : public Topology
{
      public:
	Dragonfly(unsigned p, unsigned a, unsigned h, Detour detour, uint64_t seed)
	    : p_(p), a_(a), h_(h), groups_(a * h + 1), detour_(detour)
	{
		for (unsigned sw = 0; sw < groups_ * a; sw++)
			random_.emplace_back(mix(sw, seed));
		UR_ASSERT(p >= 1 && a >= 1 && h >= 1);
		vls_ = detour == Detour::NEVER ? 2 : 3;
		ports_.assign(static_cast<size_t>(groups_) * a, p + a - 1 + h);
		for (unsigned i = 0; i < groups_ * a * p; i++)
			host_.push_back({i / p, i % p});
		for (unsigned g = 0; g < groups_; g++) {
			for (unsigned i = 0; i < a; i++)
				for (unsigned j = i + 1; j < a; j++)
					link_.push_back({g * a + i, local_port(i, j), g * a + j,
							 local_port(j, i)});
			for (unsigned other = g + 1; other < groups_; other++) {
				core_.push_back(link_.size());
				link_.push_back({gateway(g, other), global_port(g, other),
						 gateway(other, g), global_port(other, g)});
			}
		}
	}

	Hop route(const Switch &sw, unsigned idx, Frame *f) override
	{
		if (f->in_port < p_ && detour_ != Detour::NEVER)
			choose(sw, idx, f);
		return towards(idx, globals_before(f->in_port, f->vl), target(idx, f), f->dst);
	}

	void options(unsigned sw, unsigned in_port, unsigned vl, unsigned dst,
		     std::vector<Hop> *out) const override
	{
		unsigned globals = globals_before(in_port, vl), there = dst / p_ / a_;

		if (detour_ == Detour::NEVER || globals || group(sw) == there) {
			out->push_back(towards(sw, globals, there, dst));
			return;
		}
		/* It may go by any group. Behind a local hop it leaves the group from this router. */
		for (unsigned via = 0; via < groups_; via++)
			if (via != group(sw) && (in_port < p_ || gateway(group(sw), via) == sw))
				out->push_back(towards(sw, globals, via, dst));
	}

      private:
	unsigned group(unsigned sw) const
	{
		return sw / a_;
	}
	unsigned local_port(unsigned from, unsigned to) const
	{
		return p_ + (to < from ? to : to - 1);
	}
	/* The number of the global link from one group to another. */
	unsigned link_to(unsigned g, unsigned other) const
	{
		return other < g ? other : other - 1;
	}
	unsigned gateway(unsigned g, unsigned other) const
	{
		return g * a_ + link_to(g, other) / h_;
	}
	unsigned global_port(unsigned g, unsigned other) const
	{
		return p_ + a_ - 1 + link_to(g, other) % h_;
	}
	/* Global links that a frame has passed which entered by this port on this lane. */
	unsigned globals_before(unsigned in_port, unsigned vl) const
	{
		return in_port < p_ ? 0 : vl + (in_port >= p_ + a_ - 1);
	}

	/* The group that the frame is to reach next. Frame::via is that of its detour, plus 1. */
	unsigned target(unsigned sw, Frame *f) const
	{
		if (f->via && group(sw) == f->via - 1)
			f->via = 0;
		return f->via ? f->via - 1 : f->dst / p_ / a_;
	}

	Hop towards(unsigned sw, unsigned globals, unsigned to, unsigned dst) const
	{
		unsigned g = group(sw), next;
		uint8_t vl = static_cast<uint8_t>(globals);

		if (g == to) {
			next = dst / p_;
			if (next == sw)
				return {static_cast<uint16_t>(dst % p_), 0};
		} else {
			next = gateway(g, to);
			if (next == sw)
				return {static_cast<uint16_t>(global_port(g, to)), vl};
		}
		return {static_cast<uint16_t>(local_port(sw % a_, next % a_)), vl};
	}

	/* Links between routers on the shortest way from a router to a group, or to a router of it. */
	unsigned hops_to_group(unsigned sw, unsigned to) const
	{
		return 1 + (gateway(group(sw), to) != sw);
	}
	unsigned hops(unsigned sw, unsigned dst_sw) const
	{
		unsigned g = group(dst_sw);

		if (g == group(sw))
			return sw != dst_sw;
		return hops_to_group(sw, g) + (gateway(g, group(sw)) != dst_sw);
	}

	/* At the first router: whether to make a detour, and by which group. */
	void choose(const Switch &sw, unsigned idx, Frame *f)
	{
		unsigned there = f->dst / p_ / a_, here = group(idx), via;

		if (here == there || groups_ < 3)
			return;
		do
			via = random_[idx].below(groups_);
		while (via == here || via == there);
		if (detour_ == Detour::UGAL_L) {
			unsigned entered = gateway(via, here);
			uint64_t direct = sw.queued_bytes(towards(idx, 0, there, f->dst).port);
			uint64_t around = sw.queued_bytes(towards(idx, 0, via, f->dst).port);

			if (direct * hops(idx, f->dst / p_) <=
			    around * (hops_to_group(idx, via) + hops(entered, f->dst / p_)))
				return;
		}
		f->via = via + 1;
	}

	unsigned p_, a_, h_, groups_;
	Detour detour_;
	std::vector<Random>
		random_; /* of each router, so that no other has a part in its choices */
};

} // namespace

std::unique_ptr<Topology> make_dragonfly(unsigned p, unsigned a, unsigned h, Detour detour,
					 uint64_t seed)
{
	return std::make_unique<Dragonfly>(p, a, h, detour, seed);
}

} // namespace sim
