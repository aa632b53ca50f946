/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_PATTERN_H
#define UR_NS3_PATTERN_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sim
{

/* Who sends to whom: an endless sequence of destinations for each host. A host never sends to itself. */
class Pattern
{
      public:
	virtual ~Pattern() = default;
	virtual uint32_t next(uint32_t host) = 0;
};

/*
 * The patterns of the CMDPD paper, and two more. nullptr: there is none of that name.
 *
 *   hot_node                each host to a random one of a tenth of the hosts, which are chosen once
 *   alltoall_round_robin    host i to i + 1, i + 2, ..., and again from i + 1
 *   uniform_random          each host to a random one
 *   uniform_random_seq_gen  each host to all others once a round, each round in another random order
 *   incast                  all hosts to host 0, and host 0 to a random one
 *   permutation             each host always to the same one, and each is the destination of one
 */
std::unique_ptr<Pattern> make_pattern(const std::string &name, uint32_t hosts, uint64_t seed);
const std::vector<std::string> &pattern_names();

} // namespace sim

#endif
