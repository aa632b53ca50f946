/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_TRAFFIC_H
#define UR_NS3_TRAFFIC_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "histogram.h"
#include "pattern.h"

namespace sim
{

/* What traffic sends by. Messages between the same two hosts arrive and complete in order. */
class Sender
{
      public:
	virtual ~Sender() = default;
	/* Sends a message, now. `tag` comes back when it completes. */
	virtual void send(uint32_t src, uint32_t dst, uint32_t bytes, uint32_t tag) = 0;
	/* Whether this process simulates a host; only such a host can send. */
	virtual bool is_here(uint32_t host) const = 0;
	/* Lets Traffic::told() be called for the other host, later, in the process that simulates it. */
	virtual void tell(uint32_t from, uint32_t to, uint32_t kind, uint32_t tag) = 0;
};

/* Which messages are sent, and when. */
class Traffic
{
      public:
	virtual ~Traffic() = default;
	virtual void start(Sender *sender) = 0;
	/* A message has completed: src has the acknowledgement of dst. */
	virtual void completed(uint32_t src, uint32_t dst, uint32_t tag) = 0;
	/* A host hears what another one has told it by Sender::tell(). */
	virtual void told(uint32_t host, uint32_t kind, uint32_t tag)
	{
		(void)host, (void)kind, (void)tag;
	}
	/* Bytes of the longest message. */
	virtual uint32_t most_bytes() const = 0;
	/* Messages come whether others have completed or not, up to the end of the measurement. */
	virtual bool is_open() const
	{
		return false;
	}

	/* Of collective operations: the time of each that has ended, with that before the measurement. */
	Histogram operation;
};

/*
 * Sizes of messages as measured in data centers: points (bytes, per cent of messages that are not longer), straight lines
 * between. The tables are those of the HPCC paper's simulator (Li et al., SIGCOMM 2019; traffic_gen/ of
 * github.com/alibaba-edu/High-Precision-Congestion-Control).
 */
class Sizes
{
      public:
	/*
	 * websearch   web search: DCTCP (Alizadeh et al., SIGCOMM 2010)
	 * hadoop      Facebook's Hadoop cluster (Roy et al., SIGCOMM 2015)
	 * storage     Alibaba's distributed storage, 2019
	 *
	 * nullptr: there is none of that name.
	 */
	static const Sizes *find(const std::string &name);

	double mean() const;
	uint32_t most() const
	{
		return static_cast<uint32_t>(points_.back().first);
	}
	/* The size at that quantile, [0, 1); at least 1. */
	uint32_t at(double quantile) const;

      private:
	explicit Sizes(std::vector<std::pair<double, double>> points) : points_(std::move(points))
	{
	}
	std::vector<std::pair<double, double>> points_;
};

struct TrafficAttr {
	uint32_t hosts;
	uint64_t seed;
	/* Patterns: messages that a host has outstanding. All-reduce: operations at a time. */
	uint32_t slots = 64;
	uint32_t message_bytes = 2048; /* all-reduce: of each message */
	/* Sizes: how much of its link a host uses on average, until end_ns. */
	double load = 0.5;
	uint64_t link_bps = 0;
	uint64_t end_ns = 0;
};

/*
 * A pattern (pattern.h), whose hosts have `slots` messages outstanding each; or
 *
 *   ring_allreduce   each of n hosts sends 2 (n - 1) messages to the next one in a ring, each after the last one
 *                    has arrived from the one before
 *   tree_allreduce   a binary tree: messages go up to the root, each host's after those of both children, and down again
 *   websearch, hadoop, storage   Poisson arrivals at each host, sizes as measured, random destinations
 *
 * In rings and trees hosts have random places, and an operation follows when the last one has ended. nullptr: there is
 * none of that name.
 */
std::unique_ptr<Traffic> make_traffic(const std::string &name, const TrafficAttr &attr);
/* Of a pattern. */
std::unique_ptr<Traffic> make_closed(std::unique_ptr<Pattern> pattern, const TrafficAttr &attr);
/* Names besides those of patterns. */
const std::vector<std::string> &traffic_names();

} // namespace sim

#endif
