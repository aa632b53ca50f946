/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_RANDOM_H
#define UR_NS3_RANDOM_H

#include <cstdint>

extern "C" {
#include "switch/hash.h"
}

namespace sim
{

inline uint64_t mix(uint64_t key, uint64_t seed)
{
	return ur_switch_hash(key, seed);
}

/* Random numbers: splitmix64. The same seed gives the same stream on every machine. */
class Random
{
      public:
	explicit Random(uint64_t seed) : state_(mix(seed, 0x5eed))
	{
	}
	uint64_t next()
	{
		state_ += UINT64_C(0x9e3779b97f4a7c15);
		return mix(state_, 0);
	}
	/* In [0, n), n at least 1. */
	uint32_t below(uint32_t n)
	{
		return static_cast<uint32_t>((next() >> 32) * n >> 32);
	}

      private:
	uint64_t state_;
};

} // namespace sim

#endif
