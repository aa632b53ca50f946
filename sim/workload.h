/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_WORKLOAD_H
#define UR_NS3_WORKLOAD_H

#include <cstdint>
#include <vector>

#include "network.h"
#include "pattern.h"

namespace sim
{

struct WorkloadAttr {
	uint32_t slots = 64; /* messages that a host has outstanding, to any destinations */
	uint32_t message_bytes = 2048;
	enum ibv_mtu mtu = IBV_MTU_2048;
	enum ur_mode mode = UR_MODE_EXTENDED;
	uint8_t tos = 2;	   /* ECT(0) */
	bool stamps = true;	   /* queue pairs agree on delay stamps */
	uint64_t warm_ns = 0;	   /* what happens before is not counted */
	uint64_t run_ns = 1000000; /* measured after that, in `intervals` equal parts */
	unsigned intervals = 20;
};

/* Times, counted in classes of a sixteenth of a power of two. */
class Histogram
{
      public:
	void add(uint64_t ns);
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

      private:
	static constexpr unsigned SHIFT = 4;
	uint64_t classes_[64 << SHIFT] = {};
	uint64_t count_ = 0, sum_ = 0, max_ = 0;
};

/*
 * Every host keeps `slots` WRITEs outstanding. When one completes, the next destination of the pattern gets one. Queue
 * pairs are created at their first use; all hosts write from and to the same memory, which nobody looks at.
 */
class Workload
{
      public:
	struct Interval {
		uint64_t packets = 0, payload_bytes = 0;   /* with payload, arrived */
		uint64_t wait_sum_ns = 0, wait_max_ns = 0; /* in switches, of these packets */
	};

	Workload(Network *net, Pattern *pattern, const WorkloadAttr &attr);

	/* Starts every host; call it inside of the simulation's time, or before it. */
	void start();

	std::vector<Interval> interval;
	std::vector<uint64_t> received_bytes; /* payload, of each host, while measured */
	std::vector<uint64_t>
		sent_bytes; /* payload of messages completed, of each host, while measured */
	Histogram wait;	    /* of packets with payload: time in switches */
	Histogram one_way;  /* of packets with payload: port to port */
	Histogram message;  /* from posting to completion */
	uint64_t completed = 0, errors = 0; /* messages, from the start */
	uint64_t posted = 0;		    /* handed to queue pairs */
	uint64_t queue_pairs = 0;

      private:
	struct Peer {
		struct ur_qp *qp = nullptr;
		uint32_t outstanding = 0; /* posted, not completed */
		uint32_t pending = 0;	  /* messages that wait for room in the send queue */
		std::vector<uint64_t>
			at_ns; /* when each outstanding message was posted, oldest at `first` */
		uint32_t first = 0;
	};
	struct Side {
		struct ur_cq *cq = nullptr;
		uint32_t key = 0;
		std::vector<Peer> peer;
	};

	static constexpr uint32_t DEPTH = 8; /* of a send queue */

	void open_host(unsigned h);
	struct ur_qp *create_qp(unsigned h);
	void connect(unsigned a, unsigned b);
	void connect_end(unsigned from, unsigned to);
	void next_message(unsigned h);
	void post(unsigned h, unsigned dst);
	void poll(unsigned h);
	void arrived(unsigned h, const Frame &f);
	Interval *current();
	bool measured() const;

	Network *net_;
	Pattern *pattern_;
	WorkloadAttr attr_;
	std::vector<Side> side_;
	std::vector<uint8_t> memory_; /* of all hosts */
	uint64_t start_ns_ = 0;
};

} // namespace sim

#endif
