/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_HISTOGRAM_H
#define UR_NS3_HISTOGRAM_H

#include <cstdint>

#include "processes.h"

namespace sim
{

/* Numbers, counted in classes of a sixty-fourth of a power of two. */
class Histogram
{
      public:
	void add(uint64_t value);
	uint64_t count() const
	{
		return count_;
	}
	double mean() const
	{
		return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
	}
	uint64_t max() const
	{
		return max_;
	}
	/* The upper end of the class that holds this quantile, at most the maximum; 0 without samples. */
	uint64_t quantile(double q) const;

	/* Adds those of all processes. */
	void gather(Processes *all)
	{
		all->sum(classes_, sizeof(classes_) / sizeof(classes_[0]));
		all->sum(&count_, 1);
		all->sum(&sum_, 1);
		all->most(&max_, 1);
	}

      private:
	static constexpr unsigned SHIFT = 6;
	uint64_t classes_[64 << SHIFT] = {};
	uint64_t count_ = 0, sum_ = 0, max_ = 0;
};

} // namespace sim

#endif
