/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#include <algorithm>

namespace sim
{

void Histogram::add(uint64_t value)
{
	unsigned bits = 64u - static_cast<unsigned>(__builtin_clzll(value | 1)), at;

	if (bits <= SHIFT + 1)
		at = static_cast<unsigned>(value);
	else
		at = ((bits - SHIFT) << SHIFT) +
		     static_cast<unsigned>(value >> (bits - SHIFT - 1)) - (1u << SHIFT);
	classes_[at]++;
	count_++;
	sum_ += value;
	max_ = std::max(max_, value);
}

uint64_t Histogram::quantile(double q) const
{
	uint64_t want = static_cast<uint64_t>(q * static_cast<double>(count_)), seen = 0;

	for (unsigned at = 0; count_ && at < 64u << SHIFT; at++) {
		unsigned octave = at >> SHIFT, rest = at & ((1u << SHIFT) - 1);

		seen += classes_[at];
		if (seen <= want && seen < count_)
			continue;
		if (octave < 2)
			return std::min<uint64_t>(at, max_);
		return std::min(
			((UINT64_C(1) << SHIFT) + rest + 1) * (UINT64_C(1) << (octave - 1)) - 1,
			max_);
	}
	return max_;
}

} // namespace sim
