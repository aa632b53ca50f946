/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology.h"

#include <algorithm>
#include <set>

#include "random.h"

namespace sim
{

void build(Network *net, Topology *t, const HostAttr &host, const SwitchAttr &sw,
	   const WireAttr &wire, uint64_t seed)
{
	SwitchAttr switch_attr = sw;
	Random random(seed);

	if (switch_attr.vls < t->vls())
		switch_attr.vls = t->vls();
	for (unsigned i = 0; i < t->switches(); i++)
		net->add_switch(t->ports(i), switch_attr, t, t->part(i, net->parts()));
	for (unsigned i = 0; i < t->hosts(); i++) {
		net->add_host(host, random.next(), t->part(t->host(i).sw, net->parts()));
		net->link_host(i, t->host(i).sw, t->host(i).port, wire);
	}
	for (const Topology::Link &l : t->links())
		net->link_switches(l.a, l.a_port, l.b, l.b_port, wire);
}

unsigned Topology::distance(unsigned a, unsigned b)
{
	unsigned from = host_[a].sw;

	if (near_.empty())
		near_.resize(switches());
	if (near_[from].empty()) {
		std::vector<std::vector<unsigned>> next(switches());
		std::vector<unsigned> todo = {from};

		for (const Link &l : link_) {
			next[l.a].push_back(l.b);
			next[l.b].push_back(l.a);
		}
		near_[from].resize(switches());
		near_[from][from] = 1;
		for (size_t i = 0; i < todo.size(); i++)
			for (unsigned sw : next[todo[i]])
				if (!near_[from][sw]) {
					near_[from][sw] =
						static_cast<uint8_t>(near_[from][todo[i]] + 1);
					todo.push_back(sw);
				}
	}
	return near_[from][host_[b].sw];
}

/* ---- fat trees ---- */

namespace
{

/* Ports [0, k) of a switch lead down, [k, 2k) up. Switch (level, w) has the number level * k^(n-1) + w. */
class FatTree : public Topology
{
      public:
	FatTree(unsigned k, unsigned n, UpPort up, uint64_t seed)
	    : k_(k), n_(n), up_(up), seed_(seed), power_(n + 1, 1)
	{
		for (unsigned i = 1; i <= n; i++)
			power_[i] = power_[i - 1] * k;
		unsigned level = power_[n - 1];

		UR_ASSERT(k >= 2 && n >= 1 && level < (1u << 20));
		ports_.assign(static_cast<size_t>(n) * level, 2 * k);
		for (unsigned h = 0; h < power_[n]; h++)
			host_.push_back({h / k, h % k});
		for (unsigned l = 0; l + 1 < n; l++)
			for (unsigned w = 0; w < level; w++)
				for (unsigned j = 0; j < k; j++) {
					if (l + 2 == n)
						core_.push_back(link_.size());
					link_.push_back({l * level + w, k + j,
							 (l + 1) * level + with_digit(w, l, j),
							 digit(w, l)});
				}
	}

	Hop route(const Switch &, unsigned idx, Frame *f) override
	{
		unsigned level = idx / power_[n_ - 1], w = idx % power_[n_ - 1], down;
		uint64_t choice;

		if (leads_down(level, w, f->dst, &down))
			return {static_cast<uint16_t>(down), 0};
		choice = up_ == UpPort::D_MOD_K
				 ? f->dst / power_[level]
				 : mix(f->flow + (static_cast<uint64_t>(idx) << 32), seed_) >> 32;
		/* The next up-port whose switch still reaches the destination; if none does, the first choice. */
		for (unsigned i = 0; !dead_.empty() && i < k_; i++)
			if (reaches(idx, k_ + static_cast<unsigned>((choice + i) % k_), f->dst)) {
				choice += i;
				break;
			}
		return {static_cast<uint16_t>(k_ + choice % k_), 0};
	}

	/* Subtrees below the top level stay whole where `cnt` divides k. */
	unsigned part(unsigned sw, unsigned cnt) const override
	{
		unsigned level = power_[n_ - 1];

		return sw % level * cnt / level;
	}

	bool avoid(size_t link, bool dead) override
	{
		const Link &l = link_[link];

		if (dead) {
			dead_.insert({l.a, l.a_port});
			dead_.insert({l.b, l.b_port});
		} else {
			dead_.erase({l.a, l.a_port});
			dead_.erase({l.b, l.b_port});
		}
		return true;
	}

	void options(unsigned sw, unsigned, unsigned, unsigned dst,
		     std::vector<Hop> *out) const override
	{
		unsigned level = sw / power_[n_ - 1], w = sw % power_[n_ - 1], down;

		if (leads_down(level, w, dst, &down)) {
			out->push_back({static_cast<uint16_t>(down), 0});
			return;
		}
		for (unsigned j = 0; j < k_; j++)
			if (up_ == UpPort::ECMP || j == dst / power_[level] % k_)
				out->push_back({static_cast<uint16_t>(k_ + j), 0});
	}

      private:
	unsigned digit(unsigned w, unsigned i) const
	{
		return w / power_[i] % k_;
	}
	unsigned with_digit(unsigned w, unsigned i, unsigned value) const
	{
		return w + value * power_[i] - digit(w, i) * power_[i];
	}
	/* Whether the destination is below this switch, and by which port. */
	bool leads_down(unsigned level, unsigned w, unsigned dst, unsigned *port) const
	{
		unsigned leaf = dst / k_;

		if (leaf / power_[level] != w / power_[level])
			return false;
		*port = level ? digit(leaf, level - 1) : dst % k_;
		return true;
	}

	/* Whether a frame that leaves the switch by this port can reach the destination without a dead link. */
	bool reaches(unsigned idx, unsigned port, unsigned dst) const
	{
		unsigned level = idx / power_[n_ - 1], w = idx % power_[n_ - 1], next, down;

		if (dead_.count({idx, port}))
			return false;
		if (port < k_ && !level)
			return true; /* the host */
		next = port < k_ ? (level - 1) * power_[n_ - 1] + with_digit(w, level - 1, port)
				 : (level + 1) * power_[n_ - 1] + with_digit(w, level, port - k_);
		if (leads_down(next / power_[n_ - 1], next % power_[n_ - 1], dst, &down))
			return reaches(next, down, dst);
		for (unsigned j = 0; j < k_; j++)
			if (reaches(next, k_ + j, dst))
				return true;
		return false;
	}

	std::set<std::pair<unsigned, unsigned>> dead_; /* switches and ports */
	unsigned k_, n_;
	UpPort up_;
	uint64_t seed_;
	std::vector<unsigned> power_; /* of k */
};

/* Port 0: the host, 1: clockwise, 2: the other way. */
class Ring : public Topology
{
      public:
	explicit Ring(unsigned n)
	{
		ports_.assign(n, 3);
		for (unsigned i = 0; i < n; i++) {
			host_.push_back({i, 0});
			link_.push_back({i, 1, (i + 1) % n, 2});
		}
	}
	Hop route(const Switch &, unsigned idx, Frame *f) override
	{
		return hop(idx, f->dst);
	}
	void options(unsigned sw, unsigned, unsigned, unsigned dst,
		     std::vector<Hop> *out) const override
	{
		out->push_back(hop(sw, dst));
	}

      private:
	Hop hop(unsigned sw, unsigned dst) const
	{
		unsigned n = switches(), ahead = (dst + n - sw) % n;

		return {static_cast<uint16_t>(!ahead ? 0 : ahead <= n / 2 ? 1 : 2), 0};
	}
};

} // namespace

std::unique_ptr<Topology> make_fat_tree(unsigned k, unsigned n, UpPort up, uint64_t seed)
{
	return std::make_unique<FatTree>(k, n, up, seed);
}

std::unique_ptr<Topology> make_ring(unsigned switches)
{
	return std::make_unique<Ring>(switches);
}

/* ---- deadlocks ---- */

namespace
{

class Graph
{
      public:
	explicit Graph(const Topology &t) : t_(t), first_(t.switches() + 1)
	{
		for (unsigned s = 0; s < t.switches(); s++)
			first_[s + 1] = first_[s] + t.ports(s) * t.vls();
		peer_.assign(first_.back() / t.vls(), {NONE, 0});
		for (const Topology::Link &l : t.links()) {
			peer(l.a, l.a_port) = {l.b, l.b_port};
			peer(l.b, l.b_port) = {l.a, l.a_port};
		}
		for (unsigned h = 0; h < t.hosts(); h++)
			peer(t.host(h).sw, t.host(h).port) = {HOST, h};
		next_.resize(first_.back());
	}

	Dependencies find()
	{
		Dependencies d = {};

		all_arrive_ = true;
		for (unsigned dst = 0; dst < t_.hosts(); dst++)
			follow_all(dst);
		for (const std::set<size_t> &next : next_)
			d.edges += next.size();
		d.channels = 2 * t_.links().size() * t_.vls();
		d.cycle = has_cycle();
		d.all_arrive = all_arrive_;
		return d;
	}

      private:
	enum : unsigned { NONE = ~0u, HOST = ~1u };
	static constexpr size_t NOWHERE = SIZE_MAX;
	struct Peer {
		unsigned sw, port;
	};

	Peer &peer(unsigned sw, unsigned port)
	{
		return peer_[first_[sw] / t_.vls() + port];
	}
	size_t channel(unsigned sw, unsigned port, unsigned vl) const
	{
		return first_[sw] + port * t_.vls() + vl;
	}

	/* All ways to one destination. */
	void follow_all(unsigned dst)
	{
		std::vector<bool> seen(first_.back());
		std::vector<size_t> todo;

		for (unsigned h = 0; h < t_.hosts(); h++)
			if (h != dst)
				follow(NOWHERE, t_.host(h).sw, t_.host(h).port, 0, dst, &seen,
				       &todo);
		while (!todo.empty()) {
			size_t c = todo.back();
			unsigned sw = sw_of(c),
				 vl = static_cast<unsigned>((c - first_[sw]) % t_.vls());
			Peer p = peer(sw, static_cast<unsigned>((c - first_[sw]) / t_.vls()));

			todo.pop_back();
			follow(c, p.sw, p.port, vl, dst, &seen, &todo);
		}
	}

	/* The ways of a frame that has come by channel `from` into a switch. */
	void follow(size_t from, unsigned sw, unsigned in_port, unsigned vl, unsigned dst,
		    std::vector<bool> *seen, std::vector<size_t> *todo)
	{
		std::vector<Hop> hops;

		t_.options(sw, in_port, vl, dst, &hops);
		all_arrive_ = all_arrive_ && !hops.empty();
		for (const Hop &h : hops) {
			Peer p = peer(sw, h.port);
			size_t to = channel(sw, h.port, h.vl);

			if (p.sw == HOST || p.sw == NONE) {
				all_arrive_ = all_arrive_ && p.sw == HOST && p.port == dst;
				continue;
			}
			if (from != NOWHERE)
				next_[from].insert(to);
			if (!(*seen)[to]) {
				(*seen)[to] = true;
				todo->push_back(to);
			}
		}
	}

	unsigned sw_of(size_t c) const
	{
		return static_cast<unsigned>(std::upper_bound(first_.begin(), first_.end(), c) -
					     first_.begin() - 1);
	}

	/* Takes away channels that nothing else depends on the way to (Kahn); a cycle is what remains. */
	bool has_cycle() const
	{
		std::vector<size_t> in(next_.size()), todo;
		size_t left = next_.size();

		for (const std::set<size_t> &next : next_)
			for (size_t to : next)
				in[to]++;
		for (size_t c = 0; c < in.size(); c++)
			if (!in[c])
				todo.push_back(c);
		for (; !todo.empty(); left--) {
			size_t c = todo.back();

			todo.pop_back();
			for (size_t to : next_[c])
				if (!--in[to])
					todo.push_back(to);
		}
		return left;
	}

	const Topology &t_;
	std::vector<size_t> first_; /* the first channel of each switch */
	std::vector<Peer> peer_;    /* what each port leads to */
	std::vector<std::set<size_t>> next_;
	bool all_arrive_ = true;
};

} // namespace

Dependencies find_dependencies(const Topology &t)
{
	return Graph(t).find();
}

} // namespace sim
