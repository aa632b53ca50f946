/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "clock.h"
#include "random.h"
#include "wire/assert.h"

namespace sim
{

namespace
{

class Closed : public Traffic
{
      public:
	Closed(std::unique_ptr<Pattern> pattern, const TrafficAttr &attr)
	    : pattern_(std::move(pattern)), attr_(attr)
	{
	}
	void start(Sender *sender) override
	{
		sender_ = sender;
		for (uint32_t h = 0; h < attr_.hosts; h++)
			for (uint32_t i = 0; sender->is_here(h) && i < attr_.slots; i++)
				completed(h, 0, 0);
	}
	void completed(uint32_t src, uint32_t, uint32_t) override
	{
		sender_->send(src, pattern_->next(src), attr_.message_bytes, 0);
	}
	uint32_t most_bytes() const override
	{
		return attr_.message_bytes;
	}

      private:
	std::unique_ptr<Pattern> pattern_;
	TrafficAttr attr_;
	Sender *sender_ = nullptr;
};

class Poisson : public Traffic
{
      public:
	Poisson(const Sizes &sizes, const TrafficAttr &attr) : sizes_(sizes), attr_(attr)
	{
		gap_ns_ = sizes.mean() * 8e9 / (static_cast<double>(attr.link_bps) * attr.load);
		for (uint32_t h = 0; h < attr.hosts; h++)
			random_.emplace_back(mix(h, attr.seed));
	}
	void start(Sender *sender) override
	{
		sender_ = sender;
		for (uint32_t h = 0; h < attr_.hosts; h++)
			if (sender->is_here(h))
				wait(h);
	}
	void completed(uint32_t, uint32_t, uint32_t) override
	{
	}
	uint32_t most_bytes() const override
	{
		return sizes_.most();
	}
	bool is_open() const override
	{
		return true;
	}

      private:
	/* In [0, 1). */
	double fraction(uint32_t host)
	{
		return static_cast<double>(random_[host].next() >> 11) * 0x1p-53;
	}
	void wait(uint32_t host)
	{
		double gap_ns = -std::log(1 - fraction(host)) * gap_ns_;
		uint64_t at_ns = now_ns() + static_cast<uint64_t>(gap_ns);

		if (at_ns < attr_.end_ns)
			call_at(host_own_context(host), at_ns, &Poisson::arrive, this, host);
	}
	void arrive(uint32_t host)
	{
		uint32_t dst = random_[host].below(attr_.hosts - 1);

		sender_->send(host, dst + (dst >= host), sizes_.at(fraction(host)), 0);
		wait(host);
	}

	const Sizes &sizes_;
	TrafficAttr attr_;
	double gap_ns_;
	std::vector<Random> random_;
	Sender *sender_ = nullptr;
};

/*
 * Operations of which attr.slots run at a time. A place in the operation is a rank. Hosts know of each other what they
 * have been told: a host that a message has arrived, rank 0 which ranks are done, all ranks that rank 0 begins an operation.
 */
class Collective : public Traffic
{
      public:
	explicit Collective(const TrafficAttr &attr)
	    : attr_(attr), host_(attr.hosts), rank_(attr.hosts), began_ns_(attr.slots),
	      ended_(attr.slots)
	{
		Random random(attr.seed);

		std::iota(host_.begin(), host_.end(), 0u);
		for (uint32_t i = attr.hosts; i > 1; i--)
			std::swap(host_[i - 1], host_[random.below(i)]);
		for (uint32_t i = 0; i < attr.hosts; i++)
			rank_[host_[i]] = i;
	}
	void start(Sender *sender) override
	{
		sender_ = sender;
		for (uint32_t s = 0; sender->is_here(host_[0]) && s < attr_.slots; s++)
			restart(s);
	}
	void completed(uint32_t src, uint32_t dst, uint32_t tag) override
	{
		sender_->tell(src, dst, ARRIVED, tag);
	}
	void told(uint32_t host, uint32_t kind, uint32_t tag) override
	{
		if (kind == ARRIVED)
			arrived(rank_[host], tag);
		else if (kind == BEGIN)
			begin(rank_[host], tag);
		else if (++ended_[tag] == enders())
			end(tag);
	}
	uint32_t most_bytes() const override
	{
		return attr_.message_bytes;
	}

      protected:
	/* A rank begins an operation. */
	virtual void begin(uint32_t rank, uint32_t slot) = 0;
	/* A message has arrived at a rank. */
	virtual void arrived(uint32_t rank, uint32_t tag) = 0;
	/* How many ranks call done() in an operation. */
	virtual uint32_t enders() const = 0;

	void done(uint32_t rank, uint32_t slot)
	{
		sender_->tell(host_[rank], host_[0], DONE, slot);
	}
	void send(uint32_t from, uint32_t to, uint32_t tag)
	{
		sender_->send(host_[from], host_[to], attr_.message_bytes, tag);
	}
	uint32_t ranks() const
	{
		return attr_.hosts;
	}

	TrafficAttr attr_;

      private:
	enum Kind { ARRIVED, BEGIN, DONE };

	/* At rank 0. */
	void restart(uint32_t slot)
	{
		began_ns_[slot] = now_ns();
		ended_[slot] = 0;
		for (uint32_t r = 0; r < ranks(); r++)
			sender_->tell(host_[0], host_[r], BEGIN, slot);
	}
	void end(uint32_t slot)
	{
		operation.add(now_ns() - began_ns_[slot]);
		restart(slot);
	}

	std::vector<uint32_t> host_, rank_; /* of each rank, of each host */
	std::vector<uint64_t> began_ns_;
	std::vector<uint32_t> ended_; /* ranks that are done */
	Sender *sender_ = nullptr;
};

/* Tag: slot and step, of [0, 2 (n - 1)). */
class Ring : public Collective
{
      public:
	explicit Ring(const TrafficAttr &attr) : Collective(attr)
	{
		UR_ASSERT(steps() <= 1u << STEP_BITS && attr.slots < 1u << (32 - STEP_BITS));
	}

      private:
	static constexpr unsigned STEP_BITS = 17;
	uint32_t steps() const
	{
		return 2 * (ranks() - 1);
	}
	uint32_t enders() const override
	{
		return ranks();
	}
	void begin(uint32_t rank, uint32_t slot) override
	{
		send(rank, (rank + 1) % ranks(), slot << STEP_BITS);
	}
	void arrived(uint32_t rank, uint32_t tag) override
	{
		uint32_t step = tag & ((1u << STEP_BITS) - 1);

		if (step + 1 < steps())
			send(rank, (rank + 1) % ranks(), tag + 1);
		else
			done(rank, tag >> STEP_BITS);
	}
};

/* Tag: slot, and in bit 0 whether it is on the way down. The children of rank r are 2 r + 1 and 2 r + 2. */
class Tree : public Collective
{
      public:
	explicit Tree(const TrafficAttr &attr) : Collective(attr)
	{
		for (uint32_t s = 0; s < attr.slots; s++)
			from_children_.emplace_back(attr.hosts);
	}

      private:
	uint32_t children(uint32_t rank) const
	{
		return (2 * rank + 1 < ranks()) + (2 * rank + 2 < ranks());
	}
	/* All but the root, which has the result first. */
	uint32_t enders() const override
	{
		return ranks() - 1;
	}
	void begin(uint32_t rank, uint32_t slot) override
	{
		from_children_[slot][rank] = 0;
		if (!children(rank))
			send(rank, (rank - 1) / 2, slot << 1);
	}
	void arrived(uint32_t rank, uint32_t tag) override
	{
		uint32_t slot = tag >> 1;

		if (tag & 1) {
			send_down(rank, slot);
			done(rank, slot);
		} else if (++from_children_[slot][rank] == children(rank)) {
			if (rank)
				send(rank, (rank - 1) / 2, slot << 1);
			else
				send_down(0, slot);
		}
	}
	void send_down(uint32_t rank, uint32_t slot)
	{
		for (uint32_t i = 1; i <= children(rank); i++)
			send(rank, 2 * rank + i, slot << 1 | 1);
	}

	std::vector<std::vector<uint8_t>> from_children_; /* of each rank */
};

} // namespace

/* ---- sizes ---- */

const Sizes *Sizes::find(const std::string &name)
{
	static const Sizes websearch({{0, 0},
				      {10000, 15},
				      {20000, 20},
				      {30000, 30},
				      {50000, 40},
				      {80000, 53},
				      {200000, 60},
				      {1000000, 70},
				      {2000000, 80},
				      {5000000, 90},
				      {10000000, 97},
				      {30000000, 100}}),
		hadoop({{0, 0},	      {100, 1},	       {200, 2},      {300, 5},
			{350, 15},    {400, 20},       {500, 30},     {600, 40},
			{700, 50},    {1000, 60},      {2000, 67},    {7000, 70},
			{30000, 72},  {50000, 82},     {80000, 87},   {120000, 90},
			{300000, 95}, {1000000, 97.5}, {2000000, 99}, {10000000, 100}}),
		storage({{0, 0},
			 {4000, 22.93},
			 {8000, 69.21},
			 {16000, 80.61},
			 {32000, 90.47},
			 {64000, 93.53},
			 {128000, 96.77},
			 {256000, 97.53},
			 {2000000, 100}});

	return name == "websearch" ? &websearch
	       : name == "hadoop"  ? &hadoop
	       : name == "storage" ? &storage
				   : nullptr;
}

double Sizes::mean() const
{
	double sum = 0;

	for (size_t i = 1; i < points_.size(); i++)
		sum += (points_[i].first + points_[i - 1].first) / 2 *
		       (points_[i].second - points_[i - 1].second) / 100;
	return sum;
}

uint32_t Sizes::at(double quantile) const
{
	double percent = 100 * quantile;
	size_t i = 1;

	while (i + 1 < points_.size() && points_[i].second <= percent)
		i++;
	const auto &a = points_[i - 1], &b = points_[i];
	double size = a.first + (b.first - a.first) * (percent - a.second) / (b.second - a.second);

	return std::max<uint32_t>(1, static_cast<uint32_t>(size));
}

/* ---- by name ---- */

const std::vector<std::string> &traffic_names()
{
	static const std::vector<std::string> names = {
		"ring_allreduce", "tree_allreduce", "websearch", "hadoop", "storage",
	};

	return names;
}

std::unique_ptr<Traffic> make_closed(std::unique_ptr<Pattern> pattern, const TrafficAttr &attr)
{
	return std::make_unique<Closed>(std::move(pattern), attr);
}

std::unique_ptr<Traffic> make_traffic(const std::string &name, const TrafficAttr &attr)
{
	std::unique_ptr<Pattern> pattern = make_pattern(name, attr.hosts, attr.seed);

	if (pattern)
		return make_closed(std::move(pattern), attr);
	if (name == "ring_allreduce")
		return std::make_unique<Ring>(attr);
	if (name == "tree_allreduce")
		return std::make_unique<Tree>(attr);
	if (const Sizes *sizes = Sizes::find(name))
		return std::make_unique<Poisson>(*sizes, attr);
	return nullptr;
}

} // namespace sim
