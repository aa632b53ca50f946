/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include <numeric>

#include "random.h"
#include "wire/assert.h"

namespace sim
{

namespace
{

template <typename T> void shuffle(std::vector<T> *v, Random *random)
{
	for (size_t i = v->size(); i > 1; i--)
		std::swap((*v)[i - 1], (*v)[random->below(static_cast<uint32_t>(i))]);
}

/* A stream of random numbers for each host, so that the choices of one do not depend on the speed of another. */
std::vector<Random> streams(uint32_t hosts, uint64_t seed)
{
	std::vector<Random> all;

	for (uint32_t h = 0; h < hosts; h++)
		all.emplace_back(mix(h, seed));
	return all;
}

class UniformRandom : public Pattern
{
      public:
	UniformRandom(uint32_t hosts, uint64_t seed) : hosts_(hosts), random_(streams(hosts, seed))
	{
	}
	uint32_t next(uint32_t host) override
	{
		uint32_t dst = random_[host].below(hosts_ - 1);

		return dst + (dst >= host);
	}

      private:
	uint32_t hosts_;
	std::vector<Random> random_;
};

class HotNode : public Pattern
{
      public:
	HotNode(uint32_t hosts, uint64_t seed) : hot_(hosts), random_(streams(hosts, seed))
	{
		Random random(seed);
		uint32_t cnt = hosts / 10;

		/* At least two: a hot host sends to another one. */
		std::iota(hot_.begin(), hot_.end(), 0u);
		shuffle(&hot_, &random);
		hot_.resize(cnt < 2 ? 2 : cnt);
	}
	uint32_t next(uint32_t host) override
	{
		uint32_t dst;

		do
			dst = hot_[random_[host].below(static_cast<uint32_t>(hot_.size()))];
		while (dst == host);
		return dst;
	}

      private:
	std::vector<uint32_t> hot_;
	std::vector<Random> random_;
};

class RoundRobin : public Pattern
{
      public:
	explicit RoundRobin(uint32_t hosts) : hosts_(hosts), step_(hosts, 0)
	{
	}
	uint32_t next(uint32_t host) override
	{
		step_[host] = step_[host] % (hosts_ - 1) + 1;
		return (host + step_[host]) % hosts_;
	}

      private:
	uint32_t hosts_;
	std::vector<uint32_t> step_;
};

class Rounds : public Pattern
{
      public:
	Rounds(uint32_t hosts, uint64_t seed)
	    : hosts_(hosts), random_(streams(hosts, seed)), order_(hosts)
	{
	}
	uint32_t next(uint32_t host) override
	{
		std::vector<uint16_t> &order = order_[host];
		uint32_t dst;

		if (order.empty()) {
			for (uint32_t h = 0; h < hosts_; h++)
				if (h != host)
					order.push_back(static_cast<uint16_t>(h));
			shuffle(&order, &random_[host]);
		}
		dst = order.back();
		order.pop_back();
		return dst;
	}

      private:
	uint32_t hosts_;
	std::vector<Random> random_;
	std::vector<std::vector<uint16_t>>
		order_; /* what is left of the round, the next one last */
};

class Incast : public Pattern
{
      public:
	Incast(uint32_t hosts, uint64_t seed) : others_(hosts, seed)
	{
	}
	uint32_t next(uint32_t host) override
	{
		return host ? 0 : others_.next(0);
	}

      private:
	UniformRandom others_;
};

class Permutation : public Pattern
{
      public:
	Permutation(uint32_t hosts, uint64_t seed) : to_(hosts)
	{
		Random random(seed);
		std::vector<uint32_t> order(hosts);

		/* One cycle through all hosts, so that no host is its own destination. */
		std::iota(order.begin(), order.end(), 0u);
		shuffle(&order, &random);
		for (uint32_t i = 0; i < hosts; i++)
			to_[order[i]] = order[(i + 1) % hosts];
	}
	uint32_t next(uint32_t host) override
	{
		return to_[host];
	}

      private:
	std::vector<uint32_t> to_;
};

} // namespace

const std::vector<std::string> &pattern_names()
{
	static const std::vector<std::string> names = {
		"hot_node", "alltoall_round_robin", "uniform_random", "uniform_random_seq_gen",
		"incast",   "permutation",
	};

	return names;
}

std::unique_ptr<Pattern> make_pattern(const std::string &name, uint32_t hosts, uint64_t seed)
{
	UR_ASSERT(hosts >= 2 && hosts <= 65536);
	if (name == "hot_node")
		return std::make_unique<HotNode>(hosts, seed);
	if (name == "alltoall_round_robin")
		return std::make_unique<RoundRobin>(hosts);
	if (name == "uniform_random")
		return std::make_unique<UniformRandom>(hosts, seed);
	if (name == "uniform_random_seq_gen")
		return std::make_unique<Rounds>(hosts, seed);
	if (name == "incast")
		return std::make_unique<Incast>(hosts, seed);
	if (name == "permutation")
		return std::make_unique<Permutation>(hosts, seed);
	return nullptr;
}

} // namespace sim
