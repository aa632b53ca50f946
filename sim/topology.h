/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_TOPOLOGY_H
#define UR_NS3_TOPOLOGY_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network.h"
#include "route.h"

namespace sim
{

/* The shape of a network and its routing. */
class Topology : public Router
{
      public:
	struct Attach {
		unsigned sw, port;
	};
	struct Link {
		unsigned a, a_port, b, b_port; /* switches and their ports */
	};

	unsigned hosts() const
	{
		return static_cast<unsigned>(host_.size());
	}
	unsigned switches() const
	{
		return static_cast<unsigned>(ports_.size());
	}
	unsigned ports(unsigned sw) const
	{
		return ports_[sw];
	}
	const Attach &host(unsigned i) const
	{
		return host_[i];
	}
	const std::vector<Link> &links() const
	{
		return link_;
	}
	/* Lanes that the routing needs, besides lanes for service levels. */
	unsigned vls() const
	{
		return vls_;
	}

	/*
	 * In which of `cnt` parts of the network a switch and its hosts are, [0, cnt): parts of about the same size, with few links
	 * between them.
	 */
	virtual unsigned part(unsigned sw, unsigned cnt) const
	{
		return static_cast<unsigned>(static_cast<uint64_t>(sw) * cnt / switches());
	}

	/* Switches on the shortest way between two hosts. */
	unsigned distance(unsigned a, unsigned b);
	/* Links that many ways share: those to the top level of a tree, the global ones of a dragonfly. */
	const std::vector<size_t> &core() const
	{
		return core_;
	}
	/*
	 * Routing learns that a link (its number in links()) is dead, or works again. False: this routing does not
	 * change its ways.
	 */
	virtual bool avoid(size_t link, bool dead)
	{
		(void)link, (void)dead;
		return false;
	}

	/*
	 * Appends every hop that route() may choose for a frame to `dst` that entered `sw` by in_port on lane vl. This is
	 * what the check for deadlocks sees, so it must not depend on what a frame has noted.
	 */
	virtual void options(unsigned sw, unsigned in_port, unsigned vl, unsigned dst,
			     std::vector<Hop> *out) const = 0;

      protected:
	std::vector<unsigned> ports_; /* of each switch */
	std::vector<Attach> host_;
	std::vector<Link> link_;
	std::vector<size_t> core_;
	unsigned vls_ = 1;

      private:
	std::vector<std::vector<uint8_t>>
		near_; /* from each switch: switches to each, both counted; empty: unknown */
};

/* Adds the switches, hosts and links to an empty network. Hosts and switches of other parts than the network's own are only named. */
void build(Network *net, Topology *t, const HostAttr &host, const SwitchAttr &sw,
	   const WireAttr &wire, uint64_t seed);

/* Which of several shortest ways up a tree. */
enum class UpPort {
	ECMP,	/* by a hash of the flow, which differs between switches */
	D_MOD_K /* by the destination, always the same */
};

/*
 * A k-ary n-tree (Petrini and Vanneschi, IPPS 1997): k^n hosts, n levels of k^(n-1) switches with k ports down
 * and k up; those of the top level have none up. Up to a common ancestor, then down.
 */
std::unique_ptr<Topology> make_fat_tree(unsigned k, unsigned n, UpPort up, uint64_t seed);

/* Whether a frame goes by a third group of a dragonfly. */
enum class Detour {
	NEVER,	 /* the shortest way */
	VALIANT, /* always, by a random one */
	UGAL_L /* if the queue of that way, times its links, is shorter than that of the shortest way */
};

/*
 * A dragonfly (Kim, Dally, Scott and Abts, ISCA 2008): groups of `a` routers, each with p hosts, links to all
 * others of its group and h global links; a * h + 1 groups, each linked with all others once.
 */
std::unique_ptr<Topology> make_dragonfly(unsigned p, unsigned a, unsigned h, Detour detour,
					 uint64_t seed);

/* Switches in a ring, one host each, one lane, shortest way: it can deadlock, as the check must find. */
std::unique_ptr<Topology> make_ring(unsigned switches);

/*
 * The channel dependency graph (Dally and Seitz, 1987): its nodes are the lanes of the links between switches; an
 * edge leads from one to another if some frame may hold the first while it waits for the second. Without
 * a cycle no set of frames can wait for each other for ever.
 */
struct Dependencies {
	size_t channels, edges;
	bool cycle;
	bool all_arrive; /* from every host every host is reached, whatever is chosen */
};
Dependencies find_dependencies(const Topology &t);

} // namespace sim

#endif
